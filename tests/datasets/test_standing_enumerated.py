"""Standing questions against every small history of one unit: what all answers together lose is at most what was
charged. Wrong rules are shown to be caught.

A history says in which months a person has rows, and with which version of the data each of them comes. The answer of a
month is read from the version of that month, so late rows and rows of other months can only help an adversary.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.datasets import standing_price, standing_totals
from discreet.datasets.database import Database
from discreet.datasets.horizon import Horizon
from discreet.exact import samplers
from discreet.exact.rational import exactly
from discreet.guarantees.rules.once import Once
from discreet.mechanisms.counts import sums_over_time
from discreet.mechanisms.counts.sums_over_time import SumsOverTime, norm_of
from discreet.sql.measuring import parts
from discreet.sql.measuring.measure import read_measures

MONTHS = ("2024-01", "2024-02", "2024-03")
FIRST = Fraction(1)
Row = tuple[int, int]
"""The month of a row, and the version of the data with which it comes: from 0 to 2."""
ROWS: list[Row] = [(month, version) for month in range(3) for version in range(month, 3)]
HISTORIES = [rows for many in range(4) for rows in itertools.combinations(ROWS, many)]
"""All histories of one person with at most one row of each kind."""
BOUND = 1
Q = "SELECT history, COUNT(*) AS n FROM t GROUP BY history"
COST = Fraction(1)


def database_at(version: int, unit: dict[str, Any]) -> Database:
    """All histories in one table, each of one person in a group of its own, as far as its rows have come."""
    rows = [(n, n, datetime.date(2024, 1 + m, 3)) for n, rows in enumerate(HISTORIES) for m, v in rows if v <= version]
    kinds, names = (pa.int64(), pa.int64(), pa.date32()), ("pid", "history", "day")
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    data = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})
    table: dict[str, Any] = {"source": data, "time": {"column": "day", "block": "month"}}
    table["columns"] = {"history": {"choices": list(range(len(HISTORIES)))}}
    if "person" in unit:
        table |= {"rows_per_person": BOUND, "groups_per_person": 1}
    policy = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": unit, "tables": {"t": table}}
    return dp.connect(policy)


def read_at(databases: list[Database], horizon: Horizon, place: int) -> list[int]:
    """The exact number of a month in each history, from the version of that month."""
    planner = databases[place].planner
    own = replace(planner, schema=horizon.schema(planner.schema, horizon.blocks[place]), ledger=None)  # type: ignore[arg-type]
    plan = own.plan(Q, epsilon=1)
    return [int(n) for n in read_measures(plan.question, own.engine, plan.enforced, plan.groups)[0]]


def horizon_of(turns: int | None = None) -> Horizon:
    return Horizon(
        question=Q, every="month", first=MONTHS[0], times=3, epsilon=COST, delta=Fraction(0), blocks_per_person=turns
    )


def losses(unit: dict[str, Any], turns: int | None) -> Iterator[tuple[tuple[Row, ...], Fraction]]:
    """The exact privacy loss of each history against none: integer Laplace noise loses a distance over its scale."""
    databases, horizon = [database_at(version, unit) for version in range(3)], horizon_of(turns)
    price = standing_price.price_step(databases[0].planner, horizon)
    scale = exactly(price.plan.price.parts[0].scale)
    numbers = [read_at(databases, horizon, place) for place in range(3)]
    for n, rows in enumerate(HISTORIES):
        if "row" in unit and len(rows) > 1:
            continue
        if "per" in unit:  # a unit is one month of this person
            for month in range(3):
                others = [place for place in range(3) if place != month and numbers[place][n]]
                assert all(any(m == place for m, _ in rows) for place in others)
                yield rows, Fraction(numbers[month][n]) / scale
        else:
            yield rows, sum((Fraction(one[n]) for one in numbers), Fraction(0)) / scale


UNITS: dict[str, tuple[dict[str, Any], int | None]] = {
    "a month of a person": ({"person": "pid", "per": "month"}, None),
    "a person": ({"person": "pid"}, None),
    "a person in two months": ({"person": "pid"}, 2),
    "a person in one month": ({"person": "pid"}, 1),
    "a row": ({"row": True}, None),
}


def check(name: str) -> None:
    unit, turns = UNITS[name]
    worst = max(loss for _, loss in losses(unit, turns))
    assert worst <= COST, f"loses {worst}, and {COST} was charged"
    assert worst > COST * (1 - Fraction(1, 10**9))  # the noise is no larger than it must be


@pytest.mark.parametrize("name", UNITS)
def test_no_history_loses_more_than_was_charged(name: str) -> None:
    check(name)


def test_a_replaced_unit_is_in_twice_as_many_blocks() -> None:
    horizon = horizon_of(1)
    assert standing_price.units_in(dp.person("pid", neighbors="replace"), horizon) == 2
    assert standing_price.units_in(dp.row(neighbors="replace"), horizon_of()) == 2
    assert standing_price.units_in(dp.person("pid", neighbors="replace"), horizon_of()) == 3
    assert standing_totals.steps_of_unit(dp.person("pid", per="month", neighbors="replace"), horizon_of()) == 2


def _charged_once(patch: pytest.MonkeyPatch) -> None:
    """A person in many months is charged once."""
    patch.setattr(standing_price, "units_in", lambda unit, horizon: 1)


def _turns_not_enforced(patch: pytest.MonkeyPatch) -> None:
    """The blocks of a person are counted in the price, and not by the engine."""
    patch.setattr(Horizon, "turns", None)


def _last_blocks(patch: pytest.MonkeyPatch) -> None:
    """The last blocks of a person count: which they are depends on rows that come later."""
    right = parts._in_turn
    patch.setattr(parts, "_in_turn", lambda *given: right(*given).replace("ORDER BY block", "ORDER BY block DESC"))


def _each_block_alone(patch: pytest.MonkeyPatch) -> None:
    """Only the rows of the asked block are numbered, so it is always the first."""
    right = parts._in_turn

    def wrong(placed: str, first: Any, blocks: Any, whose: str, conditions: list[str]) -> str:
        return right(placed, first, blocks, whose, [*conditions, parts._is_among("block", blocks)])

    patch.setattr(parts, "_in_turn", wrong)


def _numbered_rows(patch: pytest.MonkeyPatch) -> None:
    """Everybody's blocks are numbered together: who is alone in a block depends on others."""
    right = parts._in_turn
    patch.setattr(
        parts, "_in_turn", lambda *given: right(*given).replace(f"PARTITION BY {given[3]} ", "PARTITION BY block ")
    )


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "a_person_in_many_months_is_charged_once": (_charged_once, "a person"),
    "the_engine_does_not_count_blocks": (_turns_not_enforced, "a person in one month"),
    "the_last_blocks_count": (_last_blocks, "a person in one month"),
    "each_block_is_the_first": (_each_block_alone, "a person in two months"),
    "blocks_are_numbered_for_all_together": (_numbered_rows, "a person in one month"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, unit = PLANTED[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="loses"):
        check(unit)


# --- running totals -----------------------------------------------------------------------------------------


def moved(sums: SumsOverTime, values: Any, patch: pytest.MonkeyPatch) -> float:
    """How far the whole measurement moves with a unit whose values at each step are `values[step][block]`."""
    patch.setattr(samplers, "discrete_gaussian", lambda variance, many: np.zeros(many, dtype=np.int64))
    rows = [sums.step(t)._draw([np.array(values[t][: t + 1])[:, None]])[0][0] for t in range(sums.points)]
    return float(np.sqrt(np.sum(np.square(rows))))


def histories(points: int) -> Iterator[tuple[int, ...]]:
    """What a unit adds to one block as it is read at each step: it may come late, change and go again."""
    yield from itertools.product((-1, 0, 1), repeat=points)


@pytest.mark.parametrize("normalized", [True, False])
def test_a_unit_in_one_block_moves_the_measurement_by_one_column_whatever_its_history(
    normalized: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = 4
    sums, most = SumsOverTime(points=points, stddevs=(1,), normalized=normalized), norm_of(points, normalized, 1)
    worst = 0.0
    for block in range(points):
        for history in histories(points):
            values = [[history[t] if s == block else 0 for s in range(points)] for t in range(points)]
            worst = max(worst, moved(sums, values, monkeypatch))
    assert worst <= float(most)
    assert worst > 0.999 * float(most)


def test_a_person_in_all_blocks_moves_it_by_at_most_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    points = 3
    sums = SumsOverTime(points=points, stddevs=(1,), steps=3)
    worst = 0.0
    for cells in itertools.product((-1, 0, 1), repeat=6):  # any history: each step reads its own values
        found = iter(cells)
        values = [[next(found) for _ in range(t + 1)] + [0] * (points - t - 1) for t in range(points)]
        worst = max(worst, moved(sums, values, monkeypatch))
    assert 0.999 * float(norm_of(points, True, 3)) < worst <= float(norm_of(points, True, 3))
    assert worst > 2 * float(norm_of(points, True, 1))  # to charge such a person once would be wrong


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_blocks_that_are_measured_one_by_one_move_by_the_root_of_their_number(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step reads its own block only, so a history of late rows changes nothing."""
    sums, worst = SumsOverTime(points=3, stddevs=(1,), steps=steps, factored=False), 0.0
    for cells in itertools.product((-1, 0, 1), repeat=3):
        if sum(map(abs, cells)) <= steps:
            values = [[7, 7, 7], [7, 7, 7], [7, 7, 7]]
            for t in range(3):
                values[t][t] = cells[t]
            worst = max(worst, moved(sums, values, monkeypatch))
    assert worst == pytest.approx(float(sums.norm))
    assert worst <= float(sums.norm)
    released = [sums.step(t)._draw([np.array([[5]] * (t + 1))]) for t in range(3)]
    assert sums.sums(released)[0] == [15]


def test_the_better_of_both_ways_is_chosen() -> None:
    """A factor is better for units in one block, and blocks one by one for people who are in all of them."""
    goal = dp.Approx(epsilon=1, delta=1e-6)
    for steps, better in ((1, True), (100, False)):
        bound = [dp.Sensitivity(1, "L2", dp.person("pid"))]
        both = [
            SumsOverTime.for_guarantee(goal, points=100, sensitivity=bound, steps=steps, factored=factored)
            for factored in (True, False)
        ]
        assert (both[0].mean_square < both[1].mean_square) is better
        for one in both:
            assert one.guarantee(bound).delta_at(epsilon=1) <= 1e-6
            assert float(one.error(0.95)) > one.deviations(99, single=False)[0]


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_person_in_some_blocks_moves_it_by_at_most_the_stated_norm(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = 5
    sums, worst = SumsOverTime(points=points, stddevs=(1,), steps=steps), 0.0
    for chosen in itertools.combinations(range(points), steps):
        values = [[int(s in chosen) for s in range(points)] for _ in range(points)]
        worst = max(worst, moved(sums, values, monkeypatch))
    assert 0.9 * float(norm_of(points, True, steps)) < worst <= float(norm_of(points, True, steps))


def test_late_rows_are_counted_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of block s that comes before step t counts with a weight from 0 to 1 in every later total."""
    points = 6
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda variance, many: np.zeros(many, dtype=np.int64))
    sums, size = SumsOverTime(points=points, stddevs=(1,)), 10**6
    for block in range(points):
        for comes in range(block, points):
            values = [[size * (s == block and t >= comes) for s in range(points)] for t in range(points)]
            released = [sums.step(t)._draw([np.array(values[t][: t + 1])[:, None]]) for t in range(points)]
            totals = np.array([sums.sums(released[: t + 1])[0][0] for t in range(points)])
            assert totals.min() >= 0
            assert totals.max() <= size
            if comes == block:
                assert list(totals[block:]) == [size] * (points - block)


def test_late_rows_that_are_added_again_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong rule: each step measures the blocks so far as if they were new, and late rows count many times."""
    points, size = 4, 10**6
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda variance, many: np.zeros(many, dtype=np.int64))
    sums = SumsOverTime(points=points, stddevs=(1,))
    values = [[size, 0, 0, 0]] * points
    again = [np.cumsum(row) for row in values]
    released = [sums.step(t)._draw([again[t][: t + 1][:, None]]) for t in range(points)]
    assert sums.sums(released)[0].max() > size


def test_a_step_with_fresh_noise_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of a step is drawn once: a second draw would be averaged. The rule of a step admits one release."""
    bound = dp.Sensitivity(1, "L2", dp.person("pid"))
    once = Once(limit=sums_over_time.SumsOverTime(points=3, stddevs=(9,)).guarantee([bound]))
    one = once.coordinates(once.limit)
    assert once.fits(one)
    assert not once.fits(once.add(one, once.coordinates(once.limit)))
    with pytest.raises(dp.errors.DiscreetError):
        once.coordinates(dp.Pure(epsilon=0.001))


def check_added_exactly(size: int, factored: bool, patch: pytest.MonkeyPatch) -> None:
    """The sampler draws machine integers up to 2^61. With what was measured they must not wrap around."""
    sums, largest = SumsOverTime(points=4, stddevs=(1,), factored=factored, normalized=False), 2**61 - 1
    for sign in (1, -1):
        patch.setattr(samplers, "discrete_gaussian", lambda variance, many, s=sign: np.full(many, s * largest))
        [drawn] = sums.step(3)._draw([np.array([[0], [0], [0], [size]])])
        assert list(drawn) == [float(2**34 * size + sign * largest) / 2**34]


@pytest.mark.parametrize("factored", [True, False])
@pytest.mark.parametrize("size", [2**26 - 1, 2**26, 2**29 - 1, 2**40, 2**62, -(2**29 - 1)])
def test_large_numbers_and_large_noise_are_added_exactly(
    size: int, factored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_added_exactly(size, factored, monkeypatch)


def test_numbers_that_leave_no_room_for_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong limit: what is measured fits 64 bits, and with its noise it does not."""
    monkeypatch.setattr(sums_over_time, "_SMALL", 2**29)
    with pytest.raises(AssertionError):
        check_added_exactly(2**29 - 1, True, monkeypatch)
