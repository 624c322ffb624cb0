"""Whole distributions of a private table: many quantiles, a CDF, common values, made-up rows."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.sql.bounded_rows import BoundedRows
from discreet.tables.bands import bands_for
from discreet.tables.offer import TableRows

from ..refusing import refuses

DECILES = [n / 10 for n in range(1, 10)]
START = datetime.date(2024, 1, 1)


def table_of(values, *, unit=None, rows=1, people=None, limit=None, **columns):
    """A column x (and others) of people with `rows` rows each, under a new ledger."""
    unit = unit or dp.person("pid")
    data = {"pid": [n // rows for n, _ in enumerate(values)] if people is None else people, "x": values, **columns}
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=limit or dp.Approx(epsilon=1000, delta=0.1))
    bounds = {} if unit.column is None else {"rows_per_person": rows}
    return dp.table(pa.table(data), ledger=ledger, **bounds), ledger


def rank_error(values, q, answer):
    """How far the ranks of an answer are from the one asked."""
    below, up_to = sum(v < answer for v in values), sum(v <= answer for v in values)
    wanted = q * len(values)
    return max(0.0, below - wanted, wanted - up_to)


# --- quantiles ------------------------------------------------------------------------------------------------


ASKED = [[0.5], [0.1, 0.5, 0.9], DECILES, [0.9, 0.1, 0.5, 0.3, 0.2], [n / 50 for n in range(1, 50)]]


@pytest.mark.parametrize(
    ("delta", "at"),
    [
        *((0, at) for at in ASKED),
        *(pytest.param(1e-6, at, marks=pytest.mark.slow) for at in ASKED),
    ],
)
def test_quantiles_come_in_the_order_asked_and_within_their_bound(delta, at):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1001, 4000).tolist()
    table, ledger = table_of(values)
    answer = table.quantiles("x", at, between=(0, 1000), epsilon=5, delta=delta)
    assert answer.value.shape == (len(at),)
    accuracy = answer.error(0.95)
    assert max(rank_error(values, q, v) for q, v in zip(at, answer.value, strict=True)) <= accuracy.ranks
    assert sum(float(e.guarantee.epsilon_at(delta=delta or 1e-12)) for e in ledger.entries()) <= 5 * (1 + 1e-6)


@pytest.mark.parametrize("values", [[], [7], [3, 900], [500] * 300, [0] * 300 + [1] * 100])
@pytest.mark.parametrize("at", [[0.25, 0.5, 0.75], DECILES])
def test_few_and_equal_values(values, at):
    table, _ = table_of(pa.array(values, pa.int64()))
    answer = table.quantiles("x", at, between=(0, 1000), epsilon=20)
    assert np.all((answer.value >= 0) & (answer.value <= 1000))
    if len(values) >= 300:
        assert answer.value[len(at) // 2] in (0, 500)


def test_three_quarters_of_zeros_have_a_median_of_zero():
    table, _ = table_of([0] * 3000 + [1] * 1000)
    assert table.median("x", between=(0, 1), epsilon=1).value == 0
    assert table.quantiles("x", [0.2, 0.4, 0.6, 0.9], between=(0, 1), epsilon=2).value.tolist() == [0, 0, 0, 1]


def test_dates_have_quantiles():
    days = [START + datetime.timedelta(days=n % 300) for n in range(6000)]
    table, _ = table_of(days)
    between = (datetime.date(2023, 1, 1), datetime.date(2025, 12, 31))
    for at in ([0.5], [0.2, 0.4, 0.5, 0.6, 0.8]):
        answer = table.quantiles("x", at, between=between, epsilon=5)
        assert all(isinstance(day, datetime.date) for day in answer.value)
        assert abs((answer.value[len(at) // 2] - (START + datetime.timedelta(days=150))).days) < 20
    assert abs((table.median("x", between=between, epsilon=5).value - START).days - 150) < 20


def test_the_range_of_quantiles_can_be_found():
    table, ledger = table_of([float(n % 100) for n in range(5000)])
    answer = table.quantiles("x", DECILES, between="auto", epsilon=4)
    assert abs(answer.value[4] - 50) < 10
    assert [entry.asked.split()[0] for entry in ledger.entries()] == ["the", "how", "quantiles"]


@pytest.mark.slow
def test_the_intervals_of_many_quantiles_hold_together():
    """2000 releases: all nine true deciles lie inside at least 95% of the time; false alarm under 1e-6."""
    rng = np.random.default_rng(3)
    values = np.sort(rng.integers(0, 1001, 3000))
    true = [values[int(np.ceil(q * len(values))) - 1] for q in DECILES]
    made = bands_for(dp.Pure(epsilon=8), space=dp.Integers(0, 1000), quantiles=DECILES, rows=2900, unit=dp.row())
    held = 0
    for _ in range(2000):
        lines = made.read(made.mechanism._draw(values), dp.Integers(0, 1000))
        held += all(low <= t <= high for t, (low, _, high) in zip(true, lines, strict=True))
    assert held >= 1900 - 5 * np.sqrt(2000 * 0.05 * 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(("largest", "least"), [(10**5, "mean"), (10**9, "bound")])
def test_intervals_of_a_recursion_reach_as_far_as_the_ranks_that_are_promised(largest, least):
    for rows in (100, 3000, 100_000):
        made = bands_for(
            dp.Pure(epsilon=1),
            space=dp.Integers(0, largest),
            quantiles=[0.1, 0.5, 0.9],
            rows=rows,
            unit=dp.row(),
            least=least,
        )
        assert isinstance(made.mechanism, dp.mechanisms.Quantiles)
        listed = [float(q) for q in made.mechanism.quantiles]
        for low, middle, high in made.places:
            for end in (low, high):
                if end >= 0:
                    assert abs(listed[end] - listed[middle]) * rows >= float(made.mechanism.error(0.95)) * (1 - 1e-9)


def test_rows_are_read_once_for_their_number_and_their_quantiles(monkeypatch):
    table, ledger = table_of(list(range(100)) * 5, rows=5)
    reads, original = [], BoundedRows.values
    monkeypatch.setattr(BoundedRows, "values", lambda self: (reads.append(self), original(self))[1])
    answer = table.quantiles("x", DECILES, between=(0, 99), epsilon=1)
    assert (len(reads), ledger.count) == (1, 2)
    assert np.all((answer.intervals[:, 0] <= answer.value) & (answer.value <= answer.intervals[:, 1]))


def test_thirds_are_quantiles():
    """A quantile is rounded to one part in a million, however many there are, and in groups."""
    table, _ = table_of(list(range(100)) * 5, y=["a"] * 500)
    for at in ([1 / 3], [1 / 3, 2 / 3]):
        assert table.quantiles("x", at, between=(0, 99), epsilon=20).value.shape == (len(at),)
    by = {"y": ["a"]}
    assert table.quantiles("x", [1 / 3, 2 / 3], between=(0, 99), epsilon=20, by=by).value["a"].shape == (2,)


@pytest.mark.parametrize("at", [[], [0], [1], [1.5], ["a"], [0.5, 0.5, 0.5, 0.5]])
def test_what_is_no_quantile_is_told(at):
    table, _ = table_of([1, 2, 3])
    if len(at) == 4:
        assert table.quantiles("x", at, between=(0, 9), epsilon=1).value.shape == (4,)
        return
    with pytest.raises(dp.DiscreetError):
        table.quantiles("x", at, between=(0, 9), epsilon=1)


# --- CDF --------------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("unit", [dp.person("pid"), dp.row(), dp.row(neighbors="replace")])
def test_a_cdf_never_falls_and_is_within_its_error(delta, unit):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 121, 5000).tolist()
    table, _ = table_of(values, unit=unit)
    cdf = table.cdf("x", between=(0, 120), step=1, epsilon=3, delta=delta)
    true = np.array([sum(v <= point for v in values) for point in range(121)]) / len(values)
    assert cdf.grid.tolist() == list(range(121))
    assert np.all(np.diff(cdf.value) >= 0)
    assert 0 <= cdf.value[0] <= cdf.value[-1] <= 1
    assert np.abs(cdf.value - true).max() <= float(cdf.error(0.999))
    count, off = cdf.between(20, 60, confidence=0.9999)
    assert abs(count - sum(20 < v <= 60 for v in values)) <= off
    assert abs(cdf.quantiles([0.5])[0] - 60) < 10
    assert cdf.up_to(-1) == 0
    assert "CDF on 121 points" in str(cdf)


def test_without_noise_a_cdf_is_exact():
    values = [0.05, 0.1, 0.1000001, 0.3, 0.95, 1.1, 7.0, -3.0, None, float("nan")]
    table, _ = table_of(values)
    with testing.no_noise():
        cdf = table.cdf("x", between=(0, 1), step=0.1, epsilon=1)
    known = [min(max(v, 0), 1) for v in values if v is not None and v == v]
    assert cdf.counts == pytest.approx([sum(v <= round(0.1 * k, 9) for v in known) for k in range(11)])


def test_days_and_a_step_that_does_not_divide():
    table, _ = table_of([START + datetime.timedelta(days=n % 30) for n in range(600)])
    with testing.no_noise():
        cdf = table.cdf("x", between=(START, START + datetime.timedelta(days=30)), step=7, epsilon=1)
    assert cdf.grid.tolist() == [START + datetime.timedelta(days=n) for n in (0, 7, 14, 21, 28, 30)]
    assert cdf.counts.tolist() == [20.0 * n for n in (1, 8, 15, 22, 29, 30)]


@pytest.mark.parametrize(
    "wrong", [{"between": "auto"}, {"between": (5, 1)}, {"step": 0}, {"step": -1}, {"step": 1e-9}, {"between": 7}]
)
def test_a_grid_that_is_none_is_told(wrong):
    table, _ = table_of([1, 2, 3])
    with pytest.raises(dp.DiscreetError):
        table.cdf("x", **({"between": (0, 9), "step": 1, "epsilon": 1} | wrong))


# --- common values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [{"g": ["p", "q"]}, "g"])
def test_a_cdf_of_each_group(by):
    values = [*range(100), *range(0, 100, 2)] * 20
    table, _ = table_of(values, g=["p" if n % 150 < 100 else "q" for n in range(len(values))])
    found = table.cdf("x", between=(0, 100), step=10, by=by, epsilon=20, delta=1e-6)
    assert set(found.value) == {"p", "q"}
    for shares in found.value.values():
        assert len(shares) == 11
        assert np.all(np.diff(shares) >= 0)
        assert shares[-1] == pytest.approx(1)
        assert shares[5] == pytest.approx(0.51, abs=0.02)
    assert float(found.error(0.95)) < 0.02
    with pytest.raises(dp.InvalidArgument, match="already"):
        table.cdf("x", between=(0, 100), by="x", epsilon=1, delta=1e-6)


def test_the_most_common_values_of_each_group():
    rows = [("p", "a")] * 60 + [("p", "b")] * 30 + [("q", "b")] * 50 + [("q", "c")] * 20 + [("q", "elsewhere")] * 90
    groups, values = zip(*rows, strict=True)
    table, _ = table_of(values, g=groups)
    asked = {"choices": ["a", "b", "c"], "epsilon": 5}
    chosen = table.most_common("x", by={"g": ["p", "q"]}, **asked)
    assert chosen.value == {"p": "a", "q": "b"}
    assert chosen.error(0.95).of == "score"
    assert table.most_common("x", by={"g": ["p", "q"]}, k=2, **asked).value == {"p": ["a", "b"], "q": ["b", "c"]}
    found = table.most_common("x", by="g", epsilon=5, delta=1e-6)
    assert found.value == {"p": "a", "q": "elsewhere"}
    with pytest.raises(dp.InvalidArgument, match="already"):
        table.most_common("x", by="x", **asked)


def test_the_most_common_values_come_best_first():
    values = ["a"] * 500 + ["b"] * 300 + ["c"] * 100
    table, _ = table_of(values)
    assert table.most_common("x", choices=["c", "b", "a", "d"], epsilon=5).value == "a"
    assert table.most_common("x", choices=["c", "b", "a", "d"], k=3, epsilon=5).value == ["a", "b", "c"]
    with pytest.raises(dp.InvalidArgument):
        table.most_common("x", choices=["a", "b"], k=3, epsilon=1)


@pytest.mark.parametrize(
    ("limit", "kind"), [(dp.Pure(epsilon=10), "PermuteAndFlip"), (dp.ZeroConcentrated(rho=1), "Exponential")]
)
def test_the_choice_follows_what_the_ledger_counts(limit, kind):
    table, ledger = table_of(["a", "b"], limit=limit)
    table.most_common("x", choices=["a", "b"], epsilon=0.1)
    assert ledger.entries()[0].mechanism.startswith(kind)


# --- made-up rows -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_made_up_rows_hold_declared_values_only():
    rng = np.random.default_rng(4)
    count = 3000
    ages = [None if n % 50 == 0 else int(a) for n, a in enumerate(rng.integers(-5, 140, count))]
    table, ledger = table_of(
        ages,
        y=rng.choice(["a", "b", "elsewhere"], count).tolist(),
        f=rng.normal(0, 100, count).tolist(),
        b=(rng.random(count) < 0.5).tolist(),
        d=[START + datetime.timedelta(days=int(n)) for n in rng.integers(0, 300, count)],
    )
    end = START + datetime.timedelta(days=100)
    columns = {"x": (0, 120), "y": ["a", "b"], "f": (-50, 50), "b": [True, False], "d": (START, end)}
    made = table.synthesize(columns, epsilon=2, delta=1e-6, rows=500)
    assert len(made) == made.table.num_rows == 500
    assert made.table.column_names == list(columns)
    rows = made.table.to_pylist()
    assert all(0 <= row["x"] <= 120 and isinstance(row["x"], int) for row in rows)
    assert {row["y"] for row in rows} <= {"a", "b"}
    assert all(-50 <= row["f"] <= 50 for row in rows)
    assert {row["b"] for row in rows} == {True, False}
    assert all(START <= row["d"] <= end for row in rows)
    assert len(ledger.entries()) == 1
    assert float(made.error(0.95)) > 0
    assert made.error(0.95, of="x").amount is not None
    assert made.to_pandas().shape == (500, 5)
    assert made.to_polars().shape == (500, 5)
    assert made["x"].shape == (500,)
    assert "synthetic rows" in str(made)


@pytest.mark.slow
def test_made_up_columns_follow_the_true_ones():
    rng = np.random.default_rng(5)
    kinds = rng.choice(["a", "b"], 20_000, p=[0.8, 0.2])
    values = np.where(kinds == "a", rng.integers(0, 30, 20_000), rng.integers(60, 100, 20_000))
    table, _ = table_of(values.tolist(), y=kinds.tolist())
    made = table.synthesize({"x": (0, 99), "y": ["a", "b"]}, epsilon=2, delta=1e-6)
    frame = made.to_pandas()
    assert abs(len(frame) - 20_000) < 500
    assert abs((frame.y == "a").mean() - 0.8) < 0.02
    assert frame[frame.y == "a"].x.median() < 35
    assert frame[frame.y == "b"].x.median() > 55


@pytest.mark.parametrize("values", [[], [5], [5] * 50])
def test_made_up_rows_of_few(values):
    table, _ = table_of(pa.array(values, pa.int64()))
    made = table.synthesize({"x": (0, 9)}, epsilon=1, delta=1e-6, rows=20)
    assert len(made) == 20


def test_making_up_rows_needs_a_delta_and_columns():
    table, ledger = table_of([1, 2])
    for columns, delta in (({"x": (0, 9)}, 0), ({}, 1e-6), ({"nothing": (0, 9)}, 1e-6), ({"x": (9, 0)}, 1e-6)):
        with pytest.raises(dp.DiscreetError):
            table.synthesize(columns, epsilon=1, delta=delta)
    assert ledger.count == 0


def test_progress_is_told():
    table, _ = table_of([n % 10 for n in range(200)], y=["ab"[n % 2] for n in range(200)])
    lines = []
    table.synthesize({"x": (0, 9), "y": ["a", "b"]}, epsilon=1, delta=1e-6, progress=lines.append)
    assert lines


# --- people -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["quantiles", "cdf", "synthesize"])
def test_one_person_with_many_rows_has_as_many_as_may_be(method, monkeypatch):
    """What is read: 3 of the 1000 rows of one person, and no row of nobody."""
    table, _ = table_of([5] * 1000 + [7] * 4, rows=3, people=[1] * 1000 + [2, 3, None, None])
    read = []
    original = TableRows.drawing
    monkeypatch.setattr(TableRows, "drawing", lambda *a, **k: (read.append(k["read"]), original(*a, **k))[1])
    given = {"between": (0, 9), "epsilon": 1} if method != "synthesize" else {"epsilon": 1, "delta": 1e-6}
    first = {"quantiles": ("x", DECILES), "cdf": ("x",), "synthesize": ({"x": (0, 9)},)}[method]
    getattr(table, method)(*first, **given)
    assert len(read[0]()) == 3 + 2


@pytest.mark.parametrize("method", ["quantiles", "cdf", "most_common", "synthesize"])
def test_the_same_asked_again_is_free_and_another_is_not(method):
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=100, delta=0.1))
    data = pa.table({"pid": list(range(200)), "x": [n % 10 for n in range(200)]})
    table = dp.table(data, ledger=ledger, rows_per_person=1, version="1")
    asked = {
        "quantiles": lambda e: table.quantiles("x", DECILES, between=(0, 9), epsilon=e),
        "cdf": lambda e: table.cdf("x", between=(0, 9), epsilon=e),
        "most_common": lambda e: table.most_common("x", choices=list(range(10)), epsilon=e),
        "synthesize": lambda e: table.synthesize({"x": (0, 9)}, epsilon=e, delta=1e-6, rows=20),
    }[method]
    first, again, other = asked(1), asked(1), asked(2)
    assert (first.replayed, again.replayed, other.replayed) == (False, True, False)
    assert np.array_equal(first.value, again.value)


# --- what a review found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 1},
        {"least": "x"},
        {"confidence": 2},
        {"between": (100, 0)},
        {"at": [1e-9, 0.2, 0.3, 0.4]},
        {"at": 0.5},
    ],
)
def test_many_quantiles_are_refused_before_anything_is_spent(given):
    table, ledger = table_of(list(range(100)), limit=dp.Pure(epsilon=0.5))
    asked = {"at": [0.1, 0.2, 0.3, 0.4], "between": (0, 100), "epsilon": 0.1} | given
    with pytest.raises(dp.DiscreetError):
        table.quantiles("x", **asked)
    assert ledger.count == 0


def test_values_that_are_no_numbers_are_not_counted_for_intervals():
    table, _ = table_of([n / 2 for n in range(201)] + [float("nan")] * 5000)
    answer = table.quantiles("x", [0.1, 0.3, 0.5, 0.7, 0.9], between=(0.0, 100.0), epsilon=2)
    assert all(
        low <= q * 100 <= high for q, (low, high) in zip((0.1, 0.3, 0.5, 0.7, 0.9), answer.intervals, strict=True)
    )


def test_an_interval_holds_the_half_step_of_its_grid():
    table, _ = table_of([52345.67] * 500)
    for answer in (
        table.median("x", between=(0.0, 1e9), epsilon=20),
        table.quantiles("x", [0.5], between=(0.0, 1e9), epsilon=20),
        table.quantiles("x", [0.2, 0.4, 0.5, 0.6], between=(0.0, 1e9), epsilon=20),
    ):
        values = np.atleast_1d(answer.value)
        assert np.abs(values - 52345.67).max() <= float(answer.error(0.95))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "epsilon", "confidence"),
    [
        (10, 1, 0.99),
        pytest.param(2, 1, 0.99, marks=pytest.mark.slow),
        pytest.param(50, 1, 0.9, marks=pytest.mark.slow),
    ],
)
def test_ranges_of_a_cdf_are_covered(points, epsilon, confidence):
    """Releases with Laplace noise: no more miss than may, but for a chance under 1e-6."""
    values = [n % points for n in range(400)]
    missed, (table, _) = 0, table_of(values)
    releases = 100 if points == 10 else 300
    for _ in range(releases):
        cdf = table.cdf("x", between=(0, points - 1), step=1, epsilon=epsilon)
        count, off = cdf.between(0, points // 2, confidence=confidence)
        missed += abs(count - sum(0 < v <= points // 2 for v in values)) > off
    allowed = releases * (1 - confidence)
    assert missed <= allowed + 5 * np.sqrt(allowed) + 2


def test_values_beyond_the_ends_of_a_cdf_are_at_the_ends():
    for values in ([10**12, -(10**12), 5], [float("inf"), float("-inf"), 5.0], [1e30, -1e30, 5.0]):
        table, _ = table_of(values * 10)
        with testing.no_noise():
            cdf = table.cdf("x", between=(0, 10), step=1, epsilon=1)
        assert cdf.counts.tolist() == [10.0] * 5 + [20.0] * 5 + [30.0]


def test_moments_have_a_cdf_and_are_made_up():
    days = [datetime.datetime(2024, 1, 1 + n % 20, 13, 30) for n in range(400)]
    table, _ = table_of(pa.array(days, pa.timestamp("us")))
    ends = (datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 31))
    with testing.no_noise():
        assert table.cdf("x", between=ends, step=10, epsilon=1).counts[-1] == 400
    assert len(table.synthesize({"x": ends}, epsilon=1, delta=1e-6, rows=10)) == 10


def test_listed_dates_are_choices():
    days = [START, START + datetime.timedelta(days=1)]
    table, _ = table_of([days[n % 2] for n in range(500)])
    made = table.synthesize({"x": days}, epsilon=5, delta=1e-6)
    assert set(made.table.column("x").to_pylist()) == set(days)
    assert abs(len(made) - 500) < 100


@pytest.mark.slow
def test_wide_ranges_and_a_large_epsilon():
    table, _ = table_of([5, 10**8, 7 * 10**8] * 50, limit=dp.Approx(epsilon=100_000, delta=0.1))
    answer = table.quantiles("x", [0.1, 0.2, 0.5, 0.9], between=(0, 10**9), epsilon=5)
    assert answer.value.shape == (4,)
    assert table.cdf("x", between=(0, 10**9), step=10**7, epsilon=3000).counts[-1] == pytest.approx(150, abs=1)


def test_a_made_up_table_has_its_types_without_rows_and_is_the_same_again():
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=100, delta=0.1))
    data = pa.table({"pid": [1], "x": [1.5], "y": ["a"], "d": [START]})
    table = dp.table(data, ledger=ledger, rows_per_person=1, version="1")
    columns = {"x": (0, 9), "y": ["a", "b"], "d": [START]}
    empty = table.synthesize(columns, epsilon=1, delta=1e-6, rows=0)
    assert empty.table.schema.types == [pa.float64(), pa.string(), pa.date32()]
    first, again = (table.synthesize(columns, epsilon=2, delta=1e-6, rows=50) for _ in range(2))
    assert again.replayed
    assert first.table.equals(again.table)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda **w: dp.mechanisms.SmallDatabase(**w, size=2**62, rows=2, rate=0.5), "out-of-range"),
        (lambda **w: dp.mechanisms.SmallDatabase(**w, size=2**50, rows=2**12, rate=0.5), "too-large"),
        (
            lambda **w: dp.mechanisms.MultiplicativeWeights.for_guarantee(dp.Pure(epsilon=1), **w, size=2**62),
            "out-of-range",
        ),
        (
            lambda **w: dp.mechanisms.OnlineMultiplicativeWeights.for_guarantee(
                dp.Pure(epsilon=1), **w, size=2**62, questions=2, updates=1
            ),
            "out-of-range",
        ),
    ],
)
def test_sizes_whose_counts_would_wrap_are_refused(make, code):
    with refuses(dp.InvalidArgument, code):
        make(workload=dp.queries.Workload.marginals(dp.queries.Domain({"a": 2}), 1))


@pytest.mark.slow
def test_a_text_file_has_the_types_of_its_ranges(tmp_path):
    """And columns may be called as the engine's own are."""
    days = (START, START + datetime.timedelta(days=59))
    lines = [
        f"{n},{n % 100},{START + datetime.timedelta(days=n % 60)},{n % 7},{n % 5},{'HL'[n % 2]}" for n in range(2000)
    ]
    (tmp_path / "v.csv").write_text("\n".join(["pid,age,day,draw,place,person", *lines]))
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=100, delta=0.1))
    table = dp.table(tmp_path / "v.csv", ledger=ledger, rows_per_person=1)
    assert abs(table.cdf("age", between=(0, 120), epsilon=5).quantiles([0.5])[0] - 50) < 10
    assert abs((table.median("day", between=days, epsilon=5).value - START).days - 30) < 10
    assert isinstance(table.quantiles("day", [0.2, 0.4, 0.6, 0.8], between=days, epsilon=5).value[0], datetime.date)
    assert table.cdf("day", between=days, step=7, epsilon=5).grid[0] == START
    columns = {"draw": (0, 9), "place": (0, 9), "person": ["H", "L"], "day": days}
    made = table.synthesize(columns, epsilon=5, delta=1e-6)
    assert made.table.column_names == list(columns)
    assert abs(len(made) - 2000) < 200


def test_lists_are_not_made_up():
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10, delta=0.1))
    table = dp.table(pa.table({"x": [1, 2], "tags": [["a"], ["b"]]}), ledger=ledger)
    with refuses(dp.InvalidArgument, "unknown-column"):
        table.synthesize({"tags": ["a", "b"]}, epsilon=1, delta=1e-6)
    table = dp.table(pa.table({"raw": [b"a", b"b"]}), ledger=ledger)
    with refuses(dp.InvalidArgument, "column-type"):
        table.synthesize({"raw": ["a", "b"]}, epsilon=1, delta=1e-6)
    assert ledger.count == 0
