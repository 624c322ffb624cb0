"""The formulas of the course as they are taught, for comparison. The library uses sharper ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, SMALLEST_EPSILON, check_count, exactly, log_bounds, round_up, sqrt_up
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.coordinates import stated_delta, stated_epsilon
from discreet.guarantees.rules.filters import Rule, Vector
from discreet.mechanisms.noise.laplace import Laplace


@dataclass(frozen=True, kw_only=True)
class AdvancedTaught(Rule):
    """The strong composition of the lecture, for equal releases `each` whose number is fixed in advance.

    Promise: k releases (ε,δ) with ε ≤ 1 are `(2kε² + ε√(2k ln(1/(kδ))), 2kδ)`-DP if δ > 0 [L6.T1], and `(2kε² + ε√(2k
    ln(1/δ̂)), δ̂)`-DP, with the δ̂ of the limit, if δ = 0 [L6.T2].
    Source: [L6.T1], [L6.T2]. Not adaptive: the slack of L6.T1 changes with k, so it is not a stopping rule.
    """

    name, adaptive = "taught", False
    limit: Approx
    each: Approx

    def __post_init__(self) -> None:
        if exactly(self.each.epsilon) > 1:
            raise InvalidArgument(
                'L6.T1 and L6.T2 hold for ε of at most 1. Use rule="advanced".', code="formula-does-not-apply"
            )
        if not exactly(self.each.delta) and not exactly(self.limit.delta):
            raise InvalidArgument(
                "L6.T2 needs a limit with δ above 0. State the limit as Approx(epsilon=…, delta=…).", code="needs-delta"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        return "δ", "ε²"

    def coordinates(self, guarantee: Guarantee) -> Vector:
        epsilon, delta = exactly(self.each.epsilon), exactly(self.each.delta)
        if (stated_epsilon(guarantee), stated_delta(guarantee)) != (epsilon, delta):
            raise IncompatibleGuarantee(f'Only equal releases of {self.each} compose here. Use rule="advanced".')
        return round_up(delta), round_up(epsilon**2)

    def total(self, vector: Vector) -> Approx:
        epsilon, delta = self._amount(vector)
        if delta >= 1:
            raise InvalidArgument(
                "L6.T1 gives no bound once 2kδ reaches 1. Compose fewer releases.", code="formula-does-not-apply"
            )
        return Approx(epsilon=max(epsilon, SMALLEST_EPSILON), delta=delta)

    def largest(self, vector: Vector, like: Guarantee, times: int = 1) -> Guarantee | None:
        return None  # only `each` composes here

    def fits(self, vector: Vector) -> bool:
        epsilon, delta = self._amount(vector)
        return epsilon <= exactly(self.limit.epsilon) and delta <= exactly(self.limit.delta)

    def _amount(self, vector: Vector) -> tuple[Fraction, Fraction]:
        delta, spent = (Fraction(v, LEDGER_UNIT) for v in vector)
        slack = min(delta, Fraction(1)) or exactly(self.limit.delta)
        return 2 * spent + sqrt_up(2 * spent * log_bounds(1 / slack)[1]), 2 * delta or slack


def taught_answers(answers: int, size: int, guarantee: Approx) -> Laplace:
    """The noise of the documents for many adaptive averages of [0,1]-values over `size` rows: Lap(1/(γ·size)) each
    [L6.C5].

    γ = ε/√(8k ln(1/δ)) for ε ≤ 2 ln(1/δ), so the noise grows as √k and not as k. All answers are within
    ln(k/β)/(γ·size) of those on the sample with probability 1−β [L6.CL6]. `error(1 − β, values=k)` is sharper.
    """
    count, rows = check_count(answers, "answers"), check_count(size, "size")
    epsilon, delta = exactly(guarantee.epsilon), exactly(guarantee.delta)
    if not delta or epsilon > 2 * math.log(1 / float(delta)):
        raise InvalidArgument(
            "L6.C5 needs δ above 0 and ε at most 2 ln(1/δ). Lower ε, or give a δ.", code="formula-does-not-apply"
        )
    return Laplace(scale=float(sqrt_up(8 * count * exactly(math.log(1 / float(delta)))) / (epsilon * rows)))
