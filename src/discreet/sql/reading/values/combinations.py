"""Which combinations of keys exist, where public facts say it: the regions and cities of a public table, the years and
months of one date, the levels of a declared hierarchy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from discreet.mechanisms.selection.threshold import order_of
from discreet.sql.expressions import Expr, Field, Ref, call, conjuncts, present
from discreet.sql.measurement import identity_of
from discreet.sql.pricing.relation import Join, Relation, Scan, Where, parts_of
from discreet.sql.question import Key, Question
from discreet.sql.reading.values.domains import MOST_GROUPS_SHOWN, convert_values, joint_domain, restrict_values
from discreet.sql.schema import Schema

Combinations = tuple[tuple[Any, ...], ...]
Part = tuple[tuple[int, ...], Combinations]
"""Keys by position, and the combinations of their values."""
ReadPublic = Callable[[Relation, tuple[Field, ...]], list[tuple[Any, ...]] | None]
"""The different values of some columns in the rows of a public table. None if there are too many."""


def with_combinations(question: Question, schema: Schema, read: ReadPublic) -> Question:
    """The question about the combinations of its keys that exist, as far as public facts say which do."""
    parts = _Parts(question, read).listed() if question.keys else None
    if parts is None or math.prod(len(listed) for _, listed in parts) > MOST_GROUPS_SHOWN:
        return question
    order = [place for own, _ in parts for place in own]
    places = [order.index(place) for place in range(len(order))]
    product = (tuple(itertools.chain(*each)) for each in itertools.product(*(listed for _, listed in parts)))
    shown = tuple(tuple(one[place] for place in places) for one in product)
    domains = [tuple(dict.fromkeys(one[place] for one in shown)) for place in range(len(order))]
    known = replace(
        question,
        keys=tuple(replace(key, domain=domain) for key, domain in zip(question.keys, domains, strict=True)),
        shown=shown if len(shown) < math.prod(map(len, domains)) else None,
    )
    return replace(known, meaning=identity_of(known, schema))


class _Parts:
    """Keys that belong together, each part with the combinations of values that exist."""

    def __init__(self, question: Question, read: ReadPublic) -> None:
        self.question, self.read = question, read
        relation = question.relation
        self.conditions = list(conjuncts(relation.condition)) if isinstance(relation, Where) else []

    def listed(self) -> list[Part] | None:
        """Parts that have all keys. None if nothing is known beyond the domain of each key."""
        left, parts = dict(enumerate(self.question.keys)), list[Part]()
        for find in (self._in_hierarchies, self._in_public_tables, self._of_one_column):
            for own, listed in find(left):
                if listed and set(own) <= left.keys():
                    parts.append((own, listed))
                    left = {place: key for place, key in left.items() if place not in own}
        if not parts or any(key.domain is None for key in left.values()):
            return None
        return [*parts, *(((place,), tuple((one,) for one in key.domain or ())) for place, key in left.items())]

    def _in_hierarchies(self, keys: Mapping[int, Key]) -> Iterator[Part]:
        """Columns of one declared hierarchy."""
        scans = [part for part in parts_of(self.question.relation) if isinstance(part, Scan)]
        for table, hierarchy in ((scan.table, one) for scan in scans for one in scan.table.hierarchies):
            named = {(table.name, column): place for place, column in enumerate(hierarchy.levels)}
            own = {place: named.get(_origin(key) or ("", "")) for place, key in keys.items()}
            found = [(place, level) for place, level in own.items() if level is not None]
            if len(found) > 1 and hierarchy.groups:
                yield self._part(
                    keys,
                    [place for place, _ in found],
                    [tuple(group[level] for _, level in found) for group in hierarchy.groups],
                )

    def _in_public_tables(self, keys: Mapping[int, Key]) -> Iterator[Part]:
        """Columns of one public table that is joined, or that must be equal to them, in the rows of it that the
        question leaves in.
        """
        scans, equal, conditions = _joined(self.question.relation)
        for scan in scans:
            own: dict[int, Field] = {}
            for place, key in keys.items():
                same = [key.expr.field, *equal.get(key.expr.field, ())] if isinstance(key.expr, Ref) else []
                here = [field for field in same if field in scan.fields]
                if here:
                    own[place] = here[0]
            told = [one for one in conditions if set(one.fields()) <= set(scan.fields)]
            told += [present(Ref(field)) for field in scan.fields if field in equal]
            kept = Where(scan, call("and", *told)) if told else scan
            rows = self.read(kept, tuple(own.values())) if own else None
            if rows:
                yield self._part(keys, list(own), rows)

    def _of_one_column(self, keys: Mapping[int, Key]) -> Iterator[Part]:
        """Keys that are computed from one and the same column, such as the year and the month of a date."""
        by_field: dict[Field, list[int]] = {}
        for place, key in keys.items():
            fields = set(key.expr.fields())
            if len(fields) == 1:
                by_field.setdefault(fields.pop(), []).append(place)
        for own in by_field.values():
            listed = joint_domain([keys[place].expr for place in own], self.conditions) if len(own) > 1 else None
            if listed is not None:
                yield self._part(keys, own, list(listed))

    def _part(self, keys: Mapping[int, Key], own: list[int], rows: list[tuple[Any, ...]]) -> Part:
        """The combinations that agree with the declared values of each key and with the conditions."""
        columns, ranks = [], []
        for place, values in zip(own, zip(*rows, strict=True), strict=True):
            key = keys[place]
            typed = [convert_values((value,), key.expr.type)[0] for value in values]
            known = key.domain
            if known is None:
                known = restrict_values(key.expr, tuple(sorted(dict.fromkeys(typed), key=order_of)), self.conditions)
            columns.append(typed)
            ranks.append({value: rank for rank, value in enumerate(known)})
        found = dict.fromkeys(zip(*columns, strict=True))
        ranked = [([rank.get(part, -1) for rank, part in zip(ranks, row, strict=True)], row) for row in found]
        return tuple(own), tuple(row for rank, row in sorted(ranked, key=lambda one: one[0]) if -1 not in rank)


def _origin(key: Key) -> tuple[str, str] | None:
    return key.expr.field.origin if isinstance(key.expr, Ref) else None


def _joined(relation: Relation) -> tuple[list[Scan], dict[Field, list[Field]], list[Expr]]:
    """The public tables of which every row of a relation has a row, which fields of them equal others, and the
    conditions that hold for all rows.
    """
    match relation:
        case Scan() if relation.public:
            return [relation], {}, []
        case Where(source=source, condition=condition):
            scans, equal, conditions = _joined(source)
            return scans, equal, [*conditions, *conjuncts(condition)]
        case Join(left=left, right=right, kind="inner", pairs=pairs, condition=condition):
            scans, equal, conditions = _joined(left)
            more, other, further = _joined(right)
            equal = equal | other
            for one, two in pairs:
                equal = equal | {one: [*equal.get(one, []), two], two: [*equal.get(two, []), one]}
            return [*scans, *more], equal, [*conditions, *further, *conjuncts(condition)]
        case Join(left=left, kind="left"):
            return _joined(left)
    return [], {}, []
