"""Principal components from noisy second moments within a radius that is found first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_count, exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import AUTO, Auto, Source, finds_features, is_auto, with_ranges, within_ranges
from discreet.learn.base import check_is_fitted, fitted_table, keep_columns, keep_ranges
from discreet.learn.noisy_equations import shrunk
from discreet.learn.structure.unlabelled import Unlabelled
from discreet.ledger import Ledger
from discreet.mechanisms.learning.radius_moments import RadiusMoments
from discreet.rows.containers import Data
from discreet.rows.rounding import check_ranges, cube_norm

TransformerMixin: Any = need("sklearn.base", "learn", "discreet.learn").TransformerMixin
Floats = NDArray[np.float64]
SHARES = {"square": 19, "count": 1}
"""What Σ x xᵀ and the number of rows may cost of one release."""
CENTERED = {"square": 15, "sum": 4, "count": 1}


class PCA(TransformerMixin, Unlabelled):  # type: ignore[misc]
    """The directions in which rows vary most, computed from Σ x xᵀ with symmetric noise.

    A noisy histogram of the lengths of rows gives a radius, to which longer rows are shortened: noise grows with its
    square. Before that, rows are clipped to `feature_norm`, or their columns clamped into `feature_ranges`, a public
    (low, high) for each. If neither is declared, ranges are found privately, within the cost of the fit: `ranges_`.
    `center` is the point around which variance is measured: "declared" for the middle of the ranges (0 if there are
    none), None for 0, "private" for the mean, which is then also released. `explained_variance_` is corrected for what
    noise alone adds to the spread of the variances.
    """

    components_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats
    mean_: Floats

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        center: str | None = "declared",
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.n_components, self.epsilon, self.delta = n_components, epsilon, delta
        self.feature_norm, self.feature_ranges, self.center = feature_norm, feature_ranges, center
        self.n_samples, self.rows_per_person, self.ledger = n_samples, rows_per_person, ledger

    def _plan(self, features: int) -> Any:
        return with_ranges(self, features, lambda goal: self._moments(features, goal))

    def _moments(self, features: int, goal: Approx) -> RadiusMoments:
        if self.center not in ("declared", "private", None):
            raise InvalidArgument('center must be "declared", "private" or None.', code="not-an-option")
        shares = dict(CENTERED if self.center == "private" else SHARES)
        if self.n_samples is not None:
            check_count(self.n_samples, "n_samples")
            del shares["count"]
        norm: Any = self.feature_norm
        ranged = finds_features(self) or not is_auto(self.feature_ranges)
        return RadiusMoments.for_guarantee(
            goal,
            features=features,
            shares=shares,
            feature_norm=cube_norm(features) if ranged else check_bound(norm, "feature_norm"),
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _shaped(self, ranges: Floats) -> Floats:
        """The ranges, centered at 0 if nothing is shifted."""
        most = np.abs(ranges).max(axis=1)
        return ranges if self.center is not None else np.stack([-most, most], axis=1)

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        many = features if self.n_components is None else check_count(self.n_components, "n_components")
        if many > features:
            raise InvalidArgument(
                f"n_components must be at most the number of columns, {features}.", code="out-of-range"
            )
        declared = None if is_auto(self.feature_ranges) else check_ranges(self.feature_ranges, features)
        ranges, whole = None if declared is None else self._shaped(declared), self._plan(features)
        plan: RadiusMoments = within_ranges(whole)
        norm = plan.moments.feature_norm if ranges is None else None
        read = self._read(rows, features, self._shaped, feature_norm=norm, feature_ranges=ranges)
        asked = f"PCA of {features} features"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        found = self.release_.value.get("ranges", declared)
        keep_ranges(self, found)
        ranges = None if found is None else self._shaped(found)
        self.n_components_ = many
        keep_columns(self, features, names)
        self._take(plan, ranges)
        return self

    def _take(self, plan: RadiusMoments, ranges: Floats | None) -> None:
        """Components, computed only from what was released."""
        given, moments = self.release_.value, plan.moments
        d, norm = moments.features, float(exactly(moments.feature_norm))
        size = max(float(given["count"] if self.n_samples is None else self.n_samples), 1.0)
        square, center = np.asarray(given["square"]), np.zeros(d)
        if "sum" in given:
            center = np.asarray(given["sum"]) / size
            center = center * (norm / max(norm, float(np.linalg.norm(center))))
            square = square - size * np.outer(center, center)
        noise = float(exactly(moments.square)) * (float(given["radius"]) / norm) ** 2
        values, vectors, _ = shrunk(square, noise)
        half = np.ones(d) if ranges is None else ranges[:, 1] / 2 - ranges[:, 0] / 2
        middle = np.zeros(d) if ranges is None else ranges[:, 0] / 2 + ranges[:, 1] / 2
        covariance = (vectors * (values / size)) @ vectors.T * np.outer(half, half)
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
        signs = np.sign(vectors[np.arange(d), np.abs(vectors).argmax(axis=1)])
        many = self.n_components_
        self.components_ = (vectors * signs[:, None])[:many]
        self.explained_variance_ = values[:many]
        self.explained_variance_ratio_ = values[:many] / max(float(values.sum()), 1e-300)
        self.mean_, self.n_samples_ = middle + center * half, size

    def transform(self, X: Data) -> Floats:
        """Rows in the coordinates of the components."""
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            return np.asarray((fitted_table(self, X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Data) -> Floats:
        """Rows in their original coordinates, as far as the components describe them."""
        check_is_fitted(self)
        with np.errstate(all="ignore"):
            return np.asarray(fitted_table(self, X, self.n_components_) @ self.components_ + self.mean_)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """pca0, pca1, …"""
        check_is_fitted(self)
        return np.array([f"pca{i}" for i in range(self.n_components_)], dtype=object)
