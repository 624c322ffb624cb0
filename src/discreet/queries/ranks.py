"""Rows by rank on a public lattice. Only the requested ranks are sorted."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.queries.intervals import Grid, Integers
from discreet.rows import column, present
from discreet.rows.containers import Data

Ints = NDArray[np.int64]
_BUCKET_BITS = 20
_SORT_FROM = 16
"""So many windows are worth one sort of all rows."""


def places_of(points: Grid | Integers, value: Data) -> Ints:
    """The index of each row among the points. Missing rows are dropped, unless the space says where they go."""
    rows = column(value)
    if points.missing is None and not (here := present(rows)).all():
        rows = rows[here]
    return points.positions(rows)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Equal rows in increasing order: their index, and their ranks from `start` to `end` (exclusive)."""

    places: Ints = field(repr=False)
    start: Ints = field(repr=False)
    end: Ints = field(repr=False)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rows of a column as indices 0 … points − 1. `windows` is about how many ranges of ranks will be requested.

    Rows are counted into buckets of neighboring indices. Only the buckets of a requested range of ranks are sorted.
    """

    places: Ints = field(repr=False)
    points: int
    windows: int = 1

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def _shift(self) -> int:
        return max(0, (self.points - 1).bit_length() - _BUCKET_BITS)

    @cached_property
    def _sorted(self) -> Ints | None:
        worth = self._shift and self.windows > _SORT_FROM
        return np.sort(self.places) if worth or len(self.places) < 2**12 else None

    @cached_property
    def _counts(self) -> Ints:
        return np.bincount(self.places >> self._shift).astype(np.int64)

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum(self._counts)

    def between(self, first: int, last: int) -> Blocks:
        """The blocks that contain the ranks `first` to `last` (exclusive), each block completely."""
        if last <= first:
            nothing = np.empty(0, dtype=np.int64)
            return Blocks(nothing, nothing, nothing)
        if self._sorted is not None:
            ordered = self._sorted
            low = int(np.searchsorted(ordered, ordered[first], "left"))
            return _blocks(ordered[low : int(np.searchsorted(ordered, ordered[last - 1], "right"))], low)
        one, other = (int(np.searchsorted(self._ends, rank, "right")) for rank in (first, last - 1))
        if not self._shift:
            ids = one + np.flatnonzero(self._counts[one : other + 1])
            return Blocks(ids, self._ends[ids] - self._counts[ids], self._ends[ids])
        low, high = one << self._shift, (other + 1) << self._shift
        inside = np.sort(self.places[(self.places >= low) & (self.places < high)])
        start = int(self._ends[one] - self._counts[one])
        low = int(np.searchsorted(inside, inside[first - start], "left"))
        high = int(np.searchsorted(inside, inside[last - 1 - start], "right"))
        return _blocks(inside[low:high], start + low)

    def at(self, place: int) -> tuple[int, int]:
        """The range of ranks of the rows at one index, the end exclusive."""
        below = int(np.count_nonzero(self.places < place))
        return below, below + int(np.count_nonzero(self.places == place))


def _blocks(ordered: Ints, first: int) -> Blocks:
    places, counts = np.unique(ordered, return_counts=True)
    end = first + np.cumsum(counts)
    return Blocks(places, end - counts, end)
