"""The DuckDB that holds the catalog: in memory, with our relations and functions, and locked after it was made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import NATIVE, SPECIAL

from discreet.gateway.catalog.lookups import Lookups
from discreet.gateway.catalog.signatures import LOOKUPS
from discreet.gateway.catalog.snapshot import Kept
from discreet.gateway.catalog.types import REFERENCES, stored_as
from discreet.gateway.catalog.views import VIEWS

MEMORY = "256MB"
SCHEMAS = {"pg_catalog": "pg", "information_schema": "info"}
"""Where DuckDB has the relations of a schema: it has schemas with these names itself."""
_ARROW = {
    "BOOLEAN": pa.bool_(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}
# no macro uses an argument twice: nested calls would double at every level
_MACROS = """
    CREATE MACRO regex_of(pattern) AS pattern;
    CREATE MACRO array_joined(one, other) AS list_concat(one, other);
    CREATE MACRO array_without(one, gone) AS list_filter(one, lambda kept: kept IS DISTINCT FROM gone);
    CREATE MACRO numbered(one) AS list_transform(one, lambda value, place: {'x': value, 'n': place::INTEGER});
    CREATE MACRO no_options() AS []::STRUCT(option_name VARCHAR, option_value VARCHAR)[];
"""
_GRANTS = "STRUCT(grantor BIGINT, grantee BIGINT, privilege_type VARCHAR, is_grantable BOOLEAN)[]"


def make_database(kept: Mapping[tuple[str, str], Kept], lookups: Lookups) -> duckdb.DuckDBPyConnection:
    """A database with the relations and the functions. Nothing in it can be changed, and it reaches nothing else."""
    limits: dict[str, str | int] = {
        "threads": 1,
        "memory_limit": MEMORY,
        "max_temp_directory_size": "0B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    database = duckdb.connect(":memory:", config={**limits})
    database.execute("SET python_enable_replacements = false")
    database.execute("CREATE SCHEMA pg; CREATE SCHEMA info; CREATE SCHEMA kept")
    database.execute(_MACROS)
    _add_functions(database, lookups)
    for (schema, name), relation in kept.items():
        _add_relation(database, SCHEMAS[schema], name, relation)
    _add_views(database, kept)
    database.execute("SET temp_directory = ''")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database


def _add_relation(database: duckdb.DuckDBPyConnection, schema: str, name: str, relation: Kept) -> None:
    shared = any(column.type == "aclitem[]" for column in relation.columns)
    place = "kept" if (schema, name) in VIEWS or shared else schema
    columns = ", ".join(f'"{column.name}" {stored_as(column.type)}' for column in relation.columns)
    database.execute(f'CREATE TABLE {place}."{name}" ({columns})')
    if relation.rows:
        database.register("arriving", _arrow(relation))
        database.execute(f'INSERT INTO {place}."{name}" SELECT * FROM arriving')
        database.unregister("arriving")
    if shared and (schema, name) not in VIEWS:
        # privileges name the account that asks
        shown = 'list_transform("{0}", lambda item: replace(item, chr(1), getvariable(\'who_quoted\'))) AS "{0}"'
        parts = [shown.format(c.name) if c.type == "aclitem[]" else f'"{c.name}"' for c in relation.columns]
        database.execute(f'CREATE VIEW {schema}."{name}" AS SELECT {", ".join(parts)} FROM kept."{name}"')


def _arrow(relation: Kept) -> pa.Table:
    arrays = {}
    for place, column in enumerate(relation.columns):
        stored = stored_as(column.type)
        kind = _ARROW.get(stored.removesuffix("[]"), pa.string())
        values = [row[place] for row in relation.rows]
        if stored in ("TIMESTAMP", "INTERVAL", "DATE"):
            values = [None if value is None else str(value) for value in values]
        arrays[column.name] = pa.array(values, pa.list_(kind) if stored.endswith("[]") else kind)
    return pa.table(arrays)


def _add_views(database: duckdb.DuckDBPyConnection, kept: Mapping[tuple[str, str], Kept]) -> None:
    """The views, with the columns and the types of the relations that they stand for."""
    schemas = {ours: theirs for theirs, ours in SCHEMAS.items()}
    for (schema, name), query in VIEWS.items():
        columns = kept[schemas[schema], name].columns
        places = ", ".join(f"c{place}" for place in range(len(columns)))
        shown = ", ".join(
            f'CAST(c{place} AS {stored_as(column.type)}) AS "{column.name}"' for place, column in enumerate(columns)
        )
        database.execute(f'CREATE VIEW {schema}."{name}" AS SELECT {shown} FROM ({query}) AS rows({places})')


def _add_functions(database: duckdb.DuckDBPyConnection, lookups: Lookups) -> None:
    def add(name: str, function: Callable[..., Any], takes: list[str], gives: str, *, nulls: bool = False) -> None:
        called = _of(function if nulls else _unless_null(function), len(takes))
        kinds: list[Any] = [duckdb.sqltype(kind) for kind in takes]
        database.create_function(name, called, kinds, duckdb.sqltype(gives), null_handling=SPECIAL, type=NATIVE)

    for (name, count), (takes, gives) in LOOKUPS.items():
        visible = re.fullmatch(r"pg_(\w+)_is_visible", name)
        function = _visible(lookups, visible[1]) if visible else getattr(lookups, name)
        stored = [stored_as(kind) for kind in takes]
        add(f"our_{name}_{count}", function, stored, stored_as(gives), nulls=name == "format_type")
    for kind in REFERENCES:
        add(f"find_{kind}", getattr(lookups, f"find_{kind}"), ["VARCHAR"], "BIGINT")
        add(f"said_{kind}", getattr(lookups, f"said_{kind}"), ["BIGINT"], "VARCHAR")
    add("our_setting", lookups.setting, ["VARCHAR"], "VARCHAR")
    add("our_is_updatable", lookups.is_updatable, ["BIGINT"], "BOOLEAN")
    add("our_has_privilege_oid", lookups.has_privilege, ["VARCHAR", "BIGINT", "VARCHAR"], "BOOLEAN")
    add("our_has_privilege_name", lookups.has_privilege_by_name, ["VARCHAR"] * 3, "BOOLEAN")
    add("our_pg_has_role_2", lookups.pg_has_role, ["VARCHAR"] * 2, "BOOLEAN")
    add("our_aclexplode_1", lookups.acl_explode, ["VARCHAR[]"], _GRANTS)
    add("our_acldefault_2", lookups.acl_default, ["VARCHAR", "BIGINT"], "VARCHAR[]")
    add("bounded_series", lookups.series, ["BIGINT"] * 3, "BIGINT[]")
    add("divide_whole", lookups.divide_whole, ["BIGINT"] * 2, "BIGINT")
    add("our_divide", lookups.divide, ["DOUBLE"] * 2, "DOUBLE")
    add("our_remainder", lookups.remainder, ["DOUBLE"] * 2, "DOUBLE")
    add("our_bound", _bound, ["BIGINT", "VARCHAR", "BIGINT"], "INTEGER")
    add("said_array", write_array, ["VARCHAR[]"], "VARCHAR")
    add("our_array_to_string", _joiner(lookups), ["VARCHAR[]", "VARCHAR", "VARCHAR"], "VARCHAR", nulls=True)
    add("our_format", _formatter(lookups), ["VARCHAR", "VARCHAR[]"], "VARCHAR")


def _of(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A function with so many arguments: DuckDB reads their number from its signature."""
    return (
        lambda: function(),
        lambda one: function(one),
        lambda one, two: function(one, two),
        lambda one, two, three: function(one, two, three),
    )[count]


def _visible(lookups: Lookups, what: str) -> Callable[[int], bool | None]:
    return lambda oid: lookups.is_visible(what, oid)


def _unless_null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else function(*values)


def _bound(count: int, which: str, first: int) -> int | None:
    """The first or last place of an array, or how many elements it has. None if it is empty."""
    return {"lower": first, "upper": count + first - 1, "length": count}[which] if count else None


def write_array(values: list[str | None]) -> str:
    """An array as PostgreSQL writes it."""

    def written(value: str | None) -> str:
        if value is None:
            return "NULL"
        if value == "" or value.upper() == "NULL" or re.search(r'[\s{},"\\]', value):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return value

    return "{" + ",".join(map(written, values)) + "}"


def _joiner(lookups: Lookups) -> Callable[..., str | None]:
    def join(values: list[str | None] | None, between: str | None, missing: str | None) -> str | None:
        if values is None or between is None:
            return None
        lookups.check_length(len(values) * (len(between) + len(missing or "")))
        shown = (missing if one is None else one for one in values)
        return between.join(one for one in shown if one is not None)

    return join


def _formatter(lookups: Lookups) -> Callable[[str, list[str | None]], str]:
    def write(form: str, values: list[str | None]) -> str:
        left = iter(values)

        def one(found: re.Match[str]) -> str:
            if found[1] == "%":
                return "%"
            value = next(left, None)
            if found[1] == "I":
                return lookups.quote_ident(value or "")
            if found[1] == "L":
                return "NULL" if value is None else lookups.quote_literal(value)
            return value or ""

        return re.sub(r"%([%sIL])", one, form)

    return write
