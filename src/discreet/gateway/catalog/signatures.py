"""The functions of PostgreSQL that the catalog knows, with the types of their arguments and results."""

from __future__ import annotations

import re
from typing import NamedTuple

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
NATIVE = _read("""
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
RENAMED = {
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
ALWAYS: dict[str, tuple[str, str]] = {
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
"""Aggregates, and their names in DuckDB."""
