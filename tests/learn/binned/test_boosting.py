"""Boosted trees: what they learn, ranges that are found, importances, and what is refused before anything is spent."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.learn.checks import expected_failed_checks

from ...refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 3, "delta": 1e-6}
CITIES = ["Haifa", "Koper", "Oslo"]


def visits(count: int = 5000, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Young people in Oslo and old ones elsewhere come; the number of visits is noise."""
    rng = np.random.default_rng(seed)
    age, city = rng.uniform(0, 120, count), rng.choice([*CITIES, "Rome"], count)
    come = ((age < 60) ^ (city != "Oslo")).astype(int)
    return {"age": age, "visits": rng.integers(0, 9, count), "city": city}, come


def model(**given: Any) -> Any:
    known: dict[str, Any] = {"classes": [0, 1], "ranges": {"age": (0, 120), "visits": (0, 8)}, "rounds": 120}
    return dp.learn.BoostedTreesClassifier(**(known | {"categories": {"city": CITIES}} | GOAL | given))


X, Y = visits()
FITTED = model().fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [dp.learn.BoostedTreesClassifier(classes=[0, 1], rounds=5), dp.learn.BoostedTreesRegressor(rounds=5)],
    ids=lambda made: type(made).__name__,
)
def test_scikit_learns_own_checks(made: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(made, expected_failed_checks=expected_failed_checks(made), on_skip=None, on_fail=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 35


def test_trees_learn_what_columns_alone_cannot() -> None:
    test, truth = visits(seed=1)
    assert FITTED.score(test, truth) > 0.9  # a sum of columns is right in three quarters at most
    likely = FITTED.predict_proba(test)
    assert 0 <= likely.min() <= likely.max() <= 1
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    assert np.all((likely[:, 1] > 0.5) == (FITTED.predict(test) == 1))


def test_importances_name_the_columns_that_matter_and_state_their_noise() -> None:
    age, noise, city = FITTED.feature_importances_
    assert min(age, city) > 5 * noise
    assert FITTED.feature_importances_.sum() == pytest.approx(1)
    assert np.all(FITTED.importance_noise_ > 0)
    nothing = model(epsilon=0.01).fit({name: one[:20] for name, one in X.items()}, Y[:20])
    assert np.all(nothing.feature_importances_ < 3 * nothing.importance_noise_.max())


def test_any_container_gives_the_same_answers() -> None:
    frame = pd.DataFrame(X)
    said = FITTED.decision_function(X)
    for other in (frame, pl.from_pandas(frame), pa.table(frame), {name: X[name] for name in reversed(X)}):
        np.testing.assert_array_equal(FITTED.decision_function(other), said)
    assert FITTED.decision_function({name: one[:7] for name, one in X.items()}).tolist() == said[:7].tolist()


def test_scores_in_a_fit_are_those_of_the_model() -> None:
    """The last sums that a fit reads are those of the slopes at the scores of the model before its last tree."""
    with testing.no_noise():
        made = model(rounds=40, n_samples=5000).fit(X, Y)
    assert made.score(X, Y) > 0.9
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.predict(X), made.predict(X))


def test_one_release_is_charged_before_rows_are_read() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    made = model(ledger=book, ranges={"visits": (0, 8)}, rounds=5).fit(X, Y)
    (entry,) = book.entries()
    assert "BoostedTreesClassifier of 3 columns in 5 rounds" in entry.asked
    assert made.release_.guarantee.epsilon_at(delta=1e-6) <= 3
    assert 2.9 < made.guarantee(n_features=3).epsilon_at(delta=1e-6) <= 3
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        clone(made).set_params(epsilon=20).fit(X, Y)


def test_a_setting_for_the_next_fit_does_not_change_this_one() -> None:
    made = model(rounds=20).fit(X, Y)
    before = made.predict_proba(X)
    np.testing.assert_array_equal(made.set_params(clip=0.1).predict_proba(X), before)


def test_ranges_that_are_not_declared_are_found() -> None:
    made = model(ranges=None, epsilon=5).fit(X, Y)
    (low, high), _ = made.release_.value["ranges"]
    assert -10 < low < 20
    assert 100 < high < 140
    assert made.score(X, Y) > 0.85


def test_three_classes() -> None:
    age = np.random.default_rng(5).uniform(0, 120, 6000)
    label = np.array(["young", "adult", "old"])[np.digitize(age, [40, 80])]
    made = model(classes=["young", "adult", "old"], ranges={"age": (0, 120)}, categories=None)
    made.fit({"age": age}, label)
    assert made.score({"age": age}, label) > 0.85
    np.testing.assert_allclose(made.predict_proba({"age": age}).sum(axis=1), 1)


@pytest.mark.slow
def test_the_regressor_predicts_within_the_range() -> None:
    rng = np.random.default_rng(6)
    hour, free = rng.integers(0, 24, 6000), rng.integers(0, 2, 6000)
    rented = 300 + 200 * np.sin(hour / 24 * 6.3) * (2 * free - 1) + rng.normal(0, 30, 6000)
    rows = {"hour": hour, "free": free}
    given: dict[str, Any] = {"ranges": {"hour": (0, 23), "free": (0, 1)}, "rounds": 300, **GOAL}
    made = dp.learn.BoostedTreesRegressor(target_range=(0, 600), **given).fit(rows, rented)
    assert made.score(rows, rented) > 0.8
    assert made.predict(rows).max() <= 600
    found = dp.learn.BoostedTreesRegressor(**given).fit(rows, rented)
    assert found.score(rows, rented) > 0.7
    with refuses(dp.InvalidArgument, "ends-out-of-order"):
        dp.learn.BoostedTreesRegressor(target_range=(1, 0), **given).fit(rows, rented)


def test_what_is_refused_costs_nothing() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    for code, change in (
        ("needs-delta", {"delta": 0}),
        ("learn-feature-type", {"categories": None}),
        ("unknown-column", {"ranges": {"agee": (0, 120)}}),
        ("learn-not-declared", {"classes": None}),
        ("learn-classes", {"classes": [1]}),
    ):
        with refuses(dp.InvalidArgument, code):
            model(ledger=book, **change).fit(X, Y)
    with refuses(dp.InvalidArgument, "unequal-lengths"):
        model(ledger=book).fit(X, Y[1:])
    with refuses(dp.InvalidArgument, "wrong-shape"):
        FITTED.predict(np.zeros((3, 2)))
    assert not book.entries()
