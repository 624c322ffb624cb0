"""Numbers that look random and follow from a public seed: the same release always has the same p-value.

Nothing private depends on them. They imagine releases as they would be if a hypothesis were true.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
_TABLE = 60.0
"""Below this mean a Poisson law is inverted from a table, and above it by its expansion about the normal law."""


class PublicNumbers:
    """A sequence of uniform numbers that follows from released numbers."""

    def __init__(self, *seed: Any) -> None:
        parts = [np.ascontiguousarray(part, dtype=np.float64).tobytes() for part in seed]
        self._key, self._used = hashlib.sha256(b"".join(parts)).digest(), 0

    def uniform(self, *shape: int) -> Floats:
        """Numbers strictly between 0 and 1."""
        size = int(np.prod(shape))
        self._used += 1
        stream = hashlib.shake_256(self._key + self._used.to_bytes(8, "big")).digest(4 * size)
        return (np.frombuffer(stream, dtype="<u4").astype(np.float64).reshape(shape) + 0.5) * 2.0**-32

    def normal(self, *shape: int) -> Floats:
        """Standard normal numbers."""
        return np.asarray(special.ndtri(self.uniform(*shape)))

    def student(self, degrees: Any, *shape: int) -> Floats:
        """Numbers with Student's law. `degrees` has the last dimension of `shape`."""
        return np.asarray(special.stdtrit(np.broadcast_to(degrees, shape), self.uniform(*shape)))

    def laplace(self, scale: float, *shape: int, whole: bool = False) -> Floats:
        """Laplace noise. With `whole`, the law on the whole numbers that mechanisms draw from."""
        both = -np.log(self.uniform(2, *shape)) * scale
        both = np.floor(both) if whole else both  # the whole part of an exponential number has a geometric law
        return np.asarray(both[0] - both[1])

    def poisson(self, means: Floats, draws: int) -> Floats:
        """For each mean, counts with Poisson's law: an array with `draws` in front of the dimensions of `means`."""
        means = np.asarray(means, dtype=np.float64)
        drawn = self.uniform(means.size, draws)
        for place, mean in enumerate(means.reshape(-1)):
            drawn[place] = _poisson_of(drawn[place], mean)
        return np.moveaxis(drawn.reshape(*means.shape, draws), -1, 0)


def _poisson_of(levels: Floats, mean: float) -> Floats:
    if mean < _TABLE:
        most = int(mean + 12 * np.sqrt(mean) + 30)
        return np.searchsorted(special.pdtr(np.arange(most), mean), levels).astype(np.float64)
    z = special.ndtri(levels)
    near = mean + np.sqrt(mean) * z + (z**2 - 1) / 6 - (z**3 - z) / (72 * np.sqrt(mean))
    return np.asarray(np.maximum(np.rint(near), 0.0))


def p_simulated(statistic: float, imagined: Iterable[float]) -> float:
    """The p-value (1 + number of imagined statistics that are at least as large) / (1 + their number).

    If the imagined ones have the law of the statistic, it is at most α with probability at most α, for any number of
    them.
    """
    found = np.asarray(imagined, dtype=np.float64)
    # a statistic that differs only by rounding counts as equal
    return float((1 + np.count_nonzero(found >= statistic * (1 - 1e-9))) / (1 + len(found)))
