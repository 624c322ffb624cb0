"""A condition of a table's method is one condition: read by itself, before anything is charged."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import NotAllowed, QueryError
from discreet.sql.reading import parse

from ...refusing import refuses

DATA = pa.table({"pid": list(range(20)), "x": [float(n) for n in range(20)], "s": ["a", "b"] * 10})
BAD = [
    "TRUE LIMIT 0",
    "TRUE LIMIT 5 OFFSET 2",
    "x > 1 GROUP BY s",
    "x > 1 HAVING COUNT(*) > 5",
    "x > 1 ORDER BY x",
    "x > 1 UNION ALL SELECT 1 FROM data",
    "x > 1; SELECT 1",
    "x > 1;",
    "x > 1) OR (TRUE",
    "x > 1 QUALIFY x > 1",
    "x > 1 WINDOW w AS (ORDER BY x)",
    "x > 1, s = 'a'",
    "x > 1 AS y",
    "x y",
    "SELECT 1",
    "*",
    "x",
    "1",
    "",
    "  ",
    "-- nothing",
    "/* nothing */",
    "/* x",
    "s = 'a",
    "x > 1 AND",
    "EXISTS (SELECT 1 FROM data)",
    "x IN (SELECT x FROM data)",
    "x > (SELECT 1)",
    "COUNT(*) > 1",
    "x > ?",
    "y > 1",
    "\ud800 = 1",
    5,
    ["x > 1"],
    b"x > 1",
]
METHODS = {
    "count": lambda t, where: t.count(epsilon=1, where=where),
    "people": lambda t, where: t.count("people", epsilon=1, where=where),
    "sum": lambda t, where: t.sum("x", between=(0, 20), epsilon=1, where=where),
    "quantiles": lambda t, where: t.quantiles("x", [0.1, 0.2, 0.5, 0.9], between=(0, 20), epsilon=1, where=where),
    "cdf": lambda t, where: t.cdf("x", between=(0, 20), epsilon=1, where=where),
    "histogram": lambda t, where: t.histogram("s", choices=["a", "b"], epsilon=1, where=where),
    "most common": lambda t, where: t.most_common("s", choices=["a", "b"], epsilon=1, where=where),
    "density": lambda t, where: t.density("x", between=(0, 20), bandwidth=5, epsilon=1, where=where),
    "synthesize": lambda t, where: t.synthesize({"s": ["a", "b"]}, epsilon=1, delta=1e-6, where=where),
    "fit": lambda t, where: t.fit(dp.learn.GaussianNB(epsilon=1), features={"x": (0, 20)}, target="s", where=where),
}


@pytest.fixture(scope="module")
def table() -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1e4, delta=0.01))
    return dp.table(DATA, ledger=ledger, rows_per_person=1)


@pytest.mark.parametrize("where", BAD)
def test_what_is_no_condition_is_refused(where: Any, table: Any) -> None:
    before = table._methods.ledger.count
    for method, ask in METHODS.items():
        for asked in (table, table.explain):
            with pytest.raises((QueryError, NotAllowed)) as caught:
                ask(asked, where)
            assert caught.value.__context__ is None, method
    assert table._methods.ledger.count == before


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("x >= 5", 15),
        ("x >= 5 -- those", 15),
        ("x < 5 OR s = 'a'", 12),  # not torn apart by what stands around it
        ("x BETWEEN 1 AND 3 AND s = 'b'", 2),
        ("(x > 1) = (s = 'a')", 10),
        ("CASE WHEN s = 'a' THEN x ELSE 0 END > 3", 8),
        ("s = 'a -- b' OR s = 'b /*'", 0),
    ],
)
def test_a_condition_is_what_it_says(where: str, count: int, table: Any) -> None:
    with testing.no_noise():
        assert table.count(epsilon=1, where=where).value == count
        counts = table.histogram("s", choices=["a", "b"], epsilon=1, where=where).value
        assert sum(counts.values()) == count


def test_an_error_points_into_the_condition(table: Any) -> None:
    with pytest.raises(QueryError) as caught:
        table.histogram("s", choices=["a"], epsilon=1, where="x > 1 AND wrong < 3")
    line, mark = str(caught.value).splitlines()[-2:]
    assert line[mark.index("^") : mark.rindex("^") + 1] == "wrong"


@pytest.mark.parametrize("more", ["GROUP BY s", "LIMIT 0", "ORDER BY 1", "HAVING COUNT(*) > 5", "OFFSET 3"])
def test_a_fit_takes_rows_and_nothing_else(more: str) -> None:
    """What stands after FROM may not hold what would be left out in silence."""
    tables = {"t": {"source": DATA, "rows_per_person": 1, "columns": {"s": {"choices": ["a", "b"]}}}}
    database = dp.connect({"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "pid"}, "tables": tables})
    with refuses(QueryError, "sql-rows-only"):
        database.fit(dp.learn.GaussianNB(epsilon=1), f"t WHERE x > 1 {more}", features={"x": (0, 20)}, target="s")
    assert database.ledger.count == 0


def test_a_pasted_condition_is_caught(monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
    """As it was in version 0.1: put into the text of the query, and read with it."""
    pasted = parse._query
    monkeypatch.setattr("discreet.sql.reading.select.parse_query", lambda one: pasted(getattr(one, "text", one)))
    with pytest.raises(pytest.fail.Exception):
        test_what_is_no_condition_is_refused("x > 1 ORDER BY 1", table)
