"""One cell, read by itself. Any cell gives a number, text, an index or nothing, and never an error.

Only the class of a cell decides its type, because an object may misreport everything else, or raise.
"""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

LEAST, MOST = -(2**63), 2**63 - 1
_WHOLE = (int, np.integer, np.bool_)
_FLAGS = {"true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0}
"""Conditions as DuckDB reads them from text, besides 1 and 0."""
_NUMBERS = (*_WHOLE, float, np.floating, Decimal, Fraction)


def number_of(cell: Any) -> float:
    """A cell as a double: NaN if it is not a number, infinite if it is too large for a double."""
    cell = _scalar(cell)
    if not _is(cell, _NUMBERS):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return _endless(cell)
    except Exception:  # of a user-defined class
        return math.nan


def whole_of(cell: Any) -> int | None:
    """The nearest integer within 64 bits, exact for any size. None if it is not a number."""
    cell = _scalar(cell)
    try:
        if _is(cell, _WHOLE):
            return min(max(int(cell), LEAST), MOST)
        number = number_of(cell)
        if math.isnan(number):
            return None
        if abs(number) >= 2.0**64:  # out of range, possibly with very many digits
            return LEAST if number < 0 else MOST
        return min(max(round(cell) if abs(number) >= 2.0**53 else round(number), LEAST), MOST)
    except Exception:
        return None


def text_of(cell: Any) -> str | None:
    """A cell that is text, otherwise None. Text of numpy and of subclasses of str becomes plain text."""
    return str.__str__(cell) if _is(cell, (str,)) else None


def number_in_text(cell: Any, *, flags: bool = False) -> Any:
    """A cell of text that holds a number, as that number, or a condition if `flags`. NaN for other text. A cell that is
    not text as it is.
    """
    text = text_of(cell)
    if text is None:
        return cell
    if flags and (flag := _FLAGS.get(text.strip().lower())) is not None:
        return flag
    try:
        return float(text)
    except ValueError:
        return math.nan


def parts_of(record: Any, width: int) -> list[Any] | None:
    """The cells of a row: a list, a tuple or an array with exactly this many. None for anything else."""
    try:
        if _is(record, (list,)):
            parts = list.copy(record)
        elif _is(record, (tuple,)):
            parts = list(tuple.__getitem__(record, slice(None)))
        elif _is(record, (np.ndarray,)):
            parts = np.ndarray.tolist(record) if record.ndim == 1 else []
        else:
            return None
        return parts if len(parts) == width else None
    except Exception:
        return None


def place_of(cell: Any, places: Mapping[Any, int]) -> int:
    """The position of a cell in the list, or -1. A cell that cannot be looked up is not in the list."""
    try:
        found = places.get(cell, -1)
    except Exception:  # it has no hash, or its own equality fails
        return -1
    return found


def key_of(cell: Any) -> Any:
    """A cell as the one value that represents all values equal to it. None if there is no such value.

    Equality ignores the sign of a zero, whether 1 is True or 1.0, the digits of a decimal, and the zone of a timestamp.
    So the shown key of a group must not reveal whose cell came first.

    >>> key_of(-0.0), key_of(True), key_of(Decimal("2.50")), key_of(("a", 1.0))
    (0, 1, 2.5, ('a', 1))
    """
    try:
        return _canonical(_scalar(cell))
    except Exception:  # of a user-defined class, or nested too deeply
        return None


def _canonical(cell: Any) -> Any:
    if (text := text_of(cell)) is not None:
        return text
    if _is(cell, (bytes, memoryview)):
        return bytes(cell)
    if _is(cell, (np.datetime64,)):
        cell = cell.astype("datetime64[us]").item()
        cell = cell.date() if cell.time() == datetime.time() else cell
    if _is(cell, (datetime.datetime,)):
        at = cell.astimezone(datetime.UTC) if cell.utcoffset() is not None else cell
        return datetime.datetime(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, at.tzinfo)
    if _is(cell, (datetime.date,)):
        return datetime.date(cell.year, cell.month, cell.day)
    if _is(cell, (uuid.UUID,)):
        return uuid.UUID(int=cell.int)
    if _is(cell, (tuple, frozenset)):
        parts = [key_of(part) for part in cell]
        if None in parts:
            return None
        # equal sets are shown in the same order: their members are inserted in a public order
        return tuple(parts) if _is(cell, (tuple,)) else frozenset(sorted(parts, key=repr))
    if _is(cell, (complex, np.complexfloating)) and cell.imag == 0:
        cell = cell.real
    return _exact(cell)


def _exact(cell: Any) -> int | float | Fraction | None:
    """A number as an integer, a double or a fraction: the first of these that is exact."""
    number = number_of(cell)
    if math.isnan(number):
        return None
    if math.isinf(number):
        return number if cell == number else None
    if number == 0 and cell != 0:  # very small, with very many digits
        return None
    plain = int(cell) if _is(cell, _WHOLE) else number if _is(cell, (np.floating,)) else cell
    exact = Fraction(plain)
    if plain != cell:  # a long double, or a class that is not consistent
        return None
    if exact.denominator == 1:
        return int(exact)
    return float(exact) if Fraction(float(exact)) == exact else exact


def _scalar(cell: Any) -> Any:
    """The value in an array without dimensions. Any other cell as it is."""
    return cell[()] if type(cell) is np.ndarray and cell.ndim == 0 else cell


def _is(cell: Any, kinds: tuple[type, ...]) -> bool:
    # not isinstance, which reads the object's own __class__
    return issubclass(type(cell), kinds) and not issubclass(type(cell), np.timedelta64)


def _endless(cell: Any) -> float:
    try:
        return math.inf if cell > 0 else -math.inf
    except Exception:
        return math.nan
