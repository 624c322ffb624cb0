"""People to choose the constants of clipping on, the exact law of the upward search, and the error of every limit."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from discreet.mechanisms.selection.person_limits import people_above, thirds_of_octaves
from discreet.sql.pricing.clipping import _COARSE

DATA = Path(os.environ.get("ADULT") or Path(__file__).resolve().parents[3] / "shared" / "data")
STEP = 2**20
"""Sums are multiples of 1/STEP."""
Draw = Callable[[Any, int], Any]


def _rare(_: Any, n: int) -> Any:
    return np.where(np.arange(n) < max(n // 100, 1), 1000.0, 1.0)


def _lognormal(sigma: float) -> Draw:
    return lambda rng, n: 250 * np.exp(sigma * rng.standard_normal(n))


def _pareto(power: float) -> Draw:
    return lambda rng, n: 250 * rng.random(n) ** (-1 / power)


COUNTED: dict[str, Draw] = {
    "everybody 1": lambda rng, n: np.ones(n),
    "Poisson(5)": lambda rng, n: np.maximum(rng.poisson(5, n), 1.0),
    "geometric, mean 5": lambda rng, n: rng.geometric(0.2, n).astype(float),
    "Zipf": lambda rng, n: np.minimum(rng.zipf(2, n), 10**4).astype(float),
    "99% 1, 1% 1000": _rare,
    "half 1, half 100": lambda rng, n: np.where(np.arange(n) < n // 2, 100.0, 1.0),
}
SUMMED: dict[str, Draw] = {
    **{f"lognormal, σ {sigma:g}": _lognormal(sigma) for sigma in (0.5, 1, 1.5, 2)},
    **{f"Pareto {power:g}": _pareto(power) for power in (1.5, 2, 3)},
    "uniform": lambda rng, n: 3000 * rng.random(n),
}
FAMILIES = COUNTED | SUMMED


def limits_of(counted: bool, steps: int = 3) -> Any:
    """The public limits, `steps` for each octave: counts from 1 to 2^31, sums from 2^-10 to 2^42, with few below 1."""
    if steps == 3:
        whole = thirds_of_octaves(1, 2**31) if counted else [*_COARSE, *thirds_of_octaves(4 * _COARSE[-1], 2**62)]
        return np.array(whole, dtype=float) / (1 if counted else STEP)
    powers = 2.0 ** (np.arange((31 if counted else 42) * steps + 1) / steps)
    return np.unique(np.ceil(powers)) if counted else np.r_[np.array(_COARSE) / STEP, powers]


@lru_cache(maxsize=256)
def _bar_noise(rate: float) -> tuple[Any, Any]:
    """The geometric noise on the bar. Values are put together in blocks of a twentieth of its scale, if it is large."""
    width = max(int(0.05 / rate), 1)
    first = np.arange(0, 40 / rate, width)
    return first + (width - 1) / 2, np.exp(-rate * first) * -np.expm1(-rate * width)


def law(counts: Any, enough: float, bar_rate: float, step_rate: float) -> Any:
    """The probability that the upward search stops at each limit, if `counts` people exceed them."""
    bar, weight = _bar_noise(bar_rate)
    stops = np.exp(-step_rate * np.maximum(np.asarray(counts, float) - enough + bar[:, None], 0))
    stops[:, -1] = 1
    with np.errstate(divide="ignore"):
        on = np.cumsum(np.log1p(-stops[:, :-1]), axis=1)
    stops[:, 1:] *= np.exp(on)
    return weight @ stops


def absolute_error(lost: Any, scale: Any) -> Any:
    """The mean of |noise − lost| for Laplace noise."""
    return lost + scale * np.exp(-lost / scale)


class People:
    """The totals of some people, each of whom has a part of it in a few of the cells. Cells are as popular as words."""

    def __init__(self, name: str, totals: Any, counted: bool, rng: Any, cells: Any = None) -> None:
        self.name, self.totals, self.counted, self.n = name, totals, counted, len(totals)
        self._rng, self._cells, self._lost = rng, cells, {}

    def _parts(self, d: int) -> tuple[Any, Any, Any]:
        """A person, a cell, and the part of the person's total in it."""
        if d == 1:
            return np.arange(self.n), np.zeros(self.n, int), np.ones(self.n)
        if self._cells is not None:
            return np.arange(self.n), self._cells, np.ones(self.n)
        touched = 1 + self._rng.poisson(1, self.n)
        if self.counted:
            touched = np.minimum(touched, self.totals).astype(int)
        who = np.repeat(np.arange(self.n), touched)
        popular = np.cumsum(1 / np.arange(1, d + 1))
        cell = np.searchsorted(popular, popular[-1] * self._rng.random(len(who))).clip(0, d - 1)
        part = self._rng.exponential(size=len(who)) + 0.1
        return who, cell, part / np.bincount(who, part, self.n)[who]

    @cached_property
    def total(self) -> float:
        return float(self.totals.sum())

    @lru_cache(maxsize=8)  # noqa: B019  people live as long as the benchmark
    def above(self, steps: int = 3) -> tuple[Any, Any]:
        """The limits, and how many people exceed each."""
        limits = limits_of(self.counted, steps)
        return limits, np.array(people_above(self.totals, limits), float)

    @lru_cache(maxsize=8)  # noqa: B019
    def measured(self, most: int, steps: int = 3) -> Any:
        """For each limit, what people above it lose of so many limits: the sum of these parts, each at most 1."""
        limits = self.above(steps)[0]
        return np.array([np.clip((self.totals - limit) / (most * limit), 0, 1).sum() for limit in limits])

    def lost(self, d: int, steps: int = 3) -> tuple[Any, Any]:
        """What each cell has, and what it loses to each limit."""
        if (d, steps) not in self._lost:
            limits, _ = self.above(steps)
            who, cell, part = self._parts(d)
            place = np.searchsorted(limits, self.totals)[who] * d + cell
            whole, shares = (
                np.bincount(place, weights, (len(limits) + 1) * d).reshape(-1, d)[::-1].cumsum(0)[::-1]
                for weights in (part * self.totals[who], part)
            )
            self._lost[d, steps] = whole[0], np.maximum(whole[1:] - limits[:, None] * shares[1:], 0)
        return self._lost[d, steps]

    def errors(self, d: int, epsilon: float, steps: int = 3) -> Any:
        """For each limit: the sum of the mean absolute errors of all cells, over the sum of the cells."""
        limits, counts = self.above(steps)
        scale, lost = limits / epsilon, self.lost(d, steps)[1]
        useful = int(np.searchsorted(-counts, 0)) + 1
        found = scale * d
        found[:useful] = absolute_error(lost[:useful], scale[:useful, None]).sum(1)
        return found / self.total


def made_up(name: str, n: int, seed: int = 0) -> People:
    rng = np.random.default_rng([seed, n, list(FAMILIES).index(name)])
    return People(name, FAMILIES[name](rng, n), name in COUNTED, rng)


def real() -> list[tuple[People, int]]:
    """Public data with the number of cells, where the files are: Adult by occupation, and bikes by day."""
    found: list[tuple[People, int]] = []
    rng = np.random.default_rng(0)
    if (DATA / "adult.data").exists():
        with (DATA / "adult.data").open() as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
        jobs = sorted({row[6] for row in rows})
        for title, column, counted in (("hours", 12, True), ("capital gains", 10, False), ("weights", 2, False)):
            totals = np.array([float(row[column]) for row in rows])
            some = totals > 0
            cells = np.array([jobs.index(row[6]) for row in rows])[some]
            found.append((People(f"Adult: {title} by occupation", totals[some], counted, rng, cells), len(jobs)))
            found.append((People(f"Adult: {title}", totals[some], counted, rng), 1))
    if (DATA / "hour.csv").exists():
        with (DATA / "hour.csv").open() as file:
            hours = [row for row in csv.reader(file) if row[0].isdigit()]
        days = sorted({tuple(row[1:4]) for row in hours})
        named = np.array([days.index(tuple(row[1:4])) for row in hours])
        rented = np.bincount(named, [float(row[-1]) for row in hours])
        found.append((People("bikes rented on a day", rented, True, rng), 1))
    return found


def upper_noise(ratio: float, tail: float = 0.025) -> float:
    """What L + ratio·L' exceeds with probability `tail`, for two independent Laplace variables of scale 1."""

    def exceeds(x: float) -> float:
        if abs(ratio - 1) < 1e-3:
            return (2 + x) * math.exp(-x) / 4
        return (ratio**2 * math.exp(-x / ratio) - math.exp(-x)) / (2 * (ratio**2 - 1))

    low, high = 0.0, 1000 * max(ratio, 1)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeds(middle) > tail else (low, middle)
    return high
