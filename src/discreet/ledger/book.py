"""The rows of a ledger: how they are chained, found and appended. Every function runs inside a store's transaction."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from discreet._version import __version__
from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.guarantees.rules.best_of import Rule, Vector
from discreet.ledger.record import canonical, read_rule, to_text
from discreet.ledger.store import Execute

WHOLE = ""
"""The account of the whole data set, next to those of single analysts."""


class EntryRow(NamedTuple):
    """One entry as it is stored. `content` is the guarantee of a charge. In all other kinds it holds a rule."""

    number: int
    kind: str
    analyst: str
    asked: str
    mechanism: str
    content: str
    costs: str
    totals: str
    retry_key: str | None
    identity: str | None
    request: str | None
    code_version: str
    microseconds: int
    chain: str

    def chained_to(self, before: str) -> str:
        """The chain value that this row must have: a hash of everything in it and of the previous chain value."""
        return hashlib.sha256(f"{before}\n{canonical(list(self[:-1]))}".encode()).hexdigest()

    def spent(self, analyst: str) -> Vector:
        """The running total of an account after this entry."""
        totals = vectors(self.totals)
        if analyst not in totals:
            raise damage_error(f"entry {self.number} has no total for its account", code="ledger-totals-wrong")
        return totals[analyst]

    @property
    def rule(self) -> Rule:
        """The rule that applies from this entry on."""
        return rule_in(self.content)


_KINDS = {"number": (int,), "microseconds": (int,)} | dict.fromkeys(
    ("retry_key", "identity", "request"), (str, type(None))
)

_LATER = ("charge", "limit", "renewal", "account", "adoption")
_YEAR_9999 = 253_370_764_800 * 10**6


def _row(values: Sequence[Any]) -> EntryRow:
    """A row, checked to have values of the types that were written, because SQLite accepts any type in any column."""
    if any(type(value) not in _KINDS.get(name, (str,)) for name, value in zip(EntryRow._fields, values, strict=True)):
        raise damage_error("an entry has a value of the wrong type")
    found = EntryRow(*values)
    if not 0 <= found.microseconds < _YEAR_9999:
        raise damage_error(f"entry {found.number} has an invalid date")
    known = found.kind == "opening" if found.number == 0 else found.kind in _LATER
    if not known or (found.kind == "account" and found.analyst == WHOLE):
        raise damage_error(f"entry {found.number} has an unknown kind")
    return found


def vectors(text: str) -> dict[str, Vector]:
    """The cost of an entry for each account, or the totals after it."""
    found = {name: tuple(units) if isinstance(units, list) else (None,) for name, units in part_of(text).items()}
    if any(type(unit) is not int for units in found.values() for unit in units):
        raise damage_error("the costs or totals of an entry are not numbers")
    return found


def part_of(text: str) -> dict[str, Any]:
    """A part of an entry that is stored as a JSON object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise damage_error("the text of an entry is not in the form it was written in")
    return found


@lru_cache(maxsize=256)
def rule_in(content: str) -> Rule:
    """The rule that the content of an entry sets."""
    return read_rule(canonical(part_of(content).get("rule")))


def with_rule(rule: Rule, content: Mapping[str, Any] | None = None) -> str:
    """The content of an entry that sets a rule."""
    return canonical({**(content or {}), "rule": json.loads(to_text(rule))})


class Head(NamedTuple):
    """The last entry, and how many answers there are."""

    number: int
    chain: str
    answers: int = 0


_COLUMNS = ", ".join(f"entries.{name}" for name in EntryRow._fields)
_MARKS = ", ".join("?" for _ in EntryRow._fields)


def head(execute: Execute, lock: str = "") -> Head:
    """The last entry. With `lock`, nobody else can move it before this transaction ends."""
    found = execute(f"SELECT number, chain, answers FROM head{lock}")
    if len(found) != 1 or [type(value) for value in found[0]] != [int, str, int] or not 0 <= found[0][0] < 2**62:
        raise damage_error("its head is missing or invalid")
    return Head(*found[0])


def row(execute: Execute, number: int) -> EntryRow:
    """One entry, with its chain value checked against the previous entry."""
    found = _one(execute, "?", number)
    if found is None:
        raise damage_error(f"entry {number} is missing")
    return found


def _one(execute: Execute, which: str, *parameters: Any) -> EntryRow | None:
    """The entry with the number `which`, with its chain value checked against the previous entry."""
    found = execute(
        f"SELECT {_COLUMNS}, before.chain FROM entries "
        f"LEFT JOIN entries AS before ON before.number = entries.number - 1 WHERE entries.number = {which}",
        *parameters,
    )
    if not found:
        return None
    *values, before = found[0]
    entry = _row(values)
    if entry.chained_to(before or "") != entry.chain:
        raise damage_error(
            f"entry {entry.number}, or the one before it, was changed after it was written", code="ledger-entry-changed"
        )
    return entry


def rows(execute: Execute, first: int, last: int) -> list[EntryRow]:
    """Entries by number, oldest first, as they are stored."""
    statement = f"SELECT {_COLUMNS} FROM entries WHERE number BETWEEN ? AND ? ORDER BY number"
    return [_row(values) for values in execute(statement, first, last)]


def terms(execute: Execute, analyst: str, at: int = 2**62) -> EntryRow | None:
    """The entry that set the current limit of an account, now or at an entry. None if the account did not exist."""
    newest = "(SELECT MAX(number) FROM entries WHERE analyst = ? AND kind <> 'charge' AND number <= ?)"
    return _one(execute, newest, analyst, at)


def total_spent(execute: Execute, analyst: str, at: Head) -> Vector:
    """What an account has spent, according to its newest entry."""
    last = _newest(execute, analyst) if analyst else row(execute, at.number)
    if last.number == at.number and last.chain != at.chain:
        raise damage_error("its head does not match its last entry")
    return last.spent(analyst)


def _newest(execute: Execute, analyst: str) -> EntryRow:
    """An analyst's last entry, found by the index. In some query plans a MAX would scan all newer entries of others."""
    found = _one(
        execute,
        "(SELECT number FROM entries WHERE (analyst, number) <= (?, 9223372036854775807) "
        "ORDER BY analyst DESC, number DESC LIMIT 1)",
        analyst,
    )
    if found is None or found.analyst != analyst:
        raise damage_error(f"the account of {analyst} is missing")
    return found


def analysts(execute: Execute) -> tuple[str, ...]:
    """Everyone with an account, from the index of the few entries with terms."""
    found = execute("SELECT DISTINCT analyst FROM entries WHERE kind <> 'charge' AND analyst <> ''")
    return tuple(sorted(name for (name,) in found))


def find_charge(execute: Execute, analyst: str, column: str, value: str) -> EntryRow | None:
    """The charge of this analyst with this `retry_key` or `identity`."""
    return _one(execute, f"(SELECT number FROM entries WHERE analyst = ? AND {column} = ?)", analyst, value)


def append(execute: Execute, after: Head | None, facts: Mapping[str, Any]) -> EntryRow:
    """Append an entry after `after`, and move the head to it: a conditional update, which fails if another was
    faster.
    """
    number, before = (0, "") if after is None else (after.number + 1, after.chain)
    costs, totals = canonical(facts["costs"]), canonical(facts["totals"])
    plain = {"retry_key": None, "identity": None, "request": None, "mechanism": ""} | dict(facts)
    plain |= {"number": number, "costs": costs, "totals": totals, "code_version": __version__}
    plain["microseconds"] = time.time_ns() // 1000
    entry = EntryRow(**plain, chain="")
    entry = entry._replace(chain=entry.chained_to(before))
    execute(f"INSERT INTO entries ({', '.join(EntryRow._fields)}) VALUES ({_MARKS})", *entry)
    if after is None:
        execute("INSERT INTO head (one, number, chain, answers) VALUES (1, ?, ?, 0)", number, entry.chain)
        return entry
    moved = (number, entry.chain, after.number, after.chain)
    execute("UPDATE head SET number = ?, chain = ? WHERE one = 1 AND number = ? AND chain = ?", *moved)
    if head(execute)[:2] != (number, entry.chain):
        raise LedgerUnavailable(
            "Another process wrote to the ledger first. Nothing was spent. Ask again.", code="ledger-busy"
        )
    return entry


def damage_error(what: str, *, code: str | None = None) -> LedgerDamaged:
    """An error for a ledger that cannot be trusted. It says what to do."""
    return LedgerDamaged(
        f"The ledger cannot be trusted: {what}. Nothing is released from it. "
        "Restore the newest undamaged copy, with its -wal and .checkpoint files. "
        "If there is none, see docs/ledger.md, “When a ledger is refused”.",
        code=code,
    )
