"""Levels that add up, next to one question for each level: `python -m bench.sql.cubes`."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict

PEOPLE, ANSWERS, EPSILON = 200_000, 30, 1.0
KEYS = {"region": 20, "sex": 2, "age": 9, "month": 12}
CUBES = {
    "ROLLUP (region, month)": ("region", "month"),
    "ROLLUP (region, month, age)": ("region", "month", "age"),
    "CUBE (sex, age)": ("sex", "age"),
    "CUBE (region, sex, age)": ("region", "sex", "age"),
}


def people() -> pa.Table:
    """Made-up people, one row each, unevenly in all groups."""
    rng = np.random.default_rng(3)
    columns: dict[str, Any] = {"pid": np.arange(PEOPLE)}
    for name, size in KEYS.items():
        weights = rng.gamma(1.0, size=size)
        columns[name] = rng.choice(size, PEOPLE, p=weights / weights.sum())
    return pa.table(columns)


def levels_of(group: str, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The levels of a cube, the finest first."""
    if group.startswith("ROLLUP"):
        return [keys[:size] for size in range(len(keys), -1, -1)]
    return [tuple(k for n, k in enumerate(keys) if kept >> n & 1) for kept in range(2 ** len(keys) - 1, -1, -1)]


def numbers(rows: list[dict[str, Any]], keys: tuple[str, ...], level: tuple[str, ...]) -> dict[Any, float]:
    """The numbers of one level."""
    return {
        tuple(row[key] for key in level): row["n"]
        for row in rows
        if all((row.get(key) is None) == (key not in level) for key in keys)
    }


def off(found: dict[Any, float], true: dict[Any, float]) -> float:
    """The sum of squared errors over groups. A group without rows is 0."""
    return math.fsum((n - true.get(group, 0)) ** 2 for group, n in found.items()) / len(found)


def main() -> None:
    section(
        "Cubes",
        "sql.cubes",
        f"""Counts at all levels of detail of {PEOPLE} made-up people at ε = {EPSILON:g}: one statement whose levels add
        up, each level as a question of its own with an equal part of ε, and the finest level alone, added up. Root
        mean squared error of a group, of {ANSWERS} answers: the mean over levels, at the finest and in total.
        {machine()}.""",
    )
    data, plain = people(), duckdb.connect()
    plain.register("people", data)
    known = {name: {"between": [0, size - 1]} for name, size in KEYS.items()}
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 100_000},
        "unit": {"person": "pid"},
        "tables": {"people": {"source": data, "rows_per_person": 1, "columns": known}},
    }
    database = dp.connect(policy)
    table("question", "levels", "how", "mean of levels", "finest", "total")
    better = []
    for group, keys in CUBES.items():
        levels = levels_of(group, keys)
        names = ", ".join(keys)
        text = f"SELECT {names}, COUNT(*) AS n FROM people GROUP BY {group}"
        truth = plain.sql(text).to_arrow_table().to_pylist()
        true = [numbers(truth, keys, level) for level in levels]
        squares: dict[str, Any] = {}
        for run in range(ANSWERS):
            epsilon = EPSILON * (1 + run * 1e-9)  # an answer of its own
            rows = database.sql(text, epsilon=epsilon).table.to_pylist()
            own = [numbers(rows, keys, level) for level in levels]
            alone, added = [], []
            finest = []
            for level in levels:
                shown = ", ".join((*level, "COUNT(*) AS n"))
                by = f" GROUP BY {', '.join(level)}" if level else ""
                asked = f"SELECT {shown} FROM people{by}"
                found = database.sql(asked, epsilon=epsilon / len(levels)).table.to_pylist()
                alone.append({tuple(row[key] for key in level): row["n"] for row in found})
                if level == keys:
                    finest = database.sql(asked, epsilon=epsilon).table.to_pylist()
            for level in levels:
                sums: dict[Any, float] = {}
                for row in finest:
                    place = tuple(row[key] for key in level)
                    sums[place] = sums.get(place, 0) + row["n"]
                added.append(sums)
            ways = {"levels that add up": own, "each level alone": alone, "the finest, added up": added}
            for way, answered in ways.items():
                errors = np.array([off(one, known) for one, known in zip(answered, true, strict=True)])
                squares[way] = squares.get(way, 0) + errors / ANSWERS
        for way, errors in squares.items():
            roots = np.sqrt(errors)
            line(group, len(levels), way, f"{roots.mean():.1f}", f"{roots[0]:.1f}", f"{roots[-1]:.1f}")
        means = {way: float(errors.sum()) for way, errors in squares.items()}
        better.append(means["levels that add up"] <= 1.02 * min(means.values()))
    notes(
        """The parts of ε are chosen for the smallest sum of variances over levels. All marginals of k columns with
        Gaussian noise, next to the published error of ResidualPlanner, are in
        [Marginals and synthetic tables](publishing.md#marginals-and-synthetic-tables)."""
    )
    verdict({"the smallest sum of variances in each row": all(better)})


if __name__ == "__main__":
    main()
