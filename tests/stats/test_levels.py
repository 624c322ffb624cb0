"""Levels where tests once missed them: a tiny group, rare values to one side, even tables in much noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.stats.inference.common_means import p_of_several, p_of_two, table_of
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.laws import one_sided
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.tables_of_counts import NoiseOfCounts, evened

from .simulated import RANGE, TWO, margin, noisy, products


def two_groups(first: int, second: int, epsilon: float, runs: int, mean: float) -> tuple[MeanOf, MeanOf]:
    draw = np.random.default_rng(first + second)
    exact = [products(np.clip(mean + 0.1 * draw.normal(size=(runs, size)), 0, 1)) for size in (first, second)]
    shares = noisy(np.concatenate(exact, -1), TWO, 4, epsilon, draw)
    places = np.arange(4)
    one, other = (MeanOf(shares, (places // 2 == g) * 1.0, (places == 2 * g + 1) * 1.0) for g in (0, 1))
    return one, other


@pytest.mark.parametrize(("first", "second", "epsilon"), [(5000, 3, 1.0), (500, 0, 1.0), (2000, 20, 0.1)])
def test_a_tiny_group_next_to_a_large_one(first: int, second: int, epsilon: float) -> None:
    """A coarse grid of common means missed the mean of the large group, and rejected every time."""
    groups = two_groups(first, second, epsilon, 6, 0.475)
    assert not np.any(groups[0].size_is_known & groups[1].size_is_known)
    rejected = DifferenceOf(*groups).p_of_gap(np.zeros(6)) <= 0.05
    assert rejected.sum() <= 3  # false alarm below 1e-4
    numbers = groups[0].shares.numbers[0]
    one = [MeanOf(type(g.shares)(numbers, TWO, 4, g.shares.noise), g.member, g.part) for g in groups]
    assert EqualMeans(one, 99).tested[1] > 0.001
    assert float(DifferenceOf(*one).p_of_gap(0.3)) > 1e-4


def test_two_groups_far_apart_are_told_apart_though_one_is_not_known_well() -> None:
    one, other = two_groups(3000, 60, 0.1, 4, 0.2)[0], two_groups(60, 3000, 0.1, 4, 0.8)[1]
    tables = table_of(one, "two-sided"), table_of(other, "two-sided")
    assert np.all(p_of_two(*tables, np.zeros(4)) < 0.01)
    assert np.all(p_of_two(*tables, np.full(4, 0.6)) > 0.001)
    assert p_of_several([(grid[:, 0], p[:, 0]) for grid, p in tables]) < 0.01


@pytest.mark.parametrize("alternative", ["less", "greater", "two-sided"])
def test_rare_values_to_one_side(alternative: Any) -> None:
    """40 of 2,000 rows are 1 on average. A symmetric law rejected "less" in 7.5% of all runs. False alarm 1e-4."""
    draw, runs = np.random.default_rng(6), 1200
    exact = products((draw.random((runs, 2000)) < 0.02) * 1.0)
    mean = MeanOf(noisy(exact, RANGE, 2, 2.0, draw), np.ones(2), np.array([0.0, 1.0]))
    p = mean.p_of_mean(np.full(runs, 0.02), alternative)
    assert (p <= 0.05).mean() <= 0.05 + margin(runs, deviations=3.5)


def test_one_sided_values_are_ordered_and_symmetric_without_skewness() -> None:
    both = np.geomspace(1e-9, 1, 30)
    assert one_sided(both, True, 0.0) == pytest.approx(both / 2)
    assert one_sided(both, False, 0.3) == pytest.approx(1 - both / 2)
    assert np.all(np.diff(one_sided(both, True, 0.1)) > 0)


def test_an_even_table_in_much_noise() -> None:
    """The fitted table alone rejected 6.6% of 10,000 runs (bench/statistics/stats_levels.py): with much noise the other
    one has more rows and more even margins, and with little noise hardly.
    """
    fitted = 500 * np.outer([0.7, 0.3], [0.6, 0.4])
    variance = NoiseOfCounts(laplace=20.0).variance
    found, part = evened(fitted, variance)
    assert found.sum() == pytest.approx(500 + 1.5 * np.sqrt(4 * variance))
    assert part.item() == pytest.approx(3 * np.sqrt(4 * variance) / 500, rel=0.01)
    assert 0.5 < (found.sum(1) / found.sum())[0] < 0.65
    found, part = evened(fitted, NoiseOfCounts(laplace=0.2).variance)
    assert found.sum() == pytest.approx(500, rel=0.01)
    assert part.item() < 0.04
