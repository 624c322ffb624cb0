"""Tests from counts, sums and ranks of several groups: their level, and their power next to published private tests and
to scipy without privacy.

The peers are written from their papers: MCIndep (Gaboardi et al. 2016) and the projected statistic (Kifer and Rogers
2017) for independence, F1 (Swanberg et al. 2019) for the analysis of variance, and the Mann–Whitney and Kruskal–Wallis
tests of Couch et al. 2019. All add noise for one added or removed row (the last ones for one replaced row, with a
public number of rows, as published). Simulated releases have the laws of the mechanisms.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import discreet as dp
from discreet.stats.group_methods import _groups_of
from discreet.stats.inference.equal_means import EqualMeans
from discreet.stats.inference.means import DifferenceOf
from discreet.stats.inference.noisy_shares import Noise, NoisyShares
from discreet.stats.inference.tables_of_counts import NoiseOfCounts, distance, evened, fit_independent

RNG = np.random.default_rng(28)
DRAWS = 99
"""Simulated releases for each p-value: the level is the same for any number of them."""


def whole_laplace(scale: float, shape: Any) -> Any:
    q = 1 - np.exp(-1 / scale)
    return RNG.geometric(q, shape) - RNG.geometric(q, shape)


# --- χ² ---------------------------------------------------------------------------------------------------------


def ours(counts: Any, variance: float) -> tuple[Any, Any]:
    fitted = fit_independent(counts, variance)
    return distance(counts, fitted, variance), fitted


def kifer_rogers(counts: Any, variance: float) -> tuple[Any, Any]:
    """The least Σ (X − E)²/(E + τ²) over independent tables."""
    fitted = fit_independent(counts, variance)
    return ((counts - fitted) ** 2 / (fitted + variance)).sum((-2, -1)), fitted


def gaboardi(counts: Any, variance: float) -> tuple[Any, Any]:
    """Pearson's statistic of the noisy counts, with the products of their margins."""
    known = np.maximum(counts, 0.0)
    size = np.maximum(known.sum((-2, -1)), 1e-9)[..., None, None]
    fitted = known.sum(-1, keepdims=True) * known.sum(-2, keepdims=True) / size
    return ((counts - fitted) ** 2 / np.maximum(fitted, 1.0)).sum((-2, -1)), fitted


def reject_independence(test: Any, shares: Any, size: int, epsilon: float, runs: int) -> float:
    variance, hits = NoiseOfCounts(laplace=1 / epsilon).variance, 0
    for start in range(0, runs, 500):
        many = min(500, runs - start)
        drawn = RNG.multinomial(size, shares.reshape(-1), size=many).reshape(many, *shares.shape)
        seen, fitted = test((drawn + whole_laplace(1 / epsilon, drawn.shape)).astype(float), variance)
        shape = (many, DRAWS, *shares.shape)
        noise = whole_laplace(1 / epsilon, shape)
        nulls = [fitted, evened(fitted, variance)[0]] if test is ours else [fitted]
        both = RNG.poisson(np.minimum(nulls[0], nulls[-1])[:, None], size=shape) + noise
        p = []
        for null in nulls:  # the same numbers for both, as far as possible
            more = RNG.poisson((null - np.minimum(nulls[0], nulls[-1]))[:, None], size=shape)
            found = test((both + more).astype(float), variance)[0]
            p.append((1 + (found >= seen[:, None] * (1 - 1e-9)).sum(1)) / (DRAWS + 1))
        hits += np.count_nonzero(np.max(p, axis=0) <= 0.05)
    return float(hits / runs)


def pearson(shares: Any, size: int, runs: int) -> float:
    hits = 0
    for table in RNG.multinomial(size, shares.reshape(-1), size=runs).reshape(runs, *shares.shape):
        kept = table[table.sum(1) > 0][:, table.sum(0) > 0]
        hits += min(kept.shape) > 1 and stats.chi2_contingency(kept, correction=False).pvalue <= 0.05
    return hits / runs


def chi2_tables() -> None:
    skewed = np.outer([0.7, 0.2, 0.08, 0.02], [0.9, 0.07, 0.02, 0.01])
    one = np.outer([0.97, 0.01, 0.01, 0.01], [0.97, 0.01, 0.01, 0.01])
    print("### χ² of independence: level at 5% (10,000 runs; the binomial error is ± 0.6% at 99%)\n")
    print("| table | n | ε = 0.05 | 0.2 | 1 | 5 |\n|---|---|---|---|---|---|")
    for name, shares in (("2 × 2", np.outer([0.5, 0.5], [0.8, 0.2])), ("4 × 4, skewed", skewed),
                         ("4 × 4, 94% in one cell", one)):  # fmt: skip
        for size in (50, 500):
            found = [reject_independence(ours, shares, size, epsilon, 10_000) for epsilon in (0.05, 0.2, 1, 5)]
            print(f"| {name} | {size} | " + " | ".join(f"{100 * one:.1f}%" for one in found) + " |", flush=True)
    print("\n### χ² of independence: power at 5% (1,000 runs in all over 10 tables)\n")
    print("| table | n | ε | discreet | Kifer–Rogers | MCIndep | scipy, not private |\n|---|---|---|---|---|---|---|")
    for what, alike, size, epsilon in (
        ("4 × 5, even margins", 50.0, 1000, 0.3), ("4 × 5, uneven margins", 1.0, 300, 0.3),
        ("4 × 5, uneven margins", 1.0, 1000, 0.1), ("8 × 8, uneven margins", 0.5, 1000, 0.3),
    ):  # fmt: skip
        rows, columns = (4, 5) if what.startswith("4") else (8, 8)
        sums = np.zeros(4)
        for _ in range(10):
            base = np.outer(RNG.dirichlet(np.full(rows, alike)), RNG.dirichlet(np.full(columns, alike)))
            shares = base * np.exp(0.4 * RNG.normal(size=base.shape))
            shares /= shares.sum()
            found = [reject_independence(t, shares, size, epsilon, 100) for t in (ours, kifer_rogers, gaboardi)]
            sums += [*found, pearson(shares, size, 100)]
        print(f"| {what} | {size} | {epsilon} | " + " | ".join(f"{one / 10:.2f}" for one in sums) + " |", flush=True)


# --- means of several groups ------------------------------------------------------------------------------------


def released(groups: list[Any], scale: float) -> NoisyShares:
    sums = [[((1 - t) ** 2).sum(), 2 * (t * (1 - t)).sum(), (t**2).sum()] for t in groups]
    numbers = np.concatenate(sums) + RNG.laplace(0, scale, 3 * len(groups))
    pairs = tuple((2 * g + v, 2 * g + w) for g in range(len(groups)) for v, w in ((0, 0), (0, 1), (1, 1)))
    return NoisyShares(numbers, pairs, 2 * len(groups), Noise(laplace=scale))


def p_anova(groups: list[Any], epsilon: float) -> float:
    return EqualMeans(_groups_of(released(groups, 1 / epsilon), len(groups)), DRAWS).tested[1]


def p_swanberg(groups: list[Any], epsilon: float) -> float:
    """F1: absolute in place of squared deviations, with 70% of ε for those between groups."""
    k, size = len(groups), sum(map(len, groups))

    def sums(values: list[Any]) -> tuple[float, float]:
        middle = np.concatenate(values).mean()
        across = sum(len(v) * abs(v.mean() - middle) for v in values) + RNG.laplace(0, 4 / (0.7 * epsilon))
        return across, sum(np.abs(v - v.mean()).sum() for v in values) + RNG.laplace(0, 3 / (0.3 * epsilon))

    across, inside = sums(groups)
    spread = np.sqrt(np.pi / 2) * max(inside, 1e-6) / (size - k)
    seen = (across / (k - 1)) / (max(inside, 1e-6) / (size - k))
    each = size // k
    null = []
    for _ in range(DRAWS):
        a, b = sums([spread * RNG.normal(size=each) for _ in range(k)])
        null.append((a / (k - 1)) / (max(b, 1e-6) / (size - k)))
    return float((1 + np.count_nonzero(np.array(null) >= seen)) / (DRAWS + 1))


def even(size: int, shift: float = 0.0) -> Any:
    return np.clip(0.5 + shift + 0.15 * RNG.normal(size=size), 0, 1)


def skewed_values(size: int, shift: float = 0.0) -> Any:
    return np.clip((0.1 + shift) * RNG.gamma(1, 1, size), 0, 1)


def anova_tables(runs: int = 500) -> None:
    print(f"\n### Analysis of variance of three groups: level at 5% ({runs:,} runs; 30 where n·ε is at most 100)\n")
    print("| values | rows | ε = 0.2 | 1 | 5 |\n|---|---|---|---|---|")
    for name, law in (("normal", even), ("exponential", skewed_values)):
        for size in (150, 1500):
            found = []
            for epsilon in (0.2, 1, 5):
                some = runs if size * epsilon > 100 else 30  # where sizes are unknown, each p-value takes long
                hits = [p_anova([law(int(size * w)) for w in (0.5, 0.3, 0.2)], epsilon) <= 0.05 for _ in range(some)]
                found.append(np.mean(hits))
            print(f"| {name} | {size} | " + " | ".join(f"{100 * one:.1f}%" for one in found) + " |", flush=True)
    print("\n### Analysis of variance: power at 5%, ε = 1, means 0.1 deviations apart, range of 6 deviations\n")
    print("| rows | discreet | F1 | scipy, not private |\n|---|---|---|---|")
    for size in (1000, 2000, 4000):
        hits = np.zeros(3)
        for _ in range(100):
            groups = [even(size // 3, shift) for shift in (0.0, 0.015, 0.03)]
            p = [p_anova(groups, 1), p_swanberg(groups, 1), stats.f_oneway(*groups).pvalue]
            hits += np.array(p) <= 0.05
        print(f"| {size} | " + " | ".join(f"{one / 100:.2f}" for one in hits) + " |", flush=True)


# --- ranks ------------------------------------------------------------------------------------------------------


def scores_of(groups: list[Any], epsilon: float) -> list[Any]:
    """Scores from a histogram in 64 parts. The mechanism has 4096 parts and a tree, with about the same error."""
    bins = [np.clip((one * 64).astype(int), 0, 63) for one in groups]
    noisy = np.bincount(np.concatenate(bins), minlength=64) + RNG.laplace(0, 5 / epsilon, 64)
    counts = np.maximum(noisy, 0).cumsum()
    scores = (np.append(0, counts[:-1]) + counts) / 2 / max(counts[-1], 1e-9)
    return [scores[one] for one in bins]


def p_mann_whitney(groups: list[Any], epsilon: float) -> float:
    shares = released(scores_of(groups, epsilon), 1.25 / epsilon)
    return float(DifferenceOf(*_groups_of(shares, 2)).p_of_gap(0.0))


def p_couch_mann_whitney(groups: list[Any], epsilon: float) -> float:
    """U with noise for its sensitivity, the size of the larger group, which is found with 65% of ε."""
    first, second = groups
    size, smaller = len(first) + len(second), min(len(first), len(second))
    found = float(np.clip(smaller + RNG.laplace(0, 1 / (0.65 * epsilon)), 1, size / 2))
    scale = (size - found) / (0.35 * epsilon)
    u = stats.mannwhitneyu(first, second).statistic + RNG.laplace(0, scale)
    spread = np.sqrt(found * (size - found) * (size + 1) / 12)
    null = spread * RNG.normal(size=999) + RNG.laplace(0, scale, 999)
    middle = found * (size - found) / 2
    return float((1 + np.count_nonzero(np.abs(null) >= abs(u - middle))) / 1000)


def p_couch_kruskal(groups: list[Any], epsilon: float) -> float:
    """Absolute deviations of mean ranks, which have the sensitivity 8."""
    sizes = np.array([len(one) for one in groups])
    size = sizes.sum()
    middle, whole = (size + 1) / 2, np.abs(np.arange(1, size + 1) - (size + 1) / 2).sum()

    def statistic(ranks: Any) -> float:
        means = np.array([part.mean() for part in np.split(ranks, np.cumsum(sizes)[:-1])])
        return float((size - 1) * (sizes * np.abs(means - middle)).sum() / whole + RNG.laplace(0, 8 / epsilon))

    seen = statistic(stats.rankdata(np.concatenate(groups)))
    null = [statistic(RNG.permutation(size) + 1.0) for _ in range(DRAWS)]
    return float((1 + np.count_nonzero(np.array(null) >= seen)) / (DRAWS + 1))


def p_kruskal(groups: list[Any], epsilon: float) -> float:
    shares = released(scores_of(groups, epsilon), 1.25 / epsilon)
    return EqualMeans(_groups_of(shares, len(groups)), DRAWS).tested[1]


def rank_tables() -> None:
    print("\n### Mann–Whitney: level at 5% (400 runs; 30 where n·ε is at most 100)\n")
    print("| values | rows | ε = 0.2 | 1 | 5 |\n|---|---|---|---|---|")
    for name, law in (("normal", even), ("exponential", skewed_values)):
        for size in (60, 1000):
            found = []
            for epsilon in (0.2, 1, 5):
                some = 400 if size * epsilon > 100 else 30
                p = [p_mann_whitney([law(size // 2), law(size // 2)], epsilon) for _ in range(some)]
                found.append(np.mean(np.array(p) <= 0.05))
            print(f"| {name} | {size} | " + " | ".join(f"{100 * one:.1f}%" for one in found) + " |", flush=True)
    print("\n### Mann–Whitney: power at 5%, ε = 1, normal values 0.3 deviations apart\n")
    print("| rows | discreet | Couch et al. | scipy, not private |\n|---|---|---|---|")
    for size in (300, 600, 1200, 2400):
        hits = np.zeros(3)
        for _ in range(100):
            groups = [even(size // 2), even(size // 2, 0.045)]
            p = [p_mann_whitney(groups, 1), p_couch_mann_whitney(groups, 1), stats.mannwhitneyu(*groups).pvalue]
            hits += np.array(p) <= 0.05
        print(f"| {size} | " + " | ".join(f"{one / 100:.2f}" for one in hits) + " |", flush=True)
    print("\n### Kruskal–Wallis of three groups: power at 5%, ε = 1, medians 0.2 deviations apart\n")
    print("| rows | discreet | Couch et al. | scipy, not private |\n|---|---|---|---|")
    for size in (300, 900, 1800):
        hits = np.zeros(3)
        for _ in range(100):
            groups = [even(size // 3, shift) for shift in (0.0, 0.03, 0.06)]
            p = [p_kruskal(groups, 1), p_couch_kruskal(groups, 1), stats.kruskal(*groups).pvalue]
            hits += np.array(p) <= 0.05
        print(f"| {size} | " + " | ".join(f"{one / 100:.2f}" for one in hits) + " |", flush=True)


# --- time -------------------------------------------------------------------------------------------------------


def times(rows: int = 10**6) -> None:
    import pyarrow as pa

    cities = ["Acre", "Bled", "Cork", "Doha"]
    data = pa.table({
        "city": RNG.choice(cities, rows), "diagnosis": RNG.choice(["flu", "cold", "other"], rows),
        "treated": RNG.random(rows) < 0.5, "cost": RNG.gamma(2, 100, rows), "after": RNG.gamma(2, 100, rows),
    })  # fmt: skip
    path = Path(tempfile.mkdtemp()) / "bench.ledger"
    tests = dp.table(data, ledger=dp.Ledger.open(path, limit=dp.Pure(epsilon=1000), protects=dp.row())).stats
    by, ends = {"city": cities}, (0, 1000)
    calls = {
        'chi2("city", "diagnosis")': lambda: tests.chi2("city", "diagnosis", epsilon=1),
        "the same with choices": lambda: tests.chi2(
            "city", "diagnosis", choices={"city": cities, "diagnosis": ["flu", "cold", "other"]}, epsilon=1
        ),
        "chi2 of expected shares": lambda: tests.chi2("city", expected=dict.fromkeys(cities, 0.25), epsilon=1),
        "anova by city": lambda: tests.anova("cost", by=by, between=ends, epsilon=1),
        "mann_whitney by treated": lambda: tests.mann_whitney("cost", by="treated", between=ends, epsilon=1),
        "kruskal by city": lambda: tests.kruskal("cost", by=by, between=ends, epsilon=1),
        "wilcoxon of two columns": lambda: tests.wilcoxon("cost", "after", between=ends, epsilon=1),
    }
    print(f"\n### Time of one release, {rows:,} rows in memory (the best of three)\n\n| test | seconds |\n|---|---|")
    for name, call in calls.items():
        best = min(_timed(call) for _ in range(3))
        print(f"| {name} | {best:.2f} |", flush=True)


def _timed(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    print("## Tests from counts, sums and ranks\n")
    print((__doc__ or "").split("\n\n", 1)[1])
    chi2_tables()
    anova_tables()
    rank_tables()
    times()
