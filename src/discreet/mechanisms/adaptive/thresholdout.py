"""The reusable holdout: a hidden sample checks the results of training, and corrects a limited number of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.generalization import (
    Floats,
    gaussian_tail,
    laplace_tail,
    miss_of,
    width_on_population,
    worst_mean,
)
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.adaptive.means import QUANTUM, Kind, of_size, one_row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.selection.threshold import AboveThreshold
from discreet.queries.sensitivity import Sensitivity, SensitivityLike


@dataclass(frozen=True, kw_only=True)
class Thresholdout:
    """Up to `queries` guesses at means over a hidden sample of `size` rows. A guess that is far off is corrected.

    A guess that is off by less than about `test.threshold` rows is confirmed. Otherwise the answer is the mean with
    `noise`. After `overfits` corrections, the next one ends it. The input is a pair: the guess, a number in [0,1], and
    the sum over the sample in units of `QUANTUM`. The result says whether the guess was `confirmed`, and has the value,
    clipped to [0,1].

    Promise: the composition of `overfits` + 1 sparse-vector tests, each of any number of guesses, and of `overfits`
    noisy means, for an added, removed or replaced row, whatever is guessed and asked.
    Error: on the population, by the exact transfer theorem.
    Source: Dwork et al. 2015; [L6.T9]; decision 0009.
    """

    size: int
    queries: int
    overfits: int
    test: AboveThreshold
    noise: Gaussian | Laplace

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        check_count(self.queries, "queries")
        check_count(self.overfits, "overfits")
        if not isinstance(self.test, AboveThreshold) or exactly(self.test.step) != QUANTUM:
            raise InvalidArgument("test must be an AboveThreshold with step=2**-20.", code="part-does-not-fit")
        if not isinstance(self.noise, Gaussian | Laplace) or self.noise._step != QUANTUM:
            raise InvalidArgument("noise must be Gaussian or Laplace noise with step=2**-20.", code="part-does-not-fit")

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """The sensitivity of a sum to one row."""
        return one_row(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """The guarantee of all guesses together. The default is for one added or removed row."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity)
        tests = [self.test.guarantee(bound)] * (self.overfits + 1)
        return compose([*tests, *[self.noise.guarantee(bound)] * self.overfits])

    @classmethod
    def of_scales(
        cls,
        *,
        size: int,
        queries: int,
        overfits: int,
        tolerance: Number,
        test: Any,
        noise: Any,
        kind: Kind = "gaussian",
    ) -> Self:
        """The mechanism with a `tolerance` on a mean, an ε for each test, and this much noise on a corrected mean."""
        scale = tidy(significant(3 / exactly(test), up=True, digits=6))  # Δ/bar + 2Δ/answer = 3/scale
        return cls(
            size=size,
            queries=queries,
            overfits=overfits,
            test=AboveThreshold(
                threshold=tidy(significant(check_positive(tolerance, "tolerance") * size, up=True, digits=6)),
                threshold_scale=scale,
                answer_scale=scale,
                step=tidy(QUANTUM),
            ),
            noise=of_size(noise, size, kind),
        )

    @classmethod
    def narrowest(
        cls,
        *,
        size: int,
        queries: int,
        overfits: int,
        tolerance: Number,
        confidence: float = 0.95,
        kind: Kind = "gaussian",
    ) -> Self:
        """The noise with the least error on the population. A correction is then about as accurate as a
        confirmation.
        """
        from scipy.optimize import minimize_scalar

        check_count(size, "size")
        miss = miss_of(confidence)

        def make(log_test: float) -> Any:
            test = significant(Fraction(float(np.exp(log_test))), up=True, digits=6)
            given: dict[str, Any] = {"size": size, "queries": queries, "overfits": overfits, "tolerance": tolerance}
            first = cls.of_scales(**given, test=test, noise=1, kind=kind)
            once = worst_mean(gaussian_tail if kind == "gaussian" else laplace_tail, overfits, miss)
            return cls.of_scales(**given, test=test, noise=Fraction(first._confirmed(miss) / once), kind=kind)

        middle = float(np.log(np.sqrt(12 / (size * np.sqrt(overfits)))))
        found = minimize_scalar(
            lambda log_test: make(log_test).width(confidence),
            bounds=(middle - 2.5, middle + 2.5),
            options={"xatol": 0.03},
        )
        best: Self = make(float(found.x))
        return best

    def _confirmed(self, miss: float) -> float:
        """The mean distance of a confirmed guess from the mean of the sample, over the worst `miss` of all cases."""
        bars = worst_mean(one_sided_laplace, self.overfits + 1, miss) * float(exactly(self.test.threshold_scale))
        tests = worst_mean(one_sided_laplace, self.queries, miss) * float(exactly(self.test.answer_scale))
        return (float(exactly(self.test.threshold)) + bars + tests) / self.size + 4 * float(QUANTUM)

    def width(self, confidence: float) -> float:
        """How far all answers may be from the means of the population. 1 if nothing is known."""
        miss = miss_of(confidence)
        tail: Callable[..., Any] = gaussian_tail if isinstance(self.noise, Gaussian) else laplace_tail
        scale, bar = float(self.noise._size) / self.size, float(exactly(self.test.threshold)) / self.size
        corrected = scale * _worst_beyond(tail, self.overfits, miss, bar / scale) + 2 * float(QUANTUM)
        return width_on_population(self.guarantee(), self._confirmed(miss) + corrected, miss)

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        return Accuracy(amount=self.width(sure), confidence=sure, of="population")

    def _start(self) -> Checking:
        return Checking(self)


def one_sided_laplace(z: Floats) -> Floats:
    """P[X > z] for Laplace noise of scale 1 and z ≥ 0."""
    return np.exp(-z) / 2


@lru_cache(maxsize=64)
def _worst_beyond(tail: Callable[[Floats], Floats], count: int, miss: float, bar: float) -> float:
    """The mean of the largest of `count` values of (|X| − bar)⁺ over its worst `miss`."""
    return worst_mean(lambda z: tail(z + bar), count, miss)


class Checking:
    """Checks guesses one after another.

    Promise: a new noisy threshold after every correction, new noise for every guess and every correction, and no more
    guesses or corrections than were charged.
    """

    def __init__(self, mechanism: Thresholdout) -> None:
        self._mechanism, self._asked, self._corrected, self._ended = mechanism, 0, 0, False
        self._bar = mechanism.test._bar()

    def _draw(self, value: tuple[float, int]) -> dict[str, Any]:
        guess, total = min(1.0, max(0.0, value[0])), value[1]
        if self._ended:
            raise BudgetExhausted(
                "All allowed overfits are used up, so nothing more can be checked. Start again with new rows.",
                code="overfits-used-up",
            )
        if self._asked >= self._mechanism.queries:
            raise BudgetExhausted(
                f"All {self._mechanism.queries} questions are used up. Start again with new rows.",
                code="questions-used-up",
            )
        self._asked += 1
        exact = Fraction(total) * QUANTUM
        off = abs(Fraction(guess) * self._mechanism.size - exact)
        if not self._mechanism.test._reaches(self._bar, off):
            return {"confirmed": True, "value": guess}
        if self._corrected >= self._mechanism.overfits:
            self._ended = True
            raise BudgetExhausted(
                "This overfit is one more than allowed, so nothing more can be checked. Start again with new rows.",
                code="overfits-used-up",
            )
        self._corrected, self._bar = self._corrected + 1, self._mechanism.test._bar()
        noisy = self._mechanism.noise._draw(exact)
        return {"confirmed": False, "value": min(1.0, max(0.0, float(noisy) / self._mechanism.size))}
