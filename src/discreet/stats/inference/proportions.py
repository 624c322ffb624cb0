"""Exact inference about one proportion: of a noisy count among a public number of rows, and of two noisy counts.

If rows are replaced, their number n is public, and the noisy count of successes is all that is released. Its noise is
whole-number noise plus a uniform part, which makes the law of the count continuous. With Laplace noise, the one-sided
test is the uniformly most powerful one among all private tests (Awan and Slavković 2018).

If rows are added or removed, two noisy counts are released, of successes and of the others. For the proportion π, the
total yes·(1 − π) − no·π is a centered binomial variable plus noise. Only n is unknown in its law. Every n that fits the
released counts is tried, and the largest p-value counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.stats.inference.means import MeanOf, p_outside
from discreet.stats.inference.noisy_shares import Alternative, Noise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SPENT = 0.02
"""The part of a level that pays for the confidence set of what is unknown under the hypothesis."""
_ALL, _SOME, _FEW = 33, 9, 3
"""How many numbers of rows are tried: all of a small set, and some of a large one, in which p-values change little."""
_STEPS = 40


# --- laws ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmoothedNoise:
    """Whole-number noise plus a uniform part from −½ to ½: Laplace of this scale, or normal with this deviation."""

    laplace: float = 0.0
    normal: float = 0.0

    @classmethod
    def of(cls, mechanism: Laplace | Gaussian) -> SmoothedNoise:
        """The law of a mechanism's noise on whole numbers, made continuous."""
        size = float(exactly(getattr(mechanism, mechanism.size_field)))
        return cls(laplace=size) if isinstance(mechanism, Laplace) else cls(normal=size)

    def below(self, at: Any) -> Floats:
        """The probability that the noise is at most this. Small values keep their relative accuracy."""
        size = -np.abs(np.asarray(at, dtype=np.float64))
        nearest = np.rint(size)
        before, here = self._at(nearest)
        lower = before + (size - nearest + 0.5) * here
        return np.where(np.asarray(at) > 0, 1 - lower, lower)

    def _at(self, whole: Floats) -> tuple[Floats, Floats]:
        """For numbers k ≤ 0: the probability of less than k, and that of k."""
        if self.laplace:
            rate = 1 / self.laplace
            power = np.exp(rate * whole)
            return power * np.exp(-rate) / (1 + np.exp(-rate)), power * np.tanh(rate / 2)
        mass, before = self._table
        place = np.minimum(-whole, len(mass) - 1).astype(np.int64)
        inside = -whole < len(mass)
        return np.where(inside, before[place], 0.0), np.where(inside, mass[place], 0.0)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """The probabilities of 0, −1, −2, … and of anything less than each, for normal noise."""
        last = int(12 * self.normal) + 40
        weights = np.exp(-0.5 * (np.arange(last + 1) / self.normal) ** 2)
        mass = weights / (2 * weights.sum() - 1)
        return mass, np.concatenate([np.cumsum(mass[::-1])[-2::-1], [0.0]])

    def quantile(self, miss: float) -> float:
        """What the noise exceeds on one side with this probability."""
        high = 1.0
        while self.below(-high) > miss:
            high *= 2
        return bisect_between(lambda at: float(self.below(-at)) > miss, 0.0, high)


def bisect_between(holds: Callable[[float], bool], inside: float, outside: float, steps: int = _STEPS) -> float:
    """Where a condition that holds at `inside` and not at `outside` changes, from the outer side."""
    for _ in range(steps):
        middle = (inside + outside) / 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return outside


def binomial(rows: Ints, share: float) -> tuple[Floats, Floats]:
    """The possible values of binomial variables, one row for each number of rows, and their probabilities. Values so
    far out that all of them together have less than 1e-15 are left out.
    """
    each = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    center = np.floor(each * share)
    reach = np.ceil(8.5 * np.sqrt(each.max() * share * (1 - share)) + 25)
    at = center + np.arange(-reach, reach + 1)
    inside = (at >= 0) & (at <= each)
    safe = np.clip(at, 0, each)
    log = special.gammaln(each + 1) - special.gammaln(safe + 1) - special.gammaln(each - safe + 1)
    log += special.xlogy(safe, share) + special.xlog1py(each - safe, -share)
    mass = np.where(inside, np.exp(log), 0.0)
    return safe, mass / mass.sum(1, keepdims=True)


def tail_of_two(noise: Noise, at: Any, first: Any, second: Any) -> Floats:
    """The probability that first·N + second·N' exceeds `at`, for independent noise N and N' and weights from 0."""
    at, first, second = (np.asarray(one, dtype=np.float64) for one in (at, first, second))
    if noise.normal:
        return np.asarray(special.ndtr(-at / (noise.normal * np.hypot(first, second))))
    size = np.abs(at)
    wide = noise.laplace * np.maximum(first, second)
    narrow = np.maximum(noise.laplace * np.minimum(first, second), 1e-9 * wide)
    alike = wide - narrow < 1e-4 * wide  # the difference below would lose its digits
    apart = np.where(alike, 1.0, wide**2 - narrow**2)
    upper = (wide**2 * np.exp(-size / wide) - narrow**2 * np.exp(-size / narrow)) / (2 * apart)
    upper = np.where(alike, np.exp(-size / wide) * (0.5 + size / (4 * wide)), upper)
    return np.asarray(np.where(at > 0, upper, 1 - upper))


# --- a public number of rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShareOfKnown:
    """The proportion in the population, from a noisy count of successes among a public number of rows.

    P-values are exact. The two-sided one is twice the smaller of the two one-sided ones. Intervals have all proportions
    that it does not reject.
    """

    count: float
    rows: int
    noise: SmoothedNoise

    @property
    def value(self) -> float:
        return float(np.clip(self.count / max(self.rows, 1), 0.0, 1.0))

    def p_upper(self, share: float) -> float:
        """The probability of a noisy count at least as large, if this is the proportion."""
        at, mass = binomial(np.array([self.rows]), share)
        return float((mass * self.noise.below(at - self.count)).sum())

    def p_lower(self, share: float) -> float:
        """The probability of a noisy count at most as large."""
        at, mass = binomial(np.array([self.rows]), share)
        return float((mass * self.noise.below(self.count - at)).sum())

    def p_value(self, null: float, alternative: Alternative) -> float:
        if not 0 <= null <= 1:
            return p_outside(null > 1, alternative)
        if alternative != "two-sided":
            return self.p_upper(null) if alternative == "greater" else self.p_lower(null)
        return min(1.0, 2 * min(self.p_upper(null), self.p_lower(null)))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        miss = (1 - confidence) / 2
        if not sampled:
            reach, n = self.noise.quantile(miss), max(self.rows, 1)
            low, high = np.clip([(self.count - reach) / n, (self.count + reach) / n], 0.0, 1.0)
            return float(low), float(high)
        return ends_kept(self.p_upper, self.p_lower, miss)


def ends_kept(p_upper: Callable[[float], float], p_lower: Callable[[float], float], miss: float) -> tuple[float, float]:
    """The ends of the proportions that neither one-sided test rejects at the level `miss`."""
    low = 0.0 if p_upper(0.0) > miss else 1.0 if p_upper(1.0) <= miss else None
    high = 1.0 if p_lower(1.0) > miss else 0.0 if p_lower(0.0) <= miss else None
    return (
        bisect_between(lambda share: p_upper(share) > miss, 1.0, 0.0, 28) if low is None else low,
        bisect_between(lambda share: p_lower(share) > miss, 0.0, 1.0, 28) if high is None else high,
    )


# --- an unknown number of rows -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShareOfUnknown:
    """The proportion in the population, from noisy counts of successes and of other rows.

    At the level α, a part of α pays for a confidence set of the number of rows, and the largest p-value over that set
    is compared with the rest. The p-value is the smallest level at which the hypothesis is rejected. `of_rows` says
    what follows for the rows themselves.
    """

    yes: float
    no: float
    noise: Noise
    of_rows: MeanOf

    @property
    def value(self) -> float:
        return self.of_rows.value

    def p_value(self, null: float, alternative: Alternative) -> float:
        if not 0 <= null <= 1:
            return p_outside(null > 1, alternative)

        def largest(level: float) -> float:
            sizes = sizes_near(self.yes + self.no, self.noise, SPENT * level)
            upper = float(tails(self.yes, self.no, sizes, null, self.noise).max())
            lower = float(tails(self.no, self.yes, sizes, 1 - null, self.noise).max())
            return {"greater": upper, "less": lower, "two-sided": 2 * min(upper, lower)}[alternative]

        return smallest_level(largest)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        if not sampled:
            return self.of_rows.interval(confidence, sampled=False)
        miss = 1 - confidence
        sizes = sizes_near(self.yes + self.no, self.noise, SPENT * miss)
        return ends_kept(
            lambda share: float(tails(self.yes, self.no, sizes, share, self.noise).max()),
            lambda share: float(tails(self.no, self.yes, sizes, 1 - share, self.noise).max()),
            (1 - SPENT) * miss / 2,
        )


def sizes_near(total: float, noise: Noise, miss: float) -> Ints:
    """Numbers of rows that fit a noisy number, which is the sum of two noisy counts."""
    reach = reach_of_size(noise, miss)
    low, high = max(0, int(np.ceil(total - reach))), max(0, int(np.floor(total + reach)))
    most = _ALL if high <= 2000 else _SOME if high - low > high / 100 else _FEW
    return np.unique(np.rint(np.linspace(low, high, min(most, high - low + 1)))).astype(np.int64)


def reach_of_size(noise: Noise, miss: float) -> float:
    """How far the sum of two noisy counts may be from the number of rows, except with this probability."""
    high = noise.laplace + noise.normal
    while tail_of_two(noise, np.array(high), 1.0, 1.0) > miss / 2:
        high *= 2
    return bisect_between(lambda at: bool(tail_of_two(noise, np.array(at), 1.0, 1.0) > miss / 2), 0.0, high)


@dataclass(frozen=True)
class TotalLaw:
    """The law of yes·(1 − π) − no·π − slope·(yes + no − n), for each of several numbers of rows n.

    More rows than n make the total more variable. The slope takes off what that moves the limit of a test, two
    deviations out: so the p-value depends little on n, and the largest one is not much larger than the others.
    """

    sizes: Ints
    share: float
    noise: Noise

    @cached_property
    def slope(self) -> Floats:
        one = self.share * (1 - self.share)
        noise = (1 - 2 * one) * self.noise.variance
        return np.asarray(one / np.sqrt(np.maximum(self.sizes * one + noise, 1e-12)))[:, None]

    def total(self, yes: Any, no: Any) -> Floats:
        """One row for each number of rows."""
        more = np.asarray(yes) + np.asarray(no) - np.asarray(self.sizes)[:, None]
        return np.asarray(np.asarray(yes) * (1 - self.share) - np.asarray(no) * self.share - self.slope * more)

    @cached_property
    def _sampled(self) -> tuple[Floats, Floats]:
        at, mass = binomial(self.sizes, self.share)
        return at - np.asarray(self.sizes)[:, None] * self.share, mass

    def beyond(self, total: Floats) -> Floats:
        """The probability of at least this total, one for each number of rows."""
        centered, mass = self._sampled
        return np.asarray((mass * self.noise_beyond(total - centered)).sum(1))

    def noise_beyond(self, at: Floats) -> Floats:
        """The probability that the noise of the total is beyond this."""
        return tail_of_two(self.noise, at, np.abs(1 - self.share - self.slope), self.share + self.slope)

    def critical(self, miss: float) -> Floats:
        """For each number of rows, the total that is exceeded with this probability."""
        low, high = np.full((len(self.sizes), 1), -1.0), np.full((len(self.sizes), 1), 1.0)
        while np.any(wide := self.beyond(high)[:, None] > miss):
            high = np.where(wide, 2 * high, high)
        while np.any(wide := self.beyond(low)[:, None] <= miss):
            low = np.where(wide, 2 * low, low)
        for _ in range(45):
            middle = (low + high) / 2
            over = self.beyond(middle)[:, None] > miss
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return high


def tails(yes: float, no: float, sizes: Ints, share: float, noise: Noise) -> Floats:
    """For each number of rows, the probability of at least the total of these counts."""
    law = TotalLaw(sizes, share, noise)
    return law.beyond(law.total(yes, no))


def rejects_each(yes: Floats, no: Floats, share: float, noise: Noise, *, miss: float, spent: float) -> Any:
    """For each of many pairs of counts, whether the one-sided test rejects that the proportion is at most `share`: at
    the level `miss`, over a confidence set of the number of rows that misses with probability `spent`.
    """
    reach = reach_of_size(noise, spent)
    least, most = max(0, int(np.floor((yes + no).min() - reach))), max(0, int(np.ceil((yes + no).max() + reach)))
    sizes = np.arange(least, most + 1)
    law = TotalLaw(sizes, share, noise)
    fits = np.abs(yes + no - sizes[:, None]) <= reach
    fits[0] |= yes + no + reach < sizes[0]  # no number of rows fits: none at all is closest
    return ((law.total(yes, no) >= law.critical(miss)) | ~fits).all(0)


def smallest_level(largest: Callable[[float], float]) -> float:
    """The smallest level α with largest(α) ≤ (1 − SPENT)·α, where `largest` falls as α grows: the p-value."""
    if largest(1.0) > 1 - SPENT:
        return 1.0
    low, high = -34.0, 0.0  # powers of e
    for _ in range(24):
        middle = (low + high) / 2
        level = float(np.exp(middle))
        low, high = (low, middle) if largest(level) <= (1 - SPENT) * level else (middle, high)
    return float(np.exp(high))
