"""The ridge of objective perturbation: the one with the least error bound, from public numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly, exp_bounds, float_up, log_bounds, significant
from discreet.exact.search import bisect, geometric, least_place
from discreet.guarantees.guarantee import Approx, Renyi
from discreet.mechanisms.learning.minimizers.minimizer_pair import MinimizerPair
from discreet.queries.sensitivity import Sensitivity

OUTPUT = 10
"""The noise of the linear term, relative to its move, is smaller than that of the output by this factor. It costs half
a percent.
"""
PURE_OUTPUT = Fraction(1, 50)
"""The share of ε for the output noise."""


def _least(cost: Callable[[float], float], around: Fraction) -> Fraction:
    """The ridge with the least cost, to three digits, searched on a logarithmic scale."""
    middle = math.log(float(around))
    found = least_place(lambda x: cost(math.exp(x)), middle - 12, middle + 12, 40)
    return significant(Fraction(math.exp(found)), up=True, digits=3)


def best_ridge(
    guarantee: Approx | Renyi, slope: Fraction, curve: Fraction, bound: Sensitivity, norm: Fraction
) -> Fraction:
    """The least (ridge·norm + stddev)²/ridge, where norm and stddev are divided by √dimension."""

    def cost(ridge: float) -> float:
        kept = Fraction(ridge)
        if log_bounds(1 + curve / kept)[1] * bound.exact >= exactly(guarantee.epsilon) * Fraction(99, 100):
            return 1e300 / ridge
        return (ridge * float(norm) + float(least_stddev(guarantee, slope, curve, bound, kept))) ** 2 / ridge

    return _least(cost, curve / exactly(guarantee.epsilon))


def least_stddev(
    guarantee: Approx | Renyi, slope: Fraction, curve: Fraction, bound: Sensitivity, ridge: Fraction
) -> Fraction:
    """The least noise, without the lattices, in doubles."""
    rows = int(bound.exact) * (2 if bound.replaced else 1)
    jacobian = float_up(log_bounds(1 + curve / ridge)[1])

    def keeps(move: float) -> bool:
        pair = MinimizerPair(move, move / OUTPUT, jacobian, rows=rows)
        if isinstance(guarantee, Renyi):
            return pair.renyi(float(guarantee.order)) <= float(guarantee.epsilon)
        return pair.delta(float(guarantee.epsilon)) <= float(guarantee.delta)

    return slope / Fraction(bisect(keeps, 1e-12, 1e6, relative=1e-9, middle=geometric))


@dataclass(frozen=True)
class PureSplit:
    """How ε is split between the slope and the determinant of the rows of one unit."""

    epsilon: Fraction
    slope: Fraction
    curve: Fraction
    bound: Sensitivity
    norm: Fraction

    def _split(self, ridge: Fraction) -> Fraction:
        rows = self.bound.exact
        changed = rows * (2 if self.bound.replaced else 1)
        left = self.epsilon * (1 - PURE_OUTPUT) - rows * log_bounds(1 + self.curve / ridge)[1]
        return changed * self.slope / left if left > 0 else Fraction(0)

    def tight(self, ridge: Fraction | None) -> tuple[Fraction, Fraction]:
        """The ridge and the scale."""

        def cost(tried: float) -> float:
            scale = float(self._split(Fraction(tried)))
            return (tried * float(self.norm) + scale) ** 2 / tried if scale else 1e300 / tried

        kept = ridge or _least(cost, self.curve / self.epsilon)
        if not (scale := self._split(kept)):
            raise InvalidArgument(
                "No noise keeps this ε with this ridge: ln(1 + β/ridge) must be below ε. Increase ridge.",
                code="ridge-too-small",
            )
        return kept, significant(scale, up=True)

    def taught(self, ridge: Fraction | None) -> tuple[Fraction, Fraction]:
        """Chaudhuri-Monteleoni-Sarwate 2011, Algorithm 2, with the ε that the output noise leaves."""
        epsilon = self.epsilon * (1 - PURE_OUTPUT)
        kept = ridge or self.tight(None)[0]
        left = epsilon - 2 * log_bounds(1 + self.curve / kept)[1]
        if left <= 0:
            kept = significant(self.curve / (exp_bounds(epsilon / 4)[0] - 1), up=True)
            left = epsilon / 2
        return kept, significant(2 * self.slope / left, up=True)
