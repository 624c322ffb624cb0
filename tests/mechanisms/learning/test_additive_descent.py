"""Descent over bins: exact sums, what one row moves, what all draws together cost, and seeded bugs of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.audit.auditor import audit
from discreet.exact.rational import exactly
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.learning.descent.additive import AdditiveDescent
from discreet.rows.gradients import binned
from discreet.rows.gradients.binned import BinnedExamples, BinTables, exact_product
from discreet.rows.gradients.examples import unit_of
from discreet.rows.gradients.losses import Huber, Logistic, Softmax

from ...refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)
REPLACED = dp.person("id", neighbors="replace")
RNG = np.random.default_rng(0)
TABLES = BinTables.rounded([np.eye(3), RNG.normal(size=(4, 2)) / 2, np.array([[0.5], [-1.0]])])
CODES = [RNG.integers(0, len(table), 50) for table in TABLES.tables]
TARGETS = RNG.integers(0, 2, 50).astype(float)
CLIP = 0.9


def made(goal: Any = GOAL, **kept: Any) -> AdditiveDescent:
    given: dict[str, Any] = {"loss": Logistic(), "clip": CLIP, "dimension": TABLES.dimension, "steps": 20, "size": 50}
    given |= {"feature_norm": float(TABLES.feature_norm), "region": 5.0}
    return AdditiveDescent.for_guarantee(goal, **(given | kept))


# --- exact sums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Logistic(), Huber(2.0), Softmax(3)], ids=["logistic", "huber", "softmax"])
def test_sums_are_those_of_each_row_alone(loss: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    many = loss.classes if isinstance(loss, Softmax) else 1
    weights = RNG.normal(size=(many, TABLES.dimension)) if many > 1 else RNG.normal(size=TABLES.dimension)
    whole = BinnedExamples(CODES, TARGETS, TABLES).sums(weights, loss, CLIP)
    one_by_one = sum(
        BinnedExamples([one[k : k + 1] for one in CODES], TARGETS[k : k + 1], TABLES).sums(weights, loss, CLIP)
        for k in range(50)
    )
    assert np.array_equal(whole, one_by_one)
    for name, smaller in (("BLOCK", 7), ("_TOGETHER", 1)):
        monkeypatch.setattr(binned, name, smaller)
        assert np.array_equal(BinnedExamples(CODES, TARGETS, TABLES).sums(weights, loss, CLIP), whole)
    assert whole.shape == weights.shape


def test_sums_are_those_of_the_features() -> None:
    weights = RNG.normal(size=TABLES.dimension)
    features = np.concatenate([table[code] for table, code in zip(TABLES.tables, CODES, strict=True)], axis=1) / 2**18
    rows = np.column_stack([features, np.ones(50)])
    slopes = np.clip(Logistic().derivative(rows @ weights, TARGETS), *np.array([-1, 1]) * CLIP / float(TABLES.longest))
    found = BinnedExamples(CODES, TARGETS, TABLES).sums(weights, Logistic(), CLIP).astype(float) * float(unit_of(CLIP))
    np.testing.assert_allclose(found, slopes @ rows, atol=1e-3)


def test_products_of_large_sums_are_exact() -> None:
    sums, table = RNG.integers(-(2**50), 2**50, (2, 4)), RNG.integers(-(2**18), 2**18, (4, 3))
    exact = [[sum(int(s) * int(t) for s, t in zip(row, column, strict=True)) for column in table.T] for row in sums]
    assert exact_product(sums, table).tolist() == exact


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


def test_noise_that_is_not_gaussian_is_refused() -> None:
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(made(), noise=dp.Laplace(scale=1, step=unit_of(CLIP)))
    with refuses(dp.InvalidArgument, "needs-delta"):
        made(dp.Pure(epsilon=1))


def test_the_response_to_noise_is_that_of_the_descent() -> None:
    """With a loss without curvature, the noise of a step stays in all later weights."""
    m = made(learning_rate=0.5, momentum=0, average="all", steps=4)
    np.testing.assert_allclose(m.response(50, 0.0), -0.5 * np.array([3, 2, 1, 0]) / 3)
    assert np.linalg.norm(m.response(50, 1.0)) < np.linalg.norm(m.response(50, 0.0))


# --- what an attacker sees --------------------------------------------------------------------------------------------


def canary_score(m: AdditiveDescent, present: bool) -> float:
    """The weight of a bin that only the canary is in."""
    many = 6 if present else 5
    codes = [np.append(np.zeros(5, dtype=np.int64), 2)[:many], np.zeros(many, dtype=np.int64), np.zeros(many, np.int64)]
    return float(m._draw(BinnedExamples(codes, np.array([0.0, 1, 0, 1, 0, 1])[:many], TABLES))["weights"][2])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 10])
def test_an_audit_with_a_canary_finds_no_more_than_is_claimed(epsilon: int) -> None:
    """False alarms below 1e-5; without noise it fires."""
    kept: dict[str, Any] = {"steps": 1, "size": 10, "average": "last", "learning_rate": 1}
    m = made(dp.Approx(epsilon=epsilon, delta=1e-5), **kept)
    found = audit(lambda present: canary_score(m, present), True, False, samples=1500, epsilon=epsilon, delta=1e-5)
    assert found.passed, found
    assert epsilon < 10 or found.epsilon_lower > 0.5
    with testing.no_noise():
        bare = audit(lambda present: canary_score(m, present), True, False, samples=1500, epsilon=1, delta=1e-5)
    assert not bare.passed


# --- seeded bugs ------------------------------------------------------------------------------------------------------


def no_row_moves_sums_too_far() -> None:
    """Exact sums with and without any possible row differ by at most the clip, at weights that push."""
    most = (exactly(CLIP) / unit_of(CLIP)) ** 2
    for weights in (np.zeros(TABLES.dimension), np.full(TABLES.dimension, 60.0), np.full(TABLES.dimension, -60.0)):
        known = BinnedExamples(CODES, TARGETS, TABLES).sums(weights, Logistic(), CLIP)
        for place in np.ndindex(3, 4, 2):
            for target in (0.0, 1.0, np.nan):
                codes = [np.append(one, code) for one, code in zip(CODES, place, strict=True)]
                more = BinnedExamples(codes, np.append(TARGETS, target), TABLES).sums(weights, Logistic(), CLIP)
                assert sum(int(x) ** 2 for x in more - known) <= most, "a row moves the sum by more than the clip"


def everything_drawn_is_charged() -> None:
    m = made(size=None)
    moved = m.sensitivity(dp.row())
    counting = m.counting
    assert counting is not None
    parts = [m.noise.guarantee(moved)] * m.steps
    parts += [counting.guarantee(dp.Sensitivity(1, grain=1))]
    assert m.guarantee().epsilon_at(delta=1e-6) >= compose(parts).epsilon_at(delta=1e-6) * (1 - 1e-6), "not charged"


def what_is_public_does_not_depend_on_rows() -> None:
    seen = []
    for count in (50, 49):
        with testing.frozen(3) as tape:
            made(size=None)._draw(BinnedExamples([one[:count] for one in CODES], TARGETS[:count], TABLES))
        seen.append(tape.calls)
    assert seen[0] == seen[1], "what is drawn depends on the rows"


CHECKS = (
    no_row_moves_sums_too_far,
    everything_drawn_is_charged,
    what_is_public_does_not_depend_on_rows,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


def slopes_are_not_clipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(binned, "whole_slopes", lambda z, y, loss, step, most: np.trunc(loss.derivative(z, y) / step))


def the_intercept_does_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BinTables, "longest", property(lambda self: self.feature_norm))


def one_column_counts_in_the_norm(patch: pytest.MonkeyPatch) -> None:
    def longest(tables: BinTables) -> Fraction:
        return Fraction(max(float(np.linalg.norm(table, axis=1).max()) for table in tables.tables) / 2**18)

    patch.setattr(BinTables, "longest", property(longest))


BUGS = (
    (slopes_are_not_clipped, no_row_moves_sums_too_far),
    (the_intercept_does_not_count, no_row_moves_sums_too_far),
    (one_column_counts_in_the_norm, no_row_moves_sums_too_far),
)


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=lambda one: one.__name__)
def test_a_mutant_is_killed(bug: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check()
