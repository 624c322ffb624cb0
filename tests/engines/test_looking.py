"""What a few people have much of: the same on every engine, and the same as counted by numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.datasets.looking import _tails
from discreet.sql.schema import Column, Table

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
    found = [(one.of_one, one.of_few) for one in _tails(table, "pid", columns, engine)]
    if people < 100:
        assert found == [(0, 0)] * 3
        return
    kept = np.concatenate([person, [0] * 4])
    sizes = [np.ones(len(kept)), np.abs([*whole, 0, 0, 0, 0]), np.abs([*number, 0, 0, 5e4, 0])]
    assert np.array(found) == pytest.approx(np.array([by_hand(kept, one) for one in sizes]), abs=1e-3)


def test_of_no_rows_nothing_is_said(opened: Callable[..., Any]) -> None:
    empty = pa.table({"pid": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})
    columns = {"pid": Column(name="pid", type="integer"), "x": Column(name="x", type="number")}
    table = Table(name="t", columns=columns, person="pid", version="1")
    assert [one.words for one in _tails(table, "pid", [columns["x"]], opened({"t": empty}))] == ["", ""]
