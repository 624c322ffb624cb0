"""What a database says may be asked of it: everything that is declared, and nothing of the rows or of their place."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.datasets import TableDescription, Tables
from discreet.datasets.description import asks_for_tables, shown_tables

from ..refusing import refuses

CANARY = "canary-7c1e"
DAY = datetime.date(2024, 1, 31)


@pytest.fixture
def clinic(tmp_path: Path) -> Any:
    visits = {"patient_id": [1, 2], "visit_id": [1, 2], "cost": [7654321.5, 2.0], "city": [CANARY, "Bled"]}
    pyarrow.parquet.write_table(pa.table(visits | {"day": [DAY, DAY]}), tmp_path / f"{CANARY}.parquet")
    pyarrow.parquet.write_table(pa.table({"visit_id": [1, 2], "drug": [CANARY, "x"]}), tmp_path / "drugs.parquet")
    (tmp_path / "cities.csv").write_text("city,people\n" + "".join(f"city {n},{n}\n" for n in range(30)))
    words = {
        "ledger": {"path": str(tmp_path / f"{CANARY}.ledger"), "epsilon": 1, "delta": 1e-6},
        "unit": {"person": "patient_id"},
        "tables": {
            "visits": {
                "source": str(tmp_path / f"{CANARY}.parquet"),
                "rows_per_person": 20,
                "groups_per_person": 1,
                "version": CANARY,
                "columns": {"cost": {"between": [0, 5000]}, "city": {"choices": ["Bled", "Koper"]}},
            },
            "drugs": {"source": str(tmp_path / "drugs.parquet"), "through": "visits.visit_id"},
            "cities": {"source": str(tmp_path / "cities.csv"), "public": True},
        },
    }
    return dp.connect(words)


def test_all_that_is_declared_is_said(clinic: Any) -> None:
    tables = clinic.tables
    assert isinstance(tables, Tables)
    assert list(tables) == ["visits", "drugs", "cities"]
    assert len(tables) == 3
    visits, drugs, cities = tables.values()
    assert (visits.protects, drugs.protects, cities.protects) == (dp.person("patient_id"),) * 2 + (None,)
    assert {name: column.type for name, column in visits.columns.items()} == {
        "patient_id": "integer",
        "visit_id": "integer",
        "cost": "number",
        "city": "text",
        "day": "date",
    }
    assert (visits.columns["cost"].between, visits.columns["city"].choices) == ((0, 5000), ("Bled", "Koper"))
    assert [name for name, column in visits.columns.items() if column.identifies_people] == ["patient_id"]
    assert (visits.rows_per_person, visits.groups_per_person, drugs.rows_per_person) == (20, 1, None)
    assert (visits.through, drugs.through) == (None, "visits.visit_id")
    assert len(cities.columns["city"].choices) == 30
    assert clinic.ledger.count == 0


def test_it_prints_as_a_person_reads_it(clinic: Any) -> None:
    assert str(clinic.tables["visits"]).splitlines() == [
        "visits: protects one person (all rows of one patient_id); an answer uses at most 20 rows and 1 group of one "
        "person",
        "  patient_id  integer  identifies people",
        "  visit_id    integer",
        "  cost        number   0 to 5000",
        "  city        text     Bled, Koper",
        "  day         date",
    ]
    text = str(clinic.tables)
    assert text == repr(clinic.tables)
    assert "drugs: protects one person (all rows of one patient_id), through visits.visit_id\n" in text
    assert "cities: public\n" in text
    assert "… (30 choices)" in text


def test_it_holds_no_row_and_no_place_of_rows(clinic: Any, tmp_path: Path) -> None:
    """Nothing that can be reached from it."""
    seen, left = "", list(clinic.tables.values())
    while left:
        part = left.pop()
        seen += f"{part!r} {part}"
        if isinstance(part, dict):
            left += [*part, *part.values()]
        elif hasattr(part, "__dict__"):
            left += vars(part).values()
    assert "cost" in seen
    assert CANARY not in seen
    assert str(tmp_path) not in seen


def test_it_cannot_be_changed(clinic: Any) -> None:
    with pytest.raises(AttributeError):
        clinic.tables["visits"].rows_per_person = 10**6
    with pytest.raises(TypeError):
        clinic.tables["visits"] = TableDescription(name="visits", protects=None, columns={})


def test_a_range_may_be_found() -> None:
    table = pa.table({"x": [1.0]})
    columns = {"x": {"between": "auto"}}
    words = {
        "ledger": {"path": ":memory:", "epsilon": 1},
        "unit": {"row": True},
        "tables": {"t": {"source": table, "columns": columns}},
    }
    *lines, empty, budget = str(dp.connect(words).tables).splitlines()
    assert lines == ["t: protects one row", "  x  number  a range that is found"]
    assert (empty, budget) == ("", "budget: ε = 1 of ε = 1 remains")


@pytest.mark.parametrize("text", ["SHOW TABLES", "show all tables;", " Describe ", "SHOW"])
def test_show_tables_says_all(clinic: Any, text: str) -> None:
    assert asks_for_tables(text)
    assert shown_tables(text, clinic.tables) == clinic.tables


@pytest.mark.parametrize(
    "text", ["DESCRIBE visits", 'desc "VISITS";', "SHOW COLUMNS FROM visits", "describe table visits\n", "SHOW visits"]
)
def test_describe_says_one_table(clinic: Any, text: str) -> None:
    assert asks_for_tables(text)
    assert shown_tables(text, clinic.tables).name == "visits"


@pytest.mark.parametrize("text", ["DESCRIBE SELECT 1", "SHOW TABLES; DROP TABLE visits", "SELECT 1", "", None, 5])
def test_other_texts_are_no_question_about_tables(text: Any) -> None:
    assert not asks_for_tables(text)


def test_an_unknown_table_is_not_described(clinic: Any) -> None:
    with refuses(dp.QueryError, "sql-unknown-table"):
        shown_tables("DESCRIBE vistis", clinic.tables)


def test_sql_says_where_the_tables_are_and_charges_nothing(clinic: Any) -> None:
    with refuses(dp.NotAllowed, "sql-not-select") as refused:
        clinic.sql("DESCRIBE visits", epsilon=0.1)
    assert str(clinic.tables["visits"]) in str(refused.value)
    assert CANARY not in str(refused.value)
    assert clinic.ledger.count == 0
