"""A ledger in one SQLite file: write-ahead log, every commit is on disk before it returns, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, LedgerUnavailable
from discreet.ledger.stores.checkpoint import PATIENCE, Checkpoint, leads_away, make_file
from discreet.ledger.stores.store import IN_MEMORY, SCHEMA, Execute, PerProcess, Rows, Statement

_NOT_TEXT = sqlite3.SQLITE_MISMATCH
"""Python's own error for text that is not Unicode has no code."""
_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # a table or a column is missing
    sqlite3.SQLITE_CONSTRAINT,  # there is an entry that is not in the chain
    _NOT_TEXT,
)
_PAGE = 2048
"""A charge writes three pages to the log: small ones are written sooner."""


class SqliteStore(PerProcess):
    """One file, or `:memory:`, which belongs to the process that opened it."""

    lock_head = ""
    by_key = " WITHOUT ROWID"
    queues = True
    at_once = True

    def __init__(self, target: str, checkpoint: str | None = None) -> None:
        if "\0" in target or "\0" in (checkpoint or ""):
            raise InvalidArgument("A path must not contain a zero character. Choose another.", code="ledger-place")
        super().__init__()
        self.in_memory = target == IN_MEMORY
        place = Path(os.path.expanduser(target))
        self.path = place.resolve()
        if not self.path.name or (os.geteuid() == 0 and leads_away(place.absolute())):
            raise InvalidArgument(
                f"{target} is no place for a database: it is no file, or a link by which another user leads root to "
                "what is not theirs. Name the file itself.",
                code="ledger-place",
            )
        self.shown = target if self.in_memory else str(self.path)
        self._beside = Path(checkpoint).resolve() if checkpoint else self.path.with_name(self.path.name + ".checkpoint")
        self._made = False

    def exists(self) -> bool:
        """Whether a ledger is there."""
        if self.in_memory:
            return self._made
        try:
            self.path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InvalidArgument(
                f"{self.shown} cannot be read: {error.strerror}. Make it readable, or choose another.",
                code="file-not-readable",
            ) from None
        with self.transaction(write=False) as execute:
            return "head" in _tables(execute)

    @contextmanager
    def create(self) -> Iterator[Execute]:
        """A transaction that creates the tables, unless they exist."""
        if not self.in_memory:
            self._make_file()
            with self.transaction(write=False) as execute:
                if (present := _tables(execute)) and "head" not in present:
                    raise InvalidArgument(
                        f"{self.shown} is a database with other tables. Give the ledger its own file.",
                        code="ledger-place",
                    )
            with self._held():
                self._connection.execute(f"PRAGMA page_size = {_PAGE}")
                log_ahead(self._connection)
        with self.transaction(write=True) as execute:
            if not _tables(execute):
                for statement in SCHEMA:
                    execute(statement.format(integer="INTEGER", bytes="BLOB"))
            yield execute
        self._made = True

    def _make_file(self) -> None:
        try:
            make_file(self.path)
        except OSError as error:
            raise InvalidArgument(
                f"No ledger can be created at {self.shown}: {error.strerror}. Choose another place.",
                code="file-not-writable",
            ) from None

    def checkpoint_of(self, ledger: str) -> Checkpoint | None:
        """A file next to the ledger's."""
        return None if self.in_memory else Checkpoint(self._beside)

    def again(self) -> tuple[str, str | None]:
        """The full path, because the working directory may change, and the checkpoint's path."""
        return self.shown, str(self._beside)

    def file_number(self) -> int:
        """The file's inode. A copy has another."""
        try:
            return 0 if self.in_memory else os.stat(self.shown).st_ino
        except OSError as error:
            raise LedgerUnavailable(
                f"{self.shown} cannot be read ({error.strerror}). Restore it. What was charged stays charged."
            ) from None

    def _connect(self) -> Any:
        if self.in_memory and self._made:
            raise DiscreetError(
                "A ledger in memory ends with close() and with the process that opened it, and a fork cannot use it. "
                'Use a file: Ledger.open("clinic.ledger", …).',
                code="ledger-in-memory",
            )
        where = IN_MEMORY if self.in_memory else f"{self.path.as_uri()}?mode=rw"
        connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:  # a file of something else
            connection.close()
            raise
        return connection

    def _let_go_before_fork(self) -> None:
        if not self.in_memory:
            self._drop()

    def _undo(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _begin(self, *, write: bool) -> None:
        self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def _execute(self, statement: str, *parameters: Any) -> Rows:
        return self._connection.execute(statement, parameters).fetchall()  # type: ignore[no-any-return]

    def finish(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements, and end the transaction. How many rows each of them changed."""
        changed = [self._change(*statement) for statement in statements]
        self._execute("COMMIT")
        self._ended = True
        return changed

    def _change(self, statement: str, *parameters: Any) -> int:
        return self._connection.execute(statement, parameters).rowcount  # type: ignore[no-any-return]

    def look(self, *statements: Statement) -> list[Rows]:
        """What several statements find in one state of the database. A single one needs no transaction of its own."""
        if len(statements) != 1:
            return super().look(*statements)
        with self._held():
            if self._inside:
                raise RuntimeError("a transaction of a ledger inside another one")
            return self.run(statements)

    def _explained(self, error: Exception) -> DiscreetError | None:
        if isinstance(error, UnicodeDecodeError):  # SQLite's error could quote the content of the file
            error = sqlite3.OperationalError("it contains text that is not Unicode")
        if isinstance(error, OverflowError):  # one more than the largest integer in SQLite
            error = sqlite3.OperationalError("it contains a number that is too large")
        if not isinstance(error, sqlite3.Error):
            return None
        unknown = _NOT_TEXT if isinstance(error, sqlite3.OperationalError) else 0
        text, exact = str(error), getattr(error, "sqlite_errorcode", unknown)
        code = exact & 0xFF
        if code in _DAMAGE or exact == sqlite3.SQLITE_IOERR_SHORT_READ:
            return LedgerDamaged(
                f"{self.shown} is not a ledger, or is damaged: {text}. "
                "Restore the newest undamaged copy with its -wal file. "
                "Do not start a new one, which would forget what was spent."
            )
        busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if busy:
            text = f"another process has used it for more than {PATIENCE:.0f} s"
        return LedgerUnavailable(
            f"{self.shown} cannot be used: {text}. Nothing was handed out. Try again.",
            code="ledger-busy" if busy else None,
        )


def _tables(execute: Execute) -> set[str]:
    return {name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def log_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log permanently. Processes that create the same file at once may conflict."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise LedgerUnavailable(
                f"This file system does not support SQLite's write-ahead log (journal mode {mode}). Use a local disk.",
                code="ledger-file-system",
            )
        return
