"""Adaptive questions: how wide answers are on the population, beside what was published, and what one question takes.

`python bench/adaptive.py` compares widths with 95% confidence for 10^4 to 10^6 rows and 10^3 to 10^5 questions; then
times one question of 10^6 rows beside `np.mean` of the same thing, alternating, on one core.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import peers

import discreet as dp
from discreet.adaptive.planning import plan, rows_needed

ROWS, QUESTIONS = (10**4, 10**5, 10**6), (10**3, 10**4, 10**5)
SHOWN = {  # the plan's name for it, what it is, and goals for each number of rows and of questions
    "gaussian": (
        "private, any analyst: **Gaussian noise, here**",
        (0.430, 0.809, 1, 0.135, 0.248, 0.460, 0.043, 0.079, 0.143),
    ),
    "Jung et al. 2020, exact curve": ("the same noise, Jung et al. 2020 with the exact curve", None),
    "Jung et al. 2020, as coded": ("the same noise, Jung et al. 2020 as their code evaluates it", None),
    "Bassily et al. 2016": ("the same noise, Bassily et al. 2016", None),
    "taught": ("Laplace noise, the lecture's α + 10ε", None),
    "thresholdout": ("private, a holdout with ten overfits: **thresholdout, here**", None),
    "guess and check": (
        "not private, a holdout with ten overfits: **guess and check, here**",
        (0.090, 0.102, 0.114, 0.030, 0.034, 0.037, 0.0097, 0.0109, 0.0120),
    ),
    "compression": ("not private, any analyst: compression", None),
    "splitting": ("not private, any analyst: splitting", None),
    "Bonferroni": ("not adaptive: questions fixed in advance", None),
}
SIZE, REPEAT = 10**6, 61
ACCURACIES = (0.1, 0.05, 0.02, 0.01)


def widths() -> None:
    pairs = [(n, k) for n in ROWS for k in QUESTIONS]
    print("\nwidths on the population, 95%; – is a half or more, which says nothing\n")
    print("| | " + " | ".join(f"{power(n)} rows, {power(k)}" for n, k in pairs) + " |")
    print("|---" * (len(pairs) + 1) + "|")
    made = plan(ROWS, QUESTIONS, methods=SHOWN)
    found = {(row["method"], row["rows"], row["questions"]): row["width"] for row in made.rows}
    for method, (name, goals) in SHOWN.items():
        mine = [found[method, n, k] for n, k in pairs]
        print(f"| {name} | " + " | ".join(map(shown, mine)) + " |", flush=True)
        if goals is not None:
            print("| goal: at most | " + " | ".join(f"{goal:g}".lstrip("0") for goal in goals) + " |")
            missed = [pair for pair, width, goal in zip(pairs, mine, goals, strict=True) if width > goal]
            print(f"{method}: {f'goal missed at {missed}' if missed else 'all goals are met'}", file=sys.stderr)


def sizes() -> None:
    print("\nrows needed, 95%\n")
    print("| questions | method | " + " | ".join(f"± {accuracy}" for accuracy in ACCURACIES) + " |")
    print("|---" * (len(ACCURACIES) + 2) + "|")
    for k in QUESTIONS:
        for method in ("gaussian", "splitting", "guess and check"):
            needed = [rows_needed(accuracy, k, method=method) for accuracy in ACCURACIES]
            print(
                f"| {power(k)} | {method} | " + " | ".join(f"{float(f'{n:.2g}'):,.0f}" for n in needed) + " |",
                flush=True,
            )


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed() -> None:
    x = np.random.default_rng(0).random(SIZE)
    private = dp.adaptive.study({"x": x}, queries=10_000, method="gaussian")
    open_rows = dp.adaptive.study({"x": x}, queries=10_000, method="compression", unprotected=True)
    questions: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
        "a predicate, `x > 0.5`": (lambda rows: rows["x"] > 0.5, lambda: np.mean(x > 0.5)),
        "a column of [0,1], `x`": (lambda rows: rows["x"], lambda: np.mean(x)),
        "an expression, `x * x`": (lambda rows: rows["x"] * rows["x"], lambda: np.mean(x * x)),
    }
    print(f"\none question of 10^6 rows, median of {REPEAT} alternated runs; load {os.getloadavg()[0]:.1f}\n")
    print("| question | np.mean, ms | private, ms | ratio | compression, ms | ratio |")
    print("|---" * 6 + "|")
    for name, (question, plain) in questions.items():
        ways = (plain, lambda q=question: private.mean(q), lambda q=question: open_rows.mean(q))
        runs = [[seconds(way) for way in ways] for _ in range(REPEAT + 3)][3:]
        base, noisy, rounded = (1000 * statistics.median(times) for times in zip(*runs, strict=True))
        told = f"{base:.2f} | {noisy:.2f} | {noisy / base:.2f} | {rounded:.2f} | {rounded / base:.2f}"
        print(f"| {name} | {told} |", flush=True)


def power(number: int) -> str:
    return f"10^{len(str(number)) - 1}"


def shown(width: float) -> str:
    return "–" if width >= 0.5 else f"{width:.4f}".lstrip("0") if width < 0.1 else f"{width:.3f}".lstrip("0")


if __name__ == "__main__":
    peers.one_core()
    widths()
    sizes()
    speed()
