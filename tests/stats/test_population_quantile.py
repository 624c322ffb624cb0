"""A quantile of the population: coverage with the noise of the mechanism, and its release through the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.quantiles.cumulative import CumulativeCounts
from discreet.queries.space import Integers
from discreet.stats.quantile_methods import QuantileOf

from ..refusing import refuses


def data(rows: int = 3000) -> Any:
    rng = np.random.default_rng(1)
    return pa.table({
        "who": [f"p{k // 2}" for k in range(rows)], "cost": rng.exponential(100, rows), "city": ["Acre"] * rows,
    })  # fmt: skip


def opened(unit: Any = None) -> tuple[Any, Any]:
    protects = dp.row() if unit is None else unit
    ledger = dp.Ledger.open(":memory:", protects=protects, limit=dp.Pure(epsilon=20))
    return dp.table(data(), ledger=ledger, **({"rows_per_person": 2} if protects.column else {})), ledger


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("rows", "epsilon"), [(60, 5), (1000, 1)])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_cover_the_quantile_of_the_population(rows: int, epsilon: float, share: float) -> None:
    """150 runs: with a coverage of 95% less than 87% has a probability below 1e-4. Seeds of the data are fixed."""
    rng, true = np.random.default_rng(rows), -100 * np.log(1 - share)
    made = CumulativeCounts.for_guarantee(dp.Pure(epsilon=epsilon), space=Integers(0, 1000), unit=dp.row())
    hits = 0
    for _ in range(150):
        values = np.clip(np.rint(rng.exponential(100, rows)), 0, 1000).astype(int)
        low, high = QuantileOf(made.read(made._draw(values)), share, 0.0, 1.0).interval(0.95)
        hits += low <= true <= high
    assert hits / 150 >= 0.87


@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
def test_it_is_one_release(unit: Any) -> None:
    table, ledger = opened(unit)
    assert table.explain.stats.quantile("cost", 0.5, between=(0, 1000), epsilon=1)
    assert ledger.count == 0
    found = table.stats.quantile("cost", 0.5, between=(0, 1000), epsilon=1)
    assert ledger.count == 1
    assert ledger.spent["ε"] == pytest.approx(1)
    low, high = found.interval(0.95)
    assert low <= 100 * np.log(2) <= high
    assert high - low < 60
    inner = found.error(0.95, of="value")
    assert float(inner) <= float(found.error(0.95))
    assert found.test(2000).p_value < 1e-6
    assert found.test(round(found.value)).p_value > 0.5
    assert not found.assumed


def test_without_noise_it_is_the_quantile_of_the_rows() -> None:
    table, _ = opened()
    with testing.no_noise():
        found = table.stats.quantile("cost", 0.75, between=(0, 1000), epsilon=1)
    assert found.value == pytest.approx(np.quantile(data()["cost"].to_numpy(), 0.75), abs=1)
    assert table.stats.quantile("cost", 0.75, epsilon=1).assumed


def test_refusals() -> None:
    table, ledger = opened()
    with refuses(dp.InvalidArgument, "column-type"):
        table.stats.quantile("city", 0.5, epsilon=1)
    with refuses(dp.InvalidArgument, "out-of-range"):
        table.stats.quantile("cost", 1, between=(0, 1), epsilon=1)
    assert ledger.count == 0


def test_an_explanation_says_how_far_the_interval_would_reach() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=9))
    table = dp.table({"x": np.arange(50.0)}, ledger=ledger)
    text = str(table.explain.stats.quantile("x", 0.5, between=(0, 50), epsilon=1))
    assert "costs ε = 1" in text
    assert text.count("a 95% interval reaches about from quantile") == 2
    assert len(ledger.entries()) == 0
