"""Tests from counts, sums and ranks of a table: what an odd record may change in what they release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checking import Call
from .tables import ADDED, PAIR, PERSON, REPLACED, SHARED, SIZE, asked

CHOICES = {"c": ["a", "b"]}
COUNTS: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.stats.chi2("c", "n", choices={**CHOICES, "n": [0, 1, 2, 3]}, epsilon=1).value,
    lambda t: t.stats.chi2("c", "n", epsilon=1).value,
    lambda t: t.stats.chi2("c", expected={"a": 0.5, "b": 0.5}, epsilon=1).value,
    lambda t: t.stats.chi2("x", expected={0.5: 0.5, 1.0: 0.5}, epsilon=1).value,
)
GROUPS: tuple[Callable[[Any], Any], ...] = (
    lambda t: _scaled(t.stats.anova("x", by=CHOICES, **PAIR).value),
    lambda t: _scaled(t.stats.anova("n", by=CHOICES, between=(0, 6), epsilon=1).value, 6),
    lambda t: t.stats.mann_whitney("x", by=CHOICES, **PAIR).value * SIZE / 8,
    lambda t: _scaled(t.stats.kruskal("n", by=CHOICES, between=(0, 6), epsilon=1).value),
    lambda t: t.stats.wilcoxon("x", "n", between=(0, 6), epsilon=1).value * SIZE / 8,
)


def _rows_of_permutation(unit: Any, **given: Any) -> Callable[[Any], Any]:
    """How many rows of each group have each rounded value: all that a permutation test reads."""

    def run(table: Any) -> Any:
        for level in (None, 0.2):
            table.stats.permutation("x", by=CHOICES, level=level, permutations=19, **PAIR)
        offer = table.stats._statistics.permutation("x", by=CHOICES, permutations=19, **PAIR)
        drawn = offer.drawing(offer.rows)
        return drawn.mechanism.count(*drawn.read())

    return asked(run, unit=unit, **given)


def _scaled(means: dict[Any, float], width: float = 1.0) -> list[float]:
    """Means so that one of about 120 rows moves them by at most 1, and ranks by a little more."""
    return [mean * SIZE / 8 / width for mean in means.values()]


PERMUTED = ("stats.TableStatistics.permutation",)
CHI2 = ("stats.TableStatistics.chi2",)
RANKS = tuple(f"stats.TableStatistics.{name}" for name in ("anova", "mann_whitney", "kruskal", "wilcoxon"))
CALLS: list[Call] = [
    Call(name="counts for tests", covers=CHI2, run=asked(*COUNTS), heavy=3, **SHARED),
    Call(name="counts for tests, replaced", alike=True, covers=CHI2, run=asked(*COUNTS, unit=REPLACED), replaced=True,
         heavy=3, **SHARED),
    Call(name="counts for tests of people", alike=True, covers=CHI2, heavy=3, **SHARED,
         run=asked(*COUNTS, unit=PERSON, rows_per_person=2)),
    Call(name="counts for quantiles", covers=("stats.TableStatistics.quantile",), heavy=3, **SHARED,
         run=asked(lambda t: t.stats.quantile("x", 0.5, **PAIR)._inference.counts.values)),
    Call(name="rows to permute", covers=PERMUTED, run=_rows_of_permutation(ADDED), heavy=3, **SHARED),
    Call(name="rows to permute, replaced", alike=True, covers=PERMUTED, replaced=True, heavy=3,
         run=_rows_of_permutation(REPLACED), **SHARED),
    Call(name="rows to permute, of people", alike=True, covers=PERMUTED, heavy=3, **SHARED,
         run=_rows_of_permutation(PERSON, rows_per_person=2)),
    Call(name="groups for tests", covers=RANKS, run=asked(*GROUPS, unit=ADDED), heavy=3, **SHARED),
]  # fmt: skip
