"""Exact sums of the rows that are nearest to a center. Which center is nearest depends on the row and centers alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.rows.rounding import Block, Floats, RoundedRows, unit_of


def nearest_of(whole: Floats, centers: Floats) -> NDArray[np.int64]:
    """The nearest center of each row, in integers below 2^43, so exactly; a tie goes to the first center."""
    return np.asarray((2 * (whole @ centers.T) - (centers**2).sum(1)).argmax(1))


def exact_rings(rows: RoundedRows, centers: Floats, edges: Floats) -> NDArray[Any]:
    """How many rows are nearest to each center, by ring of their distance."""

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        nearest = nearest_of(whole, centers)
        squared = ((whole - centers[nearest]) ** 2).sum(1)
        ring = (squared[:, None] <= edges[1:]).sum(1)
        place = (nearest * len(edges) + ring)[np.isfinite(goal)]
        return [np.bincount(place, minlength=len(centers) * len(edges)).reshape(len(centers), -1).astype(np.float64)]

    return rows.exact_sums(of_block)[0]


def exact_centered_sums(rows: RoundedRows, centers: Floats, radii: Floats) -> list[NDArray[Any]]:
    """How many rows are nearest to each center, and the sum of their moves from it, in 2^-19 of its radius.

    `radii` are in units. Promise: the move of a row depends on the row and its center alone, and is at most one radius
    long.
    """
    most = float(1 / unit_of(1)) * (1 - 2.0**-40) - math.sqrt(centers.shape[1]) / 2

    def of_block(block: Block) -> list[Floats]:
        whole, goal = block
        nearest = nearest_of(whole, centers)
        apart = whole - centers[nearest]
        length = np.sqrt((apart * apart).sum(1))  # of integers: exact in any order
        moves = np.rint(apart * (most / np.maximum(length, radii[nearest]))[:, None])
        members = ((nearest[:, None] == np.arange(len(centers))) & np.isfinite(goal)[:, None]).astype(np.float64)
        return [members.sum(0), members.T @ moves]

    return rows.exact_sums(of_block)
