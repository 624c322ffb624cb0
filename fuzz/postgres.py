"""Whatever bytes anybody sends to the server of the PostgreSQL protocol, before a login and after it.

Every answer is made of whole messages of the protocol, nothing of the server fails, nothing is run that no message asks
for, little is kept in memory, and other connections are served meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from discreet.gateway.frames import Frame, json_bytes
from fuzz.changes import byte_changes, picked
from fuzz.oracle import Broken, within

TESTS = Path(__file__).resolve().parents[1] / "tests" / "gateway" / "wire"
SECONDS = 20
MOST_KEPT = 20 * 2**20
"""Bytes that the statements and portals of one connection may have."""
_KINDS = frozenset(b"RSKZEN123CTDIntsHdcv")
"""The kinds of messages that the server may send here."""


class Input(NamedTuple):
    """Some bytes, sent in pieces of a size, after a login or instead of one."""

    content: bytes
    logged_in: bool
    piece: int = 2**16


class Everybody:
    """A vault that lets everybody in."""

    async def call(self, verb: str, token: str | None = None, arguments: Any = None, *, address: str = "") -> Frame:
        replies = {
            "scram_first": {"exchange": "1", "message": "r=ab,s=AAAA,i=4096"},
            "scram_final": {"message": "v=AAAA", "session": "s", "account": "alice"},
        }
        return Frame({"ok": True}, json_bytes(replies.get(verb, {})))


class Postgres:
    """One server for all inputs, with the made-up session of the tests."""

    def __init__(self, folder: Path) -> None:
        self._wire, self._raw = _loaded("a_wire"), _loaded("raw")
        self._failures: list[str] = []
        self._log = self._wire.Log()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._begun, self._ended = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._begun.wait(20)
        self._other = self._connected(logged_in=True)
        raw = self._raw
        login = self._login()
        ask = raw.parse("echo int8 text", "s", 20, 25) + raw.bind("p", "s", (b"5", None), (0,), (1, 0))
        self.seeds: list[Any] = [
            Input(raw.query("rows 3; begin; fail; rollback"), True),
            Input(raw.query("everything") + raw.query("copy binary 3") + raw.query("copy csv 2"), True),
            Input(raw.parse("rows 5", "s") + raw.describe("S", "s") + raw.bind("p", "s") + raw.SYNC, True),
            Input(ask + raw.describe("P", "p") + raw.execute("p", 2) + raw.execute("p") + raw.SYNC, True),
            Input(raw.query("begin") + ask + raw.execute("p") + raw.close("P", "p") + raw.FLUSH + raw.SYNC, True),
            Input(raw.bind("p", "s") + raw.query("rows 1") + raw.SYNC + raw.query("boom"), True),
            Input(raw.packed("F", b"\0" * 12) + raw.packed("d", b"x") + raw.TERMINATE, True),
            Input(self._arrays(), True),
            Input(login, False),
            Input(login + raw.query("rows 2") + raw.TERMINATE, False, 7),
            Input(struct.pack("!ii", 8, 80877103) + struct.pack("!ii", 8, 80877104) + login, False),
            Input(struct.pack("!iiii", 16, 80877102, 1, 2), False),
            Input(raw.startup((3 << 16) + 2, user="alice", options="-c a=b", **{"_pq_.x": "1"}), False),
            Input(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
            Input(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, False),
        ]

    def _login(self) -> bytes:
        raw, first = self._raw, b"n,,n=,r=a"
        answer = raw.packed("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        return bytes(raw.startup(user="alice", database="clinic") + answer + raw.packed("p", b"c=biws,r=ab,p=AAAA"))

    def _arrays(self) -> bytes:
        raw = self._raw
        kinds = "numeric timestamptz text[] int8[] bytea date bool float8"
        values = (b"1.50", b"2024-01-01 00:00+02", b'{a,"b",NULL}', b"{1,2}", b"\\xab", b"2024-02-29", b"t", b"1e3")
        binary = struct.pack("!iiIiiiq", 1, 0, 20, 1, 1, 8, 7)
        again = raw.parse("echo int8[] numeric", "t") + raw.bind(
            "q", "t", (binary, struct.pack("!hhHhh", 1, 0, 0, 0, 7)), (1,), (1,)
        )
        return bytes(raw.parse(f"echo {kinds}") + raw.bind("", "", values) + raw.execute() + again + raw.SYNC)

    async def _serve(self) -> None:
        from discreet.gateway.desk.rates import Gate, Rate, Rates
        from discreet.gateway.wire.server import WireServer

        failures = self._failures

        class Watched(WireServer):
            def _ended(self, connection: Any, network: str, done: Any) -> None:
                if not done.cancelled() and done.exception() is not None:
                    failures.append(repr(done.exception()))
                super()._ended(connection, network, done)

        async def open_session(*_: Any, **__: Any) -> Any:
            return self._wire.MadeUp(self._log)

        fast = Rates(address=Rate(1e9, 1e9), token=Rate(1e9, 1e9), free_failures=10**9)
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, what: failures.append(str(what)))
        self._server = Watched(Everybody(), gate=Gate(fast), open_session=open_session)
        await self._server.start([self._listening])
        self._begun.set()
        await self._ended.wait()
        await self._server.stop(1)

    def _connected(self, *, logged_in: bool) -> Any:
        client = self._raw.Client(socket.create_connection(self._listening.getsockname(), timeout=SECONDS))
        if logged_in:
            client.send(self._login())
            client.until_ready()
        return client

    def inputs(self) -> st.SearchStrategy[Input]:
        """Seeds with some bytes changed, in pieces of any size; and some bytes of two seeds."""
        pieces = st.sampled_from((1, 5, 100, 2**16))
        one = picked(self.seeds)

        @st.composite
        def changed(draw: Any) -> Input:
            first, second = draw(one), draw(st.one_of(st.just(Input(b"", True)), one))
            content = draw(byte_changes(st.just(first.content + second.content)))
            return Input(content, first.logged_in, draw(pieces) if len(content) < 500 else 2**16)

        return changed()

    def check(self, one: Input) -> str:
        """Send it, read everything that comes, and see whether others are still served."""
        with within(SECONDS):
            client, runs = self._connected(logged_in=one.logged_in), len(self._log.runs)
            try:
                answer = self._answer(client, one)
            finally:
                client.close()
        if self._failures:
            raise Broken("the server failed", self._failures.pop())
        if len(self._log.runs) - runs > one.content.count(b"E") + one.content.count(b"Q") * (
            one.content.count(b";") + 1
        ):
            raise Broken("more was run than was asked for", self._log.runs[runs:])
        if any(
            connection.dialog is not None and connection.dialog.kept.size > MOST_KEPT
            for connection in list(self._server._connections)
        ):
            raise Broken("a connection keeps too much")
        if self._other.kinds(self._raw.query("rows 1")) != "TDCZ":
            raise Broken("others are not served")
        self._log.runs.clear()
        return _kinds(answer, one.logged_in)

    @staticmethod
    def _answer(client: Any, one: Input) -> bytes:
        answer = bytes(client._buffer)
        try:
            for start in range(0, len(one.content), one.piece):
                client.socket.sendall(one.content[start : start + one.piece])
            client.socket.shutdown(socket.SHUT_WR)
            while part := client.socket.recv(2**16):
                answer += part
        except TimeoutError:
            raise Broken("the connection is never closed") from None
        except OSError:  # the server has closed it before all was read
            return answer
        return answer

    def close(self) -> None:
        """Stop the server."""
        self._other.close()
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(20)


def _loaded(name: str) -> Any:
    """A module of the tests."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _kinds(answer: bytes, logged_in: bool) -> str:
    """The kinds of the messages in an answer, and the codes of its errors. The last one may be cut off."""
    if not logged_in:
        answer = answer.lstrip(b"N") if not answer.startswith(b"N\0") else answer
    at, found = 0, []
    while at + 5 <= len(answer):
        kind, length = answer[at], int.from_bytes(answer[at + 1 : at + 5], "big")
        if kind not in _KINDS or not 4 <= length < 2**24:
            raise Broken("the answer is no message", answer[at : at + 40])
        body = answer[at + 5 : at + 1 + length]
        found.append(chr(kind) + (body.partition(b"\0C")[2][:5].decode() if kind == ord("E") else ""))
        at += 1 + length
    return " ".join(dict.fromkeys(found)) or "nothing"
