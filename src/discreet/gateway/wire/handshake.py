"""The beginning of a connection: encryption, the startup message and its options, or a cancel request."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.gateway.wire.format.messages import Body, Fatal, Stream, negotiate

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
PATIENCE = 10.0
"""A client must have logged in after so many seconds."""
_OWN = ("user", "database", "options", "replication")
_ENCODINGS = ("utf8", "unicode", "sqlascii")
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Startup:
    """What a client says before its login: who it is, and the settings that it wants."""

    user: str
    database: str
    options: dict[str, str] = field(default_factory=dict)


async def read_startup(
    stream: Stream, context: ssl.SSLContext | None, cancel: Callable[[int, int], None]
) -> Startup | None:
    """What a client says first. None if it only wants to cancel what another connection runs: it is told nothing."""
    asked: set[int] = set()
    while True:
        code, body = await stream.startup()
        if code == CANCEL_REQUEST:
            process, key = body.number(), body.number() & 0xFFFFFFFF
            body.end()
            cancel(process, key)
            return None
        if code not in (SSL_REQUEST, GSS_REQUEST):
            return _startup(stream, code, body)
        if code in asked or stream.secure:
            raise Fatal("Encryption was asked for twice.", state="08P01")
        asked.add(code)
        if code == SSL_REQUEST and context is not None:
            await stream.start_tls(context, PATIENCE)
        else:
            stream.send(b"N")
            await stream.flush()


def _startup(stream: Stream, code: int, body: Body) -> Startup:
    major, minor = code >> 16, code & 0xFFFF
    if major != 3:
        raise Fatal(f"Version {major}.{minor} of the protocol is not supported. Use 3.0.", state="0A000")
    given = _settings(body)
    unknown = [name for name in given if name.startswith("_pq_.")]
    if minor or unknown:
        stream.send(negotiate(unknown))
    if not stream.secure and not (is_local(stream.address("peername")) and is_local(stream.address("sockname"))):
        raise Fatal(
            "The connection is not encrypted.", state="28000", hint="Connect with sslmode=require or verify-full."
        )
    user = given.get("user", "")
    if not user:
        raise Fatal("The client named no user. The user is your account.", state="28000")
    if given.get("replication", "off").lower() not in ("off", "false", "no", "0"):
        raise Fatal("Replication is not supported.", state="0A000")
    options = {name: value for name, value in given.items() if name not in _OWN and name not in unknown}
    options = parse_options(given.get("options", "")) | options
    encoding = options.get("client_encoding", "utf8")
    if re.sub("[^a-z0-9]", "", encoding.lower()) not in _ENCODINGS:
        raise Fatal("client_encoding must be UTF8.", state="22023")
    return Startup(user, given.get("database") or user, options)


def _settings(body: Body) -> dict[str, str]:
    found: dict[str, str] = {}
    while name := body.text():
        found[name] = body.text()
    body.end()
    return found


def parse_options(text: str) -> dict[str, str]:
    r"""The settings in `options`: -c name=value or --name=value, with \ before a space that is part of a value."""
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|[^\s\\])+", text)]
    found, at = {}, 0
    while at < len(words):
        word = words[at]
        if word == "-c" and at + 1 < len(words):
            at += 1
            word += words[at]
        match = _OPTION.fullmatch(word)
        if match is None:
            raise Fatal("options must be settings, such as -c discreet.epsilon=0.1.", state="42601")
        name = match[1] if word.startswith("-c") else match[1].replace("-", "_")
        found[name] = match[2]
        at += 1
    return found


def is_local(address: str) -> bool:
    """Whether an address is that of this machine."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
