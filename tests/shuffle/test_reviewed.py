"""What a review with fresh eyes found in shuffled protocols and local surveys: each once wrong, now mended."""

from __future__ import annotations

import itertools
import math
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet import testing
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.guarantees.privacy_loss.shuffled_pairs import cloned
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.geometric_response import HadamardResponse

DELTA = 1e-6


def worst(laws: Any, clients: int, epsilon: float) -> float:
    """δ of shuffled reports with these laws, over all neighbors, by enumeration of multisets."""
    values = list(laws)

    def view(held: tuple[Any, ...]) -> dict[Any, float]:
        seen: dict[Any, float] = {(): 1.0}
        for value in held:
            grown: dict[Any, float] = {}
            for before, p in seen.items():
                for report, q in laws[value].items():
                    key = tuple(sorted((*before, repr(report))))
                    grown[key] = grown.get(key, 0.0) + p * float(q)
            seen = grown
        return seen

    found = 0.0
    for others in itertools.combinations_with_replacement(values, clients - 1):
        views = {value: view((*others, value)) for value in values}
        for a, b in itertools.permutations(values, 2):
            excess = (p - math.exp(epsilon) * views[b].get(seen, 0.0) for seen, p in views[a].items())
            found = max(found, sum(one for one in excess if one > 0))
    return found


@pytest.mark.parametrize("kind", [DirectResponse, SubsetSelection, UnaryResponse, HadamardResponse])
@pytest.mark.parametrize("odds", [2, 5])
def test_shuffled_oracles_are_dominated_by_what_two_values_have_in_common(kind: Any, odds: int) -> None:
    local = kind(size=3, odds=odds)
    shuffled = dp.Shuffled(local=local, clients=3).guarantee()
    for epsilon in (0.05, 0.3, 0.8):
        assert worst(local.laws(), 3, epsilon) <= shuffled.delta_at(epsilon=epsilon) + 1e-12


def test_clones_are_those_that_are_proved() -> None:
    assert cloned(Fraction(2), 100).chance == pytest.approx(math.exp(-2))
    assert dp.LossDistribution(factors=((cloned(Fraction(1), 10**6), 1),)).epsilon_at(delta=DELTA) < 0.01  # and quick


def test_renyi_divergences_of_high_orders_are_those_of_the_noise() -> None:
    poll = dp.shuffle.bit_sum(clients=10**6, epsilon=0.1, delta=DELTA)
    variance = float(poll.lie) * 10**6  # type: ignore[union-attr]
    for order in (8, 32, 64):
        assert poll.guarantee().renyi(order) == pytest.approx(order / (2 * variance), rel=0.1)
    others = binom.pmf(np.arange(50), 49, 0.1)
    p = 0.9 * np.append(others, 0) + 0.1 * np.insert(others, 0, 0)
    q = 0.1 * np.append(others, 0) + 0.9 * np.insert(others, 0, 0)
    exact = math.log(float((p * (p / q) ** 7).sum())) / 7
    assert RandomizedBitsPair(50, Fraction(1, 10)).renyi(8.0) >= exact


def test_a_memory_belongs_to_its_survey(tmp_path: Path) -> None:
    loud = dp.local.survey(choices=["a", "b", "c"], epsilon=5, method="direct")
    quiet = dp.local.survey(choices=["a", "b", "c"], epsilon=0.1, method="direct")
    told = 0
    for _ in range(200):
        memory: dict[str, Any] = {}
        dp.local.repeated(loud, memory=memory).encode("b")
        told += dp.local.repeated(quiet, memory=memory).encode("b") == dp.local.repeated(loud, memory=memory).encode(
            "b"
        )
    assert told < 130  # a third is chance: the loud answer would come always
    file = tmp_path / "memory.json"
    first = dp.local.repeated(loud, memory=file).encode("b")
    assert dp.local.repeated(loud, memory=file).encode("b") == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_was_made_without_noise_says_so() -> None:
    survey, mean = dp.local.survey(choices=["a", "b", "c"], epsilon=1), dp.local.mean(between=(0, 1), epsilon=1)
    with testing.no_noise():
        assert survey.analyze(survey.encode_many(list("abcabc"))).not_private
        assert mean.analyze(mean.encode_many([0.1, 0.9])).not_private
    assert not survey.analyze(survey.encode_many(list("abcabc"))).not_private


@pytest.mark.parametrize("value", ["secret", b"secret", None, {"a": 1}, 10**400, 1j, (1, 2), [1, 2], float("nan")])
def test_no_value_can_stop_many_clients(value: Any) -> None:
    given: dict[str, Any] = {"clients": 100, "epsilon": 1, "delta": DELTA}
    for poll in (
        dp.shuffle.bit_sum(**given),
        dp.shuffle.sum(between=(0, 1), **given, planes=2),
        dp.shuffle.sum(between=(0, 1), **given, method="split and mix"),
        dp.shuffle.histogram(choices=["a", "b"], **given),
    ):
        assert len(poll.encode_many([value, value])) == 2 * poll.messages
    for method in ("hybrid", "laplace"):
        assert np.isfinite(dp.local.mean(between=(0, 1), epsilon=1, method=method).encode_many([value])).all()


def test_one_client_changes_no_other() -> None:
    poll: Any = dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, method="two messages")
    assert poll.encode_many([1, "x", 1]).reshape(3, 2)[::2, 0].tolist() == [1, 1]


def test_one_bad_report_spoils_nothing() -> None:
    poll = dp.shuffle.histogram(choices=["a", "b"], clients=100, epsilon=1, delta=DELTA)
    good = poll.encode_many(["a"] * 100).tolist()
    assert poll.analyze([*good, None, 2**70, "x", 1.7, -3], reports=100).value == poll.analyze(good).value
    mean = dp.local.mean(between=(0, 1), epsilon=1, method="laplace")
    told = mean.analyze([0.3] * 10 + ["x", 1e300, None])  # type: ignore[list-item]
    assert told.raw == pytest.approx(0.3)
    assert told.rejected == 3
    rows = dp.local.rows({"c": ["x", "y"], "n": (0, 1)}, epsilon=2)
    reports = [rows.encode({"c": "x", "n": 0.5}) for _ in range(20)]
    told = rows.analyze([*reports, {"c": 1}, None])
    assert (told["c"].reports, told["c"].rejected) == (21, 1)  # type: ignore[union-attr]
    assert (told["n"].reports, told["n"].rejected) == (20, 2)  # type: ignore[union-attr]


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
    with pytest.raises(dp.IncompatibleGuarantee, match="larger δ"):
        poll.analyze(poll.encode_many(np.ones(1000)), ledger=small)


def test_split_and_mix_says_how_wrong_it_is_with_more_clients_than_the_minimum() -> None:
    poll = dp.shuffle.sum(between=(0, 1), clients=4000, minimum=1000, epsilon=1, delta=DELTA, method="split and mix")
    off = [poll.analyze(poll.encode_many(np.ones(4000))).value - 4000 for _ in range(60)]
    assert np.std(off) == pytest.approx(poll.deviation, rel=0.5)
    with pytest.raises(dp.InvalidArgument, match="room"):
        poll.analyze(np.zeros(8000 * poll.messages, dtype=np.int64))
    with pytest.raises(dp.InvalidArgument, match="honest clients"):
        dp.shuffle.sum(between=(0, 1), clients=10, epsilon=1, delta=DELTA, method="split and mix")
    with pytest.raises(dp.InvalidArgument, match="fewer steps"):
        dp.shuffle.sum(between=(0, 1), clients=1000, epsilon=0.001, delta=DELTA, method="split and mix", steps=2**16)


def test_a_client_does_not_send_its_own_message_first() -> None:
    poll = dp.shuffle.Fakes(clients=10, minimum=10, choices=range(1000), fakes=3)
    first = [poll.encode(7)[0] == 7 for _ in range(200)]
    assert 10 < sum(first) < 110
