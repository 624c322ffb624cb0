"""A test that is looked at while rows arrive: a martingale by enumeration, the level at 1,000 looks, one charge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.counts.step_tallies import StepTallies, tally
from discreet.stats.inference.always_valid import Mixture

from ..refusing import refuses
from .test_proportions import coin, opened

MIXTURES = [Mixture(laplace=1.0), Mixture(laplace=20.0), Mixture(normal=3.0)]


def test_likelihood_ratios_have_the_mean_one() -> None:
    """All outcomes of 6 and 9 rows, without noise: the mean of the mixture is 1."""
    first, second = 0.3, 0.55
    x, y = np.meshgrid(np.arange(7), np.arange(10), indexing="ij")
    counts = np.stack([6 - x, x, 9 - y, y], -1)
    found = np.exp(Mixture(laplace=1.0).log_evidence(counts, np.zeros(x.shape), first, second))
    assert (coin(6, first)[:, None] * coin(9, second) * found).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_noise_is_divided_out(mixture: Mixture) -> None:
    """The mean of exp(size·noise), from the probabilities of whole-number noise."""
    at = np.arange(-4000, 4001)
    energy = np.abs(at) / mixture.laplace if mixture.laplace else at**2 / (2 * mixture.normal**2)
    mass = np.exp(-energy) / np.exp(-energy).sum()
    for size in mixture.moves[0][::9, 1]:
        log = np.log((mass * np.exp(size * at - 0.0)).sum()) if abs(size) < 0.15 else None
        if log is None:
            near = np.abs(at) < 500
            log = np.log((mass[near] * np.exp(size * at[near])).sum())
        assert float(mixture.log_mean(np.array(size))) >= log - 1e-12
        assert float(mixture.log_mean(np.array(size))) == pytest.approx(log, rel=1e-6, abs=1e-12)


def drawn_counts(rng: Any, runs: int, looks: int, rows: int, shares: tuple[float, float], epsilon: float) -> Any:
    """Sums over looks of noisy counts, for many runs."""
    yes = [rng.binomial(rows, share, (runs, looks)) for share in shares]
    counts = np.stack([rows - yes[0], yes[0], rows - yes[1], yes[1]], -1)
    keep = -math.expm1(-epsilon)
    counts += rng.geometric(keep, counts.shape) - rng.geometric(keep, counts.shape)
    return np.cumsum(counts, 1).astype(float)


@pytest.mark.slow
def test_peeking_a_thousand_times_keeps_the_level() -> None:
    """300 runs of 1,000 looks. The evidence against the true proportions is at least that against the hypothesis. At
    the level 0.05, more than 36 rejections have a probability below 1e-6.
    """
    rng, mixture, looks = np.random.default_rng(17), Mixture(laplace=1.0), np.arange(1, 1001)
    counts = drawn_counts(rng, 300, 1000, 5, (0.2, 0.2), 1.0)
    most = np.array([mixture.log_evidence(run, looks, 0.2, 0.2).max() for run in counts])
    assert 1 <= (most >= math.log(20)).sum() <= 36
    for run, largest in zip(counts[:8], most[:8], strict=True):
        for look in (0, 99, 999):
            assert mixture.log_against(run[look], look + 1, 0.0) <= largest + 1e-9


@pytest.mark.slow
def test_an_effect_is_found_and_is_in_the_interval() -> None:
    rng, mixture = np.random.default_rng(19), Mixture(laplace=1.0)
    for run in drawn_counts(rng, 10, 60, 200, (0.2, 0.28), 1.0):
        assert mixture.log_against(run[-1], 60, 0.0) > math.log(20)
        low, high = mixture.interval(run[-1], 60, 0.95)
        assert 0 < low < 0.08 < high < 0.16
    nothing = np.zeros(4)
    assert mixture.interval(nothing, 1, 0.95) == (-1.0, 1.0)


@pytest.mark.parametrize("unit", [dp.row(), dp.row(neighbors="replace"), dp.person("who")], ids=str)
def test_one_charge_for_all_looks(unit: dp.Unit) -> None:
    ledger = opened(unit)
    rows = None if unit.column is None else 1
    ab = dp.stats.sequential(looks=3, epsilon=1, ledger=ledger, rows_per_person=rows)
    assert ledger.count == 1
    assert ab.guarantee.epsilon_at(delta=0) == pytest.approx(1)
    with testing.no_noise():
        one = ab.look(np.array([True, False, False, False]), [1, 1, 0, None])
        two = ab.look(pd.Series([0.0, np.nan]), np.ones(3, dtype=bool))
    assert (one.number, two.number, ab.looks_left) == (1, 2, 1)
    assert one.difference == pytest.approx(2 / 3 - 1 / 4)
    assert two.difference == pytest.approx(5 / 6 - 1 / 5)
    assert two.p_value <= one.p_value <= 1
    assert two.not_private
    assert "NOT PRIVATE" in str(two)
    assert "2 of 3 looks" in repr(ab)
    assert ab.receipt is not None
    ab.look([], [])
    assert ledger.count == 1
    with refuses(dp.InvalidArgument, "stream-ended"):
        ab.look([], [])


def test_a_look_that_is_refused_costs_none() -> None:
    ab = dp.stats.sequential(looks=1, epsilon=1, ledger=opened(dp.row()))
    with refuses(dp.InvalidArgument, "not-a-number"):
        ab.look(np.array(["a"]), [1])
    assert ab.looks_left == 1
    assert ab.look([1], [0]).number == 1


def test_refusals() -> None:
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.stats.sequential(looks=3, epsilon=1, ledger=None)  # type: ignore[arg-type]
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=1))
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.stats.sequential(looks=3, epsilon=2, ledger=ledger)
    with refuses(dp.InvalidArgument, "wrong-type"):
        StepTallies(steps=1, groups=2, noise=dp.Laplace(scale=1))
    stream = dp.stream(StepTallies(steps=1, groups=2, noise=dp.Laplace(scale=1, step=1)), sensitivity=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        stream.add([1, 2])


def test_noise_follows_the_unit() -> None:
    def scale(unit: dp.Unit, rows: int = 1) -> float:
        made = StepTallies.for_guarantee(dp.Pure(epsilon=1), steps=9, groups=2, unit=unit, rows_per_person=rows)
        assert made.guarantee(made.sensitivity(unit, rows)).epsilon_at(delta=0) == pytest.approx(1)
        return float(made.noise.scale)  # type: ignore[union-attr]

    assert scale(dp.row()) == 1
    assert scale(dp.row(neighbors="replace")) == 2
    assert scale(dp.person("who"), 3) == 3
    goal = dp.Approx(epsilon=1, delta=0.05)
    normal = StepTallies.for_guarantee(goal, steps=9, groups=2, unit=dp.row(neighbors="replace"))
    assert isinstance(normal.noise, dp.Gaussian)
    assert normal.guarantee(normal.sensitivity(dp.row(neighbors="replace"))).delta_at(epsilon=1) <= 0.05


def test_gaussian_noise_under_every_kind_of_ledger() -> None:
    for limit in (dp.Approx(epsilon=2, delta=0.1), dp.Approx(epsilon=2, delta=0.06)):
        ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit)
        ab = dp.stats.sequential(looks=5, epsilon=1, delta=0.05, ledger=ledger)
        assert ledger.count == 1
        assert ab.guarantee.delta_at(epsilon=1) <= 0.05
        assert ab.look([1, 0], [1, 1]).interval(0.95)[0] >= -1


def test_what_one_row_moves() -> None:
    base = [True, False, None, 1.0]
    known = np.array(tally(base))
    for odd in (True, 0, None, "x", np.nan, np.inf, -7, 10**400):
        assert 0 <= (np.array(tally([*base, odd])) - known).sum() <= 1
