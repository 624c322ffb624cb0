"""From noisy counts to the range of a column: where its numbers are, by sizes first, and then among equal bins.

Nothing here reads a row. All numbers below were chosen on generated columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet.rows.octaves import octave_end

Floats = NDArray[np.float64]
FIRST, LAST = -40, 64
"""Sizes from 2^−40 to 2^64 are told apart."""
SIZES = 2 * (LAST - FIRST) + 1
EVEN = 64
"""The most equal bins into which a range is cut to find where its numbers are."""
DEFAULT = (-1.0, 1.0)
"""The range of a column in which noise hides everything."""
SURE, FARTHER = 3.5, 1 / 10
"""How many deviations a count must have to be seen, and how many more for each doubling away from 1."""
NEXT, REACH, FAR = 3.0, 3, 5.5
"""How many are enough for sizes up to `REACH` doublings above one that is seen, and how many for any other."""
WINDOW, NEAR = 4, 6
"""So many neighboring sizes are looked at together, and so many below the largest for the rows of a side."""
CROWD = 3.0
"""Equal bins are so few that each would have this many deviations if rows were spread evenly."""
ROOM = 1.0
"""A bin at an end of the range is kept if it has so many deviations of the noise more."""
RARE = 0.05
"""Or so much of the rows that it would have if all were spread evenly."""
NARROW = 1 / 4
"""A part of the range that is at most this wide is cut again, by itself."""


@dataclass(frozen=True)
class Cut:
    """A range cut into equal bins, and the mean of the noisy counts that were drawn of them so far.

    `deviation` is that of one draw. `zeros` says whether most numbers are 0. Of a declared range, it is not known how
    many bins are worth while: the counts say.
    """

    low: float
    high: float
    deviation: float
    bins: int = EVEN
    zeros: bool = False
    declared: bool = False
    counts: Floats | None = None
    draws: int = 0

    def with_counts(self, counts: Floats) -> Self:
        """With one more draw of all counts."""
        known = 0.0 if self.counts is None else self.counts * self.draws
        return replace(self, counts=(known + counts) / (self.draws + 1), draws=self.draws + 1)

    def narrowed(self) -> Self:
        """What to cut into bins next: the part that is kept if it is narrow, otherwise the same bins again."""
        if self.counts is None:
            return self
        low, high = self.kept()
        if high - low > NARROW * (self.high - self.low):
            return self
        return replace(self, low=low, high=high, counts=None, draws=0)

    def kept(self) -> tuple[float, float]:
        """The part of the range whose bins together hold the most rows beyond what an empty bin might show."""
        counts, bins, deviation = self._shown()
        needed = max(ROOM * deviation, RARE * max(float(counts.sum()), 0.0) / bins)
        steps = np.concatenate([[0.0], np.cumsum(counts - needed)])
        lowest = np.minimum.accumulate(steps)
        end = int(np.argmax(steps[1:] - lowest[:-1])) + 1
        start = int(np.argmin(steps[:end]))
        if self.zeros and end - start <= max(1, bins // 16):  # they say nothing about the other numbers
            return self.low, self.high
        share = np.array([start, end]) / bins
        ends = self.low * (1 - share) + self.high * share
        return float(ends[0]), float(ends[1])

    def _shown(self) -> tuple[Floats, int, float]:
        """The counts of all bins, their number and their deviation. Of a declared range, neighboring bins are added up
        until each would be seen if rows were spread evenly.
        """
        counts = np.zeros(EVEN) if self.counts is None else self.counts
        deviation = self.deviation / math.sqrt(max(self.draws, 1))
        if not self.declared:
            return counts[: self.bins], self.bins, deviation
        seen = max(float(counts.sum()), 0.0) / (CROWD * deviation * math.sqrt(EVEN))
        many = 2 ** min(math.floor(math.log2(max(seen**2, 1.0))), int(math.log2(EVEN)))
        return counts.reshape(many, -1).sum(axis=1), many, deviation * math.sqrt(EVEN / many)


def declared_cut(outer: tuple[float, float], deviation: float) -> Cut:
    """All of a declared range."""
    return Cut(*outer, deviation, declared=True)


def seen_sizes(counts: Floats, deviation: float) -> Cut:
    """From the largest negative size to the largest positive one that is seen, cut into as many bins as rows allow.

    A side of 0 that shows nothing by itself is taken to be as large as the other one, unless it looks empty.
    """
    most = LAST - FIRST
    sides = [counts[:most][::-1] / deviation, counts[most + 1 :] / deviation]
    if not (top := _largest_seen(*sides)):
        return Cut(*DEFAULT, deviation, bins=1)
    near = [float(side[max(top - NEAR, 0) : top].sum()) for side in sides]
    there = [amount > math.sqrt(NEAR) or amount == max(near) for amount in near]
    low, high = (_side(side[:top]) or top * kept for side, kept in zip(sides, there, strict=True))
    zeros = float(counts[most]) / deviation
    rows = zeros + sum(
        float(side[max(last - NEAR, 0) : last].sum()) for side, last in zip(sides, (low, high), strict=True)
    )
    many = math.floor(math.log2(max(rows / CROWD, 1.0)))
    ends = -octave_end(low, FIRST, outer=True), octave_end(high, FIRST, outer=True)
    return Cut(*ends, deviation, bins=2 ** min(many, int(math.log2(EVEN))), zeros=zeros > rows / 2)


def _largest_seen(below: Floats, above: Floats) -> int:
    """The largest size, counted from 1, with more numbers than noise alone would show, on a side or on both. 0 if none.

    The counts are in deviations. It starts where most is seen, and goes on to larger sizes that are near. Sizes that
    are far from all others are used only if they are sure, because one wrong size would make a range too wide.
    """
    both = (below + above) / math.sqrt(2)
    alone = np.maximum(np.maximum(below, above), both)
    distance = FARTHER * np.abs(FIRST + 1 + np.arange(len(both)))
    last = int(np.argmax(alone - distance))
    if alone[last] - distance[last] <= SURE:
        windows = np.max([_windows(part) for part in (below, above, both)], axis=0) - distance
        last = int(np.argmax(windows))
        if windows[last] <= SURE:
            return 0
    while True:
        steps = range(1, min(REACH, len(both) - 1 - last) + 1)
        found = [
            step
            for step in steps
            if max(part[last + 1 : last + 1 + step].sum() for part in (below, above, both)) > NEXT * math.sqrt(step)
            and alone[last + step] > 1
        ]
        far = np.flatnonzero(alone[last + 1 :] > FAR)
        if not found and not len(far):
            return last + 1
        last += max([*found, *(far[-1:] + 1).tolist()])


def _windows(counts: Floats) -> Floats:
    """For each size, the most deviations that it has together with one to three smaller ones."""
    sums = np.concatenate([np.zeros(WINDOW), np.cumsum(counts)])
    found = [(sums[WINDOW:] - sums[WINDOW - many : -many]) / math.sqrt(many) for many in range(2, WINDOW + 1)]
    return np.asarray(np.max(found, axis=0))


def _side(counts: Floats) -> int:
    """The largest size of a side that is seen there, and all sizes if what is beyond is not empty. 0 if none is."""
    seen = np.flatnonzero(counts > SURE)
    if not len(seen):
        return 0
    rest = counts[int(seen[-1]) + 1 :]
    return len(counts) if len(rest) and rest[-NEAR:].sum() > NEXT * math.sqrt(len(rest[-NEAR:])) else int(seen[-1]) + 1
