"""Random forests: public random trees, whose leaves are counted with noise in one release."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.guarantees.conversions import largest_mu
from discreet.learn.binned.models import BinnedClassifier, Layout
from discreet.learn.binned.tree_models import TreeModel, TreeRegressor, public_bins
from discreet.ledger import Ledger
from discreet.mechanisms.learning.leaf_counts import LeafCounts
from discreet.rows.containers import Data
from discreet.rows.gradients.leaves import Tree

Floats = NDArray[np.float64]
TREES, DEPTH, FILLED = 100, 6, 50
"""The trees, their depth if the number of rows is not public, and how many deviations of a count should be in a leaf
of average size otherwise. Chosen on generated tables.
"""
DEEPEST = 16
"""A deeper tree would have more leaves than memory holds, which would only be noticed after the charge."""
SHRINK = 3.0
"""A leaf is moved toward the mean as if this many deviations of its noise were rows of it."""


class Forest(TreeModel):
    """What both forests share.

    Every tree divides a few columns, drawn at random without looking at the data, into parts. `ranges` and `categories`
    are declared as for additive models. Ranges that are not declared are found privately, for a tenth of the cost. A
    tree has about 2^`max_depth` leaves, and `max_depth` is at most 16. None chooses the depth from ε, and from
    `n_samples` if the number of rows is public. `feature_importances_` and `importance_noise_` are those of
    `BoostedTreesClassifier`, for the mean of the leaves.
    """

    def _depth(self) -> int:
        if self.max_depth is not None:
            if check_count(self.max_depth, "max_depth") > DEEPEST:
                raise InvalidArgument(
                    f"max_depth must be at most {DEEPEST}: every leaf of every tree is released.", code="out-of-range"
                )
            return int(self.max_depth)
        if self.n_samples is None:
            return DEPTH
        epsilon, delta = float(exactly(self.epsilon)), float(exactly(self.delta))
        share = largest_mu(epsilon, delta) if delta else epsilon / math.sqrt(2 * self._many())
        return int(np.clip(round(math.log2(max(check_count(self.n_samples, "n_samples") * share / FILLED, 1))), 3, 10))

    def _many(self) -> int:
        return TREES if self.n_estimators is None else check_count(self.n_estimators, "n_estimators")

    def _classes(self) -> int | None:
        raise NotImplementedError

    def _within(self, layout: Layout, goal: Any, size: int | None) -> LeafCounts:
        bins, depth = public_bins(layout), self._depth()
        columns = min(depth, len(bins.sizes))
        return LeafCounts.for_guarantee(
            goal,
            unit=self._unit(),
            rows_per_person=self._rows(),
            bins=bins,
            trees=self._many(),
            shape=(columns, min(16, max(2, round(2 ** (depth / columns))))),
            classes=self._classes(),
        )

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        mechanism = self._grow(X, y, "{0.trees} trees")
        self._shape, self._deviation = mechanism.shape, deviation_of(mechanism.noise)
        self._leaves, self._left = self._settled(np.asarray(self.release_.value["values"]))
        return self

    def _settled(self, values: Floats) -> tuple[Floats, Floats]:
        """What each leaf predicts, as a part of the forest, and the noise in a leaf of average size."""
        raise NotImplementedError

    def _leaf_values(self) -> Floats:
        return self._leaves

    def _trees(self) -> list[Tree]:
        seed = int(self.release_.value["seed"])
        return [self._public.tree(seed, number, [self._shape]) for number in range(len(self._leaves))]


def deviation_of(noise: Any) -> float:
    """The standard deviation of Gaussian or Laplace noise."""
    return float(noise._size) * (1 if hasattr(noise, "deviation") else math.sqrt(2))


class RandomForestClassifier(BinnedClassifier, Forest):
    """Chooses among declared `classes` by their noisy counts in the leaves of random trees.

    Rows of any other class are left out. With `delta=0` the promise is pure ε.

    >>> import numpy as np
    >>> age = np.tile(np.arange(100.0), 100)
    >>> model = RandomForestClassifier(epsilon=1, delta=0, classes=[0, 1], ranges=[(0, 100)])
    >>> bool(model.fit(age[:, None], age < 50).score(age[:, None], age < 50) > 0.9)
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
        n_estimators: int | None = None,
        max_depth: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.classes = epsilon, delta, classes
        self.ranges, self.categories, self.n_samples = ranges, categories, n_samples
        self.n_estimators, self.max_depth = n_estimators, max_depth
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _classes(self) -> int:
        return len(self._declared())

    def _settled(self, values: Floats) -> tuple[Floats, Floats]:
        shares = np.maximum(values.sum(axis=(0, 2)), 0) + 1e-9
        shares = shares / shares.sum()
        known = np.maximum(values, 0)
        # without any noise, as in a test, empty leaves still need a share
        more = SHRINK * max(self._deviation, 1e-6)
        leaves = (known + more * shares[None, :, None]) / (known.sum(axis=1, keepdims=True) + more)
        size = np.maximum(values, 0).sum(axis=(1, 2)) / values.shape[2]
        return leaves / len(values), self._deviation / (size + more) / len(values)

    def decision_function(self, X: Data) -> Any:
        """How much likelier the second class is, or the probability of each class."""
        likely = self._scores(X)
        return likely[1] - likely[0] if len(likely) == 2 else likely.T

    def predict_proba(self, X: Data) -> Any:
        """The probability of each class for each row: the mean over all trees."""
        likely = self._scores(X).T
        return likely / likely.sum(axis=1, keepdims=True)


class RandomForestRegressor(TreeRegressor, Forest):
    """Predicts a number by noisy counts and sums in the leaves of random trees. With `delta=0` it is pure ε.

    `target_range` is a public (low, high). Targets outside are read as the nearest end. Without it, the range is found
    privately, like that of a column.
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        target_range: tuple[Number, Number] | None = None,
        ranges: Any = None,
        categories: Any = None,
        n_samples: int | None = None,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.target_range = epsilon, delta, target_range
        self.ranges, self.categories, self.n_samples = ranges, categories, n_samples
        self.n_estimators, self.max_depth = n_estimators, max_depth
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _classes(self) -> None:
        return None

    def _settled(self, values: Floats) -> tuple[Floats, Floats]:
        counts, sums = values[:, 0], values[:, 1]
        mean = float(np.clip(sums.sum() / max(float(counts.sum()), 1.0), -1, 1))
        more = SHRINK * max(self._deviation, 1e-6)
        leaves = np.clip((sums + more * mean) / (np.maximum(counts, 0) + more), -1, 1)
        size = np.maximum(counts, 0).mean(axis=1)
        return leaves[:, None, :] / len(values), self._deviation / (size + more) / len(values)
