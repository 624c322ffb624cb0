"""Noisy descent over binned columns: ranges that are not declared are found first, within the same release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, significant, sqrt_up
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.learning.descent import Descent
from discreet.mechanisms.learning.descent_noise import StepNoise
from discreet.mechanisms.learning.quantile_ranges import REFINED, QuantileRanges, Tally
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.queries.gradients import gradient_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.binned import BinnedExamples
from discreet.rows.examples import unit_of

Floats = NDArray[np.float64]
SHARE = Fraction(1, 10)
"""What ranges may cost, as a part of the variance that the descent costs."""


class Unbinned(Protocol):
    """Rows whose bins depend on ranges that are found first."""

    unknown: Tally

    def binned(self, ranges: Floats | None) -> BinnedExamples:
        """The rows in the bins of these ranges, for the columns without declared ones."""


@dataclass(frozen=True, kw_only=True)
class AdditiveDescent(Descent):
    """Finds the ranges of `finding.columns` columns, puts all rows into bins, and descends over the bins.

    Without `finding`, all ranges are declared. The default rate leaves noise of about `final_noise` in a weight whose
    bins hold hardly any rows, and less elsewhere. The result is that of `Descent`, with the found `ranges`.

    Promise: the composition of the histograms of `finding`, the count and the noisy sums. The ranges are computed from
    noisy counts alone, and in any bins the contribution of a row to a sum is at most the clip.
    Error: that of `Descent`, for the bins that were found.
    Source: [L10.NPGD]; additive models on bins as in Nori-Caruana-Bu-Shen-Kulkarni 2021.
    """

    final_noise: Number = 0.7
    finding: QuantileRanges | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Gaussian) or self.sampling is not None:
            raise InvalidArgument("An additive model needs Gaussian noise and all rows.", code="part-does-not-fit")

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2", self.dimension)
        steps = super().guarantee(bound)
        return steps if self.finding is None else compose([steps, self.finding.guarantee(self._counts_moved(bound))])

    def _counts_moved(self, bound: Sensitivity) -> Sensitivity:
        """How far the unit of this bound can move the histograms."""
        finding: Any = self.finding
        return finding.sensitivity(bound.unit, rows_of(bound, self.clip))  # type: ignore[no-any-return]

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        find: int = 0,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        **described: Any,
    ) -> Self:
        """The least noise for which everything together keeps `guarantee`. `find` columns have no declared range."""
        plain = super().for_guarantee(guarantee, unit=unit, rows_per_person=rows_per_person, **described)
        if not find:
            return plain
        noise, counting = _calibrated(guarantee, plain, find, unit, rows_per_person)
        return replace(
            plain, noise=noise, counting=counting, finding=ranges_beside(noise, plain.clip, plain.steps, find)
        )

    def response(self, size: float, curvature: float) -> Floats:
        """How far the noise of one step moves the released average along a direction of this curvature of the mean
        loss, step by step, for a noise of 1 in the mean gradient.
        """
        rate, momentum, first = self.rate(size), float(exactly(self.momentum)), self._first()
        place, speed = np.zeros(self.steps), np.zeros(self.steps)
        total, kept = np.zeros(self.steps), 0
        for step in range(self.steps):
            speed = momentum * speed + curvature * place
            speed[step] += 1.0
            place = place - rate * speed
            if first <= step + 1 < self.steps or self.steps == 1:
                total, kept = total + place, kept + 1
        return total / max(kept, 1) if kept else place

    def _draw(self, value: Unbinned) -> dict[str, Any]:
        ranges = None if self.finding is None else self.finding._draw(value.unknown)["ranges"]
        return super()._draw(value.binned(ranges)) | {"ranges": ranges}


def rows_of(bound: Sensitivity, clip: Number) -> int:
    """How many rows a unit has that moves a sum this far: one for each clip, or for two if rows are replaced."""
    clips = math.ceil(bound.exact / exactly(clip))
    return -(-clips // 2) if bound.replaced else clips


def ranges_beside(noise: Gaussian, clip: Number, steps: int, columns: int) -> QuantileRanges:
    """Histograms that cost `SHARE` of what so many steps with this noise cost."""
    squared = (noise._size / exactly(clip)) ** 2 / steps  # of all steps together, over that of a row
    deviation = tidy(significant(sqrt_up(squared * (1 + REFINED) * columns / SHARE), up=True))
    return QuantileRanges(columns=columns, coarse=deviation, fine=deviation)


def calibrate_with_ranges(make: Callable[[Fraction], Any], bound: Sensitivity, guarantee: Guarantee, alone: Any) -> Any:
    """The mechanism of the family `make(size of the noise)` with the least noise, if `alone` is what it would be
    without ranges that are found as well.
    """

    def keeps(m: Any) -> bool:
        return meets(m.guarantee(bound), guarantee)

    # a replaced row moves a sum twice as far as an added one, and counts √2 times as far
    start = alone._size * sqrt_up(1 + SHARE / (2 if bound.replaced else 1))
    for more in (0, Fraction(1, 10**8), Fraction(1, 10**6), Fraction(1, 10**4)):
        if keeps(made := make(significant(start * (1 + more), up=True, digits=10))):
            return made
    return least_noise(make, keeps, significant(start, up=True))


@lru_cache(maxsize=64)
def _calibrated(
    guarantee: Guarantee, plain: AdditiveDescent, columns: int, unit: Unit | None, rows: int
) -> tuple[Gaussian, Gaussian | None]:
    """The noise of a step and of the count, if the ranges of this many columns are found as well."""
    bound = gradient_sensitivity(plain.clip, plain.dimension, unit, rows)
    drawn = StepNoise(bound, plain.clip, plain.steps, None, plain.size is None)

    def make(size: Fraction) -> Any:
        noise = Gaussian._make(size, unit_of(plain.clip))
        finding = ranges_beside(noise, plain.clip, plain.steps, columns)
        return replace(plain, noise=noise, counting=drawn.counting(noise, pure=False), finding=finding)

    made = calibrate_with_ranges(make, bound, guarantee, plain.noise)
    return made.noise, made.counting
