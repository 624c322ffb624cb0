"""A private tree that divides rows into small cells, from which clusters start.

Rows are read in a few public directions. Each level releases, for every leaf, how many rows it has and their mean and
spread in these directions. Leaves with enough rows are then divided at their mean, where they are widest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import sqrt_up
from discreet.mechanisms.learning.public_points import spread_directions
from discreet.rows.rounding import Block, Floats, RoundedRows, unit_of

DIRECTIONS = 16
"""More columns than this are read in this many public directions."""
_BITS = 10


@dataclass(frozen=True)
class Directions:
    """The numbers by which rows are divided: the columns themselves, or a few public directions if there are many.

    Promise: whole numbers that depend on the row alone: products of integers below 2^33, rounded, then clamped.
    """

    features: int
    norm: Fraction
    is_ball: bool

    @property
    def many(self) -> int:
        return min(self.features, DIRECTIONS)

    @property
    def _units(self) -> int:
        """How long a number can be, in units: 1.5 times what a row of full length has in a random direction."""
        unit = unit_of(self.norm)
        if self.features <= DIRECTIONS:
            return int((self.norm if self.is_ball else 1) / unit)
        return int(Fraction(3, 2) * self.norm / int(self.features**0.5) / unit)

    @property
    def largest(self) -> Fraction:
        return self._units * unit_of(self.norm)

    def reach(self, power: int) -> tuple[Fraction, Fraction]:
        """The L2 and L1 norms of all numbers of a row, or of their squares, at most."""
        most, many = self.largest**power, self.many
        root = self.norm if self.features == many else _root(many) * self.largest
        if power == 1:
            return root, _root(many) * root
        if self.is_ball and self.features == many:
            return self.norm**2, self.norm**2
        return _root(many) * most, many * most

    def matrix(self) -> Floats | None:
        """The directions as columns of whole numbers, 2^10 long, or None for the columns of the rows."""
        if self.features <= DIRECTIONS:
            return None
        return np.asarray(np.rint(spread_directions(self.features, self.many) * 2**_BITS))

    def of_rows(self, whole: Floats, matrix: Floats | None) -> Floats:
        if matrix is None:
            return whole
        return np.asarray(np.clip(np.rint((whole @ matrix) / 2**_BITS), -self._units, self._units))


def _root(many: int) -> Fraction:
    return sqrt_up(Fraction(many))


class Tree:
    """Cells of rows: a node is a leaf, or divides its rows where one number is above a threshold."""

    def __init__(self, directions: Directions) -> None:
        self.directions, self.matrix = directions, directions.matrix()
        self.axis, self.threshold, self.child = [-1], [0.0], [0]
        self.depth = 0

    @property
    def leaves(self) -> list[int]:
        return [node for node, axis in enumerate(self.axis) if axis < 0]

    def split(self, node: int, axis: int, threshold: float) -> None:
        """Divide a leaf. The threshold is in units."""
        self.axis[node], self.threshold[node], self.child[node] = axis, float(np.rint(threshold)), len(self.axis)
        self.axis += [-1, -1]
        self.threshold += [0.0, 0.0]
        self.child += [0, 0]

    def numbers_and_cells(self, block: Block) -> tuple[Floats, NDArray[np.int64]]:
        """The numbers of each row, and which leaf it is in (−1 if the row is left out)."""
        whole, goal = block
        numbers = self.directions.of_rows(whole, self.matrix)
        axis, threshold, child = np.array(self.axis), np.array(self.threshold), np.array(self.child)
        node, rows = np.zeros(len(whole), np.int64), np.arange(len(whole))
        for _ in range(self.depth):
            chosen = axis[node]
            above = numbers[rows, chosen] > threshold[node]
            node = np.where(chosen < 0, node, child[node] + above)
        place = np.full(len(self.axis), -1)
        place[self.leaves] = np.arange(len(self.leaves))
        return numbers, np.where(np.isfinite(goal), place[node], -1)


def exact_leaf_sums(rows: RoundedRows, tree: Tree, cells: int, *, full: bool) -> list[NDArray[Any]]:
    """For each leaf the number of rows, and the sums of their numbers and of the squares; or of the whole rows.

    There are zeros for the rest of `cells`, so that how much noise is drawn does not depend on the tree.
    """

    def of_block(block: Block) -> list[Floats]:
        numbers, cell = tree.numbers_and_cells(block)
        members = (cell[:, None] == np.arange(cells)).astype(np.float64).T
        if full:
            return [members.sum(1), members @ block[0]]
        return [members.sum(1), members @ numbers, members @ (numbers * numbers)]

    return rows.exact_sums(of_block)


def grow(tree: Tree, seen: list[Floats], least: float, most: int) -> None:
    """Divide the leaves with at least `least` rows, those with the most spread first, to at most `most` leaves.

    `seen` are the noisy counts, sums and sums of squares of each leaf. Only released numbers decide.
    """
    counts, sums, squares = (part[: len(tree.leaves)] for part in seen)
    unit = float(unit_of(tree.directions.norm))
    enough = np.maximum(counts, 1.0)[:, None]
    means = np.clip(sums / enough, -float(tree.directions.largest), float(tree.directions.largest))
    spread = np.maximum(squares / enough - means**2, 0.0)
    leaves, order = tree.leaves, np.argsort(-(spread.sum(1) * counts), kind="stable")
    room = most - len(leaves)
    for place in [int(i) for i in order if counts[i] >= least][: max(room, 0)]:
        axis = int(spread[place].argmax())
        tree.split(leaves[place], axis, means[place, axis] / unit)
    tree.depth += 1
