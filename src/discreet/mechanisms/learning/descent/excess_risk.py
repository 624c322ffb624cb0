"""How far from the best model noisy descent may end: bounds that hold with a stated probability.

Let F be convex, D_t the distance of the t-th weights from the best ones, η the rate and ξ_t the noise of the mean
gradient. One projected step gives for the weights where it starts, by the slope G of F,

    F(w_t) − F* ≤ (D_t² − D_{t+1}²)/(2η) + ηG²/2 + η‖ξ_t‖²/2 − ⟨ξ_t, w_t − w* − η∇F(w_t)⟩            [L10.T1, L10.T2]

and for the weights where it ends, by the curvature β of F, where w̄ is its end without noise,

    F(w_{t+1}) − F* ≤ (D_t² − D_{t+1}²)/(2η) + (β − 1/η)‖w_{t+1} − w_t‖²/2 + η‖ξ_t‖² − ⟨ξ_t, w̄ − w*⟩.

Both sums telescope. The noise of a step is independent of its factor, so the remaining sum has a known exponential
moment, step after step. `noise_term` returns Chernoff's bound on it. The average of the weights is at least as good as
the weights are on average (Jensen).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet.exact.search import least_place


@dataclass(frozen=True, kw_only=True)
class Descended:
    """The inputs of a bound, for the mean loss. All of them are public."""

    steps: int  # the last steps, whose weights are averaged
    rate: float
    start: float  # the largest distance of the weights before these steps from any others
    diameter: float
    slope: float
    curvature: float
    stddev: float  # for each coordinate of the noise of a step; √2 times the scale for Laplace noise
    dimension: int
    laplace: bool = False

    def bound(self, miss: float) -> float:
        """The excess risk that is exceeded with probability at most `miss`: the better of both analyses."""
        return min(self._by_slope(miss), self._by_curvature(miss))

    def expected(self) -> float:
        """The expected excess risk by the slope alone, D²/(2ηk) + η(G² + d·s²)/2: [L10.T2] with its constants."""
        squared = self.slope**2 + self.dimension * self.stddev**2
        return self.start**2 / (2 * self.rate * self.steps) + self.rate * squared / 2

    def _by_slope(self, miss: float) -> float:
        still = self.start**2 / (2 * self.rate) + self.rate * self.slope**2 * (self.steps + 1) / 2
        return (still + self._noise(self.rate / 2, self.diameter + self.rate * self.slope, miss)) / self.steps

    def _by_curvature(self, miss: float) -> float:
        if math.isinf(self.curvature):
            return math.inf
        longer = max(0.0, self.curvature - 1 / self.rate) / 2 * self.diameter**2 * self.steps
        still = self.start**2 / (2 * self.rate) + longer
        return (still + self._noise(self.rate, self.diameter, miss)) / self.steps

    def _noise(self, weight: float, length: float, miss: float) -> float:
        if self.stddev == 0:
            return 0.0
        if math.isinf(length):
            return math.inf
        term = laplace_term if self.laplace else noise_term
        return term(self.steps, self.dimension, self.stddev, weight, length, miss)


def noise_term(steps: int, dimension: int, stddev: float, weight: float, length: float, miss: float) -> float:
    """The bound that Σ_t (weight·‖ξ_t‖² − ⟨ξ_t, u_t⟩) exceeds with probability at most `miss`, for ‖u_t‖ ≤ `length`.

    Promise: it holds for any noise that is sub-Gaussian with this deviation, such as the discrete Gaussian. For a
    Gaussian vector g, e^{λ(a‖ξ‖²−⟨ξ,u⟩)} is the mean of e^{⟨√(2λa)g − λu, ξ⟩} over g, which gives (1 −
    2λas²)^{-d/2}·e^{λ²s²‖u‖²/(2(1−2λas²))} for one step. Any λ is valid: a poor search only makes the bound looser.
    """
    variance = stddev**2

    def at(share: float) -> float:
        rate = share / (2 * weight * variance)
        grown = -dimension / 2 * math.log1p(-share) + rate**2 * variance * length**2 / (2 * (1 - share))
        return (steps * grown - math.log(miss)) / rate

    return _least(at) * (1 + 1e-9)


def laplace_term(steps: int, dimension: int, stddev: float, weight: float, length: float, miss: float) -> float:
    """The same for Laplace noise, with half of `miss` for each part.

    Promise: X² has mean s² and variance at most 5s⁴, so Cantelli's inequality bounds the squares. θ⟨ξ,u⟩ has an
    exponential moment of at most e^{θ²s²‖u‖²} while θs‖u‖ ≤ 1.
    """
    count = steps * dimension
    squares = stddev**2 * (count + math.sqrt(5 * count * (2 / miss - 1)))
    needed = math.log(2 / miss)
    theta = min(1.0, math.sqrt(needed / steps)) / (stddev * length)
    return (weight * squares + needed / theta + steps * theta * (stddev * length) ** 2) * (1 + 1e-9)


def drift_term(steps: int, stddev: float, length: float, miss: float, laplace: bool) -> float:
    """The bound that the mean of ⟨ξ_t, u_t⟩ exceeds with probability at most `miss`. ‖u_t‖ ≤ `length` is known before
    ξ_t.
    """
    needed, spread = -math.log(miss), stddev * length
    if not laplace:
        return spread * math.sqrt(2 * needed / steps)
    theta = min(1.0, math.sqrt(needed / steps))  # as in `laplace_term`
    return spread * (needed / (theta * steps) + theta)


def _least(at: Callable[[float], float]) -> float:
    """The least value of a function of a share between 0 and 1, searched on a logarithmic scale."""
    return at(math.exp(least_place(lambda x: at(math.exp(x)), math.log(1e-12), math.log(0.999), 80)))
