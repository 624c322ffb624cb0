"""Widths on the population: never below the exact theorem, and never below what a worst analyst attains."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import discreet as dp
from discreet.adaptive.concentration import deviation, log_asked
from discreet.adaptive.holdouts import GuessAndCheck, honest_tolerance
from discreet.adaptive.methods import Compression, FewRevealed, Splitting
from discreet.adaptive.published import bassily, jung_as_coded, jung_exact
from discreet.guarantees.generalization import (
    gaussian_tail,
    laplace_tail,
    least_chance,
    taught_width,
    width_on_population,
    worst_mean,
)
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans
from discreet.mechanisms.adaptive.thresholdout import Thresholdout

from ..refusing import refuses

SIZES, COUNTS = (10**4, 10**5, 10**6), (10**3, 10**4, 10**5)
GOALS = {
    (10**4, 10**3): 0.430, (10**4, 10**4): 0.809,
    (10**5, 10**3): 0.135, (10**5, 10**4): 0.248, (10**5, 10**5): 0.460,
    (10**6, 10**3): 0.043, (10**6, 10**4): 0.079, (10**6, 10**5): 0.143,
}  # fmt: skip
CHECKED = {
    (10**4, 10**3): 0.090, (10**4, 10**4): 0.102, (10**4, 10**5): 0.114,
    (10**5, 10**3): 0.030, (10**5, 10**4): 0.034, (10**5, 10**5): 0.037,
    (10**6, 10**3): 0.0097, (10**6, 10**4): 0.0109, (10**6, 10**5): 0.0120,
}  # fmt: skip


def theorem(size: int, queries: int, stddev: Fraction, miss: mp.mpf) -> mp.mpf:
    """The exact theorem for Gaussian noise of this stddev on a sum, with 50 digits and by other means than the code."""
    sigma = mp.mpf(stddev.numerator) / stddev.denominator / size
    low, high = mp.mpf(0), mp.mpf(20)
    for _ in range(170):
        middle = (low + high) / 2
        beyond = queries * mp.log(1 - mp.erfc(middle / mp.sqrt(2))) < mp.log(1 - miss)
        low, high = (middle, high) if beyond else (low, middle)
    largest = high
    above = mp.quad(
        lambda z: 1 - (1 - mp.erfc(z / mp.sqrt(2))) ** queries, [largest, largest + 1, largest + 3, largest + 12]
    )
    worst = sigma * (largest + above / miss)
    if worst >= 1:
        return mp.mpf(1)
    mu = mp.sqrt(queries) / (size * sigma)
    reached = miss * (1 - worst)
    start = mp.sqrt(2) * mp.erfinv(2 * reached - 1)
    return 1 - mp.ncdf(start - mu) / miss


SOME = {(10**4, 10**3, 0.95), (10**5, 10**5, 0.99), (10**6, 10**4, 0.9)}


@pytest.mark.parametrize(
    ("size", "queries", "confidence"),
    [
        pytest.param(*one, marks=[] if one in SOME else [pytest.mark.slow])
        for one in itertools.product(SIZES, COUNTS, [0.9, 0.95, 0.99])
    ],
)
def test_a_width_is_the_theorem_rounded_up(size: int, queries: int, confidence: float) -> None:
    with mp.workdps(50):
        made = AdaptiveMeans.narrowest(size=size, queries=queries, confidence=confidence)
        exact = theorem(size, queries, made.noise._size, mp.mpf(1 - confidence))
        width = made.width(confidence)
        assert exact <= width <= exact * mp.mpf("1.0005") + mp.mpf("1e-5")


@pytest.mark.parametrize(("size", "queries"), list(GOALS))
def test_the_worst_case_analyst_is_answered_more_narrowly_than_was_known(size: int, queries: int) -> None:
    width = AdaptiveMeans.narrowest(size=size, queries=queries).width(0.95)
    assert width <= GOALS[size, queries]
    assert width <= 0.81 * jung_exact(size, queries, 0.05)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(("size", "queries"), list(CHECKED))
def test_ten_overfits_are_allowed_within_the_goal(size: int, queries: int) -> None:
    tolerance = honest_tolerance(size, size, queries, 3)
    assert queries * math.erfc(tolerance * math.sqrt(size)) == pytest.approx(3)  # honest guesses that fail
    made = GuessAndCheck.narrowest(size=size, queries=queries, overfits=10, tolerance=tolerance, confidence=0.95)
    assert made.width(0.95) <= CHECKED[size, queries]
    assert made.width(0.95, 0) < 0.65 * made.width(0.95)  # narrow while nothing was told


def test_the_published_widths_are_those_that_were_published() -> None:
    """At n = 10^5 and k = 10^3: .271 (Bassily et al.), .165 (Jung et al. as coded), .135 (with the exact curve)."""
    assert bassily(10**5, 10**3, 0.05) == pytest.approx(0.271, abs=1e-3)
    assert jung_as_coded(10**5, 10**3, 0.05) == pytest.approx(0.165, abs=5e-4)
    assert jung_exact(10**5, 10**3, 0.05) == pytest.approx(0.135, abs=5e-4)


def test_the_taught_width_is_the_lectures() -> None:
    """[L6.T9]: α + 10ε, with the noise of [L6.C5] and the α of [L6.CL6]."""
    assert taught_width(10**6, 10**3, 0.05)[0] == pytest.approx(0.380, abs=1e-3)
    assert taught_width(10**6, 10**4, 0.05)[0] == pytest.approx(0.766, abs=1e-3)
    made = AdaptiveMeans.taught(size=10**6, queries=10**3)
    assert made.width(0.95) >= taught_width(10**6, 10**3, 0.05)[0]
    assert AdaptiveMeans(size=10**6, queries=10**3, noise=made.noise).width(0.95) < made.width(0.95)


# --- against the worst analyst, exactly ---------------------------------------------------------------------


def missed(law: Any, noise: Any, size: int, chance: float, width: float) -> float:
    """P[|a − q(P)| > width] for one question on `size` coins with this chance, answered with this law of noise."""
    ones = np.arange(size + 1)
    answers = np.clip((ones[:, None] + noise) / size, 0, 1)
    return float((binom.pmf(ones, size, chance)[:, None] * law * (np.abs(answers - chance) > width)).sum())


@pytest.mark.some_quick(15)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("scale", [0.5, 1, 3])
@pytest.mark.parametrize("miss", [0.05, 0.2, 0.5])
def test_no_population_beats_the_theorem_on_a_small_sample(size: int, scale: float, miss: float) -> None:
    """[L6.T9], sharpened. One question, whole-number Laplace noise: the exact probability of a miss."""
    q, noise = math.exp(-1 / scale), np.arange(-300, 301)
    law = (1 - q) / (1 + q) * q ** np.abs(noise)
    guarantee = dp.Laplace(scale=scale, step=1).guarantee(dp.Sensitivity(1, grain=1, unit=dp.row(neighbors="replace")))
    assert isinstance(guarantee, dp.guarantees.LossDistribution)
    worst = worst_mean(lambda z: 2 * q ** (np.floor(z * size) + 1) / (1 + q), 1, miss)
    width = width_on_population(guarantee, min(1.0, worst), miss)
    for chance in np.linspace(0, 1, 201):
        assert missed(law, noise, size, chance, width) <= miss + 1e-9


def test_a_private_choice_of_a_question_does_not_describe_its_sample() -> None:
    """[L6.T10], [L6.T11]: |q(S) − q(P)| ≤ 10ε for a question q chosen privately, and nearly 1 for "is in the sample".

    The question is a set of the values, each kept or not by randomized response; a replaced row changes two of them.
    """
    size, values, epsilon = 20_000, 10**6, 0.08
    assert size >= math.log(1 / 1e-9) / epsilon**2
    rng = np.random.default_rng(11)
    sample = rng.integers(0, values, size)
    seen = np.zeros(values, dtype=bool)
    seen[sample] = True
    truth = math.exp(epsilon / 2) / (1 + math.exp(epsilon / 2))
    chosen = np.where(rng.random(values) < truth, seen, ~seen)
    # the gap is tanh(ε/4) up to six standard errors of a mean of `size` coins
    gap = float(chosen[sample].mean() - chosen.mean())
    assert abs(gap - math.tanh(epsilon / 4)) < 6 / math.sqrt(4 * size)
    assert abs(gap) <= 10 * epsilon
    assert float(seen[sample].mean() - seen.mean()) > 10 * epsilon


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(mu=st.floats(0.01, 3), reached=st.floats(1e-6, 0.5))
def test_the_least_chance_is_that_of_the_best_test(mu: float, reached: float) -> None:
    from scipy.special import ndtr, ndtri

    noise = dp.Gaussian(stddev=1 / mu, step=2.0**-30)
    guarantee = noise.guarantee(dp.Sensitivity(1, grain=Fraction(1, 2**30)))
    assert isinstance(guarantee, dp.guarantees.LossDistribution)
    exact = float(ndtr(ndtri(reached) - mu))
    assert least_chance(guarantee, reached) == pytest.approx(exact, rel=1e-6)
    # and from the curve alone, by any ε: never above, and close at the best
    generic = max((reached - guarantee.delta_at(epsilon=e)) * math.exp(-e) for e in np.geomspace(1e-4, 20, 400))
    assert generic <= exact * (1 + 1e-6)
    assert generic >= 0.97 * exact - 1e-9


@pytest.mark.slow
def test_the_worst_mean_is_above_the_integral() -> None:
    for tail, count, miss in [(gaussian_tail, 7, 0.05), (laplace_tail, 7, 0.05), (gaussian_tail, 10**5, 0.3)]:
        z = np.linspace(0, 60, 3_000_001)
        above = -np.expm1(count * np.log1p(-np.minimum(tail(z), 1 - 1e-16)))
        exact = float(np.minimum(above, miss).sum() * (z[1] - z[0]) / miss)
        assert exact - 2e-4 <= worst_mean(tail, count, miss) <= exact * 1.001 + 1e-4


# --- the methods that tell little -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 10, 50, 1000, 20_000])
@pytest.mark.parametrize("log_misses", [0.7, 3.7, 10.0, 94.0, 600.0])
def test_a_deviation_holds_for_coins_of_every_chance(size: int, log_misses: float) -> None:
    t = deviation(size, log_misses)
    assert 0 < t <= 1
    places = np.arange(1, size + 1)
    chance = places / size - t
    with np.errstate(divide="ignore"):
        tails = binom.logsf(places[chance > 0] - 1, size, chance[chance > 0])
    assert tails.max(initial=-np.inf) <= -log_misses - math.log(2) + 1e-6
    assert t <= math.sqrt((log_misses + math.log(2)) / (2 * size)) * (1 + 1e-9)  # Hoeffding


def test_a_deviation_holds_for_values_between() -> None:
    """Means of uniform values, and of values that are seldom large, miss less often than they may."""
    rng = np.random.default_rng(3)
    t = deviation(40, math.log(20))
    for power in (0.3, 1, 4, 12):
        values = rng.random((100_000, 40)) ** power
        assert (np.abs(values.mean(axis=1) - 1 / (power + 1)) >= t).mean() < 0.05


def test_the_questions_that_might_be_asked_are_counted() -> None:
    """A question is its place, the places of the told answers before it, and their values."""
    queries, cells = 6, 3
    for told in range(4):
        places = sum(math.comb(place, told) for place in range(queries))
        assert log_asked(queries, told, cells) == pytest.approx(math.log(places * cells**told))


def test_widths_of_methods_that_are_not_private() -> None:
    for made in (
        Compression.narrowest(size=10**4, queries=100, confidence=0.95),
        Splitting.narrowest(size=10**4, queries=10, confidence=0.95),
    ):
        assert 0 < made.width(0.9) < made.width(0.95) < made.width(0.99) < 1
    assert Compression.narrowest(size=10**4, queries=1000, confidence=0.95).width(0.95) <= 0.383
    assert Compression.narrowest(size=10**5, queries=1000, confidence=0.95).width(0.95) <= 0.147
    assert Splitting(10, 20).width(0.95) == 1
    with refuses(dp.InvalidArgument, "study-too-few-rows"):
        dp.adaptive.study({"x": np.ones(10)}, queries=20, method="splitting", unprotected=True)


def test_a_width_grows_with_what_was_told_and_never_beyond_the_stated_one() -> None:
    union = FewRevealed(10**4, 10**3, 24, 10)
    widths = [union.deviation(0.95, told) for told in range(11)]
    assert widths == sorted(widths)
    assert widths[-1] <= union.deviation(0.95) + 1e-12
    # four fifths of β for all, one fifth spread: together no more than β
    assert sum(0.2 / ((j + 1) * (j + 2)) for j in range(10**6)) + 0.8 <= 1


# --- the mechanisms -------------------------------------------------------------------------------------------


def test_the_guarantee_is_that_of_all_questions_together() -> None:
    made = AdaptiveMeans.of_noise(0.01, size=10**4, queries=50)
    whole = made.guarantee(made.sensitivity(dp.row(neighbors="replace")))
    alone = dp.Gaussian(stddev=made.noise.stddev, step=QUANTUM).guarantee(dp.Sensitivity(1, grain=QUANTUM))  # type: ignore[union-attr]
    assert isinstance(alone, dp.guarantees.LossDistribution)
    composed = dp.compose([alone] * 50)
    for epsilon in (0.05, 0.2, 0.5):
        assert whole.delta_at(epsilon=epsilon) == pytest.approx(composed.delta_at(epsilon=epsilon), rel=1e-6)
    assert whole.protects == dp.row(neighbors="replace")
    assert made.guarantee().protects == dp.row()


@pytest.mark.parametrize("goal", [dp.Approx(epsilon=0.5, delta=1e-6), dp.ZeroConcentrated(rho=0.01)])
def test_the_least_noise_for_a_guarantee(goal: dp.Guarantee) -> None:
    made = AdaptiveMeans.for_guarantee(goal, size=1000, queries=20)
    less = AdaptiveMeans.of_noise(made._scale * 0.98, size=1000, queries=20)
    from discreet.mechanisms.protocol import meets

    assert meets(made.guarantee(), goal)
    assert not meets(less.guarantee(), goal)


def test_the_most_noise_for_a_width() -> None:
    made = AdaptiveMeans.for_error(0.1, size=10**5, queries=100)
    assert 0.099 < made.width(0.95) <= 0.1
    narrow = AdaptiveMeans.narrowest(size=10**5, queries=100)
    assert made.guarantee().epsilon_at(delta=1e-6) < narrow.guarantee().epsilon_at(delta=1e-6)
    with refuses(dp.InvalidArgument, "error-out-of-reach"):
        AdaptiveMeans.for_error(0.001, size=10**5, queries=100)


def test_a_thresholdout_charges_one_test_more_than_it_corrects() -> None:
    made = Thresholdout.of_scales(
        size=1000, queries=50, overfits=3, tolerance=0.05, test=0.2, noise=0.05, kind="laplace"
    )
    whole = made.guarantee(made.sensitivity(dp.row()))
    answers = 3 / float(made.noise.scale)  # type: ignore[union-attr]
    assert whole.largest_loss is not None
    assert float(whole.largest_loss) == pytest.approx(4 * 0.2 + answers, rel=1e-5)
    assert made.width(0.95) > 2 * 0.05


@pytest.mark.slow
def test_a_thresholdout_is_narrower_than_noise_on_every_answer_where_questions_are_many() -> None:
    given: dict[str, Any] = {"size": 10**6, "queries": 10**5}
    held = Thresholdout.narrowest(**given, overfits=10, tolerance=0.003).width(0.95)
    assert held < 0.6 * AdaptiveMeans.narrowest(**given).width(0.95)


def test_low_confidence_states_the_width_for_a_half() -> None:
    made = AdaptiveMeans.narrowest(size=1000, queries=10)
    assert made.width(0.1) == made.width(0.5) < made.width(0.6)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (lambda: AdaptiveMeans(size=0, queries=1, noise=dp.Gaussian(stddev=1, step=QUANTUM)), "out-of-range"),
        (lambda: AdaptiveMeans(size=1, queries=0, noise=dp.Gaussian(stddev=1, step=QUANTUM)), "out-of-range"),
        (lambda: AdaptiveMeans(size=1, queries=1, noise=dp.Gaussian(stddev=1)), "part-does-not-fit"),
        (lambda: AdaptiveMeans.of_noise(-1, size=1, queries=1), "out-of-range"),
        (lambda: AdaptiveMeans.of_noise(1, size=1, queries=1, noise="uniform"), "not-an-option"),  # type: ignore[arg-type]
        (lambda: AdaptiveMeans.of_noise(1, size=1, queries=1).sensitivity(dp.person("id"), 2), "rows-not-independent"),
        (lambda: AdaptiveMeans.of_noise(1, size=1, queries=1).error(0.95, of="somewhere"), "not-an-option"),
        (lambda: Thresholdout.of_scales(size=9, queries=1, overfits=0, tolerance=0.1, test=1, noise=1), "out-of-range"),
    ],
)
def test_bad_arguments(bad: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        bad()
