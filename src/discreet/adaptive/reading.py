"""Columns of arrays, data frames and Arrow tables. Types decide what is refused, and each cell is read by itself."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.guarded import plain_cells
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import Unit
from discreet.rows import column as cells_in
from discreet.rows import has
from discreet.rows.arrow import (
    bytes_of,
    days_of,
    floats_of,
    in_arrow,
    is_moment,
    is_text,
    is_whole,
    plain,
    texts_of,
    ticks_of,
)

_COLUMN = "A column must hold numbers, True and False, dates, or text."
_EXACT = 2.0**53


def columns_of(source: Any, *, protects: Unit | None = None) -> dict[str, NDArray[Any]]:
    """The columns of a dict of arrays, a data frame, or an Arrow table. Only shape and type decide what is refused.

    What a column is depends on its declared type, which lists have not: a missing cell is NaN in numbers, False in
    true-or-false, and None in text, and changes nothing about the others. Under a ledger that `protects` somebody
    there may be no row, where rows are added or removed.
    """
    columns = {str(name): typed_array(source[name]) for name in _names(source)}
    lengths = {len(column) if column.ndim else -1 for column in columns.values()}
    if len(lengths) != 1 or min(lengths) < (0 if protects is not None and protects.neighbors != "replace" else 1):
        raise InvalidArgument(
            "All columns of a sample must have the same number of rows, at least one.", code="unequal-lengths"
        )
    return columns


def _names(source: Any) -> list[Any]:
    names: Any = None
    if isinstance(source, Mapping):
        names = list(source)
    elif has(source, "column_names") or has(source, "columns"):  # in Arrow `columns` are the columns themselves
        names = list(source.column_names if has(source, "column_names") else source.columns)
    if not names or len(set(map(str, names))) < len(names):
        raise InvalidArgument(
            "A sample must be a table, a data frame, or a dict of arrays with rows along the first axis. "
            "Each column needs its own name.",
            code="study-sample",
        )
    return list(names)


def people_of(source: Any, name: str) -> list[Any]:
    """The owner of each row, compared exactly. None for a missing id, or one that could belong to several people.

    Ids are integers, text and days, as for dp.table. Arrays and pandas store integers with missing values as floats.
    Such ids are accepted if they are integers below 2^53, and otherwise belong to nobody.
    """
    column = _in_arrow(next(source[one] for one in _names(source) if str(one) == name))
    people: list[Any] | None
    if _is_arrow(column):
        people = _people_in_arrow(plain(column))
    else:
        array = _ids(column)
        people = None if array.ndim != 1 or array.dtype.kind not in "biufMUSO" else [*map(_person, _cells(array))]
    if people is None:
        raise InvalidArgument(
            f"{name} identifies people, so it must hold whole numbers, text or dates.", code="study-sample"
        )
    return people


# --- arrays and data frames -------------------------------------------------------------------------------------


def typed_array(column: Any) -> NDArray[Any]:
    """A column of a public type as an array: numbers, booleans, or cells that can be compared."""
    if not (_is_arrow(column) or has(column, "dtype") or has(column, "__array__")):
        # a list with a single text cell would become text as a whole
        raise InvalidArgument(
            "A column must be an array with a type, not a list: np.array(…, dtype=float).", code="study-sample"
        )
    if isinstance(column, np.ma.MaskedArray):
        kind = column.dtype.kind  # masked cells are missing
        column = column.astype(np.float64) if kind in "iu" else column
        gap: Any = {"b": False, "M": np.datetime64("NaT")}.get(kind, np.nan)
        column = np.ma.filled(column, gap) if kind in "biufM" else cells_in(column)
    column = _in_arrow(column)
    if _is_arrow(column):
        array = _from_arrow(plain(column))
    elif _is_pandas_type(column):
        kind = column.dtype.kind
        missing: Any = {"b": False, "O": None}.get(kind, np.nan)
        typed: Any = {"b": bool, "O": object}.get(kind, np.float64)
        array = _without_zone(column) if kind == "M" else column.to_numpy(dtype=typed, na_value=missing)
    else:
        array = np.asarray(column.to_numpy() if has(column, "to_numpy") else column)
    if array.dtype.kind == "M":
        array = (array - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    if array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype.kind == "O" and array.ndim == 1:
        array = plain_cells(array)
    if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and array.ndim != 1):
        raise InvalidArgument(_COLUMN, code="study-sample")
    array = (np.ascontiguousarray(array) if array.ndim else array).view()
    array.flags.writeable = False
    return array


def _is_pandas_type(column: Any) -> bool:
    """Whether a column has a type of pandas, not one of numpy."""
    return has(column, "dtype") and hasattr(column.dtype, "na_value") and has(column, "to_numpy")


def _without_zone(column: Any) -> NDArray[Any]:
    """Timestamps of pandas in some time zone, as numpy timestamps."""
    return np.asarray(column.to_numpy(dtype=f"datetime64[{column.dtype.unit}]"))


def _ids(column: Any) -> NDArray[Any]:
    if _is_pandas_type(column):
        return _without_zone(column) if column.dtype.kind == "M" else column.to_numpy(dtype=object, na_value=None)
    return np.asarray(column.to_numpy() if has(column, "to_numpy") else column)


def _cells(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind == "M":  # not as Python's days, which end in the year 9999
        missing = np.isnat(array).tolist()
        whole = array.view(np.int64).tolist()
        return [None if gone else cell for gone, cell in zip(missing, whole, strict=True)]
    if array.dtype.kind == "f":
        exact = 2.0 ** (np.finfo(array.dtype).nmant + 1)
        with np.errstate(all="ignore"):
            return [float(cell) if abs(cell) < exact else None for cell in array.tolist()]
    return list(array.tolist())


def _person(cell: Any) -> Any:
    """The person that a cell names. None if that is nobody."""
    try:
        who = _named(cell)
        return who if hash(who) == hash(who) and who == who else None  # NaT is not equal to itself
    except Exception:  # an object whose every method may fail
        return None


def _named(cell: Any) -> Any:
    if isinstance(cell, float | np.floating):
        number = float(cell)
        return int(number) if abs(number) < _EXACT and number.is_integer() else None
    if isinstance(cell, Decimal):
        return cell if cell.is_finite() else None
    kinds = str | bytes | int | np.integer | np.bool_ | uuid.UUID | datetime.date | np.datetime64
    return cell if isinstance(cell, kinds) else None


# --- Arrow, and what can become it --------------------------------------------------------------------------------


def _in_arrow(column: Any) -> Any:
    """A column of polars, or one that pandas stores in Arrow, as an Arrow array. Any other column as it is."""
    found = in_arrow(column)
    if found is not None or not has(column, "to_arrow"):
        return column if found is None else found
    if str(column.dtype) != "Object":
        raise InvalidArgument(_COLUMN, code="study-sample")
    import pyarrow as pa

    return pa.nulls(len(column), pa.binary())  # objects without a public type: each of them is missing


def _is_arrow(column: Any) -> bool:
    return has(column, "chunks") or type(column).__module__.startswith("pyarrow")


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return floats_of(column).astype(np.float64, copy=False)
    if is_moment(kind):
        return days_of(column)
    if pa.types.is_duration(kind):
        raise InvalidArgument(_COLUMN, code="study-sample")
    cells = np.full(len(column), None, dtype=object)
    if is_text(kind):
        cells[:] = texts_of(column)
    return cells


def _people_in_arrow(column: Any) -> list[Any] | None:
    import pyarrow as pa

    kind = column.type
    if is_whole(kind) or pa.types.is_null(kind):
        return list(column.to_pylist())
    if is_moment(kind):
        return list(ticks_of(column).to_pylist())
    return bytes_of(column) if is_text(kind) else None
