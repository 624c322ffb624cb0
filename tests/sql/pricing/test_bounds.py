"""Sensitivity: what one person moves, measured by brute force, is at most what is priced.

The rows of all others have one row each, so that no bound touches them: whatever changes is the person's own doing.
"""

from __future__ import annotations

import functools
import struct
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.expressions import Const
from discreet.sql.measuring.compile import Statement
from discreet.sql.measuring.measure import read_measures
from discreet.sql.pricing.price import contribution
from discreet.sql.running.intervals import Columns
from discreet.sql.running.shown import shown_rows
from discreet.sql.schema import Column, Schema, Table

PERSON, SWAPPED = dp.person("pid"), dp.person("pid", neighbors="replace")
ROW, ROW_SWAPPED = dp.row(), dp.row(neighbors="replace")
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b", "c")),
    "j": Column(name="j", type="integer", between=(1, 3)),
    "x": Column(name="x", type="number", between=(-3, 5)),
    "y": Column(name="y", type="integer", between=(0, 7)),
}
TYPES = {"pid": pa.int64(), "k": pa.string(), "j": pa.int64(), "x": pa.float64(), "y": pa.int64()}
MEASURES = (
    "COUNT(*) AS a, COUNT(x) AS b, SUM(x) AS c, AVG(x) AS d, VARIANCE(x) AS e, SUM(y) AS f, STDDEV(y) AS g, "
    "COUNT(*) FILTER (WHERE y > 2) AS h, SUM(x) FILTER (WHERE k = 'a') AS i, "
    "SUM(CASE WHEN y > 2 THEN -3.5 ELSE x END) AS l"
)
PEOPLE = "COUNT(DISTINCT pid) AS o, COUNT(DISTINCT pid) FILTER (WHERE y > 2) AS p"
VALUES = "COUNT(DISTINCT y) AS m, MEDIAN(y) AS q, COUNT(DISTINCT x) FILTER (WHERE j < 3) AS n, MEDIAN(x) AS r"
ALL = [MEASURES, *VALUES.split(", "), PEOPLE]
GROUPS = {
    "": "",
    "k, ": " GROUP BY k",
    "k, j, ": " GROUP BY k, j",
    "CASE WHEN j = 1 THEN 'a' ELSE k END AS kk, ": " GROUP BY kk",
    "y > 2 AS big, ": " GROUP BY big",
    "FLOOR(x / 2) * 2 AS low, y // 3 AS third, ": " GROUP BY low, third",
    "WIDTH_BUCKET(x, -2, 4, 3) AS bucket, ": " GROUP BY bucket",
}
FLOATS = st.one_of(
    st.none(), st.sampled_from([float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -0.0, 5.0, -3.0]),
    st.floats(-6, 8, allow_nan=False),
)  # fmt: skip
INTEGERS = st.one_of(st.none(), st.sampled_from([2**63 - 1, -(2**63), 0, 7]), st.integers(-2, 9))
VALUES_OF_ROW = st.tuples(
    st.sampled_from(["a", "b", "c", "a", "b", "c", "z", "", None]),
    st.one_of(st.integers(1, 3), st.sampled_from([None, 0, 4, 2**63 - 1])),
    FLOATS,
    INTEGERS,
)
MANY = st.lists(VALUES_OF_ROW, max_size=12).map(lambda rows: rows + rows[:3])  # duplicates too
QUICK = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])


_opened: dict[Any, Any] = {}


def table_of(rows):
    return pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(TYPES.items())})


def database(rows, unit, **bounds):
    """A table t of (pid, k, j, x, y), in a database that is opened once and given other rows each time."""
    known = (unit, *sorted(bounds.items()))
    if known not in _opened:
        table = Table(name="t", columns=COLUMNS, person=unit.column, **bounds)
        ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
        _opened[known] = Database(Schema(unit=unit, tables={"t": table}), DuckDB({"t": table_of([])}), ledger)
    _opened[known].engine._connection.register("source t", table_of(rows))
    return _opened[known]


@functools.cache
def planned(text, unit, bounds):
    return database([], unit, **dict(bounds)).plan(text, epsilon=1)


def exact(rows, text, unit, **bounds):
    """The plan, and the exact measures of every cell."""
    plan = planned(text, unit, tuple(sorted(bounds.items())))
    return plan, read_measures(plan.question, database(rows, unit, **bounds).engine, plan.bounds, plan.groups)


def moved(measure, first, second):
    """How far a measure moved over all cells: in all, squared, and in how many cells."""
    if measure.kind == "quantile":
        counts = [(Counter(a.tolist()), Counter(b.tolist())) for a, b in zip(first, second, strict=True)]
        apart = np.array([max(sum((a - b).values()), sum((b - a).values())) for a, b in counts])
    else:
        apart = np.abs(np.asarray(first, dtype=object) - np.asarray(second, dtype=object))
    return int(sum(apart)), int(sum(apart**2)), int(np.count_nonzero(apart))


def check(plan, first, second, unit):
    """No measure moves by more than its price says."""
    for measure, a, b in zip(plan.question.measures, first, second, strict=True):
        bound, (l1, squared, groups) = contribution(measure, plan.bounds, unit), moved(measure, a, b)
        twice = 2 if unit.neighbors == "replace" else 1
        if measure.kind == "quantile":
            per_group, rows = (1, 1) if plan.bounds is None else (plan.bounds.per_group, plan.bounds.rows)
            assert all(abs(len(x) - len(y)) <= per_group for x, y in zip(a, b, strict=True)), measure
            assert l1 <= rows * twice, measure
        else:
            assert l1 <= bound.l1, measure
            assert squared <= bound.squared, measure
        assert groups <= twice * (1 if plan.bounds is None else plan.bounds.groups) or measure.kind in (
            "count",
            "sum",
            "distinct",
        ), measure


def of(person, rows):
    return [(person, *row) for row in rows]


def alone(rows):
    """Others, each with one row; some rows are of nobody."""
    return [(None if n % 4 == 3 else 100 + n, *row) for n, row in enumerate(rows)]


BOUNDS = [
    {"rows_per_person": 1},
    {"rows_per_person": 4, "rows_per_group": 1},
    {"rows_per_person": 3},
    {"rows_per_person": 3, "groups_per_person": 1},
    {"rows_per_person": 4, "groups_per_person": 2},
    {"rows_per_person": 5, "groups_per_person": 2, "rows_per_group": 2},
    {"rows_per_person": 6, "groups_per_person": 3, "rows_per_group": 3},
    {"rows_per_person": 3, "groups_per_person": 2, "rows_per_group": 1},
    {"rows_per_person": 400},
]


def text_of(keys, what):
    return f"SELECT {keys}{what} FROM t{GROUPS[keys]}"


def check_added(mine, others, keys, bounds, what, unit=PERSON):
    text = text_of(keys, what)
    plan, with_person = exact(of(1, mine) + alone(others), text, unit, **bounds)
    _, without = exact(alone(others), text, unit, **bounds)
    check(plan, with_person, without, unit)


def check_replaced(mine, theirs, others, keys, bounds, what, unit=SWAPPED):
    text = text_of(keys, what)
    plan, first = exact(of(1, mine) + alone(others), text, unit, **bounds)
    _, second = exact(of(2, theirs) + alone(others), text, unit, **bounds)
    check(plan, first, second, unit)


FEW, KEYS, SOME_BOUNDS = st.lists(VALUES_OF_ROW, max_size=5), st.sampled_from(list(GROUPS)), st.sampled_from(BOUNDS)
ONE = VALUES_OF_ROW.map(lambda row: [row])
NO_BOUNDS: st.SearchStrategy[dict[str, int]] = st.just({})


@pytest.mark.slow
@given(mine=MANY, others=FEW, keys=KEYS, bounds=SOME_BOUNDS, what=st.just(f"{MEASURES}, {PEOPLE}"))
@settings(QUICK, max_examples=15)
def test_a_person_added_or_removed(mine, others, keys, bounds, what):
    check_added(mine, others, keys, bounds, what)


@pytest.mark.slow
@given(mine=MANY, others=FEW, keys=KEYS, bounds=SOME_BOUNDS, what=st.sampled_from(VALUES.split(", ")))
@settings(QUICK, max_examples=15)
def test_values_of_a_person_added_or_removed(mine, others, keys, bounds, what):
    check_added(mine, others, keys, bounds, what)


@pytest.mark.slow
@given(mine=MANY, theirs=MANY, others=FEW, keys=KEYS, bounds=SOME_BOUNDS, what=st.sampled_from(ALL))
@settings(QUICK, max_examples=12)
def test_a_person_replaced(mine, theirs, others, keys, bounds, what):
    check_replaced(mine, theirs, others, keys, bounds, what)


@given(mine=ONE, others=FEW, keys=KEYS, bounds=NO_BOUNDS, what=st.sampled_from(ALL[:-1]))
@settings(QUICK, max_examples=12)
def test_a_row_added_or_removed(mine, others, keys, bounds, what):
    check_added(mine, others, keys, bounds, what, ROW)


@given(mine=ONE, theirs=ONE, others=FEW, keys=KEYS, bounds=NO_BOUNDS, what=st.sampled_from(ALL[:-1]))
@settings(QUICK, max_examples=12)
def test_a_row_replaced(mine, theirs, others, keys, bounds, what):
    check_replaced(mine, theirs, others, keys, bounds, what, ROW_SWAPPED)


@pytest.mark.slow
@given(mine=MANY, theirs=MANY, others=FEW, keys=KEYS, bounds=SOME_BOUNDS)
@settings(QUICK, max_examples=120)
def test_a_person_changed_in_all_measures(mine, theirs, others, keys, bounds):
    check_added(mine, others, keys, bounds, ", ".join(ALL))
    check_replaced(mine, theirs, others, keys, bounds, ", ".join(ALL))


@pytest.mark.slow
def test_a_thousand_rows_of_one_person():
    """One person in 1000 rows with a bound of 3: at most 3 bounds for EVERY aggregate, COUNT(DISTINCT) included."""
    rows = of(1, [("abc"[n % 3], 1 + n % 3, float(n % 9 - 3), n % 8) for n in range(1000)])
    for keys in GROUPS:
        text = text_of(keys, f"{MEASURES}, {PEOPLE}, {VALUES}")
        plan, first = exact(rows, text, PERSON, rows_per_person=3)
        assert plan.bounds.rows == 3
        _, second = exact([], text, PERSON, rows_per_person=3)
        check(plan, first, second, PERSON)


def test_the_bounds_are_reached():
    """[T.R7.2]: the check above is not empty, as the worst person moves counts and sums by all of the bound."""
    rows = of(1, [("a", 1, 5.0, 7)] * 50)
    plan, first = exact(rows, text_of("k, ", f"{MEASURES}, COUNT(DISTINCT pid) AS o"), PERSON, rows_per_person=4)
    _, second = exact([], plan.question.text, PERSON, rows_per_person=4)
    reached = 0
    for measure, a, b in zip(plan.question.measures, first, second, strict=True):
        bound, (l1, squared, _) = contribution(measure, plan.bounds, PERSON), moved(measure, a, b)
        reached += (l1, squared) == (bound.l1, bound.squared)
    assert reached >= 5


def test_a_null_person_cannot_escape():
    """Rows of nobody are left out, however many there are."""
    nobody = of(None, [("a", 1, 5.0, 7)] * 50)
    text = text_of("k, ", f"{MEASURES}, {PEOPLE}, {VALUES}")
    plan, first = exact(nobody, text, PERSON, rows_per_person=3)
    _, second = exact([], text, PERSON, rows_per_person=3)
    assert all(moved(m, a, b) == (0, 0, 0) for m, a, b in zip(plan.question.measures, first, second, strict=True))


def test_a_join_is_bounded_after_it():
    """A person with 20 rows on either side has 400 pairs, and 3 of them count."""
    table = Table(name="t", columns=COLUMNS, person="pid", rows_per_person=3)
    other = Table(name="u", columns=COLUMNS, person="pid", rows_per_person=3)
    data = table_of(of(1, [("a", 1, 5.0, 7)] * 20))
    ledger = dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
    asked = Database(Schema(unit=PERSON, tables={"t": table, "u": other}), DuckDB({"t": data, "u": data}), ledger)
    plan = asked.plan("SELECT t.k, COUNT(*) AS n, SUM(u.x) AS s FROM t JOIN u ON t.pid = u.pid GROUP BY t.k", epsilon=1)
    count, total = read_measures(plan.question, asked.engine, plan.bounds, plan.groups)
    assert count.tolist() == [3, 0, 0]
    assert total[0] * float(plan.question.measures[1].step) == 15


@pytest.mark.slow
def test_the_choice_of_rows_and_groups_is_spread_out():
    """A surplus is dropped at random: over 60 runs every one of 3 groups is kept at some time. False alarm: 3·(2/3)^60,
    under 1e-9.
    """
    rows = of(1, [("abc"[n % 3], 1, 1.0, n % 8) for n in range(9)])
    asked = database(rows, PERSON, rows_per_person=9, groups_per_person=1)
    plan = asked.plan("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1)
    kept = sum(read_measures(plan.question, asked.engine, plan.bounds, plan.groups)[0] > 0 for _ in range(60))
    assert sum(kept) == 60
    assert all(kept > 0)


# --- sums that are taken once and moved afterwards --------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
RANGES = [(0, 100), (-3, 5), (1000, 1010), (0.1, 0.3), (-7, -2), (1e6, 1e6 + 1), (-1e15, 1e15), (0, 2**40)]
SUMMED = "SELECT COUNT(v) AS n, SUM(v) AS s, AVG(v) AS m, VARIANCE(v) AS w FROM t"


class Ranged:
    """One column v with a range, one person with at most 4 rows (or rows of nobody), and whatever values."""

    def __init__(self, between, kind, unit=PERSON, text=SUMMED):
        self.arrow = pa.float64() if kind == "number" else pa.int64()
        columns = {"pid": Column(name="pid", type="integer"), "v": Column(name="v", type=kind, between=between)}
        bounds = {"rows_per_person": 4} if unit.column else {}
        schema = Schema(unit=unit, tables={"t": Table(name="t", columns=columns, person=unit.column, **bounds)})
        ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=1000, delta=0.1), rule="basic")
        self.database = Database(schema, DuckDB({"t": self.data([])}), ledger)
        self.plan = self.database.plan(text, epsilon=1)

    def data(self, values):
        return pa.table({"pid": pa.array([1] * len(values), pa.int64()), "v": pa.array(values, self.arrow)})

    def measured(self, values):
        self.database.engine._connection.register("source t", self.data(values))
        return read_measures(self.plan.question, self.database.engine, self.plan.bounds, self.plan.groups)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    ("between", "kind"),
    [(ends, "number") for ends in RANGES] + [(ends, "integer") for ends in RANGES if ends != (0.1, 0.3)],
)
def test_a_moved_sum_keeps_its_bound(between, kind):
    """At either end of every range, with fewer rows and more than one may have, rounded up or down: never more than is
    priced, and all of it where all rows are beyond one end. A row without a value adds nothing, and is not moved.
    """
    low, high = between if kind == "number" else map(int, between)
    below, above = (-INF, INF) if kind == "number" else (-(2**63), 2**63 - 1)
    middle = (low + high) / 2 if kind == "number" else (low + high) // 2
    asked = Ranged((low, high), kind)
    measures, none = asked.plan.question.measures, asked.measured([])
    for values in (
        [low], [high], [low] * 4, [high] * 4, [low] * 7, [high] * 7, [below, above] * 3, [low, high, high] * 3,
        [low, low, high] * 3, [middle] * 5, [low, None, high] * 5, [NAN if kind == "number" else None, high] * 5,
    ):  # fmt: skip
        check(asked.plan, asked.measured(values), none, PERSON)
    for beyond, end in ((below, "lowest"), (above, "highest")):
        for measure, found in zip(measures, asked.measured([beyond] * 50), strict=True):
            if measure.kind == "sum" and measure.power == 1:
                assert found[0] == 4 * getattr(measure, end)
    empty = asked.measured([None] * 9)
    assert all(moved(m, a, b) == (0, 0, 0) for m, a, b in zip(measures, empty, none, strict=True))


@pytest.mark.parametrize("between", RANGES)
def test_moments_are_around_one_center(between):
    """The mean and variance of exact measures are the true ones, up to the steps of values and of squares."""
    low, high = between
    values = [low, high, low + (high - low) / 3, high]
    asked = Ranged(between, "number")
    columns = Columns(asked.plan.question, asked.plan.price, asked.measured(values), [()])
    _, total, mean, variance = (columns.value(aggregate)[0] for aggregate in asked.plan.question.aggregates)
    assert total == pytest.approx(sum(values), abs=max(abs(low), abs(high)) * 1e-8)
    assert mean == pytest.approx(np.mean(values), abs=(high - low) * 1e-8)
    assert variance == pytest.approx(np.var(values, ddof=1), abs=(high - low) ** 2 * 1e-4)


@pytest.mark.parametrize("unit", [PERSON, ROW])
def test_sum_and_mean_are_added_up_once(unit):
    """SUM and AVG of one column need one column of whole numbers, one count and one sum of it."""
    asked = Ranged((0, 100), "number", unit, "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM t")
    statement = Statement(asked.plan.question, asked.database.engine, asked.plan.bounds, 1).additive()
    assert [statement.count(part) for part in ("AS v0", "AS v1", "sum(v0)", "count(v0)")] == [1, 0, 1, 1]
    _, count, total, mean = asked.measured([1.0, 50.0, None, 99.5])  # in canonical order
    assert mean[0] == total[0] - 50 * 2**24 * count[0]


@pytest.mark.parametrize("unit", [PERSON, ROW])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_statistics_of_a_file_are_not_believed(tmp_path, unit, kind):
    """A file says that its values lie in the range, and they do not: an engine that believes it would not clamp."""
    asked = Ranged((0, 100), kind, unit)
    path, letter = tmp_path / "t.parquet", "<d" if kind == "number" else "<q"
    pq.write_table(asked.data([1, 50, 1234567]), path, use_dictionary=False, compression=None)
    content = path.read_bytes()
    footer = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    claimed = content[footer:].replace(struct.pack(letter, 1234567), struct.pack(letter, 99))
    assert claimed != content[footer:]
    path.write_bytes(content[:footer] + claimed)
    question = asked.plan.question
    found = read_measures(question, DuckDB({"t": path}), asked.plan.bounds, asked.plan.groups)
    expected = asked.measured([1, 50, 100])
    assert [int(f[0]) for f in found] == [int(e[0]) for e in expected]


@pytest.mark.slow
def test_what_is_only_shown_is_what_the_engine_shows():
    """Columns without arithmetic are the same, in the same order and of the same types, without an engine."""
    rng = np.random.default_rng(3)
    for keys in ("k, ", "k, j, ", "j AS jj, k, "):
        text = f"SELECT {keys}AVG(x) AS d, COUNT(*) AS a, SUM(y) AS f FROM t GROUP BY k{', j' if 'j' in keys else ''}"
        for limit in ("", " LIMIT 2", " LIMIT 2 OFFSET 1", " LIMIT 1 OFFSET 100", " OFFSET 2"):
            plan = planned(text + limit, PERSON, (("rows_per_person", 3),))
            noisy = [rng.integers(-50, 50, plan.groups.count) for _ in plan.question.measures]
            columns = Columns(plan.question, plan.price, noisy, plan.groups.keys())
            places, shown = shown_rows(plan.question, columns)
            others, engine = shown_rows(replace(plan.question, having=Const(True, "boolean")), columns)
            assert places.tolist() == others.tolist()
            assert pa.table(shown) == pa.table(engine)
