"""Boosted trees: many small public random trees, whose leaves are learned one tree after the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.learn.base import check_is_fitted, keep_columns
from discreet.learn.binned_models import BinnedClassifier, BinnedModel, Layout, TreeRegressor
from discreet.ledger import Ledger
from discreet.mechanisms.learning.boosted_trees import SHAPES, BoostedTrees
from discreet.rows.containers import Data
from discreet.rows.leaves import Bins, LeafRows, Tree, public_words

Floats = NDArray[np.float64]
ROUNDS = 3000
"""The trees, if nothing is set. Chosen on generated tables, as are the two numbers of each class."""
BLOCK = 2**15
DRAWN = 500
"""The rows that importances are measured on."""


class Boosted(BinnedModel):
    """What both kinds of boosted trees share.

    `ranges`, `categories` and `n_samples` are declared as for additive models. Ranges that are not declared are found
    privately, for a tenth of the cost. `rounds` is the number of trees, `clip` bounds the slope of a row, and
    `learning_rate` is that of a round. None uses the default, which is computed only from public numbers.

    `feature_importances_` are shares of the variance of the scores that are due to each column, alone or together with
    others, for cells that are drawn uniformly from the bins. What noise alone would give is subtracted, and
    `importance_noise_` says how much that was. They are computed from the release, and cost nothing.
    """

    _final_noise, _slope = 0.7, 0.5  # noise that may stay in a score, and where the slope of a row is clipped
    _mixed: tuple[Floats, Floats] | None

    def _within(self, layout: Layout, goal: Any, size: int | None) -> BoostedTrees:
        if not exactly(self.delta):
            raise InvalidArgument(
                "Boosted trees need Gaussian noise, and so a delta, such as 1e-6. For pure ε, use a random forest.",
                code="needs-delta",
            )
        declared, bins = self.n_samples if size is None else size, layout.bins(None)
        return BoostedTrees.for_guarantee(
            goal,
            unit=self._unit(),
            rows_per_person=self._rows(),
            bins=Bins(tuple(one.bins for one in bins), tuple(one.choices is None for one in bins)),
            loss=self._loss(),
            clip=self._slope if self.clip is None else self.clip,
            rounds=ROUNDS if self.rounds is None else check_count(self.rounds, "rounds"),
            learning_rate=self.learning_rate,
            final_noise=self._final_noise,
            size=None if declared is None else check_count(declared, "n_samples"),
        )

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        columns, goal, declared = self._opened(X, y)
        layout = Layout(tuple(declared), ())
        self.release_, mechanism = self._learn(layout, columns, goal, LeafRows, "{0.rounds} rounds")
        self.n_iter_ = mechanism.rounds
        keep_columns(self, len(columns), None if columns.names is None else list(columns.names))
        value = self.release_.value
        ranges = value.get("ranges")
        self._take_ranges(ranges)
        self._bins, self._public = layout.bins(ranges), mechanism.bins
        self._left = mechanism.left_in_leaves(float(value["size"]))
        self._mixed = None
        return self

    @property
    def feature_importances_(self) -> Floats:
        """The share of each column in the variance of the scores, without what noise alone would give."""
        return self._importances()[0]

    @property
    def importance_noise_(self) -> Floats:
        """What noise alone would give each column, at most, in the unit of `feature_importances_`."""
        return self._importances()[1]

    def _importances(self) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        if self._mixed is None:
            change, noise = importances(
                self._trees(), np.asarray(self.release_.value["values"]), self._left, self._public
            )
            above = np.maximum(change - noise, 0)
            whole = max(float(above.sum()), float(noise.max()), 1e-300)
            self._mixed = above / whole, noise / whole
        return self._mixed

    def _scores(self, X: Data) -> Floats:
        """Classes × rows."""
        check_is_fitted(self)
        columns = self._known_columns(X)
        codes = [one.codes(columns, place) for place, one in enumerate(self._bins)]
        return summed(self._trees(), np.asarray(self.release_.value["values"]), codes)

    def _trees(self) -> list[Tree]:
        value = self.release_.value
        weights = np.asarray(value["weights"])
        return [self._public.tree(int(value["seed"]), number, SHAPES, one) for number, one in enumerate(weights)]


def summed(trees: list[Tree], values: Floats, codes: list[Any]) -> Floats:
    """The sum of the values of the leaves that each row is in: classes × rows."""
    many = len(codes[0])
    scores = np.zeros((values.shape[1], many))
    for start in range(0, many, BLOCK):
        part = [one[start : start + BLOCK] for one in codes]
        block = scores[:, start : start + BLOCK]
        for tree, leaves in zip(trees, values, strict=True):
            block += leaves.take(tree.places(part), axis=1)
    return scores


def importances(trees: list[Tree], values: Floats, left: Floats, bins: Bins) -> tuple[Floats, Floats]:
    """How much the scores change if one column is drawn anew, for each column, and how much of it is noise.

    Both are half the mean square of the change, for `DRAWN` rows of cells that are drawn uniformly from the bins.
    `left` is the standard deviation of the noise in the leaves of each tree.
    """
    rows = [_cells(number, size) for number, size in enumerate(bins.sizes)]
    others = [_cells(len(rows) + number, size) for number, size in enumerate(bins.sizes)]
    before = [tree.places(rows) for tree in trees]
    change, noise = np.zeros(len(rows)), np.zeros(len(rows))
    for column, other in enumerate(others):
        moved = np.zeros((values.shape[1], DRAWN))
        again = [*rows[:column], other, *rows[column + 1 :]]
        for tree, place, leaves, one in zip(trees, before, values, left, strict=True):
            if column in tree.columns:
                there = tree.places(again)
                moved += leaves.take(there, axis=1) - leaves.take(place, axis=1)
                noise[column] += float(np.mean(there != place)) * one**2 * values.shape[1]
        change[column] = float((moved * moved).sum()) / DRAWN / 2
    return change, noise


def _cells(number: int, size: int) -> Any:
    """Cells drawn uniformly from the bins of a column, without the one for missing cells, the same in every model."""
    words = public_words(0, number * DRAWN, DRAWN)
    return (words % np.uint64(max(size - 1, 1))).astype(np.int64)


class BoostedTreesClassifier(BinnedClassifier, Boosted):
    """Chooses among declared `classes` by a sum of small trees. Rows of any other class are left out.

    >>> import numpy as np
    >>> age, free = np.tile(np.arange(100.0), 100), np.repeat([0, 1], 5000)
    >>> busy = (age < 50) ^ (free == 1)
    >>> model = BoostedTreesClassifier(epsilon=1, delta=1e-6, classes=[0, 1], ranges=[(0, 100), (0, 1)], rounds=200)
    >>> rows = np.column_stack([age, free])
    >>> bool(model.fit(rows, busy).score(rows, busy) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        classes: Sequence[Hashable] | None = None,
        ranges: Any = None,
        categories: Any = None,
        n_samples: int | None = None,
        rounds: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.classes = epsilon, delta, classes
        self.ranges, self.categories, self.n_samples = ranges, categories, n_samples
        self.rounds, self.clip, self.learning_rate = rounds, clip, learning_rate
        self.rows_per_person, self.ledger = rows_per_person, ledger


class BoostedTreesRegressor(TreeRegressor, Boosted):
    """Predicts a number by a sum of small trees, with the squared error.

    `target_range` is a public (low, high). Targets outside are read as the nearest end. Without it, the range is found
    privately, like that of a column.
    """

    _final_noise, _slope = 0.07, 0.2  # targets are within ±1, and scores of classes are not

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        target_range: tuple[Number, Number] | None = None,
        ranges: Any = None,
        categories: Any = None,
        n_samples: int | None = None,
        rounds: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.target_range = epsilon, delta, target_range
        self.ranges, self.categories, self.n_samples = ranges, categories, n_samples
        self.rounds, self.clip, self.learning_rate = rounds, clip, learning_rate
        self.rows_per_person, self.ledger = rows_per_person, ledger
