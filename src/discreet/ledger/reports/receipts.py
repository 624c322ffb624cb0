"""Receipts of a publication: the rule under which each was charged, and what all of them cost together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.rules.best_of import Rule, Vector
from discreet.guarantees.rules.coordinates import stated_delta, stated_epsilon, stated_rho
from discreet.ledger import book
from discreet.ledger.book import WHOLE
from discreet.ledger.entry import Entry
from discreet.ledger.ledger import Ledger
from discreet.ledger.periods import over_all, periods_of, spent_of
from discreet.ledger.texts.record import to_text
from discreet.mechanisms.protocol import tidy


def rule_at(ledger: Ledger, number: int) -> Rule:
    """The rule of the data set at an entry."""
    with ledger._store.transaction(write=False) as execute:
        terms = book.terms(execute, WHOLE, number)
    if terms is None:
        raise book.damage_error("an account has no entry with its limit")
    return terms.rule


def cost_together(ledger: Ledger, entries: Sequence[Entry]) -> Guarantee:
    """What several charges cost together. Those under one rule are added by it, and the rest as periods are.

    Promise: the answers keep it if the questions did not depend on earlier answers, as those of a plan.
    """
    sums: dict[str, tuple[Rule, Vector]] = {}
    for entry in entries:
        rule = rule_at(ledger, entry.number)
        name = to_text(rule)
        before = sums[name][1] if name in sums else rule.nothing
        sums[name] = rule, rule.add(before, entry.cost)
    unit = ledger.protects
    total = over_all([spent_of(rule, vector)[0].stated_for(unit) for rule, vector in sums.values()], unit)
    return _tighter(total, entries)


def _tighter(total: Guarantee, entries: Sequence[Entry]) -> Guarantee:
    """The total, or less at the same δ: the sum of all stated ε, and one ε for the sum of all ρ."""
    if not isinstance(total, Approx) or not exactly(total.delta):
        return total
    epsilon, delta, rho = Fraction(0), exactly(total.delta), Fraction(0)
    for entry in entries:
        own, cost = stated_epsilon(entry.guarantee), stated_rho(entry.guarantee)
        if own is not None:
            epsilon, delta = epsilon + own, delta - stated_delta(entry.guarantee)
        elif cost is not None and not stated_delta(entry.guarantee):
            rho += cost
        else:
            return total
    if delta <= 0:
        return total
    if rho:
        epsilon += Fraction(ZeroConcentrated(rho=rho).epsilon_at(delta=delta))
    return replace(total, epsilon=tidy(epsilon)) if epsilon < exactly(total.epsilon) else total


def spent_until(ledger: Ledger, number: int) -> tuple[Guarantee, Guarantee]:
    """What the data set has spent up to an entry, over all periods, and what it was allowed to spend."""
    with ledger._store.transaction(write=False) as execute:
        periods = periods_of(execute, WHOLE, ledger.protects, number)
    unit = ledger.protects
    return over_all([one.spent for one in periods], unit), over_all([one.limit for one in periods], unit)


def name_of(ledger: Ledger) -> str:
    """The random name that the ledger got when it was created."""
    return ledger._terms.ledger


def digest_of(ledger: Ledger, entry: Entry) -> str | None:
    """The digest of the stored answer of an entry. None if it has none."""
    found = book.with_answer(ledger._store.look(book.numbered(entry.number))[0])
    return None if found is None or found[1] is None else str(found[1].digest)
