"""What is missing of a question, as a plan of its own: some of its measures, for a part of their ε."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.sql.estimates.law import Noise
from discreet.sql.expressions import Field
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.question import Aggregate, Question

PARTS = 32
"""What is missing is paid in multiples of this part of ε."""


def plan_of_part(planner: Planner, plan: Plan, measures: tuple[int, ...], parts: int) -> Plan:
    """The plan of some measures of a question for a part of the ε that they would have had."""
    question, shares = plan.question, plan.price.shares
    epsilon = exactly(plan.terms.epsilon) * parts / PARTS
    if len(measures) < len(question.measures):
        epsilon *= sum((shares[n] for n in measures), exactly(0))
        question = replace(
            question,
            measures=tuple(question.measures[n] for n in measures),
            aggregates=tuple(_alone(question, n, place, shares[n]) for place, n in enumerate(measures)),
            outputs=(),
        )
    weights = plan.terms.weights if len(measures) == len(plan.question.measures) else None
    terms = replace(plan.terms, epsilon=epsilon, weights=weights)
    return replace(plan, question=question, terms=terms, price=planner.priced(question, terms).price)


def _alone(question: Question, measure: int, place: int, share: Fraction) -> Aggregate:
    """A measure as a column of its own, with its share of ε."""
    kind: Literal["count", "sum"] = "count" if question.measures[measure].kind == "count" else "sum"
    return Aggregate(f"{kind} {place}", kind, (place,), Field(f"m{place}", "", "number"), weight=share)


def scaled(noise: Noise, factor: float) -> Noise:
    """The same kind of noise, larger by a factor: about what a part of ε buys."""
    if isinstance(noise, Laplace):
        return Laplace(scale=float(noise.scale) * factor, step=1)
    return Gaussian(stddev=float(noise.stddev) * factor)
