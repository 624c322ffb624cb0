"""Means, mixed rows, frequent values and sketches from local reports.

Draws are real randomness; a false alarm has a probability below 1e-7 for each test.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import local, testing
from discreet.exact.rational import exactly
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse, laplace_mean_error, largest_variance
from discreet.mechanisms.reports.local_reports import largest_odds
from discreet.mechanisms.reports.oracle_choice import best_oracle
from discreet.mechanisms.reports.prefix_response import PrefixResponse, SketchResponse

from ..refusing import refuses

SURE = 1 - 1e-8
METHODS = ["hybrid", "piecewise", "duchi", "laplace", "taught"]
methods = pytest.mark.parametrize("method", METHODS)
PROMISES = [dp.Pure(epsilon=0.3), dp.Pure(epsilon=1), dp.Pure(epsilon=4), dp.Approx(epsilon=1, delta=0.05)]


def windows(promise: dp.Approx, grid: int, outputs: int) -> list[Any]:
    """The three discrete laws on a grid that can be listed."""
    wide = replace(WindowResponse.for_guarantee(promise, outputs=outputs), grid=grid)
    coin = largest_odds(promise, lambda odds: WindowResponse(odds=odds, grid=grid))
    return [wide, coin, HybridResponse(wide=wide, coin=coin, share=Fraction(2, 5))]


# --- one number -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_laws_of_a_number_keep_the_promise_and_no_more(promise: dp.Approx) -> None:
    for m in windows(promise, grid=6, outputs=9):
        found, claimed = dp.verify(m), m.guarantee()
        assert found.exact_delta_at(promise.epsilon) <= exactly(promise.delta)
        for epsilon in (0.1, 0.5, 1.0):
            assert claimed.delta_at(epsilon=epsilon) == pytest.approx(float(found.exact_delta_at(epsilon)), abs=1e-12)
        louder = Fraction(102, 100)
        if isinstance(m, WindowResponse):
            more: Any = replace(m, odds=exactly(m.odds) * louder)
        else:
            parts = (replace(part, odds=exactly(part.odds) * louder) for part in (m.wide, m.coin))
            more = HybridResponse(wide=next(parts), coin=next(parts), share=m.share)
        assert dp.verify(more).exact_delta_at(promise.epsilon) > exactly(promise.delta)


def test_the_laws_of_a_number_are_unbiased_with_the_stated_variance() -> None:
    for m in windows(dp.Pure(epsilon=1), grid=12, outputs=7):
        for t, law in m.laws().items():
            told = m.numbers(np.array(list(law)))
            weights = np.array([float(p) for p in law.values()])
            assert weights @ told == pytest.approx(-1 + 2 * t / 12, abs=1e-12)
            assert weights @ told**2 - (weights @ told) ** 2 <= m.variance + 1e-9
            assert np.abs(told).max() <= m.reach + 1e-9


@pytest.mark.slow
def test_the_draws_of_a_number_have_the_law_exactly() -> None:
    for m in windows(dp.Pure(epsilon=1), grid=4, outputs=5):
        for t in (0, 1, 3):
            drawn = testing.exact_law(lambda m=m, t=t: m._draw(np.array([t]))[0])
            assert drawn.law == {y: p for y, p in m.laws()[t].items() if p}


def test_the_worst_variance_is_found_between_the_windows() -> None:
    coin = largest_odds(dp.Pure(epsilon=1), lambda odds: WindowResponse(odds=odds))
    e = math.e
    assert coin.variance == pytest.approx(((e + 1) / (e - 1)) ** 2)  # at the middle of the range
    assert largest_variance(np.array([2.0, 1.0, 2.0])) == pytest.approx(1.25)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(("epsilon", "published"), [(0.5, 16.7), (1, 4.29), (2, 1.04), (4, 0.219)])
def test_the_hybrid_is_at_least_as_good_as_published(epsilon: float, published: float) -> None:
    promise = dp.Pure(epsilon=epsilon)
    hybrid = HybridResponse.for_guarantee(promise)
    assert hybrid.variance <= published * 1.005
    assert hybrid.variance <= min(WindowResponse.for_guarantee(promise).variance, hybrid.coin.variance) * (1 + 1e-9)
    assert (
        local.mean(between=(-1, 1), epsilon=epsilon).stddev
        < local.mean(between=(-1, 1), epsilon=epsilon, method="laplace").stddev
    )


@methods
@pytest.mark.parametrize("delta", [0, 0.05])
def test_means_are_within_their_error(method: str, delta: float) -> None:
    survey = local.mean(between=(10, 30), epsilon=1, delta=delta, method=method)
    data = np.concatenate([np.full(3000, 12.25), np.full(2000, 29.0), [500, -500, math.nan, math.inf]])
    measured = survey.analyze(survey.encode_many(data))
    true = (3000 * 12.25 + 2000 * 29 + 30 + 10 + 20 + 30) / 5004
    assert abs(measured.raw - true) <= float(measured.error(SURE))
    assert abs(measured.raw - true) <= 7 * measured.stddev
    assert 10 <= measured.value <= 30
    low, high = measured.interval(SURE)
    assert low <= true <= high
    assert measured.guarantee.trust == "local"
    assert measured.guarantee.delta_at(epsilon=1) <= delta
    assert "±" in str(measured)
    assert method in str(survey)


@pytest.mark.some_quick(2)
@methods
def test_error_bars_of_means_cover(method: str) -> None:
    survey = local.mean(between=(0, 1), epsilon=1, method=method)
    data, runs = np.linspace(0, 1, 80), 300
    errors = [survey.analyze(survey.encode_many(data)).raw - data.mean() for _ in range(runs)]
    missed = np.sum(np.abs(errors) > float(survey.error(0.8, users=80)))
    assert missed <= stats.binom.isf(1e-8, runs, 0.2)
    spread = np.sum(np.square(errors)) / (survey.stddev**2 / 80)
    assert spread <= stats.chi2.isf(1e-8, runs) * 1.1  # the stated deviation is the worst


def test_the_taught_and_the_tight_laplace_scale() -> None:
    """[T.4.9]: diam/(ε − ln(1−δ)) as taught, diam/(ε − 2 ln(1−δ)) is enough and no more."""
    for epsilon, delta in ((2, 0.5), (0.5, 0.1)):
        taught, tight = (
            float(local.mean(between=(0, 2996), epsilon=epsilon, delta=delta, method=m).mechanism.scale)
            for m in ("taught", "laplace")
        )
        assert taught == pytest.approx(2996 / (epsilon - math.log(1 - delta)), rel=1e-6)
        assert tight == pytest.approx(2996 / (epsilon - 2 * math.log(1 - delta)), rel=1e-6)


def test_chernoff_for_laplace_noise_holds_for_one_report() -> None:
    for sure in (0.5, 0.95, 1 - 1e-6):
        amount = float(laplace_mean_error(1.0, sure, 1))
        assert math.exp(-amount) <= 1 - sure


def test_reports_of_a_number_have_one_form() -> None:
    survey = local.mean(between=(0, 1), epsilon=1)
    assert all(type(survey.encode(v)) is int for v in (0, 1, 0.5, 1e300, -math.inf))
    for value in (math.nan, None, "0.5", [0.5]):
        with refuses(dp.InvalidArgument, "unknown-answer"):
            survey.encode(value)
    with testing.frozen(3):
        high = survey.encode(1)
    with testing.frozen(3):
        assert survey.encode(1e9) == high
    mixed = survey.analyze([*survey.encode_many([0.5] * 50).tolist(), "x", None, -1, 10**9])
    assert (mixed.reports, mixed.rejected) == (50, 4)
    noisy = local.mean(between=(0, 1), epsilon=1, method="laplace")
    assert noisy.analyze([0.5, math.nan, math.inf]).rejected == 2


def test_a_number_is_charged_to_the_device() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=dp.Pure(epsilon=2))
    survey = local.mean(between=(0, 1), epsilon=1, ledger=ledger)
    survey.encode(0.5)
    survey.encode(0.5)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        survey.encode(0.5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"between": (1, 0)}, "ends-out-of-order"),
        ({"between": 5}, "wrong-type"),
        ({"between": (0, math.inf)}, "not-a-number"),
        ({"between": (0, 1), "method": "gauss"}, "not-an-option"),
    ],
)
def test_bad_means_are_refused(arguments: dict[str, Any], code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        local.mean(epsilon=1, **arguments)
    with refuses(dp.InvalidArgument, "too-few-reports"):
        local.mean(between=(0, 1), epsilon=1).analyze([])
    with refuses(dp.InvalidArgument, "too-few-reports"):
        local.mean(between=(0, 1), epsilon=1, method="laplace").analyze(["a"])


# --- rows -------------------------------------------------------------------------------------------------------

COLUMNS: dict[str, Any] = {"city": ["Haifa", "Ljubljana", "Lipica"], "age": (0, 120), "smokes": [True, False]}


def test_columns_share_epsilon_and_add() -> None:
    """[T.4.7]: the columns of one row add."""
    rows = local.rows(COLUMNS, epsilon=3)
    assert all(one.guarantee.epsilon_at(delta=0) == pytest.approx(1) for one in rows.columns.values())
    assert rows.guarantee.epsilon_at(delta=0) <= 3
    assert rows.guarantee.epsilon_at(delta=0) == pytest.approx(3)
    city, smokes = rows.columns["city"], rows.columns["smokes"]
    assert isinstance(city, local.Survey)
    assert isinstance(smokes, local.Survey)
    laws = {
        (x, y): {(a, b): p * q for a, p in city.oracle.laws()[x].items() for b, q in smokes.oracle.laws()[y].items()}
        for x in range(3)
        for y in range(2)
    }
    assert dp.verify(laws).epsilon_at(delta=0) == pytest.approx(2)  # of those two columns, exactly
    weighted = local.rows(COLUMNS, epsilon=3, shares={"city": 4, "age": 1, "smokes": 1})
    assert weighted.columns["city"].guarantee.epsilon_at(delta=0) == pytest.approx(2)
    assert "city" in str(rows)


@pytest.mark.parametrize("delta", [0, 0.03])
def test_rows_are_told_and_counted_column_by_column(delta: float) -> None:
    ledger = dp.Ledger.open(
        ":memory:", protects=dp.row(neighbors="replace"), limit=dp.Approx(epsilon=6.1, delta=0.1), rule="basic"
    )
    rows = local.rows(COLUMNS, epsilon=3, delta=delta, ledger=ledger)
    table = {"city": ["Haifa"] * 3000 + ["Lipica"] * 1000, "age": [40.0] * 4000, "smokes": [True, False] * 2000}
    found = rows.analyze(rows.encode_many(table))
    low, high = found["city"].interval("Haifa", SURE)  # type: ignore[call-arg, arg-type]
    assert low <= 3000 <= high
    assert abs(found["age"].raw - 40) <= float(found["age"].error(SURE))  # type: ignore[operator]
    one = rows.encode({"city": "Haifa", "age": 40, "smokes": True})
    assert set(one) == set(COLUMNS)
    assert ledger.spent["ε"] == pytest.approx(6)
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        rows.encode({"city": "Haifa", "age": 40, "smokes": True})


def test_a_list_of_rows_is_a_table() -> None:
    rows = local.rows(COLUMNS, epsilon=3)
    listed = [{"city": "Haifa", "age": 3, "smokes": False}, {"city": "Lipica"}]
    with testing.frozen(5):
        first = rows.encode_many(listed)
    with testing.frozen(5):
        second = rows.encode_many({"city": ["Haifa", "Lipica"], "age": [3, None], "smokes": [False, None]})
    assert all((first[name] == second[name]).all() for name in COLUMNS)
    reports = [rows.encode(listed[0])] * 2
    assert set(rows.analyze(reports)) == set(COLUMNS)
    with refuses(dp.InvalidArgument, "unknown-answer"):
        rows.encode(listed[1])
    odd = rows.encode_many([*listed, None, "Haifa", 5])  # each is a row whose every cell is missing
    assert [len(column) for column in odd.values()] == [5, 5, 5]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (5, "wrong-type"),
        ({"city": ["Haifa"]}, "survey-columns"),
        ({"city": ["a"], "age": [1, 2], "smokes": [True]}, "survey-columns"),
        ("Haifa", "wrong-type"),
    ],
)
def test_bad_tables_are_refused(table: Any, code: str) -> None:
    rows = local.rows(COLUMNS, epsilon=3)
    with refuses(dp.InvalidArgument, code):
        rows.encode_many(table)
    with refuses(dp.InvalidArgument, "survey-columns"):
        rows.analyze({"city": [1]})
    with refuses(dp.InvalidArgument, "too-few-reports"):
        rows.analyze([{"city": 1}])
    with refuses(dp.InvalidArgument, "wrong-type"):
        rows.encode("Haifa")  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "empty"):
        local.rows({}, epsilon=1)
    with refuses(dp.InvalidArgument, "survey-columns"):
        local.rows(COLUMNS, epsilon=1, shares={"city": 1})


# --- frequent values --------------------------------------------------------------------------------------------


def test_a_prefix_tells_no_more_than_its_oracle() -> None:
    promise = dp.Pure(epsilon=1)
    oracle = LocalHashing.for_guarantee(promise, size=4)
    m = PrefixResponse(oracle=oracle, base=2, length=2, lengths=(1, 2))
    assert dp.verify(m).epsilon_at(delta=0) <= 1
    drawn = testing.exact_law(lambda: m._draw(np.array([2]))[0], most_paths=10**6)
    assert drawn.law == {(g, *told): p for (g, told), p in m.laws()[2].items()}  # type: ignore[misc]


@pytest.mark.slow
def test_frequent_numbers_are_found() -> None:
    """Shares of 30, 20 and 15% of 24,000 at ε = 3: each is over ten standard deviations in its group."""
    search = local.heavy_hitters(bits=24, epsilon=3, top=3)
    rng = np.random.default_rng(2)
    data = np.concatenate(
        [np.full(7200, 2**24 - 1), np.full(4800, 77), np.full(3600, 5_000_000), rng.integers(0, 2**24, 8400)]
    )
    rng.shuffle(data)
    found = search.analyze(search.encode_many(data))
    assert set(found.value) == {2**24 - 1, 77, 5_000_000}
    for value, true in ((2**24 - 1, 7200), (77, 4800), (5_000_000, 3600)):
        low, high = found.interval(value, SURE)
        assert low <= true <= high
    assert found.reports == 24_000
    assert "most frequent" in str(search)


@pytest.mark.slow
def test_frequent_texts_are_found() -> None:
    search = local.heavy_hitters(length=6, epsilon=4, top=2, groups=3)
    assert search.mechanism.lengths == (2, 4, 6)
    data = ["zebra"] * 5000 + ["ant"] * 3000 + ["", "Ox", "antelopes", None] * 250
    found = search.analyze(search.encode_many(data))
    assert set(found.value) == {"zebra", "ant"}
    assert search.analyze([*search.encode_many(data).tolist(), "bad", [9, 0, 0, 0]]).rejected == 2


def test_codes_of_texts_are_cut_and_named() -> None:
    search = local.heavy_hitters(length=4, alphabet="ab", epsilon=1)
    codes = search.places(["ab", "abba", "abbab", "aXb", ""])
    assert [search._named(int(code)) for code in codes] == ["ab", "abba", "abba", "a", ""]
    assert search.places([None, 5, ["a"]]).tolist() == [-1, -1, -1]
    numbers = local.heavy_hitters(bits=4, epsilon=1)
    assert numbers.places([3, 16, -1, 2.5, None, np.int64(7)]).tolist() == [3, -1, -1, -1, -1, 7]
    with refuses(dp.InvalidArgument, "unknown-answer"):
        numbers.encode(None)
    with refuses(dp.InvalidArgument, "unknown-answer"):
        search.encode(5)


@pytest.mark.slow
def test_intervals_of_frequent_values_cover() -> None:
    search = local.heavy_hitters(bits=6, epsilon=2, top=2, groups=2)
    data, runs, missed = np.repeat([9, 40, 3], [300, 200, 100]), 80, 0
    true = {9: 300, 40: 200, 3: 100}
    for _ in range(runs):
        found = search.analyze(search.encode_many(data))
        missed += any(not low <= true.get(v, 0) <= high for v, (low, high) in found.intervals(0.8).items())  # type: ignore[call-overload]
    assert missed <= stats.binom.isf(1e-8, runs, 0.2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "survey-domain"),
        ({"bits": 8, "length": 3}, "survey-domain"),
        ({"bits": 61}, "too-large"),
        ({"length": 13}, "too-large"),
        ({"bits": 0}, "out-of-range"),
        ({"length": 3, "alphabet": "aa"}, "duplicates"),
        ({"bits": 40, "groups": 1}, "too-large"),
    ],
)
def test_bad_searches_are_refused(arguments: dict[str, Any], code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        local.heavy_hitters(epsilon=1, **arguments)
    with refuses(dp.InvalidArgument, "too-few-reports"):
        local.heavy_hitters(bits=20, epsilon=1).analyze([[0, 1, 1, 1]])


# --- sketches ---------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("method", ["auto", "unary", "hadamard", "hashing", "direct"])
def test_sketches_count_texts(method: str) -> None:
    sketch = local.sketch(width=64, hashes=128, epsilon=3, method=method)
    data = ["🙂"] * 4000 + ["🙁"] * 2000 + [f"text {i}" for i in range(2000)]
    reports = sketch.encode_many(data)
    candidates = ["🙂", "🙁", "text 3", "never"]
    counted = sketch.analyze(reports, candidates)
    ends = counted.intervals(SURE)
    for text, true in zip(candidates, (4000, 2000, 1, 0), strict=True):
        assert ends[text][0] <= true <= ends[text][1]
        assert abs(counted.raw[text] - true) < 8 * counted.stddev[text]
    assert sketch.analyze([*reports.tolist(), "bad"], candidates).raw == counted.raw
    assert len(np.atleast_1d(sketch.encode("x"))) == len(np.atleast_1d(sketch.encode("another and longer")))
    assert counted.guarantee.epsilon_at(delta=0) <= 3
    assert "cells" in str(sketch)


@pytest.mark.slow
def test_sketches_are_unbiased_over_seeds() -> None:
    """Collisions are part of the error: over 150 public seeds the mean is within 6 standard errors."""
    data, errors = ["a"] * 300 + ["b"] * 700, []
    for seed in range(150):
        sketch = local.sketch(width=16, hashes=8, epsilon=4, seed=seed)
        errors.append(sketch.analyze(sketch.encode_many(data), ["a"]).raw["a"] - 300)
    assert abs(np.mean(errors)) < 6 * np.std(errors) / math.sqrt(150)


def test_cells_are_those_of_the_family() -> None:
    m = SketchResponse(oracle=best_oracle(dp.Pure(epsilon=1), 10), hashes=5)
    values = np.array([0, 1, 2**30, 2**60 - 1])
    prime = 2**31 - 1
    for j in range(5):
        a, b, c = (int(x) for x in m._functions[:, j])
        slow = [(a * (int(v) >> 30) + b * (int(v) % 2**30) + c) % prime * 10 // prime for v in values]
        assert m.cells(np.full(4, j), values).tolist() == slow
    assert float(m.collide) == pytest.approx(0.1, rel=1e-6)


def test_bad_sketches_are_refused() -> None:
    for bad, code in (
        ({"width": 1}, "out-of-range"),
        ({"hashes": 0}, "out-of-range"),
        ({"method": "x"}, "not-an-option"),
        ({"seed": -1}, "out-of-range"),
    ):
        with refuses(dp.InvalidArgument, code):
            local.sketch(epsilon=1, **bad)  # type: ignore[arg-type]
    sketch = local.sketch(width=8, hashes=4, epsilon=1)
    for candidates, code in (
        ([], "candidates"),
        (["a", "a"], "candidates"),
        ("text", "not-a-column"),
        ([[1]], "candidates"),
        ([1], "candidates"),
    ):
        with refuses(dp.InvalidArgument, code):
            sketch.analyze(sketch.encode_many(["a"]), candidates)
