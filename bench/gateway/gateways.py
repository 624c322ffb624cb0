"""Gateways for the benchmarks: a policy, an account and a running pair of vault and desk, gone afterwards."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DISCREET = (sys.executable, "-c", "from discreet.cli import main; main()")
POLICY = """\
[ledger]
path = "clinic.ledger"
epsilon = 100000.0
delta = 1e-5

[unit]
person = "id"

[tables.visits]
source = "{source}"
rows_per_person = 10
[tables.visits.columns.city]
choices = ["a", "b", "c"]
[tables.visits.columns.cost]
between = [0, 100]

[gateway]
http = "127.0.0.1:0"
{more}
"""


class Desk:
    """A running gateway: where it is, and a token for each account."""

    def __init__(self, url: str, policy: Path, pid: int, postgres: str = "") -> None:
        self.url, self.policy, self.pid, self.postgres = url, policy, pid, postgres

    def token(self, name: str, *, epsilon: float = 10_000) -> str:
        """The token of a new account."""
        _command("account", self.policy, "open", name, "--epsilon", str(epsilon))
        return _command("account", self.policy, "token", name).split()[-1]

    def connect(self, token: str) -> Client:
        """A new connection with this token."""
        return Client(self.url, token)


class Client:
    """One connection that is kept open."""

    def __init__(self, url: str, token: str) -> None:
        where = urlsplit(url)
        self._connection = http.client.HTTPConnection(where.hostname or "", where.port)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """The status and the body of a reply."""
        text = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, text, self._headers)
            reply = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was idle for too long
            self._connection.close()
            self._connection.request(method, path, text, self._headers)
            reply = self._connection.getresponse()
        return reply.status, reply.read()

    def ask(self, sql: str, **given: Any) -> Any:
        """The answer to a question."""
        status, body = self.send("POST", "/v1/questions", {"sql": sql, **given})
        if status != 200:
            raise RuntimeError(body.decode())
        return json.loads(body)

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def gateway(folder: Path, source: Path, more: str) -> Iterator[Desk]:
    """A gateway on a file with visits. `more` are further lines of [gateway]."""
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "clinic.toml"
    policy.write_text(POLICY.format(source=source, more=more))
    process = subprocess.Popen(
        [*DISCREET, "serve", str(policy), "--not-isolated"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the gateway did not start")
        url = process.stdout.readline().split()[-1]
        postgres = process.stdout.readline().split()[-1] if "postgres =" in more else ""
        yield Desk(url, policy, process.pid, postgres)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)
        if process.stdout is not None:
            process.stdout.close()


def _command(*words: Any) -> str:
    run = subprocess.run([*DISCREET, *map(str, words)], capture_output=True, text=True, check=True, env=environment())
    return run.stdout


def environment() -> dict[str, str]:
    """The variables of a process that finds the same modules."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def timed(call: Any) -> float:
    """How many seconds a call takes."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
