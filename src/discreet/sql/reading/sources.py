"""FROM, JOIN and WHERE: tables, subqueries and CTEs become relations. Every name is resolved and every clause
is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from discreet.sql.expressions import Const, Expr, Field, Range, Ref, conjuncts
from discreet.sql.pricing.relation import (
    Both,
    Join,
    Names,
    PerPerson,
    Project,
    Relation,
    Where,
    parts_of,
    rows_of_person,
)
from discreet.sql.reading.domains import Work, domain_of, restrict_values
from discreet.sql.reading.joins import Joins
from discreet.sql.reading.parse import Text, unread_arguments, without_alias
from discreet.sql.reading.ranges import range_of
from discreet.sql.reading.scope import Scope
from discreet.sql.schema import Schema, Type

_INSIDE = {"expressions", "from_", "joins", "where", "with_", "group"}
"""The clauses of a query in FROM: it hands on rows, or combines those of one person, and chooses none."""
_PER_PERSON: dict[type, str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}


class Sources:
    """Reads FROM clauses against a schema."""

    def __init__(self, sql: Text, schema: Schema) -> None:
        self.sql, self.schema = sql, schema
        self.names, self.joins = Names(schema), Joins(sql, schema)
        self.work = Work()

    def scope(self, query: exp.Select, ctes: Mapping[str, exp.Expression]) -> Scope:
        """The names that the SELECT list of a query sees, after WHERE is applied."""
        ctes = {**ctes, **self._ctes(query)}
        first = query.args.get("from_")
        if first is None:
            self.sql.refuse(query, "A query needs a table.", "Write SELECT COUNT(*) FROM visits.", code="sql-no-table")
        where = query.args.get("where")
        scope = self._source(first.this, ctes)
        left = [(join, self._source(join.this, ctes)) for join in query.args.get("joins") or []]
        while left:
            place = next((n for n, (join, right) in enumerate(left) if self.joins.linked(scope, right, join, where)), 0)
            scope = self.joins.joined(scope, *left.pop(place), where)
        if where is None:
            return scope
        return Scope(self.sql, Where(scope.relation, scope.condition(where.this)), scope.names)

    def _ctes(self, query: exp.Select) -> dict[str, exp.Expression]:
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
                return self._named(self._renamed(self._rows(cte.this, outer), cte), node)
            table = next((t for t in self.schema.tables.values() if t.name.lower() == name), None)
            if table is None:
                known = ", ".join(sorted(self.schema.tables))
                self.sql.unknown(node, f"Unknown table {node.name}. Known: {known}.", code="sql-unknown-table")
            return self._named(self.names.scan(table), node)
        if plain and isinstance(node, exp.Subquery):
            return self._named(self._rows(node.this, ctes), node)
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
        return self._project(relation, columns)

    def _project(self, source: Relation, columns: Sequence[tuple[Field, Expr]]) -> Project:
        """Columns of a relation. Each row still belongs to the same person."""
        owner = source.person
        shown = [field for field, expr in columns if isinstance(expr, Ref) and expr.field == owner]
        person = None if owner is None else shown[0] if shown else self.names.fresh("", owner)
        return Project(source, tuple(columns), person)

    def _rows(self, node: exp.Expression, ctes: Mapping[str, exp.Expression]) -> Relation:
        if isinstance(node, exp.Subquery) and not unread_arguments(node, "this"):
            return self._rows(node.this, ctes)
        if isinstance(node, exp.Union):
            return self._union(node, ctes)
        if not isinstance(node, exp.Select):
            what = "Only SELECT and UNION ALL are supported in FROM."
            self.sql.refuse(node, what, "Write SELECT … FROM ….", code="sql-union")
        self._check_clauses(node)
        scope = self.scope(node, ctes)
        if node.args.get("group"):
            return self._per_person(scope, node)
        columns: list[tuple[Field, Expr]] = []
        for item in node.expressions:
            columns += self._columns(scope, item)
        self._check_names(node, [field for field, _ in columns])
        return self._project(
            scope.relation, [(_restrict(field, expr, scope.relation, self.work), expr) for field, expr in columns]
        )

    def _check_names(self, node: exp.Expression, fields: list[Field]) -> None:
        if len({field.name.lower() for field in fields}) < len(fields):
            what = "Two columns of a query in FROM have the same name. Rename one with AS."
            self.sql.unknown(node, what, code="sql-same-name")

    # --- one row for each person ----------------------------------------------------------------------------

    def _per_person(self, scope: Scope, node: exp.Select) -> Relation:
        """GROUP BY in FROM, by the person or by a key that leads to one: each result row comes from the rows of one
        person.
        """
        relation = scope.relation
        group = node.args["group"]
        keys = [(item, scope.translate(item)) for item in map(partial(self._at, node), group.expressions)]
        led = [self.schema.leads(e.field.origin) if isinstance(e, Ref) else None for _, e in keys]
        if relation.person is None or not any(led) or unread_arguments(group, "expressions"):
            self.sql.refuse(
                group,
                "Inside a query in FROM, GROUP BY is supported by the person only: other groups mix people.",
                "Group by the person's column there, or put GROUP BY into the outermost query.",
                code="sql-inner-group",
            )
        shown: list[tuple[Field, str, Expr]] = []
        for item in node.expressions:
            inner = without_alias(item)
            shown.append(self._of_person(scope, relation, item.alias_or_name or item.sql(), inner, keys))
        self._check_names(node, [field for field, _, _ in shown])
        owner = [f for f, word, e in shown if word == "key" and isinstance(e, Ref) and e.field == relation.person]
        person = owner[0] if owner else self.names.fresh("", relation.person)
        outer = any(isinstance(part, Join) and part.kind == "left" for part in parts_of(relation))
        once = all(one == "person" for one in led) and not outer  # an outer join also has rows that belong to nobody
        return PerPerson(relation, tuple(expr for _, expr in keys), tuple(shown), person, once)

    def _at(self, query: exp.Select, item: exp.Expression) -> exp.Expression:
        """What an item of GROUP BY refers to: itself, or the column at its number."""
        place = self.sql.numbered(item, "GROUP BY", len(query.expressions))
        return item if place is None else without_alias(query.expressions[place])

    def _of_person(
        self, scope: Scope, relation: Relation, name: str, node: exp.Expression, keys: list[tuple[exp.Expression, Expr]]
    ) -> tuple[Field, str, Expr]:
        """A column of the result: a key, or an aggregate of the person's rows, with the range that follows from the
        bounds.
        """
        if any(node == item for item, _ in keys):
            expr = scope.translate(node)
            return self.names.fresh(name, expr.field if isinstance(expr, Ref) else _like(expr, self.work)), "key", expr
        rows = rows_of_person(relation)
        if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
            return self.names.fresh(name, _counted(rows)), "count", Const(1, "integer")
        word = _PER_PERSON.get(type(node))
        if word is None or isinstance(node.this, exp.Distinct | exp.Star) or not isinstance(node.this, exp.Expression):
            self.sql.refuse(
                node,
                "A query in FROM that groups by the person can select the keys and COUNT, SUM, AVG, MIN and MAX only.",
                "Compute with them in the query around it.",
                code="sql-inner-aggregate",
            )
        value = scope.translate(node.this)
        known = replace(value.field, origin=None) if isinstance(value, Ref) else _like(value, self.work)
        if word == "count":
            known = _counted(rows)
        elif word in ("sum", "avg"):
            if value.type not in ("integer", "number", "boolean"):
                what = f"{node.this.sql()} is not a number. Cast it to DOUBLE."
                self.sql.unknown(node, what, code="sql-not-a-number")
            within = range_of(value)
            if word == "sum" and within is not None:
                within = None if rows is None else (rows * min(within[0], 0), rows * max(within[1], 0))
            kind: Type = "number" if "number" in (value.type, {"avg": "number"}.get(word)) else "integer"
            known = Field("", "", kind, within if _may_have_range(within) else None, found=known.found)
        return self.names.fresh(name, known), word, value

    def _union(self, node: exp.Union, ctes: Mapping[str, exp.Expression]) -> Relation:
        """The rows of both sides. Columns match by position and have the names of the first side."""
        if unread_arguments(node, "this", "expression"):
            what = "Only a plain UNION ALL is supported."
            self.sql.refuse(node, what, "Write SELECT … UNION ALL SELECT ….", code="sql-union")
        left, right = self._rows(node.this, ctes), self._rows(node.expression, ctes)
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

    def _check_clauses(self, node: exp.Select) -> None:
        for name in sorted(unread_arguments(node, *_INSIDE, "kind", "hint")):
            clause, value = name.strip("_").upper(), node.args[name]
            self.sql.refuse(
                value if isinstance(value, exp.Expression) else node,
                f"{clause} inside a query in FROM is not supported: what it keeps depends on other people's rows.",
                "Put it into the outermost query.",
                code="sql-inner-clause",
            )

    def _columns(self, scope: Scope, item: exp.Expression) -> list[tuple[Field, Expr]]:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            fields = {field.id: field for names in scope.names.values() for field in names.values()}
            return [(self.names.fresh(field.name, field), Ref(field)) for field in fields.values()]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and not any(item.this.args.values()):
            if item.table.lower() not in scope.names:
                what = f"Unknown table {item.table}. Known here: {', '.join(scope.names)}."
                self.sql.unknown(item, what, code="sql-unknown-table")
            return [(self.names.fresh(f.name, f), Ref(f)) for f in scope.names[item.table.lower()].values()]
        expr = scope.translate(without_alias(item))
        name = item.alias_or_name or item.sql()
        known = expr.field if isinstance(expr, Ref) else _like(expr, self.work)
        return [(self.names.fresh(name, known), expr)]


def _counted(rows: int | None) -> Field:
    """The number of one person's rows, with its range if a bound is declared."""
    return Field("", "", "integer", None if rows is None else (0, rows))


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


def _like(expr: Expr, work: Work) -> Field:
    """What is known about the values of an expression, as a field."""
    found = range_of(expr) if expr.type in ("integer", "number") else None
    first = frozenset(origin for field in expr.fields() for origin in field.found)
    return Field("", "", expr.type, found if _may_have_range(found) else None, domain_of(expr, (), work), found=first)


def _may_have_range(within: Range | None) -> bool:
    """Whether a range can be declared."""
    return within is not None and within[0] < within[1] and all(abs(end) <= 1e15 for end in within)
