"""SCRAM-SHA-256 at the vault (RFC 5802, RFC 7677): a login of the PostgreSQL protocol, whose password is a token.

The desk carries the messages and never sees what a password could be guessed from. A client that names an unknown
account gets a salt by the same rule and the same refusal after the same work. A login gives a session: a random text in
the memory of the vault that stands for the token until the connection ends.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from discreet.exact.randomness import random_integer
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.offices import check_arguments
from discreet.gateway.books.store import GatewayStore, scram_secret
from discreet.gateway.books.tokens import ITERATIONS, SESSION, login_error, new_secret, salt_of, suspended_error

PATIENCE = 10.0
"""A login must have ended after so many seconds."""
MOST_EXCHANGES = 10_000
MOST_SESSIONS = 10_000
PREFIX = "dsw_"
"""How the text of a session begins."""
PLUS = "SCRAM-SHA-256-PLUS"
MECHANISMS = (PLUS, "SCRAM-SHA-256")
BINDING = "tls-server-end-point"
_STEP = 16
"""Proofs are tried against a multiple of so many verifiers, so that time tells little about an account."""
_FIRST = re.compile(r"((?:n|y|p=[A-Za-z0-9.-]{1,40}),,)(n=([^,\x00]{0,200}),r=([\x21-\x2b\x2d-\x7e]{1,256}))")
_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]{1,1000}),r=([\x21-\x2b\x2d-\x7e]{1,600})),p=([A-Za-z0-9+/]{43}=)", re.ASCII)
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)")
_DECOY = (b"\x00" * 32, b"\x00" * 32)


class Exchange(NamedTuple):
    """A login that has begun."""

    account: str
    bare: str
    server_first: str
    nonce: str
    binding: str
    """What the client must repeat: its own header, and the hash of the certificate if it is bound to it."""
    at: float


class Proven(NamedTuple):
    """A login that succeeded: the token that the client has, and how the server proves that it knows it, too."""

    account: str
    token: str
    digest: str
    server_final: str


class Exchanges:
    """Logins that have begun. Each can be finished once, and is forgotten after some seconds."""

    def __init__(self, store: GatewayStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        with store.read() as execute:
            self._secret = scram_secret(execute)
        self._begun: OrderedDict[str, Exchange] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The server's first message. It reads nothing about the account."""
        check_arguments("scram_first", arguments, ("account", "mechanism", "message"), ("certificate",))
        account, mechanism, certificate = (arguments.get(key) for key in ("account", "mechanism", "certificate"))
        match = _FIRST.fullmatch(arguments["message"]) if isinstance(arguments["message"], str) else None
        if match is None or not isinstance(account, str) or not isinstance(certificate, str | None):
            raise login_error()
        header, bare, _, own = match.groups()
        nonce = own + base64.b64encode(random_integer(144).to_bytes(18, "big")).decode()
        salt = base64.b64encode(salt_of(self._secret, account)).decode()
        message = f"r={nonce},s={salt},i={ITERATIONS}"
        begun = Exchange(account, bare, message, nonce, _binding(header, mechanism, certificate), self._clock())
        name = f"{random_integer(128):032x}"
        with self._lock:
            self._begun[name] = begun
            while len(self._begun) > MOST_EXCHANGES:
                self._begun.popitem(last=False)
        return {"exchange": name, "message": message}

    def final(self, arguments: Mapping[str, Any], now: float) -> Proven:
        """Check the proof of the client against every valid token of the account."""
        check_arguments("scram_final", arguments, ("exchange", "message"), ())
        with self._lock:
            begun = self._begun.pop(str(arguments["exchange"]), None)
        match = _FINAL.fullmatch(arguments["message"]) if isinstance(arguments["message"], str) else None
        if begun is None or match is None or self._clock() - begun.at > PATIENCE:
            raise login_error()
        without_proof, binding, nonce, proof = match.groups()
        same_nonce = hmac.compare_digest(nonce, begun.nonce)
        if not hmac.compare_digest(binding, begun.binding) or not same_nonce:
            raise login_error()
        said = f"{begun.bare},{begun.server_first},{without_proof}".encode()
        with self._store.read() as execute:
            rows = execute(
                "SELECT tokens.id, tokens.digest, tokens.scram, accounts.name, accounts.suspended FROM tokens "
                "JOIN accounts ON accounts.name = tokens.account WHERE accounts.folded = ? AND tokens.id <> '' "
                "AND tokens.revoked = 0 AND tokens.expires > ?",
                *(begun.account.lower(), microseconds(now)),
            )
        keys = [_keys(scram) for _, _, scram, _, _ in rows]
        found = _which(keys + [_DECOY] * (_STEP - len(keys) % _STEP), said, base64.b64decode(proof))
        if found is None or found >= len(rows):
            raise login_error()
        identity, digest, _, account, suspended = rows[found]
        if suspended:
            raise suspended_error()
        signature = base64.b64encode(hmac.digest(keys[found][1], said, "sha256")).decode()
        return Proven(account, identity, digest, f"v={signature}")


def _binding(header: str, mechanism: Any, certificate: str | None) -> str:
    """What a client must repeat. Its flag must fit what was offered: else somebody between us has changed the offer."""
    flag = header[:-2]
    bound = flag.startswith("p=")
    fits = flag == f"p={BINDING}" and certificate is not None if bound else flag == "n" or certificate is None
    if mechanism not in MECHANISMS or bound != (mechanism == PLUS) or not fits:
        raise login_error()
    try:
        data = base64.b64decode(certificate or "", validate=True) if bound else b""
    except binascii.Error:
        raise login_error() from None
    return base64.b64encode(header.encode() + data).decode()


def _keys(scram: str) -> tuple[bytes, bytes]:
    """The stored key and the server key of a verifier."""
    match = _VERIFIER.fullmatch(scram)
    return (base64.b64decode(match[3]), base64.b64decode(match[4])) if match else _DECOY


def _which(keys: list[tuple[bytes, bytes]], said: bytes, proof: bytes) -> int | None:
    """The number of the verifier that the proof fits. All of them are tried, whichever fits."""
    found = None
    for number, (stored, _) in enumerate(keys):
        signature = hmac.digest(stored, said, "sha256")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if hmac.compare_digest(hashlib.sha256(client_key).digest(), stored):
            found = number
    return found


class Session(NamedTuple):
    """What a session stands for: a token with this secret."""

    token: str
    digest: str
    expires: float


class Sessions:
    """Sessions of connections that are open. Nothing of them is stored."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: OrderedDict[str, Session] = OrderedDict()

    def begin(self, proven: Proven) -> str:
        """The text of a new session."""
        text = PREFIX + new_secret()
        self._open[_digest(text)] = Session(proven.token, proven.digest, self._clock() + SESSION)
        while len(self._open) > MOST_SESSIONS:
            self._open.popitem(last=False)
        return text

    def find(self, text: str) -> Session:
        """The session with this text."""
        found = self._open.get(_digest(text))
        if found is None or self._clock() >= found.expires:
            raise login_error()
        return found

    def end(self, text: str) -> None:
        """Forget a session."""
        self._open.pop(_digest(text), None)

    def __len__(self) -> int:
        return len(self._open)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
