"""The answer to a question that earlier answers imply, or of which only a part had to be paid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.guarantees.guarantee import NoLoss
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.rows.key_columns import KeyColumns
from discreet.sql.estimates.deciding import Decided
from discreet.sql.estimates.shown import Estimated
from discreet.sql.plan import Plan
from discreet.sql.running.answer import Answer, receipts_text
from discreet.sql.running.intervals import Columns
from discreet.sql.running.notes import notes_on, number_of


def free_release(decided: Decided, ledger: Ledger) -> Release:
    """A release of nothing new. Its guarantee is what the earlier answers cost when they were bought."""
    left = ledger.remaining
    guarantee = decided.guarantee
    return Release(value=None, guarantee=guarantee, not_private=decided.not_private, _left=lambda: left)


def derived_answer(plan: Plan, decided: Decided, release: Release, order: Any, keys: KeyColumns) -> Answer:
    """The answer from earlier numbers, and from what was measured now if something was missing."""
    noisy, errors, places = [], [], np.asarray(order)
    for place, estimate in enumerate(decided.estimates):
        exact = estimate.values(decided.new(place, release.value))
        whole = np.round(exact, 6) if estimate.is_whole else np.rint(exact)
        moved = np.zeros(len(exact)) if estimate.is_whole else np.round(np.abs(whole - exact) + 1e-9, 9)
        noisy.append(whole[places])
        errors.append(estimate.shown(moved, place).in_order(places))
    price = plan.price if decided.price is None else decided.price
    columns = Columns(plan.question, price, noisy, keys, estimated=Estimated(errors))
    cost = NoLoss() if decided.price is None else decided.price.cost
    release = replace(release, not_private=release.not_private or decided.not_private)
    notes = (*_own_notes(plan, decided), *notes_on(plan))
    return Answer(plan.question, columns, release, notes=notes, cost=cost, derived_from=decided.receipts)


def _own_notes(plan: Plan, decided: Decided) -> list[str]:
    named = receipts_text(decided.receipts)
    if decided.price is None:
        said = f"Answered from {named}, within the error that was asked for. Nothing was charged."
    else:
        paid = f"{decided.price.cost} was charged for what was missing, instead of {plan.price.cost}"
        said = f"Combined with {named}: {paid}."
    return [said, *_notes_on_people(plan)]


def _notes_on_people(plan: Plan) -> list[str]:
    """An earlier answer about more rows has left out more of a person who has many."""
    if plan.enforced is None:
        return []
    rows = number_of(plan.enforced.rows, "row")
    return [f"Each earlier answer used at most {rows} of one person, of all that it counted; that is not in the ±."]
