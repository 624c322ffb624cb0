"""One odd record changes its own part only: whatever it is, and wherever it stands, all other rows are learned from
as if it were not there.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

import discreet as dp
from discreet import rows as entrance
from discreet import testing
from discreet.learn import base, streams
from discreet.rows.gradients import stream as streaming
from discreet.rows.rounding import RoundedRows
from discreet.tables.fit import Feature

from ..odd_objects import Hides, Raises
from ..refusing import refuses

GOAL: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
RANGES = [(-1, 1), (-1, 1)]
X = [[-0.5, 0.25], [0.5, -0.25], [0.75, 0.5], [-0.25, 0.0]]
Y = [0, 1, 1, 0]


ODD = [
    None, 0, math.nan, math.inf, -0.0, 10**30, 2**53 + 1, "text", b"bytes", True, [], [1], [1, 2, 3], (0.5,), {}, {1},
    Decimal("sNaN"), Fraction(10**400, 3), datetime.datetime(2020, 1, 1), np.float32(2), np.array(3.0),
    np.zeros((2, 2)), Raises(2), Hides(),
]  # fmt: skip


def models() -> list[Any]:
    steps: dict[str, Any] = {"steps": 2, **GOAL}
    return [
        dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=RANGES, **steps),
        dp.learn.LogisticRegression(classes=[0, 1, 2], feature_ranges=RANGES, **steps),
        dp.learn.LinearSVC(classes=[0, 1], feature_ranges=RANGES, solver="objective", **GOAL),
        dp.learn.HuberRegressor(feature_ranges=RANGES, target_bound=1, **steps),
        dp.learn.LinearRegression(feature_ranges=RANGES, target_bound=(-1, 1), **GOAL),
        dp.learn.GaussianNB(feature_ranges=RANGES, **GOAL),
        dp.learn.KMeans(2, feature_ranges=RANGES, **GOAL),
        dp.learn.PCA(feature_ranges=RANGES, **GOAL),
        dp.learn.StandardScaler(feature_ranges=RANGES, **GOAL),
        dp.learn.PrivateSearch(
            dp.learn.LogisticRegression(classes=[0, 1], feature_ranges=RANGES, steps=2), {"clip": [0.5, 1]}, **GOAL
        ),
    ]


MODELS = models()


class _Seen(Exception):
    pass


def learned(model: Any, *given: Any, batches: bool = False) -> Any:
    """The rows, each with its target, that a fit takes through the door."""
    found: list[Any] = []

    def look(self: Any, read: Callable[[], Any], *_: Any) -> Any:
        rows = read()
        rows = getattr(rows, "examples", rows)
        if isinstance(rows, streaming.Stream):
            parts = [np.column_stack([part, goal]) for part, goal in rows._batches()]
            found.append(np.concatenate(parts))
        elif batches:
            sums = rows.exact_sums(lambda block: [block[0].sum(0), np.nan_to_num(block[1]).sum()])
            found.append(np.array([*sums[0], sums[1]], dtype=float))
        elif isinstance(rows, RoundedRows):
            found.append(np.concatenate([np.column_stack(block) for block in rows.blocks()]))
        else:
            found.append(np.column_stack(rows if isinstance(rows, tuple) else rows.plain()))
        raise _Seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base.Private, "_release", look)
        patch.setattr(dp.learn.PrivateSearch, "_tuned", lambda *_: SimpleNamespace(guarantee=lambda: None))
        pairs = [given if len(given) > 1 else given[0]]
        fit = (lambda: model.fit_batches(lambda: pairs, features=2)) if batches else (lambda: model.fit(*given))
        with pytest.raises(_Seen):
            fit()
    return found[0]


def supervised(model: Any) -> bool:
    return not isinstance(model, dp.learn.KMeans | dp.learn.PCA | dp.learn.StandardScaler)


def name_of(model: Any) -> str:
    return type(model).__name__


def others_stay(model: Any, labels: Any, odd: list[Any], place: int, *, label: bool) -> None:
    """With odd records at this place, the others are learned from as they are without them."""
    many = len(odd)
    new_rows, new = ([[0.1, 0.2]] * many, odd) if label else (odd, [labels[0]] * many)
    rows, goals = [*X[:place], *new_rows, *X[place:]], [*labels[:place], *new, *labels[place:]]
    known = learned(model, *((X, labels) if supervised(model) else (X,)))
    found = learned(model, *((rows, goals) if supervised(model) else (rows,)))
    assert found.dtype == known.dtype
    assert found.shape == (len(known) + many, *known.shape[1:])
    np.testing.assert_array_equal(np.delete(found, slice(place, place + many), axis=0), known)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("model", [one for one in MODELS if supervised(one)], ids=name_of)
def test_one_label_changes_its_own_part_only(model: Any) -> None:
    """Also among labels that are rows of one cell each."""
    for labels in (Y, [[one] for one in Y]):
        for place in (0, 2, 4):
            others_stay(model, labels, [*ODD, [None], ["x"]], place, label=True)
        for odd in (None, 0, "text"):
            others_stay(model, labels, [odd], 4, label=True)
        assert learned(model, np.array(X), np.array(Y)).tolist() == learned(model, X, labels).tolist()


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_one_row_changes_its_own_part_only(model: Any) -> None:
    for place in (0, 2, 4):
        others_stay(model, Y, [*ODD, *([0.5, one] for one in ODD), [0.5], [0.1, 0.2, 0.3]], place, label=False)
    for odd in (None, [], [0.1, 0.2, 0.3]):
        others_stay(model, Y, [odd], 4, label=False)


@pytest.mark.parametrize("model", [one for one in MODELS if hasattr(one, "fit_batches")], ids=name_of)
def test_one_record_of_a_batch_changes_its_own_part_only(model: Any) -> None:
    labels = [[one] for one in Y]
    given = (X, labels) if supervised(model) else (X,)
    model = base.BaseEstimator.__sklearn_clone__(model)
    if getattr(model, "solver", None) == "objective":
        model.set_params(solver="descent", steps=2)
    known = learned(model, *given, batches=True)
    rows = [None, "text", [], [1, 2, 3], [0.5, None], Hides(), [math.nan, 0.5], [math.nan, 1]]
    goals = [*labels, *labels[:2], None, 0]
    for more in (([*X, *rows], [*labels, *goals]), ([*rows, *X], [*goals, *labels])):
        found = learned(model, *(more if supervised(model) else more[:1]), batches=True)
        if found.ndim == 2:
            found = found[len(rows) :] if more[0][0] is None else found[: len(X)]
        np.testing.assert_array_equal(found, known)  # of moments, sums: those rows take part with zeros


def test_the_counts_of_classes_move_by_one() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (500, 2))
    labels = [[int(one)] for one in rows[:, 0] > 0]
    counts = []
    with testing.no_noise():
        for odd in (None, 0, "text", []):
            model = dp.learn.GaussianNB(feature_ranges=RANGES, **GOAL)
            counts.append(model.fit(np.vstack([rows, rows[:1]]), [*labels, odd]).class_count_)
        known = dp.learn.GaussianNB(feature_ranges=RANGES, **GOAL).fit(rows, labels).class_count_
    assert known.sum() == 500
    assert all(np.abs(one - known).sum() <= 1 for one in counts)


# --- what is declared, and what a container says of itself --------------------------------------------------------


@pytest.mark.parametrize("odd", [[0.5, 0.5], None, [], [1], "x"])
def test_a_list_of_rows_needs_a_declared_width_whatever_is_in_it(odd: Any) -> None:
    """No row decides how wide a row is: the list is refused with the odd record and without it."""
    for model in (dp.learn.LogisticRegression(classes=[0, 1], **GOAL), dp.learn.PCA(**GOAL)):
        with refuses(dp.InvalidArgument, "width-not-declared"):
            model.fit([*X, odd], [*Y, 0])


@pytest.mark.parametrize("odd", [None, "x", 0.5, pd.NA, [1, 0]])
def test_labels_are_matched_to_the_declared_classes_cell_by_cell(odd: Any) -> None:
    for classes, cells in (
        ([0, 1], [0, 1, 1]),
        (["a", "b"], ["a", "b", "b"]),
        ([2**53, 2**53 + 1], [2**53, 2**53 + 1]),
    ):
        for column in ([*cells, odd], np.array([*cells, None], dtype=object), pd.Series([*cells, odd], dtype=object)):
            known = base.places_of(base.column_of(column, "y"), classes)
            assert known[: len(cells)].tolist() == [classes.index(cell) for cell in cells]
            assert math.isnan(known[-1])


def test_a_class_of_another_kind_matches_nothing_in_a_typed_column() -> None:
    for column in (
        np.array([1, 0]),
        np.array([1.0, 0.0]),
        np.array(["1", "0"]),
        np.array([b"1", b"0"]),
        np.array([True]),
    ):
        known = base.places_of(column, [(0, 1), Decimal("7"), 1 if column.dtype.kind in "US" else "1"])
        assert np.isnan(known).all()
        assert known.shape == column.shape
    assert base.places_of(np.array(["1", "0"]), ["0", "1"]).tolist() == [1, 0]
    assert base.places_of(np.array([b"1", b"0"]), [b"0", b"1"]).tolist() == [1, 0]
    assert base.places_of(np.array([True, False]), [0, 1]).tolist() == [1, 0]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, np.int64, np.uint8, bool])
def test_typed_arrays_are_read_where_they_lie(kind: Any) -> None:
    rows = np.eye(3).astype(kind)
    assert np.shares_memory(base.table_of(rows)[0], rows)
    assert np.shares_memory(base.column_of(rows[0], "y"), rows)


def test_only_an_array_or_a_frame_of_one_column_is_flattened_with_a_warning() -> None:
    labels = np.array(Y)
    for column in (labels[:, None], pd.DataFrame({"y": Y}), pl.DataFrame({"y": Y}), pa.table({"y": Y})):
        with pytest.warns(DataConversionWarning):
            assert base.column_of(column, "y").tolist() == Y
    with warnings.catch_warnings(action="error"):
        for column in ([[one] for one in Y], Y, labels, pa.array(Y), pl.Series(Y), pd.Series(Y)):
            assert base.column_of(column, "y").tolist() == Y
    for wrong in (np.zeros((2, 2)), pd.DataFrame({"a": Y, "b": Y}), np.zeros((2, 1, 1)), np.array(0.0)):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            base.column_of(wrong, "y")


def test_what_is_masked_is_missing() -> None:
    hidden = np.ma.masked_array(np.ones((3, 2)), mask=[[0, 0], [1, 0], [0, 0]])
    table, _ = base.table_of(hidden)
    assert np.isnan(table).tolist() == [[False, False], [True, False], [False, False]]
    labels = base.column_of(np.ma.masked_array([0, 1, 1], mask=[0, 1, 0]), "y")
    assert base.places_of(labels, [0, 1]).tolist()[::2] == [0, 1]


@pytest.mark.parametrize("make", [pa.array, pl.Series, lambda cells: pd.Series(cells, dtype="Int64")])
def test_gaps_decide_nothing_about_a_column_that_stands_for_a_table(make: Any) -> None:
    """Whole numbers with a gap are objects elsewhere: here the refusal must be the same with and without it."""
    large, said = [2**60 + 1, 2**60 + 3], []
    for column in (make([*large, 3]), make([*large, None])):
        wide, (whole, missing) = entrance.table(column, 1), entrance.wholes(column)
        assert (whole[:2].tolist(), missing[:2].tolist()) == (large, [False, False])
        said.append([wide.dtype, wide[:2].tolist(), entrance.doubles(column)[:2].tolist()])
        for width in (None, 2):
            try:
                said[-1].append(str(entrance.table(column, width)))
            except dp.InvalidArgument as error:
                said[-1].append(str(error))
    assert said[0] == said[1]


def test_batches_of_several_types_are_not_joined() -> None:
    """How many rows come before must not decide in which type a row is added up."""
    given = [(np.ones((2, 1), kind), np.zeros(2)) for kind in (np.float32, np.float32, np.int64, np.float64)]
    found = [rows.dtype for rows, _ in streaming._in_blocks(given)]
    assert found == [np.float32, np.int64, np.float64]


# --- predictions and transformers ---------------------------------------------------------------------------------


def test_predictions_and_transformers_read_rows_alike() -> None:
    labels = np.array(Y)
    for model in (*MODELS[:9], dp.learn.RangeScaler(feature_ranges=RANGES)):
        if getattr(model, "solver", "descent") == "objective":
            continue
        with testing.frozen(0):
            fitted = base.BaseEstimator.__sklearn_clone__(model).fit(np.array(X), labels)
        ask = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        for odd in [None, [], [1.0], [1.0, 2.0, 3.0], "x", Hides(), [None, 0.5]]:
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                found = ask([X[0], odd, X[1]])
            np.testing.assert_array_equal(found[[0, 2]], ask(np.array(X[:2])))
            if isinstance(fitted, dp.learn.PCA | dp.learn.StandardScaler | dp.learn.RangeScaler):
                back = fitted.inverse_transform([X[0], odd, X[1]])
                np.testing.assert_array_equal(back[[0, 2]], fitted.inverse_transform(np.array(X[:2])))


def test_one_odd_row_of_categories_is_zeros() -> None:
    encoder = dp.learn.OneHot(categories=[["a", "b"], [1, 2]])
    rows: list[Any] = [["a", 1], ["b", 2]]
    for odd in [*ODD, ["a"], ["a", Hides()]]:
        for place in (0, 1, 2):
            more = [*rows[:place], odd, *rows[place:]]
            found = encoder.fit(more).transform(more)
            np.testing.assert_array_equal(np.delete(found, place, axis=0), [[1, 0, 1, 0], [0, 1, 0, 1]])
    one = dp.learn.OneHot(categories=[["a"]]).fit(["a"])
    assert one.transform(["a", None, ["a"]]).tolist() == [[1], [0], [1]]
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows, orient="row"), pa.table({"x": ["a", "b"], "y": [1, 2]})):
        assert encoder.fit(frame).transform(frame).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]


# --- seeded bugs: the readings of 0.1 ------------------------------------------------------------------------------


def labels_are_cells_if_all_of_them_are_rows(patch: pytest.MonkeyPatch) -> None:
    def column_of(targets: Any, who: str) -> Any:
        if isinstance(targets, list) and all(isinstance(cell, list) for cell in targets):
            return np.array([cell[0] for cell in targets], dtype=object)
        column = np.empty(len(targets), dtype=object)
        column[:] = [cell if np.ndim(cell) == 0 else None for cell in targets]
        return column

    for module in (base, dp.learn.naive_bayes, dp.learn.glm, streams):
        patch.setattr(module, "column_of", column_of)


def the_longest_row_decides_the_width(patch: pytest.MonkeyPatch) -> None:
    sound = base.table_of
    longest = lambda rows: max(len(row) for row in rows if isinstance(row, list))  # noqa: E731
    for module in (dp.learn.naive_bayes, dp.learn.glm):
        patch.setattr(module, "table_of", lambda rows, width=None: sound(rows, longest(rows)))


@pytest.mark.parametrize("model", [MODELS[0], MODELS[5]], ids=name_of)
def test_readings_over_all_records_are_seen(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [[one] for one in Y]
    for mutant, odd, label in (
        (labels_are_cells_if_all_of_them_are_rows, None, True),
        (the_longest_row_decides_the_width, [1, 2, 3], False),
    ):
        others_stay(model, labels, [odd], 2, label=label)
        with monkeypatch.context() as patch:
            mutant(patch)
            with pytest.raises((AssertionError, dp.InvalidArgument)):  # an error that only such a record meets, too
                others_stay(model, labels, [odd], 2, label=label)


def test_features_of_a_table_are_read_cell_by_cell() -> None:
    number, choice = Feature("x", "integer"), Feature("x", "text", choices=("a", "b"))
    for cells in (pa.array([1, 2**53 + 1, None]), pa.chunked_array([[1], [2**53 + 1, None]]), [1, 2**53 + 1, Hides()]):
        np.testing.assert_array_equal(number.columns(cells), [[1], [2.0**53], [math.nan]])
    assert choice.columns(["a", *ODD, "b"])[[0, -1]].tolist() == [[1, 0], [0, 1]]
    assert choice.columns(["a", *ODD, "b"]).sum() == 2
