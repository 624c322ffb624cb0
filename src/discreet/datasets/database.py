"""A database that is queried in SQL: what one analyst connects to."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from discreet.closing import Closed
from discreet.datasets.description import Tables, asks_for_tables, describe_tables, shown_tables
from discreet.datasets.horizon import Horizon, StandingOptions, check_day, horizon_of
from discreet.datasets.prepared import Prepared
from discreet.datasets.standing import Standing, all_standing, explain_standing, find_standing, open_standing
from discreet.engines.duckdb.dialect import quote
from discreet.engines.engine import Engine
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed
from discreet.exact.rational import Number, exactly
from discreet.guarantees.unit import Block
from discreet.ledger import Ledger
from discreet.sql.cubes import Cross, all_levels, crossed
from discreet.sql.estimates.rules import AnswerRules
from discreet.sql.living import division_of
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.reading.asked_first import EXAMPLES, Asked
from discreet.sql.reading.combined import combination_in
from discreet.sql.reading.parse import Conditioned
from discreet.sql.reading.values.domains import LARGEST_DOMAIN
from discreet.sql.running.answer import Answer, AnswerColumn
from discreet.sql.running.answering import answer_plan
from discreet.sql.running.combined import CombinedPlan
from discreet.sql.running.explanation import Explanation
from discreet.sql.running.free import free_answer, without_rows
from discreet.sql.schema import Column, Schema, Table
from discreet.sql.terms import QuestionOptions
from discreet.tables.fit import Estimator, Features, Fit, check_estimator


class Database(Closed):
    """Tables under one ledger, queried in SQL."""

    def __init__(
        self,
        schema: Schema,
        engine: Engine,
        ledger: Ledger,
        *,
        delta_per_question: Number = 0,
        policy: str = "",
        rules: AnswerRules | None = None,
    ) -> None:
        if ledger.protects != schema.unit:
            raise InvalidArgument(
                f"The ledger protects {ledger.protects!r}, but the policy says {schema.unit!r}. Open it for the "
                "policy's unit.",
                code="ledger-other-unit",
            )
        self.schema, self.engine, self.ledger = _with_public_values(schema, engine), engine, ledger
        known = AnswerRules() if rules is None else rules
        self.planner = Planner(self.schema, engine, ledger, delta_per_question, policy, answers=known)

    def seen_by(self, ledger: Ledger) -> Database:
        """The same tables under another view of the same ledger, such as that of an analyst."""
        other = copy.copy(self)
        other.ledger, other.planner = ledger, replace(self.planner, ledger=_charged(ledger, self.schema))
        return other

    def part(self, *names: str) -> Database:
        """The same tables, of which only the rows in these parts count: blocks of time such as "2024-01", or where
        people live. "null" are the rows without a time.

        If each unit lives in one part (`per` or `lives_in` of the unit), answers are charged to these parts only, and
        what other parts spent does not count. Otherwise one person may be in all of them, and they are charged as
        everything is. Spends nothing and reads no private data.
        """
        if self.schema.parts is not None:
            raise InvalidArgument(
                "This is a part already. Name all the parts at once, on the database: clinic.part(…).",
                code="part-of-part",
            )
        other = copy.copy(self)
        other.schema = replace(self.schema, parts=names)
        other.planner = replace(self.planner, schema=other.schema, ledger=_charged(self.ledger, other.schema))
        return other

    @property
    def parts(self) -> tuple[str, ...] | None:
        """The parts whose rows count. None if all do."""
        return self.schema.parts

    @property
    def tables(self) -> Tables:
        """What may be asked: all tables, with the types, ranges and choices of their columns, who is protected, and
        what remains of the budget.
        """
        return describe_tables(self.schema, self.planner.ledger)

    def sql(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, float] | None = None,
        confidence: float = 0.95,
        weights: Mapping[str, Number] | None = None,
        bounds: Mapping[str, int] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Answer a question with noise. `epsilon` is for the whole statement. Or give `within`: the smallest ε is used
        that keeps every column in `within` inside its error with this confidence. `weights` divide ε among the columns.
        `bounds` lower those of the policy for this question, such as {"rows_per_person": 3}: less noise, but more rows
        are left out. A statement may combine the answers of several questions, each a query in FROM or WITH: then each
        has an equal part of ε. One over public tables only is answered exactly, and costs nothing; so is one that no
        row of anybody can change, such as SELECT DISTINCT of declared values.
        """
        options = QuestionOptions(
            epsilon=epsilon, delta=delta, within=within, confidence=confidence, weights=weights, bounds=bounds
        )
        return self.prepare(question, **options).answer(key=key)

    def prepare(self, question: str, **options: Unpack[QuestionOptions]) -> Prepared:
        """A question with its plan, with the options of `sql`: it can be explained, and answered. Spends nothing and
        reads no private data.
        """
        plan = self._free(question) or self._combined(question, options) or self.plan(question, **options)
        return Prepared(self.planner, plan)

    def describe(self, question: str) -> list[AnswerColumn]:
        """The columns that the answer to a question has: their names, Arrow types, and which have noise. No ε is
        needed. Reads nothing private and spends nothing.
        """
        return (self._free(question) or without_rows(self.planner, question)).columns

    def _free(self, question: str) -> Answer | None:
        """The answer to a statement that no row of anybody can change. None for all others."""
        self._check_asks_rows(question)
        return free_answer(self.planner, question)

    def explain(self, question: str, **options: Unpack[QuestionOptions]) -> Explanation:
        """What a question would cost and how large its error may be, with the options of `sql`. Spends nothing."""
        return self.prepare(question, **options).explain(options.get("confidence", 0.95))

    def _combined(self, question: str, options: QuestionOptions) -> CombinedPlan | None:
        """How a statement over several answers would be answered. None if it is one question."""
        combination = combination_in(question, self.schema)
        if combination is None:
            return None
        if not combination.questions:
            combined = CombinedPlan(combination, (), options)
            combined.check()
            return combined
        if options.get("within") is not None or options.get("weights") is not None:
            raise InvalidArgument(
                "within and weights are for one question, and this statement combines the answers of several. "
                "Give epsilon, or ask the questions one by one.",
                code="one-question-only",
            )
        each, many = QuestionOptions(**options), len(combination.questions)
        epsilon, delta = options.get("epsilon"), options.get("delta")
        if epsilon is not None:
            each["epsilon"] = exactly(epsilon, "epsilon") / many
        each["delta"] = exactly(self.planner.delta_per_question if delta is None else delta, "delta") / many
        plans = tuple(self.planner.plan(asked.text(), **each) for asked in combination.questions)
        for asked in combination.questions:
            self._check_answerable(asked, each)
        combined = CombinedPlan(combination, plans, each)
        combined.check()
        return combined

    def _check_answerable(self, asked: Asked, options: QuestionOptions) -> None:
        """Refuse a question that could not be asked with some of the numbers that are asked first."""
        texts = dict.fromkeys(asked.text(example=number) for number in range(1, EXAMPLES)) if asked.needs else ()
        for text in texts:
            try:
                self.planner.plan(text, **options)
            except DiscreetError as error:
                raise NotAllowed(
                    "This question has a plan for some values of the number that is asked first, and for others (0, a "
                    "very large one, or none) it does not. Nothing was charged. Compare with the number, or ask for it "
                    f"alone and write what was released. What would be said: {error}",
                    code="sql-asked-first",
                ) from None

    def cube(
        self,
        table: str,
        by: Cross,
        *,
        total: str | None = None,
        positive: bool = False,
        where: str | None = None,
        epsilon: Number,
        delta: Number | None = None,
    ) -> Answer:
        """The number of rows by all keys, by each part of them, and in total: levels that add up, for one charge. With
        `total`, the sum of that column instead. `by` lists columns and names of declared hierarchies, or hierarchies
        such as ("region", "city"). With `positive`, no number is below 0.
        """
        return self.answer(
            self.plan_cube(table, by, total=total, positive=positive, where=where, epsilon=epsilon, delta=delta)
        )

    def plan_cube(
        self,
        table: str,
        by: Cross,
        *,
        total: str | None = None,
        positive: bool = False,
        where: str | None = None,
        epsilon: Number,
        delta: Number | None = None,
    ) -> Plan:
        """How a cube would be answered, with the options of `cube`. Spends nothing and reads no private data."""
        known = self.schema.tables.get(table) if isinstance(table, str) else None
        if known is None:
            raise InvalidArgument(f"Unknown table. Known: {', '.join(self.schema.tables)}.", code="unknown-table")
        if not isinstance(total, str | None):
            raise InvalidArgument('total must name a column of numbers, such as "cost".', code="wrong-type")
        declared = {one.name: one for one in known.hierarchies}
        levels, shown = list[list[str]](), list[str]()
        for own in crossed(by):
            named = declared.get(own[0]) if len(own) == 1 else None
            places = range(len(own if named is None else named.levels))
            keys = [quote(key) for key in own] if named is None else [named.written(n, quote) for n in places]
            names = own if named is None else named.levels
            levels.append([str(len(shown) + n + 1) for n in places])
            shown += [f"{key} AS {quote(name)}" for key, name in zip(keys, names, strict=True)]
        shown.append("COUNT(*) AS n" if total is None else f"SUM({quote(total)}) AS total")
        text, after = f"SELECT {', '.join(shown)} FROM {quote(table)}", all_levels(levels)
        question = f"{text}{after}" if where is None else Conditioned(text, where, after)
        return replace(self.planner.plan(question, epsilon=epsilon, delta=delta), positive=positive)

    def standing(
        self,
        question: str,
        *,
        every: Block,
        times: int,
        epsilon: Number,
        delta: Number | None = None,
        first: str | None = None,
        totals: bool = False,
        blocks_per_person: int | None = None,
        weights: Mapping[str, Number] | None = None,
        bounds: Mapping[str, int] | None = None,
        today: datetime.date | None = None,
    ) -> Standing:
        """Ask a question of each of `times` blocks of time, from block `first` on, for one charge of `epsilon` in all.

        It is charged now, and answered by `run` after each block has ended. By default it begins with the block of
        today; the same question is not opened twice while its horizon lasts. With `totals`, running totals over all
        blocks have little noise. `blocks_per_person` counts only the first blocks of each person, for less noise.
        """
        options = StandingOptions(every=every, times=times, epsilon=epsilon, delta=delta, first=first, totals=totals)
        options |= {"blocks_per_person": blocks_per_person, "weights": weights, "bounds": bounds, "today": today}
        given = self._horizon(question, **options)
        known = find_standing(self, given, check_day(today)) if first is None else None
        return known or open_standing(self, given)

    def explain_standing(self, question: str, **options: Unpack[StandingOptions]) -> Explanation:
        """What `standing` would charge with these options, and how large the errors may be. Spends nothing."""
        return explain_standing(self, self._horizon(question, **options))

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The standing questions, oldest first: those of this analyst, or for the owner all."""
        return all_standing(self)

    def _horizon(self, question: Any, **options: Unpack[StandingOptions]) -> Horizon:
        """The horizon with these options."""
        if isinstance(question, str):
            self._check_one_question(question)
        return horizon_of(question, self.planner.delta_per_question, **options)

    def _check_one_question(self, question: str) -> None:
        """Refuse a statement that is not one question about private rows."""
        if self._free(question) is not None or combination_in(question, self.schema) is not None:
            raise NotAllowed(
                "A standing question is one question about people: not a statement over several answers, and not one "
                "that costs nothing anyway. Ask its parts.",
                code="standing-one-question",
            )

    def plan(self, question: str, **options: Unpack[QuestionOptions]) -> Plan:
        """How a question would be answered, with the options of `sql`. Spends nothing and reads no private data."""
        self._check_asks_rows(question)
        return self.planner.plan(question, **options)

    def _check_asks_rows(self, question: str) -> None:
        """Answer SHOW TABLES and DESCRIBE in the error: what may be asked is public, and no answer with noise."""
        if asks_for_tables(question):
            shown = shown_tables(question, self.tables)
            raise NotAllowed(
                f"What may be asked is public, and costs nothing. It is in the attribute tables.\n\n{shown}",
                code="sql-not-select",
            )

    def answer(self, plan: Plan, *, key: str | None = None) -> Answer:
        """Answer a planned question."""
        return answer_plan(self.planner, plan, key=key)

    def fit(self, estimator: Estimator, source: str, *, features: Features, target: str | None = None) -> Estimator:
        """Fit a private estimator to columns of a FROM clause: `"visits JOIN cities USING (city) WHERE …"`.

        Ranges and choices of features come from the policy, or from `features`. See `PrivateTable.fit`. A model of a
        part is charged to everything.
        """
        check_estimator(estimator, target)
        plan = self.planner.rows(f"SELECT * FROM {source}", epsilon=estimator.epsilon, delta=estimator.delta)
        # an estimator keeps its ledger, so it is the whole one: with it, it may be fitted to other rows
        whole = replace(self.planner, ledger=self.ledger)
        return Fit(estimator, whole, plan, features, target).release()

    def __repr__(self) -> str:
        parts = "" if self.parts is None else f"; in {', '.join(self.parts)}"
        return f"<Database: {', '.join(self.schema.tables)}{parts}; {self.tables.remains}>"

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()

    def close(self) -> None:
        """Close the engine and the ledger's database."""
        self.engine.close()
        self.ledger.close()


def _charged(ledger: Ledger, schema: Schema) -> Ledger:
    """The view of a ledger that is charged for what these tables release: only their parts, if units live in one."""
    if schema.parts is None or schema.unit.lives_in_one is None:
        return ledger
    return ledger._within(*schema.parts, division=division_of(schema))


def _with_public_values(schema: Schema, engine: Engine) -> Schema:
    """The schema with the values that public tables contain. Groups by these values count as declared."""
    tables = dict(schema.tables)
    for name, table in tables.items():
        if table.public:
            columns = {
                column.name: column if column.choices or column.between else _with_choices(column, table, engine)
                for column in table.columns.values()
            }
            tables[name] = replace(table, columns=columns)
    return replace(schema, tables=tables)


def _with_choices(column: Column, table: Table, engine: Engine) -> Column:
    if column.type not in ("text", "integer", "boolean", "date"):
        return column
    name = engine.dialect.quote(column.name)
    shown = f"SELECT DISTINCT {name} FROM {engine.relations[table.name]} LIMIT {LARGEST_DOMAIN + 1}"
    found = sorted(value for (value,) in engine.rows(shown) if value is not None)
    return replace(column, choices=tuple(found)) if 0 < len(found) <= LARGEST_DOMAIN else column
