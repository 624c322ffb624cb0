"""The rows of a relation within bounds. Model fits, densities, quantiles and synthetic tables read these rows.

Rows are read as in SQL: the bounds limit the rows of each person, and every cell is read by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.rows.arrow import typed_cells
from discreet.sql.measuring.groups import Groups
from discreet.sql.measuring.measure import read_measures
from discreet.sql.measuring.rows import rows_of
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Bounds, Measure
from discreet.sql.reading.select import RowsAsked

OWNER = "row_owner"
"""The column of a statement's result that says whose row it is."""


@dataclass(frozen=True)
class BoundedRows:
    """The rows of a FROM and WHERE clause, with a bounded number of rows per person, on the engine that has them.

    If they are not `settled`, some bounds are still to be found: `bounds` and the grid are examples, and no row can be
    read.
    """

    asked: RowsAsked
    bounds: Bounds | None
    engine: Engine
    settled: bool = True

    def __post_init__(self) -> None:
        assert self.bounds is not None or self.asked.relation.person is None  # a person's rows are always bounded

    def _check_settled(self) -> None:
        """Noise that was calibrated to an example would protect nobody."""
        if not self.settled:
            raise AssertionError("rows are read before their bounds are found")

    @property
    def relation(self) -> Relation:
        return self.asked.relation

    @property
    def of_one(self) -> int:
        """How many of these rows one person may have, or how often a join repeats one row."""
        return 1 if self.bounds is None else self.bounds.rows

    @property
    def enforced(self) -> Bounds | None:
        """The bounds that the engine enforces. There are none if single rows are protected."""
        return None if self.relation.person is None else self.bounds

    @cached_property
    def types(self) -> dict[str, str]:
        """The names and types of the columns."""
        return {field.name: field.type for field in self.relation.fields}

    @property
    def grid(self) -> Measure:
        """The public grid that the values lie on."""
        assert self.asked.measure is not None  # rows were requested with a value
        return self.asked.measure

    def values(self) -> Any:
        """The value of every row, in steps of its grid."""
        self._check_settled()
        question = self.asked.question
        return read_measures(question, self.engine, self.enforced, Groups(question))[0][0]

    def columns(self, names: list[str], kinds: Mapping[str, str]) -> dict[str, Any]:
        """Columns of the rows, as numbers and cells."""
        text, known = self.statement(names)
        found = self.engine.table(text)
        return {name: typed_cells(found.column(known[name]), kinds[name]) for name in names}

    def owned_columns(self, names: list[str], kinds: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
        """Columns of the rows, and a number for each row that says whose it is. None if every row is its own unit."""
        if self.relation.person is None or self.of_one == 1:
            return self.columns(names, kinds), None
        text, known = self.statement(names, owners=True)
        found = self.engine.table(text)
        owners = found.column(OWNER).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        return {name: typed_cells(found.column(known[name]), kinds[name]) for name in names}, owners

    def statement(self, names: list[str], *, owners: bool = False) -> tuple[str, dict[str, str]]:
        """The statement that reads these columns, and the name of each column in its result. With `owners`, it also has
        the person of each row.
        """
        self._check_settled()
        relation, dialect = self.relation, self.engine.dialect
        known = {field.name: field.id for field in relation.fields}  # no id is a reserved name of the engine
        columns = [dialect.quote(known[name]) for name in names]
        texts = {dialect.quote(field.id) for field in relation.fields if field.type == "text"}
        # printed as keys are: bytes that are not valid text would stop the reader
        cells = [
            f"{dialect.group_key(column, 'text')} AS {column}" if column in texts else column for column in columns
        ]
        shown, rows = ", ".join(cells), f"({rows_of(relation, self.engine)}) AS one"
        if relation.person is None or self.bounds is None:
            text = f"SELECT {shown} FROM {rows}"
        else:
            person = dialect.quote(relation.person.id)
            own = f"SELECT {shown}, {person} AS person FROM {rows} WHERE {person} IS NOT NULL"
            listed = [*columns, f"person AS {OWNER}"] if owners else columns
            text = dialect.few_of_each(own, "person", self.bounds.rows, listed)
        return text, {name: known[name] for name in names}

    def count(self) -> int:
        """The number of rows, or of people who have one. Private."""
        self._check_settled()
        person = self.relation.person
        counted = "*" if person is None else f"DISTINCT {self.engine.dialect.quote(person.id)}"
        text = f"SELECT COUNT({counted}) AS n FROM ({rows_of(self.relation, self.engine)}) AS one"
        return int(self.engine.table(text).column("n")[0].as_py())
