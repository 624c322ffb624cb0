"""The value of an expression for values that are written in a policy or a question. No row is read.

Every operation here gives what each engine gives, bit by bit. What could differ between engines is `UNKNOWN`.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from discreet.sql.expressions import Call, Const, Expr

UNKNOWN: Any = object()
"""A value that does not follow from what is known."""


@dataclass(frozen=True)
class Outside:
    """Any value that is not one of these."""

    choices: frozenset[Any]

    def compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """What a comparison with a constant says of all of these values. UNKNOWN if it differs between them."""
        if compare in (operator.eq, operator.ne) and other in self.choices:
            return compare is operator.ne
        return UNKNOWN


Computed = Callable[[Sequence[Any]], Any]
"""A value, given those of the parts that are known. None is NULL."""

_WHOLE = 2**53
"""Below it every integer is a DOUBLE, and no engine overflows."""


def computed(expr: Expr, known: Sequence[Expr]) -> Computed:
    """How an expression is computed from the values of these parts."""
    if expr in known:
        return operator.itemgetter(list(known).index(expr))
    match expr:
        case Const(value=constant):
            return lambda values: constant
        case Call(op="tuple", args=args):
            return partial(_apply, lambda *parts: parts, [computed(arg, known) for arg in args], False)
        case Call(op="and" | "or" as op, args=args):
            return partial(_decide, [computed(arg, known) for arg in args], op == "or")
        case Call(op="case", args=args):
            return partial(_first_case, [computed(arg, known) for arg in args])
        case Call(op="in", args=(first, *others)):
            equal = [Call("eq", (first, other), "boolean") for other in others]
            return partial(_decide, [computed(one, known) for one in equal], True)
        case Call(op=op, args=args) if op in _OF_NULL:
            return partial(_apply, _OF_NULL[op], [computed(arg, known) for arg in args], False)
        case Call(op=op, args=args) if op in _STRICT:
            return partial(_apply, partial(_STRICT[op], expr), [computed(arg, known) for arg in args], True)
    return lambda values: UNKNOWN


def constant_of(expr: Expr) -> Any:
    """The value of an expression that reads no column. UNKNOWN if it does, or if it is not computed here."""
    return computed(expr, ())(())


def _apply(function: Callable[..., Any], parts: list[Computed], strict: bool, values: Sequence[Any]) -> Any:
    found = []
    for part in parts:
        one = part(values)
        if one is UNKNOWN:
            return UNKNOWN
        found.append(one)
    if strict and None in found:
        return None
    try:
        return function(*found)
    except (
        ArithmeticError,
        ValueError,
        TypeError,
        AttributeError,
    ):  # moments with and without a zone, or beyond the calendar
        return UNKNOWN


def _decide(parts: list[Computed], decided: bool, values: Sequence[Any]) -> Any:
    """AND and OR: one part can decide, whatever the others are."""
    found = [part(values) for part in parts]
    return next((one for one in (decided, UNKNOWN, None) if any(f is one for f in found)), not decided)


def _first_case(parts: list[Computed], values: Sequence[Any]) -> Any:
    for condition, result in zip(parts[:-1:2], parts[1:-1:2], strict=True):
        holds = condition(values)
        if holds is UNKNOWN:
            return UNKNOWN
        if holds:
            return result(values)
    return parts[-1](values)


# --- comparisons ----------------------------------------------------------------------------------------------


def _compare(compare: Callable[[Any, Any], Any], expr: Call, first: Any, second: Any) -> Any:
    if isinstance(first, Outside):
        return first.compared(compare, second)
    numbers = all(isinstance(one, int | float) for one in (first, second))
    if not numbers:
        first, second = _alike(first, second)
        if type(first) is not type(second):
            return UNKNOWN  # left to the engine
    return compare(first, second)


def _alike(first: Any, second: Any) -> tuple[Any, Any]:
    """A date next to a moment is the first moment of its day."""
    days = [isinstance(one, datetime.date) for one in (first, second)]
    return (moment(first), moment(second)) if all(days) and type(first) is not type(second) else (first, second)


def moment(day: Any) -> datetime.datetime:
    """The first moment of a day. A moment stays as it is."""
    return day if isinstance(day, datetime.datetime) else datetime.datetime(day.year, day.month, day.day)


def _extreme(choose: Callable[..., Any], *values: Any) -> Any:
    known = [value for value in values if value is not None]
    kinds = {type(value) for value in known}
    if len(kinds) > 1 and not kinds <= {int, float}:
        return UNKNOWN
    return choose(known) if known else None


def _nullif(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first
    same = _compare(operator.eq, Call("eq", (), "boolean"), first, second)
    return UNKNOWN if same is UNKNOWN else None if same else first


_OF_NULL: dict[str, Callable[..., Any]] = {
    "is_null": lambda value: value is None,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "least": partial(_extreme, min),
    "greatest": partial(_extreme, max),
    "nullif": _nullif,
    "same": lambda a, b: a is b if a is None or b is None else _compare(operator.eq, Call("eq", (), "boolean"), a, b),
}
"""Operations whose result may not be NULL if an argument is."""

# --- numbers --------------------------------------------------------------------------------------------------


def _number(expr: Call, value: Any) -> Any:
    """A number as the type of an operation. UNKNOWN if an engine could not have it exactly."""
    if expr.type == "integer":
        return value if isinstance(value, int) and abs(value) < _WHOLE else UNKNOWN
    return float(value) if abs(value) < _WHOLE else UNKNOWN


def _arithmetic(compute: Callable[[Any, Any], Any], expr: Call, first: Any, second: Any) -> Any:
    kind = int if expr.type == "integer" else float
    return _number(expr, compute(kind(first), kind(second)))


def _subtract(expr: Call, first: Any, second: Any) -> Any:
    if isinstance(first, datetime.date):
        return days_between(expr, second, first)
    return _arithmetic(operator.sub, expr, first, second)


def _whole_quotient(expr: Call, first: Any, second: Any) -> Any:
    """Rounded towards 0."""
    if expr.type != "integer" or not second:
        return UNKNOWN
    found = abs(first) // abs(second)
    return found if (first < 0) == (second < 0) else -found


def _remainder(expr: Call, first: Any, second: Any) -> Any:
    """With the sign of the first number."""
    if expr.type != "integer" or not second:
        return UNKNOWN
    found = abs(first) % abs(second)
    return -found if first < 0 else found


def rounded(value: float, digits: int = 0) -> float:
    """A number rounded to decimal digits, also to the left of the point. Halves move away from 0, in binary."""
    unit = 10.0 ** abs(digits)
    scaled = value * unit if digits > 0 else value / unit
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += -1 if value < 0 else 1
    return whole / unit if digits > 0 else whole * unit


def _round(expr: Call, value: Any, digits: Any = 0) -> Any:
    if not abs(value) < _WHOLE // 2 or not -15 <= digits <= 15:
        return UNKNOWN
    return rounded(float(value), digits)


# --- dates ----------------------------------------------------------------------------------------------------

_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "quarter": lambda at: (at.month + 2) // 3,
    "week": lambda at: at.isocalendar()[1],
    "dayofweek": lambda at: at.isoweekday() % 7,
} | {name: operator.attrgetter(name) for name in ("year", "month", "day", "hour", "minute", "second")}
_SMALLER = ("month", "day", "hour", "minute", "second", "microsecond")
_FIRST = {"month": 1, "day": 1}


def truncated(unit: str, day: datetime.date) -> datetime.datetime:
    """The first moment of the unit of the calendar that a date is in. Weeks begin on Mondays."""
    at = moment(day)
    if unit == "week":
        return truncated("day", at) - datetime.timedelta(days=at.weekday())
    if unit == "quarter":
        return truncated("month", at).replace(month=at.month - (at.month - 1) % 3)
    smaller = _SMALLER[("year", *_SMALLER).index(unit) :]
    return at.replace(**{name: _FIRST.get(name, 0) for name in smaller})  # type: ignore[arg-type]


def _truncate(expr: Call, day: Any) -> Any:
    found = truncated(expr.detail, day)
    return found.date() if expr.type == "date" else found


def days_between(expr: Call, first: Any, second: Any) -> int:
    """The number of midnights from one date to another."""
    return (moment(second).date() - moment(first).date()).days


def _cast(expr: Call, value: Any) -> Any:
    own = expr.args[0].type
    if isinstance(value, Outside):
        return value if own == expr.type == "text" else UNKNOWN
    match own, expr.type:
        case (("integer" | "number" | "boolean"), "number"):
            return float(value)
        case (("integer" | "number" | "boolean"), "integer"):
            found = round(value)  # halves to even, as all engines do here
            return found if abs(found) < (2**31 if expr.detail == "INTEGER" else _WHOLE) else UNKNOWN
        case (("integer" | "number"), "boolean"):
            return value != 0
        case (("date" | "timestamp"), "date"):
            return moment(value).date()
        case (("date" | "timestamp"), "timestamp"):
            return moment(value)
        case "integer", "text":
            return str(value)
        case "boolean", "text":
            return str(value).lower()
        case "date", "text" if value.year >= 1000:
            return value.isoformat()
        case "text", "text":
            return value
    return UNKNOWN


# --- text -----------------------------------------------------------------------------------------------------


def _plain(function: Callable[[str], str], expr: Call, text: str) -> Any:
    """Engines know different alphabets."""
    return function(text) if text.isascii() else UNKNOWN


def _substring(expr: Call, text: str, start: int, length: int | None = None) -> Any:
    if start < 1 or (length is not None and length < 0):
        return UNKNOWN
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


_STRICT: dict[str, Callable[..., Any]] = {
    **{op: partial(_compare, getattr(operator, op)) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    "not": lambda expr, value: not value,
    "is_number": lambda expr, value: True,
    "add": partial(_arithmetic, operator.add),
    "subtract": _subtract,
    "multiply": partial(_arithmetic, operator.mul),
    "divide": partial(_arithmetic, operator.truediv),
    "integer_divide": _whole_quotient,
    "modulo": _remainder,
    "negate": lambda expr, value: _number(expr, -value),
    "abs": lambda expr, value: _number(expr, abs(value)),
    "sign": lambda expr, value: _number(expr, (value > 0) - (value < 0)),
    "floor": lambda expr, value: _number(expr, math.floor(value)),
    "ceil": lambda expr, value: _number(expr, math.ceil(value)),
    "round": _round,
    "part": lambda expr, day: _PARTS[expr.detail](moment(day)),
    "truncate": _truncate,
    "days_between": days_between,
    "cast": _cast,
    "lower": partial(_plain, str.lower),
    "upper": partial(_plain, str.upper),
    "trim": lambda expr, text: text.strip(" "),
    "length": lambda expr, text: len(text),
    "substring": _substring,
    "joined": lambda expr, first, second: first + second,
}
"""Operations that are NULL if an argument is."""


def is_strict(expr: Expr) -> bool:
    """Whether an expression is NULL if a column that it reads is."""
    return not isinstance(expr, Call) or (expr.op in _STRICT and all(map(is_strict, expr.args)))
