"""Write what our catalog knows of an empty PostgreSQL 15: the relations that every database has, and their rows.

$ PYTHONPATH=src python -m tests.gateway.catalog.make_catalog

Left out: bodies of functions and views, descriptions of functions and operators, dependencies, sizes and statistics.
Nothing here comes from anybody's data: the server is made for this, and has no tables.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from .empty_postgres import DATABASE, READER, serve

TARGET = Path(__file__).parents[3] / "src/discreet/gateway/catalog/postgres15.json.xz"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0}]
"""For text, in which no place of a byte is better than another."""
ACCOUNT = "\x01"
"""Stands for the account that asks, in privileges."""

_COLUMNS = """
    SELECT n.nspname, c.relname, c.relkind::text,
        array_agg(ARRAY[a.attname, CASE WHEN t.typtype = 'd' THEN b.typname ELSE t.typname END] ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
        JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0
    GROUP BY 1, 2, 3 ORDER BY 1, 2
"""
_NO_ROWS = {
    "pg_authid", "pg_statistic", "pg_statistic_ext_data", "pg_user_mapping", "pg_subscription", "pg_rewrite",
    "pg_largeobject", "pg_shadow", "pg_database", "pg_shdepend", "pg_tables", "pg_views", "pg_indexes",
    "pg_user", "pg_group", "pg_rules", "pg_stats", "pg_settings", "pg_hba_file_rules",
    "pg_file_settings", "pg_ident_file_mappings", "pg_replication_origin",
}  # fmt: skip
_VIEW_ROWS = {
    "pg_roles",
    "pg_timezone_names",
    "pg_timezone_abbrevs",
    "pg_available_extensions",
    "pg_available_extension_versions",
}
_ROWS_OF_SCHEMA = {"sql_features", "sql_implementation_info", "sql_parts", "sql_sizing"}
_NO_STATISTICS = {"relpages": 0, "reltuples": -1, "relallvisible": 0}
_WITHOUT = {
    "pg_description": "classoid NOT IN (1255, 2617)",
    "pg_depend": "refclassid = 'pg_extension'::regclass",
    "pg_roles": f"rolname <> '{READER}'",
}
_SETTINGS_LEFT_OUT = "sourcefile|sourceline|pending_restart"
_SAID = {
    "types": "SELECT oid::int8, format_type(oid, NULL) FROM pg_type WHERE typnamespace IN (11, 99) OR typrelid <> 0",
    "functions": "SELECT oid::int8, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), "
    "pg_get_function_result(oid) FROM pg_proc",
    "indexes": "SELECT indexrelid::int8, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 0, true), "
    "ARRAY(SELECT pg_get_indexdef(indexrelid, n, true) FROM generate_series(1, indnatts) n) FROM pg_index",
    "constraints": "SELECT oid::int8, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint",
    "updatable": "SELECT oid::int8 FROM pg_class WHERE relkind = 'v' AND pg_relation_is_updatable(oid, false) & 8 = 8",
    "keywords": "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords()",
}
"""What PostgreSQL says about its own objects by functions."""
_AS_READ = {
    "regproc": "{}::oid::int8", "regtype": "{}::oid::int8", "regclass": "{}::oid::int8", "oid": "{}::int8",
    "xid": "{}::text::int8", "char": "{}::text", "name": "{}::text", "aclitem[]": "{}::text[]",
    "int2vector": "string_to_array({}::text, ' ')::int2[]", "oidvector": "string_to_array({}::text, ' ')::int8[]",
    "oid[]": "{}::int8[]", "char[]": "{}::text[]", "name[]": "{}::text[]", "pg_node_tree": "NULL", "anyarray": "NULL",
    "interval": "{}::text", "inet": "{}::text", "pg_lsn": "{}::text", "timestamptz": "{}::text", "xml": "NULL",
}  # fmt: skip


def take(connection: psycopg.Connection) -> dict[str, Any]:
    """What the catalog of an empty database holds."""
    relations = []
    for schema, name, kind, columns in connection.execute(_COLUMNS).fetchall():
        named = [(column, _type(kind_of)) for column, kind_of in columns]
        wanted = (kind == "r" and name not in _NO_ROWS) or name in _VIEW_ROWS | _ROWS_OF_SCHEMA
        rows = _rows(connection, schema, name, named) if wanted else []
        relations.append({"schema": schema, "name": name, "columns": named, "rows": rows})
    said = {what: connection.execute(text + " ORDER BY 1").fetchall() for what, text in _SAID.items()}
    settings = connection.execute("SELECT name, boot_val FROM pg_settings ORDER BY 1").fetchall()
    columns = [name for name, _ in next(one["columns"] for one in relations if one["name"] == "pg_settings")]
    rows = connection.execute(f"SELECT {', '.join(columns)} FROM pg_settings ORDER BY name").fetchall()
    next(one for one in relations if one["name"] == "pg_settings")["rows"] = [
        _plain(dict(zip(columns, row, strict=True))) for row in rows
    ]
    for one in relations:
        one["rows"] = by_column(one["rows"])
    return {"relations": relations, "said": {k: by_column(v) for k, v in said.items()}, "settings": dict(settings)}


def by_column(rows: list[Any]) -> list[Any]:
    """Rows as they are stored: column by column, which is smaller."""
    return list(zip(*rows, strict=True))


def _plain(row: dict[str, Any]) -> list[Any]:
    """A setting as every server has it after its start: nothing of this machine."""
    if row["name"] == "server_version":
        row["setting"] = row["boot_val"] = row["reset_val"] = row["setting"].split()[0]
    own = {"setting": row["boot_val"], "reset_val": row["boot_val"], "source": "default", "pending_restart": False}
    kept = row["name"] in ("server_version", "server_version_num", "server_encoding", "max_index_keys", "block_size")
    return list((row if kept else row | own).values())


def _type(name: str) -> str:
    return f"{name[1:]}[]" if name.startswith("_") else name


def _rows(connection: psycopg.Connection, schema: str, name: str, columns: list[tuple[str, str]]) -> list[list[Any]]:
    read = ", ".join(
        "pg_get_expr(proargdefaults, 0)"
        if column == "proargdefaults"
        else _AS_READ.get(kind, "{}").format(f'"{column}"')
        for column, kind in columns
    )
    where = _WITHOUT.get(name, "true")
    key = '"oid"' if ("oid", "oid") in columns else "1, 2, 3" if len(columns) > 2 else "1"
    rows = connection.execute(f"SELECT {read} FROM {schema}.{name} WHERE {where} ORDER BY {key}").fetchall()
    return [[_value(name, column, value, row) for (column, _), value in zip(columns, row, strict=True)] for row in rows]


def _value(relation: str, column: str, value: Any, row: tuple[Any, ...]) -> Any:
    if relation == "pg_class" and column in _NO_STATISTICS:
        return _NO_STATISTICS[column]
    if relation == "pg_proc" and column == "prosrc" and row[4] not in (12, 13):
        return ""
    if isinstance(value, list):
        return [one.replace(READER, ACCOUNT) if isinstance(one, str) else one for one in value]
    return value


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory(prefix="discreet_catalog_") as folder,
        serve(Path(folder), {"tables": []}) as url,
        psycopg.connect(url) as taken,
    ):
        text = json.dumps(take(taken), ensure_ascii=False, separators=(",", ":"), default=str)
    assert DATABASE not in text
    TARGET.write_bytes(lzma.compress(text.encode(), filters=FILTERS))
    print(TARGET.name, len(text), TARGET.stat().st_size)
