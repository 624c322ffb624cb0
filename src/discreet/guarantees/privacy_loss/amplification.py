"""Privacy amplification by Poisson subsampling: each unit takes part independently, with probability `rate`.

Everything here is for add/remove neighbors only, and for samples that are really drawn this way. Shuffled or fixed-size
batches have another law. Let p be the law of the output if the unit takes part, and q if it does not. An observer of
the sampled mechanism must distinguish `m = (1−rate)·q + rate·p` from q. Mixing over the choices of the other units can
only help privacy, because `Σ p^α q^{1−α}` is jointly convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import (
    SMALLEST_EPSILON,
    Number,
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    exactly,
    exp_bounds,
    float_up,
    log_bounds,
)
from discreet.guarantees.conversions import SLACK
from discreet.guarantees.guarantee import Approx

LARGEST_EXPANDED = 10_000
"""Above this order, a simpler and larger bound replaces the binomial sum."""


def subsampled_approx(epsilon: Number, delta: Number, rate: Any) -> Approx:
    """An (ε,δ)-DP mechanism on a Poisson sample.

    Promise: it is `(ln(1 + rate·(e^ε − 1)), rate·δ)`-DP for add/remove neighbors, rounded up.
    Source: Balle-Barthe-Gaboardi 2018, Theorem 8, which is tight.
    """
    sampled, above = _check_rate(rate), exp_bounds(check_epsilon(epsilon))[1]
    amplified = log_bounds(1 + sampled * (above - 1))[1]
    return Approx(epsilon=max(amplified, SMALLEST_EPSILON), delta=sampled * check_delta(delta))


def subsampled_gaussian_renyi(sigma: Any, rate: Any, order: int) -> float:
    """The Rényi divergence of Gaussian noise `sigma`, per unit of sensitivity, on a Poisson sample.

    Promise: `ln(Σ_k C(α,k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)})/(α−1)`, rounded up, for whole orders α ≥ 2, in both
    directions of add/remove. It holds on the line and, for shifts by lattice steps, on a lattice.
    Source: Mironov-Talwar-Zhang 2019, Theorem 4 and Section 3.3. The second direction is never larger if a reflection
    swaps p and q: it pairs outputs whose ratios are r and 1/r, and `(1−q+qr)(1−q+q/r) ≥ 1`.
    """
    unit = float_up(1 / (2 * check_positive(sigma, "sigma") ** 2)) * SLACK
    return _forward(lambda k: k * unit, float_up(_check_rate(rate)), check_count(order, "order", at_least=2))


def subsampled_renyi(renyi: Callable[[float], float], rate: Any, order: int) -> float:
    """The Rényi divergence of any mechanism on a Poisson sample, from its own curve (with no mass set aside).

    Promise: an upper bound for whole orders α ≥ 2, both directions of add/remove.
    Source: m against q is `E_q[(1−rate+rate·r)^α]` with r = p/q, expanded as in Zhu-Wang 2019, Theorem 5, with constant
    1. q against m is bounded in `_backward`. So the factor 3 of their general Theorem 6 is not needed.
    """
    sampled, whole = float_up(_check_rate(rate)), check_count(order, "order", at_least=2)
    return max(_forward(renyi, sampled, whole), _backward(renyi, sampled, whole))


def _forward(renyi: Callable[[float], float], rate: float, order: int) -> float:
    """The divergence of m from q: the binomial expansion of its moment, each term rounded up."""
    if rate == 1 or order > LARGEST_EXPANDED or math.isinf(renyi(order)):
        return _convex(renyi, rate, order)
    divergences = [(k - 1) * renyi(k) for k in range(2, order + 1)]
    stay, take, ways = math.log1p(-rate), math.log(rate), math.lgamma(order + 1)
    logs = [
        ways - math.lgamma(k + 1) - math.lgamma(order - k + 1) + (order - k) * stay + k * take + divergence
        for k, divergence in enumerate(divergences, start=2)
    ]
    error, top = 1e-12 + 1e-15 * (ways - order * (stay + take)), max(logs)
    if top > 1:
        first = (order - 1) * stay + math.log1p((order - 1) * rate)
        total = top + math.log(math.fsum(math.exp(log - top) for log in [first, *logs]))
    else:  # the terms without divergences add up to 1: adding up only the excess keeps small results exact
        excess = (math.exp(log) * -math.expm1(-d) for log, d in zip(logs, divergences, strict=True))
        total = math.log1p(math.fsum(excess))
    return total * (1 + error) / (order - 1)


def _convex(renyi: Callable[[float], float], rate: float, order: int) -> float:
    """A bound for both directions: the moment is convex in m, which mixes q with p."""
    moment = (order - 1) * renyi(order)
    if moment < 700:
        return math.log1p(rate * math.expm1(moment)) / (order - 1) * SLACK
    return renyi(order)


def _backward(renyi: Callable[[float], float], rate: float, order: int) -> float:
    """A bound on the divergence of q from m.

    With n = α−1 it is `ln E_q[(1+u)^{-n}]/n`, where u = rate·(r−1) ≥ −rate has mean 0, so the excess over 1
    is E_q[u²h], `h(u) = ((1+u)^{-n} − 1 + nu)/u² = Σ_{i≤n} (n+1−i)·w^i` with `w = 1/(1+u) ≤ 1−rate+rate/r`.
    Hence `E_q[u²w] ≤ rate²·χ²`, χ² = e^{renyi(2)} − 1 bounding both directions. For any t in [0,1), outputs
    with r ≥ t have `h ≤ w·h(v)/w(v)` at v = −rate·(1−t); those with r < t have `u²h ≤ rate²·h(−rate)`, and
    probability at most `(t·e^{renyi(α)})^n`. Also (1+u)^{-n} ≤ (1−rate)^{-n}.
    """
    n, second, whole = order - 1, renyi(2), renyi(order)
    bounds = [_convex(renyi, rate, order)]
    if rate < 1:
        bounds.append(-math.log1p(-rate))
    if rate < 1 and max(n * whole, second, -n * math.log1p(-rate)) < 700:
        square, far = math.expm1(second), _bend(rate, n)
        for t in (step / 20 for step in range(20)):
            tail = min(square, math.exp(n * (math.log(t) + whole))) if t else 0.0
            near = (1 - rate * (1 - t)) * _bend(rate * (1 - t), n) / (1 - t) ** 2
            bounds.append(math.log1p(near * square + far * tail) / n)
    return min(bounds) * (1 + 1e-11)


def _bend(v: float, n: int) -> float:
    # (1−v)^{−n} − 1 − nv, by its series Σ_{k≥2} C(n+k−1, k) v^k where the difference would cancel
    if n * v > 0.1:
        return math.expm1(-n * math.log1p(-v)) - n * v
    term, total = n * (n + 1) / 2 * v * v, 0.0
    for k in range(3, 60):
        total += term
        term *= (n + k - 1) / k * v
    return total


def _check_rate(rate: Any) -> Fraction:
    exact = exactly(rate, "rate")
    if not 0 < exact <= 1:
        raise InvalidArgument(
            "rate must be above 0 and at most 1: the probability that a unit takes part.", code="out-of-range"
        )
    return exact
