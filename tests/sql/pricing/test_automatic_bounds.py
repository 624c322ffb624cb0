"""Bounds that are found privately ("auto"): what one unit moves, what they cost, and what is found."""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import NotAllowed
from discreet.sql.pricing import automatic_bounds
from discreet.sql.schema import Column, Schema, Table

from ...refusing import refuses
from ..connecting import connected

PERSON, SWAPPED, ROW = dp.person("pid"), dp.person("pid", neighbors="replace"), dp.row()
QUICK = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TYPES = {
    "pid": pa.int64(),
    "k": pa.string(),
    "x": pa.float64(),
    "y": pa.int64(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
}
KINDS = {"pid": "integer", "k": "text", "x": "number", "y": "integer", "d": "date", "t": "timestamp"}
DAY = datetime.date(2020, 5, 17)
GROUPED = "SELECT k, COUNT(*) AS n, SUM(y) AS s FROM t GROUP BY k"


def table_of(rows):
    return pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(TYPES.items())})


def database(rows, unit=PERSON, limit=1000, **bounds):
    declared = {"k": {"choices": ("a", "b", "c")}} | {name: {"between": "auto"} for name in "xydt"}
    columns = {name: Column(name=name, type=kind, **declared.get(name, {})) for name, kind in KINDS.items()}
    bounds = {"rows_per_person": 3} | bounds if unit.column else {}
    table = Table(name="t", columns=columns, person=unit.column, version="1", **bounds)
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=limit, delta=0.1), rule="basic")
    return Database(Schema(unit=unit, tables={"t": table}), DuckDB({"t": table_of(rows)}), ledger)


def row(pid, k="a", x=1.0, y=1, d=DAY):
    return pid, k, x, y, d, None if d is None else datetime.datetime(d.year, d.month, d.day)


VALUES = st.tuples(
    st.sampled_from(["a", "b", "c", "z", None]),
    st.one_of(st.none(), st.floats(), st.floats(-100, 100)),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)),
    st.one_of(st.none(), st.dates()),
)
MANY = st.lists(VALUES, max_size=8)


# --- one unit -------------------------------------------------------------------------------------------------


def read(rows, unit, text, **bounds):
    asked = database(rows, unit, **bounds)
    plan = asked.plan(text, epsilon=1)
    return plan.automatic, [found.read(asked.engine) for found in plan.automatic]


def check_moved(first, second, unit, text, **bounds):
    findings, before = read(first, unit, text, **bounds)
    _, after = read(second, unit, text, **bounds)
    for found, a, b in zip(findings, before, after, strict=True):
        bound = found.sensitivity if isinstance(found.sensitivity, list) else [found.sensitivity]
        parts = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        for (x, y), claimed in zip(parts, bound, strict=True):
            assert np.abs(x - y).sum() <= claimed.exact


@given(mine=MANY, others=MANY, column=st.sampled_from("xy"))
@QUICK
def test_a_person_moves_one_bin_by_one(mine, others, column):
    """Whatever the rows: a person has one value, others one row each."""
    rest = [row(100 + n, *values) for n, values in enumerate(others)]
    own = [row(1, *values) for values in mine]
    check_moved(own + rest, rest, PERSON, f"SELECT AVG({column}) AS m FROM t")


def test_what_is_claimed_of_one_person_is_reached_and_costs_its_share():
    """Two bins of somebody who is replaced; all rows of somebody in three groups."""
    check_moved([row(1, y=1)], [row(2, y=1000)], SWAPPED, "SELECT AVG(y) AS m FROM t")
    own, rest = [row(1, k) for k in "abc"], [row(2)]
    check_moved(own + rest, rest, PERSON, GROUPED, groups_per_person="auto")
    findings, _ = read(rest, PERSON, GROUPED, groups_per_person="auto")
    assert [found.guarantee.largest_loss <= Fraction(1, 10) for found in findings] == [True] * len(findings)
    assert any("groups_per_person" in found.what for found in findings)


@pytest.mark.slow
@given(mine=MANY, theirs=MANY)
@QUICK
def test_a_person_who_is_replaced_moves_two_bins(mine, theirs):
    text = "SELECT AVG(y) AS m, AVG(d - DATE '2020-01-01') AS q FROM t"
    check_moved([row(1, *v) for v in mine], [row(2, *v) for v in theirs], SWAPPED, text)


@pytest.mark.slow
@given(one=VALUES, others=MANY)
@QUICK
def test_a_row_moves_one_bin(one, others):
    rest = [row(0, *values) for values in others]
    check_moved([*rest, row(0, *one)], rest, ROW, "SELECT AVG(x) AS m, AVG(y) AS n FROM t")


@pytest.mark.slow
@given(mine=MANY, others=MANY)
@QUICK
def test_a_person_moves_one_number_of_groups_by_one(mine, others):
    rest = [row(100 + n, *values) for n, values in enumerate(others)]
    own = [row(1, *values) for values in mine]
    check_moved(own + rest, rest, PERSON, GROUPED, groups_per_person="auto")


@pytest.mark.slow
@given(keys=st.lists(st.integers(0, 3), max_size=8), one=st.integers(0, 3))
@QUICK
def test_a_row_moves_the_largest_frequency_by_one(keys, one):
    counts = []
    for listed in (keys, [*keys, one]):
        columns = {"k": Column(name="k", type="integer", frequency="auto")}
        schema = Schema(unit=ROW, tables={name: Table(name=name, columns=columns) for name in "lr"})
        data = {name: pa.table({"k": pa.array(listed, pa.int64())}) for name in "lr"}
        ledger = dp.Ledger.open(":memory:", protects=ROW, limit=dp.Pure(epsilon=10))
        asked = Database(schema, DuckDB(data), ledger)
        counts.append(
            [
                f.read(asked.engine)[0]
                for f in asked.plan("SELECT COUNT(*) AS n FROM l JOIN r USING (k)", epsilon=1).automatic
            ]
        )
    assert all(0 <= after - before <= 1 for before, after in zip(*counts, strict=True))


# --- what is found --------------------------------------------------------------------------------------------


def found_for(column, values, epsilon=10):
    asked = database([row(n, **{column: value}) for n, value in enumerate(values)])
    [found] = [automatic_bounds.column_bound(asked.schema, "between", ("t", column), Fraction(epsilon))]
    return found.value(found.mechanism._draw(found.read(asked.engine)))


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("y", [5] * 60 + [900] * 60, (4, 1024)),
        ("y", [0] * 60 + [1] * 60, (0, 2)),
        ("y", [-3] * 60 + [5] * 60, (-4, 8)),
        ("y", [-3] * 60 + [-40] * 60, (-64, -2)),
        ("x", [0.3] * 60 + [70.0] * 60, (0.25, 128)),
        ("x", [1e300, float("inf")] * 60, (2**39, 2**40)),
        ("x", [1e-9] * 60 + [3.0] * 60, (0, 4)),
        ("d", [datetime.date(2011, 7, 1)] * 60 + [DAY] * 60, (datetime.date(2011, 1, 1), datetime.date(2020, 12, 31))),
        ("d", [datetime.date(1, 1, 1)] * 60, (datetime.date(1900, 1, 1), datetime.date(1900, 12, 31))),
    ],
)
def test_ranges(column, values, expected):
    """120 people, at an ε where noise reaches 60 with probability under e^-300."""
    assert found_for(column, values) == expected


@pytest.mark.parametrize("column", ["x", "y", "d"])
def test_too_few_people_find_no_range(column):
    """Whatever the few have. Then nothing is answered: an answer within another range would be wrong."""
    for values in ([], [None] * 50):
        with refuses(NotAllowed, "too-few-people"):
            found_for(column, values)
    asked = database([])
    with refuses(NotAllowed, "too-few-people"):
        asked.sql("SELECT COUNT(*) AS n, AVG(x) AS m FROM t", epsilon=1)
    assert [str(entry.guarantee) for entry in asked.ledger.entries()] == ["ε = 0.1"]


def test_all_zeros_find_the_default():
    assert found_for("y", [0] * 80) == (0, 1)


def test_numbers_that_are_not_there_are_in_no_bin():
    asked = database([row(n, x=None, y=None, d=None) for n in range(5)] + [row(9, x=float("nan"))])
    for column in "xydt":
        found = automatic_bounds.column_bound(asked.schema, "between", ("t", column), Fraction(1))
        assert found.read(asked.engine).sum() == (1 if column != "x" else 0)


def test_groups_that_lower_the_whole_error():
    """Everyone is in three groups. With little noise all three are worth having; with much, any number may be found."""
    rows = [row(n, k=k) for n in range(300) for k in "abc"]
    chosen = {}
    for epsilon in (0.001, 50):
        answer = database(rows, groups_per_person="auto", rows_per_group=1).sql(
            "SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=epsilon
        )
        chosen[epsilon] = answer.notes[0]
    assert chosen[50].endswith("groups of one person: 3.")
    assert (
        database(rows, groups_per_person="auto")
        .plan(GROUPED, epsilon=1)
        .automatic[-1]
        .what.startswith("groups_per_person")
    )


@pytest.mark.slow
def test_the_least_sum_of_loss_and_noise():
    """The bound is chosen on released numbers, by a price that is public: more noise never asks for more groups."""
    asked = database([], groups_per_person="auto", rows_per_person=20, rows_per_group=1)
    question = "SELECT y, COUNT(*) AS n FROM (SELECT least(greatest(y, 1), 20) AS y, pid FROM t) u GROUP BY y"
    chosen = []
    for epsilon in (0.02, 0.2, 2, 20):
        plan = asked.plan(question, epsilon=epsilon, delta=1e-6)
        counts, total = np.full(20, 50.0), np.array([20 * 21 / 2 * 50.0])
        chosen.append(plan.automatic[-1].value((counts, total)))
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1] == 20


def test_candidates_are_dense_below_and_reach_the_end():
    assert automatic_bounds.candidates(1) == [1]
    assert automatic_bounds.candidates(7) == [1, 2, 3, 4, 5, 6, 7]
    assert automatic_bounds.candidates(100)[-1] == 100
    tried = automatic_bounds.candidates(100)
    assert all(b / a <= 2 for a, b in pairwise(tried))


# --- what it costs --------------------------------------------------------------------------------------------


def test_what_is_found_costs_a_tenth_and_is_found_once():
    asked = database([row(n, x=n % 50) for n in range(3000)])
    first = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=1)
    second = asked.sql("SELECT SUM(x) AS s FROM t", epsilon=1)
    assert [e.asked for e in asked.ledger.entries()] == [
        "the range of t.x", "SELECT AVG(x) AS m FROM t", "SELECT SUM(x) AS s FROM t"
    ]  # fmt: skip
    assert str(first.cost) == str(second.cost) == "ε = 1"
    assert sum(asked.ledger.spent.values()) == pytest.approx(1.9)


def test_many_findings_take_at_most_half():
    asked = database([row(n) for n in range(2000)], groups_per_person="auto")
    text = "SELECT k, SUM(x) AS a, SUM(y) AS b, AVG(d - DATE '2020-01-01') AS c FROM t GROUP BY k"
    plan = asked.plan(text, epsilon=1)
    assert (len(plan.automatic), plan.spent_first) == (4, Fraction(4, 10))
    assert automatic_bounds.share_of(10) == Fraction(1, 20)
    asked.answer(plan)
    assert sum(asked.ledger.spent.values()) == pytest.approx(1)


def test_a_column_that_is_not_summed_is_not_found():
    asked = database([])
    assert asked.plan("SELECT COUNT(x) AS n FROM t WHERE y > 3", epsilon=1).automatic == ()
    assert [
        f.what for f in asked.plan("SELECT SUM(z) AS s FROM (SELECT y * 2 AS z FROM t) u", epsilon=1).automatic
    ] == ["the range of t.y"]


def test_nothing_is_spent_where_not_all_of_it_fits():
    asked = database([], limit=0.5)
    with pytest.raises(dp.BudgetExhausted):
        asked.sql("SELECT AVG(x) AS m FROM t", epsilon=1)
    assert asked.ledger.count == 0


def test_explaining_finds_nothing_and_says_so():
    asked = database([])
    told = asked.explain("SELECT AVG(x) AS m FROM t", epsilon=1)
    assert "found first  the range of t.x, for ε = 0.1 of it" in told
    assert told.data["guarantee"] == "ε = 1"
    assert asked.ledger.count == 0


def test_an_error_that_depends_on_what_is_found_is_not_promised():
    with refuses(dp.NotAllowed, "within-automatic"):
        database([]).sql("SELECT SUM(x) AS s FROM t", within={"s": 5})


def test_a_retry_with_a_key_finds_what_was_found():
    asked = database([row(n, x=n % 50) for n in range(3000)])
    first = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=1, key="mine")
    again = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=1, key="mine")
    assert again.replayed
    assert again.table.equals(first.table)
    assert asked.ledger.count == 2


def test_text_has_no_range_to_find():
    with refuses(dp.InvalidArgument, "column-no-range"):
        Column(name="k", type="text", between="auto")


# --- nothing else tells ---------------------------------------------------------------------------------------


def test_with_the_same_findings_neighbors_look_the_same(capture, monkeypatch):
    """Grey-box replay: what was found being equal, the texts, the noise and the shape of the answer are."""
    usual = [row(n, "abc"[n % 3], float(n), n) for n in range(9)]
    text = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"
    monkeypatch.setattr(automatic_bounds, "_ends", lambda column, seen: (0, 64))
    monkeypatch.setattr(automatic_bounds, "_best", lambda *facts: 2)
    seen = []
    for rows in (usual, usual[:-1], [*usual, row(77, "a", 1e308, 5), row(77, "b", float("nan"), 5)], []):
        asked = database(rows, groups_per_person="auto")
        with testing.frozen(5) as tape, capture(monkeypatch) as texts:
            answer = asked.sql(text, epsilon=1)
        seen.append((texts, list(tape.calls), answer.table.schema, answer.notes, str(answer.cost)))
    assert all(one == seen[0] for one in seen)


# --- mutants --------------------------------------------------------------------------------------------------


def test_a_person_who_counts_in_every_bin_is_found(monkeypatch):
    monkeypatch.setattr(dialect, "one_of_each", lambda rows, key, value: f"SELECT {value} FROM ({rows})")
    own = [row(1, x=float(2**n)) for n in range(6)]
    with pytest.raises(AssertionError):
        check_moved(own, [], PERSON, "SELECT AVG(x) AS m FROM t")


def test_groups_of_a_person_counted_one_by_one_are_found(monkeypatch):
    def spread(self, most):
        self.steps.append(("pairs", self._grouped(["count(*) AS n"], self.rows, ["person", *self.keys])))
        return self._query("SELECT 1, count(*), coalesce(sum(n), 0) FROM pairs")

    monkeypatch.setattr(automatic_bounds._Spread, "spread", spread)
    with pytest.raises(AssertionError):
        check_moved([row(1, k=k) for k in "abc"], [], PERSON, GROUPED, groups_per_person="auto")


@pytest.mark.parametrize("text", ["SELECT SUM(a * b) AS s FROM v", "SELECT a, COUNT(*) AS n FROM v GROUP BY a"])
def test_what_found_bounds_could_make_unanswerable_is_refused_before_anything_is_spent(text):
    data = pa.table({"pid": list(range(300)), "a": [2**30] * 300, "b": [2**30] * 300})
    said = {"columns": {"a": {"between": "auto"}, "b": {"between": "auto"}}}
    database = connected({"v": (data, said)}, delta=0)
    with pytest.raises(dp.DiscreetError):
        database.sql(text, epsilon=1)
    assert database.ledger.count == 0


def test_a_found_range_declares_no_groups():
    data = pa.table({"pid": list(range(300)), "a": [n % 3 for n in range(300)]})
    database = connected({"v": (data, {"columns": {"a": {"between": "auto"}}})})
    plan = database.plan("SELECT a, COUNT(*) AS n FROM v GROUP BY a", epsilon=1, delta=1e-6)
    assert plan.groups is None
    assert [bound.what for bound in plan.automatic] == ["which groups have enough people"]


def test_a_quantile_can_be_asked_within_ranks():
    data = pa.table({"pid": list(range(500)), "x": [n % 100 for n in range(500)]})
    database = connected({"v": (data, {"columns": {"x": {"between": [0, 99]}}})})
    plan = database.plan("SELECT MEDIAN(x) AS m FROM v", within={"m": 200})
    assert float(plan.price.parts[0].error(0.95)) <= 200
    closer = database.plan("SELECT MEDIAN(x) AS m FROM v", within={"m": 100})
    assert closer.cost.epsilon > plan.cost.epsilon
