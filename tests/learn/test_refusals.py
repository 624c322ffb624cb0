"""What is wrong with a model, a density or what they are made from, said before anything is learned."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import learn
from discreet.errors import DiscreetError, IncompatibleGuarantee, InvalidArgument
from discreet.functions.density import density_of
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.conversions import renyi_of_response
from discreet.guarantees.rules.best_of import CLOSED, BestOf
from discreet.guarantees.unit import Unit
from discreet.learn import base
from discreet.learn.plots import plot_accuracy
from discreet.queries.workload import Workload
from discreet.rows.convex import Affine
from discreet.rows.features import Axis
from discreet.rows.gradients.losses import Pinball
from discreet.rows.rounding import RoundedBatches

from ..refusing import refuses

pytest.importorskip("sklearn", reason='needs pip install "discreet[learn]"')

Asked = Callable[[], Any]
X, Y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
ONE = dp.Approx(epsilon=1, delta=1e-6)
BEST = BestOf(limit=ONE)


def refused(asked: Asked, code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


def logistic(**changed: Any) -> Any:
    return learn.LogisticRegression(**{"epsilon": 1, "delta": 1e-6, "classes": [0, 1], "n_samples": 4} | changed)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: logistic().fit(np.zeros((4, 0)), Y), "wrong-shape"),
        (lambda: logistic(solver="magic").fit(X, Y), "not-an-option"),
        (lambda: logistic(solver="objective", sampling=0.1).fit(X, Y), "learn-solver"),
        (lambda: learn.PoissonRegressor(epsilon=1, delta=1e-6).fit(X, Y), "learn-not-declared"),
        (lambda: learn.PrivateSearch(logistic(), {"clip": [1]}).fit(X, Y[:3]), "unequal-lengths"),
        (lambda: plot_accuracy({1: ("good", 0)}), "not-a-number"),
        (lambda: plot_accuracy({1: (0.5, "small")}), "not-a-number"),
        (lambda: plot_accuracy({1: (0.5, -1)}), "out-of-range"),
        (lambda: Pinball(quantile=1), "out-of-range"),
        (lambda: Affine([[1, 0]], [1, 2]), "wrong-shape"),
        (lambda: Axis(low=0, high=1, bandwidth=1, widest=0.5), "out-of-range"),
        (lambda: Workload(domain={"age": 3}, sets=(("age",),)), "wrong-type"),
    ],
)
def test_a_model_that_cannot_be_fitted(asked: Asked, code: str) -> None:
    refused(asked, code)


def test_names_of_columns_are_as_many_as_there_are() -> None:
    scaler = learn.StandardScaler(epsilon=1, delta=1e-6, feature_ranges=[(0, 1), (0, 1)]).fit(X)
    refused(lambda: scaler.get_feature_names_out(["a"]), "wrong-shape")


def test_rows_of_spark_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "is_spark_dataframe", lambda data: True)
    refused(lambda: base.table_of(SimpleNamespace()), "data-in-spark")


def test_noise_that_does_not_keep_its_promise_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = dp.Approx(epsilon=10, delta=1e-4)
    basic = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit, rule="basic")
    release, weak = base.Private._release, dp.Gaussian(stddev=1).guarantee(1)
    monkeypatch.setattr(base.Private, "_release", lambda self, read, m, _, *asked: release(self, read, m, weak, *asked))
    before = basic.entries()
    refused(lambda: logistic(ledger=basic).fit(X, Y), "guarantee-not-kept", IncompatibleGuarantee)
    assert basic.entries() == before


def test_every_batch_has_the_same_columns() -> None:
    rows = RoundedBatches(lambda work: work([(np.zeros((2, 3)), None)]), columns=2, feature_norm=1)
    refused(lambda: rows.exact_sums(lambda block: []), "wrong-shape")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: Accuracy(amount=1, confidence=0.95, of="luck"), "not-an-option"),
        (lambda: renyi_of_response(1.0, 1.0), "out-of-range"),
        (lambda: Unit(""), "wrong-type"),
        (lambda: dp.person(""), "wrong-type"),
    ],
)
def test_a_promise_in_words_that_have_no_meaning(asked: Asked, code: str) -> None:
    refused(asked, code)


def test_costs_that_nothing_can_add_up() -> None:
    spent = (0,) + (CLOSED,) * len(BEST.boxes)
    refused(lambda: BEST.total(spent), "incompatible-guarantee", IncompatibleGuarantee)


# --- densities --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane() -> Any:
    rows = np.linspace(0, 1, 40).reshape(20, 2)
    return density_of(rows, between=[(0, 1), (0, 1)], bandwidth=[0.5, 0.5], guarantee=ONE)


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda d: d([1, 2, 3]), "wrong-shape"),
        (lambda d: d(1, 2, 3), "wrong-shape"),
        (lambda d: d.smooth(1), "one-column-only"),
        (lambda d: d.smooth_by_rule(), "one-column-only"),
        (lambda d: d.projected, "one-column-only"),
        (lambda d: d.integrate(0, 1), "one-column-only"),
        (lambda d: d.cdf(1), "one-column-only"),
    ],
)
def test_what_a_density_of_two_columns_does_not_say(plane: Any, ask: Callable[[Any], Any], code: str) -> None:
    refused(lambda: ask(plane), code)


def test_a_picture_shows_two_columns_at_most() -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    solid = density_of(np.zeros((9, 3)), between=[(0, 1)] * 3, bandwidth=[1] * 3, guarantee=ONE)
    refused(solid.plot, "one-column-only")


def test_shares_lie_between_0_and_1() -> None:
    line = density_of(np.zeros(9), between=(0, 1), bandwidth=0.5, guarantee=ONE)
    refused(lambda: line.quantile(2), "out-of-range")
