"""Answers that were bought before, in memory: those who may see them again get them at once."""

from __future__ import annotations

from collections import OrderedDict

from discreet.gateway.frames import Frame

_MOST = 64 * 2**20
"""So many bytes are kept."""


class Remembered:
    """Answers that were found before, the newest ones. Everything in it was released to whoever may see it again."""

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._size = most, 0
        self._frames: OrderedDict[tuple[str, str, str], Frame] = OrderedDict()

    def get(self, name: tuple[str, str, str]) -> Frame | None:
        """The answer under this name."""
        found = self._frames.get(name)
        if found is not None:
            self._frames.move_to_end(name)
        return found

    def put(self, name: tuple[str, str, str], frame: Frame) -> None:
        """Remember an answer, and forget the oldest ones if there is no room."""
        if name in self._frames or len(frame.body) > self._most // 8:
            return
        self._frames[name] = frame
        self._size += len(frame.body)
        while self._size > self._most:
            _, gone = self._frames.popitem(last=False)
            self._size -= len(gone.body)
