"""Clipping: what one person adds to a whole answer is scaled down to a limit that was found privately.

Nothing has to be declared: neither rows nor groups nor values of a person are bounded, only the person's total over all
groups and measures. Everything here follows from public facts, or from limits that were released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.exact.rational import exactly, significant, sqrt_up
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Pure
from discreet.guarantees.unit import Unit
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.person_limits import PersonLimits, thirds_of_octaves
from discreet.queries.sensitivity import Norm, Sensitivity
from discreet.sql.expressions import Call, Const, Expr, conjuncts
from discreet.sql.pricing.levels import LevelShares
from discreet.sql.pricing.price import LARGE
from discreet.sql.question import OPEN, Measure, Question

PEOPLE = Fraction(1)
"""So many people for each cell, over ε, should exceed the limit: then as much is lost to it as to the noise. This, and
the shares below, were chosen on made-up people (`bench/sql/clipping.py`)."""
MOST_ABOVE = Fraction(1, 5)
"""What a person above the limit adds, in units of the limit, to the numbers that measure what is lost: at most."""
MOST_IN_SQUARES = Fraction(1, 4)
"""The same in L2, where it costs less: squares are added."""
MEASURED_FROM, MOST_LOST = 20, 2
"""From so many cells on, it is measured how much people lose, up to so many limits in L1. In fewer cells this would
have too much noise, so people above the limit are counted, and each is taken to lose one limit."""
CENTER_DIVISOR = 10
"""The part of ε for the centers of all means is 1/√(4·cells), at most a tenth."""
ROOT_SPREAD = 1.5
"""A person's sum of steps, in units of the root of the sum of squares and of the root of the number of measures: a
guess, for the number of people that should exceed the limit."""
DIVISOR = Fraction(1, 4)
"""The weight of a number that only divides, in an answer of one group: its mean is near the center, so the error of the
divisor matters less."""
UNIT = 2**20
"""The limit of one kind of number, in steps."""
LARGEST = 2**31 - 1
"""The largest number of steps in a cell of one person: products of two of them fit 64 bits."""
_COARSE = [1, 2**10, 2**12, 2**14, 2**16, 2**18]
"""The smallest limits on sums of numbers, in steps of their values. They are far apart, as a walk may stop at each. If
it stops at the first, which is smaller than all useful numbers, there are too few people."""


@dataclass(frozen=True)
class Basis:
    """The numbers that are measured, and how the measures of a question follow from them.

    A sum is computed from the sum about a center and the number of values, if both are needed anyway. A number of rows
    with a value is computed from the number without one: all rows, less (`minus`) those with a value. Both make a
    person's total smaller. `kinds` says which numbers share a scale, and `made_of` has, for each measure of the
    question, positions in `measures` with factors.
    """

    measures: tuple[Measure, ...]
    minus: tuple[Measure | None, ...]
    kinds: tuple[int, ...]
    made_of: Mapping[int, tuple[tuple[int, Fraction], ...]]


def basis_of(question: Question, weights: tuple[Fraction, ...]) -> Basis:
    """The numbers to measure for the sums of a question. `weights` has one weight for each of its measures."""
    added = {number: measure for number, measure in enumerate(question.measures) if measure.is_added}
    counts = {
        number: frozenset(() if measure.where is None else conjuncts(measure.where))
        for number, measure in added.items()
        if measure.kind == "count"
    }
    of_rows = {conditions: number for number, conditions in reversed(counts.items())}
    about_centers = {(m.value, m.where): m for m in reversed(added.values()) if _is_plain_sum(m) and m.center}
    heaviest: dict[tuple[Measure, Measure | None], Fraction] = {}
    places: dict[tuple[Measure, Measure | None], int] = {}

    def place(measure: Measure, weight: Fraction, minus: Measure | None = None) -> int:
        heaviest[measure, minus] = max(weight, heaviest.get((measure, minus), weight))
        return places.setdefault((measure, minus), len(places))

    def parts(number: int, weight: Fraction) -> tuple[tuple[int, Fraction], ...]:
        measure = added[number]
        around = _count_around(counts[number], of_rows) if number in counts else None
        if around is not None:
            whole = added[around]
            return (place(whole, weight), Fraction(1)), (place(whole, weight, minus=measure), Fraction(-1))
        centered = about_centers.get((measure.value, measure.where))
        if centered is not None and _is_plain_sum(measure) and not measure.center:
            count = next(one for one in counts if added[one].where == measure.where)
            per_row = centered.center / measure.step
            counted = [(which, per_row * factor) for which, factor in parts(count, weight)]
            return (place(centered, weight), centered.step / measure.step), *counted
        return ((place(measure, weight), Fraction(1)),)

    made_of = {number: parts(number, weights[number]) for number in added}
    kinds: dict[Any, int] = {}
    own_kinds = tuple(kinds.setdefault((_scale_of(m), w), len(kinds)) for (m, _), w in heaviest.items())
    return Basis(tuple(measure for measure, _ in places), tuple(minus for _, minus in places), own_kinds, made_of)


def _is_plain_sum(measure: Measure) -> bool:
    return measure.kind == "sum" and measure.power == 1


def _count_around(conditions: frozenset[Expr], of_rows: Mapping[frozenset[Expr], int]) -> int | None:
    """For the number of rows with a value: the number of all those rows, if it is also asked for. `of_rows` has the
    numbers of rows by their conditions.
    """
    fewer = [conditions - {one} for one in conditions if _says_present(one)]
    return min((of_rows[rest] for rest in fewer if rest in of_rows), default=None)


def _says_present(condition: Expr) -> bool:
    """Whether a condition only says that there is a value."""
    match condition:
        case Call(op="is_number") | Call(op="not", args=(Call(op="is_null"),)):
            return True
    return False


def _scale_of(measure: Measure) -> Any:
    """What says that two measures have the same scale: sums of the same values under other conditions, and counts."""
    if measure.kind != "sum" or measure.value is None:
        return measure.kind
    leaves = frozenset(_added_values(measure.value))
    if leaves:
        return leaves, measure.center, measure.step, measure.power
    return "count" if measure.step == measure.reach == 1 else ("constants", measure.step, measure.reach, measure.power)


def _added_values(value: Expr) -> list[Expr]:
    """The values that a sum can add, without the conditions under which it does. Constants are left out."""
    match value:
        case Const():
            return []
        case Call(op="case", args=args):
            return [leaf for branch in (*args[1:-1:2], args[-1]) for leaf in _added_values(branch)]
        case Call(op="coalesce" | "nullif", args=(first, *_)):
            return _added_values(first)
        case Call(op="cast", args=(inner,), type="number" | "integer"):
            return _added_values(inner) or ([] if isinstance(inner, Const) else [value])
    return [value]


@dataclass(frozen=True)
class Clip:
    """Limits that were found: how the totals of a person become steps, and the limit on all steps together, in a norm:
    on their sum without signs (L1), or on the root of the sum of their squares (L2).

    A total is multiplied by 2^`shift`, rounded towards 0, and multiplied by its `factor`. `sizes` are the limits on the
    totals of each kind, one for each measure. Each person above the limit adds `above` steps to the numbers that
    measure what is lost or, with `most_lost`, such a part of these as the person loses of so many limits.
    """

    limit: int
    sizes: tuple[int, ...]
    shifts: tuple[int, ...]
    factors: tuple[int, ...]
    above: int
    norm: Norm = "L1"
    most_lost: int = 0

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        """One step, in the steps of each measure."""
        pairs = zip(self.shifts, self.factors, strict=True)
        return tuple(1 / (Fraction(2) ** shift * factor) for shift, factor in pairs)

    @cached_property
    def reached(self) -> tuple[int, ...]:
        """The limit on the totals of each measure, in steps, rounded up."""
        return tuple(math.ceil(size / unit) for size, unit in zip(self.sizes, self.units, strict=True))


@dataclass(frozen=True)
class Clipping:
    """How the people of one question are clipped: what is measured, in how many groups, and what it may cost.
    `searched` is the part of ε for finding the limits. `weights` are those of the measures of the question. With a
    `delta`, noise may be Gaussian. `levels` divide ε, if there are several.
    """

    basis: Basis
    unit: Unit
    limits: tuple[tuple[int, ...], ...]
    weights: Mapping[int, Fraction]
    groups: int
    epsilon: Fraction
    searched: Fraction
    delta: Fraction = Fraction(0)
    levels: LevelShares | None = None

    @property
    def cells(self) -> int:
        """In how many numbers the answer consists."""
        return self.groups * len(self.basis.measures)

    @property
    def is_known(self) -> bool:
        """Whether the limit is publicly known, so that nobody exceeds it."""
        return [len(limits) for limits in self.limits] == [1]

    @property
    def left(self) -> Fraction:
        """The part of ε for the answer."""
        return self.epsilon - self.searched

    @property
    def share_above(self) -> Fraction:
        """What a person above the limit adds to the numbers that measure what is lost, in units of the limit."""
        return min(MOST_ABOVE, Fraction(1, math.isqrt((2 if self.is_measured else 4) * math.ceil(self._weighed_cells))))

    @property
    def is_measured(self) -> bool:
        """Whether it is measured how much people above the limit lose, or only how many they are."""
        return self._weighed_cells >= MEASURED_FROM

    @property
    def people(self) -> Fraction:
        """How many people should exceed the limit: then as much is lost to it as to the noise."""
        moved = 1 if self.unit.neighbors == "add_or_remove" else 2
        return significant(PEOPLE * moved * self._weighed_cells / self.left, up=True)

    @property
    def _weighed_cells(self) -> Fraction:
        """The number of cells or, if there are levels, so many that matter as much."""
        if self.levels is None:
            return Fraction(self.cells)
        return max(Fraction(1), Fraction(self.levels.people) * len(self.basis.measures))

    @property
    def moved(self) -> Sensitivity:
        """How one unit changes the numbers of people above limits: one total of each person is compared with all of
        them, so a replaced person moves all numbers one way, too.
        """
        return Sensitivity(1, "Linf", self.unit, monotone=True)

    @property
    def deviation(self) -> float:
        """The standard deviation of Gaussian noise for a sensitivity of 1."""
        return 1 / largest_mu(float(self.left), float(self.delta))

    @property
    def may_be_gaussian(self) -> bool:
        """Whether Gaussian noise can be smaller than Laplace noise. The sum of a person's steps is at most the root of
        the number of cells times the root of the sum of squares. That of a coarser level may be the sum.
        """
        return (
            self.levels is None
            and bool(self.delta)
            and self.left <= LARGE
            and self.cells > (self.deviation * float(self.left)) ** 2
        )

    @property
    def _searches(self) -> int:
        return sum(len(limits) > 1 for limits in self.limits) + self.may_be_gaussian

    def search(self) -> PersonLimits:
        """The mechanism that finds the limits of all kinds."""
        share = self.searched * (self._searches - self.may_be_gaussian) / self._searches
        return PersonLimits.for_guarantee(
            Pure(epsilon=share), limits=self.limits, people=self.people, sensitivity=self.moved
        )

    def search_of_roots(self) -> PersonLimits:
        """The mechanism that finds the limit on the root of a person's sum of squares, in steps."""
        roots = thirds_of_octaves(UNIT >> 10, 2 * UNIT * len(self.limits))
        spread = ROOT_SPREAD * math.sqrt(len(self.basis.measures))
        people = significant(self.people * self.left * Fraction(self.deviation / spread), up=True)
        each = Pure(epsilon=self.searched / self._searches)
        return PersonLimits.for_guarantee(each, limits=[roots], people=people, sensitivity=self.moved)

    def with_root(self, clip: Clip, root: int) -> Clip:
        """The better of two clips: the given one, in L1, or the one in L2 with this limit. Only what was released
        decides.
        """
        squares = self.in_squares(clip, root)
        laplace = 0.69 * (clip.limit + clip.above) / float(self.left)
        gaussian = 0.67 * math.hypot(squares.limit, squares.above) * self.deviation
        return clip if laplace <= gaussian else squares

    def in_squares(self, clip: Clip, root: int) -> Clip:
        """The clip in L2 with this limit.

        The steps of a person in c cells are together at most √c times their norm, and few people have more than the
        limit in L1: so much more may be lost than the norm says. For one of many cells it is measured exactly enough if
        a person above the limit adds √(most_lost/c) of it.
        """
        most_lost = max(1, round(min(math.sqrt(self.cells), clip.limit / root)))
        share = min(MOST_IN_SQUARES, sqrt_up(Fraction(most_lost, self.cells)))
        return replace(clip, limit=root, above=math.floor(share * root), norm="L2", most_lost=most_lost)

    def has_too_few(self, scales: tuple[int, ...]) -> bool:
        """Whether the limits that were found say that there are too few people: a walk stopped where it began. Counts,
        and sums of whole numbers, may be that small.
        """
        coarse = (own[:2] == tuple(_COARSE[:2]) for own in self.limits)
        return any(sum_ and scale == _COARSE[0] for sum_, scale in zip(coarse, scales, strict=True))

    def has_too_large(self, scales: tuple[int, ...]) -> bool:
        """Whether a limit that was found is near the largest total that is computed: then some may be larger."""
        largest = OPEN // len(self.basis.measures)
        return any(2 * scale > largest for scale, own in zip(scales, self.limits, strict=True) if len(own) > 1)

    def clip(self, scales: tuple[int, ...]) -> Clip:
        """The clip for the limits of all kinds: a person may reach all of them at once."""
        if self.is_known:
            [[limit]], ones = self.limits, (1,) * len(self.basis.measures)
            return Clip(limit, (limit,) * len(ones), (0,) * len(ones), ones, 0)
        scales = self._consistent(scales)
        sizes = [scales[kind] for kind in self.basis.kinds]
        shifts = [15 - size.bit_length() for size in sizes]
        factors = [
            max(1, round(UNIT * weight / (size * Fraction(2) ** shift)))
            for size, shift, weight in zip(sizes, shifts, self._weights_of_kinds(scales), strict=True)
        ]
        clip = Clip(0, tuple(sizes), tuple(shifts), tuple(factors), 0)
        most = [0] * len(scales)
        for steps, kind in zip(clip.reached, self.basis.kinds, strict=True):
            most[kind] = max(most[kind], steps)
        limit, most_lost = sum(most), MOST_LOST if self.is_measured else 0
        return replace(clip, limit=limit, above=math.floor(self.share_above * limit), most_lost=most_lost)

    def _weights_of_kinds(self, scales: tuple[int, ...]) -> list[Fraction]:
        """The weight of each number: the cube root of how many measures depend on its kind, each by the part of it in
        their noise. This makes the sum of their squared errors least.
        """
        used = [0.0] * len(scales)
        for measure, made in self.basis.made_of.items():
            kinds = [self.basis.kinds[place] for place, _ in made]
            sizes = [float(factor * scales[kind]) ** 2 for (_, factor), kind in zip(made, kinds, strict=True)]
            for kind, size in zip(kinds, sizes, strict=True):
                used[kind] += float(self.weights[measure]) ** 3 * size / sum(sizes)
        each = [Fraction(round(1024 * (one / max(used)) ** (1 / 3)), 1024) for one in used]
        return [each[kind] for kind in self.basis.kinds]

    def _consistent(self, scales: tuple[int, ...]) -> tuple[int, ...]:
        """The limits, where that on a sum is at most what those on rows and on squares allow: by Cauchy and Schwarz,
        (Σz)² ≤ n·Σz².
        """
        kinds, found = list(zip(self.basis.measures, self.basis.kinds, strict=True)), list(scales)
        rows = max((scales[kind] for measure, kind in kinds if measure.kind == "count"), default=0)
        squares = {(measure.value, measure.where): (measure.step, scales[kind])
                   for measure, kind in kinds if measure.power == 2}  # fmt: skip
        for measure, kind in kinds:
            step, most = squares.get((measure.value, measure.where), (measure.step, 0))
            if rows and most and measure.power == 1 and measure.center:
                allowed = sqrt_up(rows * most * (step / measure.step) ** 2)
                found[kind] = min(found[kind], math.ceil(allowed))
        return tuple(found)

    def example(self) -> Clip:
        """A clip for the largest limits, to plan with until limits are found. No other costs more."""
        clip = self.clip(tuple(limits[-1] for limits in self.limits))
        return replace(clip, norm="L2") if self.may_be_gaussian else clip

    @property
    def level_of_loss(self) -> int:
        """The level with which what measures the loss is measured: the one with the least noise."""
        return 0 if self.levels is None else self.levels.most_exact

    def noise(self, clip: Clip, level: int | None = None) -> JointNoise:
        """The noise of a clipped answer at one level, or of what measures the loss."""
        level = self.level_of_loss if level is None else level
        bound = self.sensitivity(clip, level)
        if clip.norm == "L2":
            goal = Approx(epsilon=self.left, delta=self.delta)
            return JointNoise(noise=Gaussian.for_guarantee(goal, sensitivity=bound, step=1))
        share = 1 if self.levels is None else self.levels.shares[level]
        return JointNoise(noise=Laplace(scale=tidy(significant(bound.exact / (self.left * share), up=True)), step=1))

    def sensitivity(self, clip: Clip, level: int | None = None) -> Sensitivity:
        """How much one unit changes a clipped answer, in steps: the limit, and what a person above it adds to numbers
        that are measured with one of the levels.

        Promise: the norm of a person's steps is at most the limit, after scaling and rounding towards 0, and what the
        person adds besides sums to at most `above`. A replaced person takes off one such vector and adds another. If no
        number is negative, their product is not either, so in L2 the squares add. Sums of groups have at most the norm
        of the groups, in L1.
        """
        moved = 1 if self.unit.neighbors == "add_or_remove" else 2
        level, numbers = self.level_of_loss if level is None else level, self.cells
        if self.levels is not None:
            numbers = self.levels.sizes.sizes[level] * len(self.basis.measures)
        if level != self.level_of_loss:
            return Sensitivity(moved * clip.limit, "L1", self.unit, numbers, grain=1)
        numbers += len(self.limits)
        if clip.norm == "L1":
            return Sensitivity(moved * (clip.limit + clip.above), "L1", self.unit, numbers, grain=1)
        squares = clip.limit**2 + clip.above**2
        squares *= moved if all(map(has_one_sign, self.basis.measures)) else moved**2
        return Sensitivity(sqrt_up(Fraction(squares)), "L2", self.unit, numbers, grain=1)


def has_one_sign(measure: Measure) -> bool:
    """Whether no value of a measure is below 0."""
    return measure.kind != "sum" or measure.power == 2 or (measure.lowest >= 0 and not measure.center)


@dataclass(frozen=True)
class MadeNoise:
    """The noise of a measure that is a weighted sum of noisy numbers: each noise in the steps of the measure."""

    parts: tuple[Laplace | Gaussian, ...]

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        """The sum of the errors of all parts, each with its share of the failure probability."""
        each = 1 - (1 - check_confidence(confidence)) / len(self.parts)
        amounts = [float(part.error(each, values=values)) for part in self.parts]
        return Accuracy(amount=sum(amounts), confidence=confidence, of="value" if values == 1 else "every value")


def made_noise(clipping: Clipping, clip: Clip, joint: JointNoise, number: int) -> MadeNoise:
    """The noise of one measure of the question, in its own steps."""
    sizes = [abs(factor) * clip.units[place] for place, factor in clipping.basis.made_of[number]]
    if isinstance(joint.noise, Gaussian):
        deviation = exactly(joint.noise.stddev)
        return MadeNoise(tuple(Gaussian(stddev=tidy(significant(deviation * size, up=True))) for size in sizes))
    scale = exactly(joint.noise.scale)
    return MadeNoise(tuple(Laplace(scale=tidy(significant(scale * size, up=True))) for size in sizes))


@dataclass(frozen=True)
class ClippedLevels:
    """The noise of a measure of clipped people at each level."""

    levels: tuple[MadeNoise, ...]

    def error(self, confidence: float, *, values: int = 1) -> Accuracy:
        """The largest error of one level. The estimates from all levels are better."""
        return max((level.error(confidence, values=values) for level in self.levels), key=float)


def to_center(question: Question, rows: int | None) -> tuple[int, ...]:
    """The sums, by position, that are averaged, and whose limits are found: nobody knows the range of their values or,
    without a number of `rows`, how many of these one person has. The middle of a declared range may be far from all
    values, unless there are only two. Spreads and pairs have centers of their own.

    A range that is still to be found changes nothing here: what is found first was paid for by the number of centers.
    """
    means = {aggregate.parts[1] for aggregate in question.aggregates if aggregate.kind == "mean"}
    others = {part for one in question.aggregates if one.kind not in ("mean", "sum", "count") for part in one.parts}
    centered = {*question.uncentered, *question.centered}  # before the rows are read

    def is_far(part: int) -> bool:
        measure = question.measures[part]
        within = rows is None and part not in others and not has_two_values(measure)
        return measure.value not in centered and (measure.is_open or within)

    return tuple(sorted(filter(is_far, means)))


def has_two_values(measure: Measure) -> bool:
    """Whether the declarations say that a value is one of two numbers that follow each other, such as 0 and 1."""
    value = measure.value
    if value is None or any(field.found for field in value.fields()):
        return value is None
    return value.type in ("integer", "boolean") and (measure.highest - measure.lowest) * measure.step <= 1


def with_centers(question: Question, centers: Mapping[int, Fraction]) -> Question:
    """The question whose means are computed about centers that were found."""
    measures, place = list(question.measures), {}
    for part, center in centers.items():
        known = measures[part]
        shift = round((center - known.center) / known.step)
        middle = known.center + shift * known.step
        moved = replace(known, center=middle, lowest=known.lowest - shift, highest=known.highest - shift)
        place[part] = len(measures)
        measures.append(moved)
    aggregates = tuple(
        replace(one, parts=(one.parts[0], place.get(one.parts[1], one.parts[1]))) if one.kind == "mean" else one
        for one in question.aggregates
    )
    used = sorted({part for one in aggregates for part in one.parts})
    return replace(
        question,
        measures=tuple(measures[part] for part in used),
        aggregates=tuple(replace(one, parts=tuple(map(used.index, one.parts))) for one in aggregates),
    )


def share_searched(kinds: int, cells: int) -> Fraction:
    """The part of ε for finding the limits of so many kinds of numbers: 1/√(4·cells/kinds), at most a third or, for
    several kinds, two fifths.
    """
    most = Fraction(1, 3) if kinds == 1 else Fraction(2, 5)
    return min(most, Fraction(1, max(1, math.isqrt(4 * cells // kinds)))) if kinds else Fraction(0)


def share_centered(cells: int) -> Fraction:
    """The part of ε for the centers of all means."""
    return Fraction(1, max(CENTER_DIVISOR, math.isqrt(4 * cells)))


def clipping_of(
    question: Question,
    unit: Unit,
    groups: int,
    rows: int | None,
    epsilon: Fraction,
    weights: tuple[Fraction, ...] = (),
    searched: Fraction | None = None,
    delta: Fraction = Fraction(0),
    levels: LevelShares | None = None,
) -> Clipping | None:
    """How people are clipped in a question. None if declared bounds say how many rows of one person are used, and the
    ranges of all values are known. `rows` is the maximum number of rows of one unit, if it is declared.
    """
    if not any(measure.is_added for measure in question.measures):
        return None
    weights = weights or (Fraction(1),) * len(question.measures)
    basis = basis_of(question, weights)
    of_kinds: list[list[Measure]] = [[] for _ in range(max(basis.kinds) + 1)]
    for measure, kind in zip(basis.measures, basis.kinds, strict=True):
        of_kinds[kind].append(measure)
    limits = tuple(tuple(_limits(measures, rows, question)) for measures in of_kinds)
    if rows is not None and all(len(own) == 1 for own in limits):
        return None
    divisors = _only_divide(question, rows) if groups == 1 else frozenset()
    heavy = {n: weights[n] * (DIVISOR if n in divisors else 1) for n in basis.made_of}
    if searched is None:
        unknown = sum(len(own) > 1 for own in limits)
        cells = groups * len(basis.measures)
        if levels is not None:
            cells = math.ceil(levels.people * len(basis.measures))
        searched = significant(epsilon * share_searched(unknown, cells), up=False)
    return Clipping(basis, unit, limits, heavy, groups, epsilon, searched, delta, levels)


def _only_divide(question: Question, rows: int | None) -> frozenset[int]:
    """The measures that only divide sums about centers that are found: numbers of values, for means and variances."""
    near, means = {*question.uncentered, *question.centered}, to_center(question, rows)
    total = [m.is_open or m.value in near or part in means for part, m in enumerate(question.measures)]
    uses = [(part, len(one.parts) > 1 and part == one.parts[0] and total[one.parts[1]])
            for one in question.aggregates for part in one.parts]  # fmt: skip
    return frozenset(part for part, _ in uses) - {part for part, divides in uses if not divides}


def _limits(measures: list[Measure], rows: int | None, question: Question) -> list[int]:
    """The limits among which that of one kind of number is found, in its steps. One, if it is known."""
    if all(measure.kind == "people" for measure in measures) and not question.keys:
        rows = 1  # a person is counted once if there is one group
    found = {*question.uncentered, *question.centered}  # their ranges are much wider than the values
    if rows is not None and not any(measure.is_open or measure.value in found for measure in measures):
        return [rows * sum(int(m.reach**m.power) if m.kind == "sum" else 1 for m in measures)]
    if measures[0].kind == "sum" and measures[0].step != 1:
        return [*_COARSE, *thirds_of_octaves(4 * _COARSE[-1], OPEN)]
    return thirds_of_octaves(1, OPEN)
