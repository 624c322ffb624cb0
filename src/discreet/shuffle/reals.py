"""Sums and means of numbers in the shuffle model: each binary digit is a randomized bit of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.conversions import gaussian_delta
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors, LossDistribution
from discreet.guarantees.privacy_loss.randomized_bits import RandomizedBitsPair
from discreet.mechanisms.protocol import meets, tidy
from discreet.mechanisms.reports.local_records import FOREIGN, shares_between
from discreet.mechanisms.reports.shuffle_clients import TurnedDigits
from discreet.shuffle.protocol import Ints, Protocol, honest_clients, validate_goal

PLANES = 8


@dataclass(frozen=True, kw_only=True)
class BitPlanes(Protocol):
    """Each client rounds its number, within `low` and `high`, to one of 2^planes − 1 steps and sends every binary
    digit, turned with the probability `lies` has for it.

    Promise: the composition of one `BitSum` for each digit. Together, shuffler and analyzer learn each digit with
    ln((1−lie)/lie).
    Error: digits have weights 1/2, 1/4, …; rounding to steps is right on average. Source: [L8.SUM], by digits.
    """

    low: Number
    high: Number
    lies: tuple[Number, ...]
    of: str = "sum"
    kind: ClassVar[str] = "sum by digits"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ends(self.low, self.high)
        if not self.lies or not all(0 < exactly(lie) < Fraction(1, 2) for lie in self.lies):
            raise InvalidArgument(
                "lies must hold one number above 0 and below one half for each digit.", code="out-of-range"
            )
        if self.of not in ("sum", "mean"):
            raise InvalidArgument('of must be "sum" or "mean".', code="not-an-option")
        object.__setattr__(self, "lies", tuple(self.lies))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        between: Sequence[Number],
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
        planes: int = PLANES,
        of: str = "sum",
    ) -> Self:
        """The least noise that satisfies (ε,δ) for all digits together, with most of the budget for the high digits."""
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise InvalidArgument("between must be a pair of public ends, such as (0, 1).", code="wrong-type")
        check_ends(*between)
        least = clients if minimum is None else minimum
        lies = _least_lies(validate_goal(guarantee), honest_clients(least, honest), check_count(planes, "planes"))
        return cls(
            clients=clients,
            minimum=least,
            honest=honest,
            low=between[0],
            high=between[1],
            lies=tuple(tidy(lie) for lie in lies),
            of=of,
        )

    @property
    def planes(self) -> int:
        """How many binary digits are sent."""
        return len(self.lies)

    @property
    def messages(self) -> int:
        return self.planes

    @property
    def alphabet(self) -> int:
        return 2 * self.planes

    @property
    def _steps(self) -> int:
        return int(2**self.planes) - 1

    def _factors(self, honest: int) -> Factors:
        return _digits(honest, tuple(exactly(lie) for lie in self.lies))

    @property
    def takes(self) -> str:
        return f"a number between {self.low} and {self.high}"

    def _places(self, values: Any) -> NDArray[np.float64]:
        return steps_within(values, self.low, self.high, self._steps)

    def _readable(self, known: Ints) -> int:
        return int(np.bincount(known // 2, minlength=self.planes).min())  # a report has one of each digit

    @property
    def client(self) -> TurnedDigits:
        return TurnedDigits(lies=self.lies)

    def _weights(self) -> NDArray[np.float64]:
        """What a one in each digit is worth, relative to the whole range."""
        return np.asarray([2.0 ** (self.planes - 1 - plane) / self._steps for plane in range(self.planes)])

    def _estimate(self, counts: NDArray[Any], reports: int) -> float:
        lies = np.array([float(lie) for lie in self.lies])
        share = float(self._weights() @ ((counts[1::2] - reports * lies) / (1 - 2 * lies)))
        low, high = float(exactly(self.low)), float(exactly(self.high))
        total = reports * low + share * (high - low)
        return total / reports if self.of == "mean" else total

    @property
    def deviation(self) -> float:
        return math.sqrt(self._variance(self.clients)) * self._scale(self.clients)  # including rounding

    def _scale(self, reports: int) -> float:
        width = float(exactly(self.high) - exactly(self.low))
        return width / reports if self.of == "mean" else width

    def _variance(self, reports: int) -> float:
        lies = np.array([float(lie) for lie in self.lies])
        noise = self._weights() ** 2 * lies * (1 - lies) / (1 - 2 * lies) ** 2
        return reports * (float(noise.sum()) + 0.25 / self._steps**2)

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        """By Bernstein's bound on noise and rounding."""
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        log, largest = math.log(2 / (1 - sure)), float((self._weights() / (1 - 2 * float(max(self.lies)))).max())
        away = bernstein(self._variance(count), largest, log)
        return Accuracy(amount=away * self._scale(count), confidence=sure)

    @property
    def publishes(self) -> str:
        return f"the {self.of}"

    def _moves(self, fakes: int, reports: int) -> Moves:
        """Complete reports of only ones or only zeros, or all messages in the digit that counts most.

        In a mean the others may be at the other end, and an incomplete report does not add to the number of reports.
        """
        weights = [Fraction(2 ** (self.planes - 1 - plane), self._steps) for plane in range(self.planes)]
        gaps = [(weight, exactly(lie), 1 - 2 * exactly(lie)) for weight, lie in zip(weights, self.lies, strict=True)]
        ones = sum(weight * (1 - lie) / gap for weight, lie, gap in gaps)
        zeros = sum(weight * lie / gap for weight, lie, gap in gaps)
        # a single digit is a complete report
        heaviest = (
            fakes * self.planes * max(weight / gap for weight, _, gap in gaps) if self.planes > 1 else Fraction(0)
        )
        low, width = exactly(self.low), exactly(self.high) - exactly(self.low)
        if self.of == "mean":
            swing = fakes * (ones + zeros) / reports
            return Moves(float(width * max(heaviest / (reports - fakes), swing)), float(width * swing))
        up = max(width * heaviest, fakes * (low + width * ones), Fraction(0))
        return Moves(float(up), float(max(fakes * (width * zeros - low), Fraction(0))))


def check_ends(low: Number, high: Number) -> None:
    """Two public bounds whose distance is a double. Raises if it is not."""
    if not exactly(low) < exactly(high):
        raise InvalidArgument("low must be below high.", code="ends-out-of-order")
    if max(abs(exactly(low)), abs(exactly(high))) > 10**300 or exactly(high) - exactly(low) < Fraction(1, 10**300):
        raise InvalidArgument(
            "The ends must lie within ±1e300, at least 1e-300 apart. Choose another unit.", code="out-of-range"
        )


def steps_within(values: Any, low: Number, high: Number, steps: int) -> NDArray[np.float64]:
    """How many of the `steps` between the bounds each number is away from the first. −1 for a value that is not a
    number.
    """
    shares = shares_between(values, exactly(low), exactly(high))
    return np.where(np.isnan(shares), float(FOREIGN), np.clip(shares, 0.0, 1.0) * steps)


def _digits(honest: int, lies: tuple[Fraction, ...]) -> Factors:
    return tuple((RandomizedBitsPair(honest, lie), 1) for lie in lies)


@lru_cache(maxsize=32)
def _least_lies(goal: Approx, honest: int, planes: int) -> tuple[Fraction, ...]:
    """Lies with variances inverse to the digits' weights, which is best for their weighted sum; scaled to the goal."""

    def made(scale: float) -> tuple[Fraction, ...]:
        # the variance n·lie(1−lie)/(1−2·lie)² of digit j is scale·2^j
        ratios = (scale * 2.0**plane / honest for plane in range(planes))
        lies = (0.5 - 0.5 / math.sqrt(1 + 4 * ratio) for ratio in ratios)
        return tuple(significant(Fraction(lie), up=True, digits=9) for lie in lies)

    def keeps(scale: float) -> bool:
        return meets(LossDistribution(factors=_digits(honest, made(scale))), goal)

    def nearly(scale: float) -> bool:
        """By the Gaussian that the digits' noise is close to."""
        mu = math.sqrt(sum(float((1 - 2 * lie) ** 2 / (honest * lie * (1 - lie))) for lie in made(scale)))
        return gaussian_delta(mu, float(exactly(goal.epsilon))) <= float(exactly(goal.delta))

    start = bisect(nearly, float(honest), 1e-3, relative=1e-3, middle=geometric)
    found = bracket(keeps, start, least=start, most=float(honest), factor=1.1)
    if found is None:
        raise InvalidArgument(
            f"No noise on the digits guarantees {goal} with this number of clients. "
            "Ask more clients, or choose fewer planes.",
            code="guarantee-out-of-reach",
        )
    return made(bisect(keeps, *found, relative=0.01, middle=geometric))
