"""A noisy mean of rows, and a descent on rows from which it is subtracted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly, significant
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.conversions import gaussian_delta, largest_mu, smallest_epsilon
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import is_pure, meets, tidy
from discreet.queries.sensitivity import Sensitivity

SHARE = Fraction(1, 50)
"""What the mean may cost: this part of the squared sensitivity in deviations."""
STEP = Fraction(1, 2**20)
"""The unit in which rows are added."""
_LONGER = 64.0
"""Rows less their mean are made so much longer than 1 and then clipped to it: nearly all have norm 1 again."""
_LEAST = 0.05
"""Rows are taken to be at least this far from their mean, squared."""


class UnitRows(Protocol):
    """Rows of norm at most 1, with their targets."""

    count: int

    def total(self) -> NDArray[np.object_]:
        """The sum of all rows, in units of `STEP`, each row rounded towards 0."""

    def less(self, center: NDArray[np.float64], scale: float) -> Any:
        """(row − center)·scale of each row, clipped to norm 1, for a descent."""


@dataclass(frozen=True, kw_only=True)
class CenteredDescent:
    """Releases the mean of rows of norm 1, and then weights by `descent` on rows less that mean.

    Far from the mean, a model of the rows is badly conditioned: most of a row is the same in all rows. The result is
    that of the descent, with the `center` and the `scale` by which rows were multiplied then.

    Promise: the composition of the two. An added or removed row moves the sum of rows by at most 1, a replaced one by
    2. The noise of the descent is fixed before the mean is drawn: rows less the mean are clipped again.
    Error: that of the descent, for rows less the mean.
    """

    noise: Gaussian
    descent: Descent

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Gaussian) or exactly(self.noise.step) != STEP:
            raise InvalidArgument(
                f"noise must be Gaussian, with step={float(STEP)}. Use for_guarantee.", code="part-does-not-fit"
            )

    @staticmethod
    def moved(unit: Unit | None, columns: int, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the sum of rows."""
        replaced = unit is not None and unit.neighbors == "replace"
        rows = check_rows(unit, rows_per_person)
        return Sensitivity(rows * (2 if replaced else 1), "L2", unit, columns, STEP)

    @property
    def _columns(self) -> int:
        loss: Any = self.descent.loss
        return self.descent.dimension // getattr(loss, "classes", 1) - bool(self.descent.intercept)

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> tuple[Sensitivity, Sensitivity]:
        """How far one unit can move each of the two."""
        descent = self.descent.sensitivity(unit, rows_per_person)
        return self.moved(unit, self._columns, rows_per_person), descent

    def guarantee(self, sensitivity: tuple[Sensitivity, Sensitivity] | None = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        mean, step = self.sensitivity(row()) if sensitivity is None else sensitivity
        return compose([self.noise.guarantee(mean), self.descent.guarantee(step)])

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, columns: int, unit: Unit | None = None, rows_per_person: int = 1, **descent: Any
    ) -> Self:
        """The least noise with which both keep `guarantee`. Other arguments are those of `Descent.for_guarantee`."""
        if not isinstance(guarantee, Approx) or is_pure(guarantee):
            raise InvalidArgument("A mean of rows needs a δ: Approx(epsilon=1, delta=1e-6).", code="needs-delta")
        epsilon, delta = exactly(guarantee.epsilon), exactly(guarantee.delta)
        allowed = largest_mu(float(epsilon), float(delta))
        moved = cls.moved(unit, columns, rows_per_person)
        stddev = float(moved.exact) / (allowed * math.sqrt(SHARE))
        noise = Gaussian(stddev=tidy(significant(Fraction(stddev), up=True)), step=tidy(STEP))
        left = allowed * math.sqrt(1 - SHARE)
        rest = smallest_epsilon(lambda e: gaussian_delta(left, e), float(delta))
        for less in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.5):
            goal = Approx(epsilon=tidy(significant(Fraction(rest * (1 - less)), up=False)), delta=guarantee.delta)
            made = Descent.for_guarantee(goal, unit=unit, rows_per_person=rows_per_person, **descent)
            both = cls(noise=noise, descent=made)
            if meets(both.guarantee(both.sensitivity(unit, rows_per_person)), guarantee):
                return both
        raise InvalidArgument("No noise keeps this guarantee.", code="guarantee-out-of-reach")

    def error(self, confidence: float) -> Accuracy:
        return self.descent.error(confidence)

    def _draw(self, value: UnitRows) -> dict[str, Any]:
        rows = self.descent._counted(value)
        total = value.total()
        noisy = from_lattice(total + self.noise._noise(total.size), STEP)
        center = noisy / rows
        spread = float(exactly(self.noise.stddev)) / rows
        length = float(center @ center) - len(center) * spread**2  # noise adds to the length of a mean
        center = center / max(1.0, math.sqrt(max(length, 0.0)))
        scale = _LONGER / math.sqrt(max(1 - length, _LEAST))
        drawn = replace(self.descent, size=rows)._draw(value.less(center, scale))
        return {**drawn, "center": center, "scale": scale}
