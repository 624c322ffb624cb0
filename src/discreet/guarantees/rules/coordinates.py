"""The cost of a guarantee in each coordinate, and the conversion of a total to an ε. The rules use this arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.exact.rational import Number, exactly, exp_bounds, log_bounds
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, ZeroConcentrated


def stated_delta(guarantee: Guarantee) -> Fraction:
    """The mass that a guarantee sets aside: its δ coordinate."""
    return exactly(guarantee.delta) if isinstance(guarantee, Approx) else Fraction(guarantee.infinite)


def stated_epsilon(guarantee: Guarantee) -> Fraction | None:
    """The ε that holds outside the mass set aside, rounded up. None if there is no finite one."""
    return guarantee.largest_loss


def stated_rho(guarantee: Guarantee) -> Fraction | None:
    """The smallest known ρ outside the mass set aside, rounded up: `ε tanh(ε/2) ≤ ε²/2` when an ε is stated.

    Proof: randomized response, the worst ε-DP mechanism (Kairouz-Oh-Viswanath 2015), has the Rényi divergence `(ln
    cosh((α−½)ε) − ln cosh(ε/2))/(α−1)`. `ln cosh(ε√s)` is concave in s, so it lies below its tangent at s = ¼.
    """
    if isinstance(guarantee, ZeroConcentrated):
        return exactly(guarantee.rho)
    if isinstance(guarantee, GaussianTradeoff):
        return exactly(guarantee.mu) ** 2 / 2
    known = []
    if (epsilon := stated_epsilon(guarantee)) is not None:
        above = exp_bounds(epsilon)[1]
        known.append(min(epsilon**2 / 2, epsilon * (above - 1) / (above + 1)))
    rho = getattr(guarantee, "rho", None)
    if callable(rho) and math.isfinite(value := rho(outside=True)):
        known.append(Fraction(value))
    return min(known, default=None)


def conversion_cost(order: Fraction, delta: Fraction) -> Fraction:
    """What the conversion of a Rényi divergence to an ε at δ adds to it, rounded up.

    Source: Canonne-Kamath-Steinke 2020, Proposition 12: `ln(1−1/α) − (ln δ + ln α)/(α−1)`.
    """
    return log_bounds(1 - 1 / order)[1] - log_bounds(delta * order)[0] / (order - 1)


def best_order(epsilon: Number, delta: Fraction) -> Fraction:
    """An order at which a limit (ε,δ) allows nearly the most Gaussian releases. Any order is valid."""
    limit, log = float(epsilon), max(1e-3, -float(log_bounds(delta)[1]))
    center = math.sqrt(log) * (math.sqrt(log + limit) + math.sqrt(log)) / limit

    def room(order: float) -> float:
        return (limit - math.log1p(-1 / order) - (log - math.log(order)) / (order - 1)) / order

    orders = [1 + max(center, 1e-6) * 2 ** (step / 32) for step in range(-128, 129)]
    return Fraction(max(orders, key=room))


def as_fraction(value: float) -> Fraction:
    """A float as a fraction. Infinity becomes a number that is larger than any limit."""
    return Fraction(min(value, 1e300))
