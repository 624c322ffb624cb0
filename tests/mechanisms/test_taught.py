"""The documents' formulas, beside what is used: their guarantees hold, and the tight calibration needs less noise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import discreet as dp
from discreet import testing
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.guarantees.rules.best_of import Heterogeneous
from discreet.mechanisms.noise.laplace import taught_sum_scale
from discreet.reproduce.course import taught_answers

from ..refusing import refuses

ASKED = dp.Approx(epsilon=1, delta=1e-6)


@pytest.mark.parametrize("answers", [10, 100, 1000])
def test_many_adaptive_averages_keep_their_promise(answers: int) -> None:
    """[L6.C5]: k answers with Lap(1/(γn)) are (ε,δ)-DP, and the noise grows as √k."""
    taught = taught_answers(answers, 1000, ASKED)
    one = taught.guarantee(dp.Sensitivity(Fraction(1, 1000), unit=dp.row(neighbors="replace")))
    assert dp.compose([one] * answers).epsilon_at(delta=1e-6) <= 1
    assert float(taught.scale) / float(taught_answers(4 * answers, 1000, ASKED).scale) == pytest.approx(0.5)


def test_many_averages_are_as_accurate_as_taught() -> None:
    """[L6.CL6]: α = ln(k/β)/(γn); the exact law gives a little less."""
    taught = taught_answers(100, 1000, ASKED)
    alpha = float(taught.scale) * math.log(100 / 0.05)
    assert 0.9 * alpha < float(taught.error(0.95, values=100)) <= alpha


def test_many_averages_refuse_what_the_corollary_does_not_cover() -> None:
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        taught_answers(10, 1000, dp.Approx(epsilon=1, delta=0))
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        taught_answers(10, 1000, dp.Approx(epsilon=2, delta=0.9))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0])
def test_the_expected_loss_is_at_most_twice_epsilon_squared(epsilon: float) -> None:
    """[L6.L4], for randomized response, the worst of all, and for Laplace noise."""
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=epsilon), choices=[0, 1])
    pair = response.guarantee().factors[0][0]
    assert isinstance(pair, FinitePair)
    loss = sum(float(p) * math.log(p / q) for p, q in zip(pair.inside, pair.outside, strict=True) if p)
    assert loss <= 2 * epsilon * -math.expm1(-epsilon) <= 2 * epsilon**2
    laplace = epsilon + math.exp(-epsilon) - 1
    assert laplace <= loss * (1 + 1e-9)


def worst_splits(dimension: int, squared: int) -> list[tuple[int, ...]]:
    """Whole-step moves of `dimension` coordinates with the given squared length, up to order."""
    reach = range(math.isqrt(squared) + 1)
    moves = itertools.combinations_with_replacement(reach, dimension)
    return [move for move in moves if sum(x * x for x in move) <= squared and any(move)]


@pytest.mark.parametrize("theorem", ["L10.A basic", "L10.A strong", "L10.T3"])
def test_noise_for_sums_of_short_vectors(theorem: str) -> None:
    """[L10.A], [L10.T3]: what `guarantee` says holds for EVERY split of the move over the coordinates, by composition.

    L10.T3 costs at most 2ε²/ln(1/δ) + √2·ε under add or remove, by [L10.HC] with Σε_i² = ε²/ln(1/δ).
    """
    dimension, asked = 3, dp.Approx(epsilon=0.8, delta=1e-3)
    scale = taught_sum_scale(theorem, 3, dimension, asked)
    noise = dp.Laplace(scale=scale, step=1)
    bound = dp.Sensitivity(3, "L2", dp.row(), dimension, grain=1)
    promised = noise.guarantee(bound)
    for move in worst_splits(dimension, 9):
        parts = [(LaplacePair(steps, scale), 1) for steps in move if steps]
        exact = dp.guarantees.LossDistribution(factors=tuple(parts))
        for epsilon in (0.1, 0.4, 0.8):
            assert exact.delta_at(epsilon=epsilon) <= promised.delta_at(epsilon=epsilon)
        if theorem == "L10.T3":
            log = math.log(1 / 1e-3)
            claimed = 2 * 0.8**2 / log + math.sqrt(2) * 0.8
            assert exact.epsilon_at(delta=1e-3) <= claimed
            pures = [dp.Pure(epsilon=pair.bound) for pair, _ in parts]
            rule = Heterogeneous(limit=dp.Approx(epsilon=2, delta=2e-3))
            vector = rule.nothing
            for pure in pures:
                vector = rule.spend(vector, pure)
            assert float(rule.total(vector).epsilon) <= claimed
    tight = dp.Laplace.for_guarantee(asked, sensitivity=bound, step=1)
    assert tight.guarantee(bound).delta_at(epsilon=0.8) <= 1e-3 or tight.guarantee(bound.to("L1")).delta_at(
        epsilon=0.8
    ) <= Fraction(1, 1000)
    if theorem == "L10.A strong":  # with the constant the theorem hides, the tight noise is smaller
        assert tight._size < 2 * scale


def test_gaussian_noise_as_taught_is_private_up_to_epsilon_one_and_refused_beyond() -> None:
    """[T.6.2]: (Δ/ε)√(2 ln(2/δ)) holds for ε ≤ 1; at (8, 0.1) it would attain 0.141."""
    for epsilon, delta in [(1, 1e-6), (0.1, 1e-3), (1, 0.1)]:
        asked = dp.Approx(epsilon=epsilon, delta=delta)
        taught = dp.Gaussian.for_guarantee(asked, sensitivity=1, calibration="taught")
        assert taught.guarantee(1).delta_at(epsilon=epsilon) <= delta
        assert taught.stddev > dp.Gaussian.for_guarantee(asked, sensitivity=1).stddev
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        dp.Gaussian.for_guarantee(dp.Approx(epsilon=8, delta=0.1), sensitivity=1, calibration="taught")
    printed = dp.Gaussian(stddev=math.sqrt(2 * math.log(20)) / 8)
    assert printed.guarantee(1).delta_at(epsilon=8) == pytest.approx(0.141, abs=5e-4)


@pytest.mark.slow
def test_a_covariance_shapes_the_noise_and_keeps_the_promise() -> None:
    """[T.6.2] with M: exact whitening, the promise of the white noise, and the covariance asked for."""
    covariance = ((4.0, 1.0), (1.0, 9.0))
    noise = dp.mechanisms.CorrelatedGaussian.for_guarantee(ASKED, covariance=covariance, sensitivity=1)
    assert noise.guarantee(1).delta_at(epsilon=1) <= 1e-6
    white = dp.Gaussian.for_guarantee(ASKED, sensitivity=1)
    assert float(noise.stddev) == pytest.approx(float(white.stddev), rel=1e-6)
    with testing.no_noise():
        assert dp.release([10.0, -3.5], noise, sensitivity=1).value.tolist() == pytest.approx([10.0, -3.5], abs=1e-9)
    draws = [dp.release([0.0, 0.0], noise, sensitivity=1).value / float(noise.stddev) for _ in range(2000)]
    for i, j in ((0, 0), (0, 1), (1, 1)):
        seen = sum(draw[i] * draw[j] for draw in draws) / len(draws)
        spread = math.sqrt((covariance[i][i] * covariance[j][j] + covariance[i][j] ** 2) / len(draws))
        # six standard errors: a false alarm below 1e-8 for nearly normal averages; halved noise is 20 of them away
        assert abs(seen - covariance[i][j]) < 6 * spread


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("scores", [(0, -1, -3, -6), (5, 5, 5), (0, *[-10] * 999)], ids=["steps", "ties", "many below"])
def test_a_choice_is_seldom_far_from_the_best(epsilon: float, scores: tuple[int, ...]) -> None:
    """[L3.EM-U]: P[q(r) < OPT − λ] ≤ |R|·exp(−ελ/(2Δ)), by the exact law, here with Δ = 2."""
    law = dp.Exponential.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=2).probabilities(scores)
    for far in (0.5, 1, 2.5, 5, 9.999):
        bound = len(scores) * math.exp(-epsilon * far / 4)
        missed = sum(p for p, score in zip(law, scores, strict=True) if score < max(scores) - far)
        assert missed <= bound * (1 + 1e-12)
    if len(scores) == 1000 and epsilon == 8:
        assert missed > 0.99 * bound  # it cannot be smaller in general


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_median_on_a_grid_is_as_good_as_taught(epsilon: float) -> None:
    """[L3.MED]: with probability 1 − β the chosen point scores at least −(4/ε)·ln(|grid|/β), for a score with Δ = 2."""
    grid = dp.queries.Grid(0, 1, Fraction(1, 1000))
    query = dp.queries.MedianScore(grid)
    assert query.sensitivity(dp.row(neighbors="replace")).exact == 2
    found = query([i / 1000 for i in range(0, 1001, 7)])  # 143 rows, the middle one on the grid
    scores = [int(step) * found.unit for step in found.steps]
    assert max(scores) == 0
    law = dp.Exponential.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=2).probabilities(found)
    for beta in (0.5, 0.05, 1e-6):
        least = -4 / epsilon * math.log(len(scores) / beta)
        assert sum(p for p, score in zip(law, scores, strict=True) if score < least) <= beta


@pytest.mark.parametrize("beta", [0.05, 0.2, 0.5])
def test_the_largest_noisy_score_is_near_the_best(beta: float) -> None:
    """[L6.CL8]: with probability 1 − β the chosen of T scores lacks at most 2·scale·ln(T/β), by the exact law."""
    choice = dp.NoisyArgmax(scale=1, step=1)
    stated, taught = float(choice.error(1 - beta, values=2)), 2 * math.log(2 / beta)
    assert stated <= taught + 2  # whole steps round the noise of each score up
    gap = math.floor(stated) + 1  # the least that is more than the stated error
    found = testing.exact_law(lambda: dp.release([gap, 0], choice, sensitivity=1).value, window=10)
    assert float(found.law[1] + found.unresolved) <= beta


@pytest.mark.parametrize(
    "covariance", [((1.0, 2.0), (2.0, 1.0)), ((1.0, 0.0),), ((1.0, 0.5), (0.4, 1.0)), ((float("nan"),),), ((0.0,),)]
)
def test_a_covariance_that_is_none_is_refused(covariance: tuple[tuple[float, ...], ...]) -> None:
    with refuses(dp.InvalidArgument, "unsuitable-covariance"):
        dp.mechanisms.CorrelatedGaussian(stddev=1, covariance=covariance)


def test_noise_is_useless_for_a_median_and_choosing_is_not() -> None:
    """[L3.GS]: one replaced row of [0,1] moves the median by the whole interval, so Laplace noise must cover it all."""

    def median(rows: tuple[int, ...]) -> int:
        return sorted(rows)[len(rows) // 2]

    tables = list(itertools.product((0, 1), repeat=3))
    neighbors = [(a, b) for a in tables for b in tables if sum(x != y for x, y in zip(a, b, strict=True)) == 1]
    assert max(abs(median(a) - median(b)) for a, b in neighbors) == 1
    assert float(dp.Laplace.for_guarantee(dp.Pure(epsilon=0.1), sensitivity=1).error(0.95)) > 29  # on an interval of 1
    chosen = dp.mechanisms.Quantile.for_guarantee(dp.Pure(epsilon=0.1), space=dp.queries.Grid(0, 1, Fraction(1, 1000)))
    assert float(chosen.error(0.95)) < 100  # ranks, of however many rows there are
