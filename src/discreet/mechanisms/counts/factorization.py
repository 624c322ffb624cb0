"""All prefix sums at once, and running sums of a stream: Gaussian noise, multiplied by a square root of the summing
matrix.

The matrix A of prefix sums is R·R for the Toeplitz matrix R with r_k = C(2k,k)/4^k. We measure R̃Wx + z, where R̃ =
round(2^26·R) and the weights W are whole numbers, x are the exact counts, and z is discrete Gaussian noise. Nothing is
rounded after counting, and the sensitivity is that of the integers that are used. With E = R̃/2^26 − R, everything else
is arithmetic on the measurement: (R−E)(R+E)u = Au − E²u for u = Wx, where E² is below 2^-54 per coefficient and step,
and the sums of x follow from those of u, because a step of u is a step of x times its weight.

A count that comes late is in few measurements, so its column of R is short. The weights give all columns about the same
length: with the same noise, late counts are then measured better, at no cost for an added or removed row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import for_rows, rows_in, rows_moved
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows import column, has, none_of, wholes
from discreet.rows.containers import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_POINTS = 2**22
_BITS, _WEIGHT_BITS = 26, 8
_STEP = Fraction(1, 2 ** (_BITS + _WEIGHT_BITS))
_LEVEL = 64  # the columns of the last 1/64 of all points have one weight
_MOST = 2**40  # the largest count: with its weight it stays far within 64 bits, but sums may not
_SMALL = 2**36  # if numbers add up to less, products with R̃ stay within 64 bits
_ROOT_LIMB, _COUNT_LIMB = 10, 12  # a transform of 2^22 products of such digits is off by less than 0.1


@lru_cache(maxsize=4)
def root(points: int) -> tuple[Ints, Floats]:
    """The first column of R̃, in units of 2^-26, and that of R−E."""
    k = np.arange(1, points, dtype=np.float64)
    exact = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    whole = np.rint(np.ldexp(exact, _BITS)).astype(np.int64)
    return whole, 2 * exact - np.ldexp(whole.astype(np.float64), -_BITS)


def _length(points: int) -> int:
    """A power of two that is long enough for a product without wrapping around."""
    return 1 << (2 * points - 1).bit_length()


@lru_cache(maxsize=4)
def _spectra(points: int) -> tuple[tuple[NDArray[np.complex128], ...], NDArray[np.complex128]]:
    """The transforms of the digits of R̃, and of R−E."""
    whole, other = root(points)
    length = _length(points)
    return tuple(np.fft.rfft(digit, length) for digit in _digits(whole, _ROOT_LIMB)), np.fft.rfft(other, length)


def _digits(values: Ints, bits: int) -> list[Floats]:
    """Digits in base 2^bits, each at most half the base in size, lowest first."""
    digits: list[Floats] = []
    rest, half = values, 1 << (bits - 1)
    while not digits or rest.any():
        low = ((rest + half) & ((1 << bits) - 1)) - half
        digits.append(low.astype(np.float64))
        rest = (rest - low) >> bits
    return digits


def measure(counts: Ints) -> NDArray[Any]:
    """R̃ times whole numbers, exactly: products of small digits by Fourier transforms, whose error is far below ½."""
    points, length = len(counts), _length(len(counts))
    spectra, _ = _spectra(points)
    # the largest entry is below 2^26·Σ|x|; if that exceeds 64 bits, Python's integers add up the digits
    total: NDArray[Any] = np.zeros(points, dtype=np.int64 if _are_small(counts) else object)
    for place, digit in enumerate(_digits(counts, _COUNT_LIMB)):
        transformed = np.fft.rfft(digit, length)
        for other, spectrum in enumerate(spectra):
            part = np.rint(np.fft.irfft(spectrum * transformed, length)[:points]).astype(np.int64)
            total += part.astype(total.dtype) * (1 << (place * _COUNT_LIMB + other * _ROOT_LIMB))
    return total


def _are_small(counts: Ints) -> bool:
    """Whether products with R̃ stay within 64 bits. The sum is a float, because integers could wrap around."""
    return bool(np.abs(counts).sum(dtype=np.float64) < _SMALL)


@lru_cache(maxsize=4)
def weights(points: int, normalized: bool) -> Ints:
    """What each count is multiplied by, at most 2^8. All are equal unless columns are to be `normalized`."""
    if not normalized:
        return np.full(points, 1 << _WEIGHT_BITS, dtype=np.int64)
    exact = 2 * np.ldexp(root(points)[0].astype(np.float64), -_BITS) - root(points)[1]
    norms = np.sqrt(np.cumsum(exact * exact))[::-1]
    norms = np.maximum(norms, norms[points - 1 - points // _LEVEL])
    whole = np.floor(np.ldexp(norms[-1] / norms, _WEIGHT_BITS) * (1 + 1e-12))
    return np.asarray(whole, dtype=np.int64)


def _starts(of: Ints) -> Ints:
    """The first point of each run of equal weights."""
    return np.concatenate([[0], 1 + np.flatnonzero(np.diff(of))])


@lru_cache(maxsize=64)
def column_norms(points: int, normalized: bool) -> tuple[Fraction, Fraction]:
    """The squared L2 norm of the change in the measurement: for one added row, and at most for one replaced row.

    Among columns of one weight, the first is the longest. A row that moves by d points changes a measurement without
    weights by r̃_k − r̃_{k−d}. Moving from the first point is worst, and every d is tried. With weights, columns have no
    negative entries, so two of them differ by at most the sum of their squares.
    """
    whole, of = root(points)[0], weights(points, normalized)
    up_to = np.cumsum(whole * whole)  # below 2^63: the sum is about 1 + ln(points)/π
    longest = max(int(of[start]) ** 2 * int(up_to[points - 1 - start]) for start in _starts(of))
    added = Fraction(longest, 4 ** (_BITS + _WEIGHT_BITS))
    if normalized:
        return added, 2 * added
    return added, max(added, Fraction(largest_move(np.ldexp(whole.astype(np.float64), -_BITS))))


def largest_move(column: Floats) -> float:
    """An upper bound on the squared norm of the first column of a Toeplitz matrix less any other one."""
    squares, length = np.cumsum(column * column), _length(len(column))
    overlap = np.fft.irfft(np.abs(np.fft.rfft(column, length)) ** 2, length)[: len(column)]
    moved = float(squares[-1]) + squares[::-1] - 2 * overlap
    moved[0] = 0.0
    return float(moved.max()) * (1 + 1e-9)


EIGHTHS = np.linspace(0.0, 1.0, 9)
"""The shares of the last sum for which variances are computed."""


def largest_variances(variances: Floats, covariances: Floats) -> Floats:
    """The largest variance of a prefix sum less a share q of the last one, for each q of `EIGHTHS`. It is convex in q,
    so that interpolation between them never gives less. Covariances are those with the last sum.
    """
    last = float(variances[-1])
    return np.array([float((variances - 2 * q * covariances).max()) + q * q * last for q in EIGHTHS])


def sums_from(weighted: Floats, of: Ints) -> Floats:
    """The prefix sums of counts, from those of the counts times their weights."""
    return np.asarray(np.cumsum(np.diff(weighted, prepend=0.0) / np.ldexp(of.astype(np.float64), -_WEIGHT_BITS)))


def row_of(other: Floats, of: Ints, last: int) -> Floats:
    """How much of the noise of each measurement is in the sum of the first `last` counts.

    `other` is the first column of the factor that a measurement is multiplied by, `of` are the weights of the counts.
    """
    inverse = np.ldexp(1 / of.astype(np.float64), _WEIGHT_BITS)
    starts = [int(start) for start in _starts(of) if start < last]
    found = np.zeros(len(of))
    # by parts: a sum over a run of one weight is a difference of two weighted sums
    for start, end in zip(starts, [*starts[1:], last], strict=True):
        found[:end] += inverse[start] * other[:end][::-1]
        if start:
            found[:start] -= inverse[start] * other[:start][::-1]
    return found


@lru_cache(maxsize=4)
def second_moments(points: int, normalized: bool) -> tuple[Floats, Floats]:
    """The variance of each prefix sum, and its covariance with the last one, in units of one measurement's variance."""
    return moments_of(root(points)[1], weights(points, normalized))


def moments_of(other: Floats, of: Ints) -> tuple[Floats, Floats]:
    """As `second_moments`, for any factor and weights as in `row_of`."""
    points, length = len(of), _length(len(of))
    inverse = np.ldexp(1 / of.astype(np.float64), _WEIGHT_BITS)
    spectrum, own = np.fft.rfft(other, length), np.cumsum(other * other)

    def multiplied(vector: Floats) -> Floats:
        return np.asarray(np.fft.irfft(np.fft.rfft(vector, length) * spectrum, length)[:points])

    variances, ended = np.empty(points), np.zeros(points)
    starts = _starts(of).tolist()
    for start, end in zip(starts, [*starts[1:], points], strict=True):
        # a sum in this run is a weighted sum, divided by the weight, and what was left over (`ended`) when earlier runs
        # ended
        size, shared = inverse[start], multiplied(ended)[start:end] if start else 0.0
        variances[start:end] = size**2 * own[start:end] + 2 * size * shared + float(ended @ ended)
        if end < points:
            ended[:end] += (size - inverse[end]) * other[:end][::-1]
    return variances, sums_from(multiplied(row_of(other, of, points)), of)


@lru_cache(maxsize=64)
def share_variances(points: int, normalized: bool) -> Floats:
    """As `largest_variances`, in units of the variance of one measurement."""
    return largest_variances(*second_moments(points, normalized))


@dataclass(frozen=True, kw_only=True)
class PrefixSums:
    """Noisy sums of the first 1, 2, … counts of a vector of `points` whole numbers, each with little noise.

    `normalized` gives late counts more weight, so that all columns of the factor have about the same norm. It is better
    for rows that are added or removed, and without it is better for rows that are replaced.

    Promise: that of Gaussian noise of this stddev on a measurement whose L2 sensitivity is the largest norm of a column
    of the factor, times the number of rows for a person. The noise is added to whole numbers.
    Error: each sum has its own standard deviation, `deviation`. The bound for all sums at once is a union bound.
    Source: [L3.CDF]; the factor is that of Fichtenberger-Henzinger-Upadhyay 2023, normalized as in
    Henzinger-Kalinin-Upadhyay 2025.

    >>> round(PrefixSums(points=1024, stddev=1).spread, 2)
    3.09
    """

    points: int
    stddev: Number
    normalized: bool = True

    def __post_init__(self) -> None:
        if check_count(self.points, "points") > MOST_POINTS:
            raise InvalidArgument(f"points must be at most {MOST_POINTS}. Use a coarser grid.", code="too-large")
        check_positive(self.stddev, "stddev")
        if not isinstance(self.normalized, bool):
            raise InvalidArgument("normalized must be True or False.", code="wrong-type")

    @property
    def _noise(self) -> Gaussian:
        return Gaussian(stddev=self.stddev, step=float(_STEP))

    @property
    def spread(self) -> float:
        """The largest standard deviation of a prefix sum if stddev is the sensitivity to one added row."""
        return float(self._norm(replaced=False)) * self._largest

    @property
    def _largest(self) -> float:
        """The largest standard deviation of a prefix sum, in units of that of one measurement."""
        return math.sqrt(float(self._moments()[0].max()))

    @property
    def _rounding(self) -> float:
        """How far the measurement is from exact numbers, in L2."""
        return 0.0

    def _norm(self, *, replaced: bool) -> Fraction:
        """How far one added or replaced row moves the measurement, in L2."""
        return sqrt_up(column_norms(self.points, self.normalized)[int(replaced)])

    def _moments(self) -> tuple[Floats, Floats]:
        """The variance of each prefix sum, and its covariance with the last one, in units of one measurement's."""
        return second_moments(self.points, self.normalized)

    def _share_variances(self) -> Floats:
        return share_variances(self.points, self.normalized)

    def _row_of(self, last: int) -> Floats:
        """How much of the noise of each measurement is in the sum of the first `last` counts."""
        return row_of(root(self.points)[1], weights(self.points, self.normalized), last)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return rows_moved(unit, rows_per_person)

    def measured(self, sensitivity: SensitivityLike = None) -> Sensitivity:
        """How far a unit with this many rows moves the measurement, in L2."""
        bound = rows_in(sensitivity)
        norm = self._norm(replaced=bound.replaced)
        return Sensitivity(bound.exact * norm, "L2", bound.unit, self.points, _STEP)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        return for_rows(self._noise.guarantee(self.measured(sensitivity)))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, points: int, unit: Unit | None = None, rows_per_person: int = 1
    ) -> Self:
        """The least noise that keeps `guarantee` for this unit."""
        moved = rows_moved(unit or row(), rows_per_person)
        made = cls(points=points, stddev=1, normalized=not moved.replaced)
        bound = made.measured(moved)
        return replace(made, stddev=Gaussian.for_guarantee(guarantee, sensitivity=bound, step=_STEP).stddev)

    @classmethod
    def for_error(cls, amount: Number, *, points: int, confidence: float = 0.95) -> Self:
        """The most noise with which all prefix sums stay within `amount` with this confidence."""
        most, made = float(check_positive(amount, "amount")), cls(points=points, stddev=1)
        rounded = made._rounding * made._largest
        if most <= rounded:
            raise InvalidArgument(
                f"Sums are rounded by up to {rounded:.1g}. Allow a larger error.", code="error-out-of-reach"
            )
        exact = (most - rounded) / (float(made.error(confidence)) - rounded)
        return cls(points=points, stddev=exact * (1 - 1e-14))  # a product of doubles may exceed `amount` otherwise

    def deviation(self, last: int | Ints, first: int = 0) -> Any:
        """The standard deviation of the noise in counts number `first` (from 0) to `last` (exclusive), exactly.

        `last` may be an array when `first` is 0: one deviation for each prefix.
        """
        size = float(exactly(self.stddev))
        if not first:
            return size * np.sqrt(np.concatenate([[0.0], self._moments()[0]])[last])
        between = self._row_of(int(last)) - self._row_of(first)
        return size * float(np.sqrt(between @ between))

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        amount = self._away((1 - sure) / (2 * self.points)) * self._largest
        return Accuracy(amount=amount, confidence=sure, of="every value")

    def within(self, last: int, first: int, confidence: float) -> float:
        """How far the sum of counts `first` (from 0) to `last` (exclusive) may be off."""
        away = self._away((1 - check_confidence(confidence)) / 2)
        return away * float(self.deviation(last, first)) / float(exactly(self.stddev))

    def beyond(self, shares: Floats, miss: float) -> Floats:
        """For each share q: what the noise of any one prefix sum less q times the last one exceeds, on one given side,
        with probability at most `miss`.
        """
        variances = np.interp(shares, EIGHTHS, self._share_variances())
        return np.asarray(self._away(miss) * np.sqrt(variances))

    def beyond_at(self, share: float, miss: float, places: slice) -> Floats:
        """As `beyond`, for each of these prefix sums by itself."""
        variances, shared = self._moments()
        own = variances[places] - 2 * share * shared[places] + share**2 * variances[-1]
        return np.asarray(self._away(miss) * np.sqrt(np.maximum(own, 0.0)))

    def _away(self, miss: float) -> float:
        """What the noise of one measurement exceeds with probability at most `miss`, on one side, and its rounding."""
        from scipy.special import ndtri

        return -float(ndtri(miss)) * (1 + 1e-9) * float(exactly(self.stddev)) + self._rounding

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        check_counts(value, self.points)

    def _draw(self, value: Any) -> Floats:
        counts = counts_of_points(value, self.points)
        of = weights(self.points, self.normalized)
        noisy = measure(counts * of) + samplers.discrete_gaussian(self._noise._variance, self.points)
        return sums_from(self._weighted_sums(noisy), of)

    def _weighted_sums(self, noisy: NDArray[Any]) -> Floats:
        """(R−E) times a measurement: the prefix sums of counts times their weights."""
        scaled = np.ldexp(noisy.astype(np.float64), -_BITS - _WEIGHT_BITS)
        spectrum, length = _spectra(self.points)[1], _length(self.points)
        return np.asarray(np.fft.irfft(np.fft.rfft(scaled, length) * spectrum, length)[: self.points])

    def _start(self) -> Running:
        """A stream of at most `points` steps. It is charged once, before the first step."""
        return RunningSum(self)


class Running(Protocol):
    """A stream that has started."""

    def _draw(self, value: Any) -> Floats: ...


def counts_of_points(value: Data, points: int) -> Ints:
    """The counts as machine integers, one for each point. A value that is not a number counts as 0."""
    check_counts(value, points)
    return _whole(value)


def check_counts(value: Data, points: int) -> None:
    """Check, by shape and type only, that an array has this many counts."""
    _whole(none_of(value))
    if not has(value, "__len__") or len(value) != points:
        raise InvalidArgument(f"Give {points} whole numbers, one count for each point.", code="wrong-shape")


def _whole(value: Any) -> Ints:
    """Counts, each rounded to the nearest integer up to 2^40 in size, with 0 for a value that is not a number."""
    values = column(value if isinstance(value, list | tuple) or np.ndim(value) else [value])
    if values.dtype.kind == "f":
        raise InvalidArgument(
            "Counts are whole numbers: give an array of integers, as with counts.astype(int).", code="not-whole"
        )
    counts, missing = wholes(values)
    return np.where(missing, 0, np.clip(counts, -_MOST, _MOST))


def next_counts(value: Any, taken: int, points: int) -> Ints:
    """The next counts of a stream of `points` counts, of which some are already taken."""
    more = _whole(value)
    if taken + len(more) > points:
        raise InvalidArgument(
            f"This stream takes at most {points} numbers. Start another stream for more.", code="stream-ended"
        )
    return more


class RunningSum:
    """Noisy running sums of a stream of at most `points` counts, which arrive one by one or many at a time.

    Promise: all sums together are one release of `PrefixSums`, however they are batched. The noise of a step is drawn
    once, when the step arrives. A unit may be in one step, or in as many rows of the stream as its sensitivity says.
    """

    def __init__(self, mechanism: PrefixSums) -> None:
        self._mechanism = mechanism
        self._weights = weights(mechanism.points, mechanism.normalized)
        self._weighted = np.zeros(mechanism.points, dtype=np.int64)
        self._noisy: NDArray[Any] = np.zeros(mechanism.points, dtype=object)
        self._taken = 0
        self._sums = (0.0, 0.0)  # of weighted counts and of counts, so far

    def __repr__(self) -> str:
        return f"<RunningSum: step {self._taken} of {self._mechanism.points}>"

    def _draw(self, value: Any) -> Floats:
        """The sums after each of these counts."""
        more = next_counts(value, self._taken, self._mechanism.points)
        first, last = self._taken, self._taken + len(more)
        if not len(more):
            return np.zeros(0)
        self._weighted[first:last] = more * self._weights[first:last]
        self._taken = last
        noise = samplers.discrete_gaussian(self._mechanism._noise._variance, len(more))
        found = self._weighted_sums(first, last, noise)
        sums = self._sums[1] + sums_from(found - self._sums[0], self._weights[first:last])
        self._sums = (float(found[-1]), float(sums[-1]))
        return sums

    def _weighted_sums(self, first: int, last: int, noise: Any) -> Floats:
        """The noisy sums of weighted counts after each of the new steps."""
        whole, other = root(self._mechanism.points)
        if last - first <= 64:  # for a few steps, one row of the factors each
            rows = [self._row(whole, step) for step in range(first, last)]
            self._noisy[first:last] = [a + int(b) for a, b in zip(rows, noise, strict=True)]
            scaled = np.ldexp(self._noisy[:last].astype(np.float64), -_BITS - _WEIGHT_BITS)
            return np.array([other[: step + 1][::-1] @ scaled[: step + 1] for step in range(first, last)])
        self._noisy[first:last] = (measure(self._weighted)[first:last] + noise).astype(object)
        return self._mechanism._weighted_sums(self._noisy)[first:last]

    def _row(self, whole: Ints, step: int) -> int:
        counts = self._weighted[: step + 1]
        if _are_small(counts):
            return int(whole[: step + 1][::-1] @ counts)
        return sum(int(a) * int(b) for a, b in zip(whole[: step + 1][::-1], counts, strict=True))
