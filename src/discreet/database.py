"""A data set that is asked in SQL: what one analyst connects to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.door import through
from discreet.engines.duckdb import DuckDB
from discreet.errors import InvalidArgument, NotAllowed
from discreet.ledger import Identity, Ledger, version_of
from discreet.sql.answer import Answer
from discreet.sql.compile import Bounds
from discreet.sql.intervals import Columns
from discreet.sql.measure import Cells, measured
from discreet.sql.plan import Question
from discreet.sql.price import Price, priced
from discreet.sql.schema import Schema
from discreet.sql.understand import understood


@dataclass(frozen=True)
class Plan:
    """A question, what it costs and how it will be answered: everything that is decided before data is read."""

    question: Question
    bounds: Bounds | None
    cells: Cells
    price: Price


class Database:
    """Tables under one ledger, asked in SQL."""

    def __init__(
        self, schema: Schema, engine: DuckDB, ledger: Ledger, *, delta_per_question: Any = 0, policy: str = ""
    ) -> None:
        if ledger.protects != schema.unit:
            raise InvalidArgument(f"The ledger protects {ledger.protects!r}, but the policy says {schema.unit!r}.")
        self.schema, self.engine, self.ledger = schema, engine, ledger
        self.delta_per_question, self.policy = delta_per_question, policy

    def sql(
        self,
        question: str,
        *,
        epsilon: Any = None,
        delta: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Answer a question with noise: `epsilon` for the whole statement, or the smallest one that keeps every column
        of `within` inside its error with this confidence.
        """
        plan = self.plan(question, epsilon=epsilon, delta=delta, within=within, confidence=confidence, weights=weights)
        return self.answer(plan, key=key)

    def plan(
        self,
        question: str | Question,
        *,
        epsilon: Any = None,
        delta: Any = None,
        within: Mapping[str, Any] | None = None,
        confidence: Any = 0.95,
        weights: Mapping[str, Any] | None = None,
    ) -> Plan:
        """How a question would be answered, from public facts; spends nothing and reads no data."""
        asked = understood(question, self.schema) if isinstance(question, str) else question
        if not isinstance(asked, Question):
            raise InvalidArgument("A question is a text in SQL, such as SELECT COUNT(*) FROM visits.")
        undeclared = [key.name for key in asked.keys if key.domain is None]
        if undeclared:
            raise NotAllowed(
                f"The values of {undeclared[0]} are not declared, so the groups themselves would tell who is there. "
                f"Declare choices for it in the policy, or group by a CASE."
            )
        bounds, cells = self._bounds(asked), Cells(asked)
        slack = self.delta_per_question if delta is None else delta
        if (epsilon is None) == (within is None):
            raise InvalidArgument("Say what the answer may cost, with epsilon=, or how wrong it may be, with within=.")
        if within is not None:
            epsilon = self._least_epsilon(asked, bounds, cells, slack, within, confidence, weights)
        price = priced(asked, self.schema.unit, bounds, cells.count, epsilon=epsilon, delta=slack, weights=weights)
        return Plan(asked, bounds, cells, price)

    def _bounds(self, question: Question) -> Bounds | None:
        if question.relation.person is None:
            return None
        private = [table for table in question.relation.tables() if not table.public]
        rows = max(table.rows_per_person or 1 for table in private)
        declared = [t.groups_per_person for t in private if isinstance(t.groups_per_person, int)]
        groups = min(rows, *declared) if declared else rows
        in_group = [t.rows_per_group for t in private if t.rows_per_group is not None]
        per_group = min(rows, *in_group) if in_group else rows
        if not question.keys:
            return Bounds(rows, 1, rows)
        return Bounds(rows, groups, per_group)

    def _least_epsilon(
        self,
        question: Question,
        bounds: Bounds | None,
        cells: Cells,
        delta: Any,
        within: Mapping[str, Any],
        confidence: Any,
        weights: Mapping[str, Any] | None,
    ) -> float:
        """The smallest ε, to three digits, whose errors stay inside what was asked for."""
        goals = _goals(question, within)

        def keeps(epsilon: float) -> bool:
            price = priced(
                question, self.schema.unit, bounds, cells.count, epsilon=epsilon, delta=delta, weights=weights
            )
            return all(_error(question, price, part, confidence) <= float(amount) for part, amount in goals)

        low, high = 1e-6, 1e-6
        while not keeps(high):
            low, high = high, high * 4
            if high > 1e5:
                raise InvalidArgument("No ε up to 1e5 makes the answer as accurate as within= asks. Ask for less.")
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return float(f"{high:.4g}") if keeps(float(f"{high:.4g}")) else high

    def answer(self, plan: Plan, *, key: str | None = None) -> Answer:
        """Charge, read, draw, keep, hand out."""
        question, price = plan.question, plan.price
        release = through(
            lambda: tuple(measured(question, self.engine, plan.bounds, plan.cells)),
            price.mechanism,
            price.guarantee,
            ledger=self.ledger,
            asked=" ".join(question.text.split()),
            key=key,
            identity=self._identity(question),
        )
        columns = Columns(question, price, release.value, plan.cells.keys())
        return Answer(question, columns, release, notes=())

    def _identity(self, question: Question) -> Identity | None:
        """What makes the same question the same; None when the version of some data is not known."""
        versions = []
        for table in question.relation.tables():
            if table.version is not None:
                versions.append(f"{table.name}: {table.version}")
            elif isinstance(table.source, str) or hasattr(table.source, "__fspath__"):
                versions.append(f"{table.name}: {version_of(table.source)}")
            else:
                return None
        return Identity(
            question=" ".join(question.text.split()), data_version="; ".join(versions), policy=self.policy, arguments={}
        )


def _goals(question: Question, within: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """The measures that must be accurate, and how accurate in steps of each."""
    if not isinstance(within, Mapping) or not within:
        raise InvalidArgument('within names columns and their errors, such as {"visits": 50}.')
    outputs = {output.name.lower(): output for output in question.outputs}
    goals: list[tuple[int, Any]] = []
    for name, amount in within.items():
        output = outputs.get(str(name).lower())
        if output is None:
            raise InvalidArgument(f"within names {name}, which is no column of the answer.")
        aggregate = next((a for a in question.aggregates if output.expr == _ref(a)), None)
        if aggregate is None or aggregate.kind not in ("count", "sum"):
            raise NotAllowed(
                f"The error of {name} depends on the data, so no ε promises it in advance. "
                "Ask within= for counts and sums."
            )
        if not isinstance(amount, int | float) or not amount > 0:
            raise InvalidArgument(f"within of {name} must be an error above 0.")
        goals.append((aggregate.parts[0], amount))
    return goals


def _ref(aggregate: Any) -> Any:
    from discreet.sql.expressions import Ref

    return Ref(aggregate.field)


def _error(question: Question, price: Price, part: int, confidence: Any) -> float:
    amount = float(price.mechanism.mechanisms[part].error(confidence))
    return amount * float(question.measures[part].step)
