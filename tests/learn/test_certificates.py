"""Certified errors of fitted models, and the numbers for which there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.rows.convex import WithinRadius
from discreet.rows.gradients.examples import Examples

from ..refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def data(count: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, 2)) / 2
    return rows, (rows[:, 0] > 0).astype(int)


def test_wild_rates_end_in_finite_models() -> None:
    rows, labels = data(100)
    for radius in (None, dp.learn.Box(-1e308, 1e308), 5.0):
        model = dp.learn.HuberRegressor(radius=radius, learning_rate=1e306, steps=4, n_samples=100, **GOAL)
        assert np.isfinite(model.fit(rows, labels).coef_).all()
    assert np.linalg.norm(WithinRadius(2).project(np.full(5, 1e300))) == pytest.approx(2)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    "wrong", [{"feature_norm": 1e-305}, {"feature_norm": 1e200}, {"clip": 1e-300}, {"clip": 1e150}]
)
def test_numbers_without_measure_are_refused_before_the_charge(wrong: Any) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-3))
    with refuses(dp.InvalidArgument, "out-of-range"):
        dp.learn.LogisticRegression(classes=[0, 1], ledger=ledger, **GOAL, **wrong).fit(*data(20))
    assert not ledger.entries()


@pytest.mark.parametrize(
    "kept", [{"sampling": 0.1}, {"classes": [0, 1, 2], "radius": 3, "clip": 0.1}, {"average": "last"}]
)
def test_momentum_does_not_bring_a_bound_where_none_is_known(kept: Any) -> None:
    rows, labels = data(200)
    model = dp.learn.LogisticRegression(**({"classes": [0, 1], "n_samples": 200, "steps": 20} | GOAL | kept))
    assert model.fit(rows, labels).release_.error(0.95).amount is None


@pytest.mark.slow
def test_certificates_of_clipped_losses_hold() -> None:
    """With a clip that binds, the excess of the CLIPPED loss is below the bound: 30 runs, at most 10 misses."""
    rows, labels = data(400)
    model = dp.learn.LogisticRegression(
        classes=[0, 1], clip=0.2, radius=3, n_samples=400, epsilon=3, delta=1e-6, steps=60
    )
    descent = model._descent(2)
    examples = Examples(rows, labels.astype(float))
    short = np.column_stack([rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None], np.ones(400)])
    cut = 0.2 / np.linalg.norm(short, axis=1)

    def clipped_loss(weights: Any) -> float:
        """The integral of the cut slope from 0 to the score, and the loss at 0."""
        score, total = short @ weights, np.zeros(400)
        for share in np.linspace(0, 1, 201)[1:]:
            slope = 1 / (1 + np.exp(-score * (share - 1 / 400))) - labels
            total += np.clip(slope, -cut, cut) * score / 200
        return float(total.mean())

    with testing.no_noise():
        long = replace(descent, steps=3000, momentum=0, learning_rate=2.0, average="last")
        best = clipped_loss(long._draw(examples)["weights"])
    misses = 0
    for _ in range(30):
        drawn = descent._draw(examples)
        misses += clipped_loss(drawn["weights"]) - best > float(descent.gap_error(0.95, drawn["gap"]))
    assert misses <= 10


@pytest.mark.slow
def test_objective_perturbation_without_an_intercept_has_an_error() -> None:
    rows, labels = data(200)
    model = dp.learn.LogisticRegression(classes=[0, 1], solver="objective", fit_intercept=False, n_samples=200, **GOAL)
    assert float(model.fit(rows, labels).release_.error(0.95)) > 0
