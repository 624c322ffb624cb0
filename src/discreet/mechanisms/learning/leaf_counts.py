"""Random forests: what is in the leaves of public random trees, counted with noise in one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import check_count, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import is_pure, plain_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.gradients.leaves import Bins, LeafRows

Floats = NDArray[np.float64]
UNIT = Fraction(1, 2**20)
"""Targets between −1 and 1 are rounded to whole multiples of this."""


@dataclass(frozen=True, kw_only=True)
class LeafCounts:
    """Counts the rows of each of `classes` in every leaf of `trees` public trees, or, without classes, all rows and the
    sum of their targets, which are clipped to ±1.

    Each tree divides `shape[0]` columns into `shape[1]` parts each. The result is a dict: the `seed` that gives the
    trees, and the noisy `values`, trees × classes × leaves. Without classes, the values are trees × 2 × leaves: counts
    and sums.

    Promise: a row is in one leaf of each tree. So it moves the counts by at most √trees in L2 and by `trees` in L1,
    and counts with sums by √(2·trees) and 2·trees. A replaced row moves them by √2 times that in L2, and twice that in
    L1. The trees do not depend on the rows.
    Error: that of the noise, for all leaves at once.
    """

    bins: Bins
    trees: int
    shape: tuple[int, int]
    classes: int | None
    noise: Gaussian | Laplace

    def __post_init__(self) -> None:
        check_count(self.trees, "trees")
        if not isinstance(self.noise, Gaussian | Laplace) or (UNIT / self.noise._step).denominator != 1:
            raise InvalidArgument(
                "noise must be Gaussian or Laplace, with a step of at most 2^-20. Use for_guarantee.",
                code="part-does-not-fit",
            )

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all leaves together."""
        return forest_sensitivity(self.trees, self.classes, isinstance(self.noise, Laplace), unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        norm = "L1" if isinstance(self.noise, Laplace) else "L2"
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, norm)
        return self.noise.guarantee(bound)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        trees: int,
        classes: int | None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        **described: Any,
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace for pure ε, otherwise Gaussian."""
        pure = is_pure(guarantee)
        bound = forest_sensitivity(trees, classes, pure, unit, rows_per_person)
        return cls(trees=trees, classes=classes, noise=_calibrated(guarantee, bound, pure), **described)

    def error(self, confidence: float) -> Accuracy:
        """How far any of the released numbers is from the truth."""
        leaves = math.prod([self.shape[1]] * self.shape[0])
        return self.noise.error(confidence, values=self.trees * leaves * (self.classes or 2))

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: LeafRows) -> dict[str, Any]:
        seed = int(samplers.uniform_below(2**62, 1)[0])
        found = []
        for number in range(self.trees):
            tree = self.bins.tree(seed, number, [self.shape])
            exact = self._exact(value, value.places(tree), tree.leaves)
            found.append(self._noisy(exact))
        most = max(one.shape[1] for one in found)
        values = np.zeros((self.trees, self.classes or 2, most))
        for place, one in enumerate(found):
            values[place, :, : one.shape[1]] = one
        return {"seed": seed, "values": values}

    def _exact(self, rows: LeafRows, places: NDArray[np.intp], leaves: int) -> NDArray[Any]:
        """What is in the leaves, in whole `UNIT`s."""
        if self.classes is not None:
            return rows.counts(places, leaves, self.classes) * UNIT.denominator
        found = rows.totals(places, leaves, UNIT)
        found[0] *= UNIT.denominator
        return found

    def _noisy(self, exact: NDArray[Any]) -> Floats:
        step = self.noise._step
        units = exact.reshape(-1).astype(object) * int(UNIT / step)
        noisy = from_lattice(units + self.noise._noise(exact.size).astype(object), step)
        return np.asarray(noisy, dtype=np.float64).reshape(exact.shape)


def _moved(trees: int, classes: int | None) -> int:
    """The squared distance by which a row moves all leaves, and also the distance in L1."""
    return trees * (1 if classes is not None else 2)


def forest_sensitivity(
    trees: int, classes: int | None, pure: bool, unit: Unit | None = None, rows_per_person: int = 1
) -> Sensitivity:
    """How far one unit can move all leaves of all trees: in L1 for Laplace noise, in L2 for Gaussian."""
    who = row() if unit is None else unit
    rows, moved = check_rows(who, rows_per_person), _moved(trees, classes)
    twice = 2 if who.neighbors == "replace" else 1
    amount = Fraction(moved * twice * rows) if pure else rows * sqrt_up(Fraction(moved * twice))
    grain = Fraction(1) if classes is not None else UNIT
    return Sensitivity(amount, "L1" if pure else "L2", unit=unit, dimension=max(2, moved * twice * rows), grain=grain)


@lru_cache(maxsize=64)
def _calibrated(guarantee: Guarantee, bound: Sensitivity, pure: bool) -> Any:
    """The least noise, on a lattice that contains all sums. Cached: cross-validation asks for it often."""
    family: Any = Laplace if pure else Gaussian
    rough = family.for_guarantee(guarantee, sensitivity=bound)
    step = min(rough._step, UNIT)
    return rough if step == rough._step else family.for_guarantee(guarantee, sensitivity=bound, step=step)
