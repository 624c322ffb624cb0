"""Every key that is shown has one writing, bit by bit, whichever row comes first."""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.postgres import dialect as postgres_dialect
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark import dialect as spark_dialect
from discreet.sql.measuring.measure import read_undeclared

from .test_engine import database

PEOPLE, VICTIM = 120, 17
NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
ATTACK = "ROUND(CASE WHEN pid = 17 AND diag = 'HIV' THEN -0.1 ELSE 0.1 END)"
FIRST = (
    "SELECT pid, -x AS k FROM t WHERE pid = 17 UNION ALL SELECT pid, x + 0.0 AS k FROM t WHERE pid <> 17",
    "SELECT pid, x + 0.0 AS k FROM t WHERE pid <> 17 UNION ALL SELECT pid, -x AS k FROM t WHERE pid = 17",
)
QUESTIONS = (
    f"SELECT {ATTACK} AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT x AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT x * -1 AS k, COUNT(DISTINCT pid) AS n FROM t GROUP BY k",
    "SELECT FLOOR(x) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT CEIL(x - 0.5) AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT odd AS k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT at AS k, COUNT(*) AS n FROM t GROUP BY k",
    *(f"SELECT k, COUNT(*) AS n FROM ({rows}) AS u GROUP BY k" for rows in FIRST),
    "SELECT k, COUNT(*) AS n FROM (SELECT pid, x AS k, COUNT(*) AS c FROM t GROUP BY pid, x) AS u GROUP BY k",
)


def rows(sick: bool, place: str) -> pa.Table:
    """People with zeros; one of them may have the other zero and another NaN, in the first row, the last or between."""
    people = list(range(PEOPLE))
    people.remove(VICTIM)
    people.insert({"first": 0, "middle": PEOPLE // 2, "last": PEOPLE - 1}[place], VICTIM)
    mine = [sick and pid == VICTIM for pid in people]
    return pa.table(
        {
            "pid": people,
            "diag": ["HIV" if own else "flu" for own in mine],
            "x": [-0.0 if own else 0.0 for own in mine],
            "odd": pa.array([NAN if own else np.nan for own in mine], pa.float64()),
            "at": pa.array([datetime.datetime(2020, 1, 1)] * PEOPLE, pa.timestamp("us")),
        }
    )


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) else value


def databases(opened: Callable[[Any], Any], unit: dp.Unit) -> list[Database]:
    """The same rows, but for the person who is sick or not, and in the first row or the last."""
    cases = ((False, "first"), (True, "first"), (True, "last"))
    return [database(opened, rows(sick, place), unit) for sick, place in cases]


def shown(asked: Database, text: str) -> list[Any]:
    """The keys as the engine gives them and as they are shown, bit by bit."""
    plan = asked.plan(text, epsilon=20, delta=1e-3)
    raw = [bits(key) for (key,) in read_undeclared(plan.question, asked.engine, plan.bounds)[0]]
    with testing.no_noise():
        answer = asked.answer(plan)
    written = json.dumps(answer.as_json()["rows"], default=str) + str(answer).split("cost")[0]
    assert "-0" not in written.replace("2020-01-01", "")
    return [raw, [bits(key) for key in answer.table.column("k").to_pylist()]]


UNITS = [dp.person("pid"), dp.row()]  # of single rows, the first one is the first that the engine groups


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("unit", [UNITS[0], pytest.param(UNITS[1], marks=pytest.mark.slow)], ids=["person", "row"])
def test_a_key_is_the_same_bits_whichever_row_comes_first(opened, unit):
    cases = databases(opened, unit)
    for text in QUESTIONS:
        if "FROM (" in text and unit.column is None:
            continue  # only people have rows of their own, and unions
        first, *others = [shown(asked, text) for asked in cases]
        assert first[1], "no group is shown"
        assert all(keys == first for keys in others), text
        assert struct.pack("<d", -0.0) not in first[0], text


def test_a_histogram_shows_no_sign_of_zero(tmp_path):
    for sick in (False, True):
        ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=100, delta=0.1))
        table = dp.table(rows(sick, "first"), ledger=ledger, rows_per_person=1)
        with testing.no_noise():
            undeclared = table.histogram("x", epsilon=20, delta=1e-3).value
            declared = table.histogram("x", choices=[-0.0, 1.0], epsilon=20).value
        assert [bits(key) for key in undeclared] == [bits(0.0)]
        assert [bits(key) for key in declared] == [bits(0.0), bits(1.0)]


def test_keys_of_one_person_are_canonical_in_from(opened):
    """Of two equal rows either may come first: what is made of the key is the same."""
    text = "SELECT COUNT(*) AS n FROM (SELECT pid, x, COUNT(*) AS c FROM t GROUP BY pid, x) AS u WHERE 1 / x > 0"
    for cells in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        data = pa.table({"pid": [1, 1], "x": cells})
        with testing.no_noise():
            assert database(opened, data).sql(text, epsilon=1).as_json()["rows"] == [[1]]


def test_no_noisy_value_is_minus_zero():
    data = pa.table({"pid": range(10), "x": [1.0] * 10})
    asked = database(DuckDB, data, columns={"x": {"between": (-1, 1)}})
    texts = ("-(SUM(x) - SUM(x))", "0.0 * -COUNT(*)", "ROUND(AVG(x) * -0.01)", "-(COUNT(*) - COUNT(*)) / 1.0")
    for text in texts:
        with testing.no_noise():
            answer = asked.sql(f"SELECT {text} AS z FROM t", epsilon=1)
        assert bits(answer.table.column("z").to_pylist()[0]) == bits(0.0), text
        assert "-0" not in str(answer).split("cost")[0] + json.dumps(answer.as_json()["rows"])


def test_a_small_negative_number_is_not_written_as_minus_zero():
    from discreet.sql.running.answer import _cell

    assert _cell(-0.0001, 0.5) == "0.00 ± 0.51"
    assert _cell(-0.4, 20.0) == "0 ± 21"
    assert _cell(-0.6, 20.0) == "-1 ± 21"
    assert _cell(2.5, 0.0) == "2.5 ± 0"
    assert _cell(float("inf"), 1.0) == "inf ± 1"


def test_the_type_of_a_key_is_that_of_its_column_whatever_is_shown():
    asked = database(DuckDB, rows(False, "first"))
    for text in ("SELECT diag AS k, COUNT(*) AS n FROM t WHERE pid < 0 GROUP BY k", QUESTIONS[1]):
        with testing.no_noise():
            found = asked.sql(text, epsilon=20, delta=1e-3).table
        assert found.schema.field("k").type == (pa.string() if "diag" in text else pa.float64())


# --- PostgreSQL's own ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["char(5)", "varchar(9)", 'text COLLATE "any_case"', "any_word"])
def test_text_is_told_apart_by_its_bytes_on_postgres(server, kind):
    """Collations that take two texts for one, and blanks at the end, which comparisons leave out."""
    server.connection.execute(
        "CREATE COLLATION IF NOT EXISTS public.any_case "
        "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    if kind == "any_word":
        server.connection.execute("DROP TYPE IF EXISTS public.any_word CASCADE")
        server.connection.execute("CREATE TYPE public.any_word AS ENUM ('abc', 'ABC')")
    words_of = ["abc"] * 100 + ["ABC"] * 100
    found = []
    for order in (words_of, words_of[::-1]):
        data = pa.table({"pid": range(200), "name": order})
        named = kind.replace('"any_case"', 'public."any_case"').replace("any_word", "public.any_word")
        source = server.loaded({"t": data}, {"name": named})
        asked = database(lambda _, source=source: Postgres(server.url, source), data)
        with testing.no_noise():
            answer = asked.sql("SELECT name AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=20, delta=1e-3)
        found.append(answer.as_json()["rows"])
    assert found[0] == found[1] == [["ABC", 100], ["abc", 100]]


# --- the seeded bug -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [dialect, postgres_dialect], ids=["duckdb", "postgres"])
def test_a_key_with_its_sign_is_seen(request, monkeypatch, module):
    """The bug that was there: zeros of either sign are one group, under the sign of the first row."""
    right = module.group_key

    def wrong(value: str, kind: str) -> str:
        return value if kind == "number" else str(right(value, kind))

    monkeypatch.setattr(module, "group_key", wrong)
    server = None if module is dialect else request.getfixturevalue("server")
    opened = DuckDB if server is None else lambda data: Postgres(server.url, server.loaded(data))
    cases = databases(opened, UNITS[1])
    seen = [[shown(asked, text)[0] for asked in cases] for text in QUESTIONS[:2]]
    assert any(keys != found[0] for found in seen for keys in found)


def test_every_engine_has_canonical_words():
    for module in (dialect, postgres_dialect, spark_dialect):
        assert "= 0" in module.canonical("x", "number")
        assert module.canonical("x", "integer") == "x"
