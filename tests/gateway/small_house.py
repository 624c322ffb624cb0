"""A house whose vault, readers and lanes are threads of the tests: the same code, without starting processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from typing import Any

from discreet.gateway.frames import packed, serve_frames
from discreet.gateway.vault import worker
from discreet.gateway.vault.processes import Process
from discreet.gateway.vault.vault import Vault, open_vault

from .house import House


class Threaded(Process):
    """A reader or a lane in a thread."""

    async def start(self) -> None:
        ours, theirs = socket.socketpair()
        opening = {name: value for name, value in self._opening.items() if name != "memory"}  # it limits the process

        def run() -> None:
            with theirs:
                opened = worker.Worker(theirs, self.kind, opening)
                theirs.sendall(packed({"ok": True, "id": 0}))
                opened.run()
                opened.database.close()

        threading.Thread(target=run, daemon=True).start()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=2**20)
        await self._next()


def small(vault: Vault) -> Vault:
    """The same vault, which will start threads."""
    for of in (vault._lanes, vault._readers):
        of._all = [Threaded(one.kind, one._opening) for one in of._all[:1]]
    return vault


class SmallHouse(House):
    """The files of a gateway, and a thread that serves its vault."""

    def start(self, *before: str) -> SmallHouse:
        self._begun, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._begun.wait(60)
        return self

    async def _main(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._end = lambda: loop.call_soon_threadsafe(stopping.set)
        real, worker.warm_up = worker.warm_up, lambda **_: None
        vault = small(open_vault(self.policy))
        try:
            await vault.start()
        finally:
            worker.warm_up = real
        server: Any = await serve_frames(self.socket, vault.handle, {os.getuid()})
        self._begun.set()
        await stopping.wait()
        await vault.drain()
        server.close()
        vault.store.close()
        vault.ledger.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        for link in self._links:
            link.close()
        self._links.clear()
        self._end()
        self._thread.join(60)
        return 0 if not self._thread.is_alive() else 1
