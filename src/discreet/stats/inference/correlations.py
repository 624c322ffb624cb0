"""Inference about a correlation from noisy second moments of two columns.

A hypothesis ρ is tested by the total over rows of u·v − ρ·(u² + v²)/2, for the standardized values u and v: it is n
times the estimate less ρ. The noise in it is a linear combination of the noise of the moments. Its sampling variance is
the sum of its squares, which is released too. No shape of the distribution is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.laws import one_sided
from discreet.stats.inference.noisy_shares import Alternative, Noise, values_kept
from discreet.stats.inference.unsure_squares import UnsureSquares, noise_of, p_value_of, skewness_of

Floats = NDArray[np.float64]
_SMALL, _FAR, _CLEAR, _ENOUGH = 0.25, 32.0, 6.0, 8.0
"""How large the noise of a variance may be; where squares are cut off, in deviations of u·v − ρ·(u² + v²)/2 for normal
columns (two-point columns have larger ones); and how far squares should be above their noise.
"""
_OWN_FAR = 16.0
"""Few units are more of their own deviations away."""


@dataclass(frozen=True)
class NoisyCorrelation:
    """Released numbers, with those of one release in the last dimension. `matrices` has what each adds to the second
    moments of 1 and both columns, and `ends` the lowest and highest values of the columns.

    `squares` is the noisy sum of squares over units, each over `reach`, with the `square_noise`.
    """

    numbers: Floats
    matrices: Floats
    noise: Noise
    ends: Floats
    square_noise: Noise
    squares: Any = None
    of_one: int = 1

    @cached_property
    def _standard(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The number of rows, the weights of (1, a, b) in u and v, and the part of each variance that noise may be."""
        moments = np.tensordot(self.numbers, self.matrices, (-1, 0))
        count = np.maximum(moments[..., 0, 0], 1.0)
        weights, shares = [], []
        for place in (1, 2):
            mean = moments[..., 0, place] / count
            spread = np.maximum(moments[..., place, place] / count - mean**2, 1e-12)
            weight = np.zeros((*np.shape(count), 3))
            weight[..., 0], weight[..., place] = -mean, 1.0
            each = np.einsum("...a,kab,...b->...k", weight, self.matrices, weight, optimize=True)
            shares.append(np.sqrt((each**2).sum(-1) * self.noise.variance) / (count * spread))
            weights.append(weight / np.sqrt(spread)[..., None])
        return count, weights[0], weights[1], np.maximum(*shares)

    @property
    def count(self) -> Floats:
        """The noisy number of rows."""
        return self._standard[0]

    @property
    def is_known(self) -> Any:
        """Whether the noise of both variances is small."""
        return self._standard[3] <= _SMALL

    @cached_property
    def correlation(self) -> Floats:
        """The estimate."""
        count, u, v, _ = self._standard
        moments = np.tensordot(self.numbers, self.matrices, (-1, 0))
        return np.asarray(np.clip(np.einsum("...a,...ab,...b->...", u, moments, v) / count, -1.0, 1.0))

    def form(self, value: Any) -> Floats:
        """The matrix of u·v − ρ·(u² + v²)/2 as a quadratic form of (1, a, b)."""
        _, u, v, _ = self._standard
        value = np.asarray(value, dtype=np.float64)[..., None, None]
        cross = u[..., :, None] * v[..., None, :]
        both = u[..., :, None] * u[..., None, :] + v[..., :, None] * v[..., None, :]
        return np.asarray((cross + np.swapaxes(cross, -1, -2)) / 2 - value * both / 2)

    @cached_property
    def reach(self) -> Floats:
        """Where the squares of units are cut off: as in a regression."""
        count, u, v, _ = self._standard
        corners = np.array([[1.0, a, b] for a in self.ends[0] for b in self.ends[1]])
        sizes = [np.abs(one @ corners.T).max(-1) for one in (u, v)]
        most = (
            self.of_one * (sizes[0] * sizes[1] + np.abs(self.correlation) * (sizes[0] ** 2 + sizes[1] ** 2) / 2)
        ) ** 2
        typical = np.maximum((1 - self.correlation**2) ** 2, 0.01)
        deviation = max(float(np.sqrt(self.square_noise.variance)), _ENOUGH)
        least = (_FAR * self.of_one) ** 2 * typical
        return np.asarray(np.minimum(np.maximum(count * typical / (_CLEAR * deviation), least), most))

    def scores(self, values: Floats) -> Floats:
        """For each row what it adds, in units of the root of `reach`."""
        form = self.form(self.correlation)
        return np.asarray(np.einsum("na,ab,nb->n", values, form, values, optimize=True)[:, None] / np.sqrt(self.reach))

    def _error(self, value: Any, sampled: bool) -> tuple[UnsureSquares, Floats, Floats]:
        """The sampling variance of the total at a hypothesis, and the law of its noise."""
        weights = np.einsum("...ab,kab->...k", self.form(value), self.matrices, optimize=True)
        noise = noise_of(weights, self.noise.laplace, self.noise.normal)
        if not sampled:
            return UnsureSquares(np.array(0.0), np.zeros(1), 0.0, 0.0, 0.0), *noise
        one = np.ones((*np.shape(self.squares), 1))
        own = noise_of(one, self.square_noise.laplace, self.square_noise.normal)
        most = np.clip(_OWN_FAR**2 * self.of_one**2 * np.asarray(self.squares) / self.count, 1e-6, 1.0)
        return UnsureSquares(np.asarray(self.squares), *own, most, self.reach), *noise

    def p_of(self, value: Any, level: float | None = None, *, sampled: bool = True) -> Floats:
        """The p-value of the hypothesis that the correlation is this. 1 where nothing is known."""
        total = self.count * (self.correlation - np.asarray(value, dtype=np.float64))
        return np.where(self.is_known, p_value_of(total, *self._error(value, sampled), level), 1.0)

    # --- one release --------------------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        return float(self.correlation) if bool(self.is_known) else float("nan")

    def p_value(self, null: float, alternative: Alternative) -> float:
        if not -1 <= null <= 1:
            return float({"two-sided": False, "greater": null > 1, "less": null < -1}[alternative])
        both = float(self.p_of(null))
        if alternative == "two-sided" or not bool(self.is_known):
            return both
        toward = (float(self.correlation) > null) == (alternative == "greater")
        return float(one_sided(both, toward, skewness_of(*self._error(null, True))))

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        level = 1 - confidence
        found = values_kept(
            lambda value: self.p_of(value, level, sampled=sampled), (-1.0, 1.0), float(self.correlation), level
        )
        return float(found[0]), float(found[1])
