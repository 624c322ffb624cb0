"""Private SQL: COUNT, SUM and AVG of 1000 groups over 10 million rows of a million people, beside DuckDB and the peers.

`python -m bench.sql.sql` measures everything in one run. Every system answers in a fresh process of its own, which runs
this file again in its environment; the answer of DuckDB, not private, is the truth that errors are measured against.
The data are made once, always the same, into $BENCH_DATA (default: data beside the peers). SmartNoise needs minutes for
10 million rows and answers over a tenth of them; with `--all` over all. `python -m bench.sql.sql person row` measures
only what is named: person, row, peers, small, fresh, profile (where the engine's time goes; only when named).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

DATA = Path(os.environ.get("BENCH_DATA") or peers.HOME / "data")
LARGE, MIDDLE, SMALL = 10_000_000, 1_000_000, 20_000
PEOPLE, GROUPS, TOP = 10, 1000, 100
"""So many rows for each person on average; groups; and the largest groups, over which errors are averaged."""
MAX_GROUPS, MAX_ROWS, WIDE = 5, 10, 20
BEST = {LARGE: (8, 40), MIDDLE: (5, 20)}
"""Groups of a person, and rows in each, that make the errors small. They were chosen by looking at the true errors,
which no owner of data can do."""
EPSILON, DELTA = 1.0, 1e-6
LOW, HIGH = 0, 100
REPEAT, PATIENCE = 3, 90.0
"""Warm is the best of so many runs after the first, none of them begun after so many seconds."""
SQL = "SELECT group_key, COUNT(*) AS n, SUM(value) AS s, AVG(value) AS m FROM t GROUP BY group_key"
SECONDS, MEGABYTES, FASTER, SLOWER = 2.0, 1000, 8.0, 2.0
"""Goals: with a person protected, time and memory, and times as fast as OpenDP; with a row, times as slow as DuckDB."""
FEWEST = {LARGE: (0.025, 0.03, 0.015), MIDDLE: (0.11, 0.13, 0.06)}
"""Goals for the errors of COUNT, SUM and AVG with nothing declared, by the number of rows."""
MORE = 1.2
"""With nothing declared: at most so many times the CPU time and memory that bounds take."""
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

SAID: list[str] = []
"""What discreet says in this process of bounds that it found."""


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

    known: dict[str, Any] = {"source": data, "columns": {"group_key": {"between": [0, GROUPS - 1]}}}
    if protects != "nothing":
        known["columns"]["value"] = {"between": [LOW, HIGH]}
    if protects != "row":
        known["person"] = "user_id"
    if protects in ("person", "auto", "best"):
        most, rows = {"person": (MAX_GROUPS, MAX_ROWS), "auto": (WIDE, WIDE)}.get(protects) or best_bounds(data)
        known |= {"rows_per_person": most * rows, "rows_per_group": rows}
        known["groups_per_person"] = "auto" if protects == "auto" else most
    delta = 0 if protects == "nothing" else DELTA
    unit = {"row": True} if protects == "row" else {"person": "user_id"}
    folder = tempfile.TemporaryDirectory(prefix="bench-sql-")  # gone with the process

    def opened() -> Any:
        ledger = {"path": f"{folder.name}/{time.time_ns()}.ledger", "epsilon": 10, "delta": 1e-3}
        return dp.connect({"ledger": ledger, "unit": unit, "tables": {"t": known}})

    kept, asked = None if anew else opened(), count(1)

    def answer() -> Answer:
        db = kept or opened()
        # another condition each time, as the same numbers would be found in the ledger for free
        text = SQL.replace(" GROUP BY", f" WHERE group_key > -{next(asked)} GROUP BY")
        found = db.sql(text, epsilon=EPSILON, delta=delta)
        assert not found.replayed
        SAID.extend(note for note in found.notes if note.startswith("Found privately") and note not in SAID)
        if anew:
            db.close()
        return {row["group_key"]: (row["n"], row["s"], row["m"]) for row in found.table.to_pylist()}

    return answer


def best_bounds(data: str) -> tuple[int, int]:
    """The best groups and rows of a person for these data."""
    return BEST[int(Path(data).stem.partition("-")[2])]


def opendp(data: str, groups: int = MAX_GROUPS, rows_of_one: int = MAX_ROWS) -> Callable[[], Answer]:
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
        asked = context.query().truncate_per_group(rows_of_one, by=["group_key"], keep="sample")
        asked = asked.truncate_num_groups(groups, by=["group_key"], keep="first")  # "sample" fails with one key
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
    "nothing": ("discreet, nothing declared", "", lambda data: discreet(data, "nothing")),
    "best": ("discreet, best bounds", "", lambda data: discreet(data, "best")),
    "row": ("discreet, `row()`", "", lambda data: discreet(data, "row")),
    "row_anew": ("… opened for each question", "", lambda data: discreet(data, "row", anew=True)),
    "opendp": (f"OpenDP {peers.version('opendp-polars')} (Polars)", "opendp-polars", opendp),
    "opendp_best": (
        f"OpenDP {peers.version('opendp-polars')} (Polars), best bounds",
        "opendp-polars",
        lambda data: opendp(data, *best_bounds(data)),
    ),
    "smartnoise": (f"SmartNoise SQL {peers.version('smartnoise')}", "smartnoise", smartnoise),
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
    return {"cold": cold, "warm": seconds, "cpu": processor, "peak": peak(), "cells": cells, "said": SAID}


def fresh(system: str, rows: int, repeat: int = REPEAT) -> dict[str, Any] | str:
    """What a fresh process of the system measures, or why nothing is."""
    name, peer, _ = SYSTEMS[system]
    if peer and not (peers.HOME / peer / ".ready").exists():
        return f"{name} is missing: `python -m bench.peers` installs it."
    if not place(rows).exists():
        subprocess.run([sys.executable, "-m", __spec__.name, "data", str(rows)], check=True)
    python = peers.interpreter(peer) if peer else sys.executable
    command = [
        str(python),
        "-W",
        "ignore",
        "-m",
        __spec__.name,
        "child",
        system,
        str(rows),
        str(repeat),
        str(time.time()),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}: {done.stderr}", file=sys.stderr, flush=True)
        return f"{name} failed over {rows:,} rows, and is left out."
    print(f"{name}, {rows:,} rows: done", file=sys.stderr, flush=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- tables -------------------------------------------------------------------------------------------------


def seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:,.0f}%"


def best(row: dict[str, Any]) -> float:
    """Warm, or the first run of whoever had no time for another."""
    return row["cold"] if row["warm"] is None else row["warm"]


def errors(row: dict[str, Any], truth: dict[str, Any]) -> list[float]:
    """The mean relative errors of COUNT, SUM and AVG on the largest groups; a group that is not there is wrong by 1."""
    found = {key: parts for key, *parts in row["cells"]}
    largest = sorted(truth["cells"], key=lambda cell: -cell[1])[:TOP]
    off = [[abs(f - t) / t for f, t in zip(found.get(k, (0, 0, 0)), true, strict=True)] for k, *true in largest]
    return [sum(column) / len(off) for column in zip(*off, strict=True)]


def lost(rows: int) -> float:
    """The share of the counts of the largest groups that bounds take away, when a person's groups are chosen at random:
    a mean over all choices.
    """
    import duckdb

    pairs = f"""SELECT group_key, COUNT(*) AS n, COUNT(*) OVER (PARTITION BY user_id) AS groups
        FROM read_parquet('{place(rows)}') GROUP BY user_id, group_key"""
    kept = f"SUM(LEAST(n, {MAX_ROWS}) * LEAST(1, {MAX_GROUPS} / groups))"
    shares = f"SELECT 1 - {kept} / SUM(n) AS share FROM ({pairs}) GROUP BY group_key ORDER BY SUM(n) DESC LIMIT {TOP}"
    return float(duckdb.execute(f"SELECT AVG(share) FROM ({shares})").fetchall()[0][0])


def compared(rows: int, systems: list[str], base: str = "person") -> dict[str, dict[str, Any]]:
    """One row for each system, with its time as a multiple of DuckDB's, and of `base`; and what was measured."""
    runs = {name: fresh(name, rows) for name in systems}
    found = {name: run for name, run in runs.items() if isinstance(run, dict)}
    raw = found.get("duckdb")
    columns = ("cold, s", "warm, s", "warm, CPU s", "÷ DuckDB", "÷ discreet", "peak, MB")
    table("system", *columns, "error COUNT", "SUM", "AVG", "groups")
    for name, row in found.items():
        ratios = [f"{best(row) / best(found[one]):.2f}" if one in found else None for one in ("duckdb", base)]
        off = map(percent, errors(row, raw)) if raw else [None] * 3
        times = [seconds(row[key]) for key in ("cold", "warm", "cpu")]
        line(SYSTEMS[name][0], *times, *ratios, f"{row['peak']:.0f}", *off, len(row["cells"]))
    left_out(runs.values())
    return found


def left_out(runs: Iterable[dict[str, Any] | str]) -> None:
    if said := dict.fromkeys(run for run in runs if isinstance(run, str)):
        notes(*said)


def person(everyone: bool) -> None:
    print(f"\n### {LARGE:,} rows, a person protected\n")
    found = compared(
        LARGE,
        ["duckdb", "person", "nothing", "best", "auto", "opendp", "opendp_best", *["smartnoise"] * everyone],
    )
    goals = {}
    if ours := found.get("person"):
        goals[f"at most {SECONDS:g} s ({best(ours):.3f} s)"] = best(ours) <= SECONDS
        goals[f"at most {MEGABYTES:,} MB ({ours['peak']:.0f} MB)"] = ours["peak"] <= MEGABYTES
    if ours and (peer := found.get("opendp")):
        faster = best(peer) / best(ours)
        goals[f"{FASTER:g} times as fast as OpenDP ({faster:.1f} times)"] = faster >= FASTER
    verdict(goals | nothing_declared(LARGE, found))
    told = [f"{percent(lost(LARGE))} of the counts are lost to the bounds alone, on average over the {TOP} groups."]
    if "auto" in found:
        told.append(
            f"""With `groups_per_person="auto"`, and {WIDE} rows in a group, a tenth of ε pays for the number of groups.
            {" ".join(found["auto"]["said"])}"""
        )
    notes(*told)


def nothing_declared(rows: int, found: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """The goals for a policy that says who a person is, and which keys are public."""
    raw, bounded, ours = map(found.get, ("duckdb", "person", "nothing"))
    if not (raw and bounded and ours):
        return {}
    goals = {}
    for name, error, most in zip(("COUNT", "SUM", "AVG"), errors(ours, raw), FEWEST[rows], strict=True):
        goals[f"nothing declared: {name} within {percent(most)} ({percent(error)})"] = error <= most
    for name, key in (("CPU time", "cpu"), ("memory", "peak")) if rows == LARGE else ():
        more = ours[key] / bounded[key]
        goals[f"nothing declared: {MORE:g} times the {name} of bounds ({more:.2f} times)"] = more <= MORE
    return goals


def row_level(everyone: bool) -> None:
    print(f"\n### {LARGE:,} rows, a row protected\n\nNothing is bounded.\n")
    found = compared(LARGE, ["duckdb", "row", "row_anew"], base="row")
    raw, kept, anew = map(found.get, ("duckdb", "row", "row_anew"))
    goals = {}
    for how, row in (("with an open database", kept), ("with one that is opened for each question", anew)):
        if raw and row:
            slower = best(row) / best(raw)
            goals[f"at most {SLOWER:g} times DuckDB's time, {how} ({slower:.2f} times)"] = slower <= SLOWER
    verdict(goals)
    if kept and anew and kept["cpu"] is not None and anew["cpu"] is not None:
        notes(f"Opening policy, engine and ledger takes {anew['cpu'] - kept['cpu']:.2f} CPU seconds.")


def with_peers(everyone: bool) -> None:
    print(f"\n### {MIDDLE:,} rows, a person protected\n")
    found = compared(MIDDLE, ["duckdb", "person", "nothing", "best", "auto", "opendp", "opendp_best", "smartnoise"])
    verdict(nothing_declared(MIDDLE, found))


def small(everyone: bool) -> None:
    """From the start of a process to its first answer."""
    print(f"\n### {SMALL:,} rows, a fresh process\n")
    table("system", f"first answer, s (best of {REPEAT})", "peak, MB")
    failed: list[str] = []
    for name in ("duckdb", "person", "row", "opendp"):
        tried = [fresh(name, SMALL, 0) for _ in range(REPEAT)]
        failed += [run for run in tried if isinstance(run, str)]
        if runs := [run for run in tried if isinstance(run, dict)]:
            line(SYSTEMS[name][0], seconds(min(run["cold"] for run in runs)), f"{min(r['peak'] for r in runs):.0f}")
    left_out(failed)


def from_nothing(everyone: bool) -> None:
    """From an empty environment to the first table of the demo, and to its end."""
    print("\n### From `pip install` to an answer")
    with tempfile.TemporaryDirectory(prefix="bench-sql-") as folder:
        home = Path(folder) / "venv"
        venv.create(home, with_pip=True)
        start = time.perf_counter()
        pip = [home / "bin" / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(peers.ROOT)]
        if subprocess.run(pip, cwd=folder, stdout=sys.stderr).returncode:
            return notes("`pip install .` failed, so nothing is measured.")
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
        said = f"`discreet demo` ended with {demo.returncode}, and showed {'no' if seen is None else 'an'} answer."
        return notes(said)
    print()
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
    from discreet.sql.measuring.compile import Statement

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
    print("\n### Where the time goes, by operator, all threads added\n")
    table("operator", "rows out", "s")
    for spent, name, rows in sorted(operators, reverse=True)[:10]:
        line(name.replace("|", "/"), f"{rows:,}", f"{spent:.2f}")


PARTS: dict[str, Callable[[bool], None]] = {
    "person": person,
    "row": row_level,
    "peers": with_peers,
    "small": small,
    "fresh": from_nothing,
    "profile": profile,
}


def main(words: list[str]) -> None:
    bounds = " and ".join(f"{most} groups × {rows} rows (for {size:,})" for size, (most, rows) in BEST.items())
    about = f"""COUNT, SUM and AVG of {GROUPS} groups, ε = {EPSILON:g}, δ = {DELTA:g}, {PEOPLE} rows of a person on
    average, at most {MAX_GROUPS} groups of a person and {MAX_ROWS} rows in each. All databases are open before the
    clock starts. Each question is new and is charged to a durable ledger on disk. Cold is the first
    answer, from the start of a fresh process; warm is the best of {REPEAT} after it. Errors are means over the {TOP}
    largest groups, against the truth without bounds. With nothing declared, only the person and the keys are known, and
    the promise is pure: δ = 0. The best bounds, {bounds}, were chosen by looking at the true errors, which no owner of
    data can do. {machine()}."""
    section("SQL", "sql.sql", about)
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
