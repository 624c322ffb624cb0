"""Lecture 3: the exponential mechanism. An election [L3.EM], and many counting queries at once [L3.CQ]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.exact import public_draws
from discreet.mechanisms.counts.small_database import taught_accuracy, taught_rows
from discreet.reproduce.experiment import Experiment, ReportColumn

REPLACED, ADDED = dp.row(neighbors="replace"), dp.row()
CONFIDENCE = 0.95

VOTES: Mapping[str, int] = {"Ana": 400, "Bor": 380, "Cene": 150, "Dana": 50, "Eva": 20}
ELECTION_EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5)
ELECTIONS = 400

POINTS = 64
SIZES = (1_000, 10_000, 100_000)
DELTA = 1e-6
DRAWS = 3


def run() -> tuple[Experiment, ...]:
    """The election and the thresholds."""
    return election(), thresholds()


# --- the election -----------------------------------------------------------------------------------------


def election() -> Experiment:
    """Who won? The score of a candidate is the number of votes, and only the name of the chosen one is released."""
    return Experiment(
        name="l3-election",
        title="Lecture 3 · Who won the election? 1,000 votes, 5 candidates, a lead of 20",
        source="L3.EM, L3.EM-U",
        columns=(
            ReportColumn("epsilon", "ε", "given", "g"),
            ReportColumn("lost_taught", "votes lost,\nat most", "taught", ".0f"),
            ReportColumn("lost_tight", "votes lost,\nat most", "tight", ".0f"),
            ReportColumn("right_taught", "P[winner]", "taught", ".4f"),
            ReportColumn("right_flip", "P[winner]\nflip", "tight", ".4f"),
            ReportColumn("right_tight", "P[winner]\nadd/remove", "tight", ".4f"),
            ReportColumn("right_taught_observed", "winner,\ntaught", "observed", ".3f"),
            ReportColumn("right_tight_observed", "winner,\nadd/remove", "observed", ".3f"),
        ),
        rows=tuple(map(_election_row, ELECTION_EPSILONS)),
        notes=(
            "Taught: P ∝ exp(ε·votes/2), for a voter who is replaced. Flip: permute-and-flip, at the same promise",
            "never a worse choice. Add/remove: a voter who comes or goes moves all scores in one direction, so",
            f"exp(ε·votes) is enough. Votes lost: those that the chosen one lacks, {100 * CONFIDENCE:.0f}% sure, for",
            f"any five candidates. Observed: {ELECTIONS} elections in each row.",
        ),
        series={"votes": VOTES},
    )


def ballots() -> list[tuple[str]]:
    """One row for each voter, with the name on the ballot."""
    return [(name,) for name, votes in VOTES.items() for _ in range(votes)]


def choosers(epsilon: float) -> dict[str, Any]:
    """The three ways to choose, all ε-DP: as taught, permute-and-flip, and for voters who come or go."""
    promise, score = dp.Pure(epsilon=epsilon), dp.queries.Popularity(tuple(VOTES))
    replaced, added = score.sensitivity(REPLACED), score.sensitivity(ADDED)
    return {
        "taught": dp.Exponential.for_guarantee(promise, sensitivity=replaced, calibration="taught"),
        "flip": dp.mechanisms.PermuteAndFlip.for_guarantee(promise, sensitivity=replaced),
        "tight": dp.Exponential.for_guarantee(promise, sensitivity=added),
    }


def flip_chance(rate: float, scores: list[int], place: int) -> float:
    """The exact probability that permute-and-flip chooses the candidate at `place`.

    Candidates come at uniform times t, and each stops the search with probability p = exp(rate·(score − best)). So it
    is p·∫∏(1 − t·p') dt over the other candidates: the integral of a polynomial.
    """
    heads = np.exp(rate * (np.array(scores, dtype=np.float64) - max(scores)))
    others = np.polynomial.Polynomial([1.0])
    for chance in np.delete(heads, place).tolist():
        others *= np.polynomial.Polynomial([1.0, -chance])
    return float(heads[place] * others.integ()(1.0))


def _election_row(epsilon: float) -> dict[str, Any]:
    score = dp.queries.Popularity(tuple(VOTES))
    scores, made = score(ballots()), choosers(epsilon)

    def seen(name: str, unit: dp.Unit) -> float:
        bound = score.sensitivity(unit)
        chosen = [dp.release(scores, made[name], sensitivity=bound).value for _ in range(ELECTIONS)]
        return chosen.count(0) / ELECTIONS

    return {
        "epsilon": epsilon,
        "lost_taught": float(made["taught"].error(CONFIDENCE, candidates=len(VOTES))),
        "lost_tight": float(made["tight"].error(CONFIDENCE, candidates=len(VOTES))),
        "right_taught": float(made["taught"].probabilities(scores)[0]),
        "right_flip": flip_chance(float(made["flip"].rate), list(VOTES.values()), 0),
        "right_tight": float(made["tight"].probabilities(scores)[0]),
        "right_taught_observed": seen("taught", REPLACED),
        "right_tight_observed": seen("tight", ADDED),
    }


# --- all thresholds of a grid -----------------------------------------------------------------------------


def thresholds() -> Experiment:
    """How far off are all 64 answers "what share is at most d?" at once, by a small database and by other means?"""
    return Experiment(
        name="l3-counting-queries",
        title=f"Lecture 3 · {POINTS} counting queries at once, ε = 1 · the largest error α",
        source="L3.CQ, L3.CDF",
        columns=(
            ReportColumn("rows", "n", "given", ",d"),
            ReportColumn("small_taught", "m, rows of\nsmall database", "taught", ",d"),
            ReportColumn("alpha_taught", "α, small\ndatabase", "taught", ".4f"),
            ReportColumn("small_tight", "m, rows of\nsmall database", "tight", ",d"),
            ReportColumn("alpha_tight", "α, small\ndatabase", "tight", ".4f"),
            ReportColumn("alpha_observed", "α, small\ndatabase", "observed", ".4f"),
            ReportColumn("alpha_each", "α, noise on\neach answer", "taught", ".4f"),
            ReportColumn("alpha_sums", "α, prefix sums\nδ = 10⁻⁶", "tight", ".5f"),
        ),
        rows=tuple(map(_threshold_row, SIZES)),
        notes=(
            "α is a share of the rows. Taught: m = ⌈2 ln(2|C|)/α²⌉ and n = (4/(αε)) ln(|D|^m/β), solved for α at β",
            "= 0.05; the lecture's last line lost its 1/ε. Tight: the same exponential mechanism counts each",
            "database once and not each order of its rows, uses half a step as the error of the best one, and takes",
            "the best m. Noise on each answer: Laplace, |C|/(εn), the warm-up. Prefix sums: correlated Gaussian",
            f"noise. Observed: the worst of {DRAWS} databases.",
        ),
    )


def workload() -> dp.queries.Workload:
    """All thresholds c_d(x) = 1 iff x ≤ d over a grid."""
    return dp.queries.Workload.prefixes(dp.queries.Domain({"x": range(POINTS)}))


def small_database(size: int) -> Any:
    """The tight small database for this many rows, one of which may be replaced."""
    return dp.mechanisms.SmallDatabase.for_guarantee(
        dp.Pure(epsilon=1), workload=workload(), size=size, unit=REPLACED, confidence=CONFIDENCE
    )


def grid_rows(size: int) -> NDArray[np.int64]:
    """Rows of a hill over the grid: the sum of two uniform numbers."""
    half = POINTS // 2
    return np.asarray(public_draws.whole_numbers(half, size) + public_draws.whole_numbers(half, size), dtype=np.int64)


def _threshold_row(size: int) -> dict[str, Any]:
    asked, made = workload(), small_database(size)
    alpha = taught_accuracy(asked, size, 1, CONFIDENCE)
    every = asked.sensitivity(REPLACED)
    each = dp.Laplace.for_guarantee(dp.Pure(epsilon=1), sensitivity=every, calibration="taught")
    sums = dp.mechanisms.PrefixSums.for_guarantee(dp.Approx(epsilon=1, delta=DELTA), points=POINTS, unit=REPLACED)
    return {
        "rows": size,
        "small_taught": taught_rows(asked, alpha),
        "alpha_taught": alpha,
        "small_tight": made.rows,
        "alpha_tight": float(made.error(CONFIDENCE)) / size,
        "alpha_observed": max(_largest_error(made, size) for _ in range(DRAWS)),
        "alpha_each": min(1.0, float(each.error(CONFIDENCE, values=len(asked))) / size),
        "alpha_sums": float(sums.error(CONFIDENCE)) / size,
    }


def _largest_error(made: Any, size: int) -> float:
    rows = {"x": grid_rows(size)}
    drawn = dp.release(rows, made, sensitivity=made.sensitivity(REPLACED)).value
    return float(np.abs(made.answers(drawn) - made.workload.answers(rows)).max()) / size
