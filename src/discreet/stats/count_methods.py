"""χ² tests of a table: each builds an offer, which explains itself or makes the release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.queries.cells import CellCounts
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.inference.tables_of_counts import NoiseOfCounts, p_of_independence, p_of_shares
from discreet.stats.samples.cells import BUCKETS, Groups, groups_of, noise_of_counts
from discreet.stats.samples.sample import StatisticsOfTable
from discreet.stats.tested import Tested
from discreet.tables.offer import Drawing, FoundFirst, Offer, convert_release

Floats = NDArray[np.float64]
MOST_CELLS = 4096
"""A larger table would have hardly any rows in a cell."""


class CountMethods(StatisticsOfTable):
    """Tests of how often values occur."""

    def chi2(
        self,
        column: str,
        other: str | None = None,
        *,
        expected: Mapping[Any, Number] | None = None,
        choices: Mapping[str, Any] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Tested]:
        """Whether two columns are independent in the population, or, with `expected`, whether the values of one column
        have these shares: expected={"Acre": 0.5, "Bled": 0.5}.

        One random row of each person is counted, so that rows are independent. Rows without a value, or with one that
        was not declared, are left out. A column whose `choices` are not declared has its values hashed into a fixed
        number of groups: the test is right for any values, but has less power.
        """
        if (other is None) == (expected is None):
            raise InvalidArgument(
                'Name two columns, or give the shares of the values of one: expected={"a": 0.5, "b": 0.5}.',
                code="missing-argument",
            )
        given: dict[str, Any] = {"where": where, "epsilon": epsilon, "delta": delta}
        if expected is not None:
            values, shares = _check_expected(expected)
            if choices is not None:
                raise InvalidArgument(
                    "expected names the values already. Leave choices out.", code="conflicting-arguments"
                )
            return _goodness(groups_of(self.table, (column,), {column: values}, **given), column, shares)
        if column == other:
            raise InvalidArgument("A column is not independent of itself. Name two columns.", code="duplicates")
        assert other is not None
        return _independence(groups_of(self.table, (column, other), choices, **given), column, other)


@dataclass(frozen=True)
class CountsOffer(FoundFirst[Groups, Tested]):
    """A test of counts. It says which differences it would see before anything is spent."""

    def explain(self) -> Explanation:
        plain, drawn = str(super().explain()).rsplit("; ", 1)[0], self.drawing(self.rows)
        cells = math.prod(self.rows.sizes)
        noise = NoiseOfCounts.of(drawn.mechanism).variance
        lines = [plain]
        for rows in IMAGINED:
            each = rows / cells
            # Cohen's w of an alternative with power 80% at level 5%, by the normal approximation of χ²
            degrees = max(1, math.prod(size - 1 for size in self.rows.sizes))
            far = 1.645 * math.sqrt(2 * degrees) + 0.8416 * math.sqrt(2 * degrees + 4 * 2.5 * math.sqrt(2 * degrees))
            effect = math.sqrt(far * (1 + noise / each) / rows)
            lines.append(f"an effect w of about {effect:.2g} is found (power 80%), if there are {rows:,} rows")
        return Explanation("\n".join(lines))


def _independence(taken: Groups, column: str, other: str) -> CountsOffer:
    def finish(release: Release, noise: NoiseOfCounts) -> Tested:
        counts = _table_of(release).reshape(taken.sizes)
        statistic, p = p_of_independence(counts, noise)
        return convert_release(  # type: ignore[no-any-return]
            Tested,
            release,
            value=counts,
            test=f"χ² of {column} and {other}",
            hypothesis="they are independent in the population",
            statistic=statistic,
            p_value=p,
            advice=_advice(taken),
            _sizes={"values": counts.size},
        )

    return _offer(taken, finish, f"whether {column} and {other} are independent", {"columns": [column, other]})


def _goodness(taken: Groups, column: str, shares: Floats) -> CountsOffer:
    def finish(release: Release, noise: NoiseOfCounts) -> Tested:
        counts = _table_of(release)
        statistic, p = p_of_shares(counts[None, :], shares[None, :], noise)
        return convert_release(  # type: ignore[no-any-return]
            Tested,
            release,
            value=counts,
            test=f"χ² of {column}",
            hypothesis="its values have the expected shares in the population",
            statistic=statistic,
            p_value=p,
            _sizes={"values": counts.size},
        )

    return _offer(taken, finish, f"whether {column} has the expected shares", {"columns": [column]})


def _offer(taken: Groups, finish: Any, asked: str, arguments: dict[str, Any]) -> CountsOffer:
    query = CellCounts(math.prod(taken.sizes))
    if query.cells > MOST_CELLS:
        raise InvalidArgument(
            f"The table has {query.cells:,} cells, more than {MOST_CELLS:,}. Choose fewer values.", code="too-large"
        )

    def drawing(known: Groups) -> Drawing[Tested]:
        mechanism, bound = noise_of_counts(known.rows, query)
        return known.rows.drawing(
            mechanism,
            bound,
            asked=asked,
            old_text=asked,
            method="stats.cells",
            arguments={**arguments, "choices": list(known.choices.items())},
            read=lambda: query(known.places()),
            finish=lambda release: finish(release, NoiseOfCounts.of(mechanism)),
        )

    return CountsOffer(taken, drawing)


def _table_of(release: Release) -> Floats:
    return np.asarray(release.value, dtype=np.float64)


def _advice(taken: Groups) -> tuple[str, ...]:
    hashed = [name for name, known in taken.choices.items() if known is None]
    if not hashed:
        return ()
    return (
        f"values of {' and '.join(hashed)} were hashed into {BUCKETS} groups: the test is more powerful if choices= "
        "lists them",
    )


def _check_expected(expected: Any) -> tuple[list[Any], Floats]:
    """The values and their shares, which must add up to 1."""
    if not isinstance(expected, Mapping) or len(expected) < 2:
        raise InvalidArgument(
            'expected must be a dict from at least two values to their shares: {"a": 0.5, "b": 0.5}.',
            code="wrong-type",
        )
    shares = [exactly(share, "a share") for share in expected.values()]
    if any(share <= 0 for share in shares) or abs(float(sum(shares)) - 1) > 1e-9:
        raise InvalidArgument("The expected shares must be above 0 and add up to 1.", code="out-of-range")
    found = np.array([float(share) for share in shares])
    return list(expected), found / found.sum()
