"""How long a plan takes: `python -m bench.sql.planning`. Nothing is charged and no row is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict

REPEAT = 5
COLUMNS: dict[str, Any] = {"city": {"choices": ["a", "b", "c", "d", "e"]}, "month": {"between": [1, 12]}}
ROWS = {"pid": [1], "city": ["a"], "month": [1], "cost": [1.0]}
MANY = "SUM(CASE WHEN month = {month} AND cost > {n} THEN cost ELSE 0 END) AS s{n}"


def typical(run: int) -> str:
    return f"SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE month > {run} GROUP BY city"


def many(number: int) -> Callable[[int], str]:
    def text(run: int) -> str:
        sums = ", ".join(MANY.format(month=n % 12 + 1, n=n + run) for n in range(number))
        return f"SELECT city, {sums} FROM visits GROUP BY city"

    return text


QUESTIONS = {"two aggregates by city": typical} | {
    f"{n:,} sums by city".replace(",", " "): many(n) for n in (300, 1500)
}


def milliseconds(ask: Callable[[str], Any], text: Callable[[int], str]) -> float:
    """Processor time, the best of some runs. Each run has other literals, so that no plan is known before."""
    taken = []
    for run in range(REPEAT):
        start = time.process_time()
        ask(text(run))
        taken.append(1000 * (time.process_time() - start))
    return min(taken)


def main() -> None:
    section(
        "Planning",
        "sql.planning",
        f"""From SQL text to a plan: what is read, bounded and charged, and whether the engine can compute it. Only the
        city and the month are declared. Next to it: DuckDB plans the same text without privacy (EXPLAIN). Processor
        time, the best of {REPEAT} texts that differ in their numbers. {machine()}.""",
    )
    visits = pa.table(ROWS)
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 1},
        "unit": {"person": "pid"},
        "tables": {"visits": {"source": visits, "columns": COLUMNS}},
    }
    database, plain = dp.connect(policy), duckdb.connect()
    plain.register("visits", visits)
    database.plan("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    plain.execute("EXPLAIN SELECT count(*) FROM visits")
    table("question", "characters", "discreet, ms", "DuckDB, ms", "ratio")
    found = {}
    for name, text in QUESTIONS.items():
        ours = milliseconds(lambda asked: database.plan(asked, epsilon=1), text)
        theirs = milliseconds(lambda asked: plain.execute(f"EXPLAIN {asked}").fetchall(), text)
        found[name] = ours
        line(name, f"{len(text(0)):,}".replace(",", " "), f"{ours:.0f}", f"{theirs:.1f}", f"{ours / theirs:.1f}")
    notes(
        "What was written is tried as a whole on columns without rows. One sum of each type and range is tried further."
    )
    ours = list(found.values())
    verdict({"a typical plan in 20 ms": ours[0] <= 20, "1500 aggregates in 2 s": ours[2] <= 2000})


if __name__ == "__main__":
    main()
