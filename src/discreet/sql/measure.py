"""The exact measures of every declared group, as the engine computes them: what the door hands to the mechanism."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from discreet.engines.duckdb import DuckDB
from discreet.errors import NotAllowed
from discreet.randomness import random_integer
from discreet.sql.compile import Bounds, Statement
from discreet.sql.plan import Question

MOST_CELLS = 1_000_000


class Cells:
    """The groups of an answer, declared in advance: every combination of the keys' values."""

    def __init__(self, question: Question) -> None:
        self.domains = [key.domain or () for key in question.keys]
        self.count = 1
        for domain in self.domains:
            self.count *= len(domain)
        if self.count > MOST_CELLS:
            raise NotAllowed(f"This has {self.count:,} groups. Group by fewer, or coarser, keys.")
        self.places = [{value: place for place, value in enumerate(domain)} for domain in self.domains]

    def keys(self) -> list[tuple[Any, ...]]:
        """The key of every cell, in order."""
        return list(itertools.product(*self.domains))

    def place(self, key: tuple[Any, ...]) -> int:
        """The cell of a key."""
        cell = 0
        for part, domain, places in zip(key, self.domains, self.places, strict=True):
            cell = cell * len(domain) + places[part]
        return cell


def measured(question: Question, engine: DuckDB, bounds: Bounds | None, cells: Cells) -> list[Any]:
    """For each measure the whole numbers of all cells; for a quantile the values in each cell."""
    seed = random_integer(62)

    def statement() -> Statement:
        return Statement(question, engine.relations, bounds, seed)

    found: list[Any] = [None] * len(question.measures)
    width = len(question.keys)
    additive = [n for n, m in enumerate(question.measures) if m.kind in ("count", "sum", "people")]
    if additive:
        vectors = np.zeros((len(additive), cells.count), dtype=object)
        for row in engine.rows(statement().additive()):
            vectors[:, cells.place(row[:width])] = row[width:]
        for number, vector in zip(additive, vectors, strict=True):
            found[number] = _narrow(vector)
    for number, measure in enumerate(question.measures):
        if measure.kind == "distinct":
            vector = np.zeros(cells.count, dtype=np.int64)
            for row in engine.rows(statement().values(number)):
                vector[cells.place(row[:width])] = row[width]
            found[number] = vector
        elif measure.kind == "quantile":
            found[number] = _values(engine.rows(statement().values(number)), cells, width)
    return found


def _narrow(vector: Any) -> Any:
    """Whole numbers as machine integers where all of them fit."""
    largest = max((abs(int(value)) for value in vector), default=0)
    return vector.astype(np.int64) if largest < 2**62 else vector


def _values(rows: list[tuple[Any, ...]], cells: Cells, width: int) -> list[Any]:
    values: list[list[int]] = [[] for _ in range(cells.count)]
    counts: list[list[int]] = [[] for _ in range(cells.count)]
    for row in rows:
        cell = cells.place(row[:width])
        values[cell].append(row[width])
        counts[cell].append(row[width + 1])
    return [np.repeat(np.array(v, dtype=np.int64), c) for v, c in zip(values, counts, strict=True)]
