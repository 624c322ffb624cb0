"""Two gateways on one PostgreSQL: its ledger and its accounts are one, and one that is cut off fails closed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import discreet as dp
from discreet.gateway.books import accounts
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.ledger import Ledger

from ...ledger.conftest import _drop, postgres  # noqa: F401  a fixture
from ..house import BY_CITY, COUNT, House

PROGRAM = str(Path(__file__).parents[1] / "programs/twin.py")
pytestmark = pytest.mark.slow
_numbers = itertools.count()


class Proxy:
    """A network between a gateway and PostgreSQL that can be cut."""

    def __init__(self, port):
        self._to, self._open, self._cut = port, [], False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._cut:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, one, other):
        with contextlib.suppress(OSError):
            while part := one.recv(2**16):
                other.sendall(part)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        """End every connection, and refuse new ones."""
        self._cut = True
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def join(self):
        self._cut = False

    def close(self):
        self.cut()
        self._listening.close()
        for one in self._open:
            one.close()


class Twin(House):
    """A house whose books are in PostgreSQL."""

    def __init__(self, folder, url, schema, gateway, **environment):
        super().__init__(folder, gateway)
        self.place, self._schema = url, schema
        self.policy.write_text(self.policy.read_text().replace('"clinic.ledger"', f'"{url}#{schema}"'))
        self.environment = {"XDG_STATE_HOME": str(folder / "state"), **environment}

    @property
    def ledger(self):
        limit = dp.Approx(epsilon=8, delta=1e-5)
        where = f"{self.place}#{self._schema}"
        return Ledger.open(where, protects=dp.person("id"), limit=limit, checkpoint=self.folder / "checkpoint")

    @property
    def store(self):
        return GatewayStore(f"{self.place}#{self._schema}_gateway")


@pytest.fixture
def twins(tmp_path, postgres):  # noqa: F811
    """Two gateways, the second behind a network that can be cut."""
    made, schema = [], f"two{os.getpid()}_{next(_numbers)}"
    proxy = Proxy(int(postgres.split(":")[-1].split("/")[0]))

    def start(gateway="answer_after = 0\nlate_allowed = 9", **environment):
        behind = postgres.replace(f":{postgres.split(':')[-1].split('/')[0]}/", f":{proxy.port}/")
        made.append(Twin(tmp_path / "one", postgres, schema, gateway))
        made.append(Twin(tmp_path / "two", behind, schema, gateway, **environment))
        for one in made:
            one.start(PROGRAM)
        return *made, proxy

    yield start
    for one in made:
        one.stop()
    assert made[0].ledger.verify() > 0
    proxy.close()
    for name in (schema, f"{schema}_gateway"):
        _drop(postgres, name)


def left(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


def test_the_same_question_at_both_is_charged_once(twins):
    one, two, _ = twins()
    token = one.open("ada")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: (one, two)[number % 2].ask(token, BY_CITY), range(16)))
    assert all(reply.header["ok"] for reply in replies)
    assert len({json.dumps(json.loads(reply.body)["rows"]) for reply in replies}) == 1
    assert len(one.charges()) == 1
    assert left(one, token) == left(two, token) == pytest.approx(2.9)
    accounts.set_suspended(one.store, "ada", suspended=True, by=COMMAND_LINE, now=time.time())
    assert {house.ask(token).header["code"] for house in (one, two)} == {"gateway-suspended"}


def test_limits_hold_over_both(twins):
    one, two, _ = twins("answer_after = 0\n[gateway.limits]\nday = 0.5")
    token = one.open("ada")

    def ask(number):
        return (one, two)[number % 2].ask(token, f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}").header

    with ThreadPoolExecutor(8) as pool:
        headers = list(pool.map(ask, range(16)))
    assert sum(header["ok"] for header in headers) == len(one.charges()) == 5
    assert {header.get("code") for header in headers} == {None, "gateway-day-limit"}
    assert left(two, token) == pytest.approx(2.5)


def test_one_that_stops_in_a_charge_does_not_block_the_other(twins, tmp_path):
    """It holds the lock of the ledger. The server ends its transaction, and the other goes on. When it wakes up, it has
    charged nothing, and hands nothing out.
    """
    done = tmp_path / "done"
    one, two, _ = twins(STEP="charge", STEP_DONE=str(done))
    token, other = one.open("ada"), one.open("bea")
    with two.link() as link, ThreadPoolExecutor(1) as pool:
        done.with_suffix(".armed").touch()
        waiting = pool.submit(link.call, "ask", token, sql=BY_CITY, key="k")
        while not done.exists() and not waiting.done():
            time.sleep(0.05)
        assert not waiting.done(), waiting.result()
        assert one.ask(other).header["ok"]
        assert [entry.analyst for entry in one.charges()] == ["bea"]
        os.kill(int(done.with_suffix(".lane").read_text()), signal.SIGCONT)
        two.process.send_signal(signal.SIGCONT)
        failed = waiting.result()
    assert failed.header["kind"] == "LedgerUnavailable"
    assert failed.body == b""
    assert len(one.charges()) == 1
    assert two.ask(token, BY_CITY, key="k").header["ok"]  # the same key again: charged now, and once
    assert one.ask(token, BY_CITY, key="k").header["ok"]
    assert [entry.analyst for entry in one.charges()] == ["bea", "ada"]


def test_one_that_is_cut_off_fails_closed(twins):
    one, two, network = twins()
    token, other = one.open("ada"), one.open("bea")
    assert two.ask(token).header["ok"]
    with two.link() as link, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(link.call, "ask", token, sql=BY_CITY, answer_after="5s")
        while len(one.charges()) == 1 and not waiting.done():
            time.sleep(0.02)
        network.cut()
        assert one.ask(other).header["ok"]
        assert waiting.result().header.get("kind") in (None, "LedgerUnavailable")  # it may have been stored before
    for verb, given in (("ask", {"sql": COUNT}), ("ask", {"sql": "SELECT SUM(cost) AS s FROM visits"}), ("me", {})):
        refused = two.call(verb, token, **given)
        assert (refused.header["kind"], refused.body) == ("LedgerUnavailable", b"")
    assert len(one.charges()) == 3
    network.join()
    again = two.ask(token)
    assert again.header["ok"], again.header
    assert two.ask(token, BY_CITY).header["ok"]
    assert len(one.charges()) == 3  # what was charged before the cut is not charged again
    assert left(one, token) == left(two, token) == pytest.approx(2.8)
