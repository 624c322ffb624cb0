"""Opening many envelopes on many cores. The work is arithmetic, and threads would wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from discreet.shuffle.channel import keys

_SLICE = 2048
_ALONE = 1024
"""So few are opened sooner than another process is started."""


class Openers:
    """Processes that open envelopes, started when there is enough to do."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or _cores()
        self._pool: ProcessPoolExecutor | None = None
        self._starting = threading.Lock()

    def messages(self, blob: bytes, width: int, private: bytes, info: bytes) -> bytes:
        """The messages that open, one after another. All others are dropped."""
        slices = [blob[start : start + width * _SLICE] for start in range(0, len(blob), width * _SLICE)]
        opened = partial(_messages, width=width, private=private, info=info)
        if len(blob) < width * _ALONE or self.processes == 1:
            return b"".join(map(opened, slices))
        return b"".join(self._workers().map(opened, slices))

    def reports(self, sealed: list[tuple[bytes, bytes]], private: bytes) -> list[bytes | None]:
        """The content of each report that came with its own `info`. None if it does not open."""
        if len(sealed) < _ALONE or self.processes == 1:
            return _reports(sealed, private)
        slices = [sealed[start : start + _SLICE // 4] for start in range(0, len(sealed), _SLICE // 4)]
        return [one for part in self._workers().map(partial(_reports, private=private), slices) for one in part]

    def _workers(self) -> ProcessPoolExecutor:
        with self._starting:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self.processes, context, initializer=_end_with_parent)
            return self._pool

    def close(self) -> None:
        """End the processes."""
        with self._starting:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    """A service that is killed cannot notify its processes. They watch it, and hold no key longer than it does."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _messages(blob: bytes, *, width: int, private: bytes, info: bytes) -> bytes:
    sealed = (blob[start : start + width] for start in range(0, len(blob), width))
    opened = (keys.open_seal(one, private, info) for one in sealed)
    return b"".join(one for one in opened if one is not None)


def _reports(sealed: Iterable[tuple[bytes, bytes]], private: bytes) -> list[bytes | None]:
    return [keys.open_seal(one, private, info) for one, info in sealed]
