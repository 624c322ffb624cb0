"""Additive models: shapes, edits, pairs, ranges that are found, and what is refused before anything is spent."""

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


def visits(count: int = 4000, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Two numbers, of which one has a hump, and a city; the rest is noise."""
    rng = np.random.default_rng(seed)
    age, city = rng.uniform(0, 120, count), rng.choice([*CITIES, "Rome"], count)
    score = 4 * np.exp(-(((age - 60) / 20) ** 2)) - 2 + 1.5 * (city == "Oslo")
    return {"age": age, "visits": rng.integers(0, 9, count), "city": city}, (
        rng.random(count) < 1 / (1 + np.exp(-2 * score))
    ).astype(int)


def model(**given: Any) -> Any:
    known: dict[str, Any] = {"classes": [0, 1], "ranges": {"age": (0, 120), "visits": (0, 8)}}
    return dp.learn.AdditiveClassifier(**(known | {"categories": {"city": CITIES}, "steps": 40} | GOAL | given))


X, Y = visits()
FITTED = model().fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [dp.learn.AdditiveClassifier(classes=[0, 1], steps=5), dp.learn.AdditiveRegressor(steps=5)],
    ids=lambda made: type(made).__name__,
)
def test_scikit_learns_own_checks(made: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(made, expected_failed_checks=expected_failed_checks(made), on_skip=None, on_fail=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 35


def test_it_learns_a_hump_that_no_line_can() -> None:
    test, truth = visits(seed=1)
    assert FITTED.score(test, truth) > 0.8  # a constant has less than 0.65
    shape = FITTED.shapes_["age"]
    at = dict(zip((shape.edges[:-1] + shape.edges[1:]) / 2, shape.values[1:-2], strict=True))
    middle = np.mean([value for place, value in at.items() if 50 < place < 70])
    ends = np.mean([value for place, value in at.items() if place < 20 or place > 100])
    assert middle > ends + 1
    city = FITTED.shapes_["city"]
    assert city.labels == ("Haifa", "Koper", "Oslo", "other")
    assert city.values.argmax() == 2
    assert 0 < shape.band < 5
    assert np.all(shape.low < shape.high)
    assert 0 <= FITTED.predict_proba(test).min() <= FITTED.predict_proba(test).max() <= 1


def test_any_container_gives_the_same_answers() -> None:
    frame = pd.DataFrame(X)
    said = FITTED.decision_function(X)
    for other in (frame, pl.from_pandas(frame), pa.table(frame), {name: X[name] for name in reversed(X)}):
        np.testing.assert_array_equal(FITTED.decision_function(other), said)
    by_place = model(ranges={0: (0, 120), 1: (0, 8)}, categories={2: CITIES})
    table = np.empty((len(Y), 3), dtype=object)
    for place, name in enumerate(X):
        table[:, place] = X[name]
    with testing.frozen(1):
        once = by_place.fit(table, Y).decision_function(table)
    with testing.frozen(1):
        again = by_place.set_params(ranges=[(0, 120), (0, 8), None]).fit(table.tolist(), Y).decision_function(table)
    np.testing.assert_array_equal(once, again)
    assert [*by_place.shapes_] == ["x0", "x1", "x2"]


def test_one_release_is_charged_before_rows_are_read() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    made = model(ledger=book, ranges={"visits": (0, 8)}, steps=5)
    made.fit(X, Y)
    (entry,) = book.entries()
    assert "AdditiveClassifier of 3 columns in 5 steps" in entry.asked
    assert made.release_.guarantee.epsilon_at(delta=1e-6) <= 3
    assert made.guarantee(n_features=3).epsilon_at(delta=1e-6) <= 3
    assert made.guarantee(n_features=3).epsilon_at(delta=1e-6) > 2.9
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        clone(made).set_params(epsilon=20).fit(X, Y)


def test_people_and_replaced_rows_get_more_noise() -> None:
    plain = model()._mechanism(FITTED._layout)
    unit = dp.person("id", neighbors="replace")
    book = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=10, delta=1e-4))
    many = model(ledger=book, rows_per_person=3)._mechanism(FITTED._layout)
    assert float(many.noise.stddev) == pytest.approx(6 * float(plain.noise.stddev), rel=1e-3)


def test_ranges_that_are_not_declared_are_found() -> None:
    made = model(ranges=None, epsilon=5).fit(X, Y)
    (low, high), (least, most) = made.release_.value["ranges"]
    assert -10 < low < 20
    assert 100 < high < 140
    assert least < 2 < 6 < most < 20
    assert made.score(X, Y) > 0.75


def test_pairs_learn_what_columns_alone_cannot() -> None:
    rng = np.random.default_rng(3)
    hour, free = rng.integers(0, 24, 6000), rng.integers(0, 2, 6000)
    busy = ((hour < 12) ^ (free == 1)).astype(int)
    given: dict[str, Any] = {"classes": [0, 1], "ranges": {"hour": (0, 23), "free": (0, 1)}, **GOAL}
    rows = {"hour": hour, "free": free}
    alone = dp.learn.AdditiveClassifier(**given, steps=30).fit(rows, busy)
    both = dp.learn.AdditiveClassifier(**given, pairs=[("hour", "free")], steps=30).fit(rows, busy)
    assert alone.score(rows, busy) < 0.8  # a sum can be right in three of the four corners
    assert both.score(rows, busy) > 0.95
    assert [*both.shapes_] == ["hour", "free", "hour & free"]


def test_an_edit_changes_a_copy_and_one_shape() -> None:
    changed = FITTED.edit("age", between=(100, 120), value=-1)
    assert changed.release_ is FITTED.release_
    assert changed.shapes_["city"] is FITTED.shapes_["city"]
    ends = changed.shapes_["age"].edges
    assert set(changed.shapes_["age"].values[1:-1][ends >= 100]) == {-1.0}
    old = {"age": np.array([10.0, 110.0]), "visits": [1, 1], "city": ["Oslo", "Oslo"]}
    moved = changed.decision_function(old) - FITTED.decision_function(old)
    assert moved[0] == 0
    assert moved[1] != 0
    rising = FITTED.edit("visits", increasing=True).shapes_["visits"].values[:-1]
    assert np.all(np.diff(rising) >= 0)
    assert np.all(np.diff(FITTED.edit("visits", increasing=False).shapes_["visits"].values[:-1]) <= 0)
    assert FITTED.edit("city", choices=["Oslo"], value=0).shapes_["city"].values[2] == 0
    for wrong in ({"value": 1, "increasing": True}, {}):
        with refuses(dp.InvalidArgument, "conflicting-arguments"):
            FITTED.edit("age", **wrong)
    for wrong in ({"choices": ["Oslo"]}, {"between": (0, 1)}):
        with refuses(dp.InvalidArgument, "learn-shape"):
            FITTED.edit("age" if "choices" in wrong else "city", value=1, **wrong)


def test_missing_and_unknown_cells_have_a_bin_of_their_own() -> None:
    odd = {"age": np.array([np.nan, np.inf, -5.0]), "visits": [1, 2, 3], "city": ["Rome", "Bonn", "Oslo"]}
    shape, city = FITTED.shapes_["age"].values, FITTED.shapes_["city"].values
    known = FITTED.intercept_ + FITTED.shapes_["visits"].values[[1, 2, 3]]
    expected = known + shape[[-1, -2, 0]] + city[[3, 3, 2]]
    np.testing.assert_allclose(FITTED.decision_function(odd), expected)


def test_three_classes_and_a_model_that_is_pickled() -> None:
    rng = np.random.default_rng(5)
    age = rng.uniform(0, 120, 6000)
    label = np.array(["young", "adult", "old"])[np.digitize(age, [40, 80])]
    made = model(classes=["young", "adult", "old"], ranges={"age": (0, 120)}, categories=None, clip=1)
    made.fit({"age": age}, label)
    assert made.score({"age": age}, label) > 0.9
    assert made.shapes_["age"].values.shape[0] == 3
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.predict({"age": age}), made.predict({"age": age}))
    np.testing.assert_allclose(made.predict_proba({"age": age}).sum(axis=1), 1)


@pytest.mark.slow
def test_the_regressor_predicts_within_the_range() -> None:
    rng = np.random.default_rng(6)
    hour = rng.integers(0, 24, 6000)
    rented = 300 + 200 * np.sin(hour / 24 * 6.3) + rng.normal(0, 30, 6000)
    made = dp.learn.AdditiveRegressor(ranges={"hour": (0, 23)}, target_range=(0, 600), **GOAL)
    made.fit({"hour": hour}, rented)
    assert made.score({"hour": hour}, rented) > 0.9
    assert made.predict({"hour": hour}).max() <= 600
    found = dp.learn.AdditiveRegressor(**GOAL).fit({"hour": hour}, rented)
    assert found.score({"hour": hour}, rented) > 0.8
    low, high = found.target_range_
    assert 0 <= low < 200
    assert 400 < high < 1100


def test_what_is_refused_costs_nothing() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    for code, change in (
        ("needs-delta", {"delta": 0}),
        ("learn-feature-type", {"categories": None}),
        ("unknown-column", {"ranges": {"agee": (0, 120)}}),
        ("ends-out-of-order", {"ranges": {"age": (120, 0)}}),
        ("conflicting-arguments", {"categories": {"city": CITIES, "age": [1, 2]}}),
        ("learn-feature-type", {"ranges": {"city": (0, 1)}, "categories": None}),
        ("duplicates", {"categories": {"city": ["a", "a"]}}),
        ("learn-not-declared", {"classes": None}),
        ("wrong-type", {"pairs": ["age"]}),
        ("duplicates", {"pairs": [("age", "age")]}),
    ):
        with refuses(dp.InvalidArgument, code):
            model(ledger=book, **change).fit(X, Y)
    with refuses(dp.InvalidArgument, "unequal-lengths"):
        model(ledger=book).fit(X, Y[1:])
    with refuses(dp.InvalidArgument, "wrong-shape"):
        FITTED.predict(np.zeros((3, 2)))
    twice = pd.DataFrame(np.zeros((4, 2)), columns=["a", "a"])
    with refuses(dp.InvalidArgument, "duplicates"):
        model(ledger=book, ranges=None, categories=None).fit(twice, Y[:4])
    assert not book.entries()


@pytest.mark.slow
def test_a_picture_of_the_shapes(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "shapes.png"
    figure = FITTED.plot(path)
    assert path.stat().st_size > 10_000
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()].count("age") == 1
    assert len(FITTED.plot(columns=["city"]).axes) == 1
    four = FITTED.plot(columns=["age", "visits", "city", "age"]).axes
    assert [axes.get_visible() for axes in four] == [True] * 4  # two and two


@pytest.mark.slow
def test_the_band_covers_the_noise() -> None:
    """60 fits of a few rows, against the fit without noise: at most 5% of all values are outside, here far fewer."""
    rows, labels = visits(1500)
    made = model(epsilon=1, n_samples=1500)
    with testing.no_noise():
        exact = clone(made).fit(rows, labels)
    outside = []
    for _ in range(60):
        noisy = clone(made).fit(rows, labels)
        for name, shape in noisy.shapes_.items():
            outside.append(np.abs(shape.values - exact.shapes_[name].values) > shape.band)
    assert np.mean(np.concatenate(outside)) < 0.05
