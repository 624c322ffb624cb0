"""Lecture 8: the shuffle model. Bit sums [L8.SUM] and histograms [L8.HIST1], [L8.HIST2]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import discreet as dp
from discreet.reproduce.experiment import Experiment, ReportColumn

PROMISE = dp.Approx(epsilon=1, delta=1e-6)
CONFIDENCE = 0.95
CLIENTS = (1_000, 10_000, 100_000)
RUNS = 20
MOST_ASKED = 10_000
CHOICES = (4, 32, 256)
VOTERS = 10_000
HELD = 4
"""Only the first choices are held by anybody."""


def run() -> tuple[Experiment, ...]:
    """Bit sums and histograms."""
    return bit_sums(), histograms()


# --- bit sums ---------------------------------------------------------------------------------------------


def bit_sums() -> Experiment:
    """How many clients hold a one: the lecture's noise, the least noise, one message, and the two other models."""
    return Experiment(
        name="l8-sum",
        title="Lecture 8 · How many clients hold a 1? · ε = 1, δ = 10⁻⁶",
        source="L8.SUM",
        columns=(
            ReportColumn("clients", "n", "given", ",d"),
            ReportColumn("noise_taught", "noise bits\nnp", "taught", ".0f"),
            ReportColumn("noise_tight", "noise bits\nnp", "tight", ".1f"),
            ReportColumn("delta_taught", "log₁₀ of\ntrue δ", "taught", ".0f"),
            ReportColumn("deviation_local", "σ, local\nmodel", "exact", ".1f"),
            ReportColumn("deviation_taught", "σ, two\nbits", "taught", ".1f"),
            ReportColumn("deviation_tight", "σ, two\nbits", "tight", ".2f"),
            ReportColumn("deviation_one", "σ, one\nbit", "tight", ".2f"),
            ReportColumn("deviation_central", "σ, central\nmodel", "exact", ".2f"),
            ReportColumn("tight_observed", "σ, two\nbits", "observed", ".2f"),
        ),
        rows=tuple(map(_sum_row, CLIENTS)),
        notes=(
            "Taught: p = 48 ln(2/δ)/(ε²n), from Chernoff's bound and a bound on the ratio of neighboring",
            "probabilities. Tight: the least p for which Binomial(n, p) and the same plus one are within (ε, δ),",
            "exactly. One bit: each client sends one bit, turned with some probability. σ: the standard deviation",
            f"of the count. Local and central have δ = 0. Observed: root mean square error of {RUNS} polls.",
        ),
    )


def poll(method: str, clients: int, calibration: str = "tight") -> Any:
    """A bit sum of the lecture ("two messages") or with one message ("response")."""
    return dp.shuffle.bit_sum(
        clients=clients, epsilon=PROMISE.epsilon, delta=PROMISE.delta, method=method, calibration=calibration
    )


def _sum_row(clients: int) -> dict[str, Any]:
    taught, tight, one = (
        poll("two messages", clients, "taught"),
        poll("two messages", clients),
        poll("response", clients),
    )
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=PROMISE.epsilon), choices=(0, 1))
    lie = float(response.lie)
    central = dp.Laplace.for_guarantee(dp.Pure(epsilon=PROMISE.epsilon), sensitivity=1)
    return {
        "clients": clients,
        "noise_taught": clients * float(taught.chance),
        "noise_tight": clients * float(tight.chance),
        "delta_taught": math.log10(taught.guarantee().delta_at(epsilon=PROMISE.epsilon)),
        "deviation_local": math.sqrt(clients * lie * (1 - lie)) / (1 - 2 * lie),
        "deviation_taught": taught.deviation,
        "deviation_tight": tight.deviation,
        "deviation_one": one.deviation,
        "deviation_central": central.deviation,
        "tight_observed": _seen(tight, clients) if clients <= MOST_ASKED else None,
    }


def _seen(made: Any, clients: int) -> float:
    bits = np.arange(clients) % 2
    errors = [made.analyze(made.encode_many(bits)).value - bits.sum() for _ in range(RUNS)]
    return float(np.sqrt(np.mean(np.square(errors))))


# --- histograms -------------------------------------------------------------------------------------------


def histograms() -> Experiment:
    """How many clients hold each of |D| choices: two histograms of the lecture, and the default of the library."""
    return Experiment(
        name="l8-histogram",
        title=f"Lecture 8 · A histogram of {VOTERS:,} clients, who hold {HELD} of |D| choices · ε = 1, δ = 10⁻⁶",
        source="L8.HIST1, L8.HIST2",
        columns=(
            ReportColumn("choices", "|D|", "given", "d"),
            ReportColumn("first_taught", "within,\nparallel", "taught", ".0f"),
            ReportColumn("first_tight", "within,\nparallel", "tight", ".1f"),
            ReportColumn("fakes", "within,\nfakes", "tight", ".1f"),
            ReportColumn("lost_taught", "lost below,\ninverted", "taught", ".0f"),
            ReportColumn("lost_tight", "lost below,\ninverted", "tight", ".0f"),
            ReportColumn("empty_first_observed", "largest empty\nparallel", "observed", ".1f"),
            ReportColumn("empty_inverted_observed", "largest empty\ninverted", "observed", ".1f"),
        ),
        rows=tuple(map(_histogram_row, CHOICES)),
        notes=(
            "Parallel sums: one bit sum for each choice. A replaced client moves two of them: taught with ε/2 and",
            "δ/2 for each, tight with the exact law of both. Within: all counts, 95% sure; it grows as √ln|D|.",
            "Inverted sums send 0 at the own choice: a choice that nobody holds is reported as exactly 0, but a",
            "count below about np may be lost. Fake messages, the default: each client sends its choice among a few",
            "random ones.",
        ),
    )


def counted(method: str, choices: int, calibration: str = "tight") -> Any:
    """A histogram over this many choices."""
    return dp.shuffle.histogram(
        choices=tuple(range(choices)),
        clients=VOTERS,
        epsilon=PROMISE.epsilon,
        delta=PROMISE.delta,
        method=method,
        calibration=calibration,
    )


def _histogram_row(choices: int) -> dict[str, Any]:
    first, inverted = counted("parallel", choices), counted("inverted", choices)
    return {
        "choices": choices,
        "first_taught": float(counted("parallel", choices, "taught").error(CONFIDENCE)),
        "first_tight": float(first.error(CONFIDENCE)),
        "fakes": float(counted("fakes", choices).error(CONFIDENCE)),
        "lost_taught": VOTERS * float(counted("inverted", choices, "taught").chance),
        "lost_tight": VOTERS * float(inverted.chance),
        "empty_first_observed": _largest_empty(first),
        "empty_inverted_observed": _largest_empty(inverted),
    }


def _largest_empty(made: Any) -> float | None:
    """The largest count that is reported for a choice nobody holds. None if every choice is held."""
    if len(made.choices) <= HELD:
        return None
    found = made.analyze(made.encode_many(np.arange(VOTERS) % HELD)).value
    return float(max(abs(found[choice]) for choice in made.choices[HELD:]))
