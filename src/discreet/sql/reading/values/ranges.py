"""The range of an expression, from the declared ranges. Values are clamped to it before they are summed."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

from discreet.sql.expressions import PARTS, Call, Const, Expr, Field, Range, Ref


def range_of(expr: Expr) -> Range | None:
    """The range of a numeric expression, from the declared ranges. None if nothing follows from them."""
    match expr:
        case Const(value=bool() | int() | float() as value):
            return float(value), float(value)
        case Ref(field=Field(between=(int() | float() as low, int() | float() as high))):
            return float(low), float(high)
        case Ref(field=Field(choices=tuple(choices))) if all(isinstance(c, int | float) for c in choices):
            return float(min(choices)), float(max(choices))
        case Expr(type="boolean"):
            return 0.0, 1.0
        case Call():
            return _range_of_call(expr)
    return None


def _range_of_call(expr: Call) -> Range | None:
    match expr.op:
        case "part":
            return _range_of_part(expr)
        case "case":
            results = (*expr.args[1:-1:2], expr.args[-1])
            return _hull([range_of(result) for result in results if not _is_null(result)])
        case "least" | "greatest":
            return _range_of_extreme(expr)
        case "coalesce":
            return _hull([range_of(arg) for arg in expr.args])
        case "cast" if expr.type in ("integer", "number"):
            return range_of(expr.args[0])
        case "days_between" | "subtract" if expr.args[0].type in ("date", "timestamp"):
            return _range_of_days(expr)
    ranges = [range_of(arg) for arg in expr.args]
    known = [found for found in ranges if found is not None]
    rule = _RULES.get(expr.op)
    if rule is None or len(known) != len(ranges):
        return None
    try:
        low, high = rule(*known)
    except (ArithmeticError, ValueError):  # too large for a float
        return None
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _range_of_extreme(expr: Call) -> Range | None:
    """One bounded argument bounds one side: LEAST(x, 10) is at most 10."""
    least = expr.op == "least"
    ends: list[list[float]] = [[], []]
    for arg in expr.args:
        found = range_of(arg)
        for side in (0, 1):
            ends[side].append(found[side] if found else (-math.inf, math.inf)[side])
    low, high = (min(ends[0]), min(ends[1])) if least else (max(ends[0]), max(ends[1]))
    # a side that is unbounded here may be bounded by the enclosing operation
    return (low, high) if math.isfinite(low) or math.isfinite(high) else None


def _range_of_part(expr: Call) -> Range | None:
    fixed = PARTS[expr.detail]
    if fixed is not None:
        return fixed
    ends = _dates_of(expr.args[0])
    return None if ends is None else (float(ends[0].year), float(ends[1].year))


def _range_of_days(expr: Call) -> Range | None:
    first, second = _dates_of(expr.args[0]), _dates_of(expr.args[1])
    if first is None or second is None:
        return None
    if expr.op == "days_between":
        first, second = second, first
    return float((first[0] - second[1]).days), float((first[1] - second[0]).days)


def _dates_of(expr: Expr) -> tuple[datetime.date, datetime.date] | None:
    match expr:
        case Ref(field=Field(between=(datetime.date() as low, datetime.date() as high))):
            return day_of(low), day_of(high)
        case Const(value=datetime.date() as value):
            return day_of(value), day_of(value)
        case Call(op="cast" | "truncate", args=(inner, *_)):
            return _dates_of(inner)
    return None


def day_of(moment: Any) -> Any:
    """The day of a date or a timestamp. Anything else stays as it is."""
    return moment.date() if isinstance(moment, datetime.datetime) else moment


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value is None


def _hull(ranges: list[Range | None]) -> Range | None:
    known = [found for found in ranges if found is not None]
    if not known or len(known) != len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _corners(combine: Callable[[float, float], float]) -> Callable[[Range, Range], Range]:
    def rule(first: Range, second: Range) -> Range:
        values = [combine(a, b) for a in first for b in second]
        return min(values), max(values)

    return rule


def _divide(first: Range, second: Range) -> Range:
    if second[0] <= 0 <= second[1]:
        return -math.inf, math.inf
    return _corners(lambda a, b: a / b)(first, second)


def _divide_whole(first: Range, second: Range) -> Range:
    low, high = _divide(first, second)
    return float(math.trunc(low)), float(math.trunc(high))  # of infinity it is an error: nothing follows


def _absolute(first: Range) -> Range:
    low = 0.0 if first[0] <= 0 <= first[1] else min(abs(first[0]), abs(first[1]))
    return low, max(abs(first[0]), abs(first[1]))


def _growing(function: Callable[[float], float]) -> Callable[[Range], Range]:
    def rule(first: Range) -> Range:
        try:
            return function(first[0]), function(first[1])
        except (ValueError, OverflowError):
            return -math.inf, math.inf

    return rule


def _modulo(first: Range, second: Range) -> Range:
    largest = max(abs(second[0]), abs(second[1]))
    return (0.0 if first[0] >= 0 else -largest), (0.0 if first[1] <= 0 else largest)


def _round(first: Range, digits: Range = (0.0, 0.0)) -> Range:
    unit = 10.0 ** -min(digits)
    return first[0] - unit, first[1] + unit


_RULES: dict[str, Callable[..., Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _corners(lambda a, b: a * b if a and b else 0.0),
    "divide": _divide,
    "integer_divide": _divide_whole,
    "modulo": _modulo,
    "negate": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "sign": lambda a: (-1.0, 1.0),
    "round": _round,
    "floor": lambda a: (math.floor(a[0]), math.floor(a[1])),
    "ceil": lambda a: (math.ceil(a[0]), math.ceil(a[1])),
    "sqrt": _growing(math.sqrt),
    "exp": _growing(math.exp),
    "ln": _growing(math.log),
    "nullif": lambda a, b: a,
}


def may_have_range(within: Range | None) -> bool:
    """Whether a range can be declared."""
    return within is not None and within[0] < within[1] and all(abs(end) <= 1e15 for end in within)
