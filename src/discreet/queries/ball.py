"""Vectors of bounded norm: the space of gradients, and of rows that are summed."""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, sqrt_up
from discreet.queries.intervals import Point, float_inside
from discreet.queries.sensitivity import Norm, check_norm
from discreet.rows import is_row, table
from discreet.rows.containers import Data

_EXACT = decimal.Context(prec=5000, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[decimal.Inexact])


@dataclass(frozen=True)
class Ball(Closed):
    """Vectors of `dimension` numbers with norm at most `radius`, around 0.

    Clamping shortens a vector (Linf: cuts each coordinate); one with an infinite coordinate goes where the
    limit points; one with a NaN goes to 0. Members stay as they are: doubles near the surface are compared
    exactly.

    >>> Ball(2, 1).clamp([3.0, 4.0]).round(9)
    array([0.6, 0.8])
    """

    dimension: int
    radius: Number = 1
    norm: Norm = "L2"

    def __post_init__(self) -> None:
        check_count(self.dimension, "dimension")
        if not Fraction(1, 2**1000) <= check_positive(self.radius, "radius") <= 2**1000:
            raise InvalidArgument("radius must lie between 2^-1000 and 2^1000.", code="out-of-range")
        check_norm(self.norm)

    @property
    def minimal_distance(self) -> None:
        """None: points of a ball come arbitrarily close."""
        return None

    @property
    def diameter(self) -> Fraction:
        return 2 * exactly(self.radius)

    def _length(self, vector: Iterable[Fraction]) -> Fraction:
        sizes = [abs(x) for x in vector]
        if self.norm == "L2":
            return sqrt_up(sum((x * x for x in sizes), Fraction(0)))
        return max(sizes) if self.norm == "Linf" else sum(sizes, Fraction(0))

    def distance(self, a: Point, b: Point) -> Fraction:
        return self._length(exactly(x) - exactly(y) for x, y in zip(a, b, strict=True))

    def __contains__(self, value: object) -> bool:
        try:
            row = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        if row.shape != (self.dimension,) or not np.isfinite(row).all():
            return False
        radius = exactly(self.radius)
        with decimal.localcontext(_EXACT):
            sizes = [abs(decimal.Decimal(repr(x))) for x in row.tolist()]
            size = max(sizes) if self.norm == "Linf" else sum(x * x if self.norm == "L2" else x for x in sizes)
            power = 2 if self.norm == "L2" else 1
            return bool(size * radius.denominator**power <= radius.numerator**power)

    def clamp(self, value: Data) -> NDArray[np.float64]:
        """The vector, or each row of a matrix, clamped to the ball."""
        if is_row(value):
            if len(value) != self.dimension:
                raise InvalidArgument(f"A vector of {self.dimension} numbers is needed.", code="wrong-shape")
            return self.clamp(value[None] if hasattr(value, "dtype") else [value])[0]  # type: ignore[no-any-return]
        rows = self.rows(value)
        if self.norm == "Linf":
            edge = float_inside(exactly(self.radius), -1)
            return np.clip(rows, -edge, edge)
        radius, slack = float(exactly(self.radius)), self._slack
        sizes = self._sizes(rows)
        outside = sizes > radius * (1 - slack)
        for near in np.flatnonzero(outside & (sizes < radius * (1 + slack))):
            outside[near] = rows[near] not in self
        rows[outside] = self.shortened(rows[outside])
        return rows

    def rows(self, value: Data) -> NDArray[np.float64]:
        """A fresh matrix of finite rows, each of them read by itself: one with a NaN, or of another length, is 0, and
        an infinite one a vector the way it points.
        """
        rows = np.array(table(value, self.dimension), dtype=np.float64)
        rows[np.isnan(rows).any(axis=1)] = 0
        if self.norm == "Linf":
            return np.clip(rows, -(2.0**1001), 2.0**1001)
        endless = np.isinf(rows).any(axis=1)
        rows[endless] = np.where(np.isinf(rows[endless]), np.sign(rows[endless]) * 2.0**1001, 0)
        return rows

    def shortened(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Finite rows brought strictly inside, past any rounding of doubles."""
        target = float(exactly(self.radius)) * (1 - 2 * self._slack)
        if self.norm == "Linf":
            return np.clip(rows, -target, target)
        _, exponents = np.frexp(np.abs(rows).max(axis=1, initial=0))
        scaled = np.ldexp(rows, -exponents[:, None])
        sizes = self._sizes(scaled)[:, None]
        return np.where(self._sizes(rows)[:, None] > target, scaled / np.where(sizes > 0, sizes, 1) * target, rows)

    @property
    def _slack(self) -> float:
        # a computed norm is off by less than this part of itself
        return (self.dimension + 8) * 2.0**-52

    def _sizes(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        sizes = np.abs(rows)
        largest = sizes.max(axis=1, initial=0)
        if self.norm == "Linf":
            return np.asarray(largest)
        _, exponents = np.frexp(largest)
        sizes = np.ldexp(sizes, -exponents[:, None])
        total = sizes.sum(axis=1) if self.norm == "L1" else np.sqrt((sizes * sizes).sum(axis=1))
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(total, exponents))
