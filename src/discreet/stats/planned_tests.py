"""The power of each test, for a number of rows: from the law of its statistic under the hypothesis and under the
effect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet.stats.inference.laws import ErrorLaw
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import Alternative, Noise, NoisyShares
from discreet.stats.inference.proportions import (
    SPENT,
    SmoothedNoise,
    TotalLaw,
    binomial,
    bisect_between,
)
from discreet.stats.inference.two_proportions import Counts, Relation, largest_tails, tails

Floats = NDArray[np.float64]
_NEARLY_NONE = 1e-2
"""The scale of noise that stands for none."""
_POINTS = 2**13
"""At how many points the law of a χ² statistic is taken."""


@dataclass(frozen=True)
class Setting:
    """Everything about a planned test except its number of rows. `effect` has the two proportions, or 0 and a size.

    `width` is that of the declared range in standard deviations. `known_size` says that the number of rows is public.
    """

    effect: tuple[float, float]
    noise: Noise
    level: float
    alternative: Alternative
    known_size: bool
    width: float
    cells: int

    @property
    def miss(self) -> float:
        """The level on the side of the effect."""
        return self.level / 2 if self.alternative == "two-sided" else self.level

    @property
    def shares(self) -> tuple[float, float]:
        """The two proportions, counted so that the test looks upward: of successes, or of failures."""
        null, other = self.effect
        down = other < null if self.alternative == "two-sided" else self.alternative == "less"
        return (1 - null, 1 - other) if down else (null, other)


# --- proportions -----------------------------------------------------------------------------------------------------


def of_proportion(rows: int, setting: Setting) -> float:
    """The exact power for a public number of rows, else that with the number of rows estimated without error."""
    null, other = setting.shares
    at, mass = binomial(np.array([rows]), null)
    here, other_mass = binomial(np.array([rows]), other)
    if setting.known_size:
        noise = SmoothedNoise(setting.noise.laplace, setting.noise.normal)
        far = noise.quantile(setting.miss / 10)
        count = bisect_between(
            lambda count: float((mass * noise.below(at - count)).sum()) > setting.miss, -far, rows + far
        )
        return float((other_mass * noise.below(here - count)).sum())
    law = TotalLaw(np.array([rows]), null, setting.noise)
    short = law.critical((1 - SPENT) * setting.miss) - (here - rows * null)
    return float((other_mass * law.noise_beyond(short)).sum())


def of_plain_proportion(rows: int, setting: Setting) -> float:
    """The power of the binomial test without privacy, randomized so that it uses all of its level."""
    return of_proportion(rows, replace(setting, noise=Noise(laplace=_NEARLY_NONE), known_size=True))


def of_two_proportions(rows: int, setting: Setting) -> float:
    """The power for two groups of the same size: how often the difference exceeds the one that is just rejected."""
    first, second = setting.shares
    size, middle = rows / 2, (first + second) / 2
    spent, level = SPENT * setting.level, (1 - SPENT) * setting.miss

    def kept(gap: float) -> bool:
        shares = np.clip([middle - gap / 2, middle + gap / 2], 0.0, 1.0)
        found = Counts(tuple(size * (1 - shares)), tuple(size * shares), setting.noise)
        return largest_tails(found, Relation(1.0, 0.0), spent)[0] > level

    most = 2 * min(middle, 1 - middle)
    if kept(most):
        return 0.0
    gap = bisect_between(kept, 0.0, most, 18)
    one = np.array([[first], [second]]), np.full((2, 1), float(int(size)))
    weights = np.array([[-1 / size], [1 / size]])
    return float(tails(np.array([gap - (second - first)]), *one, weights, setting.noise)[0])


def of_plain_two_proportions(rows: int, setting: Setting) -> float:
    """The power of the usual test without privacy, by the normal law."""
    first, second = setting.shares
    middle = (first + second) / 2
    null, other = np.sqrt(2 * middle * (1 - middle)), np.sqrt(first * (1 - first) + second * (1 - second))
    return float(special.ndtr(((second - first) * np.sqrt(rows / 2) + special.ndtri(setting.miss) * null) / other))


# --- means -----------------------------------------------------------------------------------------------------------


def of_mean(rows: int, setting: Setting) -> float:
    """The power for one mean, which is that for the mean of paired differences."""
    shares = _expected(rows, [0.5 + setting.effect[1] / setting.width], setting)
    mean = MeanOf(shares, np.ones(2), np.array([0.0, 1.0]))
    rest = mean.less(0.5)
    return _beyond_critical(shares, rest, rows / setting.width**2, setting)


def of_two_means(rows: int, setting: Setting) -> float:
    """The power for two groups of the same size and deviation."""
    half = setting.effect[1] / setting.width / 2
    shares = _expected(rows // 2, [0.5 - half, 0.5 + half], setting)
    groups = [
        MeanOf(shares, np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0, 0.0])),
        MeanOf(shares, np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])),
    ]
    rest = DifferenceOf(*groups).rest(np.array(0.0))
    return _beyond_critical(shares, rest, 2 / setting.width**2 / (rows // 2), setting)


def of_plain_mean(rows: int, setting: Setting) -> float:
    """The power of Student's test without privacy."""
    return _student(rows - 1, setting.effect[1] * np.sqrt(rows), setting)


def of_plain_two_means(rows: int, setting: Setting) -> float:
    """The power of Student's test of two groups of the same size without privacy."""
    return _student(rows - 2, setting.effect[1] * np.sqrt(rows) / 2, setting)


def _student(degrees: int, shift: float, setting: Setting) -> float:
    if degrees < 1:
        return 0.0
    return float(1 - special.nctdtr(degrees, shift, special.stdtrit(degrees, 1 - setting.miss)))


def _expected(size: int, means: list[float], setting: Setting) -> NoisyShares:
    """The numbers that are expected of groups with these means of the part of the range and the planned deviation."""
    numbers: list[float] = []
    pairs: list[tuple[int, int]] = []
    for group, mean in enumerate(means):
        square = min(mean**2 + 1 / setting.width**2, mean)  # no value leaves its range
        numbers += [size * (1 - 2 * mean + square), size * 2 * (mean - square), size * square]
        pairs += [(2 * group, 2 * group), (2 * group, 2 * group + 1), (2 * group + 1, 2 * group + 1)]
    return NoisyShares(np.array(numbers), tuple(pairs), 2 * len(means), setting.noise)


def _beyond_critical(shares: NoisyShares, rest: Floats, variance: float, setting: Setting) -> float:
    """The probability of a total beyond the one that is just rejected."""
    critical = float(shares.error(rest).quantile(2 * setting.miss))
    law = shares.error(rest, sampled=False)
    true = ErrorLaw(np.array(variance), 1e9, law.laplace, law.normal)
    short = critical - float(shares.total(rest))
    both = float(true.beyond(short))
    return both / 2 if short > 0 else 1 - both / 2


# --- counts ----------------------------------------------------------------------------------------------------------


def of_chi2(rows: int, setting: Setting) -> float:
    """The power of the χ² test of equally probable cells, for an effect that raises half of them and lowers the rest.

    The statistic is the sum of (noisy count − share of the noisy total)²/expected. Its law is taken at evenly spread
    points: normal for sampling, and the law of the noise.
    """
    cells = setting.cells
    high = cells // 2
    # Σ(p' − p)²/p = w² with equal moves within each half
    up = setting.effect[1] / np.sqrt(cells * high * (1 + high / (cells - high)))
    shares = np.full(cells, 1 / cells)
    other = shares + np.where(np.arange(cells) < high, up, -up * high / (cells - high))
    if other.min() < 0:
        return 1.0
    points = _evenly_spread(2 * cells)
    sampled, noisy = special.ndtri(points[:, :cells]), _noise_at(points[:, cells:], setting.noise)
    statistics = []
    for law in (shares, other):
        spread = sampled * np.sqrt(law)
        drawn = rows * law + np.sqrt(rows) * (spread - law * spread.sum(1, keepdims=True)) + noisy
        rest = drawn - shares * drawn.sum(1, keepdims=True)
        statistics.append((rest**2).sum(1) * cells / rows)
    return float((statistics[1] > np.quantile(statistics[0], 1 - setting.level)).mean())


def of_plain_chi2(rows: int, setting: Setting) -> float:
    """The power of the χ² test without privacy."""
    degrees = setting.cells - 1
    return float(1 - special.chndtr(special.chdtri(degrees, setting.level), degrees, rows * setting.effect[1] ** 2))


def _evenly_spread(dimension: int) -> Floats:
    """Points that fill a cube evenly: multiples of the powers of one irrational number."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = (1 / root) ** np.arange(1, dimension + 1)
    return np.asarray((0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1.0)


def _noise_at(level: Floats, noise: Noise) -> Floats:
    """The noise that has these levels of its distribution function."""
    if noise.normal:
        return np.asarray(noise.normal * special.ndtri(level))
    return np.asarray(-noise.laplace * np.sign(level - 0.5) * np.log1p(-2 * np.abs(level - 0.5)))
