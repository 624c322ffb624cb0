"""What is free is decided by the text and the declarations: only constants make a query empty."""

from __future__ import annotations

import pytest

from discreet.sql.reading.free import is_empty, is_unread
from discreet.sql.reading.parse import parse_query

EMPTY = [
    "SELECT * FROM visits LIMIT 0",
    "SELECT * FROM visits LIMIT 0 OFFSET 3",
    "SELECT * FROM visits FETCH NEXT 0 ROWS ONLY",
    "SELECT COUNT(*) FROM visits LIMIT 0",
    "SELECT city FROM visits WHERE FALSE",
    "SELECT city FROM visits WHERE NOT TRUE",
    "SELECT city FROM visits WHERE 1 = 0",
    "SELECT city FROM visits WHERE 1 <> 1.0",
    "SELECT city FROM visits WHERE (-1 > 0) AND cost > 3",
    "SELECT city FROM visits WHERE NOT (cost > 3 OR 1 = 1)",
    "SELECT city, COUNT(*) FROM visits WHERE 1 = 0 GROUP BY city",
    "SELECT city, COUNT(*) FROM visits WHERE 1 = 0 GROUP BY ALL",
    "SELECT city, COUNT(*) FROM visits GROUP BY city HAVING 1 = 0",
    "SELECT COUNT(*) FROM visits HAVING FALSE",
    "SELECT * FROM (SELECT * FROM visits) AS t LIMIT 0",
    "SELECT * FROM (SELECT * FROM visits LIMIT 0) AS t",
    "SELECT (SELECT COUNT(*) FROM people) AS n FROM visits WHERE FALSE",
    "SELECT city FROM visits UNION ALL SELECT city FROM people LIMIT 0",
    "WITH t AS (SELECT * FROM visits) SELECT * FROM t LIMIT 0",
]
UNREAD = [
    "SELECT COUNT(*) FROM visits WHERE FALSE",
    "SELECT COUNT(*) FROM visits WHERE FALSE GROUP BY ()",
    "SELECT city, COUNT(*) FROM visits WHERE FALSE GROUP BY ROLLUP (city)",
    "SELECT SUM(COUNT(*)) OVER () FROM visits WHERE FALSE",
    "SELECT 1 FROM visits WHERE FALSE HAVING COUNT(*) = 0",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 0) AS t",
    "SELECT * FROM cities LEFT JOIN (SELECT * FROM visits WHERE FALSE) AS v USING (city)",
    "WITH t AS (SELECT * FROM visits WHERE FALSE) SELECT COUNT(*) FROM t AS a, t AS b",
    "WITH t AS (SELECT * FROM visits) SELECT COUNT(*) FROM t WHERE FALSE",
    "SELECT COUNT(*), (SELECT COUNT(*) FROM cities) FROM visits WHERE FALSE",
]
READ = [
    "SELECT * FROM visits",
    "SELECT * FROM cities LIMIT 0",  # public tables only: answered where these are
    "SELECT * FROM visits LIMIT 1",
    "SELECT * FROM visits LIMIT '0'",
    "SELECT * FROM visits LIMIT 0 + 1",
    "SELECT * FROM visits OFFSET 0",
    "SELECT city FROM visits WHERE cost > cost",
    "SELECT city FROM visits WHERE cost = 0",
    "SELECT city FROM visits WHERE 1 = 0 OR cost > 3",
    "SELECT city FROM visits WHERE 1 = 1",
    "SELECT city FROM visits WHERE NULL",
    "SELECT city FROM visits WHERE city = 'FALSE'",
    "SELECT city FROM visits WHERE (SELECT COUNT(*) FROM people) < 0",
    "SELECT COUNT(*) FROM visits WHERE city IN (SELECT city FROM people LIMIT 0)",
    "SELECT COUNT(*) FROM visits WHERE city NOT IN (SELECT city FROM people WHERE FALSE)",
    "SELECT COUNT(*), (SELECT COUNT(*) FROM people) FROM visits WHERE FALSE",
    "SELECT COUNT(*) FROM visits LEFT JOIN (SELECT * FROM people WHERE FALSE) AS p USING (person_id)",
    "SELECT COUNT(*) FROM visits JOIN people ON FALSE",
    "SELECT city FROM visits WHERE FALSE UNION ALL SELECT city FROM people",
    "(SELECT city FROM visits LIMIT 0) UNION ALL SELECT city FROM people",
    "WITH t AS (SELECT * FROM visits LIMIT 0) SELECT COUNT(*) FROM t, people",
    "WITH t AS (SELECT * FROM visits), u AS (SELECT * FROM t) SELECT COUNT(*) FROM u, (SELECT 1 FROM t WHERE FALSE)",
    "WITH cities AS (SELECT * FROM visits) SELECT COUNT(*) FROM cities, (SELECT 1 FROM visits LIMIT 0) AS t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t, visits LIMIT 0",
    "SELECT COUNT(*) FROM main.cities, (SELECT * FROM visits LIMIT 0) AS t",
    "SELECT COUNT(*) FROM read_csv('cities'), (SELECT * FROM visits LIMIT 0) AS t",
]


def found(clinic, text: str) -> tuple[bool, bool]:
    query = parse_query(text).query
    return is_unread(query, clinic.database.schema), is_empty(query)


@pytest.mark.parametrize("text", EMPTY)
def test_the_text_says_that_there_is_no_row(clinic, text):
    assert found(clinic, text) == (True, True)


@pytest.mark.parametrize("text", UNREAD)
def test_no_row_can_change_it_although_it_may_have_rows(clinic, text):
    assert found(clinic, text) == (True, False)


@pytest.mark.parametrize("text", READ)
def test_rows_may_change_it(clinic, text):
    assert not found(clinic, text)[0]


def test_a_condition_that_is_nested_too_deeply_is_left_to_the_reader(clinic):
    query = parse_query(f"SELECT city FROM visits WHERE {' OR '.join(['cost > 1'] * 2000)}").query
    assert not is_unread(query, clinic.database.schema)
