"""What is measured of one column besides the total: an integer matrix, how much one row moves it, and its inverse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument

Asked = Literal["cells", "prefixes", "ranges"]
Floats = NDArray[np.float64]

TILTS = (0.0, 0.1, 1.0)
"""Additional weights of the total in questions about one column, as parts of the mean weight. Which one is best depends
on how many sets share their totals.
"""
LARGEST = 1024
"""Matrices are optimized for at most this many values."""
UNIT = 2**12
"""Matrices of ordered columns are rounded to multiples of 1/UNIT. This costs less than 0.1% of the variance."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Basis:
    """The matrix R of a column of n values, in units of 1/`unit`, where R and the row of ones determine all counts.

    The counts are total·`lift` + `inverse`·(R·counts), because the inverse of R under a row of ones is (lift, inverse).
    All numbers about what one row moves are computed from the integers of R, so no rounding makes them wrong.
    """

    size: int
    unit: int
    kept: Fraction
    """The largest squared length of a column of R: what an added row moves."""
    opposed: Fraction
    """The smallest product of two columns of R. It is negative, or 0."""
    largest: int
    """No entry of R, in units, is larger."""
    asked: Asked
    matrix: NDArray[np.int64] | None = None
    """None: n − J, which is applied without a matrix."""
    lift: Floats
    """One number where all are equal."""
    inverse: Floats | None = None

    def measure(self, counts: NDArray[Any], axis: int) -> NDArray[Any]:
        """R·counts along one axis, in units: whole numbers."""
        if self.matrix is None:
            return np.asarray(self.size * counts - counts.sum(axis=axis, keepdims=True))
        matrix = self.matrix.astype(counts.dtype)
        return np.moveaxis(np.tensordot(matrix, counts, axes=(1, axis)), 0, axis)

    def restore(self, measured: Floats, axis: int) -> Floats:
        """The counts without their total, from R·counts."""
        if self.inverse is None:
            return np.asarray(measured - measured.mean(axis=axis, keepdims=True))
        return np.moveaxis(np.tensordot(self.inverse, measured, axes=(1, axis)), 0, axis)

    def spread(self, low: int, high: int) -> tuple[float, float]:
        """For the count of the values low … high−1: its variance if R is measured with noise of variance 1, and the
        square of its part of the total.
        """
        if self.inverse is None:
            share = (high - low) / self.size
            return (high - low) * (1 - share), share**2
        return float((self.inverse[low:high].sum(axis=0) ** 2).sum()), float(self.lift[low:high].sum()) ** 2

    @cached_property
    def spreads(self) -> tuple[Floats, Floats, Floats]:
        """Both numbers for all questions about the column, and how many questions each pair stands for."""
        if self.inverse is None:
            return np.array([1 - 1 / self.size]), np.array([1 / self.size**2]), np.array([float(self.size)])
        sums, shares = np.cumsum(self.inverse, axis=0), np.cumsum(self.lift)
        covariance = sums @ sums.T
        variances = np.diag(covariance)
        if self.asked == "ranges":
            low, high = np.triu_indices(self.size, 1)
            ranges = variances[low] + variances[high] - 2 * covariance[low, high]
            variances, shares = (
                np.concatenate([variances, ranges]),
                np.concatenate([shares, shares[high] - shares[low]]),
            )
        return variances, shares**2, np.ones(len(variances))

    def grouped(self, most: int) -> tuple[Floats, Floats, Floats]:
        """Bounds in place of the spreads: the largest of both numbers in each of at most `most` groups of questions."""
        variances, shares, times = self.spreads
        if len(variances) <= most:
            return self.spreads
        starts = np.linspace(0, len(variances), max(1, most), endpoint=False).astype(np.int64)
        order = np.argsort(variances)
        largest = [np.maximum.reduceat(numbers[order], starts) for numbers in (variances, shares)]
        return largest[0], largest[1], np.add.reduceat(times[order], starts)

    @cached_property
    def frontier(self) -> Floats:
        """Both numbers for the questions that can be the worst: the corners of the upper right hull of all pairs."""
        variances, shares, _ = self.spreads
        order = np.lexsort((-shares, -variances))
        variances, shares = variances[order], shares[order]
        larger = np.append(True, shares[1:] > np.maximum.accumulate(shares)[:-1])
        corners: list[tuple[float, float]] = []
        for v, s in zip(variances[larger].tolist(), shares[larger].tolist(), strict=True):
            while len(corners) > 1:
                (v0, s0), (v1, s1) = corners[-2:]
                if (v1 - v0) * (s - s0) > (s1 - s0) * (v - v0):
                    break
                corners.pop()
            corners.append((v, s))
        return np.array(corners)

    @cached_property
    def sums(self) -> tuple[float, float, int]:
        """The sums of both numbers over all questions, and the number of questions."""
        variances, shares, times = self.spreads
        return math.fsum(times * variances), math.fsum(times * shares), int(times.sum())


@lru_cache(maxsize=256)
def cells_basis(size: int) -> Basis:
    """The basis for single cells: n − J in units of 1/n, which is optimal. Source: Xiao-He-Zhang-Kifer 2023."""
    return Basis(
        size=size,
        unit=size,
        kept=1 - Fraction(1, size),
        opposed=-Fraction(1, size),
        largest=size,
        asked="cells",
        lift=np.full(1, 1 / size),
    )


@lru_cache(maxsize=64)
def ordered_basis(size: int, asked: Asked, tilt: float, unit: int) -> Basis:
    """The basis for all prefixes or all ranges of an ordered column.

    Of all strategies S = XᵀX with columns of length at most 1, take the one with the smallest sum of variances of the
    questions, with an additional weight of the total. S minus as much of the total as possible is RᵀR, and R is rounded
    to multiples of 1/`unit`. Source: He et al. 2026 (ResidualPlanner+), where tilt is 0.
    """
    if size > LARGEST:
        raise InvalidArgument(
            f"A column that is asked as prefixes or ranges has at most {LARGEST} values. Merge values, or ask it as "
            "cells.",
            code="too-large",
        )
    strategy = _strategy(size, asked, tilt)
    share = 1 / float(np.linalg.solve(strategy, np.ones(size)).sum())
    rest = (strategy - share) / (1 - share)
    corner = np.linalg.cholesky(rest[:-1, :-1])
    real = np.hstack([corner.T, np.linalg.solve(corner, rest[:-1, -1:])])
    matrix = np.rint(real * unit).astype(np.int64)
    matrix.setflags(write=False)
    products = matrix.T @ matrix
    inverse = np.linalg.inv(np.vstack([np.ones(size), matrix / unit]))
    return Basis(
        size=size,
        unit=unit,
        kept=Fraction(int(products.max()), unit**2),  # the largest product of two columns is a squared length
        opposed=Fraction(min(0, int(products.min())), unit**2),
        largest=int(np.abs(matrix).max()),
        asked=asked,
        matrix=matrix,
        lift=inverse[:, 0],
        inverse=inverse[:, 1:],
    )


def _strategy(size: int, asked: Asked, tilt: float) -> Floats:
    """S with diagonal at most 1 and nearly the smallest trace of V·S⁻¹, where V are the questions.

    If the columns have weights w with sum 1 and D = diag(√w), the best S for Σ w·diag(S) ≤ 1 is D⁻¹(DVD)^½D⁻¹. It is
    the best of all if its diagonal is constant. So the weights of larger entries grow until all entries agree within
    0.02%; what is lost by this is at most as much.
    """
    from scipy.linalg import eigh  # MRRR, which waits less for other threads than the method of numpy

    places = np.arange(size)
    low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
    questions = (size - high) * (low + 1.0 if asked == "ranges" else 1.0)
    questions = questions + tilt * questions.mean()
    weights = np.full(size, 1 / size)
    for _ in range(100):
        root = np.sqrt(weights)
        values, vectors = eigh(root[:, None] * questions * root)
        values = np.sqrt(np.maximum(values, 0))
        diagonal = (vectors**2 @ values) / weights
        if diagonal.max() <= (1 + 2e-4) * values.sum():
            break
        weights = weights * diagonal**2.5
        weights /= weights.sum()
    return np.asarray((vectors * values) @ vectors.T / np.outer(root, root) / diagonal.max())
