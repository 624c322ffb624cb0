"""The values of a column of cells: the declared ones, all others, and NULL.

Every row has exactly one of them, whatever it holds. Values that are not declared are told apart only where an order
does it: below, between and above the declared ones.
"""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.sql.expressions import Field
from discreet.sql.reading.values.domains import declared_points
from discreet.sql.reading.values.public_values import UNKNOWN, Outside

MOST_CELLS = 1024
"""The largest number of cells of one estimate: an inverse of such a matrix takes a second at most."""
_TYPES = ("text", "boolean", "integer", "date")
"""Of other types, a value may be NaN, or have a time zone: what compares as equal differs between engines."""
_SAFE = 2**53
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Gap(Outside):
    """The whole numbers or days between two declared values. None is an open end."""

    low: Any
    high: Any

    def compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        if not self._is_alike(other):
            return UNKNOWN
        least, most = self.low, self.high
        if compare in (operator.eq, operator.ne):
            outside = (least is not None and other < least) or (most is not None and other > most)
            return compare is operator.ne if outside else UNKNOWN
        if compare in (operator.lt, operator.le):
            always = most is not None and compare(most, other)
            never = least is not None and not compare(least, other)
        else:
            always = least is not None and compare(least, other)
            never = most is not None and not compare(most, other)
        return True if always else False if never else UNKNOWN

    def _is_alike(self, other: Any) -> bool:
        """Whether a constant is of the type of these values, and compared exactly by every engine."""
        if isinstance(self.low if self.high is None else self.high, datetime.date):
            return type(other) is datetime.date
        return isinstance(other, int | float) and not isinstance(other, bool) and abs(other) < _SAFE


def points_of(field: Field) -> tuple[Any, ...] | None:
    """All that a column can hold, as points. None if its values are not declared, or too many."""
    if field.type not in _TYPES or field.origin is None:
        return None
    declared = declared_points(field)
    if declared is None or not declared or len(declared) + 2 > MOST_CELLS or None in declared:
        return None
    if field.type == "boolean":
        return (False, True, None)
    if field.type == "text":
        return (*declared, Outside(frozenset(declared)), None) if _are(declared, str) else None
    if not _are(declared, int if field.type == "integer" else datetime.date):
        return None
    return (*declared, *_gaps(sorted(declared), 1 if field.type == "integer" else _DAY), None)


def _are(values: tuple[Any, ...], kind: type) -> bool:
    return all(type(value) is kind for value in values) and not (
        kind is int and any(abs(value) >= _SAFE for value in values)
    )


def _gaps(values: list[Any], step: Any) -> list[Gap]:
    known = frozenset(values)
    found = [Gap(known, None, values[0] - step)] if values[0] != datetime.date.min else []
    for first, second in itertools.pairwise(values):
        if second - first > step:
            found.append(Gap(known, first + step, second - step))
    return [*found, *([Gap(known, values[-1] + step, None)] if values[-1] != datetime.date.max else [])]
