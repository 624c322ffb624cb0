"""PostgreSQL (13 or later): plans run where the tables are, read-only, in PostgreSQL's dialect.

Every statement has a connection and a read-only transaction of its own, so threads, forks and lost servers leave
nothing behind. Error messages of the server are not passed on. Give the URL a role that may read the declared tables
and nothing else: CREATE ROLE discreet LOGIN; GRANT USAGE ON SCHEMA … TO discreet; GRANT SELECT ON … TO discreet. A
password may also come from ~/.pgpass or $PGPASSWORD.
"""

from __future__ import annotations

import copy
import decimal
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from discreet.engines.dialect import Dialect
from discreet.engines.postgres import dialect as postgres_dialect
from discreet.engines.postgres.dialect import ARRAY, plainly_typed, quote
from discreet.engines.postgres.values import TYPES
from discreet.errors import EngineFailed, InvalidArgument
from discreet.extras import need
from discreet.rows.arrow import array_of

OLDEST = 130_000
CONNECT_S = 20
_KINDS = {
    "boolean": ("bool",),
    "integer": ("int2", "int4", "int8"),
    "number": ("float4", "float8", "numeric"),
    "text": ("text", "varchar", "bpchar", "uuid"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamptz"),
}
_KIND_OF = {own: kind for kind, names in _KINDS.items() for own in names}
# Nothing of the session is left to the role or the server: functions, operators and types are those of pg_catalog only,
# text and numbers are written in one way, and no policy of a table chooses rows, which may fail on one of them.
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "error",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "row_security": "off",
    # estimates for computed rows are poor: a nested loop could take forever
    "enable_nestloop": "off",
    "jit": "off",
}
# Whether a relation and all of its parts (partitions, tables that inherit from it) are stored as they are read, whether
# the role may read it, and whether it has policies that choose rows.
_FIND = """
WITH RECURSIVE parts AS (
    SELECT c.oid, TRUE AS named FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
    UNION SELECT i.inhrelid, FALSE FROM pg_inherits i JOIN parts ON parts.oid = i.inhparent
)
SELECT
    bool_and(c.relkind IN ('r', 'p', 'm') AND NOT EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated = 'v' AND NOT a.attisdropped
    )),
    bool_and(NOT named OR has_table_privilege(c.oid, 'SELECT')),
    bool_or(named AND row_security_active(c.oid))
FROM parts JOIN pg_class c ON c.oid = parts.oid
"""
_FAILED = (
    "PostgreSQL could not compute this, took longer than allowed, or went away. Its message is not shown, as it may "
    "quote values. What was charged stays charged: ask again with the same key, or give it more time with timeout."
)
_CLOSED = (
    "The database cannot be opened. Check that the server runs, and that its URL is right (in a policy, url of "
    "[engine]): the host, the database and the role. Its password may be in $PGPASSWORD, or in ~/.pgpass of the "
    "user who runs this: for a gateway, that of the vault."
)


class Postgres:
    """Tables of one database, each named with its schema, under our names."""

    reads_files = False

    def __init__(self, url: str, sources: Mapping[str, Any], *, timeout: int = 600) -> None:
        self._psycopg = need("psycopg", "postgres", "The engine PostgreSQL")
        self._url, self._timeout = url, timeout
        self._kinds: dict[str, dict[str, str]] = {}
        self.relations: dict[str, str] = {}
        self._transaction(lambda connection: self._open_all(connection, sources), _CLOSED, "engine-unreachable")

    @property
    def dialect(self) -> Dialect:
        """PostgreSQL's dialect."""
        return postgres_dialect

    def _open_all(self, connection: Any, sources: Mapping[str, Any]) -> None:
        if connection.info.server_version < OLDEST:
            raise InvalidArgument(
                "The engine needs PostgreSQL 13 or later. Name another server in url.", code="engine-version"
            )
        if connection.execute("SHOW server_encoding").fetchone()[0] != "UTF8":
            raise InvalidArgument(
                "The engine needs a database whose encoding is UTF8. Name another in url.", code="engine-encoding"
            )
        for name, source in sources.items():
            self._open(connection, name, str(source))

    def _open(self, connection: Any, name: str, source: str) -> None:
        """Find a table and the types of its columns. No row is read."""
        schema, _, table = source.partition(".")
        stored, readable, filtered = connection.execute(_FIND, (schema, table)).fetchone()
        if stored is None:
            raise InvalidArgument(
                f"The source of {name} does not exist: {source}. Correct the schema or the table.",
                code="source-missing",
            )
        # a computed column may fail on a row, and the failure would reveal something about it
        if not stored:
            raise InvalidArgument(
                f"The source of {name} must be a table or a materialized view, with no virtual columns and no foreign "
                f"parts: {source} is not. Store what a view computes with CREATE MATERIALIZED VIEW.",
                code="source-not-a-table",
            )
        if not readable:
            raise InvalidArgument(
                f"The role of url may not read {source}. GRANT SELECT ON it.", code="source-no-rights"
            )
        if filtered:
            raise InvalidArgument(
                f"The rows of {source} are chosen by policies of PostgreSQL (row-level security). Give the role of url "
                "BYPASSRLS, or a table of its own.",
                code="source-row-security",
            )
        relation = f"{quote(schema)}.{quote(table)}"
        listed = connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
        types = {column.name: self._type(connection, column.type_code) for column in listed}
        self._kinds[name] = {column: kind for column, (kind, _) in types.items()}
        columns = ", ".join(plainly_typed(column, *pair) for column, pair in types.items())
        self.relations[name] = f"(SELECT {columns} FROM {relation}) AS source_of_rows"

    def _type(self, connection: Any, oid: int) -> tuple[str, str]:
        """Our type of a column, and PostgreSQL's. A domain has the type it is based on. An enum is text."""
        own, sort = connection.execute(
            "SELECT typname, CASE WHEN typtype = 'e' THEN 'enum' WHEN typcategory = 'A' THEN 'array' "
            "WHEN typnamespace = 'pg_catalog'::regnamespace THEN 'known' END FROM pg_type WHERE oid = %s",
            (oid,),
        ).fetchone()
        if sort == "enum":
            return "text", sort
        return (_KIND_OF.get(own, "other") if sort == "known" else "other"), (ARRAY if sort == "array" else own)

    def columns(self, name: str) -> dict[str, str]:
        """The names and types of a source's columns."""
        return dict(self._kinds[name])

    def reads_text(self, name: str, column: str) -> bool:
        """Tables have types of their own."""
        return False

    def untyped(self, name: str) -> Collection[str]:
        """Always empty: nothing is in memory."""
        return ()

    def typed(self, name: str, types: Mapping[str, str]) -> Postgres:
        """The same database, because its types are fixed."""
        return self

    def blank(self) -> Postgres:
        """The same columns with the same types, but no rows. Neither the tables nor their statistics are touched."""
        other = copy.copy(self)
        other.relations = {name: _blank(kinds) for name, kinds in self._kinds.items()}
        return other

    def computes(self, statement: str) -> bool:
        """Whether PostgreSQL can run a statement that was printed for a blank engine. No table is read."""
        errors = self._psycopg.ProgrammingError, self._psycopg.DataError, self._psycopg.NotSupportedError

        def planned(connection: Any) -> bool:
            with suppress(*errors):
                connection.execute(statement, binary=True)  # EXPLAIN may take far longer: it prints the whole plan
                return True
            return False

        return bool(self._transaction(planned, _FAILED))

    def computed(self, statement: str) -> str:
        """The statement itself in a FROM clause. What reads from it is tried together with it."""
        return f"({statement}) AS computed"

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The result of a statement that was printed for this engine. Sums are integers."""
        return self._run(statement)[1]

    def table(self, statement: str) -> Any:
        """The same as an Arrow table."""
        import pyarrow as pa

        arrow = {"bool": pa.bool_(), "float8": pa.float64(), "text": pa.string(), "date": pa.date32()}
        arrow |= {"timestamp": pa.timestamp("us"), "int4": pa.int32(), "int8": pa.int64()}
        names, rows = self._run(statement)
        values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        made = zip(names, values, strict=True)
        columns = [name for name, _ in names]
        return _convert(lambda: pa.table([array_of(found, arrow.get(own)) for (_, own), found in made], columns))

    def _run(self, statement: str) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        def fetched(connection: Any) -> Any:
            found = connection.execute(statement, binary=True)  # sent so that two statements are an error
            known = [self._psycopg.adapters.types.get(column.type_code) for column in found.description]
            names = [(c.name, k.name if k else "") for c, k in zip(found.description, known, strict=True)]
            return names, found.fetchall()

        names, rows = self._transaction(fetched, _FAILED)
        return names, _convert(lambda: [tuple(map(_plain, row)) for row in rows])

    def _transaction(self, work: Callable[[Any], Any], said: str, code: str = "engine-failed") -> Any:
        """Run `work` on a connection in one read-only transaction. If it fails, only `said` is passed on."""
        try:
            with self._psycopg.connect(self._url, connect_timeout=CONNECT_S, prepare_threshold=None) as connection:
                connection.read_only = True
                connection.isolation_level = self._psycopg.IsolationLevel.REPEATABLE_READ
                settings = {**_SETTINGS, "statement_timeout": str(self._timeout * 1000)}
                each = ", ".join(["pg_catalog.set_config(%s, %s, TRUE)"] * len(settings))  # until the transaction ends
                connection.execute(f"SELECT {each}", [text for pair in settings.items() for text in pair])
                done = work(connection)
                connection.rollback()
                return done
        except (self._psycopg.Error, UnicodeError, OverflowError):
            pass
        raise EngineFailed(said, code=code)  # outside of the handler: no context, which might quote values

    def hold(self, statement: str) -> str | None:
        """Nothing is written: a later statement computes it again."""
        return None

    def forget(self, name: str) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is kept open between statements."""


def _blank(kinds: Mapping[str, str]) -> str:
    """Columns of these types, as `plainly_typed` writes them."""
    typed = {kind: f"NULL::{own}" for kind, own in TYPES.items()} | dict.fromkeys(("text", "other"), _NO_TEXT)
    columns = ", ".join(f"{typed[kind]} AS {quote(column)}" for column, kind in kinds.items())
    return f"(SELECT {columns} WHERE FALSE) AS source_of_rows"


_NO_TEXT = '(NULL::text COLLATE "C")'


def _convert(make: Callable[[], Any]) -> Any:
    """The fetched rows in other types. An error never quotes a value that cannot be converted."""
    try:
        return make()
    except (ValueError, TypeError, ArithmeticError):
        pass
    raise EngineFailed(_FAILED)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, decimal.Decimal) else value
