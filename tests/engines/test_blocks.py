"""Blocks of time and where people live are the same on every engine, for days and moments at every border."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.guarantees.unit import BLOCKS
from discreet.sql.blocks import Time, name_of
from discreet.sql.measuring.measure import read_measures
from discreet.sql.schema import Column, Schema, Table

from .conftest import sql

D, T = datetime.date, datetime.datetime
DAYS = [
    *(D(2023, 12, 31), D(2024, 1, 1), D(2024, 1, 7), D(2024, 1, 8), D(2024, 2, 29), D(2024, 3, 31), D(2024, 4, 1)),
    *(D(2024, 12, 29), D(2024, 12, 30), D(2025, 1, 1), D(1, 1, 1), D(9999, 12, 31), D(1969, 12, 31), D(1582, 10, 10)),
    None,
]
MOMENTS = [
    None if day is None else T(day.year, day.month, day.day, *clock) for day in DAYS for clock in ((), (23, 59, 59))
]
ROWS = [(n % 3, DAYS[n // 2], moment) for n, moment in enumerate(MOMENTS)]
PEOPLE: dict[str, Any] = {
    "integer": ([-1, 0, 2**63 - 1], pa.int64()),
    "text": (["", "null:1", "é" * 40], pa.string()),
    "date": ([D(1, 1, 1), D(2024, 1, 1), D(9999, 12, 31)], pa.date32()),
    "boolean": ([True, False, None], pa.bool_()),
}


def data(kind: str = "integer") -> pa.Table:
    known, arrow = PEOPLE[kind]
    return pa.table(
        {
            "pid": pa.array([known[who] for who, _, _ in ROWS], arrow),
            "day": pa.array([day for _, day, _ in ROWS], pa.date32()),
            "moment": pa.array([moment for _, _, moment in ROWS], pa.timestamp("us")),
        }
    )


def schema_of(block: Any, column: str, kind: str = "integer", unit: Any = None, **late: Any) -> Schema:
    columns = {
        "pid": Column(name="pid", type=kind),
        "day": Column(name="day", type="date"),
        "moment": Column(name="moment", type="timestamp"),
    }
    table = Table(
        name="t", columns=columns, person="pid", rows_per_person=1, time=Time(column=column, block=block, **late)
    )
    return Schema(unit=unit or dp.person("pid", per=block), tables={"t": table})


def counted(engine: Any, schema: Schema, text: str = "SELECT COUNT(*) AS n FROM t", parts: Any = None) -> int:
    database = Database(schema, engine, sql.open_ledger(schema.unit))
    planner = replace(database.planner, schema=replace(schema, parts=parts))
    plan = planner.plan(text, epsilon=1)
    return int(read_measures(plan.question, engine, plan.enforced, plan.groups)[0][0])


@pytest.fixture(scope="module")
def engine(opened: Any) -> Any:
    return opened({"t": data()})


@pytest.mark.some_quick(10)
@pytest.mark.parametrize("column", ["day", "moment"])
@pytest.mark.parametrize("block", BLOCKS)
def test_units_and_parts_are_those_by_hand(engine: Any, block: Any, column: str) -> None:
    """With one row of a unit, the number of rows is the number of units."""
    place = 1 if column == "day" else 2
    units = {(row[0], "null" if row[place] is None else name_of(block, row[place])) for row in ROWS}
    schema = schema_of(block, column)
    assert counted(engine, schema) == len(units)
    names = sorted({name for _, name in units})
    wanted = names[:2] + names[-2:] if block in ("day", "week") else names
    for part in wanted:
        assert counted(engine, schema, parts=(part,)) == sum(name == part for _, name in units)
    assert counted(engine, schema, parts=tuple(names)) == len(units)


@pytest.mark.parametrize("kind", ["text", "date", "boolean"])
def test_people_of_every_type_are_told_apart(opened: Any, kind: str) -> None:
    known = PEOPLE[kind][0]
    units = {(known[who], day and (day.year, day.month)) for who, day, _ in ROWS if known[who] is not None}
    assert counted(opened({"t": data(kind)}), schema_of("month", "day", kind)) == len(units)


def test_rows_meet_inside_one_unit(engine: Any) -> None:
    schema = schema_of("month", "day")
    wide = replace(schema, tables={"t": replace(schema.tables["t"], rows_per_person=50)})
    text = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.pid = b.pid"
    units = [(row[0], row[1] and (row[1].year, row[1].month)) for row in ROWS]
    assert counted(engine, wide, text) == sum(a == b for a in units for b in units)
    first = "SELECT 1 FROM t AS u WHERE u.pid = t.pid AND u.day = DATE '2024-01-01'"
    met = {unit for unit, row in zip(units, ROWS, strict=True) if row[1] == D(2024, 1, 1)}
    assert counted(engine, wide, f"SELECT COUNT(*) AS n FROM t WHERE EXISTS ({first})") == sum(u in met for u in units)


@pytest.mark.parametrize("late", ["drop", "next"])
def test_late_rows_follow_the_same_rule(opened: Any, late: Any) -> None:
    days = [D(2024, 1, 31), D(2024, 1, 31), D(2024, 1, 1), None, D(2024, 2, 1)]
    arrived = [T(2024, 1, 31, 23, 59, 59), T(2024, 2, 1), None, T(2024, 1, 1), T(2023, 5, 5)]
    rows = pa.table(
        {"pid": range(5), "day": pa.array(days, pa.date32()), "moment": pa.array(arrived, pa.timestamp("us"))}
    )
    engine, schema = opened({"t": rows}), schema_of("month", "day", arrived="moment", late=late)
    found = [counted(engine, schema, parts=(part,)) for part in ("2024-01", "2024-02", "null", "2023-05")]
    assert found == ([1, 1, 1, 0] if late == "drop" else [1, 2, 2, 0])


def test_people_live_where_their_rows_say_first(opened: Any) -> None:
    people = pa.table({"pid": [1, 2, 3, 4, 5, 5, 6, 6], "region": ["N", "S", "?", None, "S", "N", None, "S"]})
    visits = pa.table({"pid": pa.array([1, 1, 2, 3, 4, 5, 6, 8, None], pa.int64()), "n": [1] * 9})
    engine = opened({"people": people, "visits": visits})
    pid = Column(name="pid", type="integer")
    tables = {
        "people": Table(
            name="people",
            columns={"pid": pid, "region": Column(name="region", type="text", choices=("N", "S"))},
            person="pid",
            rows_per_person=5,
        ),
        "visits": Table(
            name="visits", columns={"pid": pid, "n": Column(name="n", type="integer")}, person="pid", rows_per_person=5
        ),
    }
    schema = Schema(unit=dp.person("pid", lives_in="region"), tables=tables)
    expected = {"N": (2, 3), "S": (2, 2), "other": (1, 1), "null": (1, 2)}
    for part, both in expected.items():
        found = tuple(counted(engine, schema, f"SELECT COUNT(*) AS n FROM {t}", (part,)) for t in ("people", "visits"))
        assert found == both
    assert counted(engine, schema, "SELECT COUNT(*) AS n FROM people") == 6
