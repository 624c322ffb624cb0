"""The intervals beside the answers hold the truth as often as they say, over 4000 releases of each kind of number."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.running.intervals import _widen_by_rounding
from discreet.sql.schema import Column, Schema, Table

GROUPS = 4000
SLACK = 5.2 * math.sqrt(0.95 * 0.05 / GROUPS)
"""A fair 95% is below this much less with probability 1e-7 (normal tail, 5.2 deviations); six columns: under 1e-6."""
PERSON = dp.person("pid")


@pytest.fixture(scope="module")
def groups():
    """4000 groups of 40 to 120 people, one row each."""
    rng = np.random.default_rng(8)
    sizes = rng.integers(40, 121, GROUPS)
    g = np.repeat(np.arange(GROUPS), sizes)
    x = np.round(rng.beta(2, 5, len(g)) * 100 * 64) / 64
    data = pa.table({"pid": np.arange(len(g)), "g": g, "x": x})
    columns = {
        "pid": Column(name="pid", type="integer"),
        "g": Column(name="g", type="integer", between=(0, GROUPS - 1)),
        "x": Column(name="x", type="number", between=(0, 100)),
    }
    table = Table(name="t", columns=columns, person="pid", rows_per_person=2, groups_per_person=1)
    ledger = dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
    count, total = np.bincount(g, minlength=GROUPS), np.bincount(g, x, GROUPS)
    squares = np.bincount(g, x * x, GROUPS)
    with np.errstate(all="ignore"):
        mean = total / count
        variance = (squares - count * mean**2) / (count - 1)
    truth = {"n": count, "s": total, "m": mean, "v": variance, "d": np.sqrt(np.maximum(variance, 0)), "r": mean}
    return Database(Schema(unit=PERSON, tables={"t": table}), DuckDB({"t": data}), ledger), truth


def covered(answer, name, truth, confidence=None):
    """In what part of the groups that have a true value the interval holds it."""
    table = answer.table if confidence is None else answer.with_errors(confidence)
    value = np.array(table.column(name).to_pylist(), dtype=float)
    half = np.array([np.inf if e is None else e for e in table.column(f"{name}_error").to_pylist()])
    known = np.isfinite(truth[name])
    return float(np.mean(np.abs(value - truth[name])[known] <= half[known] * (1 + 1e-9) + 1e-6)), float(np.median(half))


QUESTIONS = {
    "n": "COUNT(*)", "s": "SUM(x)", "m": "AVG(x)", "v": "VARIANCE(x)", "d": "STDDEV(x)", "r": "SUM(x) / COUNT(*)",
}  # fmt: skip


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_intervals_hold_the_truth(groups, delta):
    database, truth = groups
    shown = ", ".join(f"{what} AS {name}" for name, what in QUESTIONS.items())
    answer = database.sql(f"SELECT g, {shown} FROM t GROUP BY g", epsilon=20, delta=delta)
    for name in QUESTIONS:
        share, _ = covered(answer, name, truth)
        assert share >= 0.95 - SLACK, name


def test_intervals_are_not_needlessly_wide(groups):
    """A count's interval holds 95% and not all; at 50% it is narrower and holds about half or more."""
    database, truth = groups
    answer = database.sql("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g", epsilon=1)
    for name in ("n", "s"):
        share, wide = covered(answer, name, truth)
        assert 0.95 - SLACK <= share <= 0.99
        half, narrow = covered(answer, name, truth, 0.5)
        assert 0.5 - 2.3 * SLACK <= half <= 0.75
        assert narrow < wide / 2


def test_an_interval_that_is_too_narrow_is_noticed(groups):
    """What the test above can detect: errors of 0.8 times their size."""
    database, truth = groups
    answer = database.sql("SELECT g, SUM(x) AS s FROM t GROUP BY g", epsilon=1)
    value = np.array(answer.table.column("s").to_pylist())
    half = 0.8 * np.array(answer.table.column("s_error").to_pylist())
    assert np.mean(np.abs(value - truth["s"]) <= half) < 0.95 - SLACK


def test_an_interval_without_one_end_keeps_the_other() -> None:
    """Rounding widens by the size of the numbers, and once took a missing end for one of them."""
    ends = np.array([3.0, -np.inf, -np.inf, 3.0]), np.array([np.inf, 8.0, np.inf, 8.0])
    for whole in (False, True):
        low, high = _widen_by_rounding(ends, 1.0, whole=whole)
        assert low.tolist() == pytest.approx([3.0, -np.inf, -np.inf, 3.0])
        assert high.tolist() == pytest.approx([np.inf, 8.0, np.inf, 8.0])
