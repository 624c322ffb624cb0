"""No question of a study reaches from one row to another, or tells how many rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.adaptive.guarded import GuardedRows

from ..refusing import refuses


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (lambda r: (r["x"] + np.zeros((1, 1))).sum(axis=1), "wrong-shape"),  # all rows become the numbers of one
        (lambda r: r["x"] + np.zeros((1, 7)), "wrong-shape"),
        (lambda r: r["x"] + np.zeros((1, 6)), "wrong-shape"),
        (lambda r: (r["X"] + np.zeros((1, 1, 1)))[:, 0, 0], "wrong-shape"),
        (lambda r: r["T"][:, True, :, 0], "study-row-by-row"),
        (lambda r: np.where(np.array([[True]]), r["x"], 0), "wrong-shape"),
        (lambda r: np.frompyfunc(print, 1, 1)(r["x"]), "study-row-by-row"),
        (lambda r: r["x"].astype(np.uint8), "study-types"),  # casts beyond the range depend on the place
        (lambda r: r["x"].astype(np.int32), "study-types"),
    ],
)
def test_no_row_reaches_another(question: Any, code: str) -> None:
    rows = GuardedRows({"x": np.arange(6.0), "X": np.ones((6, 2)), "T": np.ones((6, 2, 2, 2))})
    with refuses(dp.DiscreetError, code) as refused:
        question(rows)
    assert refused.value.__context__ is None


def test_the_number_of_rows_is_in_no_error() -> None:
    said = set()
    for count in (5, 6, 7):
        for given in range(1, 9):
            with refuses(dp.InvalidArgument, "wrong-shape") as refused:
                _ = GuardedRows({"x": np.arange(float(count))})["x"] + np.zeros((1, given))
            said.add(str(refused.value))
    assert len(said) == 1


def test_no_cell_can_stop_a_question() -> None:
    for cell in (-1, 5):
        rows = GuardedRows({"i": np.array([1, 2, cell])})
        assert len((2 ** rows["i"])._opened()) == 3
        assert len((rows["i"] // 0 + rows["i"] % 0)._opened()) == 3


def test_a_function_that_fails_on_a_row_leaves_it_missing() -> None:
    def fussy(column: Any) -> Any:
        if np.isnan(column).any():
            raise ValueError("no NaN, please")
        return column + 1

    rows = GuardedRows({"x": np.array([1.0, np.nan, 3.0])})
    np.testing.assert_array_equal(rows.apply(fussy, "x")._opened(), [2, np.nan, 4])
    assert np.isnan(rows.apply(np.mean, "x")._opened()).all()


def test_whole_numbers_do_not_depend_on_the_place() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 1e300, -1e19])
    for cell in odd:
        for count in (1, 3, 16, 17, 33):
            made = GuardedRows({"x": np.full(count, cell)})["x"].astype(int)._opened()
            assert len(set(made.tolist())) == 1
