"""Questions as sums over cells: what each engine counts is what the cells add up to. One test body for all engines."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.sql.estimates import points
from discreet.sql.estimates.cells import linear_question
from discreet.sql.estimates.least_squares import spread_places
from discreet.sql.estimates.points import Gap
from discreet.sql.measuring.measure import read_measures
from discreet.sql.reading.values.public_values import Outside
from discreet.sql.schema import Column, Schema, Table

DAY = datetime.date(2024, 1, 1)
TYPES = {"k": pa.string(), "a": pa.int64(), "w": pa.bool_(), "d": pa.date32(), "x": pa.float64()}
COLUMNS = {
    "k": Column(name="k", type="text", choices=("a", "b", "it's")),
    "a": Column(name="a", type="integer", choices=(1, 2, 5)),
    "w": Column(name="w", type="boolean"),
    "d": Column(name="d", type="date", between=(DAY, DAY + datetime.timedelta(days=3))),
    "x": Column(name="x", type="number", between=(0, 10)),
}
VALUES = {
    "k": ["a", "b", "it's", "A", "a ", "", "zz", None],
    "a": [1, 2, 5, 0, 3, 4, 6, -(2**63), 2**63 - 1, None],
    "w": [True, False, None],
    "d": [DAY, DAY + datetime.timedelta(days=2), datetime.date(1, 1, 1), datetime.date(2024, 1, 5), None],
    "x": [0.5, 3.0, float("nan"), None],
}
CONDITIONS = [
    "k = 'a'",
    "'b' <> k",
    "k IN ('a', 'it''s')",
    "k NOT IN ('a', 'b')",
    "k IS NULL",
    "NOT (k = 'a' AND w)",
    "k = 'a' OR k IS NULL OR a = 2",
    "a < 3",
    "5 <= a",
    "a BETWEEN 2 AND 5",
    "a <> 2 AND a IS NOT NULL",
    "a IN (1, NULL)",
    "w",
    "NOT w",
    "w IS NULL",
    "COALESCE(w, FALSE)",
    "d >= DATE '2024-01-02'",
    "d = DATE '2024-01-01'",
    "CASE WHEN k = 'a' THEN w ELSE a = 1 END",
    "x > 1",
    "a = 4",
    "k > 'b'",
    "k LIKE 'a%'",
    "a + 1 = 3",
]
UNDECIDED = {
    "x > 1": lambda row: row[4] is not None and not row[4] <= 1,  # NaN is larger than all numbers
    "a = 4": lambda row: row[1] == 4,
    "k > 'b'": lambda row: row[0] is not None and row[0] > "b",
    "k LIKE 'a%'": lambda row: row[0] is not None and row[0].startswith("a"),
    "a + 1 = 3": lambda row: row[1] == 2,
}
"""Conditions that depend on more than the points of declared columns: they stay with the rows."""
KEYS = ["k", "a", "w", "d", "k, a", "w, k", "CASE WHEN k = 'a' THEN 1 ELSE 0 END"]


def rows_of() -> list[tuple[Any, ...]]:
    """All combinations of some values, several times each, so that no two cells have the same number of rows."""
    every = list(itertools.product(*VALUES.values()))
    draw = np.random.default_rng(5)
    return [every[n] for n in draw.choice(len(every), 4000)]


def database_of(opened: Any, rows: list[tuple[Any, ...]]) -> Database:
    data = pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(TYPES.items())})
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=1e6, delta=0.1))
    table = Table(name="t", columns=COLUMNS, version="1")
    return Database(Schema(unit=dp.row(), tables={"t": table}), opened({"t": data}), ledger)


def is_point(value: Any, point: Any) -> bool:
    if isinstance(point, Gap):
        inside = value is not None and (point.low is None or value >= point.low)
        return inside and (point.high is None or value <= point.high)
    if isinstance(point, Outside):
        return value is not None and value not in point.choices
    return value is None if point is None else value == point and value is not None


def cell_counts(rows: list[tuple[Any, ...]], columns: tuple[int, ...], fields: Any) -> Any:
    """How many rows are in each cell. Every row is in exactly one."""
    names = list(TYPES)
    listed = [points.points_of(fields[column]) for column in columns]
    found = np.zeros([len(one) for one in listed], dtype=np.int64)
    places: dict[tuple[Any, ...], int] = {}
    for row in rows:
        own = tuple(row[names.index(fields[column].name)] for column in columns)
        places[own] = places.get(own, 0) + 1
    for own, many in places.items():
        at = []
        for value, one in zip(own, listed, strict=True):
            [place] = [n for n, point in enumerate(one) if is_point(value, point)]
            at.append(place)
        found[tuple(at)] += many
    return found.ravel()


def check(database: Database, rows: list[tuple[Any, ...]], text: str) -> int:
    """What the cells add up to is what the engine counts. Returns how many columns decide."""
    planner = database.planner
    plan = planner.plan(text, epsilon=1)
    asked = linear_question(plan, planner.schema, planner.identity(plan.relation, "x"))
    if asked is None:
        return -1
    exact = read_measures(plan.question, planner.engine, None, plan.groups)
    left = [row for row in rows if all(holds(row) for one, holds in UNDECIDED.items() if one in text)]
    counts = cell_counts(left, asked.columns, list(plan.relation.fields))
    for own, measure in zip(asked.measures, exact, strict=True):
        assert (spread_places(own.places, asked.groups) @ counts == measure).all(), text
    return len(asked.columns)


@pytest.fixture(scope="module")
def known(opened: Any) -> Any:
    rows = rows_of()
    return database_of(opened, rows), rows


@pytest.mark.slow
def test_conditions_choose_cells(known: Any) -> None:
    decided = {one: check(*known, f"SELECT COUNT(*) AS n FROM t WHERE {one}") for one in CONDITIONS}
    assert {one for one, many in decided.items() if many < 1} == set(UNDECIDED)


@pytest.mark.slow
def test_pairs_of_conditions_choose_cells(known: Any) -> None:
    draw = np.random.default_rng(1)
    for _ in range(12):
        first, second = draw.choice(CONDITIONS[:-4], 2, replace=False)
        check(
            *known, f"SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE {second}) AS m, COUNT(k) AS o FROM t WHERE {first}"
        )


@pytest.mark.parametrize("keys", KEYS)
def test_keys_choose_cells(known: Any, keys: str) -> None:
    listed = ", ".join(str(n + 1) for n in range(keys.count(",") + 1 if "CASE" not in keys else 1))
    assert check(*known, f"SELECT {keys}, COUNT(*) AS n FROM t WHERE a < 5 OR w GROUP BY {listed}") > 0
