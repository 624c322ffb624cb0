"""What is computed inside one person is the same on every engine, also for rows that are missing, odd or huge."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.datasets.database import Database
from discreet.sql.measuring.measure import read_measures

from ..sql.test_inside_one_person import QUESTIONS, arrow, exact, open_ledger, random_rows, schema

SEED = 2


@pytest.fixture(scope="module")
def database(opened: Any) -> Database:
    return Database(schema(), opened(arrow(random_rows(SEED))), open_ledger())


@pytest.mark.some_quick(17)
@pytest.mark.parametrize("where", ["postgres", "spark"], indirect=True)
@pytest.mark.parametrize("text", QUESTIONS)
def test_measures_are_those_of_duckdb(where: str, database: Database, text: str) -> None:
    plan = database.plan(text, epsilon=1)
    found = read_measures(plan.question, database.engine, plan.enforced, plan.groups)
    _, expected = exact(random_rows(SEED), text)
    assert [list(map(int, one)) for one in found] == [list(map(int, one)) for one in expected]
