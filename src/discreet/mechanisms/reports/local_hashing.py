"""Reports of a hashed value: short, for domains of any size, including those that cannot be listed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.reports.frequency_oracle import FrequencyOracle, Support
from discreet.mechanisms.reports.local_reports import (
    Places,
    Reports,
    blocks,
    check_promise,
    largest_odds,
    ratio_of,
    within,
)
from discreet.queries.sensitivity import SensitivityLike

LIMB = 30
OPEN = 2 ** (2 * LIMB)
"""The size of an open domain: values are 60-bit fingerprints."""
MERSENNE = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class LocalHashing(FrequencyOracle):
    """Draws a hash function into `cells` cells, and reports it with the cell of the value, by randomized response.

    A function is v ↦ ⌊cells·((Σ aᵢvᵢ + b) mod prime)/prime⌋ with aᵢ and b uniform below `prime`, v in one or two limbs
    that are. Any two values get independent residues, so the probability of a collision is known exactly.

    Promise: (ln odds)-DP: the function does not depend on the value, and its cell is reported with these odds.
    Error: variance near 4·odds/(odds−1)² a report for cells = odds + 1, whatever the number of values.
    Source: Wang-Blocki-Li-Jha 2017 ("optimized local hashing"); Carter-Wegman 1979 for the family.
    """

    cells: int = 2
    method: ClassVar[str] = "hashing"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.cells, "cells", at_least=2)
        if self.size > OPEN or self.cells >= self.prime:
            raise InvalidArgument(
                "Local hashing needs at most 2^60 values, and fewer cells than values.", code="too-large"
            )

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, size: int, sensitivity: SensitivityLike = None) -> Self:
        near = ratio_of(check_promise(guarantee).epsilon) + 1
        most = min(_prime_for(size), 2**20) - 1
        cells = {min(max(2, n), most) for n in (math.floor(near), math.ceil(near))}
        made = [largest_odds(guarantee, lambda odds, g=g: cls(size=size, odds=odds, cells=g)) for g in sorted(cells)]  # type: ignore[misc]
        return min(made, key=lambda oracle: oracle.variance)

    @cached_property
    def prime(self) -> int:
        """The modulus of the family: the first prime not below the number of values, or 2^31 − 1 for two limbs."""
        return _prime_for(self.size)

    @property
    def limbs(self) -> int:
        """How many residues a value is made of."""
        return 1 if self.size <= 2**LIMB else 2

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where the residues of each cell start; the last entry is the prime."""
        return np.array([-(-cell * self.prime // self.cells) for cell in range(self.cells + 1)], dtype=np.int64)

    @cached_property
    def support(self) -> Support:
        lie = 1 / (exactly(self.odds) + self.cells - 1)
        truth = exactly(self.odds) * lie
        collide = Fraction(sum(n * n for n in np.diff(self._starts).tolist()), self.prime**2)
        # `both` is for a function that distinguishes the two values, the worst case
        return Support(truth, lie + (truth - lie) * collide, (truth - lie) * collide)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The loss for a function that distinguishes the two values. No other reveals more."""
        from discreet.mechanisms.reports.frequency_oracle import DirectResponse

        return DirectResponse(size=self.cells, odds=self.odds).guarantee()

    @property
    def report_bits(self) -> int:
        return (self.prime - 1).bit_length() * (self.limbs + 1) + (self.cells - 1).bit_length()

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(self.prime ** (self.limbs + 1) * self.cells)
        functions = [(a, b) for a in range(self.prime) for b in range(self.prime)]
        lie = 1 / (exactly(self.odds) + self.cells - 1)
        share = Fraction(1, len(functions))
        return {
            x: {
                (a, b, cell): share * lie * (exactly(self.odds) if cell == self._cell(a * x + b) else 1)
                for a, b in functions
                for cell in range(self.cells)
            }
            for x in range(self.size)
        }

    def _cell(self, residue: Any) -> Any:
        return residue % self.prime * self.cells // self.prime

    @property
    def columns(self) -> int:
        return self.limbs + 2

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        return within(reports, self.prime).all(axis=1) & (reports[:, -1] < self.cells)

    def _split(self, values: Places) -> list[NDArray[np.uint64]]:
        whole = np.asarray(values).astype(np.uint64)
        if self.limbs == 1:
            return [whole]
        return [whole >> np.uint64(LIMB), whole & np.uint64(2**LIMB - 1)]

    def _randomize(self, places: Places) -> Reports:
        count = len(places)
        drawn = [samplers.uniform_below(self.prime, count) for _ in range(self.limbs + 1)]
        lied = samplers.bernoulli((self.cells - 1) / (exactly(self.odds) + self.cells - 1), count)
        steps = samplers.uniform_below(self.cells - 1, count) + 1
        residue = drawn[-1].astype(np.uint64)
        for a, v in zip(drawn, self._split(places), strict=False):
            residue = (residue + a.astype(np.uint64) * v) % np.uint64(self.prime)
        cell = self._cell(residue.astype(np.int64))
        return np.stack([*drawn, np.where(lied, (cell + steps) % self.cells, cell)], axis=1)

    # --- the collector's side --------------------------------------------------------------------------------

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        if self.size > 2**20:
            raise InvalidArgument(
                "The domain is too large to list. Give the values to count as candidates=[…].", code="too-large"
            )
        if self.limbs == 1 and len(reports) >= self.prime:
            return self._supported_by_table(reports)
        return self.supported_among(reports, np.arange(self.size))

    def supported_among(self, reports: Reports, values: Places) -> NDArray[np.int64]:
        """How many reports support each of these values: every function is evaluated at every value."""
        limbs = self._split(values)
        columns = reports.astype(np.uint64).T
        start = self._starts[reports[:, -1]].astype(np.uint32)
        length = np.diff(self._starts)[reports[:, -1]].astype(np.uint32)
        total = np.zeros(len(values), dtype=np.int64)
        for among in blocks(len(values), 1, cells=2**10):  # both sides in pieces that fit the cache
            for part in blocks(len(reports), 1, cells=2**7):
                residue = columns[0, part, None] * limbs[0][among]
                if self.limbs == 2:
                    residue += columns[1, part, None] * limbs[1][among]
                residue += columns[self.limbs, part, None]
                small = modulo(residue, self.prime)
                small -= start[part, None]  # below the start it wraps to a huge number
                total[among] += (small < length[part, None]).sum(axis=0, dtype=np.uint8)
        return total

    def _supported_by_table(self, reports: Reports) -> NDArray[np.int64]:
        """A cell is an interval of residues, and adding b turns it: reports with one `a` are summed as intervals.

        Two marks per report and `prime`² cells in total, instead of checking each value for each report.
        """
        p = self.prime
        order = np.argsort(reports[:, 0], kind="stable")
        a, b, cell = reports[order].T
        first = (self._starts[cell] - b) % p
        last = first + np.diff(self._starts)[cell]
        values, total = np.arange(self.size), np.zeros(self.size, dtype=np.int64)
        for part in blocks(p, p, cells=2**23):
            inside = slice(*np.searchsorted(a, [part.start, part.stop]))
            row = (a[inside] - part.start) * (p + 1)
            cells = (part.stop - part.start) * (p + 1)
            wraps = last[inside] > p
            rises = np.bincount(row + first[inside], minlength=cells)
            rises += np.bincount(row[wraps], minlength=cells)
            falls = np.bincount(row + np.where(wraps, last[inside] - p, last[inside]), minlength=cells)
            covered = np.cumsum((rises - falls).reshape(-1, p + 1), axis=1)
            for i, factor in enumerate(range(part.start, part.stop)):
                total += covered[i, factor * values % p]
        return total


def modulo(numbers: NDArray[np.uint64], prime: int) -> NDArray[np.uint32]:
    """The residues of numbers below 2^62 + 2^31; the buffer is used up."""
    if prime != MERSENNE:
        numbers %= np.uint64(prime)
        return numbers.astype(np.uint32)
    high = numbers >> np.uint64(31)  # 2^31 is 1 modulo 2^31 − 1
    numbers &= np.uint64(prime)
    numbers += high
    small = numbers.astype(np.uint32)
    small = (small & np.uint32(prime)) + (small >> np.uint32(31))
    return np.asarray(np.minimum(small, small - np.uint32(prime)))  # what is below the prime wraps to a huge number


def _prime_for(size: int) -> int:
    if size > 2**LIMB:
        return MERSENNE
    return next_prime(max(size, 3))


def next_prime(least: int) -> int:
    """The first prime that is not below `least`."""
    found = max(least, 2)
    while any(found % d == 0 for d in range(2, math.isqrt(found) + 1)):
        found += 1
    return found
