"""The budget: limits with what is left of each, the course of it over time, and how long it may last."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.gateway.console.burndown import NARROW, WIDE, burn_down
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.histories import may_choose, page_number
from discreet.gateway.console.pages.risks import meaning_of
from discreet.gateway.console.visit import Visit
from discreet.gateway.desk.replies import Reply

LIMITS = {
    "day": "today, in UTC",
    "session": "this session: until you ask nothing for 30 minutes",
    "token": "this token",
    "question": "one question",
}
MOST_LINES = 60
"""So many lines of the course are in its table."""
_PAGE = 50
"""So many accounts on one page."""


async def budget_page(visit: Visit) -> Reply:
    """What is left, of all limits and over time."""
    account = visit.query["account"].strip() if may_choose(visit) else ""
    whole = may_choose(visit) and not account
    course = await visit.ask_vault("spending", account=account or None, whole=True if whole else None)
    own = await visit.ask_vault("budget") if not account else {}
    points = course["points"]
    pictures = []
    if points:
        pace, name = course["pace"], account or ("the data set" if whole or visit.role == "owner" else "your account")
        drawn = {"title": f"What is left to {name}"}
        pictures = [burn_down(points, time.time(), pace, **drawn, width=width) for width in (WIDE, NARROW)]
    listed, pages = accounts_of(course.get("accounts", []), visit)
    return visit.page(
        "analyst/budget.html",
        account=account,
        whole=course["account"] is None,
        course=course,
        own=own,
        limits=limits_of(own),
        pictures=pictures,
        forecast=forecast(course),
        lines=thinned(points),
        accounts=listed,
        pages=pages,
        meaning=await meaning_of(course.get("guarantee")),
    )


def limits_of(own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The limits below that of the account, with what each is for."""
    if own.get("limit") is None:  # who asks nothing new has none
        return []
    return [{"of": words} | own[name] for name, words in LIMITS.items() if isinstance(own.get(name), dict)]


def forecast(course: Mapping[str, Any]) -> list[str]:
    """How long the budget may last, in sentences."""
    if not course["points"]:
        return []
    left = None if course["left"] is None else course["left"].get("epsilon", float(course["points"][-1]["left"]))
    if not left:
        return ["Nothing is left. What was bought can be seen as before."]
    said = []
    if course["typical"] and "epsilon" in course["left"]:
        number = int(left / course["typical"] + 1e-9)
        many = "1 such question is" if number == 1 else f"{number:,} such questions are"
        said.append(f"About {many} left, if each costs ε = {course['typical']:.3g} as the last ones did.")
    if course["until"]:
        said.append(
            f"At the pace of the last 7 days, ε = {course['pace']:.3g} a day, it lasts until about {course['until']}."
        )
    elif course["pace"]:
        said.append("At the pace of the last 7 days, it lasts for more than a hundred years.")
    else:
        said.append("Nothing was spent in the last 7 days.")
    return said


def thinned(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Some of the points, newest first, the first and the last one included."""
    if len(points) <= MOST_LINES:
        return list(reversed(points))
    last = len(points) - 1
    return [points[last * place // (MOST_LINES - 1)] for place in reversed(range(MOST_LINES))]


def accounts_of(found: Sequence[Mapping[str, Any]], visit: Visit) -> tuple[list[Mapping[str, Any]], int]:
    """The accounts on this page, those with the least left first, and how many pages there are."""
    order = sorted(found, key=lambda one: (one["left"] / (one["limit"] or 1), one["name"]))
    pages = max(1, -(-len(order) // _PAGE))
    page = min(page_number(visit), pages)
    return order[(page - 1) * _PAGE : page * _PAGE], pages


PAGES = (Page(method="GET", path="/budget", handler=budget_page),)
