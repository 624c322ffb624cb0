"""One pass of logistic regression over Parquet: by the partitions of Spark, and batch by batch on the driver.

    python -m bench.learning.spark_learning                        10^6 and 10^7 rows of 20 features, local[*]
    python -m bench.learning.spark_learning --rows 1000000         other sizes
    python -m bench.learning.spark_learning --master spark://…     another cluster, which must see --folder

Seconds of a pass are the least of so many: what is drawn and charged is left out. Seconds of cores are of all processes
on this machine, the driver's, Spark's and its workers': they say more where the machine is busy with other work. Both
read the same files, and both give the same sums to the last bit, which is checked. Spark starts before the clock does,
and its workers have loaded this package.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.report import line, machine, notes, table, verdict
from discreet.learn import LogisticRegression
from discreet.learn.streams import open_batches
from discreet.rows.gradients.examples import one_product_at_a_time
from discreet.rows.gradients.losses import Logistic

FEATURES, EACH = 20, 500_000
NAMES = [f"x{place}" for place in range(FEATURES)]
DRIVER, FILES, PERSISTED = "the driver, Parquet", "Spark, Parquet", "Spark, persisted"


def write(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(0, rows, EACH):
        count = min(EACH, rows - number)
        cells = rng.standard_normal((count, FEATURES)) / 4
        label = (cells[:, 0] + rng.standard_normal(count) / 4 > 0).astype(np.int64)
        columns = {name: cells[:, place] for place, name in enumerate(NAMES)} | {"label": label}
        pq.write_table(pa.table(columns), folder / f"part-{number:09}.parquet")


def least(work: Callable[[], Any], times: int) -> tuple[float, float, Any]:
    seconds, cores, found = [], [], None
    for _ in range(times):
        start, used = time.perf_counter(), core_seconds()
        found = work()
        seconds.append(time.perf_counter() - start)
        cores.append(core_seconds() - used)
    return min(seconds), min(cores), found


def core_seconds() -> float:
    """What this process and those that came of it have used, those included that have ended."""
    used: dict[int, int] = {}
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(place.parent.name)
        parents[process], used[process] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used.get(process, 0) for process in ours) / os.sysconf("SC_CLK_TCK")


def measured(spark: Any, rows: int, times: int, folder: Path | None) -> tuple[dict[str, tuple[float, float]], bool]:
    """Seconds and seconds of cores of a pass by each way, and whether all gave the same sums to the last bit."""
    weights, model = np.linspace(-1, 1, FEATURES + 1), LogisticRegression(classes=[0, 1])
    found, sums = {}, []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        write(Path(place), rows)
        frame = spark.read.parquet(place)
        kept = frame.persist()
        for name, source in {DRIVER: place, FILES: frame, PERSISTED: kept}.items():
            if name == FILES:
                kept.unpersist(blocking=True)
            if name == PERSISTED:
                kept.persist().count()
            stream = open_batches(source, NAMES, "label").stream(model._targets)
            with one_product_at_a_time(stream):
                stream.count  # noqa: B018 - workers load the package
                seconds, cores, sum_of = least(lambda s=stream: s.sums(weights, Logistic(), 0.5), times)
            found[name] = seconds, cores
            sums.append(sum_of)
        kept.unpersist()
    return found, all((one == sums[0]).all() for one in sums)


def session(master: str) -> Any:
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("pyspark is not installed: nothing is measured.", file=sys.stderr)
        sys.exit(2)
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--master", default=f"local[{os.cpu_count()}]")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    busy, spark = machine(), session(given.master)
    print(
        "### Learning on Spark\n`python -m bench.learning.spark_learning` · One pass of `LogisticRegression` over "
        f"Parquet with {FEATURES} features, Spark {spark.version} as `{given.master}`; the least of {given.times}; "
        f"{busy}.\n"
    )
    table("rows", "read by", "s", "million rows/s", "s of cores", "÷ those of the driver")
    goals = {}
    for rows in given.rows:
        found, same = measured(spark, rows, given.times, given.folder)
        goals[f"all sums of {rows:,} rows are the same to the last bit"] = same
        for name, (seconds, cores) in found.items():
            ratio = f"{cores / driver:.1f}" if (driver := found[DRIVER][1]) else None
            line(f"{rows:,}", name, f"{seconds:.2f}", f"{rows / seconds / 1e6:.2f}", f"{cores:.2f}", ratio)
    spark.stop()
    verdict(goals)
    notes(
        """Core seconds are those of all processes on this machine: the driver, Spark and its workers. On a busy
        machine they are more meaningful.""",
        """Drawing and charging are not included. Spark starts before the clock, and its workers have loaded this
        package.""",
    )


if __name__ == "__main__":
    main()
