"""What a collector learns: counts and means with error bars that hold for any number of reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.reports.local_records import is_column, one_column
from discreet.releases import Release
from discreet.rows.convex import onto_simplex

_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class Counted(Release):
    """Counts from local reports. Reading them costs nothing: each report was private when it was sent.

    `value` are counts. With `simplex`, none is below 0 and they sum to the number of reports (at most that for given
    candidates): the closest such answer to `raw`. `raw` are the unbiased estimates.
    """

    raw: dict[Hashable, float]
    reports: int
    rejected: int = 0
    method: str = ""
    simplex: bool = True
    _intervals: Callable[[float], NDArray[np.float64]] = field(repr=False)
    _deviations: NDArray[np.float64] = field(repr=False)

    def intervals(self, confidence: float = 0.95) -> dict[Hashable, tuple[float, float]]:
        """An interval for the true count of every choice. All of them hold at once with this confidence."""
        ends = self._intervals(check_confidence(confidence))
        return {choice: (float(low), float(high)) for choice, (low, high) in zip(self.raw, ends, strict=True)}

    def interval(self, choice: Hashable, confidence: float = 0.95) -> tuple[float, float]:
        """The interval of one choice, from those that hold at once."""
        if choice not in self.raw:
            raise InvalidArgument("This choice was not counted. Name one that was.", code="unknown-choice")
        return self.intervals(confidence)[choice]

    @property
    def stddev(self) -> dict[Hashable, float]:
        """The approximate standard deviation of each raw count, at the estimated counts."""
        return {choice: float(one) for choice, one in zip(self.raw, self._deviations, strict=True)}

    def error(self, confidence: float = 0.95) -> Accuracy:
        """The maximum distance of any count in `value` from the truth, for all at once."""
        ends = self._intervals(check_confidence(confidence))
        counts = np.array(list(self.value.values()), dtype=np.float64)
        amount = float(np.maximum(ends[:, 1] - counts, counts - ends[:, 0]).max()) if len(counts) else 0.0
        return Accuracy(amount=amount, confidence=check_confidence(confidence), of="every value")

    def top(self, count: int) -> list[tuple[Hashable, float]]:
        """The choices with the largest counts."""
        return sorted(self.value.items(), key=lambda item: -item[1])[:count]

    def _value_text(self) -> str:
        """The largest counts, and how far any of them may be off."""
        amount = float(self.error(0.95))
        shown = ", ".join(f"{choice}: {count:,.0f}" for choice, count in self.top(_SHOWN))
        more = "" if len(self.value) <= _SHOWN else f", and {len(self.value) - _SHOWN} more"
        left_out = f"; {self.rejected} not counted, as they are no reports of this survey" if self.rejected else ""
        return f"{shown}{more}; each ± {amount:,.0f} (95%), from {self.reports:,} reports{left_out}"


@dataclass(frozen=True, kw_only=True)
class Measured(Release):
    """A mean from local reports: `value` is inside the declared range, `raw` is unbiased."""

    raw: float
    stddev: float
    reports: int
    rejected: int = 0
    method: str = ""
    _error: Callable[[float], Accuracy] = field(repr=False)

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How far the mean is from that of the true values. The bound holds for any number of reports."""
        return self._error(check_confidence(confidence))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """An interval around the unbiased mean."""
        amount = float(self.error(confidence))
        return self.raw - amount, self.raw + amount


def nearest_counts(raw: NDArray[np.float64], total: float, *, all_named: bool = True) -> NDArray[np.float64]:
    """The closest counts that are nonnegative and sum to the total, or to at most the total if not all choices are
    named.
    """
    cut = np.maximum(raw, 0.0)
    if not all_named and cut.sum() <= total:
        return cut
    return onto_simplex(raw, total)


def check_reports(given: Any) -> int:
    """The number of reports. Raises if it is invalid."""
    if not is_column(given):
        raise InvalidArgument(
            "reports must be a list or an array of reports, as encode or encode_many returned them.",
            code="foreign-reports",
        )
    return len(given)


def check_some(valid: Any) -> int:
    """How many valid reports there are, at least one."""
    if not len(valid):
        raise InvalidArgument(
            "None of these reports belongs to this survey. Collect some first.", code="too-few-reports"
        )
    return len(valid)


def check_candidates(candidates: Any) -> list[Any]:
    """The candidates to count, all different. Raises if they are invalid."""
    listed = list(one_column(candidates))
    try:
        different = len(set(listed))
    except Exception:  # no hash, or one that fails
        different = -1
    if not listed or different != len(listed):
        raise InvalidArgument("candidates must be at least one plain value, all different.", code="candidates")
    return listed


def check_fakes(fakes: int, users: int) -> None:
    """Raise unless this many fakes can be among the users, and somebody else is."""
    if check_count(fakes, "fakes", at_least=0) >= check_count(users, "users"):
        raise InvalidArgument("fakes must be below users. Count everybody who reports: users=.", code="out-of-range")
