"""The plan of a question as the pages show it: what it costs, how wrong it may be, and what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.gateway.console.visit import Refusal

_UNDERLINED = re.compile(r"\n  (?P<line>[^\n]*)\n  (?P<before> *)(?P<wrong>\^+)$")


@dataclass(frozen=True)
class PlanColumn:
    """A column of the answer: what it is, and its expected error. `within` is the error as a number, where the question
    can ask for another.
    """

    name: str
    what: str
    error: str
    within: float | None = None


@dataclass(frozen=True)
class Share:
    """A noisy number: its part of ε, what one person changes, and its noise."""

    name: str
    part: float
    moved: str
    noise: str


@dataclass(frozen=True)
class PlanView:
    """A plan, in words."""

    epsilon: float
    cost: str
    free: str
    is_bought: bool
    fits: bool
    left: str
    after: str
    columns: Sequence[PlanColumn]
    shares: Sequence[Share]
    groups: str
    protects: str
    losses: Sequence[str]
    warnings: Sequence[str]
    questions: int


@dataclass(frozen=True)
class RefusalView:
    """A refusal: what it says, the line with the wrong part, and a question that can be answered instead."""

    message: str
    code: str
    line: tuple[str, str, str] | None = None
    position: int | None = None
    length: int = 0
    instead: str = ""
    filed: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


def view_refusal(refusal: Refusal) -> RefusalView:
    """A refusal for a page."""
    found = _UNDERLINED.search(refusal.message)
    message = refusal.message[: found.start()] if found else refusal.message
    line, length = None, 0
    if found:
        start, length = len(found["before"]), len(found["wrong"])
        line = (found["line"][:start], found["line"][start : start + length], found["line"][start + length :])
    instead = refusal.more.get("instead")
    return RefusalView(
        message=message,
        code=refusal.code,
        line=line,
        position=refusal.position,
        length=length,
        instead=instead if isinstance(instead, str) else "",
        filed=refusal.code == "gateway-approval" and "It is request" in refusal.message,
    )


def view_plan(plan: Mapping[str, Any]) -> PlanView:
    """The plan that the vault explains, for a page."""
    parts: Sequence[Mapping[str, Any]] = plan.get("questions", [plan])
    epsilon, bought = float(plan["epsilon"]), plan["bought"] is True
    free = "" if parts else str(plan.get("free") or "It reads public tables only, so it is answered exactly.")
    return PlanView(
        epsilon=epsilon,
        cost="; ".join(dict.fromkeys(str(part["guarantee"]) for part in parts)) if not bought else "",
        free=free,
        is_bought=bought,
        fits=plan["fits"] is True,
        left=str(plan["left"] or "nothing") if plan["spends"] else "",
        after=str(plan["after"] or "nothing") if plan["spends"] and plan["fits"] and parts and not bought else "",
        columns=[_column(column) for part in parts for column in part["columns"]],
        shares=[_share(measure) for part in parts for measure in part["measures"]],
        groups="; ".join(filter(None, map(_groups, parts))),
        protects=str(parts[0]["protects"]) if parts else "",
        losses=list(dict.fromkeys(words for part in parts for words in _losses(part))),
        warnings=[] if bought or not epsilon else list(dict.fromkeys(_warnings(parts, epsilon, plan["hindrance"]))),
        questions=len(parts),
    )


def _column(column: Mapping[str, Any]) -> PlanColumn:
    name, what = str(column["name"]), str(column["is"])
    if "in_words" in column:
        return PlanColumn(name, what, str(column["in_words"]))
    error = column["error"]
    if error is not None:
        words = f"± {rounded(error)} {column['of']}".rstrip() if error else "exact"
        return PlanColumn(name, what, words, float(error) if error else None)
    sizes = column.get("error_by_rows") or {}
    known = [f"± {rounded(one)} for {int(rows):,} rows" for rows, one in sizes.items() if one is not None]
    return PlanColumn(name, what, f"depends on the group: {', '.join(known)}" if known else "known with the answer")


def _share(measure: Mapping[str, Any]) -> Share:
    if measure["moved_by"] is None:
        return Share(measure["name"], measure["share"], "its limit", f"± {rounded(measure['error_in_limits'])} limits")
    noise = f"± {rounded(measure['error'])} {measure['of']}".rstrip()
    each = f" for each of {measure['times']}" if "times" in measure else ""
    return Share(measure["name"], measure["share"], f"{rounded(measure['moved_by'])}{each}", noise)


def _groups(part: Mapping[str, Any]) -> str:
    if not part["keys"]:
        return ""
    many = "those that enough people have" if part["groups"] is None else f"{part['groups']:,}"
    if enough := part.get("people_for_group"):
        many += f" (about {float(f'{enough:.2g}'):,.0f} each, if nobody is in several)"
    return f"{many}, by {', '.join(part['keys'])}"


def _losses(part: Mapping[str, Any]) -> list[str]:
    """What is left out or moved before noise is added. The ± does not include it."""
    used, found = [], part.get("used_of_person")
    if found:
        used.append(f"Of one person, only as many {found} are used as are found. Others are left out at random.")
    if limits := part.get("limits"):
        missed = f" {limits['not_in_error']}" if limits["not_in_error"] else ""
        if people := limits["people_for_error"]:
            missed = f" It is {people['in_words']}.{missed}"
        return [
            *used,
            f"Limits on {' and '.join(limits['of'])} of one person are found privately, to be exceeded by "
            f"{limits['in_words']}. Who has more is scaled down. The ± includes an estimate of what is lost.{missed}",
        ]
    said = []
    if first := part.get("found_first"):
        said.append(f"Found first: {', '.join(first)} (until then, errors are shown for public defaults).")
    if used:
        said += used
    elif bounds := part["one_person"]:
        many = "1 row is" if bounds["rows"] == 1 else f"{bounds['rows']:,} rows are"
        said.append(f"Of one person, at most {many} used. Rows beyond that are left out at random.")
    said.append("Values outside their declared range are moved to its ends. The ± does not include that.")
    return said


def _warnings(parts: Sequence[Mapping[str, Any]], epsilon: float, hindrance: str | None) -> Iterator[str]:
    if hindrance is not None:
        yield hindrance
    for part in parts:
        yield from part.get("look_at", ())
    for part in parts:
        for one in part.get("found_if", ()):
            people = f"{float(format(one['people'], '.2g')):,.0f}"
            yield (
                f"At ε = {epsilon:g}, {one['what']} is found only if about {people} people have values near each "
                "other. If not, the question is refused, and what was charged to find it stays charged."
            )
    for part in parts:  # how many people a group needs to be shown is known before anything is
        if enough := max(part.get("people_for_group", 0), part.get("smallest_group", 0)):
            yield (
                f"At ε = {epsilon:g}, groups with fewer than about {float(f'{enough:.2g}'):,.0f} people are not shown. "
                "To see smaller ones, spend more ε, or ask the owner to declare choices."
            )


def rounded(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
