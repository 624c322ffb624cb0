"""Keys that enough people have, if nobody says how many one person may have: people share a weight among theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import meets, tidy
from discreet.mechanisms.selection.key_holders import FULL
from discreet.mechanisms.selection.threshold import SMALLEST_DELTA, order_of
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

STEP = Fraction(1, 2**20)
"""Weights are whole numbers of these."""
SLIGHT = 1
"""The factor in the second round of keys that are far from being shown. That of the others is FULL."""
FIRST = 0.1
"""The part of μ² for the first round."""
_POINTS = 1000
"""The number of weights at which the probability of a key of one person alone is bounded."""


class KeyTotals(Protocol):
    """The private weights of all keys, read when they are asked for."""

    def totals(self, factors: Mapping[Any, int] | None) -> Mapping[Any, int]:
        """The sum over people of each key's weight, in steps. A person's weights are in proportion to the factors of
        the keys, and the sum of their squares is at most 1. Without factors all are equal. Keys of factor 0 are left
        out.
        """


@dataclass(frozen=True, kw_only=True)
class WeightedKeys:
    """Shows the keys whose weights, summed over people, reach a threshold with Gaussian noise, in two rounds.

    Each person has at most `keys_per_person` keys (the reader leaves out others at random), and gives a weight to each,
    so that the squares of the weights sum to at most 1. In the second round a person leaves out keys that are already
    shown, and gives a third of the weight to those that are far below the threshold. All sizes are in units of the
    weight of a person with one key.

    Promise: add or remove a person. On keys that others have, each round is Gaussian noise for an L2 distance of at
    most 1: the weights of others depend on their own keys and on noisy totals only, and those of the person have a norm
    of at most 1 whatever those totals are. A key that the person alone has appears with a small probability. It is
    bounded for all weights that the person may have: with p(w) the probability of a key of weight w, −ln(1−p) is an
    increasing function of w², so its sum over n keys is at most n times its concave envelope at 1/n, which is largest
    for the most keys.
    Error: none is stated: nothing but the keys is shown.
    Source: weights as in Gopi et al. 2020, two rounds as in MAD2R (Chen et al. 2025), with exact noise.
    """

    first_stddev: Number
    first_threshold: Number
    stddev: Number
    threshold: Number
    keys_per_person: int = 300

    def __post_init__(self) -> None:
        for name in ("first_stddev", "first_threshold", "stddev", "threshold"):
            check_positive(getattr(self, name), name)
        check_count(self.keys_per_person, "keys_per_person")

    @cached_property
    def _rounds(self) -> tuple[tuple[Gaussian, int], tuple[Gaussian, int]]:
        """The noise and the threshold of each round, in steps."""
        sizes = (self.first_stddev, self.first_threshold), (self.stddev, self.threshold)
        first, second = (
            (Gaussian(stddev=tidy(exactly(noise) / STEP), step=1), math.ceil(exactly(bar) / STEP))
            for noise, bar in sizes
        )
        return first, second

    @property
    def delta(self) -> float:
        """The probability that any key of one person alone appears, in either round, rounded up."""
        return sum(_alone(noise, bar, self.keys_per_person) for noise, bar in self._rounds)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        if sensitivity is not None:
            raise InvalidArgument(
                "The weights of one person are part of this mechanism. Leave sensitivity= out.",
                code="sensitivity-not-taken",
            )
        # one coordinate is the worst for Gaussian noise, and a norm of all its steps is as large as it can be
        moved = Sensitivity(1 / STEP, "L2", dimension=self.keys_per_person, grain=1)
        leak = LossDistribution(
            factors=((ResponsePair(Fraction(0), Fraction(self.delta)), 1),), neighbors="add_or_remove"
        )
        return compose([*(noise.guarantee(moved) for noise, _ in self._rounds), leak])

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, *, keys_per_person: int = 300) -> Self:
        """Half of δ for the noise, a quarter for the keys of one person in each round."""
        if not isinstance(guarantee, Approx) or not exactly(guarantee.delta):
            raise InvalidArgument(
                "A release of undeclared keys needs a delta, such as Approx(epsilon=1, delta=1e-8).", code="needs-delta"
            )
        delta = exactly(guarantee.delta)
        if delta < SMALLEST_DELTA:
            raise InvalidArgument(
                "A release of undeclared keys needs a delta of at least 1e-280. Give a larger one.", code="out-of-range"
            )
        mu = largest_mu(float(guarantee.epsilon), float(delta / 2))
        for attempt in range(40):
            lowered = mu * (1 - 1e-6 * 4**attempt if attempt < 9 else 0.5 ** (attempt - 8))
            parts = [lowered * math.sqrt(share) for share in (FIRST, 1 - FIRST)]
            noises = [significant(1 / exactly(part), up=True) for part in parts]
            bars = [_threshold(noise, float(delta / 4), keys_per_person) for noise in noises]
            found = cls(
                first_stddev=tidy(noises[0]),
                first_threshold=tidy(bars[0]),
                stddev=tidy(noises[1]),
                threshold=tidy(bars[1]),
                keys_per_person=keys_per_person,
            )
            if meets(found.guarantee(), guarantee):
                return found
        raise InvalidArgument("No noise was found that keeps this guarantee.", code="guarantee-out-of-reach")

    def people_needed(self, keys: int) -> float:
        """How many people with so many keys each make it as likely as not that a key is shown."""
        return float(exactly(self.threshold)) * math.sqrt(check_count(keys, "keys"))

    def error(self, confidence: float) -> Accuracy:
        return Accuracy(amount=None, confidence=confidence, reason="nothing but keys is shown")

    def check(self, value: Data) -> None:
        """Refuse what has no totals. Only the type decides."""
        if not callable(getattr(value, "totals", None)):
            raise InvalidArgument(
                "Give who has which keys, as PersonKeys(people=…, codes=…, keys=…).", code="wrong-type"
            )

    def _draw(self, value: KeyTotals) -> list[Any]:
        self.check(value)
        first, second = self._rounds
        noisy = _with_noise(value.totals(None), first[0])
        shown = {key for key, total in noisy.items() if total >= first[1]}
        far = second[1] / 2 - 2 * float(exactly(first[0].stddev))
        factors = {key: 0 if key in shown else SLIGHT if total < far else FULL for key, total in noisy.items()}
        again = _with_noise(value.totals(factors), second[0])
        shown |= {key for key, total in again.items() if total >= second[1]}
        return sorted(shown, key=order_of)


def _with_noise(totals: Mapping[Any, int], noise: Gaussian) -> dict[Any, int]:
    keys = list(totals)
    noisy = np.asarray(noise._draw(np.array([int(totals[key]) for key in keys], dtype=np.int64)))
    return {key: int(total) for key, total in zip(keys, noisy.tolist(), strict=True)}


def _alone(noise: Gaussian, bar: int, keys: int) -> float:
    """The probability that any key of one person alone reaches the bar, for the worst weights, rounded up."""
    weights = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 1.0, _POINTS)]))
    whole = np.ceil(weights / float(STEP))
    chance = _above(noise, bar - whole)
    if chance[-1] >= 0.5:
        return 1.0
    # between two points the function is at most its value at the next one, as it increases
    size, height = weights**2, -np.log1p(-chance)
    upper = np.append(height[1:], height[-1])
    return min(1.0, -math.expm1(-keys * _envelope(size, upper, 1 / keys)) * (1 + 1e-9))


def _envelope(sizes: NDArray[np.float64], heights: NDArray[np.float64], at: float) -> float:
    """The concave envelope of points, at a position between the first and the last."""
    hull: list[int] = []
    for place in range(len(sizes)):
        while len(hull) > 1 and _turns_up(sizes, heights, hull[-2], hull[-1], place):
            hull.pop()
        hull.append(place)
    return float(np.interp(at, sizes[hull], heights[hull])) * (1 + 1e-9)


def _turns_up(x: NDArray[np.float64], y: NDArray[np.float64], a: int, b: int, c: int) -> bool:
    return bool((y[b] - y[a]) * (x[c] - x[b]) <= (y[c] - y[b]) * (x[b] - x[a]))


def _above(noise: Gaussian, bars: NDArray[np.float64]) -> NDArray[np.float64]:
    """P[X ≥ bar] of discrete Gaussian noise, rounded up.

    Promise: the normalizing sum of the discrete law is at least the integral, and the terms from m ≥ 1 on, which
    decrease, sum to at most the integral from m − 1.
    """
    from scipy.special import erfc

    deviation = float(exactly(noise.stddev))
    return np.asarray(np.where(bars < 1, 1.0, 0.5 * erfc((bars - 1) / deviation / math.sqrt(2)) * (1 + 1e-9)))


@lru_cache(maxsize=256)
def _threshold(stddev: Fraction, delta: float, keys: int) -> Fraction:
    """The lowest threshold, in thousandths, that a key of one person alone reaches with at most this probability."""
    noise = Gaussian(stddev=tidy(stddev / STEP), step=1)

    def keeps(thousandths: int) -> bool:
        return _alone(noise, math.ceil(Fraction(thousandths, 1000) / STEP), keys) <= delta

    found = bracket(keeps, 1000, least=1000, most=10**9)
    if found is None:
        raise InvalidArgument(
            "With so little ε and δ, a group would need over a million people. Give more, or declare the keys.",
            code="out-of-range",
        )
    return Fraction(bisect(keeps, *found), 1000)
