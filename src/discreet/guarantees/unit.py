"""Who is protected, which determines the databases that are neighbors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from discreet.errors import InvalidArgument

Relation = Literal["add_or_remove", "replace"]
RELATIONS: tuple[Relation, ...] = ("add_or_remove", "replace")
Block = Literal["day", "week", "month", "quarter", "year"]
BLOCKS: tuple[Block, ...] = ("day", "week", "month", "quarter", "year")
"""Blocks of time: each day is in one of each kind."""


@dataclass(frozen=True)
class Unit:
    """What a release hides: all rows of a person, those of one block of time, or one row.

    Neighbors differ in one unit, by `add_or_remove` (the default) or by `replace`. With `replace`, the number of units
    is public. With `per`, a unit is what one person has in one block of time, such as a month,
    or a row, which is in one block. With `lives_in`, the
    rows of a person count only where this column has the one value that is the person's.

    >>> person("patient_id")
    person('patient_id')
    >>> person("patient_id", per="month").lives_in_one
    'month'
    >>> row(neighbors="replace")
    row(neighbors='replace')
    """

    column: str | None = None
    neighbors: Relation = "add_or_remove"
    per: Block | None = field(default=None, metadata={"later": True})
    lives_in: str | None = field(default=None, metadata={"later": True})

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

    def __repr__(self) -> str:
        parts = [] if self.column is None else [repr(self.column)]
        if self.neighbors != "add_or_remove":
            parts.append(f"neighbors={self.neighbors!r}")
        parts += [f"{name}={value!r}" for name in ("per", "lives_in") if (value := getattr(self, name)) is not None]
        return f"{'row' if self.column is None else 'person'}({', '.join(parts)})"

    @property
    def lives_in_one(self) -> str | None:
        """What divides the data so that each unit is in one part: a block of time, or a column. None if nothing does,
        and what touches one part may then touch everybody.
        """
        return self.per or self.lives_in

    def same_kind(self, other: Unit) -> bool:
        """Whether both protect the same rows of the same column, for any relation. A row is the same in any block."""
        return self.column == other.column and (self.column is None or self.per == other.per)


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


def row(*, neighbors: Relation = "add_or_remove", per: Block | None = None) -> Unit:
    """Protect single rows. Use it only if each person has one row. With `per`, each block of time has its own budget,
    because a row is in one of them.
    """
    return Unit(None, neighbors, per)


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
