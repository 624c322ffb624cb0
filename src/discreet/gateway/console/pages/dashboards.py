"""Dashboards: a list of them, one with its tiles, and the forms with which its author changes it.

Looking is free, also for viewers. The vault decides who sees, changes, publishes and pays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.histories import shortened
from discreet.gateway.console.tiles import shown_from
from discreet.gateway.console.visit import Fields, Refusal, Visit
from discreet.gateway.desk.replies import Reply

ROOM, ROOM_TO_EDIT = 44_000, 30_000
"""Bytes of a page that are for tiles."""
_RECENT = 20
"""So many answers are offered for a new tile."""
DONE = {
    "made": "The dashboard was made. Add a first tile below.",
    "renamed": "The new title is saved.",
    "published": "The dashboard is published: every account sees it, for free.",
    "waiting": "An owner or a steward will look at the dashboard before others see it.",
    "draft": "The dashboard is yours alone again.",
    "rule": "The rule is saved. It looks for a new version whenever the gateway starts with one.",
    "added": "The tile was added. Nothing was charged.",
    "moved": "The tile was moved.",
    "removed": "It was removed. What it cost stays charged, and the answer stays in the history.",
    "paid": "The tile shows the new version.",
}
"""What a page says after a form was sent."""
REASONS = {
    "gateway-rule-limit": "The rule has spent what it may.",
    "budget-exhausted": "The budget of the author, or of the data set, is used up.",
    "gateway-day-limit": "It was more than is left for the day.",
    "gateway-question-limit": "It was more than one question may cost.",
    "gateway-approval": "It needs the approval of a second person.",
    "gateway-suspended": "The account of the author is suspended.",
    "gateway-late": "There was no answer in time. What it cost stays charged.",
}
"""Why a rule did not buy a tile, by the code of the error."""


async def list_page(visit: Visit) -> Reply:
    """The dashboards that one may see."""
    found = await visit.ask_vault("dashboards")
    receipt = visit.query["receipt"].strip()[:200]
    return visit.page("analyst/dashboards.html", found=found, receipt=receipt, done=DONE.get(visit.query["done"]))


async def make(visit: Visit) -> Reply:
    """Make a dashboard, or add an answer to one of one's own, and go to it."""
    if visit.form["do"] == "add":
        number = whole(visit.form["number"])
        await visit.ask_vault("add_tile", number=number, **_added(visit.form))
        return visit.go(f"/dashboards/{number}", edit="1", done="added")
    made = await visit.ask_vault("make_dashboard", title=visit.form["title"])
    return visit.go(f"/dashboards/{int(made['number'])}", edit="1", done="made")


async def board_page(visit: Visit) -> Reply:
    """One dashboard. Its author may change it."""
    found = await visit.ask_vault("dashboard", number=_number(visit))
    edits = found["own"] and "edit" in visit.query
    first = whole(visit.query["first"])
    shown = await asyncio.to_thread(shown_from, found["tiles"], first, ROOM_TO_EDIT if edits else ROOM)
    following = first + len(shown) if first + len(shown) < len(found["tiles"]) else None
    return visit.page(
        "analyst/dashboard.html",
        found=found,
        edits=edits,
        shown=shown,
        first=first,
        following=following,
        recent=await recent(visit, found["version"]) if edits else [],
        reasons=REASONS,
        done=DONE.get(visit.query["done"]),
    )


async def recent(visit: Visit, served: str) -> list[dict[str, str]]:
    """The last answers of one's own that are of the version that is served now, for a new tile."""
    found = await visit.ask_vault("history", page=1, most=_RECENT)
    asked = [one for one in found["questions"] if one["version"] in ("", served)]
    return [{"receipt": one["receipt"], "short": shortened(one["sql"])} for one in asked]


def _number(visit: Visit) -> int:
    """The number in the path. 0, which no dashboard has, if it is none."""
    return whole(visit.arguments["number"])


def whole(text: str) -> int:
    """A whole number in a path, a query or a form. 0 if it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 15 else 0


def _tile(form: Fields) -> dict[str, Any]:
    return {"tile": whole(form["tile"])}


def _added(form: Fields) -> dict[str, Any]:
    receipt = form["receipt"].strip() or form["recent"].strip()
    if not receipt:
        raise InvalidArgument("Choose an answer, or write its receipt, such as 12-a0b1.", code="gateway-form")
    return {"receipt": receipt, "title": form["title"]}


def _ruled(form: Fields) -> dict[str, Any]:
    by_rule = form["rule"] == "rule"
    return {"rule": "rule" if by_rule else "by hand", "epsilon": form.number("epsilon") if by_rule else None}


ACTIONS: Mapping[str, tuple[str, Callable[[Fields], dict[str, Any]], str]] = {
    "rename": ("rename_dashboard", lambda form: {"title": form["title"]}, "renamed"),
    "remove": ("remove_dashboard", lambda form: {}, "removed"),
    "publish": ("publish_dashboard", lambda form: {"content": form["content"] or None}, ""),
    "unpublish": ("unpublish_dashboard", lambda form: {}, "draft"),
    "rule": ("set_rule", _ruled, "rule"),
    "add": ("add_tile", _added, "added"),
    "title": ("rename_tile", lambda form: _tile(form) | {"title": form["title"]}, "renamed"),
    "up": ("move_tile", lambda form: _tile(form) | {"steps": -1}, "moved"),
    "down": ("move_tile", lambda form: _tile(form) | {"steps": 1}, "moved"),
    "drop": ("remove_tile", _tile, "removed"),
    "pay": ("refresh_tile", lambda form: _tile(form) | {"most": form.number("most") or 0}, "paid"),
}
"""What a form does: the verb, its arguments, and what is said afterwards."""


async def change(visit: Visit) -> Reply:
    """Do what a form of a dashboard says."""
    number, action = _number(visit), ACTIONS.get(visit.form["do"])
    if action is None:
        raise InvalidArgument("This form cannot be read. Send it from its page.", code="gateway-form")
    verb, arguments, done = action
    try:
        said = await visit.ask_vault(verb, number=number, **arguments(visit.form))
    except Refusal as refusal:
        if refusal.code != "gateway-tile-price":
            raise
        price = float(refusal.more["epsilon"])
        return visit.page("analyst/tile_price.html", number=number, tile=whole(visit.form["tile"]), price=price)
    if verb == "remove_dashboard":
        return visit.go("/dashboards", done=done)
    edit = "1" if "edit" in visit.form else None
    return visit.go(f"/dashboards/{number}", edit=edit, done=done or said["state"])


PAGES = (
    Page(method="GET", path="/dashboards", handler=list_page),
    Page(method="POST", path="/dashboards", handler=make),
    Page(method="GET", path="/dashboards/{number}", handler=board_page),
    Page(method="POST", path="/dashboards/{number}", handler=change),
)
