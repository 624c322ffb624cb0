"""A publication of births-like microdata, judged by eight criteria: `python -m bench.publishing.publish`.

The rows are made up, with the columns and the number of rows of Israel's release of live births of 2014 (Hod and
Canetti 2024, "Differentially private release of Israel's National Registry of Live Births", arXiv 2405.00267), and with
dependence between age, parity, weeks of gestation and weight. The settings were chosen on rows from other seeds.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict

ROWS, SEED, TUNED_ON, EPSILON, DELTA, RUNS = 165_915, 2014, (1, 2), 2.0, 1e-6, 3
GOAL, PUBLISHED, PUBLISHED_EPSILON = 0.0022, 0.0044, 9.98
CHOICES: dict[str, list[Any]] = {
    "month": list(range(1, 13)),
    "age": [17, 22, 27, 32, 37, 42, 47],
    "parity": list(range(1, 8)),
    "gestation": [26, 31, 33, 35, 36, 37, 38, 39, 40, 41],
    "sex": ["f", "m"],
    "weight": [1000 + 400 * band for band in range(10)],
}
"""The middle of each band. The lowest and highest bands are open."""


def births(rows: int, seed: int) -> pa.Table:
    """Made-up births: older mothers have more children, early and first children weigh less, boys weigh more."""
    rng = np.random.default_rng(seed)
    shares = np.array([83, 76, 83, 80, 83, 82, 88, 90, 88, 86, 80, 81])
    month = rng.choice(12, rows, p=shares / shares.sum())
    years = np.clip(rng.gamma(28, 30.3 / 28, rows) + rng.normal(0, 2, rows), 15, 49.9)
    age = np.clip(((years - 15) // 5).astype(int), 0, 6)
    before = rng.poisson(np.clip((years - 20) * 0.155, 0.05, None) * rng.gamma(2.2, 1 / 2.2, rows))
    parity = np.minimum(before + 1, np.where(age == 0, 3, 7))
    girl = rng.random(rows) < 0.487
    early = np.where(rng.random(rows) < 0.06, rng.gamma(1.7, 2.0, rows), 0)
    weeks = np.clip(np.round(39.6 - early + rng.normal(0, 1.25, rows) - 0.02 * (years - 30)), 22, 43)
    gestation = np.digitize(weeks, [29, 33, 35, 36, 37, 38, 39, 40, 41])
    grams = 3270 + 165 * np.clip(weeks - 39.3, -17, 3) - 115 * girl + 40 * np.minimum(parity - 1, 3)
    grams = grams + np.clip(rng.normal(0, 390, rows), -1100, 1100)
    grams = np.where(weeks < 33, np.minimum(grams, 2790), np.where(weeks < 36, np.minimum(grams, 3590), grams))
    grams = np.where(weeks >= 39, np.maximum(grams, 1610), grams)
    weight = np.clip(((grams - 800) // 400).astype(int), 0, 9)
    places = (month, age, parity - 1, gestation, np.where(girl, 0, 1), weight)
    return pa.table({name: np.array(values)[at] for (name, values), at in zip(CHOICES.items(), places, strict=True)})


CRITERIA: list[dict[str, Any]] = [
    {"kind": "marginals", "ways": 1, "at_most": GOAL},
    {"kind": "marginals", "ways": 2, "at_most": GOAL},
    {"kind": "counts", "at_least": 1000, "at_most": 0.2},
    {"kind": "means", "of": "parity", "by": "age", "at_least": 5000, "at_most": 0.25},
    {"kind": "means", "of": "weight", "by": "gestation", "at_least": 5000, "at_most": 150},
    {"kind": "slopes", "of": "weight", "on": ["gestation", "age"], "at_most": 10},
    {
        "kind": "matched",
        "columns": ["age", "parity", "gestation", "sex", "weight"],
        "join": {"age": 2, "parity": 2, "gestation": 2, "weight": 2},
        "at_most": 0.05,
    },
]
NEVER: list[dict[str, Any]] = [
    {"gestation": [26, 31], "weight": [3000, 3400, 3800, 4200, 4600]},
    {"gestation": [33, 35], "weight": [3800, 4200, 4600]},
    {"gestation": [39, 40, 41], "weight": [1000, 1400]},
    {"age": [17], "parity": [4, 5, 6, 7]},
]
ALL_PAIRS = {"rounds": 15, "cells": 2**17}
PLANS: dict[str, dict[str, Any]] = {
    "one run": {"candidates": [ALL_PAIRS]},
    "best of 3 tries on average": {"candidates": [ALL_PAIRS, {"rounds": 12, "cells": 2**14}], "tries": 3},
}


def published(folder: Path, settings: dict[str, Any], name: str) -> tuple[Any, Any, bool, float]:
    """What a plan published, its facts, whether it was verified, and the seconds it took."""
    policy = {
        "ledger": {"path": str(folder / f"{name}.ledger"), "epsilon": EPSILON, "delta": 10 * DELTA},
        "unit": {"row": True},
        "tables": {
            "births": {
                "source": str(folder / "births.parquet"),
                "columns": {one: {"choices": values} for one, values in CHOICES.items()},
            }
        },
    }
    words = {"table": "births", "columns": list(CHOICES), "epsilon": EPSILON, "delta": DELTA, "at_least": 2}
    plan = {
        "title": "Births",
        "policy": policy,
        "anyway": True,
        "synthetic": {"births": {**words, "never": NEVER, "criteria": CRITERIA, **settings}},
    }
    start = time.perf_counter()
    made = dp.publish(plan, folder / name)
    seconds = time.perf_counter() - start
    checked = dp.publication.verify_publication(folder / name, folder / f"{name}.ledger")
    return pyarrow.parquet.read_table(folder / name / "births.parquet"), made.facts, checked.holds, seconds


def codes(rows: pa.Table) -> Any:
    places = [{value: place for place, value in enumerate(values)} for values in CHOICES.values()]
    columns = [[at[one] for one in rows.column(n).to_pylist()] for n, at in zip(CHOICES, places, strict=True)]
    return np.array(columns).T


def largest_error(true: Any, made: Any, ways: int) -> float:
    """The largest difference of a count in any table of so many columns, as a share of all rows."""
    sizes, worst = [len(values) for values in CHOICES.values()], 0.0
    for columns in itertools.combinations(range(len(sizes)), ways):
        shape = [sizes[one] for one in columns]
        shares = []
        for rows in (true, made):
            places = np.ravel_multi_index([rows[:, one] for one in columns], shape)
            shares.append(np.bincount(places, minlength=int(np.prod(shape))) / max(len(rows), 1))
        worst = max(worst, float(np.abs(shares[0] - shares[1]).max()))
    return worst


def main() -> None:
    section(
        "A publication of births",
        "publishing.publish",
        f"""`discreet publish` of {ROWS:,} made-up births with six columns (12 × 7 × 7 × 10 × 2 × 10 values), ε =
        {EPSILON:g}, δ = {DELTA:g}, one row added or removed: synthetic rows, eight criteria that are measured with
        noise, and a proof that was verified. {RUNS} runs each; {machine()}.""",
    )
    table("plan", "largest 1-way error", "largest 2-way error", "criteria met", "verified", "seconds")
    worst, all_met, all_verified = 0.0, True, True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        true = births(ROWS, SEED)
        pyarrow.parquet.write_table(true, folder / "births.parquet")
        for plan, settings in PLANS.items():
            errors, met, verified, seconds = [], [], [], []
            for run in range(RUNS):
                rows, facts, holds, took = published(folder, settings, f"{plan.replace(' ', '-')}-{run}")
                made = codes(rows)
                errors.append([largest_error(codes(true), made, ways) for ways in (1, 2)])
                criteria = facts["parts"][0]["criteria"]
                met.append(sum(one["met"] for one in criteria) - 1)  # impossible rows are counted apart
                verified.append(holds)
                seconds.append(took)
            one, two = (max(found[ways] for found in errors) for ways in (0, 1))
            worst = max(worst, one, two)
            all_met, all_verified = all_met and min(met) == 8, all_verified and all(verified)
            line(plan, f"{one:.3%}", f"{two:.3%}", f"{min(met)} of 8", "yes" if all(verified) else "**no**",
                 f"{np.median(seconds):.0f}")  # fmt: skip
        theirs = f"Israel 2014, as published (ε = {PUBLISHED_EPSILON}, pure)"
        line(theirs, None, f"{PUBLISHED:.2%}", "8 of 8", None, None)
    notes(
        """Errors are shares of all rows, the largest over all cells of all tables and over all runs, compared with the
        true rows, which only the benchmark sees.""",
        f"""Israel's release (Hod and Canetti 2024) states a maximal error of {PUBLISHED:.2%} of all records in its
        tables at ε = {PUBLISHED_EPSILON}, without δ, of its own data and its own eight criteria. These rows are made
        up, and ours has a δ: the numbers are of the same size of problem, not of the same data.""",
        """The criteria: largest errors of single columns and of pairs, relative errors of counts above 1,000, means of
        parity by age and of weight by gestation, coefficients of weight on gestation and age, rows without a partner,
        and no row that is alone. Each value ± its error at 95%, for all criteria and tries at once, is below its limit.
        No row is impossible, either.""",
        f"""Settings (all pairs, tables of at most 2^17 cells, limits of the criteria) were chosen on rows of seeds
        {TUNED_ON[0]} and {TUNED_ON[1]}; the rows here are of seed {SEED}.""",
    )
    verdict(
        {
            f"largest error at most {GOAL:.2%}: {worst:.3%}": worst <= GOAL,
            "all eight criteria met": all_met,
            "all verified with the ledger": all_verified,
        }
    )


if __name__ == "__main__":
    main()
