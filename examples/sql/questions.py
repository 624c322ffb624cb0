"""Ask the sixty everyday questions of `questions.sql`, each with ε = 1, and compare with the exact answers.

`python examples/sql/questions.py` prints a table: what was asked, what came back, and the median relative error. The
truth comes from plain DuckDB on the same text. With real people, nobody may see it.
"""

import math
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import discreet as dp
from discreet.demo.data import POLICY, make_clinic

EPSILON, DELTA = 1, 1e-7


def questions() -> list[tuple[str, str]]:
    """The comment and the text of each question."""
    text = Path(__file__).with_name("questions.sql").read_text(encoding="utf-8")
    blocks = [block.strip() for block in text.split("\n\n")[1:]]
    return [
        (head.removeprefix("-- "), sql.rstrip(";\n")) for head, _, sql in (block.partition("\n") for block in blocks)
    ]


def clinic(folder: Path) -> Any:
    """The clinic of the demo, with a budget for all questions."""
    make_clinic(folder)
    policy = tomllib.loads(POLICY)
    policy["ledger"] = {"path": ":memory:", "epsilon": 1000, "delta": 1e-3, "delta_per_question": DELTA}
    for name, table in policy["tables"].items():
        table["source"] = str(folder / f"{name}.parquet")
    return dp.connect(policy)


def plain(folder: Path) -> duckdb.DuckDBPyConnection:
    """The same tables without privacy."""
    connection = duckdb.connect()
    for name in ("people", "visits"):
        connection.execute(f"CREATE VIEW {name} AS FROM '{folder / name}.parquet'")
    return connection


def relative_errors(answer: Any, connection: duckdb.DuckDBPyConnection, sql: str) -> list[float]:
    """How far each number is from the exact one, for the rows that both have."""
    exact = connection.execute(sql)
    names = [column[0] for column in exact.description]
    keys = [name for name in names if name not in answer.noisy]
    truth = {tuple(_same(row[names.index(key)]) for key in keys): row for row in exact.fetchall()}
    found = []
    for row in answer:
        true = truth.get(tuple(_same(row[key]) for key in keys))
        for name in answer.noisy if true else ():
            value, wanted = row[name], true[names.index(name)]
            if wanted is not None:
                found.append(
                    math.inf if value is None else abs(float(value) - float(wanted)) / max(abs(float(wanted)), 1e-9)
                )
    return found


def _same(key: Any) -> str:
    """A key as text. A date and its first moment are the same."""
    return str(key).removesuffix(" 00:00:00")


def answered() -> Iterator[tuple[str, int, float]]:
    """What was asked, how many rows came back, and the median of their relative errors."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        database, connection = clinic(folder), plain(folder)
        for asked, sql in questions():
            answer = database.sql(sql, epsilon=EPSILON)
            found = relative_errors(answer, connection, sql)
            yield asked, answer.table.num_rows, statistics.median(found) if found else math.inf
        database.close()


def main() -> None:
    start, errors = time.perf_counter(), []
    print("| question | rows | median relative error |\n|---|---:|---:|")
    for asked, rows, error in answered():
        errors.append(error)
        print(f"| {asked} | {rows} | {100 * error:.2g}% |", flush=True)
    small = sum(error < 0.05 for error in errors)
    print(f"\n{len(errors)} questions answered; the median error of {small} of them is below 5%.")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
