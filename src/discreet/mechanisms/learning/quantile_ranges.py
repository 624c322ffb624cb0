"""Ranges of columns of numbers, found with three noisy histograms: by size, and then twice in equal parts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.learning.moments import calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

Floats = NDArray[np.float64]
OCTAVES = range(-20, 41, 2)
"""Numbers are first sorted by size: one cell for each factor of 4 on either side of 0, and one around 0."""
LARGEST = 2.0**42
PARTS, REFINED = 32, 2
SEEN, SEEN_FAR, NEAR = 3.0, 5.0, 3
"""A cell is occupied if its noisy count is above `SEEN` deviations, or `SEEN_FAR` if its numbers are more than 4^`NEAR`
times larger or smaller than the most common ones."""
LEAST, MOST = 0.005, 0.15
"""The share of the rows that may lie beyond each end, from much data and from little."""


class Tally(Protocol):
    """Columns of numbers that can be counted."""

    def counts(self, edges: list[Floats]) -> NDArray[np.int64]:
        """How many numbers of each column are in each cell between its edges: columns × cells."""


def octave_edges() -> Floats:
    """The edges between the cells of the first histogram."""
    positive = 2.0 ** np.array(OCTAVES)
    return np.concatenate([-positive[::-1], positive])


@dataclass(frozen=True, kw_only=True)
class QuantileRanges:
    """Finds a range for each of `columns` that holds most of its numbers, with three histograms.

    The first histogram has one cell for each factor of 4 in size. The second divides what the first found into 32
    equal parts, and the third does the same with what the second found. `coarse` is the standard deviation of the noise
    of the first, and `fine` that of the others. The result is a dict: the
    `ranges`, columns × 2. A column with hardly any numbers gets the range of its largest noisy count.

    Promise: a row is in at most one cell of each column and histogram. So it moves the counts by at most
    columns·(1/coarse² + 2/fine²) in squared deviations of the noise, and a replaced row by twice that. The cells of a
    histogram depend on the noisy counts of those before alone. k rows move the counts k times as far.
    Error: none is stated, because how much of a column lies outside its range depends on the data.
    """

    columns: int
    coarse: Number
    fine: Number

    def __post_init__(self) -> None:
        check_count(self.columns, "columns")
        check_positive(self.coarse, "coarse")
        check_positive(self.fine, "fine")

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all counts together, in deviations of their noise."""
        squared = self.columns * (1 / exactly(self.coarse) ** 2 + REFINED / exactly(self.fine) ** 2)
        if unit is not None and unit.neighbors == "replace":
            squared *= 2
        rows = check_count(rows_per_person, "rows_per_person")
        return Sensitivity(rows * sqrt_up(squared), "L2", unit=unit, dimension=self._every)

    @property
    def _every(self) -> int:
        return self.columns * (2 * len(OCTAVES) + 1 + REFINED * PARTS)

    def _step(self, deviation: Number) -> Fraction:
        return min(Fraction(1), step_for(exactly(deviation)))

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        coarsest = min((exactly(one) / self._step(one)) ** 2 for one in (self.coarse, self.fine))
        return within_deviations(bound.exact**2, coarsest, self._every, bound.unit)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, columns: int, unit: Unit | None = None, rows_per_person: int = 1
    ) -> Self:
        """The least noise that keeps `guarantee`, the same in all histograms."""

        def make(scale: Fraction) -> Any:
            deviation = tidy(significant(scale, up=True))
            return cls(columns=columns, coarse=deviation, fine=deviation)

        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> Accuracy:
        why = "how much of a column lies outside its range depends on the data"
        return Accuracy(amount=None, confidence=check_confidence(confidence), of="every value", reason=why)

    def _draw(self, value: Tally) -> dict[str, Any]:
        octaves = [octave_edges()] * self.columns
        ranges = [_occupied(counts, float(exactly(self.coarse))) for counts in self._noisy(value, octaves, self.coarse)]
        deviation = float(exactly(self.fine))
        for _ in range(REFINED):
            parts = [np.linspace(low, high, PARTS + 1)[1:-1] for low, high in ranges]
            noisy = self._noisy(value, parts, self.fine)
            ranges = [_bulk(counts, low, high, deviation) for counts, (low, high) in zip(noisy, ranges, strict=True)]
        return {"ranges": np.array(ranges)}

    def _noisy(self, value: Tally, edges: list[Floats], noise: Number) -> Floats:
        return noisy_units(value.counts(edges), Fraction(1), self._step(noise), exactly(noise) ** 2)


def _occupied(counts: Floats, deviation: float) -> tuple[float, float]:
    """From the first to the last cell that is clearly not empty, by noisy counts alone."""
    ends = np.concatenate([[-LARGEST], octave_edges(), [LARGEST]])
    middle = len(OCTAVES)  # the cell around 0
    sizes = np.abs(np.arange(len(counts)) - middle)
    common = int(np.where(sizes > 0, counts, -np.inf).argmax())
    near = (np.abs(sizes - sizes[common]) <= NEAR) | (sizes == 0)
    seen = np.flatnonzero(counts > np.where(near, SEEN, SEEN_FAR) * deviation)
    first, last = (seen[0], seen[-1]) if len(seen) else (common, common)
    return float(ends[first]), float(ends[last + 1])


def _bulk(counts: Floats, low: float, high: float, deviation: float) -> tuple[float, float]:
    """The range without its thin ends, by noisy counts of equal parts alone.

    Beyond each end lies about a share q of the rows, which grows with the noise. The range is then extended as if the
    rows were evenly spread.
    """
    below = np.concatenate([[0.0], np.maximum.accumulate(np.cumsum(counts))])
    whole = max(float(below[-1]), 1.0)
    share = float(np.clip(2 * deviation * PARTS**0.5 / whole, LEAST, MOST))
    first = int(np.searchsorted(below, share * whole, side="right")) - 1
    last = int(np.searchsorted(below, (1 - share) * whole, side="left"))
    first, last = min(first, PARTS - 1), max(last, first + 1)
    part = (high - low) / PARTS
    more = share / (1 - 2 * share) * (last - first) * part if share > LEAST else 0.0
    return max(low, low + first * part - more), min(high, low + last * part + more)
