"""Levels where tests once missed them: a tiny group, rare values to one side, even tables in much noise, two-point pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.stats.common_means import p_of_several, p_of_two, table_of
from discreet.stats.equal_means import EqualMeans
from discreet.stats.laws import one_sided
from discreet.stats.means import DifferenceOf, MeanOf
from discreet.stats.tables_of_counts import NoiseOfCounts, distance, evened, fit_independent

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
    groups = two_groups(first, second, epsilon, 40, 0.475)
    assert not np.any(groups[0].size_is_known & groups[1].size_is_known)
    rejected = DifferenceOf(*groups).p_of_gap(np.zeros(40)) <= 0.05
    assert rejected.mean() <= 0.05 + margin(40)
    numbers = groups[0].shares.numbers[0]
    one = [MeanOf(type(g.shares)(numbers, TWO, 4, g.shares.noise), g.member, g.part) for g in groups]
    assert EqualMeans(one, 99).tested[1] > 0.001
    low, high = DifferenceOf(*one).interval(0.95)
    assert low <= 0 <= high
    assert high - low > 0.05


def test_two_groups_far_apart_are_told_apart_though_one_is_not_known_well() -> None:
    one, other = two_groups(3000, 60, 0.1, 20, 0.2)[0], two_groups(60, 3000, 0.1, 20, 0.8)[1]
    tables = table_of(one, "two-sided"), table_of(other, "two-sided")
    assert np.all(p_of_two(*tables, np.zeros(20)) < 0.01)
    assert np.all(p_of_two(*tables, np.full(20, 0.6)) > 0.001)
    assert p_of_several([(grid[:, 0], p[:, 0]) for grid, p in tables]) < 0.01


@pytest.mark.parametrize("alternative", ["less", "greater", "two-sided"])
def test_rare_values_to_one_side(alternative: Any) -> None:
    """40 of 2,000 rows are 1 on average. A symmetric law rejected "less" in 7.5% of all runs. False alarm 1e-4."""
    draw, runs = np.random.default_rng(6), 1500
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
    """2 × 2, 200 rows, ε = 0.1: the fitted table alone rejected 6.6% of 10,000 runs. False alarm 1e-4."""
    draw, runs, draws = np.random.default_rng(1), 3000, 99
    noise = NoiseOfCounts(laplace=10.0)
    rate = 1 - np.exp(-0.1)

    def whole(*shape: int) -> Any:
        return draw.geometric(rate, shape) - draw.geometric(rate, shape)

    counts = draw.multinomial(200, [0.25] * 4, size=runs).reshape(runs, 2, 2) + whole(runs, 2, 2) * 1.0
    fitted = fit_independent(counts, noise.variance)
    seen, p = distance(counts, fitted, noise.variance), np.zeros(runs)
    for null in (fitted, evened(fitted, noise.variance)[0]):
        drawn = draw.poisson(null[:, None], (runs, draws, 2, 2)) + whole(runs, draws, 2, 2) * 1.0
        found = distance(drawn, fit_independent(drawn, noise.variance), noise.variance)
        p = np.maximum(p, (1 + (found >= seen[:, None]).sum(1)) / (draws + 1))
    assert (p <= 0.05).mean() <= 0.05 + margin(runs, deviations=3.5)
