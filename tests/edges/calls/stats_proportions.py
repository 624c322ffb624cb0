"""Proportions of tables, and tests that are looked at while rows arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import discreet as dp

from ..checking import Call
from ..containers import of_plain
from ..distances import largest
from .studies import book
from .tables import ADDED, PERSON, REPLACED, SHARED, asked

ASKED: tuple[Callable[[Any], Any], ...] = (
    lambda t: counts_of(t.stats.proportion("c", value="a", epsilon=1)),
    lambda t: counts_of(t.stats.proportion("n", value=3, epsilon=1)),
    lambda t: counts_of(t.stats.proportion("c", value="a", epsilon=1, complete=True)),
    lambda t: counts_of(t.stats.proportion("c", value="a", epsilon=1, where="x > 0.3")),
)
"""Answers as released counts: one odd record moves each by at most 1."""


def counts_of(found: Any) -> Any:
    """The released counts, from which everything else is computed."""
    inferred = found._inference
    return [inferred.count] if hasattr(inferred, "count") else [inferred.yes, inferred.no]


def looked_at(rows: Any) -> Any:
    """The noisy counts of one look, in which the odd record is."""
    test = dp.stats.sequential(looks=2, epsilon=1, ledger=book(ADDED))
    return test.look(rows, [1, 0])._counts


SHARE = ("stats.TableStatistics.proportion",)


def of_conditions(rows: Any) -> Any:
    """Shares by a condition, and a logistic regression: counts of rows."""
    columns = {"b": rows, "x": np.full(len(rows), 0.5)}
    table = dp.table(columns, ledger=book(ADDED), types={"b": "boolean"})
    counts = table.stats.risk_ratio("b", by="b", epsilon=1)._inference.counts
    return [counts.yes, counts.no, table.stats.logistic("b ~ x", between={"x": (0, 1)}, epsilon=1).nobs]


CALLS: list[Call] = [
    Call(name="table.stats: proportions", covers=SHARE, run=asked(*ASKED), heavy=2, **SHARED),
    Call(name="table.stats: proportions of replaced rows", covers=SHARE, run=asked(*ASKED, unit=REPLACED), heavy=3,
         **SHARED),
    Call(name="table.stats: proportions of people", covers=SHARE, heavy=3, **SHARED,
         run=asked(*ASKED, unit=PERSON, rows_per_person=1)),
    Call(name="SequentialTest.look", covers=("stats.SequentialTest.look",), base=[1, 0, 1, 1, 0, 0, 1], run=looked_at,
         moved=largest, most=1, together=3,
         containers={"list": of_plain(list), "tuple": of_plain(tuple),
                     "objects": of_plain(lambda rows: np.array([*rows, None], dtype=object)[:-1])}),
    Call(name="conditions", covers=("stats.TableStatistics.risk_ratio", "stats.TableStatistics.logistic"), most=2,
         base=[True, False, True, True] * 10, run=of_conditions, moved=largest, heavy=1, together=10,
         containers={"list": of_plain(list)}, extremes=(True, False)),
]  # fmt: skip
