"""Least squares from noisy second moments: one pass over the rows, one release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_count, exactly
from discreet.extras import need
from discreet.guarantees.guarantee import Approx
from discreet.learn.automatic import (
    AUTO,
    Auto,
    Source,
    finds_features,
    finds_target,
    is_auto,
    rows_in_memory,
    target_range,
    with_ranges,
    within_ranges,
)
from discreet.learn.base import (
    clip_rows,
    column_of,
    keep_columns,
    keep_ranges,
    known_table,
    numbers_of,
    refuse_other_targets,
    table_of,
    width_of,
)
from discreet.learn.linear_error import CertifiedLeastSquares, deviations_of, noise_after_centering
from discreet.learn.noisy_equations import solve_equations
from discreet.learn.streams import open_batches
from discreet.ledger import Ledger
from discreet.mechanisms.learning.moments import Moments
from discreet.rows.arrays import doubles, namespace, to_device_of
from discreet.rows.containers import Data, on_host
from discreet.rows.rounding import RoundedRows, check_ranges, cube_norm

RegressorMixin: Any = need("sklearn.base", "learn", "discreet.learn").RegressorMixin
Floats = NDArray[np.float64]
PLAIN = {"square": 1, "product": 3}
"""What each moment may cost, in shares: better Σ x·y is worth more than better Σ x xᵀ."""
CENTERED = {"square": 2, "product": 4, "sum": 2, "target": 2, "count": 1}


class LeastSquares(CertifiedLeastSquares):
    """What linear regressions from noisy moments share.

    `feature_norm` clips every row to that L2 norm. `feature_ranges`, a public (low, high) for each column, clamps the
    columns and scales them to [−1, 1] instead. Targets are clamped to ±`target_bound`, or to a pair (low, high). With
    an intercept, a small share of the cost finds the part of ±`target_bound` in which targets are. With "auto", ranges
    are found privately, within the cost of the fit: `ranges_` and `target_range_`. An intercept is not penalized. It
    needs the number of rows: `n_samples` if that is public, otherwise a private count.

    The weights minimize the expected squared error given the noise, see `noisy_equations`: with little noise they are
    ordinary least squares, with much noise they are close to 0, which is the constant model. `coef_deviation_` is how
    far noise may have moved each coefficient, one standard deviation under the priors. `error` bounds the excess risk,
    and `coefficient_error` the coefficients, without the priors. `predict` is linear, within the range of the target.
    Cells are clamped into ranges that were found, as in `fit`.
    """

    ranges_: Floats
    target_range_: tuple[float, float]

    coef_: Floats
    intercept_: float
    coef_deviation_: Floats

    # --- before fitting -------------------------------------------------------------------------------------

    def _plan(self, features: int) -> Any:
        return with_ranges(
            self,
            features,
            lambda goal: self._moments(features, goal),
            target=finds_target(self),
            narrowed=target_range(self.target_bound) if self._narrows() else None,
        )

    def _narrows(self) -> bool:
        """Whether the part of ±target_bound in which targets are is found: with an intercept, it need not be around
        0.
        """
        declared = not is_auto(self.target_bound) and not isinstance(self.target_bound, tuple | list | np.ndarray)
        return bool(self.fit_intercept) and declared

    def _finds_target(self) -> bool:
        return finds_target(self) or self._narrows()

    def _moments(self, features: int, goal: Approx) -> Moments:
        shares = dict(CENTERED if self.fit_intercept else PLAIN)
        if self.n_samples is not None:
            check_count(self.n_samples, "n_samples")
            shares.pop("count", None)
        return Moments.for_guarantee(
            goal,
            features=features,
            shares=shares,
            feature_norm=self._norm(features),
            target_bound=self._bound(),
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def _norm(self, features: int) -> Number:
        if finds_features(self) or not is_auto(self.feature_ranges):
            return cube_norm(features)
        return check_bound(self.feature_norm, "feature_norm")

    def _bound(self) -> Number:
        """The largest target: as it is declared, or 1 if targets are scaled by their range."""
        return 1 if self._scales_target() else check_bound(self.target_bound, "target_bound")

    def _scales_target(self) -> bool:
        """Whether targets are scaled from a range to [−1, 1]."""
        return self._finds_target() or isinstance(self.target_bound, tuple | list | np.ndarray)

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: Data) -> Self:
        """Learn from rows of features and their targets: one release, charged before the rows are read."""
        (table, names), column = table_of(X, width_of(self.feature_ranges)), column_of(y, type(self).__name__)
        refuse_other_targets(y, type(self).__name__)
        if len(column) != table.shape[0]:
            raise InvalidArgument("There must be one target for each row.", code="wrong-shape")

        def rounded(scaled: Callable[[Any], Any] | None, **bounds: Any) -> RoundedRows:
            return RoundedRows(table, column if scaled is None else scaled(column), **bounds)

        def summed(work: Callable[[Any], Any]) -> Any:
            return rows_in_memory(table, numbers_of(column))(work)

        return self._fitted(int(table.shape[1]), names, Source(rounded, summed))

    def fit_batches(
        self, batches: Data, *, features: int | Sequence[str] | None = None, target: str | None = None
    ) -> Self:
        """Learn from rows that do not fit in memory, in one pass: one release, charged before the first batch is read.

        The arguments are those of `LogisticRegression.fit_batches`, including a Spark DataFrame.
        """
        known = open_batches(batches, features, target, self.feature_ranges)

        def rounded(scaled: Callable[[Any], Any] | None, **bounds: Any) -> RoundedRows:
            return known.rounded(numbers_of if scaled is None else scaled, **bounds)

        return self._fitted(known.features, known.names, Source(rounded, known.summing(numbers_of)))

    def _fitted(self, features: int, names: list[str] | None, rows: Source) -> Self:
        declared = None if is_auto(self.feature_ranges) else check_ranges(self.feature_ranges, features)
        goals = None if finds_target(self) else target_range(self.target_bound)
        self._ridge()
        whole = self._plan(features)
        plan: Moments = within_ranges(whole)

        def within(ranges: Floats | None, between: tuple[float, float]) -> RoundedRows:
            return rows(
                partial(_scaled, between=between) if self._scales_target() else None,
                feature_norm=plan.feature_norm if ranges is None else None,
                feature_ranges=ranges,
                target_bound=plan.target_bound,
            )

        if whole is plan:
            assert goals is not None
            bounded = within(self._shaped(declared), self._between(goals))
            read: Callable[[], Any] = lambda: bounded  # noqa: E731
        else:
            found = {"finds_features": finds_features(self), "finds_target": self._finds_target()}

            def after(ranges: Floats) -> RoundedRows:
                return within(*self._found(ranges, declared, goals))

            read = lambda: rows.unbounded(features, after, **found)  # noqa: E731
        asked = f"{type(self).__name__} of {features} features"
        self.release_ = self._release(read, whole, self._promised(whole), asked, (features, names))
        keep_columns(self, features, names)
        ranges, self.target_range_ = self._found(self.release_.value.get("ranges"), declared, goals)
        keep_ranges(self, ranges)
        self._take(plan, ranges)
        return self

    def _found(
        self, found: Floats | None, declared: Floats | None, goals: tuple[float, float] | None
    ) -> tuple[Floats | None, tuple[float, float]]:
        """The ranges of the features, if there are any, and that of the target: as declared, or as found."""
        more = self._finds_target()
        features = found[: len(found) - more] if found is not None and finds_features(self) else declared
        between = (float(found[-1, 0]), float(found[-1, 1])) if found is not None and more else goals
        assert between is not None
        return self._shaped(features), self._between(between)

    def _shaped(self, ranges: Floats | None) -> Floats | None:
        """The ranges, centered at 0 if there is no intercept, so that nothing is shifted."""
        if ranges is None or self.fit_intercept:
            return ranges
        most = np.abs(ranges).max(axis=1)
        return np.stack([-most, most], axis=1)

    def _between(self, goals: tuple[float, float]) -> tuple[float, float]:
        """The range of the target, centered at 0 if there is no intercept."""
        most = max(abs(goals[0]), abs(goals[1]))
        return goals if self.fit_intercept else (-most, most)

    def _take(self, plan: Moments, ranges: Floats | None) -> None:
        """Coefficients, computed only from what was released."""
        d, noise, given = plan.features, deviations_of(plan), self.release_.value
        norm, bound = float(exactly(plan.feature_norm)), float(exactly(plan.target_bound))
        square, product = np.asarray(given["square"]), np.asarray(given["product"])
        center, level = np.zeros(d), 0.0
        if self.fit_intercept:
            size = max(self._size(), 1.0)
            center, level = np.asarray(given["sum"]) / size, float(np.clip(given["target"] / size, -bound, bound))
            center = center * (norm / max(norm, float(np.linalg.norm(center))))
            square, product = square - size * np.outer(center, center), product - size * level * center
            noise = noise_after_centering(noise, d, float(center @ center), level)
        found = solve_equations(square, product, noise["square"], noise["product"], bound / norm, self._ridge())
        half = np.ones(d) if ranges is None else ranges[:, 1] / 2 - ranges[:, 0] / 2
        middle = np.zeros(d) if ranges is None else ranges[:, 0] / 2 + ranges[:, 1] / 2
        self._weights = np.concatenate([[level - float(center @ found.weights)], found.weights])
        base, reach = self._target_scale()
        self._widest = reach / float(half.min())
        self.coef_ = found.weights * reach / half
        self.coef_deviation_ = np.sqrt(np.maximum(np.diag(found.covariance), 0.0)) * reach / half
        shifted = base + self._weights[0] * reach - self.coef_ @ middle
        self.intercept_ = float(shifted) if self.fit_intercept else 0.0

    # --- after fitting --------------------------------------------------------------------------------------

    def predict(self, X: Data) -> Any:
        """The prediction for each row."""
        table = known_table(self, X)
        rows = doubles(table)
        if finds_features(self):
            xp, ranges = namespace(rows), to_device_of(self.ranges_, table)
            rows = xp.minimum(xp.maximum(rows, ranges[:, 0]), ranges[:, 1])
        elif not hasattr(self, "ranges_"):
            rows = clip_rows(rows, self.feature_norm)
        scores = on_host(rows @ to_device_of(self.coef_, table) + self.intercept_)
        return np.clip(scores, *self.target_range_)


def _scaled(targets: Any, between: tuple[float, float]) -> Floats:
    """Targets of a range as numbers in [−1, 1]."""
    low, high = between
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        return (np.clip(numbers_of(targets), low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2)


class LinearRegression(RegressorMixin, LeastSquares):  # type: ignore[misc]
    """Ordinary least squares."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        feature_norm: Number | Auto = AUTO,
        target_bound: Number | tuple[Number, Number] | Auto = AUTO,
        fit_intercept: bool = True,
        feature_ranges: ArrayLike | Auto | None = AUTO,
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
        feature_norm: Number | Auto = AUTO,
        target_bound: Number | tuple[Number, Number] | Auto = AUTO,
        fit_intercept: bool = True,
        feature_ranges: ArrayLike | Auto | None = AUTO,
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
