"""Calls of functions of PostgreSQL, as calls of DuckDB. A function that has no rule does not exist."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.gateway.catalog.casts import as_text, cast_value
from discreet.gateway.catalog.scopes import Value, call, cast, null, number, refuse, text
from discreet.gateway.catalog.signatures import AGGREGATES, ALWAYS, LOOKUPS, NATIVE, NOTHING, RENAMED, ROWS_OF
from discreet.gateway.catalog.types import TEXTS, array_of, element_of, is_array, record_of
from discreet.gateway.wire.format.values import Refusal

if TYPE_CHECKING:
    from discreet.gateway.catalog.translate import Translator


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a function in their order."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expr] = []
    for name in node.arg_types:
        part = node.args.get(name)
        found += part if isinstance(part, list) else [part] if isinstance(part, exp.Expr) else []
    return found


def call_function(made: Translator, name: str, values: Sequence[Value]) -> Value:
    """The value of a function."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(made, list(values))
    known = LOOKUPS.get((name, len(values)))
    if known is not None:
        return Value(call(f"our_{name}_{len(values)}", *_fitting(made, values, known.takes)), known.gives)
    known = NATIVE.get((name, len(values)))
    if known is not None:
        return Value(
            cast(call(RENAMED.get(name, name), *_fitting(made, values, known.takes)), known.gives), known.gives
        )
    if name in ALWAYS:
        said, kind = ALWAYS[name]
        return Value(cast(exp.Array() if said == "[]" else text(said), kind), kind)
    if name in NOTHING:
        for value in values:
            made.coerce(value, "text")
        return null(NOTHING[name])
    raise unknown_function(name, values)


def unknown_function(name: str, values: Sequence[Value]) -> Refusal:
    """The error for a function that is not known."""
    kinds = ", ".join(value.type.split(":")[0] for value in values)
    return Refusal(f"function {name}({kinds}) does not exist", state="42883")


def _fitting(made: Translator, values: Sequence[Value], kinds: Sequence[str]) -> list[exp.Expr]:
    """Arguments as a function takes them."""
    found = []
    for given, kind in zip(values, kinds, strict=True):
        value = made.coerce(given, kind)
        if kind in TEXTS and value.type not in TEXTS:
            found.append(as_text(value))
        elif is_array(kind):
            found.append(cast_value(made, value, kind).node)
        else:
            found.append(cast(value.node, kind))
    return found


# --- functions with rules of their own ------------------------------------------------------------------------------


def _needs(name: str, values: Sequence[Value], *counts: int) -> None:
    if len(values) not in counts:
        raise unknown_function(name, values)


def _unnest(made: Translator, values: list[Value]) -> Value:
    _needs("unnest", values, 1)
    array = made.coerce(values[0], "text[]")
    if not is_array(array.type):
        raise unknown_function("unnest", values)
    return Value(call("unnest", array.node), element_of(array.type))


def _generate_series(made: Translator, values: list[Value]) -> Value:
    _needs("generate_series", values, 2, 3)
    whole = [made.coerce(value, "int4") for value in values]
    if any(value.type not in ("int2", "int4", "int8", "oid") for value in whole):
        raise refuse("generate_series of this type")
    kind = "int8" if any(value.type in ("int8", "oid") for value in whole) else "int4"
    ends = [cast(value.node, "int8") for value in whole]
    return Value(
        call("unnest", cast(call("bounded_series", *ends, *([number(1)] if len(ends) == 2 else [])), array_of(kind))),
        kind,
    )


def _generate_subscripts(made: Translator, values: list[Value]) -> Value:
    _needs("generate_subscripts", values, 2)
    made.coerce(values[1], "int4")
    array = made.coerce(values[0], "text[]")
    start = 0 if array.type in ("int2vector", "oidvector") else 1
    last = exp.Add(this=call("len", array.node), expression=number(start - 1))
    return Value(call("unnest", cast(call("generate_series", number(start), last), "int4[]")), "int4")


def _expand(made: Translator, values: list[Value]) -> Value:
    _needs("_pg_expandarray", values, 1)
    array = values[0]
    if not is_array(array.type):
        raise unknown_function("_pg_expandarray", values)
    kind = record_of(x=element_of(array.type), n="int4")
    return Value(call("unnest", call("numbered", array.node)), kind)


def _acl_explode(made: Translator, values: list[Value]) -> Value:
    _needs("aclexplode", values, 1)
    kind = record_of(grantor="oid", grantee="oid", privilege_type="text", is_grantable="bool")
    return Value(call("unnest", call("our_aclexplode_1", cast(values[0].node, "aclitem[]"))), kind)


def _acl_default(made: Translator, values: list[Value]) -> Value:
    _needs("acldefault", values, 2)
    return Value(
        call("our_acldefault_2", cast(made.coerce(values[0], "char").node, "text"), cast(values[1].node, "oid")),
        "aclitem[]",
    )


def _options_to_table(made: Translator, values: list[Value]) -> Value:
    _needs("pg_options_to_table", values, 1)
    return Value(call("unnest", call("no_options")), record_of(option_name="text", option_value="text"))


def _split_to_rows(inner: str) -> Callable[[Translator, list[Value]], Value]:
    def split(made: Translator, values: list[Value]) -> Value:
        return _unnest(made, [call_function(made, inner, values)])

    return split


def _bound(which: str) -> Callable[[Translator, list[Value]], Value]:
    def bound(made: Translator, values: list[Value]) -> Value:
        _needs(f"array_{which}", values, *((1,) if which == "cardinality" else (2,)))
        array = made.coerce(values[0], "text[]")
        for value in values[1:]:
            made.coerce(value, "int4")
        if not is_array(array.type):
            raise unknown_function(f"array_{which}", values)
        count: exp.Expr = call("len", array.node)
        if which == "cardinality":
            return Value(cast(count, "int4"), "int4")
        low = 0 if array.type in ("int2vector", "oidvector") else 1
        return Value(call("our_bound", cast(count, "int8"), text(which), number(low)), "int4")

    return bound


def _with_element(name: str) -> Callable[[Translator, list[Value]], Value]:
    def joined(made: Translator, values: list[Value]) -> Value:
        _needs(name, values, 2)
        array = made.coerce(values[1 if name == "array_prepend" else 0], "text[]")
        other = values[0 if name == "array_prepend" else 1]
        if name == "array_cat":
            return Value(call("array_joined", array.node, made.coerce(other, array.type).node), array.type)
        element = made.coerce(other, element_of(array.type))
        if name == "array_position":
            return Value(cast(call("list_position", array.node, element.node), "int4"), "int4")
        if name == "array_remove":
            return Value(call("array_without", array.node, element.node), array.type)
        one = cast(exp.Array(expressions=[element.node]), array_of(element_of(array.type)))
        sides = [one, array.node] if name == "array_prepend" else [array.node, one]
        return Value(call("array_joined", *sides), array.type)

    return joined


def _array_to_string(made: Translator, values: list[Value]) -> Value:
    _needs("array_to_string", values, 2, 3)
    array = cast_value(made, made.coerce(values[0], "text[]"), "text[]")
    rest = [made.coerce(value, "text").node for value in values[1:]]
    return Value(
        call("our_array_to_string", array.node, *rest, *([] if len(rest) == 2 else [cast(exp.Null(), "text")])), "text"
    )


def _string_to_array(made: Translator, values: list[Value]) -> Value:
    _needs("string_to_array", values, 2)
    return Value(call("string_split", *_fitting(made, values, ("text", "text"))), "text[]")


def _regexp_split(made: Translator, values: list[Value]) -> Value:
    _needs("regexp_split_to_array", values, 2)
    subject, pattern = _fitting(made, values, ("text", "text"))
    return Value(call("string_split_regex", subject, call("regex_of", pattern)), "text[]")


def _concat(made: Translator, values: list[Value]) -> Value:
    return Value(call("concat", *(as_text(made.coerce(value, "text")) for value in values)), "text")


def _concat_with(made: Translator, values: list[Value]) -> Value:
    return Value(call("concat_ws", *(as_text(made.coerce(value, "text")) for value in values)), "text")


def _format(made: Translator, values: list[Value]) -> Value:
    if not values:
        raise unknown_function("format", values)
    first, *rest = (as_text(made.coerce(value, "text")) for value in values)
    return Value(call("our_format", first, cast(exp.Array(expressions=rest), "text[]")), "text")


def _json_object(made: Translator, values: list[Value]) -> Value:
    parts = []
    for place, given in enumerate(values):
        value = made.coerce(given, "text")
        keep = place % 2 and value.type in ("bool", "int2", "int4", "int8", "float8", "oid")
        parts.append(value.node if keep else as_text(value))
    return Value(cast(call("json_object", *parts), "text"), "json")


def _version(made: Translator, values: list[Value]) -> Value:
    _needs("version", values, 0)
    number_said = call_function(made, "current_setting", [Value(text("server_version"))]).node
    return Value(
        exp.DPipe(
            this=text("PostgreSQL "), expression=exp.DPipe(this=number_said, expression=text(", answered by discreet"))
        ),
        "text",
    )


def _user(made: Translator, values: list[Value]) -> Value:
    return Value(call("our_current_user_0"), "name")


def _database(made: Translator, values: list[Value]) -> Value:
    return Value(call("our_current_database_0"), "name")


def _moment(kind: str) -> Callable[[Translator, list[Value]], Value]:
    def moment(made: Translator, values: list[Value]) -> Value:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        return Value(cast(text(now.isoformat(" ")), kind), kind)

    return moment


def _privilege(kind: str) -> Callable[[Translator, list[Value]], Value]:
    """has_table_privilege and its kin: with or without a user, an object by name or by number, and what is asked."""

    def asked(made: Translator, values: list[Value]) -> Value:
        more = 1 if kind == "column" else 0
        _needs(f"has_{kind}_privilege", values, 2 + more, 3 + more)
        rest = values[1:] if len(values) == 3 + more else values
        thing = made.coerce(rest[0], "text")
        by_name = thing.type in TEXTS
        which = call(
            "our_has_privilege_3",
            text(kind),
            cast(thing.node, "text" if by_name else "oid"),
            made.coerce(rest[-1], "text").node,
        )
        which.set("this", f"our_has_privilege_{'name' if by_name else 'oid'}")
        for value in rest[1:-1]:
            made.coerce(value, "text")
        return Value(which, "bool")

    return asked


def _role(made: Translator, values: list[Value]) -> Value:
    _needs("pg_has_role", values, 2, 3)
    role = made.coerce(values[-2], "name")
    name = role.node if role.type in TEXTS else call("our_pg_get_userbyid_1", cast(role.node, "oid"))
    return Value(
        call("our_pg_has_role_2", cast(name, "text"), cast(made.coerce(values[-1], "text").node, "text")), "bool"
    )


def _round(name: str) -> Callable[[Translator, list[Value]], Value]:
    def rounded(made: Translator, values: list[Value]) -> Value:
        _needs(name, values, *((1, 2) if name in ("round", "trunc") else (1,)))
        value = made.coerce(values[0], "float8")
        kind = value.type if value.type in ("numeric", "float8", "float4") or name == "abs" else "float8"
        places = [made.coerce(one, "int4").node for one in values[1:]]
        return Value(cast(call(name, value.node, *places), kind), kind)

    return rounded


def _power(made: Translator, values: list[Value]) -> Value:
    _needs("power", values, 2)
    return Value(call("pow", *(cast(made.coerce(value, "float8").node, "float8") for value in values)), "float8")


def _pretty(made: Translator, values: list[Value]) -> Value:
    _needs("pg_size_pretty", values, 1)
    return Value(call("our_pg_size_pretty_1", cast(made.coerce(values[0], "int8").node, "int8")), "text")


def _ranking(name: str) -> Callable[[Translator, list[Value]], Value]:
    def ranking(made: Translator, values: list[Value]) -> Value:
        _needs(name, values, 0)
        return Value(call(name), "int8")

    return ranking


def _expression(made: Translator, values: list[Value]) -> Value:
    """The text of a default. It is kept as its text."""
    _needs("pg_get_expr", values, 2, 3)
    for value in values[1:]:
        made.coerce(value, "text")
    return Value(cast(values[0].node, "text"), "text")


def _refuse_row(made: Translator, values: list[Value]) -> Value:
    raise refuse("ROW")


_SPECIAL: dict[str, Callable[[Translator, list[Value]], Value]] = {
    "unnest": _unnest,
    "generate_series": _generate_series,
    "generate_subscripts": _generate_subscripts,
    "_pg_expandarray": _expand,
    "aclexplode": _acl_explode,
    "acldefault": _acl_default,
    "pg_options_to_table": _options_to_table,
    "string_to_table": _split_to_rows("string_to_array"),
    "regexp_split_to_table": _split_to_rows("regexp_split_to_array"),
    "array_upper": _bound("upper"),
    "array_lower": _bound("lower"),
    "array_length": _bound("length"),
    "cardinality": _bound("cardinality"),
    "array_to_string": _array_to_string,
    "string_to_array": _string_to_array,
    "regexp_split_to_array": _regexp_split,
    "concat": _concat,
    "concat_ws": _concat_with,
    "format": _format,
    "json_build_object": _json_object,
    "version": _version,
    "pg_size_pretty": _pretty,
    "pg_has_role": _role,
    "power": _power,
    "pow": _power,
    "pg_get_expr": _expression,
    "row": _refuse_row,
    **{name: _ranking(name) for name in ("row_number", "rank", "dense_rank")},
    "now": _moment("timestamptz"),
    "current_timestamp": _moment("timestamptz"),
    "transaction_timestamp": _moment("timestamptz"),
    "statement_timestamp": _moment("timestamptz"),
    "clock_timestamp": _moment("timestamptz"),
    "localtimestamp": _moment("timestamp"),
    "current_date": _moment("date"),
    "current_catalog": _database,
    **dict.fromkeys(("session_user", "user", "current_role"), _user),
    **{
        name: _with_element(name)
        for name in ("array_append", "array_prepend", "array_cat", "array_remove", "array_position")
    },
    **{name: _round(name) for name in ("round", "trunc", "floor", "ceil", "abs")},
    **{
        f"has_{kind}_privilege": _privilege(kind)
        for kind in (
            *("table", "any_column", "column", "schema", "database", "function", "sequence", "tablespace", "type"),
            *("language", "foreign_data_wrapper", "server"),
        )
    },
}
KNOWN = frozenset({*_SPECIAL, *NOTHING, *ALWAYS, *AGGREGATES, *ROWS_OF, *(name for name, _ in (*LOOKUPS, *NATIVE))})
"""The names of all functions that a statement may use."""
