"""Dominating pairs: the two output laws that are easiest to distinguish, and how well they can be distinguished.

A pair (P, Q) with privacy loss ℓ = ln P/Q has one central method, `cells(edges)`: how much mass of P and of Q has its
loss in each cell (edges[i-1], edges[i]]. Curves, Rényi divergences and composition all follow from it. The laws are the
discrete ones that are drawn: noise with its scale in lattice steps, shifted by `distance` steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import float_up
from discreet.guarantees.conversions import SLACK, gaussian_delta, renyi_of_response

Floats = NDArray[np.float64]
_FAR = 40.0  # in standard deviations; beyond, a Gaussian tail is 0 in floats
_DIRECT_STEPS = 2**12  # up to this standard deviation in steps a discrete Gaussian is summed term by term


class Pair:
    """The interface of dominating pairs. Subclasses are frozen, so two equal pairs compose as one pair with a count of
    2.
    """

    infinite: float = 0.0
    """The mass of P where Q has none."""
    bound: Fraction | None = None
    """An exact upper bound on the finite losses. None if they are unbounded."""
    relative: ClassVar[float] = 4e-12
    """The relative error of the mass of every cell. Whoever uses a mass adds this error on the safe side."""
    spacing: float | None = None
    """If all losses are multiples of one number, that number."""

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        """The masses of P and Q with loss ≤ edges[0], in each cell, and > edges[-1] (without infinite losses)."""
        raise NotImplementedError

    def span(self) -> tuple[float, float]:
        """A range of losses that contains all but about 1e-30 of the mass of P."""
        raise NotImplementedError

    def renyi(self, order: float) -> float:
        """The larger of the two Rényi divergences of this order, without the mass `infinite`, rounded up."""
        raise NotImplementedError

    @property
    def largest(self) -> float:
        """The bound as a float, rounded up. Infinity if there is none."""
        return math.inf if self.bound is None else float_up(self.bound)

    def mirrored(self) -> Pair:
        """(Q, P): the other direction of the neighbor relation. A symmetric pair is its own mirror."""
        return self

    def repeated(self, times: int) -> tuple[Pair, int]:
        """`times` uses of this pair, as one use of another pair if the law of the summed loss is known."""
        return self, times

    def twice(self) -> Pair:
        """The pair for two steps of the relation (replacement, from add or remove)."""
        raise IncompatibleGuarantee(
            "This guarantee has no known conversion from add_or_remove to replace. "
            "State the sensitivity for replacement instead."
        )

    def delta(self, epsilon: float) -> float:
        """The exact hockey-stick divergence δ(ε) of P from Q, rounded up."""
        inside, outside = self.cells(np.array([epsilon]))
        # underflow must not give 0: δ is 0 only beyond the largest loss
        least = 0.0 if epsilon >= self.largest else 5e-324
        moved = math.exp(min(epsilon + math.log(outside[1]), 700.0)) if outside[1] > 0 else 0.0
        excess = inside[1] * (1 + self.relative) - moved * (1 - self.relative)
        return float(min(1.0, max(excess, least) + self.infinite))


class _Shifted(Pair):
    """Symmetric lattice noise around 0 (P) and around `distance` (Q). The loss falls as the output grows."""

    distance: int

    def _last_above(self, edges: Floats) -> Floats:
        """For each edge, the largest k whose loss is above it (±inf if all or none are)."""
        raise NotImplementedError

    def _between(self, after: Floats, upto: Floats) -> Floats:
        """The mass of P at the k with after < k ≤ upto."""
        raise NotImplementedError

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        last = self._last_above(edges)
        upper = np.concatenate([[np.inf], last])
        lower = np.concatenate([last, [-np.inf]])
        return self._between(lower, upper), self._between(lower - self.distance, upper - self.distance)


@dataclass(frozen=True)
class LaplacePair(_Shifted):
    """Discrete Laplace noise of scale `scale` steps, shifted by `distance` steps: losses within
    ±distance/scale.
    """

    distance: int
    scale: Fraction

    @property
    def bound(self) -> Fraction:  # type: ignore[override]
        return self.distance / self.scale

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        return float((2 if self.distance % 2 == 0 else 1) / self.scale) if self.distance > 1 else self.largest

    def span(self) -> tuple[float, float]:
        return -self.largest, self.largest

    def _last_above(self, edges: Floats) -> Floats:
        last = np.ceil((self.distance - edges * float(self.scale)) / 2) - 1
        last = np.where(edges >= self.largest, -np.inf, last)
        return np.where(edges < -self.largest, np.inf, last)

    def _between(self, after: Floats, upto: Floats) -> Floats:
        # with q = e^{-1/t}: P[X ≤ k] = q^{-k}/(1+q) below 0, and P[X > k] = q^{k+1}/(1+q) from 0 on
        rate = 1 / float(self.scale)
        norm = 1 + math.exp(-rate)
        near, far = np.minimum(upto, -1.0), np.minimum(after, -1.0)
        with np.errstate(invalid="ignore"):
            below = np.exp(near * rate) * -np.expm1(np.where(near > far, far - near, 0.0) * rate)
            near, far = np.maximum(after, -1.0), np.maximum(upto, -1.0)
            above = np.exp(-(near + 1) * rate) * -np.expm1(np.where(far > near, near - far, 0.0) * rate)
        return np.asarray((np.nan_to_num(below) + np.nan_to_num(above)) / norm)

    def renyi(self, order: float) -> float:
        t, d, a = float(self.scale), self.distance, order
        norm = 1 + math.exp(-1 / t)
        # ln of Σ P^a Q^(1-a) divided by e^{(a-1)d/t}: the two ends, and a geometric sum over 0 < k < d
        ratio = -(2 * a - 1) / t
        middle = math.exp(ratio) * math.expm1(ratio * (d - 1)) / math.expm1(ratio) if d > 1 else 0.0
        ends = 1 + math.exp((1 - 2 * a) * d / t)
        rest = (math.expm1(-1 / t) * -1 * middle + ends) / norm
        bound = d / t + (math.log(rest) + 1e-15) / (a - 1)
        return min(bound, renyi_of_response(self.largest * SLACK, a)) * SLACK

    def twice(self) -> Pair:
        return LaplacePair(2 * self.distance, self.scale)


@lru_cache(maxsize=8)
def _gaussian_sums(variance: Fraction) -> tuple[int, Floats, Floats]:
    """Cumulative masses of a discrete Gaussian from either end, over ±_FAR standard deviations."""
    reach = math.ceil(_FAR * math.sqrt(variance)) + 2
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-k * k / float(2 * variance))
    masses /= masses.sum()
    upward = np.concatenate([[0.0], np.cumsum(masses)])
    return reach, upward, np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])


@dataclass(frozen=True)
class GaussianPair(_Shifted):
    """Discrete Gaussian noise with its variance in squared steps, shifted by `distance` steps.

    ρ-zCDP holds exactly, with ρ = distance²/(2·variance). μ-GDP does not hold.
    """

    distance: int
    variance: Fraction

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        return float(Fraction(self.distance, 2) / self.variance)

    def span(self) -> tuple[float, float]:
        mu = self.distance / math.sqrt(self.variance)
        return -12 * mu + mu * mu / 2, 12 * mu + mu * mu / 2

    def _last_above(self, edges: Floats) -> Floats:
        # the loss at k is distance·(distance − 2k)/(2·variance)
        return np.asarray(np.ceil(self.distance / 2 - edges * float(self.variance / self.distance)) - 1)

    def _between(self, after: Floats, upto: Floats) -> Floats:
        deviation = math.sqrt(self.variance)
        if deviation <= _DIRECT_STEPS:
            reach, upward, downward = _gaussian_sums(self.variance)
            first = np.clip(after + reach + 1, 0, 2 * reach + 1).astype(np.int64)
            last = np.clip(upto + reach + 1, 0, 2 * reach + 1).astype(np.int64)
            left = last <= reach
            return np.maximum(np.where(left, upward[last] - upward[first], downward[first] - downward[last]), 0.0)
        low, high = (after + 0.5) / deviation, (upto + 0.5) / deviation
        return np.maximum(_normal_between(low, high) + _midpoint_term(low, high) / (24 * float(self.variance)), 0.0)

    @property
    def mu(self) -> float:
        """The move in standard deviations, rounded up."""
        return float(self.distance) / math.sqrt(self.variance) * (1 + 1e-15)

    def repeated(self, times: int) -> tuple[Pair, int]:
        # the loss is linear in the summed noise. Noise of variances a and b adds up to mass ∝ e^(-m²/2(a+b)) times a
        # theta sum of variance ab/(a+b) ≥ variance/2, flat to 4e^(-π²·variance): far below `relative` for any count
        if self.variance < 8 or times > 2**40:
            return self, times
        return GaussianPair(times * self.distance, times * self.variance), 1

    def mass_above(self, k: int) -> float:
        """P[X > k] for the noise alone."""
        return float(self._between(np.array([float(k)]), np.array([np.inf]))[0])

    def renyi(self, order: float) -> float:
        return float(Fraction(self.distance) ** 2 / (2 * self.variance)) * order * SLACK

    def twice(self) -> Pair:
        return GaussianPair(2 * self.distance, self.variance)


def _normal_between(low: Floats, high: Floats) -> Floats:
    """Φ(high) − Φ(low), each computed on the side where it is small."""
    from scipy.special import ndtr

    flip = low > 0
    return np.asarray(ndtr(np.where(flip, -low, high)) - ndtr(np.where(flip, -high, low)))


def _midpoint_term(low: Floats, high: Floats) -> Floats:
    """The first correction of a midpoint sum to its integral: φ'(low) − φ'(high). The next one is below 1e-11 of the
    mass.
    """
    low, high = np.clip(low, -_FAR, _FAR), np.clip(high, -_FAR, _FAR)
    return np.asarray((high * np.exp(-high * high / 2) - low * np.exp(-low * low / 2)) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class TradeoffPair(Pair):
    """N(0,1) against N(μ,1), for a stated Gaussian trade-off. Nothing is drawn from it."""

    mu: float

    def span(self) -> tuple[float, float]:
        return -12 * self.mu + self.mu**2 / 2, 12 * self.mu + self.mu**2 / 2

    def cells(self, edges: Floats) -> tuple[Floats, Floats]:
        cut = np.concatenate([[np.inf], self.mu / 2 - edges / self.mu, [-np.inf]])
        return _normal_between(cut[1:], cut[:-1]), _normal_between(cut[1:] - self.mu, cut[:-1] - self.mu)

    def delta(self, epsilon: float) -> float:
        return gaussian_delta(self.mu, epsilon)

    def renyi(self, order: float) -> float:
        return self.mu**2 / 2 * order * SLACK

    def twice(self) -> Pair:
        return TradeoffPair(2 * self.mu)
