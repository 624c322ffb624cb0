"""A plan explained in text and as data: what a question would cost and how large its error may be. Only public
facts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import html
from discreet.errors import BudgetExhausted
from discreet.guarantees.guarantee import Guarantee, NoLoss
from discreet.guarantees.unit import Unit, few_rows
from discreet.ledger import Ledger
from discreet.mechanisms.selection.common_keys import CommonKeys
from discreet.mechanisms.selection.weighted_keys import WeightedKeys
from discreet.sql.estimates.deciding import Decided
from discreet.sql.expressions import Ref
from discreet.sql.plan import Plan
from discreet.sql.pricing.automatic_bounds import about
from discreet.sql.pricing.clipping import Clipping
from discreet.sql.pricing.found_rows import ROWS_FOUND, VALUES_FOUND
from discreet.sql.pricing.relation import parts_read
from discreet.sql.question import Aggregate, Output
from discreet.sql.reading.aggregates import EXTREMES
from discreet.sql.running.answer import receipts_text
from discreet.sql.running.intervals import Columns
from discreet.sql.running.loss import may_cancel, people_for_error
from discreet.sql.running.notes import RARE, limits_of, may_miss_rare, notes_on_values, number_of

IMAGINED = (1_000, 100_000)
"""Where an error depends on the size of a group, it is shown for groups with these numbers of rows."""
IN_DEVIATIONS, IN_DEVIATIONS_L2 = 25, 6
"""How large the ± of an average mostly is at most, in standard deviations of its values: so many times the error in
limits, over the number of people (`bench/sql/averages.py`). From 20 numbers on, limits are on squares."""
_NO_FIT = "asked now, it would be refused:"
_IF_LESS = " (several times as many if most add less)"
_CAVEAT = """\
Rows beyond these bounds are left out at random, and values outside their declared range are moved to its
ends: errors are about what is left. Nothing was spent."""
_WHOLE = """\
No row is left out. Values outside their declared range are moved to its ends: errors are about what is left.
Nothing was spent."""
_CLIPPED = """\
The limits on what one person may add are not all declared. They are found privately, and people above them
are scaled down, all their numbers alike. The noise is stated in units of these limits. The answer says what
the limits are and how many people exceed them, and its ± includes an estimate of what they lose.
{missed}Nothing was spent."""

PUBLIC = """\
This statement reads public tables only. It is answered exactly: it says nothing about anyone, so there is no
noise, and nothing is charged."""


FREE = """\
No row of anybody can change the answer to this statement, so it has no noise, and nothing is charged. It says:
{why}."""


class Explanation(str):
    """A plan explained in text. `data` has the same content for other programs."""

    data: dict[str, Any]
    _page = ""

    def _repr_html_(self) -> str:
        return self._page or html.code(self)


def explain_plan(
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    confidence: float = 0.95,
    decided: Decided | None = None,
    owed: Sequence[Guarantee] | None = None,
) -> Explanation:
    """A plan explained in text: who is protected, bounds, noise, cost, the expected error, and how ε is divided.
    `decided` says how earlier answers are used, and `owed` what would be charged now, if not all of it.
    """
    data = describe_plan(plan, ledger=ledger, confidence=confidence, decided=decided, owed=owed)
    described = {"protects": data["protects"]}
    if repeated := data["one_row"]:
        described["one row"] = f"in at most {repeated:,} joined rows"
    elif (bounds := data.get("one_unit") or data["one_person"]) and not data.get("limits"):
        within = f", {number_of(bounds['groups'], 'group')}, {number_of(bounds['rows_in_group'], 'row')} in a group"
        who = "one unit" if "one_unit" in data else "one person"
        described[who] = f"at most {number_of(bounds['rows'], 'row')}{within if data['keys'] else ''}"
        if found := data.get("used_of_person"):
            described[who] = f"the number of {found} that count is found first"
    if parts := data.get("parts"):
        described["only in"] = ", ".join(parts)
    number = "those with enough people" if data["groups"] is None else f"{data['groups']:,}"
    if enough := data.get("people_for_group"):
        number += f" (about {about(enough)} each, if nobody is in several)"
    described["groups"] = f"{number}, by {', '.join(data['keys'])}" if data["keys"] else "one, of all rows"
    if levels := data.get("levels"):
        named = [f"({', '.join(level)})" for level in levels]
        described["levels"] = f"{', '.join(named)}: parts of ε, and they add up"
    if limits := data.get("limits"):
        described["one person"] = (
            f"has limits on {' and '.join(limits['of'])}, found to be exceeded by {limits['in_words']}"
        )
        if people := limits["people_for_error"]:
            described["its ±"] = people["in_words"]
    described |= {"noise": data["noise"], "cost": data["guarantee"]}
    if decided is not None:
        whole = "all of it" if decided.price is None else f"a part of it: {plan.cost} would buy the same without"
        described["known"] = f"from {receipts_text(decided.receipts)}, {whole}"
    if first := data.get("found_first"):
        more = ", and more if there are few groups" if limits and enough else ""
        described["found first"] = f"{', '.join(first)}, for ε = {float(plan.spent_first):.4g} of it{more}"
        if not limits:
            described[""] = "(until then, errors are shown for public defaults)"
        if found_if := data.get("found_if"):
            needed = [
                f"{one['what']}: about {about(one['people'])} people have values near each other" for one in found_if
            ]
            described["found if"] = f"{'; '.join(needed)}; if not, it is refused, and stays charged"
    if "fits" in data:
        remains = f"{data['remaining'] or 'nothing'} would remain"
        described["then"] = remains if data["fits"] else f"{_NO_FIT} {data['hindrance']}"
    if wrong := data.get("look_at"):
        described["look at"] = " ".join(wrong)
    columns = [[c["name"], c["is"], _error_text(c)] for c in data["columns"]]
    measures = [[m["name"], f"{100 * m['share']:.3g}%", *_moved_and_noise(m)] for m in data["measures"]]
    expected = ["column", "is", f"expected error ({100 * confidence:.6g}%)"], columns
    shared = ["noisy number", "share of ε", "one unit moves it by", "noise"], measures
    unit = plan.price.guarantee.protects or Unit()
    bounded = _CAVEAT if unit.most_rows == 1 else _WHOLE
    missed = f"{limits['not_in_error']}\n" if limits and limits["not_in_error"] else ""
    caveat, asked = _CLIPPED.format(missed=missed) if limits else bounded, data["question"]
    explanation = Explanation("\n\n".join([asked, lines(described), _grid(*expected), _grid(*shared), caveat]))
    tables = html.table(*expected), html.table(*shared, numbers=(1, 2, 3))
    explanation._page = "".join([html.code(asked), html.facts(described), *tables, html.note(caveat)])
    explanation.data = data
    return explanation


def explain_all(
    plans: Sequence[Plan],
    needs: Sequence[Sequence[int]],
    *,
    ledger: Ledger | None = None,
    confidence: float = 0.95,
    owed: Sequence[Guarantee] = (),
) -> Explanation:
    """The questions that a statement combines, each explained, with the numbers of those that it needs the answers of.
    What runs on their answers costs nothing. What is `owed` for all of them must fit together.
    """
    if not plans:
        explanation = Explanation(PUBLIC)
        explanation.data = {"questions": []}
        return explanation
    each = [explain_plan(plan, confidence=confidence) for plan in plans]  # what remains is said once, after all
    heads = [f"Question {number} of {len(plans)}{_after(need)}" for number, need in enumerate(needs, 1)]
    texts = [f"{head}\n{'=' * len(head)}\n{text}" for head, text in zip(heads, each, strict=True)]
    said: dict[str, Any] = {"questions": [text.data for text in each]}
    if ledger is not None:
        try:
            left = ledger.after(*owed)
            said |= {"fits": True, "remaining": left and str(left)}
            texts.append(f"After all of it, {left or 'nothing'} would remain.")
        except BudgetExhausted as refused:
            said |= {"fits": False, "remaining": None, "hindrance": str(refused)}
            texts.append(f"{_NO_FIT[:1].upper()}{_NO_FIT[1:]} {refused}")
    explanation = Explanation("\n\n".join(texts))
    explanation.data = said
    return explanation


def explain_free(why: str) -> Explanation:
    """Why a statement is answered for nothing."""
    explanation = Explanation(FREE.format(why=why))
    explanation.data = {"questions": [], "free": why}
    return explanation


def _after(needs: Sequence[int]) -> str:
    """What is asked before, and stands in a question as a number that is not known yet."""
    listed = ", ".join(str(number + 1) for number in needs)
    return f", with what question {listed} releases in the place of 1, 'a' or 2000-01-01" if needs else ""


def describe_plan(
    plan: Plan,
    *,
    ledger: Ledger | None = None,
    confidence: float = 0.95,
    decided: Decided | None = None,
    owed: Sequence[Guarantee] | None = None,
) -> dict[str, Any]:
    """The same for other programs."""
    question, price, bounds = plan.question, plan.price, plan.bounds
    several = (price.guarantee.protects or Unit()).most_rows > 1
    within = bounds and {"rows": bounds.rows, "groups": bounds.groups, "rows_in_group": bounds.per_group}
    cost: Guarantee = plan.cost
    if decided is not None:
        cost = NoLoss() if decided.price is None else decided.price.cost
    facts: dict[str, Any] = {
        "question": question.line,
        "protects": describe_unit(price.guarantee.protects or Unit()),
        "one_row": bounds.rows if bounds is not None and question.relation.person is None and not several else None,
        "one_person": None if several else within,
        "groups": None if plan.groups is None else plan.groups.count,
        "keys": [key.name for key in question.keys],
        "noise": price.noise,
        "guarantee": str(cost),
        "columns": [_column(plan, output, confidence) for output in question.outputs],
        "measures": _measures(plan, confidence),
    }
    if several:
        facts["one_unit"] = within
    if (parts := parts_read(question.relation)) is not None:
        facts["parts"] = list(parts)
    if question.levels:
        facts["levels"] = [[question.keys[key].name for key in level] for level in question.levels]
    if plan.clipping is not None and plan.clipping.searched:
        missed = RARE if may_miss_rare(plan.clipping) else None
        facts["limits"] = {"of": limits_of(plan.clipping), **_people_above(plan.clipping, facts["groups"])}
        facts["limits"]["not_in_error"] = missed
        facts["limits"]["people_for_error"] = _people_for_error(plan, facts["groups"])
    if plan.automatic:
        facts["found_first"] = list(dict.fromkeys(bound.what for bound in plan.automatic))
        found_if = [{"what": one.what, "people": one.people} for one in plan.automatic if one.people]
        facts |= {"found_if": found_if} if found_if else {}
    if found := _used_of_person(plan):
        facts["used_of_person"] = found
    chosen = [bound.mechanism for bound in plan.automatic if isinstance(bound.mechanism, CommonKeys | WeightedKeys)]
    if chosen:
        facts["people_for_group"] = chosen[0].people_needed(1)
    if plan.price.selection is not None and not several:
        facts["smallest_group"] = plan.price.selection.threshold
    if decided is not None:
        facts["derived_from"] = list(decided.receipts)
    if wrong := notes_on_values(question):
        facts["look_at"] = wrong
    if ledger is None:
        return facts
    try:
        left = _left(plan, ledger, decided) if owed is None else ledger.after(*owed)
    except BudgetExhausted as refused:
        return facts | {
            "fits": False,
            "remaining": None,
            "limit": str(ledger.rule.limit),
            "hindrance": str(refused),
        }
    return facts | {"fits": True, "remaining": left and str(left), "limit": str(ledger.rule.limit)}


def _people_above(clipping: Clipping, groups: int | None) -> dict[str, Any]:
    """How many people should exceed the limits that are found: in all, or for each group that is still to be found."""
    above, each = clipping.people, ""
    if groups is None:
        above, each = above / clipping.groups, " for each group that is found"
    words = f"about {number_of(math.ceil(above), 'person', 'people')}{each}"
    return {"people_above": float(clipping.people), "in_words": words}


def _people_for_error(plan: Plan, groups: int | None) -> dict[str, Any] | None:
    """How many people an answer needs so that it has a ±: in all, or for each group that is still to be found."""
    assert plan.clipping is not None
    assert plan.clip is not None
    if (found := people_for_error(plan.clipping, plan.clip)) is None:
        return None
    few, many = (number / (plan.clipping.groups if groups is None else 1) for number in found)
    each = " for each group that is found" if groups is None else " in all groups together" if groups > 1 else ""
    words = f"mostly unknown (± ?) below about {about(few)} people{each}, and mostly known from about {about(many)} on"
    words += ", if values of both signs do not cancel" if may_cancel(plan.clipping) else ""
    return {"unknown_below": math.ceil(few), "known_from": math.ceil(many), "in_words": words}


def _used_of_person(plan: Plan) -> str:
    """What is used of one person, if it is found first how much: until then, errors are shown for one each."""
    found = {bound.what for bound in plan.automatic}
    return "rows" if ROWS_FOUND in found else "values" if VALUES_FOUND in found else ""


def _left(plan: Plan, ledger: Ledger, decided: Decided | None) -> Guarantee | None:
    """What would remain after the answer."""
    if decided is None:
        return ledger.after(*plan.charges)
    return ledger.remaining if decided.price is None else ledger.after(decided.price.guarantee)


def _measures(plan: Plan, confidence: float) -> list[dict[str, Any]]:
    """Every number that gets noise. If keys are not declared, the last one chooses the groups."""
    listed = [_measure(plan, number, confidence) for number in range(len(plan.question.measures))]
    if (chosen := plan.price.selection) is None:
        return listed
    used, whole = chosen.guarantee().largest_loss, plan.price.guarantee.largest_loss
    unit = plan.price.guarantee.protects or Unit()
    steps = 1 if unit.most_rows == 1 else unit.most_rows * (1 if unit.neighbors == "add_or_remove" else 2)
    taken = float(steps * used / whole) if used and whole else 0.0
    who = "people" if unit.most_rows == 1 else "rows"
    choice = {"name": f"{who}, to choose groups", "share": taken, "moved_by": float(steps * chosen.keys_per_person)}
    choice |= {"error": chosen.error(confidence).amount, "of": f"{who}; {chosen.threshold:,} are enough"}
    return [*(column | {"share": column["share"] * (1 - taken)} for column in listed), choice]


def _measure(plan: Plan, number: int, confidence: float) -> dict[str, Any]:
    """A number that gets noise, in the unit of its column."""
    measure, accuracy = plan.question.measures[number], plan.price.parts[number].error(confidence)
    used = next(aggregate.name for aggregate in plan.question.aggregates if number in aggregate.parts)
    what = {"count": "rows", "distinct": "values", "mode": "choice"}.get(measure.kind, measure.kind)
    unit = float(measure.step) ** measure.power if measure.kind == "sum" else 1.0
    facts = {
        "name": f"{what}{' of squares' if measure.power == 2 else ''} for {used}",
        "share": float(plan.price.shares[number]),
    }
    if measure.is_added and plan.clipping is not None and plan.clipping.searched and plan.clip is not None:
        noise = plan.clipping.noise(plan.clip).error(confidence)
        kinds = len(plan.clipping.limits)
        return facts | {
            "moved_by": None,
            "error": None,
            "of": "",
            "error_in_limits": kinds * float(noise) / plan.clip.limit,
        }
    return (
        facts
        | {
            "moved_by": float(plan.price.sensitivities[number].amount) * unit,
            "error": accuracy.amount * unit,
            "of": {"rank": "ranks", "score": "rows"}.get(accuracy.of, ""),
        }
        | ({"times": f"the {found} of one person that are found"} if (found := _used_of_person(plan)) else {})
    )


def _column(plan: Plan, output: Output, confidence: float) -> dict[str, Any]:
    """A column and its error: known in advance, or stated for groups of several example sizes."""
    if not plan.question.is_noisy(output):
        return {"name": output.name, "is": "a key", "error": 0.0, "of": ""}
    used = [aggregate for aggregate in plan.question.aggregates if aggregate.field in set(output.expr.fields())]
    column = {"name": output.name, "is": " and ".join(aggregate.name for aggregate in used)}
    first = plan.question.measures[used[0].parts[0]]
    if first.kind == "quantile" and first.quantile in EXTREMES.values():
        column["is"] += f", as the quantile {float(first.quantile):g}"
    if used[0].kind == "mode" or (isinstance(output.expr, Ref) and used[0].kind in ("count", "sum", "quantile")):
        known = _measure(plan, used[0].parts[0], confidence)
        column |= {part: known[part] for part in ("error", "of", "error_in_limits", "times") if part in known}
        return column | _fewest_people(plan, known.get("error_in_limits")) | _times_found(known)
    if plan.clipping is not None and plan.clipping.searched:
        return column | {"error": None, "of": "", "error_by_rows": {}} | _too_few_people(plan, output, used, confidence)
    sizes = {rows: _example_error(plan, output, rows, confidence) for rows in IMAGINED}
    return column | {"error": None, "of": "", "error_by_rows": sizes}


def _fewest_people(plan: Plan, in_limits: float | None) -> dict[str, Any]:
    """An error in limits, with the number of people below which it is at least a tenth of the result: nobody within
    the limits adds more than one. If people add a part of the limit on average, it takes that many times as many.
    """
    if in_limits is None:
        return {}
    people = f"at least 10% below {_people(plan, in_limits)}"
    return {"in_words": f"± {_round(in_limits)} times its limit and what is lost to it; {people}{_IF_LESS}"}


def _too_few_people(plan: Plan, output: Output, used: Sequence[Aggregate], confidence: float) -> dict[str, Any]:
    """The same for what is computed from sums, such as an average: with so few people, the noise in one of its sums is
    at least a tenth of the largest sum that they can have within the limits.
    """
    parts = [_measure(plan, part, confidence) for aggregate in used for part in aggregate.parts]
    in_limits = max((part["error_in_limits"] for part in parts if "error_in_limits" in part), default=None)
    if in_limits is None:
        return {}
    said = f"of little use below {_people(plan, in_limits)}{_IF_LESS}"
    if used[0].kind == "mean" and isinstance(output.expr, Ref):
        return {"in_words": f"depends on the data: {_in_deviations(plan, in_limits)}; {said}"}
    return {"in_words": f"depends on the data: {said}"}


def _in_deviations(plan: Plan, in_limits: float) -> str:
    """The error of an average in a unit that an analyst can guess, for so many people that it is at most 1."""
    most = in_limits * (IN_DEVIATIONS_L2 if plan.clip is not None and plan.clip.norm == "L2" else IN_DEVIATIONS)
    people = 10 ** max(3, math.ceil(math.log10(most)))
    where = " in a group" if plan.question.keys else ""
    return f"mostly at most ± {most / people:.1g} standard deviations of its values for {people:,} people{where}"


def _people(plan: Plan, in_limits: float) -> str:
    """With how many people an error is a tenth of what they have, if each adds the whole limit."""
    return f"about {about(10 * in_limits)} people{' in a group' if plan.question.keys else ''}"


def _times_found(known: dict[str, Any]) -> dict[str, Any]:
    """An error for one row of each person, where it is found first how many are used."""
    if not known.get("times") or not known["error"]:
        return {}
    error = f"± {_round(known['error'])} {known['of']}".rstrip()
    return {"in_words": f"{error} times {known['times']}"}


def _example_error(plan: Plan, output: Output, rows: int, confidence: float) -> float | None:
    """The error in an example group with this many rows and values that are uniform in their range."""
    question, numbers = plan.question, []
    for measure in question.measures:
        each = measure.reach**2 / 3 if measure.power == 2 else (measure.lowest + measure.highest) / 2
        size = 3 if measure.kind == "quantile" else 1
        # the interval of what is chosen depends on the data
        known = np.nan if measure.is_chosen else rows * (each if measure.kind == "sum" else 1)
        numbers.append(np.full(size, known))
    keys = [tuple((key.domain or (None,))[0] for key in question.keys)]
    band = Columns(question, plan.price, numbers, keys).band(output.expr, confidence)
    half = math.inf if band is None else float(band[1][0] - band[0][0]) / 2
    return half if math.isfinite(half) else None


def _moved_and_noise(measure: dict[str, Any]) -> tuple[str, str]:
    if measure["moved_by"] is None:
        return "its limit", f"± {_round(measure['error_in_limits'])} limits"
    if "times" in measure:
        each = f"for each of {measure['times']}"
        return f"{_round(measure['moved_by'])} {each}", f"± {_round(measure['error'])} {measure['of']}".rstrip()
    return _round(measure["moved_by"]), f"± {_round(measure['error'])} {measure['of']}"


def _error_text(column: dict[str, Any]) -> str:
    if "in_words" in column:
        return str(column["in_words"])
    if column["error"] is not None:
        return f"± {_round(column['error'])} {column['of']}".rstrip() if column["error"] else "none"
    sizes = [f"± {_round(e)} for {rows:,} rows" for rows, e in column["error_by_rows"].items() if e is not None]
    return f"depends on the data: {', '.join(sizes) or 'no bound is known'}"


def _round(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _grid(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lined = (head, ["-" * width for width in widths], *rows)
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in lined)


def describe_unit(unit: Unit) -> str:
    rows = "all rows" if unit.per is None else f"all rows in one {unit.per}"
    who = few_rows(unit) if unit.column is None else f"one person ({rows} of one {unit.column})"
    who = who if unit.lives_in is None else f"{who}, who lives in one {unit.lives_in}"
    return who if unit.neighbors == "add_or_remove" else f"{who}, replaced by another"


def lines(described: dict[str, str]) -> str:
    width = max(map(len, described))
    return "\n".join(f"{name:<{width}}  {words}" for name, words in described.items())
