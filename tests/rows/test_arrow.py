"""Cells of Arrow: each is read by itself, and one type is read in one way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.rows.arrow import cleared, whole_days_of

DAY = 86_400_000
ENDS = [2**63 - 1, -(2**63), 2**62]


def kept_as(kind: pa.DataType, numbers: list[int]) -> pa.Array:
    """A column of these numbers as they are kept, whether Arrow would make such cells or not."""
    width = np.int32 if kind == pa.date32() else np.int64
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.array(numbers, width).tobytes())])


@pytest.mark.parametrize(
    ("kind", "per_day", "odd"),
    [
        (pa.date32(), 1, [2**31 - 1, -(2**31)]),
        (pa.date64(), DAY, [1, DAY + 1, *ENDS]),
        *((pa.timestamp(unit), DAY * scale // 1000, ENDS) for unit, scale in (("s", 1), ("ms", 1000), ("ns", 10**9))),
    ],
)
def test_no_day_stops_or_changes_another(kind: Any, per_day: int, odd: list[int]) -> None:
    """A day that is not at midnight, a moment just before it, one after the last year, and a gap."""
    numbers = [0, per_day, 20_000 * per_day, 20_000 * per_day - 1]
    alone = whole_days_of(kept_as(kind, numbers))
    assert alone.tolist() == [0, 1, 20_000, 20_000 - 1]
    for one in odd:
        assert whole_days_of(kept_as(kind, [*numbers, one]))[:-1].tolist() == alone.tolist()
        assert whole_days_of(kept_as(kind, [one])).tolist() == [one // per_day]
    with_gap = pa.concat_arrays([kept_as(kind, numbers), pa.nulls(1, kind)])
    assert whole_days_of(with_gap)[:-1].tolist() == alone.tolist()
    assert np.isnan(whole_days_of(with_gap)[-1])
    assert whole_days_of(pa.chunked_array([with_gap])).dtype == alone.dtype


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.bool_()])
def test_nothing_is_left_below_missing_cells(kind: pa.DataType) -> None:
    memory = pa.py_buffer(b"\x17" * 64)
    column = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x02"), memory])
    given = pa.chunked_array([column, column]).slice(1, 4)
    [chunk] = cleared(pa.table({"a": given}))["a"].chunks
    assert chunk.equals(given.combine_chunks())
    assert chunk.is_valid().to_pylist() == [True, False, False, True]
    kept = chunk.buffers()[1].to_pybytes()
    width = kind.bit_width // 8
    assert kept[width : 3 * width] == bytes(2 * width)
    assert kind != pa.bool_() or not kept[0] & 0b0110


def test_lists_and_text_are_cleared_too() -> None:
    inner = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(b"\x17" * 16)])
    table = pa.table({"a": pa.ListArray.from_arrays([0, 2], inner), "b": ["x"]})
    assert cleared(table).to_pylist() == table.to_pylist()
    assert b"\x17" * 8 not in cleared(table)["a"].chunk(0).values.buffers()[1].to_pybytes()[:8]
    texts = pa.table({"t": pa.array(["a", None, "b"])})
    assert cleared(texts).equals(texts)
