"""Advanced composition, which adds up ε² and δ, as rules that may stop a session."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from discreet.exact.rational import log_bounds, sqrt_up
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.coordinates import stated_delta, stated_epsilon
from discreet.guarantees.rules.filters import Filter


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
    Source: [L10.HC]. For a fixed δ it may stop a session, because it stops no later than the filter above with δ' = δ.
    """

    name, share, adds_stated = "heterogeneous", Fraction(1), False
    linear = Fraction(2)
    remedy = 'L10.HC is stated for pure releases. Open the ledger with rule="advanced" or rule="best".'

    def cost(self, guarantee: Guarantee) -> Fraction | None:
        return None if stated_delta(guarantee) else super().cost(guarantee)
