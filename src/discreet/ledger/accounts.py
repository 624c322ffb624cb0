"""The state of accounts: the rule and the total of each, the effect of a charge, and what still fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.rules.best_of import CLOSED, Rule, Vector
from discreet.guarantees.unit import Unit
from discreet.ledger import book, parts
from discreet.ledger.book import WHOLE, EntryRow, Head
from discreet.ledger.parts import Divided, FindOwns, Own
from discreet.ledger.stores.store import Execute
from discreet.ledger.texts.record import read_guarantee


@lru_cache(maxsize=4096)
def _cost(guarantee: str, terms: str) -> Vector:
    # by text: numbers that are equal in Python, such as 0.1 and Fraction(0.1), may mean different decimals
    return book.rule_in(terms).coordinates(read_guarantee(guarantee))


class Account(NamedTuple):
    """The state of an account: the content of the entry that set its rule, and what was spent.

    If parts were charged, `spent` is what the unit has lost that lost most: the largest of each coordinate. `each` are
    the totals of single units, where these tell more, each with how often it would pay for the next charge.
    """

    terms: str
    spent: Vector
    divided: Divided | None = None
    each: frozenset[tuple[Vector, int]] = frozenset()

    @property
    def rule(self) -> Rule:
        """The current rule."""
        return book.rule_in(self.terms)

    @property
    def base(self) -> Vector:
        """What the charges on everything have cost."""
        return self.spent if self.divided is None else self.divided.base

    def checked(self) -> Account:
        """This account, after checking that its total has the coordinates that the rule counts."""
        if not len(self.spent) == len(self.base) == len(self.rule.labels):
            raise book.damage_error("what was spent does not follow from its rule", code="ledger-totals-wrong")
        return self

    def cost(self, guarantee: str) -> Vector:
        """The cost of a recorded guarantee under this rule."""
        return _cost(guarantee, self.terms)

    def coordinates(self) -> dict[str, float]:
        """What was spent, by the names of the coordinates. Infinite if one no longer counts."""
        each = zip(self.rule.labels, self.spent, strict=True)
        return {label: math.inf if units >= CLOSED else units / LEDGER_UNIT for label, units in each}

    def written(self, name: str) -> dict[str, Vector]:
        """What the totals of an entry hold for this account."""
        return {name: self.spent} | ({} if self.divided is None else {parts.key_of(name): self.divided.written()})


def account_in(row: EntryRow, name: str, terms: str) -> Account:
    """The state of an account after an entry."""
    return Account(terms, row.spent(name), parts.divided_in(book.vectors(row.totals), name)).checked()


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
    terms, last = terms_of(execute, analyst), book.last_rows(execute, at, WHOLE, analyst)
    return {name: account_in(last[name], name, row.content) for name, row in terms.items()}


class Charged(NamedTuple):
    """An account after a charge, what the charged parts have lost alone then, and whether that fits."""

    account: Account
    owns: dict[str, Own]
    fits: bool


def charge_one(
    name: str,
    account: Account,
    cost: Vector,
    charged: Sequence[str],
    protects: Unit,
    find: FindOwns,
    division: int = 0,
) -> Charged:
    """An account after a charge on everything, or on some parts alone, of a division into parts.

    Promise: it fits only if what each unit has lost fits, in whichever part its data are.
    """
    rule = account.rule
    if not charged:
        spent = rule.add(account.spent, cost)
        if account.divided is None:
            return Charged(account._replace(spent=spent), {}, rule.fits(spent))
        divided = account.divided._replace(base=rule.add(account.base, cost))
        fits = rule.fits(spent)
        if not fits and not parts.is_exact(rule):
            fits = parts.all_fit(rule, parts.losses(divided.base, find(name, None), (), protects))
        return Charged(account._replace(spent=spent, divided=divided), {}, fits)
    base = account.base
    known = find(name, None if protects.neighbors == "replace" else charged)
    fresh = parts.nothing_alone(base)
    owns = {}
    for part in charged:
        own = known.get(part, fresh)
        owns[part] = Own(rule.add(own.added, cost), own.before, previous=own.number)
    lost = list(parts.losses(base, {**known, **owns}, charged, protects))
    divided = (account.divided or Divided(base, 0, 0)).bound_to(division)
    after = account._replace(spent=parts.worst([account.spent, *lost]), divided=divided)
    return Charged(after, owns, parts.all_fit(rule, lost))


Effect = tuple[dict[str, Account], dict[str, dict[str, Own]], dict[str, Vector]]
"""What an entry changes: accounts, what parts of them have lost alone, and the totals that it records."""


def effect_of(after: Mapping[str, Charged], number: int, before: Callable[[str, str], int | None]) -> Effect:
    """What the entry with this number changes. `before` finds the last entry that charged a part of an account."""
    changed, owns, totals = dict[str, Account](), dict[str, dict[str, Own]](), dict[str, Vector]()
    for name, (account, charged, _) in after.items():
        divided = account.divided
        if charged and divided is not None:
            owns[name] = {part: own._replace(number=number) for part, own in charged.items()}
            totals |= {parts.key_of(name, part): own.written() for part, own in charged.items()}
            digest = divided.digest
            for part in charged:
                digest = parts.digest_after(digest, name, part, before(name, part), number)
            account = account._replace(divided=divided._replace(digest=digest))
        changed[name] = account
        totals |= account.written(name)
    return changed, owns, totals


def unchanged(account: Account) -> Charged:
    """An account none of whose parts were charged."""
    return Charged(account, {}, True)


def renew_all(account: Account, rule: Rule, number: int) -> Charged:
    """An account at the beginning of a new period under a rule: so are all of its parts."""
    divided = account.divided and account.divided._replace(base=rule.nothing, since=number, division=0)
    return unchanged(Account(book.with_rule(rule), rule.nothing, divided))


def renew_parts(
    name: str, account: Account, renewed: Sequence[str], protects: Unit, find: FindOwns, division: int = 0
) -> Charged:
    """An account some of whose parts begin a new period. The others are unchanged."""
    base, known = account.base, find(name, None)
    fresh = parts.nothing_alone(base)
    owns = {part: parts.renewed(base, known.get(part, fresh)) for part in renewed}
    spent = parts.worst(parts.losses(base, {**known, **owns}, (), protects))
    divided = (account.divided or Divided(base, 0, 0)).bound_to(division)
    return Charged(account._replace(spent=spent, divided=divided), owns, True)


def charge_all(
    standing: Standing,
    costs: Mapping[str, Vector],
    charged: Sequence[str],
    protects: Unit,
    find: FindOwns,
    division: int = 0,
) -> tuple[dict[str, Charged], list[str]]:
    """Each account after a charge, and the accounts that would refuse it."""
    after = {
        name: charge_one(name, account, costs[name], charged, protects, find, division)
        for name, account in standing.items()
    }
    return after, [name for name, one in after.items() if not one.fits]


def seen_by(standing: Standing, charged: Sequence[str], protects: Unit, find: FindOwns) -> Standing:
    """The accounts as those see them who charge some parts, or everything: what the units there have lost."""
    replaced, found = protects.neighbors == "replace", {}
    for name, account in standing.items():
        if charged:
            owns = find(name, None if replaced else charged)
            each = {(lost, 1) for lost in parts.losses(account.base, owns, charged, protects)}
            if replaced and len(charged) > 1:  # who may move between two of them pays in both
                each |= {(lost, 2) for lost in parts.losses_between(account.base, owns, charged)}
            spent = parts.worst(lost for lost, _ in each)
            account = account._replace(spent=spent, each=frozenset(each))
        elif account.divided is not None and not parts.is_exact(account.rule) and not account.rule.fits(account.spent):
            lost_by_all = parts.losses(account.base, find(name, None), (), protects)
            account = account._replace(each=frozenset((lost, 1) for lost in lost_by_all))
        found[name] = account
    return found


def largest(accounts: Standing, like: Guarantee | None = None) -> Guarantee | None:
    """The largest release that every account would accept."""
    left = [
        account.rule.largest(total, like or natural(account.rule), times)
        for account in accounts.values()
        for total, times in (account.each or ((account.spent, 1),))
    ]
    known = [one for one in left if one is not None]
    return min(known, key=size_of) if len(known) == len(left) else None


def refusal_of(
    stated: Guarantee, standing: Standing, refused: str, *, of_analyst: bool, whole: Sequence[Guarantee] = ()
) -> BudgetExhausted:
    """Why a charge is refused, and the largest release of its kind that every account would still accept. Of a `whole`
    request of several parts, the first of which may fit alone, the largest release of any kind.
    """
    rule, remaining = standing[refused].rule, largest(standing, stated if len(whole) < 2 else None)
    if len(whole) < 2:
        text = rule.refusal(stated, remaining)
    else:
        left = f"The largest that still fits is {remaining}" if remaining else "Nothing still fits"
        text = f"{_together(whole)} passes the limit of {rule.limit} (rule {rule.name!r}). Nothing was spent. {left}."
    if of_analyst:
        text += f" This is the limit of {'all analysts together' if refused == WHOLE else refused}."
    return BudgetExhausted(text, remaining=remaining)


def _together(whole: Sequence[Guarantee]) -> str:
    """A request of several parts, with the ε of all of them if it is their sum."""
    losses = [None if one.infinite else one.largest_loss for one in whole]
    known = [one for one in losses if one is not None]
    if len(known) < len(losses):
        return f"The request, with its {len(whole)} parts together,"
    return f"{Pure(epsilon=sum(known))}, in {len(whole)} parts,"


def check_same_kind(own: Rule, whole: Rule) -> None:
    """Refuse a limit for an analyst that cannot be compared with that of the data set."""
    if type(natural(own)) is not type(natural(whole)):
        raise InvalidArgument(
            "An analyst's limit must be of the same kind as the limit of the data set: both in ε, or both in ρ.",
            code="ledger-limit-kind",
        )


def natural(rule: Rule) -> Guarantee:
    """The kind of release that matches a limit: pure releases for a limit in ε."""
    return Pure(epsilon=1) if isinstance(rule.limit, Approx) else rule.limit


def size_of(guarantee: Guarantee) -> Any:
    """The ε, ρ or μ of a guarantee, exactly."""
    return next(exactly(getattr(guarantee, name)) for name in ("epsilon", "rho", "mu") if hasattr(guarantee, name))
