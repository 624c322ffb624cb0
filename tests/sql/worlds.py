"""Every small database at once, and what one unit more or less changes in it.

A world is a few rows. All worlds are in one table, each with people of its own: one statement measures them all.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

import discreet as dp
from discreet.datasets.database import Database
from discreet.sql.measuring.measure import read_measures

JANUARY, FEBRUARY = datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)
ARRIVED = datetime.date(2024, 2, 28)
DOMAIN = [
    # person, day, when it arrived, value
    (1, JANUARY, JANUARY, -4),
    (1, FEBRUARY, FEBRUARY, 4),
    (1, JANUARY, ARRIVED, 4),
    (1, None, JANUARY, -4),
    (2, JANUARY, JANUARY, 4),
    (2, FEBRUARY, None, -4),
]
MOST = 3
CAP = 4
World = tuple[tuple[Any, ...], ...]
WORLDS: list[World] = [w for n in range(MOST + 1) for w in itertools.combinations_with_replacement(DOMAIN, n)]
PARTS = ("2024-01", "2024-02", "null")
QUESTIONS = (
    "SELECT world, COUNT(*) AS n FROM t GROUP BY world",
    "SELECT world, SUM(value) AS n FROM t GROUP BY world",
    "SELECT world, COUNT(DISTINCT pid) AS n FROM t GROUP BY world",
    "SELECT a.world, SUM(a.value) AS n FROM t AS a JOIN t AS b ON a.pid = b.pid GROUP BY a.world",
    "SELECT world, SUM(k) AS n FROM (SELECT pid, world, LEAST(COUNT(*), 4) AS k FROM t GROUP BY pid, world) AS u "
    "GROUP BY world",
    "SELECT world, COUNT(*) AS n FROM t WHERE pid IN (SELECT pid FROM t WHERE value > 0) GROUP BY world",
)


def block_of(row: tuple[Any, ...], late: str | None) -> str | None:
    """The block of a row by hand. None if it counts nowhere."""
    _, day, arrived, _ = row
    if day is None:
        return "null"
    if late is None:
        return f"{day:%Y-%m}"
    if arrived is None:
        return None if late == "drop" else "null"
    if (arrived.year, arrived.month) > (day.year, day.month):
        return None if late == "drop" else f"{arrived:%Y-%m}"
    return f"{day:%Y-%m}"


def unit_of(row: tuple[Any, ...], late: str | None) -> tuple[Any, str | None]:
    return row[0], block_of(row, late)


def database_of(late: str | None = None, unit: Any = None) -> Database:
    """All worlds in one table. What one person of a world has is in its own group."""
    rows = [(f"{n}-{row[0]}", n, *row[1:]) for n, world in enumerate(WORLDS) for row in world]
    kinds = (pa.string(), pa.int64(), pa.date32(), pa.date32(), pa.int64())
    names = ("pid", "world", "day", "arrived", "value")
    data = pa.table({n: pa.array(c, k) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)})
    time = {"column": "day", "block": "month"} | ({} if late is None else {"arrived": "arrived", "late": late})
    table = {
        "source": data,
        "rows_per_person": 1,
        "groups_per_person": 1,
        "time": time,
        "columns": {"world": {"choices": list(range(len(WORLDS)))}, "value": {"between": [-CAP, CAP]}},
    }
    policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": unit or {"person": "pid", "per": "month"}}
    return dp.connect(policy | {"tables": {"t": table}})


def measured(database: Database, text: str, *parts: str) -> list[int]:
    """The exact number of each world, in all parts or in some."""
    planner = database.planner
    if parts:
        planner = replace(planner, schema=replace(planner.schema, parts=parts))
    plan = planner.plan(text, epsilon=1)
    return [int(n) for n in read_measures(plan.question, planner.engine, plan.enforced, plan.groups)[0]]


def sensitivity_of(database: Database, text: str) -> int:
    """What one unit moves the number of one world by, as the plan says."""
    return int(database.plan(text, epsilon=1).price.sensitivities[0].amount)


def neighbors(late: str | None) -> Iterator[tuple[int, int, str | None]]:
    """Pairs of worlds, the second without one unit of the first, and the block of that unit."""
    places = {tuple(sorted(map(repr, world))): n for n, world in enumerate(WORLDS)}
    for n, world in enumerate(WORLDS):
        for unit in {unit_of(row, late) for row in world}:
            left = [row for row in world if unit_of(row, late) != unit]
            yield n, places[tuple(sorted(map(repr, left)))], unit[1]


def check_one_unit(database: Database, late: str | None, texts: tuple[str, ...] = QUESTIONS) -> None:
    """One unit moves an answer by at most its sensitivity, over everything and in its own part, and no other part."""
    for text in texts:
        most = sensitivity_of(database, text)
        whole = measured(database, text)
        by_part = {part: measured(database, text, part) for part in PARTS}
        for first, second, block in neighbors(late):
            moved = abs(whole[first] - whole[second])
            assert moved <= most, f"{moved} > {most} in {text}"
            for part, found in by_part.items():
                own = abs(found[first] - found[second])
                assert own <= (most if part == block else 0), f"{part} moves with a unit of {block} in {text}"


def check_replaced(late: str | None, texts: tuple[str, ...] = QUESTIONS[:2]) -> None:
    """A replaced unit leaves one world's block and enters another: the sensitivity of replacement covers both."""
    database = database_of(late, {"person": "pid", "per": "month", "neighbors": "replace"})
    without: dict[int, list[int]] = {}
    for first, second, _ in neighbors(late):
        without.setdefault(second, []).append(first)
    for text in texts:
        most, whole = sensitivity_of(database, text), measured(database, text)
        for worlds in without.values():
            numbers = [whole[world] for world in worlds]
            assert max(numbers) - min(numbers) <= most, f"a replaced unit moves {text} too far"
