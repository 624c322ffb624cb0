"""One connection of the PostgreSQL protocol: which message may follow which, and what each is answered.

It knows bytes and their order. What statements mean is the session's: it describes them for free, and runs each once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.gateway.desk import Vault
from discreet.gateway.desk_rates import Gate, network_of
from discreet.gateway.wire import copy_out, handshake, messages
from discreet.gateway.wire.cancels import Cancels
from discreet.gateway.wire.login import Login, WrongLogin, log_in, log_out
from discreet.gateway.wire.messages import Body, Fatal, Stream, violation
from discreet.gateway.wire.portals import Kept, Portal, Prepared, tag_of
from discreet.gateway.wire.types import data_rows, field_writers, formats_of, read_value, type_name
from discreet.gateway.wire.values import Column, Described, Refusal, Result

T = TypeVar("T")
VERSION = "15.19"
"""The version of PostgreSQL whose behavior clients may expect."""
LINGER = 2.0
"""A server that stops waits so many seconds for the first statement of somebody who has just logged in."""
_CHUNK = 200
"""So many rows are written at once. Then others are served."""
_SETTINGS = {
    "server_version": VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
}


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

    async def run(self, statement: Any, values: Sequence[Any] = ()) -> Result:
        """Run a statement."""

    def fail(self) -> None:
        """The client was told of an error."""

    async def close(self) -> None:
        """The connection has ended."""


class OpenSession(Protocol):
    """Opens the session of somebody who has logged in."""

    async def __call__(
        self,
        vault: Vault,
        token: str,
        *,
        account: str,
        database: str,
        options: Mapping[str, str],
        cancelled: Callable[[], bool],
    ) -> Session:
        """A session under the token of the login."""


class Places(Protocol):
    """How many connections there may be."""

    def move(self, network: str, account: str) -> bool:
        """Somebody has logged in. False if the account has too many connections."""


@dataclass
class Surroundings:
    """What all connections share. `certificate` is what a login is bound to, in base64."""

    vault: Vault
    open_session: OpenSession
    places: Places
    gate: Gate
    context: ssl.SSLContext | None = None
    certificate: str | None = None
    patience: float = handshake.PATIENCE
    cancels: Cancels = field(default_factory=Cancels)


class Connection:
    """A client, from its first byte to its last."""

    def __init__(self, shared: Surroundings, stream: Stream) -> None:
        self._shared, self._stream = shared, stream
        self._address = stream.address("peername")
        self._kept = Kept()
        self._session: Session | None = None
        self._login: Login | None = None
        self._task: asyncio.Task[Any] | None = None
        self._running: asyncio.Future[Any] | None = None
        self._process = 0
        self._is_skipping = self._is_idle = self._is_busy = self._is_cancelled = self._is_ending = False
        self._has_asked = False
        self.account: str | None = None
        """Who has logged in."""

    async def serve(self) -> None:
        """Answer messages until the client or the server ends."""
        self._task = asyncio.current_task()
        try:
            try:
                async with asyncio.timeout(self._shared.patience):
                    entered = await self._enter()
                if entered:
                    await self._answer_messages()
            except Refusal as refusal:  # before the login every error ends the connection
                await self._end(_fatal(refusal))
            except ServiceUnavailable as error:
                await self._end(Fatal(str(error), state="57P03"))
            except DiscreetError as error:
                await self._end(Fatal(f"The gateway failed [{error.code}].", state="XX000"))
            except asyncio.CancelledError:
                if not self._is_ending or self._task is None:
                    raise
                self._task.uncancel()
                await self._end(_shutting_down())
        except (asyncio.IncompleteReadError, TimeoutError, OSError):
            pass  # the client is gone, or is too slow
        finally:
            await self._leave()

    async def _end(self, refusal: Fatal) -> None:
        self._stream.send(messages.error(refusal))
        async with asyncio.timeout(self._shared.patience):
            await self._stream.flush()

    async def _leave(self) -> None:
        self._shared.cancels.remove(self._process)
        self._stream.close()
        if self._session is not None:
            with contextlib.suppress(Exception):
                await self._session.close()
        if self._login is not None:
            await log_out(self._shared.vault, self._login)

    # --- beginning and ending -------------------------------------------------------------------------------

    async def _enter(self) -> bool:
        """Whether the client has logged in. One that only cancels another's statement has not."""
        shared, stream = self._shared, self._stream
        startup = await handshake.read_startup(stream, shared.context, self._cancel_other)
        if startup is None:
            return False
        known = f"{network_of(self._address)} {startup.user}"
        wait, key = shared.gate.enter(self._address, known)
        if wait:
            raise Fatal(f"Too many logins. Try again after {wait:.0f} s.", state="53000")
        try:
            login = await log_in(stream, shared.vault, startup.user, shared.certificate, self._address)
        except WrongLogin:
            shared.gate.fail(self._address, known)
            raise
        finally:
            shared.gate.leave(key)
        shared.gate.accept(known)
        shared.gate.accept(_questions_of(login.account))
        self._login, self.account = login, login.account
        if not shared.places.move(network_of(self._address), login.account):
            raise Fatal("This account has too many connections. Close some.", state="53300")
        self._session = await shared.open_session(
            shared.vault,
            login.session,
            account=login.account,
            database=startup.database,
            options=startup.options,
            cancelled=lambda: self._is_cancelled,
        )
        told = _SETTINGS | {"session_authorization": login.account} | dict(self._session.reported)
        stream.send(*(messages.parameter_status(name, value) for name, value in told.items()))
        self._process, secret = shared.cancels.add(self._cancel)
        stream.send(messages.key_data(self._process, secret), messages.ready(self._session.status))
        await stream.flush()
        return True

    def _cancel_other(self, process: int, key: int) -> None:
        """Cancel what another connection runs. Nobody may try many keys, and nobody is told whether one was right."""
        wait, entered = self._shared.gate.enter(self._address, None)
        if not wait:
            self._shared.cancels.cancel(process, key)
            self._shared.gate.leave(entered)

    def _cancel(self) -> None:
        if self._is_busy:
            self._is_cancelled = True
            if self._running is not None:
                self._running.cancel()

    def stop(self) -> None:
        """End as soon as what runs has ended."""
        self._is_ending = True
        if self._has_asked:
            self._stop_idle()
        else:
            asyncio.get_running_loop().call_later(LINGER, self._stop_idle)

    def _stop_idle(self) -> None:
        self._has_asked = True
        if self._is_idle and not self._stream.reader.pending and self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        """End at once."""
        self._stream.abort()
        if self._task is not None:
            self._task.cancel()

    # --- messages -------------------------------------------------------------------------------------------

    async def _answer_messages(self) -> None:
        while True:
            kind, body = await self._next()
            if kind == b"X":
                return
            if kind[0] not in messages.KINDS:
                raise Fatal("The kind of the message is unknown.", state="08P01")
            if self._is_skipping and kind != b"S":
                continue
            await self._answer(kind, body)
            if self._stream.is_full:
                await self._stream.flush()

    async def _next(self) -> tuple[bytes, Body]:
        if self._is_ending and self._has_asked and not self._stream.reader.pending:
            raise _shutting_down()
        self._is_idle = True
        try:
            return await self._stream.message()
        finally:
            self._is_idle = False

    async def _answer(self, kind: bytes, body: Body) -> None:
        """Answer a message. After an error, the others are skipped up to the next Sync."""
        self._has_asked = True
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
            self._is_busy = False
        if kind in (b"Q", b"F"):
            await self._ready()

    def _refuse(self, refusal: Refusal, kind: bytes) -> None:
        self._stream.send(messages.error(refusal))
        self._own.fail()
        self._is_skipping = kind not in (b"Q", b"F", b"S")

    @property
    def _own(self) -> Session:
        assert self._session is not None
        return self._session

    async def _ready(self) -> None:
        status = self._own.status
        if status != "T":
            self._kept.close_portals()
        self._stream.send(messages.ready(status))
        await self._stream.flush()

    async def _during(self, work: Awaitable[T]) -> T:
        """Wait for the session. A cancel request ends the wait, and nothing else."""
        running: asyncio.Future[T] = asyncio.ensure_future(work)
        self._running = running
        try:
            return await running
        except asyncio.CancelledError:
            if self._is_cancelled and not self._is_ended():
                raise _cancelled() from None
            raise
        except OSError:  # of the session: the connection itself is fine
            raise Refusal("The gateway failed. Nothing was handed out.", state="XX000") from None
        finally:
            self._running = None

    def _is_ended(self) -> bool:
        """Whether this connection itself is cancelled."""
        return self._task is not None and self._task.cancelling() > 0

    def _begin(self) -> None:
        self._is_busy, self._is_cancelled = True, False

    async def _read(self, text: str) -> list[Any]:
        found = await self._during(asyncio.to_thread(self._own.read, text))
        return [one for one in found if not one.is_empty]

    async def _run(self, statement: Any, values: Sequence[Any] = ()) -> Result:
        """Run a statement, which may be charged."""
        if getattr(statement, "what", "") == "deallocate" and self._own.status != "E":
            name = getattr(statement, "name", "")
            if name in self._kept.statements and name:  # prepared by a message, of which the session does not know
                self._kept.close_statement(name)
                return Result("DEALLOCATE")
        wait, key = self._shared.gate.enter(self._address, _questions_of(self.account or ""))
        if wait:
            raise Refusal(f"Too many statements. Try again after {wait:.1f} s.", state="53000")
        try:
            found = await self._during(self._own.run(statement, values))
        finally:
            self._shared.gate.leave(key)
        if found.tag in ("DEALLOCATE ALL", "DISCARD ALL"):
            self._kept.close_statements()
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
        if self._is_cancelled:
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
        self._kept.close_statement("")
        self._kept.close_portal("")
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
            self._kept.close_statement("")
        statements = await self._read(text)
        if len(statements) > 1:
            raise Refusal("A prepared statement can have only one statement.", state="42601")
        prepared = Prepared(statements[0] if statements else None, declared, len(text) + len(name) + 4 * len(declared))
        self._kept.prepare(name, prepared)
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
        prepared = self._kept.statement(source)
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
        self._kept.bind(name, portal)
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
        found = await self._during(self._own.describe(prepared.statement, prepared.declared))
        prepared.parameters = found.parameters
        return found

    async def _describe(self, body: Body) -> None:
        kind, name = body.byte(), body.text()
        body.end()
        self._begin()
        if kind == b"S":
            prepared = self._kept.statement(name)
            found = prepared.told = await self._described(prepared)
            self._stream.send(messages.parameter_description(found.parameters))
            formats: tuple[int, ...] = ()
        elif kind == b"P":
            portal = self._kept.portal(name)
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
        portal = self._kept.portal(name)
        self._begin()
        if portal.prepared.statement is None:
            self._stream.send(messages.EMPTY_QUERY)
            return
        first = not portal.has_begun
        if first:
            self._kept.check_room(portal)
            portal.has_begun = True
            portal.result = _as_told(
                await self._run(portal.prepared.statement, portal.values), portal.told or portal.prepared.told
            )
            self._send_notices(portal.result)
        result = portal.result
        if result is None:
            raise Refusal("This portal has failed, and cannot be run again.", state="55000")
        if not first and self._own.status == "E":
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
            self._stream.send(messages.SUSPENDED)
        else:
            self._send_end(result, result.tag if first else tag_of(result, len(rows)))
            portal.result = Result(result.tag, result.columns)
            portal.sent = 0

    async def _close(self, body: Body) -> None:
        kind, name = body.byte(), body.text()
        body.end()
        if kind == b"S":
            self._kept.close_statement(name)
        elif kind == b"P":
            self._kept.close_portal(name)
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


_HANDLERS: dict[bytes, Callable[[Connection, Body], Awaitable[None]]] = {
    b"Q": Connection._query,
    b"F": Connection._call_function,
    b"P": Connection._parse,
    b"B": Connection._bind,
    b"D": Connection._describe,
    b"E": Connection._execute,
    b"C": Connection._close,
    b"H": Connection._flush,
    b"S": Connection._sync,
    **dict.fromkeys((b"d", b"c", b"f"), Connection._ignore),
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


def _questions_of(account: str) -> str:
    """The name under which the statements of an account are counted."""
    return f"statements of {account}"


def _fatal(refusal: Refusal) -> Fatal:
    if isinstance(refusal, Fatal):
        return refusal
    return Fatal(refusal.message, state=refusal.state, hint=refusal.hint, position=refusal.position)


def _cancelled() -> Refusal:
    return Refusal(
        "The statement was cancelled. What it cost is kept: ask again, and the answer is free.", state="57014"
    )


def _shutting_down() -> Fatal:
    return Fatal("The gateway is stopping. Connect again.", state="57P01")
