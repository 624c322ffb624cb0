"""The functions of PostgreSQL that the catalog knows. There are no others."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from discreet.gateway.catalog.names import function_name
from discreet.gateway.catalog.scopes import Scope, Value, call, cast, null, number, refuse, text
from discreet.gateway.catalog.types import (
    TEXTS,
    array_of,
    element_of,
    is_array,
    record_of,
)
from discreet.gateway.wire.values import Refusal

if TYPE_CHECKING:
    from discreet.gateway.catalog.translate import Translator

ROWS_OF = {
    "pg_get_keywords": ("pg_catalog", "pg_get_keywords"),
    "pg_timezone_names": ("pg_catalog", "pg_timezone_names"),
    "pg_timezone_abbrevs": ("pg_catalog", "pg_timezone_abbrevs"),
    "pg_available_extensions": ("pg_catalog", "pg_available_extensions"),
    "pg_available_extension_versions": ("pg_catalog", "pg_available_extension_versions"),
    "pg_show_all_settings": ("pg_catalog", "pg_settings"),
    "pg_lock_status": ("pg_catalog", "pg_locks"),
    "pg_cursor": ("pg_catalog", "pg_cursors"),
    "pg_prepared_statement": ("pg_catalog", "pg_prepared_statements"),
    "pg_stat_get_activity": ("pg_catalog", "pg_stat_activity"),
}
"""Functions in FROM that give the rows of a relation."""


class Signature(NamedTuple):
    """The types of the arguments of a function, and of its result."""

    takes: tuple[str, ...]
    gives: str


def _read(lines: str) -> dict[tuple[str, int], Signature]:
    """Signatures, written one per line as in PostgreSQL's manual."""
    found = {}
    for line in lines.split("\n"):
        read = re.fullmatch(r"(\w+)\((.*)\) (\S+)", line.strip())
        if read:
            takes = tuple(part for part in read[2].split(", ") if part)
            found[read[1], len(takes)] = Signature(takes, read[3])
    return found


LOOKUPS = _read("""
    replace(text, text, text) text
    format_type(oid, int4) text
    pg_get_userbyid(oid) name
    pg_table_is_visible(oid) bool
    pg_type_is_visible(oid) bool
    pg_function_is_visible(oid) bool
    pg_operator_is_visible(oid) bool
    pg_opclass_is_visible(oid) bool
    pg_opfamily_is_visible(oid) bool
    pg_collation_is_visible(oid) bool
    pg_conversion_is_visible(oid) bool
    pg_ts_config_is_visible(oid) bool
    pg_ts_dict_is_visible(oid) bool
    pg_ts_parser_is_visible(oid) bool
    pg_ts_template_is_visible(oid) bool
    pg_statistics_obj_is_visible(oid) bool
    pg_relation_is_publishable(regclass) bool
    pg_get_constraintdef(oid) text
    pg_get_constraintdef(oid, bool) text
    pg_get_indexdef(oid) text
    pg_get_indexdef(oid, int4, bool) text
    pg_get_function_arguments(oid) text
    pg_get_function_identity_arguments(oid) text
    pg_get_function_result(oid) text
    pg_describe_object(oid, oid, int4) text
    obj_description(oid) text
    obj_description(oid, name) text
    shobj_description(oid, name) text
    col_description(oid, int4) text
    to_regclass(text) regclass
    to_regtype(text) regtype
    to_regproc(text) regproc
    to_regnamespace(text) regnamespace
    to_regrole(text) regrole
    quote_ident(text) text
    quote_literal(text) text
    parse_ident(text) text[]
    parse_ident(text, bool) text[]
    current_setting(text) text
    current_setting(text, bool) text
    set_config(text, text, bool) text
    current_schema() name
    current_schemas(bool) name[]
    current_user() name
    current_database() name
    pg_encoding_to_char(int4) name
    pg_char_to_encoding(name) int4
    pg_size_pretty(int8) text
""")
"""Functions that are written in Python, in `lookups.py`."""
_NATIVE = _read("""
    upper(text) text
    lower(text) text
    length(text) int4
    char_length(text) int4
    character_length(text) int4
    octet_length(text) int4
    substring(text, int4) text
    substring(text, int4, int4) text
    substr(text, int4) text
    substr(text, int4, int4) text
    translate(text, text, text) text
    left(text, int4) text
    right(text, int4) text
    reverse(text) text
    starts_with(text, text) bool
    strpos(text, text) int4
    split_part(text, text, int4) text
    btrim(text) text
    btrim(text, text) text
    ltrim(text) text
    ltrim(text, text) text
    rtrim(text) text
    rtrim(text, text) text
    ascii(text) int4
    chr(int4) text
    md5(text) text
    array_to_string(text[], text) text
    sqrt(float8) float8
    exp(float8) float8
    ln(float8) float8
    sign(float8) float8
    pi() float8
    bit_length(text) int4
""")
"""Functions that DuckDB has under the same name. None makes a much longer text: that memory would not be limited."""
_RENAMED = {
    "char_length": "length",
    "character_length": "length",
    "octet_length": "strlen",
    "btrim": "trim",
    "substr": "substring",
    "position": "strpos",
}
NOTHING = {
    **dict.fromkeys(
        (
            *("pg_get_viewdef", "pg_get_ruledef", "pg_get_triggerdef", "pg_get_partkeydef"),
            *("pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns", "pg_get_functiondef"),
            *("pg_get_statisticsobjdef_expressions", "pg_get_function_sqlbody", "pg_get_serial_sequence"),
            *("pg_get_partition_constraintdef", "pg_relation_filepath", "pg_get_function_arg_default"),
        ),
        "text",
    ),
    **dict.fromkeys(
        (
            *("pg_database_size", "pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_indexes_size"),
            *("pg_tablespace_size", "pg_stat_get_numscans", "pg_stat_get_live_tuples", "pg_stat_get_dead_tuples"),
            *("pg_sequence_last_value", "txid_current_if_assigned", "pg_column_size"),
        ),
        "int8",
    ),
    **dict.fromkeys(("inet_server_addr", "inet_client_addr"), "inet"),
    **dict.fromkeys(("inet_server_port", "inet_client_port"), "int4"),
    **dict.fromkeys(("pg_postmaster_start_time", "pg_conf_load_time", "pg_last_xact_replay_timestamp"), "timestamptz"),
    **dict.fromkeys(("pg_stat_get_last_vacuum_time", "pg_stat_get_last_analyze_time"), "timestamptz"),
    "pg_relation_filenode": "oid",
}
"""Functions that know nothing here: no sizes, no statistics, no expressions."""
_ALWAYS: dict[str, tuple[str, str]] = {
    "pg_is_in_recovery": ("false", "bool"),
    "pg_is_wal_replay_paused": ("false", "bool"),
    "pg_is_other_temp_schema": ("false", "bool"),
    "pg_my_temp_schema": ("0", "oid"),
    "pg_backend_pid": ("0", "int4"),
    "pg_tablespace_location": ("", "text"),
    "pg_client_encoding": ("UTF8", "name"),
    "getdatabaseencoding": ("UTF8", "name"),
    "txid_current": ("1", "int8"),
    "pg_trigger_depth": ("0", "int4"),
    "pg_jit_available": ("false", "bool"),
    "pg_blocking_pids": ("[]", "int4[]"),
    **dict.fromkeys(("pg_advisory_unlock_all", "pg_advisory_lock", "pg_advisory_unlock_shared"), ("", "text")),
    **dict.fromkeys(("pg_try_advisory_lock", "pg_advisory_unlock"), ("true", "bool")),
}
"""Functions that say the same always."""


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
    known = _NATIVE.get((name, len(values)))
    if known is not None:
        return Value(
            cast(call(_RENAMED.get(name, name), *_fitting(made, values, known.takes)), known.gives), known.gives
        )
    if name in _ALWAYS:
        said, kind = _ALWAYS[name]
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
    from discreet.gateway.catalog.expressions import as_text, cast_value

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


def split_array(written: str) -> list[str | None]:
    """The elements of an array that is written as a text, such as {a,"b c",NULL}."""
    inside = written.strip()
    if not (inside.startswith("{") and inside.endswith("}")) or "{" in inside[1:-1].replace('"', ""):
        raise Refusal(f'malformed array literal: "{written}"', state="22P02")
    found: list[str | None] = []
    for piece in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)', inside[1:-1]):
        if piece[1] is None and not piece[2] and piece.end() == len(inside) - 2 and piece.start() == piece.end():
            continue
        plain = (piece[2] or "").strip()
        found.append(
            re.sub(r"\\(.)", r"\1", piece[1]) if piece[1] is not None else None if plain.upper() == "NULL" else plain
        )
    return found


# --- aggregates -------------------------------------------------------------------------------------------------

AGGREGATES = {
    "count": "count",
    "min": "min",
    "max": "max",
    "sum": "sum",
    "avg": "avg",
    "array_agg": "list",
    "string_agg": "string_agg",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "every": "bool_and",
}


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
    from discreet.gateway.catalog.expressions import as_text

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
        shown = {"lower": number(low), "upper": exp.Add(this=count, expression=number(low - 1)), "length": count}[which]
        some = exp.GT(this=count.copy(), expression=number(0))
        return Value(cast(exp.Case(ifs=[exp.If(this=some, true=shown)]), "int4"), "int4")

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
    from discreet.gateway.catalog.expressions import cast_value

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
    from discreet.gateway.catalog.expressions import as_text

    return Value(call("concat", *(as_text(made.coerce(value, "text")) for value in values)), "text")


def _concat_with(made: Translator, values: list[Value]) -> Value:
    from discreet.gateway.catalog.expressions import as_text

    return Value(call("concat_ws", *(as_text(made.coerce(value, "text")) for value in values)), "text")


def _format(made: Translator, values: list[Value]) -> Value:
    from discreet.gateway.catalog.expressions import as_text

    if not values:
        raise unknown_function("format", values)
    first, *rest = (as_text(made.coerce(value, "text")) for value in values)
    return Value(call("our_format", first, cast(exp.Array(expressions=rest), "text[]")), "text")


def _json_object(made: Translator, values: list[Value]) -> Value:
    from discreet.gateway.catalog.expressions import as_text

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
KNOWN = frozenset({*_SPECIAL, *NOTHING, *_ALWAYS, *AGGREGATES, *ROWS_OF, *(name for name, _ in (*LOOKUPS, *_NATIVE))})
"""The names of all functions that a statement may use."""
