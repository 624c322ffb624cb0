"""The pages of a first run: which tables, what is known about columns, what may be spent, and the policy that follows.

The program in the place of the vault keeps what is decided, so each page can be seen again, and works without scripts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.console.deeds import number_in, shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.entrance import session_header
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.meaning.risk import risk

EACH = 40
"""Columns on one page."""
TABLES, OFFERED = 10, 14
"""Tables on one page, and columns that are offered for each, the likely ones first."""
STEPS = (
    ("/setup", "Tables"),
    ("/setup/columns/1", "Columns"),
    ("/setup/limits", "Limits"),
    ("/setup/policy", "Policy"),
)
USED = ("people", "through")
CLOSE = (b"connection", b"close")
"""The next request is for the gateway that takes over, on a new connection."""


def _page(visit: Visit, template: str, step: int, refusal: Refusal | None, **values: Any) -> Reply:
    known: dict[str, Any] = {"steps": STEPS, "step": step, "refusal": refusal, "given": visit.form}
    return visit.page(template, status=status_of(refusal), **known, **values)


# --- which tables -------------------------------------------------------------------------------------------


async def tables_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """What each table is: rows of people, rows that lead to them, nobody's, or not served."""
    found = await visit.ask_vault("setup")
    page, pages = _part(visit, found["tables"], TABLES)
    first = (page - 1) * TABLES
    tables = [
        {
            **one,
            "chosen": visit.form[f"use.{first + place}"] or _use(one),
            "names": visit.form[f"names.{first + place}"] or one["names"],
            "place": first + place,
        }
        for place, one in enumerate(found["tables"][first : first + TABLES])
    ]
    values = {"found": found, "tables": tables, "page": page, "pages": pages, "offered": OFFERED}
    values["is_named"] = visit.query["named"] == "yes"
    return _page(visit, "setup/tables.html", 0, refusal, **values)


def _use(one: Mapping[str, Any]) -> str:
    return f"{one['use']}:{one['leads']}" if one["use"] in USED else str(one["use"])


@shown_on(tables_page)
async def choose_tables(visit: Visit) -> Reply:
    """Store what each table of a page is. Those of the other pages stay. After columns were named, the page is shown
    again: which of them says whose a row is depends on their names.
    """
    tables = (await visit.ask_vault("setup"))["tables"]
    page, pages = _part(visit, tables, TABLES)
    given = {one["name"]: visit.form[f"use.{number}"] or _use(one) for number, one in enumerate(tables)}
    names = {one["name"]: visit.form[f"names.{number}"].strip() for number, one in enumerate(tables) if one["names"]}
    named = {
        one["name"]: names[one["name"]] for one in tables if names.get(one["name"]) not in (None, "", one["names"])
    }
    if named or visit.form["naming"]:
        await visit.ask_vault("setup_choose", step="some tables", given=given)
        await visit.ask_vault("setup_choose", step="names", given=named)
        return visit.go("/setup", page=page, named="yes" if named else "no")
    await visit.ask_vault("setup_choose", step="tables" if page == pages else "some tables", given=given)
    return visit.go("/setup", page=page + 1) if page < pages else visit.go("/setup/columns/1")


# --- what is known about columns ----------------------------------------------------------------------------


async def columns_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """The columns of one table, with what is publicly known about their values."""
    table, number, of = await _table(visit)
    page, pages = _part(visit, table["columns"], EACH)
    first = (page - 1) * EACH
    columns = [
        {**one, **_typed(one, visit, first + place), "place": first + place}
        for place, one in enumerate(table["columns"][first : first + EACH])
    ]
    rows = visit.form["rows_per_person"] if refusal else table["rows_per_person"] or ""
    values = {"number": number, "of": of, "page": page, "pages": pages, "columns": columns, "rows": rows}
    return _page(visit, "setup/columns.html", 1, refusal, table=table, **values)


async def _table(visit: Visit) -> tuple[dict[str, Any], int, int]:
    """The table that the path names, by its number among those with people."""
    used = [one for one in (await visit.ask_vault("setup"))["tables"] if one["use"] in USED]
    number = number_in(visit)
    if number > len(used):
        raise InvalidArgument("There is no such table. Go back to the tables.", code="gateway-not-found")
    return used[number - 1], number, len(used)


def _part(visit: Visit, lines: Sequence[Any], each: int) -> tuple[int, int]:
    """Which part of a long list is asked for, and how many there are."""
    pages = max(1, -(-len(lines) // each))
    asked = (visit.form if "page" in visit.form else visit.query)["page"]
    page = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 5 else 1
    return (page if 1 <= page <= pages else 1), pages


def _typed(one: Mapping[str, Any], visit: Visit, place: int) -> dict[str, str]:
    """What stands in the fields of a column: as it was typed, or as it is declared."""
    if f"choices.{place}" in visit.form:
        typed = {name: visit.form[f"{name}.{place}"] for name in ("low", "high", "choices")}
        return {**typed, "type": visit.form[f"type.{place}"] or one["type"]}
    low, high = one["declared"].get("between", ("", ""))
    return {"low": str(low), "high": str(high), "choices": "\n".join(map(str, one["declared"].get("choices", ())))}


@shown_on(columns_page)
async def choose_columns(visit: Visit) -> Reply:
    """Store what is declared about the columns of a page."""
    table, number, of = await _table(visit)
    page, pages = _part(visit, table["columns"], EACH)
    first = (page - 1) * EACH
    declared = {
        one["name"]: _declared(one, visit, first + place)
        for place, one in enumerate(table["columns"][first : first + EACH])
    }
    given = {"rows_per_person": visit.form["rows_per_person"], "columns": declared}
    await visit.ask_vault("setup_choose", step={"table": table["name"]}, given=given)
    if page < pages:
        return visit.go(f"/setup/columns/{number}", page=page + 1)
    return visit.go(f"/setup/columns/{number + 1}" if number < of else "/setup/limits")


def _declared(one: Mapping[str, Any], visit: Visit, place: int) -> dict[str, str]:
    typed = {name: visit.form[f"{name}.{place}"].strip() for name in ("low", "high", "choices")}
    if typed["choices"] and (typed["low"] or typed["high"]):
        raise InvalidArgument(
            f"{one['name']} has a range and choices. Keep one of them, and leave the other empty.", code="setup-choice"
        )
    how = "choices" if typed["choices"] else "range" if typed["low"] or typed["high"] else "nothing"
    kind = visit.form[f"type.{place}"]
    return {"declare": how, **typed, **({"type": kind} if kind else {})}


# --- what may be spent, and the policy ----------------------------------------------------------------------


async def limits_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """What may be spent in all and by one question, and when answers leave."""
    known = (await visit.ask_vault("setup"))["limits"]
    names = {"default": "question_default", "most": "question_most"}
    fields = ("epsilon", "delta", "answer_after", "default", "most", "owner")
    values = {name: visit.form[name] if refusal else _text(known[names.get(name, name)]) for name in fields}
    odds = [{"epsilon": f"{epsilon:g}", "belief": f"{_belief(epsilon):.1%}"} for epsilon in _EXAMPLES]
    return _page(visit, "setup/limits.html", 2, refusal, values=values, odds=odds)


_EXAMPLES = (0.5, 1.0, 3.0, 5.0)


def _belief(epsilon: float) -> float:
    """What somebody may believe after all answers who believed 50% before."""
    return risk(Pure(epsilon=epsilon)).posterior(0.5)[1]


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


@shown_on(limits_page)
async def choose_limits(visit: Visit) -> Reply:
    """Store the limits."""
    fields = ("epsilon", "delta", "answer_after", "default", "most", "owner")
    await visit.ask_vault("setup_choose", step="limits", given={name: visit.form[name] for name in fields})
    return visit.go("/setup/policy")


async def policy_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """The policy, before it is written."""
    found = await visit.ask_vault("setup")
    text = ""
    try:
        text = (await visit.ask_vault("setup_text"))["text"]
    except Refusal as wrong:
        refusal = refusal or wrong
    return _page(visit, "setup/policy.html", 3, refusal, text=text, found=found)


@shown_on(policy_page)
async def serve_policy(visit: Visit) -> Reply:
    """Write the policy, and let the gateway start. The owner stays logged in, as the owner of it. A limit that protects
    hardly anybody must be confirmed.
    """
    found = await visit.ask_vault("setup")
    if found["warnings"] and visit.form["sure"] != " ".join(found["warnings"]):  # as they were read, in this tab
        raise InvalidArgument("Confirm these limits, or go back and change them.", code="setup-choice")
    begun = await visit.ask_vault("setup_write")
    return visit.go("/setup/starting", headers=(session_header(visit, begun), CLOSE))


async def starting_page(visit: Visit) -> Reply:
    """Wait for the gateway. The first page of this address is then that of the owner."""
    return visit.page("setup/starting.html", headers=((b"refresh", b"1; url=/"), CLOSE))


async def started_page(visit: Visit) -> Reply:
    """The same address once the gateway runs: it leads to the first page."""
    return visit.go("/")


STARTED = (Page(method="GET", path="/setup/starting", handler=started_page),)
"""What a running gateway answers to a browser that still waits for it."""
PAGES = (
    Page(method="GET", path="/setup", handler=tables_page),
    Page(method="POST", path="/setup", handler=choose_tables),
    Page(method="GET", path="/setup/columns/{number}", handler=columns_page),
    Page(method="POST", path="/setup/columns/{number}", handler=choose_columns),
    Page(method="GET", path="/setup/limits", handler=limits_page),
    Page(method="POST", path="/setup/limits", handler=choose_limits),
    Page(method="GET", path="/setup/policy", handler=policy_page),
    Page(method="POST", path="/setup/policy", handler=serve_policy),
    Page(method="GET", path="/setup/starting", handler=starting_page),
)
