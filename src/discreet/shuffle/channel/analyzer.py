"""The analyzer: one charge, then one read of messages that cannot be traced, then noisy counts for everybody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, InvalidArgument, NotAllowed
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import row
from discreet.ledger import Ledger, cost_of
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.opening import Openers
from discreet.shuffle.channel.results import AnalyzerStore
from discreet.shuffle.channel.task import Task
from discreet.shuffle.protocol import PollRelease

CONFIDENCE = 0.95


class Analyzer:
    """Opens the messages of one batch, and publishes the protocol's result.

    Promise: the ledger is charged, once for the task, before the first message is opened. A second batch of the task is
    refused. A batch in which too few reports can be read is withheld for good, and that is published in its place. The
    private key of the messages is deleted as soon as the result is stored.
    """

    def __init__(
        self,
        task: Task,
        secrets: keys.AnalyzerKeys,
        store: AnalyzerStore,
        ledger: Ledger,
        *,
        openers: Openers | None = None,
        key_file: Path | None = None,
    ) -> None:
        self.task, self.store, self.ledger, self._keys, self._key_file = task, store, ledger, secrets, key_file
        self._openers = openers or Openers(1)
        self._one_at_a_time = threading.Lock()
        check(task, secrets, ledger)
        if not secrets.inner and store.standing()[0] != "analyzed":
            raise DiscreetError(
                "The analyzer's key was deleted before this task had a result, so no report can be opened. "
                "Begin a new task.",
                code="shuffle-keys-deleted",
            )
        self._forget()

    def receive(self, data: bytes) -> Literal["received", "analyzed", "another batch", "not accepted"]:
        """Store a batch that is complete and large enough. Receiving the same one again changes nothing."""
        try:
            batch = wire.unpack_batch(data, self.task.shape)
        except wire.Malformed:
            return "not accepted"
        if batch.task != self.task.hash or batch.reports < self.task.protocol.minimum:
            return "not accepted"
        if not self.store.receive(batch):
            return "another batch"
        return "analyzed" if self.store.standing()[0] == "analyzed" else "received"

    def analyze(self) -> dict[str, Any] | None:
        """Charge, open, count and store, unless that was done before. None while there is no batch.

        After a crash the charge is found again by its key, and so is the answer, if it was stored in the ledger.
        """
        with self._one_at_a_time:
            batch = self.store.batch()
            if batch is not None:
                opened: list[NDArray[np.int64]] = []

                def messages() -> NDArray[np.int64]:
                    opened.append(self._messages(batch))
                    return opened[0]

                try:
                    result = result_of(release_result(self.task, self.ledger, batch.reports, messages))
                except NotAllowed:
                    if not opened:  # the ledger's own refusal
                        raise
                    result = withheld(self.task, batch.reports, opened[0])
                self.store.publish(result)
            self._forget()
        return self.store.standing()[1]

    def _messages(self, batch: wire.Batch) -> NDArray[np.int64]:
        """The messages that open and belong to the domain. Copies of a sealed message count once."""
        width, info = self.task.shape.message, wire.inner(self.task.hash)
        plain = self._openers.messages(wire.without_copies(batch.blob, width), width, self._keys.inner, info)
        messages: NDArray[np.int64] = self.task.protocol.unpacked(plain)
        return messages[messages >= 0]

    def _forget(self) -> None:
        if self.store.standing()[0] == "analyzed":
            if self._key_file is not None:
                keys.forget(self._key_file, "inner")
            self._keys = keys.AnalyzerKeys(operator=self._keys.operator, inner=b"")
            self._openers.close()

    def close(self) -> None:
        """Close the databases and end other processes."""
        self._openers.close()
        self.store.close()
        self.ledger.close()


def release_result(task: Task, ledger: Ledger, reports: int, messages: Callable[[], NDArray[np.int64]]) -> PollRelease:
    """The protocol's result for the messages, which are fetched after the ledger is charged.

    The charge is what the task promises, to a ledger that adds up nothing else; else the exact loss of the protocol.
    The task's hash is the idempotency key: whatever is tried, a task is charged once and has one answer.
    """
    cost = cost_of(ledger, task.protocol.guarantee(), Approx(epsilon=task.epsilon, delta=task.delta))
    promised = cost if isinstance(cost, Approx) else None
    key = f"discreet shuffle {task.hash.hex()}"
    return task.protocol.analyze(messages, reports=reports, ledger=ledger, key=key, stated=promised)


def check(task: Task, secrets: keys.AnalyzerKeys, ledger: Ledger) -> None:
    """Refuse keys and ledgers that do not belong to the task, and a task that does not satisfy its promise."""
    task.check()
    if ledger.protects != row(neighbors="replace"):
        raise InvalidArgument(
            "The number of reports is public, so the ledger must protect rows by replacement: "
            "row(neighbors='replace').",
            code="shuffle-ledger-unit",
        )
    if secrets.inner and keys.public_of(secrets.inner) != task.analyzer_key:
        raise InvalidArgument(
            "These are not the keys of the task's analyzer. Give the key file made with the task.",
            code="shuffle-wrong-keys",
        )


def withheld(task: Task, reports: int, messages: NDArray[np.int64]) -> dict[str, Any]:
    """What is published about a batch with too few readable reports: their number, which is public, but no count."""
    return {
        "reports": reports,
        "heard": task.protocol.count_records((messages, reports)),
        "needed": task.protocol.at_least,
    }


def result_of(release: PollRelease) -> dict[str, Any]:
    """A release as plain JSON: counts with their error, the number of reports, the guarantee, and the receipt."""
    error = release.error(CONFIDENCE)
    known = isinstance(error, Accuracy) and error.amount is not None
    value = release.value
    return {
        "reports": release.reports,
        "heard": release.heard,
        "value": [[str(name), _number(one)] for name, one in value.items()]
        if isinstance(value, dict)
        else _number(value),
        "error": float(error) if known else None,
        "confidence": CONFIDENCE,
        "guarantee": str(release.guarantee),
        "receipt": release.receipt,
        "not_private": release.not_private,
    }


def _number(value: Any) -> int | float:
    return int(value) if float(value).is_integer() else float(value)
