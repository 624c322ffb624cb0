"""One cell as a value of a declared kind, or None. Nothing here raises, whatever the cell is.

Only the methods of Python's built-in types are called. So a cell of a type that overrides them runs none of its own
code.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.rows.cells import number_of, text_of

_WHOLE = 2**63


def _total(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def reader(cell: Any) -> Any:
        try:
            return read(_plain(cell))
        except Exception:
            return None

    return reader


def _plain(cell: Any) -> Any:
    """A numpy scalar as a Python value, with timestamps in microseconds. Anything else as it is."""
    kind = type(cell)
    if not issubclass(kind, np.generic):
        return cell
    with np.errstate(all="ignore"):  # a warning would reveal something about this cell
        return _of_numpy(cell, kind)


def _of_numpy(cell: Any, kind: type) -> Any:
    if issubclass(kind, np.datetime64):
        fine = cell.astype("datetime64[us]")
        return fine.item() if fine.astype(cell.dtype) == cell else None  # NaT, or out of range
    if issubclass(kind, np.longdouble):
        return float(cell)
    return cell.item() if issubclass(kind, np.bool_ | np.number | np.str_) else None


def _number(cell: Any) -> float | None:
    found = math.nan if issubclass(type(cell), bool) else number_of(cell)
    return None if math.isnan(found) else found


def _integer(cell: Any) -> int | None:
    """64-bit integers, in any notation."""
    kind, found = type(cell), None
    if issubclass(kind, bool):
        return None
    if issubclass(kind, int):
        found = int.__int__(cell)
    elif issubclass(kind, float) and float.is_integer(cell):
        found = int(float.__float__(cell))
    elif issubclass(kind, Decimal) and Decimal.adjusted(cell) < 20 and Decimal.__eq__(cell, Decimal.__int__(cell)):
        found = Decimal.__int__(cell)
    elif issubclass(kind, Fraction) and cell.denominator == 1:
        found = int(cell.numerator)
    return found if found is not None and -_WHOLE <= found < _WHOLE else None


def _text(cell: Any) -> str | None:
    found = text_of(cell)
    if found is not None:
        found.encode()  # invalid Unicode has no bytes
    return found


def _boolean(cell: Any) -> bool | None:
    return cell if type(cell) is bool else None


def _timestamp(cell: Any) -> datetime.datetime | None:
    """A timestamp. With a time zone, it is converted to UTC. A date is its midnight."""
    kind = type(cell)
    if issubclass(kind, datetime.datetime):
        if kind.__name__ == "NaTType":  # pandas: a missing timestamp
            return None
        parts = [getattr(datetime.datetime, name).__get__(cell) for name in _PARTS]
        zone = datetime.datetime.tzinfo.__get__(cell)
        naive = datetime.datetime(*parts)
        if zone is None:
            return naive
        away = datetime.datetime.utcoffset(cell)
        return None if away is None else naive - away
    if issubclass(kind, datetime.date):
        return datetime.datetime.combine(datetime.date.fromordinal(datetime.date.toordinal(cell)), datetime.time())
    return None


_PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def _date(cell: Any) -> datetime.date | None:
    found = _timestamp(cell)
    return None if found is None or found.time() != datetime.time() else found.date()


READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "text": (_total(_text), "string"),
    "integer": (_total(_integer), "int64"),
    "number": (_total(_number), "float64"),
    "boolean": (_total(_boolean), "bool"),
    "date": (_total(_date), "date32"),
    "timestamp": (_total(_timestamp), "timestamp[us]"),
}
"""How a cell of each kind is read, and its Arrow type."""
