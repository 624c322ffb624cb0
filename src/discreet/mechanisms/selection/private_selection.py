"""The best of a random number of private runs: tuning that is charged, and costs little more than one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import (
    LARGEST_EPSILON,
    Number,
    check_count,
    check_delta,
    check_positive,
    check_probability,
    exactly,
    exp_bounds,
    float_down,
    float_up,
    significant,
)
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.conversions import SLACK, epsilon_from_renyi
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, ZeroConcentrated
from discreet.guarantees.rules.coordinates import stated_delta
from discreet.mechanisms.protocol import tidy
from discreet.queries.sensitivity import SensitivityLike


@dataclass(frozen=True, kw_only=True)
class NegativeBinomialTries:
    """K = 1, 2, … tries with probability ∝ (1−stop)^k·Π_{1≤j<k} (j+shape)/(j+1), for −1 < shape ≤ 1.

    Shape 1 is geometric (stop after each try with probability `stop`), 0 logarithmic. A smaller shape costs less and
    spreads K more.
    """

    stop: Number
    shape: Number = 0

    def __post_init__(self) -> None:
        check_probability(self.stop, "stop")
        if not -1 < exactly(self.shape, "shape") <= 1:
            raise InvalidArgument(
                "shape must be above -1 and at most 1, such as 0 or 1. PoissonTries gives a steadier number of tries.",
                code="out-of-range",
            )

    @classmethod
    def for_mean(cls, mean: Any, *, shape: Number = 0) -> Self:
        """The distribution with this shape and the given mean above 1, rounded down."""
        wanted = check_positive(mean, "mean")
        if wanted <= 1:
            raise InvalidArgument("mean must be above 1: there is always one try.", code="out-of-range")

        def few(stop: float) -> bool:
            return not cls(stop=Fraction(stop), shape=shape).mean > wanted

        stop = bisect(few, 1 - 1e-9, 1e-15, relative=1e-9, middle=geometric)
        return cls(stop=tidy(significant(Fraction(stop), up=True, digits=6)), shape=shape)

    @property
    def mean(self) -> float:
        """The expected number of tries, rounded up."""
        stop, shape = float(exactly(self.stop)), float(exactly(self.shape))
        ratio = math.log(1 / stop) if shape == 0 else -math.expm1(shape * math.log(stop)) / shape
        return (1 / stop - 1) / ratio * (1 + 1e-12)

    @property
    def none(self) -> float:
        """The probability of no try at all."""
        return 0.0

    def generating(self, at: Any) -> float:
        """E[at^K]: the probability that every try falls on a side of probability `at`."""
        stop, shape, q = float(exactly(self.stop)), float(exactly(self.shape)), float(at)
        inside = math.log1p(-(1 - stop) * q)
        if shape == 0:
            return inside / math.log(stop)
        return math.expm1(-shape * inside) / math.expm1(-shape * math.log(stop))

    def probability(self, tries: int) -> float:
        """P[K = tries]."""
        if tries < 1:
            return 0.0
        stop, shape = float(exactly(self.stop)), float(exactly(self.shape))
        whole = math.log(1 / stop) if shape == 0 else math.expm1(-shape * math.log(stop)) / shape
        return (1 - stop) ** tries * math.prod((j + shape) / (j + 1) for j in range(1, tries)) / whole

    def pure(self, epsilon: Fraction) -> Fraction:
        """What an ε-DP run costs: (2 + shape)·ε."""
        return (2 + exactly(self.shape)) * epsilon

    def tilt(self, run: Guarantee) -> float:
        """A bound on ln f'(q)/f'(q'), f = E[q^K], for the probabilities q and q' of one event under two neighbors.

        f'(q) ∝ u^{−1−shape} with u = 1 − (1−stop)q, the mean of something in [stop, 1]: so u' ≤ e^ε·u + δ for every
        (ε,δ) of the run, u' ≤ (e^r·u)^{1−1/a} for a Rényi divergence r of order a, and u ≥ stop.
        """
        stop = float_down(exactly(self.stop))

        def by_curve(epsilon: float) -> float:
            return math.log(math.exp(epsilon) + run.delta_at(epsilon=epsilon) / stop)

        def by_order(order: float) -> float:
            return (1 - 1 / order) * run.renyi(order) - math.log(stop) / order

        known = [-math.log(stop), _lowest(by_curve, 1e-4, 50.0)]
        if not run.infinite:
            known.append(_lowest(lambda a: by_order(1 + a), 1e-2, 1e6))
            known += [] if run.largest_loss is None else [float_up(run.largest_loss)]
        return (1 + float(exactly(self.shape))) * min(known) * SLACK

    def renyi(self, run: Guarantee, order: float) -> float:
        """Papernot-Steinke 2022, Theorem 2, with the best tilt."""
        return run.renyi(order) + _tilt(self, run) + math.log(self.mean) / (order - 1)

    def _sample(self) -> int:
        stop, shape = exactly(self.stop), exactly(self.shape)
        tries = 1  # one more with (1−stop)·(k+shape)/(k+1), stop with probability stop, otherwise restart
        while not samplers.bernoulli(stop, 1)[0]:
            tries = tries + 1 if samplers.bernoulli((tries + shape) / (tries + 1), 1)[0] else 1
        return tries


@dataclass(frozen=True, kw_only=True)
class PoissonTries:
    """K ~ Poisson(mean): concentrated, but with probability e^−mean there is no try, and the default is returned."""

    mean: Number

    def __post_init__(self) -> None:
        check_positive(self.mean, "mean")

    @property
    def _mean(self) -> float:
        return float_up(exactly(self.mean))

    @property
    def none(self) -> float:
        """The probability of no try at all."""
        return math.exp(-self._mean) * (1 + 1e-12)

    def generating(self, at: Any) -> float:
        """E[at^K]."""
        return math.exp(self._mean * (float(at) - 1))

    def probability(self, tries: int) -> float:
        """P[K = tries]."""
        return math.exp(tries * math.log(self._mean) - self._mean - math.lgamma(tries + 1))

    def pure(self, epsilon: Fraction) -> Fraction:
        """What an ε-DP run costs: ε + mean·tanh(ε/2), since two such laws are within tanh(ε/2) of each other."""
        above = exp_bounds(epsilon)[1]
        return epsilon + exactly(self.mean) * (above - 1) / (above + 1)

    def tilt(self, run: Guarantee) -> float:
        """f'(q)/f'(q') = e^{mean·(q − q')}, and no event moves by more than δ(0)."""
        return self._mean * run.delta_at(epsilon=0) * SLACK

    def renyi(self, run: Guarantee, order: float) -> float:
        """Papernot-Steinke 2022, Theorem 6, at the largest ε̂ with e^ε̂ ≤ 1 + 1/(order−1), the mass of no try added."""
        apart = run.delta_at(epsilon=Fraction(math.log1p(1 / (order - 1)) * (1 - 1e-12)))
        grown = (order - 1) * (run.renyi(order) + self._mean * apart) + math.log(self._mean)
        return float(np.logaddexp(-self._mean, grown)) / (order - 1)

    def _sample(self) -> int:
        mean = exactly(self.mean)
        peak = math.floor(mean + 1)
        most = (mean + 1) ** peak / math.factorial(peak)
        while True:  # a geometric number with ratio mean/(mean+1), kept with a rational probability
            tries = _failures(1 / (mean + 1))
            if samplers.bernoulli((mean + 1) ** tries / math.factorial(tries) / most, 1)[0]:
                return tries


Tries = NegativeBinomialTries | PoissonTries


class Selected(NamedTuple):
    """The run with the best score: its candidate, its score and its output."""

    candidate: Any
    score: float
    output: Any


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Runs a mechanism a random number of times, each with a random candidate, and releases the run that scores best.

    `run` is what ONE run promises, its score and its candidate included; `delta` is for the whole. The number of tries
    must not leave: it would cost more. Candidates are drawn uniformly, with replacement.

    Promise: with f = E[q^K], an output y of mass dQ comes out with f'(Q(no better than y))·dQ, ties broken by chance.
    So a bound T on ln f'(q)/f'(q') gives (ε + T, mean·δ(ε)) for every (ε, δ(ε)) of a run, and by Hölder a Rényi
    divergence of r(a) + T + ln(mean)/(a−1); an ε-DP run gives pure(ε), and an (ε,δ) run pure(ε) with mean·δ, since runs
    that go wrong leave a law of the same family. The least of these is stated. Source: Liu-Talwar 2019,
    Papernot-Steinke 2022, Koskela-Redberg-Wang 2024.

    >>> Selection(tries=NegativeBinomialTries(stop=0.1), run=Pure(epsilon=0.5)).guarantee()
    Pure(epsilon=1)
    """

    tries: Tries
    run: Guarantee
    delta: Number = 0

    def __post_init__(self) -> None:
        if not isinstance(self.tries, Tries):
            raise InvalidArgument("tries must be NegativeBinomialTries(…) or PoissonTries(…).", code="wrong-type")
        if not isinstance(self.run, Guarantee):
            raise InvalidArgument(
                "run must be the guarantee of one run, such as dp.ZeroConcentrated(rho=0.1).", code="wrong-type"
            )
        if not check_delta(self.delta) and (self.run.largest_loss is None or self.run.infinite):
            raise InvalidArgument("Give a delta, such as 1e-6: one run has no pure guarantee.", code="needs-delta")

    def guarantee(self, sensitivity: SensitivityLike = None) -> Approx:
        """For the unit and the relation of one run: Pure, or Approx at `delta`."""
        if sensitivity is not None:
            raise InvalidArgument(
                "State the sensitivity in run=, the guarantee of one run, and leave sensitivity= out.",
                code="sensitivity-not-taken",
            )
        about: dict[str, Any] = {
            "protects": self.run.protects,
            "trust": self.run.trust,
            "neighbors": self.run.neighbors,
        }
        delta, largest = exactly(self.delta), self.run.largest_loss
        known = []
        if largest is not None and stated_delta(self.run) * exactly(self.tries.mean) <= delta:
            known.append(self.tries.pure(largest))
        if not delta:
            return Pure(epsilon=tidy(known[0]), **about)
        epsilon = _known_epsilon(self.tries, self.run, delta)
        if math.isfinite(epsilon):
            known.append(Fraction(epsilon))
        if not known or min(known) > LARGEST_EPSILON:
            raise InvalidArgument(
                "No guarantee is known for this delta. Ask for a larger delta, or use a more private run.",
                code="guarantee-out-of-reach",
            )
        return Approx(epsilon=tidy(max(min(known), Fraction(1, 10**18))), delta=self.delta, **about)

    def renyi(self, order: float) -> float:
        """A bound on the Rényi divergence of this order. Infinite if runs have none."""
        return math.inf if self.run.infinite else self.tries.renyi(self.run, order) * SLACK

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, tries: Tries, of: Callable[[Fraction], Guarantee] | None = None
    ) -> Self:
        """The weakest run, of a family `of(size)` that weakens with size, for which the whole keeps `guarantee`.

        By default Pure(ε) for Pure, and ZeroConcentrated(ρ) otherwise. To 1 part in 10^4, and checked.
        """
        if not isinstance(guarantee, Approx):
            raise InvalidArgument(
                "Selection is calibrated for Pure and Approx. Ask for one of them.", code="guarantee-not-supported"
            )
        limit = exactly(guarantee.epsilon)
        pure = not exactly(guarantee.delta)
        family = of or ((lambda e: Pure(epsilon=tidy(e))) if pure else (lambda r: ZeroConcentrated(rho=tidy(r))))

        def made(size: Fraction) -> Any:
            return cls(tries=tries, run=family(significant(size, up=False, digits=10)), delta=guarantee.delta)

        def keeps(size: Fraction) -> bool:
            return exactly(made(size).guarantee().epsilon) <= limit

        found = bracket(keeps, limit, least=limit / 2**60, most=limit * 2**60, factor=4, falling=True)
        if found is None:
            raise InvalidArgument(
                "No run is private enough for this number of tries. Ask for a weaker guarantee.",
                code="guarantee-out-of-reach",
            )
        return made(bisect(keeps, *found, relative=1e-4, middle=geometric))  # type: ignore[no-any-return]

    def chance(self, candidates: int) -> float:
        """The probability that a given candidate, one of this many, is tried at least once."""
        return 1 - self.tries.generating(1 - 1 / check_count(candidates, "candidates"))

    def error(self, confidence: float) -> Accuracy:
        """Always unknown: it depends on the runs."""
        sure, why = check_confidence(confidence), "how good the best run is depends on the runs"
        return Accuracy(amount=None, confidence=sure, reason=f"{why}; `chance` says how likely a candidate is tried")

    def choose(self, run: Callable[[Any], tuple[Any, Any]], candidates: Sequence[Any], default: Any = None) -> Selected:
        """The best of K runs `run(candidate) → (score, output)`. `default` with a score of −∞ if K is 0.

        Every run must satisfy `self.run` with fresh noise, whatever the candidate, and must not fail. Scores that are
        not numbers are the worst. Of equal scores the first is kept, which is fair, because all runs have the same
        distribution.
        """
        if not len(candidates):
            raise InvalidArgument("At least one candidate is needed. Give a list of them.", code="empty")
        best: Selected | None = None
        for place in samplers.uniform_below(len(candidates), self.tries._sample()):
            score, output = run(candidates[int(place)])
            number = float(score)
            number = -math.inf if math.isnan(number) else number
            if best is None or number > best.score:
                best = Selected(candidates[int(place)], number, output)
        return best or Selected(None, -math.inf, default)

    def _draw(self, value: Any) -> dict[str, Any]:
        """Runs `value.run` over `value.candidates`; `value.default` is what no try gives."""
        return self.choose(value.run, value.candidates, getattr(value, "default", None))._asdict()


@lru_cache(maxsize=256)
def _tilt(tries: Tries, run: Guarantee) -> float:
    return tries.tilt(run)


@lru_cache(maxsize=256)
def _known_epsilon(tries: Tries, run: Guarantee, delta: Fraction) -> float:
    """The least ε at δ by the curve and by Rényi divergences."""
    share = delta / exactly(tries.mean)
    known = ((run.epsilon_at(delta=share) if share < 1 else 0.0) + _tilt(tries, run)) * SLACK
    if not run.infinite:
        known = min(known, epsilon_from_renyi(lambda order: tries.renyi(run, order) * SLACK, delta))
    return known


def _lowest(value: Callable[[float], float], low: float, high: float) -> float:
    """The smallest value over a range of sizes. Any size is valid, so a poor search only makes the bound less tight."""
    ends = math.log(low), math.log(high)
    for _ in range(4):
        sizes = [ends[0] + (ends[1] - ends[0]) * i / 8 for i in range(9)]
        values = [value(math.exp(size)) for size in sizes]
        best = min(range(9), key=values.__getitem__)
        ends = sizes[max(best - 1, 0)], sizes[min(best + 1, 8)]
    return min(values)


def _failures(stop: Fraction) -> int:
    """How often a coin with this probability fails before it succeeds."""
    failures, many = 0, min(2**14, math.ceil(1 / stop))
    while True:
        coins = np.flatnonzero(samplers.bernoulli(stop, many))
        if len(coins):
            return failures + int(coins[0])
        failures += many
