"""Statements over public tables: exact, and nothing is charged, drawn or read of anyone."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.door import through
from discreet.guarantees.guarantee import NoLoss
from discreet.sql.reading import combined as reading

from ...refusing import refuses

SIZES = "SELECT region, SUM(population) AS people FROM cities GROUP BY region ORDER BY people"


def test_the_answer_is_exact_and_free(clinic, capture, monkeypatch):
    database = clinic.database
    before = len(database.ledger.entries())
    with capture(monkeypatch) as seen:
        answer = database.sql(SIZES)
    assert answer.table.to_pylist() == [{"region": "center", "people": 290_000}, {"region": "north", "people": 330_000}]
    assert not any(name in text for text in seen for name in ("visits", "people_", "prescriptions", "results"))
    assert len(database.ledger.entries()) == before
    assert isinstance(answer.guarantee, NoLoss)
    assert not answer.not_private
    assert not answer.replayed
    shown = answer.as_json()
    assert shown["guarantee"] == {"epsilon": 0, "delta": 0}
    assert shown["errors"] == [[None, None]] * 2
    assert shown["receipt"] is None
    for text in (str(answer), repr(answer), answer._repr_html_()):
        assert "public tables only: exact, nothing was spent" in text


def test_it_is_explained(clinic):
    explained = clinic.database.explain(SIZES)
    assert explained.data == {"questions": []}
    assert "nothing is charged" in explained


def test_there_is_nothing_to_plan(clinic):
    with refuses(dp.NotAllowed, "sql-public-only"):
        clinic.database.plan(SIZES, epsilon=1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM cities, people", "sql-join-condition"),
        (
            "SELECT * FROM (WITH visits AS (SELECT * FROM cities) SELECT * FROM visits) a JOIN visits b USING (city)",
            "sql-not-aggregated",
        ),
        ("SELECT city FROM cities UNION ALL SELECT note FROM visits", "sql-union"),
        ("SELECT * FROM cities, read_csv('/etc/passwd')", "sql-source"),
        ("SELECT * FROM cities, duckdb_settings()", "sql-source"),
        ("SELECT * FROM cities, information_schema.tables", "sql-source"),
        ("SELECT * FROM main.cities", "sql-source"),
        ("SELECT * FROM '/etc/passwd'", "sql-unknown-table"),
        ("SELECT city, lpad(city, 1000000000, 'x') AS c FROM cities", "sql-function"),
        ("SELECT nothing FROM cities", "sql-unknown-column"),
        ("SELECT city FROM cities WHERE EXISTS (SELECT 1 FROM visits)", "sql-subquery"),
    ],
)
def test_what_reads_more_is_refused_before_it_runs(clinic, monkeypatch, text, code):
    monkeypatch.setattr("discreet.sql.running.combined._run", None)
    with refuses((dp.NotAllowed, dp.QueryError), code):
        clinic.database.sql(text, epsilon=1)


def test_mutant_private_tables_count_as_public(clinic, monkeypatch):
    """The statement still runs where only public tables are."""
    monkeypatch.setattr(reading._Reader, "_kind_of_source", lambda *given: "public")
    monkeypatch.setattr(reading._Reader, "check", lambda *given: ())
    with pytest.raises(dp.DiscreetError):
        clinic.database.sql("SELECT person_id FROM visits", epsilon=1)


def test_no_ledger_takes_it(clinic):
    with pytest.raises(dp.DiscreetError):
        through(lambda: 1, dp.Laplace(scale=1), NoLoss(), ledger=clinic.database.ledger)
