"""The shuffler: one report per client, one batch per task, in an order that nobody can undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.errors import DiscreetError, InvalidArgument
from discreet.shuffle.channel import admission, keys, wire
from discreet.shuffle.channel.opening import Openers
from discreet.shuffle.channel.store import CutBatch, Outcome, ShufflerStore, State, StoredReport
from discreet.shuffle.channel.task import Task

Answer = Literal["accepted", "other bytes", "closed", "malformed"]
Reply = Literal["received", "analyzed", "another batch", "not accepted"]
Standing = Literal["waiting", "received", "refused", "analyzed"]
_ID, _NONCE = 16, 12


class Shuffler:
    """Accepts sealed reports, and passes on one batch of sealed messages that it cannot read.

    Promise: each client that was issued a token is counted at most once. Fewer than the task's minimum of reports never
    leave, in no state and by no crash. What leaves is in a uniformly random order, is cut once, and is sent again byte
    for byte the same. Neither the address of a client nor the time or order of arrival is kept.
    """

    def __init__(
        self,
        task: Task,
        secrets: keys.ShufflerKeys,
        store: ShufflerStore,
        *,
        openers: Openers | None = None,
        key_file: Path | None = None,
    ) -> None:
        self.task, self.store, self._keys, self._key_file = task, store, secrets, key_file
        self._openers = openers or Openers(1)
        state, _ = store.standing()
        if not secrets.outer and state not in ("acknowledged", "discarded"):
            raise DiscreetError(
                "The shuffler's keys were deleted before this task was closed, so no report can be opened. "
                "Begin a new task.",
                code="shuffle-keys-deleted",
            )
        if secrets.outer and keys.public_of(secrets.outer) != task.shuffler_key:
            raise InvalidArgument(
                "These are not the keys of the task's shuffler. Give the key file made with the task.",
                code="shuffle-wrong-keys",
            )

    def accept(self, uploads: Sequence[tuple[bytes, bytes]]) -> list[Answer]:
        """Accept tokens with their sealed reports. Each gets its own response, whatever the others are.

        A malformed report leaves no trace, and does not use up the client's one report.
        """
        shape, task, secrets = self.task.shape, self.task.hash, self._keys  # it may be deleted meanwhile
        answers: list[Answer] = ["malformed"] * len(uploads)
        known: list[tuple[int, admission.Ticket, bytes]] = []
        for index, (token, report) in enumerate(uploads):
            ticket = self._ticket(token, secrets) if len(report) == shape.report else None
            if ticket is not None:
                known.append((index, ticket, report))
        sealed = [(report, wire.outer(task, ticket.client)) for _, ticket, report in known]
        opened = self._openers.reports(sealed, secrets.outer) if secrets.outer else [b""] * len(sealed)
        rows = [
            (index, _row(secrets, ticket.message, report, content))
            for (index, ticket, report), content in zip(known, opened, strict=True)
            if content is not None
        ]
        outcomes: list[Outcome] = self.store.accept([row for _, row in rows])
        for (index, _), outcome in zip(rows, outcomes, strict=True):
            answers[index] = outcome
        return answers

    def _ticket(self, token: bytes, secrets: keys.ShufflerKeys) -> admission.Ticket | None:
        """Who may report with this: a ticket if the task has an issuer, and else a token of our own."""
        if self.task.issuer_key:
            return admission.accepted(token, self.task.issuer_key, self.task.hash)
        client = keys.client_of(token, secrets.registration, self.task.hash)
        return None if client is None else admission.Ticket(client, client)

    def new_token(self) -> bytes:
        """A token for a client that nobody knows."""
        return keys.token_for(self._keys.registration, self.task.hash)

    def seal(self) -> tuple[State, int]:
        """Create the batch, unless there are too few reports or it exists already. Returns the new state, and
        how many.
        """
        return self.store.seal(self.task.protocol.minimum, self._cut)

    def _cut(self, rows: Sequence[tuple[bytes, bytes]]) -> CutBatch:
        """The messages of all complete reports in a random order. A report with a message seen before is left out."""
        shape = self.task.shape
        cipher = AESGCM(self._keys.storage)
        whole = [content for row, body in rows if (content := _messages_of(cipher, row, body)) is not None]
        whole = _without_copies([one for one in whole if len(one) == shape.messages * shape.message], shape.message)
        messages = np.frombuffer(b"".join(whole), dtype=np.dtype((np.void, shape.message)))
        blob = self.task.protocol.shuffled(messages).tobytes()
        return CutBatch(len(whole), wire.digest(self.task.hash, len(whole), blob), blob)

    def deliver(self, post: Callable[[bytes], Reply], ask: Callable[[], Standing]) -> State:
        """Try once to send the batch to the analyzer and to learn that it is analyzed. Returns the new state.

        `post` sends the packed batch, and `ask` returns the analyzer's progress. A batch that the analyzer has is not
        sent again, unless the analyzer refused it, because its ledger may have more budget by now.
        """
        state, sealed = self.store.batch()
        if sealed is not None and sealed.reports >= self.task.protocol.minimum:
            if state == "sealed" or ask() in ("waiting", "refused"):
                reply = post(wire.pack_batch(wire.Batch(self.task.hash, *sealed)))
                if reply not in ("received", "analyzed"):
                    raise DiscreetError(
                        f"The analyzer rejected the batch: {reply}. Check that both services have the same task file.",
                        code="shuffle-not-accepted",
                    )
                self.store.forwarded()
            if ask() == "analyzed":
                self.store.acknowledged()
        self.forget()
        return self.store.standing()[0]

    def forget(self) -> None:
        """When the task is over, delete the keys that open its reports."""
        if self.store.standing()[0] in ("acknowledged", "discarded") and self._key_file is not None:
            keys.forget(self._key_file, "outer", "storage", "nullifiers")
            self._keys = keys.ShufflerKeys.load(self._key_file)
            self._openers.close()

    def close(self) -> None:
        """Close the database and end other processes."""
        self._openers.close()
        self.store.close()


def _row(secrets: keys.ShufflerKeys, client: bytes, report: bytes, content: bytes) -> StoredReport:
    """What is stored of a report: keyed hashes that only this shuffler can compute, and the encrypted messages."""
    name, digest, row = (
        keys.keyed_hash(secrets.nullifiers, purpose, what)
        for purpose, what in ((b"client", client), (b"bytes", report), (b"row", report))
    )
    nonce = keys.random_bytes(_NONCE)
    kept = AESGCM(secrets.storage).encrypt(nonce, content, row[:_ID]) if content else b""
    return StoredReport(name, digest, row[:_ID], nonce + kept)


def _messages_of(cipher: AESGCM, row: bytes, body: bytes) -> bytes | None:
    """The messages of a row. None if it was damaged."""
    try:
        return cipher.decrypt(body[:_NONCE], body[_NONCE:], row)
    except InvalidTag:
        return None


def _without_copies(reports: list[bytes], width: int) -> list[bytes]:
    """Reports without a message that was seen before: a sealed message that comes twice is a copy."""
    whole = b"".join(reports)
    if len(wire.without_copies(whole, width)) == len(whole):
        return reports
    seen, kept = set[bytes](), list[bytes]()
    for report in reports:
        own = [report[start : start + width] for start in range(0, len(report), width)]
        if len(set(own)) == len(own) and seen.isdisjoint(own):
            seen.update(own)
            kept.append(report)
    return kept
