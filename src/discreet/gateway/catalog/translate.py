"""A catalog statement of PostgreSQL as a statement of DuckDB.

The statement is not edited: a new tree is built from the parts that are known, so what has no rule here is refused, and
nothing of DuckDB's own can be reached. Relations become tables of our schemas, functions become ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.gateway.catalog import casts, expressions
from discreet.gateway.catalog.names import column_name, function_name
from discreet.gateway.catalog.scopes import (
    Scope,
    Source,
    Value,
    call,
    cast,
    check_parts,
    column,
    identifier,
    name_of,
    number,
    refuse,
)
from discreet.gateway.catalog.signatures import ROWS_OF
from discreet.gateway.catalog.types import REFERENCES, UNKNOWN, choose_parameter, fields_of, is_record, merge
from discreet.gateway.wire.format.values import Column, Refusal

_SELECT = ("with_", "expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having", "order")
_MOST_NODES = 20_000
_MOST_STEPS = 40_000
_DEEPEST = 120
Columns = tuple[Column, ...]


class Relation:
    """A relation of the catalog: where DuckDB has it, its columns, and its number."""

    def __init__(self, schema: str, name: str, columns: Columns, oid: int) -> None:
        self.schema, self.name, self.columns, self.oid = schema, name, columns, oid

    @property
    def table(self) -> exp.Table:
        """The table of DuckDB."""
        return exp.Table(this=identifier(self.name), db=identifier(self.schema))


class Translator:
    """Translates one statement. `relations` are known by schema and name; `declared` are types of parameters."""

    def __init__(self, relations: Mapping[tuple[str, str], Relation], declared: Sequence[str] = ()) -> None:
        self.relations = relations
        self.declared = dict(enumerate((kind for kind in declared), start=1))
        self.hints: dict[int, list[str]] = {}
        self._depth = self._steps = 0

    def translate(self, query: exp.Expr) -> tuple[exp.Expr, Columns]:
        """The statement for DuckDB, and the columns that PostgreSQL would give."""
        if sum(1 for _ in query.walk()) > _MOST_NODES:
            raise Refusal("The statement is too long for the catalog.", state="54001")
        node, columns = self.query(query, Scope())
        return node, tuple(Column(one.name, "text" if one.type == UNKNOWN else one.type) for one in columns)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The types of the parameters."""
        last = max([0, *self.hints, *(number for number, kind in self.declared.items() if kind != UNKNOWN)])
        return tuple(self.parameter_type(place) for place in range(1, last + 1))

    def parameter_type(self, place: int) -> str:
        """The type of a parameter: what the client said, or what its first place needs."""
        said = self.declared.get(place, UNKNOWN)
        return choose_parameter(self.hints.get(place, ())) if said == UNKNOWN else said

    # --- queries ----------------------------------------------------------------------------------------------

    def query(self, node: exp.Expr, outer: Scope) -> tuple[exp.Expr, Columns]:
        """A query, perhaps inside another one."""
        self._enter()
        try:
            if isinstance(node, exp.Select):
                return self._select(node, outer)
            if isinstance(node, exp.SetOperation):
                return self._set_operation(node, outer)
            if isinstance(node, exp.Subquery):
                return self._wrapped(node, outer)
            if isinstance(node, exp.Paren):
                return self.query(node.this, outer)
            if isinstance(node, exp.Values):
                return self._values(node, outer)
        finally:
            self._depth -= 1
        raise refuse(type(node).__name__.upper())

    def _with(self, node: exp.Expr, scope: Scope) -> exp.With | None:
        given = node.args.get("with_")
        if not given:
            return None
        recursive, found = bool(given.args.get("recursive")), []
        for cte in given.expressions:
            check_parts(cte, ("this", "alias", "materialized"))
            name = name_of(cte.args["alias"].this) or ""
            named = [name_of(one) or "" for one in cte.args["alias"].args.get("columns") or ()]
            if recursive and isinstance(cte.this, exp.SetOperation):
                # the first part says which columns the second one finds under the name; it is translated once
                if cte.this.args.get("with_"):
                    raise refuse("WITH inside of a recursive one")
                first = self.query(cte.this.this, scope)
                scope.ctes[name] = Source(name, _renamed(_known(first[1]), named))
                inner, columns = self._set_operation(cte.this, scope, first)
            else:
                inner, columns = self.query(cte.this, scope)
            columns = _renamed(_known(columns), named)
            scope.ctes[name] = Source(name, columns)
            listed = [identifier(one.name) for one in _distinct(columns)]
            found.append(exp.CTE(this=inner, alias=exp.TableAlias(this=identifier(name), columns=listed)))
        return exp.With(expressions=found, recursive=recursive)

    def _select(self, node: exp.Select, outer: Scope) -> tuple[exp.Expr, Columns]:
        check_parts(node, (*_SELECT, "limit", "offset", "operation_modifiers", "kind"))
        if node.args.get("kind"):
            raise refuse(str(node.args["kind"]))
        scope = Scope(outer=outer)
        made = exp.Select()
        made.set("with_", self._with(node, scope))
        if node.args.get("from_"):
            made.set("from_", exp.From(this=self._item(node.args["from_"].this, scope)))
        made.set("joins", [self._join(one, scope) for one in node.args.get("joins") or ()])
        for lateral in node.args.get("laterals") or ():
            made.append("joins", exp.Join(this=self._item(lateral, scope), kind="CROSS"))
        chosen = [one for part in node.expressions for one in self._projections(part, scope)]
        columns = tuple(Column(name, value.type) for name, value in chosen)
        made.set("expressions", [exp.alias_(value.node, identifier(name)) for name, value in chosen])
        scope_here = scope
        if node.args.get("where"):
            made.set("where", exp.Where(this=self.condition(node.args["where"].this, scope_here)))
        if node.args.get("group"):
            made.set("group", self._group(node.args["group"], scope, node.expressions, columns))
        if node.args.get("having"):
            made.set("having", exp.Having(this=self.condition(node.args["having"].this, scope)))
        if node.args.get("distinct"):
            made.set("distinct", self._distinct(node.args["distinct"], scope))
        self._finish(node, made, scope, columns)
        return made, columns

    def _distinct(self, node: exp.Distinct, scope: Scope) -> exp.Distinct:
        by = node.args.get("on")
        if by is None:
            return exp.Distinct()
        return exp.Distinct(on=exp.Tuple(expressions=[self.value(one, scope).node for one in by.expressions]))

    def _projections(self, node: exp.Expr, scope: Scope) -> list[tuple[str, Value]]:
        starred = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
        if starred:
            check_parts(node, ("this", "table", "db"))
            check_parts(node.this if isinstance(node, exp.Column) else node, ())
            table, schema = name_of(node.args.get("table")), name_of(node.args.get("db"))
            return [
                (one.name, Value(column(one.name, source.name), one.type))
                for source, one in scope.columns_of(table, schema)
            ]
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Dot) and isinstance(inner.expression, exp.Star):
            raise refuse("the * of a record")
        value = self.value(inner, scope, sets=True)
        value = Value(cast(value.node, "text"), "text") if value.type == UNKNOWN else value
        return [(column_name(node), value)]

    def _group(self, node: exp.Group, scope: Scope, chosen: Sequence[exp.Expr], columns: Columns) -> exp.Group:
        check_parts(node, ("expressions",))
        found = []
        for one in node.expressions:
            place = None
            if isinstance(one, exp.Column) and not one.args.get("table"):
                name = name_of(one.this) or ""
                if scope.find(name) is None:
                    place = next((n for n, named in enumerate(columns, 1) if named.name == name), None)
            elif isinstance(one, exp.Literal) and not one.is_string:
                place = int(one.name)
            found.append(number(place) if place else self.value(one, scope).node)
        return exp.Group(expressions=found)

    def _finish(self, node: exp.Expr, made: exp.Expr, scope: Scope, columns: Columns) -> None:
        """The order, the limit and the offset of a query."""
        if node.args.get("order"):
            made.set("order", self.order(node.args["order"], scope, columns))
        limit = node.args.get("limit")
        if isinstance(limit, exp.Fetch):
            check_parts(limit, ("direction", "count", "limit_options"))
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
                raise refuse("FETCH WITH TIES")
            limit = exp.Limit(expression=limit.args.get("count") or exp.Literal.number(1))
        if limit is not None and not isinstance(limit.expression, exp.Null) and limit.expression.name != "ALL":
            made.set("limit", exp.Limit(expression=self.value_as(limit.expression, scope, "int8")))
        if node.args.get("offset"):
            made.set("offset", exp.Offset(expression=self.value_as(node.args["offset"].expression, scope, "int8")))

    def order(self, node: exp.Order, scope: Scope, columns: Columns = ()) -> exp.Order:
        """ORDER BY. A name of a column of the result is its place."""
        found = []
        for one in node.expressions:
            check_parts(one, ("this", "desc", "nulls_first"))
            what, places = one.this, [column.name for column in columns]
            if isinstance(what, exp.Collate):
                what = what.this
            named = name_of(what.this) if isinstance(what, exp.Column) and not what.args.get("table") else None
            if named is not None and named in places:
                by: exp.Expr = number(places.index(named) + 1)
            elif isinstance(what, exp.Literal) and not what.is_string and columns:
                by = number(int(what.name))
            else:
                by = self.value(what, scope).node
            descending = bool(one.args.get("desc"))
            first = one.args.get("nulls_first")
            found.append(exp.Ordered(this=by, desc=descending, nulls_first=descending if first is None else first))
        return exp.Order(expressions=found)

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope, first: tuple[exp.Expr, Columns] | None = None
    ) -> tuple[exp.Expr, Columns]:
        check_parts(node, ("with_", "this", "expression", "distinct", "order", "limit", "offset"))
        scope = Scope(outer=outer)
        with_ = self._with(node, scope)
        left, one = first or self.query(node.this, scope)
        right, other = self.query(node.expression, scope)
        if len(one) != len(other):
            raise Refusal("each UNION query must have the same number of columns", state="42601")
        made = type(node)(
            this=_in_parentheses(left), expression=_in_parentheses(right), distinct=node.args.get("distinct", True)
        )
        if not isinstance(made, exp.Union | exp.Except | exp.Intersect):
            raise refuse(type(node).__name__.upper())
        made.set("with_", with_)
        columns = tuple(Column(a.name, merge((a.type, b.type))) for a, b in zip(one, other, strict=True))
        self._finish(node, made, scope, columns)
        return made, columns

    def _wrapped(self, node: exp.Subquery, outer: Scope) -> tuple[exp.Expr, Columns]:
        check_parts(node, ("this", "order", "limit", "offset", "with_"))
        scope = Scope(outer=outer)
        with_ = self._with(node, scope)
        inner, columns = self.query(node.this, scope)
        if not (with_ or node.args.get("order") or node.args.get("limit") or node.args.get("offset")):
            return inner, columns
        made = exp.Select(expressions=[exp.Star()])
        made.set("with_", with_)
        made.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier("wrapped")))))
        self._finish(node, made, scope, columns)
        return made, columns

    def _values(self, node: exp.Values, outer: Scope) -> tuple[exp.Expr, Columns]:
        check_parts(node, ("expressions", "alias"))
        rows = [
            [self.value(one, outer) for one in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in node.expressions
        ]
        if len({len(row) for row in rows}) > 1:
            raise Refusal("VALUES lists must all be the same length", state="42601")
        kinds = [merge(value.type for value in values) for values in zip(*rows, strict=True)]
        cast_rows = [
            exp.Tuple(expressions=[self.coerce(value, kind).node for value, kind in zip(row, kinds, strict=True)])
            for row in rows
        ]
        named = [f"column{place}" for place in range(1, len(kinds) + 1)]
        alias = exp.TableAlias(this=identifier("listed"), columns=[identifier(one) for one in named])
        made = exp.Select(expressions=[exp.Star()])
        made.set("from_", exp.From(this=exp.Values(expressions=cast_rows, alias=alias)))
        return made, tuple(Column(name, kind) for name, kind in zip(named, kinds, strict=True))

    # --- FROM -------------------------------------------------------------------------------------------------

    def _join(self, node: exp.Join, scope: Scope) -> exp.Join:
        check_parts(node, ("this", "side", "kind", "on", "using", "method"))
        if node.args.get("method"):
            raise refuse(f"{node.args['method']} JOIN")
        before = {one.name for source in scope.sources for one in source.columns}
        made = exp.Join(this=self._item(node.this, scope), side=node.side or None, kind=node.kind or None)
        if node.args.get("on"):
            made.set("on", self.condition(node.args["on"], scope))
        if node.args.get("using"):
            names = [name_of(one.this if isinstance(one, exp.Column) else one) or "" for one in node.args["using"]]
            missing = [name for name in names if name not in before]
            if missing:
                raise Refusal(f'column "{missing[0]}" specified in USING does not exist', state="42703")
            made.set("using", [identifier(name) for name in names])
            scope.joined.update(names)
        if not node.args.get("on") and not node.args.get("using"):
            made.set("side", None)
            made.set("kind", "CROSS")
        return made

    def _item(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """Something in FROM. What it gives is added to the scope."""
        if isinstance(node, exp.Lateral):
            check_parts(node, ("this", "alias"))
            inner = node.this
            if isinstance(inner, exp.Subquery):
                return self._derived(inner.this, node.args.get("alias"), scope, Scope(outer=scope))
            return self._function(inner, node.args.get("alias"), scope, ordinality=False)
        if isinstance(node, exp.Unnest):
            check_parts(node, ("expressions", "alias", "offset"))
            alias, offset = node.args.get("alias"), node.args.get("offset")
            if len(node.expressions) != 1:
                raise refuse("unnest of several arrays")
            if isinstance(offset, exp.Identifier) and alias is not None:
                alias = alias.copy()
                alias.append("columns", offset.copy())
            return self._function(exp.Explode(this=node.expressions[0]), alias, scope, ordinality=bool(offset))
        if isinstance(node, exp.Values):
            return self._derived(node, node.args.get("alias"), scope, scope)
        if isinstance(node, exp.Subquery):
            return self._parenthesis(node, scope)
        if isinstance(node, exp.Table):
            return self._table(node, scope)
        raise refuse(f"{type(node).__name__.upper()} in FROM")

    def _parenthesis(self, node: exp.Subquery, scope: Scope) -> exp.Expr:
        if isinstance(node.this, exp.Table | exp.Subquery) and not node.args.get("alias"):
            check_parts(node, ("this", "joins"))
            inner = self._item(node.this, scope)
            return _with_joins(inner, [self._join(one, scope) for one in node.args.get("joins") or ()])
        check_parts(node, ("this", "alias", "joins"))
        made_item = self._derived(node.this, node.args.get("alias"), scope, scope.outer or Scope())
        return _with_joins(made_item, [self._join(one, scope) for one in node.args.get("joins") or ()])

    def _derived(self, query: exp.Expr, alias: exp.Expr | None, scope: Scope, sees: Scope) -> exp.Expr:
        inner_scope = Scope(outer=sees, ctes=scope.ctes) if sees is not scope else scope
        inner, columns = self.query(query, inner_scope)
        name, named = _alias_of(alias)
        columns = _renamed(_known(columns), named)
        name = name or f"derived_{len(scope.sources)}"
        scope.sources.append(Source(name, columns))
        listed = [identifier(one.name) for one in _distinct(columns)]
        return exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier(name), columns=listed))

    def _table(self, node: exp.Table, scope: Scope) -> exp.Expr:
        check_parts(node, ("this", "db", "catalog", "alias", "joins", "ordinality", "only"))
        if isinstance(node.this, exp.Func):
            return self._function(
                node.this, node.args.get("alias"), scope, ordinality=bool(node.args.get("ordinality"))
            )
        name, schema = name_of(node.this) or "", name_of(node.args.get("db"))
        alias, named = _alias_of(node.args.get("alias"))
        cte = scope.find_cte(name) if schema is None else None
        if cte is not None:
            source, table = cte, exp.Table(this=identifier(name))
        else:
            relation = self.find_relation(schema, name)
            source, table = Source(name, relation.columns, relation.oid, schema or "pg_catalog"), relation.table
        columns = _renamed(source.columns, named)
        kept = source.schema if alias is None else None
        scope.sources.append(Source(alias or name, columns, source.oid, kept))
        listed = [identifier(one.name) for one in columns] if named else []
        table.set("alias", exp.TableAlias(this=identifier(alias or name), columns=listed))
        return _with_joins(table, [self._join(one, scope) for one in node.args.get("joins") or ()])

    def find_relation(self, schema: str | None, name: str) -> Relation:
        """The relation of a name."""
        found = self.relations.get((schema or "pg_catalog", name))
        if found is None:
            if schema in ("pg_catalog", "information_schema") or schema is None:
                full = name if schema is None else f"{schema}.{name}"
                raise Refusal(f'relation "{full}" does not exist', state="42P01")
            raise Refusal(
                "A statement cannot use both the catalog and a table of the policy.",
                state="0A000",
                hint="Ask the catalog and the table in two statements.",
            )
        return found

    def _function(self, node: exp.Expr, alias: exp.Expr | None, scope: Scope, *, ordinality: bool) -> exp.Expr:
        """A function in FROM, as a query that may use what stands before it."""
        name, named = _alias_of(alias)
        called = function_name(node.expression if isinstance(node, exp.Dot) else node)
        relation = ROWS_OF.get(called)
        if relation is not None:
            found = self.relations[relation]
            columns, made = _renamed(found.columns, named), found.table
            scope.sources.append(Source(name or called, columns))
            listed = [identifier(one.name) for one in columns]
            made.set("alias", exp.TableAlias(this=identifier(name or called), columns=listed))
            return made
        value = self.value(node, Scope(outer=scope), sets=True)
        if is_record(value.type):
            columns = tuple(Column(field, kind) for field, kind in fields_of(value.type).items())
            struct = exp.Select(expressions=[exp.alias_(call("unnest", value.node.expressions[0]), identifier("one"))])
            fields = [
                exp.alias_(call("struct_extract", column("one"), exp.Literal.string(one.name)), identifier(one.name))
                for one in columns
            ]
            inner = exp.Select(expressions=fields)
            inner.set("from_", exp.From(this=exp.Subquery(this=struct, alias=exp.TableAlias(this=identifier("rows")))))
        else:
            columns = (Column(name or called, value.type),)
            inner = exp.Select(expressions=[exp.alias_(value.node, identifier(columns[0].name))])
        if ordinality:
            if not isinstance(value.node, exp.Anonymous) or value.node.name != "unnest" or is_record(value.type):
                raise refuse("WITH ORDINALITY of this function")
            # the array is written once: a copy for its length would double at every level
            array = exp.Select(expressions=[exp.alias_(value.node.expressions[0], identifier("array"))])
            last = exp.Add(this=call("len", column("array")), expression=number(1))
            shown = [
                exp.alias_(call("unnest", column("array")), identifier(columns[0].name)),
                exp.alias_(call("unnest", call("range", number(1), last)), identifier("ordinality")),
            ]
            inner = exp.Select(expressions=shown)
            inner.set("from_", exp.From(this=exp.Subquery(this=array, alias=exp.TableAlias(this=identifier("rows")))))
            columns += (Column("ordinality", "int8"),)
        columns = _renamed(_known(columns), named)
        scope.sources.append(Source(name or called, columns))
        listed = [identifier(one.name) for one in _distinct(columns)]
        made_alias = exp.TableAlias(this=identifier(name or called), columns=listed)
        return exp.Subquery(this=inner, alias=made_alias)

    # --- values -----------------------------------------------------------------------------------------------

    def value(self, node: exp.Expr, scope: Scope, *, sets: bool = False) -> Value:
        """An expression. `sets`: it may be a function that gives several rows."""
        self._enter()
        try:
            return expressions.translate(self, node, scope)
        finally:
            self._depth -= 1

    def _enter(self) -> None:
        """Refuse a statement that is nested too deeply or takes too many steps."""
        self._depth += 1
        self._steps += 1
        if self._depth > _DEEPEST:
            raise Refusal("The statement is nested too deeply for the catalog.", state="54001")
        if self._steps > _MOST_STEPS:
            raise Refusal("The statement is too long for the catalog.", state="54001")

    def condition(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """An expression that is true or false."""
        return self.coerce(self.value(node, scope), "bool").node

    def value_as(self, node: exp.Expr, scope: Scope, kind: str) -> exp.Expr:
        """An expression as a value of a type, if it has none of its own."""
        return self.coerce(self.value(node, scope), kind).node

    def coerce(self, value: Value, kind: str) -> Value:
        """A value that has no type yet, as one of a type."""
        return casts.coerce(self, value, kind)

    def hint(self, place: int, kind: str) -> None:
        """Remember a type that a parameter needs."""
        self.hints.setdefault(place, []).append(kind)

    def fill(self, node: exp.Expr) -> tuple[exp.Expr, list[int]]:
        """The statement with its parameters in it, each as its type, and which parameters it uses."""
        used: list[int] = []

        def filled(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Placeholder):
                return part
            place = int(part.name)
            if place not in used:
                used.append(place)
            given, kind = exp.Parameter(this=number(used.index(place) + 1)), self.parameter_type(place)
            # a number or a name of an object
            return call(f"find_{kind}", cast(given, "text")) if kind in REFERENCES else cast(given, kind)

        return node.transform(filled), used


def _in_parentheses(node: exp.Expr) -> exp.Expr:
    plain = not any(node.args.get(part) for part in ("order", "limit", "offset", "with_"))
    return node if plain and isinstance(node, exp.Select) else exp.Subquery(this=node)


def _with_joins(node: exp.Expr, joins: list[exp.Join]) -> exp.Expr:
    if not joins:
        return node
    node.set("joins", joins)
    return exp.Subquery(this=node)


def _alias_of(alias: Any) -> tuple[str | None, list[str]]:
    if alias is None:
        return None, []
    if isinstance(alias, exp.Identifier):
        return name_of(alias), []
    return name_of(alias.this), [
        name_of(one.this if isinstance(one, exp.ColumnDef) else one) or "" for one in alias.args.get("columns") or ()
    ]


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if len(names) > len(columns):
        raise Refusal(f"{len(columns)} columns are available, but {len(names)} are named", state="42P10")
    return tuple(
        Column(names[place] if place < len(names) else one.name, one.type) for place, one in enumerate(columns)
    )


def _known(columns: Columns) -> Columns:
    return tuple(Column(one.name, "text" if one.type == UNKNOWN else one.type) for one in columns)


def _distinct(columns: Columns) -> Columns:
    """The columns with different names: a name that occurs twice cannot be used anyhow."""
    seen: dict[str, int] = {}
    found = []
    for one in columns:
        count = seen[one.name] = seen.get(one.name, 0) + 1
        found.append(one if count == 1 else Column(f"{one.name}\x01{count}", one.type))
    return tuple(found)
