"""A whole gateway over the PostgreSQL protocol: `discreet serve`, psql, psycopg, an upgrade and a stop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from discreet.gateway.books import accounts
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.wire.session import KNOWN_FOR

from ..certificates import write_certificate
from ..served import Served

COUNT = "SELECT COUNT(*) AS n FROM visits"


class Gateway(Served):
    """A gateway with an address for the PostgreSQL protocol."""

    postgres = ""
    secret = ""

    def dsn(self, **options: str) -> str:
        address = urlsplit(self.postgres)
        given = {"host": address.hostname, "port": address.port, "dbname": address.path.removeprefix("/")}
        given |= {"user": "alice", "password": self.secret} | options
        return " ".join(f"{name}='{value}'" for name, value in given.items())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def begin(gateway: str = "answer_after = 0\n") -> Gateway:
        place = f'http = "127.0.0.1:0"\npostgres = "127.0.0.1:0"\nlog = "{tmp_path}/log"\n'
        made.append(Gateway(tmp_path / "clinic", place + gateway))
        made[0].secret = made[0].open("alice")
        made[0].serve("--not-isolated")
        assert made[0].process.stdout is not None
        made[0].postgres = made[0].process.stdout.readline().split()[1]
        return made[0]

    yield begin
    for one in made:
        one.stop()


def wait_until(said: Callable[[], Any]) -> None:
    for _ in range(2400):
        if said():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to that")


@pytest.mark.slow
def test_psql_and_psycopg_ask_and_are_charged_once(start: Callable[..., Gateway], install) -> None:
    install(lambda: shutil.which("psql"), "postgresql-client")
    gateway = start()
    words = ["psql", "-X", "-A", "-t", gateway.dsn(), "-c", "SET discreet.epsilon = 0.5", "-c", COUNT, "-c", COUNT]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    _, first, second = found.stdout.splitlines()
    assert first == second
    assert len(gateway.charges()) == 1
    assert subprocess.run([*words[:5], "-c", "\\d visits"], capture_output=True, text=True).stdout.startswith(
        "id|bigint"
    )
    with psycopg.connect(gateway.dsn(options="-c discreet.epsilon=0.5"), autocommit=True) as connection:
        [(again, _)] = connection.execute(COUNT).fetchall()
    assert f"{again}|" in first
    assert len(gateway.charges()) == 1


@pytest.mark.slow
def test_describing_is_free(start: Callable[..., Gateway]) -> None:
    gateway = start()
    with psycopg.connect(gateway.dsn(), autocommit=True) as connection:
        connection.pgconn.prepare(b"s", COUNT.encode())
        found = connection.pgconn.describe_prepared(b"s")
        assert found.fname(0) == b"n"
        assert gateway.charges() == []
        assert connection.pgconn.exec_prepared(b"s", []).ntuples == 1
        assert len(gateway.charges()) == 1


@pytest.mark.slow
def test_a_revoked_or_suspended_token_ends_its_connections(start: Callable[..., Gateway]) -> None:
    gateway = start()
    with psycopg.connect(gateway.dsn(), autocommit=True) as connection:
        connection.execute(COUNT)
        given = {"by": COMMAND_LINE, "now": time.time()}
        accounts.set_suspended(gateway.store, "alice", suspended=True, **given)
        with pytest.raises(psycopg.Error):
            connection.execute(COUNT)
        accounts.set_suspended(gateway.store, "alice", suspended=False, **given)
        connection.execute(COUNT)
        accounts.revoke_all(gateway.store, "alice", **given)
        with pytest.raises(psycopg.Error):
            connection.execute(COUNT)
        time.sleep(KNOWN_FOR)  # the catalog is at the desk, which asks the vault now and then
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT relname FROM pg_class")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(gateway.dsn())
    assert len(gateway.charges()) == 1


@pytest.mark.slow
def test_a_login_is_bound_to_the_certificate(start: Callable[..., Gateway], tmp_path: Path) -> None:
    write_certificate(tmp_path, "127.0.0.1")
    gateway = start(f'answer_after = 0\ncertificate = "{tmp_path}/certificate.pem"\nkey = "{tmp_path}/key.pem"\n')
    given = {"sslmode": "verify-full", "sslrootcert": f"{tmp_path}/certificate.pem", "channel_binding": "require"}
    with psycopg.connect(gateway.dsn(**given), autocommit=True) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute(COUNT).fetchall()
    words = ["psql", "-X", gateway.dsn(**given), "-A", "-t", "-c", "\\conninfo"]
    assert "SSL connection" in subprocess.run(words, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.slow
def test_an_upgrade_ends_connections_after_what_they_run(start: Callable[..., Gateway]) -> None:
    gateway = start('answer_after = "1s"\n')
    found: list[Any] = []

    def ask() -> None:
        with psycopg.connect(gateway.dsn(), autocommit=True) as connection:
            found.append(connection.execute(COUNT).fetchall())
            wait_until(lambda: _is_ended(connection))
            found.append("ended")

    thread = threading.Thread(target=ask)
    with psycopg.connect(gateway.dsn(), autocommit=True) as idle:
        idle.execute("SELECT 1")
        thread.start()
        wait_until(lambda: len(gateway.charges()) == 1)
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "replaced" in (gateway.folder.parent / "log").read_text())
        with psycopg.connect(gateway.dsn(), autocommit=True) as new:
            assert new.execute("SELECT 1").fetchall() == [(1,)]
            wait_until(lambda: _is_ended(idle))
            thread.join(120)
            again = new.execute(COUNT).fetchall()
    assert found == [again, "ended"]
    assert len(gateway.charges()) == 1


def _is_ended(connection: psycopg.Connection[Any]) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:  # of which 57P01 is one
        return True
    return False


def _is_alive(process: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_vault_that_was_killed_forgets_sessions(start: Callable[..., Gateway]) -> None:
    gateway = start()
    with psycopg.connect(gateway.dsn(), autocommit=True) as connection:
        connection.execute(COUNT)
        vault = gateway.children()["vault.vault"]
        os.kill(vault, signal.SIGKILL)
        wait_until(lambda: not _is_alive(vault))
        with pytest.raises(psycopg.Error):
            connection.execute(COUNT)

    def asked() -> bool:
        try:
            with psycopg.connect(gateway.dsn(), autocommit=True) as new:
                return bool(new.execute(COUNT).fetchall())
        except psycopg.Error:
            return False

    wait_until(asked)
    assert len(gateway.charges()) == 1
