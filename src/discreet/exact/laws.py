"""Distributions ("laws") on the integers, as exact integer weights.

`Shape` is a symmetric law given by its exponent. `OneSided` draws the absolute value from a table of integer weights
that sum to exactly a power of two, with one lookup per draw (the alias method, in integers). The mass that the integers
cannot express, about 2^-50 and the whole far tail, is one more item of the table, the *remainder*. When it is chosen,
the value is drawn in arbitrary precision.
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
from discreet.exact.randomness import random_integer
from discreet.exact.rational import exp_minus_bits

TABLE_BITS = 63
LARGEST_MACHINE_CELL = 2**13
"""Larger items are returned as Python integers, so that scaling them cannot overflow."""


class AliasTable:
    """Draws items with integer weights that sum to exactly 2^bits, with one lookup per draw."""

    def __init__(self, weights: Sequence[int], bits: int = TABLE_BITS) -> None:
        if sum(weights) != 2**bits or min(weights) < 0:
            raise InvalidArgument(
                "weights must be non-negative integers that sum to the table's power of two.", code="not-a-distribution"
            )
        columns = 1 << (len(weights) - 1).bit_length()
        self._shift = np.uint64(bits - (columns.bit_length() - 1))
        share = 1 << int(self._shift)
        left = list(weights) + [0] * (columns - len(weights))
        self._other = np.arange(columns, dtype=np.int64)
        self._cut = np.full(columns, share, dtype=np.uint64)
        small = [i for i, weight in enumerate(left) if weight < share]
        large = [i for i, weight in enumerate(left) if weight > share]
        while small:
            poor = small.pop()
            rich = large[-1]
            self._cut[poor], self._other[poor] = left[poor], rich
            left[rich] -= share - left[poor]
            if left[rich] <= share:
                large.pop()
                if left[rich] < share:
                    small.append(rich)
        self._mask = np.uint64(share - 1)

    def pick(self, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The items chosen by uniform words below 2^bits."""
        columns = (words >> self._shift).astype(np.int64)
        own = (words & self._mask) < self._cut[columns]
        return np.where(own, columns, self._other[columns])


@dataclass(frozen=True)
class Shape:
    """A symmetric law on the integers with mass ∝ exp(-energy(|k|)): |k|/t ("laplace") or k²/(2v) ("gaussian")."""

    kind: str
    parameter: Fraction

    def energy(self, k: int) -> Fraction:
        """The exponent at |k|."""
        return Fraction(k) / self.parameter if self.kind == "laplace" else Fraction(k * k) / (2 * self.parameter)

    def cell_bits(self) -> int:
        """A draw is a cell of 2^bits values and a position in it, for this many bits. Cells are small compared with the
        scale.
        """
        size = math.floor(self.parameter)
        if self.kind == "laplace":
            return max(0, size.bit_length() - 5)
        return max(0, (size.bit_length() - 10) // 2)

    def in_cells(self, bits: int) -> Shape:
        """The law of the left ends of the cells, in units of the cell."""
        return Shape(self.kind, self.parameter / 2 ** (bits if self.kind == "laplace" else 2 * bits))

    def masses(self, bits: int) -> tuple[list[int], int]:
        """Integers m_k ≤ exp(-energy(k))·2^bits ≤ m_k + slack for k = 0, 1, …. The slack also bounds everything that is
        left out.
        """
        work = bits + 64
        first = exp_minus_bits(self.energy(1), work)[0]
        ratio = first if self.kind == "laplace" else exp_minus_bits(self.energy(2) - 2 * self.energy(1), work)[0]
        masses, mass, factor = [], 1 << work, first
        while mass >> 64:
            masses.append(mass >> 64)
            mass = mass * factor >> work
            if self.kind == "gaussian":
                factor = factor * ratio >> work
        # each product loses < 4 units of 2^-work; the rest is below a geometric tail with the last ratio
        tail = math.ceil(
            Fraction(4, 1) / max(Fraction(1, 2**bits), 1 - Fraction(factor + len(masses) * 4 + 4, 1 << work))
        )
        slack = 2 + (8 * len(masses) ** 2 >> 64) + tail
        return masses, slack

    def law(self, bits: int = 256, *, signed: bool = True) -> tuple[dict[int, Fraction], Fraction]:
        """Each k with a probability rounded down by less than 2^-bits·len, and the mass left out. For enumeration.
        Without `signed`, only k ≥ 0.
        """
        masses, slack = self.masses(bits)
        sides = 2 if signed else 1
        total = sides * (sum(masses) + slack * (len(masses) + 1)) - (masses[0] if signed else 0)
        signs = (1, -1)[:sides]
        law = {sign * k: Fraction(mass, total) for k, mass in enumerate(masses) for sign in (signs if k else (1,))}
        return law, 1 - sum(law.values(), Fraction(0))


class OneSided:
    """Draws k = 0, 1, 2, … with mass ∝ exp(-energy(k)). With `halved`, the mass at 0 is halved, for adding a sign.

    Promise: every k is drawn with exactly its probability, for any `bits`. Fewer bits only make the remainder likelier.
    """

    def __init__(self, shape: Shape, *, halved: bool, bits: int = TABLE_BITS) -> None:
        self._shape, self._halved, self._bits = shape, halved, bits
        masses, slack = self._masses(bits + 64)
        total = sum(masses) + slack * (len(masses) + 1)
        self._weights = [(mass << bits) // total for mass in masses]
        while self._weights and self._weights[-1] == 0:
            self._weights.pop()
        self._remainder = (1 << bits) - sum(self._weights)
        self._table = AliasTable([*self._weights, self._remainder], bits)

    def _masses(self, bits: int) -> tuple[list[int], int]:
        masses, slack = self._shape.masses(bits)
        if self._halved:
            masses[0] //= 2
        return masses, slack + 1

    def draw(self, words: NDArray[np.uint64]) -> NDArray[Any]:
        """One item for each uniform word below 2^bits."""
        items: NDArray[Any] = self._table.pick(words)
        for i in np.flatnonzero(items == len(self._weights)):
            drawn = self._draw_remainder()
            if drawn >= LARGEST_MACHINE_CELL:
                items = items.astype(object)
            items[i] = drawn
        return items

    def _draw_remainder(self) -> int:
        # invert the cumulative law of (exact mass − table weight), with as many digits as are needed
        uniform, known, precision = random_integer(64), 64, self._bits + 128
        while True:
            masses, slack = self._masses(precision)
            low_total, high_total = sum(masses), sum(masses) + slack * (len(masses) + 1)
            target_low = uniform * self._remainder
            target_high = (uniform + 1) * self._remainder
            low = high = 0  # bounds on the cumulative masses up to k
            previous_high = Fraction(0)
            table_weight = 0
            for k, mass in enumerate(masses):
                low, high = low + mass, high + mass + slack
                table_weight += self._weights[k] if k < len(self._weights) else 0
                below = (Fraction(low << self._bits, high_total) - table_weight) * 2**known
                above = (Fraction(high << self._bits, low_total) - table_weight) * 2**known
                if previous_high <= target_low and target_high <= below:
                    return k
                if target_high <= below:
                    break
                previous_high = above
            uniform, known = uniform << 64 | random_integer(64), known + 64
            precision += 64
