"""How numbers and times are written on the pages."""

from __future__ import annotations

import datetime
from typing import Any


def number(value: Any) -> str:
    """A number for people: 1,234,567 and 12.35."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:,.4g}"


def epsilon(value: Any) -> str:
    """A privacy loss: ε = 0.1, or – if there is none."""
    if value is None:
        return "–"
    if not isinstance(value, dict):
        return f"ε = {float(value):.6g}"
    if "epsilon" in value:
        return f"ε = {float(value['epsilon']):.6g}"
    return ", ".join(f"{name} = {float(one):.6g}" for name, one in value.items())


def when(value: Any) -> str:
    """A time to the minute, in UTC."""
    try:
        return datetime.datetime.fromisoformat(str(value)).astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return str(value)


def percent(value: Any) -> str:
    """A share as a percentage."""
    return f"{100 * float(value):.3g}%"


FILTERS = {"number": number, "epsilon": epsilon, "when": when, "percent": percent}
"""What templates know by these names."""
