"""Studies as users meet them: what they say, what they cost, what they refuse, and what a ledger lets through."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.adaptive.guarded import GuardedColumn, GuardedRows
from discreet.adaptive.sample import Sample, exact_total
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans

from ..refusing import refuses

RNG = np.random.default_rng(8)
ROWS = 5000
SAMPLE: dict[str, Any] = {
    "smokes": RNG.random(ROWS) < 0.3,
    "age": RNG.integers(18, 90, ROWS).astype(float),
    "city": RNG.choice(["Graz", "Ljubljana"], ROWS).astype(object),
    "X": RNG.normal(size=(ROWS, 4)),
}
REPLACE = dp.row(neighbors="replace")


@pytest.fixture
def ledger(tmp_path: Path) -> dp.Ledger:
    return dp.Ledger.open(tmp_path / "a.ledger", limit=dp.Approx(epsilon=5, delta=1e-6), protects=REPLACE)


def hidden(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=5, delta=1e-6), "protects": dp.row(), **terms}
    return dp.Ledger.open(tmp_path / "b.ledger", **given)


# --- the tour -------------------------------------------------------------------------------------------------


def test_the_tour() -> None:
    study = dp.adaptive.study(SAMPLE, queries=10_000, confidence=0.95)
    first = study.mean(lambda rows: rows["smokes"])
    second = study.mean(lambda rows: rows["smokes"] & (rows["age"] > 40 + 10 * first.value))
    bound = second.error(0.95, of="population")
    assert bound.of == "population"
    assert float(bound) == second.width
    assert study.remaining == 9998
    assert not second.not_private
    low, high = second.interval
    assert 0 <= low <= second.value <= high <= 1


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_kind_of_sample(kind: Any) -> None:
    given = kind({name: SAMPLE[name] for name in ("smokes", "age")})
    with testing.no_noise():
        study = dp.adaptive.study(given, queries=3)
        answer = study.mean(lambda rows: rows["smokes"] & (rows["age"] > 50))
    assert answer.value == pytest.approx((SAMPLE["smokes"] & (SAMPLE["age"] > 50)).mean(), abs=1e-6)
    assert answer.not_private  # made in test mode
    assert "NOT PRIVATE" in str(answer)


def test_numbers_are_clamped_to_public_ends() -> None:
    with testing.no_noise():
        study = dp.adaptive.study({"x": np.array([-5.0, 0, 10, 30, np.nan, np.inf])}, queries=5)
        answer = study.mean(lambda rows: rows["x"], between=(0, 20))
    assert answer.value == pytest.approx((0 + 0 + 10 + 20 + 0 + 20) / 6, abs=1e-4)
    assert answer.interval == (0, 20)  # six rows say nothing
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        study.correlation(lambda rows: rows["x"], lambda rows: rows["x"])


def test_correlations_are_made_of_means() -> None:
    x = RNG.random(200_000)
    rows = {"x": x, "y": 0.5 * x + 0.5 * RNG.random(200_000)}
    study = dp.adaptive.study(rows, queries=5, unprotected=True)
    answer = study.correlation(lambda r: r["x"], lambda r: r["y"])
    low, high = answer.interval
    assert low <= np.sqrt(0.5) <= high
    assert high - low < 0.8  # 0.64, with a deviation of 0.02
    assert study.remaining == 0
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        study.covariance(lambda r: r["x"], lambda r: r["y"])
    more = dp.adaptive.study(rows, queries=3, unprotected=True)
    low, high = more.covariance(lambda r: 4 * r["x"], lambda r: r["y"], x_between=(0, 4)).interval
    assert low <= 4 * 0.5 / 12 <= high


# --- which method, and how wide -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_method_is_fixed_by_public_numbers_alone() -> None:
    other = {name: np.zeros_like(column) for name, column in SAMPLE.items() if column.dtype != object}
    for unprotected in (False, True):
        for queries in (2, 40, 3000):
            one, two = (dp.adaptive.study(s, queries=queries, unprotected=unprotected) for s in (SAMPLE, other))
            assert (one.method, one.mechanism) == (two.method, two.mechanism)


@pytest.mark.slow
def test_the_narrowest_method_is_taken() -> None:
    methods = {k: dp.adaptive.study(SAMPLE, queries=k, unprotected=True).method for k in (2, 60, 10_000)}
    assert methods[2] == "splitting"
    assert methods[60] == "compression"
    assert methods[10_000] == "gaussian"
    assert dp.adaptive.study(SAMPLE, queries=2).method == "gaussian"  # protected: private methods only


@pytest.mark.parametrize("method", ["gaussian", "laplace", "taught", "compression", "splitting"])
def test_the_method_that_is_asked_for(method: str) -> None:
    free = method in ("compression", "splitting")
    study = dp.adaptive.study(SAMPLE, queries=5, method=method, unprotected=free)
    answer = study.mean(lambda rows: rows["smokes"])
    assert study.method == method
    assert answer.not_private is free
    assert (study.guarantee is None) is free
    assert abs(answer.value - 0.3) <= answer.width + 0.05
    if free:
        with refuses(dp.NotAllowed, "study-protected"):
            dp.adaptive.study(SAMPLE, queries=5, method=method)


def test_a_wished_accuracy_is_kept_for_the_least_cost() -> None:
    cheap = dp.adaptive.study(SAMPLE, queries=10, accuracy=0.4)
    narrow = dp.adaptive.study(SAMPLE, queries=10)
    assert narrow.width < cheap.width <= 0.4
    assert cheap.guarantee is not None
    assert narrow.guarantee is not None
    assert cheap.guarantee.epsilon_at(delta=1e-6) < narrow.guarantee.epsilon_at(delta=1e-6)
    with refuses(dp.InvalidArgument, "study-too-few-rows"):
        dp.adaptive.study(SAMPLE, queries=10, accuracy=0.001)


def test_questions_are_counted_and_then_refused() -> None:
    for free in (False, True):
        study = dp.adaptive.study(SAMPLE, queries=2, unprotected=free)
        study.mean(lambda rows: rows["smokes"])
        with refuses(dp.InvalidArgument, "unknown-column"):
            study.mean(lambda rows: rows["nothing"])  # what cannot be computed is not counted
        with refuses(dp.InvalidArgument, "study-question"):
            study.mean(lambda rows: rows["X"])
        with refuses(dp.InvalidArgument, "study-question"):
            study.mean(lambda rows: rows["city"])
        assert study.mean(lambda rows: rows["age"] > 50).remaining == 0
        with refuses(dp.BudgetExhausted, "questions-used-up"):
            study.mean(lambda rows: rows["smokes"])


# --- under a ledger -------------------------------------------------------------------------------------------


def test_a_study_is_charged_once_before_it_reads(ledger: dp.Ledger) -> None:
    before = ledger.remaining
    study = dp.adaptive.study(SAMPLE, queries=20, ledger=ledger)
    assert len(list(ledger.entries())) == 1
    assert study.receipt is not None
    for _ in range(20):
        answer = study.mean(lambda rows: rows["smokes"] & (rows["age"] > 40))
    assert len(list(ledger.entries())) == 1
    assert answer.receipt == study.receipt
    assert answer.guarantee is not None
    assert answer.guarantee.protects == REPLACE
    assert ledger.remaining != before


def test_what_does_not_fit_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    small = hidden(tmp_path, limit=dp.Approx(epsilon=1e-4, delta=1e-9), protects=REPLACE)
    read: list[int] = []

    class Watched(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            read.append(1)
            return super().__getitem__(name)

    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.adaptive.study(Watched(SAMPLE), queries=1000, ledger=small)
    assert len(list(small.entries())) == 0


def test_rows_under_a_ledger_get_private_methods_only(ledger: dp.Ledger) -> None:
    for method in ("compression", "splitting"):
        with refuses(dp.NotAllowed, "study-protected"):
            dp.adaptive.study(SAMPLE, queries=5, ledger=ledger, method=method)
        with refuses(dp.NotAllowed, "study-protected"):
            dp.adaptive.study(SAMPLE, queries=5, ledger=ledger, method=method, unprotected=True)
    assert dp.adaptive.study(SAMPLE, queries=2, ledger=ledger).method == "gaussian"
    assert len(list(ledger.entries())) == 1


def test_a_hidden_number_of_rows_is_counted_with_noise(tmp_path: Path) -> None:
    own = hidden(tmp_path)
    study = dp.adaptive.study(SAMPLE, queries=20, ledger=own)
    assert len(list(own.entries())) == 2
    assert ROWS - 500 < study.size < ROWS + 50
    declared = dp.adaptive.study(SAMPLE, queries=20, ledger=own, size=4000)
    assert len(list(own.entries())) == 3
    assert declared.size == 4000
    # the count may fail too: widths hold for a little less than the confidence
    assert study.width > study.mechanism.width(0.95)


def test_rows_beyond_the_size_are_left_out_at_random_and_missing_ones_count_as_nothing() -> None:
    many = Sample({"x": np.arange(100.0)}, 60)
    kept = many._columns["x"]
    assert len(kept) == 60
    assert len(set(kept)) == 60
    assert set(kept) != set(np.arange(60.0))
    few = Sample({"x": np.ones(10)}, 40)
    assert few.total(lambda rows: rows["x"]) == 10 * QUANTUM.denominator


@pytest.mark.parametrize(
    ("limit", "rule", "method"),
    [
        (dp.Pure(epsilon=50), None, "laplace"),
        (dp.Approx(epsilon=5, delta=1e-5), "basic", "gaussian"),
        (dp.ZeroConcentrated(rho=5), None, "gaussian"),
    ],
)
def test_every_kind_of_ledger(tmp_path: Path, limit: Any, rule: Any, method: str) -> None:
    own = hidden(tmp_path, limit=limit, rule=rule, protects=REPLACE)
    study = dp.adaptive.study(SAMPLE, queries=5, ledger=own)
    assert study.method == method
    assert abs(study.mean(lambda rows: rows["smokes"]).value - 0.3) < study.width + 0.05
    if method == "laplace":
        with refuses(dp.InvalidArgument, "study-ledger"):
            dp.adaptive.study(SAMPLE, queries=5, ledger=own, method="gaussian")


def test_a_table_is_studied_one_row_for_each_person(tmp_path: Path) -> None:
    own = hidden(tmp_path, protects=dp.person("who"))
    people = {
        "who": np.repeat(np.arange(3000), 3),
        "age": np.repeat(RNG.integers(0, 90, 3000), 3),
        "city": np.repeat(RNG.choice(["Graz", "Ljubljana"], 3000), 3),
        "ill": np.repeat(RNG.random(3000) < 0.4, 3),
    }
    table = dp.table(people, ledger=own, rows_per_person=3)
    study = dp.adaptive.study(table, queries=5)
    assert 2500 < study.size <= 3050
    with testing.no_noise():
        answer = study.mean(lambda rows: (rows["city"] == "Graz") & rows["ill"] & (rows["age"] < 50))
    true = ((people["city"] == "Graz") & people["ill"] & (people["age"] < 50))[::3].mean()
    assert answer.value == pytest.approx(true, abs=0.03)
    with refuses(dp.InvalidArgument, "conflicting-arguments"):
        dp.adaptive.study(table, queries=5, ledger=hidden(tmp_path / "..", protects=dp.person("who")))


def test_a_row_more_changes_the_sum_by_at_most_one(ledger: dp.Ledger) -> None:
    """The sensitivity that is charged, on random questions of neighboring samples."""
    columns = {"x": RNG.normal(size=50), "b": RNG.random(50) < 0.5, "X": RNG.normal(size=(50, 3))}
    questions: list[Any] = [
        lambda rows: rows["b"],
        lambda rows: rows["x"],
        lambda rows: np.where(rows["b"], rows["x"], 2.0),
        lambda rows: (rows["X"] @ np.array([1.0, -1, 2])) > 0,
        lambda rows: rows["X"].max(axis=1) * 1e300 * 1e300,
        lambda rows: np.log(rows["x"]),
        lambda rows: rows["x"] / 0,
    ]
    for place in range(0, 50, 7):
        other = {name: np.array(column) for name, column in columns.items()}
        other["x"][place], other["b"][place], other["X"][place] = np.nan, ~other["b"][place], 1e200
        for question in questions:
            totals = [Sample(one, guarded=True).total(question) for one in (columns, other)]
            assert abs(totals[0] - totals[1]) <= QUANTUM.denominator


# --- rows that nobody sees ------------------------------------------------------------------------------------


def guarded() -> GuardedRows:
    return GuardedRows({"x": np.arange(4.0), "t": np.array(["a", "b", None, "a"], object), "X": np.ones((4, 4))})


def opened(column: GuardedColumn) -> list[Any]:
    return list(column._opened().tolist())


def test_what_concerns_each_row_alone_is_computed() -> None:
    rows = guarded()
    x, t, many = rows["x"], rows["t"], rows["X"]
    assert opened((x > 1) & ~(x == 3)) == [False, False, True, False]
    assert opened(np.sqrt(x * x) + 1 - np.abs(-x)) == [1, 1, 1, 1]
    assert opened(t == "a") == [True, False, False, True]
    assert opened(t.isin(["b"])) == opened(np.isin(t, ["b"])) == [False, True, False, False]
    assert opened(np.where(x > 1, x, 0)) == [0, 0, 2, 3]
    assert opened(np.clip(x, 1, 2)) == opened(x.clip(1, 2)) == [1, 1, 2, 2]
    assert opened(many[:, 2]) == [1, 1, 1, 1]
    assert opened(many @ np.array([1.0, 2, 3, 4])) == [10, 10, 10, 10]
    assert opened((many @ np.eye(4))[:, 0]) == [1, 1, 1, 1]
    assert opened(many.sum(axis=1)) == opened(np.sum(many, axis=1)) == [4, 4, 4, 4]
    assert opened((many > 0).all(axis=1).astype(float)) == [1, 1, 1, 1]
    assert opened(rows.apply(lambda a, b: a + b, "x", "x")) == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "question",
    [
        lambda rows: rows["x"].mean(),
        lambda rows: np.mean(rows["x"]),
        lambda rows: rows["x"] > np.median(rows["x"]),
        lambda rows: rows["x"] - rows["x"].sum(axis=0),
        lambda rows: np.sort(rows["x"]),
        lambda rows: np.cumsum(rows["x"]),
        lambda rows: np.add.reduce(rows["x"]),
        lambda rows: np.add.accumulate(rows["x"]),
        lambda rows: np.add.outer(rows["x"], rows["x"]),
        lambda rows: rows["x"][::-1],
        lambda rows: rows["x"][0],
        lambda rows: rows["x"][rows["x"] > 1],
        lambda rows: rows["X"][1:, 0],
        lambda rows: rows["X"] @ rows["X"],
        lambda rows: rows["x"] @ rows["x"],
        lambda rows: np.ones(4) @ rows["X"],
        lambda rows: rows["X"].sum(axis=0),
        lambda rows: rows["X"] * rows["x"],  # would run along the wrong axis
        lambda rows: rows["x"] + np.arange(4),  # not the same for every row
        lambda rows: np.where(rows["x"] > 1, np.arange(4), 0),
        lambda rows: np.asarray(rows["x"]),
        lambda rows: list(rows["x"]),
        lambda rows: float(rows["x"]),
        lambda rows: len(rows["x"]),
        lambda rows: 1 if rows["x"] else 0,
        lambda rows: rows["t"] < "b",
        lambda rows: rows["t"] + "x",
        lambda rows: rows["t"].astype(float),
        lambda rows: np.frexp(rows["x"]),
        lambda rows: np.add(rows["x"], 1, out=np.zeros(4)),
        lambda rows: np.add(rows["x"], 1, where=np.array([True, False, True, False])),
        lambda rows: f"{rows['x']:f}",
        lambda rows: pickle.dumps(rows["x"]),
        lambda rows: hash(rows["x"]),
        lambda rows: rows["nothing"],
    ],
)
def test_what_concerns_other_rows_is_refused(question: Any) -> None:
    with pytest.raises((dp.NotAllowed, dp.InvalidArgument, TypeError)) as refused:  # hash() of Python, and ours
        question(guarded())
    assert getattr(refused.value, "code", "") in (
        "study-row-by-row",
        "study-types",
        "wrong-shape",
        "unknown-column",
        "",
    )
    assert "3.0" not in str(refused.value)


def test_columns_do_not_print() -> None:
    assert repr(guarded()["x"]) == str(guarded()["t"]) == "Column(…)"
    assert "3" not in repr(Sample({"x": np.arange(4.0)}, guarded=True)).replace("4 rows", "")


def test_an_odd_cell_changes_no_error_and_no_other_row() -> None:
    odd: list[Any] = [None, float("nan"), [1, 2], {"a": 1}, b"x"]
    for cell in odd:
        cells = np.empty(3, dtype=object)
        cells[:] = ["a", "b", "a"]
        cells[1] = cell
        rows = GuardedRows({"t": cells})
        assert opened(rows["t"] == "a") == [True, False, True]
        assert opened(rows["t"].isin(["a", "b"])) == [True, False, True]


# --- sums -----------------------------------------------------------------------------------------------------


def test_sums_are_exact_whatever_their_order() -> None:
    values = RNG.random(100_003)
    assert exact_total(values) == exact_total(values[::-1]) == exact_total(values[RNG.permutation(len(values))])
    assert exact_total(values) == int(np.rint(values * QUANTUM.denominator).sum())
    assert exact_total(np.array([True, False, True])) == 2 * QUANTUM.denominator
    assert exact_total(np.array([3, -1, 1], dtype=np.int8)) == 2 * QUANTUM.denominator
    assert exact_total(np.array([0.5], dtype=np.float32)) == QUANTUM.denominator // 2
    assert exact_total(np.array([True]), -1, 1) == QUANTUM.denominator
    assert exact_total(np.array([], dtype=float)) == 0


# --- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"queries": 0}, "out-of-range"),
        ({"queries": 2.5}, "not-whole"),
        ({"queries": 5, "confidence": 1}, "out-of-range"),
        ({"queries": 5, "accuracy": 0}, "out-of-range"),
        ({"queries": 5, "method": "magic"}, "not-an-option"),
        ({"queries": 5, "ledger": "a.ledger"}, "wrong-type"),
        ({"queries": 5, "size": 0}, "out-of-range"),
        ({"queries": 5, "unprotected": "yes"}, "wrong-type"),
    ],
)
def test_bad_arguments(bad: dict[str, Any], code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        dp.adaptive.study(SAMPLE, **bad)


@pytest.mark.parametrize("sample", [{}, [1, 2], {"x": 3}, {"x": [1, 2], "y": [1]}, {"x": []}, None])
def test_bad_samples(sample: Any) -> None:
    with refuses(dp.InvalidArgument, "study-sample"):
        dp.adaptive.study(sample, queries=3)


def test_bad_questions() -> None:
    study = dp.adaptive.study(SAMPLE, queries=3)
    for question, between, code in [
        ("smokes", (0, 1), "study-question"),
        (lambda rows: 3, (0, 1), "study-question"),
        (lambda rows: rows["age"], (2, 1), "ends-out-of-order"),
    ]:
        with refuses(dp.InvalidArgument, code):
            study.mean(question, between=between)
    with refuses(dp.InvalidArgument, "wrong-type"):
        study.mean(lambda rows: rows["age"], between=3)
    answer = study.mean(lambda rows: rows["smokes"])
    with refuses(dp.InvalidArgument, "not-an-option"):
        answer.error(0.95, of="nowhere")
    assert study.remaining == 2


def test_what_is_printed_is_promised() -> None:
    """A width is rounded up, and an interval outward, wherever it is printed."""
    for queries in (5, 20, 100):
        study = dp.adaptive.study(SAMPLE, queries=queries)
        shown = str(study).split("± ")[1].split(",")[0]
        assert study.width <= float(shown) < study.width * 1.01
        planned = str(dp.adaptive.plan(ROWS, queries, methods=["gaussian"]))
        assert f" {shown}" in planned
        answer = study.mean(lambda rows: rows["smokes"])
        low, high = (float(end) for end in str(answer).split("[")[1].split("]")[0].split(", "))
        assert low <= answer.interval[0]
        assert answer.interval[1] <= high < answer.interval[1] + 1e-3
        with refuses(dp.InvalidArgument, "study-too-few-rows"):
            dp.adaptive.study(SAMPLE, queries=queries, accuracy=0.001)


def own_ledger(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=5, delta=1e-6), "protects": REPLACE, **terms}
    return dp.Ledger.open(tmp_path / "a.ledger", **given)


def test_a_sorted_sample_is_split_at_random() -> None:
    study = dp.adaptive.study({"x": np.sort(RNG.random(9000))}, queries=3, unprotected=True)
    assert study.method == "splitting"
    for _ in range(3):
        low, high = study.mean(lambda rows: rows["x"] > 0.5).interval
        assert low <= 0.5 <= high


def test_a_refused_study_does_not_promise_another_on_the_same_rows() -> None:
    study = dp.adaptive.study({"x": np.ones(50)}, queries=1)
    study.mean(lambda rows: rows["x"])
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        study.mean(lambda rows: rows["x"])


def test_people_in_arrays_have_one_row_each(tmp_path: Path) -> None:
    own = own_ledger(tmp_path, protects=dp.person("pid", neighbors="replace"))
    with refuses(dp.InvalidArgument, "study-sample"):
        dp.adaptive.study({"x": np.ones(1000)}, queries=2, ledger=own)
    rows = {"pid": np.repeat(np.arange(2000), 2), "x": np.ones(4000)}
    study = dp.adaptive.study(rows, queries=2, ledger=own)
    assert 1000 < study.size < 2300  # a noisy lower bound: a person who is replaced may have no rows
    assert dp.adaptive.study(rows, queries=2, size=2000, ledger=own).size == 2000
    with refuses(dp.InvalidArgument, "study-ledger"):
        dp.adaptive.leaderboard(np.ones(50), submissions=2, ledger=own)


@pytest.mark.parametrize("held", [True, False], ids=["in memory", "a text file"])
def test_the_number_of_lines_of_a_text_file_is_private(tmp_path: Path, held: bool) -> None:
    """A line that cannot be read is left out, so even under replacement the number of rows may change."""
    own = own_ledger(tmp_path, protects=dp.row(neighbors="replace"))
    path = tmp_path / "rows.csv"
    path.write_text("x\n" + "0.5\n" * 3000)
    table = dp.table({"x": np.full(3000, 0.5)} if held else str(path), ledger=own, version="1")
    study = dp.adaptive.study(table, queries=2)
    assert len(list(own.entries())) == (1 if held else 2)  # the number of rows is paid for
    assert (study.size == 3000) is held or study.size < 3000


def test_rows_are_counted_once_they_are_charged(tmp_path: Path) -> None:
    own = own_ledger(tmp_path, limit=dp.Approx(epsilon=0.01, delta=1e-6), protects=dp.row())
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.adaptive.study({"x": np.ones(500)}, queries=5, ledger=own)
    for bad, code in (
        ({"tolerance": -1}, "out-of-range"),
        ({"accuracy": -1}, "out-of-range"),
        ({"overfits": 0}, "out-of-range"),
        ({"method": "none"}, "not-an-option"),
    ):
        with refuses(dp.InvalidArgument, code):
            dp.adaptive.holdout({"x": np.ones(9)}, {"x": np.ones(500)}, **{"queries": 5, "ledger": own, **bad})  # type: ignore[arg-type]
    assert len(list(own.entries())) == 0


def test_a_table_is_counted_once(tmp_path: Path) -> None:
    own = own_ledger(tmp_path, protects=dp.row())
    table = dp.table({"x": RNG.random(3000)}, ledger=own, version="1")
    first, second = (dp.adaptive.study(table, queries=2) for _ in range(2))
    assert first.size == second.size
    assert len(list(own.entries())) == 3  # one count, two studies


def test_odd_numbers_are_refused() -> None:
    with refuses(dp.InvalidArgument, "out-of-range"):
        AdaptiveMeans.of_noise(0.1, size=10, queries=1).width(1 - Fraction(1, 10**20))
    study = dp.adaptive.study({"x": np.ones(50)}, queries=1)
    with refuses(dp.InvalidArgument, "ends-out-of-order"):
        study.mean(lambda rows: rows["x"], between=(-1e308, 1e308))
    assert not GuardedRows({"t": np.array([b"x"], dtype=object)})["t"].isin([None])._opened()[0]
