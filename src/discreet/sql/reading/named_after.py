"""Which fields are made from the columns that identify people, through every query in FROM and every join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from discreet.sql.expressions import Call, Expr, Field, conjuncts
from discreet.sql.pricing.relation import (
    Both,
    Join,
    PerPerson,
    Project,
    Relation,
    Tested,
    Where,
    Windowed,
    parts_of,
)
from discreet.sql.schema import Schema

_NUMBERED = ("count", "distinct")
"""Aggregates that show how many values there are, and none of them."""


def is_named_after_people(expr: Expr, relation: Relation, schema: Schema) -> bool:
    """Whether the values of an expression may be those that identify people, or be made from them."""
    made_from: dict[Field, set[Field]] = {}
    for shown, used in _made_from(relation):
        made_from.setdefault(shown, set()).update(used)
    waiting, seen = list(expr.fields()), set[Field]()
    while waiting:
        field = waiting.pop()
        if field in seen:
            continue
        if schema.leads(field.origin) is not None:
            return True
        seen.add(field)
        waiting += made_from.get(field, ())
    return False


def _made_from(relation: Relation) -> Iterator[tuple[Field, Iterable[Field]]]:
    """Fields, each with fields that it is made from, or that it is equal to in all rows."""
    for part in parts_of(relation):
        match part:
            case Project(columns=columns):
                yield from ((field, expr.fields()) for field, expr in columns)
            case PerPerson(columns=aggregates):
                yield from ((field, expr.fields()) for field, word, expr in aggregates if word not in _NUMBERED)
            case Windowed(columns=windows):
                for field, over in windows:
                    if over.value is not None and over.word not in _NUMBERED:
                        yield field, over.value.fields()
            case Both(left=left, right=right, fields=fields):
                yield from zip(fields, zip(left.fields, right.fields, strict=True), strict=True)
            case Join(condition=condition) | Where(condition=condition) | Tested(condition=condition):
                yield from _equal(condition)


def _equal(condition: Expr) -> Iterator[tuple[Field, Iterable[Field]]]:
    """Fields of a condition, each with those that it is compared with: a public name that is equal to a person's."""
    for part in conjuncts(condition):
        match part:
            case Call(op="eq", args=(first, second)):
                yield from ((field, second.fields()) for field in first.fields())
                yield from ((field, first.fields()) for field in second.fields())
