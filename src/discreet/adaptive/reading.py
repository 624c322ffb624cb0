"""Columns of arrays, data frames and Arrow tables: types decide what is refused, and each cell is read by itself."""

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

_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_COLUMN = "A column must be numbers, true and false, dates, or text."
_EXACT = 2.0**53


def columns_of(source: Any, *, protects: Unit | None = None) -> dict[str, NDArray[Any]]:
    """The columns of a dict of arrays, a data frame, or an Arrow table; what is refused is a matter of shape and type.

    What a column is depends on its declared type, which lists have not: a missing cell is NaN in numbers, False in
    true-or-false, and None in text, and changes nothing about the others. Under a ledger that `protects` somebody
    there may be no row, where rows are added or removed.
    """
    columns = {str(name): typed_array(source[name]) for name in _names(source)}
    lengths = {len(column) if column.ndim else -1 for column in columns.values()}
    if len(lengths) != 1 or min(lengths) < (0 if protects is not None and protects.neighbors != "replace" else 1):
        raise InvalidArgument("All columns of a sample must have the same number of rows, at least one.")
    return columns


def _names(source: Any) -> list[Any]:
    names: Any = None
    if isinstance(source, Mapping):
        names = list(source)
    elif has(source, "column_names") or has(source, "columns"):  # in Arrow `columns` are the columns themselves
        names = list(source.column_names if has(source, "column_names") else source.columns)
    if not names or len(set(map(str, names))) < len(names):
        raise InvalidArgument(
            "A sample is a table, a data frame, or a dict of arrays whose first axis are rows, each column with a name "
            "of its own."
        )
    return list(names)


def people_of(source: Any, name: str) -> list[Any]:
    """Whose each row is, told apart exactly; None for nobody: a missing id, or one that can belong to several.

    Whole numbers, text and days, as for dp.table. Arrays and pandas write whole numbers with gaps as floating-point
    numbers, so that theirs are taken where they are whole and below 2^53, and else for nobody.
    """
    column = _in_arrow(next(source[one] for one in _names(source) if str(one) == name))
    people: list[Any] | None
    if _is_arrow(column):
        people = _people_in_arrow(_decoded(column))
    else:
        array = _ids(column)
        people = None if array.ndim != 1 or array.dtype.kind not in "biufMUSO" else [*map(_person, _cells(array))]
    if people is None:
        raise InvalidArgument(f"{name} tells people apart, and must be whole numbers, text or days.")
    return people


# --- arrays and data frames -------------------------------------------------------------------------------------


def typed_array(column: Any) -> NDArray[Any]:
    """A column of a public type as an array: numbers, true and false, or cells that can be compared."""
    if not (_is_arrow(column) or has(column, "dtype") or has(column, "__array__")):
        # a list would become text as a whole as soon as one cell is
        raise InvalidArgument("A column is an array with a type, and not a list: np.array(…, dtype=float).")
    if isinstance(column, np.ma.MaskedArray):
        kind = column.dtype.kind  # what is masked is missing
        column = column.astype(np.float64) if kind in "iu" else column
        gap: Any = {"b": False, "M": np.datetime64("NaT")}.get(kind, np.nan)
        column = np.ma.filled(column, gap) if kind in "biufM" else cells_in(column)
    column = _in_arrow(column)
    if _is_arrow(column):
        array = _from_arrow(_decoded(column))
    elif _is_pandas_type(column):
        kind = column.dtype.kind
        missing: Any = {"b": False, "O": None}.get(kind, np.nan)
        typed: Any = {"b": bool, "O": object}.get(kind, np.float64)
        array = _zoned(column) if kind == "M" else column.to_numpy(dtype=typed, na_value=missing)
    else:
        array = np.asarray(column.to_numpy() if has(column, "to_numpy") else column)
    if array.dtype.kind == "M":
        array = (array - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    if array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype.kind == "O" and array.ndim == 1:
        array = plain_cells(array)
    if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and array.ndim != 1):
        raise InvalidArgument(_COLUMN)
    array = (np.ascontiguousarray(array) if array.ndim else array).view()
    array.flags.writeable = False
    return array


def _is_pandas_type(column: Any) -> bool:
    """Whether a column has a type of pandas' own, and not one of numpy's."""
    return has(column, "dtype") and hasattr(column.dtype, "na_value") and has(column, "to_numpy")


def _zoned(column: Any) -> NDArray[Any]:
    """Instants of pandas in some time zone, as those of numpy."""
    return np.asarray(column.to_numpy(dtype=f"datetime64[{column.dtype.unit}]"))


def _ids(column: Any) -> NDArray[Any]:
    if _is_pandas_type(column):
        return _zoned(column) if column.dtype.kind == "M" else column.to_numpy(dtype=object, na_value=None)
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
    """Who a cell names; None where that is nobody."""
    try:
        who = _named(cell)
        return who if hash(who) == hash(who) and who == who else None  # what is not a time is not itself
    except Exception:  # an object that fails in whatever it is asked
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
    """A column of polars, or one that pandas keeps in Arrow, as Arrow has it; any other as it is."""
    kind = getattr(column, "dtype", None)
    if has(column, "array") and (hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"):
        return column.array.__arrow_array__()
    if not has(column, "to_arrow"):
        return column
    made = None
    try:
        made = column.to_arrow()
    except Exception:  # a type that Arrow has not; not said from here, as it would stay in the chain of exceptions
        made = None
    if made is None:
        raise InvalidArgument(_COLUMN)
    return made


def _is_arrow(column: Any) -> bool:
    return has(column, "chunks") or type(column).__module__.startswith("pyarrow")


def _decoded(column: Any) -> Any:
    """A column without a dictionary, runs, or a type built on another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    while True:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.cast(column.type.storage_type)
        elif pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        elif pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        else:
            return column


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast("float64", safe=False)  # beyond 2^53 the nearest, and no error that quotes a cell
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        per_day = 1 if pa.types.is_date32(kind) else _PER_DAY[getattr(kind, "unit", "ms")]
        return np.asarray(_whole(column).cast("float64", safe=False).to_numpy(zero_copy_only=False)) / per_day
    if pa.types.is_duration(kind):
        raise InvalidArgument(_COLUMN)
    cells = np.full(len(column), None, dtype=object)
    if _is_text(kind):
        cells[:] = [_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()]
    return cells


def _people_in_arrow(column: Any) -> list[Any] | None:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return list(column.to_pylist())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return list(_whole(column).to_pylist())
    return list(column.cast(pa.large_binary()).to_pylist()) if _is_text(kind) else None


def _whole(column: Any) -> Any:
    """Days or instants as the whole numbers that they are kept as."""
    import pyarrow as pa

    return column.cast("int32" if pa.types.is_date32(column.type) else "int64")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _text(cell: bytes | None) -> str | None:
    """None where bytes are no text."""
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None
