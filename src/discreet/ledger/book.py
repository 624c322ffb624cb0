"""The rows of a ledger: how they are chained, found and appended. Every function runs inside a store's transaction."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from discreet._version import __version__
from discreet.errors import LedgerDamaged
from discreet.guarantees.rules.best_of import Rule, Vector
from discreet.ledger.stores.store import Execute, Statement
from discreet.ledger.texts.record import canonical, read_rule, to_text

WHOLE = ""
"""The account of the whole data set, next to those of single analysts."""


def _chain(before: str, values: tuple[Any, ...]) -> str:
    return hashlib.sha256(f"{before}\n{_values_text(values)}".encode()).hexdigest()


def _values_text(values: tuple[Any, ...]) -> str:
    """The same as `canonical`, for the values of a row."""
    if tuple(map(type, values)) not in _TYPES_BEFORE_CHAIN:
        return canonical(values)
    parts = [
        encode_basestring(value) if type(value) is str else "null" if value is None else str(value) for value in values
    ]
    return f"[{','.join(parts)}]"


def _vectors_text(vectors: Mapping[str, Vector]) -> str:
    """The same as `canonical`, for costs and totals."""
    parts = [f"{encode_basestring(name)}:[{','.join(map(int.__repr__, vectors[name]))}]" for name in sorted(vectors)]
    return f"{{{','.join(parts)}}}"


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
        return _chain(before, self[:-1])

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
_TYPES = frozenset(product(*(_KINDS.get(name, (str,)) for name in EntryRow._fields)))
"""The types that the values of a row can have."""
_TYPES_BEFORE_CHAIN = frozenset(types[:-1] for types in _TYPES)

_LATER = ("charge", "limit", "renewal", "account", "adoption", "standing", "step")
_YEAR_9999 = 253_370_764_800 * 10**6


def _row(values: Sequence[Any]) -> EntryRow:
    """A row, checked to have values of the types that were written, because SQLite accepts any type in any column."""
    if tuple(map(type, values)) not in _TYPES:
        raise damage_error("an entry has a value of the wrong type")
    found = EntryRow(*values)
    if not 0 <= found.microseconds < _YEAR_9999:
        raise damage_error(f"entry {found.number} has an invalid date")
    known = found.kind == "opening" if found.number == 0 else found.kind in _LATER
    if not known or (found.kind in ("account", "standing", "step") and found.analyst == WHOLE):
        raise damage_error(f"entry {found.number} has an unknown kind")
    return found


def vectors(text: str) -> dict[str, Vector]:
    """The cost of an entry for each account, or the totals after it."""
    return dict(_vectors(text))


@lru_cache(maxsize=1024)
def _vectors(text: str) -> dict[str, Vector]:
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
HEAD = "SELECT number, chain, answers FROM head"
MOVED = "FROM head WHERE one = 1 AND number = ? AND chain = ? AND answers = ?"
_MOVE = "UPDATE head SET number = ?, chain = ?, answers = ? WHERE one = 1 AND number = ? AND chain = ? AND answers = ?"
_ADD_ENTRY = f"INSERT INTO entries ({', '.join(EntryRow._fields)}) SELECT {_MARKS} {MOVED}"
_ADD_ANSWER = f"INSERT INTO answers (number, data, digest, not_private) SELECT ?, ?, ?, ? {MOVED}"
_SINCE = f"SELECT {_COLUMNS} FROM entries WHERE number > ? ORDER BY number LIMIT ?"
_WITH_BEFORE = "LEFT JOIN entries AS before ON before.number = entries.number - 1"


def head(execute: Execute) -> Head:
    """The last entry."""
    return head_in(execute(HEAD))


def head_in(found: list[tuple[Any, ...]]) -> Head:
    """The last entry, from what `HEAD` found."""
    if len(found) != 1 or tuple(map(type, found[0])) != (int, str, int) or not 0 <= found[0][0] < 2**62:
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
        f"SELECT {_COLUMNS}, before.chain FROM entries {_WITH_BEFORE} WHERE entries.number = {which}", *parameters
    )
    return _chained(found[0][:-1], found[0][-1] or "") if found else None


def _chained(values: Sequence[Any], before: str) -> EntryRow:
    """A row, with its chain value checked against that of the previous entry."""
    entry = _row(values)
    if entry.chained_to(before) != entry.chain:
        raise damage_error(
            f"entry {entry.number}, or the one before it, was changed after it was written", code="ledger-entry-changed"
        )
    return entry


class Stored(NamedTuple):
    """An answer as it is stored."""

    data: Any
    digest: Any
    not_private: Any


_WITH_ANSWER = (
    f"SELECT {_COLUMNS}, before.chain, answers.number, answers.data, answers.digest, answers.not_private "
    f"FROM entries {_WITH_BEFORE} LEFT JOIN answers ON answers.number = entries.number WHERE entries.number = "
)


def with_answer(found: list[tuple[Any, ...]]) -> tuple[EntryRow, Stored | None] | None:
    """An entry and its answer, if it has one, from what `numbered` or `charged` found. None if there is no entry."""
    if not found:
        return None
    *values, before, answered, data, digest, not_private = found[0]
    return _chained(values, before or ""), None if answered is None else Stored(data, digest, not_private)


def numbered(number: int) -> Statement:
    """The statement that finds an entry and its answer, for `with_answer`."""
    return f"{_WITH_ANSWER}?", number


def charged(analyst: str, column: str, value: str) -> Statement:
    """The statement that finds the charge of this analyst with this `retry_key` or `identity`, for `with_answer`."""
    return f"{_WITH_ANSWER}(SELECT number FROM entries WHERE analyst = ? AND {column} = ?)", analyst, value


def since(number: int, most: int) -> Statement:
    """The statement that finds the entries after a number, for `followed`."""
    return _SINCE, number, most


def followed(last: EntryRow, at: Head, found: list[tuple[Any, ...]]) -> list[EntryRow] | None:
    """The entries after `last`, up to the head, each chained to the one before. None if `found` does not hold all, or
    they do not follow `last`.
    """
    if at.number == last.number:
        return [] if at.chain == last.chain else None
    found = [values for values in found if values[0] <= at.number]
    if not found or len(found) != at.number - last.number:
        return None
    rows = [_row(found[0])]
    if rows[0].chained_to(last.chain) != rows[0].chain:
        return None
    for values in found[1:]:
        rows.append(_chained(values, rows[-1].chain))
    if rows[-1][::13] != at[:2]:
        raise damage_error("its head does not match its last entry")
    return rows


def rows(execute: Execute, first: int, last: int) -> list[EntryRow]:
    """Entries by number, oldest first, as they are stored."""
    statement = f"SELECT {_COLUMNS} FROM entries WHERE number BETWEEN ? AND ? ORDER BY number"
    return [_row(values) for values in execute(statement, first, last)]


def terms(execute: Execute, analyst: str, at: int = 2**62) -> EntryRow | None:
    """The entry that set the current limit of an account, now or at an entry. None if the account did not exist."""
    newest = "(SELECT MAX(number) FROM entries WHERE analyst = ? AND kind <> 'charge' AND number <= ?)"
    return _one(execute, newest, analyst, at)


def all_terms(execute: Execute, analyst: str, at: int) -> list[EntryRow]:
    """The entries by the owner up to a number that concern an account, oldest first: each has its limit then."""
    numbers = execute(
        "SELECT number FROM entries WHERE analyst = ? AND kind <> 'charge' AND number <= ? ORDER BY number",
        *(analyst, at),
    )
    return [row(execute, number) for (number,) in numbers]


def spent_at(execute: Execute, analyst: str, at: int) -> Vector:
    """What an account had spent at an entry."""
    return row_at(execute, analyst, at).spent(analyst)


def row_at(execute: Execute, analyst: str, at: int) -> EntryRow:
    """The last entry up to a number that says what an account had spent."""
    newest = "(SELECT MAX(number) FROM entries WHERE analyst = ? AND number <= ?)"
    last = _one(execute, newest, analyst, at) if analyst else row(execute, at)
    if last is None:
        raise damage_error(f"the account of {analyst} is missing")
    return last


def last_rows(execute: Execute, at: Head, *analysts: str) -> dict[str, EntryRow]:
    """The newest entries of accounts, which say what they have spent."""
    last = last_row(execute, at)
    return {name: last if name in (WHOLE, last.analyst) else _newest(execute, name) for name in analysts}


def last_row(execute: Execute, at: Head) -> EntryRow:
    """The entry to which the head points."""
    last = row(execute, at.number)
    if last.chain != at.chain:
        raise damage_error("its head does not match its last entry")
    return last


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
    found = execute(
        "SELECT DISTINCT analyst FROM entries "
        "WHERE kind <> 'charge' AND kind <> 'standing' AND kind <> 'step' AND analyst <> ''"
    )
    return tuple(sorted(name for (name,) in found))


def entry_after(after: Head | None, facts: Mapping[str, Any]) -> EntryRow:
    """The entry that follows `after`, or the first one, with its chain value."""
    number, before = (0, "") if after is None else (after.number + 1, after.chain)
    costs, totals = _vectors_text(facts["costs"]), _vectors_text(facts["totals"])
    values = (
        number,
        *(facts["kind"], facts["analyst"], facts["asked"], facts.get("mechanism", ""), facts["content"]),
        *(costs, totals, facts.get("retry_key"), facts.get("identity"), facts.get("request")),
        *(__version__, time.time_ns() // 1000),
    )
    return EntryRow(*values, chain=_chain(before, values))


def begin(execute: Execute, first: EntryRow) -> None:
    """Write the first entry, and the head."""
    execute(f"INSERT INTO entries ({', '.join(EntryRow._fields)}) VALUES ({_MARKS})", *first)
    execute("INSERT INTO head (one, number, chain, answers) VALUES (1, ?, ?, 0)", first.number, first.chain)


def moving(before: Head, after: Head, rows: Sequence[EntryRow], answers: Mapping[int, Stored]) -> list[Statement]:
    """The statements that move the head and write what is new. Each changes one row, and none does if the head is not
    where it was read.
    """
    return [
        (_MOVE, *after, *before),
        *[(_ADD_ENTRY, *row, *after) for row in rows],
        *[(_ADD_ANSWER, number, *stored, *after) for number, stored in answers.items()],
    ]


def damage_error(what: str, *, code: str | None = None) -> LedgerDamaged:
    """An error for a ledger that cannot be trusted. It says what to do."""
    return LedgerDamaged(
        f"The ledger cannot be trusted: {what}. Nothing is released from it. "
        "Restore the newest undamaged copy, with its -wal and .checkpoint files. "
        "If there is none, see docs/ledger.md, “When a ledger is refused”.",
        code=code,
    )
