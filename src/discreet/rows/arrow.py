"""Columns of Arrow as numbers and targets: whatever is in a cell, it gives a number or NaN, and never an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.rows.arrays import on_host

Targets = Callable[[Any], Any]
Batch = tuple[Any, NDArray[np.float64]]


def unlabelled(labels: Any) -> Any:
    """The targets of rows that have none."""
    return labels


def from_arrow(batch: Any, targets: Targets, *, names: list[str], target: str | None) -> Batch:
    """The named columns of a record batch as rows, and what `targets` makes of its target: zeros without one."""
    place = batch.schema.names.index
    columns = [doubles_of_column(batch.column(place(name))) for name in names]
    table = np.empty((batch.num_rows, len(names)), dtype=np.result_type(*columns))
    for number, column in enumerate(columns):
        table[:, number] = column
    return table, np.zeros(len(table)) if target is None else _goals(batch.column(place(target)), targets)


def doubles_of_column(column: Any) -> NDArray[Any]:
    """A column as numbers, NaN where there is none; a column of anything else has none."""
    import pyarrow as pa

    if not is_number(column.type):
        return np.full(len(column), np.nan, dtype=np.float32)
    kind = pa.float32() if column.type == pa.float32() else pa.float64()
    return np.asarray(_plain(column).cast(kind, safe=False).to_numpy(zero_copy_only=False))


def _goals(column: Any, targets: Targets) -> NDArray[np.float64]:
    """Targets of a column of numbers or text, NaN where it has neither: a cell's target depends on that cell alone."""
    import pyarrow as pa

    column = _plain(column)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if is_number(column.type):
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64(), safe=False)
        values = column.fill_null(pa.scalar(0).cast(column.type)).to_numpy(zero_copy_only=False)
    elif column.type in (pa.string(), pa.large_string(), pa.string_view()):
        values = np.array([_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()], dtype=object)
    else:
        return np.full(len(column), np.nan)
    return np.where(missing, np.nan, on_host(targets(values)))


def _text(cell: bytes | None) -> str:
    return "" if cell is None else cell.decode(errors="replace")


def _plain(column: Any) -> Any:
    """A column without a dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers; one of nothing but NULL is, since any may look so."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    are = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    return any(one(kind) for one in are)
