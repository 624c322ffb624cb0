"""The limit on the different values that one person supports, where different values are counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.mechanisms.noise.lattice import as_numbers
from discreet.mechanisms.protocol import plain_sensitivity
from discreet.mechanisms.selection.exponential import PermuteAndFlip
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class SupportLimit:
    """Chooses how many different values one person may support, so that few are lost and little noise is needed.

    The value is, for each limit k, how many different values there are if everybody supports at most k. The result is
    the limit with the highest count less `penalty`·k, by permute-and-flip with this `rate`. Counts with different
    limits move by different amounts, so limit k competes with the score min over all j of (c_k − c_j)/max(k, j), where
    c is the count less its penalty. Each further limit scores lower by `step`: otherwise all large limits, which are
    many, would compete alike.

    Promise: one person more adds between 0 and k to the count with limit k, if people choose what they support without
    looking at others. So a difference moves by at most max(k, j), and every score by at most 1: ε = 2·rate. A replaced
    person may add to one count and take from another: a difference moves by at most k + j, and ε = 4·rate.
    The steps are public, and change nothing.
    Error: the chosen count less its penalty is at most amount·max(k, j) below that of every limit j.
    Source: the generalized exponential mechanism (Raskhodnikova-Smith 2016), for distinct counts Knop-Steinke 2023.
    """

    limits: tuple[int, ...]
    penalty: Number
    rate: Number
    step: Number = 0

    def __post_init__(self) -> None:
        for limit in self.limits:
            check_count(limit, "limits")
        if not self.limits or list(self.limits) != sorted(set(self.limits)):
            raise InvalidArgument("limits must grow, and there must be at least one.", code="ends-out-of-order")
        if exactly(self.penalty) < 0 or exactly(self.step) < 0:
            raise InvalidArgument("penalty and step must be 0 or more.", code="out-of-range")
        check_positive(self.rate, "rate")

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return PermuteAndFlip(rate=self.rate).guarantee(_of_scores(sensitivity))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, limits: Sequence[int], penalty: Number, sensitivity: SensitivityLike
    ) -> Self:
        """The sharpest choice for this ε."""
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "SupportLimit is calibrated for Pure. Use Pure(epsilon=…).", code="guarantee-not-supported"
            )
        chosen = PermuteAndFlip.for_guarantee(guarantee, sensitivity=_of_scores(sensitivity))
        return cls(limits=tuple(limits), penalty=penalty, rate=chosen.rate)

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Sensitivity:
        """A plain number is how far one unit moves every count, in units of its limit."""
        return plain_sensitivity(sensitivity, "Linf")

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        lost = math.log(len(self.limits) / (1 - sure)) / float(self.rate)
        return Accuracy(amount=lost + float(self.step) * (len(self.limits) - 1), confidence=sure, of="score")

    def check(self, value: Data) -> None:
        """Refuse what is not one count for each limit. Only shape and type decide."""
        if np.ndim(value) != 1 or len(value) != len(self.limits):
            raise InvalidArgument("Give one count for each limit, from the lowest limit on.", code="wrong-shape")
        as_numbers(value)

    def scores(self, value: Data) -> list[Fraction]:
        """The score of every limit, exactly."""
        self.check(value)
        penalty, step = exactly(self.penalty), exactly(self.step)
        net = [int(count) - penalty * limit for count, limit in zip(as_numbers(value), self.limits, strict=True)]
        pairs = list(zip(net, self.limits, strict=True))
        scores = [min((own - other) / max(limit, its) for other, its in pairs) for own, limit in pairs]
        return [score - place * step for place, score in enumerate(scores)]

    def _draw(self, value: Any) -> int:
        scores = np.array([*self.scores(value), None], dtype=object)[:-1]
        chosen: int = PermuteAndFlip(rate=self.rate)._draw(scores)
        return self.limits[chosen]


def _of_scores(sensitivity: SensitivityLike) -> Sensitivity:
    """How far one unit moves the scores, if it moves every count by at most this many times its limit."""
    bound = plain_sensitivity(sensitivity, "Linf")
    return Sensitivity(bound.exact if bound.monotone else 2 * bound.exact, "Linf", bound.unit)
