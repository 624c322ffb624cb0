"""Means and differences of a table. Each method builds an offer, which explains itself or makes the
release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.queries.shares import ShareProducts
from discreet.releases import Release
from discreet.stats.dividing import Ints, divided, pairs_of, part_of_range
from discreet.stats.means import DifferenceOf, Extended, MeanOf
from discreet.stats.noisy_shares import NoisyShares
from discreet.stats.results import Difference, Estimate
from discreet.stats.sample import Division, Sample, StatisticsOfTable, sample, statistic
from discreet.stats.share_divisions import division_of_two_shares
from discreet.tables.grouped import By, grouping
from discreet.tables.methods import Between
from discreet.tables.offer import Offer, convert_release

Floats = NDArray[np.float64]
HIDDEN_MISS = 0.001
"""The number of rows beyond a range that was found exceeds its bound with at most this probability."""


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
            lambda *found: estimate(Estimate, f"mean of {column}", *found),
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

        return statistic(
            taken,
            division,
            lambda *found: estimate(
                Difference, f"mean of {column} where {group} is {levels[1]} less where it is {levels[0]}", *found
            ),
            asked=f"the difference in {column} by {group} in the population",
            method="compare",
            arguments={"column": column, "between": between, "by": group, "levels": levels},
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


@dataclass(frozen=True)
class Spot:
    """Where rows of one group are: the places of the low and the high end of the range and, if the range was found,
    those of the values below and above it.
    """

    low: int
    high: int
    below: int | None = None
    above: int | None = None

    @property
    def places(self) -> list[int]:
        return [place for place in (self.low, self.high, self.below, self.above) if place is not None]

    @property
    def blocks(self) -> list[list[int]]:
        """The places that one row can be in at once."""
        return [[self.low, self.high], *([place] for place in self.places[2:])]


def division_by_range(known: Sample, column: str, group: str | None = None) -> Division:
    """Each row between the low and the high end of a range, in its group. The inference is about one mean, or about the
    difference of two.
    """
    ends, found, several = known.ends(column), known.is_found(column), known.of_one > 1
    each = 4 if found else 2
    spots = [
        Spot(*range(each * number, each * number + each))
        for number in range(1 if group is None else len(known.levels[group]))
    ]
    places = each * len(spots) + several
    blocks = [spot.places for spot in spots] if several else [block for spot in spots for block in spot.blocks]
    query = ShareProducts(places, pairs_of(blocks, places - 1 if several else None))

    def divide(numbers: dict[str, Floats], chosen: dict[str, Ints], owners: Ints | None) -> Ints:
        values = numbers[column]
        part = part_of_range(values, *ends)
        at = each * (np.zeros(len(part), dtype=np.int64) if group is None else chosen[group])
        where = np.stack([at, at + 1], 1)
        if found:
            with np.errstate(invalid="ignore"):
                where[:, 0] += 2 * (values < ends[0])
                where[:, 1] += 2 * (values > ends[1])
        missing = np.isnan(part) | (at < 0)
        where = np.where(missing[:, None], -1, where)
        return divided(places, where, np.stack([1 - part, part], 1), owners=owners, rows=known.of_one)

    def infer(shares: NoisyShares) -> Any:
        groups = [MeanOf(shares, *_group(spot, places), ends) for spot in spots]
        inner = groups[0] if group is None else DifferenceOf(*groups)
        if not found:
            return inner
        hidden = [_hidden(one, spot, places) for one, spot in zip(groups, spots, strict=True)]
        if group is None:
            return Extended(inner, hidden[0])
        return Extended(inner, (hidden[1][0] + hidden[0][1], hidden[1][1] + hidden[0][0]))

    return Division(query, divide, infer, _evenly(query, spots, known.of_one))


def _group(spot: Spot, places: int) -> tuple[Floats, Floats]:
    """Which places belong to a group, and the part of the range at each."""
    member, part = np.zeros(places), np.zeros(places)
    member[spot.places] = 1.0
    part[[place for place in (spot.high, spot.above) if place is not None]] = 1.0
    return member, part


def _hidden(mean: MeanOf, spot: Spot, places: int) -> tuple[float, float]:
    """How far clipping may have raised and lowered a mean, if values outside are on average within the width of the
    range.
    """
    width = mean.ends[1] - mean.ends[0]
    amounts = []
    for place in (spot.below, spot.above):
        rows = float(mean.shares.at_most(np.eye(places)[place], HIDDEN_MISS))
        amounts.append(width * max(rows, 0.0) / max(float(mean.size), 1.0))
    return amounts[0], amounts[1]


def _evenly(query: ShareProducts, spots: list[Spot], rows: int) -> Floats:
    """The numbers that one row is expected to add if rows are spread evenly over the range and the groups."""
    even = np.arange(0.5, 200) / 200
    where = np.concatenate([np.tile([[spot.low, spot.high]], (200, 1)) for spot in spots])
    parts = np.tile(np.stack([1 - even, even], 1), (len(spots), 1))
    owners = np.arange(len(parts)) if rows > 1 else None
    return query(divided(query.places, where, parts, owners=owners, rows=rows)).astype(np.float64) / len(parts)


def estimate(kind: type[Estimate], what: str, release: Release, inferred: Any, known: Sample) -> Any:
    """The release as an estimate for the population."""
    return convert_release(
        kind, release, value=inferred.value, what=what, assumed=known.assumed, _inference=inferred, _sizes={}
    )
