"""Private once, but not if asked again: (ε, δ) with fresh noise for every answer is not kept under repetition
[T.4.5].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import discreet as dp
from discreet.guarantees.finite.verify import Verified, repeat
from discreet.reproduce.experiment import Experiment, ReportColumn
from discreet.reproduce.people import People

EPSILON, DELTA = 0.1, 0.4
RESPONSE = dp.RandomizedResponse(choices=(0, 1), lie=0.286)
TIMES = (1, 2, 3, 5, 10)
ANSWERS = 20_000
PRINTED = {2: (0.5098, 0.0817)}


def run(people: People) -> tuple[Experiment, ...]:
    """Exactly, by enumeration, and as observed in answers for a truth of 0 and of 1. Uses no people."""
    return (
        Experiment(
            name="repetition",
            title="Private once, not twice · the binary response at ε = 0.1, δ = 0.4, p = 0.286",
            source="T.4.5",
            columns=(
                ReportColumn("times", "asked", "given"),
                ReportColumn("likely", "P[event]\ntruth 0", "exact", ".4f"),
                ReportColumn("unlikely", "P[event]\ntruth 1", "exact", ".4f"),
                ReportColumn("allowed", "e^ε·P + δ\nallowed", "exact", ".4f"),
                ReportColumn("likely_printed", "P[event]\ntruth 0", "printed", ".4f"),
                ReportColumn("unlikely_printed", "P[event]\ntruth 1", "printed", ".4f"),
                ReportColumn("delta", "δ(0.1)\nfresh", "exact", ".4f"),
                ReportColumn("delta_observed", "δ(0.1)\nfresh", "observed", ".4f"),
                ReportColumn("delta_once", "δ(0.1)\nonce", "exact", ".4f"),
                ReportColumn("verdict", "fresh is", "given"),
            ),
            rows=tuple(map(_row, TIMES)),
            notes=(
                "The event is the worst one: the answers likelier under 0 by more than e^ε (asked twice: both are 0).",
                "Fresh: noise drawn anew for every answer. Once: noise drawn once and published, then read as often as",
                f"one likes. Seen in {ANSWERS:,} runs on each truth.",
                "(0.286² = 0.0818; the thesis cut the last digit.)",
            ),
            series={
                "times": list(range(1, 13)),
                "fresh": [exact_promise(k).delta_at(epsilon=EPSILON) for k in range(1, 13)],
                "once": dp.verify(RESPONSE).delta_at(epsilon=EPSILON),
            },
        ),
    )


def exact_promise(times: int) -> Verified:
    """The exact guarantee of this many answers with fresh noise."""
    return dp.verify(repeat(RESPONSE, times))


def _row(times: int) -> dict[str, Any]:
    found = exact_promise(times)
    law = found.worst(EPSILON)
    event = found.worst_event(EPSILON)
    first, second = found.worst_pair(EPSILON)
    inside = [output in event for output in law.laws.outputs]
    likely, unlikely = (
        sum(weight for weight, counts in zip(weights, inside, strict=True) if counts) / law.laws.total
        for weights in zip(*law.weights(), strict=True)
    )
    # an output of `repeat` is the number of answers that were 0 and the number that were 1
    zeros = {output[0] for output in event if isinstance(output, tuple)}
    printed = PRINTED.get(times, (None, None))
    growth = math.exp(EPSILON)
    return {
        "times": times,
        "likely": likely,
        "unlikely": unlikely,
        "allowed": growth * unlikely + DELTA,
        "likely_printed": printed[0],
        "unlikely_printed": printed[1],
        "delta": found.delta_at(epsilon=EPSILON),
        "delta_observed": _frequency(first, times, zeros) - growth * _frequency(second, times, zeros),
        "delta_once": dp.verify({x: {(y,) * times: p for y, p in law.items()} for x, law in RESPONSE.laws().items()})
        .delta_at(epsilon=EPSILON),
        "verdict": "private" if found.delta_at(epsilon=EPSILON) <= DELTA else "BROKEN",
    }  # fmt: skip


def _frequency(truth: Any, times: int, zeros: set[int]) -> float:
    """How often the event was observed: this many of `times` fresh answers are 0."""
    answers = np.array(dp.release([truth] * (times * ANSWERS), RESPONSE).value).reshape(ANSWERS, times)
    return float(np.isin((answers == 0).sum(axis=1), list(zeros)).mean())
