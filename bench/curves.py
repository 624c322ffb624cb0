"""Mean curve, principal components and sanitized copies of 1096 daily load curves (ItalyPowerDemand), δ = 1e-6.

    python bench/curves.py [WHEEL]      WHEEL is aeon's, which holds the data; else it is downloaded into .peers/data

A curve has 24 values of length at most 5, a root mean square of 5/√24. "noise" is what is drawn, over the number of
curves: plain Gaussian noise by the L2 norm. "error" is the root mean square distance of `mean_` from the true mean
over the points, a root mean square over all fits; "bound" is `error(0.95, of="norm")`, and "band" is half the width of
the band that holds everywhere at once (95%): both are about the mean of the curves as smoothed by so many cosines.
The goals are plain noise when a curve is replaced and n is public.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import peers
from numpy.typing import NDArray

import discreet as dp
from discreet.functions.curves import CurvePCA, CurveRegression, MeanCurve, sanitized_curves
from discreet.rational import exactly

DELTA, FITS, NORM = 1e-6, 400, 5 / math.sqrt(24)
GOALS = {1.0: 0.0385, 0.1: 0.331}
Floats = NDArray[np.float64]


def load(wheel: Path | None) -> tuple[Floats, Floats]:
    """The curves of both files, and their classes (October to March, April to September)."""
    if wheel is None:
        folder = peers.HOME / "data"
        if not list(folder.glob("aeon-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", str(folder), "aeon==1.6.0"]
            subprocess.run(command, check=True)
        wheel = next(folder.glob("aeon-*.whl"))
    rows = []
    with zipfile.ZipFile(wheel) as files:
        for part in ("TRAIN", "TEST"):
            text = files.read(f"aeon/datasets/data/ItalyPowerDemand/ItalyPowerDemand_{part}.ts").decode()
            rows += [line.strip() for line in text.lower().split("@data")[1].splitlines() if line.strip()]
    cells = np.array([[float(cell) for cell in row.replace(":", ",").split(",")] for row in rows])
    return cells[:, :-1], cells[:, -1]


def opened(unit: Any) -> Any:
    """A ledger that protects this unit, and is never empty."""
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=10**5, delta=0.9), rule="basic")


def means(curves: Floats) -> None:
    """The mean curve under each relation, damped and not."""
    true, n = curves.mean(0), len(curves)
    print(f"mean curve of {n} curves at {len(true)} points; its root mean square is {math.sqrt((true**2).mean()):.3f}")
    print(f"{'':48}{'ε':>5}{'noise':>9}{'error':>9}{'bound':>9}{'band':>9}{'goal':>9}")
    relations = {
        "replaced, n public": (dp.row(neighbors="replace"), n),
        "replaced, n counted": (dp.row(neighbors="replace"), None),
        "added or removed, n public": (dp.row(), n),
        "added or removed, n counted": (dp.row(), None),
    }
    for epsilon, goal in GOALS.items():
        for name, (unit, size) in relations.items():
            for settings in ({"damp": False}, {}, {"basis": 12}):
                model = MeanCurve(curve_norm=NORM, epsilon=epsilon, delta=DELTA, n_samples=size, **settings)
                book = opened(unit)
                squares, bounds, bands = [], [], []
                for place in range(FITS):
                    model.set_params(ledger=book).fit(curves)
                    squares.append(((model.mean_ - true) ** 2).mean())
                    if place < 20:
                        bounds.append(model.error(0.95, of="norm").amount or math.inf)
                        low, high = model.band(0.95)
                        bands.append((high - low).mean() / 2)
                noise = float(exactly(model.release_._mechanism.sum)) * math.sqrt(model.basis_.size) / n
                told = "plain" if settings.get("damp") is False else f"damped{', 12 cosines' if settings else ''}"
                numbers = noise, math.sqrt(np.mean(squares)), np.mean(bounds), np.mean(bands), goal
                print(f"{name + ', ' + told:48}{epsilon:5g}" + "".join(f"{number:9.4f}" for number in numbers))


def components(curves: Floats) -> None:
    """How much of the variance three private components hold, of what the best three hold."""
    values = np.linalg.eigvalsh(np.cov(curves.T, bias=True) / curves.shape[1])[::-1]
    print(f"three components hold at most {values[:3].sum() / values.sum():.3f} of the variance")
    for epsilon in GOALS:
        for basis in ("all", 12):
            held = []
            for _ in range(40):
                model = CurvePCA(3, curve_norm=NORM, basis=basis, epsilon=epsilon, delta=DELTA).fit(curves)
                parts = (curves - curves.mean(0)) @ model.components_.T / curves.shape[1]
                held.append(parts.var(0).sum() / values.sum())
            print(f"  CurvePCA(3, basis={basis!r}) at ε = {epsilon:g}: {np.mean(held):.3f}")


def regressions(curves: Floats, classes: Floats) -> None:
    """The half of the year (−1 or 1) from the curve: R² on the curves that were learned from."""
    goals = np.where(classes == classes.min(), -1.0, 1.0)
    design = np.c_[np.ones(len(goals)), curves]
    left = goals - design @ np.linalg.lstsq(design, goals, rcond=None)[0]
    print(f"regression of the half of the year: R² without noise {1 - left.var() / goals.var():.3f}")
    for epsilon in GOALS:
        found = [
            CurveRegression(curve_norm=NORM, epsilon=epsilon, delta=DELTA).fit(curves, goals).score(curves, goals)
            for _ in range(40)
        ]
        print(f"  CurveRegression at ε = {epsilon:g}: {np.mean(found):.3f}")


def copies(curves: Floats) -> None:
    """Every curve alone: the error of one copy, and of the mean of all copies."""
    for epsilon in (1.0, 10.0):
        start = time.perf_counter()
        made = sanitized_curves(curves, curve_norm=NORM, epsilon=epsilon, delta=DELTA)
        took = time.perf_counter() - start
        one = math.sqrt(((made.curves_ - curves) ** 2).mean())
        mean = math.sqrt(((made.curves_.mean(0) - curves.mean(0)) ** 2).mean())
        print(f"sanitized at ε = {epsilon:g}: rms error {one:.2f} of a copy, {mean:.3f} of their mean; {took:.2f} s")


if __name__ == "__main__":
    data, halves = load(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    means(data)
    components(data)
    regressions(data, halves)
    copies(data)
