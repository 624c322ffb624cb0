"""A PostgreSQL server of its own for a benchmark, from Debian's `postgresql` or the PATH, and gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Server(NamedTuple):
    url: str
    process: int


def programs() -> Path | None:
    """The folder of the newest PostgreSQL, if there is one."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    control = versions[-1] if versions else shutil.which("pg_ctl")
    return Path(control).resolve().parent if control else None


def version(folder: Path) -> str:
    printed = subprocess.run([folder / "pg_ctl", "--version"], capture_output=True, text=True).stdout
    return printed.partition("(PostgreSQL) ")[2].partition(".")[0]


@contextlib.contextmanager
def server(folder: Path, settings: Mapping[str, Any]) -> Iterator[Server]:
    """Started with these settings on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as home:
        become: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(home, "postgres", "postgres")
            become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

        def run(program: str, *words: str) -> None:
            command = [*become, str(folder / program), "-D", f"{home}/data", *words]
            subprocess.run(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

        own = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""} | dict(settings)
        run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8")
        options = " ".join(f"-c {name}={value}" for name, value in own.items())
        run("pg_ctl", "-w", "-o", options, "-l", f"{home}/log", "start")
        try:
            process = int(Path(home, "data", "postmaster.pid").read_text().split()[0])
            yield Server(f"postgresql://postgres@127.0.0.1:{port}/postgres", process)
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
