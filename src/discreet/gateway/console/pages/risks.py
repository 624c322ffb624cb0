"""What ε means, for the budget of an account or of the data set: odds, the best attack, and a picture of it."""

from __future__ import annotations

import asyncio
from typing import Any

from markupsafe import Markup

from discreet.errors import InvalidArgument
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.histories import may_choose
from discreet.gateway.console.visit import Visit
from discreet.gateway.desk.replies import Reply
from discreet.guarantees.guarantee import NoLoss
from discreet.guarantees.meaning.risk import BASE_RATES, Risk, risk
from discreet.guarantees.meaning.words import rows as words_of
from discreet.ledger.texts.record import read_guarantee

MOST_PEOPLE = 6
"""The largest household that can be chosen."""


async def risk_page(visit: Visit) -> Reply:
    """What the limit, and what was spent, mean for one person or a household."""
    account = visit.query["account"].strip() if may_choose(visit) else ""
    whole = may_choose(visit) and not account
    course = await visit.ask_vault("spending", account=account or None, whole=True if whole else None, points=20)
    people = people_of(visit.query["people"])
    rate, wrong = rate_of(visit)
    shown = []
    if course["points"]:
        for name, words in (("limit", course["guarantee"]), ("spent", course["spent"])):
            shown.append({"name": name} | await asyncio.to_thread(described, words, people, rate, name))
    return visit.page(
        "analyst/risk.html",
        account=account,
        whole=course["account"] is None,
        people=people,
        sizes=range(1, MOST_PEOPLE + 1),
        rate=visit.query["rate"][:20],
        wrong=wrong,
        shown=shown,
        may_choose=may_choose(visit),
    )


def people_of(text: str) -> int:
    """How many people a household has, from 1 to 6."""
    return int(text) if text in {str(number) for number in range(1, MOST_PEOPLE + 1)} else 1


def rate_of(visit: Visit) -> tuple[float | None, bool]:
    """The base rate in percent that was asked for as a share, and whether it cannot be one."""
    try:
        percent = visit.query.number("rate")
    except InvalidArgument:
        return None, True
    if percent is None:
        return None, False
    return (percent / 100, False) if 0.0001 <= percent <= 99.9999 else (None, True)


def described(words: str | None, people: int, rate: float | None, name: str) -> dict[str, Any]:
    """What a guarantee means, as plain values and a picture. Nothing was spent if there is none."""
    guarantee = None if words is None else read_guarantee(words)
    if guarantee is None or isinstance(guarantee, NoLoss):
        return {"risk": None, "rows": [], "picture": None}
    found = risk(guarantee, people=people, base_rates=sorted({*BASE_RATES, *([] if rate is None else [rate])}))
    return {"risk": found.to_dict(), "rows": words_of(found), "picture": picture_of(found)}


def picture_of(found: Risk) -> Markup:
    """The best attack as a picture in the colors of the page."""
    return Markup(found.svg(width=340))  # all text in it is escaped


async def meaning_of(words: str | None) -> dict[str, Any] | None:
    """What a limit means for one person, in a few numbers."""
    if words is None:
        return None
    return dict(await asyncio.to_thread(lambda: risk(read_guarantee(words), base_rates=(0.01, 0.5)).to_dict()))


PAGES = (Page(method="GET", path="/risk", handler=risk_page),)
