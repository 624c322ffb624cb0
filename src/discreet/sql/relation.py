"""Relations whose every row belongs to one person, or to nobody: what FROM and WHERE make of the tables.

A row of a private relation is made from the rows of one person and from public rows only. So whatever one person adds
or takes away, the rows of all others stay as they are, and it is enough to bound each person's rows at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from discreet.guarantees.unit import Unit
from discreet.sql.expressions import Expr, Field
from discreet.sql.schema import Table


class Relation:
    """Rows with fields. `person` is the field that says whose a row is; None for public rows and the unit `row()`."""

    fields: tuple[Field, ...]
    person: Field | None
    public: bool

    def tables(self) -> Iterable[Table]:
        """The tables it is made from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Scan(Relation):
    """A table as it is."""

    table: Table
    fields: tuple[Field, ...]
    person: Field | None

    @property
    def public(self) -> bool:  # type: ignore[override]
        return self.table.public

    def tables(self) -> Iterable[Table]:
        return (self.table,)


@dataclass(frozen=True)
class Filter(Relation):
    """The rows for which a condition holds."""

    source: Relation
    condition: Expr

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.source.fields

    @property
    def person(self) -> Field | None:  # type: ignore[override]
        return self.source.person

    @property
    def public(self) -> bool:  # type: ignore[override]
        return self.source.public

    def tables(self) -> Iterable[Table]:
        return self.source.tables()


@dataclass(frozen=True)
class Project(Relation):
    """Each row's expressions under new names, and its person."""

    source: Relation
    columns: tuple[tuple[Field, Expr], ...]
    person: Field | None

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(field for field, _ in self.columns)

    @property
    def public(self) -> bool:  # type: ignore[override]
        return self.source.public

    def tables(self) -> Iterable[Table]:
        return self.source.tables()


@dataclass(frozen=True)
class Join(Relation):
    """Pairs of rows that meet `condition`; a left join keeps the left rows that meet none."""

    left: Relation
    right: Relation
    condition: Expr
    kind: Literal["inner", "left"]
    person: Field | None

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.left.fields, *self.right.fields)

    @property
    def public(self) -> bool:  # type: ignore[override]
        return self.left.public and self.right.public

    def tables(self) -> Iterable[Table]:
        return (*self.left.tables(), *self.right.tables())


class Names:
    """Names for fields, each given once in a question: the same question is always printed the same."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def fresh(self, name: str, like: Field) -> Field:
        """A field of its own, with the values of another."""
        return Field(f"c{next(self._numbers)}", name, like.type, like.between, like.choices)

    def scan(self, table: Table, unit: Unit) -> Scan:
        """A table, its fields named apart from those of every other use of it."""
        fields = tuple(
            Field(f"c{next(self._numbers)}", column.name, column.type, column.between, column.choices)
            for column in table.columns.values()
        )
        person = None if unit.column is None or table.public else table.person
        return Scan(table, fields, next((field for field in fields if field.name == person), None))
