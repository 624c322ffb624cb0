"""A desk on a free port, in front of a vault that answers verbs from a table. Both are real servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from discreet.gateway.console.site import Console
from discreet.gateway.desk.http import make_app, make_metrics_app
from discreet.gateway.desk.mcp import Agents
from discreet.gateway.desk.rates import Rates
from discreet.gateway.desk.server import _server
from discreet.gateway.frames import Frame, Link, serve_frames
from discreet.gateway.settings import OidcSettings

TOKEN = "dsc_alice_0123456789abcdef"
Verbs = dict[str, Frame | Callable[[Frame], Frame] | Callable[[Frame], Awaitable[Frame]]]


def said(body: bytes = b"{}", kind: str = "application/json") -> Frame:
    return Frame({"ok": True, "type": kind}, body)


def refused(kind: str, code: str, message: str = "No.", **more: Any) -> Frame:
    return Frame({"ok": False, "kind": kind, "code": code, "message": message, **({"more": more} if more else {})})


class Running:
    """What a test sees of a desk and its vault. Every frame that reached the vault is in `frames`."""

    def __init__(self, url: str, verbs: Verbs, verify: ssl.SSLContext | bool) -> None:
        self.url, self.verbs, self.frames = url, verbs, list[Frame]()
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, verify=verify, timeout=20
        )

    async def handle(self, frame: Frame) -> Frame:
        self.frames.append(frame)
        found = self.verbs.get(frame.header["verb"], said())
        reply: Any = found if isinstance(found, Frame) else found(frame)
        return await reply if asyncio.iscoroutine(reply) else reply

    @property
    def address(self) -> tuple[str, int]:
        parts = httpx.URL(self.url)
        assert parts.port is not None
        return parts.host, parts.port


@contextmanager
def desk(
    folder: Path,
    verbs: Verbs | None = None,
    *,
    rates: Rates | None = None,
    oidc: OidcSettings | None = None,
    context: ssl.SSLContext | None = None,
    verify: ssl.SSLContext | bool = True,
    metrics: bool = False,
    agents: bool = False,
    vault_at: Path | None = None,
    console: Console | None = None,
) -> Iterator[Running]:
    """A running desk, with /mcp for `agents`. It asks the vault that is running at `vault_at`, or one of its own."""
    listening = socket.create_server(("127.0.0.1", 0))
    scheme = "http" if context is None else "https"
    running = Running(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", verbs or {}, verify)
    begun, ended = threading.Event(), threading.Event()
    servers: list[Any] = []
    wrong: list[BaseException] = []

    async def main() -> None:
        vault = None if vault_at else await serve_frames(folder / "vault", running.handle, {os.getuid()})
        link = Link(vault_at or folder / "vault")
        for_agents = Agents() if agents else None
        app = make_app(link, rates=rates, oidc=oidc, agents=for_agents, console=console)
        if metrics:
            app = make_metrics_app(link, rates=rates)
        server = _server(app, [listening], context, 5)
        servers.append(server)
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.005)
        begun.set()
        async with for_agents.running() if for_agents else contextlib.nullcontext():
            await serving
        await link.close()
        if vault is not None:
            vault.close()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            wrong.append(error)
        begun.set()
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait(20)
    try:
        yield running
    finally:
        running.client.close()
        for server in servers:
            server.should_exit = True
        thread.join(20)
    assert ended.is_set()
    assert not wrong
