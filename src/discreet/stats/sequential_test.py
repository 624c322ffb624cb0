"""A test of two proportions that is looked at while rows arrive: one charge, and an error that holds at every look."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed, closed
from discreet.door import Session, stream
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, check_epsilon
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import check_rows
from discreet.ledger import Ledger, cost_of
from discreet.mechanisms.counts.step_tallies import StepTallies
from discreet.releases import NOT_PRIVATE
from discreet.rows.containers import Data
from discreet.stats.inference.always_valid import Mixture, difference
from discreet.stats.results import Evidence, digits_for, p_text


@dataclass(frozen=True, kw_only=True)
class Look(Evidence):
    """What is known at one look: the difference of the two proportions, and the evidence against equal ones.

    P-values and intervals hold at all looks together: stop whenever you like. `p_value` is the smallest so far.
    """

    number: int
    of: int
    difference: float
    not_private: bool = False
    _counts: Any = field(repr=False, default=None)
    _mixture: Any = field(repr=False, default=None)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The ends between which the difference in the population lies."""
        return self._mixture.interval(self._counts, self.number, check_confidence(confidence))  # type: ignore[no-any-return]

    def __str__(self) -> str:
        low, high = self.interval(0.95)
        shown = digits_for((high - low) / 2)
        ends = f"{low:+,.{shown}f} to {high:+,.{shown}f}"
        mark = f"; {NOT_PRIVATE}" if self.not_private else ""
        return (
            f"look {self.number:,} of {self.of:,}: difference {self.difference:+,.{shown}f}, in the population {ends} "
            f"(95%, at all looks); p = {p_text(self.p_value)}{mark}"
        )


class SequentialTest(Closed):
    """Two groups of rows that arrive over time. Its whole cost is charged when it is made."""

    def __init__(self, session: Session) -> None:
        self._session, self._lock = session, threading.Lock()
        self._mixture = Mixture.of(session.mechanism.noise)
        self._counts: NDArray[np.int64] = np.zeros(4, dtype=np.int64)
        self._taken, self._least = 0, 1.0

    @property
    def looks(self) -> int:
        """How many looks were declared."""
        return int(self._session.mechanism.steps)

    @property
    def looks_left(self) -> int:
        """How many of them are left."""
        return self.looks - self._taken

    @property
    def guarantee(self) -> Guarantee:
        """What all looks together promise."""
        return self._session.guarantee

    @property
    def receipt(self) -> str | None:
        """The entry of the ledger."""
        return self._session.receipt

    def look(self, first: Data, second: Data) -> Look:
        """Add the rows that are new in each group, and look at all rows so far.

        A row is true or false, or 1 or 0. A missing one is left out. Each row is given once, at one look.
        """
        with self._lock:
            self._counts = self._counts + self._session.add((first, second))
            self._taken += 1
            against = self._mixture.log_against(self._counts.astype(np.float64), self._taken, 0.0)
            self._least = min(self._least, float(np.exp(-max(against, 0.0))))
            return Look(
                test="two proportions, at every look",
                hypothesis="both proportions are equal in the population",
                p_value=self._least,
                statistic=against,
                number=self._taken,
                of=self.looks,
                difference=difference(self._counts),
                not_private=self._session.not_private,
                _counts=self._counts.astype(np.float64),
                _mixture=self._mixture,
            )

    def __repr__(self) -> str:
        return f"<SequentialTest: {self._taken:,} of {self.looks:,} looks; {self.guarantee}; receipt {self.receipt}>"


@closed
def sequential(
    *,
    looks: int,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    rows_per_person: int | None = None,
) -> SequentialTest:
    """Start a test of two proportions that is looked at up to `looks` times while rows arrive, for one charge.

    Every row is given once. So all looks together cost ε, and each of them adds its own noise. Fewer looks have less
    noise. The rows must be independent. If the ledger protects people, `rows_per_person` is the maximum number of rows
    of one person over all looks and both groups, which the caller guarantees. With more than one, rows of a person may
    depend on each other, and the level holds only if they do not.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    check_count(looks, "looks")
    if ledger.protects.column is not None and rows_per_person is None:
        raise InvalidArgument(
            "The ledger protects a person. Give rows_per_person=, the most rows of one person over all looks and both "
            "groups, and make sure that nobody has more.",
            code="rows-per-person-missing",
        )
    unit = ledger.protects
    rows_per_person = unit.most_rows if rows_per_person is None else check_rows(unit, rows_per_person)
    check_epsilon(epsilon)
    goal = Approx(epsilon=epsilon, delta=delta) if check_delta(delta) else Pure(epsilon=epsilon)
    mechanism = StepTallies.for_guarantee(
        goal, steps=looks, groups=2, unit=ledger.protects, rows_per_person=rows_per_person
    )
    bound = mechanism.sensitivity(ledger.protects, rows_per_person)
    own = mechanism.guarantee(bound)
    cost = cost_of(ledger, own, goal)
    asked = f"a test of two proportions with {looks:,} looks"
    stated = None if cost is own else cost
    return SequentialTest(stream(mechanism, sensitivity=bound, ledger=ledger, stated=stated, asked=asked))
