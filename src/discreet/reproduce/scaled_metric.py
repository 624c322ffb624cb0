"""The false Remark 7.3: measuring in thousands of dollars does not make the dollars more private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.reproduce import numeric
from discreet.reproduce.experiment import Experiment, ReportColumn, promise
from discreet.reproduce.people import People

LOW, HIGH = 1504, 4500
"""The lowest and the highest salary of the thesis, 2996 apart."""
FACTOR = 1000
ANSWERS = 20_000


def run(people: People) -> tuple[Experiment, ...]:
    """The real guarantee of the noise in the remark, and how often two salaries can be distinguished."""
    found = [_compare(wanted) for wanted in numeric.PRINTED]
    wanted = numeric.PRINTED[0]
    return (
        Experiment(
            name="remark-7.3",
            title="The false Remark 7.3 · the metric divided by 1000",
            source="T.4.9",
            columns=(
                ReportColumn("promise", "(ε, δ)\nclaimed", "given"),
                ReportColumn("scale", "b", "taught", ".0f"),
                ReportColumn("scale_remark", "b of the\nremark", "taught", ".3g"),
                ReportColumn("delta", "true δ\nwith b", "exact", ".3f"),
                ReportColumn("delta_remark", "true δ\nremark", "exact", ".6f"),
                ReportColumn("right", "guessed\nwith b", "exact", ".4f"),
                ReportColumn("right_observed", "guessed\nwith b", "observed", ".4f"),
                ReportColumn("right_remark", "guessed\nremark", "exact", ".4f"),
                ReportColumn("right_remark_observed", "guessed\nremark", "observed", ".4f"),
            ),
            rows=tuple(found),
            notes=(
                f"Guessed: how often one noisy answer tells whether the salary is ${LOW} or ${HIGH} (0.5 is a coin).",
                "The diameter counts in the metric in which the noise is drawn: dividing both by 1000 changes nothing,",
                "dividing one of them gives all away.",
            ),
            series={
                "promise": promise(wanted.epsilon, wanted.delta),
                "answers": [
                    (_noise(wanted, factor), _answers(LOW, wanted, factor), _answers(HIGH, wanted, factor))
                    for factor in (1, FACTOR)
                ],
            },
        ),
    )


def _noise(wanted: numeric.PrintedNumbers, factor: int) -> dp.Laplace:
    """Taught noise for a diameter divided by `factor`."""
    diameter = numeric.PRINTED_DIAMETER / factor
    return dp.Laplace.for_guarantee(wanted.guarantee, sensitivity=diameter, calibration="taught")


def _answers(salary: int, wanted: numeric.PrintedNumbers, factor: int) -> NDArray[np.float64]:
    salaries = np.full(ANSWERS, salary)
    answers: NDArray[np.float64] = dp.release(
        salaries, _noise(wanted, factor), sensitivity=numeric.PRINTED_DIAMETER * ANSWERS
    ).value
    return answers


def _compare(wanted: numeric.PrintedNumbers) -> dict[str, Any]:
    row: dict[str, Any] = {"promise": promise(wanted.epsilon, wanted.delta)}
    for name, factor in (("", 1), ("_remark", FACTOR)):
        noise = _noise(wanted, factor)
        kept = noise.guarantee(sensitivity=numeric.PRINTED_DIAMETER)
        low, high = _answers(LOW, wanted, factor), _answers(HIGH, wanted, factor)
        middle = (LOW + HIGH) / 2
        row |= {
            f"scale{name}": float(noise.scale),
            f"delta{name}": kept.delta_at(epsilon=wanted.epsilon),
            # the best guess is right with probability (1 + total variation)/2
            f"right{name}": (1 + kept.delta_at(epsilon=0)) / 2,
            f"right{name}_observed": float((low < middle).mean() + (high > middle).mean()) / 2,
        }
    return row
