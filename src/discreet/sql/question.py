"""What is asked, once it is understood: rows, groups, measures of each group, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.sql.expressions import Expr, Field
from discreet.sql.pricing.relation import Relation

AggregateKind = Literal["count", "sum", "mean", "variance", "stddev", "quantile"]
MeasureKind = Literal["count", "sum", "people", "distinct", "quantile"]


@dataclass(frozen=True)
class Measure:
    """One number for each group, to which noise is added (or which is drawn): a whole number of steps.

    count: the rows for which `where` holds. people: the persons with such a row. distinct: their different values.
    sum: the values, moved by `center`, rounded to whole steps and clamped to [`lowest`, `highest`], to the `power`.
    quantile: the value at a rank, on a grid from `lowest` to `highest` steps away from `center`.
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
        """How far from the center a value can be, in steps."""
        return max(abs(self.lowest), abs(self.highest))


@dataclass(frozen=True)
class Key:
    """What rows are grouped by, and all the values it can have; None when they are not declared."""

    name: str
    expr: Expr
    domain: tuple[Any, ...] | None


@dataclass(frozen=True)
class Aggregate:
    """A column of the answer before arithmetic: how it is made of measures, which are numbered."""

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
class Ordering:
    """By what noisy value or key the answer is sorted."""

    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Question:
    """A whole statement. `source` is its syntax tree, `same` its text without comments and in one layout, and `meaning`
    the identity of what it measures. `bounded` are the fields whose declared ranges the answer rests on. Keys and
    measures are in canonical order; `key_order` has the places of the keys as they were written.
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
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    bounded: frozenset[Field] = frozenset()
    source: Any = None
    meaning: str = ""
    key_order: tuple[int, ...] = ()
    reordered: bool = False

    @property
    def line(self) -> str:
        """Its text on one line."""
        return " ".join(self.text.split())

    def is_noisy(self, output: Output) -> bool:
        """Whether a column has noise in it: not where it is made of keys alone."""
        return any(field not in self.key_fields for field in output.expr.fields())


@dataclass(frozen=True)
class Bounds:
    """What one unit may have in an answer: rows in all, groups, and rows in each group. `swapped` when rows of others
    may come or go with it.
    """

    rows: int
    groups: int
    per_group: int
    swapped: bool = False
