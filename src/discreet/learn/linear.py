"""Least squares from noisy second moments: one pass over the rows, one release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_count, exactly
from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.learn.base import (
    Planned,
    check_is_fitted,
    clip_rows,
    column_of,
    keep_columns,
    known_table,
    numbers_of,
    table_of,
    width_of,
)
from discreet.learn.noisy_equations import largest_eigenvalue, longest_noise, solve_equations
from discreet.learn.streams import open_batches
from discreet.ledger import Ledger
from discreet.mechanisms.learning.moments import PARTS, Moments
from discreet.rows.arrays import doubles, on_host, to_device_of
from discreet.rows.containers import Data
from discreet.rows.rounding import RoundedRows, check_ranges, cube_norm

RegressorMixin: Any = need("sklearn.base", "learn", "discreet.learn").RegressorMixin
Floats = NDArray[np.float64]
PLAIN = {"square": 1, "product": 3}
"""What each moment may cost, in shares: better Σ x·y is worth more than better Σ x xᵀ."""
CENTERED = {"square": 2, "product": 4, "sum": 2, "target": 2, "count": 1}


class LeastSquares(Planned):
    """What linear regressions from noisy moments share.

    `feature_norm` clips every row to that L2 norm. `feature_ranges`, a public (low, high) for each column, clamps the
    columns and scales them to [−1, 1] instead. Targets are clamped to ±`target_bound`. An intercept is not penalized.
    It needs the number of rows: `n_samples` if that is public, otherwise a private count.

    The weights minimize the expected squared error given the noise, see `noisy_equations`: with little noise they are
    ordinary least squares, with much noise they are close to 0. `coef_deviation_` is how far noise may have moved each
    coefficient, one standard deviation under the priors. `error` is a bound that holds without the priors. `predict` is
    linear, even if rows were clipped in `fit`.
    """

    coef_: Floats
    intercept_: float
    coef_deviation_: Floats

    def _ridge(self) -> float:
        return 0.0

    # --- before fitting -------------------------------------------------------------------------------------

    def _plan(self, features: int) -> Moments:
        shares = dict(CENTERED if self.fit_intercept else PLAIN)
        if self.n_samples is not None:
            check_count(self.n_samples, "n_samples")
            shares.pop("count", None)
        return Moments.for_guarantee(
            self._goal(),
            features=features,
            shares=shares,
            feature_norm=self._norm(features),
            target_bound=check_bound(self.target_bound, "target_bound"),
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _norm(self, features: int) -> Number:
        return (
            cube_norm(features) if self.feature_ranges is not None else check_bound(self.feature_norm, "feature_norm")
        )

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        (table, names), column = table_of(X, width_of(self.feature_ranges)), column_of(y, type(self).__name__)
        return self._fitted(int(table.shape[1]), names, lambda **bounds: RoundedRows(table, column, **bounds))

    def fit_batches(
        self, batches: Data, *, features: int | Sequence[str] | None = None, target: str | None = None
    ) -> Self:
        """Learn from rows that do not fit in memory, in one pass: one release, charged before the first batch is read.

        The arguments are those of `LogisticRegression.fit_batches`, including a Spark DataFrame.
        """
        known = open_batches(batches, features, target, self.feature_ranges)
        return self._fitted(known.features, known.names, lambda **bounds: known.rounded(numbers_of, **bounds))

    def _fitted(self, features: int, names: list[str] | None, rounded: Callable[..., RoundedRows]) -> Self:
        ranges = self._ranges(features)
        self._ridge()
        plan = self._plan(features)
        rows = rounded(
            feature_norm=self._norm(features) if ranges is None else None,
            feature_ranges=ranges,
            target_bound=plan.target_bound,
        )
        asked = f"{type(self).__name__} of {features} features"
        self.release_ = self._release(lambda: rows, plan, self._promised(plan), asked)
        keep_columns(self, features, names)
        self._take(plan, ranges)
        return self

    def _ranges(self, features: int) -> Floats | None:
        """The declared ranges. They are centered at 0 if there is no intercept, so that nothing is shifted."""
        if self.feature_ranges is None:
            return None
        ranges = check_ranges(self.feature_ranges, features)
        most = np.abs(ranges).max(axis=1)
        return ranges if self.fit_intercept else np.stack([-most, most], axis=1)

    def _take(self, plan: Moments, ranges: Floats | None) -> None:
        """Coefficients, computed only from what was released."""
        d, noise, given = plan.features, _deviations(plan), self.release_.value
        norm, bound = float(exactly(plan.feature_norm)), float(exactly(plan.target_bound))
        square, product = np.asarray(given["square"]), np.asarray(given["product"])
        center, level = np.zeros(d), 0.0
        if self.fit_intercept:
            size = max(self._size(), 1.0)
            center, level = np.asarray(given["sum"]) / size, float(np.clip(given["target"] / size, -bound, bound))
            center = center * (norm / max(norm, float(np.linalg.norm(center))))
            square, product = square - size * np.outer(center, center), product - size * level * center
            noise = _noise_after_centering(noise, d, float(center @ center), level)
        found = solve_equations(square, product, noise["square"], noise["product"], bound / norm, self._ridge())
        half = np.ones(d) if ranges is None else ranges[:, 1] / 2 - ranges[:, 0] / 2
        middle = np.zeros(d) if ranges is None else ranges[:, 0] / 2 + ranges[:, 1] / 2
        self._weights = np.concatenate([[level - float(center @ found.weights)], found.weights])
        self._narrowest = float(half.min())
        self.coef_ = found.weights / half
        self.coef_deviation_ = np.sqrt(np.maximum(np.diag(found.covariance), 0.0)) / half
        self.intercept_ = float(self._weights[0] - self.coef_ @ middle) if self.fit_intercept else 0.0

    def _size(self) -> float:
        return float(self.release_.value["count"] if self.n_samples is None else self.n_samples)

    # --- after fitting --------------------------------------------------------------------------------------

    def predict(self, X: Data) -> Any:
        """The prediction for each row."""
        table = known_table(self, X)
        rows = doubles(table) if self.feature_ranges is not None else clip_rows(doubles(table), self.feature_norm)
        return on_host(rows @ to_device_of(self.coef_, table) + self.intercept_)

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How far all coefficients together may be, in the L2 norm, from those that the same clipped rows give without
        noise.

        Whatever w is, A(w − w*) = (A~w − b~) − (E·w − e) for the noise E and e of A~ and b~, whose size is bounded
        with this confidence: so the length of w − w* is at most that of the right side over A's least eigenvalue.
        """
        check_is_fitted(self)
        sure = check_confidence(confidence)
        square, product, weights, wrong_square, wrong_product = self._equations(1 - sure)
        least = float(np.linalg.eigvalsh(square)[0]) - wrong_square
        if least <= 0:
            why = "the noise is as large as some direction's part of the features: more rows, or a larger epsilon"
            return Accuracy(amount=None, confidence=sure, of="norm", reason=why)
        gap = float(np.linalg.norm(square @ weights - product))
        amount = (gap + wrong_square * float(np.linalg.norm(weights)) + wrong_product) / least
        return Accuracy(amount=amount / self._narrowest * (1 + 1e-9), confidence=sure, of="norm")

    def _equations(self, miss: float) -> tuple[Floats, Floats, Floats, float, float]:
        """A, b and w of the released equations, with the intercept first, and the errors of A and b."""
        plan: Any = self.release_._mechanism
        given, noise, d = self.release_.value, _deviations(plan), plan.features
        square, product = np.asarray(given["square"]) + self._ridge() * np.eye(d), np.asarray(given["product"])
        each = miss / len(given)
        wrong_square = largest_eigenvalue(d, noise["square"], each)
        wrong_product = longest_noise(d, noise["product"], each)
        if not self.fit_intercept:
            return square, product, self._weights[1:], wrong_square, wrong_product
        constant = float(exactly(plan.feature_norm))  # the feature of an intercept, as long as a row
        edge = constant * np.asarray(given["sum"])
        square = np.block([[np.array([[self._size() * constant**2]]), edge[None, :]], [edge[:, None], square]])
        product = np.concatenate([[constant * given["target"]], product])
        weights = self._weights / np.concatenate([[constant], np.ones(d)])
        wrong_count = longest_noise(1, noise.get("count", 0.0), each) * constant**2
        wrong_square = max(wrong_square, wrong_count) + constant * longest_noise(d, noise["sum"], each)
        wrong_product = math.hypot(wrong_product, constant * longest_noise(1, noise["target"], each))
        return square, product, weights, wrong_square, wrong_product


def _deviations(plan: Moments) -> dict[str, float]:
    return {part: float(exactly(getattr(plan, part))) for part in PARTS if getattr(plan, part) is not None}


def _noise_after_centering(noise: dict[str, float], features: int, center: float, level: float) -> dict[str, float]:
    """The noise that remains in the moments around noisy means. `center` is the squared length of the mean row."""
    count = noise.get("count", 0.0)
    square = noise["square"] ** 2 + 4 * center * noise["sum"] ** 2 / features
    square += 2 * (count * center) ** 2 / (features * (features + 1))
    product = noise["product"] ** 2 + (level * noise["sum"]) ** 2
    product += center * (noise["target"] ** 2 + (level * count) ** 2) / features
    return {"square": math.sqrt(square), "product": math.sqrt(product)}


class LinearRegression(RegressorMixin, LeastSquares):  # type: ignore[misc]
    """Ordinary least squares."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_norm: Number = 1.0,
        target_bound: Number = 1.0,
        fit_intercept: bool = True,
        feature_ranges: ArrayLike | None = None,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon, self.delta, self.feature_norm, self.target_bound = epsilon, delta, feature_norm, target_bound
        self.fit_intercept, self.feature_ranges, self.n_samples = fit_intercept, feature_ranges, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger


class Ridge(RegressorMixin, LeastSquares):  # type: ignore[misc]
    """Least squares with `alpha` times the squared length of the coefficients added to the squared error.

    With `feature_ranges`, the coefficients that are penalized are those of the columns as scaled to [−1, 1].
    """

    def __init__(
        self,
        *,
        alpha: Number = 1.0,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_norm: Number = 1.0,
        target_bound: Number = 1.0,
        fit_intercept: bool = True,
        feature_ranges: ArrayLike | None = None,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.alpha = alpha
        self.epsilon, self.delta, self.feature_norm, self.target_bound = epsilon, delta, feature_norm, target_bound
        self.fit_intercept, self.feature_ranges, self.n_samples = fit_intercept, feature_ranges, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def _ridge(self) -> float:
        alpha = exactly(self.alpha, "alpha")
        if alpha < 0:
            raise InvalidArgument("alpha must be at least 0.", code="out-of-range")
        return float(alpha)
