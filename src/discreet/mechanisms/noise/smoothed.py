"""A whole number with noise and a uniform part: its law is continuous, so that tests of it keep their level exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import exactly
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.sensitivity import SensitivityLike

_PLACES = 2**24
"""The uniform part is one of this many numbers."""


@dataclass(frozen=True)
class SmoothedCount:
    """Adds whole-number noise to a count, and then a uniform number from −½ to ½.

    Promise: that of the noise. The uniform part is independent of the count, so the guarantee holds with it.
    Error: that of the noise, and ½.
    Source: Awan-Slavković 2018: with Laplace noise this is the Tulap law, for which the one-sided test of a proportion
    is the uniformly most powerful one.

    >>> SmoothedCount(Laplace(scale=2, step=1)).error(0.95).amount
    6.5
    """

    noise: Laplace | Gaussian

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian) or exactly(self.noise.step) != 1:
            raise InvalidArgument(
                "noise must be Laplace or Gaussian noise on whole numbers: Laplace(scale=2, step=1).", code="wrong-type"
            )

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, sensitivity: SensitivityLike) -> Self:
        """The least Laplace noise that keeps the guarantee."""
        return cls(Laplace.for_guarantee(guarantee, sensitivity=sensitivity, step=1))

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return self.noise.guarantee(sensitivity)

    def error(self, confidence: float) -> Accuracy:
        within = self.noise.error(confidence)
        assert within.amount is not None  # additive noise always has one
        return Accuracy(amount=within.amount + 0.5, confidence=within.confidence, of=within.of)

    def _draw(self, value: Any) -> float:
        noisy = self.noise._draw(int(value))
        place = int(samplers.uniform_below(_PLACES, 1)[0])
        return float(noisy + Fraction(2 * place + 1, 2 * _PLACES) - Fraction(1, 2))
