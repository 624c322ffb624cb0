"""A real, empty PostgreSQL with the tables of a policy: what our catalog is compared with.

It is made to hold what our catalog says it holds: one database, one account that may only read, and tables that this
account sees, with their comments.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.gateway.catalog import facts

READER = "alice"
DATABASE = "clinic"


def find_programs() -> Path | None:
    """The folder of PostgreSQL 15's programs, if it is installed."""
    folder = Path("/usr/lib/postgresql/15/bin")
    return folder if (folder / "pg_ctl").exists() else None


@contextmanager
def serve(folder: Path, tables: Mapping[str, Any], settings: Sequence[str] = ()) -> Iterator[str]:
    """Start such a server in a folder, and stop it at the end. Gives its URL."""
    programs = find_programs()
    assert programs is not None
    become: list[str] = []
    if shutil.which("setpriv") and Path("/proc/self").owner() == "root":
        shutil.chown(folder, "postgres", "postgres")
        become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
    data = folder / "data"
    make = ["initdb", "-D", data, "-U", READER, "-A", "trust", "-E", "UTF8", "--no-locale"]
    _run([*become, programs / make[0], *make[1:]], folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "autovacuum=off", "fsync=off"]
    said = " ".join(f"-c {option}" for option in [*options, *settings])
    control = [*become, programs / "pg_ctl", "-w", "-D", data]
    _run([*control, "-o", said, "-l", folder / "log", "start"], folder)
    try:
        _fill(f"postgresql://{READER}@127.0.0.1:{port}", tables)
        yield f"postgresql://{READER}@127.0.0.1:{port}/{DATABASE}"
    finally:
        _run([*control, "-m", "immediate", "stop"], folder)


def statements_of(tables: Mapping[str, Any]) -> Iterator[str]:
    """The statements that make the tables, and leave their owner only the right to read them."""
    for table in facts.read_tables(tables):
        name = f"public.{_quoted(table.name)}"
        columns = ", ".join(f"{_quoted(one.name)} {one.type.sql}" for one in table.columns)
        yield f"CREATE TABLE {name} ({columns})"
        yield f"COMMENT ON TABLE {name} IS {_text(table.comment)}"
        for one in table.columns:
            if one.comment:
                yield f"COMMENT ON COLUMN {name}.{_quoted(one.name)} IS {_text(one.comment)}"
        yield f"REVOKE ALL ON {name} FROM {READER}"
        yield f"GRANT SELECT ON {name} TO {READER}"


def _fill(server: str, tables: Mapping[str, Any]) -> None:
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
    with psycopg.connect(f"{server}/{DATABASE}", autocommit=True) as connection:
        for statement in statements_of(tables):
            connection.execute(statement)
        for statement in (
            *_NO_TOAST,
            "DELETE FROM pg_statistic",
            "UPDATE pg_class SET relpages = 0, reltuples = -1, relallvisible = 0",
            "DELETE FROM pg_description WHERE classoid IN ('pg_proc'::regclass, 'pg_operator'::regclass)",
            "UPDATE pg_database SET datistemplate = false",
            "DROP DATABASE postgres",
            "DROP DATABASE template0",
            "DROP DATABASE template1",
            f"REVOKE ALL ON DATABASE {DATABASE} FROM {READER}, PUBLIC",
            f"GRANT CONNECT ON DATABASE {DATABASE} TO {READER}",
            "REVOKE CREATE ON SCHEMA public FROM pg_database_owner",
            f"ALTER ROLE {READER} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        ):
            connection.execute(statement)


_TOAST = "SELECT reltoastrelid FROM pg_class WHERE relnamespace = 2200"
_NO_TOAST = (
    f"DELETE FROM pg_attribute WHERE attrelid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ({_TOAST}))",
    f"DELETE FROM pg_class WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ({_TOAST}))",
    f"DELETE FROM pg_index WHERE indrelid IN ({_TOAST})",
    f"DELETE FROM pg_attribute WHERE attrelid IN ({_TOAST})",
    f"DELETE FROM pg_class WHERE oid IN ({_TOAST})",
    "UPDATE pg_class SET reltoastrelid = 0 WHERE relnamespace = 2200",
)
"""Tables that hold nothing need no place for long texts. Our catalog has none either."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _run(command: list[object], folder: Path) -> None:
    # output goes to a file: the server keeps a pipe open, and a reader would wait for it for ever
    said = folder.parent / f"{folder.name}.said"
    with said.open("wb") as out:
        code = subprocess.run(list(map(str, command)), cwd="/", stdout=out, stderr=out, check=False).returncode
    text = said.read_text(errors="replace")
    said.unlink()
    assert code == 0, f"{command[0]}: {text}"
