"""Who is protected, which determines the databases that are neighbors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count

Relation = Literal["add_or_remove", "replace"]
RELATIONS: tuple[Relation, ...] = ("add_or_remove", "replace")
Block = Literal["day", "week", "month", "quarter", "year"]
BLOCKS: tuple[Block, ...] = ("day", "week", "month", "quarter", "year")
"""Blocks of time: each day is in one of each kind."""


@dataclass(frozen=True)
class Unit:
    """What a release hides: all rows of a person, those of one block of time, one row, or a few rows.

    Neighbors differ in one unit, by `add_or_remove` (the default) or by `replace`. With `replace`, the number of units
    is public. With `per`, a unit is what one person has in one block of time, such as a month,
    or a row, which is in one block. With `lives_in`, the
    rows of a person count only where this column has the one value that is the person's.

    With `times`, a unit is any set of at most so many rows. With `groups` and `by`, it has at most `times` rows in each
    of at most `groups` groups, which are the values of the column `by`. No row is left out: this says who is protected.

    >>> person("patient_id")
    person('patient_id')
    >>> person("patient_id", per="month").lives_in_one
    'month'
    >>> row(neighbors="replace")
    row(neighbors='replace')
    >>> row(times=3, groups=2, by="region").most_rows
    6
    """

    column: str | None = None
    neighbors: Relation = "add_or_remove"
    per: Block | None = field(default=None, metadata={"later": True})
    lives_in: str | None = field(default=None, metadata={"later": True})
    times: int | None = field(default=None, metadata={"later": True})
    groups: int | None = field(default=None, metadata={"later": True})
    by: str | None = field(default=None, metadata={"later": True})

    def __post_init__(self) -> None:
        if self.neighbors not in RELATIONS:
            raise InvalidArgument("neighbors must be 'add_or_remove' or 'replace'.", code="not-an-option")
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise InvalidArgument(
                "person() needs the name of the column that identifies a person: person('patient_id').",
                code="wrong-type",
            )
        if self.per is not None and self.per not in BLOCKS:
            raise InvalidArgument(f"per must be one of {', '.join(BLOCKS)}.", code="not-an-option")
        if self.lives_in is not None and (not isinstance(self.lives_in, str) or not self.lives_in):
            raise InvalidArgument('lives_in must name a column, such as "region".', code="wrong-type")
        if self.column is None and self.lives_in:
            raise InvalidArgument("lives_in is for people. Leave it out for rows.", code="rows-protected")
        if self.per and self.lives_in:
            raise InvalidArgument(
                "A unit lives in one block of time (per) or in one part of the people (lives_in). Give one of them.",
                code="not-an-option",
            )
        self._check_rows()

    def _check_rows(self) -> None:
        """Check the number of rows and groups. One row is written without them."""
        if self.column is not None and (self.times, self.groups, self.by) != (None, None, None):
            raise InvalidArgument(
                "times, groups and by are for rows. All rows of a person are protected: leave them out.",
                code="rows-protected",
            )
        if (self.groups is None) != (self.by is None):
            raise InvalidArgument(
                'groups needs the column whose groups are counted, and by needs their number: groups=2, by="region".',
                code="unit-groups",
            )
        if self.by is not None and (not isinstance(self.by, str) or not self.by):
            raise InvalidArgument('by must name a column, such as "region".', code="wrong-type")
        for name in ("times", "groups"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _few(getattr(self, name), name))
        if self.most_rows == 1:
            for name in ("times", "groups", "by"):
                object.__setattr__(self, name, None)
        elif self.times is None:
            object.__setattr__(self, "times", 1)

    def __repr__(self) -> str:
        parts = [] if self.column is None else [repr(self.column)]
        if self.neighbors != "add_or_remove":
            parts.append(f"neighbors={self.neighbors!r}")
        later = ("per", "lives_in", "times", "groups", "by")
        parts += [f"{name}={value!r}" for name in later if (value := getattr(self, name)) is not None]
        return f"{'row' if self.column is None else 'person'}({', '.join(parts)})"

    @property
    def lives_in_one(self) -> str | None:
        """What divides the data so that each unit is in one part: a block of time, or a column. None if nothing does,
        and what touches one part may then touch everybody.
        """
        return self.per or self.lives_in

    @property
    def most_rows(self) -> int:
        """How many rows a unit of rows has at most. 1 for a person, about whom nothing is said here."""
        return (self.times or 1) * (self.groups or 1)

    @property
    def one(self) -> Unit:
        """One row of it, with the same relation."""
        return replace(self, times=None, groups=None, by=None)

    def same_kind(self, other: Unit) -> bool:
        """Whether both protect the same rows of the same column, for any relation. A row is the same in any block."""
        if (self.column, self.times, self.groups, self.by) != (other.column, other.times, other.groups, other.by):
            return False
        return self.per == other.per or (self.column is None and self.most_rows == 1)


def person(
    column: str, *, neighbors: Relation = "add_or_remove", per: Block | None = None, lives_in: str | None = None
) -> Unit:
    """Protect everything that one person contributed, or with `per` what they contributed in one block of time.
    `column` identifies the person. `lives_in` names a column whose value is made the same in all rows of a person.
    """
    if not isinstance(column, str) or not column:
        raise InvalidArgument(
            "person() needs the name of the column that identifies a person: person('patient_id').", code="wrong-type"
        )
    return Unit(column, neighbors, per, lives_in)


def row(
    *,
    neighbors: Relation = "add_or_remove",
    per: Block | None = None,
    times: int | None = None,
    groups: int | None = None,
    by: str | None = None,
) -> Unit:
    """Protect single rows. Use it only if each person has one row. With `per`, each block of time has its own budget,
    because a row is in one of them.

    With `times`, protect any few rows at once: so many at most, or with `groups` and `by` so many in each of a few
    groups of the column `by`. With `per`, all of them are in one block. Nobody has more rows than that: otherwise only
    so many of theirs are protected.
    """
    return Unit(None, neighbors, per, times=times, groups=groups, by=by)


def few_rows(unit: Unit) -> str:
    """A unit of rows in words.

    >>> few_rows(row(times=3, groups=2, by="region"))
    'up to 3 rows in each of up to 2 groups of region'
    """
    if unit.most_rows == 1:
        return "one row"
    rows = "up to one row" if unit.times == 1 else f"up to {unit.times:,} rows"
    of = "" if unit.groups is None else f" in each of up to {unit.groups:,} groups of {unit.by}"
    of = f" in one group of {unit.by}" if unit.groups == 1 else of
    return f"{rows}{of}" if unit.per is None else f"{rows}{of}, all in one {unit.per}"


MOST_ROWS = 2**31
"""A unit of more rows would need sums that are not exact, and noise that hides everything."""


def _few(number: int, name: str) -> int:
    """A number of rows or groups of one unit."""
    found = check_count(number, name)
    if found > MOST_ROWS:
        raise InvalidArgument(f"{name} must be a whole number of at most {MOST_ROWS:,}.", code="out-of-range")
    return found


def check_rows(unit: Unit | None, rows_per_person: int) -> int:
    """The most rows of one unit, as a whole number. A unit of several rows cannot have fewer: the sensitivity for one
    of them would protect one of them.
    """
    rows = check_count(rows_per_person, "rows_per_person")
    if isinstance(unit, Unit) and rows < unit.most_rows:
        raise InvalidArgument(
            f"The unit has up to {unit.most_rows:,} rows. Give rows_per_person={unit.most_rows}, or protect dp.row().",
            code="unit-several-rows",
        )
    return rows


def check_one_row(unit: Unit, what: str) -> None:
    """Refuse a unit of several rows where only the sensitivity for one row is known."""
    if unit.most_rows > 1:
        raise InvalidArgument(
            f"{what} protects one row or one person, and the ledger protects {unit!r}. Ask in SQL, or use a ledger "
            "that protects dp.row() and convert what it costs with dp.for_unit.",
            code="unit-several-rows",
        )


def check_whole_person(unit: Unit, what: str) -> None:
    """Refuse a unit that is one person in one block of time, where the blocks of rows are not known: all rows of a
    person would count as one unit, and without one block they would be another unit, not none.
    """
    if unit.per is not None and unit.column is not None:
        raise InvalidArgument(
            f"{what} does not know when its rows happened, and the ledger protects one person in one {unit.per}. Use a "
            "policy with [tables.visits.time] and dp.connect, or a ledger that protects a person.",
            code="unit-needs-time",
        )
