"""What a question costs and how much noise it gets, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Approx, Guarantee, Pure, ZeroConcentrated, gaussian_delta
from discreet.guarantees.loss import compose
from discreet.guarantees.unit import Unit
from discreet.mechanisms.combine import Composed, PerGroup
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mechanism import meets, tidy
from discreet.mechanisms.quantile_interval import QuantileInterval
from discreet.mechanisms.threshold import KeySelection, SelectedGroups
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Grid
from discreet.rational import check_delta, check_epsilon, check_positive, exactly, significant, sqrt_up
from discreet.sql.cells import Cells
from discreet.sql.compile import Bounds
from discreet.sql.plan import Aggregate, Measure, Question

Noise = Literal["Laplace", "Gaussian"]
LARGE = 50
"""Above this ε hardly any noise is left: it is not composed numerically, which would take long and gain nothing."""


@dataclass(frozen=True)
class Contribution:
    """How far one unit moves a measure over all groups, in steps: in all, squared, and how many groups it touches."""

    l1: int
    squared: int
    groups: int


@dataclass(frozen=True)
class Price:
    """The mechanism of a whole statement, its parts (one for each measure), and what it promises."""

    mechanism: Composed | SelectedGroups
    parts: tuple[Any, ...]
    sensitivities: tuple[Any, ...]
    guarantee: Guarantee
    noise: Noise
    shares: tuple[Fraction, ...]
    delta: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)

    @property
    def cost(self) -> Approx:
        """What is promised, as an ε at the δ that was given; no more than was asked for."""
        if self.delta and self.epsilon > LARGE:
            return Approx(epsilon=tidy(self.epsilon), delta=tidy(self.delta))
        largest = self.guarantee.largest_loss
        if largest is not None and not self.guarantee.infinite and not self.delta:
            return Pure(epsilon=tidy(significant(largest, up=True)))
        found = exactly(self.guarantee.epsilon_at(delta=self.delta))
        return Approx(epsilon=tidy(min(found, self.epsilon) if self.epsilon else found), delta=tidy(self.delta))

    @property
    def selection(self) -> KeySelection | None:
        """How groups are chosen whose keys are not declared."""
        return self.mechanism.selection if isinstance(self.mechanism, SelectedGroups) else None


@dataclass(frozen=True)
class Plan:
    """A question, what it costs and how it will be answered: everything that is decided before data is read."""

    question: Question
    bounds: Bounds | None
    cells: Cells | None
    price: Price
    first: tuple[Any, ...] = ()
    """What is to be found before; errors are told for public defaults until then."""
    found: tuple[str, ...] = ()
    """What was found."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """The ε, δ and weights it was priced with."""
    before: Fraction = Fraction(0)
    """The ε of what is, or was, found before."""

    @property
    def cost(self) -> Approx:
        """What the answer costs, with what is found for it."""
        whole = self.price.cost
        return whole if not self.before else replace(whole, epsilon=tidy(exactly(whole.epsilon) + self.before))


def contribution(measure: Measure, bounds: Bounds | None, unit: Unit) -> Contribution:
    """What one unit adds, for add or remove; twice that, or its square twice, when it is replaced."""
    most = measure.reach**measure.power if measure.kind == "sum" else 1
    if bounds is None:
        l1, squared, groups = most, most**2, 1
    elif measure.kind == "people":
        l1, squared, groups = bounds.groups, bounds.groups, bounds.groups
    else:
        rows = min(bounds.rows, bounds.groups * bounds.per_group)
        full, rest = divmod(rows, bounds.per_group)
        l1, squared, groups = rows * most, (full * bounds.per_group**2 + rest**2) * most**2, bounds.groups
    if unit.neighbors == "add_or_remove":
        return Contribution(l1, squared, groups)
    # one unit's part is taken away and another's put in its place; parts of one sign do not add up in a cell
    one_sign = measure.kind != "sum" and not (bounds is not None and bounds.swapped)
    return Contribution(2 * l1, (2 if one_sign else 4) * squared, 2 * groups)


def shares_of(question: Question, weights: Mapping[str, Any] | None) -> tuple[Fraction, ...]:
    """The part of ε that goes to each measure: equal parts for the aggregates, divided among their measures."""
    given = {name.lower(): check_positive(weight, f"the weight of {name}") for name, weight in (weights or {}).items()}
    named = {output.name.lower(): output for output in question.outputs}
    for name in given:
        if name not in named:
            raise InvalidArgument(f"weights names {name}, which is no column of the answer. Known: {', '.join(named)}.")
    total = [Fraction(0)] * len(question.measures)
    for aggregate in question.aggregates:
        using = [o.name.lower() for o in question.outputs if any(f == aggregate.field for f in o.expr.fields())]
        weight = max((given.get(name, Fraction(1)) for name in using), default=Fraction(1))
        for part in aggregate.parts:
            total[part] += weight * _part_weight(aggregate) / len(aggregate.parts)
    whole = sum(total, Fraction(0))
    return tuple(share / whole for share in total)


def _part_weight(aggregate: Aggregate) -> Fraction:
    return aggregate.weight


def priced(
    question: Question,
    unit: Unit,
    bounds: Bounds | None,
    cells: int,
    *,
    epsilon: Any,
    delta: Any = 0,
    weights: Mapping[str, Any] | None = None,
) -> Price:
    """The least noise, Laplace or Gaussian, that keeps (ε,δ) for the whole statement.

    Where keys are not declared, choosing the groups costs as much as one more aggregate, and a half of δ or all of it.
    """
    total, slack = check_epsilon(epsilon), check_delta(delta)
    shares = shares_of(question, weights)
    if all(key.domain is not None for key in question.keys):
        return replace(_least(question, unit, bounds, cells, total, slack, shares), epsilon=total)
    if not slack:
        raise InvalidArgument(
            "Groups whose keys are not declared need a delta: give delta=1e-8, or delta_per_question in the policy."
        )
    left = total * Fraction(len(question.aggregates), len(question.aggregates) + 1)
    offer = _least(question, unit, bounds, cells, left, slack / 2, shares)
    groups = 1 if bounds is None else bounds.groups
    goal = _added_or_removed(total - left, slack - offer.delta, unit)
    chosen = KeySelection.for_guarantee(goal, keys_per_person=groups)
    mechanism = SelectedGroups(selection=chosen, answers=offer.mechanism)
    guarantee = compose([chosen.guarantee().stated_for(unit), offer.guarantee])
    return replace(offer, mechanism=mechanism, guarantee=guarantee, delta=slack, epsilon=total)


def _added_or_removed(epsilon: Fraction, delta: Fraction, unit: Unit) -> Approx:
    """What must hold for one added or removed unit: a replaced one is both, one after the other."""
    if unit.neighbors == "add_or_remove":
        return Approx(epsilon=epsilon, delta=delta)
    half = epsilon / 2
    return Approx(epsilon=half, delta=delta / (1 + exactly(math.exp(half)) * (1 + Fraction(1, 10**9))))


def _least(
    question: Question,
    unit: Unit,
    bounds: Bounds | None,
    cells: int,
    total: Fraction,
    slack: Fraction,
    shares: tuple[Fraction, ...],
) -> Price:
    """The better of the two kinds of noise, by public facts."""
    offers = [_with_laplace(question, unit, bounds, cells, total, shares)]
    if total > LARGE:
        return offers[0]
    chosen = any(measure.kind == "quantile" for measure in question.measures)
    if slack and any(measure.kind != "quantile" for measure in question.measures):
        gaussian = _with_gaussian(offers[0], question, unit, bounds, cells, total, slack)
        offers += [] if gaussian is None else [gaussian]
    if slack and chosen and bounds is not None and bounds.groups > 1:
        # choices in several groups compose to less than the sum of their ε
        def laplace(factor: Fraction) -> Price:
            return _with_laplace(question, unit, bounds, cells, total * factor, shares)

        def gaussian_too(factor: Fraction) -> Price:
            return _gaussian_offer(laplace(factor), question, unit, bounds, cells, total * factor, slack)

        goal, makes = Approx(epsilon=total, delta=slack), [laplace, gaussian_too][: len(offers)]
        offers += [offer for make in makes if (offer := _stretched(make, goal, bounds.groups)) is not None]
    return min(offers, key=_expected_error)


def _stretched(make: Callable[[Fraction], Price], goal: Approx, most: int) -> Price | None:
    """The offer with the largest sum of ε, up to so many times the goal's, that still keeps the goal: by its ρ, which
    is quick to add up.
    """
    best: Price | None = None
    low, high = 0.0, math.log2(most)
    for _ in range(8):
        middle = (low + high) / 2
        offer = make(exactly(2**middle))
        rho = getattr(offer.guarantee, "rho", None)
        if rho is not None and ZeroConcentrated(rho=rho()).delta_at(epsilon=goal.epsilon) <= float(goal.delta):
            best, low = replace(offer, delta=exactly(goal.delta)), middle
        else:
            high = middle
    return best


def _expected_error(price: Price) -> float:
    """The geometric mean of the errors of all parts: one number to compare two offers by."""
    return sum(math.log(max(float(part.error(0.95)), 1e-300)) for part in price.parts)


def _with_laplace(
    question: Question, unit: Unit, bounds: Bounds | None, cells: int, total: Fraction, shares: tuple[Fraction, ...]
) -> Price:
    parts: list[Any] = []
    sensitivities: list[Any] = []
    for measure, share in zip(question.measures, shares, strict=True):
        moved = contribution(measure, bounds, unit)
        if measure.kind == "quantile":
            together = sum(other.kind == "quantile" for other in question.measures)
            part, sensitivity = _quantile(measure, moved, bounds, unit, total * share, together)
            parts.append(part)
            sensitivities.append(sensitivity)
            continue
        scale = significant(moved.l1 / (total * share), up=True)
        parts.append(Laplace(scale=tidy(scale), step=1))
        sensitivities.append(Sensitivity(moved.l1, "L1", unit, cells, grain=1))
    mechanism = Composed(mechanisms=tuple(parts))
    guarantee = mechanism.guarantee(sensitivities)
    return Price(mechanism, mechanism.mechanisms, tuple(sensitivities), guarantee, "Laplace", shares)


def _quantile(
    measure: Measure, moved: Contribution, bounds: Bounds | None, unit: Unit, epsilon: Fraction, together: int
) -> tuple[PerGroup, Sensitivity]:
    """A quantile in each group, its interval so wide that those of all quantiles of a row hold together."""
    grid = Grid(measure.lowest, measure.highest, 1, missing=None)
    rows = 1 if bounds is None else bounds.per_group
    each = Pure(epsilon=epsilon / moved.groups)
    chooser = QuantileInterval.for_guarantee(
        each,
        space=grid,
        quantile=measure.quantile,
        unit=unit,
        rows_per_person=rows,
        confidence=1 - 0.05 / together,
    )
    return PerGroup(mechanism=chooser, groups=moved.groups), chooser.sensitivity(unit, rows)


def _with_gaussian(
    plain: Price,
    question: Question,
    unit: Unit,
    bounds: Bounds | None,
    cells: int,
    total: Fraction,
    slack: Fraction,
) -> Price | None:
    """Gaussian noise that keeps (ε,δ)."""
    for attempt in range(40):
        lowered = 1 - 1e-9 * 4**attempt if attempt < 12 else 0.5 ** (attempt - 11)
        offer = _gaussian_offer(plain, question, unit, bounds, cells, total, slack, lowered)
        if meets(offer.guarantee, Approx(epsilon=total, delta=slack)):
            return offer
    return None


def _gaussian_offer(
    plain: Price,
    question: Question,
    unit: Unit,
    bounds: Bounds | None,
    cells: int,
    total: Fraction,
    slack: Fraction,
    lowered: float = 1.0,
) -> Price:
    """Gaussian noise for everything that is added to; a chosen value has none, and keeps its part of ε."""
    added = [n for n, measure in enumerate(question.measures) if measure.kind != "quantile"]
    whole = sum((plain.shares[n] for n in added), Fraction(0))
    mu = _largest_mu(float(total * whole), float(slack)) * lowered
    parts, sensitivities = list(plain.parts), list(plain.sensitivities)
    for n in added:
        reach = sqrt_up(Fraction(contribution(question.measures[n], bounds, unit).squared))
        deviation = significant(reach / exactly(mu * math.sqrt(plain.shares[n] / whole)), up=True)
        sensitivities[n] = Sensitivity(reach, "L2", unit, cells)
        parts[n] = Gaussian(stddev=tidy(deviation))
    mechanism = Composed(mechanisms=tuple(parts))
    guarantee = mechanism.guarantee(sensitivities)
    return Price(mechanism, mechanism.mechanisms, tuple(sensitivities), guarantee, "Gaussian", plain.shares, slack)


def _largest_mu(epsilon: float, delta: float) -> float:
    """The largest Gaussian trade-off that keeps (ε,δ)."""
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) <= delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


__all__ = ["Contribution", "Plan", "Price", "contribution", "priced", "shares_of"]
