"""A plan says from how many people on an answer has a ±, where limits on people are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import NotAllowed

BY_G = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
QUESTIONS = {
    BY_G: 7,
    "SELECT COUNT(*) AS n FROM t": 1,
    "SELECT AVG(x) AS n FROM t": 1,
    "SELECT SUM(x) AS n FROM t": 1,
    "SELECT g, COUNT(*) AS c, AVG(LEAST(x, 20000)) AS n FROM t GROUP BY g": 7,
    "SELECT g, AVG(x) AS n FROM t GROUP BY g": 30,
}
ROWS: dict[str, Callable[[Any, int], Any]] = {
    "one": lambda rng, people: np.ones(people, int),
    "Poisson": lambda rng, people: rng.poisson(4, people),
    "geometric": lambda rng, people: rng.geometric(0.25, people),
    "Pareto": lambda rng, people: np.minimum(np.ceil(rng.pareto(1.5, people)), 500).astype(int),
}
"""How many rows people have. Of the last ones, a few have most."""


def asked(rows: Any, groups: int, rng: Any) -> dp.Database:
    """People with so many rows each, in some groups. Nothing is declared but these."""
    who = np.repeat(np.arange(len(rows)), rows)
    values = rng.gamma(2, 1150, len(who)).round(2)
    source = pa.table({"p": who, "g": rng.integers(0, groups, len(who)), "x": values})
    table = {"source": source, "columns": {"g": {"choices": list(range(groups))}}}
    ledger = {"path": ":memory:", "epsilon": 1000, "delta": 1e-5, "delta_per_question": 1e-9}
    return dp.connect({"ledger": ledger, "unit": {"person": "p"}, "tables": {"t": table}})


def is_known(database: dp.Database, question: str, epsilon: float) -> bool:
    try:
        return database.sql(question, epsilon=epsilon).table["n_error"][0].as_py() is not None
    except NotAllowed:  # too few people to find how much one may add
        return False


@pytest.mark.parametrize(
    ("question", "where"),
    [(BY_G, " people in all groups together,"), ("SELECT COUNT(*) AS n FROM t", " people,")],
    ids=["groups", "one"],
)
def test_below_the_stated_number_of_people_there_is_no_error(question: str, where: str) -> None:
    """Exactly there, if all have one row and nothing is drawn. People change nothing in a plan."""
    rng = np.random.default_rng(1)
    plan = asked(np.ones(9, int), 7, rng).explain(question, epsilon=0.5)
    said = plan.data["limits"]["people_for_error"]
    few = said["unknown_below"]
    assert f"its ±        {said['in_words']}\n" in plan
    assert f"below about {float(f'{few:.2g}'):,.0f}{where}" in said["in_words"]
    with testing.no_noise():
        known = [is_known(asked(np.ones(few + more, int), 7, rng), question, 0.5) for more in (-1, 0)]
    assert known == [False, True]


def test_of_groups_that_are_not_known_it_is_said_for_each() -> None:
    plan = asked(np.ones(9, int), 7, np.random.default_rng(1)).explain(
        "SELECT p % 9 AS k, COUNT(*) AS n FROM t GROUP BY k", epsilon=0.5
    )
    assert " people for each group that is found, " in plan.data["limits"]["people_for_error"]["in_words"]


@pytest.mark.parametrize(("value", "cancels"), [("x - 5", True), ("LEAST(GREATEST(x, 0), 9)", False)])
def test_it_is_said_that_values_may_cancel(value: str, cancels: bool) -> None:
    plan = asked(np.ones(9, int), 7, np.random.default_rng(1)).explain(f"SELECT SUM({value}) AS n FROM t", epsilon=0.5)
    assert plan.data["limits"]["people_for_error"]["in_words"].endswith("do not cancel") == cancels


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_stated_numbers_of_people_are_right(epsilon: float) -> None:
    """Over all kinds of people and questions. 24 × 4 answers on each side: 0% and 97% had a ±."""
    rng = np.random.default_rng(5)
    known: dict[float, list[bool]] = {0.5: [], 1.0: []}
    for question, groups in QUESTIONS.items():
        said = asked(np.ones(9, int), groups, rng).explain(question, epsilon=epsilon).data["limits"]["people_for_error"]
        for rows in ROWS.values():
            for part, people in ((0.5, said["unknown_below"] // 2), (1.0, said["known_from"])):
                known[part] += [is_known(asked(rows(rng, people), groups, rng), question, epsilon) for _ in range(4)]
    assert np.mean(known[0.5]) < 0.1
    assert np.mean(known[1.0]) > 0.8
