"""Spaces of numbers: an interval, integers, a grid.

`clamp` is a public rule for each record: ±inf goes to the nearer end. NaN, None and anything else that is not a number
go to the declared `missing` (the center by default). A float means the decimal that it prints, as everywhere here.
"""

from __future__ import annotations

import decimal
import math
import numbers
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.rows import column, doubles, wholes
from discreet.rows.containers import Data

Point = Any
"""A point of a space: a number, a vector, a choice, a function as an array, or a tuple of these, as the space says."""


@dataclass(frozen=True)
class _Numbers(Closed):
    low: Number
    high: Number
    _: KW_ONLY
    missing: Number | None = None

    def __post_init__(self) -> None:
        low, high = self.ends
        if low >= high:
            raise InvalidArgument("low must be below high.", code="ends-out-of-order")
        if max(abs(low), abs(high)) > 2**1023:
            raise InvalidArgument("Bounds must be below 2^1023 in size. Declare a narrower range.", code="out-of-range")

    def _check_doubles(self) -> None:
        if float_inside(self.ends[0], +1) > float_inside(self.ends[1], -1):
            raise InvalidArgument("No double lies between low and high. Declare a wider range.", code="out-of-range")

    def _check_missing(self) -> None:
        if self.missing is not None and self.missing not in self:
            raise InvalidArgument("missing must be a point of the space.", code="out-of-range")

    @cached_property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The declared bounds as exact rational numbers."""
        return exactly(self.low, "low"), exactly(self.high, "high")

    @property
    def center(self) -> Fraction:
        """The middle of the declared range."""
        return sum(self.ends, Fraction(0)) / 2

    @property
    def diameter(self) -> Fraction:
        return self.ends[1] - self.ends[0]

    def distance(self, a: Point, b: Point) -> Fraction:
        return abs(exactly(a) - exactly(b))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, numbers.Real | decimal.Decimal | np.bool):
            return False
        plain: Any = int(value) if isinstance(value, bool | np.bool) else value
        if not isinstance(plain, numbers.Rational) and not math.isfinite(plain):
            return False
        try:
            return self._has(exactly(plain))
        except InvalidArgument:  # digits without end
            return False

    def _has(self, exact: Fraction) -> bool:
        return self.ends[0] <= exact <= self.ends[1]

    def clamp(self, value: Data) -> Any:
        """One number, or a column of them."""
        if isinstance(value, list | tuple) or np.ndim(value) > 0:
            return self._clamp(column(value))
        if isinstance(value, str | bytes):
            raise InvalidArgument(
                "The value must be a number, not text. Convert the column first.", code="not-a-number"
            )
        return value if value in self else self._clamp(column([value]))[0].item()

    def _clamp(self, values: NDArray[Any]) -> NDArray[Any]:
        """The records of a column, each brought inside."""
        raise NotImplementedError


@dataclass(frozen=True)
class Interval(_Numbers):
    """The real numbers from `low` to `high`.

    >>> Interval(0, 120).clamp([17.5, 300, float("nan"), float("-inf")])
    array([ 17.5, 120. ,  60. ,   0. ])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_doubles()
        self._check_missing()

    @property
    def minimal_distance(self) -> None:
        """None: points of an interval come arbitrarily close."""
        return None

    def _clamp(self, values: NDArray[Any]) -> NDArray[Any]:
        low, high = float_inside(self.ends[0], +1), float_inside(self.ends[1], -1)
        missing = self.center if self.missing is None else exactly(self.missing)
        inside = np.clip(doubles(values), low, high)
        return np.where(np.isnan(inside), min(max(float(missing), low), high), inside)


@dataclass(frozen=True)
class Integers(_Numbers):
    """The integers from `low` to `high`, both within 64 bits. Other numbers go to the nearest.

    >>> Integers(0, 9).clamp([3.2, -5, float("nan")])
    array([3, 0, 4])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(end.denominator != 1 or not -(2**63) <= end < 2**63 for end in self.ends):
            raise InvalidArgument(
                "Bounds of Integers must be whole numbers within 64 bits.",
                code="not-whole" if any(end.denominator != 1 for end in self.ends) else "out-of-range",
            )
        self._check_missing()

    @property
    def minimal_distance(self) -> Fraction:
        return Fraction(1)

    def __len__(self) -> int:
        return int(self.diameter) + 1

    def points(self) -> range:
        """All points, in increasing order."""
        return range(int(self.ends[0]), int(self.ends[1]) + 1)

    def positions(self, values: Data) -> NDArray[np.int64]:
        """The index of each clamped value in `points()`."""
        if self.diameter >= 2**63:
            raise InvalidArgument("This range has too many points. Declare a narrower one.", code="too-large")
        return self._clamp(column(values)) - int(self.ends[0])

    def _has(self, exact: Fraction) -> bool:
        return exact.denominator == 1 and super()._has(exact)

    def _clamp(self, values: NDArray[Any]) -> NDArray[np.int64]:
        low, high = map(int, self.ends)
        missing = math.floor(self.center) if self.missing is None else int(exactly(self.missing))
        whole, gone = wholes(values)
        inside = np.clip(whole, low, high)
        return np.where(gone, missing, inside) if gone.any() else inside


@dataclass(frozen=True)
class Grid(_Numbers):
    """The numbers `low, low + step, …, high`. Other numbers go to the nearest of them.

    >>> Grid(0, 1, 0.25).clamp([0.3, 7])
    array([0.25, 1.  ])
    """

    step: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_doubles()
        exact = check_positive(self.step, "step")
        if (self.diameter / exact).denominator != 1:
            raise InvalidArgument("step must divide high - low into whole steps.", code="step-does-not-fit")
        if max(map(abs, self.ends)) / exact > 2**48:
            raise InvalidArgument(
                "step is too fine for doubles of this size. Choose a coarser one.", code="step-does-not-fit"
            )
        self._check_missing()

    @property
    def minimal_distance(self) -> Fraction:
        return exactly(self.step)

    def __len__(self) -> int:
        return int(self.diameter / exactly(self.step)) + 1

    def points(self) -> NDArray[Any]:
        """All points in increasing order: integers if `low` and `step` are integers, otherwise doubles."""
        return self._at(np.arange(len(self), dtype=np.int64))

    def positions(self, values: Data) -> NDArray[np.int64]:
        """The index of each clamped value in `points()`."""
        low, step = self.ends[0], exactly(self.step)
        missing = (len(self) - 1) // 2 if self.missing is None else int((exactly(self.missing) - low) / step)
        inside = np.clip(doubles(values), float(low), float(self.ends[1]))
        steps = np.rint((inside - float(low)) / float(step))
        return np.where(np.isnan(steps), missing, np.clip(steps, 0, len(self) - 1)).astype(np.int64)

    def _has(self, exact: Fraction) -> bool:
        # a point such as 1/3 also matches its double
        place = min(max(round((exact - self.ends[0]) / exactly(self.step)), 0), len(self) - 1)
        point = self.ends[0] + place * exactly(self.step)
        return exact in (point, exactly(float(point)))

    def _clamp(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._at(self.positions(values))

    def _at(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        low, step = self.ends[0], exactly(self.step)
        common = math.lcm(low.denominator, step.denominator)
        first, by = int(low * common), int(step * common)
        if max(abs(first), abs(first + by * (len(self) - 1)), common) < 2**53:
            numerators = first + by * positions
            return numerators if common == 1 else numerators / common  # one correctly rounded division
        exact = (float(low + step * int(p)) for p in positions.ravel())
        return np.fromiter(exact, np.float64, positions.size).reshape(positions.shape)


def float_inside(bound: Fraction, toward: int) -> float:
    """The double nearest to a bound that is not outside when read as the decimal that it prints."""
    nearest = float(bound)
    outside = (exactly(nearest) - bound) * toward < 0
    return math.nextafter(nearest, toward * math.inf) if outside else nearest
