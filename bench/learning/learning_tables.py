"""Tables of numbers and categories to learn from, Adult and Bike, and how systems are compared on them."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from bench import peers
from bench.learning.learning_sets import CHOICES, RANGES, folder
from bench.report import line

EPSILONS = (0.1, 1.0, 3.0)
MEDIAN = 142
"""The task of Bike: whether more bikes than this are rented in an hour."""
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip
BIKE = {
    "season": (1, 4), "yr": (0, 1), "mnth": (1, 12), "hr": (0, 23), "holiday": (0, 1), "weekday": (0, 6),
    "workingday": (0, 1), "weathersit": (1, 4), "temp": (0, 1), "atemp": (0, 1), "hum": (0, 1), "windspeed": (0, 1),
}  # fmt: skip
Set = tuple[dict[str, Any], Any, dict[str, tuple[float, float]], dict[str, list[str]]]
"""Columns by name, targets, ranges and categories."""


@lru_cache(maxsize=3)
def read(name: str) -> Set:
    if name == "adult":
        rows = []
        for part in ("adult.data", "adult.test"):
            with open(folder() / part, newline="") as file:
                rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
        ranges = {ADULT[place]: ends for place, ends in (RANGES | {2: (0, 1_500_000)}).items()}
        choices = {ADULT[place]: names.split() for place, names in CHOICES.items()}
        columns = {
            one: np.array([row[place] for row in rows], dtype=np.int64 if one in ranges else str)
            for place, one in enumerate(ADULT)
        }
        return columns, np.array([row[14].startswith(">50K") for row in rows], int), ranges, choices
    numbers = np.loadtxt(folder() / "hour.csv", delimiter=",")
    columns = {one: numbers[:, 4 + place].astype(np.int64 if place < 8 else float) for place, one in enumerate(BIKE)}
    rented = numbers[:, 18]
    return columns, (rented > MEDIAN).astype(int) if name == "bike" else rented, dict(BIKE), {}


def splits(name: str, seeds: int) -> Iterator[tuple[int, Any, Any, Any, Any]]:
    """Four fifths to learn from, one to test on."""
    columns, y, _, _ = read(name)
    for seed in range(seeds):
        learn, test = np.split(np.random.default_rng(seed).permutation(len(y)), [int(0.8 * len(y))])
        yield seed, *(part for rows in (learn, test) for part in ({n: c[rows] for n, c in columns.items()}, y[rows]))


def auc(truth: Any, scores: Any) -> float:
    """The area under the curve, by ranks; ties count half."""
    _, places, many = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(many) - (many - 1) / 2)[places]
    ones = truth.sum()
    return float((ranks[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones)))


def r_squared(truth: Any, found: Any) -> float:
    return float(1 - ((truth - found) ** 2).mean() / truth.var())


Fit = Callable[[str, dict[str, Any], Any, float, float, int], Callable[[dict[str, Any]], Any]]
"""The set, columns, targets, ε, δ and a seed, to what scores."""


def measured(
    system: str, fit: Fit, name: str, epsilon: float, seeds: int, delta: float | None = None
) -> dict[str, Any]:
    """What a system reached on each split, and how long it took. Without δ, it is 1/n²."""
    found, spent = [], []
    for seed, x, y, x_test, y_test in splits(name, seeds):
        print(f"{system}, {name}, ε = {epsilon:g}, {seed} of {seeds}", end="   \r", file=sys.stderr, flush=True)
        start = time.perf_counter()
        score = fit(name, x, y, epsilon, 1 / len(y) ** 2 if delta is None else delta, seed)
        spent.append(time.perf_counter() - start)
        found.append((r_squared if name == "counts" else auc)(y_test, score(x_test)))
    return {"system": system, "set": name, "epsilon": epsilon, "found": found, "seconds": spent}


def wide(name: str, x: dict[str, Any]) -> Any:
    """Numbers scaled from their ranges to [0, 1], and a column of 0 and 1 for each category."""
    _, _, ranges, choices = read(name)
    columns = [np.clip((x[n] - low) / (high - low), 0, 1) for n, (low, high) in ranges.items()]
    columns += [x[n] == one for n, listed in choices.items() for one in listed]
    return np.stack(columns, axis=1).astype(np.float64)


# --- peers, each in an environment of its own -------------------------------------------------------------------------


def theirs(module: str, systems: dict[str, tuple[str, Fit]], name: str, seeds: int) -> list[dict[str, Any]]:
    """What the peers of a script reached. Only DP-EBM learns numbers."""
    os.environ |= {"LEARNING": name, "LEARNING_SEEDS": str(seeds)}
    return [row for peer in systems if name != "counts" or peer == "interpret" for row in peers.measure(module, peer)]


def as_peer(system: str, fit: Fit, delta: float | None) -> None:
    """Print what one peer reached, from inside its environment."""
    warnings.simplefilter("ignore")
    name, seeds = os.environ["LEARNING"], int(os.environ["LEARNING_SEEDS"])
    for epsilon in EPSILONS:
        print(json.dumps(measured(system, fit, name, epsilon, seeds, delta)), flush=True)


def start(
    main: Callable[[int], None], systems: dict[str, tuple[str, Fit]], doc: str, delta: float | None = None
) -> None:
    """Run a benchmark by its command line, or one of its peers."""
    if len(sys.argv) == 2 and sys.argv[1] in systems:
        as_peer(*systems[sys.argv[1]], delta)
        sys.exit()
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", help="the folder of adult.data, adult.test and hour.csv")
    given = parser.parse_args()
    if given.data:
        os.environ["ADULT"] = given.data
    if not (folder() / "adult.data").exists() or not (folder() / "hour.csv").exists():
        print(f"adult.data or hour.csv is not in {folder()}: say where with $ADULT", file=sys.stderr)
        sys.exit(2)
    main(given.seeds)


# --- tables -----------------------------------------------------------------------------------------------------------


def shown(results: list[dict[str, Any]]) -> None:
    """A line for each system, a column for each ε."""
    for system in dict.fromkeys(row["system"] for row in results):
        rows = {row["epsilon"]: row for row in results if row["system"] == system}
        cells = [cell(rows[e]["found"]) if e in rows else None for e in (*EPSILONS, math.inf)]
        line(system, *cells, f"{np.median([np.median(row['seconds']) for row in rows.values()]):.2g}")


def cell(found: list[float]) -> str:
    return f"{np.mean(found):.4f} ± {np.std(found):.4f}"


def titles() -> list[str]:
    return ["system", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "not private", "fit, s"]
