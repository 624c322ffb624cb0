"""How a table is copied with every record randomized alone: its columns, each with its space and its noise.

Source: [T.3.6], [T.4.7], [T.4.9], [T.4.10].
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.engines.duckdb.dialect import TYPES, literal, quoted, total
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
    """One column: the space its values live in, and the noise that one value gets."""

    column: Column
    space: Space
    noise: Laplace | RandomizedResponse

    @property
    def expression(self) -> str:
        """The value as a number of the space, in the engine's dialect; NULL where it has none: no row can stop
        the copy.
        """
        value, kind = quoted(self.column.name), self.column.type
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
        """What was drawn, as values of the column's type; a moment beyond the years 1 to 9999 is moved to their end."""
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
        """The expected error of one value: a distance, or the probability that it is wrong."""
        if isinstance(self.noise, RandomizedResponse):
            return float(1 - exactly(self.noise.truth))
        rate = float(exactly(self.noise.step) / exactly(self.noise.scale))
        return float(exactly(self.noise.step)) * 2 * math.exp(-rate) / -math.expm1(-2 * rate)

    def error(self, rows: int) -> float:
        """What the error of a value, or the fraction of `rows` that are wrong, stays within with 95% confidence."""
        sizes = {"records": max(rows, 1)} if isinstance(self.noise, RandomizedResponse) else {}
        return float(self.noise.error(CONFIDENCE, **sizes))


@dataclass(frozen=True)
class Copy:
    """How a table is copied: its columns, each with the same share of ε, and those left out."""

    columns: tuple[Randomized, ...]
    share: Pure
    dropped: tuple[str, ...]

    @property
    def mechanism(self) -> Composed:
        """Every record alone, column by column.

        Promise: the ε of the columns of one replaced record add [T.4.7].
        """
        return Composed(mechanisms=tuple(Each(one.noise, one.space) for one in self.columns))  # type: ignore[arg-type]

    def read(self, engine: DuckDB, table: str) -> tuple[Any, ...]:
        """The true columns, their rows in one random order."""
        listed = ", ".join(f"{one.expression} AS c{number}" for number, one in enumerate(self.columns))
        found = engine.table(f"SELECT {listed} FROM {engine.relations[table]}")
        order = random_order(found.num_rows)
        return tuple(column.to_numpy()[order] for column in found.columns)

    def as_arrow(self, drawn: Sequence[Any]) -> Any:
        """The copy as a table."""
        import pyarrow as pa

        arrays = [one.as_arrow(column) for one, column in zip(self.columns, drawn, strict=True)]
        return pa.table(arrays, names=[one.column.name for one in self.columns])


def planned(table: Table, columns: Sequence[str] | None, *, epsilon: Any) -> Copy:
    """How `columns` of a table are randomized, from public facts: all that are declared, unless some are named."""
    if table.public:
        raise NotAllowed(f"{table.name} is public: nobody is protected in it. Copy it as it is.")
    declared = [c.name for c in table.columns.values() if c.between is not None or c.choices is not None]
    chosen = declared if columns is None else list(dict.fromkeys(columns))
    if not chosen:
        raise NotAllowed(f"Nothing is declared of {table.name}, so no column of it can be randomized. {_REMEDY}")
    for name in chosen:
        if name not in table.columns:
            raise InvalidArgument(f"{table.name} has no column {name}. Its columns: {', '.join(table.columns)}.")
        if name not in declared:
            raise NotAllowed(f"{name} has no declared range or choices, so it cannot be randomized. {_REMEDY}")
    share = Pure(epsilon=exactly(Pure(epsilon=epsilon).epsilon) / len(chosen))
    dropped = tuple(name for name in table.columns if name not in chosen)
    return Copy(tuple(_randomized(table.columns[name], share) for name in chosen), share, dropped)


_REMEDY = (
    "Declare between = [LOW, HIGH] or choices = […] of it in the policy, from what you know and not from the data."
)


def _randomized(column: Column, share: Pure) -> Randomized:
    if column.choices is not None:
        if len(column.choices) < 2:
            raise InvalidArgument(f"choices of {column.name} has one value only. Declare another, or leave it out.")
        places = range(len(column.choices))
        return Randomized(column, Categories(places), RandomizedResponse.for_guarantee(share, choices=places))
    assert column.between is not None
    low, high = column.between
    if column.type in UNITS:  # so many days, or seconds, after the lower end
        passed = high - low
        low, high = 0, passed.days if column.type == "date" else math.ceil(passed.total_seconds())
    if column.type == "number" or not (float(low).is_integer() and float(high).is_integer()):
        real = Interval(low, high)
        return Randomized(column, real, Laplace.for_guarantee(share, sensitivity=real.diameter))
    whole = Integers(int(low), int(high))
    return Randomized(column, whole, Laplace.for_guarantee(share, sensitivity=whole.diameter, step=1))
