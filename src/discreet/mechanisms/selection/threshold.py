"""Answers that appear only above a threshold: keys that enough people have, and the first of many questions to pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import (
    Number,
    check_count,
    check_positive,
    exactly,
    exp_bounds,
    float_up,
    significant,
)
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import as_numbers, check_step, step_for, to_lattice
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows import key_of
from discreet.rows.containers import Data
from discreet.rows.key_columns import KeyColumns

SMALLEST_DELTA = Fraction(1, 10**280)
"""A smaller δ, or its parts, would be no double that can be rounded up: no threshold is known to keep it."""
_FARTHEST = Fraction(2000)


@dataclass(frozen=True, kw_only=True)
class KeySelection:
    """Adds integer Laplace noise to each key's count of people, and shows the keys that reach `threshold` with noisy
    counts.

    The keys of each person must already be limited to `keys_per_person`, with one count each.

    Promise: add or remove a person: a key that person alone holds appears with probability P[1+noise ≥
    threshold], the mass AT the threshold included; for all their keys together that is δ. On the other keys
    the loss is at most keys_per_person/scale.
    Error: of a shown count, the noise's; keys held by few may not appear at all.
    Source: Korolova-Kenthapadi-Mishra-Ntoulas 2009, with exact noise.
    """

    scale: Number
    threshold: int
    keys_per_person: int = 1

    def __post_init__(self) -> None:
        check_positive(self.scale, "scale")
        check_count(self.keys_per_person, "keys_per_person")
        check_count(self.threshold, "threshold", at_least=2)

    def _alone_bound(self) -> Fraction:
        """P[1 + noise ≥ threshold], rounded up: q^(threshold−1)/(1+q)."""
        rate = 1 / exactly(self.scale)
        alone = min(rate * (self.threshold - 1), _FARTHEST)  # where it is below all doubles
        return exp_bounds(-alone)[1] / (1 + (exp_bounds(-rate)[0] if rate < _FARTHEST else 0))

    @property
    def delta(self) -> float:
        """The probability that any key that only one person has appears, rounded up."""
        kept = math.log1p(-float_up(self._alone_bound()))
        return -math.expm1(self.keys_per_person * kept) * (1 + 1e-12)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        if sensitivity is not None and plain_sensitivity(sensitivity).exact != self.keys_per_person:
            raise InvalidArgument(
                "The sensitivity of key selection is keys_per_person, a field of the mechanism. Leave sensitivity= "
                "out.",
                code="sensitivity-not-taken",
            )
        noise = LaplacePair(self.keys_per_person, exactly(self.scale))
        leak = ResponsePair(Fraction(0), Fraction(self.delta))
        return LossDistribution(factors=((noise, 1), (leak, 1)), neighbors="add_or_remove")

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, keys_per_person: int = 1) -> Self:
        """The lowest threshold at scale keys_per_person/ε that keeps (ε,δ)."""
        if not isinstance(guarantee, Approx) or not exactly(guarantee.delta):
            raise InvalidArgument(
                "A release of undeclared keys needs a delta, such as Approx(epsilon=1, delta=1e-8).", code="needs-delta"
            )
        keys, delta = check_count(keys_per_person, "keys_per_person"), exactly(guarantee.delta)
        if delta < SMALLEST_DELTA:
            raise InvalidArgument(
                "A release of undeclared keys needs a delta of at least 1e-280. Give a larger one.", code="out-of-range"
            )
        scale = significant(keys / exactly(guarantee.epsilon), up=True)

        def keeps(threshold: int) -> bool:
            return cls(scale=tidy(scale), threshold=threshold, keys_per_person=keys).delta <= delta

        found = bracket(keeps, 2, least=2, most=math.ceil(scale) * 2**20)
        assert found is not None  # a key of one person passes it with a probability far below the smallest delta
        return cls(scale=tidy(scale), threshold=bisect(keeps, *found), keys_per_person=keys)

    @classmethod
    def for_error(cls, amount: Number, *, delta: Number, keys_per_person: int = 1, confidence: float = 0.95) -> Self:
        """The most noise whose shown counts stay within `amount`, with the threshold that keeps δ."""
        noise = Laplace.for_error(amount, confidence=confidence, step=1)
        epsilon = significant(check_count(keys_per_person, "keys_per_person") / exactly(noise.scale), up=True)
        return cls.for_guarantee(Approx(epsilon=epsilon, delta=delta), keys_per_person=keys_per_person)

    def error(self, confidence: float) -> Accuracy:
        return Laplace(scale=self.scale, step=1).error(confidence)

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        if not isinstance(value, Mapping):
            raise InvalidArgument("Give how many people hold each key, as a mapping: {'flu': 12}.", code="wrong-type")

    def _draw(self, value: Mapping[Any, int]) -> dict[Any, int]:
        """A key is shown as one value for all equal keys, never as the value of the person who came first."""
        self.check(value)
        totals: dict[Any, int] = {}
        for key, count in value.items():
            if (known := key_of(key)) is not None and isinstance(count, int | np.integer):
                # not their sum: keys that differ only by a user-defined class would count one person twice
                totals[known] = max(totals.get(known, 0), int(count))
        return self._shown(totals)

    def _shown(self, value: Mapping[Any, int]) -> dict[Any, int]:
        # a NULL key belongs to nobody; the output is sorted by key, so its order reveals nothing
        keys = [key for key, count in value.items() if key == key and isinstance(count, int | np.integer)]
        noisy = self._noisy(np.array([int(value[key]) for key in keys] + [None], dtype=object)[:-1])
        shown = [(key, int(count)) for key, count in zip(keys, noisy, strict=True) if count >= self.threshold]
        return dict(sorted(shown, key=lambda item: order_of(item[0])))

    def _noisy(self, people: NDArray[Any]) -> NDArray[Any]:
        """The noisy count of each key."""
        return np.asarray(people + samplers.discrete_laplace(exactly(self.scale), len(people)))


@dataclass(frozen=True, kw_only=True)
class SelectedGroups:
    """Shows the groups that enough people are in, and answers every question of `answers` in those groups. Groups that
    are `known`, because they were shown before, are shown in any case.

    Promise: the composition of the selection and of the answers. Groups that are not selected are answered by nobody:
    what is drawn depends on the data through the selection only. Which groups are known does not depend on these data.
    Error: of the answers, in a group that is shown.
    """

    selection: KeySelection
    answers: Any
    known: tuple[tuple[Any, ...], ...] | None = field(default=None, metadata={"later": True})

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return compose([self.selection.guarantee(), self.answers.guarantee(sensitivity)])

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, answers: Any, sensitivity: SensitivityLike, keys_per_person: int = 1
    ) -> Self:
        """The selection that satisfies (ε,δ) together with these answers: it gets the rest of ε, and all of δ."""
        used = answers.guarantee(sensitivity).largest_loss
        if not isinstance(guarantee, Approx) or used is None or used >= exactly(guarantee.epsilon):
            raise InvalidArgument(
                "The answers alone cost more than this guarantee, or are not pure. Give them a smaller ε.",
                code="guarantee-out-of-reach",
            )
        left = Approx(epsilon=exactly(guarantee.epsilon) - used, delta=guarantee.delta)
        return cls(selection=KeySelection.for_guarantee(left, keys_per_person=keys_per_person), answers=answers)

    def error(self, confidence: float) -> Any:
        return self.answers.error(confidence)

    def _draw(self, value: tuple[KeyColumns, NDArray[Any], Sequence[Any]]) -> tuple[KeyColumns, list[Any]]:
        """From the keys of all groups, which are all different, how many people are in each, and for each question
        what it asks of each group.
        """
        keys, people, parts = value
        shown = self.selection._noisy(people) >= self.selection.threshold
        if self.known:
            shown |= keys.places_in(KeyColumns.of(self.known, keys.kinds)) >= 0
        places = np.flatnonzero(shown)
        places = places[keys.take(places).order()]  # sorted by key, so the order reveals nothing
        chosen = [part[places] if isinstance(part, np.ndarray) else [part[p] for p in places] for part in parts]
        return keys.take(places), list(self.answers._draw(chosen))


def order_of(key: Any) -> tuple[int, str, Any, str]:
    """A total order of keys of any kind: numbers by size, dates by time, other values by their text, NULL last. Keys of
    several parts are ordered by the first one, then by the next.
    """
    match key:
        case None:
            return 2, "", 0, ""
        case tuple():
            return 1, "tuple", tuple(map(order_of, key)), ""
        case int() | float() if key == key:
            return 0, "", key, str(key)
    return 1, type(key).__name__, 0, str(key)


@dataclass(frozen=True, kw_only=True)
class AboveThreshold:
    """The index of the first answer whose noisy value reaches the noisy threshold, or None.

    Promise: ε-DP with ε = Δ/threshold_scale + 2Δ/answer_scale (Δ/answer_scale for monotone answers),
    however many questions come before, for ONE index. In zCDP it costs ε²/2.
    Error: with confidence, every answer passed over is below threshold + amount and the one named above
    threshold − amount.
    Source: Dwork-Roth 2014, the sparse vector; noise as in [L6.T7].
    """

    threshold: Number
    threshold_scale: Number
    answer_scale: Number
    step: Number | None = None

    def __post_init__(self) -> None:
        exactly(self.threshold, "threshold")
        smaller = min(
            check_positive(self.threshold_scale, "threshold_scale"),
            check_positive(self.answer_scale, "answer_scale"),
        )
        object.__setattr__(self, "step", step_for(smaller) if self.step is None else check_step(self.step))

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity, "Linf")
        moved = bound.to("Linf").in_steps(exactly(self.step)) * exactly(self.step)
        factor = 1 if bound.monotone else 2
        epsilon = moved / exactly(self.threshold_scale) + factor * moved / exactly(self.answer_scale)
        return Pure(epsilon=epsilon, protects=bound.unit)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, threshold: Number, sensitivity: SensitivityLike, step: Number | None = None
    ) -> Self:
        """A third of ε for the threshold and two thirds for the answers. Monotone answers need only half of that."""
        if type(guarantee) is not Pure:
            raise InvalidArgument(
                "AboveThreshold is calibrated for Pure. Use Pure(epsilon=…).", code="guarantee-not-supported"
            )
        bound = plain_sensitivity(sensitivity, "Linf")
        epsilon = exactly(guarantee.epsilon)
        share = Fraction(1, 2) if bound.monotone else Fraction(1, 3)
        fixed = step_for(bound.exact / epsilon) if step is None else check_step(step)
        moved = bound.to("Linf").in_steps(fixed) * fixed
        first = significant(moved / (epsilon * share), up=True)
        second = significant((1 if bound.monotone else 2) * moved / (epsilon * (1 - share)), up=True)
        return cls(threshold=threshold, threshold_scale=tidy(first), answer_scale=tidy(second), step=fixed)

    @classmethod
    def for_error(
        cls,
        amount: Number,
        *,
        threshold: Number,
        questions: int,
        confidence: float = 0.95,
        step: Number | None = None,
    ) -> Self:
        """The most noise for which `questions` answers are decided correctly up to `amount` from the threshold."""
        sure = 1 - (1 - check_confidence(confidence)) / 2
        part = check_positive(amount, "amount") / 2
        first = Laplace.for_error(part, confidence=sure, step=step)
        second = Laplace.for_error(part, confidence=sure, step=step, values=questions)
        return cls(threshold=threshold, threshold_scale=first.scale, answer_scale=second.scale, step=step)

    def sizes(self, value: Data) -> dict[str, int]:
        """How many questions there are, for `error`."""
        return {"questions": max(len(value), 1)} if isinstance(value, Sized) else {}

    def error(self, confidence: float, *, questions: int = 1) -> Accuracy:
        sure = check_confidence(confidence)
        each = 1 - (1 - sure) / 2
        first = Laplace(scale=self.threshold_scale, step=self.step).error(each)
        second = Laplace(scale=self.answer_scale, step=self.step).error(
            each, values=check_count(questions, "questions")
        )
        return Accuracy(amount=float(first) + float(second), confidence=sure, of="threshold")

    def _draw(self, value: Iterable[Any]) -> int | None:
        bar = self._bar()
        for index, answer in enumerate(value):
            if self._reaches(bar, answer):
                return index
        return None

    def _bar(self) -> int:
        """The noisy threshold, in steps: one for all answers up to the first that reaches it."""
        step = exactly(self.step)
        bar = int(to_lattice(as_numbers(exactly(self.threshold)).reshape(-1), step)[0])
        return bar + int(samplers.discrete_laplace(exactly(self.threshold_scale) / step, 1)[0])

    def _reaches(self, bar: int, answer: Any) -> bool:
        """Whether a noisy answer reaches the bar."""
        step = exactly(self.step)
        place = int(to_lattice(as_numbers(answer).reshape(-1), step)[0])
        return place + int(samplers.discrete_laplace(exactly(self.answer_scale) / step, 1)[0]) >= bar
