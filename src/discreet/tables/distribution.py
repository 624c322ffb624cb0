"""A released distribution: how many rows lie at or below each point of a public grid, and everything that follows from
it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import Number
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.quantiles.cumulative import Cumulative, CumulativeCounts
from discreet.releases import Release

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Distribution(Release):
    """The CDF of a column: `value` is the share of rows up to each point of `grid`. It never decreases.

    Everything is computed from one release, so further questions cost nothing.
    """

    grid: Any = None
    _counts: Floats = field(repr=False, default_factory=lambda: np.zeros(1))
    _numbers: CumulativeCounts | None = field(repr=False, default=None)

    @cached_property
    def _read(self) -> Cumulative:
        assert self._numbers is not None
        return self._numbers.read(self._counts)

    @property
    def counts(self) -> Floats:
        """How many rows lie at or below each point."""
        return self._read.monotone

    def _place(self, point: Any) -> int:
        return int(np.clip(np.searchsorted(self.grid, point, "right") - 1, 0, len(self.grid) - 1))

    def up_to(self, point: Number | datetime.date) -> float:
        """The share of rows up to a point."""
        return float(self.value[self._place(point)]) if point >= self.grid[0] else 0.0

    def between(
        self, low: Number | datetime.date, high: Number | datetime.date, *, confidence: float = 0.95
    ) -> tuple[float, float]:
        """How many rows lie above one point of the grid and up to another, and how large the error may be."""
        assert self._numbers is not None
        first, last = self._place(low) + 1 if low >= self.grid[0] else 0, self._place(high)
        if last < first:
            return 0.0, 0.0
        count, _ = self._read.between(first, last)
        return count, self._numbers.sums.within(last + 1, first, confidence)

    def quantiles(self, at: Number | Sequence[Number]) -> Any:
        """For each share, the first point of the grid at or below which that share of the rows lies."""
        places = np.searchsorted(self.value, np.asarray(at, dtype=np.float64), "left")
        return np.asarray(self.grid)[np.minimum(places, len(self.grid) - 1)]

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How far any of the shares may be from the true one."""
        assert self._numbers is not None
        sure = check_confidence(confidence)
        off, rows = float(self._numbers.error(sure)), float(self.counts[-1])
        # the count and the number of rows each have at most this error; a share is never off by more than 1
        share = min(1.0, 2 * off / (rows - off)) if rows > off else 1.0
        return Accuracy(amount=share, confidence=sure, of="every value")

    def _value_text(self) -> str:
        """Quartiles, and how far the shares may be off."""
        off = f"shares within {float(self.error(0.95)):.2g} (95%)"
        quartiles = ", ".join(str(point) for point in self.quantiles([0.25, 0.5, 0.75]))
        return f"CDF on {len(self.grid):,} points, quartiles {quartiles}, {off}"
