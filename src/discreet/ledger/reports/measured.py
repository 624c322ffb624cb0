"""Charges by the vectors that they measured, as their marks say, with what was stored for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from discreet.errors import DiscreetError
from discreet.ledger import answers, book
from discreet.ledger.book import WHOLE
from discreet.ledger.entry import Entry, entry_of
from discreet.ledger.ledger import Ledger
from discreet.ledger.marks import split_mark

_AT_ONCE = 500
_SUMS = re.compile(r"; sums ([^;]*)")


@dataclass(frozen=True)
class Measured:
    """An answered charge, its stored numbers, and whether they were made in test mode."""

    entry: Entry
    value: Any
    not_private: bool


@dataclass
class _Seen:
    """What one view of a ledger has read: up to which entry, the numbers of entries by vector, and answers."""

    last: int = -1
    numbers: dict[str, list[int]] = field(default_factory=dict)
    answers: dict[int, Measured | None] = field(default_factory=dict)


_SEEN: WeakKeyDictionary[Ledger, dict[bool, _Seen]] = WeakKeyDictionary()


def measured_before(ledger: Ledger, vector: str, *, shared: bool) -> list[Measured]:
    """The answered charges on the same parts whose marks name a vector, oldest first: those of this account, or with
    `shared` those of all, as for a view that finds what others bought. Nothing of an answer that has not left yet is
    found, and nothing that was discarded.
    """
    shared = shared or bool(getattr(ledger, "others", ()))
    seen = _SEEN.setdefault(ledger, {}).setdefault(shared, _Seen())
    with ledger._store.transaction(write=False) as execute:
        _read_newer(execute, ledger, seen, shared=shared)
        numbers = list(seen.numbers.get(vector, ()))
        if not numbers:
            return []
        digests = _digests(execute, numbers)
        found = []
        for number in numbers:
            known = seen.answers.get(number)
            if number not in digests:
                continue  # not answered yet
            if known is None and number not in seen.answers:
                known = seen.answers[number] = _answer(execute, number)
            if known is None or answers.state_of(known.entry.chain, digests[number]) != "answered":
                continue
            if known.entry.parts == ledger._parts and _is_shown(ledger, known.entry):
                found.append(known)
    return found


def _digests(execute: Any, numbers: Sequence[int]) -> dict[int, Any]:
    """The digests of the answers of these entries, as far as they have one. Those of others are not read."""
    found: dict[int, Any] = {}
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        found |= dict(execute(f"SELECT number, digest FROM answers WHERE number IN ({marks})", *some))
    return found


def _read_newer(execute: Any, ledger: Ledger, seen: _Seen, *, shared: bool) -> None:
    """Read the marks of the entries since the last time."""
    whose, given = ("", ()) if shared else ("analyst = ? AND ", (ledger._analyst,))
    newer = execute(
        f"SELECT number, asked FROM entries WHERE {whose}number > ? AND kind = 'charge' ORDER BY number",
        *given,
        seen.last,
    )
    for number, asked in newer:
        seen.last = max(seen.last, number)
        sums = _SUMS.search(split_mark(asked)[1])
        for vector in dict.fromkeys(one[:32] for one in sums[1].split(", ")) if sums else ():
            seen.numbers.setdefault(vector, []).append(number)


def _answer(execute: Any, number: int) -> Measured | None:
    """What is stored for an entry. None if nothing can be read: it was discarded, or not kept."""
    rows = book.with_answer(execute(*book.numbered(number)))
    if rows is None or rows[1] is None:
        return None
    row, stored = rows[0], rows[1]
    entry = entry_of(row, answers.state_of(row.chain, stored.digest))
    try:
        value, not_private = answers.read_stored(stored, entry)
    except DiscreetError as error:
        if error.code not in ("ledger-discarded", "ledger-answer-not-kept"):
            raise
        return None
    return Measured(entry, value, not_private)


def _is_shown(ledger: Ledger, entry: Entry) -> bool:
    """Whether an answer has left: views of a gateway know up to which entry those of each account have."""
    until: Mapping[str, int] = getattr(ledger, "until", {})
    account = entry.analyst or WHOLE
    if account in until:
        return entry.number <= until[account]
    as_of: int | None = getattr(ledger, "as_of", None)
    return account == ledger._analyst or as_of is None or entry.number <= as_of
