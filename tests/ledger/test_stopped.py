"""A process that is stopped while it holds a ledger does not stop the others: they go on, or are told in time."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import discreet as dp
from discreet.ledger.stores import checkpoint
from discreet.ledger.stores import postgres as stores

from ..refusing import refuses

LIMIT = dp.Pure(epsilon=1)
NOISE = dp.Laplace(scale=10)
HOLDER = """
import sys
import discreet as dp
from discreet.ledger import book, writer
from discreet.ledger.stores import postgres
target, beside, postgres.IDLE = sys.argv[1], sys.argv[2], float(sys.argv[3])
ledger = dp.Ledger.open(target, checkpoint=beside)
draft = writer.Writer._draft
def held(self, *given):
    found = draft(self, *given)
    writer.Writer._draft = draft
    print("holds it", flush=True)
    sys.stdin.readline()
    return found
writer.Writer._draft = held
try:
    dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger, key="mine")
except dp.errors.LedgerUnavailable:
    print("was cut off", flush=True)
    dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger, key="mine")
print("went on", flush=True)
"""


ON_POSTGRES = pytest.mark.parametrize("place", ["postgres"], indirect=True)
"""A file has its own limit, which other tests reach."""


@contextmanager
def holding(place: Any, idle: float) -> Iterator[Any]:
    """A process that has locked the head, and is stopped before it says another word."""
    command = [sys.executable, "-c", HOLDER, place.target, str(place.checkpoint), str(idle)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "holds it\n"
        os.kill(process.pid, signal.SIGSTOP)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()


def asked(ledger: Any, **key: Any) -> Any:
    return dp.release(5, NOISE, sensitivity=1, ledger=ledger, **key)


@pytest.mark.slow
@ON_POSTGRES
def test_others_go_on_when_the_server_cuts_it_off(place: Any) -> None:
    ledger = place.open(LIMIT)
    with holding(place, idle=0.3) as process:
        assert asked(ledger).receipt.startswith("1-")
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("\n")
    # it had charged nothing, and its own request is then charged once
    assert said.splitlines() == ["was cut off", "went on"]
    assert [entry.key for entry in ledger.entries()] == [None, "mine"]
    assert ledger.verify() == 3


@pytest.mark.slow
@ON_POSTGRES
def test_others_are_told_within_a_limit(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    monkeypatch.setattr(stores, "PATIENCE", 0.2)
    with holding(place, idle=600) as process:
        for _ in range(2):
            with refuses(dp.errors.LedgerUnavailable, "ledger-busy"):
                asked(ledger)
        assert ledger.remaining == LIMIT  # who only looks does not wait
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("\n")
    assert said.splitlines() == ["went on"]
    assert ledger.count == 1
    assert asked(ledger).receipt.startswith("2-")


@pytest.mark.slow
@ON_POSTGRES
def test_others_go_on_when_it_is_killed(place: Any) -> None:
    ledger = place.open(LIMIT)
    with holding(place, idle=600) as process:
        process.kill()
        process.wait()
        assert asked(ledger, key="mine").receipt.startswith("1-")
    assert ledger.verify() == 2


@ON_POSTGRES
def test_limits_end_with_the_transaction(place: Any) -> None:
    """A reader is not cut off, and a connection that is used for other things has its own settings."""
    store = place.open(LIMIT)._store
    with store.transaction(write=True) as execute:
        assert execute("SHOW idle_in_transaction_session_timeout") == [("40s",)]
        assert execute("SHOW lock_timeout") == [("1min",)]
    with store.transaction(write=False) as execute:
        assert execute("SHOW idle_in_transaction_session_timeout") == [("0",)]
        assert execute("SHOW statement_timeout") == [("1min",)]
    assert stores.IDLE < stores.PATIENCE


@ON_POSTGRES
def test_the_url_says_how_a_connection_is_kept_alive(place: Any) -> None:
    target = place.target.replace("#", "?keepalives_idle=77&connect_timeout=5#")
    own = dp.Ledger.open(target, checkpoint=place.checkpoint, protects=dp.row(), limit=LIMIT)
    parameters = own._store._connection.info.get_parameters()
    assert parameters["keepalives_idle"] == "77"
    assert (parameters["connect_timeout"], parameters["tcp_user_timeout"]) == ("5", "30000")


def test_a_checkpoint_that_another_holds_is_given_up(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    monkeypatch.setattr(checkpoint, "PATIENCE", 0.05)
    other = os.open(place.checkpoint, os.O_RDWR)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with refuses(dp.errors.LedgerUnavailable, "ledger-busy") as caught:
            asked(ledger, key="k")
        assert ("Nothing was spent" if place.is_file else "stays charged") in str(caught.value)
    finally:
        os.close(other)
    # writers of a file wait there first; with PostgreSQL the charge is recorded, and a retry finds and answers it
    assert ledger.count == (0 if place.is_file else 1)
    assert asked(ledger, key="k").receipt.startswith("1-")
    assert ledger.count == 1


def test_a_thread_that_is_interrupted_while_it_writes_stops_nobody(place: Any) -> None:
    """Who waits leads the next transaction. Whoever it was writing for is told, and the ledger goes on."""
    ledger = place.open(LIMIT)
    writer, go, groups = ledger._writer, threading.Event(), []
    write, results = writer._write_together, list[Any]()

    def interrupted(group: Any) -> None:
        groups.append(len(group))
        if len(groups) == 1:
            go.wait()
            raise KeyboardInterrupt
        if len(groups) == 2:
            write(group)
            raise KeyboardInterrupt
        write(group)

    def charge() -> None:
        try:
            results.append(ledger.charge(dp.Pure(epsilon=0.1), asked="q").receipt)
        except BaseException as error:
            results.append(type(error).__name__)

    writer._write_together = interrupted
    threads = [threading.Thread(target=charge) for _ in range(4)]
    for number, thread in enumerate(threads):
        thread.start()
        while not (writer._leader if number == 0 else len(writer._waiting) == number):
            time.sleep(0.001)
    go.set()
    for thread in threads:
        thread.join()
    assert groups == [1, 3]
    assert sorted(results) == ["KeyboardInterrupt"] * 2 + ["LedgerUnavailable"] * 2
    assert asked(ledger).receipt.startswith("4-")  # the three that may have been charged, and were
    assert ledger.verify() == 5


@ON_POSTGRES
def test_a_ledger_without_limits_is_caught(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in version 0.1: who waits for the head waits for ever."""
    ledger = place.open(LIMIT)
    monkeypatch.setattr(stores, "_milliseconds", lambda seconds: 0)
    done = threading.Event()
    with holding(place, idle=600):
        threading.Thread(target=lambda: (asked(ledger), done.set()), daemon=True).start()
        assert not done.wait(0.5)
    assert done.wait(60)
