"""Laplace noise: pure ε, and the exact (ε,δ) of the discrete law that is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import ConcentratedPair, EitherPair
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.mechanisms.noise.additive import AdditiveNoise
from discreet.mechanisms.noise.lattice import check_step, step_for
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, plain_sensitivity
from discreet.queries.sensitivity import Norm, SensitivityLike


@dataclass(frozen=True, kw_only=True, repr=False)
class Laplace(AdditiveNoise):
    """Adds to every coordinate a whole number k of steps with probability ∝ exp(-|k|·step/scale).

    Promise: with L1 sensitivity Δ, once answers are on the lattice, the loss is at most Δ/scale, and δ(ε)
    is that of the discrete law exactly. All of Δ in one coordinate is the worst case [decision 0003].
    Error: beyond k steps with probability 2q^(k+1)/(1+q), q = exp(-step/scale).
    Source: Dwork-McSherry-Nissim-Smith 2006; [T.4.9], [L10.A], [L10.T3].

    >>> Laplace.for_guarantee(Pure(epsilon=0.1), sensitivity=1)
    Laplace(scale=10)
    """

    scale: Number
    size_field: ClassVar[str] = "scale"
    norm: ClassVar[Norm] = "L1"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, without the rounding to the lattice."""
        return float(self._size) * math.sqrt(2)

    @property
    def _steps(self) -> Fraction:
        return self._size / self._step

    def guarantee(self, sensitivity: SensitivityLike, *, times: int = 1) -> Guarantee:
        """With `times`, the guarantee of this many adaptive releases, each with an answer of this sensitivity."""
        bound = plain_sensitivity(sensitivity)
        # the worst case: the whole change is in one coordinate of one release
        pair = LaplacePair(times * bound.to("L1").in_steps(self._step), self._steps)
        if bound.norm == "L2" and bound.dimension > 1:
            # coordinate i is ε_i-DP, hence ε_i²/2-zCDP, and Σε_i² ≤ Δ²/scale²
            rho = times * Fraction(bound.squared_in_steps(self._step)) / (2 * self._steps**2)
            return LossDistribution(factors=((EitherPair(pair, ConcentratedPair(rho)), 1),), protects=bound.unit)
        if times > 1:
            pair = LaplacePair(pair.distance // times, self._steps)
        return LossDistribution(factors=((pair, times),), protects=bound.unit)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, sensitivity: SensitivityLike, step: Number | None = None, calibration: str = TIGHT
    ) -> Self:
        """The least noise that satisfies `guarantee`. `calibration="taught"` uses the documents' formula instead.

        Taught: Δ/ε for pure ε, and Δ/(ε − ln(1−δ)) otherwise [T.4.9].
        """
        check_calibration(calibration)
        bound = plain_sensitivity(sensitivity)
        summed = bound.to("L1")
        if calibration == TAUGHT:
            fixed = step_for(taught_scale(guarantee, summed.exact)) if step is None else check_step(step)
            scale = significant(taught_scale(guarantee, summed.in_steps(fixed) * fixed), up=True)
            return cls._make(scale, None if fixed == step_for(scale) else fixed)
        if type(guarantee) is Pure:
            epsilon = exactly(guarantee.epsilon)
            fixed = step_for(summed.exact / epsilon) if step is None else check_step(step)
            scale = significant(summed.in_steps(fixed) * fixed / epsilon, up=True)
            return cls._make(scale, None if fixed == step_for(scale) else fixed)
        start = bound.exact / max(Fraction(1, 1000), exactly(getattr(guarantee, "epsilon", 1)))
        return cls._least(guarantee, bound, step, start)

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        sure = check_confidence(confidence)
        miss = -math.expm1(math.log(sure) / check_count(values, "values"))
        rate = 1 / float(self._steps)
        beyond = math.log(2 / (1 + math.exp(-rate)) / miss) / rate - 1
        return self._accuracy(max(0, math.ceil(beyond - 1e-9)), sure, values)

    def _noise(self, size: int) -> NDArray[Any]:
        return samplers.discrete_laplace(self._steps, size)


def taught_scale(guarantee: Guarantee, sensitivity: Fraction) -> Fraction:
    """Δ/ε, or Δ/(ε − ln(1−δ)) when δ > 0: the documents' Laplace scale [T.4.9]."""
    if not isinstance(guarantee, Approx):
        raise InvalidArgument(
            "The formulas of the documents for Laplace noise hold for Pure and Approx only. Use calibration='tight'.",
            code="formula-does-not-apply",
        )
    delta = exactly(guarantee.delta)
    if delta == 0:
        return sensitivity / exactly(guarantee.epsilon)
    return sensitivity / exactly(float(exactly(guarantee.epsilon)) - math.log1p(-float(delta)))


def taught_sum_scale(theorem: str, sensitivity: SensitivityLike, dimension: int, guarantee: Approx) -> Fraction:
    """The documents' per-coordinate Laplace scale for a sum of d-vectors of L2 norm at most Δ.

    "L10.A basic": Δd/ε, as taught, though √d suffices. "L10.A strong": Δ√(d ln(1/δ))/ε. "L10.T3":
    Δ√ln(1/δ)/ε, which costs 2ε²/ln(1/δ) + √2·ε under add or remove. Constants as printed: the guarantee is
    what `Laplace.guarantee` says.
    """
    delta_bound, epsilon, delta = (
        check_positive(sensitivity, "sensitivity"),
        exactly(guarantee.epsilon),
        exactly(guarantee.delta),
    )
    if theorem == "L10.A basic":
        return delta_bound * dimension / epsilon
    if not delta:
        raise InvalidArgument(
            f"{theorem} needs δ above 0. Give Approx(epsilon=…, delta=…) with one.", code="needs-delta"
        )
    grown = Fraction(math.log(1 / float(delta))) * (dimension if theorem == "L10.A strong" else 1)
    if theorem not in ("L10.A strong", "L10.T3"):
        raise InvalidArgument("theorem must be 'L10.A basic', 'L10.A strong' or 'L10.T3'.", code="not-an-option")
    return delta_bound * sqrt_up(grown) / epsilon
