"""Linear regression on UCI sets: mean squared error by 10-fold cross-validation, beside what was published.

    python bench/regression.py [FOLDER]     everything; FOLDER holds the data (default: shared/data beside the project)
    python bench/regression.py diffprivlib  the peer alone, inside its environment

As in the tables of AdaSSP (Wang 2018): columns standardized, rows then scaled to norm 1, the target centered and
divided by its largest absolute value (bike: its logarithm first), no intercept, δ = 1e-6. Data is made ready like that
by looking at all of it, which is not private, for every method alike. Bike has 17 columns, all but the row's number, as
was published; "bike, 12 columns" leaves out the date and the two parts of the target. Of the peer's folds, some of
which have no solution, the median is shown.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peers

FOLDER = Path(os.environ.get("UCI") or Path(__file__).resolve().parents[2] / "shared" / "data")
EPSILONS, DELTA, FOLDS, SEEDS = (0.1, 1.0), 1e-6, 10, 5
PUBLISHED = {  # AdaSSP at ε = 0.1 and 1, from the results file of yuxiangw/optimal_dp_linear_regression
    "airfoil": (0.0912, 0.0588),
    "bike": (0.0472, 0.0287),
    "bike, 12 columns": None,
    "concrete": (0.132, 0.0637),
}
Data = tuple[Any, Any]


def load(name: str, folder: Path) -> Data:
    """Rows of norm 1 and targets within ±1."""
    if name == "airfoil":
        table = np.loadtxt(folder / "airfoil_self_noise.dat.txt")
    elif name == "concrete":
        lines = (folder / "Concrete_Data.txt").read_text().splitlines()  # they end as those of an old Macintosh
        table = np.array([[float(cell) for cell in line.split()] for line in lines if line.strip()])
    else:
        table = np.loadtxt(folder / "hour.csv", delimiter=",")
        table = table[:, 1:] if name == "bike" else table[:, [*range(4, 16), -1]]
        table[:, -1] = np.log(table[:, -1])
    rows, goal = table[:, :-1], table[:, -1] - table[:, -1].mean()
    rows = (rows - rows.mean(0)) / rows.std(0)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), goal / np.abs(goal).max()


def errors(data: Data, fit: Callable[[Any, Any], Callable[[Any], Any]], seeds: int = SEEDS) -> list[float]:
    """The mean squared errors of all folds and seeds."""
    rows, goal = data
    found = []
    for seed in range(seeds):
        for held in np.array_split(np.random.default_rng(seed).permutation(len(goal)), FOLDS):
            kept = np.ones(len(goal), dtype=bool)
            kept[held] = False
            predict = fit(rows[kept], goal[kept])
            found.append(float(((predict(rows[held]) - goal[held]) ** 2).mean()))
    return found


def plain(rows: Any, goal: Any) -> Callable[[Any], Any]:
    weights = np.linalg.lstsq(rows, goal, rcond=None)[0]
    return lambda new: new @ weights


def here(epsilon: float) -> Callable[[Any, Any], Callable[[Any], Any]]:
    import discreet as dp

    model = dp.learn.LinearRegression
    return lambda rows, goal: (
        model(epsilon=epsilon, delta=DELTA, feature_norm=1, target_bound=1, fit_intercept=False).fit(rows, goal).predict
    )


def theirs(epsilon: float) -> Callable[[Any, Any], Callable[[Any], Any]]:
    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0), "fit_intercept": False}
    return lambda rows, goal: LinearRegression(epsilon=epsilon, **bounds).fit(rows, goal).predict


def peer(folder: Path) -> Iterator[dict[str, Any]]:
    for name in PUBLISHED:
        data = load(name, folder)
        found = [errors(data, theirs(epsilon), seeds=1) for epsilon in EPSILONS]
        yield {"name": name, "errors": [float(np.median(one)) for one in found]}


def main(folder: Path) -> None:
    peers.one_core()
    os.environ["UCI"] = str(folder)
    print(f"one core, load {os.getloadavg()[0]:.1f} at the start; 10 folds, {SEEDS} seeds (the peer: 1), δ = {DELTA}")
    other = {row["name"]: row["errors"] for row in peers.measure(__file__, "diffprivlib")}
    head = "set                      rows columns   trivial  least squares"
    print(head + "".join(f"   ε = {e:<4} AdaSSP     here  diffprivlib" for e in EPSILONS) + "   ms a fit")
    for name, published in PUBLISHED.items():
        data = load(name, folder)
        here(1.0)(*data)  # to warm up
        line = f"{name:20} {len(data[1]):8} {data[0].shape[1]:7} {float((data[1] ** 2).mean()):9.4f}"
        line += f" {np.mean(errors(data, plain)):14.4f}"
        start = time.perf_counter()
        for place, epsilon in enumerate(EPSILONS):
            known = "-" if published is None else f"{published[place]:.4f}"
            beside = f"{other[name][place]:.4g}" if name in other else "-"
            line += f" {known:>18} {np.mean(errors(data, here(epsilon))):8.4f} {beside:>12}"
        fits = SEEDS * FOLDS * len(EPSILONS)
        print(line + f" {1000 * (time.perf_counter() - start) / fits:10.1f}", flush=True)


if __name__ == "__main__":
    chosen = FOLDER if sys.argv[1:2] in ([], ["diffprivlib"]) else Path(sys.argv[1])
    if not (chosen / "hour.csv").exists():
        print(f"The UCI sets are not in {chosen}: give their folder, or set UCI")
    elif sys.argv[1:2] == ["diffprivlib"]:
        print(*map(json.dumps, peer(chosen)), sep="\n")
    else:
        main(chosen)
