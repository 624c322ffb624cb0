"""Gaussian noise with a chosen covariance: correlated if answers are, smaller where they change less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.lattice import as_numbers
from discreet.mechanisms.protocol import TIGHT
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

_SLACK = Fraction(1, 2**40)
"""How far L·Lᵗ may be below M, as a part of M."""
_LARGEST = 32
"""The most coordinates: exact elimination is slow beyond."""


@dataclass(frozen=True, kw_only=True)
class CorrelatedGaussian:
    """Adds stddev·Z with Z ~ N(0, M), noise that follows a given covariance M.

    The answer is multiplied by L⁻¹, so that independent noise suffices, gets that noise on the lattice, and is
    multiplied by L again. L is the float Cholesky factor, M = L·Lᵗ. The product with L⁻¹ is exact, in rationals, so
    that noise is never added to a rounded float.

    Promise: let Δ bound ‖M^{-1/2}(Q(d)−Q(d'))‖₂ over neighboring tables d and d'. Then it promises what
    `Gaussian(stddev=…)` promises for the sensitivity Δ·√(1+2⁻⁴⁰), which covers the rounding of L.
    Error: of coordinate i, that of stddev·√M_ii. Source: [T.6.2].
    """

    stddev: Number
    covariance: Sequence[Sequence[Number]]

    def __post_init__(self) -> None:
        check_positive(self.stddev, "stddev")
        rows = np.asarray(self.covariance, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not 1 <= len(rows) <= _LARGEST:
            raise InvalidArgument(
                f"covariance must be a square matrix of at most {_LARGEST} rows.", code="unsuitable-covariance"
            )
        if not np.isfinite(rows).all() or (rows != rows.T).any():
            raise InvalidArgument("covariance must be finite and symmetric.", code="unsuitable-covariance")
        object.__setattr__(self, "covariance", tuple(tuple(row) for row in rows.tolist()))
        self._factor  # noqa: B018 (refuses a matrix that is not positive definite)

    @cached_property
    def _factor(self) -> list[list[Fraction]]:
        """L, with (1+2^-40)·L·Lᵗ ⪰ M checked in rationals: L⁻¹ enlarges a distance by at most √(1+2^-40) more than
        M^{-1/2} does.
        """
        rows = np.array(self.covariance)
        try:
            lower = np.linalg.cholesky(rows)
        except np.linalg.LinAlgError:
            raise InvalidArgument("covariance must be positive definite.", code="unsuitable-covariance") from None
        factor = [[Fraction(float(x)) for x in row] for row in lower]
        size = len(rows)
        gap = [
            [
                (1 + _SLACK) * sum(factor[i][k] * factor[j][k] for k in range(min(i, j) + 1))
                - Fraction(float(rows[i, j]))
                for j in range(size)
            ]
            for i in range(size)
        ]
        if not _positive_definite(gap):
            raise InvalidArgument(
                "covariance is too close to singular to be whitened safely. Regularize it.",
                code="unsuitable-covariance",
            )
        return factor

    @property
    def _noise(self) -> Gaussian:
        return Gaussian(stddev=self.stddev)

    def _whitened(self, sensitivity: Any) -> Sensitivity:
        if isinstance(sensitivity, Sensitivity):
            raise InvalidArgument(
                "CorrelatedGaussian needs a plain number, the bound on ‖M^{-1/2}(Q(d)−Q(d'))‖₂: no other norm gives "
                "it.",
                code="sensitivity-wrong-kind",
            )
        return Sensitivity(check_positive(sensitivity, "sensitivity") * sqrt_up(1 + _SLACK), "L2", None, self._size)

    @property
    def _size(self) -> int:
        return len(self.covariance)

    def sizes(self, value: Data) -> dict[str, int]:
        """Checks the length of the answer. `error` needs no sizes."""
        if int(np.size(value)) != self._size:
            raise InvalidArgument(
                f"The covariance is for {self._size} coordinates. Give an answer of the same length.",
                code="wrong-shape",
            )
        return {}

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """`sensitivity` bounds ‖M^{-1/2}(Q(d)−Q(d'))‖₂ over neighbors."""
        return self._noise.guarantee(self._whitened(sensitivity))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        covariance: Sequence[Sequence[Number]],
        sensitivity: SensitivityLike,
        calibration: str = TIGHT,
    ) -> Self:
        """The smallest multiple of N(0, M) that satisfies `guarantee`.

        `calibration="taught"` uses (Δ/ε)√(2 ln(2/δ)) [T.6.2].
        """
        shape = cls(stddev=1, covariance=covariance)
        bound = shape._whitened(sensitivity)
        noise = Gaussian.for_guarantee(guarantee, sensitivity=bound, calibration=calibration)
        return cls(stddev=noise.stddev, covariance=shape.covariance)

    @classmethod
    def for_error(cls, amount: Number, *, covariance: Sequence[Sequence[Number]], confidence: float = 0.95) -> Self:
        """The most noise for which every coordinate is within `amount` at once with this confidence."""
        shape = cls(stddev=1, covariance=covariance)
        widest = sqrt_up(max(Fraction(row[i]) for i, row in enumerate(shape.covariance)))
        part = check_positive(amount, "amount") / (widest * (1 + Fraction(1, 10**6)))
        noise = Gaussian.for_error(part, confidence=confidence, values=len(shape.covariance))
        return cls(stddev=noise.stddev, covariance=shape.covariance)

    def error(self, confidence: float) -> Accuracy:
        """Every coordinate at once, from the widest of them: by Šidák's inequality they can be treated as
        independent.
        """
        widest = float(sqrt_up(max(Fraction(row[i]) for i, row in enumerate(self.covariance))))
        values = len(self.covariance)
        noise = float(self._noise.error(confidence, values=values))
        return Accuracy(amount=noise * widest * (1 + 1e-6), confidence=float(confidence), of="every value")

    def _draw(self, value: Any) -> NDArray[np.float64]:
        flat = as_numbers(value).reshape(-1)
        exact = [Fraction(0) if x != x else Fraction(min(max(x, -(2.0**960)), 2.0**960)) for x in flat.tolist()]
        white: list[Fraction] = []
        for row, x in zip(self._factor, exact, strict=True):  # forward substitution: L·white = value
            white.append((x - sum(a * b for a, b in zip(row, white, strict=False))) / row[len(white)])
        noisy = self._noise._draw(np.array([*white, None], dtype=object)[:-1])
        return np.asarray(np.array([[float(x) for x in row] for row in self._factor]) @ noisy)


def _positive_definite(matrix: list[list[Fraction]]) -> bool:
    """Exact elimination: all pivots above 0."""
    rows = [list(row) for row in matrix]
    for i, row in enumerate(rows):
        if row[i] <= 0:
            return False
        for below in rows[i + 1 :]:
            ratio = below[i] / row[i]
            for j in range(i, len(rows)):
                below[j] -= ratio * row[j]
    return True
