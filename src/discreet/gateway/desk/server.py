"""The process of the desk: uvicorn and the server of the PostgreSQL protocol on sockets that are open already, TLS
included. It writes no log and no address.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument
from discreet.extras import need
from discreet.gateway.console.pages.every_page import SETUP
from discreet.gateway.console.site import Console
from discreet.gateway.desk.http import Desk, make_app, make_metrics_app
from discreet.gateway.desk.mcp import Agents, is_installed
from discreet.gateway.desk.rates import Gate, Rates
from discreet.gateway.frames import Link
from discreet.gateway.settings import Settings
from discreet.listening import is_loopback, load_certificate

SILENT = 1000
"""A level of logging that nothing reaches."""
GRACE = 100
"""Seconds beyond three answers that a desk takes to stop, at most: questions may wait for a lane."""


def serve_desk(
    listening: Sequence[socket.socket],
    vault: Path,
    settings: Settings,
    *,
    metrics: Sequence[socket.socket] = (),
    postgres: Sequence[socket.socket] = (),
    rates: Rates | None = None,
    ready: Callable[[], None] = lambda: None,
    setup: bool = False,
) -> None:
    """Serve analysts on these sockets, and metrics and the PostgreSQL protocol on those, until SIGTERM or SIGINT. Then
    requests that run are finished, and no new ones are taken. `ready` is called when requests are answered. With
    `setup`, the pages are those of a first run.
    """
    for module in ("uvicorn", "httptools", "jinja2"):
        need(module, "gateway", "discreet serve")
    context = tls_context(settings)
    for one in (*listening, *metrics, *postgres):
        _check_private(one, context)
    factory: Any = None
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:  # it is faster, and nothing else
        pass
    with asyncio.Runner(loop_factory=factory) as runner:
        console = Console(settings, SETUP if setup else None)
        runner.run(_serve(listening, vault, settings, metrics, postgres, rates, context, console, ready))


async def _serve(
    listening: Sequence[socket.socket],
    vault: Path,
    settings: Settings,
    metrics: Sequence[socket.socket],
    postgres: Sequence[socket.socket],
    rates: Rates | None,
    context: ssl.SSLContext | None,
    console: Console,
    ready: Callable[[], None],
) -> None:
    loop, link = asyncio.get_running_loop(), Link(vault)
    loop.set_exception_handler(lambda *_: None)  # what it would write might hold an address
    grace = math.ceil(3 * settings.answer_after) + GRACE
    gate, agents = Gate(rates or Rates()), Agents() if is_installed() else None
    app = make_app(link, gate=gate, oidc=settings.oidc, agents=agents, console=console)
    servers = [_server(app, listening, context, grace)]
    if metrics:
        servers.append(_server(make_metrics_app(link), metrics, context, grace))

    ending, wire = asyncio.Event(), None
    if postgres:
        from discreet.gateway.wire.server import wire_server

        wire = wire_server(link, settings, gate, context)
        await wire.start(postgres)

    def stop() -> None:
        ending.set()
        for server in servers:
            server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)

    async def announce() -> None:
        while not all(server.started for server in servers):
            await asyncio.sleep(0.01)
        ready()

    async def serve_wire() -> None:
        await ending.wait()
        if wire is not None:
            await wire.stop(grace)

    async with AsyncExitStack() as stack:
        stack.push_async_callback(link.close)
        if agents is not None:
            await stack.enter_async_context(agents.running())
        await asyncio.gather(announce(), serve_wire(), *(server.serve() for server in servers))


def _server(app: Desk, sockets: Sequence[socket.socket], context: ssl.SSLContext | None, grace: int) -> Any:
    import uvicorn

    from discreet.gateway.desk.connections import PATIENCE, Connections, bounded

    class Server(uvicorn.Server):
        """A server of uvicorn whose signals are those of the process, and whose sockets are given."""

        def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
            return nullcontext()

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            loop, self.servers = asyncio.get_running_loop(), []
            for one in sockets or ():
                found = await loop.create_server(
                    lambda: protocol(config=config, server_state=self.server_state, app_state={}, _loop=loop),
                    sock=one,
                    ssl=context,
                    backlog=config.backlog,
                    ssl_handshake_timeout=PATIENCE if context else None,
                )
                self.servers.append(found)
            self.started = True

        async def serve(self, sockets: list[socket.socket] | None = None) -> None:
            await super().serve(given)

    given, protocol = list(sockets), bounded(Connections())
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=SILENT,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=grace,
    )
    return Server(config)


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """TLS with the certificate of the settings. None without one."""
    if settings.certificate is None or settings.key is None:
        return None
    context = load_certificate(settings.certificate, settings.key)
    if context is None:
        raise InvalidArgument(
            "The certificate and the key of [gateway] cannot be read, or do not belong together. Name two PEM files "
            "that the desk's user can read.",
            code="gateway-certificate",
        )
    return context


def _check_private(listening: socket.socket, context: ssl.SSLContext | None) -> None:
    """Refuse a socket that other machines can reach without TLS, whatever the settings say."""
    if context is None and listening.family in (socket.AF_INET, socket.AF_INET6):
        host = str(listening.getsockname()[0])
        if not is_loopback(host):
            raise InvalidArgument(
                f"{host} can be reached from other machines, so it needs TLS. Add certificate and key to [gateway], or "
                "listen on 127.0.0.1.",
                code="gateway-tls",
            )
