"""Privacy loss of shuffled reports: never below what enumeration finds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.guarantees.privacy_loss.shuffled_pairs import clone_pair
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


@pytest.mark.slow
def test_clones_are_those_that_are_proved() -> None:
    assert clone_pair(Fraction(2), 100).chance == pytest.approx(math.exp(-2))
    assert (
        dp.guarantees.LossDistribution(factors=((clone_pair(Fraction(1), 10**6), 1),)).epsilon_at(delta=DELTA) < 0.01
    )  # and quick


@pytest.mark.slow
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
