"""Sums and means of declared range, exact: rows become whole numbers of a public step before they are added.

No floating-point sum meets noise here: its value would depend on order, and move by more than the sensitivity
says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, power_of_two_below
from discreet.guarantees.unit import Unit
from discreet.queries.counts import Count
from discreet.queries.query import largest_change, need_public_size
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Ball, Interval
from discreet.rows import column, present
from discreet.rows.containers import Data


@dataclass(frozen=True)
class Sum(Closed):
    """The sum of rows, each clamped `between` declared ends, less `about`, in multiples of `step`.

    `about` is a public number taken off every row first (the center, for the sum inside a mean). `step` is a
    power of two near 2^-32 of the range, unless given.

    Promise: one row moves it by at most max(|low|, |high|) when added or removed, by high - low when
    replaced.

    >>> Sum((0, 100))([17, 250, 3.5])
    Fraction(241, 2)
    """

    between: tuple[Number, Number]
    step: Number | None = None
    about: Number = 0

    def __post_init__(self) -> None:
        if not isinstance(self.between, tuple | list) or len(self.between) != 2:
            raise InvalidArgument("between must be a pair (low, high).", code="wrong-type")
        object.__setattr__(self, "between", tuple(self.between))
        first, last = self._steps
        if first >= last:
            raise InvalidArgument(
                "step is too coarse: fewer than two of its multiples lie in the range.", code="step-does-not-fit"
            )
        if max(-first, last) > 2**52:
            raise InvalidArgument(
                "step is too fine for doubles of this size. Choose a coarser one.", code="step-does-not-fit"
            )

    @cached_property
    def space(self) -> Interval:
        """The declared range; a missing row stands at `about`, and so adds nothing, where that lies in it."""
        low, high = Interval(*self.between).ends
        return Interval(*self.between, missing=min(max(exactly(self.about, "about"), low), high))

    @cached_property
    def _range(self) -> tuple[Fraction, Fraction]:
        center = exactly(self.about, "about")
        return self.space.ends[0] - center, self.space.ends[1] - center

    @cached_property
    def grain(self) -> Fraction:
        """The exact step: every answer is a whole multiple of it."""
        if self.step is not None:
            return check_positive(self.step, "step")
        largest = max(map(abs, self._range))
        fine = max(self.space.diameter / 2**32, largest / 2**50, Fraction(1, 2**1000))
        return power_of_two_below(fine)

    @cached_property
    def _steps(self) -> tuple[int, int]:
        low, high = self._range
        return -(-low // self.grain), high // self.grain

    def __call__(self, data: Data) -> Fraction:
        rows = self.space.clamp(column(data))
        with np.errstate(over="ignore"):
            rounded = np.rint((rows - float(exactly(self.about))) / float(self.grain))
        # cut to the multiples inside the range last, so that no rounding above can matter
        first, last = map(float, self._steps)
        steps = np.clip(rounded, first, last).astype(np.int64)
        return self.grain * ((int((steps >> 26).sum()) << 26) + int((steps & (2**26 - 1)).sum()))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """max(|low|, |high|) for an added or removed row, high - low for a replaced one."""
        low, high = self._range
        amount = largest_change(unit, rows_per_person, added=max(abs(low), abs(high)), replaced=high - low)
        return Sensitivity(amount, unit=unit, grain=self.grain)


@dataclass(frozen=True)
class Mean(Closed):
    """The mean of rows clamped `between` declared ends, for a public number of rows n = `size`.

    Under add/remove n is private: ask for `parts()`, a sum about the center and a count, and divide the noisy
    answers.

    Promise: a replaced row moves it by at most (high - low)/n; n is the declared one, never the number of
    rows seen.

    >>> Mean((0, 100), size=2)([17, 250])
    Fraction(117, 2)
    """

    between: tuple[Number, Number]
    size: int | None = None
    step: Number | None = None

    def __post_init__(self) -> None:
        if self.size is not None:
            check_count(self.size, "size")
        self.parts()

    @property
    def space(self) -> Interval:
        """The declared range."""
        return self.parts()[0].space

    def parts(self) -> tuple[Sum, Count]:
        """The sum about the center, sensitivity (high - low)/2 under add/remove, and the count of numbers."""
        if not isinstance(self.between, tuple | list) or len(self.between) != 2:
            raise InvalidArgument("between must be a pair (low, high).", code="wrong-type")
        return Sum(self.between, self.step, about=Interval(*self.between).center), Count(present)

    def __call__(self, data: Data) -> Fraction:
        centered = self.parts()[0]
        return self.space.center + centered(data) / self._public_size()

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """(high - low)/n for each row of the unit, under replacement."""
        width, centered = self.space.diameter, self.parts()[0]
        moved = largest_change(unit, rows_per_person, added=width / 2, replaced=width)
        need_public_size(unit, "Release the two parts of Mean.parts() and divide")
        size = self._public_size()
        return Sensitivity(moved / size, unit=unit, grain=centered.grain / size)

    def _public_size(self) -> int:
        if self.size is None:
            raise InvalidArgument(
                "A mean needs its public size=. If the number of rows is private, use Mean.parts().",
                code="size-missing",
            )
        return self.size


@dataclass(frozen=True)
class VectorSum(Closed):
    """The sum of vectors, each brought into the ball `space` and rounded, inside it, to multiples of `step`.

    `step` is a power of two, unless given the one next below 2^-25 of the radius.

    Promise: in the ball's norm, one row moves it by at most the radius when added or removed, twice that when
    replaced.
    Source: [L10.A].

    >>> VectorSum(Ball(2, 1))([[3.0, 0.0], [0.0, 0.5]]).astype(float).round(6)
    array([1. , 0.5])
    """

    space: Ball
    step: Number | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.space, Ball):
            raise InvalidArgument("space must be a Ball(dimension, radius).", code="wrong-type")
        if power_of_two_below(self.grain) != self.grain:
            raise InvalidArgument("step must be a power of two, such as 2**-20.", code="step-not-a-power-of-two")
        if not 1 <= exactly(self.space.radius) / self.grain <= 2**26:
            raise InvalidArgument(
                "step must be at most the radius, and at least 2^-26 of it.", code="step-does-not-fit"
            )

    @cached_property
    def grain(self) -> Fraction:
        """The exact step: every coordinate of an answer is a whole multiple of it."""
        if self.step is not None:
            return check_positive(self.step, "step")
        return power_of_two_below(exactly(self.space.radius) / 2**25)

    def __call__(self, data: Data) -> NDArray[np.object_]:
        rows = self.space.rows(data)
        step = float(self.grain)
        with np.errstate(over="ignore"):
            steps = np.rint(rows / step)
        outside = ~self._fits(steps)
        inside = self.space.shortened(rows[outside]) / step
        nearest = np.rint(inside)
        # strictly inside in doubles, then toward 0: the norm cannot grow
        steps[outside] = np.where(self._fits(nearest)[:, None], nearest, np.trunc(inside))
        totals = steps.astype(np.int64).sum(axis=0)
        return np.array([self.grain * int(total) for total in totals], dtype=object)

    def _fits(self, steps: NDArray[np.float64]) -> NDArray[np.bool]:
        # whole numbers below 2^53 add exactly, and what passes 2^53 stays past the limit
        size = exactly(self.space.radius) / self.grain
        with np.errstate(over="ignore"):
            if self.space.norm == "L2":
                return np.asarray((steps * steps).sum(axis=1) <= float(size**2 // 1))
            sizes = np.abs(steps)
            length = sizes.sum(axis=1) if self.space.norm == "L1" else sizes.max(axis=1, initial=0)
            return np.asarray(length <= float(size // 1))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """The radius for an added or removed row, twice the radius for a replaced one."""
        radius = exactly(self.space.radius)
        amount = largest_change(unit, rows_per_person, added=radius, replaced=2 * radius)
        return Sensitivity(amount, self.space.norm, unit, self.space.dimension, self.grain)
