"""Which columns a part of a statement sees, and the values that its expressions become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from discreet.gateway.catalog.types import UNKNOWN, stored_as
from discreet.gateway.wire.format.values import Column, Refusal


class Value(NamedTuple):
    """An expression for DuckDB, and its type in PostgreSQL."""

    node: exp.Expr
    type: str = UNKNOWN


@dataclass(frozen=True)
class Source:
    """Something in FROM: its name, its columns, and the number of the relation if it is one."""

    name: str
    columns: tuple[Column, ...]
    oid: int | None = None
    schema: str | None = None


@dataclass
class Scope:
    """The sources that an expression sees, inner ones first. `ctes` are the names that WITH gives."""

    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    ctes: dict[str, Source] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)

    def find_cte(self, name: str) -> Source | None:
        """What WITH calls so."""
        found = self.ctes.get(name)
        return found if found or self.outer is None else self.outer.find_cte(name)

    def find(self, column: str, table: str | None = None, schema: str | None = None) -> tuple[Source, Column] | None:
        """The source and the column of a name. None if there is none here or outside."""
        found = []
        for source in self.sources:
            if table in (None, source.name) and (schema is None or schema == source.schema):
                found += [(source, one) for one in source.columns if one.name == column]
                if not found and column in _HIDDEN and source.oid is not None:
                    found.append((source, Column(column, _HIDDEN[column])))
        if len(found) > 1 and table is None and column not in self.joined:
            raise Refusal(f'column reference "{column}" is ambiguous', state="42702")
        if found:
            return found[0]
        return None if self.outer is None else self.outer.find(column, table, schema)

    def columns_of(self, table: str | None, schema: str | None = None) -> list[tuple[Source, Column]]:
        """All columns of a table, or of all of them."""
        chosen = [one for one in self.sources if table in (None, one.name) and schema in (None, one.schema)]
        if table is not None and not chosen:
            raise Refusal(f'missing FROM-clause entry for table "{table}"', state="42P01")
        taken: set[str] = set()
        found = []
        for source in chosen:
            for column in source.columns:
                if table is None and column.name in self.joined and column.name in taken:
                    continue
                taken.add(column.name)
                found.append((source, column))
        return found


_HIDDEN = {"tableoid": "oid", "xmin": "xid", "xmax": "xid", "cmin": "cid", "cmax": "cid"}
"""Columns that every table has, and `*` does not show."""


def hidden_value(source: Source, column: str) -> Value:
    """The value of a column that every table has."""
    kind = _HIDDEN[column]
    number = {"tableoid": source.oid or 0, "xmin": 1}.get(column, 0)
    return Value(cast(exp.Literal.number(number), kind), kind)


def identifier(name: str) -> exp.Identifier:
    """A name, quoted."""
    return exp.Identifier(this=name, quoted=True)


def name_of(node: exp.Expr | None) -> str | None:
    """An identifier as PostgreSQL reads it: lower case unless it is quoted."""
    if not isinstance(node, exp.Identifier):
        return None
    return node.name if node.quoted else node.name.lower()


def column(name: str, table: str | None = None) -> exp.Column:
    """A column of a source."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of a function of DuckDB."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def text(value: str) -> exp.Literal:
    """A text."""
    return exp.Literal.string(value)


def number(value: int) -> exp.Expr:
    """A whole number."""
    return exp.Literal.number(value)


def cast(node: exp.Expr, kind: str) -> exp.Expr:
    """A value as DuckDB stores a type."""
    return exp.Cast(this=node, to=exp.DataType.from_str(stored_as(kind), dialect="duckdb"))


def null(kind: str) -> Value:
    """No value of a type."""
    return Value(cast(exp.Null(), kind), kind)


def refuse(what: str, state: str = "0A000") -> Refusal:
    """The error for something that the catalog does not know."""
    hint = "The catalog answers what clients ask of PostgreSQL's own relations." if state == "0A000" else None
    return Refusal(f"{what} is not supported here", state=state, hint=hint)


def check_parts(node: exp.Expr, allowed: Sequence[str]) -> None:
    """Refuse a node that has parts for which there is no rule."""
    more = [name for name, value in node.args.items() if value and name not in allowed]
    if more:
        raise refuse(f"{more[0].strip('_').upper().replace('_', ' ')} of {type(node).__name__.upper()}")
