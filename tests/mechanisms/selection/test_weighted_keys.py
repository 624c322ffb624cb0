"""Weighted keys: nobody weighs more than 1, a key of one person alone stays hidden whatever its weight, and mutants."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.selection.key_holders import FULL, PersonKeys
from discreet.mechanisms.selection.weighted_keys import SLIGHT, STEP, WeightedKeys, _above, _alone

from ...refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-5)


def people_with(numbers):
    """People with so many keys each, no key shared by two."""
    people = np.repeat(np.arange(len(numbers)), numbers)
    return PersonKeys(people, np.arange(len(people)), list(range(len(people))))


def check_norm(numbers, factors_of):
    """The squares of a person's weights sum to at most 1, for any factors."""
    value = people_with(numbers)
    factors = None if factors_of is None else {key: factors_of(key) for key in value.keys}
    totals = value.totals(factors)
    for person in range(len(numbers)):
        own = [totals.get(int(code), 0) for code in value.codes[value.people == person]]
        assert sum(weight**2 for weight in own) <= (1 / STEP) ** 2


def test_nobody_weighs_more_than_one():
    check_norm(range(1, 301), None)
    check_norm(range(1, 301), lambda key: (0, SLIGHT, FULL)[key % 3])


def test_weights_are_nearly_all_used():
    totals = people_with([1, 7, 300]).totals(None)
    sizes = [totals[0], totals[1] * math.sqrt(7), totals[8] * math.sqrt(300)]
    assert all(size == pytest.approx(float(1 / STEP), rel=1e-4) for size in sizes)


def test_mutant_weights_are_rounded_up(monkeypatch):
    plain = PersonKeys.totals

    def rounded(own, factors):
        return {key: total + 1 for key, total in plain(own, factors).items()}

    monkeypatch.setattr(PersonKeys, "totals", rounded)
    with pytest.raises(AssertionError):
        check_norm([1, 7, 300], None)


def worst_of_two_sizes(noise, bar, keys):
    """The largest probability that a key of one person alone is shown, over weights of two sizes, by brute force."""
    worst = 0.0
    for few, part in combinations_with_replacement(range(1, keys + 1), 2):
        for share in np.linspace(0.01, 0.99, 25):
            many = max(part, few)
            sizes = np.array([share / few] * few + [(1 - share) / (many - few)] * (many - few)) if many > few else None
            weights = np.sqrt(np.full(few, 1 / few) if sizes is None else sizes)
            chance = _above(noise, bar - np.floor(weights / float(STEP)))
            worst = max(worst, -math.expm1(float(np.log1p(-chance).sum())))
    return worst


@pytest.mark.parametrize("keys", [1, 2, 6])
def test_the_bound_covers_all_weights_of_two_sizes(keys):
    found = WeightedKeys.for_guarantee(GOAL, keys_per_person=keys)
    for noise, bar in found._rounds:
        assert worst_of_two_sizes(noise, bar, keys) <= _alone(noise, bar, keys) <= 2.51e-6


@pytest.mark.slow
def test_mutant_the_threshold_of_one_key_is_taken_for_all():
    alone = WeightedKeys.for_guarantee(GOAL, keys_per_person=1)
    noise, bar = alone._rounds[1]
    assert worst_of_two_sizes(noise, bar, 40) > 2.5e-6


def test_the_tail_is_above_that_of_the_exact_law():
    """On a coarse lattice, where the law can be summed: the mass at the threshold is included."""
    noise = Gaussian(stddev=3, step=1)
    law = {k: math.exp(-(k**2) / 18) for k in range(-200, 201)}
    whole = sum(law.values())
    for bar in (1, 4, 9, 14):
        exact = sum(mass for k, mass in law.items() if k >= bar) / whole
        assert exact <= float(_above(noise, np.array([float(bar)]))[0]) <= 4 * exact


def test_mutant_the_mass_at_the_threshold_is_left_out():
    noise = Gaussian(stddev=3, step=1)
    law = {k: math.exp(-(k**2) / 18) for k in range(-200, 201)}
    exact = sum(mass for k, mass in law.items() if k >= 9) / sum(law.values())
    assert float(_above(noise, np.array([11.0]))[0]) < exact


@pytest.mark.parametrize("goal", [GOAL, dp.Approx(epsilon=0.1, delta=1e-8), dp.Approx(epsilon=5, delta=1e-3)])
def test_the_guarantee_is_kept_and_nearly_used(goal):
    found = WeightedKeys.for_guarantee(goal)
    delta = found.guarantee().delta_at(epsilon=float(goal.epsilon))
    assert 0.9 * float(goal.delta) <= delta <= float(goal.delta)
    assert found.guarantee().relation == "add_or_remove"


def test_mutant_one_round_is_charged_for_two():
    found = WeightedKeys.for_guarantee(GOAL)
    single = found._rounds[1][0].guarantee(dp.queries.Sensitivity(1 / STEP, "L2", dimension=300, grain=1))
    assert single.delta_at(epsilon=1) < 0.5 * found.guarantee().delta_at(epsilon=1)


@pytest.mark.slow
def test_more_keys_of_each_person_show_more():
    draw = np.random.default_rng(2)
    found, shown = WeightedKeys.for_guarantee(GOAL), []
    zipf = 1 / np.arange(1, 301)
    for each in (1, 10, 100):
        codes = np.concatenate([draw.choice(300, each, replace=False, p=zipf / zipf.sum()) for _ in range(2000)])
        shown.append(len(found._draw(PersonKeys(np.repeat(np.arange(2000), each), codes, list(range(300))))))
    assert shown[0] < shown[1] < shown[2]


def test_only_keys_are_shown_in_the_order_of_keys():
    value = PersonKeys(np.arange(400), np.arange(400) % 2, ["b", "a"])
    with testing.no_noise():
        assert WeightedKeys.for_guarantee(GOAL)._draw(value) == ["a", "b"]
        assert WeightedKeys.for_guarantee(GOAL)._draw(PersonKeys(np.zeros(0, int), np.zeros(0, int), [])) == []


def test_what_it_cannot_take_is_refused():
    found = WeightedKeys.for_guarantee(GOAL)
    with refuses(dp.InvalidArgument, "wrong-type"):
        found.check([1, 2])
    with refuses(dp.InvalidArgument, "needs-delta"):
        WeightedKeys.for_guarantee(dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "sensitivity-not-taken"):
        found.guarantee(1)
    with refuses(dp.InvalidArgument, "out-of-range"):
        WeightedKeys.for_guarantee(dp.Approx(epsilon=1, delta=Fraction(1, 10**290)))
    for epsilon in (1e-7, 1e-12, 1e-18):
        with refuses(dp.InvalidArgument, "out-of-range"):
            WeightedKeys.for_guarantee(dp.Approx(epsilon=epsilon, delta=1e-8))
