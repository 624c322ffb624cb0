"""Means, proportions and differences of a table. Each method builds an offer, which explains itself or makes the
release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.releases import Release
from discreet.stats.results import Difference, Estimate
from discreet.stats.samples.divisions import (
    division_by_range,
    division_by_square,
    division_of_two,
    range_of_values,
)
from discreet.stats.samples.sample import Division, Sample, StatisticsOfTable, sample, statistic
from discreet.stats.samples.share_divisions import division_of_two_shares
from discreet.tables.grouped import By, grouping
from discreet.tables.methods import Between
from discreet.tables.offer import Offer, convert_release


class MeanMethods(StatisticsOfTable):
    """Estimates that are means, and their differences."""

    def mean(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Estimate]:
        """The mean of a column in the population. The rows of one person may depend on each other: people are the
        sample.
        """
        taken = sample(self.table, {column: between}, {}, where=where, epsilon=epsilon, delta=delta)
        return statistic(
            taken,
            lambda known: division_by_range(known, column),
            estimate(Estimate, f"mean of {column}", _not_far_outside(column)),
            asked=f"the mean of {column} in the population",
            method="mean",
            arguments={"column": column, "between": between},
        )

    def compare(
        self,
        column: str,
        *,
        by: By,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Difference]:
        """The difference of the means of two groups in the population: the second less the first.

        `by` is a condition, for true less false, or a column with two values: by={"arm": ["placebo", "drug"]}. If the
        column is a condition itself and every unit has one row, its shares are compared by binomial laws.
        """
        group, given = two_groups(by)
        taken = sample(self.table, {column: between}, {group: given}, where=where, epsilon=epsilon, delta=delta)
        levels = two_levels(taken, group)
        shares = self.table._column(column).type == "boolean"

        def division(known: Sample) -> Division:
            if shares and known.of_one == 1:
                return division_of_two_shares(known, column, group)
            return division_by_range(known, column, group)

        what = f"mean of {column} where {group} is {levels[1]} less where it is {levels[0]}"
        return statistic(
            taken,
            division,
            estimate(Difference, what, _not_far_outside(column)),
            asked=f"the difference in {column} by {group} in the population",
            method="compare",
            arguments={"column": column, "between": between, "by": group, "levels": levels},
        )

    def paired(
        self,
        before: str,
        after: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Difference]:
        """The mean change from one column to another of the same row in the population. `between` is the range of both
        columns. Rows in which one of them is missing are left out.
        """
        taken = sample(self.table, {before: between, after: between}, {}, where=where, epsilon=epsilon, delta=delta)
        return statistic(
            taken,
            lambda known: division_by_range(known, after, less=before),
            estimate(Difference, f"mean of {after} less {before}", _not_far_outside(after, before)),
            asked=f"the mean change from {before} to {after} in the population",
            method="paired",
            arguments={"before": before, "after": after, "between": between},
        )

    def ratio(
        self,
        column: str,
        over: str,
        *,
        between: Mapping[str, Between] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Estimate]:
        """The mean of one column over the mean of another in the population, such as cost for each day. `between` gives
        the range of each. Rows in which one of them is missing are left out.
        """
        given = dict(between or {})
        if not set(given) <= {column, over}:
            raise InvalidArgument(
                "between must give the ranges of the two columns of the ratio.", code="unknown-column"
            )
        ranges = {column: given.get(column), over: given.get(over)}
        taken = sample(self.table, ranges, {}, where=where, epsilon=epsilon, delta=delta)
        return statistic(
            taken,
            lambda known: division_of_two(known, column, over),
            estimate(Estimate, f"mean of {column} over mean of {over}"),
            asked=f"the ratio of {column} to {over} in the population",
            method="ratio",
            arguments={"column": column, "over": over, "between": ranges},
        )

    def variance(
        self,
        column: str,
        *,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Estimate]:
        """The variance of a column in the population."""
        taken = sample(self.table, {column: between}, {}, where=where, epsilon=epsilon, delta=delta)
        return statistic(
            taken,
            lambda known: division_by_square(known, column),
            estimate(Estimate, f"variance of {column}"),
            asked=f"the variance of {column} in the population",
            method="variance",
            arguments={"column": column, "between": between},
        )


def two_groups(by: By) -> tuple[str, Any]:
    """The column that says which group a row is in, and the values given for it."""
    groups = grouping(by)
    if len(groups) != 1:
        raise InvalidArgument('Compare by one column: by="treated".', code="wrong-shape")
    ((group, given),) = groups.items()
    return group, given


def two_levels(taken: Sample, group: str) -> tuple[Any, ...]:
    """The two values of the column that says which group a row is in."""
    levels = taken.levels[group]
    if len(levels) != 2:
        raise InvalidArgument("Two groups are compared. Name two values, or use anova for more.", code="wrong-shape")
    return levels


def estimate(
    kind: type[Estimate], what: str, assumed: Callable[[Sample], tuple[str, ...]] = Sample.assumed
) -> Callable[[Release, Any, Sample], Any]:
    """How a release becomes an estimate for the population."""

    def finish(release: Release, inferred: Any, known: Sample) -> Any:
        parts = {"value": inferred.value, "what": what, "assumed": assumed(known)}
        return convert_release(kind, release, **parts, _inference=inferred, _sizes={})

    return finish


def _not_far_outside(column: str, less: str | None = None) -> Callable[[Sample], tuple[str, ...]]:
    """What has to hold for the mean of values that were clipped to a range that was found."""

    def assumed(known: Sample) -> tuple[str, ...]:
        if not known.is_found(column):
            return ()
        low, high = range_of_values(known, column, less)
        what = f"values of {column}" if less is None else f"changes from {less} to {column}"
        return (f"{what} outside {low:g} to {high:g} are on average at most {high - low:g} outside",)

    return assumed
