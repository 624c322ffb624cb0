"""Wide rows as small integers, and exact sums of their clipped gradients at the speed of single precision.

Floats of 32 bits are used as integers below 2^24, twice as fast as doubles and in half the memory. In its names, a row
of d coordinates is an integer vector x, about 2^10 long if its norm is 1, so ‖x‖ ≤ X = 2^10 + √d/2. For each class:

- weights, which are public, are rounded to integers w with ‖w‖ ≤ 2^24/X, so every partial sum of a score w·x is at most
  ‖w‖·‖x‖ ≤ 2^24 by Cauchy and Schwarz.
- slopes, after the clip, are rounded to integers k. A row adds the products k·x, each at most |k|·‖x‖, and so many rows
  are added at a time that they stay below 2^24 together. Then doubles go on, exact up to 2^53.

Both products are thus exact in any order, on any number of threads. What a row adds depends on that row alone, and one
more row changes the sum by exactly that. Rounding loses about a hundredth of a row, in no particular direction.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, power_of_two_below
from discreet.rows.gradients.examples import MACHINE_ROWS, unit_of
from discreet.rows.gradients.losses import Softmax

Floats = NDArray[np.float32]
_LONG = 10
"""The norm of a row of norm 1, as a power of two."""
_SLOPE = 8
"""The clip is at least this power of two in units of the slopes."""
_WHOLE = 24
"""Floats of 32 bits hold all integers up to this power of two."""
_TOGETHER = 1024
"""So many rows are read from memory once, for both products."""
_LEAST_COLUMNS, _MOST_COLUMNS = 256, 2**17


def suits(columns: int) -> bool:
    """Whether rows of so many columns gain from small integers, and products here are what they should be."""
    return _LEAST_COLUMNS <= columns <= _MOST_COLUMNS and _products_are_exact()


class CoarseRows:
    """(row − offset)·scale of each row, clipped to norm 1 and rounded, with the index of its class. The last weight of
    each class is that of the constant 1. A row with a value or target that is not a finite number counts as zeros.
    """

    large = True
    intercept = True

    def __init__(self, rows: Floats, targets: NDArray[np.float64], offset: NDArray[np.float64], scale: float) -> None:
        self.count, self.columns = map(int, rows.shape)
        if targets.shape != (self.count,):
            raise InvalidArgument("There must be one target for each row.", code="wrong-shape")
        self._bits = min(18, (52 - math.ceil(math.log2(self.columns))) // 2)
        self._rows = np.empty(rows.shape, dtype=np.float32)
        self._worth, self._inverse = np.empty(self.count), np.empty(self.count)
        self._goal = np.where(np.isfinite(targets), targets, 0.0)

        def fill(part: slice) -> None:
            with np.errstate(all="ignore"):  # a warning would reveal something about a cell
                found = self._whole((rows[part] - offset) * scale, targets[part])
            self._rows[part], self._worth[part], self._inverse[part] = found

        side_by_side(fill, slices(self.count, max(1, 2**18 // self.columns)))

    def _whole(self, block: NDArray[np.float64], goal: NDArray[np.float64]) -> tuple[Any, Any, Any]:
        """Rows as integers, what 1 is worth in each, and 1/norm of the row with its constant (0 if it is left out)."""
        largest = np.abs(block).max(1)
        kept = np.isfinite(largest) & (largest < 2.0**400) & np.isfinite(goal)
        block = np.where(kept[:, None], block, 0.0)
        _, exponent = np.frexp(np.where(kept, np.maximum(largest, 1.0), 1.0))
        fine = np.ldexp(1.0, self._bits - exponent)
        block = np.rint(np.multiply(block, fine[:, None], out=block), out=block)
        length = np.sqrt(_squares(block))
        block *= (2.0**_LONG / np.maximum(length, fine))[:, None]
        block = np.rint(block, out=block)
        long = np.sqrt(_squares(block))
        worth = 1 / np.maximum(long, 2.0**_LONG)
        return block, worth, kept / np.sqrt((long * worth) ** 2 + 1)

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<CoarseRows of {self.columns} features>"

    @property
    def dimension(self) -> int:
        """The number of weights of a class, including that of the constant."""
        return self.columns + 1

    def sums(self, weights: NDArray[np.float64], loss: Softmax, clip: Number) -> NDArray[Any]:
        """The sum of clipped gradients at these weights, in units of `unit_of(clip)`, in the shape of the weights.

        Promise: the contribution of one row has an L2 norm of at most the clip and depends only on the row and the
        weights.
        """
        step = _Step(np.asarray(weights, dtype=np.float64), loss, clip)
        spans = list(slices(self.count, -(-self.count // (os.cpu_count() or 1)) or 1))
        total, constant = np.zeros(step.weights.shape), np.zeros(len(step.weights), dtype=np.int64)
        for part, more in side_by_side(lambda span: self._span(span, step), spans):
            total, constant = total + part, constant + more
        whole = np.column_stack([total.astype(np.int64), constant])
        if self.count > MACHINE_ROWS:
            whole = whole.astype(object)
        whole[:, :-1] *= step.units
        return whole

    def _span(self, span: slice, step: _Step) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        total, constant = np.zeros(step.weights.shape), np.zeros(len(step.weights), dtype=np.int64)
        part = np.empty(step.weights.shape, dtype=np.float32)
        for start in range(span.start, span.stop, _TOGETHER):
            block = slice(start, min(start + _TOGETHER, span.stop))
            rows, worth = self._rows[block], self._worth[block]
            scores = np.dot(step.weights, rows.T) * step.size[:, None] * worth + step.constant[:, None]
            slopes = step.clipped(scores, self._goal[block], self._inverse[block], worth)
            constant += np.trunc(slopes * step.fine).sum(1).astype(np.int64)  # 2^10 rows of 2^40: exact
            whole = np.rint(slopes * (worth * step.coarse)).astype(np.float32)
            for first in range(0, len(rows), step.together):
                few = slice(first, first + step.together)
                total += np.dot(whole[:, few], rows[few], out=part)
        return total, constant


class _Step:
    """The parts of one pass that are the same for all rows."""

    def __init__(self, weights: NDArray[np.float64], loss: Softmax, clip: Number) -> None:
        exact = exactly(clip)
        edge, unit = power_of_two_below(exact), unit_of(clip)
        self.loss, self.clip, self.constant = loss, float(exact) * (1 - 2.0**-40), weights[:, -1]
        self.weights, self.size = _small_integers(weights[:, :-1])
        self.fine = float(1 / unit)
        self.coarse = float(2 ** (_SLOPE + _LONG) / edge)
        """Units of k·x in 1: the slope of a row has units of edge·2^−8, and 1 is 2^10 units of a row."""
        self.units = int(edge / 2 ** (_SLOPE + _LONG) / unit)
        # a row of norm r adds at most C·r/√(r² + 1) ≤ C/√2 to a coordinate
        self.together = math.floor(2**_WHOLE / (self.clip * self.coarse / math.sqrt(2) + 1))
        self.rounding = math.sqrt(len(weights)) / 2 / self.coarse

    def clipped(self, scores: Any, goal: Any, inverse: Any, worth: Any) -> NDArray[np.float64]:
        """Slopes for which no row passes the clip, even if each of its slopes is rounded away from 0 by half a unit."""
        most = np.maximum(self.clip * inverse - self.rounding / worth, 0.0)
        slopes = self.loss.residuals(scores, goal)
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        squared = slopes[0] * slopes[0]
        for one in slopes[1:]:
            squared = squared + one * one
        long = np.sqrt(squared)
        return np.asarray(slopes * np.where(long > most, most / np.where(long > 0, long, 1.0), 1.0))


def _small_integers(weights: NDArray[np.float64]) -> tuple[Floats, NDArray[np.float64]]:
    """The weights of each class as integers for exact scores, and what 1 is worth in each class."""
    root = math.sqrt(weights.shape[1]) / 2 + 1
    room = 2**_WHOLE / (2**_LONG + root) - root
    largest = np.abs(weights).max(1)
    known = (largest > 2.0**-400) & (largest < 2.0**500)  # public numbers; descent keeps weights far below
    _, exponent = np.frexp(np.where(known, largest, 1.0))
    near = np.ldexp(np.where(known[:, None], weights, 0.0), -exponent[:, None])
    length = np.sqrt((near * near).sum(1)) * (1 + 2.0**-20)
    more = np.floor(np.log2(room / np.maximum(length, 0.5))).astype(int)
    return np.rint(np.ldexp(near, more[:, None])).astype(np.float32), np.ldexp(1.0, exponent - more)


def _squares(whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of squares of each row of integers: exact in any order."""
    return np.asarray(np.einsum("ij,ij->i", whole, whole))


def slices(count: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that together cover `count` places."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def side_by_side(work: Any, parts: Any) -> list[Any]:
    """What `work` gives for each part, on as many threads as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(work, parts))


@cache
def _products_are_exact() -> bool:
    """Whether single precision here holds 24 bits: some libraries can be set to multiply with fewer.

    Each sum of this product has one term of 23 bits and is below 2^24 in any order, as those of the rows are.
    """
    places = np.arange(16 * 1024).reshape(16, 1024)
    row, column = places // 1024, places % 1024
    left = np.where(column == 64 * row + 5, 2**14 - 1 - 2 * row, column % 7 - 3).astype(np.float32)
    right = np.where(column % 64 == 5, 2**9 - 1 - 2 * row, column % 5 - 2).T
    exact = left.astype(np.int64) @ right.astype(np.int64)
    found = left @ right.astype(np.float32)
    ones = np.full((16, 1024), 2**7 - 1, dtype=np.float32) @ np.full((1024, 16), 2**7 - 1, dtype=np.float32)
    return bool((found == exact).all() and (ones == 1024 * (2**7 - 1) ** 2).all())
