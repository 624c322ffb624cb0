"""ε at δ = 1e-6 of five compositions: here, dp-accounting (loss distributions on a 1e-4 grid) and prv-accountant.

`python bench/accounting.py` measures all three in one run, on one core. `exact` comes from none of them: it integrates
δ(ε) = ∫ M(t)·e^{-tε} / (t(t+1)) dt / 2πi along Re t = 3, M the moments of the loss (randomized response: binomial sum).
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import peers

DELTA = 1e-6
REPEAT = 5
CASES = {
    "1000 Laplace, ε₀ = 0.05": [("laplace", 1000)],
    "1000 Gaussians, σ = 20": [("gaussian", 1000)],
    "both mixed": [("laplace", 1000), ("gaussian", 1000)],
    "10,000 subsampled Gaussians, σ = 1, q = 0.01": [("subsampled", 10_000)],
    "500 randomized responses, ε₀ = 0.1": [("response", 500)],
}
Items = list[tuple[str, int]]


def discreet(items: Items) -> float:
    """The public way, from mechanisms to ε, with nothing remembered from the run before."""
    import discreet as dp
    from discreet.guarantees import loss

    loss._epsilon_at.cache_clear()
    make: dict[str, Callable[[], Any]] = {
        "laplace": lambda: dp.Laplace(scale=20).guarantee(sensitivity=1),
        "gaussian": lambda: dp.Gaussian(stddev=20).guarantee(sensitivity=1),
        "subsampled": lambda: dp.Subsampled(mechanism=dp.Gaussian(stddev=1), rate=0.01).guarantee(sensitivity=1),
        "response": lambda: dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=0.1), choices=[0, 1]).guarantee(),
    }
    return dp.compose([g for kind, times in items for g in [make[kind]()] * times]).epsilon_at(delta=DELTA)


def dp_accounting(items: Items) -> float:
    import dp_accounting as d
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

    if items[0][0] == "response":  # its accountant charges 500 responses as one; the distribution under it does not
        once = from_randomized_response(2 / (1 + math.exp(0.1)), 2)
        return float(once.self_compose(items[0][1]).get_epsilon_for_delta(DELTA))
    events = {
        "laplace": d.LaplaceDpEvent(20),
        "gaussian": d.GaussianDpEvent(20),
        "subsampled": d.PoissonSampledDpEvent(0.01, d.GaussianDpEvent(1)),
    }
    accountant = PLDAccountant()
    for kind, times in items:
        accountant.compose(events[kind], times)
    return float(accountant.get_epsilon(DELTA))


def prv_accountant(items: Items, error: float) -> float:
    import prv_accountant.privacy_random_variables as prv
    from prv_accountant import PRVAccountant

    make: dict[str, Callable[[], Any]] = {
        "laplace": lambda: prv.LaplaceMechanism(mu=0.05),
        "gaussian": lambda: prv.GaussianMechanism(noise_multiplier=20),
        "subsampled": lambda: prv.PoissonSubsampledGaussianMechanism(0.01, 1),
        "response": lambda: prv.PureDPMechanism(0.1),
    }
    times = [count for _, count in items]
    laws = [make[kind]() for kind, _ in items]
    accountant = PRVAccountant(prvs=laws, max_self_compositions=times, eps_error=error, delta_error=DELTA / 1000)
    return float(accountant.compute_epsilon(DELTA, times)[2])


def exact(items: Items) -> float:
    """ε to about ten digits, for the continuous laws (the lattices drawn from are finer than that)."""
    import numpy as np

    if items[0][0] == "response":
        n, p = items[0][1], 1 / (1 + math.exp(-0.1))
        step = math.log(p / (1 - p))
        parts = [(step * (2 * k - n), math.comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1)]
        return _root(lambda e: sum(mass * -math.expm1(e - loss) for loss, mass in parts if loss > e))
    t = 3 + 1j * np.linspace(-60, 60, 4001)
    x = np.linspace(-14, 14, 8001)
    phi = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    ratio = 1 + 0.01 * np.expm1(x - 0.5)
    flat = np.exp(0.05 * t) * -np.expm1(-0.05 * (1 + 2 * t)) / (1 + 2 * t)
    log_moment = {
        "laplace": lambda: np.log((np.exp(0.05 * t) + np.exp(-0.05 * (1 + t)) + flat) / 2),
        "gaussian": lambda: (t + t * t) / 800,
        "subsampled": lambda: np.log([(phi * ratio ** (1 + s)).sum() for s in t]),  # the worse direction
    }
    total = sum(times * log_moment[kind]() for kind, times in items)
    weight = (t[1] - t[0]).imag / (2 * math.pi) / (t * (t + 1))
    return _root(lambda e: float((np.exp(total - t * e) * weight).sum().real))


def _root(delta: Callable[[float], float]) -> float:
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return high


def measured(system: str, answer: Callable[[Items], float], repeat: int = REPEAT) -> Iterator[dict[str, Any]]:
    for case, items in CASES.items():
        seconds, epsilon = peers.best(lambda items=items: answer(items), repeat)
        yield {"system": system, "case": case, "epsilon": epsilon, "seconds": seconds}


def main() -> None:
    peers.one_core()
    print(f"ε at δ = {DELTA:g}; best of {REPEAT}, one core, load {os.getloadavg()[0]:.1f} at the start")
    rows = list(measured("discreet", discreet))
    rows += peers.measure(__file__, "dp-accounting") + peers.measure(__file__, "prv-accountant")
    for case, items in CASES.items():
        truth = exact(items)
        print(f"\n{case}: exact {truth:.9f}")
        here = [row for row in rows if row["case"] == case]
        for row in here:
            print(
                f"  {row['system']:24} ε {row['epsilon']:.9f}  above exact by {row['epsilon'] - truth:8.1e}"
                f"  {1000 * row['seconds']:8.1f} ms  {row['seconds'] / here[0]['seconds']:6.1f} × ours"
            )


if __name__ == "__main__":
    if sys.argv[1:] == ["dp-accounting"]:
        print(*map(json.dumps, measured("dp-accounting, 1e-4", dp_accounting)), sep="\n")
    elif sys.argv[1:] == ["prv-accountant"]:
        for error, repeat in ((0.1, 3), (0.01, 0)):  # the finer one takes minutes: its first run is its time
            lines = measured(f"prv-accountant, {error}", lambda items, e=error: prv_accountant(items, e), repeat)
            print(*map(json.dumps, lines), sep="\n")
    else:
        main()
