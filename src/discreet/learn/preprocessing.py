"""Preprocessing for pipelines: from public declarations, which cost nothing, or from a release of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import AUTO, Auto, Source, finds_features, with_ranges, within_ranges
from discreet.learn.base import (
    BaseEstimator,
    check_is_fitted,
    declared_ranges,
    feature_names_of,
    fitted_table,
    keep_columns,
    table_of,
    width_of,
)
from discreet.learn.structure.unlabelled import Unlabelled
from discreet.ledger import Ledger
from discreet.mechanisms.learning.group_moments import GroupMoments
from discreet.rows import cell_columns, names_of, place_of
from discreet.rows.containers import Data

TransformerMixin: Any = need("sklearn.base", "learn", "discreet.learn").TransformerMixin
Floats = NDArray[np.float64]
SHARES = {"count": 1, "sum": 5, "square": 4}
"""What the number of rows, the sums and the sums of squares may cost of one release."""


def spreads(
    moments: dict[str, Floats], plan: GroupMoments, size: float | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sizes, means and variances of columns in [−1, 1] for each group, and the noise deviation of a variance.

    A size is at least 1, a mean is inside the range, and a variance is at least what noise alone would produce. These
    rules use only released numbers.
    """
    sizes = np.full(plan.groups, float(size)) if size is not None else np.asarray(moments["count"])
    sizes = np.maximum(sizes, 1.0)
    means = np.clip(moments["sum"] / sizes[:, None], -1.0, 1.0)
    raw = moments["square"] / sizes[:, None] + 0.5 - means**2
    count = 0.0 if plan.count is None else float(exactly(plan.count))
    square, total = float(exactly(plan.square)), float(exactly(plan.sum))
    noise = np.sqrt(square**2 + (2 * means * total) ** 2 + ((raw + means**2 - 0.5) * count) ** 2) / sizes[:, None]
    return sizes, means, np.minimum(np.maximum(raw, np.minimum(noise, 1 / 3)), 1.0), noise


class StandardScaler(TransformerMixin, Unlabelled):  # type: ignore[misc]
    """Scales columns to mean 0 and variance 1, with means and variances that are released with noise.

    `feature_ranges`, a public (low, high) for each column, clamp the training cells. With "auto" they are found
    privately, within the cost of the fit: `ranges_`. A variance below what noise alone
    may produce is raised to that level. A variance that is hidden by noise is replaced by that of values spread over
    the whole range, so a column is never divided by a variance of almost 0. `n_samples_` is the number of rows, as
    declared by `n_samples` or as counted with noise.
    """

    mean_: Floats
    var_: Floats
    scale_: Floats

    def __init__(
        self,
        *,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        with_mean: bool = True,
        with_std: bool = True,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.feature_ranges, self.epsilon, self.delta = feature_ranges, epsilon, delta
        self.with_mean, self.with_std, self.n_samples = with_mean, with_std, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _plan(self, features: int) -> Any:
        return with_ranges(self, features, lambda goal: self._moments(features, goal))

    def _moments(self, features: int, goal: Approx) -> GroupMoments:
        shares = dict(SHARES)
        if self.n_samples is not None:
            check_count(self.n_samples, "n_samples")
            del shares["count"]
        return GroupMoments.for_guarantee(
            goal, features=features, shares=shares, unit=self._unit(), rows_per_person=self._rows()
        )

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        declared = None if finds_features(self) else declared_ranges(self.feature_ranges, features)
        whole = self._plan(features)
        plan: GroupMoments = within_ranges(whole)
        read = self._read(rows, features, np.asarray, feature_ranges=declared)
        asked = f"StandardScaler of {features} features"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        self.ranges_ = ranges = np.asarray(self.release_.value.get("ranges", declared))
        sizes, means, variances, _ = spreads(self.release_.value, plan, self.n_samples)
        half = ranges[:, 1] / 2 - ranges[:, 0] / 2
        self.mean_ = ranges[:, 0] / 2 + ranges[:, 1] / 2 + means[0] * half
        self.var_, self.scale_ = variances[0] * half**2, np.sqrt(variances[0]) * half
        self.n_samples_ = float(sizes[0])
        keep_columns(self, len(ranges), names)
        return self

    @np.errstate(all="ignore")  # a warning would reveal something about a cell
    def transform(self, X: Data) -> Floats:
        """Columns minus their means, divided by their deviations. Cells are not clamped."""
        table = fitted_table(self, X)
        return np.asarray((table - (self.mean_ if self.with_mean else 0.0)) / (self.scale_ if self.with_std else 1.0))

    @np.errstate(all="ignore")
    def inverse_transform(self, X: Data) -> Floats:
        """The columns in their original units."""
        table = fitted_table(self, X)
        return np.asarray(table * (self.scale_ if self.with_std else 1.0) + (self.mean_ if self.with_mean else 0.0))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """The names of the columns, as given."""
        return feature_names_of(self, input_features)


class RangeScaler(TransformerMixin, Closed, BaseEstimator):  # type: ignore[misc]
    """Scales columns from their public ranges to [−1, 1]. Cells outside are clamped. Reads no data, and costs nothing.

    NaN stays NaN, so that the next estimator leaves the row out.
    """

    def __init__(self, *, feature_ranges: ArrayLike | None = None) -> None:
        self.feature_ranges = feature_ranges

    def fit(self, X: Data, y: Data = None) -> Self:
        """Store the declared ranges."""
        table, names = table_of(X, width_of(self.feature_ranges))
        ranges = declared_ranges(self.feature_ranges, int(table.shape[1]))
        self.center_ = ranges[:, 0] / 2 + ranges[:, 1] / 2
        self.half_ = ranges[:, 1] / 2 - ranges[:, 0] / 2
        keep_columns(self, len(ranges), names)
        return self

    @np.errstate(all="ignore")
    def transform(self, X: Data) -> Floats:
        """Columns within [−1, 1]."""
        table = fitted_table(self, X)
        low, high = self.center_ - self.half_, self.center_ + self.half_
        return np.clip((np.clip(table, low, high) - self.center_) / self.half_, -1.0, 1.0)

    @np.errstate(all="ignore")
    def inverse_transform(self, X: Data) -> Floats:
        """The columns in their own units."""
        return np.asarray(fitted_table(self, X) * self.half_ + self.center_)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """The names of the columns, as given."""
        return feature_names_of(self, input_features)


class OneHot(TransformerMixin, Closed, BaseEstimator):  # type: ignore[misc]
    """A column of 0 and 1 for each of the declared `categories` of each column. Other values become zeros.

    The categories are public: none is read from the data, so nothing is spent and no rare value is revealed.
    """

    def __init__(self, *, categories: Any = None) -> None:
        self.categories = categories

    def fit(self, X: Data, y: Data = None) -> Self:
        """Store the declared categories."""
        listed = self.categories
        if not isinstance(listed, list | tuple) or not listed or any(isinstance(one, str) for one in listed):
            raise InvalidArgument(
                'categories must be a list with one list for each column: [["a", "b"], [1, 2, 3]].', code="wrong-type"
            )
        self.categories_ = [list(one) for one in listed]
        if any(len(set(one)) != len(one) or not one for one in self.categories_):
            raise InvalidArgument(
                "Each column needs at least one category, and all of them must be different.", code="duplicates"
            )
        cell_columns(X, len(self.categories_))
        keep_columns(self, len(self.categories_), names_of(X))
        return self

    def transform(self, X: Data) -> Floats:
        """Zeros and ones, the columns of one feature after another."""
        check_is_fitted(self)
        parts = []
        for column, choices in zip(cell_columns(X, self.n_features_in_), self.categories_, strict=True):
            places = {choice: place for place, choice in enumerate(choices)}
            found = np.array([place_of(cell, places) for cell in column], dtype=np.int64)
            parts.append((found[:, None] == np.arange(len(choices))).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """column_category for each column of zeros and ones."""
        names = feature_names_of(self, input_features)
        return np.array([f"{n}_{c}" for n, part in zip(names, self.categories_, strict=True) for c in part], object)
