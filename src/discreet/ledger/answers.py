"""Drawn answers, stored before they are returned. The first process to store an answer for an entry decides for all.

An answer that came too late is discarded: nobody gets it, and to ask again is a new charge.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from discreet.errors import DiscreetError, InvalidArgument
from discreet.ledger import book
from discreet.ledger.book import Head
from discreet.ledger.entry import Entry
from discreet.ledger.store import Execute
from discreet.ledger.values import decode, encode

KEPT_UNASKED = 2**16
"""The largest size, in bytes, of a stored answer without a key and without a public identity, which cannot be requested
again.
"""


class Kept:
    """What was drawn, ready to be stored for an entry."""

    def __init__(self, entry: Entry, value: Any, *, not_private: bool) -> None:
        self.entry, self.value, self.not_private = entry, value, not_private
        try:
            self.data: bytes | None = encode(value)
        except InvalidArgument:
            self.data = None
        if self.data is not None and len(self.data) > KEPT_UNASKED and not entry.repeatable:
            self.data = None

    def put(self, execute: Execute, at: Head) -> Head | None:
        """Store it, with the head locked, and count it. None if another answer was stored before."""
        check_entry(execute, self.entry)
        if execute("SELECT number FROM answers WHERE number = ?", self.entry.number):
            return None
        digest = binding_digest(self.entry.chain, self.data, not_private=self.not_private)
        values = (self.entry.number, self.data, digest, int(self.not_private))
        execute("INSERT INTO answers (number, data, digest, not_private) VALUES (?, ?, ?, ?)", *values)
        execute("UPDATE head SET answers = ? WHERE one = 1 AND answers = ?", at.answers + 1, at.answers)
        return at._replace(answers=at.answers + 1)


def discard(execute: Execute, at: Head, number: int, chain: str) -> Head:
    """Put a mark in place of the answer of an entry, with the head locked. An answer that is there is removed."""
    digest = _discarded_digest(chain)
    if execute("SELECT number FROM answers WHERE number = ?", number):
        execute("UPDATE answers SET data = NULL, digest = ?, not_private = 0 WHERE number = ?", digest, number)
        return at
    execute("INSERT INTO answers (number, data, digest, not_private) VALUES (?, NULL, ?, 0)", number, digest)
    execute("UPDATE head SET answers = ? WHERE one = 1 AND answers = ?", at.answers + 1, at.answers)
    return at._replace(answers=at.answers + 1)


def state_of(chain: str, digests: list[tuple[Any, ...]]) -> Literal["reserved", "answered", "discarded"]:
    """The state of a charge with this chain value, from the digest of its answer, if it has one."""
    if not digests:
        return "reserved"
    return "discarded" if digests[0][0] == _discarded_digest(chain) else "answered"


def discarded_error() -> DiscreetError:
    """The error for a request whose answer was discarded."""
    return DiscreetError(
        "The answer to this request was not ready in time, and nobody gets it. What it cost stays charged. "
        "Ask again with a new key, or without one: that is a new charge.",
        code="ledger-discarded",
    )


def read_stored(execute: Execute, entry: Entry) -> tuple[Any, bool]:
    """What was stored for an answered entry, and whether it was made in test mode."""
    check_entry(execute, entry)
    found = execute("SELECT data, digest, not_private FROM answers WHERE number = ?", entry.number)
    if not found:
        raise InvalidArgument(
            f"Entry {entry.receipt} has no answer. Choose an entry with answered=True from entries().",
            code="ledger-no-answer",
        )
    data, digest, not_private = found[0]
    if digest == _discarded_digest(entry.chain):
        raise discarded_error()
    if not is_bound(entry.chain, data, digest, not_private):
        raise book.damage_error(
            f"the answer of entry {entry.number} was changed after it was written", code="ledger-answer-changed"
        )
    if data is None:
        raise DiscreetError(
            f"The answer of entry {entry.receipt} was handed out but not kept: "
            "it is large and has no key, or its type cannot be kept. Ask again, at a new cost.",
            code="ledger-answer-not-kept",
        )
    return decode(bytes(data)), bool(not_private)


def check_entry(execute: Execute, entry: Entry) -> None:
    """Refuse an entry that is not the one in the record: its charge is gone, or it belongs to someone else."""
    row = book.row(execute, entry.number)
    if (row.chain, row.analyst or None) != (entry.chain, entry.analyst):
        raise book.damage_error(f"entry {entry.number} is not the one that was charged", code="ledger-entry-changed")


def binding_digest(chain: str, data: bytes | None, *, not_private: bool) -> str:
    """The digest that binds an answer and its metadata to its entry."""
    mark = f"{chain} {int(not_private)} {int(data is not None)}\n"
    return hashlib.sha256(mark.encode() + (data or b"")).hexdigest()


def _discarded_digest(chain: str) -> str:
    return hashlib.sha256(f"{chain} discarded\n".encode()).hexdigest()


def is_bound(chain: str, data: object, digest: object, not_private: object) -> bool:
    """Whether a stored answer is the one that was stored for its entry."""
    if not isinstance(data, bytes | bytearray | memoryview | None):
        return False
    if data is None and digest == _discarded_digest(chain):
        return True
    return binding_digest(chain, None if data is None else bytes(data), not_private=bool(not_private)) == digest
