"""Arrow tables that DuckDB can read completely: a cell at which it would stop becomes NULL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TO_MICROSECONDS = {"s": 10**6, "ms": 10**3}
_EXTENSIONS = ("arrow.uuid", "arrow.bool8")


def readable(columns: Mapping[str, Any]) -> Any:
    """A table with these columns, with NULL for every cell that has no value in DuckDB: text that is not UTF-8, a
    timestamp that does not fit microseconds, a decimal with more digits than its type allows.

    Arrow stores such cells. DuckDB fails at them, in functions that are documented not to fail, and then the connection
    is unusable. Columns whose type cannot be made safe, such as lists and times of day, are left out.
    """
    import pyarrow as pa

    cleaned = {name: _clean(pa.chunked_array(column)) for name, column in columns.items()}
    return pa.table({name: column for name, column in cleaned.items() if column is not None})


def _clean(column: Any) -> Any:
    """A column that cannot stop DuckDB. None if its type is not supported."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        if _is_text(kind.value_type) and _is_valid(column):
            return column
        return _clean(pa.chunked_array([_decode(chunk) for chunk in column.chunks], kind.value_type))
    if _is_text(kind):
        return pa.chunked_array([one if _is_valid(one) else _texts(one) for one in column.chunks], kind)
    if (types.is_timestamp(kind) and kind.tz is not None) or types.is_duration(kind):
        return _microseconds(column) if kind.unit in _TO_MICROSECONDS else column
    if types.is_float16(kind):
        return column.cast(pa.float32())
    if types.is_decimal256(kind):
        return column.cast(pa.float64(), safe=False)
    if types.is_decimal(kind):
        return pa.chunked_array([one if _is_valid(one) else _decimals(one) for one in column.chunks], kind)
    plain = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
    bytes_only = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    bytes_only = bytes_only or types.is_fixed_size_binary(kind)
    extended = isinstance(kind, pa.BaseExtensionType) and kind.extension_name in _EXTENSIONS
    return column if plain or bytes_only or extended or types.is_date(kind) or types.is_timestamp(kind) else None


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_valid(cells: Any) -> bool:
    import pyarrow as pa

    try:
        cells.validate(full=True)
    except (pa.ArrowException, IndexError):
        return False
    return True


def _decode(cells: Any) -> Any:
    """The values of a dictionary column. An index outside the dictionary has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.and_(pc.greater_equal(cells.indices, 0), pc.less(cells.indices, len(cells.dictionary)))
    places = pc.if_else(known, cells.indices, pa.scalar(None, cells.indices.type))
    return cells.dictionary.take(places)


def _texts(cells: Any) -> Any:
    import pyarrow as pa

    return pa.array([_text(cell) for cell in cells.cast(pa.large_binary()).to_pylist()], cells.type)


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _decimals(cells: Any) -> Any:
    """Decimals with at most as many digits as their type allows."""
    import pyarrow as pa

    digits = cells.type.precision
    kept = [cell if cell is None or len(cell.as_tuple().digits) <= digits else None for cell in cells.to_pylist()]
    return pa.array(kept, cells.type)


def _microseconds(column: Any) -> Any:
    """Timestamps or durations in microseconds. DuckDB fails if they do not fit 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, times = column.type, _TO_MICROSECONDS[column.type.unit]
    fine = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
    most = (2**63 - 1) // times
    chunks = []
    for chunk in column.chunks:
        number = chunk.view(pa.int64())
        fits = pc.and_(pc.greater_equal(number, -most), pc.less_equal(number, most))
        number = pc.if_else(fits, number, pa.scalar(None, pa.int64()))
        chunks.append(pc.multiply(number, times).view(fine))
    return pa.chunked_array(chunks, fine)
