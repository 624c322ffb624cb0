"""The hypergeometric law: how many of the marked things are among those taken without replacement.

Floats propose here and exact ratios decide, as in `samplers`: every float comes with a bound on its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MOST = 2**31
"""More things would overflow products of two counts."""
_ROUNDING = 1e-14
_SPREAD = 1.25
_LISTED = 2**21


class Hypergeometric:
    """One law for each place of three arrays: `marked` and `others` are there, and `taken` of both are drawn.

    `least`, `most` and `mode` are the smallest, the largest and the most probable number. `slack` is how far
    `log_ratio` may be from the true value: the rounding of eight logarithms of factorials.
    """

    def __init__(self, marked: Ints, others: Ints, taken: Ints) -> None:
        there = marked + others
        if min(marked.min(initial=0), others.min(initial=0), taken.min(initial=0)) < 0 or (taken > there).any():
            raise InvalidArgument("As many things are taken as are there, at most.", code="out-of-range")
        if (there >= MOST).any():
            raise InvalidArgument(f"Fewer than {MOST:,} rows can be permuted.", code="too-large")
        self.marked, self.others, self.taken = marked, others, taken
        self.least, self.most = np.maximum(0, taken - others), np.minimum(marked, taken)
        self.mode = (marked + 1) * (taken + 1) // (there + 2)
        size = there + 2.0
        self.slack = _ROUNDING * size * np.log(size)
        self._log_factorial = _log_factorials(int(there.max(initial=0)))
        self._at_mode = self._log_ways(slice(None), self.mode)

    def log_ratio(self, numbers: Ints, at: Any = slice(None)) -> Floats:
        """The logarithm of the probability of each number over that of the mode. −∞ for an impossible number. With
        `at`, of the laws at these places.
        """
        least, most = self.least[at], self.most[at]
        found: Floats = self._log_ways(at, np.clip(numbers, least, most)) - self._at_mode[at]
        found[(numbers < least) | (numbers > most)] = -np.inf
        return found

    def _log_ways(self, at: Any, k: Ints) -> Floats:
        taken, log = self.taken[at], self._log_factorial
        return np.asarray(-(log(k) + log(self.marked[at] - k) + log(taken - k) + log(self.others[at] - taken + k)))

    def widths(self) -> Ints:
        """A distance from the mode at which a number is surely at most half as probable as the mode.

        The law is log-concave, so at j times this distance it is at most 2^−j times as probable.
        """
        there = np.maximum(self.marked + self.others, 2).astype(np.float64)
        share = self.marked / there
        variance = self.taken * share * (1 - share) * (there - self.taken) / (there - 1)
        widths: Ints = np.ceil(_SPREAD * np.sqrt(variance)).astype(np.int64) + 1
        half = -math.log(2) - self.slack - 1e-9
        near = np.arange(len(widths))
        while len(near):
            mode, wide = self.mode[near], widths[near]
            far = np.maximum(self.log_ratio(mode + wide, near), self.log_ratio(mode - wide, near)) < half[near]
            near = near[~far]
            widths[near] += widths[near] // 4 + 1
        return widths

    def exact_ratio(self, place: int, number: int) -> Fraction:
        """The probability of a number over that of the mode, exactly."""
        marked, others, taken, mode = (int(part[place]) for part in (self.marked, self.others, self.taken, self.mode))
        steps = range(min(number, mode), max(number, mode))
        up = math.prod((marked - k) * (taken - k) for k in steps)
        down = math.prod((k + 1) * (others - taken + k + 1) for k in steps)
        return Fraction(up, down) if number >= mode else Fraction(down, up)


def _log_factorials(largest: int) -> Callable[[Ints], Floats]:
    """The logarithm of k! for numbers up to `largest`, looked up if there are not too many."""
    from scipy.special import gammaln

    if largest > _LISTED:
        return lambda k: gammaln(k + 1.0)
    return gammaln(np.arange(1.0, largest + 2.0)).__getitem__
