"""What a first run knows about the data: the names and types of columns, and nothing of any row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.datasets.drafts import read_files, relative
from discreet.engines.configuration import URLS
from discreet.errors import DiscreetError, InvalidArgument
from discreet.extras import need

MOST_TABLES = 200
"""So many tables of a database are offered."""
_LIST = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY 1, 2 LIMIT %s
"""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Tables that may be served: their places as a policy names them, and the types of their columns."""

    places: Mapping[str, str]
    tables: Mapping[str, Mapping[str, str]]
    untyped: Sequence[str] = ()
    url: str | None = field(default=None, repr=False)  # it may hold a password
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Tables that cannot be served, and why."""


def is_database(words: Sequence[str]) -> bool:
    """Whether the data is a database, by its URL."""
    return any(word.startswith(URLS) for word in words)


def read_source(words: Sequence[str], policy: Path, *, header: bool = False) -> Source:
    """The tables in files and folders, or in a PostgreSQL database. No row is read but the types of CSV and JSON."""
    if not is_database(words):
        files = read_files([Path(word) for word in words], header=header)
        places = {name: relative(path, policy) for name, path in files.paths.items()}
        return Source(places=places, tables=files.tables, untyped=files.untyped)
    if len(words) != 1:
        raise InvalidArgument("Name one database, or files. --new takes one URL.", code="setup-source")
    return _read_database(words[0])


def _read_database(url: str) -> Source:
    from discreet.engines.postgres.engine import Postgres

    psycopg = need("psycopg", "postgres", "The engine PostgreSQL")
    Postgres(url, {})  # its version and encoding are checked, and it says what is wrong with the URL
    try:
        with psycopg.connect(url, connect_timeout=20) as connection:
            connection.read_only = True
            found = connection.execute(_LIST, (MOST_TABLES,)).fetchall()
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
    return Source(places=places, tables=tables, url=url, left_out=left_out)


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
