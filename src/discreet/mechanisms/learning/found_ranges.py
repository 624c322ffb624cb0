"""Automatic ranges of columns: found from noisy counts in public bins, and then used by another mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.conversions import gaussian_delta, largest_mu, smallest_epsilon
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.privacy_loss.derived_pairs import merge_gaussians
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.learning.moments import within_deviations
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import meets, plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.octaves import even_places, octave_end, octave_places
from discreet.rows.unbounded import UnboundedRows

Floats = NDArray[np.float64]
SHARE = Fraction(1, 6)
"""What finding the ranges may cost of a fit: this part of its squared sensitivity in deviations, or of ε where that is
pure."""
NARROWED = Fraction(1, 10)
"""The same, if only the part of a declared range is found."""
FIRST, LAST = -40, 64
"""Sizes from 2^−40 to 2^64 are told apart."""
SIZES = 2 * (LAST - FIRST) + 1
EVEN = 64
"""The most equal bins into which a range is cut to find where its numbers are."""
DEFAULT = (-1.0, 1.0)
"""The range of a column in which noise hides everything."""
SURE, FARTHER = 3.5, 1 / 10
"""How many deviations a count must have to be seen, and how many more for each doubling away from 1."""
NEXT, REACH, FAR = 3.0, 3, 5.5
"""How many are enough for sizes up to `REACH` doublings above one that is seen, and how many for any other."""
WINDOW, NEAR = 4, 6
"""So many neighboring sizes are looked at together, and so many below the largest for the rows of a side."""
CROWD = 3.0
"""Equal bins are so few that each would have this many deviations if rows were spread evenly."""
ROOM = 1.0
"""A bin at an end of the range is kept if it has so many deviations of the noise more."""
RARE = 0.05
"""Or so much of the rows that it would have if all were spread evenly."""

LEAST_SPLIT = 0.1
LOOSE = 1e-3
"""From this step down, a remainder gives up a part of δ, too."""


@dataclass(frozen=True, kw_only=True)
class FoundRanges:
    """Releases a range (low, high) for each column, from two noisy histograms of each column.

    The first counts numbers by their size, in bins that double, and finds the largest size that is not rare. The second
    cuts the range up to that size into equal bins, and keeps the part in which the numbers are. Both use only noisy
    counts. `weights` has an integer for each column, by which its counts are multiplied before the noise: a column with
    a larger weight is seen more clearly. `stddev` is that of Gaussian noise; `scale` is for Laplace noise instead.
    Ranges end at doubles of a public grid. One row cannot move an end by itself, whatever number it holds. A column
    with a range in `outer` needs only the second histogram: the part of that range in which the numbers are.

    Promise: a row is in at most one bin of each column, so one histogram of all columns moves by w_j in column j: √Σw²
    in L2, Σw in L1. A replaced row leaves one bin and enters another: √2 and 2 times as much. k rows move it k times as
    far. The second histogram depends on the first only by what was released, so both compose: their squared distances
    add, or their ε.
    Error: the two-sided tail of the noise of all counts, multiplied by their weights.
    """

    weights: tuple[int, ...]
    stddev: Number | None = None
    scale: Number | None = None
    outer: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.weights:
            raise InvalidArgument("Give a weight for each column.", code="empty")
        for weight in self.weights:
            check_count(weight, "weights")
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
        rows, ends = check_count(rows_per_person, "rows_per_person"), 2 if _replaces(unit) else 1
        drawn = [
            weight for weight, outer in zip(self.weights, self._ends, strict=True) for _ in range(_histograms(outer))
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
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        return within_deviations(bound.exact**2, (self._size / self._step) ** 2, bound.dimension, bound.unit)

    @classmethod
    def for_share(
        cls,
        guarantee: Approx,
        *,
        weights: tuple[int, ...],
        share: Number,
        unit: Unit | None,
        rows_per_person: int = 1,
        outer: tuple[tuple[float, float] | None, ...] = (),
    ) -> Self:
        """The noise that takes this share of `guarantee`: of the squared sensitivity, or of ε if it is pure."""
        part, epsilon, delta = exactly(share), exactly(guarantee.epsilon), exactly(guarantee.delta)
        if not delta:
            moved = cls(weights=weights, outer=outer, scale=1).sensitivity(unit, rows_per_person).exact
            return cls(weights=weights, outer=outer, scale=tidy(significant(moved / (part * epsilon), up=True)))
        moved = cls(weights=weights, outer=outer, stddev=1).sensitivity(unit, rows_per_person).exact
        stddev = moved * sqrt_up(1 / part) / Fraction(largest_mu(float(epsilon), float(delta)))
        return cls(weights=weights, outer=outer, stddev=tidy(significant(stddev, up=True)))

    def error(self, confidence: float) -> Accuracy:
        """How far all counts of both histograms may be from the true ones, multiplied by their weights."""
        return self._noise.error(confidence, values=len(self.weights) * (SIZES + EVEN))

    @property
    def _noise(self) -> Gaussian | Laplace:
        if self.stddev is None:
            return Laplace(scale=tidy(self._size), step=tidy(self._step))
        return Gaussian(stddev=tidy(self._size), step=tidy(self._step))

    def _draw(self, value: UnboundedRows) -> Floats:
        if value.columns != len(self.weights):
            raise InvalidArgument(f"The rows must have {len(self.weights)} columns.", code="wrong-shape")
        deviations = self._noise.deviation / np.array(self.weights)
        sizes = self._noisy_sizes(value)
        coarse = [
            _sizes_seen(counts, deviation) if outer is None else (outer, EVEN, False)
            for counts, deviation, outer in zip(sizes, deviations, self._ends, strict=True)
        ]
        low, high = np.array([ends for ends, _, _ in coarse]).T
        bins, zeros = np.array([many for _, many, _ in coarse]), [zeros for *_, zeros in coarse]
        even = self._noisy(
            value.counts(lambda cells: even_places(cells, low, high, bins), EVEN), np.array(self.weights)
        )
        for place in (place for place, outer in enumerate(self._ends) if outer is not None):
            even[place], bins[place] = _joined(even[place], float(deviations[place]))
            deviations[place] *= math.sqrt(EVEN / bins[place])
        return np.array([_kept(*column) for column in zip(even, low, high, bins, zeros, deviations, strict=True)])

    def _noisy_sizes(self, value: UnboundedRows) -> Floats:
        """The first histogram of the columns that need it, and zeros for the others."""
        found = np.zeros((len(self.weights), SIZES))
        wanted = [place for place, outer in enumerate(self._ends) if outer is None]
        if wanted:
            counts = value.counts(_place_sizes, SIZES)[wanted]
            found[wanted] = self._noisy(counts, np.array(self.weights)[wanted])
        return found

    def _noisy(self, counts: NDArray[np.int64], weights: NDArray[np.int64]) -> Floats:
        drawn = self._noise._draw((counts * weights[:, None]).reshape(-1))
        return np.asarray(drawn, dtype=np.float64).reshape(counts.shape) / weights[:, None]


def _histograms(outer: tuple[float, float] | None) -> int:
    """How many histograms of a column are released."""
    return 2 if outer is None else 1


def _replaces(unit: Unit | None) -> bool:
    return unit is not None and unit.neighbors == "replace"


def _place_sizes(cells: Floats) -> NDArray[np.int64]:
    return octave_places(cells, FIRST, LAST)


# --- from noisy counts to ranges ------------------------------------------------------------------------------


def _sizes_seen(counts: Floats, deviation: float) -> tuple[tuple[float, float], int, bool]:
    """From the largest negative size to the largest positive one that is seen, how many equal bins to cut it into, and
    whether most numbers are 0.

    A side of 0 that shows nothing by itself is taken to be as large as the other one, unless it looks empty.
    """
    most = LAST - FIRST
    sides = [counts[:most][::-1] / deviation, counts[most + 1 :] / deviation]
    if not (top := _largest_seen(*sides)):
        return DEFAULT, 1, False
    near = [float(side[max(top - NEAR, 0) : top].sum()) for side in sides]
    there = [amount > math.sqrt(NEAR) or amount == max(near) for amount in near]
    low, high = (_side(side[:top]) or top * kept for side, kept in zip(sides, there, strict=True))
    zeros = float(counts[most]) / deviation
    rows = zeros + sum(
        float(side[max(last - NEAR, 0) : last].sum()) for side, last in zip(sides, (low, high), strict=True)
    )
    many = math.floor(math.log2(max(rows / CROWD, 1.0)))
    ends = -octave_end(low, FIRST, outer=True), octave_end(high, FIRST, outer=True)
    return ends, 2 ** min(many, int(math.log2(EVEN))), zeros > rows / 2


def _largest_seen(below: Floats, above: Floats) -> int:
    """The largest size, counted from 1, with more numbers than noise alone would show, on a side or on both. 0 if none.

    The counts are in deviations. It starts where most is seen, and goes on to larger sizes that are near. Sizes that
    are far from all others are used only if they are sure, because one wrong size would make a range too wide.
    """
    both = (below + above) / math.sqrt(2)
    alone = np.maximum(np.maximum(below, above), both)
    distance = FARTHER * np.abs(FIRST + 1 + np.arange(len(both)))
    last = int(np.argmax(alone - distance))
    if alone[last] - distance[last] <= SURE:
        windows = np.max([_windows(part) for part in (below, above, both)], axis=0) - distance
        last = int(np.argmax(windows))
        if windows[last] <= SURE:
            return 0
    while True:
        steps = range(1, min(REACH, len(both) - 1 - last) + 1)
        found = [
            step
            for step in steps
            if max(part[last + 1 : last + 1 + step].sum() for part in (below, above, both)) > NEXT * math.sqrt(step)
            and alone[last + step] > 1
        ]
        far = np.flatnonzero(alone[last + 1 :] > FAR)
        if not found and not len(far):
            return last + 1
        last += max([*found, *(far[-1:] + 1).tolist()])


def _windows(counts: Floats) -> Floats:
    """For each size, the most deviations that it has together with one to three smaller ones."""
    sums = np.concatenate([np.zeros(WINDOW), np.cumsum(counts)])
    found = [(sums[WINDOW:] - sums[WINDOW - many : -many]) / math.sqrt(many) for many in range(2, WINDOW + 1)]
    return np.asarray(np.max(found, axis=0))


def _side(counts: Floats) -> int:
    """The largest size of a side that is seen there, and all sizes if what is beyond is not empty. 0 if none is."""
    seen = np.flatnonzero(counts > SURE)
    if not len(seen):
        return 0
    rest = counts[int(seen[-1]) + 1 :]
    return len(counts) if len(rest) and rest[-NEAR:].sum() > NEXT * math.sqrt(len(rest[-NEAR:])) else int(seen[-1]) + 1


def _joined(counts: Floats, deviation: float) -> tuple[Floats, int]:
    """Neighboring bins added up until each would be seen if rows were spread evenly, and how many there are then."""
    seen = max(float(counts.sum()), 0.0) / (CROWD * deviation * math.sqrt(EVEN))
    many = 2 ** min(math.floor(math.log2(max(seen**2, 1.0))), int(math.log2(EVEN)))
    joined = counts.reshape(many, -1).sum(axis=1)
    return np.concatenate([joined, np.zeros(EVEN - many)]), many


def _kept(counts: Floats, low: float, high: float, bins: int, zeros: bool, deviation: float) -> tuple[float, float]:
    """The part of the range whose bins together hold the most rows beyond what an empty bin might show."""
    shown = counts[:bins]
    needed = max(ROOM * deviation, RARE * max(float(shown.sum()), 0.0) / bins)
    steps = np.concatenate([[0.0], np.cumsum(shown - needed)])
    lowest = np.minimum.accumulate(steps)
    end = int(np.argmax(steps[1:] - lowest[:-1])) + 1
    start = int(np.argmin(steps[:end]))
    share = np.array([start, end]) / bins
    ends = low * (1 - share) + high * share
    if zeros and end - start <= max(1, bins // 16):  # they say nothing about the other numbers
        return low, high
    return float(ends[0]), float(ends[1])


@dataclass(frozen=True, kw_only=True)
class WithFoundRanges:
    """Finds ranges, and then lets another mechanism, `then`, work within them: one release.

    The value is `UnboundedRows`. The result is that of `then`, a dict, with the found "ranges".

    Promise: the composition of the two. The noise of `then` is fixed before the ranges are found, because rows are
    scaled by them: whatever they are, its sensitivity is the same.
    Error: that of `then`, in scaled units.
    """

    finding: FoundRanges
    then: Any

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> tuple[Any, Any]:
        """How far one unit can move each of the two."""
        moved = getattr(self.then, "sensitivity", None)  # a selection is made for its unit
        then = None if moved is None else moved(unit, rows_per_person)
        return self.finding.sensitivity(unit, rows_per_person), then

    def guarantee(self, sensitivity: tuple[Any, Any] | None = None) -> LossDistribution:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        first, second = (None, None) if sensitivity is None else sensitivity
        both = compose([self.finding.guarantee(first), self.then.guarantee(second)])
        return replace(both, factors=merge_gaussians(both.factors))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Approx,
        *,
        weights: tuple[int, ...],
        then: Callable[[Approx], Any],
        unit: Unit | None = None,
        rows_per_person: int = 1,
        share: Number = SHARE,
        outer: tuple[tuple[float, float] | None, ...] = (),
    ) -> Self:
        """`then` makes the other mechanism for what is left of the guarantee: the most with which both keep it."""
        stated: Guarantee | None = None
        finding = FoundRanges.for_share(
            guarantee, weights=weights, share=share, unit=unit, rows_per_person=rows_per_person, outer=outer
        )
        for less in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5):
            if less and less < LEAST_SPLIT and isinstance(stated, Approx) and exactly(stated.delta):
                continue  # what is only known by (ε,δ) adds as such
            made = cls(finding=finding, then=then(_left(guarantee, exactly(share), less)))
            moved = made.sensitivity(unit, rows_per_person)
            stated = made.then.guarantee(moved[1])
            if meets(made.guarantee(moved), guarantee):
                return made
        raise InvalidArgument(
            "No noise keeps this guarantee if ranges are found, too. Declare feature_ranges.",
            code="guarantee-out-of-reach",
        )

    def error(self, confidence: float, **sizes: Any) -> Any:
        return self.then.error(confidence, **sizes)

    def _draw(self, value: UnboundedRows) -> dict[str, Any]:
        ranges = self.finding._draw(value)
        drawn = self.then._draw(value.within(ranges))
        return {**(drawn if isinstance(drawn, dict) else {"weights": drawn}), "ranges": ranges}


def _left(guarantee: Approx, share: Fraction, less: float) -> Approx:
    """What remains for the other mechanism, a little less than the whole remainder."""
    epsilon, delta = exactly(guarantee.epsilon), exactly(guarantee.delta)
    if not delta:
        return Pure(epsilon=tidy(significant(epsilon * (1 - share) * (1 - Fraction(less)), up=False)))
    move = largest_mu(float(epsilon), float(delta)) * math.sqrt(float(1 - share)) * (1 - less)
    found = smallest_epsilon(lambda tried: gaussian_delta(move, tried), float(delta))
    # a mechanism that needs all of its δ leaves none for the ranges
    kept = guarantee.delta if less < LOOSE else tidy(significant(delta * (1 - Fraction(less)), up=False))
    return Approx(epsilon=tidy(significant(Fraction(found), up=False)), delta=kept)
