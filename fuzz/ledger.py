"""Ledger files that were changed: bytes of the file, of its log or of its checkpoint, or rows by SQL.

Whatever was done, every call ends with an error of ours or says what the sound ledger says. Never is less spent, more
left or the limit another; a record that verifies is the sound one. Someone who also works out the chain of hashes anew
is found out by the checkpoint. Who forges that, too, may write any history: there only errors of ours are asked for.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st

import discreet as dp
from discreet.exact.rational import exactly
from discreet.ledger.book import EntryRow
from discreet.ledger.ledger import Ledger as Book
from discreet.ledger.stores import store
from discreet.ledger.stores.checkpoint import Checkpoint
from fuzz.changes import byte_changes, picked
from fuzz.oracle import Broken, attempt, label, within

SECONDS = 10
TENTH = dp.Laplace(scale=10)
LIMIT = dp.Approx(epsilon=2, delta=1e-6)
PROTECTS = dp.row(per="month")
PARTS = ("2024-01", "2024-02", "2024-03")
"""Parts with budgets of their own. The last one is never charged."""
COLUMNS = {
    "entries": EntryRow._fields,
    "head": ("one", "number", "chain", "answers"),
    "answers": ("number", "data", "digest", "not_private"),
    "parts": ("account", "part", "number", "digest"),
}
_VALUES = """
0 | 1 | -1 | 2 | 3 | 7 | 8 | 100 | 9223372036854775807 | -9223372036854775808 | 9e999 | -9e999 | 1.5 | NULL | '' | 'x' |
x'' | x'00ff' | CAST(x'ff' AS TEXT) | CAST(x'00' AS TEXT) | zeroblob(100) | 'charge' | 'opening' | 'limit' | 'renewal' |
'2024-01' | '2024-03' |
'account' | 'adoption' | 'alice' | 'bob' | '{}' | '[]' | '5' | 'null' | '{"":[0]}' | '{"":[0,0]}' | '{"":null}' |
'{"":[-1,-1]}' | '{"":"x"}' | '{"":[1e400]}' | '{"rule":{}}' | '{"is":"Pure"}' | '{"is":"Unit"}' |
'{"is":"Pure","epsilon":{"ratio":"1/0"}}'
"""
VALUES = tuple(value.strip() for value in _VALUES.split("|"))
Forged = Literal["nothing", "chain", "checkpoint"]


@dataclass(frozen=True)
class Change:
    """What is done to a sound ledger: other bytes for its files, or statements and what is forged after them."""

    data: bytes | None = None
    log: bytes | None = None
    checkpoint: bytes | None = None
    statements: tuple[str, ...] = ()
    forged: Forged = "nothing"


class Ledger:
    """A ledger with charges of an owner and of an analyst, on everything and on parts: put back, and changed again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._at(folder)
        with closing(Book.open(self.path, protects=PROTECTS, limit=LIMIT)) as ledger:
            alice = ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))
            january, hers = ledger._within(PARTS[0]), alice._within(*PARTS[:2])
            for number, one in enumerate((ledger, alice, ledger, january, hers, alice, january)):
                dp.release(5, TENTH, sensitivity=1, ledger=one, key=f"key {number}")
            self.half = self.path.read_bytes(), self.log.read_bytes()  # the newest entries are in the log only
            dp.release([1, 2, 3], TENTH, sensitivity=1, ledger=ledger)
            ledger.raise_limit(dp.Approx(epsilon=3, delta=1e-6), why="the board agreed")
            self.logged = self.path.read_bytes(), self.log.read_bytes()
        self.whole, self.checkpoint = self.path.read_bytes(), self.seen.read_bytes()
        noted = Checkpoint(self.seen).read()
        assert noted is not None
        self.noted = noted
        with closing(Book.open(self.path)) as ledger:
            self.sound = _told(ledger)
            self.entries = ledger.entries()
        self.seeds: list[Change] = [Change(), Change(data=self.logged[0], log=self.logged[1])]
        self.seeds += [Change(data=self.half[0], log=self.half[1]), Change(data=b""), Change(checkpoint=b"")]

    def _at(self, folder: Path) -> None:
        self.path = folder / "clinic.ledger"
        self.log, self.seen = (folder / f"clinic.ledger{end}" for end in ("-wal", ".checkpoint"))

    def inputs(self) -> st.SearchStrategy[Change]:
        """Changes of bytes and of rows."""
        data, log = byte_changes(picked((self.whole,))), byte_changes(picked((self.logged[1], self.half[1])))
        forged = st.sampled_from(("nothing", "nothing", "chain", "checkpoint"))
        return st.one_of(
            st.builds(Change, data=data),
            st.builds(Change, data=st.just(self.logged[0]), log=log),
            st.builds(Change, checkpoint=byte_changes(picked((self.checkpoint,)))),
            st.builds(Change, checkpoint=_forged_checkpoints()),
            *[st.builds(Change, statements=st.lists(_statements(), min_size=1, max_size=3).map(tuple), forged=forged)]
            * 4,
            picked(self.seeds),
        )

    def check(self, one: Change) -> str:
        """Put a sound ledger there, change it, and use it in every way.

        Each is a file of its own: SQLite remembers files that somebody has open.
        """
        others = set(store._stores)  # of whoever runs this
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            self._at(Path(folder))
            self._put_back(one)
            try:
                with within(SECONDS):
                    return self._opened(trusted=one.forged != "checkpoint")
            finally:
                for left_open in set(store._stores) - others:
                    left_open.close()

    def _opened(self, *, trusted: bool) -> str:
        ledger, error = attempt(lambda: Book.open(self.path))
        if ledger is not None:
            return self._used(ledger, trusted=trusted)
        again, _ = attempt(lambda: Book.open(self.path, protects=PROTECTS, limit=self.sound["limit"]))
        if again is not None:
            raise Broken("refused when found, and opened when its terms are given", error)
        return f"refused: {label(error)}"

    def _put_back(self, one: Change) -> None:
        """The sound files, with a checkpoint for this very file, then the change."""
        self.path.write_bytes(self.whole if one.data is None else one.data)
        checkpoint = _slot(self.noted._replace(file=self.path.stat().st_ino))
        self.seen.write_bytes(checkpoint if one.checkpoint is None else one.checkpoint)
        if one.log is not None:
            self.log.write_bytes(one.log)
        if one.statements:
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                for statement in one.statements:
                    with suppress(sqlite3.Error):
                        connection.execute(statement)
                if one.forged != "nothing":
                    self._forge(connection, checkpoint=one.forged == "checkpoint")

    def _forge(self, connection: sqlite3.Connection, *, checkpoint: bool) -> None:
        """Work out the chain of hashes anew, where rows still have the types for it."""
        with suppress(sqlite3.Error, TypeError, ValueError):
            before = number = None
            last = 2**62 if checkpoint else self.noted.number  # a right entry more is what an owner may write
            for values in connection.execute(
                f"SELECT {', '.join(EntryRow._fields)} FROM entries WHERE number <= {last} ORDER BY number"
            ).fetchall():
                row = EntryRow(*values)
                before, number = row.chained_to(before or ""), row.number
                connection.execute("UPDATE entries SET chain = ? WHERE number = ?", (before, number))
            connection.execute("UPDATE head SET number = ?, chain = ?", (number, before))
            if checkpoint:
                answers = connection.execute("SELECT answers FROM head").fetchone()[0]
                file = self.path.stat().st_ino
                self.seen.write_bytes(_slot([self.noted.ledger, number, before, file, answers]) * 2)

    def _used(self, ledger: Book, *, trusted: bool) -> str:
        """Look at it, verify it, charge it; and compare with the sound one where it can be told from another."""
        told, error = attempt(lambda: _told(ledger))
        if told is not None and trusted:
            self._check_no_richer(told, "opened")
        count, damage = attempt(ledger.verify)
        if damage is None and trusted:
            entries = attempt(ledger.entries)[0]
            if count != len(self.entries) + 1 or entries != self.entries or told != self.sound:
                raise Broken("another record verifies", (count, told))
        attempt(lambda: [ledger.answer(entry) for entry in ledger.entries() if entry.state == "answered"])
        attempt(lambda: [entry.exported() for entry in ledger.entries()])
        for charge in (
            self._charge,
            lambda one: self._charge(one.for_analyst("alice")),
            lambda one: self._charge(one._within(PARTS[0])),
            lambda one: self._charge(one.for_analyst("alice")._within(*PARTS[1:])),
        ):
            charged, refused = attempt(lambda charge=charge: charge(ledger))
            after, _ = attempt(lambda: _told(ledger))
            if trusted and charged is not None and after is not None:
                self._check_no_richer(after, "charged")
        return f"opened: {label(error, 'looked at')}; {label(damage, 'verified')}; {label(refused, 'charged')}"

    def _charge(self, ledger: Book) -> Any:
        return dp.release(5, TENTH, sensitivity=1, ledger=ledger)

    def _check_no_richer(self, told: dict[str, Any], when: str) -> None:
        """Nothing is left that was spent, and the limit is what it was."""
        if told["limit"] != self.sound["limit"]:
            raise Broken(f"another limit, {when}", told)
        for name in ("spent", "of alice", *PARTS):
            less = [key for key, amount in self.sound[name].items() if told[name].get(key, -1) < amount]
            if less:
                raise Broken(f"less is spent, {when}", (name, told[name], self.sound[name]))
        if _amount(told["remaining"]) > _amount(self.sound["remaining"]):
            raise Broken(f"more is left, {when}", told)

    def close(self) -> None:
        """Nothing is held between two inputs."""


def _told(ledger: Book) -> dict[str, Any]:
    """What a ledger says of itself."""
    alice = ledger.for_analyst("alice")
    return {
        "limit": ledger.limit,
        "spent": ledger.spent,
        "of alice": alice.spent,
        **{part: ledger._within(part).spent for part in PARTS},
        "remaining": ledger.remaining,
        "of the analyst": alice.limit,
        "count": ledger.count,
    }


def _amount(guarantee: Any) -> Fraction:
    return Fraction(0) if guarantee is None else exactly(guarantee.epsilon)


@st.composite
def _statements(draw: Any) -> str:
    """A statement that changes rows, or what they are kept in."""
    table = draw(st.sampled_from(("entries", "entries", "head", "answers", "parts")))
    column, other = draw(st.sampled_from(COLUMNS[table])), draw(st.sampled_from(COLUMNS[table]))
    value = draw(st.sampled_from(VALUES))
    where = draw(st.sampled_from(("", *(f" WHERE number = {number}" for number in range(12)), " WHERE number > 3")))
    match draw(st.sampled_from(("set", "set", "set", "edit", "copy", "delete", "insert", "schema"))):
        case "set":
            return f"UPDATE {table} SET {column} = {value}{where}"
        case "edit":
            old = draw(st.sampled_from(('"', "{", "1", "0", ":", "ratio", "is", "Pure", "epsilon", "[", ",", "/")))
            new = draw(st.sampled_from(("", "9", "-", "[", "}", '"', "1e400", "x", "null", "0")))
            return f"UPDATE {table} SET {column} = replace({column}, '{old}', '{new}'){where}"
        case "copy":
            return f"UPDATE {table} SET {column} = {other}{where}"
        case "delete":
            return f"DELETE FROM {table}{where}"
        case "insert":
            columns = COLUMNS[table]
            listed = ", ".join(value if name == column else str(draw(st.integers(7, 12))) if name == "number" else name
                               for name in columns)  # fmt: skip
            return f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) SELECT {listed} FROM {table}{where}"
    return draw(
        st.sampled_from(
            (
                f"DROP TABLE {table}",
                f"ALTER TABLE {table} RENAME TO other",
                f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
                "CREATE TABLE other (x)",
                "DROP INDEX entries_by_key",
                "PRAGMA journal_mode = DELETE",
                "PRAGMA user_version = 99",
                f"CREATE TRIGGER t AFTER INSERT ON entries BEGIN UPDATE {table} SET {column} = {value}; END",
                "CREATE TRIGGER t BEFORE UPDATE ON head BEGIN SELECT RAISE(IGNORE); END",
                "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
            )
        )
    )


def _slot(content: Any) -> bytes:
    text = json.dumps(content)
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n".encode().ljust(512)


def _forged_checkpoints() -> st.SearchStrategy[bytes]:
    """Checkpoints whose check is right, and whose content is anything."""
    plain = st.one_of(st.none(), st.integers(-2, 9), st.text(max_size=3), st.booleans(), st.floats())
    return st.one_of(plain, st.lists(plain, max_size=6), st.dictionaries(st.text(max_size=2), plain, max_size=2)).map(
        lambda content: _slot(content)
    )
