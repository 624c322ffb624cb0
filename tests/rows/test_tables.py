"""Tables in memory: one odd cell is one missing cell, and moves no type, no other cell, and no outcome."""

from __future__ import annotations

import array
import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.rows import kinds, tables
from discreet.rows.tables import Cells, columns_of

from ..refusing import refuses

SECRET = "secret-4711"


class Raises:
    """Whatever is asked of it, it raises, and quotes itself."""

    def _raise(self, *_: Any) -> Any:
        raise ValueError(SECRET)

    __float__ = __int__ = __index__ = __str__ = __repr__ = __hash__ = __eq__ = __bool__ = __len__ = __iter__ = _raise
    __class__ = property(_raise)


class OddInt(int):
    __int__ = __index__ = __float__ = __eq__ = __hash__ = Raises._raise


class OddZone(datetime.tzinfo):
    utcoffset = tzname = dst = Raises._raise


UTC, EAST = datetime.UTC, datetime.timezone(datetime.timedelta(hours=5))
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5)
ODD = [
    *(None, math.nan, math.inf, -math.inf, -0.0, 10**30, 10**400, 2**53 + 1, -(2**63) - 1, SECRET, "", "\ud800"),
    *(b"\xff", True, [1], (1, 2), {"a": 1}, {1}, Decimal("1.50"), Decimal("1e99"), Decimal("sNaN"), Fraction(1, 3)),
    *(datetime.date(2020, 1, 2), MOMENT, MOMENT.replace(tzinfo=EAST), datetime.datetime(1, 1, 1, tzinfo=EAST)),
    *(MOMENT.replace(tzinfo=OddZone()), datetime.time(1), datetime.timedelta(1), pd.NaT, pd.NA, pd.Timestamp(0)),
    *(np.float16(1), np.longdouble(1), np.int8(1), np.bool_(True), np.str_("x"), np.bytes_(b"x"), np.complex64(1)),
    *(
        np.longdouble("1e4000"),
        np.datetime64(2**62, "Y"),
        np.datetime64("NaT"),
        np.array([1, 2]),
        pd.Series([1]),
        Raises(),
        OddInt(3),
        object(),
    ),
]
USUAL = {
    "integer": 41,
    "number": 1.5,
    "text": "abc",
    "boolean": True,
    "date": datetime.date(2020, 1, 1),
    "timestamp": datetime.datetime(2020, 1, 1, 12),
}


def of_objects(cells: list[Any]) -> Any:
    """An array of objects: numpy itself looks at nothing."""
    found = np.empty(len(cells), object)
    for place, cell in enumerate(cells):
        found[place] = cell
    return found


def containers(cells: list[Any]) -> dict[str, Any]:
    """Everything that holds objects."""
    objects = of_objects(cells)
    return {
        "list": {"c": cells},
        "tuple": {"c": tuple(cells)},
        "numpy": {"c": objects},
        "masked": {"c": np.ma.MaskedArray(objects, mask=[False] * len(cells))},
        "series": {"c": pd.Series(objects, dtype=object)},
        "frame": pd.DataFrame({"c": pd.Series(objects, dtype=object)}),
        "polars": pl.DataFrame([pl.Series("c", cells, dtype=pl.Object)]),
    }


def read(source: Any, kind: str | None) -> tuple[str, list[Any]]:
    """The kind of the column, and its cells, in order."""
    engine = DuckDB({"t": source}, types={"t": {} if kind is None else {"c": kind}})
    table = engine.table(f"SELECT c FROM {engine.relations['t']}")
    return engine.columns("t")["c"], table.column("c").to_pylist()


@pytest.mark.some_quick(16)
@pytest.mark.parametrize("kind", USUAL)
@pytest.mark.parametrize("container", containers([1]))
def test_an_odd_cell_changes_itself_alone(container, kind):
    """All odd cells at once, each between two usual ones: every usual one is there, of the declared kind."""
    cells = [cell for odd in ODD for cell in (USUAL[kind], odd)]
    found, values = read(containers(cells)[container], kind)
    assert found == kind
    assert values[::2] == [USUAL[kind]] * len(ODD)
    reader, _ = kinds.READERS[kind]
    assert values[1::2] == [reader(odd) for odd in ODD]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("container", containers([1]))
def test_a_column_without_a_declared_kind_is_text(container):
    for cells in ([1, 2, 3], [1.5, None, 2], ["a", "b", "c"], ["a", 1, Raises()], [None, None, None]):
        found, values = read(containers(cells)[container], None)
        assert found == "text"
        assert values == [cell if isinstance(cell, str) else None for cell in cells[:2]] + [
            cells[2] if type(cells[2]) is str else None
        ]


TYPED = {
    "arrow": lambda: pa.chunked_array([[1, 2], [3, None]]),
    "arrow array": lambda: pa.array([1, 2, 3, None]),
    "range": lambda: range(4),
    "buffer": lambda: array.array("q", [1, 2, 3, 4]),
    "numpy": lambda: np.arange(4),
    "other end": lambda: np.arange(4, dtype=">i4"),
    "masked": lambda: np.ma.MaskedArray([1, 2, 3, 4], mask=[0, 1, 0, 0]),
    "pandas": lambda: pd.Series(range(4)),
    "nullable": lambda: pd.Series([1, 2, 3, None], dtype="Int64"),
    "pandas in arrow": lambda: pd.Series([1, 2, 3, None], dtype="int64[pyarrow]"),
    "sparse": lambda: pd.Series(pd.arrays.SparseArray([0, 0, 0, 1])),
    "categories": lambda: pd.Series([1, 2, 3, None], dtype="category"),
    "index": lambda: pd.Index([1, 2, 3, 4]),
    "polars": lambda: pl.Series([1, 2, 3, None]),
}


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("made", TYPED)
def test_a_container_with_a_dtype_keeps_it(made):
    assert read({"c": TYPED[made]()}, None)[0] == "integer"
    assert read({"c": TYPED[made]()}, "text")[0] == "integer"  # dp.table and policies refuse the other type


KINDS = {
    "halves": (np.ones(2, np.float16), "number", [1.0, 1.0]),
    "long": (np.array(["1", "1e4000"], np.longdouble), "number", [1.0, math.inf]),
    "text": (np.array(["a", "b"]), "text", ["a", "b"]),
    "strings": (np.array(["a", None], np.dtypes.StringDType(na_object=None)), "text", ["a", None]),
    "no text": (np.array([0x61, 0xD800, 0x110000, 0x62], "<u4").view("<U1"), "text", ["a", None, None, "b"]),
    "pandas text": (pd.Series(["a", None]), "text", ["a", None]),
    "python text": (
        pd.Series(["a", "\ud800", None], dtype=object).astype(pd.StringDtype("python")),
        "text",
        ["a", None, None],
    ),
    "categories": (pd.Series(["a", None, "b"], dtype="category"), "text", ["a", None, "b"]),
    "odd categories": (pd.Series([1, "a", None], dtype="category"), "text", [None, "a", None]),
    "days": (np.array([1, 2**40], "M8[D]"), "date", [datetime.date(1970, 1, 2), None]),
    "weeks": (np.array([1, 2**62], "M8[W]"), "date", [datetime.date(1970, 1, 8), None]),
    "months": (np.array([1, 2**61], "M8[M]"), "date", [datetime.date(1970, 2, 1), None]),
    "years": (np.array([1, -(2**62)], "M8[Y]"), "date", [datetime.date(1971, 1, 1), None]),
    "hours": (np.array([1, 2**62], "M8[h]"), "timestamp", [datetime.datetime(1970, 1, 1, 1), None]),
    "nothing": (np.array(["NaT", "NaT"], "M8"), "timestamp", [None, None]),
    "moments": (pd.Series([pd.Timestamp(0), pd.NaT]), "timestamp", [datetime.datetime(1970, 1, 1), None]),
    "flags": (pd.Series([True, None], dtype="boolean"), "boolean", [True, None]),
    "enum": (pl.Series(["a", None], dtype=pl.Enum(["a"])), "text", ["a", None]),
    "decimals": (pa.array([Decimal("1.50"), None]), "number", [1.5, None]),
    "periods": (pd.Series(pd.period_range("2020", "2021", freq="Y")), "text", [None, None]),
}


@pytest.mark.some_quick(10)
@pytest.mark.parametrize("name", KINDS)
def test_dtypes_have_kinds(name):
    column, kind, values = KINDS[name]
    assert read({"c": column}, None) == (kind, values)


def test_what_has_no_kind_of_ours_is_left_out():
    """By its type alone: complex numbers, lists, times of day, durations that are maps."""
    at = pa.array([1, 2**63 - 1]).view(pa.time64("us"))
    left = {"z": np.ones(2, complex), "l": pa.array([[1], []]), "s": pa.array([{"a": 1}] * 2), "t": at}
    assert DuckDB({"t": {"c": np.arange(2)} | left}).columns("t") == {"c": "integer"}
    for column in left.values():
        with refuses(InvalidArgument, "source-no-columns"):
            DuckDB({"t": {"c": column}})


SHAPES = {
    "lengths": {"a": [1], "b": [1, 2]},
    "two dimensions": {"a": np.ones((2, 2))},
    "two dimensions of objects": {"a": np.empty((2, 2), object)},
    "no dimension": {"a": np.array(1)},
    "text": {"a": "abc"},
    "bytes": {"a": b"abc"},
    "a number": {"a": 3},
    "a generator": {"a": (n for n in [1])},
    "a set": {"a": {1}},
    "names": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "records": [{"a": 1}],
    "lazy": pl.LazyFrame({"a": [1]}),
    "a generator of rows": (row for row in [{"a": 1}]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_refused_by_their_shape(name):
    with pytest.raises(InvalidArgument) as caught:
        DuckDB({"t": SHAPES[name]})
    assert caught.value.__context__ is None


def test_the_order_of_columns_is_that_of_the_source():
    columns = columns_of({"a": [1], "b": np.ones(1), "c": ["x"]}, "t")
    assert [type(column) is Cells for column in columns.values()] == [True, False, True]
    assert list(DuckDB({"t": {"a": [1], "b": np.ones(1), "c": ["x"]}}).columns("t")) == ["a", "b", "c"]


# --- by methods, and under a policy -------------------------------------------------------------------------


def opened(source: Any, **given: Any) -> Any:
    limit = dp.Approx(epsilon=10**4, delta=0.1)
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=limit)
    return dp.table(source, ledger=ledger, rows_per_person=1, **given)


def test_one_person_changes_no_type_and_no_answer_of_others():
    """A list of numbers, with a range: read as numbers, whatever one person has."""
    found = []
    for cell in (3, *ODD[::5], ODD[-3]):
        table = opened({"pid": np.arange(20), "x": [*[2] * 19, cell]})
        with testing.no_noise():
            found.append((table.columns, table.sum("x", between=(0, 10), epsilon=1).value))
    assert all(kinds == {"pid": "integer", "x": "text"} for kinds, _ in found)
    assert found[0][1] == 41
    assert all(38 <= total <= 48 for _, total in found)


def test_lists_take_the_kind_of_choices_of_types_and_of_a_policy():
    cells = {"pid": np.arange(4), "city": ["a", "b", 7, "a"], "n": [1, 2, "x", 2]}
    table = opened(cells, types={"n": "integer"})
    assert table.columns == {"pid": "integer", "city": "text", "n": "integer"}
    with testing.no_noise():
        assert table.histogram("n", choices=[1, 2], epsilon=50).value == {1: 1, 2: 2}
        assert table.histogram("city", choices=["a", "b"], epsilon=50).value == {"a": 2, "b": 1}
        assert opened(cells).histogram("n", choices=[1, 2], epsilon=50).value == {1: 1, 2: 2}
    visits = {"source": cells, "rows_per_person": 1, "columns": {"n": {"type": "integer", "between": [0, 9]}}}
    words = {"ledger": {"path": ":memory:", "epsilon": 10}, "unit": {"person": "pid"}, "tables": {"v": visits}}
    with testing.no_noise():
        assert dp.connect(words).sql("SELECT SUM(n) AS s FROM v", epsilon=1).as_json()["rows"] == [[5]]
    with pytest.raises(InvalidArgument, match="pid is integer in its source, and not text"):
        opened(cells, types={"pid": "text"})


@pytest.mark.parametrize("ids", [[1, 2], ["a", "b"], (1, 2), of_objects([1, 2]), pd.Series([1, 2], dtype=object)])
def test_people_in_a_list_need_a_type(ids):
    """Else they would be text, and whoever has a number nobody. It is refused for the container, not for a cell."""
    with refuses(InvalidArgument, "untyped-column"):
        opened({"pid": ids, "x": np.ones(2)})
    with refuses(InvalidArgument, "untyped-column"):
        opened({"pid": ids, "x": [1, 2]}, types={"x": "number"})
    kind = "text" if isinstance(ids[0], str) else "integer"
    with testing.no_noise():
        assert opened({"pid": ids, "x": np.ones(2)}, types={"pid": kind}).count("people", epsilon=1).value == 2


def test_keys_in_a_list_that_lead_to_people_need_a_type():
    visits: dict[str, Any] = {"source": {"pid": np.arange(2), "visit": [1, 2]}, "rows_per_person": 1}
    drugs: dict[str, Any] = {"source": {"visit": np.arange(2)}, "through": "visits.visit", "rows_per_person": 1}
    words = {"ledger": {"path": ":memory:", "epsilon": 1}, "unit": {"person": "pid"}}
    with refuses(InvalidArgument, "untyped-column"):
        dp.connect(words | {"tables": {"visits": visits, "drugs": drugs}})
    visits["columns"] = {"visit": {"type": "integer"}}
    dp.connect(words | {"tables": {"visits": visits, "drugs": drugs}})
    drugs["source"] = {"visit": [1, 2]}
    with refuses(InvalidArgument, "untyped-column"):
        dp.connect(words | {"tables": {"visits": visits, "drugs": drugs}})
    people = {"source": {"pid": [1]}, "rows_per_person": 1}
    with refuses(InvalidArgument, "untyped-column"):
        dp.connect(words | {"tables": {"people": people}})


# --- what fails says nothing --------------------------------------------------------------------------------


def test_a_relation_that_fails_quotes_nothing():
    for cell in (SECRET, "12"):
        relation = duckdb.sql(f"SELECT 1 AS pid, CAST(x AS INTEGER) AS x FROM (VALUES ('{cell}')) AS t(x)")
        if cell == "12":
            opened(relation)
            continue
        with refuses(InvalidArgument, "source-unreadable") as caught:
            opened(relation)
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


class Stream:
    """A table of Arrow that fails on the way, and says why."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise ValueError(SECRET)


class Column:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ValueError(SECRET)

    __arrow_c_array__ = None


@pytest.mark.parametrize("source", [Stream(), {"x": Stream()}, {"x": Column()}], ids=["table", "stream", "array"])
def test_a_container_that_fails_quotes_nothing(source):
    with pytest.raises(InvalidArgument) as caught:
        DuckDB({"t": source})
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


# --- the seeded bug -----------------------------------------------------------------------------------------


def test_a_type_that_is_guessed_from_the_rows_is_seen(monkeypatch):
    """The bug that was there: Arrow looks at all cells."""
    monkeypatch.setattr(tables.Cells, "read", lambda self, kind: pa.array(list(self.cells)))
    with pytest.raises(pa.ArrowException):
        test_an_odd_cell_changes_itself_alone("list", "integer")
    with pytest.raises(AssertionError):
        test_a_column_without_a_declared_kind_is_text("list")
