"""Running totals over blocks of time: one measurement of the whole horizon, of which one step is drawn for each block.

At each step the exact numbers of all blocks so far are read again, each within the bounds of one unit in one block.
What leaves is one row of the measurement. Totals and single blocks are arithmetic on all rows that have left, so the
difference of two totals is the sum of the blocks between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet.datasets.horizon import Horizon
from discreet.datasets.standing_price import check_turns
from discreet.door import again, through
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import exactly, sqrt_up
from discreet.guarantees.rules.best_of import Rule
from discreet.guarantees.rules.once import Once
from discreet.guarantees.unit import Unit
from discreet.ledger import Identity
from discreet.ledger.prepaid import Paid, Prepaid
from discreet.ledger.texts.exact import digest, exact_text
from discreet.mechanisms.counts.sums_over_time import SumsOverTime
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.queries.sensitivity import Sensitivity
from discreet.sql.measuring.measure import read_measures
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.price import Price, contribution
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import as_written
from discreet.sql.running.intervals import Columns
from discreet.sql.running.notes import notes_on

KEY = "answer"
"""The key of the answer of a step, besides what is found for it."""
_ROUNDING = 0.25
"""Sums are rounded to whole steps. This is more than the variance of the rounding of a difference."""


class HasSteps(Protocol):
    """Finds what the steps of a horizon released."""

    def ledger(self, block: str, *, asks: bool) -> Prepaid:
        """The account of a step."""


@dataclass(frozen=True)
class TotalsPlan:
    """How running totals are measured: the plan of one block, and the noise of all steps."""

    plan: Plan
    sums: SumsOverTime
    sensitivity: tuple[Sensitivity, ...]
    horizon: Horizon

    @property
    def rule(self) -> Rule:
        """Each step is drawn once. All of them together are one release."""
        unit = self.plan.price.guarantee.protects
        return Once(limit=self.sums.guarantee(self.sensitivity).stated_for(unit))

    @property
    def stddevs(self) -> tuple[Fraction, ...]:
        """The noise of each number, exactly."""
        return tuple(exactly(one) for one in self.sums.stddevs)

    @property
    def steps(self) -> int:
        """In how many steps one unit may be."""
        return self.sums.steps

    @property
    def facts(self) -> str:
        """A digest of what decides how steps are measured. The noise is recorded by itself."""
        return digest(exact_text((self.plan.question.meaning, self.plan.bounds, self.steps)))

    def price(self, deviations: Sequence[float]) -> Price:
        """The price of one answer whose numbers have noise of these deviations."""
        parts = tuple(Gaussian(stddev=math.sqrt(one**2 + _ROUNDING)) for one in deviations)
        limit = self.horizon.limit
        amounts: dict[str, Any] = {"delta": exactly(limit.delta), "epsilon": exactly(limit.epsilon)}
        return replace(self.plan.price, parts=parts, noise="Gaussian", **amounts)

    def deviations(self, place: int, *, single: bool) -> list[float]:
        """The deviation of each number: of one block, or of the total up to it."""
        return self.sums.deviations(place, single=single)

    def shown(self) -> Plan:
        """The plan of one block with the noise that a block has."""
        middle = (self.horizon.times - 1) // 2
        return replace(self.plan, price=self.price(self.deviations(middle, single=True)))

    @property
    def said(self) -> str:
        """How far totals may be off, in words."""
        last, name = self.horizon.times - 1, self.plan.question.aggregates[0].name
        measure = self.plan.question.measures[self.plan.question.aggregates[0].parts[0]]
        step = float(measure.step) if measure.kind == "sum" else 1.0
        one, every = (1.96 * step * self.deviations(place, single=False)[0] for place in (0, last))
        return f"{name} is within {one:,.4g} after one block and {every:,.4g} after {last + 1:,} (95%)"


def steps_of_unit(unit: Unit, horizon: Horizon) -> int:
    """In how many steps one unit may be. A unit that is replaced leaves as many and enters as many."""
    one = 1 if unit.per is not None or unit.column is None else horizon.blocks_per_person or horizon.times
    return min(horizon.times, 2 * one if unit.neighbors == "replace" else one)


def plan_totals(planner: Planner, horizon: Horizon, recorded: Mapping[str, Any] | None = None) -> TotalsPlan:
    """How running totals would be measured, or with what is `recorded` how they are. Reads nothing, spends nothing."""
    unit = planner.schema.unit
    if not horizon.delta:
        raise InvalidArgument(
            "Running totals have Gaussian noise, which needs a δ. Give delta=, or delta_per_question in the policy.",
            code="needs-delta",
        )
    alone = replace(planner, schema=horizon.schema(planner.schema, horizon.blocks[0]), ledger=None)  # type: ignore[arg-type]
    plan = alone.plan(
        horizon.question,
        epsilon=horizon.epsilon,
        delta=horizon.delta,
        weights=horizon.weights or None,
        bounds=horizon.bounds,
    )
    _check(plan, horizon)
    assert plan.groups is not None
    bounds = [
        Sensitivity(sqrt_up(Fraction(contribution(measure, plan.bounds, unit).squared)), "L2", unit, plan.groups.count)
        for measure in plan.question.measures
    ]
    steps = steps_of_unit(unit, horizon)
    known: dict[str, Any] = {"points": horizon.times, "steps": steps, "normalized": unit.neighbors == "add_or_remove"}
    if recorded is not None:
        stddevs = tuple(Fraction(one) for one in recorded["stddevs"])
        sums = SumsOverTime(stddevs=stddevs, factored=recorded["factored"] is True, **known)
    else:
        offers = [
            SumsOverTime.for_guarantee(
                horizon.limit, sensitivity=bounds, shares=plan.price.shares, factored=factored, **known
            )
            for factored in (True, False)
        ]
        sums = min(offers, key=lambda offer: offer.mean_square)
    return TotalsPlan(plan, sums, tuple(bounds), horizon)


def _check(plan: Plan, horizon: Horizon) -> None:
    """Refuse what has no running totals. Only declarations decide."""
    check_turns(plan, horizon)
    if any(key.domain is None for key in plan.question.keys):
        raise NotAllowed(
            "Running totals need declared keys (choices or between): a total would begin at a block that depends on "
            "people. Declare them, or leave out totals=True.",
            code="standing-totals",
        )
    if plan.automatic or plan.clipping is not None:
        raise NotAllowed(
            "Running totals need declared bounds: rows_per_person, and between for summed columns. Declare them, or "
            "leave out totals=True.",
            code="standing-totals",
        )
    if plan.question.levels or any(measure.kind not in ("count", "sum") for measure in plan.question.measures):
        raise NotAllowed(
            "Running totals are of counts and sums, and of what is computed from them (AVG, VARIANCE), at one level. "
            "Ask for those, or leave out totals=True.",
            code="standing-totals",
        )
    late = {table.time.late for table in plan.relation.tables(owners=True) if table.time is not None}
    if horizon.blocks_per_person is not None and None in late:
        raise NotAllowed(
            "Which blocks of a person count must not change with late rows, because a total reads all blocks again. "
            'Add arrived = "loaded_at" and late = "drop" or "next" to the time of the table, or leave out '
            "blocks_per_person.",
            code="standing-totals",
        )


class RunningTotals:
    """Draws the steps of running totals, and adds up what they released."""

    def __init__(self, planner: Planner, planned: TotalsPlan, paid: Paid) -> None:
        self.planner, self.planned, self.paid, self.horizon = planner, planned, paid, planned.horizon
        self._exact: dict[str, list[Any]] = {}
        self._released: dict[str, Any] = {}

    @classmethod
    def again(cls, planner: Planner, horizon: Horizon, paid: Paid) -> RunningTotals:
        """The totals of a horizon that was paid before, with the noise that was recorded."""
        return cls(planner, plan_totals(planner, horizon, paid.definition), paid)

    def forget(self) -> None:
        """Drop what was read of the data."""
        self._exact.clear()

    def has(self, block: str, steps: HasSteps) -> bool:
        """Whether a step was released."""
        if block not in self._released:
            found = Prepaid.find(self.planner.ledger, self.paid, block, KEY)
            if found is not None:
                self._released[block] = steps.ledger(block, asks=False).answer(found)[0]
        return block in self._released

    def release(self, block: str, ledger: Prepaid) -> None:
        """Draw one step: charge nothing new, read all blocks so far, draw, store."""
        place = self.horizon.in_order(block)
        blocks = self.horizon.blocks[: place + 1]
        identity = Identity(question=self.planned.facts, data_version=ledger.analyst or "")
        limit = self.paid.steps.each.limit
        release = through(
            lambda: self._read(blocks),
            self.planned.sums.step(place),
            limit,
            ledger=ledger,
            asked=f"{block} of {self.horizon.question}",
            key=KEY,
            identity=identity,
        )
        self._released[block] = release.value

    def _read(self, blocks: Sequence[str]) -> list[Any]:
        """The exact numbers of the blocks so far, an array of blocks by groups for each measure. Of blocks that are
        measured one by one, only the last is needed.
        """
        if not self.planned.sums.factored:
            last = self._read_one(blocks[-1])
            return [np.stack([*(np.zeros_like(one) for _ in blocks[:-1]), np.asarray(one)]) for one in last]
        for block in blocks:
            if block not in self._exact:
                self._exact[block] = self._read_one(block)
        measures = range(len(self.planned.plan.question.measures))
        return [np.stack([np.asarray(self._exact[block][place]) for block in blocks]) for place in measures]

    def _read_one(self, block: str) -> list[Any]:
        own = replace(self.planner, schema=self.horizon.schema(self.planner.schema, block), ledger=None)  # type: ignore[arg-type]
        question = own.read(self.horizon.question, own.schema)
        plan = self.planned.plan
        assert plan.groups is not None
        return read_measures(question, own.engine, plan.enforced, plan.groups)

    def answer(self, block: str, steps: HasSteps, *, single: bool) -> Answer:
        """The answer for one block, or the total up to it."""
        place, planned = self.horizon.in_order(block), self.planned
        blocks = self.horizon.blocks[: place + 1]
        assert all(self.has(one, steps) for one in blocks)
        numbers = planned.sums.sums([self._released[one] for one in blocks])
        if single and place:
            before = planned.sums.sums([self._released[one] for one in blocks[:-1]])
            numbers = [total - earlier for total, earlier in zip(numbers, before, strict=True)]
        question, groups = planned.plan.question, planned.plan.groups
        assert groups is not None
        price = planned.price(planned.deviations(place, single=single))
        columns = Columns(question, price, *as_written(question, numbers, groups.keys()))
        ledger = steps.ledger(block, asks=False)
        found = Prepaid.find(self.planner.ledger, self.paid, block, KEY)
        assert found is not None
        release = again(found, planned.sums.step(place), ledger=ledger)
        said = [note for note in notes_on(planned.plan) if not note.startswith("Only rows in ")]
        paid = f"Paid in advance with receipt {self.paid.entry.receipt}."
        notes = (*said, _said(self.horizon, block, single=single), paid)
        return Answer(question, columns, release, notes=notes, cost=self.horizon.limit)


def _said(horizon: Horizon, block: str, *, single: bool) -> str:
    what = f"{block} alone" if single else f"All blocks from {horizon.blocks[0]} to {block}"
    return f"{what}, from running totals: blocks add up to totals."
