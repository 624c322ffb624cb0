"""The mean of curves, with a band. Where noise dominates, the curve is shrunk toward 0."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet.exact.rational import Number, check_count, exactly
from discreet.extras import blank_figure, save_figure
from discreet.functions.cosines import ALL, UP
from discreet.functions.curve_models import CurveModel, Floats, check_is_fitted, check_kind, longest
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.ledger import Ledger
from discreet.mechanisms.learning.moments import Moments
from discreet.releases import below_title
from discreet.rows.containers import Data

_DECAYS = np.arange(0.0, 3.25, 0.5)
_SIZES = np.linspace(-18.0, 4.0, 45)


class MeanCurve(CurveModel):
    """The mean of curves as a function: `model(x)` for any x from the first point to the last.

    `points` are where the curves are known (by default evenly from 0 to 1). `curve_norm` is the maximum norm of a
    curve, as a root mean square over the points. Longer curves are clipped, and a curve with a value that is not a
    finite number is left out. `basis` is the number of cosines that represent a curve: "all" keeps every value, fewer
    smooth it and leave less noise. The number of curves is `n_samples` if that is public (those left out then count as
    0), otherwise it is counted.

    `damp` shrinks each noisy coefficient toward 0 according to its noise. This gives the smallest expected error if the
    coefficients of higher frequencies tend to be smaller. It is post-processing, at no cost. `mean_` is the curve at
    the points, and `deviation_` how far noise may have moved it there, one standard deviation under that assumption.
    `error` and `band` hold without the assumption.

    >>> MeanCurve(curve_norm=2, basis=5, epsilon=1, delta=1e-6).guarantee(n_features=24).delta_at(epsilon=1) <= 1e-6
    True
    """

    mean_: Floats
    deviation_: Floats

    def __init__(
        self,
        *,
        points: ArrayLike | None = None,
        curve_norm: Number = 1.0,
        basis: int | str = ALL,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        damp: bool = True,
        n_samples: int | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
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

    def fit(self, X: Data, y: Data = None) -> Self:
        """Release the mean of the curves: one release, charged before they are read."""
        plan, given = self._learn(X), self.release_.value
        self.n_samples_ = max(float(given["count"] if self.n_samples is None else self.n_samples), 1.0)
        self._noisy = np.asarray(given["sum"]) / self.n_samples_
        self._noise, self._count_noise = float(exactly(plan.sum or 0)), float(exactly(plan.count or 0))
        spread = self._noise**2 + (self._count_noise * float(np.linalg.norm(self._noisy))) ** 2 / plan.features
        noise, norm = math.sqrt(spread) / self.n_samples_, float(exactly(self.curve_norm))
        found, variances = self._noisy, np.full(plan.features, noise**2)
        if self.damp:
            found, variances = shrink(self._noisy, noise, norm)
        self._curves = found * (norm / max(norm, float(np.linalg.norm(found))))  # no mean is longer than a curve
        self.mean_ = self.basis_.values @ self._curves
        self.deviation_ = np.sqrt(self.basis_.values**2 @ variances)
        return self

    def __call__(self, where: ArrayLike) -> Floats:
        """The mean curve at any places from the first point to the last."""
        return self.at(where)

    def band(
        self, confidence: float = 0.95, at: ArrayLike | None = None, *, everywhere: bool = True
    ) -> tuple[Floats, Floats]:
        """The lowest and highest possible mean of the clipped curves at these places, by default the points.

        It holds `everywhere` at once, also between the points, or for one place that is chosen in advance. It is
        centered at the noisy curve before damping, and widened where `mean_` lies outside. Infinite if too few curves
        were counted.
        """
        check_is_fitted(self)
        where = np.asarray(self.basis_.points if at is None else at, dtype=np.float64)
        middle, width = self._reach(where.ravel(), 1 - check_confidence(confidence), everywhere)
        own = self._values(self._curves, where.ravel())
        low, high = np.minimum(middle - width, own), np.maximum(middle + width, own)
        return low.reshape(where.shape), high.reshape(where.shape)

    def error(self, confidence: float = 0.95, of: str = "every value") -> Accuracy:
        """How far it may be from the mean of the curves after clipping and, with fewer cosines, smoothing.

        "every value" bounds it everywhere at once, "value" at one place that is chosen beforehand, "norm" the root mean
        square over the points.
        """
        check_is_fitted(self)
        sure = check_confidence(confidence)
        if check_kind(of) == "norm":
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
        wide = self._noise * longest(self.basis_.size, 0.9 * miss if off else miss)
        moved = float(np.linalg.norm(self._curves - self._noisy))
        return (wide + off * float(exactly(self.curve_norm))) / self.n_samples_ + moved

    def plot(self, path: str | Path | None = None, title: str | None = None) -> Any:
        """The curve with its 95% bands as a matplotlib figure, saved at `path` if one is given."""
        check_is_fitted(self)
        figure = blank_figure("MeanCurve.plot", size=(7, 4))
        panel, fine = figure.subplots(), self.basis_.fine
        for everywhere, shade, label in ((True, 0.25, "everywhere at once (95%)"), (False, 0.35, "at one place (95%)")):
            low, high = self.band(0.95, fine, everywhere=everywhere)
            if np.isfinite(low).all():
                panel.fill_between(fine, low, high, color="#5b9bd5", alpha=shade, linewidth=0, label=label)
        panel.plot(fine, self(fine), color="#1f4e79", linewidth=1.8, label="private mean curve")
        panel.plot(self.basis_.points, self.mean_, "o", color="#1f4e79", markersize=3)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
        text = (title or str(self.release_.guarantee)).replace("$", r"\$")
        panel.set_title(text + below_title(self.release_), fontsize=10)
        return save_figure(figure, path)


def shrink(noisy: Floats, noise: float, norm: float) -> tuple[Floats, Floats]:
    """Coefficients shrunk toward 0, and the remaining variances, for noise of a known deviation.

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
