"""A whole gateway for tests: `discreet serve` with its vault and its desk, reached over HTTP."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx

import discreet

from .house import House

VAULT, DESK, OTHER = 64101, 64102, 64103
"""Users that need no name."""
USERS = f'users = ["{VAULT}", "{DESK}"]\n'
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPATH": os.pathsep.join(str(Path(one.__file__).parents[1]) for one in (discreet, duckdb)),
    "SECRET_OF_TESTS": "postgresql://owner:hunter2@db/clinic",
}
COMMAND = ("-c", "from discreet.cli import main; main()")


@functools.cache
def python_for_all() -> str | None:
    """A Python of this version that other users can run: the one of the tests may be in the home of root."""
    same = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    for one in (sys.executable, shutil.which(same) or ""):
        with contextlib.suppress(OSError):
            if one and as_user(DESK, one, "-c", "import json, socket").returncode == 0:
                return one
    return None


def as_user(user: int, *command: str, group: int | None = None, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as another user, without groups."""
    who = {} if user == os.geteuid() else {"user": user, "group": group or user, "extra_groups": []}
    known: dict[str, Any] = {"capture_output": True, "text": True, "cwd": "/", "env": ENVIRONMENT, "timeout": 60}
    return subprocess.run(command, **(known | who | given))


class Served(House):
    """The files of a gateway, and `discreet serve` while it runs."""

    python = sys.executable
    url = ""
    postgres: tuple[str | None, int | None] = (None, None)

    def serve(self, *options: str, before: tuple[str, ...] = ()) -> Served:
        """Start it. `before` is a program that runs it."""
        with open(self.folder / "errors", "ab") as errors:
            self._process = subprocess.Popen(
                [*before, self.python, *COMMAND, "serve", str(self.policy), *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=ENVIRONMENT,
                cwd="/",
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready", self.errors
        self.url = self._process.stdout.readline().split()[1]
        return self

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return (self.folder / "errors").read_text()

    def run(self, *words: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command of `discreet`."""
        return as_user(os.geteuid() if user is None else user, self.python, *COMMAND, *words)

    def children(self, parent: int | None = None) -> dict[str, int]:
        """The processes "vault.vault", "desk.process" and "vault.worker", by where their programs are."""
        found = {}
        parent = self.process.pid if parent is None else parent
        for number in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
            found[words[words.index(b"-m") + 1].decode().removeprefix("discreet.gateway.")] = int(number)
        return found

    def post(self, token: str, sql: str, key: str | None = None, **given: Any) -> httpx.Response:
        """Ask a question, over a connection of its own."""
        headers = {"Authorization": f"Bearer {token}"} | ({} if key is None else {"Idempotency-Key": key})
        given = {"json": {"sql": sql}, "headers": headers, "trust_env": False, "timeout": 60} | given
        return httpx.post(f"{self.url}/v1/questions", **given)


@contextlib.contextmanager
def served(folder: Path, gateway: str = "answer_after = 0\n", **given: Any) -> Iterator[Served]:
    """A gateway that is stopped at the end, if it was started."""
    made = Served(folder, gateway if gateway.startswith("http") else f'http = "127.0.0.1:0"\n{gateway}', **given)
    try:
        yield made
    finally:
        if made._process is not None:
            made.stop()


@contextlib.contextmanager
def served_as_root(gateway: str = "answer_after = 0\n", **given: Any) -> Iterator[Served]:
    """A gateway in a folder that other users can enter, with files of the vault's user."""
    python = python_for_all()
    assert python is not None
    folder = Path(tempfile.mkdtemp(prefix="clinic-"))
    folder.chmod(0o755)
    try:
        with served(folder / "clinic", USERS + gateway, **given) as made:
            made.python = python
            give_to_vault(made.folder)
            yield made
    finally:
        shutil.rmtree(folder)


def give_to_vault(folder: Path) -> None:
    """What the owner does once: all files belong to the vault alone. The folder may be entered, for the tests."""
    for path in folder.rglob("*"):
        os.chown(path, VAULT, VAULT)
        path.chmod(0o700 if path.is_dir() else 0o600)
    os.chown(folder, VAULT, VAULT)
    folder.chmod(0o711)


def killed(number: int) -> None:
    """kill -9."""
    os.kill(number, signal.SIGKILL)
