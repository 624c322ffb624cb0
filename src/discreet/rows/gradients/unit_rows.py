"""Rows of norm 1, with their targets, that are added exactly before a descent reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.rows.arrays import doubles, is_numpy, namespace, to_device_of
from discreet.rows.containers import on_host
from discreet.rows.gradients.coarse_rows import CoarseRows, side_by_side, slices, suits
from discreet.rows.gradients.examples import BLOCK, Examples

_BITS = 18
_STEPS = 2**20


def unit_length(rows: Any) -> Any:
    """Each row divided by its norm, on its device. Zeros for a row with a value that is not a finite number.

    Values are rounded to 18 bits of the largest one first: a sum of squares of integers is exact in any order, so a row
    gives the same whatever the others are.
    """
    xp = namespace(rows)
    here = {} if xp.__name__ != "torch" else {"device": rows.device}
    found = xp.zeros(tuple(rows.shape), dtype=xp.float32, **here)

    def fill(part: slice) -> None:
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            block = doubles(rows[part])
            largest = xp.amax(xp.abs(block), 1)
            known = xp.isfinite(largest) & (largest > 0)
            whole = xp.round(block / xp.where(known, largest, xp.ones_like(largest))[:, None] * 2**_BITS)
            whole = xp.where(known[:, None], whole, xp.zeros_like(whole))
            norms = xp.sqrt((whole * whole).sum(1))
            whole /= xp.where(known, norms, xp.ones_like(norms))[:, None]
            found[part] = whole

    if rows.shape[1]:
        _each(fill, rows)
    return found


def _each(work: Callable[[slice], Any], rows: Any) -> list[Any]:
    """What `work` gives for rows that fit into a fast memory together."""
    cells = 2**18 if is_numpy(rows) else 2**26
    parts = slices(int(rows.shape[0]), min(BLOCK, max(1, cells // max(1, int(rows.shape[1])))))
    return side_by_side(work, parts) if is_numpy(rows) else [work(part) for part in parts]


class UnitRows:
    """Rows that `unit_length` made, and targets. Rows whose target is not declared are left out.

    Promise: a row adds to the total its own values, rounded towards 0, so its norm there is at most 1.
    """

    def __init__(self, rows: Any, targets: Any) -> None:
        self._rows = rows
        self._targets = on_host(targets) if is_numpy(rows) else to_device_of(targets, rows)
        self.count = int(rows.shape[0])

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<UnitRows of {self._rows.shape[1]} features>"

    def total(self) -> NDArray[np.object_]:
        """The sum of all rows, in units of 2^−20."""
        xp = namespace(self._rows)

        def added(part: slice) -> NDArray[np.int64]:
            block, kept = doubles(self._rows[part]), xp.isfinite(self._targets[part])[:, None]
            # a norm of floats may exceed 1 in the last digit
            whole = xp.trunc(xp.where(kept, block, xp.zeros_like(block)) * (_STEPS * (1 - 2.0**-20)))
            return on_host(whole.sum(0)).astype(np.int64)  # integers below 2^53: exact in any order

        nothing = np.zeros(self._rows.shape[1], dtype=np.int64)
        return sum(_each(added, self._rows), start=nothing).astype(object)

    def less(self, center: NDArray[np.float64], scale: float) -> Examples | CoarseRows:
        """(row − center)·scale of each row, clipped to norm 1."""
        if is_numpy(self._rows) and suits(self._rows.shape[1]):
            return CoarseRows(self._rows, self._targets, center, scale)
        return Examples(self._rows, self._targets, offset=center, scale=np.full(len(center), scale))
