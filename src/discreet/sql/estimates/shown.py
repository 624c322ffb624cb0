"""The errors of numbers that are estimated from several answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
Uniform = Callable[[tuple[int, ...]], Floats]
"""Makes an array of numbers that are spread evenly between 0 and 1."""


class Law(Protocol):
    """How far a noise is from 0."""

    def half_width(self, confidence: float) -> float:
        """How far it is at most, with this confidence."""


@dataclass(frozen=True)
class Drawn:
    """Noises that were drawn together: so many of one size. `name` is the same for those that two measures share."""

    name: Any
    many: int
    size: float
    gaussian: bool

    def again(self, draws: int, uniform: Uniform) -> Floats:
        """Other noises with the same law, a row for each draw."""
        at = uniform((draws, self.many))
        if self.gaussian:
            return np.asarray(self.size * ndtri(at))
        return np.asarray(-self.size * np.sign(at - 0.5) * np.log1p(-np.abs(2 * at - 1)))


@dataclass(frozen=True, eq=False)
class Spread:
    """The errors of one measure: its law in each group, how far rounding moved it, and the weights of all noises."""

    laws: Sequence[Law]
    moved: Floats
    weights: Floats
    noises: Sequence[Drawn]

    def in_order(self, places: list[int]) -> Spread:
        """The same for rows in another order."""
        laws = [self.laws[place] for place in places]
        return replace(self, laws=laws, moved=self.moved[places], weights=self.weights[places])

    def weights_of(self, noise: Drawn) -> Floats | None:
        """The weights of some noises. None if they are no part of this measure."""
        first = 0
        for one in self.noises:
            if one == noise:
                return self.weights[:, first : first + one.many]
            first += one.many
        return None


@dataclass(frozen=True, eq=False)
class Estimated:
    """The errors of all measures in the rows that are shown. Those of different rows and measures depend on each other,
    where they are made of the same noises.
    """

    measures: Sequence[Spread]
    _again: dict[int, list[Floats]] = field(default_factory=dict)

    def error(self, part: int, confidence: float) -> Floats:
        """How far the numbers of a measure may be from the truth, row by row."""
        own, widths = self.measures[part], dict[int, float]()
        for law in own.laws:
            if id(law) not in widths:
                widths[id(law)] = law.half_width(confidence)
        return np.array([widths[id(law)] for law in own.laws], dtype=np.float64) + own.moved

    def redrawn(self, part: int, draws: int, uniform: Uniform) -> Floats:
        """The noise of a measure, drawn again: a row for each draw. All measures are drawn together."""
        if draws not in self._again:
            found = [np.zeros((draws, len(own.laws))) for own in self.measures]
            for noise in dict.fromkeys(one for own in self.measures for one in own.noises):
                drawn = noise.again(draws, uniform)
                for place, own in enumerate(self.measures):
                    weights = own.weights_of(noise)
                    if weights is not None:
                        found[place] += drawn @ weights.T
            self._again[draws] = found
        return self._again[draws][part]

    def in_order(self, order: Any) -> Estimated:
        """The same for rows in another order."""
        places = np.asarray(order, dtype=np.int64).tolist()
        return Estimated([own.in_order(places) for own in self.measures])
