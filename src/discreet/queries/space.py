"""Metric spaces of rows and answers: numbers, categories, vectors, curves and mixtures of them.

Bounds are declared, never read from the data, and `clamp` maps any value into its space by a public rule.
Source: [T.3.1], [T.3.4]. Numbers are in `intervals`, vectors in `ball`; all names can be imported from here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.queries.ball import Ball
from discreet.queries.intervals import Grid, Integers, Interval, Point
from discreet.rows import cells, is_row, place_of, table
from discreet.rows.containers import Data

__all__ = [
    "Ball",
    "Categories",
    "FiniteSpace",
    "Functions",
    "Grid",
    "Integers",
    "Interval",
    "Product",
    "Space",
]


@runtime_checkable
class Space(Protocol):
    """A bounded metric space: distances, diameter, membership and clamping."""

    @property
    def diameter(self) -> Fraction:
        """The largest distance between two points."""

    @property
    def minimal_distance(self) -> Fraction | None:
        """The smallest distance between two different points of a finite space. None if there is none."""

    def distance(self, a: Point, b: Point) -> Fraction:
        """The distance between two points. A square root is rounded up."""

    def __contains__(self, value: object) -> bool:
        """Whether `value` is a point of the space."""

    def clamp(self, value: Data) -> Any:
        """The point that stands for `value`. A member stands for itself. Arrays are clamped element by element."""


@runtime_checkable
class FiniteSpace(Space, Protocol):
    """A space whose points can be listed."""

    def __len__(self) -> int:
        """The number of points."""

    def points(self) -> Iterable[Any]:
        """All points, in a public order."""


@dataclass(frozen=True)
class Categories(Closed):
    """Declared choices, any two of them `apart`. Any other value goes to `other`, or is refused.

    >>> Categories(("Haifa", "Ljubljana", "elsewhere"), other="elsewhere").clamp("Lipica")
    'elsewhere'
    """

    choices: Sequence[Hashable]
    _: KW_ONLY
    other: Hashable = None
    apart: Number = 1

    def __post_init__(self) -> None:
        if isinstance(self.choices, str | bytes):
            raise InvalidArgument("choices must be a list of values, not one text.", code="wrong-type")
        object.__setattr__(self, "choices", tuple(self.choices))
        check_positive(self.apart, "apart")
        if not self.choices or any(choice != choice or choice is None for choice in self.choices):
            raise InvalidArgument(
                "choices must be at least one value, none of them None or NaN.",
                code="out-of-range" if self.choices else "empty",
            )
        if len(self._places) != len(self.choices):
            raise InvalidArgument("choices must be different from each other.", code="duplicates")
        if self.other is not None and self.other not in self:
            raise InvalidArgument("other must be one of the choices.", code="unknown-choice")

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        try:
            return {choice: place for place, choice in enumerate(self.choices)}
        except TypeError:
            raise InvalidArgument("choices must be plain values such as text or numbers.", code="wrong-type") from None

    @property
    def minimal_distance(self) -> Fraction:
        return exactly(self.apart)

    @property
    def diameter(self) -> Fraction:
        return exactly(self.apart) if len(self.choices) > 1 else Fraction(0)

    def distance(self, a: Point, b: Point) -> Fraction:
        return Fraction(0) if a == b else exactly(self.apart)

    def __len__(self) -> int:
        return len(self.choices)

    def points(self) -> tuple[Hashable, ...]:
        """The choices, in the order declared."""
        return tuple(self.choices)

    def positions(self, values: Data) -> NDArray[np.int64]:
        """The index of each value in `points()`. For an undeclared value it is that of `other`, or -1."""
        listed, elsewhere = cells(values), -1 if self.other is None else self._places[self.other]
        try:
            found = np.fromiter((self._places.get(cell, -1) for cell in listed), np.int64, len(listed))
        except Exception:  # a cell that is not hashable, or whose equality fails
            found = np.fromiter((place_of(cell, self._places) for cell in listed), np.int64, len(listed))
        return np.where(found < 0, elsewhere, found)

    def __contains__(self, value: object) -> bool:
        return place_of(value, self._places) >= 0

    def clamp(self, value: Data) -> Any:
        listed = isinstance(value, list) or getattr(value, "ndim", 0) > 0
        places = self.positions(value if listed else [value])
        if (places < 0).any():
            raise InvalidArgument(
                "A value is not among the declared choices. Declare it, or declare other=.", code="unknown-choice"
            )
        if not listed:
            return self.choices[places[0]]
        return np.fromiter((self.choices[place] for place in places), object, len(places))


@dataclass(frozen=True)
class Functions(Closed):
    """Curves given by a value, in a space of scalars, `at` each of finitely many public points; sup metric.

    >>> Functions((0, 0.5, 1), Interval(0, 1)).diameter
    Fraction(1, 1)
    """

    at: Sequence[Any]
    values: Space

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", tuple(self.at))
        if not self.at or not isinstance(self.values, Space):
            raise InvalidArgument(
                "Functions needs at least one point and the space of its values.",
                code="wrong-type" if self.at else "empty",
            )

    @property
    def minimal_distance(self) -> None:
        """None: curves are not counted one by one."""
        return None

    @property
    def diameter(self) -> Fraction:
        return self.values.diameter

    def distance(self, a: Point, b: Point) -> Fraction:
        return max(self.values.distance(x, y) for x, y in zip(a, b, strict=True))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
            return False
        return len(value) == len(self.at) and all(part in self.values for part in value)

    def clamp(self, value: Data) -> Any:
        """One curve, or each row of a matrix of curves, with every value clamped."""
        if is_row(value):
            if len(value) != len(self.at):
                raise InvalidArgument(
                    f"A curve needs {len(self.at)} values, one at each public point.", code="wrong-shape"
                )
            return self.clamp(value[None] if hasattr(value, "dtype") else [value])[0]
        curves = table(value, len(self.at))
        return self.values.clamp(curves.reshape(-1)).reshape(curves.shape)


@dataclass(frozen=True, init=False)
class Product(Closed):
    """Mixed rows: one component from each space, at the `"sum"` or the `"max"` of their distances.

    >>> Product(Interval(0, 1), Categories(("a", "b"))).diameter
    Fraction(2, 1)
    """

    spaces: tuple[Space, ...]
    metric: Literal["sum", "max"]

    def __init__(self, *spaces: Space, metric: Literal["sum", "max"] = "sum") -> None:
        if not spaces or not all(isinstance(space, Space) for space in spaces):
            raise InvalidArgument("Product needs one space or more.", code="wrong-type" if spaces else "empty")
        if metric not in ("sum", "max"):
            raise InvalidArgument("metric must be 'sum' or 'max'.", code="not-an-option")
        object.__setattr__(self, "spaces", spaces)
        object.__setattr__(self, "metric", metric)

    def _join(self, parts: Iterable[Fraction]) -> Fraction:
        return max(parts) if self.metric == "max" else sum(parts, Fraction(0))

    @property
    def diameter(self) -> Fraction:
        return self._join(space.diameter for space in self.spaces)

    @property
    def minimal_distance(self) -> Fraction | None:
        """The smallest of the components', when all are finite: one component may differ alone."""
        parts = [space.minimal_distance for space in self.spaces]
        known = [part for part in parts if part is not None]
        return min(known) if len(known) == len(parts) else None

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return math.prod(space.__len__() for space in self._finite())

    def points(self) -> Iterator[tuple[Any, ...]]:
        """All points. The last component changes fastest."""
        return itertools.product(*(space.points() for space in self._finite()))

    def _finite(self) -> tuple[FiniteSpace, ...]:
        if self.minimal_distance is None:
            raise InvalidArgument(
                "A product is finite only if all its spaces are. Use Integers, Grid or Categories.", code="not-finite"
            )
        return cast(tuple[FiniteSpace, ...], self.spaces)

    def distance(self, a: Point, b: Point) -> Fraction:
        return self._join(space.distance(x, y) for space, x, y in zip(self.spaces, a, b, strict=True))

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, tuple | list)
            and len(value) == len(self.spaces)
            and all(part in space for space, part in zip(self.spaces, value, strict=True))
        )

    def clamp(self, value: Data) -> tuple[Any, ...]:
        """One row, or one column for each space, clamped component by component."""
        if len(value) != len(self.spaces):
            raise InvalidArgument(f"A row of this product has {len(self.spaces)} components.", code="wrong-shape")
        return tuple(space.clamp(part) for space, part in zip(self.spaces, value, strict=True))
