"""ε at δ = 1e-6 of five compositions: here, dp-accounting (loss distributions on a 1e-4 grid) and prv-accountant.

`python -m bench.noise.accounting` measures all three in one run, on one core. `exact` comes from none of them: it
integrates δ(ε) = ∫ M(t)·e^{-tε} / (t(t+1)) dt / 2πi along Re t = 3, M the moments of the loss (randomized response:
binomial sum).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

DELTA = 1e-6
REPEAT = 5
RESPONSES = "500 randomized responses, ε₀ = 0.1"
CASES = {
    "1000 Laplace, ε₀ = 0.05": [("laplace", 1000)],
    "1000 Gaussians, σ = 20": [("gaussian", 1000)],
    "both mixed": [("laplace", 1000), ("gaussian", 1000)],
    "10,000 Poisson-subsampled Gaussians, σ = 1, q = 0.01": [("subsampled", 10_000)],
    RESPONSES: [("response", 500)],
}
GRID, ROUGH, FINE = "dp-accounting", "prv-accountant (0.1)", "prv-accountant (0.01)"
PEERS, ACCOUNTANT = (GRID, ROUGH, FINE), "dp-accounting, its accountant"
CLOSE, FASTER = 0.01, 3
"""The goals: how near to the exact answer, and how many times as fast as dp-accounting."""
ABOUT = f"""ε at δ = 1e-6 of mechanisms whose parameters are fixed in advance, compared with dp-accounting
{peers.version("dp-accounting")} (loss distributions on a 1e-4 grid) and prv-accountant
{peers.version("prv-accountant")} (asked for ε within 0.1 and 0.01). *Exact* is computed without any accountant, by a
contour integral or a binomial sum"""
Items = list[tuple[str, int]]


def discreet(items: Items) -> float:
    """The public way, from mechanisms to ε, with nothing remembered from the run before."""
    import discreet as dp
    from discreet.guarantees.privacy_loss import compose as loss

    loss._epsilon_at.cache_clear()
    make: dict[str, Callable[[], Any]] = {
        "laplace": lambda: dp.Laplace(scale=20).guarantee(sensitivity=1),
        "gaussian": lambda: dp.Gaussian(stddev=20).guarantee(sensitivity=1),
        "subsampled": lambda: dp.Subsampled(mechanism=dp.Gaussian(stddev=1), rate=0.01).guarantee(sensitivity=1),
        "response": lambda: dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=0.1), choices=[0, 1]).guarantee(),
    }
    return dp.compose([g for kind, times in items for g in [make[kind]()] * times]).epsilon_at(delta=DELTA)


def dp_accounting(items: Items) -> float:
    """Its accountant's answer; for responses, which that charges as one, the answer of the distribution under it."""
    from dp_accounting.pld.privacy_loss_distribution import from_randomized_response

    if items[0][0] == "response":
        once = from_randomized_response(2 / (1 + math.exp(0.1)), 2)
        return float(once.self_compose(items[0][1]).get_epsilon_for_delta(DELTA))
    return its_accountant(items)


def its_accountant(items: Items) -> float:
    import dp_accounting as d
    from dp_accounting.pld import PLDAccountant

    events = {
        "laplace": d.LaplaceDpEvent(20),
        "gaussian": d.GaussianDpEvent(20),
        "subsampled": d.PoissonSampledDpEvent(0.01, d.GaussianDpEvent(1)),
        "response": d.RandomizedResponseDpEvent(2 / (1 + math.exp(0.1)), 2),
    }
    relation = "REPLACE_ONE" if items[0][0] == "response" else "ADD_OR_REMOVE_ONE"
    accountant = PLDAccountant(neighboring_relation=d.NeighboringRelation[relation])
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


def measured(
    system: str, answer: Callable[[Items], float], repeat: int = REPEAT, cases: tuple[str, ...] = tuple(CASES)
) -> Iterator[dict[str, Any]]:
    for case in cases:
        items = CASES[case]
        seconds, epsilon = peers.best(lambda items=items: answer(items), repeat)
        yield {"system": system, "case": case, "epsilon": epsilon, "seconds": seconds}


def main() -> None:
    peers.one_core()
    section("Accounting", "noise.accounting", f"{ABOUT}. On one of {machine()}.")
    rows = list(measured("here", discreet))
    rows += peers.measure(__spec__.name, "dp-accounting") + peers.measure(__spec__.name, "prv-accountant")
    shown(rows, {case: exact(items) for case, items in CASES.items()})


def shown(rows: list[dict[str, Any]], exactly: dict[str, float]) -> None:
    """Answers, then times."""
    epsilon = {(row["case"], row["system"]): row["epsilon"] for row in rows}
    seconds = {(row["case"], row["system"]): row["seconds"] for row in rows}
    print("\nε at δ = 1e-6:\n")
    table("composition", "exact", "here", *PEERS)
    for case, truth in exactly.items():
        answers = [epsilon.get((case, system)) for system in ("here", *PEERS)]
        line(case, f"{truth:.9f}", *(None if answer is None else f"{answer:.9f}" for answer in answers))
    print("\nMilliseconds here, and how many times longer the others take:\n")
    table("composition", "here, ms", *PEERS)
    times = {key: spent / seconds[key[0], "here"] for key, spent in seconds.items()}
    for case in exactly:
        longer = [times.get((case, system)) for system in PEERS]
        said = (None if ratio is None else f"{ratio:.1f} ×" if ratio < 10 else f"{ratio:.0f} ×" for ratio in longer)
        line(case.partition(", ")[0], f"{1000 * seconds[case, 'here']:.1f}", *said)
    above = {case: epsilon[case, "here"] - truth for case, truth in exactly.items()}
    goals = {
        "never below the exact answer": min(above.values()) >= 0,
        f"within {CLOSE:.0%} of it": all(above[case] <= CLOSE * truth for case, truth in exactly.items()),
    }
    remarks = [
        f"""Times are the best of {REPEAT} ({ROUGH}: of 3; {FINE}: of one run), from the mechanisms to ε, including
        composing the list, with our caches cleared.""",
        "Our randomized response lies with the probability for ε₀ = 0.1, rounded up to the next float.",
    ]
    if (RESPONSES, GRID) in epsilon:
        goals["at least as tight as dp-accounting"] = all(epsilon[c, "here"] <= epsilon[c, GRID] for c in exactly)
        goals[f"at least {FASTER} times as fast as it"] = all(times[case, GRID] >= FASTER for case in exactly)
        remarks.append(
            f"""{epsilon[RESPONSES, GRID]:.3f} for the randomized responses is sometimes quoted as exact. It is
            dp-accounting's `from_randomized_response(…).self_compose({CASES[RESPONSES][0][1]})`, which rounds losses up
            to its grid; the binomial sum gives {exactly[RESPONSES]:.5f}. Its accountant answers
            {epsilon[RESPONSES, ACCOUNTANT]:.4f} for the same question, because it charges all responses as one."""
        )
    verdict(goals)
    notes(*remarks)


if __name__ == "__main__":
    if sys.argv[1:] == ["dp-accounting"]:
        print(*map(json.dumps, measured(GRID, dp_accounting)), sep="\n")
        print(*map(json.dumps, measured(ACCOUNTANT, its_accountant, 0, (RESPONSES,))))
    elif sys.argv[1:] == ["prv-accountant"]:
        for system, error, repeat in ((ROUGH, 0.1, 3), (FINE, 0.01, 0)):  # the finer one takes minutes: it runs once
            lines = measured(system, lambda items, e=error: prv_accountant(items, e), repeat)
            print(*map(json.dumps, lines), sep="\n")
    else:
        main()
