"""Sums of products of coded columns, and a table of shares: all sums that a regression needs, in one query.

A row of numbers z from −1 to 1 is divided among the corners of the cube: the share of a corner is the product of
(1 ± z)/2. A row adds exactly 1 to the table of shares, however many corners there are, and the sum of every product of
different columns follows from the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.exact.rational import sqrt_up
from discreet.guarantees.unit import Unit, check_rows
from discreet.queries.sensitivity import Sensitivity

Floats = NDArray[np.float64]
SHARE_BITS, PRODUCT_BITS, WEIGHT_BITS = 22, 24, 12
_BLOCK = 2**9
"""Products of two shares below 2^44 are added exactly by a double if there are this many."""


@dataclass(frozen=True)
class CodedRows:
    """Rows whose cells are known: the shares of each row by column, and the products whose sums are wanted."""

    shares: tuple[Floats, ...]
    products: Floats

    def part(self, some: slice) -> CodedRows:
        """Some of the rows."""
        return CodedRows(tuple(column[some] for column in self.shares), self.products[some])


@dataclass(frozen=True)
class WeightedSums(Closed):
    """The table of shares times `table_weight`, then the sum of each product times its own weight.

    `cells` is the number of shares of each column; there is no table if it is empty. `weights` are whole multiples of
    2^−12. `signed` says which products can be negative. `most` and `most_squared` are the largest Σ weight·|product|
    and Σ (weight·product)² of one row; products are at most 1 in absolute value.

    Promise: one added or removed row moves the answer by at most `table_weight` + `most` in the L1 norm, and by
    √(table_weight² + most_squared) in the L2 norm: shares are not negative and add up to 1. A replaced row moves the
    table by twice (√2 times) as much, and each product by 2, or 1 if it cannot be negative. k rows move it by k times
    as much. Rows that a missing cell leaves out add nothing.
    """

    cells: tuple[int, ...]
    table_weight: Fraction
    weights: tuple[Fraction, ...]
    signed: tuple[bool, ...]
    most: Fraction
    most_squared: Fraction

    @property
    def space(self) -> None:
        """None: rows are coded before they come here."""
        return None

    @cached_property
    def grain(self) -> Fraction:
        """Every answer is a whole multiple of this."""
        return Fraction(1, 2 ** (2 * SHARE_BITS + WEIGHT_BITS))

    @property
    def size(self) -> int:
        """How many numbers the answer has."""
        return (math.prod(self.cells) if self.cells else 0) + len(self.weights)

    def __call__(self, blocks: Iterable[CodedRows]) -> NDArray[np.object_]:
        table = [0] * (self.size - len(self.weights))
        sums = [0] * len(self.weights)
        for rows in blocks:
            for start in range(0, len(rows.products), _BLOCK * _BLOCK):
                some = rows.part(slice(start, start + _BLOCK * _BLOCK))
                table = [total + more for total, more in zip(table, self._table(some), strict=True)]
                whole = np.rint(some.products * 2**PRODUCT_BITS).sum(0)  # exact: below 2^43
                sums = [total + int(more) for total, more in zip(sums, whole, strict=True)]
        answer = [self.table_weight * Fraction(total, 4**SHARE_BITS) for total in table]
        answer += [w * Fraction(total, 2**PRODUCT_BITS) for w, total in zip(self.weights, sums, strict=True)]
        return np.array([*answer, None], dtype=object)[:-1]

    def _table(self, rows: CodedRows) -> list[int]:
        if not self.cells:
            return []
        half = len(self.cells) // 2
        sides = [_whole_shares(part, len(rows.products)) for part in (rows.shares[:half], rows.shares[half:])]
        missing = -len(rows.products) % _BLOCK
        first, second = (np.pad(side, ((0, 0), (0, missing))).reshape(len(side), -1, _BLOCK) for side in sides)
        block = np.matmul(first.transpose(1, 0, 2), second.transpose(1, 2, 0)).astype(np.int64)  # exact: below 2^53
        return [int(total) for total in block.sum(0).reshape(-1)]

    def sensitivity(self, unit: Unit, rows_per_person: int = 1, *, norm: str = "L1") -> Sensitivity:
        """How far one unit can move the answer."""
        rows = check_rows(unit, rows_per_person)
        replaced = unit.neighbors == "replace"
        ranges = [w * (2 if signed else 1) for w, signed in zip(self.weights, self.signed, strict=True)]
        if norm == "L2":
            squared = self.table_weight**2 + self.most_squared
            if replaced:
                squared = 2 * self.table_weight**2 + min(4 * self.most_squared, sum(w * w for w in ranges))
            return Sensitivity(rows * sqrt_up(squared), "L2", unit, self.size, self.grain)
        amount = self.table_weight + self.most
        if replaced:
            amount = 2 * self.table_weight + min(2 * self.most, sum(ranges, Fraction(0)))
        return Sensitivity(rows * amount, "L1", unit, self.size, self.grain)


def _whole_shares(columns: tuple[Floats, ...], rows: int) -> Floats:
    """The products of the shares of some columns as whole numbers that add up to 2^22. The largest takes what rounding
    leaves. One line for each product: operations on long lines are fast.
    """
    parts = np.ones((1, rows))
    for column in columns:
        parts = (parts[:, None, :] * column.T[None, :, :]).reshape(len(parts) * column.shape[1], rows)
    whole = np.rint(parts * 2**SHARE_BITS)
    left, largest = 2**SHARE_BITS - whole.sum(0), whole.max(0)
    for line in whole:  # much faster than argmax: the first of the largest takes it
        taken = np.where(line == largest, left, 0.0)
        line += taken
        left -= taken
    return np.asarray(whole)


def whole_weight(weight: float) -> Fraction:
    """A weight as a whole multiple of 2^−12, at least one."""
    return Fraction(max(1, round(weight * 2**WEIGHT_BITS)), 2**WEIGHT_BITS)


def coded_rows(shares: Any, products: Any) -> CodedRows:
    """Rows for `WeightedSums`."""
    return CodedRows(tuple(shares), np.asarray(products, dtype=np.float64))
