"""Proportions: power next to the best private test and to no privacy, rows for 80% power, and levels by simulation.

`python -m bench.statistics.stats_proportions` prints all tables. `--runs 1000` simulates less. Nothing is read but what
is drawn here, from seeded generators.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import stats

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict
from discreet.stats.inference.always_valid import Mixture
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.inference.proportions import SPENT, ShareOfKnown, SmoothedNoise, rejects_each
from discreet.stats.inference.two_proportions import Counts, Relation, ShareGap, largest_tails

LEVEL = 0.05
ABOUT = """One proportion with a public number of rows, against the uniformly most powerful private test of Awan and
Slavković (2018), computed here from its formula, and against the binomial test without privacy, randomized to use its
whole level. Then the rows that private tests need, and how often tests reject a true hypothesis at the level 0.05."""


def best_power(n: int, null: float, other: float, epsilon: float) -> float:
    """The most powerful private test: φ(x) = F(x − m), with the Tulap distribution function F and m for the level."""
    b, x = np.exp(-epsilon), np.arange(n + 1)

    def tulap(at: np.ndarray) -> np.ndarray:
        nearest = np.floor(at + 0.5)
        nearest = np.clip(nearest, -600 / epsilon, 600 / epsilon)
        left = b ** (-nearest) / (1 + b) * (b + (at - nearest + 0.5) * (1 - b))
        right = 1 - b**nearest / (1 + b) * (b + (nearest - at + 0.5) * (1 - b))
        return np.clip(np.where(at <= 0, left, right), 0.0, 1.0)

    low, high = -50 / epsilon, n + 50 / epsilon
    for _ in range(80):
        middle = (low + high) / 2
        over = (stats.binom.pmf(x, n, null) * tulap(x - middle)).sum() > LEVEL
        low, high = (middle, high) if over else (low, middle)
    return float((stats.binom.pmf(x, n, other) * tulap(x - high)).sum())


def plain_power(n: int, null: float, other: float) -> float:
    """The binomial test, randomized at its edge."""
    edge = int(stats.binom.isf(LEVEL, n, null))
    part = (LEVEL - stats.binom.sf(edge, n, null)) / stats.binom.pmf(edge, n, null)
    return float(stats.binom.sf(edge, n, other) + part * stats.binom.pmf(edge, n, other))


def powers() -> float:
    """The table of powers. Returns the largest difference from the best."""
    table("rows", "p₀ → p₁", "ε", "discreet", "most powerful private test", "without privacy")
    worst = 0.0
    for n, null, other in ((30, 0.9, 0.99), (100, 0.5, 0.6), (100, 0.05, 0.12), (1000, 0.5, 0.54)):
        for epsilon in (0.05, 0.1, 0.3, 1.0, 5.0):
            ours = dp.stats.power(
                "proportion", n=n, effect=(null, other), epsilon=epsilon, alternative="greater", neighbors="replace"
            )
            best = best_power(n, null, other, epsilon)
            worst = max(worst, abs(ours - best))
            line(
                f"{n:,}",
                f"{null} → {other}",
                epsilon,
                f"{ours:.5f}",
                f"{best:.5f}",
                f"{plain_power(n, null, other):.5f}",
            )
    return worst


def sizes() -> float:
    """The table of rows. Returns the ratio of two means to no privacy."""
    print("\n### Rows for a power of 80% at the level 0.05, two-sided\n")
    table("test", "effect", "ε", "rows", "without privacy", "ratio")
    ratio = 0.0
    for test, effect in (
        ("proportion", (0.5, 0.6)),
        ("two-proportions", (0.2, 0.25)),
        ("mean", 0.2),
        ("two-means", 0.2),
        ("chi2", 0.2),
    ):
        for epsilon in (0.1, 1.0):
            found = dp.stats.sample_size(test, effect=effect, epsilon=epsilon)
            over = found / found.without_privacy
            if (test, epsilon) == ("two-means", 1.0):
                ratio = over
            line(test, effect, epsilon, f"{found.total:,}", f"{found.without_privacy:,}", f"{over:.3f}")
    return ratio


def levels(runs: int) -> float:
    """The table of levels. Returns the largest number of standard errors above 0.05."""
    rng = np.random.default_rng(2026)
    print(f"\n### How often a true hypothesis is rejected at 0.05, {runs:,} runs each\n")
    table("test", "rows", "p", "ε", "rejected")
    worst = -9.0

    def shown(test: str, rows: str, share: float, epsilon: float, rejected: float) -> None:
        nonlocal worst
        worst = max(worst, (rejected - LEVEL) / np.sqrt(LEVEL * (1 - LEVEL) / runs))
        line(test, rows, share, epsilon, f"{rejected:.4f}")

    for epsilon in (0.05, 0.3, 1.0, 5.0):
        noise, law = Noise(laplace=1 / epsilon), SmoothedNoise(laplace=1 / epsilon)
        for n, share in ((50, 0.02), (50, 0.5), (500, 0.1)):
            x = rng.binomial(n, share, runs)
            whole = rng.geometric(-np.expm1(-epsilon), runs) - rng.geometric(-np.expm1(-epsilon), runs)
            z = x + whole + rng.random(runs) - 0.5
            ends = ends_of(n, share, law)
            shown("one proportion, n public", f"{n}", share, epsilon, float(((z < ends[0]) | (z > ends[1])).mean()))
            yes, no = x + rng.laplace(0, 1 / epsilon, runs), n - x + rng.laplace(0, 1 / epsilon, runs)
            spent = {"miss": (1 - SPENT) * LEVEL / 2, "spent": SPENT * LEVEL}
            found = rejects_each(yes, no, share, noise, **spent) | rejects_each(no, yes, 1 - share, noise, **spent)
            shown("one proportion, n private", f"{n}", share, epsilon, float(found.mean()))
    for sizes_, share, epsilon in (
        ((150, 150), 0.3, 1.0),
        ((100, 300), 0.05, 2.0),
        ((1000, 1000), 0.1, 0.5),
    ):
        rejected = 0
        for _ in range(runs):
            x = [rng.binomial(size, share) for size in sizes_]
            noise4 = rng.laplace(0, 1 / epsilon, 4)
            counts = Counts(
                (sizes_[0] - x[0] + noise4[0], sizes_[1] - x[1] + noise4[1]),
                (x[0] + noise4[2], x[1] + noise4[3]),
                Noise(laplace=1 / epsilon),
            )
            rejected += 2 * min(largest_tails(counts, Relation(1.0, 0.0), SPENT * LEVEL)) <= (1 - SPENT) * LEVEL
        shown("two proportions", f"{sizes_[0]} + {sizes_[1]}", share, epsilon, rejected / runs)
    return worst


def ends_of(n: int, share: float, law: SmoothedNoise) -> tuple[float, float]:
    """The noisy counts between which the two-sided test keeps this proportion, by halving on its p-value."""
    far = law.quantile(1e-4)
    ends = []
    for outside in (-far, n + far):
        inside, out = n * share, outside
        for _ in range(50):
            middle = (inside + out) / 2
            kept = ShareOfKnown(middle, n, law).p_value(share, "two-sided") > LEVEL
            inside, out = (middle, out) if kept else (inside, middle)
        ends.append(out)
    return ends[0], ends[1]


def sequential_levels(runs: int, looks: int = 1000) -> float:
    """The table of tests that are looked at 1,000 times. Returns the largest share of wrong rejections."""
    rng = np.random.default_rng(2027)
    print(
        f"\n### A sequential test, looked at {looks:,} times: how often any look rejects at 0.05, {runs:,} runs each\n"
    )
    table(
        "rows per look and group",
        "p of both",
        "ε",
        "rejected at any look, at most",
        "a fixed test at each look, without correction",
    )
    worst = 0.0
    for rows, share, epsilon in ((5, 0.2, 1.0), (50, 0.5, 0.3)):
        mixture, number = Mixture(laplace=1 / epsilon), np.arange(1, looks + 1)
        wrong = naive = 0
        for _ in range(runs):
            yes = rng.binomial(rows, share, (2, looks))
            counts = np.stack([rows - yes[0], yes[0], rows - yes[1], yes[1]], -1)
            keep = -np.expm1(-epsilon)
            counts = np.cumsum(counts + rng.geometric(keep, counts.shape) - rng.geometric(keep, counts.shape), 0)
            against = mixture.log_evidence(counts, number, share, share)
            # evidence against the hypothesis is at most that against the true proportions: no look rejects below it
            wrong += bool((against >= np.log(1 / LEVEL)).any())
            difference = (counts[:, 3] - counts[:, 1]) / (rows * number)
            spread = np.sqrt(2 * share * (1 - share) / (rows * number) + 4 / epsilon**2 / (rows**2 * number))
            naive += bool((np.abs(difference[19:]) > 1.96 * spread[19:]).any())
        worst = max(worst, wrong / runs)
        line(rows, share, epsilon, f"{wrong / runs:.4f}", f"{naive / runs:.3f}")
    return worst


def times() -> float:
    """The table of times. Returns the longest."""
    print("\n### Time for 10⁶ rows, after the release\n")
    table("what", "seconds")
    longest = 0.0
    many = ShareOfKnown(300_000.2, 10**6, SmoothedNoise(laplace=1.0))
    counts = Counts((400_000.0, 350_000.0), (100_000.3, 150_000.1), Noise(laplace=1.0))
    gap = ShareGap(counts, None)
    for name, work in (
        ("interval of a proportion", lambda: many.interval(0.95)),
        ("p-value of two proportions", lambda: gap.p_value(0.1, "two-sided")),
        ("interval of their difference", lambda: gap.interval(0.95)),
    ):
        start = time.perf_counter()
        work()
        spent = time.perf_counter() - start
        longest = max(longest, spent)
        line(name, f"{spent:.2f}")
    return longest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    section("Statistics: proportions", "statistics.stats_proportions", ABOUT)
    worst = powers()
    ratio = sizes()
    above = levels(runs)
    peeked = sequential_levels(runs)
    longest = times()
    notes(
        f"The largest difference from the most powerful private test is {worst:.1e}.",
        "For means, a range of ±3 deviations is declared.",
        machine(),
    )
    verdict(
        {
            "power equals that of the most powerful private test": worst < 1e-6,
            f"rows for two means at ε = 1: {ratio:.3f} of the number without privacy, goal 1.15": ratio <= 1.15,
            "no level above 0.05 by more than 4 standard errors": above <= 4,
            f"1,000 looks reject a true hypothesis in {peeked:.3f} of all runs, goal 0.05": peeked <= 0.05,
            f"each within 1 second at 10⁶ rows: the longest took {longest:.2f}": longest <= 1,
        }
    )
