"""The tables of a PostgreSQL database, from its catalog alone: names, types of columns, and foreign keys. No row."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.engines.postgres.engine import CONNECT_S, Postgres
from discreet.errors import DiscreetError, EngineFailed, InvalidArgument
from discreet.extras import need

MOST_TABLES = 200
"""So many tables of a database are offered."""
# those that cannot be served are listed, too, so that their owner hears why; not those of extensions
_LIST = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
  AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e'
  )
ORDER BY c.relkind IN ('v', 'f'), 1, 2 LIMIT %s
"""
# foreign keys of one column, and primary keys of one column, which refer to themselves
_KEYS = """
SELECT n.nspname, c.relname, a.attname, fn.nspname, f.relname, fa.attname
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_class f ON f.oid = coalesce(nullif(k.confrelid, 0), k.conrelid) JOIN pg_namespace fn ON fn.oid = f.relnamespace
JOIN pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = (coalesce(k.confkey, k.conkey))[1]
WHERE k.contype IN ('p', 'f') AND cardinality(k.conkey) = 1
ORDER BY 1, 2, 3, 4, 5, 6
"""


@dataclass(frozen=True)
class ForeignKey:
    """A column that refers to the key of another table. The primary key of a table refers to itself."""

    table: str
    column: str
    other: str
    key: str

    @property
    def is_primary(self) -> bool:
        """Whether it is the primary key of its table."""
        return (self.table, self.column) == (self.other, self.key)


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Tables by our names for them."""

    places: Mapping[str, str]
    tables: Mapping[str, Mapping[str, str]]
    left_out: Mapping[str, str]
    foreign_keys: Sequence[ForeignKey]


def read_catalog(url: str) -> Catalog:
    """What the catalog says about all tables that the role may read."""
    psycopg = need("psycopg", "postgres", "The engine PostgreSQL")
    try:
        Postgres(url, {})  # its version and encoding are checked
    except EngineFailed:
        raise EngineFailed(_why_closed(psycopg, url), code="engine-unreachable") from None
    try:
        with psycopg.connect(url, connect_timeout=20) as connection:
            connection.read_only = True
            found = connection.execute(_LIST, (MOST_TABLES,)).fetchall()
            keys = connection.execute(_KEYS).fetchall()
    except psycopg.Error:
        raise InvalidArgument(
            "The tables of the database cannot be listed. Check that the role may connect and read them.",
            code="engine-unreachable",
        ) from None
    places: dict[str, str] = {}
    tables: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for schema, table in found:
        place = f"{schema}.{table}"
        if "." in schema or "." in table:
            left_out[place] = "Its name has a dot. Give it another name."
            continue
        name = _name(table, schema, places)
        try:
            tables[name] = Postgres(url, {name: place}).columns(name)
            places[name] = place
        except DiscreetError as error:
            left_out[place] = str(error)
    named = {place: name for name, place in places.items()}
    known = [
        ForeignKey(named[f"{schema}.{table}"], column, named[f"{other_schema}.{other}"], key)
        for schema, table, column, other_schema, other, key in keys
        if f"{schema}.{table}" in named and f"{other_schema}.{other}" in named
    ]
    return Catalog(places=places, tables=tables, left_out=left_out, foreign_keys=known)


def _why_closed(psycopg: Any, url: str) -> str:
    """Why a database cannot be opened, for its owner's terminal. Messages of libpq may quote a part of a password."""
    try:
        where = psycopg.conninfo.make_conninfo(url, connect_timeout=CONNECT_S).encode()
    except (psycopg.Error, UnicodeError):
        return "The URL of the database is wrong. Write it like postgresql://role@host:5432/database."
    if psycopg.pq.PGconn.ping(where) == psycopg.pq.Ping.NO_RESPONSE:
        return "No database server answers at this host and port. Check that it runs, and the URL."
    tried = psycopg.pq.PGconn.connect(where)
    needs_password = tried.needs_password
    tried.finish()
    said = "asks for a password, and finds none" if needs_password else "refuses the role, its password or the database"
    file = os.path.expanduser(os.environ.get("PGPASSFILE") or "~/.pgpass")
    return (
        f"The database server {said}. Passwords are read from {file}, which must belong to the user of this home "
        "and have mode 600, or from $PGPASSWORD."
    )


def _name(table: str, schema: str, known: Mapping[str, str]) -> str:
    """A name for SQL: that of the table, with its schema if another one has it, in upper or lower case."""
    plain = re.sub(r"\W+", "_", table).strip("_") or "data"
    taken = {one.lower() for one in known}
    if plain.lower() in taken:
        plain = re.sub(r"\W+", "_", f"{schema}_{table}")
    name, number = plain, 1
    while name.lower() in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
