"""What is publicly known about the data: tables, columns, bounds, choices, and the way from a row to its person.

Everything here is declared by the owner or read from names and types; nothing is read from the rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import Unit
from discreet.rational import check_count

Type = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]
ORDERED: tuple[Type, ...] = ("integer", "number", "date", "timestamp")
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its type, and what is declared about its values. Values outside of what is declared are clamped
    (`between`) or belong to no group (`choices`).
    """

    name: str
    type: Type = "other"
    between: tuple[Any, Any] | None = None
    choices: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.between is not None:
            object.__setattr__(self, "between", checked_range(self.between, self.type, self.name))
        if self.choices is not None:
            listed = tuple(self.choices)
            if isinstance(self.choices, str) or not listed or len(set(listed)) != len(listed):
                raise InvalidArgument(f"choices of {self.name} must be a list of different values, at least one.")
            object.__setattr__(self, "choices", listed)


def checked_range(between: Any, kind: Type, name: str) -> tuple[Any, Any]:
    """Two public ends, the lower first, of the column's type."""
    if kind not in ORDERED:
        raise InvalidArgument(f"{name} is {kind} and has no range. Give between= to numbers and dates only.")
    try:
        low, high = between
    except (TypeError, ValueError):
        raise InvalidArgument(f"between of {name} must be two values, such as [0, 120].") from None
    ends = tuple(_end(value, kind, name) for value in (low, high))
    if not ends[0] < ends[1]:
        raise InvalidArgument(f"between of {name} must be a lower and a higher value, such as [0, 120].")
    return ends[0], ends[1]


def _end(value: Any, kind: Type, name: str) -> Any:
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e15:
            raise InvalidArgument(f"between of {name} must be two numbers within ±1e15.")
        return value
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise InvalidArgument(f"between of {name} must be two dates, such as 2020-01-31.") from None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if kind == "timestamp" else value.date()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day) if kind == "timestamp" else value
    raise InvalidArgument(f"between of {name} must be two dates, such as 2020-01-31.")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table: where it is, and how many of its rows one person may have in an answer.

    A private table has the person's column, or comes `through` a key of another table that leads to the person.
    `groups_per_person` bounds the groups of one answer, `rows_per_group` the rows in each of them.
    """

    name: str
    columns: Mapping[str, Column]
    source: Any = field(default=None, repr=False)  # it may be the data themselves
    public: bool = False
    person: str | None = None
    through: str | None = None
    rows_per_person: int | None = None
    groups_per_person: int | str | None = None
    rows_per_group: int | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        for name in ("rows_per_person", "groups_per_person", "rows_per_group"):
            value = getattr(self, name)
            if value is not None and not (value == AUTO and name == "groups_per_person"):
                check_count(value, f"{name} of {self.name}")
        if self.person is not None and self.person not in self.columns:
            raise InvalidArgument(f"{self.name} has no column {self.person}, which the unit says identifies a person.")


@dataclass(frozen=True, kw_only=True)
class Schema:
    """All tables, and who is protected in them."""

    unit: Unit
    tables: Mapping[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in self.tables.values():
            if table.public or self.unit.column is None:
                continue
            if table.person is None and table.through is None:
                raise InvalidArgument(
                    f"{table.name} has no column {self.unit.column}. Say which key leads to the person "
                    '(through = "visits.visit_id"), or that it is public.'
                )
            if table.rows_per_person is None:
                raise InvalidArgument(f"Say how many rows of {table.name} one person may have: rows_per_person = 20.")
