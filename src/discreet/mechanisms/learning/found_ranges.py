"""How the range of a column is found privately: from noisy counts in public bins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.deviations import allowed_move, calibrate_noise, within_deviations
from discreet.mechanisms.learning.seen_ranges import EVEN, FIRST, LAST, SIZES, Cut, declared_cut, seen_sizes
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import is_pure, plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.octaves import even_places, octave_places
from discreet.rows.unbounded import UnboundedRows

Floats = NDArray[np.float64]
BINNED = 2
"""How often a range is cut for a model over bins: if it were too wide, all numbers would be in a few bins."""


@dataclass(frozen=True, kw_only=True)
class FoundRanges:
    """Releases a range (low, high) for each column, from noisy histograms of each column.

    The first counts numbers by their size, in bins that double, and finds the largest size that is not rare. The next
    cuts the range up to that size into equal bins, and keeps the part in which the numbers are. If that is narrow, the
    one after it cuts this part again, and if not, it counts the same bins once more: `cuts` such histograms are drawn
    in all. Only noisy counts are used. `weights` has an integer for each column, by which its counts are multiplied
    before the noise: a column with a larger weight is seen more clearly. `stddev` is that of Gaussian noise; `scale` is
    for Laplace noise instead. Ranges end at doubles of a public grid. One row cannot move an end by itself, whatever
    number it holds. A column with a range in `outer` needs no sizes: the part of that range in which the numbers are is
    found. The result is a dict: the `ranges`, columns × 2.

    Models that scale columns cut once, because each further histogram costs all of them some noise. Models over bins
    cut twice, because a range that is much too wide puts all numbers into a few bins: decision 0029.

    Promise: a row is in at most one bin of each column, so one histogram of all columns moves by w_j in column j: √Σw²
    in L2, Σw in L1. A replaced row leaves one bin and enters another: √2 and 2 times as much. k rows move it k times as
    far. The bins of a histogram depend on those before only by what was released, so all compose: their squared
    distances add, or their ε.
    Error: the two-sided tail of the noise of all counts, multiplied by their weights.
    """

    weights: tuple[int, ...]
    stddev: Number | None = None
    scale: Number | None = None
    outer: tuple[tuple[float, float] | None, ...] = ()
    cuts: int = 1

    def __post_init__(self) -> None:
        if not self.weights:
            raise InvalidArgument("Give a weight for each column.", code="empty")
        for weight in self.weights:
            check_count(weight, "weights")
        check_count(self.cuts, "cuts")
        if self.outer and len(self.outer) != len(self.weights):
            raise InvalidArgument("Give an outer range, or None, for each column.", code="wrong-shape")
        if (self.stddev is None) == (self.scale is None):
            raise InvalidArgument(
                "Give either stddev or scale.",
                code="missing-argument" if self.stddev is None else "conflicting-arguments",
            )
        check_positive(self._size, "noise")

    @property
    def _size(self) -> Fraction:
        return exactly(self.scale if self.stddev is None else self.stddev)

    @property
    def _step(self) -> Fraction:
        return min(Fraction(1), step_for(self._size))

    @property
    def _ends(self) -> tuple[tuple[float, float] | None, ...]:
        return self.outer or (None,) * len(self.weights)

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all histograms together, in deviations or scales of the noise."""
        rows, ends = check_rows(unit, rows_per_person), 2 if _replaces(unit) else 1
        drawn = [
            weight
            for weight, outer in zip(self.weights, self._ends, strict=True)
            for _ in range(_histograms(outer, self.cuts))
        ]
        many = ends * len(drawn) * rows
        if self.stddev is None:
            return Sensitivity(ends * rows * Fraction(sum(drawn)) / self._size, "L1", unit, dimension=many)
        moved = ends * Fraction(sum(weight**2 for weight in drawn))
        return Sensitivity(rows * sqrt_up(moved / self._size**2), "L2", unit, dimension=many)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        if self.stddev is None:
            bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L1")
            return Pure(epsilon=tidy(significant(bound.exact, up=True)), protects=bound.unit)
        # a plain number does not say how many counts move
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2", self._every)
        return within_deviations(bound.exact**2, (self._size / self._step) ** 2, bound.dimension, bound.unit)

    @property
    def _every(self) -> int:
        return len(self.weights) * (SIZES + self.cuts * EVEN)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, unit: Unit | None = None, rows_per_person: int = 1, **columns: Any
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace for pure ε, otherwise Gaussian."""
        if is_pure(guarantee):
            return cls.for_share(guarantee, share=1, unit=unit, rows_per_person=rows_per_person, **columns)

        def make(size: Fraction) -> Any:
            return cls(stddev=tidy(significant(size, up=True)), **columns)

        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    @classmethod
    def for_share(
        cls, guarantee: Guarantee, *, share: Number, unit: Unit | None, rows_per_person: int = 1, **columns: Any
    ) -> Self:
        """The noise that takes this share of `guarantee`: of the squared sensitivity, or of ε if it is pure."""
        part = exactly(share)
        if is_pure(guarantee):
            moved = cls(scale=1, **columns).sensitivity(unit, rows_per_person).exact
            return cls(scale=tidy(significant(moved / (part * exactly(guarantee.epsilon)), up=True)), **columns)
        moved = cls(stddev=1, **columns).sensitivity(unit, rows_per_person).exact
        stddev = moved * sqrt_up(1 / part) / Fraction(allowed_move(guarantee))
        return cls(stddev=tidy(significant(stddev, up=True)), **columns)

    def error(self, confidence: float) -> Accuracy:
        """How far all counts of all histograms may be from the true ones, multiplied by their weights."""
        return self._noise.error(confidence, values=self._every)

    @property
    def _noise(self) -> Gaussian | Laplace:
        if self.stddev is None:
            return Laplace(scale=tidy(self._size), step=tidy(self._step))
        return Gaussian(stddev=tidy(self._size), step=tidy(self._step))

    def _draw(self, value: UnboundedRows) -> dict[str, Floats]:
        if value.columns != len(self.weights):
            raise InvalidArgument(f"The rows must have {len(self.weights)} columns.", code="wrong-shape")
        weights = np.array(self.weights)
        columns = self._sizes(value)
        for _ in range(self.cuts):
            columns = [cut.narrowed() for cut in columns]
            counts = value.counts(_equal_bins(columns), EVEN)
            columns = [cut.with_counts(one) for cut, one in zip(columns, self._noisy(counts, weights), strict=True)]
        return {"ranges": np.array([cut.kept() for cut in columns])}

    def _sizes(self, value: UnboundedRows) -> list[Cut]:
        """What is to be cut of each column: the sizes that the first histogram shows, or the declared range."""
        deviations = self._noise.deviation / np.array(self.weights)
        wanted = [place for place, outer in enumerate(self._ends) if outer is None]
        counts = value.counts(_place_sizes, SIZES)[wanted] if wanted else np.zeros((0, SIZES), dtype=np.int64)
        sizes = dict(zip(wanted, self._noisy(counts, np.array(self.weights)[wanted]), strict=True))
        return [
            seen_sizes(sizes[place], float(deviation)) if outer is None else declared_cut(outer, float(deviation))
            for place, (outer, deviation) in enumerate(zip(self._ends, deviations, strict=True))
        ]

    def _noisy(self, counts: NDArray[np.int64], weights: NDArray[np.int64]) -> Floats:
        drawn = self._noise._draw((counts * weights[:, None]).reshape(-1))
        return np.asarray(drawn, dtype=np.float64).reshape(counts.shape) / weights[:, None]


def _histograms(outer: tuple[float, float] | None, cuts: int) -> int:
    """How many histograms of a column are released."""
    return cuts + (outer is None)


def _replaces(unit: Unit | None) -> bool:
    return unit is not None and unit.neighbors == "replace"


def _place_sizes(cells: Floats) -> NDArray[np.int64]:
    return octave_places(cells, FIRST, LAST)


def _equal_bins(columns: list[Cut]) -> Any:
    low, high, bins = (np.array([getattr(cut, name) for cut in columns]) for name in ("low", "high", "bins"))
    return lambda cells: even_places(cells, low, high, bins)
