"""Reports of a part of a value: a prefix of it, or the cell of one of many public hash functions."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import check_count
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.reports.frequency_oracle import FrequencyOracle
from discreet.mechanisms.reports.local_hashing import LIMB, MERSENNE, OPEN, LocalHashing, modulo
from discreet.mechanisms.reports.local_records import inside, places_below
from discreet.mechanisms.reports.local_reports import Places, Reports, whole_numbers, within
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True)
class PrefixResponse:
    """Draws one of `lengths`, and reports by `oracle` the prefix of that length of a value of `length` digits in
    `base`.

    Promise: that of the oracle: a device is in one group only, and which one does not depend on the value.
    Error: of the oracle, for the reports of one group.
    Source: Wang-Li-Jha 2019 (prefix extension); [T.4.7].
    """

    oracle: LocalHashing
    base: int
    length: int
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        check_count(self.base, "base", at_least=2)
        lengths = tuple(self.lengths)
        if (
            not lengths
            or lengths[-1] != self.length
            or any(a >= b for a, b in zip((0, *lengths), lengths, strict=False))
        ):
            raise InvalidArgument("lengths must grow and end with the whole length.", code="not-increasing")
        if self.base**self.length > self.oracle.size:
            raise InvalidArgument(
                "There are too many values for this oracle. Use a larger oracle, or shorter values.", code="too-large"
            )

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.oracle.guarantee()

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact law of the report for each value, for `dp.verify`; small domains only."""
        found, groups = self.oracle.laws(), len(self.lengths)
        return {
            x: {
                (g, report): p / groups
                for g, n in enumerate(self.lengths)
                for report, p in found[x // self.base ** (self.length - n)].items()
            }
            for x in range(self.base**self.length)
        }

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """The error of the counts in one group of this many reports."""
        return self.oracle.error(confidence, records=records)

    def valid(self, reports: Data) -> tuple[NDArray[np.int64], Reports]:
        """The groups and the reports of those that can have been made."""
        return _split(reports, len(self.lengths), self.oracle)

    def _draw(self, value: Any) -> Reports:
        size = self.base**self.length
        places = inside(places_below(value, size), size)
        group = samplers.uniform_below(len(self.lengths), len(places))
        cut = np.array([self.base ** (self.length - n) for n in self.lengths])[group]
        return np.column_stack([group, self.oracle._randomize(places // cut)])


@dataclass(frozen=True, kw_only=True)
class SketchResponse:
    """Draws one of `hashes` public functions, and reports by `oracle` the cell of a 60-bit value.

    The functions follow from the public `seed`, the same on every device.

    Promise: that of the oracle: which function is drawn does not depend on the value.
    Error: of the oracle, and what values that share cells add: less with more functions and more cells.
    Source: Apple 2017 (count mean sketch), with any oracle for the cell.
    """

    oracle: FrequencyOracle
    hashes: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.hashes, "hashes")
        check_count(self.seed, "seed", at_least=0)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.oracle.guarantee()

    def error(self, confidence: float, *, records: int = 1) -> Accuracy:
        """The error of the cells, without collisions."""
        return self.oracle.error(confidence, records=records)

    @cached_property
    def _functions(self) -> NDArray[np.uint64]:
        """Three numbers below 2^31 − 1 for each function, from 16 bytes of a public hash: uniform to 1 in 2^97."""
        found = []
        for place in range(3 * self.hashes):
            name = f"{self.seed}/{place}".encode()
            digest = hashlib.blake2b(name, digest_size=16, person=b"discreet sketch").digest()
            found.append(int.from_bytes(digest, "big") % MERSENNE)
        return np.array(found, dtype=np.uint64).reshape(3, self.hashes)

    @property
    def collide(self) -> Fraction:
        """The probability, over public seeds, that a function gives two values the same cell."""
        width = self.oracle.size
        starts = [-(-cell * MERSENNE // width) for cell in range(width + 1)]
        return Fraction(sum((b - a) ** 2 for a, b in itertools.pairwise(starts)), MERSENNE**2)

    def cells(self, functions: Places, values: Places) -> Places:
        """The cell that each function gives each value; the two are broadcast."""
        a, b, c = self._functions[:, functions]
        whole = np.asarray(values).astype(np.uint64)
        residue = a * (whole >> np.uint64(LIMB)) + b * (whole & np.uint64(2**LIMB - 1)) + c
        return modulo(residue, MERSENNE).astype(np.int64) * self.oracle.size // MERSENNE

    def valid(self, reports: Data) -> tuple[NDArray[np.int64], Reports]:
        """The functions and the reports of those that can have been made."""
        return _split(reports, self.hashes, self.oracle)

    def _draw(self, value: Any) -> Reports:
        places = inside(places_below(value, OPEN), OPEN)
        function = samplers.uniform_below(self.hashes, len(places))
        reports = self.oracle._randomize(self.cells(function, places))
        return np.column_stack([function, reports]).astype(np.int64)


def _split(reports: Any, groups: int, oracle: FrequencyOracle) -> tuple[NDArray[np.int64], Reports]:
    """The group of each report and the oracle's part of it, for reports that can have been made."""
    listed = whole_numbers(reports, 1 + (oracle.columns or 1))
    rest = listed[:, 1:] if oracle.columns else listed[:, 1]
    kept = within(listed[:, 0], groups) & oracle.is_valid(rest)
    return listed[kept, 0].astype(np.int64), oracle.valid(rest[kept])
