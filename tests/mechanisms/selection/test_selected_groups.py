"""Groups that nobody declared: what choosing them and answering in them costs, by exact enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.selection.threshold import SelectedGroups
from discreet.rows.key_columns import KeyColumns

from ...refusing import refuses

WINDOW = 12
EPSILONS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def made(scale=1.0, threshold=4, noise=1.0):
    answers = dp.Composed(mechanisms=(dp.Laplace(scale=noise, step=1),))
    return SelectedGroups(selection=dp.mechanisms.KeySelection(scale=scale, threshold=threshold), answers=answers)


def law_of(mechanism, people):
    """The exact law of what is shown, each group's count of people answered once more with noise of its own."""

    counts = np.array(list(people.values()), dtype=np.int64)

    def once():
        keys, columns = mechanism._draw((KeyColumns.of([(key,) for key in people], ["text"]), counts, [counts]))
        return tuple(keys), tuple(tuple(map(int, column)) for column in columns)

    found = testing.exact_law(once, window=WINDOW)
    return found.law, float(found.unresolved)


def excess(mechanism, claimed):
    """By how much one person, in a group alone or with others, is told apart better than is claimed."""
    worst = -1.0
    for with_one, without in (({"a": 1}, {}), ({"a": 3}, {"a": 2})):
        laws = law_of(mechanism, with_one), law_of(mechanism, without)
        for (one, _), (other, lost) in (laws, laws[::-1]):
            for epsilon in EPSILONS:
                ratio = math.exp(epsilon)
                delta = sum(max(0.0, float(p) - ratio * float(other.get(y, 0))) for y, p in one.items())
                worst = max(worst, delta - claimed.delta_at(epsilon=epsilon) - ratio * lost)
    return worst


def test_the_charge_covers_what_is_learned():
    mechanism = made()
    assert excess(mechanism, mechanism.guarantee(dp.Sensitivity(1, grain=1))) <= 1e-9


@pytest.mark.parametrize("broken", [made(threshold=3), made(scale=0.5), made(noise=0.5)])
def test_less_noise_or_a_lower_bar_is_caught(broken):
    assert excess(broken, made().guarantee(dp.Sensitivity(1, grain=1))) > 1e-3


def test_a_selection_gets_what_the_answers_leave():
    answers = dp.Composed(mechanisms=(dp.Laplace(scale=2, step=1),))
    goal = dp.Approx(epsilon=1, delta=1e-6)
    fitted = SelectedGroups.for_guarantee(goal, answers=answers, sensitivity=dp.Sensitivity(1, grain=1))
    assert fitted.guarantee(dp.Sensitivity(1, grain=1)).delta_at(epsilon=1) <= 1e-6
    with refuses(dp.InvalidArgument, "guarantee-out-of-reach"):
        SelectedGroups.for_guarantee(
            dp.Approx(epsilon=0.5, delta=1e-6), answers=answers, sensitivity=dp.Sensitivity(1, grain=1)
        )
