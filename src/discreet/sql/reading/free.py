"""Statements whose answer no row of anybody can change: they are answered exactly, and cost nothing.

`SELECT * FROM visits LIMIT 0` and `SELECT TRUE FROM visits WHERE 1 <> 1` have no rows whatever the data are: programs
ask them for the names and types of columns. `SELECT COUNT(*) FROM visits WHERE FALSE` is 0. `SELECT DISTINCT city FROM
visits` lists the cities that are declared. Only the text and the declarations decide what is free.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.errors import DiscreetError
from discreet.sql.expressions import conjuncts
from discreet.sql.pricing.relation import Where
from discreet.sql.question import Question
from discreet.sql.reading.combined import ctes_of, has_aggregate
from discreet.sql.reading.parse import grouped_items, parse_query
from discreet.sql.reading.select import read_groups
from discreet.sql.reading.values.domains import MOST_COMPUTED
from discreet.sql.reading.values.public_values import UNKNOWN, computed
from discreet.sql.schema import Schema

_ANY = frozenset({True, False, None})
"""What a condition may be if it is not known: true, false or NULL."""
_COMPARED: dict[type[exp.Expression], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_SEVERAL = (exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)
"""What may group all rows, so that there is a group even if there is no row."""


def is_unread(query: exp.Query, schema: Schema) -> bool:
    """Whether a statement names tables of people, and none of their rows can change what it says."""
    private = {table.name.lower() for table in schema.tables.values() if not table.public}
    if not any(table.name.lower() in private for table in query.find_all(exp.Table)):
        return False
    if any(clause.args.get("recursive") for clause in query.find_all(exp.With)):
        return False
    public = {table.name.lower() for table in schema.tables.values() if table.public}
    try:
        return is_empty(query) or _read_by(query, {}) <= public
    except RecursionError:
        return False  # it is refused where it is read


def is_empty(query: exp.Expr) -> bool:
    """Whether the text says that a query has no rows, whatever its tables hold."""
    if not isinstance(query, exp.Query):
        return False
    if _is_cut(query):
        return True
    if isinstance(query, exp.Subquery):
        return not query.args.get("joins") and is_empty(query.this)
    if isinstance(query, exp.Union):
        return is_empty(query.this) and is_empty(query.expression)
    if not isinstance(query, exp.Select) or _has_one_row(query):
        return False
    source: Any = query.args.get("from_")
    alone = source is not None and not query.args.get("joins")
    return _never_holds(query, "where") or (alone and is_empty(source.this))


def _is_cut(query: exp.Query) -> bool:
    """Whether a query shows none of the rows that it computes."""
    limit: Any = query.args.get("limit")
    many = None if limit is None else limit.args.get("count") or limit.args.get("expression")
    zero = isinstance(many, exp.Literal) and not many.is_string and _number(many) == 0
    return zero or _never_holds(query, "having") or _never_holds(query, "qualify")


def _has_one_row(query: exp.Select) -> bool:
    """Whether a query may have a row although its tables have none: an aggregate of all rows."""
    if query.args.get("group") is not None:
        items = grouped_items(query)
        return not items or any(isinstance(item, _SEVERAL) for item in items)
    after = [query.args[name] for name in ("having", "qualify", "order") if query.args.get(name) is not None]
    return query.args.get("having") is not None or any(map(has_aggregate, (*query.expressions, *after)))


def _read_by(node: exp.Expr, named: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The tables whose rows may change what a part of a statement says. `named` has those of the queries in WITH."""
    skipped: tuple[str, ...] = ()
    if isinstance(node, exp.Query):
        if _is_cut(node):
            return frozenset()
        for cte in ctes_of(node):
            named = {**named, cte.alias.lower(): _read_by(cte.this, named)}
        skipped = ("with_", "from_", "joins", "where") if _never_holds(node, "where") else ("with_",)
    found = frozenset[str]()
    if isinstance(node, exp.Table):
        plain = isinstance(node.this, exp.Identifier) and not node.args.get("db")
        name = node.name.lower() if plain else node.sql()
        found = named.get(name, frozenset({name}))
    return found.union(*(_read_by(part, named) for part in _parts(node, skipped)))


def _parts(node: exp.Expr, skipped: tuple[str, ...]) -> Iterator[Any]:
    for name, value in node.args.items():
        if name not in skipped:
            yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr))


def _never_holds(query: exp.Expr, clause: str) -> bool:
    """Whether a clause has a condition that cannot hold, whatever the rows are."""
    given = query.args.get(clause)
    return given is not None and True not in _outcomes(given.this)


def _outcomes(node: Any) -> frozenset[bool | None]:
    """What a condition may be. Only constants say more than that it may be anything."""
    match node:
        case exp.Paren():
            return _outcomes(node.this)
        case exp.Boolean():
            return frozenset({bool(node.this)})
        case exp.Not():
            return frozenset(None if one is None else not one for one in _outcomes(node.this))
        case exp.And() | exp.Or():
            both = _outcomes(node.this), _outcomes(node.expression)
            strong = isinstance(node, exp.Or)  # one true makes OR true, one false makes AND false
            return frozenset(
                strong if strong in (a, b) else None if None in (a, b) else not strong for a in both[0] for b in both[1]
            )
    if type(node) in _COMPARED:
        sides = _number(node.this), _number(node.expression)
        if None not in sides:
            return frozenset({_COMPARED[type(node)](*sides)})
    return _ANY


def _number(node: Any) -> Fraction | None:
    """The number that is written. None if something else is."""
    if isinstance(node, exp.Paren):
        return _number(node.this)
    if isinstance(node, exp.Neg):
        found = _number(node.this)
        return None if found is None else -found
    plain = isinstance(node, exp.Literal) and not node.is_string and len(node.this) < 20
    try:
        return Fraction(node.this) if plain and "e" not in node.this.lower() else None
    except ValueError:
        return None


def listed_in(source: Any, schema: Schema) -> Question | None:
    """The question whose groups a statement lists, with nothing about them: DISTINCT columns, or GROUP BY without
    aggregates. None if it is another statement, or one that is refused.
    """
    sql, query = parse_query(source)
    if not isinstance(query, exp.Select) or (query.args.get("group") is None and query.args.get("distinct") is None):
        return None
    if any(shown.find(exp.AggFunc) for shown in query.expressions):
        return None
    if query.args.get("group") is None:
        if any(window.parent_select is query for window in query.find_all(exp.Window)):
            return None  # it is computed before rows are made distinct
        query = query.copy()
        numbers = [exp.Literal.number(number) for number in range(1, len(query.expressions) + 1)]
        query.set("group", exp.Group(expressions=numbers))
    try:
        found = read_groups(sql, query, schema)
    except DiscreetError:
        return None
    reads = found is not None and any(any(key.expr.fields()) for key in found.keys)
    return found if reads else None


def possible(question: Question, groups: Sequence[tuple[Any, ...]]) -> list[int]:
    """The places of the groups for which WHERE can hold. All of them if there are too many to try."""
    relation, keys = question.relation, [key.expr for key in question.keys]
    holds = [computed(one, keys) for one in conjuncts(relation.condition)] if isinstance(relation, Where) else []
    if len(groups) * len(holds) > MOST_COMPUTED:
        return list(range(len(groups)))
    return [n for n, group in enumerate(groups) if all(hold(group) in (True, UNKNOWN) for hold in holds)]
