"""One pass of logistic regression over Parquet: by the partitions of Spark, and batch by batch on the driver.

    python bench/spark_learning.py                        10^6 and 10^7 rows of 20 features, local[*]
    python bench/spark_learning.py --rows 1000000         other sizes
    python bench/spark_learning.py --master spark://…     another cluster, which must see the folder of --folder

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

from discreet.learn import LogisticRegression
from discreet.learn.streams import opened
from discreet.queries.examples import one_product_at_a_time
from discreet.queries.losses import Logistic

FEATURES, EACH = 20, 500_000
NAMES = [f"x{place}" for place in range(FEATURES)]


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
    """What this process and those that came of it have used."""
    used: dict[int, int] = {}
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(place.parent.name)
        parents[process], used[process] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used.get(process, 0) for process in ours) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--master", default=f"local[{os.cpu_count()}]")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(given.master).config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    weights, model = np.linspace(-1, 1, FEATURES + 1), LogisticRegression(classes=[0, 1])
    print(f"one pass, {FEATURES} features, {given.master}, {os.cpu_count()} cores here")
    for rows in given.rows:
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            write(Path(place), rows)
            frame = spark.read.parquet(place)
            kept = frame.persist()
            sources = {"driver, Parquet": place, "Spark, Parquet": frame, "Spark, persisted": kept}
            sums: list[Any] = []
            for name, source in sources.items():
                if name == "Spark, Parquet":
                    kept.unpersist(blocking=True)
                if name == "Spark, persisted":
                    kept.persist().count()
                stream = opened(source, NAMES, "label").stream(model._targets)
                with one_product_at_a_time(stream):
                    stream.count  # noqa: B018 - workers load the package
                    seconds, cores, found = least(lambda s=stream: s.sums(weights, Logistic(), 0.5), given.times)
                sums.append(found)
                speed = f"{seconds:8.2f} s  {rows / seconds / 1e6:6.2f} million rows/s  {cores:8.2f} s of cores"
                print(f"{rows:>12,} rows  {name:18} {speed}", flush=True)
            kept.unpersist()
            same = all((one == sums[0]).all() for one in sums)
            print(f"{rows:>12,} rows  sums are {'the same to the last bit' if same else 'DIFFERENT'}")
    spark.stop()


if __name__ == "__main__":
    main()
