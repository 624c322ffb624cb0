"""Answers at several levels that add up: what is measured at each level, the estimates from all of them, and their
errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.noise.laplace import Laplace
from discreet.queries.levels import Levels, whole_numbers
from discreet.sql.expressions import Ref
from discreet.sql.plan import Plan
from discreet.sql.pricing.levels import LeveledNoise, measured_levels, reach
from discreet.sql.pricing.relation import Scan
from discreet.sql.question import Measure, Question
from discreet.sql.running.loss import Loss

Floats = NDArray[np.float64]
Known = tuple[int, list[int]]
"""A level, and the sums of all its groups."""
_MOST_DRAWN = 2 * 10**7
"""More numbers are not simulated at once."""


def levels_of(question: Question, cells: Sequence[tuple[Any, ...]]) -> tuple[Levels, list[list[tuple[Any, ...]]]]:
    """The levels that are measured, and the groups of each."""
    return Levels.of(measured_levels(question), cells)


def at_all_levels(question: Question, cells: Sequence[tuple[Any, ...]], measures: Sequence[Any]) -> tuple[Any, ...]:
    """The exact sums at all levels, measure by measure."""
    levels, _ = levels_of(question, cells)
    return tuple(levels.sums(values, n) for values in measures for n in range(len(levels.keys)))


def clipped_at_all_levels(
    question: Question, cells: Sequence[tuple[Any, ...]], clipped: Sequence[Any], level_of_loss: int
) -> tuple[tuple[Any, ...], ...]:
    """The exact sums of clipped people, level by level. What measures the loss comes last in one of them."""
    levels, _ = levels_of(question, cells)
    *sums, lost = clipped
    found = [tuple(levels.sums(values, n) for values in sums) for n in range(len(levels.keys))]
    found[level_of_loss] = (*found[level_of_loss], lost)
    return tuple(found)


@dataclass(frozen=True)
class Number:
    """One noisy number of each group at all levels: the noise of each level, and the estimates of the cells, as whole
    numbers plus small fractions.
    """

    noises: tuple[Laplace, ...]
    base: Any
    rest: Floats


@dataclass(frozen=True)
class Rounded:
    """A measure: its estimates in the cells, the whole numbers near them, and the level that is known, if there is
    one.
    """

    base: Any
    rest: Floats
    whole: Any
    known: int | None = None


class LeveledRows:
    """The rows of an answer with several levels: their keys, in the order in which they are shown, and the estimates.

    `numbers` are what was measured, and `measures` what the question asks for, in whole steps. If people are clipped,
    measures are made of several numbers.
    """

    def __init__(self, question: Question, cells: Sequence[tuple[Any, ...]], order: Sequence[int]) -> None:
        self.question = question
        self.levels, self.groups = levels_of(question, cells)
        self.numbers: list[Number] = []
        self.measures: list[Rounded] = []
        rank = np.empty(len(cells), dtype=np.int64)
        rank[np.asarray(order, dtype=np.int64)] = np.arange(len(cells))
        self.keys: list[tuple[Any, ...]] = []
        self._places: list[Any] = []  # for each level that is shown, its groups in order
        for n, level in enumerate(question.levels):
            first = np.full(self.levels.sizes[n], len(cells))
            np.minimum.at(first, self.levels.places[n], rank)
            places = np.argsort(first, kind="stable")
            self._places.append(places)
            names = self.levels.keys[n]
            assert names == tuple(sorted(level))
            for place in places.tolist():
                own = dict(zip(names, self.groups[n][place], strict=True))
                self.keys.append(tuple(own.get(key) for key in range(len(question.keys))))

    def estimate(self, noisy: Sequence[Any], noises: Sequence[Laplace]) -> None:
        """Add the best estimates of one number from its noisy sums at all levels."""
        self.numbers.append(Number(tuple(noises), *self.levels.estimates(noisy, self._weights(noises))))

    def measure(self, parts: Sequence[tuple[int, float]], known: Known | None, *, positive: bool) -> Any:
        """Add a measure that is made of numbers, each with a factor: the whole steps of all rows. `known` is a level
        whose sums are public.
        """
        if len(parts) == 1 and parts[0][1] == 1:
            one = self.numbers[parts[0][0]]
            base, rest = one.base, one.rest
        else:
            exact = sum(
                factor * (self.numbers[n].base.astype(np.float64) + self.numbers[n].rest) for n, factor in parts
            )
            base, rest = whole_numbers(np.floor(exact)), exact - np.floor(exact)
        if known is not None:
            rest = self.levels.fitted(base, rest, known, self._weights(self.numbers[parts[0][0]].noises))
        whole = self.levels.whole(base, rest, known, positive=positive)
        self.measures.append(Rounded(base, rest, whole, None if known is None else known[0]))
        return self.rows(whole)

    def _weights(self, noises: Sequence[Laplace]) -> list[float]:
        finest = noises[0].deviation
        return [(finest / noise.deviation) ** 2 for noise in noises]

    def rows(self, cells: Any) -> Any:
        """The sums of cells in all rows."""
        if np.asarray(cells).dtype == np.float64:
            sums = (np.bincount(self.levels.places[n], cells, self.levels.sizes[n]) for n in range(len(self._places)))
        else:
            sums = (self.levels.sums(cells, n) for n in range(len(self._places)))
        return np.concatenate([one[places] for one, places in zip(sums, self._places, strict=True)])

    @cached_property
    def summed(self) -> list[Any]:
        """For each key, whether each row is the sum over all its values: 1 or 0."""
        levels = np.repeat(np.arange(len(self._places)), [len(places) for places in self._places])
        absent = [[key not in level for level in self.question.levels] for key in range(len(self.question.keys))]
        return [np.array(own, dtype=np.int64)[levels] for own in absent]

    # --- errors -----------------------------------------------------------------------------------------------

    def off(self, measure: int) -> Floats:
        """How far the whole number of each row is from its estimate."""
        one = self.measures[measure]
        return np.abs(np.asarray(self.rows(np.asarray(one.whole - one.base, np.float64) - one.rest), np.float64))

    def unknown(self, measure: int) -> Floats:
        """1 for each row of a measure, or 0 if the row is a sum of known numbers."""
        known = self.measures[measure].known
        names = None if known is None else set(self.levels.keys[known])
        unknown = [names is None or not set(self.levels.keys[n]) <= names for n in range(len(self._places))]
        return np.repeat(np.array(unknown, dtype=np.float64), [len(places) for places in self._places])

    def error(self, number: int, confidence: float) -> Floats:
        """How far the estimate of a number in each row may be from the truth: as far as its own noise, or less."""
        own = [float(noise.error(confidence)) for noise in self.numbers[number].noises]
        spreads = self._deviations(number)
        rows = enumerate(self._places)
        return np.concatenate([np.minimum(own[n], spreads[n] * reach(confidence))[places] for n, places in rows])

    def _deviations(self, number: int) -> list[Floats]:
        """The standard deviation of the estimate of each group, or a bound on it."""
        noises = self.numbers[number].noises
        found = self.levels.variances(self._weights(noises))
        return [noises[0].deviation * np.sqrt(variances) for variances in found]

    def redrawn(self, number: int, draws: int, uniform: Callable[[tuple[int, ...]], Floats]) -> Floats | None:
        """The noise of the estimates of all rows, as often as its law says: a row for each draw. None if there would be
        too many.
        """
        noises = self.numbers[number].noises
        if draws * self.levels.cells > _MOST_DRAWN:
            return None
        drawn = []
        for size, noise in zip(self.levels.sizes, noises, strict=True):
            places = uniform((size, draws)) - 0.5
            drawn.append(-noise.deviation / math.sqrt(2) * np.sign(places) * np.log(1 - 2 * np.abs(places)))
        cells = self.levels.smoothed(drawn, self._weights(noises))
        return np.stack([self.rows(np.ascontiguousarray(cells[:, draw])) for draw in range(draws)])


@dataclass(frozen=True)
class LeveledLoss(Loss):
    """What is lost to clipping at each level. `cells` are those of the finest level."""

    shown: LeveledRows

    def _noise_and_missing(self, place: int, confidence: float) -> tuple[Floats, Floats]:
        """As at one level, but each row has its own noise, which is independent of the one that measures the loss."""
        noise = self.shown.error(place, confidence)
        if not self.clip.above:
            return noise, noise
        ratio = self.missing(place)
        each = 1 - (1 - confidence) / 2
        both = self.shown.error(place, each) + ratio * float(self.noise.error(each))
        lost = float(self.above[self.clipping.basis.kinds[place]]) * ratio
        return noise, np.maximum(noise, lost + both)

    def redrawn(self, place: int, draws: int, uniform: Callable[[tuple[int, ...]], Floats]) -> Floats:
        """What each row may miss of a number, as often as the law of its noise says."""
        places = uniform((draws, 1)) - 0.5
        assert isinstance(self.noise.noise, Laplace)
        noise = -self.noise.noise.deviation / math.sqrt(2) * np.sign(places) * np.log(1 - 2 * np.abs(places))
        lost = np.maximum(float(self.above[self.clipping.basis.kinds[place]]) - noise, 0.0)
        return np.asarray(uniform((draws, 1)) * lost * self.missing(place))

    def missing(self, place: int) -> Floats:
        """What each row misses of a number, for each step of what measures the loss."""
        return np.asarray(self.shown.rows(self._parts(place)) * self.lost_for_each)


def known_totals(question: Question, shown: LeveledRows, measure: Measure) -> Known | None:
    """The numbers of rows that a declared hierarchy says, if they are those of a level of the question."""
    relation = question.relation
    if not isinstance(relation, Scan) or measure.kind != "count" or measure.where is not None:
        return None
    origins = [key.expr.field.origin if isinstance(key.expr, Ref) else None for key in question.keys]
    for hierarchy in relation.table.hierarchies:
        width = len(hierarchy.totals[0]) - 1 if hierarchy.totals else 0
        columns = [(relation.table.name, name) for name in hierarchy.levels[:width]]
        if not columns or not all(column in origins for column in columns):
            continue
        keys = tuple(sorted(origins.index(column) for column in columns))
        if keys in shown.levels.keys:
            level = shown.levels.keys.index(keys)
            order = [columns.index(origins[key] or ("", "")) for key in keys]
            said = {tuple(total[place] for place in order): int(total[-1]) for total in hierarchy.totals}
            if set(said) == set(shown.groups[level]):
                return level, [said[group] for group in shown.groups[level]]
    return None


def leveled_noises(plan: Plan, number: int) -> Sequence[Laplace]:
    """The noise of one number at all levels."""
    if plan.clipping is not None and plan.clip is not None:
        assert plan.clipping.levels is not None
        noises = [plan.clipping.noise(plan.clip, n).noise for n in range(len(plan.clipping.levels.shares))]
        return [noise for noise in noises if isinstance(noise, Laplace)]
    part = plan.price.parts[number]
    assert isinstance(part, LeveledNoise)
    return part.noises
