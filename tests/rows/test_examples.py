"""Exact sums of clipped gradients: a row's part is its own and at most the clip, wherever it stands."""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import row
from discreet.queries.gradients import gradient_sensitivity
from discreet.rows.gradients import examples as module
from discreet.rows.gradients.examples import BLOCK, Examples, unit_of
from discreet.rows.gradients.losses import Huber, HuberHinge, Logistic, Pinball, Poisson, Softmax

from ..refusing import refuses

LOSSES: list[Any] = [Logistic(), HuberHinge(0.5), Huber(1), Pinball(0.3, 0.01), Poisson(20)]
AWKWARD = [np.nan, np.inf, -np.inf, 1e38, -1e38, 1e300, 1e-300, 5e-324, 0.0, 1.0, -2.5]


def targets(loss: Any, size: int, rng: np.random.Generator) -> Any:
    match loss:
        case Softmax():
            return rng.integers(0, loss.classes, size).astype(float)
        case HuberHinge():
            return rng.choice([-1.0, 1.0], size)
        case Poisson():
            return rng.integers(0, 20, size).astype(float)
    return rng.integers(0, 2, size).astype(float)


def one_by_one(rows: Any, goal: Any, weights: Any, loss: Any, clip: float, **kept: Any) -> Any:
    parts = [Examples(rows[i : i + 1], goal[i : i + 1], **kept).sums(weights, loss, clip) for i in range(len(rows))]
    return sum(parts, start=np.zeros(weights.shape, dtype=object))


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_sum_is_the_sum_of_its_rows_to_the_last_bit(loss: Any, kind: Any) -> None:
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal((300, 7)) * rng.exponential(2, (300, 1))).astype(kind)
    goal, weights = targets(loss, 300, rng), rng.standard_normal(8) * 3
    together = Examples(rows, goal).sums(weights, loss, 0.7)
    assert (together == one_by_one(rows, goal, weights, loss, 0.7)).all()
    order = rng.permutation(300)
    assert (Examples(rows[order], goal[order]).sums(weights, loss, 0.7) == together).all()


def test_several_classes_add_up_exactly_too() -> None:
    rng, loss = np.random.default_rng(2), Softmax(4)
    rows, goal, weights = rng.standard_normal((200, 5)), targets(loss, 200, rng), rng.standard_normal((4, 6))
    together = Examples(rows, goal).sums(weights, loss, 0.5)
    assert together.shape == (4, 6)
    assert (together == one_by_one(rows, goal, weights, loss, 0.5)).all()


def test_blocks_and_threads_change_nothing() -> None:
    """A row in front moves every other row to another place, another block and another thread."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((3 * BLOCK + 5, 50)).astype(np.float32)
    goal, weights = rng.integers(0, 2, len(rows)).astype(float), rng.standard_normal(51)
    without = Examples(rows[1:], goal[1:]).sums(weights, Logistic(), 1)
    alone = Examples(rows[:1], goal[:1]).sums(weights, Logistic(), 1)
    assert (Examples(rows, goal).sums(weights, Logistic(), 1) == without + alone).all()


cells = st.one_of(st.sampled_from(AWKWARD), st.floats(-4, 4), st.floats(allow_nan=True, allow_infinity=True))


@pytest.mark.slow
@given(
    rows=st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=4),
    goal=st.sampled_from([0.0, 1.0, np.nan, np.inf, -5.0, 1e300]),
    weights=st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    clip=st.sampled_from([0.01, 0.3, 1.0, 1.5, 7.0]),
    intercept=st.booleans(),
    loss=st.sampled_from(LOSSES),
)
@settings(max_examples=120, deadline=None)
def test_no_row_passes_the_clip(rows: Any, goal: float, weights: Any, clip: float, intercept: bool, loss: Any) -> None:
    """In exact arithmetic, whatever the row holds: NaN, infinities, 1e38, numbers below any other."""
    features, places = np.array(rows), np.full(len(rows), goal)
    most = (Fraction(str(clip)) / unit_of(clip)) ** 2
    given_weights = np.array(weights[: 3 + intercept])
    for i in range(len(rows)):
        one = Examples(features[i : i + 1], places[i : i + 1], feature_norm=0.8, intercept=intercept)
        part = one.sums(given_weights, loss, clip)
        assert sum(int(x) ** 2 for x in part) <= most


@given(
    row_of=st.lists(cells, min_size=2, max_size=2),
    weights=st.lists(st.floats(-9, 9), min_size=9, max_size=9),
    label=st.integers(-1, 3),
)
@settings(max_examples=60, deadline=None)
def test_no_row_passes_the_clip_with_several_classes(row_of: Any, weights: Any, label: int) -> None:
    one = Examples(np.array([row_of]), np.array([float(label)]))
    part = one.sums(np.array(weights).reshape(3, 3), Softmax(3), 0.5).ravel()
    assert sum(int(x) ** 2 for x in part) <= (Fraction(1, 2) / unit_of(0.5)) ** 2


def test_the_clip_binds_where_it_should() -> None:
    """A check that a forgotten clip would fail: long rows far on the wrong side reach it to a part in a million."""
    one = Examples(np.array([[3.0, 4.0]]), np.array([1.0]), intercept=False)
    part = one.sums(np.array([-60.0, -80.0]), Logistic(), 0.25)
    size = float(sum(int(x) ** 2 for x in part)) ** 0.5 * float(unit_of(0.25))
    assert 0.25 * (1 - 1e-6) < size <= 0.25
    assert part[1] / part[0] == pytest.approx(4 / 3, rel=1e-5)  # shortened, and pointing the same way


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_are_left_out(bad: float) -> None:
    rows, goal = np.array([[0.1, 0.2], [0.3, 0.1]]), np.array([1.0, 0.0])
    weights, known = np.array([1.0, 2.0, 0.5]), Examples(rows, goal).sums(np.array([1.0, 2.0, 0.5]), Logistic(), 1)
    more = np.vstack([rows, [[0.4, bad]]])
    assert (Examples(more, np.append(goal, 1.0)).sums(weights, Logistic(), 1) == known).all()
    assert (Examples(np.vstack([rows, [[0.4, 0.4]]]), np.append(goal, bad)).sums(weights, Logistic(), 1) == known).all()


def test_it_is_the_gradient() -> None:
    rng = np.random.default_rng(5)
    rows, goal = rng.standard_normal((500, 6)), rng.integers(0, 2, 500).astype(float)
    weights = rng.standard_normal(7)
    short = np.column_stack([rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None], np.ones(500)])
    slope = 1 / (1 + np.exp(-short @ weights)) - goal
    cut = np.minimum(1, 0.5 / (np.abs(slope) * np.linalg.norm(short, axis=1)))
    found = Examples(rows, goal).sums(weights, Logistic(), 0.5).astype(float) * float(unit_of(0.5))
    np.testing.assert_allclose(found, short.T @ (cut * slope), atol=500 * 2e-6)


def test_scaling_comes_before_clipping() -> None:
    rows = np.array([[30.0, 1000.0], [50.0, 3000.0]])
    scaled = (rows - [40, 2000]) * [0.01, 0.0001]
    known = Examples(scaled, np.ones(2)).sums(np.ones(3), Logistic(), 1)
    found = Examples(rows, np.ones(2), offset=[40, 2000], scale=[0.01, 0.0001]).sums(np.ones(3), Logistic(), 1)
    assert np.abs((known - found).astype(float)).max() <= 2.0**41 * 1e-5


def test_a_cell_beyond_its_range_is_clamped_and_leaves_the_others_of_its_row() -> None:
    rows = np.array([[0.3, 1e300], [0.3, -7.0], [0.3, 0.2], [-9.0, 0.1], [0.3, np.inf], [0.3, np.nan]])
    found = Examples(rows, np.ones(6), offset=[0.1, 0.0], scale=[1.0, 2.0], most=0.5).plain().X
    assert found[:4, 0] == pytest.approx([0.2, 0.2, 0.2, -0.5], abs=1e-5)
    assert found[:4, 1] == pytest.approx([0.5, -0.5, 0.4, 0.2], abs=1e-5)
    assert (found[4:] == 0).all()  # no number: the row is left out, with the intercept


def test_a_sample_is_its_rows() -> None:
    rng = np.random.default_rng(6)
    rows, goal, chosen = rng.standard_normal((60, 3)), np.zeros(60), rng.random(60) < 0.3
    part = Examples(rows, goal).sample(chosen)
    assert part.count == chosen.sum()
    known = Examples(rows[chosen], goal[chosen]).sums(np.ones(4), Logistic(), 1)
    assert (part.sums(np.ones(4), Logistic(), 1) == known).all()
    nothing = Examples(rows, goal).sample(np.zeros(60, dtype=bool))
    assert (nothing.sums(np.ones(4), Logistic(), 1) == 0).all()


class Elsewhere(np.ndarray):
    """An array that says it lives on a device: the code for devices, without one."""


Elsewhere.__module__ = "cupy.core"


def test_the_code_for_devices_gives_the_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(Elsewhere, "get", lambda self: self.view(np.ndarray), raising=False)
    monkeypatch.setattr(module, "_MANY", 2)
    rng = np.random.default_rng(7)
    rows, weights = rng.standard_normal((3 * BLOCK + 17, 4)), rng.standard_normal(5)
    goal, chosen = rng.integers(0, 3, len(rows)).astype(float), rng.random(len(rows)) < 0.4
    there, here = Examples(rows.view(Elsewhere), goal), Examples(rows, goal)
    there._rows = there._rows.view(Elsewhere)
    for name in ("_worth", "_inverse", "_goal"):
        setattr(there, name, getattr(there, name).view(Elsewhere))
    assert there._rows.shape[0] == 4 * BLOCK
    for loss, at in ((Huber(1), weights), (Softmax(3), rng.standard_normal((3, 5)))):
        assert (there.sums(at, loss, 1) == here.sums(at, loss, 1)).all()
        assert (there.sample(chosen).sums(at, loss, 1) == here.sample(chosen).sums(at, loss, 1)).all()


def test_numbers_give_the_same_wherever_they_stand() -> None:
    """exp must treat a number alike at every place of an array of any length: a row's part is its own."""
    points = np.random.default_rng(8).standard_normal(67) * 20
    alone = [float(np.exp(points[i : i + 1])[0]) for i in range(67)]
    for length in range(1, 67):
        for start in range(0, 67 - length, 5):
            assert np.exp(points[start : start + length]).tolist() == alone[start : start + length]


def test_sensitivity_names_its_relation() -> None:
    assert gradient_sensitivity(0.5, 4).exact == Fraction(1, 2)
    assert gradient_sensitivity(0.5, 4, row(neighbors="replace")).exact == 1
    assert gradient_sensitivity(0.5, 4, row(), 3).exact == Fraction(3, 2)
    assert gradient_sensitivity(0.5, 4).grain == unit_of(0.5)


def test_rows_do_not_travel() -> None:
    one = Examples(np.ones((2, 2)), np.ones(2))
    assert "1." not in repr(one)
    with refuses(InvalidArgument, "not-pickled"):
        pickle.dumps(one)


def test_bad_shapes_are_told() -> None:
    with refuses(InvalidArgument, "wrong-shape"):
        Examples(np.ones(3), np.ones(3))
    with refuses(InvalidArgument, "wrong-shape"):
        Examples(np.ones((3, 2)), np.ones(2))


def data(count: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, 2)) / 2
    return rows, (rows[:, 0] > 0).astype(int)


@pytest.mark.parametrize("loss", [Huber(1), Logistic(), Softmax(2)], ids=str)
@pytest.mark.parametrize("size", [1e100, 2.0**399, 1e200, 1e306])
def test_huge_weights_leave_sums_exact(loss: Any, size: float) -> None:
    rows, labels = data(50)
    weights = np.full((2, 3) if isinstance(loss, Softmax) else 3, size) * np.array([1.0, -1.0, 1.0])
    more = np.vstack([rows, [[1e38, 1e-38]]])
    known = Examples(rows, labels.astype(float)).sums(weights, loss, 1)
    found = Examples(more, np.append(labels, 1.0).astype(float)).sums(weights, loss, 1)
    assert sum(int(x) ** 2 for x in (found - known).ravel()) <= 4**40
