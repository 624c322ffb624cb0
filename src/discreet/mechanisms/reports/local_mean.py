"""One number reported with deniability: a window of outputs around it is more likely than the rest.

Two outputs and a window of one are Duchi's coin; many outputs are the piecewise mechanism; a coin between the two is
the hybrid. All are discrete laws in rationals, and unbiased: a number between two windows picks one by an exact coin.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, exactly
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import row
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import TIGHT
from discreet.mechanisms.reports.local_records import in_the_middle, places_below
from discreet.mechanisms.reports.local_reports import (
    Places,
    Reports,
    check_promise,
    largest_odds,
    ratio_of,
    report_loss,
    whole_numbers,
    within,
)
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Interval
from discreet.rows.containers import Data

FINEST = 2**30
OUTPUTS = 1024


@dataclass(frozen=True, kw_only=True)
class WindowResponse:
    """Reports one of `outputs` integers. Those in a window, which moves with the number, are `odds` times more likely.

    A number is a place t from 0 to `grid`, that is −1 + 2t/grid. The window starts at t·(outputs − window)/grid, which
    is rounded up or down at random, without bias.

    Promise: (ln odds)-DP for any two places: each is a mixture of two windows, and no mixture tells more.
    Error: unbiased; `variance` is the largest for any number, `reach` the farthest that a report can say.
    Source: Duchi-Jordan-Wainwright 2018 (two outputs); Wang et al. 2019 (piecewise), made discrete here.
    """

    outputs: int = 2
    window: int = 1
    odds: Number
    grid: int = FINEST

    def __post_init__(self) -> None:
        check_count(self.outputs, "outputs", at_least=2)
        check_count(self.grid, "grid")
        if not 1 <= self.window < self.outputs <= 2**20 or self.grid > 2**40:
            raise InvalidArgument(
                "window must be below outputs, outputs at most 2^20, and grid at most 2^40.", code="out-of-range"
            )
        if not 1 < exactly(self.odds, "odds") <= 10**18:
            raise InvalidArgument("odds must be above 1 and at most 1e18.", code="out-of-range")

    @property
    def _moves(self) -> int:
        return self.outputs - self.window

    @property
    def _total(self) -> Fraction:
        return exactly(self.odds) * self.window + self._moves

    @property
    def apart(self) -> Fraction:
        """The probability of the part of the other end's window that lies outside one's own."""
        return min(self.window, self._moves) / self._total

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The exact loss of one report, for the two ends of the range; `sensitivity` is not used."""
        return report_loss((self.odds, self.apart))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, outputs: int = OUTPUTS, sensitivity: SensitivityLike = None
    ) -> Self:
        """The window with the least variance that keeps (ε,δ)."""
        made = [
            largest_odds(guarantee, lambda odds, w=w: cls(outputs=outputs, window=w, odds=odds))  # type: ignore[misc]
            for w in _windows(outputs, guarantee)
        ]
        return min(made, key=lambda one: one.variance)

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact distribution of the report for each position, for `dp.verify`. Coarse grids only."""
        if (self.grid + 1) * self.outputs > 2**18:
            raise InvalidArgument(
                "There are too many places to list. Verify the same law on a coarser grid.", code="too-large"
            )

        def law(t: int) -> dict[Hashable, Fraction]:
            start, rest = divmod(t * self._moves, self.grid)
            up = Fraction(rest, self.grid)
            inside = [(start <= y < start + self.window, start < y <= start + self.window) for y in range(self.outputs)]
            weight = [(1 - up) * low + up * high for low, high in inside]
            return {y: (1 + (exactly(self.odds) - 1) * w) / self._total for y, w in enumerate(weight)}

        return {t: law(t) for t in range(self.grid + 1)}

    @property
    def _scale(self) -> float:
        """A step of the output, in the unit where numbers are from −1 to 1: what makes the report unbiased."""
        return float(2 * self._total / ((exactly(self.odds) - 1) * self.window * self._moves))

    def numbers(self, reports: Reports) -> NDArray[np.float64]:
        """The number that each report stands for, from −reach to reach, unbiased."""
        return np.asarray((reports - (self.outputs - 1) / 2) * self._scale, dtype=np.float64)

    @property
    def reach(self) -> float:
        """The largest number that a report can stand for."""
        return (self.outputs - 1) / 2 * self._scale

    @cached_property
    def second_moments(self) -> NDArray[np.float64]:
        """The mean square of a report for each place of the window."""
        squares = self.numbers(np.arange(self.outputs)) ** 2
        sums = np.concatenate([[0.0], np.cumsum(squares)])
        inside = sums[self.window :] - sums[: -self.window]
        return np.asarray((sums[-1] + float(exactly(self.odds) - 1) * inside) / float(self._total))

    @cached_property
    def variance(self) -> float:
        """The largest variance of a report, whatever the number."""
        return largest_variance(self.second_moments)

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """How far the mean of this many reports may be from the mean of the numbers, from −1 to 1."""
        return mean_error(self.variance, self.reach, confidence, records)

    def valid(self, reports: Data) -> Reports:
        """The reports that can have been made."""
        listed = whole_numbers(reports)
        return listed[within(listed, self.outputs)]

    def _draw(self, value: Any) -> Reports:
        """The reports of positions 0 … grid. A record outside is reported as the middle one."""
        return self._randomize(in_the_middle(places_below(value, self.grid + 1), self.grid))

    def _randomize(self, places: Places) -> Reports:
        count = len(places)
        start, rest = np.divmod(places * self._moves, self.grid)
        start = start + (samplers.uniform_below(self.grid, count) < rest)
        truthful = ~samplers.bernoulli(self._moves / self._total, count)
        inside = start + samplers.uniform_below(self.window, count)
        outside = samplers.uniform_below(self._moves, count)
        return np.where(truthful, inside, np.where(outside < start, outside, outside + self.window))


@dataclass(frozen=True, kw_only=True)
class HybridResponse:
    """Reports a number by `wide` with probability `share`, and otherwise by `coin`. The report says which.

    Promise: (ln odds)-DP, the larger of the two: which one is used does not depend on the number.
    Error: unbiased; the worst variance is below that of either part, whose worst numbers differ.
    Source: Wang et al. 2019, with the share and the window that are best for the discrete laws.
    """

    wide: WindowResponse
    coin: WindowResponse
    share: Number

    def __post_init__(self) -> None:
        if not 0 <= exactly(self.share, "share") <= 1 or self.wide.grid != self.coin.grid:
            raise InvalidArgument(
                "share must be between 0 and 1, and both parts must have the same grid.",
                code="part-does-not-fit" if self.wide.grid != self.coin.grid else "out-of-range",
            )

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, outputs: int = OUTPUTS, sensitivity: SensitivityLike = None
    ) -> Self:
        """The share and the window with the least worst variance that keep (ε,δ)."""
        coin = largest_odds(guarantee, lambda odds: WindowResponse(odds=odds))
        shares = [Fraction(i, 64) for i in range(65)]
        made = []
        for window in _windows(outputs, guarantee):
            wide = largest_odds(guarantee, lambda odds, w=window: WindowResponse(outputs=outputs, window=w, odds=odds))  # type: ignore[misc]
            made += [cls(wide=wide, coin=coin, share=share) for share in shares]
        return min(made, key=lambda one: one.variance)

    @property
    def grid(self) -> int:
        """The places of the range."""
        return self.wide.grid

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The exact loss of one report, for the two ends of the range."""
        share = exactly(self.share)
        parts = [(self.wide, share), (self.coin, 1 - share)]
        return report_loss(*((part.odds, weight * part.apart) for part, weight in parts if weight))

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact distribution of the report for each position. Coarse grids only."""
        wide, coin, share = self.wide.laws(), self.coin.laws(), exactly(self.share)
        return {
            t: {y: share * p for y, p in wide[t].items()}
            | {self.wide.outputs + y: (1 - share) * p for y, p in coin[t].items()}  # type: ignore[operator]
            for t in wide
        }

    def numbers(self, reports: Reports) -> NDArray[np.float64]:
        """The number that each report stands for, unbiased."""
        is_coin = reports >= self.wide.outputs
        return np.where(is_coin, self.coin.numbers(reports - self.wide.outputs), self.wide.numbers(reports))

    @property
    def reach(self) -> float:
        """The largest number that a report can stand for."""
        share = exactly(self.share)
        return max(part.reach for part, weight in ((self.wide, share), (self.coin, 1 - share)) if weight)

    @cached_property
    def variance(self) -> float:
        """The largest variance of a report, whatever the number."""
        share = float(exactly(self.share))
        ends = self.coin.second_moments
        line = ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, len(self.wide.second_moments))
        return largest_variance(share * self.wide.second_moments + (1 - share) * line)

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """How far the mean of this many reports may be from the mean of the numbers, from −1 to 1."""
        return mean_error(self.variance, self.reach, confidence, records)

    def valid(self, reports: Data) -> Reports:
        """The reports that can have been made."""
        listed = whole_numbers(reports)
        return listed[within(listed, self.wide.outputs + self.coin.outputs)]

    def _draw(self, value: Any) -> Reports:
        places = in_the_middle(places_below(value, self.grid + 1), self.grid)
        wide = samplers.bernoulli(exactly(self.share), len(places))
        return np.where(wide, self.wide._randomize(places), self.wide.outputs + self.coin._randomize(places))


@dataclass(frozen=True, kw_only=True)
class LaplaceResponse:
    """Tells a number of `space` with Laplace noise: the nearest of `grid` + 1 equally spaced places, and whole places
    of `noise`.

    Bounds, numbers and noise meet in whole places: a report is a function of place + noise and of nothing else.

    Promise: that of the noise for an answer that moves by `grid` places, any two numbers being neighbors.
    Error: that of the noise, and half a place. Source: [T.4.9], on the lattice.
    """

    space: Interval
    noise: Laplace
    grid: int = FINEST

    def __post_init__(self) -> None:
        check_count(self.grid, "grid")
        if exactly(self.noise.step or 0) != 1:
            raise InvalidArgument("noise must be in whole places: Laplace(scale=…, step=1).", code="part-does-not-fit")

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, space: Interval, calibration: str = TIGHT, sensitivity: SensitivityLike = None
    ) -> Self:
        """The least noise that keeps (ε,δ), or with `calibration="taught"` the documents' [T.4.9]."""
        moved = Sensitivity(FINEST, unit=row(neighbors="replace"), grain=1)
        noise = Laplace.for_guarantee(check_promise(guarantee), sensitivity=moved, step=1, calibration=calibration)
        return cls(space=space, noise=noise)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For the two ends of the range; `sensitivity` is not used."""
        unit = row(neighbors="replace")
        return replace(self.noise.guarantee(Sensitivity(self.grid, unit=unit, grain=1)), protects=unit, trust="local")

    @property
    def place(self) -> float:
        """The width of one place."""
        return float(self.space.diameter / self.grid)

    @property
    def scale(self) -> float:
        """The scale of the noise, in the unit of the numbers."""
        return float(exactly(self.noise.scale) * self.space.diameter / self.grid)

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """How far the mean of this many reports may be from the mean of the numbers."""
        noise = laplace_mean_error(self.scale, confidence, records)
        return Accuracy(amount=float(noise) + self.place / 2, confidence=noise.confidence)

    def _draw(self, value: Any) -> NDArray[np.float64]:
        places = in_the_middle(places_below(value, self.grid + 1), self.grid)
        moved = np.asarray(self.noise._draw(places), dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(float(self.space.ends[0]) + moved * self.place)


def _windows(outputs: int, guarantee: Guarantee) -> list[int]:
    """Windows from half to four times that of Wang et al., a share 1/(e^(ε/2) + 1) of the outputs, to be searched."""
    # with ε = 0 the odds are those that δ allows: searched as for ε = 1
    best = outputs / (math.sqrt(float(ratio_of(check_promise(guarantee).epsilon or 1))) + 1)
    return sorted({min(max(1, round(best * 2 ** (step / 8))), outputs // 2) for step in range(-8, 17)})


def largest_variance(moments: NDArray[np.float64]) -> float:
    """The largest variance of an unbiased report whose mean square is linear between equally spaced numbers of [−1,1].

    Between two of them the variance is a concave parabola; its top is found, and rounded up.
    """
    at = np.linspace(-1, 1, len(moments))
    width, rise = at[1] - at[0], np.diff(moments)
    part = np.clip((rise / (2 * width) - at[:-1]) / width, 0, 1)
    tops = moments[:-1] + part * rise - (at[:-1] + part * width) ** 2
    return float(tops.max()) * (1 + 1e-12)


def mean_error(variance: float, reach: float, confidence: float, records: int) -> Accuracy:
    """Bernstein's or Hoeffding's bound on the mean of independent reports. Both hold for any number of them."""
    sure, count = check_confidence(confidence), check_count(records, "records")
    log = math.log(2 / (1 - sure)) / count
    return Accuracy(amount=min(bernstein(variance, reach + 1, log), reach * math.sqrt(2 * log)), confidence=sure)


def laplace_mean_error(scale: float, confidence: float, records: int) -> Accuracy:
    """Chernoff's bound on the mean of Laplace noise, which also holds for the discrete law.

    ln E e^(uX/b) = −ln(1−u²), at most that for the lattice, and u = (√(1+τ²) − 1)/τ is best at τ scales.
    """
    sure, count = check_confidence(confidence), check_count(records, "records")
    log = math.log(2 / (1 - sure)) / count

    def rare(tau: float) -> bool:
        u = tau / (math.sqrt(1 + tau * tau) + 1)
        return u * tau + math.log1p(-u * u) >= log

    found = bracket(rare, 1.0, least=2.0**-60, most=2.0**60)
    assert found is not None  # the exponent is unbounded
    return Accuracy(amount=bisect(rare, *found) * scale, confidence=sure)
