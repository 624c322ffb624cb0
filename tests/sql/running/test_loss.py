"""Intervals of clipped answers: the tail they are computed from, what they cover, and where they must fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.sql.running.loss import _tail_of_two

RUNS, PEOPLE = 80, 3000
LEAST = 0.95 - 3 * math.sqrt(0.95 * 0.05 / RUNS)
"""Nominal coverage, less three standard deviations of so many runs."""


@pytest.mark.parametrize("ratio", [0.01, 0.5, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("tail", [0.025, 0.005])
def test_the_tail_of_two_noises(ratio, tail):
    draw = np.random.default_rng(3)
    both = draw.laplace(size=400_000) + ratio * draw.laplace(size=400_000)
    found = float(_tail_of_two(np.array([ratio]), tail)[0])
    above, spread = float(np.mean(both > found)), math.sqrt(tail / 400_000)
    assert abs(above - tail) < 5 * spread


def test_the_tail_of_one_noise_is_that_of_laplace():
    """A part of 0 adds no second noise, and no warning."""
    assert float(_tail_of_two(np.array([0.0]), 0.05)[0]) == pytest.approx(np.log(0.5 / 0.05))


def asked(rows: dict[str, Any], text: str) -> tuple[Any, Any]:
    """One answer with fresh noise: the values of its rows, and their errors."""
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 10},
        "unit": {"person": "pid"},
        "tables": {"t": {"source": pa.table(rows), "columns": {"k": {"choices": list("abcd")}}}},
    }
    table = dp.connect(policy).sql(text, epsilon=1).table
    return np.array(table["v"].to_pylist(), float), np.array(table["v_error"].to_pylist(), float)


def coverage(totals: Any, groups: int, seed: int) -> float:
    """How often the intervals of a sum contain the truth, over groups and runs."""
    draw = np.random.default_rng(seed)
    keys = draw.integers(0, groups, len(totals))
    rows = {"pid": np.arange(len(totals)), "k": np.array(list("abcd"))[keys], "x": totals}
    text = "SELECT k, SUM(x) AS v FROM t GROUP BY k" if groups > 1 else "SELECT SUM(x) AS v FROM t"
    truth = np.array([totals[keys == key].sum() for key in range(4)]) if groups > 1 else np.array([totals.sum()])
    found = []
    for _ in range(RUNS):
        value, error = asked(rows, text)
        found.append(np.mean(np.abs(value - truth) <= error))
    return float(np.mean(found))


def drawn(family: str) -> Any:
    draw = np.random.default_rng(8)
    return {
        "equal": lambda: np.ones(PEOPLE),
        "poisson": lambda: draw.poisson(5, PEOPLE).astype(float),
        "geometric": lambda: draw.geometric(0.2, PEOPLE).astype(float),
        "lognormal": lambda: draw.lognormal(3, 1, PEOPLE),
        "pareto": lambda: draw.pareto(3, PEOPLE) + 1,
        "two kinds": lambda: np.where(np.arange(PEOPLE) % 2, 1.0, 100.0),
    }[family]()


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("family", ["equal", "poisson", "geometric", "lognormal", "pareto", "two kinds"])
def test_intervals_cover_the_truth_for_these_families(family, groups):
    assert coverage(drawn(family), groups, 5) >= LEAST


@pytest.mark.slow
def test_no_interval_covers_a_few_people_who_hold_nearly_everything():
    """Known, and said in the notes: what lies above the limit is estimated. A declared cap has no such part."""
    totals = np.where(np.arange(1000) % 100 == 0, 5000.0, 1.0)
    assert coverage(totals, 1, 5) < 0.5


def test_a_declared_cap_has_no_estimated_part():
    totals = np.where(np.arange(1000) % 100 == 0, 5000.0, 1.0)
    table = {"source": pa.table({"pid": np.arange(1000), "x": totals}), "rows_per_person": 1}
    policy = {"ledger": {"path": ":memory:", "epsilon": 100}, "unit": {"person": "pid"}}
    database = dp.connect(policy | {"tables": {"t": table | {"columns": {"x": {"between": [0, 5000]}}}}})
    answer = database.sql("SELECT SUM(x) AS v FROM t", epsilon=1)
    assert answer.clipped == {"v": None}
    assert float(answer.price.parts[0].error(0.95)) == pytest.approx(
        answer.table["v_error"][0].as_py() / float(answer.question.measures[0].step), rel=1e-6
    )


def test_what_is_lost_is_said():
    draw = np.random.default_rng(4)
    rows = {"pid": np.arange(5000), "x": draw.lognormal(3, 1.5, 5000)}
    policy = {"ledger": {"path": ":memory:", "epsilon": 100}, "unit": {"person": "pid"}}
    answer = dp.connect(policy | {"tables": {"t": {"source": pa.table(rows)}}}).sql(
        "SELECT SUM(x) AS v, COUNT(*) AS n FROM t", epsilon=2
    )
    assert set(answer.clipped) == {"v", "n"}
    assert all(0 <= share < 1 for share in answer.clipped.values())
    assert any("estimated" in note for note in answer.notes)
