"""The names that a query can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from discreet.sql.expressions import Expr, Field
from discreet.sql.pricing.relation import Relation
from discreet.sql.reading.parse import Text
from discreet.sql.reading.translate import Translator


@dataclass(frozen=True)
class Scope:
    """The names that a query can see: relations by alias, each with its fields by name."""

    sql: Text
    relation: Relation
    names: Mapping[str, Mapping[str, Field]]

    def lookup(self, node: exp.Column) -> Field:
        """The field that a column's name stands for."""
        wanted, table = node.name.lower(), node.table.lower()
        if table and table not in self.names:
            self.sql.unknown(node, f"There is no table {node.table} here. Known: {', '.join(self.names)}.")
        places = [self.names[table]] if table else list(self.names.values())
        found = list({names[wanted].id: names[wanted] for names in places if wanted in names}.values())
        if len(found) > 1:
            self.sql.unknown(node, f"{node.name} could be of {len(found)} tables. Write table.{node.name}.")
        if not found:
            known = ", ".join(sorted(field.name for names in places for field in names.values()))
            self.sql.unknown(node, f"There is no column {node.name}. Known: {known}.")
        return found[0]

    def knows(self, name: str) -> bool:
        """Whether some table has a column of this name."""
        return any(name.lower() in names for names in self.names.values())

    def has(self, node: exp.Expression) -> bool:
        """Whether a node is a column of these tables."""
        if not isinstance(node, exp.Column):
            return False
        places = self.names.values() if not node.table else [self.names.get(node.table.lower(), {})]
        return any(node.name.lower() in names for names in places)

    @property
    def translate(self) -> Translator:
        """Translates expressions over what is seen."""
        return Translator(self.sql, self.lookup)

    def condition(self, node: exp.Expression) -> Expr:
        """A condition over what is seen."""
        condition = self.translate(node)
        if condition.type != "boolean":
            self.sql.unknown(node, "A condition must be true or false, such as age >= 18.")
        return condition
