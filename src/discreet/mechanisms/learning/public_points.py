"""Public points and directions, the same for all data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from discreet.rows.rounding import Floats

_CLOUD = 2**12


def spread_points(many: int, size: int) -> Floats:
    """`many` points spread evenly over [0, 1]^size: a lattice by powers of one root."""
    root = 2.0
    for _ in range(60):  # the root of x^(size+1) = x + 1
        root = (1 + root) ** (1 / (size + 1))
    places = np.arange(1, many + 1)[:, None] * root ** -np.arange(1.0, size + 1) + 0.5
    return np.asarray(np.clip(places % 1.0, 1e-9, 1 - 1e-9))


def spread_cloud(many: int, features: int, ball: bool) -> Floats:
    """Points spread evenly over [−1, 1]^features, or over the ball of radius 1."""
    from scipy.special import ndtri

    uniform = spread_points(many, features + ball)
    if not ball:
        return np.asarray(2 * uniform - 1)
    direction = ndtri(uniform[:, :-1])
    radius = uniform[:, -1:] ** (1 / features)
    return np.asarray(direction / np.linalg.norm(direction, axis=1, keepdims=True) * radius)


def spread_directions(features: int, many: int) -> Floats:
    """Orthogonal directions of length 1, as columns: those of a square wave of many phases, made orthogonal."""
    # irrational turns give numbers that look random, yet are the same on every machine up to rounding
    turns = np.outer(np.arange(1, features + 1) ** 2, np.sqrt(np.arange(1, many + 1) + 0.5))
    return np.asarray(np.linalg.qr(np.cos(2 * np.pi * (turns % 1.0)))[0])


@lru_cache(maxsize=64)
def public_centers(clusters: int, features: int, ball: bool) -> Floats:
    """The cluster means of a fixed set of points in [−1, 1]^d, or in the ball of radius 1."""
    cloud = spread_cloud(_CLOUD, features, ball)
    centers = [cloud[int(np.argmin((cloud**2).sum(1)))]]
    distance = np.full(len(cloud), np.inf)
    for _ in range(clusters - 1):
        distance = np.minimum(distance, ((cloud - centers[-1]) ** 2).sum(1))
        centers.append(cloud[int(distance.argmax())])
    found = np.array(centers)
    for _ in range(10):
        nearest = (cloud @ found.T - (found**2).sum(1) / 2).argmax(1)
        members = (nearest[:, None] == np.arange(clusters)).astype(np.float64)
        sizes = members.sum(0)[:, None]
        found = np.where(sizes > 0, members.T @ cloud / np.maximum(sizes, 1), found)
    return found
