"""The periods of an account, from one renewal to the next: what each was allowed to spend, and what it spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, SMALLEST_EPSILON, exactly, sqrt_up
from discreet.guarantees.guarantee import (
    Approx,
    GaussianTradeoff,
    Guarantee,
    NoLoss,
    Pure,
    Renyi,
    ZeroConcentrated,
)
from discreet.guarantees.rules.best_of import CLOSED, Basic, BestOf, Rule, Vector
from discreet.guarantees.rules.filters import SHOWN_AT
from discreet.guarantees.unit import Unit
from discreet.ledger import book
from discreet.ledger.store import Execute


@dataclass(frozen=True, kw_only=True)
class Period:
    """What one period of an account may spend (`limit`) and has spent.

    Promise: the answers of the period keep `limit`, however its questions were chosen. They keep `spent` if the
    questions did not depend on earlier answers, and with `adaptive` in any case.
    """

    limit: Guarantee
    spent: Guarantee
    adaptive: bool


def periods_of(execute: Execute, analyst: str, protects: Unit, last: int | None = None) -> tuple[Period, ...]:
    """The periods of an account, oldest first, up to now or to an entry."""
    found, at = [], book.head(execute).number if last is None else last
    while True:
        terms = book.terms(execute, analyst, at)
        if terms is None:
            raise book.damage_error("an account has no entry with its limit")
        found.append(_period(terms.rule, book.spent_at(execute, analyst, at), protects))
        while terms.kind not in ("renewal", "opening", "account"):
            terms = book.terms(execute, analyst, terms.number - 1)
            if terms is None:
                raise book.damage_error("an account has no entry with its limit")
        if terms.kind != "renewal":
            return tuple(reversed(found))
        at = terms.number - 1


def _period(rule: Rule, vector: Vector, protects: Unit) -> Period:
    spent, adaptive = spent_of(rule, vector)
    return Period(limit=rule.limit.stated_for(protects), spent=spent.stated_for(protects), adaptive=adaptive)


def spent_of(rule: Rule, vector: Vector) -> tuple[Guarantee, bool]:
    """What a total means as a guarantee, and whether it holds for questions that depend on earlier answers."""
    if not any(vector):
        return NoLoss(), True
    delta, cost = (Fraction(units, LEDGER_UNIT) for units in vector[:2])
    if isinstance(rule, Basic | BestOf):
        total = rule.total(vector)
        if vector[1] < CLOSED and (isinstance(rule, Basic) or cost <= exactly(total.epsilon)):
            return _approx(cost, delta), True  # sums of ε and δ hold at any time: Rogers-Roth-Ullman-Vadhan 2016
        return total, False
    limit = rule.limit
    if not delta and not isinstance(limit, Approx):
        return _like(limit, cost), False
    return rule.total(vector), False


def _like(limit: Guarantee, cost: Fraction) -> Guarantee:
    match limit:
        case ZeroConcentrated():
            return ZeroConcentrated(rho=cost)
        case GaussianTradeoff():
            return GaussianTradeoff(mu=sqrt_up(cost))
        case Renyi():
            return Renyi(order=limit.order, epsilon=max(cost, SMALLEST_EPSILON))
    raise InvalidArgument(f"A limit of {limit} has no total of its own kind.", code="wrong-type")


def _approx(epsilon: Fraction, delta: Fraction) -> Guarantee:
    if not delta:
        return Pure(epsilon=max(epsilon, SMALLEST_EPSILON))
    return Approx(epsilon=max(epsilon, SMALLEST_EPSILON), delta=delta)


def over_all(guarantees: Sequence[Guarantee], protects: Unit) -> Guarantee:
    """What several periods promise together to somebody who was in the data of all: their ε and δ add up.

    Guarantees of one kind add in their own kind. Others are converted to (ε,δ) first.
    """
    parts = [one for one in guarantees if not isinstance(one, NoLoss)]
    if len(parts) < 2:
        return parts[0] if parts else NoLoss(protects=protects)
    return _added(parts).stated_for(protects)


def _added(parts: Sequence[Guarantee]) -> Guarantee:
    if all(isinstance(one, ZeroConcentrated) for one in parts):
        return ZeroConcentrated(rho=sum(exactly(one.rho) for one in parts if isinstance(one, ZeroConcentrated)))
    if all(isinstance(one, GaussianTradeoff) for one in parts):
        squares = (exactly(one.mu) ** 2 for one in parts if isinstance(one, GaussianTradeoff))
        return GaussianTradeoff(mu=sqrt_up(sum(squares, Fraction(0))))
    curves = [one for one in parts if isinstance(one, Renyi)]
    if len(curves) == len(parts) and len({exactly(one.order) for one in curves}) == 1:
        return Renyi(order=curves[0].order, epsilon=sum(exactly(one.epsilon) for one in curves))
    stated = [one if isinstance(one, Approx) else _converted(one) for one in parts]
    epsilons, deltas = ([exactly(getattr(one, name)) for one in stated] for name in ("epsilon", "delta"))
    return _approx(sum(epsilons, Fraction(0)), sum(deltas, Fraction(0)))


def _converted(guarantee: Guarantee) -> Approx:
    return Approx(epsilon=Fraction(guarantee.epsilon_at(delta=SHOWN_AT)), delta=SHOWN_AT)
