"""Inference about a linear regression from noisy second moments.

The coefficients b solve A·b = c, for the noisy sums A of products of terms and c of terms times the outcome. Given a
value for one coefficient, the others follow, and the score of that coefficient (the sum of residuals times what is
left of its term after the others) has an error of known law: sampling, and a linear combination of the noise. So a
hypothesis is tested by its score, and an interval has all values that are not rejected (Fieller). The noise of the
term's own squares is thereby accounted for exactly, and becomes an infinite interval where it hides them. The noise of
the others is not, so nothing is said where it is not small (`is_known`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.laws import one_sided
from discreet.stats.inference.noisy_shares import Alternative, Noise
from discreet.stats.inference.unsure_squares import UnsureSquares, law_of, noise_of, p_value_of, skewness_of

Floats = NDArray[np.float64]
_STEPS = np.array([1.0, 1.5, 1.9, 2.2, 2.6, 3.2, 4.5, 7.0, 12.0, 30.0, 200.0, 10000.0])
"""Where the end of an interval is looked for, in deviations. Beyond the last it is infinite."""
FAR = 8.0
"""Residuals and scores that are more deviations away are taken to be few."""
SMALL = 0.35
"""The noise of the terms is small if it changes the sum of squares of every combination of them by at most this
part, in deviations.
"""


@dataclass(frozen=True)
class NoisyRegression:
    """Released numbers, with those of one release in the last dimension, and what each adds to the second moments.

    `matrices` has a symmetric matrix for each number: terms first, then the outcome. `of_count` has its weight in the
    number of rows. `bound` says how large a linear combination of the terms and the outcome can be.
    `squares` are noisy sums of squares of the scores of units, with the `square_noise`, each over `square_reach`; they
    are None if residuals are taken to have one variance.
    """

    numbers: Floats
    matrices: Floats
    of_count: Floats
    noise: Noise
    bound: Callable[[Floats], Floats]
    squares: Floats | None = None
    square_noise: Noise | None = None
    square_reach: Floats | None = None

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return int(self.matrices.shape[-1]) - 1

    @cached_property
    def moments(self) -> Floats:
        """The noisy second moments of all terms and the outcome."""
        return np.tensordot(self.numbers, self.matrices, (-1, 0))

    @cached_property
    def count(self) -> Floats:
        """The noisy number of rows."""
        return np.asarray(self.numbers @ self.of_count)

    @cached_property
    def _spectrum(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(self.moments[..., :-1, :-1])
        return values, vectors

    @cached_property
    def relative_noise(self) -> Floats:
        """By which part of itself the noise may change a sum of squares of terms, in deviations; inf if none is left.

        It is the root of the largest eigenvalue of E[(A^−½ N A^−½)²], for the noise N of A.
        """
        values, vectors = self._spectrum
        sound = values.min(-1) > 1e-9 * np.abs(values).max(-1)
        roots = vectors / np.sqrt(np.where(sound[..., None], values, 1.0))[..., None, :]
        terms = self.matrices[:, :-1, :-1]
        whitened = np.einsum("...ai,kab,...bj->...kij", roots, terms, roots, optimize=True)
        squared = np.einsum("...kij,...kjl->...il", whitened, whitened, optimize=True) * self.noise.variance
        return np.where(sound, np.sqrt(np.maximum(np.linalg.eigvalsh(squared)[..., -1], 0.0)), np.inf)

    @cached_property
    def is_known(self) -> Any:
        """Whether the noise of the terms is small enough for intervals."""
        return self.relative_noise <= SMALL

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of A, where it is known."""
        values, vectors = self._spectrum
        kept = np.where(self.is_known[..., None], values, 1.0)
        return np.asarray(np.einsum("...ai,...i,...bi->...ab", vectors, 1 / kept, vectors))

    @cached_property
    def coefficients(self) -> Floats:
        """The estimated coefficients; NaN where the noise is too large."""
        found = np.einsum("...ab,...b->...a", self.inverse, self.moments[..., :-1, -1])
        return np.where(np.asarray(self.is_known)[..., None], found, np.nan)

    # --- residuals ----------------------------------------------------------------------------------------------

    @cached_property
    def residual(self) -> Floats:
        """The weights of the terms and the outcome in the residual."""
        known = np.nan_to_num(self.coefficients)
        return np.concatenate([-known, np.ones((*known.shape[:-1], 1))], -1)

    @cached_property
    def residual_squares(self) -> Floats:
        """The noisy sum of squared residuals. Least squares make it too small by the noise they fit: that is added."""
        of_noise = np.einsum("kab,...b->...ka", self.matrices[:, :-1], self.residual)
        fitted = np.einsum("...ka,...ab,...kb->...", of_noise, self.inverse, of_noise, optimize=True)
        plain = np.einsum("...a,...ab,...b->...", self.residual, self.moments, self.residual)
        return np.asarray(plain + fitted * self.noise.variance)

    @cached_property
    def freedom(self) -> Floats:
        """The number of rows less that of coefficients."""
        return np.maximum(self.count - self.size, 1.0)

    @cached_property
    def reach(self) -> Floats:
        """The most that a squared residual can be: the ranges are public. Few are taken to be farther than 8
        deviations away.
        """
        far = FAR**2 * np.maximum(self.residual_squares, 0.0) / np.maximum(self.count, 1.0)
        return np.asarray(np.minimum(self.bound(self.residual) ** 2, far))

    @cached_property
    def _of_one_variance(self) -> UnsureSquares:
        weights = np.einsum("...a,kab,...b->...k", self.residual, self.matrices, self.residual, optimize=True)
        laplace, normal = noise_of(weights, self.noise.laplace, self.noise.normal)
        kept = np.maximum(self.residual_squares, 0.0)
        of_count = (self.of_count**2).sum() * self.noise.variance * (kept / self.freedom) ** 2
        return UnsureSquares(self.residual_squares, laplace, normal + of_count, self.reach)

    def squares_of(self, place: int) -> UnsureSquares:
        """The sampling variance of the score of a coefficient."""
        if self.squares is None or self.square_noise is None or self.square_reach is None:
            found = self._of_one_variance
            own = np.where(self.is_known, self.inverse[..., place, place], 1.0)
            factor = 1 / (np.maximum(own, 1e-300) * self.freedom)
            return UnsureSquares(found.value, found.laplace, found.normal, found.reach, factor)
        one = np.ones((*self.squares.shape[:-1], 1))
        laplace, normal = noise_of(one, self.square_noise.laplace, self.square_noise.normal)
        factor = self.square_reach[..., place]
        return UnsureSquares(self.squares[..., place], laplace, normal, 1.0, factor)

    # --- one coefficient ----------------------------------------------------------------------------------------

    def weights_of_score(self, place: int) -> Floats:
        """The weights of the terms in what is left of one term after the others."""
        own = self.inverse[..., :, place]
        return own / np.where(self.is_known, own[..., place], 1.0)[..., None]

    def _score(self, place: int, value: Any) -> tuple[Floats, Floats, Floats]:
        """The score at a hypothesis, and the law of its noise."""
        value = np.asarray(value, dtype=np.float64)
        weights, known = self.weights_of_score(place), np.nan_to_num(self.coefficients)
        gap = value - known[..., place]
        others = known + weights * gap[..., None]
        residual = np.concatenate([-others, np.ones((*others.shape[:-1], 1))], -1)
        each = np.einsum("...a,kab->...kb", weights, self.matrices[:, :-1], optimize=True)
        laplace, normal = noise_of(
            np.einsum("...kb,...b->...k", each, residual, optimize=True), self.noise.laplace, self.noise.normal
        )
        own = np.where(self.is_known, self.inverse[..., place, place], 1.0)
        return -gap / own, laplace, normal

    def p_of(self, place: int, value: Any, level: float | None = None, *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that a coefficient has this value. 1 where nothing is known."""
        total, laplace, normal = self._score(place, value)
        squares = self.squares_of(place) if sampled else UnsureSquares(np.array(0.0), np.zeros(1), 0.0, 0.0, 0.0)
        found = p_value_of(total, squares, laplace, normal, level)
        return np.where(self.is_known, found, 1.0)

    def p_to_one_side(self, place: int, value: float, alternative: Alternative) -> float:
        """The p-value of one release against coefficients that are all greater, or all less."""
        both = self.p_of(place, value)
        if not bool(self.is_known):
            return 1.0
        total, laplace, normal = self._score(place, value)
        toward = float(total) > 0 if alternative == "greater" else float(total) < 0
        return float(one_sided(both, toward, skewness_of(self.squares_of(place), laplace, normal)))

    def deviations(self) -> Floats:
        """The standard deviation of each coefficient's error; NaN where nothing is known."""
        found = []
        for place in range(self.size):
            _, laplace, normal = self._score(place, np.nan_to_num(self.coefficients)[..., place])
            law = law_of(self.squares_of(place), laplace, normal)
            found.append(law.deviation * self.inverse[..., place, place])
        return np.where(np.asarray(self.is_known)[..., None], np.stack(found, -1), np.nan)

    # --- one release --------------------------------------------------------------------------------------------

    def interval(self, place: int, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        """The values of a coefficient that are not rejected. Infinite if the noise hides the term."""
        if not bool(self.is_known):
            return -np.inf, np.inf
        best, level = float(self.coefficients[place]), 1 - confidence
        step = max(float(self.deviations()[place]), 1e-12)
        reached = step * _STEPS
        ends = []
        for sign in (-1.0, 1.0):
            kept = self.p_of(place, best + sign * reached, level, sampled=sampled) > level
            if kept[-1]:
                ends.append(sign * np.inf)
                continue
            last = int(np.flatnonzero(kept)[-1]) if kept.any() else -1
            inside, outside = (reached[last] if last >= 0 else 0.0), reached[last + 1]
            for _ in range(3):
                grid = np.linspace(inside, outside, 10)
                held = self.p_of(place, best + sign * grid, level, sampled=sampled) > level
                held[0] = True
                at = int(np.flatnonzero(held)[-1])
                inside, outside = grid[at], grid[min(at + 1, 9)]
            ends.append(best + sign * outside)
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True)
class CoefficientOf:
    """One coefficient of a regression, in the unit of its column. The model is about how far it is from `start`."""

    model: NoisyRegression
    place: int
    unit: float
    start: float = 0.0

    @property
    def value(self) -> float:
        return (self.start + float(self.model.coefficients[self.place])) * self.unit

    def p_value(self, null: float, alternative: Alternative) -> float:
        if not bool(self.model.is_known):
            return 1.0
        value = null / self.unit - self.start
        if alternative == "two-sided":
            return float(self.model.p_of(self.place, value))
        flipped: Alternative = "less" if alternative == "greater" else "greater"
        return self.model.p_to_one_side(self.place, value, alternative if self.unit > 0 else flipped)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        low, high = self.model.interval(self.place, confidence, sampled=sampled)
        return (self.start + low) * self.unit, (self.start + high) * self.unit
