"""χ² tests: their level and power on simulated releases, and their release through the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

import discreet as dp
from discreet import testing
from discreet.queries.cells import CellCounts
from discreet.stats.inference.public_numbers import PublicNumbers, p_simulated
from discreet.stats.inference.tables_of_counts import (
    NoiseOfCounts,
    distance,
    fit_independent,
    p_of_independence,
    p_of_shares,
)
from discreet.stats.samples import cells

from ..refusing import refuses

CITIES = ["Acre", "Bled", "Cork", "Doha"]


def laplace(rng: Any, scale: float, shape: Any) -> Any:
    """Laplace noise on whole numbers."""
    return rng.geometric(1 - np.exp(-1 / scale), shape) - rng.geometric(1 - np.exp(-1 / scale), shape)


def rejected(shares: Any, size: int, epsilon: float, *, runs: int, seed: int) -> float:
    """How often independence is rejected at 5%, from simulated releases."""
    rng, noise = np.random.default_rng(seed), NoiseOfCounts(laplace=1 / epsilon)
    drawn = rng.multinomial(size, shares.reshape(-1), size=runs).reshape(runs, *shares.shape)
    counts = drawn + laplace(rng, 1 / epsilon, drawn.shape)
    return float(np.mean([p_of_independence(one.astype(float), noise, 99)[1] <= 0.05 for one in counts]))


SKEW = np.outer([0.7, 0.2, 0.08, 0.02], [0.9, 0.07, 0.02, 0.01])
ONE = np.outer([0.97, 0.01, 0.01, 0.01], [0.97, 0.01, 0.01, 0.01])


@pytest.mark.slow
@pytest.mark.parametrize("shares", [SKEW, ONE], ids=["skewed", "nearly one cell"])
@pytest.mark.parametrize(("size", "epsilon"), [(50, 0.1), (50, 1), (500, 0.3), (500, 5)])
def test_the_level_holds(shares: Any, size: int, epsilon: float) -> None:
    """400 runs: with a level of 5% more than 10.5% has a probability below 1e-5."""
    assert rejected(shares, size, epsilon, runs=400, seed=size + int(100 * epsilon)) < 0.105


@pytest.mark.slow
def test_it_has_power_where_many_cells_are_empty() -> None:
    """A statistic that weighs all cells alike rejects about half as often."""
    shares = np.full((6, 6), 0.0005)
    shares[:2, :2] = [[0.31, 0.19], [0.19, 0.31]]
    assert rejected(shares / shares.sum(), 300, 0.5, runs=100, seed=4) > 0.8


def test_without_noise_it_is_pearsons() -> None:
    counts = np.array([[120.0, 80, 30], [90, 110, 60]])
    found = distance(counts, fit_independent(counts, 0.0), 0.0)
    assert float(found) * counts.size == pytest.approx(stats.chi2_contingency(counts).statistic, rel=1e-3)
    p = p_of_independence(counts, NoiseOfCounts(laplace=0.01))[1]
    assert p == pytest.approx(stats.chi2_contingency(counts).pvalue, abs=2e-3)


def test_expected_shares() -> None:
    counts, noise = np.array([[500.0, 300, 200]]), NoiseOfCounts(laplace=1.0)
    assert p_of_shares(counts, np.array([[0.5, 0.3, 0.2]]), noise)[1] == 1.0
    p = p_of_shares(counts, np.array([[0.47, 0.32, 0.21]]), NoiseOfCounts(laplace=0.01))[1]
    assert p == pytest.approx(stats.chisquare(counts[0], [470, 320, 210]).pvalue, abs=0.02)


def test_noise_has_the_law_of_the_mechanism() -> None:
    for noise in (NoiseOfCounts(laplace=0.4), NoiseOfCounts(laplace=3.0), NoiseOfCounts(normal=4.0)):
        drawn = noise.imagined(PublicNumbers(1.0), 40_000)
        assert drawn.var() == pytest.approx(noise.variance, rel=0.06)
        assert np.array_equal(drawn, np.rint(drawn))


def test_simulated_counts_have_poissons_law() -> None:
    """50,000 draws: a p-value below 1e-6 is a false alarm with that probability."""
    for mean in (0.3, 4.0, 59.0, 61.0, 900.0):
        drawn = PublicNumbers(mean).poisson(np.array([mean]), 50_000)[:, 0]
        edges = np.unique(stats.poisson.ppf([0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99], mean))
        seen = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
        law = np.diff([0.0, *stats.poisson.cdf(edges, mean), 1.0])
        assert stats.chisquare(seen, law / law.sum() * 50_000).pvalue > 1e-6


def test_a_simulated_p_value_is_never_too_small() -> None:
    assert p_simulated(3.0, [1.0, 2.0, 3.0]) == 0.5
    assert p_simulated(9.0, np.zeros(99)) == 0.01


# --- through the door ---------------------------------------------------------------------------------------------


def visits(rows: int = 600, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    city = rng.choice(CITIES, rows)
    sick = np.where(rng.random(rows) < 0.5, np.where(city == "Acre", "flu", "cold"), rng.choice(["flu", "cold"], rows))
    return {
        "who": [f"p{k // 2}" for k in range(rows)],
        "city": city.tolist(),
        "diagnosis": sick.tolist(),
        "treated": (rng.random(rows) < 0.5).tolist(),
        "cost": rng.gamma(2, 100, rows),
    }


def opened(unit: Any = None, limit: Any = None, **given: Any) -> tuple[Any, Any]:
    protects = dp.row() if unit is None else unit
    ledger = dp.Ledger.open(":memory:", protects=protects, limit=limit or dp.Pure(epsilon=10))
    return dp.table(pa.table(visits()), ledger=ledger, **given), ledger


def test_the_line_of_the_tour_runs_as_written() -> None:
    table, ledger = opened()
    found = table.stats.chi2("city", "diagnosis", epsilon=1)
    assert 0 < found.p_value <= 1
    assert ledger.spent["ε"] == pytest.approx(1)
    assert "choices=" in str(found)
    assert found.value.shape == (16, 16)
    assert found.rejects(0.05) == (found.p_value <= 0.05)


@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
def test_counts_are_those_of_the_rows(unit: Any) -> None:
    table, _ = opened(unit, **({"rows_per_person": 2} if unit.column else {}))
    with testing.no_noise():
        found = table.stats.chi2("city", "treated", choices={"city": CITIES}, epsilon=1)
        hashed = table.stats.chi2("city", "treated", epsilon=1)
        shares = table.stats.chi2("city", expected=dict.fromkeys(CITIES, 0.25), epsilon=1)
    rows = visits()
    count = np.array([[sum(c == city and t == said for c, t in zip(rows["city"], rows["treated"], strict=True))
                       for said in (False, True)] for city in CITIES])  # fmt: skip
    if unit.column is None:
        assert np.array_equal(found.value, count)
        assert hashed.value.sum() == shares.value.sum() == 600
    else:
        assert found.value.sum() == hashed.value.sum() == shares.value.sum() == 300
    assert not found.advice
    assert found.not_private


def test_strong_dependence_is_found_and_delta_is_used() -> None:
    table, _ = opened(limit=dp.Approx(epsilon=10, delta=1e-5))
    both = {"city": CITIES, "diagnosis": ["flu", "cold"]}
    assert table.stats.chi2("city", "diagnosis", choices=both, epsilon=2).p_value < 0.01
    assert table.stats.chi2("city", "diagnosis", choices=both, epsilon=2, delta=1e-6).p_value < 0.05
    assert table.stats.chi2("diagnosis", expected={"flu": 0.9, "cold": 0.1}, epsilon=2).rejects()


@pytest.mark.slow
def test_explain_spends_nothing_and_a_repeated_request_is_free(tmp_path: Any) -> None:

    path = tmp_path / "v.parquet"
    pa.parquet.write_table(pa.table(visits()), path)
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=3))
    table = dp.table(path, ledger=ledger)
    assert "power 80%" in table.explain.stats.chi2("city", "diagnosis", epsilon=1)
    assert ledger.count == 0
    first, again = (table.stats.chi2("city", "diagnosis", epsilon=1) for _ in range(2))
    assert (again.replayed, again.p_value) == (True, first.p_value)
    assert ledger.count == 1
    other = table.stats.chi2("diagnosis", expected={"flu": 0.5, "cold": 0.5}, epsilon=1)
    asked_again = table.stats.chi2("diagnosis", expected={"flu": 0.9, "cold": 0.1}, epsilon=1)
    assert asked_again.replayed  # the same counts, tested against other shares
    assert asked_again.statistic > 2 * other.statistic


def test_refusals() -> None:
    table, ledger = opened()
    chi2 = table.stats.chi2
    with refuses(dp.InvalidArgument, "missing-argument"):
        chi2("city", epsilon=1)
    with refuses(dp.InvalidArgument, "duplicates"):
        chi2("city", "city", epsilon=1)
    with refuses(dp.InvalidArgument, "choices-missing"):
        chi2("city", "cost", epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        chi2("city", "treated", choices={"cost": [1, 2]}, epsilon=1)
    with refuses(dp.InvalidArgument, "out-of-range"):
        chi2("city", expected={"Acre": 0.5, "Bled": 0.6}, epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        chi2("city", expected={"Acre": 1}, epsilon=1)
    with refuses(dp.InvalidArgument, "conflicting-arguments"):
        chi2("city", expected={"Acre": 0.5, "Bled": 0.5}, choices={"city": CITIES}, epsilon=1)
    with refuses(dp.InvalidArgument, "too-large"):
        chi2("city", "cost", choices={"city": CITIES, "cost": [float(k) for k in range(2000)]}, epsilon=1)
    assert ledger.count == 0


def test_a_row_is_in_one_cell() -> None:
    assert CellCounts(3)([0, 2, 2, -1, 7]).tolist() == [1, 0, 2]
    assert CellCounts(3).sensitivity(dp.row()).amount == 1
    assert CellCounts(3).sensitivity(dp.row(neighbors="replace")).amount == 2


def test_hashes_are_public_and_fixed() -> None:
    assert [cells.bucket_of(one) for one in ("Acre", "Bled", 7, None, float("nan"))] == [7, 9, 7, -1, -1]
    assert len({cells.bucket_of(str(k)) for k in range(500)}) == cells.BUCKETS
