"""A quantile and the interval drawn with it: what it costs, by exact enumeration, and how often it holds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.mechanisms.quantiles.quantile_interval import QuantileInterval

from ...refusing import refuses

GRID = dp.queries.Grid(0, 2, 1, missing=None)


def law_of(mechanism, rows):
    """The exact law of the three values, with the count's noise cut to a window whose rest is a leak."""
    return testing.exact_law(lambda: mechanism._draw(np.array(rows)), window=3).law


def largest_ratio(mechanism, rows):
    """How far one row more or less moves the odds of any outcome."""
    ratios = []
    for added in (0, 1, 2):
        first, second = law_of(mechanism, rows), law_of(mechanism, [*rows, added])
        ratios += [
            float(one[y] / other[y]) for one, other in ((first, second), (second, first)) for y in one if y in other
        ]
    return max(ratios)


def interval(rate, quantile):
    return QuantileInterval(space=GRID, rate=rate, outer_rate=rate / 2, count_scale=1 / rate, quantile=quantile)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantile", "rows"),
    [
        (Fraction(1, 10), [0]),
        *(pytest.param(Fraction(1, 2), rows, marks=pytest.mark.slow) for rows in ([], [0], [0, 2], [1, 1, 2])),
        *(pytest.param(Fraction(1, 10), rows, marks=pytest.mark.slow) for rows in ([], [0, 2], [1, 1, 2])),
    ],
)
def test_the_charge_covers_what_is_learned(quantile, rows):
    """Small databases on three points, with one row more or less: no outcome's odds move beyond what is charged."""
    mechanism = interval(Fraction(1), quantile)
    charged = float(mechanism.guarantee(mechanism.sensitivity(dp.row())).largest_loss)
    assert largest_ratio(mechanism, rows) <= np.exp(charged) * (1 + 1e-9)


def drawn_parts(mechanism, rows, monkeypatch):
    """Every choice and count that a draw is made of, as it is drawn."""
    parts = []
    for kind in (Quantile, dp.Laplace):
        draw = kind._draw
        monkeypatch.setattr(kind, "_draw", lambda self, value, draw=draw: (parts.append(self), draw(self, value))[1])
    mechanism._draw(np.array(rows))
    monkeypatch.undo()
    return parts


@pytest.mark.parametrize("rows", [[], [0, 1, 2], [1] * 500])
def test_what_is_drawn_is_what_is_charged(rows, monkeypatch):
    """Each part is checked by enumeration on its own; here all of them are charged, whatever the count turned out.

    A draw with twice the rate, or one more than is charged, adds up to more.
    """

    def owed(parts):
        choices = [2 * Fraction(part.rate) for part in parts if isinstance(part, Quantile)]
        return sum(choices) + sum(1 / Fraction(part.scale) for part in parts if isinstance(part, dp.Laplace))

    mechanism = interval(Fraction(1), Fraction(9, 10))
    parts = drawn_parts(mechanism, rows, monkeypatch)
    charged = mechanism.guarantee(mechanism.sensitivity(dp.row())).largest_loss
    assert len(parts) == 4
    # the middle is charged for its own quantile, 9/10 of a rank; the outer ones for a whole one
    assert owed(parts) - 2 * Fraction(1, 10) == charged
    assert owed(drawn_parts(interval(Fraction(2), Fraction(9, 10)), rows, monkeypatch)) > charged


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


@pytest.mark.slow
def test_the_interval_holds_the_quantile_and_is_not_the_whole_range():
    """600 draws on each of three samples. A miss of 5% in truth would be called wrong with probability below 1e-6."""
    rng = np.random.default_rng(3)
    for share in (0.1, 0.5, 0.9):
        rows = np.clip(rng.normal(60, 12, 4000).round(), 0, 120).astype(np.int64)
        made = QuantileInterval.for_guarantee(
            dp.Pure(epsilon=2),
            space=dp.queries.Grid(0, 120, 1, missing=None),
            quantile=Fraction(str(share)),
            unit=dp.row(),
        )
        drawn = np.array([made._draw(rows) for _ in range(600)])
        true = np.quantile(rows, share, method="inverted_cdf")
        held = np.mean((drawn[:, 0] <= true) & (true <= drawn[:, 2]))
        assert held >= 0.95 - 5 * np.sqrt(0.05 * 0.95 / 600)
        assert np.all((drawn[:, 0] <= drawn[:, 1]) & (drawn[:, 1] <= drawn[:, 2]))
        assert np.median(drawn[:, 2] - drawn[:, 0]) < 12
