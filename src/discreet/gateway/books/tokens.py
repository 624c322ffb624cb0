"""Tokens: who calls, and what the token allows. A token is `dsc_<id>_<secret>`, with a secret of 256 random bits.

The database has the SHA-256 of the secret, and a SCRAM verifier of the whole token for the PostgreSQL protocol. Neither
gives the token back: its entropy makes guessing hopeless. All tokens of an account have the same salt, because a client
asks for it before it shows which token it has. Whoever has no valid token learns nothing from the refusal,
which is the same for an unknown id, a wrong secret, an expired token and a revoked one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.randomness import random_integer
from discreet.exact.rational import LEDGER_UNIT, round_down
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore, note_change, scram_secret
from discreet.ledger.stores.store import Execute

SCOPES = ("ask", "replay", "explain", "manage", "metrics")
"""What a token may be for: new questions, stored answers, plans, accounts and tokens, and the metrics."""
ROLES = {
    "owner": SCOPES,
    "steward": ("explain", "manage"),
    "auditor": ("explain", "manage", "metrics"),
    "analyst": ("ask", "replay", "explain", "manage"),
    "viewer": ("replay", "explain", "manage"),
    "service": ("ask", "replay", "explain", "metrics"),
}
"""The roles, and the scopes that a token of each may have."""
_PLAIN = ("ask", "replay", "explain")
"""The scopes of a token that names none, as far as its role has them: it cannot make other tokens."""
LIFETIME, LONGEST_LIFETIME, SESSION = 90 * 86_400.0, 3660 * 86_400.0, 12 * 3600.0
"""Seconds: of a token that names no end, the longest, and of a login."""
MOST_A_DAY = 200
"""So many tokens are made for one account in a day, by others than the owner."""
ITERATIONS = 4096
"""Of the SCRAM verifiers. Tokens have 256 random bits, so more would only cost time."""
_TOKEN = re.compile(r"dsc_([0-9a-f]{16})_([0-9a-f]{64})")
_NOBODY = ""
"""The id of a token that nobody has. It is read in place of an unknown one, so that both take the same time."""
_BY_ID = "FROM tokens WHERE id = COALESCE((SELECT id FROM tokens WHERE id = ?), '')"
_MOST_KNOWN = 10_000


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who calls, by a token. `token` is its id, and None for the owner at the command line."""

    account: str
    role: str
    scopes: frozenset[str]
    token: str | None = None
    expires: float | None = None
    epsilon: Fraction | None = None
    """What the token may spend in all, if it is less than the account."""


COMMAND_LINE = Caller(account="(command line)", role="owner", scopes=frozenset(SCOPES))
"""Whoever can write to the database is its owner. No account can have this name."""


# --- making them --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewToken:
    """A token that was just made. Its text is shown once, and stored nowhere."""

    id: str
    text: str = field(repr=False)
    digest: str = field(repr=False)


def new_token(identity: str | None = None) -> NewToken:
    """A new token, or a new secret for a token with this id."""
    name = identity or f"{random_integer(64):016x}"
    secret = new_secret()
    text = f"dsc_{name}_{secret}"
    return NewToken(name, text, digest_of(secret))


def new_secret() -> str:
    """256 random bits."""
    return f"{random_integer(256):064x}"


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def salt_of(secret: bytes, account: str) -> bytes:
    """The salt of all tokens of an account. Who does not know the secret cannot tell it from that of no account."""
    return hmac.digest(secret, account.lower().encode("utf-8", "replace"), "sha256")[:16]


def scram_verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL would store for a password: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey` (RFC 5803)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    in_text = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{in_text[0]}${in_text[1]}:{in_text[2]}"


def scopes_for(role: str, wanted: Collection[str] | None) -> tuple[str, ...]:
    """The scopes of a new token: those that are wanted, if the role has them."""
    if wanted is None:
        return tuple(scope for scope in ROLES[role] if scope in _PLAIN) or ROLES[role]
    for scope in wanted:
        if scope not in ROLES[role]:
            raise InvalidArgument(
                f"A token of the role {role} can have the scopes {', '.join(ROLES[role])}. Choose among them.",
                code="gateway-scope",
            )
    return tuple(scope for scope in SCOPES if scope in wanted)


def add_token(
    execute: Execute,
    made: NewToken,
    account: str,
    *,
    name: str,
    scopes: Collection[str],
    now: float,
    lifetime: float,
    epsilon: Fraction | None = None,
) -> None:
    """Store a token, inside a transaction of the store."""
    scram = scram_verifier(made.text, salt_of(scram_secret(execute), account))
    execute(
        "INSERT INTO tokens (id, account, name, digest, scram, scopes, at, expires, revoked, units, spent, "
        "session_start, session_last, session_spent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, '0', 0, 0, '0')",
        *(made.id, account, name, made.digest, scram, " ".join(scopes)),
        *(microseconds(now), microseconds(now + lifetime), None if epsilon is None else str(round_down(epsilon))),
    )
    note_change(execute)


def made_since(execute: Execute, account: str, since: float) -> int:
    """How many tokens of an account were made since then, without logins."""
    given = (account, microseconds(since))
    return int(execute("SELECT COUNT(*) FROM tokens WHERE account = ? AND at > ? AND name <> 'login'", *given)[0][0])


def change_secret(execute: Execute, made: NewToken) -> None:
    """Give a token a new secret. The old one is no longer valid."""
    [(account,)] = execute("SELECT account FROM tokens WHERE id = ?", made.id)
    scram = scram_verifier(made.text, salt_of(scram_secret(execute), account))
    execute("UPDATE tokens SET digest = ?, scram = ? WHERE id = ?", made.digest, scram, made.id)
    note_change(execute)


def revoke(execute: Execute, *, identity: str | None = None, account: str | None = None) -> list[str]:
    """Revoke one token, or all tokens and unused login links of an account, at once. Returns the ids."""
    column, value = ("id", identity) if account is None else ("account", account)
    found = [one for (one,) in execute(f"SELECT id FROM tokens WHERE {column} = ? AND revoked = 0 ORDER BY id", value)]
    execute(f"UPDATE tokens SET revoked = 1 WHERE {column} = ?", value)
    if account is not None:
        execute("UPDATE links SET used = 1 WHERE account = ?", account)
    note_change(execute)
    return found


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    """What may be shown of a token."""

    id: str
    account: str
    name: str
    scopes: tuple[str, ...]
    at: float
    expires: float
    revoked: bool
    epsilon: Fraction | None
    spent: Fraction


def tokens_of(execute: Execute, account: str | None = None) -> list[TokenRow]:
    """The tokens of an account, or all, oldest first."""
    where, value = ("id <> ?", _NOBODY) if account is None else ("account = ?", account)
    found = execute(
        "SELECT id, account, name, scopes, at, expires, revoked, units, spent FROM tokens "
        f"WHERE {where} ORDER BY at, id",
        value,
    )
    return [_shown(row) for row in found]


def token_row(execute: Execute, identity: str) -> TokenRow | None:
    """What may be shown of one token. None if there is no such token."""
    if not re.fullmatch(r"[0-9a-f]{16}", identity):
        return None
    found = execute(
        "SELECT id, account, name, scopes, at, expires, revoked, units, spent FROM tokens WHERE id = ?", identity
    )
    return _shown(found[0]) if found else None


def _shown(row: tuple[Any, ...]) -> TokenRow:
    identity, account, name, scopes, at, expires, revoked, units, spent = row
    return TokenRow(
        id=identity,
        account=account,
        name=name,
        scopes=tuple(scopes.split()),
        at=at / 1e6,
        expires=expires / 1e6,
        revoked=bool(revoked),
        epsilon=_amount(units),
        spent=Fraction(int(spent), LEDGER_UNIT),
    )


def _amount(units: str | None) -> Fraction | None:
    return None if units is None else Fraction(int(units), LEDGER_UNIT)


# --- using them ---------------------------------------------------------------------------------------------


def authenticate(store: GatewayStore, text: str | None, now: float) -> Caller:
    """The caller with this token. Every refusal but a suspension is the same, after the same work."""
    identity, secret = _parts(text)
    return holder(store, identity, digest_of(secret), now)


def holder(store: GatewayStore, identity: str, given: str, now: float) -> Caller:
    """The caller with the token of this id and this digest of a secret."""
    with store.read() as execute:
        [(found, digest, expires, revoked, scopes, units, account, role, suspended)] = execute(
            "SELECT token.id, token.digest, token.expires, token.revoked, token.scopes, token.units, accounts.name, "
            f"accounts.role, accounts.suspended FROM (SELECT * {_BY_ID}) AS token "
            "JOIN accounts ON accounts.name = token.account",
            identity,
        )
    right = hmac.compare_digest(given, digest)
    if not right or found == _NOBODY or revoked or microseconds(now) >= expires:
        raise login_error()
    if suspended:
        raise suspended_error()
    return Caller(
        account=account,
        role=role,
        scopes=frozenset(scopes.split()) & frozenset(ROLES[role]),
        token=identity,
        expires=expires / 1e6,
        epsilon=_amount(units),
    )


def is_right(execute: Execute, text: str) -> str | None:
    """The id of the token with this text, whether or not it is still valid. None if there is none."""
    identity, secret = _parts(text)
    [(found, digest)] = execute(f"SELECT id, digest {_BY_ID}", identity)
    right = hmac.compare_digest(digest_of(secret), digest)
    return identity if right and found != _NOBODY else None


def _parts(text: Any) -> tuple[str, str]:
    """The id and the secret of a token. What is none has the id that nobody has."""
    match = _TOKEN.fullmatch(text) if isinstance(text, str) else None
    return (match[1], match[2]) if match else (_NOBODY, str(text))


class Callers:
    """Callers that were seen before, as long as no process changes an account or a token."""

    def __init__(self, store: GatewayStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._generation = -1
        self._known: dict[tuple[str, str], Caller] = {}

    def caller(self, text: str | None, now: float) -> Caller:
        """The caller with this token, as `authenticate` would say now."""
        if not isinstance(text, str):
            raise login_error()
        identity, secret = _parts(text)
        return self.holder(identity, digest_of(secret), now)

    def holder(self, identity: str, digest: str, now: float) -> Caller:
        """The caller with the token of this id and this digest of a secret, as `holder` would say now."""
        generation, name = self._store.generation(), (identity, digest)
        with self._lock:
            if generation != self._generation or len(self._known) >= _MOST_KNOWN:
                self._known, self._generation = {}, generation
            found = self._known.get(name)
        if found is None:
            found = holder(self._store, identity, digest, now)
            with self._lock:
                if generation == self._generation:
                    self._known[name] = found
        elif found.expires is not None and now >= found.expires:
            raise login_error()
        return found


def login_error() -> NotAllowed:
    """The one refusal of whoever cannot show who they are."""
    return NotAllowed(
        "This is no valid token or link. It may be mistyped, expired or revoked, or a link that was used already. Ask "
        "the owner of the data for a login link.",
        code="gateway-login",
    )


def suspended_error() -> NotAllowed:
    """What the holder of a valid token of a suspended account is told."""
    return NotAllowed("This account is suspended. Ask the owner of the data to resume it.", code="gateway-suspended")
