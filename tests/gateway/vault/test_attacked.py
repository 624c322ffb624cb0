"""Attacks on time and keys: what somebody sees who asks other things while a slot runs, or after a late answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.errors import InvalidArgument
from discreet.gateway.books import late
from discreet.gateway.books.store import set_number
from discreet.gateway.frames import Frame
from discreet.gateway.settings import Settings
from discreet.gateway.vault import clock
from discreet.gateway.vault.asking import Asked
from discreet.guarantees.guarantee import Pure
from discreet.ledger.views import NotBought, Replays

from ..house import COUNT, House
from ..small_house import SmallHouse

OTHER = COUNT.replace(" AS n", " AS other")
"""The same measurement under another name: what was bought is found for it, but the requests are not joined."""

FREE = "SELECT DISTINCT city FROM visits"


@pytest.fixture
def started(tmp_path):
    """A house with these settings, and its vault."""
    made = []

    def start(gateway):
        made.append(House(tmp_path / "house", gateway).start())
        return made[-1]

    yield start
    for house in made:
        house.stop()


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A house with these settings whose slots end when it is said: no machine is too slow."""
    made, ended = [], threading.Event()

    async def wait(_: float) -> None:
        await asyncio.to_thread(ended.wait)

    def start(gateway):
        monkeypatch.setattr(clock, "sleep_until", wait)
        made.append(SmallHouse(tmp_path / "house", f'answer_after = "1m"\n{gateway}').start())
        return made[-1], ended.set

    yield start
    ended.set()
    for house in made:
        house.stop()


@pytest.mark.slow
@pytest.mark.parametrize("share", ["own", "everyone"])
def test_nothing_of_a_slot_is_seen_before_it_ends(held, share):
    """Not by a replay, not in the history, and not by another account that may see the answer afterwards."""
    house, end = held(f'share = "{share}"')
    token, _ = house.open("ada"), house.open("bea")
    watching = [house.token("ada", scopes=["replay"]), house.token("bea", scopes=["replay"])]
    before, planned = house.value(token, "budget")["remaining"], house.value(token, "plan", sql=OTHER)
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as slot:
        slot.callback(end)
        answer = pool.submit(house.ask, token)
        while not any(entry.state == "answered" for entry in house.charges()):
            time.sleep(0.01)
        seen = [house.ask(watcher, OTHER).header.get("code") for watcher in watching]
        plan, questions = house.value(token, "plan", sql=OTHER), house.value(token, "history")["questions"]
        left = [house.value(token, "budget")["remaining"], json.loads(house.ask(token, FREE).body)["remaining"]]
        assert not answer.done()
    assert answer.result().header["ok"]
    assert seen == ["gateway-not-bought"] * 2
    assert questions == []
    assert left == [before] * 2
    assert house.value(token, "budget")["remaining"]["epsilon"] == pytest.approx(2.9)
    assert house.ask(watching[0], OTHER).header["ok"]
    assert house.ask(watching[1], OTHER).header["ok"] == (share == "everyone")
    assert len(house.value(token, "history")["questions"]) == 1
    assert plan == planned


@pytest.mark.slow
def test_what_waits_behind_the_same_measurement_is_free(started):
    """It is looked up again when it gets a lane: no second slot, and no ε of a day."""
    house = started('answer_after = "1s"\n[gateway.limits]\nday = 0.1')
    token = house.open("ada")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(house.ask, token)
        while not house.charges():
            time.sleep(0.01)
        again = house.ask(token, OTHER)
        assert answer.result().header["ok"]
    assert again.header["ok"]
    assert json.loads(again.body)["rows"] == json.loads(answer.result().body)["rows"]
    assert len(house.charges()) == 1


class Lane:
    """A lane that fails at once."""

    is_alive = True

    async def ready(self):
        """It was told nothing."""

    async def ask(self, *_):
        return Frame({"ok": False, "failed": True})

    def kill(self):
        self.is_alive = False

    async def start(self):
        self.is_alive = True


def test_a_failure_is_settled_when_any_answer_is():
    """When the gateway stops must not tell when the lane failed."""

    async def run() -> tuple[float, float]:
        lanes = clock.Lanes(1, {})
        lanes._all = [Lane()]
        lanes._idle.extend(lanes._all)
        begun, settled = [], []

        async def begin() -> None:
            begun.append(asyncio.get_running_loop().time())

        async def settle(slot) -> None:
            assert slot.reply is None
            settled.append(asyncio.get_running_loop().time())

        await lanes.run({}, 0.5, begin, settle)
        lanes.stop()
        return begun[0], settled[0]

    begun, settled = asyncio.run(run())
    assert settled - begun >= 0.45


def test_a_question_with_several_charges_runs_alone():
    """When it makes the later ones would show in the order of all charges."""
    order = []

    class Right(Lane):
        async def ask(self, *_):
            return Frame({"ok": True})

    async def run() -> None:
        lanes = clock.Lanes(3, {})
        lanes._all = [Right() for _ in range(3)]
        lanes._idle.extend(lanes._all)

        async def ask(name: str, *, alone: bool) -> None:
            async def begin() -> None:
                order.append(f"{name} begins")

            async def settle(_) -> None:
                order.append(f"{name} ends")

            await lanes.run({}, 0.05, begin, settle, alone=alone)

        await asyncio.gather(
            ask("one", alone=False), ask("two", alone=False), ask("many", alone=True), ask("three", alone=False)
        )
        assert len(lanes._idle) == 3
        assert not lanes.waiting

    asyncio.run(run())
    assert sorted(order[:2]) == ["one begins", "two begins"]
    assert sorted(order[2:4]) == ["one ends", "two ends"]
    assert order[4:] == ["many begins", "many ends", "three begins", "three ends"]


def test_a_lane_is_ready_before_a_slot_begins():
    """A plan that somebody else asked for takes no time of the slot."""
    order = []

    class Busy(Lane):
        async def ready(self):
            order.append("ready")

    async def run() -> None:
        lanes = clock.Lanes(1, {})
        lanes._all = [Busy()]
        lanes._idle.extend(lanes._all)

        async def begin() -> None:
            order.append("begun")

        async def settle(_) -> None:
            order.append("settled")

        await lanes.run({}, 0.01, begin, settle)
        lanes.stop()

    asyncio.run(run())
    assert order == ["ready", "begun", "settled"]


@pytest.mark.parametrize(("lanes", "bits"), [(1, 2.4), (4, 4.0)])
def test_all_lanes_can_be_late_at_once(lanes, bits):
    """Four questions in four lanes have 16 outcomes, whatever is allowed: none stops the others."""
    assert late.bits(Settings(lanes=lanes).late_at_most, 4) == bits


PARTS = "SELECT a.n + b.n AS x FROM (SELECT COUNT(*) AS n FROM visits) a, (SELECT SUM(cost) AS n FROM visits) b"


@pytest.mark.slow
def test_the_keys_of_parts_cannot_be_tried(started):
    """Whether one is used would tell how far a late question came."""
    house = started("answer_after = 0")
    token = house.open("ada")
    assert house.ask(token, PARTS, key="k").header["ok"]
    assert house.ask(token, COUNT, key="k/0").header["ok"]
    assert house.ask(token, COUNT, key="k/1", epsilon=0.2).header["ok"]
    assert {entry.key for entry in house.charges()}.isdisjoint({"k", "k/0", "k/1"})


@pytest.mark.slow
def test_the_key_of_a_late_question_is_used_up_however_far_it_came(started):
    """Also where all of its parts were charged, and none has the key itself."""
    house = started("answer_after = 0")
    token, asked = house.open("ada"), Asked(sql=PARTS, options={"epsilon": 0.1}, key="k")
    late.record_late(house.store, "ada", asked.late_name, time.time())
    set_late(house, 0)
    assert house.ask(token, PARTS, epsilon=0.1, key="k").header["code"] == "gateway-late"
    assert house.ask(token, COUNT, key="k").header["code"] == "ledger-key-reused"
    assert house.ask(token, COUNT).header["ok"]


def set_late(house, count):
    """The owner has looked."""
    with house.store.write() as execute:
        set_number(execute, "late", count)


def test_replays_find_nothing_after_an_entry(tmp_path):
    house = House(tmp_path / "house")
    house.open("ada")
    ledger = house.ledger.for_analyst("ada")
    entry = ledger.charge(Pure(epsilon=0.1), asked="a", key="k")
    ledger.keep(entry, 1)
    view = Replays.open(house.folder / "clinic.ledger").for_analyst("ada")
    assert view.charge(Pure(epsilon=0.1), asked="a", key="k").number == entry.number
    view.until = {"ada": entry.number - 1}
    with pytest.raises(NotBought):
        view.charge(Pure(epsilon=0.1), asked="a", key="k")
    view.until = {"ada": entry.number, "bea": 0}
    assert view.charge(Pure(epsilon=0.1), asked="a", key="k").state == "answered"
    with pytest.raises(InvalidArgument):
        view.charge(Pure(epsilon=0.2), asked="a", key="k")
