"""How a table is copied with every record randomized on its own: the columns, each with its space and its noise.

Source: [T.3.6], [T.4.7], [T.4.9], [T.4.10].
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.engines.duckdb.dialect import TYPES, literal, quote, total
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.combine import Composed, Each
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.sampling import random_order
from discreet.queries.space import Categories, Integers, Interval, Space
from discreet.sql.schema import Column, Table

CONFIDENCE = 0.95
UNITS = {"date": "day", "timestamp": "second"}


@dataclass(frozen=True)
class Randomized:
    """One column: the space of its values, and the noise added to one value."""

    column: Column
    space: Space
    noise: Laplace | RandomizedResponse

    @property
    def expression(self) -> str:
        """The value as a number of the space, in the engine's dialect. It is NULL if there is none, so no row can stop
        the copy.
        """
        value, kind = quote(self.column.name), self.column.type
        if self.column.choices is not None:
            listed = ", ".join(map(literal, self.column.choices))
            place = total(f"list_position([{listed}], TRY_CAST({value} AS {TYPES[kind]}))")
            return f"coalesce(nullif({place}, 0), 1) - 1"
        if kind in UNITS:
            passed = f"date_diff('{UNITS[kind]}', {literal(self.start)}, TRY_CAST({value} AS {TYPES[kind]}))"
            return f"CAST({total(passed)} AS DOUBLE)"
        return f"TRY_CAST({value} AS DOUBLE)"

    @property
    def start(self) -> Any:
        """The public moment from which days or seconds are counted."""
        low = (self.column.between or (None,))[0]
        return low.replace(microsecond=0) if isinstance(low, datetime.datetime) else low

    def as_arrow(self, drawn: Any) -> Any:
        """The drawn numbers as values of the column's type. A moment outside the years 1 to 9999 moves to the nearest
        end.
        """
        import pyarrow as pa

        if self.column.choices is not None:
            listed = [float(c) if self.column.type == "number" else c for c in self.column.choices]
            return pa.array(listed).take(pa.array(drawn, pa.int64()))
        if self.column.type not in UNITS:
            return pa.array(drawn)
        unit = "D" if self.column.type == "date" else "s"
        start, *ends = np.array([self.start, "0001-01-01", "9999-12-31"], dtype=f"datetime64[{unit}]").astype(np.int64)
        moments = start + np.clip(drawn, *(end - start for end in ends))
        return pa.array(moments.astype(f"datetime64[{unit}]"))

    def mean_error(self) -> float:
        """The expected error of one value: a distance, or the probability that the value is wrong."""
        if isinstance(self.noise, RandomizedResponse):
            return float(1 - exactly(self.noise.truth))
        rate = float(exactly(self.noise.step) / exactly(self.noise.scale))
        return float(exactly(self.noise.step)) * 2 * math.exp(-rate) / -math.expm1(-2 * rate)

    def error(self, rows: int) -> float:
        """A bound with 95% confidence on the error of a value, or on the fraction of `rows` with a wrong value."""
        sizes = {"records": max(rows, 1)} if isinstance(self.noise, RandomizedResponse) else {}
        return float(self.noise.error(CONFIDENCE, **sizes))


@dataclass(frozen=True)
class Copy:
    """How a table is copied: the columns, each with the same share of ε, and the columns that are left out."""

    columns: tuple[Randomized, ...]
    share: Pure
    dropped: tuple[str, ...]

    @property
    def mechanism(self) -> Composed:
        """Randomizes every record on its own, column by column.

        Promise: the ε of the columns of one replaced record add [T.4.7].
        """
        return Composed(mechanisms=tuple(Each(one.noise, one.space) for one in self.columns))  # type: ignore[arg-type]

    def read(self, engine: DuckDB, table: str) -> tuple[Any, ...]:
        """The true columns, with the rows in one random order."""
        listed = ", ".join(f"{one.expression} AS c{number}" for number, one in enumerate(self.columns))
        found = engine.table(f"SELECT {listed} FROM {engine.relations[table]}")
        order = random_order(found.num_rows)
        return tuple(column.to_numpy()[order] for column in found.columns)

    def as_arrow(self, drawn: Sequence[Any]) -> Any:
        """The copy as a table."""
        import pyarrow as pa

        arrays = [one.as_arrow(column) for one, column in zip(self.columns, drawn, strict=True)]
        return pa.table(arrays, names=[one.column.name for one in self.columns])


def plan_copy(table: Table, columns: Sequence[str] | None, *, epsilon: Any) -> Copy:
    """How `columns` of a table are randomized, from public facts. By default these are all declared columns."""
    if table.public:
        raise NotAllowed(
            f"{table.name} is public: nobody is protected in it. Copy it as it is.", code="sanitize-public"
        )
    declared = [c.name for c in table.columns.values() if c.between is not None or c.choices is not None]
    chosen = declared if columns is None else list(dict.fromkeys(columns))
    if not chosen:
        raise NotAllowed(
            f"Nothing is declared of {table.name}, so no column of it can be randomized. {_REMEDY}",
            code="sanitize-undeclared",
        )
    for name in chosen:
        if name not in table.columns:
            raise InvalidArgument(
                f"{table.name} has no column {name}. Its columns: {', '.join(table.columns)}.", code="unknown-column"
            )
        if name not in declared:
            raise NotAllowed(
                f"{name} has no declared range or choices, so it cannot be randomized. {_REMEDY}",
                code="sanitize-undeclared",
            )
    share = Pure(epsilon=exactly(Pure(epsilon=epsilon).epsilon) / len(chosen))
    dropped = tuple(name for name in table.columns if name not in chosen)
    return Copy(tuple(_randomize(table.columns[name], share) for name in chosen), share, dropped)


_REMEDY = (
    "Declare between = [LOW, HIGH] or choices = […] of it in the policy, from what you know and not from the data."
)


def _randomize(column: Column, share: Pure) -> Randomized:
    if column.choices is not None:
        if len(column.choices) < 2:
            raise InvalidArgument(
                f"choices of {column.name} has one value only. Declare another, or leave the column out.",
                code="too-few-choices",
            )
        places = range(len(column.choices))
        return Randomized(column, Categories(places), RandomizedResponse.for_guarantee(share, choices=places))
    assert column.between is not None
    low, high = column.between
    if column.type in UNITS:  # number of days, or seconds, after the lower end
        passed = high - low
        low, high = 0, passed.days if column.type == "date" else math.ceil(passed.total_seconds())
    if column.type == "number" or not (float(low).is_integer() and float(high).is_integer()):
        real = Interval(low, high)
        return Randomized(column, real, Laplace.for_guarantee(share, sensitivity=real.diameter))
    whole = Integers(int(low), int(high))
    return Randomized(column, whole, Laplace.for_guarantee(share, sensitivity=whole.diameter, step=1))
