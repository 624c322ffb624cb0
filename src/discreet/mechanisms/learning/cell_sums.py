"""Sums of rows in cells: what one row can move, and the noise, for several stages of one release.

A stage divides the rows among cells, whole or in shares of one, and releases a few parts for each cell: the number of
rows, sums of signed numbers, sums of numbers that are not negative. Clusters and mixtures are a few such stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import exactly, significant, sqrt_up
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.unit import Unit, check_rows
from discreet.mechanisms.learning.deviations import D, calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.noise.lattice import from_lattice, step_for
from discreet.mechanisms.protocol import is_pure
from discreet.queries.sensitivity import Sensitivity
from discreet.rows.rounding import Floats

LAWS = ("gaussian", "laplace")


def law_for(guarantee: Guarantee) -> str:
    """Gaussian noise, or Laplace noise if the guarantee is pure."""
    return "laplace" if is_pure(guarantee) else "gaussian"


def check_law(noise: str) -> str:
    if noise not in LAWS:
        raise InvalidArgument('noise must be "gaussian" or "laplace".', code="not-an-option")
    return noise


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is released for each cell. One row moves it by at most `length` in the L2 norm and `total` in the L1 norm,
    if all of the row is in one cell. The exact part is a whole multiple of `grain`. `signed` parts can point anywhere.
    Of the others, the inner product of two rows is never negative. `share` is its share of all that is released.
    """

    grain: Fraction
    length: Fraction
    total: Fraction
    share: Fraction
    coordinates: int
    signed: bool = False


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Parts for each of at most `cells` cells, released `times` times, with noise of `scale`.

    The first part is the number of rows. With one cell, a row is in it or left out.

    Promise: a row is in one cell, or divided among cells with weights that are not negative and add up to at most 1. So
    it moves each part by at most its `length`, and all parts by the root of the sum of their squares, in deviations of
    their noise: weights are no longer than their sum. Let a = (w_i·v_i) and b = (w'_i·v'_i) be what two rows contribute
    to the cells i. Then |a − b|² = |a|² + |b|² − 2·Σ w_i·w'_i·(v_i·v'_i), where the weights' products add up to at
    most 1 and v_i·v'_i is at least the count's part minus the signed parts. So a replaced row moves the square by at
    most twice that of an added row, or, if v_i·v'_i is negative, by twice the parts other than the count, and twice
    more the signed ones. In the L1 norm, it moves twice as far.
    """

    parts: tuple[Part, ...]
    scale: Fraction
    noise: str
    cells: int
    times: int = 1

    def size(self, part: Part) -> Fraction:
        """The deviation of the Gaussian noise on this part, or the scale of its Laplace noise."""
        if self.noise == "gaussian":
            return significant(self.scale * part.length / _root_down(part.share), up=True)
        return significant(self.scale * part.total / part.share, up=True)

    def step(self, part: Part) -> Fraction:
        return min(part.grain, step_for(self.size(part)))

    def moved(self, replaced: bool) -> Fraction:
        """How far one row moves all repetitions: squared for Gaussian noise, in deviations; in scales for Laplace."""
        if self.noise == "laplace":
            return (1 + replaced) * self.times * sum((part.total / self.size(part) for part in self.parts), Fraction(0))
        squares = [(part.length / self.size(part)) ** 2 for part in self.parts]
        signed = sum((a for a, part in zip(squares, self.parts, strict=True) if part.signed), Fraction(0))
        whole, rest = sum(squares, Fraction(0)), sum(squares[1:], Fraction(0))
        if replaced:
            whole = max(whole * min(self.cells, 2), 2 * rest + 2 * signed)
        return self.times * whole

    @property
    def coordinates(self) -> int:
        return self.times * self.cells * sum(part.coordinates for part in self.parts)

    @property
    def coarsest(self) -> Fraction:
        """The smallest variance of a part, in squared steps."""
        return min((self.size(part) / self.step(part)) ** 2 for part in self.parts)

    def noisy(self, exact: Sequence[NDArray[Any]]) -> list[Floats]:
        """The parts with fresh noise, from whole multiples of their grains."""
        return [self._noisy(part, whole) for part, whole in zip(self.parts, exact, strict=True)]

    def _noisy(self, part: Part, whole: NDArray[Any]) -> Floats:
        size, step = self.size(part), self.step(part)
        if self.noise == "gaussian":
            return noisy_units(whole, part.grain, step, size**2)
        flat = np.asarray(whole, dtype=object).reshape(-1) * int(part.grain / step)
        drawn = flat + samplers.discrete_laplace(size / step, flat.size).astype(object)
        return from_lattice(drawn, step).astype(np.float64).reshape(np.shape(whole))

    def deviation(self, place: int) -> float:
        """The standard deviation of the noise on one number of a part."""
        return float(self.size(self.parts[place])) * (1.0 if self.noise == "gaussian" else 2**0.5)


def stages_sensitivity(stages: Sequence[Stage], unit: Unit | None, rows_per_person: int) -> Sensitivity:
    """How far one unit moves all stages together, in deviations or scales of their noise."""
    replaced = unit is not None and unit.neighbors == "replace"
    moved, rows = sum((stage.moved(replaced) for stage in stages), Fraction(0)), check_rows(unit, rows_per_person)
    every = sum(stage.coordinates for stage in stages)
    if stages[0].noise == "laplace":
        return Sensitivity(rows * moved, "L1", unit=unit, dimension=every)
    return Sensitivity(rows * sqrt_up(moved), "L2", unit=unit, dimension=every)


def stages_guarantee(stages: Sequence[Stage], bound: Sensitivity) -> Guarantee:
    """The guarantee of all stages, adaptively one after another, for this distance."""
    if stages[0].noise == "laplace":
        return Pure(epsilon=bound.exact, protects=bound.unit)
    coarsest = min(stage.coarsest for stage in stages)
    return within_deviations(bound.exact**2, coarsest, sum(stage.coordinates for stage in stages), bound.unit)


def shares_of(**weights: Any) -> dict[str, Fraction]:
    """Shares in proportion to these weights, rounded down, so that they add up to at most 1."""
    whole = sum((exactly(weight) for weight in weights.values()), Fraction(0))
    return {name: Fraction(int(exactly(weight) / whole * 2**30), 2**30) for name, weight in weights.items()}


def _root_down(share: Fraction) -> Fraction:
    return 1 / sqrt_up(1 / share)


def calibrated_scale(make: Callable[[Fraction], D], guarantee: Guarantee, unit: Unit | None, rows_per_person: int) -> D:
    """The mechanism of the family `make(scale)` with the least noise that keeps `guarantee`, pure or not."""
    if not is_pure(guarantee):
        return calibrate_noise(make, guarantee, unit, rows_per_person)
    epsilon = exactly(guarantee.epsilon)
    start = make(Fraction(1)).sensitivity(unit, rows_per_person).exact / epsilon
    for more in (0, Fraction(1, 10**9), Fraction(1, 10**7), Fraction(1, 10**5)):
        made = make(start * (1 + more))
        if made.sensitivity(unit, rows_per_person).exact <= epsilon:
            break
    return made
