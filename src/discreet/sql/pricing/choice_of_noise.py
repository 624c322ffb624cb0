"""The noise of a statement: Laplace or Gaussian, whichever has the smaller error. Only public facts decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import check_delta, check_epsilon, check_positive, exactly, significant, sqrt_up
from discreet.exact.search import bisect
from discreet.guarantees.conversions import largest_mu
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, ZeroConcentrated
from discreet.guarantees.meaning.groups import for_group
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.unit import Unit
from discreet.mechanisms.combine import Composed, PerGroup
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import meets, tidy
from discreet.mechanisms.quantiles.quantile_interval import QuantileInterval
from discreet.mechanisms.selection.exponential import Exponential, PermuteAndFlip
from discreet.mechanisms.selection.threshold import KeySelection, SelectedGroups
from discreet.queries.query import largest_change
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Grid
from discreet.sql.pricing.clipping import Clip, ClippedLevels, Clipping, made_noise
from discreet.sql.pricing.key_choice import chooses_first, has_open_keys, need_delta
from discreet.sql.pricing.levels import LeveledNoise, LevelShares
from discreet.sql.pricing.price import LARGE, Noise, Price, contribution
from discreet.sql.question import Aggregate, Bounds, Measure, Question
from discreet.sql.terms import Terms


def choose_noise(
    question: Question,
    unit: Unit,
    bounds: Bounds | None,
    groups: int,
    terms: Terms,
    clipped: tuple[Clipping, Clip] | None = None,
    levels: LevelShares | None = None,
) -> Price:
    """The least noise, Laplace or Gaussian, that satisfies (ε,δ) for the whole statement. Several levels have Laplace
    noise.

    If keys are not declared, choosing the groups costs as much as one more aggregate, and half of δ or all of it.
    """
    total, slack = check_epsilon(terms.epsilon), check_delta(terms.delta)
    offers = NoiseChoice(question, unit, bounds, groups, shares_of(question, terms.weights))
    if clipped is not None:
        return replace(offers.clipped(total, *clipped), epsilon=total)
    assert bounds is not None or question.relation.person is None  # a person's rows are bounded, or clipped
    if levels is not None:
        return replace(offers.leveled(total, levels), epsilon=total)
    if not has_open_keys(question) or chooses_first(question, None if bounds is None else bounds.groups, clipped=False):
        return replace(offers.best(total, slack), epsilon=total)
    need_delta(slack)
    left = total * Fraction(len(question.aggregates), len(question.aggregates) + 1)
    offer = offers.best(left, slack / 2)
    chosen, promised = _selection(unit, bounds, total - left, slack - offer.delta)
    mechanism = SelectedGroups(selection=chosen, answers=offer.mechanism)
    guarantee = compose([promised, offer.guarantee])
    return replace(offer, mechanism=mechanism, guarantee=guarantee, delta=slack, epsilon=total)


def _selection(unit: Unit, bounds: Bounds | None, epsilon: Fraction, delta: Fraction) -> tuple[KeySelection, Guarantee]:
    """How groups are chosen whose keys are not declared, and what that promises.

    Promise: groups are counted in rows if rows are protected, and each row has one key. A few rows are as many steps of
    one row, and the choice keeps (ε,δ) over all of them: one row has ε/k, and a δ that adds up to the given one.
    """
    if unit.most_rows == 1:
        goal = added_or_removed(epsilon, delta, unit)
        chosen = KeySelection.for_guarantee(goal, keys_per_person=1 if bounds is None else bounds.groups)
        return chosen, chosen.guarantee().stated_for(unit)
    steps = unit.most_rows * (1 if unit.neighbors == "add_or_remove" else 2)
    each = min(epsilon, Fraction(LARGE)) / steps
    every = exactly(math.expm1(float(each) * steps) / math.expm1(float(each))) * (1 + Fraction(1, 10**6))
    chosen = KeySelection.for_guarantee(Approx(epsilon=each, delta=delta / every))
    of_one = Approx(epsilon=1 / exactly(chosen.scale), delta=Fraction(chosen.delta))
    return chosen, replace(for_group(of_one, steps), protects=unit)


def added_or_removed(epsilon: Fraction, delta: Fraction, unit: Unit) -> Approx:
    """The guarantee needed for one added or removed unit. A replaced unit is a removal and an addition."""
    if unit.neighbors == "add_or_remove":
        return Approx(epsilon=epsilon, delta=delta)
    half = epsilon / 2
    return Approx(epsilon=half, delta=delta / (1 + exactly(math.exp(half)) * (1 + Fraction(1, 10**9))))


def shares_of(question: Question, weights: Mapping[str, Any] | None) -> tuple[Fraction, ...]:
    """The part of ε for each measure: equal parts for the aggregates, divided among their measures."""
    total = [Fraction(0)] * len(question.measures)
    for aggregate, weight in _weighted(question, weights):
        for part in aggregate.parts:
            total[part] += weight * aggregate.weight / len(aggregate.parts)
    whole = sum(total, Fraction(0))
    return tuple(share / whole for share in total)


def weights_of(question: Question, weights: Mapping[str, Any] | None) -> tuple[Fraction, ...]:
    """The largest weight of a column that uses each measure."""
    found = [Fraction(0)] * len(question.measures)
    for aggregate, weight in _weighted(question, weights):
        for part in aggregate.parts:
            found[part] = max(found[part], weight * aggregate.weight)
    return tuple(found)


def _weighted(question: Question, weights: Mapping[str, Any] | None) -> list[tuple[Aggregate, Fraction]]:
    """Each aggregate with the largest weight of a column that uses it."""
    if not isinstance(weights, Mapping | None) or not all(isinstance(name, str) for name in weights or ()):
        raise InvalidArgument('weights must name columns of the answer, such as {"visits": 2}.', code="wrong-type")
    given = {name.lower(): _weight(weight, name) for name, weight in (weights or {}).items()}
    named = {output.name.lower(): output for output in question.outputs}
    for name in given:
        if name not in named:
            raise InvalidArgument(
                f"weights names {name}, which is not a column of the answer. Known: {', '.join(named)}.",
                code="unknown-column",
            )
    heaviest: dict[str, Fraction] = {}
    for output in question.outputs:
        weight = given.get(output.name.lower(), Fraction(1))
        for field in output.expr.fields():
            heaviest[field.id] = max(weight, heaviest.get(field.id, weight))
    return [(aggregate, heaviest.get(aggregate.field.id, Fraction(1))) for aggregate in question.aggregates]


def _weight(weight: Any, name: str) -> Fraction:
    exact = check_positive(weight, f"the weight of {name}")
    if not 1 / HEAVIEST <= exact <= HEAVIEST:
        raise InvalidArgument(
            f"The weight of {name} must be between 1e-6 and 1e6. It is relative to the others.", code="out-of-range"
        )
    return exact


MOST_COUNTED = 10**8
"""The largest number of groups times values that MODE chooses from."""
HEAVIEST = Fraction(10**6)
"""A column with more weight would leave the others nothing but noise."""


@dataclass(frozen=True)
class NoiseChoice:
    """The prices of one statement: what is measured, for whom, within which bounds, in how many groups, with which
    shares.
    """

    question: Question
    unit: Unit
    bounds: Bounds | None
    groups: int
    shares: tuple[Fraction, ...]

    @property
    def added(self) -> list[int]:
        """The measures that get added noise. The others are chosen at random."""
        return [n for n, measure in enumerate(self.question.measures) if not measure.is_chosen]

    def best(self, total: Fraction, slack: Fraction) -> Price:
        """The better of the two kinds of noise."""
        offers = [self.laplace(total)]
        if not slack or total > LARGE:
            return offers[0]
        if self.added and (gaussian := self._fitting(total, slack)) is not None:
            offers.append(gaussian)
        if len(self.added) < len(self.question.measures) and self.bounds is not None and self.bounds.groups > 1:
            # choices in several groups compose to less than the sum of their ε
            goal = Approx(epsilon=total, delta=slack)
            makes = [self.laplace, lambda more: self.gaussian(more, slack)][: len(offers)]
            stretched = (_stretch(make, total, goal, self.bounds.groups) for make in makes)
            offers += [offer for offer in stretched if offer is not None]
        return min(offers, key=expected_error)

    def laplace(self, total: Fraction) -> Price:
        """Laplace noise for every measure that gets added noise."""
        parts: list[Any] = []
        sensitivities: list[Sensitivity] = []
        for measure, share in zip(self.question.measures, self.shares, strict=True):
            if measure.is_chosen:
                choose = self._quantile if measure.kind == "quantile" else self._mode
                part, sensitivity = choose(measure, total * share)
            else:
                moved = contribution(measure, self.bounds, self.unit).l1
                part = Laplace(scale=tidy(significant(moved / (total * share), up=True)), step=1)
                sensitivity = Sensitivity(moved, "L1", self.unit, self.groups, grain=1)
            parts.append(part)
            sensitivities.append(sensitivity)
        return self._price(parts, sensitivities, "Laplace", Fraction(0))

    def leveled(self, total: Fraction, levels: LevelShares) -> Price:
        """Laplace noise for every measure at every level.

        Promise: a unit that moves the sums of the finest groups by some amount, without signs, moves those of any level
        by at most as much: they are sums of these sums.
        """
        parts: list[LeveledNoise] = []
        sensitivities: list[Sensitivity] = []
        for measure, share in zip(self.question.measures, self.shares, strict=True):
            moved = contribution(measure, self.bounds, self.unit).l1
            scales = [significant(moved / (total * share * part), up=True) for part in levels.shares]
            parts.append(LeveledNoise(tuple(Laplace(scale=tidy(scale), step=1) for scale in scales), levels))
            sensitivities += [Sensitivity(moved, "L1", self.unit, size, grain=1) for size in levels.sizes.sizes]
        mechanism = Composed(mechanisms=tuple(noise for part in parts for noise in part.noises))
        guarantee = mechanism.guarantee(sensitivities)
        stated = tuple(sensitivities[:: len(levels.shares)])
        return Price(mechanism, tuple(parts), stated, guarantee, "Laplace", self.shares)

    def clipped(self, total: Fraction, clipping: Clipping, clip: Clip) -> Price:
        """One Laplace noise for all sums of clipped people. What is not a sum keeps its own noise and share of ε."""
        if clipping.levels is not None:
            return self._clipped_levels(clipping, clip, clipping.levels)
        joint, bound = clipping.noise(clip), clipping.sensitivity(clip)
        others = [n for n, measure in enumerate(self.question.measures) if not measure.is_added]
        plain = self.laplace(total) if others else None
        parts = [
            made_noise(clipping, clip, joint, n) if plain is None or n not in others else plain.parts[n]
            for n in range(len(self.question.measures))
        ]
        mechanism = Composed(mechanisms=(joint, *(plain.parts[n] for n in others if plain is not None)))
        own = [bound, *(plain.sensitivities[n] for n in others if plain is not None)]
        stated = [bound if n not in others else own[1 + others.index(n)] for n in range(len(parts))]
        noise: Noise = "Laplace" if clip.norm == "L1" else "Gaussian"
        slack = Fraction(0) if clip.norm == "L1" else clipping.delta
        return Price(mechanism, tuple(parts), tuple(stated), mechanism.guarantee(own), noise, self.shares, slack)

    def _clipped_levels(self, clipping: Clipping, clip: Clip, levels: LevelShares) -> Price:
        """One Laplace noise for all sums of clipped people at each level."""
        joint = [clipping.noise(clip, level) for level in range(len(levels.shares))]
        bounds = [clipping.sensitivity(clip, level) for level in range(len(levels.shares))]
        made = [[made_noise(clipping, clip, noise, n) for noise in joint] for n in range(len(self.question.measures))]
        parts = tuple(ClippedLevels(tuple(own)) for own in made)
        mechanism = Composed(mechanisms=tuple(joint))
        stated = (bounds[0],) * len(parts)
        return Price(mechanism, parts, stated, mechanism.guarantee(bounds), "Laplace", self.shares)

    @property
    def _full_groups(self) -> int:
        """In how many groups one unit has as many rows as it may, if it has all that it may have. All rows of a unit of
        several rows are taken to be in one.

        Promise: losses of choices are at most in proportion to the rows that move them, and choices in two groups that
        r and s rows move are dominated by one that r + s rows move: ranges of log-ratios add. So nobody learns more
        from rows that are spread over more groups.
        """
        if self.bounds is None or self.unit.most_rows > 1:
            return 1
        return min(self.bounds.groups, -(-self.bounds.rows // self.bounds.per_group))

    @property
    def _rows_in_group(self) -> int:
        """How many rows of one unit are in such a group."""
        if self.bounds is None:
            return 1
        return self.bounds.rows if self.unit.most_rows > 1 else self.bounds.per_group

    def _quantile(self, measure: Measure, epsilon: Fraction) -> tuple[Any, Sensitivity]:
        """A quantile in each group, with intervals wide enough that those of all quantiles in a row hold at once. A
        replaced unit can leave some groups and enter others, which moves more than if it stays in its groups.
        """
        rows = self._rows_in_group
        apart = self.unit.neighbors == "replace" and bool(self.question.keys)
        groups = self._full_groups * (2 if apart else 1)
        chooser = QuantileInterval.for_guarantee(
            Pure(epsilon=epsilon / groups),
            space=Grid(measure.lowest, measure.highest, 1, missing=None),
            quantile=measure.quantile,
            unit=self.unit,
            rows_per_person=rows,
            confidence=1 - 0.05 / (len(self.question.measures) - len(self.added)),
        )
        return PerGroup(mechanism=chooser, groups=groups), chooser.sensitivity(self.unit, rows)

    def _mode(self, measure: Measure, epsilon: Fraction) -> tuple[Any, Sensitivity]:
        """The most common value in each group, chosen by how many rows have each value. Rows that come move counts in
        one direction. A replaced unit that stays in its groups moves them in both, by a range that is twice as large,
        which also covers one that leaves some groups and enters others. Choices in several groups cost less if their
        losses have a bounded range.
        """
        groups = self._full_groups
        if self.groups * (measure.highest + 1) > MOST_COUNTED:
            raise NotAllowed(
                f"MODE would count {measure.highest + 1:,} values in each of {self.groups:,} groups, and at most "
                f"{MOST_COUNTED:,} numbers in all are supported. Ask about fewer groups.",
                code="sql-too-many-groups",
            )
        moved = Sensitivity(
            largest_change(self.unit, self._rows_in_group, added=1, replaced=1),
            "Linf",
            self.unit,
            monotone=self.unit.neighbors == "add_or_remove",
        )
        kind = PermuteAndFlip if groups == 1 else Exponential
        chooser = kind.for_guarantee(
            Pure(epsilon=epsilon / groups), sensitivity=moved, choices=range(measure.highest + 1)
        )
        return PerGroup(mechanism=chooser, groups=groups), moved

    def _fitting(self, total: Fraction, slack: Fraction) -> Price | None:
        """Gaussian noise that satisfies (ε,δ)."""
        for attempt in range(40):
            lowered = 1 - 1e-9 * 4**attempt if attempt < 12 else 0.5 ** (attempt - 11)
            offer = self.gaussian(total, slack, lowered)
            if meets(offer.guarantee, Approx(epsilon=total, delta=slack)):
                return offer
        return None

    def gaussian(self, total: Fraction, slack: Fraction, lowered: float = 1.0) -> Price:
        """Gaussian noise for every measure that gets added noise. A chosen value gets none, and keeps its part of ε."""
        plain = self.laplace(total)
        whole = sum((self.shares[n] for n in self.added), Fraction(0))
        mu = largest_mu(float(total * whole), float(slack)) * lowered
        parts, sensitivities = list(plain.parts), list(plain.sensitivities)
        for n in self.added:
            reach = sqrt_up(Fraction(contribution(self.question.measures[n], self.bounds, self.unit).squared))
            deviation = significant(reach / exactly(mu * math.sqrt(self.shares[n] / whole)), up=True)
            sensitivities[n] = Sensitivity(reach, "L2", self.unit, self.groups)
            parts[n] = Gaussian(stddev=tidy(deviation))
        return self._price(parts, sensitivities, "Gaussian", slack)

    def _price(self, parts: list[Any], sensitivities: list[Sensitivity], noise: Noise, delta: Fraction) -> Price:
        mechanism = Composed(mechanisms=tuple(parts))
        guarantee = mechanism.guarantee(sensitivities)
        return Price(mechanism, mechanism.mechanisms, tuple(sensitivities), guarantee, noise, self.shares, delta)


def _stretch(make: Callable[[Fraction], Price], total: Fraction, goal: Approx, most: int) -> Price | None:
    """The offer with the largest sum of ε, up to a given multiple of the goal's ε, that still satisfies the goal. It is
    judged by its ρ, which is fast to add.
    """

    @cache
    def kept(power: float) -> Price | None:
        offer = make(total * exactly(2**power))
        rho = getattr(offer.guarantee, "rho", None)
        if rho is None or ZeroConcentrated(rho=rho()).delta_at(epsilon=goal.epsilon) > float(goal.delta):
            return None
        return replace(offer, delta=exactly(goal.delta))

    widest = math.log2(most)
    power = bisect(lambda power: kept(power) is not None, 0.0, widest, absolute=widest / 2**8)
    return kept(power) if power else None


def expected_error(price: Price) -> float:
    """The geometric mean of the errors of all parts: one number to compare two offers."""
    alike = Counter(price.parts)
    return sum(many * math.log(max(float(part.error(0.95)), 1e-300)) for part, many in alike.items())
