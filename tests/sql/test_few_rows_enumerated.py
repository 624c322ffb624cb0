"""Units of a few rows, over every small database: what one unit changes. Wrong prices are caught.

A world is a few rows. All worlds are in one table: one statement measures them all.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets.database import Database
from discreet.exact.rational import exactly
from discreet.guarantees.unit import Unit
from discreet.sql.measuring.measure import read_measures
from discreet.sql.pricing import bounds as pricing
from discreet.sql.pricing import choice_of_noise
from discreet.sql.pricing.choice_of_noise import NoiseChoice, _selection
from discreet.sql.pricing.price import contribution
from discreet.sql.question import Bounds

DOMAIN = [
    # region, city, zone, value: what is missing, undeclared or no number, too
    ("N", "a", 1, 4.0),
    ("N", "b", 2, -4.0),
    ("S", "a", 3, math.nan),
    ("S", None, 9, 4.0),
    (None, "a", 9, math.inf),
    ("X", "b", 8, -4.0),
]
MOST = 4
SLACK = Fraction(1, 10**6)
World = tuple[int, ...]
WORLDS: list[World] = [w for n in range(MOST + 1) for w in itertools.combinations_with_replacement(range(6), n)]
PLACES = {world: place for place, world in enumerate(WORLDS)}
UNITS = (
    dp.row(times=2),
    dp.row(times=3),
    dp.row(times=2, groups=2, by="region"),
    dp.row(times=1, groups=2, by="region"),
    dp.row(times=2, groups=1, by="region"),
    dp.row(times=1, groups=2, by="zone"),
)
KEYS = (
    "",
    "region",
    "city",
    "zone",
    "region, city",
    "CASE WHEN region = 'S' THEN 'N' ELSE 'M' END",
)
MEASURES = ("COUNT(*)", "SUM(value)", "COUNT(DISTINCT value)", "COUNT(CASE WHEN value > 0 THEN 1 END)")
SOURCES = (
    "t",
    "t JOIN twice ON t.city = twice.name",
    "t LEFT JOIN twice ON t.city = twice.name",
    "(SELECT * FROM t WHERE value < 9 UNION ALL SELECT * FROM t) AS u",
    "(SELECT region AS city, city AS region, zone, value, world FROM t) AS u",
)


@cache
def database_of(unit: Unit) -> Database:
    """All worlds in one table, which each has a column of its own."""
    rows = [(n, *DOMAIN[place]) for n, world in enumerate(WORLDS) for place in world]
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.float64())
    names = ("world", "region", "city", "zone", "value")
    data = pa.table({n: pa.array(c, k) for n, c, k in zip(names, zip(*rows, strict=True), kinds, strict=True)})
    columns = {
        "world": {"choices": list(range(len(WORLDS)))},
        "region": {"choices": ["N", "S"]},
        "city": {"choices": ["a", "b"]},
        "zone": {"choices": [1, 2, 3], "other": 0},  # what is not declared is one group
        "value": {"between": [-4, 4]},
    }
    said = {"rows": unit.times, "groups": unit.groups, "by": unit.by, "neighbors": unit.neighbors}
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 9, "delta": 1e-3},
        "unit": {key: value for key, value in said.items() if value is not None},
        "tables": {
            "t": {"source": data, "columns": columns},
            "twice": {"source": {"name": ["a", "a", "b"]}, "public": True},
        },
    }
    return dp.connect(policy)


def question(measure: str, keys: str, source: str, *, worlds: bool = False) -> str:
    grouped = ", ".join(key for key in ("world" if worlds else "", keys) if key)
    return f"SELECT {measure} AS n FROM {source}" + (f" GROUP BY {grouped}" if grouped else "")


@cache
def measured(measure: str, keys: str, source: str) -> np.ndarray[Any, Any]:
    """The exact numbers of each world, one for each group of the keys. They do not depend on the unit."""
    database = database_of(UNITS[0])
    plan = database.plan(question(measure, keys, source, worlds=True), epsilon=1, delta=0)
    assert plan.groups is not None
    found = read_measures(plan.question, database.engine, plan.enforced, plan.groups)[0]
    sizes = [len(domain) for domain in plan.groups.domains]
    cells = np.array([int(n) for n in found], dtype=object).reshape(sizes)
    return np.moveaxis(cells, sizes.index(len(WORLDS)), 0).reshape(len(WORLDS), -1)


def is_unit(rows: World, unit: Unit) -> bool:
    """Whether these rows are one unit, or fewer rows."""
    if unit.groups is None:
        return len(rows) <= unit.most_rows
    place = ("region", "city", "zone").index(str(unit.by))
    groups = Counter(DOMAIN[row][place] for row in rows)
    return len(groups) <= unit.groups and all(n <= (unit.times or 1) for n in groups.values())


@cache
def less(unit: Unit) -> list[tuple[int, int, int]]:
    """Pairs of worlds, the second without one unit of the first, and how many rows it has."""
    found = []
    for n, world in enumerate(WORLDS):
        for size in range(1, min(len(world), unit.most_rows) + 1):
            for taken in set(itertools.combinations(world, size)):
                if is_unit(taken, unit):
                    rest = Counter(world) - Counter(taken)
                    found.append((n, PLACES[tuple(sorted(rest.elements()))], size))
    return found


def replaced(unit: Unit) -> Iterator[tuple[int, int]]:
    """Pairs of worlds in which one unit is exchanged for another with as many rows."""
    of: dict[tuple[int, int], list[int]] = {}
    for first, rest, size in less(unit):
        of.setdefault((rest, size), []).append(first)
    for worlds in of.values():
        yield from itertools.combinations(worlds, 2)


def check(unit: Unit, measure: str, keys: str, source: str) -> None:
    """One unit moves the answer by at most the priced amounts, in L1 and in L2."""
    found, text = measured(measure, keys, source), question(measure, keys, source)
    plan = database_of(unit).plan(text, epsilon=1, delta=0)
    offers = NoiseChoice(plan.question, unit, plan.bounds, found.shape[1], (Fraction(1),))
    most, root = plan.price.sensitivities[0].exact, offers.gaussian(Fraction(1), SLACK).sensitivities[0].exact
    pairs = [pair[:2] for pair in less(unit)] if unit.neighbors == "add_or_remove" else list(replaced(unit))
    first, second = np.array(pairs).T
    moved = np.abs(found[first] - found[second])
    assert max(moved.sum(1)) <= most, f"{max(moved.sum(1))} > {most} in {text}"
    assert max((moved**2).sum(1)) <= root**2, f"{max((moved**2).sum(1))} > {root}² in {text}"


def check_all(units: Any = UNITS, measures: Any = MEASURES, keys: Any = KEYS, sources: Any = SOURCES[:1]) -> None:
    for unit, measure, key, source in itertools.product(units, measures, keys, sources):
        check(unit, measure, key, source)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_few_rows_move_an_answer_by_at_most_its_sensitivity(unit: Unit) -> None:
    check_all([unit])


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("source", SOURCES[1:])
def test_a_few_rows_move_joins_and_unions_by_at_most_their_sensitivity(source: str) -> None:
    check_all(UNITS[1:3], MEASURES[:2], KEYS[1:4], [source])


@pytest.mark.parametrize("unit", UNITS[:3], ids=str)
def test_a_few_replaced_rows_move_an_answer_by_at_most_its_sensitivity(unit: Unit) -> None:
    check_all([Unit(None, "replace", times=unit.times, groups=unit.groups, by=unit.by)], MEASURES[:2], KEYS[:4])


def test_the_prices_are_reached() -> None:
    """A price of more than the largest change would add noise for nothing."""
    for unit, keys, squares in ((UNITS[2], "region", 8), (UNITS[2], "city", 16), (UNITS[1], "region", 9)):
        found = measured("COUNT(*)", keys, "t")
        first, second = np.array([pair[:2] for pair in less(unit)]).T
        assert max((np.abs(found[first] - found[second]) ** 2).sum(1)) == squares
        plan = database_of(unit).plan(question("COUNT(*)", keys, "t"), epsilon=1, delta=0)
        assert contribution(plan.question.measures[0], plan.bounds, unit).squared == squares


def test_gaussian_noise_is_for_the_root_of_the_groups_times_the_rows() -> None:
    unit = dp.row(times=3, groups=4, by="region")
    plan = database_of(unit).plan(question("COUNT(*)", "region", "t"), epsilon=1, delta=0)
    offers = NoiseChoice(plan.question, unit, plan.bounds, 2, (Fraction(1),))
    assert offers.gaussian(Fraction(1), Fraction(1, 10**6)).sensitivities[0].exact == 6
    assert offers.laplace(Fraction(1)).sensitivities[0].exact == 12


# --- groups whose keys are not declared -----------------------------------------------------------------------


def _law(count: int, chosen: Any, reach: int) -> np.ndarray[Any, Any]:
    """The law of what is shown of a key: nothing, or a noisy count from the threshold on."""
    shown = np.arange(chosen.threshold, chosen.threshold + reach)
    if count == 0:
        return np.concatenate([[1.0], np.zeros(reach)])
    ratio = math.exp(-1 / float(exactly(chosen.scale)))
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(shown - count)
    return np.concatenate([[1 - mass.sum()], mass])


def worst_delta(chosen: Any, epsilon: float, most: int) -> float:
    """The largest δ at this ε, over all ways to add up to `most` rows to two keys with few rows."""
    reach = int(25 * float(exactly(chosen.scale)))
    laws = [_law(count, chosen, reach) for count in range(chosen.threshold + most + 2)]
    starts, found = (0, 1, chosen.threshold - 1, chosen.threshold + 1), 0.0
    for one, two in itertools.product(starts, repeat=2):
        for first in range(most + 1):
            for second in range(most + 1 - first):
                before = np.outer(laws[one], laws[two])
                after = np.outer(laws[one + first], laws[two + second])
                for a, b in ((before, after), (after, before)):
                    found = max(found, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
    return found


@pytest.mark.parametrize("times", [2, 3])
def test_the_choice_of_groups_keeps_its_promise_for_a_few_rows(times: int) -> None:
    unit = dp.row(times=times)
    chosen, promised = _selection(unit, Bounds(times, times, times), Fraction(3), Fraction(1, 100))
    assert promised.protects == unit
    epsilon, delta = promised.epsilon, float(promised.delta)  # type: ignore[attr-defined]
    assert float(epsilon) <= 3
    assert delta <= 0.01
    assert worst_delta(chosen, float(epsilon), times) <= delta * (1 + 1e-9)


def test_a_choice_of_groups_for_one_row_does_not_protect_a_few() -> None:
    """The wrong threshold: what is chosen for one row, with the same ε and δ."""
    chosen, promised = _selection(dp.row(), None, Fraction(3), Fraction(1, 100))
    assert worst_delta(chosen, 3.0, 1) <= promised.delta_at(epsilon=3) * (1 + 1e-9)
    assert worst_delta(chosen, 3.0, 2) > 0.01


# --- seeded bugs ----------------------------------------------------------------------------------------------


def _plant_one_row(patch: pytest.MonkeyPatch) -> None:
    """A few rows are priced as one."""
    patch.setattr(pricing, "_of_several", lambda question, unit, repeated: None)


def _plant_rows_in_one_group(patch: pytest.MonkeyPatch) -> None:
    """The rows of one group are priced, and the others forgotten."""
    right = pricing._of_several
    patch.setattr(pricing, "_of_several", lambda q, unit, n: right(q, dp.row(times=unit.times or 2), n))


def _plant_any_column(patch: pytest.MonkeyPatch) -> None:
    """Every key is taken for the column whose groups are counted."""
    patch.setattr(pricing, "_is_group", lambda key, unit, relation: True)


def _plant_group_of_the_name(patch: pytest.MonkeyPatch) -> None:
    """The name of a key decides, whatever it was computed from."""
    patch.setattr(pricing, "_is_group", lambda key, unit, relation: key.name.split(".")[-1] == unit.by)


def _plant_repeated_once(patch: pytest.MonkeyPatch) -> None:
    """How often a join repeats each row is forgotten."""
    right = pricing._of_several
    patch.setattr(pricing, "_of_several", lambda question, unit, repeated: right(question, unit, 1))


def _plant_added(patch: pytest.MonkeyPatch) -> None:
    """Replaced rows are priced as added ones."""
    right = contribution
    patch.setattr(choice_of_noise, "contribution", lambda m, b, unit: right(m, b, Unit(None, times=unit.times or 1)))


MUTANTS = {
    "a_few_rows_priced_as_one": (_plant_one_row, UNITS[:1], SOURCES[:1]),
    "rows_of_one_group_priced": (_plant_rows_in_one_group, UNITS[2:4], SOURCES[:1]),
    "any_key_taken_for_the_groups": (_plant_any_column, UNITS[2:3], SOURCES[:1]),
    "groups_known_by_the_name_of_a_key": (_plant_group_of_the_name, UNITS[2:3], SOURCES[4:]),
    "rows_that_a_join_repeats_counted_once": (_plant_repeated_once, UNITS[:1], SOURCES[1:2]),
    "undeclared_values_in_one_group": (_plant_group_of_the_name, UNITS[5:], SOURCES[:1]),
    "replaced_rows_priced_as_added": (_plant_added, (Unit(None, "replace", times=2),), SOURCES[:1]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, units, sources = MUTANTS[name]
    check_all(units, MEASURES[:2], KEYS[:4], sources)
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"\d > \S+ in SELECT"):
        check_all(units, MEASURES[:2], KEYS[:4], sources)
