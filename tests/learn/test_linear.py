"""Least squares from noisy moments: neighbors look alike but for the numbers, and the numbers are good."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as Plain
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.errors import BudgetExhausted, IncompatibleGuarantee, InvalidArgument
from discreet.learn.checks import expected_failed_checks
from discreet.learn.linear import LinearRegression, Ridge
from discreet.learn.noisy_equations import above_zero, largest_eigenvalue, longest_noise, shrunk
from discreet.learn.preprocessing import RangeScaler
from discreet.rows.rounding import RoundedRows

from ..refusing import refuses

LIMIT = dp.Approx(epsilon=10, delta=1e-4)
WEIGHTS = np.array([0.5, -0.3, 0.2, 0.0])


def data(n=2000, seed=0, level=0.0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 4)) / 2
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.clip(X @ WEIGHTS + level + 0.1 * draw.normal(size=n), -1, 1)


def odd_one(cell):
    return np.array([[0.1, cell, 0.2, 0.3]])


NEIGHBORS = {
    "removed": lambda X, y: (X[1:], y[1:]),
    "a double": lambda X, y: (np.r_[X, X[:1]], np.r_[y, y[:1]]),
    "nan": lambda X, y: (np.r_[X, odd_one(math.nan)], np.r_[y, 0.5]),
    "infinite": lambda X, y: (np.r_[X, odd_one(-math.inf)], np.r_[y, 0.5]),
    "1e38": lambda X, y: (np.r_[X, odd_one(1e38)], np.r_[y, 1e38]),
    "1e308": lambda X, y: (np.r_[X, odd_one(1e308)], np.r_[y, -1e308]),
    "a target that is no number": lambda X, y: (np.r_[X, odd_one(0.1)], np.r_[y, math.nan]),
    "replaced": lambda X, y: (np.r_[X[1:], -X[:1]], np.r_[y[1:], -y[:1]]),
    "nobody": lambda X, y: (X[:0], y[:0]),
}


@pytest.mark.some_quick(27)
@pytest.mark.parametrize(
    "model", [LinearRegression(), LinearRegression(fit_intercept=False), Ridge(alpha=3, n_samples=60)]
)
@pytest.mark.parametrize("ranges", [None, [(-1, 1)] * 4])
@pytest.mark.parametrize("change", NEIGHBORS.values(), ids=NEIGHBORS)
def test_neighbors_differ_in_numbers_only(model, ranges, change):
    X, y = data(60)
    seen = []
    for rows, goals in ((X, y), change(X, y)):
        with testing.frozen(4) as tape:
            fitted = clone(model).set_params(feature_ranges=ranges).fit(rows, goals)
        assert np.isfinite(fitted.coef_).all()
        assert math.isfinite(fitted.intercept_)
        assert np.isfinite(fitted.coef_deviation_).all()
        shapes = {part: np.shape(x) for part, x in fitted.release_.value.items()}
        seen.append((tape.calls, shapes, fitted.release_.guarantee, sorted(vars(fitted))))
    assert seen[0] == seen[1]


@pytest.mark.slow
@pytest.mark.parametrize("model", [LinearRegression(), Ridge()])
def test_scikit_learns_own_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=expected_failed_checks(model), on_skip=None, on_fail=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 35


def test_the_line_of_the_tour():
    X, y = data()
    model = LinearRegression(epsilon=1, delta=1e-6, feature_norm=1.0, target_bound=1.0, fit_intercept=False).fit(X, y)
    assert model.release_.guarantee.delta_at(epsilon=1) <= 1e-6
    assert model.release_.guarantee.protects == dp.row()
    assert np.abs(model.coef_ - WEIGHTS).max() < 0.5
    assert not model.release_.not_private


@pytest.mark.parametrize("estimator", [LinearRegression, Ridge])
@pytest.mark.parametrize(
    "unit", [dp.row(), dp.row(neighbors="replace"), dp.person("id"), dp.person("id", neighbors="replace")]
)
def test_the_promise_is_kept_and_tight_for_every_unit(estimator, unit):
    book = dp.Ledger.open(":memory:", protects=unit, limit=LIMIT)
    model = estimator(epsilon=0.5, delta=1e-7, ledger=book, rows_per_person=None if unit.column is None else 3)
    promised = model.guarantee(n_features=4)
    assert promised.protects == unit
    assert 0.999e-7 < promised.delta_at(epsilon=0.5) <= 1e-7
    assert model.fit(*data(50)).release_.guarantee == promised


@pytest.mark.parametrize("rule", ["best", "basic", "zcdp", "renyi"])
def test_every_rule_is_charged_once_a_fit(rule):
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT, rule=rule)
    model = LinearRegression(epsilon=1, delta=1e-6, ledger=book).fit(*data(100))
    assert len(list(book.entries())) == 1
    assert model.release_.receipt
    clone(model).fit(*data(100))
    assert len(list(book.entries())) == 2


@pytest.mark.parametrize("rule", ["gaussian", "heterogeneous"])
def test_rules_that_cannot_add_it_refuse_and_spend_nothing(rule, monkeypatch):
    monkeypatch.setattr(RoundedRows, "blocks", lambda self: pytest.fail("a row was read"))
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT, rule=rule)
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        LinearRegression(epsilon=1, delta=1e-6, ledger=book).fit(*data(100))
    assert list(book.entries()) == []


def test_a_clone_keeps_the_ledger_and_cross_validation_is_charged_each_time():
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT, rule="basic")
    model = LinearRegression(epsilon=1, delta=1e-6, ledger=book)
    assert clone(model).ledger is book
    cross_val_score(model, *data(200), cv=3)
    assert len(list(book.entries())) == 3


def test_nothing_is_read_before_the_charge(monkeypatch):
    def read(self):
        raise AssertionError("a row was read")

    monkeypatch.setattr(RoundedRows, "blocks", read)
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=1, delta=1e-5), rule="basic")
    with refuses(BudgetExhausted, "budget-exhausted"):
        LinearRegression(epsilon=2, delta=1e-6, ledger=book).fit(*data(20))
    with pytest.raises(AssertionError):  # the charge stays when the fit is broken off
        LinearRegression(epsilon=1, delta=1e-6, ledger=book).fit(*data(20))
    with refuses(BudgetExhausted, "budget-exhausted"):
        LinearRegression(epsilon=0.5, delta=1e-6, ledger=book).fit(*data(20))


@pytest.mark.parametrize("intercept", [False, True])
def test_without_noise_it_is_least_squares(intercept):
    X, y = data(3000, level=0.3 * intercept)
    with testing.no_noise():
        bounds = {"feature_norm": 1, "target_bound": (-1.5, 1.5)}  # wider than any prediction
        ours = LinearRegression(epsilon=1e4, fit_intercept=intercept, **bounds).fit(X, y)
        ridge = Ridge(alpha=40, epsilon=1e4, fit_intercept=intercept, **bounds).fit(X, y)
    plain, plain_ridge = (
        Plain(fit_intercept=intercept).fit(X, y),
        PlainRidge(alpha=40, fit_intercept=intercept).fit(X, y),
    )
    for one, other in ((ours, plain), (ridge, plain_ridge)):
        assert np.allclose(one.coef_, other.coef_, atol=1e-3)
        assert one.intercept_ == pytest.approx(other.intercept_, abs=1e-3)
        assert one.release_.not_private
        assert np.allclose(one.predict(X), other.predict(X), atol=2e-3)
        assert one.score(X, y) == pytest.approx(other.score(X, y), abs=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
def test_ranges_give_coefficients_in_the_original_units(intercept):
    draw = np.random.default_rng(3)
    X = draw.uniform([100, -5], [200, 5], size=(3000, 2))
    y = X @ [0.01, -0.2] + 0.5 * intercept + 0.05 * draw.normal(size=3000)
    with testing.no_noise():
        ours = LinearRegression(
            epsilon=1e5, target_bound=5, feature_ranges=[(100, 200), (-5, 5)], fit_intercept=intercept
        ).fit(X, y)
    plain = Plain(fit_intercept=intercept).fit(X, y)
    assert np.allclose(ours.coef_, plain.coef_, rtol=2e-2, atol=1e-4)
    assert ours.intercept_ == pytest.approx(plain.intercept_, abs=0.02)
    if not intercept:
        assert ours.intercept_ == 0


def test_it_learns_and_gives_up_gracefully():
    """Mean squared errors over 30 fits: close to least squares at ε = 1, never far above guessing 0 at ε = 0.001."""
    X, y = data(4000)
    floor, guess = float(((y - X @ WEIGHTS) ** 2).mean()), float((y**2).mean())

    def loss(epsilon):
        with testing.frozen(8):
            bounds = {"feature_norm": 1, "target_bound": 1}
            models = [LinearRegression(epsilon=epsilon, fit_intercept=False, **bounds).fit(X, y) for _ in range(30)]
        return float(np.mean([((y - m.predict(X)) ** 2).mean() for m in models]))

    assert loss(1) < floor + 0.1 * (guess - floor)
    assert loss(0.001) < 1.5 * guess


@pytest.mark.slow
def test_the_error_bound_covers():
    """At 95% every one of 60 fits should be inside: the bound is far from tight, and a miss means it is wrong."""
    X, y = data(60_000)
    for intercept in (False, True):
        plain = Plain(fit_intercept=intercept).fit(X, y)
        for seed in range(30):
            with testing.frozen(seed):
                bounds = {"feature_norm": 1, "target_bound": (-1, 1)}
                ours = LinearRegression(epsilon=2, fit_intercept=intercept, **bounds).fit(X, y)
            bound = ours.coefficient_error(0.95)
            assert bound.of == "norm"
            assert np.linalg.norm(ours.coef_ - plain.coef_) <= float(bound) < 1
            assert np.abs(ours.coef_ - plain.coef_).max() < 8 * ours.coef_deviation_.max()


@pytest.mark.parametrize("epsilon", [0.2, 2, 50])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_excess_risk_is_covered(intercept, epsilon):
    """At 95% none of 15 fits should be outside: the bound is far from tight, and a miss means it is wrong."""
    X, y = data(3000, level=0.2 * intercept)
    best = Plain(fit_intercept=intercept).fit(X, y)
    least = float(((y - best.predict(X)) ** 2).mean())
    for seed in range(15):
        with testing.frozen(seed):
            bounds = {"feature_norm": 1, "target_bound": (-1, 1)}
            ours = LinearRegression(epsilon=epsilon, fit_intercept=intercept, **bounds).fit(X, y)
        bound = ours.error(0.95)
        assert bound.of == "excess risk"
        linear = X @ ours.coef_ + ours.intercept_
        assert float(((y - linear) ** 2).mean()) - least <= float(bound) <= 4.001


def test_where_no_bound_is_known_it_says_why():
    model = LinearRegression(epsilon=0.1).fit(*data(100))
    assert model.coefficient_error().amount is None
    assert "more rows" in model.coefficient_error().reason
    low, high = model.target_range_
    assert 0 < float(model.error()) <= (high - low) ** 2 * (1 + 1e-6)  # nothing in the range is farther away


def test_parts_of_the_release_have_errors():
    model = LinearRegression().fit(*data(100))
    assert len(model.release_.error(0.95)) == 5
    assert str(model.release_)


@pytest.mark.parametrize("book", [False, True])
def test_a_pickled_model_holds_no_row_and_no_exact_number(book):
    X, y = data(500, level=0.2)
    X[7] = 0.12345678901234567
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT) if book else None
    model = LinearRegression(epsilon=1, ledger=ledger).fit(X, y)
    kept = pickle.dumps(model)
    with testing.no_noise():
        exact = LinearRegression(epsilon=1).fit(X, y).release_.value
    secrets = [*X[:20].ravel(), *y[:20], *exact["square"].ravel(), *exact["product"], *exact["sum"], exact["target"]]
    for secret in map(float, secrets):
        assert np.float64(secret).tobytes() not in kept
        assert repr(secret).encode() not in kept
    again = pickle.loads(kept)
    assert (again.coef_ == model.coef_).all()
    assert again.error().amount == model.error().amount
    assert not book or again.ledger.entries() == ledger.entries()


def test_it_works_in_a_pipeline_and_with_tables():
    pandas = pytest.importorskip("pandas")
    X, y = data(300)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = LinearRegression().fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    line = make_pipeline(RangeScaler(feature_ranges=[(-1, 1)] * 4), LinearRegression(feature_norm=2)).fit(frame, y)
    assert line.predict(frame).shape == (300,)
    cells = X.astype(object)
    cells[3, 1], cells[4, 0] = "text", None
    assert np.isfinite(
        LinearRegression(feature_ranges=[(-1, 1)] * 4).fit(cells.tolist(), y.astype(object).tolist()).coef_
    ).all()


@pytest.mark.parametrize(
    ("model", "X", "y", "code"),
    [
        (LinearRegression(epsilon=0), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(epsilon=math.nan), np.array([[1.0]]), [1.0], "not-a-number"),
        (LinearRegression(delta=0), np.array([[1.0]]), [1.0], "needs-delta"),
        (LinearRegression(delta=1), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(feature_norm=0), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(target_bound=-1), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(target_bound=math.inf), np.array([[1.0]]), [1.0], "not-a-number"),
        (LinearRegression(n_samples=0), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(rows_per_person=0), np.array([[1.0]]), [1.0], "out-of-range"),
        (LinearRegression(feature_ranges=[(0, 1)]), np.array([[1.0, 2.0]]), [1.0], "wrong-shape"),
        (LinearRegression(feature_ranges=[(1, 0)]), np.array([[1.0]]), [1.0], "ends-out-of-order"),
        (LinearRegression(ledger="book"), np.array([[1.0]]), [1.0], "wrong-type"),
        (LinearRegression(), np.array([1.0]), [1.0], "wrong-shape"),
        (LinearRegression(), np.array([[1.0]]), [1.0, 2.0], "wrong-shape"),
        (LinearRegression(), np.array([[1.0]]), np.array([[1.0, 2.0]]), "wrong-shape"),
        (LinearRegression(), np.array([["a"]]), [1.0], "learn-feature-type"),
        (LinearRegression(), np.array([[1.0]]), np.array(["a"]), "not-a-number"),
        (Ridge(alpha=-1), np.array([[1.0]]), [1.0], "out-of-range"),
    ],
)
def test_bad_arguments_have_a_remedy(model, X, y, code):
    with refuses(InvalidArgument, code):
        model.fit(X, y)


def test_people_have_one_row_each_unless_more_are_said():
    book = dp.Ledger.open(":memory:", protects=dp.person("id"), limit=LIMIT)
    bounds = {"feature_norm": 1, "target_bound": (-1, 1)}
    one, two = (
        LinearRegression(ledger=book, rows_per_person=k, **bounds).fit(*data(10)).release_._mechanism for k in (None, 2)
    )
    assert two.square == pytest.approx(2 * one.square, rel=1e-6)


def test_only_fitted_models_predict():
    with pytest.raises(NotFittedError):
        LinearRegression().predict([[1.0]])
    with refuses(InvalidArgument, "wrong-shape"):
        LinearRegression().fit(*data(10)).predict(np.array([[1.0]]))


# --- equations with noise -------------------------------------------------------------------------------------


def test_a_number_above_zero():
    assert above_zero(0.0, 1.0) == pytest.approx(math.sqrt(2 / math.pi))
    assert above_zero(50.0, 1.0) == pytest.approx(50)
    assert above_zero(-1e4, 1.0) == pytest.approx(1e-4, rel=1e-3)
    assert above_zero(3.0, 0.0) == 3
    assert (above_zero(np.linspace(-500, 500, 999), 1.0) > 0).all()


def test_a_matrix_of_noise_is_shrunk_to_a_multiple_of_one():
    draw = np.random.default_rng(0)
    noise = np.triu(draw.normal(size=(30, 30)), 1) / math.sqrt(2)
    noise = 5 * (noise + noise.T + np.diag(draw.normal(size=30)))
    values, _, kept = shrunk(100 * np.eye(30) + noise, 5.0)
    assert kept < 0.2
    assert np.ptp(values) < 15
    values, _, kept = shrunk(np.diag(np.arange(1.0, 31) * 1e4) + noise, 5.0)
    assert kept > 0.999
    assert np.allclose(values, np.arange(1, 31) * 1e4, rtol=1e-2)


def test_bounds_on_noise_cover():
    """300 symmetric matrices and vectors: at 95% fewer than 41 may be outside (one in 10^7)."""
    draw = np.random.default_rng(1)
    for d in (1, 4, 25):
        wide = long = 0
        for _ in range(300):
            noise = np.triu(draw.normal(size=(d, d)), 1) / math.sqrt(2)
            noise = noise + noise.T + np.diag(draw.normal(size=d))
            wide += np.abs(np.linalg.eigvalsh(noise)).max() > largest_eigenvalue(d, 1.0, 0.05)
            long += np.linalg.norm(draw.normal(size=d)) > longest_noise(d, 1.0, 0.05)
        assert wide < 41
        assert long < 41
