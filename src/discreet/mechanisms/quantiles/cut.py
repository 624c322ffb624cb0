"""One choice by the exponential mechanism over the points of a lattice, and where it splits the rows in two.

Scores are minus the ranks missed, at most `far` of them: beyond that no point is more likely than another, so that only
the rows near the target are looked at, a few hundred however many there are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact import samplers
from discreet.queries.ranks import Blocks, Ints, Ranks
from discreet.queries.scores import QuantileScore

SPLITS = 2**30
"""In how many places a point may cut the rows equal to it: fewer equal rows than that can be cut anywhere."""
_NEVER = 45.0
"""The chance of a choice `far` off is e^-45 at most, where a better one exists."""
Stretch = tuple[int, int]


def far(points: int, rate: Fraction) -> int:
    """The number of ranks beyond which all misses count the same. More than 2^32 rows are not expected."""
    return min(2**32, math.ceil((math.log(points) + math.log(SPLITS) + _NEVER) / float(rate)) + 1)


def choose_point(ranks: Ranks, rows: Stretch, between: Stretch, score: QuantileScore, rate: Fraction) -> int:
    """A point of `between` (ends included) for the quantile of the rows of these ranks, by the capped score.

    Promise: any point has probability ∝ exp(−rate·min(missed, far)). Source: [L3.MED-DUP].
    """
    low, high = between
    size, most = rows[1] - rows[0], far(len(score.space), rate)
    first, last = _near(size, score, most)
    # one block more on either side: what lies beyond it is far
    blocks = _inside(ranks, (rows[0] + max(0, first - 1), rows[0] + min(size, last + 1)), rows)
    here = np.zeros(2 * len(blocks.places) + 1, dtype=np.int64)
    here[1::2] = blocks.end - blocks.start
    up_to = (int(blocks.start[0]) if len(blocks.start) else 0) + np.cumsum(here)
    starts = np.full(len(here), low, dtype=np.int64)
    starts[1::2], starts[2::2] = blocks.places, blocks.places + 1
    widths = np.diff(np.concatenate([starts, [high + 1]]))
    missed = np.minimum(score.missed(up_to - here, size - up_to, size), most * score.unit.denominator)
    run = int(samplers.exponential_choice(missed, rate * score.unit, 1, widths)[0])
    return int(starts[run]) + int(samplers.uniform_below(int(widths[run]), 1)[0])


def choose_cut(ranks: Ranks, rows: Stretch, between: Stretch, score: QuantileScore, rate: Fraction) -> tuple[int, int]:
    """A point of `between`, and the rank at which it splits these rows in two: this many of them go to the left.

    Candidates are pairs of a point and one of SPLITS places u in it. With f rows below the point and T at it, the cut
    is after f + round(T·(u + ½)/SPLITS) rows: one row more is one row more on ONE side.

    Promise: any candidate has probability ∝ exp(−rate·min(|cut − p·rows|, far)).
    """
    low, high = between
    size, most = rows[1] - rows[0], far(len(score.space), rate)
    first, last = _near(size, score, most)
    blocks = _inside(ranks, (rows[0] + max(0, first - 1), rows[0] + min(size, last + 1)), rows)
    cuts = np.arange(first, last + 1, dtype=np.int64)
    part, whole = score._exact.as_integer_ratio()
    missed = np.abs(whole * cuts - part * size)
    runs = _Runs(blocks, cuts, low, high, size)
    edge = most * whole
    losses = np.concatenate([missed, missed, missed, [edge] * 4])
    run = int(samplers.exponential_choice(losses, rate * score.unit, 1, runs.widths)[0])
    if run < 3 * len(cuts):
        kind, i = divmod(run, len(cuts))
        return runs.place(kind, i), rows[0] + int(cuts[i])
    return _far_cut(ranks, rows, runs, run - 3 * len(cuts))


def _near(size: int, score: QuantileScore, most: int) -> Stretch:
    """The cuts that miss by at most `most`, first and last."""
    target = score._exact * size
    return max(0, math.ceil(target - most)), min(size, math.floor(target + most))


def _inside(ranks: Ranks, window: Stretch, rows: Stretch) -> Blocks:
    """The blocks in a window, cut off at the ends of `rows`, ranks counted from there."""
    found = ranks.between(*window)
    start, end = (np.clip(side, *rows) - rows[0] for side in (found.start, found.end))
    return Blocks(found.places, start, end)


def first_split(count: Any, cut: Any) -> Any:
    """The least u for which at least `cut` of `count` > 0 equal rows go left; SPLITS when there is none."""
    return np.clip(-((count - (2 * cut - 1) * SPLITS) // (2 * count)), 0, SPLITS)


class _Runs:
    """The candidates run by run. For each cut: points strictly between two blocks, the splits of the block that ends
    or goes on at the cut, those of the block that begins there. Then the far ones: points and splits, below and above.
    """

    def __init__(self, blocks: Blocks, cuts: Ints, low: int, high: int, size: int) -> None:
        self.blocks, self.low, self.high = blocks, low, high
        count = blocks.end - blocks.start
        # the block that a cut is in or at the end of, and the block that it is before or in; −1 and len: none
        self.before = np.where(cuts > 0, np.searchsorted(blocks.end, cuts, "left"), -1)
        self.after = np.where(cuts < size, np.searchsorted(blocks.end, cuts, "right"), len(blocks.end))
        places = np.concatenate([blocks.places, [high + 1, low - 1]])  # [-1] is before all, [len] after all
        gaps = np.maximum(places[self.after] - places[self.before] - 1, 0)
        self.gap_start = places[self.before] + 1
        wide: Any = np.int64 if (high - low + 1) * SPLITS < 2**62 else object
        at_end = self._splits(count, self.before, cuts)
        begins = np.where(self.after != self.before, self._splits(count, self.after, cuts), 0)
        x, y = int(self.before[0]), int(self.after[-1])
        below = int(places[x]) - low if x >= 0 else 0
        above = high - int(places[y]) if y < len(count) else 0
        self.split_below = int(self._first(count, x, int(cuts[0]))) if x >= 0 else 0
        self.split_above = int(self._first(count, y, int(cuts[-1]) + 1)) if y < len(count) else SPLITS
        self.far = (below, self.split_below, above, SPLITS - self.split_above)
        lasting = np.array([below * SPLITS, self.far[1], above * SPLITS, self.far[3]], dtype=wide)
        self.widths: NDArray[Any] = np.concatenate([gaps.astype(wide) * SPLITS, at_end, begins, lasting])

    def _first(self, count: Ints, block: int, cut: int) -> Any:
        return first_split(int(count[block]), cut - int(self.blocks.start[block]))

    def _splits(self, count: Ints, block: Ints, cuts: Ints) -> Ints:
        """How many splits of each block cut there. 0 if there is no block."""
        known = (block >= 0) & (block < len(count))
        if not len(count):
            return np.zeros(len(cuts), dtype=np.int64)
        safe = np.where(known, block, 0)
        inside = cuts - self.blocks.start[safe]
        found = first_split(count[safe], inside + 1) - first_split(count[safe], inside)
        return np.where(known, found, 0)

    def place(self, kind: int, i: int) -> int:
        """The point of a run of cut i, a uniform one where there are several."""
        if kind == 0:
            width = int(self.widths[i]) // SPLITS
            return int(self.gap_start[i]) + int(samplers.uniform_below(width, 1)[0])
        return int(self.blocks.places[(self.before if kind == 1 else self.after)[i]])


def _far_cut(ranks: Ranks, rows: Stretch, runs: _Runs, kind: int) -> tuple[int, int]:
    """A uniform candidate among the far ones of one kind."""
    width = runs.far[kind]
    drawn = int(samplers.uniform_below(width, 1)[0])
    if kind in (0, 2):
        place = runs.low + drawn if kind == 0 else runs.high - drawn
        split = int(samplers.uniform_below(SPLITS, 1)[0])
    else:
        block = int(runs.before[0]) if kind == 1 else int(runs.after[-1])
        place = int(runs.blocks.places[block])
        split = drawn if kind == 1 else runs.split_above + drawn
    start, end = (min(max(rank, rows[0]), rows[1]) for rank in ranks.at(place))
    return place, start + ((end - start) * (2 * split + 1) + SPLITS) // (2 * SPLITS)
