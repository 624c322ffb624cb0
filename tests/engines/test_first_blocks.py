"""The first blocks of each person, and standing questions, are the same on every engine."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.sql.blocks import FirstBlocks, Time
from discreet.sql.measuring.measure import read_measures
from discreet.sql.schema import Column, Schema, Table

from .conftest import sql

D = datetime.date
ROWS = [
    *((1, D(2024, month, 3)) for month in (1, 2, 3)),
    *((2, D(2024, month, 3)) for month in (3, 4)),
    (3, D(2023, 12, 31)),
    (3, D(2024, 1, 1)),
    (3, D(2024, 1, 31)),
    (3, D(2024, 2, 29)),
    (4, None),
    (4, D(2024, 4, 30)),
    (None, D(2024, 1, 5)),
]
MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")
COUNTED = {1: [1 + 1, 0, 1, 1], 2: [2, 2, 1, 2]}
"""How many people count in each month, if one or two of their months do. Everybody has one row there, by the bound."""


@pytest.fixture(scope="module")
def engine(opened: Any) -> Any:
    days, people = pa.array([day for _, day in ROWS], pa.date32()), pa.array([who for who, _ in ROWS], pa.int64())
    return opened({"t": pa.table({"pid": people, "day": days})})


def schema(unit: Any = None) -> Schema:
    columns = {"pid": Column(name="pid", type="integer"), "day": Column(name="day", type="date")}
    time = Time(column="day", block="month")
    table = Table(name="t", columns=columns, person="pid", rows_per_person=1, time=time)
    return Schema(unit=unit or dp.person("pid"), tables={"t": table})


@pytest.mark.parametrize("most", COUNTED)
def test_only_the_first_blocks_of_a_person_count(engine: Any, most: int) -> None:
    database = Database(schema(), engine, sql.open_ledger(dp.person("pid")))
    found = []
    for month in MONTHS:
        first = FirstBlocks(MONTHS[0], MONTHS[-1], most)
        planner = replace(database.planner, schema=replace(schema(), parts=(month,), first_blocks=first))
        plan = planner.plan("SELECT COUNT(*) AS n FROM t", epsilon=1)
        found.append(int(read_measures(plan.question, engine, plan.enforced, plan.groups)[0][0]))
    assert found == COUNTED[most]


@pytest.mark.slow
@pytest.mark.parametrize("totals", [False, True])
def test_standing_questions_are_answered_on_every_engine(engine: Any, totals: bool) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1000, delta=0.1))
    database = Database(schema(), engine, ledger, delta_per_question=1e-3)
    question = "SELECT COUNT(*) AS n FROM t"
    with testing.frozen(1):
        standing = database.standing(question, every="month", times=4, epsilon=400, first=MONTHS[0], totals=totals)
        standing.run(today=D(2024, 5, 1))
    assert [row["n"] for row in standing.table.to_pylist()] == [2, 2, 2, 2]
    ledger.verify()
