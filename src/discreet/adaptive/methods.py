"""Ways to answer adaptive questions that publish functions of the sample, and the width that each guarantees.

They are not private: their width follows from how little they reveal, not from noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

from scipy.optimize import minimize_scalar

from discreet.adaptive.concentration import deviation, log_asked
from discreet.guarantees.accuracy import check_confidence
from discreet.mechanisms.adaptive.means import QUANTUM

_ROUNDED = float(QUANTUM) / 2
"""Rows are rounded to whole quanta before they are summed."""


def nearest_cell(mean: float, cells: int) -> float:
    """The middle of the cell that contains a mean, with cells of equal width."""
    return (min(int(mean * cells), cells - 1) + 0.5) / cells


@dataclass(frozen=True)
class Compression:
    """Each answer is the mean rounded to one of `cells` values, so that all answers so far fit in few bits.

    Width: question i is one of cells^(i−1), so ½/cells + deviation(ln(Σ_i cells^(i−1)/β)).
    Source: [L6.GAME], transcript compression.
    """

    size: int
    queries: int
    cells: int
    private: ClassVar[bool] = False

    @classmethod
    def narrowest(cls, *, size: int, queries: int, confidence: float) -> Self:
        """With the best number of cells."""
        found = minimize_scalar(
            lambda log_cells: cls(size, queries, max(1, round(math.exp(log_cells)))).width(confidence),
            bounds=(0, math.log(max(4, size))),
            options={"xatol": 0.02},
        )
        near = max(1, round(math.exp(float(found.x))))
        around = {max(1, near + step) for step in range(-3, 4)} | {max(1, round(near * 1.02)), 1000 * near}
        return min((cls(size, queries, cells) for cells in around), key=lambda made: made.width(confidence))

    def width(self, confidence: float) -> float:
        miss, base = 1 - check_confidence(confidence), math.log(self.cells)
        # Σ cells^(i−1) = cells^(k−1)·(1 + 1/cells + …) ≤ cells^(k−1)·min(k, cells/(cells−1))
        tail = min(self.queries, self.cells / (self.cells - 1)) if self.cells > 1 else self.queries
        log_count = (self.queries - 1) * base + math.log(tail)
        return min(1.0, 0.5 / self.cells + _ROUNDED + deviation(self.size, log_count - math.log(miss)))

    def rows(self, asked: int) -> slice:
        """The rows for question number `asked` (from 0)."""
        return slice(None)

    def answered(self, mean: float) -> float:
        """The answer if this is the mean over those rows."""
        return nearest_cell(mean, self.cells)


@dataclass(frozen=True)
class Splitting:
    """Each question has its own rows, about which no earlier answer has revealed anything.

    Width: deviation on ⌊size/queries⌋ rows for ln(queries/β). Source: [L6.GAME], the naive way.
    """

    size: int
    queries: int
    private: ClassVar[bool] = False

    @classmethod
    def narrowest(cls, *, size: int, queries: int, confidence: float) -> Self:
        """There is only one."""
        return cls(size, queries)

    @property
    def _share(self) -> int:
        return self.size // self.queries

    def width(self, confidence: float) -> float:
        miss = 1 - check_confidence(confidence)
        return min(1.0, _ROUNDED + deviation(self._share, math.log(self.queries / miss))) if self._share else 1.0

    def rows(self, asked: int) -> slice:
        return slice(asked * self._share, (asked + 1) * self._share)

    def answered(self, mean: float) -> float:
        return mean


@dataclass(frozen=True)
class FewRevealed:
    """Most answers are known in advance. At most `most` answers are not, and each of those is one of `cells` values.

    Width after j of them: a question is one of C(queries, j+1)·cells^j. Four fifths of β are for the union over all j
    up to `most`, which bounds the width from the start; one fifth is spread as 1/((j+1)(j+2)), which makes it narrow
    while little was revealed. Source: guess and check (Rogers et al. 2020), the Ladder (Blum-Hardt 2015).
    """

    size: int
    queries: int
    cells: int
    most: int

    def deviation(self, confidence: float, revealed: int | None = None) -> float:
        """How far the sample's mean may be from the population's for a question after this many revealed answers. None
        for the maximum.
        """
        return deviation(self.size, self._log_misses(confidence, self.most if revealed is None else revealed))

    def widest(self, confidence: float, last: int) -> float:
        """The largest of the deviations after 0 to `last`: that of the most questions that might be asked."""
        return deviation(self.size, max(self._log_misses(confidence, revealed) for revealed in range(last + 1)))

    def _log_misses(self, confidence: float, revealed: int) -> float:
        sure = check_confidence(confidence)
        own = log_asked(self.queries, min(revealed, self.queries - 1), self.cells)
        spread = own + math.log((revealed + 1) * (revealed + 2)) - math.log(0.2 * (1 - sure))
        return min(_log_union(self, sure), spread)


@lru_cache(maxsize=1024)
def _log_union(revealed: FewRevealed, confidence: float) -> float:
    """ln of the total number of questions that might be asked, over four fifths of β."""
    counts = [
        log_asked(revealed.queries, j, revealed.cells) for j in range(min(revealed.most, revealed.queries - 1) + 1)
    ]
    top = max(counts)
    return top + math.log(sum(math.exp(count - top) for count in counts)) - math.log(0.8 * (1 - confidence))
