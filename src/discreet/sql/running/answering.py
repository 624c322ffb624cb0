"""From a plan to an answer: charged, read, drawn, stored and shown. Or served from stored numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.door import again, through
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.texts.request import name_anytime
from discreet.releases import Release
from discreet.rows.key_columns import KeyColumns, places_of
from discreet.sql.estimates.around import Around, groups_around
from discreet.sql.estimates.cells import LinearQuestion, linear_question
from discreet.sql.estimates.deciding import Decided, decide
from discreet.sql.estimates.written import write_linear
from discreet.sql.measuring.clipped import Pairs, holding, read_clipped, unclipped
from discreet.sql.measuring.measure import read_measures, read_undeclared
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.clipping import has_one_sign
from discreet.sql.pricing.price import Price
from discreet.sql.question import Question
from discreet.sql.running.answer import Answer
from discreet.sql.running.derived import derived_answer, free_release
from discreet.sql.running.intervals import Columns
from discreet.sql.running.levels import (
    LeveledLoss,
    LeveledRows,
    at_all_levels,
    clipped_at_all_levels,
    known_totals,
    leveled_noises,
)
from discreet.sql.running.loss import Loss
from discreet.sql.running.notes import notes_on, notes_on_groups_around
from discreet.sql.running.stored import Mark, chosen_numbers, find_reusable, mark_of
from discreet.sql.settling import settle


@dataclass(frozen=True, eq=False)
class Bought:
    """What an account has bought before of a question: this very answer, if it is `known`, stored numbers that answer
    it, or others from which it is `derived`. `mark` is what the ledger's record says of it, and `linear` the same as
    sums over cells.
    """

    known: bool
    mark: Mark | None = None
    linear: LinearQuestion | None = None
    stored: Any = None
    derived: Decided | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing is left to pay."""
        return self.known or self.stored is not None or (self.derived is not None and self.derived.price is None)


def answer_plan(planner: Planner, plan: Plan, *, key: str | None = None, derives: bool = True) -> Answer:
    """Charge, read, draw, store and return. What was measured before, at least as accurately, is free. With `derives`,
    so is what earlier answers imply, where the policy says so, and of all else only what is missing is paid.
    """
    with holding(planner.engine) as pairs:
        plan = settle(planner, plan, pairs=pairs, key=key)
        if plan.nothing is not None:
            return _empty(plan, plan.nothing)
        price, release, decided, is_wide = _measure(planner, plan, pairs, key, derives=derives)
    if decided is not None:
        assert plan.groups is not None  # of an estimate, the groups are declared
        [order], keys = as_written(plan.question, [np.arange(plan.groups.count)], plan.groups.keys())
        return derived_answer(plan, decided, release, order, keys)
    plan, release = replace(plan, price=price), replace(release, found=plan.found)
    keys, noisy = release.value if plan.groups is None else (plan.groups.keys(), release.value)
    if plan.question.levels:
        return _at_levels(plan, release, keys)
    if plan.clipping is None or plan.clip is None:
        columns = Columns(plan.question, price, *as_written(plan.question, noisy, keys))
        notes = notes_on(plan) if not is_wide else (*notes_on(plan), *notes_on_groups_around(plan))
        return Answer(plan.question, columns, release, notes=notes, cost=plan.cost)
    measures, (*cells, above) = unclipped(plan.question, plan.clipping, plan.clip, noisy)
    written, keys = as_written(plan.question, [*measures, *cells], keys)
    noise = plan.clipping.noise(plan.clip)
    loss = Loss(plan.clipping, plan.clip, noise, written[len(measures) :], above)
    columns = Columns(plan.question, price, written[: len(measures)], keys, loss)
    return Answer(plan.question, columns, release, notes=notes_on(plan, loss), cost=plan.cost)


def _at_levels(plan: Plan, release: Release, cells: Sequence[tuple[Any, ...]]) -> Answer:
    """The answer with several levels: the best estimates from the noisy sums of all of them."""
    question, noisy, loss = plan.question, release.value, None
    [order], _ = as_written(question, [np.arange(len(cells))], cells)
    shown = LeveledRows(question, cells, order)
    made: list[Sequence[tuple[int, float]]] = [[(n, 1.0)] for n in range(len(question.measures))]
    if plan.clipping is None or plan.clip is None:
        many = len(shown.levels.keys)
        numbers = [noisy[first : first + many] for first in range(0, len(noisy), many)]
    else:
        by_level, last = list(noisy), plan.clipping.level_of_loss
        by_level[last], above = noisy[last][:-1], noisy[last][-1]
        numbers = list(zip(*by_level, strict=True))
        parts, units = plan.clipping.basis.made_of, plan.clip.units
        made = [[(place, float(factor * units[place])) for place, factor in parts[n]] for n in range(len(made))]
    for n, number in enumerate(numbers):
        shown.estimate(number, leveled_noises(plan, n))
    measures, known = [], [known_totals(question, shown, measure) for measure in question.measures]
    for own, total, measure in zip(made, known, question.measures, strict=True):
        measures.append(shown.measure(own, total, positive=plan.positive and has_one_sign(measure)))
    if plan.clipping is not None and plan.clip is not None:
        estimates = [np.asarray(one.base, np.float64) + one.rest for one in shown.numbers]
        noise = plan.clipping.noise(plan.clip)
        loss = LeveledLoss(plan.clipping, plan.clip, noise, estimates, np.asarray(above, np.float64), shown)
    columns = Columns(question, plan.price, measures, shown.keys, loss, shown)
    given = ["Given the totals that the policy declares: they are exact and cost nothing."] if any(known) else []
    return Answer(question, columns, release, notes=(*notes_on(plan, loss), *given), cost=plan.cost)


def _empty(plan: Plan, release: Release) -> Answer:
    """The answer if no group has enough people."""
    columns = Columns.without_groups(plan.question, plan.price)
    return Answer(plan.question, columns, release, notes=notes_on(plan), cost=plan.cost)


def owed(planner: Planner, plan: Plan, key: str | None, *, derives: bool = True) -> list[Guarantee]:
    """What the answer to a plan would charge at most, release by release: what was found before is not found again."""
    if plan.automatic:
        return [*planner.unpaid(plan.automatic, key), plan.price.guarantee]
    return unpaid(planner, plan, key, derives=derives)


def unpaid(planner: Planner, plan: Plan, key: str | None, *, derives: bool = True) -> list[Guarantee]:
    """What is still to be paid for the answer to a plan. Nothing if it was answered before, or if earlier answers imply
    it.
    """
    if plan.automatic:
        bounds = planner.unpaid(plan.automatic, key)
        return [*bounds, plan.price.guarantee] if bounds else []
    plan, _, request = _to_measure(planner, plan, key, derives=derives)
    bought = _bought(planner, plan, request, derives=derives)
    if bought.known or bought.stored is not None:
        return []
    if bought.derived is None:
        return [plan.price.guarantee]
    price = bought.derived.price
    if price is None or planner.ledger.knows(
        price.guarantee, mechanism=price.mechanism, **_part_request(planner, plan, bought.derived)
    ):
        return []
    return [price.guarantee]


def fingerprints(planner: Planner, plan: Plan) -> list[str | None]:
    """One name for each release of a plan: what is measured, under which declarations, and what it costs, however it is
    written and whatever the data are by now. None for one that cannot be told from others.
    """
    requests = [planner.request(bound, None) for bound in plan.automatic]
    requests.append(
        {**_request(planner, plan, None), "guarantee": plan.price.guarantee, "mechanism": plan.price.mechanism}
    )
    unit, parts = planner.ledger.protects, planner.ledger._parts
    return [
        name_anytime(one["guarantee"].stated_for(unit), one["identity"], one["mechanism"], parts) for one in requests
    ]


def foreseen(planner: Planner, plan: Plan) -> Decided | None:
    """How earlier answers would be used for a plan. None if they would not be."""
    if plan.automatic:
        return None
    plan, _, request = _to_measure(planner, plan, None, derives=True)
    return _bought(planner, plan, request, derives=True).derived


def _to_measure(
    planner: Planner, plan: Plan, key: str | None, *, derives: bool
) -> tuple[Plan, Around | None, dict[str, Any]]:
    """The plan that is measured, with what the ledger records of it: that of the question, or that of the groups around
    it, unless the question follows from earlier answers already.
    """
    request = _request(planner, plan, key)
    around = groups_around(planner, plan) if derives and planner.answers.wide and key is None else None
    if around is None or not request["identity"].lasting:
        return plan, None, request
    wide, own = around.plan, _request(planner, around.plan, None)
    if not planner.ledger.knows(wide.price.guarantee, mechanism=wide.price.mechanism, **own):
        bought = _bought(planner, plan, request, derives=derives)
        if bought.is_free:
            return plan, None, request
    return wide, around, own


def _request(planner: Planner, plan: Plan, key: str | None) -> dict[str, Any]:
    """What the ledger records of a question."""
    question = plan.question
    identity = planner.identity(
        question.relation,
        ("answer", question.meaning, plan.bounds, *([] if plan.clip is None else [plan.clip])),
        old_text=None if question.reordered else question.same,
        found=list(plan.found),
        bounds=dict(plan.terms.bounds),
    )
    return {"asked": question.same, "key": key, "identity": identity}


def _part_request(planner: Planner, plan: Plan, decided: Decided) -> dict[str, Any]:
    """What the ledger records of what is missing. It is never the same as a question for this price: that one may have
    been answered before, and its numbers would count twice.
    """
    assert decided.part is not None
    question = plan.question
    identity = planner.identity(
        question.relation,
        ("missing", question.meaning, plan.bounds, decided.part.whole, decided.measured),
        bounds=dict(plan.terms.bounds),
    )
    return {"asked": question.same, "key": None, "identity": identity}


def _bought(planner: Planner, plan: Plan, request: dict[str, Any], *, derives: bool) -> Bought:
    """What was bought before of a question."""
    price, ledger, identity = plan.price, planner.ledger, request["identity"]
    known = ledger.knows(price.guarantee, mechanism=price.mechanism, **request)
    # clipped people have one limit for all measures together, and levels one estimate
    divisible = identity.lasting and plan.clipping is None and not plan.question.levels
    if not divisible:
        return Bought(known)
    mark = mark_of(plan, planner.schema, identity)
    linear = linear_question(plan, planner.schema, identity) if planner.answers.derived else None
    bought = Bought(known, mark if linear is None else replace(mark, more=write_linear(linear)), linear)
    if known or request["key"] is not None:
        return bought
    stored = find_reusable(ledger, mark, price)
    if stored is not None or linear is None or not derives:
        return replace(bought, stored=stored)
    return replace(bought, derived=decide(planner, plan, mark, linear))


def _measure(
    planner: Planner, plan: Plan, pairs: Pairs, key: str | None, *, derives: bool
) -> tuple[Price, Release, Decided | None, bool]:
    """The noisy numbers of all groups, and the price at which they were bought: now, or before. And how earlier answers
    are used, if they are: then the numbers are what was missing. Last, whether groups around were measured, too.
    """
    plan, around, request = _to_measure(planner, plan, key, derives=derives)
    price, release, decided = _measure_all(planner, plan, pairs, request, derives=derives)
    if around is not None and decided is None:
        release = replace(release, value=around.chosen(release.value))
    elif around is not None and decided is not None:
        decided = around.chosen_estimates(decided)
    return price, release, decided, around is not None


def _measure_all(
    planner: Planner, plan: Plan, pairs: Pairs, request: dict[str, Any], *, derives: bool
) -> tuple[Price, Release, Decided | None]:
    """The same for all groups of the plan that is measured."""
    price, ledger = plan.price, planner.ledger
    bought = _bought(planner, plan, request, derives=derives)
    mark, decided = bought.mark, bought.derived
    if bought.stored is not None:
        entry, own, places = bought.stored
        release = again(entry, own.mechanism, ledger=ledger)
        return own, replace(release, value=chosen_numbers(release.value, plan, places)), None
    if decided is not None and decided.price is None:
        return price, free_release(decided, ledger), decided
    if decided is not None and decided.now is not None:
        own_mark = mark_of(decided.now, planner.schema, request["identity"])
        measured = replace(decided.question, measures=tuple(decided.question.measures[n] for n in decided.measured))
        mark = replace(own_mark, more=write_linear(measured, decided.part))
        request = _part_request(planner, plan, decided)
        plan, price = decided.now, decided.now.price
    marked = "" if mark is None else str(mark)

    def read() -> Any:
        return _read_measures(planner, plan, pairs)

    release = through(read, price.mechanism, price.guarantee, ledger=ledger, mark=marked, **request)
    return price, release, decided


def _read_measures(planner: Planner, plan: Plan, pairs: Pairs) -> Any:
    """The exact measures. Only this function reads data for a question."""
    if plan.clipping is not None:
        assert plan.clip is not None
        assert plan.groups is not None  # of clipped people, the groups are chosen before
        sums = read_clipped(pairs, plan.question, plan.clipping, plan.clip, plan.groups)
        if plan.question.levels:
            return clipped_at_all_levels(plan.question, plan.groups.keys(), sums, plan.clipping.level_of_loss)
        others = [measure for measure in plan.question.measures if not measure.is_added]
        rest = replace(plan.question, measures=tuple(others), aggregates=())
        return sums, *(read_measures(rest, planner.engine, plan.enforced, plan.groups) if others else ())
    if plan.groups is None:
        known = getattr(plan.price.mechanism, "known", None) or ()
        return read_undeclared(plan.question, planner.engine, plan.enforced, known)
    found = read_measures(plan.question, planner.engine, plan.enforced, plan.groups)
    return at_all_levels(plan.question, plan.groups.keys(), found) if plan.question.levels else tuple(found)


def as_written(
    question: Question, noisy: Sequence[Any], keys: Sequence[tuple[Any, ...]]
) -> tuple[list[Any], KeyColumns]:
    """The numbers and keys of all groups, with the keys in the order in which they were written."""
    known = KeyColumns.of(keys, [key.expr.type for key in question.keys])
    if question.key_order == tuple(range(len(question.keys))):
        return list(noisy), known
    if all(key.domain is not None for key in question.keys):
        ranks = [
            places_of(column, pa.array(key.domain, column.type))
            for key, column in zip(question.keys, known.columns, strict=True)
        ]
        order = np.lexsort([ranks[number] for number in question.key_order[::-1]])
    else:
        order = known.written(question.key_order).order()
    return [np.asarray(values)[order] for values in noisy], known.take(order)
