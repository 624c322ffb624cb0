"""The two-sample permutation test: one noisy sum among the noisy sums of permuted rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import (
    Number,
    check_count,
    check_positive,
    check_probability,
    exactly,
    exp_bounds,
    log_bounds,
    significant,
)
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.protocol import is_pure, least_noise, meets, tidy
from discreet.queries.query import largest_change
from discreet.queries.sensitivity import SensitivityLike

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SIDES = ("two-sided", "greater", "less")
STEPS = 255
"""The number of equal steps of the range to which values are rounded."""
MOST_PERMUTATIONS = 100_000
_AT_ONCE = 1000
"""How many permutations are drawn together: what they need fits into a few megabytes."""
_NARROWEST = 4
"""The least width of the accepted sums, in scales of the noise. Noise alone is wider at a level up to 13%."""


@dataclass(frozen=True, kw_only=True)
class PermutationTest:
    """Compares the sum of the second group with the sums of as many rows drawn at random, all with the same noise.

    A row is a part of the range from 0 to 1, and the number of its group, 0 or 1. Parts are rounded to a multiple of
    1/`steps`, up or down at random so that their mean stays the same. With a `level`, the answer is whether the
    hypothesis is rejected that groups do not matter. Without one, it is how many of the permuted sums are larger.

    Promise: let D be a permuted sum less that of the second group. The permutations of two neighbors can be coupled so
    that no D changes by more than `steps`: an added row exchanges its group with that of a random row, and D changes by
    the difference of their two values. So do the order statistics of all D plus noise, and the answer compares the
    noise of the second group with them.
    With a level and one side, the answer is a threshold of that noise, and ε is steps/scale. With two sides it is an
    interval of it that is made at least `width` wide: ε is the logarithm of (e^w − v·e^−w)/(1 − v), where w is
    steps/scale and v is e^(−width/scale). Without a level ε is 2·steps/scale for an added or removed row, and
    3·steps/scale for a replaced one, which bounds the density of the rank for infinitely many permutations.
    Level: if groups are exchangeable, so are the noisy sums. A hypothesis that is true is rejected with a probability
    of at most `level`, for any number of rows and any distribution.
    Source: Kim-Schrab 2023 for noise on all sums, with a scale of twice their sensitivity over ε, for replaced rows.
    """

    scale: Number
    permutations: int
    level: Number | None
    side: str = "two-sided"
    steps: int = STEPS
    unit: Unit

    def __post_init__(self) -> None:
        check_positive(self.scale, "scale")
        check_count(self.steps, "steps")
        if not isinstance(self.unit, Unit):
            raise InvalidArgument("unit must be row() or person('column').", code="wrong-type")
        if self.side not in SIDES:
            raise InvalidArgument('side must be "two-sided", "greater" or "less".', code="not-an-option")
        if check_count(self.permutations, "permutations") > MOST_PERMUTATIONS:
            raise InvalidArgument(f"permutations must be at most {MOST_PERMUTATIONS:,}.", code="too-large")
        if self.level is not None and not self.tail:
            raise InvalidArgument(
                "So few permutations can never reject at this level. Use permutations=999 or more.", code="out-of-range"
            )

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        unit: Unit,
        permutations: int = 999,
        level: Number | None = None,
        side: str = "two-sided",
        steps: int = STEPS,
    ) -> PermutationTest:
        """The least noise that keeps a Pure guarantee."""
        if not is_pure(guarantee):
            raise IncompatibleGuarantee("A permutation test keeps an ε without δ. Ask for Pure(epsilon=1).")

        def make(scale: Fraction) -> PermutationTest:
            return cls(scale=tidy(scale), permutations=permutations, level=level, side=side, steps=steps, unit=unit)

        start = significant(check_count(steps, "steps") / exactly(guarantee.epsilon), up=True)
        return least_noise(make, lambda m: meets(m.guarantee(), guarantee), start)

    @property
    def tail(self) -> int:
        """How many of the noisy sums, with that of the second group, are beyond a bound that rejects."""
        level = check_probability(self.level, "level") / (2 if self.side == "two-sided" else 1)
        return int(level * (self.permutations + 1))

    @property
    def width(self) -> int:
        """The least number of sums that two sides accept."""
        return -int(-_NARROWEST * exactly(self.scale) // 1)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For one added, removed or replaced unit with one row, as `unit` says."""
        moved = self.steps / exactly(self.scale)
        if self.level is None:
            epsilon = largest_change(self.unit, 1, added=2, replaced=3) * moved
        elif self.side == "two-sided":
            grown = exp_bounds(moved)[1]
            narrow = exp_bounds(-self.width / exactly(self.scale))[1]
            epsilon = log_bounds((grown - narrow / grown) / (1 - narrow))[1]
        else:
            epsilon = moved
        return Pure(epsilon=significant(epsilon, up=True, digits=15), protects=self.unit)

    def error(self, confidence: float) -> Accuracy:
        """A test has no error bar."""
        return Accuracy(amount=None, confidence=check_confidence(confidence), of="value", reason="it is a test")

    def _draw(self, value: Any) -> bool | int:
        return self._answer(self.count(*value))

    def count(self, parts: Floats, groups: Ints) -> Ints:
        """The number of rows of each group with each rounded value. Rows without a value or a group are left out."""
        known = ~np.isnan(parts) & (groups >= 0) & (groups < 2)
        rounded = self._round(parts[known])
        flat = np.bincount(groups[known] * (self.steps + 1) + rounded, minlength=2 * (self.steps + 1))
        return np.asarray(flat.reshape(2, -1), dtype=np.int64)

    def _round(self, parts: Floats) -> Ints:
        """Whole numbers of steps with the same mean: each is rounded up or down at random."""
        raised = samplers.uniform_below(2**53, len(parts)) * 2.0**-53
        return np.clip(np.floor(parts * self.steps + raised), 0, self.steps).astype(np.int64)

    def _answer(self, counts: Ints) -> bool | int:
        """The answer from the number of rows of each group with each rounded value."""
        sums = permuted_sums(counts.sum(0), int(counts[1].sum()), self.permutations)
        noise = samplers.discrete_laplace(exactly(self.scale), self.permutations + 1)
        others = np.sort(sums - int(counts[1] @ np.arange(self.steps + 1)) + noise[1:])
        if self.level is not None:
            return self.decide(int(noise[0]), others)
        # ties in a random order: the promise is for sums without ties
        tied = int((others == noise[0]).sum())
        return int((others > noise[0]).sum()) + int(samplers.uniform_below(tied + 1, 1)[0])

    def decide(self, own: int, others: Ints) -> bool:
        """Whether a sum is rejected next to these sorted ones. The level holds for any sums that are exchangeable."""
        low, high = int(others[self.tail - 1]), int(others[-self.tail])
        if self.side == "greater":
            return own > high
        if self.side == "less":
            return own < low
        both, width = low + high, self.width
        return own < min(low, -((width - both) // 2)) or own > max(high, (both + width) // 2)


def permuted_sums(counts: Ints, taken: int, size: int) -> Ints:
    """`size` sums of `taken` rows drawn without replacement. `counts[v]` is how many rows have the value v.

    The rows are divided between smaller and larger values, and so on: each division is hypergeometric.
    """
    places = 1 << (len(counts) - 1).bit_length()
    known = np.zeros(places, dtype=np.int64)
    known[: len(counts)] = counts
    levels = [known]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2).sum(1))
    return np.concatenate([_sums(levels, taken, min(_AT_ONCE, size - done)) for done in range(0, size, _AT_ONCE)])


def _sums(levels: list[Ints], taken: int, size: int) -> Ints:
    drawn = np.full((size, 1), taken, dtype=np.int64)
    for counts in levels[-2::-1]:
        left, right = (np.broadcast_to(counts[side::2], drawn.shape).reshape(-1) for side in (0, 1))
        smaller = samplers.hypergeometric(left, right, drawn.reshape(-1)).reshape(drawn.shape)
        drawn = np.stack([smaller, drawn - smaller], axis=2).reshape(size, -1)
    return drawn @ np.arange(drawn.shape[1])
