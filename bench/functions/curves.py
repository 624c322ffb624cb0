"""Mean curve, principal components and sanitized copies of 1096 daily load curves (ItalyPowerDemand), δ = 1e-6.

    python -m bench.functions.curves [WHEEL]      WHEEL is aeon's, which holds the data; else it is downloaded

A curve has 24 values of length at most 5, a root mean square of 5/√24. "drawn" is the noise of the coefficients, over
the number of curves: plain Gaussian noise by the L2 norm. The error of a mean curve is the root mean square distance of
`mean_` from the true mean over the points, a root mean square over all fits; "bound" is `error(0.95, of="norm")`, and
"band" is half the width of the band that holds everywhere at once (95%). The goals are plain noise when a curve is
replaced and n is public.
"""

from __future__ import annotations

import math
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from bench import peers
from bench.report import line, notes, section, table, verdict
from discreet.exact.rational import exactly
from discreet.functions.curves import CurvePCA, CurveRegression, MeanCurve, sanitized_curves

DELTA, FITS, NORM = 1e-6, 400, 5 / math.sqrt(24)
EPSILONS = (10.0, 1.0, 0.1)
GOALS = {1.0: 0.0385, 0.1: 0.331}
FORMS: dict[str, dict[str, Any]] = {"not damped": {"damp": False}, "mean curve": {}, "with 12 cosines": {"basis": 12}}
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


@dataclass
class Mean:
    """Of a mean curve: the noise drawn, the error over all fits, and what the model says of it."""

    drawn: float
    error: float
    bound: float
    band: float


def mean_of(curves: Floats, unit: Any, size: int | None, epsilon: float, form: dict[str, Any]) -> Mean:
    true = curves.mean(0)
    model = MeanCurve(curve_norm=NORM, epsilon=epsilon, delta=DELTA, n_samples=size, **form)
    book = opened(unit)
    squares, bounds, bands = [], [], []
    for place in range(FITS):
        model.set_params(ledger=book).fit(curves)
        squares.append(((model.mean_ - true) ** 2).mean())
        if place < 20:
            bounds.append(model.error(0.95, of="norm").amount or math.inf)
            low, high = model.band(0.95)
            bands.append((high - low).mean() / 2)
    drawn = float(exactly(model.release_._mechanism.sum)) * math.sqrt(model.basis_.size) / len(curves)
    return Mean(drawn, math.sqrt(np.mean(squares)), float(np.mean(bounds)), float(np.mean(bands)))


def means(curves: Floats) -> dict[tuple[str, float, str], Mean]:
    """The mean curve under each relation, by relation, ε and form."""
    n = len(curves)
    relations = {
        "replace, n public": (dp.row(neighbors="replace"), n),
        "replace, n counted": (dp.row(neighbors="replace"), None),
        "add or remove, n public": (dp.row(), n),
        "add or remove, n counted": (dp.row(), None),
    }
    return {
        (name, epsilon, form): mean_of(curves, unit, size, epsilon, settings)
        for name, (unit, size) in relations.items()
        for epsilon in GOALS
        for form, settings in FORMS.items()
    }


def shown(found: dict[tuple[str, float, str], Mean]) -> None:
    relations = dict.fromkeys(name for name, _, _ in found)
    table("relation", *(title for epsilon in GOALS for title in (f"ε = {epsilon:g}: drawn", "**mean curve**")))
    for name in relations:
        damped = [found[name, epsilon, "mean curve"] for epsilon in GOALS]
        line(name, *(cell for one in damped for cell in (short(one.drawn), f"**{short(one.error)}**")))
    goals = {}
    for epsilon, goal in GOALS.items():
        error = found["replace, n public", epsilon, "mean curve"].error
        goals[f"when a curve is replaced and n is public, below {short(goal)} at ε = {epsilon:g}"] = error < goal
    verdict(goals)
    notes(
        """"drawn" is the noise of the coefficients. The mean curve is shrunk by what is publicly known, at no cost.
        The form of the shrinkage was chosen on this set and on some synthetic ones.""",
        "The goals are the errors of plain noise.",
    )
    print("\nOther errors, and the bound and the band of the mean curve (95%):\n")
    table("relation", "ε", *FORMS, "bound", "band")
    for name in relations:
        for epsilon in GOALS:
            errors = [found[name, epsilon, form].error for form in FORMS]
            damped = found[name, epsilon, "mean curve"]
            line(name, f"{epsilon:g}", *map(short, (*errors, damped.bound, damped.band)))


def components(curves: Floats) -> None:
    """How much of the variance three private components hold, of what the best three hold."""
    values = np.linalg.eigvalsh(np.cov(curves.T, bias=True) / curves.shape[1])[::-1]
    for basis, told in (("all", ""), (12, ", 12 cosines")):
        held = {}
        for epsilon in GOALS:
            shares = []
            for _ in range(40):
                model = CurvePCA(3, curve_norm=NORM, basis=basis, epsilon=epsilon, delta=DELTA).fit(curves)
                parts = (curves - curves.mean(0)) @ model.components_.T / curves.shape[1]
                shares.append(parts.var(0).sum() / values.sum())
            held[epsilon] = float(np.mean(shares))
        private(f"variance held by `CurvePCA(3)`{told}", float(values[:3].sum() / values.sum()), held)


def regressions(curves: Floats, classes: Floats) -> None:
    """The half of the year (−1 or 1) from the curve: R² on the curves that were learned from."""
    goals = np.where(classes == classes.min(), -1.0, 1.0)
    design = np.c_[np.ones(len(goals)), curves]
    left = goals - design @ np.linalg.lstsq(design, goals, rcond=None)[0]
    found = {}
    for epsilon in GOALS:
        scores = [
            CurveRegression(curve_norm=NORM, epsilon=epsilon, delta=DELTA).fit(curves, goals).score(curves, goals)
            for _ in range(40)
        ]
        found[epsilon] = float(np.mean(scores))
    private("R² of `CurveRegression`: the half of the year", float(1 - left.var() / goals.var()), found)


def copies(curves: Floats) -> None:
    """Every curve alone: the error of one copy, and of the mean of all copies."""
    one, mean = {}, {}
    for epsilon in (1.0, 10.0):
        made = sanitized_curves(curves, curve_norm=NORM, epsilon=epsilon, delta=DELTA)
        one[epsilon] = math.sqrt(((made.curves_ - curves) ** 2).mean())
        mean[epsilon] = math.sqrt(((made.curves_.mean(0) - curves.mean(0)) ** 2).mean())
    private("error of one copy by `sanitized_curves`", None, one)
    private("error of the mean of all copies", None, mean)


def private(name: str, possible: float | None, found: dict[float, float]) -> None:
    """A row of the last table."""
    line(name, *(None if number is None else short(number) for number in (possible, *map(found.get, EPSILONS))))


def short(number: float) -> str:
    """Three digits that count, without the zero before the point."""
    return f"{number:#.3g}".removeprefix("0").replace("-0.", "−.").removesuffix(".")


def main(curves: Floats, halves: Floats) -> None:
    n, points = curves.shape
    size = math.sqrt((curves.mean(0) ** 2).mean())
    section(
        "Curves",
        "functions.curves",
        f"""ItalyPowerDemand: {n} daily load curves of {points} hours, norm at most 5, δ = 10⁻⁶; root-mean-square errors
        of the mean curve, over {FITS} fits. Its own root mean square is {short(size)}.""",
    )
    shown(means(curves))
    print("\nOther results from these curves:\n")
    table("", "without noise", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    components(curves)
    regressions(curves, halves)
    copies(curves)


if __name__ == "__main__":
    try:
        data = load(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    except subprocess.CalledProcessError:
        print("The curves could not be downloaded: give aeon's wheel, which holds them", file=sys.stderr)
        sys.exit(2)
    main(*data)
