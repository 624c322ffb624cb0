"""Logistic and Poisson regressions by Newton steps on noisy scores and information.

A first step has the moments of a linear regression, from which a start follows. Each further step releases the score
Σ f·(y − μ) and the information Σ v·f·fᵀ at the coefficients so far, for features f from −1 to 1, with the mean μ and
the variance v of the model. A Newton step leads to the next coefficients. What follows from the last step is that of a
linear regression: given a value of a coefficient, the score has a known law.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import sqrt_up
from discreet.guarantees.unit import Unit
from discreet.queries.sensitivity import Sensitivity
from discreet.stats.inference.unsure_squares import UnsureSquares, noise_of
from discreet.stats.regression.designs import Design, by_row
from discreet.stats.regression.linear import NoisyRegression
from discreet.stats.regression.released_moments import Layout

Floats = NDArray[np.float64]
Family = Literal["logistic", "poisson"]
INFORMATION = Fraction(1, 4)
"""The weight of the information next to that of the score: near the end, its noise matters little."""
SUM_BITS = 24
_BLOCK = 2**14
_FARTHEST = 30.0


@dataclass(frozen=True)
class Link:
    """The model of the outcome. `most` is the largest outcome: 1 for a condition."""

    family: Family
    most: float = 1.0

    def mean(self, line: Floats) -> Floats:
        """The mean of the outcome, in units of `most`, so from 0 to 1."""
        bounded = np.clip(line, -_FARTHEST, _FARTHEST)
        if self.family == "logistic":
            return np.asarray(1 / (1 + np.exp(-bounded)))
        return np.minimum(np.exp(bounded) / self.most, 1.0)

    def variance(self, mean: Floats) -> Floats:
        """The variance of the outcome in units of `most`: the slope of the mean."""
        return mean * (1 - mean) if self.family == "logistic" else mean

    @property
    def largest_variance(self) -> Fraction:
        return Fraction(1, 4) if self.family == "logistic" else Fraction(1)

    def start(self, moments: NoisyRegression, has_intercept: bool) -> Floats:
        """Coefficients from a linear regression of the outcome in units of `most`, near enough to begin with."""
        slopes = np.nan_to_num(moments.coefficients)
        if not has_intercept:
            return np.zeros_like(slopes)
        matrix = moments.moments
        share = float(np.clip(matrix[0, -1] / max(float(matrix[0, 0]), 1.0), 0.02 / max(self.most, 1.0), 0.98))
        means = matrix[0, :-1] / max(float(matrix[0, 0]), 1.0)
        if self.family == "logistic":
            slopes, level = slopes / (share * (1 - share)), np.log(share / (1 - share))
        else:
            slopes, level = slopes / share, np.log(share * self.most)
        slopes = np.clip(slopes, -5.0, 5.0)
        slopes[0] = level - slopes[1:] @ means[1:]
        return np.asarray(slopes)


@dataclass(frozen=True)
class Features:
    """Features from −1 to 1 that span the same lines as the terms, and the map between both."""

    design: Design

    @cached_property
    def of_terms(self) -> Floats:
        """terms = features @ this. The features are the monomials, if there are as many, or scaled terms."""
        monomials, weights = self.design.term_matrix
        size = len(self.design.terms)
        used = [place for place in range(len(monomials)) if weights[:size, place].any()]
        square = weights[:size][:, used]
        if square.shape[0] == square.shape[1] and np.linalg.cond(square) < 1e8:
            return np.asarray(square.T)
        bounds = self.design.bound(np.eye(size, size + 1))
        return np.asarray(np.diag(bounds))

    @cached_property
    def of_features(self) -> Floats:
        """features = terms @ this."""
        return np.asarray(np.linalg.inv(self.of_terms), dtype=np.float64)

    @property
    def size(self) -> int:
        return len(self.design.terms)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in range(self.size) for b in range(a, self.size)]

    @cached_property
    def matrices(self) -> Floats:
        """What every number of a later step adds to the information (and the score, as the last column) of terms."""
        size, back = self.size, self.of_terms
        found = np.zeros((size + len(self.pairs), size + 1, size + 1))
        for place in range(size):
            found[place, :size, size] = found[place, size, :size] = back[place]
        for place, (a, b) in enumerate(self.pairs, size):
            one = np.outer(back[a], back[b])
            found[place, :size, :size] = (one if a == b else one + one.T) / float(INFORMATION)
        return found

    def sensitivity(self, link: Link, unit: Unit, norm: str) -> Sensitivity:
        """How far one unit with one row can move the numbers of a later step."""
        information = INFORMATION * link.largest_variance
        twice = 2 if unit.neighbors == "replace" else 1
        size = self.size + len(self.pairs)
        amount = self.size + len(self.pairs) * information
        if norm == "L2":
            amount = sqrt_up(self.size + len(self.pairs) * information**2)
        return Sensitivity(twice * amount, norm, unit, size, Fraction(1, 2 ** (SUM_BITS + 4)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LikelihoodRows:
    """Coded rows, one of each unit: asked for the moments of a linear regression, and then for scores."""

    layout: Layout
    features: Features
    link: Link
    codes: list[Floats]
    fit: Any
    """The coefficients of the terms that follow from the answers so far."""

    def answer(self, earlier: list[Any]) -> Any:
        """The exact answer to the next question."""
        if not earlier:
            return self.layout.query(self.layout.blocks(self.codes))
        at = self.fit(earlier)
        totals: Any = 0
        for start in range(0, max(len(self.codes[0]), 1), _BLOCK):
            block = [code[start : start + _BLOCK] for code in self.codes]
            known = ~np.any(np.isnan(block), axis=0)
            values = self.layout.design.values([np.nan_to_num(one) for one in block])
            each = np.where(known[:, None], score_parts(self.features, self.link, at, values), 0.0)
            totals = totals + np.rint(each * 2**SUM_BITS).astype(np.int64).sum(0).astype(object)
        weights = [Fraction(1)] * self.features.size + [INFORMATION] * len(self.features.pairs)
        answer = [w * Fraction(int(total), 2**SUM_BITS) for w, total in zip(weights, totals, strict=True)]
        return np.array([*answer, None], dtype=object)[:-1]


def score_parts(features: Features, link: Link, at: Floats, values: Floats) -> Floats:
    """What each row adds to the score and the information: numbers from −1 to 1, and up to the largest variance."""
    terms = values[:, :-1]
    mean = link.mean(by_row(terms, at[:, None])[:, 0])
    outcome = np.clip(values[:, -1] * outcome_share(features.design, link), 0.0, 1.0)
    codes = np.clip(by_row(terms, features.of_features), -1.0, 1.0)
    most = float(link.largest_variance)
    spread = np.clip(link.variance(mean), 0.0, most)
    squares = [np.clip(spread * codes[:, a] * codes[:, b], -most, most) for a, b in features.pairs]
    return np.column_stack([codes * np.clip(outcome - mean, -1.0, 1.0)[:, None], *squares])


def outcome_share(design: Design, link: Link) -> float:
    """The unit in which the outcome is computed, as a part of its largest value."""
    return design.outcome_unit / link.most


@dataclass(frozen=True)
class NoisyScore(NoisyRegression):
    """The last step: how far the coefficients are from where it was taken. Sampling is as the model says."""

    most: float = 1.0
    """The largest outcome: scores are measured in units of it."""
    largest_variance: float = 0.25

    def squares_of(self, place: int) -> UnsureSquares:
        weights = self.weights_of_score(place)
        own = np.where(self.is_known, self.inverse[..., place, place], 1.0)
        each = np.einsum("...a,kab,...b->...k", weights, self.matrices[:, :-1, :-1], weights, optimize=True)
        longer = np.concatenate([weights, np.zeros((*weights.shape[:-1], 1))], -1)
        reach = self.bound(longer) ** 2 * self.largest_variance
        return UnsureSquares(1 / own, *noise_of(each, self.noise.laplace, self.noise.normal), reach, 1 / self.most)

    @cached_property
    def is_known(self) -> Any:
        """Whether the noise is small, and the last step too: then further steps would change little."""
        values, vectors = self._spectrum
        sound = values.min(-1) > 0
        kept = np.where(sound[..., None], values, 1.0)
        inverse = np.einsum("...ai,...i,...bi->...ab", vectors, 1 / kept, vectors)
        step = np.einsum("...ab,...b->...a", inverse, self.moments[..., :-1, -1])
        longer = np.concatenate([step, np.zeros((*step.shape[:-1], 1))], -1)
        return sound & (self.relative_noise <= 0.35) & (self.bound(longer) <= 1.0)
