"""Tables of Arrow as DuckDB can read them to the end: a cell that it would stop at is NULL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TO_MICROSECONDS = {"s": 10**6, "ms": 10**3}


def as_arrow(source: Any) -> Any:
    """A DataFrame, or whatever else has columns, as a table of Arrow."""
    import pyarrow as pa

    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return source.read_all() if isinstance(source, pa.RecordBatchReader) else source
    if isinstance(source, Mapping):
        return pa.table(dict(source))
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if hasattr(source, "to_arrow"):
        return source.to_arrow()
    return pa.Table.from_pandas(source, preserve_index=False)


def readable(table: Any) -> Any:
    """The same table, but NULL where text is no UTF-8, and where a moment has no number of microseconds.

    Arrow keeps such cells; DuckDB fails at them, in functions that it says cannot fail, and then answers nothing more.
    """
    import pyarrow as pa

    table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    return pa.table([_cleaned(column) for column in table.columns], names=table.column_names)


def _cleaned(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
        return _valid_text(column)
    if (pa.types.is_timestamp(kind) and kind.tz is not None) or pa.types.is_duration(kind):
        return _microseconds(column) if kind.unit in _TO_MICROSECONDS else column
    return column


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _valid_text(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column if _is_valid(column) else _valid_text(column.cast(column.type.value_type))
    chunks = [chunk if _is_valid(chunk) else _decoded(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type)


def _is_valid(cells: Any) -> bool:
    import pyarrow as pa

    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(cells: Any) -> Any:
    import pyarrow as pa

    return pa.array([_text(cell) for cell in cells.cast(pa.large_binary()).to_pylist()], cells.type)


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _microseconds(column: Any) -> Any:
    """Moments or durations in microseconds; DuckDB fails where they are too many of them for 64 bits."""
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
