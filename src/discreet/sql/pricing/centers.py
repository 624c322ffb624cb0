"""Centers: where the values lie that a question averages, if limits are found.

A mean is computed about the median of people's own means, within a range if one is declared. A variance of values
without a range, which adds squares, and a quantile of computed values need a range before the rows are read. Its center
is the private median of one value per person, and its width comes from noisy counts of the people at each distance from
it. A value far outside is moved to the ends of a range that is several times as wide. Where these counts show too
few people on either side, the median was chosen by chance, and nothing is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Integers
from discreet.sql.expressions import Expr, Range, Ref
from discreet.sql.measuring.rows import rows_of, safe
from discreet.sql.pricing.automatic_bounds import SURE, AutomaticBound, moved_by_one, too_few, whole_noise
from discreet.sql.question import Measure, Question

PER_OCTAVE, OCTAVES, FINEST = 2**16, 62, 2**20
"""A median is chosen on a grid: so many points for each doubling, from 1/FINEST on, over so many doublings. With more
points, values that lie together far from 0 are told apart; but each doubling of them costs some people."""
IN_RANGE = 2**14
"""Where a range is declared, the center of a mean is chosen from so many equal steps of it."""
FOR_MEDIAN = Fraction(2, 5)
"""The part of ε that finds the median. The rest is for the counts, which need about as many people."""
OCTAVES_OF_A_BIN = 3
"""Distances from the center are counted in bins of so many doublings. In narrower ones, no bin has enough people."""
WIDTH, WIDTH_TO_CHOOSE = 2**6, 2**2
"""The range about the center, in units of the largest distance that enough people have. That of a quantile is narrower,
as it is chosen from a grid of the range."""
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
        return Fraction(number_at(place))


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


def to_find_centers(question: Question, unit: Unit, epsilon: Fraction) -> Iterator[AutomaticBound]:
    """What is found of each value to center, in order, for so much ε each. The spread of each is an example until its
    center is found.
    """
    for number in range(len(question.uncentered)):
        yield center_of(question, number, unit, epsilon)
        yield spread_of(question, number, 0, unit, epsilon)


def center_of(question: Question, number: int, unit: Unit, epsilon: Fraction) -> AutomaticBound:
    """How the center of a value is found: as a median of one value per person. `number` is its position among the
    values to center, and `epsilon` is for the center and the spread.
    """
    value = question.uncentered[number]
    part = Pure(epsilon=epsilon * FOR_MEDIAN)
    median = Quantile.for_guarantee(part, space=Integers(-PER_OCTAVE * OCTAVES, PER_OCTAVE * OCTAVES), unit=unit)
    return AutomaticBound(
        f"the center of {describe(value)}",
        question.relation,
        lambda engine: _places_in(question, value, engine),
        median,
        median.sensitivity(unit),
        int,
        question,
        details=(value, "median"),
    )


def spread_of(question: Question, number: int, center: int, unit: Unit, epsilon: Fraction) -> AutomaticBound:
    """How the range of a value is found about its center, a place on the grid that was released: from the number of
    people at each distance, below and above.

    The center was released, and is paid for by itself. Given it, the bin of a value depends on that value alone, so a
    unit moves these counts as those of any histogram, and both costs add up. The counts alone decide whether anything
    was found. A center that was chosen by chance has nearly everybody on one side, and a count that is large by chance
    is as unlikely as for the range of a column.
    """
    value = question.uncentered[number]
    bound = Sensitivity(moved_by_one(unit), "L1", unit, 2 * _LAST + 1, grain=1)
    noise = whole_noise(bound, epsilon * (1 - FOR_MEDIAN))
    bar = float(noise.error(SURE, values=2 * _LAST + 1))
    needed = 3 * (bar + float(noise.error(0.9)))
    is_added = any(one.kind == "sum" and one.value == value for one in question.measures)

    def read(engine: Engine) -> Any:
        found = _places_in(question, value, engine)
        return np.bincount(_bins_about(center, found) + _LAST, minlength=2 * _LAST + 1).astype(np.int64)

    def range_from(noisy: Any) -> Range:
        seen = [place - _LAST for place, count in enumerate(np.asarray(noisy).tolist()) if count > bar]
        if not seen or min(seen) > 0 or max(seen) < 0:
            raise too_few("values", f"the range of {describe(value)}", needed)
        if seen == [0] and is_added:
            raise too_few("different values", f"the range of {describe(value)}", needed)
        return _range_about(number_at(center), max(map(abs, seen)), WIDTH if is_added else WIDTH_TO_CHOOSE)

    return AutomaticBound(
        f"the range of {describe(value)}",
        question.relation,
        read,
        noise,
        bound,
        range_from,
        question,
        details=(value, center),
        people=needed,
    )


def describe(value: Expr) -> str:
    """What a value is called: a column, or a value that is computed from columns."""
    if isinstance(value, Ref):
        return value.field.name if value.field.origin is None else ".".join(value.field.origin)
    columns = sorted({describe(Ref(field)) for field in value.fields()})
    return f"a value of {' and '.join(columns)}" if columns else "a value"


_LAST = -(-OCTAVES // OCTAVES_OF_A_BIN)
"""The last bin of distances on either side."""


def _bins_about(center: int, places: Any) -> Any:
    """The bins of the distances from the center: 0 for those that are equal, negative for those below it."""
    distances = places_of(_numbers_at(places) - _numbers_at(np.array([center])))  # numpy's own number: 0 if equal
    return np.sign(distances) * -(-(np.abs(distances) // PER_OCTAVE) // OCTAVES_OF_A_BIN)


def _range_about(center: float, bin: int, width: int) -> Range:
    """The range about a center, if this is the last bin of distances that enough people have."""
    spread = max(2.0 ** (OCTAVES_OF_A_BIN * bin + 1) / FINEST, abs(center) / PER_OCTAVE)
    return max(center - width * spread, -LARGEST), min(center + width * spread, LARGEST)


def number_at(place: int) -> float:
    """The number at a place of the grid."""
    size = (2.0 ** (abs(place) / PER_OCTAVE) - 1) / FINEST
    return float(size if place >= 0 else -size)


def _numbers_at(places: Any) -> Any:
    return np.sign(places) * (2.0 ** (np.abs(places) / PER_OCTAVE) - 1) / FINEST


def _places_in(question: Question, value: Expr, engine: Engine) -> Any:
    """Where on the grid the values are, one of each person."""
    found = engine.rows(_count_places(question, value, engine))
    return np.repeat([int(place) for place, _ in found], [int(count) for _, count in found]).astype(np.int64)


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
