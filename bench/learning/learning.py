"""Learning: accuracy and certificates here, beside scikit-learn, diffprivlib and Opacus; speed is in learning_speed.py.

    python -m bench.learning.learning                        everything
    python -m bench.learning.learning adult certificate      some of: adult, certificate, tuned, mnist, small
    python -m bench.learning.learning mnist --seeds 3        fewer repetitions
    python -m bench.learning.learning adult --data FOLDER    where adult.data and adult.test of UCI's Adult are ($ADULT)

Here nothing is set but ε, δ, the classes, the number of rows and their norm, and in some lines not even these two;
settings chosen by looking at the answers are in a table apart. Every system gets the same splits, with rows shortened
to norm 1. Seconds are medians of `fit`; finding the noise, which all of them do once for a setting, is left out.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from bench.learning.learning_peers import EPSILONS, theirs
from bench.learning.learning_sets import AGAIN, SMALL, Fit, adult, lacking, measured, mnist, parted, shortened
from bench.report import line, machine, notes, section, table, verdict

GOALS = {("adult", 0.1): 82.0, ("adult", 1.0): 83.5, ("mnist", 1.0): 88.8}
"""Accuracies in %."""
CLIP = math.sqrt(2) / 2  # what LogisticRegression takes for rows of norm 1 and an intercept
OURS, UNDECLARED = "here, LogisticRegression", "here, nothing declared"
ABOUT = """Accuracy in % on held-out rows, with its standard deviation. For discreet, only ε, δ = 1/n², the
classes, the number of rows and their norm are set; where nothing is declared, rows are counted and the ranges of
columns found privately. All systems get the same splits, with rows shortened to norm 1. Seconds are medians of
a fit, without the calibration of its noise;"""
NOTES = (
    """Opacus has one setting for each data set (epochs × batch and a rate), chosen once and used for all ε.
    diffprivlib is pure ε; each number of a pair is for one C.""",
    "The defaults here were chosen by looking at these sets.",
)


def here(estimator: str = "LogisticRegression", counted: bool = False, **settings: Any) -> Fit:
    """A model that is told the number and the norm of the rows, as the peers are, or that counts them."""
    from discreet import learn

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        given = {"epsilon": epsilon, "delta": delta, "n_samples": None if counted else len(x)}
        given |= {"feature_norm": 1} | settings
        model = getattr(learn, estimator)(classes=list(range(y.max() + 1)), **given)
        return model.fit(x, y).predict

    return fit


def undeclared(**settings: Any) -> Fit:
    """A model that is told neither: it finds the ranges of columns instead."""
    return here(counted=True, feature_norm=None, **settings)


def not_private(most: int = 1000) -> Fit:
    from sklearn.linear_model import LogisticRegression

    return lambda x, y, epsilon, delta, seed: LogisticRegression(C=100, max_iter=most).fit(x, y).predict


# --- tables -----------------------------------------------------------------------------------------------


def titles(epsilons: Iterable[float]) -> list[str]:
    return ["not private" if math.isinf(epsilon) else f"ε = {epsilon:g}" for epsilon in epsilons] + ["fit, s"]


def accuracies(results: Iterable[dict[str, Any]], epsilons: Iterable[float], *before: str) -> None:
    """A line for each system, a column for each ε; several settings of one system share its cells."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in results:
        lines.setdefault(row["system"], []).append(row)
    for system, rows in lines.items():
        cells = [of([row["accuracy"] for row in rows if row["epsilon"] == epsilon]) for epsilon in epsilons]
        line(*before, system, *cells, f"{np.median([np.median(row['seconds']) for row in rows]):.2g}")


def of(found: list[list[float]]) -> str | None:
    """Accuracies in %: the mean and the deviation of one setting, only the means of several settings or of one fit."""
    if len(found) == 1 and len(found[0]) > 1:
        return f"{100 * np.mean(found):.2f} ± {100 * np.std(found):.2f}"
    return " / ".join(f"{100 * np.mean(each):.2f}" for each in found) or None


def goals(results: Iterable[dict[str, Any]]) -> dict[str, bool]:
    """Which are met by results of ours."""
    met = {}
    for row in results:
        if goal := GOALS.get((row["set"], row["epsilon"])):
            reached = 100 * float(np.mean(row["accuracy"]))
            name = {"adult": "Adult", "mnist": "MNIST"}[row["set"]]
            met[f"{name} at least {goal}% at ε = {row['epsilon']:g} ({reached:.2f})"] = reached >= goal
    return met


def adult_table(seeds: int) -> dict[str, bool]:
    epsilons, columns = EPSILONS["adult"], (*EPSILONS["adult"], math.inf)
    x, _, _, _ = parted(*adult(), 0)
    beside = theirs("adult", seeds, "opacus", "diffprivlib")
    print(f"\nAdult, {len(x):,} × {x.shape[1]} to learn from, {seeds} splits:\n")
    table("system", *titles(columns))
    ours: list[tuple[str, Fit, bool]] = [
        (OURS, here(), True),
        ("here, rows counted privately", here(counted=True), True),
        (UNDECLARED, undeclared(), True),
        ("here, LinearSVC", here("LinearSVC"), True),
        ("here, gains without logarithm", here(), False),
        ('here, solver="objective"', here(solver="objective"), True),
        ('here, solver="objective", δ = 0', here(solver="objective", delta=0), True),
    ]
    found = {}
    for system, fit, logarithm in ours:
        found[system] = [measured(system, fit, "adult", epsilon, seeds, logarithm) for epsilon in epsilons]
        accuracies(found[system], columns)
    accuracies(beside, columns)
    line("published: DP-GD / DP-SGD / AMP", "80.9 / 80.4 / 79.3", None, None, None, "84.8", None)
    both = "scikit-learn, gains with / without logarithm"
    accuracies((measured(both, not_private(), "adult", math.inf, seeds, log) for log in (True, False)), columns)
    return goals(found[OURS])


def tuned(seeds: int) -> dict[str, bool]:
    """The best of a few settings by the test rows: what the choice would cost is not paid by anyone."""
    epsilons = EPSILONS["tuned"]
    beside = theirs("tuned", seeds, "opacus", "diffprivlib")
    print(
        f"\nAdult, settings chosen on the test rows themselves, {seeds} splits; choosing among them is not private:\n"
    )
    table("setting", *titles(epsilons))
    tried: list[dict[str, Any]] = [{}, {"steps": 50}, {"steps": 100}, {"steps": 400}, {"clip": 0.35}, {"clip": 1.42}]
    tried += [{"momentum": 0}]
    for settings in tried:
        said = ", ".join(f"{name}={value}" for name, value in settings.items()) or "nothing set"
        accuracies((measured(f"here, {said}", here(**settings), "adult", e, seeds) for e in epsilons), epsilons)
    accuracies(best(beside), epsilons)
    return {}


def best(results: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The best setting of each system, for each ε anew."""
    tried: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in results:
        tried.setdefault((row["system"].partition(",")[0], row["epsilon"]), []).append(row)
    for (system, _), rows in tried.items():
        yield max(rows, key=lambda row: np.mean(row["accuracy"])) | {"system": f"{system}, the best of {len(rows)}"}


def certificate(seeds: int) -> dict[str, bool]:
    """What a release says of itself, beside what the rows say, which nobody may know."""
    from scipy.optimize import minimize

    from discreet.learn import LogisticRegression

    x, y, _, _ = parted(*adult(), 0)
    n = len(x)
    rows, sign = np.column_stack([shortened(x.astype(float)), np.ones(n)]), 2.0 * y - 1
    cut = CLIP / np.linalg.norm(rows, axis=1)
    corner = np.log(1 / cut - 1)

    def loss(w: Any) -> tuple[float, Any]:
        """The mean logistic loss, straight where its slope is above the cut, and its gradient."""
        margin = sign * (rows @ w)
        value = np.logaddexp(0, -np.maximum(margin, corner)) + cut * np.maximum(corner - margin, 0)
        return float(value.mean()), rows.T @ (-sign * np.minimum(1 / (1 + np.exp(margin)), cut)) / n

    zero = np.zeros(rows.shape[1])
    start = loss(zero)[0]
    least = minimize(loss, zero, jac=True, method="L-BFGS-B", options={"maxiter": 500}).fun
    print(f"\nWhat one release on Adult states about its mean clipped loss, {start:.3f} at the start, and the truth:\n")
    table("ε", "fell by", "truly by", "above the least by at most (95%)", "truly above it by")
    for epsilon in (0.1, 1.0):
        known = {"delta": 1 / n**2, "classes": [0, 1], "n_samples": n, "feature_norm": 1}
        model = LogisticRegression(epsilon=epsilon, **known).fit(x, y)
        reached = loss(model.release_.value["weights"])[0]
        fell, bound = -model.learning_curve_[-1], model.release_.error(0.95).amount
        line(f"{epsilon:g}", f"{fell:.4f}", f"{start - reached:.4f}", f"{bound:.4f}", f"{reached - least:.4f}")
    return {}


def mnist_table(seeds: int) -> dict[str, bool]:
    columns = (*EPSILONS["mnist"], math.inf)
    beside = theirs("mnist", seeds, "opacus")
    print(f"\nMNIST, softmax, {len(mnist()[0]):,} × 784 to learn from, {seeds} fits:\n")
    table("system", *titles(columns))
    ours = measured(OURS, here(), "mnist", 1.0, seeds)
    accuracies([ours, measured(UNDECLARED, undeclared(), "mnist", 1.0, seeds), *beside], columns)
    line("published: DP-GD / DP-SGD", "88.6 / 87.5", "91.9", None)
    accuracies([measured("scikit-learn", not_private(300), "mnist", math.inf, 1)], columns)
    return goals([ours])


def small_table(seeds: int) -> dict[str, bool]:
    columns = (*EPSILONS["small"], math.inf)
    beside = theirs("small", seeds, "opacus", "diffprivlib")
    print(f"\nSmaller sets, δ = 1e-5, {seeds} splits; {AGAIN} fits of each split, one if the rows are synthetic:\n")
    table("set", "system", *titles(columns))
    ours = {
        OURS: here(),
        UNDECLARED: undeclared(),
        'here, solver="objective", δ = 0': here(solver="objective", delta=0),
    }
    for name, title in SMALL.items():
        for system, fit in ours.items():
            accuracies((measured(system, fit, name, epsilon, seeds) for epsilon in EPSILONS["small"]), columns, title)
        accuracies((row for row in beside if row["set"] == name), columns, title)
        accuracies([measured("scikit-learn", not_private(), name, math.inf, seeds)], columns, title)
    return {}


PARTS: dict[str, tuple[str, Callable[[int], dict[str, bool]]]] = {
    "adult": ("adult", adult_table),
    "certificate": ("adult", certificate),
    "tuned": ("adult", tuned),
    "mnist": ("mnist", mnist_table),
    "small": ("", small_table),
}
"""What can be asked for: the set that must be there, and what measures it."""
ALONE = {"tuned": "Learning with chosen settings", "mnist": "Learning digits"}
"""Parts that are long: a section of their own if they are asked for alone."""


def main(parts: list[str], seeds: int) -> None:
    if lacks := {lack for part in parts if (lack := lacking(PARTS[part][0]))}:
        print(*lacks, "Nothing is measured.", sep="\n", file=sys.stderr)
        sys.exit(2)
    title = ALONE.get(parts[0]) if len(parts) == 1 else None
    words = " ".join(["learning.learning", *sys.argv[1:]])
    section(title or "Learning", words, f"{ABOUT} {machine()}.", level=3 if title else 2)
    met: dict[str, bool] = {}
    for part in parts:
        met |= PARTS[part][1](seeds)
    verdict(met)
    notes(*(NOTES[1:] if parts == ["tuned"] else NOTES))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="accuracy of learning")
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--data", default=None, help="the folder with adult.data and adult.test")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no {', '.join(sorted(unknown))} here: choose from {', '.join(PARTS)}")
    os.environ |= {"ADULT": asked.data} if asked.data else {}
    main(asked.parts or list(PARTS), asked.seeds)
