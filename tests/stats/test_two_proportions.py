"""Two proportions: the law of their difference against enumeration, the level, and real releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import discreet as dp
from discreet import testing
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.inference.proportions import SPENT
from discreet.stats.inference.two_proportions import (
    Counts,
    Relation,
    ShareGap,
    ShareRatio,
    largest_tails,
    tails,
    unknowns,
)

from .test_proportions import coin, opened


def test_the_law_of_a_difference_against_enumeration() -> None:
    """With normal noise, the tail is a double sum of normal tails."""
    sizes, shares, weights, spread = (15, 22), (0.3, 0.1), (-1 / 15, 1 / 20), 0.8
    first, second = coin(sizes[0], shares[0]), coin(sizes[1], shares[1])
    x = weights[0] * (np.arange(sizes[0] + 1) - sizes[0] * shares[0])
    y = weights[1] * (np.arange(sizes[1] + 1) - sizes[1] * shares[1])
    noise = spread * math.sqrt(sum(w**2 * ((1 - s) ** 2 + s**2) for w, s in zip(weights, shares, strict=True)))
    column = [np.array([[one], [two]], dtype=float) for one, two in (shares, sizes, weights)]
    for total in (-0.4, -0.05, 0.0, 0.2, 0.5):
        exact = (first[:, None] * second * ndtr(-(total - x[:, None] - y) / noise)).sum()
        assert tails(np.array([total]), *column, Noise(normal=spread))[0] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("scale", [0.2, 1.0, 10.0])
def test_the_law_of_a_difference_against_draws(scale: float) -> None:
    """200,000 draws: 5 standard errors."""
    rng = np.random.default_rng(7)
    n = 200_000
    sizes, shares = (40, 25), (0.2, 0.5)
    weights = (-1 / 40, 1 / 25)
    total = np.zeros(n)
    for size, share, weight in zip(sizes, shares, weights, strict=True):
        x = rng.binomial(size, share, n)
        yes, no = x + rng.laplace(0, scale, n), size - x + rng.laplace(0, scale, n)
        total += weight * (yes * (1 - share) - no * share)
    column = [np.array([[one], [two]], dtype=float) for one, two in (shares, sizes, weights)]
    for at in (-0.2, 0.03, 0.25, 0.6):
        exact = float(tails(np.array([at]), *column, Noise(laplace=scale))[0])
        assert (total > at).mean() == pytest.approx(exact, abs=5 * math.sqrt(max(exact, 1e-5) / n))


def counts_of(sizes: tuple[int, int], shares: tuple[float, float], epsilon: float, rng: Any) -> Counts:
    x = [rng.binomial(size, share) for size, share in zip(sizes, shares, strict=True)]
    drawn = rng.laplace(0, 1 / epsilon, 4)
    return Counts(
        (sizes[0] - x[0] + drawn[0], sizes[1] - x[1] + drawn[1]), (x[0] + drawn[2], x[1] + drawn[3]), Noise(1 / epsilon)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "share", "epsilon"),
    [
        ((150, 150), 0.3, 1.0),
        ((100, 300), 0.05, 2.0),
        ((50, 50), 0.5, 1.0),
        ((60, 60), 0.02, 5.0),
        ((400, 400), 0.1, 0.3),
    ],
)
def test_the_level_holds(sizes: tuple[int, int], share: float, epsilon: float) -> None:
    """300 runs at the level 0.05: more than 36 rejections have a probability below 1e-6."""
    rng = np.random.default_rng(11)
    rejected = 0
    for _ in range(300):
        upper, lower = largest_tails(counts_of(sizes, (share, share), epsilon, rng), Relation(1.0, 0.0), SPENT * 0.05)
        rejected += 2 * min(upper, lower) <= (1 - SPENT) * 0.05
    assert rejected <= 36


@pytest.mark.slow
def test_intervals_have_what_is_not_rejected() -> None:
    counts = Counts((800.0, 740.0), (200.3, 260.0), Noise(laplace=1.0))
    gap, ratio = ShareGap(counts, None), ShareRatio(counts)
    low, high = gap.interval(0.95)
    assert 0 < low < gap.value < high
    assert gap.p_value(low - 1e-3, "two-sided") < 0.05 < gap.p_value(low + 1e-3, "two-sided")
    low, high = ratio.interval(0.95)
    assert 1 < low < ratio.value < high
    assert ratio.p_value(low / 1.01, "two-sided") < 0.05 < ratio.p_value(low * 1.01, "two-sided")
    assert gap.p_value(0.0, "greater") < 0.01 < 0.99 < gap.p_value(0.0, "less")
    assert gap.p_value(1.5, "greater") == 1
    assert ratio.p_value(-1.0, "greater") == 0
    assert ratio.p_value(0.0, "less") == 1


@pytest.mark.slow
def test_no_rows_say_nothing() -> None:
    nothing = Counts((-1.0, 1.0), (0.5, -2.0), Noise(laplace=1.0))
    assert ShareGap(nothing, None).interval(0.95) == (-1.0, 1.0)
    assert ShareGap(nothing, None).p_value(0.0, "two-sided") > 0.2
    assert ShareRatio(nothing).interval(0.95) == (0.0, math.inf)


@pytest.mark.slow
def test_the_true_unknowns_are_among_those_tried() -> None:
    """300 runs at a miss of 0.03: more than 31 have a probability below 1e-6."""
    rng, missed = np.random.default_rng(13), 0
    for _ in range(300):
        shares, sizes = unknowns(counts_of((80, 120), (0.2, 0.3), 1.0, rng), Relation(1.0, 0.1), 0.03)
        missed += not (
            shares.min() <= 0.2 <= shares.max()
            and sizes[0].min() <= 80 <= sizes[0].max()
            and sizes[1].min() <= 120 <= sizes[1].max()
        )
    assert missed <= 31


TRIAL = {
    "arm": np.arange(600) % 2 == 1,
    "well": (np.arange(600) % 2 == 1) & (np.arange(600) % 3 > 0),
    "who": np.arange(600),
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
def test_a_comparison_of_conditions_is_one_release(unit: dp.Unit) -> None:
    ledger = opened(unit)
    trial = dp.table(TRIAL, ledger=ledger, version="1", **({"rows_per_person": 1} if unit.column else {}))
    assert "costs ε = 1" in str(trial.explain.stats.compare("well", by="arm", epsilon=1))
    assert ledger.count == 0
    with testing.no_noise():
        found = trial.stats.compare("well", by="arm", epsilon=1)
    assert ledger.count == 1
    assert isinstance(found._inference, ShareGap)
    assert found.difference == pytest.approx(2 / 3)
    assert found.p_value < 1e-4
    assert float(found.error(0.95, of="value")) < float(found.error(0.95))
    ratio = trial.stats.risk_ratio("well", by={"arm": [True, False]}, epsilon=50)
    assert ratio.value < 0.05
    assert ratio.interval(0.95)[1] < 0.2
