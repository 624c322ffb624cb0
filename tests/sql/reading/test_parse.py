"""The parser ends, however many joins a question has."""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
import pytest

import discreet as dp
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


NESTED = {
    "whole quotients": ("{} // 1", 100, None),
    "between": ("(CASE WHEN {} BETWEEN 0 AND 1 THEN 1 ELSE 0 END)", 30, "sql-too-complex"),
    "a tested value": ("(CASE {} WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 0 END)", 30, "sql-too-complex"),
    "truncated": ("TRUNC({})", 30, "sql-too-complex"),
}


@pytest.mark.parametrize(("outer", "times", "code"), NESTED.values(), ids=NESTED)
def test_what_is_nested_is_translated_once(outer: str, times: int, code: str | None) -> None:
    """Twice at each level, 100 of them would take longer than the universe is old."""
    value = "cost"
    for _ in range(times):
        value = outer.format(value)
    rows = pa.table({"pid": [1], "cost": [2]})
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 9},
        "unit": {"person": "pid"},
        "tables": {"t": {"source": rows}},
    }
    with within(20), nullcontext() if code is None else refuses(QueryError, code):
        dp.connect(policy).explain(f"SELECT SUM({value}) AS s FROM t", epsilon=1)
