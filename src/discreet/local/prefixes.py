"""The most frequent values of a domain too large to list: frequent prefixes first, then longer ones that extend
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.door import in_test_mode
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.ledger import Ledger
from discreet.local.devices import Device, check_ledger, promise
from discreet.local.estimates import Counted, check_reports, check_some
from discreet.local.surveys import deviations
from discreet.mechanisms.reports.local_hashing import OPEN, LocalHashing
from discreet.mechanisms.reports.local_records import FOREIGN, one_column, places_below
from discreet.mechanisms.reports.local_reports import Places, mean_interval
from discreet.mechanisms.reports.prefix_response import PrefixResponse
from discreet.rows import text_of
from discreet.rows.containers import Data

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LOOKED_AT, _MOST_LOOKED_AT = 2**12, 2**20
"""About how many prefixes are counted at each length, and how many at most."""


def heavy_hitters(
    *,
    bits: int | None = None,
    length: int | None = None,
    alphabet: str = LETTERS,
    epsilon: Number,
    delta: Number = 0,
    top: int = 10,
    groups: int | None = None,
    ledger: Ledger | None = None,
) -> HeavyHitters:
    """A search for the `top` most frequent numbers with `bits` bits, or texts of up to `length` letters of `alphabet`.

    Each device is in one of `groups` groups, reports a prefix of that group's length, and is never asked again.
    """
    if (bits is None) == (length is None):
        raise InvalidArgument(
            "heavy_hitters needs either bits= for whole numbers, or length= for text.", code="survey-domain"
        )
    if len(set(alphabet)) != len(alphabet) or not alphabet:
        raise InvalidArgument("alphabet must be at least one letter, all different.", code="duplicates")
    base = 2 if length is None else len(alphabet) + 1
    digits = check_count(bits if length is None else length, "bits" if length is None else "length")
    if base**digits > OPEN:
        raise InvalidArgument(
            f"At most {int(math.log(OPEN, base))} digits in base {base} fit in 60 bits. Choose fewer.", code="too-large"
        )
    wanted = check_count(top, "top")
    stated = promise(epsilon, delta)
    check_ledger(ledger)
    oracle = LocalHashing.for_guarantee(stated, size=max(base**digits, 3))
    lengths = _lengths(base, digits, 2 * wanted, groups)
    steps = [2 * wanted * base ** (b - a) for a, b in itertools.pairwise(lengths)]
    if max([base ** lengths[0], *steps]) > _MOST_LOOKED_AT:
        raise InvalidArgument(
            "With so few groups, too many prefixes would have to be compared. "
            "Choose more groups, or leave out groups=.",
            code="too-large",
        )
    mechanism = PrefixResponse(oracle=oracle, base=base, length=digits, lengths=lengths)
    letters = None if length is None else alphabet
    return HeavyHitters(mechanism=mechanism, stated=stated, top=wanted, alphabet=letters, ledger=ledger)


def _lengths(base: int, digits: int, kept: int, groups: int | None) -> tuple[int, ...]:
    if groups is not None:
        count = min(check_count(groups, "groups"), digits)
        return tuple(sorted({round(digits * (i + 1) / count) for i in range(count)}))
    first = max(1, int(math.log(_LOOKED_AT, base)))
    step = max(1, int(math.log(max(_LOOKED_AT / kept, base), base)))
    return tuple(sorted({*range(min(first, digits), digits, step), digits}))


@dataclass(frozen=True, kw_only=True)
class HeavyHitters(Device):
    """Both sides of the search: `encode` on the device, `analyze` at the collector."""

    mechanism: PrefixResponse
    top: int
    alphabet: str | None = None

    def __str__(self) -> str:
        of = f"numbers of {self.mechanism.length} bits" if self.alphabet is None else "texts"
        groups = len(self.mechanism.lengths)
        return f"The {self.top} most frequent {of}, found from {groups} groups: {self.guarantee} for each report"

    # --- on the device ---------------------------------------------------------------------------------------

    @property
    def asked(self) -> str:
        """Prefixes, and the number of values."""
        return f"prefixes, for the {self.top} most frequent values"

    def places(self, values: Data) -> Places:
        """Numbers as they are, and text cut before the first letter outside the alphabet. −1 for anything else."""
        base, length = self.mechanism.base, self.mechanism.length
        if self.alphabet is None:
            return places_below(values, base**length)
        places = {letter: place + 1 for place, letter in enumerate(self.alphabet)}

        def code(text: Any) -> int:
            if (plain := text_of(text)) is None:
                return FOREIGN
            number, letters = 0, iter(plain[:length])
            ended = False
            for _ in range(length):
                digit = 0 if ended else places.get(next(letters, ""), 0)
                ended = ended or not digit
                number = number * base + digit
            return number

        listed = one_column(values)
        return np.fromiter(map(code, listed), np.int64, len(listed))

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        return "text" if self.alphabet is not None else f"whole numbers of up to {self.mechanism.length} bits"

    def _named(self, code: int) -> Any:
        if self.alphabet is None:
            return code
        letters = []
        for place in range(self.mechanism.length):
            digit = code // self.mechanism.base ** (self.mechanism.length - 1 - place) % self.mechanism.base
            letters.append("" if not digit else self.alphabet[digit - 1])
        return "".join(letters)

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data) -> Counted:
        """The most frequent values with their counts among all who reported.

        The intervals hold for all of them at once, including the random assignment to the last group.
        """
        given, m = check_reports(reports), self.mechanism
        groups, parts = m.valid(reports)
        total = check_some(groups)
        found = np.arange(m.base ** m.lengths[0])
        for level, length in enumerate(m.lengths):
            mine = parts[groups == level]
            if not len(mine):
                raise InvalidArgument(
                    "One of the groups has no reports. Collect more, or choose fewer groups.", code="too-few-reports"
                )
            supported = m.oracle.supported_among(mine, found)
            if length == m.length:
                break
            best = found[np.argsort(-supported, kind="stable")[: 2 * self.top]]
            step = m.base ** (m.lengths[level + 1] - length)
            found = (best[:, None] * step + np.arange(step)).ravel()
        shown = np.argsort(-supported, kind="stable")[: self.top]
        return self._counted(found[shown], supported[shown], len(mine), total, given, looked_at=len(found))

    def _counted(
        self, codes: Places, supported: NDArray[np.int64], mine: int, total: int, given: int, *, looked_at: int
    ) -> Counted:
        oracle = self.mechanism.oracle
        raw = oracle.counts(supported, mine) * (total / mine)
        names: Sequence[Any] = [self._named(int(code)) for code in codes]

        def intervals(confidence: float) -> NDArray[np.float64]:
            half = (1 - confidence) / 2
            # all that were looked at count, not only the winners; then what the last group's share says of all shares
            each = 1 - half * len(codes) / looked_at
            shares = oracle.intervals(supported, mine, each) / mine
            most = math.log(2 * total / half) / mine
            low, high = mean_interval(shares[:, 0], most)[:, 0], mean_interval(shares[:, 1], most)[:, 1]
            return np.stack([low, high], axis=1) * total

        return Counted(
            value=dict(zip(names, np.clip(raw, 0, total).tolist(), strict=True)),
            raw=dict(zip(names, raw.tolist(), strict=True)),
            guarantee=self.guarantee,
            not_private=in_test_mode(),
            reports=total,
            rejected=given - total,
            method="prefix",
            simplex=False,
            _intervals=intervals,
            _deviations=deviations(oracle, raw * mine / total, mine) * (total / mine),
        )
