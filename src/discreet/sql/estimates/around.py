"""The groups around a question. A unit is in one of them at most, so measuring all of them costs no more than one.

`COUNT(*) … WHERE city = 'Rome'` becomes one of the groups of `COUNT(*) … GROUP BY city`, and a condition such as
`age IN (…)` becomes the groups for which it holds and for which it does not. Only the asked groups are shown. The
others are stored with them, and later questions are answered from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sql.estimates.cells import MOST_GROUPS, conditions_of, joined, may_be_linear
from discreet.sql.estimates.deciding import Decided
from discreet.sql.estimates.least_squares import Weights
from discreet.sql.estimates.points import MOST_CELLS, points_of
from discreet.sql.expressions import Const, Expr, Field, Ref, call
from discreet.sql.measurement import canonical, identity_of
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.relation import Where
from discreet.sql.question import Key, Question
from discreet.sql.reading.values.public_values import UNKNOWN, computed
from discreet.sql.schema import Schema


@dataclass(frozen=True, eq=False)
class Around:
    """The plan of a question together with the groups around it, and the places of the asked groups among these.

    Promise: the same noise and the same guarantee as the plan of the question alone.
    """

    plan: Plan
    places: NDArray[np.int64]

    def chosen(self, value: Sequence[Any]) -> list[Any]:
        """Of the numbers of all groups, those that were asked for."""
        return [np.asarray(numbers)[self.places] for numbers in value]

    def chosen_estimates(self, decided: Decided) -> Decided:
        """The same for estimates. They keep the weights of all numbers that are measured now."""
        estimates = []
        for one in decided.estimates:
            weights = Weights(one.weights.before[self.places], one.weights.new[self.places])
            estimates.append(replace(one, weights=weights))
        return replace(decided, estimates=tuple(estimates))


def groups_around(planner: Planner, plan: Plan) -> Around | None:
    """The plan of a question with the groups around it. None if there are none, or if they cost more."""
    if not may_be_linear(plan):
        return None
    wider = _wider(plan.question, planner.schema)
    if wider is None:
        return None
    question, values = wider
    found = planner.priced(question, plan.terms)
    same = found.price.parts == plan.price.parts and found.price.cost == plan.price.cost
    if not same or found.bounds != plan.bounds or found.groups is None or plan.groups is None:
        return None
    if not may_be_linear(found):  # rows would be left out because of the groups they are in
        return None
    all_groups, asked_groups = found.groups.keys(), plan.groups.keys()
    numbers = {group: number for number, group in enumerate(all_groups)}
    asked = [dict(zip(_names(plan.question), group, strict=True)) | values for group in asked_groups]
    places = [numbers[tuple(group[name] for name in _names(question))] for group in asked]
    return Around(found, np.array(places, dtype=np.int64))


def _names(question: Question) -> list[Expr]:
    return [key.expr for key in question.keys]


def _wider(question: Question, schema: Schema) -> tuple[Question, dict[Expr, Any]] | None:
    """The question with keys instead of conditions, and the values of these keys in the asked groups."""
    if question.shown is not None:  # only some combinations of its keys are groups
        return None
    source, conditions = conditions_of(question.relation)
    used = {field for key in question.keys for field in key.expr.fields()}
    groups = math.prod(len(key.domain or ()) for key in question.keys)
    cells = math.prod(len(points_of(field) or ()) for field in used)
    keys, values, rest = list[Key](), dict[Expr, Any](), list[Expr]()
    for condition in conditions:
        found = _key_of(condition, used)
        if found is None or groups * len(found[0].domain or ()) > MOST_GROUPS or cells * found[2] > MOST_CELLS:
            rest.append(condition)
            continue
        key, value, points = found
        keys, values[key.expr] = [*keys, key], value
        rest += _declared_only(condition, key)
        used, groups, cells = used | set(condition.fields()), groups * len(key.domain or ()), cells * points
    if not keys:
        return None
    fields = [Field(f"around{n}", key.name, key.expr.type, choices=key.domain) for n, key in enumerate(keys)]
    wider = replace(
        question,
        relation=Where(source, joined(rest)) if rest else source,
        keys=(*question.keys, *keys),
        key_fields=(*question.key_fields, *fields),
        same=f"{question.same} (with the groups around it)",
    )
    wider = replace(canonical(wider), reordered=True)  # version 0.1 knew no such question
    return replace(wider, meaning=identity_of(wider, schema)), values


def _declared_only(condition: Expr, key: Key) -> list[Expr]:
    """The condition that only declared values count, if those for which a condition holds are declared. It keeps rows
    with other values out of the groups around.
    """
    [field] = set(condition.fields())
    if isinstance(key.expr, Ref) or not field.choices or not all(map(_is_plain, _held(condition, field) or ())):
        return []
    return [call("in", Ref(field), *(Const(value, field.type) for value in field.choices))]


def _held(condition: Expr, field: Field) -> list[Any] | None:
    """The points of a column for which a condition holds. None if it may hold for some values that are not declared,
    and not for others.
    """
    points, held = points_of(field) or (), computed(condition, [Ref(field)])
    found = [held((point,)) for point in points]
    if any(value is UNKNOWN for value in found):
        return None
    return [point for point, value in zip(points, found, strict=True) if value is True]


def _is_plain(point: Any) -> bool:
    """Whether a point is one declared value."""
    return type(point) in (str, int, bool)


def _key_of(condition: Expr, used: set[Field]) -> tuple[Key, Any, int] | None:
    """A key that has one value where a condition on one column holds, that value, and the points of the column: the
    column itself, if the condition holds for one declared value only. None if the condition is no such one.
    """
    fields = set(condition.fields())
    points = points_of(next(iter(fields))) if len(fields) == 1 and not fields & used else None
    if points is None:
        return None
    [field] = fields
    chosen, domain = _held(condition, field), field.choices or ()
    if chosen is None:
        return None
    if len(chosen) == 1 and _is_plain(chosen[0]) and chosen[0] in domain:
        return Key(field.name, Ref(field), domain), chosen[0], len(points)
    if len(chosen) >= len(domain) and all(map(_is_plain, chosen)):  # no declared value is left for a group around it
        return None
    return Key("around", condition, (False, True)), True, len(points)
