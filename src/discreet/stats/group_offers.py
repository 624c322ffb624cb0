"""Tests of groups before anything is spent: which differences they would find."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.samples.sample import Sample
from discreet.stats.tested import Tested
from discreet.tables.offer import FoundFirst

_SPREAD = 1 / 6
"""What values are imagined to deviate, in parts of the range."""
_RANKS = math.sqrt(1 / 12)
"""What ranks, as shares of smaller values, deviate."""
_SHARES = 1.25
"""The variance of the noise in the sum of a group's values, in units of that of one released number: a sum is one
number and half of another.
"""


@dataclass(frozen=True)
class GroupsOffer(FoundFirst[Sample, Tested]):
    """A test of `groups` means, or of `ranked` values. `explain` says which differences it would find."""

    groups: int
    ranked: bool

    def explain(self) -> Explanation:
        lines = [str(super().explain())]
        if not self.rows.plan.automatic:
            drawn: Any = self.drawing(self.rows).mechanism
            noise = getattr(drawn, "noise", drawn).deviation
            lines = [lines[0].rsplit("; ", 1)[0], *(self._line(rows, noise) for rows in IMAGINED)]
        return Explanation("\n".join(lines))

    def _line(self, rows: int, noise: float) -> str:
        gap = smallest_gap(rows, self.groups, noise, _RANKS if self.ranked else _SPREAD)
        seen = f"if there are {rows:,} rows (power 80%)"
        if not self.ranked:
            return (
                f"a group whose mean differs by about {gap:.2g} of the range is found, {seen}, with a deviation of 1/6"
            )
        if gap >= 0.5:
            return f"no difference is found for sure, {seen}"
        what = "a group whose values are larger" if self.groups > 1 else "a sign that is the more likely one"
        return f"{what} with probability {0.5 + gap:.3f} is found, {seen}"


def smallest_gap(rows: int, groups: int, noise: float, spread: float) -> float:
    """About the smallest shift of one of these groups, of equal size, that is found at level 5% with power 80%.

    One group is tested against a public value. By the normal approximation of a sum of squares.
    """
    degrees = max(1, groups - 1)
    far = 7.85 if degrees == 1 else _noncentrality(degrees)
    each = rows / groups
    variance = (spread**2 + _SHARES * noise**2 / each) / each
    return math.sqrt(far * variance / (1 - 1 / groups if groups > 1 else 1))


def _noncentrality(degrees: int) -> float:
    """How far the mean of a sum of squares must move to be beyond 95% of its law four times out of five."""
    room = math.sqrt(2 * degrees)
    far = 1.645 * room
    for _ in range(20):
        far = 1.645 * room + 0.8416 * math.sqrt(2 * degrees + 4 * far)
    return far
