"""Rows as the bins that their cells are in, and exact sums of their clipped gradients.

The features of a row are public integers, one table row for the bin of each column, and 1 for the intercept. The slope
of a row is also rounded to an integer. So a sum of gradients is a sum of integers in each bin, times the tables. It is
exact in any order, and needs no wide matrix of features. The bound on the norm of a row comes from the tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, sqrt_up
from discreet.rows import doubles
from discreet.rows.gradients.examples import unit_of
from discreet.rows.gradients.losses import Loss, Softmax

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BITS = 18
BLOCK = 2**16
"""The number of rows that are read at once, so that they stay in the processor's cache."""
_TOGETHER = 2**14
_DIGIT = 20


@dataclass(frozen=True, eq=False)
class BinTables:
    """The public features of each bin of each column, as integers in units of 2^-18: a table of bins × weights each.

    Promise: `longest` is at least the norm of the features of any row, including the intercept, which is 1.
    """

    tables: tuple[Ints, ...]

    @classmethod
    def rounded(cls, features: Sequence[Floats]) -> BinTables:
        """Features rounded toward 0."""
        return cls(tuple(np.trunc(np.asarray(one) * 2.0**BITS).astype(np.int64) for one in features))

    @property
    def dimension(self) -> int:
        """The number of weights, with the intercept last."""
        return sum(int(table.shape[1]) for table in self.tables) + 1

    @cached_property
    def _squared(self) -> int:
        """The largest squared norm of the features of a row in units, without the intercept."""
        return sum(int((table * table).sum(axis=1).max()) for table in self.tables)  # far below 2^63

    @cached_property
    def feature_norm(self) -> Fraction:
        """The largest norm of the features of a row, without the intercept."""
        return sqrt_up(Fraction(max(self._squared, 1), 4**BITS))

    @cached_property
    def longest(self) -> Fraction:
        """The largest norm of the features of a row, including the intercept."""
        return sqrt_up(Fraction(self._squared + 4**BITS, 4**BITS))

    def steps_of(self, clip: Number) -> int:
        """The largest slope in whole steps: this many times the norm of a row is at most the clip."""
        return int(exactly(clip) / unit_of(clip) / (self.longest * 2**BITS))

    def step_of(self, clip: Number) -> Fraction:
        """What one step of a slope is worth."""
        return Fraction(unit_of(clip) * 2**BITS)

    def values(self, weights: Floats) -> list[Floats]:
        """What each bin of each column adds to a score: classes × bins."""
        ends = np.cumsum([table.shape[1] for table in self.tables])
        parts = np.split(weights[:, :-1], ends[:-1], axis=1)
        return [part @ (table.T * 2.0**-BITS) for part, table in zip(parts, self.tables, strict=True)]


class BinnedExamples:
    """Rows of bins with their targets. A row whose target is not a finite number is left out.

    `codes` has the bin of each row for each column, in the order of the tables.
    """

    large = False

    def __init__(self, codes: Sequence[Any], targets: Any, tables: BinTables) -> None:
        goal = doubles(targets)
        self.tables, self.count, self.dimension = tables, len(goal), tables.dimension
        self._kept = np.isfinite(goal)
        self._goal = np.where(self._kept, goal, 0.0)
        sizes = [len(table) for table in tables.tables]
        if len(codes) != len(sizes) or any(np.shape(one) != goal.shape for one in codes):
            raise InvalidArgument("There must be one bin for each row and column.", code="wrong-shape")
        self._groups = _grouped(sizes)
        self._places = [
            np.ravel_multi_index([codes[column] for column in group], [sizes[column] for column in group])
            for group in self._groups
        ]

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<BinnedExamples of {len(self.tables.tables)} columns>"

    def sums(self, weights: Floats, loss: Loss | Softmax, clip: Number) -> NDArray[Any]:
        """The sum of clipped gradients at these weights, in units of `unit_of(clip)`, in the shape of the weights.

        Promise: the contribution of one row has an L2 norm of at most the clip, is a whole number of units in each
        coordinate, and depends only on the row and the weights.
        """
        matrix = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        most, step = self.tables.steps_of(clip), float(self.tables.step_of(clip))
        values = self.tables.values(matrix)
        joint = [_outer_sum([values[column] for column in group]) for group in self._groups]
        found = [np.zeros(one.shape, dtype=np.int64) for one in joint]
        constant = np.zeros(len(matrix), dtype=np.int64)
        for start in range(0, self.count, BLOCK):
            part = slice(start, start + BLOCK)
            places = [one[part] for one in self._places]
            scores = np.repeat(matrix[:, -1:], len(places[0]) if places else 0, axis=1)
            for place, value in zip(places, joint, strict=True):
                scores += value[:, place]
            slopes = whole_slopes(scores, self._goal[part], loss, step, most) * self._kept[part]
            constant += slopes.sum(axis=1).astype(np.int64)
            for total, place in zip(found, places, strict=True):
                for one, slope in zip(total, slopes, strict=True):
                    one += np.bincount(place, slope, len(one)).astype(np.int64)
        return self._total(found, constant).reshape(np.shape(weights))

    def _total(self, found: list[Ints], constant: Ints) -> NDArray[Any]:
        """The sums of the bins, times their tables, as integers of any size."""
        sizes, parts = [len(table) for table in self.tables.tables], {}
        for group, total in zip(self._groups, found, strict=True):
            cube = total.reshape(len(total), *(sizes[column] for column in group))
            for axis, column in enumerate(group, start=1):
                others = tuple(one for one in range(1, cube.ndim) if one != axis)
                parts[column] = exact_product(cube.sum(axis=others), self.tables.tables[column])
        last = constant.astype(object)[:, None] * 2**BITS
        return np.concatenate([*(parts[column] for column in range(len(sizes))), last], axis=1)


def whole_slopes(scores: Floats, goal: Floats, loss: Loss | Softmax, step: float, most: int) -> Floats:
    """Slopes in whole steps, classes × rows, with an L2 norm of at most `most`. Each depends on its row alone."""
    with np.errstate(all="ignore"):  # a warning would reveal something about a cell
        if not isinstance(loss, Softmax):
            slopes = np.trunc(loss.derivative(scores[0], goal) / step)
            return np.clip(np.where(slopes == slopes, slopes, 0.0), -most, most)[None, :]
        slopes = loss.residuals(scores, goal) / step
        slopes = np.where(slopes == slopes, slopes, 0.0)
        squared = slopes[0] * slopes[0]
        for one in slopes[1:]:
            squared = squared + one * one
        shorter = most * (1 - 2.0**-45) / np.maximum(np.sqrt(squared), most)  # more than the rounding of these steps
        return np.asarray(np.trunc(slopes * np.where(squared > 0, shorter, 0.0)))


def exact_product(sums: Ints, table: Ints) -> NDArray[Any]:
    """sums × table in integers of any size. Both digits of the sums, times the table, stay below 2^53."""
    low = sums & (2**_DIGIT - 1)
    high = sums >> _DIGIT
    return np.asarray((high @ table).astype(object) * 2**_DIGIT + (low @ table).astype(object))


def _grouped(sizes: list[int]) -> list[list[int]]:
    """Columns that are looked up together, because all combinations of their bins fit into one small array."""
    groups: list[list[int]] = []
    for column, size in enumerate(sizes):
        for group in groups:
            if math.prod(sizes[one] for one in group) * size <= _TOGETHER:
                group.append(column)
                break
        else:
            groups.append([column])
    return groups


def _outer_sum(values: list[Floats]) -> Floats:
    """The sum of one value from each column, for all combinations of their bins: classes × combinations."""
    total = values[0]
    for value in values[1:]:
        total = (total[:, :, None] + value[:, None, :]).reshape(len(total), -1)
    return total


def bins_of(values: Floats, edges: Floats) -> Ints:
    """The bin of each number between ascending edges, each the start of the next bin. The last bin is for NaN."""
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64, copy=False)
