"""The permutation test of a table: it builds an offer, which explains itself or makes the release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_probability
from discreet.mechanisms.quantiles.permutation_test import PermutationTest
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.decision import Decision
from discreet.stats.group_methods import grouped
from discreet.stats.inference.noisy_shares import Alternative
from discreet.stats.results import check_alternative
from discreet.stats.samples.cells import one_row_each
from discreet.stats.samples.dividing import Floats, Ints, part_of_range
from discreet.stats.samples.sample import Sample, StatisticsOfTable
from discreet.stats.tested import Tested
from discreet.tables.grouped import By
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, FoundFirst, Offer, convert_release

POWER = 0.8


class PermutationMethods(StatisticsOfTable):
    """The permutation test of two groups."""

    def permutation(
        self,
        column: str,
        *,
        by: By,
        between: Between | None = None,
        level: Number | None = None,
        alternative: Alternative = "two-sided",
        permutations: int = 999,
        epsilon: Number,
        where: str | None = None,
    ) -> Offer[Decision | Tested]:
        """Whether a column has the same distribution in two groups, against one of them having the larger mean, by
        comparing with random groups of the same sizes. The level holds exactly for any distribution and any number of
        rows. One random row of each person is used.

        With `level`, only the decision at this level is released: level=0.05. Without one, a p-value is released, which
        needs about twice the noise. `by` is a condition, or a column with two values: by={"arm": ["placebo", "drug"]}.
        """
        check_alternative(alternative)
        if level is not None:
            check_probability(level, "level")
        taken, group = grouped(one_row_each(self.table), column, by, between, where, epsilon, 0)
        levels = taken.levels[group]
        if len(levels) != 2:
            raise InvalidArgument("Two groups are compared. Name two values, or use kruskal.", code="wrong-shape")
        test = f"permutation test of {column} by {group}, {alternative}"
        facts = {"test": test, "hypothesis": f"{column} has the same distribution in both groups of the population"}

        # a p-value for another alternative follows from the same rank
        declared = {} if level is None else {"level": level, "alternative": alternative}
        arguments = {"column": column, "by": group, "permutations": permutations, **declared}

        def finish(release: Release) -> Decision | Tested:
            if level is not None:
                decided = {"value": bool(release.value), "level": float(check_probability(level, "level"))}
                return convert_release(Decision, release, **decided, **facts)  # type: ignore[no-any-return]
            larger = int(release.value)
            p = p_of_rank(larger, permutations, alternative)
            parts = {"value": larger, "statistic": 1 - larger / permutations, "p_value": p}
            return convert_release(Tested, release, **parts, **facts)  # type: ignore[no-any-return]

        def drawing(known: Sample) -> Drawing[Decision | Tested]:
            mechanism = PermutationTest.for_guarantee(
                known.rows.allowed,
                unit=known.rows.unit,
                permutations=permutations,
                level=level,
                side="two-sided" if level is None else alternative,
            )

            def read() -> tuple[Floats, Ints]:
                numbers, chosen, _ = known.read()
                return part_of_range(numbers[column], *known.ends(column)), chosen[group]

            return known.rows.drawing(
                mechanism,
                None,
                asked=f"whether {column} differs by {group}, by permutation",
                old_text=f"whether {column} differs by {group}, by permutation",
                method="stats.permutation",
                arguments={**arguments, "between": between, "levels": levels},
                read=read,
                finish=finish,
            )

        return PermutationOffer(taken, drawing, column)


@dataclass(frozen=True)
class PermutationOffer(FoundFirst[Sample, Any]):
    """A permutation test. It says which difference it would see before anything is spent."""

    column: str = ""

    def explain(self) -> Explanation:
        plain = super().explain()
        if self.rows.plan.automatic:
            return plain
        test: PermutationTest = self.drawing(self.rows).mechanism
        low, high = self.rows.ends(self.column)
        noise = math.sqrt(2) * float(test.scale) / test.steps
        level = 0.05 if test.level is None else float(test.level)
        far = ndtri(POWER) - ndtri(level / (2 if test.side == "two-sided" else 1))
        lines = [str(plain).rsplit("; ", 1)[0]]
        for rows in IMAGINED:
            # a sum of half of the rows, evenly spread over the range, with the noise of both sums
            seen = (high - low) * far * math.hypot(math.sqrt(rows / 48), noise) / (rows / 4)
            lines.append(
                f"finds a difference of {seen:.3g} between the means at the level {level:g} (80% power) if there are "
                f"{rows:,} evenly spread rows in two equal groups"
            )
        return Explanation("\n".join(lines))


def p_of_rank(larger: int, permutations: int, alternative: Alternative) -> float:
    """The p-value if this number of permuted sums is larger than that of the second group."""
    above, below = (larger + 1) / (permutations + 1), (permutations - larger + 1) / (permutations + 1)
    return {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}[alternative]
