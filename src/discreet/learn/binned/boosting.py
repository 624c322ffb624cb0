"""Boosted trees: many small public random trees, whose leaves are learned one tree after the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.learn.binned.models import BinnedClassifier, Layout
from discreet.learn.binned.tree_models import TreeModel, TreeRegressor, public_bins
from discreet.ledger import Ledger
from discreet.mechanisms.learning.boosted_trees import SHAPES, BoostedTrees
from discreet.rows.containers import Data
from discreet.rows.gradients.leaves import Tree

Floats = NDArray[np.float64]
ROUNDS = 3000
"""The trees, if nothing is set. Chosen on generated tables, as are the two numbers of each class."""


class Boosted(TreeModel):
    """What both kinds of boosted trees share.

    `ranges`, `categories` and `n_samples` are declared as for additive models. Ranges that are not declared are found
    privately, for a tenth of the cost. `rounds` is the number of trees, `clip` bounds the slope of a row, and
    `learning_rate` is that of a round. None uses the default, which is computed only from public numbers.

    `feature_importances_` are shares of the variance of the scores that are due to each column, alone or together with
    others, for cells that are drawn uniformly from the bins. What noise alone would give is subtracted, and
    `importance_noise_` says how much that was. They are computed from the release, and cost nothing.
    """

    _final_noise, _slope = 0.7, 0.5  # noise that may stay in a score, and where the slope of a row is clipped

    def _within(self, layout: Layout, goal: Any, size: int | None) -> BoostedTrees:
        if not exactly(self.delta):
            raise InvalidArgument(
                "Boosted trees need Gaussian noise, and so a delta, such as 1e-6. For pure ε, use a random forest.",
                code="needs-delta",
            )
        declared = self.n_samples if size is None else size
        return BoostedTrees.for_guarantee(
            goal,
            unit=self._unit(),
            rows_per_person=self._rows(),
            bins=public_bins(layout),
            loss=self._loss(),
            clip=self._slope if self.clip is None else self.clip,
            rounds=ROUNDS if self.rounds is None else check_count(self.rounds, "rounds"),
            learning_rate=self.learning_rate,
            final_noise=self._final_noise,
            size=None if declared is None else check_count(declared, "n_samples"),
        )

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        mechanism = self._grow(X, y, "{0.rounds} rounds")
        self.n_iter_ = mechanism.rounds
        self._left = mechanism.left_in_leaves(float(self.release_.value["size"]))
        return self

    def _leaf_values(self) -> Floats:
        return np.asarray(self.release_.value["values"])

    def _trees(self) -> list[Tree]:
        value = self.release_.value
        weights = np.asarray(value["weights"])
        return [self._public.tree(int(value["seed"]), number, SHAPES, one) for number, one in enumerate(weights)]


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
