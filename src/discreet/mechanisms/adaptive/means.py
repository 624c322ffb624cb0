"""Means that are asked one after another. Each question may depend on the earlier answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, significant
from discreet.exact.search import bisect, geometric
from discreet.guarantees.accuracy import Accuracy, at_most, check_confidence
from discreet.guarantees.generalization import (
    gaussian_tail,
    laplace_tail,
    miss_of,
    taught_width,
    width_on_population,
    worst_mean,
)
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, least_noise, meets, plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

QUANTUM = Fraction(1, 2**20)
"""The value of every row is rounded to a multiple of this, so that sums are integers."""
Kind = Literal["gaussian", "laplace"]
_NOISES: dict[Kind, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}


def one_row(unit: Unit, rows_per_person: int = 1) -> Sensitivity:
    """How far an added, removed or replaced row moves a sum. A person has one row, because rows must be independent."""
    if check_rows(unit, rows_per_person) != 1:
        raise InvalidArgument(
            "Rows of one person are not independent: give one row for each person.", code="rows-not-independent"
        )
    return Sensitivity(1, "L1", unit, grain=QUANTUM)


def of_size(scale: Any, size: int, kind: Kind) -> Gaussian | Laplace:
    """Noise on a sum over `size` rows, from its size on their mean."""
    if kind not in _NOISES:
        raise InvalidArgument("noise must be 'gaussian' or 'laplace'.", code="not-an-option")
    amount = significant(check_positive(scale, "scale") * check_count(size, "size"), up=True, digits=6)
    return _NOISES[kind]._make(amount, tidy(QUANTUM))


@dataclass(frozen=True, kw_only=True)
class AdaptiveMeans:
    """Noisy means of up to `queries` functions into [0,1] over a sample of `size` rows, asked one after another.

    `noise` is added to the sum over the rows. The next function may depend on all earlier answers. A sum is given in
    units of `QUANTUM`, and an answer is clipped to [0,1]. `dp.stream` starts it and charges once.

    Promise: the composition of `queries` draws of `noise`, each on a sum that one added, removed or replaced row moves
    by at most 1, for any analyst. The number of rows is `size`, which is public.
    Error: on the population, for all questions at once, by the exact transfer theorem. `calibration="taught"` states α
    + 10ε instead.
    Source: [L6.T9], [L6.C5]; decision 0009.
    """

    size: int
    queries: int
    noise: Gaussian | Laplace
    calibration: str = TIGHT

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        check_count(self.queries, "queries")
        check_calibration(self.calibration)
        if not isinstance(self.noise, Gaussian | Laplace) or self.noise._step != QUANTUM:
            raise InvalidArgument("noise must be Gaussian or Laplace noise with step=2**-20.", code="part-does-not-fit")

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """The sensitivity of a sum to one row."""
        return one_row(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """The guarantee of all questions together. The default is for one added or removed row."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity)
        one = self.noise.guarantee(bound)
        assert isinstance(one, LossDistribution)
        factors = tuple((pair, times * self.queries) for pair, times in one.factors)
        return LossDistribution(factors=factors, protects=one.protects)

    @classmethod
    def of_noise(cls, scale: Any, *, size: int, queries: int, noise: Kind = "gaussian") -> Self:
        """The mechanism with noise of this standard deviation on a mean, or this scale for Laplace noise."""
        return cls(size=size, queries=queries, noise=of_size(scale, size, noise))

    @classmethod
    def narrowest(cls, *, size: int, queries: int, confidence: float = 0.95, noise: Kind = "gaussian") -> Self:
        """The noise with the least error on the population. Less noise lets answers overfit, and more makes them
        inaccurate.
        """
        from scipy.optimize import minimize_scalar

        def width(log_scale: float) -> float:
            return cls.of_noise(math.exp(log_scale), size=size, queries=queries, noise=noise).width(confidence)

        middle = math.log(math.sqrt(math.sqrt(queries) / size) / 5)
        tolerance = 1e-3 if noise == "gaussian" else 0.05
        found = minimize_scalar(width, bounds=(middle - 3, middle + 3), options={"xatol": tolerance})
        return cls.of_noise(math.exp(float(found.x)), size=size, queries=queries, noise=noise)

    @classmethod
    def for_error(
        cls, amount: Number, *, size: int, queries: int, confidence: float = 0.95, noise: Kind = "gaussian"
    ) -> Self:
        """The most noise, and so the least cost, with which all answers stay within `amount` on the population."""
        most = float(check_positive(amount, "amount"))
        best = cls.narrowest(size=size, queries=queries, confidence=confidence, noise=noise)
        if best.width(confidence) > most:
            raise InvalidArgument(
                f"{size} rows answer {queries} questions within {at_most(best.width(confidence))} of the population at "
                f"best, not within {most:.3g}. Ask fewer questions, or of more rows.",
                code="error-out-of-reach",
            )

        def near(scale: float) -> bool:
            return cls.of_noise(scale, size=size, queries=queries, noise=noise).width(confidence) <= most

        far = max(2 * most, best._scale)
        scale = bisect(near, best._scale, far, relative=1e-3, middle=geometric)
        return best if scale == best._scale else cls.of_noise(scale, size=size, queries=queries, noise=noise)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        size: int,
        queries: int,
        noise: Kind = "gaussian",
        unit: Unit | None = None,
    ) -> Self:
        """The least noise that keeps `guarantee` for all questions together."""

        def make(scale: Fraction) -> Any:
            return cls.of_noise(scale, size=size, queries=queries, noise=noise)

        def keeps(made: Any) -> bool:
            return meets(made.guarantee(made.sensitivity(unit or row())), guarantee)

        least: Self = least_noise(make, keeps, Fraction(1, size))
        return least

    @classmethod
    def taught(cls, *, size: int, queries: int, confidence: float = 0.95) -> Self:
        """The mechanism of the lecture: Laplace noise, with all answers within α + 10ε [L6.C5, L6.T9]."""
        scale = taught_width(size, queries, miss_of(confidence))[1]
        made = cls.of_noise(scale, size=size, queries=queries, noise="laplace")
        return cls(size=size, queries=queries, noise=made.noise, calibration=TAUGHT)

    @property
    def _scale(self) -> float:
        """The size of the noise on a mean."""
        return float(self.noise._size) / self.size

    def width(self, confidence: float) -> float:
        """How far all answers may be from the means of the population. 1 if nothing is known."""
        miss = miss_of(confidence)
        tail: Callable[..., Any] = gaussian_tail if isinstance(self.noise, Gaussian) else laplace_tail
        off = float(QUANTUM) * (0.5 + 1 / self.size)  # for the rounding of rows, and for noise in whole quanta
        exact = width_on_population(self.guarantee(), self._scale * worst_mean(tail, self.queries, miss) + off, miss)
        if self.calibration == TAUGHT:
            return max(exact, taught_width(self.size, self.queries, miss)[0])
        return exact

    def error(self, confidence: float, *, of: str = "population") -> Accuracy:
        """The error of all answers at once, on the "population" or on the sample ("every value")."""
        sure = check_confidence(confidence)
        if of == "population":
            return Accuracy(amount=self.width(sure), confidence=sure, of="population")
        if of not in ("sample", "every value"):
            raise InvalidArgument('of must be "population" or "sample".', code="not-an-option")
        noise = float(self.noise.error(sure, values=self.queries)) / self.size
        return Accuracy(amount=min(1.0, noise + float(QUANTUM)), confidence=sure, of="every value")

    def _start(self) -> Answering:
        return Answering(self)


class Answering:
    """Answers to one question after another.

    Promise: each is one draw of the mechanism's noise, and there are no more than were charged.
    """

    def __init__(self, mechanism: AdaptiveMeans) -> None:
        self._mechanism, self._asked = mechanism, 0
        self._ahead: list[int] = []

    def _draw(self, value: int) -> float:
        """The noisy mean for the sum of one question, which is in units of `QUANTUM`."""
        if self._asked >= self._mechanism.queries:
            raise BudgetExhausted(
                f"All {self._mechanism.queries} questions are used up. Start again with new rows.",
                code="questions-used-up",
            )
        self._asked += 1
        noisy = (value + self._noise()) / (self._mechanism.size * QUANTUM.denominator)
        return min(1.0, max(0.0, noisy))

    def _noise(self) -> int:
        """One draw, in units of `QUANTUM`. Many are drawn at once, and each is used once."""
        if not samplers.is_private():  # a test may replace the noise at any time
            return int(self._mechanism.noise._noise(1)[0])
        if not self._ahead:
            left = self._mechanism.queries - self._asked + 1
            self._ahead = [int(one) for one in self._mechanism.noise._noise(min(256, left))]
        return self._ahead.pop()
