"""Inference about the ratio of two means, and about a variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.noisy_shares import Alternative, NoisyShares, farthest, p_of, values_kept

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RatioOf:
    """The mean of x over the mean of y. `x` and `y` are twice the values at the places: each row is half at those of x
    and half at those of y.

    The ratio is the tangent of the angle φ at which the total of x·cos φ − y·sin φ is 0. `corners` are the largest and
    least pairs of values.
    """

    shares: NoisyShares
    x: Floats
    y: Floats
    corners: tuple[tuple[float, float], ...]

    def p_of_angle(self, angle: Any, alternative: Alternative = "two-sided", *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that the ratio is the tangent of this angle."""
        cosine, sine = np.cos(np.asarray(angle))[..., None], np.sin(np.asarray(angle))[..., None]
        rest = self.x * cosine - self.y * sine
        reach = np.max([np.abs(x * cosine - y * sine) for x, y in self.corners], axis=0)[..., 0]
        law = self.shares.error(rest, sampled=sampled, reach=reach)
        return p_of(self.shares.total(rest), law, alternative, reach)

    @cached_property
    def _totals(self) -> tuple[float, float]:
        return float(self.shares.total(self.x)), float(self.shares.total(self.y))

    @property
    def value(self) -> float:
        x, y = self._totals
        return x / y if y else math.nan

    def p_value(self, null: float, alternative: Alternative) -> float:
        if alternative != "two-sided" and self._totals[1] < 0:  # a negative denominator turns the direction around
            alternative = "less" if alternative == "greater" else "greater"
        return float(self.p_of_angle(math.atan(null), alternative))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        ends, best = (-math.pi / 2, math.pi / 2), math.atan(self.value) if math.isfinite(self.value) else 0.0
        low, high = values_kept(lambda angle: self.p_of_angle(angle, sampled=sampled), ends, best, 1 - confidence)
        return (-math.inf if low <= ends[0] else math.tan(low)), (math.inf if high >= ends[1] else math.tan(high))


@dataclass(frozen=True)
class VarianceOf:
    """The variance of t, a part of a range. A row is at three places, with the shares (1−t)², 2t(1−t) and t²: so t is
    0, ½ and 1 there, and t² is 0, 0 and 1.

    The hypothesis that the variance is v is tested by the total of (t − m)² − v about the estimated mean m, which has
    the mean of the population in it up to a known correction.
    """

    shares: NoisyShares
    member: Floats
    part: Floats
    square: Floats
    width: float

    @cached_property
    def _about(self) -> tuple[Any, Any, Any, Any]:
        """The size, the mean, the total of squared distances from it, and what is to be added to that."""
        size = np.maximum(self.shares.total(self.member), 2.0)
        mean = np.clip(self.shares.total(self.part) / size, 0.0, 1.0)
        rest = self.part - self.member * mean[..., None]
        noise = self.shares.error(rest, sampled=False).deviation ** 2
        squares = self.shares.total(self._distance(mean))
        spread = np.clip(squares, 0.0, size / 4)
        return size, mean, squares, (spread + noise) / size

    def _distance(self, mean: Any) -> Floats:
        at = np.asarray(mean)[..., None]
        return np.asarray(self.square - 2 * at * self.part + at**2 * self.member)

    def p_of_variance(self, variance: Any, alternative: Alternative = "two-sided", *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that the variance of t is this."""
        size, mean, squares, more = self._about
        variance = np.asarray(variance, dtype=np.float64)
        function = self._distance(mean) - variance[..., None] * self.member
        law = self.shares.error(function, sampled=sampled)
        found = p_of(squares + more - size * variance, law, alternative, farthest(function, alternative))
        return np.where(self.shares.is_known(self.member), found, 1.0)  # of no rows, nothing is known

    @property
    def value(self) -> float:
        size, _, squares, more = self._about
        return float(self.width**2 * np.clip((squares + more) / size, 0.0, 0.25))

    def p_value(self, null: float, alternative: Alternative) -> float:
        variance = null / self.width**2
        if not 0 <= variance <= 0.25:
            return float({"two-sided": False, "greater": variance > 0, "less": variance < 0}[alternative])
        return float(self.p_of_variance(variance, alternative))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        best = self.value / self.width**2
        found = values_kept(lambda v: self.p_of_variance(v, sampled=sampled), (0.0, 0.25), best, 1 - confidence)
        return self.width**2 * found[0], self.width**2 * found[1]
