"""What may be asked of a database: its tables and columns, what is declared about them, and who is protected.

All of it is public. No row, and no place where rows are stored, is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet import html
from discreet.errors import QueryError
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger
from discreet.sql.running.explanation import describe_unit
from discreet.sql.running.notes import number_of
from discreet.sql.schema import Column, Schema, Table, is_auto

_TABLES = re.compile(r"\s*(?:show\s+(?:all\s+)?tables|show|describe)\s*;?\s*", re.IGNORECASE)
_TABLE = re.compile(
    r"\s*(?:describe|desc|show\s+columns\s+(?:from|in)|show)\s+(?:table\s+)?(?:\"([^\"]+)\"|(\w+))\s*;?\s*",
    re.IGNORECASE,
)
_SHOWN = 5
"""So many choices of a column are printed."""


@dataclass(frozen=True, kw_only=True)
class ColumnDescription:
    """A column: its type, and the range or the choices that are declared. A range of "auto" is found privately."""

    name: str
    type: str
    between: Any = None
    choices: tuple[Any, ...] | None = None
    other: Any = None
    identifies_people: bool = False

    @property
    def values(self) -> str:
        """What is known about its values, in words."""
        said = ["identifies people"] if self.identifies_people else []
        if self.between is not None:
            said.append("a range that is found" if is_auto(self.between) else " to ".join(map(str, self.between)))
        if self.choices is not None:
            more = f", … ({len(self.choices):,} choices)" if len(self.choices) > _SHOWN else ""
            said.append(", ".join(map(str, self.choices[:_SHOWN])) + more)
        if self.other is not None:
            said.append(f"others in the group {self.other}")
        return "; ".join(said)


@dataclass(frozen=True, kw_only=True, repr=False)
class TableDescription:
    """A table: its columns, who is protected in it (None in a public table), and how much of one person an answer uses
    at most. Without a declared bound, this is found privately for each question.
    """

    name: str
    protects: Unit | None
    columns: Mapping[str, ColumnDescription]
    through: str | None = None
    rows_per_person: int | None = None
    groups_per_person: int | str | None = None
    rows_per_group: int | None = None

    def __str__(self) -> str:
        rows = [(column.name, column.type, column.values) for column in self.columns.values()]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join([f"{self.name}: {self._protected()}", *(f"  {line}".rstrip() for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(column.name, column.type, column.values) for column in self.columns.values()]
        return html.table(["column", "type", "values"], rows, title=f"{self.name}: {self._protected()}")

    def as_json(self) -> dict[str, Any]:
        """The table as plain values, for another program."""
        return {
            "name": self.name,
            "protects": None if self.protects is None else repr(self.protects),
            "through": self.through,
            "rows_per_person": self.rows_per_person,
            "groups_per_person": self.groups_per_person,
            "rows_per_group": self.rows_per_group,
            "columns": [vars(column) for column in self.columns.values()],
        }

    def _protected(self) -> str:
        if self.protects is None:
            return "public"
        path = "" if self.through is None else f", through {self.through}"
        bounds = [
            number_of(bound, what)
            for bound, what in ((self.rows_per_person, "row"), (self.groups_per_person, "group"))
            if isinstance(bound, int)
        ]
        most = f"; an answer uses at most {' and '.join(bounds)} of one person" if bounds else ""
        return f"protects {describe_unit(self.protects)}{path}{most}"


@dataclass(frozen=True, repr=False)
class Tables(Mapping[str, TableDescription]):
    """The tables of a database by name. It prints as a list of all columns, with what remains of the budget."""

    _tables: dict[str, TableDescription] = field(default_factory=dict)
    remains: str = ""

    def __getitem__(self, name: str) -> TableDescription:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __str__(self) -> str:
        left = [f"budget: {self.remains}"] if self.remains else []
        return "\n\n".join([*map(str, self._tables.values()), *left])

    __repr__ = __str__

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values, for another program."""
        return {"remains": self.remains, "tables": [table.as_json() for table in self._tables.values()]}

    def _repr_html_(self) -> str:
        left = html.note(f"budget: {self.remains}") if self.remains else ""
        return "".join(table._repr_html_() for table in self._tables.values()) + left


def asks_for_tables(text: Any) -> bool:
    """Whether a text asks what may be asked: SHOW TABLES, DESCRIBE visits. That is public, and costs nothing."""
    return isinstance(text, str) and bool(_TABLES.fullmatch(text) or _TABLE.fullmatch(text))


def shown_tables(text: str, tables: Tables) -> Tables | TableDescription:
    """What such a text asks for."""
    found = None if _TABLES.fullmatch(text) else _TABLE.fullmatch(text)
    if found is None:
        return tables
    name = found[1] or found[2]
    for table in tables.values():
        if table.name.lower() == name.lower():
            return table
    raise QueryError(f"Unknown table {name}. Known: {', '.join(tables)}.", code="sql-unknown-table")


def describe_tables(schema: Schema, ledger: Ledger) -> Tables:
    """What is public about all tables of a schema, and what remains of their budget."""
    described = {name: _table(table, schema.unit) for name, table in schema.tables.items()}
    return Tables(described, f"{ledger.remaining or 'nothing'} of {ledger.limit} remains")


def _table(table: Table, unit: Unit) -> TableDescription:
    return TableDescription(
        name=table.name,
        protects=None if table.public else unit,
        columns={column.name: _column(column, table) for column in table.columns.values()},
        through=table.through,
        rows_per_person=table.rows_per_person,
        groups_per_person=table.groups_per_person,
        rows_per_group=table.rows_per_group,
    )


def _column(column: Column, table: Table) -> ColumnDescription:
    return ColumnDescription(
        name=column.name,
        type=column.type,
        between=column.between,
        choices=column.choices,
        other=column.other,
        identifies_people=column.name == table.person,
    )
