"""Which entry was the last to charge each part of an account: a table next to the record, never trusted alone.

Each row has a digest of itself, and every entry holds the sum of these digests for each account that it charges. A
table that is older than the last entry has another sum, and a changed row another digest. What a part has lost is read
from its entry, whose place in the chain is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from discreet.guarantees.rules.best_of import Vector
from discreet.ledger import book, parts
from discreet.ledger.accounts import Account
from discreet.ledger.book import EntryRow
from discreet.ledger.parts import Divided, Own
from discreet.ledger.stores.store import Execute, Statement

_REMEMBERED = 2000
"""At most so many parts of an account are remembered, unless all are needed."""
_SUM = "SELECT CAST(COALESCE(SUM(digest), 0) AS BIGINT) FROM parts WHERE account = ?"
_ONE = "SELECT part, number, digest FROM parts WHERE account = ? AND part = ?"
_ALL = "SELECT part, number, digest FROM parts WHERE account = ?"
_SET = (
    f"INSERT INTO parts (account, part, number, digest) SELECT ?, ?, ?, ? {book.MOVED} "
    "ON CONFLICT (account, part) DO UPDATE SET number = excluded.number, digest = excluded.digest"
)


class Heads(NamedTuple):
    """What parts of one account have lost alone, as far as they were read: None for one that was never charged."""

    owns: Mapping[str, Own | None]
    complete: bool = False

    def knows(self, wanted: Collection[str] | None) -> bool:
        """Whether these parts were read, or all."""
        return self.complete or (wanted is not None and all(part in self.owns for part in wanted))

    def number(self, part: str) -> int | None:
        """The entry that last charged a part that was read. None if there is none."""
        own = self.owns.get(part)
        return None if own is None else own.number

    def found(self, wanted: Collection[str] | None) -> dict[str, Own]:
        """What was read of these parts, or of all."""
        each = self.owns if wanted is None else wanted
        return {part: own for part in each if (own := self.owns.get(part)) is not None}

    def after(self, owns: Mapping[str, Own | None]) -> Heads:
        """The state after an entry that has charged these parts, or after they were read."""
        return self._replace(owns={**self.owns, **owns})

    def kept(self) -> Heads:
        """What is remembered for the next time."""
        return self if self.complete or len(self.owns) <= _REMEMBERED else Heads({})


def read_heads(
    execute: Execute, account: str, divided: Divided | None, wanted: Collection[str] | None
) -> dict[str, Own | None]:
    """What parts have lost alone, or all of them, after checking that the table is the one of the last entry."""
    summed = execute(_SUM, account)[0][0]
    found = [] if wanted is None else [row for part in wanted for row in execute(_ONE, account, part)]
    # a part that is not there may be under another name: that is seen in the whole table
    rows = found if wanted is not None and len(found) == len(wanted) else execute(_ALL, account)
    if summed != (0 if divided is None else divided.digest) or not all(_is_whole(account, *row) for row in rows):
        raise table_error()
    chosen = rows if wanted is None else found
    read = {part: own_in(book.row(execute, number), account, part) for part, number, _ in chosen}
    return {**dict.fromkeys(wanted or ()), **read}


def _is_whole(account: str, part: Any, number: Any, digest: Any) -> bool:
    if (type(part), type(number)) != (str, int):
        return False
    return bool(parts.digest_of(account, part, number) == digest)


def table_error() -> Exception:
    """The error for a table that is older than the last entry, or was changed."""
    return book.damage_error("the table of its parts is not the one of its last entry", code="ledger-totals-wrong")


def own_in(row: EntryRow, account: str, part: str) -> Own:
    """What an entry says that a part has lost alone."""
    own = parts.owns_in(book.vectors(row.totals), row.number).get((account, part))
    if own is None:
        raise book.damage_error(f"entry {row.number} does not charge its part", code="ledger-totals-wrong")
    return own


def current(owns: Mapping[str, Own], divided: Divided | None) -> dict[str, Own]:
    """Parts as they count now: what they lost before the account was renewed is of an earlier period."""
    since, base = (0, ()) if divided is None else (divided.since, divided.base)
    return {
        part: own if own.number > since else parts.nothing_alone(base)._replace(number=own.number)
        for part, own in owns.items()
    }


def lost_before(execute: Execute, row: EntryRow, account: str, part: str) -> Vector:
    """What a unit in one part had lost before an entry that renewed the part alone."""
    own, totals = own_in(row, account, part), book.vectors(row.totals)
    divided = parts.divided_in(totals, account)
    if not own.previous:
        return own.before
    old = current({part: own_in(book.row(execute, own.previous), account, part)}, divided)[part]
    return parts.lost(own.before, old)


def find_at(
    execute: Execute, standing: Mapping[str, Account], at: int, account: str, wanted: Collection[str] | None
) -> dict[str, Own]:
    """What parts of an account had lost alone after an entry, from the entries that charged them, newest first."""
    last = book.last_rows(execute, book.head(execute), account)[account]
    divided = parts.divided_in(book.vectors(last.totals), account)
    found = {}
    for part, own in read_heads(execute, account, divided, wanted).items():
        while own is not None and own.number > at:
            own = own_in(book.row(execute, own.previous), account, part) if own.previous else None
        if own is not None:
            found[part] = own
    return current(found, standing[account].divided)


def moving(account: str, numbers: Mapping[str, int], after: book.Head) -> list[Statement]:
    """The statements that write which entries charged parts. Each changes one row, unless the head was not moved."""
    return [
        (_SET, account, part, number, parts.digest_of(account, part, number), *after)
        for part, number in numbers.items()
    ]
