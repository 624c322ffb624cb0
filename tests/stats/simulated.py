"""Simulated releases: samples of many families, divided and noised as the product does it, many releases at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.stats.inference.noisy_shares import Noise, NoisyShares

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Draws values between 0 and 1."""
RANGE = ((0, 0), (0, 1), (1, 1))
TWO = (*RANGE, (2, 2), (2, 3), (3, 3))


def lognormal(draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.minimum(draw.lognormal(0, 1, shape) / 20, 1.0)


FAMILIES: dict[str, tuple[Draw, float]] = {
    "even": (lambda draw, shape: draw.uniform(0, 1, shape), 0.5),
    "skewed": (lambda draw, shape: draw.beta(0.5, 5, shape), 0.5 / 5.5),
    "rare": (lambda draw, shape: (draw.random(shape) < 0.05).astype(np.float64), 0.05),
    "lognormal": (lognormal, float(lognormal(np.random.default_rng(9), (4_000_000,)).mean())),
    "heavy tails": (lambda draw, shape: 0.5 + np.clip(draw.standard_t(3, shape) / 20, -0.5, 0.5), 0.5),
}


def products(values: Floats) -> Floats:
    """The exact share products of rows between the ends of a range, summed over the last dimension."""
    return np.stack([((1 - values) ** 2).sum(-1), (2 * values * (1 - values)).sum(-1), (values**2).sum(-1)], -1)


def noisy(exact: Floats, pairs: Any, places: int, epsilon: float, draw: np.random.Generator) -> NoisyShares:
    """The same with Laplace noise for one added or removed row."""
    drawn = exact + draw.laplace(scale=1 / epsilon, size=exact.shape)
    return NoisyShares(drawn, pairs, places, Noise(laplace=1 / epsilon))


def margin(runs: int, rate: float = 0.05, deviations: float = 4.0) -> float:
    """By how much a share of so many runs may differ by chance: a false alarm below 1 in 15,000."""
    return float(deviations * np.sqrt(rate * (1 - rate) / runs))
