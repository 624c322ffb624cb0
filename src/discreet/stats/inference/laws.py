"""The law of an error: sampling, of which the variance is itself estimated, plus noise of a known law.

An error is √variance·T + Σ scale_j·L_j + √noise·Z for independent T (Student), L_j (Laplace) and Z (normal). Its tail
is computed from its characteristic function, for many errors at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
_ENDS = np.array([0.0, *2.0 ** np.arange(-16, -2, 0.5), *np.linspace(0.25, 1, 12)])
_LEVELS, _WEIGHTS = 0.55 * _ENDS[:-1] + 0.45 * _ENDS[1:], np.diff(_ENDS)
"""A Student law is a mixture of normal laws. Those at these levels of its χ² law stand for it, with these weights."""
_MANY = 50.0
"""With so many degrees of freedom the χ² law is nearly normal, and few levels stand for it."""
_FEW_POINTS, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_FEW_LEVELS = special.ndtr(_FEW_POINTS)
_WIDE = 100.0
"""Next to a normal law of this variance, other noise has a variance below 1, and counts as normal."""
_STEP, _POINTS = 0.05, 1200
"""Where the characteristic function is taken, in units of one over the deviation."""
_NOTHING = 1e-7
"""Where the characteristic function is below this, the rest of it is left out."""
_FAR = 40.0
"""The midpoint rule repeats itself at 2π/step. Beyond this size, tails are bounded too."""
_SURE = 1e-5
"""Smaller tails are not read off the integral, but bounded."""


@dataclass(frozen=True)
class ErrorLaw:
    """The law of an error, or of many: all fields have the shape of the errors, `laplace` with one more dimension.

    `variance` is the estimated sampling variance, and `degrees` the degrees of freedom of that estimate. `laplace` has
    the scales of Laplace noise, and `normal` is the variance of normal noise.
    """

    variance: Any
    degrees: Any
    laplace: Any
    normal: Any = 0.0

    @property
    def deviation(self) -> Floats:
        """The standard deviation, as if the sampling variance were known."""
        return np.asarray(np.sqrt(self.variance + self.normal + 2 * (np.asarray(self.laplace) ** 2).sum(-1)))

    def beyond(self, size: Any) -> Floats:
        """The probability that the error is larger than `size` in absolute value. Never too small by more than 1e-5,
        and where it is below that, an upper bound.
        """
        size = np.abs(np.asarray(size, dtype=np.float64))
        shape = np.broadcast_shapes(size.shape, np.shape(self.variance), np.shape(self.degrees))
        whole = np.broadcast_to(np.maximum(self.deviation, 1e-300), shape).reshape(-1)

        def scaled(part: Any, power: int) -> Floats:
            flat = np.broadcast_to(np.asarray(part, dtype=np.float64), shape).reshape(-1)
            return np.asarray(flat / whole**power)

        parts = (
            scaled(size, 1),
            scaled(self.variance, 2),
            scaled(np.minimum(self.degrees, 1e9), 0),
            scaled(self.normal, 2),
        )
        noise = np.asarray(self.laplace, dtype=np.float64)
        scales = np.broadcast_to(noise, (*shape, noise.shape[-1])).reshape(-1, noise.shape[-1]) / whole[:, None]
        found = np.empty(len(whole))
        many = parts[2] >= _MANY
        for regime, levels, weights in (
            (~many, _LEVELS, _WEIGHTS),
            (many, _FEW_LEVELS, _FEW_WEIGHTS / _FEW_WEIGHTS.sum()),
        ):
            places = np.flatnonzero(regime)
            for start in range(0, len(places), 256):
                some = places[start : start + 256]
                size_of, variance, degrees, normal = (part[some] for part in parts)
                half = degrees[:, None] / 2
                spread = variance[:, None] * half / np.maximum(special.gammaincinv(half, levels), 1e-300)
                found[some] = _tail(size_of, spread + normal[:, None], weights, scales[some])
                small = some[(found[some] < _SURE) | (size_of > _FAR)]
                if not len(small):
                    continue
                at, of, with_degrees, other = (part[small] for part in parts)
                bound = _tail_bound(at, of, with_degrees, other, scales[small])
                found[small] = np.where(parts[0][small] > _FAR, bound, np.minimum(bound, _SURE))
        return found.reshape(shape)

    def quantile(self, miss: float) -> Floats:
        """The size that the error exceeds with probability at most `miss`."""
        low, high = np.zeros_like(self.deviation), np.asarray(self.deviation, dtype=np.float64).copy()
        while np.any(wide := self.beyond(high) > miss):
            if np.all(high[wide] > 1e12 * np.asarray(self.deviation)[wide]):
                break
            high = np.where(wide, 2 * high, high)
        for _ in range(40):
            middle = (low + high) / 2
            over = self.beyond(middle) > miss
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return high


def one_sided(both: Any, toward: Any, skewness: Any) -> Floats:
    """The one-sided p-value from the two-sided one, for an error with at most this skewness against the alternative.

    Where few units are far to the other side, an estimate is far to this side just when none of them is in the sample,
    and then the variance looks small too. The term is the first of Edgeworth's expansion for an estimated variance.
    """
    half = np.asarray(both, dtype=np.float64) / 2
    z = -special.ndtri(np.maximum(half, 1e-300))
    more = skewness * (2 * z**2 + 1) * np.exp(-0.5 * z**2) / (6 * np.sqrt(2 * np.pi))
    return np.asarray(np.where(toward, np.minimum(half + more, 1.0), 1 - half))


def _tail(size: Floats, spread: Floats, weights: Floats, laplace: Floats) -> Floats:
    """The two-sided tail in units of the deviation: 1 − (2/π)∫ sin(size·t)/t·φ(t) dt by the midpoint rule, where φ is
    that of Laplace noise and a mixture of normal laws with these variances.
    """
    at = (np.arange(_POINTS) + 0.5) * _STEP
    noise = 1 / np.prod(1 + (laplace[:, :, None] * at) ** 2, 1)
    at = at[
        : 1 + int(np.argmin((noise * np.exp(-0.5 * spread.min(1)[:, None] * at**2)).max(0) > _NOTHING) or _POINTS - 1)
    ]
    near = np.where(spread < _WIDE, weights, 0.0)
    curve = np.zeros((len(size), len(at)))
    for node in np.flatnonzero(near.any(0)):
        power = np.minimum(spread[:, node], _WIDE)
        curve += near[:, node, None] * np.exp(-np.minimum(0.5 * power[:, None] * at**2, 700.0))
    inside = (np.sin(size[:, None] * at) / at * curve * noise[:, : len(at)]).sum(1) * (2 * _STEP / np.pi)
    wide = np.sqrt(2 * (spread + 2 * (laplace**2).sum(1)[:, None]))
    beyond = ((weights - near) * special.erfc(size[:, None] / wide)).sum(1)
    return np.asarray(np.clip(np.clip(near.sum(1) - inside, 0.0, 1.0) + beyond, 0.0, 1.0))


def _tail_bound(size: Floats, variance: Floats, degrees: Floats, normal: Floats, laplace: Floats) -> Floats:
    """An upper bound of small tails: sampling is beyond a part of `size`, or noise beyond the rest, which Chernoff's
    bound limits.
    """
    most, best = np.maximum(laplace.max(1, initial=0.0), 1e-12), np.ones(len(size))
    for part in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where(variance > 0, part * size / np.sqrt(np.maximum(variance, 1e-300)), np.inf)
        sampled = 2 * special.stdtr(degrees, -at)
        rest, noisy = (1 - part) * size, np.ones(len(size))
        for share in np.linspace(0.02, 0.98, 25):
            # the exponent stays below one over the largest Laplace scale, and below the best one of a normal law
            rate = np.minimum(share / most, 2 * share * rest / np.maximum(normal, 1e-12))
            log = np.log(2.0) - rate * rest + rate**2 * normal / 2
            log -= np.log1p(-((rate[:, None] * laplace) ** 2)).sum(-1)
            noisy = np.minimum(noisy, np.exp(np.minimum(log, 0.0)))
        if part == 1:
            noisy = np.where((normal == 0) & ~laplace.any(1), 0.0, 1.0)
        best = np.minimum(best, sampled + noisy)
    return best
