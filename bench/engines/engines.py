"""The group-by task of sql.py on every engine, beside the SQL one would write by hand, Tumult Analytics and PipelineDP.

`python -m bench.engines.engines` measures everything in one run, each system in a fresh process of its own, which runs
this file again in its environment. On each engine: the question without privacy, its bounds written by hand in SQL and
without noise, and discreet. PostgreSQL is one that is started here, from Debian's `postgresql` or the PATH, and gone
afterwards; its table is loaded, vacuumed and analyzed before the clock starts. Spark is local, on two cores with 8 GB.
`python -m bench.engines.engines duckdb spark-4` measures only what is named: duckdb, postgres, spark-3, spark-4,
tumult, pipelinedp; with `--tenth` over a tenth of the rows. What DuckDB says, not private, is the truth.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from bench import peers, postgres_server
from bench.postgres_server import Server
from bench.report import line, notes, section, table, verdict
from bench.sql import sql
from bench.sql.sql import DELTA, EPSILON, GROUPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS, SQL, Answer

REPEAT, PATIENCE = 3, 120.0
"""Warm is the best of so many runs after the first; after so many seconds, no more than one of them is begun."""
MEMORY = 8
"""Gigabytes for Spark, and a third of them for PostgreSQL's buffers."""
SAMPLE = 0.1
"""Seconds from one look at the memory to the next."""
HAND = f"""
SELECT group_key, SUM(n) AS n, SUM(s) AS s, SUM(s) / SUM(n) AS m FROM (
  SELECT group_key, n, s, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY x) AS place FROM (
    SELECT user_id, group_key, COUNT(*) AS n, SUM(GREATEST({LOW}, LEAST({HIGH}, value))) AS s, RANDOM() AS x FROM (
      SELECT user_id, group_key, value, ROW_NUMBER() OVER (PARTITION BY user_id, group_key ORDER BY x) AS place
      FROM (SELECT user_id, group_key, value, RANDOM() AS x FROM t) AS drawn
    ) AS numbered WHERE place <= {MAX_ROWS} GROUP BY user_id, group_key
  ) AS pairs
) AS chosen WHERE place <= {MAX_GROUPS} GROUP BY group_key
"""
"""So many random rows of each person in a group, then so many random groups of each: one text for all engines."""
FASTER, SLOWER = 10.0, 1.5
"""Goals: times as fast as Tumult on the same Spark, and times as slow as the bounds by hand."""
Ask = Callable[[str], list[Any]]
Found = dict[str, dict[str, Any]]


# --- engines: each gives a function that runs a text ---------------------------------------------------------


def duckdb(data: str) -> Ask:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS FROM read_parquet('{data}')")
    return lambda text: connection.execute(text).fetchall()


def postgres(data: str) -> Ask:
    import psycopg

    connection = psycopg.connect(os.environ["BENCH_POSTGRES"], autocommit=True)
    return lambda text: connection.execute(text).fetchall()


def spark(data: str) -> Ask:
    session = started()
    session.read.parquet(data).createOrReplaceTempView("t")
    return lambda text: session.sql(text).collect()


def settings(scratch: str, python: str) -> dict[str, str]:
    """The environment in which Spark's JVM starts: the same for every system."""
    own = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "8"}
    own |= {"spark.sql.warehouse.dir": f"{scratch}/warehouse"}
    words = ["--master local[2]", f"--driver-memory {MEMORY}g", *(f"--conf {key}={own[key]}" for key in own)]
    told = {"PYSPARK_SUBMIT_ARGS": f"{' '.join(words)} pyspark-shell", "PYSPARK_PYTHON": python}
    return told | {"SPARK_LOCAL_DIRS": scratch, "SPARK_LOCAL_IP": "127.0.0.1"}


def started() -> Any:
    """A session of Spark with these settings."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@dataclass(frozen=True)
class Engine:
    """How it is printed, the environment that has it (none: this one), its maker, and what a policy says of it."""

    printed: str
    peer: str
    make: Callable[[str], Ask]
    kind: str


ENGINES = {
    "duckdb": Engine("DuckDB", "", duckdb, "duckdb"),
    "postgres": Engine("PostgreSQL", "", postgres, "postgres"),
    "spark-3": Engine("Spark 3.5", "spark-3", spark, "spark"),
    "spark-4": Engine("Spark 4", "spark-4", spark, "spark"),
}


# --- systems: each gives a function that answers once --------------------------------------------------------


def asked(ask: Ask, text: str) -> Callable[[], Answer]:
    return lambda: {key: tuple(map(float, parts)) for key, *parts in ask(text)}


def discreet(data: str, kind: str) -> Callable[[], Answer]:
    """The database stays open, with a durable ledger. Each time the columns have other names, as the same question
    would be answered from the ledger for free.
    """
    import discreet as dp

    engine: dict[str, Any] = {"kind": kind}
    session: dict[str, Any] = {}
    match kind:
        case "postgres":
            engine["url"], data = os.environ["BENCH_POSTGRES"], "public.t"
        case "spark":
            session["spark"] = started()
    bounds = {"rows_per_person": MAX_GROUPS * MAX_ROWS, "groups_per_person": MAX_GROUPS, "rows_per_group": MAX_ROWS}
    columns = {"group_key": {"between": [0, GROUPS - 1]}, "value": {"between": [LOW, HIGH]}}
    policy = {
        "engine": engine,
        "ledger": {"path": f"{os.environ['BENCH_SCRATCH']}/engines.ledger", "epsilon": 10, "delta": 1e-3},
        "unit": {"person": "user_id"},
        "tables": {"t": {"source": data, "person": "user_id", **bounds, "columns": columns}},
    }
    db = dp.connect(policy, **session)

    asked = count(1)

    def answer() -> Answer:
        # another condition each time, as the same numbers would be found in the ledger for free
        text = SQL.replace(" GROUP BY", f" WHERE group_key > -{next(asked)} GROUP BY")
        found = db.sql(text, epsilon=EPSILON, delta=DELTA)
        assert not found.replayed
        return {row["group_key"]: (row["n"], row["s"], row["m"]) for row in found.table.to_pylist()}

    return answer


def tumult(data: str, *, cached: bool = False) -> Callable[[], Answer]:
    """Count and sum, the mean is their quotient. The bounded table is a view, and bounded for each of them; `cached`,
    it is kept in memory for both. Gaussian noise of the ρ with ρ + 2 √(ρ ln(1/δ)) = ε.
    """
    session = started()
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        RhoZCDPBudget,
        Session,
    )

    keys = KeySet.from_dataframe(session.range(GROUPS).withColumnRenamed("id", "group_key"))
    long = math.log(1 / DELTA)
    rho = (math.sqrt(long + EPSILON) - math.sqrt(long)) ** 2

    def answer() -> Answer:
        rows = session.read.parquet(data)
        own = Session.from_dataframe(RhoZCDPBudget(rho), "t", rows, protected_change=AddRowsWithID("user_id"))
        bounded = QueryBuilder("t").enforce(MaxRowsPerGroupPerID("group_key", MAX_ROWS))
        own.create_view(bounded.enforce(MaxGroupsPerID("group_key", MAX_GROUPS)), "bounded", cache=cached)
        groups = QueryBuilder("bounded").groupby(keys)
        half = RhoZCDPBudget(rho / 2)
        counts = own.evaluate(groups.count(name="n"), half).collect()
        sums = own.evaluate(groups.sum("value", LOW, HIGH, name="s"), half).collect()
        own.delete_view("bounded")
        total = dict(sums)
        return {key: (n, total[key], total[key] / n if n > 0 else 0) for key, n in counts}

    return answer


def pipelinedp(data: str) -> Callable[[], Answer]:
    """Its RDD backend with public partitions. All three metrics are one call."""
    session = started()
    import pipeline_dp as pdp

    metrics = [pdp.Metrics.COUNT, pdp.Metrics.SUM, pdp.Metrics.MEAN]
    wanted = pdp.AggregateParams(
        metrics=metrics,
        noise_kind=pdp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=MAX_GROUPS,
        max_contributions_per_partition=MAX_ROWS,
        min_value=LOW,
        max_value=HIGH,
    )
    columns = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def answer() -> Answer:
        rows = session.read.parquet(data).select("user_id", "group_key", "value").rdd
        budget = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pdp.DPEngine(budget, pdp.SparkRDDBackend(session.sparkContext))
        found = engine.aggregate(rows, wanted, columns, public_partitions=list(range(GROUPS)))
        budget.compute_budgets()
        return {key: (cell.count, cell.sum, cell.mean) for key, cell in found.collect()}

    return answer


@dataclass(frozen=True)
class System:
    """How it is printed, the engine it runs on and the part that asks for it, the environment it has, and its maker."""

    printed: str
    engine: str
    part: str
    peer: str
    make: Callable[[str], Callable[[], Answer]]


def systems() -> dict[str, System]:
    found = {}
    for name, engine in ENGINES.items():
        makers: dict[str, tuple[str, Callable[[str], Callable[[], Answer]]]] = {
            "plain": ("not private", lambda data, engine=engine: asked(engine.make(data), SQL)),
            "hand": ("bounds by hand, no noise", lambda data, engine=engine: asked(engine.make(data), HAND)),
            "discreet": ("discreet", lambda data, engine=engine: discreet(data, engine.kind)),
        }
        for kind, (printed, make) in makers.items():
            found[f"{name}-{kind}"] = System(printed, name, name, engine.peer, make)
    found["tumult"] = System("Tumult Analytics", "spark-3", "tumult", "tumult", tumult)
    cached = System(
        "Tumult Analytics, its bounded rows cached", "spark-3", "tumult", "tumult", partial(tumult, cached=True)
    )
    found["tumult-cached"] = cached
    found["pipelinedp"] = System("PipelineDP", "spark-3", "pipelinedp", "pipelinedp", pipelinedp)
    return found


SYSTEMS = systems()
PARTS = list(dict.fromkeys(system.part for system in SYSTEMS.values()))


# --- PostgreSQL ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def loaded(programs: Path, rows: int) -> Iterator[Server]:
    """A server with the table in it."""
    # what one sets on a machine like this; out of the box, every sort of every system would go to disk
    settings = {"shared_buffers": f"{MEMORY * 1024 // 3}MB", "work_mem": "256MB", "max_wal_size": "8GB", "fsync": "off"}
    with postgres_server.server(programs, settings) as serving, tempfile.TemporaryDirectory() as folder:
        load(serving.url, rows, f"{folder}/rows.csv")
        yield serving


def load(url: str, rows: int, text: str) -> None:
    import duckdb
    import psycopg

    duckdb.execute(f"COPY (FROM read_parquet('{sql.place(rows)}')) TO '{text}' (FORMAT csv, HEADER false)")
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (user_id bigint, group_key bigint, value double precision)")
        with open(text, "rb") as file, cursor.copy("COPY t FROM STDIN (FORMAT csv)") as copy:
            while piece := file.read(2**20):
                copy.write(piece)
        cursor.execute("VACUUM (ANALYZE) t")
        cursor.execute("CHECKPOINT")
    Path(text).unlink()


# --- one system in a fresh process ---------------------------------------------------------------------------


def child(system: str, rows: int, began: float) -> dict[str, Any]:
    """The first answer is since `began`, just before the process was started."""
    answer, warm = SYSTEMS[system].make(str(sql.place(rows))), []
    found = answer()
    first = time.time() - began
    while len(warm) < REPEAT and (not warm or time.time() - began < PATIENCE):
        start = time.perf_counter()
        found = answer()
        warm.append(time.perf_counter() - start)
    return {"cold": first, "warm": min(warm), "cells": [[key, *map(float, parts)] for key, parts in found.items()]}


def held(roots: list[int]) -> float | None:
    """The memory, in MB, that these processes and those they started hold now; what all share (PostgreSQL's buffers)
    is counted once.
    """
    own, shared, todo = 0, 0, list(roots)
    if not Path("/proc/self/status").exists():
        return None
    while todo:
        one = todo.pop()
        with contextlib.suppress(OSError, IndexError):  # it may be gone by now
            for task in Path(f"/proc/{one}/task").iterdir():
                todo += map(int, (task / "children").read_text().split())
            text = Path(f"/proc/{one}/status").read_text()
            parts = (int(text.partition(f"Rss{kind}:")[2].split()[0]) for kind in ("Anon", "File", "Shmem"))
            anonymous, file, common = parts
            own, shared = own + anonymous + file, max(shared, common)
    return (own + shared) / 1024


def fresh(name: str, rows: int, serving: Server | None, scratch: str) -> dict[str, Any] | str:
    """What a fresh process of the system measures, or why nothing is."""
    system = SYSTEMS[name]
    title = f"{system.printed} on {ENGINES[system.engine].printed}"
    if system.peer and not (peers.HOME / system.peer / ".ready").exists():
        return f"{title} is missing: `python -m bench.peers` installs it."
    python = str(peers.interpreter(system.peer) if system.peer else sys.executable)
    known = settings(scratch, python) | {"BENCH_SCRATCH": scratch}
    known |= {"BENCH_POSTGRES": serving.url} if serving else {}
    said = Path(scratch) / "said"
    command = [python, "-W", "ignore", "-m", __spec__.name, "child", name, str(rows), str(time.time())]
    with said.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=os.environ | known)
    roots = [process.pid, serving.process] if serving else [process.pid]
    most: list[float] = []

    def watch() -> None:
        while process.returncode is None:
            if (now := held(roots)) is not None:
                most[:] = [max([now, *most])]
            time.sleep(SAMPLE)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    out = process.communicate()[0].decode()
    watcher.join()
    if process.returncode:
        lines = said.read_text(errors="replace").strip().splitlines() or ["it says nothing"]
        causes = [one for one in lines if "Caused by" in one or "Error" in one or "Exception" in one]
        print(f"{title}: {(causes or lines)[-1].strip()}", file=sys.stderr, flush=True)  # Java ends with where
        return f"{title} failed, and is left out."
    return json.loads(out.splitlines()[-1]) | {"peak": most[0] if most else None}


# --- table --------------------------------------------------------------------------------------------------


def measured(parts: list[str], rows: int) -> tuple[Found, list[str]]:
    """What every system of these parts measures, the one that says the truth first; and what is left out."""
    found: Found = {}
    missing: list[str] = []
    programs = postgres_server.programs()
    for part in parts if "duckdb" in parts else ["truth", *parts]:
        names = [name for name in SYSTEMS if SYSTEMS[name].part == part] or ["duckdb-plain"]
        if part == "postgres" and programs is None:
            missing.append("PostgreSQL is missing: Debian's `postgresql` has it.")
            continue
        with loaded(programs, rows) if part == "postgres" else contextlib.nullcontext() as serving:
            for name in names:
                with tempfile.TemporaryDirectory(prefix="bench-engines-", ignore_cleanup_errors=True) as scratch:
                    row = fresh(name, rows, serving, scratch)
                if isinstance(row, str):
                    missing.append(row)
                    continue
                found[name] = row
                print(f"{name}: {row['cold']:.1f} s, then {row['warm']:.1f} s", file=sys.stderr, flush=True)
    truth = found.get("duckdb-plain")
    for row in found.values():
        row["error"] = sql.errors(row, truth)[0] if truth else None
    return found, missing


def heading(rows: int) -> None:
    if rows < sql.LARGE:
        command = f"python -m bench.engines.engines {' '.join(sys.argv[1:])}"
        print(f"### A tenth of the rows\n`{command}` · The same over {rows:,} rows.\n", flush=True)
        return
    about = f"""The question of [SQL](sql.md#sql) over {rows:,} rows on every engine, compared with the same bounds
    written by hand in SQL (two windows over random rows and groups, no noise) and with Tumult Analytics
    {peers.version("tumult")} on the same Spark: as a user would write it, and with its bounded rows cached for both
    of its questions. Spark is local, on two
    cores with {MEMORY} GB. First: from the start of the process, including the JVM. Warm: the best of {REPEAT}."""
    section("Engines", "engines.engines", about)


def told(found: Found, missing: list[str], rows: int) -> None:
    """The table, which goals are met, and remarks."""
    peer = found.get("tumult")
    columns = ("first, s", "warm, s", "÷ by hand", *["Tumult ÷ this"] * bool(peer), "error COUNT", "peak, MB")
    table("system", "engine", *columns)
    for name, row in found.items():
        system = SYSTEMS[name]
        times = [sql.seconds(row[key]) for key in ("cold", "warm")]
        hand = found.get(f"{system.engine}-hand")
        ratios = [f"{row['warm'] / hand['warm']:.2f}" if hand else None]
        ratios += [f"{peer['warm'] / row['warm']:.1f}"] if peer else []
        off = None if row["error"] is None else sql.percent(row["error"])
        peak = None if row["peak"] is None else f"{row['peak']:.0f}"
        line(system.printed, ENGINES[system.engine].printed, *times, *ratios, off, peak)
    if rows == sql.LARGE:
        verdict(goals(found))
    if said := [*remarks(found), *missing]:
        notes(*said)


def faster(found: Found, peer: str) -> float | None:
    """How many times as fast as a peer discreet is, on the same Spark."""
    both = [found[name]["warm"] for name in (peer, "spark-3-discreet") if name in found]
    return both[0] / both[1] if len(both) == 2 else None


def goals(found: Found) -> dict[str, bool]:
    met = {}
    if ratio := faster(found, "tumult"):
        met[f"{FASTER:g} times as fast as Tumult on the same Spark ({ratio:.1f} times)"] = ratio >= FASTER
    pairs = [(found.get(f"{engine}-discreet"), found.get(f"{engine}-hand")) for engine in ENGINES]
    if slower := [ours["warm"] / hand["warm"] for ours, hand in pairs if ours and hand]:
        span = f"{min(slower):.2f} to {max(slower):.2f} times"
        met[f"at most {SLOWER:g} times the bounds by hand ({span})"] = max(slower) <= SLOWER
    return met


def remarks(found: Found) -> list[str]:
    said = []
    if ratio := faster(found, "tumult-cached"):
        said.append(f"discreet is {ratio:.1f} times as fast as Tumult with its bounded rows cached, on the same Spark.")
    if ratio := faster(found, "pipelinedp"):
        peer = f"PipelineDP {peers.version('pipelinedp')}"
        said.append(f"discreet is {ratio:.0f} times as fast as {peer}, on the same Spark.")
    if peers.ARM and "tumult" in found:
        said.append("On this processor (ARM) Tumult runs with Debian's builds of its C libraries.")
    if peers.ARM and "pipelinedp" in found:
        said.append("PipelineDP's C++ noise has no build for this processor. Here it is numpy noise of the same scale.")
    if "postgres-discreet" in found and (programs := postgres_server.programs()):
        version = postgres_server.version(programs)
        said.append(f"PostgreSQL {version} has its table loaded, vacuumed and analyzed before the clock starts.")
    return said


def main(words: list[str]) -> None:
    rows = sql.MIDDLE if "--tenth" in words else sql.LARGE
    if not sql.place(rows).exists():
        subprocess.run([sys.executable, "-m", sql.__name__, "data", str(rows)], check=True)
    heading(rows)
    told(*measured([word for word in words if word in PARTS] or PARTS, rows), rows)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["child", system, rows, began]:
            print(json.dumps(child(system, int(rows), float(began))))
        case words:
            main(words)
