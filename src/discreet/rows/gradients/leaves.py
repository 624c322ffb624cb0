"""Public random trees over binned columns, and the rows in their leaves.

A tree is drawn from a public seed alone. It divides the bins of a few columns into parts, and its leaves are all
combinations of parts. So every row is in exactly one leaf of each tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly, power_of_two_below
from discreet.rows import doubles
from discreet.rows.gradients.binned import whole_slopes
from discreet.rows.gradients.losses import Loss, Softmax

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_BITS = 20
_CUTS = 15
_PRIME = 2**31 - 1


def slope_unit(clip: Number) -> Fraction:
    """The unit of slopes: a power of two that divides the clip into at most 2^21 units.

    So a double adds the slopes of 2^32 rows exactly.
    """
    return power_of_two_below(exactly(clip)) * Fraction(1, 2**_BITS)


def public_words(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Words that look random to anyone who does not know the seed, which is public: SplitMix64 in counter mode."""
    with np.errstate(over="ignore"):
        word = np.arange(first + 1, first + 1 + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        word += np.uint64(seed % 2**64)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(word ^ (word >> np.uint64(31)))


@dataclass(frozen=True, eq=False)
class Tree:
    """The columns of a tree and, for each of them, the part of every bin, times the leaves between two parts."""

    columns: tuple[int, ...]
    tables: tuple[Ints, ...]
    parts: tuple[int, ...]

    @property
    def leaves(self) -> int:
        """How many leaves there are. Some may be empty."""
        return math.prod(self.parts)

    def places(self, codes: Sequence[Any]) -> NDArray[np.intp]:
        """The leaf of each row, by the bins of its columns."""
        found: NDArray[np.intp] = self.tables[0].take(codes[self.columns[0]], mode="clip")
        for column, table in zip(self.columns[1:], self.tables[1:], strict=True):
            found += table.take(codes[column], mode="clip")
        return found


@dataclass(frozen=True)
class Bins:
    """What is public about the bins of the columns: how many each has, and whether they are in order.

    The last bin of a column is for missing or other cells.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]

    def tree(self, seed: int, number: int, shapes: Sequence[tuple[int, int]], weights: Floats | None = None) -> Tree:
        """The tree of this number: one of the `shapes`, each a number of columns and of parts of each.

        Columns are drawn without replacement, with probability proportional to `weights` at each draw.
        """
        many = len(self.sizes)
        most = max(columns for columns, _ in shapes)
        every = 1 + many + most * (_CUTS + 2)
        words = public_words(seed, number * every, every)
        columns, parts = shapes[int(words[0] % np.uint64(len(shapes)))]
        uniform = (words[1 : 1 + many] >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
        keys = -np.log(uniform) if weights is None else -np.log(uniform) / weights
        chosen = np.argsort(keys, kind="stable")[:columns]
        tables, counts, leaves = [], [], 1
        for slot, column in enumerate(chosen.tolist()):
            start = 1 + many + slot * (_CUTS + 2)
            table, found = self._parts(column, parts, words[start : start + _CUTS + 2].astype(object))
            tables.append(table * leaves)
            counts.append(found)
            leaves *= found
        return Tree(tuple(chosen.tolist()), tuple(tables), tuple(counts))

    def _parts(self, column: int, parts: int, words: Any) -> tuple[Ints, int]:
        """The part of each bin: between random cuts, or at random for bins without an order."""
        size = self.sizes[column]
        bins = np.arange(size)
        if not self.ordered[column]:
            if size <= parts:
                return bins, size
            first, second = 1 + int(words[0]) % (_PRIME - 1), int(words[1]) % _PRIME
            return (first * (bins + 1) + second) % _PRIME % parts, parts
        if size < 3:
            return np.minimum(bins, parts - 1), min(size, parts)
        cuts = np.array(sorted(1 + int(word) % (size - 2) for word in words[2 : 1 + parts]))
        table = np.searchsorted(cuts, bins, side="right")
        table[-1] = int(words[0]) % parts  # a missing cell is near no other
        return table, parts


class LeafRows:
    """Rows of bins with their targets, for trees. A row whose target is not a finite number is left out."""

    def __init__(self, codes: Sequence[Any], targets: Any) -> None:
        goal = doubles(targets)
        if not len(codes) or any(np.shape(one) != goal.shape for one in codes):
            raise InvalidArgument("There must be one bin for each row and column.", code="wrong-shape")
        self.count, self._kept = len(goal), np.isfinite(goal)
        self._goal = np.where(self._kept, goal, 0.0)
        self._codes = [np.asarray(one).astype(np.int32) for one in codes]
        self._scores = self._speeds = np.zeros((1, 0))

    def __reduce__(self) -> Any:
        raise InvalidArgument(
            "The rows of a model cannot be pickled: they are private. Pickle the fitted model.", code="not-pickled"
        )

    def __repr__(self) -> str:
        return f"<LeafRows of {len(self._codes)} columns>"

    # --- boosting -------------------------------------------------------------------------------------------

    def start(self, loss: Loss | Softmax) -> None:
        """Forget all scores."""
        many = loss.classes if isinstance(loss, Softmax) else 1
        self._scores, self._speeds = np.zeros((many, self.count)), np.zeros((many, self.count))

    def sums(self, places: NDArray[np.intp], leaves: int, loss: Loss | Softmax, clip: Number) -> Ints:
        """The sums of the clipped slopes in each leaf, classes × leaves, in units of `slope_unit(clip)`.

        Promise: a row adds to one leaf, by whole units, with an L2 norm of at most the clip. What it adds depends only
        on the row and on the values that its scores were moved by.
        """
        unit = slope_unit(clip)
        slopes = whole_slopes(self._scores, self._goal, loss, float(unit), int(exactly(clip) / unit)) * self._kept
        return np.array([np.bincount(places, one, leaves) for one in slopes]).astype(np.int64)

    def places(self, tree: Tree) -> NDArray[np.intp]:
        """The leaf of each row."""
        return tree.places(self._codes)

    def move(self, places: NDArray[np.intp], values: Floats, momentum: float) -> None:
        """Move the score of each row by the value of its leaf, with momentum."""
        self._speeds *= momentum
        for speed, value in zip(self._speeds, values, strict=True):
            speed += value.take(places)
        self._scores += self._speeds

    # --- forests --------------------------------------------------------------------------------------------

    def counts(self, places: NDArray[np.intp], leaves: int, classes: int) -> Ints:
        """How many rows of each class are in each leaf: classes × leaves. A row is counted once at most."""
        known = self._kept & (self._goal >= 0) & (self._goal < classes)
        joint = np.where(known, self._goal, 0.0).astype(np.int64) * leaves + places
        counted = np.bincount(joint, known.astype(np.float64), classes * leaves)
        return counted.reshape(classes, leaves).astype(np.int64)

    def totals(self, places: NDArray[np.intp], leaves: int, unit: Fraction) -> Ints:
        """How many rows are in each leaf, and the sums of their targets, clipped to ±1 and in whole `unit`s."""
        most = int(1 / unit)
        whole = np.clip(np.trunc(np.clip(self._goal, -1.0, 1.0) / float(unit)), -most, most) * self._kept
        counted = np.bincount(places, self._kept.astype(np.float64), leaves)
        return np.array([counted, np.bincount(places, whole, leaves)]).astype(np.int64)
