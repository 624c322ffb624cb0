"""The groups of an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from discreet.errors import NotAllowed
from discreet.rows.key_columns import KeyColumns, Places, arrow_type, places_of
from discreet.sql.question import Question
from discreet.sql.reading.values.domains import MOST_GROUPS_SHOWN


def groups_of(question: Question) -> Groups | None:
    """The groups of an answer: those that were chosen, or all that are declared. None if they are not known."""
    if question.shown is not None:
        return ShownGroups(question, question.shown)
    return None if any(key.domain is None for key in question.keys) else Groups(question)


class Groups:
    """The groups of an answer if they are declared: every combination of the keys' values."""

    def __init__(self, question: Question) -> None:
        self.kinds = [key.expr.type for key in question.keys]
        self.domains = [key.domain or () for key in question.keys]
        self.count = math.prod(map(len, self.domains))
        if self.count > MOST_GROUPS_SHOWN:
            raise NotAllowed(
                f"This has {self.count:,} groups. Group by fewer or coarser keys.", code="sql-too-many-groups"
            )

    @cached_property
    def _values(self) -> list[Any]:
        import pyarrow as pa

        return [pa.array(domain, arrow_type(kind)) for domain, kind in zip(self.domains, self.kinds, strict=True)]

    def keys(self) -> KeyColumns:
        """The keys of all groups, in order."""
        return KeyColumns.product(self._values, self.kinds)

    def learn(self, keys: KeyColumns) -> None:
        """Declared groups are already known."""

    def places(self, keys: KeyColumns) -> Places:
        """The index of the group of each key. −1 for a key that belongs to none of the groups."""
        cells, known = np.zeros(len(keys), dtype=np.int64), np.ones(len(keys), dtype=bool)
        for column, values in zip(keys.columns, self._values, strict=True):
            place = places_of(column, values)
            cells, known = cells * len(values) + place, known & (place >= 0)
        return np.where(known, cells, -1)


class ShownGroups(Groups):
    """The groups that were chosen, in order."""

    def __init__(self, question: Question, shown: Sequence[tuple[Any, ...]]) -> None:
        self.kinds = [key.expr.type for key in question.keys]
        self._shown = shown
        self.count = len(shown)

    @cached_property
    def _keys(self) -> KeyColumns:
        return KeyColumns.of(self._shown, self.kinds)

    def keys(self) -> KeyColumns:
        return self._keys

    def places(self, keys: KeyColumns) -> Places:
        return np.arange(self.count) if keys is self._keys else keys.places_in(self._keys)


class FoundGroups(ShownGroups):
    """Groups in the order in which the first statement, which counts people, finds them, and then those that are known
    anyway. Later statements add none.
    """

    def __init__(self, question: Question, known: Sequence[tuple[Any, ...]] = ()) -> None:
        super().__init__(question, ())
        self._also = known

    def learn(self, keys: KeyColumns) -> None:
        if self._also:
            also = KeyColumns.of(self._also, self.kinds)
            missing = [key for key, place in zip(self._also, also.places_in(keys), strict=True) if place < 0]
            keys = KeyColumns.of([*keys, *missing], self.kinds) if missing else keys
        self.__dict__["_keys"], self.count = keys, len(keys)
