"""Many processes, one ledger: races, retries and kill -9, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

import discreet as dp
from discreet.ledger.stores.sqlite import SqliteStore

from .conftest import run_worker


def exactly_three_hundred_answers(place, mutant=""):
    place.open(dp.Pure(epsilon=3)).close()
    receipts = run_worker("race", place, 16, 100, mutant=mutant)["receipts"]
    assert len(receipts) == len(set(receipts)) == 300
    ledger = place.open()
    assert ledger.remaining is None
    assert ledger.spent == {"δ": 0.0, "ε": 3.0}
    assert ledger.verify() == 301
    assert {entry.receipt for entry in ledger.entries()} == set(receipts)


def one_charge_and_the_same_bytes(place, mutant="", processes=5, threads=20):
    place.open(dp.Pure(epsilon=300)).close()
    answers = run_worker("retry", place, processes, threads, mutant=mutant)["answers"]
    assert len(answers) == processes * threads
    assert len({tuple(answer) for answer in answers}) == 1, "different answers"
    ledger = place.open()
    assert len(ledger.entries()) == 1
    assert ledger.spent["ε"] == pytest.approx(0.1, rel=1e-3)  # and the rounding of three coordinates to a lattice
    assert ledger.verify() == 2


def no_answer_without_a_debit(place, mutant=""):
    """Between any two statements of a release, and around its draw: more than a hundred deaths in all."""
    place.open(dp.Pure(epsilon=1000)).close()
    found = run_worker("crash", place, 4 if place.is_file else 6, mutant=mutant)
    ledger = place.open()
    entries = {entry.receipt: entry for entry in ledger.entries()}
    for run in found["runs"]:
        for receipt, value in [*run["handed_out"], run["retried"]]:
            assert receipt in entries, "an answer is out without a debit"
            assert ledger.answer(entries[receipt])[0] == value, run["point"]
    assert all(entry.state == "answered" for entry in entries.values()), "charged twice"
    assert ledger.verify() == len(found["runs"]) + 2, "charged twice"  # one a key, the counted one and the opening
    before, reserved_only = 0.01, 0
    for run in found["runs"]:
        if run["handed_out"]:
            assert run["handed_out"] == [run["retried"]]
        # whatever the crash left, the key was charged once in all
        assert run["spent_after_retry"] == pytest.approx(before + 0.01, abs=1e-12), run["point"]
        assert run["spent_after_crash"] in (pytest.approx(before, abs=1e-12), pytest.approx(before + 0.01, abs=1e-12))
        reserved_only += bool(run["spent_after_crash"] > before + 0.005 and not run["handed_out"])
        before = run["spent_after_retry"]
    assert found["killed"] >= 100
    assert reserved_only >= 30  # spent, and nothing out
    assert sum(bool(run["handed_out"]) for run in found["runs"]) >= 3


def one_transaction_for_all(place, mutant=""):
    """Seven threads wait while another one writes: each is checked on what the ones before it left."""
    place.open(dp.Pure(epsilon=0.5)).close()
    found = run_worker("group", place, mutant=mutant)
    assert found["groups"] == [1, 7]
    assert not found["early"], "one returned before the commit"
    receipts = {key: receipt for key, receipt, _ in found["results"]}
    refused = [key for key, receipt in receipts.items() if receipt == "budget-exhausted"]
    assert refused == ["c", "f"], "another limit"
    assert [total for *_, total in found["results"]] == [n * 10**17 for n in (1, 2, 3, 0, 2, 4, 5, 0)]
    ledger = place.open()
    assert {e.key: e.receipt for e in ledger.entries()} == {k: r for k, r in receipts.items() if k not in refused}
    assert ledger.spent == {"δ": 0.0, "ε": 0.5}
    assert ledger.verify() == 6


def a_failed_commit_is_everybody_s(place, mutant=""):
    """An error of the transaction reaches all who waited for it. Nobody is charged, and a retry is charged once."""
    place.open(dp.Pure(epsilon=0.5)).close()
    found = run_worker("group", place, 1, mutant=mutant)
    receipts = {key: receipt for key, receipt, _ in found["results"]}
    assert receipts.pop("first").startswith("1-")
    # those that would have been refused, or had their entry, hear of the failure, too: it was not for them to know
    assert set(receipts.values()) == {"ledger-unavailable"}, "an answer without a debit"
    ledger = place.open()
    assert ledger.spent == {"δ": 0.0, "ε": 0.1}
    for _ in range(2):
        for key in "abde":
            ledger.charge(dp.Pure(epsilon=0.1), asked="q", key=key)
    assert ledger.spent == {"δ": 0.0, "ε": 0.5}
    assert ledger.verify() == 6


@pytest.mark.slow
def test_threads_that_wait_share_one_transaction(place):
    one_transaction_for_all(place)


@pytest.mark.slow
def test_an_error_of_the_commit_reaches_all_who_waited(place):
    a_failed_commit_is_everybody_s(place)


@pytest.mark.slow
def test_threads_of_several_processes_get_exactly_three_hundred_answers(place):
    place.open(dp.Pure(epsilon=3)).close()
    receipts = run_worker("race", place, 4, 100, 4)["receipts"]
    assert len(receipts) == len(set(receipts)) == 300
    ledger = place.open()
    assert ledger.spent == {"δ": 0.0, "ε": 3.0}
    assert ledger.verify() == 301


@pytest.mark.slow
def test_sixteen_processes_get_exactly_three_hundred_answers(place):
    exactly_three_hundred_answers(place)


@pytest.mark.some_quick(1)
def test_retries_of_one_key_are_one_charge_and_the_same_bytes(place):
    one_charge_and_the_same_bytes(place)


@pytest.mark.slow
def test_a_thousand_retries_of_one_key_are_one_charge_and_the_same_bytes(place):
    one_charge_and_the_same_bytes(place, processes=20, threads=50)


@pytest.mark.slow
def test_kill_nine_never_leaves_an_answer_without_a_debit(place):
    no_answer_without_a_debit(place)


@pytest.mark.slow
def test_opening_accounts_and_verifying_amid_charges_raise_no_false_alarm(place):
    place.open(dp.Pure(epsilon=1000)).close()
    receipts = run_worker("crowd", place, 8)["receipts"]
    assert len(set(receipts)) == 40
    ledger = place.open()
    assert ledger.verify() == 42  # with the opening and one account
    assert ledger.analysts == ("alice",)


@pytest.mark.slow
def test_a_child_outlives_its_parent_s_connection(place):
    """Whatever a parent closes, the charges of its children stay; threads that charge while it forks do no harm."""
    place.open(dp.Pure(epsilon=1000)).close()
    receipts = run_worker("outlive", place)["receipts"]
    ledger = place.open()
    assert ledger.verify() == 44
    assert set(receipts) <= {entry.receipt for entry in ledger.entries()}
    assert len(set(receipts)) == 3


@pytest.mark.some_quick(1)
def test_many_make_one_ledger_at_once(place):
    """Sixteen processes that find no ledger make one, and one only."""
    receipts = run_worker("make", place, 16)["receipts"]
    assert len(set(receipts)) == 16
    assert place.open().verify() == 17


OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("SELECT name FROM sqlite_master").fetchall()
connection.close()
"""


def creating_keeps_the_locks(folder, make_file=SqliteStore._make_file):
    """A process that finds a file without tables stays connected to it. Another one that leaves must see that."""
    path = folder / "made.ledger"
    subprocess.run([sys.executable, "-c", OTHER, path], check=True)
    store = SqliteStore(str(path))
    assert not store.exists()
    make_file(store)
    subprocess.run([sys.executable, "-c", OTHER, path], check=True)
    assert path.with_name("made.ledger-wal").exists(), "the log was removed under a connection"


def test_creating_a_ledger_keeps_the_locks_of_its_connection(tmp_path):
    creating_keeps_the_locks(tmp_path)


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 53), reason="this SQLite keeps the locks")
def test_a_file_that_is_opened_again_loses_its_locks(tmp_path):
    def opened_again(store):
        os.close(os.open(store.path, os.O_RDWR | os.O_CREAT, 0o600))

    with pytest.raises(AssertionError, match="the log was removed"):
        creating_keeps_the_locks(tmp_path, opened_again)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    ("check", "mutant", "reason"),
    [
        (exactly_three_hundred_answers, "read_then_write", "== 300"),
        (one_charge_and_the_same_bytes, "retry_draws_again", "different answers"),
        (one_charge_and_the_same_bytes, "key_forgotten", "different answers"),
        (no_answer_without_a_debit, "debit_after_release", "without a debit"),
        (no_answer_without_a_debit, "key_forgotten", "charged twice"),
        (no_answer_without_a_debit, "checkpoint_first", "its checkpoint has seen entry"),
        (one_transaction_for_all, "follower_returns_early", "before the commit"),
        (one_transaction_for_all, "limit_before_the_group", "another limit"),
        (a_failed_commit_is_everybody_s, "error_for_one", "without a debit"),
    ],
)
def test_a_broken_ledger_is_caught(file_place, check, mutant, reason):
    with pytest.raises(AssertionError, match=reason):
        check(file_place, mutant)
