"""Time: a charged answer leaves at a fixed moment after its slot began, whatever happened meanwhile.

A slot is a lane for a fixed time. Its start and its end are public: they depend on when questions came and on how long
slots are, and on nothing that a lane read. What is not ready before the end is late: its process is killed, the result
is discarded, and the same error leaves at the same moment, whether the lane was slow, failed or had no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import DiscreetError
from discreet.gateway.frames import Frame
from discreet.gateway.vault.processes import Gone, Process

MARGIN = 0.1
"""The last part of a slot, in seconds, in which a late question is settled. It is at most a tenth of the slot."""
ENDLESS = 3600.0
"""Where answers leave when they are ready, a lane may take this long."""


@dataclass
class Slot:
    """One charged question in one lane: what it was told that it would charge, and what became of it."""

    length: float
    charging: list[tuple[str | None, str | None]] = field(default_factory=list)
    reply: Frame | None = None
    """None if it was late, failed, or had no memory."""


class Lanes:
    """A fixed number of lanes. Questions get them in the order in which they come.

    A question with several charges runs alone: when it makes the later ones depends on the data, and their order among
    the charges of others would show it.
    """

    def __init__(self, number: int, opening: Mapping[str, Any]) -> None:
        self._all = [Process("lane", opening) for _ in range(number)]
        self._idle: deque[Process] = deque()
        self._queue: deque[tuple[asyncio.Future[Process], bool]] = deque()
        self._running, self._is_alone = 0, False
        self._resting: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many questions wait for a lane."""
        return len(self._queue)

    async def start(self) -> None:
        """Start all of them."""
        await asyncio.gather(*(one.start() for one in self._all))
        self._idle.extend(self._all)

    def prepare(self, given: Mapping[str, Any]) -> None:
        """Let an idle lane plan a question while it is looked up. Planning reads no row."""
        if self._idle and not self.waiting:
            self._idle[0].tell("prepare", given)

    async def run(
        self,
        given: Mapping[str, Any],
        length: float,
        begin: Callable[[], Awaitable[None]],
        settle: Callable[[Slot], Awaitable[None]],
        *,
        alone: bool = False,
    ) -> Slot:
        """Answer a question in the next free lane, and return at the end of its slot. `begin` runs just before the
        slot begins, and may refuse; where answers leave when they are ready, the lane only waits for it before it
        charges. `settle` runs at a fixed time shortly before the slot ends.
        """
        lane = await self._next(alone)
        loop, slot = asyncio.get_running_loop(), Slot(length)
        try:
            if length:
                await lane.ready()  # it may still plan what somebody else asked
            begun = asyncio.ensure_future(begin())
            if length:
                await begun
        except BaseException:
            self._leave(lane)
            raise
        end = loop.time() + length
        cut = end - min(MARGIN, length / 10)
        try:
            await self._answer(lane, slot, given, cut if length else end + ENDLESS, begun)
            await begun
            await sleep_until(cut)  # also if it is ready: what is written meanwhile would tell when it was
            if slot.reply is None:
                lane.kill()
            await settle(slot)
        finally:
            await sleep_until(end)
            self._leave(lane if lane.is_alive else None)
            if not lane.is_alive:
                self._rest(lane, end + length)
        return slot

    async def _next(self, alone: bool) -> Process:
        """The next free lane, first come, first served."""
        waiting: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._queue.append((waiting, alone))
        self._begin_next()
        return await waiting

    def _begin_next(self) -> None:
        """Give lanes to those who wait, as far as they may run now."""
        while self._queue and self._idle:
            waiting, alone = self._queue[0]
            if not waiting.done():
                if self._is_alone or (alone and self._running):
                    return
                self._running, self._is_alone = self._running + 1, alone
                waiting.set_result(self._idle.popleft())
            self._queue.popleft()

    def _leave(self, lane: Process | None) -> None:
        """End a slot. Its lane is free again, unless it has to be started anew."""
        self._running, self._is_alone = self._running - 1, False
        if lane is not None:
            self._idle.append(lane)
        self._begin_next()

    async def _answer(
        self, lane: Process, slot: Slot, given: Mapping[str, Any], cut: float, begun: asyncio.Future[None]
    ) -> None:
        async def told(names: list[str | None]) -> bool:
            slot.charging.append((names[0], names[1]))
            await asyncio.wait([begun])
            return not begun.cancelled() and begun.exception() is None

        with contextlib.suppress(TimeoutError, Gone):
            async with asyncio.timeout_at(cut):
                reply = await lane.ask("ask", given, told)
                if not reply.header.get("failed"):
                    slot.reply = reply

    def _rest(self, lane: Process, until: float) -> None:
        """A lane after a late question: it is started again, and used one slot later. Both are public by then."""
        task = asyncio.get_running_loop().create_task(self._restart(lane, until))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)

    async def _restart(self, lane: Process, until: float) -> None:
        while not lane.is_alive:
            with contextlib.suppress(DiscreetError):
                await lane.start()
            await asyncio.sleep(0.1)
        await sleep_until(until)
        self._idle.append(lane)
        self._begin_next()

    def stop(self) -> None:
        """End all of them."""
        for task in self._resting:
            task.cancel()
        for one in self._all:
            one.kill()


async def sleep_until(moment: float) -> None:
    """Wait until a time of the event loop."""
    await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))
