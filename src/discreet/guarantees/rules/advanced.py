"""Advanced composition, which adds Σε² and Σδ: as it is taught, and as a rule that may stop a session."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, SMALLEST_EPSILON, exactly, log_bounds, round_up, sqrt_up
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.coordinates import stated_delta, stated_epsilon
from discreet.guarantees.rules.filters import Filter, Rule, Vector


class AdaptiveAdvanced(Filter):
    """Σε² and Σδ: the fully adaptive advanced filter.

    Promise: adaptive releases with `√(2 ln(1/δ') Σε_i²) + ½Σε_i² ≤ ε` and `Σδ_i ≤ δ''` are (ε, δ'+δ'')-DP.
    Source: Whitehouse-Ramdas-Rogers-Wu 2023, Theorem 2. δ' is `conversion`, half of δ by default.
    """

    name, symbol, adds_stated = "advanced", "ε²", True
    linear: ClassVar[Fraction] = Fraction(1, 2)

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        epsilon = stated_epsilon(guarantee)
        return None if epsilon is None else epsilon**2

    def epsilon(self, spent: Fraction, delta: Fraction) -> Fraction:
        return self.linear * spent + sqrt_up(2 * spent * log_bounds(1 / delta)[1])


class Heterogeneous(AdaptiveAdvanced):
    """Σε² for pure releases, as taught.

    Promise: adaptive (ε_i,0)-DP releases are `(Σ2ε_i² + √(Σ2ε_i² ln(1/δ)), δ)`-DP.
    Source: [L10.HC]. With δ fixed it may stop a session: it stops no later than the filter above with δ' = δ.
    """

    name, share, adds_stated = "heterogeneous", Fraction(1), False
    linear = Fraction(2)
    remedy = 'L10.HC is stated for pure releases: open the ledger with rule="advanced" or rule="best".'

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        return None if stated_delta(guarantee) else super().cost(guarantee)


@dataclass(frozen=True, kw_only=True)
class AdvancedTaught(Rule):
    """The lecture's strong composition of equal releases `each`, their number fixed in advance.

    Promise: k releases (ε,δ), ε ≤ 1, are `(2kε² + ε√(2k ln(1/(kδ))), 2kδ)`-DP when δ > 0 [L6.T1], and
    `(2kε² + ε√(2k ln(1/δ̂)), δ̂)`-DP, with δ̂ that of the limit, when δ = 0 [L6.T2].
    Source: [L6.T1], [L6.T2]. Not adaptive: the slack of L6.T1 moves with k, so it cannot tell when to stop.
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

    def largest(self, vector: Vector, like: Guarantee) -> Guarantee | None:
        return None  # only `each` composes here

    def fits(self, vector: Vector) -> bool:
        epsilon, delta = self._amount(vector)
        return epsilon <= exactly(self.limit.epsilon) and delta <= exactly(self.limit.delta)

    def _amount(self, vector: Vector) -> tuple[Fraction, Fraction]:
        delta, spent = (Fraction(v, LEDGER_UNIT) for v in vector)
        slack = min(delta, Fraction(1)) or exactly(self.limit.delta)
        return 2 * spent + sqrt_up(2 * spent * log_bounds(1 / slack)[1]), 2 * delta or slack
