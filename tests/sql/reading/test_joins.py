"""Joins: keys of one type, and no row that stops one."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import discreet as dp

from ...refusing import refuses
from ..connecting import connected, rows_of

FAR = datetime.date(9999, 12, 31)


LARGE = 2**60


def test_keys_that_a_cast_makes_equal_are_not_joined_where_rows_are_protected():
    data = {"a": pa.table({"k": [float(LARGE)]}), "b": pa.table({"j": [LARGE + n for n in range(-60, 100)]})}
    for public in (False, True):
        said = {"a": {"columns": {"k": {"frequency": 1}}}, "b": {"columns": {"j": {"frequency": 1}}}}
        if public:
            said["b"] = {"public": True}
        database = connected({n: (data[n], said[n]) for n in data}, unit={"row": True})
        with refuses(dp.NotAllowed, "sql-join-condition"):
            database.sql("SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.j", epsilon=1)


def test_people_of_two_types_are_not_joined():
    tables = {"a": (pa.table({"pid": [1, 2], "k": [1, 2]}), {}), "b": (pa.table({"pid": ["1", "2"], "k": [1, 2]}), {})}
    with refuses(dp.NotAllowed, "sql-join-person"):
        connected(tables).sql("SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k", epsilon=1)


def test_a_path_is_of_one_type():
    tables = {
        "a": (pa.table({"pid": [1], "vid": [1]}), {}),
        "b": (pa.table({"vid": ["1", "abc"]}), {"through": "a.vid"}),
    }
    with refuses(dp.InvalidArgument, "policy-through-types"):
        connected(tables)


@pytest.mark.parametrize("far", [FAR, datetime.date(1, 1, 1)])
def test_no_row_stops_a_join_or_a_union(far):
    """The same with the odd row and without."""
    ns, us = pa.timestamp("ns"), pa.timestamp("us")
    moment = datetime.datetime(far.year, far.month, far.day)
    seen = []
    for extra in ([], [1]):
        a = {"pid": [1, *(2 for _ in extra)], "d": [datetime.date(2020, 1, 1), *(far for _ in extra)]}
        a["t"] = pa.array([datetime.datetime(2020, 1, 1), *(moment for _ in extra)], us)
        a["n"] = pa.array([1, *(2**62 for _ in extra)], pa.int64())
        b = {"pid": [1, 2], "ts": pa.array([datetime.datetime(2020, 1, 1)] * 2, ns)}
        b["n"] = pa.array([Decimal(1), Decimal(2)], pa.decimal128(38, 25))
        database = connected({"a": (pa.table(a), {}), "b": (pa.table(b), {})})
        for on in ("a.d = b.ts", "a.t = b.ts", "a.n = b.n"):
            seen.append(rows_of(database, f"SELECT COUNT(*) AS c FROM a JOIN b ON a.pid = b.pid AND {on}"))
        union = "SELECT COUNT(*) AS c FROM (SELECT t FROM a UNION ALL SELECT ts FROM b) u"
        assert rows_of(database, union) == [(3 + len(extra),)]
    assert seen == [[(1,)]] * 6


CITIES = pa.table(
    {
        "city": ["Haifa", "Lod", "Eilat", "Paris", None],
        "country": ["il", "il", "il", "fr", "at"],
        "people": [300, 80, None, 2000, 1],
    }
)
PAIRS = "FROM visits v JOIN cities c ON v.city = c.city"


@pytest.mark.parametrize("rows", [[], ["Haifa", "Paris", None, "il", "Nowhere"]])
@pytest.mark.parametrize(
    ("text", "groups"),
    [
        (f"SELECT v.city, COUNT(*) {PAIRS} WHERE c.country = 'il' GROUP BY 1", ["Haifa", "Lod", "Eilat"]),
        (f"SELECT v.city, COUNT(*) {PAIRS} AND c.people > 100 GROUP BY 1", ["Haifa", "Paris"]),
        (f"SELECT c.country, COUNT(*) {PAIRS} WHERE c.people > 1000 GROUP BY 1", ["fr"]),
        (f"SELECT c.country, COUNT(*) {PAIRS} GROUP BY 1", ["fr", "il"]),  # no row has the city NULL of "at"
        (f"SELECT v.city, COUNT(*) {PAIRS} WHERE c.country = 'il' OR v.age > 3 GROUP BY 1", "all"),
        (f"SELECT v.city, COUNT(*) {PAIRS.replace('JOIN', 'LEFT JOIN')} AND c.country = 'il' GROUP BY 1", "all"),
        (f"SELECT v.city, COUNT(*) {PAIRS} WHERE c.country = 'de' GROUP BY 1", "all"),  # no group would be no answer
    ],
)
def test_a_condition_on_a_public_table_leaves_its_groups_out(text, groups, rows):
    """Only public rows say which groups there are: private ones change nothing."""
    visits = pa.table(
        {
            "pid": pa.array(range(len(rows)), pa.int64()),
            "city": pa.array(rows, pa.string()),
            "age": pa.array([7] * len(rows), pa.int64()),
        }
    )
    said = {"rows_per_person": 1, "columns": {"city": {"choices": ["Haifa", "Lod", "Eilat", "Paris"]}}}
    database = connected({"visits": (visits, said), "cities": (CITIES, {"public": True})}, unit={"person": "pid"})
    shown = database.sql(text, epsilon=1).table.column(0).to_pylist()
    assert shown == (["Haifa", "Lod", "Eilat", "Paris"] if groups == "all" else groups)
