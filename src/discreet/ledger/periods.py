"""The periods of an account, from one renewal to the next: what each was allowed to spend, and what it spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from types import MappingProxyType

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
from discreet.guarantees.rules.once import Once
from discreet.guarantees.unit import Unit
from discreet.ledger import accounts, book, heads
from discreet.ledger.accounts import Account, Standing
from discreet.ledger.book import EntryRow
from discreet.ledger.parts import FindOwns, named_in, worst
from discreet.ledger.stores.store import Execute


@dataclass(frozen=True, kw_only=True)
class Period:
    """What one period of an account may spend (`limit`) and has spent.

    Promise: the answers of the period keep `limit`, however its questions were chosen. They keep `spent` if the
    questions did not depend on earlier answers, and with `adaptive` in any case.
    """

    limit: Guarantee
    spent: Guarantee
    adaptive: bool


@dataclass(frozen=True, kw_only=True)
class PartBudget:
    """What was spent of one part of the data in this period, and what still fits there.

    Promise: all answers of the period keep `spent` for units whose data are in this part, if their questions did not
    depend on earlier answers. However they were chosen, they keep the limit.
    """

    spent: Guarantee
    remaining: Guarantee | None


def budgets_of(
    analyst: str, protects: Unit, within: Sequence[str], standing: Standing, find: FindOwns
) -> Mapping[str, PartBudget]:
    """The budget of each part of an account that was charged alone, in the order of their names."""
    found, known = {}, dict[frozenset[tuple[str, Account]], PartBudget]()
    for part in sorted(find(analyst, None)):
        if within and part not in within:
            continue
        seen = accounts.seen_by(standing, (part,), protects, find)
        state = frozenset(seen.items())
        if state not in known:
            spent, _ = spent_of(seen[analyst].rule, seen[analyst].spent)
            known[state] = PartBudget(spent=spent.stated_for(protects), remaining=accounts.largest(seen))
        found[part] = known[state]
    return MappingProxyType(found)


def periods_of(
    execute: Execute, analyst: str, protects: Unit, last: int | None = None, parts: Sequence[str] = ()
) -> tuple[Period, ...]:
    """The periods of an account, oldest first, up to now or to an entry: those of the unit that lost most, in any part
    or in one of those that are named.

    A part that was renewed alone has had more periods than others. The last of all parts end now.
    """
    at = book.head(execute).number if last is None else last
    terms, found = book.all_terms(execute, analyst, at), list[Period]()
    if not terms:
        raise book.damage_error("an account has no entry with its limit")
    begins = [n for n, row in enumerate(terms) if row.kind != "limit" and row.kind != "adoption" and not _parts_of(row)]
    for first, end in pairwise([*begins, len(terms)]):
        stop = at if end == len(terms) else terms[end].number - 1
        inside = terms[first:end]
        found += _rounds(execute, analyst, protects, [row for row in inside if _parts_of(row)], parts)
        rule = inside[-1].rule
        account = accounts.account_in(book.row_at(execute, analyst, stop), analyst, inside[-1].content)
        if parts:
            find = partial(heads.find_at, execute, {analyst: account}, stop)
            account = accounts.seen_by({analyst: account}, parts, protects, find)[analyst]
        if not found and end < len(terms) and not any(account.spent):
            continue  # its limit was replaced before the first charge
        found.append(_period(rule, account.spent, protects))
    return tuple(found)


def _parts_of(row: EntryRow) -> tuple[str, ...]:
    return named_in(book.vectors(row.costs))


def _rounds(
    execute: Execute, analyst: str, protects: Unit, renewals: Sequence[EntryRow], wanted: Sequence[str]
) -> list[Period]:
    """The periods that ended because parts were renewed alone, for the unit that had most of them: the last one of all
    parts, the one before it, and so on. Who may move from one part to another may have had those of both.
    """
    replaced = protects.neighbors == "replace"
    ended: dict[str, list[tuple[EntryRow, Vector]]] = {}
    for row in renewals:
        for part in _parts_of(row):
            if replaced or not wanted or part in wanted:
                ended.setdefault(part, []).append((row, heads.lost_before(execute, row, analyst, part)))
    found = []
    for back in range(max(map(len, ended.values()), default=0), 0, -1):
        one = [periods[-back] for periods in ended.values() if len(periods) >= back]
        newest = max((row for row, _ in one), key=lambda row: row.number)
        found += [_period(newest.rule, worst(lost for _, lost in one), protects)] * (2 if replaced else 1)
    return found


def _period(rule: Rule, vector: Vector, protects: Unit) -> Period:
    spent, adaptive = spent_of(rule, vector)
    return Period(limit=rule.limit.stated_for(protects), spent=spent.stated_for(protects), adaptive=adaptive)


def spent_of(rule: Rule, vector: Vector) -> tuple[Guarantee, bool]:
    """What a total means as a guarantee, and whether it holds for questions that depend on earlier answers."""
    if not any(vector):
        return NoLoss(), True
    if isinstance(rule, Once):
        return rule.limit, True
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
