"""Tests of public guesses: is a guess near the true counts? One charge pays for all tests up to the first failure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.counts.multiplicative_weights import two_sided
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.selection.threshold import AboveThreshold
from discreet.queries.sensitivity import SensitivityLike

_SLACK = 1 + 1e-9
"""More than the rounding errors of a probability that is computed with doubles."""


@dataclass(frozen=True, kw_only=True)
class GuessTests:
    """Tests guesses at counts, one after another, until the first one fails. A result is True or False, nothing else.

    The input is a pair of equally many whole numbers: the guesses, which are public, and the true counts. A guess
    passes if the largest distance of a count from its guess, with noise, stays below the `tolerance`, with noise. The
    noise of the tolerance is drawn once for the whole run and stays in memory. After a failure the run is over.

    Promise: one run of the sparse vector: ε = Δ/threshold_scale + 2Δ/answer_scale for all tests up to the first
    failure, however many pass and whatever is guessed, where one unit moves no count by more than Δ.
    Error: if some count is farther than `amount` from its guess, the test passes with probability at most 1 −
    confidence over the noise of the run, whatever was guessed before. `amount` is above `tolerance` by the noise.
    Source: Dwork-Roth 2014, the sparse vector; a learned model is tested like this in
    Kostopoulou-Tholoniat-Cidon-Geambasu-Lécuyer 2023.
    """

    tolerance: int
    threshold_scale: Number
    answer_scale: Number

    def __post_init__(self) -> None:
        check_count(self.tolerance, "tolerance", at_least=0)
        check_positive(self.threshold_scale, "threshold_scale")
        check_positive(self.answer_scale, "answer_scale")

    @property
    def test(self) -> AboveThreshold:
        """The sparse vector: it stops at the first distance that reaches the tolerance."""
        return AboveThreshold(
            threshold=self.tolerance, threshold_scale=self.threshold_scale, answer_scale=self.answer_scale, step=1
        )

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """A distance from a guess may grow or shrink when a row is added, so it is never monotone."""
        return self.test.guarantee(two_sided(plain_sensitivity(sensitivity, "Linf")))

    @classmethod
    def for_error(cls, amount: int, *, confidence: float = 0.95) -> Self:
        """The most noise with which guesses that passed are within `amount`: half of it is for the noise."""
        tolerance = check_count(amount, "amount") // 2
        miss, above = float(1 - check_confidence(confidence)), amount + 2 - tolerance

        def near(scale: float) -> bool:
            return _tail(above, Fraction(scale), Fraction(scale)) <= miss

        found = bisect(near, 0.01, 8.0 * amount + 8, relative=1e-6)
        if not near(found):
            raise InvalidArgument(
                f"No test decides within {amount} with this confidence. Ask for a larger error.",
                code="error-out-of-reach",
            )
        scale = tidy(significant(Fraction(found), up=False, digits=6))
        return cls(tolerance=tolerance, threshold_scale=scale, answer_scale=scale)

    def error(self, confidence: float) -> Accuracy:
        """How far the counts may be from a guess that passed."""
        sure = check_confidence(confidence)

        def rare(amount: int) -> bool:
            return self.chance_to_pass(amount + 1) <= 1 - sure

        found = bracket(rare, self.tolerance + 1, least=0, most=2**62)
        if found is None:
            return Accuracy(amount=None, confidence=sure, of="every value", reason="the noise is too large")
        return Accuracy(amount=float(bisect(rare, *found)), confidence=sure, of="every value")

    def chance_to_pass(self, distance: int) -> float:
        """The probability that a guess at this distance from the counts passes, rounded up: to 1 below `tolerance`."""
        return _tail(distance - self.tolerance + 1, exactly(self.threshold_scale), exactly(self.answer_scale))

    def _start(self) -> GuessRun:
        return GuessRun(self)


class GuessRun:
    """Tests guesses one after another.

    Promise: one noisy tolerance for the run, new noise for every guess, and no test after the first failure.
    """

    def __init__(self, mechanism: GuessTests) -> None:
        self._test, self._failed = mechanism.test, False
        self._bar = self._test._bar()

    def _draw(self, value: tuple[Any, Any]) -> bool:
        if self._failed:
            raise BudgetExhausted(
                "A guess failed, so this run is over. Start a new run, which is charged again.",
                code="guess-failed",
            )
        self._failed = self._test._reaches(self._bar, _distance(*value))
        return not self._failed


def _distance(guesses: Any, counts: Any) -> int:
    """The largest distance of a count from its guess, exactly. One unit moves it by at most the most it moves a
    count.
    """
    guessed, true = (np.asarray(side, dtype=object).reshape(-1).tolist() for side in (guesses, counts))
    return max((abs(int(a) - int(b)) for a, b in zip(guessed, true, strict=True)), default=0)


def _tail(z: int, first: Fraction, second: Fraction) -> float:
    """P[X + Y ≥ z] for integer Laplace noise of two scales, rounded up. It is 1 if z is not positive."""
    if z <= 0:
        return 1.0
    slow, fast = (float(1 / scale) for scale in (max(first, second), min(first, second)))
    if fast - slow < 1e-6 * slow:  # with the larger scale twice, the tail is larger, and nothing cancels
        fast = slow
    p, q = -math.expm1(-slow), -math.expm1(-fast)
    once, other = math.exp(-slow * z) / p, math.exp(-fast * z) / q
    apart = -math.expm1(slow - fast)
    between = (once - (1 - apart) * other) / apart if apart else once * (z + 1 / p)
    outer = (once + other) / math.expm1(slow + fast)
    return min(1.0, math.tanh(slow / 2) * math.tanh(fast / 2) * (outer + between) * _SLACK)
