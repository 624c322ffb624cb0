"""One test body for both stores: every test that takes `place` runs on SQLite and on a real PostgreSQL.

PostgreSQL is the one at $DISCREET_TEST_POSTGRES, or one that is started here on loopback, on a free port, in a folder
of its own. Where it is missing, Debian's `postgresql` is installed when we may; otherwise those tests are skipped, with
the reason.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet as dp

WORKER = Path(__file__).with_name("worker.py")
_numbers = itertools.count()


class Place:
    """Where a test keeps its ledger: a target, and the file for its checkpoint."""

    def __init__(self, target: str, checkpoint: Path) -> None:
        self.target, self.checkpoint = target, checkpoint

    @property
    def is_file(self) -> bool:
        return not self.target.startswith("postgresql")

    @property
    def path(self) -> Path:
        assert self.is_file
        return Path(self.target)

    def open(self, limit=None, protects=None, **terms):
        """The ledger; made with `limit`, or found without."""
        if limit is not None:
            terms |= {"limit": limit, "protects": protects or dp.row()}
        return dp.Ledger.open(self.target, checkpoint=self.checkpoint, **terms)


def run_worker(task: str, place: Place, *arguments: object, mutant: str = "") -> dict:
    """Run one task of worker.py in a process of its own, perhaps with a broken ledger, and read what it says."""
    command = [sys.executable, "-W", "error", str(WORKER), task, place.target, str(place.checkpoint)]
    environment = os.environ | {"DISCREET_TEST_MUTANT": mutant}
    done = subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place(str(tmp_path / "clinic.ledger"), tmp_path / "clinic.ledger.checkpoint")
        return
    url = request.getfixturevalue("postgres")
    schema = f"t{os.getpid()}_{next(_numbers)}"
    yield Place(f"{url}#{schema}", tmp_path / "checkpoint")
    _drop(url, schema)


@pytest.fixture
def file_place(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "clinic.ledger"), tmp_path / "clinic.ledger.checkpoint")


def _drop(url: str, schema: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(scope="session")
def postgres(install) -> Iterator[str]:
    """The URL of a real server."""
    given = os.environ.get("DISCREET_TEST_POSTGRES")
    if given:
        yield given
        return
    install(_found, "postgresql")
    programs = _found()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="discreet_postgres_") as folder:
        yield from _serve(programs, Path(folder))


def _found() -> Path | None:
    """The folder of initdb and pg_ctl."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("pg_ctl")
    return versions[-1].parent if versions else Path(on_path).resolve().parent if on_path else None


def _serve(programs: Path, folder: Path) -> Iterator[str]:
    """Start a server on loopback and a free port, as the user postgres when we are root; stop it at the end."""
    become: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
    data = folder / "data"
    _run([*become, programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"], folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c max_connections=200"
    control = [*become, programs / "pg_ctl", "-w", "-D", data]
    _run([*control, "-o", options, "-l", folder / "log", "start"], folder)
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        _run([*control, "-m", "immediate", "stop"], folder)


def _run(command: list[object], folder: Path) -> None:
    # output goes to a file: the server keeps a pipe open, and a reader would wait for it for ever
    said = folder.parent / f"{folder.name}.said"
    with said.open("wb") as out:
        code = subprocess.run(list(map(str, command)), cwd="/", stdout=out, stderr=out, check=False).returncode
    text = said.read_text(errors="replace")
    said.unlink()
    assert code == 0, f"{command[0]}: {text}"
