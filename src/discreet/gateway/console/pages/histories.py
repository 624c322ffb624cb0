"""The history: what an account asked, when, what it cost, and the answers again."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import Visit
from discreet.gateway.desk.replies import Reply
from discreet.sql.running.written import csv_lines

LOOKING = ("owner", "auditor")
"""The roles that choose an account."""
LONGEST_SQL = 160
"""Characters of a question in the list. The page of its answer has all of it."""
_CSV_PAGE, _MOST_PAGES, _LARGEST = 100, 200, 2**24
"""The file is made from so many pages of so many questions, with so many characters in all."""
LEFT_OUT = "(older questions are left out)"
_HEADS = ("number", "time", "question", "epsilon", "charged", "version", "receipt")


async def history_page(visit: Visit) -> Reply:
    """One page of the history, newest first."""
    chosen = chosen_of(visit)
    found = await visit.ask_vault("history", page=page_number(visit), **chosen)
    for one in found["questions"]:
        one["short"] = shortened(one["sql"])
        one["free"] = not one["cost"]
    more = {name: value for name, value in chosen.items() if value}
    return visit.page(
        "analyst/history.html", found=found, chosen=chosen, may_choose=may_choose(visit), more=urlencode(more)
    )


def chosen_of(visit: Visit) -> dict[str, Any]:
    """The text and the account that were asked for."""
    account = visit.query["account"].strip() if may_choose(visit) else ""
    return {"find": visit.query["find"].strip()[:200], "account": account or None}


def may_choose(visit: Visit) -> bool:
    """Whether the page offers other accounts. The vault decides who sees them."""
    return visit.role in LOOKING


def page_number(visit: Visit) -> int:
    """The page that was asked for, from 1."""
    text = visit.query["page"]
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= 6 else 1


def shortened(sql: str) -> str:
    """A question on one line, cut if it is long."""
    words = " ".join(sql.split())
    return words if len(words) <= LONGEST_SQL else words[: LONGEST_SQL - 1] + "…"


async def history_file(visit: Visit) -> Reply:
    """The history as CSV, newest first. Cells that a spreadsheet would run begin with an apostrophe."""
    chosen = chosen_of(visit)
    rows: list[dict[str, Any]] = []
    last, size = None, 0
    for page in range(1, _MOST_PAGES + 1):
        found = await visit.ask_vault("history", page=page, most=_CSV_PAGE, last=last, **chosen)
        rows += found["questions"]
        size += sum(len(one["sql"]) for one in found["questions"])
        last = last or (rows[0]["number"] if rows else None)
        if page >= found["pages"]:
            break
        if page == _MOST_PAGES or size > _LARGEST:
            rows.append(
                {"number": "", "at": "", "sql": LEFT_OUT, "options": {}, "cost": None, "version": "", "receipt": ""}
            )
            break
    text = await asyncio.to_thread(csv_of, rows)
    attached = (b"content-disposition", b'attachment; filename="history.csv"')
    return Reply(200, b"text/csv; charset=utf-8", text.encode("utf-8", "replace"), (attached,))


def csv_of(rows: list[dict[str, Any]]) -> str:
    """Questions as CSV."""
    return csv_lines([_HEADS, *map(_cells, rows)])


def _cells(one: dict[str, Any]) -> tuple[Any, ...]:
    asked = one["options"].get("epsilon")
    return one["number"], one["at"], one["sql"], asked, one["cost"] or 0, one["version"], one["receipt"]


PAGES = (
    Page(method="GET", path="/history", handler=history_page),
    Page(method="GET", path="/history.csv", handler=history_file),
)
