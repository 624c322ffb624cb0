"""Statements over answers: queries in FROM that are questions of their own are answered first, and the statement around
them runs on what was released, and on public tables.

`WITH this AS (SELECT city, COUNT(*) AS n FROM visits WHERE … GROUP BY city), last AS (…) SELECT … FROM this JOIN last`
asks two questions. Everything after their noise is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

from sqlglot import exp

from discreet.errors import DiscreetError
from discreet.sql.expressions import Ref
from discreet.sql.reading.aggregates import AGGREGATES, default_name
from discreet.sql.reading.asked_first import VALUES, Asked, Role, put_mark, role_of, without_queries
from discreet.sql.reading.grouped import aliased
from discreet.sql.reading.parse import Text, grouped_items, parse_query, without_alias
from discreet.sql.reading.released import WINDOWS, ReleasedTranslator
from discreet.sql.reading.select import read_question
from discreet.sql.reading.sources import Sources
from discreet.sql.reading.subqueries import parts_of_condition
from discreet.sql.reading.unstopped import unstopped
from discreet.sql.schema import Schema, Table

Kind = Literal["question", "answers", "public", "rows"]
"""What a query makes its rows from: those of many people, which it aggregates; answers; public tables; or those of
people, which it hands on."""
Named = dict[str, tuple[Kind, exp.CTE]]
"""The queries in WITH, by name."""
_STRUCTURE = (
    *(exp.Select, exp.Union, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group, exp.Having),
    *(
        exp.Qualify,
        exp.Order,
        exp.Ordered,
        exp.Limit,
        exp.Offset,
        exp.Fetch,
        exp.LimitOptions,
        exp.Alias,
        exp.TableAlias,
    ),
    *(exp.Table, exp.Identifier, exp.Star, exp.Distinct, exp.Filter, exp.Window, exp.WindowSpec, exp.Var, exp.DataType),
    *(exp.DataTypeParam, exp.Exists, exp.Any, exp.All),
)
"""What a statement is made of, beside expressions."""
_LARGE = (exp.Pad, exp.Anonymous)
"""What can take much memory."""
_CAN_FAIL = (
    *(exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop),
    *(exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2),
    *(exp.RegrSxx, exp.RegrSyy, exp.RegrSxy, exp.RegrAvgx, exp.RegrAvgy),
    *_LARGE,
)
"""What some numbers stop: nothing of that kind runs after a charge."""


@dataclass(frozen=True)
class Combination:
    """A statement over the answers of questions, which it names by `name_of`, and over `public` tables.

    If `is_last`, it is the last question, and the others are asked first because it needs their answers.
    """

    sql: Text
    questions: tuple[Asked, ...]
    statement: exp.Query
    public: tuple[Table, ...] = ()
    is_last: bool = False

    @property
    def used(self) -> list[int]:
        """The numbers of the answers that the statement itself reads."""
        read = {table.name for table in self.statement.find_all(exp.Table)}
        return [number for number in range(len(self.questions)) if name_of(number) in read]

    def text(self, tables: dict[str, str]) -> str:
        """The statement in DuckDB's dialect, with something to read in the place of each answer and public table."""
        placed = self.statement.copy()
        ctes = {cte.alias.lower() for cte in placed.find_all(exp.CTE)}
        for table in list(placed.find_all(exp.Table)):
            name = table.name if table.name in tables else table.name.lower()
            if name in tables and name not in ctes:
                alias = exp.to_identifier(table.alias or table.name, quoted=True)
                table.replace(exp.to_table(tables[name], alias=alias))
        return str(unstopped(placed).sql(dialect="duckdb", comments=False))

    @property
    def chooses(self) -> bool:
        """Whether released numbers can decide which rows are shown."""
        chosen = (exp.Where, exp.Having, exp.Qualify, exp.Limit, exp.Fetch, exp.Distinct)
        unions = self.statement.find_all(exp.Union)
        return self.statement.find(*chosen) is not None or any(union.args.get("distinct") for union in unions)

    def unchosen(self, is_fixed: Callable[[Any], bool]) -> Combination:
        """The same statement, in which no noise chooses what the last step shows: how rows may be moved is simulated
        before any are chosen. Conditions that are fixed, as they depend on keys and public rows only, stay.
        """
        statement: Any = self.statement.copy()
        if isinstance(statement, exp.Select):
            for name in ("qualify", "order", "limit", "offset"):
                statement.set(name, None)
            listed = any(
                not join.args.get("on") and not join.args.get("using") for join in statement.args.get("joins") or ()
            )
            if not listed and not any(item.find(exp.Window) for item in statement.expressions):
                for name, clause in (("where", exp.Where), ("having", exp.Having)):
                    given: Any = statement.args.get(name)
                    parts = [] if given is None else parts_of_condition(given.this)
                    kept = [part for part in parts if is_fixed(part)]
                    statement.set(name, clause(this=exp.and_(*kept)) if kept else None)
        return replace(self, statement=statement)

    def branches(self) -> list[exp.Select]:
        """The SELECTs whose rows are shown, one below the other."""
        found: list[exp.Select] = []
        waiting: list[Any] = [self.statement]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Select):
                found.append(node)
            else:
                waiting += [side for side in (node.this, node.args.get("expression")) if side is not None]
        return found


def name_of(number: int) -> str:
    """The name of an answer within a statement."""
    return f"answer {number}"


def combination_in(source: Any, schema: Schema) -> Combination | None:
    """The questions in a statement, and the statement over their answers. None if it is itself one question. There are
    no questions in a statement over public tables.
    """
    if not isinstance(source, str):
        return None
    sql, query = parse_query(source)
    reader = _Reader(sql, schema)
    whole: Any = query.copy()
    kind = reader.kind_of(whole, {})
    if kind == "question" and whole.find(exp.Subquery):
        last = reader.ask(whole, {})
        return Combination(sql, tuple(reader.questions), _all_of(last), is_last=True) if last else None
    if kind not in ("answers", "public"):
        return None
    reader.read(whole, {})
    public = reader.check(whole)
    return Combination(sql, tuple(reader.questions), whole, public)


def unread_statement(sql: Text, query: exp.Query, schema: Schema) -> Combination:
    """A statement that no row of a private table can change. It is to run where private tables have no rows."""
    reader = _Reader(sql, schema)
    reader.public = {table.name.lower(): table for table in schema.tables.values()}
    whole: Any = query.copy()
    for select in [whole] if isinstance(whole, exp.Select) else []:
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                item.replace(exp.alias_(item.copy(), default_name(item), quoted=True))
    return Combination(sql, (), whole, reader.check(whole))


class _Reader:
    def __init__(self, sql: Text, schema: Schema) -> None:
        self.sql, self.schema = sql, schema
        self.questions: list[Asked] = []
        self.public = {table.name.lower(): table for table in schema.tables.values() if table.public}

    def kind_of(self, query: exp.Expression, named: Named) -> Kind:
        """What the rows of a query are made from."""
        if isinstance(query, exp.Subquery):
            return self.kind_of(query.this, named)
        if isinstance(query, exp.Union):
            return _together(self.kind_of(side, named) for side in (query.this, query.expression))
        if not isinstance(query, exp.Select):
            return "rows"
        for cte in ctes_of(query):
            named = {**named, cte.alias.lower(): (self.kind_of(cte.this, named), cte)}
        sources = [self._kind_of_source(source, named) for source in _sources(query)]
        if "answers" in sources:
            return "answers"
        if "rows" not in sources:
            return _together([*sources, *(self.kind_of(part.this, named) for part in _subqueries(query))])
        return "question" if self._is_question(query, named) else "rows"

    def _kind_of_source(self, source: exp.Expression, named: Named) -> Kind:
        name = source.name.lower()
        kind: Kind = "public" if name in self.public and not source.args.get("db") else "rows"
        if isinstance(source, exp.Subquery):
            kind = self.kind_of(source, named)
        elif name in named:
            kind, _ = named[name]
        return "answers" if kind == "question" else kind

    def _is_question(self, query: exp.Select, named: Named) -> bool:
        """Whether a query aggregates the rows of many people. One that groups by the person hands on rows of people."""
        group = query.args.get("group")
        if group is None:
            return any(map(has_aggregate, query.expressions))
        rows = {name: without_queries(cte) for name, cte in _rows(named).items()}
        scope = Sources(self.sql, self.schema).scope(without_queries(query), rows)
        for item in grouped_items(query):
            place = self.sql.numbered(item, "GROUP BY", len(query.expressions))
            node = (aliased(scope, query, item) or item) if place is None else without_alias(query.expressions[place])
            if isinstance(node, exp.Column) and scope.has(node):
                found = scope.translate(node)
                if isinstance(found, Ref) and self.schema.leads(found.field.origin):
                    return False
        return True

    def read(self, query: exp.Expression, named: Named) -> None:
        """Put the name of an answer in the place of each question."""
        if isinstance(query, exp.Subquery | exp.Union):
            for side in (query.this, query.args.get("expression")):
                if side is not None:
                    self._place(side, named)
            return
        for cte in ctes_of(query):
            kind = self.kind_of(cte.this, named)
            if kind == "rows":
                cte.pop()  # its rows are read by questions only
            else:
                self._place(cte.this, named)
            named = {**named, cte.alias.lower(): ("answers" if kind == "question" else kind, cte)}
        clause = query.args.get("with_")
        if clause is not None and not clause.expressions:
            clause.pop()
        for source in _sources(query):
            if isinstance(source, exp.Subquery):
                self._place(source.this, named)
            elif self._kind_of_source(source, named) == "rows":
                self._refuse_rows(source)
        for part in _subqueries(query):
            self._place(part.this, named)

    def _place(self, query: exp.Expression, named: Named) -> None:
        if self.kind_of(query, named) != "question":
            self.read(query, named)
            return
        query.replace(_all_of(self.ask(query, _rows(named))))

    def ask(self, query: exp.Expression, rows: dict[str, exp.CTE]) -> int:
        """The number of a question in the list of those to ask. What it needs comes before it."""
        whole = _with_rows(query, rows)
        for part in reversed(list(whole.find_all(exp.Subquery))):
            role = role_of(part)
            if role is not None and part.root() is whole:
                self._ask_first(part, role, whole)
        asked = Asked(whole)
        known = [one.key for one in self.questions]
        if asked.key not in known:
            self.questions.append(asked)
        return [*known, asked.key].index(asked.key)

    def _ask_first(self, part: exp.Subquery, role: Role, whole: exp.Query) -> None:
        """Ask a query first that is about everybody, and stands for a number or for the values of IN."""
        query: Any = part.this
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            return
        rows = {cte.alias.lower(): cte for cte in whole.find_all(exp.CTE) if not _is_inside(part, cte)}
        alone = Asked(_with_rows(query, rows))
        try:
            if self.kind_of(alone.query, {}) != "question":
                return
            question = read_question(alone.text(), self.schema)
        except DiscreetError:
            return  # it is about the same person, or about public tables, or is refused where it stands
        kind = question.outputs[0].expr.type
        if kind != "other" and (question.keys if role == "values" else not question.keys and kind in VALUES):
            put_mark(part, role, self.ask(alone.query, {}), kind)

    def _refuse_rows(self, node: exp.Expression) -> NoReturn:
        what = "Rows of people cannot be joined to an answer: its noise would mix with them."
        instead = "Ask about the rows alone, or aggregate them in a query of their own."
        self.sql.refuse(node, what, instead, code="sql-inner-group")

    def check(self, statement: exp.Query) -> tuple[Table, ...]:
        """Refuse what is not listed: the statement runs in a database, and only arithmetic should reach it. Returns the
        public tables that it reads.
        """
        known = {*ReleasedTranslator.allowed, *AGGREGATES, *WINDOWS, *_STRUCTURE}
        known = known.difference((*_CAN_FAIL, exp.Array) if self.questions else _LARGE)
        ctes = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
        names = {name_of(n) for n in range(len(self.questions))} | ctes | self.public.keys()
        node: Any
        for node in statement.walk():
            if type(node) not in known:
                where = "over answers" if self.questions else "over public tables"
                what = f"{self.sql.name(node)} is not supported in a statement {where}."
                self.sql.refuse(node, what, "Use arithmetic, joins, aggregates and windows.", code="sql-function")
            if self.questions and isinstance(node, exp.Ntile) and not isinstance(node.this, exp.Literal):
                what = "NTILE takes a whole number that is written out."
                self.sql.refuse(node, what, "Write NTILE(4) OVER (ORDER BY n).", code="sql-limit")
            if isinstance(node, exp.Table) and (
                not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.name.lower() not in names
            ):
                self._refuse_rows(node)
        read = {table.name.lower() for table in statement.find_all(exp.Table)} - ctes
        return tuple(table for name, table in self.public.items() if name in read)


def _together(kinds: Iterable[Kind]) -> Kind:
    """What rows are made from that come from several queries."""
    found = set(kinds)
    if "rows" in found or not found:
        return "rows"
    return "public" if found == {"public"} else "answers"


def _rows(named: Named) -> dict[str, exp.CTE]:
    """The queries that a question can read."""
    return {name: cte for name, (kind, cte) in named.items() if kind in ("rows", "public")}


def ctes_of(query: exp.Expr) -> list[exp.CTE]:
    """The queries in WITH."""
    clause = query.args.get("with_")
    return [] if clause is None or clause.args.get("recursive") else list(clause.expressions)


def _sources(query: exp.Expression) -> list[Any]:
    """What stands after FROM and JOIN."""
    first = query.args.get("from_")
    return [] if first is None else [first.this, *(join.this for join in query.args.get("joins") or [])]


def _subqueries(query: exp.Expression) -> list[Any]:
    """The queries inside the expressions of a query."""
    outside = {id(source) for source in _sources(query)}
    found = []
    for part in query.find_all(exp.Subquery, exp.Exists):
        above = part.parent_select
        if above is query and id(part) not in outside:
            found.append(part)
    return found


def has_aggregate(item: exp.Expression) -> bool:
    """Whether an expression aggregates rows. A window does not, and neither does a query inside it."""
    own = [part for part in item.find_all(exp.AggFunc) if part.parent_select is item.parent_select]
    return any(not isinstance(_around(part), exp.Window) for part in own)


def _around(part: exp.Expr) -> exp.Expr | None:
    """What an aggregate stands in, with its FILTER and IGNORE NULLS."""
    above = part.parent
    while isinstance(above, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return above


def _all_of(number: int) -> exp.Select:
    """All columns of an answer."""
    table = exp.to_table("x")
    table.set("this", exp.to_identifier(name_of(number), quoted=True))
    return exp.select("*").from_(table)


def _is_inside(part: exp.Expression, cte: exp.CTE) -> bool:
    above: Any = part
    while above is not None and above is not cte:
        above = above.parent
    return above is cte


def _with_rows(query: exp.Expression, rows: dict[str, exp.CTE]) -> Any:
    """A question of its own, with the named queries that it reads."""
    text: Any = query.unnest().copy()
    needed: list[exp.CTE] = []
    wanted = [text]
    while wanted:
        for table in wanted.pop().find_all(exp.Table):
            cte = rows.get(table.name.lower())
            if cte is not None and cte not in needed:
                needed.append(cte)
                wanted.append(cte.this)
    order = {id(cte): place for place, cte in enumerate(rows.values())}
    own = ctes_of(text)
    listed = [cte.copy() for cte in sorted(needed, key=lambda cte: order[id(cte)])] + [cte.copy() for cte in own]
    if listed:
        text.set("with_", exp.With(expressions=listed))
    return text
