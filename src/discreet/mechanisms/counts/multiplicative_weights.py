"""A synthetic histogram that learns the queries it answers worst: multiplicative weights, by MWEM.

The histogram is computed only from released and public numbers, so it may use floats. Noise is added to the true counts
as whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.conversions import smallest_epsilon
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip
from discreet.queries.scores import Scores
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.workload import Workload, check_size
from discreet.rows import none_of
from discreet.rows.containers import Data

MOST_CELLS = 10**7
"""The largest domain, in cells, for which a histogram is kept."""
FINE = 16
"""Errors are compared in whole multiples of 1/16 row."""


class Weights:
    """A histogram over a domain with a fixed total, moved towards measured counts by multiplicative weights."""

    def __init__(self, workload: Workload, size: int) -> None:
        self.workload, self.size = workload, size
        self.histogram = np.full(workload.domain.shape, size / workload.domain.size)

    def answer(self, inside: NDArray[np.bool_]) -> float:
        """The histogram's count of these cells."""
        return float(self.histogram[inside].sum())

    def update(self, inside: NDArray[np.bool_], measured: float, margin: float) -> bool:
        """Scale these cells and the others so that their count moves to the measured one, except for the last `margin`.

        If the counts differ by less than the margin, nothing changes. If the true count b is within the margin of the
        measured one, the new count t lies between the old count a and b. The relative entropy to the truth then falls
        by d(b‖a) − d(b‖t) ≥ d(t‖a) ≥ 2((t−a)/n)², where d is the relative entropy of two coins with these
        probabilities.
        """
        own, half = self.answer(inside), 0.5
        known = min(max(measured, half), self.size - half)  # never 0 and never all: every cell keeps some weight
        far = abs(known - own) - margin
        if far <= 0 or not 0 < own < self.size:
            return False
        target = own + math.copysign(far, known - own)
        self.histogram[inside] *= target / own
        self.histogram[~inside] *= (self.size - target) / (self.size - own)
        return True


def row_error(true: Any, own: Any) -> NDArray[np.int64]:
    """|true − own| in sixteenths of a row. One row changes it by at most 16."""
    return np.asarray(np.abs(np.asarray(true) * FINE - np.rint(np.asarray(own) * FINE).astype(np.int64)))


@dataclass(frozen=True, kw_only=True)
class MultiplicativeWeights:
    """MWEM: `rounds` times, choose the query that the synthetic histogram answers worst, measure it, and learn from it.

    The histogram starts uniform over the domain, with `size` rows in total. `size` is a public number: the true one if
    it is public, otherwise a guess or a noisy count. After each round, the histogram is fitted to all measurements, up
    to `passes` times. One more round, which is not learned from, measures the remaining error. The result is a dict:
    the `histogram`, its `answers` to the whole workload, `within`, which bounds the largest error of all answers with
    `confidence`, and what was `measured`, as pairs of a query and its noisy count.

    Promise: the composition of rounds + 1 choices and as many noisy counts. One unit changes the score of a choice by
    at most its number of rows Δ. All parameters are fixed before the first round.
    Error: `within`, which is measured and part of the result. A bound is known in advance if `cautious` is set (learn
    only what noise cannot explain, and answer with the mean of all rounds) and `size` rows are in the domain: s + 2e +
    ½ + size·√(ln|D|/(2·rounds)), where s is the error of the choice and e that of the noise.
    Source: Hardt-Ligett-McSherry 2012, with an update that goes to the measured count; choices as in [L3.EM] and
    [L6.T7], for [L3.CQ].
    """

    workload: Workload
    size: int
    rounds: int
    select: Exponential | PermuteAndFlip
    noise: Laplace | Gaussian
    passes: int = 10
    cautious: bool = False
    confidence: Number = 0.95

    def __post_init__(self) -> None:
        check_workload(self.workload)
        check_size(self.size)
        check_count(self.rounds, "rounds")
        check_count(self.passes, "passes")
        check_confidence(self.confidence)
        if not isinstance(self.select, Exponential | PermuteAndFlip) or self.select.choices is not None:
            raise InvalidArgument(
                "select must be an Exponential or a PermuteAndFlip, without choices.", code="part-does-not-fit"
            )
        if not isinstance(self.noise, Laplace | Gaussian):
            raise InvalidArgument("noise must be Laplace or Gaussian.", code="part-does-not-fit")

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move any one answer, in rows."""
        return self.workload.sensitivity(unit, rows_per_person, "Linf")

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "Linf")
        chosen = self.select.guarantee(two_sided(bound))
        counted = self.noise.guarantee(one_count(bound))
        return compose([chosen, counted] * (self.rounds + 1))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        workload: Workload,
        size: int,
        rounds: int | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        **more: Any,
    ) -> Self:
        """Half of the guarantee is for the choices and half for the counts, divided equally among the rounds.

        For a Pure guarantee: permute-and-flip and Laplace noise. Otherwise: the exponential mechanism, analyzed by its
        bounded range, and Gaussian noise. If the number of rounds is not given, a rule of thumb is used:
        (size·ε)^(2/3)/20, or size·√ρ/30.
        """
        check_workload(workload)
        bound = workload.sensitivity(unit or row(), rows_per_person, "Linf")
        count = rounds or _usual_rounds(guarantee, workload, check_count(size, "size") / bound.exact)

        def make(scale: Fraction) -> Any:
            pure = type(guarantee) is Pure
            rate = tidy(significant(1 / (2 * scale if pure else scale), up=False))
            return cls(
                workload=workload,
                size=size,
                rounds=count,
                select=PermuteAndFlip(rate=rate) if pure else Exponential(rate=rate),
                noise=Laplace(scale=tidy(scale), step=1) if pure else Gaussian(stddev=tidy(scale), step=1),
                **more,
            )

        if type(guarantee) is Pure:
            made: Self = make(
                significant(2 * (count + 1) * bound.exact / exactly(guarantee.epsilon), up=True, digits=11)
            )
        else:
            made = least_noise(
                lambda scale: make(significant(scale, up=True, digits=5)),  # so few digits are soon all tried
                lambda m: meets(m.guarantee(bound), guarantee),
                bound.exact * count,
            )
        return made

    def error(self, confidence: float) -> Accuracy:
        """The bound that is known in advance, in rows: that of the theorem for the mean of all rounds. Otherwise there
        is none.
        """
        sure = check_confidence(confidence)
        if not self.cautious or sure > float(self.confidence):
            why = "it depends on the data and is measured: see 'within' in the released value"
            if self.cautious:
                why = f"the margin is made for a confidence of {float(self.confidence)}"
            return Accuracy(amount=None, confidence=sure, of="every value", reason=why)
        lost = self._lost(1 - (1 - sure) / 2 / self.rounds)
        far = self.size * math.sqrt(math.log(self.workload.domain.size) / (2 * self.rounds))
        amount = min(lost + 2 * self._margin + 0.5 + far, float(self.size))
        return Accuracy(amount=amount, confidence=sure, of="every value")

    @property
    def _margin(self) -> float:
        """How far a count must be from the histogram's count before the histogram learns from it."""
        if not self.cautious:
            return float(self.noise.error(0.5))
        return float(self.noise.error(1 - (1 - check_confidence(self.confidence)) / 2, values=self.rounds))

    def _lost(self, sure: float) -> float:
        """By how much the error of the chosen query may be below the largest error, rounding to sixteenths included."""
        return float(self.select.error(sure, candidates=len(self.workload))) + 1 / FINE

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self.workload.domain.codes(none_of(value))

    def _draw(self, value: Any) -> dict[str, Any]:
        truth = self.workload.answers(value)
        weights, measured, margin = Weights(self.workload, self.size), [], self._margin
        total, cells = np.zeros_like(weights.histogram), []
        for _ in range(self.rounds):
            total += weights.histogram
            index, count = self._measure(truth, weights.histogram)
            measured.append((index, count))
            cells.append((self.workload.indicator(index), count))
            for _ in range(self.passes):
                if not sum(weights.update(inside, known, margin) for inside, known in reversed(cells)):
                    break
        learned = total / self.rounds if self.cautious else weights.histogram
        index, count = self._measure(truth, learned)
        answers = self.workload.answers(histogram=learned)
        each = 1 - (1 - check_confidence(self.confidence)) / 2
        within = abs(count - float(answers[index])) + float(self.noise.error(each)) + self._lost(each)
        return {"histogram": learned, "answers": answers, "within": within, "measured": [*measured, (index, count)]}

    def _measure(self, truth: NDArray[np.int64], histogram: NDArray[np.float64]) -> tuple[int, int]:
        """A query with a large error, and its noisy count."""
        errors = row_error(truth, self.workload.answers(histogram=histogram))
        index = int(self.select._draw(Scores(errors, Fraction(1, FINE))))
        return index, self.noise._draw(int(truth[index]))


def check_workload(workload: Any) -> None:
    """Check that the domain of the workload is small enough for a histogram."""
    if not isinstance(workload, Workload):
        raise InvalidArgument("workload must be a Workload of counting queries.", code="wrong-type")
    if workload.domain.size > MOST_CELLS:
        raise InvalidArgument(
            f"The domain has {workload.domain.size} cells. A histogram can be kept for at most 10^7. Use fewer "
            "columns, or measure marginals.",
            code="too-large",
        )


def two_sided(bound: Sensitivity) -> Sensitivity:
    """How one unit changes an error |true − own|: up or down, by at most its number of rows."""
    return Sensitivity(bound.amount, "Linf", bound.unit, bound.dimension)


def one_count(bound: Sensitivity) -> Sensitivity:
    """How one unit changes one count."""
    whole = exactly(bound.amount).denominator == 1
    return Sensitivity(bound.amount, "L1", bound.unit, grain=1 if whole else None)


def _usual_rounds(guarantee: Guarantee, workload: Workload, rows: Fraction) -> int:
    if type(guarantee) is Pure:
        many = float(rows * exactly(guarantee.epsilon)) ** (2 / 3) / 20
    else:
        many = float(rows) * math.sqrt(_rho_of(guarantee)) / 30
    return max(1, min(int(many), len(workload), 300))


def _rho_of(guarantee: Guarantee) -> float:
    """About the ρ that a guarantee allows. It determines only the number of rounds."""
    if isinstance(guarantee, ZeroConcentrated):
        return float(exactly(guarantee.rho))
    if isinstance(guarantee, Approx) and exactly(guarantee.delta):
        inverse = smallest_epsilon(
            lambda x: ZeroConcentrated(rho=1 / max(x, 1e-12)).epsilon_at(delta=guarantee.delta),
            float(guarantee.epsilon),
            precision=1e-3,
        )
        return 1 / max(inverse, 1e-12)
    return float(exactly(getattr(guarantee, "epsilon", 1))) ** 2 / 8
