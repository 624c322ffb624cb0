"""The verbs with which owners, stewards and auditors look at a running gateway: its state, the trail of the audit, and
whether the records are whole. Nothing here depends on a row of the data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, NotAllowed, ServiceUnavailable
from discreet.gateway.books import audit, late, policies
from discreet.gateway.books.offices import Office, check_arguments, check_caller, verb
from discreet.gateway.books.plain import time_text
from discreet.gateway.books.tokens import Caller
from discreet.ledger.stores.store import URLS

if TYPE_CHECKING:
    from discreet.gateway.vault.vault import Vault

TRAIL = 40
"""Lines of the trail in one reply."""
SEARCHED = 100_000
"""A search looks at so many lines, so that nobody waits for it long."""
MOST_ENTRIES, MOST_LINES = 100_000, 1_000_000
"""Longer records are verified at the command line: here, all would wait for it."""


# --- the trail ----------------------------------------------------------------------------------------------


@verb(may=["before", "who", "what"], roles=("owner", "auditor"), scope="manage")
def trail(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Lines of the audit, newest first: those of one account, or those that begin with a word, before a number."""
    who, what, before = (arguments.get(key) for key in ("who", "what", "before"))
    if any(one is not None and not isinstance(one, str) for one in (who, what)):
        raise InvalidArgument("who and what are texts, such as alice and token.", code="gateway-argument")
    if before is not None and (type(before) is not int or not 0 < before < 2**62):
        raise InvalidArgument("before is a whole number from 1.", code="gateway-argument")
    last = audit.count(office.store)
    first = min(last + 1, before or last + 1)
    until = max(0, first - 1 - SEARCHED)
    found = audit.search(office.store, who, what, before=first, after=until, most=TRAIL)
    more = found[-1].number if len(found) == TRAIL else until + 1
    shown = [
        {"number": one.number, "at": time_text(one.at / 1e6), "who": one.who, "what": one.what, "details": one.content}
        for one in found
    ]
    return {"count": last, "lines": shown, "older": more if more > 1 else None}


# --- the records --------------------------------------------------------------------------------------------


async def verify(vault: Vault, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check every entry of the ledger, every line of the audit and every version of the policy. One at a time."""
    check_caller(caller, "verify", ("owner", "auditor"), "manage")
    check_arguments("verify", arguments, (), ())
    if vault.is_verifying:
        raise ServiceUnavailable(
            "The records are being verified already. Nothing was charged. Try again later.", code="gateway-busy"
        )
    vault.is_verifying = True
    try:
        return await asyncio.to_thread(verify_records, vault.office, caller)
    finally:
        vault.is_verifying = False


def verify_records(office: Office, caller: Caller) -> dict[str, Any]:
    """What was found: how many lines were checked, or what is damaged."""
    if office.ledger.count > MOST_ENTRIES or audit.count(office.store) > MOST_LINES:
        raise NotAllowed(
            "The record is too long to be verified here. On the gateway's machine, run discreet ledger … --verify and "
            "discreet account … audit --verify.",
            code="gateway-verify-size",
        )
    found = {
        "entries": _checked(office.ledger.verify),
        "lines": _checked(lambda: audit.verify(office.store)),
        "versions": _checked(lambda: len(policies.versions(office.store))),
    }
    whole = all(one["damage"] is None for one in found.values())
    audit.record(office.store, office.now(), caller.account, "records verified", whole=whole)
    return {"whole": whole, **found}


def _checked(check: Callable[[], int]) -> dict[str, Any]:
    try:
        return {"verified": check(), "damage": None}
    except LedgerDamaged as error:
        return {"verified": 0, "damage": {"code": error.code, "message": str(error)}}


# --- the state ----------------------------------------------------------------------------------------------


async def status(vault: Vault, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """How the gateway does. No place of data, no password, and nothing that a row decides."""
    check_caller(caller, "status", ("owner", "steward", "auditor"), "manage")
    check_arguments("status", arguments, (), ())
    try:
        plans = (await vault.tables(caller, {})).header.get("ok") is True
    except DiscreetError:
        plans = False
    books = await asyncio.to_thread(_books, vault.office)
    settings = vault.settings
    return {
        "version": __version__,
        "since": time_text(vault.since),
        "engine": {"kind": vault.engine, "plans": plans},
        **books,
        "lanes": settings.lanes,
        "waiting": vault.waiting,
        "settings": {
            "answer_after": settings.answer_after,
            "data_version": settings.version,
            "share": settings.share,
            "late_allowed": settings.late_allowed,
            **{
                name: None if getattr(settings, name) is None else float(getattr(settings, name))
                for name in ("question_default", "question_most", "session", "day", "approve_above")
            },
        },
    }


def _books(office: Office) -> dict[str, Any]:
    as_of = office.as_of()
    return {
        "ledger": _place(office.ledger.target, lambda: {"entries": office.ledger.count if as_of is None else as_of}),
        "store": _place(office.settings.store, lambda: {"lines": audit.count(office.store)}),
        "late": _late(office),
    }


def _place(target: str, look: Callable[[], dict[str, int]]) -> dict[str, Any]:
    """What kind of place a database is in, and whether it answers. The place itself may hold a password."""
    kind = "PostgreSQL" if target.startswith(URLS) else "file"
    try:
        return {"kind": kind, "answers": True, **look()}
    except DiscreetError:
        return {"kind": kind, "answers": False}


def _late(office: Office) -> dict[str, Any]:
    try:
        bits = late.promised_bits(office.store, office.settings.late_at_most)
        return {"count": late.late_count(office.store), "charged": late.charged_count(office.store), "bits": bits}
    except DiscreetError:
        return {"count": None, "charged": None, "bits": None}


INSPECTIONS: dict[str, Callable[[Vault, Caller, Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
    "status": status,
    "verify": verify,
}
"""The verbs that look at the vault itself."""
