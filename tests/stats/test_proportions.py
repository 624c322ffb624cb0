"""Proportions: the law by enumeration, the power next to the best of all private tests, and real releases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import discreet as dp
from discreet import testing
from discreet.mechanisms.noise.smoothed import SmoothedCount
from discreet.stats.inference.means import MeanOf
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.inference.proportions import (
    SPENT,
    ShareOfKnown,
    ShareOfUnknown,
    SmoothedNoise,
    TotalLaw,
    rejects_each,
    tail_of_two,
)

from ..refusing import refuses

LAWS = [SmoothedNoise(laplace=0.3), SmoothedNoise(laplace=2.0), SmoothedNoise(normal=1.5)]


def masses(law: SmoothedNoise, reach: int) -> tuple[Any, Any]:
    """Whole numbers and their probabilities, from the formula of the law."""
    at = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(at) / law.laplace) if law.laplace else np.exp(-(at**2) / (2 * law.normal**2))
    return at, weights / weights.sum()


def coin(n: int, share: float) -> Any:
    """Binomial probabilities, from whole numbers."""
    return np.array([math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)])


def unknown(yes: float, no: float, noise: Noise) -> ShareOfUnknown:
    from discreet.stats.inference.noisy_shares import NoisyShares

    shares = NoisyShares(np.array([no, yes]), ((0, 0), (1, 1)), 2, noise)
    return ShareOfUnknown(yes, no, noise, MeanOf(shares, np.ones(2), np.array([0.0, 1.0])))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_smoothed_noise_has_the_law_it_says(law: SmoothedNoise) -> None:
    at, mass = masses(law, 300)
    for point in (-9.3, -1.5, -0.2, 0.0, 0.4, 0.5, 3.7):
        exact = (mass * np.clip(point - at + 0.5, 0, 1)).sum()
        assert law.below(point) == pytest.approx(exact, rel=1e-9)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("n", "share"), [(1, 0.5), (12, 0.1), (40, 0.37), (40, 0.98)])
def test_the_level_is_exact(law: SmoothedNoise, n: int, share: float) -> None:
    """All noisy counts are enumerated. Between two of them, the p-value is linear in the uniform part."""
    at, mass = masses(law, 200)
    total = np.convolve(coin(n, share), mass)
    for level in (0.01, 0.05, 0.3):
        for alternative in ("greater", "less", "two-sided"):
            reached = 0.0
            for place, chance in enumerate(total):
                if chance < 1e-13:
                    continue
                ends = np.linspace(-0.5, 0.5, 3) + (at[0] + place)  # a two-sided p-value may turn in the middle
                p = [ShareOfKnown(float(z), n, law).p_value(share, alternative) for z in ends]
                for low, high in ((p[0], p[1]), (p[1], p[2])):
                    below, above = sorted((low, high))
                    reached += chance / 2 * float(np.clip((level - below) / max(above - below, 1e-300), 0, 1))
            assert reached == pytest.approx(level, abs=2e-3 if alternative == "two-sided" else 1e-9)


@pytest.mark.parametrize(
    ("n", "null", "other", "epsilon"), [(12, 0.4, 0.7, 1.0), (20, 0.9, 0.95, 0.3), (8, 0.5, 0.9, 3.0)]
)
def test_no_private_test_is_more_powerful(n: int, null: float, other: float, epsilon: float) -> None:
    """The most powerful private test is the solution of a linear program: its power is ours."""
    level, grow = 0.05, math.exp(epsilon)
    rows: list[Any] = [coin(n, null)]
    bounds = [level]
    for k in range(n):
        for a, b in ((k, k + 1), (k + 1, k)):
            row = np.zeros(n + 1)
            row[a], row[b] = 1, -grow
            rows += [row, np.where(row == 1, grow, np.where(row == -grow, -1, 0))]
            bounds += [0.0, grow - 1]
    best = -linprog(-coin(n, other), A_ub=np.array(rows), b_ub=np.array(bounds), bounds=(0, 1)).fun
    ours = dp.stats.power(
        "proportion",
        n=n,
        effect=(null, other),
        epsilon=epsilon,
        level=level,
        alternative="greater",
        neighbors="replace",
    )
    assert ours == pytest.approx(best, abs=1e-7)
    # and not because everything is: half of the noise would break the promise
    more = dp.stats.power(
        "proportion", n=n, effect=(null, other), epsilon=2 * epsilon, alternative="greater", neighbors="replace"
    )
    assert more > best + 1e-3


def test_an_interval_has_what_is_not_rejected() -> None:
    for found in (
        ShareOfKnown(31.2, 90, LAWS[1]),
        unknown(31.2, 59.1, Noise(laplace=1.0)),
        unknown(9.0, 80.0, Noise(normal=2.0)),
    ):
        low, high = found.interval(0.95)
        assert 0 < low < found.value < high < 1
        assert found.p_value(low - 1e-4, "two-sided") < 0.05 < found.p_value(low + 1e-4, "two-sided")
        assert found.p_value(high + 1e-4, "two-sided") < 0.05 < found.p_value(high - 1e-4, "two-sided")
        inner = found.interval(0.95, sampled=False)
        assert low < inner[0] < inner[1] < high


@pytest.mark.parametrize("found", [ShareOfKnown(-4.0, 5, LAWS[1]), unknown(-3.0, -2.0, Noise(laplace=1.0))])
def test_few_rows_and_odd_hypotheses(found: Any) -> None:
    low, high = found.interval(0.95)
    assert low == 0
    assert high <= 1
    assert found.p_value(1.5, "two-sided") == 0
    assert found.p_value(1.5, "greater") == 1
    assert found.p_value(-0.5, "less") == 1
    assert 0 <= found.p_value(0.0, "two-sided") <= 1


def test_the_sum_of_two_noises() -> None:
    """Against numeric integration."""
    grid = (np.arange(-40000, 40000) + 0.5) * 0.002
    for first, second in ((0.7, 0.3), (0.5, 0.5), (1.0, 0.0), (0.50001, 0.49999)):
        inner = np.exp(-np.abs(grid)) / 2 * 0.002
        for at in (-1.3, 0.4, 5.0):
            rest = (at - first * grid) / max(second, 1e-12)
            tail = np.where(rest > 0, np.exp(-np.abs(rest)) / 2, 1 - np.exp(-np.abs(rest)) / 2)
            assert tail_of_two(Noise(laplace=1.0), at, first, second) == pytest.approx((inner * tail).sum(), abs=1e-5)


@pytest.mark.parametrize(("n", "share", "epsilon"), [(6, 0.3, 1.0), (12, 0.5, 0.3), (12, 0.05, 3.0)])
def test_the_level_holds_if_the_number_of_rows_is_unknown(n: int, share: float, epsilon: float) -> None:
    """The whole law: every count, and noise at 60×60 equally probable points, which is off by at most 0.003."""
    noise = Noise(laplace=1 / epsilon)
    level = (np.arange(60) + 0.5) / 60
    at = -np.sign(level - 0.5) * np.log1p(-2 * np.abs(level - 0.5)) / epsilon
    x, one, other = (grid.reshape(-1) for grid in np.meshgrid(np.arange(n + 1), at, at, indexing="ij"))
    chance = coin(n, share)[x.astype(int)] / 3600
    yes, no = x + one, n - x + other
    upper = rejects_each(yes, no, share, noise, miss=(1 - SPENT) * 0.025, spent=SPENT * 0.05)
    lower = rejects_each(no, yes, 1 - share, noise, miss=(1 - SPENT) * 0.025, spent=SPENT * 0.05)
    reached = float(chance[upper | lower].sum())
    assert 0.02 < reached < 0.053
    # an interval and a p-value say the same
    for place in (0, len(x) // 3, len(x) - 1):
        p = unknown(yes[place], no[place], noise).p_value(share, "two-sided")
        assert (p <= 0.05) == bool(upper[place] | lower[place]) or abs(p - 0.05) < 1e-3


def test_the_law_of_a_total() -> None:
    """Against 200,000 draws: 5 standard errors."""
    rng = np.random.default_rng(5)
    n, share, noise = 30, 0.2, Noise(laplace=2.0)
    x = rng.binomial(n, share, 200_000)
    yes, no = x + rng.laplace(0, 2, len(x)), n - x + rng.laplace(0, 2, len(x))
    law = TotalLaw(np.array([n]), share, noise)
    for at in (-3.0, 1.0, 6.0):
        exact = float(law.beyond(np.array([[at]]))[0])
        assert (law.total(yes, no)[0] > at).mean() == pytest.approx(exact, abs=5 * math.sqrt(exact / len(x)))


# --- through the door ------------------------------------------------------------------------------------------------


def opened(unit: Any) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=100, delta=1e-3))


VOTES = {"yes": np.arange(400) % 4 == 0, "who": np.arange(400) // 2}


def test_replaced_rows_release_one_count() -> None:
    ledger = opened(dp.row(neighbors="replace"))
    votes = dp.table(VOTES, ledger=ledger, version="1")
    planned = str(votes.explain.stats.proportion("yes", epsilon=1))
    assert "SmoothedCount" in planned
    assert "costs ε = 1" in planned
    assert ledger.count == 0
    with testing.no_noise():
        exact = votes.stats.proportion("yes", epsilon=1)
        again = votes.stats.proportion("yes", epsilon=1)
    assert again.replayed
    assert ledger.count == 1
    assert exact.value == pytest.approx(0.25, abs=1 / 400)
    assert isinstance(exact._inference, ShareOfKnown)
    assert exact._inference.rows == 400
    assert exact.test(0.25).p_value > 0.5
    assert exact.test(0.5, alternative="less").rejects(0.001)


def test_an_unknown_number_of_rows_releases_two_counts() -> None:
    for unit in (dp.row(), dp.row(neighbors="replace")):
        votes = dp.table({"yes": [True, False, None] * 100}, ledger=opened(unit), types={"yes": "boolean"})
        with testing.no_noise():
            found = votes.stats.proportion("yes", epsilon=1)
            filled = votes.stats.proportion("yes", epsilon=1, complete=True)
        assert isinstance(found._inference, ShareOfUnknown)
        assert found.value == pytest.approx(1 / 2)
        assert filled.value == pytest.approx(1 / 3, abs=2 / 300)
        assert isinstance(filled._inference, ShareOfKnown) == (unit.neighbors == "replace")


def test_a_condition_makes_the_number_of_rows_private() -> None:
    votes = dp.table(VOTES, ledger=opened(dp.row(neighbors="replace")))
    found = votes.stats.proportion("yes", epsilon=1, where="who < 100")
    assert isinstance(found._inference, ShareOfUnknown)


def test_people_with_several_rows_are_the_sample() -> None:
    votes = dp.table(VOTES, ledger=opened(dp.person("who")), rows_per_person=2)
    assert isinstance(votes.stats.proportion("yes", epsilon=1)._inference, MeanOf)
    ratio = votes.stats.risk_ratio("yes", by={"who": [1, 2]}, epsilon=1)
    assert ratio.interval(0.95)[0] >= 0


def test_a_delta_buys_gaussian_noise_where_it_is_smaller() -> None:
    unit = dp.row(neighbors="replace")
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=100, delta=0.3))
    votes = dp.table(VOTES, ledger=ledger)
    assert "Laplace" in str(votes.explain.stats.proportion("yes", epsilon=0.5, delta=1e-6))
    assert "Gaussian" in str(votes.explain.stats.proportion("yes", epsilon=0.5, delta=0.1))
    assert votes.stats.proportion("yes", epsilon=0.5, delta=0.1).interval(0.95)[0] > 0


def test_refusals() -> None:
    votes = dp.table(VOTES, ledger=opened(dp.row()))
    with refuses(dp.InvalidArgument, "missing-argument"):
        votes.stats.proportion("who", epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        votes.stats.proportion("yes", epsilon=1, complete="yes")
    with refuses(dp.InvalidArgument, "column-type"):
        votes.stats.risk_ratio("who", by="yes", epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        votes.stats.risk_ratio("yes", by={"who": [1, 2, 3]}, epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        SmoothedCount(dp.Laplace(scale=1))


@pytest.mark.slow
def test_a_smoothed_count_keeps_its_promise_and_scatters_as_it_says() -> None:
    """4,000 draws: the share beyond each point within 5 standard errors."""
    made = SmoothedCount.for_guarantee(dp.Pure(epsilon=0.5), sensitivity=dp.Sensitivity(1, grain=1))
    assert made.noise.scale == 2
    assert made.guarantee(dp.Sensitivity(1, grain=1)).epsilon_at(delta=0) == pytest.approx(0.5)
    drawn = np.array([made._draw(7) for _ in range(4_000)]) - 7
    law = SmoothedNoise.of(made.noise)
    for at in (-4.2, -0.3, 0.1, 2.6):
        chance = float(law.below(at))
        assert (drawn <= at).mean() == pytest.approx(chance, abs=5 * math.sqrt(chance * (1 - chance) / len(drawn)))
