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
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.learning.additive_descent import calibrate_with_ranges, ranges_beside
from discreet.mechanisms.learning.boosted_trees import Unbinned
from discreet.mechanisms.learning.quantile_ranges import QuantileRanges
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import is_pure, plain_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.leaves import Bins, LeafRows

Floats = NDArray[np.float64]
UNIT = Fraction(1, 2**20)
"""Targets between −1 and 1 are rounded to whole multiples of this."""


@dataclass(frozen=True, kw_only=True)
class LeafCounts:
    """Counts the rows of each of `classes` in every leaf of `trees` public trees, or, without classes, all rows and the
    sum of their targets, which are clipped to ±1. With `finding`, ranges of some columns are found first.

    Each tree divides `shape[0]` columns into `shape[1]` parts each. The result is a dict: the `seed` that gives the
    trees, the noisy `values`, trees × classes × leaves, and the `ranges` that were found. Without classes, the values
    are trees × 2 × leaves: counts and sums.

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
    finding: QuantileRanges | None = None

    def __post_init__(self) -> None:
        check_count(self.trees, "trees")
        if not isinstance(self.noise, Gaussian | Laplace) or (UNIT / self.noise._step).denominator != 1:
            raise InvalidArgument(
                "noise must be Gaussian or Laplace, with a step of at most 2^-20. Use for_guarantee.",
                code="part-does-not-fit",
            )
        if self.finding is not None and isinstance(self.noise, Laplace):
            raise InvalidArgument("Ranges are found with Gaussian noise. Declare them.", code="part-does-not-fit")

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all leaves together."""
        return forest_sensitivity(self.trees, self.classes, isinstance(self.noise, Laplace), unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        norm = "L1" if isinstance(self.noise, Laplace) else "L2"
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, norm)
        counted = self.noise.guarantee(bound)
        if self.finding is None:
            return counted
        return compose([counted, self.finding.guarantee(self.finding.sensitivity(bound.unit, self._rows(bound)))])

    def _rows(self, bound: Sensitivity) -> int:
        """How many rows a unit has that moves the leaves this far in L2. A root that was rounded up is no row."""
        one = _moved(self.trees, self.classes) * (2 if bound.replaced else 1)
        return max(1, math.ceil(math.sqrt(bound.exact**2 / one) - 1e-9))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        trees: int,
        classes: int | None,
        find: int = 0,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        **described: Any,
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace for pure ε, otherwise Gaussian."""
        pure = is_pure(guarantee)
        if pure and find:
            raise InvalidArgument(
                "Ranges are found with Gaussian noise. Declare all ranges, or give a delta, such as 1e-6.",
                code="needs-delta",
            )
        bound = forest_sensitivity(trees, classes, pure, unit, rows_per_person)
        noise = _calibrated(guarantee, bound, trees, classes, pure, find)
        finding = ranges_beside(noise, 1, _moved(trees, classes), find) if find else None
        return cls(trees=trees, classes=classes, noise=noise, finding=finding, **described)

    def error(self, confidence: float) -> Accuracy:
        """How far any of the released numbers is from the truth."""
        leaves = math.prod([self.shape[1]] * self.shape[0])
        return self.noise.error(confidence, values=self.trees * leaves * (self.classes or 2))

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: Unbinned) -> dict[str, Any]:
        ranges = None if self.finding is None else self.finding._draw(value.unknown)["ranges"]
        rows = value.binned(ranges)
        seed = int(samplers.uniform_below(2**62, 1)[0])
        found = []
        for number in range(self.trees):
            tree = self.bins.tree(seed, number, [self.shape])
            exact = self._exact(rows, rows.places(tree), tree.leaves)
            found.append(self._noisy(exact))
        most = max(one.shape[1] for one in found)
        values = np.zeros((self.trees, self.classes or 2, most))
        for place, one in enumerate(found):
            values[place, :, : one.shape[1]] = one
        return {"seed": seed, "values": values, "ranges": ranges}

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
    rows, moved = check_count(rows_per_person, "rows_per_person"), _moved(trees, classes)
    twice = 2 if who.neighbors == "replace" else 1
    amount = Fraction(moved * twice * rows) if pure else rows * sqrt_up(Fraction(moved * twice))
    grain = Fraction(1) if classes is not None else UNIT
    return Sensitivity(amount, "L1" if pure else "L2", unit=unit, dimension=max(2, moved * twice * rows), grain=grain)


@lru_cache(maxsize=64)
def _calibrated(
    guarantee: Guarantee, bound: Sensitivity, trees: int, classes: int | None, pure: bool, find: int
) -> Any:
    """The least noise, on a lattice that contains all sums. Cached: cross-validation asks for it often."""
    family: Any = Laplace if pure else Gaussian
    rough = family.for_guarantee(guarantee, sensitivity=bound)
    step = min(rough._step, UNIT)
    alone = rough if step == rough._step else family.for_guarantee(guarantee, sensitivity=bound, step=step)
    if not find:
        return alone

    def make(size: Fraction) -> Any:
        noise = Gaussian._make(size, step)
        finding = ranges_beside(noise, 1, _moved(trees, classes), find)
        return LeafCounts(
            bins=Bins((1,), (True,)), trees=trees, shape=(1, 1), classes=classes, noise=noise, finding=finding
        )

    return calibrate_with_ranges(make, bound, guarantee, alone).noise
