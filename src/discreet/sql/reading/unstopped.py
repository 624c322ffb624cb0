"""Statements over released numbers, written so that no number stops them: what cannot be computed is NULL."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

LONGEST = 1000
"""A text that is longer is cut: repeated replacing in one row could fill the memory."""
_COMPUTING = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.IntDiv, exp.Mod, exp.Pow, exp.Exp)
_GROWING = (exp.Replace, exp.ConcatWs, exp.Concat, exp.DPipe)
_NOT_TRIED = (exp.AggFunc, exp.Window, exp.Query, exp.Interval)
"""What DuckDB does not take inside TRY, and dates that are moved."""
_CHANGED = (exp.Cast, *_COMPUTING, *_GROWING)
_CUTTING = (exp.Substring, exp.Left, exp.Right)
_COUNTING = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)
_OF_NUMBERS = (exp.Mul, exp.Neg, exp.Abs, exp.IntDiv, exp.Mod, exp.Pow, exp.Exp)
"""What is a number, or takes numbers only."""
_COUNTED = (exp.Limit, exp.Offset, exp.Fetch, exp.WindowSpec)
"""Clauses that take a number."""


def unstopped(statement: Any) -> Any:
    """The same statement, in which no row can stop a cast or arithmetic, and no text grows without end. It is changed
    in place.
    """
    for select in statement.find_all(exp.Select):
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star) and item.find(*_CHANGED):
                name = item.sql(dialect="duckdb", comments=False).lower()
                item.replace(exp.alias_(item.copy(), name, quoted=True))
    for node in reversed(list(statement.walk())):  # what is inside comes first
        if node.find_ancestor(*_COUNTED) is None:
            _change(node)
    return statement


def _change(node: Any) -> None:
    if type(node) is exp.Cast and not isinstance(node.this, exp.Literal):
        node.replace(exp.TryCast(this=node.this, to=node.to))
    elif isinstance(node, _GROWING):
        for name in ("this", "replacement") if isinstance(node, exp.Replace) else ():
            _put_into(node.args[name], "left", exp.Literal.number(LONGEST))
        _put_into(node, "left", exp.Literal.number(LONGEST))
    elif isinstance(node, exp.AggFunc | exp.Filter | exp.Window):
        _widen(node)
    elif _may_fail(node) and node.find(*_NOT_TRIED) is None:
        _put_into(node, "TRY")


def _may_fail(node: Any) -> bool:
    return isinstance(node, _CUTTING) or (isinstance(node, _COMPUTING) and not _is_inside_other(node))


def _widen(node: Any) -> None:
    """Compute with an aggregate as DOUBLE, which has no end: DuckDB does not take it inside TRY."""
    for cast in node.find_all(exp.TryCast):
        if cast.to.is_type("decimal"):
            cast.set("to", exp.DataType.build("double"))
    above, inner = node.parent, node
    while isinstance(above, exp.Paren):
        above = above.parent
    while isinstance(inner, exp.Window | exp.Filter):
        inner = inner.this
    if isinstance(above, _OF_NUMBERS) or (isinstance(above, _COMPUTING) and isinstance(inner, _COUNTING)):
        node.replace(exp.Cast(this=node.copy(), to=exp.DataType.build("double")))


def _is_inside_other(node: Any) -> bool:
    """Whether arithmetic is a part of other arithmetic."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, _COMPUTING)


def _put_into(node: Any, function: str, *more: exp.Expression) -> None:
    """Replace an expression by a function of it."""
    around = exp.Anonymous(this=function)
    node.replace(around)
    around.set("expressions", [node, *more])
