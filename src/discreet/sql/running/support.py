"""Different values, counted so that one person supports at most k of them: a matching of people and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.sql.running.groups import Groups


@dataclass(frozen=True)
class Support:
    """The values of every person: `items[starts[n]:starts[n + 1]]` are those of person n, in an order that depends on
    no other person. `size` is the number of different items, and `firsts` has a row of each.
    """

    starts: NDArray[np.int64]
    items: NDArray[np.int64]
    size: int
    firsts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table) -> Support:
        """From rows with a `person`, an `item` and a random number `draw`, in any order.

        Promise: the rows of a person are together, and people and their items have an order that stays as it is when
        others come or go: people by their names, and items by their draws.
        """
        people = pa.chunked_array(rows.column("person")).combine_chunks().dictionary_encode()
        if isinstance(people, pa.ChunkedArray):
            people = people.combine_chunks()
        ranks = np.empty(len(people.dictionary), dtype=np.int64)
        ranks[pc.sort_indices(people.dictionary).to_numpy()] = np.arange(len(ranks))
        codes = ranks[people.indices.to_numpy()]
        draws, items = (rows.column(name).to_numpy() for name in ("draw", "item"))
        order = np.lexsort((items, draws, codes))
        _, firsts, numbered = np.unique(items, return_index=True, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ranks)))])
        return cls(starts.astype(np.int64), numbered[order].astype(np.int64), len(firsts), firsts)

    def rounds(self) -> Iterator[bytearray]:
        """The items that are taken after 1, 2, 3, … rounds. In a round everybody, in a fixed order, takes the first
        own item that nobody has taken. It ends when nothing is left to take.

        Promise: after k rounds, one person more adds between 0 and k items, and takes away none. Induction over all
        turns: let T be what is taken without that person, and T' ⊇ T with the person. If someone takes b without, then
        b is in T', or it is still the first item not in T', and is taken. If someone takes nothing without, nothing is
        left with the person. So T' stays larger, and only turns of the person make the difference larger, by one.
        """
        taken, left, items = bytearray(self.size), self.size, np.ascontiguousarray(self.items).data
        places, ends = self.starts[:-1].tolist(), self.starts[1:].tolist()
        active: Sequence[int] = range(len(places))
        while left and active:
            still = []
            for person in active:
                place, end = places[person], ends[person]
                while place < end and taken[items[place]]:
                    place += 1
                if place < end:
                    taken[items[place]] = 1
                    left -= 1
                    if not left:
                        break
                    places[person] = place + 1
                    still.append(person)
            active = still
            yield taken

    def counts(self, limits: Sequence[int]) -> NDArray[np.int64]:
        """How many items are taken after as many rounds as each limit says."""
        after = [0, *(sum(taken) for taken in self.rounds())]
        return np.array([after[min(limit, len(after) - 1)] for limit in limits], dtype=np.int64)

    def taken(self, most: int) -> NDArray[np.bool_]:
        """Which items are taken after so many rounds."""
        found = bytearray(self.size)
        for number, taken in enumerate(self.rounds(), 1):
            found = taken
            if number == most:
                break
        return np.frombuffer(bytes(found), dtype=np.uint8).astype(bool)


def count_supported(rows: pa.Table, most: int, width: int, groups: Groups) -> NDArray[np.int64]:
    """The number of different values of each group, if everybody supports at most so many in all groups together. The
    first columns of the rows, so many, are the keys of the group.
    """
    support, counts = Support.of(rows), np.zeros(groups.count, dtype=np.int64)
    firsts = support.firsts[support.taken(most)]
    keys = [rows.column(place).take(pa.array(firsts)).to_pylist() for place in range(width)]
    for key in zip(*keys, strict=True) if width else [()] * len(firsts):
        if groups.has(key):
            counts[groups.place(key)] += 1
    return counts
