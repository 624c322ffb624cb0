"""How many rows lie at or below each point of a public grid: the CDF, its ranges, and any number of quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.mechanisms.counts.count_tree import CountTree, some_branches
from discreet.mechanisms.counts.factorization import MOST_POINTS, PrefixSums
from discreet.mechanisms.protocol import is_pure
from discreet.mechanisms.quantiles.quantile import BETWEEN, lattice_of
from discreet.mechanisms.quantiles.quantiles import Quantiles, validate_quantiles
from discreet.queries.ranks import places_of
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Grid, Integers, Interval
from discreet.rows import none_of
from discreet.rows.containers import Data

Floats = NDArray[np.float64]
BINS = 2**16
Space = Grid | Integers | Interval


@dataclass(frozen=True, kw_only=True)
class CumulativeCounts:
    """Counts the rows up to each point of the space, all at once, through `sums`.

    A space with more points than `sums` has is counted in bins of neighboring points, equally many in each.

    Promise: that of `sums` on exact counts of the bins. Error: of every cumulative count at once. Source: [L3.CDF].
    """

    space: Space
    sums: PrefixSums | CountTree

    def __post_init__(self) -> None:
        if not isinstance(self.space, Grid | Integers | Interval) or not isinstance(self.sums, PrefixSums | CountTree):
            raise InvalidArgument(
                "space must be a space of numbers, and sums must be PrefixSums or CountTree.", code="part-does-not-fit"
            )

    @cached_property
    def points(self) -> Grid | Integers:
        """The points to which rows are rounded."""
        return lattice_of(self.space)

    @property
    def width(self) -> int:
        """How many points are counted as one."""
        return -(-len(self.points) // self.sums.points)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return self.sums.sensitivity(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.sums.guarantee(sensitivity)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        space: Space,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        bins: int = BINS,
    ) -> Self:
        """The method with the least mean squared error that satisfies `guarantee`: a tree of counts if no δ is allowed,
        otherwise usually the factorization.
        """
        known = cls._kinds(guarantee, space, unit, rows_per_person, bins)
        return min(known, key=lambda one: mean_deviation(one.sums))

    @classmethod
    def _kinds(
        cls,
        guarantee: Guarantee,
        space: Space,
        unit: Unit | None,
        rows_per_person: int,
        bins: int,
        trees: Callable[[int], Sequence[int | None]] = lambda points: [None],
    ) -> list[Self]:
        """All methods, each with the least noise that satisfies `guarantee`. `trees` lists numbers of branches."""
        points = min(check_count(bins, "bins"), MOST_POINTS, len(lattice_of(space)))
        given: dict[str, Any] = {"points": points, "unit": unit, "rows_per_person": rows_per_person}
        sums: list[PrefixSums | CountTree] = [
            CountTree.for_guarantee(guarantee, branches=branches, **given) for branches in trees(points)
        ]
        if not is_pure(guarantee):
            sums.insert(0, PrefixSums.for_guarantee(guarantee, **given))
        return [cls(space=space, sums=one) for one in sums]

    def error(self, confidence: float) -> Accuracy:
        return self.sums.error(confidence)

    def read(self, values: Data) -> Cumulative:
        """The draw, as an object that answers questions about ranges and quantiles."""
        return Cumulative(self, np.asarray(values, dtype=np.float64))

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        places_of(self.points, none_of(value))

    def _draw(self, value: Any) -> Floats:
        places, width = places_of(self.points, value), self.width
        bins = places if width == 1 else places // width
        return self.sums._draw(np.bincount(bins, minlength=self.sums.points))


def mean_deviation(sums: PrefixSums | CountTree) -> float:
    """The root mean square over all prefix sums of their standard deviations."""
    return float(np.sqrt(np.mean(sums.deviation(np.arange(1, sums.points + 1)) ** 2)))


@dataclass(frozen=True, eq=False)
class Cumulative:
    """Released cumulative counts. Everything computed from them is post-processing, and costs nothing."""

    mechanism: CumulativeCounts
    values: Floats = field(repr=False)

    @cached_property
    def monotone(self) -> Floats:
        """The closest counts that never decrease and are never negative. The largest error does not grow."""
        from scipy.optimize import isotonic_regression

        return np.maximum(isotonic_regression(self.values).x, 0.0)

    def _bin(self, value: Any) -> int:
        return int(self.mechanism.points.positions(np.array([value]))[0]) // self.mechanism.width

    def up_to(self, value: Data) -> float:
        """How many rows are at most `value`."""
        return float(self.monotone[self._bin(value)])

    def fraction(self, value: Data) -> float:
        """The share of the rows that are at most `value`: the CDF, between 0 and 1."""
        return min(1.0, self.up_to(value) / max(float(self.monotone[-1]), 1.0))

    def between(self, low: Any, high: Any) -> tuple[float, float]:
        """How many rows lie from `low` to `high`, both included, and the exact standard deviation of that answer.

        Adjacent ranges add up. The answer is unbiased, so it may be negative.
        """
        first, last = self._bin(low), self._bin(high) + 1
        if last <= first:
            raise InvalidArgument("low must be at most high.", code="ends-out-of-order")
        start = float(self.values[first - 1]) if first else 0.0
        deviation = float(self.mechanism.sums.deviation(last, first))
        return float(self.values[last - 1]) - start, deviation

    def quantiles(self, quantiles: Sequence[Number]) -> NDArray[Any]:
        """For each share, the middle point of a bin at or below which about that share of the rows lies, found by
        bisection.
        """
        width = self.mechanism.width
        return self._points(np.sort(self._bisect(_shares(quantiles))) * width + width // 2)

    def bands(self, quantiles: Sequence[Number], confidence: float) -> NDArray[Any]:
        """For each share, the ends of an interval that contains the true quantile. With this confidence, all do.

        Error: let t be the bin of the row of rank r, less than two ranks from q·n. The lower end is the first bin whose
        count less q·n is at least −λ − 2, where λ bounds the noise of that bin. It is above t only if the noise at t is
        below −λ, so a bound on the noise of one point, which no draw chooses, is enough. The upper end likewise.
        """
        shares, sums, width = _shares(quantiles), self.mechanism.sums, self.mechanism.width
        miss, middle = _miss(shares, confidence), self._bisect(shares)
        away, wanted = sums.beyond(shares, miss) + BETWEEN, shares * self.values[-1]
        # the largest λ of any point leaves few bins, which are compared with their own
        low = np.searchsorted(np.maximum.accumulate(self.values), wanted - away, "left")
        high = np.searchsorted(np.minimum.accumulate(self.values[::-1])[::-1], wanted + away, "left")
        for place, share in enumerate(shares.tolist()):
            below, above = slice(low[place], middle[place] + 1), slice(max(middle[place] - 1, 0), high[place])
            reached = self.values[below] - wanted[place] + sums.beyond_at(share, miss, below) >= -BETWEEN
            early = self.values[above] - wanted[place] - sums.beyond_at(share, miss, above) < BETWEEN
            low[place] += int(np.argmax(reached)) if reached.any() else 0
            high[place] = above.start + (int(np.flatnonzero(early)[-1]) + 1 if early.any() else 0)
        # a total below 0 is noise, and turns the order around
        ends = np.sort(low) * width, np.sort(high) * width + width - 1
        return np.stack([self._points(end) for end in ends], axis=1)

    def _bisect(self, shares: Floats) -> NDArray[np.int64]:
        """For each share q, a bin found by comparing the counts of halfway bins with q times the last count.

        Only about log2(bins) points are looked at on the way to any bin, so the noise of these alone decides.
        """
        first, last = np.zeros(len(shares), dtype=np.int64), np.full(len(shares), len(self.values) - 1)
        wanted = shares * self.values[-1]
        for _ in range(_steps(len(self.values))):
            middle = (first + last) // 2
            reached = (self.values[middle] >= wanted) | (first == last)
            first, last = np.where(reached, first, middle + 1), np.where(reached, middle, last)
        return last

    def _points(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """The points at these places, the last one for any place beyond it."""
        points = self.mechanism.points
        inside = np.minimum(places, len(points) - 1)
        return points._at(inside) if isinstance(points, Grid) else inside + points.points()[0]


def _shares(quantiles: Sequence[Number]) -> Floats:
    return np.array([float(exactly(q)) for q in validate_quantiles(quantiles)])


def _miss(shares: Floats, confidence: float) -> float:
    """The probability with which each end of each interval may miss, so that all hold with this confidence."""
    return (1 - check_confidence(confidence)) / (2 * len(shares))


def _steps(bins: int) -> int:
    """How often a range of this many bins is halved until one is left."""
    return (bins - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class QuantilesFromCounts:
    """Computes quantiles from noisy cumulative counts. The noise is the same for any number of quantiles.

    With a `confidence`, every quantile is drawn with the ends of its interval: a line (lower, quantile, upper) for
    each. All true quantiles lie in their intervals with this confidence, also where several points are counted as one.

    Promise: that of the counts.
    Error: a quantile that is off by more than λ ranks needs noise above λ at one of the points that bisection passes on
    the way to the first point so far off: at most 2·log2(bins) of them for each quantile, which the data decide and no
    draw. The noise is that of a count less q times the number of rows. No bound is known where several points are
    counted as one. Source: [L3.CDF].
    """

    counts: CumulativeCounts
    quantiles: tuple[Number, ...]
    confidence: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", validate_quantiles(self.quantiles))
        if self.confidence is not None:
            check_confidence(self.confidence)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return self.counts.sensitivity(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.counts.guarantee(sensitivity)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        space: Space,
        quantiles: Sequence[Number],
        unit: Unit | None = None,
        rows_per_person: int = 1,
        bins: int = BINS,
        confidence: float | None = None,
    ) -> Self:
        """The counts that keep `guarantee` with the least error, or with a `confidence`, the narrowest intervals."""
        asked = (guarantee, space, unit, rows_per_person, bins)
        if confidence is None:
            counts = min(CumulativeCounts._kinds(*asked), key=lambda one: mean_deviation(one.sums))
        else:
            shares = _shares(quantiles)
            miss = _miss(shares, confidence)
            known = CumulativeCounts._kinds(*asked, some_branches)
            counts = min(known, key=lambda one: float(one.sums.beyond(shares, miss).mean()))
        return cls(counts=counts, quantiles=tuple(quantiles), confidence=confidence)

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        if self.counts.width > 1:
            why = f"{self.counts.width} neighboring points are counted as one"
            return Accuracy(amount=None, confidence=sure, of="rank", reason=why)
        points = 2 * max(1, _steps(self.counts.sums.points)) * len(self.quantiles)
        amount = float(self.counts.sums.beyond(_shares(self.quantiles), (1 - sure) / points).max())
        return Accuracy(amount=amount, confidence=sure, of="rank")

    def check(self, value: Data) -> None:
        """Refuse what cannot be read. Only shape and type decide."""
        self.counts.check(value)

    def _draw(self, value: Any) -> NDArray[Any]:
        drawn = self.counts.read(self.counts._draw(value))
        middle = drawn.quantiles(self.quantiles)
        if self.confidence is None:
            return middle
        lower, upper = drawn.bands(self.quantiles, self.confidence).T
        return np.stack([lower, middle, upper], axis=1)


Least = Literal["mean", "largest"]


def predicted_error(mechanism: Quantiles | QuantilesFromCounts, least: Least = "mean") -> float:
    """About how many ranks the quantiles will be off, on average or the worst of them, before any data is seen.

    Not a bound. A choice is off by Laplace noise of scale 1/rate where rows lie evenly, and passes it on as the
    recursion does; a count is off by normal noise.
    """
    if least not in ("mean", "largest"):
        raise InvalidArgument("least must be 'mean' or 'largest'.", code="not-an-option")
    many = 2.0 ** (-1 / len(mechanism.quantiles))  # the median of the maximum of this many
    if isinstance(mechanism, QuantilesFromCounts):
        from scipy.special import ndtri

        spread = mean_deviation(mechanism.counts.sums)
        return spread * (math.sqrt(2 / math.pi) if least == "mean" else float(ndtri((1 + many) / 2)))
    passed: dict[int, dict[int, float]] = {-1: {}, len(mechanism.quantiles): {}}
    for choice in (choice for level in mechanism.levels for choice in level):
        p, left, right = float(choice.part), passed[choice.left], passed[choice.right]
        sums = {i: (1 - p) * left.get(i, 0.0) + p * right.get(i, 0.0) for i in left.keys() | right.keys()}
        passed[choice.index] = sums | {choice.index: 1.0}
    scales = [math.sqrt(sum(x * x for x in one.values())) / float(exactly(mechanism.rate)) for one in passed.values()]
    spread = sum(scales) / len(mechanism.quantiles)
    return spread * (1 if least == "mean" else -math.log1p(-many))


def best_quantiles(
    guarantee: Guarantee,
    *,
    space: Space,
    quantiles: Sequence[Number],
    unit: Unit | None = None,
    rows_per_person: int = 1,
    least: Least = "mean",
    rows: int | None = None,
) -> Quantiles | QuantilesFromCounts:
    """The method with the least predicted error, on average or of the worst quantile: a recursion for few quantiles,
    cumulative counts for very many. Decided before any data is seen.

    `rows` is a public guess of how many there are, from which counts choose their bins; a wrong one costs accuracy.

    >>> from discreet import Approx
    >>> few = best_quantiles(Approx(epsilon=1, delta=1e-6), space=Integers(0, 1000), quantiles=[0.25, 0.5, 0.75])
    >>> type(few).__name__
    'Quantiles'
    """
    asked: dict[str, Any] = {"space": space, "quantiles": quantiles, "unit": unit, "rows_per_person": rows_per_person}
    chosen: Quantiles | QuantilesFromCounts = Quantiles.for_guarantee(guarantee, **asked)
    counted = QuantilesFromCounts.for_guarantee(guarantee, **asked, bins=bins_for(rows))
    return min((chosen, counted), key=lambda mechanism: predicted_error(mechanism, least))


def bins_for(rows: int | None) -> int:
    """Bins so small that few of about `rows` rows share one, and no smaller: the noise grows with their logarithm."""
    return BINS if rows is None else min(2**20, max(2**10, 1 << (4 * check_count(rows, "rows") - 1).bit_length()))
