"""Standing questions: the same question about each new block of time, charged once for all of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet import html
from discreet.closing import Closed
from discreet.datasets.horizon import Horizon, check_day
from discreet.datasets.standing_price import charge_of, charged, check_blocks, price_step, steps_of, with_cost
from discreet.datasets.standing_steps import BlockReader, StepReader, TotalsReader, columns_of, facts_of
from discreet.datasets.standing_totals import KEY, plan_totals
from discreet.errors import BudgetExhausted, InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.prepaid import Paid, Prepaid, all_paid, pay
from discreet.sql.plan import Plan
from discreet.sql.running.answer import Answer
from discreet.sql.running.explanation import Explanation, describe_plan, explain_plan, lines

if TYPE_CHECKING:
    from discreet.datasets.database import Database


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

    @property
    def is_current(self) -> bool:
        """Whether the declarations that it depends on are still those that were paid for. Otherwise it stops."""
        with self._reading() as reading:
            return reading.is_current

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
        with TotalsReader(self._database, self._paid, self.horizon) as reading:
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

    def _reading(self) -> StepReader:
        return (TotalsReader if self.horizon.totals else BlockReader)(self._database, self._paid, self.horizon)

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
    for one in all_standing(database):
        same = one.analyst == database.ledger.analyst and one.horizon.written() == horizon.written()
        if same and one.is_current:
            return one
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
        more: dict[str, Any] = {"stddevs": [str(one) for one in totals.stddevs], "factored": totals.sums.factored}
        more["columns"] = columns_of(totals.plan)
        return _Priced(steps, charge, totals.shown(), totals.facts, totals.steps, more, totals.said)
    step = price_step(database.planner, horizon)
    steps = steps_of(database.schema, horizon, step.rule)
    charge = charge_of(charged(database.ledger, database.schema, horizon), steps, horizon)
    more = {"each": [str(step.epsilon), str(step.delta)], "columns": columns_of(step.plan)}
    return _Priced(steps, charge, with_cost(step.plan, horizon), facts_of(step.plan), steps.units, more)
