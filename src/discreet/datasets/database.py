"""A data set that is asked in SQL: what one analyst connects to."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.closing import Closed
from discreet.door import through
from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed, QueryError
from discreet.exact.randomness import random_integer
from discreet.exact.rational import check_epsilon
from discreet.ledger import Identity, Ledger, version_of
from discreet.ledger.exact import exact_text
from discreet.sql.expressions import Field
from discreet.sql.identity import identity_of_rows
from discreet.sql.plan import Plan
from discreet.sql.pricing.automatic_bounds import (
    Finding,
    column_finding,
    columns_to_find,
    found_in,
    groups_finding,
    share_of,
    wants_groups,
    widest,
)
from discreet.sql.pricing.bounds import bounds_of, checked_bounds
from discreet.sql.pricing.choice_of_noise import priced
from discreet.sql.pricing.price import Price
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Bounds, Question
from discreet.sql.reading.domains import LARGEST_DOMAIN
from discreet.sql.reading.parse import Conditioned
from discreet.sql.reading.select import check_only_rows, understood
from discreet.sql.running.answer import Answer, check_showable
from discreet.sql.running.explanation import Explanation, explained
from discreet.sql.running.groups import MOST_GROUPS_SHOWN, Groups
from discreet.sql.running.intervals import Columns
from discreet.sql.running.measure import check_computable, discovered, measured
from discreet.sql.running.notes import error_of, goals, notes_on, written
from discreet.sql.running.rows import rows_of
from discreet.sql.schema import Column, Schema, Table


class Database(Closed):
    """Tables under one ledger, asked in SQL."""

    def __init__(
        self,
        schema: Schema,
        engine: Engine,
        ledger: Ledger,
        *,
        delta_per_question: Any = 0,
        policy: str = "",
        opening: str | None = None,
    ) -> None:
        if ledger.protects != schema.unit:
            raise InvalidArgument(
                f"The ledger protects {ledger.protects!r}, but the policy says {schema.unit!r}. Open it for the "
                "policy's unit."
            )
        self.schema, self.engine, self.ledger = _with_public_values(schema, engine), engine, ledger
        self.delta_per_question, self.policy = delta_per_question, policy
        self.opening = new_opening() if opening is None else opening

    def sql(
        self,
        question: str,
        *,
        epsilon: Any = None,
        delta: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
        bounds: Mapping[str, int] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Answer a question with noise: `epsilon` for the whole statement, or the smallest one that keeps every column
        of `within` inside its error with this confidence. `weights` share ε out among the columns; `bounds` lower
        those of the policy for this question, such as {"rows_per_person": 3}: less noise, and more that is left out.
        """
        asked = {"epsilon": epsilon, "delta": delta, "within": within, "confidence": confidence}
        return self.answer(self.plan(question, weights=weights, bounds=bounds, **asked), key=key)

    def plan(
        self,
        question: str | Conditioned | Question,
        *,
        epsilon: Any = None,
        delta: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
        bounds: Mapping[str, int] | None = None,
    ) -> Plan:
        """How a question would be answered, from public facts; spends nothing and reads no private data."""
        asked = question if isinstance(question, Question) else understood(question, self.schema)
        if (epsilon is None) == (within is None):
            raise InvalidArgument("Say what the answer may cost, with epsilon=, or how wrong it may be, with within=.")
        terms: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": self.delta_per_question if delta is None else delta,
            "weights": weights,
        }
        terms["bounds"] = checked_bounds(bounds)
        wanted = columns_to_find(asked)
        number = len(wanted) + wants_groups(asked)
        if number and within is not None:
            raise NotAllowed("How wrong the answer may be depends on bounds that are to be found. Say epsilon=.")
        if within is not None:
            terms["epsilon"] = self._least_epsilon(asked, within, confidence, terms)
        if not number:
            return self._computable(asked, terms)
        understood(asked.source, widest(self.schema, wanted))  # refused now, if it would be once bounds are found
        each = check_epsilon(epsilon) * share_of(number)
        terms["epsilon"] = check_epsilon(epsilon) - number * each
        plan = self._computable(asked, terms)
        first = tuple(column_finding(self.schema, *one, each) for one in wanted)
        if wants_groups(asked):
            first = (*first, self._groups_finding(plan, each))
        return replace(plan, first=first, before=number * each)

    def _priced(self, question: Question, terms: Mapping[str, Any]) -> Plan:
        """A plan within the bounds that are known."""
        groups = None if any(key.domain is None for key in question.keys) else Groups(question)
        bounds = bounds_of(question, _size(groups), self._frequency, terms["bounds"])
        plan = Plan(question, bounds, groups, self._price(question, bounds, groups, terms), terms=terms)
        return replace(plan, price=self._chargeable(plan.price))

    def _computable(self, question: Question, terms: Mapping[str, Any]) -> Plan:
        """The plan, unless the engine cannot compute it, or its answer cannot be shown: refused before any charge."""
        with suppress(RecursionError):
            plan = self._priced(question, terms)
            check_computable(question, self.engine, plan.enforced)
            check_showable(question, self.engine)
            return plan
        raise QueryError("This question is nested too deeply. Ask for less at once.")

    def _price(self, question: Question, bounds: Bounds | None, groups: Groups | None, terms: Mapping[str, Any]) -> Price:
        spent = {name: terms[name] for name in ("epsilon", "delta", "weights")}
        return priced(question, self.schema.unit, bounds, _size(groups), **spent)

    def _frequency(self, relation: Relation, keys: tuple[Field, ...]) -> int:
        """How many rows of a public relation share their keys, at most."""
        listed = ", ".join(self.engine.dialect.quoted(key.id) for key in keys)
        counts = f"SELECT count(*) AS n FROM ({rows_of(relation, self.engine)}) AS one GROUP BY {listed}"
        return int(self.engine.rows(f"SELECT coalesce(max(n), 0) FROM ({counts}) AS one")[0][0])

    def _groups_finding(self, plan: Plan, epsilon: Fraction) -> Finding:
        assert plan.bounds is not None  # only people are in several groups

        def noise_of(bounds: Bounds) -> Price:
            return self._price(plan.question, bounds, plan.groups, plan.terms)

        number = None if plan.groups is None else plan.groups.count
        return groups_finding(plan.question, self.schema.unit, plan.bounds, number, epsilon, noise_of)

    def settled(self, plan: Plan, *, key: str | None = None) -> Plan:
        """The plan once everything it rests on is found; each finding is a release of its own."""
        if not plan.first:
            return plan
        new = [finding.guarantee for finding in plan.first if not self.ledger.knows(**self._request(finding, key))]
        if new:
            self.ledger.after(*new, plan.price.guarantee)  # refused before anything is spent
        schema, told, found = self.schema, [], None
        wanted = columns_to_find(plan.question)
        for (name, origin), finding in zip(wanted, plan.first, strict=False):
            found = self._found(finding, key)
            schema = found_in(schema, name, origin, found)
            told.append(f"{finding.what}: {written(found)}")
        after = self._priced(understood(plan.question.source, schema), plan.terms)
        if len(plan.first) > len(wanted):
            each = plan.before / len(plan.first)
            assert after.bounds is not None
            groups = min(self._found(self._groups_finding(after, each), key), after.bounds.groups)
            told.append(f"groups of one person: {groups}")
            bounds = replace(after.bounds, groups=groups)
            price = self._price(after.question, bounds, after.groups, plan.terms)
            after = replace(after, bounds=bounds, price=self._chargeable(price))
        return replace(after, found=tuple(told), before=plan.before)

    def _found(self, finding: Finding, key: str | None) -> Any:
        asked = self._request(finding, key)
        return finding.value(through(lambda: finding.read(self.engine), ledger=self.ledger, **asked).value)

    def _request(self, finding: Finding, key: str | None) -> dict[str, Any]:
        """The request of a finding: its retry key follows from that of the question."""
        own = None if key is None else hashlib.sha256(f"{key}\0{finding.what}".encode()).hexdigest()
        return {
            "guarantee": finding.guarantee,
            "mechanism": finding.mechanism,
            "asked": finding.what,
            "key": own,
            "identity": self.identity(finding.of, (finding.what, self._meaning(finding)), before=finding.what),
        }

    def _meaning(self, finding: Finding) -> str:
        return finding.question.meaning if finding.question else identity_of_rows(finding.of, self.schema)

    def _chargeable(self, price: Price) -> Price:
        """Stated as (ε,δ) where the ledger's rule adds nothing else."""
        if price.delta and self.ledger.rule.adds_stated:
            return replace(price, guarantee=price.cost.stated_for(self.schema.unit))
        return price

    def explain(self, question: str, **options: Any) -> Explanation:
        """What a question would cost and how wrong its answer may be, with the options of `sql`; spends nothing."""
        confidence = options.get("confidence", 0.95)
        return explained(self.plan(question, **options), ledger=self.ledger, confidence=confidence)

    def fit(self, estimator: Any, source: str, *, features: Any, target: str | None = None) -> Any:
        """Fit a private estimator to columns of what stands after FROM: `"visits JOIN cities USING (city) WHERE …"`.

        Ranges and choices of features are those of the policy, or said in `features`; see `PrivateTable.fit`.
        """
        from discreet.tables.fit import check_estimator, fitted

        check_estimator(estimator, target)
        plan = self.plan(f"SELECT COUNT(*) AS n FROM {source}", epsilon=estimator.epsilon, delta=estimator.delta)
        check_only_rows(plan.question)
        return fitted(estimator, self, plan, features, target)

    def _least_epsilon(
        self, question: Question, within: Mapping[str, Any], confidence: Any, terms: Mapping[str, Any]
    ) -> float:
        """The smallest ε, to three digits, whose errors stay inside what was asked for."""
        wanted = goals(question, within)

        def keeps(epsilon: float) -> bool:
            price = self._priced(question, {**terms, "epsilon": epsilon}).price
            return all(error_of(question, price, part, confidence) <= float(amount) for part, amount in wanted)

        low, high = 1e-6, 1e-6
        while not keeps(high):
            low, high = high, high * 4
            if high > 1e5:
                raise InvalidArgument("No ε up to 1e5 makes the answer as accurate as within= asks. Ask for less.")
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return float(f"{high:.4g}") if keeps(float(f"{high:.4g}")) else high

    def close(self) -> None:
        """Let go of the engine and of the ledger's database."""
        self.engine.close()
        self.ledger.close()

    def answer(self, plan: Plan, *, key: str | None = None) -> Answer:
        """Charge, read, draw, keep, hand out."""
        plan = self.settled(plan, key=key)
        question, price = plan.question, plan.price
        bounds = {"found": list(plan.found), "bounds": dict(plan.terms["bounds"])}
        release = through(
            lambda: self._read(plan),
            price.mechanism,
            price.guarantee,
            ledger=self.ledger,
            asked=question.same,
            key=key,
            identity=self.identity(
                question.relation, ("answer", question.meaning, plan.bounds), before=question.same, **bounds
            ),
        )
        keys, noisy = release.value if plan.groups is None else (plan.groups.keys(), release.value)
        return Answer(question, Columns(question, price, noisy, keys), release, notes=notes_on(plan), cost=plan.cost)

    def _read(self, plan: Plan) -> Any:
        """The exact measures: the only place where data is read."""
        if plan.groups is None:
            return discovered(plan.question, self.engine, plan.enforced)
        return tuple(measured(plan.question, self.engine, plan.enforced, plan.groups))

    def identity(self, relation: Relation, asked: Any, *, before: str | None = None, **arguments: Any) -> Identity:
        """What makes the same question the same: all of `asked`, the declarations, and the data it is asked of.

        Data without a version are known by this opening of them. `before` is the text that version 0.1 knew it by.
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
        old = None if before is None or not lasting else Identity(question=before, **facts)
        return Identity(question=exact_text(asked), lasting=lasting, before=old, **facts)


def new_opening() -> str:
    """A name for data that are opened now: nobody else's."""
    return f"{random_integer(128):032x}"


def _with_public_values(schema: Schema, engine: Engine) -> Schema:
    """The schema with the values that public tables have: groups by them are declared."""
    tables = dict(schema.tables)
    for name, table in tables.items():
        if table.public:
            columns = {
                column.name: column if column.choices or column.between else _listed(column, table, engine)
                for column in table.columns.values()
            }
            tables[name] = replace(table, columns=columns)
    return replace(schema, tables=tables)


def _listed(column: Column, table: Table, engine: Engine) -> Column:
    if column.type not in ("text", "integer", "boolean", "date"):
        return column
    name = engine.dialect.quoted(column.name)
    shown = f"SELECT DISTINCT {name} FROM {engine.relations[table.name]} LIMIT {LARGEST_DOMAIN + 1}"
    found = sorted(value for (value,) in engine.rows(shown) if value is not None)
    return replace(column, choices=tuple(found)) if 0 < len(found) <= LARGEST_DOMAIN else column


def _size(groups: Groups | None) -> int:
    """How many groups there are to answer in; for groups that are not declared, as many as one could be in."""
    return MOST_GROUPS_SHOWN if groups is None else groups.count
