"""The state of accounts: the rule and the total of each, the effect of a charge, and what still fits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.rules.best_of import Rule, Vector
from discreet.ledger import book
from discreet.ledger.book import WHOLE, EntryRow, Head
from discreet.ledger.record import read_guarantee
from discreet.ledger.store import Execute


@lru_cache(maxsize=4096)
def _cost(guarantee: str, terms: str) -> Vector:
    # by text: numbers that are equal in Python, such as 0.1 and Fraction(0.1), may mean different decimals
    return book.rule_in(terms).coordinates(read_guarantee(guarantee))


class Account(NamedTuple):
    """The state of an account: the content of the entry that set its rule, and what was spent."""

    terms: str
    spent: Vector

    @property
    def rule(self) -> Rule:
        """The current rule."""
        return book.rule_in(self.terms)

    def checked(self) -> Account:
        """This account, after checking that its total has the coordinates that the rule counts."""
        if len(self.spent) != len(self.rule.labels):
            raise book.damage_error("what was spent does not follow from its rule", code="ledger-totals-wrong")
        return self

    def cost(self, guarantee: str) -> Vector:
        """The cost of a recorded guarantee under this rule."""
        return _cost(guarantee, self.terms)


Standing = dict[str, Account]
"""Each account that a charge touches: the data set's, and the analyst's own."""


def terms_of(execute: Execute, analyst: str, at: int | None = None) -> dict[str, EntryRow]:
    """The entries that set the current rules, now or at an entry, for each account that a charge affects."""
    limit = () if at is None else (at,)
    found = {name: book.terms(execute, name, *limit) for name in dict.fromkeys((WHOLE, analyst))}
    known = {name: row for name, row in found.items() if row is not None}
    if at is None and len(known) < len(found):
        raise book.damage_error("an account has no entry with its limit")
    return known


def standing(execute: Execute, analyst: str, at: Head) -> Standing:
    """Each account that a charge affects: its rule, and what was spent."""
    terms, spent = terms_of(execute, analyst), book.total_spent(execute, at, WHOLE, analyst)
    return {name: Account(row.content, spent[name]).checked() for name, row in terms.items()}


def totals_with(accounts: Standing, costs: dict[str, Vector]) -> tuple[dict[str, Vector], list[str]]:
    """The total of each account with these costs added, and the accounts that would refuse."""
    totals, refused = {}, []
    for name, account in accounts.items():
        rule = account.rule
        totals[name] = total = rule.add(account.spent, costs[name])
        if not rule.fits(total):
            refused.append(name)
    return totals, refused


def largest(accounts: Standing, like: Guarantee | None = None) -> Guarantee | None:
    """The largest release that every account would accept."""
    left = [account.rule.largest(account.spent, like or natural(account.rule)) for account in accounts.values()]
    known = [one for one in left if one is not None]
    return min(known, key=size_of) if len(known) == len(left) else None


def natural(rule: Rule) -> Guarantee:
    """The kind of release that matches a limit: pure releases for a limit in ε."""
    return Pure(epsilon=1) if isinstance(rule.limit, Approx) else rule.limit


def size_of(guarantee: Guarantee) -> Any:
    """The ε, ρ or μ of a guarantee, exactly."""
    return next(exactly(getattr(guarantee, name)) for name in ("epsilon", "rho", "mu") if hasattr(guarantee, name))
