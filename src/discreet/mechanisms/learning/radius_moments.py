"""Noisy second moments within a radius that is found first: less noise if rows are shorter than they may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.deviations import calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.learning.moments import Moments
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Block, Floats, RoundedRows

RINGS = 32
"""Lengths of rows are counted in rings, from the norm down by a factor of 2^¼."""
SHARE = Fraction(1, 20)
"""What the rings cost of all."""


@dataclass(frozen=True, kw_only=True)
class RadiusMoments:
    """Counts rows by their length first, chooses a radius, and releases the `moments` of rows shortened to it.

    `rings` is the standard deviation of the noise on the number of rows in each of 32 rings. The radius is where the
    noise of the second moments, which grows with its square, and what shortening takes away, estimated from the rings,
    are least together; it is the norm itself if rows are as long as they may be. The result is that of `moments`, with
    `radius`. Its noise is that of `moments` times the radius over the norm for sums, and the square of that for Σ x xᵀ.

    Promise: a row is in one ring, so it moves the rings by 1/rings, or by √2/rings if it is replaced. The radius
    depends on the noisy rings alone. Rows that are shortened to it and measured in it are rows of at most the norm, so
    the moments have their own promise. Both together are one Gaussian mechanism at the root of the sum of squares.
    Error: that of `moments`: of every entry about the moments of the shortened rows.
    Source: Dwork-Talwar-Thakurta-Zhang 2014, with rows clipped at a radius from a noisy histogram.
    """

    moments: Moments
    rings: Number

    def __post_init__(self) -> None:
        check_positive(self.rings, "rings")
        if self.moments.square is None:
            raise InvalidArgument("moments must release square, the noise of which decides.", code="missing-argument")

    @property
    def features(self) -> int:
        return self.moments.features

    @property
    def feature_norm(self) -> Number:
        return self.moments.feature_norm

    @property
    def target_bound(self) -> Number | None:
        return self.moments.target_bound

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move rings and moments together, in deviations of their noise."""
        rows = check_rows(unit, rows_per_person)
        own, replaced = self.moments.sensitivity(unit and unit.one), unit is not None and unit.neighbors == "replace"
        squared = own.exact**2 + (1 + replaced) / exactly(self.rings) ** 2
        return Sensitivity(rows * sqrt_up(squared), "L2", unit=unit, dimension=own.dimension + RINGS)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        coarsest = min(self.moments.coarsest, (exactly(self.rings) / self._step) ** 2)
        return within_deviations(bound.exact**2, coarsest, self.moments.coordinates + RINGS, bound.unit)

    @property
    def _step(self) -> Fraction:
        return step_for(exactly(self.rings))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        features: int,
        shares: Mapping[str, Number],
        feature_norm: Number = 1,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee`, if the parts of the moments have these shares of what is left."""
        norm = check_bound(feature_norm, "feature_norm")
        family = Moments.family(features=features, shares=shares, feature_norm=norm)
        less, rings = sqrt_up(1 / (1 - SHARE)), sqrt_up(1 / SHARE)

        def make(scale: Fraction) -> Any:
            return cls(moments=family(scale * less), rings=tidy(significant(scale * rings, up=True)))

        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    def error(self, confidence: float) -> tuple[Accuracy, ...]:
        return self.moments.error(confidence)

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        self.moments.check_rows(value)
        norm, rows = float(exactly(self.moments.feature_norm)), value.held()
        most = math.floor(exactly(self.moments.feature_norm) / value.unit)
        edges = float(most) * 2.0 ** (-np.arange(RINGS) / 4)
        exact = exact_ring_counts(rows, np.floor(edges**2))
        seen = noisy_units(exact, Fraction(1), self._step, exactly(self.rings) ** 2)
        part = self._chosen(seen)
        drawn = self.moments.draw_sums(_Shortened(rows, part, most))
        scaled = {"square": part**2, "product": part, "sum": part}
        return {name: answer * scaled.get(name, 1.0) for name, answer in drawn.items()} | {"radius": norm * part}

    def _chosen(self, rings: Floats) -> float:
        """The radius as a part of the norm, from the noisy counts. `rings[j]` is the number of rows between two
        edges."""
        d, norm = self.moments.features, float(exactly(self.moments.feature_norm))
        squares = 2.0 ** (-np.arange(RINGS) / 2)
        # counts that noise explains are left out: they would keep the radius at the norm
        rows = np.maximum(rings - float(exactly(self.rings)), 0.0)
        noise = float(exactly(self.moments.square)) / norm**2 * math.sqrt(2 * d)
        cut = [float((rows * np.maximum(squares - square, 0.0)).sum()) for square in squares]
        return float(math.sqrt(squares[int(np.argmin(np.array(cut) + noise * squares))]))


class _Shortened:
    """Rows measured in a part of the norm, and shortened to it."""

    def __init__(self, rows: RoundedRows, part: float, most: int) -> None:
        self._rows, self._part, self._most = rows, part, most

    def exact_sums(self, parts: Callable[[Block], list[Floats]]) -> list[NDArray[Any]]:
        part, most = self._part, self._most

        def of_block(block: Block) -> list[Floats]:
            return parts((shortened(block[0], part, most), block[1]))

        return self._rows.exact_sums(of_block)


def shortened(whole: Floats, part: float, most: int) -> Floats:
    """Rows divided by `part`, with a length of at most `most`, in whole units. All rows are unchanged if it is 1.

    Promise: a row depends on that row alone, and its length after rounding is at most `most`.
    """
    if part == 1.0:
        return whole
    room = (most - math.sqrt(whole.shape[1]) / 2) * (1 - 2.0**-40)
    length = np.sqrt((whole * whole).sum(1))  # of integers: exact in any order
    return np.asarray(np.rint(whole * np.minimum(1 / part, room / np.maximum(length, 1.0))[:, None]))


def exact_ring_counts(rows: RoundedRows, edges: Floats) -> NDArray[Any]:
    """How many rows are in each ring: within edge j, and not within the next. Edges are squared, in squared units."""

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        squared = (whole * whole).sum(1)
        ring = (squared[:, None] <= edges[1:]).sum(1)[np.isfinite(goal)]
        return [np.bincount(ring, minlength=len(edges)).astype(np.float64)]

    return rows.exact_sums(of_block)[0]
