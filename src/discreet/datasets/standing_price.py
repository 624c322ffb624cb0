"""What a standing question costs: what each of its answers may cost, so that all of them together keep one limit.

A unit that lives in one block is in one answer. A person may be in all of them, or in as many as the engine counts. The
noise of each answer is then such that so many of them compose to the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.datasets.horizon import Horizon
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import exactly, significant
from discreet.exact.search import bisect, geometric
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.rules.best_of import Basic, Rule
from discreet.guarantees.rules.once import Once
from discreet.guarantees.unit import Unit, check_one_row
from discreet.ledger import Ledger, cost_of
from discreet.ledger.steps import Steps
from discreet.mechanisms.protocol import meets, tidy
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.choice_of_noise import expected_error
from discreet.sql.pricing.key_choice import has_open_keys
from discreet.sql.schema import Schema

_CLOSE = 1e-3
"""How far the ε of one answer may be from the largest that fits."""


@dataclass(frozen=True)
class StepPrice:
    """What one answer may cost, the rule that keeps it, and its plan for the first block."""

    epsilon: Fraction
    delta: Fraction
    rule: Rule
    plan: Plan


def check_blocks(schema: Schema, horizon: Horizon) -> None:
    """Refuse a horizon that the tables and the unit cannot have. Only declarations decide."""
    unit = schema.unit
    check_one_row(unit, "A standing question")
    if unit.lives_in is not None:
        raise InvalidArgument(
            "The unit is a person who lives in one part of the people, and a standing question is about blocks of "
            'time. Protect a person (per="month", or neither).',
            code="standing-blocks",
        )
    if schema.block != horizon.every:
        known = f'every="{schema.block}"' if schema.block else '[tables.visits.time] with block = "month"'
        raise InvalidArgument(
            f"The tables are not divided into blocks of one {horizon.every}. Write {known}.", code="standing-blocks"
        )
    if schema.parts is not None:
        raise InvalidArgument(
            "A standing question is about all blocks of its horizon. Ask it of the whole database.", code="part-of-part"
        )
    if horizon.blocks_per_person is not None and (unit.per is not None or unit.column is None):
        raise InvalidArgument(
            f"A unit is {'one row' if unit.column is None else f'one person in one {unit.per}'}, which is in one block "
            "anyway. Leave out blocks_per_person.",
            code="standing-turns",
        )


def units_in(unit: Unit, horizon: Horizon) -> int:
    """In how many answers of the horizon one unit may be.

    Promise: a row, and what one person has in one block, is in one block; a person in all, or in as many as the engine
    counts. A unit that is replaced leaves as many and enters as many. (A ledger with parts adds up two parts itself.)
    """
    if unit.per is not None:
        return 1
    one = 1 if unit.column is None else horizon.blocks_per_person or horizon.times
    return min(horizon.times, 2 * one if unit.neighbors == "replace" else one)


def check_turns(plan: Plan, horizon: Horizon) -> None:
    """Refuse to count the blocks of a person where several tables have different ones."""
    timed = {table.name for table in plan.relation.tables(owners=True) if table.time is not None}
    if horizon.blocks_per_person is not None and len(timed) > 1:
        raise NotAllowed(
            "The question reads several tables, and the blocks of a person may differ between them. Ask about one of "
            "them, or leave out blocks_per_person.",
            code="standing-turns",
        )


def price_step(planner: Planner, horizon: Horizon) -> StepPrice:
    """What one answer may cost: as much as fits, so that those in which one unit is compose to the limit."""
    unit = planner.schema.unit
    alone = replace(planner, schema=horizon.schema(planner.schema, horizon.blocks[0]), ledger=None)  # type: ignore[arg-type]
    units, goal = units_in(unit, horizon), horizon.limit
    asked = alone.read(horizon.question, alone.schema)

    def offer(epsilon: Fraction, delta: Fraction) -> StepPrice:
        plan = alone.plan(asked, epsilon=epsilon, delta=delta, weights=horizon.weights or None, bounds=horizon.bounds)
        check_turns(plan, horizon)
        if plan.question.levels and has_open_keys(plan.question):
            raise NotAllowed(
                "A standing question with several levels needs declared keys: groups that are shown once are shown "
                "from then on. Declare them (choices or between), or ask for one level.",
                code="standing-levels",
            )
        return StepPrice(epsilon, delta, _rule(plan, epsilon, delta, unit), plan)

    if units == 1:
        return offer(horizon.epsilon, horizon.delta)
    least = significant(horizon.epsilon / units, up=False)
    if not horizon.delta:
        return offer(least, Fraction(0))
    share = significant(horizon.delta / (2 * units), up=False)
    first = offer(least, share)
    ways: list[Callable[[Fraction], Fraction]] = [lambda epsilon: share]
    if not has_open_keys(first.plan.question) and not first.plan.automatic:
        # here δ only chooses the noise, and what it costs is composed exactly
        ways += [lambda epsilon: Fraction(0), _delta_of_gaussian]
    found = [_largest(offer, way, least, units, goal) for way in ways]
    return min(found, key=lambda price: expected_error(price.plan.price))


def _delta_of_gaussian(epsilon: Fraction) -> Fraction:
    """A δ at which Gaussian noise with μ = ε keeps this ε. There it is smaller than Laplace noise."""
    kept = Fraction(GaussianTradeoff(mu=epsilon).delta_at(epsilon=epsilon))
    return significant(min(kept, Fraction(9, 10)), up=False)


def _rule(plan: Plan, epsilon: Fraction, delta: Fraction, unit: Unit) -> Rule:
    """The rule of a step: one release of known cost, or if bounds are found first, several with one sum."""
    if not plan.automatic:
        return Once(limit=plan.price.guarantee.stated_for(unit))
    limit = Approx(epsilon=tidy(epsilon), delta=tidy(delta)) if delta else Pure(epsilon=tidy(epsilon))
    return Basic(limit=limit).fixed()


def _largest(
    offer: Callable[[Fraction, Fraction], StepPrice],
    delta_of: Callable[[Fraction], Fraction],
    least: Fraction,
    units: int,
    goal: Approx,
) -> StepPrice:
    """The offer with the largest ε, about, of which so many compose to the goal."""
    known: dict[Fraction, StepPrice] = {}

    def fits(epsilon: Fraction) -> bool:
        known[epsilon] = offer(epsilon, delta_of(epsilon))
        return meets(compose([known[epsilon].rule.limit] * units), goal)

    inside = least
    while not fits(inside):
        inside /= 2
    outside = inside
    while outside < exactly(goal.epsilon):
        outside = min(2 * outside, exactly(goal.epsilon))
        if not fits(outside):
            break
        inside = outside
    return known[bisect(fits, inside, outside, relative=_CLOSE, middle=geometric) if inside < outside else inside]


def with_cost(plan: Plan, horizon: Horizon) -> Plan:
    """The plan of one answer, whose cost is stated at the δ of the horizon."""
    if not plan.price.delta or plan.automatic:
        return plan
    return replace(plan, price=replace(plan.price, delta=horizon.delta, epsilon=Fraction(0)))


def steps_of(schema: Schema, horizon: Horizon, rule: Rule, *, joint: bool = False) -> Steps:
    """What one charge pays for."""
    return Steps(names=horizon.blocks, each=rule, units=1 if joint else units_in(schema.unit, horizon), joint=joint)


def charge_of(ledger: Ledger, steps: Steps, horizon: Horizon) -> Guarantee:
    """What the whole horizon is charged."""
    total = steps.total(ledger.protects)
    return cost_of(ledger, total, horizon.limit, proved=True).stated_for(ledger.protects)


def charged(ledger: Ledger, schema: Schema, horizon: Horizon) -> Ledger:
    """The view of a ledger that is charged for a horizon: only its blocks, if units live in one."""
    return ledger._within(*horizon.blocks) if schema.unit.per is not None else ledger
