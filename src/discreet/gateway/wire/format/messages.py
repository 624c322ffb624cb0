"""Messages of the PostgreSQL protocol 3.0 as bytes: reading those of a client, and writing those of a server.

Nothing here knows what a message means. A client cannot make the server keep more than one message of 1 MiB.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Sequence
from typing import Any, Literal

from discreet.gateway.wire.format.values import TYPES, Column, Notice, Refusal

LONGEST = 2**20
"""Bytes of a message, at most."""
LONGEST_STARTUP = 10_000
"""Bytes of the first message, and of those of a login, at most."""
PATIENCE = 60.0
"""A message that has begun must have arrived after so many seconds."""
BUFFERED = 2**16
"""So many bytes are collected before they are sent."""
KINDS = frozenset(b"BCDEFHPQSXcdf")
"""The kinds of messages that a client sends after its login."""
_HEAD = struct.Struct("!cI")
_SHORT, _INT = struct.Struct("!h"), struct.Struct("!i")


class Fatal(Refusal):
    """An error after which the connection is closed."""


def violation(message: str = "The message is invalid.") -> Refusal:
    """The error about a message that is not of the protocol."""
    return Refusal(message, state="08P01")


# --- reading ------------------------------------------------------------------------------------------------


class Reader(asyncio.StreamReader):
    """A stream that knows how many bytes have arrived and were not read yet."""

    def __init__(self) -> None:
        super().__init__(limit=BUFFERED)
        self.pending = 0

    def feed_data(self, data: Any) -> None:
        self.pending += len(data)
        super().feed_data(data)

    async def readexactly(self, n: int) -> bytes:
        found = await super().readexactly(n)
        self.pending -= n
        return found


class Body:
    """The body of a message, read from its beginning to its end."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def text(self) -> str:
        """A text that ends with a zero byte."""
        end = self._content.find(b"\0", self._at)
        if end < 0:
            raise violation()
        found, self._at = self._content[self._at : end], end + 1
        return decoded(found)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        end = self._at + count
        if count < 0 or end > len(self._content):
            raise violation()
        found, self._at = self._content[self._at : end], end
        return found

    def byte(self) -> bytes:
        """One byte."""
        return self.take(1)

    def short(self) -> int:
        """A number of 16 bits."""
        return int(_SHORT.unpack(self.take(2))[0])

    def count(self) -> int:
        """A number of 16 bits that says how many things follow."""
        return int.from_bytes(self.take(2), "big")

    def number(self) -> int:
        """A number of 32 bits."""
        return int(_INT.unpack(self.take(4))[0])

    def end(self) -> None:
        """Refuse what is left."""
        if self._at != len(self._content):
            raise violation()

    @property
    def rest(self) -> bytes:
        """What was not read yet."""
        return self.take(len(self._content) - self._at)


def decoded(content: bytes) -> str:
    """Text of a client, which is UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Refusal("The text is not UTF-8. Set client_encoding to UTF8.", state="22021") from None


class Stream:
    """A connection as messages. What is written is collected until `flush`."""

    def __init__(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer
        self._out: list[bytes] = []
        self._size = 0
        self.secure = False

    def address(self, name: Literal["peername", "sockname"]) -> str:
        """The address of the other side, or of this one."""
        found = self._writer.get_extra_info(name)
        return str(found[0]) if isinstance(found, tuple) else ""

    async def startup(self) -> tuple[int, Body]:
        """The code and the body of a message before the login, which has no kind."""
        length = int.from_bytes(await self.reader.readexactly(4), "big")
        if not 8 <= length <= LONGEST_STARTUP:
            raise Fatal("The length of the startup message is invalid.", state="08P01")
        content = await self.reader.readexactly(length - 4)
        return int.from_bytes(content[:4], "big"), Body(content[4:])

    async def message(self, longest: int = LONGEST) -> tuple[bytes, Body]:
        """The kind and the body of the next message. Waits as long as it takes until it begins."""
        kind, length = _HEAD.unpack(await self.reader.readexactly(_HEAD.size))
        length -= 4
        if not 0 <= length <= longest:
            raise Fatal(f"A message has at most {longest} bytes.", state="08P01")
        if self.reader.pending >= length:
            return kind, Body(await self.reader.readexactly(length))
        async with asyncio.timeout(PATIENCE):
            return kind, Body(await self.reader.readexactly(length))

    async def start_tls(self, context: ssl.SSLContext, patience: float) -> None:
        """Agree to encrypt the connection, and do so. What came before was not encrypted, and is refused."""
        self._check_nothing_came()
        self.send(b"S")
        await self.flush()
        self._check_nothing_came()
        await self._writer.start_tls(context, ssl_handshake_timeout=patience)
        self.secure = True

    def _check_nothing_came(self) -> None:
        if self.reader.pending:
            raise Fatal("Unencrypted data came after the request for encryption.", state="08P01")

    def send(self, *messages: bytes) -> None:
        """Write messages into the collection."""
        self._out += messages
        self._size += sum(map(len, messages))

    @property
    def is_full(self) -> bool:
        """Whether enough is collected to be sent."""
        return self._size >= BUFFERED

    async def flush(self) -> None:
        """Send what is collected, as fast as the client reads."""
        if self._out:
            self._writer.write(b"".join(self._out))
            self._out, self._size = [], 0
        await self._writer.drain()

    def close(self) -> None:
        """Close the connection after what was sent."""
        self._writer.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


# --- writing ------------------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message as bytes."""
    return _HEAD.pack(kind, len(body) + 4) + body


def cstring(text: str) -> bytes:
    """A text that ends with a zero byte."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
EMPTY_QUERY, NO_DATA, SUSPENDED = message(b"I"), message(b"n"), message(b"s")
COPY_DONE = message(b"c")


def authentication(code: int, content: bytes = b"") -> bytes:
    """A message of the login."""
    return message(b"R", _INT.pack(code) + content)


def ready(status: str) -> bytes:
    """The server waits for the next statement."""
    return message(b"Z", status.encode())


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting that a client is told."""
    return message(b"S", cstring(name) + cstring(value))


def key_data(process: int, key: int) -> bytes:
    """What a client needs to cancel a statement."""
    return message(b"K", struct.pack("!iI", process, key))


def negotiate(unknown: Sequence[str]) -> bytes:
    """The newest version that is spoken, 3.0, and the options of the protocol that are not known."""
    names = b"".join(map(cstring, unknown))
    return message(b"v", struct.pack("!ii", 3 << 16, len(unknown)) + names)


def complete(tag: str) -> bytes:
    """A statement has ended."""
    return message(b"C", cstring(tag))


def parameter_description(types: Sequence[str]) -> bytes:
    """The types of the parameters of a statement."""
    oids = [TYPES[name].oid for name in types]
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """The names, the types and the formats of the columns that follow."""
    parts = [struct.pack("!H", len(columns))]
    for column, form in zip(columns, formats, strict=True):
        oid, size = TYPES[column.type]
        parts += cstring(column.name), struct.pack("!IhIhih", 0, 0, oid, size, -1, form)
    return message(b"T", b"".join(parts))


def error(refusal: Refusal) -> bytes:
    """An error, with what the client may do about it, and where in its text it is."""
    severity = "FATAL" if isinstance(refusal, Fatal) else "ERROR"
    position = None if refusal.position is None else str(refusal.position)
    return message(b"E", _fields(severity, refusal.state, refusal.message, refusal.hint, position))


def notice(said: Notice) -> bytes:
    """Something that is said next to a result."""
    return message(b"N", _fields(said.severity, said.code, said.message, said.hint))


def _fields(severity: str, code: str, text: str, hint: str | None, position: str | None = None) -> bytes:
    given = {b"S": severity, b"V": severity, b"C": code, b"M": text, b"H": hint, b"P": position}
    return b"".join(key + cstring(value) for key, value in given.items() if value is not None) + b"\0"
