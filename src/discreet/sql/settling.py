"""Settling a plan: everything that it depends on is found privately, one after the other, before it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from discreet.errors import BudgetExhausted, NotAllowed
from discreet.exact.rational import exactly
from discreet.sql.expressions import Origin
from discreet.sql.measuring.clipped import Pairs
from discreet.sql.measuring.groups import ShownGroups
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.automatic_bounds import AutomaticBound, columns_to_find
from discreet.sql.pricing.centers import FARTHEST, center_of, number_at, spread_of
from discreet.sql.pricing.clipping import Clip, with_centers
from discreet.sql.pricing.found_rows import counts_values_only
from discreet.sql.pricing.key_choice import with_shown
from discreet.sql.question import Bounds, Question
from discreet.sql.running.notes import format_limits
from discreet.sql.schema import Schema


def settle(planner: Planner, plan: Plan, *, pairs: Pairs, key: str | None = None) -> Plan:
    """The plan after all that it depends on is found. Each finding is a release of its own. `pairs` holds the totals of
    each person from one statement to the next.
    """
    return _Settling(planner, plan, pairs, key).settled() if plan.automatic else plan


class _Settling:
    def __init__(self, planner: Planner, plan: Plan, pairs: Pairs, key: str | None) -> None:
        self.planner, self.plan, self.pairs, self.key = planner, plan, pairs, key
        self.found: list[str] = []
        self._number, self._fits = 0, False

    def settled(self) -> Plan:
        planner, plan, bar = self.planner, self.plan, None
        open_keys = tuple(key.name for key in plan.question.keys if key.domain is None)
        unranged = plan.question.unranged
        missing = columns_to_find(plan.question.relation, plan.question.bounded, unranged)
        schema, chosen, self.found = planner.found_columns(missing, plan.automatic, self._find, unranged)
        question = self._center_rows(planner.read(plan.question.source, schema, chosen=chosen), schema, chosen)
        if plan.goal is not None:
            choice = planner.choice_of_keys(replace(plan, question=question))
            release = self._release(choice)
            many = min(100, choice.mechanism.keys_per_person)
            bar = {groups: choice.mechanism.people_needed(groups) for groups in (1, many)}
            if not (keys := planner.with_known(choice.value(release.value))):
                spent = (self._number - 1) * plan.each_bound + exactly(plan.goal.epsilon)
                plan = replace(plan, groups=ShownGroups(question, ()), nothing=release, spent_first=spent)
                return replace(plan, bar=bar, open_keys=open_keys)
            question = with_shown(question, keys, schema)
            self.plan = plan = planner.divided_again(plan, question)
        bounds = self._bound_rows(question)
        after = planner.priced(question, plan.terms, searched=plan.searched, bounds=bounds)
        question = self._center_means(after)
        after = planner.priced(question, plan.terms, searched=plan.searched, bounds=bounds)
        if after.clipping is not None and after.clipping.searched:
            clip = self._limit_people(after)
            after = planner.priced(question, plan.terms, clip, searched=plan.searched, bounds=bounds)
            self.found.append(format_limits(after))
        if planner.wants_groups(plan.question, plan.terms):
            after = self._bound_groups(after)
        after = replace(after, goal=plan.goal, bar=bar, open_keys=open_keys, positive=plan.positive)
        return replace(after, found=tuple(self.found), spent_first=plan.spent_first)

    def _center_rows(self, question: Question, schema: Schema, chosen: Mapping[Origin, Any]) -> Question:
        """The question after the ranges of values are found whose squares it adds, or from which it chooses."""
        ranges, unit = {}, self.planner.schema.unit
        for place, value in enumerate(question.uncentered):
            bound = center_of(question, place, unit, self.plan.each_bound)
            center = self._find(bound)
            _check_center(number_at(center))
            ranges[value] = self._find(spread_of(question, place, center, unit, self.plan.each_bound))
            self.found.append(f"{bound.what}: {number_at(center):.4g}")
        return self.planner.read(self.plan.question.source, schema, ranges, chosen) if ranges else question

    def _bound_rows(self, question: Question) -> Bounds | None:
        """The bounds on rows that are chosen, if nobody declares them."""
        if not self.planner.wants_rows(question, self.plan.terms):
            return None
        bounds: Bounds = self._find(self.planner.bound_on_rows(replace(self.plan, question=question)))
        what = "values" if counts_values_only(question) else "rows"
        self.found.append(f"{what} of one person: {bounds.rows}")
        return bounds

    def _center_means(self, after: Plan) -> Question:
        """The question after the centers of all means are found."""
        known, centers = replace(after, each_center=self.plan.each_center), {}
        for part in self.planner.to_center(after.question, after.terms):
            middle = self.planner.center_of_people(known, part, self.pairs)
            centers[part] = self._find(middle)
            if after.question.measures[part].is_open:
                _check_center(float(centers[part]))
            self.found.append(f"{middle.what}: {float(centers[part]):.4g}")
        return with_centers(after.question, centers) if centers else after.question

    def _limit_people(self, after: Plan) -> Clip:
        """The limits on what one person adds."""
        assert after.clipping is not None
        scales = self._find(self.planner.limits(after, self.pairs))
        if after.clipping.has_too_few(scales):
            raise NotAllowed(
                "Too few people have values to find how much one may add. What was charged to find it stays "
                "charged. Spend more ε, or declare rows_per_person and the ranges of the summed columns.",
                code="too-few-people",
            )
        if after.clipping.has_too_large(scales):
            raise _too_large()
        clip = after.clipping.clip(scales)
        if not after.clipping.may_be_gaussian:
            return clip
        root = self._find(self.planner.roots(after, clip, self.pairs))
        better = after.clipping.with_root(clip, root)
        return better if self._fits_budget(after, better) else after.clipping.in_squares(clip, root)

    def _fits_budget(self, after: Plan, clip: Clip) -> bool:
        """Whether the answer fits with this clip, too. A ledger that adds ρ may charge more for it than was planned."""
        plan = self.planner.priced(after.question, after.terms, clip, searched=self.plan.searched, bounds=after.bounds)
        try:
            self.planner.ledger.after(plan.price.guarantee)
        except BudgetExhausted:
            return False
        return True

    def _bound_groups(self, after: Plan) -> Plan:
        """The plan with the number of groups of one person that was found."""
        assert after.bounds is not None  # declared bounds say how many rows there are
        bound = self.planner.bound_on_groups(replace(after, each_bound=self.plan.each_bound))
        groups = min(self._find(bound), after.bounds.groups)
        self.found.append(f"groups of one person: {groups}")
        return self.planner.with_bounds(after, replace(after.bounds, groups=groups))

    def _find(self, bound: AutomaticBound) -> Any:
        return bound.value(self._release(bound).value)

    def _release(self, bound: AutomaticBound) -> Any:
        """Find a bound. Before the first that is paid for, everything that is still to be paid must fit the budget, and
        the key must be new: for a question that was answered before, everything was found before.
        """
        if not self._fits and not self.planner.knows(bound, self.key):
            if self.key is not None:
                self.planner.ledger.check_new_key(self.key)
            rest = [other.guarantee for other in self.plan.automatic[self._number :]]
            self.planner.ledger.after(*rest, self.plan.price.guarantee)
            self._fits = True
        self._number += 1
        return self.planner.find(bound, self.key)


def _check_center(center: float) -> None:
    """Refuse a center at the end of the grid."""
    if abs(center) > 0.99 * FARTHEST:
        raise _too_large()


def _too_large() -> NotAllowed:
    return NotAllowed(
        "Some values or totals may be too large to be added exactly. What was charged to find that out stays charged. "
        "Divide them first, such as SUM(bytes / 1000000), or declare between for their columns.",
        code="values-too-large",
    )
