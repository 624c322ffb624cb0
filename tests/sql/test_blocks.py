"""Blocks of time, units that live in one, and parts of a database: exact answers next to a computation by hand."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument, NotAllowed, QueryError
from discreet.guarantees.unit import BLOCKS
from discreet.sql.blocks import Time, blocks_from, name_of, next_start, read_name, start_of
from discreet.sql.measuring.measure import read_measures
from discreet.sql.reading import named_after

D, T = datetime.date, datetime.datetime
MONTHLY = {"person": "pid", "per": "month"}
ROWS = [
    (1, D(2024, 1, 1), "a", 1.0),
    (1, D(2024, 1, 31), "b", 2.0),
    (1, D(2024, 2, 1), "a", 4.0),
    (2, D(2024, 2, 29), "a", 8.0),
    (2, None, "b", 16.0),
    (3, D(2023, 12, 31), "b", 32.0),
    (None, D(2024, 1, 15), "a", 64.0),
    (3, D(1, 1, 1), "a", 128.0),
    (3, D(9999, 12, 31), "a", 256.0),
]


def visits(rows: list[Any] = ROWS) -> pa.Table:
    kinds = (pa.int64(), pa.date32(), pa.string(), pa.float64())
    columns = list(zip(*rows, strict=True)) or [[]] * 4
    return pa.table({n: pa.array(c, k) for n, c, k in zip(("pid", "day", "city", "cost"), columns, kinds, strict=True)})


def opened(unit: Any = MONTHLY, rows: Any = None, limit: Any = None, **said: Any) -> Any:
    facts = {"source": visits() if rows is None else rows, "version": "1", "rows_per_person": 3}
    facts |= {"columns": {"city": {"choices": ["a", "b"]}, "cost": {"between": [0, 512]}}}
    facts |= {"time": {"column": "day", "block": "month"}, **said}
    if unit.get("row"):
        facts.pop("rows_per_person")
    ledger = {"path": ":memory:", "epsilon": limit or 1000, "delta": 1e-5}
    return dp.connect({"ledger": ledger, "unit": unit, "tables": {"visits": facts}})


def exact(database: Any, text: str) -> list[tuple[Any, ...]]:
    with testing.no_noise():
        return [tuple(row) for row in database.sql(text, epsilon=1).as_json()["rows"]]


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS)
def test_every_day_is_in_one_block_that_its_name_leads_back_to(block: Any) -> None:
    day = D(2019, 12, 20)
    for _ in range(800):
        start, after = start_of(block, day), next_start(block, start_of(block, day))
        assert start <= day < after
        assert read_name(block, name_of(block, day)) == start
        assert name_of(block, start) == name_of(block, day) != name_of(block, after)
        day += datetime.timedelta(days=1)


def test_blocks_follow_each_other_to_the_end_of_the_calendar() -> None:
    assert list(itertools.islice(blocks_from("quarter", "2023-Q4"), 3)) == ["2023-Q4", "2024-Q1", "2024-Q2"]
    assert list(blocks_from("month", "9999-11")) == ["9999-11", "9999-12"]


@pytest.mark.parametrize(
    ("block", "name"),
    [
        *(("month", name) for name in ("2024-13", "2024-1", "2024-01-01", "2024", "٢٠٢٤-01", "NULL", " 2024-01", "")),
        *(("week", name) for name in ("2024-W53", "2024-W00", "2024-w05")),
        ("day", "2023-02-29"),
        ("year", "0000"),
        ("quarter", "2024-Q5"),
        ("month", 202401),
        ("month", None),
    ],
)
def test_a_name_that_is_no_block_is_refused(block: Any, name: Any) -> None:
    with pytest.raises(InvalidArgument, match="is written"):
        read_name(block, name)


# --- parts --------------------------------------------------------------------------------------------------

BY_CITY = "SELECT city, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY city"


@pytest.mark.slow
@pytest.mark.parametrize("unit", [MONTHLY, {"person": "pid"}, {"row": True}], ids=["month", "person", "row"])
def test_each_part_has_the_rows_of_its_block(unit: Any) -> None:
    database = opened(unit)
    own = [row for row in ROWS if row[0] is not None or unit.get("row")]
    names = sorted({name_of("month", row[1]) if row[1] else "null" for row in own})
    for name in [*names, "2022-05"]:
        inside = [row for row in own if (name_of("month", row[1]) if row[1] else "null") == name]
        expected = [(c, sum(r[2] == c for r in inside), sum(r[3] for r in inside if r[2] == c)) for c in "ab"]
        assert exact(database.part(name), BY_CITY) == expected
    listed = exact(database.part(*names), BY_CITY)
    assert listed == exact(opened(unit, rows_per_person=100) if not unit.get("row") else opened(unit), BY_CITY)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("block", BLOCKS)
def test_all_blocks_divide_the_rows_alike(block: Any) -> None:
    database = opened({"person": "pid", "per": block}, time={"column": "day", "block": block})
    names = [name_of(block, row[1]) if row[1] else "null" for row in ROWS if row[0] is not None]
    for name in names if block == "month" else names[:4]:
        assert exact(database.part(name), "SELECT COUNT(*) AS n FROM visits") == [(names.count(name),)]


def test_a_part_is_named_in_the_plan_the_answer_and_the_database() -> None:
    database = opened({"person": "pid"})
    part = database.part("2024-02", "2024-01", "2024-02")
    assert part.parts == ("2024-01", "2024-02")
    assert "in 2024-01, 2024-02" in repr(part)
    plan = part.explain(BY_CITY, epsilon=1)
    assert plan.data["parts"] == ["2024-01", "2024-02"]
    assert "2024-01, 2024-02" in str(plan)
    assert "Only rows in 2024-01, 2024-02 count." in part.sql(BY_CITY, epsilon=1).notes
    assert database.parts is None


def test_an_answer_is_replayed_in_its_part_only() -> None:
    database = opened({"person": "pid"})
    first = database.part("2024-01").sql(BY_CITY, epsilon=1)
    again = database.part("2024-01").sql(BY_CITY, epsilon=1)
    assert again.replayed
    assert again.as_json()["rows"] == first.as_json()["rows"]
    for other in (database, database.part("2024-02"), database.part("2024-01", "2024-02"), database.part("null")):
        assert not other.sql(BY_CITY, epsilon=1).replayed


def test_under_a_person_the_blocks_add() -> None:
    database = opened({"person": "pid"}, limit=3)
    for name in ("2024-01", "2024-02", "2024-03"):
        database.part(name).sql(BY_CITY, epsilon=1)
    with pytest.raises(dp.errors.BudgetExhausted):
        database.part("2024-04").sql(BY_CITY, epsilon=1)


@pytest.mark.slow
def test_each_block_has_a_budget_of_its_own_where_units_live_in_one() -> None:
    database = opened(limit=2)
    for name in ("2024-01", "2024-02", "null"):
        part = database.part(name)
        assert part.explain(BY_CITY, epsilon=1).data["remaining"] == "ε = 1"
        for text in (BY_CITY, "SELECT COUNT(*) AS n FROM visits"):
            part.sql(text, epsilon=1)
        with pytest.raises(dp.errors.BudgetExhausted):
            part.sql("SELECT SUM(cost) AS n FROM visits", epsilon=1)
    for wide in (database, database.part("2024-01", "2024-03")):
        with pytest.raises(dp.errors.BudgetExhausted):
            wide.sql("SELECT SUM(cost) AS n FROM visits", epsilon=1)
    assert database.part("2024-03").sql(BY_CITY, epsilon=2).cost.epsilon == 2
    assert database.ledger.verify() == database.ledger.count + 1


def test_a_row_is_in_one_block_so_each_has_a_budget() -> None:
    database = opened({"row": True, "per": "month"}, limit=1)
    rows = {name: exact(database.part(name), "SELECT COUNT(*) AS n FROM visits") for name in ("2024-01", "2024-02")}
    assert rows == {"2024-01": [(3,)], "2024-02": [(2,)]}
    with pytest.raises(dp.errors.BudgetExhausted):
        database.part("2024-01").sql(BY_CITY, epsilon=0.5)
    with pytest.raises(dp.errors.BudgetExhausted):
        database.sql(BY_CITY, epsilon=0.5)
    assert dp.row(per="month").same_kind(dp.row())


def test_what_is_asked_about_everything_is_charged_to_every_part() -> None:
    database = opened(limit=2)
    database.sql(BY_CITY, epsilon=1)
    database.sql(f"{BY_CITY.partition(' GROUP')[0]} WHERE day >= DATE '2024-02-01' GROUP BY city", epsilon=0.5)
    with pytest.raises(dp.errors.BudgetExhausted):
        database.part("2024-01").sql(BY_CITY, epsilon=1)
    database.part("2024-01").sql(BY_CITY, epsilon=0.5)


def test_a_replaced_person_may_move_so_two_parts_count() -> None:
    database = opened(MONTHLY | {"neighbors": "replace"}, limit=2)
    database.part("2024-01").sql(BY_CITY, epsilon=1)
    database.part("2024-02").sql(BY_CITY, epsilon=1)
    with pytest.raises(dp.errors.BudgetExhausted):
        database.part("2024-02").sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)


def test_bounds_that_are_found_in_a_part_are_charged_to_it() -> None:
    rows = [(n, D(2024, month, 1), "a", 2.0) for n in range(300) for month in (1, 2)]
    database = opened(rows=visits(rows), limit=2, rows_per_person=None)
    for name in ("2024-01", "2024-02"):
        answer = database.part(name).sql("SELECT SUM(cost) AS n FROM visits", epsilon=2)
        assert any(note.startswith("Found privately") for note in answer.notes)
    with pytest.raises(dp.errors.BudgetExhausted):
        database.sql("SELECT SUM(cost) AS n FROM visits", epsilon=0.1)


def test_analysts_have_accounts_in_parts_too() -> None:
    database = opened(limit=2)
    alice = database.seen_by(database.ledger.for_analyst("alice", limit=dp.Pure(epsilon=1)))
    alice.part("2024-01").sql(BY_CITY, epsilon=1)
    alice.part("2024-02").sql(BY_CITY, epsilon=1)
    with pytest.raises(dp.errors.BudgetExhausted):
        alice.part("2024-01").sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    part = database.part("2024-01")
    assert part.seen_by(alice.ledger).sql(BY_CITY, epsilon=1).replayed


def test_the_ledger_of_a_part_is_not_given_away() -> None:
    """A table or a model that is given the ledger of a part would read other rows, and charge only the part."""
    database = opened()
    part = database.part("2024-01")
    assert part.ledger is database.ledger
    assert not part.ledger._parts
    with pytest.raises(AssertionError, match="parts alone"):
        replace(part.planner, schema=database.schema)
    learn = pytest.importorskip("discreet.learn")
    model = learn.Ridge(epsilon=1, delta=1e-6)
    part.fit(model, "visits", features={"city": ["a", "b"]}, target="cost")
    assert not model.ledger._parts
    with pytest.raises(dp.errors.BudgetExhausted):
        database.part("2024-02").sql(BY_CITY, epsilon=999.5)


def test_parts_that_cannot_be_are_refused_before_anything_is_read() -> None:
    database = opened({"person": "pid"})
    for names in ((), ("2024",), ("2024-01", 3), ("January",)):
        with pytest.raises(InvalidArgument):
            database.part(*names)
    with pytest.raises(InvalidArgument, match="a part already"):
        database.part("2024-01").part("2024-01")
    plain = opened({"person": "pid"}, time={"column": "day"})
    assert plain.part("2024-01").parts == ("2024-01",)


def test_a_table_without_a_time_has_no_parts() -> None:
    people = pa.table({"pid": [1, 2], "sex": ["f", "m"]})
    tables = {
        "visits": {"source": visits(), "rows_per_person": 3, "time": {"column": "day"}},
        "people": {"source": people, "rows_per_person": 1},
    }
    policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "pid"}, "tables": tables}
    part = dp.connect(policy).part("2024-01")
    with pytest.raises(NotAllowed, match="people does not say when"):
        part.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
    with pytest.raises(NotAllowed, match="people does not say when"):
        part.sql("SELECT COUNT(*) AS n FROM visits JOIN people USING (pid)", epsilon=1)
    assert exact(part, "SELECT COUNT(*) AS n FROM visits") == [(2,)]
    policy["unit"] = MONTHLY
    with pytest.raises(InvalidArgument, match=r"tables\.people\.time"):
        dp.connect(policy)
    tables["people"] = {"source": people, "public": True}
    assert exact(dp.connect(policy), "SELECT COUNT(*) AS n FROM visits JOIN people USING (pid)") == [(5,)]


# --- one person in one month --------------------------------------------------------------------------------


def test_rows_are_bounded_in_each_month_of_a_person() -> None:
    rows = [(1, D(2024, month, day), "a", 1.0) for month in (1, 2) for day in range(1, 8)]
    assert exact(opened(rows=visits(rows)), "SELECT COUNT(*) AS n FROM visits") == [(6,)]
    assert exact(opened({"person": "pid"}, rows=visits(rows)), "SELECT COUNT(*) AS n FROM visits") == [(3,)]


def test_people_are_counted_once_although_they_are_several_units() -> None:
    asked = "SELECT COUNT(DISTINCT pid) AS n FROM visits"
    assert exact(opened(), asked) == [(3,)]
    assert exact(opened().part("2024-02"), asked) == [(2,)]
    assert exact(opened().part("2024-01", "2024-02"), asked) == [(2,)]


def test_rows_of_one_person_meet_inside_one_month_only() -> None:
    database = opened(rows_per_person=9)
    joined = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.pid = b.pid"
    assert exact(database, joined) == [(4 + 1 + 1 + 1 + 1 + 1 + 1,)]
    grouped = "SELECT COUNT(*) AS n FROM (SELECT pid, COUNT(*) AS k FROM visits GROUP BY pid) AS one WHERE k > 1"
    assert exact(database, grouped) == [(1,)]
    tested = "SELECT COUNT(*) AS n FROM visits WHERE pid IN (SELECT pid FROM visits WHERE cost > 3)"
    assert exact(database, tested) == [(6,)]
    numbers = "SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS k FROM visits"
    numbered = f"SELECT COUNT(*) AS n FROM ({numbers}) AS one WHERE k = 2"
    assert exact(database, numbered) == [(1,)]
    full = "SELECT COUNT(pid) AS n FROM visits AS a FULL JOIN visits AS b USING (pid) WHERE pid = 1"
    assert exact(database, full) == [(5,)]
    said = database.sql(joined, epsilon=1).notes
    assert "Rows of one person are joined and combined only inside one month." in said


def test_a_person_with_many_months_is_not_shown() -> None:
    rows = [(1, D(2000 + year, month, 1), "a", 1.0) for year in range(20) for month in range(1, 13)]
    database = opened(rows=visits(rows))
    for key in ("pid", "pid + 0", "CASE WHEN pid > 0 THEN pid END"):
        with pytest.raises(NotAllowed, match="named after a person"):
            database.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=10)
    with pytest.raises(NotAllowed):
        database.sql("SELECT DISTINCT pid FROM visits", epsilon=10)


RENAMED = [
    "(SELECT pid AS k FROM visits)",
    "(SELECT pid * 2 AS k FROM visits)",
    "(SELECT 'p' || CAST(j AS VARCHAR) AS k FROM (SELECT pid + 1 AS j FROM visits) AS u)",
    "(SELECT MIN(pid) AS k FROM visits GROUP BY pid)",
    "(SELECT FIRST_VALUE(pid) OVER (PARTITION BY pid ORDER BY day) AS k FROM visits)",
    "(SELECT pid AS k FROM visits UNION ALL SELECT 7 AS k FROM visits)",
    "(SELECT b.pid - 1 AS k FROM visits AS a LEFT JOIN visits AS b ON a.pid = b.pid)",
    "(SELECT number + 0 AS k FROM visits JOIN numbers ON pid = number)",
    "(SELECT number + 0 AS k FROM visits JOIN numbers ON city = letter WHERE pid = number)",
]


def check_nobody_is_named(source: str) -> None:
    rows = [(1, D(2000 + year, month, 1), "a", 1.0) for year in range(20) for month in range(1, 13)]
    numbers = pa.table({"number": list(range(20_000)), "letter": ["a"] * 20_000})
    table = {"source": visits(rows), "rows_per_person": 3, "time": {"column": "day"}}
    policy = {"ledger": {"path": ":memory:", "epsilon": 99, "delta": 1e-5}, "unit": MONTHLY}
    database = dp.connect(policy | {"tables": {"visits": table, "numbers": {"source": numbers, "public": True}}})
    with pytest.raises(NotAllowed, match="named after a person"):
        database.plan(f"SELECT k, COUNT(*) AS n FROM {source} AS one GROUP BY k", epsilon=10)


@pytest.mark.parametrize("source", RENAMED)
def test_a_person_with_many_months_is_not_shown_under_another_name(source: str) -> None:
    check_nobody_is_named(source)


@pytest.mark.parametrize("source", RENAMED[1:])
def test_names_that_are_looked_for_in_the_key_alone_are_caught(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_after, "parts_of", lambda relation: [])
    with pytest.raises(pytest.fail.Exception):
        check_nobody_is_named(source)


@pytest.mark.slow
def test_groups_that_say_nothing_about_people_are_not_refused() -> None:
    table = {"source": visits(), "rows_per_person": 3, "time": {"column": "day"}}
    policy = {"ledger": {"path": ":memory:", "epsilon": 99, "delta": 1e-5}, "unit": MONTHLY}
    database = dp.connect(policy | {"tables": {"visits": table}})
    for source in (
        "(SELECT COUNT(*) AS k FROM visits GROUP BY pid)",
        "(SELECT MAX(city) AS k FROM visits GROUP BY pid)",
        "(SELECT a.city AS k FROM visits AS a JOIN visits AS b ON a.pid = b.pid AND a.city = b.city)",
        "(SELECT city AS k FROM visits WHERE pid = 1)",
    ):
        database.plan(f"SELECT k, COUNT(*) AS n FROM {source} AS one GROUP BY k", epsilon=10)


def test_a_table_that_leads_to_another_is_in_the_block_of_that_row() -> None:
    own = pa.table({"pid": [1, 1, 2], "day": [D(2024, 1, 1), D(2024, 2, 1), D(2024, 2, 2)], "visit": [10, 11, 12]})
    results = pa.table({"visit": [10, 10, 11, 12, 13], "value": [1, 2, 4, 8, 16]})
    tables = {
        "visits": {"source": own, "rows_per_person": 3, "time": {"column": "day"}},
        "results": {"source": results, "through": "visits.visit", "rows_per_person": 3},
    }
    tables["results"]["columns"] = {"value": {"between": [0, 16]}}
    policy = {"ledger": {"path": ":memory:", "epsilon": 99}, "unit": MONTHLY, "tables": tables}
    database = dp.connect(policy)
    total = "SELECT SUM(value) AS n FROM results"
    assert exact(database, total) == [(15,)]
    both = "SELECT SUM(value) AS n FROM results JOIN visits USING (visit)"
    assert exact(database, both) == [(15,)]
    part = dp.connect(policy | {"unit": {"person": "pid"}}).part("2024-02")
    assert exact(part, total) == [(12,)]
    assert exact(part, both) == [(12,)]
    tables["results"]["time"] = {"column": "value"}
    with pytest.raises(InvalidArgument, match="the block of that row"):
        dp.connect(policy)


def test_keys_of_units_do_not_run_together() -> None:
    rows = pa.table(
        {"pid": ["1", "null:1", ":1", "19723:1", None, ""], "day": [None, D(2024, 1, 1)] * 3, "city": ["a"] * 6}
    )
    database = opened(rows=rows, columns={"city": {"choices": ["a"]}}, rows_per_person=1)
    assert exact(database, "SELECT COUNT(*) AS n FROM visits") == [(5,)]


# --- late rows ----------------------------------------------------------------------------------------------

LATE_ROWS = [
    # day, arrived, block if late rows are dropped, block if they belong to the next
    (D(2024, 1, 5), T(2024, 1, 31, 23, 59, 59, 999999), "2024-01", "2024-01"),
    (D(2024, 1, 5), T(2024, 2, 1), None, "2024-02"),
    (D(2024, 1, 5), T(2024, 7, 9, 1), None, "2024-07"),
    (D(2024, 3, 5), T(2024, 1, 1), "2024-03", "2024-03"),
    (D(2024, 1, 5), None, None, "null"),
    (None, T(2024, 1, 1), "null", "null"),
    (None, None, "null", "null"),
]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(("late", "place"), [("drop", 2), ("next", 3)])
@pytest.mark.parametrize("unit", [MONTHLY, {"person": "pid"}, {"row": True}], ids=["month", "person", "row"])
def test_late_rows_count_once_or_nowhere(late: str, place: int, unit: Any) -> None:
    many = len(LATE_ROWS)
    rows = pa.table(
        {
            "pid": list(range(many)),
            "day": pa.array([row[0] for row in LATE_ROWS], pa.date32()),
            "arrived": pa.array([row[1] for row in LATE_ROWS], pa.timestamp("us")),
            "city": ["a"] * many,
        }
    )
    time = {"column": "day", "block": "month", "arrived": "arrived", "late": late}
    database = opened(unit, rows=rows, columns={"city": {"choices": ["a"]}}, time=time)
    counted = "SELECT COUNT(*) AS n FROM visits"
    blocks = [row[place] for row in LATE_ROWS]
    names = ["2024-01", "2024-02", "2024-03", "2024-07", "2024-12", "null"]
    found = {name: exact(database.part(name), counted)[0][0] for name in names}
    assert found == {name: blocks.count(name) for name in names}
    assert exact(database, counted) == [(sum(found.values()),)] == [(sum(one is not None for one in blocks),)]


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ({}, "names no column"),
        ({"column": "day", "late": "drop"}, "go together"),
        ({"column": "day", "arrived": "day"}, "go together"),
        ({"column": "day", "arrived": "day", "late": "never"}, "late must be"),
        ({"column": "day", "block": "hour"}, "block must be"),
        ({"column": "day", "block": "week"}, 'block = "month"'),
        ({"column": "city"}, "must be a date, or a timestamp"),
        ({"column": "when"}, "no column when"),
        ({"column": 3}, "column of days"),
        ({"colum": "day"}, "column"),
    ],
)
def test_what_is_said_of_time_is_checked(time: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        opened(time=time)
    if not said.startswith("block = "):
        assert Time(column="day").columns == ("day",)


def test_all_tables_have_the_same_blocks() -> None:
    tables = {n: {"source": visits(), "time": {"column": "day", "block": b}} for n, b in (("v", "day"), ("w", "week"))}
    policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "pid"}, "tables": tables}
    with pytest.raises(InvalidArgument, match="same blocks"):
        dp.connect(policy)


# --- where people live --------------------------------------------------------------------------------------


def living(neighbors: str = "add_or_remove", lives_in: str = "region", **more: Any) -> Any:
    people = pa.table(
        {
            "pid": [1, 2, 3, 4, 5, 5, 6, 6, 7],
            "region": ["N", "S", "Atlantis", None, "S", "N", None, "S", None],
            "age": [1, 2, 4, 8, 16, 32, 64, 128, 256],
        }
    )
    own = pa.table({"pid": [1, 1, 2, 3, 4, 5, 6, 8, None], "cost": [1.0] * 9})
    tables = {
        "people": {
            "source": people,
            "rows_per_person": 2,
            "columns": {"region": {"choices": ["N", "S"], **more}, "age": {"between": [0, 256]}},
        },
        "visits": {"source": own, "rows_per_person": 9},
    }
    unit = {"person": "pid", "lives_in": lives_in, "neighbors": neighbors}
    return dp.connect({"ledger": {"path": ":memory:", "epsilon": 99}, "unit": unit, "tables": tables})


def test_the_first_declared_value_is_where_a_person_lives() -> None:
    database = living()
    assert exact(database, "SELECT SUM(age) AS n FROM people") == [(1 + 2 + 4 + 8 + 32 + 128 + 256,)]
    assert exact(database, "SELECT COUNT(*) AS n FROM visits") == [(8,)]


def test_nobody_lives_in_two_parts() -> None:
    database = living()

    def counted(*parts: str, text: str) -> int:
        planner = replace(database.planner, schema=replace(database.schema, parts=parts))
        plan = planner.plan(text, epsilon=1)
        return int(read_measures(plan.question, planner.engine, plan.enforced, plan.groups)[0][0])

    ages = {"N": 1 + 32, "S": 2 + 128, "other": 4, "null": 8 + 256}
    many = {"N": 3, "S": 2, "other": 1, "null": 2}
    for part in ages:
        assert counted(part, text="SELECT SUM(age) AS n FROM people") == ages[part]
        assert counted(part, text="SELECT COUNT(*) AS n FROM visits") == many[part]
    assert counted("N", "null", text="SELECT COUNT(*) AS n FROM visits") == 5


@pytest.mark.parametrize("wrong", ["town", "visits.region", "people.", "age", "people.pid"])
def test_where_people_live_must_be_one_declared_column(wrong: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        living(lives_in=wrong)
    assert raised.value.code == "unit-lives-in"


def test_the_names_of_homes_are_told_apart() -> None:
    living(other="elsewhere")
    with pytest.raises(InvalidArgument, match="Rename the choice"):
        living(choices=["N", "null"])
    with pytest.raises(InvalidArgument, match="Known: N, S, other, null"):
        living().part("Atlantis")


# --- who else asks ------------------------------------------------------------------------------------------


def test_who_knows_no_blocks_refuses_such_units() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid", per="month"), limit=dp.Approx(epsilon=9, delta=1e-5))
    with pytest.raises(InvalidArgument, match="does not know when"):
        dp.table(visits(), ledger=ledger)
    with pytest.raises(InvalidArgument, match="does not know when"):
        dp.stats.mean([1.0, 2.0], between=(0, 3), people=[1, 2], ledger=ledger, epsilon=1)


def test_a_household_is_protected_like_a_person() -> None:
    database = opened({"group": "pid"})
    assert database.schema.unit == dp.person("pid")
    with pytest.raises(InvalidArgument, match="who is protected"):
        opened({"group": "pid", "person": "pid"})


def test_a_question_about_a_column_of_time_stays_a_question() -> None:
    with pytest.raises(QueryError):
        opened().sql("SELECT COUNT(*) FROM visits WHERE block = 3", epsilon=1)
