"""A sum of squares that is known with noise, and the tail of an error whose sampling variance it is.

If the sum is known well, the error has a Student law with the degrees of freedom that fit (Satterthwaite). Otherwise
the sum is replaced by an upper bound that holds up to a part of the level, and the rest of the level is for the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.laws import ErrorLaw

Floats = NDArray[np.float64]
_KNOWN_WELL = 12.0
"""From this many degrees of freedom on, the Student law is used."""
_KNOWN = 3000.0
"""From this many on, a Student law is a normal law."""
_PART = 0.04
"""The part of a level that the upper bound of a sum of squares may miss by."""
_LEVELS = np.concatenate([np.geomspace(1e-6, 0.3, 46), [0.4, 0.55, 0.75, 1.0]])
_KEPT = 16
"""Of many Laplace terms the largest ones are kept, and the others counted as normal."""


@dataclass(frozen=True)
class UnsureSquares:
    """A noisy sum of squares. Its noise has Laplace terms of these scales and a normal part of this variance.

    `reach` is the most that one unit adds, and `factor` times the sum is the variance of the error.
    """

    value: Any
    laplace: Any
    normal: Any
    reach: Any
    factor: Any = 1.0

    @property
    def unsure(self) -> Floats:
        """The standard deviation of the noise."""
        return np.asarray(np.sqrt(2 * (np.asarray(self.laplace) ** 2).sum(-1) + self.normal))

    @property
    def kept(self) -> Floats:
        """The sum itself, raised to its noise if it is less."""
        return np.asarray(np.maximum(self.value, np.maximum(self.unsure, 1e-12)))

    @property
    def degrees(self) -> Floats:
        """How well the sum is known: squares that are at most R vary by at most R·(their sum)."""
        kept = self.kept
        return np.asarray(2 * kept**2 / np.maximum(self.reach * kept + self.unsure**2, 1e-300))

    def at_most(self, miss: Any) -> Floats:
        """A bound that the expected sum exceeds with at most this probability: half of it for the noise (Chernoff) and
        half for the sample. A sum of terms from 0 to R is below its mean V by t with probability ≤ exp(−t²/(2RV)).
        """
        log = np.log(2 / np.asarray(miss, dtype=np.float64))
        scales, normal = np.asarray(self.laplace, dtype=np.float64), np.asarray(self.normal, dtype=np.float64)
        largest = np.maximum(scales.max(-1, initial=0.0), 1e-9 * self.unsure + 1e-300)
        best = np.full(np.broadcast_shapes(log.shape, largest.shape), np.inf)
        for share in np.linspace(0.02, 0.98, 25):
            free = np.sqrt(2 * log / np.maximum(2 * (scales**2).sum(-1) + normal, 1e-300))
            rate = np.minimum(share / largest, 2 * share * free)
            growth = rate**2 * normal / 2 - np.log1p(-np.minimum((rate[..., None] * scales) ** 2, 0.999)).sum(-1)
            best = np.minimum(best, (log + growth) / rate)
        ahead = 2 * log * self.reach
        root = (np.sqrt(ahead) + np.sqrt(ahead + 4 * np.maximum(self.value + best, 0.0))) / 2
        return np.asarray(np.maximum(root**2, self.kept))


def noise_of(coefficients: Floats, laplace: float, normal: float) -> tuple[Floats, Floats]:
    """The law of Σ coefficient·noise: the largest Laplace scales, and the variance of the rest as a normal law."""
    size = np.abs(coefficients)
    variance = (size**2).sum(-1) * normal**2
    if not laplace:
        return size[..., :1] * 0.0, variance
    if size.shape[-1] <= _KEPT:
        return size * laplace, variance
    ordered = -np.sort(-size, axis=-1) * laplace
    return ordered[..., :_KEPT], variance + 2 * (ordered[..., _KEPT:] ** 2).sum(-1)


def law_of(squares: UnsureSquares, laplace: Any, normal: Any) -> ErrorLaw:
    """The law of an error with this sampling variance and this noise, if the sum of squares is known well."""
    shape = np.shape(normal)
    variance = np.broadcast_to(squares.factor * squares.kept, shape)
    return ErrorLaw(variance, np.broadcast_to(squares.degrees, shape), laplace, normal)


def skewness_of(squares: UnsureSquares, laplace: Any, normal: Any) -> Floats:
    """The largest skewness of an error with this sampling variance and this noise."""
    law = law_of(squares, laplace, normal)
    farthest = np.sqrt(np.maximum(squares.reach * squares.factor, 0.0))
    return np.asarray(farthest * law.variance / np.maximum(law.deviation, 1e-150) ** 3)


def p_value_of(total: Any, squares: UnsureSquares, laplace: Any, normal: Any, level: float | None = None) -> Floats:
    """The two-sided p-value of an error of this size. With a `level`, only whether it is above that is right."""
    total, normal = np.broadcast_arrays(np.asarray(total, dtype=np.float64), np.asarray(normal, dtype=np.float64))
    laplace = np.broadcast_to(laplace, (*total.shape, np.shape(laplace)[-1]))
    flat, some = total.reshape(-1), np.broadcast_to(squares.degrees >= _KNOWN_WELL, total.shape).reshape(-1)
    law = law_of(squares, laplace, normal)
    variance, degrees = np.asarray(law.variance).reshape(-1), np.asarray(law.degrees).reshape(-1)
    laplace, normal = laplace.reshape(len(flat), -1), normal.reshape(-1)
    found = np.empty(len(flat))
    sure = some & (degrees >= _KNOWN)
    for part, estimated in ((sure, 0.0), (some & ~sure, 1.0)):
        if part.any():
            plain = normal[part] + (1 - estimated) * variance[part]
            known = ErrorLaw(estimated * variance[part], degrees[part], laplace[part], plain)
            found[part] = known.beyond(flat[part])
    rest = np.flatnonzero(~some)
    if len(rest):

        def rejects(levels: Floats) -> Any:
            bound = np.broadcast_to(squares.at_most(_PART * levels.reshape(total.shape)), total.shape) * squares.factor
            plain = np.broadcast_to(bound, total.shape).reshape(-1)[rest] + normal[rest]
            beyond = ErrorLaw(np.zeros(len(rest)), np.ones(len(rest)), laplace[rest], plain).beyond(flat[rest])
            return beyond <= (1 - _PART) * levels[rest]

        if level is not None:
            found[rest] = np.where(rejects(np.full(len(flat), level)), 0.0, 1.0)
        else:
            found[rest] = _least_level(rejects, len(flat), rest)
    return found.reshape(total.shape)


def _least_level(rejects: Callable[[Floats], Any], size: int, rest: Any) -> Floats:
    """The least of `_LEVELS` at which each is rejected, by bisection: larger levels reject more."""
    low, high = np.full(len(rest), -1), np.full(len(rest), len(_LEVELS) - 1)
    while np.any(high - low > 1):
        middle = np.maximum((low + high + 1) // 2, 0)
        levels = np.ones(size)
        levels[rest] = _LEVELS[middle]
        held = rejects(levels)
        low, high = np.where(held, low, np.minimum(middle, high - 1)), np.where(held, np.minimum(middle, high), high)
    return np.asarray(_LEVELS[high])
