"""Train models where the rows are: Spark's executors sum them up, and noise is added to the exact sums.

Run it with `python examples/learning/learn_on_spark.py`; it needs `pip install "discreet[spark]"` and Java 17.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp

warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about the versions of other packages
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors need this package: here, the same Python
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

if importlib.util.find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    print('Spark is not installed: it needs Java 17 and pip install "discreet[spark]"')
    raise SystemExit

from pyspark.sql import SparkSession  # noqa: E402 - only if it is installed

draw = np.random.default_rng(5)
rows = 40_000
age, cost = draw.integers(18, 95, rows), draw.lognormal(6, 0.7, rows).clip(0, 5000)
again = (age - 60) / 12 + (cost - 500) / 600 + draw.logistic(size=rows) > 0
visits = pa.table({"age": age, "cost": cost, "readmitted": again.astype(int)})

with tempfile.TemporaryDirectory() as folder:
    pq.write_table(visits, Path(folder) / "visits.parquet")
    builder = SparkSession.builder.master("local[2]").appName("visits").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    frame = spark.read.parquet(folder).repartition(4).persist()  # every step reads it again

    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=4, delta=1e-4))
    ranges = [(18, 95), (0, 5000)]
    model = dp.learn.LogisticRegression(
        epsilon=1, delta=1e-6, classes=[0, 1], steps=10, feature_ranges=ranges, n_samples=rows, ledger=ledger
    )
    model.fit_batches(frame, features=["age", "cost"], target="readmitted")
    known = np.column_stack([age, cost])
    print(f"Readmission, in {model.n_iter_} passes over the partitions:")
    for name, weight in zip(model.feature_names_in_, model.coef_[0], strict=True):
        print(f"  {name:5} {weight:+.4f}")
    print(f"  right for {100 * model.score(known, again):.1f}% of the visits")

    scaler = dp.learn.StandardScaler(epsilon=1, delta=1e-6, feature_ranges=ranges, ledger=ledger)
    scaler.fit_batches(frame, features=["age", "cost"])
    print(f"\nA visit costs {scaler.mean_[1]:,.0f} on average, with a standard deviation of {scaler.scale_[1]:,.0f}")
    spark.stop()

print(f"\n{ledger.remaining} remains after {len(ledger.entries())} fits")
