"""Queries inside WHERE: IN, EXISTS and aggregates about the same person or about public tables.

Which rows of a person are kept depends on the rows of this person and on public rows only. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from discreet.sql.expressions import Call, Const, Expr, Field, Ref, call, conjuncts, fits, present
from discreet.sql.pricing.relation import (
    Beside,
    Join,
    Marked,
    Pairs,
    Relation,
    Test,
    Tested,
    Total,
    Where,
    equal_fields,
)
from discreet.sql.reading.parse import unread_arguments, without_alias
from discreet.sql.reading.scope import Scope, stands_for, stood_for
from discreet.sql.reading.translate import Translator

if TYPE_CHECKING:
    from discreet.sql.reading.sources import Sources

Queries = Mapping[str, exp.Expression]


@dataclass
class _Found:
    """What the queries of one condition become: tests, public totals, and totals of the rows of each person."""

    tests: list[Test] = field(default_factory=list)
    totals: list[Relation] = field(default_factory=list)
    joined: list[tuple[Relation, Expr, Pairs]] = field(default_factory=list)

    def beside(self, relation: Relation) -> Relation:
        """Rows with the numbers that were found for them."""
        for total in self.totals:
            relation = Beside(relation, total)
        for rows, matching, pairs in self.joined:
            relation = Join(relation, rows, matching, "left", relation.person, pairs)
        return relation


class Subqueries:
    """Reads WHERE clauses that hold queries."""

    def __init__(self, sources: Sources) -> None:
        self.sources, self.sql = sources, sources.sql

    def filtered(self, scope: Scope, parts: Sequence[exp.Expression], ctes: Queries) -> Scope:
        """The names after conditions are applied, all of which must hold."""
        plain = [part for part in parts if not _queries(part)]
        relation = scope.relation
        for part in parts:
            if _queries(part):
                relation = self._tested(scope, relation, part, ctes)
        if plain:
            relation = Where(relation, _all([scope.condition(part) for part in plain]))
        return Scope(self.sql, relation, scope.names)

    def placed(self, scope: Scope, items: Sequence[Any], ctes: Queries) -> tuple[Scope, list[Any]]:
        """The rows with what the queries in a SELECT list say of each, and the list with columns in their places."""
        if not any(_queries(item) for item in items):
            return scope, list(items)
        found = _Found()
        kept = [
            exp.alias_(self._put(scope, item, ctes, found), item.sql(), quoted=True)
            if _queries(item) and not isinstance(item, exp.Alias)
            else self._put(scope, item, ctes, found)
            for item in items
        ]
        relation = found.beside(scope.relation)
        relation = Marked(relation, tuple(found.tests)) if found.tests else relation
        return Scope(self.sql, relation, scope.names), kept

    def _put(self, scope: Scope, node: exp.Expression, ctes: Queries, found: _Found) -> Any:
        """An expression with columns in the places of its queries."""

        def put(part: Any) -> Any:
            rule = QUERIES.get(type(part))
            return part if rule is None or not _is_query(part) else rule(self, scope, part, ctes, found)

        return node.copy().transform(put, copy=False)

    def _tested(self, scope: Scope, relation: Relation, part: exp.Expression, ctes: Queries) -> Relation:
        """The rows for which a condition with queries in it holds."""
        found = _Found()

        node, wanted = _negated(part)
        if isinstance(node, exp.In) and exp.In in QUERIES and _is_query(node):
            test = self._in(scope, node, ctes, found)
            condition: Expr = Ref(test)
            if not wanted:  # NULL is not known to be in a list, nor known to be in none
                condition = call("and", present(scope.translate(node.this)), call("not", condition))
        else:
            placed = self._put(scope, part, ctes, found)
            condition = Scope(self.sql, relation, scope.names).condition(placed)
        relation = found.beside(relation)
        tests = {test.field for test in found.tests}
        if not tests:
            return Where(relation, condition)
        if not all(_is_logic(one, tests) for one in conjuncts(condition)):
            what = "IN and EXISTS with a query can be combined by AND, OR, NOT and CASE only."
            self.sql.refuse(part, what, "Write it as a condition of its own.", code="sql-subquery")
        return Tested(relation, tuple(found.tests), condition)

    # --- IN and EXISTS --------------------------------------------------------------------------------------

    def _in(self, scope: Scope, node: exp.In, ctes: Queries, found: _Found) -> Field:
        """IN: some row of the query has the value. NULL is no value of it."""
        query = node.args["query"].unnest()
        value = scope.translate(node.this)
        inner, correlated = self._inside(scope, query, ctes)
        columns: list[Expr] = [Ref(f) for f in inner.relation.fields]
        if isinstance(query, exp.Select) and not _is_combined(query):
            items = [self.sources.columns_of(inner, item) for item in query.expressions]
            columns = [expr for listed in items for _, expr in listed]
        if len(columns) != 1:
            what = "IN takes a query with one column."
            self.sql.unknown(node, what + " Select one.", code="sql-arguments")
        pair = value, columns[0]
        if not fits("eq", pair):
            what = f"IN is not defined for {value.type}, {columns[0].type}. Cast one of them."
            self.sql.unknown(node, what, code="sql-types")
        return self._test(scope, node, inner.relation, [call("eq", *pair), *correlated], found)

    def _replaced_in(self, scope: Scope, node: exp.In, ctes: Queries, found: _Found) -> exp.Expression:
        mark = stands_for(node, self._in(scope, node, ctes, found))
        if isinstance(node.this, exp.Column) and scope.lookup(node.this) == scope.relation.person:
            return mark  # rows of nobody are left out
        is_null = exp.Is(this=node.this.copy(), expression=exp.Null())
        return exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=mark)

    def _exists(self, scope: Scope, node: exp.Exists, ctes: Queries, found: _Found) -> exp.Expression:
        query = node.this.unnest()
        inner, correlated = self._inside(scope, query, ctes)
        if isinstance(query, exp.Select) and not _is_combined(query):
            for item in query.expressions:
                self.sources.columns_of(inner, item)  # without groups, an aggregate would make a row of no rows
        return stands_for(node, self._test(scope, query, inner.relation, correlated, found))

    def _inside(self, scope: Scope, query: exp.Expression, ctes: Queries) -> tuple[Scope, list[Expr]]:
        """The rows of a query, and the conditions on them that also name columns of the query around it."""
        if not isinstance(query, exp.Select) or _is_combined(query):
            relation = self.sources.rows_in(query, ctes)
            return Scope(self.sql, relation, {"": {f.name.lower(): f for f in relation.fields}}), []
        self.sources.check_clauses(query)
        ctes = {**ctes, **self.sources.ctes_of(query)}
        inner, where = self.sources.joined(query, ctes), query.args.get("where")
        own: list[exp.Expression] = []
        both: list[exp.Expression] = []
        for part in [] if where is None else parts_of_condition(where.this):
            alone = _queries(part) or all(inner.has(column) for column in part.find_all(exp.Column))
            (own if alone else both).append(part)
        translate = Translator(self.sql, lambda node: inner.lookup(node) if inner.has(node) else scope.lookup(node))
        conditions = [translate(part) for part in both]
        for part, condition in zip(both, conditions, strict=True):
            if condition.type != "boolean":
                what = "A condition must be true or false, such as age >= 18."
                self.sql.unknown(part, what, code="sql-not-a-condition")
        return self.filtered(inner, own, ctes), conditions

    def _test(self, scope: Scope, node: exp.Expression, rows: Relation, conditions: list[Expr], found: _Found) -> Field:
        """A test. Raises if it could depend on the rows of another person."""
        condition = _all(conditions) if conditions else Const(True, "boolean")
        if not rows.public:
            mine, theirs, joins = scope.relation.person, rows.person, self.sources.joins
            pairs = equal_fields(scope.relation, rows, condition)
            if mine is None or theirs is None:
                what = "Which rows are kept would depend on rows that are protected one by one, or belong to others."
                self.sql.refuse(node, what, "Ask about public tables, or protect people.", code="sql-subquery")
            joins.check_type_of_person(mine, theirs, node)
            if not joins.of_one_person(mine, theirs, pairs):
                what = "Which rows are kept would depend on the rows of other people."
                self.sql.refuse(node, what, _instead(mine, rows), code="sql-subquery")
            condition = joins.of_person(mine, theirs, pairs, condition)
        test = Test(self.sources.names.fresh("", Field("", "", "boolean")), rows, condition)
        found.tests.append(test)
        return test.field

    # --- queries that stand for a number --------------------------------------------------------------------

    def _number(self, scope: Scope, node: exp.Subquery, ctes: Queries, found: _Found) -> exp.Expression:
        """An aggregate of public rows, or of the rows of the same person, as columns next to each row."""
        query = node.this
        read = ("expressions", "from_", "joins", "where", "with_")
        if not isinstance(query, exp.Select) or unread_arguments(query, *read) or len(query.expressions) != 1:
            self._refuse_number(node)
        inner, correlated = self._inside(scope, query, ctes)
        columns: list[tuple[Field, str, Expr]] = []

        def put(part: Any) -> Any:
            if not isinstance(part, exp.Filter | exp.AggFunc):
                return part
            shown, word, expr = self.sources.grouped.aggregate(inner, "", part)
            shown = replace(shown, between=None, choices=None) if inner.relation.public else shown
            columns.append((shown, word, expr))
            column = stands_for(part, shown)
            if word not in ("count", "distinct"):
                return column
            return exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])  # no rows are none

        placed = without_alias(query.expressions[0]).copy().transform(put, copy=False)
        if not columns or any(stood_for(column) is None for column in placed.find_all(exp.Column)):
            self._refuse_number(node)
        if correlated:
            found.joined.append(self._of_each(scope, node, inner.relation, correlated, columns))
        elif inner.relation.public:
            found.totals.append(Total(inner.relation, tuple(columns)))
        else:
            self._refuse_number(node)
        return exp.Paren(this=placed)

    def _of_each(
        self, scope: Scope, node: exp.Subquery, rows: Relation, correlated: list[Expr], columns: list[Any]
    ) -> tuple[Relation, Expr, Pairs]:
        """The aggregates for each combination of keys, and the condition that gives each row its own."""
        pairs = equal_fields(scope.relation, rows, _all(correlated))
        if self.sources.schema.unit.column is None:
            pairs = tuple((a, b) for a, b in pairs if a.type == b.type)  # a cast could make different keys equal
        if len(pairs) < len(correlated):
            self._refuse_number(node)
        mine, theirs = scope.relation.person, rows.person
        if not rows.public:
            if mine is None or theirs is None or not self.sources.joins.of_one_person(mine, theirs, pairs):
                self._refuse_number(node)
            self.sources.joins.check_type_of_person(mine, theirs, node)
        keys = [self.sources.names.fresh(own.name, own) for _, own in pairs]
        shown = [(key, "key", Ref(own)) for key, (_, own) in zip(keys, pairs, strict=True)]
        combined = self.sources.grouped.combined(rows, [Ref(own) for _, own in pairs], [*shown, *columns])
        matched = tuple((outer, key) for (outer, _), key in zip(pairs, keys, strict=True))
        condition = _all([call("eq", Ref(outer), Ref(key)) for outer, key in matched])
        if mine is not None and combined.person is not None:
            condition = self.sources.joins.of_person(mine, combined.person, matched, condition)
        return combined, condition, matched

    def _refuse_number(self, node: exp.Expression) -> NoReturn:
        self.sql.refuse(
            node,
            "A query that stands for a number is supported as one aggregate (COUNT, SUM, AVG, MIN, MAX) of public "
            "tables, of the rows of the same person, or of everybody, if it names no column of the query around it.",
            "Remove the other columns, or set the person's column inside equal to the one outside.",
            code="sql-subquery",
        )


def _instead(person: Field, rows: Relation) -> str:
    """What to write about the same person."""
    table = next((table for table in rows.tables() if table.person is not None), None)
    if table is None or not person.name:
        return "Join the tables in FROM, on a key that leads to the person, and group by the person there."
    return f"Write WHERE {person.name} IN (SELECT {table.person} FROM {table.name})."


def parts_of_condition(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that must all hold."""
    inner = node.unnest()
    if isinstance(inner, exp.And):
        return [*parts_of_condition(inner.this), *parts_of_condition(inner.expression)]
    return [node]


def _is_query(node: Any) -> bool:
    """Whether a node reads a query."""
    return not isinstance(node, exp.In) or isinstance(node.args.get("query"), exp.Subquery)


def _queries(node: exp.Expression) -> bool:
    return any(type(part) in QUERIES and _is_query(part) for part in node.walk())


def _is_combined(query: exp.Select) -> bool:
    """Whether a query combines rows, so that its rows must be made before they are tested."""
    windows = any(item.find(exp.Window) for item in query.expressions)
    return windows or any(query.args.get(name) for name in ("group", "having", "distinct", "qualify"))


def _negated(part: exp.Expression) -> tuple[Any, bool]:
    """A condition without its parentheses and NOT, and whether it must hold."""
    node = part.unnest()
    return (node.this.unnest(), False) if isinstance(node, exp.Not) else (node, True)


def _all(conditions: Sequence[Expr]) -> Expr:
    return conditions[0] if len(conditions) == 1 else call("and", *conditions)


def _is_logic(expr: Expr, tests: set[Field]) -> bool:
    """Whether tests are only combined by AND, OR, NOT and CASE, which every engine can do with EXISTS."""
    if isinstance(expr, Ref) or tests.isdisjoint(expr.fields()):
        return True
    return (
        isinstance(expr, Call)
        and expr.op in ("and", "or", "not", "case")
        and all(_is_logic(a, tests) for a in expr.args)
    )


Rule = Callable[[Subqueries, Scope, Any, Queries, _Found], exp.Expression]
QUERIES: dict[type[exp.Expression], Rule] = {
    exp.In: Subqueries._replaced_in,
    exp.Exists: Subqueries._exists,
    exp.Subquery: Subqueries._number,
}
"""The nodes of WHERE that may hold a query."""
