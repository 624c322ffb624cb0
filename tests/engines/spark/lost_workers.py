"""Questions to a cluster whose workers are killed one after the other: `python lost_workers.py MASTER FOLDER PIDS…`.

It prints as JSON what became of each. A process of its own, as there is one cluster of Spark in each.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp
from discreet import testing
from discreet.errors import EngineFailed

ROWS = 2_000_000
TEXT = "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY city"


def policy(folder: Path, engine: dict, ledger: str) -> dict:
    return {
        "ledger": {"path": str(folder / ledger), "epsilon": 100},
        "unit": {"person": "pid"},
        "engine": engine,
        "tables": {
            "visits": {
                "source": str(folder / "visits"),
                "rows_per_person": 20,
                "groups_per_person": 10,
                "rows_per_group": 20,
                "columns": {"city": {"between": [0, 9]}, "cost": {"between": [0, 100]}},
            }
        },
    }


def asked(database, key: str) -> dict:
    try:
        with testing.no_noise():
            rows = database.sql(TEXT, epsilon=1, key=key).table.to_pylist()
        shown = {"rows": sorted([row["city"], row["n"], row["s"]] for row in rows)}
    except EngineFailed as error:
        shown = {"failed": str(error), "context": repr(error.__context__)}
    return shown | {"charges": len(database.ledger.entries())}


def main(master: str, place: str, *workers: str) -> None:
    from cluster import killed  # beside this file

    folder, draw = Path(place), np.random.default_rng(3)
    (folder / "visits").mkdir()
    for number in range(8):
        size = ROWS // 8
        pid = np.arange(size) // 10 + number * size
        columns = {"pid": pid, "city": draw.integers(0, 10, size), "cost": draw.integers(0, 101, size).astype(float)}
        pq.write_table(pa.table(columns), folder / "visits" / f"{number}.parquet")
    config = {"spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "8", "spark.driver.host": "127.0.0.1"}
    plain = dp.connect(policy(folder, {"kind": "duckdb"}, "plain.ledger"))
    spread = {"kind": "spark", "master": master, "timeout": 600, "config": config}
    database = dp.connect(policy(folder, spread, "spread.ledger"))
    found = {"truth": asked(plain, "a"), "both": asked(database, "a")}
    killer = threading.Timer(1.0, killed, [int(workers[0])])
    killer.start()
    found["one"] = asked(database, "b")
    killer.join()
    found["retried"] = asked(database, "b")
    killed(int(workers[1]))
    database.engine.timeout = 5  # Spark itself would wait for workers without end
    found["none"] = asked(database, "c")
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
