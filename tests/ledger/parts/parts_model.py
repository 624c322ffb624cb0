"""A ledger with parts, computed from scratch at every step: all charges are kept, and the loss of each unit is added up
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import discreet as dp
from discreet.guarantees.rules.best_of import Rule, rule_for

ELSEWHERE = ("somewhere else", "somewhere else again")
"""Parts that nobody charges: there may always be some."""


@dataclass
class NaiveAccount:
    """All that happened to one account since it was renewed: what was charged, to which parts, or which were
    renewed.
    """

    rule: Rule
    happened: list[tuple[str, dp.Guarantee | None, tuple[str, ...]]] = field(default_factory=list)

    def lost(self, unit: Sequence[str]) -> tuple[int, ...]:
        """What a unit has lost that may be in any of these parts."""
        total = self.rule.nothing
        for place, (kind, guarantee, parts) in enumerate(self.happened):
            if kind != "charge" or guarantee is None:
                continue
            times = sum(not parts or part in parts for part in unit if not self._is_over(part, place))
            times = min(times, 1) if not parts else times  # what reads everything is lost once
            if times:
                total = self.rule.add(total, self.rule.coordinates(guarantee), times)
        return total

    def _is_over(self, part: str, place: int) -> bool:
        return any(kind == "renewal" and part in parts for kind, _, parts in self.happened[place:])

    def names(self) -> set[str]:
        return {part for _, _, parts in self.happened for part in parts}


class NaiveLedger:
    """The right decisions, slowly."""

    def __init__(self, protects: dp.Unit, limit: dp.Guarantee) -> None:
        self.protects = protects
        self.accounts = {"": NaiveAccount(rule_for(limit).fixed())}

    def open(self, analyst: str, limit: dp.Guarantee) -> None:
        self.accounts[analyst] = NaiveAccount(rule_for(limit).fixed())

    def units(self, account: NaiveAccount, touched: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Where a unit may be that a charge touches."""
        every = [*sorted(account.names() | set(touched)), *ELSEWHERE]
        if self.protects.neighbors == "replace":
            yield from (two for two in combinations(every, 2) if not touched or set(two) & set(touched))
        else:
            yield from ((part,) for part in (touched or every))

    def charge(self, analyst: str, guarantee: dp.Guarantee, parts: tuple[str, ...]) -> bool:
        """Whether a charge is accepted."""
        affected = [self.accounts[name] for name in dict.fromkeys(("", analyst))]
        for account in affected:
            account.happened.append(("charge", guarantee, parts))
        fits = all(account.rule.fits(account.lost(unit)) for account in affected for unit in self.units(account, parts))
        if not fits:
            for account in affected:
                account.happened.pop()
        return fits

    def renew(self, analyst: str, parts: tuple[str, ...]) -> None:
        account = self.accounts[analyst]
        if parts:
            account.happened.append(("renewal", None, parts))
        else:
            account.happened.clear()

    def raise_limit(self, analyst: str, limit: dp.Guarantee) -> None:
        account = self.accounts[analyst]
        account.rule = account.rule.raised(limit)

    def worst(self, analyst: str, parts: tuple[str, ...] = ()) -> tuple[int, ...]:
        """The largest of each coordinate that units in these parts have lost."""
        account = self.accounts[analyst]
        return tuple(map(max, zip(*(account.lost(unit) for unit in self.units(account, parts)), strict=True)))
