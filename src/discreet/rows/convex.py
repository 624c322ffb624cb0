"""Convex sets for the weights of a model. Each can project a point to its nearest member.

The analysis of descent uses the `reach` of a set, the largest distance of a member from the start (the member nearest
to 0), and its `diameter`, the largest distance of two members. Both are infinite for an unbounded set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly

Floats = NDArray[np.float64]


class Region(Protocol):
    """A closed convex set of weight vectors."""

    def project(self, point: Floats) -> Floats:
        """The member nearest to the point."""

    def reach(self, dimension: int) -> float:
        """The largest distance of a member from the start, rounded up."""

    def diameter(self, dimension: int) -> float:
        """The largest distance of two members, rounded up."""


@dataclass(frozen=True)
class Everywhere:
    """No constraint at all."""

    def project(self, point: Floats) -> Floats:
        return point

    def reach(self, dimension: int) -> float:
        return math.inf

    def diameter(self, dimension: int) -> float:
        return math.inf


@dataclass(frozen=True)
class WithinRadius:
    """The ball of weights with L2 norm at most `radius`."""

    radius: Number

    def __post_init__(self) -> None:
        check_positive(self.radius, "radius")

    def project(self, point: Floats) -> Floats:
        radius, largest = float(exactly(self.radius)), float(np.abs(point).max(initial=0.0))
        if largest == 0:
            return point
        scaled = point / largest  # its norm cannot overflow
        size = float(np.linalg.norm(scaled))
        return point if size * largest <= radius else scaled * (radius / size)

    def reach(self, dimension: int) -> float:
        return float(exactly(self.radius)) * (1 + 1e-12)

    def diameter(self, dimension: int) -> float:
        return 2 * self.reach(dimension)


@dataclass(frozen=True)
class Box:
    """Every weight between `low` and `high`."""

    low: Number = -1
    high: Number = 1

    def __post_init__(self) -> None:
        if exactly(self.low, "low") >= exactly(self.high, "high"):
            raise InvalidArgument("low must be below high.", code="ends-out-of-order")

    def project(self, point: Floats) -> Floats:
        return np.clip(point, float(exactly(self.low)), float(exactly(self.high)))

    def reach(self, dimension: int) -> float:
        low, high = float(exactly(self.low)), float(exactly(self.high))
        start = min(max(0.0, low), high)
        return max(high - start, start - low) * math.sqrt(dimension) * (1 + 1e-12)

    def diameter(self, dimension: int) -> float:
        return float(exactly(self.high) - exactly(self.low)) * math.sqrt(dimension) * (1 + 1e-12)


@dataclass(frozen=True)
class Simplex:
    """Nonnegative weights that add up to `total`."""

    total: Number = 1

    def __post_init__(self) -> None:
        check_positive(self.total, "total")

    def project(self, point: Floats) -> Floats:
        return onto_simplex(point, float(exactly(self.total)))

    def reach(self, dimension: int) -> float:  # the start is the middle of the simplex
        return float(exactly(self.total)) * math.sqrt(max(1 - 1 / dimension, 0.0)) * (1 + 1e-12)

    def diameter(self, dimension: int) -> float:
        return float(exactly(self.total)) * (math.sqrt(2) if dimension > 1 else 0.0) * (1 + 1e-12)


def onto_simplex(point: Floats, total: float) -> Floats:
    """The nearest point with nonnegative entries that add up to the total: the same amount is subtracted everywhere,
    and negative entries become 0.
    """
    below = point - point.max()  # the same result, and no digits are lost for huge numbers
    falling = np.sort(below)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(point) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(below - excess[last], 0.0))


@dataclass(frozen=True)
class Affine:
    """Weights with `matrix`·w = `values`. This set is unbounded, so there is no error bound."""

    matrix: Sequence[Sequence[float]]
    values: Sequence[float]

    def __post_init__(self) -> None:
        rows, values = np.atleast_2d(np.asarray(self.matrix, float)), np.atleast_1d(np.asarray(self.values, float))
        if rows.ndim != 2 or len(rows) != len(values) or not (np.isfinite(rows).all() and np.isfinite(values).all()):
            raise InvalidArgument("Affine needs one finite value for each row of its matrix.", code="wrong-shape")
        inverse = np.linalg.pinv(rows)
        if not np.allclose(rows @ (inverse @ values), values):
            raise InvalidArgument(
                "No weights satisfy matrix·w = values: the equations contradict each other.", code="no-solution"
            )
        object.__setattr__(self, "matrix", tuple(map(tuple, rows.tolist())))
        object.__setattr__(self, "values", tuple(values.tolist()))

    def project(self, point: Floats) -> Floats:
        rows = np.asarray(self.matrix)
        return np.asarray(point - np.linalg.pinv(rows) @ (rows @ point - np.asarray(self.values)))

    def reach(self, dimension: int) -> float:
        return math.inf

    def diameter(self, dimension: int) -> float:
        return math.inf


@dataclass(frozen=True)
class Projection:
    """Any convex set, given by the function that projects onto it. With `radius`, the largest norm of its members, it
    is bounded.
    """

    function: Callable[[Floats], Any]
    radius: Number | None = None

    def project(self, point: Floats) -> Floats:
        moved = np.asarray(self.function(point.copy()), dtype=np.float64)
        if moved.shape != point.shape or not np.isfinite(moved).all():
            raise InvalidArgument(f"A projection must return {point.size} finite weights.", code="function-fails")
        return moved

    def reach(self, dimension: int) -> float:
        return self.diameter(dimension)  # the start is a member, and nothing else is known about it

    def diameter(self, dimension: int) -> float:
        return math.inf if self.radius is None else 2 * float(check_positive(self.radius, "radius")) * (1 + 1e-12)


def region_of(given: Any) -> Region:
    """A region from an argument: a region as it is, a number as a ball, None as no constraint, a function as a
    projection.
    """
    if given is None:
        return Everywhere()
    if hasattr(given, "project") and hasattr(given, "reach"):
        return given  # type: ignore[no-any-return]
    if callable(given):
        return Projection(given)
    return WithinRadius(given)
