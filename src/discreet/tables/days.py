"""Dates as numbers: days since 1970."""

from __future__ import annotations

import datetime
from typing import Any

from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.rows import number_of
from discreet.sql.reading.values.ranges import day_of

DAYS = ("date", "timestamp")
EPOCH = datetime.date(1970, 1, 1)


def as_number(column: str, kind: str) -> str:
    """A column as a number in SQL. A date becomes its days since 1970."""
    name = quote(column)
    return f"({name} - DATE '{EPOCH}')" if kind in DAYS else name


def from_number(value: Any, kind: str) -> Any:
    """The number as a value of the column's type."""
    return EPOCH + datetime.timedelta(days=int(value)) if kind in DAYS else value


def in_days(ends: tuple[Any, Any]) -> tuple[int, int]:
    """The ends of a range of dates as numbers."""
    if not all(isinstance(end, datetime.date) for end in ends):
        raise InvalidArgument("The range of a column of dates must be two dates.", code="wrong-type")
    low, high = map(day_of, ends)
    return (low - EPOCH).days, (high - EPOCH).days


def number_of_day(value: Any) -> float:
    """A cell or an end of a range as a number."""
    day = day_of(value)
    return float((day - EPOCH).days) if hasattr(day, "toordinal") else number_of(value)
