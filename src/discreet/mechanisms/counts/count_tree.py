"""All prefix sums and ranges with pure ε: noisy counts of a tree of ranges, adjusted so that they add up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.counts.factorization import (
    EIGHTHS,
    MOST_POINTS,
    check_counts,
    counts_of_points,
    largest_variances,
)
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import for_rows, rows_in, rows_moved
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

Floats = NDArray[np.float64]
MOST_BRANCHES = 64
_STEPS = 64


def levels_of(points: int, branches: int) -> int:
    """The number of levels below the whole range, down to ranges of one point."""
    levels = 1
    while branches**levels < points:
        levels += 1
    return levels


@lru_cache(maxsize=256)
def _from_below(levels: int, branches: int) -> tuple[float, ...]:
    """The variance of a range's count when it is estimated from all measurements inside it, leaves first.

    The unit is the variance of one measurement. The last entry is the whole range. It is not measured itself, so its
    count is the sum of its parts.
    """
    variances = [1.0]
    for _ in range(levels - 1):
        variances.append(1 / (1 + 1 / (branches * variances[-1])))
    return (*variances, branches * variances[-1])


@lru_cache(maxsize=8)
def prefix_variances(points: int, branches: int) -> Floats:
    """The exact variance of each prefix sum, in units of the variance of one measurement.

    Given the count t of a range, a prefix inside it is share·t plus an independent term. Given t, the counts of the
    parts of the range have the covariance v·(I − J/branches), where v is the variance of one part, estimated from
    below.
    """
    return _variances(np.arange(points), levels_of(points, branches), branches)


def _variances(place: NDArray[np.int64], levels: int, branches: int) -> Floats:
    below = _from_below(levels, branches)
    share, own = np.ones(len(place)), np.zeros(len(place))
    for level in range(levels):
        part = place % branches
        total, squares = part + share, part + share**2
        share, own = total / branches, own + below[level] * (squares - total**2 / branches)
        place = place // branches
    return share**2 * below[levels] + own


@lru_cache(maxsize=8)
def covariances(points: int, branches: int) -> Floats:
    """The exact covariance of each prefix sum with the last one, in units of the variance of one measurement.

    Given the count of a range, each of two prefixes inside it is a share of that count plus a term of its own, as in
    `prefix_variances`. The two terms are independent until both prefixes end in the same part.
    """
    place, last, levels = np.arange(points), points - 1, levels_of(points, branches)
    below = _from_below(levels, branches)
    share, share_of_last, own = np.ones(points), 1.0, np.zeros(points)
    for level in range(levels):
        part, part_of_last, together = place % branches, last % branches, place == last
        total, total_of_last = part + share, part_of_last + share_of_last
        both = part + share * np.where(together, share_of_last, 1.0)
        met = place // branches == last // branches
        own = own + np.where(met, below[level] * (both - total * total_of_last / branches), 0.0)
        share, share_of_last = total / branches, total_of_last / branches
        place, last = place // branches, last // branches
    return np.asarray(share * share_of_last * below[levels] + own)


@lru_cache(maxsize=64)
def share_variances(points: int, branches: int) -> Floats:
    """The largest variance of a prefix sum less a share q of the last one, for q = 0, 1/8, … 1."""
    variances, shared = prefix_variances(points, branches), covariances(points, branches)
    return largest_variances(variances, shared)


@lru_cache(maxsize=256)
def best_branches(points: int) -> int:
    """The number of branches with the least mean squared error of prefix sums at a fixed ε."""

    # a sample, spread over all points
    some = np.arange(points) if points <= 2**13 else np.arange(2**13) * 2654435761 % points

    def cost(branches: int) -> float:
        levels = levels_of(points, branches)
        return levels**2 * float(_variances(some, levels, branches).mean())

    return min(range(2, min(max(points, 2), MOST_BRANCHES) + 1), key=cost)


@lru_cache(maxsize=256)
def some_branches(points: int) -> tuple[int, ...]:
    """Numbers of branches worth comparing: the best one by squared error, and the least for each number of levels."""
    least = {levels_of(points, branches): branches for branches in range(MOST_BRANCHES, 3, -1)}
    return tuple(sorted({best_branches(points), *least.values()}))


@lru_cache(maxsize=4096)
def _unit_tail(variance: float, miss: float) -> float:
    """`CountTree._tail` for noise of scale 1."""
    rates = np.linspace(0, 1, 4001)[1:-1]
    return float(((miss - variance * np.log1p(-(rates**2))) / rates).min())


@lru_cache(maxsize=64)
def _unit_tails(most: float, miss: float) -> Floats:
    return np.array([_unit_tail(most * step / _STEPS, miss) for step in range(_STEPS + 1)])


@dataclass(frozen=True, kw_only=True)
class CountTree:
    """Counts the rows in ranges of 1, b, b², … points (b = `branches`), adds Laplace noise, and makes the counts add
    up.

    Promise: that of Laplace noise of this scale on whole counts. A row is in one range of each level, so the L1
    sensitivity is the number of levels for an added or removed row, and twice that for a replaced one.
    Error: each prefix sum is the least-squares estimate. It is unbiased and has the exact variance `deviation`². The
    bound for all sums at once follows from the moments of Laplace noise and a union bound.
    Source: [L3.CDF]; Hay-Rastogi-Miklau-Suciu 2010.
    """

    points: int
    scale: Number
    branches: int = 16

    def __post_init__(self) -> None:
        if check_count(self.points, "points") > MOST_POINTS:
            raise InvalidArgument(f"points must be at most {MOST_POINTS}. Use a coarser grid.", code="too-large")
        check_positive(self.scale, "scale")
        if check_count(self.branches, "branches", at_least=2) > MOST_BRANCHES:
            raise InvalidArgument(f"branches must be at most {MOST_BRANCHES}.", code="too-large")

    @property
    def levels(self) -> int:
        """How many ranges a row is in."""
        return levels_of(self.points, self.branches)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return rows_moved(unit, rows_per_person)

    def measured(self, sensitivity: SensitivityLike = None) -> Sensitivity:
        """How far a unit with this many rows moves the counts of all ranges, in L1."""
        bound = rows_in(sensitivity)
        counts = 2 if bound.replaced else 1
        dimension = sum(self.branches**level for level in range(1, self.levels + 1))
        return Sensitivity(bound.exact * counts * self.levels, "L1", bound.unit, dimension, 1)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        return for_rows(Laplace(scale=self.scale, step=1).guarantee(self.measured(sensitivity)))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        points: int,
        branches: int | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee` for this unit. By default, the tree with the least error is used."""
        wide = best_branches(check_count(points, "points")) if branches is None else branches
        bound = cls(points=points, scale=1, branches=wide).measured(rows_moved(unit or row(), rows_per_person))
        noise = Laplace.for_guarantee(guarantee, sensitivity=bound, step=1)
        return cls(points=points, scale=noise.scale, branches=wide)

    @classmethod
    def for_error(cls, amount: Number, *, points: int, confidence: float = 0.95) -> Self:
        """The most noise with which all prefix sums stay within `amount` with this confidence."""
        most, wide = check_positive(amount, "amount"), best_branches(check_count(points, "points"))
        once = cls(points=points, scale=1000, branches=wide).error(confidence)
        return cls(points=points, scale=float(most) / float(once) * 1000 * (1 - 1e-6), branches=wide)

    @property
    def _variance(self) -> float:
        """The variance of one measurement: that of the discrete law, just below 2·scale²."""
        half = 1 / (2 * float(exactly(self.scale)))
        return 0.0 if half > 300 else 1 / (2 * math.sinh(half) ** 2)

    def deviation(self, last: int | NDArray[np.int64], first: int = 0) -> Any:
        """The standard deviation of the noise in counts number `first` (from 0) to `last` (exclusive), exactly."""
        if not first:
            variances = np.concatenate([[0.0], prefix_variances(self.points, self.branches)])
            return np.sqrt(self._variance * variances[last])
        below = _from_below(self.levels, self.branches)
        share, own = self._within(self.levels, 0, first, int(last), below)
        return math.sqrt(self._variance * (share**2 * below[-1] + own))

    def _within(self, level: int, start: int, first: int, last: int, below: tuple[float, ...]) -> tuple[float, float]:
        """The share of a range's count that [first, last) has on average, and its variance."""
        size = self.branches**level
        if last <= start or first >= start + size:
            return 0.0, 0.0
        if first <= start and start + size <= last:
            return 1.0, 0.0
        inner = size // self.branches
        parts = [self._within(level - 1, start + i * inner, first, last, below) for i in range(self.branches)]
        shares = [share for share, _ in parts]
        spread = sum(share**2 for share in shares) - sum(shares) ** 2 / self.branches
        return sum(shares) / self.branches, sum(own for _, own in parts) + below[level - 1] * spread

    def error(self, confidence: float) -> Accuracy:
        """How far any prefix sum may be off, by Chernoff's bound."""
        sure = check_confidence(confidence)
        variance = float(prefix_variances(self.points, self.branches).max())
        amount = self._tail(variance, math.log(2 * self.points / (1 - sure)))
        return Accuracy(amount=amount, confidence=sure, of="every value")

    def within(self, last: int, first: int, confidence: float) -> float:
        """How far the sum of counts `first` to `last` (exclusive) may be off, by Chernoff's bound."""
        if not self._variance:
            return 0.0
        variance = (float(self.deviation(last, first)) ** 2) / self._variance
        return self._tail(variance, math.log(2 / (1 - check_confidence(confidence))))

    def beyond(self, shares: Floats, miss: float) -> Floats:
        """For each share q: what the noise of any one prefix sum less q times the last one exceeds, on one given side,
        with probability at most `miss`.
        """
        variances = np.interp(shares, EIGHTHS, share_variances(self.points, self.branches))
        return np.array([self._tail(float(one), -math.log(miss)) for one in variances])

    def beyond_at(self, share: float, miss: float, places: slice) -> Floats:
        """As `beyond`, for each of these prefix sums by itself."""
        variances, shared = prefix_variances(self.points, self.branches), covariances(self.points, self.branches)
        own = variances[places] - 2 * share * shared[places] + share**2 * variances[-1]
        most = float(share_variances(self.points, self.branches).max())
        # rounded up to one of a few variances, whose bounds are computed once
        steps = np.clip(np.ceil(own / most * _STEPS * (1 - 1e-12)), 1, _STEPS).astype(np.int64)
        return np.asarray(float(exactly(self.scale)) * _unit_tails(most, -math.log(miss))[steps])

    def _tail(self, variance: float, miss: float) -> float:
        """The bound that a sum exceeds with probability at most exp(−miss), by Chernoff. `variance` is in units of
        `2·scale²`, that of one measurement.

        A sum weighs the counts of the points with numbers in a range of length 1 that contains 0, so it weighs no
        measurement by more than 1: a weight is a sum of differences between averages over nested ranges, each damped
        more than the one before. For weights w with Σw² = V, convexity bounds ln E exp(λ·noise) = −Σ ln(1 −
        scale²λ²w²) by −V·ln(1 − scale²λ²). Discrete noise has a smaller moment.
        """
        return float(exactly(self.scale)) * _unit_tail(variance, miss)

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        check_counts(value, self.points)

    def _draw(self, value: Any) -> Floats:
        counts = counts_of_points(value, self.points)
        padded = np.zeros(self.branches**self.levels, dtype=np.int64)
        padded[: self.points] = counts
        noisy: list[Floats] = []
        while len(padded) > 1:
            noise = samplers.discrete_laplace(exactly(self.scale), len(padded))
            noisy.append((padded + noise).astype(np.float64))
            padded = padded.reshape(-1, self.branches).sum(axis=1)
        return np.cumsum(self._reconciled(noisy))[: self.points]

    def _reconciled(self, noisy: list[Floats]) -> Floats:
        """The least-squares counts of the points: averages from the leaves up, then differences divided on the way
        down.
        """
        below = _from_below(self.levels, self.branches)
        best = [noisy[0]]
        for level in range(1, self.levels):
            inner = best[-1].reshape(-1, self.branches).sum(axis=1)
            own, under = 1.0, 1 / (self.branches * below[level - 1])
            best.append((own * noisy[level] + under * inner) / (own + under))
        final = best[-1]  # the whole range is not measured, so the parts of the top level stay as they are
        for level in range(self.levels - 2, -1, -1):
            parts = best[level].reshape(-1, self.branches)
            final = (parts + ((final - parts.sum(axis=1)) / self.branches)[:, None]).reshape(-1)
        return final
