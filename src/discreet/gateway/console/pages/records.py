"""The pages about what happened: the ledger's entries and their verification, the trail of the audit, and health."""

from __future__ import annotations

import json
from typing import Any

from discreet.gateway.console.deeds import shortened, shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply

EACH = 40
"""Entries on one page."""
KINDS = {
    "charge": "answer",
    "opening": "opened",
    "limit": "limit raised",
    "renewal": "new period",
    "account": "account opened",
    "adoption": "adopted",
}


def _number(visit: Visit, name: str) -> int | None:
    text = visit.query[name]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 and int(text) else None


async def record_page(visit: Visit, refusal: Refusal | None = None, verified: Any = None) -> Reply:
    """The entries of the ledger, newest first."""
    last = _number(visit, "last")
    count = (await visit.ask_vault("record", first=1, last=1))["count"]
    last = min(count, last or count)
    first = max(1, last - EACH + 1)
    entries = (await visit.ask_vault("record", first=first, last=last))["entries"] if last else []
    shown = [{**one, "asked": shortened(one["asked"]), "kind": KINDS.get(one["kind"], one["kind"])} for one in entries]
    return visit.page(
        "owner/record.html",
        status=status_of(refusal),
        refusal=refusal,
        verified=verified,
        entries=shown[::-1],
        count=count,
        older=first - 1 if first > 1 else None,
        newer=min(count, last + EACH) if last < count else None,
    )


@shown_on(record_page)
async def verify(visit: Visit) -> Reply:
    """Check all records, and show what was found."""
    return await record_page(visit, verified=await visit.ask_vault("verify"))


async def audit_page(visit: Visit) -> Reply:
    """Lines of the audit, newest first, by account or event."""
    who, what = visit.query["who"].strip()[:64], visit.query["what"].strip()[:64]
    before = _number(visit, "before")
    found = await visit.ask_vault("trail", who=who or None, what=what or None, before=before)
    lines = [{**one, "details": _details(one["details"])} for one in found["lines"]]
    return visit.page(
        "owner/audit.html", lines=lines, count=found["count"], older=found["older"], who=who, what=what, before=before
    )


def _details(content: dict[str, Any]) -> list[tuple[str, str]]:
    """What a line says, as names and short texts."""
    return [
        (name, shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
        for name, value in content.items()
    ]


async def health_page(visit: Visit) -> Reply:
    """How the gateway does."""
    return visit.page("owner/health.html", status_now=await visit.ask_vault("status"))


PAGES = (
    Page(method="GET", path="/record", handler=record_page),
    Page(method="POST", path="/record/verify", handler=verify),
    Page(method="GET", path="/audit", handler=audit_page),
    Page(method="GET", path="/health", handler=health_page),
)
