"""Clusters: public beginnings, exact sums in every round, and centers that find the clusters."""

from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Plain
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.learn.checks import expected_failed_checks
from discreet.learn.structure.clustering import KMeans
from discreet.learn.structure.decomposition import PCA
from discreet.mechanisms.learning.cluster_sums import exact_centered_sums
from discreet.mechanisms.learning.lloyd import Lloyd
from discreet.mechanisms.learning.public_points import spread_directions
from discreet.mechanisms.learning.weighted_centers import weighted_centers
from discreet.rows.rounding import RoundedRows, unit_of

from ...refusing import refuses

REPLACED = dp.row(neighbors="replace")
ASKED = dp.Approx(epsilon=1, delta=1e-6)
CENTERS = np.array([[0.6, 0.6], [-0.6, 0.5], [0.1, -0.7], [-0.5, -0.4]])
RANGES = [(-1, 1), (-1, 1)]


def data(n=4000, seed=0):
    draw = np.random.default_rng(seed)
    return np.clip(CENTERS[draw.integers(0, 4, n)] + 0.06 * draw.normal(size=(n, 2)), -1, 1)


ODD = {
    "nan": [math.nan, 0.1],
    "infinite": [math.inf, 0.1],
    "1e38": [1e38, -1e38],
    "corner": [1, 1],
    "other corner": [-1, -1],
    "zero": [0, 0],
}


def inertia(X, centers):
    return float(((X[:, None] - centers) ** 2).sum(2).min(1).mean())


# --- the mechanism ----------------------------------------------------------------------------------------------


def test_the_nearest_center_is_decided_by_the_row_alone():
    m = Lloyd(clusters=5, features=2, rounds=1, scale=1)
    rows, centers = data(300), m.whole(m.first_centers())
    radii = np.full(5, 2.0**18)

    def sums(given, places=centers, within=radii):
        return exact_centered_sums(RoundedRows(given, feature_ranges=RANGES), places, within)

    together, alone = sums(rows), [sums(rows[i : i + 1]) for i in range(300)]
    assert (together[0] == sum(one[0] for one in alone)).all()
    assert (together[1] == sum(one[1] for one in alone)).all()
    tied = sums(np.array([[0, 0]]), np.array([[8.0, 0], [-8.0, 0]]), radii[:2])
    assert tied[0].tolist() == [1, 0]
    assert sums(np.array([ODD["nan"], ODD["infinite"]]))[0].tolist() == [0] * 5


@pytest.mark.parametrize("unit", [None, REPLACED, dp.person("id")])
@pytest.mark.parametrize(("rounds", "levels"), [(1, 0), (7, 0), (3, 5)])
def test_the_promise_is_tight(unit, rounds, levels):
    given = {"clusters": 6, "features": 9, "rounds": rounds, "levels": levels, "unit": unit, "rows_per_person": 2}
    m = Lloyd.for_guarantee(ASKED, **given)
    assert 0.999e-6 < m.guarantee(m.sensitivity(unit, 2)).delta_at(epsilon=1) <= 1e-6
    assert m.guarantee(m.sensitivity(unit, 3)).delta_at(epsilon=1) > 1e-6
    moved = sum(stage.moved(unit == REPLACED) for stage in m.stages)
    assert m.sensitivity(unit).exact ** 2 == pytest.approx(moved)
    pure = Lloyd.for_guarantee(dp.Pure(epsilon=1), **given)
    assert 0.999 < pure.guarantee(pure.sensitivity(unit, 2)).epsilon <= 1
    assert pure.guarantee(pure.sensitivity(unit, 3)).epsilon > 1.4


def test_one_added_row_moves_all_stages_by_one_over_the_scale():
    for noise in ("gaussian", "laplace"):
        for levels in (0, 4):
            m = Lloyd(clusters=3, features=5, rounds=2, levels=levels, scale=7, noise=noise)
            assert float(m.sensitivity().exact) == pytest.approx(1 / 7, rel=1e-6)
            assert m.sensitivity().exact <= Fraction(1, 7)


@pytest.mark.parametrize(("features", "norm"), [(1, None), (2, None), (12, None), (1, 3), (3, 0.1), (12, 1)])
def test_first_centers_are_public_spread_and_inside(features, norm):
    m = Lloyd(clusters=7, features=features, rounds=1, scale=1, feature_norm=norm)
    first = m.first_centers()
    assert (first == m.first_centers()).all()
    apart = np.linalg.norm(first[:, None] - first, axis=2)[~np.eye(7, dtype=bool)]
    if norm is None:
        assert np.abs(first).max() <= 1
        assert apart.min() > 0.2
    else:
        assert np.linalg.norm(first, axis=1).max() <= norm
        assert apart.min() > 0.05 * norm
    whole = m.whole(first * 100)
    assert (whole**2).sum(1).max() <= (exactly(m._norm) / unit_of(m._norm)) ** 2


def test_public_directions_are_orthogonal():
    directions = spread_directions(100, 16)
    assert np.allclose(directions.T @ directions, np.eye(16))
    assert np.abs(directions).max() < 0.5


def test_a_tree_divides_where_rows_are():
    m = Lloyd.for_guarantee(ASKED, clusters=4, features=2, rounds=1, levels=5)
    rows = RoundedRows(data(), feature_ranges=RANGES)
    with testing.no_noise():
        starts = m._private_starts(rows.held())
    apart = np.linalg.norm(starts[:, None] - CENTERS, axis=2)
    assert sorted(apart.argmin(1)) == [0, 1, 2, 3]
    assert apart.min(1).max() < 0.1


def test_empty_clusters_are_put_where_rows_are():
    m = Lloyd.for_guarantee(ASKED, clusters=4, features=2, rounds=7)
    rows = RoundedRows(
        np.full((5000, 2), 0.9) + 0.02 * np.random.default_rng(0).normal(size=(5000, 2)), feature_ranges=RANGES
    )
    with testing.frozen(0):
        drawn = m._draw(rows)
        alone = Lloyd.for_guarantee(ASKED, clusters=30, features=2, rounds=3, levels=4)._draw(
            RoundedRows(np.array([[0, 0]]), feature_ranges=RANGES)
        )
    assert (np.linalg.norm(drawn["centers"] - 0.9, axis=1) < 0.7).all()
    assert (drawn["counts"] > 100).sum() >= 2
    assert np.abs(alone["centers"]).max() <= 1


def test_weighted_points_have_the_clusters_that_k_means_finds():
    draw = np.random.default_rng(4)
    points, weights = draw.normal(size=(120, 3)), draw.uniform(1, 5, 120)
    ours = weighted_centers(points, weights, 6)
    best = Plain(6, n_init=20, random_state=0).fit(points, sample_weight=weights)
    cost = float(weights @ ((points[:, None] - ours) ** 2).sum(2).min(1))
    assert cost < 1.05 * best.inertia_
    assert (weighted_centers(points[:3], weights[:3], 6)).shape == (3, 3)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Lloyd(clusters=0, features=1, rounds=1, scale=1), "out-of-range"),
        (lambda: Lloyd(clusters=1, features=1, rounds=0, scale=1), "out-of-range"),
        (lambda: Lloyd(clusters=1, features=1, rounds=1, scale=0), "out-of-range"),
        (lambda: Lloyd(clusters=1, features=1, rounds=1, scale=1, levels=-1), "out-of-range"),
        (lambda: Lloyd(clusters=1, features=1, rounds=1, scale=1, noise="uniform"), "not-an-option"),
        (lambda: Lloyd(clusters=1, features=1, rounds=1, scale=1, feature_norm=0), "out-of-range"),
        (
            lambda: Lloyd(clusters=1, features=2, rounds=1, scale=1)._draw(
                RoundedRows(np.array([[1, 2]]), feature_norm=9)
            ),
            "rows-not-rounded",
        ),
    ],
)
def test_a_bad_mechanism_has_a_remedy(make, code):
    with refuses(InvalidArgument, code):
        make()


# --- the estimator ----------------------------------------------------------------------------------------------


@pytest.mark.some_quick(18)
@pytest.mark.parametrize(
    "model",
    [
        KMeans(3, feature_ranges=RANGES),
        KMeans(3, feature_norm=2, rounds=2),
        KMeans(3, feature_ranges=RANGES, delta=0),
        KMeans(3, feature_ranges=RANGES, epsilon=20),
    ],
)
@pytest.mark.parametrize("odd", [*ODD, "a double", "removed", "nobody"])
def test_neighbors_differ_in_numbers_only(model, odd):
    X = data(50)
    changed = {"removed": X[1:], "nobody": X[:0], "a double": np.r_[X, X[:1]]}.get(odd)
    seen = []
    for rows in (X, np.r_[X, [ODD[odd]]] if changed is None else changed):
        with testing.frozen(6) as tape:
            fitted = clone(model).fit(rows)
        assert np.isfinite(fitted.cluster_centers_).all()
        assert fitted.cluster_centers_.shape == (3, 2)
        seen.append((tape.calls, fitted.release_.guarantee, sorted(vars(fitted))))
    assert seen[0] == seen[1]


def test_it_finds_the_clusters():
    X = data()
    best = Plain(4, n_init=5, random_state=0).fit(X)
    with testing.no_noise():
        exact = KMeans(4, feature_ranges=RANGES, epsilon=100).fit(X)
    with testing.frozen(0):
        ours = KMeans(4, feature_ranges=RANGES, epsilon=1).fit(X)
        pure = KMeans(4, feature_ranges=RANGES, epsilon=1, delta=0).fit(X)
        little = KMeans(4, feature_ranges=RANGES, epsilon=0.01).fit(X)
    assert inertia(X, exact.cluster_centers_) < 1.01 * best.inertia_ / len(X)
    assert inertia(X, ours.cluster_centers_) < 1.1 * best.inertia_ / len(X)
    assert inertia(X, pure.cluster_centers_) < 2 * best.inertia_ / len(X)
    assert pure.release_.guarantee.delta_at(epsilon=1) == 0
    assert inertia(X, little.cluster_centers_) < 3
    assert ours.counts_.sum() == pytest.approx(4000, rel=0.1)
    labels = ours.predict(X)
    assert labels.shape == (4000,)
    assert (labels == ours.transform(X).argmin(1)).all()
    assert ours.score(X) == pytest.approx(-4000 * inertia(X, ours.cluster_centers_))


def test_it_does_not_stick_in_a_bad_start():
    """Eight clusters, most of them in one corner, far from where public centers would start."""
    draw = np.random.default_rng(8)
    centers = np.vstack([draw.uniform(0.3, 0.95, (7, 3)), [[-0.9, -0.9, -0.9]]])
    X = np.clip(centers[draw.integers(0, 8, 20_000)] + 0.03 * draw.normal(size=(20_000, 3)), -1, 1)
    best = Plain(8, n_init=5, random_state=0).fit(X).inertia_ / len(X)
    with testing.frozen(1):
        found = [inertia(X, KMeans(8, feature_ranges=[(-1, 1)] * 3).fit(X).cluster_centers_) for _ in range(3)]
    assert np.median(found) < 1.1 * best


def test_ranges_are_the_measure_of_distance():
    X = data() * [1000, 1] + [5000, 0]
    with testing.frozen(0):
        ours = KMeans(4, feature_ranges=[(4000, 6000), (-1, 1)], epsilon=1).fit(X)
    assert inertia((X - [5000, 0]) / [1000, 1], (ours.cluster_centers_ - [5000, 0]) / [1000, 1]) < 0.02


@pytest.mark.parametrize("rule", ["basic", "best"])
def test_one_fit_is_one_charge_and_nothing_private_is_pickled(rule):
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-4), rule=rule)
    X = data(200)
    model = KMeans(3, feature_ranges=RANGES, ledger=book)
    assert clone(model).ledger is book
    model.fit_predict(X)
    assert len(book.entries()) == 1
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "inertia_")
    kept = pickle.dumps(model)
    assert not any(np.float64(x).tobytes() in kept for x in X.ravel())
    assert (pickle.loads(kept).predict(X) == model.predict(X)).all()
    assert 0.999e-6 < model.guarantee(n_features=2).delta_at(epsilon=1) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("model", [KMeans(3), PCA()])
def test_scikit_learns_own_checks(model):
    allowed = expected_failed_checks(model) | {"check_pipeline_consistency": "two fits differ: each draws fresh noise"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=allowed, on_skip=None, on_fail=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 33


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (KMeans(0), "out-of-range"),
        (KMeans(2, rounds=0), "out-of-range"),
        (KMeans(2, epsilon=-1), "out-of-range"),
        (KMeans(2, feature_norm=math.nan), "not-a-number"),
        (KMeans(2, feature_ranges=[(0, 1)]), "wrong-shape"),
        (KMeans(2, ledger=3), "wrong-type"),
    ],
)
def test_bad_arguments_have_a_remedy(model, code):
    with refuses(InvalidArgument, code):
        model.fit(data(10))


def test_only_fitted_models_predict():
    with pytest.raises(NotFittedError):
        KMeans(2).predict([[1.0, 2.0]])
