"""Tests of a table of noisy counts: independence of its two sides, and agreement with expected shares.

The statistic is Σ E·(X − E)²/(E + τ²)² / Σ E/(E + τ²). X is a noisy count, τ² the variance of its noise, and E what the
hypothesis expects, fitted by least squares with the precisions 1/(E + τ²). Without noise it is Pearson's χ² divided by
the number of cells. With noise, a cell counts as much as it can tell: one that is nearly empty counts little. (With
equal weights it would be the projected statistic of Kifer and Rogers, 2017, which loses power to empty cells.)

Its law under the hypothesis is simulated for the fitted counts: Poisson's law, with the noise that was drawn. If there
are few rows, it is simulated for more even margins too, and the larger p-value counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.exact.rational import exactly
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.stats.inference.public_numbers import PublicNumbers, p_simulated

Floats = NDArray[np.float64]
Fit = Callable[[Floats], Floats]
DRAWS, FEWEST, CELLS_DRAWN = 9_999, 1_999, 600_000
"""The number of simulated releases at most and at least, and about how many simulated cells there are."""
_ROUNDS = 5
"""How often each side of a table is fitted. Further rounds change little."""
_EVEN, _NOISY_EVEN, _LARGER, _LEAST_EVEN = 0.7, 3.0, 1.5, 0.02
"""How many standard errors margins are evened by, of the sample and of the noise; how many of the noise the number of
rows is raised by; and when evening is too little to matter.
"""
_TINY = 1e-9


@dataclass(frozen=True)
class NoiseOfCounts:
    """The noise of every count: Laplace's law on whole numbers, or a normal law rounded to them."""

    laplace: float = 0.0
    normal: float = 0.0

    @classmethod
    def of(cls, mechanism: Laplace | Gaussian) -> NoiseOfCounts:
        """The law that a mechanism draws whole numbers from."""
        size = float(exactly(getattr(mechanism, mechanism.size_field)))
        return cls(laplace=size) if isinstance(mechanism, Laplace) else cls(normal=size)

    @property
    def variance(self) -> float:
        """The variance of the noise of one count."""
        if self.laplace:
            return float(1 / (2 * np.sinh(0.5 / self.laplace) ** 2)) if self.laplace > 1 / 1400 else 0.0
        return self.normal**2

    def imagined(self, numbers: PublicNumbers, *shape: int) -> Floats:
        """Noise as the mechanism would draw it."""
        if self.laplace:
            return numbers.laplace(self.laplace, *shape, whole=True)
        return np.asarray(np.rint(self.normal * numbers.normal(*shape)))


def fit_independent(counts: Floats, variance: float) -> Floats:
    """The expected counts if rows and columns are independent. Leading dimensions are releases.

    Without noise these are the products of the margins. With noise, sums of a whole row would add up all of its noise;
    here each side is fitted to the cells, in turns, with weights that trust the cells of large shares.
    """
    base = max(variance, _TINY)
    rows, columns = np.maximum(counts.sum(-1), 0.0) + 1e-3, np.maximum(counts.sum(-2), 0.0) + 1e-3
    rows *= np.maximum(counts.sum((-2, -1)), 1e-3)[..., None] / rows.sum(-1, keepdims=True)
    columns /= columns.sum(-1, keepdims=True)
    for _ in range(_ROUNDS):
        across = columns[..., None, :]
        trust = across / (rows[..., :, None] * across + base)
        rows = np.maximum((trust * counts).sum(-1) / np.maximum((trust * across).sum(-1), 1e-300), 0.0)
        down = rows[..., :, None]
        trust = down / (down * columns[..., None, :] + base)
        columns = np.maximum((trust * counts).sum(-2) / np.maximum((trust * down).sum(-2), 1e-12), 0.0)
        whole = columns.sum(-1, keepdims=True)
        rows = rows * whole
        columns = np.where(whole > 0, columns / np.where(whole > 0, whole, 1.0), 1 / columns.shape[-1])
    return np.asarray(rows[..., :, None] * columns[..., None, :])


def fit_shares(counts: Floats, shares: Floats, variance: float) -> Floats:
    """The expected counts if the cells have these shares. Leading dimensions are releases, the last two the cells."""
    size = np.maximum(counts.sum((-2, -1)), 1e-3)
    for _ in range(_ROUNDS):
        trust = shares / (size[..., None, None] * shares + max(variance, _TINY))
        size = np.maximum((trust * counts).sum((-2, -1)) / np.maximum((trust * shares).sum((-2, -1)), 1e-300), 0.0)
    return np.asarray(size[..., None, None] * shares)


def distance(counts: Floats, expected: Floats, variance: float) -> Floats:
    """The statistic: how far counts are from what is expected, in units of what chance and noise make."""
    precision = 1 / (expected + max(variance, _TINY))
    share = expected * precision
    whole = share.sum((-2, -1))
    far = (share * precision * (counts - expected) ** 2).sum((-2, -1))
    return np.asarray(far / np.where(whole > 0, whole, np.inf))


def p_of_fit(
    counts: Floats, fit: Fit, noise: NoiseOfCounts, nulls: Sequence[Floats], draws: int | None = None
) -> tuple[float, float]:
    """The statistic and the p-value of the hypothesis that `fit` fits: the largest for some expected counts `nulls`.
    `draws` is how many releases are simulated, with the same public numbers for each.
    """
    statistic = float(distance(counts, fit(counts), noise.variance))
    many, found = draws or draws_for(counts.size), []
    for expected in nulls:
        numbers = PublicNumbers(counts)
        imagined = numbers.poisson(expected, many) + noise.imagined(numbers, many, *expected.shape)
        found.append(p_simulated(statistic, distance(imagined, fit(imagined), noise.variance)))
    return statistic, max(found)


def draws_for(cells: int) -> int:
    """How many releases with this number of cells are simulated."""
    return int(np.clip(CELLS_DRAWN // cells, FEWEST, DRAWS))


def evened(expected: Floats, variance: float) -> tuple[Floats, Floats]:
    """A table of a few more rows, with margins that are more even, by about what is not known about them; and how much.

    With few rows, fitted margins are more uneven than the true ones, and the p-value would be a little too small. With
    much noise, a number of rows that is fitted too small makes it too small as well.
    """
    size = np.maximum(expected.sum((-2, -1), keepdims=True), _TINY)
    rows, columns = expected.sum(-1, keepdims=True) / size, expected.sum(-2, keepdims=True) / size
    noise = variance * expected.shape[-1] * expected.shape[-2]
    part = np.minimum(np.sqrt(_EVEN**2 / size + _NOISY_EVEN**2 * noise / size**2), 0.5)
    rows, columns = (1 - part) * rows + part / rows.shape[-2], (1 - part) * columns + part / columns.shape[-1]
    return np.asarray((size + _LARGER * np.sqrt(noise)) * rows * columns), part


def p_of_independence(counts: Floats, noise: NoiseOfCounts, draws: int | None = None) -> tuple[float, float]:
    """The statistic and the p-value of the hypothesis that rows and columns are independent."""
    fitted = fit_independent(counts, noise.variance)
    more_even, part = evened(fitted, noise.variance)
    nulls = [fitted, more_even] if float(part.item()) > _LEAST_EVEN else [fitted]
    return p_of_fit(counts, lambda one: fit_independent(one, noise.variance), noise, nulls, draws)


def p_of_shares(counts: Floats, shares: Floats, noise: NoiseOfCounts, draws: int | None = None) -> tuple[float, float]:
    """The statistic and the p-value of the hypothesis that values have these shares, given as one row of cells."""
    fitted = fit_shares(counts, shares, noise.variance)
    return p_of_fit(counts, lambda one: fit_shares(one, shares, noise.variance), noise, [fitted], draws)
