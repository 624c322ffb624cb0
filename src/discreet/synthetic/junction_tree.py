"""A junction tree: sets of columns, connected so that the sets with a given column form one connected part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

Columns = tuple[int, ...]
"""Column numbers in increasing order."""


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order where each comes after its parent (-1 for the first: all parts are joined into one tree).

    `separators[i]` is what clique i shares with its parent; it may be empty. Source: Lauritzen-Spiegelhalter 1988.

    >>> JunctionTree.holding([(0, 1), (1, 2)], (2, 3, 2)).cliques
    ((0, 1), (1, 2))
    """

    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    separators: tuple[Columns, ...]

    @classmethod
    def holding(cls, sets: Iterable[Columns], sizes: Sequence[int]) -> JunctionTree:
        """A tree in which each of `sets` lies within one clique; every column is in some clique."""
        return cls._joined([_listed(clique) for clique in _eliminate(sets, sizes)])

    @classmethod
    def _joined(cls, cliques: list[Columns]) -> JunctionTree:
        # a spanning tree of largest shared parts has the running intersection property
        parents, places = [-1], {0: 0}
        separators: list[Columns] = [()]
        left = {i: (len(set(cliques[i]) & set(cliques[0])), 0) for i in range(1, len(cliques))}
        while left:
            chosen = max(left, key=lambda i: (left[i][0], -i))
            parent = left.pop(chosen)[1]
            places[chosen] = len(places)
            parents.append(places[parent])
            separators.append(tuple(sorted(set(cliques[chosen]) & set(cliques[parent]))))
            for i, best in left.items():
                shared = len(set(cliques[i]) & set(cliques[chosen]))
                left[i] = (shared, chosen) if shared > best[0] else best
        return cls(tuple(cliques[i] for i in places), tuple(parents), tuple(separators))

    @cached_property
    def _homes(self) -> dict[Columns, int | None]:
        return {}

    def clique_of(self, columns: Columns) -> int | None:
        """The first clique that contains all these columns. None if no clique does."""
        if columns not in self._homes:
            holding = (i for i, clique in enumerate(self.cliques) if set(columns) <= set(clique))
            self._homes[columns] = next(holding, None)
        return self._homes[columns]

    @cached_property
    def neighbors(self) -> tuple[tuple[int, ...], ...]:
        """The cliques next to each one."""
        near: list[list[int]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                near[child].append(parent)
                near[parent].append(child)
        return tuple(map(tuple, near))

    def between(self, a: int, b: int) -> Columns:
        """What two neighboring cliques share."""
        return self.separators[b if self.parents[b] == a else a]


def _eliminate(sets: Iterable[Columns], sizes: Sequence[int]) -> list[int]:
    """Cliques as bits: columns are removed one by one, the one that makes the smallest clique first."""
    near = [1 << column for column in range(len(sizes))]
    for columns in sets:
        whole = sum(1 << column for column in columns)
        for column in columns:
            near[column] |= whole
    logs = [math.log(size) + 1e-9 for size in sizes]
    left = set(range(len(sizes)))
    cliques: list[int] = []
    cost = {column: _weight(near[column], logs) for column in left}
    while left:
        column = min(left, key=lambda c: (cost[c], c))
        left.remove(column)
        clique = near[column]
        if not any(clique & larger == clique for larger in cliques):
            cliques.append(clique)
        for other in _listed(clique & ~(1 << column)):
            near[other] = (near[other] | clique) & ~(1 << column)
            cost[other] = _weight(near[other], logs)
    return cliques


def _listed(bits: int) -> Columns:
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


def _weight(bits: int, logs: Sequence[float]) -> float:
    return sum(logs[i] for i in _listed(bits))


def largest_clique(sets: Iterable[Columns], sizes: Sequence[int]) -> int:
    """How many cells the largest clique of the tree for these sets has."""
    return max(math.prod(sizes[i] for i in _listed(clique)) for clique in _eliminate(sets, sizes))
