"""The names that a query can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.engines.duckdb.dialect import quote_text
from discreet.sql.expressions import Expr, Field
from discreet.sql.pricing.relation import Relation
from discreet.sql.reading.parse import Text, span_of
from discreet.sql.reading.suggested import did_you_mean
from discreet.sql.reading.translate import Translator

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)
_STANDS_FOR = "stands for"
"""The entry in the meta data of a node with the field that it stands for. A comment can only set text there."""


@dataclass(frozen=True)
class Scope:
    """The names that a query can see: relations by alias, each with its fields by name."""

    sql: Text
    relation: Relation
    names: Mapping[str, Mapping[str, Field]]

    def lookup(self, node: exp.Column) -> Field:
        """The field that a column name refers to, or that replaces a query."""
        if (replacing := stood_for(node)) is not None:
            return replacing
        wanted, table = node.name.lower(), node.table.lower()
        if table and table not in self.names:
            what = f"Unknown table {node.table}. Known here: {', '.join(self.names)}."
            self.sql.unknown(node, what, code="sql-unknown-table")
        places = [self.names[table]] if table else list(self.names.values())
        found = list({names[wanted].id: names[wanted] for names in places if wanted in names}.values())
        if len(found) > 1:
            what = f"{len(found)} tables have a column {node.name}. Write table.{node.name}."
            self.sql.unknown(node, what, code="sql-ambiguous-column")
        if not found:
            known = sorted(field.name for names in places for field in names.values())
            meant = did_you_mean(node.name, known) or self._as_text(node)
            what = f"Unknown column {node.name}. {meant}Known: {', '.join(known)}."
            self.sql.unknown(node, what, code="sql-unknown-column")
        return found[0]

    def _as_text(self, node: exp.Column) -> str:
        """How to write a name as text, if it stands alone on one side of a comparison with a column."""
        compared = node.parent
        if not isinstance(compared, _COMPARISONS) or node.table:
            return ""
        other = compared.expression if compared.this is node else compared.this
        if not self.has(other):
            return ""
        return f"Text is in single quotes: {quote_text(node.name)}. "

    def knows(self, name: str) -> bool:
        """Whether some table has a column with this name."""
        return any(name.lower() in names for names in self.names.values())

    def has(self, node: exp.Expression) -> bool:
        """Whether a node is a column of these tables."""
        if not isinstance(node, exp.Column):
            return False
        places = self.names.values() if not node.table else [self.names.get(node.table.lower(), {})]
        return any(node.name.lower() in names for names in places)

    @property
    def translate(self) -> Translator:
        """Translate an expression over the visible names."""
        return Translator(self.sql, self.lookup)

    def condition(self, node: exp.Expression) -> Expr:
        """A condition over the visible names."""
        condition = self.translate(node)
        if condition.type != "boolean":
            what = "A condition must be true or false, such as age >= 18."
            self.sql.unknown(node, what, code="sql-not-a-condition")
        return condition


def stands_for(node: Any, known: Field) -> exp.Column:
    """A column that replaces a part of the question."""
    column, span = exp.column(known.id), span_of(node)
    column.meta[_STANDS_FOR] = known
    if span is not None:
        column.this.meta.update(start=span[0], end=span[1])
    return column


def stood_for(node: exp.Column) -> Field | None:
    """The field that a column stands for. None if it was written by the user."""
    known = node.meta.get(_STANDS_FOR)
    return known if isinstance(known, Field) else None
