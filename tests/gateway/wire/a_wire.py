"""A server of the PostgreSQL protocol on a free port, with a made-up session behind it, and real accounts."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from discreet.errors import DiscreetError
from discreet.gateway.books.scram import Exchanges, Sessions
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.desk.rates import Gate, Rates
from discreet.gateway.frames import Frame, json_bytes, refusal
from discreet.gateway.wire.format.values import Column, Copy, Described, Notice, Refusal, Result
from discreet.gateway.wire.server import Places, WireServer

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(1999, 12, 31, 23, 59, 59, 250_000)
EVERYTHING: dict[str, Any] = {
    "bool": True,
    "int8": -(2**63),
    "int4": -7,
    "int2": 300,
    "oid": 2**32 - 1,
    "float8": 0.1,
    "float4": 0.5,
    "numeric": Decimal("-12345.6700"),
    "text": 'a "text", ünd\nmore',
    "varchar": "",
    "name": "visits",
    "char": "r",
    "date": DAY,
    "timestamp": MOMENT,
    "timestamptz": MOMENT.replace(tzinfo=datetime.UTC),
    "bytea": b"\x00\xff\\",
    "text[]": ["a b", None, 'q"\\', "", "NULL", "{}"],
    "int4[]": [1, None, -3],
    "int8[]": [],
    "oid[]": [1, 2],
}
"""A value of each type."""


@dataclass(frozen=True)
class Said:
    """A statement of the made-up session: some words."""

    text: str

    @property
    def is_empty(self) -> bool:
        return not self.text

    @property
    def words(self) -> list[str]:
        return self.text.lower().split()


@dataclass
class Log:
    """What all sessions were asked."""

    runs: list[tuple[int, str, tuple[Any, ...]]] = field(default_factory=list)
    describes: list[str] = field(default_factory=list)
    opened: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    failures: int = 0
    closed: int = 0
    hanging: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


class MadeUp:
    """A session: `rows n`, `echo type …` with parameters, `everything`, `hang`, `fail`, `boom` and `copy form n`."""

    _numbers = itertools.count(1)

    def __init__(self, log: Log, application: str = "") -> None:
        self.log, self.number, self.status = log, next(self._numbers), "I"
        self.reported = {"application_name": application}

    def read(self, text: str) -> list[Said]:
        if "unreadable" in text:
            raise Refusal("This cannot be read.", state="42601", position=text.index("unreadable") + 1)
        return [Said(part.strip()) for part in text.split(";")]

    async def describe(self, statement: Said, declared: Sequence[int] = ()) -> Described:
        self.log.describes.append(statement.text)
        self._check(statement)
        if statement.words[0] == "echo":
            kinds = tuple(statement.words[1:])
            return Described(kinds, tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds)))
        return Described((), self._columns(statement))

    def describe_cursor(self, name: str) -> Described | None:
        return Described((), (Column("n", "int8"),)) if name == "a cursor" else None

    def _check(self, statement: Said) -> None:
        if self.status == "E" and statement.words[0] not in ("rollback", "commit"):
            raise Refusal("The transaction has failed.", state="25P02")
        if statement.words[0] == "fail":
            raise Refusal("No such table.", state="42P01", hint="Ask about another.", position=6)

    @staticmethod
    def _columns(statement: Said) -> tuple[Column, ...] | None:
        word = statement.words[0]
        if word in ("rows", "notice", "hang"):
            return (Column("n", "int8"), Column("x", "float8"), Column("city"))
        if word == "everything":
            return tuple(Column(kind, kind) for kind in EVERYTHING)
        return None

    async def run(self, statement: Said, values: Sequence[Any] = ()) -> Result:
        self.log.runs.append((self.number, statement.text, tuple(values)))
        self._check(statement)
        word, *rest = statement.words
        if word in ("begin", "commit", "rollback"):
            self.status = "T" if word == "begin" else "I"
            return Result(word.upper())
        if word == "hang":
            self.log.hanging.set()
            while not self.log.release.is_set():
                await asyncio.sleep(0.005)
        if word == "boom":
            raise RuntimeError("the secret of bob")
        if word == "set":
            return Result("SET", settings={"application_name": rest[0] if rest else "x"})
        if word == "deallocate":
            return Result("DEALLOCATE ALL")
        if word == "echo":
            return Result("SELECT 1", tuple(Column(f"c{n}", kind) for n, kind in enumerate(rest)), [tuple(values)])
        if word == "everything":
            return Result("SELECT 2", self._columns(statement), [tuple(EVERYTHING.values()), (None,) * len(EVERYTHING)])
        if word == "changed":
            return Result("SELECT 1", (Column("a", "text"),), [("a",)])
        columns = (Column("n", "int8"), Column("x", "float8"), Column("city"))
        if word == "copy":
            form, count = rest[0], int(rest[1])
            csv = form == "csv"
            copy = Copy(form, header=csv, delimiter="," if csv else "\t", null="" if csv else "\\N")  # type: ignore[arg-type]
            return Result(f"COPY {count}", columns, made_up_rows(count), copy=copy)
        if word == "notice":
            return Result("SELECT 1", columns, made_up_rows(1), (Notice("It cost nothing.", "Good."),))
        if word in ("rows", "hang"):
            count = int(rest[0]) if rest else 1
            return Result(f"SELECT {count}", columns, made_up_rows(count))
        raise Refusal("Not supported.", state="0A000")

    def fail(self) -> None:
        self.log.failures += 1
        if self.status == "T":
            self.status = "E"

    async def close(self) -> None:
        self.log.closed += 1


def made_up_rows(count: int) -> list[tuple[Any, ...]]:
    """Rows with a number, half of it, and a city or nothing."""
    return [(n, n / 2, None if n % 3 == 2 else f"city,\t{n}") for n in range(count)]


class Accounts:
    """A vault that knows logins only. Every frame that reached it is in `frames`."""

    def __init__(self, store: GatewayStore, now: Callable[[], float]) -> None:
        self._now = now
        self.exchanges, self.sessions = Exchanges(store), Sessions()
        self.frames: list[tuple[str, dict[str, Any]]] = []

    async def call(self, verb: str, token: str | None = None, arguments: Any = None, *, address: str = "") -> Frame:
        self.frames.append((verb, arguments or {}))
        try:
            return Frame({"ok": True}, json_bytes(self._answer(verb, token, arguments)))
        except DiscreetError as error:
            return refusal(error)

    def _answer(self, verb: str, token: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
        if verb == "scram_first":
            return self.exchanges.first(arguments)
        if verb == "scram_final":
            proven = self.exchanges.final(arguments, self._now())
            return {"message": proven.server_final, "session": self.sessions.begin(proven), "account": proven.account}
        self.sessions.end(str(token))
        return {}


class Wire:
    """What a test sees of a running server."""

    def __init__(self, port: int, vault: Accounts, log: Log) -> None:
        self.port, self.vault, self.log = port, vault, log
        self.server: WireServer
        self.loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def connect(self) -> socket.socket:
        """A raw connection."""
        found = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(4000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never came to that")


@contextlib.contextmanager
def wire(
    vault: Any,
    *,
    context: ssl.SSLContext | None = None,
    certificate: str | None = None,
    rates: Rates | None = None,
    places: Places | None = None,
    **given: Any,
) -> Iterator[Wire]:
    """A running server."""
    log = Log()

    async def open_session(_: Any, token: str, **given: Any) -> MadeUp:
        log.opened.append({"token": token, **given})
        made = MadeUp(log, given["options"].get("application_name", ""))
        log.numbers.append(made.number)
        return made

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    running = Wire(listening.getsockname()[1], vault, log)
    begun, ended = threading.Event(), asyncio.Event()
    wrong: list[Any] = []

    class Watched(WireServer):
        def _ended(self, connection: Any, network: str, done: asyncio.Task[None]) -> None:
            if not done.cancelled() and done.exception() is not None:
                wrong.append(done.exception())
            super()._ended(connection, network, done)

    async def main() -> None:
        running.loop = asyncio.get_running_loop()
        running.loop.set_exception_handler(lambda _, what: wrong.append(what))
        running.server = Watched(
            vault,
            gate=Gate(rates or Rates()),
            context=context,
            certificate=certificate,
            open_session=open_session,
            places=places,
            **given,
        )
        await running.server.start([listening])
        begun.set()
        await ended.wait()
        await running.server.stop(5)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert begun.wait(20)
    try:
        yield running
    finally:
        log.release.set()
        running.loop.call_soon_threadsafe(ended.set)
        thread.join(20)
    assert not thread.is_alive()
    assert not wrong, wrong
    assert running.server.places.count == 0
