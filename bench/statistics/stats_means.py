"""Means, differences and variances for the population: coverage by simulation, widths and times.

`python -m bench.statistics.stats_means` simulates 10^4 releases for every cell of its tables. `--runs 1000` is faster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import discreet as dp
from bench.report import line, notes, section, table, verdict
from discreet.sql.pricing import automatic_bounds
from discreet.sql.schema import Column
from discreet.stats.inference.means import DifferenceOf, Extended, MeanOf
from discreet.stats.inference.noisy_shares import Noise, NoisyShares
from discreet.stats.inference.ratios import VarianceOf
from discreet.stats.samples import divisions

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
RANGE = ((0, 0), (0, 1), (1, 1))
FOUND = (*RANGE, (2, 2), (3, 3))
EPSILONS = (0.05, 0.2, 1.0, 5.0)
ROWS = (50, 500, 5000)
ABOUT = """How often the 95% interval for the population contains its value, in simulated releases: samples are drawn
from the family, divided and noised as the product does it, and a value is in the interval if its hypothesis is not
rejected. Ranges are declared as 0 to 1, and each cell shows the lowest coverage of all families (even, a skewed beta,
5% of ones, a lognormal clipped at 20 times its median, Student's t₃ clipped at ±10;
differences: two of them)."""


def lognormal(draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.minimum(draw.lognormal(0, 1, shape) / 20, 1.0)


FAMILIES: dict[str, Draw] = {
    "even": lambda draw, shape: draw.uniform(0, 1, shape),
    "skewed": lambda draw, shape: draw.beta(0.5, 5, shape),
    "rare": lambda draw, shape: (draw.random(shape) < 0.05).astype(np.float64),
    "lognormal": lognormal,
    "heavy tails": lambda draw, shape: 0.5 + np.clip(draw.standard_t(3, shape) / 20, -0.5, 0.5),
}
LIMIT = 2.0**20
OPEN: dict[str, tuple[Draw, float | None]] = {
    "normal(100, 20)": (lambda draw, shape: draw.normal(100, 20, shape), 100.0),
    "exponential": (lambda draw, shape: draw.exponential(50, shape), 50.0),
    "gamma(2)": (lambda draw, shape: draw.gamma(2, 50, shape), 100.0),
    "lognormal(3, 1)": (lambda draw, shape: draw.lognormal(3, 1, shape), float(np.exp(3.5))),
    "Student t₃": (lambda draw, shape: 100 + 20 * draw.standard_t(3, shape), 100.0),
    "Pareto(2.5)": (lambda draw, shape: 10 * (1 + draw.pareto(2.5, shape)), 10 * 2.5 / 1.5),
    "Pareto(1.1), which breaks the assumption": (lambda draw, shape: 10 * (1 + draw.pareto(1.1, shape)), 110.0),
}


def truth(values: Draw) -> tuple[float, float]:
    """Mean and variance of a family, from 2·10^7 draws: an error of a hundredth of the smallest interval here."""
    draw = np.random.default_rng(99)
    sums = np.zeros(2)
    for _ in range(20):
        some = values(draw, (1_000_000,))
        sums += (some.mean(), (some**2).mean())
    mean, square = sums / 20
    return float(mean), float(square - mean**2)


def products(values: Floats) -> Floats:
    return np.stack([((1 - values) ** 2).sum(-1), (2 * values * (1 - values)).sum(-1), (values**2).sum(-1)], -1)


def sums_of(values: Draw, draw: np.random.Generator, runs: int, rows: int, of: Callable[[Floats], Floats]) -> Floats:
    """Exact numbers of many samples, a few samples at a time."""
    some = max(1, 2_000_000 // rows)
    return np.concatenate([of(values(draw, (min(some, runs - at), rows))) for at in range(0, runs, some)])


def noisy(exact: Floats, pairs: Any, places: int, epsilon: float, draw: np.random.Generator) -> NoisyShares:
    drawn = exact + draw.laplace(scale=1 / epsilon, size=exact.shape)
    return NoisyShares(drawn, pairs, places, Noise(laplace=1 / epsilon))


# --- coverage with declared ranges -------------------------------------------------------------------------------


def mean_covered(values: Draw, known: tuple[float, float], rows: int, epsilon: float, runs: int) -> float:
    draw = np.random.default_rng(1)
    shares = noisy(sums_of(values, draw, runs, rows, products), RANGE, 2, epsilon, draw)
    found = MeanOf(shares, np.ones(2), np.array([0.0, 1.0]))
    return float((found.p_of_mean(np.full(runs, known[0])) > 0.05).mean())


def gap_covered(values: Draw, known: tuple[float, float], rows: int, epsilon: float, runs: int) -> float:
    """Three quarters of the rows in one group, and the rest in the other."""
    draw = np.random.default_rng(2)
    sizes = rows - rows // 4, rows // 4
    exact = np.concatenate([sums_of(values, draw, runs, size, products) for size in sizes], -1)
    shares = noisy(exact, (*RANGE, (2, 2), (2, 3), (3, 3)), 4, epsilon, draw)
    part = np.array([0.0, 1.0, 0.0, 1.0])
    groups = [MeanOf(shares, np.array(member), part) for member in ([1.0, 1, 0, 0], [0.0, 0, 1, 1])]
    return float((DifferenceOf(*groups).p_of_gap(np.zeros(runs)) > 0.05).mean())


def people_covered(values: Draw, known: tuple[float, float], rows: int, epsilon: float, runs: int) -> float:
    """People with one to five rows, which are nearly the same: a fifth of the rows is a person's."""
    draw, people = np.random.default_rng(3), max(rows // 3, 1)
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2))

    def of(own: Floats) -> Floats:
        count = draw.integers(1, 6, own.shape) / 5
        high, low = own * count, (1 - own) * count
        rest = 1 - count
        each = [low**2, 2 * low * high, 2 * low * rest, high**2, 2 * high * rest]
        return np.stack([one.sum(-1) for one in each], -1)

    shares = noisy(sums_of(values, draw, runs, people, of), pairs, 3, epsilon, draw)
    found = MeanOf(shares, np.array([1.0, 1, 0]), np.array([0.0, 1, 0]))
    return float((found.p_of_mean(np.full(runs, known[0])) > 0.05).mean())


def variance_covered(values: Draw, known: tuple[float, float], rows: int, epsilon: float, runs: int) -> float:
    draw, pairs = np.random.default_rng(4), ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))

    def of(some: Floats) -> Floats:
        three = ((1 - some) ** 2, 2 * some * (1 - some), some**2)
        return np.stack([(1 + (v != w)) * (three[v] * three[w]).sum(-1) for v, w in pairs], -1)

    shares = noisy(sums_of(values, draw, runs, rows, of), pairs, 3, epsilon, draw)
    found = VarianceOf(shares, np.ones(3), np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0, 1.0]), 1.0)
    return float((found.p_of_variance(np.full(runs, known[1])) > 0.05).mean())


KINDS = {
    "mean": mean_covered,
    "difference of two means": gap_covered,
    "mean, people with 1 to 5 rows": people_covered,
    "variance": variance_covered,
}


UNSURE = 200
"""Below this number of rows times ε, noise may hide the size of a group. Then each mean is tested by itself, which
takes long to simulate."""
GAPS = ["skewed", "lognormal"]
"""The families of which two groups are compared."""


def cell(kind: str, name: str, known: tuple[float, float], rows: int, epsilon: float, runs: int) -> float:
    """The coverage of one family, in a process of its own."""
    return KINDS[kind](FAMILIES[name], known, rows, epsilon, runs)


def coverages(runs: int, goals: dict[str, bool]) -> None:
    table("95% intervals", "rows", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    known = {name: truth(values) for name, values in FAMILIES.items()}
    least = 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
    worst = 1.0
    with ProcessPoolExecutor(2) as pool:
        for kind in KINDS:
            names = GAPS if "difference" in kind else list(FAMILIES)
            for rows in ROWS:
                cells = []
                for epsilon in EPSILONS:
                    few = "difference" in kind and rows * epsilon < UNSURE
                    times = runs // 20 if few else runs
                    asked = [pool.submit(cell, kind, name, known[name], rows, epsilon, times) for name in names]
                    found = {name: one.result() for name, one in zip(names, asked, strict=True)}
                    lowest = min(found, key=lambda name: found[name])
                    cells.append(f"{100 * found[lowest]:.1f}% ({lowest}){'†' if few else ''}")
                    worst = min(worst, found[lowest] + (3 * np.sqrt(0.05 * 0.95 / times) - 0.95 + least if few else 0))
                line(kind, f"{rows:,}", *cells)
    goals[f"95% intervals cover at least {100 * least:.2f}% in every cell (lowest: {100 * worst:.1f}%)"] = (
        worst >= least
    )


# --- coverage with ranges that are found ---------------------------------------------------------------------------


def found_covered(values: Draw, mean: float, rows: int, epsilon: float, runs: int) -> tuple[float, float]:
    """Coverage of the mean if the range is found for a tenth of ε, and the median width of the interval."""
    draw, column = np.random.default_rng(5), Column(name="x", type="number")
    bins = automatic_bounds._bins(column)
    first, last = automatic_bounds.OCTAVES["number"]
    scale = 10 / epsilon
    least = float(dp.Laplace(scale=scale, step=1).error(automatic_bounds.SURE, values=len(bins)))
    covered, widths = 0, []
    for run in range(runs):
        some = values(draw, (rows,))
        octave = np.clip(np.floor(np.log2(np.maximum(np.abs(some), 2.0**first))) - first + 1, 0, last - first)
        counts = np.bincount((np.sign(some) * octave).astype(np.int64) - bins[0], minlength=len(bins))
        noise = draw.geometric(1 - np.exp(-1 / scale), (2, len(bins)))
        seen = [place for place, count in zip(bins, counts + noise[0] - noise[1], strict=True) if count > least]
        low, high = automatic_bounds._ends(column, seen)
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        part = (np.clip(some, low, high) - low) / (high - low)
        outside = (some < low) | (some > high)
        exact = np.append(products(part[~outside]), [(some < low).sum(), (some > high).sum()])
        shares = noisy(exact, FOUND, 4, 0.9 * epsilon, draw)
        inner = MeanOf(shares, np.ones(4), np.array([0.0, 1.0, 0.0, 1.0]), (low, high))
        hidden = divisions._hidden(inner, divisions.Spot(0, 1, 2, 3), 4)
        made = Extended(inner, hidden)
        covered += made.p_value(mean, "two-sided") > 0.05
        if run < 40:
            ends = made.interval(0.95)
            widths.append((ends[1] - ends[0]) / 2)
    return covered / runs, float(np.median(widths))


def found_ranges(runs: int, goals: dict[str, bool]) -> None:
    rows, epsilon = 5000, 1.0
    print(f"\nThe range is found privately for a tenth of ε; {rows:,} rows, ε = {epsilon:g}, {runs:,} releases.\n")
    table("family", "coverage of the mean", "± (median)", "± without privacy")
    least, kept = 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs), True
    for name, (values, mean) in OPEN.items():
        covered, half = found_covered(values, float(mean or 0), rows, epsilon, runs)
        plain = 1.96 * np.std(values(np.random.default_rng(0), (rows,))) / np.sqrt(rows)
        line(name, f"{100 * covered:.1f}%", f"{half:.3g}", f"{plain:.3g}")
        kept &= covered >= least or "breaks" in name
    goals["with a range that is found, the families of the list are covered"] = kept


# --- widths and times ----------------------------------------------------------------------------------------------


def widths() -> None:
    print("\nHalf the width of a 95% interval for a mean, next to the t interval without privacy, on values spread "
          "evenly over a declared range; ± in parts of the range.\n")  # fmt: skip
    table("rows", "without privacy", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    draw = np.random.default_rng(6)
    for rows in (100, 1000, 10_000, 100_000, 1_000_000):
        values = draw.uniform(0, 1, rows)
        plain = float(stats.t.ppf(0.975, rows - 1) * values.std(ddof=1) / np.sqrt(rows))
        cells = []
        for epsilon in EPSILONS:
            halves = []
            for _ in range(15):
                found = MeanOf(noisy(products(values), RANGE, 2, epsilon, draw), np.ones(2), np.array([0.0, 1.0]))
                low, high = found.interval(0.95)
                halves.append((high - low) / 2)
            cells.append(f"{np.median(halves):.2g} ({np.median(halves) / plain:.2f} ×)")
        line(f"{rows:,}", f"{plain:.2g}", *cells)


def times(goals: dict[str, bool]) -> None:
    rows, draw = 1_000_000, np.random.default_rng(7)
    cost = draw.gamma(2, 50, rows)
    columns = {"cost": cost, "after": cost + 1, "treated": draw.random(rows) < 0.4}
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=100))
    known = dp.table(columns, ledger=ledger).stats
    given: dict[str, Any] = {"between": (0, 500), "epsilon": 0.5}
    calls = {
        "mean": lambda: known.mean("cost", **given),
        "proportion": lambda: known.proportion("treated", epsilon=0.5),
        "compare": lambda: known.compare("cost", by="treated", **given),
        "paired": lambda: known.paired("cost", "after", **given),
        "ratio": lambda: known.ratio("cost", "after", epsilon=0.5, between={"cost": (0, 500), "after": (0, 500)}),
        "variance": lambda: known.variance("cost", **given),
    }
    print(f"\nSeconds for a release with its interval, {rows:,} rows in memory.\n")
    table("call", "seconds")
    slowest = 0.0
    for name, call in calls.items():
        start = time.perf_counter()
        call().interval(0.95)
        spent = time.perf_counter() - start
        slowest = max(slowest, spent)
        line(name, f"{spent:.2f}")
    goals[f"at most 1 s for 10⁶ rows (slowest: {slowest:.2f} s)"] = slowest <= 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    goals: dict[str, bool] = {}
    section("Means for the population", "statistics.stats_means", ABOUT)
    coverages(runs, goals)
    found_ranges(runs, goals)
    widths()
    times(goals)
    notes(
        f"Every coverage is from {runs:,} releases: by chance it may be {300 * np.sqrt(0.05 * 0.95 / runs):.2f} points "
        "lower.",
        f"†: {runs // 20:,} releases, because each takes long to simulate.",
        "Where noise dominates, or a sample is small for its range, intervals cover more than 95%: the degrees of "
        "freedom are the fewest that the range allows.",
    )
    verdict(goals)


if __name__ == "__main__":
    main()
