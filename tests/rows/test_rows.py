"""Every record is read by itself: whatever one of them is, the others, the type and the shape stay as they are."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import rows
from discreet.rows import columns as reading

from ..odd_objects import Hides, Raises
from ..refusing import refuses

ODD = [
    None, math.nan, math.inf, -math.inf, -0.0, 10**30, -(10**400), 2**53 + 1, "text", b"bytes", True,
    [1], (1, 2), {}, {1}, Decimal("sNaN"), Decimal("1e999999"), Decimal("-1e-999999"), Fraction(10**400, 3),
    datetime.datetime(2020, 1, 1),
    np.timedelta64(3, "D"), np.datetime64("NaT"), np.float16(2), np.longdouble("1e4000"), np.str_("x"), 1j,
    pd.NA, pd.NaT, Raises(2), Hides(), np.array(3.0), np.array([4.0]), np.uint64(2**64 - 1),
    [], [[1]], np.zeros((2, 2)),
]  # fmt: skip
LARGE = [2**60 + 1, 2**60 + 3, 2**60 + 5]


def placed(records: list[Any], odd: Any, place: int) -> list[Any]:
    return [*records[:place], odd, *records[place:]]


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("number", range(len(ODD)))
def test_one_odd_record_changes_its_own_part_only(number: int, place: int) -> None:
    odd, others = ODD[number], np.arange(4) != place
    whole, missing = rows.wholes(placed(LARGE, odd, place))
    assert whole.dtype == np.int64
    assert whole[others].tolist() == LARGE
    assert not missing[others].any()
    assert rows.doubles(placed([1.5, 2.5, 3.5], odd, place))[others].tolist() == [1.5, 2.5, 3.5]
    assert rows.cells(placed(["a", 1, "b"], odd, place))[:place] == ["a", 1, "b"][:place]
    table = rows.table(placed([[1, 2], [3, 4], [5, 6]], odd, place), 2)
    assert table.shape == (4, 2)
    assert table[others].tolist() == [[1, 2], [3, 4], [5, 6]]
    labels = rows.labels(placed([["a"], ["b"], "c"], odd, place))
    assert labels.shape == (4,)
    assert labels[others].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("cell", "number", "whole"),
    [
        (10**400, math.inf, 2**63 - 1),
        (-(10**400), -math.inf, -(2**63)),
        (2**53 + 1, 2.0**53, 2**53 + 1),
        (Decimal(2**60 + 1), 2.0**60, 2**60 + 1),
        (Fraction(2**61 + 1), 2.0**61, 2**61 + 1),
        (np.uint64(2**64 - 1), 2.0**64, 2**63 - 1),
        (2.5, 2.5, 2),
        (np.array(3.0), 3.0, 3),
        (True, 1.0, 1),
    ],
)
def test_numbers_are_read_exactly(cell: Any, number: float, whole: int) -> None:
    assert rows.number_of(cell) == number
    assert rows.whole_of(cell) == whole


def test_what_is_no_number_is_missing() -> None:
    for cell in (Raises(2), Hides(), "3", b"3", [3], 1j, np.timedelta64(3), pd.NA, None):
        assert math.isnan(rows.number_of(cell))
        assert rows.whole_of(cell) is None


@pytest.mark.parametrize(
    ("container", "shown"),
    [
        (pd.Series([1, None, 2**53 + 1], dtype="Int64"), [1, None, 2**53 + 1]),
        (pd.Series([2**53 + 1, None], dtype="int64[pyarrow]"), [2**53 + 1, None]),
        (pd.Series(pd.Categorical.from_codes([0, -1, 1], [2**53 + 1, 5])), [2**53 + 1, None, 5]),
        (pl.Series([1, None, 2**53 + 1]), [1, None, 2**53 + 1]),
        (pa.array([1, None, 2**53 + 1]), [1, None, 2**53 + 1]),
        (pa.array([1, None, 2**53 + 1]).dictionary_encode(), [1, None, 2**53 + 1]),
        (np.ma.array([1, 2**53 + 1], mask=[True, False]), [None, 2**53 + 1]),
        (pa.array([b"\xff", b"a"]).view(pa.string()), [None, "a"]),
        (pa.array([2**62], pa.int64()).cast(pa.timestamp("s")), [None]),
        ({1: 2}.values(), [2]),
        (np.array(["1970-01-01"], "datetime64[ns]"), [np.datetime64("1970-01-01", "ns")]),
        (np.array(["1970-01-01"], "datetime64[D]"), [datetime.date(1970, 1, 1)]),
    ],
)
def test_a_gap_changes_nothing_about_the_others(container: Any, shown: list[Any]) -> None:
    assert [None if cell is pd.NA else cell for cell in rows.cells(container)] == shown


@pytest.mark.parametrize(
    "container",
    [
        np.ones(3, np.float32),
        np.ones(3, np.int8),
        np.ones(3, bool),
        pd.Series([1.5]),
        pl.Series([1.5]),
        pa.array([1.5]),
    ],
)
def test_a_typed_column_keeps_its_type(container: Any) -> None:
    assert rows.column(container).dtype.kind in "fib"


def test_what_is_refused_is_a_matter_of_shape_and_type() -> None:
    for matrix in (np.ones((4, 3)), np.ones((4, 1)), np.array(3), pd.DataFrame({"a": [1]}), pa.table({"a": [1]})):
        with refuses(dp.InvalidArgument, "not-a-column"):
            rows.column(matrix)
    for nothing in ("text", {"a": [1]}, 3, None):
        with refuses(dp.InvalidArgument, "not-a-column"):
            rows.column(nothing)
        with refuses(dp.InvalidArgument, "not-a-table"):
            rows.table(nothing, 2)
    spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with refuses(dp.InvalidArgument, "data-in-spark"):
        rows.column(spark)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        dp.queries.Ball(2, 1).clamp([1, 2, 3])
    for text in (np.array(["1"]), np.array(["2020-01-01"], "datetime64[D]")):
        with refuses(dp.InvalidArgument, "not-a-number"):
            rows.doubles(text)
    for wide in (np.ones((4, 3)), np.ones(4), np.ones((4, 3), object)):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            rows.table(wide, 2)
    for odd in ([[1, 2], [3]], [[1, 2], [3, 4]], []):
        with refuses(dp.InvalidArgument, "width-not-declared"):
            rows.table(odd)


def test_frames_are_read_column_by_column() -> None:
    plain = {"a": [1, None], "b": ["x", "y"], "c": [1.5, 2.5]}
    for frame in (pd.DataFrame(plain), pl.DataFrame(plain), pa.table(plain)):
        assert np.array_equal(rows.table(frame), [[1, math.nan, 1.5], [math.nan, math.nan, 2.5]], equal_nan=True)
    objects = pd.DataFrame({"a": [1, "x"], "b": [None, 2.5]}, dtype=object)
    assert np.array_equal(rows.table(objects), [[1, math.nan], [math.nan, 2.5]], equal_nan=True)
    days = pd.DataFrame({"a": [1], "day": pd.to_datetime(["2020-01-01"])})
    assert np.array_equal(rows.table(days, 2), [[1, math.nan]], equal_nan=True)


@pytest.mark.parametrize(
    "equal",
    [
        (-0.0, 0.0, 0, False, Decimal("-0"), np.float32(0), Fraction(0)),
        (True, 1, 1.0, Decimal("1.00"), np.int8(1), 1 + 0j, np.complex64(1), np.longdouble(1)),
        (math.inf, np.float64(math.inf), Decimal("Infinity")),
        (b"a", np.bytes_(b"a"), memoryview(b"a")),
        (frozenset([0, 8]), frozenset([8, 0])),
        (datetime.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")),
        (2.5, Decimal("2.50"), Fraction(5, 2)),
        ("a", np.str_("a")),
        (("a", 1), ("a", True)),
        (datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
         datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))),
    ],
)  # fmt: skip
def test_equal_keys_are_one_to_the_last_bit(equal: tuple[Any, ...]) -> None:
    shown = {repr((type(rows.key_of(key)), rows.key_of(key))) for key in equal}
    assert len(shown) == 1


@pytest.mark.slow
def test_a_key_that_is_no_value_is_nobodys() -> None:
    deep: Any = ()
    for _ in range(10**5):
        deep = (deep,)
    far = datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    odd = (None, math.nan, Hides(), Raises(1), [1], ("a", None), 10**400, Decimal("1e-999999999"), far, deep)
    assert [rows.key_of(key) for key in odd] == [None] * len(odd)


@pytest.mark.parametrize("make", [pa.array, pl.Series, lambda one: pd.Series(one, dtype="int64[pyarrow]")])
def test_a_gap_among_labels_does_not_change_how_others_are_compared(make: Any) -> None:
    """As numbers of numpy, 2^53 + 1 would be equal to the double 2^53; as Python's they are not."""
    plain, gap = rows.labels(make([2**53 + 1, 7])), rows.labels(make([2**53 + 1, 7, None]))
    assert [one == 2.0**53 for one in plain.tolist()] == [one == 2.0**53 for one in gap.tolist()][:2] == [False, False]
    assert plain.dtype == gap.dtype == object


# --- a seeded bug: a type is decided over all records -------------------------------------------------------------


def others_stay(odd: Any) -> None:
    whole, _ = rows.wholes([*LARGE, odd])
    assert whole[:3].tolist() == LARGE
    assert np.nansum(rows.table([[1.0, 2.0], [3.0, 4.0], odd], 2)) == 10


@pytest.mark.parametrize("odd", [None, 0.5, [1, 2, 3]])
def test_a_type_decided_over_all_records_is_seen(odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    others_stay(odd)

    def guessed(records: Any) -> Any:
        found = np.array(list(records), dtype=None if odd != [1, 2, 3] else object)
        return found if found.dtype.kind != "O" else np.full(len(found), None)

    monkeypatch.setattr(reading, "objects", guessed)
    monkeypatch.setattr(reading, "_records", guessed)
    with pytest.raises(AssertionError):
        others_stay(odd)
