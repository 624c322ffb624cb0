"""Expressions of PostgreSQL as expressions of DuckDB, with their types. What has no rule here is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.gateway.catalog.aggregates import call_aggregate
from discreet.gateway.catalog.casts import VECTORS, as_text, cast_value, coerce
from discreet.gateway.catalog.functions import arguments_of, call_function
from discreet.gateway.catalog.names import function_name
from discreet.gateway.catalog.scopes import (
    Scope,
    Value,
    call,
    cast,
    check_parts,
    column,
    hidden_value,
    name_of,
    number,
    refuse,
    text,
)
from discreet.gateway.catalog.signatures import AGGREGATES
from discreet.gateway.catalog.types import (
    REFERENCES,
    TEXTS,
    UNKNOWN,
    add,
    array_of,
    element_of,
    fields_of,
    is_array,
    is_record,
    merge,
    read_type,
)
from discreet.gateway.wire.format.values import Refusal

if TYPE_CHECKING:
    from discreet.gateway.catalog.translate import Translator

Rule = Callable[["Translator", exp.Expr, Scope], Value]
_WORDS = {"user": "current_user", "current_role": "current_user", "localtimestamp": "localtimestamp"}


def translate(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    """The value of an expression."""
    for kind in type(node).__mro__:
        rule = _RULES.get(kind)
        if rule is not None:
            value = rule(made, node, scope)
            # IS NOT NULL, NOT LIKE and others are their opposites with a mark
            return Value(exp.Not(this=exp.Paren(this=value.node)), "bool") if node.args.get("negate") else value
    if isinstance(node, exp.Func):
        return _called(made, node, scope)
    raise refuse(type(node).__name__.upper())


# --- literals, columns and parameters -------------------------------------------------------------------------


def _literal(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    if node.is_string:
        return Value(text(node.name))
    written = node.name
    if re.fullmatch(r"\d+", written):
        if int(written) < 2**31:
            return Value(number(int(written)), "int4")
        if int(written) < 2**63:
            return Value(cast(text(written), "int8"), "int8")
    if not re.fullmatch(r"\d*\.?\d*([eE][+-]?\d+)?", written):
        raise refuse(f"the number {written}")
    return Value(exp.Literal.number(written), "numeric")


def _quoted(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return Value(text(str(node.this)))


def _null(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return Value(exp.Null())


def _boolean(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return Value(exp.Boolean(this=bool(node.this)), "bool")


def _parameter(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    if not isinstance(node.this, exp.Literal) or not node.name.isdigit() or not 0 < int(node.name) < 65536:
        raise Refusal(f"there is no parameter {node.sql('postgres')}", state="42P02")
    place = int(node.name)
    made.hints.setdefault(place, [])
    return Value(exp.Placeholder(this=str(place)), made.declared.get(place, UNKNOWN))


def _column(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "table", "db"))
    name, table, schema = name_of(node.this), name_of(node.args.get("table")), name_of(node.args.get("db"))
    if name is None:
        raise refuse(f"{type(node.this).__name__.upper()} here")
    found = scope.find(name, table, schema)
    if found is None:
        if table is None and not node.this.quoted and name in _WORDS:
            return call_function(made, _WORDS[name], [])
        shown = name if table is None else f"{table}.{name}"
        raise Refusal(f'column "{shown}" does not exist', state="42703")
    source, one = found
    if all(one.name != other.name for other in source.columns):
        return hidden_value(source, one.name)
    plain = table is None and name in scope.joined
    return Value(column(name, None if plain else source.name), one.type)


# --- casts ------------------------------------------------------------------------------------------------------


def _cast(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "to", "safe"))
    kind, value = read_type(node.args["to"]), made.value(node.this, scope)
    return cast_value(made, value, kind)


# --- operators --------------------------------------------------------------------------------------------------


def _pair(made: Translator, node: exp.Expr, scope: Scope) -> tuple[Value, Value]:
    one, other = made.value(node.this, scope), made.value(node.expression, scope)
    return coerce(made, one, other.type), coerce(made, other, one.type)


def _same(value: Value, other: Value) -> tuple[exp.Expr, exp.Expr]:
    """Two values that DuckDB can compare."""
    for text_side, number_side in ((value, other), (other, value)):
        if text_side.type in TEXTS and number_side.type in REFERENCES:
            left, right = as_text(value), as_text(other)
            return left, right
    return value.node, other.node


def _compare(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    if _quantifier(node.expression) is not None:
        return _quantified(made, node, scope)
    if isinstance(node.this, exp.Tuple) and isinstance(node.expression, exp.Tuple):
        sides = [
            exp.Tuple(expressions=[made.value(one, scope).node for one in side.expressions])
            for side in (node.this, node.expression)
        ]
        return Value(type(node)(this=sides[0], expression=sides[1]), "bool")
    left, right = _same(*_pair(made, node, scope))
    return Value(type(node)(this=left, expression=right), "bool")


def _quantifier(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """ANY or ALL, and what is in its parentheses."""
    if isinstance(node, exp.Any):
        return "any", node.this
    if isinstance(node, exp.All):
        return "all", node.this
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("any", "all", "some") and node.expressions:
        return ("all" if str(node.this).lower() == "all" else "any"), node.expressions[0]
    return None


def _quantified(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    found = _quantifier(node.expression)
    assert found is not None
    which, inner = found
    value = made.value(node.this, scope)
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Subquery | exp.Select | exp.SetOperation):
        query, columns = made.query(inner, scope)
        value = coerce(made, value, columns[0].type)
        quantifier: exp.Expr = (exp.Any if which == "any" else exp.All)(this=exp.Subquery(this=query))
        return Value(type(node)(this=value.node, expression=quantifier), "bool")
    array = made.value(inner, scope)
    array = coerce(made, array, array_of(value.type))
    value = coerce(made, value, element_of(array.type))
    if element_of(array.type) in TEXTS and value.type in REFERENCES:
        value = Value(as_text(value), "text")
    one = exp.Identifier(this="one")
    test: exp.Expr = type(node)(this=value.node, expression=one)
    if isinstance(node, exp.EQ) and which == "any":
        return Value(call("list_contains", array.node, value.node), "bool")
    if isinstance(node, exp.NEQ) and which == "all":
        return Value(exp.Not(this=call("list_contains", array.node, value.node)), "bool")
    tested = call("list_transform", array.node, exp.Lambda(this=test, expressions=[one.copy()]))
    return Value(call(f"list_bool_{'or' if which == 'any' else 'and'}", tested), "bool")


def _pattern(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "expression", "negate"))
    if _quantifier(node.expression) is not None:
        return _quantified(made, node, scope)
    left, right = made.value(node.this, scope), made.value(node.expression, scope)
    one, other = as_text(coerce(made, left, "text")), as_text(coerce(made, right, "text"))
    if isinstance(node, exp.Like | exp.ILike):
        # a backslash escapes in PostgreSQL even when nothing says so
        like: exp.Expr = type(node)(this=one, expression=other)
        tested: exp.Expr = exp.Escape(this=like, expression=text("\\"))
    else:
        options = [text("i")] if isinstance(node, exp.RegexpILike) else []
        tested = call("regexp_matches", one, call("regex_of", other), *options)
    return Value(tested, "bool")


def _escape(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    like = node.this
    if not isinstance(like, exp.Like | exp.ILike) or not isinstance(node.expression, exp.Literal):
        raise refuse("ESCAPE here")
    left, right = (as_text(coerce(made, made.value(one, scope), "text")) for one in (like.this, like.expression))
    tested = exp.Escape(this=type(like)(this=left, expression=right), expression=text(node.expression.name[:1]))
    return Value(exp.Not(this=tested) if like.args.get("negate") else tested, "bool")


def _operator(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    """An operator with a schema, as in a OPERATOR(pg_catalog.~) b."""
    sign = str(node.args.get("operator")).lower().removeprefix("pg_catalog.")
    kind = {
        "~": exp.RegexpLike, "~*": exp.RegexpILike, "=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like, "~~*": exp.ILike,
        "<": exp.LT, ">": exp.GT, "<=": exp.LTE, ">=": exp.GTE, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub,
    }.get(sign)  # fmt: skip
    negated = {"!~": exp.RegexpLike, "!~*": exp.RegexpILike, "!~~": exp.Like, "!~~*": exp.ILike}.get(sign)
    if kind is None and negated is None:
        raise refuse(f"the operator {sign}")
    instead = (kind or negated)(this=node.this, expression=node.expression)  # type: ignore[misc]
    value = made.value(instead, scope)
    return value if negated is None else Value(exp.Not(this=value.node), "bool")


def _is(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "expression", "negate"))
    value = made.value(node.this, scope)
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise refuse(f"IS {node.expression.sql('postgres')}")
    if value.type == UNKNOWN and isinstance(value.node, exp.Placeholder):
        value = coerce(made, value, "text")
    return Value(exp.Is(this=exp.Paren(this=value.node), expression=node.expression.copy()), "bool")


def _connect(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    # a long chain of AND is a deep tree: it is read from its end, without recursion
    parts, kind = [], type(node)
    while type(node) is kind:
        parts.append(node.expression)
        node = node.this
    result: exp.Expr = exp.Paren(this=made.condition(node, scope))
    for part in reversed(parts):
        result = kind(this=result, expression=exp.Paren(this=made.condition(part, scope)))
    return Value(exp.Paren(this=result), "bool")


def _not(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return Value(exp.Not(this=exp.Paren(this=made.condition(node.this, scope))), "bool")


def _paren(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    value = made.value(node.this, scope)
    return value if value.type == UNKNOWN else Value(exp.Paren(this=value.node), value.type)


def _arithmetic(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    one, other = _pair(made, node, scope)
    if UNKNOWN in (one.type, other.type):
        one, other = coerce(made, one, "int4"), coerce(made, other, "int4")
    kind = add(one.type, other.type)
    left, right = exp.Paren(this=one.node), exp.Paren(this=other.node)
    if isinstance(node, exp.Pow):
        result = "numeric" if "numeric" in (one.type, other.type) else "float8"
        return Value(cast(call("pow", cast(left, "float8"), cast(right, "float8")), result), result)
    if isinstance(node, exp.Div) and kind in ("int2", "int4", "int8"):
        whole = call("divide_whole", cast(left, "int8"), cast(right, "int8"))
        return Value(cast(whole, kind), kind)
    if isinstance(node, exp.Mod | exp.Div):
        floats = cast(left, "float8"), cast(right, "float8")
        quotient = call("our_remainder" if isinstance(node, exp.Mod) else "our_divide", *floats)
        return Value(cast(quotient, kind or "float8"), kind or "float8")
    days = {one.type, other.type}
    if kind is None and days <= {"date", "int4", "int8", "timestamp", "timestamptz", "interval"}:
        kind = _moment(node, one.type, other.type)
    if kind is None:
        raise refuse(f"{type(node).__name__.upper()} of {one.type} and {other.type}", "42883")
    result_node = type(node)(this=left, expression=right)
    return Value(exp.Paren(this=cast(result_node, kind) if kind in ("int2", "int4", "int8") else result_node), kind)


def _moment(node: exp.Expr, one: str, other: str) -> str | None:
    if one == other == "date" and isinstance(node, exp.Sub):
        return "int4"
    if "interval" in (one, other) and one != other:
        rest = one if other == "interval" else other
        return "timestamp" if rest in ("date", "timestamp") else rest if rest == "timestamptz" else None
    if {one, other} <= {"timestamp", "timestamptz"} and isinstance(node, exp.Sub):
        return "interval"
    return "date" if "date" in (one, other) and {one, other} & {"int4", "int8"} else None


def _bitwise(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    one, other = _pair(made, node, scope)
    kind = add(one.type, other.type) or "int8"
    left, right = exp.Paren(this=cast(one.node, "int8")), exp.Paren(this=cast(other.node, "int8"))
    return Value(cast(type(node)(this=left, expression=right), kind), kind)


def _negative(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    value = made.value(node.this, scope)
    value = coerce(made, value, "int4")
    return Value(exp.Paren(this=exp.Neg(this=exp.Paren(this=value.node))), value.type)


def _concatenate(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    one, other = made.value(node.this, scope), made.value(node.expression, scope)
    if is_array(one.type) or is_array(other.type):
        kind = one.type if is_array(one.type) else other.type
        sides = []
        for side in (one, other):
            if side.type == UNKNOWN:
                side = coerce(made, side, kind)
            sides.append(side.node if is_array(side.type) else exp.Array(expressions=[side.node]))
        return Value(call("array_joined", *(cast(side, kind) for side in sides)), kind)
    left, right = (as_text(coerce(made, side, "text")) for side in (one, other))
    return Value(exp.Paren(this=exp.DPipe(this=left, expression=right, safe=True)), "text")


def _in(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "expressions", "query", "negate"))
    if isinstance(node.this, exp.Tuple) or any(isinstance(one, exp.Tuple) for one in node.expressions):
        if node.args.get("query") or not isinstance(node.this, exp.Tuple):
            raise refuse("IN with rows")
        rows = [
            exp.Tuple(expressions=[made.value(one, scope).node for one in row.expressions]) for row in node.expressions
        ]
        return Value(
            exp.In(
                this=exp.Tuple(expressions=[made.value(one, scope).node for one in node.this.expressions]),
                expressions=rows,
            ),
            "bool",
        )
    value = made.value(node.this, scope)
    if node.args.get("query"):
        query, columns = made.query(node.args["query"], scope)
        if len(columns) != 1:
            raise Refusal("subquery has too many columns", state="42601")
        value = coerce(made, value, columns[0].type)
        return Value(exp.In(this=exp.Paren(this=value.node), query=exp.Subquery(this=query)), "bool")
    listed = [made.value(one, scope) for one in node.expressions]
    kind = merge(one.type for one in listed) if any(one.type != UNKNOWN for one in listed) else UNKNOWN
    value = coerce(made, value, kind)
    inside = [coerce(made, one, value.type) for one in listed]
    pairs = [_same(value, one) for one in inside]
    left = pairs[0][0] if pairs else value.node
    return Value(exp.In(this=exp.Paren(this=left), expressions=[right for _, right in pairs]), "bool")


def _between(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "low", "high", "negate"))
    value = made.value(node.this, scope)
    ends = [coerce(made, made.value(node.args[end], scope), value.type).node for end in ("low", "high")]
    return Value(exp.Between(this=exp.Paren(this=value.node), low=ends[0], high=ends[1]), "bool")


def _case(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    subject = made.value(node.this, scope) if node.this else None
    tests, results = [], []
    for one in node.args["ifs"]:
        if subject is None:
            tests.append(made.condition(one.this, scope))
        else:
            compared = made.value(one.this, scope)
            subject, compared = coerce(made, subject, compared.type), coerce(made, compared, subject.type)
            tests.append(_same(subject, compared)[1])
        results.append(made.value(one.args["true"], scope))
    if node.args.get("default"):
        results.append(made.value(node.args["default"], scope))
    first = results[-1:] if node.args.get("default") else []
    kind = merge(one.type for one in (*first, *results))
    nodes = [_alike(made, one, kind) for one in results]
    ifs = [exp.If(this=test, true=result) for test, result in zip(tests, nodes, strict=False)]
    default = nodes[-1] if node.args.get("default") else None
    return Value(exp.Case(this=None if subject is None else subject.node, ifs=ifs, default=default), kind)


def _alike(made: Translator, value: Value, kind: str) -> exp.Expr:
    """One of several results that have one type."""
    value = coerce(made, value, kind)
    if value.type != kind and kind in TEXTS and value.type not in TEXTS:
        return as_text(value)
    return value.node


def _first_of(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    values = [made.value(one, scope) for one in (node.this, *node.expressions)]
    kind = merge(one.type for one in values)
    name = "greatest" if isinstance(node, exp.Greatest) else "least" if isinstance(node, exp.Least) else "coalesce"
    return Value(call(name, *(_alike(made, one, kind) for one in values)), kind)


def _null_if(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    one, other = _pair(made, node, scope)
    kind = "text" if one.type == UNKNOWN else one.type
    return Value(call("nullif", coerce(made, one, kind).node, coerce(made, other, kind).node), kind)


# --- arrays, records and queries ---------------------------------------------------------------------------------


def _array(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Select | exp.SetOperation | exp.Subquery):
        query, columns = made.query(node.expressions[0], scope)
        kind = "text" if columns[0].type == UNKNOWN else columns[0].type
        # the order inside is kept, because DuckDB reads with one thread
        return Value(
            call("coalesce", exp.Subquery(this=_listed(query)), cast(exp.Array(), array_of(kind))), array_of(kind)
        )
    values = [made.value(one, scope) for one in node.expressions]
    kind = merge(one.type for one in values)
    listed = [_alike(made, one, kind) for one in values]
    return Value(cast(exp.Array(expressions=listed), array_of(kind)), array_of(kind))


def _listed(query: exp.Expr) -> exp.Expr:
    alias = exp.TableAlias(
        this=exp.Identifier(this="rows", quoted=True), columns=[exp.Identifier(this="one", quoted=True)]
    )
    made = exp.Select(expressions=[call("list", column("one", "rows"))])
    made.set("from_", exp.From(this=exp.Subquery(this=query, alias=alias)))
    return made


def _bracket(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    array = made.value(node.this, scope)
    if len(node.expressions) != 1 or not is_array(array.type):
        raise refuse("this subscript", "42804")
    # sqlglot counts from 0, so that 1 has been taken off already
    shift = 2 if array.type in VECTORS else 1
    inside = node.expressions[0]
    if isinstance(inside, exp.Slice):
        ends = [made.value_as(end, scope, "int4") for end in (inside.this, inside.expression) if end is not None]
        if len(ends) != 2:
            raise refuse("an open slice")
        moved = [exp.Add(this=exp.Paren(this=end), expression=number(shift - 1)) for end in ends]
        return Value(call("list_slice", array.node, *moved), array_of(element_of(array.type)))
    place = exp.Add(this=exp.Paren(this=made.value_as(inside, scope, "int4")), expression=number(shift))
    return Value(call("list_extract", array.node, place), element_of(array.type))


def _dot(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node.this, exp.Identifier) and isinstance(node.expression, exp.Func):
        schema = name_of(node.this)
        if schema not in ("pg_catalog", "information_schema"):
            raise Refusal(f"function {schema}.{function_name(node.expression)} does not exist", state="42883")
        return (
            _called(made, node.expression, scope)
            if type(node.expression) not in _RULES
            else made.value(node.expression, scope)
        )
    record = made.value(node.this, scope)
    field = name_of(node.expression)
    if not is_record(record.type) or field not in fields_of(record.type):
        raise Refusal(f'column "{field}" not found in data type {record.type.split(":")[0]}', state="42703")
    return Value(call("struct_extract", record.node, text(field)), fields_of(record.type)[field])


def _subquery(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    query, columns = made.query(node, scope)
    if len(columns) != 1:
        raise Refusal("subquery must return only one column", state="42601")
    kind = "text" if columns[0].type == UNKNOWN else columns[0].type
    return Value(exp.Subquery(this=query), kind)


def _exists(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    query, _ = made.query(node.this, scope)
    return Value(exp.Exists(this=query), "bool")


def _collate(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return coerce(made, made.value(node.this, scope), "text")


# --- functions ----------------------------------------------------------------------------------------------------


def _called(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    name = function_name(node)
    if name in AGGREGATES:
        return call_aggregate(made, node, scope)
    return call_function(made, name, [made.value(one, scope) for one in arguments_of(node)])


def _interval(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    said = " ".join(part.name for part in (node.this, node.args.get("unit")) if part is not None)
    if not re.fullmatch(r"[\w .:+-]{1,100}", said):
        raise refuse("this interval")
    return Value(cast(text(said), "interval"), "interval")


def _aggregate(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    return call_aggregate(made, node, scope)


def _filter(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    value = made.value(node.this, scope)
    where = exp.Where(this=made.condition(node.expression.this, scope))
    return Value(exp.Filter(this=value.node, expression=where), value.type)


def _window(made: Translator, node: exp.Expr, scope: Scope) -> Value:
    check_parts(node, ("this", "partition_by", "order", "over"))
    value = made.value(node.this, scope)
    by = [made.value(one, scope).node for one in node.args.get("partition_by") or ()]
    order = made.order(node.args["order"], scope) if node.args.get("order") else None
    return Value(exp.Window(this=value.node, partition_by=by, order=order), value.type)


_RULES: dict[type, Rule] = {
    exp.Literal: _literal,
    exp.ByteString: _quoted,
    exp.RawString: _quoted,
    exp.National: _quoted,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Parameter: _parameter,
    exp.Column: _column,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Paren: _paren,
    exp.And: _connect,
    exp.Or: _connect,
    exp.Not: _not,
    exp.Neg: _negative,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Escape: _escape,
    exp.Operator: _operator,
    exp.DPipe: _concatenate,
    exp.Case: _case,
    exp.Coalesce: _first_of,
    exp.Greatest: _first_of,
    exp.Least: _first_of,
    exp.Nullif: _null_if,
    exp.Array: _array,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.SetOperation: _subquery,
    exp.Exists: _exists,
    exp.Collate: _collate,
    exp.Interval: _interval,
    exp.Window: _window,
    exp.Filter: _filter,
    exp.AggFunc: _aggregate,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), _compare),
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike), _pattern),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Pow), _arithmetic),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bitwise),
}
