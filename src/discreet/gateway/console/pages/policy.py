"""The pages about the policy: its public text, its versions, what is still open, and proposals to change it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument
from discreet.gateway.books.approvals import DECIDING
from discreet.gateway.console.deeds import leaf_of, number_in, reason_in, shortened, shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import PAGE_HEADERS, Refusal, Visit
from discreet.gateway.desk.replies import Reply

EACH = 20
LONGEST_SHOWN = 15_000
"""Characters of the policy on its page. All of it is at /policy/text."""
MOST_LINES, MOST_CHARACTERS = 400, 20_000
"""Of a difference on its page."""
LONGEST_LINE = 300
_LIST = re.compile(r"\[(\n[^\[\]{}]{,200}?\n\s*)\]")
MOST_OPEN = 40
PROPOSING = ("owner", "steward", "analyst", "service")
DONE = {
    "proposed": "Your proposal is stored. Somebody else decides about it.",
    "approved": "The proposal is accepted. It holds once the owner has edited the policy and restarted the gateway.",
    "refused": "The proposal is refused.",
}
DECISIONS = {"approve": "approved", "refuse": "refused"}


class Changed(NamedTuple):
    """A line of a difference: added, removed, a place, or neither."""

    kind: str
    text: str


async def policy_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """The policy as everybody may see it."""
    found = await visit.ask_vault("policy")
    text = readable(found["text"])
    open_points = list(undecided(await visit.ask_vault("tables")))
    return visit.page(
        "owner/policy.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        policy=found,
        text=shortened(text, LONGEST_SHOWN),
        is_whole=len(text) <= LONGEST_SHOWN,
        open_points=open_points[:MOST_OPEN],
        more_open=max(0, len(open_points) - MOST_OPEN),
        waiting=[{**one, "why": shortened(one["why"])} for one in found["proposals"] if one["state"] == "open"][:EACH],
        leaf=leaf_of(visit, [one for one in found["proposals"] if one["state"] != "open"], EACH),
        versions=found["versions"][: -EACH - 1 : -1],
        proposes=visit.role in PROPOSING,
    )


def readable(text: str) -> str:
    """The public text of a policy with one line for each value, and for each short list of values."""
    try:
        lines = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return _LIST.sub(
        lambda found: re.sub(r"\n\s*", " ", found[1]).strip().join("[]"), lines
    )  # no value has a line break


def undecided(described: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What the owner has not declared, and what this means for answers."""
    for table in described["tables"]:
        if table["protects"] is None:
            continue
        if table["rows_per_person"] is None and "person" in table["protects"]:
            means = "how much of one person an answer uses is found privately, for a part of each question's ε"
            yield {"where": table["name"], "what": "rows_per_person", "means": means}
        for column in table["columns"]:
            where = f"{table['name']}.{column['name']}"
            if column["identifies_people"] or column["between"] is not None or column["choices"] is not None:
                continue
            if column["type"] in ("integer", "number"):
                means = "found privately, for a part of ε: declare a range only if it is tight"
                yield {"where": where, "what": "between", "means": means}
            elif column["type"] == "text":
                means = "groups are found privately, and only those that enough people have are shown"
                yield {"where": where, "what": "choices", "means": means}


async def text_page(visit: Visit) -> Reply:
    """The whole public text, as plain text."""
    found = await visit.ask_vault("policy")
    return Reply(200, b"text/plain; charset=utf-8", readable(found["text"]).encode(), PAGE_HEADERS)


# --- proposals ----------------------------------------------------------------------------------------------


async def propose_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """A form with the text of the policy, to be changed."""
    found = await visit.ask_vault("policy")
    text = visit.form["text"] or readable(found["text"])
    return visit.page(
        "owner/propose.html", status=status_of(refusal), refusal=refusal, text=text, why=visit.form["why"], policy=found
    )


@shown_on(propose_page)
async def propose(visit: Visit) -> Reply:
    """Store a proposal."""
    made = await visit.ask_vault("propose", text=visit.form["text"], why=reason_in(visit))
    return visit.go(f"/policy/proposals/{made['number']}", done="proposed")


async def proposal_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """One proposal, line by line."""
    number = number_in(visit)
    found = (await visit.ask_vault("policy"))["proposals"]
    one = next((one for one in found if one["number"] == number), None)
    if one is None:
        raise InvalidArgument("There is no such proposal among those that you may see.", code="gateway-not-found")
    lines = one["diff"].splitlines()
    shown = list(first_lines(lines))
    return visit.page(
        "owner/proposal.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        proposal=one,
        changes=[changed(line) for line in shown],
        hidden=len(lines) - len(shown),
        decides=one["state"] == "open" and visit.role in DECIDING and one["author"] != visit.me["account"],
        given=visit.form,
    )


def first_lines(lines: list[str]) -> Iterator[str]:
    """So many lines as fit on a page."""
    room = MOST_CHARACTERS
    for line in lines[:MOST_LINES]:
        room -= min(len(line), LONGEST_LINE) + 1
        if room < 0:
            return
        yield line


def changed(line: str) -> Changed:
    """What a line of a unified difference says."""
    if line.startswith(("+++", "---", "@@")):
        return Changed("place", line)
    kinds = {"+": "added", "-": "removed"}
    return Changed(kinds.get(line[:1], "same"), shortened(line, LONGEST_LINE))


@shown_on(proposal_page)
async def decide(visit: Visit) -> Reply:
    """Accept or refuse a proposal."""
    decision = visit.form["decision"]
    await visit.ask_vault("decide_policy", number=number_in(visit), decision=decision, why=reason_in(visit))
    return visit.go("/policy", done=DECISIONS.get(decision))


PAGES = (
    Page(method="GET", path="/policy", handler=policy_page),
    Page(method="GET", path="/policy/text", handler=text_page),
    Page(method="GET", path="/policy/propose", handler=propose_page),
    Page(method="POST", path="/policy/propose", handler=propose),
    Page(method="GET", path="/policy/proposals/{number}", handler=proposal_page),
    Page(method="POST", path="/policy/proposals/{number}", handler=decide),
)
