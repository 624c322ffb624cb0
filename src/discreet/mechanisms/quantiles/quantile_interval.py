"""A quantile with an interval in its own unit: two outer quantiles, so far out that they enclose the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.unit import Unit
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import plain_sensitivity, tidy
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.mechanisms.selection.exponential import Exponential
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Grid, Integers, Interval
from discreet.rows import column
from discreet.rows.containers import Data

COUNT, OUTER = Fraction(1, 20), Fraction(1, 5)
"""The parts of ε for the number of rows and for each outer quantile; the rest is for the quantile itself."""
_FINE = 10**6


@dataclass(frozen=True, kw_only=True)
class QuantileInterval:
    """Draws (lower, middle, upper): a quantile, and two that are enough ranks away to enclose the true one.

    How many ranks that is follows from the outer rate; which share of the rows that is, from a noisy count.

    Promise: the composition of the count and the three choices. The outer quantiles are chosen after the count was
    drawn, but their rates are fixed and hold for any quantile, whose score moves by at most one rank a row.
    Error: of the middle, in ranks. With `confidence` the true quantile lies in [lower, upper]. Source: [L3.MED-DUP].
    """

    space: Grid | Integers | Interval
    rate: Number
    outer_rate: Number
    count_scale: Number
    quantile: Number = Fraction(1, 2)
    confidence: float = 0.95

    @property
    def _middle(self) -> Quantile:
        return Quantile(space=self.space, rate=self.rate, quantile=self.quantile)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return Sensitivity(check_count(rows_per_person, "rows_per_person"), "Linf", unit, grain=1)

    def guarantee(self, sensitivity: SensitivityLike) -> LossDistribution:
        moved = plain_sensitivity(sensitivity, "Linf")
        rows, unit = moved.exact, moved.unit
        each = self._middle.sensitivity(unit or Unit(), int(rows))
        outer = Exponential(rate=self.outer_rate).guarantee(Sensitivity(tidy(rows), "Linf", unit))
        changed = rows if unit is None or unit.neighbors == "add_or_remove" else 2 * rows
        counted = Laplace(scale=self.count_scale, step=1).guarantee(Sensitivity(tidy(changed), "L1", unit, grain=1))
        return compose([counted, self._middle.guarantee(each), outer, outer])

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
        """The strongest choices that keep a pure guarantee."""
        if not isinstance(guarantee, Pure):
            raise InvalidArgument(
                "A quantile with its interval is calibrated for Pure. Use Pure(epsilon=…).",
                code="guarantee-not-supported",
            )
        epsilon = exactly(guarantee.epsilon)
        middle = Quantile.for_guarantee(
            Pure(epsilon=epsilon * (1 - COUNT - 2 * OUTER)),
            space=space,
            quantile=quantile,
            unit=unit,
            rows_per_person=rows_per_person,
        )
        changed = rows_per_person if unit.neighbors == "add_or_remove" else 2 * rows_per_person
        return cls(
            space=space,
            rate=middle.rate,
            outer_rate=tidy(significant(epsilon * OUTER / (2 * rows_per_person), up=False)),
            count_scale=tidy(significant(changed / (epsilon * COUNT), up=True)),
            quantile=quantile,
            confidence=confidence,
        )

    @classmethod
    def for_error(cls, ranks: Number, *, space: Grid | Integers | Interval, quantile: Number = Fraction(1, 2)) -> Self:
        """The weakest choice whose rank error stays within `ranks`, its interval in the usual proportion."""
        middle = Quantile.for_error(ranks, space=space, quantile=quantile)
        rest = exactly(middle.rate) / (1 - COUNT - 2 * OUTER)
        outer, scale = significant(rest * OUTER, up=True), significant(1 / (2 * rest * COUNT), up=True)
        return cls(space=space, rate=middle.rate, outer_rate=tidy(outer), count_scale=tidy(scale), quantile=quantile)

    def error(self, confidence: float) -> Accuracy:
        return self._middle.error(confidence)

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self._middle.check(value)

    def _draw(self, value: Any) -> tuple[Any, Any, Any]:
        sure = 1 - (1 - check_confidence(self.confidence)) / 3
        counter = Laplace(scale=self.count_scale, step=1)
        rows = column(value)
        count = counter._draw(len(rows)) - float(counter.error(sure))
        away = Quantile(space=self.space, rate=self.outer_rate).error(sure)
        share = exactly(float(away)) / max(Fraction(1), Fraction(int(count)))
        middle = self._middle._draw(rows)
        below, above = exactly(self.quantile) - share, exactly(self.quantile) + share
        # rounded outward to the decimals that a quantile may have
        sides = Fraction(math.floor(below * _FINE), _FINE), Fraction(math.ceil(above * _FINE), _FINE)
        least = Fraction(1, _FINE)
        lower, upper = (
            Quantile(space=self.space, rate=self.outer_rate, quantile=min(max(at, least), 1 - least))._draw(rows)
            for at in sides
        )
        points = self._middle._points
        if below <= 0:
            lower = points.low
        if above >= 1:
            upper = points.high
        return min(lower, middle), middle, max(upper, middle)
