"""Accounts and servers for the tests of the PostgreSQL protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..clinics import Clinic
from .a_wire import Accounts, Wire, wire
from .raw import Client


class Doors:
    """A server, and the token of alice."""

    def __init__(self, running: Wire, clinic: Clinic) -> None:
        self.wire, self.clinic = running, clinic
        self.log = running.log
        clinic.open("alice")
        self.token = clinic.do("token", account="alice")["token"]
        self._clients: list[Client] = []

    def raw(self) -> Client:
        """A connection that has not logged in."""
        self._clients.append(Client(self.wire.connect()))
        return self._clients[-1]

    def client(self, **options: str) -> Client:
        """A connection that has logged in."""
        made = self.raw()
        assert made.log_in("alice", self.token, **options)[-1].kind == "Z"
        return made

    def dsn(self, **options: str) -> str:
        """How libpq connects."""
        given = {"host": "127.0.0.1", "port": str(self.wire.port), "user": "alice", "password": self.token} | options
        return " ".join(f"{name}='{value}'" for name, value in given.items())

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def doors(tmp_path: Path, clinic: Clinic) -> Iterator[Doors]:
    """A server without TLS."""
    with wire(Accounts(clinic.store, lambda: clinic.time)) as running:
        made = Doors(running, clinic)
        yield made
        made.close()
