"""Aggregates of each person's own rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.sql.measuring.measure import read_measures

from ..connecting import connected, rows_of


def test_a_person_s_sum_does_not_depend_on_where_others_rows_lie():
    """Enough rows for several threads; floating point gives other sums in other orders."""
    people = np.repeat(np.arange(60_000), 3)
    values = np.tile([1e15, 0.01, -1e15], 60_000)
    before = pa.table({"pid": people, "x": values})
    first = pa.table({"pid": np.full(50_000, -1), "x": np.zeros(50_000)})
    counts = set()
    for data in (before, pa.concat_tables([first, before]), before):
        database = connected({"v": (data, {"columns": {"x": {"between": [-1, 1]}}})})
        plan = database.plan(
            "SELECT COUNT(*) AS n FROM (SELECT pid, SUM(x) AS s FROM v WHERE pid >= 0 GROUP BY pid) u WHERE s > 0",
            epsilon=1,
        )
        counts.add(int(read_measures(plan.question, database.engine, plan.bounds, plan.groups)[0][0]))
    assert len(counts) == 1


VISITS = pa.table({"pid": [1, 1, 1, 2, 2, 3], "n": [1, 2, 3, 1, 2, 1], "k": ["a", "b", "a", "a", "a", "b"]})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS c FROM (SELECT p.pid, b.pid AS o, COUNT(*) AS m FROM v p LEFT JOIN v b "
        "ON p.pid = b.pid AND p.n < b.n GROUP BY p.pid, b.pid) u",
        "SELECT COUNT(*) AS c, SUM(m) AS s FROM (SELECT pid, k, COUNT(*) AS m FROM v GROUP BY 1, 2) u",
        "SELECT COUNT(*) AS c FROM (SELECT pid, COUNT(*) AS m, k FROM v GROUP BY pid, 3) u WHERE m > 1",
    ],
)
def test_rows_of_each_person_are_those_of_plain_duckdb(text):
    plain = duckdb.connect()
    plain.register("v", VISITS)
    assert rows_of(connected({"v": (VISITS, {})}), text) == plain.execute(text).fetchall()


def test_a_person_with_more_rows_than_may_be_is_in_the_last_group():
    data = pa.table({"pid": [1] * 30 + [2] * 3})
    text = "SELECT m, COUNT(*) AS c FROM (SELECT pid, COUNT(*) AS m FROM v GROUP BY pid) u GROUP BY m HAVING c > 0"
    assert rows_of(connected({"v": (data, {})}), text) == [(3, 1), (20, 1)]


@pytest.mark.parametrize("aggregate", ["SUM(*)", "MAX(*)", "AVG(*)", "COLUMNS(*)"])
def test_only_count_takes_a_star(aggregate):
    database = connected({"v": (VISITS, {})})
    with pytest.raises(dp.DiscreetError):
        database.sql(f"SELECT COUNT(*) AS c FROM (SELECT pid, {aggregate} AS m FROM v GROUP BY pid) u", epsilon=1)
