"""What a ledger refuses that was damaged, moved or kept where it cannot be: the words, one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, LedgerUnavailable
from discreet.ledger import answers, book, opening, verification
from discreet.ledger.book import EntryRow, Head
from discreet.ledger.stores import sqlite
from discreet.ledger.stores.checkpoint import Seen
from discreet.ledger.stores.sqlite import SqliteStore
from discreet.ledger.texts import record, request

from ..refusing import refuses

LIMIT = dp.Pure(epsilon=1)
RULE = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT).rule
CONTENT = f'{{"rule":{record.to_text(RULE)}}}'
ENTRY = EntryRow(
    number=3,
    kind="charge",
    analyst="",
    asked="a count",
    mechanism="",
    content=CONTENT,
    costs="{}",
    totals="{}",
    retry_key=None,
    identity=None,
    request=None,
    code_version="0",
    microseconds=0,
    chain="c",
)


STATE = verification._State(dp.row())


def refused(asked: Callable[[], Any], code: str, kind: type[DiscreetError] = LedgerDamaged) -> None:
    with refuses(kind, code):
        asked()


def nothing(statement: str, *values: Any) -> list[Any]:
    """A database without rows."""
    return []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: ENTRY.spent("alice"), "ledger-totals-wrong"),
        (lambda: book._row(ENTRY._replace(number="3")), "ledger-damaged"),
        (lambda: book._row(ENTRY._replace(microseconds=-1)), "ledger-damaged"),
        (lambda: book._row(ENTRY._replace(kind="gift")), "ledger-damaged"),
        (lambda: book.vectors('{"": ["one"]}'), "ledger-damaged"),
        (lambda: book.part_of("{"), "ledger-damaged"),
        (lambda: book._newest(nothing, "alice"), "ledger-damaged"),
        (lambda: record.from_text("{"), "ledger-damaged"),
        (lambda: record.read_unit(record.to_text(LIMIT)), "ledger-damaged"),
        (lambda: opening.check_seen(nothing, Head(1, "c", 0), Seen("one", 1, "c", 0, 0), "other"), "ledger-damaged"),
        (lambda: verification._check_decree(ENTRY._replace(kind="limit"), STATE, ()), "ledger-totals-wrong"),
    ],
)
def test_an_entry_that_was_never_written_so(asked: Callable[[], Any], code: str) -> None:
    refused(asked, code)


def test_a_head_that_is_not_the_last_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "row", lambda execute, number: ENTRY)
    refused(lambda: book.last_rows(nothing, Head(3, "another", 0), ""), "ledger-damaged")


def test_an_entry_beyond_its_limit() -> None:
    charged = ENTRY._replace(content=record.to_text(dp.Pure(epsilon=2)))
    account = verification.Account(CONTENT, RULE.nothing)
    cost = account.cost(charged.content)
    text = record.canonical({"": list(cost)})
    state = verification._State(dp.row())
    state.accounts[""] = account
    refused(lambda: verification._check_totals(charged._replace(costs=text, totals=text), state), "ledger-totals-wrong")


def test_an_account_without_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    ledger = dp.Ledger.open(path, protects=dp.row(), limit=LIMIT)
    monkeypatch.setattr(book, "terms", lambda *_: None)
    refused(lambda: ledger.remaining, "ledger-damaged")
    refused(lambda: dp.Ledger.open(path), "ledger-damaged")


def test_other_terms_than_it_was_opened_with(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    dp.Ledger.open(path, protects=dp.row(), limit=LIMIT).close()
    other = dp.Pure(epsilon=2)
    refused(lambda: dp.Ledger.open(path, limit=other), "ledger-other-terms", InvalidArgument)
    refused(lambda: dp.Ledger.open(path, rule="best"), "ledger-other-terms", InvalidArgument)


def test_another_process_was_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT)
    moving = book.moving
    monkeypatch.setattr(book, "moving", lambda before, *new: moving(before._replace(chain="theirs"), *new))
    refused(lambda: ledger.charge(dp.Pure(epsilon=0.1), asked="a count"), "ledger-busy", LedgerUnavailable)
    monkeypatch.undo()
    assert ledger.verify() == 1


def test_an_entry_without_an_answer() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT)
    dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
    refused(lambda: answers.read_stored(None, ledger.entries()[0]), "ledger-no-answer", InvalidArgument)
    refused(lambda: answers.find_stored([], ledger.entries()[0]), "ledger-damaged")


def test_places_that_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "file" / "clinic.ledger"
    inside.parent.write_text("no folder", "utf-8")
    refused(lambda: SqliteStore(str(inside), None).exists(), "file-not-readable", InvalidArgument)
    refused(lambda: SqliteStore(str(inside), None).file_number(), "ledger-unavailable", LedgerUnavailable)
    refused(lambda: request.version_of(inside), "file-not-readable", InvalidArgument)
    refused(lambda: SqliteStore("clinic\0.ledger", None), "ledger-place", InvalidArgument)
    with closing(sqlite3.connect(":memory:")) as without_log:
        refused(lambda: sqlite.log_ahead(without_log), "ledger-file-system", LedgerUnavailable)
    pytest.importorskip("psycopg", reason='needs pip install "discreet[postgres]"')
    from discreet.ledger.stores.postgres import PostgresStore

    monkeypatch.setenv("XDG_STATE_HOME", str(inside))
    store = PostgresStore("postgresql://host/database", None)
    refused(lambda: store.checkpoint_of("x"), "file-not-writable", InvalidArgument)
