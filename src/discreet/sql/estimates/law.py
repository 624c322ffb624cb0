"""The law of a weighted sum of independent noises: how far it is from 0, with any confidence.

Promise: with Y = X + V, where V is Gaussian with a deviation h that is a small part of that of X, a sum X that is
beyond t + z·h lets Y be beyond t unless V is below −z·h. So P(|X| > t + z·h) ≤ P(|Y| > t) / P(V ≥ −z·h). The law of Y
has a smooth density, and is computed from its characteristic function to within `_SLACK`, which is added.
Source: Gil-Pelaez 1951; the error of the trapezoid is that of Poisson's formula [decision 0026].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace

Floats = NDArray[np.float64]
Noise = Laplace | Gaussian
_SMOOTH = 0.005
"""The deviation of V, as a part of that of X. It widens the interval by less than 1%."""
_BEYOND = 3.1
_MISSED = math.erfc(_BEYOND / math.sqrt(2)) / 2
_PERIOD = 48.0
"""The law is computed on a circle of so many deviations. What wraps around is below e^-25."""
_NEGLIGIBLE = 1e-13
_SLACK = 1e-8
_RARE = 1e-6
"""What is less likely than this is not computed: rounding would decide it. It is bounded."""
_TRIED = 200
_SMALLEST = 1e-9
"""Weights below this part of the largest move a sum by nothing that is seen, and only their deviation counts."""
_CHUNKS = (1, 1, 2, 4, 8)
"""How many noises are multiplied at first, before it is seen which points still count. Then so many each time."""


@dataclass(frozen=True, eq=False)
class SumLaw:
    """The law of Σ weight·noise over independent noises on whole numbers. `scales` are those of Laplace noises, and the
    deviations of those that are `gaussian`.
    """

    weights: Floats
    scales: Floats
    gaussian: NDArray[np.bool_]

    @classmethod
    def of(cls, weights: Sequence[float] | Floats, noises: Sequence[Noise]) -> SumLaw:
        """The law for these noises."""
        return laws_of(np.asarray(weights, dtype=np.float64).reshape(1, -1), noises)[0]

    @cached_property
    def deviation(self) -> float:
        """The standard deviation, or slightly more: that of the noises before they are rounded to whole numbers."""
        squares = (self.weights * self.scales) ** 2 * np.where(self.gaussian, 1.0, 2.0)
        return math.sqrt(float(squares.sum()))

    def half_width(self, confidence: float) -> float:
        """How far from 0 the sum is at most, with this confidence."""
        return float(self.half_widths([confidence])[0])

    def half_widths(self, confidences: Sequence[float]) -> Floats:
        """The same for several confidences."""
        if not self.weights.size or not self.deviation:
            return np.zeros(len(confidences))
        if self._is_one_noise:
            return np.array([self._own(confidence) for confidence in confidences])
        tails = 1 - np.asarray(confidences, dtype=np.float64)
        found = self._beyond(np.maximum(tails, _RARE) * (1 - _MISSED) - _SLACK)
        widths = (found + _BEYOND * _SMOOTH) * self.deviation
        widths = np.where(tails < _RARE, np.maximum(widths, self._bounded(np.minimum(tails, _RARE))), widths)
        return np.array([float(f"{width * (1 + 1e-8):.9g}") for width in widths])  # the last digits depend on the order

    def is_within(self, amount: float, confidence: float) -> bool:
        """Whether the sum is at most so far from 0, with this confidence."""
        if not self.weights.size or self._is_one_noise:
            return self.half_width(confidence) <= amount
        at = min(amount / self.deviation - _BEYOND * _SMOOTH, _PERIOD / 2)
        wanted = (1 - confidence) * (1 - _MISSED) - _SLACK
        return at > 0 and bool(self._outside(np.array([at]))[0] <= wanted)

    def _bounded(self, tails: Floats) -> Floats:
        """Chernoff's bound: P(|X| > t) ≤ 2·exp(−ut)·E[exp(uX)] for every u > 0."""
        if not (tails > 0).all():
            return np.full(len(tails), np.inf)
        rare, laplace = np.log(2 / tails), ~self.gaussian
        ends = [2 * math.sqrt(2 * float(rare.max())) / self.deviation]
        ends += [float((1 / (self.weights * self.scales)[laplace]).min())] if laplace.any() else []
        at = min(ends) * (np.arange(_TRIED, dtype=np.float64) + 0.5) / _TRIED
        moved, inverse = at[:, None] * self.weights, 1 / self.scales[laplace]
        logs = ((moved * self.scales)[:, self.gaussian] ** 2).sum(axis=1) / 2
        for sign in (1, -1):
            logs -= np.log(np.expm1(sign * moved[:, laplace] - inverse) / np.expm1(-inverse)).sum(axis=1)
        return np.asarray(((logs + rare[:, None]) / at).min(axis=1))

    @property
    def _is_one_noise(self) -> bool:
        return len(self.weights) == 1

    def _own(self, confidence: float) -> float:
        """One noise with a factor has its own exact law."""
        size = float(self.scales[0])
        noise: Noise = Gaussian(stddev=size, step=1) if self.gaussian[0] else Laplace(scale=size, step=1)
        return float(self.weights[0]) * float(noise.error(confidence))

    # --- the law of Y, in deviations of X -----------------------------------------------------------------------

    @cached_property
    def _transform(self) -> tuple[Floats, Floats]:
        """The points of the characteristic function that count, and what each contributes before sin(u·t)."""
        step = 2 * math.pi / _PERIOD
        points: Floats = step * np.arange(1, math.ceil(5.6 / _SMOOTH / step) + 1, dtype=np.float64)
        parts: Floats = np.exp(-((points * _SMOOTH) ** 2) / 2) * (2 * step / math.pi) / points
        first, chunks = 0, itertools.chain(_CHUNKS, itertools.repeat(64))
        while first < len(self.weights):
            own = slice(first, first + next(chunks))
            parts = parts * self._characteristic(points, own)
            kept = parts > _NEGLIGIBLE  # all factors are positive and at most 1: what is small stays small
            points, parts, first = points[kept], parts[kept], own.stop
        return points, parts

    def _characteristic(self, points: Floats, own: slice) -> Floats:
        """The product of the characteristic functions of some noises."""
        angles = points[:, None] * (self.weights[own] / self.deviation)[None, :]
        scales, gaussian = self.scales[own], self.gaussian[own]
        found = np.ones_like(angles)
        if (~gaussian).any():
            found[:, ~gaussian] = _laplace(angles[:, ~gaussian], scales[~gaussian])
        if gaussian.any():
            found[:, gaussian] = _gaussian(angles[:, gaussian], scales[gaussian])
        return np.asarray(found.prod(axis=1))

    def _outside(self, at: Floats) -> Floats:
        """P(|Y| > t) for several t."""
        points, parts = self._transform
        inside = 2 * at / _PERIOD + np.sin(at[:, None] * points[None, :]) @ parts
        return np.asarray(1 - inside)

    def _beyond(self, wanted: Floats) -> Floats:
        """The smallest t with P(|Y| > t) ≤ wanted, for several."""
        low, high = np.zeros(len(wanted)), np.full(len(wanted), _PERIOD / 2)
        for _ in range(32):
            middle = (low + high) / 2
            fits = self._outside(middle) <= wanted
            high, low = np.where(fits, middle, high), np.where(fits, low, middle)
        return high


def laws_of(weights: Floats, noises: Sequence[Noise]) -> list[SumLaw]:
    """The law of each row of weights. Rows with the same weights for the same noises, in any order, have the same one.
    Noises whose weight is 0 are left out, and steps become a part of the weights.
    """
    facts = {id(noise): _facts(noise) for noise in {id(noise): noise for noise in noises}.values()}
    each = np.array([facts[id(noise)] for noise in noises], dtype=np.float64).reshape(-1, 3)
    sizes, steps, kinds = each[:, 0], each[:, 1], each[:, 2] > 0
    scales, known, found = sizes / steps, dict[bytes, SumLaw](), list[SumLaw]()
    for row in np.abs(weights) * steps:
        spread = row * scales
        kept = np.flatnonzero(spread > _SMALLEST * spread.max(initial=0.0))
        kept = kept[np.lexsort((kinds[kept], scales[kept], -np.round(spread[kept], 9)))]
        name = np.round(np.stack([row[kept], scales[kept], kinds[kept]]), 9).tobytes()
        if name not in known:
            known[name] = SumLaw(row[kept], scales[kept], kinds[kept])
        found.append(known[name])
    return found


def _facts(noise: Noise) -> tuple[float, float, bool]:
    """The size of a noise, its step, and whether it is Gaussian."""
    if isinstance(noise, Gaussian):
        return float(noise.stddev), float(noise._step), True
    return float(noise.scale), float(noise._step), False


def _laplace(angles: Floats, scales: Floats) -> Floats:
    """(1 − q)² / (1 − 2q·cos(u) + q²) with q = exp(−1/scale), without loss of digits near 0."""
    q = np.exp(-1 / scales)
    gap = -np.expm1(-1 / scales)
    return np.asarray(gap**2 / (gap**2 + 4 * q * np.sin(angles / 2) ** 2))


def _gaussian(angles: Floats, stddevs: Floats) -> Floats:
    """Σ exp(−σ²(u − 2πk)²/2) / Σ exp(−σ²(2πk)²/2): Poisson's formula for the discrete Gaussian law."""
    around = np.arange(-8, 9)[:, None, None] * 2 * math.pi
    folded = np.remainder(angles + math.pi, 2 * math.pi) - math.pi
    folded = np.where(np.abs(angles) <= math.pi, angles, folded)  # a small angle would lose its digits
    top = np.exp(-((stddevs[None, None, :] * (folded[None] - around)) ** 2) / 2).sum(axis=0)
    whole = np.exp(-((stddevs[None, :] * around[:, 0]) ** 2) / 2).sum(axis=0)
    return np.asarray(np.minimum(top / whole[None, :], 1.0))
