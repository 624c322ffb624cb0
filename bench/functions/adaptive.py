"""Adaptive questions: how wide answers are on the population, beside what was published, and what one question takes.

`python -m bench.functions.adaptive` compares widths with 95% confidence for 10^4 to 10^6 rows and 10^3 to 10^5
questions; then times one question of 10^6 rows beside `np.mean` of the same thing, alternating, on one core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import discreet as dp
from bench import peers
from bench.report import line, machine, notes, section, table, verdict
from discreet.adaptive.planning import plan, rows_needed
from discreet.guarantees.accuracy import at_most

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
SIZE, REPEAT, LONGEST = 10**6, 61, 3
"""Rows and runs of a question that is timed, and how many times as long as `np.mean` it may take."""
ACCURACIES = (0.1, 0.05, 0.02, 0.01)
NAMES = {"gaussian": "Gaussian noise"}
IN_WORDS = ("gaussian", "Jung et al. 2020, exact curve", "taught", "guess and check", "thresholdout")


def widths() -> dict[str, bool]:
    """What all answers are within, by method, and whether the goals are met."""
    pairs = [(n, k) for n in ROWS for k in QUESTIONS]
    made = plan(ROWS, QUESTIONS, methods=SHOWN)
    found = {(row["method"], row["rows"], row["questions"]): row["width"] for row in made.rows}
    said(found)
    table("method", *(f"{power(n)} rows, {power(k)}" for n, k in pairs))
    met = {}
    for method, (name, goals) in SHOWN.items():
        mine = [found[method, n, k] for n, k in pairs]
        line(name, *map(shown, mine))
        if goals is not None:
            line("goal: at most", *map(shown, goals))
            within = [width <= goal for width, goal in zip(mine, goals, strict=True)]
            met[f"{NAMES.get(method, method)} no wider than its goals ({sum(within)} of {len(within)})"] = all(within)
    notes(
        """– means ½ or more, which is no information. The second number of a title is the number of questions. A
        holdout comes with a training set of the same size, and the tolerance at which honest guesses use up three of
        ten overfits. The
        goals of Gaussian noise are the widths of Jung et al. 2020 with the exact curve.""",
        """Widths are computed, not simulated, and rounded up: they are the same on every machine. `discreet study plan`
        prints them for other numbers.""",
    )
    return met


def said(found: dict[tuple[str, int, int], float]) -> None:
    """The table in words."""
    n, k = ROWS[1], QUESTIONS[0]
    ours, best, taught, checked, threshold = (shown(found[method, n, k]) for method in IN_WORDS)
    better = [k for k in QUESTIONS if found["thresholdout", n, k] < found["gaussian", n, k]]
    told = f"beats plain noise at {' and '.join(map(power, better))} questions" if better else "never beats plain noise"
    print(
        "An analyst who chooses questions by earlier answers can find anything in a sample. Noise that hides every row "
        f"prevents it, for any analyst: with {power(n)} rows, {power(k)} questions are answered within {ours}, where "
        f"the best published theorem promises {nothing(best)} for the same noise and the lecture's constants "
        f"{nothing(taught)}. An analyst who only checks results of a training set gets {checked} from guess and check, "
        f"which is not private, and {threshold} from thresholdout, which is private and {told}.\n"
    )


def nothing(width: str) -> str:
    return "nothing at all" if width == "–" else width


def sizes() -> None:
    print("\nRows needed, rounded to two digits:\n")
    table("questions", "method", *(f"± {accuracy}" for accuracy in ACCURACIES))
    for k in QUESTIONS:
        for method in ("gaussian", "splitting", "guess and check"):
            needed = [rows_needed(accuracy, k, method=method) for accuracy in ACCURACIES]
            line(power(k), NAMES.get(method, method), *(f"{float(f'{n:.2g}'):,.0f}" for n in needed))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed() -> dict[str, bool]:
    x = np.random.default_rng(0).random(SIZE)
    private = dp.adaptive.study({"x": x}, queries=10_000, method="gaussian")
    open_rows = dp.adaptive.study({"x": x}, queries=10_000, method="compression", unprotected=True)
    questions: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
        "a predicate, `x > 0.5`": (lambda rows: rows["x"] > 0.5, lambda: np.mean(x > 0.5)),
        "a column of [0,1], `x`": (lambda rows: rows["x"], lambda: np.mean(x)),
        "an expression, `x * x`": (lambda rows: rows["x"] * rows["x"], lambda: np.mean(x * x)),
    }
    print(
        f"\nOne question of {power(SIZE)} rows compared with `np.mean` of the same, "
        f"median of {REPEAT} alternated runs:\n"
    )
    table("question", "np.mean, ms", "private, ms", "÷ np.mean", "compression, ms", "÷ np.mean, compression")
    met = {}
    for name, (question, plain) in questions.items():
        ways = (plain, lambda q=question: private.mean(q), lambda q=question: open_rows.mean(q))
        runs = [[seconds(way) for way in ways] for _ in range(REPEAT + 3)][3:]
        base, noisy, rounded = (1000 * statistics.median(times) for times in zip(*runs, strict=True))
        ratio = noisy / base
        line(name, f"{base:.2f}", f"{noisy:.2f}", f"{ratio:.2f}", f"{rounded:.2f}", f"{rounded / base:.2f}")
        met[f"at most {LONGEST} times as long as `np.mean` for {name} ({ratio:.2f})"] = ratio <= LONGEST
    notes(
        "Numbers are checked, rounded to a multiple of 2^-20 and summed exactly, in three passes. `np.mean` needs one."
    )
    return met


def power(number: int) -> str:
    return f"10^{len(str(number)) - 1}"


def shown(width: float) -> str:
    return "–" if width >= 0.5 else at_most(width).lstrip("0")


def main() -> None:
    peers.one_core()
    section(
        "Adaptive analysis",
        "functions.adaptive",
        f"""How far all answers may be from the means of the population, at once and with 95% confidence. Then the
        time of one question on one core; {machine()}.""",
    )
    met = widths()
    sizes()
    verdict(met | speed())


if __name__ == "__main__":
    main()
