"""Noisy projected gradient descent: one mechanism, charged once, before its first step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import (
    Number,
    check_bound,
    check_count,
    check_positive,
    check_probability,
    exactly,
    float_up,
)
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, row
from discreet.mechanisms import sampling
from discreet.mechanisms.learning.descent.error import Average, CertifiedDescent, best_rate
from discreet.mechanisms.learning.descent.noise import StepNoise, calibrate_noise, taught
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import TIGHT, is_pure, plain_sensitivity
from discreet.queries.gradients import gradient_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.convex import Region, region_of
from discreet.rows.gradients.examples import one_product_at_a_time, row_norm, unit_of
from discreet.rows.gradients.losses import Loss, Softmax
from discreet.rows.gradients.stream import Stream

Floats = NDArray[np.float64]
NOISE = 1.5
"""How much noise a weight may have in the end, for rows of norm 1. In our benchmarks, accuracy is the same from 1 to
2.
"""


@dataclass(frozen=True, kw_only=True)
class Descent(CertifiedDescent):
    """Minimizes the mean loss of `size` rows. Each of the `steps` adds noise to the sum of clipped gradients and moves.

    w ← Π(w − learning_rate·(Σ clipped gradients + noise)/size), starting from the point of `region` that is nearest to
    0; with `momentum`, heavy-ball. `size` is the public number of rows. If it is not public, `counting` is the noise
    with which the rows are counted first. If both are given, `size` is the result of that count. The default
    `learning_rate` is `rate(size)`, and "bound" is the one of [L10.T2]. With `sampling`, each step reads a Poisson
    sample of the rows, drawn independently for every row. `dimension` counts all weights.

    The result is a dict: the `weights` (the requested average), the `size` that was used, `objective`, an estimate from
    the noisy gradients of how the mean loss fell from step to step, and `gap`, which bounds the excess risk up to
    noise.

    Promise: the composition of the count and of `steps` noisy sums. One row moves each sum by at most the clip, in
    whole units. All noise is fixed before the first step. With sampling, the promise is that of the mixture, for one
    row added or removed.
    Error: how far the mean loss is above the least one in the region, for at most `size` rows. If the clip is active,
    it is that of the clipped loss, whose slope is clipped row by row, and which is again convex. No bound is known for
    several classes with an active clip, for samples, for the last weights, or for unbounded regions. After the weights
    are drawn, `gap_error` gives a bound that also holds with momentum and is usually better.
    Source: [L10.ERM], [L10.PGD], [L10.T1], [L10.NPGD], [L10.T2], [L10.T3].
    """

    loss: Loss | Softmax
    steps: int
    noise: Gaussian | Laplace
    clip: Number
    dimension: int
    learning_rate: Number | Literal["bound"] | None = None
    size: Number | None = None
    counting: Gaussian | Laplace | None = None
    feature_norm: Number = 1
    intercept: bool = True
    region: Region | Number | Callable[[Any], Any] | None = None
    average: Average = "last half"
    momentum: Number = 0
    sampling: Number | None = None
    final_noise: Number = NOISE
    steepest: Number = 1
    progress: Callable[[int, int], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.steps, "steps")
        check_count(self.dimension, "dimension")
        for name in ("clip", "feature_norm"):
            check_bound(getattr(self, name), name)
        if self.learning_rate is not None and self.learning_rate != "bound":
            check_positive(self.learning_rate, "learning_rate")
        if self.size is None and self.counting is None:
            raise InvalidArgument(
                "Give the public number of rows as size=, or the noise to count them with, counting=.",
                code="size-missing",
            )
        if self.size is not None:
            check_positive(self.size, "size")
        if not isinstance(self.noise, Gaussian | Laplace) or exactly(self.noise.step) != unit_of(self.clip):
            raise InvalidArgument(
                "noise must be Gaussian or Laplace, with step=unit_of(clip). Use for_guarantee.",
                code="part-does-not-fit",
            )
        if self.average not in ("last half", "all", "last"):
            raise InvalidArgument('average must be "last half", "all" or "last".', code="not-an-option")
        if not 0 <= exactly(self.momentum, "momentum") < 1:
            raise InvalidArgument("momentum must be at least 0 and below 1, such as 0.9.", code="out-of-range")
        check_positive(self.final_noise, "final_noise")
        if not 0 < exactly(self.steepest, "steepest") <= 1:
            raise InvalidArgument("steepest must be above 0 and at most 1.", code="out-of-range")
        if self.sampling is not None:
            check_probability(self.sampling, "sampling")
        object.__setattr__(self, "region", region_of(self.region))

    # --- what it promises -----------------------------------------------------------------------------------

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the sum of one step."""
        return gradient_sensitivity(self.clip, self.dimension, unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2", self.dimension)
        rate = None if self.sampling is None else exactly(self.sampling)
        return StepNoise(bound, self.clip, self.steps, rate, self.size is None).guarantee(self.noise, self.counting)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        clip: Number,
        dimension: int,
        steps: int,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        noise: Literal["gaussian", "laplace"] = "gaussian",
        sampling: Number | None = None,
        size: Number | None = None,
        calibration: str = TIGHT,
        **others: Any,
    ) -> Self:
        """The least noise for which all steps together keep `guarantee`. Without `size`, the rows are counted first.

        `calibration="taught"` is for Laplace noise: "L10.NPGD" in the documents, C√(T·d·ln(1/δ))/ε for each coordinate.
        `calibration="L10.T3"` is noise for the L2 norm, C√(T·ln(1/δ))/ε. The constants are as printed. What such noise
        promises is what `guarantee()` says.
        """
        bound = gradient_sensitivity(clip, dimension, unit, rows_per_person)
        if noise not in ("gaussian", "laplace"):
            raise InvalidArgument('noise must be "gaussian" or "laplace".', code="not-an-option")
        counting = None
        if calibration != TIGHT:
            chosen: Gaussian | Laplace = taught(guarantee, bound, steps, calibration, noise, unit_of(clip))
        else:
            drawn = StepNoise(bound, clip, steps, None if sampling is None else exactly(sampling), size is None)
            chosen = calibrate_noise(guarantee, drawn, noise)
            counting = drawn.counting(chosen, is_pure(guarantee))
        return cls(
            noise=chosen,
            counting=counting,
            size=size,
            clip=clip,
            dimension=dimension,
            steps=steps,
            sampling=sampling,
            **others,
        )

    # --- how fast it goes -----------------------------------------------------------------------------------

    def rate(self, size: float) -> float:
        """The learning rate for this many rows.

        The default is the largest that keeps the descent stable, and the noise that is left in every weight at about
        F = `final_noise`: min(F·n(1−β)ρ/(2Cσ√T), 2/L), where ρ is the largest norm of a row. L is the curvature of the
        longest rows, times `steepest` if the mean curvature is known to be smaller. The noise that T steps leave in a
        weight is about ησ√T/(n(1−β)), for any T, because σ grows as √T.
        """
        if self.learning_rate == "bound":
            return best_rate(replace(self, size=size, learning_rate=1)._descended())
        if self.learning_rate is not None:
            return float(exactly(self.learning_rate))
        longest, deviation = float_up(row_norm(self.feature_norm, self.intercept)), self.noise.deviation
        kept = 1 - float(exactly(self.momentum))
        most = float(exactly(self.final_noise))
        quiet = most * size * kept * longest / (2 * float(exactly(self.clip)) * deviation * math.sqrt(self.steps))
        return min(quiet, 2 / (self.loss.smoothness * longest**2 * float(exactly(self.steepest))))

    # --- what it does ---------------------------------------------------------------------------------------

    def _draw(self, value: Any) -> dict[str, Any]:
        region: Any = self.region
        shape = (self.loss.classes, value.dimension) if isinstance(self.loss, Softmax) else (value.dimension,)
        if math.prod(shape) != self.dimension:
            raise InvalidArgument(
                f"The rows need {math.prod(shape)} weights, not {self.dimension}. Set dimension={math.prod(shape)}.",
                code="wrong-shape",
            )
        rows = self._counted(value)
        rate, momentum, first = self.rate(rows), float(exactly(self.momentum)), self._first()
        start = weights = np.asarray(region.project(np.zeros(self.dimension)))
        velocity = np.zeros(self.dimension)
        path, slopes = [weights], []
        seen: Any = repeat(value)
        if self.sampling is not None:
            share = exactly(self.sampling)
            if isinstance(value, Stream):  # rows that do not fit in memory are read once for many steps
                seen = value.samples(share, self.steps, rows, sampling.poisson_samples)
            else:
                seen = (value.sample(samplers.bernoulli(share, value.count)) for _ in range(self.steps))
        with one_product_at_a_time(value):
            for step, part in zip(range(self.steps), seen, strict=False):
                slopes.append(self._noisy_sum(part, weights.reshape(shape)) / (rows * self._share()))
                velocity = _bounded(momentum * velocity + slopes[-1])
                weights = _bounded(region.project(_bounded(weights - rate * velocity)))
                path.append(weights)
                if self.progress is not None:
                    self.progress(step + 1, self.steps)
        kept = np.mean(path[first:-1] or path[-1:], axis=0)
        return {
            "weights": kept.reshape(shape),
            "size": rows,
            "objective": _objective(path, slopes),
            "gap": _gap(path[first:-1], slopes[first:], start, region.reach(self.dimension)),
        }

    def _noisy_sum(self, value: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = value.sums(weights, self.loss, self.clip).reshape(-1)
        return from_lattice(sums + self.noise._noise(sums.size), unit_of(self.clip))

    def _counted(self, value: Any) -> float:
        """The number of rows: a public or a noisy number, never the true one."""
        if self.size is not None:
            return float(exactly(self.size))
        counting: Any = self.counting
        return max(float(counting._draw(value.count)), 1.0)

    def _share(self) -> float:
        return 1.0 if self.sampling is None else float(exactly(self.sampling))


def _bounded(numbers: Any) -> Floats:
    """Public numbers, clipped so that no requested rate makes them infinite."""
    return np.clip(np.nan_to_num(np.asarray(numbers, dtype=np.float64)), -(2.0**400), 2.0**400)


def _objective(path: list[Floats], slopes: list[Floats]) -> Floats:
    """How the mean loss changed after each step except the last, by the trapezoidal rule on the noisy gradients."""
    ends = zip(path, path[1:], slopes, slopes[1:], strict=False)
    return np.cumsum([0.0, *(float((there - here) @ (one + two)) / 2 for here, there, one, two in ends)])


def _gap(path: list[Floats], slopes: list[Floats], start: Floats, reach: float) -> float:
    """The largest mean of ⟨noisy gradient, w_t − w⟩ over all w within `reach` of the start."""
    if not path or math.isinf(reach):
        return math.inf
    own = float(np.mean([slope @ (weights - start) for weights, slope in zip(path, slopes, strict=True)]))
    return own + reach * float(np.linalg.norm(np.mean(slopes, axis=0)))
