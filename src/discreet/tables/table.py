"""One table, asked by methods: the same questions as in SQL, with the bounds given where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.closing import closed
from discreet.datasets.database import Database
from discreet.engines.duckdb.dialect import quoted
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_delta, check_epsilon, exactly
from discreet.functions.density import Density
from discreet.guarantees.accuracy import check_confidence
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.rows.tables import refuse_untyped
from discreet.sql.plan import Plan
from discreet.sql.reading.ranges import day_of
from discreet.sql.running.explanation import IMAGINED, explained
from discreet.sql.schema import Column, Schema, Table, Type, check_type, checked_range
from discreet.synthetic.table import SyntheticTable
from discreet.tables import distributions
from discreet.tables import fit as fitting
from discreet.tables.asking import NAME, Asking, of_all, of_counts
from discreet.tables.bands import Least, checked
from discreet.tables.columns import as_number, from_number
from discreet.tables.distribution import Distribution
from discreet.tables.distributions import Drawing

ALL_ROWS = f"SELECT COUNT(*) AS n FROM {NAME}"
FEW = 3
"""So many quantiles are best chosen one by one, each with its own narrow interval."""
COUNTING = Fraction(1, 20)
"""The part of ε that counts values before quantiles are asked for: how far out the ends of intervals are."""


class PrivateTable(Asking):
    """A table under a ledger. Every method answers with noise, once the ledger is charged.

    `epsilon` is what an answer may cost; `delta` is 0 unless given, and then Gaussian noise is used where it is better.
    `between` clamps values to a public range, or to one that is found privately for a tenth of ε (`"auto"`); `where` is
    a condition in SQL.
    """

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
        if not isinstance(of, str) or of not in ("rows", "people"):
            raise InvalidArgument('of must be "rows" or "people".')
        person = self._table.person
        counted = f"COUNT(DISTINCT {quoted(person)})" if of == "people" and person is not None else "COUNT(*)"
        return self._number(counted, {}, epsilon, delta, where)

    def sum(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The sum of a column."""
        return self._number(f"SUM({self._written(column)})", {column: between}, epsilon, delta, where)

    def mean(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The mean of a column, from a noisy sum and a noisy count."""
        return self._number(f"AVG({self._written(column)})", {column: between}, epsilon, delta, where)

    def variance(self, column: str, *, between: Any, epsilon: Any, delta: Any = 0, where: str | None = None) -> Release:
        """The sample variance of a column."""
        return self._number(f"VAR_SAMP({self._written(column)})", {column: between}, epsilon, delta, where)

    def median(self, column: str, *, between: Any, epsilon: Any, where: str | None = None) -> Release:
        """The median of a column, chosen from a public grid; of dates, to the day."""
        kind = self._kind(column, between)
        text = f"MEDIAN({as_number(column, kind)})"
        return self._number(text, {column: between}, epsilon, 0, where, lambda v: from_number(v, kind))

    def quantiles(
        self,
        column: str,
        at: Sequence[Any],
        *,
        between: Any,
        epsilon: Any,
        delta: Any = 0,
        least: Least = "bound",
        confidence: float = 0.95,
        where: str | None = None,
    ) -> Release:
        """Several quantiles of a column, as an array in the order asked, within intervals that hold together.

        Up to three are chosen one by one. More are chosen one inside the other, or read off cumulative counts: by what
        promises less error (`least="bound"`), or is expected to have less, on average (`"mean"`: most often several
        times less, in much wider intervals) or at worst (`"largest"`). A twentieth of ε counts the values first.
        """
        checked(at, least)
        sure = check_confidence(confidence)
        if len(at) <= FEW and not check_delta(delta):
            return self._few_quantiles(column, at, between, epsilon, where)
        whole, kind = check_epsilon(epsilon), self._kind(column, between)
        text = f"SELECT MEDIAN({as_number(column, kind)}) AS value FROM {NAME}"
        database, plan = self._asked(text, where, {column: between}, {}, whole * (1 - COUNTING), delta)

        def asked(known: Plan, rows: float) -> Drawing:
            return distributions.quantiles(database, known, at, rows=rows, least=least, confidence=sure, kind=kind)

        counting = distributions.counted(database, plan, whole * COUNTING, column, where)
        self._check_fits(counting, plan, lambda: asked(plan, IMAGINED[-1]))
        known = self._settled(database, plan)
        return self._drawn(asked(known, self._at_least(replace(counting, plan=known))))

    def _few_quantiles(self, column: str, at: Sequence[Any], between: Any, epsilon: Any, where: str | None) -> Release:
        kind = self._kind(column, between)
        number = as_number(column, kind)
        names = [f"q{place}" for place, _ in enumerate(at)]
        shown = [f"QUANTILE_CONT({number}, {float(q)!r}) AS {name}" for name, q in zip(names, at, strict=True)]
        text = f"SELECT {', '.join(shown)} FROM {NAME}"
        asked = self._asked(text, where, {column: between}, {}, epsilon, 0)
        return self._answered(*asked, lambda answer: np.array([from_number(answer[n][0], kind) for n in names]), of_all)

    def cdf(
        self, column: str, *, between: Any, step: Any = 1, epsilon: Any, delta: Any = 0, where: str | None = None
    ) -> Distribution:
        """The share of rows up to each point from one public end to the other, by a step: every threshold at once."""
        if not isinstance(between, tuple | list) or len(between) != 2:
            raise InvalidArgument("between must be two public ends, such as (0, 120): they are the grid.")
        kind = self._kind(column, between)
        low, high = map(day_of, checked_range(between, kind, column))
        points = distributions.Points(low, high, step)
        text = f"SELECT MEDIAN({points.places(column, kind)}) AS value FROM {NAME}"
        database, plan = self._asked(text, where, {column: between}, {}, epsilon, delta)
        return self._drawn(distributions.cumulative(database, plan, points))  # type: ignore[return-value]

    def synthesize(
        self,
        columns: Mapping[str, Any],
        *,
        epsilon: Any,
        delta: Any,
        where: str | None = None,
        rows: int | None = None,
        rounds: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> SyntheticTable:
        """A table of made-up rows with these columns: for each a pair of public ends in parentheses, such as (0, 120),
        or a list of all its choices in brackets. A row with another choice, or with no value, is left out.

        Every column, and the pairs of columns that matter most, have nearly the counts of the true rows. `rows` is how
        many to make, by default about as many as there are. `progress` is told of every step.
        """
        if not isinstance(columns, Mapping) or not columns:
            raise InvalidArgument(
                'columns says what each may be, such as {"age": (0, 120), "city": ["Acre", "Haifa"]}.'
            )
        if progress is not None and not callable(progress):
            raise InvalidArgument("progress must be a function of one line of text, such as print.")
        for name, what in columns.items():
            if isinstance(what, str) or not isinstance(what, Sequence):
                raise InvalidArgument(f"{name} needs a pair of ends, such as (0, 120), or a list of choices.")
        ranges = {name: what for name, what in columns.items() if isinstance(what, tuple)}
        listed = {name: what for name, what in columns.items() if name not in ranges}
        database, plan = self._asked(ALL_ROWS, where, ranges, listed, epsilon, delta)
        kinds: dict[str, Type] = {name: database.schema.tables[NAME].columns[name].type for name in columns}
        for name, kind in kinds.items():
            if kind == "other":
                raise InvalidArgument(f"{name} is neither a number, text, a date nor a condition. Leave it out.")
        options = {"rows": rows, "rounds": rounds, "progress": self._told if progress is None else progress}
        return self._drawn(distributions.synthetic(database, plan, columns, kinds=kinds, **options))  # type: ignore[return-value]

    def density(
        self,
        column: str | Sequence[str],
        *,
        between: Any,
        bandwidth: Any = None,
        epsilon: Any,
        delta: Any = 0,
        where: str | None = None,
    ) -> Density:
        """The density of a column, or of up to three, as one function: a release that answers at every point.

        `between` is a pair of public ends, or a list of pairs; values beyond are moved to the ends. `bandwidth` is the
        width of the kernel, one or one for each column; of one column it is found by rule in the release itself, free,
        when it is not given. With `delta=0` noise is Laplace.
        """
        columns: list[Any] = list(column) if isinstance(column, list | tuple) else [column]
        ranges = list(between) if isinstance(column, list | tuple) and isinstance(between, list | tuple) else [between]
        if not 1 <= len(columns) <= 3 or len(ranges) != len(columns):
            raise InvalidArgument("A density has one to three columns, with one pair of ends for each.")
        if any(ends is None for ends in ranges):
            raise InvalidArgument("A density needs the public ends of its columns: between=(0, 120).")
        given = {self._column(name).name: ends for name, ends in zip(columns, ranges, strict=True)}
        database, plan = self._asked(ALL_ROWS, where, given, {}, epsilon, delta)
        kinds = [database.schema.tables[NAME].columns[name].type for name in columns]
        return self._drawn(distributions.density(database, plan, columns, ranges, bandwidth, kinds))  # type: ignore[return-value]

    # --- models -------------------------------------------------------------------------------------------

    def fit(self, estimator: Any, *, features: Any, target: str | None = None, where: str | None = None) -> Any:
        """Fit a private estimator, such as `dp.learn.LogisticRegression`, to columns of this table, and return it.

        `features` lists columns of numbers, taken as they are and clipped by the estimator's `feature_norm`; or it is a
        dict that says for each a pair of public ends in parentheses, such as (0, 120), or a list of all its choices in
        brackets, which makes one column of each. The cost is the estimator's own epsilon and delta, and the ledger this
        table's. Each fit is charged and drawn anew.
        """
        fitting.check_estimator(estimator, target)
        database, plan = self._asked(ALL_ROWS, where, {}, {}, estimator.epsilon, estimator.delta)
        return self._fit(estimator, database, plan, features, target)

    # --- studies: dp.adaptive.study(table, …) -------------------------------------------------------------------

    def _ledger_of_study(self) -> Ledger:
        return self._ledger

    def _rows_of_study(self) -> int:
        """How many independent rows there are: one for each person. Not public, unless rows are replaced."""
        return fitting.independent_rows(*self._alone())

    def _counted_for_study(self, epsilon: Fraction) -> Release:
        """The same with noise; asked again of the same version of the data it costs nothing."""
        return self.count("rows" if self._table.person is None else "people", epsilon=epsilon)

    def _columns_of_study(self) -> dict[str, Any]:
        """All columns that can be compared, of one row for each person: numbers with NaN, text, and true or false."""
        return fitting.compared(*self._alone())

    def _alone(self) -> tuple[Database, Plan]:
        """Every row, or one of each person."""
        alone = PrivateTable(self._ledger, replace(self._table, rows_per_person=1), self._engine)
        return alone._asked(ALL_ROWS, None, {}, {}, 1, 0)

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
        asked = self._by_value(column, where, choices, epsilon, delta)
        return self._answered(*asked, lambda answer: dict(zip(answer["value"], answer["n"], strict=True)), of_counts)

    def most_common(
        self,
        column: str,
        *,
        choices: Sequence[Any],
        epsilon: Any,
        delta: Any = 0,
        k: int = 1,
        where: str | None = None,
    ) -> Release:
        """The value that most rows have, nearly, chosen among declared ones; with `k`, so many of them, best first.

        By permute-and-flip, or the exponential mechanism where the ledger's rule lets it choose more sharply.
        """
        database, plan = self._by_value(column, where, choices, epsilon, delta)
        return self._drawn(distributions.votes(database, plan, check_count(k, "k")))

    def _by_value(
        self, column: str, where: str | None, choices: Any, epsilon: Any, delta: Any
    ) -> tuple[Database, Plan]:
        name = self._written(column)
        text = f"SELECT {name} AS value, COUNT(*) AS n FROM {NAME}"
        return self._asked(text, where, {}, {column: choices}, epsilon, delta, f" GROUP BY {name}")


class Explained(PrivateTable):
    """The methods of a table, each saying what it would do."""

    def _answered(self, database: Database, plan: Plan, *_: Any) -> Any:
        return explained(plan)

    def _check_fits(self, counting: Drawing, plan: Plan, rest: Callable[[], Drawing]) -> None:
        """Nothing is spent anyway."""

    def _at_least(self, counting: Drawing) -> float:
        return IMAGINED[-1]

    def _settled(self, database: Database, plan: Plan) -> Plan:
        return plan

    def _fit(self, *given: Any) -> Any:
        return fitting.explained_fit(*given)

    def _drawn(self, one: Drawing) -> Any:
        cost = one.guarantee.epsilon_at(delta=float(exactly(one.plan.terms["delta"])))
        if one.plan.first:
            return (
                f"{one.what}\nThe range is found first, and decides how wrong it may be; costs ε = {cost:.4g} beside it"
            )
        return f"{one.what}\n{one.mechanism!r}\ncosts ε = {cost:.4g}; {one.mechanism.error(0.95)}"


@closed
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
    a dict of arrays and lists.

    For a ledger that protects people, `rows_per_person` says how many rows of one person an answer uses at most; of a
    person who has more, some are chosen at random. `types` says which columns of a CSV or JSON file are not text, such
    as {"age": "integer"}, and so of lists, tuples and object columns, which have no type of their own: a cell that is
    not of the declared one, or without one is no text, is missing. A column also is what its `between` or `choices`
    are. `version` declares the version of the data, which for files is taken from their path, size and time of change:
    a question asked again of the same version costs nothing. Two sets of data in memory are told apart by it alone:
    give each its own.
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
    if person is not None and person in engine.untyped(NAME) and person not in (types or {}):
        refuse_untyped(person, "the table")
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
    Schema(unit=ledger.protects, tables={NAME: described})  # refuses what tells no people apart
    return PrivateTable(ledger, described, engine)
