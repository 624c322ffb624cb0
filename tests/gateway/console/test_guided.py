"""A question without SQL: names and values are quoted, whatever they are, and what is made can be planned."""

from __future__ import annotations

import re
from fractions import Fraction
from types import SimpleNamespace

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from discreet.errors import InvalidArgument
from discreet.gateway.console.declared import listed_tables, written
from discreet.gateway.console.guided_sql import Choices, Filter, build_sql, literal
from discreet.gateway.console.pages.guided import _fields
from discreet.gateway.console.visit import Fields

from ..catalog.clinic_tables import CLINIC, HOSTILE, column, table
from .test_ask import BAD, ODD, alice, house, pages  # noqa: F401  # fixtures

VISITS = CLINIC["tables"][0]


def made(**given):
    return build_sql(Choices(table="visits", **given), VISITS)


def test_the_question_that_is_made():
    assert made() == "SELECT COUNT(*) AS n\nFROM visits"
    assert made(measure="people", by=["city"]) == (
        "SELECT city, COUNT(DISTINCT patient) AS people\nFROM visits\nGROUP BY city\nORDER BY city"
    )
    assert made(
        measure="quantile",
        of="cost",
        share="0.25",
        by=["day"],
        periods={"day": "year"},
        filters=[Filter("city", "not", "O'slo"), Filter("cost", "from", "1,5"), Filter("urgent", "is", "true")],
    ) == (
        "SELECT DATE_TRUNC('year', day) AS year, QUANTILE_CONT(cost, 0.25) AS quantile_cost\nFROM visits\n"
        "WHERE city <> 'O''slo'\n  AND cost >= 1.5\n  AND urgent = TRUE\nGROUP BY year\nORDER BY year"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"measure": "sum", "of": "city"},
        {"measure": "sum", "of": "nothing"},
        {"measure": "drop", "of": "cost"},
        {"by": ["nothing"]},
        {"by": ["day"], "periods": {"day": "year'); --"}},
        {"filters": [Filter("nothing", "is", "1")]},
        {"filters": [Filter("cost", "is", "1 OR 1=1")]},
        {"filters": [Filter("cost", "OR", "1")]},
        {"filters": [Filter("cost", "is", "nan")]},
        {"filters": [Filter("cost", "is", "1e999")]},
        {"filters": [Filter("day", "is", "today' --")]},
        {"filters": [Filter("seen_at", "is", "x")]},
        {"filters": [Filter("urgent", "is", "1")]},
        {"measure": "quantile", "of": "cost", "share": "1.5"},
    ],
)
def test_what_is_not_on_the_form_is_refused(given):
    with pytest.raises(InvalidArgument) as refused:
        made(**given)
    assert refused.value.code == "gateway-form"


def test_a_table_without_people_has_none_to_count():
    with pytest.raises(InvalidArgument):
        build_sql(Choices(table="cities", measure="people"), CLINIC["tables"][2])


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text), st.text(max_size=20))
def test_any_name_is_one_name_and_any_text_one_text(name, text):
    own = table(name, column(name))
    sql = build_sql(Choices(table=name, by=[name], filters=[Filter(name, "is", text)]), own)
    query = sqlglot.parse_one(sql, read="duckdb")
    assert [one.name for one in query.find_all(exp.Table)] == [name]
    assert query.args["where"].this.expression.this == text
    assert {one.name for one in query.args["where"].find_all(exp.Column)} == {name}


def test_hostile_names_are_written_in_quotes():
    for one in HOSTILE["tables"]:
        for name in (one["name"], *(own["name"] for own in one["columns"])):
            assert sqlglot.parse_one(f"SELECT {written(name)} FROM x", read="duckdb").expressions[0].name == name


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("integer", " +7 ", "7"),
        ("number", "-1e3", "-1e3"),
        ("date", "2024-02-29", "DATE '2024-02-29'"),
        ("timestamp", "2024-02-29T10:00", "TIMESTAMP '2024-02-29 10:00:00'"),
        ("text", "x'; DROP TABLE y; --", "'x''; DROP TABLE y; --'"),
        ("boolean", "false", "FALSE"),
    ],
)
def test_values_are_of_the_type_of_their_column(kind, text, expected):
    assert literal(kind, text) == expected


def test_long_lists_of_tables_fit_on_a_page():
    many = [table(f"table {place}", *(column(f"column {one}") for one in range(30))) for place in range(200)]
    shown, more = listed_tables(many, "table 150")
    assert shown[0].name == "table 150"
    assert shown[0].columns is not None
    assert shown[-1].columns is None
    assert len(shown) + more == 200


def test_the_form_leads_to_a_plan(alice):  # noqa: F811
    page = alice.get("/guided")
    assert page.status_code == 200
    assert "<img src=x" not in page.text
    form = alice.get("/guided", table=ODD[1:-1])
    assert "<img src=x" not in form.text
    assert BAD not in form.text
    assert len(form.content) < 60_000
    chosen = {"table": ODD[1:-1], "measure": "people", "by": "x\"'<b>", "not:x\"'<b>": "it's", "epsilon": "0.2"}
    gone = alice.get("/guided", **chosen, do="ask")
    assert gone.status_code == 303
    plan = alice.get(gone.headers["location"]).text
    assert "it&#39;&#39;s" in plan
    assert "ε = 0.2" in plan
    wrong = alice.get("/guided", table="visits", measure="sum", of="city", do="ask")
    assert wrong.status_code == 200
    assert "Choose a column of numbers" in wrong.text


def test_public_tables_are_grouped_by_what_everybody_knows(alice):  # noqa: F811
    assert '<input type="checkbox" name="by" value="city">' in alice.get("/guided", table="prices").text
    gone = alice.get("/guided", table="prices", measure="average", of="price", by="city", do="ask")
    assert "Free." in alice.get(gone.headers["location"]).text


def test_a_form_has_an_epsilon_and_says_which_columns_have_no_groups(alice):  # noqa: F811
    form = alice.get("/guided", table="visits").text
    assert float(re.search(r'name="epsilon"[^>]*value="([^"]*)"', form)[1]) > 0
    assert "Groups need declared choices, which cost has not" in form
    assert "Groups need" not in alice.get("/guided", table=ODD[1:-1]).text


def test_without_a_default_the_form_has_a_usual_epsilon():
    settings = SimpleNamespace(question_default=None, question_most=None)
    visit = SimpleNamespace(console=SimpleNamespace(settings=settings), query=Fields(b""))
    shown = _fields(visit, table("visits", column("note", "text")))
    assert (shown["epsilon"], shown["ungrouped"]) == ("0.1", ["note"])
    settings.question_most = Fraction(1, 20)
    assert _fields(visit, table("visits", column("note", "text")))["epsilon"] == "0.05"
