"""Random forests: exact counts in public leaves, their exact law, what is charged, and seeded bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact.rational import exactly
from discreet.mechanisms.learning import leaf_counts
from discreet.mechanisms.learning.leaf_counts import UNIT, LeafCounts, forest_sensitivity
from discreet.rows.gradients.leaves import Bins, LeafRows

from ...refusing import refuses
from .test_boosted_trees import BINS, CODES, REPLACED, TARGETS, check_by_audit

GOAL = dp.Approx(epsilon=1, delta=1e-6)
SHAPE = (3, 2)


def made(goal: Any = GOAL, **kept: Any) -> LeafCounts:
    given: dict[str, Any] = {"bins": BINS, "trees": 7, "shape": SHAPE, "classes": 2}
    return LeafCounts.for_guarantee(goal, **(given | kept))


def test_without_noise_the_counts_are_those_of_the_leaves() -> None:
    with testing.no_noise():
        drawn = made()._draw(LeafRows(CODES, TARGETS))
        sums = made(classes=None)._draw(LeafRows(CODES, TARGETS - 0.5))
    for number, values in enumerate(drawn["values"]):
        places = BINS.tree(drawn["seed"], number, [SHAPE]).places(CODES)
        for label in (0, 1):
            np.testing.assert_array_equal(values[label], np.bincount(places[label == TARGETS], minlength=8))
        own = BINS.tree(sums["seed"], number, [SHAPE]).places(CODES)
        np.testing.assert_allclose(sums["values"][number, 1], np.bincount(own, TARGETS - 0.5, 8), atol=1e-4)


@pytest.mark.parametrize("classes", [2, None])
@pytest.mark.parametrize("goal", [GOAL, dp.Pure(epsilon=1)], ids=str)
@pytest.mark.parametrize("unit", [dp.row(), REPLACED], ids=str)
def test_everything_together_keeps_the_promise_tightly(goal: Any, classes: Any, unit: Any) -> None:
    m = made(goal, classes=classes, unit=unit, rows_per_person=2)
    name = "stddev" if isinstance(m.noise, dp.Gaussian) else "scale"
    less = replace(m, noise=replace(m.noise, **{name: exactly(getattr(m.noise, name)) * Fraction(98, 100)}))
    for one, keeps in ((m, True), (less, False)):
        drawn = one.guarantee(one.sensitivity(unit, 2))
        assert (drawn.delta_at(epsilon=1) <= exactly(getattr(goal, "delta", 0))) == keeps
    assert m.error(0.95).amount > 0


def test_the_largest_loss_of_a_small_forest_is_epsilon() -> None:
    """Two trees of two leaves, with and without a row: some output is e^ε times likelier, and none more."""
    m = made(dp.Pure(epsilon=1), trees=2, shape=(1, 2), bins=Bins((3,), (True,)), classes=2)
    scale = float(exactly(m.noise.scale))
    near, far = (LeafRows([np.array(codes)], np.array(goal)) for codes, goal in (([0, 1], [0.0, 1.0]), ([0], [0.0])))
    moved = 0
    for number in range(2):
        tree = m.bins.tree(5, number, [m.shape])
        here, there = (m._exact(rows, rows.places(tree), tree.leaves) for rows in (near, far))
        moved += int(np.abs(here - there).sum())
    # the loss of Laplace noise on a lattice is |move|/scale, reached where all noise is on one side
    assert moved * float(UNIT) / scale == pytest.approx(1, rel=1e-6)


def test_parts_that_do_not_fit_are_refused() -> None:
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(made(), noise=dp.Gaussian(stddev=3, step=1))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 10])
def test_an_audit_finds_no_more_than_is_claimed(epsilon: int) -> None:
    check_by_audit(lambda goal: made(goal, trees=1), [SHAPE], epsilon)


# --- seeded bugs ------------------------------------------------------------------------------------------------------


def no_row_moves_leaves_too_far() -> None:
    """All leaves of all trees, with and without a row, and with another in its place."""
    for classes in (2, None):
        m = made(classes=classes)
        targets = (0.0, 1.0, np.nan, -1.0, 1e300, np.inf)
        found = [_everything(m, code, target) for target in targets for code in range(3)]
        nothing = _everything(m, 0, np.nan)
        most, twice = (float(exactly(m.sensitivity(unit).amount)) for unit in (dp.row(), REPLACED))
        for one in found:
            assert np.linalg.norm(one - nothing) <= most * (1 + 1e-9), "a row moves the leaves too far"
            for other in found:
                assert np.linalg.norm(one - other) <= twice * (1 + 1e-9), "a replaced row moves the leaves too far"
        pure = forest_sensitivity(m.trees, classes, True, REPLACED)
        assert max(float(np.abs(one - other).sum()) for one in found for other in found) <= float(exactly(pure.amount))


def _everything(m: LeafCounts, code: int, target: float) -> Any:
    rows = LeafRows([np.append(one, min(code, 1)) for one in CODES], np.append(TARGETS, target))
    trees = [m.bins.tree(9, number, [m.shape]) for number in range(m.trees)]
    return np.concatenate([m._exact(rows, rows.places(one), one.leaves).ravel() for one in trees]) * float(UNIT)


def noise_is_what_is_charged() -> None:
    """Leaves without rows: over 1,000 draws have the deviation of the noise, within 15% but for chance below 1e-9."""
    m = made(trees=80)
    drawn = m._draw(LeafRows([one[:1] for one in CODES], np.array([np.nan])))["values"]
    used = drawn[drawn != 0]
    assert used.std() == pytest.approx(float(m.noise.deviation), rel=0.15), "the noise is not the one charged"
    assert len(np.unique(used)) > 0.99 * len(used), "a draw is used twice"


CHECKS = (no_row_moves_leaves_too_far, noise_is_what_is_charged)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


def one_tree_is_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leaf_counts, "_moved", lambda trees, classes: 1 if classes is not None else 2)


def sums_are_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leaf_counts, "_moved", lambda trees, classes: trees)


def targets_are_not_clipped(patch: pytest.MonkeyPatch) -> None:
    def totals(self: LeafRows, places: Any, leaves: int, unit: Any) -> Any:
        counts = np.bincount(places, minlength=leaves)
        whole = np.clip(np.nan_to_num(self._goal), -5, 5) / float(unit)
        return np.array([counts, np.bincount(places, whole, leaves)]).astype(np.int64)

    patch.setattr(LeafRows, "totals", totals)


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    fresh = dp.Gaussian._noise
    patch.setattr(dp.Gaussian, "_noise", lambda self, size: fresh(self, size) // 2)


BUGS = (
    (one_tree_is_charged, no_row_moves_leaves_too_far),
    (sums_are_not_charged, no_row_moves_leaves_too_far),
    (targets_are_not_clipped, no_row_moves_leaves_too_far),
    (noise_halved, noise_is_what_is_charged),
)


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=lambda one: one.__name__)
def test_a_mutant_is_killed(bug: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check()
