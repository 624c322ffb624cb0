"""One connection of the PostgreSQL protocol, from its first byte to its last: it begins, it is served, and it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.gateway.desk.http import Vault
from discreet.gateway.desk.rates import Gate, network_of
from discreet.gateway.wire import handshake
from discreet.gateway.wire.cancels import Cancels
from discreet.gateway.wire.dialog import Dialog, Session
from discreet.gateway.wire.format import messages
from discreet.gateway.wire.format.messages import Body, Fatal, Stream
from discreet.gateway.wire.format.values import SERVER_VERSION, Refusal
from discreet.gateway.wire.login import Login, WrongLogin, log_in, log_out

LINGER = 2.0
"""A server that stops waits so many seconds for the first statement of somebody who has just logged in."""
_SETTINGS = {
    "server_version": SERVER_VERSION,
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
        self._session: Session | None = None
        self.dialog: Dialog | None = None
        """What is said, once the client has logged in."""
        self._login: Login | None = None
        self._task: asyncio.Task[Any] | None = None
        self._process = 0
        self._is_idle = self._is_ending = False
        self._has_asked = False
        self.account: str | None = None
        """Who has logged in."""

    async def serve(self) -> None:
        """Answer messages until the client or the server ends."""
        self._task = asyncio.current_task()
        try:
            try:
                async with asyncio.timeout(self._shared.patience):
                    startup = await self._enter()
                if startup is not None:
                    await self._answer_messages(await self._open(startup))
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

    async def _enter(self) -> handshake.Startup | None:
        """Let the client log in. None if it only cancels another's statement."""
        shared, stream = self._shared, self._stream
        startup = await handshake.read_startup(stream, shared.context, self._cancel_other)
        if startup is None:
            return None
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
        return startup

    async def _open(self, startup: handshake.Startup) -> Dialog:
        """Open the session of the client. The first one makes a catalog, which takes a while."""
        shared, stream, login = self._shared, self._stream, self._login
        assert login is not None
        self._session = await shared.open_session(
            shared.vault,
            login.session,
            account=login.account,
            database=startup.database,
            options=startup.options,
            cancelled=lambda: self.dialog is not None and self.dialog.is_cancelled,
        )
        dialog = self.dialog = Dialog(stream, self._session, self._turn)
        told = _SETTINGS | {"session_authorization": login.account} | dict(self._session.reported)
        stream.send(*(messages.parameter_status(name, value) for name, value in told.items()))
        self._process, secret = shared.cancels.add(dialog.cancel)
        stream.send(messages.key_data(self._process, secret), messages.ready(self._session.status))
        await stream.flush()
        return dialog

    def _cancel_other(self, process: int, key: int) -> None:
        """Cancel what another connection runs. Nobody may try many keys, and nobody is told whether one was right."""
        wait, entered = self._shared.gate.enter(self._address, None)
        if not wait:
            self._shared.cancels.cancel(process, key)
            self._shared.gate.leave(entered)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Lets a statement run, unless the account has sent too many."""
        wait, key = self._shared.gate.enter(self._address, _questions_of(self.account or ""))
        if wait:
            raise Refusal(f"Too many statements. Try again after {wait:.1f} s.", state="53000")
        try:
            yield
        finally:
            self._shared.gate.leave(key)

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

    async def _answer_messages(self, dialog: Dialog) -> None:
        while True:
            kind, body = await self._next()
            if kind == b"X":
                return
            if kind[0] not in messages.KINDS:
                raise Fatal("The kind of the message is unknown.", state="08P01")
            self._has_asked = True
            await dialog.answer(kind, body)
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


def _questions_of(account: str) -> str:
    """The name under which the statements of an account are counted."""
    return f"statements of {account}"


def _fatal(refusal: Refusal) -> Fatal:
    if isinstance(refusal, Fatal):
        return refusal
    return Fatal(refusal.message, state=refusal.state, hint=refusal.hint, position=refusal.position)


def _shutting_down() -> Fatal:
    return Fatal("The gateway is stopping. Connect again.", state="57P01")
