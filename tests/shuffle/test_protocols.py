"""Shuffled protocols: calibrations by full enumeration, the lecture's own numbers, unbiased estimates."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, nbinom

import discreet as dp
from discreet import testing
from discreet.exact import samplers
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.guarantees.privacy_loss.shuffled_pairs import (
    CountedPair,
    ShiftedBinomialPair,
    TwoCountsPair,
    binomial,
    blanket_of_response,
    clone_pair,
)
from discreet.mechanisms.reports.shuffled import closed_form_bound
from discreet.shuffle.bit_sums import taught_chance
from discreet.shuffle.fakes import fakes_pair
from discreet.shuffle.protocol import from_description
from discreet.shuffle.simulation import simulate

from ..refusing import refuses
from .every_poll import POLLS
from .every_poll import poll as made

DELTA = 1e-6
RNG = np.random.default_rng(5)
EPSILONS = [0.05, 0.3, 1.0, 2.0]
FALSE_ALARM = 1e-6
"""The probability with which each statistical test alarms when nothing is wrong."""


# --- by enumeration: every value of everyone, every coin ------------------------------------------------------

Law = dict[Hashable, Fraction]


def shuffled_view(reports: list[Law]) -> Law:
    """The law of the multiset of all messages, when clients' reports, tuples of messages, have these laws."""
    views: dict[Hashable, Fraction] = {(): Fraction(1)}
    for law in reports:
        grown: dict[Hashable, Fraction] = {}
        for seen, p in views.items():
            for report, q in law.items():
                key = tuple(sorted((*seen, *report)))  # type: ignore[misc]
                grown[key] = grown.get(key, Fraction(0)) + p * q
        views = grown
    return views


def hockey_stick(first: Law, second: Law, epsilon: float) -> float:
    ratio = Fraction(math.exp(epsilon))
    return float(sum((max(Fraction(0), p - ratio * second.get(view, Fraction(0))) for view, p in first.items())))


def worst_delta(client: Callable[[int], Law], values: range, clients: int, epsilon: float) -> float:
    """The largest δ over all neighbors: one replaced client, whatever the others hold."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(values, clients - 1):
        rest = [client(value) for value in others]
        views = {value: shuffled_view([*rest, client(value)]) for value in values}
        for a, b in itertools.permutations(values, 2):
            worst = max(worst, hockey_stick(views[a], views[b], epsilon))
    return worst


def response_client(choices: int, lie: Fraction) -> Callable[[int], Law]:
    return lambda value: {(m,): 1 - (choices - 1) * lie if m == value else lie for m in range(choices)}


def fakes_client(choices: int, whole: int, part: Fraction) -> Callable[[int], Law]:
    def law(value: int) -> Law:
        reports: Law = {}
        for fakes in itertools.product(range(choices), repeat=whole):
            base = Fraction(1, choices**whole)
            endings: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
            if part:
                endings = [((choices,), 1 - part), *(((m,), part / choices) for m in range(choices))]
            for ending, q in endings:
                key = (value, *fakes, *ending)
                reports[key] = reports.get(key, Fraction(0)) + base * q
        return reports

    return law


@pytest.mark.parametrize("clients", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("lie", [Fraction(1, 20), Fraction(1, 5), Fraction(2, 5)])
def test_randomized_bits_equal_full_enumeration(clients: int, lie: Fraction) -> None:
    """[L8.DEF], [L8.SUM]: what the shuffled messages show of one client, by enumeration."""
    for epsilon in EPSILONS:
        exact = worst_delta(response_client(2, lie), range(2), clients, epsilon)
        stated = RandomizedBitsPair(clients, lie).delta(epsilon)
        assert exact <= stated + 1e-15
        assert stated <= exact * 1.001 + 1e-12


@pytest.mark.parametrize("clients", [2, 3, 5, 6])
@pytest.mark.parametrize("chance", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)])
def test_the_lectures_sum_equals_full_enumeration(clients: int, chance: Fraction) -> None:
    """[L8.SUM]: two messages a client, every value of everyone and every coin."""

    def client(value: int) -> Law:
        return {(value, 0): 1 - chance, (value, 1): chance}

    for epsilon in EPSILONS:
        exact = worst_delta(client, range(2), clients, epsilon)
        pair = ShiftedBinomialPair(clients, chance)
        assert max(pair.delta(epsilon), pair.mirrored().delta(epsilon)) == pytest.approx(exact, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "choices", "whole", "part"),
    [
        (3, 3, 1, Fraction(0)),
        (4, 4, 1, Fraction(0)),
        (6, 3, 1, Fraction(0)),
        (3, 2, 1, Fraction(1, 3)),
        (4, 3, 0, Fraction(1, 2)),
    ],
)
def test_fakes_equal_full_enumeration(clients: int, choices: int, whole: int, part: Fraction) -> None:
    for epsilon in EPSILONS:
        exact = worst_delta(fakes_client(choices, whole, part), range(choices), clients, epsilon)
        pair = fakes_pair(whole + part, choices, clients)
        assert pair.delta(epsilon) == pytest.approx(exact, abs=1e-11)
        assert CountedPair.delta(pair, epsilon) == pytest.approx(exact, abs=1e-11)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(("clients", "choices"), [(2, 3), (4, 3), (5, 2), (4, 4)])
@pytest.mark.parametrize("lie", [Fraction(1, 20), Fraction(1, 5)])
def test_the_blanket_is_never_below_enumeration(clients: int, choices: int, lie: Fraction) -> None:
    for epsilon in EPSILONS:
        exact = worst_delta(response_client(choices, lie), range(choices), clients, epsilon)
        blanket = blanket_of_response(choices, lie, clients).delta(epsilon)
        assert exact - 1e-12 <= blanket


@pytest.mark.parametrize(("clients", "choices"), [(3, 2), (4, 3)])
@pytest.mark.parametrize("inverted", [False, True])
def test_parallel_sums_are_never_above_their_guarantee(clients: int, choices: int, inverted: bool) -> None:
    """[L8.HIST1], [L8.HIST2]: the view is the vector of sums; two of them move by one, in opposite directions."""
    chance = Fraction(1, 3)
    poll = dp.shuffle.ParallelSums(
        clients=clients, minimum=clients, choices=range(choices), chance=chance, inverted=inverted
    )
    one = binomial(clients, chance)[1]
    grown, same = np.insert(one, 0, 0.0), np.append(one, 0.0)
    inside, outside = np.outer(grown, same).ravel(), np.outer(same, grown).ravel()
    for epsilon in EPSILONS:
        exact = float(np.maximum(inside - math.exp(epsilon) * outside, 0).sum())
        stated = poll.guarantee().delta_at(epsilon=epsilon)
        assert exact <= stated * (1 + 1e-9) + 1e-12
        assert stated <= exact * 1.01 + 1e-6


@pytest.mark.slow
def test_clones_are_above_what_any_randomizer_does() -> None:
    """Against k-ary response with the same local ε, enumerated; and below the published closed form."""
    for choices, clients in [(2, 5), (3, 4)]:
        for local in (0.5, 1.0, 2.0):
            lie = Fraction(1) / (choices - 1 + Fraction(math.exp(local)))
            pair = clone_pair(Fraction(local), clients)
            for epsilon in (0.1, 0.3):
                exact = worst_delta(response_client(choices, lie), range(choices), clients, epsilon)
                assert exact <= pair.delta(epsilon) + 1e-12
    for clients, local, published in [(10**4, 1, 0.0530), (10**5, 4, 0.170), (10**6, 6, 0.149)]:
        epsilon = dp.guarantees.LossDistribution(factors=((clone_pair(Fraction(local), clients), 1),)).epsilon_at(
            delta=DELTA
        )
        assert epsilon == pytest.approx(published, rel=0.01)
        assert epsilon < closed_form_bound(local, clients, DELTA)


@pytest.mark.parametrize(
    ("trials", "chance"), [(0, 0.3), (1, 0.5), (7, 0.2), (1000, 0.003), (10**6, 0.4), (10**6, 1e-5)]
)
def test_masses_are_binomial(trials: int, chance: float) -> None:
    first, masses = binomial(trials, Fraction(chance))
    expected = binom.pmf(first + np.arange(len(masses)), trials, chance)
    np.testing.assert_allclose(masses, expected, rtol=1e-8, atol=1e-200)
    assert binom.cdf(first - 1, trials, chance) + binom.sf(first + len(masses) - 1, trials, chance) < 1e-35


# --- calibration ----------------------------------------------------------------------------------------------

TABLE = {  # the research page's standard deviations: one randomized bit, two messages, fakes
    (10**4, 0.1): (37.5, 37.13, 51.39), (10**4, 0.5): (9.49, 9.459, 11.67), (10**4, 1.0): (5.84, 5.827, 6.53),
    (10**5, 0.1): (37.5, 37.50, 51.39), (10**5, 0.5): (9.50, 9.491, 11.67), (10**5, 1.0): (5.84, 5.836, 6.53),
    (10**6, 0.1): (37.5, 37.53, 51.39), (10**6, 0.5): (9.50, 9.494, 11.67), (10**6, 1.0): (5.84, 5.837, 6.53),
}  # fmt: skip


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("clients", "epsilon"), [(10**4, 1.0), (10**5, 0.5), (10**6, 1.0), (10**4, 0.1)])
def test_deviations_are_within_one_percent_of_the_tables(clients: int, epsilon: float) -> None:
    one, two, fakes = TABLE[clients, epsilon]
    given: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": DELTA}
    assert dp.shuffle.bit_sum(**given).deviation == pytest.approx(one, rel=0.01)
    assert dp.shuffle.bit_sum(**given, method="two messages").deviation == pytest.approx(two, rel=0.01)
    poll = dp.shuffle.histogram(choices=range(1000) if clients == 10**6 else range(3), **given)
    size = len(poll.choices)
    assert poll.deviation / math.sqrt(1 - 1 / size) == pytest.approx(fakes, rel=0.01)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("method", ["response", "two messages"])
@pytest.mark.parametrize("clients", [500, 10**4, 10**6])
def test_the_noise_keeps_its_promise_and_less_does_not(method: str, clients: int) -> None:
    poll: Any = dp.shuffle.bit_sum(clients=clients, epsilon=0.7, delta=DELTA, method=method)
    assert poll.guarantee().delta_at(epsilon=0.7) <= DELTA
    name = "lie" if method == "response" else "chance"
    less = replace(poll, **{name: float(getattr(poll, name)) * 0.97})
    assert less.guarantee().delta_at(epsilon=0.7) > DELTA


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("method", ["fakes", "response", "parallel", "inverted", "hashed"])
def test_histograms_keep_their_promise_and_less_noise_does_not(method: str) -> None:
    poll = dp.shuffle.histogram(choices=range(5), clients=5000, epsilon=1, delta=DELTA, method=method)
    assert poll.guarantee().delta_at(epsilon=1) <= DELTA
    name = {"fakes": "fakes", "hashed": "fakes", "response": "lie"}.get(method, "chance")
    less = replace(poll, **{name: float(getattr(poll, name)) * 0.97})
    assert less.guarantee().delta_at(epsilon=1) > DELTA


def test_the_lectures_noise_is_the_lectures() -> None:
    """[L8.SUM], [L8.HIST1]: p = 48 ln(2/δ)/(ε²n), and half of ε and δ for each of two sums."""
    goal = dp.Approx(epsilon=0.5, delta=DELTA)
    assert float(taught_chance(goal, 10**5)) == pytest.approx(0.027857, rel=1e-4)
    taught: Any = dp.shuffle.bit_sum(
        clients=10**5, epsilon=0.5, delta=DELTA, method="two messages", calibration="taught"
    )
    assert taught.deviation == pytest.approx(52.04, rel=1e-3)
    assert taught.guarantee().delta_at(epsilon=0.5) < 1e-30
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        dp.shuffle.bit_sum(clients=10**4, epsilon=0.1, delta=DELTA, method="two messages", calibration="taught")
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        dp.shuffle.bit_sum(clients=10**4, epsilon=2, delta=DELTA, method="two messages", calibration="taught")
    parallel = dp.shuffle.histogram(
        choices=range(4), clients=10**6, epsilon=1, delta=DELTA, method="parallel", calibration="taught"
    )
    assert float(parallel.chance) * 10**6 == pytest.approx(48 * math.log(4 / DELTA) * 4, rel=1e-6)


def test_fewer_honest_clients_need_more_noise() -> None:
    given: dict[str, Any] = {"clients": 10**4, "epsilon": 1, "delta": DELTA}
    all_honest, most = dp.shuffle.bit_sum(**given), dp.shuffle.bit_sum(**given, honest=0.8, minimum=5000)
    assert most.deviation > all_honest.deviation * 1.5
    # 20% colluding clients: their noise is known, and the rest keeps the promise
    assert (
        RandomizedBitsPair(4000, dp.shuffle.bit_sum(**given, honest=0.8, minimum=5000)._factors(1)[0][0].lie).delta(1.0)
        <= DELTA * 1.0001
    )
    # with a quarter of the noise no ε is kept at this δ: the minimum is a matter of privacy
    lie = all_honest._factors(1)[0][0].lie  # type: ignore[attr-defined]
    assert RandomizedBitsPair(1000, lie).delta(5.0) > DELTA


# --- estimates ------------------------------------------------------------------------------------------------


def polls() -> list[Any]:
    given: dict[str, Any] = {"clients": 2000, "epsilon": 1.0, "delta": DELTA}
    return [
        dp.shuffle.histogram(choices=["a", "b", "c"], **given, method=method)
        for method in ("fakes", "response", "parallel")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("poll", polls(), ids=lambda poll: poll.kind)
def test_counts_are_unbiased_with_the_stated_deviation_and_their_intervals_cover(poll: Any) -> None:
    runs, values = 400, np.repeat(["a", "b"], [1500, 500])
    true = np.array([1500, 500, 0])
    answers = [poll.analyze(poll.encode_many(values)) for _ in range(runs)]
    off = np.array([list(one.value.values()) for one in answers]) - true
    limit = poll.deviation * (3 if poll.kind == "histogram by response" else 1.25)
    assert np.abs(off.mean(axis=0)).max() < 5.5 * limit / math.sqrt(runs)
    assert off[:, 2].std() == pytest.approx(poll.deviation, rel=0.2)
    covered = int((np.abs(off).max(axis=1) <= float(answers[0].error(0.95))).sum())
    assert binom.cdf(covered, runs, 0.95) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("method", ["response", "two messages"])
def test_bit_sums_are_unbiased_and_cover(method: str) -> None:
    poll = dp.shuffle.bit_sum(clients=3000, epsilon=1, delta=DELTA, method=method)
    bits = np.arange(3000) < 1000
    off = np.array([poll.analyze(poll.encode_many(bits)).value - 1000 for _ in range(500)])
    assert abs(off.mean()) < 5.5 * poll.deviation / math.sqrt(500)
    assert off.std() == pytest.approx(poll.deviation, rel=0.2)
    assert binom.cdf(int((np.abs(off) <= float(poll.error(0.95))).sum()), 500, 0.95) > FALSE_ALARM


@pytest.mark.slow
def test_an_inverted_histogram_reports_nothing_where_nobody_is() -> None:
    """[L8.HIST2]: exactly 0 where nobody is, with probability 1."""
    poll = dp.shuffle.histogram(choices=range(6), clients=1000, epsilon=1, delta=DELTA, method="inverted")
    for _ in range(30):
        answer = poll.analyze(poll.encode_many(np.arange(1000) % 2)).value
        assert [answer[c] for c in range(2, 6)] == [0.0] * 4
        assert abs(answer[0] - 500) <= float(poll.error(0.999999))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "detail"),
    [
        ("digits", {"planes": 2}),
        pytest.param("digits", {}, marks=pytest.mark.slow),
        ("split and mix", {}),
    ],
    ids=["two digits", "digits", "split and mix"],
)
def test_sums_and_means_of_numbers(method: str, detail: dict[str, int]) -> None:
    values = RNG.random(3000) * 5 - 2
    given: dict[str, Any] = {
        "between": (-2, 3),
        "clients": 3000,
        "epsilon": 1,
        "delta": DELTA,
        "method": method,
    } | detail
    poll = dp.shuffle.sum(**given)
    off = np.array([poll.analyze(poll.encode_many(values)).value - values.sum() for _ in range(200)])
    assert abs(off.mean()) < 5.5 * poll.deviation / math.sqrt(200)
    assert off.std() <= poll.deviation * 1.25
    assert binom.cdf(int((np.abs(off) <= float(poll.error(0.95))).sum()), 200, 0.95) > FALSE_ALARM
    mean = dp.shuffle.mean(**given)
    assert mean.analyze(mean.encode_many(values)).value == pytest.approx(values.mean(), abs=float(mean.error(1 - 1e-6)))
    assert poll.guarantee().delta_at(epsilon=1) <= DELTA
    odd = poll.encode_many([np.nan, np.inf, -np.inf, 7])
    assert len(odd) == 4 * poll.messages


def test_split_and_mix_is_as_accurate_as_a_trusted_curator() -> None:
    poll = dp.shuffle.sum(between=(0, 1), clients=10**4, epsilon=1, delta=DELTA, method="split and mix")
    assert poll.deviation == pytest.approx(math.sqrt(2), rel=0.05)
    assert poll.messages <= 12
    shares = poll.encode_many(np.zeros(400)).reshape(400, -1)[:, :-1]
    assert len(np.unique(shares)) > shares.size - 20  # uniform over 2^23: hardly two alike
    with refuses(dp.InvalidArgument, "out-of-range"):
        replace(poll, shares=2)


def test_a_part_of_a_geometric_variable_is_drawn_exactly() -> None:
    for parts, scale in [(10, 5), (3, 2), (1, 4), (100, 1)]:
        drawn = samplers.polya(parts, Fraction(scale), 200_000)
        expected = nbinom.pmf(np.arange(12), 1 / parts, -math.expm1(-1 / scale))
        counts = np.bincount(np.minimum(drawn, 12), minlength=13)[:12]
        deviations = np.sqrt(200_000 * expected * (1 - expected)) + 1
        assert (np.abs(counts - 200_000 * expected) < 6 * deviations).all()
    assert samplers._polya_slowly(7, Fraction(3), 2**64 - 1) > 20
    for word in (0, 2**62, 2**63, 2**64 - 2**40):
        quick = int(np.searchsorted(samplers._polya_table(7, Fraction(3))[1], np.uint64(word)))
        assert samplers._polya_slowly(7, Fraction(3), word) in (quick, quick + 1)


@pytest.mark.slow
def test_hashed_histograms_of_any_strings() -> None:
    values = [f"word {min(int(v), 50_000)}" for v in RNG.zipf(1.2, 20_000)]
    poll = dp.shuffle.HashedHistogram.for_guarantee(dp.Approx(epsilon=1, delta=DELTA), clients=20_000, rows=512)
    candidates = [f"word {k}" for k in range(1, 300)] + ["never said"]
    true = Counter(values)
    answer = poll.analyze(poll.encode_many(values), candidates=candidates)
    off = np.array([answer.value[c] - true[c] for c in candidates])
    assert np.sqrt((off**2).mean()) < 1.6 * poll.deviation
    assert abs(off.mean()) < poll.deviation
    assert poll.alphabet < 2**20  # bounded memory, whatever the domain
    with refuses(dp.InvalidArgument, "candidates"):
        poll.analyze(poll.encode_many(values))


# --- how messages travel, and what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("name", POLLS)
def test_every_client_sends_equally_many_messages_of_one_length(name: str) -> None:
    poll = made(name)
    taken = (0, 0.3, 1, 10**400) if hasattr(poll, "low") else ("x", "y") if hasattr(poll, "choices") else (0, 1, True)
    for value in taken:
        messages = poll.encode(value)
        assert len(messages) == poll.messages
        blob = poll.packed(messages)
        assert len(blob) == poll.messages * poll.length
        assert poll.unpacked(blob).tolist() == messages
    assert len(poll.encode_many(["nowhere", None, float("nan"), [0], {}])) == 5 * poll.messages
    with refuses(dp.InvalidArgument, "unknown-answer"):
        poll.encode(None)
    assert from_description(poll.described()) == poll
    if poll.alphabet < 256**poll.length:
        assert poll.unpacked(b"\xff" * poll.length).tolist() == [-1]
    assert poll.guarantee().trust == "shuffled"
    assert poll.guarantee().protects == dp.row(neighbors="replace")


@pytest.mark.parametrize("name", POLLS)
def test_too_few_reports_are_not_looked_at(name: str, tmp_path: Path) -> None:
    own = dp.Ledger.open(
        tmp_path / "a.ledger", limit=dp.Approx(epsilon=5, delta=1e-4), protects=dp.row(neighbors="replace")
    )

    def never() -> Any:
        raise AssertionError("messages were read")

    with refuses(dp.NotAllowed, "too-few-reports"):
        made(name).analyze(never, reports=299, ledger=own)
    assert len(list(own.entries())) == 0


def test_a_batch_is_charged_once(tmp_path: Path) -> None:
    own = dp.Ledger.open(
        tmp_path / "a.ledger", limit=dp.Approx(epsilon=5, delta=1e-4), protects=dp.row(neighbors="replace")
    )
    poll = made("fakes")
    messages = poll.encode_many(["x"] * 300)
    first = poll.analyze(messages, ledger=own, key="batch 1")
    again = poll.analyze(messages, ledger=own, key="batch 1")
    assert first.value == again.value
    assert again.replayed
    assert len(list(own.entries())) == 1
    basic = dp.Ledger.open(
        tmp_path / "b.ledger",
        limit=dp.Approx(epsilon=5, delta=1e-4),
        protects=dp.row(neighbors="replace"),
        rule="basic",
    )
    assert poll.analyze(messages, ledger=basic).receipt
    wrong = dp.Ledger.open(tmp_path / "c.ledger", limit=dp.Approx(epsilon=5, delta=1e-4), protects=dp.row())
    with refuses(dp.DiscreetError, "incompatible-guarantee"):
        poll.analyze(messages, ledger=wrong)


def test_messages_outside_of_the_domain_count_for_nothing() -> None:
    poll = made("fakes")
    messages = poll.encode_many(["x"] * 300)
    spoiled = np.concatenate([messages, [-1, -5, 10**9, poll.alphabet]])
    assert poll.analyze(spoiled, reports=300).value == poll.analyze(messages).value


def test_what_is_left_when_the_two_services_collude() -> None:
    assert made("bit").if_they_collude.trust == "local"
    lie = float(made("bit").lie)
    assert float(made("bit").if_they_collude.epsilon) == pytest.approx(math.log((1 - lie) / lie))
    assert made("fakes").if_they_collude is None
    assert made("response").if_they_collude.trust == "local"


def test_shuffled_local_reports() -> None:
    local = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=3), choices=["a", "b", "c"])
    shuffled = dp.Shuffled(local=local, clients=10_000)
    assert shuffled.guarantee().epsilon_at(delta=DELTA) < 0.3
    assert set(dp.release(["a"] * 50, dp.Shuffled(local=local, clients=50)).value) <= {"a", "b", "c"}
    found = dp.Shuffled.for_guarantee(
        dp.Approx(epsilon=0.5, delta=DELTA),
        clients=20_000,
        local=lambda pure: dp.RandomizedResponse.for_guarantee(pure, choices=["a", "b"]),
    )
    assert found.guarantee().delta_at(epsilon=0.5) <= DELTA
    assert found.local_epsilon is not None
    assert found.local_epsilon > 4
    with testing.no_noise():
        assert dp.release(["a", "b"], dp.Shuffled(local=local, clients=2)).value == ["a", "b"]
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        dp.Shuffled(local=dp.mechanisms.KeySelection(scale=2, threshold=9), clients=10)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (lambda: dp.shuffle.bit_sum(clients=1, epsilon=1, delta=DELTA), "out-of-range"),
        (lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=0), "needs-delta"),
        (lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, honest=0), "out-of-range"),
        (lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, honest=1.5), "out-of-range"),
        (lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, minimum=200), "out-of-range"),
        (lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, method="magic"), "not-an-option"),
        (
            lambda: dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, calibration="taught"),
            "formula-does-not-apply",
        ),
        (lambda: dp.shuffle.histogram(choices=["a"], clients=100, epsilon=1, delta=DELTA), "out-of-range"),
        (
            lambda: dp.shuffle.histogram(choices=["a", "b"], clients=100, epsilon=1, delta=DELTA, method="magic"),
            "not-an-option",
        ),
        (lambda: dp.shuffle.histogram(choices=range(10**5), clients=100, epsilon=0.1, delta=DELTA), "too-large"),
        (lambda: dp.shuffle.sum(between=(1, 0), clients=100, epsilon=1, delta=DELTA), "ends-out-of-order"),
        (lambda: dp.shuffle.sum(between=3, clients=100, epsilon=1, delta=DELTA), "wrong-type"),
        (lambda: dp.shuffle.sum(between=(0, 1), clients=100, epsilon=1, delta=DELTA, method="magic"), "not-an-option"),
        (lambda: from_description({"kind": "none"}), "not-an-option"),
        (lambda: from_description({**made("bit").described(), "extra": 1}), "shuffle-task-unreadable"),
        (lambda: made("bit").analyze(list), "missing-argument"),
        (lambda: made("hashed").unpacked(b"a"), "foreign-reports"),
        (lambda: made("bit").encode_many(np.ones((2, 2))), "not-a-column"),
        (lambda: made("bit").analyze(np.ones(300) / 2), "foreign-reports"),
    ],
)
def test_bad_arguments(bad: Callable[[], Any], code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        bad()


@pytest.mark.slow
def test_a_simulation_of_every_model(tmp_path: Path) -> None:
    """[L8.OBS1]: one process computes every model, and the central one needs the least noise."""
    for choices in (2, 4):
        done = simulate(clients=5000, epsilon=1, choices=choices, runs=30)
        names = [one.name for one in done.models]
        assert names[0] == "local"
        assert names[-1] == "central"
        assert "shuffled, tight" in names
        sizes = {one.name: one.deviation for one in done.models}
        assert sizes["local"] > sizes["shuffled, tight"] > sizes["central"]
        for one in done.models:
            assert one.seen == pytest.approx(one.deviation, rel=0.75)
        done.plot(str(tmp_path / "models.png"))
        assert (tmp_path / "models.png").stat().st_size > 1000
        assert "local" in str(done)


def test_two_counts_by_tails_and_by_table() -> None:
    for pair in (
        TwoCountsPair(500, Fraction(1, 10)),
        TwoCountsPair(300, Fraction(1, 20), Fraction(9, 10), Fraction(1, 20)),
        TwoCountsPair(0, Fraction(1, 2)),
        TwoCountsPair(40, Fraction(1, 4), more=30, more_chance=Fraction(1, 9)),
    ):
        for epsilon in (0.0, 0.1, 0.7, 2.0):
            assert pair.delta(epsilon) == pytest.approx(CountedPair.delta(pair, epsilon), rel=1e-7, abs=1e-14)


def test_a_ledger_of_basic_sums_takes_polls_with_a_large_delta(tmp_path: Path) -> None:
    poll = dp.shuffle.bit_sum(clients=1000, epsilon=1, delta=1e-2, method="two messages")
    own = dp.Ledger.open(
        tmp_path / "a.ledger", limit=dp.Approx(epsilon=9, delta=0.1), protects=dp.row(neighbors="replace"), rule="basic"
    )
    assert poll.analyze(poll.encode_many(np.ones(1000)), ledger=own).receipt
    small = dp.Ledger.open(
        tmp_path / "b.ledger",
        limit=dp.Approx(epsilon=9, delta=1e-9),
        protects=dp.row(neighbors="replace"),
        rule="basic",
    )
    with refuses(dp.errors.IncompatibleGuarantee, "no-epsilon-at-delta"):
        poll.analyze(poll.encode_many(np.ones(1000)), ledger=small)


def test_split_and_mix_says_how_wrong_it_is_with_more_clients_than_the_minimum() -> None:
    poll = dp.shuffle.sum(between=(0, 1), clients=4000, minimum=1000, epsilon=1, delta=DELTA, method="split and mix")
    off = [poll.analyze(poll.encode_many(np.ones(4000))).value - 4000 for _ in range(60)]
    assert np.std(off) == pytest.approx(poll.deviation, rel=0.5)
    with refuses(dp.InvalidArgument, "shuffle-too-many-reports"):
        poll.analyze(np.zeros(8000 * poll.messages, dtype=np.int64))
    with refuses(dp.InvalidArgument, "shuffle-too-few-clients"):
        dp.shuffle.sum(between=(0, 1), clients=10, epsilon=1, delta=DELTA, method="split and mix")
    with refuses(dp.InvalidArgument, "too-large"):
        dp.shuffle.sum(between=(0, 1), clients=1000, epsilon=0.001, delta=DELTA, method="split and mix", steps=2**16)


def test_a_client_does_not_send_its_own_message_first() -> None:
    poll = dp.shuffle.Fakes(clients=10, minimum=10, choices=range(1000), fakes=3)
    first = [poll.encode(7)[0] == 7 for _ in range(200)]
    assert 10 < sum(first) < 110
