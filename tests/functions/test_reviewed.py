"""What a review of functions found, each once."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.functions.density import density_of
from discreet.functions.regression import regression_curve
from discreet.mechanisms.learning.descent import Descent
from discreet.mechanisms.learning.moments import Moments
from discreet.mechanisms.learning.private_minimizer import PrivateMinimizer
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.rows.features import Axis, FourierFeatures, RandomFeatures
from discreet.rows.losses import Huber, Logistic

GOAL = dp.Approx(epsilon=1, delta=1e-6)


def book(**unit: Any) -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(**unit), limit=dp.Approx(epsilon=9, delta=1e-3))


def mechanisms() -> list[Any]:
    features = FourierFeatures.over([(0, 8)], [0.6])
    return [
        GaussianProcess.for_guarantee(GOAL, features=features),
        PrivateMinimizer.for_guarantee(GOAL, loss=Huber(0.5), dimension=3, ridge=2.0),
        Descent.for_guarantee(GOAL, loss=Logistic(), clip=1.0, dimension=3, steps=3, size=10),
        Moments.for_guarantee(GOAL, features=2, feature_norm=1, shares={"square": 1}),
    ]


@pytest.mark.parametrize("m", mechanisms(), ids=lambda m: type(m).__name__)
def test_a_promise_for_added_rows_is_not_taken_for_replaced_ones(m: Any) -> None:
    """Without a sensitivity the promise is for one row added or removed, and says so: it costs more when replaced."""
    promised = m.guarantee()
    assert promised.protects == dp.row()
    with pytest.raises(dp.IncompatibleGuarantee):
        promised.stated_for(dp.person("who"))
    assert promised.stated_for(dp.row(neighbors="replace")).delta_at(epsilon=1) > 1e-4


def test_random_features_may_be_two_apart() -> None:
    features = RandomFeatures.drawn([(0, 100)] * 4, [1] * 4, 1)
    rows = np.random.default_rng(0).uniform(0, 100, (400, 4))
    sums = np.array([features.sums(features.counts(rows[i : i + 1])) for i in range(400)]).astype(float) / 2**30
    apart = max(float(np.linalg.norm(a - b)) for a in sums[:60] for b in sums)
    assert 1.5 < apart <= float(features.distance())


@pytest.mark.parametrize(
    "rows",
    [["secret"], [10**400], [datetime.date(2000, 1, 1)], [None], [b"x"], [], [1 + 2j]],
    ids=lambda rows: str(rows)[:12],
)
def test_no_cell_is_quoted_and_none_stops_a_release(rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        density_of(rows, between=(0, 1), bandwidth=0.2, guarantee=GOAL)
        regression_curve(rows, [1e308] * len(rows), between=(0, 1), bandwidth=0.5, guarantee=GOAL, size=5)
        regression_curve([0.5] * len(rows), rows, between=(0, 1), bandwidth=0.5, guarantee=GOAL, size=5)


def test_shapes_are_checked_before_the_charge() -> None:
    ledger = book()
    kept: dict[str, Any] = {"between": (0, 1), "bandwidth": 0.5, "guarantee": GOAL, "ledger": ledger}
    for rows, targets in (
        ([0.1] * 3, [1.0]),
        ([0.1], [1.0] * 3),
        (np.zeros((5, 2)), np.zeros(5)),
        (np.zeros(()), [1.0]),
    ):
        with pytest.raises((dp.InvalidArgument, TypeError)):
            regression_curve(rows, targets, size=5, **kept)
    for rows in (np.zeros((5, 2)), np.zeros((2, 2, 2))):
        with pytest.raises(dp.InvalidArgument):
            density_of(rows, **kept)
    assert not ledger.entries()


def test_smoothing_does_not_run_around_the_circle() -> None:
    rows = np.random.default_rng(1).exponential(100, 20_000)
    density = density_of(rows, between=(0, 1000), bandwidth=10, widest=200, guarantee=GOAL)
    direct = density_of(rows, between=(0, 1000), bandwidth=150, guarantee=GOAL)
    wide = density.smooth(150)
    assert abs(wide(1000.0) - direct(1000.0)) < 2 * float(wide.error(0.999)) + 1e-5
    assert wide.quantile(0.9) == pytest.approx(direct.quantile(0.9), rel=0.02)
    with pytest.raises(dp.InvalidArgument, match="widest"):
        density.smooth(300)
    few = dp.table({"x": rows[:3000]}, ledger=book()).density("x", between=(0, 1000), epsilon=1, delta=1e-6)
    assert abs(few(1000.0)) < 3 * float(few.error(0.99))


def test_tables_of_features_fit_in_memory() -> None:
    with pytest.raises(dp.InvalidArgument, match="bandwidth is too small"):
        Axis(0, 6000, 1)
    assert Axis(0, 300, 1).cells * Axis(0, 300, 1).size < 2**26


def test_beyond_the_range_there_is_nothing() -> None:
    density = density_of(np.full(1000, 5.0), between=(0, 1000), bandwidth=10, guarantee=GOAL)
    assert density(1e4) == 0
    assert density(-1e9) == 0
    assert density.integrate(-1e9, 1e9) == pytest.approx(1, abs=0.05)
    assert density.grid(np.int64(5))[1].shape == (5,)


def test_samples_of_two_columns_are_of_the_projected_density() -> None:
    rows = 0.5 + 0.03 * np.random.default_rng(2).standard_normal((2000, 2))
    density = density_of(rows, between=[(0, 1), (0, 1)], bandwidth=0.05, guarantee=GOAL)
    drawn = density.sample(4000)
    inside = (np.abs(drawn - 0.5) < 0.25).all(axis=1).mean()
    assert inside > 0.9
    assert drawn.min() > 0
    assert drawn.max() < 1
