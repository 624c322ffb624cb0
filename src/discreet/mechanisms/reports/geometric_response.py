"""Reports that are points of a small geometry: each value is a hyperplane, and the points on it support it.

One index per report, and one fast transform for all of them: the shortest reports and the fastest collector.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.reports.frequency_oracle import FrequencyOracle, Support
from discreet.mechanisms.reports.local_hashing import next_prime
from discreet.mechanisms.reports.local_reports import Places, Reports, check_promise, largest_odds, ratio_of, within
from discreet.queries.sensitivity import SensitivityLike

_LARGEST_PRIME = 2000  # past e^ε = 2000 hashing is as good, and its tables are small
_LARGEST_TABLE = 2**25  # cells of the collector's transform


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(FrequencyOracle):
    """Reports a number y. Those where the value's row of the Hadamard matrix is +1 are `odds` times more likely.

    Promise: (ln odds)-DP. The matrix has a power of two of rows, the first of which, all ones, is nobody's.
    Error: variance near ((odds+1)/(odds−1))² a report: right for small odds, 2.4 times the best at ε = 2.
    Source: Acharya-Sun-Zhang 2019.
    """

    method: ClassVar[str] = "hadamard"

    @property
    def order(self) -> int:
        """The number of possible reports."""
        return int(2 ** self.size.bit_length())

    @cached_property
    def support(self) -> Support:
        truth = exactly(self.odds) / (exactly(self.odds) + 1)
        return Support(truth, Fraction(1, 2), truth / 2)

    @property
    def report_bits(self) -> int:
        return self.size.bit_length()

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(self.order)
        lie = 2 / (self.order * (exactly(self.odds) + 1))
        return {
            x: {y: lie * (1 if ((x + 1) & y).bit_count() % 2 else exactly(self.odds)) for y in range(self.order)}
            for x in range(self.size)
        }

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        return within(reports, self.order)

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        signs = _walsh_hadamard(np.bincount(reports, minlength=self.order))
        return (len(reports) + signs[1 : self.size + 1]) // 2

    def _randomize(self, places: Places) -> Reports:
        rows = places + 1
        drawn = samplers.uniform_below(self.order, len(rows))
        truthful = ~samplers.bernoulli(1 - self.support.truth, len(rows))
        odd = np.bitwise_count(rows & drawn) % 2 == 1
        return np.where(odd == truthful, drawn ^ (rows & -rows), drawn)  # one bit of the row turns the sign


def _walsh_hadamard(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """All signed sums of the values, in order of size·log(size)."""
    step = 1
    while step < len(values):
        pairs = values.reshape(-1, 2, step)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return values


@dataclass(frozen=True, kw_only=True)
class ProjectiveResponse(FrequencyOracle):
    """Tells a point of a projective space over the field of `prime` numbers; the points on the value's hyperplane are
    `odds` times likelier.

    Points are vectors of `dimension` coordinates whose first that is not 0 is 1, in the order of their digits.

    Promise: (ln odds)-DP. The space has at least as many points, and hyperplanes, as there are values.
    Error: near that of subset selection when prime is near odds + 1, with reports of log2(size) bits.
    Source: Feldman-Nelson-Nguyen-Talwar 2022.
    """

    prime: int = 2
    dimension: int = 2
    method: ClassVar[str] = "projective"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.dimension, "dimension", at_least=2)
        if next_prime(check_count(self.prime, "prime", at_least=2)) != self.prime or self.points < self.size:
            raise InvalidArgument(
                "prime must be a prime number, and the space must have a point for each value.", code="out-of-range"
            )

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, size: int, sensitivity: SensitivityLike = None) -> Self:
        ratio = ratio_of(check_promise(guarantee).epsilon or 1)  # odds are above 1: the space of ε = 1 serves ε = 0
        largest = min(3 * float(ratio) + 8, 2.0 * check_count(size, "size", at_least=2) + 8, _LARGEST_PRIME)
        made = [cls(size=size, odds=ratio, prime=p, dimension=t) for p, t in _spaces(size, largest)]
        best = min(made, key=lambda oracle: oracle.variance)
        return largest_odds(
            guarantee, lambda odds: cls(size=size, odds=odds, prime=best.prime, dimension=best.dimension)
        )

    def _spanned(self, dimension: int) -> int:
        return int((self.prime**dimension - 1) // (self.prime - 1))

    @property
    def points(self) -> int:
        """The number of possible reports."""
        return self._spanned(self.dimension)

    @cached_property
    def support(self) -> Support:
        odds, on, shared = exactly(self.odds), self._spanned(self.dimension - 1), self._spanned(self.dimension - 2)
        lie = 1 / ((odds - 1) * on + self.points)
        return Support(odds * on * lie, ((odds - 1) * shared + on) * lie, odds * shared * lie)

    @property
    def report_bits(self) -> int:
        return (self.points - 1).bit_length()

    @property
    def most_supported(self) -> int:
        return min(self.size, self._spanned(self.dimension - 1))

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(self.points)
        every = self._vectors(np.arange(self.points))
        lie = 1 / ((exactly(self.odds) - 1) * self._spanned(self.dimension - 1) + self.points)
        on = every[: self.size] @ every.T % self.prime == 0
        return {
            x: {y: lie * (exactly(self.odds) if on[x, y] else 1) for y in range(self.points)} for x in range(self.size)
        }

    def _vectors(self, places: Places) -> NDArray[np.int64]:
        """The points with these places: after (prime^e − 1)/(prime − 1) others come those that lead with 1·prime^e."""
        before = np.array([self._spanned(e) for e in range(self.dimension)])
        lead = np.searchsorted(before, places, side="right") - 1
        powers = self.prime ** np.arange(self.dimension)
        return self._digits(np.asarray(places) - before[lead] + powers[lead], self.dimension)

    def _digits(self, numbers: Places, count: int) -> NDArray[np.int64]:
        powers = self.prime ** np.arange(count - 1, -1, -1)
        return np.asarray(numbers)[:, None] // powers % self.prime

    def _places(self, vectors: NDArray[np.int64]) -> Places:
        """The places of the points on the lines of these vectors, none of which is zero."""
        lead = (vectors != 0).argmax(axis=1)
        inverse = np.array([0, *(pow(a, -1, self.prime) for a in range(1, self.prime))])
        scaled = vectors * inverse[vectors[np.arange(len(vectors)), lead]][:, None] % self.prime
        powers = self.prime ** np.arange(self.dimension - 1, -1, -1)
        before = np.array([self._spanned(self.dimension - 1 - i) for i in range(self.dimension)])
        return np.asarray(scaled @ powers - powers[lead] + before[lead])

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        return within(reports, self.points)

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        # x·u = 0 for all multiples of x or for none: a Fourier transform over the field adds up the points on each
        counts = np.bincount(reports, minlength=self.points)
        seen = np.flatnonzero(counts)
        table = np.zeros((self.prime,) * self.dimension)
        vectors = self._vectors(seen)
        for factor in range(1, self.prime):
            table[tuple((vectors * factor % self.prime).T)] = counts[seen]
        from scipy.fft import fftn

        waves = fftn(table).real[tuple(self._vectors(np.arange(self.size)).T)]
        return np.asarray(np.rint((len(reports) + waves) / self.prime), dtype=np.int64)

    def _randomize(self, places: Places) -> Reports:
        normals = self._vectors(places)
        rows, free = np.arange(len(normals)), self.prime ** (self.dimension - 1)
        truthful = ~samplers.bernoulli(1 - self.support.truth, len(rows))
        # one coordinate, where the normal is 1, follows from the others: x·u = 0 on the hyperplane, x·u = 1 off it
        on = samplers.uniform_below(free - 1, len(rows)) + 1
        off = samplers.uniform_below(free, len(rows))
        others = self._digits(np.where(truthful, on, off), self.dimension - 1)
        pivot = (normals != 0).argmax(axis=1)
        column = np.arange(self.dimension - 1)
        vectors = np.zeros_like(normals)
        vectors[rows[:, None], column + (column >= pivot[:, None])] = others
        vectors[rows, pivot] = (np.where(truthful, 0, 1) - (normals * vectors).sum(axis=1)) % self.prime
        return self._places(vectors)


def _spaces(size: int, largest: float) -> list[tuple[int, int]]:
    """For each prime up to `largest` the smallest space with enough points, when its transform fits in memory."""
    found, prime = [], 2
    while prime <= largest:
        dimension = 2
        while (prime**dimension - 1) // (prime - 1) < size:
            dimension += 1
        if prime**dimension <= _LARGEST_TABLE or prime == 2:
            found.append((prime, dimension))
        prime = next_prime(prime + 1)
    return found
