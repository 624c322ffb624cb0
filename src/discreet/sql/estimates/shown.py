"""The errors of numbers that are estimated from several answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Law(Protocol):
    """How far a noise is from 0."""

    def half_width(self, confidence: float) -> float:
        """How far it is at most, with this confidence."""


@dataclass(frozen=True, eq=False)
class Estimated:
    """The law of the error of each measure in each row that is shown, and how far rounding moved it."""

    laws: Sequence[Sequence[Law]]
    moved: Sequence[Floats]

    def error(self, part: int, confidence: float) -> Floats:
        """How far the numbers of a measure may be from the truth, row by row."""
        widths: dict[int, float] = {}
        for law in self.laws[part]:
            if id(law) not in widths:
                widths[id(law)] = law.half_width(confidence)
        each = np.array([widths[id(law)] for law in self.laws[part]], dtype=np.float64)
        return each + self.moved[part]

    def in_order(self, order: Any) -> Estimated:
        """The same for rows in another order."""
        places = np.asarray(order, dtype=np.int64).tolist()
        laws = [[own[place] for place in places] for own in self.laws]
        return Estimated(laws, [moved[places] for moved in self.moved])
