"""Keys that enough people have, if nobody says how many one person may have: each key is a coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, check_probability, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import RenyiCurvePair
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.rules.coordinates import best_order, conversion_cost
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.selection.key_chances import Curve, checked, curves, divergence
from discreet.mechanisms.selection.key_holders import DEGREES, Holders, KeyHolders
from discreet.mechanisms.selection.threshold import SMALLEST_DELTA, order_of
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

SHARES = (Fraction(1, 10), Fraction(9, 10))
"""The parts of loss and leak for each round. The first finds keys that many people have, which then need no weight."""
LEAST = Fraction(1, 1000)
"""The curves of a smaller ε are too long to be made."""
LOWER = Fraction(17, 20)
"""The order, less 1, in parts of the one that suits Gaussian noise best. Rare events prefer a lower one."""
MOST = 10**9
"""The largest order, and the largest loss."""


@dataclass(frozen=True, kw_only=True)
class CommonKeys:
    """Shows each key with a chance that grows with the number of people who have it, faster if they have few keys.

    In each round a key is a coin, with a chance from `key_chances.curves`. Keys that a round shows do not count in the
    next one, so people have more weight for their other keys. Nobody has to have few keys: one of t keys moves each
    coin by 1/t of what one person may move. The curves are made for up to `keys_per_person` keys, and people with more
    count less. Only the keys are released, sorted.

    Promise: add or remove a person. The coins of all other keys stay the same. In round r, those of the person's keys
    differ by a Rényi divergence of the given `order` of at most `losses[r]`, except for a part of the outcomes with
    probability at most `leaks[r]`, which contains every key that only this person has. The next round depends on the
    data through the keys that are shown, so losses and leaks add up. A replaced person is removed and added: coins of
    different keys are independent, so twice the losses, and twice the leaks.
    Error: a key is shown if enough people have it: see `error`.
    Source: decision 0018; for one key a person, Desfontaines et al. 2022.
    """

    order: Number
    losses: tuple[Number, ...]
    leaks: tuple[Number, ...]
    keys_per_person: int = 300

    def __post_init__(self) -> None:
        if exactly(self.order, "order") <= 1:
            raise InvalidArgument("order must be above 1, such as 16.", code="out-of-range")
        for name, check in (("losses", check_positive), ("leaks", check_probability)):
            given = getattr(self, name)
            if not isinstance(given, tuple | list) or not given:
                raise InvalidArgument(f"{name} must be a tuple with a number for each round.", code="wrong-type")
            for one in given:
                check(one, name)
            object.__setattr__(self, name, tuple(given))
        if len(self.losses) != len(self.leaks):
            raise InvalidArgument("losses and leaks need a number for each round.", code="wrong-shape")
        if check_count(self.keys_per_person, "keys_per_person") > DEGREES[-1]:
            raise InvalidArgument(f"keys_per_person must be at most {DEGREES[-1]}.", code="out-of-range")
        if max(map(exactly, (self.order, *self.losses))) > MOST:
            raise InvalidArgument(f"order and losses must be at most {MOST:,}.", code="out-of-range")
        for place in range(len(self.losses)):
            checked(*self._numbers(place))

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        if sensitivity is not None and plain_sensitivity(sensitivity).exact != 1:
            raise InvalidArgument(
                "One person moves all that CommonKeys counts on. Leave sensitivity= out.", code="sensitivity-not-taken"
            )
        rounds = tuple((exactly(loss), exactly(leak)) for loss, leak in zip(self.losses, self.leaks, strict=True))
        points = _divergences(exactly(self.order), rounds, self.keys_per_person)
        leak = sum((leak for _, leak in rounds), Fraction(0))
        factors = ((RenyiCurvePair(points), 1), (ResponsePair(Fraction(0), leak), 1))
        return LossDistribution(factors=factors, neighbors="add_or_remove")

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, keys_per_person: int = 300) -> Self:
        """The curves that keep (ε,δ): half of δ for keys of one person, half for the conversion of the divergence.

        If the guarantee is stated for replaced people, it is kept for them.
        """
        if not isinstance(guarantee, Approx) or not exactly(guarantee.delta):
            raise InvalidArgument(
                "A release of undeclared keys needs a delta, such as Approx(epsilon=1, delta=1e-8).", code="needs-delta"
            )
        epsilon, half = exactly(guarantee.epsilon), exactly(guarantee.delta) / 2
        times = 2 if guarantee.relation == "replace" else 1
        if 2 * half < SMALLEST_DELTA:
            raise InvalidArgument(
                "A release of undeclared keys needs a delta of at least 1e-280. Give a larger one.", code="out-of-range"
            )
        if epsilon < LEAST:
            raise InvalidArgument(
                "CommonKeys needs an epsilon of at least 0.001. For a smaller one use WeightedKeys.",
                code="out-of-range",
            )
        order = significant(1 + LOWER * (best_order(epsilon, half) - 1), up=False, digits=6)
        spent = 2 * half * order / (order - 1)
        loss = (epsilon - conversion_cost(order, half) - spent) * (1 - Fraction(1, 10**9))
        if loss <= 0:
            raise InvalidArgument(
                "No chance of showing a key keeps this guarantee. Ask for a weaker one.", code="guarantee-out-of-reach"
            )
        return cls(
            order=tidy(order),
            losses=tuple(tidy(significant(loss * share / times, up=False)) for share in SHARES),
            leaks=tuple(tidy(significant(half * share / times, up=False)) for share in SHARES),
            keys_per_person=keys_per_person,
        )

    def people_needed(self, keys: int) -> float:
        """How many people with so many keys each make it as likely as not that a key is shown."""
        return float(self.error(0.5, keys=keys))

    def error(self, confidence: float, *, keys: int | None = None) -> Accuracy:
        """The number of people who make sure that a key is shown, if each has up to so many keys that are not shown."""
        sure = check_confidence(confidence)
        each = self.keys_per_person if keys is None else check_count(keys, "keys")
        needed = [
            math.ceil(int(np.searchsorted(curve.chances, sure)) / votes)
            for curve in self._curves(len(self.losses) - 1)
            if (votes := curve.votes(each))
        ]
        if each > DEGREES[-1] or not needed:
            return Accuracy(amount=None, confidence=sure, of="holders", reason="people with so many keys have no vote")
        return Accuracy(amount=float(min(needed)), confidence=sure, of="holders")

    def check(self, value: Data) -> None:
        """Refuse what cannot be asked for counts."""
        if not isinstance(value, KeyHolders):
            raise InvalidArgument(
                "Give pairs of people and keys: PersonKeys(person, key, keys), or another value with `holders`.",
                code="wrong-type",
            )

    def _numbers(self, place: int) -> tuple[float, float, float, int]:
        order, loss, leak = (float(exactly(one)) for one in (self.order, self.losses[place], self.leaks[place]))
        return order, loss, leak, self.keys_per_person

    def _curves(self, place: int) -> tuple[Curve, ...]:
        return curves(*self._numbers(place))

    def _draw(self, value: KeyHolders) -> list[Any]:
        self.check(value)
        shown: list[Any] = []
        for place in range(len(self.losses)):
            shown += _shown(value.holders(tuple(shown)), self._curves(place))
        return sorted(shown, key=order_of)


@lru_cache(maxsize=64)
def _divergences(
    order: Fraction, rounds: tuple[tuple[Fraction, Fraction], ...], keys: int
) -> tuple[tuple[Fraction, Fraction], ...]:
    """Orders, each with the divergence that one person causes in all rounds, by the chances that are used.

    At the order of the curves it is what they were made for. What is left of a law after a part is set aside is divided
    by its mass: this adds a little.
    """
    aside = 2 * sum((leak for _, leak in rounds), Fraction(0))
    made = [(curves(float(order), float(loss), float(leak), keys), float(leak)) for loss, leak in rounds]
    points = [(order, sum((loss for loss, _ in rounds), Fraction(0)) + aside * order / (order - 1))]
    for halved in range(1, 5):
        lower = 1 + (order - 1) / 2**halved
        moved = sum(Fraction(divergence(curve, float(lower), leak)) for curve, leak in made)
        points.append((lower, moved + aside * lower / (lower - 1)))
    return tuple(sorted(points))


def _shown(holders: Holders, made: tuple[Curve, ...]) -> list[Any]:
    """The keys whose coins are heads."""
    likeliest = np.zeros(len(holders.keys))
    small, hides = np.zeros(len(holders.keys)), np.zeros(len(holders.keys), dtype=bool)
    for curve in made:
        votes = np.minimum(holders.votes(curve), len(curve.small) - 1)
        chances, upper = curve.chances[votes], votes >= curve.middle
        # of two chances near 1, the smaller chance of staying hidden tells them apart
        better = np.where(upper & hides, curve.small[votes] < small, chances > likeliest)
        likeliest = np.where(better, chances, likeliest)
        small, hides = np.where(better, curve.small[votes], small), np.where(better, upper, hides)
    heads = np.zeros(len(small), dtype=bool)
    for chance in np.unique(small).tolist():
        places = np.flatnonzero(small == chance)
        heads[places] = samplers.bernoulli(Fraction(chance), len(places))
    # a NULL key belongs to nobody
    return [
        key for key, is_shown in zip(holders.keys, (heads ^ hides).tolist(), strict=True) if is_shown and key == key
    ]
