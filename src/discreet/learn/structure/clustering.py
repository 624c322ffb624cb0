"""Clusters from noisy rounds of Lloyd's algorithm, from private starts."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.exact.rational import Number, check_count
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import AUTO, Auto, Source, is_auto, with_ranges, within_ranges
from discreet.learn.base import fitted_table, keep_columns, keep_ranges
from discreet.learn.structure.unlabelled import Unlabelled
from discreet.ledger import Ledger
from discreet.mechanisms.learning.lloyd import Lloyd
from discreet.rows.containers import Data
from discreet.rows.rounding import check_ranges

_base = need("sklearn.base", "learn", "discreet.learn")
ClusterMixin: Any = _base.ClusterMixin
TransformerMixin: Any = _base.TransformerMixin
Floats = NDArray[np.float64]
ROUNDS = 3
"""Enough for clusters to settle from private starts; more rounds mean more noise in each."""
MORE_LEVELS = 3
"""The tree of private starts has 2^3 leaves for each cluster, if there are enough rows."""


class KMeans(ClusterMixin, TransformerMixin, Unlabelled):  # type: ignore[misc]
    """`n_clusters` centers, each about the mean of the rows nearest to it.

    `feature_ranges`, a public (low, high) for each column, clamp the training rows and define the distance: columns are
    measured relative to their ranges. With "auto" they are found privately, within the cost of the fit: `ranges_`. With
    a `feature_norm` instead, rows are clipped to it. A private tree of cells finds where the centers start; then there
    are `rounds` rounds, 3 by default, from centers to the noisy means of the rows nearest to them. All of this is one
    release. With `delta=0` the noise is Laplace and the promise is pure ε. Neither the inertia nor the labels of the
    training rows are stored: `predict` labels any rows you have. `counts_` are the noisy sizes of the clusters.
    """

    cluster_centers_: Floats
    counts_: Floats

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        feature_norm: Number | Auto = AUTO,
        rounds: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.n_clusters, self.epsilon, self.delta = n_clusters, epsilon, delta
        self.feature_ranges, self.feature_norm, self.rounds = feature_ranges, feature_norm, rounds
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _plan(self, features: int) -> Any:
        return with_ranges(self, features, lambda goal: self._rounds(features, goal))

    def _rounds(self, features: int, goal: Approx) -> Lloyd:
        clusters = check_count(self.n_clusters, "n_clusters")
        by_norm = is_auto(self.feature_ranges) and not is_auto(self.feature_norm)
        norm: Any = self.feature_norm if by_norm else None
        return Lloyd.for_guarantee(
            goal,
            clusters=clusters,
            features=features,
            rounds=ROUNDS if self.rounds is None else check_count(self.rounds, "rounds"),
            levels=levels_for(clusters),
            feature_norm=norm,
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        ranges = None if is_auto(self.feature_ranges) else check_ranges(self.feature_ranges, features)
        whole = self._plan(features)
        plan: Lloyd = within_ranges(whole)
        read = self._read(rows, features, np.asarray, feature_norm=plan.feature_norm, feature_ranges=ranges)
        asked = f"KMeans of {features} features in {plan.clusters} clusters and {plan.rounds} rounds"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        ranges = self.release_.value.get("ranges", ranges)
        keep_ranges(self, ranges)
        self._half = np.ones(features) if ranges is None else ranges[:, 1] / 2 - ranges[:, 0] / 2
        middle = 0.0 if ranges is None else ranges[:, 0] / 2 + ranges[:, 1] / 2
        self.cluster_centers_ = np.asarray(self.release_.value["centers"]) * self._half + middle
        self.counts_ = np.maximum(self.release_.value["counts"], 0.0)
        self.n_iter_ = plan.rounds
        keep_columns(self, features, names)
        return self

    @np.errstate(all="ignore")  # a warning would reveal something about a cell
    def transform(self, X: Data) -> Floats:
        """The distance of each row to each center, with columns measured in halves of their declared ranges."""
        table = fitted_table(self, X) / self._half
        apart = [np.linalg.norm(table - center, axis=1) for center in self.cluster_centers_ / self._half]
        return np.stack(apart, axis=1)

    def predict(self, X: Data) -> NDArray[np.int64]:
        """The nearest center of each row."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def fit_predict(self, X: Data, y: Data = None) -> NDArray[np.int64]:
        """Learn the centers, then return the nearest one for each of the same rows. These labels are not private."""
        return np.asarray(self.fit(X).predict(X))

    @np.errstate(all="ignore")
    def score(self, X: Data, y: Data = None) -> float:
        """Minus the sum of squared distances of these rows to their centers. Computed on X as it is, so it is not
        private.
        """
        return -float((self.transform(X).min(axis=1) ** 2).sum())


def levels_for(clusters: int) -> int:
    """The levels of the tree for private starts: a single cluster needs none."""
    return math.ceil(math.log2(clusters)) + MORE_LEVELS if clusters > 1 else 0
