"""Standing questions: the same question about each new block of time, charged once for all of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from discreet import html
from discreet.closing import Closed
from discreet.datasets.horizon import Horizon, check_day
from discreet.datasets.standing_price import charge_of, charged, check_blocks, price_step, steps_of, with_cost
from discreet.datasets.standing_totals import RunningTotals, plan_totals
from discreet.errors import BudgetExhausted, InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.once import Once
from discreet.ledger import Identity
from discreet.ledger.exact import digest, exact_text
from discreet.ledger.prepaid import Paid, Prepaid, all_paid, pay
from discreet.ledger.views import NotBought
from discreet.mechanisms.selection.threshold import SelectedGroups, order_of
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.pricing.key_choice import has_open_keys
from discreet.sql.pricing.relation import Relation
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import answer_plan
from discreet.sql.running.explanation import Explanation, describe_plan, explain_plan, lines
from discreet.sql.terms import QuestionOptions

if TYPE_CHECKING:
    from discreet.datasets.database import Database

KEY = "answer"
"""The key of the answer of a step, besides what is found for it."""


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


class Standing(Closed):
    """A question that is asked of each block of a horizon. It was charged when it was opened: its answers are free.

    A block is due once it has ended. `run` answers all that are due, each once, in their order.
    """

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        self._database, self._paid, self.horizon = database, paid, horizon

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def question(self) -> str:
        """The question, in SQL."""
        return self.horizon.question

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the horizon, in order."""
        return self.horizon.blocks

    @property
    def receipt(self) -> str:
        """The entry of the charge for all answers."""
        return self._paid.entry.receipt

    @property
    def analyst(self) -> str | None:
        """Who asked it. None for the owner."""
        return self._paid.entry.analyst

    @property
    def guarantee(self) -> Guarantee:
        """What all answers together cost one unit."""
        return self._paid.entry.guarantee

    # --- what is due, and what was answered -----------------------------------------------------------------

    def due(self, *, today: datetime.date | None = None) -> tuple[str, ...]:
        """The blocks that have ended and are not answered yet. Nothing is read."""
        answered = set(self.answered)
        return tuple(block for block in self.horizon.ended(check_day(today)) if block not in answered)

    @property
    def answered(self) -> tuple[str, ...]:
        """The blocks that were answered."""
        known, reading = Prepaid.answered(self._database.ledger, self._paid, KEY), self._reading()
        return tuple(block for block in self.blocks if block in known or reading.has_nothing(block))

    def run(
        self, *, today: datetime.date | None = None, progress: Callable[[str], None] | None = None
    ) -> dict[str, Answer]:
        """Answer all blocks that are due, in their order: each once, whoever asks. Returns the new answers."""
        day, answers = check_day(today), dict[str, Answer]()
        with self._reading() as reading:
            for block in self.due(today=day):
                if progress is not None:
                    progress(block)
                answers[block] = reading.ask(block)
        return answers

    def answer(self, block: str) -> Answer:
        """The answer for one block, which was given before. Raises if it is not there yet."""
        self.horizon.in_order(block)
        if not self._is_answered(block):
            raise NotAllowed(
                f"{block} is not answered yet. Run the standing question: standing.run().", code="standing-not-yet"
            )
        with self._reading() as reading:
            return reading.again(block)

    @property
    def answers(self) -> dict[str, Answer]:
        """The answers so far, by block."""
        answered = self.answered
        with self._reading() as reading:
            return {block: reading.again(block) for block in answered}

    def total(self, block: str | None = None) -> Answer:
        """The sum over all blocks up to one of them, by default the last that was answered. Costs nothing."""
        if not self.horizon.totals:
            raise InvalidArgument(
                "This question has no running totals. Open one with totals=True: its sums have far less noise than "
                "sums of single answers.",
                code="standing-no-totals",
            )
        answered = self.answered
        if not answered:
            raise NotAllowed(
                "No block is answered yet. Run the standing question: standing.run().", code="standing-not-yet"
            )
        self.horizon.in_order(answered[-1] if block is None else block)
        if block is not None and block not in answered:
            raise NotAllowed(
                f"{block} is not answered yet. Run the standing question: standing.run().", code="standing-not-yet"
            )
        with self._reading() as reading:
            return reading.total(answered[-1] if block is None else block)

    @property
    def table(self) -> Any:
        """All answers as one Arrow table: the block, then the columns of the answer with their errors."""
        import pyarrow as pa

        tables = [
            one.table.add_column(0, "block", pa.array([block] * one.table.num_rows, pa.string()))
            for block, one in self.answers.items()
        ]
        return pa.concat_tables(tables) if tables else pa.table({"block": pa.array([], pa.string())})

    def _is_answered(self, block: str) -> bool:
        return block in self.answered

    def _reading(self) -> _Reading:
        return (_Totals if self.horizon.totals else _Each)(self._database, self._paid, self.horizon)

    def __repr__(self) -> str:
        first, last = self.blocks[0], self.blocks[-1]
        return (
            f"<Standing: {' '.join(self.question.split())}; every {self.horizon.every} from {first} to {last}; "
            f"{len(self.answered)} of {len(self.blocks)} answered; {self.guarantee}; receipt {self.receipt}>"
        )

    def _repr_html_(self) -> str:
        facts = {"question": " ".join(self.question.split()), "every": self.horizon.every}
        facts |= {"from": self.blocks[0], "to": self.blocks[-1], "cost": str(self.guarantee), "receipt": self.receipt}
        return html.facts(facts | {"answered": f"{len(self.answered)} of {len(self.blocks)}"})


# --- opening ------------------------------------------------------------------------------------------------


def open_standing(database: Database, horizon: Horizon) -> Standing:
    """Charge a horizon, or find the one that was charged before."""
    priced = _priced(database, horizon)
    ledger = charged(database.ledger, database.schema, horizon)
    asked = f"{horizon.times} times, every {horizon.every} from {horizon.first}: {horizon.question}"
    definition = horizon.written() | {"facts": priced.facts} | priced.more
    paid = pay(ledger, priced.whole, priced.steps, definition, asked=asked)
    return Standing(database, paid, horizon)


def find_standing(database: Database, horizon: Horizon, today: datetime.date) -> Standing | None:
    """The same question, if it was opened before and its horizon is not over."""
    for one in all_standing(database):
        mine = one.analyst == database.ledger.analyst and one.horizon.same_but_for_time(horizon)
        if mine and len(one.horizon.ended(today)) < one.horizon.times:
            return one
    return None


def all_standing(database: Database) -> tuple[Standing, ...]:
    """All standing questions that this view of the ledger shows, oldest first."""
    found = []
    for paid in all_paid(database.ledger):
        if "every" in paid.definition:
            found.append(Standing(database, paid, Horizon.read(paid.definition)))
    return tuple(found)


def explain_standing(database: Database, horizon: Horizon) -> Explanation:
    """What a standing question would cost, and how large the error of each answer may be. Spends nothing."""
    priced = _priced(database, horizon)
    ledger = charged(database.ledger, database.schema, horizon)
    described = {
        "horizon": f"{horizon.times} times, every {horizon.every}, from {horizon.blocks[0]} to {horizon.blocks[-1]}",
        "cost": f"{horizon.limit} for all answers together, charged once",
        "one unit": f"is in at most {priced.units:,} {'answer' if priced.units == 1 else 'answers'}",
        "charged to": f"each {horizon.every} of the horizon" if database.schema.unit.per else "everything",
    }
    data: dict[str, Any] = {
        "horizon": horizon.written(),
        "blocks": list(horizon.blocks),
        "units": priced.units,
        "guarantee": str(priced.whole),
        "each": describe_plan(priced.plan),
    }
    try:
        left = ledger.after(priced.whole)
        described["then"] = f"{left or 'nothing'} would remain"
        data |= {"fits": True, "remaining": left and str(left)}
    except BudgetExhausted:
        described["then"] = "does NOT fit the ledger"
        data |= {"fits": False, "remaining": None}
    if horizon.totals:
        described["totals"] = priced.said
    text = f"{lines(described)}\n\nEach answer\n===========\n{explain_plan(priced.plan)}"
    explanation = Explanation(text)
    explanation.data = data
    return explanation


@dataclass(frozen=True)
class _Priced:
    steps: Any
    whole: Guarantee
    plan: Plan
    facts: str
    units: int
    more: dict[str, Any]
    said: str = ""


def _priced(database: Database, horizon: Horizon) -> _Priced:
    check_blocks(database.schema, horizon)
    if horizon.totals:
        totals = plan_totals(database.planner, horizon)
        steps = steps_of(database.schema, horizon, totals.rule, joint=True)
        charge = charge_of(charged(database.ledger, database.schema, horizon), steps, horizon)
        more = {"stddevs": [str(one) for one in totals.stddevs], "factored": totals.sums.factored}
        return _Priced(steps, charge, totals.shown(), totals.facts, totals.steps, more, totals.said)
    step = price_step(database.planner, horizon)
    steps = steps_of(database.schema, horizon, step.rule)
    charge = charge_of(charged(database.ledger, database.schema, horizon), steps, horizon)
    more = {"each": [str(step.epsilon), str(step.delta)]}
    return _Priced(steps, charge, with_cost(step.plan, horizon), facts_of(step.plan), steps.units, more)


def facts_of(plan: Plan) -> str:
    """A digest of what decides how an answer is measured: the question with its declarations, and its bounds."""
    return digest(exact_text((plan.question.meaning, plan.bounds, plan.price.mechanism if not plan.automatic else "")))


# --- answering ----------------------------------------------------------------------------------------------


class _Reading:
    """Answers the steps of a standing question, and reads what was answered."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        self.database, self.paid, self.horizon = database, paid, horizon

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing is left open."""

    def ledger(self, block: str, *, asks: bool) -> Prepaid:
        """The account of a step."""
        return Prepaid.step_of(self.database.ledger, self.paid, block, asks=asks)

    def has_nothing(self, block: str) -> bool:
        """Whether a step was answered by showing no group at all, which has no entry of its own."""
        return False

    def ask(self, block: str) -> Answer:
        """The answer of a step, drawn now if it was not before."""
        raise NotImplementedError

    def again(self, block: str) -> Answer:
        """The answer of a step that was drawn before."""
        raise NotImplementedError

    def total(self, block: str) -> Answer:
        """The total up to a step."""
        raise NotImplementedError

    def check(self, facts: str) -> None:
        """Refuse to go on under other declarations than those that were paid for."""
        if facts != self.paid.definition.get("facts"):
            raise InvalidArgument(
                "The declarations of the policy that this standing question depends on have changed since it was "
                "opened. Restore them, or open a new standing question.",
                code="standing-declarations",
            )


class _Each(_Reading):
    """One answer for each block, by the ordinary way of all answers."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        super().__init__(database, paid, horizon)
        self._answers: dict[str, Answer] = {}
        self._checked = False

    def ask(self, block: str) -> Answer:
        return self._answer(block, asks=True)

    def again(self, block: str) -> Answer:
        return self._answer(block, asks=False)

    def _answer(self, block: str, *, asks: bool) -> Answer:
        if block not in self._answers:
            planner, horizon = self.database.planner, self.horizon
            self._check_facts(planner)
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

    def _check_facts(self, planner: Planner) -> None:
        if not self._checked:
            first = self.horizon.schema(planner.schema, self.horizon.blocks[0])
            alone = replace(planner, schema=first, ledger=None)  # type: ignore[arg-type]
            plan = alone.plan(self.horizon.question, **self._options)
            self._open_keys = has_open_keys(plan.question)
            self.check(facts_of(plan))
            self._checked = True

    def _known(self, block: str) -> tuple[tuple[Any, ...], ...]:
        """The keys that earlier blocks have shown, if keys are not declared. All of them must be answered before."""
        if not self._open_keys or not (place := self.horizon.in_order(block)):
            return ()
        before = self.again(self.horizon.blocks[place - 1])
        return tuple(sorted(before._columns.keys, key=order_of))

    def has_nothing(self, block: str) -> bool:
        if not self._paid_for_more or not Prepaid.has_entries(self.database.ledger, self.paid, block):
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


class _Totals(_Reading):
    """Running totals: one step of a measurement of all blocks so far."""

    def __init__(self, database: Database, paid: Paid, horizon: Horizon) -> None:
        super().__init__(database, paid, horizon)
        self._totals: RunningTotals | None = None

    @property
    def totals(self) -> RunningTotals:
        if self._totals is None:
            self._totals = RunningTotals.again(self.database.planner, self.horizon, self.paid)
            self.check(self._totals.planned.facts)
        return self._totals

    def __exit__(self, *_: Any) -> None:
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
        return self.totals.answer(block, self, single=False)
