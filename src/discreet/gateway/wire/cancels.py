"""Cancel requests: they come over another connection, and name the one whose statement to cancel by a secret."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from discreet.exact.randomness import random_integer


class Cancels:
    """Who can be cancelled, and by which numbers."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Callable[[], None]]] = {}

    def add(self, cancel: Callable[[], None]) -> tuple[int, int]:
        """The number of a connection, and the secret that cancels what it runs. Nobody can guess either."""
        process = 0
        while process == 0 or process in self._known:
            process = random_integer(31)
        key = random_integer(32)
        self._known[process] = key, cancel
        return process, key

    def remove(self, process: int) -> None:
        """A connection has ended."""
        self._known.pop(process, None)

    def cancel(self, process: int, key: int) -> bool:
        """Cancel what a connection runs. False if the secret is not that of the connection."""
        right, cancel = self._known.get(process, (0, None))
        same = hmac.compare_digest(right.to_bytes(4, "big"), key.to_bytes(4, "big"))
        if not same or cancel is None:
            return False
        cancel()
        return True
