"""Inference about two proportions: their difference and their ratio, from noisy counts of each group.

Under a hypothesis, the second proportion is a function of the first one, π, which is unknown, as are the sizes m and n
of the groups. For given π, m and n, the difference of the two totals (yes·(1 − π) − no·π)/size is a sum of two centered
binomial variables and noise, whose characteristic function is known. All (π, m, n) that fit the released counts are
tried, and the largest p-value counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.means import p_outside
from discreet.stats.inference.noisy_shares import Alternative, Noise
from discreet.stats.inference.proportions import SPENT, bisect_between, reach_of_size, smallest_level

Floats = NDArray[np.float64]
_STEP, _MOST = 0.2, 600
"""Where characteristic functions are taken, in units of one over the deviation, and at how many points at most."""
_HALVED = 24
"""How often the place of an end is halved."""
_SURE = 1e-8
"""Smaller p-values are not read off the integral."""
_LARGEST = 1e6
"""Ratios beyond this, or below one over it, are not distinguished from 0 and infinity."""


@dataclass(frozen=True)
class Counts:
    """Noisy numbers of rows without and with success, in the first and in the second group."""

    no: tuple[float, float]
    yes: tuple[float, float]
    noise: Noise

    def size(self, group: int) -> float:
        """The noisy size of a group."""
        return self.no[group] + self.yes[group]

    def share(self, group: int) -> float:
        """The estimated proportion in a group."""
        size = self.size(group)
        return float(np.clip(self.yes[group] / size, 0.0, 1.0)) if size > 0 else 0.5

    def totals(self, group: int, share: Floats) -> Floats:
        """yes·(1 − π) − no·π."""
        return self.yes[group] * (1 - share) - self.no[group] * share


@dataclass(frozen=True)
class Relation:
    """What a hypothesis says: the second proportion is factor·π + gap."""

    factor: float
    gap: float

    def second(self, first: Any) -> Any:
        return np.clip(self.factor * first + self.gap, 0.0, 1.0)

    @property
    def ends(self) -> tuple[float, float]:
        """The first proportions for which the second one is a proportion too."""
        return max(0.0, -self.gap / self.factor), min(1.0, (1 - self.gap) / self.factor)


def largest_tails(counts: Counts, relation: Relation, miss: float) -> tuple[float, float]:
    """The largest probabilities of a difference at least as large, and at most as large, over all unknowns that fit the
    counts except with probability `miss`.
    """
    first, sizes = unknowns(counts, relation, miss)
    shares = np.stack([first, relation.second(first)])
    found = []
    for sign in (1.0, -1.0):
        weights = sign * weights_of(shares, sizes, relation.factor, sign, counts.noise)
        total = weights[0] * counts.totals(0, shares[0]) + weights[1] * counts.totals(1, shares[1])
        found.append(float(tails(total, shares, sizes, weights, counts.noise).max()))
    return found[0], found[1]


def weights_of(shares: Floats, sizes: Floats, factor: float, sign: float, noise: Noise) -> Floats:
    """The weights of the two totals: one over the sizes, for the difference, less a part for the common proportion.

    A common proportion with a larger variance makes the difference more variable. The part takes off what that moves
    the limit of a test, two deviations out on the side of `sign`: so the p-value depends little on the proportion.
    """
    sizes = np.maximum(sizes, 1.0)
    plain = np.stack([-factor / sizes[0], 1 / sizes[1]])
    one = shares * (1 - shares)
    variance = (plain**2 * (sizes * one + (1 - 2 * one) * noise.variance)).sum(0)
    rising = factor**2 * (1 - 2 * shares[0]) / sizes[0] + factor * (1 - 2 * shares[1]) / sizes[1]
    slope = rising / np.sqrt(np.maximum(variance, 1e-300)) / (sizes[0] + factor * sizes[1])
    most = 0.5 * np.abs(plain).min(0)
    return np.asarray(plain - sign * np.clip(slope, -most, most))


def unknowns(counts: Counts, relation: Relation, miss: float) -> tuple[Floats, Floats]:
    """First proportions and sizes of both groups to try: every combination of some of each."""
    reach = reach_of_size(counts.noise, miss / 3)
    listed = []
    for group in (0, 1):
        low, high = max(0.0, np.ceil(counts.size(group) - reach)), max(0.0, np.floor(counts.size(group) + reach))
        number = 2 if high - low < high / 10 else 3 if high - low < high / 2 else 5
        listed.append(np.unique(np.rint(np.linspace(low, high, number))))
    low, high = _first_shares(counts, relation, miss / 3)
    shares = np.linspace(low, high, 5 if high - low < 0.1 else 9 if high - low < 0.5 else 13)
    grids = np.meshgrid(shares, *listed, indexing="ij")
    return grids[0].reshape(-1), np.stack([grids[1].reshape(-1), grids[2].reshape(-1)])


def _first_shares(counts: Counts, relation: Relation, miss: float) -> tuple[float, float]:
    """Ends of the first proportion: those for which the total of both groups together is not too far from 0."""
    least, most = relation.ends
    sizes = max(counts.size(0), 1.0), max(counts.size(1), 1.0)
    slope = sizes[0] + relation.factor * sizes[1]
    best = float(np.clip((counts.yes[0] + counts.yes[1] - relation.gap * counts.size(1)) / slope, least, most))

    def end(sign: float) -> float:
        at = best
        for _ in range(4):  # the variance is that of the proportion at the end itself
            second = float(relation.second(at))
            variance = sizes[0] * at * (1 - at) + sizes[1] * second * (1 - second)
            scales = np.array([1 - at, at, 1 - second, second])
            at = float(np.clip(best + sign * _reach(variance, scales, counts.noise, miss) / slope, least, most))
        return at

    return end(-1.0), end(1.0)


def _reach(variance: float, scales: Floats, noise: Noise, miss: float) -> float:
    """Chernoff's bound of what a centered normal variable plus noise with these weights exceeds on either side."""
    variance = variance + (scales**2).sum() * noise.normal**2
    # beyond the best rate of the normal part alone, no rate is better
    rate = np.sqrt(-2 * np.log(miss / 2) / max(variance, 1e-9)) * np.linspace(0.02, 1, 50)
    if noise.laplace:
        rate = np.minimum(rate, 0.98 / (noise.laplace * scales.max()))
    log = rate**2 * variance / 2 - np.log1p(-((noise.laplace * scales[:, None] * rate) ** 2)).sum(0)
    return float(((log - np.log(miss / 2)) / rate).min())


def tails(total: Floats, shares: Floats, sizes: Floats, weights: Floats, noise: Noise) -> Floats:
    """The probability that Σ weight·(binomial − its mean + noise) exceeds `total`, from the characteristic function.

    `shares`, `sizes` and `weights` have a row for each of the groups, and a column for each probability.
    """
    scales = np.concatenate([np.abs(weights) * (1 - shares), np.abs(weights) * shares])
    sampled = (weights**2 * sizes * shares * (1 - shares)).sum(0)
    deviation = np.sqrt(sampled + (scales**2).sum(0) * noise.variance)
    # as far as the smoothest factor of the function lasts: four Laplace factors are below 1e-5 at 45 deviations
    far = 9 / np.sqrt(np.maximum(sampled / deviation**2, 0.04)).min() if not noise.normal else 9.0
    # noise well below 1 leaves the steps of small counts visible: over the peaks of their lattice too
    peaks = 5 * np.pi * float((deviation / np.abs(weights).min(0)).max())
    if noise.laplace + noise.normal < 1 and peaks < _MOST * _STEP:
        far = max(far, peaks)
    at = (np.arange(min(_MOST, int(far / _STEP) + 1)) + 0.5) * _STEP
    point = at[None, :] / deviation[:, None]
    log = np.zeros(point.shape, dtype=np.complex128)
    for weight, share, size in zip(weights, shares, sizes, strict=True):
        turn = weight[:, None] * point
        moved = share[:, None] * (-2 * np.sin(turn / 2) ** 2 + 1j * np.sin(turn))
        log += size[:, None] * (np.log1p(moved) - 1j * share[:, None] * turn)
    curve = np.exp(log)
    for scale in scales:
        square = (scale[:, None] * point) ** 2
        curve /= 1 + noise.laplace**2 * square
        if noise.normal:
            curve *= np.exp(-0.5 * noise.normal**2 * square)
    # the sum repeats itself at 2π/step; 15 deviations are exceeded with less than _SURE
    away = np.clip(total / deviation, -15.0, 15.0)
    turned = np.exp(-1j * at * away[:, None]) * curve
    found = np.clip(0.5 + (turned.imag / at).sum(1) * (_STEP / np.pi), _SURE, 1 - _SURE)
    return np.where(away >= 15, _SURE, np.where(away <= -15, 1 - _SURE, found))


# --- what is reported ------------------------------------------------------------------------------------------------


def _p_value(counts: Counts, relation: Relation, alternative: Alternative) -> float:
    def largest(level: float) -> float:
        upper, lower = largest_tails(counts, relation, SPENT * level)
        return {"greater": upper, "less": lower, "two-sided": 2 * min(upper, lower)}[alternative]

    return smallest_level(largest)


def _kept(
    counts: Counts, relation: Callable[[float], Relation], ends: tuple[float, float], best: float, confidence: float
) -> tuple[float, float]:
    """The ends of the hypotheses that neither one-sided test rejects."""
    miss = 1 - confidence
    level = (1 - SPENT) * miss / 2

    def upper(value: float) -> bool:
        return largest_tails(counts, relation(value), SPENT * miss)[0] > level

    def lower(value: float) -> bool:
        return largest_tails(counts, relation(value), SPENT * miss)[1] > level

    return (
        ends[0] if upper(ends[0]) else bisect_between(upper, best, ends[0], _HALVED),
        ends[1] if lower(ends[1]) else bisect_between(lower, best, ends[1], _HALVED),
    )


@dataclass(frozen=True)
class ShareGap:
    """The second proportion less the first. `of_rows` says what follows for the rows themselves."""

    counts: Counts
    of_rows: Any

    @property
    def value(self) -> float:
        return self.counts.share(1) - self.counts.share(0)

    def p_value(self, null: float, alternative: Alternative) -> float:
        return p_outside(null > 1, alternative) if abs(null) > 1 else self._p_of_gap(null, alternative)

    def _p_of_gap(self, gap: float, alternative: Alternative) -> float:
        return _p_value(self.counts, Relation(1.0, gap), alternative)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        if not sampled:
            return self.of_rows.interval(confidence, sampled=False)  # type: ignore[no-any-return]
        return _kept(self.counts, lambda gap: Relation(1.0, gap), (-1.0, 1.0), self.value, confidence)


@dataclass(frozen=True)
class ShareRatio:
    """The second proportion divided by the first."""

    counts: Counts

    @property
    def value(self) -> float:
        return self.counts.share(1) / max(self.counts.share(0), 1 / _LARGEST)

    def p_value(self, null: float, alternative: Alternative) -> float:
        if null <= 0:
            return 0.0 if null < 0 and alternative != "less" else 1.0
        return _p_value(self.counts, Relation(null, 0.0), alternative)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        """In the population. For the rows themselves nothing narrower is computed."""
        most = np.log(_LARGEST)
        low, high = _kept(
            self.counts,
            lambda log: Relation(float(np.exp(log)), 0.0),
            (-most, most),
            float(np.clip(np.log(max(self.value, 1 / _LARGEST)), -most, most)),
            confidence,
        )
        return (0.0 if low == -most else float(np.exp(low)), np.inf if high == most else float(np.exp(high)))
