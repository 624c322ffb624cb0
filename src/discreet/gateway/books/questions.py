"""Which questions an account has asked, so that a stored answer can be asked for by its receipt. Answers are in the
ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.gateway.books.approvals import storable
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore
from discreet.ledger.texts.record import canonical

SEARCHED, SEARCHED_TEXT = 10_000, 10_000
"""A search looks at so many questions, and at so many characters of each."""
FREE = "free-"
"""How the receipt of an answer begins that earlier answers imply: it has no entry in the ledger."""
_COLUMNS = "number, receipt, sql, options, at, version, since, charged"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question that was answered: what was asked, with which options, and of which version of the data. The
    entries `paid` were charged for it; if none is named, those of its receipt after `since`. None if none was.
    """

    number: int
    receipt: str
    sql: str
    options: dict[str, Any]
    at: float
    version: str
    since: int | None
    paid: tuple[int, ...] = ()


def note_question(
    store: GatewayStore,
    account: str,
    receipt: str,
    sql: str,
    options: Mapping[str, Any],
    now: float,
    *,
    version: str = "",
    since: int | None = None,
    charged: Iterable[int] = (),
) -> None:
    """Remember what a receipt was for. Asked again, it is still one question."""
    with store.read() as execute:
        found = execute("SELECT since FROM questions WHERE account = ? AND receipt = ?", account, receipt)
        if found and (since is None or found[0][0] is not None):
            return
    with store.write() as execute:
        number = execute("SELECT COALESCE(MAX(number), 0) + 1 FROM questions WHERE account = ?", account)[0][0]
        execute(
            "INSERT INTO questions (account, number, receipt, sql, options, at, version, since, charged) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account, receipt) DO UPDATE SET "
            "charged = CASE WHEN questions.since IS NULL THEN excluded.charged ELSE questions.charged END, "
            "since = COALESCE(questions.since, excluded.since)",
            *(account, number, receipt, storable(sql), storable(canonical(dict(options))), microseconds(now)),
            *(version, since, " ".join(map(str, charged))),
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


def search(
    store: GatewayStore, account: str, find: str, last: int, first: int, most: int
) -> tuple[int, list[Question]]:
    """How many questions up to number `last` have a text in them, and `most` of these after the first ones, newest
    first. A search for a text looks at the beginnings of the newest ones only: nobody may keep others waiting with it.
    """
    where, given = "FROM questions WHERE account = ? AND number <= ?", [account, last]
    if find:
        text = f"LOWER(SUBSTR(sql, 1, {SEARCHED_TEXT}))"  # REPLACE takes signs as they are, and its time is short
        where += f" AND number > ? AND REPLACE({text}, ?, '') <> {text}"
        given += [min(last, count(store, account)) - SEARCHED, storable(find).lower()]
    with store.read() as execute:
        total = int(execute(f"SELECT COUNT(*) {where}", *given)[0][0])
        found = execute(f"SELECT {_COLUMNS} {where} ORDER BY number DESC LIMIT ? OFFSET ?", *given, most, first)
    return total, [_question(row) for row in found]


def picked(store: GatewayStore, account: str, numbers: Sequence[int]) -> list[tuple[str, float]]:
    """The receipts and times of the questions with these numbers, oldest first."""
    if not numbers:
        return []
    marks = ", ".join("?" for _ in numbers)
    statement = f"SELECT receipt, at FROM questions WHERE account = ? AND number IN ({marks}) ORDER BY number"
    with store.read() as execute:
        return [(receipt, at / 1e6) for receipt, at in execute(statement, account, *numbers)]


def entries_in(receipt: str) -> list[int]:
    """The numbers of the entries that a receipt names, such as 12 and 13 in "12-a0b1, 13-c2d3"."""
    return [int(part.partition("-")[0]) for part in receipt.split(", ") if part.partition("-")[0].isdecimal()]


def entries_of(question: Question) -> list[int]:
    """The numbers of the entries that were charged for a question, whoever they were charged to."""
    if question.since is None:
        return []
    named = (number for number in entries_in(question.receipt) if number > question.since)
    return list(question.paid or named)


def count(store: GatewayStore, account: str) -> int:
    """How many questions an account has asked."""
    with store.read() as execute:
        return int(execute("SELECT COALESCE(MAX(number), 0) FROM questions WHERE account = ?", account)[0][0])


def _question(row: tuple[Any, ...]) -> Question:
    number, receipt, sql, options, at, version, since, charged = row
    made = tuple(map(int, charged.split()))
    facts = {"number": number, "receipt": receipt, "sql": sql, "options": json.loads(options), "at": at / 1e6}
    return Question(**facts, version=version, since=since, paid=made)
