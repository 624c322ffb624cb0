"""Centers: where the values lie that a question averages, if limits are found.

A mean is computed about the median of people's own means, within a range if one is declared. For a variance of values
without a range, which adds squares, and for a quantile of computed values, two private quartiles, one value per person,
give a center and a spread before the rows are read. A value far outside is moved to the ends of a range that is a
thousand times as wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.combine import Composed
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.queries.space import Integers
from discreet.sql.expressions import Expr, Range, Ref
from discreet.sql.measuring.rows import rows_of, safe
from discreet.sql.pricing.automatic_bounds import AutomaticBound
from discreet.sql.question import Measure, Question

PER_OCTAVE, OCTAVES, FINEST = 2**16, 62, 2**20
"""Quartiles are chosen on a grid: so many points for each doubling, from 1/FINEST on, over so many doublings. With more
points, values that lie together far from 0 are told apart; but each doubling of them costs some people."""
IN_RANGE = 2**14
"""Where a range is declared, the center of a mean is chosen from so many equal steps of it."""
WIDTH = 2**10
"""The range about the center, in units of the spread."""
LARGEST = 1e15
FARTHEST = 2.0**OCTAVES / FINEST
"""The last point of the grid."""


def places_of(numbers: Any) -> Any:
    """The positions of numbers on the grid, each computed by itself."""
    with np.errstate(all="ignore"):
        size = np.minimum(np.abs(np.asarray(numbers, np.float64)), FARTHEST)
        place = np.minimum(np.floor(np.log2(1.0 + size * FINEST) * PER_OCTAVE), PER_OCTAVE * OCTAVES)
    return (np.sign(numbers) * place).astype(np.int64)


def middle_of(question: Question, part: int, unit: Unit, epsilon: Fraction, means: Callable[[], Any]) -> AutomaticBound:
    """How the center of a mean is found: as the median of people's own means, in the unit of the values."""
    measure = question.measures[part]
    assert measure.value is not None
    grid = _All(measure) if measure.is_open else _Within(measure)
    median = Quantile.for_guarantee(Pure(epsilon=epsilon), space=Integers(*grid.ends), unit=unit)
    return AutomaticBound(
        f"the center of {describe(measure.value)}",
        question.relation,
        lambda engine: grid.places(means()),
        median,
        median.sensitivity(unit),
        lambda place: grid.number(int(place)),
        question,
        details=(measure.value, measure.where),
    )


@dataclass(frozen=True)
class _All:
    """The grid of all numbers: finer about 0."""

    measure: Measure
    ends = (-PER_OCTAVE * OCTAVES, PER_OCTAVE * OCTAVES)

    def places(self, means: Any) -> Any:
        return places_of(means * float(self.measure.step) + float(self.measure.center))

    def number(self, place: int) -> Fraction:
        return Fraction(_number_at(place))


@dataclass(frozen=True)
class _Within:
    """The grid of a declared range, with equal steps: few people can tell the part of it that the values are in."""

    measure: Measure
    ends = (0, IN_RANGE)

    def places(self, means: Any) -> Any:
        lowest, highest = self.measure.lowest, self.measure.highest
        return np.rint(np.clip((means - lowest) / (highest - lowest), 0, 1) * IN_RANGE).astype(np.int64)

    def number(self, place: int) -> Fraction:
        lowest, highest = self.measure.lowest, self.measure.highest
        return self.measure.center + self.measure.step * (lowest + Fraction(place, IN_RANGE) * (highest - lowest))


def center_of(question: Question, number: int, unit: Unit, epsilon: Fraction) -> AutomaticBound:
    """How the range of an averaged value is found. `number` is its position among the values to center."""
    value = question.uncentered[number]
    far = PER_OCTAVE * OCTAVES
    space, half = Integers(-far, far), Pure(epsilon=epsilon / 2)
    quartiles = [Quantile.for_guarantee(half, space=space, quantile=Fraction(part, 4), unit=unit) for part in (1, 3)]

    def read(engine: Engine) -> Any:
        found = engine.rows(_count_places(question, value, engine))
        places = np.repeat([int(place) for place, _ in found], [int(count) for _, count in found]).astype(np.int64)
        return places, places

    return AutomaticBound(
        f"the center of {describe(value)}",
        question.relation,
        read,
        Composed(mechanisms=tuple(quartiles)),
        [quartile.sensitivity(unit) for quartile in quartiles],
        _range_about,
        question,
        details=value,
    )


def describe(value: Expr) -> str:
    """What a value is called: a column, or a value that is computed from columns."""
    if isinstance(value, Ref):
        return value.field.name if value.field.origin is None else ".".join(value.field.origin)
    columns = sorted({describe(Ref(field)) for field in value.fields()})
    return f"a value of {' and '.join(columns)}" if columns else "a value"


def _range_about(quartiles: Any) -> Range:
    """The range about the center of two quartiles."""
    low, high = sorted(_number_at(int(place)) for place in quartiles)
    center = (low + high) / 2
    spread = max((high - low) / 2, abs(center) / PER_OCTAVE, 1 / FINEST)
    return max(center - WIDTH * spread, -LARGEST), min(center + WIDTH * spread, LARGEST)


def _number_at(place: int) -> float:
    size = (2.0 ** (abs(place) / PER_OCTAVE) - 1) / FINEST
    return float(size if place >= 0 else -size)


def _count_places(question: Question, value: Expr, engine: Engine) -> str:
    """How many people have their value, one each, at each point of the grid."""
    dialect, relation = engine.dialect, question.relation
    number = dialect.distance(safe(value, dialect), Fraction(0), value.type)
    person = None if relation.person is None else dialect.quote(relation.person.id)
    whose = "" if person is None else f", {person} AS person"
    rows = f"SELECT {number} AS number{whose} FROM ({rows_of(relation, engine)}) AS one"
    place = dialect.log_place("number", PER_OCTAVE, OCTAVES, FINEST)
    rows = f"SELECT {place} AS bin{', person' if whose else ''} FROM ({dialect.fenced(rows)}) AS one"
    rows = f"SELECT * FROM ({rows}) AS one WHERE bin IS NOT NULL"
    if relation.person is not None:
        rows = dialect.one_of_each(f"{rows} AND person IS NOT NULL", "person", "bin")
    return f"SELECT bin, count(*) FROM ({rows}) AS one GROUP BY bin"
