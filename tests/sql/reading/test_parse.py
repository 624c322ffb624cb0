"""The parser ends, however many joins a question has."""

from __future__ import annotations

import pytest

from discreet.errors import QueryError
from discreet.sql.reading.parse import parse_query
from fuzz.oracle import within

from ...refusing import refuses


@pytest.mark.parametrize("join", [" JOIN visits", " LEFT JOIN visits", " JOIN (SELECT DISTINCT ON (a) b FROM c)"])
def test_many_joins_without_a_condition_do_not_keep_the_parser_busy_for_days(join: str) -> None:
    with within(5), refuses(QueryError, "sql-too-complex"):
        parse_query("SELECT COUNT(*) FROM visits" + join * 40)


def test_many_joins_with_conditions_are_read() -> None:
    nested = " JOIN cities USING (city) JOIN (SELECT a FROM b JOIN c ON b.a = c.a) AS q ON q.a = visits.a"
    _, query = parse_query("SELECT COUNT(*) FROM visits" + nested * 20)
    assert len(query.args["joins"]) == 40
