"""Seeded bugs of shuffled protocols: each is planted, and a check of ours must see it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.exact import samplers
from discreet.guarantees.privacy_loss import randomized_bits, shuffled_pairs
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.guarantees.privacy_loss.shuffled_pairs import CountedPair, ShiftedBinomialPair, TwoCountsPair
from discreet.mechanisms.reports import shuffle_clients
from discreet.shuffle import fakes
from discreet.shuffle import protocol as protocols

from ..refusing import refuses

Plant = Callable[[pytest.MonkeyPatch], None]


def coins_are_those_of_the_law() -> None:
    """100,000 bits turned with probability ¼: six deviations have a false alarm below 1e-8."""
    poll = dp.shuffle.BitSum(clients=100_000, minimum=100_000, lie=0.25)
    turned = int(poll.encode_many(np.zeros(100_000)).sum())
    assert abs(turned - 25_000) < 6 * math.sqrt(100_000 * 3 / 16), "bits are not turned as stated"


def fakes_are_uniform_and_as_many_as_stated() -> None:
    poll = dp.shuffle.Fakes(clients=50_000, minimum=50_000, choices=range(4), fakes=1.5)
    counts = np.bincount(poll.encode_many(np.zeros(50_000, dtype=int)), minlength=5)
    assert counts[4] == pytest.approx(25_000, abs=700), "another number of fakes is sent"
    assert np.allclose(counts[1:4], 75_000 / 4, atol=6 * math.sqrt(75_000 / 4)), "fakes are not uniform"


def two_clients_are_told_apart_as_stated() -> None:
    """Enumerated: two clients, bits turned with probability ¼."""
    p, epsilon = 0.25, 0.3
    worst = 0.0
    for other in (0, 1):
        views = []
        for own in (0, 1):
            one = np.array([1 - p, p]) if own == 0 else np.array([p, 1 - p])
            two = np.array([1 - p, p]) if other == 0 else np.array([p, 1 - p])
            views.append(np.convolve(one, two))
        for a, b in (views, views[::-1]):
            worst = max(worst, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
    stated = RandomizedBitsPair(2, Fraction(1, 4)).delta(epsilon)
    assert stated >= worst - 1e-12, "the stated δ is too small"


def the_worst_number_of_ones_is_covered() -> None:
    """Here 3,666 ones among 9,999 others are the worst; by the law of a sum of two binomials."""
    lie, epsilon = 1.586e-4, 0.206
    zeros, ones = (np.array([math.comb(n, k) * lie**k * (1 - lie) ** (n - k) for k in range(40)]) for n in (6333, 3666))
    rest = np.convolve(zeros, ones[::-1])
    low, high = np.append(rest, 0.0), np.insert(rest, 0, 0.0)
    zero, one = (1 - lie) * low + lie * high, lie * low + (1 - lie) * high
    exact = float(np.maximum(zero - math.exp(epsilon) * one, 0).sum())
    assert RandomizedBitsPair(10**4, Fraction(1586, 10**7)).delta(epsilon) >= exact - 1e-12, "a worse view is left out"


def a_mass_from_above_is_rounded_up() -> None:
    """Enumerated in rationals: three noise bits; their sum is 0 with probability (1 − p)³, which only P can have."""
    for p in (Fraction(k, 100) for k in range(1, 100)):
        stated = Fraction(ShiftedBinomialPair(3, p).delta(50.0))
        assert stated >= (1 - p) ** 3, "a mass is rounded down"


def counts_of_two_choices_tell_as_stated() -> None:
    """Enumerated: three fakes over two choices, beside one real message."""
    epsilon, inside, outside = 0.5, np.zeros(5), np.zeros(5)
    for k in range(4):
        inside[k + 1] += math.comb(3, k) / 8
        outside[k] += math.comb(3, k) / 8
    exact = float(np.maximum(inside - math.exp(epsilon) * outside, 0).sum())
    assert TwoCountsPair(3, Fraction(1)).delta(epsilon) >= exact - 1e-12, "the stated δ is too small"


def only_honest_noise_counts() -> None:
    given: dict[str, Any] = {"clients": 2000, "epsilon": 1, "delta": 1e-6, "choices": range(3)}
    assert dp.shuffle.histogram(**given, honest=0.5).deviation > 1.3 * dp.shuffle.histogram(**given).deviation
    assert dp.shuffle.histogram(**given, minimum=1000).deviation > 1.3 * dp.shuffle.histogram(**given).deviation


def too_few_reports_are_refused() -> None:
    poll = dp.shuffle.BitSum(clients=10, minimum=10, lie=0.25)
    with refuses(dp.NotAllowed, "too-few-reports"):
        poll.analyze(poll.encode_many(np.zeros(9)))
    few = [*poll.encode_many(np.zeros(9)), "junk", None, 7]
    for claimed in (None, 10, 1000):
        with refuses(dp.NotAllowed, "too-few-reports"):
            poll.analyze(few, reports=claimed)


def a_value_outside_says_nothing() -> None:
    poll = dp.shuffle.Fakes(clients=10, minimum=10, choices=["a", "b"], fakes=1)
    assert poll.encode_many(["a", "elsewhere", "b"]).shape == (6,)


def shares_say_nothing_alone() -> None:
    poll = dp.shuffle.sum(between=(0, 1), clients=1000, epsilon=1, delta=1e-6, method="split and mix")
    first = poll.encode_many(np.ones(2000)).reshape(2000, -1)
    half = poll.alphabet / 2
    assert np.allclose((first < half).mean(axis=0), 0.5, atol=0.08), "a share is not uniform"


CHECKS = [
    coins_are_those_of_the_law,
    fakes_are_uniform_and_as_many_as_stated,
    two_clients_are_told_apart_as_stated,
    the_worst_number_of_ones_is_covered,
    a_mass_from_above_is_rounded_up,
    counts_of_two_choices_tell_as_stated,
    only_honest_noise_counts,
    too_few_reports_are_refused,
    a_value_outside_says_nothing,
    shares_say_nothing_alone,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


def fewer_lies(patch: pytest.MonkeyPatch) -> None:
    toss = samplers.bernoulli
    patch.setattr(samplers, "bernoulli", lambda chance, size: toss(chance / 2, size))


def fewer_fakes(patch: pytest.MonkeyPatch) -> None:
    send = shuffle_clients.fake_messages
    patch.setattr(shuffle_clients, "fake_messages", lambda fakes, *rest: send(fakes - fakes % 1 / 2, *rest))


def fakes_leave_out_a_choice(patch: pytest.MonkeyPatch) -> None:
    send = shuffle_clients.fake_messages
    patch.setattr(shuffle_clients, "fake_messages", lambda fakes, choices, n: [
        np.where(one == choices - 1, 0, one) for one in send(fakes, choices, n)
    ])  # fmt: skip


def others_counted_twice(patch: pytest.MonkeyPatch) -> None:
    law = shuffled_pairs.binomial
    patch.setattr(randomized_bits, "binomial", lambda trials, *given: law(2 * trials, *given))


def ones_scanned_at_the_ends(patch: pytest.MonkeyPatch) -> None:
    """As 0.1 did, but for its 2% more: all of the first 24, and 8 beyond."""

    def scanned(others: int, view: randomized_bits.View, tolerance: float) -> Any:
        half = others // 2
        tried = {*range(24), *np.geomspace(24, half, 8).astype(int).tolist()}
        return 1.02 * np.max([view(*sides) for t in tried for sides in ((t, others - t), (others - t, t))], axis=0)

    patch.setattr(randomized_bits, "worst", scanned)


def a_range_judged_by_its_start(patch: pytest.MonkeyPatch) -> None:
    """As if knowing fewer bits told no less."""
    told = randomized_bits.delta_at_weights
    patch.setattr(randomized_bits, "delta_at_weights", lambda ones, zeros, *given: told(ones, 9999 - ones, *given))


def masses_not_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """As in 0.1: what only P can have is taken as floats add it up."""

    def deltas(self: CountedPair, epsilons: Any) -> Any:
        losses, above_p, above_q, alone = shuffled_pairs._suffixes(self)
        start = np.searchsorted(losses, epsilons, side="right")
        p, q = above_p[start], np.exp(np.minimum(epsilons, 700.0)) * above_q[start]
        excess = np.maximum(p * (1 + self.relative) - q * (1 - self.relative), 0.0)
        return np.minimum(1.0, excess + alone + shuffled_pairs.LOST)

    patch.setattr(CountedPair, "deltas", deltas)


def own_noise_not_counted_once(patch: pytest.MonkeyPatch) -> None:
    law = shuffled_pairs.binomial
    patch.setattr(shuffled_pairs, "_totals", lambda pair: law(2 * pair.others, pair.chance))


def everyone_is_honest(patch: pytest.MonkeyPatch) -> None:
    for module in (protocols, fakes):
        patch.setattr(module, "honest_clients", lambda minimum, honest: 2000)


def minimum_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocols.Protocol, "_check_reports", lambda self, reports: None)
    patch.setattr(protocols.Protocol, "at_least", 0)


def junk_is_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocols.Protocol, "_known", lambda self, messages: np.zeros(len(messages), dtype=np.int64))


def reports_are_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(protocols.Protocol, "count_records", lambda self, value: value[1])


def outside_sends_less(patch: pytest.MonkeyPatch) -> None:
    client = shuffle_clients.ChoiceAmongFakes
    send = client._draw
    patch.setattr(client, "_draw", lambda self, places: send(self, places)[: int((places >= 0).sum())])


def a_share_is_the_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shuffle_clients.samplers, "uniform_below", lambda bound, size: np.zeros(size, dtype=np.int64))


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (fewer_lies, coins_are_those_of_the_law),
        (fewer_fakes, fakes_are_uniform_and_as_many_as_stated),
        (fakes_leave_out_a_choice, fakes_are_uniform_and_as_many_as_stated),
        (others_counted_twice, two_clients_are_told_apart_as_stated),
        (ones_scanned_at_the_ends, the_worst_number_of_ones_is_covered),
        (a_range_judged_by_its_start, the_worst_number_of_ones_is_covered),
        (masses_not_rounded_up, a_mass_from_above_is_rounded_up),
        (own_noise_not_counted_once, counts_of_two_choices_tell_as_stated),
        (everyone_is_honest, only_honest_noise_counts),
        (minimum_ignored, too_few_reports_are_refused),
        (junk_is_counted, too_few_reports_are_refused),
        (reports_are_believed, too_few_reports_are_refused),
        (outside_sends_less, a_value_outside_says_nothing),
        (a_share_is_the_number, shares_say_nothing_alone),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.least_fakes.cache_clear()
    plant(monkeypatch)
    try:
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check()
    finally:
        for remembered in (fakes.least_fakes, shuffled_pairs._sorted_atoms, shuffled_pairs._suffixes):
            remembered.cache_clear()
