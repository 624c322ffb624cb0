"""Everything that must be refused: by which error, with which code, what underlined; and no clause is dropped.

A refusal spends nothing, touches no data and quotes nothing but the question itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import discreet as dp
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import NotAllowed, QueryError

from ...refusing import refuses

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sql"
REFUSED = [json.loads(line) for line in (FIXTURES / "refusals.jsonl").read_text().splitlines()]
"""The text, the error, its code, and the part that is underlined ("" where its place is not known)."""
TOO_MUCH = {
    "parentheses": ("SELECT COUNT(*) FROM visits WHERE " + "(" * 400 + "cost > 1" + ")" * 400, "sql-too-complex"),
    "negations": ("SELECT COUNT(*) FROM visits WHERE " + "NOT " * 2000 + "urgent", "sql-too-complex"),
    "queries": ("SELECT COUNT(*) FROM " + "(SELECT * FROM " * 200 + "visits" + ")" * 200, "sql-too-complex"),
    "calls": ("SELECT SUM(" + "abs(" * 500 + "cost" + ")" * 501 + " FROM visits", "sql-too-complex"),
    "cases": ("SELECT SUM(" + "CASE WHEN urgent THEN " * 300 + "1" + " END" * 300 + ") FROM visits", "sql-too-complex"),
    "truncations": ("SELECT SUM(" + "trunc(" * 30 + "cost" + ")" * 31 + " FROM visits", "sql-too-complex"),
    "characters": ("SELECT COUNT(*) FROM visits WHERE cost IN (" + ", ".join("1" * 70_000) + ")", "sql-too-long"),
    "spaces": ("SELECT COUNT(*) FROM visits" + " " * 200_000, "sql-too-long"),
    "digits": ("SELECT city, COUNT(*) FROM visits GROUP BY " + "1" * 5_000, "sql-position"),
}


def underlined(message: str) -> str:
    """What the last line of a message points at."""
    lines = message.split("\n")
    if len(lines) < 3 or set(lines[-1].strip()) != {"^"}:
        return ""
    return lines[-2][len(lines[-1]) - len(lines[-1].lstrip()) : len(lines[-1])]


@pytest.fixture
def untouched(clinic, monkeypatch):
    """No text may reach an engine, and nothing be charged."""

    def never(self, *given):
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(DuckDB, "_run", never)
    monkeypatch.setattr(DuckDB, "table", never)
    before = clinic.database.ledger.spent
    yield clinic.database
    assert clinic.database.ledger.spent == before


@pytest.mark.parametrize(("text", "error", "code", "part"), REFUSED, ids=[text[:60] for text, *_ in REFUSED])
def test_refused(untouched, text, error, code, part):
    with pytest.raises(dp.DiscreetError) as caught:
        untouched.sql(text, epsilon=1)
    assert (type(caught.value).__name__, caught.value.code) == (error, code)
    assert underlined(str(caught.value)) == part
    assert caught.value.__cause__ is None


def test_there_are_many_refusals():
    assert len(REFUSED) >= 120
    assert len({text for text, *_ in REFUSED}) == len(REFUSED)


@pytest.mark.parametrize("name", TOO_MUCH)
def test_too_much_is_refused(untouched, name):
    text, code = TOO_MUCH[name]
    with refuses(QueryError, code):
        untouched.sql(text, epsilon=1)


@pytest.mark.parametrize("text", [None, 5, b"SELECT COUNT(*) FROM visits", ["SELECT 1"], {}])
def test_only_text_is_a_question(untouched, text):
    with refuses(QueryError, "sql-not-a-query"):
        untouched.sql(text, epsilon=1)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"epsilon": 1, "within": {"n": 5}}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": float("nan")},
     {"epsilon": float("inf")}, {"epsilon": "1"}, {"epsilon": True}, {"epsilon": 1, "delta": 1},
     {"epsilon": 1, "delta": -1}, {"within": {}}, {"within": {"m": 5}}, {"within": {"n": 0}},
     {"within": {"n": float("nan")}}, {"epsilon": 1, "weights": {"m": 1}}, {"epsilon": 1, "weights": {"n": 0}}],
    ids=str,
)  # fmt: skip
def test_arguments_are_checked_before_data_is_read(untouched, arguments):
    with pytest.raises(dp.InvalidArgument):
        untouched.sql("SELECT COUNT(*) AS n FROM visits", **arguments)


# --- no clause is dropped -----------------------------------------------------------------------------

OPTIONS = [
    "SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 1000",
    "SELECT COUNT(*) AS n FROM visits HAVING MAX(cost) > 1000000",
    "SELECT COUNT(*) FILTER (urgent) AS n FROM visits",
    "SELECT COUNT(*) FILTER (WHERE urgent) FILTER (WHERE floor = 1) AS n FROM visits",
    "SELECT SUM(DISTINCT floor) AS n FROM visits",
    "SELECT AVG(DISTINCT floor) AS n FROM visits",
    "SELECT SUM(ALL floor) AS n FROM visits",
    "SELECT COUNT(ALL floor) AS n FROM visits",
    "SELECT SUM(floor ORDER BY cost) AS n FROM visits",
    "SELECT COUNT(DISTINCT floor ORDER BY floor) AS n FROM visits",
    "SELECT SUM(floor IGNORE NULLS) AS n FROM visits",
    "SELECT SUM(floor RESPECT NULLS) AS n FROM visits",
    "SELECT SUM(floor) IGNORE NULLS AS n FROM visits",
    "SELECT SUM(floor LIMIT 5) AS n FROM visits",
    "SELECT SUM(floor HAVING MAX cost) AS n FROM visits",
    "SELECT COUNT(floor, cost) AS n FROM visits",
    "SELECT COUNT(DISTINCT (floor, urgent)) AS n FROM visits",
    "SELECT COUNT(visits.*) AS n FROM visits",
    "SELECT COUNT(visits) AS n FROM visits",
    "SELECT QUANTILE_CONT(floor, 0.5 ORDER BY floor DESC) AS n FROM visits",
    "SELECT PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY floor DESC NULLS FIRST) AS n FROM visits",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY n DESC NULLS FIRST",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY floor USING >",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY ALL",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY ALL DESC",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY city COLLATE NOCASE",
    "SELECT city COLLATE NOCASE AS c, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY ALL",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY ROLLUP (floor)",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY CUBE (floor)",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor WITH ROLLUP",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor WITH TOTALS",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((floor), ())",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY (floor)",
    "SELECT floor, city, COUNT(*) AS n FROM visits GROUP BY (floor, city)",
    "SELECT GROUPING(floor) AS g, COUNT(*) AS n FROM visits GROUP BY floor",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY floor FETCH FIRST 2 ROWS ONLY",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY floor OFFSET 2 ROWS",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY floor LIMIT ALL",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor QUALIFY row_number() OVER () = 1",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor WINDOW w AS (ORDER BY floor)",
    "SELECT COUNT(*) AS n FROM visits USING SAMPLE 1",
    "SELECT COUNT(*) AS n FROM visits USING SAMPLE 10 PERCENT (bernoulli, 5)",
    "SELECT COUNT(*) AS n FROM visits TABLESAMPLE BERNOULLI (10) REPEATABLE (5)",
    "SELECT COUNT(*) AS n FROM visits WITH ORDINALITY",
    "SELECT COUNT(*) AS n FROM ONLY visits",
    "SELECT COUNT(*) AS n FROM visits FINAL",
    "SELECT COUNT(*) AS n FROM visits AS v (a, b, c)",
    "SELECT COUNT(*) AS n FROM visits FOR SHARE",
    "SELECT COUNT(*) AS n FROM visits NATURAL JOIN cities",
    "SELECT COUNT(*) AS n FROM visits v ASOF JOIN people p ON v.person_id = p.person_id AND v.day >= p.born",
    "SELECT COUNT(*) AS n FROM visits SEMI JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits ANTI JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits LEFT SEMI JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits LEFT ANTI JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits CROSS JOIN cities",
    "SELECT COUNT(*) AS n FROM visits FULL JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits RIGHT JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits GLOBAL JOIN cities USING (city)",
    "SELECT COUNT(*) AS n FROM visits STRAIGHT_JOIN cities ON visits.city = cities.city",
    "SELECT COUNT(*) AS n FROM (visits JOIN cities USING (city))",
    "SELECT COUNT(*) AS n FROM (visits)",
    "SELECT COUNT(*) AS n FROM visits, cities WHERE visits.city = cities.city",
    "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'Note!_1' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM visits WHERE note ILIKE 'NOTE%' ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM visits WHERE note NOT SIMILAR TO 'N.*'",
    "SELECT COUNT(*) AS n FROM visits WHERE cost BETWEEN SYMMETRIC 300 AND 100",
    "SELECT COUNT(*) AS n FROM visits WHERE floor IS DISTINCT FROM 3",
    "SELECT COUNT(*) AS n FROM visits WHERE urgent IS UNKNOWN",
    "SELECT COUNT(*) AS n FROM visits WHERE urgent ISNULL",
    "SELECT COUNT(*) AS n FROM visits WHERE cost NOTNULL",
    "SELECT COUNT(*) AS n FROM visits WHERE (floor, urgent) IN ((1, TRUE))",
    "SELECT COUNT(*) AS n FROM visits WHERE seen_at AT TIME ZONE 'UTC' > TIMESTAMPTZ '2024-06-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE trim(BOTH ' ' FROM note) = 'Note 1'",
    "SELECT COUNT(*) AS n FROM visits WHERE trim(note, 'N') = 'ote 1'",
    "SELECT COUNT(*) AS n FROM visits WHERE ltrim(note) = 'Note 1'",
    "SELECT COUNT(*) AS n FROM visits WHERE substring(note FROM 1 FOR 4) = 'Note'",
    "SELECT COUNT(*) AS n FROM visits WHERE substring(note, -1) = '1'",
    "SELECT COUNT(*) AS n FROM visits WHERE ceil(cost, 1) > 5",
    "SELECT COUNT(*) AS n FROM visits WHERE round(cost, 1) > 500",
    "SELECT COUNT(*) AS n FROM visits WHERE round_even(cost, 0) > 500",
    "SELECT COUNT(*) AS n FROM visits WHERE log(cost) > 2",
    "SELECT COUNT(*) AS n FROM visits WHERE log(2, cost) > 2",
    "SELECT COUNT(*) AS n FROM visits WHERE xor(urgent, floor = 1)",
    "SELECT COUNT(*) AS n FROM visits WHERE strlen(note) = 6",
    "SELECT COUNT(*) AS n FROM visits WHERE concat_ws('-', city, reason) = 'Haifa-flu'",
    "SELECT COUNT(*) AS n FROM visits WHERE date_trunc('decade', day) = DATE '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE isodow(day) = 7",
    "SELECT COUNT(*) AS n FROM visits WHERE weekday(day) = 1",
    "SELECT COUNT(*) AS n FROM visits WHERE dayofyear(day) = 7",
    "SELECT COUNT(*) AS n FROM visits WHERE weekofyear(day) = 7",
    "SELECT COUNT(*) AS n FROM visits WHERE yearweek(day) = 202407",
    "SELECT COUNT(*) AS n FROM visits WHERE day + 3 > DATE '2024-06-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE floor // 2 = 1",
    "SELECT COUNT(*) AS n FROM visits WHERE -7 // floor = -3",
    "SELECT COUNT(*) AS n FROM visits WHERE -minutes % 7 = -3",
    "SELECT COUNT(*) AS n FROM visits WHERE floor / 2 = 1.5",
    "SELECT COUNT(*) AS n FROM visits WHERE 2 ^ 3 ^ floor > 100",
    "SELECT COUNT(*) AS n FROM visits WHERE -floor ^ 2 = 9",
    "SELECT COUNT(*) AS n FROM visits WHERE NOT urgent = TRUE",
    "SELECT COUNT(*) AS n FROM visits WHERE urgent OR floor = 1 AND cost > 500",
    "SELECT COUNT(*) AS n FROM visits WHERE city || reason = 'Haifaflu'",
    "SELECT COUNT(*) AS n FROM visits WHERE minutes::VARCHAR = '60'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(cost AS VARCHAR) = '60.0'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(urgent AS VARCHAR) = 'true'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(day AS VARCHAR) = '2024-02-05'",
    "SELECT COUNT(*) AS n FROM visits WHERE day = '2024-02-05'",
    "SELECT COUNT(*) AS n FROM visits WHERE 100 <= cost AND cost <= 200.0",
    "SELECT COUNT(*) AS n FROM visits WHERE cost == 250",
    "SELECT COUNT(*) AS n FROM visits PREWHERE urgent WHERE floor = 1",
    "WITH v AS NOT MATERIALIZED (SELECT * FROM visits WHERE urgent) SELECT COUNT(*) AS n FROM v",
    "WITH v AS (SELECT * FROM visits WHERE urgent ORDER BY cost LIMIT 5) SELECT COUNT(*) AS n FROM v",
    "WITH v AS (FROM visits) SELECT COUNT(*) AS n FROM v",
    "WITH v AS (SELECT ALL * FROM visits) SELECT COUNT(*) AS n FROM v",
    "SELECT ALL COUNT(*) AS n FROM visits",
    "SELECT TOP 1 floor, COUNT(*) AS n FROM visits GROUP BY floor",
    "SELECT STRAIGHT_JOIN COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) n FROM visits",
    "SELECT n: COUNT(*) FROM visits",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.urgent AND V.floor = 1",
    "SELECT COUNT(*) AS n FROM v: visits",
    "SELECT COUNT(*) AS n FROM visits START WITH urgent CONNECT BY PRIOR floor = floor",
    "SELECT COUNT(*) AS n FROM visits SETTINGS max_threads = 1",
    "SELECT COUNT(*) AS n FROM visits FORMAT JSON",
    "SELECT COUNT(*) AS n FROM visits CLUSTER BY city",
    "SELECT COUNT(*) AS n FROM visits SORT BY city",
    "SELECT COUNT(*) AS n FROM visits LATERAL VIEW explode(x) t AS y",
    "SELECT COUNT(*) + 1 AS n FROM visits WHERE cost > 1_00",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 0x64",
    "SELECT COUNT(*) AS n FROM visits WHERE note = E'Note\\x201'",
    "SELECT COUNT(*) AS n FROM visits WHERE note = $$Note 1$$",
    "SELECT CASE WHEN city = 'Haifa' THEN 'H' ELSE 'o' END AS c, COUNT(*) AS n FROM visits GROUP BY c",
    "SELECT floor AS city, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY city",
    "SELECT COUNT(*) AS floor, SUM(floor) AS n FROM visits",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor HAVING floor > 2 ORDER BY -floor",
    "SELECT COUNT(*) AS n FROM visits ORDER BY 1, 1 DESC",
    "SELECT city = 'Haifa' AS h, COUNT(*) AS n FROM visits GROUP BY city = 'Haifa'",
    "SELECT city = 'haifa' AS h, COUNT(*) AS n FROM visits GROUP BY city = 'Haifa'",
    "SELECT COUNT(*) AS n, SUM(cost) IS NULL AS m FROM visits",
    "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor ORDER BY n % 10, floor DESC",
    "SELECT SUM(cost) // 7 AS a, COUNT(*) % 7 AS b, -COUNT(*) AS c, ABS(SUM(discount)) AS d FROM visits",
    "SELECT LEAST(COUNT(*), 5) AS a, GREATEST(COUNT(*), 5) AS b FROM visits",
    "SELECT NULLIF(COUNT(*), 360) AS a, COALESCE(NULLIF(COUNT(*), 360), -1) AS b FROM visits",
    "SELECT COUNT(*) > 5 AS a, COUNT(*) BETWEEN 1 AND 5 AS b, COUNT(*) IN (360) AS c FROM visits",
    "SELECT CAST(AVG(cost) AS INTEGER) AS a, CAST(COUNT(*) AS VARCHAR) AS b FROM visits",
]


@pytest.mark.some_quick(37)
@pytest.mark.parametrize("text", OPTIONS)
def test_no_clause_is_dropped(clinic, text):
    """Each is refused, or answered as plain DuckDB answers it; what DuckDB does not take is refused."""
    try:
        clinic.private_rows(text)
    except (NotAllowed, QueryError):
        return
    try:
        clinic.true_rows(text)
    except duckdb.Error:
        pytest.fail("answered, though DuckDB does not know what it means")
    clinic.check_same(text, ordered="ORDER BY" in text)
