"""How many clients hold each choice: k-ary response, the lecture's parallel sums, and `histogram`, which picks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, exp_bounds
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors
from discreet.guarantees.privacy_loss.shuffled_pairs import ShiftedBinomialPair, binomial, blanket_of_response
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, tidy
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.reports.shuffle_clients import ChoiceBits, ChoiceResponse
from discreet.shuffle.bit_sums import taught_chance
from discreet.shuffle.fakes import CountedChoices, Fakes
from discreet.shuffle.hashed import HashedHistogram
from discreet.shuffle.protocol import Ints, each_of, far_off, honest_clients, least_that_keeps, validate_goal


@dataclass(frozen=True, kw_only=True)
class ResponseHistogram(CountedChoices):
    """Each client sends its choice, or each other one with probability `lie`: k-ary response, one message.

    Promise: by the privacy blanket. Together, shuffler and analyzer are left with the local
    guarantee of k-ary response.
    Error: unbiased; a count of f has the variance of a blanket of n·choices·lie, and of f lies more.
    Source: [T.4.10]; Balle-Bell-Gascón-Nissim 2019.
    """

    lie: Number
    kind: ClassVar[str] = "histogram by response"
    messages: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._response  # noqa: B018 - checks the lie

    @property
    def _response(self) -> RandomizedResponse:
        return RandomizedResponse(choices=self.choices, lie=self.lie)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        choices: Sequence[Hashable],
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
    ) -> Self:
        """The fewest lies that keep (ε,δ)."""
        least, size = clients if minimum is None else minimum, len(tuple(choices))
        count, goal = honest_clients(least, honest), validate_goal(guarantee)
        local = 1 / (size - 1 + exp_bounds(exactly(goal.epsilon))[0])  # enough without any shuffling
        lie = least_that_keeps(
            lambda lie: ((blanket_of_response(size, lie, count), 1),),
            goal,
            Fraction(1, 10**12),
            local,
            "k-ary response",
        )
        return cls(clients=clients, minimum=least, honest=honest, choices=choices, lie=tidy(lie))

    @property
    def alphabet(self) -> int:
        return len(self.choices)

    def _factors(self, honest: int) -> Factors:
        return ((blanket_of_response(len(self.choices), exactly(self.lie), honest), 1),)

    @property
    def client(self) -> ChoiceResponse:
        return ChoiceResponse(response=self._response)

    def _estimate(self, counts: NDArray[Any], reports: int) -> dict[Hashable, float]:
        lie, truth = float(self.lie), float(self._response.truth)
        return self._named((counts - reports * lie) / (truth - lie))

    @property
    def deviation(self) -> float:
        lie, truth = float(self.lie), float(self._response.truth)
        return math.sqrt(self.clients * lie * (1 - lie)) / (truth - lie)

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        lie, truth, miss = float(self.lie), float(self._response.truth), each_of(1 - sure, len(self.choices))
        # a sum of independent coins: Bernstein, with the largest variance that counts can have
        variance, log = count * max(lie * (1 - lie), truth * (1 - truth)), math.log(2 / miss)
        return Accuracy(amount=bernstein(variance, 1, log) / (truth - lie), confidence=sure, of="every value")

    @property
    def if_they_collude(self) -> Guarantee:
        return self._response.guarantee()

    def _moves(self, fakes: int, reports: int) -> Moves:
        lie, size = exactly(self.lie), len(self.choices)
        gap = exactly(self._response.truth) - lie
        each = (1 - lie, lie, 1 + (size - 2) * lie)
        return Moves(*(float(fakes * one / gap) for one in each))


@dataclass(frozen=True, kw_only=True)
class ParallelSums(CountedChoices):
    """The lecture's two histograms: for every choice a bit and a noise bit, 1 with probability `chance`.

    A client's bit is 1 at its own choice and 0 elsewhere, or, `inverted`, 0 at its own and 1 elsewhere. Inverted, a
    choice that nobody holds is reported as exactly 0, always; counts below about n·chance may be lost.

    Promise: a replaced client moves two of the sums, by one each. Source: [L8.HIST1], [L8.HIST2].
    Error: as of `TwoMessageBitSum`, for all choices at once.
    """

    chance: Number
    inverted: bool = False
    kind: ClassVar[str] = "histogram by parallel sums"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exactly(self.chance) < 1 or not isinstance(self.inverted, bool):
            raise InvalidArgument(
                "chance must be above 0 and below 1, and inverted must be True or False.", code="out-of-range"
            )

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        choices: Sequence[Hashable],
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
        inverted: bool = False,
        calibration: str = TIGHT,
    ) -> Self:
        """The least noise that keeps (ε,δ) for both sums together; taught: the lecture's, at ε/2 and δ/2."""
        check_calibration(calibration)
        least = clients if minimum is None else minimum
        count, goal = honest_clients(least, honest), validate_goal(guarantee)
        if calibration == TAUGHT:
            half = Approx(epsilon=exactly(goal.epsilon) / 2, delta=exactly(goal.delta) / 2)
            chance = taught_chance(half, count)
        else:
            chance = least_that_keeps(
                lambda p: _two_sums(count, p), goal, Fraction(1, 10**12), Fraction(1, 2), "noise bit"
            )
        return cls(
            clients=clients, minimum=least, honest=honest, choices=choices, chance=tidy(chance), inverted=inverted
        )

    @property
    def messages(self) -> int:
        return 2 * len(self.choices)

    @property
    def alphabet(self) -> int:
        return 2 * len(self.choices)

    def _factors(self, honest: int) -> Factors:
        return _two_sums(honest, exactly(self.chance))

    @property
    def client(self) -> ChoiceBits:
        return ChoiceBits(size=len(self.choices), chance=self.chance, inverted=self.inverted)

    def _readable(self, known: Ints) -> int:
        return int(np.bincount(known // 2, minlength=len(self.choices)).min()) // 2  # a report has two of each choice

    def _estimate(self, counts: NDArray[Any], reports: int) -> dict[Hashable, float]:
        ones, expected = counts[1::2], reports * float(self.chance)
        if not self.inverted:
            return self._named(ones - expected)
        return self._named(np.where(ones >= reports, 0.0, reports - (ones - expected)))

    @property
    def deviation(self) -> float:
        chance = float(self.chance)
        return math.sqrt(self.clients * chance * (1 - chance))

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        chance = float(self.chance)
        away = far_off(binomial(count, exactly(self.chance)), count * chance, each_of(1 - sure, len(self.choices)))
        if self.inverted:  # a count that is lost was below the noise bits that hid it
            away = max(away, count * chance + away)
        return Accuracy(amount=away, confidence=sure, of="every value")

    def _moves(self, fakes: int, reports: int) -> Moves:
        """All messages are ones of a single choice, so that no complete report is added.

        Inverted, a count is lost or appears as a whole: what it can be just above the threshold is added.
        """
        chance, size, sent = exactly(self.chance), len(self.choices), fakes * self.messages
        if not self.inverted or not fakes:
            return Moves(float(sent), float(fakes * chance), float(sent))
        others = reports - fakes
        up, down = fakes + reports * chance, min(others, sent) + others * chance
        together = min(size * others * chance + sent, size * max(up, down))
        return Moves(float(up), float(down), float(together))


def _two_sums(honest: int, chance: Fraction) -> Factors:
    """One sum gains what another loses."""
    one = ShiftedBinomialPair(honest, chance)
    return ((one, 1), (one.mirrored(), 1))


METHODS = ("fakes", "response", "hashed", "parallel", "inverted")


def histogram(
    *,
    choices: Sequence[Hashable],
    clients: int,
    epsilon: Number,
    delta: Number,
    honest: Number = 1,
    minimum: int | None = None,
    method: str = "fakes",
    calibration: str = TIGHT,
) -> Any:
    """How many of `clients` hold each choice, in the shuffle model.

    By default each client sends its choice among a few fakes; "response" sends one message, "parallel" and "inverted"
    are the lecture's, and "hashed" is for domains with very many choices. The guarantee is for a replaced client, holds
    when at least `minimum` reports come (all, by default) and the fraction `honest` of those follows the protocol.
    `poll.error(0.95)` says how wrong it will be before anyone is asked.
    """
    goal = Approx(epsilon=epsilon, delta=delta)
    given: dict[str, Any] = {"choices": choices, "clients": clients, "minimum": minimum, "honest": honest}
    if method not in METHODS:
        raise InvalidArgument(f"method must be one of {', '.join(METHODS)}.", code="not-an-option")
    if method in ("parallel", "inverted"):
        return ParallelSums.for_guarantee(goal, **given, inverted=method == "inverted", calibration=calibration)
    if calibration != TIGHT:
        raise InvalidArgument(
            'The taught noise is defined only for method="parallel" and "inverted". '
            "Choose one of them, or leave out calibration=.",
            code="formula-does-not-apply",
        )
    if method == "hashed":
        return HashedHistogram.for_guarantee(goal, **given)
    return (Fakes if method == "fakes" else ResponseHistogram).for_guarantee(goal, **given)
