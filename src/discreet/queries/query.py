"""A query: a function from data to an answer, with the largest change that one unit can make."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.guarantees.unit import Unit, check_rows
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Space
from discreet.rows.containers import Data


@runtime_checkable
class Query(Protocol):
    """A function of the data that knows its sensitivity. Calling it returns the TRUE answer: keep it sealed."""

    @property
    def space(self) -> Space | None:
        """The declared space to which each row is clamped first. None if only the presence of a row counts."""

    def __call__(self, data: Data) -> Any:
        """The true answer, exact."""

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """The largest change that one unit can make if it has at most `rows_per_person` rows."""


def largest_change(unit: Unit, rows_per_person: int, *, added: Number, replaced: Number) -> Fraction:
    """What one unit can change, given what one added row and one replaced row can change.

    Promise: `k` added rows change k·added. A replaced row() is exchanged for one row, and each of a few rows for one. A
    replaced person may come with fewer rows, even none, so each of its k rows is either replaced, or added or removed:
    k·max(added, replaced).
    """
    if not isinstance(unit, Unit):
        raise InvalidArgument("unit must be row() or person('column').", code="wrong-type")
    rows = check_rows(unit, rows_per_person)
    if unit.neighbors == "add_or_remove":
        return rows * exactly(added)
    if unit.column is None:
        return rows * exactly(replaced)
    return rows * max(exactly(added), exactly(replaced))


def need_public_size(unit: Unit, remedy: str) -> None:
    """Raise if the number of units is not public, because an answer may not be divided by it."""
    if unit.neighbors == "add_or_remove":
        raise InvalidArgument(
            f"The number of rows is private when units are added or removed. {remedy}, "
            "or protect row(neighbors='replace').",
            code="size-is-private",
        )
