"""The groups of an answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.errors import NotAllowed
from discreet.sql.question import Question
from discreet.sql.reading.domains import MOST_GROUPS_SHOWN


def groups_of(question: Question) -> Groups | None:
    """The groups of an answer: those that were chosen, or all that are declared. None if they are not known."""
    if question.shown is not None:
        return ShownGroups(question.shown)
    return None if any(key.domain is None for key in question.keys) else Groups(question)


class Groups:
    """The groups of an answer if they are declared: every combination of the keys' values."""

    def __init__(self, question: Question) -> None:
        self.domains = [key.domain or () for key in question.keys]
        self.count = 1
        for domain in self.domains:
            self.count *= len(domain)
        if self.count > MOST_GROUPS_SHOWN:
            raise NotAllowed(
                f"This has {self.count:,} groups. Group by fewer or coarser keys.", code="sql-too-many-groups"
            )
        self.places = [{value: place for place, value in enumerate(domain)} for domain in self.domains]

    def keys(self) -> list[tuple[Any, ...]]:
        """The keys of all groups, in order."""
        return list(itertools.product(*self.domains))

    def learn(self, keys: Iterable[tuple[Any, ...]]) -> None:
        """Declared groups are already known."""

    def has(self, key: tuple[Any, ...]) -> bool:
        """Whether a key belongs to one of the groups."""
        return all(part in places for part, places in zip(key, self.places, strict=True))

    def place(self, key: tuple[Any, ...]) -> int:
        """The index of the group with this key."""
        cell = 0
        for part, domain, places in zip(key, self.domains, self.places, strict=True):
            cell = cell * len(domain) + places[part]
        return cell


class ShownGroups(Groups):
    """The groups that were chosen, in order."""

    def __init__(self, shown: Sequence[tuple[Any, ...]]) -> None:
        self._places = {key: place for place, key in enumerate(shown)}
        self.count = len(self._places)

    def keys(self) -> list[tuple[Any, ...]]:
        return list(self._places)

    def has(self, key: tuple[Any, ...]) -> bool:
        return key in self._places

    def place(self, key: tuple[Any, ...]) -> int:
        return self._places[key]
