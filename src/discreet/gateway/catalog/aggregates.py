"""Aggregates of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.gateway.catalog.casts import as_text
from discreet.gateway.catalog.functions import arguments_of, call_function, unknown_function
from discreet.gateway.catalog.names import function_name
from discreet.gateway.catalog.scopes import Scope, Value, call, cast
from discreet.gateway.catalog.signatures import AGGREGATES
from discreet.gateway.catalog.types import array_of

if TYPE_CHECKING:
    from discreet.gateway.catalog.translate import Translator


def call_aggregate(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    """The value of an aggregate."""
    name = function_name(node)
    if name not in AGGREGATES:
        return call_function(made, name, [made.value(one, scope) for one in arguments_of(node)])
    first, *more = arguments_of(node)
    order, distinct = None, False
    if isinstance(first, exp.Distinct):
        distinct, (first, *rest) = True, first.expressions
        more = [*rest, *more]
    last = more[-1] if more else first
    if isinstance(last, exp.Order):
        order, last = made.order(last, scope), last.this
        if more:
            more[-1] = last
        else:
            first = last
    if isinstance(first, exp.Distinct):
        distinct, first = True, first.expressions[0]
    if isinstance(first, exp.Order):
        order, first = made.order(first, scope), first.this
    if isinstance(first, exp.Star):
        return Value(call("count"), "int8")
    value, kind = _aggregated(made, name, made.value(first, scope))
    if (name == "string_agg") != (len(more) == 1) or len(more) > 1:
        raise unknown_function(name, [value])
    parts = [exp.Distinct(expressions=[value.node]) if distinct else value.node]
    parts += [made.value_as(one, scope, "text") for one in more]
    if order is not None:
        order.set("this", parts[-1])
        parts[-1] = order
    return Value(_finished(call(AGGREGATES[name], *parts), name, kind), kind)


def _finished(node: exp.Expr, name: str, kind: str) -> exp.Expr:
    return cast(node, kind) if name in ("sum", "avg") else node


def _aggregated(made: Translator, name: str, value: Value) -> tuple[Value, str]:
    """What an aggregate reads, and the type of its result."""
    value = made.coerce(value, "text")
    if name == "count":
        return value, "int8"
    if name in ("bool_and", "bool_or", "every"):
        return value, "bool"
    if name == "string_agg":
        return Value(as_text(value), "text"), "text"
    if name == "array_agg":
        return value, array_of(value.type)
    if name in ("sum", "avg"):
        wide = {"int2": "int8", "int4": "int8", "float4": "float4", "float8": "float8"}.get(value.type, "numeric")
        return value, wide if name == "sum" else "float8" if value.type.startswith("float") else "numeric"
    if value.type in ("name", "char", "varchar"):
        return value, "text"
    return value, value.type
