"""A classifier on public features: what it promises, that each row counts for one, and planted bugs that are seen."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.learn.features import FeatureClassifier, Scattering
from discreet.mechanisms.learning.descent import centered as centered_descent
from discreet.mechanisms.learning.descent.centered import STEP, CenteredDescent
from discreet.rows.gradients import unit_rows
from discreet.rows.gradients.losses import Softmax
from discreet.rows.gradients.unit_rows import UnitRows, unit_length

from ..refusing import refuses

RANDOM = np.random.default_rng(8)
GOAL = dp.Approx(epsilon=1, delta=1e-6)
ODD = [np.nan, np.inf, -np.inf, 1e308, 1e-308, 0.0, 5e-324]


def planned(unit: Any = None, columns: int = 6, rows: int = 1, **given: Any) -> CenteredDescent:
    described = {"loss": Softmax(3), "dimension": 3 * (columns + 1), "steps": 5, "clip": 0.5, **given}
    return CenteredDescent.for_guarantee(GOAL, columns=columns, unit=unit, rows_per_person=rows, **described)


# --- the checks -----------------------------------------------------------------------------------------------


def a_row_adds_at_most_one() -> None:
    """Whatever a row holds, the sum moves by at most 1, and two rows differ by at most 2."""
    base = RANDOM.normal(size=(5, 4)).astype(np.float64)
    rows = [
        np.array(row, dtype=float)
        for row in ([1, 1, 1, 1], [1e300, 0, 0, 1], [1e-300] * 4, [0, 0, 0, 0], [-3, 4, 0, 0])
    ]
    rows += [np.array([odd, 1.0, 2.0, 0.0]) for odd in ODD]
    before = UnitRows(unit_length(base), np.zeros(5)).total()
    moves = [UnitRows(unit_length(np.vstack([base, row])), np.zeros(6)).total() - before for row in rows]
    lengths = [float(sum(int(x) ** 2 for x in move)) * float(STEP) ** 2 for move in moves]
    assert max(lengths) <= 1, "a row counts for more than 1"
    assert max(lengths) > 0.99
    bound = float(CenteredDescent.moved(dp.row(neighbors="replace"), 4).exact)
    apart = max(float(sum(int(x) ** 2 for x in a - b)) ** 0.5 * float(STEP) for a in moves for b in moves)
    assert apart <= bound, "two rows are farther apart than is charged"
    assert apart > 1.5


def the_sum_is_noised() -> None:
    """No rows: the center is noise alone. Of 3,000 numbers, half the noise would be 38 deviations away. The public
    number of rows is so large that the center is not shortened.
    """
    made = planned(columns=3000, steps=1, size=10**6)
    center = made._draw(UnitRows(np.zeros((0, 3000), np.float32), np.zeros(0)))["center"]
    assert center.std() * 10**6 == pytest.approx(float(made.noise.stddev), rel=0.1), "the noise is not what is charged"


def both_parts_are_charged() -> None:
    for unit, rows in ((dp.row(), 1), (dp.row(neighbors="replace"), 1), (dp.person("who"), 3)):
        made = planned(unit, rows=rows)
        moved = made.sensitivity(unit, rows)
        whole = made.guarantee(moved)
        assert whole.delta_at(epsilon=1) <= 1e-6
        alone = made.descent.guarantee(moved[1])
        assert whole.epsilon_at(delta=1e-6) > alone.epsilon_at(delta=1e-6) * 1.002, "the mean is free"
        assert whole.protects == unit


def unknown_classes_are_left_out() -> None:
    rows = unit_length(RANDOM.normal(size=(9, 4)))
    targets = np.array([0.0, 1, np.nan, 2, np.nan, 0, 1, 2, 0])
    known = np.isfinite(targets)
    assert np.array_equal(UnitRows(rows, targets).total(), UnitRows(rows[known], targets[known]).total())


CHECKS: list[Callable[[], None]] = [
    a_row_adds_at_most_one,
    the_sum_is_noised,
    both_parts_are_charged,
    unknown_classes_are_left_out,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


# --- the model ------------------------------------------------------------------------------------------------


def clusters(count: int) -> tuple[Any, Any]:
    labels = RANDOM.integers(0, 3, count)
    return np.eye(3, 8)[labels] + 2 + 0.3 * RANDOM.normal(size=(count, 8)), labels


def test_it_learns_what_is_far_from_the_origin() -> None:
    """The mean of the rows is six times as long as what tells classes apart."""
    (rows, labels), (new, right) = clusters(6000), clusters(2000)
    model = FeatureClassifier(epsilon=2, delta=1e-6, classes=[0, 1, 2]).fit(rows, labels)
    assert model.score(new, right) > 0.9
    assert model.predict_proba(new).sum(1) == pytest.approx(1)
    assert np.abs(model.center_ - unit_length(rows).mean(0)).max() < 0.02
    assert model.release_.guarantee.delta_at(epsilon=2) <= 1e-6


def test_a_transform_may_be_anything_public() -> None:
    rows, labels = clusters(3000)
    for features in (lambda X: np.asarray(X)[:, :3], Doubled()):
        model = FeatureClassifier(features=features, epsilon=5, delta=1e-6, classes=[0, 1, 2], steps=100)
        assert model.fit(rows, labels).score(rows, labels) > 0.85
    with refuses(dp.InvalidArgument, "wrong-type"):
        FeatureClassifier(features=3, classes=[0, 1]).fit(rows, labels)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        FeatureClassifier(features=lambda X: np.zeros(3), classes=[0, 1]).fit(rows, labels)


@pytest.mark.parametrize(
    "features", [lambda X: 1 / int(X[0, 0]), SimpleNamespace(transform=lambda X: {}[f"{X[0, 0]}"])]
)
def test_the_error_of_a_transform_is_not_shown(features: Any) -> None:
    """Neither its message nor its values, and nothing is spent."""
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-3))
    model, secret = FeatureClassifier(features=features, classes=[0, 1], ledger=ledger), 3.0**-7
    with pytest.raises(dp.InvalidArgument) as caught:
        model.fit(np.full((3, 2), secret), [0, 1, 0])
    assert caught.value.code == "learn-features-failed"
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(secret) not in "".join(traceback.format_exception(caught.value))
    assert not ledger.entries()


class Doubled:
    """A transformer of somebody else."""

    def transform(self, X: Any) -> Any:
        """Twice the rows."""
        return 2 * np.asarray(X)


@pytest.mark.slow
def test_images_are_learned_through_scattering() -> None:
    """Stripes across and along: the same mean, told apart by wavelets only."""
    labels = RANDOM.integers(0, 2, 200)
    waves = 0.5 + 0.3 * np.sin(np.arange(16) * 1.5 + RANDOM.random((200, 1)) * 6)
    images = np.where(labels[:, None, None], waves[:, :, None], waves[:, None, :]) + 0.1 * RANDOM.normal(
        size=(200, 16, 16)
    )
    model = FeatureClassifier(features=Scattering(shape=(16, 16)), epsilon=40, delta=1e-5, classes=[0, 1], steps=50)
    assert model.fit(images, labels).score(images, labels) > 0.9


def test_it_is_charged_once_and_before_rows_are_read() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=1.5, delta=1e-5))
    rows, labels = clusters(200)
    model = FeatureClassifier(epsilon=1, delta=1e-6, classes=[0, 1, 2], steps=3, ledger=ledger)
    model.fit(rows, labels)
    assert len(ledger.entries()) == 1
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        model.fit(rows, labels)
    assert len(ledger.entries()) == 1


def test_without_a_delta_it_is_refused() -> None:
    with refuses(dp.InvalidArgument, "needs-delta"):
        FeatureClassifier(epsilon=1, delta=0, classes=[0, 1]).fit(np.ones((9, 2)), np.ones(9))


def test_one_row_changes_only_its_own_part_of_the_sum() -> None:
    rows = RANDOM.normal(size=(300, 40))
    whole = unit_length(rows)
    for places in ([5], [9, 3, 7], list(range(299, -1, -1))):
        assert np.array_equal(unit_length(rows[places]), whole[places])


@pytest.mark.slow
def test_scikit_learns_own_checks() -> None:
    model = FeatureClassifier(classes=[0, 1], steps=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = dp.learn.expected_failed_checks(model)
        found = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert [(one["check_name"], str(one["exception"])[:99]) for one in found if one["status"] == "failed"] == []


# --- the bugs -------------------------------------------------------------------------------------------------


def rows_of_any_length(patch: pytest.MonkeyPatch) -> None:
    def plain(rows: Any) -> Any:
        return np.clip(np.nan_to_num(rows), -3, 3).astype(np.float32)

    for module in (unit_rows, __import__(__name__, fromlist=["unit_length"])):
        patch.setattr(module, "unit_length", plain)


def replaced_counts_as_added(patch: pytest.MonkeyPatch) -> None:
    honest = CenteredDescent.moved
    patch.setattr(CenteredDescent, "moved", staticmethod(lambda unit, columns, rows=1: honest(dp.row(), columns, rows)))


def no_noise_on_the_mean(patch: pytest.MonkeyPatch) -> None:
    honest = CenteredDescent._draw

    def quiet(self: CenteredDescent, value: Any) -> Any:
        with testing.no_noise():
            return honest(self, value)

    patch.setattr(CenteredDescent, "_draw", quiet)


def the_mean_for_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(centered_descent, "compose", lambda parts: list(parts)[1])


def undeclared_classes_count(patch: pytest.MonkeyPatch) -> None:
    honest = UnitRows.__init__
    patch.setattr(UnitRows, "__init__", lambda self, rows, targets: honest(self, rows, np.nan_to_num(targets)))


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (rows_of_any_length, a_row_adds_at_most_one),
        (replaced_counts_as_added, a_row_adds_at_most_one),
        (no_noise_on_the_mean, the_sum_is_noised),
        (the_mean_for_free, both_parts_are_charged),
        (undeclared_classes_count, unknown_classes_are_left_out),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
