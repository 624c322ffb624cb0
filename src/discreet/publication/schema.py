"""The declarations of a policy as plain values, and back: a database without rows in which a plan can be replayed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger
from discreet.sql.blocks import Time
from discreet.sql.schema import BOUNDS, Column, Hierarchy, Schema, Table

_UNIT = {"person": "column", "neighbors": "neighbors", "per": "per", "lives_in": "lives_in"}
_FEW_ROWS = ("times", "groups", "by")
_TABLE = ("public", "person", "through", *BOUNDS)
_COLUMN = ("type", "between", "choices", "frequency", "declared", "other")
_HIERARCHY = ("name", "levels", "groups", "totals", "column")


def written_schema(schema: Schema) -> dict[str, Any]:
    """Who is protected, and everything that is declared of tables and columns. No source and no version of data."""
    return {
        "unit": {key: getattr(schema.unit, name) for key, name in _UNIT.items()} | _few_rows(schema.unit),
        "tables": {
            name: {key: getattr(table, key) for key in _TABLE}
            | {"columns": {c.name: {key: _written(getattr(c, key)) for key in _COLUMN} for c in table.columns.values()}}
            | ({} if table.time is None else {"time": vars(table.time)})
            | {"hierarchies": [{key: _written(getattr(one, key)) for key in _HIERARCHY} for one in table.hierarchies]}
            for name, table in schema.tables.items()
        },
    }


def _few_rows(unit: Unit) -> dict[str, Any]:
    """The number of rows of a unit that has several."""
    return {name: getattr(unit, name) for name in _FEW_ROWS if getattr(unit, name) is not None}


def read_schema(words: Mapping[str, Any]) -> Schema:
    """The schema that was written."""
    few = {name: words["unit"].get(name) for name in _FEW_ROWS}
    unit = Unit(**{name: words["unit"].get(key) for key, name in _UNIT.items()}, **few)
    tables = {}
    for name, table in words["tables"].items():
        columns = {
            column: Column(name=column, **{key: _read(declared[key]) for key in _COLUMN})
            for column, declared in table["columns"].items()
        }
        hierarchies = tuple(Hierarchy(**{key: _read(one[key]) for key in _HIERARCHY}) for one in table["hierarchies"])
        known = {key: table[key] for key in _TABLE} | ({"time": Time(**table["time"])} if "time" in table else {})
        tables[name] = Table(name=name, columns=columns, hierarchies=hierarchies, **known)
    return Schema(unit=unit, tables=tables)


def without_rows(words: Mapping[str, Any], public: Path, ledger: Ledger, delta: str) -> Database:
    """A database with these declarations, in which private tables have no rows. Public ones are files in a folder."""
    import pyarrow as pa

    schema = read_schema(words)
    arrow = {"integer": pa.int64(), "number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
    arrow |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
    sources: dict[str, Any] = {}
    for name, table in schema.tables.items():
        kinds = {one.name: arrow.get(one.type, pa.binary()) for one in table.columns.values()}
        file = public / f"{name}.parquet"
        sources[name] = file if table.public else pa.table({one: pa.array([], kind) for one, kind in kinds.items()})
    return Database(schema, DuckDB(sources), ledger, delta_per_question=Fraction(delta))


def _written(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, tuple | list):
        return [_written(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidArgument(
        "A declaration of the policy is not a number, text or a date. Write it as one.", code="wrong-type"
    )


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        [(kind, text)] = value.items()
        return (datetime.datetime if kind == "timestamp" else datetime.date).fromisoformat(text)
    return tuple(_read(one) for one in value) if isinstance(value, list) else value
