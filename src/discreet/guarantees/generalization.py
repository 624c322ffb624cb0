"""From privacy to the population: noise that hides every row of a sample also keeps answers true on the population.
[L6.T9]

Rows are drawn independently from a population. An analyst asks for means of [0,1]-valued functions of a row, and may
choose each question by the earlier answers. The exact theorem used here is proved in
`docs/decisions/0009-widths-on-the-population.md`:

    width = 1 − least(β·(1 − C)) / β

`C` is the mean of the largest error on the sample over its worst β. `least(v)` is the least probability of an event
after one row is replaced, if it had probability v before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.pairs import GaussianPair

Floats = NDArray[np.float64]
_CELLS = 2**16
_ROUNDING = 1e-9


def miss_of(confidence: float) -> float:
    """The probability with which a statement may fail. At most ½, because the theorem holds up to that."""
    miss = 1 - check_confidence(confidence)
    if miss <= 0:
        raise InvalidArgument(
            "confidence is too close to 1: leave at least one chance in 10^15 to fail.", code="out-of-range"
        )
    return min(0.5, miss)


def width_on_population(guarantee: LossDistribution, worst: float, miss: float) -> float:
    """How far any answer may be from the mean of the population, except with probability `miss`, rounded up.

    `guarantee` is that of the whole transcript for one replaced row. `worst` is the mean of the largest error on the
    sample over its worst `miss`. Answers lie in [0,1].
    """
    if worst >= 1:
        return 1.0
    return min(1.0, 1 - least_chance(guarantee, miss * (1 - worst)) / miss + _ROUNDING)


def least_chance(guarantee: LossDistribution, reached: float) -> float:
    """A lower bound on the probability of an event on one neighbor, if it has probability `reached` on the other.

    It is the maximum over ε ≥ 0 of (reached − δ(ε))·e^{−ε}. Every ε gives a valid bound. For Gaussian noise it is
    Φ(Φ⁻¹(reached) − μ).
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, ndtri

    if len(guarantee.factors) == 1:
        pair, times = guarantee.factors[0][0].repeated(guarantee.factors[0][1])
        if isinstance(pair, GaussianPair) and times == 1:
            return float(ndtr(ndtri(reached) - pair.mu)) * (1 - _ROUNDING)

    def kept(epsilon: float) -> float:
        return (reached - guarantee.delta_at(epsilon=epsilon)) * math.exp(-epsilon)

    most = 1.0  # beyond it, δ is constant and e^{−ε} falls
    while most < 2**10 and kept(2 * most) > kept(most):
        most *= 2
    found = minimize_scalar(lambda epsilon: -kept(epsilon), bounds=(0, 2 * most), options={"xatol": 1e-4})
    return max(kept(0.0), float(-found.fun), 0.0) * (1 - _ROUNDING)


def gaussian_tail(z: Floats) -> Floats:
    """P[|X| > z] for Gaussian noise of standard deviation 1."""
    from scipy.special import erfc

    return np.asarray(erfc(z / math.sqrt(2)))


def laplace_tail(z: Floats) -> Floats:
    """P[|X| > z] for Laplace noise of scale 1."""
    return np.exp(-z)


@lru_cache(maxsize=256)
def worst_mean(tail: Callable[[Floats], Floats], count: int, miss: float) -> float:
    """The mean of the largest of `count` independent |X| over its worst `miss`, where `tail(z)` is P[|X| > z].

    This is an upper bound, about 10⁻⁴ too large: the integral of a falling function from the left ends of its cells.
    """
    one = -math.expm1(math.log1p(-miss) / count)  # P[|X| > z] for the z that the largest exceeds with probability miss
    start, far = _where(tail, one), _where(tail, one * 1e-16)
    edges = np.linspace(start, far, _CELLS)
    above = -np.expm1(count * np.log1p(-np.minimum(tail(edges), 1 - 1e-16)))
    return float(start + above[:-1].sum() * (edges[1] - edges[0]) / miss) * (1 + _ROUNDING)


def _where(tail: Callable[[Floats], Floats], chance: float) -> float:
    """The least z with P[|X| > z] ≤ chance, rounded up."""

    def rare(z: float) -> bool:
        return float(tail(np.array([z]))[0]) <= chance

    found = bracket(rare, 1.0, least=2.0**-60, most=2.0**60)
    assert found is not None  # every tail falls below every probability
    return bisect(rare, *found)


def taught_width(size: int, queries: int, miss: float) -> tuple[float, float]:
    """The width α + 10ε of the lecture and the scale of its Laplace noise, at the best ε, with half of `miss` for each
    part.

    L6.C5: γ = ε/√(8k ln(1/δ)), noise Lap(1/(γn)); L6.CL6: α = ln(k/β)/(γn); L6.T9: all answers are within α + 10ε,
    except with probability β + kδ/ε, for n ≥ ln(1/δ)/ε².
    """
    best = (1.0, 1.0)
    for epsilon in np.geomspace(1e-5, 0.1, 400):
        delta = epsilon * miss / (2 * queries)
        if size * epsilon**2 < math.log(1 / delta):
            continue
        scale = math.sqrt(8 * queries * math.log(1 / delta)) / (epsilon * size)
        best = min(best, (scale * math.log(2 * queries / miss) + 10 * float(epsilon), scale))
    return best
