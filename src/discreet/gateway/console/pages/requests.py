"""The pages about questions that wait for a second person: what is asked, what it costs, and the decision."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.books.approvals import DECIDING
from discreet.gateway.console.deeds import leaf_of, number_in, reason_in, shortened, shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply

EACH = 25
LONGEST_SHOWN = 20_000
"""Characters of a question on its page."""
DONE = {"approved": "The question is approved. It can be asked once.", "refused": "The question is refused."}
DECISIONS = {"approve": "approved", "refuse": "refused"}


async def requests_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """The requests that wait, and those that were decided."""
    found = (await visit.ask_vault("requests"))["requests"]
    leaf = leaf_of(visit, sorted(found, key=lambda one: one["state"] != "open"), EACH)
    shown = [{**one, "sql": shortened(one["sql"])} for one in leaf.lines]
    return visit.page(
        "owner/requests.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        leaf=leaf._replace(lines=shown),
        waiting=sum(one["state"] == "open" for one in found),
        decides=visit.role in DECIDING,
    )


async def request_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """One request, with the plan of its question."""
    number = number_in(visit)
    found = (await visit.ask_vault("requests"))["requests"]
    one = next((one for one in found if one["number"] == number), None)
    if one is None:
        raise InvalidArgument("There is no such request among those that you may see.", code="gateway-not-found")
    return visit.page(
        "owner/request.html",
        status=status_of(refusal),
        refusal=refusal,
        request={**one, "sql": shortened(one["sql"], LONGEST_SHOWN)},
        is_cut=len(one["sql"]) > LONGEST_SHOWN,
        plan=await _plan(visit, one),
        decides=one["state"] == "open" and visit.role in DECIDING and one["account"] != visit.me["account"],
        given=visit.form,
    )


async def _plan(visit: Visit, one: dict[str, Any]) -> str | None:
    """What the gateway says about the question, for free. None if it can no longer be planned."""
    try:
        plan = await visit.ask_vault("plan", sql=one["sql"], epsilon=one["epsilon"])
    except Refusal:
        return None
    return shortened(plan.get("text", ""), LONGEST_SHOWN)


@shown_on(request_page)
async def decide(visit: Visit) -> Reply:
    """Approve or refuse a request."""
    decision = visit.form["decision"]
    await visit.ask_vault("decide", number=number_in(visit), decision=decision, why=reason_in(visit))
    return visit.go("/requests", done=DECISIONS.get(decision))


PAGES = (
    Page(method="GET", path="/requests", handler=requests_page),
    Page(method="GET", path="/requests/{number}", handler=request_page),
    Page(method="POST", path="/requests/{number}", handler=decide),
)
