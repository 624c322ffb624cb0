"""Estimators as scikit-learn's tools use them, all spending from one ledger."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.learn.checks import REASONS, expected_failed_checks

from ..refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
MODELS: list[Any] = [
    dp.learn.LogisticRegression(classes=[0, 1], steps=5),
    dp.learn.LinearSVC(classes=[0, 1], steps=5),
    dp.learn.HuberRegressor(steps=5),
    dp.learn.QuantileRegressor(steps=5),
    dp.learn.PoissonRegressor(target_bound=10, steps=5),
]


def ids(model: Any) -> str:
    return type(model).__name__


def data(count: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3)) / 2
    return rows, (rows @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(count) > 0).astype(int)


def ledger(epsilon: float = 50, rule: str = "best", protects: Any = None) -> Any:
    unit = dp.row() if protects is None else protects
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=epsilon, delta=1e-3), rule=rule)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_scikit_learns_own_checks(model: Any) -> None:
    """Every check passes, but for those that privacy forbids: each of them is listed with its reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=expected_failed_checks(model), on_skip=None, on_fail=None)
    wrong = [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"]
    assert wrong == []
    assert sum(one["status"] == "passed" for one in found) >= 35
    assert all(len(reason) > 20 for reason in REASONS.values())


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_clone_and_pickle_keep_the_one_ledger(model: Any) -> None:
    book = ledger()
    mine = clone(model).set_params(ledger=book, **GOAL)
    assert clone(mine).ledger is book
    rows, labels = data(300)
    fitted = clone(mine).fit(rows, labels)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.ledger.entries() == book.entries()
    assert len(book.entries()) == 1
    np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))
    clone(again).fit(rows, labels)
    assert len(book.entries()) == 2


def test_cross_validation_is_charged_fit_by_fit() -> None:
    book = ledger()
    rows, labels = data()
    scores = cross_val_score(
        dp.learn.LogisticRegression(classes=[0, 1], steps=10, ledger=book, **GOAL), rows, labels, cv=4
    )
    assert scores.mean() > 0.8
    assert len(book.entries()) == 4


@pytest.mark.slow
def test_a_grid_search_is_charged_and_stops_at_the_limit() -> None:
    book = ledger(epsilon=8)
    rows, labels = data(500)
    model = dp.learn.LogisticRegression(classes=[0, 1], ledger=book, steps=5, **GOAL)
    search = GridSearchCV(model, {"learning_rate": [1.0, 4.0]}, cv=2, error_score="raise")
    search.fit(rows, labels)
    assert len(book.entries()) == 5  # 2 × 2 fits, and one more of the best
    assert search.best_estimator_.ledger is book
    again = GridSearchCV(model, {"learning_rate": [0.5 + i / 50 for i in range(100)]}, cv=2, error_score="raise")
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        again.fit(rows, labels)
    spent = len(book.entries())
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        clone(model).set_params(epsilon=8).fit(rows, labels)
    assert len(book.entries()) == spent


@pytest.mark.slow
def test_other_processes_spend_from_the_same_ledger(tmp_path: Any) -> None:
    book = dp.Ledger.open(tmp_path / "book", protects=dp.row(), limit=dp.Approx(epsilon=50, delta=1e-3))
    rows, labels = data(300)
    model = dp.learn.LogisticRegression(classes=[0, 1], steps=3, ledger=book, **GOAL)
    cross_val_score(model, rows, labels, cv=3, n_jobs=2)
    assert len(book.entries()) == 3


def test_a_pipeline_charges_for_its_last_step() -> None:
    book = ledger()
    rows, labels = data()
    pipe = make_pipeline(dp.learn.LogisticRegression(classes=[0, 1], ledger=book, **GOAL))
    assert pipe.fit(rows, labels).score(rows, labels) > 0.85


@pytest.mark.parametrize("rule", ["best", "basic", "zcdp"])
def test_any_rule_of_the_ledger_takes_it(rule: str) -> None:
    limit: Any = dp.ZeroConcentrated(rho=1) if rule == "zcdp" else dp.Approx(epsilon=5, delta=1e-3)
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit, rule=rule)
    fitted = dp.learn.LogisticRegression(classes=[0, 1], steps=5, ledger=book, **GOAL).fit(*data(200))
    assert fitted.release_.receipt == book.entries()[0].receipt
    assert fitted.release_.guarantee.epsilon_at(delta=1e-6) <= 1


def test_people_have_one_row_each_unless_more_are_said() -> None:
    book = ledger(protects=dp.person("who"))
    rows, labels = data(200)
    model = dp.learn.LogisticRegression(classes=[0, 1], ledger=book, **GOAL)
    one, three = (clone(model).set_params(rows_per_person=k).fit(rows, labels).release_ for k in (None, 3))
    assert three._mechanism.descent.noise.stddev == pytest.approx(3 * one._mechanism.descent.noise.stddev, rel=1e-6)
    assert three.guarantee.protects == dp.person("who")


def test_replacement_costs_twice_the_noise() -> None:
    rows, labels = data(200)
    book = ledger(protects=dp.row(neighbors="replace"))
    mine = dp.learn.LogisticRegression(classes=[0, 1], ledger=book, n_samples=200, **GOAL).fit(rows, labels)
    plain = dp.learn.LogisticRegression(classes=[0, 1], n_samples=200, **GOAL).fit(rows, labels)
    assert mine.release_._mechanism.descent.noise.stddev == pytest.approx(
        2 * plain.release_._mechanism.descent.noise.stddev, rel=1e-6
    )
    assert plain.release_.guarantee.protects == dp.row()


def test_nothing_is_charged_for_what_is_refused() -> None:
    book = ledger()
    rows, labels = data(100)
    for wrong, code in (
        ({"classes": None}, "learn-not-declared"),
        ({"classes": [1]}, "learn-classes"),
        ({"classes": [1, 1]}, "learn-classes"),
        ({"epsilon": 0}, "out-of-range"),
        ({"delta": 2}, "out-of-range"),
        ({"steps": 0}, "out-of-range"),
        ({"feature_norm": -1}, "out-of-range"),
        ({"feature_ranges": [(0, 1)]}, "wrong-shape"),
        ({"feature_ranges": [(1, 0)] * 3}, "ends-out-of-order"),
        ({"feature_ranges": [(0, 1), (0, 1), (-1.7e308, 1.7e308)]}, "ends-out-of-order"),
        ({"ledger": "book"}, "wrong-type"),
        ({"n_samples": -5}, "out-of-range"),
    ):
        with refuses(dp.InvalidArgument, code):
            dp.learn.LogisticRegression(**({"classes": [0, 1], "ledger": book} | GOAL | wrong)).fit(rows, labels)
    with refuses(dp.InvalidArgument, "unequal-lengths"):
        dp.learn.LogisticRegression(classes=[0, 1], ledger=book).fit(rows, labels[:-1])
    assert not book.entries()


def test_the_number_of_rows_changes_nothing_that_is_not_noisy() -> None:
    """n against n + 1 rows, noise frozen: same draws, steps, rates and noise; the same when it is declared."""
    rows, labels = data(300)
    for known in (None, 300):
        seen = []
        for count in (300, 299):
            model = dp.learn.LogisticRegression(classes=[0, 1], n_samples=known, steps=6, **GOAL)
            with testing.frozen(4) as tape:
                fitted = model.fit(rows[:count], labels[:count])
            m = fitted.release_._mechanism.descent
            seen.append((tape.calls, m.steps, m.learning_rate, m.noise, m.counting, m.clip))
            assert fitted.release_.not_private
        assert seen[0] == seen[1]


@pytest.mark.parametrize("strange", [np.nan, np.inf, 1e38, "text", None, 10**400, -(10**400), 1 + 2j, b"x", []])
def test_no_cell_can_stop_a_fit(strange: Any) -> None:
    rows, labels = data(50)
    table = rows.astype(object)
    table[3, 1] = strange
    named = labels.astype(object)
    named[7] = strange
    ranges = [(-2, 2)] * rows.shape[1]
    fitted = dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=ranges, steps=5, **GOAL).fit(
        table.tolist(), named
    )
    assert np.isfinite(fitted.coef_).all()
    with refuses(dp.InvalidArgument, "learn-feature-type"):  # by the dtype, with or without the cell
        dp.learn.LogisticRegression(classes=[0, 1], steps=5, **GOAL).fit(table, named)


def strings_in(fitted: Any) -> list[float]:
    """Every number that a pickle holds, wherever it is."""
    found: list[float] = []

    def walk(value: Any, seen: set[int]) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            found.extend(float(x) for x in value.ravel() if isinstance(x, int | float | np.number))
        elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
            found.append(float(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                walk(key, seen)
                walk(part, seen)
        elif isinstance(value, list | tuple | set):
            for part in value:
                walk(part, seen)
        elif hasattr(value, "__dict__"):
            walk(vars(value), seen)

    walk(vars(fitted), set())
    return found


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_a_pickled_model_holds_no_row_and_no_noiseless_number(model: Any) -> None:
    rng = np.random.default_rng(3)
    rows, labels = rng.random((40, 3)) * 0.123456789 + 0.3, np.tile([0, 1], 20)
    fitted = pickle.loads(pickle.dumps(clone(model).fit(rows, labels)))
    numbers = np.array(strings_in(fitted))
    for secret in [*rows.ravel(), float(rows.sum()), 40.0]:
        assert not np.isclose(numbers, secret, rtol=1e-12, atol=0).any()


def test_the_tour() -> None:
    rows, labels = data()
    book = ledger()
    model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1], ledger=book)
    model.fit(rows, labels)
    error = model.release_.error(0.95)
    assert error.of == "excess risk"
    assert float(error) > 0
    assert model.score(rows, labels) > 0.85
    assert "excess" in str(error)
    assert model.guarantee(2000).epsilon_at(delta=1e-6) <= 1
    assert "momentum" in model.error(2000, 3).reason
    assert float(model.set_params(momentum=0).error(2000, 3)) > 0
    assert "LogisticRegression" in book.entries()[0].asked


@pytest.mark.slow
def test_coefficients_are_those_of_the_features_as_given() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(0, 120, 3000), rng.uniform(0, 5000, 3000)])
    goal = 0.5 * rows[:, 0] / 120 - 0.3 * rows[:, 1] / 5000 + 0.1
    with testing.no_noise():
        fitted = dp.learn.HuberRegressor(
            feature_ranges=[(0, 120), (0, 5000)], steps=800, learning_rate=1.0, **GOAL
        ).fit(rows, goal)
    np.testing.assert_allclose(fitted.predict(rows), goal, atol=0.02)
    np.testing.assert_allclose(fitted.coef_, [0.5 / 120, -0.3 / 5000], rtol=0.05)


@pytest.mark.slow
def test_without_noise_the_models_are_those_of_scikit_learn() -> None:
    from sklearn import linear_model

    rows, labels = data(1500)
    short = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    plain = linear_model.LogisticRegression(C=1e6).fit(short, labels)
    with testing.no_noise():
        mine = dp.learn.LogisticRegression(
            classes=[0, 1],
            feature_norm=1,
            steps=3000,
            learning_rate=8.0,
            clip=1.5,
            radius=100,
            average="last",
            n_samples=1500,
            **GOAL,
        ).fit(rows, labels)
        counts = np.random.default_rng(1).poisson(np.exp(short @ [1.0, -0.5, 0.2] + 0.5)).astype(float)
        mine_counts = dp.learn.PoissonRegressor(
            target_bound=50, steps=2000, learning_rate=0.2, clip=100, radius=20, average="last", n_samples=1500, **GOAL
        ).fit(short, counts)
        middle = dp.learn.QuantileRegressor(
            quantile=0.9, smoothing=0.01, steps=3000, learning_rate=0.1, clip=2, momentum=0, n_samples=1500, **GOAL
        ).fit(short, np.linspace(0, 1, 1500))
    np.testing.assert_allclose(mine.coef_, plain.coef_, rtol=0.02)
    known = linear_model.PoissonRegressor(alpha=0, max_iter=1000).fit(short, counts)
    np.testing.assert_allclose(mine_counts.coef_, known.coef_, atol=0.02)
    assert (np.linspace(0, 1, 1500) <= middle.predict(short)).mean() == pytest.approx(0.9, abs=0.02)


def test_several_classes() -> None:
    rng = np.random.default_rng(5)
    centers = np.array([[1.0, 0], [-0.5, 0.8], [-0.5, -0.8]])
    names = np.array(["low", "middle", "high"])
    place = rng.integers(0, 3, 3000)
    rows = centers[place] * 0.7 + 0.2 * rng.standard_normal((3000, 2))
    fitted = dp.learn.LogisticRegression(classes=list(names), **GOAL).fit(rows, names[place])
    assert fitted.score(rows, names[place]) > 0.9
    assert fitted.coef_.shape == (3, 2)
    np.testing.assert_allclose(fitted.predict_proba(rows).sum(axis=1), 1)
    assert len(fitted.learning_curve_) == fitted.n_iter_
    assert fitted.learning_curve_[-1] < -0.3


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    dp.learn.LogisticRegression(classes=[0, 1], steps=3, verbose=1, **GOAL).fit(*data(50))
    assert "step 3 of 3" in capsys.readouterr().err


def test_frames_keep_their_names() -> None:
    import pandas as pd

    rows, labels = data(200)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    fitted = dp.learn.LogisticRegression(classes=[0, 1], steps=3, **GOAL).fit(frame, pd.Series(labels))
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert not hasattr(fitted.fit(rows, labels), "feature_names_in_")


@pytest.mark.parametrize("kind", ["LogisticRegression", "AdditiveClassifier"])
@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_columns_of_a_frame_are_taken_by_name(kind: str, package: str) -> None:
    """In another order they would give other predictions, and nothing would say so."""
    module = pytest.importorskip(package)
    make = module.table if package == "pyarrow" else module.DataFrame
    rows, labels = data(200)
    parts = dict(zip("abc", rows.T, strict=True))
    fitted = getattr(dp.learn, kind)(classes=[0, 1], steps=3, **GOAL).fit(make(parts), labels)
    wanted = fitted.predict_proba(make(parts))
    for other in ("cab", "xbac"):
        found = fitted.predict_proba(make({name: parts.get(name, rows[:, 0] * 0) for name in other}))
        np.testing.assert_array_equal(found, wanted)
    with refuses(dp.InvalidArgument, "learn-columns-missing"):
        fitted.predict(make({name: parts.get(name, rows[:, 0]) for name in "abx"}))
    np.testing.assert_array_equal(fitted.predict_proba(make(dict(zip("xyz", rows.T, strict=True)))), wanted)


def test_a_quantile_is_not_pulled_by_the_clip() -> None:
    """The default clip binds nowhere for quantiles: nine tenths of the targets are below the 0.9-quantile."""
    rng = np.random.default_rng(2)
    rows, goal = rng.random((4000, 1)), rng.random(4000)
    fitted = dp.learn.QuantileRegressor(quantile=0.9, epsilon=3, delta=1e-6).fit(rows, goal)
    assert (goal <= fitted.predict(rows)).mean() == pytest.approx(0.9, abs=0.05)


def test_probabilities_are_frequencies() -> None:
    """Clipped slopes balance where σ(z) is not the frequency; `predict_proba` undoes that."""
    rng = np.random.default_rng(3)
    rows, labels = np.full((20_000, 1), 0.5), (rng.random(20_000) < 0.1).astype(int)
    fitted = dp.learn.LogisticRegression(classes=[0, 1], **GOAL).fit(rows, labels)
    assert fitted.predict_proba(rows[:1])[0, 1] == pytest.approx(labels.mean(), abs=0.01)


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("kind", [dp.learn.LogisticRegression, dp.learn.LinearSVC])
def test_objective_perturbation_needs_no_steps(kind: Any, delta: float) -> None:
    rows, labels = data()
    book = ledger(protects=dp.row())
    model = kind(epsilon=1, delta=delta, classes=[0, 1], solver="objective", n_samples=2000, ledger=book)
    model.set_params(feature_norm=1.0)
    model.fit(rows, labels)
    assert model.score(rows, labels) > 0.85
    assert model.release_.guarantee.epsilon_at(delta=delta) <= 1
    assert float(model.release_.error(0.95)) > 0
    assert len(book.entries()) == 1
    assert pickle.loads(pickle.dumps(model)).predict(rows[:3]).tolist() == model.predict(rows[:3]).tolist()
    with refuses(dp.InvalidArgument, "learn-no-curve"):
        model.learning_curve_  # noqa: B018
    with refuses(dp.InvalidArgument, "learn-two-classes"):
        clone(model).set_params(classes=[0, 1, 2]).fit(rows, labels)


@pytest.mark.slow
def test_objective_perturbation_looks_at_rows_one_by_one() -> None:
    """Grey-box: with a strange row, without it, and with fewer rows, the same draws and a finite model."""
    rows, labels = data(60)
    seen = []
    for more in ([], [[np.nan, 1, 1]], [[1e38, -1e38, 0]]):
        table = np.vstack([rows, *([more] if more else [])])
        model = dp.learn.LogisticRegression(classes=[0, 1], solver="objective", **GOAL)
        with testing.frozen(6) as tape:
            model.fit(table, np.append(labels, [1] * len(more)))
        seen.append(tape.calls)
        assert np.isfinite(model.coef_).all()
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("known", [None, 500])
def test_pure_fits_count_with_laplace_noise(known: Any) -> None:
    rows, labels = data(500)
    fitted = dp.learn.LogisticRegression(classes=[0, 1], epsilon=5, delta=0, n_samples=known, steps=20).fit(
        rows, labels
    )
    assert fitted.release_.guarantee.pure.epsilon <= 5
    assert np.isfinite(fitted.coef_).all()
