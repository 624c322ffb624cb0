"""Joins that say by themselves who owns a row, so that nobody need look its owner up.

A row whose key leads to people (`through` in the policy) is joined to the table of their keys, to find its owners. If a
query joins it by that key to a row of one of these people, then the person is known, and the rows are the same without
the look-up: the pair of key and person is among those that would be looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from discreet.sql.expressions import Call, Field, Ref, call, conjuncts
from discreet.sql.pricing.relation import Join, Led, Project, Relation, Scan, Tested, Where


def without_owners(join: Join) -> Relation:
    """The same rows, without looking up owners that the other side of the join says. The join itself if none does."""
    if join.kind == "full":
        return join  # a row without a match needs its own owner
    sides = [(join.left, join.right)] if join.kind == "left" else [(join.left, join.right), (join.right, join.left)]
    for known, other in sides:
        led = next((led for led in _met(other) if isinstance(led, Led) and _says(join, known, other, led)), None)
        if led is not None:
            lean = _without(other, led)
            both = (known, lean) if other is join.right else (lean, known)
            people = {known.person, other.person}
            kept = [part for part in conjuncts(join.condition) if not _equates(part, people)]
            found = Join(*both, kept[0] if len(kept) == 1 else call("and", *kept), join.kind, known.person, join.pairs)
            return Project(found, tuple((field, Ref(field)) for field in join.fields), join.person)
    return join


def _met(relation: Relation) -> Iterator[Scan | Led]:
    """The tables a row of which is in every row of a relation. All of them that have a person have the same."""
    match relation:
        case Scan() | Led():
            yield relation
        case Where(source=source) | Tested(source=source) | Join(left=source, kind="left"):
            yield from _met(source)
        case Join(left=left, right=right, kind="inner"):
            yield from _met(left)
            yield from _met(right)


def _says(join: Join, known: Relation, other: Relation, led: Led) -> bool:
    """Whether the known side of a join says who owns the rows of `led`, which nothing but this join asks."""
    if known.person is None or other.person != led.person or _asks(other, led.person):
        return False
    equal = {frozenset(pair) for pair in join.pairs}
    return any(frozenset((key, led.key)) in equal for table in _met(known) for key in _keys(table, led))


def _keys(known: Scan | Led, led: Led) -> Iterator[Field]:
    """The keys of a table that lead to its own person as the key of `led` does."""
    table = known if isinstance(known, Scan) else known.scan
    owners = led.owners if isinstance(led.owners, Scan) else led.owners.sources[0]
    if known.person is not None and isinstance(owners, Scan) and table.table.name == owners.table.name:
        yield from (field for field in table.fields if field.name == led.owners_key.name)
    if isinstance(known, Led) and known.scan.table.path == led.scan.table.path:
        yield known.key


def _asks(relation: Relation, person: Field) -> bool:
    """Whether a condition within a relation depends on who owns a row."""
    match relation:
        case Where(condition=condition) | Join(condition=condition):
            asked = any(person in _fields(part) for part in conjuncts(condition))
            return asked or any(_asks(source, person) for source in relation.sources)
        case Tested(source=source, condition=condition, tests=tests):
            conditions = (condition, *(test.condition for test in tests))
            return any(person in _fields(one) for one in conditions) or _asks(source, person)
    return False


def _fields(expr: object) -> set[Field]:
    if isinstance(expr, Ref):
        return {expr.field}
    return set().union(*map(_fields, expr.args)) if isinstance(expr, Call) else set()


def _equates(part: object, people: set[Field | None]) -> bool:
    return isinstance(part, Call) and part.op == "eq" and len(people) == 2 and _fields(part) == people


def _without(relation: Relation, led: Led) -> Relation:
    """The rows of a relation whose owners are not looked up."""
    match relation:
        case Led() if relation is led:
            return led.scan
        case Where(source=source) | Tested(source=source):
            return replace(relation, source=_without(source, led))
        case Join(left=left, right=right):
            person = None if relation.person == led.person else relation.person
            return replace(relation, left=_without(left, led), right=_without(right, led), person=person)
    return relation
