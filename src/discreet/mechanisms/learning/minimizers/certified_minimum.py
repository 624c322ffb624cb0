"""The minimizer of a regularized sum of losses with a linear term, to a certified distance.

Rows, weights and slopes are integer multiples of public powers of two. They are cut into digits that are short enough
for every product with the matrix of rows to be exact in doubles, in any order and on any number of threads. The only
error left is the rounding of the slope of each row, which has a public bound. Strong convexity turns the norm of a
gradient into a distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import float_down, power_of_two_below, sqrt_up
from discreet.rows.arrays import one_thread
from discreet.rows.containers import Data

Floats = NDArray[np.float64]
BLOCK = 2**12
"""The number of rows that are summed at once: 12 bits for rows, 24 for features and 16 for a digit of a slope stay
below 2^53.
"""
_FEATURE_BITS, _SLOPE_BITS, _SLOPE_DIGIT = 24, 50, 17


class SmoothLoss(Protocol):
    """A convex function of a score z = x·w and a target y with bounded slope and curvature.

    `derivative` works elementwise in doubles. It is correct to within 2^-50·lipschitz if the score and the target are
    correct to within 2^-52 of 1 + |z| + |y|: eight units in the last place.
    """

    @property
    def lipschitz(self) -> float:
        """The largest absolute slope."""

    @property
    def smoothness(self) -> float:
        """The largest curvature."""

    def derivative(self, z: Any, y: Data) -> Any:
        """The slope in the score."""

    def second(self, z: Any, y: Data) -> Any:
        """The curvature in the score."""


@dataclass(frozen=True)
class Problem:
    """The public part of the problem: J(w) = Σ loss(x·w, y) + (ridge/2)‖w‖² + wall(w) + b·w, with rows of norm at most
    `row_norm`.

    The wall is (ρ/2)(‖w‖ − radius)² beyond the radius and 0 within it. It is so steep that `most_rows` rows cannot push
    the weights an eighth of the radius farther. Slopes are clipped to ±lipschitz and targets to `targets`.
    """

    loss: SmoothLoss
    dimension: int
    row_norm: Fraction
    ridge: Fraction
    radius: Fraction
    targets: tuple[Fraction, Fraction]
    most_rows: int

    @cached_property
    def lipschitz(self) -> Fraction:
        """The largest slope of one row."""
        return Fraction(float(self.loss.lipschitz))

    @cached_property
    def curvature(self) -> Fraction:
        """The most that one row can add to an eigenvalue of the Hessian."""
        return Fraction(float(self.loss.smoothness)) * self.row_norm**2

    @cached_property
    def wall(self) -> Fraction:
        """The curvature of the wall."""
        return 8 * self.most_rows * self.lipschitz * self.row_norm / self.radius

    @property
    def reach(self) -> Fraction:
        """The radius of a ball that no weights leave. Only a linear term larger than all rows together could push them
        so far.
        """
        return 2 * self.radius

    @cached_property
    def row_error(self) -> Fraction:
        """The largest error of one row's slope times its norm in the sum, for weights within reach."""
        score = 1 + self.row_norm * self.reach + max(abs(self.targets[0]), abs(self.targets[1]))
        slope = self.lipschitz / 2**49 + self.curvature / self.row_norm**2 * score / 2**51
        return self.row_norm * slope

    @cached_property
    def tolerance(self) -> Fraction:
        """The bound below which the norm of the true gradient is brought: four times the error that `most_rows` rows
        can cause.
        """
        return 4 * self.most_rows * self.row_error

    @cached_property
    def grid(self) -> Fraction:
        """Weights are integer multiples of this. Rounding to it moves the gradient by at most an eighth of the
        tolerance.
        """
        steepest = self.ridge + self.wall + self.most_rows * self.curvature
        return power_of_two_below(self.tolerance / (8 * sqrt_up(Fraction(self.dimension)) * steepest))

    def distance(self, moved: Fraction) -> Fraction:
        """How far `minimum` may be from the true minimizer, both scaled to within reach, if b is known to within
        `moved`.

        Promise: the gradient at the computed point w is at most tolerance·m + moved, where m = max(1, ‖w‖/reach), and
        the minimizer is within that divided by the ridge. A point beyond the reach is scaled back by the factor m, and
        so is its error, up to 8/7 while (tolerance + moved)/ridge ≤ reach/8. The last term is the rounding to doubles.
        """
        off = (self.tolerance + moved) / self.ridge
        if off > self.reach / 8:
            raise InvalidArgument(
                "ridge is too small to compute the minimizer exactly enough. Increase it, or lower most_rows.",
                code="ridge-too-small",
            )
        return off * Fraction(8, 7) + self.reach / 2**45

    def checked(self, data: Data) -> tuple[Floats, Floats]:
        """X and y as doubles. Errors never quote a value."""
        features = targets = None
        with suppress(AttributeError, TypeError, ValueError):  # its text may contain a value
            features, targets = np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
        if features is None or targets is None:
            raise InvalidArgument("The rows need a table X of numbers and a column y of numbers.", code="wrong-type")
        if features.ndim != 2 or features.shape[1] != self.dimension or targets.shape != features.shape[:1]:
            raise InvalidArgument(
                f"X must have {self.dimension} columns, and y one number for each row.", code="wrong-shape"
            )
        if len(features) > self.most_rows:
            raise InvalidArgument(
                f"There are more rows than most_rows={self.most_rows}. Raise that public bound.", code="too-many-rows"
            )
        return features, targets

    def rows(self, data: Data) -> IntegerRows:
        """The private part of the problem, clipped and rounded row by row."""
        return IntegerRows(self, data)


class IntegerRows:
    """Rows as integer multiples of a public step. Each depends only on itself. Rows that are not finite become
    zeros.
    """

    def __init__(self, problem: Problem, data: Data) -> None:
        features, targets = problem.checked(data)
        self._problem = problem
        step = power_of_two_below(problem.row_norm) / 2 ** (_FEATURE_BITS - 1)
        self._step, self._longest = float(step), float_down(problem.row_norm) * (1 - 2.0**-30)
        self._slope = float(power_of_two_below(problem.lipschitz) / 2 ** (_SLOPE_BITS - 1))
        self._most = float_down(problem.lipschitz)
        self._unit = step * Fraction(self._slope)
        self._features = np.empty_like(features, order="C")
        self._targets = np.empty_like(targets)
        for part in self._blocks(len(features)):
            self._features[part], self._targets[part] = self._whole(features[part], targets[part])

    def __len__(self) -> int:
        return len(self._features)

    def _blocks(self, count: int) -> Iterator[slice]:
        return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))

    def _whole(self, features: Floats, targets: Floats) -> tuple[Floats, Floats]:
        finite = np.isfinite(features).all(axis=1) & np.isfinite(targets)
        features = np.where(finite[:, None], features, 0.0)
        largest = np.abs(features).max(axis=1, initial=0.0)
        part = features / np.where(largest > 0, largest, 1.0)[:, None]
        length = np.sqrt((part * part).sum(axis=1))
        with np.errstate(over="ignore"):  # infinite norms count as long
            long = largest * length > self._longest
        scale = self._longest / np.where(length > 0, length, 1.0)
        clipped = np.where(long[:, None], part * scale[:, None], features)
        low, high = (float(end) for end in self._problem.targets)
        # toward 0, so that no norm grows
        return np.trunc(clipped / self._step), np.clip(np.where(finite, targets, 0.0), low, high)

    def evaluate(self, weights: list[int]) -> tuple[list[Fraction], Floats]:
        """Σ slope·x at these weights, in whole numbers, and Σ curvature·x·xᵗ in doubles."""
        digits = self._weight_digits(weights)
        size = self._problem.dimension
        totals = np.zeros((size, -(-_SLOPE_BITS // _SLOPE_DIGIT)), dtype=object)
        hessian = np.zeros((size, size))
        bend = float(self._problem.loss.smoothness)
        for part in self._blocks(len(self._features)):
            rows, goal = self._features[part], self._targets[part]
            score = np.zeros(len(rows))
            for digit, worth in digits:
                score += (rows @ digit) * worth
            slope = np.nan_to_num(np.clip(self._problem.loss.derivative(score, goal), -self._most, self._most))
            totals += (rows.T @ _digits(np.rint(slope / self._slope))).astype(np.int64).astype(object)
            curve = np.clip(np.nan_to_num(self._problem.loss.second(score, goal)), 0.0, bend)
            hessian += (rows.T * curve) @ rows
        sums = [sum(int(total) << (_SLOPE_DIGIT * k) for k, total in enumerate(row)) * self._unit for row in totals]
        return sums, hessian * self._step**2

    def _weight_digits(self, weights: list[int]) -> list[tuple[Floats, float]]:
        """Digits of the weights, small enough for the products of a whole row to add up below 2^53, and the value of
        each position. The lowest come first, so that adding them up rounds only once.
        """
        bits = 52 - _FEATURE_BITS - (self._problem.dimension - 1).bit_length()
        rest, digits, half = list(weights), [], 1 << (bits - 1)
        worth = self._problem.grid * Fraction(self._step)
        while any(rest):
            low = [((value + half) & ((1 << bits) - 1)) - half for value in rest]
            digits.append((np.array(low, dtype=np.float64), float(worth)))
            rest, worth = [(value - part) >> bits for value, part in zip(rest, low, strict=True)], worth * 2**bits
        return digits


def _digits(whole: Floats) -> Floats:
    """Slopes of up to 50 bits as three columns of digits, each at most 2^16 in size."""
    rest, half, columns = whole.astype(np.int64), 1 << (_SLOPE_DIGIT - 1), []
    for _ in range(-(-_SLOPE_BITS // _SLOPE_DIGIT) - 1):
        low = ((rest + half) & ((1 << _SLOPE_DIGIT) - 1)) - half
        columns.append(low)
        rest = (rest - low) >> _SLOPE_DIGIT
    return np.stack([*columns, rest], axis=1).astype(np.float64)


class _Point:
    """Weights with their gradient, which is exact except for the rounding of the slopes."""

    def __init__(self, problem: Problem, rows: IntegerRows, linear: list[Fraction], weights: list[int]) -> None:
        self.weights = weights
        place = [value * problem.grid for value in weights]
        length = sqrt_up(sum((value * value for value in place), Fraction(0)))
        sums, bends = rows.evaluate(weights)
        beyond = problem.wall * max(Fraction(0), 1 - problem.radius / length) if length else Fraction(0)
        total = [s + (problem.ridge + beyond) * w + b for s, w, b in zip(sums, place, linear, strict=True)]
        self.gradient = np.array([float(value) for value in total])
        self.norm = float(np.linalg.norm(self.gradient)) * (1 + 1e-12)
        self.place, self.times = np.array([float(value) for value in place]), max(1.0, float(length / problem.reach))
        self.hessian = bends + float(problem.ridge + beyond) * np.eye(problem.dimension)
        if beyond:
            along = self.place / float(length)
            self.hessian += float(problem.wall * problem.radius / length) * np.outer(along, along)


def minimum(problem: Problem, data: Data, linear: list[Fraction]) -> Floats:
    """The minimizer of J with the linear term b, scaled to within reach. It is within `problem.distance(…)` of the true
    one.

    Newton's method. A full step is taken if it halves the smallest gradient so far. Otherwise a line search goes down
    until the slope along the line is at most half. J is strongly convex, so for any rows, both can happen only a
    limited number of times before the gradient is small enough. The loop always ends and needs no limit on its steps.
    """
    rows = problem.rows(data)
    enough = float(problem.tolerance) * 0.74  # rounding causes at most a quarter of the tolerance
    with one_thread() if len(rows) > BLOCK else nullcontext():
        here = _Point(problem, rows, linear, [0] * problem.dimension)
        least = here.norm
        while here.norm > enough * here.times:
            here = _lower(problem, rows, linear, here, least, enough)
            least = min(least, here.norm)
    return here.place / here.times


def _lower(
    problem: Problem, rows: IntegerRows, linear: list[Fraction], here: _Point, least: float, enough: float
) -> _Point:
    step = np.linalg.solve(here.hessian, -here.gradient)
    start, low, high, length = float(here.gradient @ step), 0.0, math.inf, 1.0
    while True:
        moved = [w + round(Fraction(float(s)) / problem.grid) for w, s in zip(here.weights, step * length, strict=True)]
        there = _Point(problem, rows, linear, moved)
        slope = float(there.gradient @ step)
        if there.norm <= max(least / 2, enough * there.times) or start / 2 <= slope <= 0:
            return there
        low, high = (length, high) if slope < 0 else (low, length)
        length = 2 * length if math.isinf(high) else (low + high) / 2
