"""Gradient descent without noise, as taught, and how many steps are worth while with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.learning.descent.error import Average
from discreet.rows.convex import region_of

Floats = NDArray[np.float64]


def enough_steps(mu: float, *, size: float, dimension: int, replaced: bool = False, most: int = 1000) -> int:
    """The number of steps after which more steps hardly lower the bound of [L10.T2]: T ≥ n²μ²/(4d) for replaced rows,
    n²μ²/d otherwise.
    """
    return max(1, min(most, math.ceil((size * mu) ** 2 / ((4 if replaced else 1) * dimension))))


def plain_descent(
    gradient: Callable[[Floats], Any],
    *,
    dimension: int,
    steps: int,
    learning_rate: float,
    region: Any = None,
    average: Average = "all",
) -> NDArray[np.float64]:
    """Projected gradient descent without noise, as taught [L10.PGD]. Not private: for public data and for tests.

    Error: with η = R/(G√T), the average of all iterates is within RG/√T of the best [L10.T1].
    """
    place = region_of(region)
    weights, kept = place.project(np.zeros(dimension)), np.zeros(dimension)
    first = {"all": 0, "last half": steps // 2, "last": steps - 1}[average]
    for step in range(steps):
        weights = place.project(weights - learning_rate * np.asarray(gradient(weights)))
        if step >= first:
            kept = kept + weights
    return kept / (steps - first)
