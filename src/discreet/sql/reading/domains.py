"""Every value that a key can have, from the declarations and from the conditions of the question."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from discreet.sql.expressions import Call, Const, Expr, Field, Ref
from discreet.sql.reading.ranges import range_of
from discreet.sql.schema import Found, Type

LARGEST_DOMAIN = 10_000
"""The largest number of declared values of a group key."""


def domain_of(expr: Expr) -> tuple[Any, ...] | None:
    """Every value that a key can have, from the declarations. None if it is not declared, or too large to list."""
    match expr:
        case Const(value=value):
            return (value,)
        case Ref(field=Field(choices=tuple(choices))):
            return choices
        case Ref(field=field) if field.choices is None and _is_found(expr):
            return None
        case Ref(field=Field(type="integer", between=(low, high))) if high - low < LARGEST_DOMAIN:
            return tuple(range(math.ceil(low), math.floor(high) + 1))
        case Ref(field=Field(type="date", between=(low, high))) if (high - low).days < LARGEST_DOMAIN:
            return tuple(low + datetime.timedelta(days=n) for n in range((high - low).days + 1))
        case Call(op="case", args=args):
            return _union([domain_of(result) for result in (*args[1:-1:2], args[-1])])
        case Call(op="coalesce", args=args):
            found = _union([domain_of(arg) for arg in args])
            sure = isinstance(args[-1], Const) and args[-1].value is not None
            return tuple(value for value in found if value is not None) if found and sure else found
        case Call(op="part"):
            ends = None if _is_found(expr) else range_of(expr)
            return None if ends is None else tuple(range(int(ends[0]), int(ends[1]) + 1))
        case Expr(type="boolean"):
            return (False, True)
    return None


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


# --- what a condition leaves ----------------------------------------------------------------------------------

_UNKNOWN = object()
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def restrict_values(key: Expr, domain: tuple[Any, ...], conditions: Iterable[Expr]) -> tuple[Any, ...]:
    """The values of a key for which the conditions can hold. All of them if none is left."""
    own: list[Expr] = []
    others: list[Expr] = []
    for condition in conditions:
        (own if _reads(condition, key) else others).append(condition)
    if not all(_holds(condition, key, _UNKNOWN) in (True, _UNKNOWN) for condition in others):
        return domain
    left = tuple(value for value in domain if all(_holds(c, key, value) in (True, _UNKNOWN) for c in own))
    return left or domain


def _reads(expr: Expr, key: Expr) -> bool:
    """Whether a key is a part of an expression."""
    return expr == key or (isinstance(expr, Call) and any(_reads(arg, key) for arg in expr.args))


def _holds(condition: Expr, key: Expr, value: Any) -> Any:
    """Whether a condition holds if a key has this value: True, False, None (NULL), or unknown from that alone."""
    if condition == key:
        return value
    match condition:
        case Const(value=constant):
            return constant
        case Call(op="and" | "or" as op, args=args):
            found = [_holds(arg, key, value) for arg in args]
            decided = op == "or"
            return next((one for one in (decided, _UNKNOWN, None) if any(f is one for f in found)), not decided)
        case Call(op="not", args=(inner,)):
            found = _holds(inner, key, value)
            return found if found is None or found is _UNKNOWN else not found
        case Call(op="is_null", args=(inner,)):
            found = _holds(inner, key, value)
            return found if found is _UNKNOWN else found is None
        case Call(op="in", args=(first, *others)):
            return _holds(Call("or", tuple(Call("eq", (first, o), "boolean") for o in others), "boolean"), key, value)
        case Call(op=op, args=(first, second)) if op in _COMPARED:
            return _compare(op, _holds(first, key, value), _holds(second, key, value))
    return _UNKNOWN


def _compare(op: str, first: Any, second: Any) -> Any:
    if first is _UNKNOWN or second is _UNKNOWN:
        return _UNKNOWN
    if first is None or second is None:
        return None
    numbers = all(isinstance(one, int | float) for one in (first, second))
    if not numbers and type(first) is not type(second):
        return _UNKNOWN  # left to the engine
    try:
        return _COMPARED[op](first, second)
    except TypeError:  # moments with and without a zone
        return _UNKNOWN
