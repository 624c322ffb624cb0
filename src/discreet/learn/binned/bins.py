"""Bins: a transformer that lets linear models learn any shape of a column, not only straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.extras import need
from discreet.guarantees.guarantee import Guarantee
from discreet.learn.base import Planned, check_is_fitted, feature_names_of, keep_columns
from discreet.learn.binned.bin_columns import Columns, declare, declared_width
from discreet.learn.binned.bin_tables import EQUAL, ColumnBins, bins_for
from discreet.ledger import Ledger
from discreet.mechanisms.learning.found_ranges import BINNED, FoundRanges
from discreet.rows.containers import Data

_mixins: Any = need("sklearn.base", "learn", "discreet.learn")
Floats = NDArray[np.float64]
ENCODINGS = ("smooth", "onehot", "codes")


class Bins(_mixins.TransformerMixin, Planned):  # type: ignore[misc]
    """Puts each cell into a bin, and gives the features of the bins: for any estimator, in a pipeline.

    `ranges` declares a public (low, high) for columns of numbers, and `categories` the values of other columns: dicts
    by name or position, or lists with one entry for each column. Declared columns cost nothing. The ranges of all other
    columns of numbers are found privately, for `epsilon` and `delta`, in one release. Numbers outside a range are in
    the nearest bin, missing cells in one of their own, and so are values that are not declared.

    `encode="smooth"`: neighboring bins have similar features, at most `components` for a column, so that a linear model
    learns smooth curves from few rows. `"onehot"`: a column of 0 and 1 for each bin. Both are scaled so that every row
    has norm 1 at most. `"codes"`: the number of the bin. `bins` is the number of equal parts of a range.

    >>> import numpy as np
    >>> Bins(ranges=[(0, 100)], bins=4, encode="codes").fit_transform(np.array([[0.0], [30.0], [99.0], [np.nan]]))[:, 0]
    array([ 0., 12., 15., 16.])
    """

    bins_: list[ColumnBins]

    def __init__(
        self,
        *,
        ranges: Any = None,
        categories: Any = None,
        bins: int = EQUAL,
        encode: str = "smooth",
        components: int = 16,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.ranges, self.categories, self.bins, self.encode = ranges, categories, bins, encode
        self.components, self.epsilon, self.delta = components, epsilon, delta
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _plan(self, features: int) -> FoundRanges:
        return FoundRanges.for_guarantee(
            self._goal(), weights=(1,) * features, cuts=BINNED, unit=self._unit(), rows_per_person=self._rows()
        )

    def guarantee(self, n_samples: int | None = None, n_features: int = 1) -> Guarantee:
        """What `fit` will promise if the range of at least one column must be found. Otherwise it spends nothing."""
        return super().guarantee(n_samples, n_features)

    def fit(self, X: Data, y: Data = None) -> Self:
        """Store the declared bins. If the ranges of some columns are not declared, one release finds them."""
        if self.encode not in ENCODINGS:
            raise InvalidArgument('encode must be "smooth", "onehot" or "codes".', code="not-an-option")
        parts = check_count(self.bins, "bins")
        check_count(self.components, "components")
        columns = Columns.of(X, declared_width(self.ranges, self.categories))
        declared = declare(columns, self.ranges, self.categories)
        unknown = [place for place, one in enumerate(declared) if one.is_auto]
        found: dict[int, Any] = {}
        if hasattr(self, "release_"):  # of an earlier fit
            del self.release_
        if unknown:
            plan = self._plan(len(unknown))
            self.release_ = self._release(
                lambda: columns.unbounded(unknown, lambda ranges: ranges),
                plan,
                self._promised(plan),
                f"Bins of {len(unknown)} columns",
                (len(unknown), [declared[place].name for place in unknown]),
            )
            found = dict(zip(unknown, self.release_.value["ranges"], strict=True))
        self.bins_ = [bins_for(one, found.get(place), parts) for place, one in enumerate(declared)]
        keep_columns(self, len(columns), None if columns.names is None else list(columns.names))
        return self

    def transform(self, X: Data) -> Floats:
        """The features of the bins of each row. Each row is read by itself."""
        check_is_fitted(self)
        columns = Columns.of(X, self.n_features_in_)
        if len(columns) != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise InvalidArgument(f"X has {len(columns)} features, but {expected}.", code="wrong-shape")
        tables = self._tables()
        made = np.empty((columns.rows, sum(1 if table is None else table.shape[1] for table in tables)))
        start = 0
        for place, (one, table) in enumerate(zip(self.bins_, tables, strict=True)):
            codes = one.codes(columns, place)
            width = 1 if table is None else table.shape[1]
            made[:, start : start + width] = codes[:, None] if table is None else table[codes]
            start += width
        return made

    def _tables(self) -> list[Floats | None]:
        """The features of the bins of each column. None for the number of the bin itself."""
        if self.encode == "codes":
            return [None] * len(self.bins_)
        scale = 1 / np.sqrt(len(self.bins_))
        if self.encode == "onehot":
            return [np.eye(one.bins) * scale for one in self.bins_]
        return [_fewer(one.features(), int(self.components)) * scale for one in self.bins_]

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """The name of the column, with its bin or the number of the component."""
        names = feature_names_of(self, input_features)
        if self.encode == "codes":
            return names
        listed = []
        for name, one, table in zip(names, self.bins_, self._tables(), strict=True):
            parts = one.labels() if self.encode == "onehot" else [str(k) for k in range(table.shape[1])]  # type: ignore[union-attr]
            listed += [f"{name}_{part}" for part in parts]
        return np.array(listed, dtype=object)


def _fewer(features: Floats, most: int) -> Floats:
    """At most this many features, those along which the bins differ most."""
    if features.shape[1] <= most:
        return features
    _, _, axes = np.linalg.svd(features, full_matrices=False)
    return np.asarray(features @ axes[:most].T)
