"""The exact measures of every declared group, as the engine computes them. The door passes them to the mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.engines.engine import Engine
from discreet.exact.randomness import random_integer
from discreet.rows.key_columns import KeyColumns, Places, whole_numbers
from discreet.sql.measuring.compile import Statement
from discreet.sql.measuring.groups import FoundGroups, Groups
from discreet.sql.measuring.support import count_supported
from discreet.sql.question import Bounds, Measure, Question


def read_measures(question: Question, engine: Engine, bounds: Bounds | None, groups: Groups) -> list[Any]:
    """For each measure, the integers of all groups. For a quantile, the values in each group; for a mode, how many rows
    have each value.
    """
    seed = random_integer(62)

    def statement() -> Statement:
        return Statement(question, engine, bounds, seed)

    found: list[Any] = [None] * len(question.measures)
    width = len(question.keys)
    additive = [n for n, m in enumerate(question.measures) if m.is_added]
    if additive:
        table = engine.table(statement().additive())
        keys = keys_of(question, table)
        groups.learn(keys)
        for number, vector in zip(additive, place_numbers(keys, table.columns[width:], groups), strict=True):
            found[number] = vector
    for number, measure in enumerate(question.measures):
        if measure.is_added:
            continue
        if measure.kind == "distinct" and bounds is not None and engine.dialect.gathers:
            pairs = engine.table(statement().supported(number))
            found[number] = count_supported(pairs, bounds.rows, keys_of(question, pairs), groups)
            continue
        table = engine.table(statement().values(number))
        keys = keys_of(question, table)
        if measure.kind == "distinct":
            [found[number]] = place_numbers(keys, [table.column(width)], groups)
        elif measure.kind == "mode":
            found[number] = _Frequencies(groups.places(keys), table.columns[width:], groups.count, measure.highest + 1)
        else:
            found[number] = _values(groups.places(keys), table.columns[width:], groups.count)
    return found


def keys_of(question: Question, table: Any) -> KeyColumns:
    """The keys of the rows of a table that the engine computed. They are its first columns."""
    kinds = [key.expr.type for key in question.keys]
    return KeyColumns.read(table.columns[: len(kinds)], kinds, table.num_rows)


def place_numbers(keys: KeyColumns, columns: Iterable[Any], groups: Groups) -> list[Any]:
    """Columns of integers, with a row for each of these keys, as arrays over all groups."""
    places = groups.places(keys)
    known = places >= 0
    places = places[known]
    # keys are printed so that each is one value in Python, too
    assert np.bincount(places, minlength=1).max() <= 1
    found = []
    for column in columns:
        numbers = whole_numbers(column)
        vector = np.zeros(groups.count, dtype=numbers.dtype)
        vector[places] = numbers[known]
        found.append(vector)
    return found


def read_undeclared(
    question: Question, engine: Engine, bounds: Bounds | None, known: Sequence[tuple[Any, ...]] = ()
) -> tuple[KeyColumns, Any, list[Any]]:
    """For keys that are not declared: the keys of all groups that exist or are `known`, how many people are in each,
    and the measures of all of them.

    Promise: nothing of this leaves but through a selection of groups.
    """
    asked = replace(question, measures=(*question.measures, Measure("people")))
    groups = FoundGroups(question, known)
    *measures, people = read_measures(asked, engine, bounds, groups)
    return groups.keys(), people, measures


class _Frequencies(Sequence[Any]):
    """How often each value occurs in each group, counted when a group is read: all of them may not fit the memory."""

    def __init__(self, places: Places, columns: Sequence[Any], groups: int, values: int) -> None:
        order = np.argsort(places, kind="stable")
        known = order[np.searchsorted(places[order], 0) :]
        self._values, self._counts = (np.asarray(column).astype(np.int64)[known] for column in columns)
        self._ends = np.searchsorted(places[known], np.arange(groups + 1))
        self._size = values

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, group: Any) -> Any:
        found, own = np.zeros(self._size, dtype=np.int64), slice(*self._ends[group : group + 2])
        found[self._values[own]] = self._counts[own]
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[group] for group in range(len(self)))


def _values(places: Places, columns: Sequence[Any], size: int) -> list[Any]:
    """The values in each group, sorted, from rows with the place of a group, a value and how often it occurs."""
    values, counts = (np.asarray(column).astype(np.int64) for column in columns)
    known = places >= 0
    if not known.all():
        places, values, counts = places[known], values[known], counts[known]
    order = np.lexsort((values, places)) if size > 1 else np.argsort(values)
    places, values, counts = places[order], values[order], counts[order]
    ends = np.cumsum(np.bincount(places, weights=None, minlength=size))[:-1]
    return [np.repeat(*one) for one in zip(np.split(values, ends), np.split(counts, ends), strict=True)]
