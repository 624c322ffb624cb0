"""What is said of a budget next to answers, plans and tables: what remains, which limit is nearest, what is refused.

All limits are known here: those of the ledger, which a worker reads, and those of the gateway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.gateway.books import limits
from discreet.gateway.books.offices import account_left
from discreet.gateway.books.tokens import Caller
from discreet.gateway.frames import Frame
from discreet.gateway.vault.asking import Asked
from discreet.gateway.vault.planning import LEFT, OWES
from discreet.gateway.vault.processes import error_in
from discreet.gateway.vault.purchase import spends
from discreet.ledger.texts.record import read_guarantee

if TYPE_CHECKING:
    from discreet.gateway.vault.vault import Vault


async def with_remains(vault: Vault, caller: Caller, asked: Asked, reply: Frame) -> Frame:
    """An answer that was just charged, with what remains and which limit is nearest. That is said next to it, not in
    it: asked for again, an answer is the same, and says that it was bought before.
    """
    header = dict(reply.header)
    if LEFT not in header:
        return reply
    text, now = header.pop(LEFT), vault.office.now()
    if vault.is_ending:  # the books may be closed already, and an answer that was charged must leave
        return Frame(header, reply.body)
    left = None if text is None else read_guarantee(text)
    standing = await vault.in_books(limits.standing, vault.store, vault.settings, caller, now, asked.agent)
    return Frame({**header, "remains": limits.remains(left, standing)}, reply.body)


def near(vault: Vault, caller: Caller) -> str:
    """Which limit leaves less than the account now, in words. Empty if none does."""
    if not spends(caller):
        return ""
    standing = limits.standing(vault.store, vault.settings, caller, vault.office.now())
    return limits.near_text(account_left(vault.office, vault.view(caller)), standing)


async def with_hindrance(vault: Vault, caller: Caller, reply: Frame) -> Frame:
    """A plan with what would stop the question now: what is left to the account, a limit of the gateway, or that
    somebody must approve it.
    """
    header = dict(reply.header)
    owes = header.pop(OWES)
    plan = {**json.loads(reply.body), "hindrance": None}
    if spends(caller):
        await vault.in_books(_add_limits, vault, caller, plan, owes)
    return Frame(header, json.dumps(plan, ensure_ascii=False).encode())


def _add_limits(vault: Vault, caller: Caller, plan: dict[str, Any], owes: Mapping[str, Any]) -> None:
    """Say in a plan what would stop it, and which limit leaves less than the account, now and after it."""
    given = vault.store, vault.settings, caller
    epsilon, now = Fraction(owes["epsilon"]), vault.office.now()
    left, after = (None if owes[name] is None else read_guarantee(owes[name]) for name in ("left", "after"))
    standing = limits.standing(*given, now)
    if left is not None:
        plan["left"] = limits.left_text(left) + limits.near_text(left, standing)
    if owes["exceeds"]:  # the text says it already
        plan["hindrance"] = limits.refused_now(owes["exceeds"])
        return
    nearer = limits.near_text(after, limits.standing_after(standing, epsilon))
    if after is not None:
        plan["after"] = limits.left_text(after) + nearer
    plan["hindrance"] = limits.hindrance(*given, epsilon, now)
    if plan["hindrance"]:
        plan["text"] += f"\n{plan['hindrance']}"
    elif nearer and epsilon:
        plan["text"] += f"\nAfter it, {limits.left_text(after)} remains{nearer}."


def check_fits(costs: Frame) -> None:
    """Refuse a question that does not fit what is left to the account, before a limit or a person is asked."""
    if costs.header.get("exceeds"):
        raise error_in(Frame(costs.header["exceeds"]))
