"""A newcomer's first question: groups that nobody declared, limits that nobody declared, and few people.

`python -m bench.sql.found_groups` asks for counts, averages and sums by city, and compares two ways to divide ε between
finding the limits and the answer: for the hundred groups that a plan assumes, and for the groups that were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from bench.report import line, notes, section, table, verdict
from discreet.sql.planner import Planner

PEOPLE_AND_GROUPS, EPSILONS, RUNS = ((3_000, 5), (30_000, 30), (100_000, 300)), (0.1, 0.3, 1), 10
QUESTIONS = {
    "count and average": ("n", "SELECT city, COUNT(*) AS n, AVG(cost) AS m FROM visits GROUP BY city"),
    "sum": ("s", "SELECT city, SUM(cost) AS s FROM visits GROUP BY city"),
}
"""A question, and the column whose error is shown."""


def visits(people: int, groups: int) -> pa.Table:
    """Five visits of each person on average, and lognormal costs."""
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(people), rng.poisson(4, people) + 1)
    city = np.char.add("city ", rng.integers(0, groups, len(owners)).astype(str))
    return pa.table({"person": owners, "city": city, "cost": np.exp(rng.normal(6, 0.8, len(owners))).round(2)})


def truth(data: pa.Table) -> dict[str, dict[str, float]]:
    """The exact numbers of each group."""
    found = data.group_by("city").aggregate([("cost", "count"), ("cost", "mean"), ("cost", "sum")])
    columns = {"n": "cost_count", "m": "cost_mean", "s": "cost_sum"}
    cities = found["city"].to_pylist()
    return {name: dict(zip(cities, found[own].to_pylist(), strict=True)) for name, own in columns.items()}


@contextmanager
def divided_for_a_guess() -> Iterator[None]:
    """As if the number of groups were not known after they are found."""
    sound = Planner.divided_again
    Planner.divided_again = lambda self, plan, question: plan  # type: ignore[method-assign]
    try:
        yield
    finally:
        Planner.divided_again = sound  # type: ignore[method-assign]


def asked(data: pa.Table, text: str, epsilon: float) -> dict[str, list[Any]] | None:
    """The answer under a ledger of its own. None if it is refused."""
    ledger = {"path": ":memory:", "epsilon": 100, "delta": 1e-3, "delta_per_question": 1e-8}
    database = dp.connect({"ledger": ledger, "unit": {"person": "person"}, "tables": {"visits": {"source": data}}})
    try:
        found: dict[str, list[Any]] = database.sql(text, epsilon=epsilon).table.to_pydict()
        return found
    except dp.NotAllowed:
        return None
    finally:
        database.close()


def relative_error(data: pa.Table, exact: dict[str, float], column: str, text: str, epsilon: float) -> float:
    """The median over runs of the median error of a group, as a part of the exact number. Infinite if refused."""
    errors = []
    for _ in range(RUNS):
        answer = asked(data, text, epsilon)
        if answer is None or not answer["city"]:
            errors.append(np.inf)
            continue
        pairs = zip(answer["city"], answer[column], strict=True)
        errors.append(float(np.median([abs(value - exact[city]) / exact[city] for city, value in pairs])))
    return float(np.median(errors))


def main() -> None:
    section(
        "Groups and limits that nobody declared",
        "sql.found_groups",
        f"""Counts, averages and sums by city. Nothing is declared but who a person is: groups, centers and limits are
        found privately, from the same ε. The error of the count or the sum, as a part of it: the median over groups
        and {RUNS} runs, if ε is divided for 100 groups, whatever is found, and for the groups that were found.""",
    )
    table("people", "groups", "question", "ε", "error, for 100 groups", "error, for those found")
    few: list[tuple[float, float]] = []
    many: list[tuple[float, float]] = []
    for people, groups in PEOPLE_AND_GROUPS:
        data = visits(people, groups)
        exact = truth(data)
        for name, (column, text) in QUESTIONS.items():
            for epsilon in EPSILONS:
                with divided_for_a_guess():
                    before = relative_error(data, exact[column], column, text, epsilon)
                after = relative_error(data, exact[column], column, text, epsilon)
                line(f"{people:,}", groups, name, epsilon, f"{100 * before:.3g}%", f"{100 * after:.3g}%")
                (few if groups == PEOPLE_AND_GROUPS[0][1] else many).append((before, after))
    notes("An error near 100% says that the limits were found far too low: almost all of every person was cut off.")
    verdict(
        {
            "few people and groups: no answer is lost": all(after < 0.5 for _, after in few),
            "many groups: no error grows by half": all(after < 1.5 * before for before, after in many),
        }
    )


if __name__ == "__main__":
    main()
