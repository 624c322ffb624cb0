"""A question as sums over cells: which combinations of declared values each of its groups adds up.

Conditions and keys that are decided by columns with declared values choose cells. All other conditions stay with the
rows. Two questions can enter one estimate only if the rest is the same: rows, measure, grid, bounds, unit and data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.ledger import Identity
from discreet.ledger.texts.exact import digest, exact_text
from discreet.sql.estimates.points import MOST_CELLS, points_of
from discreet.sql.expressions import Call, Const, Expr, Field, Ref, call, conjuncts
from discreet.sql.measurement import identity_of_rows
from discreet.sql.plan import Plan
from discreet.sql.pricing.relation import Relation, Where
from discreet.sql.question import Bounds, Key, Measure, Question
from discreet.sql.reading.values.public_values import UNKNOWN, Outside, computed
from discreet.sql.schema import Schema

Places = NDArray[np.int16]
"""For each cell, the group that adds it up. −1 for none."""
MOST_GROUPS = 256
"""The largest number of groups of an estimate: the error of each is computed from the laws of all its sources."""
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne", "same": "same"}


@dataclass(frozen=True)
class Table:
    """Values for all combinations of the points of some columns: an axis for each column, in their order."""

    columns: tuple[int, ...]
    values: NDArray[Any]

    def spread(self, columns: Sequence[int], sizes: Sequence[int]) -> NDArray[Any]:
        """The same values over more columns."""
        shape = [size if column in self.columns else 1 for column, size in zip(columns, sizes, strict=True)]
        return np.broadcast_to(self.values.reshape(shape), sizes)


@dataclass(frozen=True)
class LinearMeasure:
    """A measure that adds up cells: the digest of the vector that it is a sum of, and the group of each cell."""

    vector: str
    places: Places


@dataclass(frozen=True)
class LinearQuestion:
    """All measures of a question over the same cells. `columns` are positions among the fields of its rows."""

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    groups: int
    measures: tuple[LinearMeasure, ...]


def linear_question(plan: Plan, schema: Schema, identity: Identity) -> LinearQuestion | None:
    """The plan's question as sums over cells. None if it is none: then it takes part in no estimate."""
    if not may_be_linear(plan):
        return None
    return _Reading(plan, schema, identity).question()


def may_be_linear(plan: Plan) -> bool:
    """Whether all numbers are sums over rows, with noise of known size, in declared groups and within declared caps."""
    question = plan.question
    declared = not plan.automatic and not plan.found and plan.goal is None and plan.price.selection is None
    rows_repeat = plan.bounds is not None and question.relation.person is None
    if not declared or plan.clipping is not None or question.levels or rows_repeat or plan.groups is None:
        return False
    if plan.enforced is not None and _loses_by_groups(plan.enforced, plan.groups.count):
        return False
    added = all(measure.kind in ("count", "sum") and not measure.is_open for measure in question.measures)
    return added and bool(question.measures) and plan.groups.count <= MOST_GROUPS


def _loses_by_groups(bounds: Bounds, groups: int) -> bool:
    """Whether some rows of a person may be left out because of the groups they are in. Other groups would lose others,
    and their numbers do not add up.
    """
    return bounds.groups < min(bounds.rows, groups) or bounds.per_group < bounds.rows


class _Reading:
    """Reads one question. Everything here follows from its text and the declarations."""

    def __init__(self, plan: Plan, schema: Schema, identity: Identity) -> None:
        self.plan, self.schema, self.identity = plan, schema, identity
        self.fields = list(plan.question.relation.fields)
        self.points: dict[int, tuple[Any, ...]] = {}

    def question(self) -> LinearQuestion | None:
        asked = self.plan.question
        keys = [self._key(key) for key in asked.keys]
        if any(key is None for key in keys):
            return None
        columns = {column for key in keys if key is not None for column in key.columns}
        if self._cells(columns) > MOST_CELLS:
            return None
        source, conditions = conditions_of(asked.relation)
        decided, rest, columns = self._split(conditions, columns)
        chosen, left = list[list[Table]](), list[list[Expr]]()
        for measure in asked.measures:
            own, more, columns = self._split([] if measure.where is None else conjuncts(measure.where), columns)
            chosen.append([*decided, *own])
            left.append(more)
        order = tuple(sorted(columns))
        sizes = tuple(len(self.points[column]) for column in order)
        groups = self._groups([key for key in keys if key is not None], order, sizes)
        measures = []
        for measure, tables, more in zip(asked.measures, chosen, left, strict=True):
            kept = np.ones(sizes, dtype=bool)
            for table in tables:
                kept = kept & table.spread(order, sizes)
            places = np.where(kept, groups, -1).ravel().astype(np.int16)
            if len(np.unique(places[places >= 0])) < self._count:
                return None  # a group that no cell is in
            measures.append(LinearMeasure(self._vector(source, rest, measure, more), places))
        return LinearQuestion(order, sizes, self._count, tuple(measures))

    @property
    def _count(self) -> int:
        assert self.plan.groups is not None
        return self.plan.groups.count

    def _vector(self, source: Relation, rest: list[Expr], measure: Measure, more: list[Expr]) -> str:
        """The digest of what is added up: rows, measure, caps, declarations and data. Noise is no part of it."""
        rows = Where(source, joined(rest)) if rest else source
        own = replace(measure, where=joined(sorted(more, key=repr)) if more else None)
        text = identity_of_rows(rows, self.schema, own)
        known = self.identity
        return digest(exact_text((text, known.data_version, known.policy, dict(known.arguments))))[:32]

    # --- what decides a cell ----------------------------------------------------------------------------------

    def _split(self, conditions: Iterable[Expr], columns: set[int]) -> tuple[list[Table], list[Expr], set[int]]:
        """The conditions that columns with declared values decide, all others, and all columns by now."""
        decided, rest = list[Table](), list[Expr]()
        for condition in conditions:
            table = self._table(condition)
            fits = table is not None and self._cells(columns | set(table.columns)) <= MOST_CELLS
            if table is None or not fits or any(value is UNKNOWN for value in table.values.flat):
                rest.append(condition)
                continue
            holds = np.array([value is True for value in table.values.flat], dtype=bool)
            decided.append(Table(table.columns, holds.reshape(table.values.shape)))
            columns = columns | set(table.columns)
        return decided, rest, columns

    def _cells(self, columns: Iterable[int]) -> int:
        return math.prod(len(self.points[column]) for column in columns)

    def _table(self, expr: Expr) -> Table | None:
        """The values of an expression for all points of its columns. None if these are not declared or too many."""
        fields = {self._column(field): field for field in expr.fields()}
        if None in fields:
            return None
        columns = sorted(column for column in fields if column is not None)
        if self._cells(columns) > MOST_CELLS:
            return None
        value = computed(_turned(expr), [Ref(fields[column]) for column in columns])
        found = [value(one) for one in itertools.product(*(self.points[column] for column in columns))]
        values = np.empty(len(found), dtype=object)
        values[:] = found
        return Table(tuple(columns), values.reshape([len(self.points[column]) for column in columns]))

    def _column(self, field: Field) -> int | None:
        """The position of a column whose points are known. None for any other field."""
        if field not in self.fields:
            return None
        column = self.fields.index(field)
        if column not in self.points:
            found = points_of(field)
            if found is None:
                return None
            self.points[column] = found
        return column

    def _key(self, key: Key) -> Table | None:
        """For all points of its columns, the position of a key's value among those of its groups, or −1."""
        table = self._table(key.expr)
        if table is None or key.domain is None:
            return None
        known = {value: place for place, value in enumerate(key.domain)}
        places = [_place(value, known) for value in table.values.flat]
        if None in places:
            return None
        return Table(table.columns, np.array(places, dtype=np.int64).reshape(table.values.shape))

    def _groups(self, keys: Sequence[Table], order: Sequence[int], sizes: Sequence[int]) -> NDArray[np.int64]:
        """The group of every cell, or −1."""
        question: Question = self.plan.question
        domains = [key.domain or () for key in question.keys]
        place, known = np.zeros(sizes, dtype=np.int64), np.ones(sizes, dtype=bool)
        for table, domain in zip(keys, domains, strict=True):
            own = table.spread(order, sizes)
            place, known = place * len(domain) + own, known & (own >= 0)
        if question.shown is not None:
            ranks = [{value: rank for rank, value in enumerate(domain)} for domain in domains]
            numbers = dict[int, int]()
            for number, shown in enumerate(question.shown):
                code = 0
                for rank, value, domain in zip(ranks, shown, domains, strict=True):
                    code = code * len(domain) + rank[value]
                numbers[code] = number
            place = np.array([numbers.get(int(code), -1) for code in place.flat], dtype=np.int64).reshape(sizes)
        return np.where(known, place, -1)


def _place(value: Any, known: dict[Any, int]) -> int | None:
    """The position of a value of a key. −1 if it is in no group, and None if that is not known."""
    if value is UNKNOWN:
        return None
    if isinstance(value, Outside):
        return -1 if all(one is None or one in value.choices for one in known) else None
    return known.get(value, -1)


def conditions_of(relation: Relation) -> tuple[Relation, list[Expr]]:
    """The rows below the last conditions, and all of these."""
    found = list[Expr]()
    while isinstance(relation, Where):
        found = [*conjuncts(relation.condition), *found]
        relation = relation.source
    return relation, found


def joined(conditions: Sequence[Expr]) -> Expr:
    """Several conditions as one."""
    return conditions[0] if len(conditions) == 1 else call("and", *conditions)


def _turned(expr: Expr) -> Expr:
    """An expression in which a constant stands to the right of what it is compared with."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_turned, expr.args))
    if expr.op in _MIRRORED and len(args) == 2 and isinstance(args[0], Const) and not isinstance(args[1], Const):
        return replace(expr, op=_MIRRORED[expr.op], args=args[::-1])
    return replace(expr, args=args)
