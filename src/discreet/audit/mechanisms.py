"""Our own mechanisms, audited through the public door on two neighbors where each is nearly at its worst."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.door import release
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.guarantees.guarantee import Approx, Pure
from discreet.mechanisms.combine import Subsampled
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.quantiles.quantile import Quantile
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip
from discreet.mechanisms.selection.noisy_argmax import NoisyArgmax
from discreet.mechanisms.selection.threshold import AboveThreshold, KeySelection
from discreet.mechanisms.selection.upward_search import UpwardSearch
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Integers
from discreet.rows.containers import Data

TOGETHER, ONE_BY_ONE = 1_000_000, 50_000
"""How many outputs to draw by default: millions a second in one array, or one release for each."""

_HALF_THE_NOISE = {
    "scale": Fraction(1, 2),
    "stddev": Fraction(1, 2),
    "threshold_scale": Fraction(1, 2),
    "answer_scale": Fraction(1, 2),
    "bar_scale": Fraction(1, 2),
    "step_scale": Fraction(1, 2),
    "lie": Fraction(1, 2),
    "rate": Fraction(2),
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A mechanism, two neighboring inputs `sensitivity` apart in its own norm, and the (ε,δ) to be refuted."""

    mechanism: Any
    first: Any
    second: Any
    claim: Approx
    sensitivity: SensitivityLike = None

    @property
    def samples(self) -> int:
        """The default number of outputs to draw."""
        return TOGETHER if _draw_together(self.mechanism, self.first) else ONE_BY_ONE

    def draw(self, data: Data, size: int) -> Iterable[Any]:
        """That many independent releases of `data`."""
        return draw_through_door(self.mechanism, self.sensitivity)(data, size)


def draw_through_door(mechanism: Any, sensitivity: SensitivityLike) -> Callable[[Any, int], Iterable[Any]]:
    """A mechanism as `draw(data, size)`, through the door. Entries of an array get independent noise."""

    def draw(data: Data, size: int) -> Any:
        if _draw_together(mechanism, data):
            return release(np.full(size, data), mechanism, sensitivity=sensitivity).value
        return [release(data, mechanism, sensitivity=sensitivity).value for _ in range(size)]

    return draw


def _draw_together(mechanism: Any, data: Any) -> bool:
    return isinstance(mechanism, Laplace | Gaussian | RandomizedResponse) and np.ndim(data) == 0


def with_half_noise(mechanism: Any) -> Any:
    """The same mechanism with half its noise: half the scale, half the lies, or twice the preference."""
    if isinstance(mechanism, Subsampled):
        return replace(mechanism, mechanism=with_half_noise(mechanism.mechanism))
    names = {one.name for one in fields(mechanism)}
    changed: dict[str, Any] = {"step": None} if "step" in names else {}
    for name, factor in _HALF_THE_NOISE.items():
        if name in names:
            changed[name] = tidy(factor * exactly(getattr(mechanism, name)))
    return replace(mechanism, **changed)


def subject(name: str, *, epsilon: Number, delta: Number = 0, broken: bool = False) -> Subject:
    """A mechanism by name, calibrated for (ε,δ); `broken` draws with half of the noise that takes."""
    if name not in SUBJECTS:
        raise InvalidArgument(f"Unknown mechanism {name!r}. Choose one of {', '.join(SUBJECTS)}.", code="not-an-option")
    pure = exactly(delta, "delta") == 0
    promise = Pure(epsilon=epsilon) if pure else Approx(epsilon=epsilon, delta=delta)
    built = SUBJECTS[name](promise)
    return replace(built, mechanism=with_half_noise(built.mechanism)) if broken else built


def _laplace(promise: Approx) -> Subject:
    mechanism = Laplace.for_guarantee(promise, sensitivity=1)
    return Subject(mechanism=mechanism, first=0.0, second=1.0, claim=promise, sensitivity=1)


def _gaussian(promise: Approx) -> Subject:
    # events as rare as δ need many outputs; the same curve at a large δ is refuted by few
    mechanism = Gaussian.for_guarantee(promise, sensitivity=1)
    curve = mechanism.guarantee(1)
    often = curve.delta_at(epsilon=0) / 2
    claim = Approx(epsilon=curve.epsilon_at(delta=often), delta=often)
    return Subject(mechanism=mechanism, first=0.0, second=1.0, claim=claim, sensitivity=1)


def _randomized_response(promise: Approx) -> Subject:
    mechanism = RandomizedResponse.for_guarantee(promise, choices=["yes", "no"])
    return Subject(mechanism=mechanism, first="yes", second="no", claim=promise)


def _choosing(kind: Any) -> Callable[[Approx], Subject]:
    # one candidate loses what nineteen rivals gain: its odds fall by the whole of ε
    first, second = [1] + [0] * 19, [0] + [1] * 19

    def build(promise: Approx) -> Subject:
        mechanism = kind.for_guarantee(promise, sensitivity=1)
        return Subject(mechanism=mechanism, first=first, second=second, claim=promise, sensitivity=1)

    return build


def _median(promise: Approx) -> Subject:
    # a row added at 0 favors the one point left of the other row over the many right of it
    mechanism = Quantile.for_guarantee(promise, space=Integers(0, 40))
    return Subject(mechanism=mechanism, first=[1], second=[1, 0], claim=promise)


def _above_threshold(promise: Approx) -> Subject:
    # three answers just miss and a fourth just passes, or the other way round: both halves of ε are spent
    mechanism = AboveThreshold.for_guarantee(promise, threshold=0.5, sensitivity=1)
    first, second = [0, 0, 0, 1], [1, 1, 1, 0]
    return Subject(mechanism=mechanism, first=first, second=second, claim=promise, sensitivity=1)


def _upward_search(promise: Approx) -> Subject:
    # one person more above the first limit, and a stop at the second: the bar and the step are both spent
    bound = Sensitivity(1, "Linf", grain=1, monotone=True)
    mechanism = UpwardSearch.for_guarantee(promise, people=1, sensitivity=bound)
    first, second = [mechanism.enough] * 2 + [0], [mechanism.enough + 1, mechanism.enough, 0]
    return Subject(mechanism=mechanism, first=first, second=second, claim=promise, sensitivity=bound)


def _key_selection(promise: Approx) -> Subject:
    mechanism = KeySelection.for_guarantee(promise)
    first, second = {"key": mechanism.threshold}, {"key": mechanism.threshold + 1}
    return Subject(mechanism=mechanism, first=first, second=second, claim=promise)


def _subsampled(promise: Approx) -> Subject:
    mechanism = Subsampled.for_guarantee(
        promise, of=lambda scale: Laplace(scale=scale), rate=Fraction(1, 2), sensitivity=1, query=sum
    )
    return Subject(mechanism=mechanism, first=[], second=[1], claim=promise, sensitivity=1)


SUBJECTS: dict[str, Callable[[Approx], Subject]] = {
    "laplace": _laplace,
    "gaussian": _gaussian,
    "randomized_response": _randomized_response,
    "exponential": _choosing(Exponential),
    "permute_and_flip": _choosing(PermuteAndFlip),
    "noisy_argmax": _choosing(NoisyArgmax),
    "median": _median,
    "above_threshold": _above_threshold,
    "upward_search": _upward_search,
    "key_selection": _key_selection,
    "subsampled": _subsampled,
}
