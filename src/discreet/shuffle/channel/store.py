"""What the shuffler stores: who has reported, what they sent, and the one batch of the task.

    collecting ──seal──▶ sealed ──the analyzer has it──▶ forwarded ──it is analyzed──▶ acknowledged

Every arrow is one transaction. A report has nothing in common with its client's nullifier, is encrypted, and its key is
a keyed hash: neither who sent it nor when can be read from it. There is no time, no address and, in SQLite, no order of
arrival anywhere (unordered.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from discreet.errors import InvalidArgument
from discreet.shuffle.channel.database import ServiceDatabase, database_at

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS batch (
        task {bytes} PRIMARY KEY,
        state TEXT NOT NULL,
        reports {integer} NOT NULL,
        digest {bytes},
        blob {bytes})""",
)
State = Literal["collecting", "sealed", "forwarded", "acknowledged", "discarded"]
Outcome = Literal["accepted", "other bytes", "closed"]


class StoredReport(NamedTuple):
    """A report as it is stored: the client's nullifier and a digest of the bytes, the row's own id and its content."""

    client: bytes
    digest: bytes
    id: bytes
    body: bytes


class CutBatch(NamedTuple):
    """A batch that was cut, before it is stored."""

    reports: int
    digest: bytes
    blob: bytes


class ShufflerStore:
    """The tables of one task's shuffler."""

    def __init__(self, target: str, task: bytes) -> None:
        self.task = task
        self.database: ServiceDatabase = database_at(target)
        self.clients = self.database.entries("nullifier", "client", "digest")
        self.reports = self.database.entries("report", "id", "body")
        self.database.prepare([*SCHEMA, *self.clients.schema, *self.reports.schema])
        with self.database.transaction(write=True) as execute:
            for kept in (self.clients, self.reports):
                kept.take_over(execute)
            execute("INSERT INTO batch VALUES (?, 'collecting', 0, NULL, NULL) ON CONFLICT DO NOTHING", task)
            if execute("SELECT task FROM batch") != [(task,)]:
                raise InvalidArgument(
                    f"{self.database.shown} holds the reports of another task. Choose another place.",
                    code="shuffle-other-task",
                )

    def accept(self, rows: Sequence[StoredReport]) -> list[Outcome]:
        """Accept reports, many in one transaction.

        Promise: of one client at most one report is ever kept; the same bytes again have the same outcome, other bytes
        change nothing; once the batch is sealed nothing is added.
        """
        if not rows:
            return []
        with self.database.transaction(write=True) as execute:
            collecting = self._state(execute, self.database.lock_shared) == "collecting"
            if collecting:  # by key: writers never wait for each other, and the order of arrival is lost
                self.clients.add(execute, sorted((row.client, row.digest) for row in rows))
            known = self.clients.found(execute, sorted({row.client for row in rows}))
            kept = sorted({(row.id, row.body) for row in rows if known.get(row.client) == row.digest})
            if collecting:
                self.reports.add(execute, kept)
        return [_outcome(known.get(row.client), row.digest) for row in rows]

    def seal(self, minimum: int, cut: Callable[[list[tuple[bytes, bytes]]], CutBatch]) -> tuple[State, int]:
        """Turn all reports into one batch and delete them, in one transaction. Returns the new state, and how many
        there were.

        Promise: with fewer than `minimum` reports, counted again in what `cut` kept, nothing changes.
        """
        with self.database.transaction(write=True) as execute:
            state = self._state(execute, self.database.lock_head)
            if state != "collecting":
                return state, _count(execute, "SELECT reports FROM batch")
            count = self.reports.count(execute)
            if count < minimum:
                return state, count
            sealed = cut(self.reports.all(execute))
            if sealed.reports < minimum:
                return state, sealed.reports
            change = "UPDATE batch SET state = 'sealed', reports = ?, digest = ?, blob = ?"
            execute(change, sealed.reports, sealed.digest, sealed.blob)
            self.reports.clear(execute)
        return "sealed", sealed.reports

    def batch(self) -> tuple[State, CutBatch | None]:
        """The state, and the sealed batch while it is still stored."""
        with self.database.transaction(write=False) as execute:
            [(state, reports, digest, blob)] = execute("SELECT state, reports, digest, blob FROM batch")
        return state, None if blob is None else CutBatch(reports, bytes(digest), bytes(blob))

    def standing(self) -> tuple[State, int]:
        """The state, and how many reports there are or were."""
        with self.database.transaction(write=False) as execute:
            state = self._state(execute)
            if state == "collecting":
                return state, self.reports.count(execute)
            return state, _count(execute, "SELECT reports FROM batch")

    def forwarded(self) -> None:
        """Record that the analyzer has the batch."""
        with self.database.transaction(write=True) as execute:
            execute("UPDATE batch SET state = 'forwarded' WHERE state = 'sealed'")

    def acknowledged(self) -> None:
        """The analyzer is done: delete the messages, and who reported."""
        with self.database.transaction(write=True) as execute:
            if self._state(execute, self.database.lock_head) in ("sealed", "forwarded"):
                execute("UPDATE batch SET state = 'acknowledged', blob = NULL")
                self.clients.clear(execute)

    def discard(self) -> State:
        """End the collection without a release: every report is deleted. A batch that was sealed stays sealed."""
        with self.database.transaction(write=True) as execute:
            state = self._state(execute, self.database.lock_head)
            if state == "collecting":
                execute("UPDATE batch SET state = 'discarded', reports = ?", self.reports.count(execute))
                self.reports.clear(execute)
                self.clients.clear(execute)
                state = "discarded"
        return state

    @staticmethod
    def _state(execute: Callable[..., list[tuple[Any, ...]]], lock: str = "") -> State:
        [(state,)] = execute(f"SELECT state FROM batch{lock}")
        return state  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _count(execute: Callable[..., list[tuple[Any, ...]]], query: str) -> int:
    return int(execute(query)[0][0])


def _outcome(known: bytes | None, digest: bytes) -> Outcome:
    if known is None:
        return "closed"
    return "accepted" if known == digest else "other bytes"
