"""Least squares with known noise: what measurements of one vector say about sums of its cells.

All of it is decided by the rows and the variances. The noisy numbers enter only when the weights are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sql.estimates.law import Noise

Floats = NDArray[np.float64]
_AT_ONCE = 512
"""So many numbers are added at once."""
_RANK = 1e-7
"""Directions that are measured with more than 10⁷ times the least noise count as not measured."""
_FREE = 1e-8
"""How much of a direction may lie outside of what is measured, by rounding."""
UNBIASED = 1e-11
"""The weights must give the asked sum of cells up to this part of a cell: beyond it, an estimate is not used."""


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over sets of cells with one noise: rows of 0 and 1, and the noisy numbers. `place` is that of the measure
    among those of its entry.
    """

    number: int
    receipt: str
    rows: Floats
    noise: Noise
    values: Floats
    place: int = 0


@dataclass(eq=False)
class Information:
    """All that the measurements of a vector say. It does not change: an estimate that waits for its draw relies on it.

    Cells that no measurement tells apart form one class, and the sum of a class is one unknown. In the factors, an
    unknown is divided by the root of the number of its cells, so that lengths are those over all cells. Cells that
    nothing has measured have the label −1.
    """

    cells: int
    blocks: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        self.labels: NDArray[np.int64] = np.full(self.cells, -1, dtype=np.int64)
        self.sizes: Floats = np.zeros(0)
        self.rows: Floats = np.zeros((0, 0))
        self.variances: Floats = np.zeros(0)
        self.values: Floats = np.zeros(0)
        self._root: Floats = np.zeros((0, 0))

    def with_blocks(self, blocks: Sequence[Block]) -> Information:
        """The same with more measurements."""
        found, waiting, many = self, list[Block](), 0
        for block in blocks:
            waiting, many = [*waiting, block], many + len(block.rows)
            if many >= _AT_ONCE:
                found, waiting, many = found._with(waiting), [], 0
        return found._with(waiting) if waiting else found

    def _with(self, blocks: Sequence[Block]) -> Information:
        found = copy(self)
        for name in ("factors", "matrix", "_members"):
            found.__dict__.pop(name, None)
        rows = np.vstack([block.rows for block in blocks])
        first = found._divide(rows)
        own = rows[:, first]
        deviations = np.concatenate([np.full(len(block.rows), block.noise.deviation) for block in blocks])
        root = np.vstack([found._root, own * np.sqrt(found.sizes) / deviations[:, None]])
        found._root = np.asarray(np.linalg.qr(root, mode="r")) if len(root) > len(found.sizes) else root
        found.rows = np.vstack([found.rows, own])
        found.variances = np.append(self.variances, deviations**2)
        found.values = np.concatenate([self.values, *(block.values for block in blocks)])
        found.blocks = (*self.blocks, *blocks)
        return found

    def _divide(self, rows: Floats) -> NDArray[np.int64]:
        """Divide the classes so that rows are the same in all cells of a class. Returns one cell of each class."""
        touched = np.flatnonzero((self.labels >= 0) | rows.any(axis=0))
        told = np.vstack([self.labels[touched], rows[:, touched]])
        _, first, place = np.unique(told, axis=1, return_index=True, return_inverse=True)
        parents, sizes = self.labels[touched[first]], np.bincount(place.ravel()).astype(np.float64)
        if len(parents) != len(self.sizes) or (parents < 0).any():
            old = parents >= 0
            part = np.zeros(len(parents))
            part[old] = np.sqrt(sizes[old] / self.sizes[parents[old]])
            self._root = _with_zeros(self._root)[:, parents] * part
            self.rows = _with_zeros(self.rows)[:, parents]
        self.labels = self.labels.copy()  # those of what was known before stay
        self.labels[touched], self.sizes = place.ravel(), sizes
        return touched[first]

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """An orthonormal basis of what is measured, and the precision of each direction."""
        if not self.blocks:
            return np.zeros((0, 0)), np.zeros(0)
        _, sizes, directions = np.linalg.svd(self._root, full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        return np.ascontiguousarray(directions[kept].T), sizes[kept] ** 2

    @cached_property
    def matrix(self) -> Floats:
        """Rowsᵀ · variances⁻¹ · rows, in the coordinates of the factors."""
        return np.asarray(self._root.T @ self._root)

    @cached_property
    def _members(self) -> Floats:
        """For each cell the class that it is in, as rows of 0 and 1, divided by the root of its size."""
        found = spread_places(self.labels, len(self.sizes)).T
        return np.asarray(found / np.sqrt(self.sizes))

    def about(self, asked: Floats) -> Prior:
        """What is known about the sums that the rows of `asked` name."""
        basis, precision = self.factors
        classes = asked @ self._members
        inside = classes @ basis
        missing = asked @ asked.T - inside @ inside.T
        spread, directions = np.linalg.eigh((missing + missing.T) / 2)
        known = directions[:, spread < _FREE * max(1.0, float(np.abs(asked).sum(axis=1).max(initial=1.0)))].T
        through = (known @ inside / precision) @ basis.T  # known · asked · matrix⁻
        left = known @ classes - through @ self.matrix
        through = through + ((left @ basis) / precision) @ basis.T
        return Prior(self, asked, classes, known, through)

    def over_cells(self, classes: Floats) -> Floats:
        """Numbers of classes, for all their cells. 0 where nothing was measured."""
        return _with_zeros(classes)[:, self.labels]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of earlier numbers and of new ones, for each sum that is asked for."""

    before: Floats
    new: Floats


@dataclass(frozen=True, eq=False)
class Prior:
    """What earlier measurements say about some sums: `known` are the directions of which they say anything, and
    `through` leads from rows and variances to their weights. `classes` are the asked sums in the coordinates of the
    factors.
    """

    information: Information
    asked: Floats
    classes: Floats
    known: Floats
    through: Floats

    @property
    def is_complete(self) -> bool:
        """Whether every sum follows from earlier measurements."""
        return len(self.known) == len(self.asked)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the estimates of the known directions."""
        found = self.through @ self.classes.T @ self.known.T
        return np.asarray((found + found.T) / 2)

    @cached_property
    def precision(self) -> tuple[Floats, Floats]:
        """The precision of the sums, as eigenvalues and eigenvectors. 0 in directions that are not known."""
        if not len(self.known):
            return np.zeros(len(self.asked)), np.eye(len(self.asked))
        inner = self.known.T @ np.linalg.solve(self.covariance, self.known)
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        return np.maximum(values, 0.0), vectors

    def variances(self, new: float) -> Floats:
        """The variance of each estimate, together with a new measurement of all sums with this variance."""
        values, vectors = self.precision
        return np.asarray((vectors**2) @ (1 / (values + 1 / new)))

    def weights(self, new: float | None = None) -> Weights | None:
        """The weights of least variance, with a new measurement of all sums with this variance or without one. None if
        they are not exact enough.
        """
        many = len(self.asked)
        if new is None:
            if not self.is_complete:
                return None
            inside, fresh = self.known.T, np.zeros((many, many))
        else:
            values, vectors = self.precision
            posterior = (vectors / (values + 1 / new)) @ vectors.T
            fresh = posterior / new
            inside = np.zeros((many, 0))
            if len(self.known):
                inside = posterior @ np.linalg.solve(self.covariance, self.known).T
        known = self.information
        before = (inside @ self.through * np.sqrt(known.sizes)) @ known.rows.T / known.variances[None, :]
        left = self.asked - known.over_cells(before @ known.rows) - fresh @ self.asked
        return Weights(before, fresh) if float(np.abs(left).max(initial=0.0)) <= UNBIASED else None


def spread_places(places: Any, groups: int) -> Floats:
    """Places of cells as rows of 0 and 1."""
    return np.asarray(np.arange(groups)[:, None] == np.asarray(places)[None, :], dtype=np.float64)


def _with_zeros(numbers: Floats) -> Floats:
    """Numbers with one more column, of zeros: that of the label −1."""
    return np.hstack([numbers, np.zeros((len(numbers), 1))])
