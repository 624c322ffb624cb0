"""One person's odd cell changes no outcome on DuckDB: the question is answered with it and without, and so is the next.

What an odd cell may change is what its own row adds.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.engines import parquet_files
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.learn.streams import open_batches
from discreet.sql.expressions import PARTS, UNITS, Call, Const, call
from discreet.sql.measuring.rows import print_expression, safe

from ...refusing import refuses
from ..test_dialect import field, questions

PEOPLE = 30
Outcome = tuple[str, Any]


def raw_text(cells: Sequence[bytes | None], kind: Any = None) -> pa.Array:
    """Text of these bytes, whatever they are."""
    large = kind == pa.large_string()
    buffers = pa.array(cells, pa.large_binary() if large else pa.binary()).buffers()
    made = pa.Array.from_buffers(pa.large_string() if large else pa.string(), len(cells), buffers)
    return made.cast(kind) if kind == pa.string_view() else made


def raw(kind: Any) -> Callable[[Sequence[Any]], pa.Array]:
    """Numbers as what they stand for in Arrow."""
    return lambda cells: pa.array(cells, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)


def dictionary(cells: Sequence[bytes]) -> pa.Array:
    known = list(dict.fromkeys(cells))
    return pa.DictionaryArray.from_arrays(pa.array([known.index(cell) for cell in cells]), raw_text(known))


def rows(make: Callable[[Sequence[Any]], pa.Array], usual: Any, *odd: Any) -> pa.Table:
    cells = [*[usual] * (PEOPLE - len(odd)), *odd]
    return pa.table({"person": [f"p{n}" for n in range(PEOPLE)], "c": make(cells)})


def on_disk(table: pa.Table, folder: Path, **how: Any) -> str:
    place = folder / f"{next(_NUMBERS)}.parquet"
    pq.write_table(table, place, **how)
    return str(place)


_NUMBERS = itertools.count()


def asked(source: Any, *questions: Callable[[Any], Any]) -> list[Outcome]:
    """How the questions end, one after another; the last one is always the number of rows."""
    limit = dp.Approx(epsilon=10**5, delta=0.01)
    ledger = dp.Ledger.open(":memory:", protects=dp.person("person"), limit=limit)
    table = dp.table(source, ledger=ledger, rows_per_person=3)
    found: list[Outcome] = []
    for question in (*questions, lambda one: one.count(epsilon=1)):
        try:
            with testing.no_noise():
                found.append(("answered", question(table).value))
        except dp.DiscreetError as error:
            found.append((type(error).__name__, str(error)))
    return found


def counted(where: str) -> Callable[[Any], Any]:
    return lambda table: table.count(epsilon=1, where=where)


def histogram(table: Any) -> Any:
    return table.histogram("c", epsilon=50, delta=1e-3)


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [kind for kind, _ in outcomes]


# --- text that is no UTF-8 ----------------------------------------------------------------------------------


TEXT_QUESTIONS = (
    *map(counted, ("upper(c) = 'ABC'", "lower(c) LIKE 'a%'", "c ILIKE 'A%'", "trim(c) = 'abc'", "c < 'b'")),
    *map(counted, ("length(c) > 1", "substring(c, 1, 2) = 'ab'", "c || 'x' = 'abcx'", "CAST(c AS DATE) IS NULL")),
    histogram,
)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("odd", [b"\xffx", b"ab\xe2\x82"])
@pytest.mark.parametrize("make", [raw_text, dictionary], ids=["text", "dictionary"])
def test_text_that_is_no_utf8_stops_no_question_on_arrow(make, odd):
    usual, with_odd = (asked(rows(make, b"abc", cell), *TEXT_QUESTIONS) for cell in (b"abc", odd))
    assert kinds(usual) == kinds(with_odd) == ["answered"] * len(usual)
    assert with_odd[0] == ("answered", PEOPLE - 1)
    assert with_odd[-2] == ("answered", {"abc": PEOPLE - 1})
    assert with_odd[-1] == ("answered", PEOPLE)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_every_kind_of_text_is_read(kind):
    table = rows(lambda cells: raw_text(cells, kind), b"abc", b"\xffx")
    assert asked(table, counted("c IS NULL"), counted("upper(c) = 'ABC'"))[:2] == [("answered", 1), ("answered", 29)]


ENCODINGS = {
    "dictionary": {},
    "plain": {"use_dictionary": False, "column_encoding": {"c": "PLAIN"}},
    "lengths": {"use_dictionary": False, "column_encoding": {"c": "DELTA_LENGTH_BYTE_ARRAY"}},
    "prefixes": {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
}


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("how", ENCODINGS)
def test_text_that_is_no_utf8_stops_no_question_on_parquet(how, tmp_path):
    odd = b"\xffx", b"\xc3", b"\xa9"  # the last two are one letter, if nobody looks where a value ends
    sources = (on_disk(rows(raw_text, b"abc", *cells), tmp_path, **ENCODINGS[how]) for cells in ((), odd))
    usual, with_odd = (asked(source, *TEXT_QUESTIONS) for source in sources)
    assert kinds(usual) == kinds(with_odd) == ["answered"] * len(usual)
    assert with_odd[0] == ("answered", PEOPLE - 3)


def test_a_person_whose_id_is_no_utf8_stops_no_question(tmp_path):
    ids = raw_text([*(b"p%d" % n for n in range(PEOPLE - 1)), b"\xffx"])
    table = pa.table({"person": ids, "c": pa.array(range(PEOPLE))})
    for source in (table, on_disk(table, tmp_path)):
        assert kinds(asked(source, lambda one: one.sum("c", between=(0, 9), epsilon=1))) == ["answered"] * 2


def test_a_label_that_is_no_utf8_stops_no_fit(tmp_path):
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": raw_text([b"a", b"\xffx", b"b"])})
    batches = open_batches(on_disk(table, tmp_path), ["x"], "y")
    seen = [labels for _, labels in batches.read(lambda labels: np.array([len(one) for one in labels], dtype=float))]
    assert len(np.concatenate(seen)) == 3


# --- what a file says of its rows ---------------------------------------------------------------------------


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("where", ["x > 5", "x >= 5", "x < 5", "NOT x <= 5", "x BETWEEN 6 AND 20"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_one_number_does_not_decide_for_others_who_have_none(kind, where, tmp_path):
    """NaN is not in the statistics of a file: were they believed, the largest number would decide for it."""
    found = []
    for mine in (1.0, 10.0):
        table = rows(lambda cells, mine=mine: pa.array([mine, *cells[1:]], kind), float("nan"), float("nan"))
        table = table.rename_columns(["person", "x"])
        answers = [asked(source, counted(where))[0][1] for source in (on_disk(table, tmp_path), table)]
        assert answers[0] == answers[1]
        found.append(answers[0])
    assert abs(found[0] - found[1]) <= 1


@pytest.mark.parametrize("where", ["c = 'b?'", "c < 'b@'", "c IN ('b?', 'y')", "c >= 'b?' AND c < 'b@'"])
def test_one_text_does_not_decide_for_others_that_are_no_utf8(where, tmp_path):
    """Nor are bytes that are read as others: the smallest text would decide for them."""
    found = []
    for mine in (b"b@", b"a"):
        table = rows(lambda cells, mine=mine: raw_text([mine, *cells[1:]]), b"b\xff", b"c")
        found.append(asked(on_disk(table, tmp_path), counted(where))[0][1])
    assert abs(found[0] - found[1]) <= 1
    assert min(found) >= PEOPLE - 2


def test_files_of_different_types_are_refused_whatever_is_in_them(tmp_path):
    for text in ("12", "abc"):
        folder = tmp_path / text
        folder.mkdir()
        pq.write_table(pa.table({"c": [1]}), folder / "0.parquet")
        pq.write_table(pa.table({"c": [text]}), folder / "1.parquet")
        with refuses(InvalidArgument, "source-files-differ"):
            DuckDB({"t": folder})
    pq.write_table(pa.table({"c": pa.array([1], pa.int32())}), folder / "1.parquet")
    assert DuckDB({"t": folder}).rows(f"SELECT count(*) FROM {DuckDB({'t': folder}).relations['t']}") == [(2,)]


# --- moments beyond what the engine has ---------------------------------------------------------------------

FAR = (2**63 - 1, -(2**63), -(2**63) + 1, -(2**63) + 2, 2**62, -(2**62))
DAYS_FAR = (-(2**31), -(2**31) + 1, -(2**31) + 2, 2**31 - 1, 2**31 - 3, 10**7, -(10**6), -719163, 2932897, 0, None)
MOMENT_QUESTIONS = (
    counted("c IS NOT NULL"),
    counted("EXTRACT(year FROM c) > 1"),
    counted("CAST(c AS VARCHAR) LIKE '1%'"),
    histogram,
    lambda table: table.median("c", between="auto", epsilon=10**4),
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_moments_that_are_far_away_stop_no_question_on_arrow(unit, zone):
    make, some = raw(pa.timestamp(unit, zone)), 1 if zone else len(MOMENT_QUESTIONS)
    usual = kinds(asked(rows(make, 1000, 1000), *MOMENT_QUESTIONS[:some]))
    assert usual == ["answered"] * (some + 1)
    assert kinds(asked(rows(make, 1000, *FAR), *MOMENT_QUESTIONS[:some])) == usual


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_moments_that_are_far_away_stop_no_question_on_parquet(unit, tmp_path):
    source = on_disk(rows(raw(pa.timestamp(unit)), 1000, *FAR), tmp_path)
    assert kinds(asked(source, *MOMENT_QUESTIONS)) == ["answered"] * (len(MOMENT_QUESTIONS) + 1)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_that_are_long_stop_no_question(unit):
    table = rows(raw(pa.duration(unit)), 1000, *FAR)
    assert kinds(asked(table, counted("c IS NOT NULL"))) == ["answered"] * 2


@pytest.mark.slow
def test_days_that_are_far_away_stop_no_question(tmp_path):
    table = rows(raw(pa.date32()), 1000, *DAYS_FAR)
    for source in (table, on_disk(table, tmp_path)):
        assert kinds(asked(source, *MOMENT_QUESTIONS)) == ["answered"] * (len(MOMENT_QUESTIONS) + 1)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_milliseconds_in_parquet_are_not_read_whatever_they_are(zone, tmp_path):
    """DuckDB stops at one that is too far away, whatever is asked of it: the file opens without the column."""
    make = raw(pa.timestamp("ms", zone))
    for cell, how in ((None, {}), (1000, {}), (2**62, {}), (-(2**63), {}), (1000, {"write_statistics": False})):
        engine = DuckDB({"t": on_disk(rows(make, 1000, cell), tmp_path, **how)})
        assert engine.columns("t") == {"person": "text"}
        assert engine.rows(f"SELECT count(*) FROM {engine.relations['t']}") == [(PEOPLE,)]


def test_what_tells_people_apart_shows_its_type():
    kept = {"ns": raw(pa.timestamp("ns"))([1]), "tz": raw(pa.timestamp("ms", "UTC"))([1]), "d": pa.array([Decimal(1)])}
    assert DuckDB({"t": pa.table(kept)}).columns("t") == {"ns": "timestamp", "tz": "other", "d": "number"}


# --- every word on hostile cells ----------------------------------------------------------------------------

HOSTILE = {
    "text": raw_text(
        [
            *(b"", b"\0", b"a\0b", b"x" * 2**17, b"\xff", b"\xc3", b"infinity", b"-infinity", b"nan", b"inf", b"1e400"),
            *(b"290309-12-22 (BC) 00:00:00", b"290309-12-21 (BC) 19:59:05.224192", b"294247-01-10 04:00:54.775806"),
            *(b"5877642-06-25 (BC)", b"5881580-07-10", b"-0.0", b"9" * 400, b"\xf4\x8f\xbf\xbf", "İﬃ".encode()),
            *(b"%", b"\\", b"_" * 50, b"9223372036854775808", None),
        ]
    ),
    "number": pa.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 2.0**63, -(2.0**63), None]),
    "integer": pa.array([2**63 - 1, -(2**63), 0, -1, None]),
    "boolean": pa.array([True, False, None]),
    "date": raw(pa.date32())(DAYS_FAR),
    "timestamp": raw(pa.timestamp("us"))([*FAR, 0, -62135596800000001, 253402300800000000, None]),
    "decimal": pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), Decimal(0), None], pa.decimal128(38, 0)),
    "small decimal": pa.array([Decimal(10) ** -38, Decimal(0), None], pa.decimal128(38, 38)),
}
OURS = {"decimal": "number", "small decimal": "number"}


def all_words(first: str, second: str) -> Iterator[str]:
    """Every operation on these types, each as it is, as a key, and as the text and the bins made of it."""
    asked = questions(first, second)
    if first == second and first in ("text", "date", "timestamp"):
        for detail, kind in (("DATE", "date"), ("TIMESTAMP", "timestamp")):
            made = call("cast", field("a", first), detail=detail, kind=kind)
            asked += [call("part", made, detail=part) for part in PARTS]
            asked += [call("truncate", made, detail=unit) for unit in UNITS]
            asked += [call("subtract", made, Const(datetime.date(2020, 1, 1), "date"))]
    for expr in asked:
        yield from uses(expr)


def uses(expr: Call) -> Iterator[str]:
    shown = safe(expr, dialect)
    yield shown
    yield dialect.group_key(shown, expr.type)
    if expr.type in ("date", "timestamp"):
        yield dialect.total(
            dialect.operation("cast", [print_expression(expr, dialect)], [expr.type], "text", "VARCHAR")
        )
    if expr.type in ("number", "integer"):
        yield dialect.octave_bin(shown, -10, 10)


def pairs(first: str, second: str) -> pa.Table:
    """All pairs of hostile cells of two types."""
    places = itertools.product(range(len(HOSTILE[first])), range(len(HOSTILE[second])))
    a, b = zip(*places, strict=True)
    return pa.table({"a": HOSTILE[first].take(pa.array(a)), "b": HOSTILE[second].take(pa.array(b))})


QUICK = [(kind, kind) for kind in HOSTILE] + [("text", "integer"), ("date", "timestamp"), ("integer", "number")]
SLOW = [pair for pair in itertools.product(HOSTILE, HOSTILE) if pair not in QUICK and "text" not in pair]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("first", "second"), [*QUICK, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in SLOW)])
@pytest.mark.parametrize("where", ["arrow", "parquet"])
def test_no_word_stops_at_a_hostile_cell(first, second, where, tmp_path):
    """All in one statement: an engine that fails once may fail for good. The values are fetched as keys are."""
    table = pairs(first, second)
    source = table if where == "arrow" else on_disk(table, tmp_path)
    engine = DuckDB({"t": source})
    every = sorted(set(all_words(OURS.get(first, first), OURS.get(second, second))))
    assert len(every) > 20
    for start in range(0, len(every), 100):
        counts = ", ".join(f"count({word})" for word in every[start : start + 100])
        assert len(engine.rows(f"SELECT {counts} FROM {engine.relations['t']}")) == 1
    for kind, name in ((first, "a"), (second, "b")):
        key = dialect.group_key(dialect.quote(name), OURS.get(kind, kind))
        assert engine.rows(f"SELECT DISTINCT {key} FROM {engine.relations['t']}")
    assert engine.rows(f"SELECT count(*) FROM {engine.relations['t']}") == [(table.num_rows,)]


def test_text_is_wrapped_in_parquet_alone(tmp_path):
    """Filters on numbers and days reach the files as before, and tables of Arrow are read as they are."""
    table = pa.table({"person": ["a"], "x": [1.0], "day": [datetime.date(2020, 1, 1)]})
    assert DuckDB({"t": table}).relations["t"] == '"source t"'
    relation = DuckDB({"t": on_disk(table, tmp_path)}).relations["t"]
    assert relation.count(parquet_files.without_statistics('"person"')) == 1
    assert relation.count(" AS ") == 1
