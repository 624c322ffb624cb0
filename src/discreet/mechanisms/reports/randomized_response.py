"""Randomized response: each record lies with a known probability, and the collector learns only frequencies."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, exp_bounds, float_up, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.finite_pairs import FinitePair
from discreet.guarantees.unit import row
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.reports.local_records import inside, is_column, one_column, places_among
from discreet.queries.sensitivity import SensitivityLike
from discreet.queries.space import Categories
from discreet.rows import none_of
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    """Keeps a record with probability 1 − m·lie and changes it to each of the m other choices with probability `lie`.

    Promise: (ε,δ)-DP for a replaced record iff lie ≥ (1−δ)/(m+e^ε); no trusted collector is needed.
    `dp.verify` checks it exactly.
    Error: a record is wrong with probability m·lie, the least possible [T.5.6].
    Source: [T.4.10]. For a record that is none of the choices, a uniform choice is reported, so that no error
    reveals it. Only `encode`, on a person's own device, refuses it.

    >>> RandomizedResponse(choices=["a", "b"], lie=0.25).truth
    0.75
    """

    choices: Sequence[Hashable]
    lie: Number

    def __post_init__(self) -> None:
        space = Categories(self.choices)
        object.__setattr__(self, "choices", space.points())
        if len(space) < 2:
            raise InvalidArgument("Randomized response needs at least two choices.", code="too-few-choices")
        lie = check_positive(self.lie, "lie")
        if lie * len(space) > 1:
            raise InvalidArgument(
                "lie must be at most 1/len(choices): the truth must not be less likely than a lie.", code="out-of-range"
            )

    @property
    def _others(self) -> int:
        return len(self.choices) - 1

    @property
    def truth(self) -> Number:
        """The probability that a record is reported unchanged."""
        return tidy(1 - self._others * exactly(self.lie))

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact law of the report for each record, for `dp.verify`."""
        lie, truth = exactly(self.lie), exactly(self.truth)
        return {x: {y: truth if x == y else lie for y in self.choices} for x in self.choices}

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The exact loss of one report, whatever the other records. `sensitivity` is not used: any two records are
        neighbors.
        """
        lie, truth = exactly(self.lie), exactly(self.truth)
        rest = (self._others - 1) * lie
        pair = FinitePair((truth, lie, rest), (lie, truth, rest))
        return LossDistribution(factors=((pair, 1),), protects=row(neighbors="replace"), trust="local")

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, choices: Sequence[Hashable], sensitivity: SensitivityLike = None
    ) -> Self:
        """The fewest lies that satisfy (ε,δ): (1−δ)/(m+e^ε), rounded up. The taught and the tight formula are
        the same.
        """
        if not isinstance(guarantee, Approx):
            raise InvalidArgument(
                "Randomized response is calibrated for Pure and Approx. Ask for one of them.",
                code="guarantee-not-supported",
            )
        others = len(tuple(choices)) - 1
        if others < 1:
            raise InvalidArgument("Randomized response needs at least two choices.", code="too-few-choices")
        least = (1 - exactly(guarantee.delta)) / (others + exp_bounds(exactly(guarantee.epsilon))[0])
        return cls(choices=choices, lie=tidy(min(_decimal_above(least), Fraction(1, others + 1))))

    @classmethod
    def for_error(cls, wrong: Number, *, choices: Sequence[Hashable]) -> Self:
        """The most lies that change at most a fraction `wrong` of the records on average."""
        others = len(tuple(choices)) - 1
        most = min(check_positive(wrong, "wrong") / others, Fraction(1, others + 1))
        return cls(choices=choices, lie=tidy(significant(most, up=False)))

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """The fraction of `records` that are wrong, by Hoeffding's bound on their number."""
        sure = check_confidence(confidence)
        count = check_count(records, "records")
        mean = float(self._others * exactly(self.lie))
        amount = min(1.0, mean + math.sqrt(math.log(1 / (1 - sure)) / (2 * count)))
        return Accuracy(amount=amount, confidence=sure, of="fraction wrong")

    @closed
    def encode(self, record: Hashable) -> Hashable:
        """One report, made on the device of the person who sends it."""
        if self._places([record])[0] < 0:
            raise InvalidArgument("The value is not one of the choices. Report one of them.", code="unknown-choice")
        return cast(Hashable, self._draw([record])[0])

    @closed
    def analyze(self, reports: Data) -> dict[Hashable, float]:
        """Unbiased counts of each choice from all reports that can be read."""
        places = self._places(reports)
        counts = np.bincount(places[places >= 0], minlength=len(self.choices))
        lie, truth = float(self.lie), float(self.truth)
        return {c: (float(k) - counts.sum() * lie) / (truth - lie) for c, k in zip(self.choices, counts, strict=True)}

    @cached_property
    def _known(self) -> dict[Hashable, int]:
        return {choice: place for place, choice in enumerate(self.choices)}

    def _places(self, records: Any) -> NDArray[np.int64]:
        """The index of each record among the choices. −1 for a value that is not a choice."""
        return places_among(records, self._known)

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        if is_column(value):
            one_column(none_of(value))

    def _draw(self, value: Any) -> Any:
        if not is_column(value):
            return self._draw([value.item() if isinstance(value, np.ndarray) else value])[0]
        reports = self._report(inside(self._places(value), len(self.choices)))
        return [self.choices[i] for i in reports.tolist()]

    def _report(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        size = len(places)
        lies = samplers.bernoulli(self._others * exactly(self.lie), size)
        # a lie is a uniform step away from the truth, around the circle of choices; a step is drawn for every record
        steps = samplers.uniform_below(self._others, size) + 1
        return cast(NDArray[np.int64], np.where(lies, (places + steps) % len(self.choices), places))


def _decimal_above(value: Fraction) -> Fraction:
    """The smallest number a float prints that is not below `value`: the truth loses less than one part in 10^16."""
    nearest = float_up(value)
    while exactly(nearest) < value:
        nearest = math.nextafter(nearest, math.inf)
    return exactly(nearest)
