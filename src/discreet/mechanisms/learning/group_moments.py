"""Counts, sums and sums of squares for each group of rows, whose columns have public ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.deviations import calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Block, Floats, RoundedRows, cube_norm, unit_of

PARTS = ("count", "sum", "square")


@dataclass(frozen=True, kw_only=True)
class GroupMoments:
    """Releases, for each of `groups`, the number of rows, Σ x and Σ (x² − ½), column by column, for x in [−1, 1].

    A row is in at most one group. `count`, `sum` and `square` are the standard deviations of the noise on each of these
    numbers. A part that is None is not released. The result is a dict of arrays: groups, or groups × features.

    Promise: measured in deviations of the noise, the contribution of one row has the squared length
    1/count² + Σ x_j²/sum² + Σ (x_j²−½)²/square², which is at most 1/count² + d/sum² + d/(4·square²). A replaced row
    moves the result by twice that if it changes its group, and by once that if it is left out. Within its group, it
    moves it by at most d times the largest p²/sum² + p²(2−p)²/square² for 0 ≤ p ≤ 2, since |x + z| ≤ 2 − p for
    |x − z| = p. k rows move it k times as far.
    Error: the two-sided tail of the noise of each part.
    Source: [T.6.2].
    """

    features: int
    groups: int = 1
    count: Number | None = None
    sum: Number | None = None
    square: Number | None = None

    def __post_init__(self) -> None:
        check_count(self.features, "features")
        check_count(self.groups, "groups")
        if self.sum is None and self.square is None:
            raise InvalidArgument(
                "Give the standard deviation of sum or square. For counts alone, use Histogram.",
                code="missing-argument",
            )
        for part in self._released:
            check_positive(getattr(self, part), part)

    @property
    def _released(self) -> tuple[str, ...]:
        return tuple(part for part in PARTS if getattr(self, part) is not None)

    def _deviation(self, part: str) -> Fraction:
        return exactly(getattr(self, part))

    def _grain(self, part: str) -> Fraction:
        unit = unit_of(cube_norm(self.features))
        return {"count": Fraction(1), "sum": unit, "square": unit * unit}[part]

    def _step(self, part: str) -> Fraction:
        return min(self._grain(part), step_for(self._deviation(part)))

    def _coordinates(self, part: str) -> int:
        return self.groups * (1 if part == "count" else self.features)

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all numbers together, in deviations of their noise."""
        c, s, q = (Fraction(0) if getattr(self, part) is None else 1 / self._deviation(part) ** 2 for part in PARTS)
        squared = c + self.features * (s + q / 4)
        if unit is not None and unit.neighbors == "replace":
            inside = self.features * _furthest(s, q)
            squared = max(inside, squared * min(self.groups, 2))  # with one group it may still be left out
        rows = check_rows(unit, rows_per_person)
        return Sensitivity(rows * sqrt_up(squared), "L2", unit=unit, dimension=self._every)

    @property
    def _every(self) -> int:
        return sum(map(self._coordinates, self._released))

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        coarsest = min((self._deviation(part) / self._step(part)) ** 2 for part in self._released)
        return within_deviations(bound.exact**2, coarsest, self._every, bound.unit)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        features: int,
        shares: Mapping[str, Number],
        groups: int = 1,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee`, if the parts have these shares of the sensitivity to one added
        row.
        """
        if not shares or not set(shares) <= set(PARTS):
            raise InvalidArgument(f"shares must name some of {', '.join(PARTS)}.", code="not-an-option")
        whole = sum((check_positive(share, part) for part, share in shares.items()), Fraction(0))
        reach = {"count": Fraction(1), "sum": Fraction(features), "square": Fraction(features, 4)}
        widths = {part: sqrt_up(reach[part] * whole / exactly(share)) for part, share in shares.items()}

        def make(scale: Fraction) -> Any:
            noise = {part: tidy(significant(scale * width, up=True)) for part, width in widths.items()}
            return cls(features=features, groups=groups, **noise)

        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> tuple[Accuracy, ...]:
        """The error of every number of each released part, in the order of `PARTS`, for all at once."""
        sure = check_confidence(confidence)
        found = []
        for part in self._released:
            noise, many = Gaussian(stddev=tidy(self._deviation(part)), step=self._step(part)), self._coordinates(part)
            amount = noise.error(1 - (1 - sure) * many / self._every, values=many).amount
            found.append(Accuracy(amount=amount, confidence=sure, of="every value"))
        return tuple(found)

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        if value.columns != self.features or value.ranges is None or (value.groups or 1) != self.groups:
            raise InvalidArgument(
                "The rows are not rounded for these groups. Round them with feature_ranges and groups.",
                code="rows-not-rounded",
            )
        exact = dict(zip(PARTS, exact_group_sums(value, self.groups), strict=True))
        return {part: self._noisy(part, exact[part]) for part in self._released}

    def _noisy(self, part: str, exact: NDArray[Any]) -> Floats:
        return noisy_units(exact, self._grain(part), self._step(part), self._deviation(part) ** 2)


def exact_group_sums(rows: RoundedRows, groups: int) -> list[NDArray[Any]]:
    """The counts, Σ x and Σ (x² − ½) of each group. The sums are in whole units and in squared units."""
    half = int(1 / rows.unit) ** 2 // 2

    def of_block(block: Block) -> list[Floats]:
        whole, group = block
        members = (group[:, None] == np.arange(groups)).astype(np.float64)
        return [members.sum(0), members.T @ whole, members.T @ (whole * whole)]

    counts, sums, squares = rows.exact_sums(of_block)
    return [counts, sums, squares - half * counts[:, None]]


def _furthest(s: Fraction, q: Fraction) -> Fraction:
    """The largest s·p² + q·p²(2−p)² for 0 ≤ p ≤ 2, rounded up: at 2, or at the first root of p² − 3p + 2 + s/(2q)."""
    if 2 * s >= q:
        return 4 * s
    p = (3 - sqrt_up(1 - 2 * s / q)) / 2  # accurate to 2^-60, at a point where the slope is 0
    return max(4 * s, (s * p**2 + q * (p * (2 - p)) ** 2) * (1 + Fraction(1, 2**40)))
