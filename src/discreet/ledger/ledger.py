"""One account for every release on a data set: charged before anything is drawn, never refunded.

This is the ledger in memory. It adds integers in units of 10^-18, under one rule fixed at opening; copies
of it are itself.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Self

from discreet._version import __version__
from discreet.errors import DiscreetError, InvalidArgument
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.rules import CLOSED, Rule, rule_for
from discreet.guarantees.unit import Unit
from discreet.rational import LEDGER_UNIT


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge: what was asked, what it promises, what it cost, and the chain of all entries before it."""

    number: int
    asked: str
    guarantee: Guarantee
    cost: tuple[int, ...]
    code_version: str
    time: float
    chain: str

    @property
    def receipt(self) -> str:
        """A short name for the entry, to be quoted beside the answer."""
        return f"{self.number}-{self.chain[:4]}"


class Ledger:
    """What may be spent on one data set, and what was.

    Promise: however the questions are chosen, everything charged here together keeps `limit` for one unit
    of `protects`.

    >>> ledger = Ledger.open(":memory:", protects=Unit("patient_id"), limit=Pure(epsilon=1))
    >>> ledger.remaining
    Pure(epsilon=1.0)
    """

    def __init__(self, *, protects: Unit, limit: Guarantee, rule: Rule) -> None:
        self.protects, self.limit, self.rule = protects, limit, rule
        self._vector = rule.nothing
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def open(cls, target: str, *, protects: Unit, limit: Guarantee, rule: str | Rule | None = None) -> Self:
        """A new ledger. `target` is ":memory:"; `rule` is the natural one for the limit unless named."""
        if target != ":memory:":
            raise InvalidArgument(
                'Only Ledger.open(":memory:", …) exists so far; the durable ledger comes with the next release.'
            )
        if not isinstance(protects, Unit):
            raise InvalidArgument('protects must be dp.person("column") or dp.row().')
        if not isinstance(limit, Guarantee):
            raise InvalidArgument("limit must be a guarantee, such as dp.Approx(epsilon=10, delta=1e-5).")
        if limit.protects not in (None, protects):
            raise InvalidArgument(f"The limit is stated for {limit.protects!r}, but the ledger protects {protects!r}.")
        return cls(protects=protects, limit=limit, rule=rule_for(limit, rule))

    def charge(self, guarantee: Guarantee, *, asked: str) -> Entry:
        """Record a release before it is drawn; BudgetExhausted, and nothing recorded, when it passes the limit."""
        if os.getpid() != self._process:
            raise DiscreetError("A ledger in memory belongs to the process that opened it; a fork is no second purse.")
        stated = guarantee.stated_for(self.protects)
        with self._lock:
            after = self.rule.admit(self._vector, stated)
            cost = tuple(new - old for new, old in zip(after, self._vector, strict=True))
            number, before = len(self._entries) + 1, self._entries[-1].chain if self._entries else ""
            facts = repr((number, asked, type(stated).__name__, stated.protects, cost, __version__, before))
            entry = Entry(
                number=number,
                asked=asked,
                guarantee=stated,
                cost=cost,
                code_version=__version__,
                time=time.time(),
                chain=hashlib.sha256(facts.encode()).hexdigest(),
            )
            self._vector = after
            self._entries.append(entry)
            return entry

    @property
    def spent(self) -> dict[str, float]:
        """The coordinates used so far, by name; infinite where one no longer counts. The guarantee is the limit."""
        return {
            label: math.inf if units >= CLOSED else units / LEDGER_UNIT
            for label, units in zip(self.rule.labels, self._vector, strict=True)
        }

    @property
    def remaining(self) -> Guarantee | None:
        """The largest single pure release (of the limit's kind, for a limit not in ε) that would still fit, or
        None.
        """
        return self.remaining_now()()

    def remaining_now(self) -> Callable[[], Guarantee | None]:
        """What remains at this moment, worked out only when it is called for."""
        like = Pure(epsilon=1) if isinstance(self.limit, Approx) else self.limit
        return partial(self.rule.largest, self._vector, like)

    def entries(self) -> tuple[Entry, ...]:
        """Every charge, oldest first."""
        return tuple(self._entries)

    def __repr__(self) -> str:
        terms = f"protects={self.protects!r}, limit={self.limit!r}, rule={self.rule.name!r}"
        return f"Ledger({terms}, entries={len(self._entries)})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise DiscreetError("A ledger in memory cannot be pickled: there must not be a second purse.")
