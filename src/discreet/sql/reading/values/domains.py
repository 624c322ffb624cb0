"""Every value that a key can have, from the declarations and from the conditions of the question.

An expression over columns whose values are declared is computed here for all of them. Dates with a range are taken at
the first moment of each year, month, day or hour, as fine as the expression looks at them. Numbers with a range are
taken at the steps to which the expression rounds them.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from discreet.sql.expressions import Call, Const, Expr, Field, Ref, call, conjuncts, with_fields
from discreet.sql.pricing.relation import Relation, Where
from discreet.sql.reading.values.literals import MONTHS, SECONDS, later
from discreet.sql.reading.values.narrowing import narrowed
from discreet.sql.reading.values.public_values import UNKNOWN, Outside, computed, is_strict, moment, rounded, truncated
from discreet.sql.reading.values.ranges import may_have_range, range_of
from discreet.sql.reading.values.written_out import size_of, towards_zero
from discreet.sql.schema import ORDERED, Found, Type

LARGEST_DOMAIN = 10_000
"""The largest number of declared values of a group key."""
MOST_GROUPS_SHOWN = 1_000_000
"""The largest number of groups of an answer whose keys are declared."""
MOST_POINTS, MOST_COMPUTED = 50_000, 200_000
"""The largest number of public values of a column, and of operations that are computed on them."""
_GRAINS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_GRAIN_OF = {name: name for name in _GRAINS} | {"week": "day", "dayofweek": "day"}
"""The units of the calendar, from coarse to fine. A part of a date is the same within the unit given here."""
_EXACT = {"add", "subtract", "multiply", "divide", "negate", "abs", "least", "greatest", "coalesce"}
_EXACT |= {"floor", "ceil", "round"}
"""Operations on numbers whose ends follow from those of their arguments bit by bit. Logarithms differ in last bits."""


@dataclass
class Work:
    """How many operations may still be computed for one question. When none are left, nothing more is listed."""

    left: int = 500_000

    def allows(self, operations: int) -> bool:
        """Take so many operations, if they are not too many."""
        allowed = operations <= min(self.left, MOST_COMPUTED)
        self.left -= operations if allowed else 0
        return allowed


def domain_of(expr: Expr, conditions: Sequence[Expr] = (), work: Work | None = None) -> tuple[Any, ...] | None:
    """Every value that a key can have where conditions hold. None if it does not follow, or is too large to list."""
    work = work or Work()
    found = _domain_of(expr, conditions, work)
    # all values, if the conditions can never hold, or say nothing
    return _domain_of(expr, (), work) if found is None and conditions else found


def _domain_of(expr: Expr, conditions: Sequence[Expr], work: Work) -> tuple[Any, ...] | None:
    match expr:
        case Const(value=value):
            return (value,)
        case Ref(field=field):
            return _values_of(narrowed(field, conditions))
    listed = _listed(expr, conditions, work)
    reached = _reached(expr, conditions, set(listed or ()), work)
    found = [value for value, declared in reached.items() if declared or value is not None]
    if listed is not None and isinstance(expr, Call) and expr.op in ("case", "coalesce"):
        found = [value for value in listed if value in reached]
    if not found or len(found) > LARGEST_DOMAIN:
        found = list(listed or ())
    if expr.type in ORDERED or expr.type == "boolean":
        found.sort(key=lambda value: (value is None, 0 if value is None else _of_type(value, expr.type)))
    return tuple(found) or None


def declared_values(expr: Expr, relation: Relation, work: Work) -> tuple[Any, ...] | None:
    """The declared values of an expression that the WHERE clause of a relation allows. None if they are not known."""
    conditions = conjuncts(relation.condition) if isinstance(relation, Where) else []
    found = domain_of(expr, conditions, work)
    return None if found is None else restrict_values(expr, convert_values(found, expr.type), conditions)


def joint_domain(keys: Sequence[Expr], conditions: Sequence[Expr]) -> tuple[tuple[Any, ...], ...] | None:
    """Every combination of values that keys of one column can have where conditions hold. None if unknown."""
    reached = _reached(Call("tuple", tuple(keys), "other"), conditions, set(), Work())
    found = [values for values, declared in reached.items() if declared]
    return tuple(found) if found and len(found) <= LARGEST_DOMAIN else None


def with_other(key: Expr) -> Expr:
    """A key whose columns have the value `other`, where it is declared, instead of those that are not choices."""
    match key:
        case Ref(field=Field(choices=tuple(choices), other=other, type=kind)) if other is not None:
            listed = call("in", key, *(Const(choice, kind) for choice in choices))
            return call("case", listed, key, Const(other, kind))
        case Call(args=args):
            return replace(key, args=tuple(map(with_other, args)))
    return key


def _listed(expr: Expr, conditions: Sequence[Expr], work: Work) -> tuple[Any, ...] | None:
    """The values that an expression lists itself: the results of CASE, the months of a year, true and false."""
    match expr:
        case Call(op="case", args=args):
            return _union([_of_part(result, where, work) for result, where in _branches(args, conditions)])
        case Call(op="coalesce", args=args):
            found = _union([_of_part(arg, conditions, work) for arg in args])
            sure = isinstance(args[-1], Const) and args[-1].value is not None
            return tuple(value for value in found if value is not None) if found and sure else found
        case Call(op="part"):
            ends = None if _is_found(expr) else range_of(expr)
            return None if ends is None else tuple(range(int(ends[0]), int(ends[1]) + 1))
        case Expr(type="boolean"):
            return (False, True)
    return None


def _of_part(part: Expr, conditions: Sequence[Expr], work: Work) -> tuple[Any, ...] | None:
    """The values of a result of CASE or COALESCE. One inside another lists its own, and is not computed by itself."""
    if isinstance(part, Call) and part.op in ("case", "coalesce"):
        return _listed(part, conditions, work)
    return domain_of(part, conditions, work)


_OTHERWISE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _branches(args: Sequence[Expr], conditions: Sequence[Expr]) -> Iterator[tuple[Expr, Sequence[Expr]]]:
    """The results of CASE, each with the conditions that hold where it is taken, as far as they are comparisons."""
    before: list[Expr] = []
    for condition, result in zip((*args[:-1:2], None), (*args[1:-1:2], args[-1]), strict=True):
        own = [] if condition is None else conjuncts(condition)
        # a result that is not NULL for NULL may be taken although no comparison holds
        yield result, [*conditions, *before, *own] if is_strict(result) else conditions
        if isinstance(condition, Call) and condition.op in _OTHERWISE:
            before.append(replace(condition, op=_OTHERWISE[condition.op]))


def _is_found(expr: Expr) -> bool:
    """Whether the values depend on a range that is found privately. Such values are not declared groups."""
    return any(field.found or isinstance(field.between, Found) for field in expr.fields())


def convert_values(domain: tuple[Any, ...], kind: Type) -> tuple[Any, ...]:
    """Values converted to the type of their key, each once."""
    return tuple(dict.fromkeys(_of_type(value, kind) for value in domain))


def _of_type(value: Any, kind: Type) -> Any:
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0  # zero has no sign
    if kind == "timestamp" and isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def _union(domains: list[tuple[Any, ...] | None]) -> tuple[Any, ...] | None:
    if any(domain is None for domain in domains):
        return None
    return tuple(dict.fromkeys(value for domain in domains if domain is not None for value in domain))


# --- what an expression can be --------------------------------------------------------------------------------


def _values_of(field: Field) -> tuple[Any, ...] | None:
    """All values of a column. None if there are too many, or if their range was found privately."""
    if field.choices is not None:
        return field.choices
    if _is_found(Ref(field)) or field.between is None:
        return (False, True) if field.type == "boolean" else None
    low, high = field.between
    if field.type == "integer" and high - low < LARGEST_DOMAIN:
        return tuple(range(math.ceil(low), math.floor(high) + 1))
    if field.type == "date" and (high - low).days < LARGEST_DOMAIN:
        return tuple(low + datetime.timedelta(days=n) for n in range((high - low).days + 1))
    return None


def declared_points(field: Field) -> tuple[Any, ...] | None:
    """The declared values of a column. None if they are not declared, or too many to list."""
    return _values_of(field)


def _reached(expr: Expr, conditions: Sequence[Expr], listed: set[Any], work: Work) -> dict[Any, bool]:
    """The values of an expression for all declared values of its columns, and for NULL; each with whether declared
    values, and not only NULL, lead to it. None of them if they cannot be computed here. `listed` are all it can have.
    """
    fields = {field: narrowed(field, conditions) for field in expr.fields()}
    narrow, conditions = with_fields(expr, fields), [with_fields(one, fields) for one in conditions]
    points: dict[Expr, tuple[Any, ...]] = {}
    for field in fields.values():
        found = _points_of(field, narrow, conditions)
        if found is not None and work.allows(len(found)):
            points[Ref(field)] = found
    if not fields or not _add_steps(narrow, points):
        return {}
    parts = [part for part in points if _reads(narrow, part)]
    many = math.prod(len(points[part]) + 1 for part in parts)
    if not work.allows(many * size_of(narrow)):
        return {}
    if not work.allows(many * sum(map(size_of, conditions))):
        conditions = []
    value = computed(narrow, parts)
    holds = [computed(one, [_HIDDEN if _is_hidden(part, one) else part for part in parts]) for one in conditions]
    reached: dict[Any, bool] = {}
    for values in itertools.product(*((*points[part], None) for part in parts)):
        if any(hold(values) in (False, None) for hold in holds):
            continue
        one = value(values)
        if isinstance(one, Outside) or (one is UNKNOWN and any(isinstance(part, Outside) for part in values)):
            continue  # what is not declared is in no group
        if one is UNKNOWN:
            return {}
        reached[one] = reached.get(one, False) or all(part is not None for part in values)
        if listed and len(reached) == len(listed) and all(reached.values()):
            break
    return reached


_HIDDEN = Const(UNKNOWN, "other")


def _points_of(field: Field, expr: Expr, conditions: Sequence[Expr]) -> tuple[Any, ...] | None:
    """All values of a column, or the first moments of the units of the calendar that an expression looks at."""
    if field.choices is not None and field.other is not None:
        return (*field.choices, Outside(frozenset(field.choices)))
    if field.choices is not None or field.type not in ("date", "timestamp"):
        return _values_of(field)
    units = _units(expr, field)
    if field.between is None or _is_found(Ref(field)) or None in units:
        return None
    for condition in conditions:
        seen = _units(condition, field)
        units |= seen if None not in seen else set()
    return _starts(field, max(units, key=_GRAINS.index))  # type: ignore[arg-type]


def _units(expr: Expr, field: Field) -> set[str | None]:
    """The units of the calendar within which each use of a date or moment is constant. None where there is none."""
    match expr:
        case Ref(field=own) if own == field:
            return {"day" if field.type == "date" else None}
        case Call(op="part" | "truncate", args=(Ref(field=own),), detail=unit) if own == field:
            return {_GRAIN_OF[unit]}
        case Call(op="cast", args=(Ref(field=own),), type="date") if own == field:
            return {"day"}
        case Call(op="days_between" | "subtract", args=args) if Ref(field) in args:
            return {"day", *(unit for arg in args if arg != Ref(field) for unit in _units(arg, field))}
        case Call(args=args):
            return {unit for arg in args for unit in _units(arg, field)}
    return set()


def _is_hidden(part: Expr, condition: Expr) -> bool:
    """Whether the first moment of a day says nothing about a condition."""
    return isinstance(part, Ref) and part.field.choices is None and None in _units(condition, part.field)


def _starts(field: Field, unit: str) -> tuple[Any, ...] | None:
    """The lowest value of a column, and the first moment of every later unit within its range."""
    assert field.between is not None
    low, high = map(moment, field.between)
    seconds = SECONDS.get(unit, SECONDS["day"] * 28 * MONTHS.get(unit, 0))
    if (high - low).total_seconds() / seconds > MOST_POINTS:
        return None
    found, first = [low], truncated(unit, low)
    step = datetime.timedelta(seconds=SECONDS.get(unit, 0))
    with suppress(ValueError, OverflowError):  # the last year of the calendar
        for number in itertools.count(1):
            start = first + number * step if step else later(first, number, unit)
            if start > high:
                break
            found.append(start)
    return tuple(at.date() for at in found) if field.type == "date" else tuple(found)


def _add_steps(expr: Expr, points: dict[Expr, tuple[Any, ...]]) -> bool:
    """Add the parts that round numbers of a range. False if something is left that has no listed values."""
    if isinstance(expr, Const) or expr in points:
        return True
    if not isinstance(expr, Call):
        return False
    if all(_add_steps(arg, points) for arg in expr.args):
        return True
    steps = _steps(expr)
    if steps is not None:
        points[expr] = steps
    return steps is not None


def _steps(expr: Call) -> tuple[Any, ...] | None:
    """The values of an operation that rounds numbers of a range, or of a part of any date."""
    if expr.op == "part":
        return _listed(expr, (), Work(0))
    rounded_off = _rounded_off(expr)
    if _is_found(expr) or not all(map(_is_exact, expr.args if rounded_off is None else [rounded_off])):
        return None
    ends = range_of(expr.args[0] if rounded_off is None else rounded_off)
    if ends is None or not all(map(math.isfinite, ends)) or max(map(abs, ends)) > 1e15:
        return None
    match expr:
        case Call(op="case"):
            low, high, unit = math.trunc(ends[0]), math.trunc(ends[1]), 1.0
        case Call(op="floor"):
            low, high, unit = math.floor(ends[0]), math.floor(ends[1]), 1.0
        case Call(op="ceil"):
            low, high, unit = math.ceil(ends[0]), math.ceil(ends[1]), 1.0
        case Call(op="cast", type="integer", detail=kind) if kind != "INTEGER" or max(map(abs, ends)) < 2**31 - 1:
            low, high, unit = round(ends[0]), round(ends[1]), 1
        case Call(op="round", args=(_, *digits)) if all(isinstance(one, Const) for one in digits):
            return _rounded_steps(ends, next((one.value for one in digits if isinstance(one, Const)), 0))
        case Call(op="integer_divide", type="integer", args=(_, Const(value=int() as by))) if by:
            quotients = [math.trunc(int(end) / by) if abs(end) < 2**50 else None for end in ends]
            if None in quotients:
                return None
            low, high, unit = min(quotients), max(quotients), 1  # type: ignore[type-var, assignment]
        case _:
            return None
    if high - low >= LARGEST_DOMAIN:
        return None
    return tuple(number * unit for number in range(low, high + 1))


def _rounded_off(expr: Call) -> Expr | None:
    """The number in TRUNC, which is written out as a CASE."""
    match expr:
        case Call(op="case", args=(_, Call(op="ceil", args=(inner,)), _)) if expr == towards_zero(inner):
            return inner
    return None


def _rounded_steps(ends: tuple[float, float], digits: Any) -> tuple[float, ...] | None:
    if not isinstance(digits, int) or not -15 <= digits <= 15:
        return None
    unit = 10.0 ** abs(digits)
    low, high = (round(rounded(end, digits) * (unit if digits > 0 else 1 / unit)) for end in ends)
    if high - low >= LARGEST_DOMAIN:
        return None
    return tuple(number / unit if digits > 0 else number * unit for number in range(low, high + 1))


def _is_exact(expr: Expr) -> bool:
    """Whether all engines compute the ends of a numeric expression in the same way."""
    if isinstance(expr, Call):
        known = expr.op in _EXACT or (expr.op == "cast" and expr.type == "number")
        return known and expr.type in ("integer", "number") and all(map(_is_exact, expr.args))
    return isinstance(expr, Const | Ref)


def fit_together(keys: Sequence[tuple[Expr, tuple[Any, ...] | None]]) -> list[tuple[Any, ...] | None]:
    """The values of all keys. If they have too many groups together, those of keys that are computed are not listed."""
    groups = math.prod(len(domain) for _, domain in keys if domain is not None)
    return [domain if groups <= MOST_GROUPS_SHOWN or isinstance(expr, Ref) else None for expr, domain in keys]


# --- what a condition leaves ----------------------------------------------------------------------------------


def restrict_values(key: Expr, domain: tuple[Any, ...], conditions: Iterable[Expr]) -> tuple[Any, ...]:
    """The values of a key for which the conditions can hold. All of them if none is left."""
    own: list[Expr] = []
    others: list[Expr] = []
    for condition in conditions:
        (own if _reads(condition, key) else others).append(condition)
    if not all(computed(condition, ())(()) in (True, UNKNOWN) for condition in others):
        return domain
    holds = [computed(condition, (key,)) for condition in own]
    left = tuple(value for value in domain if all(hold((value,)) in (True, UNKNOWN) for hold in holds))
    return left or domain


def _reads(expr: Expr, key: Expr) -> bool:
    """Whether a key is a part of an expression."""
    return expr == key or (isinstance(expr, Call) and any(_reads(arg, key) for arg in expr.args))


def like(expr: Expr, work: Work) -> Field:
    """What is known about the values of an expression, as a field."""
    found = range_of(expr) if expr.type in ("integer", "number") else None
    first = frozenset(origin for field in expr.fields() for origin in field.found)
    return Field("", "", expr.type, found if may_have_range(found) else None, domain_of(expr, (), work), found=first)
