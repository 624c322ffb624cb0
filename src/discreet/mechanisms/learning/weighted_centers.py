"""Clusters of a few weighted points that are already private: not a mechanism, only arithmetic on what was released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.rows.rounding import Floats

_STEPS = 20


def weighted_centers(points: Floats, weights: Floats, clusters: int) -> Floats:
    """At most `clusters` centers of weighted points, by greedy choice, Lloyd's steps and moves of single centers."""
    clusters = min(clusters, len(points))
    apart = _squared(points, points)
    centers = _settled(points, weights, points[_greedy(apart, weights, clusters)])
    cost = _cost(points, weights, centers)
    for _ in range(2 * clusters):
        tried = _settled(points, weights, _one_moved(points, weights, centers, apart))
        found = _cost(points, weights, tried)
        if found >= cost * (1 - 1e-9):
            break
        centers, cost = tried, found
    return centers


def _squared(points: Floats, centers: Floats) -> Floats:
    length = (points**2).sum(1)[:, None] + (centers**2).sum(1)
    return np.asarray(np.maximum(length - 2 * points @ centers.T, 0.0))


def _cost(points: Floats, weights: Floats, centers: Floats) -> float:
    return float(weights @ _squared(points, centers).min(1))


def _greedy(apart: Floats, weights: Floats, clusters: int) -> list[int]:
    """Each point in turn that lowers the cost the most."""
    chosen = [int((weights @ apart).argmin())]
    nearest = apart[chosen[0]].copy()
    while len(chosen) < clusters:
        chosen.append(int((weights @ np.minimum(nearest[:, None], apart)).argmin()))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return chosen


def _settled(points: Floats, weights: Floats, centers: Floats) -> Floats:
    for _ in range(_STEPS):
        nearest: NDArray[np.int64] = _squared(points, centers).argmin(1)
        members = (nearest[:, None] == np.arange(len(centers))) * weights[:, None]
        sizes = members.sum(0)[:, None]
        moved = np.where(sizes > 0, members.T @ points / np.maximum(sizes, 1e-300), centers)
        if np.array_equal(moved, centers):
            break
        centers = moved
    return centers


def _one_moved(points: Floats, weights: Floats, centers: Floats, apart: Floats) -> Floats:
    """The center that is missed least moves to the point that gains most."""
    if len(centers) < 2:
        return centers
    squared = _squared(points, centers)
    two = np.partition(squared, 1, axis=1)
    nearest = squared.argmin(1)
    lost = np.bincount(nearest, weights * (two[:, 1] - two[:, 0]), minlength=len(centers))
    gone = int(lost.argmin())
    left = np.where(nearest == gone, two[:, 1], two[:, 0])
    moved = centers.copy()
    moved[gone] = points[int((weights @ np.minimum(left[:, None], apart)).argmin())]
    return moved
