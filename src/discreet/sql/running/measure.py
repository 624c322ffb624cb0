"""The exact measures of every declared group, as the engine computes them. The door passes them to the mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.exact.randomness import random_integer
from discreet.sql.question import Bounds, Measure, Question
from discreet.sql.running.compile import Statement
from discreet.sql.running.groups import Groups
from discreet.sql.running.support import count_supported


def read_measures(question: Question, engine: Engine, bounds: Bounds | None, groups: Groups) -> list[Any]:
    """For each measure, the integers of all groups. For a quantile, the values in each group."""
    seed = random_integer(62)

    def statement() -> Statement:
        return Statement(question, engine, bounds, seed)

    found: list[Any] = [None] * len(question.measures)
    width = len(question.keys)
    additive = [n for n, m in enumerate(question.measures) if m.is_added]
    if additive:
        rows = engine.rows(statement().additive())
        groups.learn(row[:width] for row in rows)
        for number, vector in zip(additive, place_rows(rows, width, len(additive), groups), strict=True):
            found[number] = vector
    for number, measure in enumerate(question.measures):
        if measure.kind not in ("distinct", "quantile"):
            continue
        if measure.kind == "distinct" and bounds is not None and engine.dialect.gathers:
            pairs = engine.table(statement().supported(number))
            found[number] = count_supported(pairs, bounds.rows, width, groups)
            continue
        rows = [row for row in engine.rows(statement().values(number)) if groups.has(row[:width])]
        places = [groups.place(row[:width]) for row in rows]
        size = groups.count
        if measure.kind == "distinct":
            vector = np.zeros(size, dtype=np.int64)
            vector[places] = [row[width] for row in rows]
            found[number] = vector
        else:
            found[number] = _values(rows, places, size, width)
    return found


def place_rows(rows: Sequence[tuple[Any, ...]], width: int, number: int, groups: Groups) -> list[Any]:
    """Numbers of the groups as arrays over all groups. A row has the keys of its group first, so many."""
    known = [row for row in rows if groups.has(row[:width])]
    places = [groups.place(row[:width]) for row in known]
    assert len(set(places)) == len(places)  # keys are printed so that each is one value in Python, too
    found = []
    for column in range(width, width + number):
        vector = np.zeros(groups.count, dtype=object)
        vector[places] = [row[column] for row in known]
        found.append(_narrow(vector))
    return found


def read_undeclared(question: Question, engine: Engine, bounds: Bounds | None) -> tuple[dict[Any, int], dict[Any, Any]]:
    """For keys that are not declared: how many people are in each group that exists, and the measures of each.

    Promise: nothing of this leaves but through a selection of groups.
    """
    asked = replace(question, measures=(*question.measures, Measure("people")))
    groups = _Found()
    *measures, people = read_measures(asked, engine, bounds, groups)
    keys = list(groups.found)
    parts = {key: tuple(values[place] for values in measures) for place, key in enumerate(keys)}
    return {key: int(people[place]) for place, key in enumerate(keys)}, parts


class _Found(Groups):
    """Groups in the order in which the first statement, which counts people, finds them. Later statements add none."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], int] = {}
        self.count = 0

    def learn(self, keys: Iterable[tuple[Any, ...]]) -> None:
        self.found = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        self.count = len(self.found)

    def has(self, key: tuple[Any, ...]) -> bool:
        return key in self.found

    def place(self, key: tuple[Any, ...]) -> int:
        return self.found[key]


def _narrow(vector: Any) -> Any:
    """Integers as machine integers if all of them fit."""
    try:
        narrow = vector.astype(np.int64)
    except OverflowError:
        return vector
    return narrow if narrow.size == 0 or (narrow.min() > -(2**62) and narrow.max() < 2**62) else vector


def _values(rows: list[tuple[Any, ...]], places: list[int], size: int, width: int) -> list[Any]:
    values: list[list[int]] = [[] for _ in range(size)]
    counts: list[list[int]] = [[] for _ in range(size)]
    for place, row in zip(places, rows, strict=True):
        values[place].append(row[width])
        counts[place].append(row[width + 1])
    return [np.repeat(np.array(v, dtype=np.int64), c) for v, c in zip(values, counts, strict=True)]
