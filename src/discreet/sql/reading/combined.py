"""Statements over answers: queries in FROM that are questions of their own are answered first, and the statement around
them runs on what was released.

`WITH this AS (SELECT city, COUNT(*) AS n FROM visits WHERE … GROUP BY city), last AS (…) SELECT … FROM this JOIN last`
asks two questions. Everything after their noise is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discreet.sql.expressions import Ref
from discreet.sql.reading.aggregates import AGGREGATES
from discreet.sql.reading.parse import Text, parse_query, without_alias
from discreet.sql.reading.released import NAMED, WINDOWS, ReleasedTranslator
from discreet.sql.reading.sources import Sources
from discreet.sql.schema import Schema

_MIXED = "Rows of people cannot be joined to an answer: its noise would mix with them."
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


@dataclass(frozen=True)
class Combination:
    """A statement over the answers of questions, which it names by `name_of`."""

    sql: Text
    questions: tuple[str, ...]
    statement: exp.Query

    def text(self, tables: dict[str, str]) -> str:
        """The statement in DuckDB's dialect, with something to read in the place of each answer."""
        placed = self.statement.copy()
        for table in list(placed.find_all(exp.Table)):
            if table.name in tables:
                alias = table.alias or table.name
                table.replace(exp.to_table(tables[table.name], alias=exp.to_identifier(alias, quoted=True)))
        return placed.sql(dialect="duckdb", comments=False)

    @property
    def chooses(self) -> bool:
        """Whether released numbers can decide which rows are shown."""
        chosen = (exp.Where, exp.Having, exp.Qualify, exp.Limit, exp.Fetch, exp.Distinct)
        unions = self.statement.find_all(exp.Union)
        return self.statement.find(*chosen) is not None or any(union.args.get("distinct") for union in unions)

    def unchosen(self) -> Combination:
        """The same statement, in which the last step shows all rows: how rows may be moved is simulated before any are
        chosen.
        """
        statement: Any = self.statement.copy()
        if isinstance(statement, exp.Select):
            for name in ("qualify", "order", "limit", "offset"):
                statement.set(name, None)
            listed = any(
                not join.args.get("on") and not join.args.get("using") for join in statement.args.get("joins") or ()
            )
            if not listed and not any(item.find(exp.Window) for item in statement.expressions):
                statement.set("where", None)
                statement.set("having", None)
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
    """The questions in a statement, and the statement over their answers. None if it is itself one question."""
    if not isinstance(source, str):
        return None
    sql, query = parse_query(source)
    reader = _Reader(sql, schema)
    whole: Any = query.copy()
    if not reader.is_over_answers(whole, {}):
        return None
    reader.read(whole, {}, set())
    reader.check(whole)
    return Combination(sql, tuple(reader.questions), whole)


class _Reader:
    def __init__(self, sql: Text, schema: Schema) -> None:
        self.sql, self.schema = sql, schema
        self.questions: list[str] = []

    def is_over_answers(self, query: exp.Expression, rows: dict[str, exp.CTE]) -> bool:
        """Whether a query reads answers, and no rows of people."""
        if isinstance(query, exp.Subquery):
            return self.is_over_answers(query.this, rows)
        if isinstance(query, exp.Union):
            return all(self._is_answer(side, rows) for side in (query.this, query.expression))
        if not isinstance(query, exp.Select):
            return False
        rows, answers = dict(rows), set()
        for cte in _ctes(query):
            if self._is_answer(cte.this, rows):
                answers.add(cte.alias.lower())
            else:
                rows[cte.alias.lower()] = cte
        sources = list(_sources(query))
        if not sources:
            inner = [part.this for part in _subqueries(query)]
            return bool(inner) and all(self._is_answer(part, rows) for part in inner)
        return any(
            self._is_answer(source.this, rows) if isinstance(source, exp.Subquery) else source.name.lower() in answers
            for source in sources
        )

    def _is_answer(self, query: exp.Expression, rows: dict[str, exp.CTE]) -> bool:
        return self.is_over_answers(query, rows) or self._is_question(query, rows)

    def _is_question(self, query: exp.Expression, rows: dict[str, exp.CTE]) -> bool:
        """Whether a query aggregates the rows of many people. One that groups by the person hands on rows of people."""
        while isinstance(query, exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select) or not _sources(query):
            return False
        group = query.args.get("group")
        if group is None:
            return any(map(_has_aggregate, query.expressions))
        scope = Sources(self.sql, self.schema).scope(query, rows)
        if scope.relation.public:
            return False
        for item in group.expressions:
            place = self.sql.numbered(item, "GROUP BY", len(query.expressions))
            node = item if place is None else without_alias(query.expressions[place])
            if isinstance(node, exp.Column) and scope.has(node):
                found = scope.translate(node)
                if isinstance(found, Ref) and self.schema.leads(found.field.origin):
                    return False
        return True

    def read(self, query: exp.Expression, rows: dict[str, exp.CTE], answers: set[str]) -> None:
        """Put the name of an answer in the place of each question."""
        if isinstance(query, exp.Subquery | exp.Union):
            for side in (query.this, query.args.get("expression")):
                if side is not None:
                    self._place(side, rows, answers)
            return
        rows, answers = dict(rows), set(answers)
        for cte in _ctes(query):
            if self._is_answer(cte.this, rows):
                self._place(cte.this, rows, answers)
                answers.add(cte.alias.lower())
            else:
                rows[cte.alias.lower()] = cte
                cte.pop()
        clause = query.args.get("with_")
        if clause is not None and not clause.expressions:
            clause.pop()
        for source in list(_sources(query)):
            if isinstance(source, exp.Subquery):
                self._place(source.this, rows, answers)
            elif source.name.lower() not in answers:
                instead = "Ask about the rows alone, or aggregate them in a query of their own."
                self.sql.refuse(source, _MIXED, instead, code="sql-inner-group")
        for part in _subqueries(query):
            self._place(part.this, rows, answers)

    def _place(self, query: exp.Expression, rows: dict[str, exp.CTE], answers: set[str]) -> None:
        if self.is_over_answers(query, rows) or not self._is_question(query, rows):
            self.read(query, rows, answers)
            return
        text = _with_rows(query, rows)
        if text not in self.questions:
            self.questions.append(text)
        name = name_of(self.questions.index(text))
        table = exp.to_table("x")
        table.set("this", exp.to_identifier(name, quoted=True))
        query.replace(exp.select("*").from_(table))

    def check(self, statement: exp.Query) -> None:
        """Refuse what is not listed: the statement runs in a database, and only arithmetic should reach it."""
        known = {*ReleasedTranslator.allowed, *AGGREGATES, *WINDOWS, *_STRUCTURE}
        names = {name_of(n) for n in range(len(self.questions))}
        names |= {cte.alias for cte in statement.find_all(exp.CTE)}
        node: Any
        for node in statement.walk():
            strange = isinstance(node, exp.Anonymous) and node.name.lower() not in NAMED
            if type(node) not in known or strange:
                what = f"{self.sql.name(node)} is not supported in a statement over answers."
                self.sql.refuse(node, what, "Use arithmetic, joins, aggregates and windows.", code="sql-function")
            if isinstance(node, exp.Table) and (
                not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.name not in names
            ):
                instead = "Ask about the rows alone, or aggregate them in a query of their own."
                self.sql.refuse(node, _MIXED, instead, code="sql-inner-group")


def _ctes(query: exp.Expression) -> list[exp.CTE]:
    clause = query.args.get("with_")
    return [] if clause is None or clause.args.get("recursive") else list(clause.expressions)


def _sources(query: exp.Expression) -> list[Any]:
    """What stands after FROM and JOIN."""
    first = query.args.get("from_")
    return [] if first is None else [first.this, *(join.this for join in query.args.get("joins") or [])]


def _subqueries(query: exp.Expression) -> list[exp.Subquery]:
    """The queries inside the expressions of a query."""
    outside = {id(source) for source in _sources(query)}
    found = []
    for part in query.find_all(exp.Subquery):
        above = part.parent_select
        if above is query and id(part) not in outside:
            found.append(part)
    return found


def _has_aggregate(item: exp.Expression) -> bool:
    """Whether an expression aggregates rows. A window does not."""
    return any(not isinstance(part.parent, exp.Window) for part in item.find_all(exp.AggFunc))


def _with_rows(query: exp.Expression, rows: dict[str, exp.CTE]) -> str:
    """A question as a text of its own, with the named queries that it reads."""
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
    own = _ctes(text)
    listed = [cte.copy() for cte in sorted(needed, key=lambda cte: order[id(cte)])] + [cte.copy() for cte in own]
    if listed:
        text.set("with_", exp.With(expressions=listed))
    return str(text.sql(dialect="duckdb", comments=False))
