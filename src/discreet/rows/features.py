"""Finite features of smooth kernels: K(x, y) = φ(x)·φ(y), so that a function in the space of the kernel is one vector.

Rows are first assigned to the cells of a fine public grid. The features of a cell are integers from a public table, so
a sum over rows is exact: the counts of the cells times the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import public_draws
from discreet.exact.rational import Number, check_count, check_positive, exactly, float_up, sqrt_up
from discreet.rows import table as table_of

Floats = NDArray[np.float64]
MOST_FEATURES = 50_000
MOST_CELLS = 2**24
MOST_NUMBERS = 2**26
# cells per bandwidth: rounding to 12 of them acts like a bandwidth that is wider by 1/3000
_FINENESS = {1: 32, 2: 32, 3: 12}


def _as_float(bandwidth: Number) -> float:
    exact = exactly(bandwidth, "bandwidth")
    if abs(exact) > 2**1000:
        raise InvalidArgument("bandwidth must be below 2^1000.", code="out-of-range")
    return float(exact)


@dataclass(frozen=True)
class Axis:
    """The Gaussian kernel exp(−(x−y)²/(2h²)) on a range, as cosines and sines on a circle around it.

    The circle is longer than the range, so that the kernel around the other side is below `tolerance`. Frequencies stop
    where their weights are below it. All weights are positive (Poisson summation) and are scaled to K(x, x) = 1.
    """

    low: Number
    high: Number
    bandwidth: Number
    tolerance: float = 1e-10
    bits: int = 30
    fineness: int = 32
    widest: Number | None = None

    def __post_init__(self) -> None:
        check_positive(self.bandwidth, "bandwidth")
        if self.widest is not None and check_positive(self.widest, "widest") < exactly(self.bandwidth):
            raise InvalidArgument("widest must be at least the bandwidth.", code="out-of-range")
        if not exactly(self.low, "between") < exactly(self.high, "between"):
            raise InvalidArgument(
                "between must be two ends, the smaller one first, such as (0, 120).", code="ends-out-of-order"
            )
        if not 1e-15 <= self.tolerance <= 0.1:
            raise InvalidArgument("tolerance must lie between 1e-15 and 0.1.", code="out-of-range")
        if self.orders > MOST_FEATURES // 2 or self.cells * self.size > MOST_NUMBERS:
            raise InvalidArgument(
                "The bandwidth is too small for this range. Increase it, or narrow the range.",
                code="bandwidth-too-small",
            )

    def __reduce__(self) -> Any:  # tables are computed again
        return Axis, (self.low, self.high, self.bandwidth, self.tolerance, self.bits, self.fineness, self.widest)

    @property
    def length(self) -> float:
        return float(exactly(self.high) - exactly(self.low))

    @property
    def width(self) -> float:
        """The bandwidth as a float."""
        return _as_float(self.bandwidth)

    @cached_property
    def period(self) -> float:
        """The length of the circle: the range, plus room for the widest kernel to which it may be smoothed."""
        widest = self.width if self.widest is None else _as_float(self.widest)
        return self.length + widest * math.sqrt(2 * math.log(1 / self.tolerance))

    @cached_property
    def orders(self) -> int:
        """The highest frequency, in turns of the circle."""
        return math.ceil(self.period * math.sqrt(2 * math.log(1 / self.tolerance)) / (2 * math.pi * self.width))

    @property
    def size(self) -> int:
        """How many features there are, the constant first."""
        return 2 * self.orders + 1

    @cached_property
    def weights(self) -> Floats:
        """The share of each frequency in K(x, x) = 1."""
        j = np.arange(self.orders + 1)
        raw = (2.0 - (j == 0)) * np.exp(-((2 * math.pi * j * self.width / self.period) ** 2) / 2)
        return np.asarray(raw / raw.sum())

    @property
    def kernel_error(self) -> float:
        """The largest difference from the Gaussian kernel on the range."""
        wrapped = 4 * self.tolerance  # images at one or more turns, each far below the one before
        cut = 2 * math.sqrt(2 * math.pi) * self.width / self.period * self.tolerance / (1 - self.tolerance)
        return 2 * (wrapped + cut) + 1e-14

    @cached_property
    def cells(self) -> int:
        """The number of cells of the range: a power of two."""
        wanted = max(64.0, self.fineness * self.length / self.width)
        return int(2 ** math.ceil(math.log2(wanted)))

    def place(self, values: Any) -> NDArray[np.int64]:
        """The cell of each number. Numbers outside the range go to the end cells. NaN must be removed before."""
        low = float(exactly(self.low))
        scaled = (np.clip(values, low, float(exactly(self.high))) - low) * (self.cells / self.length)
        return np.asarray(np.clip(np.floor(scaled), 0, self.cells - 1).astype(np.int64))

    def features(self, points: Any) -> Floats:
        """φ at each point: rows × size."""
        turns = (np.asarray(points, dtype=np.float64) - float(exactly(self.low))) * (2 * math.pi / self.period)
        angles = turns[:, None] * np.arange(1, self.orders + 1)
        roots = np.sqrt(self.weights)
        sides = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(turns), -1) * roots[1:].repeat(2)
        return np.column_stack([np.full(len(turns), roots[0]), sides])

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The features of the middle of each cell, in units of 2^-bits, rounded toward 0. The norm is at most 1,
        exactly.
        """
        middles = float(exactly(self.low)) + (np.arange(self.cells) + 0.5) * (self.length / self.cells)
        whole = np.trunc(self.features(middles) * 2.0**self.bits * (1 - 1e-12)).astype(np.int64)
        longest = max(
            sum(int(x) ** 2 for x in whole[row]) for row in np.argsort((whole.astype(float) ** 2).sum(1))[-8:]
        )
        assert longest <= 4**self.bits, "a feature is longer than 1"
        return whole

    def frequencies(self) -> Floats:
        """The angular frequency of each feature."""
        return np.concatenate([[0.0], np.arange(1, self.orders + 1).repeat(2)]) * (2 * math.pi / self.period)


@dataclass(frozen=True)
class FourierFeatures:
    """The product of Gaussian kernels over one to three axes, with exact sums over rows.

    >>> features = FourierFeatures.over([(0, 8)], [0.6])
    >>> features.size, features.kernel_error < 1e-8
    (45, True)
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise InvalidArgument(
                "Fourier features support one to three columns. Use RandomFeatures for more.",
                code="too-large" if self.axes else "empty",
            )
        cells = math.prod(axis.cells for axis in self.axes)
        if self.size > MOST_FEATURES or cells > MOST_CELLS:
            raise InvalidArgument(
                "The bandwidth is too small for this number of columns. Increase it, or narrow the ranges.",
                code="bandwidth-too-small",
            )

    @classmethod
    def over(
        cls,
        between: Sequence[Any],
        bandwidth: Sequence[Any],
        tolerance: float | None = None,
        widest: Number | None = None,
    ) -> FourierFeatures:
        """Features on these ranges, with these bandwidths. One axis has room for smoothing to the `widest`
        bandwidth.
        """
        bits, fine = {1: 30, 2: 18, 3: 12}.get(len(between), 12), {1: 1e-10, 2: 1e-7, 3: 1e-4}.get(len(between), 1e-4)
        kept, cells = fine if tolerance is None else tolerance, _FINENESS.get(len(between), 12)
        ends = zip(between, bandwidth, strict=True)
        return cls(tuple(Axis(low, high, h, kept, bits, cells, widest) for (low, high), h in ends))

    @property
    def size(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def unit(self) -> Fraction:
        """The unit of sums."""
        return Fraction(1, 2 ** sum(axis.bits for axis in self.axes))

    @property
    def constant(self) -> Fraction:
        """The value of the constant feature: the square root of its weight, rounded as in the tables."""
        return math.prod((Fraction(int(axis.table[0, 0]), 2**axis.bits) for axis in self.axes), start=Fraction(1))

    @property
    def kernel_error(self) -> float:
        """The largest difference from the product of Gaussian kernels."""
        return math.prod(1 + axis.kernel_error for axis in self.axes) - 1

    @property
    def height(self) -> float:
        """The density kernel at its center: 1/∏(√(2π)·h)."""
        return 1 / math.prod(math.sqrt(2 * math.pi) * axis.width for axis in self.axes)

    def counts(self, rows: Any) -> NDArray[np.int64]:
        """The number of rows in each cell. Rows with a NaN are left out."""
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            table = table_of(rows, len(self.axes)).astype(np.float64, copy=False)
        table = table[~np.isnan(table).any(axis=1)]
        places = [axis.place(table[:, number]) for number, axis in enumerate(self.axes)]
        shape = tuple(axis.cells for axis in self.axes)
        flat = np.ravel_multi_index(places, shape) if len(table) else np.zeros(0, dtype=np.int64)
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)

    def sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The exact sum of φ over the rows, in units of `unit`. The constant comes first."""
        # beyond 64 bits, Python integers, so that nothing wraps around
        roomy = int(counts.sum()) < 2 ** (62 - sum(axis.bits for axis in self.axes))
        total = counts if roomy else counts.astype(object)
        for axis in self.axes:  # the first axis is summed out and becomes the last
            total = np.tensordot(total, axis.table, axes=([0], [0]))
        return np.asarray(total).reshape(-1)

    def features(self, points: Any) -> Floats:
        """φ at each point: rows × size, constant first."""
        table = np.asarray(points, dtype=np.float64).reshape(-1, len(self.axes))
        grown = self.axes[0].features(table[:, 0])
        for number, axis in enumerate(self.axes[1:], start=1):
            grown = (grown[:, :, None] * axis.features(table[:, number])[:, None, :]).reshape(
                len(table), grown.shape[1] * axis.size
            )
        return grown

    def distance(self) -> Fraction:
        """The largest distance between the features of two rows: √(2(1 − K)) at the ends of the ranges, including
        rounding.
        """
        least = math.prod(math.exp(-((axis.length / axis.width) ** 2) / 2) for axis in self.axes) - self.kernel_error
        return sqrt_up(Fraction(2 * (1 - min(max(least, 0.0), 1.0)) + 4 * self.kernel_error)) + self._rounding()

    def without_constant(self) -> Fraction:
        """The largest norm of the features of a row, without the constant feature."""
        return sqrt_up(1 - self.constant**2) + self._rounding()

    def _rounding(self) -> Fraction:
        return 2 * sqrt_up(Fraction(self.size)) * sum((Fraction(2, 2**axis.bits) for axis in self.axes), Fraction(0))


@dataclass(frozen=True)
class RandomFeatures:
    """cos and sin of random frequencies: K(x, y) is the mean of cos ω·(x − y), close to a Gaussian kernel.

    For more than three columns. `frequencies`, columns × number, are public, and `drawn` draws them. The kernel is
    exactly that of these frequencies, and differs from the Gaussian one by about 1/√number.
    """

    frequencies: tuple[tuple[float, ...], ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bandwidth: tuple[float, ...]
    bits: int = 30

    @classmethod
    def drawn(cls, between: Sequence[Any], bandwidth: Sequence[Any], number: int = 500) -> RandomFeatures:
        """Features with `number` random frequencies of the Gaussian kernel, drawn once."""
        count = check_count(number, "number")
        widths = tuple(float_up(check_positive(h, "bandwidth")) for h in bandwidth)
        normal = public_draws.normals(count * len(widths))
        table = normal.reshape(len(widths), count) / np.array(widths)[:, None]
        low = tuple(float(exactly(end)) for end, _ in between)
        high = tuple(float(exactly(end)) for _, end in between)
        return cls(tuple(map(tuple, table.tolist())), low, high, widths)

    @property
    def size(self) -> int:
        return 2 * len(self.frequencies[0])

    @property
    def unit(self) -> Fraction:
        return Fraction(1, 2**self.bits)

    @property
    def kernel_error(self) -> float:
        """No bound is certified. The difference is about 1/√number at each pair of points."""
        return 3 / math.sqrt(len(self.frequencies[0]))

    @property
    def height(self) -> float:
        return 1 / math.prod(math.sqrt(2 * math.pi) * h for h in self.bandwidth)

    def features(self, points: Any) -> Floats:
        table = np.asarray(points, dtype=np.float64).reshape(-1, len(self.low))
        angles = np.zeros((len(table), len(self.frequencies[0])))
        # column by column, so that the angle of a row does not depend on the position of others
        for number, row in enumerate(self.frequencies):
            angles += table[:, number, None] * np.array(row)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(len(self.frequencies[0]))

    def counts(self, rows: Any) -> Floats:
        """The rows, clamped to the ranges. Rows with a NaN are left out."""
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            table = table_of(rows, len(self.low)).astype(np.float64, copy=False)
        return np.clip(table[~np.isnan(table).any(axis=1)], self.low, self.high)

    def sums(self, counts: Floats) -> NDArray[np.int64]:
        total = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(counts), 4096):
            whole = np.trunc(self.features(counts[start : start + 4096]) * 2.0**self.bits * (1 - 1e-12))
            total += whole.astype(np.int64).sum(axis=0)
        return total

    def distance(self) -> Fraction:
        return Fraction(2)  # cosines of random frequencies may all be −1
