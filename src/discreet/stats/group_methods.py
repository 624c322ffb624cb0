"""Tests of several groups of a table: the analysis of variance, and rank tests. Each method builds an offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.mechanisms.quantiles.rank_scores import RankScores
from discreet.releases import Release
from discreet.stats.group_offers import GroupsOffer
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import Alternative, Noise, NoisyShares
from discreet.stats.results import check_alternative
from discreet.stats.samples.cells import one_row_each
from discreet.stats.samples.dividing import Ints, part_of_range
from discreet.stats.samples.divisions import division_by_range
from discreet.stats.samples.sample import Sample, StatisticsOfTable, least_noise, sample
from discreet.stats.tested import Tested
from discreet.tables.grouped import By, grouping
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, Offer, convert_release

Floats = NDArray[np.float64]
Facts = Mapping[str, Any]


class GroupMethods(StatisticsOfTable):
    """Tests whether groups differ in a number."""

    def anova(
        self,
        column: str,
        *,
        by: By,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Tested]:
        """Whether the mean of a column is the same in all groups of the population: one-way analysis of variance. The
        variances of the groups may differ, and the rows of one person may depend on each other.

        `by` is a column with its values: by={"arm": ["placebo", "low", "high"]}.
        """
        taken, group = grouped(self.table, column, by, between, where, epsilon, delta)
        levels = taken.levels[group]

        def drawing(known: Sample) -> Drawing[Tested]:
            made = division_by_range(known, column, group, many=True)
            noise, bound = least_noise(known.rows, made.query)

            def finish(release: Release) -> Tested:
                found: EqualMeans = made.infer(made.noisy(release.value, Noise.of(noise)))
                low, high = known.ends(column)
                clipped = (f"the means are of values clipped to {low:g} to {high:g}",) if known.is_found(column) else ()
                statistic, p = found.tested
                return _tested(
                    release,
                    value=dict(zip(levels, found.means.tolist(), strict=True)),
                    test=f"one-way analysis of variance of {column} by {group}",
                    hypothesis="all groups have the same mean in the population",
                    statistic=statistic,
                    p_value=p,
                    assumed=clipped,
                )

            return known.rows.drawing(
                noise,
                bound,
                asked=f"whether the mean of {column} differs by {group}",
                old_text=f"whether the mean of {column} differs by {group}",
                method="stats.anova",
                arguments={"column": column, "between": between, "by": group, "levels": levels},
                read=lambda: made.query(made.divide(*known.read())),
                finish=finish,
            )

        return GroupsOffer(taken, drawing, len(levels), ranked=False)

    def mann_whitney(
        self,
        column: str,
        *,
        by: By,
        between: Between | None = None,
        alternative: Alternative = "two-sided",
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Tested]:
        """Whether a column has the same distribution in two groups, against one of them having larger values
        (Mann–Whitney, Wilcoxon's rank sum). The statistic estimates the probability that a value of the second group
        is larger than one of the first. One random row of each person is used.

        `by` is a condition, or a column with two values: by={"arm": ["placebo", "drug"]}.
        """
        check_alternative(alternative)
        taken, group = grouped(one_row_each(self.table), column, by, between, where, epsilon, delta)
        levels = taken.levels[group]
        if len(levels) != 2:
            raise InvalidArgument("Two groups are compared. Name two values, or use kruskal.", code="wrong-shape")

        def found(shares: NoisyShares) -> Facts:
            first, second = _groups_of(shares, 2)
            p = float(DifferenceOf(first, second).p_of_gap(0.0, alternative))
            larger = float(np.clip(0.5 + second.mean - first.mean, 0.0, 1.0))
            return {"value": larger, "statistic": larger, "p_value": p}

        return _ranked(
            taken,
            [column],
            group,
            lambda numbers, known: part_of_range(numbers[column], *known.ends(column)),
            found,
            test=f"Mann–Whitney test of {column} by {group}, {alternative}",
            hypothesis=f"{column} has the same distribution in both groups of the population",
            method="mann_whitney",
            arguments={"column": column, "between": between, "by": group, "levels": levels},
        )

    def kruskal(
        self,
        column: str,
        *,
        by: By,
        between: Between | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Tested]:
        """Whether a column has the same distribution in all groups, against some groups having larger values
        (Kruskal–Wallis). One random row of each person is used.

        `by` is a column with its values: by={"arm": ["placebo", "low", "high"]}.
        """
        taken, group = grouped(one_row_each(self.table), column, by, between, where, epsilon, delta)
        levels = taken.levels[group]

        def found(shares: NoisyShares) -> Facts:
            means = EqualMeans(_groups_of(shares, len(levels)))
            statistic, p = means.tested
            return {"value": dict(zip(levels, means.means.tolist(), strict=True)), "statistic": statistic, "p_value": p}

        return _ranked(
            taken,
            [column],
            group,
            lambda numbers, known: part_of_range(numbers[column], *known.ends(column)),
            found,
            test=f"Kruskal–Wallis test of {column} by {group}",
            hypothesis=f"{column} has the same distribution in all groups of the population",
            method="kruskal",
            arguments={"column": column, "between": between, "by": group, "levels": levels},
        )

    def wilcoxon(
        self,
        column: str,
        other: str | None = None,
        *,
        between: Between | None = None,
        alternative: Alternative = "two-sided",
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Tested]:
        """Whether a column is symmetric about 0 in the population, or with two columns, whether the second less the
        first is (Wilcoxon's signed ranks). A difference of 0 counts half for each sign. One random row of each person
        is used. `between` are the ends of both columns.
        """
        check_alternative(alternative)
        names = [column] if other is None else [column, other]
        if len(set(names)) < len(names):
            raise InvalidArgument("A column does not differ from itself. Name two columns.", code="duplicates")
        one_each = one_row_each(self.table)
        ranges = dict.fromkeys(names, between)
        taken = sample(one_each, ranges, {}, where=where, epsilon=epsilon, delta=delta)
        what = column if other is None else f"{other} less {column}"

        def parts(numbers: dict[str, Floats], known: Sample) -> Floats:
            ends = [known.ends(name) for name in names]
            clipped = [np.clip(numbers[name], *end) for name, end in zip(names, ends, strict=True)]
            with np.errstate(all="ignore"):
                if other is None:
                    return clipped[0] / max(abs(end) for end in ends[0])
                widest = max(ends[1][1] - ends[0][0], ends[0][1] - ends[1][0])
                return (clipped[1] - clipped[0]) / widest

        def found(shares: NoisyShares) -> Facts:
            (mean,) = _groups_of(shares, 1)
            p = float(mean.p_of_mean(0.5, alternative))
            score = 2 * float(mean.mean) - 1
            return {"value": score, "statistic": score, "p_value": p}

        return _ranked(
            taken,
            names,
            None,
            parts,
            found,
            test=f"Wilcoxon's signed ranks of {what}, {alternative}",
            hypothesis=f"{what} is symmetric about 0 in the population",
            method="wilcoxon",
            arguments={"columns": names, "between": between},
        )


def _ranked(
    taken: Sample,
    names: list[str],
    group: str | None,
    parts: Callable[[dict[str, Floats], Sample], Floats],
    found: Callable[[NoisyShares], Facts],
    *,
    test: str,
    hypothesis: str,
    method: str,
    arguments: Facts,
) -> GroupsOffer:
    """A rank test as one release. `parts` places each row in the range, and `found` tests what was released."""
    asked = f"{method} of {', '.join(names)}" + ("" if group is None else f" by {group}")

    def drawing(known: Sample) -> Drawing[Tested]:
        groups = 1 if group is None else len(known.levels[group])
        made = RankScores.for_guarantee(known.rows.allowed, groups=groups, unit=known.rows.unit, signed=group is None)

        def read() -> tuple[Floats, Ints]:
            numbers, chosen, _ = known.read()
            placed = parts(numbers, known)
            return placed, np.zeros(len(placed), dtype=np.int64) if group is None else chosen[group]

        def finish(release: Release) -> Tested:
            numbers = np.asarray(release.value, dtype=np.float64)
            shares = NoisyShares(numbers, made.query.pairs, made.query.places, Noise.of(made.noise))
            return _tested(release, test=test, hypothesis=hypothesis, **found(shares))

        return known.rows.drawing(
            made,
            None,
            asked=asked,
            old_text=asked,
            method=f"stats.{method}",
            arguments=dict(arguments),
            read=read,
            finish=finish,
        )

    return GroupsOffer(taken, drawing, 1 if group is None else len(taken.levels[group]), ranked=True)


def grouped(
    methods: Any, column: str, by: By, between: Any, where: str | None, epsilon: Number, delta: Number
) -> tuple[Sample, str]:
    """The rows of a column of numbers and of one column of groups, and the name of the latter."""
    groups = grouping(by)
    if len(groups) != 1:
        raise InvalidArgument('Compare by one column: by="treated".', code="wrong-shape")
    ((group, given),) = groups.items()
    if group == column:
        raise InvalidArgument("A column is not compared by itself. Name another in by=.", code="duplicates")
    return sample(methods, {column: between}, {group: given}, where=where, epsilon=epsilon, delta=delta), group


def _groups_of(shares: NoisyShares, groups: int) -> list[MeanOf]:
    """The mean score of each group, whose two ends are neighbors."""
    places = np.arange(2 * groups)
    return [MeanOf(shares, (places // 2 == g) * 1.0, (places == 2 * g + 1) * 1.0) for g in range(groups)]


def _tested(release: Release, **facts: Any) -> Tested:
    return convert_release(Tested, release, _sizes={}, **facts)  # type: ignore[no-any-return]
