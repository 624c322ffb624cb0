"""The names that PostgreSQL gives to columns of a result that have no name."""

from __future__ import annotations

from sqlglot import exp

from discreet.gateway.catalog.scopes import name_of
from discreet.gateway.catalog.types import element_of, read_type

NAMELESS = "?column?"
_CLASSES: dict[type[exp.Expr], str] = {
    exp.Explode: "unnest",
    exp.Unnest: "unnest",
    exp.ExplodingGenerateSeries: "generate_series",
    exp.GroupConcat: "string_agg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CurrentVersion: "version",
    exp.StrPosition: "position",
    exp.Trim: "btrim",
    exp.Length: "length",
    exp.RegexpReplace: "regexp_replace",
    exp.Ceil: "ceil",
    exp.TimestampTrunc: "date_trunc",
    exp.StringToArray: "string_to_array",
    exp.RowNumber: "row_number",
}
_OPERATORS = (exp.Binary, exp.Connector, exp.Not, exp.Neg, exp.Paren, exp.In, exp.Between, exp.Is, exp.Null, exp.Any)


def function_name(node: exp.Expr) -> str:
    """The name of a function as PostgreSQL calls it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.CurrentTimestamp):
        return "now" if "start" in node.meta else "current_timestamp"  # only a call has a place
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "btrim")
    return _CLASSES.get(type(node)) or (node.sql_name().lower() if isinstance(node, exp.Func) else NAMELESS)


def column_name(node: exp.Expr) -> str:
    """The name of a column of a result."""
    return _figure(node)[0]


def _figure(node: exp.Expr) -> tuple[str, int]:
    """A name, and how sure it is: 2 for a column or a function, 1 for a type or CASE, 0 for none."""
    if isinstance(node, exp.Alias):
        return name_of(node.args["alias"]) or NAMELESS, 2
    if isinstance(node, exp.Column):
        return name_of(node.this) or NAMELESS, 2
    if isinstance(node, exp.Cast):
        found, sure = _figure(node.this)
        return (found, sure) if sure > 1 else (element_of(read_type(node.args["to"])), 1)
    if isinstance(node, exp.Case):
        found, sure = _figure(node.args["default"]) if node.args.get("default") else (NAMELESS, 0)
        return (found, sure) if sure > 1 else ("case", 1)
    if isinstance(node, exp.Interval):
        return "interval", 1
    if isinstance(node, exp.Dot):
        if isinstance(node.expression, exp.Identifier):
            return name_of(node.expression) or NAMELESS, 2
        return _figure(node.expression)
    if isinstance(node, exp.Collate | exp.Bracket | exp.Window | exp.Filter | exp.Paren | exp.AtTimeZone):
        return ("timezone", 2) if isinstance(node, exp.AtTimeZone) else _figure(node.this)
    if isinstance(node, exp.Subquery | exp.Select):
        chosen = node.selects
        return _figure(chosen[0]) if chosen else (NAMELESS, 0)
    if isinstance(node, exp.Array):
        return "array", 2
    if isinstance(node, exp.Exists):
        return "exists", 2
    if isinstance(node, _OPERATORS) or not isinstance(node, exp.Func):
        return NAMELESS, 0
    return function_name(node), 2
