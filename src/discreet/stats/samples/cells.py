"""The rows that a test of counts reads: one of each person, each in one of a public number of groups per column."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.smaller import smaller_noise
from discreet.queries.cells import CellCounts
from discreet.queries.sensitivity import Sensitivity
from discreet.stats.samples.dividing import Ints
from discreet.stats.samples.sample import MISSING, each_value, list_levels, place_cells
from discreet.tables.asking import NAME
from discreet.tables.days import DAYS
from discreet.tables.methods import Methods
from discreet.tables.offer import TableRows

BUCKETS = 16
"""Into how many groups the values of a column are hashed if its choices are not declared."""
HASHED = ("text", "integer", *DAYS)


def one_row_each(methods: Methods) -> Methods:
    """The same table with one row of each person: rows are then independent of each other."""
    return replace(methods, table=replace(methods.table, rows_per_person=1))


@dataclass(frozen=True)
class Groups:
    """Rows, and for each column its declared choices, or None if its values are hashed."""

    rows: TableRows
    choices: Mapping[str, tuple[Any, ...] | None]

    @property
    def planner(self) -> Any:
        return self.rows.planner

    @property
    def plan(self) -> Any:
        return self.rows.plan

    def settled(self) -> Groups:
        """The same rows after their bounds are found."""
        return Groups(self.rows.settled(), self.choices)

    @property
    def sizes(self) -> list[int]:
        """The number of groups of each column."""
        return [BUCKETS if known is None else len(known) for known in self.choices.values()]

    def places(self) -> Ints:
        """The cell of each row: its groups as the digits of one number. Negative if it has no value in a column."""
        text, ids = self.plan.rows.statement(list(self.choices))
        found = self.plan.rows.engine.table(text)
        cell = np.zeros(found.num_rows, dtype=np.int64)
        for (name, known), size in zip(self.choices.items(), self.sizes, strict=True):
            column = found.column(ids[name])
            place = each_value(column, bucket_of) if known is None else place_cells(column, known)
            cell = np.where((cell < 0) | (place < 0), MISSING, cell * size + place)
        return cell


def bucket_of(cell: Any) -> int:
    """A public hash of one value, from 0 up to the number of buckets. A missing value has none."""
    if cell is None or cell != cell:
        return MISSING
    text = cell if isinstance(cell, str) else str(cell)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] % BUCKETS


def groups_of(
    methods: Methods,
    columns: tuple[str, ...],
    choices: Mapping[str, Any] | None,
    *,
    where: str | None,
    epsilon: Number,
    delta: Number,
) -> Groups:
    """The groups of these columns: the choices given, false and true for a condition, and otherwise hashed values."""
    if choices is not None and (not isinstance(choices, Mapping) or set(choices) - set(columns)):
        raise InvalidArgument(
            'choices must be a dict from these columns to their values: {"city": ["Acre", "Haifa"]}.',
            code="wrong-type",
        )
    known: dict[str, tuple[Any, ...] | None] = {}
    for name in columns:
        kind, given = methods._column(name).type, (choices or {}).get(name)
        declared = methods._column(name).choices if given is None else given
        if declared is not None or kind == "boolean":
            known[name] = tuple(list_levels(methods, name, declared))
        elif kind in HASHED:
            known[name] = None
        else:
            raise InvalidArgument(
                f'{name} is {kind}. List the values to count: choices={{"{name}": ["a", "b"]}}.',
                code="choices-missing",
            )
    listed = {name: list(given) for name, given in known.items() if given is not None}
    rows = one_row_each(methods)._rows(where, {}, listed, epsilon, delta)
    declared_as = rows.planner.schema.tables[NAME].columns  # dates that were given as text are dates there
    return Groups(rows, {name: None if given is None else declared_as[name].choices for name, given in known.items()})


def noise_of_counts(rows: TableRows, query: CellCounts) -> tuple[Laplace | Gaussian, Sensitivity]:
    """The smaller noise on whole numbers that keeps what is allowed, and the sensitivity it is made for."""
    return smaller_noise(rows.allowed, lambda norm: query.sensitivity(rows.unit, rows.of_one, norm=norm), step=1)
