"""What the conditions of a question say about the values of a column: ends of a range, or a list."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from discreet.sql.expressions import Call, Expr, Field, Ref
from discreet.sql.reading.values.public_values import UNKNOWN, constant_of, moment
from discreet.sql.schema import PYTHON_TYPES, Found

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_INSTANT = datetime.timedelta(microseconds=1)
_DAY = datetime.timedelta(days=1)
_FARTHEST = 1e15


def narrowed(field: Field, conditions: Iterable[Expr]) -> Field:
    """A column, with the values that a row has if the conditions hold for it. Ranges that were found are left out."""
    is_found = bool(field.found) or isinstance(field.between, Found)
    low, high = (None, None) if is_found or field.between is None else field.between
    listed: tuple[Any, ...] | None = None
    for condition in conditions:
        if isinstance(condition, Call):
            listed = _listed(field, condition) or listed
            for lower, value in _ends(field, condition):
                if lower:
                    low = value if low is None else max(low, value)
                else:
                    high = value if high is None else min(high, value)
    if field.choices is None and listed:
        return replace(field, choices=listed, between=None, found=frozenset())
    if low is None or high is None or low > high:
        return replace(field, between=None, found=frozenset()) if is_found else field
    return replace(field, between=(low, high), found=frozenset())


def may_hold(field: Field, between: tuple[Any, Any], conditions: Iterable[Expr]) -> bool:
    """Whether a value of a column in a range can meet all conditions, as far as comparisons with literals say."""
    low, high = between
    for condition in conditions:
        if isinstance(condition, Call):
            listed = _listed(field, condition)
            if listed and not any(between[0] <= value <= between[1] for value in listed):
                return False
            for lower, value in _ends(field, condition):
                low, high = (max(low, value), high) if lower else (low, min(high, value))
    return bool(low <= high)


def _listed(field: Field, condition: Call) -> tuple[Any, ...] | None:
    """The values in a condition `column IN (…)` or `column = …`."""
    if condition.op not in ("in", "eq") or field.type not in ("text", "integer", "number", "date", "timestamp"):
        return None
    first, *others = condition.args
    if condition.op == "eq" and others[0] == Ref(field):
        first, others = others[0], [first]
    values = [constant_of(other) for other in others]
    if first != Ref(field) or any(value is UNKNOWN for value in values):
        return None
    fitting = [_as_listed(value, field) for value in values if value is not None]
    return tuple(dict.fromkeys(value for value in fitting if value is not None)) or None


def _as_listed(value: Any, field: Field) -> Any:
    """A literal as the column has it. None if no row has it."""
    if isinstance(value, bool) or (isinstance(value, int | float) and not abs(value) <= _FARTHEST):
        return None
    match field.type:
        case "integer" if isinstance(value, float):
            return int(value) if value.is_integer() else None
        case "number" if isinstance(value, int | float):
            return float(value) + 0.0
        case "date" if isinstance(value, datetime.datetime):
            return value.date() if _is_plain(value) and moment(value.date()) == value else None
        case "timestamp" if isinstance(value, datetime.date):
            return moment(value) if _is_plain(value) else None
    return value if isinstance(value, PYTHON_TYPES[field.type]) else None


def _is_plain(value: Any) -> bool:
    """Whether a date or moment has no time zone."""
    return getattr(value, "tzinfo", None) is None


def _ends(field: Field, condition: Call) -> list[tuple[bool, Any]]:
    """The ends that a comparison with a literal gives: whether it is the lower one, and its value."""
    if condition.op not in _TURNED:
        return []
    (first, second), op = condition.args, condition.op
    if constant_of(first) is not UNKNOWN:
        first, second, op = second, first, _TURNED[op]
    value, sides = constant_of(second), {"eq": ("ge", "le")}.get(op, (op,))
    if value is UNKNOWN or value is None:
        return []
    found: list[tuple[bool, Any]] = []
    for side in sides:
        end = _end(field, first, side, value)
        if end is not None:
            found.append((side in ("ge", "gt"), end))
    return found


def _end(field: Field, first: Expr, side: str, value: Any) -> Any:
    if field.type in ("date", "timestamp"):
        return _end_of_days(field, first, side, value)
    if first != Ref(field) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= _FARTHEST:
        return None
    if field.type == "integer":
        return {"ge": math.ceil, "gt": lambda v: math.floor(v) + 1, "le": math.floor}.get(
            side, lambda v: math.ceil(v) - 1
        )(value)
    if field.type == "number":
        return {"gt": math.nextafter(value, math.inf), "lt": math.nextafter(value, -math.inf)}.get(side, value)
    return None


def _end_of_days(field: Field, first: Expr, side: str, value: Any) -> Any:
    """The end of a range of dates, also from the year or the day of a moment."""
    try:
        match first:
            case Call(op="part", detail="year", args=(Ref(field=own),)) if own == field and type(value) is int:
                at, width = datetime.datetime(value, 1, 1), datetime.datetime(value + 1, 1, 1)
            case Call(op="cast", type="date", args=(Ref(field=own),)) if own == field and type(value) is datetime.date:
                at, width = moment(value), moment(value) + _DAY
            case Ref(field=own) if own == field and isinstance(value, datetime.date) and _is_plain(value):
                at, width = moment(value), moment(value) + _INSTANT
            case _:
                return None
        end = {"ge": at, "gt": width, "lt": at - _INSTANT, "le": width - _INSTANT}[side]
    except (OverflowError, ValueError):  # beyond the calendar
        return None
    if field.type == "timestamp":
        return end
    # the first day that begins at or after a lower end, the last one that begins before an upper end
    return (end + _DAY - _INSTANT).date() if side in ("ge", "gt") else end.date()
