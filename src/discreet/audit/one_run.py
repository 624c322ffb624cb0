"""Lower confidence bounds on ε from one run: canaries in or out by fair coins, and how many of the guesses are right.

Each of m canaries is included with probability ½, independently. An attacker sees the output and guesses of exactly r
canaries whether they were in. W is the number of right guesses, and p_w its law. Two bounds on P[W ≥ v] are used, both
for any attack, and the smaller one counts:

- (ε,δ) (Steinke-Nasr-Jagielski 2023): P[W ≥ v] ≤ F(v) + 2mδ·max_i (F(v−i) − F(v))/i, where F(v) is the probability
  that a binomial variable of r trials with probability e^ε/(1+e^ε) reaches v.
- a whole curve (Mahloujifar-Melis-Chaudhuri 2024): let P[E] ≤ h(Q[E]) for all events and neighbors, h concave. Turn
  the coin of a canary drawn at random: a run with w right guesses, this one among them, becomes one with w − 1 right
  guesses, this one not. So Σ_{w≥t} w·p_w/m ≤ h(Σ_{w≥t−1} (r−w)·p_w/m) for every t, by Jensen's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, exactly
from discreet.exact.search import bisect
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.guarantee import GaussianTradeoff, Guarantee

Floats = NDArray[np.float64]
MOST = 20.0
"""No larger ε is ever proved: it would need half a billion right guesses."""
POINTS = 40
_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """How many canaries there were, how many were guessed, and how many of these guesses were right."""

    canaries: int
    guesses: int
    correct: int

    def __post_init__(self) -> None:
        check_count(self.canaries, "canaries")
        check_count(self.guesses, "guesses")
        check_count(self.correct, "correct", at_least=0)
        if not self.correct <= self.guesses <= self.canaries:
            raise InvalidArgument("correct must be at most guesses, and guesses at most canaries.", code="out-of-range")

    def p_value(self, claim: Guarantee, *, delta: Number = 0.0) -> float:
        """An upper bound on the probability of this many right guesses, if `claim` holds.

        It uses the curve of `claim`, and its ε at `delta`.
        """
        points, allowed = points_of(claim, delta), float(check_delta(delta))
        by_points = bisect(lambda tail: self._refutes(points, tail), 1.0, 0.0, absolute=1e-12, relative=1e-3)
        return min(1.0, by_points, self._tail(claim.epsilon_at(delta=delta), allowed))

    def refutes(self, claim: Guarantee, *, delta: Number = 0.0, confidence: Number = 0.95) -> bool:
        """Whether so many right guesses have a probability of at most 1 − `confidence`, if `claim` holds."""
        miss, allowed = _miss(confidence), float(check_delta(delta))
        return self._tail(claim.epsilon_at(delta=delta), allowed) <= miss or self._refutes(
            points_of(claim, delta), miss
        )

    def epsilon_lower(self, *, delta: Number = 0.0, confidence: Number = 0.95) -> float:
        """A lower confidence bound on ε at `delta`, for a mechanism of any kind."""
        allowed, miss = float(check_delta(delta)), _miss(confidence)

        def refuted(epsilon: float) -> bool:
            return self._tail(epsilon, allowed) <= miss or self._refutes(_lines([(epsilon, allowed)]), miss)

        return _largest(refuted)

    def mu_lower(self, *, confidence: Number = 0.95) -> float:
        """A lower confidence bound on μ, for a mechanism whose curve is that of Gaussian noise."""
        miss = _miss(confidence)
        return _largest(lambda mu: mu > 0 and self._refutes(points_of(GaussianTradeoff(mu=mu)), miss))

    def _tail(self, epsilon: float, delta: float) -> float:
        """The first bound of the module: on P[W ≥ correct] under (ε,δ)."""
        from scipy.special import bdtrc

        if self.correct == 0 or math.isinf(epsilon):
            return 1.0
        lucky = 1 / (1 + math.exp(-epsilon))
        reached = np.concatenate([bdtrc(np.arange(self.correct), self.guesses, lucky)[::-1], [1.0]])  # F(v), F(v−1), …
        steepest = float(((reached[1:] - reached[0]) / np.arange(1, len(reached))).max())
        return min(1.0, (float(reached[0]) + 2 * self.canaries * delta * steepest) * (1 + _SLACK))

    def _refutes(self, lines: tuple[Floats, Floats], tail: float) -> bool:
        """Whether P[W ≥ correct] ≥ `tail` contradicts the second bound of the module.

        The law with the least total mass has its tail at `correct`, and below it as little as each inequality asks for,
        from the top down: more mass at one place never makes the total smaller. If the total is over 1, there is none.
        """
        m, r, total = self.canaries, self.guesses, tail
        right, wrong = self.correct * tail / m, (r - self.correct) * tail / m
        for place in range(self.correct - 1, -1, -1):
            needed = float((lines[0] * right + lines[1]).max()) - wrong
            if needed > 0:
                mass = needed * m / (r - place)
                total, right, wrong = total + mass, right + place * mass / m, wrong + needed
                if total > 1 + _SLACK:
                    return True
        return False


def points_of(claim: Guarantee, delta: Number = 0.0) -> tuple[Floats, Floats]:
    """The inverse of the curve h of a guarantee, as lines below it: h⁻¹(a) ≥ max(slope·a + constant).

    A guarantee is (ε, δ(ε)) for all ε at once. Any choice of ε gives lines that hold, so a few are enough.
    """
    ends = [claim.epsilon_at(delta=one) for one in (delta, 1e-9, 1e-6, 1e-3)]
    finite = [one for one in ends if math.isfinite(one)]
    if not finite:
        return _lines([])
    asked = [(ends[0], float(check_delta(delta)))] if math.isfinite(ends[0]) else []
    grid = np.linspace(0, min(max(finite), 2 * MOST), POINTS)
    return _lines(asked + [(float(one), claim.delta_at(epsilon=float(one))) for one in grid])


def _lines(points: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    """From P ≤ e^ε·Q + δ, and the same of the complements with P and Q exchanged."""
    epsilons, deltas = np.array(points, dtype=np.float64).reshape(-1, 2).T
    slopes = np.concatenate([[0.0], np.exp(-epsilons), np.exp(epsilons)])
    constants = np.concatenate([[0.0], -deltas * np.exp(-epsilons), 1 - deltas - np.exp(epsilons)])
    return slopes, constants


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest refuted parameter, rounded down. 0 if none is refuted."""
    return bisect(refuted, 0.0, MOST, absolute=1e-4) if not refuted(MOST) else MOST


def _miss(confidence: Number) -> float:
    check_confidence(confidence)
    return float(1 - exactly(confidence))


def gaussian_epsilon(mu: float, delta: Number) -> float:
    """The ε at `delta` of a Gaussian curve: 0 if μ is."""
    return GaussianTradeoff(mu=mu).epsilon_at(delta=delta) if mu > 0 and exactly(delta) else 0.0
