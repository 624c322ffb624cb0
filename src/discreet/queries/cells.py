"""How many rows are in each cell of a public table, such as city by diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.exact.rational import check_count
from discreet.guarantees.unit import Unit
from discreet.queries.counts import Histogram
from discreet.queries.sensitivity import Norm, Sensitivity


@dataclass(frozen=True)
class CellCounts(Closed):
    """The number of rows in each of the cells that are numbered from 0. A row without a cell has a negative number.

    Promise: one row is in at most one cell. Added or removed, it is 1 in every norm; replaced, 2 in L1 and √2 in L2.

    >>> CellCounts(3)([0, 2, 2, -1])
    array([1, 0, 2])
    """

    cells: int

    def __post_init__(self) -> None:
        check_count(self.cells, "cells")

    @property
    def space(self) -> None:
        """None: the cell of a row is computed before it comes here."""
        return None

    def __call__(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        known = np.asarray(places, dtype=np.int64).reshape(-1)
        known = known[(known >= 0) & (known < self.cells)]
        return np.bincount(known, minlength=self.cells).astype(np.int64)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1, *, norm: Norm = "L1") -> Sensitivity:
        """That of a histogram with this number of choices."""
        return Histogram(tuple(range(self.cells))).sensitivity(unit, rows_per_person, norm)
