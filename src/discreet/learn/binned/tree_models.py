"""Models of public random trees over bins: how they are fitted, their scores, and what each column does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.learn.base import check_is_fitted, keep_columns
from discreet.learn.binned.bin_tables import ColumnBins
from discreet.learn.binned.models import BinnedModel, BinnedRegressor, Layout
from discreet.rows.containers import Data
from discreet.rows.gradients.leaves import Bins, LeafRows, Tree, public_words

Floats = NDArray[np.float64]
BLOCK = 2**15
DRAWN = 500
"""The rows that importances are measured on."""


class TreeModel(BinnedModel):
    """What boosted trees and forests share. Importances use what was released, and cost nothing."""

    _bins: list[ColumnBins]
    _public: Bins
    _left: Floats
    _mixed: tuple[Floats, Floats] | None

    def _trees(self) -> list[Tree]:
        """The public trees."""
        raise NotImplementedError

    def _leaf_values(self) -> Floats:
        """What each leaf adds to a score: trees × classes × leaves."""
        raise NotImplementedError

    def _grow(self, X: Data, y: Data, how: str) -> Any:
        """Make the release, and give the mechanism that made it."""
        columns, goal, declared = self._opened(X, y)
        layout = Layout(tuple(declared), ())
        self.release_, mechanism = self._learn(layout, columns, goal, LeafRows, how)
        keep_columns(self, len(columns), None if columns.names is None else list(columns.names))
        ranges = self.release_.value.get("ranges")
        self._take_ranges(ranges)
        self._bins, self._public, self._mixed = layout.bins(ranges), mechanism.bins, None
        return mechanism

    @property
    def feature_importances_(self) -> Floats:
        """The share of each column in the variance of the scores, without what noise alone would give."""
        return self._importances()[0]

    @property
    def importance_noise_(self) -> Floats:
        """What noise alone would give each column, at most, in the unit of `feature_importances_`."""
        return self._importances()[1]

    def _importances(self) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        if self._mixed is None:
            change, noise = importances(self._trees(), self._leaf_values(), self._left, self._public)
            above = np.maximum(change - noise, 0)
            whole = max(float(above.sum()), float(noise.max()), 1e-300)
            self._mixed = above / whole, noise / whole
        return self._mixed

    def _scores(self, X: Data) -> Floats:
        """Classes × rows."""
        check_is_fitted(self)
        columns = self._known_columns(X)
        codes = [one.codes(columns, place) for place, one in enumerate(self._bins)]
        return summed(self._trees(), self._leaf_values(), codes)


class TreeRegressor(BinnedRegressor):
    """A regressor whose trees give scores between −1 and 1, the ends of the range of the target."""

    def _scores(self, X: Data) -> Floats:
        low, high = getattr(self, "target_range_", (-1.0, 1.0))
        return super()._scores(X) * self._spread() + low / 2 + high / 2


def public_bins(layout: Layout) -> Bins:
    """How many bins each column has, and whether they have an order."""
    bins = layout.bins(None)
    return Bins(tuple(one.bins for one in bins), tuple(one.choices is None for one in bins))


def summed(trees: list[Tree], values: Floats, codes: list[Any]) -> Floats:
    """The sum of the values of the leaves that each row is in: classes × rows."""
    many = len(codes[0])
    scores = np.zeros((values.shape[1], many))
    for start in range(0, many, BLOCK):
        part = [one[start : start + BLOCK] for one in codes]
        block = scores[:, start : start + BLOCK]
        for tree, leaves in zip(trees, values, strict=True):
            block += leaves.take(tree.places(part), axis=1)
    return scores


def importances(trees: list[Tree], values: Floats, left: Floats, bins: Bins) -> tuple[Floats, Floats]:
    """How much the scores change if one column is drawn anew, for each column, and how much of it is noise.

    Both are half the mean square of the change, for `DRAWN` rows of cells that are drawn uniformly from the bins.
    `left` is the standard deviation of the noise in the leaves of each tree.
    """
    rows = [_cells(number, size) for number, size in enumerate(bins.sizes)]
    others = [_cells(len(rows) + number, size) for number, size in enumerate(bins.sizes)]
    before = [tree.places(rows) for tree in trees]
    change, noise = np.zeros(len(rows)), np.zeros(len(rows))
    for column, other in enumerate(others):
        moved = np.zeros((values.shape[1], DRAWN))
        again = [*rows[:column], other, *rows[column + 1 :]]
        for tree, place, leaves, one in zip(trees, before, values, left, strict=True):
            if column in tree.columns:
                there = tree.places(again)
                moved += leaves.take(there, axis=1) - leaves.take(place, axis=1)
                noise[column] += float(np.mean(there != place)) * one**2 * values.shape[1]
        change[column] = float((moved * moved).sum()) / DRAWN / 2
    return change, noise


def _cells(number: int, size: int) -> Any:
    """Cells drawn uniformly from the bins of a column, without the one for missing cells, the same in every model."""
    words = public_words(0, number * DRAWN, DRAWN)
    return (words % np.uint64(max(size - 1, 1))).astype(np.int64)
