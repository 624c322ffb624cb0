"""The upward search: the first of many growing limits that few enough people exceed."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.mechanisms.noise.lattice import as_numbers, to_lattice
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

BAR = Fraction(7, 10)
"""The part of ε for the noise on the bar, which all steps share, where one unit only adds to the counts. With half of
ε, walks go much too far more often.
"""


OFFSET = Fraction(2, 5)
"""So much of the mean noise of a step is added to the number of people that should exceed the limit."""


@dataclass(frozen=True, kw_only=True)
class UpwardSearch:
    """Walks up a list of limits, and stops at the first that at most about `enough` people exceed.

    The value is how many people exceed each limit, from the lowest limit to the highest. The result is an index: of
    the first limit j with count[j] − G_j ≤ enough − G, where all G are geometric: one of scale `bar_scale` for the
    whole walk, and one of scale `step_scale` for each step. The last limit, if the walk never stops.

    Promise: one person more adds 0 or 1 to every count. Towards fewer people, replace G by G + 1, which costs
    1/bar_scale: then every step that went on still goes on, and only the last step pays, 1/step_scale. Towards more
    people only the last step pays. So ε = 1/bar_scale + 1/step_scale, however long the walk. A replaced person costs
    the same where one number of each person is compared with all limits: the larger number adds 0 or 1 to every count
    (`monotone`). A unit that moves some counts up and others down pays twice for the last step: ε = 1/bar_scale +
    2/step_scale. Both are attained.
    Error: the limit is exceeded by at most `enough` + amount people, unless the walk reached the end of the list.
    """

    enough: int
    bar_scale: Number
    step_scale: Number

    def __post_init__(self) -> None:
        check_count(self.enough, "enough", at_least=0)
        check_positive(self.bar_scale, "bar_scale")
        check_positive(self.step_scale, "step_scale")

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity, "Linf")
        epsilon = _counts_moved(bound) * (1 / exactly(self.bar_scale) + _steps_paid(bound) / exactly(self.step_scale))
        return Pure(epsilon=epsilon, protects=bound.unit)

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, people: Number, sensitivity: SensitivityLike) -> Self:
        """The search that keeps ε, for a limit that about so many people exceed."""
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "UpwardSearch is calibrated for Pure. Use Pure(epsilon=…).", code="guarantee-not-supported"
            )
        bound = plain_sensitivity(sensitivity, "Linf")
        each = exactly(guarantee.epsilon) / _counts_moved(bound) / (BAR + _steps_paid(bound) * (1 - BAR))
        bar, step = (significant(1 / (each * share), up=True) for share in (BAR, 1 - BAR))
        # a part of a step's noise more, as the walk stops too late rather than too early
        return cls(enough=math.ceil(exactly(people) + OFFSET * step), bar_scale=tidy(bar), step_scale=tidy(step))

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Sensitivity:
        """A plain number bounds every count, however many limits there are."""
        return plain_sensitivity(sensitivity, "Linf")

    def sizes(self, value: Data) -> dict[str, int]:
        """How many limits there are, for `error`."""
        return {"limits": max(len(value), 1)} if isinstance(value, Sized) else {}

    def error(self, confidence: float, *, limits: int = 1) -> Accuracy:
        """Every step has P[G_j > a] ≤ exp(−a/step_scale), and G only lowers the bar."""
        sure = check_confidence(confidence)
        amount = float(exactly(self.step_scale)) * math.log(check_count(limits, "limits") / (1 - sure))
        return Accuracy(amount=amount, confidence=sure, of="people above")

    def check(self, value: Data) -> None:
        """Refuse what is not one count for each limit. Only shape and type decide."""
        if np.ndim(value) != 1 or not len(value):
            raise InvalidArgument(
                "Give how many people exceed each limit, as a list: [40, 12, 3, 0].", code="wrong-shape"
            )
        as_numbers(value)

    def _draw(self, value: Any) -> int:
        self.check(value)
        counts = to_lattice(as_numbers(value), Fraction(1)).tolist()
        bar = self.enough - int(samplers.geometric(exactly(self.bar_scale), 1)[0])
        for place, count in enumerate(counts):
            if count - int(samplers.geometric(exactly(self.step_scale), 1)[0]) <= bar:
                return place
        return len(counts) - 1


def _counts_moved(bound: Sensitivity) -> int:
    """How far one unit can move a count."""
    return math.ceil(bound.to("Linf").exact)


def _steps_paid(bound: Sensitivity) -> int:
    """How many times a unit pays for the step at which the walk stops."""
    return 1 if bound.monotone else 2
