"""Gradient boosting with public random trees: one mechanism, charged once, before its first round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_bound, check_count, check_positive, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.descent.noise import StepNoise, calibrate_noise
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.lattice import from_lattice
from discreet.mechanisms.protocol import plain_sensitivity
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.gradients.leaves import Bins, LeafRows, Tree, slope_unit
from discreet.rows.gradients.losses import Loss, Softmax

Floats = NDArray[np.float64]
SHAPES = ((1, 16), (2, 8), (3, 4), (4, 3))
"""Trees of one to four columns, and in how many parts each column is divided."""
ADAPTED, FIRST, EVERY = 0.6, 0.1, 10
"""Columns are drawn uniformly in the first tenth of the rounds, and then by what they have shown, up to this part."""
STEEP = 5.0
"""The largest rate, with momentum, times the curvature of the loss. A larger one would be unstable."""


@dataclass(frozen=True, kw_only=True)
class BoostedTrees:
    """Lowers the mean loss of `size` rows by `rounds` small trees, one after the other.

    Each tree is drawn from a public seed. The slopes of all rows at their present scores are clipped, rounded and
    added in each leaf, and noise is added to these sums. The scores then move against the noisy sums, with `momentum`.
    Columns whose noisy sums stood out from the noise are drawn more often later. If `size` is not public, `counting` is
    the noise with which the rows are counted first.

    The result is a dict: the `seed` and the `weights` of the columns in each round, which give the trees, the `values`
    of all leaves, rounds × classes × leaves, and the `size`.

    Promise: the composition of the count and the noisy sums of all rounds. A row is in one leaf of each tree, and what
    it adds there has an L2 norm of at most the clip, in whole units. Everything else, including the trees, is computed
    from the seed and earlier noisy sums alone.
    Error: none is stated, because trees that are drawn at random need not fit the data.
    Source: [L10.NPGD] for the composition; boosting as in Nori-Caruana-Bu-Shen-Kulkarni 2021, with random trees.
    """

    bins: Bins
    loss: Loss | Softmax
    rounds: int
    noise: Gaussian
    clip: Number
    final_noise: Number = 0.7
    learning_rate: Number | None = None
    momentum: Number = 0.9
    size: Number | None = None
    counting: Gaussian | None = None

    def __post_init__(self) -> None:
        check_count(self.rounds, "rounds")
        check_bound(self.clip, "clip")
        check_positive(self.final_noise, "final_noise")
        for name in ("learning_rate", "size"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if not 0 <= exactly(self.momentum, "momentum") < 1:
            raise InvalidArgument("momentum must be at least 0 and below 1, such as 0.9.", code="out-of-range")
        if not isinstance(self.noise, Gaussian) or exactly(self.noise.step) != slope_unit(self.clip):
            raise InvalidArgument(
                "noise must be Gaussian, with step=slope_unit(clip). Use for_guarantee.", code="part-does-not-fit"
            )
        if self.size is None and self.counting is None:
            raise InvalidArgument(
                "Give the public number of rows as size=, or the noise to count them with, counting=.",
                code="size-missing",
            )

    # --- what it promises -----------------------------------------------------------------------------------

    @property
    def classes(self) -> int:
        """How many scores a row has."""
        return self.loss.classes if isinstance(self.loss, Softmax) else 1

    def sensitivity(self, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
        """How far one unit can move the sums of one round."""
        return leaf_sensitivity(self.clip, self.classes, unit, rows_per_person)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "L2")
        counting = self.counting if self.size is None else None
        return StepNoise(bound, self.clip, self.rounds, None, self.size is None).guarantee(self.noise, counting)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        clip: Number,
        rounds: int,
        loss: Loss | Softmax,
        size: Number | None = None,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        **described: Any,
    ) -> Self:
        """The least noise for which everything together keeps `guarantee`."""
        classes = loss.classes if isinstance(loss, Softmax) else 1
        bound = leaf_sensitivity(clip, classes, unit, rows_per_person)
        kept: dict[str, Any] = {"clip": clip, "rounds": rounds, "loss": loss, "size": size, **described}
        noise, counting = _calibrated(guarantee, bound, clip, rounds, size is None)
        return cls(noise=noise, counting=counting, **kept)

    def error(self, confidence: float) -> Accuracy:
        why = "trees that are drawn at random need not fit the data"
        return Accuracy(amount=None, confidence=check_confidence(confidence), of="excess risk", reason=why)

    # --- what it does ---------------------------------------------------------------------------------------

    def rate(self, size: float) -> float:
        """The learning rate for this many rows.

        The default leaves noise of about `final_noise` in the score of a row that hardly any others are near to, and
        less elsewhere: the noise of all rounds together is about ησ√T/(n(1−β)).
        """
        if self.learning_rate is not None:
            return float(exactly(self.learning_rate))
        kept = 1 - float(exactly(self.momentum))
        quiet = float(exactly(self.final_noise)) * size / (self.noise.deviation * math.sqrt(self.rounds))
        return kept * min(quiet, STEEP / self.loss.smoothness)

    def left_in_leaves(self, size: float) -> Floats:
        """The standard deviation of the noise that each round leaves in the values of its leaves."""
        return self._grown() * self.rate(size) * self.noise.deviation / size

    def _grown(self) -> Floats:
        """What momentum makes of the move of each round until the end."""
        momentum = float(exactly(self.momentum))
        return np.asarray((1 - momentum ** np.arange(self.rounds, 0, -1)) / (1 - momentum))

    def _draw(self, value: LeafRows) -> dict[str, Any]:
        size = self._counted(value)
        seed = int(samplers.uniform_below(2**62, 1)[0])
        most = max(parts**columns for columns, parts in SHAPES)
        noise = self.noise._noise(self.rounds * self.classes * most).reshape(self.rounds, self.classes, most)
        rate, momentum = self.rate(size) / size, float(exactly(self.momentum))
        values, weights = np.zeros((self.rounds, self.classes, most)), np.zeros((self.rounds, len(self.bins.sizes)))
        seen = Signal(len(self.bins.sizes), self.noise.deviation)
        value.start(self.loss)
        for number in range(self.rounds):
            weights[number] = seen.weights(number, self.rounds)
            tree = self.bins.tree(seed, number, SHAPES, weights[number])
            places = value.places(tree)
            exact = value.sums(places, tree.leaves, self.loss, self.clip)
            units = (exact + noise[number, :, : tree.leaves]).reshape(-1)
            noisy = from_lattice(units, slope_unit(self.clip)).reshape(self.classes, tree.leaves)
            seen.add(tree, noisy)
            moved = np.clip(-rate * noisy, -(2.0**100), 2.0**100)
            value.move(places, moved, momentum)
            values[number, :, : tree.leaves] = moved
        return {
            "seed": seed,
            "weights": weights,
            "values": values * self._grown()[:, None, None],
            "size": size,
        }

    def _counted(self, rows: LeafRows) -> float:
        """The number of rows: a public or a noisy number, never the true one."""
        if self.size is not None:
            return float(exactly(self.size))
        counting: Any = self.counting
        return max(float(counting._draw(rows.count)), 1.0)


class Signal:
    """How far the noisy sums of each column stand out from the noise."""

    def __init__(self, columns: int, deviation: float) -> None:
        self._deviation, self._drawn = deviation, np.zeros(columns)
        self._total = np.zeros(columns)
        self._weights = np.full(columns, 1 / columns)

    def add(self, tree: Tree, noisy: Floats) -> None:
        """Add the squared differences between the parts of each column of a tree, less what noise alone gives."""
        cube = (noisy / self._deviation).reshape(len(noisy), *reversed(tree.parts))
        for place, (column, parts) in enumerate(zip(tree.columns, tree.parts, strict=True)):
            axis = cube.ndim - 1 - place
            apart = cube - cube.mean(axis=axis, keepdims=True)
            freedom = cube.size * (1 - 1 / parts)
            self._total[column] += float(np.minimum((apart * apart).sum(), 2.0**200)) - freedom
            self._drawn[column] += freedom

    def weights(self, number: int, rounds: int) -> Floats:
        """How likely each column is in a tree: uniform at first."""
        if number >= FIRST * rounds and number % EVERY == 0:
            clear = np.sqrt(np.maximum(self._total / np.maximum(self._drawn, 1), 0))
            uniform = np.full(len(clear), 1 / len(clear))
            whole = float(clear.sum())
            self._weights = uniform if not whole else (1 - ADAPTED) * uniform + ADAPTED * clear / whole
        return self._weights


def leaf_sensitivity(clip: Number, classes: int, unit: Unit | None = None, rows_per_person: int = 1) -> Sensitivity:
    """How far one unit can move the sums of the leaves of a tree, in L2.

    Promise: a row added or removed changes one leaf, by at most the clip. A replaced row changes one or two, by at most
    twice the clip. Only these coordinates move, by whole units.
    """
    who = row() if unit is None else unit
    parts = check_rows(who, rows_per_person) * (2 if who.neighbors == "replace" else 1)
    return Sensitivity(
        exactly(clip) * parts, "L2", unit=unit, dimension=max(2, classes * parts), grain=slope_unit(clip)
    )


@lru_cache(maxsize=64)
def _calibrated(guarantee: Guarantee, bound: Sensitivity, clip: Number, rounds: int, counted: bool) -> tuple[Any, Any]:
    """The least noise of a round, and that of the count. It is cached, because cross-validation asks for it often."""
    drawn = StepNoise(bound, clip, rounds, None, counted)
    noise: Any = calibrate_noise(guarantee, drawn, "gaussian")
    return noise, drawn.counting(noise, pure=False)
