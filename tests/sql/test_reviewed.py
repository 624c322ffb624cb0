"""What a review of joins, found bounds and per-person aggregates found, and what must not come back."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.sql.running.measure import measured

from ..refusing import refuses

PERSON = {"person": "pid"}
FAR = datetime.date(9999, 12, 31)


def connected(tables, unit=None, limit=1000, **options):
    """Tables of Arrow data under a policy: `tables` has the data and what is said of them."""
    words = {
        name: {"source": data, **({"rows_per_person": 20} if unit is None else {}), **said}
        for name, (data, said) in tables.items()
    }
    ledger = {"path": ":memory:", "epsilon": limit, "delta": 0.01, **options}
    return dp.connect({"ledger": ledger, "unit": unit or PERSON, "tables": words})


def rows_of(database, text, **given):
    with testing.no_noise():
        answer = database.sql(text, **({"epsilon": 20} | given))
    return [tuple(row) for row in answer.as_json()["rows"]]


# --- one person's own aggregates ------------------------------------------------------------------------------


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
        counts.add(int(measured(plan.question, database.engine, plan.bounds, plan.cells)[0][0]))
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


# --- keys -----------------------------------------------------------------------------------------------------


def keyed(values, kind):
    return pa.table({"pid": pa.array(range(len(values)), pa.int64()), "t": pa.array(values, kind)})


@pytest.mark.parametrize(
    ("common", "odd", "kind"),
    [
        (
            np.datetime64("2020-01-01T00:00:00.000000000"),
            np.datetime64("2020-01-01T00:00:00.000000001"),
            pa.timestamp("ns"),
        ),
        (1.5, float("nan"), pa.float64()),
        (1.5, float("inf"), pa.float64()),
        (0.0, -0.0, pa.float64()),
        (Decimal("0.10"), Decimal("0.20"), pa.decimal128(10, 2)),
        (5, 2**64 - 1, pa.uint64()),
    ],
)
def test_one_person_cannot_take_the_place_of_a_group(common, odd, kind):
    """Two values of the engine that are one in Python would put one count in place of the other."""
    for values in ([common] * 300, [common] * 300 + [odd]):
        answer = connected({"v": (keyed(values, kind), {})}).sql(
            "SELECT t, COUNT(*) AS n FROM v GROUP BY t", epsilon=20, delta=1e-6
        )
        assert answer.table.num_rows == 1
        assert abs(answer.table.column("n").to_pylist()[0] - 300) < 50


@pytest.mark.parametrize("odd", ["infinity", "-infinity"])
def test_an_infinite_date_is_no_group(odd):
    source = duckdb.connect()
    dates = ", ".join(["(DATE '9999-12-31')"] * 300 + [f"('{odd}'::DATE)"])
    data = source.sql(f"SELECT row_number() OVER () AS pid, d FROM (VALUES {dates}) t(d)")
    answer = connected({"v": (data, {})}).sql("SELECT d, COUNT(*) AS n FROM v GROUP BY d", epsilon=20, delta=1e-6)
    assert answer.table.column("d").to_pylist() == [FAR]


def test_many_people_with_a_number_that_does_not_fit_are_a_group_of_none():
    data = keyed([2**64 - 1] * 300, pa.uint64())
    answer = connected({"v": (data, {})}).sql("SELECT t, COUNT(*) AS n FROM v GROUP BY t", epsilon=20, delta=1e-6)
    assert answer.table.column("t").to_pylist() == [None]


def test_lists_are_no_keys():
    data = pa.table({"pid": [1, 2], "tags": [["a"], ["b"]]})
    with refuses(dp.QueryError, "sql-unknown-column"):
        connected({"v": (data, {})}).sql("SELECT tags, COUNT(*) AS n FROM v GROUP BY tags", epsilon=1, delta=1e-6)
    data = pa.table({"pid": [1, 2], "raw": [b"a", b"b"]})
    with refuses(dp.QueryError, "sql-key-type"):
        connected({"v": (data, {})}).sql("SELECT raw, COUNT(*) AS n FROM v GROUP BY raw", epsilon=1, delta=1e-6)


@pytest.mark.parametrize(
    "key",
    [
        "CASE WHEN a = 1 THEN DATE '2020-01-01' ELSE TIMESTAMP '2021-01-01 10:00:00' END",
        "CASE WHEN a = 1 THEN 9007199254740993 ELSE 0.5 END",
        "d",
    ],
)
def test_declared_keys_are_of_the_type_of_their_column(key):
    """Whether or not a row with the first value is there."""
    for values in ([1, 2, 3], [2, 3]):
        data = pa.table(
            {"pid": values, "a": values, "d": pa.array([Decimal("0.10") for _ in values], pa.decimal128(10, 2))}
        )
        database = connected({"v": (data, {"columns": {"d": {"choices": [5.0, 0.1]}}})})
        assert sum(row[1] for row in rows_of(database, f"SELECT {key} AS g, COUNT(*) AS n FROM v GROUP BY g")) == len(
            values
        )


def test_moments_with_a_zone_are_refused_and_dates_take_the_day():
    data = pa.table({"pid": [1, 2], "d": [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)],
                     "t": pa.array([0, 1], pa.timestamp("us"))})  # fmt: skip
    database = connected({"v": (data, {"columns": {"d": {"between": ["1970-01-01", "1970-01-05"]}}})})
    assert rows_of(database, "SELECT COUNT(*) AS n FROM v WHERE d >= '1970-01-02 10:00:00'") == [(2,)]
    with pytest.raises(dp.DiscreetError):
        database.sql(
            "SELECT t, COUNT(*) AS n FROM v WHERE t >= '1970-01-01T00:00:00+02:00' GROUP BY t", epsilon=1, delta=1e-6
        )


# --- joins ----------------------------------------------------------------------------------------------------

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
    with pytest.raises(dp.InvalidArgument, match="different types"):
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


# --- prices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("what", ["MEDIAN(x)", "COUNT(*)", "COUNT(*) AS a, SUM(x) AS b, MEDIAN(x)"])
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_undeclared_keys_keep_what_is_asked(neighbors, what, epsilon):
    data = pa.table({"pid": [1], "k": ["a"], "x": [1]})
    unit = {"person": "pid", "neighbors": neighbors}
    said = {"rows_per_person": 20, "groups_per_person": 20, "rows_per_group": 1, "columns": {"x": {"between": [0, 9]}}}
    for rule in ("best", "basic"):
        database = connected({"v": (data, said)}, unit=unit, rule=rule)
        plan = database.plan(f"SELECT k, {what} AS m FROM v GROUP BY k", epsilon=epsilon, delta=1e-6)
        assert plan.price.guarantee.delta_at(epsilon=epsilon) <= 1e-6 * (1 + 1e-6)
        assert plan.cost.epsilon <= epsilon
        database.answer(plan)


def test_a_question_for_all_that_is_left_fits():
    data = pa.table({"pid": [1], "k": ["a"]})
    database = connected({"v": (data, {"columns": {"k": {"choices": ["a", "b"]}}})}, limit=1, rule="basic")
    text = "SELECT k, COUNT(*) AS a, COUNT(*) FILTER (WHERE k = 'a') AS b FROM v GROUP BY k"
    assert database.plan(text, epsilon=1, delta=1e-6).cost.epsilon <= 1
    database.sql(text, epsilon=1, delta=1e-6)


# --- asked again ----------------------------------------------------------------------------------------------


def test_bounds_of_a_table_make_another_question():
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Pure(epsilon=10))
    data = pa.table({"pid": [1, 2], "k": ["a", "b"]})
    for groups, rows in ((2, 10), (1, 20)):
        table = dp.table(
            data, ledger=ledger, rows_per_person=20, groups_per_person=groups, rows_per_group=rows, version="1"
        )
        assert not table.histogram("k", choices=["a", "b"], epsilon=1).replayed
        assert not table.most_common("k", choices=["a", "b"], epsilon=1).replayed


def found_groups(answer):
    return int(answer.notes[0].rpartition(" ")[2].rstrip("."))


def test_groups_found_for_other_bounds_are_not_taken():
    rows = [(pid, k) for pid in range(400) for k in range(8)]
    data = pa.table({"pid": [pid for pid, _ in rows], "k": [k for _, k in rows]})
    said = {"version": "1", "groups_per_person": "auto", "rows_per_group": 1, "columns": {"k": {"between": [0, 7]}}}
    database = connected({"v": (data, said)})
    text = "SELECT k, COUNT(*) AS n FROM v GROUP BY k"
    assert found_groups(database.sql(text, epsilon=20)) == 8
    assert found_groups(database.sql(text, epsilon=20, bounds={"groups_per_person": 2})) <= 2
    assert found_groups(database.sql(text, epsilon=20)) == 8


def test_what_was_found_and_answered_is_free_when_nothing_is_left():
    data = pa.table({"pid": list(range(300)), "x": [float(n) for n in range(300)]})
    said = {"version": "1", "columns": {"x": {"between": "auto"}}}
    database = connected({"v": (data, said)}, limit=1, rule="basic", delta=0)
    first = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1)
    again = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1)
    assert again.replayed
    assert again.table.equals(first.table)


def test_the_longest_key_is_the_question_s_own():
    data = pa.table({"pid": list(range(300)), "x": [float(n) for n in range(300)]})
    database = connected({"v": (data, {"columns": {"x": {"between": "auto"}}})})
    key = "k" * 200
    first = database.sql("SELECT AVG(x) AS m FROM v", epsilon=1, key=key)
    assert database.sql("SELECT AVG(x) AS m FROM v", epsilon=1, key=key).table.equals(first.table)


# --- found bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["SELECT SUM(a * b) AS s FROM v", "SELECT a, COUNT(*) AS n FROM v GROUP BY a"])
def test_what_found_bounds_could_make_unanswerable_is_refused_before_anything_is_spent(text):
    data = pa.table({"pid": list(range(300)), "a": [2**30] * 300, "b": [2**30] * 300})
    said = {"columns": {"a": {"between": "auto"}, "b": {"between": "auto"}}}
    database = connected({"v": (data, said)}, delta=0)
    with pytest.raises(dp.DiscreetError):
        database.sql(text, epsilon=1)
    assert database.ledger.count == 0


def test_a_found_range_declares_no_groups():
    data = pa.table({"pid": list(range(300)), "a": [n % 3 for n in range(300)]})
    database = connected({"v": (data, {"columns": {"a": {"between": "auto"}}})})
    plan = database.plan("SELECT a, COUNT(*) AS n FROM v GROUP BY a", epsilon=1, delta=1e-6)
    assert plan.cells is None
    assert plan.first == ()


def test_a_quantile_can_be_asked_within_ranks():
    data = pa.table({"pid": list(range(500)), "x": [n % 100 for n in range(500)]})
    database = connected({"v": (data, {"columns": {"x": {"between": [0, 99]}}})})
    plan = database.plan("SELECT MEDIAN(x) AS m FROM v", within={"m": 200})
    assert float(plan.price.parts[0].error(0.95)) <= 200
    closer = database.plan("SELECT MEDIAN(x) AS m FROM v", within={"m": 100})
    assert closer.cost.epsilon > plan.cost.epsilon
