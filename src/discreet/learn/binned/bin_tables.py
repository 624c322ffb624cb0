"""The bins of a column and their features, by a public rule from its declared range or categories.

A range is cut into equal parts, and more finely toward its lower end, which has a bin of its own: many columns are 0 in
most rows and skewed elsewhere. Neighboring bins have similar features, so that they learn from each other's rows, and
more bins cost no accuracy. The inner product of the features of two bins is a kernel of their distance, on the scale of
the range and of its logarithm. The rule was chosen on generated tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.learn.binned.bin_columns import WHOLE, Codes, Columns, Declared
from discreet.rows.gradients.binned import bins_of

Floats = NDArray[np.float64]
EQUAL, NEAR, PAIRED = 64, 11, 16
"""The equal parts of a range, the cuts toward its lower end, and the parts of a column of a pair."""
MOST_PAIRED = 1024
_CLOSEST = 1e-3  # the first cut above the lower end, as a part of the range
_WIDE, _SMOOTH, _SKEWED, _OWN = 0.3, 0.2, 0.25, 0.02


@dataclass(frozen=True)
class ColumnBins:
    """The bins of one column: of its numbers between `edges`, with one for missing cells, or of its `choices`, with one
    for all other cells.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    edges: Floats | None = None
    choices: tuple[Any, ...] | None = None
    whole: bool = False  # each bin is one whole number

    @property
    def bins(self) -> int:
        """How many bins there are, the last one for missing or other cells."""
        return (len(self.edges) + 2) if self.edges is not None else len(self.choices or ()) + 1

    def codes(self, columns: Columns, place: int) -> Codes:
        """The bin of each row. Each depends on its own cell alone."""
        if self.choices is not None:
            return columns.places(place, self.choices)
        return bins_of(columns.numbers(place), self.edges)  # type: ignore[arg-type]

    @property
    def centers(self) -> Floats:
        """The middle of each bin of numbers, as a part of the range."""
        span = self.high - self.low
        ends: Floats = np.concatenate([[self.low], self.edges, [self.high]])
        return np.asarray(np.clip(((ends[1:] + ends[:-1]) / 2 - self.low) / span, 0.0, 1.0))

    def labels(self) -> list[str]:
        """What each bin is called."""
        if self.choices is not None:
            return [*map(str, self.choices), "other"]
        if self.whole:
            return [*(f"{int(edge - 0.5)}" for edge in self.edges), f"{int(self.high)}", "missing"]  # type: ignore[union-attr]
        ends = [f"{end:.6g}" for end in self.edges]  # type: ignore[union-attr]
        return [
            f"< {ends[0]}",
            *(f"{a} to {b}" for a, b in pairwise(ends)),
            f"≥ {ends[-1]}",
            "missing",
        ]

    def features(self) -> Floats:
        """The features of each bin, bins × weights, with norm 1."""
        if self.choices is not None:
            return _unit_features(np.eye(self.bins))
        return _number_features(tuple(self.centers))


def bins_for(declared: Declared, found: Any = None, parts: int = EQUAL, near: int = NEAR) -> ColumnBins:
    """The bins of a column, by what is declared of it or by a range that was found."""
    if declared.choices is not None:
        return ColumnBins(declared.name, choices=declared.choices)
    low, high = declared.range if declared.range is not None else (float(found[0]), float(found[1]))
    if declared.range is not None and declared.kind == WHOLE and high - low < parts:
        edges = np.arange(np.ceil(low), np.floor(high), dtype=np.float64) + 0.5
        if len(edges):
            return ColumnBins(declared.name, low, high, edges, whole=True)
    return ColumnBins(declared.name, low, high, low + (high - low) * _cuts(parts, near))


def _cuts(parts: int, near: int) -> Floats:
    """Where a range is cut, as parts of it. The first cut leaves only the lower end, and what is below it."""
    equal = np.arange(1, parts) / parts
    if not near:
        return equal if len(equal) else np.array([0.5])
    closer = np.geomspace(_CLOSEST, 1, near + 1)[:-1]
    return np.unique(np.concatenate([[2.0**-40], equal, closer]))


def pair_features(first: ColumnBins, second: ColumnBins) -> Floats:
    """The features of each pair of bins: products of those of both, which add nothing that one column alone could."""
    if first.bins * second.bins > MOST_PAIRED:
        raise InvalidArgument(
            f"The pair of {first.name} and {second.name} has {first.bins * second.bins} bins, more than {MOST_PAIRED}. "
            "Declare fewer categories for the pair.",
            code="too-large",
        )
    return np.asarray(np.kron(first.features(), second.features()), dtype=np.float64)


@lru_cache(maxsize=256)
def _number_features(centers: tuple[float, ...]) -> Floats:
    """Features of bins at these centers, and of the bin of missing cells, which resembles no other."""
    u = np.array(centers)
    t = np.log1p(u / _CLOSEST) / np.log1p(1 / _CLOSEST)
    apart, skewed = np.abs(u[:, None] - u), np.abs(t[:, None] - t)
    kernel = np.exp(-apart / _WIDE) + np.exp(-((apart / _SMOOTH) ** 2) / 2) + _SKEWED * np.exp(-skewed / _WIDE)
    known = _unit_features(kernel + _OWN * np.eye(len(u)))
    whole = np.zeros((len(u) + 1, known.shape[1] + 1))
    whole[:-1, :-1], whole[-1, -1] = known, 1.0
    return whole


def _unit_features(kernel: Floats) -> Floats:
    """Features of norm 1 whose inner products are those of the kernel, without the constant that all bins share."""
    means = kernel.mean(axis=1)
    centered = kernel - means[:, None] - means + kernel.mean()
    sizes, axes = np.linalg.eigh((centered + centered.T) / 2)
    kept = sizes > 1e-9 * sizes[-1]
    found = axes[:, kept] * np.sqrt(sizes[kept])
    return np.asarray(found / np.linalg.norm(found, axis=1)[:, None])
