"""One table with methods: the same questions as in SQL, with the bounds given where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from discreet.closing import Closed, closed
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import check_one_row, check_whole_person
from discreet.ledger import Ledger
from discreet.releases import Release
from discreet.rows.containers import Data
from discreet.rows.tables import refuse_untyped
from discreet.sql.running.explanation import Explanation
from discreet.sql.schema import Column, Schema, Table, check_type
from discreet.tables.asking import NAME
from discreet.tables.fit import comparable_columns
from discreet.tables.methods import Methods
from discreet.tables.offer import Offer
from discreet.tables.sizes import has_public_size

if TYPE_CHECKING:
    from discreet.stats.table import ExplainedStatistics, TableStatistics

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[Methods, P], Offer[R]]


def _released(method: Method[P, R]) -> Callable[Concatenate[PrivateTable, P], R]:
    """The table method that makes the release."""

    @wraps(method)
    def released(table: PrivateTable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(table._methods, *args, **kwargs).release()

    return released


def _explained(method: Method[P, R]) -> Callable[Concatenate[ExplainedTable, P], Explanation]:
    """The table method that says what the release would cost and how large its error may be."""

    @wraps(method)
    def explained(table: ExplainedTable, /, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        return method(table._methods, *args, **kwargs).explain()

    return explained


class PrivateTable(Closed):
    """A table under a ledger. Every method charges the ledger and returns a noisy answer.

    `epsilon` is what an answer may cost. `delta` is 0 unless given. If it is given, Gaussian noise is used where it is
    better. `between` clamps values to a public range, or with `"auto"` to a range that is found privately for a tenth
    of ε. Sums, means and variances need none: what one person adds is limited as a whole. `where` is a condition in
    SQL. `by` asks for each group: by="city" shows the groups that enough people have, which needs a `delta`, and
    by={"city": ["Acre", "Bled"]} shows exactly these. The release then has a dict, and a `table` with errors.
    """

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    def __repr__(self) -> str:
        named = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
        return f"<a private table: {named}; protects {self._methods.ledger.protects}>"

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the columns."""
        return {name: column.type for name, column in self._methods.table.columns.items()}

    @property
    def explain(self) -> ExplainedTable:
        """The same methods with the same arguments: what they would cost and how large the error may be. Spends
        nothing.
        """
        return ExplainedTable(self._methods)

    @property
    def stats(self) -> TableStatistics:
        """Statistics for the population that the rows are a sample of: estimates, tests and regression tables."""
        from discreet.stats.table import TableStatistics

        return TableStatistics(self._methods)

    count = _released(Methods.count)
    sum = _released(Methods.sum)
    mean = _released(Methods.mean)
    variance = _released(Methods.variance)
    median = _released(Methods.median)
    quantiles = _released(Methods.quantiles)
    cdf = _released(Methods.cdf)
    histogram = _released(Methods.histogram)
    cube = _released(Methods.cube)
    most_common = _released(Methods.most_common)
    density = _released(Methods.density)
    synthesize = _released(Methods.synthesize)
    fit = _released(Methods.fit)

    # --- studies: dp.adaptive.study(table, …) -----------------------------------------------------------------

    def _ledger_of_study(self) -> Ledger:
        return self._methods.ledger

    def _rows_of_study(self) -> int:
        """The number of independent rows: one per person. Private, unless `_size_is_public`."""
        return self._methods.one_of_each().count()

    def _size_is_public(self) -> bool:
        """Whether the number of rows is public."""
        return has_public_size(self._methods)

    def _counted_for_study(self, epsilon: Fraction) -> Release:
        """The same number with noise. For the same version of the data, a second call costs nothing."""
        return self.count("rows" if self._methods.table.person is None else "people", epsilon=epsilon)

    def _columns_of_study(self) -> dict[str, Any]:
        """All columns that can be compared, with one row per person: numbers with NaN, text, and booleans."""
        return comparable_columns(self._methods.one_of_each())


class ExplainedTable(Closed):
    """The methods of a table, each of which explains what it would do. Nothing is spent."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    @property
    def stats(self) -> ExplainedStatistics:
        """What the statistics would cost, and how wide their intervals would be."""
        from discreet.stats.table import ExplainedStatistics

        return ExplainedStatistics(self._methods)

    count = _explained(Methods.count)
    sum = _explained(Methods.sum)
    mean = _explained(Methods.mean)
    variance = _explained(Methods.variance)
    median = _explained(Methods.median)
    quantiles = _explained(Methods.quantiles)
    cdf = _explained(Methods.cdf)
    histogram = _explained(Methods.histogram)
    cube = _explained(Methods.cube)
    most_common = _explained(Methods.most_common)
    density = _explained(Methods.density)
    synthesize = _explained(Methods.synthesize)
    fit = _explained(Methods.fit)


@closed
def table(
    source: Data,
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

    For a ledger that protects people, `rows_per_person` is the maximum number of rows of one person that an answer
    uses. If a person has more, some are chosen at random. Without it, each answer first finds, for a part of its ε, how
    much of one person it uses, and `explain` says what that costs. `types` declares the columns of a CSV or JSON file
    that are not text, such as {"age": "integer"}. It also declares the types of lists, tuples and object columns, which
    have no type of their own. A cell that does not have the declared type counts as missing, and so does a cell that is
    not text in a column without a declared type. `between` and `choices` also declare the type of their column.
    `version` declares the version of the data. For files it is derived from their path, size and modification time.
    Asking the same question of the same version again costs nothing. Only the version distinguishes two data sets in
    memory: give each its own.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    check_whole_person(ledger.protects, "A table in memory")
    check_one_row(ledger.protects, "A table in memory")
    person = ledger.protects.column
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
            reason = (
                f"is {found[name]} in its source, and not {kind}" if name in found else "is not a column of its source"
            )
            raise InvalidArgument(
                f"{name} {reason}. Correct types=.", code="column-type" if name in found else "unknown-column"
            )
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
    Schema(unit=ledger.protects, tables={NAME: described})  # refuses a column that cannot identify people
    return PrivateTable(Methods(ledger, described, engine))
