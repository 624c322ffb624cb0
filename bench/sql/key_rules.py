"""Published rules that show undeclared keys, written anew from the ideas of their papers. The noise is drawn as floats:
the rules are here to be compared with, and promise nothing.

All share one form: people give weights to their keys, noise is added to the sum of each key, and keys above a threshold
are shown. Half of δ is for the noise. The other half bounds the probability that a key of one person alone is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.guarantees.conversions import largest_mu

EPSILON, DELTA = 1.0, 1e-5
CAP = 100
"""Δ0: people with more keys keep so many of them, at random, in each round."""
CAPS = (1, 2, 5, 10, 30, 100)
"""Declared numbers of keys a person, for rules whose noise grows with them."""
SPLITS = {"5, 15, 80%": (0.05, 0.15, 0.8), "×3": (1 / 13, 3 / 13, 9 / 13), "×2": (1 / 7, 2 / 7, 4 / 7)}
"""DP-SIPS: the parts of the budget for its three rounds."""
DEGREE, ABOVE, FIRST = 50, 2, 0.1
"""MAD2R: d_max, β, and the part of the budget for the first round."""
LEAST, MOST, LOWER, UPPER = 0.5, 2.0, 1, 3
"""MAD2R: b_min and b_max, and C_lb and C_ub, the deviations by which the bounds on a weight lie below and above it."""
Floats = Any
Shown = Any
"""One bit for each key."""


@dataclass(frozen=True)
class Pairs:
    """Who has which keys: codes of people and of keys, each pair once."""

    people: Any
    codes: Any
    keys: int

    @cached_property
    def degrees(self) -> Any:
        """For each pair, how many keys its person has."""
        return np.bincount(self.people, minlength=1)[self.people]

    def capped(self, most: int, rng: Any) -> Pairs:
        """At most so many keys of each person, chosen at random."""
        if not len(self.people) or self.degrees.max() <= most:
            return self
        order = np.lexsort((rng.random(len(self.people)), self.people))
        people = self.people[order]
        first = np.flatnonzero(np.r_[True, people[1:] != people[:-1]])
        place = np.arange(len(people)) - np.repeat(first, np.diff(np.r_[first, len(people)]))
        return self.only(order[place < most])

    def only(self, chosen: Any) -> Pairs:
        return replace(self, people=self.people[chosen], codes=self.codes[chosen])

    def without(self, gone: Shown) -> Pairs:
        return self.only(~gone[self.codes])

    def sums(self, weights: Floats) -> Floats:
        """For each key, over its people."""
        return np.bincount(self.codes, weights, minlength=self.keys)

    def of_people(self, weights: Floats) -> Floats:
        """For each pair, the sum over the keys of its person."""
        return np.bincount(self.people, weights, minlength=1)[self.people]


def threshold(deviation: float, delta: float, heaviest: Callable[[Any], Any] = lambda t: 1 / np.sqrt(t)) -> float:
    """What a key of one person alone reaches with a probability of at most δ, for every number t of such keys."""
    t = np.arange(1, CAP + 1)
    # Φ⁻¹((1−δ)^(1/t)), by the other tail
    return float((heaviest(t) - deviation * ndtri(-np.expm1(np.log1p(-delta) / t))).max())


def _noisy(pairs: Pairs, sums: Floats, deviation: float, rng: Any) -> Floats:
    """Nobody's keys have no noise: they cannot be shown."""
    held = np.bincount(pairs.codes, minlength=pairs.keys) > 0
    return np.where(held, sums + deviation * rng.standard_normal(pairs.keys), -np.inf)


def repeated(pairs: Pairs, rng: Any, parts: Iterable[float]) -> Shown:
    """The weighted Gaussian rule (Gopi et al. 2020), for one part. DP-SIPS (Swanberg et al. 2023), for several: keys
    that a round shows do not count in the next one. Gaussian rounds are added up exactly, by μ².
    """
    mu, shown = largest_mu(EPSILON, DELTA / 2), np.zeros(pairs.keys, dtype=bool)
    for part in parts:
        left = pairs.without(shown).capped(CAP, rng)
        deviation = 1 / (mu * math.sqrt(part))
        noisy = _noisy(left, left.sums(1 / np.sqrt(left.degrees)), deviation, rng)
        shown |= noisy >= threshold(deviation, DELTA / 2 * part)
    return shown


def _rerouted(pairs: Pairs, own: Floats, enough: float, part: float) -> Floats:
    """MAD: of the flat weights part/t of people with t ≤ d_max keys, what a key has above `enough` goes back to them,
    and each gives a d_max-th of what came back to all of their keys. `own` are the weights without this.
    """
    adaptive = pairs.only(pairs.degrees <= DEGREE)
    flat = part / adaptive.degrees
    before = adaptive.sums(flat)
    returned = 1 - np.minimum(1, enough / np.maximum(before, 1e-300))
    back = adaptive.of_people(flat * returned[adaptive.codes]) if len(flat) else flat
    return pairs.sums(own) - before * returned + adaptive.sums(back / DEGREE)


def _biased(pairs: Pairs, bias: Floats) -> Floats:
    """Weights in proportion to biases, within b_min/√t and b_max/√t, whose squares sum to 1 for each person."""
    each = bias[pairs.codes]
    low, high = LEAST / np.sqrt(pairs.degrees), np.minimum(MOST / np.sqrt(pairs.degrees), 1)
    least, most = np.full(len(each), 1e-3), np.full(len(each), 1e3)
    for _ in range(20):
        factor = np.sqrt(least * most)
        fits = pairs.of_people(np.clip(factor * each, low, high) ** 2) <= 1
        least, most = np.where(fits, factor, least), np.where(fits, most, factor)
    return np.clip(least * each, low, high)


def mad2r(pairs: Pairs, rng: Any, far: float) -> Shown:
    """MAD2R (Chen et al. 2025): two rounds of adaptive weights.

    Keys that the first round shows do not count in the second. There, a key that is surely above the threshold gets a
    smaller bias, and a key that surely stays below it gets the bias `far`; with 0 it is left out. Gaussian rounds are
    added up exactly, by μ².
    """
    mu = largest_mu(EPSILON, DELTA / 2)
    first, second = (1 / (mu * math.sqrt(part)) for part in (FIRST, 1 - FIRST))
    some = pairs.capped(CAP, rng)
    bar = threshold(first, DELTA / 2 * FIRST)
    noisy = _noisy(some, _rerouted(some, 1 / np.sqrt(some.degrees), bar + ABOVE * first, 1), first, rng)
    shown = noisy >= bar
    bar = threshold(second, DELTA / 2 * (1 - FIRST), lambda t: np.minimum(MOST / np.sqrt(t), 1))
    enough = bar + ABOVE * second
    below = noisy + UPPER * first < bar
    left = pairs.without(shown | below if far == 0 else shown).capped(CAP, rng)
    surely = np.maximum(noisy - LOWER * first, enough)
    bias = np.where(below, far, np.where(np.isfinite(noisy), enough / surely, 1.0))
    again = _noisy(left, _rerouted(left, _biased(left, bias), enough, LEAST), second, rng)
    return shown | (again >= bar)


def laplace(pairs: Pairs, rng: Any, cap: int) -> Shown:
    """Laplace noise on how many people have a key, if each has at most `cap`.

    Source: Korolova, Kenthapadi, Mishra and Ntoulas 2009.
    """
    capped = pairs.capped(cap, rng)
    counts = np.bincount(capped.codes, minlength=pairs.keys)
    scale = cap / EPSILON
    bar = 1 - scale * math.log(2 * -math.expm1(math.log1p(-DELTA) / cap))
    return (counts > 0) & (counts + rng.laplace(0, scale, pairs.keys) >= bar)


def geometric(pairs: Pairs, rng: Any, cap: int) -> Shown:
    """The best rule for one key a person (Desfontaines et al. 2022), with a cap-th of ε and δ for each key."""
    capped = pairs.capped(cap, rng)
    counts = np.bincount(capped.codes, minlength=pairs.keys)
    chances, up, delta = [0.0], math.exp(EPSILON / cap), DELTA / cap
    while len(chances) <= counts.max():
        p = chances[-1]
        chances.append(min(up * p + delta, 1 - (1 - p - delta) / up, 1.0))
    return rng.random(pairs.keys) < np.array(chances)[counts]
