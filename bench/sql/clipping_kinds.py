"""Questions with several kinds of numbers: how their limits become one, and how what is lost of each is measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.report import line, notes, table
from bench.sql.clipping_people import FAMILIES, absolute_error, law, limits_of, upper_noise
from discreet.mechanisms.selection.person_limits import people_above
from discreet.mechanisms.selection.upward_search import BAR, OFFSET
from discreet.sql.pricing.clipping import MOST_ABOVE, PEOPLE, share_searched

BAR_PART, LATER, PEOPLE_PER_CELL, ANSWERABLE = float(BAR), float(OFFSET), float(PEOPLE), 0.15
KINDS, GROUPS, SIZES = (2, 4), (1, 20, 100), (300, 1000, 10**4, 10**5)
BASES = ("everybody 1", "Poisson(5)", "Zipf", "half 1, half 100", "lognormal, σ 1.5")
DRAWS = 16


def _activity(base: str, n: int, rng: Any) -> Any:
    return np.ceil(FAMILIES[base](rng, n) / (100 if base.startswith("lognormal") else 1))


RELATED: dict[str, Callable[[Any, int, Any], Any]] = {
    "sums of independent values": lambda rows, k, rng: np.exp((0.5 + 0.5 * k) * rng.standard_normal(len(rows))),
    "sums that grow with the rows": lambda rows, k, rng: rows * np.exp(0.5 * rng.standard_normal(len(rows))),
    "sums of nearly equal values": lambda rows, k, rng: (
        rows * (1 + 0.2 * rng.standard_normal(len(rows)) / np.sqrt(rows)).clip(0.1, 3)
    ),
    "centered sums": lambda rows, k, rng: np.sqrt(rows) * np.abs(rng.standard_normal(len(rows))),
    "differences of people": lambda rows, k, rng: rows * np.abs(rng.standard_normal(len(rows))),
}


def people_of(related: str, base: str, n: int, kinds: int, rng: Any) -> Any:
    """The totals of n people: rows, and sums of other kinds."""
    rows = _activity(base, n, rng)
    return np.array([rows, *(250 * 3**k * RELATED[related](rows, k, rng) for k in range(1, kinds))])


def shares(kinds: int, groups: int) -> tuple[float, float]:
    """The part of ε for all searches, and what a person above the limit adds."""
    cells = kinds * groups
    return float(share_searched(kinds, cells)), min(float(MOST_ABOVE), 1 / math.isqrt(4 * cells))


def error(totals: Any, scales: Any, limit: float, groups: int, epsilon: float) -> float:
    """The mean over kinds of the mean absolute error, over the total. Groups are as popular as words."""
    norms = (totals / scales[:, None]).sum(0)
    lost = (totals * (1 - np.minimum(1, limit / norms))).sum(1)
    popular = 1 / np.arange(1, groups + 1)
    cells = lost[:, None] * popular / popular.sum()
    return float((absolute_error(cells, (limit * scales / epsilon)[:, None]).sum(1) / totals.sum(1)).mean())


def best(totals: Any, groups: int, epsilon: float) -> float:
    """The least error over limits at one rank for all kinds, with all of ε."""
    ordered = -np.sort(-totals, axis=1)
    ranks = [rank for rank in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if rank < totals.shape[1] / 2]
    limits = [2 ** (k / 2) for k in range(-1, 5) if 2 ** (k / 2) <= 1.5 * len(totals)]
    return min(error(totals, ordered[:, rank], limit, groups, epsilon) for rank in ranks for limit in limits)


def draw_scales(totals: Any, enough: float, rate: float, draws: int, rng: Any) -> Any:
    """Limits of all kinds, drawn by the law of their searches."""
    found = []
    for kind, own in enumerate(totals):
        limits = limits_of(counted=kind == 0)
        stops = law(people_above(own, limits), enough, BAR_PART * rate, (1 - BAR_PART) * rate)
        found.append(limits[rng.choice(len(limits), draws, p=stops / stops.sum())])
    return np.array(found).T


def outcomes(totals: Any, groups: int, rng: Any, power: float, joint: float) -> tuple[Any, Any]:
    """Weights and errors at ε = 1: with the limit kinds^power, or with one that a second search finds."""
    kinds = len(totals)
    part, a = shares(kinds, groups)
    people, each = PEOPLE_PER_CELL * kinds * groups / (1 - part), part * (1 - joint) / kinds
    weights, errors = [], []
    for scales in draw_scales(totals, math.ceil(people + LATER / ((1 - BAR_PART) * each)), each, DRAWS, rng):
        limits, stops = np.array([kinds**power]), np.ones(1)
        if joint:
            limits = 2 ** (np.arange(2 * math.log2(kinds) + 1) / 2)
            rate, norms = part * joint, (totals / scales[:, None]).sum(0)
            enough = math.ceil(people + LATER / ((1 - BAR_PART) * rate))
            stops = law(people_above(norms, limits), enough, BAR_PART * rate, (1 - BAR_PART) * rate)
        for weight, limit in zip(stops, limits, strict=True):
            if weight > 1e-4:
                weights.append(weight / DRAWS)
                errors.append(error(totals, scales, limit, groups, (1 - part) / (1 + a)))
    return np.array(weights), np.array(errors)


def one_limit(sizes: tuple[int, ...], groups: tuple[int, ...], bases: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    settings = [
        (totals, count, least)
        for related in RELATED
        for base in bases
        for n in sizes
        for kinds in KINDS
        for totals in [people_of(related, base, n, kinds, rng)]
        for count in groups
        if (least := best(totals, count, 1)) <= ANSWERABLE
    ]
    print(
        "\nSeveral kinds of numbers, each with its own limit; then one limit on the sum of a person's numbers, in "
        "units of these limits. Mean error (capped at 100%) in units of the best, and lost answers; ε = 1, "
        f"{len(settings)} settings.\n"
    )
    columns = [(kinds, count) for kinds in KINDS for count in groups]
    table("limit on the sum", *(f"{kinds} kinds, {count} group{'s' * (count > 1)}" for kinds, count in columns))
    ways: dict[str, tuple[float, float]] = {
        "**number of kinds** (chosen)": (1, 0),
        "its root": (0.5, 0),
        "its power .75": (0.75, 0),
        "found with a fifth of the search's ε": (1, 0.2),
        "found with half of it": (1, 0.5),
    }
    for name, (power, joint) in ways.items():
        row = []
        for kinds, count in columns:
            mine = [(t, least) for t, own, least in settings if (len(t), own) == (kinds, count)]
            drawn = [(*outcomes(t, count, np.random.default_rng(6), power, joint), least) for t, least in mine]
            mean = [float(w @ np.minimum(e, 1)) / w.sum() / least for w, e, least in drawn]
            lost = [float(w[e > 0.5].sum() / w.sum()) for w, e, _ in drawn]
            row.append(f"{np.exp(np.log(mean).mean()):.2f} · {np.mean(lost):.1%}" if mine else None)
        line(name, *row)
    notes(
        """The number of kinds needs no second search, and nobody exceeds it who exceeds none of the limits. A smaller
        limit cuts everybody if the kinds go together."""
    )


def coordinates(sizes: tuple[int, ...], groups: tuple[int, ...], runs: int) -> None:
    """One noisy number of people above the limit, or one for each kind."""
    print(
        "\nWhat is lost, measured by one number of people above the limit for all kinds, or by one for each kind (a "
        "person's part in it is the kind's part of the person). Coverage of intervals that say 95%, and their width in "
        "units of the noise alone: rows · sums of Pareto 2 values.\n"
    )
    table("people", "groups", "noise alone", "one number", "width", "one for each kind", "width, each")
    rng = np.random.default_rng(7)
    for n in sizes:
        for count in groups:
            totals = np.array([np.maximum(rng.poisson(5, n), 1.0), 250 * rng.random(n) ** -0.5])
            alone, one, each, wide, wider = (
                " · ".join(f"{value:.2f}" for value in found) for found in covered(totals, count, runs, rng)
            )
            line(f"{n:,}", count, alone, one, wide, each, wider)


def covered(totals: Any, groups: int, runs: int, rng: Any) -> list[Any]:
    """For each kind: coverage of the noise alone, with one number and with one for each kind, and both widths."""
    kinds = len(totals)
    part, a = shares(kinds, groups)
    left, each = 1 - part, part / kinds
    popular = 1 / np.arange(1, groups + 1)
    truth = np.outer(totals.sum(1), popular / popular.sum())
    enough = math.ceil(PEOPLE_PER_CELL * kinds * groups / left + LATER / ((1 - BAR_PART) * each))
    known = np.linspace(0, 1, 101)
    upper = np.array([upper_noise(max(w, 1e-6) / a) for w in known])
    found = []
    for scales in draw_scales(totals, enough, each, runs, rng):
        norms = (totals / scales[:, None]).sum(0)
        over = norms > kinds
        lost = (totals * (1 - np.minimum(1, kinds / norms))).sum(1)
        scale = (kinds * scales * (1 + a) / left)[:, None]
        y = truth - np.outer(lost, popular / popular.sum()) + scale * rng.laplace(size=truth.shape)
        jitter = (1 + a) / (a * left)
        above = over.sum() + jitter * rng.laplace()
        own = (totals[:, over] / scales[:, None] / norms[over]).sum(1) + jitter * rng.laplace(size=kinds)
        size = np.maximum(y / scales[:, None], 0)
        together = np.maximum(size / max(size.sum(), 1e-300), 1 / truth.size)
        apart = np.maximum(size / np.maximum(size.sum(1, keepdims=True), 1e-300), 1 / groups)
        noise = scale * math.log(20)
        row = [(np.abs(truth - y) <= noise).mean(1)]
        widths = []
        for weight, people in ((together, above), (apart, own[:, None])):
            missing = people * kinds * scales[:, None] * weight + scale * np.interp(weight, known, upper)
            more = np.maximum(noise, missing)
            row.append(((y - noise <= truth) & (truth <= y + more)).mean(1))
            widths.append(((noise + more) / (2 * noise)).mean(1))
        found.append([*row, *widths])
    return list(np.mean(found, axis=0))


def measure(quick: bool) -> None:
    if quick:
        one_limit((300,), (1,), BASES[:1])
        coordinates((300,), (1,), 20)
    else:
        one_limit(SIZES, GROUPS, BASES)
        coordinates((1000, 10**4, 10**5), (1, 20), 300)
