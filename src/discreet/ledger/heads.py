"""Which entry was the last to charge each part of an account: a table next to the record, never trusted alone.

Every entry holds a digest of the table for each account that it charges. A table that is older than the last entry, or
was changed, has another digest. What a part has lost is read from its entry, whose place in the chain is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from discreet.guarantees.rules.best_of import Vector
from discreet.ledger import book, parts
from discreet.ledger.accounts import Account
from discreet.ledger.book import EntryRow
from discreet.ledger.parts import Divided, Own
from discreet.ledger.store import Execute, Statement

_RECENT, _REMEMBERED = 64, 20_000
"""So many changes are kept apart before the table in memory is copied. At most so many parts are remembered."""


class Heads(NamedTuple):
    """The last entry of each part of one account, and what some of the parts have lost alone."""

    numbers: Mapping[str, int]
    recent: Mapping[str, int]
    owns: Mapping[str, Own]

    def number(self, part: str) -> int | None:
        """The entry that last charged a part. None if there is none."""
        found = self.recent.get(part)
        return self.numbers.get(part) if found is None else found

    def names(self) -> list[str]:
        """All parts that were charged."""
        return list(dict.fromkeys((*self.numbers, *self.recent)))

    def after(self, owns: Mapping[str, Own]) -> Heads:
        """The state after an entry that has charged these parts."""
        numbers, recent = self.numbers, {**self.recent, **{part: own.number for part, own in owns.items()}}
        if len(recent) > _RECENT:
            numbers, recent = {**numbers, **recent}, {}
        return Heads(numbers, recent, self.remembering(owns).owns)

    def remembering(self, owns: Mapping[str, Own]) -> Heads:
        """The same, with what was read of some parts."""
        return self._replace(owns={**self.owns, **owns} if len(self.owns) <= _REMEMBERED else owns)


def read_heads(execute: Execute, account: str, divided: Divided | None) -> Heads:
    """The table of one account, after checking that it is the one of the last entry."""
    rows = execute("SELECT part, number FROM parts WHERE account = ?", account)
    if any((type(part), type(number)) != (str, int) for part, number in rows):
        raise book.damage_error("the table of its parts has a value of the wrong type", code="ledger-totals-wrong")
    numbers = dict(rows)
    if parts.digest_of(account, numbers) != (0 if divided is None else divided.digest):
        raise book.damage_error("the table of its parts is not the one of its last entry", code="ledger-totals-wrong")
    return Heads(numbers, {}, {})


def read_owns(execute: Execute, account: str, heads: Heads, wanted: Collection[str]) -> dict[str, Own]:
    """What parts have lost alone, from the last entries that charged them. Without parts that were never charged."""
    found = {}
    for part in wanted:
        number = heads.number(part)
        if number is None:
            continue
        found[part] = heads.owns.get(part) or own_in(book.row(execute, number), account, part)
    return found


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


def owns_at(execute: Execute, account: str, heads: Heads, wanted: Collection[str], at: int) -> dict[str, Own]:
    """What parts had lost alone after an entry, from the entries that charged them, newest first."""
    found = {}
    for part, own in read_owns(execute, account, heads, wanted).items():
        while own.number > at and own.previous:
            own = own_in(book.row(execute, own.previous), account, part)
        if own.number <= at:
            found[part] = own
    return found


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
    """What parts of an account had lost alone after an entry."""
    last = book.last_rows(execute, book.head(execute), account)[account]
    heads = read_heads(execute, account, parts.divided_in(book.vectors(last.totals), account))
    found = owns_at(execute, account, heads, heads.names() if wanted is None else wanted, at)
    return current(found, standing[account].divided)


def moving(account: str, numbers: Mapping[str, int], after: book.Head) -> list[Statement]:
    """The statements that write which entries charged parts. Each changes one row, unless the head was not moved."""
    return [(_SET, account, part, number, *after) for part, number in numbers.items()]


_SET = (
    f"INSERT INTO parts (account, part, number) SELECT ?, ?, ? {book.MOVED} "
    "ON CONFLICT (account, part) DO UPDATE SET number = excluded.number"
)
