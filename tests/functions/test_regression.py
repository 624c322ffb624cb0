"""Regression and decision curves: the minimizer's own sensitivity, and a band that holds everywhere."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.functions.density import density_of
from discreet.functions.regression import _to_features, regression_curve
from discreet.mechanisms.learning.minimizers.private_minimizer import PrivateMinimizer
from discreet.rows.gradients.losses import Huber, HuberHinge

from ..refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)


def data(count: int = 8000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, count)
    return x, np.sin(x) * 0.6 + rng.normal(0, 0.1, count)


def made(x: Any, y: Any, **kept: Any) -> Any:
    given: dict[str, Any] = {"between": (0, 10), "bandwidth": 1.0, "guarantee": GOAL, "size": 8000}
    return regression_curve(x, y, **(given | kept))


@pytest.mark.slow
def test_a_curve_follows_the_data_within_its_band() -> None:
    x, y = data()
    with testing.no_noise():
        plain = made(x, y)
    points = np.linspace(0, 10, 50)
    misses = 0
    for _ in range(12):
        curve = made(x, y)
        misses += float(np.abs(curve(points) - plain(points)).max()) > float(curve.error(0.9))
    assert misses <= 8  # of 12 at 90%: more would happen with probability below 1e-6
    assert float(np.abs(plain(points[5:-5]) - 0.6 * np.sin(points[5:-5])).max()) < 0.15
    assert float(curve.error(0.95, uniform=False)) < float(curve.error(0.95))
    assert curve(3.0) == pickle.loads(pickle.dumps(curve))(3.0)


def test_classes_are_told_apart() -> None:
    x, y = data()
    curve = made(x, np.sign(y), kind="classes")
    assert ((curve(x) > 0) == (y > 0)).mean() > 0.9


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("loss", [Huber(0.5), HuberHinge(0.5)], ids=str)
def test_one_row_moves_the_minimizer_by_no_more_than_is_said(loss: Any) -> None:
    """Grey-box: rows added, removed, replaced; without noise the weights move by at most the sensitivity."""
    x, y = data(60)
    goal = np.sign(y) if isinstance(loss, HuberHinge) else y
    curve = made(x, goal, ridge=2.0)
    m = PrivateMinimizer.for_guarantee(GOAL, loss=loss, dimension=curve.features.size, ridge=2.0)
    replaced = m.sensitivity(dp.row(neighbors="replace")).exact

    def weights(rows: Any, targets: Any) -> Any:
        with testing.no_noise():
            return m._draw(_to_features(curve.features, np.reshape(rows, (-1, 1)), np.asarray(targets), 1.0))

    known = weights(x, goal)
    for odd in (5.0, np.nan, np.inf, -1e38):
        for target in (1.0, -1.0, np.nan):
            more = weights(np.append(x, odd), np.append(goal, target))
            assert np.linalg.norm(more - known) <= float(m.sensitivity().exact) * (1 + 1e-9)
    other = weights(np.append(x[1:], 9.9), np.append(goal[1:], -1.0))
    assert np.linalg.norm(other - known) <= float(replaced) * (1 + 1e-9)
    assert np.linalg.norm(weights(x[1:], goal[1:]) - known) > 0.01 * float(m.sensitivity().exact)


def test_the_promise_is_kept_and_charged() -> None:
    x, y = data(500)
    ledger = dp.Ledger.open(":memory:", protects=dp.person("who"), limit=dp.Approx(epsilon=3, delta=1e-4))
    curve = made(x, y, ledger=ledger, rows_per_person=2)
    assert curve.guarantee.delta_at(epsilon=1) <= 1e-6
    assert curve.guarantee.protects == dp.person("who")
    assert curve.receipt == ledger.entries()[0].receipt


@pytest.mark.slow
def test_two_columns() -> None:
    rng = np.random.default_rng(1)
    rows = rng.uniform(0, 4, (3000, 2))
    curve = made(
        rows, rows[:, 0] / 4, between=[(0, 4), (0, 4)], bandwidth=2.0, guarantee=dp.Approx(epsilon=5, delta=1e-6)
    )
    assert curve(3.5, 2.0) > curve(0.5, 2.0)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        curve(1.0)


def test_bad_arguments() -> None:
    for wrong, code in (
        ({"kind": "colors"}, "not-an-option"),
        ({"size": 0}, "out-of-range"),
        ({"ridge": -1}, "out-of-range"),
        ({"target_bound": 0}, "out-of-range"),
    ):
        with refuses(dp.InvalidArgument, code):
            made(*data(20), **wrong)


@pytest.mark.parametrize(
    ("between", "bandwidth"),
    [
        ((0, 1, 2), 1.0),
        ((0, 10), [1.0, 2.0]),
        ([(0, 10), (0, 10)], [1.0]),
        ([(0, 10), (0,)], 1.0),
        (10, 1.0),
        ([], 1.0),
        (None, 1.0),
    ],
    ids=str,
)
def test_every_column_has_a_pair_of_ends_and_a_bandwidth(between: Any, bandwidth: Any) -> None:
    x, y = data(20)
    asked = {"between": between, "bandwidth": bandwidth, "guarantee": GOAL}
    for released in (lambda: regression_curve(x, y, size=20, **asked), lambda: density_of(x, **asked)):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            released()


def test_a_curve_knows_its_release() -> None:
    x, y = data(50)
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=3, delta=1e-4))
    curve = made(x, y, ledger=ledger)
    assert curve.receipt == ledger.entries()[0].receipt
    assert curve.guarantee == ledger.entries()[0].guarantee
    assert curve.remaining == ledger.remaining
    assert not curve.replayed
    assert not curve.not_private
