"""The curve δ(ε) of a guarantee, and what it says about attacks: one test of "in the data" against "not in it".

Write δ(ε) for the largest P(F) − e^ε P'(F) over all neighbors and events F. An attack that finds a fraction t of the
people who are in the data and accuses a fraction f of the others has t ≤ e^ε f + δ(ε) and
1 − f ≤ e^ε (1 − t) + δ(ε) for every ε ≥ 0. These lines are the best trade-off between t and f.
Source: Wasserman-Zhou 2010; Kairouz-Oh-Viswanath 2015; Dong-Roth-Su 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.exact.rational import Number, exactly, exp_bounds, float_up, log_bounds
from discreet.exact.search import least_place
from discreet.guarantees.conversions import SLACK
from discreet.guarantees.guarantee import GaussianTradeoff, Guarantee, Renyi, ZeroConcentrated

POINTS = 64
"""How many ε of a curve are computed. Each is a true bound, so more of them only make it tighter."""
_TAIL = 1e-12
"""The curve ends where δ is this small."""
FARTHEST = 600.0
"""No larger ε is computed: beyond it no odds are left to protect."""
Curve = Sequence[tuple[float, float]]
"""Each ε with its δ, both rounded up."""


def delta_of(guarantee: Guarantee, epsilon: Number) -> float:
    """δ(ε), rounded up. Also at most the total variation that a Rényi divergence allows, by Pinsker's inequality."""
    delta = min(1.0, guarantee.delta_at(epsilon=epsilon))
    if isinstance(guarantee, ZeroConcentrated | Renyi):
        divergence = guarantee.renyi(1.0)  # at least the Kullback-Leibler divergence
        delta = min(delta, math.sqrt(divergence / 2) * SLACK, math.sqrt(-math.expm1(-divergence)) * SLACK)
    return delta


def curve_of(guarantee: Guarantee) -> Curve:
    """Points of δ(ε) from ε = 0 to where nothing more is to be gained."""
    bound, lost = guarantee.largest_loss, guarantee.infinite
    tail = max(_TAIL, min(2 * lost, 0.999))
    top = min(guarantee.epsilon_at(delta=tail) if bound is None else float_up(bound), FARTHEST)
    places = [top * place / (POINTS - 1) for place in range(POINTS)] if top else [0.0]
    return [(epsilon, delta_of(guarantee, Fraction(epsilon))) for epsilon in places]


def found_at(guarantee: Guarantee, curve: Curve, false_alarms: float) -> float:
    """The largest fraction of people in the data that an attack can find, at a fraction of false alarms. Rounded up."""
    bounds = [1.0]
    for epsilon, delta in curve:
        ratio = math.exp(epsilon)
        bounds += (ratio * false_alarms + delta, 1 - (1 - delta - false_alarms) / ratio + 1e-15)
    least = min(bounds) * SLACK
    if isinstance(guarantee, GaussianTradeoff):
        least = min(least, _found_under_gaussian(float_up(exactly(guarantee.mu)), false_alarms))
    return max(false_alarms, min(1.0, least))


def _found_under_gaussian(mu: float, false_alarms: float) -> float:
    from scipy.special import ndtr, ndtri

    if false_alarms in (0.0, 1.0):
        return false_alarms
    return float(ndtr(ndtri(false_alarms) + mu * SLACK)) * (1 + 1e-11)


def success_at(guarantee: Guarantee, curve: Curve, base_rate: Fraction) -> Fraction:
    """The largest probability that a guess is right, if a fraction `base_rate` is in the data. Rounded up.

    With base rate π ≤ ½, the best guess is right with probability (1−π) + π·max(t − e^ε f) for e^ε = (1−π)/π, and the
    maximum is δ(ε). For π > ½, exchange the two answers.
    """
    rare = min(base_rate, 1 - base_rate)
    ratio = (1 - rare) / rare
    epsilon = max(Fraction(0), log_bounds(ratio)[0]) if ratio > 1 else Fraction(0)
    delta = min(delta_of(guarantee, epsilon), delta_below(curve, float(ratio)))
    return (1 - rare) + rare * Fraction(delta)


def delta_below(curve: Curve, ratio: float) -> float:
    """δ at e^ε = `ratio` as it follows from points of larger ε, rounded up. The worst (ε,δ) mechanism leaks everything
    with probability δ, and is otherwise randomized response.
    """
    bounds = [1.0]
    for epsilon, delta in curve:
        if epsilon <= FARTHEST and (above := math.exp(epsilon)) > ratio:
            bounds.append((delta + (1 - delta) * (above - ratio) / (1 + above)) * SLACK + 1e-15)
    return min(bounds)


def loss_except(guarantee: Guarantee, failure: float) -> float:
    """A privacy loss that is exceeded, up or down, with probability at most `failure`, whichever neighbor is true.

    Let S be the outputs with P > e^c P', and S' those with P' > e^c P. Then P(S) − e^ε P'(S) ≤ δ(ε) and
    P'(S) ≤ e^{−c} P(S), so P(S) ≤ δ(ε)/(1 − e^{ε−c}) for every ε < c. In the same way P'(S') is bounded, and
    P(S') ≤ e^{−c} P'(S'). Both together are at most `failure` at e^c = (δ + failure·e^ε)/(failure − δ).
    The tail of a dominating pair would not do: a mechanism may exceed a loss more often than such a pair.
    """
    bound, lost = guarantee.largest_loss, guarantee.infinite
    largest = math.inf if bound is None or lost else float_up(bound)
    if failure <= lost:
        return largest
    low = guarantee.epsilon_at(delta=failure)
    high = guarantee.epsilon_at(delta=max(failure / 1000, lost))
    if bound is not None:
        high = min(high, float_up(bound))
    return min(largest, _least(lambda epsilon: _loss_at(guarantee, epsilon, failure), low, high))


def _loss_at(guarantee: Guarantee, epsilon: float, failure: float) -> float:
    share = delta_of(guarantee, Fraction(epsilon)) / failure
    if share >= 1:
        return math.inf
    return (epsilon + math.log1p(share * math.exp(-epsilon)) - math.log1p(-share)) * SLACK


def _least(cost: Callable[[float], float], low: float, high: float) -> float:
    if not low < high < math.inf:
        return cost(min(low, high)) if math.isfinite(min(low, high)) else math.inf
    return min(cost(least_place(cost, low, high, 40)), cost(high))


def posterior_of(base_rate: Fraction, loss: float) -> tuple[Fraction, Fraction]:
    """The lowest and the highest probability after the odds changed by at most e^loss, rounded outward."""
    if loss > FARTHEST:
        return Fraction(0), Fraction(1)
    factor = exp_bounds(Fraction(loss))[1]
    others = 1 - base_rate
    return base_rate / (base_rate + factor * others), base_rate * factor / (base_rate * factor + others)
