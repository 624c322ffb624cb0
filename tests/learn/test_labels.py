"""One label or cell changes its own row only, whatever it is and whatever holds it."""

from __future__ import annotations

import datetime
import pickle
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.learn.base import column_of, table_of

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


def test_no_cell_warns() -> None:
    rows, labels = data(20)
    cells = rows.astype(object)
    cells[0, 0], cells[1, 1], cells[2, 0] = 1e308, np.complex128(1j), Decimal("0.5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=[(-1, 1), (0, 1)], steps=2, **GOAL).fit(
            cells.tolist(), labels
        )


def test_decimals_are_numbers() -> None:
    rows, labels = data(200)
    exact = np.array([[Decimal(repr(float(x))) for x in row] for row in rows], dtype=object).tolist()
    assert moved(dp.learn.LogisticRegression(classes=[0, 1]), (rows, labels), (exact, labels)) == 0
