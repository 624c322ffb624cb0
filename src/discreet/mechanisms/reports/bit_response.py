"""Reports that are sets of values: subset selection and optimized unary encoding."""

from __future__ import annotations

import itertools
import math
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
from discreet.mechanisms.reports.local_reports import (
    Places,
    Reports,
    blocks,
    check_promise,
    coins,
    largest_odds,
    ratio_of,
    whole_numbers,
    within,
)
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

_FEW = 32  # values that are picked one by one; for more, coins are faster


class _PackedBits(FrequencyOracle):
    """Sets of values as packed bits, one row per report."""

    @property
    def listed(self) -> bool:
        """Whether a report is a list of positions rather than one bit for each value."""
        return False

    def as_reports(self, reports: Data) -> Reports:
        """Reports as an array of bytes, or of numbers that may be bytes."""
        return whole_numbers(reports, self.columns, packed=not self.listed)

    @property
    def report_bits(self) -> int:
        return self.size

    @property
    def columns(self) -> int:
        return -(-self.size // 8)

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        bytes_only = reports.dtype == np.uint8 or within(reports, 256).all(axis=1)
        return np.asarray(bytes_only & (reports[:, -1] % 2 ** (-self.size % 8) == 0))

    def valid(self, reports: Data) -> Reports:
        return super().valid(reports).astype(np.uint8)

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        total = np.zeros(self.size, dtype=np.int64)
        for part in blocks(len(reports), self.size, cells=255 * self.size):  # sums of 255 bits fit one byte
            total += np.unpackbits(reports[part], axis=1, count=self.size).sum(axis=0, dtype=np.uint8)
        return total

    def _randomize(self, places: Places) -> Reports:
        packed = np.empty((len(places), self.columns), dtype=np.uint8)
        for part in blocks(len(places), self.size):
            packed[part] = np.packbits(self._sets(places[part]), axis=1)
        return packed

    def _sets(self, places: Places) -> NDArray[np.bool_]:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(_PackedBits):
    """Tells `width` of the values, drawn uniformly from the sets of that size, those with the true value `odds` times
    likelier. A report is the places of the set in order when they are few (`listed`), and else one bit for each value.

    Promise: (ln odds)-DP.
    Error: the least of all oracles for the best width, which is near size/(odds+1); width 1 is randomized response.
    Source: Ye-Barg 2018; Wang et al. 2016.
    """

    width: int = 1
    method: ClassVar[str] = "subset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_count(self.width, "width") >= self.size:
            raise InvalidArgument("width must be below the number of values.", code="out-of-range")

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, size: int, sensitivity: SensitivityLike = None) -> Self:
        near = check_count(size, "size", at_least=2) / (float(ratio_of(check_promise(guarantee).epsilon)) + 1)
        widths = {min(max(1, width), size - 1) for width in (math.floor(near), math.ceil(near))}
        made = [largest_odds(guarantee, lambda odds, w=w: cls(size=size, odds=odds, width=w)) for w in sorted(widths)]  # type: ignore[misc]
        return min(made, key=lambda oracle: oracle.variance)

    @property
    def listed(self) -> bool:
        """Whether positions are shorter than bits, and so few that independent draws rarely repeat one."""
        few = self.width <= _FEW and 2 * self.width**2 <= self.size
        return few and self.width * (self.size - 1).bit_length() < self.size

    @property
    def columns(self) -> int:
        return self.width if self.listed else super().columns

    @property
    def report_bits(self) -> int:
        return self.width * (self.size - 1).bit_length() if self.listed else self.size

    @property
    def most_supported(self) -> int:
        return self.width

    @cached_property
    def support(self) -> Support:
        weight = exactly(self.odds) * self.width
        truth = weight / (weight + self.size - self.width)
        both = truth * Fraction(self.width - 1, self.size - 1)
        return Support(truth, both + (1 - truth) * Fraction(self.width, self.size - 1), both)

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(math.comb(self.size, self.width))
        truth = self.support.truth
        held = truth / math.comb(self.size - 1, self.width - 1)
        free = (1 - truth) / math.comb(self.size - 1, self.width)
        sets = list(itertools.combinations(range(self.size), self.width))
        return {x: {s: held if x in s else free for s in sets} for x in range(self.size)}

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        if self.listed:
            return np.asarray(within(reports, self.size).all(axis=1) & (np.diff(reports, axis=1) > 0).all(axis=1))
        ones = np.bitwise_count(reports.astype(np.uint8)).sum(axis=1, dtype=np.int64)
        return np.asarray(super().is_valid(reports) & (ones == self.width))

    def valid(self, reports: Data) -> Reports:
        return FrequencyOracle.valid(self, reports) if self.listed else super().valid(reports)

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(reports.ravel(), minlength=self.size) if self.listed else super().supported(reports)

    def _randomize(self, places: Places) -> Reports:
        return self._lists(places) if self.listed else super()._randomize(places)

    def _lists(self, places: Places) -> Reports:
        truthful = ~samplers.bernoulli(1 - self.support.truth, len(places))
        others = np.empty((len(places), self.width), dtype=np.int64)
        left = np.arange(len(places))
        while len(left):  # rows with a repeated position are drawn again, whatever the value
            drawn = samplers.uniform_below(self.size - 1, len(left) * self.width).reshape(-1, self.width)
            # each column is shifted by its index: still uniform, and a fixed draw has no repeated position
            others[left] = np.sort((drawn + np.arange(self.width)) % (self.size - 1), axis=1)
            left = left[(np.diff(others[left], axis=1) == 0).any(axis=1)]
        others += others >= places[:, None]
        # the true value replaces a random element of the set
        room = samplers.uniform_below(self.width, len(places))
        rows = np.flatnonzero(truthful)
        others[rows, room[rows]] = places[rows]
        return np.sort(others, axis=1)

    def _sets(self, places: Places) -> NDArray[np.bool_]:
        truthful = ~samplers.bernoulli(1 - self.support.truth, len(places))
        drawn = self._few_others(places, truthful) if self.width <= _FEW else self._many_others(places, truthful)
        drawn[np.arange(len(places)), places] = truthful
        return drawn

    def _few_others(self, places: Places, truthful: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """`width` of the other values, or one less if the true one is reported: the start of a random order."""
        rows = np.arange(len(places))
        drawn = np.zeros((len(places), self.size), dtype=bool)
        order = np.tile(np.arange(self.size - 1, dtype=np.int32), (len(places), 1))
        for i in range(self.width):
            j = i + samplers.uniform_below(self.size - 1 - i, len(places))
            picked = order[rows, j]
            order[rows, j] = order[:, i]
            used = rows if i < self.width - 1 else np.flatnonzero(~truthful)
            drawn[used, picked[used] + (picked[used] >= places[used])] = True
        return drawn

    def _many_others(self, places: Places, truthful: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The same with a coin for each value, then random additions or removals: all sets of the right size are
        equally likely.
        """
        count, k = len(places), self.size
        drawn = coins(Fraction(self.width, k), count * k).reshape(count, k)
        drawn[np.arange(count), places] = False
        excess = drawn.sum(axis=1) - (self.width - truthful)
        left, turn = np.flatnonzero(excess), 0
        while len(left):
            item = (samplers.uniform_below(k, len(left)) + turn) % k  # uniform as well; a draw that is fixed moves on
            removes = excess[left] > 0
            fits = (item != places[left]) & (drawn[left, item] == removes)
            drawn[left[fits], item[fits]] = ~removes[fits]
            excess[left[fits]] -= np.where(removes[fits], 1, -1)
            left, turn = left[excess[left] != 0], turn + 1
        return drawn


@dataclass(frozen=True, kw_only=True)
class UnaryResponse(_PackedBits):
    """Reports one bit for each value: the true one's is 1 with probability 1/2, any other's with 1/(odds+1).

    Promise: (ln odds)-DP: only two bits differ between two values, and their odds multiply to `odds`.
    Error: variance near 4·odds/(odds−1)² a report, whatever the number of values.
    Source: Wang-Blocki-Li-Jha 2017 ("optimized unary encoding").
    """

    method: ClassVar[str] = "unary"

    @cached_property
    def support(self) -> Support:
        lie = 1 / (exactly(self.odds) + 1)
        return Support(Fraction(1, 2), lie, lie / 2)

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(2**self.size)
        lie = self.support.lie
        every = list(itertools.product((0, 1), repeat=self.size))

        def law(x: int) -> dict[Hashable, Fraction]:
            ones = (sum(bits) - bits[x] for bits in every)
            return {
                bits: Fraction(1, 2) * lie**n * (1 - lie) ** (self.size - 1 - n)
                for bits, n in zip(every, ones, strict=True)
            }

        return {x: law(x) for x in range(self.size)}

    def _sets(self, places: Places) -> NDArray[np.bool_]:
        count = len(places)
        drawn = coins(self.support.lie, count * self.size).reshape(count, self.size)
        drawn[np.arange(count), places] = ~samplers.bernoulli(Fraction(1, 2), count)
        return drawn
