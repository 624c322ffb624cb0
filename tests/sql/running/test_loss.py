"""Intervals of clipped answers: the tail they are computed from, what they cover, and where they must fail."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.measuring.clipped import holding, read_clipped
from discreet.sql.measuring.groups import groups_of
from discreet.sql.planner import Planner
from discreet.sql.pricing.clipping import Clip
from discreet.sql.running.loss import Loss, _tail_of_two
from discreet.sql.running.notes import format_limits, notes_on
from discreet.sql.schema import Column, Schema, Table

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


@pytest.mark.parametrize("tail", [0.495, 0.1, 1e-6, 1e-30])
def test_the_tail_is_exact_for_every_ratio(tail):
    """Also near 1, where the formula divides by almost nothing, and for a noise next to which the other is nothing."""
    ratio = np.concatenate([np.logspace(-8, 8, 1000), np.linspace(0.9, 1.1, 1001) + 1e-4])
    found = _tail_of_two(ratio, tail)
    with np.errstate(under="ignore"):
        above = (ratio**2 * np.exp(-found / ratio) - np.exp(-found)) / (2 * (ratio**2 - 1))
    assert above == pytest.approx(np.full(len(ratio), tail), rel=1e-6)


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


def test_only_counts_and_sums_say_which_part_of_them_is_lost():
    """An average is not too low by the part of the rows that was scaled off."""
    rows = {"pid": [0] * 300 + list(range(1, 601)), "x": [30.0, 50.0] * 450}
    policy = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": {"person": "pid"}}
    columns = "AVG(x) AS mean, SUM(x) / COUNT(*) AS ratio, STDDEV(x) AS spread, SUM(x) AS s, COUNT(*) AS n"
    answer = dp.connect(policy | {"tables": {"t": {"source": pa.table(rows)}}}).sql(
        f"SELECT {columns} FROM t", epsilon=50
    )
    assert {name for name, share in answer.clipped.items() if share is None} == {"mean", "ratio", "spread"}
    assert all(0 <= answer.clipped[name] < 1 for name in ("s", "n"))


def test_a_note_names_only_what_may_be_the_reason() -> None:
    """Nothing is declared, nobody is above the limit, and no number has a sign: then there are too few people."""
    policy = {"ledger": {"path": ":memory:", "epsilon": 100}, "unit": {"person": "pid"}}
    rows = {"pid": np.arange(200), "x": np.tile([-1.0, 1.0], 100)}
    database = dp.connect(policy | {"tables": {"t": {"source": pa.table(rows)}}})
    notes = database.sql("SELECT COUNT(*) AS n FROM t WHERE pid < 3", epsilon=1).notes
    [said] = [note for note in notes if note.startswith("There are probably too few people for this ε")]
    assert "declared bounds, or" not in said
    assert "both signs" not in said


HOURS = 24


def spread() -> Any:
    """Rows of many people by hour: one in twenty has 5 to 29 more than the others."""
    draw = np.random.default_rng(7)
    rows = draw.poisson(2.2, 2 * PEOPLE) + (draw.random(2 * PEOPLE) < 0.05) * draw.integers(5, 30, 2 * PEOPLE)
    who = np.repeat(np.arange(2 * PEOPLE), rows)
    return pa.table({"pid": who, "h": draw.integers(0, HOURS, len(who))})


def in_squares(data: Any, rows: float) -> tuple[Any, Loss]:
    """A plan whose people are limited to so many rows in L2, and what is lost to that, without noise."""
    columns = {"pid": Column(name="pid", type="integer"), "h": Column(name="h", type="integer", between=(0, HOURS - 1))}
    schema = Schema(unit=dp.person("pid"), tables={"t": Table(name="t", columns=columns, person="pid")})
    ledger = dp.Ledger.open(":memory:", protects=schema.unit, limit=dp.Approx(epsilon=10, delta=1e-4))
    planner = Planner(schema, DuckDB({"t": data}), ledger)
    plan = planner.plan("SELECT h, COUNT(*) AS n FROM t GROUP BY h", epsilon=1, delta=1e-5)
    clipping = plan.clipping
    assert clipping is not None
    assert clipping.may_be_gaussian
    sums = clipping.clip((26,))
    clip: Clip = clipping.in_squares(sums, round(rows / float(sums.units[0])))
    with holding(planner.engine) as pairs:
        *cells, above = read_clipped(pairs, plan.question, clipping, clip, groups_of(plan.question))
    loss = Loss(clipping, clip, clipping.noise(clip), [np.asarray(one, float) for one in cells], above)
    return replace(plan, clip=clip), loss


@pytest.mark.parametrize("rows", [3.3, 5.2, 8.0])
def test_what_is_lost_in_squares_is_measured(rows: float) -> None:
    """Rows in many hours have a small norm, so a count of the people above the limit said a third of the truth."""
    data = spread()
    cells = np.bincount(data["pid"].to_numpy() * HOURS + data["h"].to_numpy()).astype(float)
    cells = np.resize(np.append(cells, np.zeros(-len(cells) % HOURS)), (-(-len(cells) // HOURS), HOURS))
    norms = np.maximum(np.sqrt((cells**2).sum(1)), 1)
    truth = float((cells.sum(1) * (1 - np.minimum(1, rows / norms))).sum())
    plan, loss = in_squares(data, rows)
    estimate = loss.limits() * rows
    assert truth <= estimate <= 1.7 * truth
    assert loss.of_all() == pytest.approx(estimate / (estimate + cells.sum() - truth), rel=0.02)
    below, beyond = loss.interval(0, 0.95)
    assert np.all(beyond >= truth / HOURS)
    assert np.all(below <= beyond)
    assert format_limits(plan).startswith(f"one person adds at most {rows:.4g} rows to one group, and to several")
    assert f"about {100 * loss.of_all():.2g}% (95%: at most" in " ".join(notes_on(plan, loss))


@pytest.mark.slow
def test_intervals_in_squares_cover_the_truth() -> None:
    data, found = spread(), []
    truth = np.bincount(data["h"].to_numpy(), minlength=HOURS)
    policy = {"ledger": {"path": ":memory:", "epsilon": 10, "delta": 1e-4}, "unit": {"person": "pid"}}
    tables = {"tables": {"t": {"source": data, "columns": {"h": {"between": [0, HOURS - 1]}}}}}
    for _ in range(RUNS):
        table = dp.connect(policy | tables).sql("SELECT h, COUNT(*) AS n FROM t GROUP BY h ORDER BY h", epsilon=1).table
        found.append(np.abs(table["n"].to_numpy() - truth) <= table["n_error"].to_numpy())
    assert np.mean(found) >= LEAST
    assert np.mean(np.mean(found, axis=1) > 2 / 3) >= LEAST  # few answers are wrong as a whole
