"""The verbs about dashboards: who sees one, who changes it, who publishes it, and how its tiles are kept up to date.

Looking at a dashboard never charges anything. Tiles are added and paid for in `tiles`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import check_epsilon, round_up
from discreet.gateway.books import audit, limits
from discreet.gateway.books import dashboard_store as kept
from discreet.gateway.books.dashboard_store import (
    BY_HAND,
    BY_RULE,
    DRAFT,
    PUBLISHED,
    WAITING,
    Dashboard,
    Tile,
    check_title,
    find_dashboard,
    find_tile,
    own_dashboard,
)
from discreet.gateway.books.offices import Office, verb
from discreet.gateway.books.plain import time_text
from discreet.gateway.books.tokens import Caller
from discreet.ledger.stores.store import Execute

AUTHORS = ("owner", "analyst", "service")
"""The roles that make dashboards: those with answers of their own."""


def check_reads(caller: Caller) -> None:
    """Refuse a token that is for neither stored answers nor managing."""
    if not caller.scopes & {"replay", "manage"}:
        raise NotAllowed("Dashboards need a token with the scope replay or manage.", code="gateway-role")


@verb()
def dashboards(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The dashboards that the caller may see: their own, published ones, and those that wait for their decision."""
    check_reads(caller)
    with office.store.read() as execute:
        seen = [one for one in kept.all_dashboards(execute) if kept.may_see(caller, one)]
        counted: dict[int, int] = dict(execute("SELECT dashboard, COUNT(*) FROM tiles GROUP BY dashboard"))
    shown = [_facts(office, caller, one) | {"tiles": counted.get(one.number, 0)} for one in seen]
    return {"dashboards": shown, "version": office.settings.version, "may_make": caller.role in AUTHORS}


@verb(["number"])
def dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """One dashboard with its tiles, each with its answer as it was released."""
    check_reads(caller)
    with office.store.read() as execute:
        found = find_dashboard(execute, caller, arguments["number"])
        tiles, content = kept.tiles_of(execute, found.number), kept.content_of(execute, found)
    shown = [_shown(office, caller, found, one) for one in tiles]
    return _facts(office, caller, found) | {"tiles": shown, "version": office.settings.version, "content": content}


def _facts(office: Office, caller: Caller, one: Dashboard) -> dict[str, Any]:
    own = one.author == caller.account
    facts: dict[str, Any] = {"number": one.number, "title": one.title, "author": one.author, "state": one.state}
    facts |= {"made": time_text(one.at), "own": own, "may_publish": kept.may_publish(caller, one, office.settings)}
    if own or caller.role == "owner":
        facts |= {"rule": one.rule, "most": float(one.most), "spent": float(one.spent)}
    return facts


def _shown(office: Office, caller: Caller, board: Dashboard, tile: Tile) -> dict[str, Any]:
    answer = json.loads(tile.answer) if tile.is_sound else None
    found = {
        "number": tile.number,
        "title": tile.title,
        "sql": tile.sql,
        "receipt": tile.receipt,
        "version": tile.version,
        "at": time_text(tile.at),
        "is_old": tile.version != office.settings.version,
        "answer": answer,
    }
    if may_renew(caller, board) and found["is_old"]:
        found |= {"price": _price(tile, answer), "refused": tile.refused}
    return found


def may_renew(caller: Caller, board: Dashboard) -> bool:
    """Whether a caller may pay for a new version of a tile: its author, and the owner of the data."""
    return "ask" in caller.scopes and (board.author == caller.account or caller.role == "owner")


def _price(tile: Tile, answer: Mapping[str, Any] | None) -> float | None:
    """What the tile cost before, and will again: the ε of its question. None if it must be looked up."""
    given = tile.options.get("epsilon") if "within" not in tile.options else None
    if given is None:
        given = ((answer or {}).get("guarantee") or {}).get("epsilon")
    return None if given is None else float(given)


# --- changing -----------------------------------------------------------------------------------------------


@verb(["title"], roles=AUTHORS, scope="replay")
def make_dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Make a dashboard, which only its author sees until it is published."""
    title = check_title(arguments["title"])
    with office.store.write() as execute:
        number = kept.make_dashboard(execute, caller, title, office.now())
    return {"number": number, "title": title}


@verb(["number", "title"], roles=AUTHORS, scope="replay")
def rename_dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give a dashboard another title."""
    title = check_title(arguments["title"])
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        execute("UPDATE dashboards SET title = ? WHERE number = ?", title, found.number)
        kept.shown_anew(execute, caller, found, office.settings)
        _note(office, execute, caller, "dashboard renamed", found, title=title)
    return {"number": found.number, "title": title}


@verb(["number"])
def remove_dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Remove a dashboard of one's own. The answers stay in the ledger and in the history."""
    check_reads(caller)
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        kept.remove_dashboard(execute, found)
        _note(office, execute, caller, "dashboard removed", found, title=found.title)
    return {"removed": found.number}


@verb(["number"], ["content"])
def publish_dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Publish a dashboard for every account. Where its author may not, it waits for an owner or a steward. With the
    `content` that was looked at, nothing else is published.
    """
    check_reads(caller)
    with office.store.write() as execute:
        found = find_dashboard(execute, caller, arguments["number"])
        allowed = kept.may_publish(caller, found, office.settings)
        if not allowed and found.author != caller.account:
            raise NotAllowed("Owners and stewards publish dashboards.", code="gateway-role")
        if arguments.get("content") not in (None, kept.content_of(execute, found)):
            raise InvalidArgument(
                "The dashboard was changed after you looked at it. Look at it again.", code="gateway-dashboard"
            )
        state = PUBLISHED if allowed or found.state == PUBLISHED else WAITING
        if state != found.state:
            kept.set_state(execute, found, state)
            said = "dashboard published" if state == PUBLISHED else "publication asked for"
            _note(office, execute, caller, said, found)
    return {"number": found.number, "state": state}


@verb(["number"])
def unpublish_dashboard(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Show a dashboard to its author only."""
    check_reads(caller)
    with office.store.write() as execute:
        found = find_dashboard(execute, caller, arguments["number"])
        if found.author != caller.account and not kept.decides(caller):
            raise NotAllowed("Owners, stewards and its author take a dashboard back.", code="gateway-role")
        if found.state != DRAFT:
            kept.set_state(execute, found, DRAFT)
            _note(office, execute, caller, "dashboard taken back", found)
    return {"number": found.number, "state": DRAFT}


@verb(["number", "rule"], ["epsilon"], roles=AUTHORS, scope="manage")
def set_rule(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Say how tiles get a new version: by hand, or by a rule that spends at most `epsilon` in all, from now on."""
    rule, epsilon = arguments["rule"], arguments.get("epsilon")
    if rule not in (BY_HAND, BY_RULE) or (rule == BY_RULE) != (epsilon is not None):
        raise InvalidArgument(
            f'rule is "{BY_HAND}", or "{BY_RULE}" with an epsilon that all purchases of it may cost together.',
            code="gateway-dashboard",
        )
    if rule == BY_RULE and ("ask" not in caller.scopes or caller.epsilon is not None):
        raise NotAllowed(
            "A rule spends the budget of the account. It needs a token that may ask and has no limit of its own.",
            code="gateway-role",
        )
    most = Fraction(0) if epsilon is None else check_epsilon(epsilon)
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        if rule == BY_RULE:
            execute(
                "UPDATE dashboards SET rule = ?, units = ?, spent = '0' WHERE number = ?",
                *(rule, str(round_up(most)), found.number),
            )
            kept.forget_purchases(execute, found)  # what it buys from now on counts against the new limit
        else:
            execute("UPDATE dashboards SET rule = ? WHERE number = ?", rule, found.number)
        _note(office, execute, caller, "dashboard rule set", found, rule=rule, epsilon=limits.shown(most))
    return {"number": found.number, "rule": rule, "most": float(most)}


@verb(["number", "tile", "title"], roles=AUTHORS, scope="replay")
def rename_tile(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give a tile another title."""
    title = check_title(arguments["title"])
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        tile = find_tile(execute, found, arguments["tile"])
        execute("UPDATE tiles SET title = ? WHERE number = ?", title, tile.number)
        kept.shown_anew(execute, caller, found, office.settings)
        _note(office, execute, caller, "tile renamed", found, tile=tile.number, title=title)
    return {"number": found.number, "tile": tile.number, "title": title}


@verb(["number", "tile", "steps"], roles=AUTHORS, scope="replay")
def move_tile(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Move a tile so many places towards the end, or with a negative number towards the beginning."""
    steps = arguments["steps"]
    if type(steps) is not int or not -kept.MOST_TILES <= steps <= kept.MOST_TILES:
        raise InvalidArgument("steps is a whole number, such as 1 or -1.", code="gateway-argument")
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        tile = find_tile(execute, found, arguments["tile"])
        kept.move_tile(execute, tile, steps)
        _note(office, execute, caller, "tile moved", found, tile=tile.number)
    return {"number": found.number, "tile": tile.number}


@verb(["number", "tile"], roles=AUTHORS, scope="replay")
def remove_tile(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Remove a tile. What it cost stays charged."""
    with office.store.write() as execute:
        found = own_dashboard(execute, caller, arguments["number"])
        tile = find_tile(execute, found, arguments["tile"])
        kept.remove_tile(execute, tile)
        _note(office, execute, caller, "tile removed", found, tile=tile.number)
    return {"number": found.number, "removed": tile.number}


def _note(office: Office, execute: Execute, caller: Caller, what: str, found: Dashboard, **details: Any) -> None:
    audit.append(execute, office.now(), caller.account, what, {"dashboard": found.number, **details})
