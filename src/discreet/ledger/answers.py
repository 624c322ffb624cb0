"""What was drawn, kept before it is handed out. The first to keep an answer for an entry decides it for all."""

from __future__ import annotations

import hashlib
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument
from discreet.ledger import book
from discreet.ledger.entry import Entry
from discreet.ledger.store import Store
from discreet.ledger.values import decoded, encoded

KEPT_UNASKED = 2**16
"""An answer that nobody can ask for again, for want of a key and of a public identity, is kept up to so many bytes."""


def keep(store: Store, entry: Entry, value: Any, *, not_private: bool) -> tuple[Any, bool]:
    """Store what was drawn for a reservation; back comes what is to be handed out, and whether it is of test mode."""
    try:
        data: bytes | None = encoded(value)
    except InvalidArgument:
        data = None
    digest = bound(entry.chain, data or b"")
    if data is not None and len(data) > KEPT_UNASKED and not entry.repeatable:
        data = None
    with store.transaction(write=True) as execute:
        book.head(execute, store.lock_head)
        first = not execute("SELECT number FROM answers WHERE number = ?", entry.number)
        if first:
            execute("INSERT INTO answers VALUES (?, ?, ?, ?)", entry.number, data, digest, int(not_private))
    return (value, not_private) if first else kept(store, entry)


def kept(store: Store, entry: Entry) -> tuple[Any, bool]:
    """What was stored for an answered entry, and whether it is of test mode."""
    with store.transaction(write=False) as execute:
        found = execute("SELECT data, digest, not_private FROM answers WHERE number = ?", entry.number)
    if not found:
        raise InvalidArgument(f"Entry {entry.receipt} has no answer.")
    data, digest, not_private = found[0]
    if data is None:
        raise DiscreetError(
            f"The answer of entry {entry.receipt} was handed out, but is of a type that cannot be kept. "
            "Ask again with a new key, at a new cost."
        )
    if bound(entry.chain, bytes(data)) != digest:
        raise book.damaged(f"the answer of entry {entry.number} was changed after it was written")
    return decoded(bytes(data)), bool(not_private)


def bound(chain: str, data: bytes) -> str:
    """The digest that binds an answer to its entry."""
    return hashlib.sha256(chain.encode() + data).hexdigest()
