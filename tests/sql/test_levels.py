"""ROLLUP, CUBE and GROUPING SETS: every level adds up, one person moves each by no more than is priced, and the errors
hold.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import InvalidArgument, NotAllowed
from discreet.sql.measuring import compile
from discreet.sql.measuring.clipped import holding
from discreet.sql.pricing import clipping, levels
from discreet.sql.pricing.clipping import Clipping
from discreet.sql.running import answering
from discreet.sql.settling import settle

from ..refusing import refuses
from .connecting import connected, rows_of

CUBE = "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE (a, b)"
ROLLUP = "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY ROLLUP (a, b)"
DECLARED = {"a": {"choices": ["p", "q"]}, "b": {"choices": [1, 2, 3]}, "x": {"between": [-4, 9]}}
BOUNDS = {"rows_per_person": 4, "groups_per_person": 3}


def rows(seed: int, people: int = 30) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    odd = [None, float("nan"), float("inf"), 1e300, -0.0]
    made = []
    for person in range(people):
        for _ in range(int(rng.integers(0, 7))):
            x = odd[int(rng.integers(0, 5))] if rng.random() < 0.1 else float(rng.integers(-9, 15))
            a = None if rng.random() < 0.05 else str(rng.choice(["p", "q", "elsewhere"], p=[0.5, 0.4, 0.1]))
            made.append((person, a, int(rng.integers(1, 4)), x))
    return made


def table(made: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*made, strict=True)) or [()] * 4
    kinds = {"pid": pa.int64(), "a": pa.string(), "b": pa.int64(), "x": pa.float64()}
    return pa.table({name: pa.array(own, kind) for (name, kind), own in zip(kinds.items(), columns, strict=True)})


def opened(made: list[tuple[Any, ...]], *, declared: bool = True, unit: Any = None, **more: Any) -> Any:
    facts: dict[str, Any] = {"columns": DECLARED} if declared else {"columns": {k: DECLARED[k] for k in "ab"}}
    facts |= more
    if declared and unit is None:
        facts |= BOUNDS
    elif unit is None:
        facts["rows_per_person"] = None
    return connected({"t": (table(made), facts)}, unit)


def true_sums(database: Any, text: str, epsilon: float = 1.0) -> tuple[Any, list[Any]]:
    """The plan, and the exact numbers that get noise."""
    planner = database.planner
    with testing.frozen(1), holding(planner.engine) as pairs:
        plan = settle(planner, planner.plan(text, epsilon=epsilon), pairs=pairs)
        return plan, list(answering._read_measures(planner, plan, pairs))


def check_adds_up(answer: Any, names: tuple[str, ...] = ("n", "s")) -> None:
    """Every row is the sum of the finest rows in it."""
    shown = answer.table.to_pylist()
    finest = [row for row in shown if row["a"] is not None and row["b"] is not None]
    for row in shown:
        parts = [one for one in finest if all(row[key] in (None, one[key]) for key in "ab")]
        for name in names:
            assert row[name] == pytest.approx(sum(one[name] for one in parts), abs=1e-9)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("text", [CUBE, ROLLUP])
def test_noisy_levels_add_up_in_whole_numbers(text, declared):
    database = opened(rows(1, 300), declared=declared)
    with testing.frozen(4):
        answer = database.sql(text, epsilon=2)
    check_adds_up(answer)
    assert all(isinstance(row["n"], int) for row in answer.table.to_pylist())
    assert answer.table.num_rows == (12 if text == CUBE else 9)


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("declared", [True, False])
def test_one_person_moves_each_level_by_no_more_than_is_priced(declared, neighbors):
    """Brute force: each person is removed, or replaced by one with many odd rows."""
    unit = {"person": "pid", "neighbors": neighbors}
    facts: dict[str, Any] = BOUNDS if declared else {"rows_per_person": None}
    made = [row for place, row in enumerate(rows(2, 5)) if place % 2]  # few enough that no row is left out at random
    hostile = [(99, "p", b, x) for b in (1, 2, 3) for x in (1e300, -1e300, float("nan"), 9.0)] * 3

    def opened_with(some: list[tuple[Any, ...]]) -> Any:
        columns = DECLARED if declared else {k: DECLARED[k] for k in "ab"}
        return connected({"t": (table(some), {"columns": columns, **facts})}, unit)

    whole = opened_with(made)
    plan, sums = true_sums(whole, CUBE, 50)
    if declared:
        bounds = [s.amount for s in plan.price.sensitivities for _ in range(4)]
        parts = [[one] for one in sums]
    else:
        bounds = [plan.clipping.sensitivity(plan.clip, level).amount for level in range(4)]
        parts = sums
    for person in range(5):
        others = [row for row in made if row[0] != person]
        for changed in (others, others + hostile) if neighbors == "replace" else (others, made + hostile):
            other = opened_with(changed)
            found = list(answering._read_measures(other.planner, plan, None) if declared else clipped(other, plan))
            found = [[one] for one in found] if declared else found
            for before, after, bound in zip(parts, found, bounds, strict=True):
                moved = sum(
                    int(np.abs(np.asarray(b) - np.asarray(a)).sum()) for b, a in zip(before, after, strict=True)
                )
                assert moved <= bound


def clipped(database: Any, plan: Any) -> Any:
    with holding(database.planner.engine) as pairs:
        return answering._read_measures(database.planner, plan, pairs)


def test_the_price_is_what_was_asked_for():
    database = opened(rows(1))
    plan = database.plan(CUBE, epsilon=1)
    assert plan.cost.epsilon <= 1
    assert plan.cost.epsilon > 0.999
    assert len(plan.price.mechanism.mechanisms) == 2 * 4
    open_plan = opened(rows(1), declared=False).plan(CUBE, epsilon=1)
    assert open_plan.cost.epsilon <= 1


def test_a_plan_names_the_levels():
    text = str(opened(rows(1)).explain(ROLLUP, epsilon=1))
    assert "levels" in text
    assert "(a, b), (a), ()" in text


def test_mutant_every_level_gets_all_of_epsilon(monkeypatch):
    """Then the statement would cost as often as there are levels: the door states what is drawn."""
    monkeypatch.setattr(levels, "_shares", lambda sizes: (levels.Fraction(1),) * len(sizes.levels))
    plan = opened(rows(1)).plan(CUBE, epsilon=1)
    assert plan.price.guarantee.largest_loss > 3


def test_mutant_a_coarse_level_is_priced_like_one_group(monkeypatch):
    """A person in several groups of the finest level is in one group of a coarser one with all rows."""
    plain = Clipping.sensitivity
    lower = lambda own, clip, level=None: plain(own, replace(clip, limit=clip.limit // 3) if level else clip, level)  # noqa: E731
    monkeypatch.setattr(clipping.Clipping, "sensitivity", lower)
    with pytest.raises(AssertionError):
        test_one_person_moves_each_level_by_no_more_than_is_priced(False, "add_or_remove")


def test_what_is_shown_is_free_and_other_levels_are_not(tmp_path):
    pq.write_table(table(rows(3)), tmp_path / "t.parquet")
    database = connected({"t": (str(tmp_path / "t.parquet"), {"columns": DECLARED, **BOUNDS})})
    first = database.sql(ROLLUP, epsilon=1)
    left = database.ledger.remaining
    again = database.sql(
        "SELECT b, a, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b) HAVING COUNT(*) > -1000 ORDER BY n",
        epsilon=1,
    )
    assert database.ledger.remaining == left
    key = lambda row: (str(row["a"]), str(row["b"]))  # noqa: E731
    pairs = zip(sorted(first, key=key), sorted(again, key=key), strict=True)
    assert all(one["n"] == other["n"] and one["s"] == other["s"] for one, other in pairs)
    database.sql(CUBE, epsilon=1)
    assert database.ledger.remaining != left
    after = database.ledger.remaining
    database.sql("SELECT b, a, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY ROLLUP (b, a)", epsilon=1)
    assert database.ledger.remaining != after


@pytest.mark.parametrize("declared", [True, False])
def test_the_order_of_levels_is_not_part_of_the_question(declared, tmp_path):
    """The stored numbers have one order: with another, they would be shown for the wrong groups."""
    pq.write_table(table(rows(3)), tmp_path / "t.parquet")
    facts = {"columns": DECLARED, **BOUNDS} if declared else {"columns": {k: DECLARED[k] for k in "ab"}}
    database = connected({"t": (str(tmp_path / "t.parquet"), {"rows_per_person": None, **facts})})
    text = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS "
    sets = ["((a), (b))", "((b), (a))", "((), (b), (a, b), (a))", "((b, a), (a), (), (b))"]
    first, second, third, fourth = ([*database.sql(text + each, epsilon=1)] for each in sets)
    assert first == second
    assert third == fourth
    assert str(database.ledger.remaining) == "ε = 998"


def test_what_measures_the_loss_has_the_least_noise():
    """Also if the level that gets most of ε is not asked for."""
    plan = opened(rows(3, 100), declared=False).plan(CUBE.replace("CUBE (a, b)", "GROUPING SETS ((a), (b))"), epsilon=1)
    clipping, clip = plan.clipping, plan.clip
    noises = [clipping.noise(clip, level).noise.scale for level in range(4)]
    assert clipping.noise(clip).noise.scale == min(noises)
    moved = [clipping.sensitivity(clip, level).amount for level in range(4)]
    assert sum(moved) == 4 * clip.limit + clip.above
    assert plan.price.mechanism.guarantee([clipping.sensitivity(clip, n) for n in range(4)]).largest_loss <= 1


@pytest.mark.parametrize("aggregate", ["COUNT(DISTINCT pid)", "COUNT(DISTINCT b)", "MEDIAN(x)"])
def test_what_does_not_add_up_is_refused(aggregate):
    with refuses(NotAllowed, "sql-levels-add-up"):
        opened(rows(1)).sql(f"SELECT a, {aggregate} AS n FROM t GROUP BY ROLLUP (a)", epsilon=1)


@pytest.mark.parametrize(
    "group", ["ROLLUP (a), ROLLUP (a)", "GROUPING SETS ((a), (a))", "a WITH ROLLUP", "CUBE (a, b, x, a, b, x, a)"]
)
def test_levels_that_are_not_supported(group):
    with refuses(NotAllowed, "sql-grouping"):
        opened(rows(1)).sql(f"SELECT COUNT(*) AS n FROM t GROUP BY {group}", epsilon=1)


@pytest.mark.slow
def test_undeclared_keys_are_chosen_first():
    made = [row for row in rows(5, 4000) if row[1] is not None]
    database = connected({"t": (table(made), {"rows_per_person": None})}, delta_per_question=1e-6)
    with testing.frozen(2):
        answer = database.sql(ROLLUP.replace("SUM(x)", "COUNT(x)"), epsilon=5)
    shown = {(row["a"], row["b"]) for row in answer}
    assert {("p", 1), ("q", 3), ("p", None), (None, None)} <= shown
    assert any("in no sum" in note for note in answer.notes)
    check_adds_up(answer)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    "group",
    [
        "ROLLUP (a, b) HAVING GROUPING(a) = 1",
        "ROLLUP (a, b) ORDER BY n LIMIT 2",
        "a, b ORDER BY n LIMIT 2",
        "CUBE (a, b) QUALIFY RANK() OVER (PARTITION BY GROUPING(a, b) ORDER BY COUNT(*)) = 1",
    ],
)
def test_an_answer_without_groups_is_empty(group):
    """Nobody can tell a table without rows from one with few."""
    database = connected({"t": (table([]), {"rows_per_person": None})}, delta_per_question=1e-6)
    more = "" if group.startswith("a") else ", GROUPING(b) AS g, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY b) AS part"
    answer = database.sql(f"SELECT a, b, COUNT(*) AS n, SUM(x) AS s{more} FROM t GROUP BY {group}", epsilon=1)
    assert answer.table.num_rows == 0
    assert "n_error" in answer.table.column_names
    if more:
        assert answer.cube(["a", "b"]).num_rows == 0
    answer._repr_html_()


def hierarchies(bounds: Any = (), rows: Any = (), **more: Any) -> Any:
    groups = [["p", 1], ["p", 2], ["q", 3]]
    geography = {"levels": ["a", "b"], "groups": groups, **more}
    made = [(person, *groups[person % 3], 1.0) for person in range(300)] + [(900, "p", 3, 1.0), *rows]
    facts = {"columns": {"x": {"between": [0, 9]}}, "hierarchies": {"geography": geography}, **dict(bounds)}
    return connected({"t": (table(made), facts)})


@pytest.mark.parametrize("bounds", [{}, {"rows_per_person": 3}])
@pytest.mark.parametrize("most", [10_000, 0])
def test_groups_that_are_not_declared_are_left_out_if_too_many_to_be_written(bounds, most, monkeypatch):
    """Planning a question of 500,000 groups took more than 20 GB: a statement listed all of them."""
    monkeypatch.setattr(compile, "MOST_WRITTEN", most)
    text = "SELECT a, b, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT pid) AS p, MEDIAN(x) AS m FROM t GROUP BY a, b"
    rows = rows_of(hierarchies(bounds), text, epsilon=900, delta=1e-6)
    assert [row[:2] for row in rows] == [("p", 1), ("p", 2), ("q", 3)]
    assert {(row[2], row[3], row[4]) for row in rows} == {(100, 100, 100)}
    assert {round(row[5]) for row in rows} == {1}


@pytest.mark.parametrize("most", [10_000, 0])
def test_a_person_in_other_groups_too_adds_at_most_the_declared_rows(most, monkeypatch):
    monkeypatch.setattr(compile, "MOST_WRITTEN", most)
    text, bounds = "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY a, b", {"rows_per_person": 3}
    hostile = [(901, *group, 1.0) for group in (("p", 1), ("q", 3), ("p", 3), ("q", 1)) for _ in range(20)]
    without, there = (rows_of(hierarchies(bounds, rows), text, epsilon=900) for rows in ((), hostile))
    for place in (2, 3):
        moved = [after[place] - before[place] for before, after in zip(without, there, strict=True)]
        assert min(moved) >= 0
        assert sum(moved) <= 3


def test_a_hierarchy_has_only_the_groups_that_are_declared():
    database = hierarchies()
    with testing.no_noise():
        answer = database.cube("t", ["geography"], epsilon=20)
    assert [(row["a"], row["b"], row["n"]) for row in answer] == [
        ("p", 1, 100), ("p", 2, 100), ("q", 3, 100), ("p", None, 200), ("q", None, 100), (None, None, 300),
    ]  # fmt: skip
    assert answer.cube(["a"]).to_pydict() == {
        "a": ["p", "q"],
        "n": [200, 100],
        "n_error": answer.cube(["a"])["n_error"].to_pylist(),
    }
    assert answer.cube().to_pydict()["n"] == [300]
    with refuses(InvalidArgument, "cube-keys"):
        answer.cube(["b"])
    with refuses(InvalidArgument, "wrong-type"):
        database.cube("t", ["geography"], total=5, epsilon=1)


def test_totals_of_the_policy_are_kept_and_said():
    database = hierarchies(totals=[["p", 1000], ["q", 17]])
    with testing.frozen(3):
        answer = database.cube("t", ["geography"], epsilon=1)
    numbers = {(row["a"], row["b"]): (row["n"], row["n_error"]) for row in answer}
    assert numbers["p", None] == (1000, 0)
    assert numbers["q", None] == (*numbers["q", 3][:1], 0)
    assert numbers[None, None] == (1017, 0)
    assert numbers["p", 1][0] + numbers["p", 2][0] == 1000
    assert any("Given the totals" in note for note in answer.notes)
    filtered = database.cube("t", ["geography"], where="x > 0", epsilon=1)
    assert not any("Given the totals" in note for note in filtered.notes)


def test_large_sums_are_added_exactly():
    """A sum of many steps needs more than 64 bits."""
    value, number = 3e9 + 0.25, 6000
    data = table([(person, "pq"[person % 2], 1 + person % 3, value) for person in range(number)])
    facts = {"columns": {k: DECLARED[k] for k in "ab"}, "rows_per_person": None}
    for positive in (False, True):
        answer = connected({"t": (data, facts)}).cube("t", ["a", "b"], total="x", epsilon=9, positive=positive)
        total, name = next(row for row in answer if row["a"] is None and row["b"] is None), answer.table.column_names[2]
        assert abs(total[name] / (value * number) - 1) < 0.05
        assert total[name] == pytest.approx(sum(row[name] for row in answer if row["a"] and row["b"]))


def test_errors_hold_if_totals_are_kept_and_no_number_is_below_zero():
    """All rows are in one of 40 groups: those without rows get some, which are taken from it."""
    groups = [["p", place] for place in range(40)]
    geography = {"levels": ["a", "b"], "groups": groups, "totals": [["p", 2000]]}
    data = table([(person, "p", 0, 1.0) for person in range(2000)])
    database = connected({"t": (data, {"rows_per_person": 1, "hierarchies": {"geography": geography}})})
    missed = 0
    for seed in range(10):
        with testing.frozen(seed):
            answer = database.cube("t", ["geography"], epsilon=0.1 + seed / 10**6, positive=True)
        row = next(row for row in answer if row["b"] == 0)
        missed += abs(row["n"] - 2000) > row["n_error"]
        assert sum(one["n"] for one in answer if one["b"] is not None) == 2000
    assert missed <= 3  # of 10, with a chance of at most 1/20 each


@pytest.mark.parametrize(
    "wrong",
    [
        {"levels": []},
        {"levels": ["a", "a"]},
        {"levels": ["a", "nothing"], "groups": []},
        {"groups": [["p"]]},
        {"groups": "p"},
        {"groups": [["p", [1]]]},
        {"levels": ["a", "x"], "groups": [["p", 1], ["q", 99]]},
        {"totals": [["p", 1]]},
        {"totals": [["p", 1], ["q", -1]]},
        {"totals": [["p", 1], ["q", "many"]]},
        {"column": "x", "levels": ["century"], "groups": []},
    ],
)
def test_a_wrong_hierarchy_is_refused(wrong):
    with refuses(InvalidArgument, "policy-hierarchy"):
        hierarchies(**wrong)


def test_no_number_is_below_zero_if_asked():
    database = opened(rows(1, 20))
    plain = database.sql(CUBE, epsilon=0.05)
    assert min(row["n"] for row in plain) < 0
    with testing.frozen(1):
        answer = database.cube("t", ["a", "b"], epsilon=0.05, positive=True)
    assert min(row["n"] for row in answer) >= 0
    check_adds_up(answer, ("n",))


def test_a_table_has_cubes():
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Pure(epsilon=1000))
    made = dp.table(table([row for row in rows(1, 200) if row[1] in ("p", "q")]), ledger=ledger, rows_per_person=9)
    with testing.no_noise():
        found = made.cube([("a", "b")], choices={"a": ["p", "q"], "b": [1, 2, 3]}, epsilon=20)
    assert found.value[None, None] == sum(found.value[a, None] for a in "pq")
    assert set(found.value) == {*itertools.product("pq", (1, 2, 3)), ("p", None), ("q", None), (None, None)}
    assert found.cube(["a"])["n"].to_pylist() == [found.value["p", None], found.value["q", None]]
    assert "ROLLUP" in made.explain.cube(["a"], choices={"a": ["p", "q"]}, epsilon=1)
    with testing.no_noise():
        sums = made.cube(["a"], total="x", between=(0, 9), choices={"a": ["p", "q"]}, epsilon=20)
    assert sums.value[None,] == pytest.approx(sums.value["p",] + sums.value["q",]) if (None,) in sums.value else True
    for wrong in ([], [()], "", [1], [["a", "a"]]):
        with pytest.raises(InvalidArgument):
            made.cube(wrong, epsilon=1)


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("text", [CUBE, ROLLUP])
def test_errors_hold(text, declared):
    """At least 95% of the intervals hold the truth, less three standard errors of 60 answers."""
    made = [row for row in rows(8, 2000) if row[1] in ("p", "q") and row[3] is not None and -4 <= row[3] <= 9]
    kept = opened(made, declared=declared, **({"rows_per_person": 20, "groups_per_person": 6} if declared else {}))
    truth = {row[:2]: row[2:] for row in rows_of(kept, text, epsilon=100)}
    inside = []
    for number in range(60):
        for row in kept.sql(text, epsilon=1 + number / 10**6):
            for name, true in zip(("n", "s"), truth[row["a"], row["b"]], strict=True):
                inside.append(abs(row[name] - true) <= row[f"{name}_error"])
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)


def test_a_picture_tells_sums_from_rows_without_a_key() -> None:
    made = [(person, "p" if person % 2 else "q", 1 + person % 3, 1.0) for person in range(30)]
    text = "SELECT CASE WHEN a = 'p' THEN 'p' END AS k, b, COUNT(*) AS n FROM t GROUP BY CUBE (k, b)"
    answer = opened(made).sql(text, epsilon=50)
    [axes] = answer.plot().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["p", "(none)", "(all)"]
    assert len(axes.patches) == 12
    assert answer.summed["k"].sum() == 4


# --- sums of noises ---------------------------------------------------------------------------------------------------


def outside(factors: list[float], at: float) -> float:
    """P(|X| > at deviations) for a sum of Laplace noises with these factors, from its characteristic function."""
    sizes = np.array(factors) / np.sqrt(2 * np.sum(np.square(factors)))
    points = np.arange(1, 200_001) * 2 * np.pi / 120
    parts = np.prod([1 / (1 + (size * points) ** 2) for size in sizes], axis=0)
    return float(1 - 2 * at / 120 - 4 / 120 * np.sum(parts * np.sin(points * at) / points))


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("factors", [[1, 1], [1, 0.9], [1, 0.5], [1, 0.2], [1, 1, 1], [1, 0.6, 0.3], [1] * 6])
def test_a_sum_of_noises_is_within_its_reach(factors: list[float]) -> None:
    for confidence in (0.5, 0.8, 0.9, 0.906, 0.907, 0.908, 0.92, 0.95, 0.99, 0.999):
        assert outside(factors, levels.reach(confidence)) <= 1 - confidence
    if factors == [1, 1]:
        assert outside(factors, levels.reach(0.907) / 1.001) > 1 - 0.907  # without the thousandth
