"""The steps of a standing question: how the answer of one block is planned, drawn once, and found again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from discreet.datasets.horizon import Horizon
from discreet.datasets.standing_price import with_cost
from discreet.datasets.standing_totals import KEY, RunningTotals
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed
from discreet.guarantees.rules.once import Once
from discreet.ledger import Identity
from discreet.ledger.prepaid import Paid, Prepaid, pay_again
from discreet.ledger.texts.exact import digest, exact_text
from discreet.ledger.views import NotBought
from discreet.mechanisms.selection.threshold import SelectedGroups, order_of
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.key_choice import has_open_keys
from discreet.sql.pricing.relation import Relation
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import answer_plan
from discreet.sql.schema import Schema
from discreet.sql.terms import QuestionOptions

if TYPE_CHECKING:
    from discreet.datasets.database import Database


@dataclass(frozen=True)
class StepPlanner(Planner):
    """Plans the question of one step. A step is the same request whatever version the data have: it is drawn once.

    Groups whose keys are `known`, because an earlier step showed them, are shown from then on.
    """

    step: str = ""
    known: tuple[tuple[Any, ...], ...] = ()

    def with_known(self, keys: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted({*keys, *self.known}, key=order_of)

    def priced(self, *given: Any, **options: Any) -> Plan:
        plan = super().priced(*given, **options)
        if not self.known or not isinstance(plan.price.mechanism, SelectedGroups):
            return plan
        return replace(plan, price=replace(plan.price, mechanism=replace(plan.price.mechanism, known=self.known)))

    def identity(self, relation: Relation, asked: Any, *, old_text: str | None = None, **arguments: Any) -> Identity:
        return Identity(question=exact_text(asked), data_version=self.step, arguments=arguments)


def facts_of(plan: Plan) -> str:
    """A digest of what decides how an answer is measured: the question with its declarations, and its bounds."""
    return digest(exact_text((plan.question.meaning, plan.bounds, plan.price.mechanism if not plan.automatic else "")))


def columns_of(plan: Plan) -> dict[str, list[str]]:
    """The columns of each table that a question reads, as they are recorded when it is opened."""
    return {table.name: list(table.columns) for table in plan.relation.tables(owners=True)}


def as_opened(schema: Schema, columns: Mapping[str, Sequence[str]]) -> Schema:
    """The schema with the columns that tables had when a question was opened: what was added since is not seen."""
    tables = dict(schema.tables)
    for name, listed in columns.items():
        if (table := tables.get(name)) is not None:
            kept = {one: table.columns[one] for one in listed if one in table.columns}
            tables[name] = replace(table, columns=kept)
    return replace(schema, tables=tables)


class StepReader(ABC):
    """Answers the steps of a standing question, and reads what was answered. Forgets the data when it is closed."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        self.database, self.paid, self.horizon = database, paid, horizon
        schema = as_opened(database.planner.schema, paid.definition.get("columns", {}))
        self.planner = replace(database.planner, schema=schema)

    @property
    @abstractmethod
    def facts(self) -> str:
        """A digest of what decides how steps are measured now."""

    @abstractmethod
    def ask(self, block: str) -> Answer:
        """The answer of a step, drawn now if it was not before."""

    @abstractmethod
    def again(self, block: str) -> Answer:
        """The answer of a step that was drawn before."""

    @abstractmethod
    def forget(self) -> None:
        """Drop what was read of the data."""

    def has_nothing(self, block: str) -> bool:
        """Whether a step was answered by showing no group at all, which has no entry of its own."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.forget()

    def ledger(self, block: str, *, asks: bool) -> Prepaid:
        """The account of a step. If it `asks` in a new period, it is paid again."""
        if asks:
            pay_again(self.database.ledger, self.paid, block)
        return Prepaid.step_of(self.database.ledger, self.paid, block, asks=asks)

    @property
    def is_current(self) -> bool:
        """Whether the declarations that the question depends on are still those that were paid for."""
        try:
            return self.facts == self.paid.definition.get("facts")
        except DiscreetError:  # a table or a column is gone
            return False

    def check(self) -> None:
        """Refuse to go on under other declarations than those that were paid for."""
        if self.facts != self.paid.definition.get("facts"):
            raise InvalidArgument(
                "The declarations of the policy that this standing question depends on have changed since it was "
                "opened. Restore them, or open a new standing question.",
                code="standing-declarations",
            )


class BlockReader(StepReader):
    """Each block by itself, by the ordinary way of all answers."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        super().__init__(database, paid, horizon)
        self._answers: dict[str, Answer] = {}

    def ask(self, block: str) -> Answer:
        return self._answer(block, asks=True)

    def again(self, block: str) -> Answer:
        return self._answer(block, asks=False)

    def forget(self) -> None:
        self._answers.clear()

    def _answer(self, block: str, *, asks: bool) -> Answer:
        if block not in self._answers:
            planner, horizon = self.planner, self.horizon
            self.check()
            known = self._known(block)
            ledger = self.ledger(block, asks=asks)
            own = StepPlanner(
                horizon.schema(planner.schema, block),
                planner.engine,
                ledger,
                planner.delta_per_question,
                planner.policy,
                planner.opening,
                ledger.analyst or "",
                known,
            )
            plan = own.plan(horizon.question, **self._options)
            answer = answer_plan(own, plan, key=KEY)
            answer.cost = answer.cost if plan.automatic else with_cost(plan, horizon).cost
            answer.notes = (*answer.notes, f"Paid in advance with receipt {self.paid.entry.receipt}.")
            self._answers[block] = answer
        return self._answers[block]

    @property
    def _options(self) -> QuestionOptions:
        epsilon, delta = (Fraction(part) for part in self.paid.definition["each"])
        weights = dict(self.horizon.weights) or None
        return QuestionOptions(epsilon=epsilon, delta=delta, weights=weights, bounds=self.horizon.bounds)

    @cached_property
    def _planned(self) -> Plan:
        first = self.horizon.schema(self.planner.schema, self.horizon.blocks[0])
        alone = replace(self.planner, schema=first, ledger=None)  # type: ignore[arg-type]
        return alone.plan(self.horizon.question, **self._options)

    @cached_property
    def facts(self) -> str:
        return facts_of(self._planned)

    def _known(self, block: str) -> tuple[tuple[Any, ...], ...]:
        """The keys that earlier blocks have shown, if keys are not declared. All of them must be answered before."""
        if not has_open_keys(self._planned.question) or not (place := self.horizon.in_order(block)):
            return ()
        before = self.again(self.horizon.blocks[place - 1])
        return tuple(sorted(before._columns.keys, key=order_of))

    def has_nothing(self, block: str) -> bool:
        if not self._paid_for_more or not Prepaid.has_entries(self.database.ledger, self.paid, block):
            return False
        if not self.is_current:
            return False
        try:  # an answer without groups is there if all that it depends on is
            self.again(block)
        except NotBought:
            return False
        return True

    @property
    def _paid_for_more(self) -> bool:
        """Whether a step may have several releases: then the choice of groups may be the last one."""
        return not isinstance(self.paid.steps.each, Once)


class TotalsReader(StepReader):
    """Totals of blocks: each step is one row of a measurement of all blocks so far."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        super().__init__(database, paid, horizon)
        self._totals: RunningTotals | None = None

    @property
    def facts(self) -> str:
        return self._planned.planned.facts

    @property
    def _planned(self) -> RunningTotals:
        if self._totals is None:
            self._totals = RunningTotals.again(self.planner, self.horizon, self.paid)
        return self._totals

    @property
    def totals(self) -> RunningTotals:
        """What was measured so far, under the declarations that were paid for."""
        self.check()
        return self._planned

    def forget(self) -> None:
        if self._totals is not None:
            self._totals.forget()

    def ask(self, block: str) -> Answer:
        earlier = self.horizon.blocks[: self.horizon.in_order(block)]
        if missing := [one for one in earlier if not self.totals.has(one, self)]:
            raise NotAllowed(f"{missing[0]} comes first: totals are answered in order.", code="standing-not-yet")
        self.totals.release(block, self.ledger(block, asks=True))
        return self.again(block)

    def again(self, block: str) -> Answer:
        return self.totals.answer(block, self, single=True)

    def total(self, block: str) -> Answer:
        """The sum over all blocks up to one."""
        return self.totals.answer(block, self, single=False)
