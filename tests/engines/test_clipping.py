"""Clipped people on every engine: the same integers as a reference in Python. One test body for all engines."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.sql.measuring.clipped import holding, read_clipped, read_norms
from discreet.sql.measuring.groups import Groups
from discreet.sql.planner import Planner
from discreet.sql.pricing.clipping import LARGEST, Clip, with_centers
from discreet.sql.question import OPEN
from discreet.sql.schema import Column, Schema, Table

PERSON = dp.person("pid")
TYPES = {"pid": pa.int64(), "k": pa.string(), "x": pa.float64(), "y": pa.int64(), "w": pa.bool_()}
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b", "c")),
    "x": Column(name="x", type="number"),
    "y": Column(name="y", type="integer"),
    "w": Column(name="w", type="boolean"),
}
COUNT = "SELECT k, COUNT(*) AS n, COUNT(DISTINCT pid) AS p FROM t GROUP BY k"
SUMS = "SELECT k, SUM(x) AS s, SUM(CASE WHEN w THEN x ELSE 0 END) AS c, SUM(y) AS t FROM t GROUP BY k"
MEANS = "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, AVG(y) FILTER (WHERE w) AS f FROM t GROUP BY k"
WHOLE = "SELECT COUNT(*) AS n, SUM(y) AS s FROM t WHERE k <> 'c'"
QUESTIONS = [COUNT, SUMS, MEANS, WHOLE]
ODD = [
    (7, "a", float("nan"), None, None),
    (7, None, 3.5, 4, True),
    (None, "a", 1e6, 7, True),
    (8, "b", float("inf"), -(2**63), False),
    (8, "b", -1e308, 2**63 - 1, True),
    (9, "z", 5.0, 5, True),
]


def rows_of(seed: int, people: int = 12) -> list[tuple[Any, ...]]:
    """People with many rows and few, values of all sizes and both signs, and odd cells."""
    draw = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for person in range(people):
        for _ in range(int(draw.integers(1, 9) ** (1 + person % 3))):
            x = float(draw.choice([-1, 1]) * 2.0 ** draw.integers(-12, 12 + person))
            y = int(draw.integers(-50, 1000)) if draw.random() < 0.9 else None
            rows.append((person, str(draw.choice(["a", "b", "c"])), x, y, bool(draw.random() < 0.5)))
    return rows + ODD


def planner_of(opened: Any, rows: list[tuple[Any, ...]], unit: Any = PERSON) -> Planner:
    data = pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(TYPES.items())})
    table = Table(name="t", columns=COLUMNS, person="pid" if unit.column else None)
    ledger = dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=1e6, delta=0.1))
    return Planner(Schema(unit=unit, tables={"t": table}), opened({"t": data}), ledger)


def steps_of(measure: Any, row: dict[str, Any]) -> int:
    """What one row adds to a measure: 0, 1, or its value as a number of steps from the center."""
    if not _holds(measure.where, row):
        return 0
    if measure.kind != "sum":
        return 1
    value = _value(measure.value, row)
    if value is None or math.isnan(value):
        return 0
    shift = int(measure.center / measure.step)
    whole = (
        _nearest(max(min(Fraction(value), OPEN * measure.step), -OPEN * measure.step) / measure.step)
        if math.isfinite(value)
        else int(math.copysign(OPEN, value))
    )
    return whole - shift


def _nearest(value: Fraction) -> int:
    return round(value)


def _value(expr: Any, row: dict[str, Any]) -> float | None:
    if hasattr(expr, "field"):
        found = row[expr.field.name]
        return None if found is None else float(found)
    if expr.op == "case":
        return _value(expr.args[1], row) if row["w"] is True else 0.0
    raise AssertionError(expr)


def _holds(where: Any, row: dict[str, Any]) -> bool:
    if where is None:
        return True
    if hasattr(where, "field"):
        return row[where.field.name] is True
    match where.op:
        case "and":
            return all(_holds(part, row) for part in where.args)
        case "not":
            return not _holds(where.args[0], row)
        case "is_null":
            return _value(where.args[0], row) is None
        case "is_number":
            value = _value(where.args[0], row)
            return value is not None and not math.isnan(value)
    raise AssertionError(where)


def totals_of(plan: Any, rows: list[tuple[Any, ...]], *, whole: bool) -> dict[Any, dict[Any, list[int]]]:
    """For each person and group, the totals of the basis. A row is a person of its own if nobody owns it."""
    basis, found = (
        plan.clipping.basis,
        defaultdict(lambda: defaultdict(lambda: [0] * len(plan.clipping.basis.measures))),
    )
    owned = plan.question.relation.person is not None
    for number, cells in enumerate(rows):
        row = dict(zip(TYPES, cells, strict=True))
        if owned and row["pid"] is None:
            continue
        if (row["k"] is None or row["k"] == "c") if whole else row["k"] not in ("a", "b", "c"):
            continue
        sums = found[row["pid"] if owned else number][() if whole else (row["k"],)]
        for place, (measure, minus) in enumerate(zip(basis.measures, basis.minus, strict=True)):
            sums[place] += steps_of(measure, row) - (0 if minus is None else steps_of(minus, row))
    most = OPEN // len(basis.measures)
    for groups in found.values():
        for sums in groups.values():
            for place, measure in enumerate(basis.measures):
                sums[place] = int(sums[place] > 0) if measure.kind == "people" else max(-most, min(most, sums[place]))
    return found


def vector_of(
    clip: Clip, groups: dict[Any, list[int]], kinds: tuple[int, ...]
) -> tuple[dict[Any, list[int]], list[int]]:
    """What one person adds to each cell, and to what measures the loss, by the rule of the study in integers."""
    steps = {key: [_in_steps(clip, n, total) for n, total in enumerate(totals)] for key, totals in groups.items()}
    flat = [abs(step) for cells in steps.values() for step in cells]
    squares = sum(step**2 for step in flat)
    is_above = sum(flat) > clip.limit if clip.norm == "L1" else squares > clip.limit**2
    lost = [0] * (max(kinds) + 1)
    if not is_above:
        return steps, lost
    root = sum(flat) if clip.norm == "L1" else math.isqrt(squares - 1) + 1
    of_all, most = sum(flat), clip.most_lost * clip.limit
    if most:  # the part of so many limits that is lost, S·(N − limit)/N of `most`, and at most all of it
        of_all = max(of_all, most * clip.limit // (root - clip.limit) + most + 1)
    for kind in range(len(lost)):
        own = sum(abs(cells[n]) for cells in steps.values() for n in range(len(kinds)) if kinds[n] == kind)
        lost[kind] = own * clip.above // of_all
    scaled = {k: [int(math.copysign(abs(s) * clip.limit // root, s)) for s in cells] for k, cells in steps.items()}
    return scaled, lost


def _in_steps(clip: Clip, n: int, total: int) -> int:
    most, size = LARGEST // clip.factors[n], abs(total)
    if clip.shifts[n] < 0:
        found = min(size >> -clip.shifts[n], most) * clip.factors[n]
    else:
        found = min(size, most >> clip.shifts[n]) * (clip.factors[n] << clip.shifts[n])
    return found if total >= 0 else -found


def prepared(planner: Planner, text: str) -> Any:
    """The plan of a question whose means have centers."""
    plan = planner.plan(text, epsilon=1, delta=0)
    centers = {part: Fraction(37, 4) for part in planner.to_center(plan.question, plan.terms)}
    return planner.priced(with_centers(plan.question, centers), plan.terms) if centers else plan


def clips_of(plan: Any) -> list[Clip]:
    """Clips at which some people are above the limit, and others are not; also where totals are divided."""
    scales = [tuple(limits[min(place, len(limits) - 1)] for limits in plan.clipping.limits) for place in (3, 9, 40)]
    found = [plan.clipping.clip(one) for one in scales]
    found += [replace(clip, norm="L2", limit=clip.limit // 2 + 1) for clip in found]
    measured = [plan.clipping.in_squares(clip, clip.limit // 2 + 1) for clip in found[:3]]
    return [*found, *measured, replace(found[0], most_lost=1), replace(found[1], most_lost=2)]


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("text", QUESTIONS)
@pytest.mark.parametrize("protected", ["person", "row"])
def test_sums_of_clipped_people_are_those_of_the_reference(opened, text, protected):
    rows = rows_of(1)
    planner = planner_of(opened, rows, PERSON if protected == "person" else dp.row())
    plan = prepared(planner, text.replace("COUNT(DISTINCT pid)", "SUM(y)") if protected == "row" else text)
    if plan.clipping is None:
        pytest.fail("a question without declared bounds clips people")
    totals = totals_of(plan, rows, whole=text == WHOLE)
    groups, kinds = Groups(plan.question), plan.clipping.basis.kinds
    places = {key: place for place, key in enumerate(groups.keys())}
    with holding(planner.engine) as pairs:
        norms = read_norms(pairs, plan.question, plan.clipping)
        for kind, found in enumerate(norms):
            own = [n for n, of in enumerate(kinds) if of == kind]
            sizes = [min(OPEN, sum(abs(cells[n]) for cells in of.values() for n in own)) for of in totals.values()]
            assert sorted(found.tolist()) == sorted(sizes)
        for clip in clips_of(plan):
            expected = [np.zeros(groups.count, dtype=object) for _ in kinds]
            lost = np.zeros(max(kinds) + 1, dtype=object)
            for of in totals.values():
                vector, own = vector_of(clip, of, kinds)
                lost += np.array(own, dtype=object)
                for key, cells in vector.items():
                    for n, step in enumerate(cells):
                        expected[n][places[key]] += step
            found = read_clipped(pairs, plan.question, plan.clipping, clip, groups)
            assert [part.tolist() for part in found] == [*(part.tolist() for part in expected), lost.tolist()]
