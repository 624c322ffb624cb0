"""Private medians and quantiles: the exponential mechanism over every point of a public lattice, run by
run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_positive, exactly, power_of_two_below, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms.protocol import TIGHT, plain_sensitivity, tidy
from discreet.mechanisms.selection.exponential import Exponential
from discreet.queries.ranks import places_of
from discreet.queries.scores import QuantileScore
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Grid, Integers, Interval
from discreet.rows import none_of
from discreet.rows.containers import Data

_POINTS = 2**32
BETWEEN = 2
"""An interpolated quantile of n rows lies between rows whose ranks are less than this far from q·n."""
Ints = NDArray[np.int64]


def lattice_of(space: Grid | Integers | Interval) -> Grid | Integers:
    """The points an answer may take: the space itself, or about 2^32 points of an interval, a power of two
    apart.
    """
    if not isinstance(space, Interval):
        return space
    step = max(power_of_two_below(space.diameter / _POINTS), power_of_two_below(max(map(abs, space.ends)) / 2**47))
    steps = space.diameter // step
    return Grid(space.low, tidy(space.ends[0] + steps * step), tidy(step), missing=None)


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """Chooses a point ℓ of the space with probability ∝ exp(rate·score), where the score is minus the ranks by
    which ℓ misses.

    The score is the capped one, so ties and repeated values do no harm: some point always misses by 0. On
    an `Interval` the points are a fine public lattice, taken together in runs between the values, so a
    million rows are a million runs, not 2^32 candidates.

    Promise: ε-DP with ε = 2·rate·Δ, Δ = max(q, 1−q) for an added or removed row and 1 for a replaced one;
    ε²/8-zCDP.
    Error: the rank is off by at most ln(points/(1−confidence))/rate, whatever the data. Source:
    [L3.MED-DUP], [L3.MED], [L3.EM-U].
    """

    space: Grid | Integers | Interval
    rate: Number
    quantile: Number = Fraction(1, 2)

    def __post_init__(self) -> None:
        check_positive(self.rate, "rate")
        if not isinstance(self.space, Grid | Integers | Interval):
            raise InvalidArgument(
                "space must be dp.Interval(low, high), dp.Integers(low, high) or dp.queries.Grid(low, high, step).",
                code="wrong-type",
            )
        self._score  # noqa: B018 (its own checks)

    @property
    def _points(self) -> Grid | Integers:
        return lattice_of(self.space)

    @property
    def _score(self) -> QuantileScore:
        return QuantileScore(self._points, self.quantile)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move any score."""
        return self._score.sensitivity(unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """By default for one added or removed row; give `median.sensitivity(unit, rows_per_person)` for another
        unit.
        """
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "Linf")
        return Exponential(rate=self.rate).guarantee(bound)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        space: Grid | Integers | Interval,
        quantile: Number = Fraction(1, 2),
        unit: Unit | None = None,
        rows_per_person: int = 1,
        calibration: str = TIGHT,
    ) -> Self:
        """The strongest preference that keeps `guarantee` for this unit."""
        bound = cls(space=space, rate=1, quantile=quantile).sensitivity(unit or row(), rows_per_person)
        choice = Exponential.for_guarantee(guarantee, sensitivity=bound, calibration=calibration)
        return cls(space=space, rate=choice.rate, quantile=quantile)

    @classmethod
    def for_error(
        cls,
        ranks: Number,
        *,
        space: Grid | Integers | Interval,
        quantile: Number = Fraction(1, 2),
        confidence: float = 0.95,
    ) -> Self:
        """The weakest preference whose rank error stays within `ranks` with this confidence."""
        unit = float(cls(space=space, rate=1, quantile=quantile).error(confidence))
        rate = significant(exactly(unit) / check_positive(ranks, "ranks"), up=True)
        return cls(space=space, rate=tidy(rate), quantile=quantile)

    def error(self, confidence: float) -> Accuracy:
        sure = check_confidence(confidence)
        amount = math.log(len(self._points) / (1 - sure)) / float(self.rate)
        return Accuracy(amount=amount, confidence=sure, of="rank")

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        places_of(self._points, none_of(value))

    def _draw(self, value: Any) -> Any:
        return self._choose(Runs.of(places_of(self._points, value), len(self._points)))[0]

    def _choose(self, runs: Runs, moved: int = 0) -> tuple[Any, int]:
        """A point, and the run it is in. The target may be `moved` by a fixed number of ranks."""
        lost = self._score.missed(runs.below, runs.above, runs.rows, moved)
        run = int(samplers.exponential_choice(lost, exactly(self.rate) * self._score.unit, 1, runs.widths)[0])
        place = int(runs.starts[run]) + int(samplers.uniform_below(int(runs.widths[run]), 1)[0])
        points = self._points
        shown = points._at(np.array([place]))[0].item() if isinstance(points, Grid) else points.points()[place]
        return shown, run


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of neighboring points with the same score: each value's own place, and the stretches between. Where a run
    starts, how wide it is, and how many of the rows lie below and above it.
    """

    starts: Ints = field(repr=False)
    widths: Ints = field(repr=False)
    below: Ints = field(repr=False)
    above: Ints = field(repr=False)
    rows: int = field(repr=False)

    @classmethod
    def of(cls, places: Ints, points: int) -> Self:
        values, counts = np.unique(places, return_counts=True)
        here = np.zeros(2 * len(values) + 1, dtype=np.int64)
        here[1::2] = counts
        starts = np.zeros(2 * len(values) + 1, dtype=np.int64)
        starts[1::2], starts[2::2] = values, values + 1
        widths = np.diff(np.concatenate([starts, [points]]))
        up_to = np.cumsum(here)
        return cls(starts, widths, up_to - here, len(places) - up_to, len(places))
