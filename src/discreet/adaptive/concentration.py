"""How far a sample mean may be from the population mean, for one of many questions that might have been asked."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, xlogy

from discreet.exact.search import bisect

_CELLS = 1024


@lru_cache(maxsize=4096)
def deviation(size: int, log_misses: float) -> float:
    """The t for which P[|mean − truth| ≥ t] ≤ e^{−log_misses}, whatever the law of the independent values in [0,1].

    The better of two bounds for each side, with half of the probability: Chernoff-Hoeffding, e^{−n·KL}, for the truth
    with the least KL; and Bentkus 2004, e times the tail of the binomial law, of which the tail is bounded by a
    geometric series and Stirling's formula. 1 where neither says anything.
    """
    each = log_misses + math.log(2)
    hoeffding, near = min(1.0, math.sqrt(each / (2 * size))), 0.0
    if hoeffding < 1 and _log_tail(size, hoeffding) <= -each:
        near = brentq(lambda t: _log_tail(size, t) + each, 0.0, hoeffding, rtol=1e-11) * (1 + 1e-10)
    if not near or _log_tail(size, near) > -each:  # few steps lead near; what is handed out was checked
        near = bisect(lambda t: _log_tail(size, t) <= -each, 1.0, 0.0, absolute=2.0**-40)
    return min(1.0, near * (1 + 1e-9))


def _log_tail(size: int, t: float) -> float:
    """The logarithm of a bound on P[mean − truth ≥ t], the worst over all truths."""
    chernoff = float(-size * _divergence(_likeliest(t), t))
    return min(chernoff, 1 + _log_binomial(size, t - 1 / size)) if t > 1 / size else chernoff


def _likeliest(t: float) -> float:
    """The a at which KL(a‖a−t) is least: it is convex in a, and its slope rises through 0."""

    def rises(a: float) -> bool:
        p = a - t
        return p > 0 and math.log(a / p) + math.log((1 - p) / (1 - a)) >= t / (p * (1 - p))

    return bisect(rises, 1.0, t)


def _log_binomial(size: int, t: float) -> float:
    """The logarithm of a bound on max over a of P[Bin(n, a−t) ≥ a·n], the worst over cells of a.

    P ≤ e^{−n·KL(a‖p)}·(1−p)·√(a/(1−a))/(t·√(2πn)) with p = a−t, and always ≤ e^{−n·KL}. In a cell each factor is taken
    where it is largest.
    """
    edges = np.linspace(t, 1, _CELLS + 1)
    low, high = edges[:-1], edges[1:]
    energy = size * _divergence(np.clip(_likeliest(t), low, high), t)
    with np.errstate(divide="ignore"):
        factor = np.log(1 - low + t) + (np.log(high) - np.log1p(-high)) / 2
    factor -= math.log(t) + math.log(2 * math.pi * size) / 2
    return float((np.minimum(factor, 0.0) - energy).max())


def _divergence(a: Any, t: float) -> Any:
    """KL of coins with probability a against probability a − t."""
    p = a - t
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p <= 0, np.inf, xlogy(a, a / p) + xlogy(1 - a, (1 - a) / (1 - p))) * (1 - 1e-12)


def log_choices(of: int, chosen: int) -> float:
    """ln of a binomial coefficient."""
    return float(gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)) if chosen <= of else -math.inf


def log_asked(queries: int, revealed: int, cells: int) -> float:
    """ln of the number of questions that might be asked after `revealed` earlier ones were answered by one of `cells`
    values.

    A question is determined by its place, the places of those answers before it, and their values:
    Σ_i C(i−1, revealed)·cells^revealed = C(queries, revealed+1)·cells^revealed. All other answers were known before.
    """
    return log_choices(queries, revealed + 1) + revealed * math.log(cells)
