"""What the shuffler keeps: who has reported, what they sent, and the one batch of the task.

    collecting ──seal──▶ sealed ──the analyzer has it──▶ forwarded ──it is analyzed──▶ acknowledged

Every arrow is one transaction. `report` has no column in common with `nullifier`, its rows are encrypted and its key is
a keyed hash: neither who sent a row nor when can be read from it. There is no time and no address anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from discreet.errors import InvalidArgument
from discreet.shuffle.channel.database import Database, open_database

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS nullifier (client {bytes} PRIMARY KEY, digest {bytes} NOT NULL) {keyed}",
    "CREATE TABLE IF NOT EXISTS report (id {bytes} PRIMARY KEY, body {bytes} NOT NULL) {keyed}",
    """CREATE TABLE IF NOT EXISTS batch (
        task {bytes} PRIMARY KEY,
        state TEXT NOT NULL,
        reports {integer} NOT NULL,
        digest {bytes},
        blob {bytes})""",
)
State = Literal["collecting", "sealed", "forwarded", "acknowledged", "discarded"]
Outcome = Literal["accepted", "other bytes", "closed"]


class Row(NamedTuple):
    """A report as it is kept: the client's nullifier and a digest of the bytes; the row's own id and its content."""

    client: bytes
    digest: bytes
    id: bytes
    body: bytes


class Sealed(NamedTuple):
    """A batch that was cut, before it is stored."""

    reports: int
    digest: bytes
    blob: bytes


class ShufflerStore:
    """The tables of one task's shuffler."""

    def __init__(self, target: str, task: bytes) -> None:
        self.task = task
        self.database: Database = open_database(target, SCHEMA)
        with self.database.transaction(write=True) as execute:
            execute("INSERT INTO batch VALUES (?, 'collecting', 0, NULL, NULL) ON CONFLICT DO NOTHING", task)
            if execute("SELECT task FROM batch") != [(task,)]:
                raise InvalidArgument(f"{self.database.shown} holds the reports of another task. Choose another place.")

    def accept(self, rows: Sequence[Row]) -> list[Outcome]:
        """Take reports, many in one transaction.

        Promise: of one client at most one report is ever kept; the same bytes again have the same outcome, other bytes
        change nothing; once the batch is sealed nothing is added.
        """
        if not rows:
            return []
        marks = ", ".join(["(?, ?)"] * len(rows))
        with self.database.transaction(write=True) as execute:
            collecting = self._state(execute, self.database.lock_shared) == "collecting"
            if collecting:  # in order of the keys: two writers never wait for each other, and arrival is forgotten
                names = sorted((row.client, row.digest) for row in rows)
                execute(f"INSERT INTO nullifier VALUES {marks} ON CONFLICT DO NOTHING", *_flat(names))
            clients = sorted({row.client for row in rows})
            found = f"SELECT client, digest FROM nullifier WHERE client IN ({', '.join('?' * len(clients))})"
            known = {bytes(client): bytes(digest) for client, digest in execute(found, *clients)}
            kept = sorted({(row.id, row.body) for row in rows if known.get(row.client) == row.digest})
            if collecting and kept:
                marks = ", ".join(["(?, ?)"] * len(kept))
                execute(f"INSERT INTO report VALUES {marks} ON CONFLICT DO NOTHING", *_flat(kept))
        return [_outcome(known.get(row.client), row.digest) for row in rows]

    def seal(self, minimum: int, cut: Callable[[list[tuple[bytes, bytes]]], Sealed]) -> tuple[State, int]:
        """Turn all reports into one batch and delete them, in one transaction; the state after that, and how many.

        Promise: with fewer than `minimum` reports, counted again in what `cut` kept, nothing changes.
        """
        with self.database.transaction(write=True) as execute:
            state = self._state(execute, self.database.lock_head)
            if state != "collecting":
                return state, _count(execute, "SELECT reports FROM batch")
            count = _count(execute, "SELECT COUNT(*) FROM report")
            if count < minimum:
                return state, count
            rows = execute("SELECT id, body FROM report ORDER BY id")
            sealed = cut([(bytes(key), bytes(body)) for key, body in rows])
            if sealed.reports < minimum:
                return state, sealed.reports
            change = "UPDATE batch SET state = 'sealed', reports = ?, digest = ?, blob = ?"
            execute(change, sealed.reports, sealed.digest, sealed.blob)
            execute(f"{self.database.clear} report")
        self.database.tidy()
        return "sealed", sealed.reports

    def batch(self) -> tuple[State, Sealed | None]:
        """The state, and what was sealed while it is still here."""
        with self.database.transaction(write=False) as execute:
            [(state, reports, digest, blob)] = execute("SELECT state, reports, digest, blob FROM batch")
        return state, None if blob is None else Sealed(reports, bytes(digest), bytes(blob))

    def standing(self) -> tuple[State, int]:
        """The state, and how many reports there are or were."""
        with self.database.transaction(write=False) as execute:
            state = self._state(execute)
            count = "SELECT COUNT(*) FROM report" if state == "collecting" else "SELECT reports FROM batch"
            return state, _count(execute, count)

    def forwarded(self) -> None:
        """The analyzer has the batch."""
        with self.database.transaction(write=True) as execute:
            execute("UPDATE batch SET state = 'forwarded' WHERE state = 'sealed'")

    def acknowledged(self) -> None:
        """The analyzer is done: forget the messages, and who reported."""
        with self.database.transaction(write=True) as execute:
            if self._state(execute, self.database.lock_head) in ("sealed", "forwarded"):
                execute("UPDATE batch SET state = 'acknowledged', blob = NULL")
                execute(f"{self.database.clear} nullifier")
        self.database.tidy()

    def discard(self) -> State:
        """End the collection without a release: every report is deleted. A batch that was sealed stays sealed."""
        with self.database.transaction(write=True) as execute:
            state = self._state(execute, self.database.lock_head)
            if state == "collecting":
                reports = _count(execute, "SELECT COUNT(*) FROM report")
                execute("UPDATE batch SET state = 'discarded', reports = ?", reports)
                execute(f"{self.database.clear} report")
                execute(f"{self.database.clear} nullifier")
                state = "discarded"
        self.database.tidy()
        return state

    @staticmethod
    def _state(execute: Callable[..., list[tuple[Any, ...]]], lock: str = "") -> State:
        [(state,)] = execute(f"SELECT state FROM batch{lock}")
        return state  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()


def _flat(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    return [one for pair in pairs for one in pair]


def _count(execute: Callable[..., list[tuple[Any, ...]]], query: str) -> int:
    return int(execute(query)[0][0])


def _outcome(known: bytes | None, digest: bytes) -> Outcome:
    if known is None:
        return "closed"
    return "accepted" if known == digest else "other bytes"
