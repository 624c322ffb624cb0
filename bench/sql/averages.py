"""What an average's ± is before it is asked for: in standard deviations of its values, for how many people.

`python -m bench.sql.averages` asks for averages of which nothing is declared, and compares ± with what plans say. Then
it shows what declarations do to ±.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, notes, section, table, verdict
from discreet.errors import NotAllowed
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


WARDS, GENEROUS, TIGHT = {"choices": list(range(6))}, {"between": [0, 20_000]}, {"between": [0, 8000]}
SIZES = 4000, 1500
DECLARED: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nothing": ({}, {}),
    "choices of the ward": ({"ward": WARDS}, {}),
    "and 12 rows of a person, costs from 0 to 20,000": ({"ward": WARDS, "cost": GENEROUS}, {"rows_per_person": 12}),
    "and 3 rows of a person, costs from 0 to 8,000": ({"ward": WARDS, "cost": TIGHT}, {"rows_per_person": 3}),
}
"""What is declared of the costs of visits: all of it is true of nearly all people."""


def errors(rng: Any, people: int, columns: dict[str, Any], table_of: dict[str, int]) -> list[float]:
    """The ± of the average cost in each ward. Infinite where none is known."""
    who = np.repeat(np.arange(people), rng.integers(1, 4, people))
    costs = np.minimum(rng.gamma(4, 750, len(who)), 8000).round(2)
    source = pa.table({"patient": who, "ward": rng.integers(0, 6, len(who)), "cost": costs})
    policy = {
        "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-5, "delta_per_question": 1e-9},
        "unit": {"person": "patient"},
        "tables": {"visits": {"source": source, "columns": columns, **table_of}},
    }
    try:
        answer = dp.connect(policy).sql("SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward", epsilon=0.3)
    except NotAllowed:  # too few people to find how much one may add
        return [np.inf] * 6
    return [np.inf if error is None else error for error in answer.table["m_error"].to_pylist()]


def what_declarations_do() -> bool:
    """Choices help, and generous ranges and numbers of rows are worse than none."""
    print("\nThe average cost of visits, about 3,000, in each of six wards, at ε = 0.3:\n")
    table("what is declared", *(f"± with {people:,} people" for people in SIZES))
    rng, medians = np.random.default_rng(9), []
    for name, (columns, table_of) in DECLARED.items():
        found = [[each for _ in range(5) for each in errors(rng, n, columns, table_of)] for n in SIZES]
        line(name, *(_between(each) for each in found))
        medians.append([float(np.median(each)) if each else np.inf for each in found])
    nothing, choices, generous, tight = medians
    return all(t < c < n and g > c for n, c, g, t in zip(nothing, choices, generous, tight, strict=True))


def _between(found: list[float]) -> str:
    """Where most errors are: an eighth is smaller, and an eighth larger."""
    low, high = (float(f"{end:.2g}") for end in np.quantile(found, [0.125, 0.875], method="nearest"))
    return f"{low:,.0f} to {high:,.0f}" if high < np.inf else f"{low:,.0f} to unknown"


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
    helps = what_declarations_do()
    verdict(
        {
            "what plans say holds in nine of ten cells": bool(np.mean(kept) >= 0.9),
            "choices help, tight bounds help more, and generous ones are worse than choices alone": helps,
        }
    )


if __name__ == "__main__":
    main()
