"""Curves as coefficients of cosines: a basis that is orthonormal at the public points, and exact integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.exact.search import bisect
from discreet.rows.containers import Data, on_host
from discreet.rows.rounding import BLOCK, Block, RoundedRows

Floats = NDArray[np.float64]
ALL = "all"
FINE = 16  # places that are checked between one point and the next
UP = 1.01  # for what a function of such a low degree may do between those places


@dataclass(frozen=True)
class Cosines:
    """`size` functions 1, √2·cos(πu), √2·cos(2πu), … that are orthonormal for the mean over the points.

    u runs from 1/2m at the first of the m points to 1 − 1/2m at the last, by equal steps from point to point and
    linearly between: at the points themselves this is the discrete cosine transform, however they lie.
    """

    points: tuple[float, ...]
    size: int

    def __call__(self, where: ArrayLike) -> Floats:
        """The functions at these places, a row for each."""
        places = np.asarray(where, dtype=np.float64)
        ends = self.points[0], self.points[-1]
        if not (np.isfinite(places).all() and (places >= ends[0]).all() and (places <= ends[1]).all()):
            raise InvalidArgument(
                f"The curve is known only from its first point, {ends[0]:g}, to its last, {ends[1]:g}. "
                "Ask for points between them.",
                code="out-of-range",
            )
        many = len(self.points)
        return self._at(np.interp(places.ravel(), self.points, (np.arange(many) + 0.5) / many))

    def _at(self, u: Floats) -> Floats:
        return np.cos(np.pi * np.outer(u, np.arange(self.size))) * np.where(np.arange(self.size), math.sqrt(2), 1.0)

    @cached_property
    def values(self) -> Floats:
        """The functions at the points, a row for each."""
        many = len(self.points)
        return self._at((np.arange(many) + 0.5) / many)

    def coefficients(self, curves: Data) -> Floats:
        """The mean over the points of each curve times each function. NaN for a curve with an invalid value.

        Promise: a curve's numbers depend on that curve alone, to the last bit: values and functions are rounded so that
        all products and sums are whole numbers below 2^53, which no order of adding changes.
        """
        cells = np.ascontiguousarray(curves, dtype=np.float64)
        many = len(self.points)
        kept = np.asarray(np.isfinite(cells).all(1))
        cells = np.where(kept[:, None], cells, 0.0)
        total = 52 - math.ceil(math.log2(many) / 2)
        bits = total // 2
        whole = np.rint(np.ldexp(self.values / math.sqrt(many), bits))
        _, exponent = np.frexp(np.abs(cells).max(1))
        rounded = np.rint(np.ldexp(cells, (total - bits - exponent)[:, None]))
        # a curve of huge norm keeps its direction, and every number fits a double
        scale = np.minimum(exponent, 900) - total
        found = np.ldexp(rounded @ whole, scale[:, None]) / math.sqrt(many)
        return np.where(kept[:, None], found, np.nan)

    # --- how large a random function of these is ------------------------------------------------------------

    @cached_property
    def fine(self) -> Floats:
        """Places everywhere in the range, close enough for functions of this degree."""
        many = len(self.points)
        return np.interp(np.linspace(0, many - 1, FINE * (many - 1) + 1), np.arange(many), self.points)

    def length(self, where: Floats) -> Floats:
        """The deviation of a function with independent coefficients of deviation 1, at each place."""
        return np.asarray(np.sqrt((self(where) ** 2).sum(1)))

    def deviations(self, miss: float, *, everywhere: bool, faster: float = 1.0) -> float:
        """How many of its own deviations a Gaussian function stays within, at one place or everywhere at once.

        Everywhere: it starts outside with the chance of one place, and by Rice's formula leaves on either side
        turns/2π·exp(−c²/2) times on average; so P[it is ever outside] ≤ 2Φ(−c) + turns/π·exp(−c²/2). A linear map of
        the coefficients, the largest stretch of which is `faster` times the least, makes it turn by so much more.
        """
        from scipy.special import erfc

        leaves = faster * turns(len(self.points), self.size) / math.pi if everywhere else 0.0

        def rare(level: float) -> bool:
            return bool(erfc(level / math.sqrt(2)) + leaves * math.exp(-(level**2) / 2) <= miss)

        return bisect(rare, 60.0, 0.0, absolute=1e-9) * (1 + 1e-6)


@lru_cache(maxsize=64)
def turns(many: int, size: int) -> float:
    """How far ψ(x)/‖ψ(x)‖ travels on the sphere from the first of these points to the last, rounded up."""
    u, order = np.linspace(0.5, many - 0.5, FINE * (many - 1) + 1) / many, np.pi * np.arange(size)
    basis, speeds = Cosines((0.0,) * many, size), []
    for part in np.array_split(u, 1 + len(u) * size // 2**22):  # not all at once: there may be many points
        here, slope = basis._at(part), -math.sqrt(2) * order * np.sin(np.outer(part, order))
        square, mixed = (here**2).sum(1), (here * slope).sum(1)
        speeds.append(np.sqrt(np.maximum((slope**2).sum(1) * square - mixed**2, 0.0)) / square)
    return float(np.trapezoid(np.concatenate(speeds), u)) * UP


def cosines_for(points: ArrayLike, basis: Any, columns: int | None) -> Cosines:
    """The functions for declared points (evenly from 0 to 1 if there are none). Raises if the points are invalid."""
    if points is None:
        if columns is None:
            raise InvalidArgument(
                "The number of points of the curves must be declared: points= or n_features=.", code="missing-argument"
            )
        places = np.linspace(0.0, 1.0, columns) if columns > 1 else np.zeros(1)
    else:
        try:
            places = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument("points must be numbers in increasing order.", code="not-a-number") from None
        if places.ndim != 1 or not len(places) or not np.isfinite(places).all() or (np.diff(places) <= 0).any():
            raise InvalidArgument("points must be finite numbers in increasing order.", code="not-increasing")
        if columns not in (None, len(places)):
            raise InvalidArgument(
                f"Each curve must have {len(places)} values, one for each point, not {columns}.", code="wrong-shape"
            )
    many = len(places)
    size = many if isinstance(basis, str) and basis == ALL else check_count(basis, "basis")
    if size > many:
        raise InvalidArgument(f'basis must be at most the number of points, {many}, or "all".', code="out-of-range")
    return Cosines(tuple(places.tolist()), size)


class CurveRows(RoundedRows):
    """Curves, with targets if there are any, as integer coefficients, with norm at most `curve_norm`.

    A curve with a value or a target that is not a finite number takes part with zeros and is not counted.
    """

    def __init__(
        self, curves: Data, targets: Any = None, *, basis: Cosines, curve_norm: Number, target_bound: Number | None
    ) -> None:
        super().__init__(curves, targets, feature_norm=curve_norm, target_bound=target_bound)
        self.basis, self.columns = basis, basis.size

    def blocks(self) -> Iterator[Block]:
        """Coefficients as integer multiples of `unit`, block by block. Each row's coefficients depend on that
        row only.
        """
        for start in range(0, max(int(self._features.shape[0]), 1), BLOCK):
            part = slice(start, start + BLOCK)
            goals = None if self._targets is None else on_host(self._targets[part])
            found = self.basis.coefficients(on_host(self._features[part]))
            yield from RoundedRows(found, goals, feature_norm=self.norm, target_bound=self.bound).blocks()
