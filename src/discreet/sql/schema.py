"""What is publicly known about the data: tables, columns, bounds, choices, and how a row leads to its person.

The owner declares everything here, or it follows from names and types. Nothing is read from the rows.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np

from discreet.engines.dialect import ROWS_OF_ONE
from discreet.engines.text_format import TextFormat
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.guarantees.unit import Block, Unit
from discreet.sql.blocks import FirstBlocks, Time
from discreet.sql.living import check_groups, check_times, home_of, parts_named

Type = Literal["integer", "number", "text", "boolean", "date", "timestamp", "other"]
ORDERED: tuple[Type, ...] = ("integer", "number", "date", "timestamp")
PYTHON_TYPES: dict[Type, Any] = {
    "text": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "date": datetime.date,
    "timestamp": datetime.datetime,
}
"""The types that may be declared, and the Python values of each."""
BOUNDS = ("rows_per_person", "groups_per_person", "rows_per_group")
"""How much of one person may take part, as a policy or a question says it."""
KEYS: tuple[Type, ...] = ("integer", "text", "date", "boolean")
"""The types that tell people apart: of others, two values that differ may be read as one."""
NARROWEST = 1e-100
"""A range of numbers is at least so wide: its steps, and their number in a range, are then doubles."""
AUTO = "auto"
"""A bound that is found privately, at a cost, before it is used."""


class Found(tuple[Any, Any]):
    """A range that was found privately."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its type, and what is declared about its values. Values outside the declared range are clamped
    (`between`), and values outside the declared choices belong to no group (`choices`), or to the group `other` if it
    is declared; so do rows without a value. `frequency` is the maximum number of rows with the same value that take
    part in a join, if single rows are protected. A range or frequency of "auto" is found privately. `declared` is true
    if the type was written down and does not only follow from the rest.
    """

    name: str
    type: Type = "other"
    between: Any = None  # two ends, "auto" or None
    choices: tuple[Any, ...] | None = None
    frequency: int | Literal["auto"] | None = None
    declared: bool = False
    other: Any = None

    def __post_init__(self) -> None:
        if self.frequency is not None and not is_auto(self.frequency):
            object.__setattr__(self, "frequency", validate_bound(self.frequency, f"frequency of {self.name}"))
        if is_auto(self.between):
            if self.type not in (*ORDERED, "other"):
                raise InvalidArgument(
                    f"{self.name} is {self.type} and has no range to find. Remove between.", code="column-no-range"
                )
        elif self.between is not None:
            ends = validate_range(self.between, self.type, self.name)
            object.__setattr__(self, "between", Found(ends) if isinstance(self.between, Found) else ends)
        if self.choices is not None:
            object.__setattr__(self, "choices", list_choices(self.choices, self.name))
        if self.other is not None and (self.choices is None or self.other in self.choices):
            raise InvalidArgument(
                f"other of {self.name} is the group of what is not in choices. Declare choices, and another value.",
                code="column-other",
            )


def is_auto(value: Any) -> bool:
    """Whether a bound must be found privately."""
    return isinstance(value, str) and value == AUTO


MOST_CHOICES = 10_000_000


def list_choices(choices: Any, name: str) -> tuple[Any, ...]:
    """Distinct values, as a tuple, with numpy values converted to Python values."""
    with suppress(Exception):  # also from a user's iterator
        listed = tuple(one.item() if isinstance(one, np.generic) else one for one in islice(choices, MOST_CHOICES + 1))
        if len(listed) > MOST_CHOICES:
            listed = ()
        if not isinstance(choices, str | bytes | Mapping) and listed and len(set(listed)) == len(listed):
            return listed
    raise InvalidArgument(
        f"choices of {name} must be a list of different values, at least one and at most {MOST_CHOICES:,}.",
        code="column-choices",
    )


def validate_choice(value: Any, kind: Type, name: str) -> Any:
    """A declared value, checked to have the type of its column. A value of another type would be a group that is always
    empty.
    """
    if isinstance(value, str) and kind in ("date", "timestamp"):
        with suppress(ValueError):
            value = datetime.datetime.fromisoformat(value)
    if kind == "date" and isinstance(value, datetime.datetime):
        value = value.date()
    fits = isinstance(value, PYTHON_TYPES.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))
    if isinstance(value, int | float) and not abs(value) < 2**63:  # NaN is neither true nor false here
        fits = False
    if not fits:
        raise InvalidArgument(f"choices of {name} must have the column's type, {kind}.", code="column-choices-type")
    return value


def validate_bound(value: Any, name: str) -> int:
    """A bound on rows or groups, as an integer: 3.0 is 3. Above 2^31 rows of one person, sums would not be exact."""
    found = check_count(value, name)
    if found > ROWS_OF_ONE:
        raise InvalidArgument(f"{name} must be a whole number of at most {ROWS_OF_ONE:,}.", code="out-of-range")
    return found


def check_type(kind: Any, column: str) -> None:
    """Check that a declared type, if there is one, is supported."""
    if kind is not None and kind not in list(PYTHON_TYPES):
        raise InvalidArgument(
            f"type of {column} must be one of {', '.join(PYTHON_TYPES)}, not {kind}.", code="not-an-option"
        )


def implied_type(between: Any, choices: Any) -> Type:
    """The type that follows from a declared range or from choices. "other" if none does."""
    kinds = {type(choice) for choice in choices or ()}
    whole = kinds == {int}
    if is_auto(between):
        return "integer" if whole else "number"
    if between is not None:
        ends = between if isinstance(between, list | tuple) else (None,)
        if all(isinstance(end, int | float) for end in ends):
            return "integer" if whole else "number"
        return "date" if all(map(_is_day, ends)) else "timestamp"
    if kinds == {int, float}:
        return "number"
    return _TYPE_OF.get(kinds.pop(), "other") if len(kinds) == 1 else "other"


_TYPE_OF: dict[type, Type] = {bool: "boolean", int: "integer", float: "number", str: "text"}
_TYPE_OF |= {datetime.date: "date", datetime.datetime: "timestamp"}


def _is_name(source: Any) -> bool:
    """Whether a source is a path or a name of data, not the data."""
    return isinstance(source, str | Path | None)


def _is_day(end: Any) -> bool:
    """Whether the end of a range is a date without a time of day."""
    if isinstance(end, str):
        return len(end) <= len("2020-01-31")
    return isinstance(end, datetime.date) and not isinstance(end, datetime.datetime)


def validate_range(between: Any, kind: Type, name: str) -> tuple[Any, Any]:
    """Two public bounds, the lower first, of the column's type."""
    if kind not in ORDERED:
        raise InvalidArgument(
            f"{name} is {kind} and has no range. Give between= for numbers and dates only.", code="column-no-range"
        )
    if not isinstance(between, list | tuple | np.ndarray) or np.shape(between)[:1] != (2,):
        raise InvalidArgument(f"between of {name} must be two values, such as [0, 120].", code="wrong-shape")
    ends = tuple(_end(value, kind, name) for value in between)
    if not ends[0] < ends[1]:
        raise InvalidArgument(
            f"between of {name} must be a lower and a higher value, such as [0, 120].", code="ends-out-of-order"
        )
    if kind in ("integer", "number") and ends[1] - ends[0] < NARROWEST:
        raise InvalidArgument(
            f"between of {name} must be at least {NARROWEST} wide. Use another unit for its values.",
            code="column-narrow-range",
        )
    return ends[0], ends[1]


def _end(given: Any, kind: Type, name: str) -> Any:
    value = given.item() if isinstance(given, np.generic) else given
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e15:
            raise InvalidArgument(f"between of {name} must be two numbers within ±1e15.", code="out-of-range")
        return value
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) if kind == "timestamp" else value.date()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day) if kind == "timestamp" else value
    raise InvalidArgument(f"between of {name} must be two dates, such as 2020-01-31.", code="not-a-date")


UNITS = ("year", "quarter", "month", "week", "day")
"""The levels of a hierarchy of dates."""


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """Columns from coarse to fine, such as region and city. `groups` are the combinations of their values that exist.
    `totals` are numbers of rows that are public, each after the values of the first columns. With a `column` of dates,
    the levels are units of the calendar, such as year and month.
    """

    name: str
    levels: tuple[str, ...]
    groups: tuple[tuple[Any, ...], ...] = ()
    totals: tuple[tuple[Any, ...], ...] = ()
    column: str | None = None

    def written(self, level: int, quote: Callable[[str], str]) -> str:
        """A level as a key in SQL."""
        name = self.levels[level]
        return quote(name) if self.column is None else f"DATE_TRUNC('{name}', {quote(self.column)})"

    def __post_init__(self) -> None:
        units = all(unit in UNITS for unit in self.levels) and not self.groups and not self.totals
        if self.column is not None and not units:
            self._refuse(f"levels of a column of dates must be some of {', '.join(UNITS)}, without groups and totals")
        if not self.levels or len(set(self.levels)) < len(self.levels):
            self._refuse('levels must be different columns from coarse to fine, such as ["region", "city"]')
        if any(len(group) != len(self.levels) for group in self.groups) or len(set(self.groups)) < len(self.groups):
            self._refuse("groups must be different lists with one value for each level")
        if not self.totals:
            return
        keys = [total[:-1] for total in self.totals]
        width = len(keys[0])
        known = {group[:width] for group in self.groups}
        numbers = [total[-1] if total else None for total in self.totals]
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**53 for n in numbers):
            self._refuse("totals must end with numbers of rows")
        if set(keys) != known or len(keys) != len(known):
            self._refuse('totals must have one list for each group of the first levels, such as ["North", 1200]')

    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of each level, if they are listed."""
        listed = zip(*self.groups, strict=True)
        return {level: tuple(dict.fromkeys(own)) for level, own in zip(self.levels, listed, strict=False)}

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidArgument(f"In the hierarchy {self.name}, {what}.", code="policy-hierarchy")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table: where it is, and how many of its rows one person may have in an answer.

    A private table has the column of the person, or is connected `through` a key of another table that leads to the
    person: "visits.visit_id" if both tables use that name, "visit -> visits.visit_id" if not. `groups_per_person`
    bounds the groups in one answer, `rows_per_group` the rows in each group. `time` divides the rows into blocks.
    `text_format` says how a text file is read.
    """

    name: str
    columns: Mapping[str, Column]
    source: Any = field(default=None, repr=False)  # it may be the data
    public: bool = False
    person: str | None = None
    through: str | None = None
    rows_per_person: int | None = None
    groups_per_person: int | str | None = None
    rows_per_group: int | None = None
    version: str | None = None
    hierarchies: tuple[Hierarchy, ...] = ()
    time: Time | None = None
    text_format: TextFormat | None = None

    def __post_init__(self) -> None:
        for name in BOUNDS:
            value = getattr(self, name)
            if value is not None and not (is_auto(value) and name == "groups_per_person"):
                object.__setattr__(self, name, validate_bound(value, f"{name} of {self.name}"))
        if self.person is not None and self.person not in self.columns:
            raise InvalidArgument(
                f"{self.name} has no column {self.person}, which the unit names as the person's. Correct person.",
                code="person-column-missing",
            )
        for hierarchy in self.hierarchies:
            named = hierarchy.levels if hierarchy.column is None else (hierarchy.column,)
            if missing := [name for name in named if name not in self.columns]:
                raise InvalidArgument(
                    f"The hierarchy {hierarchy.name} of {self.name} names {missing[0]}, which has no declaration. "
                    f"Declare it: [tables.{self.name}.columns.{missing[0]}].",
                    code="policy-hierarchy",
                )
        if self.through is not None and (not all(self.path) or self.person is not None):
            raise InvalidArgument(
                f'through of {self.name} must name a key of another table, such as "visits.visit_id", or with a name '
                'of its own "visit -> visits.visit_id"; a table with the person\'s column needs none.',
                code="policy-through",
            )

    @property
    def path(self) -> tuple[str, str, str]:
        """The path to the person: a column, the table it leads to, and that table's key."""
        own, arrow, target = (part.strip() for part in (self.through or "").rpartition("->"))
        other, _, key = target.partition(".")
        return own if arrow else key, other, key


@dataclass(frozen=True, kw_only=True)
class Schema:
    """All tables, and who is protected in them.

    Questions and answers refer to it, so it holds no data. Of a source only the name is kept, if it has one. With
    `parts`, only the rows in these parts of the private tables count: blocks of time, or where people live. With
    `first_blocks`, only the first few blocks of each person do.
    """

    unit: Unit
    tables: Mapping[str, Table] = field(default_factory=dict)
    parts: tuple[str, ...] | None = None
    first_blocks: FirstBlocks | None = None

    def __post_init__(self) -> None:
        known = {n: t if _is_name(t.source) else replace(t, source=None) for n, t in self.tables.items()}
        object.__setattr__(self, "tables", known)
        for table in self.tables.values():
            if table.public or self.unit.column is None:
                continue
            self._check_path(table)
        check_times(self)
        check_groups(self)
        if self.unit.lives_in is not None:
            self.home  # noqa: B018 (it raises if nothing says where a person lives)
        if self.parts is not None:
            object.__setattr__(self, "parts", parts_named(self, self.parts))

    @property
    def block(self) -> Block | None:
        """The blocks of time that the tables are divided into. None if no table has a time."""
        return next((table.time.block for table in self.tables.values() if table.time is not None), None)

    @property
    def home(self) -> tuple[Table, Column]:
        """The table and the column that say where a person lives."""
        return home_of(self)

    def leads(self, origin: tuple[str, str] | None) -> str | None:
        """What a column leads to. Two columns with the same result identify the same person, or a key of that
        person.
        """
        table = self.tables.get(origin[0]) if origin else None
        if origin is None or table is None or table.public or self.unit.column is None:
            return None
        if origin[1] == table.person:
            return "person"
        if table.through is not None and origin[1] == table.path[0]:
            return self.leads((table.path[1], table.path[2]))
        keys = {other.path[1:] for other in self.tables.values() if other.through is not None}
        return ".".join(origin) if origin in keys else None

    def _check_path(self, table: Table) -> None:
        """Check that every private table leads to the person, in a few steps."""
        passed = {table.name}
        while table.person is None:
            if table.through is None:
                near = difflib.get_close_matches(str(self.unit.column), table.columns, n=1)
                remedy = (
                    f"Did you mean {near[0]}?"
                    if near
                    else 'Name the key that leads to the person (through = "visits.visit_id"), or write public = true '
                    "if it is about nobody."
                )
                raise InvalidArgument(
                    f"{table.name} has no column {self.unit.column}. {remedy}", code="person-column-missing"
                )
            own, other, key = table.path
            target = self.tables.get(other)
            if own not in table.columns or target is None or target.public or key not in target.columns:
                raise InvalidArgument(
                    f"through of {table.name} must name a column of its own and a key of another private table: "
                    f'"{own} -> {other}.{key}" does not.',
                    code="policy-through",
                )
            if table.columns[own].type != target.columns[key].type:
                raise InvalidArgument(
                    f"through of {table.name}: {own} and {other}.{key} have different types. Give them the same one.",
                    code="policy-through-types",
                )
            if target.columns[key].type not in KEYS:
                raise InvalidArgument(
                    f"through of {table.name}: {other}.{key} identifies people, and must be whole numbers, text or "
                    "dates in both tables.",
                    code="person-type",
                )
            if other in passed:
                raise InvalidArgument(
                    f"through of {table.name} leads back to {other}, and never to a person. Name a key that does.",
                    code="policy-through",
                )
            passed.add(other)
            table = target
        if table.columns[table.person].type not in KEYS:
            raise InvalidArgument(
                f"{table.person} identifies people in {table.name}, and must be whole numbers, text or dates there.",
                code="person-type",
            )
