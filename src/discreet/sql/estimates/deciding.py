"""Whether earlier answers imply a question within the asked error, and if not, how much of its price is missing.

Promise: only public facts decide: the question, what earlier charges measured, and the laws of their noise. No noisy
number is looked at, and no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.ledger.exact import digest, exact_text
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.sql.estimates.cells import LinearQuestion
from discreet.sql.estimates.law import Floats, Noise, SumLaw, laws_of
from discreet.sql.estimates.least_squares import Prior, Weights
from discreet.sql.estimates.shown import Drawn, Spread
from discreet.sql.estimates.sources import Known, known_about
from discreet.sql.estimates.written import Part, read_linear
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.price import Price
from discreet.sql.running.stored import Mark

CONFIDENCES = (0.95, 0.999)
"""At these confidences, an estimate must be as accurate as the noise that was asked for. Then it is at all above the
first, if that is Laplace noise: decision 0026."""
PARTS = 32
"""What is missing is paid in multiples of this part of ε."""
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
            noises += [self.noise] * len(self.weights.new)
        return laws_of(self._rows, noises)

    @property
    def _rows(self) -> Floats:
        return np.hstack([self.weights.before, *([] if self.noise is None else [self.weights.new])])

    def spread(self, moved: Floats) -> Spread:
        """The errors of the estimates, after rounding moved them so far."""
        drawn = [_drawn(block, len(block.rows), block.noise) for block in self.known.information.blocks]
        if self.noise is not None:
            drawn.append(_drawn(object(), len(self.weights.new), self.noise))
        return Spread(self.laws, moved, self._rows, drawn)

    def is_as_accurate_as(self, asked: Noise) -> bool:
        """Whether every estimate is as accurate as a number with the asked noise."""
        off = 0.0 if self.is_whole else _ROUNDED
        limits = [(confidence, float(asked.error(confidence)) - off) for confidence in CONFIDENCES]
        laws = {id(law): law for law in self.laws}.values()
        if any(law.deviation > _WORTH * asked.deviation for law in laws):
            return False
        return all(law.is_within(amount, confidence) for law in laws for confidence, amount in limits)

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
    price that is. None if nothing is. It is `wider` if a part was paid before, and an answer that counted then is gone.
    """

    question: LinearQuestion
    estimates: tuple[Estimate, ...]
    price: Price | None = None
    part: Part | None = None
    wider: bool = False

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


def whole_price(price: Price) -> str:
    """A digest of what a question would buy."""
    return digest(exact_text((price.mechanism, price.delta)))[:32]


def decide(planner: Planner, plan: Plan, mark: Mark, question: LinearQuestion) -> Decided | None:
    """How earlier answers are used for a plan. None if they save nothing: then it is answered as if there were none."""
    parts, rules = plan.price.parts, planner.answers
    if not all(isinstance(part, Laplace | Gaussian) for part in parts):
        return None
    known = [
        known_about(planner.ledger, question, n, shared=rules.shared, delta=plan.price.delta) for n in range(len(parts))
    ]
    if not all(one.information.blocks for one in known):
        return None
    priors = [one.information.about(one.rows_of(question, n)) for n, one in enumerate(known)]
    started, answered = _started(planner, mark, whole_price(plan.price))
    if started is not None and not answered:  # it was charged, and not drawn: the charge is the same again
        return _with_part(planner, plan, question, known, priors, started.parts, sure=True)
    free = _free(question, known, priors)
    enough = free is not None and _is_enough(free, parts)
    if free is not None and (answered or enough):
        return replace(free, wider=not enough)
    if answered:  # its numbers are known, and would count twice if the same part was found again
        return None
    return _least(planner, plan, question, known, priors)


def _started(planner: Planner, mark: Mark, whole: str) -> tuple[Part | None, bool]:
    """The part of this very price that was charged before by this account, and whether it was answered."""
    for entry in reversed(planner.ledger.marked(mark.groups)):
        said, linear = Mark.read(entry.mark), read_linear(entry.mark)
        if said is None or said.measures != mark.measures or linear is None or entry.state == "discarded":
            continue
        if linear[1] is not None and linear[1].whole == whole:
            return linear[1], entry.state == "answered"
    return None, False


def _free(question: LinearQuestion, known: Sequence[Known], priors: Sequence[Prior]) -> Decided | None:
    """The estimates from earlier answers alone. None if some number does not follow from them."""
    weights = [prior.weights() if prior.is_complete else None for prior in priors]
    found = [Estimate(one, weight, None) for one, weight in zip(known, weights, strict=True) if weight is not None]
    return Decided(question, tuple(found)) if len(found) == len(known) else None


def _is_enough(decided: Decided, asked: Sequence[Noise]) -> bool:
    return all(one.is_as_accurate_as(noise) for one, noise in zip(decided.estimates, asked, strict=True))


def _least(
    planner: Planner, plan: Plan, question: LinearQuestion, known: Sequence[Known], priors: Sequence[Prior]
) -> Decided | None:
    """The least part of the price with which the answer is as accurate as asked. None if it is all of it."""
    if not any(len(prior.known) for prior in priors):
        return None
    for parts in range(_fewest(priors, plan.price.parts), PARTS):
        scaled = [_scaled(noise, PARTS / parts) for noise in plan.price.parts]
        found = _together(question, known, priors, scaled)
        if found is not None and _is_enough(found, plan.price.parts):
            decided = _with_part(planner, plan, question, known, priors, parts, sure=False)
            if decided is not None:
                return decided
    return None


def _fewest(priors: Sequence[Prior], asked: Sequence[Noise]) -> int:
    """So many parts are needed at least: with fewer, a deviation would be too large."""
    for parts in range(1, PARTS):
        limits = [((PARTS / parts * noise.deviation) ** 2, (_WORTH * noise.deviation) ** 2) for noise in asked]
        each = zip(priors, limits, strict=True)
        if all(float(prior.variances(new).max()) <= most for prior, (new, most) in each):
            return parts
    return PARTS


def _with_part(
    planner: Planner,
    plan: Plan,
    question: LinearQuestion,
    known: Sequence[Known],
    priors: Sequence[Prior],
    parts: int,
    *,
    sure: bool,
) -> Decided | None:
    """The answer for a part of the price. None if it is not as accurate as asked, unless it is sure to be bought."""
    price = price_of_part(planner, plan, parts)
    found = _together(question, known, priors, price.parts)
    if found is None or not (sure or _is_enough(found, plan.price.parts)):
        return None
    return replace(found, price=price, part=Part(parts, whole_price(plan.price)))


def price_of_part(planner: Planner, plan: Plan, parts: int) -> Price:
    """The price of a question for a part of its ε."""
    terms = replace(plan.terms, epsilon=exactly(plan.terms.epsilon) * parts / PARTS)
    return planner.priced(plan.question, terms).price


def _together(
    question: LinearQuestion, known: Sequence[Known], priors: Sequence[Prior], noises: Sequence[Noise]
) -> Decided | None:
    """The estimates from earlier answers and a new measurement with these noises."""
    found = []
    for one, prior, noise in zip(known, priors, noises, strict=True):
        weights = prior.weights(noise.deviation**2)
        if weights is None:
            return None
        found.append(Estimate(one, weights, noise))
    return Decided(question, tuple(found))


def _drawn(name: object, many: int, noise: Noise) -> Drawn:
    size = noise.scale if isinstance(noise, Laplace) else noise.stddev
    return Drawn(name, many, float(size), isinstance(noise, Gaussian))


def _scaled(noise: Noise, factor: float) -> Noise:
    """The same kind of noise, larger by a factor: about what a part of ε buys."""
    if isinstance(noise, Laplace):
        return Laplace(scale=float(noise.scale) * factor, step=1)
    return Gaussian(stddev=float(noise.stddev) * factor)
