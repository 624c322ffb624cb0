"""Which questions an account has asked, so that a stored answer can be asked for by its receipt. Answers are in the
ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.gateway.approvals import storable
from discreet.gateway.audit import microseconds
from discreet.gateway.store import GatewayStore
from discreet.ledger.record import canonical

_COLUMNS = "number, receipt, sql, options, at"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that was answered: what was asked, and with which options."""

    number: int
    receipt: str
    sql: str
    options: dict[str, Any]
    at: float


def note_question(
    store: GatewayStore, account: str, receipt: str, sql: str, options: Mapping[str, Any], now: float
) -> None:
    """Remember what a receipt was for. Asked again, it is still one question."""
    with store.read() as execute:
        if execute("SELECT 1 FROM questions WHERE account = ? AND receipt = ?", account, receipt):
            return
    with store.write() as execute:
        number = execute("SELECT COALESCE(MAX(number), 0) + 1 FROM questions WHERE account = ?", account)[0][0]
        execute(
            "INSERT INTO questions (account, number, receipt, sql, options, at) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (account, receipt) DO NOTHING",
            *(account, number, receipt, storable(sql), storable(canonical(dict(options))), microseconds(now)),
        )


def find_question(store: GatewayStore, account: str, receipt: Any) -> Question | None:
    """The question of this account with this receipt. None if it has none, whoever else may have it."""
    if not isinstance(receipt, str) or "\0" in receipt:
        return None
    with store.read() as execute:
        found = execute(f"SELECT {_COLUMNS} FROM questions WHERE account = ? AND receipt = ?", account, receipt)
    return _question(found[0]) if found else None


def history(store: GatewayStore, account: str, first: int = 1, last: int | None = None) -> list[Question]:
    """The questions of an account, numbered from 1, oldest first."""
    with store.read() as execute:
        found = execute(
            f"SELECT {_COLUMNS} FROM questions WHERE account = ? AND number BETWEEN ? AND ? ORDER BY number",
            *(account, first, 2**62 if last is None else last),
        )
    return [_question(row) for row in found]


def count(store: GatewayStore, account: str) -> int:
    """How many questions an account has asked."""
    with store.read() as execute:
        return int(execute("SELECT COALESCE(MAX(number), 0) FROM questions WHERE account = ?", account)[0][0])


def _question(row: tuple[Any, ...]) -> Question:
    number, receipt, sql, options, at = row
    return Question(number=number, receipt=receipt, sql=sql, options=json.loads(options), at=at / 1e6)
