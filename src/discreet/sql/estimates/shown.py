"""The errors of numbers that are estimated from several answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.mechanisms.noise.laplace import Laplace
from discreet.sql.estimates.law import Floats, Noise, SumLaw

_MOST_DRAWN = 2 * 10**7
"""More numbers are not simulated at once."""


@dataclass(frozen=True)
class Drawn:
    """Some numbers that were drawn with the same noise. Those of one name are the same, wherever they are used."""

    name: Hashable
    many: int
    noise: Noise


@dataclass(frozen=True, eq=False)
class EstimatedMeasure:
    """The law of the error of a measure in each row, how far rounding moved it, and which numbers it is made of, with
    which weights.
    """

    laws: Sequence[SumLaw]
    moved: Floats
    weights: Floats
    drawn: Sequence[Drawn]

    def in_order(self, order: Any) -> EstimatedMeasure:
        """The same for rows in another order."""
        places = np.asarray(order, dtype=np.int64)
        laws = [self.laws[place] for place in places.tolist()]
        return EstimatedMeasure(laws, self.moved[places], self.weights[places], self.drawn)


@dataclass(frozen=True, eq=False)
class Estimated:
    """The errors of all measures of an answer."""

    measures: Sequence[EstimatedMeasure]
    _known: dict[Any, Floats] = field(default_factory=dict)

    def error(self, part: int, confidence: float) -> Floats:
        """How far the numbers of a measure may be from the truth, row by row."""
        own, widths = self.measures[part], dict[int, float]()
        for law in own.laws:
            if id(law) not in widths:
                widths[id(law)] = law.half_width(confidence)
        return np.array([widths[id(law)] for law in own.laws], dtype=np.float64) + own.moved

    def redrawn(self, part: int, draws: int, uniform: Callable[[tuple[int, ...]], Floats]) -> Floats | None:
        """The noise of a measure in all rows, as often as its law says: a row for each draw. Rows and measures that are
        made of the same numbers have their noise in common. None if there would be too many.
        """
        own = self.measures[part]
        if draws * own.weights.shape[1] > _MOST_DRAWN:
            return None
        for one in own.drawn:
            if (draws, one.name) not in self._known:
                self._known[draws, one.name] = _noise_of(one.noise, uniform((draws, one.many)))
        noise = [self._known[draws, one.name] for one in own.drawn]
        return np.asarray(np.hstack(noise) @ own.weights.T) if noise else np.zeros((draws, len(own.laws)))


def _noise_of(noise: Noise, places: Floats) -> Floats:
    """Noise at these places of its distribution."""
    if not isinstance(noise, Laplace):
        from scipy.special import ndtri  # it takes long to import

        return np.asarray(noise.deviation * ndtri(places))
    middle = places - 0.5
    return np.asarray(-noise.deviation / math.sqrt(2) * np.sign(middle) * np.log(1 - 2 * np.abs(middle)))
