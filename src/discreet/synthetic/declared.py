"""What each column of a synthetic table may hold: public choices, or numbers in public bounds, divided into bins."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.randomness import Keystream
from discreet.exact.rational import check_count, exactly
from discreet.queries.intervals import Integers, Interval
from discreet.queries.space import Categories
from discreet.queries.workload import Domain
from discreet.rows import cells, doubles, wholes


@dataclass(frozen=True)
class Numbers:
    """Numbers from low to high in `bins` bins of equal width. If there are few integers, each has its own bin."""

    low: Any
    high: Any
    bins: int
    whole: bool

    def __post_init__(self) -> None:
        Integers(self.low, self.high) if self.whole else Interval(self.low, self.high)  # refuse bad bounds
        if self.whole:
            object.__setattr__(self, "bins", min(self.bins, self._span))

    @property
    def _span(self) -> int:
        return int(exactly(self.high) - exactly(self.low)) + 1

    def codes(self, values: Any) -> NDArray[np.int64]:
        """The bin of each number, clamped to the bounds. -1 for a value that is not a number."""
        if self.whole:
            whole, missing = wholes(values)
            inside = np.clip(whole, int(self.low), int(self.high)).tolist()
            found = np.array([(one - int(self.low)) * self.bins // self._span for one in inside], dtype=np.int64)
        else:
            numbers = doubles(values)
            missing = np.isnan(numbers)
            inside = np.clip(np.where(missing, float(self.low), numbers), float(self.low), float(self.high))
            scaled = (inside - float(self.low)) / float(exactly(self.high) - exactly(self.low))
            found = np.clip((scaled * self.bins).astype(np.int64), 0, self.bins - 1)
        return np.where(missing, -1, found)

    def values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """A uniform number in the bin of each code. The same codes always give the same numbers."""
        at = _pseudorandom(codes)
        if self.whole:
            starts = np.array([-(-c * self._span // self.bins) for c in range(self.bins + 1)])
            widths = np.diff(starts)
            inside = np.minimum((at * widths[codes]).astype(np.int64), widths[codes] - 1)
            return np.asarray(int(self.low) + starts[codes] + inside)
        edges = np.array([float(_edge(self.low, self.high, c, self.bins)) for c in range(self.bins + 1)])
        inside = edges[codes] + at * (edges[codes + 1] - edges[codes])
        return np.asarray(np.clip(inside, float(self.low), float(self.high)))


def _pseudorandom(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers in [0, 1) that look random but follow from the codes, so that a stored table is always shown the same."""
    words = Keystream(hashlib.sha256(codes.tobytes()).digest(), bytes(16)).read(8 * len(codes))
    return np.asarray((np.frombuffer(words, dtype=np.uint64) >> np.uint64(11)) * 2.0**-53)


def _edge(low: Any, high: Any, place: int, bins: int) -> Fraction:
    return exactly(low) + (exactly(high) - exactly(low)) * place / bins


class Declared(Closed):
    """The columns of a table in order: a pair (low, high) of numbers, a list of choices, or `Categories`.

    Numbers are clamped to their bounds and put into at most `bins` bins. Those of columns in `whole` stay integers (by
    default the columns with integer bounds). A row with an undeclared choice or a missing value is left out.

    >>> Declared({"age": (0, 120), "city": ["Haifa", "Bled"]}).domain.shape
    (100, 2)
    """

    def __init__(self, columns: Mapping[str, Any], *, bins: int = 100, whole: Collection[str] | None = None) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidArgument(
                "Declare at least one column, such as {'age': (0, 120), 'city': ['Haifa', 'Bled']}.", code="empty"
            )
        count = check_count(bins, "bins")
        self._columns: dict[str, Numbers | Categories] = {}
        for name, what in columns.items():
            if _is_range(what):
                is_whole = all(isinstance(end, int) for end in what) if whole is None else name in whole
                self._columns[name] = Numbers(what[0], what[1], count, is_whole)
            else:
                self._columns[name] = what if isinstance(what, Categories) else Categories(what)
        sizes = {n: c.bins if isinstance(c, Numbers) else len(c) for n, c in self._columns.items()}
        self.domain = Domain(sizes)
        self.ordered = tuple(name for name, column in self._columns.items() if isinstance(column, Numbers))

    def codes(self, data: Mapping[str, Any]) -> NDArray[np.int64]:
        """The rows that match the declarations, one line of codes for each."""
        missing = [name for name in self._columns if name not in data]
        if missing:
            raise InvalidArgument(
                f"The data has no column {missing[0]!r}. Add it, or declare the table without it.",
                code="unknown-column",
            )
        found = [
            column.codes(data[name]) if isinstance(column, Numbers) else column.positions(cells(data[name]))
            for name, column in self._columns.items()
        ]
        if len({len(column) for column in found}) > 1:
            raise InvalidArgument("The columns of the data must have the same length.", code="unequal-lengths")
        table = np.stack(found, axis=1)
        return table[(table >= 0).all(axis=1)]

    def centers(self, name: str) -> tuple[float, ...] | None:
        """The number that each code of a column stands for: a choice, or the middle of a bin. None if it has none."""
        column = self._columns[name]
        if isinstance(column, Numbers):
            if column.whole and column.bins == column._span:
                return tuple(float(int(column.low) + code) for code in range(column.bins))
            ends = [float(_edge(column.low, column.high, place, column.bins)) for place in range(column.bins + 1)]
            return tuple((low + high) / 2 for low, high in itertools.pairwise(ends))
        points = column.points()
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in points):
            return None
        return tuple(float(one) for one in points)  # type: ignore[arg-type]

    def codes_of(self, name: str, values: Any) -> tuple[int, ...] | None:
        """The codes of listed choices, or of the bins between two numbers. None if they are neither."""
        column = self._columns[name]
        if isinstance(column, Numbers):
            if not _is_range(values) or values[0] > values[1]:
                return None
            first, last = column.codes(list(values)).tolist()
            return tuple(range(first, last + 1))
        found = column.positions(list(values)).tolist()
        return tuple(found) if found and min(found) >= 0 else None

    def values(self, codes: NDArray[np.int64]) -> dict[str, Any]:
        """The columns that codes stand for: arrays of numbers, lists of choices."""
        made: dict[str, Any] = {}
        for place, (name, column) in enumerate(self._columns.items()):
            if isinstance(column, Numbers):
                made[name] = column.values(codes[:, place])
            else:
                choices: Sequence[Hashable] = column.points()
                made[name] = [choices[code] for code in codes[:, place].tolist()]
        return made


def _is_range(what: Any) -> bool:
    if not isinstance(what, tuple) or len(what) != 2:
        return False
    return all(isinstance(end, int | float | Fraction) and not isinstance(end, bool) for end in what) and all(
        math.isfinite(end) for end in what
    )
