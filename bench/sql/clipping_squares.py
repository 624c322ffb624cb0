"""What people above a limit in L2 lose, and what is measured of it: the limit is on a norm, and rows are lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.report import line, notes, table
from bench.sql.clipping_people import COUNTED, SUMMED
from discreet.sql.running.loss import BEYOND

N, CELLS, ABOVE = 6000, (24, 300), 0.02
"""People, numbers of groups, and the part of the people that is above the limit."""
OWN = 3
"""So many groups has each person who has few."""
PEOPLE = {
    **{name: COUNTED[name] for name in ("Poisson(5)", "geometric, mean 5")},
    "5% of Poisson(2) have 5 to 29 more": lambda rng, n: (
        rng.poisson(2.2, n) + (rng.random(n) < 0.05) * rng.integers(5, 30, n)
    ),
    **{name: SUMMED[name] for name in ("lognormal, σ 1", "lognormal, σ 1.5", "Pareto 3", "Pareto 2", "Pareto 1.5")},
}
"""Numbers of rows of people; sums are divided by 100."""


def cells_of(rows: Any, groups: int, *, few: bool, rng: Any) -> Any:
    """The rows of each person in each group: anywhere, or in few groups."""
    who = np.repeat(np.arange(len(rows)), rows)
    own = rng.integers(0, groups, (len(rows), OWN))
    group = own[who, rng.integers(0, OWN, len(who))] if few else rng.integers(0, groups, len(who))
    return np.bincount(who * groups + group, minlength=len(rows) * groups).reshape(len(rows), groups)


def estimates(cells: Any) -> tuple[float, float, float]:
    """What is lost, and two estimates of it: as many limits as people are above, and what is measured."""
    norms, sums = np.sqrt((cells.astype(float) ** 2).sum(1)), cells.sum(1)
    most, of_sums = (max(1.0, float(np.quantile(values, 1 - ABOVE))) for values in (norms, sums))
    lost = sums * (1 - np.minimum(1, most / np.maximum(norms, 1e-9)))
    most_lost = max(1, round(min(math.sqrt(cells.shape[1]), of_sums / most)))
    measured = BEYOND * np.minimum(lost, most_lost * most).sum()
    return float(lost.sum()), float((norms > most).sum() * most), float(measured)


def measure(quick: bool = False) -> dict[str, bool]:
    """Both estimates over the truth, without noise, for people of all sorts."""
    print(
        f"\nIn L2, with {ABOVE:.0%} of {N:,} people above the limit: estimates of what they lose, in units of the "
        "truth, without noise:\n"
    )
    table("rows of a person", "in groups", "lost rows", "a limit for each person above", "measured")
    rng, found = np.random.default_rng(5), []
    for name, draw in PEOPLE.items():
        rows = np.round(draw(rng, N) / (100 if name in SUMMED else 1)).astype(np.int64).clip(0, 20_000)
        for groups in CELLS[:1] if quick else CELLS:
            for few in (False, True):
                lost, counted, measured = estimates(cells_of(rows, groups, few=few, rng=rng))
                place = f"{OWN} of {groups}" if few else f"any of {groups}"
                line(name, place, f"{lost:,.0f}", f"{counted / lost:.2f}", f"{measured / lost:.2f}")
                found.append((counted / lost, measured / lost))
    ratios = np.array(found)
    spread = [f"{float(low):.2g} to {float(high):.2g}" for low, high in zip(ratios.min(0), ratios.max(0), strict=True)]
    notes(
        f"""Many rows in many groups have a small norm, so a count of people says little: it is {spread[0]} times the
        truth. What is measured, with {BEYOND:g} times for what is beyond the largest loss, is {spread[1]} times.""",
    )
    met = ratios[:, 1].min() >= 2 / 3 and ratios[:, 1].max() <= 5 / 3
    return {"in L2, the estimate of what is lost is two to five thirds of the truth": bool(met)}
