"""Rows that arrive in steps: for each step and group, the noisy numbers of rows without and with success."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.smaller import smaller_noise
from discreet.mechanisms.protocol import for_rows, rows_in, rows_moved
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows import doubles

_ROOT_OF_TWO = Fraction(141422, 100000)


@dataclass(frozen=True, kw_only=True)
class StepTallies:
    """Counts the rows without and with success of each group in every step, and adds fresh noise to each count.

    Promise: that of the noise, for all steps together. A row arrives once, in one group, and is in one count. So an
    added or removed row moves one count by 1. A replaced row moves two counts by 1: by 2 in the L1 norm, and by √2 in
    the L2 norm. A person with k rows moves the counts by at most k times that.
    Error: that of the noise, for each count by itself. The noise of a sum over t steps has t times its variance.
    """

    steps: int
    groups: int
    noise: Laplace | Gaussian

    def __post_init__(self) -> None:
        check_count(self.steps, "steps")
        check_count(self.groups, "groups")
        if not isinstance(self.noise, Laplace | Gaussian) or exactly(self.noise.step) != 1:
            raise InvalidArgument(
                "noise must be Laplace or Gaussian noise on whole numbers: Laplace(scale=2, step=1).", code="wrong-type"
            )

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return rows_moved(unit, rows_per_person)

    @staticmethod
    def measured(sensitivity: SensitivityLike, *, steps: int, groups: int, norm: str) -> Sensitivity:
        """How far a unit with this many rows moves all counts of all steps."""
        bound = rows_in(sensitivity)
        dimension = 2 * steps * groups
        if norm == "L1":
            return Sensitivity(bound.exact * (2 if bound.replaced else 1), "L1", bound.unit, dimension, 1)
        moved = bound.exact * (_ROOT_OF_TWO if bound.replaced else 1)
        return Sensitivity(moved, "L2", bound.unit, dimension, 1)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        moved = self.measured(sensitivity, steps=self.steps, groups=self.groups, norm=self.noise.norm)
        return for_rows(self.noise.guarantee(moved))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, steps: int, groups: int, unit: Unit, rows_per_person: int = 1
    ) -> Self:
        """The least noise that keeps `guarantee`: Laplace, or Gaussian if a δ is allowed and it is smaller."""
        rows = rows_moved(unit, rows_per_person)
        check_count(steps, "steps")
        check_count(groups, "groups")
        noise, _ = smaller_noise(
            guarantee, lambda norm: cls.measured(rows, steps=steps, groups=groups, norm=norm), step=1
        )
        return cls(steps=steps, groups=groups, noise=noise)

    def error(self, confidence: float) -> Accuracy:
        """How far any count of any step may be off."""
        return self.noise.error(confidence, values=2 * self.steps * self.groups)

    def _start(self) -> RunningTallies:
        """A stream of at most `steps` steps. It is charged once, before the first step."""
        return RunningTallies(self)


class RunningTallies:
    """The steps of one stream. The noise of a step is drawn once, when the step arrives.

    Promise: all steps together are one release of `StepTallies`. No row may be in two steps, unless the sensitivity
    says so.
    """

    def __init__(self, mechanism: StepTallies) -> None:
        self._mechanism = mechanism
        self._taken = 0

    def __repr__(self) -> str:
        return f"<RunningTallies: step {self._taken} of {self._mechanism.steps}>"

    def _draw(self, value: Any) -> NDArray[np.int64]:
        """The noisy counts of one step: for each group, those without and those with success."""
        if self._taken >= self._mechanism.steps:
            raise InvalidArgument(
                f"This stream takes at most {self._mechanism.steps} steps. Start another stream for more.",
                code="stream-ended",
            )
        if not isinstance(value, tuple) or len(value) != self._mechanism.groups:
            raise InvalidArgument(
                f"Give a tuple with the rows of each of the {self._mechanism.groups} groups.", code="wrong-shape"
            )
        counts = np.array([number for rows in value for number in tally(rows)], dtype=np.int64)
        self._taken += 1
        return np.asarray(self._mechanism.noise._draw(counts), dtype=np.int64)


def tally(rows: Any) -> tuple[int, int]:
    """The number of rows without and with success: a number up to ½, or above. A row that is not a number is in
    neither.
    """
    values = doubles(rows)
    with np.errstate(invalid="ignore"):
        return int((values <= 0.5).sum()), int((values > 0.5).sum())
