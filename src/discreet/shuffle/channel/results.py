"""What the analyzer stores: the one batch of the task, and after the analysis, what may be published."""

from __future__ import annotations

import json
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.shuffle.channel.database import ServiceDatabase, database_at
from discreet.shuffle.channel.wire import Batch

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS received (
        task {bytes} PRIMARY KEY,
        state TEXT NOT NULL,
        reports {integer} NOT NULL,
        digest {bytes},
        blob {bytes},
        result TEXT)""",
)
State = Literal["waiting", "received", "analyzed"]


class AnalyzerStore:
    """The table of one task's analyzer: one row."""

    def __init__(self, target: str, task: bytes) -> None:
        self.task = task
        self.database: ServiceDatabase = database_at(target)
        self.database.prepare(SCHEMA)
        with self.database.transaction(write=True) as execute:
            execute("INSERT INTO received VALUES (?, 'waiting', 0, NULL, NULL, NULL) ON CONFLICT DO NOTHING", task)
            if execute("SELECT task FROM received") != [(task,)]:
                raise InvalidArgument(
                    f"{self.database.shown} holds the batch of another task. Choose another place.",
                    code="shuffle-other-task",
                )

    def receive(self, batch: Batch) -> bool:
        """Store a batch. The same one again is fine. False if another one was stored before.

        Promise: of one task one batch is ever analyzed. A shuffler that was put back to an old state and cuts a second
        one, which differs in a few people, is refused.
        """
        with self.database.transaction(write=True) as execute:
            lock = self.database.lock_head
            [(state, digest)] = execute(f"SELECT state, digest FROM received{lock}")
            if state == "waiting":
                change = "UPDATE received SET state = 'received', reports = ?, digest = ?, blob = ?"
                execute(change, batch.reports, batch.digest, batch.blob)
                return True
            return bytes(digest) == batch.digest

    def batch(self) -> Batch | None:
        """The batch that waits to be analyzed."""
        with self.database.transaction(write=False) as execute:
            [(state, reports, digest, blob)] = execute("SELECT state, reports, digest, blob FROM received")
        return Batch(self.task, reports, bytes(digest), bytes(blob)) if state == "received" else None

    def publish(self, result: dict[str, Any]) -> None:
        """Store what may be published, and delete the messages."""
        with self.database.transaction(write=True) as execute:
            change = "UPDATE received SET state = 'analyzed', blob = NULL, result = ? WHERE state = 'received'"
            execute(change, json.dumps(result, allow_nan=False))

    def standing(self) -> tuple[State, dict[str, Any] | None]:
        """The state, and what was published."""
        with self.database.transaction(write=False) as execute:
            [(state, result)] = execute("SELECT state, result FROM received")
        return state, None if result is None else json.loads(result)

    def close(self) -> None:
        """Close the database."""
        self.database.close()
