"""What an attack on queries found: a record decides about itself, whatever it is and whatever predicate is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dp


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
        with pytest.raises(dp.InvalidArgument, match="The predicate fails on data of this kind"):
            dp.Count(lambda asked: asked["b"] > 3)(rows)
    with pytest.raises(dp.InvalidArgument, match="one truth value for each row"):
        dp.Count(lambda asked: 3)(np.array([1, 2]))


def test_totals_of_ratings_stay_in_64_bits() -> None:
    query = dp.Ratings(("a",), (0, 2**52), step=1)
    few, more = (query(np.full((rows, 1), 2.0**52)).steps.tolist() for rows in (2047, 2049))
    assert few[0] <= more[0] < 2**63
