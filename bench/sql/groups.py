"""What one more group costs, from the engine to the answer: `python -m bench.sql.groups`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict

ROWS, REPEAT, SIDES = 1_000_000, 3, (10, 100, 316, 1000)
MANY = "SELECT a, b, COUNT(*) AS n FROM t WHERE a < {side} AND b < {side} GROUP BY a, b"
ONE = "SELECT COUNT(*) AS n FROM t WHERE a < {side} AND b < {side}"


def rows() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({"pid": np.arange(ROWS), "a": rng.integers(0, 1000, ROWS), "b": rng.integers(0, 1000, ROWS)})


def seconds(ask: Callable[[str], Any], text: str) -> float:
    """The best of some runs."""
    taken = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        ask(text)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    section(
        "Many groups",
        "sql.groups",
        f"""A table of {ROWS:,} rows, one for each person, counted by two declared columns. The time of an answer with
        all its groups, less that of the total over the same rows, for each group. Next to it: DuckDB alone, with the
        result as an Arrow table. {machine()}.""",
    )
    data = rows()
    plain = duckdb.connect()
    plain.register("t", data)

    def private(text: str) -> Any:
        # a new ledger each time: an old one would repeat its answer
        columns = {"a": {"between": [0, 999]}, "b": {"between": [0, 999]}}
        declared = {"source": data, "rows_per_person": 1, "columns": columns}
        policy = {
            "ledger": {"path": ":memory:", "epsilon": 1},
            "unit": {"person": "pid"},
            "tables": {"t": declared},
        }
        database = dp.connect(policy)
        found = database.sql(text, epsilon=1).table
        database.close()
        return found

    table("groups", "discreet, s", "discreet, µs a group", "DuckDB, s", "DuckDB, µs a group")
    last = 0.0
    for side in SIDES:
        cells = []
        for ask in (private, lambda text: plain.sql(text).to_arrow_table()):
            many, one = (seconds(ask, text.format(side=side)) for text in (MANY, ONE))
            cells += [f"{many:.3f}", f"{1e6 * (many - one) / side**2:.2f}"]
            last = 1e6 * (many - one) / side**2 if ask is private else last
        line(f"{side**2:,}", *cells)
    notes("Every group gets its own discrete noise and its own error.")
    verdict({"a million groups at 1 µs each": last <= 1})


if __name__ == "__main__":
    main()
