"""What the catalog is made from: the declared tables, their columns with the types of PostgreSQL, and comments.

The only input is what the vault's verb `tables` returns. It is public, and does not depend on rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from discreet.gateway.wire.format.values import TYPES

SHOWN = 20
"""At most so many choices of a column are named in its comment."""


class ColumnType(NamedTuple):
    """A type of a declared column: its name in TYPES, and as PostgreSQL writes it."""

    name: str
    sql: str

    @property
    def oid(self) -> int:
        """Its number in `pg_type`."""
        return TYPES[self.name].oid


COLUMN_TYPES = {
    "integer": ColumnType("int8", "bigint"),
    "number": ColumnType("float8", "double precision"),
    "text": ColumnType("text", "text"),
    "boolean": ColumnType("bool", "boolean"),
    "date": ColumnType("date", "date"),
    "timestamp": ColumnType("timestamp", "timestamp without time zone"),
    "other": ColumnType("text", "text"),
}
"""The types of PostgreSQL for the types that a policy declares."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A column of a declared table."""

    name: str
    type: ColumnType
    comment: str | None


@dataclass(frozen=True)
class DeclaredTable:
    """A declared table."""

    name: str
    columns: tuple[DeclaredColumn, ...]
    comment: str


def read_tables(tables: Mapping[str, Any]) -> tuple[DeclaredTable, ...]:
    """The declared tables of an answer to the verb `tables`."""
    return tuple(map(_read_table, tables["tables"]))


def _read_table(table: Mapping[str, Any]) -> DeclaredTable:
    columns = tuple(
        DeclaredColumn(column["name"], COLUMN_TYPES[column["type"]], "; ".join(_said_of(column)) or None)
        for column in table["columns"]
    )
    return DeclaredTable(table["name"], columns, _protection_of(table))


def _protection_of(table: Mapping[str, Any]) -> str:
    """Who is protected in a table, and how much of one person an answer uses."""
    if table.get("protects") is None:
        return "public"
    path = f", through {table['through']}" if table.get("through") else ""
    counts = ((table.get("rows_per_person"), "rows"), (table.get("groups_per_person"), "groups"))
    bounds = [f"{count} {what}" for count, what in counts if isinstance(count, int)]
    most = f"; an answer uses at most {' and '.join(bounds)} of one person" if bounds else ""
    return f"protects {table['protects']}{path}{most}"


def _said_of(column: Mapping[str, Any]) -> Iterator[str]:
    """What is declared about the values of a column."""
    if column.get("identifies_people"):
        yield "identifies people"
    between = column.get("between")
    if isinstance(between, list | tuple):
        yield "between " + " and ".join(map(str, between))
    elif between is not None:
        yield "a range that is found privately"
    choices = column.get("choices")
    if choices is not None:
        more = f", … ({len(choices):,} choices)" if len(choices) > SHOWN else ""
        yield "one of " + ", ".join(map(str, choices[:SHOWN])) + more
    if column.get("other") is not None:
        yield f"others in the group {column['other']}"
