"""FROM, JOIN and WHERE: tables, subqueries and CTEs become relations. Every name is resolved and every clause
is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from discreet.sql.expressions import Expr, Field, Ref, conjuncts
from discreet.sql.pricing.relation import (
    Both,
    Names,
    Project,
    Relation,
    Where,
)
from discreet.sql.reading.grouped import Grouped
from discreet.sql.reading.joins import Joins
from discreet.sql.reading.parse import Text, unread_arguments, without_alias
from discreet.sql.reading.scope import Scope
from discreet.sql.reading.subqueries import Subqueries, parts_of_condition
from discreet.sql.reading.suggested import did_you_mean
from discreet.sql.reading.values.domains import Work, domain_of, like, restrict_values
from discreet.sql.reading.windows import Windows
from discreet.sql.schema import Schema

_INSIDE = {"expressions", "from_", "joins", "where", "with_", "group", "distinct"}
"""The clauses of a query in FROM: it hands on rows, or combines those of one person, and chooses none."""


class Sources:
    """Reads FROM clauses against a schema."""

    def __init__(self, sql: Text, schema: Schema) -> None:
        self.sql, self.schema = sql, schema
        self.names, self.work = Names(schema), Work()
        self.joins = Joins(sql, schema, self.names, self.work)
        self.subqueries, self.grouped, self.windows = Subqueries(self), Grouped(self), Windows(self)

    def scope(self, query: exp.Select, ctes: Mapping[str, exp.Expression]) -> Scope:
        """The names that the SELECT list of a query sees, after WHERE is applied."""
        ctes = {**ctes, **self.ctes_of(query)}
        scope, where = self.joined(query, ctes), query.args.get("where")
        return scope if where is None else self.subqueries.filtered(scope, parts_of_condition(where.this), ctes)

    def joined(self, query: exp.Select, ctes: Mapping[str, exp.Expression]) -> Scope:
        """The names that the WHERE clause of a query sees."""
        first = query.args.get("from_")
        if first is None:
            self.sql.refuse(query, "A query needs a table.", "Write SELECT COUNT(*) FROM visits.", code="sql-no-table")
        where = query.args.get("where")
        scope = self._source(first.this, ctes)
        left = [(join, self._source(join.this, ctes)) for join in query.args.get("joins") or []]
        while left:
            place = next((n for n, (join, right) in enumerate(left) if self.joins.linked(scope, right, join, where)), 0)
            scope = self.joins.joined(scope, *left.pop(place), where)
        return scope

    def ctes_of(self, query: exp.Select) -> dict[str, exp.Expression]:
        """The queries in WITH, by name."""
        clause = query.args.get("with_")
        if clause is None:
            return {}
        if clause.args.get("recursive"):
            self.sql.refuse(
                clause,
                "WITH RECURSIVE is not supported.",
                "Write each step as a query in FROM.",
                code="sql-recursive",
            )
        found: dict[str, exp.Expression] = {}
        for cte in clause.expressions:
            found[cte.args["alias"].name.lower()] = cte
        return found

    def _source(self, node: exp.Expression, ctes: Mapping[str, exp.Expression]) -> Scope:
        plain = not unread_arguments(node, "this", "alias")
        if plain and isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            if name in ctes:
                outer = {other: query for other, query in ctes.items() if other != name}
                cte = ctes[name]
                return self._named(self._renamed(self.rows_in(cte.this, outer), cte), node)
            table = next((t for t in self.schema.tables.values() if t.name.lower() == name), None)
            if table is None:
                known = sorted(self.schema.tables)
                what = f"Unknown table {node.name}. {did_you_mean(node.name, known)}Known: {', '.join(known)}."
                self.sql.unknown(node, what, code="sql-unknown-table")
            return self._named(self.names.scan(table), node)
        if plain and isinstance(node, exp.Subquery):
            return self._named(self.rows_in(node.this, ctes), node)
        self.sql.refuse(
            node, "This source is not supported.", "Name a table, or write a query in FROM.", code="sql-source"
        )

    def _named(self, relation: Relation, node: exp.Expression) -> Scope:
        """A relation under its alias."""
        shown = self._renamed(relation, node)
        fields = {field.name.lower(): field for field in shown.fields}
        return Scope(self.sql, shown, {(node.alias or node.name).lower(): fields})

    def _renamed(self, relation: Relation, node: exp.Expression) -> Relation:
        """A relation with the column names listed after its alias: AS u (city, n)."""
        alias = node.args.get("alias")
        listed = [] if alias is None else [column.name for column in alias.args.get("columns") or []]
        if not listed:
            return relation
        if len(listed) != len(relation.fields) or len({name.lower() for name in listed}) < len(listed):
            what = f"This has {len(relation.fields)} columns. List one name for each, all different."
            self.sql.unknown(node, what, code="sql-column-names")
        columns = [(self.names.fresh(name, f), Ref(f)) for name, f in zip(listed, relation.fields, strict=True)]
        return self.project(relation, columns)

    def project(self, source: Relation, columns: Sequence[tuple[Field, Expr]]) -> Project:
        """Columns of a relation. Each row still belongs to the same person."""
        owner = source.person
        shown = [field for field, expr in columns if isinstance(expr, Ref) and expr.field == owner]
        person = None if owner is None else shown[0] if shown else self.names.fresh("", owner)
        return Project(source, tuple(columns), person)

    def rows_in(self, node: exp.Expression, ctes: Mapping[str, exp.Expression]) -> Relation:
        """The rows of a query in FROM."""
        if isinstance(node, exp.Subquery) and not unread_arguments(node, "this"):
            return self.rows_in(node.this, ctes)
        if isinstance(node, exp.Union):
            return self._union(node, ctes)
        if not isinstance(node, exp.Select):
            what = "Only SELECT and UNION ALL are supported in FROM."
            self.sql.refuse(node, what, "Write SELECT … FROM ….", code="sql-union")
        self.check_clauses(node)
        scope = self.scope(node, ctes)
        if node.args.get("group"):
            found = self.grouped.rows(scope, node)
            return self.grouped.distinct(found, node) if node.args.get("distinct") else found
        scope, items = self.subqueries.placed(scope, node.expressions, {**ctes, **self.ctes_of(node)})
        scope, items = self.windows.placed(scope, node, items)
        columns: list[tuple[Field, Expr]] = []
        for item in items:
            columns += self.columns_of(scope, item)
        self.windows.check_columns(scope, node, columns)
        self.check_names(node, [field for field, _ in columns])
        shown = self.project(
            scope.relation, [(_restrict(f, expr, scope.relation, self.work), expr) for f, expr in columns]
        )
        return self.grouped.distinct(shown, node) if node.args.get("distinct") else shown

    def check_names(self, node: exp.Expression, fields: list[Field]) -> None:
        """Refuse two columns of one name."""
        if len({field.name.lower() for field in fields}) < len(fields):
            what = "Two columns of a query in FROM have the same name. Rename one with AS."
            self.sql.unknown(node, what, code="sql-same-name")

    def _union(self, node: exp.Union, ctes: Mapping[str, exp.Expression]) -> Relation:
        """The rows of both sides. Columns match by position and have the names of the first side."""
        if unread_arguments(node, "this", "expression"):
            what = "Only a plain UNION ALL is supported."
            self.sql.refuse(node, what, "Write SELECT … UNION ALL SELECT ….", code="sql-union")
        left, right = self.rows_in(node.this, ctes), self.rows_in(node.expression, ctes)
        if left.public != right.public:
            what = "A union of public and private rows is not supported."
            self.sql.refuse(node, what, "Ask about the private rows only.", code="sql-union-public")
        types = [[field.type for field in side.fields] for side in (left, right)]
        owned = [None if side.person is None else side.person.type for side in (left, right)]
        if types[0] != types[1] or owned[0] != owned[1]:
            self.sql.refuse(
                node,
                "Both sides of UNION ALL must have the same number of columns, of the same types.",
                "Cast them.",
                code="sql-union-columns",
            )
        fields = tuple(self._either(a, b) for a, b in zip(left.fields, right.fields, strict=True))
        if left.person is None or right.person is None:
            return Both(left, right, fields, None)
        places = zip(left.fields, right.fields, fields, strict=True)
        shown = [field for a, b, field in places if a == left.person and b == right.person]
        return Both(left, right, fields, shown[0] if shown else self.names.fresh("", left.person))

    def _either(self, first: Field, second: Field) -> Field:
        """A column of a union, with every value that either side can have."""
        choices = between = None
        if first.choices is not None and second.choices is not None:
            choices = tuple(dict.fromkeys((*first.choices, *second.choices)))
        if first.between is not None and second.between is not None:
            between = min(first.between[0], second.between[0]), max(first.between[1], second.between[1])
        origin = first.origin if first.origin == second.origin else None
        found = first.found | second.found
        other = first.other if first.other == second.other else None
        return self.names.fresh(first.name, Field("", "", first.type, between, choices, origin, None, found, other))

    def check_clauses(self, node: exp.Select) -> None:
        """Refuse the clauses that are not supported in FROM."""
        read = (*_INSIDE, *(["having"] if node.args.get("group") else ["qualify", "windows"]))
        for name in sorted(unread_arguments(node, *read, "kind", "hint")):
            clause, value = name.strip("_").upper(), node.args[name]
            self.sql.refuse(
                value if isinstance(value, exp.Expression) else node,
                f"{clause} inside a query in FROM is not supported: what it keeps depends on other people's rows.",
                "Put it into the outermost query.",
                code="sql-inner-clause",
            )

    def columns_of(self, scope: Scope, item: exp.Expression) -> list[tuple[Field, Expr]]:
        """The columns that an item of a SELECT list stands for."""
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star) and not unread_arguments(star, "except_"):
            return self._all_columns(scope, item.table if isinstance(item, exp.Column) else "", item, star)
        expr = scope.translate(without_alias(item))
        name = item.alias_or_name or item.sql()
        known = expr.field if isinstance(expr, Ref) else like(expr, self.work)
        return [(self.names.fresh(name, known), expr)]

    def _all_columns(self, scope: Scope, table: str, item: exp.Expression, star: exp.Star) -> list[tuple[Field, Expr]]:
        """The columns of all tables, or of one, without those that EXCLUDE lists."""
        if table and table.lower() not in scope.names:
            what = f"Unknown table {table}. Known here: {', '.join(scope.names)}."
            self.sql.unknown(item, what, code="sql-unknown-table")
        places = [scope.names[table.lower()]] if table else list(scope.names.values())
        fields = {field.id: (name, field) for names in places for name, field in names.items()}
        known = {name for name, _ in fields.values()}
        listed: list[Any] = star.args.get("except_") or []
        left_out = {one.name.lower(): one for one in listed}
        for name, one in left_out.items():
            if name not in known or (isinstance(one, exp.Column) and one.table):
                what = f"Unknown column {one.sql()}. Known: {', '.join(sorted(known))}."
                self.sql.unknown(one, what, code="sql-unknown-column")
        kept = [field for name, field in fields.values() if name not in left_out]
        return [(self.names.fresh(field.name, field), Ref(field)) for field in kept]


def _restrict(field: Field, expr: Expr, source: Relation, work: Work) -> Field:
    """A column, limited to the values that the WHERE clause of its query allows."""
    if not isinstance(source, Where):
        return field
    conditions = conjuncts(source.condition)
    domain, narrow = field.choices or domain_of(expr, (), work), domain_of(expr, conditions, work)
    if narrow is None:
        return field
    left = restrict_values(expr, narrow, conditions)
    return replace(field, choices=left) if domain is None or len(left) < len(domain) else field
