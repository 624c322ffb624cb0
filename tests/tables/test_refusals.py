"""What is wrong with a question about a table, in Python or in SQL, said before anything is spent."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.datasets.policy import load
from discreet.engines.configuration import EngineConfiguration
from discreet.engines.duckdb.dialect import literal
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed, QueryError
from discreet.queries.counts import Count
from discreet.sql.schema import Column, Schema, Table, validate_range
from discreet.tables.distributions import Points

from ..refusing import refuses

Asked = Callable[[], Any]
LIMIT = dp.Approx(epsilon=10, delta=1e-4)
DAY = datetime.date(2025, 1, 31)
VISITS = pa.table({"id": [1, 2], "age": [30, 40], "city": ["Bled", "Koper"], "day": [DAY, DAY], "ids": ["1", "2"]})
SOURCES = {"visits": VISITS, "rooms": pa.table({"id": ["1"], "size": [1]})}


def refused(asked: Asked, code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


def ledger(unit: dp.Unit) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=unit, limit=LIMIT)


def schema(unit: dp.Unit, choices: dict[str, Any]) -> Schema:
    types = {"id": "integer", "age": "integer", "city": "text", "day": "date", "ids": "text"}
    columns = {name: Column(name=name, type=kind, choices=choices.get(name)) for name, kind in types.items()}
    other = {name: Column(name=name, type="text" if name == "id" else "integer") for name in ("id", "size")}
    person = {"person": "id", "rows_per_person": 1} if unit.column else {}
    tables = (
        Table(name="visits", columns=columns, **person),
        Table(name="rooms", columns=other, public=True),
    )
    return Schema(unit=unit, tables={table.name: table for table in tables})


def database(unit: dp.Unit = dp.person("id"), **choices: Any) -> Database:  # noqa: B008 - it is a frozen value
    known = schema(unit, choices)
    engine = DuckDB(SOURCES)
    return Database(known, engine, ledger(unit))


@pytest.fixture
def visits() -> Any:
    return dp.table(VISITS, ledger=ledger(dp.person("id")), rows_per_person=1)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda t: t.quantiles("age", [], between=(0, 120), epsilon=1), "empty"),
        (lambda t: t.synthesize({"age": "all"}, epsilon=1, delta=1e-6), "wrong-type"),
        (lambda t: t.density("city", between=(0, 1), epsilon=1), "column-no-range"),
        (lambda t: t.density("day", between=("2025-01-01", "2025-12-31"), bandwidth=9, epsilon=1), "wrong-type"),
        (lambda t: t.median("weight", between=(0, 120), epsilon=1), "unknown-column"),
        (lambda t: t.quantiles("weight", [0.5], between=(0, 120), epsilon=1), "unknown-column"),
        (lambda t: t.count("cities", epsilon=1), "not-an-option"),
    ],
)
def test_a_table_that_cannot_be_asked(visits: Any, ask: Callable[[Any], Any], code: str) -> None:
    refused(lambda: ask(visits), code)


def test_a_grid_of_dates_has_whole_days() -> None:
    refused(lambda: Points(DAY, DAY + datetime.timedelta(9), 0.5), "not-whole")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (
            lambda: dp.release([1], dp.Laplace(scale=1), query=Count(), ledger=ledger(dp.person("id"))),
            "rows-per-person-missing",
        ),
        (lambda: DuckDB({"visits": 3}), "not-a-table"),
        (lambda: EngineConfiguration(kind="duckdb", url="postgresql://host/db"), "engine-unknown-key"),
        (lambda: literal(b"bytes"), "sql-constant"),
        (lambda: validate_range(3, "number", "age"), "wrong-shape"),
        (lambda: validate_range((1, 2), "date", "day"), "not-a-date"),
        (lambda: validate_range(("soon", "late"), "date", "day"), "not-a-date"),
    ],
)
def test_a_source_or_a_range_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("SELECT FROM WHERE", "sql-syntax", QueryError),
        ("SELECT COUNT(*) FROM visits" + " JOIN rooms" * 9, "sql-too-complex", QueryError),
        ("SELECT COUNT(*) FROM visits; SELECT 2", "sql-one-at-a-time", QueryError),
        ("(SELECT COUNT(*) FROM visits)", "sql-parentheses", NotAllowed),
        ("SELECT COUNT(*) FROM visits WHERE DATE_DIFF('month', day, day) > 1", "sql-date-part", NotAllowed),
        ("1 + 1", "sql-not-a-query", QueryError),
        ("DROP TABLE visits", "sql-not-select", NotAllowed),
        ("SELECT COUNT(*) FROM visits JOIN rooms USING (id)", "sql-types", QueryError),
        ("SELECT COUNT(*) FROM (SELECT a.* FROM visits AS v) AS x", "sql-unknown-table", QueryError),
        ("SELECT COUNT(*) FROM visits WHERE SUBSTRING(city) = 'a'", "sql-arguments", QueryError),
        ("SELECT age, city, COUNT(*) FROM visits GROUP BY age, city", "sql-too-many-groups", NotAllowed),
    ],
)
def test_a_question_that_is_not_answered(text: str, code: str, kind: type[DiscreetError]) -> None:
    many = {"age": tuple(range(2000)), "city": tuple(map(str, range(2000)))}
    refused(lambda: database(**many).sql(text, epsilon=1), code, kind)


def test_bounds_of_a_person_mean_nothing_for_single_rows() -> None:
    asked = "SELECT COUNT(*) FROM visits"
    refused(lambda: database(dp.row()).sql(asked, epsilon=1, bounds={"rows_per_person": 1}), "rows-protected")


def test_an_accuracy_that_no_budget_reaches() -> None:
    asked = "SELECT MEDIAN(LEAST(GREATEST(age, 0), 120)) AS age FROM visits"
    refused(lambda: database().sql(asked, within={"age": 1e-9}), "within-too-small")


def test_a_ledger_for_another_unit() -> None:
    known = schema(dp.person("id"), {})
    engine = DuckDB(SOURCES)
    refused(lambda: Database(known, engine, ledger(dp.row())), "ledger-other-unit")


def test_a_policy_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "clinic.toml"
    file.write_text("[ledger\n", "utf-8")
    refused(lambda: load(file), "policy-not-toml")
    file.write_text("a = " + "[" * 5000, "utf-8")
    refused(lambda: load(file), "policy-not-toml")
    file.write_bytes(b"\xff")
    refused(lambda: load(file), "policy-not-toml")


def test_a_session_of_spark_is_for_spark(tmp_path: Path) -> None:
    words = {
        "ledger": {"path": str(tmp_path / "x.ledger"), "epsilon": 1, "delta": 1e-6},
        "unit": {"row": True},
        "tables": {"visits": {"source": VISITS}},
    }
    refused(lambda: dp.connect(words, spark=object()), "spark-not-the-engine")
