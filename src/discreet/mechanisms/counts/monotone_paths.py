"""Small databases over an ordered domain as monotone paths, counted by their error and drawn without listing them.

A database of m rows is the path `j_1 ≤ … ≤ j_D = m`, where j_d is the number of rows with at most the d-th value. Its
error is `max_d |m·c_d − n·j_d|`, where c_d are the true prefix counts. The paths with an error below v are those inside
a corridor, so a sum over the corridor, value by value, counts them exactly.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

Table = list[list[int]]


class Paths:
    """The paths of `rows` rows against the true prefix counts `truth`, scaled to `size` rows."""

    def __init__(self, truth: NDArray[np.int64], rows: int, size: int) -> None:
        wide = object if max(int(truth.max(initial=0)), size) * rows >= 2**61 else np.int64
        self._scaled = truth.astype(wide) * rows
        self.rows, self.size = rows, size
        self._counts: dict[int, int] = {}

    @cached_property
    def above_all(self) -> int:
        """A bound above the error of every path."""
        return max(int(abs(self._scaled - self.size * end).max()) for end in (0, self.rows)) + 1

    @property
    def total(self) -> int:
        """The number of all paths."""
        return math.comb(len(self._scaled) + self.rows - 1, self.rows)

    def _corridor(self, bound: int) -> tuple[list[int], list[int]]:
        """The lowest and highest position at each value that keep the error below `bound`."""
        low = np.maximum(-((bound - 1 - self._scaled) // self.size), 0)
        high = np.minimum((self._scaled + bound - 1) // self.size, self.rows)
        low[-1] = max(int(low[-1]), self.rows)
        return low.tolist(), high.tolist()

    def _table(self, bound: int) -> tuple[Table, list[int]] | None:
        """How many paths with an error below `bound` lead to each position, and where the lists start. None if there
        are none.
        """
        low, high = self._corridor(bound)
        if any(a > b for a, b in zip(low, high, strict=True)):
            return None
        here = [1] * (high[0] - low[0] + 1)
        table = [here]
        for before, start, last, end in zip(low, low[1:], high, high[1:], strict=False):
            sums = list(accumulate(here))
            here = sums[start - before :] + [sums[-1]] * (end - max(last, start - 1))
            table.append(here)
        return table, low

    def below(self, bound: int) -> int:
        """How many paths have an error below `bound`."""
        if bound >= self.above_all:
            return self.total
        if bound not in self._counts:
            found = self._table(bound) if bound > 0 else None
            self._counts[bound] = found[0][-1][-1] if found else 0
        return self._counts[bound]

    def nth(self, index: int, start: int, end: int) -> list[int]:
        """The path with this index among those with start ≤ error < end, value by value."""
        outer, inner = self._table(end), self._table(start) if start > 0 else None
        assert outer is not None
        path, place, inside = [self.rows], self.rows, inner is not None
        for d in range(len(outer[0]) - 1, 0, -1):
            # a path must leave the inner corridor here or earlier
            inside = inside and _at(inner, d, place) is not None
            lowest = outer[1][d - 1]
            for before in range(min(place, lowest + len(outer[0][d - 1]) - 1), lowest - 1, -1):
                ways = outer[0][d - 1][before - lowest] - ((_at(inner, d - 1, before) or 0) if inside else 0)
                if index < ways:
                    place = before
                    break
                index -= ways
            path.append(place)
        return path[::-1]

    def error_of(self, path: list[int]) -> int:
        """max_d |m·c_d − n·j_d|."""
        return int(abs(self._scaled - self.size * np.array(path, dtype=self._scaled.dtype)).max())


def _at(table: tuple[Table, list[int]] | None, d: int, place: int) -> int | None:
    """How many paths lead to a position. None outside the corridor."""
    if table is None:
        return None
    offset = place - table[1][d]
    return table[0][d][offset] if 0 <= offset < len(table[0][d]) else None


def blocks(paths: Paths, rate: float, ratio: float = 4.0, most: int = 256) -> list[tuple[int, int, int]]:
    """Intervals [start, end) of errors with their numbers of paths, narrow where most of the weight exp(−rate·error)
    is.

    Each interval is split until the weight at its start is at most `ratio` times the weight at its end. A path is later
    accepted with the ratio of its own weight to that at the start, so at least one of `ratio` paths is accepted on
    average. Up to `most` errors are listed one by one. Floats affect only the speed: any division is correct.
    """
    last = paths.above_all
    cuts = list(range(last + 1)) if last <= most else _cuts(paths, rate, ratio, last)
    counted = [paths.below(cut) for cut in cuts]
    parts = zip(cuts, cuts[1:], counted, counted[1:], strict=False)
    return [(a, b, more - less) for a, b, less, more in parts if more > less]


def _cuts(paths: Paths, rate: float, ratio: float, last: int) -> list[int]:
    cuts = [0, last]
    while True:
        counted = [paths.below(cut) for cut in cuts]
        logs = [math.log(more - less) if more > less else -math.inf for less, more in pairwise(counted)]
        upper = [log - rate * a for log, a in zip(logs, cuts, strict=False)]
        lower = [log - rate * (b - 1) for log, b in zip(logs, cuts[1:], strict=True)]
        top = max(upper)
        if sum(math.exp(u - top) for u in upper) <= ratio * sum(math.exp(max(w - top, -700)) for w in lower):
            return cuts
        loss = [math.exp(u - top) - math.exp(max(w - top, -700)) for u, w in zip(upper, lower, strict=True)]
        worst = max(range(len(loss)), key=loss.__getitem__)
        cuts.insert(worst + 1, (cuts[worst] + cuts[worst + 1]) // 2)
