"""Lower confidence bounds on ε and δ from the outputs of a mechanism on two neighbors.

If `M` is (ε,δ)-private then `P[M(X)∈F] ≤ e^ε P[M(X')∈F] + δ` for every event F, so an event much likelier on
one side refutes a small ε. Each sample is cut in three: on a quarter, bins are proposed and ordered by how
telling they are; on a quarter, the best event and direction are chosen; the other half had no say, and tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.features import (
    Event,
    Floats,
    Outputs,
    as_outputs,
    bins_of,
    comparable,
    edges_of,
    features_for,
)
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_delta, exactly
from discreet.guarantees.accuracy import check_confidence

Counts = npt.NDArray[np.int64]
Strength = Callable[[Floats, Floats], Floats]
"""From a lower bound on P[F] and an upper bound on Q[F] to the quantity that is thereby proved."""

FEWEST = 8
CLEARLY = 0.01
"""Simple events are tried first; another must be this much better to replace one."""
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, kw_only=True)
class Finding:
    """No guarantee with less than `epsilon` at this `delta`, nor less than `delta` at this `epsilon`, holds.

    Promise: for independent outputs the sentence above is false with probability at most 1 − `confidence`.
    `event` was chosen without the outputs it is tested on. It held in `hits[0]` of `trials[0]` runs on the
    neighbor where it is `likelier`, and in `hits[1]` of `trials[1]` on the other. 0 refutes nothing.
    Source: Clopper-Pearson 1934, one side on each neighbor at half the error.
    """

    epsilon: float
    delta: float
    confidence: float
    event: str
    likelier: str
    hits: tuple[int, int]
    trials: tuple[int, int]

    @property
    def probabilities(self) -> tuple[float, float]:
        """How often the event was seen on the likelier neighbor, and on the other."""
        return self.hits[0] / self.trials[0], self.hits[1] / self.trials[1]

    def __str__(self) -> str:
        p, q = self.probabilities
        return (
            f"ε ≥ {self.epsilon:.4g} at δ = {self.delta:.4g} (confidence {self.confidence:.7g}): "
            f"{self.event}, in {p:.4g} of the runs on the {self.likelier} neighbor and {q:.4g} on the other"
        )


def lower_bound(
    sample_a: Iterable[Any], sample_b: Iterable[Any], *, delta: Number = 0.0, confidence: Number = 0.99999
) -> Finding:
    """A lower confidence bound on ε at `delta`, from independent outputs on two neighbors.

    >>> finding = lower_bound(["yes", "no"] * 500, ["no"] * 1000)
    >>> finding.event, finding.epsilon > 1
    ("the output is 'yes'", True)
    """
    allowed = float(check_delta(delta))
    return _find(sample_a, sample_b, _epsilon_strength(allowed), confidence, lambda proved: (proved, allowed))


def delta_lower_bound(
    sample_a: Iterable[Any], sample_b: Iterable[Any], *, epsilon: Number, confidence: Number = 0.99999
) -> Finding:
    """A lower confidence bound on δ at `epsilon`, from independent outputs on two neighbors."""
    exact = exactly(epsilon, "epsilon")
    if exact < 0:
        raise InvalidArgument("epsilon must be at least 0.", code="out-of-range")
    given = float(exact)
    return _find(sample_a, sample_b, _delta_strength(given), confidence, lambda proved: (given, proved))


def clopper_pearson(hits: Any, trials: int, miss: float) -> tuple[Floats, Floats]:
    """Exact bounds (low, high) on a probability: each fails with probability at most `miss`.

    >>> low, high = clopper_pearson(0, 100, 0.05)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0295)
    """
    from scipy.special import betainccinv, betaincinv

    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, miss), 0.0)
    high = np.where(k < trials, betainccinv(k + 1, np.maximum(trials - k, 1), miss), 1.0)
    return low, high


def wilson(hits: Any, trials: int, miss: float) -> tuple[Floats, Floats]:
    """Nearly the bounds of `clopper_pearson` and much cheaper: good to choose an event, not to test it."""
    from scipy.special import ndtri

    z2 = float(ndtri(miss)) ** 2
    k = np.asarray(hits, dtype=np.float64)
    width = np.sqrt(z2 * (k * (trials - k) / trials + z2 / 4))
    center = k + z2 / 2
    return np.maximum(center - width, 0.0) / (trials + z2), (center + width) / (trials + z2)


def epsilon_proved(hits: Any, other_hits: Any, trials: tuple[int, int], delta: float, confidence: float) -> Any:
    """The ε refuted by an event fixed in advance, seen this often on each neighbor; never below 0."""
    miss = _miss(confidence) / 2
    low = clopper_pearson(hits, trials[0], miss)[0]
    high = clopper_pearson(other_hits, trials[1], miss)[1]
    return np.maximum(_epsilon_strength(delta)(low, high), 0.0)


def _miss(confidence: Any) -> float:
    check_confidence(confidence)
    return float(1 - exactly(confidence))


def _epsilon_strength(delta: float) -> Strength:
    return lambda low, high: np.log(np.maximum(low - delta, 1e-300) / high)


def _delta_strength(epsilon: float) -> Strength:
    factor = math.exp(min(epsilon, 700.0))
    return lambda low, high: low - factor * high


def _find(
    sample_a: Iterable[Any],
    sample_b: Iterable[Any],
    strength: Strength,
    confidence: Any,
    point: Callable[[float], tuple[float, float]],
) -> Finding:
    miss = _miss(confidence) / 2
    samples = comparable(as_outputs(sample_a), as_outputs(sample_b))
    if min(map(len, samples)) < FEWEST:
        raise InvalidArgument(
            f"An audit needs at least {FEWEST} outputs on each neighbor, and is useful from 10,000. Draw more.",
            code="audit-too-few-outputs",
        )
    proposing, choosing, testing = zip(*map(_cut, samples), strict=True)
    with np.errstate(invalid="ignore", over="ignore"):  # outputs may be infinite
        event, likelier = _best_event(proposing, choosing, strength, miss)
        sides = (testing[likelier], testing[1 - likelier])
        hits = event.count(sides[0]), event.count(sides[1])
    trials = len(sides[0]), len(sides[1])
    low, high = clopper_pearson(hits[0], trials[0], miss)[0], clopper_pearson(hits[1], trials[1], miss)[1]
    epsilon, delta = point(max(0.0, float(strength(low, high))))
    return Finding(
        epsilon=epsilon,
        delta=delta,
        confidence=float(confidence),
        event=str(event),
        likelier=("first", "second")[likelier],
        hits=hits,
        trials=trials,
    )


def _cut(sample: Outputs) -> tuple[Outputs, Outputs, Outputs]:
    # by multiples of the golden ratio, so that a sorted, drifting or periodic sample is still cut fairly
    turn = np.arange(len(sample)) * GOLDEN % 1
    return sample[turn < 0.25], sample[(turn >= 0.25) & (turn < 0.5)], sample[turn >= 0.5]


def _best_event(
    proposing: tuple[Outputs, ...], choosing: tuple[Outputs, ...], strength: Strength, miss: float
) -> tuple[Event, int]:
    best_score = -math.inf
    best: tuple[Event, int] | None = None
    for feature in features_for(*proposing):
        edges = edges_of(np.concatenate([feature.of(outputs) for outputs in proposing]))

        def counts(outputs: Outputs, feature: Any = feature, edges: Floats = edges) -> Counts:
            return np.bincount(bins_of(feature, edges, outputs), minlength=len(edges) + 1)

        proposed, seen = [counts(s) for s in proposing], [counts(s) for s in choosing]
        for p, q in ((0, 1), (1, 0)):
            for order in _orders(proposed[p], proposed[q], tails=not feature.labels):
                low = wilson(np.cumsum(seen[p][order]), len(choosing[p]), miss)[0]
                high = wilson(np.cumsum(seen[q][order]), len(choosing[q]), miss)[1]
                scores = strength(low, high)
                last = int(np.argmax(scores))
                if best is None or scores[last] > best_score + CLEARLY * abs(best_score):
                    chosen = np.zeros(len(edges) + 1, dtype=np.bool_)
                    chosen[order[: last + 1]] = True
                    best_score, best = float(scores[last]), (Event(feature, edges, chosen), p)
    assert best is not None  # there is always a feature
    return best


def _orders(likelier: Counts, other: Counts, *, tails: bool) -> list[Counts]:
    # both tails of a number, and the order of Neyman and Pearson: the most telling bins first
    upward = np.arange(len(likelier))
    telling = np.lexsort((-likelier, -np.log((likelier + 0.5) / (other + 0.5))))
    return [upward, upward[::-1], telling] if tails else [telling]
