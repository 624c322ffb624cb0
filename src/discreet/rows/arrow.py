"""Arrow columns are decoded only here: by the type of the column, and each cell by itself.

Any cell gives a value or is missing, and never causes an error. Text that is not Unicode and timestamps that Python
cannot represent are missing. Columns of polars, and pandas columns that are stored in Arrow, are read as Arrow columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.rows.containers import has, names_of, objects, on_host, package

Targets = Callable[[Any], Any]
Batch = tuple[Any, NDArray[np.float64]]
Floats = NDArray[np.float64]
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


# --- what is a column of Arrow, and of which type -----------------------------------------------------------------


def in_arrow(data: Any) -> Any:
    """An Arrow column, a polars column, or a pandas column stored in Arrow, as an Arrow array. None for any other."""
    if names_of(data) is not None:
        return None
    if package(data) == "pyarrow":
        return data if has(data, "null_count") else None
    kind = getattr(data, "dtype", None) if has(data, "dtype") else None
    if package(data) == "polars":  # Arrow has no 128-bit integers, and for objects it has only their addresses
        return None if kind is None or str(kind) in ("Object", "Int128") else data.to_arrow()
    if package(data) == "pandas" and (hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"):
        return (data.array if has(data, "array") else data).__arrow_array__()
    return None


def plain(column: Any) -> Any:
    """A column without dictionary encoding, run-length encoding or an extension type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.cast(kind.storage_type))
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    return plain(pc.run_end_decode(column)) if pa.types.is_run_end_encoded(kind) else column


def is_number(kind: Any) -> bool:
    """Whether a type is numeric or boolean. The null type counts, because a numeric column without values may have
    it.
    """
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return is_number(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_number(kind.value_type)
    are = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    return any(one(kind) for one in are)


def is_whole(kind: Any) -> bool:
    """Whether a type is integer or boolean."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def is_text(kind: Any) -> bool:
    """Whether a type is text."""
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_moment(kind: Any) -> bool:
    """Whether a type is a date or a timestamp."""
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


# --- the cells of a plain column ----------------------------------------------------------------------------------


def floats_of(column: Any) -> NDArray[Any]:
    """Numbers as the nearest doubles, or as 32-bit floats if they are such. NaN for a missing value."""
    wide = column if str(column.type) == "float" else column.cast("float64", safe=False)
    return np.asarray(wide.to_numpy(zero_copy_only=False))


def cleared(table: Any) -> Any:
    """A table whose missing cells hold zeros. What an engine leaves below them may be any memory of this process, and
    would go out with the buffers of the table.
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if column.null_count or field.type.num_fields:
            table = table.set_column(place, field, _cleared(column.combine_chunks()))
    return table


def _cleared(column: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_primitive(column.type):
        return pa.array(column.to_pylist(), column.type)
    zero = pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(bytes(16))])[0]
    filled = column.fill_null(zero).to_numpy(zero_copy_only=False)
    return pa.array(filled, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def texts_of(column: Any) -> list[str | None]:
    """The cells of a text column. None for bytes that are not valid text."""
    return [_decode(cell) for cell in bytes_of(column)]


def bytes_of(column: Any) -> list[bytes | None]:
    """The cells of a text column as bytes, valid text or not."""
    import pyarrow as pa

    return list(column.cast(pa.large_binary()).to_pylist())


def ticks_of(column: Any) -> Any:
    """Dates or timestamps as a column of the integers that store them."""
    import pyarrow as pa

    return column.cast("int32" if pa.types.is_date32(column.type) else "int64")


def days_of(column: Any) -> Floats:
    """Dates or timestamps in days since 1970, with fractions. NaN for a missing value."""
    return np.asarray(floats_of(ticks_of(column)) / _ticks_per_day(column.type))


def whole_days_of(column: Any) -> Floats:
    """Dates or timestamps in whole days since 1970. NaN for a missing value."""
    ticks = ticks_of(column)
    days = np.asarray(ticks.fill_null(0)).astype(np.int64) // _ticks_per_day(column.type)
    return np.where(np.asarray(ticks.is_null()), np.nan, days)


def _ticks_per_day(kind: Any) -> int:
    import pyarrow as pa

    return 1 if pa.types.is_date32(kind) else _PER_DAY[getattr(kind, "unit", "ms")]


def cells_of(column: Any) -> list[Any]:
    """The cells of a column as Python values. None for what Python cannot represent, such as a day after the year
    9999.
    """
    column = plain(column)
    if is_text(column.type):
        return texts_of(column)
    return list(column.to_pylist()) if is_whole(column.type) else [_python(cell) for cell in column]


def _decode(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _python(cell: Any) -> Any:
    try:
        return cell.as_py()
    except Exception:
        return None


# --- columns as arrays --------------------------------------------------------------------------------------------


def whole_in_arrow(data: Any) -> Any:
    """An integer or boolean column as an Arrow array. None for any other."""
    column = in_arrow(data)
    column = None if column is None else plain(column)
    return column if column is not None and is_whole(column.type) else None


def of_arrow(column: Any) -> NDArray[Any]:
    """A column as an array. An integer column with missing values becomes an array of objects, so that numbers stay
    exact.
    """
    import pyarrow as pa

    column = plain(column)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return floats_of(column)
    if is_whole(kind) and not column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return objects(cells_of(column))


def from_arrow(batch: Any, targets: Targets, *, names: list[str], target: str | None) -> Batch:
    """The named columns of a record batch as rows, and its targets, converted by `targets`. Zeros without a target."""
    place = batch.schema.names.index
    columns = [_feature(batch.column(place(name))) for name in names]
    table = np.empty((batch.num_rows, len(names)), dtype=np.result_type(*columns))
    for number, column in enumerate(columns):
        table[:, number] = column
    return table, np.zeros(len(table)) if target is None else _goals(batch.column(place(target)), targets)


def _feature(column: Any) -> NDArray[Any]:
    """A column as numbers, with NaN for a missing value. A column of another type is all NaN."""
    if not is_number(column.type):
        return np.full(len(column), np.nan, dtype=np.float32)
    return floats_of(plain(column))


def _goals(column: Any, targets: Targets) -> Floats:
    """Targets from a column of numbers or text, with NaN for other cells. The target of a cell depends on that cell
    alone.
    """
    import pyarrow as pa

    column = plain(column)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if is_number(column.type):
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64(), safe=False)
        values = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    elif is_text(column.type):
        values = objects(texts_of(column))
    else:
        return np.full(len(column), np.nan)
    return np.where(missing, np.nan, on_host(targets(values)))


def unlabelled(labels: Any) -> Any:
    """The targets of rows that have none."""
    return labels


def typed_cells(column: Any, kind: str) -> Any:
    """A column of one of our types: numbers as they are, dates as days, and otherwise a list of its cells."""
    if kind in ("date", "timestamp"):
        return whole_days_of(column)
    return column if kind in ("integer", "number") else cells_of(column)


def array_of(cells: Sequence[Any], kind: Any) -> Any:
    """Cells as an Arrow array. Without a type they are integers, which may need more than 64 bits."""
    import pyarrow as pa

    if kind is None and all(cell is None or isinstance(cell, int) for cell in cells):
        most = max((abs(cell) for cell in cells if cell is not None), default=0)
        kind = pa.int64() if most < 2**63 else pa.decimal256(76, 0)
    return pa.array(list(cells), kind)
