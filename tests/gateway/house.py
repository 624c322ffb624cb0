"""A gateway for tests: a small clinic, its policy, and a real vault in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.gateway.books import accounts
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE, add_token, new_token, scopes_for
from discreet.gateway.frames import Frame, packed, receive
from discreet.ledger import Ledger

CITIES = ("Haifa", "Koper", "Maribor")
POLICY = """\
[ledger]
path = "clinic.ledger"
epsilon = {epsilon}
delta = 1e-5

[unit]
person = "id"

[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.columns.city]
choices = ["Haifa", "Koper", "Maribor"]
[tables.visits.columns.cost]
between = [0, 100]

[tables.prices]
source = "prices.parquet"
public = true

[gateway]
{gateway}
[gateway.question]
default = 0.1
most = 1.0
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"


def rows(people: int = 100, more: int = 0) -> pa.Table:
    """Three visits of each person, and one more person with many."""
    ids = [n // 3 for n in range(3 * people)] + [10_000] * more
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([CITIES[n % 3] for n in range(len(ids))]),
            "cost": pa.array([float(n % 100) for n in range(len(ids))]),
        }
    )


class House:
    """The files of a gateway, and its vault while it runs."""

    def __init__(
        self,
        folder: Path,
        gateway: str = "answer_after = 0",
        *,
        more: int = 0,
        epsilon: float = 8,
        people: int = 100,
    ) -> None:
        self.folder, self._epsilon = folder, epsilon
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(people, more=more), folder / "visits.parquet")
        pq.write_table(pa.table({"city": list(CITIES), "price": [1, 2, 3]}), folder / "prices.parquet")
        self.policy = folder / "clinic.toml"
        self.policy.write_text(POLICY.format(epsilon=epsilon, gateway=gateway))
        self.socket = folder / "vault"
        self.environment: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None
        self._links: list[Link] = []

    # --- the books ------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger, as its owner sees it."""
        import discreet as dp

        limit = dp.Approx(epsilon=self._epsilon, delta=1e-5)
        return Ledger.open(self.folder / "clinic.ledger", protects=dp.person("id"), limit=limit)

    @property
    def store(self) -> GatewayStore:
        """The gateway's own database."""
        return GatewayStore(str(self.folder / "clinic.gateway"))

    def open(self, name: str, role: str = "analyst", epsilon: float | None = 3) -> str:
        """A new account, and a token for it."""
        own = epsilon if role in accounts.CHARGED else None
        accounts.open_account(self.store, self.ledger, name, role, epsilon=own, by=COMMAND_LINE, now=time.time())
        return self.token(name, role)

    def token(self, name: str, role: str = "analyst", scopes: Any = None, epsilon: float | None = None) -> str:
        """A new token for an account, with a limit for life if `epsilon` is given."""
        made, most = new_token(), None if epsilon is None else Fraction(str(epsilon))
        with self.store.write() as execute:
            wanted = accounts.ROLES[role] if scopes is None else scopes_for(role, scopes)
            add_token(execute, made, name, name="test", scopes=wanted, now=time.time(), lifetime=3600, epsilon=most)
        return made.text

    def charges(self) -> list[Any]:
        """All charges in the ledger."""
        return [entry for entry in self.ledger.entries() if entry.kind == "charge"]

    # --- the vault ------------------------------------------------------------------------------------------

    def start(self, *before: str) -> House:
        """Start the vault. `before` is a program that runs it, to stop it somewhere."""
        if self._process is not None:
            self.stop()
        command = [sys.executable, *(before or ("-m", "discreet.gateway.vault.vault"))]
        command += [str(self.policy), str(self.socket), str(os.getuid())]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | self.environment)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready"
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop the vault."""
        for link in self._links:
            link.close()
        self._links.clear()
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process of the vault."""
        assert self._process is not None
        return self._process

    def link(self) -> Link:
        """A new connection to the vault."""
        self._links.append(Link(self.socket))
        return self._links[-1]

    def call(self, verb: str, token: str | None, **arguments: Any) -> Frame:
        """One request over a connection of its own."""
        with self.link() as link:
            return link.call(verb, token, **arguments)

    def ask(self, token: str, sql: str = COUNT, **given: Any) -> Frame:
        """Ask a question."""
        return self.call("ask", token, sql=sql, **given)

    def value(self, token: str, verb: str, **arguments: Any) -> Any:
        """The JSON of a reply that must be fine."""
        reply = self.call(verb, token, **arguments)
        assert reply.header["ok"], reply.header
        return json.loads(reply.body)


class Link:
    """A blocking connection to a vault."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lock = threading.Lock()

    def call(self, verb: str, token: str | None, **arguments: Any) -> Frame:
        """The reply to a request."""
        with self._lock:
            self._socket.sendall(packed({"id": 1, "verb": verb, "token": token, "arguments": arguments}))
            frame = receive(self._socket)
        if frame is None:
            raise ConnectionError("the vault is gone")
        frame.header.pop("id", None)
        return frame

    def send(self, verb: str, token: str | None, **arguments: Any) -> None:
        """Send a request, and do not wait."""
        self._socket.sendall(packed({"id": 1, "verb": verb, "token": token, "arguments": arguments}))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer_in(reply: Frame) -> dict[str, Any]:
    """The answer in a reply, without whether it was bought before. Empty if the reply is a refusal."""
    return {name: value for name, value in json.loads(reply.body or b"{}").items() if name != "replayed"}
