"""Asking: the tables, the question, its plan, and what it is asked for. The state of the page is in its address."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from discreet.errors import InvalidArgument
from discreet.exact.randomness import random_integer
from discreet.gateway.console.declared import listed_tables, names_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.answers import link_to_ask, show_answer
from discreet.gateway.console.plans import PlanView, RefusalView, view_plan, view_refusal
from discreet.gateway.console.results import Result
from discreet.gateway.console.visit import Fields, Refusal, Visit
from discreet.gateway.desk.replies import Reply

_LONGEST_SHOWN = 20_000
"""A page shows so much of a question: longer ones are for programs."""
_OTHER_PAGE = ("gateway-login", "gateway-role", "gateway-scope", "gateway-origin")
"""These refusals are not about the question, and have a page of their own."""


@dataclass(frozen=True)
class Asked:
    """What the form says: the question, and what it may cost or how wrong it may be."""

    sql: str
    epsilon: str = ""
    by: str = "epsilon"
    within: dict[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options of the question, for the vault."""
        return {**self._precision, **self._in_parts}

    @property
    def _in_parts(self) -> dict[str, Any]:
        return {"parts": list(self.parts)} if self.parts else {}

    @property
    def _precision(self) -> dict[str, Any]:
        if self.by == "within":
            given = {name: _number(value, "The error") for name, value in self.within.items() if value.strip()}
            if not given:
                raise _no_error()
            return {"within": given}
        return {"epsilon": _number(self.epsilon, "ε")} if self.epsilon.strip() else {}

    @property
    def link(self) -> str:
        """The address of the page with this question. Without the question if that would be too long."""
        if self.by != "within":
            return link_to_ask(self.sql, {**_numbers({"epsilon": self.epsilon}), **self._in_parts})
        return link_to_ask(self.sql, {"within": _numbers(self.within), **self._in_parts})

    def key(self, seed: str) -> str:
        """The Idempotency-Key: the same for the same question from the same page, however often it is sent."""
        said = [seed, self.sql, self.epsilon, self.by, self.within, *self.parts]
        text = json.dumps(said, sort_keys=True)
        return f"console {hashlib.sha256(text.encode()).hexdigest()[:40]}"


def read_asked(fields: Fields) -> Asked:
    """What a form or an address says."""
    sql = fields["sql"]
    if len(sql) > _LONGEST_SHOWN:
        raise InvalidArgument(
            f"This page takes questions of at most {_LONGEST_SHOWN:,} characters. Use /v1/questions for longer ones.",
            code="gateway-question",
        )
    within = dict(zip(fields.all("of"), fields.all("within"), strict=False))
    by = fields["by"] or ("within" if within and not fields["epsilon"] else "epsilon")
    parts = tuple(name for name in fields.all("part") if name)
    return Asked(sql, fields["epsilon"], "within" if by == "within" else "epsilon", within, parts)


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    """Those texts that are numbers."""
    found = {}
    for name, text in texts.items():
        with contextlib.suppress(InvalidArgument):
            found[name] = _number(text, name)
    return found


def _number(text: str, what: str) -> float:
    try:
        found = float(text.strip().replace(",", "."))
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise InvalidArgument(f"{what} must be a number above 0, such as 0.5.", code="gateway-form")
    return found


def _no_error() -> InvalidArgument:
    return InvalidArgument(
        "Say for at least one column how wrong it may be, such as 50, or choose ε.", code="epsilon-or-within"
    )


# --- the plan ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """What is shown of a question: its plan, or why it is refused, or neither if there is no question."""

    plan: PlanView | None = None
    refusal: RefusalView | None = None


async def plan_of(visit: Visit, asked: Asked) -> Shown:
    """The plan of a question, for free."""
    if not asked.sql.strip():
        return Shown()
    try:
        found = await visit.ask_vault("plan", sql=asked.sql, **asked.options)
    except InvalidArgument as error:
        return Shown(refusal=RefusalView(str(error), error.code))
    except Refusal as refusal:
        if refusal.code in _OTHER_PAGE:
            raise
        return Shown(refusal=view_refusal(refusal))
    return Shown(plan=view_plan(found))


async def show_plan(visit: Visit) -> Reply:
    """The plan alone, for the script of the page."""
    asked = read_asked(visit.form)
    shown = await plan_of(visit, asked)
    return visit.page("analyst/plan.html", asked=asked, shown=shown, link=asked.link)


async def list_names(visit: Visit) -> Reply:
    """All names for completion."""
    found = await visit.ask_vault("tables")
    return Reply(200, b"application/json", json.dumps(names_of(found["tables"])).encode())


# --- the page ---------------------------------------------------------------------------------------------


async def ask_page(visit: Visit) -> Reply:
    """The page to ask, with the plan of the question in its address."""
    return await show_page(visit, read_asked(visit.query))


async def show_page(visit: Visit, asked: Asked, *, status: int = 200, refusal: RefusalView | None = None) -> Reply:
    """The page with a question, its plan, and why it was refused if it was."""
    found = await visit.ask_vault("tables")
    shown = await plan_of(visit, asked)
    if shown.refusal is not None and refusal is not None and shown.refusal.code == refusal.code:
        refusal = None  # the plan says it, and what to ask instead
    tables, more = listed_tables(found["tables"], visit.query["table"])
    settings = visit.console.settings
    default = settings.question_default
    return visit.page(
        "analyst/ask.html",
        status=status,
        asked=asked,
        shown=shown,
        refused=refusal,
        tables=tables,
        more=more,
        link=asked.link,
        seed=f"{random_integer(128):032x}",
        default="" if default is None else f"{float(default):g}",
        most=float(settings.question_most or 10),
        can_ask=visit.role != "viewer",
    )


async def ask_question(visit: Visit) -> Reply:
    """Ask, or show the plan only. What is refused is shown on the same page, with the question as it was."""
    asked = read_asked(visit.form)
    if visit.form["do"] != "ask":
        return visit.go(asked.link) if asked.link != "/ask" else await show_page(visit, asked)
    try:
        frame = await visit.frame(
            "ask", sql=asked.sql, format="arrow", key=asked.key(visit.form["seed"]), **asked.options
        )
    except InvalidArgument as error:
        return await show_page(visit, asked, status=400, refusal=RefusalView(str(error), error.code))
    except Refusal as refusal:
        if refusal.code in _OTHER_PAGE:
            raise
        return await show_page(visit, asked, status=refusal.status, refusal=view_refusal(refusal))
    result = Result(frame.body)
    if result.receipt is None:
        return await show_answer(visit, result, sql=asked.sql, ask_link=asked.link)
    return visit.go(f"/answers/{quote(result.receipt, safe='')}")


PAGES = (
    Page(method="GET", path="/ask", handler=ask_page),
    Page(method="POST", path="/ask", handler=ask_question),
    Page(method="POST", path="/ask/plan", handler=show_plan),
    Page(method="GET", path="/ask/names", handler=list_names),
)
