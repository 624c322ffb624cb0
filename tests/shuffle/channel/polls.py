"""Polls for tests: a small task with its keys in a folder, both halves of the channel, and services that really run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import discreet as dp
from discreet.cli.shuffle.options import files_of
from discreet.shuffle.channel import admission, blind_rsa, keys
from discreet.shuffle.channel.analyzer import Analyzer
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.opening import Openers
from discreet.shuffle.channel.results import AnalyzerStore
from discreet.shuffle.channel.shuffler import Shuffler
from discreet.shuffle.channel.store import ShufflerStore
from discreet.shuffle.channel.task import Task
from discreet.shuffle.fakes import Fakes

CHOICES = ("canary-of-Haifa", "canary-of-Tours", "canary-of-Kyoto")
EMPTY = len(CHOICES)
EPSILON, DELTA = 8.0, 0.05


def described(minimum: int) -> dict:
    """A histogram whose every client sends its choice and one message more, which is a fake or empty."""
    fakes = 0.99 if minimum < 40 else 0.5
    return Fakes(clients=10_000, minimum=minimum, honest=0.8, choices=CHOICES, fakes=fakes).described()


@dataclass
class Poll:
    """A task on disk, and where its services keep things."""

    path: Path
    shuffler_at: str
    analyzer_at: str
    ledger_at: str

    @property
    def task(self) -> Task:
        return Task.load(self.path)

    @property
    def issuer(self) -> keys.ShufflerKeys:
        return keys.ShufflerKeys.load(files_of(self.path).shuffler_key)

    def token(self, client: int | None = None) -> bytes:
        name = None if client is None else f"client-{client:09}".encode()
        return keys.token_for(self.issuer.registration, self.task.hash, name)

    def exact(self, client: int, choice: int) -> tuple[bytes, bytes]:
        """An upload without noise: a choice and an empty message. The published counts are then exact."""
        token = self.token(client)
        return token, Client(self.task, token).envelope([choice, EMPTY])

    def shuffler(self, processes: int = 1) -> Shuffler:
        file = files_of(self.path).shuffler_key
        store = ShufflerStore(self.shuffler_at, self.task.hash)
        return Shuffler(self.task, keys.ShufflerKeys.load(file), store, openers=Openers(processes), key_file=file)

    def analyzer(self, processes: int = 1) -> Analyzer:
        file = files_of(self.path).analyzer_key
        store = AnalyzerStore(self.analyzer_at, self.task.hash)
        return Analyzer(
            self.task, keys.AnalyzerKeys.load(file), store, self.ledger(), openers=Openers(processes), key_file=file
        )

    def ledger(self) -> dp.Ledger:
        limit = dp.Approx(epsilon=EPSILON, delta=DELTA)
        unit = dp.row(neighbors="replace")
        beside = self.path.with_name("checkpoint")
        return dp.Ledger.open(self.ledger_at, protects=unit, limit=limit, rule="basic", checkpoint=beside)


@lru_cache
def signer(number: int = 0) -> blind_rsa.PrivateKey:
    """An issuer's key: a small one, the same for all tests."""
    return blind_rsa.generate(blind_rsa.SMALLEST)


def make_poll(
    folder: Path,
    place: tuple[str, str, str] | None = None,
    minimum: int = 10,
    description: dict | None = None,
    *,
    admission_by: blind_rsa.PrivateKey | None = None,
) -> Poll:
    """A new task; without a place its databases are files beside it."""
    path = folder / "poll.toml"
    files = files_of(path)
    own = keys.ShufflerKeys.made()
    other = replace(keys.AnalyzerKeys.made(), operator=own.operator)
    task = Task(
        description=description or described(minimum),
        epsilon=EPSILON,
        delta=DELTA,
        shuffler_key=keys.public_of(own.outer),
        analyzer_key=keys.public_of(other.inner),
        issuer_key=admission_by.modulus if admission_by else b"",
    )
    if admission_by:
        admission.save_key(admission_by, files.issuer_key)
    own.save(files.shuffler_key)
    other.save(files.analyzer_key)
    task.save(path)
    return Poll(path, *(place or (str(files.shuffler_store), str(files.analyzer_store), str(files.ledger))))


def finish(shuffler: Shuffler, analyzer: Analyzer) -> dict | None:
    """Close in one process: seal, deliver, analyze, acknowledge."""
    shuffler.seal()

    def post(batch: bytes) -> str:
        said = analyzer.receive(batch)
        analyzer.analyze()
        return said

    shuffler.deliver(post, lambda: analyzer.store.standing()[0])
    return analyzer.store.standing()[1]


def counts(result: dict) -> list[float]:
    return [count for _, count in result["value"]]


# --- services that run --------------------------------------------------------------------------------------


class Service:
    """A process of the command line, or of a test's own script, and where it listens."""

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self.log = log
        with log.open("ab") as out:
            self.before = out.tell()
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | environment)

    @cached_property
    def url(self) -> str:
        """Where it listens, once it does."""
        start = self.before
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            said = self.log.read_text()[start:]
            if (found := re.search(r"https?://\S+(?=\n)", said)) is not None:
                return found[0]
            assert self.process.poll() is None, said
            time.sleep(0.02)
        raise AssertionError("the service did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def serve(poll: Poll, name: str, log: Path, *arguments: str, port: str = "0") -> Service:
    """`discreet shuffle shuffler …`, on a free port."""
    store = poll.shuffler_at if name == "shuffler" else poll.analyzer_at
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "shuffle", name, str(poll.path)]
    return Service([*command, "--port", port, "--store", store, *arguments], log)


@contextlib.contextmanager
def services(poll: Poll, folder: Path) -> Iterator[tuple[Service, Service]]:
    """Both services, running; the task file says where."""
    poll.ledger().close()
    port = free_port()  # known before it is used, so that both can start at once
    analyzer = serve(poll, "analyzer", folder / "analyzer.log", "--ledger", poll.ledger_at, port=port)
    shuffler = serve(poll, "shuffler", folder / "shuffler.log", "--analyzer", f"http://127.0.0.1:{port}")
    text = poll.path.read_text().replace("http://127.0.0.1:7002", shuffler.url)
    poll.path.write_text(text.replace("http://127.0.0.1:7001", analyzer.url))
    try:
        yield shuffler, analyzer
    finally:
        shuffler.stop()
        analyzer.stop()
