"""What happened at the gateway, in lines that are chained by their hashes: who did what, and when.

Lines hold logins, tokens made and revoked, texts of questions, refusals, approvals, limits and versions of the policy.
They never hold an answer, a duration or a secret. A changed, missing or reordered line is found by `verify`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from discreet.errors import LedgerDamaged
from discreet.gateway.books.store import GatewayStore
from discreet.ledger.stores.store import Execute
from discreet.ledger.texts.record import canonical

_COLUMNS = "number, at, who, what, details, chain"
_BATCH = 1000


class Line(NamedTuple):
    """One line. `at` is in microseconds, and `details` is a JSON object."""

    number: int
    at: int
    who: str
    what: str
    details: str
    chain: str

    @property
    def content(self) -> dict[str, Any]:
        """The details as values."""
        return dict(json.loads(self.details))

    def chained_to(self, before: str) -> str:
        """The chain value that this line must have."""
        return hashlib.sha256(f"{before}\n{canonical(list(self[:-1]))}".encode()).hexdigest()


def append(execute: Execute, now: float, who: str, what: str, details: Mapping[str, Any] | None = None) -> Line:
    """Append a line, inside a transaction of the store."""
    last, before = _head(execute)
    number = last + 1
    said = canonical(dict(details or {})).encode("utf-8", "replace").decode()
    line = Line(number, microseconds(now), who, what, said, "")
    line = line._replace(chain=line.chained_to(before))
    execute(f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", *line)
    execute(
        "UPDATE meta SET value = CASE name WHEN 'audit_number' THEN ? ELSE ? END "
        "WHERE name IN ('audit_number', 'audit_chain')",
        *(str(number), line.chain),
    )
    return line


def record(store: GatewayStore, now: float, who: str, what: str, **details: Any) -> None:
    """Append a line of its own."""
    with store.write() as execute:
        append(execute, now, who, what, details)


def lines(store: GatewayStore, first: int = 1, last: int | None = None) -> list[Line]:
    """Lines by number, oldest first."""
    with store.read() as execute:
        found = execute(
            f"SELECT {_COLUMNS} FROM audit WHERE number BETWEEN ? AND ? ORDER BY number",
            first,
            2**62 if last is None else last,
        )
    return [Line(*row) for row in found]


def count(store: GatewayStore) -> int:
    """How many lines there are."""
    with store.read() as execute:
        return int(execute("SELECT value FROM meta WHERE name = 'audit_number'")[0][0])


def search(store: GatewayStore, who: str | None, what: str | None, *, before: int, after: int, most: int) -> list[Line]:
    """Lines between two numbers, newest first: those of one account, and those whose `what` begins like this."""
    where, parameters = "number < ? AND number > ?", list[Any]([before, after])
    if who:
        where, parameters = f"{where} AND LOWER(who) = ?", [*parameters, who.lower()]
    if what:
        where, parameters = f"{where} AND SUBSTR(what, 1, ?) = ?", [*parameters, len(what), what]
    with store.read() as execute:
        found = execute(f"SELECT {_COLUMNS} FROM audit WHERE {where} ORDER BY number DESC LIMIT {most}", *parameters)
    return [Line(*row) for row in found]


def verify(store: GatewayStore) -> int:
    """Check every line against the line before it, and the last one against the head. Returns their number.

    Lines are read in batches, between which others may read and write.
    """
    number, chain = 0, ""
    while True:
        with store.read() as execute:
            batch = execute(f"SELECT {_COLUMNS} FROM audit WHERE number > ? ORDER BY number LIMIT {_BATCH}", number)
            head = _head(execute)
        for row in batch:
            line = Line(*row)
            if line.number != number + 1 or line.chained_to(chain) != line.chain:
                raise _damaged(f"line {number + 1} was changed or removed after it was written")
            number, chain = line.number, line.chain
        if len(batch) < _BATCH:
            break
    if (number, chain) != head:
        raise _damaged(f"its last lines are missing, after line {number}")
    return number


def _head(execute: Execute) -> tuple[int, str]:
    """The number and the chain value of the last line."""
    found: dict[str, str] = dict(execute("SELECT name, value FROM meta WHERE name IN ('audit_number', 'audit_chain')"))
    return int(found["audit_number"]), found["audit_chain"]


def _damaged(what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"The audit of the gateway cannot be trusted: {what}. Compare it with the newest backup, and find out who "
        "could write to the database.",
        code="gateway-audit-changed",
    )


def microseconds(now: float) -> int:
    """A time in seconds as it is stored."""
    return round(now * 1_000_000)
