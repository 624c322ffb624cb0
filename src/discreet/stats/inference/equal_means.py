"""Inference about several groups: whether all of their means are equal (one-way analysis of variance).

For a common mean m, the total d_g of t − m over the rows of group g is 0 on average, whatever the variances of the
groups are. The statistic is d'V⁻¹d for the covariance V of these totals, sampling and noise together, at the m that
makes it smallest (as in Welch's test). Its law is simulated: Student's for sampling, since variances are estimated, and
that of the noise as it was drawn. Where the size of a group is not known, each group is tested by itself (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.stats.inference.common_means import p_of_several, table_of
from discreet.stats.inference.means import MeanOf
from discreet.stats.inference.noisy_shares import NoisyShares
from discreet.stats.inference.public_numbers import PublicNumbers, p_simulated

Floats = NDArray[np.float64]
DRAWS = 9_999


@dataclass(frozen=True)
class EqualMeans:
    """The means of t in several groups, and the hypothesis that they are all the same."""

    groups: Sequence[MeanOf]
    draws: int = DRAWS

    @property
    def shares(self) -> NoisyShares:
        """What was released."""
        return self.groups[0].shares

    @cached_property
    def sizes(self) -> Floats:
        """The noisy number of rows of each group."""
        return np.array([float(group.size) for group in self.groups])

    @property
    def means(self) -> Floats:
        """The estimated mean of each group, in the unit of the column."""
        return np.array([group.value for group in self.groups])

    @cached_property
    def common(self) -> float:
        """The estimated mean of all groups, between 0 and 1."""
        sizes = np.maximum(self.sizes, 1.0)
        return float((sizes * [float(group.mean) for group in self.groups]).sum() / sizes.sum())

    @cached_property
    def tested(self) -> tuple[float, float]:
        """The statistic and the p-value."""
        if all(bool(group.size_is_known) for group in self.groups):
            return self._at(self.common)
        # each group by itself, for the common mean that fits best: right even if a group is empty
        return self._at(self.common)[0], p_of_several([table_of(group, "two-sided") for group in self.groups])

    def _at(self, mean: float) -> tuple[float, float]:
        """The test for the common mean close to this one that fits best."""
        values = np.stack([group.less(mean) for group in self.groups])
        totals = self.shares.total(values)
        of_noise = self.shares.of_total(values)
        sampled, degrees = self._sampling(values)
        whole = sampled + of_noise @ of_noise.T * self.shares.noise.variance
        precision = np.linalg.inv(whole + 1e-12 * np.trace(whole) * np.eye(len(whole)))
        along = precision @ self.sizes
        precision = precision - np.outer(along, along) / max(float(self.sizes @ along), 1e-300)
        drawn = self._imagined(sampled, degrees, of_noise)
        statistic = float(totals @ precision @ totals)
        return statistic, p_simulated(statistic, ((drawn @ precision) * drawn).sum(-1))

    def _sampling(self, values: Floats) -> tuple[Floats, Floats]:
        """The sampling covariance of the totals, and the degrees of freedom of each variance."""
        law = self.shares.error(values)
        variances, degrees = np.asarray(law.variance), np.asarray(law.degrees)
        pairs = self.shares.pairs
        crossed = np.stack(
            [(np.outer(values[:, v], values[:, w]) + np.outer(values[:, w], values[:, v])) / 2 for v, w in pairs], -1
        )
        products = (crossed * self.shares.numbers).sum(-1)
        deviation = np.sqrt(variances)
        # variances have a floor, and no correlation is larger than 1
        related = np.clip(products / np.outer(deviation, deviation), -0.99, 0.99)
        np.fill_diagonal(related, 1.0)
        if not crossed[~np.eye(len(values), dtype=bool)].any():
            return np.diag(variances), degrees
        sizes, axes = np.linalg.eigh(related)
        related = (axes * np.maximum(sizes, 1e-6)) @ axes.T
        return related * np.outer(deviation, deviation), degrees

    def _imagined(self, sampled: Floats, degrees: Floats, of_noise: Floats) -> Floats:
        """Totals as they would be if all means were equal."""
        numbers, count, noise = PublicNumbers(self.shares.numbers), len(sampled), self.shares.noise
        root = np.linalg.cholesky(sampled + 1e-12 * np.trace(sampled) * np.eye(count))
        spread = special.gammaincinv(degrees / 2, numbers.uniform(self.draws, count)) * 2 / degrees
        drawn = numbers.normal(self.draws, count) @ root.T / np.sqrt(np.maximum(spread, 1e-12))
        size = of_noise.shape[1]
        if noise.laplace:
            return np.asarray(drawn + numbers.laplace(noise.laplace, self.draws, size) @ of_noise.T)
        return np.asarray(drawn + noise.normal * numbers.normal(self.draws, size) @ of_noise.T)
