"""Columns and labels of a study take their kind from their type, and one odd cell changes nothing about the others."""

from __future__ import annotations

import datetime
import math
import uuid
from collections import deque
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.adaptive import guarded, ladder
from discreet.adaptive.guarded import plain_cells
from discreet.adaptive.reading import columns_of, people_of

from ..odd_objects import Hides
from ..refusing import refuses


class Text(str):
    """Text of a class of its own that fails when it is compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __ne__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __hash__(self) -> int:
        raise RuntimeError("secret")


def objects(cells: list[Any]) -> Any:
    column = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return column


@pytest.mark.parametrize("make", [list, tuple, deque, lambda cells: (one for one in cells)])
@pytest.mark.parametrize("odd", [2.0, "two", None])
def test_what_has_no_type_is_refused_whatever_is_in_it(make: Any, odd: Any) -> None:
    for call in (
        lambda: dp.adaptive.study({"x": make([1.0, odd])}, queries=1),
        lambda: dp.adaptive.study({"x": make([1.0, odd])}, queries=1, unprotected=True),
        lambda: dp.adaptive.holdout({"x": make([1.0, odd])}, {"x": np.ones(5)}, queries=1),
        lambda: dp.adaptive.leaderboard(make([1.0, odd]), submissions=1),
    ):
        with refuses(dp.InvalidArgument, "study-sample"):
            call()


def test_cells_are_plain_by_their_class_alone() -> None:
    cells = [1, True, 2.5, "a", np.int8(3), np.float32(0.5), np.bool_(True), np.str_("b"), Text("c"), 10**400]
    odd = [None, Hides(), [1], {}, b"x", Decimal(1), np.timedelta64(3, "D"), datetime.date(2020, 1, 1)]
    found = plain_cells(objects([*cells, *odd]))
    assert found.tolist() == [1, True, 2.5, "a", 3, 0.5, True, "b", "c", 10**400, *[None] * len(odd)]
    assert {type(cell) for cell in found.tolist()} == {int, bool, float, str, type(None)}


def test_a_person_is_named_by_a_plain_cell() -> None:
    ids = [1, "a", uuid.UUID(int=1), datetime.date(2020, 1, 1), 2.0, np.int64(7)]
    odd = [None, Hides(), Text("c"), [1], {}, math.nan, 2.5, np.datetime64("NaT"), Decimal("sNaN")]
    found = people_of({"who": objects([*ids, *odd])}, "who")
    assert found[: len(ids)] == [1, "a", uuid.UUID(int=1), datetime.date(2020, 1, 1), 2, 7]
    assert found[len(ids) :] == [None] * len(odd)


def test_what_is_masked_is_missing() -> None:
    mask = [False, True]
    columns = {
        "x": np.ma.masked_array([1, 2], mask), "b": np.ma.masked_array([True, True], mask),
        "o": np.ma.masked_array(objects(["a", "b"]), mask), "d": np.ma.masked_array(np.array([3, 4], "M8[D]"), mask),
    }  # fmt: skip
    found = columns_of(columns)
    np.testing.assert_array_equal(found["x"], [1, math.nan])
    np.testing.assert_array_equal(found["d"], [3, math.nan])
    assert found["b"].tolist() == [True, False]
    assert found["o"].tolist() == ["a", None]


# --- labels of a leaderboard --------------------------------------------------------------------------------------


def score(labels: Any, loss: str, predictions: Any) -> Any:
    with testing.no_noise():
        return dp.adaptive.leaderboard(labels, loss, submissions=1).submit(predictions).value


@pytest.mark.parametrize("loss", ["zero_one", "absolute", "squared"])
def test_one_missing_label_changes_no_other(loss: str) -> None:
    """A missing label moves a score by its own loss, in any container that has a type."""
    for make in (
        pa.array,
        pl.Series,
        lambda cells: pd.Series(cells, dtype="Int64"),
        lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
    ):
        known, gap = (score(make([0, 1] * 10 + [last]), loss, [0, 1] * 10 + [1]) for last in (1, None))
        assert known == pytest.approx(0, abs=1e-5)
        assert gap == pytest.approx(1 / 21, abs=1e-5)


@pytest.mark.parametrize("odd", [None, 0.5, "a", b"x", pd.NA])
def test_one_odd_label_among_objects_changes_no_other(odd: Any) -> None:
    for cells in (["a", "b"] * 10, [2**53, 2**53 + 1] * 10):
        assert score(objects([*cells, odd]), "zero_one", [*cells, "nobody"]) == pytest.approx(1 / 21, abs=1e-5)
    assert score(objects(["a", "b", Hides()]), "zero_one", ["a", "b", "a"]) == pytest.approx(1 / 3, abs=1e-5)


# --- seeded bugs: the readings of 0.1 ------------------------------------------------------------------------------


def test_labels_whose_type_is_guessed_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "typed_array", np.asarray)
    with pytest.raises(pytest.fail.Exception):
        test_what_has_no_type_is_refused_whatever_is_in_it(list, "two")


def test_cells_that_are_asked_for_their_class_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "_plain", lambda cell: cell if isinstance(cell, str | int | float) else None)
    with pytest.raises(RuntimeError):
        test_cells_are_plain_by_their_class_alone()


def test_labels_have_one_dimension() -> None:
    for labels in (np.ones((5, 2)), np.ones(0)):
        with refuses(dp.InvalidArgument, "wrong-shape"):
            dp.adaptive.leaderboard(labels, submissions=1)
