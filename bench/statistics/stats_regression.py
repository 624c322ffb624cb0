"""Regression tables for the population: how often intervals cover, how wide they are next to statsmodels, and time.

Coverage is that of 10,000 simulated samples and releases, with the law that is drawn. `--peer` is where statsmodels
is, a folder, if it is not installed.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

import discreet as dp
from bench.report import machine, section
from tests.stats.regression import regression_simulation as simulation

RUNS = 10_000
ABOUT = """intervals of `table.stats.ols` for the population. Residuals have a deviation of a twentieth of the range; an
interval is infinite where the noise is too large."""
COLUMNS = [f"x{number}" for number in range(1, 6)]
FORMULA = f"y ~ {' + '.join(COLUMNS)}"
RANGES = dict.fromkeys([*COLUMNS, "y"], (-1, 1))


def coverage(kind: str, rows: int, epsilon: float, runs: int, robust: bool) -> str:
    """One line: how often the 95% interval of a slope and of a condition's coefficient cover, and how often they are
    finite.
    """
    held, known, done = np.zeros(2), 0.0, 0
    some = max(1, min(runs, 4_000_000 // rows))
    while done < runs:
        model = simulation.simulated(kind, rows, epsilon, runs=some, seed=done + rows, robust=robust)
        held += [(model.p_of(place, simulation.SLOPES[place], 0.05) > 0.05).sum() for place in (1, 3)]
        known, done = known + float(model.is_known.sum()), done + some
    name = f"{kind}, HC" if robust else kind
    parts = [f"{rows:,}", f"{epsilon:g}", f"{done:,}", *(f"{100 * one / done:.1f}%" for one in held)]
    return f"| {name} | {' | '.join(parts)} | {100 * known / done:.0f}% |"


def table_of(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Five columns of numbers and an outcome."""
    data = {name: rng.uniform(-1, 1, rows) for name in COLUMNS}
    line = sum(0.1 * column for column in data.values())
    return pd.DataFrame(data | {"y": np.clip(line + rng.normal(0, 0.2, rows), -1, 1)})


def opened(frame: pd.DataFrame) -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=10**4, delta=0.1))
    return dp.table(frame, ledger=ledger)


def widths(rows: int, runs: int, peer: Any) -> list[str]:
    """The widths of intervals next to those of statsmodels on the same rows, which are not private."""
    rng = np.random.default_rng(rows)
    ways: dict[str, dict[str, Any]] = {
        "ε = 1": {"epsilon": 1},
        "ε = 1, δ = 1e-6": {"epsilon": 1, "delta": 1e-6},
        "ε = 1, HC": {"epsilon": 1, "robust": "HC"},
    }
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    held: dict[str, list[bool]] = {way: [] for way in ways}
    for _ in range(runs):
        frame = table_of(rows, rng)
        for way, given in ways.items():
            found = opened(frame).stats.ols(FORMULA, between=RANGES, **given).conf_int()
            plain = peer.OLS(frame["y"], np.column_stack([np.ones(rows), frame[COLUMNS]])).fit(
                cov_type="HC0" if "robust" in given else "nonrobust"
            )
            known = np.asarray(plain.conf_int())[1:]
            own = np.array([found[name] for name in COLUMNS])
            ratios[way] += list((own[:, 1] - own[:, 0]) / (known[:, 1] - known[:, 0]))
            held[way] += list((own[:, 0] < 0.1) & (own[:, 1] > 0.1))
    return [
        f"| {way} | {rows:,} | {np.mean(ratios[way]):.2f} × | {100 * np.mean(held[way]):.0f}% of {len(held[way])} |"
        for way in ways
    ]


def times(peer: Any) -> list[str]:
    """Seconds for a million rows, with the summary."""
    frame = table_of(10**6, np.random.default_rng(0))
    start = time.perf_counter()
    peer.OLS(frame["y"], np.column_stack([np.ones(10**6), frame[COLUMNS]])).fit().summary()
    lines = [f"| statsmodels, not private | {time.perf_counter() - start:.2f} |"]
    for way, given in {"pure": {}, "with δ": {"delta": 1e-6}, "HC": {"robust": "HC"}}.items():
        table = opened(frame)
        start = time.perf_counter()
        table.stats.ols(FORMULA, between=RANGES, epsilon=1, **given).summary()
        lines.append(f"| discreet, {way} | {time.perf_counter() - start:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--widths", type=int, default=12)
    parser.add_argument("--peer")
    given = parser.parse_args()
    if given.peer:
        sys.path.append(given.peer)
    import statsmodels.regression.linear_model as peer

    section("Regression tables", "statistics.stats_regression", f"{ABOUT} {machine()}.")
    print("Coverage of 95% intervals in the population (a slope, and a condition's coefficient).\n")
    print("| rows | n | ε | runs | slope | condition | finite |\n|---|---:|---:|---:|---:|---:|---:|")
    for kind in ("even", "skewed", "narrow", "heavy"):
        for rows, epsilon in ((500, 0.05), (500, 5), (2000, 1)):
            print(coverage(kind, rows, epsilon, given.runs, False), flush=True)
    for kind in ("heteroscedastic", "skewed"):
        print(coverage(kind, 2000, 5, given.runs, True), flush=True)
    few = max(100, given.runs // 10)
    print(coverage("even", 10_000, 0.2, few, False), flush=True)
    print(coverage("heteroscedastic", 10_000, 1, few, True), flush=True)
    print("\nWidth of intervals of five slopes, next to statsmodels on the same rows.\n")
    print("| noise | n | width | covered |\n|---|---:|---:|---:|")
    for rows in (10**4, 10**5):
        print(*widths(rows, given.widths, peer), sep="\n", flush=True)
    print("\nSeconds for a million rows and six coefficients, with the summary.\n")
    print("| | seconds |\n|---|---:|")
    print(*times(peer), sep="\n")


if __name__ == "__main__":
    main()
