"""The correlation of two columns: coverage by simulation, and releases through the door."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import row
from discreet.stats.inference.correlations import NoisyCorrelation
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import Formula
from discreet.stats.regression.released_moments import best_layout

from .regression_simulation import exact_numbers

DESIGN = Design(Formula("b", ((), ("a",))), (Coded("a", (-1, 1)), Coded("b", (-1, 1))))
POPULATION = 2_000_000


def pair(kind: str, rows: int, rng: np.random.Generator) -> list[Any]:
    """Two columns within −1 and 1."""
    common = rng.exponential(1, rows) if kind == "skewed" else rng.normal(size=rows)
    own = [rng.exponential(1, rows) if kind == "skewed" else rng.normal(size=rows) for _ in range(2)]
    start = -1.0 if kind == "skewed" else 0.0
    return [np.clip(start + 0.2 * (common + one), -1, 1) for one in own]


def covered(kind: str, rows: int, epsilon: float, *, runs: int, seed: int) -> float:
    """How often a 95% interval has the correlation of the population."""
    rng = np.random.default_rng(seed)
    true = float(np.corrcoef(*pair(kind, POPULATION, rng))[0, 1])
    layout = best_layout(DESIGN, "L1", row(), 1)
    first, second = float(layout.query.sensitivity(row()).exact) / (0.75 * epsilon), 4 / epsilon
    samples = [pair(kind, rows, rng) for _ in range(runs)]
    numbers = np.stack([exact_numbers(layout, codes) for codes in samples])
    numbers = numbers + rng.laplace(size=numbers.shape) * first
    model = NoisyCorrelation(
        numbers, layout.matrices, Noise(laplace=first), np.array([[-1, 1], [-1, 1.0]]), Noise(laplace=second)
    )
    squares = [
        (np.clip(replace(model, numbers=numbers[run]).scores(DESIGN.values(codes)), -1, 1) ** 2).sum()
        for run, codes in enumerate(samples)
    ]
    model = replace(model, squares=np.array(squares) + rng.laplace(size=runs) * second)
    return float((model.p_of(true, 0.05) > 0.05).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rows", "epsilon"), [("normal", 1000, 1.0), ("skewed", 3000, 5.0)])
def test_intervals_cover(kind: str, rows: int, epsilon: float) -> None:
    """False alarm below 1e-6: 4.8 binomial deviations of 500 runs below 95%. Fisher's interval, which takes the
    distribution for normal, covers less than 80% of skewed pairs.
    """
    assert covered(kind, rows, epsilon, runs=500, seed=1) >= 0.95 - 4.8 * math.sqrt(0.95 * 0.05 / 500)


RNG = np.random.default_rng(2)
A = RNG.uniform(0, 10, 3000)
PAIRS = pd.DataFrame({"a": A, "b": A + RNG.normal(0, 2, 3000), "sick": A > 6, "who": np.arange(3000) // 3})
RANGES: dict[str, Any] = {"between": {"a": (0, 10), "b": (-5, 15)}}


def pairs(unit: Any = None, **given: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", limit=dp.Approx(epsilon=1000, delta=1e-3), protects=unit or dp.row())
    return dp.table(PAIRS, ledger=ledger, **given)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_with_much_epsilon_it_is_the_correlation(delta: float) -> None:
    found = pairs().stats.correlation("a", "b", **RANGES, epsilon=200, delta=delta)
    true = float(np.corrcoef(PAIRS["a"], PAIRS["b"])[0, 1])
    low, high = found.interval()
    assert found.value == pytest.approx(true, abs=0.01)
    assert low < true < high
    assert high - low < 0.05
    assert found.test(0).p_value < 1e-3
    assert found.test(true).p_value > 0.5
    assert found.test(0, alternative="less").p_value > 0.99
    assert found.test(2).p_value == 0
    assert "correlation of a and b" in str(found)


def test_people_and_conditions_and_ranges_that_are_found() -> None:
    assert pairs(dp.person("who"), rows_per_person=3).stats.correlation("a", "b", **RANGES, epsilon=50).value > 0.7
    assert pairs().stats.correlation("a", "sick", between={"a": (0, 10)}, epsilon=50).value > 0.7
    assert pairs().stats.correlation("a", "b", epsilon=20).value > 0.7
    assert "correlation" in str(pairs().explain.stats.correlation("a", "b", **RANGES, epsilon=1))


def test_too_little_epsilon_says_nothing() -> None:
    found = pairs().stats.correlation("a", "b", **RANGES, epsilon=0.002)
    assert math.isnan(found.value)
    assert found.interval() == (-1, 1)
    assert found.test(0).p_value == 1


def test_one_column_has_no_correlation_with_itself() -> None:
    with pytest.raises(InvalidArgument) as refused:
        pairs().stats.correlation("a", "a", epsilon=1)
    assert refused.value.code == "duplicates"
