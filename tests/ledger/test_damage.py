"""A ledger that was tampered with, cut short, put back or copied is refused, and the message says what to do."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import threading
from contextlib import contextmanager

import pytest

import discreet as dp
from discreet import door
from discreet.ledger import book
from discreet.ledger.stores.checkpoint import Checkpoint, Seen
from discreet.ledger.stores.opening import open_store

from ..refusing import refuses
from .conftest import run_worker

TENTH = dp.Laplace(scale=10)


def ask(ledger, mechanism=TENTH, **options):
    return dp.release(5, mechanism, sensitivity=1, ledger=ledger, **options)


@pytest.fixture
def used(place):
    """A ledger with four charges, two of them an analyst's, and nobody at it."""
    ledger = place.open(dp.Pure(epsilon=1))
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=0.5))
    for one in (ledger, alice, alice, ledger):
        ask(one, key=f"k{one.analyst}{len(ledger.entries())}")
    ledger.close()
    return place


@contextmanager
def behind(place):
    """A transaction behind the ledger's back."""
    store = open_store(place.target, str(place.checkpoint))
    with store.transaction(write=True) as execute:
        yield execute
    store.close()


def rehashed(place, first):
    """Make the chain right again from an entry on, as someone who knows how it is made would."""
    with behind(place) as execute:
        rows = book.rows(execute, first - 1, 10**9)
        before = rows[0].chain
        for row in rows[1:]:
            chain = row.chained_to(before)
            execute("UPDATE entries SET chain = ? WHERE number = ?", chain, row.number)
            before = chain
        execute("UPDATE head SET number = ?, chain = ?", rows[-1].number, before)


def change(place, *statements):
    with behind(place) as execute:
        for statement in statements:
            execute(statement)


CHANGES = {
    "another question": "UPDATE entries SET asked = 'nothing much' WHERE number = 3",
    "another promise": "UPDATE entries SET content = replace(content, 'ratio', 'rate') WHERE number = 3",
    "a smaller cost": "UPDATE entries SET costs = '{\"\":[0,1]}' WHERE number = 2",
    "a smaller total": "UPDATE entries SET totals = '{\"\":[0,0]}' WHERE number = 5",
    "a larger limit": "UPDATE entries SET content = replace(content, '1/1', '9/1') WHERE number = 0",
    "another analyst": "UPDATE entries SET analyst = 'bob' WHERE number = 3",
    "another version": "UPDATE entries SET code_version = '9.9.9' WHERE number = 4",
    "another time": "UPDATE entries SET microseconds = 0 WHERE number = 4",
    "an entry less": "DELETE FROM entries WHERE number = 3",
    "the last entry less": "DELETE FROM entries WHERE number = 5",
    "an entry more": "INSERT INTO entries SELECT 6, kind, analyst, asked, mechanism, content, costs, totals, "
    "NULL, NULL, request, code_version, microseconds, chain FROM entries WHERE number = 5",
    "the head moved back": "UPDATE head SET number = 3, chain = (SELECT chain FROM entries WHERE number = 3)",
    "no head": "DELETE FROM head",
}


CUT_BACK = (
    "DELETE FROM answers WHERE number > 3",
    "DELETE FROM entries WHERE number > 3",
    "UPDATE head SET number = 3, answers = 2, chain = (SELECT chain FROM entries WHERE number = 3)",
)
"""A whole and right chain that ends too early."""


@pytest.mark.some_quick(12)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_record_is_refused(used, name):
    change(used, CHANGES[name])
    of_the_head = ("the last entry less", "an entry more", "the head moved back", "no head")
    with refuses(dp.errors.LedgerDamaged, "ledger-damaged" if name in of_the_head else "ledger-entry-changed"):
        used.open()


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("name", [name for name in CHANGES if name not in ("an entry more", "no head")])
def test_a_ledger_that_is_open_notices_too(used, name):
    """By its next charge where that looks at the entry, and by `verify` always."""
    ledger = used.open()
    change(used, CHANGES[name])
    missing = {"an entry less": "ledger-damaged", "the last entry less": "ledger-damaged"}
    code = (missing | {"the head moved back": "ledger-old-copy"}).get(name, "ledger-entry-changed")
    with refuses(dp.errors.LedgerDamaged, code):
        ledger.verify()
    if name in ("a smaller total", "a larger limit", "the last entry less", "the head moved back"):
        with refuses(dp.errors.LedgerDamaged, code):
            ask(ledger)


def test_a_chain_made_right_again_does_not_match_the_checkpoint(used):
    change(used, CHANGES["another question"])
    rehashed(used, 3)
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        used.open()


def test_a_cost_that_is_not_the_guarantee_s_is_found_even_in_a_right_chain(used):
    """With the chain and the checkpoint forged too, the arithmetic still tells."""
    cheaper = '{"":[0,1]}'
    change(used, f"UPDATE entries SET costs = '{cheaper}' WHERE number = 5")
    rehashed(used, 5)
    used.checkpoint.unlink()
    ledger = dp.Ledger.adopt(used.target, why="a forger's word", checkpoint=used.checkpoint)
    with refuses(dp.errors.LedgerDamaged, "ledger-totals-wrong"):
        ledger.verify()


def test_totals_that_do_not_add_up_are_found_even_in_a_right_chain(used):
    change(used, "UPDATE entries SET totals = '{\"\":[0,7]}' WHERE number = 5")
    rehashed(used, 5)
    used.checkpoint.unlink()
    ledger = dp.Ledger.adopt(used.target, why="a forger's word", checkpoint=used.checkpoint)
    with refuses(dp.errors.LedgerDamaged, "ledger-totals-wrong"):
        ledger.verify()


def test_a_changed_answer_is_refused(used):
    ledger = used.open()
    assert ask(ledger, key="kNone1").replayed
    change(used, "UPDATE answers SET digest = (SELECT digest FROM answers WHERE number = 3) WHERE number = 2")
    with refuses(dp.errors.LedgerDamaged, "ledger-answer-changed"):
        ask(ledger, key="kNone1")
    with refuses(dp.errors.LedgerDamaged, "ledger-answer-changed"):
        ledger.verify()


@pytest.mark.parametrize("change_of", ["not_private = 1", "data = NULL"])
def test_what_is_said_of_an_answer_cannot_change(used, change_of):
    change(used, f"UPDATE answers SET {change_of} WHERE number = 2")
    with refuses(dp.errors.LedgerDamaged, "ledger-answer-changed"):
        used.open().verify()
    with refuses(dp.errors.LedgerDamaged, "ledger-answer-changed"):
        ask(used.open(), key="kNone1")


def test_a_deleted_answer_is_not_drawn_again(used):
    """A reservation is worth one answer: deleting it, or putting back a file from before it, gets no second draw."""
    change(used, "DELETE FROM answers WHERE number = 2", "UPDATE head SET answers = answers - 1")
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        used.open()


def test_an_open_ledger_notices_a_deleted_answer(used):
    ledger = used.open()
    change(used, "DELETE FROM answers WHERE number = 2")
    with refuses(dp.errors.LedgerDamaged, "ledger-damaged"):
        ledger.verify()
    change(used, "UPDATE head SET answers = answers - 1")
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        ask(ledger, key="kNone1")


def test_an_answer_of_no_entry_is_noticed(used):
    change(used, "UPDATE answers SET number = 77 WHERE number = 2")
    with refuses(dp.errors.LedgerDamaged, "ledger-damaged"):
        used.open().verify()


def test_an_entry_that_vanishes_before_its_answer_is_kept_stops_the_release(used):
    ledger = used.open()
    noise = dp.Laplace(scale=10)

    def read():
        change(
            used,
            "DELETE FROM entries WHERE number = 6",
            "UPDATE head SET number = 5, chain = (SELECT chain FROM entries WHERE number = 5)",
        )
        return 5

    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        door.through(read, noise, noise.guarantee(1), ledger=ledger, asked="q")


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.raise_limit(dp.Pure(epsilon=1), why="x"),
        lambda ledger: ledger.renew(why="x"),
        lambda ledger: ledger.for_analyst("bob", limit=dp.Pure(epsilon=1)),
        lambda ledger: ask(ledger),
    ],
)
def test_no_entry_washes_a_rollback_away(used, act):
    ledger = used.open()
    change(used, *CUT_BACK)
    for _ in range(3):
        with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
            act(ledger)


def test_a_copy_that_was_charged_apart_is_not_adopted(file_place):
    """Two pasts of one length: the numbers agree, the chains do not."""
    file_place.open(dp.Pure(epsilon=1)).close()
    charged(file_place, 1)
    early = file_place.path.read_bytes()
    seen = file_place.checkpoint.read_bytes()
    charged(file_place, 2)
    later = file_place.checkpoint.read_bytes()
    file_place.path.write_bytes(early)
    file_place.checkpoint.write_bytes(seen)
    charged(file_place, 2)
    file_place.checkpoint.write_bytes(later)
    for act in (file_place.open, lambda: dp.Ledger.adopt(file_place.target, why="mine")):
        with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
            act()


FORGERIES = {
    "a limit passed": ("UPDATE entries SET content = replace(content, '1/1', '1/20') WHERE number = 0", 0),
    "the total of the data set changed by an account": (
        "UPDATE entries SET totals = replace(totals, '\"\":[0,0]', '\"\":[0,9]') WHERE number = 1",
        1,
    ),
    "an account that begins with something spent": (
        "UPDATE entries SET totals = replace(totals, '\"alice\":[0,0]', '\"alice\":[0,9]') WHERE number = 1",
        1,
    ),
    "an analyst without an account": ("UPDATE entries SET analyst = 'zoe' WHERE number = 3", 3),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_does_not_follow_is_found_even_in_a_right_chain(used, name):
    statement, first = FORGERIES[name]
    change(used, statement)
    if first == 0:
        rehashed_from_opening(used)
    else:
        rehashed(used, first)
    used.checkpoint.unlink()
    ledger = dp.Ledger.adopt(used.target, why="a forger's word", checkpoint=used.checkpoint)
    with refuses(dp.errors.LedgerDamaged, "ledger-totals-wrong"):
        ledger.verify()


def test_answers_cannot_change_places(used):
    change(
        used,
        "UPDATE answers SET data = (SELECT data FROM answers WHERE number = 3), "
        "digest = (SELECT digest FROM answers WHERE number = 3) WHERE number = 2",
    )
    with refuses(dp.errors.LedgerDamaged, "ledger-answer-changed"):
        used.open().verify()


def test_entries_restored_from_an_old_copy_are_refused(used):
    """What a restored dump looks like: a whole and right chain that ends too early."""
    change(used, *CUT_BACK)
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        used.open()
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        dp.Ledger.adopt(used.target, why="I want it back", checkpoint=used.checkpoint)


def test_only_the_newest_version_s_words_are_read(used):
    change(used, "UPDATE entries SET content = replace(content, '\"format\":1', '\"format\":2') WHERE number = 0")
    rehashed_from_opening(used)
    used.checkpoint.unlink()
    with refuses(dp.errors.LedgerDamaged, "ledger-other-version"):
        used.open()


def test_a_ledger_cannot_choose_where_its_checkpoint_is_written(used):
    """Files are named after a ledger, so its name must not be a path."""
    change(used, 'UPDATE entries SET content = replace(content, \'"ledger":"\', \'"ledger":"../\') WHERE number = 0')
    rehashed_from_opening(used)
    used.checkpoint.unlink()
    with refuses(dp.errors.LedgerDamaged, "ledger-entry-changed"):
        used.open()


def rehashed_from_opening(place):
    with behind(place) as execute:
        [first] = book.rows(execute, 0, 0)
        execute("UPDATE entries SET chain = ? WHERE number = 0", first.chained_to(""))
    rehashed(place, 1)


# --- files --------------------------------------------------------------------------------------------


def charged(place, times):
    ledger = place.open()
    for _ in range(times):
        ask(ledger)
    ledger.close()


def test_an_old_file_put_back_is_refused(file_place):
    file_place.open(dp.Pure(epsilon=1)).close()
    charged(file_place, 3)
    old = file_place.path.read_bytes()
    charged(file_place, 2)
    new = file_place.path.read_bytes()
    for put_back in (file_place.path.write_bytes, lambda data: _swap(file_place.path, data)):
        put_back(old)
        with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
            file_place.open()
        file_place.path.write_bytes(new)


def _swap(path, data):
    other = path.with_suffix(".old")
    other.write_bytes(data)
    os.replace(other, path)


def test_a_deleted_log_is_noticed(file_place):
    file_place.open(dp.Pure(epsilon=1)).close()
    charged(file_place, 1)
    run_worker("forget", file_place, 3)  # killed: its charges are in the log only
    log = file_place.path.with_name("clinic.ledger-wal")
    assert log.stat().st_size
    kept = log.read_bytes()
    log.unlink()
    file_place.path.with_name("clinic.ledger-shm").unlink()
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        file_place.open()
    log.write_bytes(kept)
    assert file_place.open().verify() == 5


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_file_cut_short_is_refused(file_place, part):
    file_place.open(dp.Pure(epsilon=100)).close()
    charged(file_place, 20)
    data = file_place.path.read_bytes()
    file_place.path.write_bytes(data[: int(len(data) * part)])
    with refuses(dp.errors.LedgerDamaged, "ledger-damaged"):
        file_place.open().verify()


def test_an_empty_or_deleted_file_is_not_a_new_purse(file_place):
    file_place.open(dp.Pure(epsilon=1)).close()
    charged(file_place, 2)
    for spoil in (lambda: file_place.path.write_bytes(b""), file_place.path.unlink):
        spoil()
        with refuses(dp.errors.LedgerDamaged, "ledger-missing"):
            file_place.open(dp.Pure(epsilon=1))


def test_a_file_of_something_else_is_refused(file_place):
    file_place.path.write_text("patient,age\n1,47\n" * 100)
    with refuses(dp.errors.LedgerDamaged, "ledger-damaged"):
        file_place.open(dp.Pure(epsilon=1))
    file_place.path.unlink()
    with sqlite3.connect(file_place.path) as other:
        other.execute("CREATE TABLE patients (age)")
    other.close()
    before = file_place.path.read_bytes()
    with refuses(dp.InvalidArgument, "ledger-place"):
        file_place.open(dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "ledger-not-found"):
        file_place.open()
    assert file_place.path.read_bytes() == before


def test_a_copy_is_refused_until_the_owner_adopts_it(file_place, tmp_path):
    file_place.open(dp.Pure(epsilon=1)).close()
    charged(file_place, 2)
    copied = tmp_path / "elsewhere" / "copy.ledger"
    copied.parent.mkdir()
    shutil.copy(file_place.path, copied)
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        dp.Ledger.open(copied)
    shutil.copy(file_place.checkpoint, copied.with_name("copy.ledger.checkpoint"))
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        dp.Ledger.open(copied)
    with refuses(dp.InvalidArgument, "ledger-no-reason"):
        dp.Ledger.adopt(copied, why=" ")
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        dp.Ledger.open(copied)
    adopted = dp.Ledger.adopt(copied, why="moved to the new server")
    assert adopted.entries()[-1].kind == "adoption"
    assert adopted.spent["ε"] == 0.2
    assert dp.Ledger.open(copied).verify() == 4
    with refuses(dp.InvalidArgument, "ledger-not-found"):
        dp.Ledger.adopt(tmp_path / "nothing.ledger", why="?")


def test_a_lost_checkpoint_is_noticed(file_place):
    file_place.open(dp.Pure(epsilon=1)).close()
    file_place.checkpoint.unlink()
    charged(file_place, 1)  # nothing was charged yet: nothing can have been forgotten
    file_place.checkpoint.unlink()
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        file_place.open()


def test_a_full_disk_is_not_called_damage(file_place, monkeypatch):
    ledger = file_place.open(dp.Pure(epsilon=1))
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    monkeypatch.setattr(ledger._store, "_begin", lambda write: (_ for _ in ()).throw(error))
    with refuses(dp.errors.LedgerUnavailable, "ledger-unavailable"):
        ask(ledger)
    monkeypatch.undo()
    ask(ledger)
    assert ledger.verify() == 2


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_interrupt_around_the_beginning_leaves_nothing_open(file_place, where):
    ledger = file_place.open(dp.Pure(epsilon=1))
    begin = ledger._store._begin

    def interrupted(*, write):
        if where == "after":
            begin(write=write)
        raise KeyboardInterrupt

    ledger._store._begin = interrupted
    with pytest.raises(KeyboardInterrupt):
        ask(ledger)
    del ledger._store._begin
    ask(ledger)
    ask(file_place.open())
    assert ledger.verify() == 3


def test_closing_while_others_use_it_does_no_harm(file_place):
    ledger, stop = file_place.open(dp.Pure(epsilon=10)), threading.Event()

    def close():
        while not stop.is_set():
            ledger.close()

    closer = threading.Thread(target=close)
    closer.start()
    for _ in range(50):
        ask(ledger)
    stop.set()
    closer.join()
    assert ledger.verify() == 51


def test_a_checkpoint_that_failed_is_noted_by_the_retry(file_place, monkeypatch):
    ledger = file_place.open(dp.Pure(epsilon=1))
    monkeypatch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    for _ in range(2):
        with refuses(dp.errors.LedgerUnavailable, "ledger-checkpoint"):
            ask(ledger, key="k")
    monkeypatch.undo()
    ask(ledger, key="k")
    assert ledger._writer.checkpoint.read()[1::3] == (1, 1)
    assert ledger.verify() == 2


def test_a_ledger_that_cannot_be_written_says_so(tmp_path):
    with refuses(dp.InvalidArgument, "file-not-writable"):
        dp.Ledger.open(tmp_path / "no" / "folder.ledger", protects=dp.row(), limit=dp.Pure(epsilon=1))


def test_sqlite_is_told_to_write_before_it_returns(file_place):
    store = file_place.open(dp.Pure(epsilon=1))._store
    with store.transaction(write=False) as execute:
        assert execute("PRAGMA synchronous") == [(2,)]
        assert execute("PRAGMA journal_mode") == [("wal",)]
    assert file_place.path.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_postgres_is_told_to_write_before_it_returns(postgres, tmp_path):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as owner:
        name = f"careless_{os.getpid()}"
        owner.execute(f"CREATE ROLE {name} LOGIN SUPERUSER")
        owner.execute(f"ALTER ROLE {name} SET synchronous_commit = off")
        owner.execute(f"ALTER ROLE {name} SET extra_float_digits = 0")
    target = postgres.replace("postgres@", f"{name}@") + f"#{name}"
    ledger = dp.Ledger.open(target, protects=dp.row(), limit=dp.Pure(epsilon=1), checkpoint=tmp_path / "c")
    with ledger._store.transaction(write=True) as execute:
        assert execute("SHOW synchronous_commit") == [("on",)]
        assert execute("SHOW transaction_isolation") == [("read committed",)]
    with ledger._store.transaction(write=False) as execute:
        assert execute("SHOW transaction_isolation") == [("repeatable read",)]
    ask(ledger)
    assert ledger.verify() == 2
    ledger.close()
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"DROP SCHEMA {name} CASCADE")
        owner.execute(f"DROP ROLE {name}")


def test_a_server_that_is_away_says_so_and_shows_no_password(tmp_path):
    with refuses(dp.errors.LedgerUnavailable, "ledger-unavailable") as away:
        dp.Ledger.open("postgresql://me:hunter2@127.0.0.1:9/db", protects=dp.row(), limit=dp.Pure(epsilon=1))
    assert "hunter2" not in str(away.value)
    assert away.value.__cause__ is None
    for target in ("bob:hun%zzter2@h/db", "bob:hunter2@h:port/db", "bob:hun#ter2@h/db"):
        with refuses(dp.DiscreetError, "ledger-place") as unreadable:
            dp.Ledger.open(f"postgresql://{target}", protects=dp.row(), limit=dp.Pure(epsilon=1))
        assert "ter2" not in str(unreadable.value)
    for target, code in (
        ("bob:hun/ter2@127.0.0.1:9/db", "ledger-place"),
        ("bob:hun?ter2@127.0.0.1:9/db", "ledger-unavailable"),
    ):
        with refuses(dp.DiscreetError, code) as unreadable:
            dp.Ledger.open(f"postgresql://{target}", protects=dp.row(), limit=dp.Pure(epsilon=1))
        assert "ter2" not in str(unreadable.value)
        assert "hun" not in str(unreadable.value)
    with refuses(dp.InvalidArgument, "ledger-place"):
        dp.Ledger.open("postgresql://127.0.0.1/db#Drop Table", protects=dp.row(), limit=dp.Pure(epsilon=1))


def test_a_connection_that_was_cut_is_made_again(place):
    ledger = place.open(dp.Pure(epsilon=1))
    ask(ledger)
    if not place.is_file:
        with ledger._store.transaction(write=False) as execute:
            [(process,)] = execute("SELECT pg_backend_pid()")
        other = place.open()
        with other._store.transaction(write=False) as execute:
            execute("SELECT pg_terminate_backend(?, 10000)", process)  # waits until it has ended
        other.close()
    else:
        ledger.close()
    ask(ledger)
    assert ledger.verify() == 3


# --- the checkpoint -----------------------------------------------------------------------------------


def test_a_checkpoint_only_moves_on_and_survives_a_torn_write(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    assert checkpoint.read() is None
    checkpoint.advance(Seen("other", 9, "b" * 64, 7), durable=True)
    checkpoint.advance(Seen("id", 0, "a" * 64, 7))  # another ledger's are forgotten
    for number, answers in ((1, 0), (2, 1), (5, 1), (3, 0), (5, 2)):
        checkpoint.advance(Seen("id", number, f"{number}" * 64, 7, answers))
    assert checkpoint.read() == Seen("id", 5, "5" * 64, 7, 2)
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        checkpoint.advance(Seen("id", 5, "6" * 64, 7, 3))
    content = bytearray(checkpoint.path.read_bytes())
    assert len(content) == 1024
    for slot in (0, 512):
        torn = bytearray(content)
        torn[slot : slot + 40] = b"\xff" * 40
        checkpoint.path.write_bytes(torn)
        assert checkpoint.read().answers in (1, 2)
    checkpoint.path.write_bytes(b"garbage")
    assert checkpoint.read() is None


def test_a_checkpoint_that_cannot_be_written_stops_the_release(file_place):
    ledger = file_place.open(dp.Pure(epsilon=1))
    file_place.checkpoint.unlink()
    file_place.checkpoint.mkdir()
    with refuses(dp.errors.LedgerUnavailable, "ledger-checkpoint"):
        ask(ledger)
    file_place.checkpoint.rmdir()


def test_a_record_shows_in_json_what_it_is(used):
    """The stored text is plain: another program can read it."""
    with behind(used) as execute:
        charge = book.row(execute, 2)
    guarantee = json.loads(charge.content)
    assert guarantee["is"] == "LossDistribution"
    assert json.loads(charge.totals) == {"": [0, 10**17]}


def test_a_ledger_that_nobody_closes_leaves_no_open_connection(file_place):
    """Also in a cycle of references, where Python ends objects in any order and may warn about open databases."""
    ledger = file_place.open(dp.Pure(epsilon=1))
    connection, ledger._store.cycle = ledger._store._connection, ledger
    del ledger
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
