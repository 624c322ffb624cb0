"""Conversions between kinds of guarantees: formulas in floats, each rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.exact.search import bisect, bracket, geometric, least_place

SLACK = 1 + 1e-12
"""The float formulas below are far more accurate than this. Multiplying by it rounds them up."""


def renyi_of_response(epsilon: float, order: float) -> float:
    """The Rényi divergence of randomized response, the worst ε-DP mechanism, rounded up."""
    if order <= 1:
        raise InvalidArgument("order must be above 1.", code="out-of-range")
    # ln[(e^{aε} + e^{(1-a)ε}) / (1+e^ε)] / (a-1), with the large exponents factored out
    ratio = math.log1p(math.exp((1 - 2 * order) * epsilon)) - math.log1p(math.exp(-epsilon))
    exact_part = epsilon + ratio / (order - 1)
    if order * epsilon < 1e-3:  # the difference above cancels; its second-order bound does not
        return order * epsilon * epsilon / 2 * SLACK
    return min(exact_part + 4e-16 * (1 + 1 / (order - 1)), epsilon, order * epsilon * epsilon / 2) * SLACK


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of N(0,1) against N(μ,1), rounded up."""
    from scipy.special import log_ndtr

    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    if first < -745:
        return 5e-324
    difference = -math.expm1(min(second - first, 0.0))
    error = 1e-14 * (2 + abs(first) + abs(second))
    return min(1.0, math.exp(first) * (difference + error))


@lru_cache(maxsize=256)
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which δ(ε) of N(0,1) against N(μ,1) is at most `delta`. A starting point, not a promise."""
    return bisect(lambda mu: gaussian_delta(mu, epsilon) <= delta, 1e-19, 1e4, relative=1e-13, middle=geometric)


def smallest_epsilon(delta_of: Callable[[float], float], delta: float, precision: float = 1e-12) -> float:
    """The smallest ε ≥ 0 with `delta_of(ε) ≤ delta` for a decreasing curve, rounded up by bisection."""

    def keeps(epsilon: float) -> bool:
        return not delta_of(epsilon) > delta

    if keeps(0.0):
        return 0.0
    found = bracket(keeps, 1.0, least=precision * 1e-6, most=2.0**29)
    return math.inf if found is None else bisect(keeps, *found, relative=precision, absolute=precision * 1e-6)


def delta_at_order(order: float, divergence: float, epsilon: float) -> float:
    """δ at ε from the Rényi divergence of one order, rounded up."""
    # Canonne-Kamath-Steinke, Proposition 12: exp((a-1)(r-ε)) (1-1/a)^a / (a-1)
    if math.isinf(divergence):
        return 1.0
    terms = ((order - 1) * divergence, -(order - 1) * epsilon, order * math.log1p(-1 / order), -math.log(order - 1))
    rounding = 1e-15 * (1 + sum(abs(term) for term in terms))
    # underflow must not give 0: only a bounded loss has δ = 0
    return min(1.0, max(math.exp(min(sum(terms) + rounding, 0.0)) * SLACK, 5e-324))


def epsilon_at_order(order: float, divergence: float, delta: Number) -> float:
    """ε at δ from the Rényi divergence of one order, rounded up."""
    if delta == 0 or math.isinf(divergence):
        return math.inf
    log_delta = math.log(float(delta))
    bound = divergence + math.log1p(-1 / order) - (log_delta + math.log(order)) / (order - 1)
    return max(0.0, bound + 1e-15 * (divergence + (abs(log_delta) + 10) * (1 + 1 / (order - 1))))


def _best_order(objective: Callable[[float], float]) -> float:
    # in ln(order-1), from the best of a grid; any order is valid, so a poor search only gives a looser bound
    low, high = math.log(1e-4), math.log(1e7)
    grid = [low + (high - low) * i / 60 for i in range(61)]
    values = [objective(1 + math.exp(x)) for x in grid]
    best = min(range(61), key=values.__getitem__)
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 60)]
    return 1 + math.exp(least_place(lambda x: objective(1 + math.exp(x)), low, high, 40))


def delta_from_renyi(divergence: Callable[[float], float], epsilon: float) -> float:
    """δ at ε from a whole Rényi curve, at the best order."""
    order = _best_order(lambda a: delta_at_order(a, divergence(a), epsilon))
    return delta_at_order(order, divergence(order), epsilon)


def epsilon_from_renyi(divergence: Callable[[float], float], delta: Number) -> float:
    """ε at δ from a whole Rényi curve, at the best order."""
    if delta == 0:
        return math.inf
    order = _best_order(lambda a: epsilon_at_order(a, divergence(a), delta))
    return epsilon_at_order(order, divergence(order), delta)
