"""The mean of a number that no device tells as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import samplers
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy
from discreet.ledger import Ledger
from discreet.local.devices import Device, check_ledger, promise
from discreet.local.estimates import Measured, check_reports, check_some
from discreet.mechanisms.combine import Each
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.local_mean import HybridResponse, WindowResponse, laplace_mean_error
from discreet.mechanisms.local_reports import fitted
from discreet.mechanisms.mechanism import TAUGHT, TIGHT
from discreet.queries.arrays import number_of
from discreet.queries.space import Interval
from discreet.rational import Number

METHODS = ("hybrid", "piecewise", "duchi", "laplace", "taught")


def mean(
    *,
    between: tuple[Number, Number],
    epsilon: Number,
    delta: Number = 0,
    method: str = "hybrid",
    ledger: Ledger | None = None,
) -> MeanSurvey:
    """A survey of one number from each device, whose mean is wanted.

    `between` is the public range; a number outside is moved to its nearer end, and NaN to its middle. `method` is
    'hybrid' (the least error), 'piecewise', 'duchi' (one bit), 'laplace' (noise of the least scale that keeps (ε,δ)),
    or 'taught' (the documents' larger scale [T.4.9]).
    """
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidArgument("between must be the public range, such as between=(0, 120).")
    space = Interval(*between)
    stated = promise(epsilon, delta)
    check_ledger(ledger)
    match method:
        case "hybrid":
            mechanism: Any = HybridResponse.for_guarantee(stated)
        case "piecewise":
            mechanism = WindowResponse.for_guarantee(stated)
        case "duchi":
            mechanism = fitted(stated, lambda odds: WindowResponse(odds=odds))
        case "laplace" | "taught":
            mechanism = Each.for_guarantee(stated, spaces=space, calibration=TIGHT if method == "laplace" else TAUGHT)
        case _:
            raise InvalidArgument(f"method must be one of {', '.join(METHODS)}.")
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
        if isinstance(self.mechanism, Each):
            return math.sqrt(2) * self._noise_scale
        return self._half * math.sqrt(self.mechanism.variance)

    @property
    def _noise_scale(self) -> float:
        noise: Laplace = self.mechanism.mechanisms[0]
        return float(noise.scale)

    def __str__(self) -> str:
        low, high = self.space.low, self.space.high
        return (
            f"The mean of a number between {low} and {high}, told by the {self.method} method: {self.guarantee} for "
            f"each report, whoever collects it; off by about {self.stddev / 100:.2g} with 10,000 reports"
        )

    def error(self, confidence: float = 0.95, *, users: int) -> Accuracy:
        """How far the mean of so many will be off at most, before anything is asked."""
        if isinstance(self.mechanism, Each):
            noise = laplace_mean_error(self._noise_scale, confidence, users)
            rounding = float(self.mechanism.mechanisms[0].step) / 2
            return Accuracy(amount=float(noise) + rounding, confidence=noise.confidence)
        told = self.mechanism.error(confidence, records=users)
        return Accuracy(amount=self._half * (float(told) + 1 / self.mechanism.grid), confidence=told.confidence)

    # --- on the device ---------------------------------------------------------------------------------------

    @property
    def asked(self) -> str:
        """A number, in which range, and how."""
        return f"a number between {self.space.low} and {self.space.high}, {self.method}"

    def places(self, values: Any) -> Any:
        """The numbers as the mechanism takes them: inside the range, and on its grid where it has one."""
        inside = np.asarray(self.space.clamp(_numbers(values)), dtype=np.float64)
        if isinstance(self.mechanism, Each):
            return inside
        grid = self.mechanism.grid
        share = (inside - float(self.space.ends[0])) / float(self.space.diameter)
        return np.clip(np.rint(share * grid), 0, grid).astype(np.int64)

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Any) -> Measured:
        """The mean of all who reported, with an error bar; what is no report of this survey is left out."""
        given = check_reports(reports)
        if isinstance(self.mechanism, Each):
            valid = _finite(reports)
            far = float(max(abs(end) for end in self.space.ends)) + 60 * self._noise_scale  # beyond is nobody's noise
            valid = valid[np.abs(valid) <= far]
            told = valid
        else:
            valid = self.mechanism.valid(reports)
            told = float(self.space.center) + self._half * self.mechanism.numbers(valid)
        total = check_some(valid)
        raw = float(told.mean())
        return Measured(
            value=min(max(raw, float(self.space.ends[0])), float(self.space.ends[1])),
            raw=raw,
            guarantee=self.guarantee,
            not_private=not samplers.is_private(),
            stddev=self.stddev / math.sqrt(total),
            reports=total,
            rejected=given - total,
            method=self.method,
            _error=lambda confidence: self.error(confidence, users=total),
        )


def _numbers(values: Any) -> Any:
    """Numbers, each read by itself; NaN for what is none, so that no error can tell."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    return np.array([number_of(value) for value in list(values)], dtype=np.float64)


def _finite(reports: Any) -> Any:
    listed = _numbers(reports)
    if np.ndim(listed) != 1:
        raise InvalidArgument("reports must be the reports of this survey: one number each.")
    return listed[np.isfinite(listed)]
