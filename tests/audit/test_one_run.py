"""The bounds from one run: true for every small mechanism, sharp where they can be, and exceeded as rarely as said."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import discreet as dp
from discreet.audit import OneRun, one_run
from discreet.audit.one_run import gaussian_epsilon, points_of
from discreet.errors import InvalidArgument

from ..refusing import refuses

GRID = np.linspace(0, 4, 30)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(29)


# --- the theorems, on mechanisms that are small enough to enumerate -----------------------------------------------


def curve_of(law: Any, m: int) -> list[tuple[float, float]]:
    """The exact (ε, δ) of a table P[output | coins], where neighbors differ in one coin."""
    coins = list(itertools.product((0, 1), repeat=m))
    pairs = [(i, j) for i, a in enumerate(coins) for j, b in enumerate(coins) if sum(map(int.__xor__, a, b)) == 1]
    return [(e, max(np.maximum(law[i] - math.exp(e) * law[j], 0).sum() for i, j in pairs)) for e in GRID.tolist()]


def right_guesses(law: Any, guesses: Any, m: int) -> Any:
    """The law of the number of right guesses, over fair coins."""
    coins = np.array(list(itertools.product((0, 1), repeat=m)))
    found = np.zeros(m + 1)
    for s, given in enumerate(coins):
        for output, guess in enumerate(guesses):
            right = sum(int(g == c) for g, c in zip(guess, given, strict=True) if g is not None)
            found[right] += law[s, output] / len(coins)
    return found


def no_small_mechanism_beats_either_bound(random: np.random.Generator, m: int) -> None:
    """150 tables of random probabilities, from weak to strong, with guesses that are likely for each output."""
    coins = np.array(list(itertools.product((0, 1), repeat=m)))
    near = 0
    for _ in range(150):
        outputs = int(random.integers(2, 6))
        law = random.dirichlet(np.full(outputs, random.choice([0.2, 1, 5])), size=len(coins))
        r = int(random.integers(1, m + 1))
        guesses = []
        for output in range(outputs):
            chance = law[:, output] @ coins / max(law[:, output].sum(), 1e-12)
            known = np.argsort(-np.abs(chance - 0.5))[:r]
            guesses.append([int(chance[i] > 0.5) if i in known else None for i in range(m)])
        found, curve = right_guesses(law, guesses, m), curve_of(law, m)
        for v in range(1, r + 1):
            run, tail = OneRun(canaries=m, guesses=r, correct=v), float(found[v:].sum())
            if tail == 0:
                continue
            lines = one_run._lines(curve)
            assert not run._refutes(lines, tail * (1 - 1e-6))
            near += run._refutes(lines, min(1, tail * 1.5))
            assert all(tail <= run._tail(epsilon, delta) * (1 + 1e-9) for epsilon, delta in curve)
    assert near > 10  # the bound is not idle


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3])
def test_no_small_mechanism_beats_either_bound(random: np.random.Generator, m: int) -> None:
    no_small_mechanism_beats_either_bound(random, m)


def test_mutant_a_bound_that_forgets_delta(random: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = OneRun._tail
    monkeypatch.setattr(OneRun, "_tail", lambda self, epsilon, delta: sound(self, epsilon, 0.0))
    with pytest.raises(AssertionError):
        no_small_mechanism_beats_either_bound(random, 2)


def test_mutant_a_curve_that_forgets_delta(random: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = one_run._lines
    monkeypatch.setattr(one_run, "_lines", lambda points: sound([(epsilon, 0.0) for epsilon, _ in points]))
    with pytest.raises(AssertionError):
        no_small_mechanism_beats_either_bound(random, 2)


def test_mutant_half_the_canaries_count(random: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities of a random canary taken twice too large, as if there were half as many."""
    sound = OneRun._refutes

    def doubled(self: OneRun, lines: Any, tail: float) -> bool:
        return sound(self, (2 * lines[0], lines[1]), tail)

    monkeypatch.setattr(OneRun, "_refutes", doubled)
    with pytest.raises(AssertionError):
        no_small_mechanism_beats_either_bound(random, 2)


@pytest.mark.parametrize(("m", "r", "v"), [(5, 5, 4), (10, 6, 5), (30, 12, 10), (30, 30, 22)])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_the_walk_down_finds_the_optimum_of_the_linear_program(m: int, r: int, v: int, mu: float) -> None:
    """The largest P[W ≥ v] under Σ_{w≥t} w·p_w/m ≤ h(Σ_{w≥t−1} (r−w)·p_w/m) for all t, by another solver."""
    slopes, constants = points_of(dp.GaussianTradeoff(mu=mu), 1e-6)
    w = np.arange(r + 1)
    rows = [
        slope * np.where(w >= t, w, 0) / m - np.where(w >= t - 1, r - w, 0) / m
        for t in range(1, v + 1)
        for slope in slopes
    ]
    limits = [-constant for _ in range(v) for constant in constants]
    solved = linprog(-(w >= v).astype(float), A_ub=rows, b_ub=limits, A_eq=[np.ones(r + 1)], b_eq=[1])
    run = OneRun(canaries=m, guesses=r, correct=v)
    found = run.p_value(dp.GaussianTradeoff(mu=mu), delta=0.999)  # at such a δ the other bound says nothing
    assert -solved.fun <= found * (1 + 1e-6)
    assert found <= min(1, -solved.fun * 1.002 + 1e-9)


def test_randomized_response_meets_the_first_bound_exactly() -> None:
    lucky = math.e / (1 + math.e)
    for v in range(1, 51):
        tail = OneRun(canaries=80, guesses=50, correct=v)._tail(1.0, 0.0)
        assert tail == pytest.approx(float(binom.sf(v - 1, 50, lucky)), rel=1e-6)
        assert tail <= OneRun(canaries=80, guesses=50, correct=v)._tail(1.0, 1e-4)


# --- how often the bounds are wrong, and what they notice ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_of_randomized_response_the_bound_is_wrong_in_at_most_a_twentieth(epsilon: float, delta: float) -> None:
    """Computed, not simulated: r coins are told, each truly with probability e^ε/(1+e^ε)."""
    r, lucky = 100, 1 / (1 + math.exp(-epsilon))
    bounds = [OneRun(canaries=r, guesses=r, correct=v).epsilon_lower(delta=delta) for v in range(r + 1)]
    assert bounds == sorted(bounds)
    chances = binom.pmf(np.arange(r + 1), r, lucky)
    wrong = float(sum(p for p, bound in zip(chances, bounds, strict=True) if bound > epsilon))
    assert 0.01 < wrong <= 0.05  # not idle, either
    half = binom.pmf(np.arange(r + 1), r, 1 / (1 + math.exp(-2 * epsilon)))
    power = float(sum(p for p, bound in zip(half, bounds, strict=True) if bound > epsilon))
    assert power > {0.5: 0.7, 1.0: 0.95, 3.0: 0.7}[epsilon]  # half the lies, about twice the ε


def told(random: np.random.Generator, m: int, r: int, mu: float, runs: int) -> Any:
    """Right guesses about canaries that are summed, each in its own coordinate, under Gaussian noise of 1/μ."""
    found = []
    for _ in range(runs):
        inside = random.random(m) < 0.5
        order = np.argsort(mu * inside + random.normal(size=m))
        found.append(int((~inside[order[: r // 2]]).sum() + inside[order[m - (r - r // 2) :]].sum()))
    return np.array(found)


@pytest.mark.slow
def test_of_a_gaussian_sum_the_bound_is_rarely_wrong_and_half_the_noise_is_noticed(random: np.random.Generator) -> None:
    """2000 canaries, 400 guesses, ε = 1 at δ = 1e-6. False alarms: at most 5%, so of 1000 runs more than 90 have a
    probability below 1e-7. Half the noise fires in three of four runs, a third of it always.
    """
    mu = dp.GaussianTradeoff(mu=0.2365).mu
    claim = dp.GaussianTradeoff(mu=mu)
    assert claim.epsilon_at(delta=1e-6) == pytest.approx(1, abs=0.01)
    r = 400
    fires = next(
        v for v in range(r // 2, r + 1) if OneRun(canaries=2000, guesses=r, correct=v).refutes(claim, delta=1e-6)
    )
    assert OneRun(canaries=2000, guesses=r, correct=fires).mu_lower() > mu - 1e-4
    assert OneRun(canaries=2000, guesses=r, correct=fires - 1).mu_lower() < mu
    rates = [float((told(random, 2000, r, times * mu, 1000) >= fires).mean()) for times in (1, 2, 3)]
    assert rates[0] <= 0.09
    assert rates[1] > 0.6
    assert rates[2] > 0.99


def test_the_curve_proves_more_than_one_point_of_it() -> None:
    """What Gaussian noise of ε = 1 cannot explain, some mechanism with ε = 1 and δ = 1e-6 still can."""
    run = OneRun(canaries=2000, guesses=400, correct=280)
    claim = dp.GaussianTradeoff(mu=0.2365)
    assert run.refutes(claim, delta=1e-6)
    assert not run.refutes(dp.Approx(epsilon=1, delta=1e-6), delta=1e-6)
    assert run.p_value(claim, delta=1e-6) < 0.05 < run.p_value(dp.Approx(epsilon=1, delta=1e-6), delta=1e-6)
    assert gaussian_epsilon(run.mu_lower(), 1e-6) > 1 > run.epsilon_lower(delta=1e-6)


@pytest.mark.slow
def test_p_values_and_refutations_agree() -> None:
    for claim in (dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-5), dp.GaussianTradeoff(mu=0.4)):
        for correct in range(50, 101, 2):
            run = OneRun(canaries=200, guesses=100, correct=correct)
            p = run.p_value(claim, delta=1e-5)
            if abs(p - 0.05) > 1e-3:
                assert run.refutes(claim, delta=1e-5) == (p <= 0.05)


def test_few_right_guesses_prove_nothing() -> None:
    for correct in (0, 1, 50):
        run = OneRun(canaries=100, guesses=100, correct=correct)
        assert run.epsilon_lower() == run.epsilon_lower(delta=1e-3) == run.mu_lower() == 0
        assert run.p_value(dp.Pure(epsilon=0.1)) > 0.4
    assert gaussian_epsilon(0.0, 1e-6) == 0


def test_a_claim_of_nothing_is_not_refuted() -> None:
    run = OneRun(canaries=100, guesses=100, correct=100)
    assert run.p_value(dp.GaussianTradeoff(mu=1)) < 1e-3  # no ε at δ = 0, but a curve
    assert not run.refutes(dp.Pure(epsilon=30))


@pytest.mark.parametrize("numbers", [(10, 11, 5), (10, 5, 6)])
def test_numbers_that_do_not_fit(numbers: tuple[int, int, int]) -> None:
    with refuses(InvalidArgument, "out-of-range"):
        OneRun(canaries=numbers[0], guesses=numbers[1], correct=numbers[2])
