"""The planner: how a question is answered, what it costs and which bounds are found first, from public facts only.

A plan spends nothing and reads no private row. `settle` charges and draws the bounds that a plan depends on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.door import through
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed, QueryError
from discreet.exact.randomness import random_integer
from discreet.exact.rational import Number, check_delta, check_epsilon, exactly, significant
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.unit import check_one_row
from discreet.ledger import Identity, Ledger, cost_of, version_of
from discreet.ledger.texts.exact import exact_text
from discreet.releases import Release
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.estimates.rules import AnswerRules
from discreet.sql.expressions import Expr, Field, Origin, Range
from discreet.sql.measurement import identity_of_rows
from discreet.sql.measuring.clipped import Pairs, read_means, read_norms, read_roots
from discreet.sql.measuring.computable import check_clippable, check_computable
from discreet.sql.measuring.groups import groups_of
from discreet.sql.measuring.rows import rows_of
from discreet.sql.plan import Plan, RowsPlan
from discreet.sql.pricing.automatic_bounds import (
    IMAGINED_GROUPS,
    AutomaticBound,
    column_bound,
    columns_to_find,
    groups_bound,
    is_found,
    share_of,
    wants_groups,
    widest,
    with_bound,
    without_ranges,
)
from discreet.sql.pricing.bounds import bounds_of, rows_known, validate_bounds
from discreet.sql.pricing.centers import middle_of, to_find_centers
from discreet.sql.pricing.choice_of_noise import added_or_removed, choose_noise, shares_of, weights_of
from discreet.sql.pricing.clipping import Clip, Clipping, clipping_of, share_centered, to_center
from discreet.sql.pricing.found_rows import counts_values_only, rows_bound, support_bound, wants_rows
from discreet.sql.pricing.key_choice import SMALL, check_votes, chooses_first, has_open_keys, key_choice, need_delta
from discreet.sql.pricing.levels import LevelShares, level_shares
from discreet.sql.pricing.price import Price
from discreet.sql.pricing.relation import Relation, parts_read
from discreet.sql.question import Bounds, Question
from discreet.sql.reading.parse import Conditioned
from discreet.sql.reading.select import RowsAsked, read_question, rows_in
from discreet.sql.reading.values.combinations import with_combinations
from discreet.sql.reading.values.domains import MOST_GROUPS_SHOWN
from discreet.sql.running.notes import error_of, format_bound, goals
from discreet.sql.running.shown import check_showable
from discreet.sql.schema import Schema
from discreet.sql.terms import Terms

Missing = list[tuple[str, tuple[str, str]]]
"""What to find of which column, such as ("between", ("visits", "cost"))."""


@dataclass(frozen=True)
class Planner:
    """Plans questions about one schema, on one engine, under one ledger.

    `policy` is the public text of the declarations, which is part of a question's identity. `opening` is a random id of
    these data while they are open. It stands for their version if they have none. `answers` says whether questions are
    answered from earlier answers.
    """

    schema: Schema
    engine: Engine
    ledger: Ledger
    delta_per_question: Number = 0
    policy: str = ""
    opening: str = field(default_factory=lambda: new_opening())
    answers: AnswerRules = field(default=AnswerRules(derived=False), kw_only=True)

    def __post_init__(self) -> None:
        if self.ledger is not None and self.ledger._parts and set(self.ledger._parts) != set(self.schema.parts or ()):
            raise AssertionError("what is charged to parts alone must read no other rows")

    # --- questions ------------------------------------------------------------------------------------------

    def plan(
        self,
        question: str | Conditioned | Question,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
        bounds: Mapping[str, int] | None = None,
    ) -> Plan:
        """How a question would be answered. Spends nothing and reads no private data. What was read from a text can be
        planned several times.
        """
        asked = question if isinstance(question, Question) else self.read(question, self.schema)
        if (epsilon is None) == (within is None):
            raise InvalidArgument(
                "Say what the answer may cost, with epsilon=, or how wrong it may be, with within=.",
                code="epsilon-or-within",
            )
        missing = columns_to_find(asked.relation, asked.bounded, asked.unranged)
        slack = self.delta_per_question if delta is None else delta
        terms = Terms(0 if epsilon is None else epsilon, slack, weights, validate_bounds(bounds))
        number = len(missing) + len(asked.uncentered) + self.wants_groups(asked, terms) + self.wants_rows(asked, terms)
        if within is not None:
            if number or self._depends_on_people(asked, terms):
                raise NotAllowed(
                    "How wrong the answer may be depends on bounds that are to be found. Say what it may cost "
                    "(an epsilon), or ask the owner to declare rows_per_person and the ranges of summed columns.",
                    code="within-automatic",
                )
            terms = replace(terms, epsilon=self._least_epsilon(asked, within, confidence, terms))
        each = Fraction(0)
        if number:
            self._check_widest(asked, missing)
            each = check_epsilon(terms.epsilon) * share_of(number)
            terms = terms.without(number * each)
        goal = self._goal_of_choice(asked, terms)
        if goal is not None:
            terms = terms.without(goal.epsilon, goal.delta)
        each_center, left = self._share_of_centers(asked, terms)
        plan = replace(self._computable(asked, left), goal=goal, each_bound=each, each_center=each_center)
        plan = replace(plan, automatic=self._automatic(plan, missing))
        chosen = 0 if goal is None else exactly(goal.epsilon)
        return replace(plan, spent_first=number * each + chosen + self._for_limits(plan))

    def _share_of_centers(self, question: Question, terms: Terms) -> tuple[Fraction, Terms]:
        """The ε for the center of each mean, and what is left after all of them."""
        if not (means := self.to_center(question, terms)):
            return Fraction(0), terms
        share = share_centered(self._number_of_groups(question, terms) * len(question.measures))
        each = significant(check_epsilon(terms.epsilon) * share / len(means), up=False)
        return each, terms.without(len(means) * each)

    def to_center(self, question: Question, terms: Terms) -> tuple[int, ...]:
        """The sums, by position, whose centers are found for a mean."""
        return to_center(question, self._rows_known(question, terms))

    def _for_limits(self, plan: Plan) -> Fraction:
        """The ε for the centers of all means and the limits on people."""
        return len(self.to_center(plan.question, plan.terms)) * plan.each_center + (plan.searched or 0)

    def divided_again(self, plan: Plan, question: Question) -> Plan:
        """The plan with ε divided between limits and the answer for the groups of this question, if they are fewer than
        were assumed before they were chosen. Then the parts are more alike, and compose to about the same or to less.
        """
        if self._number_of_groups(question, plan.terms) >= self._number_of_groups(plan.question, plan.terms):
            return plan
        centers = len(self.to_center(plan.question, plan.terms)) * plan.each_center
        each_center, terms = self._share_of_centers(question, plan.terms.without(-centers))
        again = replace(plan, terms=terms, each_center=each_center)
        again = replace(again, clipping=self.priced(question, terms).clipping)
        return replace(again, spent_first=plan.spent_first - self._for_limits(plan) + self._for_limits(again))

    def read(
        self,
        source: Any,
        schema: Schema,
        ranges: Mapping[Expr, Range] | None = None,
        chosen: Mapping[Origin, Any] | None = None,
    ) -> Question:
        """The question in a text, about the groups that exist as far as public facts say which do. `ranges` of values
        and `chosen` ranges of columns were found for it.
        """
        return with_combinations(read_question(source, schema, ranges, chosen), schema, self.different)

    def different(self, rows: Relation, fields: tuple[Field, ...]) -> list[tuple[Any, ...]] | None:
        """The different values of some columns in rows of a public table. None if there are too many."""
        listed = ", ".join(dict.fromkeys(self.engine.dialect.quote(field.id) for field in fields))
        text = f"SELECT DISTINCT {listed} FROM ({rows_of(rows, self.engine)}) AS one LIMIT {MOST_GROUPS_SHOWN + 1}"
        found = self.engine.rows(text)
        return found if len(found) <= MOST_GROUPS_SHOWN else None

    def _check_widest(self, asked: Question, missing: Missing) -> None:
        """Refuse now what the bounds that are found could make unanswerable."""
        schema, chosen = widest(self.schema, missing, asked.unranged)
        known = self.read(asked.source, schema, chosen=chosen)
        if sum(measure.is_open for measure in known.measures) > sum(measure.is_open for measure in asked.measures):
            raise NotAllowed(
                "The range of a sum could be found to be too large. Declare between for its columns, or leave it out "
                "of the policy: then a person's total is limited instead.",
                code="sql-no-bounds",
            )

    def _automatic(self, plan: Plan, missing: Missing) -> tuple[AutomaticBound, ...]:
        """What a plan finds before its answer, in order."""
        question = plan.question
        found = list(self.column_bounds(missing, plan.each_bound))
        found += to_find_centers(question, self.schema.unit, plan.each_bound)
        found += [self.choice_of_keys(plan)] if plan.goal is not None else []
        found += [self.bound_on_rows(plan)] if self.wants_rows(question, plan.terms) else []
        found += [self.center_of_people(plan, part, None) for part in self.to_center(question, plan.terms)]
        if plan.clipping is not None and plan.clipping.searched:
            found.append(self.limits(plan, None))
            found += [self.roots(plan, plan.clipping.example(), None)] if plan.clipping.may_be_gaussian else []
        found += [self.bound_on_groups(plan)] if self.wants_groups(question, plan.terms) else []
        return tuple(found)

    def wants_rows(self, question: Question, terms: Terms) -> bool:
        """Whether it must be found how many rows of one person are used."""
        return question.relation.person is not None and wants_rows(
            question, rows_known(question.relation, terms.bounds)
        )

    def wants_groups(self, question: Question, terms: Terms) -> bool:
        """Whether it must be found how many groups of one person are used."""
        return wants_groups(question) and not self._is_clipped(question, terms)

    def _depends_on_people(self, question: Question, terms: Terms) -> bool:
        """Whether the noise depends on limits or groups that are to be found."""
        asked = replace(terms, epsilon=1)
        clipping = self._clipping(question, asked, None)
        return self._goal_of_choice(question, asked) is not None or (clipping is not None and clipping.searched > 0)

    def _goal_of_choice(self, question: Question, terms: Terms) -> Approx | None:
        """What a choice of groups may cost that comes before the answer: as much as one more aggregate. None if the
        groups are declared, or if a declared bound says that nobody is in more than a few.
        """
        clipped = self._is_clipped(question, terms)
        if not chooses_first(question, self._most_groups(question, terms), clipped=clipped):
            return None
        check_votes(self.schema.unit)
        slack = check_delta(terms.delta)
        need_delta(slack)
        share = check_epsilon(terms.epsilon) / (len(question.aggregates) + 1)
        return Approx(epsilon=share, delta=slack if clipped else slack / 2)

    def _most_groups(self, question: Question, terms: Terms) -> int | None:
        """The declared number of groups of one person."""
        if not has_open_keys(question):
            return None
        if question.relation.person is None:
            return 1
        bounds = bounds_of(question, MOST_GROUPS_SHOWN, self._frequency, terms.bounds, self.schema.unit)
        return None if bounds is None else bounds.groups

    def _computable(self, question: Question, terms: Terms) -> Plan:
        """The plan. Raises, before any charge, if the engine cannot compute it or if its answer cannot be shown."""
        try:
            plan = self.priced(question, terms)
            check_computable(question, self.engine, plan.enforced, clipped=plan.clipping is not None)
            if plan.clipping is not None:
                check_clippable(question, self.engine, plan.clipping)
            check_showable(question, self.engine)
        except RecursionError:
            raise QueryError("This query is nested too deeply. Simplify it.", code="sql-too-complex") from None
        return plan

    # --- prices ---------------------------------------------------------------------------------------------

    def priced(
        self,
        question: Question,
        terms: Terms,
        clip: Clip | None = None,
        *,
        searched: Fraction | None = None,
        bounds: Bounds | None = None,
    ) -> Plan:
        """A plan within the known bounds. `clip` are the limits on people, after they are found for an ε of `searched`,
        and `bounds` those on the rows of one person, after they are found.
        """
        groups, number = groups_of(question), self._number_of_groups(question, terms)
        if bounds is None:
            bounds = bounds_of(question, number, self._frequency, terms.bounds, self.schema.unit)
        if bounds is None and self.wants_rows(question, terms):
            bounds = Bounds(1, 1, 1)
        clipping = self._clipping(question, terms, searched)
        if question.relation.person is None and bounds is not None and (clipping is not None or question.uncentered):
            raise NotAllowed(
                "Rows are protected, and the question may use one row several times, or several rows of a unit. So the "
                "ranges of summed and averaged values must be known. Declare between for their columns, or sum before "
                "the join.",
                code="sql-no-bounds",
            )
        if clipping is not None and clip is None:
            clip = clipping.example()
        clipped = None if clipping is None or clip is None else (clipping, clip)
        price = choose_noise(question, self.schema.unit, bounds, number, terms, clipped, self._levels(question, terms))
        return Plan(
            question=question,
            bounds=bounds,
            groups=groups,
            price=self._chargeable(price),
            terms=terms,
            clipping=clipping,
            clip=clip,
        )

    def with_bounds(self, plan: Plan, bounds: Bounds) -> Plan:
        """The plan within lower bounds."""
        number = self._number_of_groups(plan.question, plan.terms)
        levels = self._levels(plan.question, plan.terms)
        price = choose_noise(plan.question, self.schema.unit, bounds, number, plan.terms, levels=levels)
        return replace(plan, bounds=bounds, price=self._chargeable(price))

    def _number_of_groups(self, question: Question, terms: Terms) -> int:
        """The number of groups in the answer. A guess if they are chosen first, and the maximum if with the answer."""
        groups = groups_of(question)
        if groups is not None:
            return groups.count
        return IMAGINED_GROUPS if self._is_clipped(question, terms) else MOST_GROUPS_SHOWN

    def _is_clipped(self, question: Question, terms: Terms) -> bool:
        """Whether people are clipped: the declarations do not bound all that one person adds."""
        return clipping_of(question, self.schema.unit, 1, self._rows_known(question, terms), Fraction(1)) is not None

    def _rows_known(self, question: Question, terms: Terms) -> int | None:
        """How many rows of one unit are used, if it is known."""
        return 1 if question.relation.person is None else rows_known(question.relation, terms.bounds)

    def _clipping(self, question: Question, terms: Terms, searched: Fraction | None) -> Clipping | None:
        """How people are clipped, if the declarations do not bound all that one person adds."""
        shares = shares_of(question, terms.weights)
        added = sum((shares[n] for n, measure in enumerate(question.measures) if measure.is_added), Fraction(0))
        return clipping_of(
            question,
            self.schema.unit,
            self._number_of_groups(question, terms),
            self._rows_known(question, terms),
            check_epsilon(terms.epsilon) * added,
            weights_of(question, terms.weights),
            searched,
            check_delta(terms.delta),
            self._levels(question, terms),
        )

    def _levels(self, question: Question, terms: Terms) -> LevelShares | None:
        """How ε is divided among levels, if there are several."""
        if not question.levels:
            return None
        return level_shares(question, groups_of(question), self._number_of_groups(question, terms))

    def _chargeable(self, price: Price) -> Price:
        """The price, stated as (ε,δ) if the ledger's rule can add only that."""
        if not price.delta:
            return price
        cost = cost_of(self.ledger, price.guarantee, lambda: price.cost, proved=True)
        return replace(price, guarantee=cost.stated_for(self.schema.unit))

    def _frequency(self, relation: Relation, keys: tuple[Field, ...]) -> int:
        """The maximum number of rows of a public relation that share their keys."""
        listed = ", ".join(self.engine.dialect.quote(key.id) for key in keys)
        counts = f"SELECT count(*) AS n FROM ({rows_of(relation, self.engine)}) AS one GROUP BY {listed}"
        return int(self.engine.rows(f"SELECT coalesce(max(n), 0) FROM ({counts}) AS one")[0][0])

    def _least_epsilon(self, question: Question, within: Mapping[str, Any], confidence: Any, terms: Terms) -> float:
        """The smallest ε, to three digits, with errors inside the requested ones."""
        wanted = goals(question, within)

        def keeps(epsilon: float) -> bool:
            price = self.priced(question, replace(terms, epsilon=epsilon)).price
            return all(error_of(question, price, part, confidence) <= float(amount) for part, amount in wanted)

        found = bracket(keeps, 1e-6, least=1e-6, most=1e5, factor=4)
        if found is None:
            raise InvalidArgument(
                "No ε up to 1e5 makes the answer as accurate as within= asks. Ask for less.", code="within-too-small"
            )
        least = bisect(keeps, *found, relative=1e-3, middle=geometric)
        return float(f"{least:.4g}") if keeps(float(f"{least:.4g}")) else least

    # --- rows -----------------------------------------------------------------------------------------------

    def rows(
        self, source: str | Conditioned, *, epsilon: Number, delta: Number = 0, value: str | None = None
    ) -> RowsPlan:
        """The rows of a query, within bounds, for a release that is not an answer in SQL. `value` is one number per
        row, on a public grid.
        """
        check_one_row(self.schema.unit, "A release of rows that is not an answer in SQL")
        asked = rows_in(source, self.schema, value)
        terms = Terms(epsilon, delta)
        check_epsilon(epsilon)
        check_delta(delta)
        if asked.unranged:
            undeclared = replace(self, schema=without_ranges(self.schema, asked.unranged))
            return undeclared.rows(source, epsilon=epsilon, delta=delta, value=value)
        missing = columns_to_find(asked.relation, asked.bounded)
        open_rows = asked.relation.person is not None and rows_known(asked.relation, {}) is None
        number = len(missing) + open_rows
        if not number:
            return RowsPlan(self._bounded(asked), terms)
        rows_in(asked.source, widest(self.schema, missing)[0], value)  # refuse now what the found bounds would refuse
        each = check_epsilon(epsilon) * share_of(number)
        left = replace(terms, epsilon=check_epsilon(epsilon) - number * each)
        automatic = self.column_bounds(missing, each)
        if open_rows:
            automatic = (*automatic, rows_bound(asked.question, self.schema.unit, 1, {}, each, left.epsilon))
        example = replace(self._bounded(asked, Bounds(1, 1, 1) if open_rows else None), settled=False)
        return RowsPlan(example, left, automatic, each_bound=each)

    def settle_rows(self, plan: RowsPlan) -> RowsPlan:
        """The rows after the bounds they depend on are found. The caller checks that the whole release fits the
        budget: it alone knows what comes after.
        """
        if not plan.automatic:
            return plan
        asked = plan.rows.asked
        missing = columns_to_find(asked.relation, asked.bounded)
        schema, _, found = self.found_columns(missing, plan.automatic, self._found)
        bounds = None
        if asked.relation.person is not None and rows_known(asked.relation, {}) is None:
            bounds = self._found(plan.automatic[-1])  # ranges change no number of rows
            found.append(f"rows of one person: {bounds.rows}")
        asked = rows_in(asked.source, schema, asked.value)
        return replace(plan, rows=self._bounded(asked, bounds), automatic=(), found=tuple(found))

    def _bounded(self, asked: RowsAsked, found: Bounds | None = None) -> BoundedRows:
        """The rows within declared bounds, or within bounds that were found."""
        bounds = found or bounds_of(asked.question, 1, self._frequency, {}, self.schema.unit)
        rows = BoundedRows(asked, bounds, self.engine)
        check_computable(asked.question, self.engine, rows.enforced)
        return rows

    # --- bounds that are found privately --------------------------------------------------------------------

    def column_bounds(self, missing: Missing, epsilon: Fraction) -> tuple[AutomaticBound, ...]:
        """How the ranges and frequencies of columns are found."""
        schema = without_ranges(self.schema, (origin for name, origin in missing if name == "between"))
        return tuple(column_bound(schema, *one, epsilon) for one in missing)

    def bound_on_groups(self, plan: Plan) -> AutomaticBound:
        """How the number of groups of one person is found."""
        assert plan.bounds is not None  # there are none only if single rows are protected

        def noise_of(bounds: Bounds) -> Price:
            number = self._number_of_groups(plan.question, plan.terms)
            levels = self._levels(plan.question, plan.terms)
            return choose_noise(plan.question, self.schema.unit, bounds, number, plan.terms, levels=levels)

        number = None if plan.groups is None else plan.groups.count
        return groups_bound(plan.question, self.schema.unit, plan.bounds, number, plan.each_bound, noise_of)

    def bound_on_rows(self, plan: Plan) -> AutomaticBound:
        """How the rows of one person are bounded that are chosen, and not added."""
        terms, number = plan.terms, self._number_of_groups(plan.question, plan.terms)
        search = support_bound if counts_values_only(plan.question) else rows_bound
        return search(plan.question, self.schema.unit, number, terms.bounds, plan.each_bound, terms.epsilon)

    def center_of_people(self, plan: Plan, part: int, pairs: Pairs | None) -> AutomaticBound:
        """How the center of a mean is found. A plan that is only explained has no `pairs`, and reads nothing."""

        def means() -> Any:
            assert pairs is not None
            assert plan.clipping is not None  # only what is limited has a center to find
            return read_means(pairs, plan.question, plan.clipping, plan.question.measures[part])

        return middle_of(plan.question, part, self.schema.unit, plan.each_center, means)

    def choice_of_keys(self, plan: Plan) -> AutomaticBound:
        """How the groups are chosen that enough people are in."""
        assert plan.goal is not None
        epsilon, delta = (exactly(part) for part in (plan.goal.epsilon, plan.goal.delta))
        unit, most = self.schema.unit, self._most_groups(plan.question, plan.terms)
        # coins have no ρ
        by_weights = epsilon < SMALL or (self.ledger is not None and self.ledger.rule.name == "zcdp")
        goal = added_or_removed(epsilon, delta, unit) if by_weights else replace(plan.goal, protects=unit)
        choice = key_choice(plan.question, unit, goal, most, by_weights=by_weights)
        cost = cost_of(self.ledger, choice.guarantee, plan.goal, proved=True)
        return replace(choice, stated=cost.stated_for(self.schema.unit))

    def with_known(self, keys: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The groups that are shown, from those that were chosen."""
        return keys

    def limits(self, plan: Plan, pairs: Pairs | None) -> AutomaticBound:
        """How the limits on people are found."""
        clipping, question = plan.clipping, plan.question
        assert clipping is not None

        def read(engine: Engine) -> Any:
            assert pairs is not None
            return read_norms(pairs, question, clipping)

        return AutomaticBound(
            "how much one person may add",
            question.relation,
            read,
            clipping.search(),
            clipping.moved,
            lambda found: tuple(int(limit) for limit in found),
            question,
            details=clipping.basis,
        )

    def roots(self, plan: Plan, clip: Clip, pairs: Pairs | None) -> AutomaticBound:
        """How the limit on the root of a person's sum of squares is found."""
        clipping, question = plan.clipping, plan.question
        assert clipping is not None

        def read(engine: Engine) -> Any:
            assert pairs is not None
            return read_roots(pairs, question, clipping, clip)

        return AutomaticBound(
            "how much one person may add in squares",
            question.relation,
            read,
            clipping.search_of_roots(),
            clipping.moved,
            lambda found: int(found[0]),
            question,
            details=(clipping.basis, clip),
        )

    def unpaid(self, bounds: Iterable[AutomaticBound], key: str | None = None) -> list[Guarantee]:
        """The costs of the bounds that were not found before."""
        return [bound.guarantee for bound in bounds if not is_found(bound, key, self.knows)]

    def found_columns(
        self,
        missing: Missing,
        automatic: Iterable[AutomaticBound],
        find: Callable[[AutomaticBound], Any],
        unranged: Collection[Origin] = (),
    ) -> tuple[Schema, dict[Origin, Any], list[str]]:
        """The schema with every bound of a column found, the ranges of `unranged` columns, and a description of what
        was found. Quantiles are chosen from the latter, and no sum is clamped to them.
        """
        schema, chosen, described = self.schema, dict[Origin, Any](), []
        for (name, origin), bound in zip(missing, automatic, strict=False):
            found = find(bound)
            described.append(f"{bound.what}: {format_bound(found)}")
            if origin in unranged:
                chosen[origin] = found
            else:
                schema = with_bound(schema, name, origin, found)
        return schema, chosen, described

    def knows(self, bound: AutomaticBound, key: str | None) -> bool:
        """Whether a bound was found before, so that it costs nothing."""
        return self.ledger.knows(**self.request(bound, key))

    def find(self, bound: AutomaticBound, key: str | None) -> Release:
        """Find a bound: charge, read, draw, store."""
        return through(lambda: bound.read(self.engine), ledger=self.ledger, **self.request(bound, key))

    def _found(self, bound: AutomaticBound) -> Any:
        return bound.value(self.find(bound, None).value)

    def request(self, bound: AutomaticBound, key: str | None) -> dict[str, Any]:
        """The request for a bound. Its retry key is derived from the key of the question."""
        details = []
        if bound.details is not None:
            details.append(identity_of_rows(bound.of, self.schema, bound.details))
        text = "\0".join((key or "", bound.asked, *details))
        own = None if key is None else hashlib.sha256(text.encode()).hexdigest()
        meaning = bound.question.meaning if bound.question else identity_of_rows(bound.of, self.schema)
        return {
            "guarantee": bound.guarantee,
            "mechanism": bound.mechanism,
            "asked": bound.asked,
            "key": own,
            "identity": self.identity(bound.of, (bound.what, meaning, *details), old_text=bound.asked),
        }

    # --- identity -------------------------------------------------------------------------------------------

    def identity(self, relation: Relation, asked: Any, *, old_text: str | None = None, **arguments: Any) -> Identity:
        """What identifies a request: all of `asked`, the declarations, and the data.

        Data without a version are identified by this opening of them. `old_text` is what version 0.1 recorded for it.
        """
        versions, lasting = [], True
        for table in relation.tables(owners=True):
            named = isinstance(table.source, str | Path)
            if table.version is not None:
                versions.append(f"{table.name}: {table.version}" + (f" of {table.source}" if named else ""))
            elif self.engine.reads_files and named:
                versions.append(f"{table.name}: {version_of(table.source)}")
            else:
                lasting = False
                versions.append(f"{table.name}: opened as {self.opening}")
        facts: dict[str, Any] = {"data_version": "; ".join(versions), "policy": self.policy, "arguments": arguments}
        known_before = old_text is not None and lasting and parts_read(relation) is None
        old = Identity(question=str(old_text), **facts) if known_before else None
        return Identity(question=exact_text(asked), lasting=lasting, before=old, **facts)


def new_opening() -> str:
    """A unique name for data that are opened now."""
    return f"{random_integer(128):032x}"
