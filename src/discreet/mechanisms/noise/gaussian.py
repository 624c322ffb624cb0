"""Gaussian noise, calibrated on the discrete distribution that is drawn, and the thesis's calibration next to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, exactly, significant, sqrt_up
from discreet.exact.search import bisect
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import Factors, LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import ConcentratedPair, near_gaussian
from discreet.guarantees.privacy_loss.pairs import GaussianPair
from discreet.mechanisms.noise.additive import AdditiveNoise
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, is_pure, plain_sensitivity
from discreet.queries.sensitivity import Norm, Sensitivity, SensitivityLike


@dataclass(frozen=True, kw_only=True, repr=False)
class Gaussian(AdditiveNoise):
    """Adds to every coordinate a whole number k of steps with probability ∝ exp(-(k·step)²/(2·stddev²)).

    Promise: Δ²/(2·stddev²)-zCDP for L2 sensitivity Δ in lattice steps, exactly; and the exact δ(ε) of the
    discrete law when one coordinate moves, or the sensitivity is stated in L1 [decision 0003]. When several move, the
    curve of the continuous law with a certified slack, or the zCDP one where the lattice is too coarse for
    that.
    Error: the two-sided tail of the discrete law.
    Source: [T.6.2]; the continuous curve is Balle-Wang 2018, zCDP on a lattice Canonne-Kamath-Steinke 2020.

    >>> round(Gaussian.for_guarantee(Approx(epsilon=1, delta=1e-6), sensitivity=1).stddev, 3)
    4.225
    """

    stddev: Number
    size_field: ClassVar[str] = "stddev"
    norm: ClassVar[Norm] = "L2"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, without the rounding to the lattice."""
        return float(self._size)

    @property
    def _variance(self) -> Fraction:
        return (self._size / self._step) ** 2

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity)
        return LossDistribution(factors=self._factors(bound), protects=bound.unit)

    def _factors(self, bound: Sensitivity) -> Factors:
        if bound.norm == "L1" or bound.dimension == 1:
            return ((GaussianPair(bound.to("L1").in_steps(self._step), self._variance), 1),)
        squared = bound.squared_in_steps(self._step)
        if squared <= 3:  # only whole coordinates can move, each by one step
            return ((GaussianPair(1, self._variance), squared),)
        near = near_gaussian(squared, self._variance, min(bound.dimension, squared))
        if near.slack < 1e-4:
            return ((near, 1),)
        return ((ConcentratedPair(Fraction(squared) / (2 * self._variance)), 1),)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, sensitivity: SensitivityLike, step: Number | None = None, calibration: str = TIGHT
    ) -> Self:
        """The least noise that satisfies `guarantee`. `calibration="taught"` uses (Δ/ε)√(2 ln(2/δ)), proved for ε ≤ 1
        [T.6.2].
        """
        check_calibration(calibration)
        bound = plain_sensitivity(sensitivity)
        if is_pure(guarantee):
            raise InvalidArgument(
                "Gaussian noise cannot keep a pure guarantee. Give a delta, such as 1e-6, or use Laplace.",
                code="needs-delta",
            )
        if calibration == TAUGHT:
            return cls._make(significant(taught_deviation(guarantee, bound.to("L2").exact), up=True), step)
        if isinstance(guarantee, ZeroConcentrated):
            start = sqrt_up(bound.to("L2").exact ** 2 / (2 * exactly(guarantee.rho)))
        else:
            start = bound.to("L2").exact / max(Fraction(1, 1000), exactly(getattr(guarantee, "epsilon", 1)))
        return cls._least(guarantee, bound, step, significant(start, up=True))

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        sure = check_confidence(confidence)
        miss = -math.expm1(math.log(sure) / check_count(values, "values"))
        pair = GaussianPair(1, self._variance)

        def is_enough(k: int) -> bool:
            return 2 * pair.mass_above(k) * (1 + 1e-9) <= miss  # P[|X| > k] ≤ miss

        # the normal distribution is never far off
        inside = outside = max(1, math.ceil(-NormalDist().inv_cdf(miss / 2) * math.sqrt(self._variance)))
        reach = 1
        while not is_enough(inside):
            inside, outside, reach = inside + reach, inside, 2 * reach
        while outside > -1 and is_enough(outside):
            inside, outside, reach = outside, max(-1, outside - reach), 2 * reach
        return self._accuracy(bisect(is_enough, inside, outside), sure, values)

    def _noise(self, size: int) -> NDArray[Any]:
        return samplers.discrete_gaussian(self._variance, size)


def taught_deviation(guarantee: Guarantee, sensitivity: Fraction) -> Fraction:
    """(Δ/ε)√(2 ln(2/δ)), the thesis's Gaussian noise, proved for ε ≤ 1 only [T.6.2]."""
    if not isinstance(guarantee, Approx) or exactly(guarantee.epsilon) > 1:
        raise InvalidArgument(
            "The formula of the documents for Gaussian noise holds for Approx with ε ≤ 1 only. Use "
            "calibration='tight'.",
            code="formula-does-not-apply",
        )
    return sensitivity / exactly(guarantee.epsilon) * exactly(math.sqrt(2 * math.log(2 / float(guarantee.delta))))
