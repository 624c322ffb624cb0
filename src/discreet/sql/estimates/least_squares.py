"""Least squares with known noise: what measurements of one vector say about sums of its cells.

All of it is decided by the rows and the variances. The noisy numbers enter only when the weights are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sql.estimates.law import Noise

Floats = NDArray[np.float64]
_STACKED = 4
"""Rows are reduced when there are so many times as many as cells."""
_RANK = 1e-7
"""Directions that are measured with more than 10⁷ times the least noise count as not measured."""
_FREE = 1e-8
"""How much of a direction may lie outside of what is measured, by rounding."""
UNBIASED = 1e-12
"""The weights must give the asked sum of cells up to this part of a cell: beyond it, an estimate is not used."""


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over disjoint sets of cells with one noise: rows of 0 and 1, and the noisy numbers."""

    number: int
    receipt: str
    rows: Floats
    noise: Noise
    values: Floats


@dataclass(frozen=True, eq=False)
class Information:
    """All that the measurements of a vector say. It never changes: an estimate that waits for its draw relies on it.
    `root` has as many rows as are needed, with rootᵀ · root = rowsᵀ · variances⁻¹ · rows.
    """

    cells: int
    blocks: tuple[Block, ...] = ()
    root: Floats | None = None

    def with_blocks(self, blocks: Sequence[Block]) -> Information:
        """The same with more measurements."""
        root = np.zeros((0, self.cells)) if self.root is None else self.root
        waiting, many = [root], len(root)
        for number, block in enumerate(blocks, 1):
            waiting.append(block.rows / block.noise.deviation)
            many += len(block.rows)
            if many > _STACKED * self.cells or (number == len(blocks) and many > self.cells):
                waiting = [np.asarray(np.linalg.qr(np.vstack(waiting), mode="r"))]
                many = len(waiting[0])
        return Information(self.cells, (*self.blocks, *blocks), np.vstack(waiting))

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """An orthonormal basis of what is measured, and the precision of each direction."""
        if not self.blocks or self.root is None:
            return np.zeros((self.cells, 0)), np.zeros(0)
        _, sizes, directions = np.linalg.svd(self.root, full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        return np.ascontiguousarray(directions[kept].T), sizes[kept] ** 2

    @cached_property
    def rows(self) -> Floats:
        """The rows of all blocks."""
        return np.vstack([block.rows for block in self.blocks]) if self.blocks else np.zeros((0, self.cells))

    @cached_property
    def variances(self) -> Floats:
        """The variance of each row."""
        each = [np.full(len(block.rows), block.noise.deviation**2) for block in self.blocks]
        return np.concatenate(each) if each else np.zeros(0)

    @cached_property
    def matrix(self) -> Floats:
        """Rowsᵀ · variances⁻¹ · rows."""
        return np.asarray((self.rows / self.variances[:, None]).T @ self.rows)

    def about(self, asked: Floats) -> Prior:
        """What is known about the sums that the rows of `asked` name."""
        basis, precision = self.factors
        inside = asked @ basis
        missing = asked @ asked.T - inside @ inside.T
        spread, directions = np.linalg.eigh((missing + missing.T) / 2)
        known = directions[:, spread < _FREE * max(1.0, float(np.abs(asked).sum(axis=1).max(initial=1.0)))].T
        through = (known @ inside / precision) @ basis.T  # known · asked · matrix⁻
        left = known @ asked - through @ self.matrix
        through = through + ((left @ basis) / precision) @ basis.T
        return Prior(self, asked, known, through)

    @property
    def values(self) -> Floats:
        """The noisy numbers of all rows."""
        return np.concatenate([block.values for block in self.blocks]) if self.blocks else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of earlier numbers and of new ones, for each sum that is asked for."""

    before: Floats
    new: Floats


@dataclass(frozen=True, eq=False)
class Prior:
    """What earlier measurements say about some sums: `known` are the directions of which they say anything, and
    `through` leads from rows and variances to their weights.
    """

    information: Information
    asked: Floats
    known: Floats
    through: Floats

    @property
    def is_complete(self) -> bool:
        """Whether every sum follows from earlier measurements."""
        return len(self.known) == len(self.asked)

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the estimates of the known directions."""
        found = self.through @ self.asked.T @ self.known.T
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
        before = (inside @ self.through @ self.information.rows.T) / self.information.variances[None, :]
        left = self.asked - before @ self.information.rows - fresh @ self.asked
        return Weights(before, fresh) if float(np.abs(left).max(initial=0.0)) <= UNBIASED else None


def spread_places(places: Any, groups: int) -> Floats:
    """Places of cells as rows of 0 and 1."""
    return np.asarray(np.arange(groups)[:, None] == np.asarray(places)[None, :], dtype=np.float64)
