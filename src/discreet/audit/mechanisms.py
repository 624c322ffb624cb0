"""Our own mechanisms, ready to be audited through the public door: each on two neighbors where it is nearly
at its worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.door import release
from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Approx, Pure
from discreet.mechanisms.combine import Subsampled
from discreet.mechanisms.exponential import Exponential, PermuteAndFlip
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_argmax import NoisyArgmax
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.threshold import AboveThreshold, KeySelection
from discreet.queries.space import Integers
from discreet.rational import exactly

TOGETHER, ONE_BY_ONE = 1_000_000, 50_000
"""How many outputs to draw by default: millions a second in one array, or one release for each."""

_HALF_THE_NOISE = {
    "scale": Fraction(1, 2),
    "stddev": Fraction(1, 2),
    "threshold_scale": Fraction(1, 2),
    "answer_scale": Fraction(1, 2),
    "lie": Fraction(1, 2),
    "rate": Fraction(2),
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A mechanism, two neighboring inputs, and how far apart they are in its own norm."""

    mechanism: Any
    first: Any
    second: Any
    sensitivity: Any = None

    @property
    def samples(self) -> int:
        """How many outputs to draw when nobody says."""
        return TOGETHER if _drawn_together(self.mechanism, self.first) else ONE_BY_ONE

    def draw(self, data: Any, size: int) -> Iterable[Any]:
        """That many independent releases of `data`."""
        return released(self.mechanism, self.sensitivity)(data, size)


def released(mechanism: Any, sensitivity: Any) -> Callable[[Any, int], Iterable[Any]]:
    """A mechanism as `draw(data, size)`, through the door. Entries of an array get independent noise."""

    def draw(data: Any, size: int) -> Any:
        if _drawn_together(mechanism, data):
            many = np.full(size, data) if np.ndim(data) == 0 else [data] * size
            return release(many, mechanism, sensitivity=sensitivity).value
        return [release(data, mechanism, sensitivity=sensitivity).value for _ in range(size)]

    return draw


def _drawn_together(mechanism: Any, data: Any) -> bool:
    return isinstance(mechanism, Laplace | Gaussian | RandomizedResponse) and np.ndim(data) == 0


def halved(mechanism: Any) -> Any:
    """The same mechanism with half its noise: half the scale, half the lies, or twice the preference."""
    if isinstance(mechanism, Subsampled):
        return replace(mechanism, mechanism=halved(mechanism.mechanism))
    changed = {name: factor * exactly(getattr(mechanism, name))
               for name, factor in _HALF_THE_NOISE.items() if hasattr(mechanism, name)}  # fmt: skip
    return replace(mechanism, **changed)


def subject(name: str, *, epsilon: Any, delta: Any = 0, broken: bool = False) -> Subject:
    """A mechanism by name, calibrated for (ε,δ); `broken` draws with half of the noise that takes."""
    if name not in SUBJECTS:
        raise InvalidArgument(f"No mechanism is called {name!r}. Known: {', '.join(SUBJECTS)}.")
    pure = exactly(delta, "delta") == 0
    built = SUBJECTS[name](Pure(epsilon=epsilon) if pure else Approx(epsilon=epsilon, delta=delta))
    return replace(built, mechanism=halved(built.mechanism)) if broken else built


def _laplace(promise: Approx) -> Subject:
    mechanism = Laplace.for_guarantee(promise, sensitivity=1)
    return Subject(mechanism=mechanism, first=0.0, second=1.0, sensitivity=1)


def _gaussian(promise: Approx) -> Subject:
    mechanism = Gaussian.for_guarantee(promise, sensitivity=1)
    return Subject(mechanism=mechanism, first=0.0, second=1.0, sensitivity=1)


def _randomized_response(promise: Approx) -> Subject:
    return Subject(mechanism=RandomizedResponse.for_guarantee(promise, choices=["yes", "no"]), first="yes", second="no")


def _choosing(mechanism: Any) -> Subject:
    # one candidate loses what nineteen rivals gain: its odds fall by the whole of ε
    return Subject(mechanism=mechanism, first=[1] + [0] * 19, second=[0] + [1] * 19, sensitivity=1)


def _median(promise: Approx) -> Subject:
    # a row added at 0 favors the one point left of the other row over the many right of it
    mechanism = Quantile.for_guarantee(promise, space=Integers(0, 40))
    return Subject(mechanism=mechanism, first=[1], second=[1, 0])


def _above_threshold(promise: Approx) -> Subject:
    mechanism = AboveThreshold.for_guarantee(promise, threshold=0, sensitivity=1)
    return Subject(mechanism=mechanism, first=[0, 0, 0, 0, 1], second=[1, 1, 1, 1, 0], sensitivity=1)


def _key_selection(promise: Approx) -> Subject:
    mechanism = KeySelection.for_guarantee(promise)
    held = mechanism.threshold
    return Subject(mechanism=mechanism, first={"key": held}, second={"key": held + 1})


def _subsampled(promise: Approx) -> Subject:
    mechanism = Subsampled.for_guarantee(
        promise, of=lambda scale: Laplace(scale=scale), rate=Fraction(1, 2), sensitivity=1, query=sum
    )
    return Subject(mechanism=mechanism, first=[], second=[1], sensitivity=1)


SUBJECTS: dict[str, Callable[[Approx], Subject]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "randomized_response": _randomized_response,
    "exponential": lambda promise: _choosing(Exponential.for_guarantee(promise, sensitivity=1)),
    "permute_and_flip": lambda promise: _choosing(PermuteAndFlip.for_guarantee(promise, sensitivity=1)),
    "noisy_argmax": lambda promise: _choosing(NoisyArgmax.for_guarantee(promise, sensitivity=1)),
    "median": _median,
    "above_threshold": _above_threshold,
    "key_selection": _key_selection,
    "subsampled": _subsampled,
}
