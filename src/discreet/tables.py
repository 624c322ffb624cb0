"""One table, asked by methods: the same questions as in SQL, with the bounds given where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.database import Database
from discreet.door import through
from discreet.engines.duckdb import DuckDB, quoted
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger
from discreet.mechanisms.exponential import PermuteAndFlip
from discreet.policy import check_type
from discreet.queries.sensitivity import Sensitivity
from discreet.releases import Release
from discreet.sql.explanation import explained
from discreet.sql.measure import measured
from discreet.sql.price import Plan
from discreet.sql.schema import Column, Schema, Table, implied_type

NAME = "data"


class PrivateTable:
    """A table under a ledger. Every method answers with noise, once the ledger is charged.

    `epsilon` is what an answer may cost; `delta` is 0 unless given, and then Gaussian noise is used where it is better.
    `between` clamps values to a public range, or to one that is found privately for a tenth of ε (`"auto"`); `where` is
    a condition in SQL.
    """

    def __init__(self, ledger: Ledger, table: Table, engine: DuckDB) -> None:
        self._ledger, self._table, self._engine = ledger, table, engine

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the columns."""
        return {name: column.type for name, column in self._table.columns.items()}

    @property
    def explain(self) -> Explained:
        """The same methods with the same arguments: what they would cost and how wrong they may be; spends nothing."""
        return Explained(self._ledger, self._table, self._engine)

    # --- answers in numbers -------------------------------------------------------------------------------

    def count(self, of: str = "rows", *, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """How many rows there are, or how many people: `count("people", …)`."""
        if of not in ("rows", "people"):
            raise InvalidArgument('count takes "rows" or "people".')
        person = self._table.person
        counted = f"COUNT(DISTINCT {quoted(person)})" if of == "people" and person is not None else "COUNT(*)"
        return self._number(counted, {}, epsilon, delta, where)

    def sum(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The sum of a column."""
        return self._number(f"SUM({quoted(column)})", {column: between}, epsilon, delta, where)

    def mean(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The mean of a column, from a noisy sum and a noisy count."""
        return self._number(f"AVG({quoted(column)})", {column: between}, epsilon, delta, where)

    def variance(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The sample variance of a column."""
        return self._number(f"VAR_SAMP({quoted(column)})", {column: between}, epsilon, delta, where)

    def median(self, column: str, *, between: Any, epsilon: Any, where: str | None = None) -> Release:
        """The median of a column, chosen from a public grid."""
        return self._number(f"MEDIAN({quoted(column)})", {column: between}, epsilon, 0, where)

    def quantiles(
        self, column: str, at: Sequence[Any], *, between: Any, epsilon: Any, where: str | None = None
    ) -> Release:
        """Several quantiles of a column, as an array in the order asked."""
        names = [f"q{number}" for number, _ in enumerate(at)]
        shown = ", ".join(
            f"QUANTILE_CONT({quoted(column)}, {float(share)!r}) AS {name}"
            for name, share in zip(names, at, strict=True)
        )
        asked = self._asked(f"SELECT {shown} FROM {NAME}{_where(where)}", {column: between}, {}, epsilon, 0)
        return self._answered(*asked, lambda answer: np.array([answer[name][0] for name in names]), _all)

    # --- answers by value ---------------------------------------------------------------------------------

    def histogram(
        self,
        column: str,
        *,
        choices: Sequence[Any] | None = None,
        epsilon: Any,
        delta: Any = 0,
        where: str | None = None,
    ) -> Release:
        """How many rows there are for each value, as a dict. Without `choices`, only values that enough people have are
        shown, which needs a `delta`.
        """
        asked = self._asked(_by_value(column, where), {}, {column: choices}, epsilon, delta)
        return self._answered(*asked, lambda answer: dict(zip(answer["value"], answer["n"], strict=True)), _counts)

    def most_common(self, column: str, *, choices: Sequence[Any], epsilon: Any, where: str | None = None) -> Release:
        """The value that most rows have, nearly: chosen by noisy votes among declared ones."""
        database, plan = self._asked(_by_value(column, where), {}, {column: choices}, epsilon, 0)
        return self._chosen(database, plan, epsilon)

    # --- the way ------------------------------------------------------------------------------------------

    def _number(
        self, aggregate: str, between: Mapping[str, Any], epsilon: Any, delta: Any, where: str | None
    ) -> Release:
        text = f"SELECT {aggregate} AS value FROM {NAME}{_where(where)}"
        return self._answered(
            *self._asked(text, between, {}, epsilon, delta), lambda answer: answer["value"][0], _first
        )

    def _asked(
        self, text: str, between: Mapping[str, Any], choices: Mapping[str, Any], epsilon: Any, delta: Any
    ) -> tuple[Database, Plan]:
        """The question in SQL, with what is declared for it alone."""
        columns = dict(self._table.columns)
        for name in (*between, *choices):
            if name not in columns:
                raise InvalidArgument(f"There is no column {name}. Known: {', '.join(columns)}.")
            kind = implied_type(between.get(name), choices.get(name))
            if self._engine.reads_text(NAME) and not columns[name].declared and kind != "other":
                columns[name] = replace(columns[name], type=kind)
        for name, ends in between.items():
            columns[name] = replace(columns[name], between=ends)
        for name, listed in choices.items():
            columns[name] = replace(columns[name], choices=None if listed is None else tuple(listed))
        engine = self._engine.typed(NAME, {name: column.type for name, column in columns.items()})
        schema = Schema(unit=self._ledger.protects, tables={NAME: replace(self._table, columns=columns)})
        bounds = (self._table.rows_per_person, self._table.groups_per_person, self._table.rows_per_group)
        declared = repr((bounds, [(c.name, c.between, c.choices, c.type) for _, c in sorted(columns.items())]))
        database = Database(schema, engine, self._ledger, policy=declared)
        return database, database.plan(text, epsilon=epsilon, delta=delta)

    def _answered(
        self, database: Database, plan: Plan, value_of: Callable[[Any], Any], error_of: Callable[..., Accuracy]
    ) -> Release:
        plan = database.settled(plan)
        answer = database.answer(plan)
        shown = {name: answer.table.column(name).to_pylist() for name in answer.table.column_names}
        error = _Error(lambda confidence: error_of(answer, plan, confidence))
        return replace(answer.release, value=value_of(shown), _mechanism=error, _sizes={})

    def _chosen(self, database: Database, plan: Plan, epsilon: Any) -> Release:
        cells = plan.cells
        assert cells is not None  # choices are declared
        choose, bound = _votes(plan, self._ledger.protects, epsilon)
        return through(
            lambda: measured(plan.question, database.engine, plan.bounds, cells)[0],
            choose,
            choose.guarantee(bound),
            ledger=self._ledger,
            asked=f"most common of {' '.join(plan.question.text.split())}",
            identity=database.identity(plan.question.same, plan.question.relation),
        )


class Explained(PrivateTable):
    """The methods of a table, each saying what it would do."""

    def _answered(self, database: Database, plan: Plan, *_: Any) -> Any:
        return explained(plan)

    def _chosen(self, database: Database, plan: Plan, epsilon: Any) -> Any:
        choose, bound = _votes(plan, self._ledger.protects, epsilon)
        return f"{choose!r}: {choose.guarantee(bound)}; {choose.error(0.95)}"


def _votes(plan: Plan, unit: Unit, epsilon: Any) -> tuple[PermuteAndFlip, Sensitivity]:
    """The choice of one value by the rows that have it, of which one person has a few."""
    assert plan.cells is not None  # choices are declared
    listed = tuple(key for (key,) in plan.cells.keys())  # noqa: SIM118 - not a dict
    added = unit.neighbors == "add_or_remove"
    votes = 1 if plan.bounds is None else plan.bounds.per_group
    bound = Sensitivity(votes, "Linf", unit, len(listed), grain=1, monotone=added)
    return PermuteAndFlip.for_guarantee(Pure(epsilon=epsilon), sensitivity=bound, choices=listed), bound


def _by_value(column: str, where: str | None) -> str:
    name = quoted(column)
    return f"SELECT {name} AS value, COUNT(*) AS n FROM {NAME}{_where(where)} GROUP BY {name}"


class _Error:
    """How wrong an answer may be, worked out when it is asked for."""

    def __init__(self, of: Callable[[float], Accuracy]) -> None:
        self._of = of

    def error(self, confidence: Any) -> Accuracy:
        return self._of(check_confidence(confidence))


def _first(answer: Any, plan: Plan, confidence: float) -> Accuracy:
    """Half the interval of the one value; for a quantile with the bound in ranks beside it."""
    quantile = plan.question.aggregates[0].kind == "quantile"
    ranks = float(plan.price.parts[0].error(confidence)) if quantile else None
    return _half(answer, ["value"], confidence, ranks)


def _all(answer: Any, plan: Plan, confidence: float) -> Accuracy:
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


def _counts(answer: Any, plan: Plan, confidence: float) -> Accuracy:
    return plan.price.parts[0].error(confidence)  # type: ignore[no-any-return]


def _where(condition: str | None) -> str:
    return "" if condition is None else f" WHERE {condition}"


def table(
    source: Any,
    *,
    ledger: Ledger,
    rows_per_person: int | None = None,
    groups_per_person: int | str | None = None,
    rows_per_group: int | None = None,
    types: Mapping[str, str] | None = None,
    version: str | None = None,
) -> PrivateTable:
    """A table under a ledger: a Parquet, CSV or JSON file or folder, an Arrow table, a DataFrame, a DuckDB relation, or
    a dict of arrays.

    For a ledger that protects people, `rows_per_person` says how many rows of one person an answer uses at most; of a
    person who has more, some are chosen at random. `types` says which columns of a CSV or JSON file are not text, such
    as {"age": "integer"}; a column also is what its `between` or `choices` are. `version` declares the version of the
    data, which for files is taken from their path, size and time of change: a question asked again of the same version
    costs nothing.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).")
    person = ledger.protects.column
    if person is not None and rows_per_person is None:
        raise InvalidArgument("The ledger protects people: say how many rows one may have, with rows_per_person=20.")
    said = {} if types is None else dict(types)
    for name, kind in said.items():
        check_type(kind, name)
    if said and person is not None:
        said.setdefault(person, "text")
    engine = DuckDB({NAME: source}, types={NAME: said})
    found = engine.columns(NAME)
    for name, kind in (types or {}).items():
        if found.get(name) != kind:
            told = (
                f"is {found[name]} in its source, and not {kind}" if name in found else "is not a column of its source"
            )
            raise InvalidArgument(f"{name} {told}. Mend types=.")
    columns = {name: Column(name=name, type=kind, declared=name in (types or {})) for name, kind in found.items()}  # type: ignore[arg-type]
    described = Table(
        name=NAME,
        columns=columns,
        source=source,
        person=person,
        rows_per_person=rows_per_person,
        groups_per_person=groups_per_person,
        rows_per_group=rows_per_group,
        version=version,
    )
    return PrivateTable(ledger, described, engine)
