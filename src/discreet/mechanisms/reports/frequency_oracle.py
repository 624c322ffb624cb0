"""Frequency oracles: how one value is reported with deniability, and how counts are estimated from many reports.

A report SUPPORTS some of the possible values. It supports the true one with probability `truth`, any other with
probability `lie`, and counts follow from how many reports support each. All that an oracle is lies in its supports:
privacy (`odds`), error and the way reports are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.reports.local_records import inside, one_column, places_below
from discreet.mechanisms.reports.local_reports import (
    LARGEST_ODDS,
    Places,
    Reports,
    largest_odds,
    mean_interval,
    report_loss,
    whole_numbers,
    within,
)
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows import none_of
from discreet.rows.containers import Data

_WIDEST_LAW = 4096  # the largest number of reports to enumerate: more would take too long


class Support(NamedTuple):
    """The probability that a report supports the true value, one other value, and both of these at once."""

    truth: Fraction
    lie: Fraction
    both: Fraction


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle:
    """What all oracles share. No report is more than `odds` times more likely for one of `size` values than for
    another.

    Promise: (ln odds)-DP for a replaced value, against the collector; exact, with its whole loss distribution.
    Error: an unbiased count has variance (h·t(1−t) + (n−h)·l(1−l))/(t−l)², h holders among n reports, t and l the
    probabilities of support.
    Source: Wang-Blocki-Li-Jha 2017 for supports; [T.4.7] for many users; [T.4.10] for reports of one value.
    """

    size: int
    odds: Number
    method: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_count(self.size, "size", at_least=2)
        if not 1 < exactly(self.odds, "odds") <= LARGEST_ODDS:
            raise InvalidArgument("odds must be above 1 and at most 1e18.", code="out-of-range")

    # --- privacy ---------------------------------------------------------------------------------------------

    @cached_property
    def support(self) -> Support:
        """The exact probabilities of support."""
        raise NotImplementedError

    @property
    def apart(self) -> Fraction:
        """How likely a report is that supports one given value other than the true one, and not the true one."""
        return self.support.lie - self.support.both

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact distribution of the report for each value, for `dp.verify`. Small domains only."""
        raise NotImplementedError

    def _check_enumerable(self, reports: int) -> None:
        if reports > _WIDEST_LAW:
            raise InvalidArgument(
                f"There are {reports} possible reports, too many to list. Verify a smaller domain.", code="too-large"
            )

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The exact loss of one report. `sensitivity` is not used: any two values are neighbors."""
        return report_loss((self.odds, self.apart))

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, size: int, sensitivity: SensitivityLike = None) -> Self:
        """The oracle of this kind with the least error that keeps (ε,δ)."""
        return largest_odds(guarantee, lambda odds: cls(size=size, odds=odds))

    # --- error -----------------------------------------------------------------------------------------------

    @cached_property
    def gap(self) -> float:
        """How much more likely a report supports the true value than another."""
        return float(self.support.truth - self.support.lie)

    @cached_property
    def variance(self) -> float:
        """The variance of a count per report, averaged over all values. It does not depend on the data."""
        truth, lie, _ = self.support
        spread = truth * (1 - truth) + (self.size - 1) * lie * (1 - lie)
        return float(spread / (self.size * (truth - lie) ** 2))

    @property
    def report_bits(self) -> int:
        """The length of a report."""
        raise NotImplementedError

    def error(self, confidence: float, *, records: int = 1, values: int | None = None) -> Accuracy:
        """How far unbiased counts from this many reports may be off, for all values at once and for any data.

        Bernstein's bound or Hoeffding's, whichever is less; both hold for any number of reports.
        """
        sure = check_confidence(confidence)
        count, truth, lie = check_count(records, "records"), float(self.support.truth), float(self.support.lie)
        log = math.log(2 * (self.size if values is None else values) / (1 - sure))
        spread = max(truth * (1 - truth), lie * (1 - lie))
        amount = min(bernstein(count * spread, 1, log), math.sqrt(count * log / 2)) / self.gap
        return Accuracy(amount=amount, confidence=sure, of="every value")

    def counts(self, supported: NDArray[Any], reports: int) -> NDArray[np.float64]:
        """Unbiased counts of the values, from the number of reports and how many of them support each value."""
        return np.asarray((supported - reports * float(self.support.lie)) / self.gap, dtype=np.float64)

    def intervals(self, supported: NDArray[Any], reports: int, confidence: float) -> NDArray[np.float64]:
        """For each value an interval for its count. All hold at once with this confidence.

        Reports are independent, so Hoeffding's bound on their mean holds with its relative entropy, which is inverted.
        """
        sure = check_confidence(confidence)
        ends = mean_interval(supported / reports, math.log(2 * len(supported) / (1 - sure)) / reports)
        return np.clip((ends - float(self.support.lie)) * (reports / self.gap), 0.0, reports)

    # --- reports ---------------------------------------------------------------------------------------------

    @property
    def columns(self) -> int | None:
        """How many numbers a report has. None if it is one plain number."""
        return None

    @property
    def most_supported(self) -> int:
        """How many values one valid report supports at most. Somebody may report what nobody draws."""
        return self.size

    def as_reports(self, reports: Data) -> Reports:
        """Reports as an array of the shape that this oracle makes. Raises if they have another shape."""
        return whole_numbers(reports, self.columns)

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        """Whether this oracle can have made each report. Each is checked independently."""
        raise NotImplementedError

    def valid(self, reports: Data) -> Reports:
        """The reports that this oracle can have made. All others are left out."""
        listed = self.as_reports(reports)
        return listed[self.is_valid(listed)]

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        """How many of the valid reports support each value."""
        raise NotImplementedError

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        one_column(none_of(value))

    def _draw(self, value: Any) -> Reports:
        """The reports of indices 0 … size−1. A record outside is reported as a uniform one."""
        return self._randomize(inside(places_below(value, self.size), self.size))

    def _randomize(self, places: Places) -> Reports:
        """The reports of indices that are all inside."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class DirectResponse(FrequencyOracle):
    """Reports the value itself, or with probability (size−1)/(size−1+odds) one of the others: k-ary randomized
    response.

    Promise: (ln odds)-DP; (ε,δ) iff odds ≤ (e^ε + δ·(size−1))/(1−δ).
    Error: the least of all oracles when size ≤ 1.5·odds or so; grows with size.
    Source: [T.4.10]; drawn by `RandomizedResponse`.
    """

    method: ClassVar[str] = "direct"

    @cached_property
    def response(self) -> RandomizedResponse:
        """The same mechanism over the places 0 … size−1."""
        return RandomizedResponse(choices=range(self.size), lie=tidy(1 / (self.size - 1 + exactly(self.odds))))

    @cached_property
    def support(self) -> Support:
        lie = 1 / (self.size - 1 + exactly(self.odds))
        return Support(exactly(self.odds) * lie, lie, Fraction(0))

    @property
    def report_bits(self) -> int:
        return (self.size - 1).bit_length()

    @property
    def most_supported(self) -> int:
        return 1

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        self._check_enumerable(self.size)
        return self.response.laws()

    def is_valid(self, reports: Reports) -> NDArray[np.bool_]:
        return within(reports, self.size)

    def supported(self, reports: Reports) -> NDArray[np.int64]:
        return np.bincount(reports, minlength=self.size)

    def _randomize(self, places: Places) -> Reports:
        return self.response._report(places)
