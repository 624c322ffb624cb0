"""Clipped answers at their edges: values that are small, large, few or repeated, and findings that are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.mechanisms.selection.common_keys import CommonKeys
from discreet.mechanisms.selection.weighted_keys import WeightedKeys
from discreet.sql.measuring.clipped import holding, read_clipped
from discreet.sql.measuring.groups import groups_of

from .connecting import connected

N = 4000
ALL = np.arange(N)
NORMAL = np.random.default_rng(1).normal(0, 1, N)


def about(columns: dict[str, Any], **given: Any) -> Any:
    """A table with one row for each of many people, of whom nothing is declared."""
    return connected({"t": (pa.table({"pid": ALL} | columns), {})}, {"person": "pid"}, **given)


def shown(answer: Any) -> list[Any]:
    return [answer.table[output.name].to_pylist()[0] for output in answer.question.outputs]


@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VARIANCE", "STDDEV"])
def test_rows_that_a_join_repeats_need_a_range(aggregate):
    """One protected row is several joined rows: the limit of one joined row would be charged for all."""
    tables = {
        "t": (pa.table({"c": [1] * 50, "x": [1.5] * 50}), {}),
        "p": (pa.table({"c": [1, 1, 1], "w": [1, 2, 3]}), {"public": True}),
    }
    twice = "(SELECT x FROM t UNION ALL SELECT x FROM t)"
    database = connected(tables, {"row": True})
    for source in ("t JOIN p ON t.c = p.c", f"{twice} AS two"):
        with pytest.raises(dp.NotAllowed, match="one row several times") as refused:
            database.sql(f"SELECT {aggregate}(x) AS s FROM {source}", epsilon=1)
        assert refused.value.code == "sql-no-bounds"
    assert not list(database.ledger.entries())
    assert database.sql("SELECT COUNT(*) AS n FROM t JOIN p ON t.c = p.c", epsilon=1)


@pytest.mark.parametrize("size", [1e-3, 0.03, 1.0, 1e9])
def test_small_and_large_values_are_answered(size):
    database = about({"x": size * (1 + 0.1 * NORMAL)})
    total, mean = shown(database.sql("SELECT SUM(x) AS s, AVG(x) AS m FROM t", epsilon=20))
    assert total == pytest.approx(N * size, rel=0.05)
    assert mean == pytest.approx(size, rel=0.05)


@pytest.mark.parametrize("text", ["SELECT SUM(x) AS s FROM t", "SELECT AVG(x) AS s FROM t", "SELECT STDDEV(x) FROM t"])
def test_values_that_are_too_large_are_refused(text):
    database = about({"x": 1e15 * (1.5 + 0.1 * NORMAL)})
    with pytest.raises(dp.NotAllowed, match="Divide them first") as refused:
        database.sql(text, epsilon=20)
    assert refused.value.code == "values-too-large"
    assert shown(database.sql("SELECT AVG(x / 1e9) AS m FROM t", epsilon=20))[0] == pytest.approx(1.5e6, rel=0.05)


def test_a_mean_of_nobody_has_no_interval():
    """Its center was found by nobody, so no interval about it is right, also if it happens to be 0."""
    database = about({"i": ALL % 70 + 20})
    answer = database.sql("SELECT AVG(i) AS m FROM t WHERE pid < 0", epsilon=1)
    assert "the center of t.i" in answer.notes[0]
    assert answer.table["m_error"].to_pylist() == [None]
    assert "probably too few people" in " ".join(answer.notes)
    assert database.sql("SELECT AVG(i) AS m FROM t", epsilon=1).table["m_error"].to_pylist()[0] < 5


def test_two_columns_of_one_name_have_centers_of_their_own(tmp_path):
    for name, center in (("a", 10), ("b", 10**6)):
        pq.write_table(pa.table({"pid": ALL, "cost": center * (1 + 0.01 * NORMAL)}), tmp_path / f"{name}.parquet")
    tables = {name: (str(tmp_path / f"{name}.parquet"), {"person": "pid"}) for name in "ab"}
    text = (
        "SELECT AVG(a.cost) AS p, AVG(b.cost) AS q, STDDEV(a.cost) AS r, STDDEV(b.cost) AS s FROM a JOIN b USING (pid)"
    )
    answer = connected(tables, {"person": "pid"}).sql(text, epsilon=50)
    assert shown(answer) == pytest.approx([10, 10**6, 0.1, 10**4], rel=0.2)
    assert "the center of a.cost" in answer.notes[0]
    assert "the center of b.cost" in answer.notes[0]


def test_limits_are_found_again_for_other_kinds(tmp_path):
    """Weights say which numbers share a limit, so limits that were found with other weights are of no use."""
    pq.write_table(pa.table({"pid": ALL, "b": ALL % 2 == 0, "x": 1000 + NORMAL}), tmp_path / "t.parquet")
    database = connected({"t": (str(tmp_path / "t.parquet"), {})}, {"person": "pid"})
    parts = "SUM(CASE WHEN b THEN x ELSE 0 END) AS p, SUM(CASE WHEN NOT b THEN x ELSE 0 END) AS q"
    text = f"SELECT {parts}, SUM(x) AS r FROM t"
    plans = [database.plan(text, epsilon=20, weights=w) for w in ({"p": 1, "q": 1, "r": 2}, {"p": 2, "q": 1, "r": 2})]
    assert len({plan.clipping.basis.kinds for plan in plans}) == 2
    for plan in plans:
        assert shown(database.answer(plan)) == pytest.approx([500 * N, 500 * N, 1000 * N], rel=0.05)
    assert len(list(database.ledger.entries())) == 4


def test_constants_have_limits_of_their_own_size():
    database = about({"b": ALL % 2 == 0, "y": 50 + NORMAL})
    for size in (0.5, 1000):
        text = f"SELECT COUNT(*) AS n, SUM(CASE WHEN b THEN {size} ELSE 0 END) AS s FROM t"
        assert shown(database.sql(text, epsilon=20)) == pytest.approx([N, size * N / 2], rel=0.05)


def test_declared_rows_are_the_limit_of_all_numbers_of_a_kind():
    """Nobody is cut who keeps the declared bounds."""
    table = pa.table({"pid": ALL, "b": ALL % 2 == 0, "y": 50 + NORMAL})
    database = connected({"t": (table, {"rows_per_person": 1})}, {"person": "pid"})
    text = "SELECT COUNT(*) AS a, SUM(CASE WHEN b THEN 1000 ELSE 0 END) AS c, SUM(y) AS d FROM t"
    assert shown(database.sql(text, epsilon=20)) == pytest.approx([N, 500 * N, 50 * N], rel=0.05)


def test_a_variance_within_declared_rows_is_limited_by_its_values():
    """Its range was found about the center, and is a thousand times as wide as the values."""
    table = pa.table({"pid": ALL, "x": 1000 + 10 * NORMAL})
    database = connected({"t": (table, {"rows_per_person": 1})}, {"person": "pid"})
    mean, variance = shown(database.sql("SELECT AVG(x) AS m, VARIANCE(x) AS v FROM t", epsilon=5))
    assert mean == pytest.approx(1000, abs=1)
    assert variance == pytest.approx(100, rel=0.3)


def test_a_question_that_was_begun_can_be_paid():
    """Of two sorts of noise, the one that is smaller may cost more ρ than was planned. Then it is the other."""
    groups = {"columns": {"k": {"between": [0, 299]}}}
    table = pa.table({"pid": ALL, "k": ALL % 300, "x": 1000 + NORMAL})
    told = {"t": {"source": table, "person": "pid", **groups}}
    for epsilon, law in ((2.2, "Gaussian"), (30, "Laplace")):
        ledger = {"path": ":memory:", "epsilon": epsilon, "delta": 1e-5, "rule": "zcdp"}
        database = dp.connect({"ledger": ledger, "unit": {"person": "pid"}, "tables": told})
        answer = database.sql("SELECT k, SUM(x) AS s FROM t GROUP BY k", epsilon=1, delta=1e-6)
        assert answer.table.num_rows == 300
        assert law in str(list(database.ledger.entries())[-1].mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{}, {"columns": {"k": {"between": [0, 2]}}}])
@pytest.mark.parametrize(
    "declared",
    [{}, {"rows_per_person": 1}, {"rows_per_person": 4, "groups_per_person": "auto"}, {"groups_per_person": 2}, None],
)
def test_some_declarations_are_as_good_as_none(declared, keys):
    """Each with a sum whose range is not declared: people are clipped, and groups are chosen first."""
    unit = {"row": True} if declared is None else {"person": "pid"}
    table = pa.table({"pid": ALL, "k": ALL % 3, "x": 50 + NORMAL})
    database = connected({"t": (table, {**(declared or {}), **keys})}, unit)
    for text in ("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k", "SELECT k, SUM(x) AS s FROM t GROUP BY k"):
        answer = database.sql(text, epsilon=20, delta=1e-6)
        assert answer.table["k"].to_pylist() == [0, 1, 2]
        assert answer.table["s"].to_pylist() == pytest.approx([50 * N / 3] * 3, rel=0.05)


def test_a_key_of_another_question_is_refused_before_anything_is_found():
    database = about({"x": 50 + NORMAL, "y": 9 + NORMAL})
    first = database.sql("SELECT SUM(x) AS s FROM t", epsilon=5, key="one")
    again = database.sql("SELECT SUM(x) AS s FROM t", epsilon=5, key="one")
    assert shown(first) == shown(again)
    paid = len(list(database.ledger.entries()))
    for text, epsilon in (("SELECT SUM(y) AS s FROM t", 5), ("SELECT SUM(x) AS s FROM t", 6)):
        with pytest.raises(dp.InvalidArgument, match="This key was used for another request"):
            database.sql(text, epsilon=epsilon, key="one")
    assert len(list(database.ledger.entries())) == paid


@pytest.mark.slow
def test_a_small_epsilon_chooses_groups_by_weights():
    """The curves of coins would be very long."""
    database = connected({"t": (pa.table({"pid": ALL, "k": ALL % 3}), {})}, {"person": "pid"})
    for epsilon, kind in ((1, CommonKeys), (1e-4, WeightedKeys)):
        plan = database.plan("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=epsilon, delta=1e-6)
        assert type(database.planner.choice_of_keys(plan).mechanism) is kind
    with pytest.raises(dp.InvalidArgument, match="use WeightedKeys"):
        CommonKeys.for_guarantee(dp.Approx(epsilon=1e-4, delta=1e-6))


class NotPrivate(Exception):
    """One row moves the numbers by more than is charged."""


def _check_repeated_rows() -> None:
    """Either the question is refused, or one row more moves the clipped numbers by at most their sensitivity."""
    found = []
    for rows in (50, 51):
        tables = {
            "t": (pa.table({"c": [1] * rows, "x": [900.0] * rows}), {}),
            "p": (pa.table({"c": [1, 1, 1]}), {"public": True}),
        }
        database = connected(tables, {"row": True})
        try:
            plan = database.plan("SELECT SUM(t.x) AS s FROM t JOIN p ON t.c = p.c", epsilon=1)
        except dp.NotAllowed:
            return
        clip = plan.clipping.clip(tuple(own[6] for own in plan.clipping.limits))
        with holding(database.planner.engine) as pairs:
            found.append(read_clipped(pairs, plan.question, plan.clipping, clip, groups_of(plan.question)))
    moved = sum(abs(int(more) - int(less)) for less, more in zip(*map(np.concatenate, found), strict=True))
    if moved > plan.clipping.sensitivity(clip).exact:
        raise NotPrivate(f"one row moves the numbers by {moved} steps")


def test_a_repeated_row_moves_no_more_than_is_charged():
    _check_repeated_rows()


def test_mutant_a_repeated_row_is_clipped_as_one(monkeypatch):
    monkeypatch.setattr("discreet.sql.planner.bounds_of", lambda *given: None)
    with pytest.raises(NotPrivate):
        _check_repeated_rows()


def test_mutant_groups_of_clipped_people_are_not_chosen_first(monkeypatch):
    """Their keys would be shown with no selection, but for the shapes of what is released."""
    monkeypatch.setattr("discreet.sql.planner.chooses_first", lambda *given, clipped: False)
    database = about({"k": ALL % 3, "x": 50 + NORMAL})
    with pytest.raises(AssertionError):
        database.sql("SELECT k, SUM(x) AS s FROM t GROUP BY k", epsilon=20, delta=1e-6)


def test_mutant_findings_are_told_apart_by_name_only(monkeypatch, tmp_path):
    """Another question of the same name then gets the limits of the first."""
    monkeypatch.setattr("discreet.sql.planner.identity_of_rows", lambda relation, schema, details=None: "")
    with pytest.raises(AssertionError):
        test_limits_are_found_again_for_other_kinds(tmp_path)


@pytest.mark.parametrize("weights", [None, {"n": 3, "m": 1}])
@pytest.mark.parametrize(
    "columns",
    [
        "COUNT(*) AS n, COUNT(x) AS c, AVG(x) AS m",
        "COUNT(x) AS n, AVG(x) AS m, STDDEV(x) AS s",
        "COUNT(*) AS n, SUM(CASE WHEN b THEN 1 ELSE 0 END) AS c, AVG(x) FILTER (WHERE b) AS m",
        "SUM(x) AS n, SUM(CASE WHEN b THEN x ELSE 0 END) AS c, VARIANCE(x) AS m",
    ],
)
def test_numbers_of_a_kind_have_one_scale(columns, weights):
    """People who may be above the limit are found by the totals of each kind, in the steps of its first number."""
    plan = about({"b": ALL % 2 == 0, "x": 50 + NORMAL}).plan(f"SELECT {columns} FROM t", epsilon=1, weights=weights)
    for place in (3, 40, -1):
        clip = plan.clipping.clip(tuple(own[min(place, len(own) - 1)] for own in plan.clipping.limits))
        scales = {*zip(plan.clipping.basis.kinds, clip.sizes, clip.shifts, clip.factors, strict=True)}
        assert len(scales) == len(plan.clipping.limits)


SIGNED = {"rising": [0, 5], "both": [-5, 5]}


def clipped(column: str, neighbors: str = "add_or_remove") -> Any:
    """The clip of sums by group of a column whose range is declared, and the rows of a person are not."""
    rows = {"who": ["a", "b"], "k": ["x", "y"], "rising": [1, 2], "both": [1, -2]}
    columns: dict[str, Any] = {name: {"between": ends} for name, ends in SIGNED.items()} | {
        "k": {"choices": ["x", "y"]}
    }
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 10, "delta": 1e-3},
        "unit": {"person": "who", "neighbors": neighbors},
    }
    database = dp.connect(policy | {"tables": {"t": {"source": pa.table(rows), "version": "1", "columns": columns}}})
    return database, f"SELECT k, SUM({column}) AS s FROM t GROUP BY k"


@pytest.mark.parametrize(("column", "factor"), [("rising", 2), ("both", 4)])
def test_a_replaced_person_with_values_of_both_signs_moves_twice_as_far(column: str, factor: int) -> None:
    """In L2: what is taken off and what is added point the same way at most if no value is negative."""
    squares = []
    for neighbors in ("add_or_remove", "replace"):
        database, text = clipped(column, neighbors)
        clipping = database.plan(text, epsilon=1).clipping
        clip = clipping.in_squares(clipping.example(), 1000)
        squares.append(float(clipping.sensitivity(clip).exact) ** 2)
    assert squares[1] == pytest.approx(factor * squares[0])


def test_finding_limits_is_a_part_of_the_price() -> None:
    database, text = clipped("both")
    database.sql(text, epsilon=1)
    spent = [entry.guarantee.epsilon_at(delta=1e-6) for entry in database.ledger.entries() if entry.kind == "charge"]
    assert len(spent) >= 2
    assert sum(spent) <= 1 + 1e-9


def test_epsilon_is_divided_for_the_groups_that_are_found():
    """Few groups need better limits than the hundred that are assumed before they are found. The sum stays the same."""
    few, many = ({"x": 1 + 0.1 * NORMAL, "city": ALL % groups} for groups in (3, 40))
    question, spent = "SELECT city, AVG(x) AS m FROM t GROUP BY city", {}
    for name, columns in (("few", few), ("many", many)):
        database = about(columns, delta_per_question=1e-6)
        database.sql(question, epsilon=4)
        first, *rest = [entry.guarantee for entry in database.ledger.entries() if entry.kind == "charge"]
        spent[name] = [float(one.largest_loss) for one in rest]  # for the center, the limits and the answer
        assert first.epsilon_at(delta=1e-6) + sum(spent[name]) == pytest.approx(4, abs=1e-6)
    assert len(spent["few"]) == len(spent["many"]) == 3
    assert all(few > many for few, many in zip(spent["few"][:2], spent["many"][:2], strict=True))


@pytest.mark.slow
def test_a_mean_by_groups_of_few_people_at_a_small_epsilon_is_answered():
    """What a newcomer asks first, with nothing declared. It was refused when ε was divided for a hundred groups."""
    columns = {"x": 450 + 200 * NORMAL, "city": ALL % 5}
    database = about(columns, delta_per_question=1e-8)
    for _ in range(5):
        found = database.sql("SELECT city, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY city", epsilon=0.3).table
        assert found.num_rows == 5
        assert np.median(np.abs(np.array(found["m"]) - 450)) < 150
