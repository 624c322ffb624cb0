"""Containers that records come in: lists, arrays, frames and tables, each with a type of its own or with none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


class Odd:
    """The odd record among others, so that a container may place it otherwise than them."""

    def __init__(self, value: Any) -> None:
        self.value = value


class CannotHold(Exception):
    """A typed container that has no place for this record: then nobody can hand it in."""


Container = Callable[[Sequence[Any]], Any]


def plain(records: Sequence[Any]) -> list[Any]:
    """The records, the odd ones as they are."""
    return [one.value if isinstance(one, Odd) else one for one in records]


def of_plain(make: Callable[[list[Any]], Any]) -> Container:
    """A container that treats all records alike; what its library raises says that it cannot hold one."""

    @functools.wraps(make)
    def made(records: Sequence[Any]) -> Any:
        try:
            return make(plain(records))
        except Exception as error:
            raise CannotHold from error

    return made


def _check_ends(cells: list[Any], *, whole: bool) -> None:
    """Nothing from which a library never comes back: all digits of a decimal, or a list that holds itself."""
    for cell in cells:
        holds_itself = isinstance(cell, list) and any(part is cell for part in cell)
        if holds_itself or (whole and isinstance(cell, Decimal)):
            raise CannotHold


def arrow_of(cells: list[Any], kind: Any) -> Any:
    """A column of Arrow with this type."""
    _check_ends(cells, whole=pa.types.is_integer(kind))
    return pa.array(cells, type=kind)


def polars_of(cells: list[Any], kind: Any, *, strict: bool = True) -> Any:
    """A column of polars with this type."""
    _check_ends(cells, whole=kind == pl.Int64)
    try:
        return pl.Series("x", cells, dtype=kind, strict=strict)
    except pl.exceptions.PanicException:  # not an Exception
        pass
    raise CannotHold


def series_of(cells: list[Any], dtype: Any) -> Any:
    """A column of pandas with this type, set cell by cell: a gap among whole numbers would make doubles of them all."""
    _check_ends(cells, whole=dtype == "Int64")
    series = pd.Series([None] * len(cells), dtype=dtype)
    for place, cell in enumerate(cells):
        series.iat[place] = cell
    return series


def objects(cells: list[Any]) -> Any:
    """An object array of one dimension, whatever the cells are."""
    array = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        array[place] = cell
    return array


def table_of_objects(rows: list[Any], width: int) -> Any:
    """An object matrix; a row of another length cannot be in it."""
    array = np.empty((len(rows), width), dtype=object)
    for place, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != width:
            raise CannotHold
        for number, cell in enumerate(row):
            array[place, number] = cell
    return array


def typed(dtype: Any, shape: tuple[int, ...] = (-1,)) -> Container:
    """An array with a type of its own."""

    def make(cells: list[Any]) -> Any:
        _check_ends(cells, whole=np.dtype(dtype).kind == "i")
        array = np.empty(len(cells), dtype=dtype)
        for place, cell in enumerate(cells):
            array[place] = cell
        return array.reshape(shape)

    return of_plain(make)


def one_cell_rows_but_the_odd(records: Sequence[Any]) -> list[Any]:
    """Rows of one cell, and the odd record bare among them."""
    return [one.value if isinstance(one, Odd) else [one] for one in records]


def _series(dtype: Any) -> Container:
    return of_plain(lambda cells: series_of(cells, dtype))


def _polars(kind: Any) -> Container:
    return of_plain(lambda cells: polars_of(cells, kind, strict=kind != pl.Object))


def _arrow(kind: Any) -> Container:
    return of_plain(lambda cells: arrow_of(cells, kind))


LISTS: dict[str, Container] = {
    "list": of_plain(list),
    "tuple": of_plain(tuple),
    "iterator": of_plain(iter),
    "one-cell rows": of_plain(lambda cells: [[cell] for cell in cells]),
    "one-cell tuples": of_plain(lambda cells: [(cell,) for cell in cells]),
    "one-cell rows but the odd": one_cell_rows_but_the_odd,
    "objects": of_plain(objects),
    "objects, one column": of_plain(lambda cells: objects(cells).reshape(-1, 1)),
    "objects, three columns": of_plain(lambda cells: np.stack([objects(cells)] * 3, axis=1)),
    "pandas objects": of_plain(lambda cells: pd.Series(objects(cells), dtype=object)),
    "pandas frame of objects": of_plain(lambda cells: pd.DataFrame({"x": pd.Series(objects(cells), dtype=object)})),
    "pandas frame of two": of_plain(lambda c: pd.DataFrame({k: pd.Series(objects(c), dtype=object) for k in "xy"})),
    "polars objects": _polars(pl.Object),
}
NUMBERS: dict[str, Container] = LISTS | {
    "float64": typed(np.float64),
    "float32": typed(np.float32),
    "float64, one column": typed(np.float64, (-1, 1)),
    "float64, two columns": of_plain(lambda cells: np.array([[c, c] for c in cells], dtype=np.float64)),
    "int64": typed(np.int64),
    "pandas Int64": _series("Int64"),
    "pandas Float64": _series("Float64"),
    "pandas arrow": _series(pd.ArrowDtype(pa.float64())),
    "polars Float64": _polars(pl.Float64),
    "polars Int64": _polars(pl.Int64),
    "arrow float64": _arrow(pa.float64()),
    "arrow int64": _arrow(pa.int64()),
    "arrow decimal": _arrow(pa.decimal128(38, 2)),
}
TEXTS: dict[str, Container] = LISTS | {
    "U20": typed("U20"),
    "pandas string": _series("string"),
    "pandas category": of_plain(lambda cells: pd.Series(pd.Categorical(objects(cells), categories=["a", "b", "zzz"]))),
    "polars String": _polars(pl.String),
    "arrow string": _arrow(pa.string()),
    "arrow dictionary": of_plain(lambda cells: arrow_of(cells, pa.string()).dictionary_encode()),
}


def rows_in(width: int, names: str = "xyzw") -> dict[str, Container]:
    """Containers of rows with so many cells each."""
    columns = list(names[:width])

    def by_column(make: Callable[[dict[str, Any]], Any], column: Callable[[list[Any]], Any]) -> Container:
        def made(rows: list[Any]) -> Any:
            table = table_of_objects(rows, width)
            return make({name: column(list(table[:, place])) for place, name in enumerate(columns)})

        return of_plain(made)

    def numbers(cells: list[Any]) -> Any:
        return arrow_of(cells, pa.float64())

    return {
        "rows": of_plain(list),
        "tuples": of_plain(lambda rows: [tuple(row) if isinstance(row, list) else row for row in rows]),
        "tuple of rows": of_plain(tuple),
        "array of rows": of_plain(lambda rows: [np.array(r, float) if isinstance(r, list) else r for r in rows]),
        "objects": of_plain(lambda rows: table_of_objects(rows, width)),
        "objects of rows": of_plain(objects),
        "float64": of_plain(lambda rows: table_of_objects(rows, width).astype(np.float64)),
        "pandas objects": by_column(pd.DataFrame, lambda cells: pd.Series(objects(cells), dtype=object)),
        "pandas Float64": by_column(pd.DataFrame, lambda cells: pd.Series(cells, dtype="Float64")),
        "polars": by_column(pl.DataFrame, lambda cells: polars_of(cells, pl.Float64)),
        "polars objects": by_column(pl.DataFrame, lambda cells: polars_of(cells, pl.Object)),
        "arrow": by_column(pa.table, numbers),
    }
