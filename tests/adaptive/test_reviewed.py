"""What a review with fresh eyes found in studies: each once a leak or a false width, now refused or mended."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import discreet as dp
from discreet import testing
from discreet.adaptive.guarded import GuardedRows
from discreet.adaptive.holdouts import GuessAndCheck
from discreet.adaptive.reading import columns_of
from discreet.adaptive.sample import Sample
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans

RNG = np.random.default_rng(99)
REPLACE = dp.row(neighbors="replace")


def opened(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=5, delta=1e-6), "protects": REPLACE, **terms}
    return dp.Ledger.open(tmp_path / "a.ledger", **given)


@pytest.mark.parametrize(
    "question",
    [
        lambda r: (r["x"] + np.zeros((1, 1))).sum(axis=1),  # all rows become the numbers of one
        lambda r: r["x"] + np.zeros((1, 7)),
        lambda r: r["x"] + np.zeros((1, 6)),
        lambda r: (r["X"] + np.zeros((1, 1, 1)))[:, 0, 0],
        lambda r: r["T"][:, True, :, 0],
        lambda r: np.where(np.array([[True]]), r["x"], 0),
        lambda r: np.frompyfunc(print, 1, 1)(r["x"]),
        lambda r: r["x"].astype(np.uint8),  # casts beyond the range depend on the place
        lambda r: r["x"].astype(np.int32),
    ],
)
def test_no_row_reaches_another(question: Any) -> None:
    rows = GuardedRows({"x": np.arange(6.0), "X": np.ones((6, 2)), "T": np.ones((6, 2, 2, 2))})
    with pytest.raises((dp.NotAllowed, dp.InvalidArgument)) as refused:
        question(rows)
    assert refused.value.__context__ is None


def test_the_number_of_rows_is_in_no_error() -> None:
    said = set()
    for count in (5, 6, 7):
        for given in range(1, 9):
            with pytest.raises((dp.NotAllowed, dp.InvalidArgument)) as refused:
                _ = GuardedRows({"x": np.arange(float(count))})["x"] + np.zeros((1, given))
            said.add(str(refused.value))
    assert len(said) == 1


def test_no_cell_can_stop_a_question() -> None:
    for cell in (-1, 5):
        rows = GuardedRows({"i": np.array([1, 2, cell])})
        assert len((2 ** rows["i"])._opened()) == 3
        assert len((rows["i"] // 0 + rows["i"] % 0)._opened()) == 3


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_cell_changes_no_type(missing: bool) -> None:
    cells = [True, None if missing else False, True]
    texts, numbers = ["a", None if missing else "b", "a"], [1, None if missing else 2, 3]
    frames = [
        pa.table(
            {"b": pa.array(cells, pa.bool_()), "t": pa.array(texts, pa.string()), "n": pa.array(numbers, pa.int64())}
        ),
        pl.DataFrame({"b": cells, "t": texts, "n": numbers}, schema={"b": pl.Boolean, "t": pl.String, "n": pl.Int64}),
        pd.DataFrame(
            {
                "b": pd.array(cells, dtype="boolean"),
                "t": pd.array(texts, dtype="string"),
                "n": pd.array(numbers, dtype="Int64"),
            }
        ),
    ]
    for frame in frames:
        columns = columns_of(frame)
        assert [columns[name].dtype.kind for name in "btn"] == ["b", "O", "f"]
        sample = Sample(columns, guarded=True)
        assert sample.total(lambda rows: rows["b"] & (rows["t"] == "a") & (rows["n"] < 5)) == 2 * QUANTUM.denominator


def test_a_model_scores_rows_with_missing_numbers_as_wrong(tmp_path: Path) -> None:
    X = RNG.normal(size=(1000, 2))
    y = X[:, 0] > 0
    model = LogisticRegression().fit(X, y)
    holes = X.copy()
    holes[:100, 1] = np.nan
    for ledger in (None, opened(tmp_path)):
        with testing.no_noise():
            study = dp.adaptive.study({"X": holes, "y": y}, queries=2, ledger=ledger)
            scoring = dp.adaptive.scorer(study, features="X", target="y")
            expected = (model.predict(X[100:]) == y[100:]).sum() / 1000
            assert scoring(model) == pytest.approx(expected, abs=1e-6)


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


def test_a_sorted_sample_is_split_at_random() -> None:
    study = dp.adaptive.study({"x": np.sort(RNG.random(9000))}, queries=3, unprotected=True)
    assert study.method == "splitting"
    for _ in range(3):
        low, high = study.mean(lambda rows: rows["x"] > 0.5).interval
        assert low <= 0.5 <= high


def test_a_refused_study_does_not_promise_another_on_the_same_rows() -> None:
    study = dp.adaptive.study({"x": np.ones(50)}, queries=1)
    study.mean(lambda rows: rows["x"])
    with pytest.raises(dp.BudgetExhausted, match="on new rows"):
        study.mean(lambda rows: rows["x"])


def test_people_in_arrays_have_one_row_each(tmp_path: Path) -> None:
    own = opened(tmp_path, protects=dp.person("pid", neighbors="replace"))
    with pytest.raises(dp.InvalidArgument, match="column pid"):
        dp.adaptive.study({"x": np.ones(1000)}, queries=2, ledger=own)
    study = dp.adaptive.study({"pid": np.repeat(np.arange(500), 2), "x": np.ones(1000)}, queries=2, ledger=own)
    assert study.size == 500
    with pytest.raises(dp.InvalidArgument, match="replace"):
        dp.adaptive.leaderboard(np.ones(50), submissions=2, ledger=own)


@pytest.mark.parametrize("rule", ["basic", "advanced"])
def test_a_thresholdout_fits_ledgers_that_add_up_epsilon(tmp_path: Path, rule: str) -> None:
    own = opened(tmp_path, rule=rule)
    rows = {"x": RNG.random(3000)}
    held = dp.adaptive.holdout(rows, rows, queries=200, overfits=3, method="thresholdout", ledger=own)
    assert len(list(own.entries())) == 1
    assert 0 <= held.check(lambda r: r["x"] > 0.5).value <= 1


def test_a_leaderboard_fits_a_pure_ledger(tmp_path: Path) -> None:
    own = opened(tmp_path, limit=dp.Pure(epsilon=20))
    assert 0 <= dp.adaptive.leaderboard(np.ones(500), submissions=2, ledger=own).submit(np.ones(500)).value <= 1


def test_a_holdout_remembers_that_it_was_opened_without_noise() -> None:
    rows = {"x": RNG.random(300)}
    with testing.no_noise():
        held = dp.adaptive.holdout(rows, rows, queries=5, method="thresholdout")
    assert held.check(lambda r: r["x"]).not_private


def test_rows_are_counted_once_they_are_charged(tmp_path: Path) -> None:
    own = opened(tmp_path, limit=dp.Approx(epsilon=0.01, delta=1e-6), protects=dp.row())
    with pytest.raises(dp.BudgetExhausted):
        dp.adaptive.study({"x": np.ones(500)}, queries=5, ledger=own)
    for bad in ({"tolerance": -1}, {"accuracy": -1}, {"overfits": 0}, {"method": "none"}):
        with pytest.raises(dp.InvalidArgument):
            dp.adaptive.holdout({"x": np.ones(9)}, {"x": np.ones(500)}, **{"queries": 5, "ledger": own, **bad})  # type: ignore[arg-type]
    assert len(list(own.entries())) == 0


def test_a_table_is_counted_once(tmp_path: Path) -> None:
    own = opened(tmp_path, protects=dp.row())
    table = dp.table({"x": RNG.random(3000)}, ledger=own, version="1")
    first, second = (dp.adaptive.study(table, queries=2) for _ in range(2))
    assert first.size == second.size
    assert len(list(own.entries())) == 3  # one count, two studies


def test_the_stated_width_covers_every_later_answer() -> None:
    for cells in (2, 3, 20):
        made = GuessAndCheck(10**4, 100, 100, 0.02, cells)
        assert made.width(0.95) >= max(made.width(0.95, told) for told in range(100))


def test_odd_numbers_are_refused() -> None:
    with pytest.raises(dp.InvalidArgument, match="close to 1"):
        AdaptiveMeans.of_noise(0.1, size=10, queries=1).width(1 - Fraction(1, 10**20))
    study = dp.adaptive.study({"x": np.ones(50)}, queries=1)
    with pytest.raises(dp.InvalidArgument):
        study.mean(lambda rows: rows["x"], between=(-1e308, 1e308))
    assert not GuardedRows({"t": np.array([b"x"], dtype=object)})["t"].isin([None])._opened()[0]
