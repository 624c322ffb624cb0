"""Whether earlier answers imply a question within the asked error, and if not, how much of its price is missing.

Promise: only public facts decide: the question, what earlier charges measured, and the laws of their noise. No noisy
number is looked at, and no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.ledger.texts.exact import digest, exact_text
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.sql.estimates.cells import LinearQuestion
from discreet.sql.estimates.law import Floats, Noise, SumLaw, laws_of
from discreet.sql.estimates.least_squares import Prior, Weights
from discreet.sql.estimates.missing import PARTS, plan_of_part, scaled
from discreet.sql.estimates.shown import Drawn, EstimatedMeasure
from discreet.sql.estimates.sources import Known, known_about
from discreet.sql.estimates.written import Part, read_linear
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.price import Price
from discreet.sql.running.stored import Mark

CONFIDENCES = (0.95, 0.999)
"""At these confidences, an estimate must be as accurate as the noise that was asked for. Then it is at all above the
first, if that is Laplace noise: decision 0026."""
_ROUNDED = 0.5
"""Estimates are shown in whole steps, unless they are sums and differences of numbers as they were released."""
_WORTH = 1.1
"""An estimate with a larger deviation, next to that of the asked noise, is as accurate at no confidence above 90%."""
_USED = 1e-9
"""A source with a smaller weight adds nothing that is seen."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimates of one measure in all groups: the weights of earlier numbers, and of those that are measured now
    with `noise`.
    """

    known: Known
    weights: Weights
    noise: Noise | None

    @cached_property
    def laws(self) -> list[SumLaw]:
        """The law of the error in each group. Groups with the same weights have the same one."""
        blocks = self.known.information.blocks
        noises = [block.noise for block in blocks for _ in block.rows]
        if self.noise is not None:
            noises += [self.noise] * self.weights.new.shape[1]
        return laws_of(self._rows, noises)

    def shown(self, moved: Floats, name: int) -> EstimatedMeasure:
        """What is said of its errors. `name` tells the numbers that are measured now from those of other measures."""
        drawn = [Drawn((one.number, one.place), len(one.rows), one.noise) for one in self.known.information.blocks]
        if self.noise is not None:
            drawn.append(Drawn(("new", name), self.weights.new.shape[1], self.noise))
        return EstimatedMeasure(self.laws, moved, self._rows, drawn)

    @property
    def _rows(self) -> Floats:
        return np.hstack([self.weights.before, *([] if self.noise is None else [self.weights.new])])

    def is_as_accurate_as(self, asked: Noise) -> bool:
        """Whether every estimate is as accurate as a number with the asked noise."""
        off = 0.0 if self.is_whole else _ROUNDED
        limits = [(confidence, float(asked.error(confidence)) - off) for confidence in CONFIDENCES]
        laws = sorted({id(law): law for law in self.laws}.values(), key=lambda law: -law.deviation)
        if any(law.deviation > _WORTH * asked.deviation for law in laws[:1]):
            return False
        return all(law.is_within(amount, confidence) for law in laws for confidence, amount in limits)

    def is_worst_as_accurate_as(self, asked: Noise) -> bool:
        """The same for the group with the largest deviation only: if it is not, the others need not be looked at."""
        spreads = np.sqrt(self.known.information.variances)
        if self.noise is not None:
            spreads = np.append(spreads, np.full(self.weights.new.shape[1], self.noise.deviation))
        worst = int(np.argmax(((self._rows * spreads) ** 2).sum(axis=1)))
        new = self.weights.new[worst : worst + 1]
        return replace(self, weights=Weights(self.weights.before[worst : worst + 1], new)).is_as_accurate_as(asked)

    @cached_property
    def is_whole(self) -> bool:
        """Whether every weight is a whole number, so that nothing is rounded."""
        return float(np.abs(self._rows - np.rint(self._rows)).max(initial=0.0)) < _USED

    def values(self, new: Floats | None) -> Floats:
        """The estimates, from earlier numbers and new ones."""
        found = self.weights.before @ self.known.information.values
        return np.asarray(found if new is None else found + self.weights.new @ new)

    @property
    def used(self) -> set[int]:
        """The entries whose numbers have a weight in some group."""
        found, first = set[int](), 0
        sizes = np.abs(self.weights.before)
        for block in self.known.information.blocks:
            if float(sizes[:, first : first + len(block.rows)].max(initial=0.0)) > _USED:
                found.add(block.number)
            first += len(block.rows)
        return found


@dataclass(frozen=True, eq=False)
class Decided:
    """How a question is answered from earlier answers. `price` is what is missing, and `part` how much of the asked
    price that is. None if nothing is. `now` is the plan of what is missing, and `measured` are its measures among those
    of the question.
    """

    question: LinearQuestion
    estimates: tuple[Estimate, ...]
    price: Price | None = None
    part: Part | None = None
    now: Plan | None = None
    measured: tuple[int, ...] = ()

    def new(self, measure: int, value: Any) -> Floats | None:
        """The numbers of a measure in what was measured now. None if it was not."""
        if measure not in self.measured:
            return None
        return np.asarray(value[self.measured.index(measure)], dtype=np.float64)

    @cached_property
    def sources(self) -> dict[int, tuple[str, Guarantee]]:
        """The receipts and guarantees of the earlier answers that are used, by the numbers of their entries."""
        found = {}
        for estimate in self.estimates:
            for number in estimate.used:
                source = estimate.known.sources[number]
                found[number] = source.receipt, source.guarantee
        return dict(sorted(found.items()))

    @property
    def receipts(self) -> tuple[str, ...]:
        """The receipts of the earlier answers that are used."""
        return tuple(receipt for receipt, _ in self.sources.values())

    @property
    def not_private(self) -> bool:
        """Whether a number that is used was made in test mode."""
        return any(e.known.sources[number].not_private for e in self.estimates for number in e.used)

    @property
    def guarantee(self) -> Guarantee:
        """What the earlier answers cost together, when they were bought."""
        costs = [guarantee for _, guarantee in self.sources.values()]
        losses = [None if cost.infinite else cost.largest_loss for cost in costs]
        if any(loss is None for loss in losses):
            return compose(costs)
        whole = tidy(sum((loss for loss in losses if loss is not None), exactly(0)))
        return replace(Pure(epsilon=whole), protects=costs[0].protects)


def whole_price(price: Price, mark: Mark) -> str:
    """A digest of what a question would buy."""
    return digest(exact_text((mark.measures, price.mechanism, price.delta)))[:32]


def decide(planner: Planner, plan: Plan, mark: Mark, question: LinearQuestion) -> Decided | None:
    """How earlier answers are used for a plan. None if they save nothing: then it is answered as if there were none."""
    if not all(isinstance(part, Laplace | Gaussian) for part in plan.price.parts):
        return None
    whole = whole_price(plan.price, mark)
    started = _started(planner, mark, whole)
    before = None if started is None else started.number
    known = [
        known_about(planner.ledger, question, n, shared=planner.answers.shared, delta=plan.price.delta, before=before)
        for n in range(len(plan.price.parts))
    ]
    if not any(one.information.blocks for one in known):
        return None
    priors = tuple(one.information.about(one.rows_of(question, n)) for n, one in enumerate(known))
    deciding = _Deciding(planner, plan, question, tuple(known), priors, whole)
    if started is not None:  # the charge is the same again, and so is the answer
        return deciding.with_part(started.measured, started.parts, sure=True)
    return deciding.least()


@dataclass(frozen=True)
class _Started:
    """What was charged before for the missing part of a price, answered or not."""

    number: int
    parts: int
    measured: tuple[int, ...]


def _started(planner: Planner, mark: Mark, whole: str) -> _Started | None:
    """The part of this very price that was charged before by this account."""
    for entry in reversed(planner.ledger.marked(mark.groups)):
        said, linear = Mark.read(entry.mark), read_linear(entry.mark)
        if said is None or linear is None or linear[1] is None or entry.state == "discarded":
            continue
        if linear[1].whole == whole and set(said.measures) <= set(mark.measures):
            return _Started(entry.number, linear[1].parts, tuple(map(mark.measures.index, said.measures)))
    return None


@dataclass(frozen=True, eq=False)
class _Deciding:
    """What is known about each measure of a question, and what follows from it."""

    planner: Planner
    plan: Plan
    question: LinearQuestion
    known: tuple[Known, ...]
    priors: tuple[Prior, ...]
    whole: str

    @property
    def asked(self) -> tuple[Noise, ...]:
        """The noise that the question would buy."""
        return self.plan.price.parts

    @cached_property
    def free(self) -> dict[int, Estimate]:
        """The measures that follow from earlier answers, as accurately as asked."""
        found = {}
        for n, estimate in self.alone.items():
            if estimate.is_as_accurate_as(self.asked[n]):
                found[n] = estimate
        return found

    @cached_property
    def alone(self) -> dict[int, Estimate]:
        """The measures that follow from earlier answers."""
        weights = {n: prior.weights() for n, prior in enumerate(self.priors) if prior.is_complete}
        return {n: Estimate(self.known[n], one, None) for n, one in weights.items() if one is not None}

    def least(self) -> Decided | None:
        """The least that must be paid for an answer that is as accurate as asked: nothing, or a part of the price for
        those measures that do not follow. None if it is all of it.
        """
        missing = tuple(n for n in range(len(self.priors)) if n not in self.free)
        if not missing:
            return Decided(self.question, tuple(self.free[n] for n in range(len(self.priors))))
        helps = all(len(self.priors[n].known) for n in missing)
        most = PARTS if len(missing) < len(self.priors) else PARTS - 1
        for parts in range(self._fewest(missing) if helps else PARTS, most + 1):
            noises = {n: scaled(self.asked[n], PARTS / parts) for n in missing}
            found = {n: self._together(n, noise) for n, noise in noises.items()}
            if any(one is None or not one.is_worst_as_accurate_as(self.asked[n]) for n, one in found.items()):
                continue
            decided = self.with_part(missing, parts, sure=False)
            if decided is not None:
                return decided
        return None

    def _fewest(self, missing: Sequence[int]) -> int:
        """So many parts are needed at least: with fewer, a deviation would be too large."""
        for parts in range(1, PARTS):
            for n in missing:
                own = self.asked[n].deviation
                if float(self.priors[n].variances((PARTS / parts * own) ** 2).max()) > (_WORTH * own) ** 2:
                    break
            else:
                return parts
        return PARTS

    def _together(self, measure: int, noise: Noise) -> Estimate | None:
        """The estimate from earlier answers and a new measurement with this noise."""
        weights = self.priors[measure].weights(noise.deviation**2)
        return None if weights is None else Estimate(self.known[measure], weights, noise)

    def with_part(self, missing: tuple[int, ...], parts: int, *, sure: bool) -> Decided | None:
        """The answer for a part of the price of the missing measures. None if it is not as accurate as asked, unless it
        is sure to be bought.
        """
        now = plan_of_part(self.planner, self.plan, missing, parts)
        estimates = list[Estimate]()
        for n in range(len(self.priors)):
            own = self._together(n, now.price.parts[missing.index(n)]) if n in missing else self.alone.get(n)
            if own is None or not (sure or n in self.free or own.is_as_accurate_as(self.asked[n])):
                return None
            estimates.append(own)
        return Decided(self.question, tuple(estimates), now.price, Part(parts, self.whole), now, missing)
