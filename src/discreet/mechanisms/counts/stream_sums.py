"""Running sums of a long stream in little memory: Gaussian noise, and a factor that a few decaying sums multiply by.

The Toeplitz matrix C has 1 on its diagonal and c_k = Σ_j ω_j·θ_j^(k−1) below it. The sums s_j ← θ_j·s_j + u are all
that the next entry of Cu needs, and all that is needed to solve Cu = y, so a stream keeps two numbers for each j. The
decays θ_j and shares ω_j are a quadrature of 1/√(πk) = (1/π)∫ exp(x/2 − k·exp(x)) dx, the entries of the square root
of the summing matrix, at equally spaced x. Seven or eight of them serve a million steps.

We measure y = CWx + z for whole weights W, exact counts x and discrete Gaussian noise z on a lattice. Decaying sums of
private counts do not stay on a lattice, so they are rounded to a finer one at every step, and y to its own:

    y_t = u_t + ρ(Σ_j ω_j·s_j) + z_t,   s_j ← ρ'(θ_j·s_j) + u_t,   u_t = w_t·x_t

Two neighbors are rounded differently, at every later step. But both roundings of a difference are off by less than one
step of their lattice, and θ_j < 1 forgets: if a difference of two sums was off by a, it is off by less than θ_j·a + 1
one step later, so never by more than 1/(1−θ_j). So an entry of y is off by at most 1 + 2^-24·Σ_j ω_j/(1−θ_j) of its
own steps from the difference C·(u−u'), and all of them by at most √points times that, in L2. This slack, about
2^-34·√points, is part of the sensitivity. What is released is computed from y and public numbers alone.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any

import numpy as np

from discreet.exact import samplers
from discreet.exact.rational import sqrt_up
from discreet.mechanisms.counts import factorization
from discreet.mechanisms.counts.factorization import (
    Floats,
    Ints,
    PrefixSums,
    counts_of_points,
    largest_move,
    largest_variances,
    moments_of,
    next_counts,
    row_of,
)

_PARAMETER_BITS = 44  # decays and shares are whole multiples of 2^-44, and exact as doubles
_ONE = 1 << _PARAMETER_BITS
_GUARD_BITS = 24  # how much finer the lattice of the decaying sums is than that of the measurement
_NORM_BITS = 128
_FIRST, _APART, _BEYOND = 1.0, 2.5, 2.5  # the largest x, the distance between two, and how far they go below 1/points
_LEVEL = 64  # as for `PrefixSums`: the columns of the last 1/64 of all points have one weight


@dataclass(frozen=True)
class Buffers:
    """The decays θ_j and shares ω_j of a factor, in units of 2^-44."""

    decays: tuple[int, ...]
    shares: tuple[int, ...]

    def column(self, points: int) -> Floats:
        """The first column of the factor."""
        steps, below = np.arange(points - 1, dtype=np.float64), np.zeros(points - 1)
        for decay, share in zip(self.decays, self.shares, strict=True):
            below += share / _ONE * np.power(decay / _ONE, steps)
        return np.concatenate([[1.0], below])

    def squared_norm(self, length: int) -> Fraction:
        """The squared L2 norm of a column with this many entries, rounded up."""
        one = 1 << _NORM_BITS
        faded = [_power_below(decay << (_NORM_BITS - _PARAMETER_BITS), length - 1) for decay in self.decays]
        total = one
        # Σ_k c_k² is Σ_ij ω_i·ω_j·(1 − (θ_i·θ_j)^(length−1)) / (1 − θ_i·θ_j)
        for decay, share, left in zip(self.decays, self.shares, faded, strict=True):
            for other, part, right in zip(self.decays, self.shares, faded, strict=True):
                gone = one - (left * right >> _NORM_BITS)
                total -= -share * part * gone // (_ONE * _ONE - decay * other)
        return Fraction(total, one)

    def most_rounding(self, steps: int) -> Fraction:
        """How much farther apart two values of Σ_j ω_j·s_j may be if each s_j was rounded at this many steps."""
        # 1 + θ + θ² + … is at most 1/(1−θ), and at most the number of steps
        farthest = [min(Fraction(_ONE, _ONE - decay), Fraction(steps)) for decay in self.decays]
        return sum((Fraction(w, _ONE) * most for w, most in zip(self.shares, farthest, strict=True)), Fraction(0))


def _power_below(base: int, exponent: int) -> int:
    """A lower bound on a power of a number between 0 and 1, both in units of 2^-128."""
    result = 1 << _NORM_BITS
    for digit in bin(exponent)[2:]:
        result = result * result >> _NORM_BITS
        if digit == "1":
            result = result * base >> _NORM_BITS
    return result


@lru_cache(maxsize=64)
def buffers(points: int) -> Buffers:
    """Decays from e^-e to about 1 − e^-2.5/points, spaced equally on a logarithmic scale."""
    count = 1 + math.ceil((_FIRST + _BEYOND + math.log(points)) / _APART)
    rates = [math.exp(_FIRST - _APART * place) for place in range(count)]
    shares = [_APART / math.pi * math.sqrt(rate) * math.exp(-rate) for rate in rates]
    return Buffers(
        tuple(math.floor(math.exp(-rate) * _ONE) for rate in rates), tuple(round(share * _ONE) for share in shares)
    )


@dataclass(frozen=True)
class Runs:
    """Whole weights that are equal over runs of points: where each run starts, and its weight."""

    starts: tuple[int, ...]
    weights: tuple[int, ...]

    def of_each(self, points: int) -> Ints:
        """The weight of each point."""
        return np.repeat(np.array(self.weights, dtype=np.int64), np.diff([*self.starts, points]))

    def at(self, point: int) -> int:
        """The weight of this point."""
        return self.weights[bisect_right(self.starts, point) - 1]


@lru_cache(maxsize=64)
def runs(points: int, normalized: bool) -> Runs:
    """What counts are multiplied by, at most 2^8. The longest columns of the factor have the smallest weights."""
    largest = 1 << factorization._WEIGHT_BITS
    if not normalized:
        return Runs((0,), (largest,))
    decays = np.array(buffers(points).decays) / _ONE
    shares = np.array(buffers(points).shares) / _ONE
    products = np.outer(decays, decays)
    sizes = np.outer(shares, shares) / (1 - products)

    def norm(point: int) -> float:
        return math.sqrt(1 + float((sizes * (1 - products ** (points - 1 - point))).sum()))

    shortest = norm(points - 1 - points // _LEVEL)

    def weight(point: int) -> int:
        return math.floor(largest * shortest / max(norm(point), shortest) * (1 + 1e-12))

    starts, found = [0], [weight(0)]
    while (start := bisect_right(range(points), found[-1], lo=starts[-1] + 1, key=weight)) < points:
        starts.append(start)
        found.append(weight(start))
    return Runs(tuple(starts), tuple(found))


@lru_cache(maxsize=64)
def column_norms(points: int, normalized: bool) -> tuple[Fraction, Fraction]:
    """The squared L2 norm of the change in CWx: for one added row, and at most for one replaced row.

    As for `PrefixSums`: the first column of a run is its longest. No entry is negative, so two columns differ by at
    most the sum of their squares, and without weights every move from the first point is tried.
    """
    made, of = buffers(points), runs(points, normalized)
    one = 1 << factorization._WEIGHT_BITS
    each = zip(of.starts, of.weights, strict=True)
    added = max(Fraction(weight, one) ** 2 * made.squared_norm(points - start) for start, weight in each)
    if normalized:
        return added, 2 * added
    return added, max(added, Fraction(largest_move(made.column(points))))


def slack(points: int) -> Fraction:
    """How much farther apart in L2 two measurements may be because their decaying sums are rounded."""
    # the first entry has no decaying sums, and for the second one they are still exact
    most = 1 + buffers(points).most_rounding(max(points - 2, 0)) / (1 << _GUARD_BITS)
    return sqrt_up(Fraction(points - 1)) * most * factorization._STEP


@lru_cache(maxsize=4)
def inverse(points: int) -> Floats:
    """The first column of A·C^-1 for the summing matrix A, by Newton's iteration for the inverse of a power series."""
    column, found = buffers(points).column(points), np.ones(1)
    while len(found) < points:
        size = min(2 * len(found), points)
        length = 1 << (2 * size).bit_length()
        spectrum = np.fft.rfft(found, length)
        off = -np.fft.irfft(spectrum * np.fft.rfft(column[:size], length), length)[:size]
        off[0] += 2
        found = np.fft.irfft(spectrum * np.fft.rfft(off, length), length)[:size]
    return np.cumsum(found)


@lru_cache(maxsize=4)
def second_moments(points: int, normalized: bool) -> tuple[Floats, Floats]:
    """The variance of each prefix sum, and its covariance with the last one, in units of one measurement's variance."""
    return moments_of(inverse(points), runs(points, normalized).of_each(points))


@dataclass(frozen=True, kw_only=True)
class StreamSums(PrefixSums):
    """Noisy running sums of a stream of `points` whole numbers that remembers about 0.8·ln(points) + 7 numbers.

    Its noise exceeds that of `PrefixSums`, which remembers the whole stream, by 1% or less. Use it for long streams, or
    for many at once. `points` may be larger than the number of steps that will come.

    Promise: that of Gaussian noise of this stddev on a measurement whose L2 sensitivity is the largest norm of a column
    of the factor, times the number of rows for a person. What rounding of the remembered numbers can add to the
    distance of two measurements is part of the sensitivity. The noise is added to whole numbers.
    Error: that of `PrefixSums`, with the rounding added: at most 2^-34·√points times the largest deviation.
    Source: [L3.CDF]; factors with few buffers are those of Dvijotham-McMahan-Pillutla-Steinke-Thakurta 2024.

    >>> made = StreamSums(points=1024, stddev=1)
    >>> round(made.spread, 2), made.remembered
    (3.1, 13)
    """

    @property
    def remembered(self) -> int:
        """How many numbers a stream keeps: two for each buffer, and the sum."""
        return 2 * len(buffers(self.points).decays) + 1

    @property
    def _rounding(self) -> float:
        # each entry of the measurement is off by less than what two of them may differ by
        return float(slack(self.points))

    def _norm(self, *, replaced: bool) -> Fraction:
        return sqrt_up(column_norms(self.points, self.normalized)[int(replaced)]) + slack(self.points)

    def _moments(self) -> tuple[Floats, Floats]:
        return second_moments(self.points, self.normalized)

    def _share_variances(self) -> Floats:
        return largest_variances(*self._moments())

    def _row_of(self, last: int) -> Floats:
        return row_of(inverse(self.points), runs(self.points, self.normalized).of_each(self.points), last)

    def _draw(self, value: Any) -> Floats:
        return self._start()._draw(counts_of_points(value, self.points))

    def _start(self) -> BufferedSum:
        """A stream of at most `points` steps. It is charged once, before the first step."""
        return BufferedSum(self)


class BufferedSum:
    """Noisy running sums of a stream, which arrive one by one or many at a time, with a few decaying sums as memory.

    Promise: all sums together are one release of `StreamSums`, however they are batched. The noise of a step is drawn
    once, when the step arrives.
    """

    def __init__(self, mechanism: StreamSums) -> None:
        self._mechanism, self._taken = mechanism, 0
        self._buffers = made = buffers(mechanism.points)
        self._rates = [decay / _ONE for decay in made.decays], [share / _ONE for share in made.shares]
        self._private = [0] * len(made.decays)  # decaying sums of weighted counts, in steps of the finer lattice
        self._noisy = [0.0] * len(made.decays)  # the same of what the measurement says about weighted counts
        self._sum = 0.0

    def __repr__(self) -> str:
        return f"<BufferedSum: step {self._taken} of {self._mechanism.points}>"

    def _draw(self, value: Any) -> Floats:
        """The sums after each of these counts."""
        made = self._mechanism
        more = next_counts(value, self._taken, made.points)
        if not len(more):
            return np.zeros(0)
        noise = samplers.discrete_gaussian(made._noise._variance, len(more))
        first, self._taken = self._taken, self._taken + len(more)
        of, sums = runs(made.points, made.normalized), np.empty(len(more))
        for place in range(len(more)):
            weight = of.at(first + place)
            measured = self._measure(int(more[place]) * weight) + int(noise[place])
            sums[place] = self._read(measured, weight)
        return sums

    def _measure(self, weighted: int) -> int:
        """The next entry of CWx, rounded to a whole number of steps; the decaying sums go on."""
        made, bits, half = self._buffers, factorization._BITS, _ONE >> 1
        below: int = sum(map(mul, made.shares, self._private))
        shift = _PARAMETER_BITS + _GUARD_BITS
        new = weighted << (bits + _GUARD_BITS)
        faded = map(mul, made.decays, self._private)
        self._private = [((kept + half) >> _PARAMETER_BITS) + new for kept in faded]
        return (weighted << bits) + ((below + (1 << (shift - 1))) >> shift)

    def _read(self, measured: int, weight: int) -> float:
        """The next sum, from the measurement alone: solves Cu = y for the next weighted count."""
        decays, shares = self._rates
        scaled = math.ldexp(float(measured), -factorization._BITS - factorization._WEIGHT_BITS)
        weighted = scaled - sum(map(mul, shares, self._noisy))
        self._noisy = [kept + weighted for kept in map(mul, decays, self._noisy)]
        self._sum += weighted / math.ldexp(weight, -factorization._WEIGHT_BITS)
        return self._sum
