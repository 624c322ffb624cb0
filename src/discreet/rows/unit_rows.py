"""Rows of norm 1, with their targets, that are added exactly before a descent reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.rows.examples import BLOCK, Examples

_BITS = 18
_STEPS = 2**20
Floats = NDArray[np.float32]


def unit_length(rows: NDArray[Any]) -> Floats:
    """Each row divided by its norm. Zeros for a row with a value that is not a finite number.

    Values are rounded to 18 bits of the largest one first: a sum of squares of integers is exact in any order, so a row
    gives the same whatever the others are.
    """
    found = np.zeros(rows.shape, dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            block = np.asarray(rows[start : start + BLOCK], dtype=np.float64)
            largest = np.abs(block).max(1, initial=0.0)
            known = np.isfinite(largest) & (largest > 0)
            whole = np.rint(block / np.where(known, largest, 1.0)[:, None] * 2**_BITS)
            whole = np.where(known[:, None], whole, 0.0)
            norms = np.sqrt((whole * whole).sum(1))
            found[start : start + BLOCK] = whole / np.where(known, norms, 1.0)[:, None]
    return found


class UnitRows:
    """Rows that `unit_length` made, and targets. Rows whose target is not declared are left out.

    Promise: a row adds to the total its own values, rounded towards 0, so its norm there is at most 1.
    """

    def __init__(self, rows: Floats, targets: NDArray[np.float64]) -> None:
        self._rows, self._targets = rows, targets
        self.count = len(rows)

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<UnitRows of {self._rows.shape[1]} features>"

    def total(self) -> NDArray[np.object_]:
        """The sum of all rows, in units of 2^−20."""
        total = np.zeros(self._rows.shape[1], dtype=np.int64)
        for start in range(0, self.count, BLOCK):
            block = self._rows[start : start + BLOCK].astype(np.float64)
            kept = np.isfinite(self._targets[start : start + BLOCK])
            # a norm of floats may exceed 1 in the last digit
            whole = np.trunc(np.where(kept[:, None], block, 0.0) * (_STEPS * (1 - 2.0**-20)))
            total += whole.sum(0).astype(np.int64)  # integers below 2^53: exact in any order
        return total.astype(object)

    def less(self, center: NDArray[np.float64], scale: float) -> Examples:
        """(row − center)·scale of each row, clipped to norm 1."""
        return Examples(self._rows, self._targets, offset=center, scale=np.full(len(center), scale))
