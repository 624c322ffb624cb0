"""Private SQL: COUNT, SUM and AVG of 1000 groups over 10 million rows of a million people, beside DuckDB and the peers.

`python bench/sql.py` measures everything in one run. Every system answers in a fresh process of its own, which runs
this file again in its environment; the answer of DuckDB, not private, is the truth that errors are measured against.
The data are made once, always the same, into $BENCH_DATA (default: data beside the peers). SmartNoise needs minutes for
10 million rows and answers over a tenth of them; with `--all` over all. `python bench/sql.py person row` measures only
what is named: person, row, peers, small, fresh, profile (where the engine's time goes; only when named).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BENCH_DATA") or peers.HOME / "data")
LARGE, MIDDLE, SMALL = 10_000_000, 1_000_000, 20_000
PEOPLE, GROUPS, TOP = 10, 1000, 100
"""So many rows for each person on average; groups; and the largest groups, over which errors are averaged."""
MAX_GROUPS, MAX_ROWS, WIDE = 5, 10, 20
EPSILON, DELTA = 1.0, 1e-6
LOW, HIGH = 0, 100
REPEAT, PATIENCE = 3, 90.0
"""Warm is the best of so many runs after the first, none of them begun after so many seconds."""
SQL = "SELECT group_key, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM t GROUP BY group_key"
Answer = dict[int, tuple[float, float, float]]


# --- data -------------------------------------------------------------------------------------------------


def place(rows: int) -> Path:
    return DATA / f"sql-{rows}.parquet"


def make(rows: int) -> None:
    """Rows of (user_id, group_key, value): some people are much busier than others, each has eight groups from a Zipf
    law and uses them half as often one after the other, and each group has its own mean.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw, people = np.random.default_rng(1), rows // PEOPLE
    activity = draw.lognormal(0, 1.2, people)
    user = draw.choice(people, size=rows, p=activity / activity.sum())
    zipf = np.arange(1, GROUPS + 1) ** -1.1
    own = draw.choice(GROUPS, size=(people, 8), p=zipf / zipf.sum())
    key = own[user, np.minimum(draw.geometric(0.5, rows) - 1, 7)]
    value = np.clip(draw.normal(draw.uniform(20, 80, GROUPS)[key], 15), LOW, HIGH)
    DATA.mkdir(parents=True, exist_ok=True)
    half = place(rows).with_suffix(".half")
    pq.write_table(pa.table({"user_id": user, "group_key": key, "value": value}), half, row_group_size=1_000_000)
    half.replace(place(rows))


# --- systems: each gives a function that answers once --------------------------------------------------------


def duckdb(data: str) -> Callable[[], Answer]:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS FROM read_parquet('{data}')")
    return lambda: {key: parts for key, *parts in connection.execute(SQL).fetchall()}


def discreet(data: str, protects: str, *, anew: bool = False) -> Callable[[], Answer]:
    """The database stays open, as DuckDB's does, with a durable ledger. Each time the columns have other names, as the
    same question would be answered from the ledger for free. `anew`: policy, engine and ledger are opened each time.
    """
    import discreet as dp

    table: dict[str, Any] = {
        "source": data,
        "columns": {"group_key": {"between": [0, GROUPS - 1]}, "value": {"between": [LOW, HIGH]}},
    }
    if protects != "row":
        fixed = protects == "person"
        most, rows = (MAX_GROUPS, MAX_ROWS) if fixed else (WIDE, WIDE)
        table |= {"person": "user_id", "rows_per_person": most * rows, "rows_per_group": rows}
        table["groups_per_person"] = most if fixed else "auto"
    unit = {"row": True} if protects == "row" else {"person": "user_id"}
    folder = tempfile.TemporaryDirectory(prefix="bench-sql-")  # gone with the process

    def opened() -> Any:
        ledger = {"path": f"{folder.name}/{time.time_ns()}.ledger", "epsilon": 10, "delta": 1e-3}
        return dp.connect({"ledger": ledger, "unit": unit, "tables": {"t": table}})

    kept = None if anew else opened()

    def answer() -> Answer:
        db = kept or opened()
        n, s, m = (f"{name}_{time.time_ns()}" for name in "nsm")
        text = SQL.replace(" AS n", f" AS {n}").replace(" AS s", f" AS {s}").replace(" AS m", f" AS {m}")
        rows = db.sql(text, epsilon=EPSILON, delta=DELTA).table.to_pylist()
        if anew:
            db.close()
        return {row["group_key"]: (row[n], row[s], row[m]) for row in rows}

    return answer


def opendp(data: str) -> Callable[[], Answer]:
    """Its Polars context with public keys; whole values, as its sums of floats are much noisier. AVG is SUM / COUNT."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "honest-but-curious")
    keys = pl.DataFrame({"group_key": range(GROUPS)}, schema={"group_key": pl.Int64})
    value = pl.col("value").fill_nan(0.0).fill_null(0.0).cast(pl.Int64).fill_null(0)

    def answer() -> Answer:
        rows = pl.scan_parquet(data)
        most = rows.select(pl.len()).collect().item()  # a bound that it needs, taken as public
        context = dp.Context.compositor(
            data=rows,
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
            privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=most, max_groups=GROUPS)],
        )
        asked = context.query().truncate_per_group(MAX_ROWS, by=["group_key"], keep="sample")
        asked = asked.truncate_num_groups(MAX_GROUPS, by=["group_key"], keep="first")  # "sample" fails with one key
        asked = asked.group_by("group_key").agg(dp.len(), value.dp.sum(bounds=(LOW, HIGH))).with_keys(keys)
        found = asked.release().collect().select("group_key", "len", "value")
        return {key: (n, s, s / n if n > 0 else 0) for key, n, s in found.iter_rows()}

    return answer


def smartnoise(data: str) -> Callable[[], Answer]:
    """Its pandas reader. It bounds a person's rows and not their groups, and has no public keys: groups get lost."""
    import pyarrow.parquet as pq
    from snsql import Privacy, from_df

    known = {
        "max_ids": MAX_GROUPS * MAX_ROWS,
        "sample_max_ids": True,
        "clamp_counts": False,
        "user_id": {"name": "user_id", "type": "int", "private_id": True},
        "group_key": {"name": "group_key", "type": "int"},
        "value": {"name": "value", "type": "float", "lower": float(LOW), "upper": float(HIGH)},
    }
    asked = SQL.replace(" t ", " S.T ")

    def answer() -> Answer:
        frame = pq.read_table(data).to_pandas()
        meta = {"": {"S": {"T": {**known, "rows": len(frame)}}}}
        cost, _ = from_df(frame, privacy=Privacy(epsilon=1.0, delta=DELTA), metadata=meta).get_privacy_cost(asked)
        reader = from_df(frame, privacy=Privacy(epsilon=EPSILON / cost, delta=DELTA / 4), metadata=meta)
        return {int(key): tuple(map(float, parts)) for key, *parts in reader.execute(asked)[1:]}

    return answer


SYSTEMS: dict[str, tuple[str, str, Callable[[str], Callable[[], Answer]]]] = {
    "duckdb": ("DuckDB, not private", "", duckdb),
    "person": ("discreet", "", lambda data: discreet(data, "person")),
    "auto": ('discreet, `groups_per_person="auto"`', "", lambda data: discreet(data, "auto")),
    "row": ("discreet, `row()`", "", lambda data: discreet(data, "row")),
    "row_anew": ("… opened for each question", "", lambda data: discreet(data, "row", anew=True)),
    "opendp": ("OpenDP", "opendp-polars", opendp),
    "smartnoise": ("SmartNoise SQL", "smartnoise", smartnoise),
}
"""By name: how it is printed, the environment it has (none: this one), and its maker."""


# --- one system in a fresh process ---------------------------------------------------------------------------


def peak() -> float:
    """The most memory, in MB, that this process has held, and those it started hold."""
    try:
        tree, todo = [], [os.getpid()]
        while todo:
            tree.append(todo.pop())
            for task in Path(f"/proc/{tree[-1]}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
        texts = [Path(f"/proc/{one}/status").read_text() for one in tree]
        return sum(int(text.partition("VmHWM:")[2].split()[0]) for text in texts) / 1024
    except (OSError, IndexError):
        import resource

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def child(system: str, rows: int, repeat: int, began: float) -> dict[str, Any]:
    """Cold is since `began`, just before the process was started."""
    answer, warm = SYSTEMS[system][2](str(place(rows))), []
    found = answer()
    cold = time.time() - began
    while len(warm) < repeat and time.time() - began < PATIENCE:
        start, used = time.perf_counter(), time.process_time()
        found = answer()
        warm.append((time.perf_counter() - start, time.process_time() - used))
    seconds, processor = (min(one[part] for one in warm) if warm else None for part in (0, 1))
    cells = [[key, *map(float, parts)] for key, parts in found.items()]
    return {"cold": cold, "warm": seconds, "cpu": processor, "peak": peak(), "cells": cells}


def fresh(system: str, rows: int, repeat: int = REPEAT) -> dict[str, Any] | None:
    """What a fresh process of the system measures; nothing, and said so, when it is missing or fails."""
    name, peer, _ = SYSTEMS[system]
    if peer and not (peers.HOME / peer / ".ready").exists():
        print(f"{name} is missing: run `python bench/peers.py` to install it", flush=True)
        return None
    if not place(rows).exists():
        subprocess.run([sys.executable, __file__, "data", str(rows)], check=True)
    python = peers.interpreter(peer) if peer else sys.executable
    command = [str(python), "-W", "ignore", __file__, "child", system, str(rows), str(repeat), str(time.time())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name} failed: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


# --- tables -------------------------------------------------------------------------------------------------


def line(*cells: Any) -> None:
    print(f"| {' | '.join('–' if cell is None else str(cell) for cell in cells)} |", flush=True)


def table(*titles: str) -> None:
    line(*titles)
    print(f"|{'---|' * len(titles)}", flush=True)


def seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def best(row: dict[str, Any]) -> float:
    """Warm, or the first run of whoever had no time for another."""
    return row["cold"] if row["warm"] is None else row["warm"]


def errors(row: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """The mean relative errors of COUNT, SUM and AVG on the largest groups; a group that is not there is wrong by 1."""
    found = {key: parts for key, *parts in row["cells"]}
    largest = sorted(truth["cells"], key=lambda cell: -cell[1])[:TOP]
    off = [[abs(f - t) / t for f, t in zip(found.get(k, (0, 0, 0)), true, strict=True)] for k, *true in largest]
    return [f"{100 * sum(column) / len(off):.2g}%" for column in zip(*off, strict=True)]


def compared(rows: int, systems: list[str], base: str = "person") -> None:
    """One row for each system, with its time as a multiple of DuckDB's, and of `base`."""
    found = {name: row for name in systems if (row := fresh(name, rows))}
    ours, raw = found.get(base), found.get("duckdb")
    columns = ("cold, s", "warm, s", "warm, CPU s", "÷ DuckDB", "÷ discreet", "peak, MB")
    table("system", *columns, "error COUNT", "SUM", "AVG", "groups")
    for name, row in found.items():
        ratios = [f"{best(row) / best(other):.2f}" if other else None for other in (raw, ours)]
        off = errors(row, raw) if raw else [None] * 3
        times = [seconds(row[key]) for key in ("cold", "warm", "cpu")]
        line(SYSTEMS[name][0], *times, *ratios, f"{row['peak']:.0f}", *off, len(row["cells"]))


def person(everyone: bool) -> None:
    slow = ["smartnoise"] if everyone else []
    print(f"\n### {LARGE:,} rows, a person protected{_load()}\n")
    compared(LARGE, ["duckdb", "person", "auto", "opendp", *slow])


def row_level(everyone: bool) -> None:
    print(f"\n### {LARGE:,} rows, a row protected{_load()}\n")
    compared(LARGE, ["duckdb", "row", "row_anew"], base="row")


def with_peers(everyone: bool) -> None:
    print(f"\n### {MIDDLE:,} rows, a person protected{_load()}\n")
    compared(MIDDLE, ["duckdb", "person", "auto", "opendp", "smartnoise"])


def small(everyone: bool) -> None:
    """From the start of a process to its first answer."""
    print(f"\n### {SMALL:,} rows, a fresh process{_load()}\n")
    table("system", f"first answer, s (best of {REPEAT})", "peak, MB")
    for name in ("duckdb", "person", "row", "opendp"):
        runs = [run for _ in range(REPEAT) if (run := fresh(name, SMALL, 0))]
        if runs:
            line(SYSTEMS[name][0], seconds(min(run["cold"] for run in runs)), f"{min(r['peak'] for r in runs):.0f}")


def from_nothing(everyone: bool) -> None:
    """From an empty environment to the first table of the demo, and to its end."""
    print(f"\n### From `pip install` to an answer{_load()}\n")
    with tempfile.TemporaryDirectory(prefix="bench-sql-") as folder:
        home = Path(folder) / "venv"
        venv.create(home, with_pip=True)
        start = time.perf_counter()
        pip = [home / "bin" / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(ROOT)]
        subprocess.run(pip, check=True, cwd=folder)
        installed = time.perf_counter() - start
        seen = None
        shown = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        command = [home / "bin" / "discreet", "demo"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder, env=shown) as demo:
            assert demo.stdout is not None
            for text in demo.stdout:
                if seen is None and _is_cell(text.decode()):
                    seen = time.perf_counter() - start
        whole = time.perf_counter() - start
    if demo.returncode or seen is None:
        print(f"`discreet demo` ended with {demo.returncode}, and showed {'no' if seen is None else 'an'} answer")
        return
    table("from an empty virtual environment", "s")
    line("`pip install .`, packages from pip's cache where it has them", f"{installed:.1f}")
    line("… and the first answer of `discreet demo`", f"{seen:.1f}")
    line("… and the whole demo", f"{whole:.1f}")


def _is_cell(text: str) -> bool:
    """A number ± another, in a table; the demo's introduction speaks of ± too."""
    number, _, error = text.strip("│ \n").partition(" ± ")
    return bool(error) and number.replace(",", "").replace(".", "").isdigit()


def profile(everyone: bool) -> None:
    """Where the engine's seconds go: the operators of the statement that is printed for it, by their own time."""
    import duckdb as engine

    import discreet as dp
    from discreet.sql.compile import Statement

    columns = {"group_key": {"between": [0, GROUPS - 1]}, "value": {"between": [LOW, HIGH]}}
    bounds = {"rows_per_person": MAX_GROUPS * MAX_ROWS, "groups_per_person": MAX_GROUPS, "rows_per_group": MAX_ROWS}
    known = {"source": str(place(LARGE)), "person": "user_id", **bounds, "columns": columns}
    ledger = {"path": ":memory:", "epsilon": 10, "delta": 1e-3}
    db = dp.connect({"ledger": ledger, "unit": {"person": "user_id"}, "tables": {"t": known}})
    plan = db.plan(SQL, epsilon=EPSILON, delta=DELTA)
    text = Statement(plan.question, db.engine.relations, plan.bounds, 1).additive()
    connection = engine.connect()
    shown = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {text}").fetchall()[0][1]
    operators: list[tuple[float, str, int]] = []

    def walk(node: dict[str, Any]) -> None:
        known = node["extra_info"]
        told = [known[key] for key in ("Aggregates", "Projections", "Join Type", "CTE Name") if key in known]
        detail = str(told[0]) if told else ""
        operators.append((node["timing"], f"{node['type']} {detail[:90]}".strip(), node["intermediate_rows"]))
        for one in node.get("children", []):
            walk(one)

    for top in json.loads(shown)["operator"]:
        walk(top)
    print(f"\n### Where the time goes, by operator, all threads added{_load()}\n")
    table("operator", "rows out", "s")
    for spent, name, rows in sorted(operators, reverse=True)[:10]:
        line(name.replace("|", "/"), f"{rows:,}", f"{spent:.2f}")


def _load() -> str:
    return f" (load {os.getloadavg()[0]:.1f})"


PARTS: dict[str, Callable[[bool], None]] = {
    "person": person,
    "row": row_level,
    "peers": with_peers,
    "small": small,
    "fresh": from_nothing,
    "profile": profile,
}


def main(words: list[str]) -> None:
    print(
        f"ε = {EPSILON:g}, δ = {DELTA:g}, at most {MAX_GROUPS} groups of a person and {MAX_ROWS} rows in each; "
        f"{os.cpu_count()} cores; warm: best of {REPEAT}"
    )
    for part in [word for word in words if word in PARTS] or [name for name in PARTS if name != "profile"]:
        PARTS[part]("--all" in words)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["data", rows]:
            make(int(rows))
        case ["child", system, rows, repeat, began]:
            print(json.dumps(child(system, int(rows), int(repeat), float(began))))
        case words:
            main(words)
