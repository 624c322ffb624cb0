"""What a review found, each once: cells that changed how others are read, numbers without end, bounds given wrongly."""

from __future__ import annotations

import datetime
import pickle
import warnings
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.learn.base import column_of, table_of
from discreet.learn.search import PrivateSearch
from discreet.rows.convex import WithinRadius
from discreet.rows.examples import Examples
from discreet.rows.losses import Huber, Logistic, Softmax

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def data(count: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, 2)) / 2
    return rows, (rows[:, 0] > 0).astype(int)


def moved(model: Any, first: Any, second: Any) -> float:
    """How far the sums of two tables are apart, in clips."""
    known = []
    for rows, labels in (first, second):
        (table, _), column = table_of(rows, 2), column_of(labels, "model")
        found = model._examples(table, column).sums(np.zeros(3), model._loss(), 1.0)
        known.append(found.astype(float) / 2**39)
    return float(np.linalg.norm(known[0] - known[1]))


@pytest.mark.parametrize("kind", [pa.table, pa.RecordBatch.from_pydict])
def test_names_of_arrow_tables_are_names(kind: Any) -> None:
    rows, labels = data()
    table = kind({"age": rows[:, 0] + 41.5, "cost": rows[:, 1]})
    fitted = dp.learn.LogisticRegression(classes=[0, 1], steps=3, **GOAL).fit(table, labels)
    assert list(fitted.feature_names_in_) == ["age", "cost"]
    assert b"41." not in pickle.dumps(fitted.feature_names_in_)
    onehot = dp.learn.OneHot(categories=[["a", "b"]]).fit(kind({"x": ["a", "b", "a"]}))
    assert all("[" not in str(name) for name in onehot.get_feature_names_out())


@pytest.mark.parametrize("odd", ["?", None, 10**400, 2.5, b"x", [1], Decimal(1)])
def test_one_label_of_a_list_changes_no_other(odd: Any) -> None:
    rows, labels = data()
    model = dp.learn.LogisticRegression(classes=[0, 1], steps=3, **GOAL)
    more = (np.vstack([rows, [[0.1, 0.2]]]).tolist(), [*labels.tolist(), odd])
    assert moved(model, (rows.tolist(), labels.tolist()), more) <= 1.0001
    big = dp.learn.LogisticRegression(classes=[2**53, 2**53 + 1], steps=3, **GOAL)
    named = [2**53 + int(label) for label in labels]
    assert moved(big, (rows, named), (more[0], [*named, 0.5])) <= 1.0001
    numbers = dp.learn.HuberRegressor(steps=3, **GOAL)
    assert moved(numbers, (rows.tolist(), labels.tolist()), more) <= 1.0001
    cells = rows.tolist()
    cells[0][0] = odd
    assert moved(model, (rows.tolist(), labels.tolist()), (cells, labels.tolist())) <= 2.0001
    dp.learn.LinearRegression(feature_ranges=[(-1, 1)] * 2, **GOAL).fit(*more)


def opened(columns: Any, **kept: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-3), **kept)
    return dp.table(pa.table(columns), ledger=ledger), ledger


def test_one_missing_label_of_a_table_changes_no_other() -> None:
    seen: list[Any] = []

    class Watched(dp.learn.LogisticRegression):  # type: ignore[misc, name-defined]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(self._numbered(y))
            return super().fit(X, y)

    Watched.__init__ = dp.learn.LogisticRegression.__init__
    for labels, classes in (([2**53, 2**53 + 1] * 5, [2**53, 2**53 + 1]), (["a\0", "b"] * 5, ["a", "b"])):
        for cells in (labels, [*labels[:-1], None]):
            table, _ = opened({"x": np.arange(10.0), "y": cells})
            table.fit(Watched(classes=classes, steps=2, **GOAL), features=["x"], target="y")
        np.testing.assert_array_equal(seen[-1][:-1], seen[-2][:-1])


@pytest.mark.parametrize("rule", ["basic", "advanced", "best"])
def test_every_rule_takes_the_fit_of_a_table(rule: str) -> None:
    table, ledger = opened({"x": np.arange(10.0), "y": [0, 1] * 5}, rule=rule)
    table.fit(dp.learn.LogisticRegression(classes=[0, 1], steps=2, **GOAL), features=["x"], target="y")
    assert len(ledger.entries()) == 1


def test_days_beyond_the_calendar_and_nested_columns_stop_nothing() -> None:
    days = pa.array([10, 20, 10**7], pa.int32()).cast(pa.date32())
    table, ledger = opened({"day": days, "y": [0, 1, 1], "many": [[1], [2, 3], None]})
    choices = [datetime.date(1970, 1, 11), datetime.date(1970, 1, 21)]
    model = dp.learn.LogisticRegression(classes=[0, 1], steps=2, **GOAL)
    table.fit(model, features={"day": choices}, target="y")
    assert len(ledger.entries()) == 1
    for given, target in (({"many": [1]}, "y"), (["y"], "many"), (["y"], "day")):
        with pytest.raises(dp.InvalidArgument):
            table.fit(model, features=given, target=target)
    assert len(ledger.entries()) == 1


def test_missing_labels_of_pandas_stop_nothing() -> None:
    import pandas as pd

    rows, labels = data(20)
    for column in (
        pd.Series([*map(str, labels[:-1]), None], dtype="string"),
        pd.Series([*labels[:-1].astype(bool), None], dtype="boolean"),
    ):
        dp.learn.LogisticRegression(classes=["0", "1"], steps=2, **GOAL).fit(rows, column)


@pytest.mark.parametrize("loss", [Huber(1), Logistic(), Softmax(2)], ids=str)
@pytest.mark.parametrize("size", [1e100, 2.0**399, 1e200, 1e306])
def test_huge_weights_leave_sums_exact(loss: Any, size: float) -> None:
    rows, labels = data(50)
    weights = np.full((2, 3) if isinstance(loss, Softmax) else 3, size) * np.array([1.0, -1.0, 1.0])
    more = np.vstack([rows, [[1e38, 1e-38]]])
    known = Examples(rows, labels.astype(float)).sums(weights, loss, 1)
    found = Examples(more, np.append(labels, 1.0).astype(float)).sums(weights, loss, 1)
    assert sum(int(x) ** 2 for x in (found - known).ravel()) <= 4**40


def test_wild_rates_end_in_finite_models() -> None:
    rows, labels = data(100)
    for radius in (None, dp.learn.Box(-1e308, 1e308), 5.0):
        model = dp.learn.HuberRegressor(radius=radius, learning_rate=1e306, steps=4, n_samples=100, **GOAL)
        assert np.isfinite(model.fit(rows, labels).coef_).all()
    assert np.linalg.norm(WithinRadius(2).project(np.full(5, 1e300))) == pytest.approx(2)


@pytest.mark.parametrize(
    "wrong", [{"feature_norm": 1e-305}, {"feature_norm": 1e200}, {"clip": 1e-300}, {"clip": 1e150}]
)
def test_numbers_without_measure_are_refused_before_the_charge(wrong: Any) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=20, delta=1e-3))
    with pytest.raises(dp.InvalidArgument, match="1e100"):
        dp.learn.LogisticRegression(classes=[0, 1], ledger=ledger, **GOAL, **wrong).fit(*data(20))
    assert not ledger.entries()


def test_no_cell_warns() -> None:
    rows, labels = data(20)
    cells = rows.astype(object)
    cells[0, 0], cells[1, 1], cells[2, 0] = 1e308, np.complex128(1j), Decimal("0.5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=[(-1, 1), (0, 1)], steps=2, **GOAL).fit(
            cells, labels
        )


def test_decimals_are_numbers() -> None:
    rows, labels = data(200)
    exact = np.array([[Decimal(repr(float(x))) for x in row] for row in rows], dtype=object)
    assert moved(dp.learn.LogisticRegression(classes=[0, 1]), (rows, labels), (exact, labels)) == 0


def test_a_search_tells_nothing_of_its_tries(capsys: pytest.CaptureFixture[str]) -> None:
    rows, labels = data(50)
    inner = dp.learn.LogisticRegression(classes=[0, 1], verbose=1)
    PrivateSearch(inner, [{"steps": 2}], tries=4, **GOAL).fit(rows, labels)
    assert capsys.readouterr().err == ""
    with pytest.raises(dp.InvalidArgument, match="all rows"):
        PrivateSearch(inner.set_params(sampling=0.1), [{"steps": 2}], **GOAL).fit(rows, labels)


def test_a_search_from_a_table_knows_the_ranges() -> None:
    table, ledger = opened({"x": np.linspace(0, 100, 500), "y": [0] * 250 + [1] * 250})
    search = PrivateSearch(dp.learn.LogisticRegression(classes=[0, 1]), [{"steps": 30}], tries=2, epsilon=5, delta=1e-6)
    table.fit(search, features={"x": (0, 100)}, target="y")
    assert search.best_estimator_.feature_ranges == [(0.0, 100.0)]
    assert search.score(np.linspace(0, 100, 500)[:, None], np.array([0] * 250 + [1] * 250)) > 0.9
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "kept", [{"sampling": 0.1}, {"classes": [0, 1, 2], "radius": 3, "clip": 0.1}, {"average": "last"}]
)
def test_momentum_does_not_bring_a_bound_where_none_is_known(kept: Any) -> None:
    rows, labels = data(200)
    model = dp.learn.LogisticRegression(**({"classes": [0, 1], "n_samples": 200, "steps": 20} | GOAL | kept))
    assert model.fit(rows, labels).release_.error(0.95).amount is None


def test_certificates_of_clipped_losses_hold() -> None:
    """With a clip that binds, the excess of the CLIPPED loss is below the bound: 30 runs, at most 10 misses."""
    rows, labels = data(400)
    model = dp.learn.LogisticRegression(
        classes=[0, 1], clip=0.2, radius=3, n_samples=400, epsilon=3, delta=1e-6, steps=60
    )
    descent = model._descent(2)
    examples = Examples(rows, labels.astype(float))
    short = np.column_stack([rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None], np.ones(400)])
    cut = 0.2 / np.linalg.norm(short, axis=1)

    def clipped_loss(weights: Any) -> float:
        """The integral of the cut slope from 0 to the score, and the loss at 0."""
        score, total = short @ weights, np.zeros(400)
        for share in np.linspace(0, 1, 201)[1:]:
            slope = 1 / (1 + np.exp(-score * (share - 1 / 400))) - labels
            total += np.clip(slope, -cut, cut) * score / 200
        return float(total.mean())

    with testing.no_noise():
        long = replace(descent, steps=3000, momentum=0, learning_rate=2.0, average="last")
        best = clipped_loss(long._draw(examples)["weights"])
    misses = 0
    for _ in range(30):
        drawn = descent._draw(examples)
        misses += clipped_loss(drawn["weights"]) - best > float(descent.gap_error(0.95, drawn["gap"]))
    assert misses <= 10


def test_objective_perturbation_without_an_intercept_has_an_error() -> None:
    rows, labels = data(200)
    model = dp.learn.LogisticRegression(classes=[0, 1], solver="objective", fit_intercept=False, n_samples=200, **GOAL)
    assert float(model.fit(rows, labels).release_.error(0.95)) > 0
