"""Proportions of a table, and the ratio of two. Each method builds an offer, which explains itself or makes the
release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.mechanisms.noise.smaller import smaller_noise
from discreet.mechanisms.noise.smoothed import SmoothedCount
from discreet.queries.sensitivity import Sensitivity
from discreet.releases import Release
from discreet.rows.containers import package
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.inference.proportions import ShareOfKnown, SmoothedNoise
from discreet.stats.mean_methods import estimate, two_groups, two_levels
from discreet.stats.results import Estimate
from discreet.stats.samples.cells import one_row_each
from discreet.stats.samples.sample import Sample, StatisticsOfTable, sample, statistic
from discreet.stats.samples.share_divisions import division_by_value, division_of_two_shares
from discreet.tables.grouped import By
from discreet.tables.methods import Methods
from discreet.tables.offer import Drawing, FoundFirst, Offer, TableRows
from discreet.tables.sizes import has_public_size


class ProportionMethods(StatisticsOfTable):
    """Estimates that are proportions, and their ratios."""

    def proportion(
        self,
        column: str,
        *,
        value: Any = True,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
        complete: bool = False,
    ) -> Offer[Estimate]:
        """The share of rows in the population with this value of a column, among those that have one. Without `value`,
        the share for which a condition is true.

        Set `complete` if every row has a value: one without counts as another value. If rows are replaced and there is
        no `where`, the number of rows is then public, and the test of a proportion is the most powerful private one.
        An array of booleans or whole numbers is always complete.
        """
        kind = self.table._column(column).type
        if (kind == "boolean") != isinstance(value, bool):
            raise InvalidArgument(
                f"{column} is {kind}. Say for which value the share is wanted, with value=.", code="missing-argument"
            )
        if not isinstance(complete, bool):
            raise InvalidArgument("complete must be True or False.", code="wrong-type")
        every = complete or is_complete(self.table, column)
        taken = sample(self.table, {}, {column: [value]}, where=where, epsilon=epsilon, delta=delta, least=1)
        what, asked = f"share of {column} = {value}", f"the share of {column} = {value} in the population"
        arguments = {"column": column, "value": value, "complete": every}
        if every and where is None and has_public_size(self.table):
            return CountOffer(taken, lambda known: _count_drawing(known, column, what, asked, arguments))
        return statistic(
            taken,
            lambda known: division_by_value(known, column, every),
            estimate(Estimate, what),
            asked=asked,
            method="proportion",
            arguments=arguments,
        )

    def risk_ratio(
        self, column: str, *, by: By, epsilon: Number, delta: Number = 0, where: str | None = None
    ) -> Offer[Estimate]:
        """The share of rows in the population for which a condition is true, in the second group divided by the first.

        `by` is a condition, for true divided by false, or a column with two values: by={"arm": ["placebo", "drug"]}. Of
        a person with several rows, one is used, chosen at random.
        """
        kind = self.table._column(column).type
        if kind != "boolean":
            raise InvalidArgument(
                f"{column} is {kind}. A ratio of shares needs a condition: a column of true and false.",
                code="column-type",
            )
        group, given = two_groups(by)
        one = one_row_each(self.table)
        taken = sample(one, {column: None}, {group: given}, where=where, epsilon=epsilon, delta=delta)
        levels = two_levels(taken, group)
        return statistic(
            taken,
            lambda known: division_of_two_shares(known, column, group, ratio=True),
            estimate(Estimate, f"share of {column} where {group} is {levels[1]}, divided by where it is {levels[0]}"),
            asked=f"the ratio of the shares of {column} by {group} in the population",
            method="risk_ratio",
            arguments={"column": column, "by": group, "levels": levels},
        )


def is_complete(methods: Methods, column: str) -> bool:
    """Whether the container of a column cannot hold a missing value: only its type decides."""
    source = methods.table.source
    if isinstance(source, Mapping):
        held = source.get(column)
    elif package(source) == "pandas":
        held = source[column]
    else:
        return False
    plain = type(held) is np.ndarray or package(held) == "pandas"
    kind = getattr(held, "dtype", None)
    return plain and isinstance(kind, np.dtype) and kind.kind in "biu"


# --- a count among a public number of rows ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CountOffer(FoundFirst[Sample, Estimate]):
    """A noisy count among a public number of rows. It says how wide its interval would be before anything is spent."""

    def explain(self) -> Explanation:
        noise = SmoothedNoise.of(_count_noise(self.rows.rows)[0].noise)
        lines = [str(super().explain()).rsplit("; ", 1)[0]]
        for rows in IMAGINED:
            low, high = ShareOfKnown(rows / 2, rows, noise).interval(0.95)
            lines.append(f"± {(high - low) / 2:.3g} (95%) of the population, if half of {rows:,} rows have it")
        return Explanation("\n".join(lines))


def _count_noise(rows: TableRows) -> tuple[SmoothedCount, Sensitivity]:
    """The least noise for a count that one replaced row changes by at most 1, and that sensitivity."""
    noise, bound = smaller_noise(rows.allowed, lambda norm: Sensitivity(1, norm, rows.unit, 1, 1), step=1)
    return SmoothedCount(noise), bound


def _count_drawing(
    known: Sample, column: str, what: str, asked: str, arguments: Mapping[str, Any]
) -> Drawing[Estimate]:
    mechanism, bound = _count_noise(known.rows)

    def finish(release: Release) -> Estimate:
        rows = known.rows.plan.rows.count()  # public, because rows are replaced
        inferred = ShareOfKnown(float(release.value), rows, SmoothedNoise.of(mechanism.noise))
        return estimate(Estimate, what)(release, inferred, known)  # type: ignore[no-any-return]

    return known.rows.drawing(
        mechanism,
        bound,
        asked=asked,
        old_text=asked,
        method="stats.proportion",
        arguments={**arguments, "rows": "public"},
        read=lambda: int((known.read()[1][column] == 0).sum()),
        finish=finish,
    )
