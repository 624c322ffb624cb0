"""A ledger's file with values that were never written is called damaged, whoever wrote them."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from discreet.errors import LedgerDamaged
from discreet.ledger.book import EntryRow
from discreet.ledger.stores.sqlite import SqliteStore
from fuzz.ledger import Change
from fuzz.ledger import Ledger as Ledgers


@pytest.mark.some_quick(5)
@pytest.mark.parametrize(
    "change",
    [
        Change(statements=("UPDATE head SET number = x''",)),
        Change(statements=("UPDATE head SET number = 9223372036854775807",)),
        Change(statements=("UPDATE head SET answers = 'x'",)),
        Change(statements=("UPDATE entries SET asked = x'00' WHERE number = 3",)),
        Change(statements=("UPDATE entries SET asked = CAST(x'ff' AS TEXT) WHERE number = 3",)),
        Change(statements=("UPDATE entries SET microseconds = 9e999",)),
        Change(statements=("UPDATE entries SET content = 1",), forged="chain"),
        Change(statements=("UPDATE entries SET content = '5'",), forged="checkpoint"),
        Change(statements=("UPDATE entries SET totals = '[]'",), forged="checkpoint"),
        Change(statements=("UPDATE entries SET totals = '{\"\":[1e400]}'",), forged="checkpoint"),
        Change(statements=("UPDATE entries SET kind = 'charge'",), forged="checkpoint"),
        Change(statements=("UPDATE entries SET microseconds = 9223372036854775807",), forged="checkpoint"),
        Change(statements=("UPDATE entries SET analyst = 'x' WHERE number = 0",), forged="checkpoint"),
        Change(statements=("UPDATE parts SET number = 2",)),
        Change(statements=("DELETE FROM parts WHERE account = 'alice'",)),
        Change(statements=("DROP TABLE parts",)),
        Change(statements=("ALTER TABLE entries RENAME COLUMN totals TO other",)),
    ],
    ids=lambda change: "; ".join(change.statements),
)
def test_a_ledger_with_values_that_were_never_written_is_called_damaged(change: Change, tmp_path: Path) -> None:
    said = Ledgers(tmp_path).check(change)
    assert "LedgerDamaged" in said
    assert "LedgerUnavailable" not in said


def test_a_file_that_ends_too_early_is_called_damaged(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHORT_READ  # type: ignore[misc]
    assert isinstance(SqliteStore(str(tmp_path / "l"))._explained(error), LedgerDamaged)


def test_a_file_whose_names_are_no_text_is_called_damaged(tmp_path: Path) -> None:
    """SQLite's error quotes the name, and Python's decoding of that was the error that came."""
    ledgers = Ledgers(tmp_path)
    changed = ledgers.whole.replace(b"tableentries", b"table\xff\xfetries")
    assert changed != ledgers.whole
    assert ledgers.check(Change(data=changed)).startswith("refused: LedgerDamaged (ledger-damaged)")


@pytest.mark.parametrize("kind", ["opening", "0", "account"])
def test_an_entry_of_no_kind_cannot_begin_anew(kind: str, tmp_path: Path) -> None:
    """A copy of the opening behind the last entry, rightly chained, set all that was spent to 0."""
    columns = ", ".join(EntryRow._fields)
    copied = columns.replace("number", "11", 1).replace("kind", f"'{kind}'", 1)
    again = f"INSERT INTO entries ({columns}) SELECT {copied} FROM entries WHERE number = 0"
    said = Ledgers(tmp_path).check(Change(statements=(again,), forged="checkpoint"))
    assert said.startswith("refused: LedgerDamaged (ledger-damaged)")


def test_an_answer_of_another_type_is_called_damaged(tmp_path: Path) -> None:
    ledgers = Ledgers(tmp_path)
    for value in ("9e999", "'text'", "1000000000000"):
        said = ledgers.check(Change(statements=(f"UPDATE answers SET data = {value}",)))
        assert "LedgerDamaged (ledger-answer-changed)" in said


def test_a_count_that_cannot_grow_is_called_damaged(tmp_path: Path) -> None:
    said = Ledgers(tmp_path).check(Change(statements=("UPDATE head SET answers = 9223372036854775807",)))
    assert said.count("LedgerDamaged (ledger-damaged)") == 2


def test_totals_of_another_rule_are_called_damaged(tmp_path: Path) -> None:
    ledgers = Ledgers(tmp_path)
    for totals in ('{"":[0]}', '{"":[0,0,0,0,0,0,0]}'):
        change = Change(statements=(f"UPDATE entries SET totals = '{totals}'",), forged="checkpoint")
        assert ledgers.check(change).count("LedgerDamaged (ledger-totals-wrong)") == 3


def test_a_walk_ends_at_an_entry_that_is_missing(tmp_path: Path) -> None:
    """The last entry had a number of a quadrillion, and all before it were looked for."""
    far = "UPDATE entries SET number = microseconds WHERE number = 1"
    said = Ledgers(tmp_path).check(Change(statements=(far,), forged="checkpoint"))
    assert "LedgerDamaged (ledger-damaged)" in said


@pytest.mark.parametrize("content", ["null", "4", '{"a": 1}', "[1, 2, 3]", '["a", "b", "c", "d", "e"]'])
def test_a_checkpoint_that_says_nothing_known_is_none(content: str, tmp_path: Path) -> None:
    slot = f"{content} {hashlib.sha256(content.encode()).hexdigest()[:16]}\n".encode().ljust(512)
    assert "LedgerDamaged (ledger-old-copy)" in Ledgers(tmp_path).check(Change(checkpoint=slot))
