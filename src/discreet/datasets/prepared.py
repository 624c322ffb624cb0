"""A question that is planned: what it would charge, how it is explained, and its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.closing import Closed
from discreet.errors import BudgetExhausted, DiscreetError, NotAllowed
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.texts.exact import digest, exact_text
from discreet.ledger.views import NotBought, Replays
from discreet.sql.plan import Plan
from discreet.sql.planner import Planner
from discreet.sql.reading.asked_first import Asked
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import answer_plan, fingerprints, foreseen, owed, unpaid
from discreet.sql.running.combined import CombinedAnswer, CombinedPlan, last_answer, rows_of_tables
from discreet.sql.running.explanation import Explanation, explain_all, explain_free, explain_plan
from discreet.sql.terms import QuestionOptions


@dataclass(frozen=True, repr=False)
class Prepared(Closed):
    """A question with its plan. Until it is answered, nothing private is read, and nothing is spent.

    It is one of three: an answer that is free, a statement over several answers, or one question with its `plan`.
    """

    planner: Planner
    plan: Plan | CombinedPlan | Answer

    def answer(self, *, key: str | None = None) -> Answer:
        """The answer, after its cost is charged."""
        match self.plan:
            case Answer():
                return self.plan
            case Plan():
                return answer_plan(self.planner, self.plan, key=key)
        answers = self._answers(self.plan, key)
        if self.plan.combination.is_last:
            return last_answer(answers, self.planner.ledger)
        public = rows_of_tables(self.plan.combination, self.planner.engine)
        return CombinedAnswer(self.plan.combination, answers, public, self.planner.ledger)

    def owed(self, *, key: str | None = None) -> list[Guarantee]:
        """What the answer would charge at most, release by release: first what is found for it, then the answer."""
        match self.plan:
            case Answer():
                return []
            case Plan():
                return owed(self.planner, self.plan, key)
        keys, plans = keys_of(key, len(self.plan.plans)), self.plan.plans
        return [cost for own, plan in zip(keys, plans, strict=True) for cost in self._owed(plan, own)]

    @property
    def charges(self) -> list[Guarantee]:
        """What the answer would charge if nothing of it was bought before."""
        plans = [self.plan] if isinstance(self.plan, Plan) else getattr(self.plan, "plans", ())
        return [cost for plan in plans for cost in plan.charges]

    def _owed(self, plan: Plan, key: str | None) -> list[Guarantee]:
        """What a question of a statement would charge. The errors of a statement are simulated from noises that do not
        depend on each other, so nothing in it is derived from earlier answers.
        """
        return owed(self.planner, plan, key, derives=False)

    def fingerprint(self, sql: str) -> str:
        """One name for what is measured and what it costs, however it is written. If that depends on what is asked
        first, or cannot be told from something else, the text `sql` is a part of the name.
        """
        plans = [self.plan] if isinstance(self.plan, Plan) else getattr(self.plan, "plans", ())
        names = [name for plan in plans for name in fingerprints(self.planner, plan)]
        shares = [sorted((plan.terms.weights or {}).items()) for plan in plans]  # of what bounds are found for, too
        asks_first = isinstance(self.plan, CombinedPlan) and any(one.needs for one in self.plan.combination.questions)
        text = [sql.strip()] if asks_first or not all(names) else []
        return digest(exact_text(("question", names, shares, text)))

    @property
    def finds_bounds(self) -> bool:
        """Whether bounds are found first, or numbers that another question needs. Until then, what is owed for the rest
        is not known, only what it is at most.
        """
        match self.plan:
            case Answer():
                return False
            case Plan():
                return bool(self.plan.automatic)
        asks_first = any(asked.needs for asked in self.plan.combination.questions)
        return asks_first or any(plan.automatic for plan in self.plan.plans)

    @property
    def epsilon(self) -> Fraction:
        """The ε of the whole statement, whether or not a part of it was bought before."""
        match self.plan:
            case Answer():
                return Fraction(0)
            case Plan():
                return exactly(self.plan.cost.epsilon)
        return sum((exactly(plan.cost.epsilon) for plan in self.plan.plans), Fraction(0))

    def epsilon_of(self, owed: Sequence[Guarantee]) -> Fraction:
        """The ε of what is owed. Less than that of the whole statement, if a part of it follows from earlier answers or
        was bought before.
        """
        plans = [self.plan] if isinstance(self.plan, Plan) else getattr(self.plan, "plans", ())
        delta = min((plan.price.delta for plan in plans), default=Fraction(0))
        found = Fraction(0)
        for cost in owed:
            largest = None if cost.infinite else cost.largest_loss
            at = cost.epsilon_at(delta=delta) if largest is None else largest
            if not math.isfinite(at):
                return self.epsilon
            found += exactly(at)
        return min(found, self.epsilon)

    def explain(
        self,
        confidence: float = 0.95,
        *,
        budget: bool = True,
        finds: bool = True,
        owed: Sequence[Guarantee] | None = None,
    ) -> Explanation:
        """What the answer would cost and how large its error may be, and with `budget` what would remain, or why it
        would be refused. If it `finds` answers, those are named that imply it, or a part of it. `owed` is what would be
        charged now, if it is known.
        """
        ledger = self.planner.ledger if budget else None
        match self.plan:
            case Answer():
                return explain_free(self.plan.free)
            case Plan():
                decided = foreseen(self.planner, self.plan) if finds else None
                return explain_plan(self.plan, ledger=ledger, confidence=confidence, decided=decided, owed=owed)
        needs = [asked.needs for asked in self.plan.combination.questions]
        charges = self.charges if owed is None else owed
        return explain_all(self.plan.plans, needs, ledger=ledger, confidence=confidence, owed=charges)

    def _answers(self, combined: CombinedPlan, key: str | None) -> list[Answer]:
        """The answers of the questions in a statement. What an earlier one released is known to those that need it."""
        keys = keys_of(key, len(combined.plans))
        self._check_fits(combined, keys)
        answers: dict[int, Answer] = {}
        for number in range(len(keys)):
            answers[number] = self._answer_to(number, combined, keys[number], answers)
        return list(answers.values())

    def _answer_to(self, number: int, combined: CombinedPlan, key: str | None, answers: Mapping[int, Answer]) -> Answer:
        """The answer to one question of a statement, with the released numbers that it needs."""
        asked, plan = combined.combination.questions[number], combined.plans[number]
        if asked.needs:
            released = {need: answers[need].table.column(0).to_pylist() for need in asked.needs}
            plan = self._planned_with(asked, released, combined.options)
        return answer_plan(self.planner, plan, key=key, derives=False)

    def _check_fits(self, combined: CombinedPlan, keys: Sequence[str | None]) -> None:
        """Refuse, before any question is asked, a statement that does not fit the budget with all that is unpaid."""
        costs = [unpaid(self.planner, plan, own, derives=False) for own, plan in zip(keys, combined.plans, strict=True)]
        try:
            self._check_after(costs)
        except BudgetExhausted:
            bought = self._bought(combined, keys)
            if not bought:
                raise
            self._check_after([own for number, own in enumerate(costs) if number not in bought])

    def _check_after(self, costs: Sequence[Sequence[Guarantee]]) -> None:
        if together := [cost for own in costs for cost in own]:
            self.planner.ledger.after(*together)

    def _bought(self, combined: CombinedPlan, keys: Sequence[str | None]) -> dict[int, Answer]:
        """The answers that were bought before. What a question asks the ledger for may depend on what it finds first,
        or on other answers: then only a ledger that charges nothing can tell.
        """
        tried = replace(self, planner=replace(self.planner, ledger=Replays.of(self.planner.ledger)))
        found: dict[int, Answer] = {}
        for number, asked in enumerate(combined.combination.questions):
            if found.keys() >= {*asked.needs}:
                with suppress(NotBought, BudgetExhausted):
                    found[number] = tried._answer_to(number, combined, keys[number], found)
        return found

    def _planned_with(self, asked: Asked, released: Mapping[int, Sequence[Any]], options: QuestionOptions) -> Plan:
        try:
            return self.planner.plan(asked.text(released), **options)
        except DiscreetError as error:
            shown = "; ".join(", ".join(map(str, values[:20])) for values in released.values())
            raise NotAllowed(
                f"The numbers that are asked first were answered and charged: {shown}. The question around them cannot "
                f"be asked with these numbers, and was not charged. {error}",
                code="sql-asked-first",
            ) from None


def keys_of(key: str | None, number: int) -> list[str | None]:
    """The keys of the questions in a statement, from that of the statement."""
    return [None if key is None else f"{key}/{place}" for place in range(number)]
