"""A quantile and the interval drawn with it: what it costs, by exact enumeration, and how often it holds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.quantiles.quantile import Runs
from discreet.mechanisms.quantiles.quantile_interval import QuantileInterval

from ...refusing import refuses

GRID = dp.queries.Grid(0, 2, 1, missing=None)


def interval(rate, quantile):
    return QuantileInterval(
        space=GRID, rate=rate, outer_rate=rate / 2, check_scale=1 / rate, away=1, quantile=quantile, confidence=0.5
    )


def largest_ratio(run, first, second):
    """How far the odds of any outcome move from one value to another, both ways."""
    one, other = (testing.exact_law(lambda value=value: run(value), window=120).law for value in (first, second))
    return max(float(max(one[y] / other[y], other[y] / one[y])) for y in one)


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 10)])
@pytest.mark.parametrize("rows", [[], [0], [0, 2], [1, 1, 2]])
def test_a_choice_with_a_moved_target_loses_no_more(quantile, rows):
    """Small databases on three points, with one row more: no outcome's odds move beyond what a choice is charged."""
    choice = interval(Fraction(1), quantile)._outer
    charged = float(choice.guarantee().largest_loss)
    for away, added in itertools.product((-1, 1), range(3)):
        places = [np.array(listed, dtype=np.int64) for listed in (rows, [*rows, added])]
        moved = largest_ratio(lambda runs, away=away: choice._choose(runs, away)[0], *(Runs.of(p, 3) for p in places))
        assert moved <= np.exp(charged) * (1 + 1e-9)


def check_ratio(mechanism, moved):
    """How far a row moves the odds of a check, whatever the number that it asks."""
    return max(largest_ratio(mechanism._is_apart, steps, steps + moved) for steps in (0, 9))


def test_a_check_loses_what_is_charged():
    mechanism = interval(Fraction(1), Fraction(1, 10))
    charged = float(Fraction(9, 10) / mechanism.check_scale)
    assert check_ratio(mechanism, 9) <= np.exp(charged) * (1 + 1e-3)  # what lies beyond the window is left out
    assert check_ratio(replace(mechanism, check_scale=Fraction(1, 2)), 9) > np.exp(charged) * 1.1


def owed(mechanism, rows):
    """The sum of what all draws lose, of one row that moves each score by 9 steps of a tenth."""
    with testing.frozen() as tape:
        mechanism._draw(np.array(rows))
    choices = [2 * 9 * args[1] for name, args in tape.calls if name == "exponential_choice"]
    checks = [9 / args[0] for name, args in tape.calls if name == "discrete_laplace"]
    assert {name for name, _ in tape.calls} <= {"exponential_choice", "discrete_laplace", "uniform_below"}
    return sum(choices) + sum(checks)


@pytest.mark.parametrize("rows", [[], [0, 1, 2], [1] * 500])
def test_what_is_drawn_is_what_is_charged(rows):
    """A draw with twice the rate, or one more than is charged, adds up to more."""
    mechanism = interval(Fraction(1), Fraction(9, 10))
    charged = mechanism.guarantee(mechanism.sensitivity(dp.row())).largest_loss
    assert owed(mechanism, rows) == charged
    assert owed(interval(Fraction(2), Fraction(9, 10)), rows) > charged


@pytest.mark.parametrize("rows_per_person", [1, 5])
def test_calibration_keeps_the_promise_and_uses_it(rows_per_person):
    for unit in (dp.person("id"), dp.person("id", neighbors="replace")):
        made = QuantileInterval.for_guarantee(
            dp.Pure(epsilon=0.5), space=dp.Integers(0, 120), unit=unit, rows_per_person=rows_per_person
        )
        loss = made.guarantee(made.sensitivity(unit, rows_per_person)).largest_loss
        assert Fraction(49, 100) < loss <= Fraction(1, 2)
    with refuses(dp.InvalidArgument, "guarantee-not-supported"):
        QuantileInterval.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), space=GRID, unit=dp.row())
    wide = QuantileInterval.for_error(50, space=dp.Integers(0, 120))
    assert float(wide.error(0.95)) <= 50


ROWS = np.random.default_rng(3)
SAMPLES = {
    "normal": np.clip(ROWS.normal(6000, 1200, 4000), 0, 12000).astype(np.int64),
    "skewed": np.clip(ROWS.lognormal(6, 1.5, 4000), 0, 12000).astype(np.int64),
    "tied": ROWS.choice([100, 200, 7000], 4000, p=[0.5, 0.1, 0.4]),
    "few": ROWS.integers(0, 12000, 7),
    "none": np.zeros(0, dtype=np.int64),
}


def missed(made, rows, share, draws):
    """How often the interval misses a quantile, between rows or at one, and the usual width in ranks."""
    drawn = np.array([made._draw(rows) for _ in range(draws)])
    assert np.all((drawn[:, 0] <= drawn[:, 1]) & (drawn[:, 1] <= drawn[:, 2]))
    ends = [np.quantile(rows, share, method=how) for how in ("linear", "inverted_cdf")] if len(rows) else [0, 12000]
    width = np.median(np.searchsorted(np.sort(rows), drawn[:, 2]) - np.searchsorted(np.sort(rows), drawn[:, 0]))
    return np.mean((drawn[:, 0] > min(ends)) | (drawn[:, 2] < max(ends))) if len(rows) else 0.0, width


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "skewed" else pytest.mark.slow) for n in SAMPLES])
def test_the_interval_holds_the_quantile_and_is_as_wide_as_its_ranks(name, share):
    """60 or 300 draws of each sample. A miss of 5% in truth would be called wrong with probability below 1e-6."""
    rows, space = SAMPLES[name], dp.queries.Grid(0, 12000, 1, missing=None)
    made = QuantileInterval.for_guarantee(dp.Pure(epsilon=2), space=space, quantile=Fraction(str(share)), unit=dp.row())
    draws = 60 if name == "skewed" else 300
    often, width = missed(made, rows, share, draws)
    assert often <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / draws)
    if name in ("normal", "skewed"):
        assert width <= 2.5 * made.away
        assert width <= 4 * float(made.error(0.95))


def test_mutant_an_interval_without_checks_misses(monkeypatch):
    """What the checks are for: among few rows, an outer quantile is often on the wrong side."""
    monkeypatch.setattr(QuantileInterval, "_is_apart", lambda self, steps: True)
    space = dp.queries.Grid(0, 12000, 1, missing=None)
    made = QuantileInterval.for_guarantee(dp.Pure(epsilon=0.05), space=space, unit=dp.row())
    assert missed(made, SAMPLES["few"], 0.5, 300)[0] > 0.2
