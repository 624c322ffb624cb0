"""The history: what an account asked, when, what it cost, and the answers again."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import urlencode

from discreet.gateway.console.site import Page
from discreet.gateway.console.visit import Visit
from discreet.gateway.desk_replies import Reply
from discreet.sql.running.written import harmless

LOOKING = ("owner", "auditor")
"""The roles that choose an account."""
LONGEST_SQL = 160
"""Characters of a question in the list. The page of its answer has all of it."""
_CSV_PAGE, _MOST_PAGES = 1000, 100
_HEADS = ("number", "time", "question", "epsilon", "charged", "version", "receipt")


async def history_page(visit: Visit) -> Reply:
    """One page of the history, newest first."""
    chosen = chosen_of(visit)
    found = await visit.ask_vault("history", page=page_number(visit), **chosen)
    for one in found["questions"]:
        one["short"] = shortened(one["sql"])
        one["free"] = one["cost"] is None
    more = {name: value for name, value in chosen.items() if value}
    return visit.page("history.html", found=found, chosen=chosen, may_choose=may_choose(visit), more=urlencode(more))


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
    """The whole history as CSV. Cells that a spreadsheet would run begin with an apostrophe."""
    chosen = chosen_of(visit)
    rows: list[dict[str, Any]] = []
    last = None
    for page in range(1, _MOST_PAGES + 1):
        found = await visit.ask_vault("history", page=page, most=_CSV_PAGE, last=last, **chosen)
        rows += found["questions"]
        last = last or (rows[0]["number"] if rows else None)
        if page >= found["pages"]:
            break
    attached = (b"content-disposition", b'attachment; filename="history.csv"')
    return Reply(200, b"text/csv; charset=utf-8", csv_of(rows).encode("utf-8", "replace"), (attached,))


def csv_of(rows: list[dict[str, Any]]) -> str:
    """Questions as CSV."""
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(_HEADS)
    for one in rows:
        asked = one["options"].get("epsilon")
        cells = (one["number"], one["at"], one["sql"], asked, one["cost"] or 0, one["version"], one["receipt"])
        table.writerow([harmless(cell) for cell in cells])
    return written.getvalue()


PAGES = (
    Page(method="GET", path="/history", handler=history_page),
    Page(method="GET", path="/history.csv", handler=history_file),
)
