"""A finite domain of public columns: the values of each column in order, and the position of a row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.queries.space import Categories
from discreet.rows import cells, column, columns_of, doubles, names_of, parts_of
from discreet.rows.containers import Data

MOST_CELLS = 10**8
"""No table of counts with more cells is built: it would not fit into memory."""

Values = int | Sequence[Hashable] | Categories
"""What a column may hold: the numbers 0 … size-1, a list of values, or `Categories` with an `other`."""


class Domain(Closed):
    """Columns in order, each with its public values in order (an integer n stands for 0 … n-1).

    A row with an undeclared value in any column is outside and not counted, unless `Categories` say where it goes.

    >>> Domain({"age": 100, "sex": ("f", "m")}).shape
    (100, 2)
    """

    _columns: tuple[tuple[str, int | Categories], ...]

    def __init__(self, columns: Mapping[str, Values]) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidArgument(
                "A domain needs a mapping of column names to their values, such as {'age': 100}.", code="wrong-type"
            )
        if not all(isinstance(name, str) and name for name in columns):
            raise InvalidArgument("The column names of a domain must be text, such as 'age'.", code="wrong-type")
        object.__setattr__(self, "_columns", tuple((name, _declared(values)) for name, values in columns.items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A domain does not change. Make another.")

    def __repr__(self) -> str:
        return f"Domain({{{', '.join(f'{name!r}: {_text_of(values)}' for name, values in self._columns)}}})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(self._columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(name for name, _ in self._columns)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(values if isinstance(values, int) else len(values) for _, values in self._columns)

    @property
    def size(self) -> int:
        """The number of different rows: the product of the shape, which may be very large."""
        return math.prod(self.shape)

    def values(self, name: str) -> Sequence[Hashable]:
        """The public values of a column, in order."""
        values = self._columns[self.axis(name)][1]
        return range(values) if isinstance(values, int) else values.points()

    def axis(self, name: str) -> int:
        """The index of a column. Raises if there is no such column."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InvalidArgument(
                f"The domain has no column {name!r}: it has {', '.join(self.names)}.", code="unknown-column"
            ) from None

    def axes(self, names: Sequence[str]) -> tuple[int, ...]:
        """The indices of several different columns. Raises if one is missing or repeated."""
        places = tuple(self.axis(name) for name in names)
        if len(set(places)) != len(places):
            raise InvalidArgument("A set of columns must name each column once.", code="duplicates")
        return places

    def project(self, names: Sequence[str]) -> Domain:
        """The domain of only these columns, in this order."""
        return Domain({name: self._columns[axis][1] for name, axis in zip(names, self.axes(names), strict=True)})

    def codes(self, data: Data) -> NDArray[np.int64]:
        """One line of indices for each row, one index for each column. Rows outside the domain are left out.

        `data` is a mapping, frame or Arrow table of columns, a matrix or list of rows, or the values themselves
        when there is one column. A record of another width is outside.
        """
        columns = [column(one) for one in self._columns_of(data)]
        if len({len(one) for one in columns}) > 1:
            raise InvalidArgument("The columns of the data must have the same length.", code="unequal-lengths")
        places = [_places(values, one) for (_, values), one in zip(self._columns, columns, strict=True)]
        lines = np.stack(places, axis=1)
        return lines[(lines >= 0).all(axis=1)]

    def _columns_of(self, data: Any) -> Sequence[Any]:
        held = list(data) if isinstance(data, Mapping) else names_of(data)
        if held is not None:
            missing = [name for name in self.names if name not in held]
            if missing:
                raise InvalidArgument(
                    f"The data has no column {missing[0]!r}. Add it, or declare the domain without it.",
                    code="unknown-column",
                )
            if isinstance(data, Mapping):
                return [data[name] for name in self.names]
            parts = columns_of(data)  # by place: a name need not be text, or be there once
            return [parts[held.index(name)] for name in self.names]
        if getattr(data, "ndim", 1) == 2:
            if data.shape[1] != len(self.names):
                raise InvalidArgument(
                    f"A row of this domain has {len(self.names)} values, one for each column.", code="wrong-shape"
                )
            return [data[:, place] for place in range(data.shape[1])]
        if len(self.names) == 1:
            return [data]
        lines = [line for record in cells(data) if (line := parts_of(record, len(self.names))) is not None]
        return [[line[place] for line in lines] for place in range(len(self.names))]

    def counts(self, codes: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.int64]:
        """How many rows, given by their `codes`, lie in each cell of these columns: a table with one axis for each."""
        axes = self.axes(names)
        shape = tuple(self.shape[axis] for axis in axes)
        cells = math.prod(shape)
        if cells > MOST_CELLS:
            raise InvalidArgument(
                f"{' × '.join(names)} has {cells} cells. One table has at most 10^8. Ask for fewer columns.",
                code="too-large",
            )
        places = np.zeros(len(codes), dtype=np.int64)
        for axis, size in zip(axes, shape, strict=True):
            places = places * size + codes[:, axis]
        return np.bincount(places, minlength=cells).astype(np.int64).reshape(shape)

    def histogram(self, data: Data) -> NDArray[np.int64]:
        """How many rows lie in each cell of the whole domain."""
        return self.counts(self.codes(data), self.names)

    def decode(self, codes: NDArray[np.int64]) -> dict[str, list[Hashable]]:
        """The values that lines of indices stand for, column by column."""
        return {
            name: [values[place] for place in codes[:, axis].tolist()]
            for axis, name in enumerate(self.names)
            for values in [self.values(name)]
        }


def _declared(values: Any) -> int | Categories:
    if isinstance(values, Categories):
        return values
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return Categories(tuple(values))
    return check_count(values, "the size of a column")


def _text_of(values: int | Categories) -> str:
    if isinstance(values, int):
        return str(values)
    return repr(values.choices) if values == Categories(values.choices) else repr(values)


def _places(values: int | Categories, data: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each value, or -1."""
    if not isinstance(values, int):
        return values.positions(data)
    numbers = doubles(data)
    with np.errstate(invalid="ignore"):
        inside = (numbers >= 0) & (numbers < values) & (numbers == np.floor(numbers))
    return np.where(inside, numbers, -1).astype(np.int64)
