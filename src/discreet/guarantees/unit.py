"""Who is protected, which determines the databases that are neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from discreet.errors import InvalidArgument

Relation = Literal["add_or_remove", "replace"]
RELATIONS: tuple[Relation, ...] = ("add_or_remove", "replace")


@dataclass(frozen=True)
class Unit:
    """What a release hides: all rows of a person, or one row.

    Neighbors differ in one unit, by `add_or_remove` (the default) or by `replace`. With `replace`, the number of units
    is public.

    >>> person("patient_id")
    person('patient_id')
    >>> row(neighbors="replace")
    row(neighbors='replace')
    """

    column: str | None = None
    neighbors: Relation = "add_or_remove"

    def __post_init__(self) -> None:
        if self.neighbors not in RELATIONS:
            raise InvalidArgument("neighbors must be 'add_or_remove' or 'replace'.", code="not-an-option")
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise InvalidArgument(
                "person() needs the name of the column that identifies a person: person('patient_id').",
                code="wrong-type",
            )

    def __repr__(self) -> str:
        parts = [] if self.column is None else [repr(self.column)]
        if self.neighbors != "add_or_remove":
            parts.append(f"neighbors={self.neighbors!r}")
        return f"{'row' if self.column is None else 'person'}({', '.join(parts)})"

    def same_kind(self, other: Unit) -> bool:
        """Whether both protect the same column or rows, for any relation."""
        return self.column == other.column


def person(column: str, *, neighbors: Relation = "add_or_remove") -> Unit:
    """Protect everything that one person contributed. `column` identifies the person."""
    if not isinstance(column, str) or not column:
        raise InvalidArgument(
            "person() needs the name of the column that identifies a person: person('patient_id').", code="wrong-type"
        )
    return Unit(column, neighbors)


def row(*, neighbors: Relation = "add_or_remove") -> Unit:
    """Protect single rows. Use it only if each person has one row."""
    return Unit(None, neighbors)
