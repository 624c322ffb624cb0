"""How far one row can move the minimizer of a loss with a Gaussian linear term: the curve, and Rényi divergences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discreet.guarantees.conversions import SLACK, gaussian_delta
from discreet.guarantees.privacy_loss.derived_pairs import ProfilePair
from discreet.guarantees.privacy_loss.pairs import Pair

FAR = 40
"""A law on a lattice is compared with the continuous one within this many standard deviations. Beyond is e^-800 of the
mass.
"""


@dataclass(frozen=True)
class MinimizerPair(ProfilePair):
    """The minimizer of a loss with a Gaussian linear term, and then Gaussian noise, if `rows` rows are added or
    removed.

    `move` is the slope of a row in standard deviations of the linear term, `output` is that of the released weights,
    `jacobian` is ln(1 + β/λ), and `slack` is what lattices add to a loss. For a normal Z, the loss of one row is at
    most jacobian + max(0, move·Z + move²/2) if the row is present, and move·|Z| + move²/2 if it is not: see
    `ObjectivePerturbation`. In both cases, a sum of two normal terms bounds the curve that includes the output. Several
    rows are added one by one: δ_k(ε) ≤ Σ_{i<k} e^{iε/k}·δ(ε/k).
    """

    move: float
    output: float
    jacobian: float
    slack: float = 0.0
    dimension: int = 1
    rows: int = 1

    def _curve(self, epsilon: float) -> float:
        each = epsilon / self.rows
        one = self._one(max(each - self.slack, 0.0)) * math.exp(self.slack) + (self.slack if each < self.slack else 0)
        lost = 4 * self.dimension * math.exp(min(each - FAR**2 / 2, 0.0))
        grown = sum(math.exp(min(i * each, 700.0)) for i in range(self.rows))
        return min(1.0, (one + lost) * grown * SLACK)

    def _one(self, epsilon: float) -> float:
        both = math.hypot(self.move, self.output)

        def present(at: float) -> float:
            return gaussian_delta(both, at) + (gaussian_delta(self.output, at) if self.output else 0.0)

        def absent(at: float) -> float:
            return 2 * gaussian_delta(both, at)

        return max(_before(present, epsilon - self.jacobian, 0.0), _before(absent, epsilon, both**2 / 2))

    def renyi(self, order: float) -> float:
        return self._steps(order, self.rows) * SLACK

    def _steps(self, order: float, rows: int) -> float:
        if rows == 1:
            if order * 2**22 * self.slack > FAR**2:
                return math.inf
            # the weighted triangle inequality through the continuous law, p = 1 + 2^-20: from there to the lattice law
            # it is at most the slack, at any order for which the sum over its cells converges
            more = 1 + 2.0**-20
            near = 1 + (1 - 1 / more) / (order - 1)
            return near * self._one_renyi(order * more) + order / (order - 1) * self.slack
        part = (order - 1 / rows) / (order - 1)
        return part * self._steps(rows * order, 1) + self._steps((rows * order - 1) / (rows - 1), rows - 1)

    def _one_renyi(self, order: float) -> float:
        from scipy.special import erf, log_ndtr, ndtr

        above, move = order - 1, self.move
        grown = order * above * move * move / 2
        if grown < 1:
            inner = math.expm1(grown) * float(ndtr((order - 0.5) * move))
            inner += float(ndtr((order - 0.5) * move) - ndtr(move / 2)) + 1e-15
            present = self.jacobian + math.log1p(inner) / above
        else:
            log = np.logaddexp(float(log_ndtr(-move / 2)), grown + float(log_ndtr((order - 0.5) * move)))
            present = self.jacobian + float(log) / above
        absent = grown / above + math.log1p(float(erf(above * move / math.sqrt(2))) + 1e-15) / above
        return max(present, absent) + order * self.output**2 / 2

    def twice(self) -> Pair:
        return replace(self, rows=2 * self.rows)


def _before(curve: Callable[[float], float], at: float, certain: float) -> float:
    """δ at any ε from a curve that is below 1 from `certain` on: δ(ε) ≤ 1 − e^{ε−ε'}(1 − δ(ε')) for every ε' ≥ ε."""
    if at >= certain:
        return min(1.0, curve(at))
    drawn_out = -math.expm1(at - certain) + math.exp(at - certain) * min(1.0, curve(certain))
    return min(1.0, drawn_out, curve(at)) if at >= 0 else min(1.0, drawn_out)
