"""How the desk and the vault talk: length-prefixed frames over a Unix socket, many requests at once.

A frame is the length of its header and the length of its body, four bytes each, then the header as JSON and the body as
it is. A request is `{"id", "verb", "token", "arguments", "address"}`; where `arguments` is missing, the body holds them
as JSON text. A reply is `{"id", "ok": true, "type"}` with a body that is ready to be sent, or `{"id", "ok": false,
"kind", "code", "message"}`, perhaps with a "position" in the question. Nothing in a frame is ever executed or
unpickled.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import DiscreetError, InvalidArgument, ServiceUnavailable

_LENGTHS = struct.Struct("!II")
LONGEST_HEADER = 2**20
LONGEST_BODY = 2**30
LONGEST_REQUEST = 2**22
"""The body of a request is text that a person or a program wrote. Only replies are longer."""
_CREDENTIALS = struct.Struct("3i")


class BadFrame(Exception):
    """The other side sent something that is not a frame."""


class Frame(NamedTuple):
    """A header and a body."""

    header: dict[str, Any]
    body: bytes = b""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a request, from its header or its body."""
        found = self.header.get("arguments")
        if found is None:
            found = parsed(self.body) if self.body else {}
        if not isinstance(found, dict):
            raise BadFrame
        return found


def _refuse(_: str) -> Any:
    raise BadFrame


def _finite(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise BadFrame
    return found


_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_READER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def parsed(text: bytes) -> Any:
    """JSON text as values. What could not be written again is refused: NaN, numbers that are too large, and half of a
    character.
    """
    try:
        found = _READER.decode(text.decode())
        if b"\\ud" in text or b"\\uD" in text:
            json_bytes(found)
    except (ValueError, RecursionError):
        raise BadFrame from None
    return found


def json_bytes(content: Any) -> bytes:
    """Values as JSON text."""
    return _WRITER.encode(content).encode()


def packed(header: dict[str, Any], body: bytes = b"") -> bytes:
    """A frame as bytes."""
    text = json_bytes(header)
    return _LENGTHS.pack(len(text), len(body)) + text + body


async def read_frame(reader: asyncio.StreamReader, longest_body: int = LONGEST_BODY) -> Frame | None:
    """The next frame. None at the end."""
    try:
        head, body = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        if head > LONGEST_HEADER or body > longest_body:
            raise BadFrame
        text = await reader.readexactly(head)
        content = await reader.readexactly(body) if body else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    header = parsed(text)
    if not isinstance(header, dict):
        raise BadFrame
    return Frame(header, content)


def receive(link: socket.socket) -> Frame | None:
    """The next frame from a blocking socket. None at the end."""
    lengths = _exactly(link, _LENGTHS.size)
    if lengths is None:
        return None
    head, body = _LENGTHS.unpack(lengths)
    if head > LONGEST_HEADER or body > LONGEST_BODY:
        raise BadFrame
    text, content = _exactly(link, head), _exactly(link, body)
    if text is None or content is None:
        return None
    header = parsed(text)
    if not isinstance(header, dict):
        raise BadFrame
    return Frame(header, content)


def _exactly(link: socket.socket, many: int) -> bytes | None:
    """So many bytes. None if the other side closes before."""
    parts = []
    while many:
        part = link.recv(min(many, 2**20))
        if not part:
            return None
        parts.append(part)
        many -= len(part)
    return b"".join(parts)


def peer_user(connection: socket.socket) -> int:
    """The user id of the process at the other end, which the kernel vouches for."""
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)


# --- the vault's side ---------------------------------------------------------------------------------------

Handler = Callable[[Frame], Awaitable[Frame]]


async def serve_frames(path: Path, handle: Handler, users: Collection[int], *, mode: int = 0o600) -> asyncio.Server:
    """Answer frames at a Unix socket, for processes of these users only. Requests run side by side."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running: set[asyncio.Task[None]] = set()
        try:
            if peer_user(writer.get_extra_info("socket")) not in users:
                return
            while (frame := await read_frame(reader, LONGEST_REQUEST)) is not None:
                if type(frame.header.get("id")) is not int:
                    raise BadFrame
                task = asyncio.ensure_future(_reply(frame, handle, writer))
                running.add(task)
                task.add_done_callback(running.discard)
        except (BadFrame, ConnectionError, asyncio.CancelledError):
            pass  # a desk that sends anything else is not ours; at the end, all connections are cancelled
        finally:
            writer.close()

    with suppress(FileNotFoundError):
        path.unlink()
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(connected, path)
    finally:
        os.umask(before)
    path.chmod(mode)
    return server


async def _reply(frame: Frame, handle: Handler, writer: asyncio.StreamWriter) -> None:
    try:
        reply = await handle(frame)
    except BadFrame:
        writer.close()
        return
    with suppress(ConnectionError, RuntimeError):
        writer.write(replied(reply, frame.header.get("id")))
        await writer.drain()


def replied(reply: Frame, number: Any) -> bytes:
    """A reply as bytes. One whose header is too long is refused: the other side would hang up, and everybody else would
    lose what they wait for.
    """
    found = packed({**reply.header, "id": number}, reply.body)
    if _LENGTHS.unpack_from(found)[0] <= LONGEST_HEADER:
        return found
    error = InvalidArgument("What is to be said about this is too long. Send a shorter request.", code="gateway-body")
    return packed({**refusal(error).header, "id": number})


def refusal(error: DiscreetError, sql: str | None = None) -> Frame:
    """An error as a reply: what it is, its code and its message, and at which character of the question it points, if
    it is this question that it is about.
    """
    header: dict[str, Any] = {"ok": False, "kind": type(error).__name__, "code": error.code, "message": str(error)}
    if error.place is not None and (sql is None or error.place[0] == sql):
        header["position"] = error.place[1]
    more = getattr(error, "more", None)
    return Frame(header if more is None else header | {"more": more})


# --- the desk's side ----------------------------------------------------------------------------------------


class Link:
    """A connection to the vault, shared by all requests of a desk. It is opened again if it is lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def call(
        self,
        verb: str,
        token: str | None = None,
        arguments: dict[str, Any] | bytes | None = None,
        *,
        address: str = "",
    ) -> Frame:
        """Ask the vault. Arguments that are bytes are JSON text, which only the vault reads."""
        number = next(self._numbers)
        header: dict[str, Any] = {"id": number, "verb": verb, "token": token, "address": address}
        body = b""
        if isinstance(arguments, bytes):
            body = arguments
        else:
            header["arguments"] = arguments or {}
        sent = packed(header, body)
        if len(sent) > LONGEST_HEADER + len(body) or len(body) > LONGEST_REQUEST:
            # the vault would hang up, and everybody else would lose what they wait for
            raise InvalidArgument("The request is too long. Send a shorter one.", code="gateway-body")
        reply: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            writer = self._writer or await self._open()
            writer.write(sent)
            return await reply
        except (OSError, RuntimeError):
            raise unavailable() from None
        finally:
            self._waiting.pop(number, None)

    async def _open(self) -> asyncio.StreamWriter:
        async with self._lock:
            if self._writer is None:
                reader, self._writer = await asyncio.open_unix_connection(self.path)
                self._listening = asyncio.ensure_future(self._listen(reader))
            return self._writer

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while (frame := await read_frame(reader)) is not None:
                waiting = self._waiting.get(frame.header.get("id", 0))
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
        except BadFrame:
            pass
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection. Requests that wait are told that the vault is gone."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(unavailable())


def unavailable() -> ServiceUnavailable:
    """The error when the vault does not respond."""
    return ServiceUnavailable(
        "The gateway is starting or stopping. Nothing was handed out. Ask again with the same Idempotency-Key: "
        "nothing is charged twice.",
        code="gateway-unavailable",
    )
