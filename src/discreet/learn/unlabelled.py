"""Estimators that learn from rows without labels: one release, from a table, from batches or by partitions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

from discreet.learn.base import Planned, table_of, width_of
from discreet.learn.streams import open_batches
from discreet.rows.arrow import unlabelled
from discreet.rows.containers import Data
from discreet.rows.rounding import RoundedRows


class Unlabelled(Planned):
    """The base of estimators that fit rows without labels."""

    def fit(self, X: Data, y: Data = None) -> Self:
        """Learn from a table or an array: one release, charged before the rows are read."""
        table, names = table_of(X, width_of(self.feature_ranges))
        return self._fitted(int(table.shape[1]), names, lambda **bounds: RoundedRows(table, **bounds))

    def fit_batches(self, batches: Data, *, features: int | Sequence[str] | None = None) -> Self:
        """Learn from rows that do not fit in memory: one release, charged before the first batch is read.

        `batches` is as for `LogisticRegression.fit_batches`, including a Spark DataFrame. A function yields rows X.
        They are read once, twice for `PCA`, and for `KMeans` and `GaussianMixture` once per level of the tree and per
        round, and twice more.
        """
        known = open_batches(batches, features, None, self.feature_ranges, labelled=False)
        return self._fitted(known.features, known.names, lambda **bounds: known.rounded(unlabelled, **bounds))

    @abstractmethod
    def _fitted(self, features: int, names: list[str] | None, rounded: Callable[..., RoundedRows]) -> Self:
        """Learn from the rows, rounded within declared bounds."""
