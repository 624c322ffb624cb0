"""One table, asked by methods: the same questions as in SQL, with the bounds given where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from discreet.closing import Closed, closed
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.rows.tables import refuse_untyped
from discreet.sql.running.explanation import Explanation
from discreet.sql.schema import Column, Schema, Table, check_type
from discreet.tables.fit import compared
from discreet.tables.methods import NAME, Methods
from discreet.tables.offer import Offer

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[Methods, P], Offer[R]]


def _released(method: Method[P, R]) -> Callable[Concatenate[PrivateTable, P], R]:
    """The method of a table that makes the release."""

    @wraps(method)
    def released(table: PrivateTable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(table._methods, *args, **kwargs).release()

    return released


def _explained(method: Method[P, R]) -> Callable[Concatenate[ExplainedTable, P], Explanation]:
    """The method that says what the release would cost and how wrong it may be."""

    @wraps(method)
    def explained(table: ExplainedTable, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        return method(table._methods, *args, **kwargs).explain()

    return explained


class PrivateTable(Closed):
    """A table under a ledger. Every method answers with noise, once the ledger is charged.

    `epsilon` is what an answer may cost; `delta` is 0 unless given, and then Gaussian noise is used where it is better.
    `between` clamps values to a public range, or to one that is found privately for a tenth of ε (`"auto"`); `where` is
    a condition in SQL.
    """

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the columns."""
        return {name: column.type for name, column in self._methods.table.columns.items()}

    @property
    def explain(self) -> ExplainedTable:
        """The same methods with the same arguments: what they would cost and how wrong they may be; spends nothing."""
        return ExplainedTable(self._methods)

    count = _released(Methods.count)
    sum = _released(Methods.sum)
    mean = _released(Methods.mean)
    variance = _released(Methods.variance)
    median = _released(Methods.median)
    quantiles = _released(Methods.quantiles)
    cdf = _released(Methods.cdf)
    histogram = _released(Methods.histogram)
    most_common = _released(Methods.most_common)
    density = _released(Methods.density)
    synthesize = _released(Methods.synthesize)
    fit = _released(Methods.fit)

    # --- studies: dp.adaptive.study(table, …) -----------------------------------------------------------------

    def _ledger_of_study(self) -> Ledger:
        return self._methods.ledger

    def _rows_of_study(self) -> int:
        """How many independent rows there are: one for each person. Not public, unless rows are replaced."""
        return self._methods.one_of_each().count()

    def _counted_for_study(self, epsilon: Fraction) -> Release:
        """The same with noise; asked again of the same version of the data it costs nothing."""
        return self.count("rows" if self._methods.table.person is None else "people", epsilon=epsilon)

    def _columns_of_study(self) -> dict[str, Any]:
        """All columns that can be compared, of one row for each person: numbers with NaN, text, and true or false."""
        return compared(self._methods.one_of_each())


class ExplainedTable(Closed):
    """The methods of a table, each saying what it would do; nothing is spent."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    count = _explained(Methods.count)
    sum = _explained(Methods.sum)
    mean = _explained(Methods.mean)
    variance = _explained(Methods.variance)
    median = _explained(Methods.median)
    quantiles = _explained(Methods.quantiles)
    cdf = _explained(Methods.cdf)
    histogram = _explained(Methods.histogram)
    most_common = _explained(Methods.most_common)
    density = _explained(Methods.density)
    synthesize = _explained(Methods.synthesize)
    fit = _explained(Methods.fit)


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
    return PrivateTable(Methods(ledger, described, engine))
