"""Drawn answers, stored before they are returned. The first process to store an answer for an entry decides for all.

An answer that came too late is discarded: nobody gets it, and to ask again is a new charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from discreet.errors import DiscreetError, InvalidArgument
from discreet.ledger import book
from discreet.ledger.book import EntryRow, Stored
from discreet.ledger.entry import Entry
from discreet.ledger.stores.store import Execute, Rows
from discreet.ledger.texts.request import identity_again
from discreet.ledger.texts.values import decode, encode

Named = tuple[str | None, str | None]
"""A request by its key and its identity."""
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

    def stored(self) -> Stored:
        """What is stored for the entry."""
        digest = binding_digest(self.entry.chain, self.data, not_private=self.not_private)
        return Stored(self.data, digest, int(self.not_private))


def discarded(chain: str) -> Stored:
    """What is stored in place of an answer that came too late."""
    return Stored(None, _discarded_digest(chain), 0)


def state_of(chain: str, digest: object) -> Literal["reserved", "answered", "discarded"]:
    """The state of a charge with this chain value, from the digest of its answer. None if it has none."""
    if digest is None:
        return "reserved"
    return "discarded" if digest == _discarded_digest(chain) else "answered"


def discarded_error() -> DiscreetError:
    """The error for a request whose answer was discarded."""
    return DiscreetError(
        "The answer to this request was not ready in time, and nobody gets it. What it cost stays charged. "
        "Ask again with a new key, or without one: that is a new charge.",
        code="ledger-discarded",
    )


def read_stored(stored: Stored | None, entry: Entry) -> tuple[Any, bool]:
    """What was stored for an answered entry, and whether it was made in test mode."""
    if stored is None:
        raise InvalidArgument(
            f"Entry {entry.receipt} has no answer. Choose an entry with answered=True from entries().",
            code="ledger-no-answer",
        )
    data, digest, not_private = stored
    if state_of(entry.chain, digest) == "discarded":
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


def find_stored(rows: Rows, entry: Entry) -> Stored | None:
    """The answer of an entry, from what `book.numbered` found. Refuses an entry that is not the one in the record: its
    charge is gone, or it belongs to someone else.
    """
    found = book.with_answer(rows)
    if found is None:
        raise book.damage_error(f"entry {entry.number} is missing")
    row, stored = found
    if (row.chain, row.analyst or None) != (entry.chain, entry.analyst):
        raise book.damage_error(f"entry {entry.number} is not the one that was charged", code="ledger-entry-changed")
    return stored


def charges_in(
    execute: Execute, analyst: str, requests: Sequence[Named], after: int
) -> list[tuple[EntryRow, Stored | None]]:
    """The charges of requests after an entry, and earlier ones without an answer, each with what is stored."""
    known: dict[int, tuple[EntryRow, Stored | None]] = {}
    for key, identity in requests:
        found = book.with_answer(execute(*book.charged(analyst, "retry_key", key))) if key else None
        while found is None and identity is not None:
            found = book.with_answer(execute(*book.charged(analyst, "identity", identity)))
            if found is None or state_of(found[0].chain, found[1] and found[1].digest) != "discarded":
                break
            found, identity = None, identity_again(identity)
        if found is not None and (found[0].number > after or found[1] is None):
            known[found[0].number] = found
    return [known[number] for number in sorted(known)]


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
