"""How many clients hold a one: one message each, or the lecture's two. [L8.SUM]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, log_bounds, significant
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.guarantees.privacy_loss.shuffled_pairs import ShiftedBinomialPair, binomial, law_of_sum
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, tidy
from discreet.mechanisms.reports.local_records import places_below
from discreet.mechanisms.reports.shuffle_clients import BitAndNoise, TurnedBit
from discreet.shuffle.protocol import Ints, Protocol, far_off, honest_clients, least_that_keeps, validate_goal

_MOST_PIECES, _WIDEST = 400, 50  # of the numbers of ones, for one bound on the error of each; in deviations


class _Bits(Protocol):
    """One bit of each client: True or False, 1 or 0. Anything else is sent as a random bit, so that no error can
    tell.
    """

    @property
    def takes(self) -> str:
        return "1 or 0, or True or False"

    publishes = "the sum"

    def _places(self, values: Any) -> Ints:
        return places_below(values, 2)


@dataclass(frozen=True, kw_only=True)
class BitSum(_Bits):
    """Each client sends its bit, turned with probability `lie`.

    Promise: that of `RandomizedBitsPair`: the sum of the honest clients' bits with the noise that turning them makes.
    Together, shuffler and analyzer learn a bit with ln((1−lie)/lie).
    Error: (sum − n·lie)/(1−2·lie) is unbiased with standard deviation √(n·lie·(1−lie))/(1−2·lie).
    Source: Cheu et al. 2019, calibrated exactly.
    """

    lie: Number
    kind: ClassVar[str] = "bit sum"
    messages: ClassVar[int] = 1
    alphabet: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exactly(self.lie) < Fraction(1, 2):
            raise InvalidArgument("lie must be above 0 and below one half.", code="out-of-range")

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, clients: int, minimum: int | None = None, honest: Number = 1
    ) -> Self:
        """The fewest lies that keep (ε,δ)."""
        least = clients if minimum is None else minimum
        count = honest_clients(least, honest)
        lie = _least_lie(validate_goal(guarantee), check_count(count, "honest clients", at_least=2))
        return cls(clients=clients, minimum=least, honest=honest, lie=tidy(lie))

    def _factors(self, honest: int) -> Factors:
        return ((RandomizedBitsPair(honest, exactly(self.lie)), 1),)

    @property
    def client(self) -> TurnedBit:
        return TurnedBit(lie=self.lie)

    def _estimate(self, counts: NDArray[Any], reports: int) -> float:
        lie = float(self.lie)
        return float((counts[1] - reports * lie) / (1 - 2 * lie))

    @property
    def deviation(self) -> float:
        lie = float(self.lie)
        return math.sqrt(self.clients * lie * (1 - lie)) / (1 - 2 * lie)

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        away = _noise_of_bits(count, exactly(self.lie), 1 - sure)
        return Accuracy(amount=away / (1 - 2 * float(self.lie)), confidence=sure)

    @property
    def if_they_collude(self) -> Guarantee:
        return self.client.guarantee()

    def _moves(self, fakes: int, reports: int) -> Moves:
        lie = exactly(self.lie)
        return Moves(float(fakes * (1 - lie) / (1 - 2 * lie)), float(fakes * lie / (1 - 2 * lie)))


@lru_cache(maxsize=256)
def _least_lie(goal: Approx, clients: int) -> Fraction:
    half = Fraction(499_999, 1_000_000)
    return least_that_keeps(
        lambda lie: ((RandomizedBitsPair(clients, lie), 1),), goal, Fraction(1, 10**12), half, "randomized bit"
    )


@lru_cache(maxsize=256)
def _noise_of_bits(clients: int, lie: Fraction, miss: float) -> float:
    """How far off a sum of turned bits may be, whatever they were, but with probability `miss`.

    The more ones, the lower the noise Bin(clients − ones, lie) − Bin(ones, lie), for every outcome and not only on
    average. So with a to b ones it lies between that of b and that of a. More ones than half mirror fewer.
    Noise too wide for tables is nearly normal: its distribution function to 0.56·Σ E|X|³/deviation³ (Shevtsova 2010).
    """
    half, deviation = clients // 2, math.sqrt(clients * lie * (1 - lie))
    if deviation > _WIDEST:
        from scipy.special import ndtri

        room = miss - 2 * 0.56 * float(lie**2 + (1 - lie) ** 2) / deviation
        safe = bernstein(deviation**2, 1, math.log(2 / miss))
        return min(safe, -float(ndtri(room / 2)) * deviation * (1 + 1e-9)) if room > 0 else safe
    pieces = min(half + 1, _MOST_PIECES, 20 + math.ceil(20 * deviation))
    starts = np.linspace(0, half + 1, pieces + 1).astype(np.int64).tolist()
    return max(_off_between(clients, lie, first, after - 1, miss) for first, after in pairwise(starts))


def _off_between(clients: int, lie: Fraction, first: int, last: int, miss: float) -> float:
    (low, high), (lowest, highest) = (
        law_of_sum(binomial(clients - ones, lie), binomial(ones, 1 - lie)) for ones in (last, first)
    )
    mean = [float(lie * (clients - 2 * ones)) for ones in (last, first)]
    above = lowest - first + np.arange(len(highest)) - mean[0]
    below = mean[1] - (low - last + np.arange(len(high)))
    away, masses = np.concatenate([above, below]), np.concatenate([highest, high])
    order = np.argsort(-away, kind="stable")
    beyond = np.cumsum(masses[order]) * (1 + 1e-9) + 1e-30
    return float(away[order][int(np.searchsorted(beyond, miss, side="right"))])


@dataclass(frozen=True, kw_only=True)
class TwoMessageBitSum(_Bits):
    """The lecture's protocol: each client sends its bit as it is, and a noise bit that is 1 with probability `chance`.

    Promise: Bin(n, chance) against the same plus one. Together, shuffler and analyzer learn the bit.
    Error: sum − n·chance has the standard deviation √(n·chance·(1−chance)). Source: [L8.SUM], taught and tight.
    """

    chance: Number
    kind: ClassVar[str] = "bit sum in two messages"
    messages: ClassVar[int] = 2
    alphabet: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exactly(self.chance) < 1:
            raise InvalidArgument("chance must be above 0 and below 1.", code="out-of-range")

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
        calibration: str = TIGHT,
    ) -> Self:
        """The least noise that keeps (ε,δ); `calibration="taught"` uses p = 48 ln(2/δ)/(ε²n), for ε ≤ 1."""
        check_calibration(calibration)
        least = clients if minimum is None else minimum
        count, goal = honest_clients(least, honest), validate_goal(guarantee)
        chance = taught_chance(goal, count) if calibration == TAUGHT else _least_chance(goal, count)
        return cls(clients=clients, minimum=least, honest=honest, chance=tidy(chance))

    def _factors(self, honest: int) -> Factors:
        return ((ShiftedBinomialPair(honest, exactly(self.chance)), 1),)

    @property
    def client(self) -> BitAndNoise:
        return BitAndNoise(chance=self.chance)

    def _estimate(self, counts: NDArray[Any], reports: int) -> float:
        return float(counts[1] - reports * float(self.chance))

    @property
    def deviation(self) -> float:
        chance = float(self.chance)
        return math.sqrt(self.clients * chance * (1 - chance))

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        law = binomial(count, exactly(self.chance))
        return Accuracy(amount=far_off(law, count * float(self.chance), 1 - sure), confidence=sure)

    def _moves(self, fakes: int, reports: int) -> Moves:
        """Two ones in each report, or two zeros."""
        chance = exactly(self.chance)
        return Moves(float(fakes * (2 - chance)), float(fakes * chance))


def taught_chance(goal: Approx, clients: int) -> Fraction:
    """p = 48 ln(2/δ)/(ε²n), proved for ε ≤ 1; refused where it is no probability [L8.SUM]."""
    epsilon = exactly(goal.epsilon)
    if epsilon > 1:
        raise InvalidArgument(
            "The lecture's noise is proved only for ε ≤ 1. Use calibration='tight'.", code="formula-does-not-apply"
        )
    chance = significant(48 * log_bounds(2 / exactly(goal.delta))[1] / (epsilon**2 * clients), up=True)
    if chance >= 1:
        raise InvalidArgument(
            f"The lecture's noise needs more clients: its probability would be {float(chance):.3g}. "
            "Use calibration='tight'.",
            code="formula-does-not-apply",
        )
    return chance


@lru_cache(maxsize=256)
def _least_chance(goal: Approx, clients: int) -> Fraction:
    return least_that_keeps(
        lambda chance: ((ShiftedBinomialPair(clients, chance), 1),),
        goal,
        Fraction(1, 10**12),
        Fraction(1, 2),
        "noise bit",
    )


def bit_sum(
    *,
    clients: int,
    epsilon: Number,
    delta: Number,
    honest: Number = 1,
    minimum: int | None = None,
    method: str = "response",
    calibration: str = TIGHT,
) -> BitSum | TwoMessageBitSum:
    """How many of `clients` hold a one, in the shuffle model: by one randomized bit each, or in "two messages".

    The guarantee is for a replaced client, holds when at least `minimum` reports come (all, by default) and the
    fraction `honest` of those follows the protocol. `poll.error(0.95)` says how wrong it will be, before it is asked.
    """
    goal = Approx(epsilon=epsilon, delta=delta)
    given: dict[str, Any] = {"clients": clients, "minimum": minimum, "honest": honest}
    if method == "two messages":
        return TwoMessageBitSum.for_guarantee(goal, **given, calibration=calibration)
    if method != "response":
        raise InvalidArgument('method must be "response" or "two messages".', code="not-an-option")
    if calibration != TIGHT:
        raise InvalidArgument(
            'The taught noise is defined only for method="two messages". '
            "Choose that method, or leave out calibration=.",
            code="formula-does-not-apply",
        )
    return BitSum.for_guarantee(goal, **given)
