"""What a ledger refuses that was damaged, moved or kept where it cannot be: the words, one by one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, LedgerUnavailable
from discreet.ledger import answers, book, opening, record, request, sqlite, verification
from discreet.ledger.book import Head, Row
from discreet.ledger.checkpoint import Seen
from discreet.ledger.sqlite import SqliteStore

LIMIT = dp.Pure(epsilon=1)
RULE = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT).rule
CONTENT = f'{{"rule":{record.written(RULE)}}}'
ENTRY = Row(
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


def refused(asked: Callable[[], Any], said: str, kind: type[DiscreetError] = LedgerDamaged) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


def nothing(statement: str, *values: Any) -> list[Any]:
    """A database without rows."""
    return []


def another_head(statement: str, *values: Any) -> list[Any]:
    """A database in which somebody else was quicker."""
    return [(9, "theirs", 0)] if statement.startswith("SELECT") else []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: ENTRY.spent("alice"), "entry 3 has no total of the account it should have"),
        (lambda: book._row(ENTRY._replace(number="3")), "an entry holds values of other types than were written"),
        (lambda: book._row(ENTRY._replace(microseconds=-1)), "entry 3 was written at no time that a calendar has"),
        (lambda: book._row(ENTRY._replace(kind="gift")), "entry 3 is of a kind that is not written there"),
        (lambda: book.vectors('{"": ["one"]}'), "an entry holds costs or totals that are no numbers"),
        (lambda: book.part_of("{"), "an entry holds text that was never written so"),
        (lambda: book._newest(nothing, "alice"), "the account of alice is missing"),
        (lambda: record.read("{"), "An entry holds what was never written so"),
        (lambda: record.read_unit(record.written(LIMIT)), "An entry holds no Unit where one was written"),
        (lambda: opening.check_seen(nothing, Head(1, "c", 0), Seen("one", 1, "c", 0, 0), "other"), "another ledger"),
        (lambda: verification._check_decree(ENTRY._replace(kind="limit"), {}, {}), "speaks of an account that was not"),
    ],
)
def test_an_entry_that_was_never_written_so(asked: Callable[[], Any], said: str) -> None:
    refused(asked, said)


def test_a_head_that_is_not_the_last_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "row", lambda execute, number: ENTRY)
    refused(lambda: book.spent(nothing, "", Head(3, "another", 0)), "its head is not the chain of its last entry")


def test_an_entry_beyond_its_limit() -> None:
    charged = ENTRY._replace(content=record.written(dp.Pure(epsilon=2)))
    account = verification.Account(CONTENT, RULE.nothing)
    cost = account.cost(charged.content)
    text = record.canonical({"": list(cost)})
    refused(
        lambda: verification._check_totals(charged._replace(costs=text, totals=text), {"": account}),
        "entry 3 passes the limit of",
    )


def test_an_account_without_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    ledger = dp.Ledger.open(path, protects=dp.row(), limit=LIMIT)
    monkeypatch.setattr(book, "terms", lambda *_: None)
    refused(lambda: ledger.remaining, "an account has no entry that says what may be spent")
    refused(lambda: dp.Ledger.open(path), "it has no entry that says what may be spent")


def test_other_terms_than_it_was_opened_with(tmp_path: Path) -> None:
    path = tmp_path / "clinic.ledger"
    dp.Ledger.open(path, protects=dp.row(), limit=LIMIT).close()
    other = dp.Pure(epsilon=2)
    refused(lambda: dp.Ledger.open(path, limit=other), "Open it with its own limit or with none", InvalidArgument)
    refused(lambda: dp.Ledger.open(path, rule="best"), "keeps to the rule 'basic' it was opened with", InvalidArgument)


def test_another_process_was_quicker() -> None:
    facts = {"kind": "charge", "analyst": "", "asked": "", "content": "", "costs": {}, "totals": {}}
    refused(lambda: book.append(another_head, Head(3, "c", 0), facts), "wrote to the ledger first", LedgerUnavailable)


def test_an_entry_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=LIMIT)
    dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
    monkeypatch.setattr(answers, "check_entry", lambda *_: None)
    refused(lambda: answers.kept(nothing, ledger.entries()[0]), "has no answer. Choose one", InvalidArgument)


def test_places_that_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "file" / "clinic.ledger"
    inside.parent.write_text("no folder", "utf-8")
    refused(lambda: SqliteStore(str(inside), None).exists(), "Make it readable, or name another", InvalidArgument)
    refused(lambda: SqliteStore(str(inside), None).file_number(), "Put it back; what was", LedgerUnavailable)
    refused(lambda: request.version_of(inside), "Make it readable", InvalidArgument)
    refused(lambda: SqliteStore("clinic\0.ledger", None), "A path has no zero character in it", InvalidArgument)
    without_log = sqlite3.connect(":memory:")
    refused(lambda: sqlite.log_ahead(without_log), "no write-ahead log for SQLite (journal mode", LedgerUnavailable)
    pytest.importorskip("psycopg", reason='needs pip install "discreet[postgres]"')
    from discreet.ledger.postgres import PostgresStore

    monkeypatch.setenv("XDG_STATE_HOME", str(inside))
    store = PostgresStore("postgresql://host/database", None)
    refused(lambda: store.checkpoint_of("x"), "Name a file for it: Ledger.open(…, checkpoint=", InvalidArgument)
