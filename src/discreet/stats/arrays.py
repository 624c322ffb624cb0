"""Statistics of arrays: the same calls as `table.stats`, for columns that are in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.ledger import Ledger
from discreet.rows.containers import Data
from discreet.sql.schema import implied_type
from discreet.stats.results import Difference, Estimate
from discreet.stats.table import TableStatistics
from discreet.tables.methods import Between
from discreet.tables.table import table


def statistics_of(
    columns: Mapping[str, Data],
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
    types: Mapping[str, str] | None = None,
) -> TableStatistics:
    """The statistics of columns in memory. `people` says whose each row is, for a ledger that protects people."""
    if not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    person = ledger.protects.column
    if (person is None) != (people is None):
        wanted = (
            "has one row for each person. Leave people= out."
            if person is None
            else "protects people. Give people=, whose each row is."
        )
        raise InvalidArgument(f"The ledger {wanted}", code="conflicting-arguments")
    whose = {} if people is None else {str(person): people}
    declared = {name: kind for name, kind in (types or {}).items() if _has_no_type(columns[name])}
    if people is not None and _has_no_type(people):
        declared[str(person)] = "text"
    whole = table({**whose, **columns}, ledger=ledger, rows_per_person=rows_per_person, types=declared or None)
    return whole.stats


def _has_no_type(column: Any) -> bool:
    """Whether a container says nothing about the type of its cells. Its cells are not looked at."""
    return isinstance(column, list | tuple) or str(getattr(column, "dtype", "")) == "object"


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
    known = statistics_of({"values": values}, ledger, people, rows_per_person, {"values": "number"})
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
    known = statistics_of({"values": values}, ledger, people, rows_per_person, {"values": "number"})
    return known.variance("values", between=between, epsilon=epsilon, delta=delta)


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
    known = statistics_of({"values": values}, ledger, people, rows_per_person, {"values": implied_type(None, [value])})
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
    types = {"values": "number", "group": "boolean" if groups is None else implied_type(None, groups)}
    known = statistics_of({"values": values, "group": by}, ledger, people, rows_per_person, types)
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
    types = {"before": "number", "after": "number"}
    known = statistics_of({"before": before, "after": after}, ledger, people, rows_per_person, types)
    return known.paired("before", "after", between=between, epsilon=epsilon, delta=delta)


@closed
def ratio(
    values: Data,
    over: Data,
    *,
    between: tuple[Between | None, Between | None] = (None, None),
    epsilon: Number,
    delta: Number = 0,
    ledger: Ledger,
    people: Data | None = None,
    rows_per_person: int | None = None,
) -> Estimate:
    """The mean of `values` over the mean of `over` in the population. `between` has a range for each. See
    `table.stats.ratio`.
    """
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidArgument("between must have two ranges: between=((0, 500), (0, 30)).", code="wrong-shape")
    types = {"values": "number", "over": "number"}
    known = statistics_of({"values": values, "over": over}, ledger, people, rows_per_person, types)
    ranges = {name: ends for name, ends in zip(types, between, strict=True) if ends is not None}
    return known.ratio("values", "over", between=ranges, epsilon=epsilon, delta=delta)
