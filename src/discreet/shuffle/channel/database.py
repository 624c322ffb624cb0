"""Where a service stores its tables: one SQLite file, or one schema of PostgreSQL. Every commit is on disk first.

The connections are those of the ledger: one per process, SQLite with synchronous=FULL. The log is different: a
write-ahead log lists what was written when, so SQLite uses a rollback journal here, emptied by every commit.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import DiscreetError, InvalidArgument, LedgerUnavailable
from discreet.ledger.stores.checkpoint import PATIENCE
from discreet.ledger.stores.postgres import PostgresStore
from discreet.ledger.stores.sqlite import SqliteStore
from discreet.ledger.stores.store import URLS, Execute
from discreet.shuffle.channel.unordered import Buckets, Entries, EntryRows


class ServiceDatabase(Protocol):
    """What a service needs from its database. Parameters are marked `?`."""

    shown: str
    lock_head: str
    """Added by a reader that means to change the row."""
    lock_shared: str
    """Added by a reader who needs the row to stay as it is."""

    def prepare(self, schema: Sequence[str]) -> None:
        """Create the tables, unless they exist."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """One transaction, durable when it ends, rolled back on any error."""

    def entries(self, name: str, key: str, body: str) -> Entries:
        """Entries that are stored in no order, as far as the database allows."""

    def close(self) -> None:
        """Close the connection."""


def database_at(target: str) -> ServiceDatabase:
    """The database at a path or a postgresql:// URL."""
    return PostgresDatabase(target) if target.startswith(URLS) else SqliteDatabase(target)


class SqliteDatabase(SqliteStore):
    """One file that only its owner can read. Deleted data is overwritten."""

    lock_shared = ""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._buckets: list[Buckets] = []

    def prepare(self, schema: Sequence[str]) -> None:
        self._make_file()
        with self.transaction(write=True) as execute:
            for statement in schema:
                execute(statement.format(bytes="BLOB", integer="INTEGER"))

    def entries(self, name: str, key: str, body: str) -> Entries:
        return Buckets(name, self._buckets)

    def _connect(self) -> Any:
        connection = super()._connect()
        connection.execute("PRAGMA secure_delete = ON")
        keep_no_log(connection)
        return connection

    def _make_file(self) -> None:
        if not Path(self.path).parent.is_dir():
            raise InvalidArgument(
                f"The folder {self.path.parent} for the database does not exist. Create it, or name another.",
                code="no-such-folder",
            )
        super()._make_file()

    def _explained(self, error: Exception) -> DiscreetError | None:
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        said = f"another process has used it for more than {PATIENCE:.0f} s" if busy else str(error)
        return LedgerUnavailable(
            f"The database {self.shown} cannot be used: {said}. Nothing was handed out. Try again.",
            code="ledger-busy" if busy else None,
        )


class PostgresDatabase(PostgresStore):
    """One schema: `postgresql://host/database#schema`."""

    lock_shared = " FOR SHARE"

    def prepare(self, schema: Sequence[str]) -> None:
        with self.transaction(write=True) as execute:
            execute("SELECT pg_advisory_xact_lock(?)", int(hashlib.sha256(self.schema.encode()).hexdigest()[:15], 16))
            execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            for statement in schema:
                execute(statement.format(bytes="BYTEA", integer="BIGINT"))

    def entries(self, name: str, key: str, body: str) -> Entries:
        return EntryRows(name, key, body)


def keep_no_log(connection: sqlite3.Connection) -> None:
    """Use a journal of the current transaction instead of a log of all. A log of version 0.1 is ended."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            mode = "wal"
        if mode in ("truncate", "memory"):
            return
        if time.monotonic() > deadline:
            raise LedgerUnavailable(
                "Another process holds the log of this database. Stop that process, and start again.",
                code="ledger-busy",
            )
        time.sleep(0.01)
