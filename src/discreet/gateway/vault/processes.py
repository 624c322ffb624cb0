"""The processes that the vault starts: readers, which plan and have no private row, and lanes, which answer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from discreet.errors import DiscreetError, LedgerDamaged, LedgerUnavailable, QueryError, ServiceUnavailable
from discreet.gateway.frames import BadFrame, Frame, packed, read_frame

PROGRAM = ("-m", "discreet.gateway.vault.worker")
PATIENCE = 60.0
"""How many seconds a process may take to open the data."""
_MOST_ACCOUNTS = 1000
PLANNING = 30.0
"""How many seconds the plan of one question may take."""


class Gone(Exception):
    """The process ended before it replied: it was killed, or ran out of memory."""


class Process:
    """One process, which does one thing at a time."""

    def __init__(self, kind: Literal["lane", "reader"], opening: Mapping[str, Any]) -> None:
        self.kind, self._opening = kind, opening
        self._numbers = itertools.count(1)
        self._child: subprocess.Popen[bytes] | None = None
        self._told = False
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        """Start it, and wait until it has opened its tables."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, *PROGRAM, str(theirs.fileno()), self.kind],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a message of an engine may quote values
            )
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=2**20)
        self._writer.write(packed(dict(self._opening)))
        try:
            async with asyncio.timeout(PATIENCE):
                opened = await self._next()
        except TimeoutError:
            self.kill()
            raise ServiceUnavailable(
                f"A process of the gateway did not open the data within {PATIENCE:g} s. Ask again in a moment: the "
                "machine may be busy.",
                code="gateway-unavailable",
            ) from None
        except Gone:
            self.kill()
            raise ServiceUnavailable(
                "A process of the gateway could not open the data. Check the sources, the memory and the policy.",
                code="gateway-unavailable",
            ) from None
        if not opened.header.get("ok"):
            self.kill()
            raise error_in(opened)

    async def ask(
        self, verb: str, given: Mapping[str, Any], told: Callable[[list[str | None]], Awaitable[bool]] | None = None
    ) -> Frame:
        """The reply of the process. `told` hears of each request that it is about to charge, and says whether it may:
        the process waits for that. Raises Gone if it ends.
        """
        number = next(self._numbers)
        if self._writer is None:
            raise Gone
        self._writer.write(packed({"id": number, "verb": verb, "given": dict(given)}))
        while True:
            frame = await self._next()
            if "charging" in frame.header:
                allowed = told is not None and await told(frame.header["charging"])
                if self._writer is None:
                    raise Gone
                self._writer.write(packed({"allowed": allowed}))
            elif frame.header.get("id") == number:
                return frame

    def tell(self, verb: str, given: Mapping[str, Any]) -> None:
        """Ask for something that has no reply."""
        if self._writer is not None:
            self._told = True
            self._writer.write(packed({"id": 0, "verb": verb, "given": dict(given)}))

    async def ready(self) -> None:
        """Wait until it has done what it was told. One that has ended is never ready, and is found out when asked."""
        if self._told:
            self._told = False
            with contextlib.suppress(Gone):
                await self.ask("ready", {})

    async def _next(self) -> Frame:
        try:
            frame = await read_frame(self._reader)
        except BadFrame:
            frame = None
        if frame is None:
            raise Gone
        return frame

    @property
    def is_alive(self) -> bool:
        """Whether it was started and not killed."""
        return self._writer is not None

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait()
            self._child = None


class Readers:
    """Some readers, each with one request at a time, in the order in which they come. Nothing they do reads a row.

    One account has at most half of them, so that its heavy questions do not keep others from being answered.
    """

    def __init__(self, number: int, opening: Mapping[str, Any]) -> None:
        self._all = [Process("reader", opening) for _ in range(number)]
        self._idle: asyncio.Queue[Process] = asyncio.Queue()
        self._each: dict[str, asyncio.Semaphore] = {}

    async def start(self) -> None:
        """Start all of them."""
        await asyncio.gather(*(one.start() for one in self._all))
        for one in self._all:
            self._idle.put_nowait(one)

    async def ask(self, verb: str, given: Mapping[str, Any], account: str) -> Frame:
        """The reply of one of them. A request that takes too long is refused, and its process is started again."""
        if len(self._each) > _MOST_ACCOUNTS:
            self._each = {name: one for name, one in self._each.items() if one.locked()}
        async with self._each.setdefault(account, asyncio.Semaphore(max(1, len(self._all) // 2))):
            reader = await self._idle.get()
            try:
                return await self._ask(reader, verb, given)
            except asyncio.CancelledError:
                reader.kill()
                asyncio.get_running_loop().create_task(reader.start())
                raise
            finally:
                self._idle.put_nowait(reader)

    @staticmethod
    async def _ask(reader: Process, verb: str, given: Mapping[str, Any]) -> Frame:
        for last in (False, True):
            try:
                async with asyncio.timeout(PLANNING):
                    return await reader.ask(verb, given)
            except (TimeoutError, Gone) as error:
                reader.kill()
                with contextlib.suppress(DiscreetError):  # tried again with the next request
                    await reader.start()
                if last or isinstance(error, TimeoutError):
                    break  # the first time, it may have been killed while it had nothing to do
        raise QueryError(
            "This question is too complex to plan. Nothing was charged. Simplify it.", code="sql-too-complex"
        )

    def stop(self) -> None:
        """End all of them."""
        for one in self._all:
            one.kill()


def error_in(frame: Frame) -> DiscreetError:
    """The error in the reply of a process, of the same class and with the same code."""
    from discreet import errors

    kind = getattr(errors, str(frame.header.get("kind")), DiscreetError)
    if not isinstance(kind, type) or not issubclass(kind, DiscreetError):
        kind = DiscreetError
    found = kind(str(frame.header.get("message", "")), code=frame.header.get("code"))
    position = frame.header.get("position")
    if isinstance(position, int):
        found.place = ("", position)
    more = frame.header.get("more")
    if isinstance(more, dict):
        found.more = more  # type: ignore[attr-defined]
    return found


def without_places(error: LedgerDamaged | LedgerUnavailable) -> DiscreetError:
    """The same error for those who may not know where the files of the gateway are."""
    what = "is damaged" if isinstance(error, LedgerDamaged) else "cannot be used now"
    return type(error)(
        f"The record of this gateway {what}. What was charged stays charged. Tell the owner of the data, who finds "
        "more in the messages of the gateway.",
        code=error.code,
    )
