"""The permutation test: its level, its power and its time, next to tests without privacy and to the private comparison
of means.

Simulated releases have the laws of the mechanism: permutations and noise come from numpy, and the decision from
`PermutationTest.decide`. Level and power are for 199 permutations. "Twice the noise" is our decision with the scale
that Kim and Schrab 2023 need for a statistic of which only the sensitivity is known, two ranges over ε: it is neither
their code nor their statistic. "Not private" is the same permutations without noise. Times are next to
`scipy.stats.permutation_test`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

import discreet as dp
from discreet.mechanisms.quantiles.permutation_test import PermutationTest
from discreet.stats.permutation_methods import p_of_rank

RNG = np.random.default_rng(28)
PERMUTATIONS = 199
RUNS = 10_000
Law = Callable[[int], Any]


def whole_laplace(scale: float, shape: Any) -> Any:
    q = 1 - np.exp(-1 / scale)
    return RNG.geometric(q, shape) - RNG.geometric(q, shape)


def made(epsilon: float, level: float | None = 0.05, permutations: int = PERMUTATIONS) -> PermutationTest:
    return PermutationTest.for_guarantee(
        dp.Pure(epsilon=epsilon), unit=dp.row(), level=level, permutations=permutations
    )


def sums_of(parts: Any, first: int, test: PermutationTest) -> Any:
    """Permuted sums of the second group less its own, for parts of which the first ones are in the first group."""
    steps = np.floor(parts * test.steps + RNG.random(len(parts))).astype(np.int64)
    if len(parts) <= 100:
        orders = np.argsort(RNG.random((test.permutations, len(parts))), axis=1)
        return steps[orders][:, first:].sum(1) - steps[first:].sum()
    counts = np.bincount(steps, minlength=test.steps + 1)
    drawn = RNG.multivariate_hypergeometric(counts, len(parts) - first, size=test.permutations, method="marginals")
    return drawn @ np.arange(test.steps + 1) - steps[first:].sum()


def rejects(parts: Any, first: int, test: PermutationTest) -> bool:
    """Whether the released answer rejects at 5%."""
    noise = whole_laplace(float(test.scale), test.permutations + 1)
    others = np.sort(sums_of(parts, first, test) + noise[1:])
    if test.level is not None:
        return test.decide(int(noise[0]), others)
    larger = int((others > noise[0]).sum()) + int(RNG.integers(0, int((others == noise[0]).sum()) + 1))
    return p_of_rank(larger, test.permutations, "two-sided") <= 0.05


def even(size: int) -> Any:
    return RNG.random(size)


def skewed(size: int) -> Any:
    return np.clip(0.05 * RNG.lognormal(0, 1.2, size), 0, 1)


def rare(size: int) -> Any:
    """One value in twenty is at the end of the range."""
    return np.where(RNG.random(size) < 0.05, 1.0, 0.02)


def level_table() -> None:
    print(f"### Level at 5% ({RUNS:,} runs; the binomial error is ± 0.6% at 99%)\n")
    print("| values | rows | answer | ε = 0.05 | 0.2 | 1 | 5 |\n|---|---|---|---|---|---|---|")
    laws: dict[str, Law] = {"even": even, "skewed": skewed, "1 of 20 at the end": rare}
    for name, law in laws.items():
        for size, first in ((50, 25), (50, 40)):
            for answer, level in (("decision", 0.05), ("p-value", None)):
                tests = [made(epsilon, level) for epsilon in (0.05, 0.2, 1, 5)]
                found = [np.mean([rejects(law(size), first, test) for _ in range(RUNS)]) for test in tests]
                told = " | ".join(f"{100 * one:.1f}%" for one in found)
                print(f"| {name} | {first} + {size - first} | {answer} | {told} |", flush=True)


def published(epsilon: float) -> PermutationTest:
    """Noise of twice the sensitivity of the sum over ε, as for any statistic."""
    return replace(made(epsilon), scale=2 * made(epsilon).steps / epsilon)


def power_table() -> None:
    print("\n### Power at 5% (1,000 runs, 200 of `compare`; normal values with a deviation of 0.15 of the range)\n")
    print("| rows | difference | ε | decision | p-value | twice the noise | `compare` | not private |")
    print("|---|---|---|---|---|---|---|---|")
    for size, effect, epsilon in (
        (200, 0.1, 1),
        (500, 0.05, 0.5),
        (1000, 0.05, 0.2),
        (2000, 0.02, 1),
        (5000, 0.02, 0.2),
    ):
        tests, hits = [made(epsilon), made(epsilon, None), published(epsilon)], np.zeros(5)
        for run in range(1000):
            groups = np.arange(size) >= size // 2
            parts = np.clip(0.45 + effect * groups + 0.15 * RNG.normal(size=size), 0, 1)
            hits[:3] += [rejects(parts, size // 2, test) for test in tests]
            if run < 200:
                ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
                found = dp.stats.compare(parts, groups, between=(0, 1), epsilon=epsilon, ledger=ledger)
                hits[3] += 5 * (found.p_value <= 0.05)
            larger = int((sums_of(parts, size // 2, tests[0]) >= 0).sum())
            hits[4] += min(larger + 1, PERMUTATIONS - larger + 1) <= 0.025 * (PERMUTATIONS + 1)
        told = " | ".join(f"{one / 1000:.2f}" for one in hits)
        print(f"| {size:,} | {effect} | {epsilon} | {told} |", flush=True)


def ours(values: Any, groups: Any) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
    dp.stats.permutation(values, groups, between=(0, 1), level=0.05, epsilon=1, ledger=ledger)


def scipys(values: Any, groups: Any) -> None:
    stats.permutation_test(
        (values[groups], values[~groups]),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        n_resamples=999,
        vectorized=True,
        batch=20,
        rng=RNG,
    )


def seconds(run: Callable[[Any, Any], None], size: int) -> float:
    groups, values = RNG.random(size) < 0.5, RNG.random(size)
    started = time.perf_counter()
    run(values, groups)
    return time.perf_counter() - started


def times() -> None:
    print("\n### Time of 999 permutations\n")
    print("| rows | discreet | scipy.stats.permutation_test |\n|---|---|---|")
    seconds(ours, 100)
    for size in (10_000, 100_000, 1_000_000):
        peer = f"{seconds(scipys, size):.1f} s" if size < 10**6 else "not run"
        print(f"| {size:,} | {min(seconds(ours, size) for _ in range(3)):.2f} s | {peer} |", flush=True)


if __name__ == "__main__":
    print("## The permutation test\n")
    print(__doc__.strip().split("\n\n")[1] + "\n")
    level_table()
    power_table()
    times()
