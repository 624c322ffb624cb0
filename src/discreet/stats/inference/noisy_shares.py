"""Noisy products of shares, and the error of every total that is computed from them.

Units are divided among places (see `queries.shares`). A function that has the value g_v at place v has for a unit with
the shares p the value Σ g_v·p_v. Its total over all units, and the sum of its squares, are both linear in the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.stats.inference.laws import ErrorLaw, one_sided

Floats = NDArray[np.float64]
Pairs = tuple[tuple[int, int], ...]
Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
_FAR_ABOVE = 6.0
"""A total counts as known if it is this many deviations of its noise above 0."""


@dataclass(frozen=True)
class Noise:
    """The noise of every released number: Laplace of this scale, or normal with this deviation."""

    laplace: float = 0.0
    normal: float = 0.0

    @classmethod
    def of(cls, mechanism: Laplace | Gaussian) -> Noise:
        """The law that a mechanism draws from. Its lattice is too fine to matter here."""
        size = float(exactly(getattr(mechanism, mechanism.size_field)))
        return cls(laplace=size) if isinstance(mechanism, Laplace) else cls(normal=size)

    @property
    def variance(self) -> float:
        """The variance of one number's noise."""
        return 2 * self.laplace**2 + self.normal**2

    @lru_cache(maxsize=256)  # noqa: B019 - a small frozen value
    def quantile(self, coefficients: tuple[float, ...], miss: float) -> float:
        """The size that Σ coefficient·noise exceeds with at most this probability."""
        return float(self.law(np.array(coefficients), 0.0, 1e9).quantile(2 * miss))

    def law(self, coefficients: Floats, variance: Any, degrees: Any) -> ErrorLaw:
        """The error of Σ coefficient·number, besides a sampling error with this variance."""
        size = np.abs(coefficients)
        return ErrorLaw(variance, degrees, size * self.laplace, (size**2).sum(-1) * self.normal**2)


@dataclass(frozen=True)
class NoisyShares:
    """The released numbers, one for each pair of places, in the last dimension; several releases in the others."""

    numbers: Floats
    pairs: Pairs
    places: int
    noise: Noise

    def of_total(self, values: Floats) -> Floats:
        """The weight of each number in the total of a function: Σ_i Σ_v g_v·p_iv·(Σ_w p_iw)."""
        return np.stack([(values[..., v] + values[..., w]) / 2 for v, w in self.pairs], -1)

    def of_squares(self, values: Floats) -> Floats:
        """The weight of each number in the sum of the squares of a function."""
        return np.stack([values[..., v] * values[..., w] for v, w in self.pairs], -1)

    def total(self, values: Floats) -> Floats:
        """The noisy total of a function."""
        return (self.numbers * self.of_total(values)).sum(-1)  # type: ignore[no-any-return]

    def is_known(self, values: Floats) -> Any:
        """Whether a total is far above its noise, so that it may be divided by."""
        return self.total(values) > _FAR_ABOVE * self.error(values, sampled=False).deviation

    def at_most(self, values: Floats, miss: float) -> Floats:
        """A bound that the true total of a function exceeds with at most this probability."""
        return self.total(values) + self.noise.quantile(tuple(self.of_total(values).tolist()), miss)

    def error(self, values: Floats, *, sampled: bool = True, reach: Any = None) -> ErrorLaw:
        """The error of the total of a function whose mean is 0: of the noise, and if `sampled` of the sample too.

        The sampling variance is the noisy sum of squares. It has an error of its own: noise of a known variance τ², and
        sampling, by which the squares of a function that is at most R vary by at most R²·(sum of squares). The law is
        Student's, with the degrees of freedom that fit these two (Satterthwaite). Sampling counts twice: where few rows
        make up the sum, it is small just when the total is far away. So the fewest degrees that the range allows are
        used, and no other assumption about the rows is made. `reach` is R, where it is less than the largest |g_v|.
        """
        coefficients = self.of_total(values)
        if not sampled:
            return self.noise.law(coefficients, np.zeros(coefficients.shape[:-1]), 1e9)
        weights = self.of_squares(values)
        unsure = np.sqrt((weights**2).sum(-1) * self.noise.variance)
        squares = np.maximum((self.numbers * weights).sum(-1), np.maximum(unsure, 1e-12))
        largest = np.abs(values).max(-1) if reach is None else reach
        degrees = 2 * squares**2 / (2 * largest**2 * squares + unsure**2)
        return self.noise.law(coefficients, squares, np.maximum(degrees, 0.3))


def p_of(total: Any, law: ErrorLaw, alternative: Alternative = "two-sided", reach: Any = 0.0) -> Floats:
    """The probability under `law` of an error as extreme as `total`, in the direction of the alternative. `reach` is
    how far a unit can be to the other side (see `one_sided`).
    """
    both = law.beyond(total)
    if alternative == "two-sided":
        return both
    toward = np.asarray(total) > 0 if alternative == "greater" else np.asarray(total) < 0
    return one_sided(both, toward, reach * law.variance / np.maximum(law.deviation, 1e-150) ** 3)


def farthest(values: Floats, alternative: Alternative) -> Floats:
    """How far a unit can be on the side that an alternative does not look at."""
    return np.asarray(np.maximum(values if alternative == "less" else -values, 0.0).max(-1))


def values_kept(p_of_value: Callable[[Floats], Floats], ends: tuple[float, float], best: float, miss: float) -> Any:
    """The smallest interval within `ends` that contains every value with a p-value above `miss`. `best` is the value
    that fits best.
    """
    low, high = ends
    grid = np.union1d(np.linspace(low, high, 81), np.clip([best], low, high))
    kept = np.flatnonzero(p_of_value(grid) > miss)
    if not len(kept):  # the data contradict every value of the range: what remains is the closest one
        nearest = float(np.clip(best, low, high))
        return nearest, nearest
    return (
        float(grid[0]) if kept[0] == 0 else _edge(p_of_value, grid[kept[0] - 1], grid[kept[0]], miss),
        float(grid[-1]) if kept[-1] == len(grid) - 1 else _edge(p_of_value, grid[kept[-1] + 1], grid[kept[-1]], miss),
    )


def _edge(p_of_value: Callable[[Floats], Floats], outside: float, inside: float, miss: float) -> float:
    """Where values stop being kept, found in a few rounds of many values each. Errs outwards."""
    for _ in range(4):
        grid = np.linspace(outside, inside, 18)
        first = int(np.argmax(p_of_value(grid) > miss))
        outside, inside = grid[max(first - 1, 0)], grid[first]
    return float(outside)
