"""Streams of questions shaped like those of Turbo (SOSP 2023): tables, questions, and the peer itself, simulated.

Attributes, sizes and questions are the published ones. The rows are synthetic: for Covid drawn from the published
shares of the census and from shares of positive tests, for CitiBike from round shares of riders, hours and stations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ROWS = 500_000
"""The tables of the paper are larger. Errors there are shares of the rows, so their number cancels in every ratio."""
ALPHA, BETA = 0.05, 0.001
"""The error that is asked, as a share of the rows, and the probability to miss it."""
WITHIN = int(ALPHA * ROWS)
ALONE = math.log(1 / BETA) / WITHIN
"""ε of one count with this error, by Laplace noise."""

Asked = tuple[tuple[int, ...] | None, ...]
"""For each column the values that are counted. None if it is not mentioned."""


@dataclass(frozen=True)
class World:
    """A table of counts and all questions that are asked about it."""

    name: str
    columns: dict[str, int]
    questions: tuple[Asked, ...]
    counts: np.ndarray

    @cached_property
    def truths(self) -> np.ndarray:
        """The true count of every question."""
        return np.array([self.count(asked) for asked in self.questions])

    def count(self, asked: Asked) -> int:
        return int(self.counts[self.place(asked)].sum())

    def place(self, asked: Asked) -> tuple[np.ndarray, ...]:
        """The cells of a question, for numpy."""
        return np.ix_(*(range(n) if one is None else one for one, n in zip(asked, self.counts.shape, strict=True)))

    def row(self, asked: Asked) -> np.ndarray:
        """The cells of a question, as 0 and 1."""
        found = np.zeros(self.counts.shape)
        found[self.place(asked)] = 1
        return found.ravel()

    def around(self, asked: Asked) -> np.ndarray:
        """The groups around a question: all values of a column of which one is asked for, and for more of them two
        groups, these and all others.
        """
        rows = np.ones((1, 1))
        for one, size in zip(asked, self.counts.shape, strict=True):
            chosen = np.isin(np.arange(size), range(size) if one is None else one).astype(np.float64)
            halves = [chosen] if chosen.all() else [chosen, 1 - chosen]
            rows = np.kron(rows, np.eye(size) if chosen.sum() == 1 else np.stack(halves))
        return rows

    def sql(self, asked: Asked) -> str:
        terms = []
        for name, one in zip(self.columns, asked, strict=True):
            if one is not None:
                values = ", ".join(f"'{name}{value}'" for value in one)
                terms.append(f"{name} IN ({values})" if len(one) > 1 else f"{name} = {values}")
        return f"SELECT COUNT(*) AS n FROM {self.name}" + (f" WHERE {' AND '.join(terms)}" if terms else "")

    def stream(self, skew: float, length: int, seed: int) -> list[int]:
        """Questions drawn by Zipf's law with this exponent, in a random order of popularity."""
        rng = np.random.default_rng(seed)
        weights = 1 / np.arange(1, len(self.questions) + 1) ** skew
        order = rng.permutation(len(self.questions))
        return order[rng.choice(len(order), length, p=weights / weights.sum())].tolist()


def covid() -> World:
    """Tests for Covid in California: 128 cells, and all 34,425 conjunctions of sets of values."""
    columns = {"positive": 2, "age": 4, "gender": 2, "ethnicity": 8}
    ages, ethnicities = (0.224, 0.312, 0.312, 0.152), (0.002, 0.15, 0.402, 0.042, 0.004, 0.006, 0.343, 0.053)
    sick_ages, sick = (0.17, 0.55, 0.18, 0.10), (0.004, 0.075, 0.50, 0.016, 0.007, 0.075, 0.27, 0.053)
    negative = np.einsum("a,g,e->age", ages, (0.5, 0.5), ethnicities) * 0.93
    positive = np.einsum("a,g,e->age", sick_ages, (0.48, 0.52), sick) * 0.07
    sets = [[_set(bits, size) for bits in range(1, 2**size)] for size in columns.values()]
    return World("covid", columns, tuple(itertools.product(*sets)), _rounded(np.stack([negative, positive])))


STORIES = (
    "gender", "user_type", "user_type gender", "", "age", "start", "stop", "hour", "start stop", "gender age",
    "duration", "duration age", "duration gender", "duration gender age", "duration user_type", "start age", "stop age",
    "user_type age", "weekday", "weekday duration", "hour duration", "weekday hour", "user_type gender age",
    "hour start", "hour stop", "weekday start", "weekday stop", "weekday start stop", "hour start stop",
)  # fmt: skip
"""The columns by which public analyses of CitiBike count rides."""


def citibike() -> World:
    """Rides of CitiBike: 604,800 cells, and one question for each group of 29 public analyses."""
    columns = {"weekday": 7, "hour": 6, "duration": 6, "start": 10, "stop": 10, "user_type": 2, "gender": 3, "age": 4}
    stations = np.array([0.22, 0.17, 0.14, 0.12, 0.10, 0.08, 0.07, 0.05, 0.03, 0.02])
    routes = 0.5 * np.diag(stations) + 0.5 * np.outer(stations, stations)  # half of all rides stay where they began
    commute = np.array([0.02, 0.24, 0.20, 0.24, 0.25, 0.05]), np.array([0.05, 0.10, 0.27, 0.30, 0.20, 0.08])
    hours = np.stack(
        [commute[day >= 5] * share for day, share in enumerate((0.15, 0.16, 0.16, 0.15, 0.14, 0.13, 0.11))]
    )
    riders = np.einsum("u,g,a->uga", (0.15, 0.85), (0.10, 0.66, 0.24), (0.01, 0.72, 0.21, 0.06))
    riders[0] = 0.15 * np.einsum("g,a->ga", (0.45, 0.33, 0.22), (0.01, 0.89, 0.08, 0.02))
    length = np.array([[0.45, 0.30, 0.12, 0.06, 0.04, 0.03], [0.83, 0.13, 0.02, 0.01, 0.006, 0.004]])
    shares = np.einsum("wh,ud,se,uga->whdseuga", hours, length, routes, riders)
    return World("citibike", columns, tuple(_groups(columns)), _rounded(shares))


def _groups(columns: dict[str, int]) -> Iterator[Asked]:
    for story in STORIES:
        named = story.split()
        for values in itertools.product(*(range(columns[name]) for name in named)):
            chosen = dict(zip(named, values, strict=True))
            yield tuple((chosen[name],) if name in chosen else None for name in columns)


def _set(bits: int, size: int) -> tuple[int, ...]:
    return tuple(value for value in range(size) if bits >> value & 1)


def _rounded(shares: np.ndarray) -> np.ndarray:
    """Whole counts that add up to `ROWS`, drawn with a fixed seed."""
    return np.random.default_rng(0).multinomial(ROWS, (shares / shares.sum()).ravel()).reshape(shares.shape)


# --- the peer -----------------------------------------------------------------------------------------------------


@dataclass
class Bypass:
    """PMW-Bypass, the algorithm of Turbo, with its published rules: a histogram is learned from paid answers. A
    question whose cells were all updated often enough is tested by the sparse vector, any other is paid and learned.
    """

    world: World
    often: int
    more: int
    rate: float
    seed: int

    def __post_init__(self) -> None:
        shape = self.world.counts.shape
        self.rng = np.random.default_rng(self.seed)
        self.model = np.full(shape, 1 / self.world.counts.size)
        self.updates, self.needed = np.zeros(shape), np.full(shape, float(self.often))
        self.known: dict[int, float] = {}
        self.test = sparse_vector_epsilon()
        self.bar: float | None = None
        self.charges: list[float] = []
        self.runs = 0

    def run(self, stream: Sequence[int]) -> tuple[float, float]:
        """The ε of all charges added up, and the largest error as a part of the asked one."""
        worst = 0.0
        for number in stream:
            truth = self.world.truths[number]
            worst = max(worst, abs(self.answer(number, truth) - truth) / WITHIN)
        return sum(self.charges), worst

    def answer(self, number: int, truth: int) -> float:
        if number in self.known:  # the exact replay comes first
            return self.known[number]
        place = self.world.place(self.world.questions[number])
        if (self.updates[place] >= self.needed[place]).all():
            guess = float(self.model[place].sum()) * ROWS
            if self.passes(abs(guess - truth)):
                return guess
            self.needed[place] = self.updates[place].min() + self.more
        self.charges.append(ALONE)
        paid = self.known[number] = truth + self.rng.laplace(scale=1 / ALONE)
        self.learn(place, paid)
        return paid

    def passes(self, distance: float) -> bool:
        if self.bar is None:
            self.charges.append(3 * self.test)
            self.runs += 1
            self.bar = WITHIN / 2 + self.rng.laplace(scale=1 / self.test)
        passed = distance + self.rng.laplace(scale=1 / self.test) < self.bar
        self.bar = self.bar if passed else None
        return passed

    def learn(self, place: tuple[np.ndarray, ...], paid: float) -> None:
        off = paid / ROWS - float(self.model[place].sum())
        if abs(off) <= 0.05 * ALPHA:
            return
        self.model[place] *= math.exp(math.copysign(self.rate / 8, off))
        self.model /= self.model.sum()
        self.updates[place] += 1


def sparse_vector_epsilon() -> float:
    """The least ε with (½ + e/4)·exp(−e) ≤ β at e = ε·α·n/2: a wrong answer passes with probability at most β."""
    low, high = 0.0, 100.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if (0.5 + middle / 4) * math.exp(-middle) <= BETA else (middle, high)
    return 2 * high / WITHIN
