"""PostgreSQL against rows, types and tables that are made to break it: nothing stops a question, and bounds hold."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.postgres.dialect import LONGEST
from discreet.engines.postgres.engine import Postgres
from discreet.errors import EngineFailed, InvalidArgument, NotAllowed
from discreet.sql.expressions import PARTS, UNITS, Const, Expr, call, fits
from discreet.sql.measuring.compile import Statement
from discreet.sql.measuring.measure import read_measures
from discreet.sql.measuring.rows import safe
from discreet.sql.schema import Column, Schema, Table

from ...refusing import refuses
from ..conftest import Server, beside, sql

words = beside("engines", "test_dialect")
ROWS = pa.table({"pid": [1, 2, 3], "x": [1.0, 2.0, 3.0], "note": ["a", "b", "c"]})


def database(engine: Postgres, known: dict[str, dict[str, Any]] | None = None, **bounds: Any) -> Database:
    """The table t, with what is declared of its columns."""
    told = {"rows_per_person": 2, **bounds}
    columns = {
        name: Column(name=name, type=kind, **(known or {}).get(name, {})) for name, kind in engine.columns("t").items()
    }
    unit = dp.person("pid")
    table = Table(name="t", columns=columns, person="pid", **told)
    return Database(Schema(unit=unit, tables={"t": table}), engine, sql.open_ledger(unit))


def answered(asked: Database, text: str) -> Any:
    with testing.no_noise():
        return asked.sql(text, epsilon=1).as_json()["rows"]


@pytest.fixture
def schema(server: Server) -> str:
    return server.loaded({"t": ROWS})["t"].partition(".")[0]


def opened(server: Server, schema: str, table: str = "t", role: str = "postgres") -> Postgres:
    return Postgres(server.url.replace("postgres@", f"{role}@"), {"t": f"{schema}.{table}"})


# --- values that are too large --------------------------------------------------------------------------------


@pytest.mark.slow
def test_text_that_grows_until_the_engine_fails(server, schema):
    """Each step doubles it: without a limit, 1 GB of text would stop the question, if this person is there."""
    asked = database(opened(server, schema))
    inner = "SELECT pid, MAX(note || note) AS z0 FROM t WHERE note = '{who}' GROUP BY pid"
    for step in range(1, 31):
        doubled = f"concat(z{step - 1}, z{step - 1})" if step % 2 else f"z{step - 1} || z{step - 1}"
        inner = f"SELECT pid, MAX({doubled}) AS z{step} FROM ({inner}) AS q{step} GROUP BY pid"
    for who in ("a", "nobody"):
        assert answered(asked, f"SELECT COUNT(*) AS n FROM ({inner.format(who=who)}) AS q WHERE z30 <> ''") == [[0]]


@pytest.mark.parametrize(
    ("length", "seen"), [(LONGEST, 4), (LONGEST + 1, 3), pytest.param(280_000_000, 3, marks=pytest.mark.slow)]
)
def test_text_that_is_too_long_is_missing(server, schema, length, seen):
    """lower() and regular expressions fail on more than 256 MB."""
    server.connection.execute(
        f"INSERT INTO {schema}.t VALUES (4, 1, repeat('é', {length} / 2) || repeat('x', {length} % 2))"
    )
    asked = database(opened(server, schema))
    for value in ("note", "lower(note)", "CASE WHEN note ILIKE '%q%' THEN 'q' ELSE note END"):
        assert answered(asked, f"SELECT COUNT({value}) AS n FROM t") == [[seen]]
    assert answered(asked, "SELECT COUNT(CAST(note AS DOUBLE)) AS n FROM t") == [[0]]


@pytest.mark.slow
def test_values_of_other_types_are_told_apart_whatever_they_are(server, schema):
    """A numeric of a few bytes has a text of 131,072 digits, so a small array or JSON has one of more than 1 GB."""
    run = server.connection.execute
    columns = f"many numeric[], made jsonb, bytes bytea, pair {schema}.t, at timetz"
    run(f"CREATE TABLE {schema}.odd (pid int8, {columns})")
    most = "(SELECT {what} FROM generate_series(1, 9000))"
    huge = most.format(what="array_agg(1e131071::numeric)"), most.format(what="jsonb_agg(1e131071::numeric)")
    bytes_ = "decode(repeat('ab', 40000), 'hex')"
    run(f"INSERT INTO {schema}.odd VALUES (1, {', '.join(huge)}, {bytes_}, NULL, '24:00:00-15:59')")
    deep = "{" * 6 + "1" + "}" * 6  # an array cannot have more dimensions
    run(f"INSERT INTO {schema}.odd VALUES (2, '{deep}', '[]', '', ROW(NULL, NULL, NULL), '00:00+15:59')")
    run(f"INSERT INTO {schema}.odd VALUES (3, '{{}}', '{{\"a\": 1e10}}', '\\x00', NULL, NULL)")
    asked = database(opened(server, schema, "odd"))
    for column, seen in (("many", 2), ("made", 2), ("bytes", 2), ("pair", 1), ("at", 2)):
        assert answered(asked, f"SELECT COUNT({column}) AS n FROM t") == [[seen]], column
        assert answered(asked, f"SELECT COUNT(DISTINCT {column}) AS n FROM t") == [[seen]], column


# --- tables that are computed as they are read ----------------------------------------------------------------


def test_a_cast_that_somebody_made_is_not_used(server, schema):
    run = server.connection.execute
    run(f"CREATE TYPE {schema}.mood AS ENUM ('well', 'ill')")
    run(
        f"CREATE FUNCTION {schema}.shown({schema}.mood) RETURNS text LANGUAGE plpgsql AS "
        "$$BEGIN IF $1 = 'ill' THEN RAISE 'secret'; END IF; RETURN 'x'; END$$"
    )
    run(f"CREATE CAST ({schema}.mood AS text) WITH FUNCTION {schema}.shown({schema}.mood)")
    run(f"CREATE TABLE {schema}.moods (pid int8, mood {schema}.mood)")
    run(f"INSERT INTO {schema}.moods VALUES (1, 'well'), (2, 'ill'), (3, NULL)")
    asked = database(opened(server, schema, "moods"), {"mood": {"choices": ("ill", "well")}})
    assert answered(asked, "SELECT mood, COUNT(*) AS n FROM t GROUP BY mood") == [["ill", 1], ["well", 1]]


@pytest.mark.parametrize("how", ["PARTITION OF {0}.whole FOR VALUES FROM (0) TO (9)", "() INHERITS ({0}.whole)"])
def test_a_table_with_foreign_parts_is_refused(server, schema, how):
    run = server.connection.execute
    run(f"CREATE TABLE {schema}.whole (pid int8, x float8){' PARTITION BY RANGE (pid)' * how.startswith('P')}")
    assert opened(server, schema, "whole").columns("t") == {"pid": "integer", "x": "number"}
    run(f"CREATE FOREIGN DATA WRAPPER far_{schema}")
    run(f"CREATE SERVER there_{schema} FOREIGN DATA WRAPPER far_{schema}")
    run(f"CREATE FOREIGN TABLE {schema}.part {how.format(schema)} SERVER there_{schema}")
    try:
        with refuses(InvalidArgument, "source-not-a-table"):
            opened(server, schema, "whole")
    finally:
        run(f"DROP FOREIGN DATA WRAPPER far_{schema} CASCADE")


def test_policies_that_choose_rows_are_refused(server, schema):
    """A policy is computed row by row, and may fail on one."""
    run, role = server.connection.execute, f"low_{schema}"
    run(f"CREATE ROLE {role} LOGIN")
    run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    run(f"GRANT SELECT ON {schema}.t TO {role}")
    asked = database(opened(server, schema, role=role))
    assert answered(asked, "SELECT COUNT(*) AS n FROM t") == [[3]]
    run(f"ALTER TABLE {schema}.t ENABLE ROW LEVEL SECURITY")
    run(f"CREATE POLICY few ON {schema}.t USING (1 / (pid - 2) < 5)")
    said = set()
    for _ in range(2):  # with the row that it fails on, and without
        with refuses(InvalidArgument, "source-row-security"):
            opened(server, schema, role=role)
        with pytest.raises(EngineFailed) as caught:
            answered(asked, "SELECT COUNT(*) AS n FROM t")
        said.add(str(caught.value))
        run(f"DELETE FROM {schema}.t WHERE pid = 2")
    assert len(said) == 1
    assert answered(database(opened(server, schema)), "SELECT COUNT(*) AS n FROM t") == [[2]]  # the owner sees all
    run(f"DROP OWNED BY {role}")
    run(f"DROP ROLE {role}")


# --- the session ----------------------------------------------------------------------------------------------


def test_nothing_of_the_session_is_left_to_others(server, schema):
    """Options in the URL are as little trusted as those of the role; two statements are an error."""
    options = "?options=-csearch_path%3Dpublic%20-cjit%3Don%20-cbytea_output%3Descape%20-crow_security%3Don"
    engine = Postgres(server.url + options, {"t": f"{schema}.t"})
    names = ("search_path", "bytea_output", "row_security", "transaction_read_only", "client_min_messages")
    shown = engine.rows("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
    assert shown == [("pg_catalog, pg_temp", "hex", "off", "on", "error")]
    for text in ("SELECT 1; SELECT 2", "COMMIT; SELECT 1", "SELECT 1; COMMIT; DROP TABLE x"):
        with pytest.raises(EngineFailed):
            engine.rows(text)


def test_people_with_many_rows_are_not_compared_one_by_one(server, schema):
    """The planner thinks that a few conditions leave one row; joined in a nested loop, they would take for ever."""
    asked = database(opened(server, schema), {"x": {"between": (0, 10)}}, groups_per_person=2, rows_per_group=2)
    where = " AND ".join(f"x * {n}.5 > -1" for n in range(1, 20))
    plan = asked.plan(f"SELECT note, COUNT(*) AS n FROM t WHERE {where} GROUP BY note", epsilon=1, delta=1e-6)
    statement = Statement(plan.question, asked.engine, plan.bounds, 1)
    shown = "\n".join(line for (line,) in asked.engine.rows(f"EXPLAIN {statement.additive()}"))
    assert "Join" in shown
    assert "Nested Loop" not in shown


# --- expressions inside others --------------------------------------------------------------------------------

KINDS = tuple(words.VALUES)
NUMERIC, DATED = ("number", "integer"), ("date", "timestamp")
WRITTEN = {
    "number": (0.0, 1.0, -0.5, 1e200, words.LARGEST, words.SMALLEST),
    "integer": (0, 1, -1, 3, 2**62, -(2**63)),
    "text": ("", "a", "x'y", "{a}", "\\", "12"),
    "boolean": (True, False),
    "date": words.DAYS[:4],
    "timestamp": words.MOMENTS[:4],
}


@st.composite
def expressions(draw: Any, kind: str, depth: int) -> Expr:
    """An expression of a type over columns of every type, some NULL among them."""
    if depth == 0 or draw(st.integers(0, 6)) == 0:
        leaf = draw(st.sampled_from(["field", "field", "field", "written", "null"]))
        if leaf == "field":
            return words.field(f"{kind}_{draw(st.sampled_from('ab'))}", kind)
        return Const(None, "other") if leaf == "null" else Const(draw(st.sampled_from(WRITTEN[kind])), kind)

    def inner(*kinds: str) -> Expr:
        return draw(expressions(draw(st.sampled_from(kinds)), depth - 1))

    alike = next((group for group in (NUMERIC, DATED) if kind in group), (kind,))
    ways = ["case", "coalesce", "least", "greatest", "nullif", "cast", *_WAYS[kind]]
    op = draw(st.sampled_from(ways))
    match op:
        case "case":
            args = (inner("boolean"), inner(*alike), inner(*alike))
        case "cast":
            detail = draw(st.sampled_from([name for name, made in words.CASTS.items() if made == kind]))
            return call("cast", inner(*KINDS), detail=detail, kind=kind)
        case "coalesce" | "least" | "greatest" | "nullif":
            args = (inner(*alike), inner(*alike))
        case "eq" | "ne" | "lt" | "ge" | "same" | "in":
            of = draw(st.sampled_from(KINDS))
            both = next((group for group in (NUMERIC, DATED) if of in group), (of,))
            args = (inner(*both), inner(*both))
        case "and" | "or":
            args = (inner("boolean"), inner("boolean"))
        case "like" | "ilike":
            args = (inner("text"), Const(draw(st.sampled_from(["a%", "%\\%", "_", "%'%", ""])), "text"))
        case "is_null":
            args = (inner(*KINDS),)
        case "not":
            args = (inner("boolean"),)
        case "part" | "truncate":
            detail = draw(st.sampled_from([*PARTS] if op == "part" else [*UNITS]))
            return call(op, inner(*(DATED if op == "part" else (kind,))), detail=detail)
        case "days_between":
            args = (inner(*DATED), inner(*DATED))
        case "concat" | "joined":
            args = (inner("text"), inner("text"))
        case "lower" | "upper" | "trim" | "length":
            args = (inner("text"),)
        case "substring":
            args = (inner("text"), Const(2, "integer"), Const(3, "integer"))
        case "round":
            args = (inner(*NUMERIC), Const(draw(st.sampled_from([0, 2, 15])), "integer"))
        case _:
            of_one = op in ("negate", "abs", "sign", "floor", "ceil", "sqrt", "ln", "exp")
            of_kind = ("integer",) if kind == "integer" else NUMERIC
            args = (inner(*of_kind),) if of_one else (inner(*of_kind), inner(*of_kind))
    return call(op, *args) if fits(op, args) else words.field(f"{kind}_a", kind)


_WAYS = {
    "number": ("add", "subtract", "multiply", "divide", "power", "negate", "abs", "sign", "floor", "sqrt", "ln", "exp"),
    "integer": ("add", "subtract", "multiply", "integer_divide", "modulo", "negate", "abs", "sign", "length", "part"),
    "boolean": ("eq", "ne", "lt", "ge", "same", "in", "and", "or", "not", "is_null", "like", "ilike"),
    "text": ("lower", "upper", "trim", "substring", "concat", "joined"),
    "date": ("truncate",),
    "timestamp": ("truncate",),
}
_WAYS["number"] += ("round", "ceil")
_WAYS["integer"] += ("days_between",)
PYTHON = {"number": float, "integer": int, "text": str, "boolean": bool, "date": datetime.date}


@pytest.fixture(scope="session")
def values(server: Server) -> Postgres:
    """Every value beside others: two columns of each type, whose lengths have no common divisor."""
    columns = {}
    for kind, (listed, typed) in words.VALUES.items():
        for name, start in (("a", 0), ("b", 1)):
            picked = [listed[(row * (1 if name == "a" else 7) + start) % len(listed)] for row in range(1200)]
            columns[f"{kind}_{name}"] = pa.array(picked, typed)
    return Postgres(server.url, server.loaded({"t": pa.table(columns)}))


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(made=st.lists(st.sampled_from(KINDS).flatmap(lambda kind: expressions(kind, 4)), min_size=1, max_size=4))
def test_expressions_inside_others_are_total(values, made):
    """Never an error, and always a value of the type that the plan believes it has, or NULL."""
    shown = []
    for expr in made:
        try:
            shown.append((expr, safe(expr, values.dialect)))
        except NotAllowed:
            continue
    if not shown:
        return
    try:
        found = values.rows(f"SELECT {', '.join(text for _, text in shown)} FROM {values.relations['t']}")
    except EngineFailed:
        pytest.fail(f"the engine failed: {shown}")
    for (expr, _), column in zip(shown, zip(*found, strict=True), strict=True):
        known = PYTHON.get(expr.type, object if expr.type == "other" else datetime.date)
        assert all(value is None or isinstance(value, known) for value in column), expr


# --- bounds ---------------------------------------------------------------------------------------------------

HEAVY = 40
PEOPLE = {
    "int8": [str(n) for n in range(-3, 6)],
    "text": ["p", "p ", " p", "P", "é", "e\u0301", "", "'", "{}"],
    "char(4)": ["p", "q ", " p", "P", "é", "e\u0301", "", "'", "{}"],
    "uuid": [f"00000000-0000-0000-0000-00000000000{n}" for n in range(9)],
    "date": [f"2024-01-0{n}" for n in range(1, 10)],
}
ASKED = (
    "SELECT COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT note) AS d, MEDIAN(x) AS m FROM t",
    "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, STDDEV(x) AS v FROM t GROUP BY k",
    "SELECT note, COUNT(DISTINCT x) AS d, COUNT(DISTINCT pid) AS p, MEDIAN(x) AS m FROM t GROUP BY note",
    "SELECT EXTRACT(month FROM day) AS m, SUM(x) AS s FROM t GROUP BY 1",
    "SELECT k, COUNT(*) AS n FROM (SELECT pid, k, SUM(x) AS x FROM t GROUP BY pid, k) AS q WHERE x > 0 GROUP BY k",
    "SELECT q.k, SUM(q.x) AS s FROM t JOIN (SELECT pid, k, x FROM t) AS q ON t.pid = q.pid GROUP BY q.k",
)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("kind", PEOPLE)
@pytest.mark.parametrize("bounds", [(3, 2, 2), (4, None, None), (5, 3, 1)])
def test_a_person_moves_an_answer_by_no_more_than_the_bounds(server, schema, kind, bounds):
    """One person has many rows and all others one, so that nothing but the rows of that person is chosen at random."""
    run = server.connection.execute
    run(f"CREATE TABLE {schema}.odd (pid {kind}, k int8, x float8, note text, day date)")
    heavy, *others = PEOPLE[kind]
    notes, days = ["a", "A", "a ", None, "é"], ["2024-02-29", "infinity", "4000-01-01 BC", None, "2024-07-01"]
    numbers = ["-0", "0", "NaN", "Infinity", "1e308", "-5", "7.25", "5e-324", None]
    for row in range(HEAVY + len(others) + 3):
        person = heavy if row < HEAVY else dict(enumerate(others, HEAVY)).get(row)
        rest = row % 7, numbers[row % 9], notes[row % 5], days[row // 5 % 5]
        run(f"INSERT INTO {schema}.odd VALUES (%s, %s, %s, %s, %s)", (person, *rest))
    told = {
        "k": {"between": (0, 5)},
        "x": {"between": (-3, 10)},
        "note": {"choices": ("a", "A", "é")},
        "day": {"between": (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))},
    }
    most = dict(zip(("rows_per_person", "groups_per_person", "rows_per_group"), bounds, strict=True))
    asked = database(opened(server, schema, "odd"), told, **most)
    plans = [asked.plan(text, epsilon=1) for text in ASKED]
    with_it = [read_measures(plan.question, asked.engine, plan.bounds, plan.groups) for plan in plans]
    run(f"DELETE FROM {schema}.odd WHERE pid = %s", (heavy,))
    without = [read_measures(plan.question, asked.engine, plan.bounds, plan.groups) for plan in plans]
    for plan, *both in zip(plans, with_it, without, strict=True):
        for measure, more, less in zip(plan.question.measures, *both, strict=True):
            moved = [_distance(measure, a, b) for a, b in zip(more, less, strict=True)]
            assert max(moved) <= plan.bounds.per_group * _reach(measure), (plan.question.text, measure)
            assert sum(map(bool, moved)) <= plan.bounds.groups, (plan.question.text, measure)


def _distance(measure: Any, more: Any, less: Any) -> int:
    if measure.kind != "quantile":
        return abs(int(more) - int(less))
    first, second = Counter(more.tolist()), Counter(less.tolist())
    return ((first - second) + (second - first)).total()


def _reach(measure: Any) -> int:
    return max(abs(measure.lowest), abs(measure.highest)) ** measure.power if measure.kind == "sum" else 1
