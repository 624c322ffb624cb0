"""What is said over the PostgreSQL protocol: types, columns, results, notices and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

SERVER_VERSION = "15.19"
"""The version of PostgreSQL whose behavior clients may expect."""


class Type(NamedTuple):
    """A type of PostgreSQL: its number in `pg_type`, and how many bytes a value has (-1 if that differs)."""

    oid: int
    size: int


TYPES = {
    "bool": Type(16, 1),
    "int8": Type(20, 8),
    "int4": Type(23, 4),
    "int2": Type(21, 2),
    "oid": Type(26, 4),
    "float8": Type(701, 8),
    "float4": Type(700, 4),
    "numeric": Type(1700, -1),
    "text": Type(25, -1),
    "varchar": Type(1043, -1),
    "name": Type(19, 64),
    "char": Type(18, 1),
    "date": Type(1082, 4),
    "timestamp": Type(1114, 8),
    "timestamptz": Type(1184, 8),
    "bytea": Type(17, -1),
    "regtype": Type(2206, 4),
    "regclass": Type(2205, 4),
    "text[]": Type(1009, -1),
    "name[]": Type(1003, -1),
    "char[]": Type(1002, -1),
    "int2[]": Type(1005, -1),
    "int4[]": Type(1007, -1),
    "int8[]": Type(1016, -1),
    "oid[]": Type(1028, -1),
    "int2vector": Type(22, -1),
    "oidvector": Type(30, -1),
    "unknown": Type(705, -2),
    "bpchar": Type(1042, -1),
    "json": Type(114, -1),
    "jsonb": Type(3802, -1),
    "interval": Type(1186, 16),
    "time": Type(1083, 8),
    "inet": Type(869, -1),
    "xid": Type(28, 4),
    "cid": Type(29, 4),
    "pg_lsn": Type(3220, 8),
    "regproc": Type(24, 4),
    "regprocedure": Type(2202, 4),
    "regnamespace": Type(4089, 4),
    "regrole": Type(4096, 4),
    "regoperator": Type(2204, 4),
    "pg_node_tree": Type(194, -1),
    "anyarray": Type(2277, -1),
    "aclitem[]": Type(1034, -1),
    "bool[]": Type(1000, -1),
    "varchar[]": Type(1015, -1),
    "float4[]": Type(1021, -1),
    "float8[]": Type(1022, -1),
    "numeric[]": Type(1231, -1),
    "regtype[]": Type(2211, -1),
    "regclass[]": Type(2210, -1),
    "json[]": Type(199, -1),
    "record": Type(2249, -1),
}
"""The types that are spoken. Answers have bool, int8, float8, text, date and timestamp; the catalog has more."""
NAMES = {kind.oid: name for name, kind in TYPES.items()}
"""The names of the types by their numbers."""


class Column(NamedTuple):
    """A column of a result: its name, and the name of its type."""

    name: str
    type: str = "text"


class Described(NamedTuple):
    """What a statement needs and gives: the types of its parameters, and its columns. None if it gives no rows."""

    parameters: tuple[str, ...]
    columns: tuple[Column, ...] | None


SUCCESS = "00000"
"""The SQLSTATE of what is no error."""


class Notice(NamedTuple):
    """Something that is said next to a result."""

    message: str
    hint: str | None = None
    severity: Literal["NOTICE", "WARNING", "INFO"] = "NOTICE"
    code: str = SUCCESS


class Copy(NamedTuple):
    """How rows are copied out: COPY … TO STDOUT."""

    form: Literal["text", "csv", "binary"] = "text"
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'


@dataclass(frozen=True)
class Result:
    """What a statement gives. Rows hold Python values, which are written as the type of their column."""

    tag: str
    """How the statement is reported, such as SELECT 3 or SET."""
    columns: tuple[Column, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    notices: tuple[Notice, ...] = ()
    copy: Copy | None = None
    settings: dict[str, str] = field(default_factory=dict)
    """Settings that a client is told when they change, such as client_encoding."""


class Refusal(Exception):
    """An error for a client: a SQLSTATE, a message, perhaps a hint, and where in the text it is (from 1)."""

    def __init__(self, message: str, *, state: str, hint: str | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.message, self.state, self.hint, self.position = message, state, hint, position
