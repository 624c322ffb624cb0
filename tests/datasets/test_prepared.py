"""A question that is planned: what it owes before and after it is answered."""

from __future__ import annotations

import pytest

import discreet as dp

QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture
def clinic():
    columns = {
        "id": {"type": "integer"},
        "city": {"choices": ["Haifa", "Koper"]},
        "cost": {"type": "number", "between": "auto"},
    }
    source = {"id": [1, 2, 3], "city": ["Haifa", "Koper", "Koper"], "cost": [1.0, 2.0, 3.0]}
    table = {"source": source, "rows_per_person": 1, "version": "1", "columns": columns}
    policy = {"ledger": {"path": ":memory:", "epsilon": 10}, "unit": {"person": "id"}, "tables": {"visits": table}}
    database = dp.connect(policy)
    yield database
    database.close()


def test_an_answer_is_owed_once(clinic):
    asked = clinic.prepare(QUESTION, epsilon=1)
    assert [cost.epsilon_at(delta=0) for cost in asked.owed()] == [1]
    assert not asked.finds_bounds
    asked.answer()
    assert asked.owed() == []
    assert clinic.prepare(f"{QUESTION} ORDER BY n LIMIT 1", epsilon=1).owed() == []
    assert clinic.prepare("SELECT city FROM visits LIMIT 0", epsilon=1).owed() == []


def test_bounds_that_are_found_first_are_owed_too(clinic):
    asked = clinic.prepare("SELECT SUM(cost) AS s FROM visits", epsilon=1)
    assert asked.finds_bounds
    assert len(asked.owed()) == 2
    asked.answer()
    again = clinic.prepare("SELECT SUM(cost) AS s FROM visits", epsilon=1)
    assert len(again.owed()) == 1  # at most: whether the rest was bought is known with the bound
    assert again.answer().replayed


def test_a_statement_over_two_questions_owes_both(clinic):
    two = "WITH a AS (SELECT COUNT(*) AS n FROM visits), b AS (SELECT COUNT(*) AS m FROM visits WHERE city = 'Koper') "
    asked = clinic.prepare(f"{two}SELECT n - m AS rest FROM a, b", epsilon=1)
    assert len(asked.owed()) == 2
    assert not asked.finds_bounds
