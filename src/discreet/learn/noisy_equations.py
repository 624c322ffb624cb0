"""Solve A·w = b when A and b were measured with noise of a known size.

The expected loss (w − w*)ᵀA(w − w*) is smallest for w = E[A]⁻¹ E[b], the means given what was released. Both come from
simple priors whose scales are estimated from the release itself: A is a multiple of the identity plus a symmetric
matrix, with nonnegative eigenvalues, and the weights are about as long as targets over features. All of this is
post-processing of released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TYPICAL = 1 / 3
"""The length of weights to begin with: a third of the largest target, at the longest row."""
UNSURE = 0.7
"""How unsure that is, as a factor's logarithm: half of all problems should be within about twice either way."""
FLOOR = 1 / 4
"""The least ridge, in units of the largest eigenvalue that noise alone has: √(2d) deviations."""
GUARD = 0.7
"""Weights are shortened until they help if the noise along them is this many deviations worse than it may be."""
_GRID = np.linspace(-18.0, 18.0, 181)


@dataclass(frozen=True)
class Solution:
    """Weights, and the possible effect of the noise on them: a covariance, which is right if the priors are."""

    weights: Floats
    covariance: Floats


def above_zero(seen: Any, deviation: float) -> Any:
    """The posterior mean of a positive number that was observed with Gaussian noise, under a flat prior."""
    from scipy.special import log_ndtr

    ratio = np.clip(np.asarray(seen) / max(deviation, 1e-150), -1e150, 40.0)
    near = np.maximum(ratio, -100.0)
    hazard = np.exp(-near * near / 2 - math.log(2 * math.pi) / 2 - log_ndtr(near))
    return np.where(ratio < -100, deviation / np.maximum(-ratio, 1.0), seen + deviation * hazard)


def shrunk(square: Floats, deviation: float) -> tuple[Floats, Floats, float]:
    """Eigenvalues and eigenvectors of a symmetric matrix after removing its noise, and the fraction that was signal.

    `deviation` is that of the noise on the diagonal; off the diagonal it is over √2.
    """
    size = len(square)
    mean = float(np.trace(square)) / size
    rest = square - mean * np.eye(size)
    noise = deviation**2 * (size * (size + 1) / 2 - 1)
    kept = max(0.0, 1 - noise / max(float((rest**2).sum()), 1e-300)) if size > 1 else 1.0
    values, vectors = np.linalg.eigh(kept * rest)
    values = values + above_zero(mean, deviation / math.sqrt(size))
    return above_zero(values, deviation * math.sqrt(kept / 2)), vectors, kept


def solve_equations(
    square: Floats, product: Floats, square_noise: float, product_noise: float, scale: float, ridge: float = 0.0
) -> Solution:
    """The weights for noisy equations, with the deviations of the noise in A's diagonal and in b.

    `scale` is the largest target over the longest row. The noise b − A·w of an equation has the variance
    product_noise² + ‖w‖²·square_noise²/2; the prior variance of a weight is averaged over by how well it explains b.
    """
    values, vectors, _ = shrunk(square, square_noise)
    values = values + ridge + FLOOR * square_noise * math.sqrt(2 * len(values))
    seen = vectors.T @ product
    prior = np.exp(_GRID + 2 * math.log(TYPICAL * scale))[:, None]
    belief = -np.log1p((_GRID / UNSURE) ** 2)
    noise = product_noise**2
    weights = spread = np.zeros(len(seen))
    for _ in range(3):
        total = prior * values**2 + noise
        evidence = belief - ((np.log(total) + seen**2 / total) / 2).sum(1)
        chance = np.exp(evidence - evidence.max())[:, None]
        chance = chance / chance.sum()
        means = prior * values * seen / total
        weights = (chance * means).sum(0)
        spread = (chance * (means**2 + prior * noise / total)).sum(0)
        noise = product_noise**2 + square_noise**2 / 2 * float(spread.sum())
    found = vectors @ weights
    kept = useful_part(found, square, product, square_noise, product_noise)
    return Solution(kept * found, (vectors * (spread - weights**2)) @ vectors.T)


def useful_part(weights: Floats, square: Floats, product: Floats, square_noise: float, product_noise: float) -> float:
    """The factor in [0, 1] by which weights are shortened towards those of the constant model, which are 0.

    Weights t·w change the squared error by t²·wᵀAw − 2t·wᵀb. The noise of wᵀAw has the deviation ‖w‖²·square_noise and
    that of wᵀb ‖w‖·product_noise: t is the best factor if both are `GUARD` deviations to the bad side.
    """
    length = float(np.linalg.norm(weights))
    gain = float(weights @ product) - GUARD * product_noise * length
    cost = max(float(weights @ square @ weights), 0.0) + GUARD * square_noise * length**2
    return min(max(gain / cost, 0.0), 1.0) if cost > 0 else 0.0


def largest_eigenvalue(features: int, deviation: float, miss: float) -> float:
    """A bound on ‖E‖ for symmetric noise with this deviation on the diagonal, except with probability `miss`.

    E‖E‖ ≤ s√(2d), and vᵀEv moves by at most s for a unit move of all its independent normal numbers.
    """
    return deviation * (math.sqrt(2 * features) + math.sqrt(2 * math.log(2 / miss))) * (1 + 1e-6)


def longest_noise(features: int, deviation: float, miss: float) -> float:
    """A bound on the length of a noise vector: √d + √(2 ln 1/miss) deviations."""
    return deviation * (math.sqrt(features) + math.sqrt(2 * math.log(1 / miss))) * (1 + 1e-6)
