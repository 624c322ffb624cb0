"""The records of people who report, each read by itself: a column of them, and the index of each in a public domain.

A record outside the domain has the index `FOREIGN`. Nothing here raises for a record: a mechanism replaces it by a
uniform index (`inside`), so that it is reported like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.rows import cells, column, has, number_of, place_of, whole_of
from discreet.rows.containers import Data

FOREIGN = -1
Places = NDArray[np.int64]
_EXACT = 2**53
_WHOLE = (int, np.integer, np.bool_)


def is_column(values: Data) -> bool:
    """Whether this holds many records, decided only by its type and shape."""
    if isinstance(values, str | bytes | bytearray | Mapping | Set):
        return False
    if has(values, "shape"):
        return len(values.shape) > 0
    return isinstance(values, Sequence) or has(values, "to_pylist")


def one_column(values: Data) -> NDArray[Any] | list[Any]:
    """One record of each person: a typed array of numbers as it is, anything else as a list.

    A value that is not a column is refused by its type or its shape, never by its content.
    """
    if not is_column(values) or (has(values, "shape") and len(values.shape) != 1):
        raise InvalidArgument(
            "Give one value for each person: a list, or an array or column with one dimension.", code="not-a-column"
        )
    records = column(values)
    return records if records.dtype.kind in "biuf" else cells(records)


def places_among(values: Data, known: Mapping[Any, int]) -> Places:
    """The index of each record among the known ones, to which it must be equal: True, 1 and 1.0 are one value."""
    records = cells(one_column(values))
    return np.fromiter((place_of(one, known) for one in records), np.int64, len(records))


def places_below(values: Data, size: int) -> Places:
    """Each record that is an integer from 0 to size − 1, as it is."""
    records = one_column(values)
    if not isinstance(records, np.ndarray):
        return np.fromiter((_whole_below(one, size) for one in records), np.int64, len(records))
    if records.dtype.kind == "b":
        records = records.astype(np.int64)
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        fits = (records >= 0) & (records < size)
        if records.dtype.kind == "f":
            fits &= np.floor(records) == records
    found = np.full(len(records), FOREIGN, dtype=np.int64)
    found[fits] = records[fits].astype(np.int64)
    return found


def _whole_below(record: Any, size: int) -> int:
    whole, number = whole_of(record), number_of(record)
    if whole is None or not 0 <= whole < size:
        return FOREIGN
    return whole if issubclass(type(record), _WHOLE) or whole == number else FOREIGN


def inside(places: Places, size: int) -> Places:
    """The indices, with a uniform one for each foreign record. The number of draws does not depend on the records."""
    drawn = samplers.uniform_below(size, len(places))
    return np.where((places >= 0) & (places < size), places, drawn).astype(np.int64)


# --- numbers within two ends --------------------------------------------------------------------------------


def shares_between(values: Data, low: Fraction, high: Fraction) -> NDArray[np.float64]:
    """The position of each number, with 0 for `low` and 1 for `high`. NaN for a value that is not a number.

    Shares are rounded and may lie outside. Callers convert them to integers, and clamp those.
    """
    records = one_column(values)
    first, width = float(low), high - low
    off, span = float(Fraction(first) - low), float(width)
    beyond = max(abs(low), abs(high)) > _EXACT
    if isinstance(records, np.ndarray) and not (beyond and records.dtype.kind in "iu"):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((records.astype(np.float64) - first + off) / span)

    def share(record: Any) -> float:
        try:
            exact = int(record) if isinstance(record, _WHOLE) else record
            if isinstance(exact, Fraction) or (isinstance(exact, int) and (beyond or abs(exact) > _EXACT)):
                return 0.0 if exact <= low else 1.0 if exact >= high else float((exact - low) / width)
            if isinstance(exact, float | np.floating | Decimal | int):  # as in an array
                return (float(exact) - first + off) / span
        except Exception:
            return np.nan
        return np.nan

    listed = records.tolist() if isinstance(records, np.ndarray) else records
    return np.fromiter((share(one) for one in listed), np.float64, len(listed))


def steps_between(values: Data, low: Fraction, high: Fraction, steps: int) -> Places:
    """The nearest of `steps` + 1 equally spaced positions of each number. A number outside gets the nearer end."""
    shares = np.clip(shares_between(values, low, high), 0, 1)  # NaN stays
    places = np.rint(np.where(np.isnan(shares), 0, shares) * steps).astype(np.int64)
    return np.where(np.isnan(shares), FOREIGN, np.clip(places, 0, steps))


def in_the_middle(places: Places, steps: int) -> Places:
    """Positions from 0 to `steps`, with the middle one for each foreign record, which is the mean of a uniform one."""
    return np.where((places >= 0) & (places <= steps), places, steps // 2)
