"""The mean of a number that each device randomizes before it reports it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.door import in_test_mode
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.influence import Influence
from discreet.ledger import Ledger
from discreet.local.devices import Device, check_ledger, promise
from discreet.local.estimates import Measured, check_fakes, check_reports, check_some
from discreet.mechanisms.protocol import TAUGHT, TIGHT
from discreet.mechanisms.reports.local_mean import HybridResponse, LaplaceResponse, WindowResponse
from discreet.mechanisms.reports.local_records import Places, one_column, steps_between
from discreet.mechanisms.reports.local_reports import largest_odds
from discreet.queries.space import Interval
from discreet.rows.containers import Data

_FARTHEST = 60
"""Scales of Laplace noise: none reaches further, so no report does."""
METHODS = ("hybrid", "piecewise", "duchi", "laplace", "taught")


def mean(
    *,
    between: tuple[Number, Number],
    epsilon: Number,
    delta: Number = 0,
    method: str = "hybrid",
    ledger: Ledger | None = None,
) -> MeanSurvey:
    """A survey for the mean of one number from each device.

    `between` is the public range. A number outside it is moved to the nearer end. For anything that is not a number,
    `encode_many` reports the middle of the range, and `encode` raises an error. `method` is
    'hybrid' (the least error), 'piecewise', 'duchi' (one bit), 'laplace' (noise of the least scale that keeps (ε,δ)),
    or 'taught' (the documents' larger scale [T.4.9]).
    """
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidArgument("between must be a public range, such as between=(0, 120).", code="wrong-type")
    space = Interval(*between)
    check_width(space)
    stated = promise(epsilon, delta)
    check_ledger(ledger)
    match method:
        case "hybrid":
            mechanism: Any = HybridResponse.for_guarantee(stated)
        case "piecewise":
            mechanism = WindowResponse.for_guarantee(stated)
        case "duchi":
            mechanism = largest_odds(stated, lambda odds: WindowResponse(odds=odds))
        case "laplace" | "taught":
            kind = TIGHT if method == "laplace" else TAUGHT
            mechanism = LaplaceResponse.for_guarantee(stated, space=space, calibration=kind)
        case _:
            raise InvalidArgument(f"method must be one of {', '.join(METHODS)}.", code="not-an-option")
    return MeanSurvey(space=space, mechanism=mechanism, stated=stated, method=method, ledger=ledger)


@dataclass(frozen=True, kw_only=True)
class MeanSurvey(Device):
    """Both sides of a mean: `encode` on the device, `analyze` at the collector."""

    space: Interval
    method: str

    @property
    def _half(self) -> float:
        return float(self.space.diameter) / 2

    @property
    def stddev(self) -> float:
        """The largest standard deviation of one report."""
        if isinstance(self.mechanism, LaplaceResponse):
            return math.sqrt(2) * self.mechanism.scale
        return self._half * math.sqrt(self.mechanism.variance)

    def __str__(self) -> str:
        low, high = self.space.low, self.space.high
        return (
            f"The mean of a number between {low} and {high}, reported by the {self.method} method: {self.guarantee} "
            f"for each report, whoever collects it; off by about {self.stddev / 100:.2g} with 10,000 reports"
        )

    def error(self, confidence: float = 0.95, *, users: int) -> Accuracy:
        """How far the mean of this many reports will be off at most. It can be called before the survey."""
        if isinstance(self.mechanism, LaplaceResponse):
            return self.mechanism.error(confidence, records=users)
        error = self.mechanism.error(confidence, records=users)
        return Accuracy(amount=self._half * (float(error) + 1 / self.mechanism.grid), confidence=error.confidence)

    def influence(self, fakes: int, *, users: int) -> Influence:
        """What `fakes` of the users can do at most to the unbiased mean if they report whatever they like.

        The worst is that all others report one end of what a report can say, and the fakes the other.
        """
        check_fakes(fakes, users)
        if isinstance(self.mechanism, LaplaceResponse):
            apart = 2 * self._half + 2 * _FARTHEST * self.mechanism.scale
        else:  # a fake may also use the part of a hybrid that nobody draws from
            parts = (self.mechanism.wide, self.mechanism.coin) if self.method == "hybrid" else (self.mechanism,)
            apart = 2 * self._half * max(part.reach for part in parts)
        most = apart * fakes / users
        return Influence(
            fakes=fakes,
            reports=users,
            of="the mean",
            up=most,
            down=most,
            left=self.guarantee,
            remark="The mean that is shown stays within its range.",
        )

    # --- on the device ---------------------------------------------------------------------------------------

    @property
    def asked(self) -> str:
        """A number, its range, and the method."""
        return f"a number between {self.space.low} and {self.space.high}, {self.method}"

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        return f"a number between {self.space.low} and {self.space.high}"

    def places(self, values: Data) -> Places:
        """The numbers as integer positions in the range, from 0 to the mechanism's grid. −1 for a value that is not a
        number.
        """
        return steps_between(values, *self.space.ends, self.mechanism.grid)

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data) -> Measured:
        """The mean of all reports, with an error bar. A value that is not a report of this survey is left out."""
        given = check_reports(reports)
        if isinstance(self.mechanism, LaplaceResponse):
            listed, (low, high) = _numbers(reports), (float(end) for end in self.space.ends)
            far = _FARTHEST * self.mechanism.scale
            numbers = valid = listed[(listed >= low - far) & (listed <= high + far)]
        else:
            valid = self.mechanism.valid(reports)
            numbers = float(self.space.center) + self._half * self.mechanism.numbers(valid)
        total = check_some(valid)
        raw = float(numbers.mean())
        return Measured(
            value=min(max(raw, float(self.space.ends[0])), float(self.space.ends[1])),
            raw=raw,
            guarantee=self.guarantee,
            not_private=in_test_mode(),
            stddev=self.stddev / math.sqrt(total),
            reports=total,
            rejected=given - total,
            method=self.method,
            _error=lambda confidence: self.error(confidence, users=total),
        )


def check_width(space: Interval) -> None:
    """Raise unless the width of a range is a double."""
    if not Fraction(1, 10**300) <= space.diameter <= 10**300:
        raise InvalidArgument(
            "The range must be between 1e-300 and 1e300 wide. Choose another unit.", code="out-of-range"
        )


def _numbers(reports: Any) -> Any:
    """The number in each report. NaN for a value that is not a report."""
    listed = one_column(reports)
    if isinstance(listed, np.ndarray):
        return listed.astype(np.float64)
    return np.array([_number(one) for one in listed], dtype=np.float64)


def _number(report: Any) -> float:
    try:
        plain = isinstance(report, int | float | np.number) and not isinstance(report, bool | np.complexfloating)
        return float(report) if plain else math.nan
    except Exception:
        return math.nan
