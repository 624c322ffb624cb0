"""Answers by their receipts: the table, the picture, and files. Whoever bought an answer sees it again for free."""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from discreet.drawing import Drawing
from discreet.gateway.console.charts import NARROW, WIDE, svg_file
from discreet.gateway.console.page import Page
from discreet.gateway.console.results import Result
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply

FORMS = {"csv": b"text/csv; charset=utf-8", "arrow": b"application/vnd.apache.arrow.stream", "svg": b"image/svg+xml"}
LONGEST_LINK = 6000
"""A longer question is not put into an address."""
_LARGEST_PICTURES = 28_000
"""Larger pictures are loaded by the page, as files of their own."""
_PICTURE_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; sandbox"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_TITLE = 120


async def answer_page(visit: Visit) -> Reply:
    """An answer, or a file of it if the path ends like one."""
    receipt, dot, form = visit.arguments["receipt"].rpartition(".")
    if dot and form in FORMS:
        return await _file(visit, receipt, form)
    receipt = visit.arguments["receipt"]
    result, asked = await _again(visit, receipt)
    at = datetime.datetime.fromtimestamp(asked["at"], datetime.UTC).isoformat()
    link = link_to_ask(asked["sql"], asked["options"])
    return await show_answer(visit, result, sql=asked["sql"], at=at, ask_link=link)


async def _again(visit: Visit, receipt: str) -> tuple[Result, Mapping[str, Any]]:
    """An answer, and what was asked."""
    frame = await visit.frame("again", receipt=receipt, format="arrow")
    return Result(frame.body), frame.header["asked"]


def link_to_ask(sql: str, options: Mapping[str, Any]) -> str:
    """The page to ask a question with these options. Without the question if its address would be too long."""
    pairs: list[tuple[str, Any]] = [("sql", sql)]
    for name, value in options.get("within", {}).items():
        pairs += [("of", name), ("within", f"{value:.12g}")]
    if "epsilon" in options:
        pairs.append(("epsilon", f"{options['epsilon']:.12g}"))
    pairs += [("part", name) for name in options.get("parts", ())]
    text = urlencode(pairs)
    return f"/ask?{text}" if len(text) <= LONGEST_LINK else "/ask"


async def show_answer(visit: Visit, result: Result, **known: str) -> Reply:
    """The page of an answer. It is drawn in a thread, so that nobody else waits for a large one."""
    if result.left is not None:
        known["now"] = str((await visit.ask_vault("budget")).get("remains", ""))
    return await asyncio.to_thread(_shown, visit, result, **known)


def _shown(visit: Visit, result: Result, *, sql: str, ask_link: str, at: str = "", now: str = "") -> Reply:
    first = _first(visit)
    rows = result.rows(first)
    drawings = [result.chart(_title(sql), width) for width in (WIDE, NARROW)]
    place = "" if result.receipt is None else f"/answers/{quote(result.receipt, safe='')}"
    pictures = _on_page(drawings)
    return visit.page(
        "analyst/answer.html",
        result=result,
        rows=rows,
        first=first,
        following=first + len(rows) if first + len(rows) < result.count else None,
        pictures=pictures,
        is_large=bool(place) and drawings[0] is not None and not pictures,
        has_picture=drawings[0] is not None,
        sql=sql,
        at=at,
        now=now.replace(" remains", "", 1),
        place=place,
        ask_link=ask_link,
    )


def _first(visit: Visit) -> int:
    text = visit.query["first"]
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0


def _on_page(drawings: Sequence[Drawing | None]) -> list[Markup]:
    """The pictures as parts of the page, for screens and for phones. Empty if there are none, or if they are too large:
    then the file is shown.
    """
    texts = [one.svg(identity=f"picture-{place}") for place, one in enumerate(drawings) if one is not None]
    fits = sum(map(len, texts)) <= _LARGEST_PICTURES
    return [Markup(text) for text in texts] if fits else []  # drawing.py escapes all text


def _title(sql: str) -> str:
    words = " ".join(sql.split())
    return words if len(words) <= _LONGEST_TITLE else words[: _LONGEST_TITLE - 1] + "…"


async def _file(visit: Visit, receipt: str, form: str) -> Reply:
    """An answer as a file. Cells of CSV that a spreadsheet would run begin with an apostrophe."""
    if form == "svg":
        return await _picture(visit, receipt)
    body = (await visit.frame("again", receipt=receipt, format=form)).body
    return Reply(200, FORMS[form], body, (_attached(visit, receipt, form),))


async def _picture(visit: Visit, receipt: str) -> Reply:
    result, asked = await _again(visit, receipt)
    drawing = await asyncio.to_thread(result.chart, _title(asked["sql"]))
    if drawing is None:
        raise Refusal(
            {"kind": "InvalidArgument", "code": "gateway-not-found", "message": "This answer has no numbers to draw."}
        )
    text = svg_file(drawing, only_light=visit.query["colors"] == "light").encode()
    policy = (b"content-security-policy", _PICTURE_POLICY)
    return Reply(200, FORMS["svg"], text, (_attached(visit, receipt, "svg"), policy))


def _attached(visit: Visit, receipt: str, form: str) -> tuple[bytes, bytes]:
    """The header that names a file. Only letters, digits and dashes of its names are kept."""
    name = _UNSAFE.sub("-", f"{visit.console.settings.name}-{receipt}").strip("-")[:80]
    return b"content-disposition", f'attachment; filename="{name}.{form}"'.encode("ascii")


PAGES = (Page(method="GET", path="/answers/{receipt}", handler=answer_page),)
