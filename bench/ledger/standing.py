"""Running totals of a standing question over 1,000 days: how far they are off, next to theory and to other ways.

`python -m bench.ledger.standing` takes a few minutes; `--quick` runs a small part.
"""

from __future__ import annotations

import datetime
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, notes, section, table, verdict
from discreet.guarantees.conversions import largest_mu
from discreet.mechanisms.counts.factorization import PrefixSums

EPSILON, DELTA = 1.0, 1e-6
REFUTED = 3
FIRST = datetime.date(2020, 1, 1)
QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def visits(days: int, cities: int, rows: int) -> tuple[pa.Table, np.ndarray]:
    """Visits that are spread over days and cities, one for each person and day, and the true totals."""
    rng = np.random.default_rng(1)
    day, city = rng.integers(0, days, rows), rng.integers(0, cities, rows)
    counts = np.zeros((days, cities), dtype=np.int64)
    np.add.at(counts, (day, city), 1)
    columns = {
        "person": np.arange(rows),
        "day": np.datetime64(FIRST) + day.astype("timedelta64[D]"),
        "city": city,
    }
    return pa.table(columns), counts.cumsum(axis=0)


def clinic(data: pa.Table, cities: int, folder: str) -> Any:
    """A clinic that protects what one person did on one day."""
    visits = {"source": data, "rows_per_person": 1, "time": {"column": "day", "block": "day"}}
    visits["columns"] = {"city": {"choices": list(range(cities))}}
    ledger = {"path": str(Path(folder) / "clinic.ledger"), "epsilon": 10.0, "delta": 1e-5, "delta_per_question": DELTA}
    unit = {"person": "person", "per": "day"}
    return dp.connect({"ledger": ledger, "unit": unit, "tables": {"visits": visits}})


def totals_of(data: pa.Table, days: int, cities: int, shown: list[int]) -> tuple[np.ndarray, float, float]:
    """The running totals after some days through the whole library, and the seconds for all days and for one total."""
    with tempfile.TemporaryDirectory() as folder:
        database = clinic(data, cities, folder)
        first = FIRST.isoformat()
        standing = database.standing(QUESTION, every="day", times=days, epsilon=EPSILON, first=first, totals=True)
        began = time.perf_counter()
        standing.run(today=FIRST + datetime.timedelta(days=days))
        ran = time.perf_counter() - began
        began = time.perf_counter()
        found = [standing.total(standing.blocks[day]).table["n"].to_numpy() for day in shown]
        database.ledger.verify()
        return np.array(found), ran, (time.perf_counter() - began) / len(shown)


def daily_of(data: pa.Table, days: int, cities: int) -> np.ndarray:
    """Sums of daily answers with noise of their own, at the same cost, through the whole library."""
    with tempfile.TemporaryDirectory() as folder:
        database = clinic(data, cities, folder)
        first = FIRST.isoformat()
        standing = database.standing(QUESTION, every="day", times=days, epsilon=EPSILON, first=first)
        answers = standing.run(today=FIRST + datetime.timedelta(days=days))
        return np.cumsum([one.table["n"].to_numpy() for one in answers.values()], axis=0)


def tree_noise(days: int, cities: int) -> np.ndarray:
    """The noise of totals from a binary tree over the days, with Gaussian noise at each node: all levels add up."""
    rng, levels = np.random.default_rng(2), max(1, math.ceil(math.log2(days)) + 1)
    stddev = math.sqrt(levels) / largest_mu(EPSILON, DELTA)
    nodes = {level: rng.normal(0, stddev, ((days >> level) + 1, cities)) for level in range(levels)}
    found = np.zeros((days, cities))
    for day in range(1, days + 1):
        place = 0
        for level in reversed(range(levels)):
            if day >> level & 1:
                found[day - 1] += nodes[level][place >> level]
                place += 1 << level
    return found


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def main(*, quick: bool) -> int:
    days, cities, rows = (60, 200, 4000) if quick else (1000, 1000, 400_000)
    data, truth = visits(days, cities, rows)
    shown = sorted({*range(0, days, 1 if quick else 5), days - 1})
    found, ran, each = totals_of(data, days, cities, shown)
    few = cities if quick else 50
    small = data.filter(pa.compute.less(data["city"], few))
    daily = daily_of(small, days, few) - truth[:, :few]
    tree = tree_noise(days, cities)
    errors = found - truth[shown]
    goal = dp.Approx(epsilon=EPSILON, delta=DELTA)
    sums = PrefixSums.for_guarantee(goal, points=days, unit=dp.person("person"))
    theory = np.asarray(sums.deviation(np.arange(1, days + 1)))
    section(
        "Standing questions: running totals over time",
        "ledger.standing",
        f"""COUNT(*) of {cities:,} cities for {days:,} days through `clinic.standing(…, totals=True)`. One person's day
        is protected, with ε = {EPSILON:g} and δ = {DELTA:g} for the whole horizon. Root mean square errors of
        totals over all cities; daily answers over {few:,}.""",
    )
    places = sorted({_near(shown, day) for day in (days // 10, days // 2, days - 1)})
    table("totals from", *(f"after {day + 1:,} days" for day in places))
    line("**running totals**", *(f"{rms(errors[shown.index(day)]):.3g}" for day in places))
    line("theory of the factorization", *(f"{theory[day]:.3g}" for day in places))
    line("a binary tree, Gaussian noise", *(f"{rms(tree[day]):.3g}" for day in places))
    line("daily answers, added up", *(f"{rms(daily[day]):.3g}" for day in places))
    ratio = rms(errors) / rms(theory[shown])
    notes(
        f"Over all days the error is {ratio:.4f} of that of the theory.",
        f"All days together are answered in {ran:.0f} s, and a total takes {1000 * each:.0f} ms.",
        "Daily answers have the noise that is best for one day, which is Laplace noise here.",
    )
    met = abs(ratio - 1) < (0.1 if quick else 0.03)
    verdict({"running totals within 3% of the theory": met})
    return 0 if met else REFUTED


def _near(shown: list[int], day: int) -> int:
    """The measured day that is nearest to a day."""
    return min(shown, key=lambda one: abs(one - day))


if __name__ == "__main__":
    sys.exit(main(quick="--quick" in sys.argv))
