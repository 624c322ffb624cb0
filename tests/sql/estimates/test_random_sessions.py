"""Sessions of random questions: whatever is free or paid in part, no answer is further from the truth than noise is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet import testing

from .asking import ROWS, charges, opened

CONDITIONS = [
    "city = 'A'",
    "city <> 'A'",
    "city IN ('A', 'C')",
    "city IS NULL",
    "city NOT IN ('B')",
    "sex = 'f'",
    "NOT sex = 'f'",
    "sex IS NOT NULL",
    "city = 'A' OR sex = 'm'",
    "city = 'B' AND (sex IS NULL OR sex = 'f')",
    "CASE WHEN sex = 'f' THEN city = 'A' ELSE city IS NULL END",
    "x > 3",
]
KEYS = ["", "city", "sex", "city, sex"]
MEASURES = [
    "COUNT(*)",
    "COUNT(city)",
    "SUM(x)",
    "COUNT(*) FILTER (WHERE sex = 'm')",
    "SUM(x) FILTER (WHERE city = 'B')",
]


def question(draw: Any) -> str:
    """A random question over the same rows."""
    keys = str(draw.choice(KEYS))
    shown = [*([keys] if keys else []), *(f"{one} AS m{n}" for n, one in enumerate(draw.choice(MEASURES, 2, False)))]
    conditions = draw.choice(CONDITIONS, int(draw.integers(0, 3)), replace=False)
    where = f" WHERE {' AND '.join(f'({one})' for one in conditions)}" if len(conditions) else ""
    return f"SELECT {', '.join(shown)} FROM t{where}{f' GROUP BY {keys}' if keys else ''}"


def check_session(seed: int, questions: int) -> int:
    """No answer is further from the truth than once in 10^7 questions. Returns how many used earlier answers."""
    draw, used = np.random.default_rng(seed), 0
    database, exact = opened(ROWS[: 50 + 40 * seed]), opened(ROWS[: 50 + 40 * seed])
    for number in range(questions):
        text, epsilon = question(draw), float(draw.choice([0.05, 0.2, 1]))
        answer = database.sql(text, epsilon=epsilon)
        used += bool(answer.derived_from)
        with testing.no_noise():
            truth = exact.sql(text, epsilon=50, key=str(number)).table.to_pylist()
        for found, row in zip(answer.with_errors(1 - 1e-7).to_pylist(), truth, strict=True):
            for name in ("m0", "m1"):
                assert abs(found[name] - row[name]) <= found[f"{name}_error"] + 1e-6, (text, number)
    assert sum(float(one.guarantee.largest_loss) for one in charges(database)) <= database.ledger.spent["ε"] + 1e-9
    assert database.ledger.verify() == len(charges(database)) + 1
    return used


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))])
def test_no_answer_is_further_from_the_truth_than_noise_is(seed: int) -> None:
    assert check_session(seed, 12 if seed == 0 else 60) >= 1
