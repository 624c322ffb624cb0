"""What is wrong with a model, a density or what they are made from, said before anything is learned."""

from __future__ import annotations

import re
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
from discreet.rows.losses import Pinball
from discreet.rows.rounding import RoundedBatches

pytest.importorskip("sklearn", reason='needs pip install "discreet[learn]"')

Asked = Callable[[], Any]
X, Y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
ONE = dp.Approx(epsilon=1, delta=1e-6)
BEST = BestOf(limit=ONE)


def refused(asked: Asked, said: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


def logistic(**changed: Any) -> Any:
    return learn.LogisticRegression(**{"epsilon": 1, "delta": 1e-6, "classes": [0, 1], "n_samples": 4} | changed)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: logistic().fit(np.zeros((4, 0)), Y), "0 feature(s) (shape=(4, 0)) while a minimum of 1 is required"),
        (lambda: logistic(solver="magic").fit(X, Y), 'solver must be "descent" or "objective"'),
        (lambda: logistic(solver="objective", sampling=0.1).fit(X, Y), 'solver="objective" reads all rows'),
        (lambda: learn.PoissonRegressor(epsilon=1, delta=1e-6).fit(X, Y), "target_bound, the largest count, must be"),
        (lambda: learn.PrivateSearch(logistic(), {"clip": [1]}).fit(X, Y[:3]), "X and y must have the same number"),
        (lambda: plot_accuracy({1: ("good", 0)}), "A mean must be a finite number"),
        (lambda: plot_accuracy({1: (0.5, "small")}), "A standard deviation must be a finite number"),
        (lambda: plot_accuracy({1: (0.5, -1)}), "A standard deviation cannot be negative"),
        (lambda: Pinball(quantile=1), "quantile must lie strictly between 0 and 1"),
        (lambda: Affine([[1, 0]], [1, 2]), "Affine needs one finite value for each row of its matrix"),
        (lambda: Axis(low=0, high=1, bandwidth=1, widest=0.5), "widest must be at least the bandwidth"),
        (lambda: Workload(domain={"age": 3}, sets=(("age",),)), "domain must be a Domain of public columns"),
    ],
)
def test_a_model_that_cannot_be_fitted(asked: Asked, said: str) -> None:
    refused(asked, said)


def test_names_of_columns_are_as_many_as_there_are() -> None:
    scaler = learn.StandardScaler(epsilon=1, delta=1e-6, feature_ranges=[(0, 1), (0, 1)]).fit(X)
    refused(lambda: scaler.get_feature_names_out(["a"]), "input_features must be 2 names")


def test_rows_of_spark_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "is_frame", lambda data: True)
    refused(lambda: base.table_of(SimpleNamespace()), "A DataFrame of Spark stays where it is")


def test_noise_that_does_not_keep_its_promise_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = dp.Approx(epsilon=10, delta=1e-4)
    basic = dp.Ledger.open(":memory:", protects=dp.row(), limit=limit, rule="basic")
    release, weak = base.Private._release, dp.Gaussian(stddev=1).guarantee(1)
    monkeypatch.setattr(base.Private, "_release", lambda self, read, m, _, asked: release(self, read, m, weak, asked))
    before = basic.entries()
    refused(lambda: logistic(ledger=basic).fit(X, Y), "This is a bug: please report it", IncompatibleGuarantee)
    assert basic.entries() == before


def test_every_batch_has_the_same_columns() -> None:
    rows = RoundedBatches(lambda work: work([(np.zeros((2, 3)), None)]), columns=2, feature_norm=1)
    refused(lambda: rows.exact_sums(lambda block: []), "Every batch must have the same 2 features")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: Accuracy(amount=1, confidence=0.95, of="luck"), "of must be one of value"),
        (lambda: renyi_of_response(1.0, 1.0), "order must be above 1"),
        (lambda: Unit(""), "person() needs the name of the column"),
        (lambda: dp.person(""), "person() needs the name of the column"),
    ],
)
def test_a_promise_in_words_that_have_no_meaning(asked: Asked, said: str) -> None:
    refused(asked, said)


def test_costs_that_nothing_can_add_up() -> None:
    spent = (0,) + (CLOSED,) * len(BEST.boxes)
    refused(lambda: BEST.total(spent), "These releases have no finite cost in common", IncompatibleGuarantee)


# --- densities --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane() -> Any:
    rows = np.linspace(0, 1, 40).reshape(20, 2)
    return density_of(rows, between=[(0, 1), (0, 1)], bandwidth=[0.5, 0.5], guarantee=ONE)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda d: d([1, 2, 3]), "A point has 2 coordinates. Give one for each column"),
        (lambda d: d(1, 2, 3), "Give 2 coordinates, or arrays of them"),
        (lambda d: d.smooth(1), "smooth is for one column. Release each column alone"),
        (lambda d: d.smooth_by_rule(), "smooth_by_rule is for one column"),
        (lambda d: d.projected, "projected is for one column"),
        (lambda d: d.integrate(0, 1), "integrate is for one column"),
        (lambda d: d.cdf(1), "cdf is for one column"),
    ],
)
def test_what_a_density_of_two_columns_does_not_say(plane: Any, ask: Callable[[Any], Any], said: str) -> None:
    refused(lambda: ask(plane), said)


def test_a_picture_shows_two_columns_at_most() -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    solid = density_of(np.zeros((9, 3)), between=[(0, 1)] * 3, bandwidth=[1] * 3, guarantee=ONE)
    refused(solid.plot, "A picture shows one column or two")


def test_shares_lie_between_0_and_1() -> None:
    line = density_of(np.zeros(9), between=(0, 1), bandwidth=0.5, guarantee=ONE)
    refused(lambda: line.quantile(2), "shares must lie between 0 and 1")
