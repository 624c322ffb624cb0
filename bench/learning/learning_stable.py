"""Least squares over many fits: the worst and the median R² on held-out rows.

    python -m bench.learning.learning_stable [FOLDER]     everything; FOLDER holds the data (default: shared/data)
    python -m bench.learning.learning_stable diffprivlib  the peer alone, inside its environment

Every fit has its own split, four fifths to learn from, with the same splits for all. "Declared" gives the smallest and
the largest number of each column of the whole set, and ±the largest target. "Found" declares nothing. Defaults were
chosen on generated sets and on scikit-learn's diabetes data. The last set, with heavy tails, columns that go together,
and scales that differ by 10^5, is one of those that defaults were chosen on; the others are not.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

FOLDER = Path(os.environ.get("UCI") or Path(__file__).resolve().parents[3] / "shared" / "data")
EPSILONS, DELTA, FITS = (1.0, 0.1), 1e-6, 60
EARLIER = {  # declared bounds, before this edition: the worst and the median of the same splits
    ("airfoil", 1.0): (-4.068, -0.144),
    ("airfoil", 0.1): (-15.001, -2.874),
    ("bike", 1.0): (0.358, 0.382),
    ("bike", 0.1): (0.207, 0.284),
    ("concrete", 1.0): (-0.052, 0.134),
    ("concrete", 0.1): (-3.952, -0.309),
    ("heavy", 1.0): (0.041, 0.545),
    ("heavy", 0.1): (-0.188, 0.056),
}
NAMES = {"airfoil": "airfoil, 1,503 × 5", "bike": "bike, 17,379 × 12", "concrete": "concrete, 1,030 × 8"}
NAMES["heavy"] = "generated, 45,000 × 6"
Fit = Callable[[Any, Any, Any, Any], Callable[[Any], Any]]


def load(name: str, folder: Path) -> tuple[Any, Any]:
    if name == "heavy":
        random = np.random.default_rng(0)
        mixed = random.standard_t(3, size=(45_000, 6)) @ (np.eye(6) + 0.6 * random.normal(size=(6, 6)))
        rows = mixed * np.array([1, 10, 0.01, 1000, 3, 0.5]) + np.array([0, 50, 1, 0, -3, 7])
        return rows, mixed @ random.normal(size=6) + 3 * random.standard_t(2.5, 45_000)
    if name == "airfoil":
        found = np.loadtxt(folder / "airfoil_self_noise.dat.txt")
    elif name == "concrete":
        lines = (folder / "Concrete_Data.txt").read_text().splitlines()
        found = np.array([[float(cell) for cell in one.split()] for one in lines if one.strip()])
    else:
        found = np.loadtxt(folder / "hour.csv", delimiter=",")[:, [*range(4, 16), -1]]
    return found[:, :-1], found[:, -1]


def scores(data: tuple[Any, Any], fit: Fit, fits: int = FITS) -> tuple[float, float]:
    """The worst and the median R² on held-out rows."""
    rows, goal = data
    ranges, bound = np.stack([rows.min(0), rows.max(0)], axis=1), float(np.abs(goal).max())
    found = []
    for seed in range(fits):
        learn, test = np.split(np.random.default_rng(seed).permutation(len(goal)), [int(0.8 * len(goal))])
        wrong = goal[test] - fit(rows[learn], goal[learn], ranges, bound)(rows[test])
        found.append(1 - float((wrong**2).mean() / goal[test].var()))
    return min(found), float(np.median(found))


def plain(rows: Any, goal: Any, ranges: Any, bound: float) -> Callable[[Any], Any]:
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(rows, goal).predict  # type: ignore[no-any-return]


def here(epsilon: float, declared: bool) -> Fit:
    import discreet as dp

    def fit(rows: Any, goal: Any, ranges: Any, bound: float) -> Callable[[Any], Any]:
        bounds: dict[str, Any] = {"feature_ranges": ranges, "target_bound": bound} if declared else {}
        return dp.learn.LinearRegression(epsilon=epsilon, delta=DELTA, **bounds).fit(rows, goal).predict  # type: ignore[no-any-return]

    return fit


def theirs(epsilon: float) -> Fit:
    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")

    def fit(rows: Any, goal: Any, ranges: Any, bound: float) -> Callable[[Any], Any]:
        bounds = {"bounds_X": (ranges[:, 0], ranges[:, 1]), "bounds_y": (-bound, bound)}
        return LinearRegression(epsilon=epsilon, **bounds).fit(rows, goal).predict  # type: ignore[no-any-return]

    return fit


def peer(folder: Path) -> Iterator[dict[str, Any]]:
    for name in NAMES:
        data = load(name, folder)
        yield {"name": name, "scores": [scores(data, theirs(epsilon), 20) for epsilon in EPSILONS]}


def pair(found: Any) -> str | None:
    """The worst and the median."""
    return None if found is None else " / ".join(f"{one:.2f}" if one > -100 else f"{one:.0e}" for one in found)


def main(folder: Path) -> None:
    peers.one_core()
    os.environ["UCI"] = str(folder)
    about = f"R² on held-out rows, the worst and the median of {FITS} fits, δ = 10⁻⁶, the same splits for all"
    section("Least squares over many fits", "learning.learning_stable", f"{about}. On one of {machine()}.")
    other = {row["name"]: row["scores"] for row in peers.measure(__spec__.name, "diffprivlib")}
    titles = ("not private", "earlier edition, declared", "**declared**", "**found**")
    table("set", "ε", *titles, f"diffprivlib {peers.version('diffprivlib')}, declared, of 20")
    goals = {}
    for name, shown in NAMES.items():
        data = load(name, folder)
        least = scores(data, plain)
        for place, epsilon in enumerate(EPSILONS):
            declared, found = (scores(data, here(epsilon, one)) for one in (True, False))
            theirs_too = other[name][place] if name in other else None
            cells = (least, EARLIER[name, epsilon], declared, found, theirs_too)
            line(shown, f"{epsilon:g}", *map(pair, cells))
            if epsilon == 1:
                goals[f"found: worst ≥ 0 and the median at least the earlier one on {name}"] = (
                    found[0] >= 0 and found[1] >= EARLIER[name, epsilon][1]
                )
                goals[f"declared: worst ≥ 0 and the median at least the earlier one on {name}"] = (
                    declared[0] >= 0 and declared[1] >= EARLIER[name, epsilon][1]
                )
    verdict(goals)
    notes(
        """At ε = 0.1 a thousand rows do not even give the mean of a target far from 0: declare a narrow
        `target_bound=(low, high)`, or use a larger ε.""",
        """Defaults were chosen on generated sets, of which the last one here is one, and not on the other three.""",
        """The worst of 60 fits varies from run to run by about 0.1 on the sets of a thousand rows; in another run,
        airfoil with declared bounds had -0.05.""",
        """The earlier edition was measured once, on the same splits, before this change: those numbers are stored in
        the script, which cannot measure them again.""",
    )


if __name__ == "__main__":
    chosen = FOLDER if sys.argv[1:2] in ([], ["diffprivlib"]) else Path(sys.argv[1])
    if sys.argv[1:2] == ["diffprivlib"]:
        print(*map(json.dumps, peer(chosen)), sep="\n")
    else:
        main(chosen)
