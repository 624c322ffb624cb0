"""The gateway's own database: accounts, tokens, requests, questions, versions of the policy and the audit.

It is one SQLite file, or one schema of PostgreSQL, with the connections of the ledger: every commit is on disk before
it returns. Writers wait for each other, so what a writer reads stays true until it ends. Budgets are not here: the
ledger alone knows what was spent.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol, Self

from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, LedgerUnavailable, ServiceUnavailable
from discreet.exact.randomness import random_integer
from discreet.gateway.books.tables import MIGRATIONS
from discreet.ledger.stores.checkpoint import PATIENCE, is_locked
from discreet.ledger.stores.postgres import PostgresStore
from discreet.ledger.stores.sqlite import SqliteStore, log_ahead
from discreet.ledger.stores.store import URLS, Execute

_LAST_GATEWAY = 5.0
"""So many seconds a gateway that was told to stop may take to end."""
_GENERATION = "SELECT value FROM meta WHERE name = 'generation'"


class _Connection(Protocol):
    """One connection to the database, with parameters marked `?`."""

    shown: str
    lock_head: str
    """What a writer adds, where the database does not exclude other writers by itself."""

    def prepare(self, migrations: Sequence[Sequence[str]]) -> None:
        """Create the tables, or bring them to the newest version."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Execute]:
        """One transaction, durable when it ends, rolled back on any error."""

    def generation(self) -> int:
        """A number that changes with every change of accounts and tokens."""

    def backup(self, path: Path) -> None:
        """Write a copy of everything."""

    def close(self) -> None:
        """Close the connection. It is opened again when needed."""


class GatewayStore:
    """The gateway's database. Readers have their own connection, so they do not wait for a writer's disk."""

    def __init__(self, target: str, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
        place = _Postgres if target.startswith(URLS) else _Sqlite
        self._writer: _Connection = place(target)
        self._reader: _Connection = place(target)
        self.shown = self._writer.shown
        """The place as it may be printed: without a password."""
        self._writer.prepare(migrations)

    @contextmanager
    def write(self) -> Iterator[Execute]:
        """A transaction that changes something. Other writers wait until it ends, in this process and in others."""
        with self._writer.transaction(write=True) as execute:
            execute(_GENERATION + self._writer.lock_head)
            yield execute

    def read(self) -> AbstractContextManager[Execute]:
        """A transaction that sees one state of everything."""
        return self._reader.transaction(write=False)

    def generation(self) -> int:
        """A number that changes whenever any process changes an account, a token or a suspension.

        What was read before it is true as long as it stays the same.
        """
        return self._reader.generation()

    def backup(self, path: str | Path) -> None:
        """Write a copy of the database to a new file that only its owner can read. The gateway may run meanwhile."""
        self._writer.backup(Path(path).expanduser())

    def close(self) -> None:
        """Close the connections. They are opened again when needed."""
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<GatewayStore {self.shown}>"


def only_gateway(*targets: str) -> tuple[int, ...]:
    """The locks of the only gateway at these databases, its own and the ledger, as open files. Who inherits them holds
    them, too, and they end with the last of them. None for PostgreSQL, where there may be several.
    """
    locks: list[int] = []
    try:
        for place in dict.fromkeys(_lock_of(target) for target in targets if not target.startswith(URLS)):
            locks.append(_only_one(place))
    except BaseException:
        for lock in locks:
            os.close(lock)
        raise
    return tuple(locks)


def check_held(locks: Collection[int], store: str, ledger: str) -> None:
    """Refuse databases in files whose locks are not these: the policy has changed, or what a link leads to."""
    held = [os.fstat(lock) for lock in locks]
    named = ("store of [gateway]", store, "gateway-store"), ("path of [ledger]", ledger, "gateway-other-ledger")
    for what, target, code in named:
        place = _lock_of(target)
        is_held = os.path.exists(place) and any(os.path.samestat(os.stat(place), one) for one in held)
        if not is_held and not target.startswith(URLS):
            raise InvalidArgument(f"{what} has changed, but the gateway holds the other one. Restart it.", code=code)


def _lock_of(target: str) -> str:
    return f"{os.path.realpath(target)}.lock"


def _only_one(place: str) -> int:
    """The lock of the only gateway, in this file."""
    try:
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InvalidArgument(
            f"{place} cannot be written: {error.strerror}. Make it and its folder writable for the vault.",
            code="file-not-writable",
        ) from None
    if is_locked(file, _LAST_GATEWAY):
        return file
    os.close(file)
    raise ServiceUnavailable(
        f"A gateway runs already that uses {place.removesuffix('.lock')}. To let it serve what is new, send it SIGHUP. "
        "Or end it: two at once would see when the other one charges.",
        code="gateway-running",
    )


def note_change(execute: Execute) -> None:
    """Say that accounts, tokens or suspensions changed, so that nobody trusts what they read before."""
    set_number(execute, "generation", number_in_meta(execute, "generation") + 1)


def number_in_meta(execute: Execute, name: str) -> int:
    """A number of the gateway's own, such as the generation."""
    return int(execute("SELECT value FROM meta WHERE name = ?", name)[0][0])


def numbers_in_meta(execute: Execute) -> dict[str, int]:
    """All numbers of the gateway's own."""
    others = "('audit_chain', 'scram_secret')"
    return {name: int(value) for name, value in execute(f"SELECT name, value FROM meta WHERE name NOT IN {others}")}


def scram_secret(execute: Execute) -> bytes:
    """The secret of this database from which the salts of accounts follow."""
    return bytes.fromhex(execute("SELECT value FROM meta WHERE name = 'scram_secret'")[0][0])


def set_number(execute: Execute, name: str, value: int) -> None:
    """Change a number of the gateway's own."""
    execute("UPDATE meta SET value = ? WHERE name = ?", str(value), name)


def _migrate(execute: Execute, migrations: Sequence[Sequence[str]], shown: str, **types: str) -> None:
    """Apply what is missing, within a transaction that already excludes others."""
    execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    found = execute("SELECT value FROM meta WHERE name = 'version'")
    version = int(found[0][0]) if found else 0
    if version > len(migrations):
        raise InvalidArgument(
            f"The gateway's database {shown} has version {version}, but this program knows versions up to "
            f"{len(migrations)}. Use the newer program, or restore the backup that was made before it.",
            code="gateway-newer-database",
        )
    if not found:
        execute("INSERT INTO meta (name, value) VALUES ('version', '0'), ('generation', '1')")
    types["secret"] = f"{random_integer(256):064x}"
    for statements in migrations[version:]:
        for statement in statements:
            execute(statement.format(**types))
    execute("UPDATE meta SET value = ? WHERE name = 'version'", str(len(migrations)))


class _Sqlite(SqliteStore):
    """One file that only its owner can read."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        if self.in_memory:
            raise InvalidArgument(
                'A gateway needs a file or PostgreSQL for its accounts. Write store = "clinic.gateway".',
                code="gateway-store",
            )

    def prepare(self, migrations: Sequence[Sequence[str]]) -> None:
        if not self.path.parent.is_dir():
            raise InvalidArgument(
                f"The folder {self.path.parent} for the gateway's database does not exist. Create it, or name another.",
                code="no-such-folder",
            )
        self._make_file()
        if stat.S_IMODE(self.path.stat().st_mode) & 0o077:
            raise InvalidArgument(
                f"Other users can read or change the gateway's database {self.shown}. Make it yours alone: "
                f"chmod 600 {self.shown}",
                code="gateway-store-exposed",
            )
        with self._held():
            log_ahead(self._connection)
        with self.transaction(write=True) as execute:
            present = {name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if present and "meta" not in present:
                raise InvalidArgument(
                    f"{self.shown} is a database with other tables. Give the gateway its own file.",
                    code="gateway-store",
                )
            _migrate(execute, migrations, self.shown, integer="INTEGER", bytes="BLOB")

    def generation(self) -> int:
        with self._held():
            return int(self._execute(_GENERATION)[0][0])

    def backup(self, path: Path) -> None:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise InvalidArgument(f"{path} exists. Name a new file for the backup.", code="file-exists") from None
        except OSError as error:
            raise InvalidArgument(
                f"{path} cannot be written: {error.strerror}. Name another file.", code="file-not-writable"
            ) from None
        with self._held():
            copy = sqlite3.connect(path)
            try:
                self._connection.backup(copy)
            finally:
                copy.close()

    def _explained(self, error: Exception) -> DiscreetError | None:
        if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
            return None
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return LedgerDamaged(
                f"The gateway's database {self.shown} is damaged: {error}. Restore the newest backup: "
                "discreet account … backup FILE writes one. What was spent is in the ledger, which is another file.",
                code="gateway-store-damaged",
            )
        busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        said = f"another process has used it for more than {PATIENCE:.0f} s" if busy else str(error)
        return LedgerUnavailable(
            f"The gateway's database {self.shown} cannot be used: {said}. Nothing was handed out. Try again.",
            code="ledger-busy" if busy else None,
        )


class _Postgres(PostgresStore):
    """One schema: `postgresql://host/database#schema`."""

    def prepare(self, migrations: Sequence[Sequence[str]]) -> None:
        with self.transaction(write=True) as execute:
            execute("SELECT pg_advisory_xact_lock(?)", int(hashlib.sha256(self.schema.encode()).hexdigest()[:15], 16))
            execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            _migrate(execute, migrations, self.shown, integer="BIGINT", bytes="BYTEA")

    def generation(self) -> int:
        with self.transaction(write=False) as execute:
            return int(execute(_GENERATION)[0][0])

    def backup(self, path: Path) -> None:
        raise InvalidArgument(
            f"The gateway's database is in PostgreSQL. Back it up there: pg_dump --schema={self.schema} > {path}",
            code="gateway-backup",
        )

    def _explained(self, error: Exception) -> DiscreetError | None:
        explained = super()._explained(error)
        if explained is None:
            return None
        code = explained.code if explained.code == "ledger-busy" else None
        return LedgerUnavailable(str(explained).replace(" ask again with the same key=", " Try again"), code=code)
