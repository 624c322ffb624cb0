"""FROM, JOIN and WHERE: tables, queries in FROM and CTEs as relations; every name looked up, every clause read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.sql.expressions import Call, Expr, Field, Ref, call, domain_of, fits, range_of
from discreet.sql.parse import Text
from discreet.sql.relation import Filter, Join, Names, Project, Relation
from discreet.sql.schema import Schema
from discreet.sql.translate import Translator

_INSIDE = {"expressions", "from_", "joins", "where", "with_"}
"""The clauses of a query in FROM: it hands on rows, and chooses or combines none."""


@dataclass(frozen=True)
class Scope:
    """The names that a query can see: relations by alias, each with its fields by name."""

    words: Text
    relation: Relation
    names: Mapping[str, Mapping[str, Field]]

    def lookup(self, node: exp.Column) -> Field:
        """The field that a column's name stands for."""
        wanted, table = node.name.lower(), node.table.lower()
        if table and table not in self.names:
            self.words.unknown(node, f"There is no table {node.table} here. Known: {', '.join(self.names)}.")
        places = [self.names[table]] if table else list(self.names.values())
        found = list({names[wanted].id: names[wanted] for names in places if wanted in names}.values())
        if len(found) > 1:
            self.words.unknown(node, f"{node.name} could be of {len(found)} tables. Write table.{node.name}.")
        if not found:
            known = ", ".join(sorted(field.name for names in places for field in names.values()))
            self.words.unknown(node, f"There is no column {node.name}. Known: {known}.")
        return found[0]

    def knows(self, name: str) -> bool:
        """Whether some table has a column of this name."""
        return any(name.lower() in names for names in self.names.values())

    @property
    def translate(self) -> Translator:
        """Translates expressions over what is seen."""
        return Translator(self.words, self.lookup)


class Sources:
    """Reads FROM clauses against a schema."""

    def __init__(self, words: Text, schema: Schema) -> None:
        self.words, self.schema, self.names = words, schema, Names()

    def scope(self, query: exp.Select, ctes: Mapping[str, exp.Expression]) -> Scope:
        """What the SELECT list of a query sees, its WHERE applied."""
        ctes = {**ctes, **self._ctes(query)}
        first = query.args.get("from_")
        if first is None:
            self.words.refuse(query, "A question needs a table.", "Write SELECT COUNT(*) FROM visits.")
        scope = self._source(first.this, ctes)
        for join in query.args.get("joins") or []:
            scope = self._joined(scope, join, ctes)
        where = query.args.get("where")
        if where is None:
            return scope
        condition = self._condition(scope, where.this)
        return Scope(self.words, Filter(scope.relation, condition), scope.names)

    def _condition(self, scope: Scope, node: exp.Expression) -> Expr:
        condition = scope.translate(node)
        if condition.type != "boolean":
            self.words.unknown(node, "A condition must be true or false, such as age >= 18.")
        return condition

    def _ctes(self, query: exp.Select) -> dict[str, exp.Expression]:
        clause = query.args.get("with_")
        if clause is None:
            return {}
        if clause.args.get("recursive"):
            self.words.refuse(clause, "WITH RECURSIVE is not answered.", "Write the steps out as queries in FROM.")
        found: dict[str, exp.Expression] = {}
        for cte in clause.expressions:
            alias = cte.args["alias"]
            if alias.args.get("columns"):
                self.words.refuse(
                    cte, "A CTE with a list of columns is not answered.", "Name them with AS inside of it."
                )
            found[alias.name.lower()] = cte.this
        return found

    def _source(self, node: exp.Expression, ctes: Mapping[str, exp.Expression]) -> Scope:
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            self.words.refuse(node, "A list of columns after an alias is not answered.", "Name them with AS.")
        given = {name for name, value in node.args.items() if value} - {"this", "alias"}
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not given:
            name = node.name.lower()
            if name in ctes:
                outer = {other: query for other, query in ctes.items() if other != name}
                return self._query(ctes[name], node.alias or node.name, outer)
            table = next((t for t in self.schema.tables.values() if t.name.lower() == name), None)
            if table is None:
                known = ", ".join(sorted(self.schema.tables))
                self.words.unknown(node, f"There is no table {node.name}. Known: {known}.")
            if self.schema.unit.column is not None and not table.public and table.person is None:
                self.words.refuse(node, f"{table.name} leads to the person through a key.", "That comes later.")
            relation = self.names.scan(table, self.schema.unit)
            return self._named(relation, node.alias or node.name)
        if isinstance(node, exp.Subquery) and not given:
            return self._query(node.this, node.alias, ctes)
        self.words.refuse(
            node, "This is not a source that is answered from.", "Name a table, or write a query in FROM."
        )

    def _named(self, relation: Relation, alias: str) -> Scope:
        return Scope(self.words, relation, {alias.lower(): {field.name.lower(): field for field in relation.fields}})

    def _query(self, node: exp.Expression, alias: str, ctes: Mapping[str, exp.Expression]) -> Scope:
        """A query in FROM: its rows are rows of the same people."""
        if not isinstance(node, exp.Select):
            self.words.refuse(node, "Only SELECT is answered in FROM.", "Write SELECT … FROM ….")
        self._check_clauses(node)
        scope = self.scope(node, ctes)
        columns: list[tuple[Field, Expr]] = []
        for item in node.expressions:
            columns += self._columns(scope, item)
        names = [field.name.lower() for field, _ in columns]
        if len(set(names)) != len(names):
            self.words.unknown(node, "Two columns of a query in FROM have the same name. Name them apart with AS.")
        owner = scope.relation.person
        shown = [field for field, expr in columns if isinstance(expr, Ref) and expr.field == owner]
        person = None if owner is None else shown[0] if shown else self.names.fresh("", owner)
        return self._named(Project(scope.relation, tuple(columns), person), alias)

    def _check_clauses(self, node: exp.Select) -> None:
        given = {name for name, value in node.args.items() if value} - _INSIDE - {"kind", "hint"}
        if given:
            clause = sorted(given)[0].strip("_").upper()
            self.words.refuse(
                node.args[sorted(given)[0]] if isinstance(node.args[sorted(given)[0]], exp.Expression) else node,
                f"{clause} inside a query in FROM is not answered: it would choose rows by what others have.",
                "Put it into the outermost query.",
            )

    def _columns(self, scope: Scope, item: exp.Expression) -> list[tuple[Field, Expr]]:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            fields = {field.id: field for names in scope.names.values() for field in names.values()}
            return [(self.names.fresh(field.name, field), Ref(field)) for field in fields.values()]
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and not any(item.this.args.values()):
            if item.table.lower() not in scope.names:
                self.words.unknown(item, f"There is no table {item.table} here.")
            return [(self.names.fresh(f.name, f), Ref(f)) for f in scope.names[item.table.lower()].values()]
        expr = scope.translate(item.this if isinstance(item, exp.Alias) else item)
        name = item.alias_or_name or item.sql()
        known = expr.field if isinstance(expr, Ref) else _like(expr)
        return [(self.names.fresh(name, known), expr)]

    # --- joins --------------------------------------------------------------------------------------------

    def _joined(self, left: Scope, node: exp.Join, ctes: Mapping[str, exp.Expression]) -> Scope:
        side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
        given = {name for name, value in node.args.items() if value} - {"this", "on", "using", "side", "kind"}
        if given or side not in ("", "LEFT") or kind not in ("", "INNER") + (("OUTER",) if side else ()):
            self.words.refuse(
                node,
                f"This kind of join is not answered ({(side + ' ' + kind).strip() or 'join'}).",
                "Use JOIN or LEFT JOIN, with ON or USING.",
            )
        right = self._source(node.this, ctes)
        if set(left.names) & set(right.names):
            self.words.unknown(node, "Two tables have the same name here. Give one of them another name with AS.")
        names = {**left.names, **right.names}
        both = Scope(self.words, _Both(left.relation, right.relation), names)
        conditions = [self._same(left, right, name) for name in node.args.get("using") or []]
        if node.args.get("on") is not None:
            conditions.append(self._condition(both, node.args["on"]))
        if not conditions:
            self.words.refuse(node, "A join without a condition is not answered.", "Say what must be equal, with ON.")
        condition = conditions[0] if len(conditions) == 1 else call("and", *conditions)
        person = self._owner(left.relation, right.relation, condition, side == "LEFT", node)
        if node.args.get("using"):
            # the joined columns are one column from here on: that of the left side
            shared = {name.name.lower() for name in node.args["using"]}
            kept = {
                alias: {n: f for n, f in fields.items() if n not in shared} for alias, fields in right.names.items()
            }
            names = {**left.names, **kept}
        relation = Join(left.relation, right.relation, condition, "left" if side else "inner", person)
        return Scope(self.words, relation, names)

    def _same(self, left: Scope, right: Scope, name: Any) -> Expr:
        column = exp.column(name.name)
        pair = Ref(left.lookup(column)), Ref(right.lookup(column))
        if not fits("eq", pair):
            self.words.unknown(name, f"{name.name} has another type on either side. Cast one in a query in FROM.")
        return call("eq", *pair)

    def _owner(self, left: Relation, right: Relation, condition: Expr, outer: bool, node: exp.Join) -> Field | None:
        """Whose the joined rows are; refused when they could be of two people, or of nobody."""
        equal = list(_equalities(condition))
        if not any(_joins(left, right, pair) for pair in equal):
            self.words.refuse(node, "A join needs an equality between the two sides.", "Write ON a.city = b.city.")
        if right.public:
            if left.person is None and not left.public:
                self.words.refuse(
                    node,
                    "With rows protected one by one, a join could repeat a row.",
                    "Protect people, with person(…).",
                )
            return left.person
        if left.public:
            if outer:
                self.words.refuse(
                    node, "A LEFT JOIN that keeps public rows is not answered.", "Put the private table first."
                )
            if right.person is None:
                self.words.refuse(
                    node,
                    "With rows protected one by one, a join could repeat a row.",
                    "Protect people, with person(…).",
                )
            return right.person
        if left.person is None or right.person is None:
            self.words.refuse(node, "Two private tables are joined by person only.", "Protect people, with person(…).")
        people = {left.person.id, right.person.id}
        if not any({first.id, second.id} == people for first, second in equal):
            self.words.refuse(
                node,
                "Two private tables are joined on the person, so that every row is of one.",
                f"Add AND a.{left.person.name or 'person'} = b.{right.person.name or 'person'} to ON.",
            )
        return left.person


@dataclass(frozen=True)
class _Both(Relation):
    """Two sides of a join, while its condition is read."""

    left: Relation
    right: Relation
    person: Field | None = None
    public: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.left.fields, *self.right.fields)


def _equalities(condition: Expr) -> list[tuple[Field, Field]]:
    """The pairs of fields that a condition makes equal."""
    match condition:
        case Call(op="eq", args=(Ref(field=first), Ref(field=second))):
            return [(first, second)]
        case Call(op="and", args=args):
            return [pair for arg in args for pair in _equalities(arg)]
    return []


def _joins(left: Relation, right: Relation, pair: tuple[Field, Field]) -> bool:
    sides = [{field.id for field in side.fields} for side in (left, right)]
    first, second = pair[0].id, pair[1].id
    return (first in sides[0] and second in sides[1]) or (first in sides[1] and second in sides[0])


def _like(expr: Expr) -> Field:
    """What is known of an expression's values, as a field."""
    found = range_of(expr) if expr.type in ("integer", "number") else None
    bounded = found is not None and found[0] < found[1] and all(abs(end) <= 1e15 for end in found)
    return Field("", "", expr.type, found if bounded else None, domain_of(expr))
