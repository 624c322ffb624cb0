"""The server of the PostgreSQL protocol: it accepts connections on the sockets of the desk, counts and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.gateway.desk.http import Vault
from discreet.gateway.desk.rates import Gate, network_of
from discreet.gateway.settings import Settings
from discreet.gateway.wire.connection import Connection, OpenSession, Surroundings
from discreet.gateway.wire.dialog import Session
from discreet.gateway.wire.format import messages
from discreet.gateway.wire.format.messages import Fatal, Reader, Stream
from discreet.gateway.wire.login import certificate_hash

MOST = 2048
"""Connections at the same time, at most."""
MOST_WAITING = 512
"""Connections that have not logged in yet, at most."""
MOST_WAITING_EACH = 64
"""Connections of one address that have not logged in yet, at most."""
MOST_EACH = 1024
"""Connections of one account, at most."""


class Places:
    """How many connections there are: before the login by address, and after it by account."""

    def __init__(
        self, most: int = MOST, waiting: int = MOST_WAITING, each: int = MOST_WAITING_EACH, account: int = MOST_EACH
    ) -> None:
        self._most, self._most_waiting, self._most_each, self._most_of_account = most, waiting, each, account
        self._waiting: dict[str, int] = {}
        self._accounts: dict[str, int] = {}
        self.count = self.waiting = 0

    def enter(self, network: str) -> bool:
        """Count a connection before its login. False if there are too many."""
        full = self.count >= self._most or self.waiting >= self._most_waiting
        if full or self._waiting.get(network, 0) >= self._most_each:
            return False
        self.count, self.waiting = self.count + 1, self.waiting + 1
        _add(self._waiting, network, 1)
        return True

    def move(self, network: str, account: str) -> bool:
        """Somebody has logged in. False if the account has too many connections."""
        _add(self._waiting, network, -1)
        _add(self._accounts, account, 1)
        self.waiting -= 1
        return self._accounts[account] <= self._most_of_account

    def leave(self, network: str, account: str | None) -> None:
        """A connection has ended."""
        self.count -= 1
        if account is None:
            self.waiting -= 1
            _add(self._waiting, network, -1)
        else:
            _add(self._accounts, account, -1)


def _add(counts: dict[str, int], name: str, number: int) -> None:
    counts[name] = counts.get(name, 0) + number
    if not counts[name]:
        del counts[name]


class WireServer:
    """Accepts connections until it is stopped."""

    def __init__(
        self,
        vault: Vault,
        *,
        gate: Gate,
        context: ssl.SSLContext | None = None,
        certificate: str | None = None,
        open_session: OpenSession | None = None,
        places: Places | None = None,
        **given: Any,
    ) -> None:
        self.places = places or Places()
        opened = open_session or session_opener()
        self.shared = Surroundings(vault, opened, self.places, gate, context, certificate, **given)
        self._servers: list[asyncio.Server] = []
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._is_ending = False

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections on these sockets."""
        loop = asyncio.get_running_loop()
        for one in sockets:
            self._servers.append(await loop.create_server(self._protocol, sock=one, backlog=1024))

    def _protocol(self) -> asyncio.Protocol:
        return asyncio.StreamReaderProtocol(Reader(), self._connected)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, Reader)
        stream = Stream(reader, writer)
        network = network_of(stream.address("peername"))
        if not self.places.enter(network):
            full = Fatal("There are too many connections. Try again later.", state="53300")
            writer.write(messages.error(full))
            writer.close()
            return
        raw = writer.get_extra_info("socket")
        if raw is not None:
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # otherwise one that is gone stays forever
        connection = Connection(self.shared, stream)
        task = asyncio.get_running_loop().create_task(connection.serve())
        self._connections[connection] = task
        task.add_done_callback(lambda done: self._ended(connection, network, done))
        if self._is_ending:
            connection.stop()

    def _ended(self, connection: Connection, network: str, done: asyncio.Task[None]) -> None:
        del self._connections[connection]
        self.places.leave(network, connection.account)
        if not done.cancelled():
            done.exception()  # it is known, and shown to nobody

    async def stop(self, grace: float) -> None:
        """Accept nothing more, and end connections when what they run has ended, or after so many seconds."""
        self._is_ending = True
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.stop()
        if self._connections:
            await asyncio.wait(list(self._connections.values()), timeout=grace)
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            await asyncio.wait(list(self._connections.values()), timeout=1)


def wire_server(vault: Vault, settings: Settings, gate: Gate, context: ssl.SSLContext | None) -> WireServer:
    """The server of a desk with these settings."""
    pem = None if context is None or settings.certificate is None else Path(settings.certificate).read_bytes()
    return WireServer(vault, gate=gate, context=context, certificate=None if pem is None else certificate_hash(pem))


def session_opener() -> OpenSession:
    """What opens sessions. Connections share what is known about the catalogs."""
    from discreet.gateway.catalog.catalog import Catalog
    from discreet.gateway.wire.catalogs import Catalogs
    from discreet.gateway.wire.session import open_session

    catalogs = Catalogs(lambda tables, database: Catalog(tables, database=database))

    async def opened(vault: Vault, token: str, **given: Any) -> Session:
        return await open_session(vault, catalogs, token, **given)

    return opened
