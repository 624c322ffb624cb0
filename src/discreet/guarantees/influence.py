"""What fake clients can do to a collection: how far they move what is published, and what is left for the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from discreet.guarantees.guarantee import Guarantee


class Moves(NamedTuple):
    """How far a published number can be raised and lowered, and the sum of the changes of all numbers at once."""

    up: float
    down: float
    together: float | None = None


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What `fakes` of `reports` clients can do at most if they send whatever they like.

    `up` and `down` compare what is published with what the other reports alone would give, for the worst of them.
    `together` is the largest sum of the changes of all counts. `left` is the promise to the others: None if there is
    none. `can_withhold` says whether the fakes can prevent that anything is published.
    """

    fakes: int
    reports: int
    of: str
    up: float
    down: float
    together: float | None = None
    left: Guarantee | None
    can_withhold: bool = False
    remark: str = ""

    def __str__(self) -> str:
        who = f"{self.fakes:,} of {self.reports:,} clients who send whatever they like"
        parts = [f"{who} can {self._moved}.", self._left]
        if self.can_withhold:
            parts.append("They can prevent that anything is published, by reports that cannot be read.")
        return " ".join((*parts, self.remark)).rstrip()

    @property
    def _moved(self) -> str:
        if math.isinf(self.up):
            return f"change {self.of} to anything"
        moved = f"raise {self.of} by at most {_amount(self.up)} and lower it by at most {_amount(self.down)}"
        if self.together is None:
            return moved
        return f"{moved}, and change all counts together by at most {_amount(self.together)}"

    @property
    def _left(self) -> str:
        if self.left is None:
            return "Nothing is promised to the others: too few of them add noise."
        return f"The others are promised {self.left}."


def _amount(number: float) -> str:
    """Four digits, rounded up: the bound still holds as it is printed."""
    if number == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(number)) - 3)
    return f"{math.ceil(number / unit - 1e-9) * unit:,.4g}" if number < 9999 else f"{math.ceil(number):,}"
