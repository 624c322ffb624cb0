"""Clipped people: search and answer together keep what is charged, on small tables with all their neighbors, exactly.
The same checks fail on seeded mutants.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.engines.duckdb import dialect
from discreet.engines.duckdb.engine import DuckDB
from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.selection.person_limits import people_above
from discreet.mechanisms.selection.upward_search import UpwardSearch
from discreet.queries.sensitivity import Sensitivity
from discreet.sql.measuring import clipped
from discreet.sql.measuring.clipped import holding, read_clipped, read_norms, read_roots
from discreet.sql.measuring.groups import groups_of
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing import clipping as rules
from discreet.sql.pricing.clipping import Clip, Clipping, with_centers
from discreet.sql.schema import Column, Schema, Table
from discreet.sql.settling import settle

ADDED, REPLACED = dp.person("pid"), dp.person("pid", neighbors="replace")
TYPES = {"pid": pa.int64(), "k": pa.string(), "x": pa.float64()}
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b")),
    "x": Column(name="x", type="number"),
}
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
PEOPLE = "SELECT k, COUNT(DISTINCT pid) AS n, COUNT(*) AS m FROM t GROUP BY k"
SUM = "SELECT k, SUM(x) AS s FROM t GROUP BY k"
BOTH = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"
MEAN = "SELECT AVG(x) AS m FROM t"
WITHIN = "SELECT AVG(LEAST(GREATEST(x, -2), 20)) FILTER (WHERE k = 'a') AS m FROM t"
QUESTIONS = [COUNT, PEOPLE, SUM, BOTH, MEAN, WITHIN]
FEW, MANY, WIDE, SIGNED, ODD, ROUND = (
    [("a", 1.0)],
    [("a", 3.0)] * 40,
    [("a", 7.25), ("b", -900.0)] * 3,
    [("a", -5.0), ("a", 5.5), ("b", 0.001)],
    [("b", math.nan), ("a", None), (None, 4.0), ("b", math.inf)],
    [("a", 1.0)] * 7 + [("b", -1.0)] * 7,
)
TABLES = [[], [FEW], [MANY], [FEW, WIDE], [SIGNED, ODD, MANY], [ROUND, WIDE, FEW, ODD]]
PERSONS = [FEW, MANY, WIDE, SIGNED, ODD, ROUND]


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is charged."""


def opened(people: list[Any], unit: Any) -> Planner:
    rows = [(number, *row) for number, rows in enumerate(people) for row in rows]
    data = pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(TYPES.items())})
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=1e6, delta=0.1))
    schema = Schema(unit=unit, tables={"t": Table(name="t", columns=COLUMNS, person="pid")})
    return Planner(schema, DuckDB({"t": data}), ledger)


def planned(planner: Planner, text: str, delta: float = 0) -> Plan:
    """The plan, with centers for means, and with few limits to choose from."""
    plan = planner.plan(text, epsilon=2, delta=delta)
    centers = {part: Fraction(11, 4) for part in planner.to_center(plan.question, plan.terms)}
    plan = planner.priced(with_centers(plan.question, centers), plan.terms) if centers else plan
    assert plan.clipping is not None
    limits = tuple(own if len(own) == 1 else _few(own) for own in plan.clipping.limits)
    return replace(plan, clipping=replace(plan.clipping, limits=limits))


def _few(limits: tuple[int, ...]) -> tuple[int, ...]:
    """Limits that some people exceed and others do not, for rows and for sums in steps of 2^-20."""
    sums = limits[1] > 2
    return (2**19, 3 * 2**20, 2**28) if sums else (1, 5, 9)


def law_of(search: UpwardSearch | None, counts: list[int]) -> list[float]:
    """The exact probability of each limit."""
    if search is None:
        return [1.0]
    bar, step = (1 / float(exactly(scale)) for scale in (search.bar_scale, search.step_scale))
    noise = np.arange(2000)
    weight = np.exp(-bar * noise) * -np.expm1(-bar)
    going, found = np.ones(len(noise)), []
    for count in counts[:-1]:
        stops = np.exp(-step * np.maximum(count - search.enough + noise, 0))
        found.append(float(weight @ (going * stops)))
        going = going * (1 - stops)
    return [*found, float(weight @ going)]


_KNOWN: dict[Any, Any] = {}


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    _KNOWN.clear()


def read(people: list[Any], text: str, unit: Any, norm: str) -> dict[tuple[int, ...], tuple[float, Any, Any]]:
    """For each outcome of the search: its probability, the clipped numbers, and the clip. Read once in a test."""
    asked = repr((people, text, unit, norm))
    if asked not in _KNOWN:
        _KNOWN[asked] = _read(people, text, unit, norm)
    return _KNOWN[asked]


def _read(people: list[Any], text: str, unit: Any, norm: str) -> dict[tuple[int, ...], tuple[float, Any, Any]]:
    planner = opened(people, unit)
    plan = planned(planner, text, delta=0 if norm == "L1" else 1e-3)
    clipping: Clipping = plan.clipping
    found, search = {}, clipping.search()
    with holding(planner.engine) as pairs:
        norms = read_norms(pairs, plan.question, clipping)
        laws = [
            law_of(one, people_above(own, limits)) for own, (limits, one) in zip(norms, search._pairs(), strict=True)
        ]
        for places in product(*(range(len(own)) for own in clipping.limits)):
            scales = tuple(own[place] for own, place in zip(clipping.limits, places, strict=True))
            chance = math.prod(law[place] for law, place in zip(laws, places, strict=True))
            clip = clipping.clip(scales)
            if norm == "L2":
                clip = clipping.in_squares(clip, max(1, clip.limit // 3))
            numbers = read_clipped(pairs, plan.question, clipping, clip, groups_of(plan.question))
            found[places] = (
                chance,
                np.concatenate([np.asarray(part, dtype=object) for part in numbers]),
                (clipping, clip),
            )
    return found


def check(first: list[Any], second: list[Any], text: str, unit: Any, norm: str) -> float:
    """Raise if the search and the answer tell two neighbors apart better than is charged. The largest loss."""
    one, other = read(first, text, unit, norm), read(second, text, unit, norm)
    worst = 0.0
    for places, (chance, numbers, (clipping, clip)) in one.items():
        far = [abs(int(a) - int(b)) for a, b in zip(numbers, other[places][1], strict=True)]
        size = sum(far) if norm == "L1" else sum(step**2 for step in far)
        bound, noise = clipping.sensitivity(clip), clipping.noise(clip).noise
        if size > (bound.exact if norm == "L1" else bound.exact**2):
            raise NotPrivate(f"a person moves the numbers by {size}")
        searched = abs(math.log(chance) - math.log(other[places][0])) if chance and other[places][0] else 0.0
        if searched > float(clipping.search().guarantee(clipping.moved).largest_loss) + 1e-9:
            raise NotPrivate("the search says more than is charged")
        if isinstance(noise, Gaussian):
            worst = max(worst, searched)
            continue
        answered = size / float(exactly(noise.scale))
        if answered > float(clipping.left) + 1e-9 or searched + answered > 2 + 1e-9:
            raise NotPrivate("search and answer say more than is charged")
        worst = max(worst, searched + answered)
    return worst


def check_all(text: str, unit: Any, norm: str, tables: list[Any] = TABLES, persons: list[Any] = PERSONS) -> float:
    """All neighbors of all tables: a person more, or one person in the place of another."""
    worst = 0.0
    for table in tables:
        for person in persons:
            worst = max(worst, check(table, [*table, person], text, unit, norm))
            if unit == REPLACED and table:
                worst = max(worst, check([*table, persons[0]], [*table, person], text, unit, norm))
    return worst


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("norm", ["L1", "L2"])
@pytest.mark.parametrize("unit", [ADDED, REPLACED])
def test_search_and_answer_keep_what_is_charged_for_some(unit, norm):
    assert check_all(BOTH, unit, norm, [[], [ODD]], [FEW, WIDE]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["L1", "L2"])
@pytest.mark.parametrize("unit", [ADDED, REPLACED])
@pytest.mark.parametrize("text", QUESTIONS)
def test_search_and_answer_keep_what_is_charged(text, unit, norm):
    assert check_all(text, unit, norm) > 0


def test_the_sensitivity_is_reached():
    """A person far above the limit moves the numbers by all of it, up to rounding: it is not larger than it must be."""
    found, alone = read([MANY], COUNT, ADDED, "L1"), read([], COUNT, ADDED, "L1")
    for places, (_, numbers, (clipping, clip)) in found.items():
        moved = sum(abs(int(a) - int(b)) for a, b in zip(numbers, alone[places][1], strict=True))
        assert clipping.sensitivity(clip).exact - moved <= 2


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("text", QUESTIONS)
def test_order_and_threads_change_nothing(text):
    people = [WIDE, SIGNED, ODD, ROUND, MANY] * 7
    rows = [(number, *row) for number, rows in enumerate(people) for row in rows]
    found = []
    for seed, memory in ((1, "100MB"), (2, None), (3, "1GB")):  # 100MB: one thread
        planner = opened(people, ADDED)
        mixed = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
        columns = {name: pa.array([row[n] for row in mixed], kind) for n, (name, kind) in enumerate(TYPES.items())}
        planner = replace(planner, engine=DuckDB({"t": pa.table(columns)}, memory=memory))
        plan = planned(planner, text)
        clip = plan.clipping.clip(tuple(own[min(1, len(own) - 1)] for own in plan.clipping.limits))
        with holding(planner.engine) as pairs:
            norms = [sorted(own.tolist()) for own in read_norms(pairs, plan.question, plan.clipping)]
            roots = sorted(read_roots(pairs, plan.question, plan.clipping, clip)[0].tolist())
            numbers = read_clipped(pairs, plan.question, plan.clipping, clip, groups_of(plan.question))
        found.append((norms, roots, [part.tolist() for part in numbers]))
    assert found[0] == found[1] == found[2]


# --- seeded mutants -------------------------------------------------------------------------------------------


def nearest(value: str, most: int, rows: str, largest: int) -> str:
    return f"round({value}::DOUBLE * {most} / {rows})"


def upward(value: str, most: int, rows: str, largest: int) -> str:
    return f"sign({value}) * ((abs({value}) * {most} + {rows} - 1) // {rows})"


def test_mutant_rounded_to_the_nearest(monkeypatch):
    monkeypatch.setattr(dialect, "scaled", nearest)
    with pytest.raises(NotPrivate):
        check_all(BOTH, ADDED, "L1", [[]], [[("a", 1.0)] * 7 + [("b", 1.0)] * 5, WIDE, ROUND])


def test_mutant_rounded_away_from_zero(monkeypatch):
    monkeypatch.setattr(dialect, "scaled", upward)
    with pytest.raises(NotPrivate):
        check_all(BOTH, ADDED, "L1", [[]], [WIDE, ROUND, SIGNED])


def test_mutant_the_root_is_not_checked(monkeypatch):
    """A root that is too small, as a float might be."""
    monkeypatch.setattr(dialect, "root_above", lambda squares: f"CAST({dialect.root(squares)} * 0.9 AS HUGEINT)")
    with pytest.raises(NotPrivate):
        check_all(COUNT, ADDED, "L2", [[]], [MANY, ROUND])


def test_a_wrong_root_counts_as_nobody(monkeypatch):
    """The comparison of integers decides: whatever the root of an engine is, nobody is too large."""
    monkeypatch.setattr(dialect, "root", lambda squares: f"(sqrt(CAST({squares} AS DOUBLE)) * 0.7)")
    check_all(COUNT, ADDED, "L2", [[]], [MANY, ROUND, WIDE])


def test_mutant_a_limit_for_each_measure_is_charged_as_one_limit(monkeypatch):
    """Every measure alone is held to the limit of all together."""
    monkeypatch.setattr(clipped, "_is_above", lambda clip: f"size > {2 * clip.limit}")
    with pytest.raises(NotPrivate):
        check_all(BOTH, ADDED, "L1", [[]], [[("a", 0.5)] * 9, [("a", 0.5)] * 3])


def test_mutant_what_measures_the_loss_is_not_charged(monkeypatch):
    plain = Clipping.sensitivity
    monkeypatch.setattr(Clipping, "sensitivity", lambda own, clip, level=0: plain(own, replace(clip, above=0), level))
    with pytest.raises(NotPrivate):
        check_all(COUNT, ADDED, "L1", [[]], [MANY])


def test_mutant_a_replaced_person_is_charged_as_an_added_one(monkeypatch):
    def as_added(own: Clipping, clip: Clip, level: int = 0) -> Sensitivity:
        return Sensitivity(clip.limit + clip.above, "L1", own.unit, 100, grain=1)

    monkeypatch.setattr(Clipping, "sensitivity", as_added)
    with pytest.raises(NotPrivate):
        check_all(SUM, REPLACED, "L1", [[FEW]], [[("a", -4000.0)], [("b", 4000.0)]])


def _check_charge_of_search(text: str, unit: Any) -> None:
    """The search costs what was set aside for it."""
    plan = planned(opened([FEW], unit), text)
    moved = Sensitivity(1, "Linf", unit, monotone=True)  # of one total of each person, which is larger or smaller
    if plan.clipping.search().guarantee(moved).largest_loss > plan.clipping.searched:
        raise NotPrivate("the search costs more than was set aside")


@pytest.mark.parametrize("unit", [ADDED, REPLACED])
@pytest.mark.parametrize("text", [COUNT, BOTH])
def test_the_search_costs_what_was_set_aside(text, unit):
    _check_charge_of_search(text, unit)


def test_mutant_one_search_is_charged_for_all_kinds(monkeypatch):
    plain = Clipping.search
    monkeypatch.setattr(Clipping, "search", lambda own: plain(replace(own, searched=own.searched * Fraction(3, 2))))
    with pytest.raises(NotPrivate):
        _check_charge_of_search(BOTH, ADDED)


def _check_charge_of_center() -> None:
    """The center, the search and the answer together cost what was asked for."""
    plan = opened([FEW], ADDED).plan(WITHIN, epsilon=2, delta=0)
    first = [bound.guarantee.largest_loss for bound in plan.automatic]
    if len(first) != 2 or sum(map(exactly, first)) + plan.clipping.left > 2:
        raise NotPrivate("what is found first is not taken off what is left for the answer")


def test_the_center_is_charged():
    _check_charge_of_center()


def test_mutant_the_center_is_not_taken_off(monkeypatch):
    monkeypatch.setattr(Planner, "_share_of_centers", lambda own, question, terms: (Fraction(1, 10), terms))
    with pytest.raises(NotPrivate):
        _check_charge_of_center()


def test_a_person_without_a_value_adds_nothing():
    """Engines leave NULL out of least and greatest: such a person would add the end of the range."""
    found = read([[("a", None)]], SUM, ADDED, "L1")
    assert all(not numbers.any() for _, numbers, _ in found.values())


def test_limits_are_public_or_released():
    """No limit comes from the data: a plan that read nothing has them all."""
    plan = opened([MANY], ADDED).plan(BOTH, epsilon=1, delta=0)
    assert plan.clipping.limits == opened([], ADDED).plan(BOTH, epsilon=1, delta=0).clipping.limits
    assert rules.LARGEST**2 < 2**62


def settled(text: str, epsilon: float, **declared: Any) -> Plan:
    """The plan after all is found, for 500 people with two values near 300 each."""
    columns = COLUMNS | {"x": replace(COLUMNS["x"], between=(0.0, 100_000.0))}
    people = [[("a", 290.0 + number % 10), ("b", 310.0 + number % 7)] for number in range(500)]
    planner = opened(people, ADDED)
    table = Table(name="t", columns=columns, person="pid", **declared)
    planner = replace(planner, schema=Schema(unit=ADDED, tables={"t": table}))
    with holding(planner.engine) as pairs:
        return settle(planner, planner.plan(text, epsilon=epsilon, delta=0), pairs=pairs)


def test_the_middle_of_a_declared_range_is_not_the_center():
    """Where rows are not declared: a range that is much wider than the values must not make a mean worse."""
    plan = settled(MEAN, 20)
    [measure] = [one for one in plan.question.measures if one.kind == "sum"]
    assert 290 < measure.center < 320
    ends = (measure.center + measure.step * end for end in (measure.lowest, measure.highest))
    assert [*ends] == [0, 100_000]
    assert max(float(size / unit) for size, unit in zip(plan.clip.sizes, (1, 1 / measure.step), strict=True)) < 500
    assert float(plan.spent_first + plan.clipping.left) == pytest.approx(20)


def test_a_center_that_was_found_is_within_the_range():
    """Noise may choose any point of the grid, and no point is beyond the range."""
    planner = opened([FEW], ADDED)
    plan = planner.plan(WITHIN, epsilon=1, delta=0)
    [part] = planner.to_center(plan.question, plan.terms)
    found = planner.center_of_people(plan, part, None).value
    middle = planner.center_of_people(plan, part, None).mechanism
    assert [float(found(place)) for place in (middle.space.low, 2**13, middle.space.high)] == [-2, 9, 20]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(x > 3) AS m FROM t",
        "SELECT AVG(CASE WHEN x > 3 THEN 1 ELSE 0 END) AS m FROM t",
        "SELECT AVG(x) AS m, STDDEV(x) AS s FROM t",
        "SELECT SUM(x) AS s FROM t",
    ],
)
def test_a_center_that_would_not_help_is_not_found(text):
    """Of yes and no, of 0 and 1, of a mean that has its sums in common with a spread, and of a total."""
    assert not any(one.startswith("the center") for one in settled(text, 20).found)
    assert not any(one.startswith("the center") for one in settled(MEAN, 20, rows_per_person=2).found)


@pytest.mark.parametrize("of", ["x", "n"])
@pytest.mark.parametrize("asked", ["AVG({0}) AS m", "AVG({0}) AS m, SUM({0}) AS s", "SUM({0}) AS s, AVG({0}) AS m"])
@pytest.mark.parametrize("shift", [0, 500])
def test_a_range_that_is_found_changes_no_number_of_centers(asked, of, shift):
    """Its middle may be 0, where sums and means have their sums in common. Once, a center then had no ε."""
    values = np.random.default_rng(1).uniform(-60, 60, 4000) + shift
    rows = pa.table({"p": np.arange(4000) % 2000, "x": values, "n": np.rint(values).astype(int)})
    columns = {name: {"between": "auto"} for name in ("x", "n")}
    policy = {"ledger": {"path": ":memory:", "epsilon": 100}, "unit": {"person": "p"}}
    database = dp.connect(policy | {"tables": {"t": {"source": rows, "columns": columns}}})
    text = f"SELECT {asked.format(of)} FROM t"
    planned = [one.what for one in database.plan(text, epsilon=20).automatic]
    answer = database.sql(text, epsilon=20)
    assert answer.table["m"].to_pylist()[0] == pytest.approx(values.mean(), abs=3)
    assert sum("center" in one for one in planned) == 1
    assert any("the center" in note for note in answer.notes)
    assert sum(entry.guarantee.largest_loss for entry in database.ledger.entries()) == pytest.approx(20)


def test_a_declared_range_may_be_far():
    """What is declared is never too large: nothing was answered beyond 4e12, and it was charged."""
    rows = pa.table({"p": np.arange(2000) % 1000, "x": np.linspace(6e12, 7e12, 2000)})
    table = {"source": rows, "columns": {"x": {"between": [5e12, 1e13]}}}
    policy = {"ledger": {"path": ":memory:", "epsilon": 100}, "unit": {"person": "p"}, "tables": {"t": table}}
    found = dp.connect(policy).sql("SELECT AVG(x) AS m FROM t", epsilon=20).table["m"].to_pylist()
    assert found == [pytest.approx(6.5e12, rel=0.02)]


@pytest.mark.slow
def test_a_center_of_few_people_is_no_end_of_the_range():
    """On a grid of all numbers, noise mostly chose 0 or 120."""
    rng, wrong = np.random.default_rng(3), []
    for _ in range(41):
        ages = rng.integers(18, 91, 100)
        rows = pa.table({"p": np.arange(100) % 50, "age": ages})
        table = {"source": rows, "columns": {"age": {"between": [0, 120]}}}
        policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "p"}, "tables": {"t": table}}
        found = dp.connect(policy).sql("SELECT AVG(age) AS m FROM t", epsilon=1).table["m"].to_pylist()[0]
        wrong.append(abs(found - ages.mean()))
    assert np.median(wrong) < 20


def test_whole_numbers_may_be_small():
    """The first limit says that there are few people only if steps are fractions."""
    for text, few in (("SELECT SUM(CASE WHEN k = 'a' THEN 1 ELSE 0 END) AS s FROM t", False), (SUM, True)):
        clipping = opened([MANY], ADDED).plan(text, epsilon=1, delta=0).clipping
        assert clipping.has_too_few(tuple(own[0] for own in clipping.limits)) is few
