"""Where a service keeps its tables: one SQLite file, or one schema of PostgreSQL. Every commit is on disk first.

The connections are those of the ledger: one for each process, SQLite with a write-ahead log and synchronous=FULL.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import DiscreetError, InvalidArgument, LedgerUnavailable
from discreet.ledger.checkpoint import PATIENCE
from discreet.ledger.postgres import PostgresStore
from discreet.ledger.sqlite import SqliteStore, log_ahead
from discreet.ledger.store import URLS, Execute


class Database(Protocol):
    """What a service asks of it. Parameters are marked `?`."""

    shown: str
    lock_head: str
    """Added by a reader that means to change the row."""
    lock_shared: str
    """Added by a reader who needs the row to stay as it is."""
    clear: str
    """Begins a statement that empties a table for good."""

    def prepare(self, schema: Sequence[str]) -> None:
        """Make the tables, unless they are there."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """One transaction, durable once it is left; undone by any error."""

    def tidy(self) -> None:
        """Remove what deleted rows left on disk, as far as the database can."""

    def close(self) -> None:
        """Let go of the connection."""


def open_database(target: str, schema: Sequence[str]) -> Database:
    """The database at a path or a postgresql:// URL, with these tables."""
    database: Database = PostgresDatabase(target) if target.startswith(URLS) else SqliteDatabase(target)
    database.prepare(schema)
    return database


class SqliteDatabase(SqliteStore):
    """One file that only its owner reads."""

    lock_shared, clear = "", "DELETE FROM"

    def prepare(self, schema: Sequence[str]) -> None:
        """Tables without a row number: that would be the order of arrival."""
        self._make_file()
        with self._held():
            log_ahead(self._connection)
        with self.transaction(write=True) as execute:
            for statement in schema:
                execute(statement.format(bytes="BLOB", integer="INTEGER", keyed="WITHOUT ROWID"))

    def tidy(self) -> None:
        """Bring the log into the file, where secure_delete has overwritten what was deleted, and empty it."""
        with self._held():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _connect(self) -> Any:
        connection = super()._connect()
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _make_file(self) -> None:
        if not Path(self.path).parent.is_dir():
            raise InvalidArgument(f"There is no folder {self.path.parent} for the database. Make it, or name another.")
        super()._make_file()

    def _explained(self, error: Exception) -> DiscreetError | None:
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        said = f"others use it for more than {PATIENCE:.0f} s" if busy else str(error)
        return LedgerUnavailable(
            f"The database {self.shown} cannot be used: {said}. Nothing was handed out. Try again."
        )


class PostgresDatabase(PostgresStore):
    """One schema: `postgresql://host/database#schema`."""

    lock_shared, clear = " FOR SHARE", "TRUNCATE"

    def prepare(self, schema: Sequence[str]) -> None:
        """Tables without a serial number. The order of rows on disk is that of arrival until they are emptied."""
        with self.transaction(write=True) as execute:
            execute("SELECT pg_advisory_xact_lock(?)", int(hashlib.sha256(self.schema.encode()).hexdigest()[:15], 16))
            execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            for statement in schema:
                execute(statement.format(bytes="BYTEA", integer="BIGINT", keyed=""))

    def tidy(self) -> None:
        """TRUNCATE has given the files back already."""
