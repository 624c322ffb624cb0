"""Budget used on streams of questions like those of Turbo (SOSP 2023), next to exact replay and to its algorithm.

`python -m bench.ledger.answers` takes about an hour on two cores; `--quick` asks 300 questions of each stream.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from bench.ledger.answers_streams import ALONE, ALPHA, BETA, ROWS, WITHIN, Asked, Bypass, World, citibike, covid
from bench.report import line, notes, section, table, verdict
from discreet.guarantees.privacy_loss.compose import compose
from discreet.mechanisms.adaptive.guess_tests import GuessRun, GuessTests
from discreet.mechanisms.noise.laplace import Laplace
from discreet.sql.estimates import deciding
from discreet.sql.estimates.deciding import Estimate
from discreet.sql.estimates.least_squares import Block, Information
from discreet.sql.estimates.missing import PARTS, scaled
from discreet.sql.estimates.sources import Known

REFUTED = 3
LENGTH = 35_000
TUNING, REPORTED = 101, (201, 202)
"""Streams that settings were chosen on, and those that are reported."""
PUBLISHED = 15.9
"""The most that Turbo saves next to simpler caches: 1.7 to 15.9 times, as its abstract says."""
DELTA = 1e-6
ASKED = Laplace(scale=1 / ALONE, step=1)
CLEAR = 0.95
"""Below this part of the asked deviation, the exact law of an estimate is narrower than the asked noise."""


@dataclass
class Spent:
    """What one way to answer a stream has charged: sizes of Laplace noise and other ε, and its largest error."""

    noises: Counter[float] = field(default_factory=Counter)
    tests: Counter[float] = field(default_factory=Counter)
    worst: float = 0.0
    seconds: float = 0.0

    @property
    def epsilon(self) -> float:
        """All charges added up."""
        return sum(many / scale for scale, many in self.noises.items()) + sum(e * n for e, n in self.tests.items())

    @property
    def tight(self) -> float:
        """All charges composed as a ledger with the tight rule does, at δ = 10⁻⁶."""
        parts = [Laplace(scale=scale, step=1).guarantee(1) for scale, n in self.noises.items() for _ in range(n)]
        parts += [dp.Pure(epsilon=epsilon) for epsilon, n in self.tests.items() for _ in range(n)]
        return float(compose(parts).epsilon_at(delta=DELTA))

    def off(self, error: float) -> None:
        self.worst = max(self.worst, abs(error) / WITHIN)


# --- the core of the product, without SQL and ledger ----------------------------------------------------------------


class Core:
    """Answers from answers as the product decides them, on a table of few cells. `wide`: with the groups around."""

    def __init__(self, world: World, seed: int, *, wide: bool, learned: tuple[int, int] | None = None) -> None:
        self.world, self.wide, self.rng = world, wide, np.random.default_rng(seed)
        self.truth = world.counts.ravel().astype(np.float64)
        self.information, self.spent = Information(self.truth.size), Spent()
        self.known = Known((), (), self.information, {})
        self.bought: dict[bytes, np.ndarray] = {}
        self.solved, self.inverse = 0, None
        self.matrix, self.aim = np.zeros((self.truth.size, self.truth.size)), np.zeros(self.truth.size)
        self.model = None if learned is None else Model(self, *learned)

    def run(self, stream: list[int]) -> Spent:
        began = time.perf_counter()
        for number in dict.fromkeys(stream):  # a question that is repeated is replayed, and changes nothing
            self.spent.off(self.answer(self.world.questions[number]) - self.world.truths[number])
        self.spent.seconds = time.perf_counter() - began
        return self.spent

    def answer(self, asked: Asked) -> float:
        row = self.world.row(asked)
        rows = self.world.around(asked) if self.wide else row[None]
        place, name = int(np.flatnonzero((rows == row).all(axis=1))[0]), np.packbits(rows > 0).tobytes()
        if name in self.bought:
            return float(self.bought[name][place])
        if (clear := self.clearly(row)) is not None:
            return clear
        free = self.decided(row[None])
        if free[0] == 0:
            return float(free[1].values(None)[0])
        if self.model is not None and (guess := self.model.guess(row)) is not None:
            return guess
        parts, estimate = self.decided(rows) if self.wide else free
        values = 0.0 if estimate is None else estimate.values(None)
        if parts:
            fresh = self.measure(rows, parts)
            values = fresh if estimate is None else values + estimate.weights.new @ fresh
        self.bought[name] = values
        return float(values[place])

    def clearly(self, row: np.ndarray) -> float | None:
        """The estimate, if its deviation is far enough below that of the asked noise that the law need not be computed.
        `_same_charges` and `_clear_ones_are_free` check that this decides as the product does.
        """
        if len(self.information.blocks) != self.solved:
            self.solved, self.inverse = len(self.information.blocks), None
            if np.linalg.matrix_rank(self.matrix, hermitian=True) == len(self.matrix):
                self.inverse = np.linalg.inv(self.matrix)
        if self.inverse is None or math.sqrt(row @ self.inverse @ row) > CLEAR * ASKED.deviation:
            return None
        return float(row @ self.inverse @ self.aim)

    def decided(self, rows: np.ndarray) -> tuple[int, Any]:
        """How many parts of the price are missing, and how earlier numbers are used."""
        if not self.information.blocks:
            return PARTS, None
        prior = self.information.about(rows)
        weights = prior.weights() if prior.is_complete else None
        free = None if weights is None else Estimate(self.known, weights, None)
        if free is not None and free.is_as_accurate_as(ASKED):
            return 0, free
        for parts in range(1, PARTS) if len(prior.known) else ():
            noise = scaled(ASKED, PARTS / parts)
            if float(prior.variances(noise.deviation**2).max()) > (deciding._WORTH * ASKED.deviation) ** 2:
                continue
            weights = prior.weights(noise.deviation**2)
            found = None if weights is None else Estimate(self.known, weights, noise)
            if found is not None and found.is_worst_as_accurate_as(ASKED) and found.is_as_accurate_as(ASKED):
                return parts, found
        return PARTS, None

    def measure(self, rows: np.ndarray, parts: int) -> np.ndarray:
        noise = scaled(ASKED, PARTS / parts)
        values = rows @ self.truth + np.rint(self.rng.laplace(scale=float(noise.scale), size=len(rows)))
        self.spent.noises[float(noise.scale)] += 1
        block = Block(len(self.information.blocks), "", rows, noise, values)
        self.information = self.information.with_blocks([block])
        self.known = replace(self.known, information=self.information)
        self.matrix += rows.T @ rows / noise.deviation**2
        self.aim += rows.T @ values / noise.deviation**2
        return values


class Model:
    """A histogram that is learned from paid answers and tested: ready after so many, and again so many after each
    failure. It is no part of the product.
    """

    def __init__(self, core: Core, ready: int, again: int) -> None:
        self.core, self.ready, self.again = core, ready, again
        self.test = GuessTests.for_error(WITHIN, confidence=1 - BETA)
        self.cost = float(self.test.guarantee(1).epsilon)  # type: ignore[attr-defined]
        self.learned_from, self.histogram, self.run = -1, np.zeros(0), None

    def guess(self, row: np.ndarray) -> float | None:
        """A guess that passed, or None."""
        blocks = self.core.information.blocks
        if len(blocks) < self.ready:
            return None
        if self.learned_from != len(blocks):
            self.histogram, self.learned_from = learned(self.core.matrix, self.core.aim, ROWS), len(blocks)
        guess = round(float(row @ self.histogram))
        if self.run is None:
            self.core.spent.tests[self.cost] += 1
            self.run = GuessRun(self.test)
        if self.run._draw(([guess], [round(float(row @ self.core.truth))])):
            return guess
        self.run, self.ready = None, len(blocks) + self.again
        return None


def learned(matrix: np.ndarray, aim: np.ndarray, total: float) -> np.ndarray:
    """The histogram of largest entropy that fits the noisy answers, by an interior point with a falling weight of the
    entropy.
    """
    cells = len(aim)
    even = total / cells
    found, last = np.full(cells, even), 10 / total
    weight = max(last, float(np.abs(matrix @ found - aim).max()))
    while True:
        for _ in range(12):
            slope = matrix @ found - aim + weight * np.log(found / even)
            step = np.linalg.solve(matrix + np.diag(weight / found), -slope)
            back = step < 0
            found = found + min(1.0, 0.9 * float(np.min(-found[back] / step[back], initial=np.inf))) * step
            if float(np.abs(step / found).max()) < 1e-2:
                break
        if weight <= last:
            return found
        weight = max(last, weight / 4)


# --- through SQL and the ledger -------------------------------------------------------------------------------------


def connected(world: World, folder: str, **answers: bool) -> Any:
    """The table as a database whose rows are protected."""
    cells = np.repeat(np.arange(world.counts.size), world.counts.ravel())
    columns, choices = {}, {}
    for (name, size), values in zip(world.columns.items(), np.unravel_index(cells, world.counts.shape), strict=True):
        choices[name] = {"choices": [f"{name}{value}" for value in range(size)]}
        columns[name] = pa.array(choices[name]["choices"]).take(pa.array(values))
    tables = {world.name: {"source": pa.table(columns), "version": "1", "columns": choices}}
    ledger = {"path": str(Path(folder) / "stream.ledger"), "epsilon": 100.0}
    return dp.connect({"ledger": ledger, "unit": {"row": True}, "tables": tables, "answers": answers})


def by_sql(world: World, stream: list[int], **answers: bool) -> Spent:
    """A stream through the whole product. Repeated questions are replayed for nothing, and are left out here."""
    spent, began = Spent(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = connected(world, folder, **answers)
        for number in dict.fromkeys(stream):
            answer = database.sql(world.sql(world.questions[number]), epsilon=ALONE)
            spent.off(answer.table["n"][0].as_py() - world.truths[number])
        for entry in database.ledger.entries():
            spent.noises[1 / float(entry.guarantee.largest_loss)] += 1
        database.ledger.verify()
    spent.seconds = time.perf_counter() - began
    return spent


# --- the report -----------------------------------------------------------------------------------------------------


def replayed(world: World, stream: list[int]) -> Spent:
    """Only identical questions are free."""
    spent, rng = Spent(), np.random.default_rng(1)
    distinct = len(set(stream))
    spent.noises[1 / ALONE] = distinct
    spent.off(float(np.abs(rng.laplace(scale=1 / ALONE, size=distinct)).max()))
    return spent


def peer(world: World, stream: list[int], seed: int, settings: tuple[int, int, float]) -> Spent:
    """PMW-Bypass with the settings that were best on another stream."""
    began, spent = time.perf_counter(), Spent()
    made = Bypass(world, *settings, seed)
    _, spent.worst = made.run(stream)
    spent.noises[1 / ALONE] = sum(charge == ALONE for charge in made.charges)
    spent.tests[3 * made.test] = made.runs
    spent.seconds = time.perf_counter() - began
    return spent


BEST = {"covid": (2, 2, 1.0), "citibike": (1, 1, 2.0)}
"""The settings of the peer with the least budget on the tuning stream, among five. See `--tune`."""
LEARNED = (30, 10)
"""After how many paid answers a model is tested, and after how many more once it failed, with the groups around."""


def ways(name: str, skew: float, length: int, seed: int) -> dict[str, Spent]:
    """All ways to answer one stream. On CitiBike, only the first questions are asked without the groups around."""
    world = WORLDS[name]()
    stream = world.stream(skew, length, seed)
    found = {"exact replay": replayed(world, stream)}
    if name == "covid":
        found[FIRST] = Core(world, seed, wide=False).run(stream)
        found[WIDE] = Core(world, seed, wide=True).run(stream)
    else:
        found[WIDE] = by_sql(world, stream, derived=True, wide=True)
    found["PMW-Bypass, simulated"] = peer(world, stream, seed, BEST[name])
    return found


def without_groups(many: int) -> tuple[int, float]:
    """How many different questions about CitiBike, and their budget, without the groups around."""
    world = citibike()
    stream = list(dict.fromkeys(world.stream(0, LENGTH, REPORTED[0])))[:many]
    return len(stream), by_sql(world, stream, derived=True).epsilon / ALONE


def clear_ones_are_free(many: int) -> bool:
    """Whether the product answers for nothing what `Core.clearly` does: the exact law of estimates near its limit."""
    world, checked = covid(), 0
    core = Core(world, 1, wide=True)
    for number in world.stream(0, LENGTH, TUNING):
        asked = world.questions[number]
        row = world.row(asked)
        if core.clearly(row) is not None and math.sqrt(row @ core.inverse @ row) > 0.9 * CLEAR * ASKED.deviation:
            if core.decided(row[None])[0] != 0:
                return False
            checked += 1
        core.answer(asked)
        if checked == many:
            break
    return True


def with_model(length: int) -> tuple[float, float, int]:
    """The budget on the first questions of a stream, without and with a tested model, and how often that was paid."""
    world = covid()
    stream = world.stream(0, length, REPORTED[0])
    plain, tested = (Core(world, 1, wide=True, learned=one).run(stream) for one in (None, LEARNED))
    return plain.epsilon / ALONE, tested.epsilon / ALONE, sum(tested.tests.values())


WORLDS = {"covid": covid, "citibike": citibike}
FIRST, WIDE = "answers from answers", "with the groups around"


def main(*, quick: bool) -> int:
    length, few, some = (300, 100, 10) if quick else (LENGTH, 2000, 40)
    streams = [("covid", 0, REPORTED[0]), ("covid", 1, REPORTED[1]), ("citibike", 0, REPORTED[0])]
    with ProcessPoolExecutor(2) as pool:
        started = [pool.submit(ways, name, skew, length, seed) for name, skew, seed in streams]
        others = [pool.submit(with_model, few), pool.submit(without_groups, some * 5)]
        checks = [pool.submit(_same_charges, some), pool.submit(clear_ones_are_free, some * 5)]
        found = dict(zip(streams, (one.result() for one in started), strict=True))
        model, alone = (one.result() for one in others)
        return _report(found, model, alone, all(one.result() for one in checks), length, few)


def _report(found: dict[Any, dict[str, Spent]], model: Any, alone: Any, same: bool, length: int, few: int) -> int:
    section(
        "Answers from answers: budget on streams of questions",
        "ledger.answers",
        f"""Streams of {length:,} counting questions shaped like those of Turbo (SOSP 2023), about {ROWS:,} rows, each
        protected. Every answer is within α = {ALPHA:g} of the rows with probability 1 − {BETA:g}. Questions are drawn
        by Zipf's law with exponent k. ε added up is in multiples of one question's ε = {ALONE:.3g}. Tight ε is that of
        all charges composed, at δ = {DELTA:g}. Savings are next to exact replay.""",
    )
    table(
        "table", "k", "answered by", "ε added up", "saved", "tight ε", "saved (tight)", "largest error / α", "seconds"
    )
    saved: dict[str, list[float]] = {name: [] for name in WORLDS}
    for (name, skew, _), each in found.items():
        first = each["exact replay"]
        for way, spent in each.items():
            cells = [name, skew, f"**{way}**" if way == WIDE else way]
            cells += [f"{spent.epsilon / ALONE:,.0f}", f"{first.epsilon / spent.epsilon:.1f} ×"]
            cells += [f"{spent.tight:.3g}", f"{first.tight / spent.tight:.1f} ×"]
            line(*cells, f"{spent.worst:.2f}", f"{spent.seconds:.0f}" if spent.seconds else None)
        saved[name].append(first.epsilon / each[WIDE].epsilon)
    plain, tested, runs = model
    notes(
        """Published: Turbo saves 1.7 to 15.9 times the budget of simpler caches on these tables (its abstract). Its
        algorithm is simulated here with the settings, of five, that were best on another stream.""",
        """Covid has 128 cells and all 34,425 conjunctions of sets of values, CitiBike 604,800 cells and 2,085 groups of
        29 public analyses. The tables are synthetic, from published shares for Covid and round ones for CitiBike.""",
        f"""CitiBike runs through SQL and the ledger. Covid runs on the core that decides and estimates, whose first
        questions were also asked through SQL and the ledger, and {"charged the same" if same else "**not the same**"}.
        A question that is repeated is replayed. The seconds are those of all others, on a busy machine.""",
        f"""Without the groups around, {alone[0]} different questions about CitiBike cost {alone[1]:.0f}: few of them
        imply each other.""",
        f"""With a model that is learned from all answers and tested by `GuessTests`, the first {few:,} questions about
        Covid cost {tested:.0f} instead of {plain:.0f}, with {runs} runs of tests. A run costs as much as 6.8
        questions.""",
        """The product asks an estimate to be as accurate as the noise of the price at 95% and at 99.9%. The peer and
        the tests of a model promise the error at 99.9% only.""",
    )
    goals = {}
    if length == LENGTH:
        goals = {f"at least {PUBLISHED} × saved on {name}": min(each) >= PUBLISHED for name, each in saved.items()}
    goals["the core charges what the product charges"] = same
    verdict(goals)
    return 0 if all(goals.values()) else REFUTED


def _same_charges(many: int) -> bool:
    """Whether the core and the whole product charge the same for the first questions of a stream, in both ways."""
    world = covid()
    stream = list(dict.fromkeys(world.stream(0, many, TUNING)))
    same = True
    for wide in (False, True):
        core, product = Core(world, 1, wide=wide).run(stream), by_sql(world, stream, derived=True, wide=wide)
        same &= math.isclose(core.epsilon, product.epsilon, rel_tol=1e-3)
    return same


def tune() -> None:
    """The settings of the peer and of the learned model, on streams that are not reported."""
    for world in (covid(), citibike()):
        stream = world.stream(0, LENGTH, TUNING)
        for settings in ((100, 10, 0.2), (20, 5, 0.4), (5, 5, 1.0), (2, 2, 1.0), (1, 1, 2.0)):
            print(world.name, settings, f"{peer(world, stream, TUNING, settings).epsilon / ALONE:.0f}", flush=True)
    world = covid()
    for after in ((6, 3), (10, 4), (16, 6), (30, 10), (45, 15)):
        spent = Core(world, TUNING, wide=True, learned=after).run(world.stream(0, 3000, TUNING))
        print(after, f"{spent.epsilon / ALONE:.1f}, {sum(spent.tests.values())} runs", flush=True)


if __name__ == "__main__":
    if "--tune" in sys.argv:
        tune()
        sys.exit(0)
    sys.exit(main(quick="--quick" in sys.argv))
