"""Estimators that learn from rows without labels: one release, from a table, from batches or by partitions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from discreet.learn.automatic import Source, finds_features, rows_in_memory
from discreet.learn.base import Floats, Planned, table_of, width_of
from discreet.learn.streams import open_batches
from discreet.rows.arrow import unlabelled
from discreet.rows.containers import Data
from discreet.rows.rounding import RoundedRows


class Unlabelled(Planned):
    """The base of estimators that fit rows without labels."""

    def fit(self, X: Data, y: Data = None) -> Self:
        """Learn from a table or an array: one release, charged before the rows are read."""
        table, names = table_of(X, width_of(self.feature_ranges))
        rows = Source(lambda **bounds: RoundedRows(table, **bounds), rows_in_memory(table))
        return self._fitted(int(table.shape[1]), names, rows)

    def fit_batches(self, batches: Data, *, features: int | Sequence[str] | None = None) -> Self:
        """Learn from rows that do not fit in memory: one release, charged before the first batch is read.

        `batches` is as for `LogisticRegression.fit_batches`, including a Spark DataFrame. A function yields rows X.
        They are read once, twice for `PCA`, and for `KMeans` and `GaussianMixture` once per level of the tree and per
        round, and twice more.
        """
        known = open_batches(batches, features, None, self.feature_ranges, labelled=False)
        rows = Source(lambda **bounds: known.rounded(unlabelled, **bounds), known.summing(unlabelled))
        return self._fitted(known.features, known.names, rows)

    @abstractmethod
    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        """Learn from the rows, rounded within bounds that are declared or found."""

    def _read(
        self, rows: Source, features: int, shaped: Callable[[Floats], Floats], **bounds: Any
    ) -> Callable[[], Any]:
        """What the door reads: rows within declared bounds, or rows whose ranges are found first, then `shaped`."""
        if finds_features(self):
            return lambda: rows.unbounded(features, lambda found: rows(feature_ranges=shaped(found)))
        rounded = rows(**bounds)  # bad bounds are refused before anything is spent
        return lambda: rounded
