"""Rows on a real GPU: the fused pass, plain products and the host agree, and a model is trained where its rows live."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.rows.gradients.examples import Examples, unit_of
from discreet.rows.gradients.gpu import OnGpu, examples_of
from discreet.rows.gradients.losses import Huber, HuberHinge, Logistic, Pinball, Poisson, Softmax
from discreet.rows.gradients.unit_rows import UnitRows, unit_length


def gpu() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        pytest.skip("torch is not installed: nothing here can be run on a GPU")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device: the fused pass is checked where there is one")
    return torch


def data(count: int = 20_000, columns: int = 24, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, columns)).astype(np.float32) / 3
    return rows, (rows[:, 0] - rows[:, 1] + 0.3 * rng.standard_normal(count) > 0).astype(np.float32)


@pytest.mark.parametrize("clip", [0.70710678, 1.0, 2.3])
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(1), Huber(1), Pinball(0.3, 0.1), Poisson(9)], ids=str)
def test_the_fused_pass_agrees_with_plain_products(loss: Any, clip: float) -> None:
    torch = gpu()
    rows, goal = data()
    weights = np.random.default_rng(1).standard_normal(25)
    there = examples_of(torch.tensor(rows, device="cuda"), goal)
    assert isinstance(there, OnGpu)
    unit = float(unit_of(clip))
    fused, plain = there.sums(weights, loss, clip), Examples(rows, goal).sums(weights, loss, clip)
    np.testing.assert_allclose(fused.astype(float) * unit, plain.astype(float) * unit, atol=len(rows) * clip * 2e-5)
    one = examples_of(torch.tensor(rows[:1], device="cuda"), goal[:1]).sums(weights, loss, clip)
    assert sum(int(x) ** 2 for x in one) <= (Fraction(str(clip)) / unit_of(clip)) ** 2
    fewer = examples_of(torch.tensor(rows[1:], device="cuda"), goal[1:]).sums(weights, loss, clip)
    assert (fused - fewer == one).all()


def test_plain_products_on_the_device_are_those_of_the_host() -> None:
    torch = gpu()
    rows, goal = data(30_000, 7)
    goal = np.random.default_rng(2).integers(0, 3, len(goal)).astype(np.float32)
    weights = np.random.default_rng(3).standard_normal((3, 8))
    there = examples_of(torch.tensor(rows, device="cuda"), goal)
    assert (there.sums(weights, Softmax(3), 1) == Examples(rows, goal).sums(weights, Softmax(3), 1)).mean() > 0.99
    doubles = examples_of(torch.tensor(rows, device="cuda", dtype=torch.float64), goal)
    assert isinstance(doubles, Examples)
    flat = weights[0]
    unit = float(unit_of(1))
    near = (doubles.sums(flat, Huber(1), 1) - Examples(rows, goal).sums(flat, Huber(1), 1)).astype(float) * unit
    assert np.abs(near).max() < 1e-6


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64", "cupy"])
def test_models_are_trained_where_their_rows_live(kind: str) -> None:
    torch = gpu()
    rows, goal = data(50_000, 12)
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], n_samples=50_000)
    with testing.frozen(3):
        here = model.fit(rows, goal).coef_
    if kind == "cupy":
        there: Any = pytest.importorskip("cupy").asarray(rows)
        labels: Any = goal
    else:
        there = torch.tensor(rows, device="cuda").to(getattr(torch, kind))
        labels = torch.tensor(goal, device="cuda")
    with testing.frozen(3):
        model.fit(there, labels)
    np.testing.assert_allclose(model.coef_, here, atol=0.2 if kind == "bfloat16" else 0.02)
    assert model.score(rows, goal) > 0.8
    assert model.predict(there).shape == (50_000,)


def test_ranges_samples_and_several_classes_work_there_too() -> None:
    torch = gpu()
    rows, goal = data(8000, 5)
    there = torch.tensor(rows, device="cuda")
    ranges = [(-2.0, 2.0)] * 5
    scaled = dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=ranges).fit(there, goal)
    assert scaled.score(rows, goal) > 0.8
    few = dp.learn.LogisticRegression(classes=[0, 1], sampling=0.1, n_samples=8000, steps=100).fit(there, goal)
    assert few.score(rows, goal) > 0.75
    three = np.digitize(rows[:, 0], [-0.2, 0.2])
    many = dp.learn.LogisticRegression(classes=[0, 1, 2]).fit(there, three)
    assert many.score(rows, three) > 0.6


@pytest.mark.parametrize("columns", [12, 400])
def test_a_classifier_on_features_is_trained_where_they_live(columns: int) -> None:
    torch = gpu()
    rows, goal = data(20_000, columns)
    labels = np.digitize(rows[:, 0] + 2 * goal, [0.3, 1.6])
    model = dp.learn.FeatureClassifier(epsilon=8, delta=1e-6, classes=[0, 1, 2], n_samples=20_000, steps=60)
    there = torch.tensor(rows, device="cuda")
    with testing.frozen(3):
        here = model.fit(rows, labels).coef_
    with testing.frozen(3):
        model.fit(there, torch.tensor(labels, device="cuda"))
    assert np.linalg.norm(model.coef_ - here) < 0.05 * np.linalg.norm(here)
    assert (model.predict(there) == model.predict(rows)).mean() > 0.999


def test_features_of_unit_length_add_up_on_the_device_as_on_the_host() -> None:
    torch = gpu()
    rows, goal = data(3000, 300)
    rows[5, 7], goal[9] = np.nan, np.nan
    there, here = unit_length(torch.tensor(rows, device="cuda")), unit_length(rows)
    assert there.is_cuda
    assert np.abs(there.cpu().numpy() - here).max() < 1e-6
    total = UnitRows(there, torch.tensor(goal, device="cuda")).total()
    fewer = UnitRows(there[1:], torch.tensor(goal[1:], device="cuda")).total()
    assert (total - fewer == UnitRows(there[:1], torch.tensor(goal[:1], device="cuda")).total()).all()
    assert np.abs((total - UnitRows(here, goal).total()).astype(float)).max() <= 3000
