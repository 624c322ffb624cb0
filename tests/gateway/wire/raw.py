"""A client that sends and reads raw messages, and knows the protocol independently of the server."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

import scramp


class Message(NamedTuple):
    """A message of the server."""

    kind: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an error or a notice."""
        parts = self.body.decode().rstrip("\0").split("\0")
        return {part[0]: part[1:] for part in parts if part}


def packed(kind: str, body: bytes = b"") -> bytes:
    """A message of a client."""
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def startup(version: int = 3 << 16, **given: str) -> bytes:
    """The first message."""
    body = b"".join(f"{name}\0{value}\0".encode() for name, value in given.items()) + b"\0"
    return struct.pack("!ii", len(body) + 8, version) + body


def query(text: str) -> bytes:
    return packed("Q", text.encode() + b"\0")


def parse(text: str, name: str = "", *oids: int) -> bytes:
    body = f"{name}\0{text}\0".encode() + struct.pack(f"!h{len(oids)}I", len(oids), *oids)
    return packed("P", body)


def bind(
    portal: str = "",
    statement: str = "",
    values: tuple[bytes | None, ...] = (),
    formats: tuple[int, ...] = (),
    results: tuple[int, ...] = (),
) -> bytes:
    body = f"{portal}\0{statement}\0".encode() + struct.pack(f"!h{len(formats)}h", len(formats), *formats)
    body += struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return packed("B", body + struct.pack(f"!h{len(results)}h", len(results), *results))


def describe(kind: str, name: str = "") -> bytes:
    return packed("D", f"{kind}{name}\0".encode())


def execute(portal: str = "", most: int = 0) -> bytes:
    return packed("E", f"{portal}\0".encode() + struct.pack("!i", most))


def close(kind: str, name: str = "") -> bytes:
    return packed("C", f"{kind}{name}\0".encode())


SYNC, FLUSH, TERMINATE = packed("S"), packed("H"), packed("X")


class Client:
    """A connection that has not logged in yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.process = self.key = 0
        self._buffer = bytearray()
        self.settings: dict[str, str] = {}

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            part = self.socket.recv(2**16)
            if not part:
                raise EOFError
            self._buffer += part
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def read(self) -> Message:
        """The next message."""
        kind, length = struct.unpack("!ci", self.exactly(5))
        return Message(kind.decode(), self.exactly(length - 4))

    def until_ready(self) -> list[Message]:
        """All messages up to ReadyForQuery, or up to an error that ends the connection."""
        found = [self.read()]
        while found[-1].kind != "Z" and not (found[-1].kind == "E" and found[-1].fields["S"] == "FATAL"):
            found.append(self.read())
        return found

    def ask(self, *messages: bytes) -> list[Message]:
        """What is answered to some messages that end with a Sync or are a Query."""
        self.send(*messages)
        return self.until_ready()

    def kinds(self, *messages: bytes) -> str:
        """The kinds of the answers."""
        return "".join(one.kind for one in self.ask(*messages))

    def log_in(
        self, user: str, password: str, *, named: str | None = None, mechanism: str | None = None, **options: str
    ) -> list[Message]:
        """Log in by SCRAM, with scramp as an independent client."""
        self.send(startup(user=user, **options))
        offer = self.read()
        if offer.kind == "E":
            return [offer]
        assert offer.body[:4] == struct.pack("!i", 10)
        names = [mechanism] if mechanism else offer.body[4:].rstrip(b"\0").decode().split("\0")
        client = scramp.ScramClient(names, named or user, password)
        first = client.get_client_first().encode()
        self.send(packed("p", client.mechanism_name.encode() + b"\0" + struct.pack("!i", len(first)) + first))
        answer = self.read()
        if answer.kind == "E":
            return [answer]
        client.set_server_first(answer.body[4:].decode())
        self.send(packed("p", client.get_client_final().encode()))
        answer = self.read()
        if answer.kind == "E":
            return [answer]
        client.set_server_final(answer.body[4:].decode())
        found = self.until_ready()
        for one in found:
            if one.kind == "K":
                self.process, self.key = struct.unpack("!iI", one.body)
            if one.kind == "S":
                name, value, _ = one.body.decode().split("\0")
                self.settings[name] = value
        return found

    def close(self) -> None:
        self.socket.close()
