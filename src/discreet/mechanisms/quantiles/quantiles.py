"""Many quantiles at once: the middle one first, then those of the rows on either side, level by level."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, check_probability, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import Factors, LossDistribution
from discreet.guarantees.privacy_loss.derived_pairs import BoundedRangePair, ConcentratedPair, EitherPair
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.unit import Relation, Unit, check_rows, row
from discreet.mechanisms.protocol import least_noise, meets, plain_sensitivity, tidy
from discreet.mechanisms.quantiles.cut import SPLITS, choose_cut, choose_point
from discreet.mechanisms.quantiles.quantile import lattice_of
from discreet.queries.ranks import Ranks, places_of
from discreet.queries.scores import QuantileScore
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Grid, Integers, Interval
from discreet.rows import none_of
from discreet.rows.containers import Data


@dataclass(frozen=True)
class Choice:
    """One choice of the recursion: quantile `index`, as the `part` of the rows between two chosen before it.

    `left` and `right` are the indices of those two; −1 and the number of quantiles stand for the ends.
    """

    index: int
    left: int
    right: int
    part: Fraction
    last: bool

    @property
    def weight(self) -> Fraction:
        """How far one added or removed row moves the score."""
        return max(self.part, 1 - self.part)


@lru_cache(maxsize=256)
def plan(quantiles: tuple[Fraction, ...]) -> tuple[tuple[Choice, ...], ...]:
    """The choices, level by level; those of one level look at different rows."""
    ends = dict(enumerate(quantiles)) | {-1: Fraction(0), len(quantiles): Fraction(1)}
    levels: list[tuple[Choice, ...]] = []
    open_parts = [(-1, len(quantiles))]
    while open_parts:
        level, rest = [], []
        for left, right in open_parts:
            middle = (left + right) // 2
            part = (ends[middle] - ends[left]) / (ends[right] - ends[left])
            inner = [(a, b) for a, b in ((left, middle), (middle, right)) if b - a > 1]
            level.append(Choice(middle, left, right, part, not inner))
            rest += inner
        levels.append(tuple(level))
        open_parts = rest
    return tuple(levels)


def validate_quantiles(quantiles: Any) -> tuple[Number, ...]:
    """At least one quantile, strictly between 0 and 1 and increasing, or a typed error."""
    if isinstance(quantiles, str) or not isinstance(quantiles, Sequence | np.ndarray) or not len(quantiles):
        raise InvalidArgument(
            "quantiles must be a list of at least one number between 0 and 1, such as [0.25, 0.75].", code="wrong-type"
        )
    listed = tuple(q.item() if isinstance(q, np.generic) else q for q in quantiles)
    exact = [check_probability(q, "a quantile") for q in listed]
    if any(b <= a for a, b in itertools.pairwise(exact)):
        raise InvalidArgument("quantiles must be different and in increasing order.", code="not-increasing")
    if math.lcm(*(q.denominator for q in exact)) > 10**9:
        raise InvalidArgument(
            "quantiles must be fractions with at most 9 decimals, such as 0.125.", code="too-many-digits"
        )
    return listed


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Chooses the middle quantile with probability ∝ exp(rate·score), then goes on with the rows on either side of it.

    A choice is a point of the space and, between rows equal to it, a place to cut them: the score is minus the ranks
    by which that cut misses, so that the two sides hold the right share of the rows with ties as without. The last
    choices of the recursion, after which nothing is cut, use the capped score of `Quantile`.

    Promise: an added or removed row is in ONE part of each level, and moves its score by w = max(p, 1−p) at most, where
    p is the share asked of that part: a level has log-ratios in a range of 2·rate·w, hence ε = Σ 2·rate·w, and ε²/8 a
    level in zCDP. A replaced row moves one score by 1, or the scores of two parts by w and w': 2·rate·max(1, w+w') a
    level, and (rate²/2)·(1 + Σ(w²+w'²)) in zCDP, the sum over all levels but the first. The k rows of one person move
    scores k times as far.
    Error: in ranks, of the worst quantile, whatever the data: the choices' own errors, handed down in shares (1−p), p.
    Source: [L3.MED-DUP], [L3.EM-U]; the recursion is Kaplan-Schnapp-Stemmer 2022, the range Dong-Durfee-Rogers 2020.

    >>> deciles = Quantiles.for_guarantee(Pure(epsilon=1), space=Integers(0, 120), quantiles=[0.25, 0.5, 0.75])
    >>> deciles.rate
    0.5
    """

    space: Grid | Integers | Interval
    rate: Number
    quantiles: tuple[Number, ...]

    def __post_init__(self) -> None:
        check_positive(self.rate, "rate")
        if not isinstance(self.space, Grid | Integers | Interval):
            raise InvalidArgument(
                "space must be dp.Interval(low, high), dp.Integers(low, high) or dp.queries.Grid(low, high, step).",
                code="wrong-type",
            )
        object.__setattr__(self, "quantiles", validate_quantiles(self.quantiles))

    @property
    def levels(self) -> tuple[tuple[Choice, ...], ...]:
        """The choices, level by level."""
        return plan(tuple(exactly(q) for q in self.quantiles))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """How many rows one unit can add, remove or replace."""
        return Sensitivity(check_rows(unit, rows_per_person), "Linf", unit, grain=1)

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """For one added or removed row. For another unit, give `m.sensitivity(unit, rows_per_person)`."""
        bound = self.sensitivity(row()) if sensitivity is None else plain_sensitivity(sensitivity, "Linf")
        reach = 2 * exactly(self.rate) * bound.exact
        factors = _total_loss(self.levels, reach, bound.replaced, bound.exact == 1)
        neighbors: Relation | None = "add_or_remove" if bound.unit is None else None
        return LossDistribution(factors=factors, protects=bound.unit, neighbors=neighbors)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        space: Grid | Integers | Interval,
        quantiles: Sequence[Number],
        unit: Unit | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """The strongest preference that keeps `guarantee` for this unit."""
        listed = validate_quantiles(quantiles)
        once = cls(space=space, rate=1, quantiles=listed)
        bound = once.sensitivity(unit or row(), rows_per_person)
        loss = once.guarantee(bound).largest_loss
        assert loss is not None
        if type(guarantee) is Pure:
            rate = significant(exactly(guarantee.epsilon) / loss, up=False)
            return cls(space=space, rate=tidy(rate), quantiles=listed)
        return least_noise(
            lambda scale: cls(space=space, rate=tidy(significant(1 / scale, up=False)), quantiles=listed),
            lambda m: meets(m.guarantee(bound), guarantee),
            loss / max(Fraction(1, 1000), exactly(getattr(guarantee, "epsilon", 1))),
        )

    @classmethod
    def for_error(
        cls,
        ranks: Number,
        *,
        space: Grid | Integers | Interval,
        quantiles: Sequence[Number],
        confidence: float = 0.95,
    ) -> Self:
        """The weakest preference whose worst rank error stays within `ranks` with this confidence."""
        most, once = check_positive(ranks, "ranks"), cls(space=space, rate=1, quantiles=validate_quantiles(quantiles))
        whole = once._worst(0.0, 1.0)  # what cutting whole rows adds, at any rate
        if most <= exactly(whole):
            raise InvalidArgument(f"ranks must be above {whole:.3g} for these quantiles.", code="error-out-of-reach")
        rate = significant(exactly(float(once.error(confidence)) - whole) / (most - exactly(whole)), up=True)
        return cls(space=space, rate=tidy(rate), quantiles=once.quantiles)

    def error(self, confidence: float) -> Accuracy:
        """Every quantile is within this many ranks of the requested one, by a union bound over all choices."""
        sure = check_confidence(confidence)
        candidates = len(lattice_of(self.space)) * len(self.quantiles) / (1 - sure)
        point, cut = (math.log(candidates * wide) / float(self.rate) for wide in (1, SPLITS))
        return Accuracy(amount=self._worst(point, 1 + cut), confidence=sure, of="rank")

    def _worst(self, point: float, cut: float) -> float:
        """The largest error when no last choice is off by more than `point`, and no other by more than `cut`."""
        errors = {-1: 0.0, len(self.quantiles): 0.0}
        for choice in (choice for level in self.levels for choice in level):
            p = float(choice.part)
            own = point if choice.last else cut
            errors[choice.index] = (1 - p) * errors[choice.left] + p * errors[choice.right] + own
        return max(errors.values()) * (1 + 1e-12)

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        places_of(lattice_of(self.space), none_of(value))

    def _draw(self, value: Any) -> Any:
        points = lattice_of(self.space)
        ranks = Ranks(places_of(points, value), len(points), windows=len(self.quantiles))
        rate, last = exactly(self.rate), len(self.quantiles)
        places, cuts = {-1: 0, last: len(points) - 1}, {-1: 0, last: len(ranks)}
        for choice in (choice for level in self.levels for choice in level):
            between = (places[choice.left], places[choice.right])
            rows = (cuts[choice.left], cuts[choice.right])
            score = QuantileScore(points, choice.part)
            if choice.last:
                places[choice.index] = choose_point(ranks, rows, between, score, rate)
            else:
                places[choice.index], cuts[choice.index] = choose_cut(ranks, rows, between, score, rate)
        chosen = np.array([places[i] for i in range(last)], dtype=np.int64)
        return points._at(chosen) if isinstance(points, Grid) else chosen + points.points()[0]


def _total_loss(levels: tuple[tuple[Choice, ...], ...], reach: Fraction, replaced: bool, single: bool) -> Factors:
    """What all levels reveal about a unit. Its rows change a score of weight 1 so far that log-ratios span `reach`.

    The rows of a person spread over several parts move each by less: ranges add, and squares add to less than all of
    them in one part. A removed and an added row in one part are a replacement, of weight 1: for a removed and b added
    ones its weight is (a+b)/2 + |a−b|·(w−½), which is convex, so at its worst with all of them in one part or in two.

    One replaced row costs reach²/8 in zCDP at the first level, and at each later one w²+w'² of it: as long as it stays
    in one part, the choices that would have parted it are those that it moves.
    """
    weights = [sorted((choice.weight for choice in level), reverse=True)[:2] for level in levels]
    if not replaced or len(levels) == 1:
        ranges = Counter(reach * (1 if replaced else first) for first, *_ in weights)
        return tuple((BoundedRangePair(span), times) for span, times in sorted(ranges.items()))
    apart = [sum(w**2 for w in pair) for pair in weights[1:]]
    rho = reach**2 / 8 * (1 + sum(apart if single else (max(Fraction(1), a) for a in apart)))
    loss = reach * (1 + sum(max(Fraction(1), sum(pair, Fraction(0))) for pair in weights[1:]))
    return ((EitherPair(ResponsePair(loss), ConcentratedPair(rho)), 1),)
