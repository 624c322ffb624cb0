"""Scalers, encoders, naive Bayes and components: private, or declared and free."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA as PlainPCA
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as PlainNB
from sklearn.pipeline import make_pipeline

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.preprocessing import OneHot, RangeScaler, StandardScaler
from discreet.learn.structure.decomposition import PCA
from discreet.mechanisms.learning.group_moments import PARTS, GroupMoments, _furthest, exact_group_sums
from discreet.rows.rounding import RoundedRows

from ..refusing import refuses

RANGES = [(0, 10), (-1, 1), (100, 300)]
REPLACED = dp.row(neighbors="replace")
ASKED = dp.Approx(epsilon=1, delta=1e-6)
SHARES = {"count": 1, "sum": 5, "square": 4}
ODD = {
    "nan": [math.nan, 0, 200],
    "infinite": [math.inf, -math.inf, 200],
    "1e38": [1e38, -1e38, 1e38],
    "corner": [10, 1, 300],
    "other corner": [0, -1, 100],
    "middle": [5, 0, 200],
}


def data(n=3000, seed=0):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, size=n)
    X = draw.normal([5, 0, 200], [1, 0.2, 10], size=(n, 3)) + np.outer(y - 1, [1.5, 0.2, -5])
    return np.clip(X, [0, -1, 100], [10, 1, 300]), y


# --- the moments of groups --------------------------------------------------------------------------------------


def squared_distance(m, one, other):
    total = Fraction(0)
    for part, a, b in zip(PARTS, exact_group_sums(one, m.groups), exact_group_sums(other, m.groups), strict=True):
        if getattr(m, part) is not None:
            gaps = sum(Fraction(int(x)) ** 2 for x in np.ravel(a - b))
            total += gaps * m._grain(part) ** 2 / exactly(getattr(m, part)) ** 2
    return total


def grouped(rows, groups, many):
    return RoundedRows(
        np.array(rows, float).reshape(-1, 3), np.array(groups, float), feature_ranges=RANGES, groups=many
    )


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("shares", [SHARES, {"sum": 1}, {"count": 50, "square": 1}, {"count": 1, "sum": 1}])
def test_no_neighbors_are_further_apart_than_declared(many, shares):
    m = GroupMoments.for_guarantee(ASKED, features=3, groups=many, shares=shares)
    added, replaced = (m.sensitivity(unit).exact ** 2 for unit in (None, REPLACED))
    X, _ = data(30)
    rows, groups = X.tolist(), [i % many for i in range(30)]
    base, most, most_replaced = grouped(rows, groups, many), Fraction(0), Fraction(0)
    for odd in ODD.values():
        for group in (0, many - 1, 7, math.nan):
            more = squared_distance(m, base, grouped([*rows, odd], [*groups, group], many))
            most = max(most, more)
            assert more <= added
            for other in ODD.values():
                for elsewhere in (0, many - 1):
                    pair = [grouped([*rows, row], [*groups, g], many) for row, g in ((odd, group), (other, elsewhere))]
                    most_replaced = max(most_replaced, squared_distance(m, *pair))
    assert added * Fraction(99, 100) <= most
    assert replaced * Fraction(9, 10) <= most_replaced <= replaced


def test_the_furthest_that_a_replaced_column_moves():
    x, z = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-1, 1, 401))
    for s, q in ((1, 0), (1, 1), (1, 3), (1, 10), (0, 1)):
        most = (s * (x - z) ** 2 + q * (x**2 - z**2) ** 2).max()
        assert most <= _furthest(Fraction(s), Fraction(q)) <= most * 1.001


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("unit", [None, REPLACED, dp.person("id")])
@pytest.mark.parametrize("groups", [1, 4])
def test_the_promise_of_groups_is_tight(unit, groups):
    m = GroupMoments.for_guarantee(ASKED, features=5, groups=groups, shares=SHARES, unit=unit, rows_per_person=2)
    assert 0.999e-6 < m.guarantee(m.sensitivity(unit, 2)).delta_at(epsilon=1) <= 1e-6
    with testing.frozen(3):
        drawn = [
            m._draw(RoundedRows(np.zeros((0, 5)), [], feature_ranges=[(0, 1)] * 5, groups=groups)) for _ in range(300)
        ]
    bounds = [float(e) for e in m.error(0.9)]
    covered = sum(all(np.abs(d[p]).max() <= b for p, b in zip(PARTS, bounds, strict=True)) for d in drawn)
    assert 240 <= covered <= 297


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: GroupMoments(features=2), "missing-argument"),
        (lambda: GroupMoments(features=2, sum=1, count=0), "out-of-range"),
        (lambda: GroupMoments(features=2, groups=0, sum=1), "out-of-range"),
        (lambda: GroupMoments.for_guarantee(ASKED, features=2, shares={"cubes": 1}), "not-an-option"),
        (
            lambda: GroupMoments(features=2, sum=1)._draw(RoundedRows(np.ones((1, 2)), feature_norm=1)),
            "rows-not-rounded",
        ),
    ],
)
def test_bad_groups_have_a_remedy(make, code):
    with refuses(InvalidArgument, code):
        make()


# --- estimators -------------------------------------------------------------------------------------------------

MODELS = [
    StandardScaler(feature_ranges=RANGES),
    StandardScaler(feature_ranges=RANGES, n_samples=60),
    GaussianNB(classes=[0, 1, 2], feature_ranges=RANGES),
    PCA(2, feature_ranges=RANGES),
    PCA(2, feature_norm=300, center=None),
    PCA(2, feature_ranges=RANGES, center="private"),
    PCA(2, feature_ranges=RANGES, center=None, n_samples=60),
]


def shown(model):
    return {k: np.shape(v) for k, v in vars(model).items() if k.endswith("_") and k != "release_"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("odd", [*ODD, "nobody", "removed"])
def test_neighbors_differ_in_numbers_only(model, odd):
    X, y = data(60)
    changed = {"nobody": (X[:0], y[:0]), "removed": (X[1:], y[1:])}.get(odd)
    seen = []
    for rows, labels in ((X, y), changed or (np.r_[X, [ODD[odd]]], np.r_[y, 9])):
        with testing.frozen(2) as tape:
            fitted = clone(model).fit(rows, labels)
        assert all(np.isfinite(v).all() for k, v in vars(fitted).items() if k.endswith("_") and k != "release_")
        seen.append((tape.calls, shown(fitted), fitted.release_.guarantee))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rule", ["basic", "best"])
def test_one_fit_is_one_charge_and_nothing_private_is_pickled(model, rule):
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-4), rule=rule)
    X, y = data(100)
    X[3] = [1.2345678901234567, 0.98765432109876543, 123.45678901234567]
    mine = clone(model).set_params(ledger=book)
    assert clone(mine).ledger is book
    fitted = mine.fit(X, y)
    assert len(book.entries()) == 1
    if rule == "best":
        assert fitted.release_.guarantee == mine.guarantee(n_features=3)
    assert mine.guarantee(n_features=3).delta_at(epsilon=1) <= 1e-6
    kept = pickle.dumps(fitted)
    with testing.no_noise():
        exact = clone(model).fit(X, y).release_.value
    for secret in [*X[:10].ravel(), *(float(x) for v in exact.values() for x in np.ravel(v))]:
        if secret != round(secret, 3):  # a round number may be anywhere
            assert np.float64(secret).tobytes() not in kept
    again = pickle.loads(kept)
    ask = "predict" if hasattr(again, "predict") else "transform"
    assert np.array_equal(getattr(again, ask)(X), getattr(fitted, ask)(X))


def test_a_scaler_without_noise_is_the_usual_one():
    X, _ = data()
    with testing.no_noise():
        ours = StandardScaler(feature_ranges=RANGES, epsilon=1e4).fit(X)
    assert np.allclose(ours.mean_, X.mean(0), rtol=1e-4, atol=1e-4)
    assert np.allclose(ours.scale_, X.std(0), rtol=1e-3)
    assert ours.n_samples_ == 3000
    assert np.allclose(ours.inverse_transform(ours.transform(X)), X)
    assert ours.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


def test_a_scaler_with_noise_is_close_and_never_blows_up():
    X, _ = data(20_000)
    X[:, 1] = 0.25  # no variance at all
    with testing.frozen(1):
        ours = StandardScaler(feature_ranges=RANGES, epsilon=1).fit(X)
        lost = StandardScaler(feature_ranges=RANGES, epsilon=0.001).fit(X)
    assert np.allclose(ours.mean_, X.mean(0), atol=[0.1, 0.02, 2])
    assert np.allclose(ours.scale_[[0, 2]], X.std(0)[[0, 2]], rtol=0.1)
    assert 0.01 < ours.scale_[1] < 0.2
    halves = np.array([5, 1, 100])
    assert (lost.scale_ <= halves).all()
    assert (lost.scale_ >= halves / 10).all()
    assert (np.abs((lost.mean_ - [5, 0, 200]) / halves) <= 1).all()


def test_declared_scaling_is_free_and_clamps():
    scaler = RangeScaler(feature_ranges=RANGES).fit(np.zeros((0, 3)))
    assert not hasattr(scaler, "release_")
    assert not hasattr(scaler, "guarantee")  # by which `table.fit` knows what is charged
    out = scaler.transform([[5, 0, 200], [11, -7, 100], [math.inf, math.nan, -math.inf]])
    assert out[:2].tolist() == [[0, 0, 0], [1, -1, -1]]
    assert out[2, 0] == 1
    assert math.isnan(out[2, 1])
    X, _ = data(50)
    assert np.allclose(scaler.inverse_transform(scaler.transform(X)), X)
    assert np.abs(RangeScaler(feature_ranges=RANGES).fit_transform(X)).max() <= 1


def test_declared_categories_are_free_and_hide_the_others():
    table = [["a", 1], ["b", 3], ["canary", 2], [None, [1]], [math.nan, 1.0]]
    encoder = OneHot(categories=[["a", "b"], [1, 2]]).fit(table)
    rows = np.empty((5, 2), dtype=object)
    for i, row in enumerate(table):
        rows[i, 0], rows[i, 1] = row
    assert encoder.transform(rows).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert encoder.get_feature_names_out(["x", "y"]).tolist() == ["x_a", "x_b", "y_1", "y_2"]
    assert "canary" not in str(vars(encoder))


def test_pipelines():
    X, y = data(4000)
    with testing.frozen(0):
        line = make_pipeline(
            RangeScaler(feature_ranges=RANGES),
            PCA(2, feature_norm=2, epsilon=2),
            GaussianNB(classes=[0, 1, 2], feature_ranges=[(-2, 2)] * 2),
        ).fit(X, y)
    assert line.score(X, y) > 0.6


def test_naive_bayes_without_noise_is_the_usual_one():
    X, y = data()
    with testing.no_noise():
        ours = GaussianNB(classes=[0, 1, 2], feature_ranges=RANGES, epsilon=1e4).fit(X, y)
    plain = PlainNB().fit(X, y)
    assert np.allclose(ours.theta_, plain.theta_, rtol=1e-3, atol=1e-3)
    assert np.allclose(ours.var_, plain.var_, rtol=1e-2)
    assert np.allclose(ours.class_prior_, plain.class_prior_, atol=1e-3)
    assert (ours.predict(X) == plain.predict(X)).mean() > 0.99
    assert np.allclose(ours.predict_proba(X).sum(1), 1)


def test_naive_bayes_learns_with_any_labels():
    X, y = data(6000)
    words = np.array(["low", "middle", "high"])[y]
    with testing.frozen(0):
        ours = GaussianNB(classes=["low", "middle", "high"], feature_ranges=RANGES, epsilon=1).fit(X, words)
        fixed = GaussianNB(classes=["low", "middle", "high"], feature_ranges=RANGES, priors=[0.2, 0.3, 0.5]).fit(
            X, words
        )
    assert ours.score(X, words) > PlainNB().fit(X, y).score(X, y) - 0.02
    assert fixed.class_prior_.tolist() == [0.2, 0.3, 0.5]


@pytest.mark.parametrize("center", ["declared", "private", None])
def test_components_without_noise_are_the_usual_ones(center):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(4000, 4)) @ np.diag([0.4, 0.25, 0.1, 0.05]) @ np.linalg.qr(draw.normal(size=(4, 4)))[0]
    X = np.clip(X - X.mean(0), -2, 2)
    with testing.no_noise():
        ours = PCA(3, feature_ranges=[(-2, 2)] * 4, epsilon=1e4, center=center).fit(X)
        ball = PCA(3, feature_norm=4, epsilon=1e4, center=center).fit(X)
    plain = PlainPCA(3).fit(X)
    for one in (ours, ball):
        assert np.allclose(np.abs((one.components_ * plain.components_).sum(1)), 1, atol=1e-3)
        assert np.allclose(one.explained_variance_, plain.explained_variance_, rtol=0.01, atol=1e-4)
        assert np.allclose(one.explained_variance_ratio_, plain.explained_variance_ratio_, atol=0.01)
        assert np.allclose(one.mean_, 0, atol=1e-3)
        assert np.abs(one.inverse_transform(one.transform(X)) - X).max() < 0.5
        assert np.allclose(one.components_ @ one.components_.T, np.eye(3), atol=1e-9)


def test_components_are_in_the_original_units():
    draw = np.random.default_rng(1)
    X = draw.normal([50, 0], [20, 0.1], size=(5000, 2))
    with testing.no_noise():
        ours = PCA(2, feature_ranges=[(-50, 150), (-1, 1)], center="private", epsilon=1e4).fit(X)
    assert np.allclose(ours.explained_variance_, PlainPCA(2).fit(X).explained_variance_, rtol=0.05)
    assert ours.mean_ == pytest.approx(X.mean(0), abs=0.05)


def test_components_with_noise_are_close():
    draw = np.random.default_rng(2)
    X = draw.normal(size=(20_000, 6)) * [0.3, 0.2, 0.02, 0.02, 0.02, 0.02]
    with testing.frozen(0):
        ours = PCA(2, epsilon=1).fit(X)
    assert np.linalg.norm(ours.components_[:, :2]) ** 2 > 1.99
    assert len(ours.release_.error(0.95)) == 2


@pytest.mark.parametrize(
    ("model", "X", "code"),
    [
        (StandardScaler(feature_ranges=[(0, 1)], delta=0), np.array([[1.0]]), "needs-delta"),
        (StandardScaler(feature_ranges=[(0, 1)], n_samples=-1), np.array([[1.0]]), "out-of-range"),
        (RangeScaler(), np.array([[1.0]]), "learn-not-declared"),
        (RangeScaler(feature_ranges=[(0, 1)]), np.array([[1.0, 2.0]]), "wrong-shape"),
        (OneHot(), [["a"]], "wrong-type"),
        (OneHot(categories=["a", "b"]), [["a"]], "wrong-type"),
        (OneHot(categories=[["a", "a"]]), [["a"]], "duplicates"),
        (OneHot(categories=[["a"], ["b"]]), np.array([["a"]]), "wrong-shape"),
        (GaussianNB(feature_ranges=[(0, 1)], classes=[1]), np.array([[1.0]]), "learn-classes"),
        (GaussianNB(feature_ranges=[(0, 1)], classes="ab"), np.array([[1.0]]), "learn-classes"),
        (GaussianNB(feature_ranges=[(0, 1)], priors=[1, 0]), np.array([[1.0]]), "learn-priors"),
        (GaussianNB(feature_ranges=[(0, 1)]), np.array([[1.0], [2.0]]), "unequal-lengths"),
        (PCA(3), np.array([[1.0, 2.0]]), "out-of-range"),
        (PCA(center="here"), np.array([[1.0, 2.0]]), "not-an-option"),
        (PCA(feature_norm=0), np.array([[1.0, 2.0]]), "out-of-range"),
        (PCA(epsilon="1"), np.array([[1.0, 2.0]]), "not-a-number"),
    ],
)
def test_bad_arguments_have_a_remedy(model, X, code):
    with refuses(InvalidArgument, code):
        model.fit(X, [0])


@pytest.mark.parametrize("model", [*MODELS, RangeScaler(feature_ranges=RANGES)])
def test_only_fitted_models_answer(model):
    ask = "predict" if hasattr(model, "predict") else "transform"
    with pytest.raises(NotFittedError):
        getattr(clone(model), ask)([[1.0, 2.0, 3.0]])
    with refuses(InvalidArgument, "wrong-shape"):
        getattr(clone(model).fit(*data(20)), ask)(np.array([[1.0]]))
