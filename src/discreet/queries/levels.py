"""Sums at several levels of detail that add up: by region and city, by region, and in total.

A level puts cells into groups. Each level is measured with its own noise, and the estimates use all of them: they are
the best linear ones, and every group is the sum of its cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.rows.convex import onto_simplex

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Names = tuple[int, ...]
"""The keys of a level, by position."""
LEAST = 1e-3
"""The smallest share of a level, next to the largest."""
_STEPS, _EXACT = 500, 1e-13
_KNOWN = 1e4
"""How much more precise than a noisy number a known one is taken to be. It is kept exactly in the end."""


def with_meets(levels: Sequence[Names]) -> tuple[Names, ...]:
    """These levels and then the keys that any of them have in common, as levels of their own."""
    found = dict.fromkeys(tuple(sorted(level)) for level in levels)
    added = list(found)
    while added:
        meets = {tuple(sorted(set(one) & set(other))) for one in added for other in found}
        added = sorted(meets - found.keys())
        found |= dict.fromkeys(added)
    return tuple(found)


@dataclass(frozen=True)
class LevelSizes:
    """Levels by their keys, and the number of groups of each. `asked` of them, the first, are wanted, and the others
    help. `cells` is the number of groups of the finest level that there could be.
    """

    levels: tuple[Names, ...]
    sizes: tuple[int, ...]
    cells: int
    asked: int

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """Whether the keys of one level are all among those of another."""
        keys = [frozenset(level) for level in self.levels]
        return np.array([[one <= other for other in keys] for one in keys])

    @cached_property
    def _added(self) -> Floats:
        """How many dimensions each level adds to those of the coarser levels."""
        added = np.zeros(len(self.levels))
        for place in sorted(range(len(self.levels)), key=lambda place: len(self.levels[place])):
            coarser = self._inside[:, place] & (np.arange(len(added)) != place)
            added[place] = max(0.0, self.sizes[place] - float(added[coarser].sum()))
        return added

    @cached_property
    def _groups(self) -> Floats:
        return np.array(self.sizes, dtype=np.float64)

    def _strength(self, weights: Floats) -> Floats:
        """The information about one dimension that each level adds, from this level and all finer ones."""
        return np.asarray(self._inside @ (weights * self.cells / self._groups))

    def variances(self, weights: Floats) -> Floats:
        """The variance of the estimate of a group at each level, if the noise of each has the variance 1/weight. It is
        exact if the cells are all combinations of the keys' values, and an approximate mean otherwise.
        """
        return self._inside.T @ (self._added / self._strength(weights)) * self.cells / self._groups**2

    def shares(self) -> Floats:
        """The part of ε for each level with which the variances of a group, added over the levels asked for, are
        smallest.

        The variance of Laplace noise falls with the square of a share. Two searches, from equal shares and from nearly
        everything for the finest level, find different valleys.
        """
        from scipy.optimize import minimize

        wanted = np.arange(len(self.levels)) < self.asked
        costs = self._added * (self._inside @ (wanted * self.cells / self._groups**2))

        def shares_of(logarithms: Floats) -> Floats:
            parts = np.exp(logarithms - logarithms.max())
            parts = np.maximum(parts, LEAST)
            return np.asarray(parts / parts.sum())

        def error(logarithms: Floats) -> tuple[float, Floats]:
            """The logarithm of the sum of variances, and its slopes."""
            shares = shares_of(logarithms)
            strength = self._strength(shares**2)
            total = float(np.sum(costs / strength))
            gains = (self._inside.T @ (costs / strength**2)) * self.cells / self._groups
            slopes = -2 * shares**2 * gains / total
            return float(np.log(total)), slopes - shares * slopes.sum()

        starts = [np.zeros(len(self.levels)), np.log(np.where(self._groups == max(self.sizes), 1.0, LEAST))]
        found = [minimize(error, start, jac=True, method="L-BFGS-B") for start in starts]
        return shares_of(min(found, key=lambda one: float(one.fun)).x)


@dataclass(frozen=True)
class Levels:
    """Cells in groups: `keys` and `sizes` of all levels and, in `places`, the group of each cell at each level."""

    keys: tuple[Names, ...]
    sizes: tuple[int, ...]
    places: tuple[Integers, ...]

    @classmethod
    def of(cls, keys: Sequence[Names], cells: Sequence[tuple[Any, ...]]) -> tuple[Self, list[list[tuple[Any, ...]]]]:
        """The levels with these keys, and the groups of each in the order of their first cells."""
        places, groups = [], []
        for level in keys:
            known: dict[tuple[Any, ...], int] = {}
            parts = (tuple(cell[key] for key in level) for cell in cells)
            places.append(np.array([known.setdefault(part, len(known)) for part in parts], dtype=np.int64))
            groups.append(list(known))
        return cls(tuple(keys), tuple(map(len, groups)), tuple(places)), groups

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.places[0])

    def sums(self, values: Any, level: int) -> Any:
        """The exact sums of whole numbers in the groups of a level."""
        values = np.asarray(values)
        large = values.dtype == object or (values.size and float(np.abs(values.astype(np.float64)).sum()) >= 2.0**62)
        total = np.zeros(self.sizes[level], dtype=object if large else np.int64)
        np.add.at(total, self.places[level], values.astype(total.dtype))
        return total

    def smoothed(self, gaps: Sequence[Floats], weights: Sequence[float]) -> Floats:
        """The values of cells whose sums are nearest to the given numbers of all levels, in weighted squares. Of all
        such values, the smallest. A second axis of the numbers has several draws.
        """
        return self._in_tree(gaps, weights) if self.is_chain() else self._by_steps(gaps, weights)

    def _in_tree(self, gaps: Sequence[Floats], weights: Sequence[float]) -> Floats:
        """In a chain of levels: upwards, each number and the sum of what is below it are averaged by their precision.
        Downwards, what is missing is divided by variance.
        """
        order = sorted(range(len(self.keys)), key=lambda n: len(self.keys[n]))
        below = self._from_below(order, weights)
        best: dict[int, Floats] = {}
        for place, n in reversed(list(enumerate(order))):
            best[n] = np.asarray(gaps[n], np.float64)
            if place + 1 < len(order):
                finer = order[place + 1]
                part = (weights[n] / below[n]).reshape(-1, *[1] * (best[n].ndim - 1))
                best[n] = part * best[n] + (1 - part) * _added(best[finer], self._parents(finer, n), self.sizes[n])
        for n, finer in itertools.pairwise(order):
            parents = self._parents(finer, n)
            spread = 1 / below[finer]
            part = (spread / np.bincount(parents, spread, self.sizes[n])[parents]).reshape(
                -1, *[1] * (best[n].ndim - 1)
            )
            best[finer] = best[finer] + part * (best[n] - _added(best[finer], parents, self.sizes[n]))[parents]
        finest = order[-1]
        many = np.bincount(self.places[finest], minlength=self.sizes[finest])
        return (best[finest] / many.reshape(-1, *[1] * (best[finest].ndim - 1)))[self.places[finest]]

    def _from_below(self, order: Sequence[int], weights: Sequence[float]) -> dict[int, Floats]:
        """The precision with which each group of a chain is known from its own number and those below it."""
        below: dict[int, Floats] = {}
        for place, n in reversed(list(enumerate(order))):
            below[n] = np.full(self.sizes[n], float(weights[n]))
            if place + 1 < len(order):
                finer = order[place + 1]
                below[n] += 1 / np.bincount(self._parents(finer, n), 1 / below[finer], self.sizes[n])
        return below

    def _by_steps(self, gaps: Sequence[Floats], weights: Sequence[float]) -> Floats:
        """By conjugate gradients: one step for each different eigenvalue, of which there are few if the cells are all
        combinations of some values.
        """

        def squared(values: Floats) -> Floats:
            sums = (w * _added(values, places, size)[places] for w, places, size in zip(weights, *sized, strict=True))
            return np.asarray(sum(sums))

        sized = self.places, self.sizes
        left = np.asarray(sum(w * np.asarray(gaps[n], np.float64)[self.places[n]] for n, w in enumerate(weights)))
        found, ahead = np.zeros_like(left), left.copy()
        size = (left * left).sum(axis=0)
        small = size * _EXACT**2
        for _ in range(_STEPS):
            if np.all(size <= small):
                break
            moved = squared(ahead)
            along = (ahead * moved).sum(axis=0)
            step = np.divide(size, along, out=np.zeros_like(size), where=along > 0)
            found, left = found + step * ahead, left - step * moved
            before, size = size, (left * left).sum(axis=0)
            ahead = left + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * ahead
        return found

    def estimates(self, noisy: Sequence[Any], weights: Sequence[float]) -> tuple[Any, Floats]:
        """The best estimates of the cells, as whole numbers plus small fractions: they lose no digits."""
        finest = next((n for n, size in enumerate(self.sizes) if size == self.cells), None)
        base = np.zeros(self.cells, dtype=np.int64)
        if finest is not None:
            base = np.asarray(noisy[finest])[self.places[finest]]
        gaps = [(np.asarray(one) - self.sums(base, n)).astype(np.float64) for n, one in enumerate(noisy)]
        return base, self.smoothed(gaps, weights)

    def fitted(self, base: Any, rest: Floats, known: tuple[int, Sequence[int]], weights: Sequence[float]) -> Floats:
        """The fractions of estimates that are made to fit a level with known sums: what is missing is divided by
        variance, which makes no estimate worse.
        """
        level, totals = known
        missing = np.array([int(total) for total in totals]) - self.sums(base, level)
        gaps = [np.zeros(size) for size in self.sizes]
        gaps[level] = missing.astype(np.float64) - _added(rest, self.places[level], self.sizes[level])
        exact = [_KNOWN * max(weights) if n == level else weight for n, weight in enumerate(weights)]
        return rest + self.smoothed(gaps, exact)

    # --- how wrong the estimates are ------------------------------------------------------------------------

    def is_chain(self) -> bool:
        """Whether each level divides the groups of the next coarser one."""
        ordered = sorted(map(set, self.keys), key=len)
        return all(coarse <= fine for coarse, fine in itertools.pairwise(ordered))

    def variances(self, weights: Sequence[float]) -> list[Floats]:
        """The variances of the estimates of all groups: exact in a chain of levels, or if cells are all combinations
        of some values. Otherwise not more than these.
        """
        if self.is_chain():
            return self._variances_in_tree(weights)
        if self._is_product():
            sizes = LevelSizes(self.keys, self.sizes, self.cells, len(self.keys))
            pairs = zip(sizes.variances(np.asarray(weights)), self.sizes, strict=True)
            return [np.full(size, variance) for variance, size in pairs]
        return [1 / self._precision(n, weights) for n in range(len(self.keys))]

    def _is_product(self) -> bool:
        """Whether the cells are all combinations of the groups of single keys, and the keys that levels have in common
        are levels.
        """
        alone = {key: n for n, keys in enumerate(self.keys) for key in keys if len(keys) == 1}
        every = {key for keys in self.keys for key in keys}
        size = math.prod(self.sizes[alone[key]] for key in every) if every <= alone.keys() else 0
        return size == self.cells and len(with_meets(self.keys)) == len(self.keys)

    def _precision(self, level: int, weights: Sequence[float]) -> Floats:
        """The precision of a mean of sums of finer groups. The best estimate is at least as precise."""
        found = np.zeros(self.sizes[level])
        for finer, keys in enumerate(self.keys):
            if set(self.keys[level]) <= set(keys):
                parts = np.bincount(self._parents(finer, level), minlength=self.sizes[level])
                found += float(weights[finer]) / parts
        return found

    def _variances_in_tree(self, weights: Sequence[float]) -> list[Floats]:
        """In a tree, what is known about a group comes from its own noisy number, from those below it, and from those
        above and beside it.
        """
        order = sorted(range(len(self.keys)), key=lambda n: len(self.keys[n]))
        below = self._from_below(order, weights)
        found, outside = {}, np.zeros(self.sizes[order[0]])
        for place, n in enumerate(order):
            found[n] = 1 / (below[n] + outside)
            if place + 1 < len(order):
                finer = order[place + 1]
                parents = self._parents(finer, n)
                beside = np.bincount(parents, 1 / below[finer], self.sizes[n])[parents] - 1 / below[finer]
                without = 1 / (outside + float(weights[n]))
                outside = 1 / (without[parents] + np.maximum(beside, 0.0))
        return [found[n] for n in range(len(self.keys))]

    def _parents(self, finer: int, coarser: int) -> Integers:
        """The coarser group of each finer one."""
        found = np.zeros(self.sizes[finer], dtype=np.int64)
        found[self.places[finer]] = self.places[coarser]
        return found

    # --- whole numbers --------------------------------------------------------------------------------------

    def whole(
        self, base: Any, rest: Floats, known: tuple[int, Sequence[int]] | None = None, *, positive: bool = False
    ) -> Any:
        """The cells, given as whole numbers plus fractions, as whole numbers near them.

        From the top down, the groups of each level in a chain of levels get whole numbers that add up to those of the
        level above. `known` is a level with the sums of all its groups, which are kept. With `positive`, no cell is
        below 0.
        """
        if not self.cells:
            return np.asarray(base)
        above, names = np.zeros(self.cells, dtype=np.int64), set[int]()
        if known is None:
            moved = whole_numbers(np.round(np.sum(rest, keepdims=True)))
            least = -np.asarray(base).astype(object).sum() if positive else moved[0]
            if moved[0] < least:
                moved = np.array([least], dtype=object)
        else:
            above, names = self.places[known[0]], set(self.keys[known[0]])
            moved = np.array([int(total) for total in known[1]]) - self.sums(base, known[0])
        for n in sorted(range(len(self.keys)), key=lambda n: len(self.keys[n])):
            if names < set(self.keys[n]) and self.sizes[n] < self.cells:
                parents = np.zeros(self.sizes[n], dtype=np.int64)
                parents[self.places[n]] = above
                low = -self.sums(base, n) if positive else None
                moved = _divided(_added(rest, self.places[n], self.sizes[n]), parents, moved, low)
                above, names = self.places[n], set(self.keys[n])
        return np.asarray(base) + _divided(rest, above, moved, -np.asarray(base) if positive else None)


def _added(values: Floats, places: Integers, size: int) -> Floats:
    """The sums of the values with the same place. A second axis has several draws."""
    if values.ndim == 1:
        return np.asarray(np.bincount(places, values, size), np.float64)
    total = np.zeros((size, *values.shape[1:]))
    np.add.at(total, places, values)
    return total


def whole_numbers(values: Floats) -> Any:
    """Whole numbers as integers of 64 bits, or of any size where a sum of some might not fit."""
    if float(np.abs(values).sum()) < 2.0**62:
        return values.astype(np.int64)
    return np.array([int(value) for value in values.tolist()], dtype=object)


def _divided(parts: Floats, parents: Integers, totals: Any, low: Any | None) -> Any:
    """Whole numbers near `parts` that add up to the total of each parent: all are moved alike, rounded down, and then
    those that lose most are rounded up. None is below its `low`.
    """
    number = len(totals)
    many = np.bincount(parents, minlength=number)
    if low is None:
        missing = (np.asarray(totals, np.float64) - np.bincount(parents, parts, number)) / np.maximum(many, 1)
        near = parts + missing[parents]
    else:
        near = parts.astype(np.float64)
        order, ends = np.argsort(parents, kind="stable"), np.cumsum(many)
        for parent, own in enumerate(np.split(order, ends[:-1])):
            least = np.asarray(low[own], np.float64)
            room = float(totals[parent]) - float(least.sum())
            near[own] = least + (onto_simplex(parts[own] - least, room) if room > 0 else 0.0)
    found = np.floor(near)
    if low is not None:
        found = np.maximum(found, np.asarray(low, np.float64))
    lost, found = near - found, whole_numbers(found)
    kind = object if object in (found.dtype, np.asarray(totals).dtype) else np.int64
    found, missing = np.array(found, dtype=kind), np.array(totals, dtype=kind)
    np.subtract.at(missing, parents, found)
    order = np.lexsort((-lost, parents))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(many) - many, many)
    turns, more = missing // np.maximum(many, 1), missing % np.maximum(many, 1)
    found[order] += turns[parents[order]] + (rank < more[parents[order]]).astype(np.int64)
    return found
