"""The steps of what is paid in advance: their names, what each may release, and what all of them cost together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidArgument, LedgerDamaged
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.rules.best_of import Basic, Rule
from discreet.guarantees.rules.once import Once
from discreet.guarantees.unit import Unit
from discreet.ledger import book
from discreet.ledger.book import EntryRow
from discreet.ledger.texts.record import read_guarantee
from discreet.ledger.texts.request import public_text

_PLATFORM = 1 + 1e-9
"""A δ may differ by this factor between machines, whose `exp` and `log` differ in the last digits."""
MOST_STEPS = 10_000


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What one charge pays for: the names of the steps, what each may release, and in how many of them one unit is.

    With `joint`, the steps are drawn one after the other, and are one release together.
    """

    names: tuple[str, ...]
    each: Rule
    units: int
    joint: bool

    def __post_init__(self) -> None:
        well = all(isinstance(name, str) and 0 < len(name) <= 50 and name == public_text(name) for name in self.names)
        if not well or not 0 < len(set(self.names)) == len(self.names) <= MOST_STEPS:
            raise InvalidArgument(
                f"Name 1 to {MOST_STEPS} steps, each by a short text of its own.", code="standing-steps"
            )
        if check_count(self.units, "units") > len(self.names) or not isinstance(self.each, Once | Basic):
            raise InvalidArgument("A unit is in at most all steps.", code="standing-steps")

    def total(self, protects: Unit) -> Guarantee:
        """What all steps together cost one unit.

        Promise: each step that a unit is in costs it at most the limit of the step, and the others nothing. Joint steps
        are one release.
        """
        limit = self.each.limit.stated_for(protects)
        return limit if self.joint or self.units == 1 else compose([limit] * self.units)

    def is_paid_by(self, guarantee: Guarantee, protects: Unit) -> bool:
        """Whether a charge with this guarantee covers all steps."""
        total = self.total(protects)
        if guarantee == total:
            return True
        if not isinstance(guarantee, Approx):
            return False
        return total.delta_at(epsilon=guarantee.epsilon) <= float(exactly(guarantee.delta)) * _PLATFORM

    def renewed_by(self, parts: Sequence[str]) -> set[str]:
        """The steps that are to be paid again after all parts, or these alone, have begun a new period. A joint step
        is about all parts.
        """
        met = set(self.names) & set(parts)
        return set(self.names) if not parts or (met and self.joint) else met

    def written(self) -> dict[str, Any]:
        """As it is recorded, besides the rule."""
        return {"steps": list(self.names), "units": self.units, "joint": self.joint}


def steps_in(row: EntryRow) -> Steps:
    """The steps in the entry of a standing question."""
    said = book.part_of(row.content).get("paid")
    try:
        assert isinstance(said, dict)
        return Steps(names=tuple(said["steps"]), each=row.rule, units=said["units"], joint=said["joint"] is True)
    except (AssertionError, LookupError, TypeError, InvalidArgument):
        raise book.damage_error(f"entry {row.number} does not say what was paid", code="ledger-steps-wrong") from None


_NAME = re.compile(r"standing/([1-9][0-9]*)(?:/(.+))?", re.DOTALL)


def name_of(number: int, step: str = "") -> str:
    """The name of the account of a standing question, or of one of its steps. `number` is that of its charge."""
    return f"standing/{number}/{step}" if step else f"standing/{number}"


def read_name(name: str) -> tuple[int, str] | None:
    """The number of the charge and the step in the name of an account. None if it is not such a name."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), found[2] or "")


_AGAIN = re.compile(r"standing/([1-9][0-9]*)/after/[1-9][0-9]*(?:/.+)?", re.DOTALL)


def key_after(number: int, renewal: int, step: str = "") -> str:
    """The key of the charge for what is left after a renewal: of a standing question, or of one of its steps."""
    return f"{name_of(number)}/after/{renewal}" + (f"/{step}" if step else "")


class Verified:
    """The standing questions so far, while the record is checked from its beginning.

    Promise: each step that is drawn was paid in the period in which it is drawn.
    """

    def __init__(self, protects: Unit) -> None:
        self.protects = protects
        self._paid: dict[int, Steps] = {}
        self._charges: dict[int, tuple[EntryRow, frozenset[str]]] = {}
        self._unpaid: dict[int, set[str]] = {}
        self._opened: set[str] = set()
        self._before: tuple[EntryRow, Sequence[str]] | None = None

    def follow(self, row: EntryRow, parts: Sequence[str]) -> None:
        """Check what an entry says about steps. `parts` are those that it charges."""
        if row.kind == "standing":
            self._check_standing(row)
        elif row.kind == "step":
            self._check_step(row)
        elif self._is_question(row.analyst) or (row.analyst in self._opened and row.kind != "charge"):
            raise book.damage_error(f"entry {row.number} changes what was paid", code="ledger-steps-wrong")
        elif row.kind == "renewal":
            self._renew(row, parts)
        elif row.kind == "charge":
            self._check_period(row)
            self._pay_again(row, parts)
        self._before = row, parts

    def _renew(self, row: EntryRow, parts: Sequence[str]) -> None:
        for number, (charge, _) in self._charges.items():
            if row.analyst in (book.WHOLE, charge.analyst):
                self._unpaid[number] |= self._paid[number].renewed_by(parts)

    def _pay_again(self, row: EntryRow, parts: Sequence[str]) -> None:
        named = _AGAIN.fullmatch(row.retry_key or "")
        charge, within = self._charges.get(int(named[1]) if named else 0, (row, frozenset()))
        if charge is row or (row.analyst, row.content) != (charge.analyst, charge.content):
            return
        every = not parts or within <= set(parts)
        steps = self._paid[charge.number]
        self._unpaid[charge.number] -= set(steps.names) if every else set() if steps.joint else set(parts)

    def _check_period(self, row: EntryRow) -> None:
        number, step = read_name(row.analyst) or (0, "")
        if row.analyst in self._opened and step in self._unpaid[number]:
            raise book.damage_error(
                f"entry {row.number} draws a step that was not paid in its period", code="ledger-steps-wrong"
            )

    def payers(self, analyst: str) -> set[str]:
        """The accounts that a charge of this one costs: a step was paid before."""
        return {analyst} if analyst in self._opened else {book.WHOLE, analyst}

    def _is_question(self, analyst: str) -> bool:
        number, step = read_name(analyst) or (0, "")
        return number in self._paid and not step

    def _check_standing(self, row: EntryRow) -> None:
        steps, named = steps_in(row), read_name(row.analyst)
        charge, parts = self._before or (row, ())
        try:
            well = charge.kind == "charge" and named == (charge.number, "")
            well = well and (not parts or set(steps.names) <= set(parts))
            well = well and steps.is_paid_by(read_guarantee(charge.content), self.protects)
        except LedgerDamaged:
            well = False
        if not well:
            raise book.damage_error(f"entry {row.number} was not paid in full", code="ledger-steps-wrong")
        self._paid[charge.number] = steps
        self._charges[charge.number] = charge, frozenset(parts)
        self._unpaid[charge.number] = set()

    def _check_step(self, row: EntryRow) -> None:
        number, step = read_name(row.analyst) or (0, "")
        steps = self._paid.get(number)
        if steps is None or step not in steps.names or row.rule != steps.each or row.analyst in self._opened:
            raise book.damage_error(f"entry {row.number} opens a step that was not paid", code="ledger-steps-wrong")
        self._opened.add(row.analyst)
