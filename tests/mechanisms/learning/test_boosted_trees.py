"""Boosted trees: public trees, exact sums in their leaves, what one row moves, what is charged, and seeded bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.audit.auditor import audit
from discreet.exact.rational import exactly
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.learning import boosted_trees
from discreet.mechanisms.learning.boosted_trees import SHAPES, BoostedTrees, Signal, leaf_sensitivity
from discreet.rows.gradients import leaves
from discreet.rows.gradients.leaves import Bins, LeafRows, Tree, public_words, slope_unit
from discreet.rows.gradients.losses import Huber, Logistic, Softmax

from ...refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)
REPLACED = dp.person("id", neighbors="replace")
RNG = np.random.default_rng(0)
BINS = Bins((9, 3, 7, 2, 40), (True, True, False, True, False))
CODES = [RNG.integers(0, size, 60) for size in BINS.sizes]
TARGETS = RNG.integers(0, 2, 60).astype(float)
CLIP = 0.4


def made(goal: Any = GOAL, **kept: Any) -> BoostedTrees:
    given: dict[str, Any] = {"bins": BINS, "loss": Logistic(), "clip": CLIP, "rounds": 30, "size": 60}
    return BoostedTrees.for_guarantee(goal, **(given | kept))


# --- trees ------------------------------------------------------------------------------------------------------------


def test_a_tree_is_a_function_of_its_seed_and_puts_every_row_in_one_leaf() -> None:
    seen = set()
    for number in range(40):
        tree, again = (BINS.tree(7, number, SHAPES) for _ in range(2))
        assert tree.columns == again.columns
        assert (len(tree.columns), max(tree.parts)) in {(k, p) for k, most in SHAPES for p in range(1, most + 1)}
        seen.add(len(tree.columns))
        for table, other in zip(tree.tables, again.tables, strict=True):
            np.testing.assert_array_equal(table, other)
        places = tree.places(CODES)
        assert places.min() >= 0
        assert places.max() < tree.leaves <= 81
    assert seen == {1, 2, 3, 4}
    drawn = [[BINS.tree(seed, number, SHAPES).columns for number in range(10)] for seed in (7, 8)]
    assert drawn[0] != drawn[1]


def test_parts_of_ordered_bins_are_ranges_and_all_combinations_occur() -> None:
    for number in range(30):
        tree = BINS.tree(1, number, [(1, 4)])
        (column,), (table,) = tree.columns, tree.tables
        if BINS.ordered[column]:
            assert np.all(np.diff(table[:-1]) >= 0)
        assert table.max() < tree.leaves
    both = BINS.tree(1, 0, [(2, 3)])
    grid = np.add.outer(np.unique(both.tables[0]), np.unique(both.tables[1]))
    assert len(np.unique(grid)) == grid.size


def test_columns_are_drawn_by_their_weights() -> None:
    """4,000 draws: each share is within 0.045 of its weight, but for chance below 1e-7. The seed is fixed."""
    weights = np.array([0.5, 0.3, 0.1, 0.06, 0.04])
    first = [BINS.tree(3, number, [(1, 2)], weights).columns[0] for number in range(4000)]
    np.testing.assert_allclose(np.bincount(first) / len(first), weights, atol=0.045)
    words = public_words(5, 0, 40_000)
    assert abs(float((words >> np.uint64(11)).mean()) * 2.0**-53 - 0.5) < 0.01
    assert np.array_equal(public_words(5, 100, 10), words[100:110])


# --- exact sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), Huber(2.0), Softmax(3)], ids=["logistic", "huber", "softmax"])
def test_sums_are_those_of_each_row_alone(loss: Any) -> None:
    def run(part: slice) -> list[Any]:
        rows, found = LeafRows([one[part] for one in CODES], TARGETS[part]), []
        rows.start(loss)
        for number in range(5):
            tree = BINS.tree(2, number, SHAPES)
            places = rows.places(tree)
            found.append(rows.sums(places, tree.leaves, loss, CLIP))
            rows.move(places, np.sin(np.arange(found[-1].size)).reshape(found[-1].shape), 0.5)
        return found

    whole, alone = run(slice(None)), [run(slice(k, k + 1)) for k in range(60)]
    for number, sums in enumerate(whole):
        np.testing.assert_array_equal(sums, sum(one[number] for one in alone))


def test_rows_without_a_target_add_nothing() -> None:
    rows = LeafRows(CODES, np.full(60, np.nan))
    rows.start(Logistic())
    tree = BINS.tree(2, 0, SHAPES)
    assert not rows.sums(rows.places(tree), tree.leaves, Logistic(), CLIP).any()
    assert repr(rows) == "<LeafRows of 5 columns>"
    with refuses(dp.InvalidArgument, "wrong-shape"):
        LeafRows(CODES, TARGETS[1:])


# --- the promise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [dp.row(), REPLACED], ids=str)
@pytest.mark.parametrize("goal", [GOAL, dp.ZeroConcentrated(rho=0.1)], ids=["approx", "zcdp"])
def test_all_draws_together_keep_the_promise_tightly(goal: Any, unit: Any) -> None:
    m = made(goal, size=None, unit=unit, rows_per_person=2)
    less = replace(m, noise=dp.Gaussian(stddev=float(m.noise.stddev) * 0.98, step=m.noise.step))
    for one, keeps in ((m, True), (less, False)):
        drawn = one.guarantee(one.sensitivity(unit, 2))
        if isinstance(goal, dp.Approx):
            assert (drawn.delta_at(epsilon=goal.epsilon) <= goal.delta) == keeps
        else:
            assert (drawn.rho() <= goal.rho) == keeps


def test_parts_that_do_not_fit_are_refused() -> None:
    m = made()
    assert m.error(0.95).amount is None
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(m, noise=dp.Gaussian(stddev=3))
    with refuses(dp.InvalidArgument, "needs-delta"):
        made(dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "size-missing"):
        replace(m, size=None)
    with refuses(dp.InvalidArgument, "out-of-range"):
        replace(m, momentum=1)


def test_the_rate_leaves_the_asked_noise() -> None:
    m = made(final_noise=0.01)
    total = np.linalg.norm(np.full(m.rounds, m.rate(60) / (1 - 0.9) * m.noise.deviation / 60))
    assert total == pytest.approx(0.01)
    assert np.linalg.norm(m.left_in_leaves(60)) < total
    assert made(learning_rate=0.5).rate(60) == 0.5


# --- what an attacker sees --------------------------------------------------------------------------------------------


def canary_score(m: Any, shapes: Any, present: bool) -> float:
    """What is released of the leaf that the canary is in, and few others."""
    codes = [np.append(np.zeros(5, dtype=np.int64), size - 1) for size in BINS.sizes]
    many = 6 if present else 5
    drawn = m._draw(LeafRows([one[:many] for one in codes], np.array([0.0, 1, 0, 1, 0, 1])[:many]))
    tree = BINS.tree(drawn["seed"], 0, shapes)
    return float(drawn["values"][0, -1, tree.places(codes)[5]])


def check_by_audit(make: Callable[[Any], Any], shapes: Any, epsilon: int) -> None:
    """An audit with a canary finds no more than is claimed. False alarms are below 1e-5, and without noise it fires."""
    m = make(dp.Approx(epsilon=epsilon, delta=1e-5))

    def score(present: bool) -> float:
        return canary_score(m, shapes, present)

    found = audit(score, True, False, samples=1500, epsilon=epsilon, delta=1e-5)
    assert found.passed, found
    assert epsilon < 10 or found.epsilon_lower > 0.5
    with testing.no_noise():
        bare = audit(score, True, False, samples=1500, epsilon=1, delta=1e-5)
    assert not bare.passed


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 10])
def test_an_audit_finds_no_more_than_is_claimed(epsilon: int) -> None:
    kept: dict[str, Any] = {"rounds": 1, "size": 10, "momentum": 0, "learning_rate": 1}
    check_by_audit(lambda goal: made(goal, **kept), SHAPES, epsilon)


# --- seeded bugs ------------------------------------------------------------------------------------------------------


def no_row_moves_sums_too_far() -> None:
    """Sums with and without a row differ by at most the clip, at scores that push, and twice that if it is replaced."""
    most = (exactly(CLIP) / slope_unit(CLIP)) ** 2
    assert exactly(made().sensitivity(REPLACED, 3).amount) >= 6 * exactly(CLIP), "a replaced row moves two sums"
    for loss in (Logistic(), Softmax(3)):
        tree = BINS.tree(2, 3, SHAPES)
        for push in (0.0, 40.0, -40.0):
            found = []
            for extra in range(12):
                odd = [np.append(one, extra % size) for one, size in zip(CODES, BINS.sizes, strict=True)]
                rows = LeafRows(odd, np.append(TARGETS, [0.0, 1.0, np.nan][extra % 3] if extra else np.nan))
                rows.start(loss)
                places = rows.places(tree)
                rows.move(places, np.array([[push], [-push], [0.0]][: rows._scores.shape[0]]) * np.ones(tree.leaves), 0)
                found.append(rows.sums(places, tree.leaves, loss, CLIP))
            for one in found[1:]:
                assert sum(int(x) ** 2 for x in (one - found[0]).ravel()) <= most, "a row moves the sums too far"


def everything_drawn_is_charged() -> None:
    m = made(size=None)
    counting = m.counting
    assert counting is not None
    parts = [m.noise.guarantee(leaf_sensitivity(CLIP, 1, dp.row()))] * m.rounds
    parts += [counting.guarantee(dp.Sensitivity(1, grain=1))]
    assert m.guarantee().epsilon_at(delta=1e-6) >= compose(parts).epsilon_at(delta=1e-6) * (1 - 1e-6), "not charged"


def what_is_public_does_not_depend_on_rows() -> None:
    seen = []
    for count in (60, 59):
        with testing.frozen(3) as tape:
            made(size=None)._draw(LeafRows([one[:count] for one in CODES], TARGETS[:count]))
        seen.append(tape.calls)
    assert seen[0] == seen[1], "what is drawn depends on the rows"
    sizes = [made(size=None, rounds=2)._draw(LeafRows(CODES, TARGETS))["size"] for _ in range(6)]
    assert len(set(sizes)) > 1, "the number of rows is the true one"  # all equal by chance: below 1e-6


def noise_is_what_is_charged() -> None:
    """Leaves of no rows hold noise alone: thousands of draws have its deviation, within 10% but for chance 1e-9."""
    m = made(rounds=60, momentum=0, learning_rate=1, size=1)
    drawn = m._draw(LeafRows([one[:1] for one in CODES], np.array([np.nan])))
    values = drawn["values"][drawn["values"] != 0]
    assert len(np.unique(values)) > 0.99 * len(values) > 500, "a draw is used twice"
    assert values.std() == pytest.approx(m.noise.deviation, rel=0.1), "the noise is not the one charged"


def trees_follow_from_what_is_released() -> None:
    """Weights of the columns, computed again from the released values alone, are those that were used."""
    m = made(rounds=100, momentum=0, learning_rate=1, size=6000)
    codes = [np.random.default_rng(1).integers(0, size, 6000) for size in BINS.sizes]
    drawn = m._draw(LeafRows(codes, (codes[0] > 4).astype(float)))
    seen = Signal(len(BINS.sizes), m.noise.deviation)
    for number in range(m.rounds):
        weights = seen.weights(number, m.rounds)
        np.testing.assert_allclose(weights, drawn["weights"][number], err_msg="trees depend on more than is released")
        tree = BINS.tree(drawn["seed"], number, SHAPES, weights)
        seen.add(tree, -drawn["values"][number][:, : tree.leaves] * 6000)
    assert drawn["weights"][-1].std() > 0.01, "all columns are drawn equally often"


CHECKS = (
    no_row_moves_sums_too_far,
    everything_drawn_is_charged,
    what_is_public_does_not_depend_on_rows,
    noise_is_what_is_charged,
    trees_follow_from_what_is_released,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


def slopes_are_not_clipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leaves, "whole_slopes", lambda z, y, loss, step, most: np.trunc(loss.derivative(z, y) / step))


def a_row_is_in_two_leaves(patch: pytest.MonkeyPatch) -> None:
    sums = LeafRows.sums
    patch.setattr(LeafRows, "sums", lambda self, *given: sums(self, *given) + np.roll(sums(self, *given), 1, axis=1))


def a_replaced_row_counts_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        boosted_trees, "leaf_sensitivity", lambda clip, many, unit, rows: leaf_sensitivity(clip, many, dp.row(), rows)
    )


def one_round_is_charged(patch: pytest.MonkeyPatch) -> None:
    whole = BoostedTrees.guarantee
    patch.setattr(BoostedTrees, "guarantee", lambda self, bound=None: whole(replace(self, rounds=1), bound))


def noise_by_the_true_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BoostedTrees, "_counted", lambda self, rows: float(rows.count))


def noise_is_used_again(patch: pytest.MonkeyPatch) -> None:
    fresh = dp.Gaussian._noise
    patch.setattr(dp.Gaussian, "_noise", lambda self, size: np.resize(fresh(self, 81), size))


def noise_halved(patch: pytest.MonkeyPatch) -> None:
    fresh = dp.Gaussian._noise
    patch.setattr(dp.Gaussian, "_noise", lambda self, size: fresh(self, size) // 2)


def trees_by_exact_sums(patch: pytest.MonkeyPatch) -> None:
    exact: list[Any] = []
    sums, add = LeafRows.sums, Signal.add

    def kept(self: LeafRows, *given: Any) -> Any:
        exact.append(sums(self, *given))
        return exact[-1]

    def shown(self: Signal, tree: Tree, noisy: Any) -> None:
        add(self, tree, exact.pop() * float(slope_unit(CLIP)) if exact else noisy)

    patch.setattr(LeafRows, "sums", kept)
    patch.setattr(boosted_trees.Signal, "add", shown)


BUGS = (
    (slopes_are_not_clipped, no_row_moves_sums_too_far),
    (a_row_is_in_two_leaves, no_row_moves_sums_too_far),
    (a_replaced_row_counts_once, no_row_moves_sums_too_far),
    (one_round_is_charged, everything_drawn_is_charged),
    (noise_by_the_true_count, what_is_public_does_not_depend_on_rows),
    (noise_is_used_again, noise_is_what_is_charged),
    (noise_halved, noise_is_what_is_charged),
    (trees_by_exact_sums, trees_follow_from_what_is_released),
)


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=lambda one: one.__name__)
def test_a_mutant_is_killed(bug: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check()
