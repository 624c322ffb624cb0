"""Which errors a question requests, and the notes that come with every answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument, NotAllowed
from discreet.sql.expressions import Call, Const, Expr, Field, Origin, Ref, conjuncts, walk
from discreet.sql.plan import Plan
from discreet.sql.pricing.centers import describe
from discreet.sql.pricing.clipping import Clipping, has_one_sign, has_two_values
from discreet.sql.pricing.price import Price
from discreet.sql.pricing.relation import PerPerson, Scan, Windowed, parts_of, parts_read
from discreet.sql.question import Measure, Question
from discreet.sql.reading.aggregates import EXTREMES
from discreet.sql.reading.suggested import did_you_mean
from discreet.sql.reading.values.narrowing import may_hold
from discreet.sql.reading.values.public_values import is_strict
from discreet.sql.running.loss import Loss
from discreet.sql.running.redrawn import has_extreme, has_rank
from discreet.sql.schema import Found

_NO_ERROR = "No ±"
FOUND = "Found privately"
"""How the note on bounds begins."""
SOME_GROUPS = "Groups with fewer than about", "Groups are shown if enough people"
"""How the notes begin on groups that are not shown."""
MOST_NAMED, MOST_TO_SUGGEST, LONGEST_SHOWN = 3, 1000, 60
"""So many values are named that are not declared; another is suggested from so many choices; so long is one shown."""
TOO_FEW = "There are probably too few people for this ε"
RARE = "It does not cover rare values that are far larger than others: cut them off with LEAST(…), near what is usual."
"""What the ± of sums leaves out, where limits are found."""


def goals(question: Question, within: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """The measures that must be accurate, and how accurate in steps of each."""
    if not isinstance(within, Mapping) or not within:
        raise InvalidArgument('within must name columns and their errors, such as {"visits": 50}.', code="wrong-type")
    outputs = {output.name.lower(): output for output in question.outputs}
    goals: list[tuple[int, Any]] = []
    for name, amount in within.items():
        output = outputs.get(str(name).lower())
        if output is None:
            raise InvalidArgument(
                f"within names {name}, which is not a column of the answer. Known: "
                f"{', '.join(output.name for output in question.outputs)}.",
                code="unknown-column",
            )
        aggregate = next((a for a in question.aggregates if output.expr == Ref(a.field)), None)
        if aggregate is None or aggregate.kind not in ("count", "sum", "quantile"):
            raise NotAllowed(
                f"The error of {name} depends on the data, so no ε promises it in advance. "
                "Use within= for counts, sums, and quantiles in ranks.",
                code="within-depends-on-data",
            )
        if not isinstance(amount, int | float) or not 0 < amount < 1e300:
            raise InvalidArgument(f"within of {name} must be an error above 0.", code="out-of-range")
        goals.append((aggregate.parts[0], amount))
    return goals


def notes_on_groups_around(plan: Plan) -> tuple[str, ...]:
    """What is left out of a person because the groups around a question were measured with it."""
    if plan.enforced is None:
        return ()
    rows = number_of(plan.enforced.rows, "row")
    return (f"Measured with the groups around it: at most {rows} of one person in all of them.",)


def error_of(question: Question, price: Price, part: int, confidence: Any) -> float:
    """How large the error of a measure may be, in the unit of its column. For a quantile, in ranks."""
    amount, measure = float(price.parts[part].error(confidence)), question.measures[part]
    return amount if measure.kind == "quantile" else amount * float(measure.step)


def notes_on(plan: Plan, loss: Loss | None = None) -> tuple[str, ...]:
    """What the errors do not cover. A note depends only on public facts and on what was released."""
    notes = [f"{FOUND}: {'; '.join(plan.found)}."] if plan.found else []
    if loss is not None and loss.is_mostly_noise():
        other = ", or most have more than the limit" if round(loss.limits()) else ""
        signed = not all(map(has_one_sign, loss.clipping.basis.measures))
        notes.append(
            f"{TOO_FEW}{other}{', or values of both signs cancel' if signed else ''}. Spend more, ask about more "
            "people, or ask the owner to declare rows_per_person and the ranges of summed columns."
        )
    if loss is not None and loss.clip.above:
        notes.append(_note_on_loss(loss))
    if plan.bounds is not None and plan.question.relation.person is None:
        several = plan.price.guarantee.protects is not None and plan.price.guarantee.protects.most_rows > 1
        who, what = ("The protected rows take", "row") if several else ("One row takes", "joined row")
        notes.append(f"{who} part in at most {number_of(plan.bounds.rows, what)}.")
    elif plan.bounds is not None and not (plan.clipping and all(m.is_added for m in plan.question.measures)):
        kinds = {measure.kind for measure in plan.question.measures if not measure.is_added}
        values = kinds == {"distinct"} and (plan.clipping or not any(m.is_added for m in plan.question.measures))
        at_most = number_of(plan.bounds.rows, "different value" if values else "row")
        if plan.question.keys:
            at_most += f" and {number_of(plan.bounds.groups, 'group')}"
        unit = plan.price.guarantee.protects
        who = "one person" if unit is None or unit.per is None else f"one person in one {unit.per}"
        named = _bounded_columns(plan)
        uses = f"{' and '.join(named) or 'The answer'} {'use' if len(named) > 1 else 'uses'}"
        it = "them" if len(named) > 1 else "it"
        notes.append(f"{uses} at most {at_most} of {who}. All else is missing from {it}, and not in the ±.")
    if plan.question.levels:
        notes.append("The levels add up. A row without a key is the sum over all shown values of that key.")
        if plan.open_keys:
            notes.append("Rows of groups that are not shown are in no sum; that is not in the ±.")
    found = {*plan.question.uncentered, *plan.question.centered}
    if any(m.kind == "sum" and not m.is_open and m.value not in found for m in plan.question.measures):
        notes.append("Values outside their declared range are moved to its ends; that is not in the ±.")
    notes += notes_on_values(plan.question)
    notes += _notes_on_parts(plan)
    if reasons := _reasons_to_leave_out(plan):
        notes.append(f"Left out: rows whose {', or whose '.join(reasons)}.")
    if (chosen := plan.price.selection) is not None:
        open_keys = ", ".join(key.name for key in plan.question.keys if key.domain is None)
        fewer = "lower groups_per_person, " if chosen.keys_per_person > 1 else ""
        more = f"spend more ε, {fewer}or ask the owner to declare choices for {open_keys}"
        notes.append(
            f"{SOME_GROUPS[0]} {chosen.threshold:,} {_counted(plan)} are not shown. To see more, "
            f"{more}: explain says the bar before you pay."
        )
    if plan.bar is not None:
        open_keys, many = ", ".join(plan.open_keys), max(plan.bar)
        notes.append(
            f"{SOME_GROUPS[1]} are in them: about {math.ceil(plan.bar[1]):,} who are in no other"
            + (f", or {math.ceil(plan.bar[many]):,} who are each in {many}" if many > 1 else "")
            + f". To see more, spend more ε, or ask the owner to declare choices for {open_keys}."
        )
    extremes = [m for m in plan.question.measures if m.kind == "quantile" and m.quantile in EXTREMES.values()]
    if extremes:
        notes.append("MIN and MAX are answered as the quantiles 0.001 and 0.999.")
    for number, measure in enumerate(plan.question.measures):
        if measure.kind == "mode":
            used = next(one.name for one in plan.question.aggregates if number in one.parts)
            ahead = math.ceil(float(plan.price.parts[number].error(0.95)))
            notes.append(
                f"{used} is chosen at random among the most common values. With 95% confidence, no other value has "
                f"{number_of(ahead, 'row')} more."
            )
    return (*notes, *_notes_on_shown(plan.question, plan.price.selection is not None or plan.bar is not None))


def _bounded_columns(plan: Plan) -> list[str]:
    """The columns that use only some rows of a person, where all rows count in others because people are scaled down.
    Empty if the bounds hold for the whole answer.
    """
    measures = plan.question.measures
    if plan.clipping is None or not any(measure.is_added for measure in measures):
        return []
    bounded = {
        aggregate.field
        for aggregate in plan.question.aggregates
        if not all(measures[part].is_added for part in aggregate.parts)
    }
    return [output.name for output in plan.question.outputs if bounded.intersection(output.expr.fields())]


def _note_on_loss(loss: Loss) -> str:
    """How many people were scaled down or, if it was measured, how much that took off."""
    covered = "The ± covers the noise, which is promised, and what scaling took off, which is estimated"
    rare = f" {RARE}" if may_miss_rare(loss.clipping) else ""
    if loss.clip.most_lost:
        about, most = (f"{100 * loss.of_all(sure):.2g}%" for sure in (None, 0.95))
        return (
            f"People with more were scaled down, which took off about {about} (95%: at most {most}). {covered}.{rare}"
        )
    number, most = round(loss.limits()), f"{math.ceil(loss.limits(0.95)):,}"
    who = f"About {number_of(number, 'person', 'people')}" if number else "Probably nobody"
    were = "was" if number <= 1 else "were"
    return f"{who} (95%: at most {most}) had more and {were} scaled down. {covered}: as much as it left.{rare}"


def may_miss_rare(clipping: Clipping) -> bool:
    """Whether values are added up: what is lost of a few very large ones cannot be told from noise."""
    return any(one.kind == "sum" and not has_two_values(one) for one in clipping.basis.measures)


def note_on_large_errors(
    table: Any, errors: Mapping[str, str], notes: Sequence[str], grouped: str, *, divides: bool = True
) -> tuple[str, ...]:
    """That errors are larger than the numbers they belong to, and why. Only the released table decides. `errors` names
    the column of each number's error, and `grouped` what a row is: a group, or nothing if there is one row for all.
    What ± ? means is said, too, unless another note gives its reason.
    """
    unknown = _note_on_unknown_errors(table, errors, notes, divides=divides)
    large, named = np.zeros(table.num_rows, dtype=bool), []
    for name, error in errors.items():
        if str(table.column(name).type) not in ("int64", "double"):
            continue
        value, half = (table.column(one).cast("float64", safe=False).to_numpy() for one in (name, error))
        with np.errstate(invalid="ignore"):  # a number without an error says nothing
            own = half > np.abs(value)
        large |= own
        named += [name] if own.any() else []
    if not named:
        return unknown
    place = f"In {large.sum():,} of {number_of(len(large), grouped)} the" if grouped else "The"
    of = f" of {' or '.join(named)}" if len(errors) > 1 else ""
    said = f"{place} error{of} is larger than the number itself"
    if any(note.startswith(TOO_FEW) for note in notes):
        return (f"{said}.", *unknown)
    fewer = "for fewer groups" if grouped else "about more people"
    return (f"{said}: too few people for this ε, or a true value near 0. Ask with more ε, or {fewer}.", *unknown)


def _note_on_unknown_errors(
    table: Any, errors: Mapping[str, str], notes: Sequence[str], *, divides: bool
) -> tuple[str, ...]:
    """What ± ? means next to a number. The columns whose errors a note says are unknown are left out."""
    if any(note.startswith(f"{_NO_ERROR}:") for note in notes):
        return ()
    said = [note.removeprefix(f"{_NO_ERROR} for ").partition(":")[0] for note in notes if note.startswith(_NO_ERROR)]
    known = {name for names in said for name in names.split(", ")}
    unknown = [
        name
        for name, error in errors.items()
        if name not in known
        and str(table.column(name).type) in ("int64", "double")
        and any(
            half is None and value is not None
            for value, half in zip(table.column(name).to_pylist(), table.column(error).to_pylist(), strict=True)
        )
    ]
    found = [name for name in unknown if f"{name}_low" in table.column_names]
    few = any(note.startswith(TOO_FEW) for note in notes)
    other = "a number that divides may be 0" if divides else "that of a number it is made of is not known"
    cause = "with so few people, what is cut off is not known" if few else other
    open_ended = (
        "has no end on one side or on both: it reaches the end of a range that was found, and values may lie anywhere "
        "beyond"
    )
    others = [name for name in unknown if name not in found]
    unbounded = f"its error has no known bound, mostly because {cause}"
    said = [f"The interval of {' or '.join(found)} {open_ended}"] if found else []
    said += [f"± ? of {' or '.join(others)}: {unbounded}"] if others else []
    return tuple(f"{one}. Ask with more ε, or about more people." for one in said)


def notes_on_values(question: Question) -> list[str]:
    """Conditions for which ε is probably spent on nothing: values that a column is not declared to have, which are
    mostly typing errors, and questions about one person. Public tables declare nothing.
    """
    scans = [part for part in parts_of(question.relation) if isinstance(part, Scan) and not part.public]
    return [*_notes_on_choices(question, scans), *_notes_on_ranges(question, scans), *_notes_on_one(question, scans)]


def _notes_on_choices(question: Question, scans: Sequence[Scan]) -> list[str]:
    declared = {field.origin: field for scan in scans for field in scan.fields if field.choices is not None}
    compared = list(dict.fromkeys(one for one in _compared(question) if one[0] in declared))
    wrong = {
        origin: {value for of, value in compared if of == origin}.difference(declared[origin].choices or ())
        for origin in dict.fromkeys(origin for origin, _ in compared)
    }
    named = [(declared[origin], value) for origin, value in compared if value in wrong[origin]]
    notes = [_note_on_value(field, value) for field, value in named[:MOST_NAMED]]
    if more := len(named) - len(notes):
        notes.append(f"The same holds for {number_of(more, 'value')} more.")
    return notes


def _notes_on_ranges(question: Question, scans: Sequence[Scan]) -> list[str]:
    """Columns of whose declared range no value meets the conditions. Rows may have others, so it is not refused."""
    declared = {field.origin: field for scan in scans for field in scan.fields if not field.found}
    ranges = {of: one.between for of, one in declared.items() if one.between and not isinstance(one.between, Found)}
    missed = {
        field.origin: None
        for together in _conditions(question)
        for field in dict.fromkeys(field for condition in together for field in condition.fields())
        if field.origin in ranges and not may_hold(field, ranges[field.origin], together)
    }
    named = {of: f"the declared range of {declared[of].name}, {format_bound(ranges[of])}," for of in missed}
    return [f"No value in {one} meets the condition." for one in named.values()]


def _notes_on_one(question: Question, scans: Sequence[Scan]) -> list[str]:
    """Whether the column that says who owns a row is compared with one value."""
    people = [*(scan.person for scan in scans), *(scan.blocks.person for scan in scans if scan.blocks is not None)]
    named = {field.origin for field in people if field is not None and field.origin is not None}
    asked = any(_names_one(condition, named) for together in _conditions(question) for condition in together)
    return ["This asks about one person: the noise hides the answer by design."] if asked else []


def _names_one(condition: Expr, columns: Collection[Origin]) -> bool:
    match condition:
        case Call(op="eq" | "in", args=(Ref(field=field), Const())) | Call(op="eq", args=(Const(), Ref(field=field))):
            return field.origin in columns
    return False


def _conditions(question: Question) -> Iterator[list[Expr]]:
    """The conditions that must all hold for a row to count: of WHERE, of a FILTER, and of SUM(CASE WHEN … END)."""
    parts = [getattr(part, "condition", None) for part in parts_of(question.relation)]
    for measure in question.measures:
        match measure.value:
            case Call(op="case", args=(condition, _, Const(value=None | 0))):
                parts.append(condition)
        parts.append(measure.where)
    yield from (conjuncts(part) for part in parts if part is not None)


def _note_on_value(field: Field, value: str) -> str:
    short = value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}…"
    said = f"'{''.join(one if one.isprintable() else '?' for one in short)}'"
    if value == field.other:
        return f"{said} is the group of all other values of {field.name}, and not one of them."
    few = map(str, field.choices or ()) if len(field.choices or ()) <= MOST_TO_SUGGEST else ()
    return f"{said} is not among the declared choices of {field.name}. {did_you_mean(value, few)}".strip()


def _compared(question: Question) -> Iterator[tuple[Origin | None, str]]:
    """The columns and texts that are compared in the conditions of a question, in its CASEs and in its FILTERs."""
    conditions = [getattr(part, "condition", None) for part in parts_of(question.relation)]
    conditions += [expr for measure in question.measures for expr in (measure.where, measure.value)]
    for part in (part for expr in conditions if expr is not None for part in walk(expr)):
        match part:
            case Call(op="eq" | "ne" | "in", args=args):
                fields = [arg.field for arg in args if isinstance(arg, Ref)]
                texts = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
                yield from ((fields[0].origin, text) for text in texts if len(fields) == 1)


def _counted(plan: Plan) -> str:
    """What the groups are counted in."""
    unit = plan.price.guarantee.protects
    return "people" if unit is None or unit.most_rows == 1 else "rows"


def _notes_on_parts(plan: Plan) -> list[str]:
    """Which parts of the rows count, and that rows of different units do not meet."""
    relation, unit = plan.question.relation, plan.price.guarantee.protects
    parts, notes = parts_read(relation), []
    if parts is not None:
        notes.append(f"Only rows in {', '.join(parts)} count.")
    scans = [part for part in parts_of(relation) if isinstance(part, Scan) and part.blocks is not None]
    if any(scan.blocks is not None and scan.blocks.late == "drop" for scan in scans):
        notes.append("Rows that came in late count nowhere.")
    alone = parts is not None and len(parts) == 1
    combined = len(scans) > 1 or any(isinstance(part, PerPerson | Windowed) for part in parts_of(relation))
    if unit is not None and unit.column is not None and unit.per is not None and combined and not alone:
        notes.append(f"Rows of one person are joined and combined only inside one {unit.per}.")
    return notes


def _notes_on_shown(question: Question, some_groups: bool) -> list[str]:
    """What the errors of columns and rows that are computed or chosen from released numbers mean."""
    notes, noisy = [], [output for output in question.outputs if question.is_noisy(output)]
    ranked = [output.name for output in noisy if has_rank(output.expr)]
    if ranked:
        notes.append(f"{_NO_ERROR} for {', '.join(ranked)}: noise moves a rank by jumps.")
    extreme = [output.name for output in noisy if has_extreme(output.expr)]
    if extreme:
        notes.append(
            f"{_NO_ERROR} for {', '.join(extreme)}: noise moves the largest and smallest of many numbers to one side."
        )
    if question.distinct:
        notes.append(f"{_NO_ERROR}: DISTINCT shows equal rows once, and noise decides which are equal.")
    if question.chosen_by:
        notes.append("Noise has a part in which rows are shown, so each ± is wider: it holds for all groups at once.")
    if question.has_windows and some_groups:
        notes.append("Shares, totals and ranks are of the groups that are shown.")
    return notes


def _reasons_to_leave_out(plan: Plan) -> list[str]:
    """Which declared facts leave rows out: they belong to nobody, or to no group that is listed."""
    question, reasons, person = plan.question, [], plan.question.relation.person
    if person is not None:
        reasons.append(f"{person.name or (person.origin or ('', 'person'))[1]} is NULL")
    written = [question.keys[place] for place in question.key_order] if plan.bar is None else []
    for key in written:
        match key.expr:
            case _ if key.domain is None or not is_strict(key.expr):
                continue
            case Ref(field=field) if field.choices is not None:
                reasons.append(f"{field.name} is not one of its choices")
            case Ref(field=field) if field.between is not None and not field.found:
                reasons.append(f"{field.name} is NULL or outside its range")
            case Expr(type="boolean"):
                reasons.append(f"{key.name} is NULL")
            case Call():
                reasons.append(f"{key.name} is none of the groups shown")
    return reasons


def format_limits(plan: Plan) -> str:
    """The limits on people that were found, each in the unit of its measure."""
    clipping, clip = plan.clipping, plan.clip
    if clipping is None or clip is None:
        return ""
    said, in_squares = [], clip.norm == "L2"
    for kind, name in enumerate(limits_of(clipping)):
        place = clipping.basis.kinds.index(kind)
        measure, size = clipping.basis.measures[place], clip.sizes[place]
        most = float(clip.limit * clip.units[place]) if in_squares else float(size)
        if measure.kind == "sum":
            said.append(f"{_four_digits(most * float(measure.step**measure.power))} to {name}")
        else:
            said.append(f"{_four_digits(most)} {name}" if in_squares else number_of(size, name.removesuffix("s")))
    who = "row" if plan.question.relation.person is None else "person"
    listed = f"{', '.join(said[:-1])}{' and ' if said[1:] else ''}{said[-1]}"
    if in_squares:
        listed = f"{' or '.join(said)} to one group, and to several as much as the squares allow"
    return f"one {who} adds at most {listed}"


def _four_digits(number: float) -> str:
    """A number with four digits that mean something, without an exponent where people can read it."""
    short = float(f"{number:.4g}")
    return f"{short:,.0f}" if 1000 <= abs(short) < 1e15 else f"{short:.4g}"


def limits_of(clipping: Clipping) -> list[str]:
    """What the limits on one person are about."""
    firsts = [clipping.basis.measures[clipping.basis.kinds.index(kind)] for kind in range(len(clipping.limits))]
    nouns = {"count": "rows", "people": "groups"}
    return [nouns.get(measure.kind) or _sum_of(measure) for measure in firsts]


def _sum_of(measure: Measure) -> str:
    assert measure.value is not None
    about = " about the center" * bool(measure.center)
    return f"the sum of {'squares of ' * (measure.power == 2)}{describe(measure.value)}{about}"


def format_bound(found: Any) -> str:
    """A bound that was found, in readable form."""
    return " to ".join(map(str, found)) if isinstance(found, tuple) else str(found)


def number_of(number: int, one: str, many: str | None = None) -> str:
    """A number of things, in words."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
