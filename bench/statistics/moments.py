"""Mean and variance of values of which nothing is declared, next to a range that is found and to one that is declared.

`python -m bench.statistics.moments` draws 10^4 people with one value each, several times, and asks for mean and
variance together under pure ε = 1. `--repeat 200` is how often.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dp
from bench.report import line, notes, section, table, verdict

PEOPLE, EPSILON = 10**4, 1
SQL = "SELECT AVG(x) AS mean, VARIANCE(x) AS variance FROM t"
FAMILIES: dict[str, Callable[[np.random.Generator], Any]] = {
    "N(1000, 10)": lambda draw: draw.normal(1000, 10, PEOPLE),
    "1000 + 10·t₃": lambda draw: 1000 + 10 * draw.standard_t(3, PEOPLE),
    "lognormal(3, 1)": lambda draw: draw.lognormal(3, 1, PEOPLE),
}
WIDE = {"N(1000, 10)": [0, 10_000], "1000 + 10·t₃": [0, 10_000], "lognormal(3, 1)": [0, 10_000]}
"""A range that a careful owner would declare."""
POLICIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "nothing declared": lambda family: {},
    "one row of each": lambda family: {"rows_per_person": 1},
    '`between="auto"`, one row of each': lambda family: {"rows_per_person": 1, "columns": {"x": {"between": "auto"}}},
    "`between=[0, 10000]`, one row of each": lambda family: {
        "rows_per_person": 1, "columns": {"x": {"between": WIDE[family]}},
    },
}  # fmt: skip
GOALS = {"mean": 0.03, "variance": 0.03}
"""For normal values, with nothing declared: the root mean square error of the mean, and that of the variance as a part
of it."""

ABOUT = f"""Mean and variance of {PEOPLE:,} people with one value each, both in one question, pure ε = {EPSILON}. The
errors are against the values that were drawn: root mean squares over all answers, with the median of absolute errors
next to them; the error of the variance is a part of it. An answer is lost if it is refused, or if the mean is wrong by
more than one standard deviation or the variance by more than half; lost answers count in all errors, a refusal as the
standard deviation and as all of the variance."""


def asked(values: Any, known: dict[str, Any], home: Path) -> tuple[float, float] | None:
    """The answer under a new ledger. None, if it is refused."""
    name = f"{time.time_ns()}"
    pq.write_table(pa.table({"id": np.arange(len(values)), "x": values}), home / f"{name}.parquet")
    words = {
        "ledger": {"path": ":memory:", "epsilon": EPSILON},
        "unit": {"person": "id"},
        "tables": {"t": {"source": str(home / f"{name}.parquet"), "person": "id", **known}},
    }
    database = dp.connect(words)
    try:
        row = database.sql(SQL, epsilon=EPSILON).table.to_pylist()[0]
        return float(row["mean"]), float(row["variance"])
    except dp.NotAllowed as error:
        if error.code != "too-few-people":
            raise
        return None
    finally:
        database.close()
        (home / f"{name}.parquet").unlink()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=200)
    words = parser.parse_args()
    section("Moments", "statistics.moments", ABOUT)
    table("values", "policy", "mean: rms", "median", "variance: rms", "median", "lost")
    goals = {}
    with tempfile.TemporaryDirectory(prefix="bench-moments-") as home:
        for family, drawn in FAMILIES.items():
            for policy, known in POLICIES.items():
                off, lost = [], 0
                for number in range(words.repeat):
                    values = drawn(np.random.default_rng([5, number]))
                    true, deviation = float(values.mean()), float(values.std(ddof=1))
                    found = asked(values, known(family), Path(home)) or (true + deviation, 0.0)
                    error = abs(found[0] - true), abs(found[1] / deviation**2 - 1)
                    lost += error[0] >= deviation or error[1] >= 0.5
                    off.append(error)
                errors = np.array(off)
                rms, median = np.sqrt((errors**2).mean(0)), np.median(errors, axis=0)
                line(
                    family, policy, f"{rms[0]:.2g}", f"{median[0]:.2g}", f"{100 * rms[1]:.2g}%",
                    f"{100 * median[1]:.2g}%", f"{lost} of {words.repeat}",
                )  # fmt: skip
                if family.startswith("N") and not known(family):
                    goals = {
                        f"mean within {GOALS['mean']:g} ({rms[0]:.2g})": rms[0] <= GOALS["mean"],
                        f"variance within {GOALS['variance']:.0%} ({rms[1]:.2g})": rms[1] <= GOALS["variance"],
                    }
    verdict(goals)
    notes("The goals are for normal values with nothing declared, as root mean squares.")


if __name__ == "__main__":
    main()
