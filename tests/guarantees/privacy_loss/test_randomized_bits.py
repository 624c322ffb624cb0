"""Sums of randomized bits beside every number of ones, and masses of shuffled counts beside rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.exact.rational import exp_bounds
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair
from discreet.guarantees.privacy_loss.pairs import Floats
from discreet.guarantees.privacy_loss.randomized_bits import (
    RandomizedBitsPair,
    _mass_outside,
    delta_at_weights,
    deltas_at_weights,
    weights,
)
from discreet.guarantees.privacy_loss.shuffled_pairs import (
    LOST,
    CountedPair,
    ShiftedBinomialPair,
    TwoCountsPair,
    binomial,
)

Exact = tuple[list[Fraction], list[Fraction]]
EPSILONS = np.array([0.0, 0.01, 0.05, 0.206, 0.5, 1.0, 2.0, 4.0])


# --- every number of ones, by SciPy's binomial law ------------------------------------------------------------


def law_of(trials: int, p: float) -> Floats:
    far = 40 * math.sqrt(trials * p * (1 - p)) + 40
    first, last = max(0, math.floor(trials * p - far)), min(trials, math.ceil(trials * p + far))
    return np.asarray(binom.pmf(np.arange(first, last + 1), trials, p))


def views(others: int, p: float, ones: int) -> tuple[Floats, Floats]:
    rest = np.convolve(law_of(others - ones, p), law_of(ones, p)[::-1])
    low, high = np.append(rest, 0.0), np.insert(rest, 0, 0.0)
    return (1 - p) * low + p * high, p * low + (1 - p) * high


def told(others: int, p: float, ones: int) -> Floats:
    zero, one = views(others, p, ones)
    return np.asarray(np.maximum(zero - np.exp(EPSILONS)[:, None] * one, 0).sum(axis=1))


def check_all_ones(clients: int, bits: float) -> None:
    lie = min(Fraction(bits).limit_denominator(1000) / clients, Fraction(45, 100))
    pair = RandomizedBitsPair(clients, lie)
    worst = np.max([told(clients - 1, float(lie), t) for t in range(clients)], axis=0)
    at_each, along = np.array([pair.delta(float(e)) for e in EPSILONS]), pair._curves(EPSILONS)
    assert (at_each >= worst * (1 - 1e-11) - 1e-15).all()
    assert (along >= worst * (1 - 1e-11) - 1e-15).all()
    assert (at_each <= worst * 1.001001 + 1e-14).all()


@pytest.mark.some_quick(15)
@pytest.mark.parametrize("clients", [2, 3, 5, 20, 200])
@pytest.mark.parametrize("bits", [0.02, 0.3, 1.0, 1.6, 6, 20])
def test_delta_covers_every_number_of_ones_and_little_more(clients: int, bits: float) -> None:
    """[L8.SUM] with one message a client: the worst number of ones among the others."""
    check_all_ones(clients, bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [0.02, 0.1, 0.3, 0.5, 1.0, 1.6, 2.5, 6, 20, 60])
def test_delta_covers_every_number_of_ones_among_2000(bits: float) -> None:
    check_all_ones(2000, bits)


@pytest.mark.parametrize("clients", [10**4, pytest.param(10**5, marks=pytest.mark.slow)])
def test_a_calibrated_sum_keeps_a_large_delta_beside_any_ones(clients: int) -> None:
    """ε = .206, δ = .2875: 0.1 said it kept this with noise at which δ is .2952 and more."""
    poll = dp.shuffle.bit_sum(clients=clients, epsilon=0.206, delta=0.2875)
    lie = float(poll._factors(clients)[0][0].lie)  # type: ignore[attr-defined]
    tried = [told(clients - 1, lie, t)[3] for t in range(0, clients, clients // 100)]
    assert 0.287 < max(tried) <= 0.2875


@pytest.mark.parametrize("order", [1.25, 2.0, 8.0, 40.0])
@pytest.mark.parametrize(("clients", "lie"), [(2, Fraction(1, 4)), (60, Fraction(1, 50)), (60, Fraction(3, 10))])
def test_divergences_cover_every_number_of_ones(clients: int, lie: Fraction, order: float) -> None:
    worst = 0.0
    for ones in range(clients):
        p, q = views(clients - 1, float(lie), ones)
        kept = (p > 0) & (q > 0)
        log = order * np.log(p[kept]) - (order - 1) * np.log(q[kept])
        worst = max(worst, (log.max() + math.log(np.exp(log - log.max()).sum())) / (order - 1))
    stated = RandomizedBitsPair(clients, lie).renyi(order)
    assert worst * (1 - 1e-10) <= stated <= worst * 1.021 + 1e-9


def test_both_ways_to_sum_agree_and_knowing_more_tells_no_less() -> None:
    lie = Fraction(3, 100)
    most, least = weights(lie, EPSILONS[:-1])
    for ones, zeros in [(0, 0), (0, 7), (5, 0), (40, 300), (1000, 1000)]:
        along = deltas_at_weights(ones, zeros, lie, most, least)
        each = [delta_at_weights(ones, zeros, lie, float(a), float(b)) for a, b in zip(most, least, strict=True)]
        assert np.allclose(along, each, rtol=1e-8, atol=1e-30)
        for more in ((ones + 1, zeros), (ones, zeros + 1)):
            assert (deltas_at_weights(*more, lie, most, least) <= along * (1 + 1e-9)).all()


def test_a_billion_clients_are_as_quick_as_a_thousand() -> None:
    assert dp.shuffle.bit_sum(clients=10**9, epsilon=1, delta=1e-6).deviation == pytest.approx(5.84, abs=0.01)


@pytest.mark.parametrize("bits", [0.3, 0.7, 4.0, 34.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_stated_error_holds_for_every_number_of_ones(bits: float, confidence: float) -> None:
    clients = 100
    lie = Fraction(bits).limit_denominator(100) / clients
    poll = dp.shuffle.BitSum(clients=clients, minimum=clients, lie=lie)
    within = poll.error(confidence).amount * float(1 - 2 * lie)
    for ones in range(clients + 1):
        turned, kept = (clients - ones, float(lie)), (ones, 1 - float(lie))
        masses = np.convolve(*(binom.pmf(np.arange(clients + 1), *law) for law in (turned, kept)))
        away = np.abs(np.arange(len(masses)) - float((clients - ones) * lie + ones * (1 - lie)))
        assert masses[away > within + 1e-9].sum() <= 1 - confidence + 1e-9


def test_the_error_of_wide_noise_is_close_to_normal() -> None:
    poll = dp.shuffle.BitSum(clients=10**6, minimum=10**6, lie=0.3)
    assert 1.96 * poll.deviation < poll.error(0.95).amount < 2.1 * poll.deviation
    assert 2.57 * poll.deviation < poll.error(0.99).amount < 3.3 * poll.deviation


# --- rounding, beside rationals -------------------------------------------------------------------------------


def powers(trials: int, p: Fraction) -> list[Fraction]:
    return [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def shifted(trials: int, p: Fraction) -> Exact:
    law = powers(trials, p)
    return [*law, Fraction(0)], [Fraction(0), *law]


def bits_beside(clients: int, p: Fraction, ones: int) -> Exact:
    rest = [Fraction(0)] * clients
    for i, up in enumerate(powers(clients - 1 - ones, p)):
        for j, down in enumerate(powers(ones, 1 - p)):
            rest[i + j] += up * down
    sides = list(zip([*rest, Fraction(0)], [Fraction(0), *rest], strict=True))
    return [(1 - p) * a + p * b for a, b in sides], [p * a + (1 - p) * b for a, b in sides]


def two_counts(pair: TwoCountsPair) -> Exact:
    inside: dict[tuple[int, int], Fraction] = {}
    outside: dict[tuple[int, int], Fraction] = {}
    for total, mass in enumerate(powers(pair.others, pair.chance)):
        for i in range(total + 1):
            share = mass * math.comb(total, i) / 2**total
            for law, own, other in ((inside, pair.truth, pair.lie), (outside, pair.lie, pair.truth)):
                for seen, chance in (((i + 1, total - i), own), ((i, total - i + 1), other)):
                    law[seen] = law.get(seen, Fraction(0)) + share * chance
    return list(inside.values()), [outside[seen] for seen in inside]


def at_least(law: Exact, epsilon: float) -> Fraction:
    """δ(ε), or less by one part in 10³⁰."""
    ratio = exp_bounds(Fraction(epsilon))[1]
    return sum((max(Fraction(0), p - ratio * q) for p, q in zip(*law, strict=True)), Fraction(0))


def ties(law: Exact) -> list[float]:
    """Some ε, and those at which floats cannot say whether an outcome counts."""
    losses = [math.log(p / q) for p, q in zip(*law, strict=True) if p > q > 0]
    return [0.0, 0.3, 1.7, 50.0, *losses, *(math.nextafter(loss, 0) for loss in losses)]


@pytest.mark.some_quick(18)
@pytest.mark.parametrize("p", [Fraction(k, 20) for k in range(1, 10)])
@pytest.mark.parametrize("trials", [1, 2, 5, 8])
def test_no_delta_is_rounded_down(trials: int, p: Fraction) -> None:
    law = shifted(trials, p)
    for turned, sides in ((False, law), (True, law[::-1])):
        for epsilon in ties(sides):
            assert Fraction(ShiftedBinomialPair(trials, p, turned).delta(epsilon)) >= at_least(sides, epsilon)
        assert ShiftedBinomialPair(trials, p, turned).infinite >= at_least(sides, 200.0)
    every = [bits_beside(trials + 1, p, ones) for ones in range(trials + 1)]
    pair = RandomizedBitsPair(trials + 1, p)
    for epsilon in ties(every[0])[:12]:
        exact = max(at_least(one, epsilon) for one in every)
        assert Fraction(pair.delta(epsilon)) >= exact
        assert Fraction(float(pair._curves(np.array([epsilon]))[0])) >= exact


@pytest.mark.parametrize("truth", [Fraction(1), Fraction(9, 10), Fraction(2, 3)])
@pytest.mark.parametrize("share", [0, Fraction(1, 7), 1])
@pytest.mark.parametrize("others", [0, 1, 4])
def test_no_delta_of_two_counts_is_rounded_down(truth: Fraction, share: Fraction, others: int) -> None:
    pair = TwoCountsPair(others, Fraction(3, 10), truth, min(share * (1 - truth), truth))
    law = two_counts(pair)
    for epsilon in ties(law):
        exact = at_least(law, epsilon)
        assert Fraction(pair.delta(epsilon)) >= exact
        assert Fraction(CountedPair.delta(pair, epsilon)) >= exact


def test_a_leak_of_rationals_is_rounded_up() -> None:
    for k in range(3, 60):
        leak = Fraction(1, k)
        pair = FinitePair((leak, 1 - leak, Fraction(0)), (Fraction(0), 1 - leak, leak))
        assert Fraction(pair.infinite) >= leak


def test_masses_are_good_where_nearly_all_bits_are_ones() -> None:
    """1 − p must not be taken from p in floats: its error would be that of all odds."""
    for lie in (Fraction(1, 10**6), Fraction(7, 10**13)):
        first, masses = binomial(3, 1 - lie)
        assert first == 0
        for mass, exact in zip(masses.tolist(), powers(3, 1 - lie), strict=True):
            assert mass == pytest.approx(float(exact), rel=1e-14, abs=0)


@pytest.mark.parametrize("mean", [0.001, 0.1, 0.5, 1.0, 1.4, 2.0, 3.0, 10.0, 100.0, 3000.0])
@pytest.mark.parametrize("trials", [10**4, 10**7])
def test_less_is_cut_than_is_counted_as_lost(mean: float, trials: int) -> None:
    chance = Fraction(mean).limit_denominator(10**6) / trials
    first, masses = binomial(trials, chance)
    p, last = float(chance), first + len(masses) - 1
    assert 4 * (binom.cdf(first - 1, trials, p) + binom.sf(last, trials, p)) < LOST
    assert _mass_outside(trials, chance, 16.0) < LOST
