"""Noisy descent over binned columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.noise.gaussian import Gaussian

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AdditiveDescent(Descent):
    """Descends over the bins of rows.

    The default rate leaves noise of about `final_noise` in a weight whose bins hold hardly any rows, and less
    elsewhere. The result is that of `Descent`.

    Promise: that of `Descent`. In any bins the contribution of a row to a sum is at most the clip.
    Error: that of `Descent`.
    Source: [L10.NPGD]; additive models on bins as in Nori-Caruana-Bu-Shen-Kulkarni 2021.
    """

    final_noise: Number = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Gaussian) or self.sampling is not None:
            raise InvalidArgument("An additive model needs Gaussian noise and all rows.", code="part-does-not-fit")

    def response(self, size: float, curvature: float) -> Floats:
        """How far the noise of one step moves the released average along a direction of this curvature of the mean
        loss, step by step, for a noise of 1 in the mean gradient.
        """
        rate, momentum, first = self.rate(size), float(exactly(self.momentum)), self._first()
        place, speed = np.zeros(self.steps), np.zeros(self.steps)
        total, kept = np.zeros(self.steps), 0
        for step in range(self.steps):
            speed = momentum * speed + curvature * place
            speed[step] += 1.0
            place = place - rate * speed
            if first <= step + 1 < self.steps or self.steps == 1:
                total, kept = total + place, kept + 1
        return total / max(kept, 1) if kept else place
