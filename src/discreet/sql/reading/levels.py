"""ROLLUP, CUBE and GROUPING SETS: answers at several levels of detail."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqlglot import exp

from discreet.sql.reading.aggregates import Aggregates
from discreet.sql.reading.parse import Text

MOST_LEVELS = 64
"""Each level has its own part of ε."""
Sets = list[list[int]]
"""Levels, each with the positions of its items."""


def listed_levels(sql: Text, items: Sequence[exp.Expression]) -> tuple[list[exp.Expression], Sets]:
    """The columns in GROUP BY, each as often as it is written, and the levels. All clauses of GROUP BY are combined
    with each other.
    """
    columns: list[exp.Expression] = []

    def place(item: exp.Expression) -> list[int]:
        """The columns of one element: one, or several in parentheses."""
        inner = (
            item.expressions if isinstance(item, exp.Tuple) else [item.this if isinstance(item, exp.Paren) else item]
        )
        columns.extend(inner)
        return list(range(len(columns) - len(inner), len(columns)))

    def sets_of(item: exp.Expression) -> Sets:
        match item:
            case exp.Rollup():
                parts = [place(one) for one in item.expressions]
                return [sum(parts[:end], list[int]()) for end in range(len(parts), -1, -1)]
            case exp.Cube():
                parts = [place(one) for one in item.expressions]
                _check_few(sql, item, 2 ** min(len(parts), 32))
                sizes = range(len(parts), -1, -1)
                chosen = (few for size in sizes for few in itertools.combinations(parts, size))
                return [sum(few, list[int]()) for few in chosen]
            case exp.GroupingSets():
                return [level for one in item.expressions for level in sets_of(one)]
        return [place(item)]

    combined: Sets = [[]]
    for item in items:
        own = sets_of(item)
        _check_few(sql, item, len(combined) * len(own))
        combined = [[*one, *other] for one in combined for other in own]
    return columns, combined


def _check_few(sql: Text, node: exp.Expression, number: int) -> None:
    if number > MOST_LEVELS:
        what = f"An answer has at most {MOST_LEVELS} levels."
        sql.refuse(
            node, what, "List those you need with GROUPING SETS ((region, city), (region), ()).", code="sql-grouping"
        )


def levels_of(sql: Text, query: exp.Select, sets: Sets) -> tuple[tuple[int, ...], ...]:
    """The levels by the positions of their keys. None if there is just one, with all keys."""
    levels = [tuple(sorted(set(level))) for level in sets]
    if len(levels) == 1:
        return ()
    if len(set(levels)) < len(levels):
        what = "A level is listed twice."
        sql.refuse(
            query.args["group"],
            what,
            "List each with GROUPING SETS ((region, city), (region), ()).",
            code="sql-grouping",
        )
    return tuple(levels)


def check_adds_up(sql: Text, query: exp.Select, aggregates: Aggregates) -> None:
    """Refuse aggregates that do not add up over groups."""
    for measure in aggregates.measures:
        if measure.kind not in ("count", "sum"):
            sql.refuse(
                query.args["group"],
                "COUNT(DISTINCT …), MODE, MEDIAN and other quantiles do not add up: a value can be in several groups.",
                "Use COUNT(*), SUM, AVG, VARIANCE or STDDEV with levels, and ask the others for one level each.",
                code="sql-levels-add-up",
            )
