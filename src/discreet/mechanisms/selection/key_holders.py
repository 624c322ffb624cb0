"""Who has which keys: what the choices of keys ask of the data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.mechanisms.selection.key_chances import Curve

Integers = NDArray[np.int64]
FULL = 3
"""The factor of all keys where none is given, so that a slight one is a third."""
DEGREES = (*range(1, 8), *(2**power * part // 4 for power in range(3, 15) for part in (4, 5, 6, 7)))
"""A person's number of keys is rounded up to one of these. People with more keys than the last have no vote."""


@dataclass(frozen=True, kw_only=True)
class Holders:
    """How many people have each key, by how many keys they have: row by row, of `keys[key]`, `degree` and `people`.

    A degree may be rounded up, as in `DEGREES`, but never down. A person counts in one row for each of their keys.
    """

    keys: Sequence[Any]
    key: Integers
    degree: Integers
    people: Integers

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, int, int]]) -> Self:
        """Rows of a key, a degree and a number of people."""
        places: dict[Any, int] = {}
        listed = [(places.setdefault((type(key), key), len(places)), *rest) for key, *rest in rows]
        columns = np.array(listed, dtype=np.int64).reshape(-1, 3).T
        return cls(keys=[key for _, key in places], key=columns[0], degree=columns[1], people=columns[2])

    def __post_init__(self) -> None:
        if len(self.degree) and min(self.degree) < 1:
            raise InvalidArgument("A person with a key has at least one key: degree must be ≥ 1.", code="out-of-range")

    def votes(self, curve: Curve) -> Integers:
        """The steps of votes for each key."""
        different, places = np.unique(self.degree, return_inverse=True)
        each = np.array([curve.votes(int(degree)) for degree in different], dtype=np.int64)
        # bincount adds doubles: whole numbers up to 2^53 are exact
        return np.bincount(self.key, each[places] * self.people, minlength=len(self.keys)).astype(np.int64)


@runtime_checkable
class KeyHolders(Protocol):
    """The private numbers of people who have each key, read when they are asked for."""

    def holders(self, shown: Collection[Any]) -> Holders:
        """Who has keys other than these. A person's degree is the number of their other keys."""


@dataclass(frozen=True)
class PersonKeys:
    """Who has which keys: for each pair a code of the person and a code of the key, and the key of each code.

    A pair counts once. Nobody may have more keys than the mechanism allows.
    """

    people: Integers
    codes: Integers
    keys: Sequence[Any]

    def __post_init__(self) -> None:
        size = max(len(self.keys), 1)
        pairs = np.asarray(self.people, dtype=np.int64) * size + np.asarray(self.codes, dtype=np.int64)
        found, places = np.unique(pairs, return_index=True)
        if len(found) < len(pairs):
            object.__setattr__(self, "people", np.asarray(self.people)[places])
            object.__setattr__(self, "codes", np.asarray(self.codes)[places])

    def totals(self, factors: Mapping[Any, int] | None) -> dict[Any, int]:
        """The sum over people of each key's weight, in steps.

        Promise: with r² ≥ Σf²·2^40, compared in integers, the weights f·2^40 div r have squares that sum to at most
        2^40.
        """
        each = np.array([FULL if factors is None else factors[key] for key in self.keys], dtype=np.int64)
        factor = each[self.codes] if len(self.codes) else np.zeros(0, dtype=np.int64)
        people = int(self.people.max(initial=-1)) + 1
        squares = np.bincount(self.people, weights=factor**2, minlength=people).astype(np.int64) << 40
        roots = np.ceil(np.sqrt(squares.astype(np.float64))).astype(np.int64)
        roots += roots * roots < squares
        used = factor > 0
        weights = (factor[used] << 40) // roots[self.people[used]]
        sums = np.bincount(self.codes[used], weights=weights, minlength=len(self.keys))
        return {key: int(total) for key, total, f in zip(self.keys, sums.tolist(), each.tolist(), strict=True) if f}

    def holders(self, shown: Collection[Any]) -> Holders:
        """Who has other keys, by how many other keys they have, rounded up to `DEGREES`."""
        gone = set(shown)
        left = np.array([key not in gone for key in self.keys], dtype=bool)
        used = left[self.codes] if len(self.codes) else np.zeros(0, dtype=bool)
        people, codes = self.people[used], self.codes[used]
        rounded = np.searchsorted(DEGREES, np.bincount(people)[people] if len(people) else people)
        voting = rounded < len(DEGREES)
        cells, counts = np.unique(codes[voting] * len(DEGREES) + rounded[voting], return_counts=True)
        held, places = np.unique(cells // len(DEGREES), return_inverse=True)
        return Holders(
            keys=[self.keys[place] for place in held.tolist()],
            key=places.reshape(-1),
            degree=np.array(DEGREES)[cells % len(DEGREES)],
            people=counts,
        )
