"""Accounts: people and programs who may use the gateway, with a role, and for those who ask a limit in the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_delta, check_epsilon
from discreet.gateway.books import audit, late
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore, note_change, set_number
from discreet.gateway.books.tokens import (
    ROLES,
    SESSION,
    Caller,
    NewToken,
    add_token,
    digest_of,
    login_error,
    new_secret,
    new_token,
    revoke,
    suspended_error,
)
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.ledger import Ledger
from discreet.ledger.stores.store import Execute

CHARGED = ("analyst", "service")
"""The roles with an account in the ledger."""
LINK = 24 * 3600.0
"""How long a login link is valid, in seconds."""
KEPT = 30 * 86_400.0
"""How long ended logins and counts of past days are kept, in seconds."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account as it is stored."""

    name: str
    role: str
    suspended: bool
    at: float


@dataclass(frozen=True)
class Login:
    """A token that a login gave, for a few hours."""

    account: str
    text: str = field(repr=False)
    expires: float


def find_account(execute: Execute, name: Any) -> Account:
    """The account with this name, in upper or lower case."""
    found = execute("SELECT name, role, suspended, at FROM accounts WHERE folded = ?", check_name(name).lower())
    if not found:
        raise InvalidArgument(
            f"There is no account {name}. discreet account … list shows all of them.", code="gateway-not-found"
        )
    name, role, suspended, at = found[0]
    return Account(name=name, role=role, suspended=bool(suspended), at=at / 1e6)


def all_accounts(execute: Execute) -> list[Account]:
    """Every account, by name."""
    found = execute("SELECT name, role, suspended, at FROM accounts WHERE name <> '' ORDER BY folded")
    return [Account(name=name, role=role, suspended=bool(off), at=at / 1e6) for name, role, off, at in found]


def check_name(name: Any) -> str:
    """A name that an account can have."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(
            "The name of an account has at most 64 letters, digits and . _ - @, such as alice or a.lee@clinic.org.",
            code="gateway-account-name",
        )
    return name


def check_role(role: Any) -> str:
    """A role that an account can have."""
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidArgument(f"A role is one of {', '.join(ROLES)}.", code="gateway-unknown-role")
    return role


# --- limits in the ledger -----------------------------------------------------------------------------------


def limit_like(limit: Guarantee, epsilon: Any, delta: Any = None) -> Guarantee:
    """A limit of the same kind as `limit`: with ε alone, or with ε and δ, by default the δ of `limit`."""
    check_epsilon(epsilon)
    if not isinstance(limit, Approx):
        raise InvalidArgument(
            "The gateway opens accounts in ε, but the limit of this ledger is of another kind. "
            "Use a ledger with a limit in ε.",
            code="ledger-limit-kind",
        )
    if not isinstance(limit, Pure):
        return Approx(epsilon=epsilon, delta=limit.delta if delta is None else delta)
    if delta is not None and check_delta(delta):
        raise InvalidArgument(
            "The ledger's limit has no delta, so an account has none. Leave it out.", code="ledger-limit-kind"
        )
    return Pure(epsilon=epsilon)


def ledger_account(ledger: Ledger, name: str, epsilon: Any, delta: Any) -> None:
    """Open the account in the ledger, or find one with the same limit. Without ε it must exist."""
    for present in ledger.analysts:
        if present != name and present.lower() == name.lower():
            raise InvalidArgument(
                f"The ledger has an account {present}. Write its name in the same way.", code="gateway-account-exists"
            )
    if epsilon is None and name not in ledger.analysts:
        raise InvalidArgument(
            f"An account that asks questions needs a limit. Write --epsilon 3, or epsilon: 3, for {name}.",
            code="gateway-account-limit",
        )
    ledger.for_analyst(name, limit=None if epsilon is None else limit_like(ledger.limit, epsilon, delta))


# --- opening and changing -----------------------------------------------------------------------------------


def open_account(
    store: GatewayStore,
    ledger: Ledger,
    name: Any,
    role: Any = "analyst",
    *,
    epsilon: Any = None,
    delta: Any = None,
    by: Caller,
    now: float,
) -> str:
    """Open an account, here and in the ledger if its role asks questions. Returns the secret of a login link."""
    check_role(role)
    with store.read() as execute:
        _check_free(execute, check_name(name))
    if role in CHARGED:
        ledger_account(ledger, name, epsilon, delta)
    elif epsilon is not None or delta is not None:
        raise InvalidArgument(
            f"The role {role} asks nothing new, so it has no limit. Leave epsilon out.", code="gateway-account-limit"
        )
    secret = new_secret()
    with store.write() as execute:
        _check_free(execute, name)
        execute(
            "INSERT INTO accounts (name, folded, role, suspended, at) VALUES (?, ?, ?, 0, ?)",
            *(name, name.lower(), role, microseconds(now)),
        )
        note_change(execute)
        _add_link(execute, secret, name, now)
        audit.append(execute, now, by.account, "account opened", {"account": name, "role": role} | _said(epsilon))
    return secret


def _said(epsilon: Any) -> dict[str, str]:
    return {} if epsilon is None else {"epsilon": str(epsilon)}


def _check_free(execute: Execute, name: str) -> None:
    if execute("SELECT 1 FROM accounts WHERE folded = ?", name.lower()):
        raise InvalidArgument(
            f"There is an account {name} already. Choose another name, or make a new login link: "
            f"discreet account … link {name}.",
            code="gateway-account-exists",
        )


def set_suspended(
    store: GatewayStore, name: str | None, *, suspended: bool, by: Caller, now: float, late_at_most: int = 1
) -> None:
    """Suspend or resume an account at once. Without a name: all charged questions, of all accounts.

    Resuming all also clears the count of late answers: the owner has looked.
    """
    word = "suspended" if suspended else "resumed"
    with store.write() as execute:
        if name is None:
            set_number(execute, "stopped", int(suspended))
            details = {} if suspended else late.clear(execute, late_at_most)
            audit.append(execute, now, by.account, f"all {word}", details)
        else:
            account = find_account(execute, name)
            execute("UPDATE accounts SET suspended = ? WHERE name = ?", int(suspended), account.name)
            audit.append(execute, now, by.account, f"account {word}", {"account": account.name})
        note_change(execute)


def set_role(
    store: GatewayStore,
    ledger: Ledger,
    name: str,
    role: Any,
    *,
    epsilon: Any = None,
    delta: Any = None,
    by: Caller,
    now: float,
) -> None:
    """Change the role of an account. Its tokens lose the scopes that the new role does not have."""
    check_role(role)
    with store.read() as execute:
        known = find_account(execute, name).name
    if role in CHARGED:
        ledger_account(ledger, known, epsilon, delta)
    with store.write() as execute:
        account = find_account(execute, known)
        execute("UPDATE accounts SET role = ? WHERE name = ?", role, account.name)
        note_change(execute)
        details = {"account": account.name, "from": account.role, "to": role}
        audit.append(execute, now, by.account, "role changed", details)


def raise_limit(
    store: GatewayStore, ledger: Ledger, name: str, epsilon: Any, delta: Any = None, *, why: Any, by: Caller, now: float
) -> Guarantee:
    """Raise the limit of an account in the ledger, with a reason."""
    account = charged_account(store, ledger, name)
    limit = limit_like(ledger.for_analyst(account).limit, epsilon, delta)
    ledger.raise_limit(limit, why=why, analyst=account)
    return _limit_changed(store, ledger, account, "limit raised", why, by, now)


def renew(
    store: GatewayStore,
    ledger: Ledger,
    name: str,
    epsilon: Any = None,
    delta: Any = None,
    *,
    why: Any,
    by: Caller,
    now: float,
) -> Guarantee:
    """Begin a new period of an account, with the same limit or another one, with a reason."""
    account = charged_account(store, ledger, name)
    limit = None if epsilon is None else limit_like(ledger.for_analyst(account).limit, epsilon, delta)
    ledger.renew(limit, why=why, analyst=account)
    return _limit_changed(store, ledger, account, "limit renewed", why, by, now)


def charged_account(store: GatewayStore, ledger: Ledger, name: str) -> str:
    """The name of an account that also has a limit in the ledger."""
    with store.read() as execute:
        account = find_account(execute, name).name
    if account not in ledger.analysts:
        raise InvalidArgument(f"{account} has no limit of its own in the ledger.", code="gateway-account-limit")
    return account


def _limit_changed(
    store: GatewayStore, ledger: Ledger, account: str, what: str, why: str, by: Caller, now: float
) -> Guarantee:
    limit = ledger.for_analyst(account).limit
    with store.write() as execute:
        execute("DELETE FROM alerts WHERE account = ?", account)
        audit.append(execute, now, by.account, what, {"account": account, "limit": str(limit), "why": why})
    return limit


# --- logging in ---------------------------------------------------------------------------------------------


def new_link(store: GatewayStore, name: str, *, by: Caller, now: float) -> str:
    """The secret of a new login link for an account. Earlier links of it are no longer valid."""
    secret = new_secret()
    with store.write() as execute:
        account = find_account(execute, name)
        execute("UPDATE links SET used = 1 WHERE account = ?", account.name)
        _add_link(execute, secret, account.name, now)
        audit.append(execute, now, by.account, "login link made", {"account": account.name})
    return secret


def _add_link(execute: Execute, secret: str, account: str, now: float) -> None:
    execute(
        "INSERT INTO links (digest, account, expires, used) VALUES (?, ?, ?, 0)",
        *(digest_of(secret), account, microseconds(now + LINK)),
    )


def login(store: GatewayStore, secret: Any, now: float) -> Login:
    """Use a login link: a token for some hours. A link works once, however many use it at the same time."""
    made = new_token()
    with store.write() as execute:
        digest = digest_of(str(secret))
        found = execute("SELECT account, expires, used FROM links WHERE digest = ?", digest)
        if not found or found[0][2] or microseconds(now) >= found[0][1]:
            raise login_error()
        execute("UPDATE links SET used = 1 WHERE digest = ?", digest)
        return _begin_session(execute, made, find_account(execute, found[0][0]), "by a link", now)


def begin_session(store: GatewayStore, name: str, how: str, now: float) -> Login:
    """A token for some hours, for somebody whom a login provider has identified as the holder of this account."""
    made = new_token()
    with store.write() as execute:
        return _begin_session(execute, made, find_account(execute, name), how, now)


def _begin_session(execute: Execute, made: NewToken, account: Account, how: str, now: float) -> Login:
    if account.suspended:
        raise suspended_error()
    _forget_old(execute, now)
    scopes = ROLES[account.role]
    add_token(execute, made, account.name, name="login", scopes=scopes, now=now, lifetime=SESSION)
    audit.append(execute, now, account.name, "login", {"how": how, "token": made.id})
    return Login(account.name, made.text, now + SESSION)


def _forget_old(execute: Execute, now: float) -> None:
    """Delete what can no longer be used: ended logins, used links, and counts of days that are over."""
    long_ago = now - KEPT
    execute("DELETE FROM tokens WHERE name = 'login' AND expires < ?", microseconds(long_ago))
    execute("DELETE FROM links WHERE expires < ?", microseconds(long_ago))
    for table in ("days", "reservations"):
        execute(f"DELETE FROM {table} WHERE day < ?", int(long_ago // 86_400))


def revoke_all(store: GatewayStore, name: str, *, by: Caller, now: float) -> list[str]:
    """Revoke all tokens and unused login links of an account, at once."""
    with store.write() as execute:
        account = find_account(execute, name).name
        gone = revoke(execute, account=account)
        audit.append(execute, now, by.account, "tokens revoked", {"account": account, "tokens": gone})
    return gone
