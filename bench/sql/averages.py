"""What an average's ± is before it is asked for: in standard deviations of its values, for how many people.

`python -m bench.sql.averages` asks for averages of which nothing is declared, and compares ± with what plans say.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, notes, section, table, verdict
from discreet.sql.running.explanation import IN_DEVIATIONS, IN_DEVIATIONS_L2

ABOUT = """Averages of which nothing is declared but the groups. In units of what plans state: ± times the number of
people in a group, over the standard deviation of the values and over the error in limits. The median over the groups,
and of three answers. A plan says "mostly at most" the largest that is printed in bold."""
VALUES: dict[str, Callable[[Any, int], Any]] = {
    "uniform": lambda rng, n: rng.uniform(0, 100, n),
    "normal": lambda rng, n: rng.normal(50, 5, n),
    "yes and no, 30%": lambda rng, n: (rng.random(n) < 0.3) * 1.0,
    "gamma, shape 2": lambda rng, n: rng.gamma(2, 220, n),
    "lognormal, σ 1": lambda rng, n: np.exp(rng.normal(5, 1, n)),
    "lognormal, σ 1.5": lambda rng, n: np.exp(rng.normal(5, 1.5, n)),
}
CASES = [(1, 1000, 1.0), (1, 1000, 0.5), (1, 10_000, 0.1), (1, 10_000, 1.0), (5, 1000, 1.0), (30, 1000, 1.0)]
"""Groups, people in each, and ε."""


def measured(rng: Any, draw: Callable[[Any, int], Any], groups: int, people: int, rows: int, epsilon: float) -> float:
    """The ± of one answer, in units of the standard deviation and the error in limits for each person of a group."""
    persons = groups * people // (1 if rows == 1 else min(groups, rows))
    who = np.repeat(np.arange(persons), rng.poisson(rows - 1, persons) + 1)
    values, group = draw(rng, len(who)), rng.integers(0, groups, len(who))
    source = pa.table({"person": who, "x": values, "g": group})
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-5, "delta_per_question": 1e-9},
        "unit": {"person": "person"},
        "tables": {"t": {"source": source, "columns": {"g": {"choices": list(range(groups))}}}},
    }
    text = "SELECT g, AVG(x) AS m FROM t GROUP BY g"
    database = dp.connect(policy)
    parts = database.explain(text, epsilon=epsilon).data["measures"]
    errors = database.sql(text, epsilon=epsilon).table["m_error"].to_pylist()
    in_group = len(np.unique(who * groups + group)) / groups
    known = [np.inf if error is None else error for error in errors]
    return float(np.median(known)) / values.std() * in_group / max(part["error_in_limits"] for part in parts)


def main() -> None:
    section("The error of averages", "sql.averages", ABOUT)
    table("values", "rows of a person", *(f"{g} × {n:,}, ε = {e:g}" for g, n, e in CASES))
    rng, kept = np.random.default_rng(8), []
    for (name, draw), rows in itertools.product(VALUES.items(), (1, 4)):
        shown = []
        for groups, people, epsilon in CASES:
            found = float(np.median([measured(rng, draw, groups, people, rows, epsilon) for _ in range(3)]))
            kept.append(found <= (IN_DEVIATIONS_L2 if groups >= 30 else IN_DEVIATIONS))
            shown.append(f"{found:.1f}")
        line(name, rows, *shown)
    notes(
        f"""Plans say at most **{IN_DEVIATIONS}**, and from 20 numbers on, where limits are on squares,
        **{IN_DEVIATIONS_L2}**. It holds in {np.mean(kept):.0%} of these cells. What is above has long tails and many
        people: there the ± is small, and most of it is what may have been cut off."""
    )
    verdict({"what plans say holds in nine of ten cells": bool(np.mean(kept) >= 0.9)})


if __name__ == "__main__":
    main()
