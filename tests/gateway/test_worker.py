"""A process of the vault, in this process: what it says when something fails, and what a question owes."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from discreet.errors import EngineFailed, InvalidArgument
from discreet.gateway.frames import packed, receive
from discreet.gateway.settings import load_settings
from discreet.gateway.vault import worker
from discreet.gateway.vault.snapshot import published
from discreet.gateway.vault.worker import Worker

from ..refusing import refuses
from .house import COUNT, House, answer_in

BOTH = "SELECT a.n + b.m AS x FROM (SELECT COUNT(*) AS n FROM visits) a, (SELECT SUM(cost) AS m FROM visits) b"
CANARY = "zq7canary"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    made = House(tmp_path_factory.mktemp("worker") / "house")
    for name in ("ada", "bea"):
        made.open(name)
    return made


@pytest.fixture
def opened(house: House, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a lane or a reader, with its end of a socket."""
    monkeypatch.setattr(worker, "warm_up", lambda **_: None)
    ends: list[socket.socket] = []

    def make(kind: str, version: str = "1") -> tuple[Worker, socket.socket]:
        theirs, ours = socket.socketpair()
        ends.extend((theirs, ours))
        opening = {"policy": house.policy.read_text(), "folder": str(house.folder), "version": version}
        policy, settings = load_settings(house.policy)
        published(policy, version, settings.copies, ())  # by the vault
        return Worker(theirs, kind, opening | {"copies": settings.copies}), ours

    yield make
    for one in ends:
        one.close()


@pytest.mark.parametrize(("kind", "said"), [("lane", ""), ("reader", CANARY)])
def test_a_lane_says_that_it_failed_and_nothing_else(opened: Any, kind: str, said: str) -> None:
    """Whether and how an engine with private rows fails may depend on them: it is said at the end of the slot."""
    made, ours = opened(kind)
    failures = [EngineFailed(CANARY, code="engine-statement-failed"), RuntimeError(CANARY), KeyError(CANARY)]

    def do_fail() -> Any:
        raise failures.pop(0)

    made.do_fail = do_fail
    thread = threading.Thread(target=made.run)
    thread.start()
    replies = []
    for number in range(3):
        ours.sendall(packed({"id": number, "verb": "fail"}))
        replies.append(receive(ours))
    ours.close()
    thread.join(20)
    first, *others = (dict(reply.header) for reply in replies)
    assert said in str(first)
    for number, header in enumerate([*others, *([] if said else [first])]):
        assert header == {"ok": False, "failed": True, "id": (number + 1) % 3}


def test_whoever_buys_anything_owes_all_of_it(opened: Any) -> None:
    """Also where somebody who sees the answers of others has seen a part of it: a lane finds only their own."""
    lane, _ = opened("lane")
    lane._tell = lambda *names: None
    reader, _ = opened("reader")
    given = {"options": {"epsilon": 0.2}, "analyst": "ada", "form": "json"}
    before = reader.do_ask(BOTH, **given, others=["bea"]).header
    lane.do_ask(COUNT, {"epsilon": 0.1}, "bea", "json")
    after = reader.do_ask(BOTH, **given, others=["bea"]).header
    assert len(before["owed"]) == len(after["owed"]) == 2
    assert before["epsilon"] == after["epsilon"] == "1/5"
    lane.do_ask(COUNT, {"epsilon": 0.1}, "ada", "json")
    own = reader.do_ask(BOTH, **given, others=["bea"]).header
    assert (len(own["owed"]), own["epsilon"]) == (1, "1/10")


def test_a_version_is_a_copy_that_nobody_else_reads_and_answers_are_its_own(house: House, opened: Any) -> None:
    lane, _ = opened("lane")
    lane._tell = lambda *names: None
    question = (f"{COUNT} WHERE cost < 9", {"epsilon": 0.1}, "ada", "json")
    first = lane.do_ask(*question)
    found, other = (opened("reader", version)[0].do_ask(*question) for version in ("1", "2"))
    assert answer_in(found) == answer_in(first)
    assert other.header["bought"] is False
    copies = house.folder / "clinic.gateway.data"
    assert all(path.stat().st_mode & 0o077 == 0 for path in [copies, *copies.rglob("*")])
    for version in ("1/../../2", "..", "a b", ""):
        with refuses(InvalidArgument, "gateway-version"):
            opened("reader", version)
