"""Logging in over the PostgreSQL protocol: the desk offers SCRAM and carries its messages to the vault."""

from __future__ import annotations

import base64
import contextlib
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from discreet.errors import DiscreetError
from discreet.gateway.desk.http import Vault
from discreet.gateway.frames import BadFrame, Frame, parsed
from discreet.gateway.wire.format.messages import (
    LONGEST_STARTUP,
    Body,
    Fatal,
    Stream,
    authentication,
    cstring,
    violation,
)

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_OK, _SASL, _CONTINUE, _FINAL = 0, 10, 11, 12
_REFUSALS = ("gateway-login", "gateway-argument", "gateway-body")


class WrongLogin(Fatal):
    """A login that failed. It counts against the address."""


@dataclass(frozen=True)
class Login:
    """Who has logged in. The session stands for the token until the connection ends."""

    account: str
    session: str = field(repr=False)


def certificate_hash(pem: bytes) -> str | None:
    """What binds a login to a certificate (RFC 5929, tls-server-end-point). None if its signature names no hash."""
    certificate = x509.load_pem_x509_certificate(pem)
    found = certificate.signature_hash_algorithm
    if found is None:
        return None
    if isinstance(found, hashes.MD5 | hashes.SHA1):
        found = hashes.SHA256()
    return base64.b64encode(certificate.fingerprint(found)).decode()


async def log_in(stream: Stream, vault: Vault, user: str, certificate: str | None, address: str) -> Login:
    """The login of a user whose password is a token. `certificate` binds it to the encrypted connection."""
    offered = (PLUS, PLAIN) if stream.secure and certificate is not None else (PLAIN,)
    stream.send(authentication(_SASL, b"".join(map(cstring, offered)) + b"\0"))
    body = await _answer(stream)
    mechanism, length = body.text(), body.number()
    if mechanism not in offered:
        raise Fatal("The client chose a mechanism that was not offered.", state="08P01")
    content = body.rest
    if length != len(content):
        raise violation()
    given: dict[str, Any] = {"account": user, "mechanism": mechanism, "message": _text(content)}
    if PLUS in offered:
        given["certificate"] = certificate
    begun = await _ask(vault, "scram_first", given, user, address)
    stream.send(authentication(_CONTINUE, begun["message"].encode()))
    answer = (await _answer(stream)).rest
    given = {"exchange": begun["exchange"], "message": _text(answer)}
    ended = await _ask(vault, "scram_final", given, user, address)
    stream.send(authentication(_FINAL, ended["message"].encode()), authentication(_OK))
    return Login(ended["account"], ended["session"])


async def log_out(vault: Vault, login: Login) -> None:
    """End the session of a connection, if the vault is there."""
    with contextlib.suppress(DiscreetError):  # a vault that is gone has forgotten it
        await vault.call("logout", login.session)


async def _answer(stream: Stream) -> Body:
    await stream.flush()
    kind, body = await stream.message(LONGEST_STARTUP)
    if kind != b"p":
        raise Fatal("The client must answer with a message of the login.", state="08P01")
    return body


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise violation() from None


async def _ask(vault: Vault, verb: str, given: dict[str, Any], user: str, address: str) -> dict[str, Any]:
    try:
        frame = await vault.call(verb, None, given, address=address)
    except DiscreetError:
        raise _unavailable() from None
    if frame.header.get("ok") is not True:
        raise _refusal(frame, user)
    try:
        found = parsed(frame.body)
    except BadFrame:
        raise _unavailable() from None
    return dict(found)


def _refusal(frame: Frame, user: str) -> Fatal:
    code = frame.header.get("code")
    if code in _REFUSALS:
        return WrongLogin(
            f'password authentication failed for user "{user}"',
            state="28P01",
            hint="The user is your account, and the password a token of it, such as dsc_….",
        )
    if code == "gateway-suspended":
        return Fatal(str(frame.header.get("message")), state="28000")
    return _unavailable()


def _unavailable() -> Fatal:
    return Fatal("The gateway is starting or stopping. Try again.", state="57P03")
