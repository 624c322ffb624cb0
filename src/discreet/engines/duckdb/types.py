"""DuckDB's types: our type for each, how it is converted, and which are not safe to read at all."""

from __future__ import annotations

from discreet.engines.duckdb.dialect import decimal_as_double
from discreet.engines.parquet_files import without_statistics

_TYPES = (
    ("boolean", ("BOOLEAN",)),
    ("integer", ("INTEGER", *(f"{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("integer", ("UINTEGER", *(f"U{size}INT" for size in ("TINY", "SMALL", "BIG", "HUGE")))),
    ("number", ("DOUBLE", "FLOAT", "DECIMAL", "REAL")),
    ("date", ("DATE",)),
    ("timestamp", ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")),
    ("text", ("VARCHAR", "ENUM", "UUID", '"NULL"')),  # a column without any value
)
_PLAIN = {name for _, names in _TYPES for name in names}
_PLAIN |= {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", "INTERVAL", "BLOB"}
"""Columns of other types are not there: one cell of a list, a map, JSON or a time of day can stop all questions."""

_ODD = {
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "BIGINT"),
    **dict.fromkeys(("DECIMAL", "FLOAT", "REAL"), "DOUBLE"),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "TIMESTAMP"),
    **dict.fromkeys(("ENUM", "UUID", '"NULL"'), "VARCHAR"),
}
"""Types that are read as others: what does not fit those is NULL."""


def kind_of(given: str) -> str:
    """Our type for one of DuckDB's."""
    plain = given.upper().partition("(")[0]
    return next((kind for kind, names in _TYPES if plain in names), "other") if not given.endswith("]") else "other"


def is_safe(given: str) -> bool:
    """Whether no cell of this type can stop a reader."""
    return given.upper().partition("(")[0] in _PLAIN and not given.endswith("]")


def plainly(column: str, given: str, *, parquet: bool) -> str | None:
    """A column converted to the one DuckDB type for each of our types, so that values are compared directly. None if it
    already has that type.
    """
    plain = given.partition("(")[0]
    if plain == "DECIMAL":
        return decimal_as_double(column, given)
    if plain in _ODD:
        return f"TRY_CAST({column} AS {_ODD[plain]})"
    return without_statistics(column) if parquet and plain == "VARCHAR" else None
