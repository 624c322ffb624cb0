"""Rows that are curves: their mean, how they vary, what follows from them, and noisy copies of each.

A curve is a row of values at public points. It becomes its coefficients in finitely many cosines, orthonormal for the
mean over the points, and is shortened to a declared norm: its root mean square. From there on curves are vectors, sums
of them are exact, and what is released is a function again: it has a value at every point between the first and the
last. Source: [T.3.4], [T.4.3]; Mirshani-Reimherr-Slavković 2019.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.extras import need
from discreet.functions.cosines import ALL, UP, Cosines, CurveRows, cosines_for
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.learn.base import Private, column_of, shortened, table_of
from discreet.learn.decomposition import PCA
from discreet.learn.linear import LeastSquares
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.moments import Moments
from discreet.queries.arrays import on_host
from discreet.queries.sensitivity import Sensitivity
from discreet.rational import Number, check_bound, check_count, exactly, sqrt_up

RegressorMixin: Any = need("sklearn.base", "learn", "discreet.functions.curves").RegressorMixin
check_is_fitted: Any = need("sklearn.utils.validation", "learn", "discreet.functions.curves").check_is_fitted
Floats = NDArray[np.float64]
_DECAYS = np.arange(0.0, 3.25, 0.5)
_SIZES = np.linspace(-18.0, 4.0, 45)


class _OfCurves(Private):
    """What all that is learned from curves shares: the points, the functions, the norm."""

    basis_: Cosines

    def guarantee(self, n_samples: int | None = None, n_features: int | None = None) -> Guarantee:
        """What one call of `fit` will promise; nothing is spent. `n_features` is the number of points, if none are
        declared.
        """
        plan = self._plan(self._basis(n_features).size)
        return plan.guarantee(plan.sensitivity(self._unit(), self._rows()))  # type: ignore[no-any-return]

    def _basis(self, columns: int | None) -> Cosines:
        check_bound(self.curve_norm, "curve_norm")
        return cosines_for(self.points, self.basis, None if columns is None else check_count(columns, "n_features"))

    def _learn(self, curves: Any, targets: Any = None) -> Moments:
        """The moments of the coefficients: one release, charged before the curves are read."""
        table, _ = table_of(curves)
        basis = self._basis(int(table.shape[1]))
        plan: Moments = self._plan(basis.size)
        rows = CurveRows(table, targets, basis=basis, curve_norm=plan.feature_norm, target_bound=plan.target_bound)
        promised = plan.guarantee(plan.sensitivity(self._unit(), self._rows()))
        asked = f"{type(self).__name__} of curves at {len(basis.points)} points"
        self.release_ = self._release(lambda: rows, plan, promised, asked)
        self.basis_, self.n_features_in_ = basis, len(basis.points)
        return plan

    def _seen(self, curves: Any) -> Floats:
        """Coefficients of curves that are not learned from."""
        check_is_fitted(self)
        table, _ = table_of(curves)
        if table.shape[1] != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise InvalidArgument(f"X has {table.shape[1]} features, but {expected}.")
        return self.basis_.coefficients(on_host(table))

    def at(self, where: Any) -> Floats:
        """What was learned, at any places from the first point to the last: a curve, or one curve a row."""
        check_is_fitted(self)
        return self._values(self._curves, where)

    def _values(self, coefficients: Floats, where: Any) -> Floats:
        """Functions with these coefficients, at the places given; the same wherever else is asked for."""
        found = np.zeros((*coefficients.shape[:-1], np.size(where)))
        for one, function in zip(np.moveaxis(coefficients, -1, 0), self.basis_(where).T, strict=True):
            found += np.multiply.outer(one, function)  # in this order: a matrix product's depends on its shape
        return found.reshape(coefficients.shape[:-1] + np.shape(where))


# --- the mean -------------------------------------------------------------------------------------------------


class MeanCurve(_OfCurves):
    """The mean of curves, a function: `model(x)` for any x from the first point to the last.

    `points` are where the curves are known (evenly from 0 to 1 unless given); `curve_norm` is the longest that a curve
    may be, as a root mean square over the points; longer ones are shortened, and one with a value that is no finite
    number is left out. `basis` is how many cosines make a curve: "all" keeps every value, fewer smooth it and leave
    less noise. The number of curves is `n_samples` where it is public (those left out then count as 0), else counted.

    `damp` draws each noisy coefficient toward 0 by what is known of its noise, for the least expected error when the
    coefficients of higher frequencies tend to be smaller: post-processing, at no cost. `mean_` is the curve at the
    points, and `deviation_` how far noise may have moved it there, one standard deviation as that tendency sees it;
    `error` and `band` hold whatever is true.

    >>> MeanCurve(curve_norm=2, basis=5, epsilon=1, delta=1e-6).guarantee(n_features=24).delta_at(epsilon=1) <= 1e-6
    True
    """

    mean_: Floats
    deviation_: Floats

    def __init__(
        self,
        *,
        points: Any = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        damp: bool = True,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Any = None,
    ) -> None:
        self.points, self.curve_norm, self.basis, self.epsilon, self.delta = points, curve_norm, basis, epsilon, delta
        self.damp, self.n_samples, self.rows_per_person, self.ledger = damp, n_samples, rows_per_person, ledger

    def _plan(self, features: int) -> Moments:
        """Noise for Σ x and, unless it is public, for the number of curves.

        The mean's noise is that of `features` coefficients and, once, of the count times a mean as long as 1 curve: in
        all least with shares √features to 1. A replaced curve moves the count only where the sum moves by half as much,
        so that three times the sum's share is free.
        """
        shares: dict[str, Number] = {"sum": math.sqrt(features), "count": 1}
        if self._unit().neighbors == "replace":
            shares = {"sum": 1, "count": 3}
        if self.n_samples is not None:
            check_count(self.n_samples, "n_samples")
            del shares["count"]
        return Moments.for_guarantee(
            self._goal(),
            features=features,
            shares=shares,
            feature_norm=self.curve_norm,
            unit=self._unit(),
            rows_per_person=self._rows(),
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the mean of the curves: one release, charged before they are read."""
        plan, given = self._learn(X), self.release_.value
        self.n_samples_ = max(float(given["count"] if self.n_samples is None else self.n_samples), 1.0)
        self._noisy = np.asarray(given["sum"]) / self.n_samples_
        self._noise, self._count_noise = float(exactly(plan.sum or 0)), float(exactly(plan.count or 0))
        spread = self._noise**2 + (self._count_noise * float(np.linalg.norm(self._noisy))) ** 2 / plan.features
        noise, norm = math.sqrt(spread) / self.n_samples_, float(exactly(self.curve_norm))
        found, variances = self._noisy, np.full(plan.features, noise**2)
        if self.damp:
            found, variances = damped(self._noisy, noise, norm)
        self._curves = found * (norm / max(norm, float(np.linalg.norm(found))))  # no mean is longer than a curve
        self.mean_ = self.basis_.values @ self._curves
        self.deviation_ = np.sqrt(self.basis_.values**2 @ variances)
        return self

    def __call__(self, where: Any) -> Floats:
        """The mean curve at any places from the first point to the last."""
        return self.at(where)

    def band(self, confidence: float = 0.95, at: Any = None, *, everywhere: bool = True) -> tuple[Floats, Floats]:
        """The lowest and the highest that the mean of the clipped curves may be at these places, by default the points.

        It holds `everywhere` at once, between the points too, or else for one place that is chosen beforehand. It is
        about the noisy curve before damping, widened where `mean_` runs outside; infinite if too few were counted.
        """
        check_is_fitted(self)
        where = np.asarray(self.basis_.points if at is None else at, dtype=np.float64)
        middle, width = self._reach(where.ravel(), 1 - check_confidence(confidence), everywhere)
        own = self._values(self._curves, where.ravel())
        low, high = np.minimum(middle - width, own), np.maximum(middle + width, own)
        return low.reshape(where.shape), high.reshape(where.shape)

    def error(self, confidence: float = 0.95, of: str = "every value") -> Accuracy:
        """How far it may be from the mean of the curves as they were clipped and, with fewer cosines, smoothed.

        "every value" bounds it everywhere at once, "value" at one place that is chosen beforehand, "norm" the root mean
        square over the points.
        """
        check_is_fitted(self)
        sure = check_confidence(confidence)
        if _check_kind(of) == "norm":
            amount = self._norm_error(1 - sure)
        else:
            middle, width = self._reach(self.basis_.fine, 1 - sure, of == "every value")
            moved = np.abs(self._values(self._curves, self.basis_.fine) - middle)
            amount = float((moved + width).max()) * UP
        if not math.isfinite(amount):
            why = "the noise is as large as the number of curves: more of them, or a larger epsilon"
            return Accuracy(amount=None, confidence=sure, of=of, reason=why)
        return Accuracy(amount=amount, confidence=sure, of=of)

    def _reach(self, where: Floats, miss: float, everywhere: bool) -> tuple[Floats, Floats]:
        """The middle of the band and half its width, by Fieller's theorem.

        With S + e and n + c released, (n + c)·((S + e)/(n + c) − S/n) = e − c·S/n: a Gaussian function, for the true
        mean S/n that the band holds. It is e's by a linear map of the coefficients and c: `faster` bounds its turns.
        """
        noise, count, size = self._noise, self._count_noise, self.n_samples_
        faster = math.hypot(1, count * float(exactly(self.curve_norm)) / noise)
        many = self.basis_.deviations(miss, everywhere=everywhere, faster=faster)
        middle, left = self._values(self._noisy, where), size**2 - (many * count) ** 2
        if left <= 0 or (count and size <= 1):
            return middle, np.full(len(where), np.inf)
        spread = (middle * size * count) ** 2 + left * (noise * self.basis_.length(where)) ** 2
        return middle * (size**2 / left), many * np.sqrt(spread) / left

    def _norm_error(self, miss: float) -> float:
        """‖e‖ and |c| times a mean no longer than a curve, with nine tenths and one of the chance to miss."""
        off = self._count_noise * self.basis_.deviations(miss / 10, everywhere=False)
        if off >= self.n_samples_ or (off and self.n_samples_ <= 1):
            return math.inf
        wide = self._noise * _longest(self.basis_.size, 0.9 * miss if off else miss)
        moved = float(np.linalg.norm(self._curves - self._noisy))
        return (wide + off * float(exactly(self.curve_norm))) / self.n_samples_ + moved

    def plot(self, path: Any = None, title: str | None = None) -> Any:
        """The curve with its 95% bands as a matplotlib figure, saved at `path` where one is given."""
        check_is_fitted(self)
        figure = need("matplotlib.figure", "plot", "MeanCurve.plot").Figure(figsize=(7, 4), layout="constrained")
        panel, fine = figure.subplots(), self.basis_.fine
        for everywhere, shade, label in ((True, 0.25, "everywhere at once (95%)"), (False, 0.35, "at one place (95%)")):
            low, high = self.band(0.95, fine, everywhere=everywhere)
            if np.isfinite(low).all():
                panel.fill_between(fine, low, high, color="#5b9bd5", alpha=shade, linewidth=0, label=label)
        panel.plot(fine, self(fine), color="#1f4e79", linewidth=1.8, label="private mean curve")
        panel.plot(self.basis_.points, self.mean_, "o", color="#1f4e79", markersize=3)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
        note = "\nNOT PRIVATE: made in test mode" if self.release_.not_private else ""
        panel.set_title((title or str(self.release_.guarantee)).replace("$", r"\$") + note, fontsize=10)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def damped(noisy: Floats, noise: float, norm: float) -> tuple[Floats, Floats]:
    """Coefficients drawn toward 0, and the variances that are left, for noise of a known deviation.

    The k-th is taken for a normal number of variance v·k^(−2p): Wiener's filter, averaged over many v and p by how
    well each explains what was released. With p = 0 among them all coefficients may be alike, and nothing is lost but
    little where the tendency is not there.
    """
    order = np.arange(1, len(noisy) + 1)
    shapes = order ** (-2 * _DECAYS[:, None])
    shapes = shapes / shapes.sum(1, keepdims=True)
    prior = (norm**2 * np.exp(_SIZES)[:, None, None] * shapes).reshape(-1, len(noisy))
    total = prior + noise**2
    evidence = -((np.log(total) + noisy**2 / total) / 2).sum(1)
    chance = np.exp(evidence - evidence.max())
    chance = chance / chance.sum()
    means = prior / total * noisy
    found = chance @ means
    return found, chance @ (prior * noise**2 / total + (means - found) ** 2)


def _check_kind(of: str) -> str:
    if of not in ("value", "every value", "norm"):
        raise InvalidArgument('of must be "value", "every value" or "norm".')
    return of


def _longest(size: int, miss: float) -> float:
    """The length of so many independent normal numbers, but for the probability `miss`."""
    from scipy.special import gammainccinv

    return math.sqrt(2 * float(gammainccinv(size / 2, miss))) * (1 + 1e-6)


# --- how curves vary, and what follows from them --------------------------------------------------------------


class CurvePCA(_OfCurves, PCA):
    """Functional principal components: the curves along which curves vary most, from their noisy covariance operator.

    `points`, `curve_norm` and `basis` are as in `MeanCurve`; noise grows with `basis`. `center` says what variance is
    about: "private" for the mean, which is released too, None for 0.
    `components_` has a curve a row, at the points: orthonormal for the mean over them. `explained_variance_` is the
    variance of the coordinates that `transform` gives; all of them add to the mean square of a curve about the mean.
    """

    feature_ranges = None
    feature_norm: Any = property(lambda self: self.curve_norm)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        points: Any = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        center: str | None = "private",
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Any = None,
    ) -> None:
        self.n_components, self.points, self.curve_norm, self.basis = n_components, points, curve_norm, basis
        self.epsilon, self.delta, self.center, self.n_samples = epsilon, delta, center, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the components: one release, charged before the curves are read."""
        table, _ = table_of(X)
        size = self._basis(int(table.shape[1])).size
        many = size if self.n_components is None else check_count(self.n_components, "n_components")
        if many > size:
            raise InvalidArgument(f"n_components must be at most the number of functions in the basis, {size}.")
        plan = self._learn(table)
        self.n_components_ = many
        self._take(plan, None)
        self._curves, self._center = self.components_, self.mean_
        self.components_, self.mean_ = self._curves @ self.basis_.values.T, self.basis_.values @ self._center
        return self

    def transform(self, X: Any) -> Floats:
        """Curves in the coordinates of the components: means over the points of (curve − mean)·component."""
        return np.asarray((self._seen(X) - self._center) @ self._curves.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Curves at the points, as far as the components go."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)


class CurveRegression(RegressorMixin, _OfCurves, LeastSquares):  # type: ignore[misc]
    """Least squares of a number on a curve: y ≈ intercept + mean over the points of β(x)·curve(x).

    `points`, `curve_norm` and `basis` are as in `MeanCurve`; targets are clamped to ±`target_bound`.
    `coefficient_curve_` is β at the points. `error` bounds the root mean square of what noise did to β, together with
    the intercept's part.
    """

    coefficient_curve_: Floats
    feature_ranges = None
    feature_norm: Any = property(lambda self: self.curve_norm)

    def __init__(
        self,
        *,
        points: Any = None,
        curve_norm: Number = 1.0,
        target_bound: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Any = None,
    ) -> None:
        self.points, self.curve_norm, self.target_bound, self.basis = points, curve_norm, target_bound, basis
        self.epsilon, self.delta, self.fit_intercept, self.n_samples = epsilon, delta, fit_intercept, n_samples
        self.rows_per_person, self.ledger = rows_per_person, ledger

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from curves and their targets: one release, charged before they are read."""
        self._take(self._learn(X, column_of(y, type(self).__name__)), None)
        self._curves, self.coefficient_curve_ = self.coef_, self.basis_.values @ self.coef_
        return self

    def predict(self, X: Any) -> Floats:
        """The model's answer for each curve."""
        return np.asarray(shortened(self._seen(X), self.curve_norm) @ self.coef_ + self.intercept_)


# --- every curve alone ----------------------------------------------------------------------------------------


class SanitizedCurves(_OfCurves):
    """A noisy copy of every curve, each made from that curve alone: nobody else need be trusted with it.

    Promise: (ε,δ) for one replaced curve, in the local model: any two curves are at most 2·`curve_norm` apart, and
    noise hides all of that. The number of curves and their order are public; a curve with a value that is no finite
    number is noise about 0. Error: one curve has `noise_` at each coefficient, mostly more than the curve itself: use
    `MeanCurve` where the collector is trusted. Source: [T.4.3], [T.6.10] with n = 1.
    """

    curves_: Floats
    noise_: float

    def __init__(
        self,
        *,
        points: Any = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        rows_per_person: int | None = None,
        ledger: Any = None,
    ) -> None:
        self.points, self.curve_norm, self.basis = points, curve_norm, basis
        self.epsilon, self.delta, self.rows_per_person, self.ledger = epsilon, delta, rows_per_person, ledger

    def _unit(self) -> Unit:
        return replace(super()._unit(), neighbors="replace")

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        return replace(super()._stated(guarantee), trust="local")

    def _bound(self, size: int) -> Sensitivity:
        rows = self._rows()
        apart = sqrt_up(4 * check_bound(self.curve_norm, "curve_norm") ** 2 * rows)
        return Sensitivity(apart, "L2", unit=self._unit(), dimension=size * rows)

    def guarantee(self, n_samples: int | None = None, n_features: int | None = None) -> Guarantee:
        """What one call of `fit` will promise; nothing is spent."""
        bound = self._bound(self._basis(n_features).size)
        return self._stated(Gaussian.for_guarantee(self._goal(), sensitivity=bound).guarantee(bound))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the copies: one release, charged before the curves are read."""
        table, _ = table_of(X)
        basis = self._basis(int(table.shape[1]))
        rows = CurveRows(table, basis=basis, curve_norm=self.curve_norm, target_bound=None)
        bound = self._bound(basis.size)
        plan = Gaussian.for_guarantee(self._goal(), sensitivity=bound)

        def read() -> Floats:
            return np.concatenate([whole for whole, _ in rows.blocks()]) * float(rows.unit)

        asked = f"a copy of {table.shape[0]} curves at {len(basis.points)} points, each alone"
        self.release_ = self._release(read, plan, plan.guarantee(bound), asked)
        self.basis_, self.n_features_in_ = basis, len(basis.points)
        self.noise_, self._curves = float(exactly(plan.stddev)), np.asarray(self.release_.value)
        self.curves_ = self._curves @ basis.values.T
        return self

    def error(self, confidence: float = 0.95, of: str = "every value") -> Accuracy:
        """How far one copy may be from its clipped curve: everywhere, at one place ("value") or in "norm"."""
        check_is_fitted(self)
        sure = check_confidence(confidence)
        if _check_kind(of) == "norm":
            return Accuracy(amount=self.noise_ * _longest(self.basis_.size, 1 - sure), confidence=sure, of=of)
        wide = self.basis_.deviations(1 - sure, everywhere=of == "every value")
        most = float(self.basis_.length(self.basis_.fine).max()) * UP
        return Accuracy(amount=self.noise_ * wide * most, confidence=sure, of=of)


def sanitized_curves(curves: Any, **settings: Any) -> SanitizedCurves:
    """A noisy copy of every curve, each made from that curve alone; the settings are those of `SanitizedCurves`."""
    return SanitizedCurves(**settings).fit(curves)
