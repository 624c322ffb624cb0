"""Connections of the desk: not too many, and none that keeps others waiting by sending slowly."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from discreet.gateway.desk.rates import network_of
from discreet.gateway.desk.replies import Reply, refusal_of, too_fast

MOST = 2048
"""Connections at the same time, at most."""
MOST_EACH = 512
"""Connections of one address at the same time, at most."""
LONGEST_HEAD = 2**16
"""Bytes of a request before its body, at most."""
LINGER = 2.0
"""A desk that stops waits so many seconds for requests that are on their way."""
PATIENCE = 10.0
"""The head of a request must have arrived after so many seconds."""


class Connections:
    """How many connections there are, of everybody and of each address, and how many seconds each may take to send the
    head of a request.
    """

    def __init__(self, most: int = MOST, most_each: int = MOST_EACH, patience: float = PATIENCE) -> None:
        self._most, self._most_each, self._each = most, most_each, dict[str, int]()
        self.count, self.patience = 0, patience

    def add(self, network: str) -> bool:
        """Count a connection. False if there are too many."""
        if self.count >= self._most or self._each.get(network, 0) >= self._most_each:
            return False
        self.count += 1
        self._each[network] = self._each.get(network, 0) + 1
        return True

    def remove(self, network: str) -> None:
        """A connection has ended."""
        self.count -= 1
        self._each[network] -= 1
        if not self._each[network]:
            del self._each[network]


def bounded(connections: Connections) -> type[HttpToolsProtocol]:
    """The protocol of uvicorn with these bounds. It has none of its own on the head of a request."""

    class Bounded(HttpToolsProtocol):
        _network: str | None = None
        _timer: asyncio.TimerHandle | None = None
        _head = 0
        _ending = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            network = network_of(self.client[0]) if self.client else ""
            if not connections.add(network):
                transport.write(_written(refusal_of(too_fast(1))))
                transport.close()
                return
            self._network = network
            self._begin_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_head()
            if self._network is not None:
                connections.remove(self._network)
                self._network = None
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._network is None:
                return
            if self._timer is None and self.cycle is not None and self.cycle.response_complete:
                self._begin_head()
            if self._timer is not None:
                self._head += len(data)
            super().data_received(data)
            if self._timer is not None and self._head > LONGEST_HEAD:
                self.transport.close()

        def on_headers_complete(self) -> None:
            self._end_head()
            super().on_headers_complete()
            if self._ending and self.cycle is not None:
                self.cycle.keep_alive = False

        def shutdown(self) -> None:
            """Close after the request that runs. If none does, one may be on its way, and is still answered."""
            self._ending = True
            if self.cycle is None or self.cycle.response_complete:
                self.loop.call_later(LINGER, self._close_idle)
            else:
                super().shutdown()

        def _close_idle(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

        def _begin_head(self) -> None:
            self._head = 0
            self._timer = self.loop.call_later(connections.patience, self.transport.close)

        def _end_head(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Bounded


def _written(reply: Reply) -> bytes:
    """A reply without a request."""
    headers = [
        (b"content-type", reply.type),
        (b"content-length", str(len(reply.body)).encode()),
        (b"connection", b"close"),
        *reply.headers,
    ]
    lines = [b"HTTP/1.1 %d Too Many Requests" % reply.status, *(b"%s: %s" % pair for pair in headers), b"", reply.body]
    return b"\r\n".join(lines)
