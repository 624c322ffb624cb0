"""The median of 3n/4 copies of 0 and n/4 copies of 1, by the score of the lecture and by the capped one
[L3.MED-DUP].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.mechanisms.quantiles.quantile import lattice_of
from discreet.reproduce.experiment import Experiment, ReportColumn
from discreet.reproduce.people import People

UNIT = dp.row(neighbors="replace")
PROMISE = dp.Pure(epsilon=1)
DRAWS = 200
CURVE = range(4, 273, 4)
Candidates = dp.queries.Grid | dp.Integers | dp.Interval
SPACES: dict[str, tuple[Candidates, Any, tuple[int, ...]]] = {
    "integers 0 … 1000": (dp.Integers(0, 1000), np.int64, (16, 32, 48, 64)),
    "doubles, steps of 1/1000": (dp.queries.Grid(0, 1, 0.001), np.float64, (40, 80, 120, 160)),
    "doubles, 2^32 points": (dp.Interval(0, 1), np.float64, (140, 160, 180, 200)),
}
"""Candidates for the answer, the type of the rows, and the tested numbers of rows."""


def run(people: People) -> tuple[Experiment, ...]:
    """How often the answer is 0, the true median: exactly, and in draws. Uses no people."""
    return (
        Experiment(
            name="repeated-values",
            title="The median of 3n/4 zeros and n/4 ones at ε = 1 · how often the answer is 0",
            source="L3.MED, L3.MED-DUP",
            columns=(
                ReportColumn("candidates", "candidates", "given"),
                ReportColumn("rows", "n", "given", "d"),
                ReportColumn("lecture", "lecture's score", "taught", ".4f"),
                ReportColumn("lecture_observed", "lecture's score", "observed", ".3f"),
                ReportColumn("capped", "capped score", "tight", ".4f"),
                ReportColumn("capped_observed", "capped score", "observed", ".3f"),
            ),
            rows=tuple(_row(name, n) for name in SPACES for n in SPACES[name][2]),
            notes=(
                "Lecture: −|#{x ≥ ℓ} − #{x ≤ ℓ}|, which one replaced row moves by 2. Capped: −max(0, n/2 −",
                "min(#≥, #≤)), moved by 1: as good with fewer rows, half of them in [0, 1]. The lecture's score must",
                f"list all candidates, so it has no row for 2^32 points. Observed: {DRAWS} draws in each row.",
            ),
            series={
                "sizes": CURVE,
                "curves": {name: [exact(name, n) for n in CURVE] for name in SPACES},
            },
        ),
    )


def rows_of(name: str, n: int) -> NDArray[Any]:
    """3n/4 copies of 0 and n/4 copies of 1, in the type of the candidates."""
    return np.repeat([0, 1], [3 * n // 4, n // 4]).astype(SPACES[name][1])


def exact(name: str, n: int) -> tuple[float | None, float]:
    """P[answer is 0] with the score of the lecture, if its candidates can be listed, and with the capped one."""
    space, rows = SPACES[name][0], rows_of(name, n)
    capped = _capped(space)
    if isinstance(space, dp.Interval):
        # every point except 0 misses by n/4 ranks
        others = len(lattice_of(space)) - 1
        return None, 1 / (1 + others * math.exp(-float(capped.rate) * n / 4))
    lecture = dp.queries.MedianScore(space)
    return (
        float(_lecture(lecture).probabilities(lecture(rows))[0]),
        float(dp.Exponential(rate=capped.rate).probabilities(dp.queries.QuantileScore(space)(rows))[0]),
    )


def _lecture(score: dp.queries.MedianScore) -> dp.Exponential:
    return dp.Exponential.for_guarantee(PROMISE, sensitivity=score.sensitivity(UNIT), calibration="taught")


def _capped(space: Candidates) -> dp.mechanisms.Quantile:
    return dp.mechanisms.Quantile.for_guarantee(PROMISE, space=space, unit=UNIT)


def _row(name: str, n: int) -> dict[str, Any]:
    space, rows = SPACES[name][0], rows_of(name, n)
    lecture, capped = exact(name, n)
    quantile = _capped(space)
    bound = quantile.sensitivity(UNIT)
    hits = sum(dp.release(rows, quantile, sensitivity=bound).value == 0 for _ in range(DRAWS))
    return {
        "candidates": name,
        "rows": n,
        "lecture": lecture,
        "lecture_observed": None if isinstance(space, dp.Interval) else _lecture_hits(space, rows) / DRAWS,
        "capped": capped,
        "capped_observed": hits / DRAWS,
    }


def _lecture_hits(space: dp.queries.Grid | dp.Integers, rows: NDArray[Any]) -> int:
    score = dp.queries.MedianScore(space)
    mechanism, scores, bound = _lecture(score), score(rows), score.sensitivity(UNIT)
    # candidate number 0 is the point 0
    return sum(dp.release(scores, mechanism, sensitivity=bound).value == 0 for _ in range(DRAWS))
