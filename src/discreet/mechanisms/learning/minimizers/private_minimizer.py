"""The minimizer of a regularized loss, plus noise for the distance that one row can move it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.minimizers.certified_minimum import Problem, SmoothLoss, minimum
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import plain_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

MOST_ROWS = 2**24


@dataclass(frozen=True, kw_only=True)
class PrivateMinimizer:
    """Releases w* + noise, where w* minimizes Σ loss(x·w, y) + (ridge/2)‖w‖² over rows of norm ≤ `row_norm`.

    If x = φ(·) are the features of a kernel, w* is the function in its space that kernel ridge regression or a smooth
    support vector machine finds, and the noise is a path of the kernel's Gaussian process [T.6.10].

    Promise: J is ridge-strongly convex, and the gradient of a row is at most L·row_norm. So an added or removed row
    moves w* by at most L·row_norm/ridge, and a replaced row by twice that. The noise is added to weights within a
    certified distance of w*, and this distance counts twice.
    Error: that of the noise, for each weight.
    Source: [T.6.10]; Chaudhuri-Monteleoni-Sarwate 2011, Hall-Rinaldo-Wasserman 2013.
    """

    loss: SmoothLoss
    dimension: int
    ridge: Number
    noise: Gaussian
    row_norm: Number = 1
    radius: Number = 64
    targets: tuple[Number, Number] = (-1, 1)
    most_rows: int = MOST_ROWS

    def __post_init__(self) -> None:
        check_count(self.dimension, "dimension")
        for name in ("ridge", "row_norm", "radius"):
            check_positive(getattr(self, name), name)
        if not isinstance(self.noise, Gaussian):
            raise InvalidArgument("noise must be Gaussian.", code="part-does-not-fit")

    @cached_property
    def _problem(self) -> Problem:
        low, high = (exactly(end) for end in self.targets)
        norm, ridge, radius = exactly(self.row_norm), exactly(self.ridge), exactly(self.radius)
        return Problem(self.loss, self.dimension, norm, ridge, radius, (low, high), self.most_rows)

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the weights before noise."""
        who, problem = row() if unit is None else unit, self._problem
        rows = check_rows(who, rows_per_person) * (2 if who.neighbors == "replace" else 1)
        moved = rows * problem.lipschitz * problem.row_norm / problem.ridge + 2 * problem.distance(Fraction(0))
        return Sensitivity(moved, "L2", unit=unit, dimension=self.dimension)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2", self.dimension)
        return self.noise.guarantee(bound)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        step: Number | None = None,
        **others: Any,
    ) -> Self:
        """The least noise that keeps `guarantee`, on a lattice of `step`."""
        first = cls(noise=Gaussian(stddev=1), **others)
        bound = first.sensitivity(unit, rows_per_person)
        return cls(noise=Gaussian.for_guarantee(guarantee, sensitivity=bound, step=step), **others)

    def error(self, confidence: float) -> Accuracy:
        """The error of all weights at once."""
        return self.noise.error(confidence, values=self.dimension)

    def _draw(self, value: Any) -> NDArray[np.float64]:
        zeros = [Fraction(0)] * self.dimension
        return np.asarray(self.noise._draw(minimum(self._problem, value, zeros)))
