"""Distinguishing a true value of 19 from 20 by k repeated Laplace answers: hard until ε√k is large [L6.DIST]."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp
from discreet.reproduce.experiment import Experiment, ReportColumn
from discreet.reproduce.people import People

VALUES = (19, 20)
EPSILONS = (0.1, 0.4, 1.6)
REACH = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""The tested values of ε√k."""
TRIALS = 4000
_BATCH = 500


def run(people: People) -> tuple[Experiment, ...]:
    """The advantage over a coin: the taught bound, the exact value by composition, and the observed one. Uses no
    people.
    """
    tried = [(e, round((reach / e) ** 2)) for e in EPSILONS for reach in REACH if reach >= e]
    return (
        Experiment(
            name="nineteen-or-twenty",
            title="19 or 20? · what k repeated Laplace answers give away",
            source="L6.DIST",
            columns=(
                ReportColumn("epsilon", "ε of one\nanswer", "given", "g"),
                ReportColumn("times", "k", "given", "d"),
                ReportColumn("reach", "ε√k", "given", ".2g"),
                ReportColumn("advantage_basic", "tanh(kε/2)\nbasic sums", "taught", ".4f"),
                ReportColumn("advantage_taught", "min(1, ε√k)", "taught", ".4f"),
                ReportColumn("advantage", "advantage", "tight", ".4f"),
                ReportColumn("advantage_observed", "advantage", "observed", ".4f"),
            ),
            rows=tuple(_row(epsilon, times) for epsilon, times in tried),
            notes=(
                "Advantage: P[guess 19 | 19] − P[guess 19 | 20] of the best guess. Basic sums say kε; the lecture's √k",
                "is L6.L4 (the mean loss is at most 2ε²) with Pinsker's inequality; tight is the exact total",
                "variation, rounded up, from dp.compose([…]).delta_at(epsilon=0).",
                f"Observed: the likelihood-ratio guess, {TRIALS: ,} times on each value.",
            ),
        ),
    )


def noise(epsilon: float) -> dp.Laplace:
    """The noise of one answer."""
    return dp.Laplace.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=1)


def advantage(epsilon: float, times: int) -> float:
    """The exact advantage of the best guess from `times` answers, rounded up."""
    return dp.compose([noise(epsilon).guarantee(sensitivity=1)] * times).delta_at(epsilon=0)


def _row(epsilon: float, times: int) -> dict[str, Any]:
    reach = epsilon * math.sqrt(times)
    first, second = (_guesses_first(value, epsilon, times) for value in VALUES)
    return {
        "epsilon": epsilon,
        "times": times,
        "reach": reach,
        "advantage_basic": math.tanh(float(Fraction(repr(epsilon)) * times / 2)),
        "advantage_taught": min(1.0, reach),
        "advantage": advantage(epsilon, times),
        "advantage_observed": first - second,
    }


def _guesses_first(truth: int, epsilon: float, times: int) -> float:
    """How often the likelihood ratio of `times` answers favors the first value."""
    mechanism, (low, high) = noise(epsilon), VALUES
    count = 0
    for _ in range(TRIALS // _BATCH):
        truths = np.full((_BATCH, times), truth)
        answers = dp.release(truths, mechanism, sensitivity=truths.size).value
        loss = (np.abs(answers - high) - np.abs(answers - low)).sum(axis=1)
        count += int((loss > 0).sum())
    return count / TRIALS
