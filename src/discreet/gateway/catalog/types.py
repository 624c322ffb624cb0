"""Types of PostgreSQL in the catalog: how a cast names them, how DuckDB stores them, and what two have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from sqlglot import exp

from discreet.gateway.wire.format.values import TYPES, Refusal

UNKNOWN = "unknown"
"""The type of a quoted literal, of NULL and of a parameter, until something next to it tells."""
REFERENCES = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoperator")
"""Types that hold the number of an object, and are written as its name."""
TEXTS = ("text", "name", "varchar", "bpchar", "char")
_NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
_STORED = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "numeric": "DECIMAL(38, 10)",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP",
    "time": "TIME",
    "interval": "INTERVAL",
    "bytea": "BLOB",
    "oid": "BIGINT",
    "xid": "BIGINT",
    "cid": "BIGINT",
    "int2vector": "SMALLINT[]",
    "oidvector": "BIGINT[]",
    "anyarray": "VARCHAR[]",
} | dict.fromkeys(REFERENCES, "BIGINT")
_WRITTEN = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "TEXT": "text",
    "VARCHAR": "varchar",
    "CHAR": "bpchar",
    "BPCHAR": "bpchar",
    "BOOLEAN": "bool",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "DECIMAL": "numeric",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "TIME": "time",
    "NAME": "name",
    "INTERVAL": "interval",
    "JSON": "json",
    "JSONB": "jsonb",
    "VARBINARY": "bytea",
    "INET": "inet",
}
_OTHER_NAMES = {
    "cardinal_number": "int4",
    "sql_identifier": "name",
    "character_data": "varchar",
    "yes_or_no": "varchar",
    "int": "int4",
    "integer": "int4",
    "bigint": "int8",
    "smallint": "int2",
    "boolean": "bool",
    "real": "float4",
    "decimal": "numeric",
}
_FROM_DUCKDB = {
    "BOOLEAN": "bool",
    "TINYINT": "int2",
    "SMALLINT": "int2",
    "INTEGER": "int4",
    "BIGINT": "int8",
    "UINTEGER": "int8",
    "UBIGINT": "numeric",
    "HUGEINT": "numeric",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "TIME": "time",
    "BLOB": "bytea",
}


def stored_as(kind: str) -> str:
    """The type of DuckDB that stores a type."""
    if is_array(kind) and kind not in _STORED:
        return f"{stored_as(kind[:-2])}[]"
    return _STORED.get(kind, "VARCHAR")


def spoken_as(stored: str) -> str:
    """The type that a client is told for a type of DuckDB."""
    if stored.endswith("[]"):
        return f"{spoken_as(stored[:-2])}[]"
    return "numeric" if stored.startswith("DECIMAL") else _FROM_DUCKDB.get(stored, "text")


def is_array(kind: str) -> bool:
    """Whether a type is an array, or one of the two that are used like one."""
    return kind.endswith("[]") or kind in ("int2vector", "oidvector")


def element_of(kind: str) -> str:
    """The type of an element of an array."""
    return {"int2vector": "int2", "oidvector": "oid", "anyarray": "text"}.get(kind) or kind.removesuffix("[]")


def array_of(kind: str) -> str:
    """The type of an array of such elements."""
    return "text[]" if kind == UNKNOWN else kind if kind.endswith("[]") else f"{kind}[]"


def read_type(kind: exp.Expr) -> str:
    """The type that a cast names."""
    if isinstance(kind, exp.ObjectIdentifier):
        return _known(str(kind.this).lower())
    if isinstance(kind, exp.DataType):
        if kind.this == exp.DType.ARRAY:
            return f"{element_of(read_type(kind.expressions[0]))}[]"
        if kind.this == exp.DType.USERDEFINED:
            return _known(_last_name(kind.args.get("kind")))
        name = _WRITTEN.get(kind.this.name if isinstance(kind.this, exp.DType) else str(kind.this))
        if name:
            return name
    raise Refusal(f"type {kind.sql('postgres')} is not supported", state="0A000")


def _last_name(named: object) -> str:
    if isinstance(named, exp.Dot):
        schema = named.this.name if isinstance(named.this, exp.Identifier) else ""
        if schema.lower() not in ("pg_catalog", "information_schema"):
            raise Refusal(f'type "{schema}.{named.expression.name}" does not exist', state="42704")
        named = named.expression
    if isinstance(named, exp.Identifier):
        return named.name if named.quoted else named.name.lower()
    return str(named).lower().removeprefix("pg_catalog.")


def _known(name: str) -> str:
    name = _OTHER_NAMES.get(name, name)
    if name not in TYPES:
        raise Refusal(f'type "{name}" does not exist', state="42704")
    return name


def merge(kinds: Iterable[str]) -> str:
    """The type of a value that comes from several places, as in CASE or UNION."""
    said = [kind for kind in kinds if kind != UNKNOWN]
    return reduce(_meet, said) if said else "text"


def _meet(one: str, other: str) -> str:
    if one == other:
        return one
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    if one in TEXTS and other in TEXTS:
        return other if one == "char" else one
    if "oid" in (one, other):
        return "oid" if {one, other} & {"int2", "int4", "int8", *REFERENCES} else one
    return one


def add(one: str, other: str) -> str | None:
    """The type of a sum, difference or product. None: DuckDB knows."""
    numbers = [kind for kind in (one, other) if kind in _NUMBERS]
    if {one, other} <= {*_NUMBERS, UNKNOWN} and numbers:
        widest = max(numbers, key=_NUMBERS.index)
        return "float8" if widest == "float4" and "float4" not in (one, other) else widest
    if {one, other} <= {"oid", *_NUMBERS, UNKNOWN}:
        return "int8"
    return None


def choose_parameter(kinds: Sequence[str]) -> str:
    """The type of a parameter by what stands next to it."""
    said = [kind for kind in kinds if kind != UNKNOWN]
    return said[0] if said else "text"


def record_of(**fields: str) -> str:
    """The type of a record with named fields."""
    return "record:" + ",".join(f"{name}={kind}" for name, kind in fields.items())


def is_record(kind: str) -> bool:
    """Whether a type is a record with known fields."""
    return kind.startswith("record:")


def fields_of(kind: str) -> dict[str, str]:
    """The fields of a record and their types."""
    return dict(part.split("=", 1) for part in kind.removeprefix("record:").split(","))
