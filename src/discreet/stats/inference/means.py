"""Inference about means: of one group, and the difference of two.

A value x in a range is the part t = (x − low)/(high − low) of the way from one place to another. The mean m of t over
a group is where the total of t − m over its rows is 0, so a hypothesis about m is tested by that total. An interval has
all hypotheses that are not rejected (Fieller). Nothing is divided by a noisy count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.common_means import p_of_two, table_of
from discreet.stats.inference.noisy_shares import Alternative, NoisyShares, farthest, p_of, values_kept

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanOf:
    """The mean of t over the rows of one group. `member` is 1 at the places of the group, and `part` is t there."""

    shares: NoisyShares
    member: Floats
    part: Floats
    ends: tuple[float, float] = (0.0, 1.0)

    def less(self, mean: Any) -> Floats:
        """The function t − mean in the group, and 0 outside."""
        return self.member * (self.part - np.asarray(mean, dtype=np.float64)[..., None])

    @cached_property
    def size(self) -> Any:
        """The noisy number of rows."""
        return self.shares.total(self.member)

    @cached_property
    def size_is_known(self) -> Any:
        """Whether the number of rows is far above its noise."""
        return self.shares.is_known(self.member)

    @cached_property
    def mean(self) -> Any:
        """The estimated mean of t."""
        total = self.shares.total(self.member * self.part)
        return np.where(self.size > 0, np.clip(total / np.maximum(self.size, 1e-9), 0.0, 1.0), 0.5)

    def p_of_mean(self, mean: Any, alternative: Alternative = "two-sided", *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that the mean of t is this."""
        rest = self.less(mean)
        law = self.shares.error(rest, sampled=sampled)
        return p_of(self.shares.total(rest), law, alternative, farthest(rest, alternative))

    # --- in the unit of the column ------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        return float(self.ends[0] + (self.ends[1] - self.ends[0]) * self.mean)

    def p_value(self, null: float, alternative: Alternative) -> float:
        mean = (null - self.ends[0]) / (self.ends[1] - self.ends[0])
        if not 0 <= mean <= 1:  # no mean of such values
            return p_outside(mean > 1, alternative)
        return float(self.p_of_mean(mean, alternative))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        low, width = self.ends[0], self.ends[1] - self.ends[0]
        found = values_kept(
            lambda mean: self.p_of_mean(mean, sampled=sampled), (0.0, 1.0), float(self.mean), 1 - confidence
        )
        return low + width * found[0], low + width * found[1]


@dataclass(frozen=True)
class DifferenceOf:
    """The mean of t in the second group less that in the first."""

    first: MeanOf
    second: MeanOf

    @property
    def shares(self) -> NoisyShares:
        """What was released."""
        return self.first.shares

    def p_of_gap(self, gap: Any, alternative: Alternative = "two-sided", *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that the means of t differ by `gap`."""
        known = np.asarray(self.first.size_is_known & self.second.size_is_known)
        gap = np.asarray(gap, dtype=np.float64)
        if known.all():
            return self._p_of_both(gap, alternative, sampled)
        if not known.any():
            return self._p_of_each(gap, alternative, sampled)
        found = np.empty(known.shape)  # several releases at once, some of each kind
        for some in (known, ~known):
            found[some] = self._only(some).p_of_gap(gap[some], alternative, sampled=sampled)
        return found

    def _only(self, some: Any) -> DifferenceOf:
        """The same for some of several releases."""
        shares = replace(self.shares, numbers=self.shares.numbers[some])
        return DifferenceOf(replace(self.first, shares=shares), replace(self.second, shares=shares))

    def _p_of_both(self, gap: Floats, alternative: Alternative, sampled: bool) -> Floats:
        """From the difference of the two means, with the error that it has if the hypothesis is true."""
        rest = self.rest(gap)
        law = self.shares.error(rest, sampled=sampled)
        return p_of(self.shares.total(rest), law, alternative, farthest(rest, alternative))

    def rest(self, gap: Floats) -> Floats:
        """The function whose total is the difference of the means less `gap`, with the mean that fits best."""
        sizes = np.maximum(self.first.size, 1.0), np.maximum(self.second.size, 1.0)
        pooled = (sizes[0] * self.first.mean + sizes[1] * (self.second.mean - gap)) / (sizes[0] + sizes[1])
        mean = np.clip(pooled, np.maximum(0.0, -gap), np.minimum(1.0, 1 - gap))
        rest = self.second.less(mean + gap) / np.asarray(sizes[1])[..., None]
        return np.asarray(rest - self.first.less(mean) / np.asarray(sizes[0])[..., None])

    def _p_of_each(self, gap: Floats, alternative: Alternative, sampled: bool) -> Floats:
        """From each mean by itself, for the pair of means that fits best: right even if a group is empty."""
        flipped: dict[Alternative, Alternative] = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
        one = table_of(self.first, flipped[alternative], sampled=sampled)
        return p_of_two(one, table_of(self.second, alternative, sampled=sampled), gap)

    # --- in the unit of the column ------------------------------------------------------------------------------

    @property
    def _width(self) -> float:
        return self.first.ends[1] - self.first.ends[0]

    @property
    def value(self) -> float:
        return float(self._width * (self.second.mean - self.first.mean))

    def p_value(self, null: float, alternative: Alternative) -> float:
        gap = null / self._width
        return p_outside(gap > 1, alternative) if abs(gap) > 1 else float(self.p_of_gap(gap, alternative))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        best = float(self.second.mean - self.first.mean)
        found = values_kept(lambda gap: self.p_of_gap(gap, sampled=sampled), (-1.0, 1.0), best, 1 - confidence)
        return self._width * found[0], self._width * found[1]


def p_outside(above: bool, alternative: Alternative) -> float:
    """The p-value of a hypothesis that no data can fulfil."""
    return float({"two-sided": False, "greater": above, "less": not above}[alternative])


@dataclass(frozen=True)
class Extended:
    """An inference about values that were clipped to a range: its interval is extended by what clipping may hide.

    `hidden` is how far clipping may have moved the value up and down. A hypothesis is tested at the value closest to
    the estimate that clipping could have made of it.
    """

    inner: Any
    hidden: tuple[float, float]

    @property
    def value(self) -> float:
        return float(self.inner.value)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        low, high = self.inner.interval(confidence, sampled=sampled)
        return low - self.hidden[0], high + self.hidden[1]

    def p_value(self, null: float, alternative: Alternative) -> float:
        if alternative == "greater":
            return float(self.inner.p_value(null + self.hidden[0], alternative))
        if alternative == "less":
            return float(self.inner.p_value(null - self.hidden[1], alternative))
        closest = min(max(self.inner.value, null - self.hidden[1]), null + self.hidden[0])
        return float(self.inner.p_value(closest, alternative))
