"""The k best of many candidates, in order, and which selection mechanism suits a ledger."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.rules.best_of import Rule, rule_for
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip, exact_scores, score_range
from discreet.queries.scores import Scores
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

Peel = Literal["exponential", "permute and flip"]
_KINDS: dict[str, type[Exponential | PermuteAndFlip]] = {
    "exponential": Exponential,
    "permute and flip": PermuteAndFlip,
}
_WORST_GAIN = Fraction(3, 2)
"""At this times the ε, the exponential mechanism's expected error on its worst scores is about permute-and-flip's: 1.51
times for two candidates, and less for more."""


@dataclass(frozen=True, kw_only=True)
class TopK:
    """Names `k` candidates, best first: chooses one, sets it aside, and chooses again among the rest.

    With `peel="exponential"` this is the law of Gumbel noise added once to all scores and the k largest named in
    order; drawn choice by choice it is exact. `peel="permute and flip"` chooses better at equal ε, and costs more
    in zCDP.

    Promise: the composition of k choices, each of range ε = 2·rate·Δ (rate·Δ for monotone scores): kε, and
    kε²/8-zCDP for the exponential, kε²/2 for permute-and-flip. Scores do not leave.
    Error: with confidence, every one named lacks at most the amount of the score that truly has its place.
    Source: [L3.POP], [L3.EM-U]; Durfee-Rogers 2019 (one-shot noise is peeling); McKenna-Sheldon 2020.

    >>> TopK.for_guarantee(Pure(epsilon=1), k=4, sensitivity=1)
    TopK(k=4, rate=0.125, choices=None, peel='permute and flip')
    """

    k: int
    rate: Number
    choices: Sequence[Hashable] | None = None
    peel: Peel = "exponential"

    def __post_init__(self) -> None:
        check_count(self.k, "k")
        if self.peel not in _KINDS:
            raise InvalidArgument("peel must be 'exponential' or 'permute and flip'.", code="not-an-option")
        object.__setattr__(self, "choices", self._one.choices)
        if self.choices is not None and len(self.choices) < self.k:
            raise InvalidArgument(
                f"k={self.k} is more than the {len(self.choices)} choices. Lower k.", code="too-few-choices"
            )

    @property
    def _one(self) -> Exponential | PermuteAndFlip:
        return _KINDS[self.peel](rate=self.rate, choices=self.choices)

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """What the k names promise together if one unit changes every score by at most `sensitivity`."""
        return compose([self._one.guarantee(sensitivity)] * self.k)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        k: int,
        sensitivity: SensitivityLike,
        choices: Sequence[Hashable] | None = None,
        peel: Peel | None = None,
    ) -> Self:
        """The strongest preference that satisfies `guarantee`, by the mechanism that suits its coordinate unless `peel`
        is given.
        """
        bound, count = plain_sensitivity(sensitivity, "Linf"), check_count(k, "k")
        way = peel or ("permute and flip" if type(guarantee) is Pure else "exponential")
        if type(guarantee) is Pure:
            rate = significant(exactly(guarantee.epsilon) / (count * score_range(Fraction(1), bound)), up=False)
            return cls(k=count, rate=tidy(rate), choices=choices, peel=way)
        return least_noise(
            lambda scale: cls(k=count, rate=tidy(significant(1 / scale, up=False)), choices=choices, peel=way),
            lambda m: meets(m.guarantee(bound), guarantee),
            bound.exact * count,
        )

    @classmethod
    def for_error(
        cls,
        amount: Number,
        *,
        k: int,
        candidates: int,
        confidence: float = 0.95,
        choices: Sequence[Hashable] | None = None,
        peel: Peel = "exponential",
    ) -> Self:
        """The weakest preference for which every named candidate is within `amount` of the score at its true rank."""
        unit = cls(k=k, rate=1, choices=choices, peel=peel)
        most = check_positive(amount, "amount")
        rate = significant(exactly(float(unit.error(confidence, candidates=candidates))) / most, up=True)
        return replace(unit, rate=tidy(rate))

    def error(self, confidence: float, *, candidates: int | None = None) -> Accuracy:
        """ln(Σ(candidates left)/(1−confidence))/rate: a union bound over the k choices [L3.EM-U]."""
        sure = check_confidence(confidence)
        if candidates is None and self.choices is None:
            return Accuracy(
                amount=None, confidence=sure, of="every score", reason="the number of candidates is not given"
            )
        count = (
            len(self.choices or ()) if candidates is None else check_count(candidates, "candidates", at_least=self.k)
        )
        left = self.k * count - self.k * (self.k - 1) // 2
        return Accuracy(amount=math.log(left / (1 - sure)) / float(self.rate), confidence=sure, of="every score")

    def sizes(self, value: Data) -> dict[str, int]:
        """How many candidates there are, for `error`. Raises if there are fewer than k."""
        found = self._one.sizes(value)
        if found["candidates"] < self.k:
            raise InvalidArgument(
                f"k={self.k} is more than the {found['candidates']} candidates. Lower k.", code="too-few-choices"
            )
        return found

    def _draw(self, value: Any) -> tuple[Any, ...]:
        self.sizes(value)
        steps, unit = exact_scores(value)
        left, named = np.arange(len(steps)), []
        one = replace(self._one, choices=None)
        for _ in range(self.k):
            place = one._draw(Scores(steps[left], unit))
            named.append(int(left[place]))
            left = np.delete(left, place)
        return tuple(index if self.choices is None else self.choices[index] for index in named)


@lru_cache(maxsize=256)
def chooser_for(limit: Guarantee | Rule, *, times: int = 1) -> type[Exponential | PermuteAndFlip]:
    """Which mechanism to use if `times` equal choices should use up a ledger's limit.

    Where ε binds, permute-and-flip: never a worse choice at equal ε. Where ρ or a Rényi divergence binds, the
    exponential mechanism: its range is bounded, so it costs ε²/8 and not ε²/2, and affords twice the ε. What
    binds is asked of the rule itself: the largest ε of either kind that still fits. Source: [L6.T7], [L3.EM].

    >>> chooser_for(Pure(epsilon=1)).__name__
    'PermuteAndFlip'
    """
    rule = limit if isinstance(limit, Rule) else rule_for(limit)
    count = check_count(times, "times")

    def largest(kind: type[Exponential | PermuteAndFlip]) -> Fraction:
        def fits(scale: Fraction) -> bool:
            return rule.fits(rule.spend(rule.nothing, kind(rate=tidy(1 / (2 * scale))).guarantee(1), count))

        return 1 / least_noise(lambda scale: scale, fits, Fraction(count))

    return Exponential if largest(Exponential) >= _WORST_GAIN * largest(PermuteAndFlip) else PermuteAndFlip
