"""A charge in one message, from the state that is known: it writes nothing if that state is no longer the newest."""

from __future__ import annotations

import fcntl
import os
from typing import Any

import pytest

import discreet as dp
from discreet.ledger import writer
from discreet.ledger.stores import checkpoint
from discreet.ledger.stores.checkpoint import Checkpoint, Seen
from discreet.ledger.texts import exact

from ..refusing import refuses

LIMIT = dp.Pure(epsilon=1)
TENTH = dp.Pure(epsilon=0.1)
ON_POSTGRES = pytest.mark.parametrize("place", ["postgres"], indirect=True)


def messages(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements each message to the server has, from now on."""
    pipeline, sent = ledger._store._pipeline, list[int]()
    send = pipeline.send

    def counted(statements: Any) -> Any:
        sent.append(len(statements))
        return send(statements)

    monkeypatch.setattr(pipeline, "send", counted)
    return sent


@ON_POSTGRES
def test_a_charge_after_another_is_one_message(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    ledger.charge(TENTH, asked="first")
    sent = messages(ledger, monkeypatch)
    ledger.charge(TENTH, asked="second")
    assert len(sent) == 1
    assert ledger.verify() == 3


@ON_POSTGRES
def test_an_idle_connection_is_used_for_reading_first(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    ledger.charge(TENTH, asked="first")
    sent = messages(ledger, monkeypatch)
    ledger._store._used -= 60
    ledger.charge(TENTH, asked="second")
    assert len(sent) == 2


def test_two_ledgers_that_write_in_turn_miss_nothing(place: Any) -> None:
    one, other = place.open(LIMIT), place.open(LIMIT)
    for _ in range(3):
        one.charge(TENTH, asked="one")
        one.charge(TENTH, asked="one")
        other.charge(TENTH, asked="other")
    assert one.verify() == 10
    one.charge(TENTH, asked="the last one")
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        other.charge(TENTH, asked="too much")
    assert other.count == 10


def charge_in_turn(place: Any, tmp_path: Any) -> tuple[int, int]:
    """Charges from two machines: only the head tells that somebody else has written. How many were made and stored."""
    one = place.open(LIMIT)
    other = dp.Ledger.open(place.target, checkpoint=tmp_path / "elsewhere")
    try:
        made = [who.charge(TENTH, asked="q") for who in (one, one, other, one, one, other)]
        return len(made), other.verify() - 1
    finally:
        one.close()
        other.close()


@ON_POSTGRES
def test_others_without_a_checkpoint_in_common_miss_nothing(place: Any, tmp_path: Any) -> None:
    assert charge_in_turn(place, tmp_path) == (6, 6)


@ON_POSTGRES
def test_a_charge_that_nobody_looks_for_is_caught(place: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge in one message is believed, though the head was in another state, and nothing was written."""
    monkeypatch.setattr(writer, "_is_moved", lambda changed: True)
    made, stored = charge_in_turn(place, tmp_path)
    assert stored < made


def test_a_refusal_counts_only_in_the_newest_state(place: Any) -> None:
    one, other = place.open(LIMIT), place.open(LIMIT)
    one.charge(dp.Pure(epsilon=1), asked="all")
    other.raise_limit(dp.Pure(epsilon=2), why="agreed")
    assert one.charge(dp.Pure(epsilon=1), asked="more").number == 3


@ON_POSTGRES
def test_a_message_whose_end_is_unknown_is_not_sent_again(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    ledger.charge(TENTH, asked="first")
    store, send = ledger._store, ledger._store._pipeline.send

    def lost(statements: Any) -> Any:
        send(statements)
        store._connection.close()
        raise store._psycopg.OperationalError("the connection to the server was lost")

    monkeypatch.setattr(store._pipeline, "send", lost)
    with refuses(dp.errors.LedgerUnavailable, "ledger-unavailable") as caught:
        ledger.charge(TENTH, asked="second")
    assert "may have been recorded" in str(caught.value)
    assert ledger.count == 2
    assert ledger.charge(TENTH, asked="third").number == 3
    assert ledger.verify() == 4


def test_a_checkpoint_that_is_ahead_stops_a_charge(place: Any) -> None:
    ledger = place.open(LIMIT)
    last = ledger.charge(TENTH, asked="first")
    seen = Checkpoint(place.checkpoint).read()
    assert seen is not None
    assert seen.number == last.number
    Checkpoint(place.checkpoint).advance(Seen(seen.ledger, 7, "f" * 64, seen.file, seen.answers))
    with refuses(dp.errors.LedgerDamaged, "ledger-old-copy"):
        ledger.charge(TENTH, asked="second")
    assert ledger.count == 1


@ON_POSTGRES
@pytest.mark.parametrize("hindrance", ["held", "a folder"])
def test_nobody_depends_on_a_turn(place: Any, hindrance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = place.open(LIMIT)
    monkeypatch.setattr(checkpoint, "_TURN", 0.02)
    path = f"{place.checkpoint}.turn"
    if hindrance == "held":
        held = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(held, fcntl.LOCK_EX)
    else:
        os.mkdir(path)
    assert ledger.charge(TENTH, asked="first").number == 1
    if hindrance == "held":
        os.close(held)


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("request", "a", "", "b", None),
        (None, 'quoted " \\ \n \x00 \x7f é 中 \U0001f600 \ud800'),
        ("a", 1, True, 1.0, ("b",)),
        ("a", TENTH, LIMIT),
    ],
)
def test_the_text_of_several_parts_is_that_of_their_tuple(parts: tuple[Any, ...]) -> None:
    assert exact.exact_text_of(*parts) == exact.exact_text(parts)
