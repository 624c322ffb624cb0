"""Statistics of arrays: the same calls as `table.stats`, for columns that are in memory.

Every call makes a table of its arrays, and asks it. Lists and arrays of objects have no type of their own: they hold
what the call needs, such as numbers, or what their listed groups are. The cells are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.ledger import Ledger
from discreet.rows.containers import Data
from discreet.sql.schema import implied_type
from discreet.stats.decision import Decision
from discreet.stats.inference.noisy_shares import Alternative
from discreet.stats.regression.formula import parse_formula
from discreet.stats.regression.methods import Robust
from discreet.stats.regression.results import Regression
from discreet.stats.results import Difference, Estimate
from discreet.stats.table import TableStatistics
from discreet.stats.tested import Tested
from discreet.tables.methods import Between
from discreet.tables.table import table

Pair = tuple[Between | None, Between | None]


def _asked(
    ledger: Ledger, people: Data | None, rows_per_person: int | None, **columns: tuple[Data, str]
) -> TableStatistics:
    """The statistics of columns in memory, each with the type of its cells if the container has none. `people` says
    whose each row is, for a ledger that protects people.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    person = ledger.protects.column
    if people is not None and (person is None or person in columns):
        wanted = "has one row for each person" if person is None else "finds people in a column of the data"
        raise InvalidArgument(f"The ledger {wanted}. Leave people= out.", code="conflicting-arguments")
    if person is not None and person not in columns:
        if people is None:
            raise InvalidArgument(
                "The ledger protects people. Give people=, whose each row is.", code="conflicting-arguments"
            )
        columns = {person: (people, "text"), **columns}
    types = {name: kind for name, (column, kind) in columns.items() if _has_no_type(column)}
    source = {name: column for name, (column, _) in columns.items()}
    return table(source, ledger=ledger, rows_per_person=rows_per_person, types=types or None).stats


def _has_no_type(column: Any) -> bool:
    """Whether a container says nothing about the type of its cells. Its cells are not looked at."""
    return isinstance(column, list | tuple) or str(getattr(column, "dtype", "")) == "object"


def _numbers(column: Data) -> tuple[Data, str]:
    return column, "number"


def _groups(column: Data, groups: Any) -> tuple[Data, str]:
    """A column of groups: of the type of those listed, or a condition."""
    return column, "boolean" if groups is None else implied_type(None, groups)


def _values(column: Data, choices: Any) -> tuple[Data, str]:
    """A column of any values: of the type of those listed, or text."""
    return column, "text" if choices is None else implied_type(None, choices)


def _pair(given: Any, name: str, example: str, first: str, second: str) -> dict[str, Any]:
    """What is given for each of two columns, by their names."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidArgument(f"{name} must have two parts: {name}={example}.", code="wrong-shape")
    return {column: one for column, one in zip((first, second), given, strict=True) if one is not None}


def _mapped(data: Any, levels: Any) -> dict[str, tuple[Data, str]]:
    """The columns of a regression: numbers, and factors of the type of their levels."""
    if not isinstance(data, Mapping) or not data or not all(isinstance(name, str) for name in data):
        raise InvalidArgument('data must be a dict of columns: {"cost": […], "age": […]}.', code="wrong-type")
    listed = levels if isinstance(levels, Mapping) else {}
    return {name: _groups(c, listed[name]) if name in listed else _numbers(c) for name, c in data.items()}


@closed
def mean(
    values: Data,
    *,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The mean in the population that these values are a sample of. See `table.stats.mean`."""
    known = _asked(ledger, people, rows_per_person, values=_numbers(values))
    return known.mean("values", between=between, epsilon=epsilon, delta=delta)


@closed
def variance(
    values: Data,
    *,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The variance in the population that these values are a sample of. See `table.stats.variance`."""
    known = _asked(ledger, people, rows_per_person, values=_numbers(values))
    return known.variance("values", between=between, epsilon=epsilon, delta=delta)


@closed
def quantile(
    values: Data,
    at: Number = 0.5,
    *,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The value below which a share of the population lies. See `table.stats.quantile`."""
    known = _asked(ledger, people, rows_per_person, values=_numbers(values))
    return known.quantile("values", at, between=between, epsilon=epsilon, delta=delta)


@closed
def proportion(
    values: Data,
    *,
    value: Any = True,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The share of `value` in the population that these values are a sample of. See `table.stats.proportion`."""
    known = _asked(ledger, people, rows_per_person, values=_values(values, [value]))
    return known.proportion("values", value=value, epsilon=epsilon, delta=delta)


@closed
def compare(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Difference:
    """The difference of the means of two groups in the population: the second less the first. `by` says for each value
    to which group it belongs, and `groups` lists the two; without it they are false and true. See
    `table.stats.compare`.
    """
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), group=_groups(by, groups))
    return known.compare("values", by={"group": groups}, between=between, epsilon=epsilon, delta=delta)


@closed
def paired(
    before: Data,
    after: Data,
    *,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Difference:
    """The mean change from `before` to `after` in the population. See `table.stats.paired`."""
    known = _asked(ledger, people, rows_per_person, before=_numbers(before), after=_numbers(after))
    return known.paired("before", "after", between=between, epsilon=epsilon, delta=delta)


@closed
def ratio(
    values: Data,
    over: Data,
    *,
    between: Pair = (None, None),
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The mean of `values` over the mean of `over` in the population. `between` has a range for each. See
    `table.stats.ratio`.
    """
    ranges = _pair(between, "between", "((0, 500), (0, 30))", "values", "over")
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), over=_numbers(over))
    return known.ratio("values", "over", between=ranges, epsilon=epsilon, delta=delta)


@closed
def correlation(
    first: Data,
    second: Data,
    *,
    between: Pair = (None, None),
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """Pearson's correlation of two columns in the population. `between` has a range for each. See
    `table.stats.correlation`.
    """
    ranges = _pair(between, "between", "((0, 500), (0, 30))", "first", "second")
    known = _asked(ledger, people, rows_per_person, first=_numbers(first), second=_numbers(second))
    return known.correlation("first", "second", between=ranges, epsilon=epsilon, delta=delta)


@closed
def risk_ratio(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The share of true values in the second group divided by that in the first, in the population. `groups` lists the
    two groups of `by`; without it they are false and true. See `table.stats.risk_ratio`.
    """
    known = _asked(ledger, people, rows_per_person, values=_groups(values, None), group=_groups(by, groups))
    return known.risk_ratio("values", by={"group": groups}, epsilon=epsilon, delta=delta)


@closed
def chi2(
    values: Data,
    other: Data | None = None,
    *,
    expected: Mapping[Any, Number] | None = None,
    choices: tuple[Sequence[Any] | None, Sequence[Any] | None] = (None, None),
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Tested:
    """Whether two columns are independent in the population, or whether the values of one have the `expected` shares.
    `choices` has the values of each column. Lists without choices hold text. See `table.stats.chi2`.
    """
    listed = _pair(choices, "choices", '(["a", "b"], [1, 2, 3])', "values", "other")
    columns = {"values": _values(values, listed.get("values") or (expected and list(expected)))}
    if other is not None:
        columns["other"] = _values(other, listed.get("other"))
    known = _asked(ledger, people, rows_per_person, **columns)
    return known.chi2(
        "values",
        None if other is None else "other",
        expected=expected,
        choices=listed or None,
        epsilon=epsilon,
        delta=delta,
    )


@closed
def anova(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Tested:
    """Whether all groups have the same mean in the population. `groups` lists them. See `table.stats.anova`."""
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), group=_groups(by, groups))
    return known.anova("values", by={"group": groups}, between=between, epsilon=epsilon, delta=delta)


@closed
def mann_whitney(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    between: Between | None = None,
    alternative: Alternative = "two-sided",
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Tested:
    """Whether values have the same distribution in two groups. `groups` lists those of `by`; without it they are false
    and true. See `table.stats.mann_whitney`.
    """
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), group=_groups(by, groups))
    return known.mann_whitney(
        "values", by={"group": groups}, between=between, alternative=alternative, epsilon=epsilon, delta=delta
    )


@closed
def kruskal(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    between: Between | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Tested:
    """Whether values have the same distribution in all groups. `groups` lists them. See `table.stats.kruskal`."""
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), group=_groups(by, groups))
    return known.kruskal("values", by={"group": groups}, between=between, epsilon=epsilon, delta=delta)


@closed
def wilcoxon(
    values: Data,
    other: Data | None = None,
    *,
    between: Between | None = None,
    alternative: Alternative = "two-sided",
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Tested:
    """Whether values, or `other` less `values`, are symmetric about 0. See `table.stats.wilcoxon`."""
    columns = {"values": _numbers(values)} | ({} if other is None else {"other": _numbers(other)})
    known = _asked(ledger, people, rows_per_person, **columns)
    return known.wilcoxon(*columns, between=between, alternative=alternative, epsilon=epsilon, delta=delta)


@closed
def permutation(
    values: Data,
    by: Data,
    *,
    groups: Sequence[Any] | None = None,
    between: Between | None = None,
    level: Number | None = None,
    alternative: Alternative = "two-sided",
    permutations: int = 999,
    epsilon: Number,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Decision | Tested:
    """Whether values have the same distribution in two groups, by permutations: the decision at a declared `level`, or
    a p-value. `groups` lists those of `by`; without it they are false and true. See `table.stats.permutation`.
    """
    known = _asked(ledger, people, rows_per_person, values=_numbers(values), group=_groups(by, groups))
    return known.permutation(
        "values",
        by={"group": groups},
        between=between,
        level=level,
        alternative=alternative,
        permutations=permutations,
        epsilon=epsilon,
    )


@closed
def ols(
    data: Mapping[str, Data],
    formula: str,
    *,
    between: Mapping[str, Between] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    robust: Robust = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Regression:
    """The linear regression of a formula on a dict of columns. See `table.stats.ols`."""
    known = _asked(ledger, people, rows_per_person, **_mapped(data, levels))
    return known.ols(formula, between=between, levels=levels, robust=robust, epsilon=epsilon, delta=delta)


@closed
def logistic(
    data: Mapping[str, Data],
    formula: str,
    *,
    between: Mapping[str, Between] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Regression:
    """The logistic regression of a formula on a dict of columns. See `table.stats.logistic`."""
    columns, outcome = _mapped(data, levels), parse_formula(formula).outcome
    if outcome in columns:
        columns[outcome] = _groups(data[outcome], None)
    known = _asked(ledger, people, rows_per_person, **columns)
    return known.logistic(formula, between=between, levels=levels, epsilon=epsilon, delta=delta)


@closed
def poisson(
    data: Mapping[str, Data],
    formula: str,
    *,
    between: Mapping[str, Between] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Regression:
    """The Poisson regression of a formula on a dict of columns. See `table.stats.poisson`."""
    known = _asked(ledger, people, rows_per_person, **_mapped(data, levels))
    return known.poisson(formula, between=between, levels=levels, epsilon=epsilon, delta=delta)
