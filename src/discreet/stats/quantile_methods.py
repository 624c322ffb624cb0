"""A quantile of the population, with an interval from noisy cumulative counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_probability
from discreet.mechanisms.quantiles.cumulative import Cumulative, CumulativeCounts
from discreet.mechanisms.quantiles.quantile import BETWEEN
from discreet.queries.space import Integers
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.inference.noisy_shares import Alternative
from discreet.stats.results import Estimate
from discreet.stats.samples.cells import one_row_each
from discreet.stats.samples.sample import StatisticsOfTable
from discreet.tables.days import as_number
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, FoundFirst, Offer, TableRows, convert_release

Floats = NDArray[np.float64]
_OF_NOISE = 0.2
"""The part of the error probability for the noise. The rest is for sampling, which is larger if there are many rows."""


@dataclass(frozen=True)
class QuantileOf:
    """Inference about the value below which a `share` of the population lies.

    The number of rows up to the quantile has a binomial law, and differs from its noisy count by noise of a known law.
    A value is kept if its count is as close to the share of all as both allow, each with a part of the probability.
    """

    counts: Cumulative
    share: float
    center: float
    step: float

    @property
    def value(self) -> float:
        return self.center + self.step * float(self.counts.quantiles([self.share])[0])

    @cached_property
    def _gaps(self) -> Floats:
        """By how many rows each cumulative count is above the share of all."""
        values = self.counts.values
        return np.asarray(values - self.share * values[-1])

    def _reach(self, miss: float, bins: slice, sampled: bool) -> Floats:
        """How far a gap may be from 0 to one side with this probability of a miss."""
        sums, total = self.counts.mechanism.sums, float(self.counts.values[-1])
        noise = np.asarray(sums.beyond_at(self.share, miss * (_OF_NOISE if sampled else 1.0), bins))
        if not sampled:
            return np.asarray(noise + BETWEEN)
        rows = max(total, 0.0) + 3 * float(sums.deviation(sums.points)) + 1
        z = -float(special.ndtri(miss * (1 - _OF_NOISE)))
        # a binomial law is a little wider than the normal one if the share is near 0 or 1
        binomial = z * np.sqrt(rows * self.share * (1 - self.share)) + (z**2 + 2) / 6
        return np.asarray(noise + binomial + BETWEEN)

    def interval(self, confidence: float, *, sampled: bool = True) -> tuple[float, float]:
        size, width = len(self._gaps), self.counts.mechanism.width
        reach = self._reach((1 - confidence) / 2, slice(0, size), sampled)
        reached, early = np.flatnonzero(self._gaps >= -reach), np.flatnonzero(self._gaps < reach)
        low = int(reached[0]) if len(reached) else 0
        high = min(int(early[-1]) + 1, size - 1) if len(early) else size - 1
        low, high = min(low, high), max(low, high)
        first, last = self._point(low * width) - self.step / 2, self._point(high * width + width - 1) + self.step / 2
        return min(first, self.value), max(last, self.value)

    def _point(self, place: int) -> float:
        points = self.counts.mechanism.points
        return self.center + self.step * float(points.points()[min(place, len(points) - 1)])

    def p_value(self, null: float, alternative: Alternative) -> float:
        """From the smallest interval that has the value."""
        low, high = 1e-9, 1.0
        if self._keeps(null, 1 - 1e-6, alternative):
            return 1.0
        for _ in range(40):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if self._keeps(null, middle, alternative) else (low, middle)
        return float(high)

    def _keeps(self, null: float, miss: float, alternative: Alternative) -> bool:
        whole = miss if alternative == "two-sided" else min(2 * miss, 1 - 1e-9)
        low, high = self.interval(1 - whole)
        return (alternative == "less" or low <= null) and (alternative == "greater" or null <= high)


class QuantileMethods(StatisticsOfTable):
    """Quantiles for the population."""

    def quantile(
        self,
        column: str,
        at: Number = 0.5,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Estimate]:
        """The value below which this share of the population lies. One random row of each person is used."""
        share = float(check_probability(at, "at"))
        kind = self.table._kind(column, between)
        if kind not in ("integer", "number"):
            raise InvalidArgument(
                f"{column} is {kind}, and a number is needed. Choose another column.", code="column-type"
            )
        if not 0 < share < 1:
            raise InvalidArgument("at must be between 0 and 1.", code="out-of-range")
        ends = "auto" if between is None else between
        number = as_number(column, kind)
        rows = one_row_each(self.table)._rows(where, {column: ends}, {}, epsilon, delta, number)

        def drawing(known: TableRows) -> Drawing[Estimate]:
            grid = known.plan.rows.grid
            made = CumulativeCounts.for_guarantee(
                known.allowed, space=Integers(grid.lowest, grid.highest), unit=known.unit, rows_per_person=known.of_one
            )

            def finish(release: Release) -> Any:
                found = QuantileOf(made.read(release.value), share, float(grid.center), float(grid.step))
                beyond = ("the quantile is within the range that was found",) if between in (None, "auto") else ()
                what = f"quantile {share:g} of {column}"
                return convert_release(
                    Estimate, release, value=found.value, what=what, assumed=beyond, _inference=found, _sizes={}
                )

            asked = f"the quantile {share:g} of {column} in the population"
            return known.drawing(
                made,
                made.sensitivity(known.unit, known.of_one),
                asked=asked,
                old_text=asked,
                method="stats.quantile",
                arguments={"column": column, "between": between},
                read=known.plan.rows.values,
                finish=finish,
            )

        return QuantileOffer(rows, drawing, share)


@dataclass(frozen=True)
class QuantileOffer(FoundFirst[TableRows, Estimate]):
    """A quantile. `explain` says how much of the population its interval would hold."""

    share: float

    def explain(self) -> Explanation:
        lines = [str(super().explain())]
        if not self.rows.plan.automatic:
            noise = float(self.drawing(self.rows).mechanism.error(0.95))
            lines = [lines[0].rsplit("; ", 1)[0], *(self._line(rows, noise) for rows in IMAGINED)]
        return Explanation("\n".join(lines))

    def _line(self, rows: int, noise: float) -> str:
        around = 1.96 * math.sqrt(self.share * (1 - self.share) / rows) + noise / rows
        ends = max(self.share - around, 0.0), min(self.share + around, 1.0)
        return f"a 95% interval reaches about from quantile {ends[0]:.3g} to {ends[1]:.3g}, if there are {rows:,} rows"
