"""What the fuzzers found, each reduced: it was wrong once, and must not be again."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fuzz.ledger import Change
from fuzz.ledger import Ledger as Ledgers
from fuzz.oracle import CANARY, within, words_of
from fuzz.policy import SEEDS
from fuzz.policy import Policy as Policies
from fuzz.wire import Wire
from fuzz.wire_model import Request

from discreet.cli.shuffle_command import files_of
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import EngineFailed, InvalidArgument, LedgerDamaged, QueryError
from discreet.ledger.book import Row
from discreet.ledger.sqlite import SqliteStore
from discreet.shuffle.simulation import Model, Simulation
from discreet.sql.reading.parse import parsed

from ..refusing import refuses

# --- questions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("join", [" JOIN visits", " LEFT JOIN visits", " JOIN (SELECT DISTINCT ON (a) b FROM c)"])
def test_many_joins_without_a_condition_do_not_keep_the_parser_busy_for_days(join: str) -> None:
    with within(5), refuses(QueryError, "sql-too-complex"):
        parsed("SELECT COUNT(*) FROM visits" + join * 40)


def test_many_joins_with_conditions_are_read() -> None:
    nested = " JOIN cities USING (city) JOIN (SELECT a FROM b JOIN c ON b.a = c.a) AS q ON q.a = visits.a"
    _, query = parsed("SELECT COUNT(*) FROM visits" + nested * 20)
    assert len(query.args["joins"]) == 40


# --- engines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [DuckDB.rows, DuckDB.table])
def test_nothing_hangs_on_the_error_of_an_engine(ask: Any) -> None:
    """The engine's own error, which quotes the value, was its `__context__`."""
    engine = DuckDB({"t": pa.table({"note": [CANARY]})})
    with pytest.raises(EngineFailed) as failed:
        ask(engine, f"SELECT CAST(note AS INTEGER) FROM {engine.relations['t']}")
    assert failed.value.__context__ is None
    assert CANARY not in words_of(failed.value)
    engine.close()


# --- policies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"clinic.ledger"', r'"a\u0000b"'),
        ('"clinic.ledger"', '"~who/x"'),
        ('"visits.parquet"', r'"a\u0000b"'),
        ('"visits.parquet"', '"~who/x"'),
        ('"visits.parquet"', f'"{"a" * 5000}"'),
        ('kind = "duckdb"', 'kind = ["duckdb"]'),
        ('kind = "duckdb"', "kind = {}"),
        ('kind = "duckdb"', r'spill = "a\u0000b"'),
        ("[0, 5000]", "[" * 5000 + "]" * 5000),
        ("[ledger]", "\udcff[ledger]"),
    ],
)
def test_a_policy_is_refused_in_words_for_people(old: str, new: str, tmp_path: Path) -> None:
    policies = Policies(tmp_path)
    assert old in SEEDS[0]
    said = policies.check(SEEDS[0].replace(old, new).encode("utf-8", "surrogateescape"))
    assert said.startswith(("InvalidArgument", "read:"))  # read, where the home of nobody is another folder
    policies.close()


@pytest.mark.parametrize("source", ["a\0b", "~who/x.parquet", "a" * 5000, ""])
def test_a_source_that_cannot_be_a_file_is_said_to_be_none(source: str) -> None:
    with pytest.raises(InvalidArgument, match="The source of t is not there"):
        DuckDB({"t": source})


# --- ledgers ------------------------------------------------------------------------------------------------


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
    assert "it holds text that is not Unicode" in ledgers.check(Change(data=changed))


@pytest.mark.parametrize("kind", ["opening", "0", "account"])
def test_an_entry_of_no_kind_cannot_begin_anew(kind: str, tmp_path: Path) -> None:
    """A copy of the opening behind the last entry, rightly chained, set all that was spent to 0."""
    columns = ", ".join(Row._fields)
    copied = columns.replace("number", "8", 1).replace("kind", f"'{kind}'", 1)
    again = f"INSERT INTO entries ({columns}) SELECT {copied} FROM entries WHERE number = 0"
    said = Ledgers(tmp_path).check(Change(statements=(again,), forged="checkpoint"))
    assert "is of a kind that is not written there" in said


def test_an_answer_of_another_type_is_called_damaged(tmp_path: Path) -> None:
    ledgers = Ledgers(tmp_path)
    for value in ("9e999", "'text'", "1000000000000"):
        said = ledgers.check(Change(statements=(f"UPDATE answers SET data = {value}",)))
        assert "LedgerDamaged: The ledger cannot be trusted: the answer of entry" in said


def test_a_count_that_cannot_grow_is_called_damaged(tmp_path: Path) -> None:
    said = Ledgers(tmp_path).check(Change(statements=("UPDATE head SET answers = 9223372036854775807",)))
    assert "it holds a number beyond all counts" in said


def test_totals_of_another_rule_are_called_damaged(tmp_path: Path) -> None:
    ledgers = Ledgers(tmp_path)
    for totals in ('{"":[0]}', '{"":[0,0,0,0,0,0,0]}'):
        change = Change(statements=(f"UPDATE entries SET totals = '{totals}'",), forged="checkpoint")
        assert "what was spent is not counted as its rule says" in ledgers.check(change)


def test_a_walk_ends_at_an_entry_that_is_missing(tmp_path: Path) -> None:
    """The last entry had a number of a quadrillion, and all before it were looked for."""
    far = "UPDATE entries SET number = microseconds WHERE number = 1"
    said = Ledgers(tmp_path).check(Change(statements=(far,), forged="checkpoint"))
    assert "LedgerDamaged: The ledger cannot be trusted: entry · is missing" in said


@pytest.mark.parametrize("content", ["null", "4", '{"a": 1}', "[1, 2, 3]", '["a", "b", "c", "d", "e"]'])
def test_a_checkpoint_that_says_nothing_known_is_none(content: str, tmp_path: Path) -> None:
    slot = f"{content} {hashlib.sha256(content.encode()).hexdigest()[:16]}\n".encode().ljust(512)
    assert "it has no checkpoint beside it" in Ledgers(tmp_path).check(Change(checkpoint=slot))


# --- polls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_folder_is_no_task(path: str) -> None:
    with pytest.raises(InvalidArgument, match="Name a file for the task"):
        files_of(Path(path))


# --- pictures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chart.toml", "missing/chart.png"])
def test_a_simulation_that_cannot_be_drawn_says_so(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = Simulation("bits", 10, 1.0, 1e-6, 2, (Model("local", 1, 1.0, 1.0, 1.0),))
    with pytest.raises(InvalidArgument, match="cannot be a picture"):
        done.plot(str(tmp_path / name))


# --- the wire -----------------------------------------------------------------------------------------------


def test_a_client_that_goes_away_and_a_path_that_ends_otherwise_are_refused_plainly(tmp_path: Path) -> None:
    """The first was an exception of the server, the second a redirection to a host of the sender's choice."""
    services = Wire(tmp_path)
    for path in ("/v1/report", "/v1/reports", "/v1/close"):
        gone = Request("shuffler", "POST", path, body=b"x" * 10, goes_away=True)
        assert services.check([gone]) == f"{path} 400, collecting, 0, False"
    elsewhere = Request("shuffler", "POST", "/v1/report/", ((b"host", b"elsewhere"),))
    assert services.check([elsewhere]) == "/v1/report/ 404, collecting, 0, False"
    services.close()
