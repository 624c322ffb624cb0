"""What a few people have much of: the same on every engine, and the same as counted by numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.looking import Tail, tail_of
from discreet.sql.schema import Column, Schema, Table

COLUMNS = (("n", "integer"), ("x", "number"))
ODD = (None, float("nan"), -5e4, 0.0, 1e-9)
"""A missing value, no number, a large one with a sign, and two that add nothing."""


def by_hand(person: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """The parts of one person and of one in a hundred."""
    totals = np.sort(np.bincount(person, sizes))[::-1]
    return totals[0] / totals.sum(), totals[: len(totals) // 100].sum() / totals.sum()


@pytest.mark.parametrize("people", [450, 99])
def test_tails_are_those_that_numpy_finds(opened: Callable[..., Any], people: int) -> None:
    draw = np.random.default_rng(5)
    person = np.concatenate([np.arange(people), draw.integers(0, people, 3000), np.full(700, 3)])
    whole, number = draw.integers(-9, 10, len(person)), draw.lognormal(0, 2, len(person)).round(3)
    numbers = [*number, *ODD]
    rows = {"pid": [*person.tolist(), 0, 0, 0, 0, None], "n": [*whole.tolist(), *[0] * 5], "x": numbers}
    person_id, *columns = [Column(name=one, type=kind) for one, kind in (("pid", "integer"), *COLUMNS)]
    types = pa.schema({"pid": pa.int64(), "n": pa.int64(), "x": pa.float64()})
    table = Table(name="t", columns={one.name: one for one in (person_id, *columns)}, person="pid", version="1")
    engine = opened({"t": pa.table(rows, types)})
    schema = Schema(unit=dp.person("pid"), tables={"t": table})
    tails = [tail_of(table, one, schema, engine) for one in (None, *columns)]
    if people < 100:
        assert tails == [Tail()] * 3
        return
    found = [(one.of_one, one.of_few) for one in tails]
    kept = np.concatenate([person, [0] * 4])
    sizes = [np.ones(len(kept)), np.abs([*whole, 0, 0, 0, 0]), np.abs([*number, 0, 0, 5e4, 0])]
    assert np.array(found) == pytest.approx(np.array([by_hand(kept, one) for one in sizes]), rel=1e-9)


def test_of_no_rows_nothing_is_said(opened: Callable[..., Any]) -> None:
    empty = pa.table({"pid": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    columns = {"pid": Column(name="pid", type="integer"), "x": Column(name="x", type="number")}
    table = Table(name="t", columns=columns, person="pid", version="1")
    schema, engine = Schema(unit=dp.person("pid"), tables={"t": table}), opened({"t": empty})
    assert [tail_of(table, one, schema, engine) for one in (None, columns["x"])] == [Tail(), Tail()]


def test_a_row_is_that_of_the_person_to_whom_it_leads(opened: Callable[..., Any]) -> None:
    """One person has four in ten of the doses, in visits of which none has many. A visit is no person."""
    person = [0] * 400 + list(range(1, 601))
    visits = pa.table({"vid": list(range(1000)), "pid": person})
    doses = pa.table({"visit": list(range(1000)), "mg": [2.0] * 1000})
    names = {"visits": ("vid", "pid"), "doses": ("visit",)}
    columns = {table: {one: Column(name=one, type="integer") for one in known} for table, known in names.items()}
    columns["doses"]["mg"] = Column(name="mg", type="number", between=(0, 1))
    tables = {
        "visits": Table(name="visits", columns=columns["visits"], person="pid", version="1"),
        "doses": Table(name="doses", columns=columns["doses"], through="visit -> visits.vid", version="1"),
    }
    schema, engine = Schema(unit=dp.person("pid"), tables=tables), opened({"visits": visits, "doses": doses})
    for column in (None, columns["doses"]["mg"]):
        tail = tail_of(tables["doses"], column, schema, engine)
        assert (tail.of_one, tail.of_few) == pytest.approx((0.4, 0.405))
