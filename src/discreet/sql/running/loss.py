"""What is lost to clipping, estimated from the release itself.

Each person above the limit adds a known number of steps to numbers that are released with the answer. They say how many
people were scaled down, and in which measures. How much such a person has in all, nobody can promise: one person may
hold anything. The estimate is that on average they have twice the limit, so that as much is lost as is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.noise.joint import JointNoise
from discreet.sql.pricing.clipping import Clip, Clipping
from discreet.sql.question import Measure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """The noisy numbers of a clipped answer, in steps: `cells` for each number of the basis, and `above` for what people
    above the limit have.
    """

    clipping: Clipping
    clip: Clip
    noise: JointNoise
    cells: list[Floats]
    above: Floats

    def people(self, confidence: float | None = None) -> float:
        """How many people are above the limit: an estimate, or with a confidence not more than this."""
        if not self.clip.above:
            return 0.0
        most = 0.0 if confidence is None else float(self.noise.error(confidence)) * np.sqrt(len(self.above))
        return max(0.0, float(self.above.sum()) + most) / self.clip.above

    def share(self, number: int) -> float:
        """The estimated part of a measure that is lost, over all groups."""
        lost = kept = 0.0
        for place, factor in self.clipping.basis.made_of[number]:
            size = float(abs(factor) * self.clip.units[place])
            lost += size * self._lost(place, None)
            kept += size * float(np.abs(self.cells[place]).sum())
        return lost / (lost + kept) if lost else 0.0

    def missing(self, number: int, confidence: float) -> tuple[Floats, Floats]:
        """How much less, and how much more, each group may have of a measure than is kept. A group has part in the loss
        as in all numbers that are kept.
        """
        sizes = np.sum([np.abs(cells) for cells in self.cells], axis=0)
        part = sizes / max(float(sizes.sum()), 1.0)
        less, more = np.zeros_like(part), np.zeros_like(part)
        for place, factor in self.clipping.basis.made_of[number]:
            lost = float(abs(factor) * self.clip.units[place]) * self._lost(place, confidence) * part
            signed = not _has_one_sign(self.clipping.basis.measures[place])
            more += lost * (signed or factor > 0)
            less += lost * (signed or factor < 0)
        return less, more

    def _lost(self, place: int, confidence: float | None) -> float:
        """What people above the limit lose of a number, in steps."""
        if not self.clip.above:
            return 0.0
        most = 0.0 if confidence is None else float(self.noise.error(confidence))
        return max(0.0, float(self.above[place]) + most) * self.clip.limit / self.clip.above


def _has_one_sign(measure: Measure) -> bool:
    """Whether no value of a measure is below 0."""
    return measure.kind != "sum" or measure.power == 2 or (measure.lowest >= 0 and not measure.center)
