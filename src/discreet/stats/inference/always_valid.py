"""Evidence about two proportions that may be looked at again and again: the level holds at all looks together.

For a hypothesis (π, ρ) about the two proportions and an alternative (π', ρ'), the likelihood ratio of all rows so far
is a martingale. Its logarithm is linear in the counts. With noisy counts in their place, it is multiplied at each look
by exp(Σ c·noise), whose mean is known: divided by it, the ratio is a martingale again. A mixture over alternatives
exceeds 1/α at any look with probability at most α (Ville). The smallest mixture over all proportions that a hypothesis
allows is the evidence against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.stats.inference.proportions import bisect_between

Floats = NDArray[np.float64]
_DISTANCES, _RANGE = 14, 100.0
"""How many distances of alternatives are mixed, and the largest divided by the smallest, in units of log odds."""
_SHIFTED = 0.1
"""The weight of alternatives in which both proportions move together: they rule out values of the common one."""
_EDGE = 1e-9


@dataclass(frozen=True)
class Mixture:
    """The mixture of alternatives, for whole-number noise of a known law on every count of every look."""

    laplace: float = 0.0
    normal: float = 0.0

    @classmethod
    def of(cls, noise: Laplace | Gaussian) -> Mixture:
        size = float(exactly(getattr(noise, noise.size_field)))
        return cls(laplace=size) if isinstance(noise, Laplace) else cls(normal=size)

    @cached_property
    def moves(self) -> tuple[Floats, Floats]:
        """How far each alternative moves the two log odds, and the logarithms of the weights."""
        most = min(1.0, 0.8 / self.laplace) if self.laplace else 1.0
        sizes = most * _RANGE ** np.linspace(-1.0, 0.0, _DISTANCES)
        signed = np.concatenate([sizes, -sizes])
        apart, together = np.stack([-signed, signed], 1), np.stack([signed, signed], 1)
        weights = np.repeat([(1 - _SHIFTED) / len(signed), _SHIFTED / len(signed)], len(signed))
        return np.concatenate([apart, together]), np.log(weights)

    def log_mean(self, size: Floats) -> Floats:
        """The logarithm of the mean of exp(size·noise), or an upper bound of it."""
        if not self.laplace:
            return self.normal**2 * size**2 / 2
        rate = 1 / self.laplace
        lost = -np.expm1(-rate)  # discrete Laplace noise is the difference of two geometric variables
        return np.asarray(2 * np.log(lost) - np.log(-np.expm1(size - rate)) - np.log(-np.expm1(-size - rate)))

    def log_evidence(self, counts: Any, looks: Any, first: Any, second: Any) -> Floats:
        """The logarithm of the mixture against the proportions `first` and `second`.

        `counts` has in its last dimension the sums over all looks of the noisy counts: without and with success in the
        first group, and in the second. The other dimensions are those of `looks`, `first` and `second`.
        """
        moves, weights = self.moves
        parts = []
        for group, share in enumerate((first, second)):
            share = np.clip(np.asarray(share, dtype=np.float64), _EDGE, 1 - _EDGE)[..., None]
            move = moves[:, group]
            # log(1 − π + π·e^move): the logarithm of the factor between the odds and the probabilities
            scale = np.log1p(share * np.expm1(move))
            parts += [-scale, move - scale]
        counts = np.asarray(counts, dtype=np.float64)
        log = weights + sum(part * counts[..., place, None] for place, part in enumerate(parts))
        log = log - np.asarray(looks)[..., None] * sum(self.log_mean(part) for part in parts)
        most = log.max(-1, keepdims=True)
        return np.asarray(most[..., 0] + np.log(np.exp(log - most).sum(-1)))

    def log_against(self, counts: Floats, looks: int, gap: float) -> float:
        """The logarithm of the evidence against second − first = gap: the least over all such proportions."""
        low, high = max(0.0, -gap), min(1.0, 1 - gap)
        sizes = np.maximum([counts[0] + counts[1], counts[2] + counts[3]], 1.0)
        best = float(np.clip((counts[1] + counts[3] - gap * sizes[1]) / sizes.sum(), low, high))
        wide = 8 * np.sqrt(
            (max(best * (1 - best), 1 / sizes.sum()) + self._variance * looks / sizes.sum()) / sizes.sum()
        )
        near = np.clip(best + wide * np.linspace(-1, 1, 41), low, high)
        grid = np.unique(np.concatenate([low + (high - low) * np.linspace(0, 1, 33), near]))
        for _ in range(3):
            found = self.log_evidence(counts, looks, grid, grid + gap)
            least = int(np.argmin(found))
            grid = np.linspace(grid[max(least - 1, 0)], grid[min(least + 1, len(grid) - 1)], 15)
        return float(found.min())

    @property
    def _variance(self) -> float:
        return 2 * self.laplace**2 + self.normal**2

    def interval(self, counts: Floats, looks: int, confidence: float) -> tuple[float, float]:
        """The differences that are not rejected. All such intervals of all looks hold at once."""
        limit = -np.log(1 - confidence)

        def kept(gap: float) -> bool:
            return bool(self.log_against(counts, looks, gap) < limit)

        best = difference(counts)
        if not kept(best):
            return best, best
        low = -1.0 if kept(-1.0) else bisect_between(kept, best, -1.0, 20)
        high = 1.0 if kept(1.0) else bisect_between(kept, best, 1.0, 20)
        return low, high


def difference(counts: NDArray[Any]) -> float:
    """The estimated difference of the two proportions."""
    shares = [
        float(np.clip(counts[low + 1] / size, 0.0, 1.0)) if (size := counts[low] + counts[low + 1]) > 0 else 0.5
        for low in (0, 2)
    ]
    return shares[1] - shares[0]
