"""The way of every question about one table: planned, settled, charged, read, drawn, and handed out with its error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from discreet.closing import Closed
from discreet.datasets.database import Database, new_opening
from discreet.door import through
from discreet.engines.duckdb.dialect import quoted
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_delta
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.ledger import Identity, Ledger
from discreet.releases import Release
from discreet.sql.plan import Plan
from discreet.sql.reading.parse import Conditioned
from discreet.sql.schema import Column, Schema, Table, Type, checked_choice, implied_type, listed_choices
from discreet.tables import distributions
from discreet.tables import fit as fitting
from discreet.tables.distributions import Drawing

NAME = "data"
"""How the table is called in SQL."""


class Asking(Closed):
    """A table, the ledger that pays for its answers, and the engine that reads it."""

    def __init__(self, ledger: Ledger, table: Table, engine: DuckDB) -> None:
        self._ledger, self._table, self._engine = ledger, table, engine
        self._opening = new_opening()

    def _number(
        self,
        aggregate: str,
        between: Mapping[str, Any],
        epsilon: Any,
        delta: Any,
        where: str | None,
        shown: Callable[[Any], Any] = lambda value: value,
    ) -> Release:
        asked = self._asked(f"SELECT {aggregate} AS value FROM {NAME}", where, between, {}, epsilon, delta)
        return self._answered(*asked, lambda answer: shown(answer["value"][0]), of_one)

    def _column(self, name: Any) -> Column:
        """A column of the table, by its name."""
        known = self._table.columns
        if not isinstance(name, str):
            raise InvalidArgument(f"A column is named by a text, such as {next(iter(known))!r}.")
        if name not in known:
            raise InvalidArgument(f"There is no column {name}. Known: {', '.join(known)}.")
        return known[name]

    def _written(self, column: Any) -> str:
        """A column of the table, as SQL writes it."""
        return quoted(self._column(column).name)

    def _kind(self, column: str, between: Any) -> Type:
        """The type of a column; of a text file, the one that follows from the range it is given."""
        return self._typed(self._column(column), between, None).type

    def _typed(self, column: Column, between: Any, choices: Any) -> Column:
        kind = implied_type(between, choices)
        fixed = column.declared or column.name == self._table.person or not self._engine.reads_text(NAME, column.name)
        if kind == "other" or fixed:
            return column
        return replace(column, type=kind)

    def _check_fits(self, counting: Drawing, plan: Plan, rest: Callable[[], Drawing]) -> None:
        """Refuse before anything is spent what does not fit as a whole; what was counted before is free."""
        drawn, known = counting.mechanism, self._identity(counting)
        if self._ledger.knows(counting.guarantee, asked=counting.what, mechanism=drawn, key=None, identity=known):
            return
        pure = not check_delta(plan.terms["delta"])
        left = distributions.allowed(plan) if pure else rest().guarantee
        self._ledger.after(*(finding.guarantee for finding in plan.first), counting.guarantee, left)

    def _identity(self, one: Drawing) -> Identity:
        """All arguments of a method, the meaning of its rows, and what was found of them."""
        plan = one.plan
        meant = (one.method, dict(one.arguments), plan.question.meaning, plan.bounds)
        return one.database.identity(plan.question.relation, meant, before=one.before, found=list(plan.found))

    def _at_least(self, counting: Drawing) -> float:
        """About how many values a column has at least."""
        return float(self._drawn(counting).value[0]) - float(counting.mechanism.error(0.995))

    def _settled(self, database: Database, plan: Plan) -> Plan:
        return database.settled(plan)

    def _fit(self, *given: Any) -> Any:
        return fitting.fitted(*given)

    def _told(self, line: str) -> None:
        """Progress, for a person who watches."""
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    def _asked(
        self,
        text: str,
        where: str | None,
        between: Mapping[str, Any],
        choices: Mapping[str, Any],
        epsilon: Any,
        delta: Any,
        after: str = "",
    ) -> tuple[Database, Plan]:
        """The question in SQL, with what is declared for it alone; `after` is what stands after its WHERE."""
        listed = {name: None if given is None else listed_choices(given, name) for name, given in choices.items()}
        columns = dict(self._table.columns)
        for name in (*between, *listed):
            columns[name] = self._typed(self._column(name), between.get(name), listed.get(name))
        for name, ends in between.items():
            columns[name] = replace(columns[name], between=ends)
        for name, given in listed.items():
            kind = columns[name].type
            if given is not None and kind != "other":  # what has no type of ours is refused for what it is
                given = tuple(checked_choice(value, kind, name) for value in given)
            columns[name] = replace(columns[name], choices=given)
        engine = self._engine.typed(NAME, {name: column.type for name, column in columns.items()})
        schema = Schema(unit=self._ledger.protects, tables={NAME: replace(self._table, columns=columns)})
        bounds = (self._table.rows_per_person, self._table.groups_per_person, self._table.rows_per_group)
        declared = repr((bounds, [(c.name, c.between, c.choices, c.type) for _, c in sorted(columns.items())]))
        database = Database(schema, engine, self._ledger, policy=declared, opening=self._opening)
        source = text + after if where is None else Conditioned(text, where, after)
        return database, database.plan(source, epsilon=epsilon, delta=delta)

    def _answered(
        self, database: Database, plan: Plan, value_of: Callable[[Any], Any], error_of: Callable[..., Accuracy]
    ) -> Release:
        plan = database.settled(plan)
        answer = database.answer(plan)
        shown = {name: answer.table.column(name).to_pylist() for name in answer.table.column_names}
        error = HowWrong(partial(error_of, answer, plan))
        return replace(answer.release, value=value_of(shown), _mechanism=error, _sizes={})

    def _drawn(self, one: Drawing) -> Release:
        """Charge, read, draw, keep, hand out."""
        release = through(
            one.read,
            one.mechanism,
            one.guarantee,
            ledger=self._ledger,
            asked=one.what,
            identity=self._identity(one),
        )
        return one.finish(release)


# --- how wrong an answer may be -------------------------------------------------------------------------------


class HowWrong:
    """How wrong an answer may be, worked out when it is asked for."""

    def __init__(self, of: Callable[[float], Accuracy]) -> None:
        self._of = of

    def error(self, confidence: Any) -> Accuracy:
        return self._of(check_confidence(confidence))


def of_one(answer: Any, plan: Plan, confidence: float) -> Accuracy:
    """Half the interval of the one value; for a quantile with the bound in ranks beside it."""
    quantile = plan.question.aggregates[0].kind == "quantile"
    ranks = float(plan.price.parts[0].error(confidence)) if quantile else None
    return _half(answer, ["value"], confidence, ranks)


def of_all(answer: Any, plan: Plan, confidence: float) -> Accuracy:
    """Half the widest of the quantiles' intervals, which hold together."""
    each = 1 - (1 - confidence) / len(plan.price.parts)
    ranks = max(float(part.error(each)) for part in plan.price.parts)
    return _half(answer, [output.name for output in plan.question.outputs], each, ranks, confidence)


def _half(
    answer: Any, names: Sequence[str], each: float, ranks: float | None, confidence: float | None = None
) -> Accuracy:
    table, sure = answer.with_errors(each), each if confidence is None else confidence
    halves = [table.column(f"{name}_error").to_pylist()[0] for name in names]
    of = "value" if len(names) == 1 else "every value"
    if any(half is None for half in halves):
        reason = "the interval is drawn with the answer, for 95%" if ranks else "no interval is known for this answer"
        return Accuracy(amount=None, confidence=sure, of=of, reason=reason, ranks=ranks)
    return Accuracy(amount=max(halves), confidence=sure, of=of, ranks=ranks)


def of_counts(answer: Any, plan: Plan, confidence: float) -> Accuracy:
    return plan.price.parts[0].error(confidence)  # type: ignore[no-any-return]
