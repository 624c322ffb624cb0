"""No cell stops a question, or an engine: what DuckDB cannot read is NULL, or a column that is left out by its type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.engines import parquet_files
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB

from ...forks import said_in_a_fork
from .test_odd_cells import counted, kinds, raw, raw_text

ROWS = 3000
"""More than DuckDB takes at once: a part whose rows are all usual shares its dictionary with the odd one."""
LEAST, MOST = -(2**63), 2**63 - 1


def outcomes(source: Any, *questions: Callable[[Any], Any]) -> list[tuple[str, Any]]:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=10**5, delta=0.01))
    table = dp.table(source, ledger=ledger, rows_per_person=1)
    found = []
    for question in (*questions, lambda one: one.count(epsilon=1)):
        try:
            with testing.no_noise():
                found.append(("answered", question(table).value))
        except dp.DiscreetError as error:
            found.append((type(error).__name__, f"{error.code}: {error}"))
    return found


def sources(cells: pa.Array, folder: Path) -> list[Any]:
    """The cells as Arrow, as a dictionary of Arrow, and as Parquet with and without dictionaries."""
    table = pa.table({"pid": [f"p{n}" for n in range(len(cells))], "c": cells})
    made: list[Any] = [table]
    if pa.types.is_primitive(cells.type):
        made.append(table.set_column(1, "c", table["c"].dictionary_encode()))
    for dictionary in (True, False):
        place = folder / f"{dictionary}.parquet"
        try:
            pq.write_table(table, place, use_dictionary=dictionary)
        except pa.ArrowException:
            continue  # Parquet has no such cell
        made.append(str(place))
    return made


MOMENTS = tuple(
    map(
        counted,
        (
            "CAST(c AS VARCHAR) LIKE '1%'",
            "lower(CAST(c AS VARCHAR)) = 'x'",
            "CAST(CAST(c AS DATE) AS VARCHAR) = '1970-01-01'",
            "CAST(CAST(CAST(c AS VARCHAR) AS TIMESTAMP) AS VARCHAR) IS NULL",
            "CAST(date_trunc('month', c) AS VARCHAR) = '1970-01-01'",
            "EXTRACT(year FROM c) > 1",
        ),
    )
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        (pa.timestamp("us"), LEAST),
        (pa.timestamp("us"), LEAST + 1),
        (pa.timestamp("us"), MOST),
        (pa.timestamp("us"), MOST - 1),
        (pa.timestamp("ns"), LEAST),
        (pa.timestamp("s"), MOST),
        (pa.date32(), -(2**31)),
        (pa.date32(), 2**31 - 1),
        (pa.date64(), LEAST),
    ],
    ids=str,
)
def test_a_moment_that_is_far_away_stops_nothing(kind, odd, tmp_path):
    """The odd one in the last row: rows before it are computed together with it, by the dictionary they share."""
    usual = [86_400_000 if kind == pa.date64() else 1000] * (ROWS - 1)
    for source in sources(raw(kind)([*usual, odd]), tmp_path):
        found = outcomes(source, *MOMENTS)
        assert kinds(found) == ["answered"] * len(found)
        assert found[-1] == ("answered", ROWS)


def decimals(kind: Any, numbers: list[int]) -> pa.Array:
    """Decimals of these 128 bits, whatever digits their type has."""
    whole = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(whole)])


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(("digits", "scale"), [(38, 0), (38, 1), (38, 38), (19, 19), (5, 2)])
def test_a_decimal_of_too_many_digits_stops_nothing(digits, scale, tmp_path):
    cells = decimals(pa.decimal128(digits, scale), [*[1] * (ROWS - 2), -(2**127), 2**127 - 1])
    for source in sources(cells, tmp_path):
        asked = (counted("c IS NOT NULL"), lambda one: one.sum("c", between=(0, 1), epsilon=1))
        assert kinds(outcomes(source, *asked)) == ["answered"] * 3


def lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


TEXT = raw_text([b"ok", b"\xff"])
NESTED = {
    "time": raw(pa.time64("us"))([5, MOST]),
    "time before the day": raw(pa.time64("ns"))([5, -1]),
    "short time": pa.array([5, 2**31 - 1], pa.int32()).view(pa.time32("ms")),
    "list of times": lists(raw(pa.time64("us"))([5, MOST])),
    "list of moments": lists(raw(pa.timestamp("us"))([5, LEAST])),
    "list of moments in zones": lists(raw(pa.timestamp("ms", "UTC"))([5, MOST])),
    "list of durations": lists(raw(pa.duration("s"))([5, MOST])),
    "struct": pa.StructArray.from_arrays([TEXT, raw(pa.timestamp("s", "UTC"))([5, MOST])], ["a", "b"]),
    "map": pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pa.array(["a", "b", "b"]), pa.array([1, 2, 3])),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "{"])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_a_type_that_could_stop_questions_is_not_there(name, tmp_path):
    """Whatever its cells are: the column is no column, and all else is answered."""
    for cells in (NESTED[name], NESTED[name].slice(0, 1)):
        for source in sources(cells, tmp_path):
            found = outcomes(source, counted("c IS NULL"), counted("pid <> 'x'"))
            assert kinds(found) == ["QueryError", "answered", "answered"]
            assert found[0][1].startswith("sql-unknown-column: ")
            assert found[1:] == [("answered", len(cells))] * 2


def test_a_place_that_is_in_no_dictionary_is_missing():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 7, -1], pa.int8()), pa.array(["a"]), safe=False)
    moments = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), raw(pa.timestamp("s", "UTC"))([5, MOST]))
    assert outcomes(pa.table({"pid": ["a", "b", "c"], "c": cells}), counted("c = 'a'"), counted("c IS NULL"))[:2] == [
        ("answered", 1),
        ("answered", 2),
    ]
    assert outcomes(pa.table({"pid": ["a", "b"], "c": moments}), counted("c IS NULL"))[0] == ("answered", 1)


@pytest.mark.parametrize("values", [["a", "x["], ["a", "x]"], ["a", "a"], ["a", None], ["a", "x' INTEGER"]], ids=str)
def test_the_values_of_a_dictionary_are_no_type(values):
    """DuckDB's name for the type of a list of words has them in it: one person's must not decide what a column is."""
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), pa.array(values))
    chunks = pa.chunked_array([cells, pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["b"]))])
    for column in (cells, chunks):
        engine = DuckDB({"t": pa.table({"c": column})})
        assert engine.columns("t") == {"c": "text"}
        found = engine.table(f"SELECT c FROM {engine.relations['t']}")["c"].to_pylist()  # in any order
        assert sorted(found, key=str) == sorted(column.to_pylist(), key=str)


def test_ids_in_16_bytes_are_text(tmp_path):
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"\xff" * 16], pa.binary(16)))
    pq.write_table(pa.table({"c": ids}), tmp_path / "u.parquet")
    for source in (pa.table({"c": ids}), str(tmp_path / "u.parquet")):
        assert DuckDB({"t": source}).columns("t") == {"c": "text"}


# --- a forked process ---------------------------------------------------------------------------------------


FORKED = """
import sys
import pyarrow as pa, discreet as dp
from discreet.engines.duckdb.engine import DuckDB
ledger = dp.Ledger.open(path, protects=dp.row(), limit=dp.Approx(epsilon=100, delta=0.01))
table = dp.table(pa.table({"x": range(100)}), ledger=ledger)
table.count(epsilon=1)
engine = table._methods.engine
"""

ASKED = """
def ask():
    try:
        table.count(epsilon=2)
    except dp.DiscreetError as error:
        own = DuckDB({"t": pa.table({"x": [1]})}).rows("SELECT 7")
        return f"{error.code} {ledger.count} {own}"
"""

BUSY = """
engine._lock.acquire()  # as if another thread were asking
def ask():
    engine.rows("SELECT 1")
"""

CLOSED = """
def ask():
    global table, engine
    engine.close()
    connection = engine._connection
    references = sys.getrefcount(connection)
    del connection, engine, table
    return "kept" if references > 2 else "let go"
"""


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ASKED, "forked-process 1 [(7,)]"),
        pytest.param(CLOSED, "kept", marks=pytest.mark.slow),
        pytest.param(BUSY, "forked-process", marks=pytest.mark.slow),
    ],
    ids=["a question, and an engine of its own", "closing", "a busy engine"],
)
def test_a_forked_process_is_told_and_charged_nothing(asked, said, tmp_path):
    path = str(tmp_path / "a.ledger")
    assert said_in_a_fork(f"path = {path!r}\n{FORKED}\n{asked}") == said


# --- seeded bugs --------------------------------------------------------------------------------------------


def test_moments_that_are_only_chosen_and_not_moved_are_seen(monkeypatch, tmp_path):
    """The bug that was there: DuckDB writes all moments of a dictionary as text, also those that no row here has."""
    monkeypatch.setattr(
        dialect,
        "_in_python_range",
        lambda value, kind: f"CASE WHEN {value} BETWEEN {dialect._DAYS[kind]} THEN {value} END",
    )
    source = sources(raw(pa.timestamp("us"))([*[1000] * (ROWS - 1), LEAST]), tmp_path)[2]
    assert kinds(outcomes(source, MOMENTS[0])) == ["EngineFailed"] * 2


def test_milliseconds_that_are_read_are_seen(monkeypatch, tmp_path):
    monkeypatch.setattr(parquet_files, "in_milliseconds", lambda files: set())
    source = sources(raw(pa.timestamp("ms"))([5, LEAST]), tmp_path)[2]
    assert kinds(outcomes(source, counted("EXTRACT(year FROM c) > 1")))[0] == "EngineFailed"
