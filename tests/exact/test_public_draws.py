"""Random numbers that protect nobody have the laws that they state."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import testing
from discreet.exact import public_draws

SIZE = 40_000


def test_coins_and_whole_numbers_are_exact():
    coins = testing.exact_law(lambda: bool(public_draws.coins(Fraction(1, 3), 1)[0])).law
    assert coins == {True: Fraction(1, 3), False: Fraction(2, 3)}
    thirds = testing.exact_law(lambda: int(public_draws.whole_numbers(3, 1)[0])).law
    assert thirds == dict.fromkeys(range(3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("drawn", "mean", "variance", "fourth"),
    [(public_draws.fractions, 0.5, 1 / 12, 1 / 80), (public_draws.normals, 0.0, 1.0, 3.0)],
    ids=["fractions", "normals"],
)
def test_moments(drawn, mean, variance, fourth):
    """Six deviations of the mean and of the variance: false alarms below 1e-8; a variance off by 5% is seen."""
    found = drawn(SIZE)
    assert found.dtype == np.float64
    assert abs(found.mean() - mean) < 6 * math.sqrt(variance / SIZE)
    assert abs(((found - mean) ** 2).mean() - variance) < 6 * math.sqrt((fourth - variance**2) / SIZE)


def test_fractions_lie_below_one():
    found = public_draws.fractions(SIZE)
    assert ((found >= 0) & (found < 1)).all()
