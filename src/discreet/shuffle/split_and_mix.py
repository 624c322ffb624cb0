"""Sums with the error of a trusted curator: numbers are split into shares that mean nothing alone, and mixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, exp_bounds, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import check_enough_records, tidy
from discreet.mechanisms.reports.shuffle_clients import NoisyShares
from discreet.shuffle.protocol import Protocol, honest_clients, validate_goal
from discreet.shuffle.reals import check_ends, steps_within

FEWEST, WIDEST = 19, 20_000
"""The least number of clients for which the theorem is proved, and the largest scale of noise that is fast to
prepare.
"""


@dataclass(frozen=True, kw_only=True)
class SplitAndMix(Protocol):
    """Each client rounds its number to one of `steps` + 1 values, adds a small part of Laplace noise, and sends it as
    `shares` numbers below 2^`bits` that are uniform but for their sum.

    Promise: shuffled shares tell no more than the sum of all clients, but for a statistical distance of 2^-`security`;
    the honest clients' parts of noise sum up to discrete Laplace noise of scale `scale` steps. Together, shuffler and
    analyzer learn each number. One client who does not follow the protocol can move the sum to anything.
    Error: that of the central Laplace mechanism, and of rounding.
    Source: Ishai-Kushilevitz-Ostrovsky-Sahai 2006; Balle-Bell-Gascón-Nissim 2020, whose shares are
    2 + (2·security + bits)/(log₂ n − log₂ e).
    """

    low: Number
    high: Number
    steps: int
    scale: Number
    bits: int
    shares: int
    security: int
    of: str = "sum"
    kind: ClassVar[str] = "sum by split and mix"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.scale, "scale")
        if exactly(self.scale) > WIDEST:
            raise InvalidArgument(
                f"The noise may have at most {WIDEST} steps. Choose fewer steps, or a larger ε.", code="too-large"
            )
        for name in ("steps", "bits", "security"):
            check_count(getattr(self, name), name)
        if check_count(self.shares, "shares") < shares_for(honest_clients(self.minimum, self.honest), self):
            raise InvalidArgument(
                "With so few shares, a client's number is not hidden among the others. Choose more shares.",
                code="out-of-range",
            )
        check_ends(self.low, self.high)
        if self.of not in ("sum", "mean"):
            raise InvalidArgument('of must be "sum" or "mean".', code="not-an-option")
        if self.bits > 56:
            raise InvalidArgument("Shares may have at most 56 bits. Choose fewer steps.", code="too-large")

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        between: Sequence[Number],
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
        steps: int = 255,
        of: str = "sum",
    ) -> Self:
        """ε for the noise, and δ for what the shares may reveal."""
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise InvalidArgument("between must be a pair of public ends, such as (0, 1).", code="wrong-type")
        goal, least = validate_goal(guarantee), clients if minimum is None else minimum
        epsilon, count = exactly(goal.epsilon), check_count(steps, "steps")
        scale = significant(count / epsilon, up=True)
        factor = (exp_bounds(epsilon)[1] + 1) / exactly(goal.delta)  # a distance of s adds (1 + e^ε)·s to δ
        security = math.ceil(math.log2(factor) + 1e-9)
        # room for the sum and for 80 deviations of noise on either side
        bits = math.ceil(math.log2(2 * (clients * count + 80 * float(scale))))
        given: dict[str, Any] = {"clients": clients, "minimum": least, "honest": honest, "steps": count, "bits": bits}
        shares = _shares(honest_clients(least, honest), security, bits)
        return cls(**given, low=between[0], high=between[1], scale=tidy(scale), shares=shares, security=security, of=of)

    @property
    def messages(self) -> int:
        return self.shares

    @property
    def alphabet(self) -> int:
        return 1 << self.bits

    def _factors(self, honest: int) -> Factors:
        scale = exactly(self.scale)
        factor = (exp_bounds(self.steps / scale)[1] + 1) / 2**self.security
        return ((LaplacePair(self.steps, scale), 1), (ResponsePair(Fraction(0), factor), 1))

    @property
    def takes(self) -> str:
        return f"a number between {self.low} and {self.high}"

    def _places(self, values: Any) -> NDArray[np.float64]:
        return steps_within(values, self.low, self.high, self.steps)

    @property
    def client(self) -> NoisyShares:
        parts = honest_clients(self.minimum, self.honest)
        return NoisyShares(steps=self.steps, scale=self.scale, parts=parts, bits=self.bits, shares=self.shares)

    def _check_reports(self, reports: int) -> None:
        super()._check_reports(reports)
        if reports > self.clients * 5 // 4:
            raise InvalidArgument(
                "More clients reported than the sum has room for, so nothing can be computed from it. Plan for more: "
                "clients=.",
                code="shuffle-too-many-reports",
            )

    def _draw(self, value: tuple[Any, int]) -> float:
        self._check_reports(value[1])
        check_enough_records(self, reports := self.count_records(value))
        known = self._known(value[0])
        total = int(sum(int(block.sum()) for block in np.array_split(known, max(1, len(known) // 100)))) % self.alphabet
        steps = total - self.alphabet if total > self.alphabet * 3 // 4 else total  # a little below 0 is far above
        low, high = float(exactly(self.low)), float(exactly(self.high))
        answer = reports * low + steps / self.steps * (high - low)
        return answer / reports if self.of == "mean" else answer

    def _unit(self, reports: int) -> float:
        width = float(exactly(self.high) - exactly(self.low)) / self.steps
        return width / reports if self.of == "mean" else width

    @property
    def deviation(self) -> float:
        parts = self.clients / honest_clients(self.minimum, self.honest)  # the ratio to the noise that is needed
        return math.sqrt(2 * float(exactly(self.scale)) ** 2 * parts + self.clients / 4) * self._unit(self.clients)

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        """Of the noise, at most as many times more as there are honest clients' parts; and Hoeffding for rounding."""
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        each = 1 - (1 - sure) / 2
        times = math.ceil(count / honest_clients(self.minimum, self.honest))
        noise = times * float(Laplace(scale=self.scale, step=1).error(1 - (1 - each) / times))
        rounding = math.sqrt(count * math.log(2 / (1 - each)) / 2)
        return Accuracy(amount=(noise + rounding) * self._unit(count), confidence=sure)

    @property
    def publishes(self) -> str:
        return f"the {self.of}"

    def _moves(self, fakes: int, reports: int) -> Moves:
        """One share can be any number: the sum becomes whatever one client likes."""
        return Moves(math.inf, math.inf) if fakes else Moves(0.0, 0.0)

    def _left(self, honest: int, delta: Number) -> Guarantee | None:
        """Each adds the part of the noise that `at_least` of them need. With fewer, nothing is known."""
        return super()._left(honest, delta) if honest >= self.at_least else None


def shares_for(honest: int, protocol: SplitAndMix) -> int:
    """How many shares hide each number of this many clients."""
    return _shares(honest, protocol.security, protocol.bits)


def _shares(honest: int, security: int, bits: int) -> int:
    if honest < FEWEST:
        raise InvalidArgument(
            f"Split and mix needs at least {FEWEST} honest clients. Ask more clients.", code="shuffle-too-few-clients"
        )
    room = math.log2(honest) - math.log2(math.e)
    return math.ceil(2 + (2 * security + bits) / room)
