"""How numbers and times are written on the pages."""

from __future__ import annotations

import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from discreet.guarantees.meaning import words


def number(value: Any) -> str:
    """A number for people: 1,234,567 and 12.35."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:,.4g}"


def epsilon(value: Any, rounding: str = ROUND_CEILING) -> str:
    """A privacy loss, rounded up: ε = 0.1, or – if there is none."""
    if value is None:
        return "–"
    found = value.get("epsilon") if isinstance(value, dict) else value
    if isinstance(value, dict) and found is None:
        return ", ".join(f"{name} = {_six_digits(one, rounding)}" for name, one in value.items())
    return f"ε = {_six_digits(found, rounding)}"


def left(value: Any) -> str:
    """A privacy loss that is left, rounded down: who asks for as much as this is not refused."""
    return epsilon(value, ROUND_FLOOR)


def _six_digits(value: Any, rounding: str) -> str:
    exact = f"{float(value):.12g}"  # 0.1 in binary is a little more than 0.1
    return f"{float(Context(prec=6, rounding=rounding).create_decimal(exact)):.6g}"


def when(value: Any) -> str:
    """A time to the minute, in UTC."""
    try:
        return datetime.datetime.fromisoformat(str(value)).astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return str(value)


def percent(value: Any) -> str:
    """A share as a percentage."""
    return f"{100 * float(value):.3g}%"


def at_most(value: Any) -> str:
    """A probability that is no larger than this, rounded up. What is not certain is not called certain."""
    return words.percent(min(1.0, max(0.0, float(value))), up=True)


def at_least(value: Any) -> str:
    """A probability that is no smaller than this, rounded down."""
    return words.percent(min(1.0, max(0.0, float(value))), up=False)


def times(value: Any) -> str:
    """A factor that is no larger than this, rounded up."""
    return words.times(float(value))


FILTERS = {
    "number": number,
    "epsilon": epsilon,
    "left": left,
    "when": when,
    "percent": percent,
    "at_most": at_most,
    "at_least": at_least,
    "times": times,
}
"""What templates know by these names."""
