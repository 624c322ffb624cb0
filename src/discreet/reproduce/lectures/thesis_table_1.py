"""The attack of the thesis's introduction: two sums whose difference is the diagnosis of one patient (table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.reproduce.experiment import Experiment, ReportColumn

PATIENTS: Mapping[str, int] = {"Anja": 1, "Bojan": 1, "Cene": 0, "Darja": 0, "Edi": 1}
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
ATTACKS = 4000
ANSWERS = 2


def run() -> tuple[Experiment, ...]:
    """How often the attacker guesses Edi's diagnosis, without noise and with it."""
    return (attack(),)


def attack() -> Experiment:
    """Q₅ − Q₄, exact and noisy, and the best guess of an attacker who knows the other four."""
    return Experiment(
        name="t-table-1",
        title="Thesis, table 1 · Does Edi have diabetes? · an attacker asks for two sums",
        source="the thesis, introduction; T.3.6",
        columns=(
            ReportColumn("epsilon", "ε of both", "given", "g"),
            ReportColumn("scale_taught", "b, noise on\neach sum", "taught", ".1f"),
            ReportColumn("scale_tight", "b, noise on\neach group", "tight", ".1f"),
            ReportColumn("allowed", "guesses right,\nat most", "taught", ".4f"),
            ReportColumn("difference", "Q₅ − Q₄,\neach sum", "exact", ".4f"),
            ReportColumn("difference_observed", "Q₅ − Q₄,\neach sum", "observed", ".4f"),
            ReportColumn("knows", "knows the rest,\neach sum", "exact", ".4f"),
            ReportColumn("knows_tight", "knows the rest,\neach group", "tight", ".4f"),
        ),
        rows=(_without_noise(), *map(_row, EPSILONS)),
        notes=(
            "Q₄ and Q₅ are the sums of the first four and five rows. The first row has no noise. Guesses are right",
            "half of the time without any data. At most: e^ε/(1+e^ε), for any attacker and any ε-DP answers. Each",
            "sum: Laplace noise 2/ε on Q₄ and on Q₅, since one patient may be in both. Each group: the first four",
            "and Edi are disjoint, so noise 1/ε on each of the two counts keeps the same ε, and Q₅ is their sum.",
            f"Observed: {ATTACKS:,} attacks with diabetes and as many without.",
        ),
    )


def sums(edi: int) -> NDArray[np.int64]:
    """Q₄ and Q₅, if Edi's diagnosis is this one."""
    first = sum(bit for name, bit in PATIENTS.items() if name != "Edi")
    return np.array([first, first + edi])


def noise_on_sums(epsilon: float) -> dp.Laplace:
    """Noise for two sums that one patient moves by 1 each."""
    return dp.Laplace.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=ANSWERS, step=1)


def noise_on_groups(epsilon: float) -> dp.Laplace:
    """Noise for two counts of different patients: one patient moves one of them."""
    return dp.Laplace.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=1, step=1)


def right_by_difference(noise: dp.Laplace) -> float:
    """How often "diabetes if Q₅ − Q₄ is at least 1" is right: (1 + P[both noises are equal])/2."""
    ratio = math.exp(-1 / float(noise.scale))
    equal = ((1 - ratio) / (1 + ratio)) ** 2 * (1 + ratio**2) / (1 - ratio**2)
    return (1 + equal) / 2


def right_if_known(noise: dp.Laplace) -> float:
    """How often the best guess from one noisy count is right, if all others are known: (1 + total variation)/2."""
    return (1 + noise.guarantee(sensitivity=1).delta_at(epsilon=0)) / 2


def _without_noise() -> dict[str, Any]:
    certain = sums(1)[1] - sums(1)[0] == 1 and sums(0)[1] - sums(0)[0] == 0
    return {
        "epsilon": None,
        "scale_taught": None,
        "scale_tight": None,
        "allowed": None,
        "difference": float(certain),
        "difference_observed": float(certain),
        "knows": float(certain),
        "knows_tight": None,
    }


def _row(epsilon: float) -> dict[str, Any]:
    each, group = noise_on_sums(epsilon), noise_on_groups(epsilon)
    return {
        "epsilon": epsilon,
        "scale_taught": float(each.scale),
        "scale_tight": float(group.scale),
        "allowed": 1 / (1 + math.exp(-epsilon)),
        "difference": right_by_difference(each),
        "difference_observed": (_seen(each, 1) + _seen(each, 0)) / 2,
        "knows": right_if_known(each),
        "knows_tight": right_if_known(group),
    }


def _seen(noise: dp.Laplace, edi: int) -> float:
    """How often the difference gave the right guess."""
    truth = np.tile(sums(edi), (ATTACKS, 1))
    answers = dp.release(truth, noise, sensitivity=ANSWERS * ATTACKS).value
    guesses = answers[:, 1] - answers[:, 0] >= 1
    return float((guesses == bool(edi)).mean())
