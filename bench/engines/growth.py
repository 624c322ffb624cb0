"""What grows with what: processor time and memory of the group-by question of sql.py, by rows, people and groups.

`python -m bench.engines.growth` measures up to 10^7 rows and fits a cost model; `--all` makes 10^8 rows too, which
takes minutes and 1.5 GB of disk, and says how well the model predicts them. With `--nothing`, the policy says who a
person is and which keys are public, and nothing else. Every point is measured in a fresh process, with a limit on its
memory and a folder to spill into. The data are folders of Parquet files of a million rows each, made once, a file at a
time, into $BENCH_DATA (default: data beside the peers).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.report import line, notes, table, usable
from bench.sql.sql import DATA, DELTA, EPSILON, HIGH, LOW, MAX_GROUPS, MAX_ROWS, SQL, peak, seconds

FILE = 1_000_000
"""Rows in one file."""
SLOTS = 8
"""A person has so many groups, some of them the same."""
KEYS = 10_000
"""So many values of one key may be declared; groups beyond them need a second key."""
REPEAT, PATIENCE = 3, 60.0
"""Time is the best of so many answers, none of them begun after so many seconds."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
Point = dict[str, Any]
"""A size, what it has, and what was measured."""
Model = dict[str, float]
"""What a cost grows with, and how fast."""


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


def child(size: Size, *, bounded: bool) -> dict[str, float]:
    import discreet as dp

    columns = {"group_key": {"between": [0, min(size.groups, KEYS) - 1]}}
    asked = SQL
    if size.groups > KEYS:
        columns["part"] = {"between": [0, size.groups // KEYS - 1]}
        asked = SQL.replace("group_key", "part, group_key")
    known: dict[str, Any] = {"source": str(size.place), "person": "user_id", "columns": columns}
    if bounded:
        columns["value"] = {"between": [LOW, HIGH]}
        known |= {"rows_per_person": MAX_GROUPS * MAX_ROWS, "rows_per_group": MAX_ROWS}
        known["groups_per_person"] = MAX_GROUPS
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as folder:
        spill = Path(folder) / "spill"
        spill.mkdir()
        words = {
            "ledger": {"path": f"{folder}/bench.ledger", "epsilon": 100, "delta": 1e-3},
            "unit": {"person": "user_id"},
            "engine": {"kind": "duckdb", "memory": f"{size.memory}MB", "spill": str(spill), "threads": usable()},
            "tables": {"t": known},
        }
        db, began, runs = dp.connect(words), time.perf_counter(), []
        with spilled(spill) as most:
            while len(runs) < REPEAT and (not runs or time.perf_counter() - began < PATIENCE):
                start = time.process_time()
                # another condition each time, as the same numbers would be found in the ledger for free
                text = asked.replace(" GROUP BY", f" WHERE group_key > -{len(runs) + 1} GROUP BY")
                found = db.sql(text, epsilon=EPSILON, delta=DELTA if bounded else 0)
                assert not found.replayed
                runs.append(time.process_time() - start)
        db.close()
    return {"cpu": min(runs), "peak": peak(), "spilled": most[0] / 1e6}


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


def fresh(size: Size, policy: str) -> Point | None:
    """What a fresh process measures; nothing when it fails."""
    print(size, file=sys.stderr, flush=True)
    words = [str(part) for part in asdict(size).values()]
    if not size.place.exists():
        subprocess.run([sys.executable, "-m", __spec__.name, "data", *words], check=True)
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, "child", policy, *words], stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        return None
    return asdict(size) | {"pairs": int((size.place / "pairs").read_text())} | json.loads(done.stdout)


# --- the model ----------------------------------------------------------------------------------------------

GROWS = {
    "spilled": {"pairs": 1, "memory": -1},
    "peak": {"base": 1, "pairs": 1, "groups": 1},
    "cpu": {"base": 1, "rows": 1, "pairs": 1, "groups": 1, "spilled": 1},
}
"""What each cost grows with, and what it falls with; what is spilled comes first, as time grows with it."""


def fitted(what: str, points: list[Point]) -> Model:
    """A sum of what grows, with the least relative errors on the points that it is for.

    Nothing is spilled as long as all fits, and memory grows up to its limit.
    """
    import numpy as np
    from scipy.optimize import nnls

    points = [p for p in points if p["spilled"] > 0 or what != "spilled"]
    points = [p for p in points if p["spilled"] == 0 or what != "peak"]
    terms = [[sign * (p | {"base": 1})[name] / p[what] for name, sign in GROWS[what].items()] for p in points]
    found = nnls(np.array(terms), np.ones(len(points)))[0] if points else np.zeros(len(GROWS[what]))
    return {name: sign * float(one) for one, (name, sign) in zip(found, GROWS[what].items(), strict=True)}


def predicted(models: dict[str, Model], point: Point) -> Point:
    """What the models make of the sizes of a point, and of nothing else."""
    guess = {name: point[name] for name in ("rows", "people", "groups", "pairs", "memory")} | {"base": 1}
    for what, model in models.items():
        guess[what] = max(0.0, sum(factor * guess[name] for name, factor in model.items()))
        if what == "peak":
            guess[what] = min(guess[what], model["base"] + point["memory"])
    return guess


# --- printing -----------------------------------------------------------------------------------------------


def heading(words: list[str]) -> None:
    nothing = "--nothing" in words
    print(
        f"### What grows with what{', with nothing declared' * nothing}\n"
        f"`python -m bench.engines.growth {' '.join(words)}` · The same question on DuckDB over folders of Parquet, "
        f"within the given memory.{' Pure ε; limits are found first.' * nothing} Pairs are those of a person and a "
        "group. Peak is the peak memory of the process. CPU seconds, because the machine is shared: the best of "
        f"{REPEAT}.\n",
        flush=True,
    )
    table("rows", "people", "groups", "pairs", "memory, MB", "CPU s", "peak, MB", "spilled, MB")


def row(point: Point) -> None:
    sizes = [short(point[name]) for name in ("rows", "people", "groups")]
    used = (seconds(point["cpu"]), f"{point['peak']:.0f}", f"{point['spilled']:.0f}")
    line(*sizes, f"{point['pairs']:,}", point["memory"], *used)


def short(number: int) -> str:
    """10⁷ for a power of ten."""
    zeros = len(str(number)) - 1
    return f"10{str(zeros).translate(RAISED)}" if number == 10**zeros else f"{number:,}"


def time_of(amount: float) -> str:
    unit, size = next(((u, s) for u, s in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)) if amount >= s), ("ns", 1e-9))
    return f"{amount / size:.3g} {unit}"


def size_of(megabytes: float) -> str:
    return f"{megabytes:,.0f} MB" if megabytes >= 1 else f"{1e6 * megabytes:,.0f} bytes"


def told(models: dict[str, Model], rows: int, large: list[Point], failed: list[str]) -> None:
    """The models, fitted to so many rows at most, how far they are off at larger points, and what failed."""
    cpu = {name: time_of(factor) for name, factor in models["cpu"].items()}
    memory = {name: size_of(factor) for name, factor in models["peak"].items()}
    pairs, limit = size_of(models["spilled"]["pairs"]), f"{-models['spilled']['memory']:.2g}"
    said = [
        f"""Fitted to at most {short(rows)} rows: CPU time ≈ {cpu["base"]} + {cpu["rows"]} · rows + {cpu["pairs"]} ·
        pairs + {cpu["groups"]} · groups + {cpu["spilled"]} · MB spilled.""",
        f"""Memory ≈ {memory["base"]} + {memory["pairs"]} · pairs + {memory["groups"]} · groups, up to the limit;
        spilled ≈ {pairs} · pairs − {limit} · the limit.""",
    ]
    for point in large:
        guess = predicted(models, point)
        off = {what: f"{guess[what] / point[what]:.2f}" if point[what] else "–" for what in models}
        said.append(
            f"""At {short(point["rows"])} rows this predicts {off["cpu"]} of the CPU time, {off["peak"]} of the
            memory, and {off["spilled"]} of the spilled bytes."""
        )
    notes(*said, *failed)


def main(words: list[str]) -> None:
    heading(words)
    policy = "nothing" if "--nothing" in words else "bounds"
    few: list[Point] = []
    large: list[Point] = []
    failed: list[str] = []
    for size in dict.fromkeys([*ROWS, *PEOPLE, *GROUPS, *MEMORY, *[LARGE] * ("--all" in words)]):
        if point := fresh(size, policy):
            row(point)
            (large if size == LARGE else few).append(point)
        else:
            failed.append(f"{short(size.rows)} rows in {size.memory} MB failed, and are left out.")
    told({what: fitted(what, few) for what in GROWS}, max(point["rows"] for point in few), large, failed)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["data", *numbers]:
            make(Size(*map(int, numbers)))
        case ["child", policy, *numbers]:
            print(json.dumps(child(Size(*map(int, numbers)), bounded=policy == "bounds")))
        case words:
            main(words)
