"""The index of the largest of many noisy numbers, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.mechanisms.noise.additive import AdditiveNoise
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import to_lattice
from discreet.mechanisms.protocol import TAUGHT, TIGHT, check_calibration, plain_sensitivity, tidy
from discreet.mechanisms.selection.exponential import exact_scores
from discreet.queries.scores import Scores
from discreet.queries.sensitivity import Norm, Sensitivity, SensitivityLike
from discreet.rows.containers import Data


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyArgmax(AdditiveNoise):
    """Adds Laplace noise of `scale` to every score and returns the index of the largest; ties go to the first.

    Promise: ε-DP with ε = 2Δ/scale, whatever the number of scores (Δ/scale for monotone ones). Only the
    index leaves. In zCDP it costs ε²/2.
    Error: the chosen score lacks at most twice the largest noise. Source: [L6.T7], [L6.CL8].
    """

    scale: Number
    size_field: ClassVar[str] = "scale"
    norm: ClassVar[Norm] = "Linf"

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        bound = plain_sensitivity(sensitivity, "Linf")
        steps = Sensitivity(bound.exact, "Linf", bound.unit, bound.dimension, bound.grain).in_steps(self._step)
        factor = 1 if bound.monotone else 2
        return Pure(epsilon=factor * steps * self._step / self._size, protects=bound.unit)

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Sensitivity:
        """A plain number bounds every score, however many there are."""
        return plain_sensitivity(sensitivity, "Linf")

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, sensitivity: SensitivityLike, step: Number | None = None, calibration: str = TIGHT
    ) -> Self:
        """The least noise that keeps `guarantee`; taught: 2Δ/ε, monotone scores or not."""
        check_calibration(calibration)
        bound = plain_sensitivity(sensitivity, "Linf")
        if type(guarantee) is Pure:
            factor = 1 if bound.monotone and calibration != TAUGHT else 2
            epsilon = exactly(guarantee.epsilon)
            first = cls._make(factor * bound.exact / epsilon, step)
            steps = bound.in_steps(first._step)
            return cls._make(significant(factor * steps * first._step / epsilon, up=True), tidy(first._step))
        return cls._least(guarantee, bound, step, bound.exact)

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        """The score lost against the best of `values` candidates."""
        sure = check_confidence(confidence)
        noise = Laplace(scale=self.scale, step=self.step).error(sure, values=check_count(values, "values"))
        return Accuracy(amount=2 * float(noise), confidence=sure, of="score")

    def sizes(self, value: Data) -> dict[str, int]:
        """How many scores there are, for `error`."""
        count = len(value) if isinstance(value, Scores) else int(np.size(value))
        if not count:
            raise InvalidArgument("There is nothing to choose from: give at least one score.", code="empty")
        return {"values": count}

    def _noise(self, size: int) -> NDArray[Any]:
        return samplers.discrete_laplace(self._size / self._step, size)

    def _draw(self, value: Any) -> int:
        scores, unit = exact_scores(value)
        if unit != 1:
            scores = np.array([unit * int(s) for s in scores] + [None], dtype=object)[:-1]
        noisy = to_lattice(scores, self._step)
        if noisy.dtype != object and np.abs(noisy).max(initial=0) >= 2**61:
            noisy = noisy.astype(object)
        return int(np.argmax(noisy + self._noise(len(noisy))))
