"""Published widths for the same Gaussian noise, to be shown next to ours. They are never below ours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import erfc, erfcinv, ndtr


def jung_exact(size: int, queries: int, miss: float) -> float:
    """Jung et al. 2020, with the exact curve of Gaussian noise and their constants c and d at their best.

    min over s, t, ε of t + (e^ε − 1) + (√b + √(2δ(ε)))²/β with b = 1 − (1 − P[|N| > t/s])^k.
    """

    def width(logs: Any) -> float:
        s, t, epsilon = _exponentials(logs)
        mu = math.sqrt(queries) / (size * s)
        delta = float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))
        missed = _any_beyond(t / s, queries)
        return t + math.expm1(epsilon) + (math.sqrt(missed) + math.sqrt(2 * max(delta, 0.0))) ** 2 / miss

    return _least(width, size, queries, lambda s: [6 * s, 3 * s])


def jung_as_coded(size: int, queries: int, miss: float) -> float:
    """Jung et al. 2020 as their code evaluates it: through zCDP, with c = d and as much of β for noise as for δ.

    √2·s·erfc⁻¹(δ/k) + (e^ε − 1) + 6δ/β with ε = kρ + 2√(kρ ln(√(πkρ)/δ)), ρ = 1/(2n²s²).
    """

    def width(logs: Any) -> float:
        s, delta, _ = _exponentials(logs)
        noise = math.sqrt(2) * s * float(erfcinv(min(delta / queries, 1.0)))
        return noise + math.expm1(min(_loss(size, queries, s, delta), 50.0)) + 6 * delta / miss

    return _least(width, size, queries, lambda s: [1e-4, 1.0])


def bassily(size: int, queries: int, miss: float) -> float:
    """Bassily et al. 2016 with the constants of Jung et al.'s code, for the same noise and ε:

    (√2·s·√ln(4k/δ) + (e^ε − 1) + 6⌊1/β⌋δ) / (1 − (1 − β)^⌊1/β⌋).
    """
    copies = math.floor(1 / miss + 1e-9)

    def width(logs: Any) -> float:
        s, delta, _ = _exponentials(logs)
        noise = math.sqrt(2) * s * math.sqrt(max(0.0, math.log(4 * queries / delta)))
        return noise + math.expm1(min(_loss(size, queries, s, delta), 50.0)) + 6 * copies * delta

    return _least(width, size, queries, lambda s: [1e-4, 1.0]) / (1 - (1 - miss) ** copies)


def _loss(size: int, queries: int, s: float, delta: float) -> float:
    """The ε of k answers with Gaussian noise s, through zCDP."""
    rho = queries / (2 * size**2 * s**2)
    held = math.sqrt(math.pi * rho) / delta
    return rho + 2 * math.sqrt(rho * max(0.0, math.log(held if held > math.e else 1 / delta)))


def _exponentials(logs: Any) -> tuple[float, float, float]:
    first, second, third = (float(x) for x in np.exp(np.clip(logs, -60, 3)))
    return first, second, third


def _any_beyond(away: float, count: int) -> float:
    """The chance that one of `count` normal variables is so far away, on either side."""
    return -math.expm1(count * math.log1p(-min(float(erfc(away / math.sqrt(2))), 1 - 1e-16)))


def _least(width: Any, size: int, queries: int, others: Any) -> float:
    middle = math.sqrt(math.sqrt(queries) / size)
    options: Any = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    found = []
    for share in (0.15, 0.3, 0.6):
        start: Any = np.log([share * middle, *others(share * middle)])
        found.append(float(minimize(width, start, method="Nelder-Mead", options=options).fun))
    return min(found)
