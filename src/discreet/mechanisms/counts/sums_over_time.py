"""Running sums that are drawn one step at a time, each step for many groups and numbers at once.

It is the measurement of `PrefixSums`, row by row: at step t we release (R̃Wx)_t + z_t for every group. Noise is never
stored, and nothing but the counts so far is needed to go on. The sums are arithmetic on all released steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.counts.factorization import (
    PrefixSums,
    column_norms,
    root,
    row_of,
    weights,
)
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import meets, tidy
from discreet.queries.sensitivity import Sensitivity

Floats = NDArray[np.float64]
FACTOR_STEP = Fraction(1, 2**34)
"""The lattice of the measurement: the factor is in units of 2^-26, and the weights of counts in units of 2^-8."""
_SMALL = 2**26
"""Numbers that add up to less are below 2^60 when they are multiplied by the factor, which is at most 2^34. Noise in
machine integers is below 2^61, so that both fit 64 bits together."""
_LARGEST_MATRIX = 2048
_ROUNDED = 1 + 1e-9


@lru_cache(maxsize=64)
def norm_of(points: int, normalized: bool, steps: int) -> Fraction:
    """How far a unit moves the whole measurement that is in so many steps, by at most 1 in each, in L2.

    Promise: the factor C has no negative entries, so a unit that adds u_s in step s moves the measurement by at most
    ‖Σ_{s∈S} C_s‖ if |u_s| ≤ 1 and it is in the steps S. The square is the sum of the inner products of these columns:
    at most the `steps` largest sums of the `steps` largest products of one column. It is also at most that of all.
    """
    one = sqrt_up(column_norms(points, normalized)[0])
    if steps == 1:
        return one
    factor, of = np.ldexp(root(points)[0].astype(np.float64), -26), np.ldexp(weights(points, normalized) * 1.0, -8)
    everything = float(np.sqrt((np.convolve(factor, of)[:points] ** 2).sum())) * _ROUNDED
    found = [steps * one, Fraction(everything)]
    if points <= _LARGEST_MATRIX:
        places = np.subtract.outer(np.arange(points), np.arange(points))
        columns = np.where(places >= 0, factor[np.maximum(places, 0)], 0.0) * of
        products = np.sort(columns.T @ columns, axis=1)[:, points - steps :].sum(axis=1)
        found.append(Fraction(float(np.sqrt(np.sort(products)[points - steps :].sum())) * _ROUNDED))
    return min(found)


@dataclass(frozen=True, kw_only=True)
class SumsOverTime:
    """Noisy running sums of several numbers over `points` steps. `stddevs` has the noise of each number, and a unit is
    in at most `steps` steps. If it is not `factored`, each step is measured by itself, and these are added: that is
    better for units that are in most steps.

    Promise: that of Gaussian noise on a measurement that one unit moves by what it adds to a step, times `norm`.
    This holds for any history of the data: if what a unit adds in a step is read again later and has changed, it is
    still at most the bound, and so is each entry of its column. The noise of a step is drawn once.
    Error: that of `PrefixSums`, for each number.
    Source: [L3.CDF]; for numbers that depend on earlier sums, Denisov et al. 2022.
    """

    points: int
    stddevs: tuple[Number, ...]
    steps: int = 1
    normalized: bool = True
    factored: bool = True

    def __post_init__(self) -> None:
        if check_count(self.steps, "steps") > check_count(self.points, "points"):
            raise InvalidArgument("A unit is in at most all steps. Lower steps.", code="out-of-range")
        for stddev in self.stddevs:
            check_positive(stddev, "stddev")
        _ = self.parts

    @property
    def parts(self) -> tuple[PrefixSums, ...]:
        """The running sums of each number."""
        return tuple(
            PrefixSums(points=self.points, stddev=stddev, normalized=self.normalized) for stddev in self.stddevs
        )

    @property
    def norm(self) -> Fraction:
        """How far a unit moves the measurement that adds at most 1 to each step it is in, in L2."""
        return norm_of(self.points, self.normalized, self.steps) if self.factored else sqrt_up(Fraction(self.steps))

    def deviations(self, place: int, *, single: bool) -> list[float]:
        """The standard deviation of the noise of each number: in one step, or in the sum up to it."""
        if self.factored:
            return [float(part.deviation(place + 1, place if single else 0)) for part in self.parts]
        return [float(exactly(stddev)) * math.sqrt(1 if single else place + 1) for stddev in self.stddevs]

    @property
    def mean_square(self) -> float:
        """The mean variance of all sums of the first number."""
        first = float(exactly(self.stddevs[0])) ** 2
        if not self.factored:
            return first * (self.points + 1) / 2
        return float(np.mean(np.square(self.parts[0].deviation(np.arange(1, self.points + 1)))))

    def guarantee(self, sensitivity: Any) -> Guarantee:
        """For units that move each number by so much in a step, in L2 over all groups."""
        norm, each = self.norm, []
        for stddev, bound in zip(self.stddevs, sensitivity, strict=True):
            moved = Sensitivity(bound.exact * norm, "L2", bound.unit, self.points * (bound.dimension or 1), FACTOR_STEP)
            each.append(Gaussian(stddev=stddev, step=float(FACTOR_STEP)).guarantee(moved))
        return compose(each)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        points: int,
        sensitivity: Sequence[Sensitivity],
        shares: Sequence[Fraction] | None = None,
        steps: int = 1,
        normalized: bool = True,
        factored: bool = True,
    ) -> Self:
        """The least noise that keeps (ε,δ). `shares` divide it among the numbers."""
        if not isinstance(guarantee, Approx) or not exactly(guarantee.delta):
            raise InvalidArgument(
                "Running sums have Gaussian noise, which needs a δ above 0: Approx(epsilon=1, delta=1e-6).",
                code="needs-delta",
            )
        parts = shares or [Fraction(1, len(sensitivity))] * len(sensitivity)
        given: dict[str, Any] = {"points": points, "steps": steps, "normalized": normalized, "factored": factored}
        norm = cls(stddevs=(1,), **given).norm
        largest = largest_mu(float(exactly(guarantee.epsilon)), float(exactly(guarantee.delta)))
        for attempt in range(40):
            lowered = 1 - 1e-9 * 4**attempt if attempt < 12 else 0.5 ** (attempt - 11)
            scales = [
                significant(bound.exact * norm / exactly(largest * lowered * math.sqrt(share)), up=True)
                for bound, share in zip(sensitivity, parts, strict=True)
            ]
            made = cls(stddevs=tuple(map(tidy, scales)), **given)
            if meets(made.guarantee(sensitivity), guarantee):
                return made
        raise InvalidArgument("No noise keeps this guarantee. Ask for a larger ε.", code="guarantee-out-of-reach")

    def error(self, confidence: float) -> Accuracy:
        """How far any sum of the number with the most noise may be off."""
        if self.factored:
            return max((part.error(confidence) for part in self.parts), key=float)
        noises = (Gaussian(stddev=max(self.deviations(self.points - 1, single=False))),)
        return replace(noises[0].error(confidence, values=self.points), of="every value")

    def step(self, number: int) -> StepOfSums:
        """One step, from 0."""
        return StepOfSums(sums=self, number=number)

    def sums(self, released: Sequence[Sequence[Any]]) -> list[Floats]:
        """For each number the sums of all groups after the last step, from what each step so far released, as whole
        numbers.
        """
        last = len(released)
        steps = (np.array([step[place] for step in released], dtype=np.float64) for place in range(len(self.stddevs)))
        if not self.factored:
            return [np.rint(one.sum(axis=0)) + 0.0 for one in steps]
        other, of = root(self.points)[1], weights(self.points, self.normalized)
        shares = row_of(other, of, last)[:last, None]
        return [np.rint((shares * one).sum(axis=0)) + 0.0 for one in steps]


@dataclass(frozen=True, kw_only=True)
class StepOfSums:
    """One step of running sums: one row of the measurement, for every group and number.

    Promise: that of all steps together, which is charged once.
    Error: that of the sums which it is a step of.
    """

    sums: SumsOverTime
    number: int

    def guarantee(self, sensitivity: Any) -> Guarantee:
        return self.sums.guarantee(sensitivity)

    def error(self, confidence: float) -> Accuracy:
        return self.sums.error(confidence)

    def _draw(self, value: Sequence[Any]) -> list[Floats]:
        """From the exact numbers of each step so far, an array of steps by groups for each number."""
        whole, of = root(self.sums.points)[0], weights(self.sums.points, self.sums.normalized)
        row = whole[self.number :: -1] * of[: self.number + 1]
        if not self.sums.factored:
            row = np.append(np.zeros(self.number, dtype=np.int64), int(1 / FACTOR_STEP))
        drawn = []
        for part, numbers in zip(self.sums.parts, value, strict=True):
            counts = np.asarray(numbers)
            small = counts.dtype != object and float(np.abs(counts.astype(np.float64)).sum()) < _SMALL
            kind: Any = np.int64 if small else object
            measured = row.astype(kind) @ counts.astype(kind)
            noisy = measured + samplers.discrete_gaussian(part._noise._variance, counts.shape[1])
            # a rounding of what is released: nothing is read of it but through the noise
            drawn.append(np.ldexp(np.asarray(noisy, dtype=np.float64), -34))
        return drawn
