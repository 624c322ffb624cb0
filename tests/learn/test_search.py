"""Private search: charged once, for little more than one try, whatever it tries."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import discreet as dp
from discreet import testing
from discreet.learn import PrivateSearch
from discreet.mechanisms.learning.descent.tuned import TunedDescent
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries, PoissonTries
from discreet.rows.gradients.examples import Examples
from discreet.rows.gradients.losses import Logistic

from ..refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 2, "delta": 1e-6}


def data(count: int = 3000, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 3)) / 2
    return rows, (rows @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(count) > 0).astype(int)


def book() -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-3))


@pytest.mark.slow
def test_one_charge_for_all_tries_and_a_good_model() -> None:
    ledger, (rows, labels) = book(), data()
    model = dp.learn.LogisticRegression(classes=[0, 1], n_samples=3000)
    search = PrivateSearch(model, {"learning_rate": [0.001, 2.0], "steps": [20, 60]}, ledger=ledger, tries=12, **GOAL)
    search.fit(rows, labels)
    assert len(ledger.entries()) == 1
    assert search.release_.guarantee.epsilon_at(delta=1e-6) <= 2
    assert search.score(rows, labels) > 0.8
    assert search.predict(rows).shape == (3000,)
    assert set(search.best_params_) == {"learning_rate", "steps"}
    assert search.best_score_ == pytest.approx(search.score(rows, labels), abs=0.1)
    assert "noisy score" in search.best_estimator_.release_.error(0.95).reason
    assert clone(search).ledger is ledger
    assert pickle.loads(pickle.dumps(search)).predict(rows[:5]).tolist() == search.predict(rows[:5]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "goal"),
    [
        pytest.param(dp.learn.HuberRegressor(n_samples=500), lambda rows: rows[:, 0], marks=pytest.mark.slow),
        pytest.param(
            dp.learn.PoissonRegressor(target_bound=9, n_samples=500),
            lambda rows: np.round(np.exp(rows[:, 0])),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            dp.learn.LinearSVC(classes=[0, 1]), lambda rows: (rows[:, 0] > 0).astype(int), marks=pytest.mark.slow
        ),
        (dp.learn.LogisticRegression(classes=[0, 1, 2]), lambda rows: np.digitize(rows[:, 0], [-0.3, 0.3])),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_linear_estimator_can_be_searched(model: Any, goal: Any) -> None:
    rows, _ = data(500)
    search = PrivateSearch(model, [{"steps": 5}, {"steps": 20}], tries=3, **GOAL).fit(rows, goal(rows))
    assert np.isfinite(search.best_score_)
    assert len(search.predict(rows)) == 500


@pytest.mark.slow
def test_a_try_costs_less_than_the_whole_and_the_promise_holds() -> None:
    model = dp.learn.LogisticRegression(classes=[0, 1], n_samples=100, feature_norm=1)
    search = PrivateSearch(model, [{"steps": 5}], tries=10, **GOAL)
    tuned = search._tuned(3, search._models())
    assert tuned.guarantee().epsilon_at(delta=1e-6) <= 2
    assert 0.2 < tuned.selection.run.epsilon_at(delta=1e-6) < 2
    assert search.guarantee(n_features=3).delta == 1e-6
    half = dp.Gaussian(stddev=float(tuned.scoring.stddev) / 8, step=1)
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        TunedDescent(candidates=tuned.candidates, selection=tuned.selection, scoring=half)


@pytest.mark.slow
def test_no_try_at_all_says_so() -> None:
    given = {"loss": Logistic(), "clip": 1.0, "dimension": 4, "steps": 2, "size": 10, "learning_rate": 1.0}
    tuned = TunedDescent.for_guarantee(
        dp.Approx(epsilon=1, delta=1e-6), candidates=[given], tries=PoissonTries(mean=0.001)
    )
    rows, labels = data(10)
    from discreet.mechanisms.learning.descent.tuned import Judged

    drawn = tuned._draw(Judged(Examples(rows, labels.astype(float)), lambda z, y: y))
    assert drawn["candidate"] in (None, 0)


def test_the_score_of_a_row_is_its_own() -> None:
    rows, labels = data(400)
    judge = _judge_of(dp.learn.LogisticRegression(classes=[0, 1]))
    weights = np.array([2.0, -1.0, 0.5, 0.0])
    whole = Examples(rows, labels.astype(float)).judged(weights, judge)
    alone = sum(Examples(rows[i : i + 1], labels[i : i + 1].astype(float)).judged(weights, judge) for i in range(400))
    assert whole == alone
    odd = Examples(np.vstack([rows, [[np.nan, 0, 0]]]), np.append(labels, 1.0).astype(float))
    assert odd.judged(weights, judge) == whole


def _judge_of(model: Any) -> Any:
    from discreet.learn.search import _judge

    return _judge(model)


@pytest.mark.slow
def test_neighbors_see_the_same_draws() -> None:
    rows, labels = data(60)
    seen = []
    for count in (60, 59):
        search = PrivateSearch(
            dp.learn.LogisticRegression(classes=[0, 1]), [{"steps": 2}, {"steps": 3}], tries=3, **GOAL
        )
        with testing.frozen(8) as tape:
            search.fit(rows[:count], labels[:count])
        seen.append(tape.calls)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"candidates": []}, "wrong-type"),
        ({"candidates": {"epsilon": [1, 2]}}, "learn-search"),
        ({"estimator": "none"}, "learn-search"),
        ({"delta": 0}, "needs-delta"),
        ({"tries": 1}, "out-of-range"),
    ],
)
def test_bad_searches_are_told(given: Any, code: str) -> None:
    kept = {"estimator": dp.learn.LogisticRegression(classes=[0, 1]), "candidates": [{"steps": 2}]} | GOAL | given
    with refuses(dp.InvalidArgument, code):
        PrivateSearch(**kept).fit(*data(20))


def test_the_mean_number_of_tries() -> None:
    assert NegativeBinomialTries.for_mean(10).mean == pytest.approx(10, rel=1e-6)


@pytest.mark.slow
def test_a_search_tells_nothing_of_its_tries(capsys: pytest.CaptureFixture[str]) -> None:
    rows, labels = data(50)
    inner = dp.learn.LogisticRegression(classes=[0, 1], verbose=1)
    PrivateSearch(inner, [{"steps": 2}], tries=4, **GOAL).fit(rows, labels)
    assert capsys.readouterr().err == ""
    with refuses(dp.InvalidArgument, "learn-search"):
        PrivateSearch(inner.set_params(sampling=0.1), [{"steps": 2}], **GOAL).fit(rows, labels)


@pytest.mark.slow
def test_a_search_from_a_table_knows_the_ranges() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-3))
    table = dp.table(pa.table({"x": np.linspace(0, 100, 500), "y": [0] * 250 + [1] * 250}), ledger=ledger)
    search = PrivateSearch(dp.learn.LogisticRegression(classes=[0, 1]), [{"steps": 30}], tries=2, epsilon=5, delta=1e-6)
    table.fit(search, features={"x": (0, 100)}, target="y")
    assert search.best_estimator_.feature_ranges == [(0.0, 100.0)]
    assert search.score(np.linspace(0, 100, 500)[:, None], np.array([0] * 250 + [1] * 250)) > 0.9
    assert len(ledger.entries()) == 1
