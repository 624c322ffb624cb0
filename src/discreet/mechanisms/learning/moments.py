"""Noisy second moments: one release, from which regressions, principal components and means are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_bound, check_count, check_positive, exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.deviations import calibrate_noise, noisy_units, within_deviations
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.lattice import step_for
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.rounding import Block, Floats, RoundedRows, unit_of

PARTS = ("square", "product", "sum", "target", "count")
"""The parts that can be released: Σ x xᵀ, Σ x·y, Σ x, Σ y and the number of rows."""


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Releases moments of rows x of norm ≤ `feature_norm` with targets |y| ≤ `target_bound`, each with its own noise.

    `square` is the standard deviation of the noise on the diagonal of Σ x xᵀ. Off the diagonal it is that over √2,
    because the matrix is symmetric. `product`, `sum`, `target` and `count` are those of Σ x·y, Σ x, Σ y and the number
    of rows. A part that is None is not released. The result is a dict with an array or a number for each part.

    Promise: measured in deviations of the noise, the contribution of one row has the squared length ‖x‖⁴/square² +
    ‖x‖²y²/product² + ‖x‖²/sum² + y²/target² + 1/count², since Σ_i d_ii²/s² + Σ_{i<j} d_ij²/(s²/2) is ‖D‖²/s² in the
    Frobenius norm and ‖x xᵀ‖ = ‖x‖². Noise with several deviations equals noise with one deviation on scaled
    coordinates. So the result has the curve of a Gaussian mechanism at that distance, plus the slack of the coarsest
    lattice. A replaced row moves the result by the distance between two such points, squared at most `2·max K(p,p) −
    2·min K(p,q)` for the kernel K of the moments, or by the length of one of them if the row is left out because of a
    cell that is not a number. k rows move it by k times as much.
    Error: the two-sided tail of the noise of each part.
    Source: [T.6.2]; Dwork-Talwar-Thakurta-Zhang 2014 (Analyze Gauss), with half of their variance off the diagonal,
    which the Frobenius norm allows.
    """

    features: int
    feature_norm: Number = 1
    target_bound: Number | None = None
    square: Number | None = None
    product: Number | None = None
    sum: Number | None = None
    target: Number | None = None
    count: Number | None = None

    def __post_init__(self) -> None:
        check_count(self.features, "features")
        check_bound(self.feature_norm, "feature_norm")
        if self.target_bound is not None:
            check_bound(self.target_bound, "target_bound")
        elif self.product is not None or self.target is not None:
            raise InvalidArgument(
                "Moments with the target need target_bound, the largest size of a target.", code="missing-argument"
            )
        if not self._released:
            raise InvalidArgument(
                f"Give the deviation of at least one of {', '.join(PARTS[:4])}.", code="missing-argument"
            )
        for part in PARTS:
            if getattr(self, part) is not None:
                check_positive(getattr(self, part), part)

    @property
    def _released(self) -> tuple[str, ...]:
        chosen = tuple(part for part in PARTS if getattr(self, part) is not None)
        return () if chosen == ("count",) else chosen

    def _deviation(self, part: str) -> Fraction:
        return exactly(getattr(self, part))

    def _grain(self, part: str) -> Fraction:
        """The unit of the exact part: it is an integer multiple of this."""
        row = unit_of(self.feature_norm)
        goal = Fraction(1) if self.target_bound is None else unit_of(self.target_bound)
        return {"square": row * row, "product": row * goal, "sum": row, "target": goal, "count": Fraction(1)}[part]

    def _step(self, part: str) -> Fraction:
        return min(self._grain(part), step_for(self._deviation(part)))

    def _coordinates(self, part: str) -> int:
        d = self.features
        return {"square": d * (d + 1) // 2, "product": d, "sum": d, "target": 1, "count": 1}[part]

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move all parts together, in deviations of their noise."""
        a, p, s, t, c = (
            Fraction(0) if getattr(self, part) is None else 1 / self._deviation(part) ** 2 for part in PARTS
        )
        x, y = exactly(self.feature_norm) ** 2, exactly(self.target_bound or 0) ** 2
        own = a * x * x + p * x * y + s * x + t * y
        squared = own + c
        if unit is not None and unit.neighbors == "replace":  # replaced by another row, or by one that is left out
            squared = max(squared, 2 * (own - min(_lowest(a, s + p * u, x) + t * u for u in (-y, y))))
        rows = check_rows(unit, rows_per_person)
        return Sensitivity(
            rows * sqrt_up(squared), "L2", unit=unit, dimension=sum(map(self._coordinates, self._released))
        )

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        return within_deviations(bound.exact**2, self.coarsest, self.coordinates, bound.unit)

    @property
    def coarsest(self) -> Fraction:
        """The smallest variance of an entry, in squared steps of its lattice."""
        coarsest = min((self._deviation(part) / self._step(part)) ** 2 for part in self._released)
        return coarsest / (1 if self.square is None else 2)

    @property
    def coordinates(self) -> int:
        """How many numbers are released."""
        return sum(map(self._coordinates, self._released))

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        features: int,
        shares: Mapping[str, Number],
        feature_norm: Number = 1,
        target_bound: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The least noise that keeps `guarantee`, if the parts have these shares of the sensitivity to one added
        row.
        """
        make: Any = cls.family(features=features, shares=shares, feature_norm=feature_norm, target_bound=target_bound)
        found: Self = calibrate_noise(make, guarantee, unit, rows_per_person)
        return found

    @classmethod
    def family(
        cls,
        *,
        features: int,
        shares: Mapping[str, Number],
        feature_norm: Number = 1,
        target_bound: Number | None = None,
    ) -> Callable[[Fraction], Self]:
        """The moments of a scale: one added row moves all parts by 1/scale, in deviations, divided by these shares."""
        if not shares or not set(shares) <= set(PARTS):
            raise InvalidArgument(f"shares must name some of {', '.join(PARTS)}.", code="not-an-option")
        x, y = check_bound(feature_norm, "feature_norm"), exactly(1 if target_bound is None else target_bound)
        reach = {"square": x * x, "product": x * y, "sum": x, "target": y, "count": Fraction(1)}
        whole = sum((check_positive(share, part) for part, share in shares.items()), Fraction(0))
        widths = {part: reach[part] * sqrt_up(whole / exactly(share)) for part, share in shares.items()}

        def make(scale: Fraction) -> Any:
            noise: dict[str, Any] = {part: tidy(significant(scale * width, up=True)) for part, width in widths.items()}
            return cls(features=features, feature_norm=feature_norm, target_bound=target_bound, **noise)

        return make

    # --- how good it is -------------------------------------------------------------------------------------

    def error(self, confidence: float) -> tuple[Accuracy, ...]:
        """The error of every entry of each released part, in the order of `PARTS`, for all at once."""
        sure = check_confidence(confidence)
        every = sum(map(self._coordinates, self._released))
        found = []
        for part in self._released:
            noise = Gaussian(stddev=tidy(self._deviation(part)), step=self._step(part))
            many = self._coordinates(part)
            amount = noise.error(1 - (1 - sure) * many / every, values=many).amount
            found.append(Accuracy(amount=amount, confidence=sure, of="every value"))
        return tuple(found)

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: RoundedRows) -> dict[str, Any]:
        self.check_rows(value)
        return self.draw_sums(value)

    def check_rows(self, value: RoundedRows) -> None:
        """Raise unless the rows are rounded for these bounds."""
        if value.columns != self.features or value.norm != exactly(self.feature_norm) or value.bound != self._bound:
            raise InvalidArgument(
                "The rows are not rounded for the bounds of these moments. Round them with the same norm and bound.",
                code="rows-not-rounded",
            )

    def draw_sums(self, rows: Any) -> dict[str, Any]:
        """The noisy parts of whatever has `exact_sums` of rows with these bounds."""
        exact = dict(zip(self._released, exact_moments(rows, self._released), strict=True))
        return {part: self._noisy(part, exact[part]) for part in self._released}

    @property
    def _bound(self) -> Fraction | None:
        return None if self.target_bound is None else exactly(self.target_bound)

    def _noisy(self, part: str, exact: NDArray[Any]) -> Any:
        if part != "square":
            noisy = noisy_units(exact, self._grain(part), self._step(part), self._deviation(part) ** 2)
            return float(noisy) if not noisy.ndim else noisy
        d, symmetric = self.features, np.zeros((self.features, self.features))
        over, on = np.triu_indices(d, 1), np.diag_indices(d)
        for places, halves in ((on, 1), (over, 2)):
            variance = self._deviation(part) ** 2 / halves
            symmetric[places] = noisy_units(exact[places], self._grain(part), self._step(part), variance)
        symmetric.T[over] = symmetric[over]
        return symmetric


def exact_moments(rows: RoundedRows, parts: Iterable[str]) -> list[NDArray[Any]]:
    """The exact parts, each as integer multiples of its unit."""

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        known = np.nan_to_num(goal)
        work: dict[str, Callable[[], Any]] = {
            "square": lambda: whole.T @ whole,
            "product": lambda: known @ whole,
            "sum": lambda: whole.sum(0),
            "target": lambda: known.sum(),
            "count": lambda: np.isfinite(goal).sum(),
        }
        return [work[part]() for part in parts]

    return rows.exact_sums(of_block)


def _lowest(square: Fraction, slope: Fraction, reach: Fraction) -> Fraction:
    """The least value of square·t² + slope·t for |t| ≤ reach."""
    if abs(slope) >= 2 * square * reach:
        return square * reach**2 - abs(slope) * reach
    return -(slope**2) / (4 * square)
