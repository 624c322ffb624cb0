"""A parsed question: rows, groups, the measures of each group, and the columns computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.sql.expressions import Expr, Field, Ordering, Origin, Window, walk
from discreet.sql.pricing.relation import Relation

OPEN = 2**62
"""The farthest that a value without a declared range may lie from 0, in steps. It only keeps integers small."""
PairKind = Literal["covariance", "correlation", "slope", "intercept", "r2", "sxx", "syy", "sxy"]
AggregateKind = Literal["count", "sum", "mean", "variance", "stddev", "quantile", "mode"] | PairKind
MeasureKind = Literal["count", "sum", "people", "distinct", "quantile", "mode"]


@dataclass(frozen=True)
class Measure:
    """One integer number of steps for each group, which noise is added to or which is chosen at random.

    count: the rows for which `where` holds. people: the persons with such a row. distinct: their different values.
    sum: the values, moved by `center`, rounded to whole steps and clamped to [`lowest`, `highest`], to the `power`.
    quantile: the value at a rank, on a grid from `lowest` to `highest` steps away from `center`.
    mode: the most common value on such a grid.
    """

    kind: MeasureKind
    value: Expr | None = None
    where: Expr | None = None
    center: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    lowest: int = 0
    highest: int = 1
    power: int = 1
    quantile: Fraction = Fraction(1, 2)

    @property
    def reach(self) -> int:
        """The maximum distance of a value from the center, in steps."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def is_open(self) -> bool:
        """Whether the range of its values is not known, so that only a person's total bounds what one adds."""
        return self.highest - self.lowest >= 2 * OPEN

    @property
    def is_added(self) -> bool:
        """Whether it is a sum over rows or people, so that a person's part of it can be scaled down."""
        return self.kind in ("count", "sum", "people")

    @property
    def is_chosen(self) -> bool:
        """Whether it is a value that is chosen at random, and not a number that gets noise."""
        return self.kind in ("quantile", "mode")


@dataclass(frozen=True)
class Key:
    """What rows are grouped by, and all the values it can have. None if they are not declared."""

    name: str
    expr: Expr
    domain: tuple[Any, ...] | None


@dataclass(frozen=True)
class Aggregate:
    """A column of the answer before arithmetic: how it is computed from measures, which are referred to by index."""

    name: str
    kind: AggregateKind
    parts: tuple[int, ...]
    field: Field
    sample: bool = True
    weight: Fraction = Fraction(1)


@dataclass(frozen=True)
class Output:
    """A column of the answer: an expression over the keys and aggregates."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Question:
    """A whole statement. `source` is its syntax tree, `same` is its text without comments and in one layout, and
    `meaning` is the identity of what it measures. `bounded` are the fields whose declared ranges the answer depends on.
    Keys and measures are in canonical order. `key_order` has the positions of the keys as they were written.
    `unranged` are the columns of quantiles whose ranges are not declared, `uncentered` the values of variances and
    the computed values of quantiles, and `centered` those whose centers were found. `shown` are the groups that
    were chosen, if their keys were not declared. What is done with released numbers: `having` chooses groups,
    `qualify` rows after windows, `distinct` shows equal rows once, and `ties` also shows the rows that are equal to
    the last of a LIMIT. `levels` has the keys of each level, by position, if the answer has several that add up.
    """

    text: str
    same: str
    relation: Relation
    keys: tuple[Key, ...]
    key_fields: tuple[Field, ...]
    measures: tuple[Measure, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expr | None = None
    qualify: Expr | None = None
    distinct: bool = False
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    ties: bool = False
    offset: int = 0
    bounded: frozenset[Field] = frozenset()
    source: Any = None
    meaning: str = ""
    key_order: tuple[int, ...] = ()
    reordered: bool = False
    unranged: frozenset[Origin] = frozenset()
    uncentered: tuple[Expr, ...] = ()
    centered: tuple[Expr, ...] = ()
    shown: tuple[tuple[Any, ...], ...] | None = None
    levels: tuple[tuple[int, ...], ...] = ()

    @property
    def line(self) -> str:
        """The text on one line."""
        return " ".join(self.text.split())

    @property
    def chosen_by(self) -> tuple[Expr, ...]:
        """The expressions of released numbers that choose which rows are shown."""
        chosen = [] if self.limit is None and not self.offset else [one.expr for one in self.order]
        return tuple(expr for expr in (self.having, self.qualify, *chosen) if expr is not None)

    @property
    def has_windows(self) -> bool:
        """Whether a column is computed from several rows of the answer."""
        return any(isinstance(part, Window) for output in self.outputs for part in walk(output.expr))

    def is_noisy(self, output: Output) -> bool:
        """Whether a column has noise in it. A column computed only from keys has none."""
        return any(field not in self.public_fields for field in output.expr.fields())

    @property
    def public_fields(self) -> tuple[Field, ...]:
        """The keys and, if there are levels, for each key whether a row is the sum over all its values."""
        return (*self.key_fields, *(map(summed_over, self.key_fields) if self.levels else ()))


def summed_over(key: Field) -> Field:
    """Whether a row is the sum over all values of a key: 1 or 0."""
    return Field(f"g{key.id}", f"GROUPING({key.name})", "integer")


@dataclass(frozen=True)
class Bounds:
    """What one unit may contribute to an answer: rows in total, groups, and rows in each group. `swapped` if rows of
    others may appear or disappear with it.
    """

    rows: int
    groups: int
    per_group: int
    swapped: bool = False
