"""What a ledger needs from its database, and what both databases share.

A ledger has three tables. `entries` is append-only. Each row is chained to the previous one by its hash and carries the
running totals, so nothing has to be summed again. `head` is one row: the number and the chain value of the last entry,
and the number of answers. A writer must move it from the state that they read, or has lost a race. `answers` holds what
was drawn.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from discreet.errors import DiscreetError
from discreet.ledger.stores.checkpoint import Checkpoint

URLS = ("postgresql://", "postgres://")
IN_MEMORY = ":memory:"
Execute = Callable[..., list[tuple[Any, ...]]]
"""Runs one statement, parameters marked `?`, and gives back its rows."""
Statement = tuple[Any, ...]
"""A statement and its parameters."""
Rows = list[tuple[Any, ...]]

SCHEMA = (
    """CREATE TABLE entries (
        number {integer} PRIMARY KEY,
        kind TEXT NOT NULL,
        analyst TEXT NOT NULL,
        asked TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        content TEXT NOT NULL,
        costs TEXT NOT NULL,
        totals TEXT NOT NULL,
        retry_key TEXT,
        identity TEXT,
        request TEXT,
        code_version TEXT NOT NULL,
        microseconds {integer} NOT NULL,
        chain TEXT NOT NULL)""",
    "CREATE INDEX entries_of_analyst ON entries (analyst, number)",
    "CREATE INDEX entries_with_terms ON entries (analyst, number) WHERE kind <> 'charge'",
    "CREATE UNIQUE INDEX entries_by_key ON entries (analyst, retry_key) WHERE retry_key IS NOT NULL",
    "CREATE UNIQUE INDEX entries_by_identity ON entries (analyst, identity) WHERE identity IS NOT NULL",
    """CREATE TABLE head (
        one {integer} PRIMARY KEY CHECK (one = 1),
        number {integer} NOT NULL,
        chain TEXT NOT NULL,
        answers {integer} NOT NULL)""",
    """CREATE TABLE answers (
        number {integer} PRIMARY KEY,
        data {bytes},
        digest TEXT NOT NULL,
        not_private {integer} NOT NULL)""",
)
PARTS = """CREATE TABLE parts (
        account TEXT NOT NULL,
        part TEXT NOT NULL,
        number BIGINT NOT NULL,
        digest BIGINT NOT NULL,
        PRIMARY KEY (account, part)){by_key}"""
"""A ledger has this table as well if a unit lives in one part of the data: the last entry that charged each part."""


class Store(Protocol):
    """Where a ledger is stored."""

    shown: str
    """The target as it may be printed: without a password."""
    lock_head: str
    """What a reader of `head` adds to its statement when it means to move it."""
    by_key: str
    """What a table adds to its definition to be kept in the order of its key."""
    queues: bool
    """Whether writers wait for each other at the lock of the checkpoint, and not in the database."""

    @property
    def at_once(self) -> bool:
        """Whether to write from what is known, in one message: there is a connection that was just used."""

    def exists(self) -> bool:
        """Whether a ledger is there."""

    def create(self) -> AbstractContextManager[Execute]:
        """A transaction that has just created the tables, or finds that another process did."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """One transaction, durable when it ends. A writer waits for earlier writers."""

    def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements inside the transaction, in one message if the database can."""

    def finish(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements, and end the transaction: durable when this returns. How many rows each of them changed."""

    def look(self, *statements: Statement) -> list[Rows]:
        """What several statements find in one state of the database."""

    def alone(self) -> AbstractContextManager[Any]:
        """No other thread uses the connection, and the process is not forked."""

    def checkpoint_of(self, ledger: str) -> Checkpoint | None:
        """The file that records the last entry seen of this ledger. None if the ledger ends with the process."""

    def file_number(self) -> int:
        """A number that distinguishes the ledger's file from a copy. 0 if there is no file."""

    def again(self) -> tuple[str, str | None]:
        """The target and the checkpoint with which the same ledger can be opened again."""

    def close(self) -> None:
        """Close the connection. It is opened again when needed."""


class PerProcess:
    """One connection per process, used by one thread at a time.

    A forked child must neither use nor close its parent's connection. It keeps it aside and opens a new one.
    """

    def __init__(self) -> None:
        self._begin_process()
        _stores.add(self)

    def _begin_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: Any = None
        self._end: weakref.finalize[..., PerProcess]
        self._inside = self._ended = False

    def _connect(self) -> Any:
        raise NotImplementedError

    def _begin(self, *, write: bool) -> None:
        raise NotImplementedError

    def _execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def _explained(self, error: Exception) -> DiscreetError | None:
        """The meaning of a database error for a person. None if it is another error."""
        raise NotImplementedError

    def _let_go_before_fork(self) -> None:
        """Close what a child must not inherit, if it can be opened again."""

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The connection, opened if necessary, for one thread."""
        if self._process != os.getpid():  # a fork that Python did not see
            _after_in_child()
        with self._lock:
            try:
                if self._connection is None:
                    self._open()
                yield
            except Exception as error:
                explained = self._explained(error)
                if explained is None:
                    raise
                raise explained from None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Execute]:
        """One transaction, durable when it ends, rolled back on any error."""
        with self._held():
            if self._inside:
                raise RuntimeError("a transaction of a ledger inside another one")
            self._inside, self._ended = True, False
            try:
                self._begin(write=write)
                yield self._execute
                if not self._ended:
                    self._execute("COMMIT")
            except BaseException:
                self._undo()
                raise
            finally:
                self._inside = False

    def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements inside the transaction."""
        return [self._execute(*statement) for statement in statements]

    def finish(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements, and end the transaction. How many rows each of them changed."""
        raise NotImplementedError

    def look(self, *statements: Statement) -> list[Rows]:
        """What several statements find in one state of the database."""
        with self.transaction(write=False):
            return self.run(statements)

    def alone(self) -> AbstractContextManager[Any]:
        """No other thread uses the connection, and the process is not forked."""
        if self._process != os.getpid():
            _after_in_child()
        return self._lock

    def _undo(self) -> None:
        try:
            self._execute("ROLLBACK")
        except Exception:  # nothing was started, or the connection is broken: open a new one
            self._drop()

    def _open(self) -> None:
        """Connect. A store that nobody closed is closed before Python finds its connection open."""
        self._connection = self._connect()
        self._end = weakref.finalize(self, _close_own, self._connection, self._process)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._end.detach()
            connection.close()

    def close(self) -> None:
        """Close the connection."""
        if self._process == os.getpid():
            with self._lock:
                self._drop()


def _close_own(connection: Any, process: int) -> None:
    """Close a connection in the process that opened it."""
    if process == os.getpid():
        connection.close()


_stores: weakref.WeakSet[PerProcess] = weakref.WeakSet()
_forking: list[PerProcess] = []
_set_aside: list[Any] = []


def _before_fork() -> None:
    """Wait for open transactions, and close files. Otherwise a child would believe that it holds SQLite's locks."""
    _forking[:] = sorted(_stores, key=id)
    for store in _forking:
        store._lock.acquire()
        store._let_go_before_fork()


def _after_in_parent() -> None:
    for store in _forking:
        store._lock.release()
    _forking.clear()


def _after_in_child() -> None:
    """A forked child has only one thread: give every store a new lock and a new connection."""
    for store in list(_stores):
        _set_aside.append(store._connection)
        store._begin_process()
    _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
