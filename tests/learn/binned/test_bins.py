"""Bins: the same for any container, free where ranges are declared, one release where they are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet.learn.binned.bin_columns import Declared
from discreet.learn.binned.bin_tables import bins_for, pair_features
from discreet.learn.checks import expected_failed_checks
from discreet.rows.gradients.binned import BinTables, bins_of

from ...refusing import refuses

ROWS = {"age": [3.0, 60.0, 119.0, np.nan], "city": ["Oslo", "Bonn", "Koper", "Oslo"], "well": [True, False, True, True]}
DECLARED: dict[str, Any] = {"ranges": {"age": (0, 120)}, "categories": {"city": ["Oslo", "Koper"]}}


@pytest.mark.slow
def test_scikit_learns_own_checks() -> None:
    made = dp.learn.Bins()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(made, expected_failed_checks=expected_failed_checks(made), on_skip=None, on_fail=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []


@pytest.mark.parametrize("encode", ["smooth", "onehot", "codes"])
def test_any_container_gives_the_same_features(encode: str) -> None:
    frame = pd.DataFrame(ROWS)
    made = dp.learn.Bins(encode=encode, **DECLARED).fit(frame)
    known = made.transform(frame)
    assert known.shape == (4, len(made.get_feature_names_out()))
    arrays = {name: np.array(column) for name, column in ROWS.items()}
    categorical = frame.assign(city=frame["city"].astype("category"))
    for other in (pl.from_pandas(frame), pa.table(frame), arrays, ROWS, categorical, frame.astype({"city": object})):
        np.testing.assert_array_equal(made.transform(other), known)
    assert not hasattr(made, "release_")
    if encode != "codes":
        assert np.linalg.norm(known, axis=1).max() <= 1 + 1e-12


def test_numbers_with_a_mask_are_numbers() -> None:
    """The type decides, whether a cell is missing or not."""
    for missing in (None, 3):
        frame = pd.DataFrame({"a": pd.array([1, missing], "Int64"), "b": pd.array([0.5, missing], "Float64")})
        frame["c"] = pd.array([True, None if missing is None else False], "boolean")
        made = dp.learn.Bins(ranges={"a": (0, 8), "b": (0, 1)}, encode="codes").fit(frame)
        assert [one.bins for one in made.bins_] == [10, 77, 3]
        assert (made.transform(frame)[1] == [9, 76, 2]).all() == (missing is None)
        assert made.transform(pa.table(frame)).tolist() == made.transform(frame).tolist()
        assert dp.learn.Bins().fit(frame[["a", "b"]]).release_.value["ranges"].shape == (2, 2)


def test_bins_of_cells() -> None:
    made = dp.learn.Bins(encode="codes", **DECLARED).fit(pd.DataFrame(ROWS))
    age, city, well = made.transform(pd.DataFrame(ROWS)).T
    assert city.tolist() == [0, 2, 1, 0]
    assert well.tolist() == [1, 0, 1, 1]
    assert age[0] < age[1] < age[2] < age[3] == made.bins_[0].bins - 1
    edges = np.array([0.0, 1.0])
    assert bins_of(np.array([-np.inf, -1, 0, 0.5, 1, np.inf, np.nan]), edges).tolist() == [0, 0, 1, 1, 2, 2, 3]
    shown = dp.learn.Bins(encode="onehot", **DECLARED).fit(pd.DataFrame(ROWS)).get_feature_names_out()
    assert [*shown[-6:]] == ["city_Oslo", "city_Koper", "city_other", "well_0", "well_1", "well_missing"]


def test_ranges_that_are_not_declared_are_one_release() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=1e-4))
    rng = np.random.default_rng(0)
    rows = {"a": rng.normal(1000, 10, 20_000), "b": rng.uniform(-5, 0, 20_000), "c": rng.integers(0, 4, 20_000)}
    made = dp.learn.Bins(ranges={"c": (0, 3)}, epsilon=1, ledger=book).fit(rows)
    assert len(book.entries()) == 1
    (low, high), (least, most) = made.release_.value["ranges"]
    assert 900 < low < 985
    assert 1015 < high < 1200
    assert -8 < least < -3
    assert -1.5 < most < 1
    made.set_params(ranges={"a": (900, 1100), "b": (-5, 0), "c": (0, 3)}).fit(rows)
    assert len(book.entries()) == 1
    assert not hasattr(made, "release_")


def test_a_linear_model_behind_bins_learns_a_hump() -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (4000, 1))
    y = (np.abs(x[:, 0]) < 0.5).astype(int)
    given: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "classes": [0, 1], "steps": 60}
    line = dp.learn.LogisticRegression(**given).fit(x, y)
    bent = make_pipeline(dp.learn.Bins(ranges=[(-1, 1)]), dp.learn.LogisticRegression(**given)).fit(x, y)
    assert line.score(x, y) < 0.7
    assert bent.score(x, y) > 0.9


def test_features_have_norm_one_and_neighbors_are_alike() -> None:
    number = bins_for(Declared("age", "numbers", range=(0.0, 120.0)))
    features = number.features()
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1)
    similar = features @ features.T
    assert similar[40, 41] > 0.9 > 0 > similar[5, 60]
    np.testing.assert_allclose(similar[-1, :-1], 0, atol=1e-12)
    choice = bins_for(Declared("city", "objects", choices=("a", "b")))
    assert choice.features().shape == (3, 2)
    both = pair_features(choice, choice)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1)
    tables = BinTables.rounded([features, choice.features(), both])
    assert 1.73 < tables.feature_norm <= 3**0.5 + 1e-9
    assert tables.dimension == features.shape[1] + 2 + both.shape[1] + 1


def test_what_is_refused() -> None:
    for code, given in (
        ("learn-feature-type", {"ranges": {"age": (0, 120)}}),
        ("not-an-option", DECLARED | {"encode": "thermometer"}),
        ("wrong-shape", DECLARED | {"ranges": [(0, 1)] * 2}),
        ("empty", DECLARED | {"categories": {"city": []}}),
        ("wrong-type", DECLARED | {"categories": {"city": "Oslo"}}),
        ("not-a-number", DECLARED | {"ranges": {"age": (0, float("inf"))}}),
    ):
        with refuses(dp.InvalidArgument, code):
            dp.learn.Bins(**given).fit(pd.DataFrame(ROWS))  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "width-not-declared"):
        dp.learn.Bins().fit([[1.0], [2.0]])
    with refuses(dp.InvalidArgument, "learn-feature-type"):
        dp.learn.Bins().fit(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}))


def test_ranges_are_found_with_pure_epsilon_too() -> None:
    cells = np.random.default_rng(0).uniform(20, 60, (5000, 1))
    bins = dp.learn.Bins(delta=0).fit(cells)
    assert bins.release_.guarantee.epsilon_at(delta=0) <= 1
    low, high = bins.release_.value["ranges"][0]
    assert 10 <= low < 25 < 55 < high <= 70
    assert bins.release_.found[0].startswith("x0 from")
