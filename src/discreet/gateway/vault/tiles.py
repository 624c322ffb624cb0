"""Tiles of dashboards: adding an answer that was bought, paying for a new version by hand, and the rule that pays.

A rule buys a tile once for each version of the data, with a key that depends on both, up to the ε that its author set.
What it spends is set aside before it is charged. So a vault that is killed at any moment goes on where it was: the same
key is never charged twice, and nothing is counted twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EngineFailed,
    InvalidArgument,
    NotAllowed,
    QueryError,
)
from discreet.exact.rational import check_epsilon
from discreet.gateway.books import audit, limits, questions
from discreet.gateway.books import dashboard_store as kept
from discreet.gateway.books.accounts import CHARGED, find_account
from discreet.gateway.books.dashboard_store import BY_RULE, Dashboard, Tile, check_title, find_dashboard, find_tile
from discreet.gateway.books.dashboards import AUTHORS, may_renew
from discreet.gateway.books.offices import check_arguments, check_caller
from discreet.gateway.books.tokens import ROLES, Caller
from discreet.gateway.frames import Frame
from discreet.gateway.settings import LONGEST, seconds_in
from discreet.gateway.vault.asking import Asked, read_question

if TYPE_CHECKING:
    from discreet.gateway.vault.vault import Vault

_REFUSALS = (BudgetExhausted, NotAllowed, QueryError, InvalidArgument, EngineFailed)
"""Errors that trying again will not change by itself. After others, the rule goes on at the next start."""
_FREE = ("gateway-question-limit", "gateway-day-limit", "gateway-approval", "gateway-suspended")
"""The codes of refusals that are certain to have charged nothing."""


_SLOTS, _LOOK = 2, 0.2
"""A rule waits for so many slots, and looks so often whether the vault ends, in seconds."""
_ROUNDING = Fraction(1, 10**9)
"""A price that a page showed may be rounded by this share."""


class PriceChanged(NotAllowed):
    """A tile that costs more now than its page said. `more` has the new price."""

    code = "gateway-tile-price"

    def __init__(self, epsilon: Fraction) -> None:
        super().__init__(
            f"The new version of this tile costs ε = {limits.shown(epsilon)}, which is more than you agreed to. "
            "Nothing was charged."
        )
        self.more = {"epsilon": float(epsilon)}


async def add_tile(vault: Vault, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Add an answer of one's own to a dashboard, for free."""
    check_caller(caller, "add_tile", AUTHORS, "replay")
    check_arguments("add_tile", arguments, ("number", "receipt", "title"), ())
    title, number, receipt = check_title(arguments["title"]), arguments["number"], arguments["receipt"]

    def look() -> questions.Question | None:
        with vault.store.read() as execute:
            kept.own_dashboard(execute, caller, number)
        return questions.find_question(vault.store, caller.account, receipt)

    asked = await vault.in_books(look)
    answer, known = kept.released((await vault.again(caller, {"receipt": receipt})).body)
    assert asked is not None  # otherwise there is no answer

    def add() -> int:
        now = vault.office.now()
        with vault.store.write() as execute:
            found = kept.own_dashboard(execute, caller, number)
            options = {name: value for name, value in asked.options.items() if name != "key"}
            made = kept.add_tile(
                execute,
                found,
                title=title,
                sql=asked.sql,
                options=options,
                answer=answer,
                receipt=known,
                version=vault.settings.version,
                now=now,
            )
            kept.shown_anew(execute, caller, found, vault.settings)
            details = {"dashboard": found.number, "tile": made, "title": title, "receipt": known}
            audit.append(execute, now, caller.account, "tile added", details)
        return made

    return {"number": number, "tile": await vault.in_books(add)}


async def refresh_tile(vault: Vault, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Pay for a tile of the newest version: its author, or the owner of the data, each from their own budget. If it
    costs more than `most`, nothing is charged.
    """
    check_caller(caller, "refresh_tile", AUTHORS, "ask")
    check_arguments("refresh_tile", arguments, ("number", "tile", "most"), ())
    most = Fraction(0) if arguments["most"] == 0 else check_epsilon(arguments["most"], "most")

    def look() -> tuple[Dashboard, Tile]:
        with vault.store.read() as execute:
            found = find_dashboard(execute, caller, arguments["number"])
            if not may_renew(caller, found):
                raise NotAllowed("Its author and the owner of the data pay for tiles.", code="gateway-role")
            return found, find_tile(execute, found, arguments["tile"])

    board, tile = await vault.in_books(look)
    if tile.version != vault.settings.version:
        asked = _asked(vault, board, tile)
        price = await vault.price(caller, asked)
        if price > most * (1 + _ROUNDING):
            raise PriceChanged(price)
        try:
            frame = await vault.answer(caller, asked)
        except EngineFailed:  # it stays charged; to try again is a new charge, so it has a new key
            await vault.in_books(_set, vault, tile, "tries = tries + 1")
            raise
        await vault.in_books(_renew, vault, caller.account, tile, frame)
    return {"number": board.number, "tile": tile.number, "version": vault.settings.version}


def _asked(vault: Vault, board: Dashboard, tile: Tile) -> Asked:
    why = f"dashboard {board.number}, tile {tile.number}, version {vault.settings.version}"
    given = {"sql": tile.sql, **tile.options, "key": tile.key(vault.settings.version), "why": why}
    after = given.pop("answer_after", None)  # the slot that the author chose, unless all are as long by now
    if after is not None and seconds_in(after, "answer_after", LONGEST) > vault.settings.answer_after:
        given["answer_after"] = after
    return read_question(given, vault.settings)


def _set(vault: Vault, tile: Tile, change: str, *values: Any) -> None:
    with vault.store.write() as execute:
        execute(f"UPDATE tiles SET {change} WHERE number = ?", *values, tile.number)


def _renew(vault: Vault, account: str, tile: Tile, frame: Frame) -> None:
    """Show an answer that was just released on its tile, unless the tile is gone."""
    answer, receipt = kept.released(frame.body)
    version, now = vault.settings.version, vault.office.now()
    with vault.store.write() as execute:
        kept.renew_tile(execute, tile, answer=answer, receipt=receipt, version=version, now=now)
        details = {"dashboard": tile.dashboard, "tile": tile.number, "version": version, "receipt": receipt}
        audit.append(execute, now, account, "tile paid for", details)


# --- the rule -----------------------------------------------------------------------------------------------


async def keep_up(vault: Vault) -> None:
    """Buy the newest version of the tiles whose dashboards have a rule, one after the other. A vault that this one
    replaces may still buy the same: what is in its slots must not be found here before they end.
    """
    now = asyncio.get_running_loop().time
    until = now() + _SLOTS * vault.settings.answer_after
    while now() < until and not vault.is_ending:
        await asyncio.sleep(min(_LOOK, until - now()))
    if vault.is_ending:
        return
    for number, tile in await vault.in_books(_due, vault):
        if vault.is_ending:
            return
        with contextlib.suppress(Exception):  # the next one may be fine; this one is tried at the next start
            await buy_by_rule(vault, *await vault.in_books(_stored, vault, number, tile))


def _due(vault: Vault) -> list[tuple[int, int]]:
    """The dashboards and tiles that a rule should buy now, by their numbers: all answers together may be large."""
    with vault.store.read() as execute:
        return kept.tiles_by_rule(execute, vault.settings.version)


def _stored(vault: Vault, number: int, tile: int) -> tuple[Dashboard, Tile]:
    with vault.store.read() as execute:
        board = next(one for one in kept.all_dashboards(execute) if one.number == number)
        return board, find_tile(execute, board, tile)


async def buy_by_rule(vault: Vault, board: Dashboard, tile: Tile) -> None:
    """Buy one tile for its author, within all limits of the account and that of the rule. Refused, the tile stays as it
    is, and says so.
    """
    version, counted = vault.settings.version, False
    try:
        caller = await vault.in_books(_author, vault, board)
        asked = _asked(vault, board, tile)
        price = await vault.price(caller, asked)
        fits, counted = await vault.in_books(_set_aside, vault, board, tile, price)
        if not fits:
            raise BudgetExhausted(
                "The rule of this dashboard has spent what it may.", remaining=None, code="gateway-rule-limit"
            )
        frame = await vault.answer(caller, asked)
    except _REFUSALS as error:
        # what was set aside before a vault was killed may be charged: only what this try counted is given back
        await vault.in_books(_refuse, vault, board, tile, version, error, counted and error.code in _FREE)
        raise
    await vault.in_books(_renew, vault, board.author, tile, frame)


def _author(vault: Vault, board: Dashboard) -> Caller:
    """The author as the one who pays: no token, all rights of the role, and nothing if the account is suspended."""
    with vault.store.read() as execute:
        account = find_account(execute, board.author)
    if account.suspended:
        raise NotAllowed("The account of the author is suspended.", code="gateway-suspended")
    if account.role not in (*CHARGED, "owner"):
        raise NotAllowed("The author of this dashboard asks nothing new.", code="gateway-role")
    return Caller(account=account.name, role=account.role, scopes=frozenset(ROLES[account.role]))


def _set_aside(vault: Vault, board: Dashboard, tile: Tile, price: Fraction) -> tuple[bool, bool]:
    """Whether a purchase fits what the rule may spend, and whether it was counted just now."""
    with vault.store.write() as execute:
        now = next((one for one in kept.all_dashboards(execute) if one.number == board.number), None)
        if now is None or now.rule != BY_RULE:  # it was changed meanwhile
            return False, False
        known = kept.is_set_aside(execute, tile, vault.settings.version)
        fits = kept.set_aside(execute, now, tile, vault.settings.version, price)
        return fits, fits and not known


def _refuse(vault: Vault, board: Dashboard, tile: Tile, version: str, error: DiscreetError, free: bool) -> None:
    """A tile stays as it is, with the reason. What was set aside is given back if it is certain that nothing was
    charged.
    """
    with vault.store.write() as execute:
        now = next((one for one in kept.all_dashboards(execute) if one.number == board.number), None)
        if now is None:
            return
        if free:
            kept.put_back(execute, now, tile, version)
        execute("UPDATE tiles SET refused = ? WHERE number = ?", error.code, tile.number)
        details = {"dashboard": board.number, "tile": tile.number, "version": version, "code": error.code}
        audit.append(execute, vault.office.now(), board.author, "tile not bought", details)


VERBS = {"add_tile": add_tile, "refresh_tile": refresh_tile}
"""The verbs that need readers and lanes."""
