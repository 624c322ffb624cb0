"""How a budget was used over time: what an account had left after some of its entries, for pictures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from discreet.exact.rational import LEDGER_UNIT, exactly
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.best_of import Vector
from discreet.ledger import book
from discreet.ledger.accounts import size_of
from discreet.ledger.book import WHOLE
from discreet.ledger.ledger import Ledger
from discreet.ledger.periods import over_all, periods_of
from discreet.ledger.stores.store import Execute
from discreet.ledger.texts.record import read_guarantee

MOST = 200
"""So many points of a course are enough for a picture."""
_AT = Fraction(1, 10**9)


class Moment(NamedTuple):
    """An entry, and the time at which it is shown, in seconds."""

    number: int
    at: float


class Stage(NamedTuple):
    """What was left of a limit after an entry."""

    number: int
    at: float
    left: Fraction
    limit: Fraction


class Charge(NamedTuple):
    """A charge in a few words: whose it is, and what it cost."""

    number: int
    at: float
    analyst: str
    guarantee: Guarantee

    @property
    def epsilon(self) -> Fraction:
        """The largest loss of the charge, or where no loss is the largest, the ε at a δ slightly above its own."""
        largest = self.guarantee.largest_loss
        if largest is not None:
            return largest
        return Fraction(self.guarantee.epsilon_at(delta=_AT + exactly(self.guarantee.infinite)))


def course_of(ledger: Ledger, moments: Iterable[Moment], last: int) -> list[Stage]:
    """What an account had left of its own limit after each of these entries, and after each change of its limit, up to
    entry `last`, oldest first. Times never go back.
    """
    analyst = ledger.analyst or WHOLE
    stages: list[Stage] = []
    with ledger._store.transaction(write=False) as execute:
        terms = _terms(execute, analyst, last)
        if not terms:
            return []
        known = {number: at for number, at in moments if terms[0].number < number <= last}
        known |= {row.number: row.microseconds / 1e6 for row in terms}
        for number in sorted(known):
            content = next(row for row in reversed(terms) if row.number <= number).content
            limit = size_of(book.rule_in(content).limit)
            spent = _size(content, book.spent_at(execute, analyst, number))
            at = max(known[number], stages[-1].at if stages else 0.0)
            stages.append(Stage(number, at, max(Fraction(0), limit - spent), limit))
    return stages


def stage_at(ledger: Ledger, last: int) -> Stage | None:
    """What an account had left of its own limit after an entry. None if it was opened later."""
    analyst = ledger.analyst or WHOLE
    with ledger._store.transaction(write=False) as execute:
        terms = book.terms(execute, analyst, last)
        if terms is None:
            return None
        spent = _size(terms.content, book.spent_at(execute, analyst, last))
    limit = size_of(terms.rule.limit)
    return Stage(last, terms.microseconds / 1e6, max(Fraction(0), limit - spent), limit)


def lifetime_of(ledger: Ledger, last: int) -> tuple[Guarantee, Guarantee]:
    """What all periods of an account up to an entry may cost together, and what they did."""
    with ledger._store.transaction(write=False) as execute:
        periods = periods_of(execute, ledger.analyst or WHOLE, ledger.protects, last)
    limit, spent = ([getattr(one, name) for one in periods] for name in ("limit", "spent"))
    return over_all(limit, ledger.protects), over_all(spent, ledger.protects)


def _terms(execute: Execute, analyst: str, last: int) -> list[book.EntryRow]:
    """The entries that set the limit of an account, oldest first."""
    return book.all_terms(execute, analyst, last)[-MOST:]


@lru_cache(maxsize=8192)
def _size(terms: str, spent: Vector) -> Fraction:
    """What all answers together amount to, in the unit of the limit that these terms set."""
    rule = book.rule_in(terms)
    if not any(spent):
        return Fraction(0)
    if isinstance(rule.limit, Approx):
        return Fraction(min(exactly(rule.total(spent).epsilon), size_of(rule.limit)))
    return Fraction(spent[1], LEDGER_UNIT)


def sample(first: int, last: int, most: int = MOST) -> list[int]:
    """Whole numbers from `first` to `last`, both included, at most so many of them. As `last` grows, most stay the
    same, so that what is known about them can be used again.
    """
    if last < first:
        return []
    step = 1
    while (last - first) // step > most - 2:
        step *= 2
    return [*range(first, last, step), last]


def moments_of(ledger: Ledger, last: int, most: int = MOST) -> list[Moment]:
    """The entries of the whole ledger up to `last`, or some of them, with the times at which they were written."""
    numbers = sample(1, last, most)
    if not numbers:
        return []
    with ledger._store.transaction(write=False) as execute:
        found = execute(
            f"SELECT number, microseconds FROM entries WHERE number IN ({_listed(numbers)}) ORDER BY number"
        )
    return [Moment(number, at / 1e6) for number, at in found]


def charges_in(ledger: Ledger, numbers: Sequence[int]) -> dict[int, Charge]:
    """The charges with these numbers, whoever made them."""
    if not numbers:
        return {}
    with ledger._store.transaction(write=False) as execute:
        found = execute(
            "SELECT number, microseconds, analyst, content FROM entries "
            f"WHERE kind = 'charge' AND number IN ({_listed(numbers)})"
        )
    return {number: Charge(number, at / 1e6, who, read_guarantee(content)) for number, at, who, content in found}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)
