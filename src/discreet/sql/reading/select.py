"""The SELECT list, GROUP BY, HAVING, ORDER BY and LIMIT: which keys and aggregates are shown, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp, parse_one

from discreet.errors import QueryError
from discreet.sql.expressions import Expr, Field, Ordering, Origin, Range, Ref, Window, walk
from discreet.sql.measurement import canonical, identity_of
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Key, Measure, Output, Question, summed_over
from discreet.sql.reading.aggregates import Aggregates, default_name, noisy_column
from discreet.sql.reading.levels import check_adds_up, levels_of, listed_levels
from discreet.sql.reading.named_after import is_named_after_people
from discreet.sql.reading.parse import (
    Conditioned,
    Parsed,
    Text,
    grouped_items,
    ordered_items,
    parse_query,
    unread_arguments,
    without_alias,
)
from discreet.sql.reading.released import ReleasedTranslator
from discreet.sql.reading.scope import Scope
from discreet.sql.reading.sources import Sources
from discreet.sql.reading.values.domains import declared_values, fit_together, with_other
from discreet.sql.schema import Schema

MOST_NODES = 10_000
"""So many parts of other columns may be put in the places of their names: each that uses another twice doubles it."""
_CLAUSES = {"expressions", "from_", "joins", "where", "with_", "group"}
_AFTER = {"having", "qualify", "distinct", "order", "limit", "offset"}
"""The clauses that read rows, and those that read released numbers only."""


def read_question(
    source: Any,
    schema: Schema,
    ranges: Mapping[Expr, Range] | None = None,
    chosen: Mapping[Origin, Any] | None = None,
) -> Question:
    """The question in a text. Raises if something in it is wrong. `ranges` were found for values that it averages, and
    `chosen` for columns whose quantiles it chooses.
    """
    sql, query = tree = parse_query(source)
    if not isinstance(query, exp.Select):
        what = f"{query.key.upper()} of whole queries is not supported."
        sql.refuse(query, what, "Ask them one by one.", code="sql-union")
    try:
        question = canonical(replace(_Reader(sql, schema, query, ranges, chosen).question(), source=tree))
        return replace(question, meaning=identity_of(question, schema))
    except RecursionError:
        raise QueryError("This query is nested too deeply. Simplify it.", code="sql-too-complex") from None


def read_groups(sql: Text, query: exp.Select, schema: Schema) -> Question | None:
    """The groups of a query that shows nothing but keys. None if it measures something."""
    try:
        reader = _Reader(sql, schema, query)
        question = canonical(replace(reader.shown(), source=Parsed(sql, query)))
    except RecursionError:
        raise QueryError("This query is nested too deeply. Simplify it.", code="sql-too-complex") from None
    return None if reader.aggregates.measures or reader.levels or not reader.keys else question


@dataclass(frozen=True)
class RowsAsked:
    """The rows of FROM and WHERE and, if `value` is given, one number per row on a public grid."""

    source: Parsed
    relation: Relation
    value: str | None = None
    measure: Measure | None = None
    bounded: frozenset[Field] = frozenset()
    meaning: str = ""
    unranged: frozenset[Origin] = frozenset()

    @property
    def question(self) -> Question:
        """What the engine computes from them: the numbers, or the number of rows."""
        measures = (Measure("count") if self.measure is None else self.measure,)
        return Question(
            text=self.source.sql.text,
            same=self.source.query.sql(dialect="duckdb", comments=False),
            relation=self.relation,
            keys=(),
            key_fields=(),
            measures=measures,
            aggregates=(),
            outputs=(),
            meaning=self.meaning,
        )


def rows_in(source: str | Conditioned | Parsed, schema: Schema, value: str | None = None) -> RowsAsked:
    """The rows of a query `SELECT … FROM …`. Its SELECT list is ignored. `value` is an expression over the rows."""
    sql, query = tree = parse_query(source)
    if not isinstance(query, exp.Select) or unread_arguments(query, "expressions", "from_", "joins", "where", "with_"):
        raise QueryError(
            "Write only what stands after FROM: tables, joins and WHERE. Remove GROUP BY, HAVING, ORDER BY and LIMIT.",
            code="sql-rows-only",
        )
    try:
        scope = Sources(sql, schema).scope(query, {})
        if scope.relation.public:
            what = "This query reads public tables only."
            sql.refuse(
                query, what, "They are answered by the method sql, exactly and for free.", code="sql-public-only"
            )
        aggregates, measure = Aggregates(sql, schema, scope), None
        if value is not None:
            measure = aggregates.on_grid(_expression(value))
        bare = RowsAsked(
            tree,
            scope.relation,
            value,
            measure,
            frozenset(aggregates.bounded),
            unranged=frozenset(aggregates.unranged),
        )
        return replace(bare, meaning=identity_of(bare.question, schema))
    except RecursionError:
        raise QueryError("This query is nested too deeply. Simplify it.", code="sql-too-complex") from None


def _expression(text: str) -> exp.Expression:
    found = parse_one(text, read="duckdb")
    assert isinstance(found, exp.Expression)
    return found


class _Reader:
    """Reads one SELECT."""

    def __init__(
        self,
        sql: Text,
        schema: Schema,
        query: exp.Select,
        ranges: Mapping[Expr, Range] | None = None,
        chosen: Mapping[Origin, Any] | None = None,
    ) -> None:
        self.sql, self.schema, self.query = sql, schema, query
        self._put_in = 0
        self._check_clauses()
        self.scope: Scope = Sources(sql, schema).scope(query, {})
        if self.scope.relation.public:
            what = "This query reads public tables only."
            sql.refuse(
                query, what, "They are answered by the method sql, exactly and for free.", code="sql-public-only"
            )
        self.aggregates = Aggregates(sql, schema, self.scope, ranges, chosen)
        self.keys, self.key_nodes = self._keys()
        self.key_fields = tuple(
            Field(f"k{n}", key.name, key.expr.type, choices=key.domain) for n, key in enumerate(self.keys)
        )

    def _check_clauses(self) -> None:
        for name in unread_arguments(self.query, *_CLAUSES, *_AFTER):
            value = self.query.args[name]
            node = value if isinstance(value, exp.Expression) else self.query
            self.sql.refuse(node, f"{name.strip('_').upper()} is not supported.", "Remove it.", code="sql-clause")
        group = self.query.args.get("group")
        all_of_them = group is not None and not group.expressions
        for name in [] if group is None else unread_arguments(group, "expressions", *(["all"] if all_of_them else [])):
            what = f"GROUP BY {name.upper()} is not supported here."
            self.sql.refuse(group, what, "Write GROUP BY ROLLUP (region, city).", code="sql-grouping")

    def shown(self) -> Question:
        """The question without its aggregates: its groups, and what is shown of them."""
        outputs = tuple(self._output(item) for item in self.query.expressions)
        names = [output.name.lower() for output in outputs]
        if len(set(names)) != len(names):
            what = "Two columns of the answer have the same name. Rename one with AS."
            self.sql.unknown(self.query, what, code="sql-same-name")
        if any(f"{name}_error" in names for name in names):
            what = "A column has the name of another one's error, which ends in _error. Rename it with AS."
            self.sql.unknown(self.query, what, code="sql-same-name")
        limit, ties = self._limit()
        return Question(
            text=self.sql.text,
            same=self.query.sql(dialect="duckdb", comments=False),
            relation=self.scope.relation,
            keys=self.keys,
            key_fields=self.key_fields,
            measures=(),
            aggregates=(),
            outputs=outputs,
            having=self._condition("having"),
            qualify=self._condition("qualify"),
            distinct=self._distinct(outputs),
            order=tuple(self._ordering(item, outputs) for item in ordered_items(self.query)),
            limit=limit,
            ties=ties,
            offset=self._whole("offset") or 0,
            levels=self.levels,
        )

    def question(self) -> Question:
        """The complete question."""
        question = self.shown()
        if not self.aggregates.measures:
            self.sql.refuse(
                self.query,
                "This would show rows of individual people.",
                "Aggregate them: COUNT(*), AVG(age), MEDIAN(cost). For the groups alone, add COUNT(*).",
                code="sql-not-aggregated",
            )
        if self.levels:
            check_adds_up(self.sql, self.query, self.aggregates)
        return replace(
            question,
            measures=tuple(self.aggregates.measures),
            aggregates=tuple(self.aggregates.taken),
            bounded=frozenset(self.aggregates.bounded),
            unranged=frozenset(self.aggregates.unranged),
            uncentered=tuple(self.aggregates.uncentered),
            centered=(*self.aggregates.ranges, *self.aggregates.products),
        )

    # --- keys ---------------------------------------------------------------------------------------------

    def _keys(self) -> tuple[tuple[Key, ...], list[exp.Expression]]:
        keys, nodes, places = list[Key](), list[exp.Expression](), list[int]()
        items, sets = listed_levels(self.sql, grouped_items(self.query))
        for item in items:
            node, name = self._grouped(item)
            if list(node.find_all(exp.AggFunc)):
                self.sql.refuse(
                    item, "GROUP BY an aggregate is not supported.", "Group by columns.", code="sql-misplaced-aggregate"
                )
            expr = with_other(self.scope.translate(node))
            if expr.type == "other":
                self.sql.unknown(
                    item,
                    "GROUP BY takes numbers, text, dates and conditions, and this is none of them. Cast it to one.",
                    code="sql-key-type",
                )
            places.append(nodes.index(node) if node in nodes else len(nodes))
            if node not in nodes:
                domain = declared_values(expr, self.scope.relation, self.aggregates.work)
                if domain is None:
                    self._check_names_nobody(item, expr)
                keys.append(Key(name or node.sql(dialect="duckdb", comments=False), expr, domain))
                self.aggregates.bounded |= set(expr.fields()) if domain is not None else set()
                nodes.append(node)
        self.levels = levels_of(self.sql, self.query, [[places[item] for item in level] for level in sets])
        domains = fit_together([(key.expr, key.domain) for key in keys])
        return tuple(replace(key, domain=domain) for key, domain in zip(keys, domains, strict=True)), nodes

    def _check_names_nobody(self, item: exp.Expression, expr: Expr) -> None:
        """Refuse groups of one person each: none of them is ever shown. If one person is many units, the number of
        units would show the name, so that no group may be named after people in any other way, either.
        """
        schema = self.aggregates.schema
        if schema.unit.per is None and isinstance(expr, Ref) and expr.field == self.scope.relation.person:
            self.sql.refuse(
                item,
                f"Each value of {expr.field.name} is one person, and groups of one person are never shown.",
                "Group by something else. For numbers of each person, group in a subquery, and aggregate those: "
                f"SELECT AVG(n) FROM (SELECT {expr.field.name}, COUNT(*) AS n FROM … GROUP BY {expr.field.name}).",
                code="sql-shows-people",
            )
        if schema.unit.per is not None and is_named_after_people(expr, self.scope.relation, schema):
            self.sql.refuse(
                item,
                f"A group that is named after a person is not supported where a unit is one person in one "
                f"{schema.unit.per}: a person with many of them would be shown.",
                "Group by another column.",
                code="sql-key-person",
            )

    def _grouped(self, item: exp.Expression) -> tuple[exp.Expression, str]:
        """What a GROUP BY item refers to: itself, an alias of the SELECT list, or the column at its number."""
        if (place := self.sql.numbered(item, "GROUP BY", len(self.query.expressions))) is not None:
            chosen = self.query.expressions[place]
            return without_alias(chosen), chosen.alias_or_name
        if isinstance(item, exp.Column) and not item.table and not self.scope.knows(item.name):
            for chosen in self.query.expressions:
                if isinstance(chosen, exp.Alias) and chosen.alias.lower() == item.name.lower():
                    return without_alias(chosen), chosen.alias
        return item, item.name if isinstance(item, exp.Column) else ""

    # --- what is shown ------------------------------------------------------------------------------------

    def _output(self, item: exp.Expression) -> Output:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            what = "SELECT * would show rows of individual people."
            self.sql.refuse(item, what, "Ask for aggregates, such as COUNT(*).", code="sql-not-aggregated")
        node = without_alias(item)
        expr = self._noisy(node)
        name = item.alias or (self.scope.lookup(node).name if isinstance(node, exp.Column) else default_name(node))
        return Output(name, expr)

    def _ordering(self, item: exp.Ordered, outputs: tuple[Output, ...]) -> Ordering:
        node, expr = item.this, None
        if (place := self.sql.numbered(node, "ORDER BY", len(outputs))) is not None:
            expr = outputs[place].expr
        elif isinstance(node, exp.Column) and not node.table:
            expr = next((output.expr for output in outputs if output.name.lower() == node.name.lower()), None)
        expr = self._noisy(node) if expr is None else expr
        if not list(expr.fields()):
            what = "ORDER BY takes a column of the answer."
            self.sql.refuse(node, what, "Write its name or its number.", code="sql-order")
        return Ordering(expr, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))

    def _distinct(self, outputs: tuple[Output, ...]) -> bool:
        """Whether rows may be equal, so that DISTINCT shows some of them once. Groups differ in their keys."""
        clause = self.query.args.get("distinct")
        if clause is None:
            return False
        if clause.args.get("on"):
            what = "DISTINCT ON is not supported."
            instead = "Write QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY COUNT(*) DESC) = 1."
            self.sql.refuse(self.query, what, instead, code="sql-distinct")
        shown = {output.expr for output in outputs}
        return not {Ref(field) for field in self.key_fields} <= shown

    def _limit(self) -> tuple[int | None, bool]:
        """How many rows are shown, and whether those that are equal to the last one are shown, too."""
        clause = self.query.args.get("limit")
        if not isinstance(clause, exp.Fetch):
            return self._whole("limit"), False
        options, count = clause.args.get("limit_options"), clause.args.get("count")
        plain = count is None or (
            isinstance(count, exp.Literal) and str(count.this).isdecimal() and len(count.this) < 19
        )
        if not plain or (options is not None and options.args.get("percent")):
            what = "FETCH takes a whole number of rows."
            self.sql.refuse(clause, what, "Write FETCH FIRST 10 ROWS ONLY.", code="sql-limit")
        ties = options is not None and bool(options.args.get("with_ties"))
        if ties and not self.query.args.get("order"):
            what = "WITH TIES needs an order."
            self.sql.refuse(clause, what, "Add ORDER BY before FETCH.", code="sql-limit")
        return (1 if count is None else int(count.this)), ties

    def _whole(self, name: str) -> int | None:
        clause = self.query.args.get(name)
        if clause is None:
            return None
        value = clause.expression
        plain = isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdecimal()
        if unread_arguments(clause, "expression") or not plain or len(value.this) > 18:
            what = f"{name.upper()} takes a whole number."
            self.sql.refuse(clause, what, f"Write {name.upper()} 10.", code="sql-limit")
        return int(value.this)

    def _condition(self, name: str) -> Expr | None:
        clause = self.query.args.get(name)
        if clause is None:
            return None
        found = self._noisy(clause.this)
        if found.type != "boolean":
            what = f"{name.upper()} takes a condition that is true or false, such as COUNT(*) > 100."
            self.sql.unknown(clause.this, what, code="sql-not-a-condition")
        if name == "having" and any(isinstance(part, Window) for part in walk(found)):
            what = "HAVING chooses groups before windows are computed."
            self.sql.refuse(clause, what, "Write QUALIFY instead of HAVING.", code="sql-window")
        return found

    @cached_property
    def _aliases(self) -> dict[str, exp.Expression]:
        """The names of columns that are computed from aggregates."""
        named = [item for item in self.query.expressions if isinstance(item, exp.Alias)]
        return {item.alias.lower(): item.this for item in named if item.find(exp.AggFunc, exp.Window)}

    @cached_property
    def _key_aliases(self) -> dict[str, int]:
        """The names of columns that are keys, and their numbers."""
        named = [item for item in self.query.expressions if isinstance(item, exp.Alias) and item.this in self.key_nodes]
        return {item.alias.lower(): self.key_nodes.index(item.this) for item in named}

    def _noisy(self, node: exp.Expression) -> Expr:
        """An expression over keys and aggregates. Arithmetic on noisy values is free."""
        aliases = self._aliases

        def put(part: Any) -> Any:
            for number, key in enumerate(self.key_nodes):
                if part == key:
                    return noisy_column(part, f"k{number}")
            if isinstance(part, exp.Grouping | exp.GroupingId):
                return self._grouping(part)
            named = part.name.lower() if isinstance(part, exp.Column) and not part.table else ""
            if named in self._key_aliases and not self.scope.knows(named):
                return noisy_column(part, f"k{self._key_aliases[named]}")
            if named in aliases and aliases[named] is not node and not self.scope.knows(named):
                self._put_in += sum(1 for _ in aliases[named].walk())
                if self._put_in > MOST_NODES:
                    what = "Columns that use other columns make this expression too long. Simplify it."
                    self.sql.unknown(node, what, code="sql-too-complex")
                return aliases[named].copy().transform(put, copy=False)
            if isinstance(part.parent, exp.Window) and part.arg_key == "this":
                return part  # a function of released numbers
            if isinstance(part, exp.Filter | exp.AggFunc | exp.WithinGroup):
                return self.aggregates.shown(part)
            return part

        alone = isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)
        placed = put(node) if alone else node.copy().transform(put, copy=False)
        return ReleasedTranslator(self.sql, self._noisy_field)(placed)

    def _grouping(self, node: exp.Expression) -> exp.Expression:
        """Which keys a row is the sum over, as the bits of a number: the last key is the lowest bit."""
        asked = [self._grouped(item)[0] for item in node.expressions]
        known = [self.key_nodes.index(item) if item in self.key_nodes else None for item in asked]
        if not self.levels or not known or None in known:
            what = "GROUPING takes keys of GROUP BY ROLLUP, CUBE or GROUPING SETS."
            self.sql.refuse(node, what, "Write GROUPING(city) with GROUP BY ROLLUP (city).", code="sql-grouping")
        bits = [noisy_column(item, f"gk{number}") for item, number in zip(node.expressions, known, strict=True)]
        found: Any = bits[0]
        for bit in bits[1:]:
            found = exp.Add(this=exp.Mul(this=found, expression=exp.Literal.number(2)), expression=bit)
        return exp.Paren(this=found)

    def _noisy_field(self, node: exp.Column) -> Field:
        if node.table == "noisy":
            keys = {field.id: field for field in (*self.key_fields, *map(summed_over, self.key_fields))}
            found = self.aggregates.fields.get(node.name) or keys.get(node.name)
            if found is not None:
                return found
        if self.schema.leads(self.scope.lookup(node).origin) == "person":
            column = node.sql(dialect="duckdb", comments=False)
            instead = f"Count people with COUNT(DISTINCT {column})."
            self.sql.refuse(node, f"{node.name} identifies people.", instead, code="sql-shows-people")
        what = f"{node.name} is a value of individual people."
        self.sql.refuse(node, what, "Aggregate it, or put it into GROUP BY.", code="sql-not-aggregated")
