"""Mixtures of normal laws: they find the components, and only numbers depend on the rows."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture as Plain
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument
from discreet.learn import GaussianMixture
from discreet.learn.checks import expected_failed_checks
from discreet.mechanisms.learning.mixture import MixtureSteps
from discreet.rows.rounding import RoundedRows

from ...refusing import refuses

RANGES = [(-1, 1), (-1, 1)]
CENTERS = np.array([[0.5, 0.5], [-0.5, 0.3], [0.1, -0.6]])
ROOTS = np.array([[[0.1, 0.05], [0, 0.04]], [[0.05, 0], [0.08, 0.1]], [[0.07, 0], [0, 0.07]]])
ODD = {"nan": [math.nan, 0.1], "1e38": [1e38, -1e38], "corner": [1, 1], "zero": [0, 0]}


def data(n=8000, seed=0):
    draw = np.random.default_rng(seed)
    which = draw.choice(3, n, p=[0.5, 0.3, 0.2])
    return np.clip(CENTERS[which] + np.einsum("ni,nij->nj", draw.normal(size=(n, 2)), ROOTS[which]), -1, 1)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_it_finds_the_components(kind):
    X, new = data(), data(seed=1)
    plain = Plain(3, covariance_type=kind, random_state=0).fit(X)
    with testing.no_noise():
        exact = GaussianMixture(3, covariance_type=kind, feature_ranges=RANGES, epsilon=100, rounds=12).fit(X)
    with testing.frozen(0):
        ours = GaussianMixture(3, covariance_type=kind, feature_ranges=RANGES).fit(X)
        pure = GaussianMixture(3, covariance_type=kind, feature_ranges=RANGES, epsilon=2, delta=0).fit(X)
        ball = GaussianMixture(3, covariance_type=kind, feature_norm=1.5).fit(X)
    assert exact.score(new) > plain.score(new) - 0.02
    assert ours.score(new) > plain.score(new) - 0.15
    assert pure.score(new) > plain.score(new) - 0.3
    assert ball.score(new) > plain.score(new) - 0.3
    assert pure.release_.guarantee.delta_at(epsilon=2) == 0
    order = [int(np.linalg.norm(exact.means_ - center, axis=1).argmin()) for center in CENTERS]
    assert sorted(order) == [0, 1, 2]
    assert exact.weights_[order] == pytest.approx([0.5, 0.3, 0.2], abs=0.02)
    full = exact.covariances_[order] if kind == "full" else None
    if full is not None:
        assert np.allclose(full, np.einsum("kji,kjl->kil", ROOTS, ROOTS), atol=0.003)
    assert ours.covariances_.shape == ((3, 2, 2) if kind == "full" else (3, 2))
    assert (ours.deviations_ > 0).all()
    assert (ours.deviations_ < 0.05).all()


def test_predictions_agree_with_one_another():
    X = data(500)
    with testing.frozen(2):
        model = GaussianMixture(3, feature_ranges=RANGES, epsilon=5).fit(data())
    chance = model.predict_proba(X)
    assert np.allclose(chance.sum(1), 1)
    assert (chance.argmax(1) == model.predict(X)).all()
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    plain = Plain(3)
    plain.weights_, plain.means_, plain.covariances_ = model.weights_, model.means_, model.covariances_
    plain.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(model.covariances_)).transpose(0, 2, 1)
    assert np.allclose(plain.score_samples(X), model.score_samples(X))
    assert np.allclose(plain.predict_proba(X), chance)
    rows, which = model.sample(20_000, random_state=3)
    assert (model.sample(5, random_state=1)[0] == model.sample(5, random_state=1)[0]).all()
    for k in range(3):
        # at least 2,000 rows each: six deviations of their mean and 20% of a covariance's size
        drawn, spread = rows[which == k], model.covariances_[k]
        assert np.abs(drawn.mean(0) - model.means_[k]).max() < 6 * math.sqrt(np.trace(spread) / len(drawn))
        assert np.allclose(np.cov(drawn.T), spread, atol=0.2 * np.trace(spread))


def test_results_are_in_the_original_units():
    X = data()
    ends = [(4000, 6000), (-1, 1)]
    with testing.no_noise():
        plain = GaussianMixture(3, feature_ranges=RANGES, epsilon=50).fit(X)
        scaled = GaussianMixture(3, feature_ranges=ends, epsilon=50).fit(X * [1000, 1] + [5000, 0])
    assert np.allclose(scaled.means_, plain.means_ * [1000, 1] + [5000, 0], rtol=1e-6, atol=1e-3)
    assert np.allclose(scaled.covariances_, plain.covariances_ * np.outer([1000, 1], [1000, 1]), rtol=1e-3)
    assert np.allclose(scaled.deviations_, plain.deviations_ * [1000, 1])


@pytest.mark.some_quick(9)
@pytest.mark.parametrize(
    "model",
    [
        GaussianMixture(3, feature_ranges=RANGES),
        GaussianMixture(1, feature_ranges=RANGES, delta=0),
        GaussianMixture(2, covariance_type="diag", feature_norm=2, epsilon=9),
    ],
)
@pytest.mark.parametrize("odd", [*ODD, "removed", "nobody"])
def test_neighbors_differ_in_numbers_only(model, odd):
    X = data(50)
    changed = {"removed": X[1:], "nobody": X[:0]}.get(odd)
    seen = []
    for rows in (X, np.r_[X, [ODD[odd]]] if changed is None else changed):
        with testing.frozen(6) as tape:
            fitted = clone(model).fit(rows)
        for covariance in fitted._matrices():
            assert np.linalg.eigvalsh(covariance).min() > 0
        assert np.isfinite(fitted.means_).all()
        seen.append((tape.calls, fitted.release_.guarantee, sorted(vars(fitted))))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("rule", ["basic", "best"])
def test_one_fit_is_one_charge_and_nothing_private_is_pickled(rule):
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-4), rule=rule)
    X = data(200)
    model = GaussianMixture(2, feature_ranges=RANGES, ledger=book)
    assert model.fit_predict(X).shape == (200,)
    assert len(book.entries()) == 1
    kept = pickle.dumps(model)
    assert not any(np.float64(x).tobytes() in kept for x in X.ravel())
    assert (pickle.loads(kept).predict(X) == model.predict(X)).all()
    assert 0.999e-6 < model.guarantee(n_features=2).delta_at(epsilon=1) <= 1e-6


def test_batches_are_the_same_release():
    X = data(600)
    with testing.frozen(1):
        whole = GaussianMixture(2, feature_ranges=RANGES).fit(X)
    with testing.frozen(1):
        parts = GaussianMixture(2, feature_ranges=RANGES).fit_batches(lambda: [X[:100], X[100:]])
    assert (whole.means_ == parts.means_).all()
    assert (whole.covariances_ == parts.covariances_).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", [GaussianMixture(2)])
def test_scikit_learns_own_checks(model):
    allowed = expected_failed_checks(model) | {"check_pipeline_consistency": "two fits differ: each draws fresh noise"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, expected_failed_checks=allowed, on_skip=None, on_fail=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) >= 30


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (GaussianMixture(0), "out-of-range"),
        (GaussianMixture(2, rounds=0), "out-of-range"),
        (GaussianMixture(2, covariance_type="tied"), "not-an-option"),
        (GaussianMixture(2, epsilon=-1), "out-of-range"),
        (GaussianMixture(2, feature_norm=math.nan), "not-a-number"),
        (GaussianMixture(2, feature_ranges=[(0, 1)]), "wrong-shape"),
    ],
)
def test_bad_arguments_have_a_remedy(model, code):
    with refuses(InvalidArgument, code):
        model.fit(data(10))


def test_a_bad_mechanism_has_a_remedy():
    m = MixtureSteps(components=1, features=2, rounds=1, scale=1)
    with refuses(InvalidArgument, "rows-not-rounded"):
        m._draw(RoundedRows(np.array([[1, 2]]), feature_norm=9))
    assert m.error(0.9).amount is None


def test_only_fitted_models_answer():
    for ask in ("predict", "predict_proba", "score_samples", "sample"):
        with pytest.raises(NotFittedError):
            getattr(GaussianMixture(2), ask)(*([] if ask == "sample" else [[[1.0, 2.0]]]))
