"""Refusals that teach: of every code, what is written is refused with it, and what to write instead runs."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.error_codes.sql import SQL
from discreet.sql.reading.instead import INSTEAD

QUERY = re.compile(r"`(\(?(?:SELECT|WITH|DROP|EXPLAIN)\b[^`…]*)`")
ELSEWHERE = {
    "sql-too-long": "a text of 100,000 characters",
    "sql-too-complex": "a text that is nested deeply",
    "sql-where-argument": "an argument of table methods",
    "sql-rows-only": "an argument of `fit`",
    "sql-key-type": "a column of another type",
    "sql-asked-first": "an argument of `sql`",
    "sql-join-frequency": "rows are protected",
    "sql-key-person": "a unit is one person in one month",
    "sql-join-open-keys": "rows are protected",
    "sql-join-quantile": "rows are protected",
    "sql-join-several-rows": "several rows are protected at once",
    "sql-several-rows-keys": "several rows are protected at once",
    "sql-not-computable": "found by the engine",
    "sql-too-many-groups": "three large keys",
    "sql-join-too-many": "several joins",
    "sql-public-only": "an argument of `plan`",
    "too-few-people": "found while an answer is computed",
    "values-too-large": "found while an answer is computed",
}
"""Codes whose case is no query over the clinic."""
PAIRS = {code: row for code, row in SQL.items() if code not in ELSEWHERE}
CALLS = {
    "~": "note ~ 'a'",
    "similar to": "note SIMILAR TO 'a'",
    "glob": "note GLOB 'a*'",
    "current_date": "day = current_date",
    "current_timestamp": "seen_at < current_timestamp",
    "today": "day = today()",
    "now": "seen_at < now()",
    "make_date": "day = make_date(2024, 1, 1)",
    "position": "POSITION('a' IN note) > 1",
    "md5": "md5(note) = 'x'",
    "left": "left(note, 2) = 'ab'",
    "right": "right(note, 2) = 'ab'",
    "replace": "replace(note, 'a', 'b') = 'b'",
    "regexp_replace": "regexp_replace(note, 'a', 'b') = 'b'",
    "time_bucket": "time_bucket(INTERVAL 1 MONTH, day) = DATE '2024-01-01'",
}
"""How functions are written that do not take a column and a text."""
DAYS = ("date_format", "to_char", "last_day", "weekday", "epoch", "age")


def call_of(name: str) -> str:
    """A condition in which the function is used."""
    if name in CALLS:
        return CALLS[name]
    given = "day" if name in DAYS else "note, 'a'"
    return f"{name}({given}) IS NOT NULL"


def answered(database: Any, text: str) -> Any:
    return database.plan(text, epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    ("wrong", "code", "said", "instead"),
    [
        (
            "SELECT city, COUNT(*) FROM visits WHERE COUNT(*) > 10 GROUP BY city",
            "sql-misplaced-aggregate",
            "HAVING COUNT(*) > 10",
            "SELECT city, COUNT(*) FROM visits GROUP BY city HAVING COUNT(*) > 10",
        ),
        (
            "SELECT AVG(COUNT(*)) FROM visits",
            "sql-misplaced-aggregate",
            "SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n … GROUP BY city)",
            "SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)",
        ),
        (
            "SELECT MAX(note) FROM visits",
            "sql-not-a-number",
            "COUNT(DISTINCT note), or COUNT(*) with GROUP BY note. If it holds numbers: cast it to DOUBLE",
            "SELECT COUNT(DISTINCT note), MAX(CAST(note AS DOUBLE)) FROM visits",
        ),
        (
            "SELECT SUM(city) FROM visits",
            "sql-not-a-number",
            "COUNT(DISTINCT city), or COUNT(*) with GROUP BY city.\n",
            "SELECT COUNT(DISTINCT city) FROM visits",
        ),
        (
            "SELECT AVG(CAST(cost AS DECIMAL(9, 2))) FROM visits",
            "sql-cast",
            "CAST(x AS DOUBLE), or ROUND(x, 2)",
            "SELECT AVG(CAST(cost AS DOUBLE)), AVG(ROUND(cost, 2)) FROM visits",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE cost BETWEEN '30' AND '40'",
            "sql-types",
            "Write 30 without quotes.",
            "SELECT COUNT(*) FROM visits WHERE cost BETWEEN 30 AND 40",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE note IN (30)",
            "sql-types",
            "Write '30' in quotes.",
            "SELECT COUNT(*) FROM visits WHERE note IN ('30')",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE note > 30",
            "sql-types",
            "Cast one of them.",
            "SELECT COUNT(*) FROM visits WHERE CAST(note AS INTEGER) > 30",
        ),
    ],
)
def test_the_way_out_of_a_refusal_is_one(clinic: Any, wrong: str, code: str, said: str, instead: str) -> None:
    with pytest.raises(dp.DiscreetError) as refused:
        answered(clinic.database, wrong)
    assert refused.value.code == code
    assert said in str(refused.value)
    clinic.database.explain(instead, epsilon=1, delta=1e-6)


def test_no_cast_of_the_person_is_suggested() -> None:
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 1},
        "unit": {"person": "rider"},
        "tables": {"rides": {"source": pa.table({"rider": ["R1", "R2"]})}},
    }
    with pytest.raises(dp.DiscreetError) as refused:
        answered(dp.connect(policy), "SELECT MAX(rider) FROM rides")
    assert refused.value.code == "sql-not-a-number"
    assert "Write COUNT(DISTINCT rider).\n" in str(refused.value)


@pytest.mark.some_quick(26)
@pytest.mark.parametrize("code", PAIRS)
def test_what_is_written_is_refused_and_what_to_write_instead_runs(clinic: Any, code: str) -> None:
    written, instead = (QUERY.findall(part) for part in (PAIRS[code].written, PAIRS[code].instead))
    if code in ("sql-not-a-query",):
        written = ["visits", "", "  "]
    assert written, "no query in the table shows what is refused"
    assert instead, "no query in the table can be run instead"
    for text in written:
        with pytest.raises(dp.DiscreetError) as refused:
            answered(clinic.database, text)
        assert refused.value.code == code
    for text in instead:
        assert answered(clinic.database, text).question.outputs


def test_every_code_is_tried_or_says_why_not() -> None:
    assert set(ELSEWHERE) <= set(SQL)
    assert len(PAIRS) > 45


@pytest.mark.parametrize("name", INSTEAD)
def test_a_function_is_named_as_typed_and_its_replacement_runs(clinic: Any, name: str) -> None:
    asked = f"SELECT COUNT(*) FROM visits WHERE {call_of(name)}"
    with pytest.raises(dp.NotAllowed) as refused:
        answered(clinic.database, asked)
    first = str(refused.value).split("\n")[0]
    assert refused.value.code == "sql-function"
    assert first.lower().startswith(f"{name} is not supported.")
    shown = re.fullmatch(r".* is not supported\. Write (.*)\.", first)
    assert shown is not None, first
    answered(clinic.database, f"SELECT COUNT(*) FROM visits WHERE ({shown[1]}) IS NOT NULL")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("SELECT COUNT(*) FROM visits WHERE StrfTime(day, '%c %Z') = '2024'", "StrfTime"),
        ("SELECT COUNT(*) FROM visits WHERE lower(strftime(date_trunc('month', day), '%c %Z')) = '2024'", "strftime"),
        ("SELECT COUNT(*) FROM visits WHERE list_sum(cost) > 3", "list_sum"),
        ("SELECT COUNT(*) FROM visits WHERE md5(upper(note)) = 'x'", "md5"),
        ("SELECT COUNT(*) FROM visits WHERE epoch_ms(seen_at) > 3", "epoch_ms"),
        ("SELECT string_agg(city, ',') FROM visits", "string_agg"),
        ("SELECT Arg_Max(city, cost) FROM visits", "Arg_Max"),
    ],
)
def test_the_name_is_the_one_that_was_typed(clinic: Any, text: str, typed: str) -> None:
    with pytest.raises(dp.NotAllowed) as refused:
        answered(clinic.database, text)
    first = str(refused.value).split("\n")[0]
    assert re.search(rf"(^|\s){typed}\b", first), first
