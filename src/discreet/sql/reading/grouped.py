"""GROUP BY, HAVING and DISTINCT in FROM: rows of one person, or of public tables, are combined into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.sql.expressions import Const, Expr, Field, Ref, call
from discreet.sql.pricing.relation import Join, PerPerson, Relation, Where, parts_of, rows_of_person
from discreet.sql.reading.parse import grouped_items, unread_arguments, without_alias
from discreet.sql.reading.scope import Scope, stands_for, stood_for
from discreet.sql.reading.translate import Translator
from discreet.sql.reading.values.domains import like
from discreet.sql.reading.values.ranges import may_have_range, range_of
from discreet.sql.schema import Type

if TYPE_CHECKING:
    from discreet.sql.reading.sources import Sources

OF_PERSON: dict[type, str] = {
    exp.Count: "count",
    exp.CountIf: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
"""The aggregates of one person's rows. Every other is refused."""
_Column = tuple[Field, str, Expr]


@dataclass
class _Combined:
    """The keys of a GROUP BY, as written and as read, and the columns that are computed for each."""

    scope: Scope
    keys: list[tuple[exp.Expression, Expr]]
    columns: list[_Column] = field(default_factory=list)


class Grouped:
    """Combines the rows of one person."""

    def __init__(self, sources: Sources) -> None:
        self.sources, self.sql, self.schema = sources, sources.sql, sources.schema

    def rows(self, scope: Scope, node: exp.Select) -> Relation:
        """GROUP BY in FROM, by the person or by a key that leads to one: each result row comes from the rows of one
        person.
        """
        relation, group = scope.relation, node.args["group"]
        keys = [(item, scope.translate(item)) for item in (self._at(scope, node, i) for i in grouped_items(node))]
        led = [self._leads(expr) for _, expr in keys]
        owned = relation.public or (relation.person is not None and any(led))
        if not owned or unread_arguments(group, "expressions", "all"):
            self.sql.refuse(
                group,
                "Inside a query in FROM, GROUP BY is supported by the person only: other groups mix people.",
                "Group by the person's column there, or put GROUP BY into the outermost query.",
                code="sql-inner-group",
            )
        found = _Combined(scope, keys)
        shown = [self._item(found, item) for item in node.expressions]
        having = node.args.get("having")
        condition = None if having is None else self._having(found, node, having.this)
        self.sources.check_names(node, [one for one, _ in shown])
        plain = condition is None and [Ref(column[0]) for column in found.columns] == [expr for _, expr in shown]
        rows: Relation = self.combined(relation, [expr for _, expr in keys], found.columns)
        if plain:
            return rows
        return self.sources.project(rows if condition is None else Where(rows, condition), shown)

    def distinct(self, relation: Relation, node: exp.Select) -> Relation:
        """Rows that are the same in every column once, if one of the columns says whose they are."""
        led = [self._leads(Ref(one)) for one in relation.fields]
        if node.args["distinct"].args.get("on") or not (relation.public or (relation.person and any(led))):
            self.sql.refuse(
                node.args["distinct"],
                "DISTINCT inside a query in FROM is supported with the person's column only: other rows mix people.",
                "Select the person's column, too; or write COUNT(DISTINCT city) in the outermost query.",
                code="sql-inner-clause",
            )
        columns = [(self.sources.names.fresh(one.name, one), "key", Ref(one)) for one in relation.fields]
        return self.combined(relation, [expr for _, _, expr in columns], columns)

    def combined(self, relation: Relation, keys: Sequence[Expr], columns: Sequence[_Column]) -> PerPerson:
        """One row for each person and combination of keys."""
        once = _is_once(relation, [self._leads(key) for key in keys])
        return PerPerson(relation, tuple(keys), tuple(columns), self._person(relation, columns), once)

    def aggregate(self, scope: Scope, name: str, node: Any) -> _Column:
        """An aggregate of one person's rows, or of public rows, with the range that follows from the bounds."""
        where, inner = None, node
        if isinstance(node, exp.Filter):
            where, inner = scope.condition(node.expression.this), node.this
        rows = None if scope.relation.public else rows_of_person(scope.relation)
        word = OF_PERSON.get(type(inner))
        of: Any = inner.args.get("this")
        if isinstance(inner, exp.CountIf):
            where = _both(where, scope.condition(inner.this))
            return self._counted(name, rows, "count", _only(where, Const(1, "integer")))
        if word == "count" and (of is None or isinstance(of, exp.Star)):
            return self._counted(name, rows, "count", _only(where, Const(1, "integer")))
        if word == "count" and isinstance(of, exp.Distinct) and len(of.expressions) == 1 and not of.args.get("on"):
            return self._counted(name, rows, "distinct", _only(where, scope.translate(of.expressions[0])))
        refused = word is None or isinstance(of, exp.Distinct | exp.Star) or not isinstance(of, exp.Expression)
        if refused or unread_arguments(inner, "this", "big_int"):
            self._refuse(node)
        value = scope.translate(of)
        if word == "count":
            return self._counted(name, rows, "count", _only(where, value))
        known = replace(value.field, origin=None) if isinstance(value, Ref) else like(value, self.sources.work)
        if word in ("sum", "avg"):
            if value.type not in ("integer", "number", "boolean"):
                what = f"{of.sql()} is not a number. Cast it to DOUBLE."
                self.sql.unknown(node, what, code="sql-not-a-number")
            within = range_of(value)
            if word == "sum" and within is not None:
                within = None if rows is None else (rows * min(within[0], 0), rows * max(within[1], 0))
            kind: Type = "number" if "number" in (value.type, {"avg": "number"}.get(word)) else "integer"
            known = Field("", "", kind, within if may_have_range(within) else None, found=known.found)
        return self.sources.names.fresh(name, known), str(word), _only(where, value)

    def _counted(self, name: str, rows: int | None, word: str, value: Expr) -> _Column:
        """The number of one person's rows or values, with its range if a bound is declared."""
        known = Field("", "", "integer", None if rows is None else (0, rows))
        return self.sources.names.fresh(name, known), word, value

    def _leads(self, expr: Expr) -> str | None:
        return self.schema.leads(expr.field.origin) if isinstance(expr, Ref) else None

    def _person(self, relation: Relation, columns: Sequence[_Column]) -> Field | None:
        owner = [one for one, word, e in columns if word == "key" and isinstance(e, Ref) and e.field == relation.person]
        if relation.person is None or owner:
            return owner[0] if owner else None
        return self.sources.names.fresh("", relation.person)

    def _at(self, scope: Scope, query: exp.Select, item: exp.Expression) -> exp.Expression:
        """What an item of GROUP BY refers to: itself, or the column at its number or with its alias."""
        place = self.sql.numbered(item, "GROUP BY", len(query.expressions))
        if place is not None:
            return without_alias(query.expressions[place])
        return aliased(scope, query, item) or item

    def _item(self, found: _Combined, item: exp.Expression) -> tuple[Field, Expr]:
        """A column of the result: a key, an aggregate, or an expression over both."""
        name, node = item.alias_or_name or item.sql(), without_alias(item)
        column = self._column(found, name, node, fresh=True)
        if column is not None:
            return column, Ref(column)
        value = self._computed(found, node)
        return self.sources.names.fresh(name, like(value, self.sources.work)), value

    def _column(self, found: _Combined, name: str, node: Any, *, fresh: bool) -> Field | None:
        """The column of a key or an aggregate. None if a node is neither. Not `fresh`: it may be one that is there."""
        key = next((expr for item, expr in found.keys if item == node), None)
        if key is None and isinstance(node, exp.Column) and found.scope.has(node):
            read = found.scope.translate(node)
            key = next((expr for _, expr in found.keys if expr == read), None)
        if key is not None:
            known = key.field if isinstance(key, Ref) else like(key, self.sources.work)
            column: _Column = (self.sources.names.fresh(name, known), "key", key)
        elif isinstance(node, exp.Filter | exp.AggFunc):
            column = self.aggregate(found.scope, name, node)
        else:
            return None
        same = [one for one, *rest in found.columns if tuple(rest) == column[1:]]
        if same and not fresh:
            return same[0]
        found.columns.append(column)
        return column[0]

    def _computed(self, found: _Combined, node: exp.Expression) -> Expr:
        """An expression over keys and aggregates."""

        def put(part: Any) -> Any:
            column = self._column(found, "", part, fresh=False)
            return part if column is None else stands_for(part, column)

        def lookup(column: exp.Column) -> Field:
            known = stood_for(column)
            return self._refuse(column) if known is None else known

        return Translator(self.sql, lookup)(node.copy().transform(put, copy=False))

    def _having(self, found: _Combined, query: exp.Select, node: exp.Expression) -> Expr:
        def put(part: Any) -> Any:
            known = aliased(found.scope, query, part)
            return part if known is None else known.copy()

        condition = self._computed(found, node.copy().transform(put, copy=False))
        if condition.type != "boolean":
            what = "HAVING takes a condition that is true or false, such as COUNT(*) > 3."
            self.sql.unknown(node, what, code="sql-not-a-condition")
        return condition

    def _refuse(self, node: exp.Expression) -> Any:
        self.sql.refuse(
            node,
            "A query in FROM that groups by the person can select the keys and COUNT, SUM, AVG, MIN and MAX only.",
            "Compute with them in the query around it.",
            code="sql-inner-aggregate",
        )


def _is_once(relation: Relation, led: Sequence[str | None]) -> bool:
    """Whether the person is the only key. An outer join also has rows in which the same column is NULL."""
    outer = any(isinstance(part, Join) and part.kind != "inner" for part in parts_of(relation))
    return all(one == "person" for one in led) and not outer and not relation.public


def aliased(scope: Scope, query: exp.Select, node: exp.Expression) -> exp.Expression | None:
    """What an alias of the SELECT list stands for."""
    if not isinstance(node, exp.Column) or node.table or scope.knows(node.name):
        return None
    named = [item for item in query.expressions if isinstance(item, exp.Alias) and _is_named(item, node.name)]
    return without_alias(named[0]) if named else None


def _is_named(item: exp.Alias, name: str) -> bool:
    return bool(item.alias.lower() == name.lower())


def _only(where: Expr | None, value: Expr) -> Expr:
    """A value where a condition holds, and NULL elsewhere, which no aggregate counts."""
    return value if where is None else call("case", where, value, Const(None, "other"))


def _both(first: Expr | None, second: Expr) -> Expr:
    return second if first is None else call("and", first, second)
