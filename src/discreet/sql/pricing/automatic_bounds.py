"""Automatic bounds ("auto"): ranges, frequencies and groups per person that are found privately before a question.

Each is a release of its own, charged before it is drawn, and stored: the same request for the same data at the same ε
costs nothing. The bound is computed only from noisy counts. A range that too few people have values in is not found.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.randomness import random_integer
from discreet.exact.rational import significant
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.mechanisms.combine import Composed
from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.sensitivity import Sensitivity
from discreet.sql.expressions import Field, Origin
from discreet.sql.measuring.compile import Statement
from discreet.sql.measuring.rows import rows_of
from discreet.sql.pricing.relation import DEFAULTS, Few, Names, Relation, parts_of
from discreet.sql.question import Bounds, Measure, Question
from discreet.sql.schema import AUTO, Column, Found, Schema

SHARE, MOST_SHARE = Fraction(1, 10), Fraction(1, 2)
"""Every bound that is found takes this part of a question's ε; all of them together at most so much."""
OCTAVES = {"integer": (0, 40), "number": (-16, 40)}
"""Numbers are sorted by size: those under 2^first are 0, then one bin for each doubling, on either side of 0; the last
one holds all that are larger."""
YEARS = range(1900, 2101)
SURE = 0.999
MOST_GROUPS = 100
IMAGINED_GROUPS = 100
"""The assumed number of groups if it is not declared."""


@dataclass(frozen=True)
class AutomaticBound:
    """One release: which bound is found, what is read for it, the noise, and how the bound follows from the noisy
    numbers. It also has the question it is found for, if it is of no use to another question, and in `details` all
    that tells it apart from others of the same question. `people` is about how many need values near each other for it
    to be found.
    """

    what: str
    of: Relation
    read: Callable[[Engine], Any]
    mechanism: Any
    sensitivity: Any
    value: Callable[[Any], Any]
    question: Question | None = None
    stated: Guarantee | None = None
    details: Any = None
    people: float | None = None

    @property
    def asked(self) -> str:
        """The request, for the ledger's record."""
        return self.what if self.question is None else f"{self.what} in {self.question.same}"

    @property
    def guarantee(self) -> Guarantee:
        """What is charged for it: what the mechanism promises, or what is stated instead."""
        return self.mechanism.guarantee(self.sensitivity) if self.stated is None else self.stated


def share_of(count: int) -> Fraction:
    """The part of ε that each of these bounds takes."""
    return min(SHARE, MOST_SHARE / max(count, 1))


def is_found(bound: AutomaticBound, retry_key: str | None, knows: Callable[[AutomaticBound, str | None], bool]) -> bool:
    """Whether a bound was found before, as far as is known. One that was found for other groups than those that are
    assumed is another request with the same key: it is looked up again once its groups are found.
    """
    try:
        return knows(bound, retry_key)
    except InvalidArgument as error:
        if error.code != "ledger-key-reused":
            raise
        return False


def columns_to_find(
    relation: Relation, bounded: Iterable[Field], unranged: Iterable[Origin] = ()
) -> list[tuple[str, Origin]]:
    """The columns that need a range or a frequency and have none declared. Those of `unranged` need one for quantiles
    alone.
    """
    ranges = {("between", origin) for field in bounded for origin in field.found}
    joined = {("frequency", part.found) for part in parts_of(relation) if isinstance(part, Few) and part.found}
    return [*sorted(ranges | joined), *(("between", origin) for origin in sorted(unranged))]


def with_bound(schema: Schema, name: str, origin: Origin, value: Any) -> Schema:
    """The schema with a bound that was found for a column."""
    table = schema.tables[origin[0]]
    column = table.columns[origin[1]]
    known = replace(column, between=Found(value)) if name == "between" else replace(column, frequency=value)
    columns = {**table.columns, column.name: known}
    return replace(schema, tables={**schema.tables, table.name: replace(table, columns=columns)})


def without_ranges(schema: Schema, columns: Iterable[Origin]) -> Schema:
    """The schema in which the ranges of these columns are to be found."""
    for origin in columns:
        table = schema.tables[origin[0]]
        known = {**table.columns, origin[1]: replace(table.columns[origin[1]], between=AUTO)}
        schema = replace(schema, tables={**schema.tables, table.name: replace(table, columns=known)})
    return schema


def widest(
    schema: Schema, wanted: list[tuple[str, Origin]], unranged: Collection[Origin] = ()
) -> tuple[Schema, dict[Origin, Any]]:
    """The schema, and the ranges of `unranged` columns, with the widest bounds that could be found. A question that is
    valid with these is valid with all others.
    """
    chosen = {}
    for name, origin in wanted:
        column = schema.tables[origin[0]].columns[origin[1]]
        bins = _bins(column) if name == "between" else range(0)
        bound = _ends(column, [bins[0], bins[-1]]) if bins else 1
        if origin in unranged:
            chosen[origin] = bound
        else:
            schema = with_bound(schema, name, origin, bound)
    return schema, chosen


def column_bound(schema: Schema, name: str, origin: Origin, epsilon: Fraction) -> AutomaticBound:
    """How a bound of a column is found."""
    return (_range if name == "between" else _frequency)(schema, origin, epsilon)


# --- ranges -------------------------------------------------------------------------------------------------


def _range(schema: Schema, origin: Origin, epsilon: Fraction) -> AutomaticBound:
    """The range of a column, from the number of people with a value in each bin. One value per person is chosen at
    random.
    """
    column = schema.tables[origin[0]].columns[origin[1]]
    relation = Names(schema).scan(schema.tables[origin[0]])
    bins = _bins(column)
    bound = Sensitivity(moved_by_one(schema.unit), "L1", schema.unit, len(bins), grain=1)
    noise = whole_noise(bound, epsilon)
    least = float(noise.error(SURE, values=len(bins)))
    needed = least + float(noise.error(0.9))

    def read(engine: Engine) -> Any:
        found = dict(engine.rows(_count_in_bins(relation, column, engine)))
        return np.array([found.get(bin, 0) for bin in bins], dtype=np.int64)

    what = f"the range of {'.'.join(origin)}"

    def value(noisy: Any) -> tuple[Any, Any]:
        seen = [bin for bin, count in zip(bins, np.asarray(noisy).tolist(), strict=True) if count > least]
        if (found := _ends(column, seen)) is None:
            raise too_few("values", what, needed)
        return found

    return AutomaticBound(what, relation, read, noise, bound, value, people=needed)


def too_few(values: str, what: str, needed: float) -> NotAllowed:
    """Why a range was not found. How many people it needs follows from public numbers."""
    return NotAllowed(
        f"Too few people have {values} to find {what}: about {about(needed)} are needed whose values are near each "
        "other, and half as many at twice the ε. What was charged to find it stays charged. Spend more ε, or have "
        "between declared.",
        code="too-few-people",
    )


def about(number: float) -> str:
    """A number with two digits."""
    return f"{float(f'{number:.2g}'):,.0f}"


def _bins(column: Column) -> range:
    if column.type in ("date", "timestamp"):
        return YEARS
    first, last = OCTAVES[column.type]
    return range(first - last, last - first + 1)


def _count_in_bins(relation: Relation, column: Column, engine: Engine) -> str:
    """How many people (or rows) have a value in each bin."""
    field = next(field for field in relation.fields if field.name == column.name)
    dialect = engine.dialect
    name = dialect.quote(field.id)
    if column.type in ("date", "timestamp"):
        bin = dialect.year_bin(name, YEARS[0], YEARS[-1])
    else:
        bin = dialect.octave_bin(name, *OCTAVES[column.type])
    whose = "" if relation.person is None else f", {dialect.quote(relation.person.id)} AS person"
    rows = f"SELECT {bin} AS bin{whose} FROM ({rows_of(relation, engine)}) AS one"
    rows = f"SELECT * FROM ({rows}) AS one WHERE bin IS NOT NULL"
    if relation.person is not None:
        rows = dialect.one_of_each(f"{rows} AND person IS NOT NULL", "person", "bin")
    return f"SELECT bin, count(*) FROM ({rows}) AS one GROUP BY bin"


def _ends(column: Column, seen: list[int]) -> tuple[Any, Any] | None:
    """From the first to the last bin that enough people have values in. None if there is no such bin."""
    if not seen:
        return None
    low, high = min(seen), max(seen)
    if column.type == "date":
        return datetime.date(low, 1, 1), datetime.date(high, 12, 31)
    if column.type == "timestamp":
        return datetime.datetime(low, 1, 1), datetime.datetime(high + 1, 1, 1)
    ends = _edge(column, low, outer=low < 0), _edge(column, high, outer=high > 0)
    return ends if ends[0] < ends[1] else DEFAULTS[column.type]


def _edge(column: Column, bin: int, *, outer: bool) -> int | float:
    """The end of a bin that is farther from 0, or the nearer one."""
    if bin == 0:
        return 0
    power = OCTAVES[column.type][0] + abs(bin) - (0 if outer else 1)
    return int(math.copysign(2.0**power, bin)) if power >= 0 else math.copysign(2.0**power, bin)


# --- frequencies --------------------------------------------------------------------------------------------


def _frequency(schema: Schema, origin: Origin, epsilon: Fraction) -> AutomaticBound:
    """The maximum number of rows that share a value. One row more or less changes it by at most one."""
    bound = Sensitivity(schema.unit.most_rows, "L1", schema.unit, grain=1)
    noise = whole_noise(bound, epsilon)
    margin = float(noise.error(0.95))

    def read(engine: Engine) -> Any:
        key = engine.dialect.quote(origin[1])
        counts = f"SELECT count(*) AS n FROM {engine.relations[origin[0]]} WHERE {key} IS NOT NULL GROUP BY {key}"
        return np.array([engine.rows(f"SELECT coalesce(max(n), 0) FROM ({counts}) AS one")[0][0]], dtype=np.int64)

    def value(noisy: Any) -> int:
        return max(1, int(np.asarray(noisy)[0]) + math.ceil(margin))

    relation = Names(schema).scan(schema.tables[origin[0]])
    return AutomaticBound(f"how many rows share one {'.'.join(origin)}", relation, read, noise, bound, value)


# --- groups per person --------------------------------------------------------------------------------------


def wants_groups(question: Question) -> bool:
    """Whether the number of groups per person must be found for this question."""
    private = [table for table in question.relation.tables() if not table.public]
    return bool(question.keys) and any(table.groups_per_person == AUTO for table in private)


def groups_bound(
    question: Question,
    unit: Unit,
    bounds: Bounds,
    groups: int | None,
    epsilon: Fraction,
    noise_of: Callable[[Bounds], Any],
) -> AutomaticBound:
    """How many groups of one person to use, from the distribution of groups per person and the number of rows.

    With few groups some rows are lost. With many the noise grows. The chosen number minimizes the sum of both, measure
    by measure and relative to a group of average size. `noise_of` prices a bound.
    """
    most = min(bounds.groups, MOST_GROUPS)
    people = Sensitivity(moved_by_one(unit), "L1", unit, most, grain=1)
    rows = Sensitivity(moved_by_one(unit) * bounds.rows, "L1", unit, grain=1)
    noise = Composed(mechanisms=(whole_noise(people, epsilon / 2), whole_noise(rows, epsilon / 2)))
    least = float(noise.mechanisms[0].error(0.95, values=most))

    def read(engine: Engine) -> Any:
        plain = replace(question, measures=(Measure("count"),), aggregates=(), outputs=())
        statement = _Spread(plain, engine, bounds, random_integer(62))
        found = {groups: (count, total) for groups, count, total in engine.rows(statement.spread(most))}
        counts = np.array([found.get(groups, (0, 0))[0] for groups in range(1, most + 1)], dtype=np.int64)
        return counts, np.array([sum(int(total) for _, total in found.values())], dtype=np.int64)

    def value(noisy: Any) -> int:
        counts, (total,) = (np.asarray(part, dtype=np.float64) for part in noisy)
        seen = np.where(counts > least, counts, 0.0)  # noise alone would look like many people with many groups
        return _best(question, bounds, seen, total, groups or IMAGINED_GROUPS, noise_of)

    what = f"groups_per_person (of {bounds.rows} rows at most {most})"
    return AutomaticBound(what, question.relation, read, noise, [people, rows], value, question)


class _Spread(Statement):
    """The distribution of groups per person."""

    def spread(self, most: int) -> str:
        """For each number of groups, how many people have that many, and how many rows they have within the bounds."""
        assert self.bounds is not None
        total = self.dialect.exact_sum("n", 1)  # their sum is the number of rows
        self.steps += [
            ("pairs", self._grouped(["count(*) AS n"], self.rows, ["person", *self.keys])),
            (
                "people",
                f"SELECT least(count(*), {most}) AS groups, least({total}, {self.bounds.rows}) AS n FROM pairs "
                "GROUP BY person",
            ),
        ]
        return self._query(f"SELECT groups, count(*), {total} FROM people GROUP BY groups")


def _best(
    question: Question, bounds: Bounds, counts: Any, total: float, number: int, noise_of: Callable[[Bounds], Any]
) -> int:
    """The number of groups that minimizes the lost rows plus the noise."""
    groups = np.arange(1, len(counts) + 1)
    pairs = max(float(counts @ groups), 1.0)
    size = max(total, pairs) / number

    def cost(most: int) -> float:
        lost = float(counts @ np.maximum(groups - most, 0)) / pairs
        parts = noise_of(replace(bounds, groups=most)).parts
        return sum(
            lost + float(part.error(0.5)) / (size * _typical(measure))
            for measure, part in zip(question.measures, parts, strict=True)
        )

    return min(candidates(len(counts)), key=cost)


def candidates(most: int) -> list[int]:
    """The numbers that are compared: all small ones, then about six for each doubling."""
    found = {min(most, round(2 ** (step / 6))) for step in range(6 * most.bit_length() + 1)}
    return sorted(found)


def _typical(measure: Measure) -> float:
    """What a row adds to a measure, if values are uniform in their range."""
    return measure.reach**measure.power / (1 + measure.power) if measure.kind == "sum" else 1.0


# --- noise --------------------------------------------------------------------------------------------------


def moved_by_one(unit: Unit) -> int:
    """Each row of a unit, or one value of a person, is in one bin. If it is replaced, it leaves one and enters
    another.
    """
    return unit.most_rows * (1 if unit.neighbors == "add_or_remove" else 2)


def whole_noise(bound: Sensitivity, epsilon: Fraction) -> Laplace:
    return Laplace(scale=significant(bound.exact / epsilon, up=True), step=1)
