"""The gateway's database: private, migrated in one step, backed up while in use, and chained where it matters."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable, NotAllowed
from discreet.gateway.books import audit, policies, questions
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tables import MIGRATIONS
from discreet.gateway.books.tokens import authenticate

from ...refusing import refuses
from ..clinics import Clinic


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.gateway"


def changed(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_only_the_owner_can_read_it(path: Path) -> None:
    store = GatewayStore(str(path))
    with store.write() as execute:
        audit.append(execute, 1.0, "alice", "login")
        modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    assert modes == {0o600}
    store.close()
    path.chmod(0o640)
    with refuses(InvalidArgument, "gateway-store-exposed"):
        GatewayStore(str(path))


def test_places_that_cannot_be_one(path: Path) -> None:
    with refuses(InvalidArgument, "gateway-store"):
        GatewayStore(":memory:")
    with refuses(InvalidArgument, "no-such-folder"):
        GatewayStore(str(path / "deeper"))
    changed(path, "CREATE TABLE cats (name TEXT)")
    path.chmod(0o600)
    with refuses(InvalidArgument, "gateway-store"):
        GatewayStore(str(path))


def test_a_newer_database_is_refused(target: str) -> None:
    GatewayStore(target, (*MIGRATIONS, ("CREATE TABLE later (number {integer})",))).close()
    with refuses(InvalidArgument, "gateway-newer-database"):
        GatewayStore(target)


def test_migrations_are_applied_once_in_one_transaction(target: str) -> None:
    store = GatewayStore(target)
    audit.record(store, 1.0, "alice", "login")
    store.close()
    broken = (*MIGRATIONS, ("CREATE TABLE later (number {integer})", "NOT SQL"))
    with pytest.raises(LedgerUnavailable):
        GatewayStore(target, broken)
    whole = (*MIGRATIONS, ("CREATE TABLE later (number {integer})", "INSERT INTO later VALUES (1)"))
    for _ in range(2):
        store = GatewayStore(target, whole)
        with store.read() as execute:
            assert execute("SELECT number FROM later") == [(1,)]
        assert [line.what for line in audit.lines(store)] == ["login"]
        store.close()


def test_a_backup_is_whole_and_private(clinic: Clinic, tmp_path: Path) -> None:
    clinic.open("alice")
    made = clinic.do("token", account="alice")
    copy = tmp_path / "copy.gateway"
    with clinic.store.read():
        clinic.store.backup(copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    clinic.do("suspend", name="alice")
    with GatewayStore(str(copy)) as restored:
        assert authenticate(restored, made["token"], clinic.time).account == "alice"
        assert audit.verify(restored) == 2
    with refuses(InvalidArgument, "file-exists"):
        clinic.store.backup(copy)
    with refuses(InvalidArgument, "file-not-writable"):
        clinic.store.backup(tmp_path / "no" / "copy")


@pytest.mark.slow
def test_a_backup_of_postgresql_is_pg_dump_s(postgres: str, tmp_path: Path) -> None:
    store = GatewayStore(f"{postgres}#books_backup_{os.getpid()}")
    with refuses(InvalidArgument, "gateway-backup"):
        store.backup(tmp_path / "copy")
    with store.write() as execute:
        execute(f"DROP SCHEMA books_backup_{os.getpid()} CASCADE")
    store.close()


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    path.chmod(0o600)
    with refuses(LedgerDamaged, "gateway-store-damaged"):
        GatewayStore(str(path))


def test_a_transaction_that_fails_leaves_nothing(target: str) -> None:
    store = GatewayStore(target)
    with suppress(RuntimeError), store.write() as execute:
        audit.append(execute, 1.0, "alice", "login")
        raise RuntimeError
    assert audit.count(store) == 0
    store.close()


# --- the audit --------------------------------------------------------------------------------------------


def test_the_audit_is_chained(target: str) -> None:
    store = GatewayStore(target)
    for number in range(5):
        audit.record(store, number, "alice", "asked", sql=f"SELECT {number}\0 \ud800 ε")
    assert audit.verify(store) == 5
    assert [line.number for line in audit.lines(store, 2, 3)] == [2, 3]
    assert audit.lines(store)[0].content["sql"].startswith("SELECT 0")
    store.close()


TAMPERED: dict[str, str] = {
    "details": "UPDATE audit SET details = '{}' WHERE number = 2",
    "who": "UPDATE audit SET who = 'bob' WHERE number = 2",
    "what": "UPDATE audit SET what = 'nothing' WHERE number = 2",
    "when": "UPDATE audit SET at = at + 1 WHERE number = 2",
    "removed": "DELETE FROM audit WHERE number = 2",
    "last removed": "DELETE FROM audit WHERE number = 3",
    "all removed": "DELETE FROM audit",
    "swapped": "UPDATE audit SET number = CASE number WHEN 1 THEN -2 WHEN 2 THEN 1 ELSE 3 END",
}


@pytest.mark.parametrize("how", TAMPERED)
def test_an_audit_that_was_changed_is_noticed(path: Path, how: str) -> None:
    store = GatewayStore(str(path))
    for number in range(3):
        audit.record(store, number, "alice", "asked", sql=f"SELECT {number}")
    store.close()
    changed(path, TAMPERED[how])
    with refuses(LedgerDamaged, "gateway-audit-changed"):
        audit.verify(store)
    store.close()


# --- questions --------------------------------------------------------------------------------------------


def test_a_question_is_found_by_its_own_receipt_only(target: str) -> None:
    store = GatewayStore(target)
    questions.note_question(store, "alice", "1-ab12", "SELECT 1", {"epsilon": 0.1}, 5.0)
    questions.note_question(store, "alice", "2-cd34", "SELECT 2", {}, 6.0)
    questions.note_question(store, "alice", "1-ab12", "SELECT 1", {"epsilon": 0.1}, 7.0)
    questions.note_question(store, "bob", "3-ef56", "SELECT 3", {}, 8.0)
    found = questions.find_question(store, "alice", "1-ab12")
    known = {"number": 1, "receipt": "1-ab12", "sql": "SELECT 1", "options": {"epsilon": 0.1}, "at": 5.0}
    assert found == questions.Question(**known, version="", since=None)
    for account, receipt in (("bob", "1-ab12"), ("alice", "3-ef56"), ("alice", "9"), ("alice", 7), ("alice", "\0")):
        assert questions.find_question(store, account, receipt) is None
    assert [one.sql for one in questions.history(store, "alice")] == ["SELECT 1", "SELECT 2"]
    assert [one.sql for one in questions.history(store, "alice", 2, 2)] == ["SELECT 2"]
    store.close()


# --- policies ---------------------------------------------------------------------------------------------


def test_a_policy_has_a_new_version_when_its_text_changes(target: str) -> None:
    store = GatewayStore(target)
    for text in ("one", "one", "two", "one"):
        policies.record_policy(store, text, 1.0)
    assert [(one.number, one.content) for one in policies.versions(store)] == [(1, "one"), (2, "two"), (3, "one")]
    assert [line.what for line in audit.lines(store)] == ["policy"] * 3
    store.close()


@pytest.mark.parametrize(
    "how", ["UPDATE policies SET content = 'x' WHERE number = 1", "DELETE FROM policies WHERE number = 1"]
)
def test_a_version_that_was_changed_is_noticed(path: Path, how: str) -> None:
    store = GatewayStore(str(path))
    policies.record_policy(store, "one", 1.0)
    policies.record_policy(store, "two", 1.0)
    store.close()
    changed(path, how)
    with refuses(LedgerDamaged, "gateway-policy-changed"):
        policies.versions(store)
    store.close()


def test_a_proposal_has_a_difference_and_is_decided_by_somebody_else(clinic: Clinic) -> None:
    policies.record_policy(clinic.store, '{"tables": {"visits": {"cost": [0, 10]}}}', clinic.time)
    alice, sam, bob = clinic.login("alice"), clinic.login("sam", "steward"), clinic.login("bob")
    made = clinic.do("propose", alice, text='{"tables": {"visits": {"cost": [0, 20]}}}', why="costs rose")
    assert [line for line in made["diff"].splitlines() if line[0] in "+-"][2:] == ["-    10", "+    20"]
    assert (made["base"], made["state"]) == (1, "open")
    own = clinic.do("propose", sam, text="another text")
    with refuses(NotAllowed, "gateway-approval"):
        clinic.do("decide_policy", sam, number=own["number"], decision="approve")
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("decide_policy", bob, number=1, decision="approve")
    assert clinic.do("decide_policy", sam, number=1, decision="approve", why="yes")["state"] == "accepted"
    with refuses(InvalidArgument, "gateway-decided"):
        clinic.do("decide_policy", number=1, decision="refuse")
    assert [one["number"] for one in clinic.do("policy", alice)["proposals"]] == [1]
    assert [one["number"] for one in clinic.do("policy", sam)["proposals"]] == [2, 1]
    assert clinic.do("policy", bob)["version"] == 1


@pytest.mark.parametrize("text", ["", " ", 7, "x" * 200_001, "the same"])
def test_odd_proposals(clinic: Clinic, text: object) -> None:
    policies.record_policy(clinic.store, "the same", clinic.time)
    with refuses(InvalidArgument, "gateway-proposal"):
        clinic.do("propose", text=text)


def test_few_proposals_of_one_account_wait(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MOST_OPEN", 2)
    monkeypatch.setattr(policies, "MOST_DECIDED", 1)
    alice, bob, sam = clinic.login("alice"), clinic.login("bob"), clinic.login("sam", "steward")
    for text in ("one", "two"):
        clinic.do("propose", alice, text=text)
    with refuses(NotAllowed, "gateway-approval"):
        clinic.do("propose", alice, text="three")
    clinic.do("propose", bob, text="three")
    for number in (1, 2):
        clinic.do("decide_policy", sam, number=number, decision="refuse")
    clinic.do("propose", alice, text="four")
    assert [one["number"] for one in clinic.do("policy", sam)["proposals"]] == [4, 3, 2]
    assert [one["number"] for one in clinic.do("policy", alice)["proposals"]] == [4, 2]


# --- generations ------------------------------------------------------------------------------------------

QUIET: dict[str, Callable[[Clinic], object]] = {
    "audit": lambda clinic: audit.record(clinic.store, 1.0, "alice", "asked"),
    "question": lambda clinic: questions.note_question(clinic.store, "alice", "1", "SELECT 1", {}, 1.0),
}
LOUD: dict[str, Callable[[Clinic], object]] = {
    "open": lambda clinic: clinic.open("bob"),
    "token": lambda clinic: clinic.do("token", account="alice"),
    "role": lambda clinic: clinic.do("role", name="alice", role="viewer"),
    "suspend": lambda clinic: clinic.do("suspend", name="alice"),
    "resume": lambda clinic: clinic.do("resume", name="alice"),
    "suspend all": lambda clinic: clinic.do("suspend"),
    "revoke": lambda clinic: clinic.do("revoke", account="alice"),
}


@pytest.mark.parametrize("change", QUIET | LOUD)
def test_the_generation_changes_with_accounts_and_tokens_only(clinic: Clinic, change: str) -> None:
    clinic.open("alice")
    other = GatewayStore(clinic.target)
    before = (clinic.store.generation(), other.generation())
    (QUIET | LOUD)[change](clinic)
    after = (clinic.store.generation(), other.generation())
    assert before[0] == before[1]
    assert after[0] == after[1]
    assert (before == after) == (change in QUIET)
    other.close()
