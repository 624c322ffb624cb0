"""Constants of a question: dates, intervals and numbers that are computed from its text only."""

from __future__ import annotations

import calendar
import datetime
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.sql.expressions import Const, Expr
from discreet.sql.schema import Type

MONTHS = {"month": 1, "quarter": 3, "year": 12}
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""The units of an INTERVAL that is written out, in months or in seconds."""
_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}
"""What is worked out here between numbers that are written out."""
_TYPES: dict[Type, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "text": "TEXT",
    "boolean": "BOOLEAN",
}


def literal(value: Any, kind: Type) -> exp.Expression:
    """A public value as it is written in SQL."""
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return exp.cast(exp.null(), _TYPES[kind])
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(str(value)), _TYPES[kind])
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    number = exp.Literal.number(repr(abs(value)))
    return exp.paren(exp.Neg(this=number)) if value < 0 else number


def moment_of(text: str) -> datetime.datetime | None:
    """The date or timestamp in a text. None if it is neither."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def later(start: datetime.date, amount: int, unit: str) -> datetime.datetime:
    """The moment this many units later. With months, the last day of the month if the month is too short."""
    moment = start if isinstance(start, datetime.datetime) else datetime.datetime(start.year, start.month, start.day)
    if unit in SECONDS:
        return moment + datetime.timedelta(seconds=amount * SECONDS[unit])
    year, month = divmod(moment.year * 12 + moment.month - 1 + amount * MONTHS[unit], 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise ValueError
    return moment.replace(year=year, month=month + 1, day=min(moment.day, calendar.monthrange(year, month + 1)[1]))


def fold_numbers(op: str, args: tuple[Expr, ...]) -> Const | None:
    """Numeric literals, combined as decimals: 0.06 + 0.01 is 0.07, which is not true for floats."""
    if op not in _EXACT:
        return None
    values = [arg.value for arg in args if isinstance(arg, Const) and arg.type in ("integer", "number")]
    if len(values) != 2 or any(value is None for value in values):
        return None
    found = _EXACT[op](*(Fraction(repr(value)) for value in values))
    if abs(found) >= 2**62:
        return None
    return Const(int(found), "integer") if all(isinstance(v, int) for v in values) else Const(float(found), "number")


def read_date(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """A date literal written as text, next to an expression that is a date: day >= '2025-01-01'."""
    kinds = {arg.type for arg in args} & {"date", "timestamp"}
    if not kinds:
        return args
    found = []
    for arg in args:
        moment = moment_of(arg.value) if isinstance(arg, Const) and isinstance(arg.value, str) else None
        if moment is None or moment.tzinfo is not None:
            found.append(arg)
        elif kinds == {"date"}:
            found.append(Const(moment.date(), "date"))
        else:
            found.append(Const(moment, "timestamp"))
    return tuple(found)
