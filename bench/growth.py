"""What grows with what: time and memory of the group-by question of sql.py, by rows, people and groups.

`python bench/growth.py` measures up to 10^7 rows and fits a cost model; `--all` makes 10^8 rows too, which takes
minutes and 1.5 GB of disk, and says how well the model predicts them. Every point is measured in a fresh process, with
a limit on its memory and a folder to spill into. The data are folders of Parquet files of a million rows each, made
once, a file at a time, into $BENCH_DATA (default: data beside the peers).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sql import DATA, DELTA, EPSILON, HIGH, LOW, MAX_GROUPS, MAX_ROWS, SQL, line, peak, seconds, table

FILE = 1_000_000
"""Rows in one file."""
SLOTS = 8
"""A person has so many groups, some of them the same."""
KEYS = 10_000
"""So many values of one key may be declared; groups beyond them need a second key."""
REPEAT, PATIENCE = 3, 60.0
"""Time is the best of so many answers, none of them begun after so many seconds."""


@dataclass(frozen=True)
class Size:
    """How much data there is, and how many MB of memory."""

    rows: int
    people: int
    groups: int = 1000
    memory: int = 4000

    @property
    def place(self) -> Path:
        return DATA / f"growth-{self.rows}-{self.people}-{self.groups}"


ROWS = [Size(10**5, 10**4), Size(10**6, 10**5), Size(3 * 10**6, 3 * 10**5), Size(10**7, 10**6)]
PEOPLE = [Size(10**7, people) for people in (10**5, 10**6, 10**7)]
GROUPS = [Size(10**7, 10**6, groups) for groups in (10**2, 10**3, 10**4, 10**5)]
MEMORY = [Size(10**7, 10**6, memory=memory) for memory in (200, 300, 400)]
LARGE = Size(10**8, 10**7)


# --- data -------------------------------------------------------------------------------------------------


def make(size: Size) -> None:
    """The rows of sql.py, but that a person's groups follow from a hash: nothing is kept from file to file but how
    active each person is.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    active = np.cumsum(draw.lognormal(0, 1.2, size.people))
    zipf = np.cumsum(np.arange(1, size.groups + 1) ** -1.1)
    mean = draw.uniform(20, 80, size.groups)
    half = size.place.with_suffix(".half")
    half.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, size.rows, FILE)):
        draw, rows = np.random.default_rng([2, number]), min(FILE, size.rows - first)
        user = np.searchsorted(active, np.sort(draw.uniform(0, active[-1], rows)))  # sorted is found faster
        user = draw.permutation(np.minimum(user, size.people - 1))
        slot = np.minimum(draw.geometric(0.5, rows) - 1, SLOTS - 1)
        key = np.searchsorted(zipf, zipf[-1] * _uniform(user * SLOTS + slot))
        value = np.clip(draw.normal(mean[key], 15), LOW, HIGH)
        columns = {"user_id": user, "group_key": key % KEYS, "value": value}
        if size.groups > KEYS:
            columns["part"] = key // KEYS
        pq.write_table(pa.table(columns), half / f"{number:03}.parquet")
    (half / "pairs").write_text(str(_pairs(half)))
    half.rename(size.place)


def _uniform(number: Any) -> Any:
    """A hash of whole numbers into [0, 1): the finalizer of SplitMix64."""
    import numpy as np

    mixed = (number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(11)) * 2.0**-53


def _pairs(folder: Path) -> int:
    """How many pairs of a person and a group there are."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="bench-growth-") as spill, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '4GB'; SET temp_directory = '{spill}'")
        pairs = f"SELECT DISTINCT * EXCLUDE (value) FROM read_parquet('{folder}/*.parquet')"
        return int(connection.execute(f"SELECT count(*) FROM ({pairs})").fetchall()[0][0])


# --- one measurement in a fresh process ----------------------------------------------------------------------


def child(size: Size) -> dict[str, float]:
    import discreet as dp

    columns = {"group_key": {"between": [0, min(size.groups, KEYS) - 1]}, "value": {"between": [LOW, HIGH]}}
    asked = SQL
    if size.groups > KEYS:
        columns["part"] = {"between": [0, size.groups // KEYS - 1]}
        asked = SQL.replace("group_key", "part, group_key")
    bounds = {"rows_per_person": MAX_GROUPS * MAX_ROWS, "groups_per_person": MAX_GROUPS, "rows_per_group": MAX_ROWS}
    known = {"source": str(size.place), "person": "user_id", **bounds, "columns": columns}
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
        spill = Path(folder) / "spill"
        spill.mkdir()
        words = {
            "ledger": {"path": f"{folder}/bench.ledger", "epsilon": 100, "delta": 1e-3},
            "unit": {"person": "user_id"},
            "engine": {"kind": "duckdb", "memory": f"{size.memory}MB", "spill": str(spill)},
            "tables": {"t": known},
        }
        db, began, runs = dp.connect(words), time.perf_counter(), []
        with spilled(spill) as most:
            while len(runs) < REPEAT and (not runs or time.perf_counter() - began < PATIENCE):
                start, used = time.perf_counter(), time.process_time()
                # another name each time, as the same question would be answered from the ledger for free
                db.sql(asked.replace(" AS n", f" AS n{len(runs)}"), epsilon=EPSILON, delta=DELTA)
                runs.append((time.perf_counter() - start, time.process_time() - used))
        db.close()
    wall, processor = (min(column) for column in zip(*runs, strict=True))
    return {"seconds": wall, "cpu": processor, "peak": peak(), "spilled": most[0] / 1e6}


@contextmanager
def spilled(folder: Path) -> Iterator[list[int]]:
    """The most bytes that files in a folder have at once, seen twenty times a second."""
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            try:
                most[0] = max(most[0], sum(file.stat().st_size for file in folder.glob("*/*")))
            except OSError:
                continue  # removed meanwhile

    watcher = threading.Thread(target=look)
    watcher.start()
    yield most
    done.set()
    watcher.join()


def fresh(size: Size) -> dict[str, Any]:
    words = [str(part) for part in asdict(size).values()]
    if not size.place.exists():
        subprocess.run([sys.executable, __file__, "data", *words], check=True)
    done = subprocess.run([sys.executable, __file__, "child", *words], check=True, capture_output=True, text=True)
    found = {**asdict(size), "pairs": int((size.place / "pairs").read_text())} | json.loads(done.stdout)
    times = (seconds(found["seconds"]), seconds(found["cpu"]), f"{found['peak']:.0f}", f"{found['spilled']:.0f}")
    line(*(f"{found[name]:,}" for name in KNOWN), *times)
    return found


# --- the model ----------------------------------------------------------------------------------------------

Point = dict[str, Any]
Model = Callable[[Point], float]
KNOWN = ("rows", "people", "groups", "pairs", "memory")
GROWS = {
    "spilled": {"pairs": 1, "memory": -1},
    "peak": {"base": 1, "pairs": 1, "groups": 1},
    "seconds": {"base": 1, "rows": 1, "pairs": 1, "groups": 1, "spilled": 1},
    "cpu": {"base": 1, "rows": 1, "pairs": 1, "groups": 1, "spilled": 1},
}
"""What each cost grows with, and what it falls with."""
SAID = {"spilled": "MB spilled", "peak": "MB of memory", "seconds": "seconds", "cpu": "processor seconds"}


def fitted(what: str, points: list[Point]) -> Model:
    """A sum of what grows, with the least relative errors on the points that it is for; and print it.

    Nothing is spilled as long as all fits, and memory grows up to its limit.
    """
    import numpy as np
    from scipy.optimize import nnls

    def terms(point: Point) -> Any:
        return np.array([sign * float((point | {"base": 1})[name]) for name, sign in GROWS[what].items()])

    points = [p for p in points if p["spilled"] > 0 or what != "spilled"]
    points = [p for p in points if p["spilled"] == 0 or what != "peak"]
    values = np.array([point[what] for point in points])
    found, _ = nnls(np.array([terms(point) for point in points]) / values[:, None], np.ones(len(points)))
    parts = [f"{one * sign:+.3g}·{name}" for one, (name, sign) in zip(found, GROWS[what].items(), strict=True)]
    print(f"{SAID[what]} ≈ {' '.join(parts).replace('·base', '')}", flush=True)

    def predicted(point: Point) -> float:
        return max(0.0, float(found @ terms(point)))

    def within(point: Point) -> float:
        return min(predicted(point), float(found[0]) + point["memory"])

    return within if what == "peak" else predicted


def compared(points: list[Point], large: list[Point]) -> None:
    """The models, fitted to `points`, and how far they are off at each point and at larger ones."""
    print(f"\n### Fitted on up to {max(point['rows'] for point in points):,} rows\n")
    models = {what: fitted(what, points) for what in GROWS}
    print("\nPredicted ÷ measured, from the sizes alone:\n")
    table(*KNOWN, *(SAID[what] for what in models))
    for point in [*points, *large]:
        guess = {name: point[name] for name in KNOWN}
        for what, model in models.items():  # what is spilled comes first: time grows with it
            guess[what] = model(guess)
        ratios = [f"{guess[what] / point[what]:.2f}" if point[what] else f"{guess[what]:.0f} : 0" for what in models]
        line(*(f"{point[name]:,}" for name in KNOWN), *ratios)


def main(words: list[str]) -> None:
    print(f"{os.cpu_count()} cores (load {os.getloadavg()[0]:.1f}); best of {REPEAT}; memory in MB\n")
    table(*KNOWN, "s", "CPU s", "peak, MB", "spilled, MB")
    points = [fresh(size) for size in dict.fromkeys([*ROWS, *PEOPLE, *GROUPS, *MEMORY])]
    compared(points, [fresh(LARGE)] if "--all" in words else [])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["data", *numbers]:
            make(Size(*map(int, numbers)))
        case ["child", *numbers]:
            print(json.dumps(child(Size(*map(int, numbers)))))
        case words:
            main(words)
