"""Random forests: what they learn, pure ε, and what is refused before anything is spent."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet.learn.checks import expected_failed_checks

from ...refusing import refuses
from .test_boosting import CITIES, visits

GOAL: dict[str, Any] = {"epsilon": 3, "delta": 1e-6}
X, Y = visits(8000)


def model(**given: Any) -> Any:
    known: dict[str, Any] = {"classes": [0, 1], "ranges": {"age": (0, 120), "visits": (0, 8)}}
    return dp.learn.RandomForestClassifier(**(known | {"categories": {"city": CITIES}} | GOAL | given))


FITTED = model().fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [dp.learn.RandomForestClassifier(classes=[0, 1], n_estimators=5), dp.learn.RandomForestRegressor(n_estimators=5)],
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
    assert FITTED.score(test, truth) > 0.85  # a sum of columns is right in three quarters at most
    likely = FITTED.predict_proba(test)
    assert 0 <= likely.min() <= likely.max() <= 1
    np.testing.assert_allclose(likely.sum(axis=1), 1)
    age, noise, city = FITTED.feature_importances_
    assert min(age, city) > 3 * noise
    assert np.all(FITTED.importance_noise_ > 0)
    again = pickle.loads(pickle.dumps(FITTED))
    np.testing.assert_array_equal(again.predict(test), FITTED.predict(test))


def test_it_can_be_pure() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=3))
    made = model(delta=0, ledger=book).fit(X, Y)
    assert made.release_.guarantee.delta_at(epsilon=3) == 0
    assert made.score(X, Y) > 0.8
    assert "RandomForestClassifier of 3 columns in 100 trees" in book.entries()[0].asked


def test_the_depth_follows_from_public_numbers() -> None:
    assert [model(n_samples=count)._depth() for count in (100, 10_000, 10**7)] == [3, 7, 10]
    assert model(n_samples=10_000, epsilon=0.1)._depth() < 7
    assert (model()._depth(), model(max_depth=4)._depth()) == (6, 4)


def test_ranges_that_are_not_declared_are_found() -> None:
    made = model(ranges=None).fit(X, Y)
    assert made.release_.guarantee.epsilon_at(delta=1e-6) <= 3
    assert made.score(X, Y) > 0.8


def test_the_regressor_predicts_within_the_range() -> None:
    rng = np.random.default_rng(6)
    hour = rng.integers(0, 24, 6000)
    rented = 300 + 200 * np.sin(hour / 24 * 6.3) + rng.normal(0, 30, 6000)
    given: dict[str, Any] = {"ranges": {"hour": (0, 23)}, **GOAL}
    made = dp.learn.RandomForestRegressor(target_range=(0, 600), **given).fit({"hour": hour}, rented)
    assert made.score({"hour": hour}, rented) > 0.8
    assert 0 <= made.predict({"hour": hour}).min() <= made.predict({"hour": hour}).max() <= 600
    assert dp.learn.RandomForestRegressor(**given).fit({"hour": hour}, rented).score({"hour": hour}, rented) > 0.7


def test_what_is_refused_costs_nothing() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    for code, change in (
        ("learn-feature-type", {"categories": None}),
        ("learn-not-declared", {"classes": None}),
    ):
        with refuses(dp.InvalidArgument, code):
            model(ledger=book, **change).fit(X, Y)
    with refuses(dp.InvalidArgument, "ends-out-of-order"):
        dp.learn.RandomForestRegressor(target_range=(1, 0), ledger=book).fit(np.zeros((3, 1)), [1, 2, 3])
    assert not book.entries()


def test_ranges_are_found_with_pure_epsilon_too() -> None:
    found = model(delta=0, ranges=None).fit(X, Y).release_
    assert 2.99 < found.guarantee.epsilon_at(delta=0) <= 3
    assert found.value["ranges"].shape[1] == 2
