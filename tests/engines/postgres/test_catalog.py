"""`discreet init postgresql://…`: the catalog tells tables, types and keys, no row is read, and the policy works."""

from __future__ import annotations

import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import discreet as dp
from discreet.cli import init as init_command
from discreet.engines.postgres import catalog
from discreet.engines.postgres.catalog import ForeignKey
from discreet.errors import EngineFailed

from ...refusing import refuses
from ..conftest import Server

ASKING = """
import socketserver

class Asking(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(1000)
        self.request.sendall(bytes([82, 0, 0, 0, 8, 0, 0, 0, 3]))
        self.request.recv(1000)

with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Asking) as made:
    print(made.server_address[1], flush=True)
    made.serve_forever()
"""


@contextmanager
def asking_for_a_password() -> Iterator[int]:
    """The port of a server that asks whoever connects for a password. A process, as libpq stops all threads of ours."""
    with subprocess.Popen([sys.executable, "-c", ASKING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def test_an_owner_is_told_why_a_database_cannot_be_opened(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no part of the URL, where a wrong mark may cut a password in two."""
    monkeypatch.setenv("HOME", str(tmp_path))
    there = urlsplit(server.url).netloc.rpartition("@")[2]
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    with asking_for_a_password() as port:
        said = {}
        for url in (
            f"postgresql://owner@127.0.0.1:{port}/x?sslmode=disable&gssencmode=disable",
            f"postgresql://postgres@{there}/nowhere_{tmp_path.name}",
            f"postgresql://owner@127.0.0.1:{closed}/x",
            "postgresql://owner:hunter2@127.0.0.1/x?hunter",
        ):
            with refuses(EngineFailed, "engine-unreachable") as caught:
                catalog.read_catalog(url)
            said[url] = str(caught.value)
    unsaid, refused, off, wrong = said.values()
    assert "asks for a password" in unsaid
    assert "refuses the role" in refused
    assert str(tmp_path / ".pgpass") in unsaid
    assert str(tmp_path / ".pgpass") in refused
    assert "No database server answers" in off
    assert "URL of the database is wrong" in wrong
    assert not any("hunter" in one or "nowhere" in one for one in said.values())


def test_a_database_becomes_a_policy_that_can_be_asked(server: Server, tmp_path: Path) -> None:
    name = f"init_{id(server)}"
    server.connection.execute(f"CREATE DATABASE {name}")
    url = server.url.rpartition("/")[0] + f"/{name}"
    import psycopg

    try:
        with psycopg.connect(url, autocommit=True) as made:
            made.execute("""
                CREATE TABLE patients (id int8 PRIMARY KEY, born date);
                CREATE TABLE visits (id int8 PRIMARY KEY, patient_id int8 REFERENCES patients, cost float8);
                CREATE TABLE labs (visit int8 REFERENCES visits, value float8);
                CREATE TABLE cities (name text);
                CREATE VIEW seen AS SELECT * FROM visits;
                INSERT INTO patients SELECT n, DATE '1980-01-01' FROM generate_series(1, 400) AS n;
                INSERT INTO visits SELECT n, 1 + n % 400, 5 FROM generate_series(1, 400) AS n;
                INSERT INTO labs SELECT n, 1 FROM generate_series(1, 400) AS n;
            """)
            read = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
            made.execute("SELECT pg_stat_force_next_flush()") if made.info.server_version >= 150_000 else None
            before = made.execute(read).fetchone()
            init_command.main([url], tmp_path / "clinic.toml")
            assert made.execute(read).fetchone() == before
        tables = tomllib.loads((tmp_path / "clinic.toml").read_text("utf-8"))["tables"]
        assert tables == {
            "labs": {"source": "public.labs", "through": "visit -> visits.id"},
            "patients": {"source": "public.patients", "person": "id"},
            "visits": {"source": "public.visits"},
        }
        found = catalog.read_catalog(url)
        assert ForeignKey("labs", "visit", "visits", "id") in found.foreign_keys
        assert list(found.left_out) == ["public.seen"]
        assert "CREATE MATERIALIZED VIEW" in found.left_out["public.seen"]
        clinic = dp.connect(tmp_path / "clinic.toml")
        answer = clinic.sql("SELECT COUNT(*) AS n FROM labs", epsilon=0.9).table
        assert abs(answer["n"][0].as_py() - 400) < 400
        del clinic
    finally:
        server.connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
