"""Holdouts, leaderboards and scorers as users meet them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import discreet as dp
from discreet import testing
from discreet.adaptive.holdouts import GuessAndCheck

from ..refusing import refuses

RNG = np.random.default_rng(21)
REPLACE = dp.row(neighbors="replace")


def rows(count: int, shift: float = 0.0) -> dict[str, Any]:
    X = RNG.normal(size=(count, 5))
    return {"X": X, "y": X[:, 0] + shift + RNG.normal(size=count) > 0, "u": RNG.random(count)}


TRAIN, TEST = rows(4000), rows(4000)
KEPT: dict[str, Any] = {"queries": 50, "overfits": 3, "tolerance": 0.05}
"""With the same numbers the least noise is found once for all tests."""


@pytest.fixture
def ledger(tmp_path: Path) -> dp.Ledger:
    return dp.Ledger.open(tmp_path / "a.ledger", limit=dp.Approx(epsilon=5, delta=1e-6), protects=REPLACE)


def uniform_above(cut: float) -> Any:
    return lambda one: one["u"] > cut


# --- holdouts -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_honest_guesses_are_confirmed_for_free() -> None:
    held = dp.adaptive.holdout(TRAIN, TEST, queries=500, overfits=3, unprotected=True)
    answers = [held.check(uniform_above(cut)) for cut in np.linspace(0, 1, 200)]
    assert sum(not one.agrees for one in answers) <= 3
    assert all(one.not_private for one in answers)
    for cut, one in zip(np.linspace(0, 1, 200), answers, strict=True):
        low, high = one.interval
        assert low <= 1 - cut <= high
        if one.agrees:
            assert one.value == pytest.approx((TRAIN["u"] > cut).mean(), abs=1e-9)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(("method", "free"), [("guess and check", True), ("thresholdout", False), ("gaussian", False)])
def test_an_overfit_is_corrected(method: str, free: bool) -> None:
    wrong = {**TRAIN, "u": np.sqrt(TRAIN["u"])}
    held = dp.adaptive.holdout(wrong, TEST, method=method, unprotected=free, **KEPT)
    with testing.no_noise():
        answer = held.check(uniform_above(0.5))
    assert not answer.agrees
    assert answer.value == pytest.approx(0.5, abs=0.06)
    assert answer.not_private
    assert held.corrected == 1
    assert "training set was off" in str(answer)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "free"), [("guess and check", True), ("thresholdout", False)])
def test_one_overfit_more_than_allowed_ends_it(method: str, free: bool) -> None:
    wrong = {**TRAIN, "u": np.zeros(4000)}
    with testing.no_noise():
        held = dp.adaptive.holdout(wrong, TEST, method=method, unprotected=free, **KEPT)
        assert [held.check(uniform_above(0.5)).agrees for _ in range(3)] == [False] * 3
        assert held.check(lambda one: one["y"]).agrees  # agreement still costs nothing
        with refuses(dp.BudgetExhausted, "overfits-used-up"):
            held.check(uniform_above(0.5))
        assert held.remaining == 0
        with refuses(dp.BudgetExhausted, "questions-used-up"):
            held.check(lambda one: one["y"])


@pytest.mark.slow
def test_questions_are_counted() -> None:
    held = dp.adaptive.holdout(TRAIN, TEST, queries=2, overfits=1, unprotected=True)
    held.check(lambda one: one["u"])
    with refuses(dp.InvalidArgument, "unknown-column"):
        held.check(lambda one: one["nothing"])
    assert held.check(lambda one: one["u"], between=(0, 2)).remaining == 0
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        held.check(lambda one: one["u"])


def test_a_holdout_is_protected_unless_said_otherwise(ledger: dp.Ledger) -> None:
    assert dp.adaptive.holdout(TRAIN, TEST, **KEPT).method in ("thresholdout", "gaussian")
    with refuses(dp.NotAllowed, "study-protected"):
        dp.adaptive.holdout(TRAIN, TEST, **KEPT, method="guess and check")
    with refuses(dp.NotAllowed, "study-protected"):
        dp.adaptive.holdout(TRAIN, TEST, queries=50, ledger=ledger, unprotected=True)
    assert len(list(ledger.entries())) == 0
    held = dp.adaptive.holdout(TRAIN, TEST, **KEPT, ledger=ledger)
    answers = [held.check(lambda one: one["u"] > 0.3) for _ in range(5)]
    assert len(list(ledger.entries())) == 1
    assert all(one.receipt == answers[0].receipt is not None and not one.not_private for one in answers)
    with refuses(dp.NotAllowed, "study-row-by-row"):
        held.check(lambda one: one["u"] > one["u"].mean())


def test_the_training_set_is_shown_and_cannot_be_under_a_ledger(ledger: dp.Ledger) -> None:
    table = dp.table({"u": TRAIN["u"]}, ledger=ledger)
    with refuses(dp.InvalidArgument, "study-protected"):
        dp.adaptive.holdout(table, TEST, queries=5)
    held = dp.adaptive.holdout({"u": TRAIN["u"]}, table, **KEPT)
    assert held.check(uniform_above(0.4)).value == pytest.approx(0.6, abs=0.5)


def test_the_method_is_fixed_by_public_numbers_alone() -> None:
    other = {name: np.zeros_like(column) for name, column in TEST.items()}
    for free in (False, True):
        one, two = (dp.adaptive.holdout(TRAIN, t, unprotected=free, **KEPT) for t in (TEST, other))
        assert one.mechanism == two.mechanism


# --- leaderboards ---------------------------------------------------------------------------------------------


def test_the_ladder_tells_only_what_is_clearly_better() -> None:
    labels = RNG.integers(0, 2, 2000)
    board = dp.adaptive.leaderboard(labels, submissions=50, unprotected=True)
    bad = np.where(RNG.random(2000) < 0.45, 1 - labels, labels)
    good = np.where(RNG.random(2000) < 0.2, 1 - labels, labels)
    hardly = good.copy()
    hardly[np.flatnonzero(good != labels)[:1]] ^= 1
    scores = [board.submit(one) for one in (bad, good, hardly, bad)]
    assert [one.agrees for one in scores] == [True, True, False, False]
    assert scores[0].value == pytest.approx(0.45, abs=0.05)
    assert scores[1].value == scores[2].value == scores[3].value == pytest.approx(0.2, abs=0.05)
    assert scores[0].width < scores[1].width == scores[3].width < 0.1
    assert all(one.not_private for one in scores)
    assert "4 submissions" in repr(board)


@pytest.mark.parametrize("loss", ["zero_one", "absolute", "squared", lambda a, b: np.abs(a - b) / 2])
def test_losses(loss: Any) -> None:
    labels = RNG.random(1000)
    given = np.clip(labels + 0.1, 0, 1)
    board = dp.adaptive.leaderboard(labels, loss, submissions=3, unprotected=True)
    measured: Any = {
        "zero_one": lambda a, b: a != b,
        "absolute": lambda a, b: abs(a - b),
        "squared": lambda a, b: (a - b) ** 2,
    }
    expected = measured.get(loss, loss)(labels, given) if isinstance(loss, str) else loss(labels, given)
    assert board.submit(given).value == pytest.approx(expected.mean(), abs=0.02)


def test_protected_labels_are_answered_with_noise(ledger: dp.Ledger) -> None:
    labels = RNG.integers(0, 2, 3000)
    board = dp.adaptive.leaderboard(labels, submissions=3, ledger=ledger)
    first = board.submit(1 - labels)
    assert not first.not_private
    assert first.guarantee is not None
    assert board.guarantee is not None
    assert first.value > 0.7
    assert len(list(ledger.entries())) == 1
    for _ in range(2):
        board.submit(labels)
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        board.submit(labels)
    with refuses(dp.NotAllowed, "study-protected"):
        dp.adaptive.leaderboard(labels, submissions=3, ledger=ledger, unprotected=True)


def test_bad_submissions() -> None:
    labels = np.array([0, 1, 1])
    board = dp.adaptive.leaderboard(labels, submissions=2, unprotected=True)
    for bad in ([0, 1], [[0, 1, 1]], 3):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            board.submit(bad)
    board.submit([0, 1, 1])
    board.submit([0, 1, 0])
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        board.submit(labels)
    for given, code in (
        ({"loss": "hinge"}, "not-an-option"),
        ({"submissions": 0}, "out-of-range"),
        ({"confidence": 2}, "out-of-range"),
    ):
        with refuses(dp.InvalidArgument, code):
            dp.adaptive.leaderboard(labels, **{"submissions": 2, "unprotected": True, **given})  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "study-sample"):
        dp.adaptive.leaderboard([[1]], submissions=2)
    text = dp.adaptive.leaderboard(np.array(["a", "secret"]), "absolute", submissions=2, unprotected=True)
    with refuses(dp.InvalidArgument, "study-types") as refused:
        text.submit(["a", "b"])
    assert "secret" not in str(refused.value)


# --- scikit-learn ---------------------------------------------------------------------------------------------


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("kind", ["study", "holdout", "ledger"])
def test_models_are_selected_through_a_study(kind: str, ledger: dp.Ledger) -> None:
    if kind == "holdout":
        asked: Any = dp.adaptive.holdout(TRAIN, TEST, queries=10, overfits=2, unprotected=True)
    else:
        asked = dp.adaptive.study(TEST, queries=10, ledger=ledger if kind == "ledger" else None)
    scoring = dp.adaptive.scorer(asked, features="X", target="y")
    search = GridSearchCV(LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=scoring, cv=dp.adaptive.splitter())
    search.fit(TRAIN["X"], TRAIN["y"])
    assert len(scoring.answers) == 2
    assert search.best_score_ == max(one.value for one in scoring.answers)
    truth = (search.best_estimator_.predict(TEST["X"]) == TEST["y"]).mean()
    assert abs(search.best_score_ - truth) < 0.25
    assert asked.remaining == 8


def test_losses_of_models_and_several_columns() -> None:
    test = {"a": TEST["X"][:, 0], "b": TEST["X"][:, 1], "y": TEST["u"]}
    model = LogisticRegression().fit(TRAIN["X"][:, :2], TRAIN["y"])
    asked = dp.adaptive.study(test, queries=3, unprotected=True)
    scoring = dp.adaptive.scorer(asked, features=["a", "b"], target="y", loss=lambda y, p: (y - p) ** 2, between=(0, 4))
    expected = ((TEST["u"] - model.predict(TEST["X"][:, :2])) ** 2).mean()
    assert scoring(model) == pytest.approx(-expected, abs=0.2)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.adaptive.scorer("study", features="X", target="y")  # type: ignore[arg-type]


def opened(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=5, delta=1e-6), "protects": REPLACE, **terms}
    return dp.Ledger.open(tmp_path / "a.ledger", **given)


@pytest.mark.parametrize("rule", ["basic", "advanced"])
def test_a_thresholdout_fits_ledgers_that_add_up_epsilon(tmp_path: Path, rule: str) -> None:
    own = opened(tmp_path, rule=rule)
    rows = {"x": RNG.random(4000)}
    held = dp.adaptive.holdout(rows, rows, method="thresholdout", ledger=own, **KEPT)
    assert len(list(own.entries())) == 1
    assert 0 <= held.check(lambda r: r["x"] > 0.5).value <= 1


def test_a_leaderboard_fits_a_pure_ledger(tmp_path: Path) -> None:
    own = opened(tmp_path, limit=dp.Pure(epsilon=20))
    assert 0 <= dp.adaptive.leaderboard(np.ones(500), submissions=2, ledger=own).submit(np.ones(500)).value <= 1


def test_a_holdout_remembers_that_it_was_opened_without_noise() -> None:
    rows = {"x": RNG.random(4000)}
    with testing.no_noise():
        held = dp.adaptive.holdout(rows, rows, method="thresholdout", **KEPT)
    assert held.check(lambda r: r["x"]).not_private


@pytest.mark.parametrize("questions", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_the_stated_width_covers_every_later_answer(questions: int) -> None:
    for cells in (2, 3, 20):
        made = GuessAndCheck(10**4, questions, questions, 0.02, cells)
        assert made.width(0.95) >= max(made.width(0.95, told) for told in range(questions))
