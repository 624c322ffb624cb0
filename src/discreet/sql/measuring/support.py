"""Different values, counted so that one person supports at most k of them: a matching of people and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.rows.key_columns import KeyColumns
from discreet.sql.measuring.groups import Groups


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

    def rounds(self) -> Iterator[NDArray[np.bool_]]:
        """The items that are taken after 1, 2, 3, … rounds. In a round everybody, in a fixed order, takes the first
        own item that nobody has taken. It ends when nothing is left to take.

        Promise: after k rounds, one person more adds between 0 and k items, and takes away none. Induction over all
        turns: let T be what is taken without that person, and T' ⊇ T with the person. If someone takes b without, then
        b is in T', or it is still the first item not in T', and is taken. If someone takes nothing without, nothing is
        left with the person. So T' stays larger, and only turns of the person make the difference larger, by one.

        Many turns are computed at once, as in deferred acceptance: everybody asks for an item, each item goes to the
        first of those who ever asked for it, and the others ask for their next one. Whatever the order of asking, it
        ends with what the turns give: the first person keeps the first own item, the second one the first own item
        without it, and so on.
        """
        turns = _Turns(self)
        while len(turns.waiting) and turns.left:
            turns.take_one_each()
            yield turns.owners < turns.nobody

    def counts(self, limits: Sequence[int]) -> NDArray[np.int64]:
        """How many items are taken after as many rounds as each limit says."""
        after = [0, *(np.count_nonzero(taken) for taken in self.rounds())]
        return np.array([after[min(limit, len(after) - 1)] for limit in limits], dtype=np.int64)

    def taken(self, most: int) -> NDArray[np.bool_]:
        """Which items are taken after so many rounds."""
        found = np.zeros(self.size, dtype=np.bool_)
        for number, taken in enumerate(self.rounds(), 1):
            found = taken
            if number == most:
                break
        return found


_FEW = 32
"""So few people are quicker one by one."""
_EARLIER = -1


class _Turns:
    """A state of the matching. `owners` has the person who took an item in this round, `_EARLIER` if it was taken in
    an earlier one, and `nobody`, who is after all people. `places` are the items that people ask for next, and
    `waiting` the people who may take one. `left` is the number of items that nobody has taken.
    """

    def __init__(self, support: Support) -> None:
        self.items, self.left, self.nobody = support.items, support.size, len(support.starts) - 1
        self.places, self.ends = support.starts[:-1].copy(), support.starts[1:]
        self.owners = np.full(support.size, self.nobody, dtype=np.int64)
        self.waiting = np.flatnonzero(self.places < self.ends)

    def take_one_each(self) -> None:
        """One round. If nothing is left, it does not matter who took it."""
        asking = self.waiting
        while len(asking) > _FEW and self.left:
            asking = self._ask(asking)
        self._ask_one_by_one(asking.tolist())
        owned = (self.owners != _EARLIER) & (self.owners < self.nobody)
        took = np.sort(self.owners[owned])
        self.owners[owned] = _EARLIER
        self.places[took] += 1
        self.waiting = took[self.places[took] < self.ends[took]]

    def _ask(self, asking: NDArray[np.int64]) -> NDArray[np.int64]:
        """All of these people ask at once. Those who do not get the item, or lose it, and have another one."""
        wanted = self.items[self.places[asking]]
        before = self.owners[wanted]
        np.minimum.at(self.owners, wanted, asking)
        got = self.owners[wanted] == asking
        self.left -= int(np.count_nonzero(before[got] == self.nobody))
        lost: NDArray[np.int64] = np.concatenate([asking[~got], before[got & (before < self.nobody)]])
        self.places[lost] += 1
        more: NDArray[np.bool_] = self.places[lost] < self.ends[lost]
        return lost[more]

    def _ask_one_by_one(self, asking: list[int]) -> None:
        places, ends, items, owners = self.places, self.ends, self.items, self.owners
        while asking and self.left:
            person = asking.pop()
            place, end = places[person], ends[person]
            while place < end and owners[items[place]] < person:
                place += 1
            places[person] = place
            if place < end:
                before = int(owners[items[place]])
                owners[items[place]] = person
                if before == self.nobody:
                    self.left -= 1
                else:
                    places[before] += 1
                    asking.append(before)


def count_supported(rows: pa.Table, most: int, keys: KeyColumns, groups: Groups) -> NDArray[np.int64]:
    """The number of different values of each group, if everybody supports at most this many in all groups.
    `keys` are those of the rows.
    """
    support = Support.of(rows)
    places = groups.places(keys.take(support.firsts[support.taken(most)]))
    return np.bincount(places[places >= 0], minlength=groups.count).astype(np.int64)
