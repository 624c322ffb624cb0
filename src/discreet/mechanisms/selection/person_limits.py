"""Limits on what one person adds to an answer, found without guessing: a scale for each kind of number, then a limit on
all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.upward_search import UpwardSearch
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

UNIT = 2**20
"""The scale of a kind of number, in the steps of the limit on all of them together."""
TOGETHER = Fraction(1, 5)
"""The part of ε for the limit on all kinds together. Its search is short, and can be wrong only by the number of
kinds."""


@dataclass(frozen=True, kw_only=True)
class PersonLimits:
    """The scales of several kinds of numbers, and a limit on a person's sum of all, each in units of its scale.

    The value is, for each kind, the total of every person, without signs. `limits` has the possible scales of each
    kind, in growing order. A kind with one possible scale has no search (None): that one is publicly known. Of one kind
    alone, the scale is the limit. Of several, `together` finds the limit among UNIT·√2^j, up to UNIT for each kind.
    With `weights`, at most 1, a kind counts so many times in the sum.

    Promise: the searches compose. A person adds 0 or 1 to every count of people above a limit, and the counts of the
    last search depend on the others only through the scales that those have found.
    Error: none is stated. What is lost to the limits is measured with the answer.
    """

    limits: tuple[tuple[int, ...], ...]
    searches: tuple[UpwardSearch | None, ...]
    together: UpwardSearch | None = None
    weights: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(self.weights) or (1,) * len(self.limits))
        fits = len(self.limits) == len(self.weights) and max(map(exactly, self.weights)) == 1
        fits &= len(self.limits) == len(self.searches) and (len(self.limits) == 1) == (self.together is None)
        if not fits or any((len(own) == 1) != (search is None) for own, search in self._pairs()):
            raise InvalidArgument(
                "PersonLimits needs a search for each kind with several limits, and one for several kinds together.",
                code="part-does-not-fit",
            )

    def _pairs(self) -> list[tuple[tuple[int, ...], UpwardSearch | None]]:
        return list(zip(self.limits, self.searches, strict=True))

    @property
    def limits_together(self) -> list[int]:
        """The possible limits on all kinds together."""
        most = math.ceil(sum(map(exactly, self.weights)) * UNIT)
        return [*half_octaves(UNIT, most - 1), most]

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        searches = [search for search in (*self.searches, self.together) if search is not None]
        return compose([search.guarantee(sensitivity) for search in searches])

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        limits: Sequence[Sequence[int]],
        people: Number,
        sensitivity: SensitivityLike,
        weights: Sequence[Number] = (),
    ) -> Self:
        """Equal shares of ε for all kinds whose scales are not known, for limits that about so many people exceed."""
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "PersonLimits is calibrated for Pure. Use Pure(epsilon=…).", code="guarantee-not-supported"
            )
        whole, several = exactly(guarantee.epsilon), len(limits) > 1
        unknown = sum(len(own) > 1 for own in limits)
        last = (TOGETHER if unknown else Fraction(1)) * several

        def search(share: Fraction) -> UpwardSearch:
            return UpwardSearch.for_guarantee(Pure(epsilon=whole * share), people=people, sensitivity=sensitivity)

        each = None if not unknown else search((1 - last) / unknown)
        return cls(
            limits=tuple(tuple(own) for own in limits),
            searches=tuple(each if len(own) > 1 else None for own in limits),
            together=search(last) if several else None,
            weights=tuple(map(tidy, map(exactly, weights))),
        )

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        return Accuracy(amount=None, confidence=sure, reason="what is lost to a limit is measured with the answer")

    def check(self, value: Data) -> None:
        """Refuse what is not one total of every person for each kind. Only shape and type decide."""
        if not isinstance(value, Sequence) or [np.ndim(own) for own in value] != [1] * len(self.limits):
            raise InvalidArgument("Give the totals of all people, as one array for each kind.", code="wrong-shape")

    def _draw(self, value: Sequence[Any]) -> tuple[tuple[int, ...], int]:
        self.check(value)
        scales = []
        for own, (limits, search) in zip(value, self._pairs(), strict=True):
            scales.append(limits[0 if search is None else search._draw(people_above(own, limits))])
        if self.together is None:
            return tuple(scales), UNIT
        # a person's number is computed from that person's totals alone: rounding it moves nobody else
        parts = zip(value, scales, self.weights, strict=True)
        totals = sum(np.asarray(own, np.float64) * (UNIT * float(weight) / scale) for own, scale, weight in parts)
        limits = self.limits_together
        return tuple(scales), limits[self.together._draw(people_above(totals, limits))]


def people_above(totals: Any, limits: Sequence[int]) -> list[int]:
    """How many people exceed each limit."""
    ordered = np.sort(np.asarray(totals))
    edges = np.asarray(limits, dtype=ordered.dtype)
    return [int(count) for count in len(ordered) - np.searchsorted(ordered, edges, side="right")]


def half_octaves(first: int, last: int) -> list[int]:
    """The integers first·√2^j, rounded up, as far as they do not exceed the last."""
    powers = range(2 * (last // first).bit_length() + 1)
    found = {math.isqrt((first**2 << power) - 1) + 1 for power in powers}
    return sorted(limit for limit in found if limit <= last)
