"""Scores for private selection: each candidate gets a number, and high ones are preferred.

A score is an exact whole number of a public unit (halves, for the median), so that the choice can be drawn
exactly.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_probability
from discreet.guarantees.unit import Unit
from discreet.queries.numeric import Sum
from discreet.queries.query import largest_change
from discreet.queries.ranks import places_of
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Categories, Grid, Integers
from discreet.rows import cells, number_of, parts_of, table
from discreet.rows.containers import Data


@dataclass(frozen=True, eq=False)
class Scores:
    """The true scores of all candidates: candidate i scores `steps[i] * unit`. They do not print."""

    steps: NDArray[np.int64] = field(repr=False)
    unit: Fraction

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Popularity(Closed):
    """How many rows like each item. A row is a collection of items, or a 0/1 row over the choices.

    Promise: one row changes each score by at most 1 in both relations; monotone under add/remove. Source:
    [L3.POP].

    >>> Popularity(("Heat", "Alien"))([{"Heat"}, {"Heat", "Alien"}]).steps
    array([2, 1])
    """

    choices: Categories | Sequence[Hashable]

    def __post_init__(self) -> None:
        if not isinstance(self.choices, Categories):
            object.__setattr__(self, "choices", Categories(self.choices))

    @property
    def space(self) -> Categories:
        """The declared items."""
        return cast(Categories, self.choices)

    def __call__(self, data: Data) -> Scores:
        if getattr(data, "ndim", 1) == 2:
            likes = table(data, len(self.space)) > 0
            return Scores(np.asarray(np.count_nonzero(likes, axis=0), dtype=np.int64), Fraction(1))
        # a set of indices: an item that a row names twice counts once
        rows = (set(self.space.positions(_items(row)).tolist()) for row in cells(data))
        places = np.fromiter((place for row in rows for place in row if place >= 0), np.int64)
        return Scores(np.bincount(places, minlength=len(self.space)), Fraction(1))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """1 for each row of the unit, in both relations."""
        amount = largest_change(unit, rows_per_person, added=1, replaced=1)
        return Sensitivity(amount, "Linf", unit, len(self.space), 1, unit.neighbors == "add_or_remove")


@dataclass(frozen=True)
class Ratings(Closed):
    """The sum of the scores that rows give to each item, each clamped `between` declared bounds. A missing score adds
    nothing.

    A row is a mapping of items to scores, or a line of scores over the choices, NaN where there is none.

    Promise: one row, added or removed, changes each total by at most max(|low|, |high|); replaced, by at most that or
    high − low. Monotone under add/remove when no score is below 0. Source: [L3.POP], with more than a like.

    >>> Ratings(("Heat", "Alien"), (0, 5))([{"Heat": 4}, {"Heat": 9, "Alien": 1}]).steps
    array([9, 1])
    """

    choices: Categories | Sequence[Hashable]
    between: tuple[Number, Number]
    step: Number = 1

    def __post_init__(self) -> None:
        if not isinstance(self.choices, Categories):
            object.__setattr__(self, "choices", Categories(self.choices))
        self._total  # noqa: B018 (its own checks)

    @property
    def _total(self) -> Sum:
        return Sum(self.between, self.step)

    @property
    def space(self) -> Categories:
        """The declared items."""
        return cast(Categories, self.choices)

    def __call__(self, data: Data) -> Scores:
        total = self._total
        if getattr(data, "ndim", 1) == 2:
            lines = table(data, len(self.space))
        else:
            lines = table([self._line(record) for record in cells(data)], len(self.space))
        sums = [int(total(line[~np.isnan(line)]) / total.grain) for line in np.asarray(lines, dtype=np.float64).T]
        # clamped to 62 bits, which never increases a distance
        return Scores(np.array([min(max(one, -(2**62)), 2**62) for one in sums], dtype=np.int64), total.grain)

    def _line(self, record: Any) -> list[Any] | None:
        """The scores of one row, in the order of the choices."""
        if not issubclass(type(record), dict):
            return parts_of(record, len(self.space))
        scores = [np.nan] * len(self.space)
        for item, score in dict.items(record):
            for place in self.space.positions([item]).tolist():
                if place >= 0:
                    scores[place] = number_of(score)
        return scores

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """max(|low|, |high|) for an added or removed row, and high − low if that is more for a replaced one."""
        low, high = self._total.space.ends
        most = max(abs(low), abs(high))
        amount = largest_change(unit, rows_per_person, added=most, replaced=max(most, high - low))
        monotone = unit.neighbors == "add_or_remove" and (low >= 0 or high <= 0)
        return Sensitivity(amount, "Linf", unit, len(self.space), self._total.grain, monotone)


@dataclass(frozen=True)
class MedianScore(Closed):
    """The lecture's score of a median: `-| #{x ≥ ℓ} - #{x ≤ ℓ} |` for each candidate ℓ of the space.

    Promise: an added or removed row changes each score by at most 1, a replaced one by at most 2. Source:
    [L3.MED].

    >>> MedianScore(Grid(0, 4, 1))([1, 2, 4]).steps
    array([-3, -2,  0, -1, -2])
    """

    space: Grid | Integers

    def __call__(self, data: Data) -> Scores:
        below, above, _ = _ranks(self.space, data)
        return Scores(-np.abs(above - below), Fraction(1))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """A row changes one of the two counts, or both equally. A replaced row may move from one to the other."""
        amount = largest_change(unit, rows_per_person, added=1, replaced=2)
        return Sensitivity(amount, "Linf", unit, len(self.space), grain=1)


@dataclass(frozen=True)
class QuantileScore(Closed):
    """By how many ranks a candidate ℓ misses the quantile p: `-max(0, #{x < ℓ} - pn, #{x > ℓ} - (1-p)n)`.

    At p = 1/2 this is `-max(0, n/2 - min(#≥, #≤))`. Some candidate always scores 0, ties or not. Source:
    [L3.MED-DUP].

    Promise: `#< - pn = (1-p)·#< - p·#≥` moves by 1-p or -p when a row is added, and the other side likewise,
    so each score changes by at most max(p, 1-p) under add/remove (1/2 for the median), and by at most 1 under
    replacement. With p = a/b the unit is 1/b.

    >>> QuantileScore(Grid(0, 4, 1))([1, 2, 4]).steps, QuantileScore(Grid(0, 4, 1)).unit
    (array([-3, -1,  0, -1, -1]), Fraction(1, 2))
    """

    space: Grid | Integers
    quantile: Number = Fraction(1, 2)

    def __post_init__(self) -> None:
        if self._exact.denominator > 10**9:
            raise InvalidArgument(
                "quantile must be a fraction with at most 9 decimals, such as 0.25.", code="too-many-digits"
            )

    @property
    def _exact(self) -> Fraction:
        return check_probability(self.quantile, "quantile")

    @property
    def unit(self) -> Fraction:
        """The public step of the scores."""
        return Fraction(1, self._exact.denominator)

    def __call__(self, data: Data) -> Scores:
        return Scores(-self.missed(*_ranks(self.space, data)), self.unit)

    def missed(
        self, below: NDArray[np.int64], above: NDArray[np.int64], rows: int, moved: int = 0
    ) -> NDArray[np.int64]:
        """By how many ranks, in units, a candidate with these numbers of rows below and above misses its target, which
        is `moved` by a fixed number of ranks. That changes no difference between scores of neighbors.
        """
        part, whole = self._exact.as_integer_ratio()
        target = part * rows + whole * moved
        return np.maximum(np.maximum(whole * below - target, whole * above - (whole * rows - target)), 0)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """max(p, 1-p) for an added or removed row, 1 for a replaced one."""
        added = max(self._exact, 1 - self._exact)
        amount = largest_change(unit, rows_per_person, added=added, replaced=1)
        return Sensitivity(amount, "Linf", unit, len(self.space), self.unit)


def _ranks(space: Grid | Integers, data: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """How many rows lie strictly below and above each candidate, with every row at its nearest point, and the number of
    rows.

    Missing rows are dropped, unless the space declares where they go: losing a row costs no more than
    replacing it.
    """
    places = places_of(space, data)
    here = np.bincount(places, minlength=len(space))
    up_to = np.cumsum(here)
    return up_to - here, len(places) - up_to, len(places)


def _items(row: Any) -> list[Any]:
    """What a row names: the members of a built-in collection or of an array, otherwise the row itself."""
    for kind in (list, tuple, set, frozenset, dict):
        if issubclass(type(row), kind):
            return list(kind.__iter__(row))
    if issubclass(type(row), np.ndarray):
        return np.ndarray.tolist(row.reshape(-1))  # type: ignore[no-any-return]
    return [row]
