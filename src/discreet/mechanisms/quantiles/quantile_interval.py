"""A quantile with an interval in its own unit: two outer quantiles, each checked to be on its side of the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.privacy_loss.pairs import LaplacePair
from discreet.guarantees.unit import Unit, check_rows
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.quantiles.quantile import BETWEEN, Quantile, Runs
from discreet.queries.ranks import places_of
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Grid, Integers, Interval
from discreet.rows.containers import Data

OUTER, CHECK = Fraction(2, 9), Fraction(1, 9)
"""The parts of ε for each outer quantile and for each check; the rest is for the quantile itself."""
_USUAL = 7.03
"""The sum of two Laplace variables is above this many scales with a probability of 1/500."""


@dataclass(frozen=True, kw_only=True)
class QuantileInterval:
    """Draws (lower, middle, upper): a quantile, and two that are chosen `away` ranks from it and then checked.

    A check asks by how many ranks an outer quantile is on its side of the true one, and answers with noise. If that is
    not more than the noise may be, the end of the space takes its place. So the interval holds whatever the data are,
    and need not be as wide as the worst error of a choice.

    Promise: the composition of three choices and two checks. Moving a target by a fixed number of ranks changes no
    score's sensitivity, and what a check asks, #{x < l} − q·n, moves as far as a score.
    Error: of the middle, in ranks. With `confidence` the true quantile lies in [lower, upper]. Source: [L3.MED-DUP].
    """

    space: Grid | Integers | Interval
    rate: Number
    outer_rate: Number
    check_scale: Number
    away: int
    quantile: Number = Fraction(1, 2)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_positive(self.check_scale, "check_scale")
        check_count(self.away, "away")
        check_confidence(self.confidence)
        self._middle, self._outer  # noqa: B018 (their own checks)

    @property
    def _middle(self) -> Quantile:
        return Quantile(space=self.space, rate=self.rate, quantile=self.quantile)

    @property
    def _outer(self) -> Quantile:
        return Quantile(space=self.space, rate=self.outer_rate, quantile=self.quantile)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return Sensitivity(check_rows(unit, rows_per_person), "Linf", unit, grain=1)

    def guarantee(self, sensitivity: SensitivityLike) -> LossDistribution:
        moved = plain_sensitivity(sensitivity, "Linf")
        unit = moved.unit
        each = self._middle.sensitivity(unit or Unit(), int(moved.exact))
        outer = self._outer.guarantee(each)
        steps = each.exact / self._step
        check = LossDistribution(
            factors=((LaplacePair(int(steps), exactly(self.check_scale) / self._step), 1),), protects=each.unit
        )
        return compose([self._middle.guarantee(each), outer, outer, check, check])

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        space: Grid | Integers | Interval,
        quantile: Number = Fraction(1, 2),
        unit: Unit,
        rows_per_person: int = 1,
        confidence: float = 0.95,
    ) -> Self:
        """The strongest choices and checks that keep a pure guarantee."""
        if not isinstance(guarantee, Pure):
            raise InvalidArgument(
                "A quantile with its interval is calibrated for Pure. Use Pure(epsilon=…).",
                code="guarantee-not-supported",
            )
        epsilon = exactly(guarantee.epsilon)
        whole = Quantile(space=space, rate=1, quantile=quantile)
        bound = whole.sensitivity(unit, rows_per_person).exact
        return cls._with_rate(epsilon / (2 * bound), space, quantile, confidence)

    @classmethod
    def for_error(cls, ranks: Number, *, space: Grid | Integers | Interval, quantile: Number = Fraction(1, 2)) -> Self:
        """The weakest choice whose rank error stays within `ranks`, its interval in the usual proportion."""
        middle = Quantile.for_error(ranks, space=space, quantile=quantile)
        made = cls._with_rate(exactly(middle.rate) / (1 - 2 * OUTER - 2 * CHECK), space, quantile, 0.95)
        return cls(**{**vars(made), "rate": middle.rate})

    @classmethod
    def _with_rate(cls, rate: Fraction, space: Grid | Integers | Interval, quantile: Number, confidence: float) -> Self:
        """What a choice of this rate costs, divided among the parts."""
        outer = significant(rate * OUTER, up=False)
        scale = significant(1 / (2 * rate * CHECK), up=True)
        largest = max(1 / float(outer), float(scale))
        away = BETWEEN + _reach(float(scale), confidence) + _USUAL * largest
        return cls(
            space=space,
            rate=tidy(significant(rate * (1 - 2 * OUTER - 2 * CHECK), up=False)),
            outer_rate=tidy(outer),
            check_scale=tidy(scale),
            away=min(math.ceil(away), 2**40),
            quantile=quantile,
            confidence=confidence,
        )

    def error(self, confidence: float) -> Accuracy:
        return self._middle.error(confidence)

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self._middle.check(value)

    @property
    def _step(self) -> Fraction:
        """The public step of what a check asks."""
        return self._middle._score.unit

    def _draw(self, value: Any) -> tuple[Any, Any, Any]:
        points = self._middle._points
        runs = Runs.of(places_of(points, value), len(points))
        middle, _ = self._middle._choose(runs)
        lower, low = self._outer._choose(runs, -self.away)
        upper, high = self._outer._choose(runs, self.away)
        part, whole = exactly(self.quantile).as_integer_ratio()
        apart = (
            part * runs.rows - whole * int(runs.below[low]),
            whole * (runs.rows - int(runs.above[high])) - part * runs.rows,
        )
        lower = lower if self._is_apart(apart[0]) else points.low
        upper = upper if self._is_apart(apart[1]) else points.high
        return min(lower, middle), middle, max(upper, middle)

    def _is_apart(self, steps: int) -> bool:
        """Whether an outer quantile is on its side of the true one, by more than noise can pretend."""
        noise = int(samplers.discrete_laplace(exactly(self.check_scale) / self._step, 1)[0])
        enough = BETWEEN + _reach(float(exactly(self.check_scale)), self.confidence)
        return steps + noise >= enough / self._step


def _reach(scale: float, confidence: float) -> float:
    """Each of two checks has noise above this with half of the failure probability: P[L ≥ x] ≤ e^(−x/scale)."""
    return scale * math.log(2 / (1 - confidence)) * (1 + 1e-9)
