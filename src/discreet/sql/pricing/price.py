"""What a question costs and how much noise it gets, from public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.exact.rational import exactly, significant
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.combine import Composed
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.threshold import KeySelection, SelectedGroups
from discreet.sql.question import Bounds, Measure

Noise = Literal["Laplace", "Gaussian"]
LARGE = 50
"""Above this ε hardly any noise is left: it is not composed numerically, which would take long and gain nothing."""


@dataclass(frozen=True)
class Contribution:
    """How much one unit changes a measure over all groups, in steps: in total, and squared."""

    l1: int
    squared: int


@dataclass(frozen=True)
class Price:
    """The mechanism of a whole statement, its parts (one for each measure), and its guarantee."""

    mechanism: Composed | SelectedGroups
    parts: tuple[Any, ...]
    sensitivities: tuple[Any, ...]
    guarantee: Guarantee
    noise: Noise
    shares: tuple[Fraction, ...]
    delta: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)

    @property
    def cost(self) -> Approx:
        """The guarantee as an ε at the given δ. Never more than requested."""
        if self.delta and self.epsilon > LARGE:
            return Approx(epsilon=tidy(self.epsilon), delta=tidy(self.delta))
        largest = self.guarantee.largest_loss
        if largest is not None and not self.guarantee.infinite and not self.delta:
            return Pure(epsilon=tidy(significant(largest, up=True)))
        found = exactly(self.guarantee.epsilon_at(delta=self.delta))
        return Approx(epsilon=tidy(min(found, self.epsilon) if self.epsilon else found), delta=tidy(self.delta))

    @property
    def selection(self) -> KeySelection | None:
        """How groups are chosen if their keys are not declared."""
        return self.mechanism.selection if isinstance(self.mechanism, SelectedGroups) else None


def contribution(measure: Measure, bounds: Bounds | None, unit: Unit) -> Contribution:
    """What one unit adds if it is added or removed. For a replaced unit, twice that, or twice its square."""
    most = measure.reach**measure.power if measure.kind == "sum" else 1
    if bounds is None:
        l1, squared = most, most**2
    elif measure.kind == "people":
        l1, squared = bounds.groups, bounds.groups
    else:
        rows = min(bounds.rows, bounds.groups * bounds.per_group)
        full, rest = divmod(rows, bounds.per_group)
        l1, squared = rows * most, (full * bounds.per_group**2 + rest**2) * most**2
    if unit.neighbors == "add_or_remove":
        return Contribution(l1, squared)
    # one contribution replaces another; contributions of one sign do not add up in a group
    one_sign = measure.kind != "sum" and not (bounds is not None and bounds.swapped)
    return Contribution(2 * l1, (2 if one_sign else 4) * squared)
