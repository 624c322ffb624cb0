"""Power and sample sizes, against simulation and the formulas without privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import Noise, NoisyShares
from discreet.stats.inference.proportions import SPENT, rejects_each
from discreet.stats.inference.two_proportions import Relation, largest_tails

from ..refusing import refuses
from .test_two_proportions import counts_of


def test_two_means_as_written() -> None:
    found = dp.stats.sample_size("two-means", effect=0.2, power=0.8, epsilon=1)
    assert isinstance(found, int)
    assert found.total == 2 * found.per_group == found
    assert found.without_privacy == 788  # 394 in each group, in every textbook
    assert found.without_privacy < found <= 1.15 * found.without_privacy
    assert 0.8 <= found.power < 0.81
    assert "rows" in str(found)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("test", "effect", "without"),
    [("mean", 0.5, 34), ("paired", 0.2, 199), ("chi2", 0.3, 88), ("two-proportions", (0.4, 0.6), 194)],
)
def test_without_privacy_as_in_textbooks(test: Any, effect: Any, without: int) -> None:
    found = dp.stats.sample_size(test, effect=effect, epsilon=50)
    assert found.without_privacy == pytest.approx(without, abs=2)
    assert without - 2 <= found < 1.4 * without + 4  # few rows: rare values may hide in the range


@pytest.mark.slow
def test_more_privacy_needs_more_rows() -> None:
    sizes = [
        dp.stats.sample_size("proportion", effect=(0.5, 0.6), epsilon=e, neighbors="replace") for e in (0.1, 0.3, 3)
    ]
    assert sizes[0] > sizes[1] > sizes[2] >= sizes[2].without_privacy
    assert dp.stats.sample_size("mean", effect=0.2, epsilon=1, range_in_deviations=20) > dp.stats.sample_size(
        "mean", effect=0.2, epsilon=1
    )


def test_the_side_matters() -> None:
    ask: Any = {"n": 100, "epsilon": 1.0}
    up = dp.stats.power("proportion", effect=(0.5, 0.6), alternative="greater", **ask)
    assert up == pytest.approx(dp.stats.power("proportion", effect=(0.5, 0.4), alternative="less", **ask), abs=1e-6)
    assert up > dp.stats.power("proportion", effect=(0.5, 0.6), **ask)
    assert dp.stats.power("proportion", effect=(0.5, 0.6), alternative="less", **ask) < 0.01


def test_power_of_one_proportion_is_what_happens() -> None:
    """20,000 runs: within two points."""
    rng = np.random.default_rng(23)
    n, null, other, epsilon, runs = 120, 0.3, 0.42, 0.7, 20_000
    x = rng.binomial(n, other, runs)
    yes, no = x + rng.laplace(0, 1 / epsilon, runs), n - x + rng.laplace(0, 1 / epsilon, runs)
    found = rejects_each(yes, no, null, Noise(laplace=1 / epsilon), miss=(1 - SPENT) * 0.025, spent=SPENT * 0.05).mean()
    assert found == pytest.approx(dp.stats.power("proportion", n=n, effect=(null, other), epsilon=epsilon), abs=0.02)


def test_power_of_two_means_is_what_happens() -> None:
    """1,500 runs: two points, and five standard errors."""
    rng = np.random.default_rng(29)
    runs, size, epsilon, width = 1500, 433, 1.0, 6.0
    numbers = []
    for mean in (-0.1, 0.1):
        part = np.clip((rng.normal(mean, 1, (runs, size)) + width / 2) / width, 0, 1)
        numbers += [((1 - part) ** 2).sum(1), (2 * part * (1 - part)).sum(1), (part**2).sum(1)]
    released = np.stack(numbers, -1) + rng.laplace(0, 1 / epsilon, (runs, 6))
    pairs = ((0, 0), (0, 1), (1, 1), (2, 2), (2, 3), (3, 3))
    shares = NoisyShares(released, pairs, 4, Noise(laplace=1 / epsilon))
    one = MeanOf(shares, np.array([1.0, 1, 0, 0]), np.array([0.0, 1, 0, 0]))
    other = MeanOf(shares, np.array([0.0, 0, 1, 1]), np.array([0.0, 0, 0, 1]))
    found = (DifferenceOf(one, other).p_of_gap(np.zeros(runs)) <= 0.05).mean()
    planned = dp.stats.power("two-means", n=2 * size, effect=0.2, epsilon=epsilon)
    assert found == pytest.approx(planned, abs=0.02 + 5 * 0.4 / np.sqrt(runs))


@pytest.mark.slow
def test_power_of_two_proportions_is_what_happens() -> None:
    """1,500 runs: two points, and five standard errors."""
    rng = np.random.default_rng(31)
    rejected = 0
    for _ in range(1500):
        upper, lower = largest_tails(counts_of((300, 300), (0.3, 0.42), 1.0, rng), Relation(1.0, 0.0), SPENT * 0.05)
        rejected += 2 * min(upper, lower) <= (1 - SPENT) * 0.05
    planned = dp.stats.power("two-proportions", n=600, effect=(0.3, 0.42), epsilon=1)
    assert rejected / 1500 == pytest.approx(planned, abs=0.02 + 5 * 0.4 / np.sqrt(1500))


def test_power_of_chi2_is_what_happens() -> None:
    """10,000 runs of the statistic: within two points."""
    rng = np.random.default_rng(37)
    rows, cells, runs = 400, 4, 10_000
    p, other = np.full(4, 0.25), np.array([0.3, 0.3, 0.2, 0.2])

    def statistic(law: Any) -> Any:
        drawn = rng.multinomial(rows, law, runs) + rng.laplace(0, 1, (runs, cells))
        return ((drawn - p * drawn.sum(1, keepdims=True)) ** 2).sum(1) * cells / rows

    found = (statistic(other) > np.quantile(statistic(p), 0.95)).mean()
    assert found == pytest.approx(dp.stats.power("chi2", n=rows, effect=0.2, cells=4, epsilon=1), abs=0.02)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("not-an-option", {"test": "anova"}),
        ("not-an-option", {"neighbors": "swap"}),
        ("not-an-option", {"alternative": "more"}),
        ("wrong-shape", {"effect": (0.1, 0.2)}),
        ("wrong-shape", {"test": "proportion"}),
        ("out-of-range", {"test": "proportion", "effect": (0.1, 1.2)}),
        ("out-of-range", {"test": "proportion", "effect": (0.1, 0.1)}),
        ("out-of-range", {"effect": 0}),
        ("out-of-range", {"effect": 1e-9}),
    ],
)
def test_refusals(code: str, wrong: dict[str, Any]) -> None:
    with refuses(dp.InvalidArgument, code):
        dp.stats.sample_size(**({"test": "chi2", "effect": 0.2, "epsilon": 1} | wrong))
