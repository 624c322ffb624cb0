"""What is said after the login: which message may follow which, and what each is answered.

It knows bytes and their order. What statements mean is the session's: it describes them for free, and runs each once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.gateway.wire.format import copy_out, messages
from discreet.gateway.wire.format.messages import Body, Fatal, Stream, violation
from discreet.gateway.wire.format.types import data_rows, field_writers, formats_of, read_value, type_name
from discreet.gateway.wire.format.values import Column, Described, Refusal, Result
from discreet.gateway.wire.portals import TREE, Kept, Portal, Prepared, cells_in, tag_of

T = TypeVar("T")
_CHUNK = 200
"""So many rows are written at once. Then others are served."""
_SHORT, _REMEMBERED = 2000, 100
"""So many texts of at most so many characters are known to have been read before."""


class Session(Protocol):
    """What statements mean, for one connection."""

    @property
    def status(self) -> str:
        """I for idle, T in a transaction, E in one that has failed."""

    @property
    def reported(self) -> Mapping[str, str]:
        """The settings that a client is told at the start."""

    def read(self, text: str) -> Sequence[Any]:
        """The statements of a text."""

    async def describe(self, statement: Any, declared: Sequence[int] = ()) -> Described:
        """What a statement needs and gives. It is never run for that."""

    def describe_cursor(self, name: str) -> Described | None:
        """The columns of a cursor. None if there is none of this name."""

    async def run(self, statement: Any, values: Sequence[Any] = ()) -> Result:
        """Run a statement."""

    def fail(self) -> None:
        """The client was told of an error."""

    async def close(self) -> None:
        """The connection has ended."""


class Dialog:
    """The messages of one connection. `turn` lets a statement run, or refuses it."""

    def __init__(self, stream: Stream, session: Session, turn: Callable[[], AbstractContextManager[None]]) -> None:
        self._stream, self._session, self._turn = stream, session, turn
        self._running: asyncio.Future[Any] | None = None
        self._is_skipping = False
        self._read_before: dict[str, None] = {}
        self.kept = Kept()
        self.is_busy = self.is_cancelled = False
        """Whether a statement is read, described or run, and whether it was cancelled."""

    def cancel(self) -> None:
        """End the wait for what runs now, if anything does. What it cost stays charged."""
        if self.is_busy:
            self.is_cancelled = True
            if self._running is not None:
                self._running.cancel()

    async def answer(self, kind: bytes, body: Body) -> None:
        """Answer a message. After an error, the others are skipped up to the next Sync."""
        if self._is_skipping and kind != b"S":
            return
        try:
            await _HANDLERS[kind](self, body)
        except Fatal:
            raise
        except Refusal as refusal:
            self._refuse(refusal, kind)
        except OSError:
            raise
        except ServiceUnavailable as error:
            self._refuse(Refusal(str(error), state="57P03"), kind)
        except Exception as error:  # whatever it is, it might hold a value: nothing of it is shown or written
            said = f" [{error.code}]" if isinstance(error, DiscreetError) else ""
            self._refuse(Refusal(f"The gateway failed{said}. Nothing was handed out.", state="XX000"), kind)
        finally:
            self.is_busy = False
        if kind in (b"Q", b"F"):
            await self._ready()
        elif self._is_skipping:
            await self._stream.flush()  # a client may wait for the error before it sends Sync

    def _refuse(self, refusal: Refusal, kind: bytes) -> None:
        self._stream.send(messages.error(refusal))
        self._session.fail()
        self._is_skipping = kind not in (b"Q", b"F", b"S")

    async def _ready(self) -> None:
        status = self._session.status
        if status != "T":
            self.kept.close_portals()
        self._stream.send(messages.ready(status))
        await self._stream.flush()

    async def _during(self, work: Awaitable[T]) -> T:
        """Wait for the session. A cancel request ends the wait, and nothing else."""
        running: asyncio.Future[T] = asyncio.ensure_future(work)
        self._running = running
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.is_cancelled and not (task is not None and task.cancelling()):  # else the connection itself ends
                raise _cancelled() from None
            raise
        except OSError:  # of the session: the connection itself is fine
            raise Refusal("The gateway failed. Nothing was handed out.", state="XX000") from None
        finally:
            self._running = None

    def _begin(self) -> None:
        self.is_busy, self.is_cancelled = True, False

    async def _read(self, text: str) -> list[Any]:
        if text in self._read_before:  # the session remembers it: a thread would take longer than reading it
            found = self._session.read(text)
        else:
            found = await self._during(asyncio.to_thread(self._session.read, text))
            if len(text) <= _SHORT:
                self._read_before[text] = None
                if len(self._read_before) > _REMEMBERED:
                    self._read_before.pop(next(iter(self._read_before)))
        return [one for one in found if not one.is_empty]

    async def _run(self, statement: Any, values: Sequence[Any] = ()) -> Result:
        """Run a statement, which may be charged."""
        if getattr(statement, "what", "") == "deallocate" and self._session.status != "E":
            name = getattr(statement, "name", "")
            if name in self.kept.statements and name:  # prepared by a message, of which the session does not know
                self.kept.close_statement(name)
                return Result("DEALLOCATE")
        with self._turn():
            found = await self._during(self._session.run(statement, values))
        if found.tag in ("DEALLOCATE ALL", "DISCARD ALL"):
            self.kept.close_statements()
        return found

    async def _send_rows(self, columns: Sequence[Column], formats: Sequence[int], rows: Sequence[Any]) -> None:
        writers = field_writers(columns, formats)
        for start in range(0, len(rows), _CHUNK):
            self._stream.send(*data_rows(rows[start : start + _CHUNK], writers))
            await self._pause()

    async def _pause(self) -> None:
        """Send what is collected, let others be served, and see whether the statement is cancelled."""
        if self._stream.is_full:
            await self._stream.flush()
            await asyncio.sleep(0)
        if self.is_cancelled:
            raise _cancelled()

    async def _send_copy(self, result: Result) -> None:
        assert result.copy is not None
        columns = result.columns or ()
        self._stream.send(copy_out.response(result.copy, columns))
        for number, one in enumerate(copy_out.copied(result.copy, columns, result.rows), 1):
            self._stream.send(one)
            if not number % _CHUNK:
                await self._pause()
        self._stream.send(messages.COPY_DONE)

    def _send_notices(self, result: Result) -> None:
        self._stream.send(*map(messages.notice, result.notices))

    def _send_end(self, result: Result, tag: str) -> None:
        self._stream.send(messages.complete(tag))
        self._stream.send(*(messages.parameter_status(name, value) for name, value in result.settings.items()))

    # --- the simple protocol --------------------------------------------------------------------------------

    async def _query(self, body: Body) -> None:
        text = body.text()
        body.end()
        self._begin()
        self.kept.close_statement("")
        self.kept.close_portal("")
        statements = await self._read(text)
        if not statements:
            self._stream.send(messages.EMPTY_QUERY)
        for statement in statements:
            result = await self._run(statement)
            self._send_notices(result)
            if result.copy is not None:
                await self._send_copy(result)
            elif result.columns is not None:
                formats = [0] * len(result.columns)
                self._stream.send(messages.row_description(result.columns, formats))
                await self._send_rows(result.columns, formats, result.rows)
            self._send_end(result, result.tag)

    async def _call_function(self, body: Body) -> None:
        raise Refusal("Function calls are not supported.", state="0A000", hint="Write SELECT with the function.")

    # --- the extended protocol ------------------------------------------------------------------------------

    async def _parse(self, body: Body) -> None:
        name, text = body.text(), body.text()
        declared = tuple(body.number() & 0xFFFFFFFF for _ in range(body.count()))
        body.end()
        self._begin()
        if not name:
            self.kept.close_statement("")
        statements = await self._read(text)
        if len(statements) > 1:
            raise Refusal("A prepared statement can have only one statement.", state="42601")
        size = TREE * len(text) + len(name) + 4 * len(declared)
        prepared = Prepared(statements[0] if statements else None, declared, size)
        self.kept.prepare(name, prepared)
        self._stream.send(messages.PARSED)

    async def _bind(self, body: Body) -> None:
        name, source = body.text(), body.text()
        codes = [body.short() for _ in range(body.count())]
        given: list[bytes | None] = []
        for _ in range(body.count()):
            length = body.number()
            given.append(None if length == -1 else body.take(length))
        formats = tuple(body.short() for _ in range(body.count()))
        body.end()
        formats_of(formats, len(formats))
        prepared = self.kept.statement(source)
        self._begin()
        portal = Portal(
            prepared, formats=formats, size=sum(len(one) for one in given if one) + 8 * len(given) + len(name)
        )
        if given:
            types = await self._types(prepared, portal)
            if len(types) != len(given):
                raise violation(f"The statement has {len(types)} parameters, but {len(given)} values were sent.")
            codes = formats_of(codes, len(given))
            values = zip(types, codes, given, strict=True)
            portal.values = tuple(None if one is None else read_value(kind, form, one) for kind, form, one in values)
        self.kept.bind(name, portal)
        self._stream.send(messages.BOUND)

    async def _types(self, prepared: Prepared, portal: Portal) -> tuple[str, ...]:
        """The types of the parameters: those that the client declared, or what the session says."""
        if prepared.parameters is None:
            known = [type_name(oid) for oid in prepared.declared]
            if known and None not in known:
                return tuple(name for name in known if name is not None)
            portal.described = await self._described(prepared)
        return prepared.parameters or ()

    async def _described(self, prepared: Prepared) -> Described:
        """What a statement needs and gives. This never runs it."""
        if prepared.statement is None:
            return Described((), None)
        found = await self._during(self._session.describe(prepared.statement, prepared.declared))
        prepared.parameters = found.parameters
        return found

    async def _describe(self, body: Body) -> None:
        kind, name = body.byte(), body.text()
        body.end()
        self._begin()
        if kind == b"S":
            prepared = self.kept.statement(name)
            found = prepared.told = await self._described(prepared)
            self._stream.send(messages.parameter_description(found.parameters))
            formats: tuple[int, ...] = ()
        elif kind == b"P" and name not in self.kept.portals and (cursor := self._session.describe_cursor(name)):
            found, formats = cursor, ()  # a cursor is a portal, too
        elif kind == b"P":
            portal = self.kept.portal(name)
            if portal.result is not None:
                found = Described((), None if portal.result.copy else portal.result.columns)
            else:
                found = portal.described or await self._described(portal.prepared)
            portal.told, formats = found, portal.formats
        else:
            raise violation()
        if found.columns is None:
            self._stream.send(messages.NO_DATA)
        else:
            self._stream.send(messages.row_description(found.columns, formats_of(formats, len(found.columns))))

    async def _execute(self, body: Body) -> None:
        name, most = body.text(), body.number()
        body.end()
        portal = self.kept.portal(name)
        self._begin()
        if portal.prepared.statement is None:
            self._stream.send(messages.EMPTY_QUERY)
            return
        first = not portal.has_begun
        if first:
            self.kept.check_room(portal)
            portal.has_begun = True
            portal.result = _as_told(
                await self._run(portal.prepared.statement, portal.values), portal.told or portal.prepared.told
            )
            self._send_notices(portal.result)
        result = portal.result
        if result is None:
            raise Refusal("This portal has failed, and cannot be run again.", state="55000")
        if not first and self._session.status == "E":
            raise Refusal("The transaction has failed. Write ROLLBACK.", state="25P02")
        if result.columns is None or result.copy is not None:
            if not first:
                raise Refusal("This portal was run, and cannot be run again.", state="55000")
            if result.copy is not None:
                await self._send_copy(result)
            self._send_end(result, result.tag)
            return
        rows = result.rows[portal.sent : portal.sent + most] if most > 0 else result.rows[portal.sent :]
        portal.sent += len(rows)
        await self._send_rows(result.columns, formats_of(portal.formats, len(result.columns)), rows)
        if portal.sent < len(result.rows):
            portal.cells = portal.cells or cells_in(result.rows)
            self._stream.send(messages.SUSPENDED)
        else:
            self._send_end(result, result.tag if first else tag_of(result, len(rows)))
            portal.result = Result(result.tag, result.columns)
            portal.sent = portal.cells = 0

    async def _close(self, body: Body) -> None:
        kind, name = body.byte(), body.text()
        body.end()
        if kind == b"S":
            self.kept.close_statement(name)
        elif kind == b"P":
            self.kept.close_portal(name)
        else:
            raise violation()
        self._stream.send(messages.CLOSED)

    async def _flush(self, body: Body) -> None:
        await self._stream.flush()

    async def _sync(self, body: Body) -> None:
        self._is_skipping = False
        await self._ready()

    async def _ignore(self, body: Body) -> None:
        """Copied data of a client: a copy that was refused may still be on its way."""


_HANDLERS: dict[bytes, Callable[[Dialog, Body], Awaitable[None]]] = {
    b"Q": Dialog._query,
    b"F": Dialog._call_function,
    b"P": Dialog._parse,
    b"B": Dialog._bind,
    b"D": Dialog._describe,
    b"E": Dialog._execute,
    b"C": Dialog._close,
    b"H": Dialog._flush,
    b"S": Dialog._sync,
    **dict.fromkeys((b"d", b"c", b"f"), Dialog._ignore),
}


def _as_told(result: Result, told: Described | None) -> Result:
    """The result, if its columns are those that the client was told. A setting may have changed meanwhile."""
    shown = None if result.copy is not None else result.columns
    if told is not None:
        before, now = ([one.type for one in columns or ()] for columns in (told.columns, shown))
        if before != now or (told.columns is None) != (shown is None):
            raise Refusal(
                "The columns have changed since the statement was described. Prepare it again.", state="0A000"
            )
    return result


def _cancelled() -> Refusal:
    return Refusal(
        "The statement was cancelled. What it cost is kept: ask again, and the answer is free.", state="57014"
    )
