"""A ledger in PostgreSQL: one schema, every commit is on disk before it returns, and the head row moves under
its lock.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.errors import DiscreetError, InvalidArgument, LedgerUnavailable
from discreet.extras import need
from discreet.ledger.stores.checkpoint import PATIENCE, Checkpoint
from discreet.ledger.stores.elsewhere import state_folder
from discreet.ledger.stores.pipeline import Found, Pipeline
from discreet.ledger.stores.store import SCHEMA, Execute, PerProcess, Rows, Statement

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
IDLE = 40.0
"""The server disconnects a client that holds the lock on the head and is silent for this many seconds. Such a client
was stopped or lost its network, and has charged nothing. Waiting clients have more PATIENCE than that, and continue.
"""
_ALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
_ALIVE |= {"tcp_user_timeout": 30_000}
"""How soon this side sees that a server is gone, unless the URL says so itself."""
_COMMIT = ("COMMIT",)
_RECENT = 1.0
"""A connection that was used in the last seconds is hardly ever closed by the server. What is written in one message
cannot be sent again: it may have been recorded.
"""


class PostgresStore(PerProcess):
    """One schema of a database: `postgresql://host/database#schema`, by default the schema `discreet`."""

    lock_head = " FOR UPDATE"
    by_key = ""
    queues = False

    def __init__(self, target: str, checkpoint: str | None = None) -> None:
        super().__init__()
        self._committing, self._commit, self._used = False, "on", -_RECENT
        self._unsent: list[Statement] = []
        self._psycopg = need("psycopg", "postgres", "A ledger in PostgreSQL")
        self._address, _, schema = target.partition("#")
        self.schema = schema or "discreet"
        if not _NAME.fullmatch(self.schema):
            raise InvalidArgument(
                "The name after # must be lower-case letters, digits and _, as in …/clinic#trial_7.",
                code="ledger-place",
            )
        self.shown = f"{_without_password(self._psycopg, self._address)}#{self.schema}"
        self._checkpoint = str(Path(checkpoint).resolve()) if checkpoint else None

    def again(self) -> tuple[str, str | None]:
        """The URL, with its password if it has one, and the checkpoint."""
        return f"{self._address}#{self.schema}", self._checkpoint

    def checkpoint_of(self, ledger: str) -> Checkpoint | None:
        """The given file, or one for this ledger in the user's state directory."""
        if self._checkpoint:
            return Checkpoint(Path(self._checkpoint))
        state = state_folder()
        try:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InvalidArgument(
                f"The folder {state} for the ledger's checkpoint cannot be created ({error.strerror}). "
                'Name a file for it: Ledger.open(…, checkpoint="clinic.checkpoint").',
                code="file-not-writable",
            ) from None
        return Checkpoint(state / f"{ledger}.checkpoint") if ledger else None

    def exists(self) -> bool:
        """Whether a ledger is there."""
        with self.transaction(write=False) as execute:
            return execute("SELECT to_regclass(?)", f"{self.schema}.head") != [(None,)]

    @contextmanager
    def create(self) -> Iterator[Execute]:
        """A transaction that creates the schema and its tables, unless they exist."""
        with self.transaction(write=True) as execute:
            execute("SELECT pg_advisory_xact_lock(?)", int(hashlib.sha256(self.schema.encode()).hexdigest()[:15], 16))
            execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            if execute("SELECT to_regclass(?)", f"{self.schema}.head") == [(None,)]:
                for statement in SCHEMA:
                    execute(statement.format(integer="BIGINT", bytes="BYTEA"))
            yield execute

    def file_number(self) -> int:
        """Always 0: there is no file that could be copied."""
        return 0

    def _connect(self) -> Any:
        said = self._psycopg.conninfo.conninfo_to_dict(self._address)
        own = {name: value for name, value in ({"connect_timeout": 20} | _ALIVE).items() if name not in said}
        # after a rollback, psycopg would drop the statements that are prepared here with its own
        connection = self._psycopg.connect(self._address, autocommit=True, prepare_threshold=None, **own)
        commit = connection.execute("SHOW synchronous_commit").fetchone()[0]
        self._commit = commit if commit == "remote_apply" else "on"  # a stricter setting, which is fine
        self._pipeline = Pipeline(self._psycopg, connection)
        return connection

    def _begin(self, *, write: bool) -> None:
        """Prepare the beginning of a transaction. It is sent together with the first statement."""
        # a writer waits for the head and must then see its newest state; a reader's statements must see one snapshot
        limits = {"lock_timeout": PATIENCE, "statement_timeout": PATIENCE}
        limits |= {"idle_in_transaction_session_timeout": IDLE} if write else {}
        local = {"search_path": self.schema, "synchronous_commit": self._commit}
        local |= {name: str(_milliseconds(seconds)) for name, seconds in limits.items()}
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in local.items())
        level = "READ COMMITTED READ WRITE" if write else "REPEATABLE READ READ ONLY"
        self._unsent = [(f"BEGIN ISOLATION LEVEL {level}",), (f"SELECT {settings}",)]

    def _execute(self, statement: str, *parameters: Any) -> Rows:
        if self._unsent:
            self._send([])
        if statement != "ROLLBACK":  # which follows an error, and does not change what it means
            self._committing = statement == "COMMIT"
        cursor = self._connection.execute(statement.replace("?", "%s"), parameters or None)
        return cursor.fetchall() if cursor.description else []

    def run(self, statements: Sequence[Statement]) -> list[Rows]:
        """Run statements inside the transaction, in one message. They return integers, text and bytes."""
        return [found.rows for found in self._send(statements)]

    def finish(self, statements: Sequence[Statement]) -> list[int]:
        """Run statements, and end the transaction. How many rows each of them changed."""
        changed = [found.changed for found in self._send([*statements, _COMMIT], again=False)[:-1]]
        self._ended = True
        return changed

    def look(self, *statements: Statement) -> list[Rows]:
        """What several statements find in one state of the database, in one message."""
        with self.transaction(write=False):
            found = self.run([*statements, _COMMIT])[:-1]
            self._ended = True
        return found

    @property
    def at_once(self) -> bool:
        """Whether there is a connection that was just used, and that the server has not closed."""
        recent = self._connection is not None and time.monotonic() - self._used < _RECENT
        return recent and self._pipeline.is_quiet()

    def _send(self, statements: Sequence[Statement], *, again: bool = True) -> list[Found]:
        """Send statements in one message, after what is still unsent. One that fails stops those after it. `again` is
        whether the message may be sent again on another connection.
        """
        unsent, self._unsent = self._unsent, []
        self._committing = False
        try:
            found = self._pipeline.send([*unsent, *statements])[len(unsent) :]
            self._used = time.monotonic()
            return found
        except self._psycopg.Error:
            self._committing = not again and self._connection.closed
            if not (again and unsent and self._connection.closed):
                raise
        # the server closed an idle connection: nothing was started yet
        self._drop()
        self._open()
        return self._pipeline.send([*unsent, *statements])[len(unsent) :]

    def _undo(self) -> None:
        if self._unsent:
            self._unsent = []
        else:
            super()._undo()

    def _explained(self, error: Exception) -> DiscreetError | None:
        if not isinstance(error, self._psycopg.Error):
            return None
        said = " ".join(str(error).split()) or type(error).__name__
        busy = isinstance(error, self._psycopg.errors.LockNotAvailable | self._psycopg.errors.QueryCanceled)
        if busy:
            said = f"it takes more than {PATIENCE:.0f} s, because others use it or its server is overloaded"
        unsure = " A charge may have been recorded: ask again with the same key=." if self._committing else ""
        return LedgerUnavailable(
            f"PostgreSQL cannot keep {self.shown}: {said}. Nothing was handed out.{unsure}",
            code="ledger-busy" if busy else None,
        )


def _milliseconds(seconds: float) -> int:
    return max(1, round(1000 * seconds))


def _without_password(psycopg: Any, address: str) -> str:
    """The address in printable form, rebuilt from its parts. If we cut the password from the text, parts of an unusual
    one could remain.
    """
    try:
        parts = psycopg.conninfo.conninfo_to_dict(address)
        host, port, database = (str(parts.get(name) or "") for name in ("host", "port", "dbname"))
        readable = "@" not in host + database and port.replace(",", "").isdigit() | (port == "")
    except psycopg.Error:  # its message may quote the password
        readable = False
    if not readable:
        raise InvalidArgument(
            "The PostgreSQL URL cannot be read. Write postgresql://user@host:5432/database#schema, with special "
            "characters of a password encoded, such as %2F.",
            code="ledger-place",
        )
    return f"postgresql://{quote(host, safe='[]:,')}{port and f':{port}'}/{quote(database)}"
