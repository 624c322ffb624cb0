"""What an attack on queries found: a record decides about itself, whatever it is and whatever predicate is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dp
from discreet.mechanisms import KeySelection, PrefixSums, Quantile, SmallDatabase, StreamSums
from discreet.queries import Ball, Domain, Grid, Histogram, Popularity, Ratings, VectorSum, Workload

from ..refusing import refuses


def test_a_truth_value_in_text_makes_no_text_of_the_others() -> None:
    query = dp.Count(lambda rows: ["odd" if row == "odd" else row > 3 for row in rows])
    assert query([1, 5, 7]) == query([1, 5, 7, "odd"]) == query(["odd", 1, 5, 7]) == 2


@pytest.mark.parametrize(
    "rows",
    [
        {"a": pd.Series([1, 5, 7, None], dtype=object)},
        {"a": pd.Series([1, 5, 7, None], dtype="Int64")},
        {"a": pl.Series([1, 5, 7, None])},
        {"a": [1, 5, 7, None]},
        pd.DataFrame({"a": [1, 5, 7, pd.NA]}, dtype="Int64"),
        pd.DataFrame({"a": [1, 5, 7, "x"]}, dtype=object),
    ],
    ids=["objects", "nullable", "polars", "lists", "frame", "frame of objects"],
)
def test_where_a_predicate_fails_each_record_is_asked_in_its_own_container(rows: Any) -> None:
    assert dp.Count(lambda asked: asked["a"] > 3)(rows) == 2


def test_a_predicate_that_cannot_be_asked_is_told_whatever_the_rows_are() -> None:
    for rows in ({"a": [1, 2]}, {"a": []}, pd.DataFrame({"a": [None]})):
        with refuses(dp.InvalidArgument, "function-fails"):
            dp.Count(lambda asked: asked["b"] > 3)(rows)
    with refuses(dp.InvalidArgument, "function-fails"):
        dp.Count(lambda asked: 3)(np.array([1, 2]))


def test_totals_of_ratings_stay_in_64_bits() -> None:
    query = Ratings(("a",), (0, 2**52), step=1)
    few, more = (query(np.full((rows, 1), 2.0**52)).steps.tolist() for rows in (2047, 2049))
    assert few[0] <= more[0] < 2**63


# --- what shape and type decide is refused before anything is charged ---------------------------------------------

BY_MARGINALS = Workload.marginals(Domain({"a": 3, "b": 2}), 1)
NOISE = dp.Laplace(scale=1)
REFUSED = {
    "a matrix for a quantile": (np.ones((3, 2)), Quantile(space=Grid(0, 9, 1), rate=1), None),
    "a matrix for records": (np.ones((3, 2)), dp.Each(NOISE, dp.Interval(0, 1)), None),
    "a matrix for a sum": (np.ones((3, 2)), NOISE, dp.Sum((0, 1))),
    "text for a sum": (np.array(["a"]), NOISE, dp.Sum((0, 1))),
    "a frame for a histogram": (pd.DataFrame({"a": [1]}), NOISE, Histogram((1, 2))),
    "wide rows": (np.ones((3, 3)), dp.Gaussian(stddev=1), VectorSum(Ball(2, 1))),
    "wide likes": (np.ones((3, 3)), dp.Exponential(rate=1), Popularity(("a", "b"))),
    "a missing column": ({"a": [1]}, NOISE, BY_MARGINALS),
    "a database without it": ({"a": [1]}, SmallDatabase(workload=BY_MARGINALS, size=5, rows=2, rate=1), None),
    "doubles for counts": (np.ones(4), PrefixSums(points=4, stddev=1), None),
    "too few counts": ([1, 2], PrefixSums(points=4, stddev=1), None),
    "too few counts of a stream": ([1, 2], StreamSums(points=4, stddev=1), None),
    "a list of keys": ([1], KeySelection(scale=1, threshold=20), None),
    "a number to count": (3, NOISE, dp.Count()),
    "a predicate without its column": ({"a": np.ones(3)}, NOISE, dp.Count(lambda rows: rows["b"] > 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_before_the_charge(name: str) -> None:
    value, mechanism, query = REFUSED[name]
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=100, delta=0.1))
    with pytest.raises(dp.InvalidArgument):
        dp.release(value, mechanism, query=query, ledger=ledger)
    assert ledger.count == 0


# --- a name is a name: no column and no person is taken for an attribute of a container ----------------------------

LABELS = ["columns", "column_names", "schema", "to_arrow", "iloc", "chunks", "dtype", "array", "cat"]


def test_people_whose_names_are_attributes_stop_nothing() -> None:
    people = pd.Series([3.0] * len(LABELS), index=LABELS)
    assert dp.Sum((0, 10))(people) == 3 * len(LABELS)
    assert Histogram((3.0,))(people).tolist() == [len(LABELS)]
    assert len(dp.Each(NOISE, dp.Interval(0, 10))._draw(people)) == len(LABELS)


@pytest.mark.parametrize("name", LABELS[:4])
def test_a_column_whose_name_is_an_attribute_is_a_column(name: str) -> None:
    frame = pd.DataFrame({name: ["alice", "bob"] * 500})
    assert Domain({name: ("alice", "bob")}).histogram(frame).tolist() == [500, 500]
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1e-9), rate=0.5, query=len)
    assert 350 < sampled._draw(frame) < 650  # 9 standard deviations


def test_columns_are_found_by_place() -> None:
    assert Domain({"0": 3}).codes(pd.DataFrame({0: [1, 2]})).tolist() == [[1], [2]]
    each = dp.Each((NOISE, NOISE), (dp.Interval(0, 1), dp.Interval(0, 1)))
    assert len(each._draw(pd.DataFrame([[0.1, 0.2], [0.3, 0.4]]))) == 2


@pytest.mark.parametrize(
    "column",
    [pd.array([1, None, 3], dtype="Int64"), pd.arrays.SparseArray([1, 3]), pl.Series([1, 3], dtype=pl.Int128)],
    ids=["nullable", "sparse", "wide"],
)
def test_arrays_of_pandas_and_wide_numbers_are_columns(column: Any) -> None:
    assert dp.Sum((0, 10))(column) == 4


def test_a_long_double_warns_of_nothing() -> None:
    rows = np.array([[1, 0], [np.longdouble("1e4000"), 0]], dtype=np.longdouble)
    assert VectorSum(Ball(2, 1))(rows).astype(float).round(6).tolist() == [2, 0]


def test_a_study_of_objects_is_stopped_by_no_cell() -> None:
    for odd in (None, "x"):
        cells = np.array([1, 50, 60, 70, odd], dtype=object)
        study = dp.adaptive.study({"age": np.tile(cells, 200)}, queries=5, confidence=0.95)
        assert 0.4 < study.mean(lambda rows: rows["age"] > 40).value < 0.8
