"""The most common values of a column: each row votes for its value, and one person has few votes for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_epsilon, exactly
from discreet.ledger import cost_of
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.top_k import Peel, TopK, chooser_for
from discreet.queries.sensitivity import Sensitivity
from discreet.releases import Release
from discreet.sql.measuring.groups import Groups
from discreet.sql.measuring.measure import read_measures
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.automatic_bounds import share_of
from discreet.sql.pricing.bounds import rows_known
from discreet.sql.pricing.found_rows import rows_bound
from discreet.sql.question import Bounds
from discreet.sql.reading.parse import Conditioned
from discreet.sql.terms import Terms
from discreet.tables.offer import Drawing, in_words, old_line


@dataclass(frozen=True)
class Votes:
    """The rows of each declared value, of which one person has a bounded number. `line` is the SQL that version 0.1
    recorded for the same question.
    """

    planner: Planner
    plan: Plan
    where: str | None
    line: str

    @classmethod
    def of(
        cls, planner: Planner, question: str | Conditioned, where: str | None, epsilon: Number, delta: Number
    ) -> Self:
        """The votes in a question that counts rows by value. If nobody declares how many rows one person has, a part of
        ε finds how many have one value.
        """
        plan = planner.plan(question, epsilon=epsilon, delta=delta)
        line = question if isinstance(question, str) else question.text
        person, rows = plan.relation.person, rows_known(plan.relation, {})
        if person is None or rows is not None:
            return cls(planner, replace(plan, terms=Terms(epsilon, delta), automatic=()), where, line)
        each = check_epsilon(epsilon) * share_of(1)
        terms = Terms(check_epsilon(epsilon) - each, delta)
        bound = rows_bound(plan.question, planner.schema.unit, 1, {}, each, terms.epsilon)
        unknown = replace(plan, bounds=None, clipping=None, clip=None, terms=terms, automatic=(bound,), each_bound=each)
        return cls(planner, unknown, where, line)

    @property
    def groups(self) -> Groups:
        """The declared values."""
        if self.plan.groups is None:
            raise InvalidArgument(
                "The most common value is one of the declared values. Give choices=.", code="choices-missing"
            )
        return self.plan.groups

    @property
    def of_one(self) -> int:
        """How many rows of one person, at most, have the same value."""
        return 1 if self.plan.bounds is None else self.plan.bounds.per_group

    def settled(self) -> Self:
        """The same after the number of rows of one person is found."""
        if not self.plan.automatic:
            return self
        [bound] = self.plan.automatic
        found: Bounds = bound.value(self.planner.find(bound, None).value)
        most, number = found.per_group, self.groups.count
        known = (f"rows of one person with one value: {most}",)
        return replace(
            self, plan=replace(self.plan, bounds=Bounds(most * number, number, most), automatic=(), found=known)
        )


def votes(counted: Votes, column: str, k: int) -> Drawing[Release]:
    """The choice among values by the rows that have them."""
    planner, plan, groups, unit = counted.planner, counted.plan, counted.groups, counted.planner.schema.unit
    listed = groups.domains[0]
    added = unit.neighbors == "add_or_remove"
    bound = Sensitivity(counted.of_one, "Linf", unit, len(listed), grain=1, monotone=added)
    goal, rule = plan.terms.allowed, planner.ledger.rule
    limit = getattr(rule.limit, "epsilon", None)  # how often this ε fits the limit; often, if no ε is given
    times = 100 if limit is None else max(1, min(1000, int(exactly(limit) / exactly(plan.terms.epsilon))))
    sharper = chooser_for(rule, times=times)
    choose: Any
    if k == 1:
        choose = sharper.for_guarantee(goal, sensitivity=bound, choices=listed)
    else:
        peel: Peel = "exponential" if sharper is Exponential else "permute and flip"
        choose = TopK.for_guarantee(goal, k=k, sensitivity=bound, choices=listed, peel=peel)
    best = "most common" if k == 1 else f"{k} most common"
    return Drawing(
        planner=planner,
        plan=plan,
        asked=in_words(f"{best} of {column}", counted.where),
        old_text=old_line(f"{best} of", counted.line),
        method="votes",
        arguments={"k": k, "choices": listed},
        mechanism=choose,
        guarantee=cost_of(planner.ledger, choose.guarantee(bound), goal),
        read=lambda: read_measures(plan.question, planner.engine, plan.enforced, groups)[0],
        finish=lambda release: release if k == 1 else replace(release, value=list(release.value)),
    )
