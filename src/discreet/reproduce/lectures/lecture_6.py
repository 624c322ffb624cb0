"""Lecture 6: strong composition [L6.T1], [L6.T2], and answers that hold on the population [L6.T9]."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet.reproduce import game
from discreet.reproduce.course import AdvancedTaught
from discreet.reproduce.experiment import Experiment, ReportColumn

REPEATED = ((0.1, 10), (0.1, 100), (0.1, 1000), (0.01, 100), (0.01, 1000), (0.01, 10_000))
"""ε of one mechanism, and how many of them there are."""
DELTA, EACH_DELTA = 1e-6, 1e-9
STUDIES = ((1_000, 20), (1_000, 200), (10_000, 200), (1_000_000, 200))
"""Rows and adaptive questions."""
MOST_PLAYED = 10_000
MISS = 0.05


def run() -> tuple[Experiment, ...]:
    """Composition of pure and of approximate mechanisms, and generalization."""
    return pure_composition(), approximate_composition(), generalization()


# --- composition ------------------------------------------------------------------------------------------


def taught(each: dp.Approx, times: int, delta: float) -> float:
    """ε of `times` equal mechanisms by the lecture's formula: L6.T2 for pure ones, L6.T1 otherwise."""
    rule = AdvancedTaught(limit=dp.Approx(epsilon=1, delta=delta), each=each)
    return float(rule.total(rule.spend(rule.nothing, each, times=times)).epsilon)


def tight(each: dp.Guarantee, times: int, delta: float) -> float:
    """The least ε at this δ, by numerical composition that is never below the truth."""
    return dp.compose([each] * times).epsilon_at(delta=delta)


def pure_composition() -> Experiment:
    """k pure mechanisms: what the theorem says, the worst of all mechanisms, and Laplace noise."""
    return Experiment(
        name="l6-composition",
        title="Lecture 6 · k adaptive ε-DP mechanisms are together (ε̂, 10⁻⁶)-DP · ε̂",
        source="L6.T2",
        columns=(
            ReportColumn("epsilon", "ε of one", "given", "g"),
            ReportColumn("times", "k", "given", ",d"),
            ReportColumn("basic", "kε\nbasic sums", "taught", ".3f"),
            ReportColumn("taught", "ε̂, Theorem 2", "taught", ".3f"),
            ReportColumn("tight", "ε̂, any\nmechanisms", "tight", ".3f"),
            ReportColumn("laplace", "ε̂, Laplace\nnoise", "tight", ".3f"),
        ),
        rows=tuple(_pure_row(epsilon, times) for epsilon, times in REPEATED),
        notes=(
            "Taught: 2kε² + ε√(2k ln(1/δ̂)). Its first term is four times too large (L6.L4 bounds the mean loss by",
            "2ε², it is at most ε·tanh(ε/2) ≈ ε²/2), and Azuma's inequality forgets how the losses are distributed.",
            "Tight: the composition of the worst ε-DP mechanism, randomized response. Laplace noise often loses",
            "less than ε.",
        ),
    )


def _pure_row(epsilon: float, times: int) -> dict[str, Any]:
    each = dp.Pure(epsilon=epsilon)
    noise = dp.Laplace.for_guarantee(each, sensitivity=1).guarantee(sensitivity=1)
    return {
        "epsilon": epsilon,
        "times": times,
        "basic": epsilon * times,
        "taught": taught(each, times, DELTA),
        "tight": tight(each, times, DELTA),
        "laplace": tight(noise, times, DELTA),
    }


def approximate_composition() -> Experiment:
    """k mechanisms with δ: what the theorem says, the worst of all mechanisms, and Gaussian noise."""
    return Experiment(
        name="l6-composition-delta",
        title="Lecture 6 · k adaptive (ε, 10⁻⁹)-DP mechanisms are together (ε̂, 2kδ)-DP · ε̂",
        source="L6.T1",
        columns=(
            ReportColumn("epsilon", "ε of one", "given", "g"),
            ReportColumn("times", "k", "given", ",d"),
            ReportColumn("delta", "2kδ", "given", ".0e"),
            ReportColumn("taught", "ε̂, Theorem 1", "taught", ".3f"),
            ReportColumn("tight", "ε̂, any\nmechanisms", "tight", ".3f"),
            ReportColumn("gaussian", "ε̂, Gaussian\nnoise", "tight", ".3f"),
        ),
        rows=tuple(_approximate_row(epsilon, times) for epsilon, times in REPEATED),
        notes=(
            "Taught: 2kε² + ε√(2k ln(1/(kδ))). Tight: half of 2kδ may pay for the k leaks of δ, the rest for large",
            "losses; the library divides it exactly. Gaussian noise that is (ε, δ)-DP once: k of them are one",
            "Gaussian with μ√k, and no δ is added up.",
        ),
    )


def _approximate_row(epsilon: float, times: int) -> dict[str, Any]:
    each, delta = dp.Approx(epsilon=epsilon, delta=EACH_DELTA), 2 * times * EACH_DELTA
    noise = dp.Gaussian.for_guarantee(each, sensitivity=1).guarantee(sensitivity=1)
    return {
        "epsilon": epsilon,
        "times": times,
        "delta": delta,
        "taught": taught(each, times, 0.5),
        "tight": tight(each, times, delta),
        "gaussian": tight(noise, times, delta),
    }


# --- generalization ---------------------------------------------------------------------------------------


def generalization() -> Experiment:
    """How far all adaptive answers may be from the population: by the lecture, by the sharp theorem, and in a game."""
    return Experiment(
        name="l6-generalization",
        title="Lecture 6 · k adaptive questions to n rows · distance from the population",
        source="L6.T9, L6.GAME",
        columns=(
            ReportColumn("rows", "n", "given", ",d"),
            ReportColumn("questions", "k", "given", ",d"),
            ReportColumn("taught", "α + 10ε\nTheorem 9", "taught", ".3f"),
            ReportColumn("tight", "width,\nGaussian noise", "tight", ".3f"),
            ReportColumn("splitting", "width, fresh rows\nfor each question", "exact", ".3f"),
            ReportColumn("fixed", "width, questions\nfixed in advance", "exact", ".3f"),
            ReportColumn("raw_observed", "no noise,\nworst error", "observed", ".3f"),
            ReportColumn("private_observed", "noise,\nworst error", "observed", ".3f"),
        ),
        rows=tuple(_study_row(size, questions) for size, questions in STUDIES),
        notes=(
            "Width: all answers are within, 95% sure; 1 says nothing. Taught: Laplace noise by L6.C5, the best ε,",
            "constants as printed. Tight: an exact transfer theorem (docs/decisions/0009). Observed: one game in",
            "each row. The features are coins, and the analyst asks about each, then for the vote of those that",
            "looked right. True answers are 0.5; without noise, 200 questions exceed the width for fixed ones.",
        ),
    )


def _study_row(size: int, questions: int) -> dict[str, Any]:
    methods = ("taught", "gaussian", *(("splitting",) if questions <= size else ()), "Bonferroni")
    found = {row["method"]: row["width"] for row in dp.adaptive.plan(size, questions, 1 - MISS, methods=methods).rows}
    return {
        "rows": size,
        "questions": questions,
        "taught": found["taught"],
        "tight": found["gaussian"],
        "splitting": found.get("splitting"),
        "fixed": found["Bonferroni"],
        "raw_observed": worst_error(size, questions, private=False) if size <= MOST_PLAYED else None,
        "private_observed": worst_error(size, questions, private=True) if size <= MOST_PLAYED else None,
    }


def worst_error(size: int, questions: int, *, private: bool) -> float:
    """The largest error in one game against the analyst who votes with what looked right."""

    def begin(rows: game.Columns) -> game.MeanOracle:
        if private:
            return dp.adaptive.study(rows, queries=questions, method="gaussian", size=size)
        return game.Raw(rows, questions=questions)

    return game.play(game.Population.of_noise(questions - 1), game.boost, begin, size=size).worst
