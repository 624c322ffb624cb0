"""The planner: how a question is answered, what it costs and which bounds are found first, from public facts only.

A plan spends nothing and reads no private row. `settle` charges and draws the bounds that a plan depends on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.door import through
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed, QueryError
from discreet.exact.randomness import random_integer
from discreet.exact.rational import Number, check_delta, check_epsilon, significant
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Identity, Ledger, cost_of, version_of
from discreet.ledger.exact import exact_text
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.expressions import Field
from discreet.sql.measurement import identity_of_rows
from discreet.sql.plan import Plan
from discreet.sql.pricing.automatic_bounds import (
    AutomaticBound,
    column_bound,
    columns_to_find,
    groups_bound,
    share_of,
    wants_groups,
    widest,
    with_bound,
    without_ranges,
)
from discreet.sql.pricing.bounds import bounds_of, rows_known, validate_bounds
from discreet.sql.pricing.centers import center_of, middle_of
from discreet.sql.pricing.choice_of_noise import choose_noise, shares_of, weights_of
from discreet.sql.pricing.clipping import Clip, Clipping, clipping_of, share_centered, to_center, with_centers
from discreet.sql.pricing.found_rows import rows_bound, wants_rows
from discreet.sql.pricing.price import Price
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Bounds, Question
from discreet.sql.reading.parse import Conditioned
from discreet.sql.reading.select import RowsAsked, read_question, rows_in
from discreet.sql.running.answer import check_showable
from discreet.sql.running.clipped import Pairs, check_clippable, read_means, read_norms, read_roots
from discreet.sql.running.groups import MOST_GROUPS_SHOWN, Groups
from discreet.sql.running.measure import check_computable
from discreet.sql.running.notes import error_of, format_bound, format_limits, goals
from discreet.sql.running.rows import rows_of
from discreet.sql.schema import Schema
from discreet.sql.terms import Terms

Missing = list[tuple[str, tuple[str, str]]]
"""What to find of which column, such as ("between", ("visits", "cost"))."""


@dataclass(frozen=True)
class Planner:
    """Plans questions about one schema, on one engine, under one ledger.

    `policy` is the public text of the declarations, which is part of a question's identity. `opening` is a random id of
    these data while they are open. It stands for their version if they have none.
    """

    schema: Schema
    engine: Engine
    ledger: Ledger
    delta_per_question: Number = 0
    policy: str = ""
    opening: str = field(default_factory=lambda: new_opening())

    # --- questions ------------------------------------------------------------------------------------------

    def plan(
        self,
        question: str | Conditioned,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
        bounds: Mapping[str, int] | None = None,
    ) -> Plan:
        """How a question would be answered. Spends nothing and reads no private data."""
        asked = read_question(question, self.schema)
        if asked.unranged:
            undeclared = replace(self, schema=without_ranges(self.schema, asked.unranged))
            return undeclared.plan(
                question,
                epsilon=epsilon,
                delta=delta,
                within=within,
                confidence=confidence,
                weights=weights,
                bounds=bounds,
            )
        if (epsilon is None) == (within is None):
            raise InvalidArgument(
                "Say what the answer may cost, with epsilon=, or how wrong it may be, with within=.",
                code="epsilon-or-within",
            )
        missing = columns_to_find(asked.relation, asked.bounded)
        slack = self.delta_per_question if delta is None else delta
        terms = Terms(0 if epsilon is None else epsilon, slack, weights, validate_bounds(bounds))
        open_rows = wants_rows(asked, rows_known(asked.relation, terms.bounds)) and asked.relation.person is not None
        auto_groups = wants_groups(asked) and rows_known(asked.relation, terms.bounds) is not None
        number = len(missing) + len(asked.uncentered) + auto_groups + open_rows
        if within is not None:
            if number or self._priced(asked, replace(terms, epsilon=1)).clipping is not None:
                raise NotAllowed(
                    "How wrong the answer may be depends on bounds that are to be found. Say epsilon=, or declare "
                    "rows_per_person and the ranges of summed columns.",
                    code="within-automatic",
                )
            terms = replace(terms, epsilon=self._least_epsilon(asked, within, confidence, terms))
        each = Fraction(0)
        if number:
            read_question(asked.source, widest(self.schema, missing))  # refuse now what the found bounds would refuse
            each = check_epsilon(terms.epsilon) * share_of(number)
            terms = replace(terms, epsilon=check_epsilon(terms.epsilon) - number * each)
        means, each_center = to_center(asked), Fraction(0)
        if means:
            share = share_centered(_size(self._groups(asked)) * len(asked.measures))
            each_center = significant(check_epsilon(terms.epsilon) * share / len(means), up=False)
            terms = replace(terms, epsilon=check_epsilon(terms.epsilon) - len(means) * each_center)
        plan = replace(self._computable(asked, terms), each_bound=each, each_center=each_center)
        automatic = self._column_bounds(missing, each)
        automatic += tuple(center_of(asked, place, self.schema.unit, each) for place in range(len(asked.uncentered)))
        if auto_groups:
            automatic = (*automatic, self._groups_bound(plan, each))
        if open_rows:
            automatic = (*automatic, self._rows_bound(plan, each))
        automatic += tuple(self._middle(plan, part, None) for part in means)
        spent = number * each + len(means) * each_center
        if plan.clipping is not None and plan.clipping.searched:
            automatic, spent = (*automatic, self._limits(plan, None)), spent + plan.clipping.searched
            if plan.clipping.may_be_gaussian:
                automatic = (*automatic, self._roots(plan, plan.clipping.example(), None))
        return replace(plan, automatic=automatic, spent_first=spent)

    def settle(self, plan: Plan, *, pairs: Pairs, key: str | None = None) -> Plan:
        """The plan after all bounds it depends on are found. Each bound is a release of its own. `pairs` holds the
        totals of each person from one statement to the next.
        """
        if not plan.automatic:
            return plan
        if unpaid := self.unpaid(plan.automatic, key):
            self.ledger.after(*unpaid, plan.price.guarantee)  # refused before anything is spent
        missing = columns_to_find(plan.question.relation, plan.question.bounded)
        schema, found = self._found_columns(missing, plan.automatic, key)
        question = read_question(plan.question.source, schema)
        if question.uncentered:
            question = self._centered_rows(question, plan, schema, found, key)
        bounds = None
        if (
            wants_rows(question, rows_known(question.relation, plan.terms.bounds))
            and question.relation.person is not None
        ):
            bounds = self._found(self._rows_bound(replace(plan, question=question), plan.each_bound), key)
            found.append(f"rows of one person: {bounds.rows}")
        after = self._priced(question, plan.terms, searched=plan.searched, bounds=bounds)
        if means := to_center(question):
            middles = [self._middle(replace(after, each_center=plan.each_center), part, pairs) for part in means]
            centers = {part: self._found(middle, key) for part, middle in zip(means, middles, strict=True)}
            found += [f"{middle.what}: {float(centers[part]):.4g}" for part, middle in zip(means, middles, strict=True)]
            centered = with_centers(question, centers)
            after = self._priced(centered, plan.terms, searched=plan.searched, bounds=bounds)
        if after.clipping is not None and after.clipping.searched:
            scales = self._found(self._limits(after, pairs), key)
            if after.clipping.has_too_few(scales):
                raise NotAllowed(
                    "Too few people have values to find how much one may add. What was charged to find it stays "
                    "charged. Spend more ε, or declare rows_per_person and the ranges of the summed columns.",
                    code="too-few-people",
                )
            clip = after.clipping.clip(scales)
            if after.clipping.may_be_gaussian:
                root = self._found(self._roots(after, clip, pairs), key)
                clip = after.clipping.with_root(clip, root)
            after = self._priced(after.question, plan.terms, clip, searched=plan.searched, bounds=bounds)
            found.append(format_limits(after))
        if wants_groups(plan.question) and rows_known(plan.question.relation, plan.terms.bounds) is not None:
            assert after.bounds is not None
            groups = min(self._found(self._groups_bound(after, plan.each_bound), key), after.bounds.groups)
            found.append(f"groups of one person: {groups}")
            bounds_found = replace(after.bounds, groups=groups)
            price = self._price(after.question, bounds_found, after.groups, plan.terms)
            after = replace(after, bounds=bounds_found, price=self._chargeable(price))
        return replace(after, found=tuple(found), spent_first=plan.spent_first)

    def _centered_rows(
        self, question: Question, plan: Plan, schema: Schema, found: list[str], key: str | None
    ) -> Question:
        """The question after the centers of all values are found whose squares it adds."""
        ranges = {}
        for place, value in enumerate(question.uncentered):
            bound = center_of(question, place, self.schema.unit, plan.each_bound)
            ranges[value] = self._found(bound, key)
            found.append(f"{bound.what}: {sum(ranges[value]) / 2:.4g}")
        return read_question(plan.question.source, schema, ranges)

    def _computable(self, question: Question, terms: Terms) -> Plan:
        """The plan. Raises, before any charge, if the engine cannot compute it or if its answer cannot be shown."""
        try:
            plan = self._priced(question, terms)
            check_computable(question, self.engine, plan.enforced, clipped=plan.clipping is not None)
            if plan.clipping is not None:
                check_clippable(question, self.engine, plan.clipping)
            check_showable(question, self.engine)
        except RecursionError:
            raise QueryError("This query is nested too deeply. Simplify it.", code="sql-too-complex") from None
        return plan

    # --- prices ---------------------------------------------------------------------------------------------

    def _groups(self, question: Question) -> Groups | None:
        """The groups of a question, if they are declared."""
        return None if any(key.domain is None for key in question.keys) else Groups(question)

    def _rows_bound(self, plan: Plan, epsilon: Fraction) -> AutomaticBound:
        """How the rows of one person are bounded that are chosen, and not added."""
        number = _size(self._groups(plan.question))
        return rows_bound(plan.question, self.schema.unit, number, plan.terms.bounds, epsilon)

    def _priced(
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
        groups = self._groups(question)
        known = bounds_of(question, _size(groups), self._frequency, terms.bounds)
        if known is None and wants_rows(question, rows_known(question.relation, terms.bounds)):
            known = bounds or (None if question.relation.person is None else Bounds(1, 1, 1))
        bounds = known
        clipping = self._clipping(question, groups, terms, searched)
        if clipping is not None and clip is None:
            clip = clipping.example()
        clipped = None if clipping is None or clip is None else (clipping, clip)
        price = self._chargeable(self._price(question, bounds, groups, terms, clipped))
        return Plan(
            question=question, bounds=bounds, groups=groups, price=price, terms=terms, clipping=clipping, clip=clip
        )

    def _clipping(
        self, question: Question, groups: Groups | None, terms: Terms, searched: Fraction | None
    ) -> Clipping | None:
        """How people are clipped, if the declarations do not bound all that one person adds."""
        person = question.relation.person
        rows = 1 if person is None else rows_known(question.relation, terms.bounds)
        shares = shares_of(question, terms.weights)
        added = sum((shares[n] for n, measure in enumerate(question.measures) if measure.is_added), Fraction(0))
        weights, epsilon = weights_of(question, terms.weights), check_epsilon(terms.epsilon) * added
        delta = check_delta(terms.delta)
        return clipping_of(question, self.schema.unit, _size(groups), rows, epsilon, weights, searched, delta)

    def _middle(self, plan: Plan, part: int, pairs: Pairs | None) -> AutomaticBound:
        """How the center of a mean is found."""

        def means() -> Any:
            assert pairs is not None  # a plan that is only explained reads nothing
            assert plan.clipping is not None  # a value without a range is clipped
            return read_means(pairs, plan.question, plan.clipping, plan.question.measures[part])

        return middle_of(plan.question, part, self.schema.unit, plan.each_center, means)

    def _limits(self, plan: Plan, pairs: Pairs | None) -> AutomaticBound:
        """How the limits on people are found."""
        clipping, question = plan.clipping, plan.question
        assert clipping is not None

        def read(engine: Engine) -> Any:
            assert pairs is not None  # a plan that is only explained reads nothing
            return read_norms(pairs, question, clipping)

        return AutomaticBound(
            "how much one person may add",
            question.relation,
            read,
            clipping.search(),
            clipping.moved,
            lambda found: tuple(int(limit) for limit in found),
            question,
        )

    def _roots(self, plan: Plan, clip: Clip, pairs: Pairs | None) -> AutomaticBound:
        """How the limit on the root of a person's sum of squares is found."""
        clipping, question = plan.clipping, plan.question
        assert clipping is not None

        def read(engine: Engine) -> Any:
            assert pairs is not None  # a plan that is only explained reads nothing
            return read_roots(pairs, question, clipping, clip)

        return AutomaticBound(
            f"how much one person may add in squares ({clip.limit} at {clip.shifts} and {clip.factors})",
            question.relation,
            read,
            clipping.search_of_roots(),
            clipping.moved,
            lambda found: int(found[0]),
            question,
        )

    def _price(
        self,
        question: Question,
        bounds: Bounds | None,
        groups: Groups | None,
        terms: Terms,
        clipped: tuple[Clipping, Clip] | None = None,
    ) -> Price:
        return choose_noise(question, self.schema.unit, bounds, _size(groups), terms, clipped)

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
            price = self._priced(question, replace(terms, epsilon=epsilon)).price
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
        rows_in(asked.source, widest(self.schema, missing), value)  # refuse now what the found bounds would refuse
        each = check_epsilon(epsilon) * share_of(number)
        left = replace(terms, epsilon=check_epsilon(epsilon) - number * each)
        automatic = self._column_bounds(missing, each)
        if open_rows:
            automatic = (*automatic, rows_bound(asked.question, self.schema.unit, 1, {}, each))
        return RowsPlan(self._bounded(asked, Bounds(1, 1, 1) if open_rows else None), left, automatic, each_bound=each)

    def settle_rows(self, plan: RowsPlan) -> RowsPlan:
        """The rows after the bounds they depend on are found. The caller checks that the whole release fits the
        budget: it alone knows what comes after.
        """
        if not plan.automatic:
            return plan
        asked = plan.rows.asked
        schema, found = self._found_columns(columns_to_find(asked.relation, asked.bounded), plan.automatic, None)
        asked, bounds = rows_in(asked.source, schema, asked.value), None
        if asked.relation.person is not None and rows_known(asked.relation, {}) is None:
            bounds = self._found(rows_bound(asked.question, self.schema.unit, 1, {}, plan.each_bound), None)
            found.append(f"rows of one person: {bounds.rows}")
        return replace(plan, rows=self._bounded(asked, bounds), automatic=(), found=tuple(found))

    def _bounded(self, asked: RowsAsked, found: Bounds | None = None) -> BoundedRows:
        """The rows within declared bounds, or within bounds that were found."""
        bounds = found or bounds_of(asked.question, 1, self._frequency, {})
        rows = BoundedRows(asked, bounds, self.engine)
        check_computable(asked.question, self.engine, rows.enforced)
        return rows

    # --- bounds that are found privately --------------------------------------------------------------------

    def _column_bounds(self, missing: Missing, epsilon: Fraction) -> tuple[AutomaticBound, ...]:
        return tuple(column_bound(self.schema, *one, epsilon) for one in missing)

    def _groups_bound(self, plan: Plan, epsilon: Fraction) -> AutomaticBound:
        assert plan.bounds is not None  # there are none only if single rows are protected

        def noise_of(bounds: Bounds) -> Price:
            return self._price(plan.question, bounds, plan.groups, plan.terms)

        number = None if plan.groups is None else plan.groups.count
        return groups_bound(plan.question, self.schema.unit, plan.bounds, number, epsilon, noise_of)

    def unpaid(self, bounds: Iterable[AutomaticBound], key: str | None = None) -> list[Guarantee]:
        """The costs of the bounds that were not found before."""
        return [bound.guarantee for bound in bounds if not self.ledger.knows(**self._request(bound, key))]

    def _found_columns(
        self, missing: Missing, automatic: tuple[AutomaticBound, ...], key: str | None
    ) -> tuple[Schema, list[str]]:
        """The schema with every bound of a column found, and a description of what was found."""
        schema, described = self.schema, []
        for (name, origin), bound in zip(missing, automatic, strict=False):
            found = self._found(bound, key)
            schema = with_bound(schema, name, origin, found)
            described.append(f"{bound.what}: {format_bound(found)}")
        return schema, described

    def _found(self, bound: AutomaticBound, key: str | None) -> Any:
        asked = self._request(bound, key)
        return bound.value(through(lambda: bound.read(self.engine), ledger=self.ledger, **asked).value)

    def _request(self, bound: AutomaticBound, key: str | None) -> dict[str, Any]:
        """The request for a bound. Its retry key is derived from the key of the question."""
        own = None if key is None else hashlib.sha256(f"{key}\0{bound.asked}".encode()).hexdigest()
        meaning = bound.question.meaning if bound.question else identity_of_rows(bound.of, self.schema)
        return {
            "guarantee": bound.guarantee,
            "mechanism": bound.mechanism,
            "asked": bound.asked,
            "key": own,
            "identity": self.identity(bound.of, (bound.what, meaning), old_text=bound.asked),
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
        old = None if old_text is None or not lasting else Identity(question=old_text, **facts)
        return Identity(question=exact_text(asked), lasting=lasting, before=old, **facts)


@dataclass(frozen=True)
class RowsPlan:
    """Rows within bounds, what a release of them may cost, and which bounds are found first."""

    rows: BoundedRows
    terms: Terms
    automatic: tuple[AutomaticBound, ...] = ()
    found: tuple[str, ...] = ()
    each_bound: Fraction = Fraction(0)

    @property
    def relation(self) -> Relation:
        """The rows that it reads."""
        return self.rows.relation

    @property
    def meaning(self) -> str:
        """What the rows are, as one text."""
        return self.rows.asked.meaning

    @property
    def bounds(self) -> Bounds | None:
        """What one unit may contribute to them."""
        return self.rows.bounds


def new_opening() -> str:
    """A unique name for data that are opened now."""
    return f"{random_integer(128):032x}"


def _size(groups: Groups | None) -> int:
    """The number of groups in the answer. If the groups are not declared, the maximum number that one unit can
    be in.
    """
    return MOST_GROUPS_SHOWN if groups is None else groups.count
